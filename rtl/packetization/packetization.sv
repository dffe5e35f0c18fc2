// Packetization's control: messages that are being sent, which of their packets may go, must go
// again, or have arrived (docs/nic.md, rules 5 to 15; C3, C4, C8).
//
// In a cycle, one after another: the arbiter takes a packet, and stale descriptors leave; a message
// is submitted; one is cancelled; packets are delivered; credit comes; a timer fires. What the
// arbiter is offered is what the cycles before have left.
module packetization import nano_pkg::*; #(
  // Messages, a power of two from 2 to 128.
  parameter int unsigned Ids = 16,
  // Packets that a message may send unasked, at least 1.
  parameter int unsigned RttPkts = 9,
  parameter int unsigned TimeoutCycles = 22400,
  // Timeouts in a row without progress after which a message fails; 0: it never does.
  parameter int unsigned MaxTimeouts = 5,
  // A timeout that has nothing to repeat sends a packet beyond the credit.
  parameter bit Probe = 1'b1,
  // Places of each descriptor queue, a power of two.
  parameter int unsigned Places = 256,
  parameter int unsigned Classes = 1,
  parameter logic [Classes*32-1:0] ClassBytes = {Classes{32'd38912}},
  parameter logic [Classes*32-1:0] ClassBuffers = {Classes{32'd16}},
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  // The number of this cycle, modulo 2^32.
  input  logic [31:0]     now_i,
  // To the arbiter.
  output logic            has_data_o,
  output egress_meta_t    packet_o,
  input  logic            take_i,
  // From the application. Ready: there is an id, and a buffer for a message of this length.
  input  logic            submit_valid_i,
  output logic            submit_ready_o,
  input  logic [7:0]      submit_protocol_i,
  input  logic [31:0]     submit_dst_ip_i,
  input  logic [15:0]     submit_dst_context_i,
  input  logic [15:0]     submit_src_context_i,
  input  logic [15:0]     submit_msg_len_i,
  // What stands above the id in the message's number.
  input  logic [15-IdW:0] submit_generation_i,
  output logic [IdW-1:0]  submit_id_o,
  output logic [15:0]     submit_buf_ptr_o,
  input  logic            cancel_valid_i,
  input  logic [IdW-1:0]  cancel_id_i,
  // Whether the message of a priority lives (rule 14); its id is in the low bits of its number.
  input  logic [15:0]     prio_tx_msg_id_i,
  input  logic [15:0]     prio_src_context_i,
  output logic            prio_live_o,
  // What a packet says of a message.
  input  logic            delivered_valid_i,
  input  logic [15:0]     delivered_tx_msg_id_i,
  input  logic [15:0]     delivered_src_context_i,
  input  bitmap_t         delivered_pkts_i,
  input  logic            credit_valid_i,
  input  logic [15:0]     credit_tx_msg_id_i,
  input  logic [15:0]     credit_src_context_i,
  input  logic            credit_rtx_i,
  input  logic [7:0]      credit_rtx_pkt_offset_i,
  input  logic            credit_update_i,
  input  logic [15:0]     credit_new_credit_i,
  // A timeout has packets of this message sent again.
  output logic            repeats_valid_o,
  output logic [IdW-1:0]  repeats_id_o,
  // Messages that are over: all has arrived, or there was no answer.
  output logic            done_valid_o,
  output logic [IdW-1:0]  done_id_o,
  output logic            gave_up_valid_o,
  output logic [IdW-1:0]  gave_up_id_o
);

  localparam int unsigned Total = total();
  localparam int unsigned BufW = Total > 1 ? $clog2(Total) : 1;
  localparam int unsigned CountW = $clog2(MaxTimeouts + 2);
  localparam logic [7:0] DataFlag = 8'h01;
  localparam packets_t Unasked = packets_t'(RttPkts < PacketsMax ? RttPkts : PacketsMax);

  function automatic int unsigned total();
    total = 0;
    for (int unsigned c = 0; c < Classes; c++) total += ClassBuffers[32*c +: 32];
  endfunction

  typedef logic [IdW-1:0] id_t;

  // A message. Written at its submission.
  typedef struct packed {
    logic [7:0]      protocol;
    logic [31:0]     dst_ip;
    logic [15:0]     dst_context;
    logic [15:0]     src_context;
    logic [15:0]     msg_len;
    logic [15-IdW:0] generation;
    packets_t        packets;
    logic [15:0]     buf_ptr;
    logic [7:0]      size_class;
    logic [BufW-1:0] buffer;
  } message_t;

  // What changes of it. A packet waits for credit (`to_btx`), or in a descriptor (`waiting`), or
  // was sent. Credit beyond all packets of a message means no more than that of all.
  typedef struct packed {
    bitmap_t           delivered;
    bitmap_t           to_btx;
    bitmap_t           waiting;
    bitmap_t           sent;
    packets_t          credit;
    logic [5:0]        max_tx;
    // `max_tx` when the timer was started, and whether anything has been delivered since.
    logic [5:0]        rtx_offset;
    logic              progress;
    logic [CountW-1:0] timeouts;
  } state_t;

  // Packets of a message that wait for the wire.
  typedef struct packed {
    id_t     id;
    bitmap_t pkts;
    logic    is_rtx;
  } descriptor_t;

  localparam int unsigned Queues = 3;
  localparam int unsigned Init = 0;
  localparam int unsigned Credit = 1;
  localparam int unsigned Timeout = 2;

  message_t       messages_q [Ids];
  logic [Ids-1:0] live_q, live_d;
  state_t [Ids-1:0] states_q;

  // ---- Descriptors. A queue's stale ones, those of messages that are over, stand before those of
  // the message that has the id now. So it is enough to count both.
  localparam int unsigned StaleW = $clog2(Places + 1);
  typedef logic [StaleW-1:0] stale_t;
  stale_t stale_q [Queues][Ids], stale_d [Queues][Ids];
  // No more than a message has packets.
  packets_t fresh_q [Queues][Ids], fresh_d [Queues][Ids];

  descriptor_t       front [Queues];
  logic [Queues-1:0] any, alive, taken, pop, push, room;
  logic              push_init, push_credit, push_timeout;
  descriptor_t       pushed [Queues];
  descriptor_t       pushed_init, pushed_credit, pushed_timeout;
  // What has been sent of the front.
  bitmap_t           begun_q [Queues];

  assign push            = {push_timeout, push_credit, push_init};
  assign pushed[Init]    = pushed_init;
  assign pushed[Credit]  = pushed_credit;
  assign pushed[Timeout] = pushed_timeout;

  for (genvar q = 0; q < Queues; q++) begin : gen_queues
    logic [1:0] kept;
    // It finds out whether there is room for one more.
    fifo #(.Width($bits(descriptor_t)), .Depth(Places)) u_queue (
      .clk_i, .rst_ni,
      .pop_i(pop[q]), .valid_o(any[q]), .front_o(front[q]),
      .push_i({1'b0, push[q]}), .data0_i(pushed[q]), .data1_i('0), .room_o(room[q]), .kept_o(kept)
    );
    logic unused_kept;
    assign unused_kept = ^kept;
    assign alive[q] = any[q] && stale_q[q][front[q].id] == '0;
  end

  // The first queue whose front is alive, and the packet there.
  id_t     chosen_id;
  bitmap_t chosen_left, chosen_pkt;
  logic    chosen_rtx, chosen_last;
  always_comb begin
    chosen_id   = '0;
    chosen_rtx  = 1'b0;
    chosen_left = '0;
    taken       = '0;
    for (int unsigned q = Queues; q > 0; q--) begin
      if (alive[q-1]) begin
        chosen_id   = front[q-1].id;
        chosen_rtx  = front[q-1].is_rtx;
        chosen_left = front[q-1].pkts & ~begun_q[q-1];
        taken       = Queues'(take_i) << (q - 1);
      end
    end
  end
  assign chosen_pkt  = lowest(chosen_left);
  assign chosen_last = chosen_left == chosen_pkt;
  assign has_data_o  = alive != '0;
  // A front that is stale leaves, too.
  assign pop = (taken & {Queues{chosen_last}}) | (any & ~alive);

  always_comb begin
    packet_o = '0;
    if (has_data_o) begin
      packet_o.protocol    = messages_q[chosen_id].protocol;
      packet_o.dst_ip      = messages_q[chosen_id].dst_ip;
      packet_o.dst_context = messages_q[chosen_id].dst_context;
      packet_o.msg_len     = messages_q[chosen_id].msg_len;
      packet_o.pkt_offset  = 8'(index_of(chosen_pkt));
      packet_o.src_context = messages_q[chosen_id].src_context;
      packet_o.tx_msg_id   = {messages_q[chosen_id].generation, chosen_id};
      packet_o.buf_ptr     = messages_q[chosen_id].buf_ptr;
      packet_o.size_class  = messages_q[chosen_id].size_class;
      packet_o.flags       = DataFlag;
      packet_o.is_new_msg  = states_q[chosen_id].sent == '0;
      packet_o.is_rtx      = chosen_rtx;
    end
  end

  // ---- Submission.
  logic            id_free, buffer_ready, submits;
  id_t             free_id;
  message_t        submitted;
  logic [BufW-1:0] buffer_free;
  always_comb begin
    id_free = 1'b0;
    free_id = '0;
    for (int unsigned i = Ids; i > 0; i--) begin
      if (!live_q[i-1]) begin
        id_free = 1'b1;
        free_id = id_t'(i - 1);
      end
    end
  end
  assign submit_ready_o = id_free && buffer_ready;
  assign submits        = submit_valid_i && submit_ready_o;
  assign submit_id_o    = submits ? free_id : '0;
  assign submit_buf_ptr_o = submits ? submitted.buf_ptr : '0;

  always_comb begin
    submitted.protocol    = submit_protocol_i;
    submitted.dst_ip      = submit_dst_ip_i;
    submitted.dst_context = submit_dst_context_i;
    submitted.src_context = submit_src_context_i;
    submitted.msg_len     = submit_msg_len_i;
    submitted.generation  = submit_generation_i;
    submitted.packets     = packets(submit_msg_len_i);
    submitted.buffer      = buffer_free;
  end

  // ---- Which message a packet means, of those that live after submission (rule 14).
  function automatic logic means(logic [15:0] tx_msg_id, logic [15:0] src_context);
    id_t             id;
    logic            is_new;
    logic [15-IdW:0] generation;
    logic [15:0]     context_of;
    id         = tx_msg_id[IdW-1:0];
    is_new     = submits && id == free_id;
    generation = is_new ? submit_generation_i : messages_q[id].generation;
    context_of = is_new ? submit_src_context_i : messages_q[id].src_context;
    return (live_q[id] || is_new) && !(cancel_valid_i && id == cancel_id_i)
           && generation == tx_msg_id[15:IdW] && context_of == src_context;
  endfunction

  logic cancels, delivers, credits, delivered_whole, times_out, gives_up;
  id_t  delivered_id, credit_id, timeout_id;
  assign prio_live_o  = means(prio_tx_msg_id_i, prio_src_context_i);
  assign cancels      = cancel_valid_i
                        && (live_q[cancel_id_i] || (submits && free_id == cancel_id_i));
  assign delivers     = delivered_valid_i
                        && means(delivered_tx_msg_id_i, delivered_src_context_i);
  assign delivered_id = delivered_tx_msg_id_i[IdW-1:0];
  // What is over with this very packet has nothing left that credit could send.
  assign credits      = credit_valid_i && means(credit_tx_msg_id_i, credit_src_context_i);
  assign credit_id    = credit_tx_msg_id_i[IdW-1:0];

  function automatic packets_t count_of(id_t id);
    return submits && id == free_id ? submitted.packets : messages_q[id].packets;
  endfunction

  // ---- State, one step after another. Each step makes a new state of one message, from what the
  // steps before have made of it.
  state_t taken_on, begun, delivered, raised, credited, late, repeated;

  function automatic state_t after_submit(id_t id);
    if (submits && id == free_id) return begun;
    if (take_i && id == chosen_id) return taken_on;
    return states_q[id];
  endfunction

  function automatic state_t after_delivered(id_t id);
    return delivers && id == delivered_id ? delivered : after_submit(id);
  endfunction

  function automatic state_t after_credit(id_t id);
    return credits && id == credit_id ? credited : after_delivered(id);
  endfunction

  // Packets go into a descriptor, those that wait in one already excepted (rule 9). Without a place
  // for it they wait for credit.
  function automatic state_t waits(state_t state, bitmap_t pkts, logic has_room);
    bitmap_t fresh;
    fresh = pkts & ~state.waiting;
    waits = state;
    if (has_room) begin
      waits.to_btx  = state.to_btx & ~pkts;
      waits.waiting = state.waiting | fresh;
    end else begin
      waits.to_btx = (state.to_btx & ~pkts) | fresh;
    end
  endfunction

  always_comb begin
    taken_on         = states_q[chosen_id];
    taken_on.waiting = states_q[chosen_id].waiting & ~chosen_pkt;
    taken_on.sent    = states_q[chosen_id].sent | chosen_pkt;
    if (index_of(chosen_pkt) > states_q[chosen_id].max_tx) begin
      taken_on.max_tx = index_of(chosen_pkt);
    end
  end

  bitmap_t all_new;
  assign all_new     = below(submitted.packets);
  assign push_init   = submits && room[Init];
  assign pushed_init = '{id: free_id, pkts: all_new & below(Unasked), is_rtx: 1'b0};
  always_comb begin
    begun        = '0;
    begun.credit = Unasked;
    begun.to_btx = all_new & ~below(Unasked);
    begun        = waits(begun, pushed_init.pkts, room[Init]);
  end

  // A peer is not believed that packets have come which were not sent (rule 12).
  state_t  answered;
  bitmap_t arrived;
  assign answered = after_submit(delivered_id);
  assign arrived  = delivered_pkts_i & answered.sent;
  always_comb begin
    delivered           = answered;
    delivered.delivered = answered.delivered | arrived;
    delivered.to_btx    = answered.to_btx & ~arrived;
    delivered.progress  = answered.progress || (arrived & ~answered.delivered) != '0;
  end
  assign delivered_whole = delivers && delivered.delivered == below(count_of(delivered_id));

  packets_t credit_said;
  bitmap_t  credit_all, credit_send;
  assign credit_said = credit_new_credit_i > 16'(PacketsMax) ? packets_t'(PacketsMax)
                                                             : packets_t'(credit_new_credit_i);
  assign credit_all  = below(count_of(credit_id));
  always_comb begin
    raised = after_delivered(credit_id);
    if (credit_rtx_i) begin
      // Not what has arrived (homa-tr.md, E4), nor what is about to go.
      raised.to_btx |= packet(credit_rtx_pkt_offset_i) & credit_all & ~raised.delivered
                       & ~raised.waiting;
    end
    if (credit_update_i && credit_said > raised.credit) raised.credit = credit_said;
  end
  assign credit_send   = credit_update_i ? raised.to_btx & below(raised.credit) : '0;
  assign credited      = waits(raised, credit_send, room[Credit]);
  assign pushed_credit = '{id: credit_id, pkts: credit_send, is_rtx: credit_rtx_i};
  assign push_credit   = credits && room[Credit] && pushed_credit.pkts != '0;

  // Rule 15.
  logic    moved, stuck;
  bitmap_t repeats, timeout_send;
  always_comb begin
    late          = after_credit(timeout_id);
    moved         = late.max_tx > late.rtx_offset || late.progress;
    late.timeouts = moved ? '0 : late.timeouts + CountW'(1);
    repeats       = below(packets_t'(late.rtx_offset) + 7'd1) & ~late.delivered
                    & below(count_of(timeout_id));
    stuck         = repeats == '0 && late.max_tx <= late.rtx_offset && late.waiting == '0;
    // A lost GRANT or PULL with everything acknowledged: no packet is left that could be answered.
    timeout_send    = Probe && stuck ? lowest(late.to_btx) : repeats;
    late.progress   = 1'b0;
    late.rtx_offset = late.max_tx;
  end
  assign repeated       = waits(late, timeout_send, room[Timeout]);
  assign gives_up       = times_out && MaxTimeouts != 0 && late.timeouts == CountW'(MaxTimeouts);
  assign pushed_timeout = '{id: timeout_id, pkts: timeout_send & ~late.waiting, is_rtx: 1'b1};
  assign push_timeout   = times_out && !gives_up && room[Timeout] && pushed_timeout.pkts != '0;

  logic [Ids-1:0] over;
  always_comb begin
    over = '0;
    if (cancels) over[cancel_id_i] = 1'b1;
    if (delivered_whole) over[delivered_id] = 1'b1;
    if (gives_up) over[timeout_id] = 1'b1;
    live_d = live_q;
    if (submits) live_d[free_id] = 1'b1;
    live_d &= ~over;
  end

  always_comb begin
    for (int unsigned q = 0; q < Queues; q++) begin
      for (int unsigned i = 0; i < Ids; i++) begin
        stale_d[q][i] = stale_q[q][i] - stale_t'(pop[q] && !alive[q] && front[q].id == id_t'(i));
        fresh_d[q][i] = fresh_q[q][i] - packets_t'(pop[q] && alive[q] && front[q].id == id_t'(i))
                        + packets_t'(push[q] && pushed[q].id == id_t'(i));
        if (over[i]) begin
          stale_d[q][i] = stale_d[q][i] + stale_t'(fresh_d[q][i]);
          fresh_d[q][i] = '0;
        end
      end
    end
  end

  timers #(.Ids(Ids), .TimeoutCycles(TimeoutCycles)) u_timers (
    .clk_i, .rst_ni, .now_i,
    .restart_valid_i(1'b0), .restart_id_i('0),
    .start_valid_i(submits), .start_id_i(free_id),
    .cancel_valid_i({cancels, delivered_whole}), .cancel0_id_i(delivered_id),
    .cancel1_id_i(cancel_id_i),
    .fire_valid_o(times_out), .fire_id_o(timeout_id), .again_i(times_out && !gives_up)
  );

  buffers #(.Classes(Classes), .ClassBytes(ClassBytes), .ClassBuffers(ClassBuffers)) u_buffers (
    .clk_i, .rst_ni,
    .take_len_i(submit_msg_len_i), .take_ready_o(buffer_ready), .take_index_o(buffer_free),
    .take_ptr_o(submitted.buf_ptr), .take_class_o(submitted.size_class), .take_i(submits),
    .give_i({cancels, gives_up, delivered_whole}),
    .give0_index_i(messages_q[delivered_id].buffer),
    .give1_index_i(messages_q[timeout_id].buffer),
    .give2_index_i(submits && cancel_id_i == free_id ? buffer_free
                                                     : messages_q[cancel_id_i].buffer)
  );

  assign repeats_valid_o = push_timeout;
  assign repeats_id_o    = push_timeout ? timeout_id : '0;
  assign done_valid_o    = delivered_whole;
  assign done_id_o       = delivered_whole ? delivered_id : '0;
  assign gave_up_valid_o = gives_up;
  assign gave_up_id_o    = gives_up ? timeout_id : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      live_q <= '0;
      for (int unsigned q = 0; q < Queues; q++) begin
        begun_q[q] <= '0;
        for (int unsigned i = 0; i < Ids; i++) begin
          stale_q[q][i] <= '0;
          fresh_q[q][i] <= '0;
        end
      end
    end else begin
      live_q  <= live_d;
      stale_q <= stale_d;
      fresh_q <= fresh_d;
      for (int unsigned q = 0; q < Queues; q++) begin
        if (pop[q]) begin
          begun_q[q] <= '0;
        end else if (taken[q]) begin
          begun_q[q] <= begun_q[q] | chosen_pkt;
        end
      end
      take_what_is_there: assert (!take_i || has_data_o);
      a_message_has_bytes: assert (!submit_valid_i || submit_msg_len_i != '0);
      waits_once: assert (!take_i || (states_q[chosen_id].waiting & chosen_pkt) != '0);
      waits_for_one_thing: assert (!credits || (credit_send & raised.waiting) == '0);
      fires_alive: assert (!times_out || live_q[timeout_id]);
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Ids; i++) begin
      states_q[i] <= times_out && timeout_id == id_t'(i) ? repeated : after_credit(id_t'(i));
    end
    if (submits) messages_q[free_id] <= submitted;
  end

endmodule
