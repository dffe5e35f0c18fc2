// Packetization's control: messages that are being sent, which of their packets may go, must go
// again, or have arrived (docs/nic.md, rules 5 to 15; C3, C4, C8).
//
// Which packet the arbiter takes is known late. What depends on it and has far to go (whether a
// descriptor leaves, a message is whole, has moved) is found for the first packet of each queue
// at once, and the queue is chosen at the end.
//
// In a cycle, one after another: the arbiter takes a packet, and stale descriptors leave; a message
// is submitted; one is cancelled; packets are delivered; credit comes; a timer fires. What the
// arbiter is offered is what the cycles before have left.
//
// What a packet says comes a cycle before the one in which it counts, so that its message is found
// meanwhile. All messages are changed side by side, each from its own state; what a message is
// that nobody sends does not matter, so that most of it need not wait for who lives.
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
  // If it is ready, whether a message is submitted or not: the buffer of the next one.
  output logic [15:0]     submit_buf_ptr_o,
  input  logic            cancel_valid_i,
  input  logic [IdW-1:0]  cancel_id_i,
  // Whether the message of a priority lives (rule 14), a cycle after it is asked; its id is in the
  // low bits of its number.
  input  logic [15:0]     prio_tx_msg_id_i,
  input  logic [15:0]     prio_src_context_i,
  output logic            prio_live_o,
  // What a packet says of a message, a cycle before the one in which it counts.
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

  if (TimeoutCycles < 2) begin : gen_refused
    $error("TimeoutCycles has to be at least 2");
  end

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
  // Bit i: message i.
  typedef logic [Ids-1:0] ids_t;

  function automatic ids_t only(id_t id);
    return ids_t'(1) << id;
  endfunction

  // The first that nobody has. Spans of one, two, four ... ids are looked through at once.
  function automatic ids_t first_free(ids_t live);
    ids_t behind;
    behind = ~live << 1;
    for (int unsigned span = 1; span < Ids; span *= 2) behind |= behind << span;
    return ~live & ~behind;
  endfunction

  // A message, written at its submission. What packets name it by beside its id.
  typedef struct packed {
    logic [15-IdW:0] generation;
    logic [15:0]     src_context;
  } name_t;

  // What its packets say.
  typedef struct packed {
    logic [7:0]  protocol;
    logic [31:0] dst_ip;
    logic [15:0] dst_context;
    logic [15:0] msg_len;
    logic [15:0] buf_ptr;
    logic [7:0]  size_class;
  } message_t;

  // What changes of it. A packet waits for credit (`to_btx`), or in a descriptor (`waiting`), or
  // was sent. Credit beyond all packets of a message means no more than that of all.
  typedef struct packed {
    bitmap_t           undelivered;
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

  message_t         messages_q [Ids];
  name_t [Ids-1:0]  names_q;
  logic [Ids-1:0][BufW-1:0] buffers_q;
  ids_t             live_q, live_d;
  state_t [Ids-1:0] states_q, states_d;

  // ---- Descriptors. A queue's stale ones, those of messages that are over, stand before those of
  // the message that has the id now. So it is enough to count all of an id, and its stale ones.
  localparam int unsigned CountsW = $clog2(Places + 1);
  typedef logic [CountsW-1:0] count_t;
  count_t [Ids-1:0] counts_q [Queues], counts_d [Queues], stale_q [Queues], stale_d [Queues];
  ids_t             has_stale_q [Queues], has_stale_d [Queues];

  descriptor_t       front [Queues];
  logic [Queues-1:0] any, alive, taken, pop, push, room;
  logic              push_init, push_credit, push_timeout;
  descriptor_t       pushed [Queues];
  descriptor_t       pushed_init, pushed_credit, pushed_timeout;
  // What has been sent of the front, what is left of it, the first of that, and whether there is
  // no other.
  bitmap_t           begun_q [Queues], left [Queues], first [Queues];
  logic [Queues-1:0] last;

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
    assign alive[q] = any[q] && !has_stale_q[q][front[q].id];
    assign left[q]  = front[q].pkts & ~begun_q[q];
    assign first[q] = lowest(left[q]);
    assign last[q]  = !has_more(left[q]);
  end

  // The first queue whose front is alive, and the packet there.
  id_t     chosen_id;
  bitmap_t chosen_pkt;
  logic    chosen_rtx;
  always_comb begin
    chosen_id  = '0;
    chosen_rtx = 1'b0;
    chosen_pkt = '0;
    taken      = '0;
    for (int unsigned q = Queues; q > 0; q--) begin
      if (alive[q-1]) begin
        chosen_id  = front[q-1].id;
        chosen_rtx = front[q-1].is_rtx;
        chosen_pkt = first[q-1];
        taken      = Queues'(take_i) << (q - 1);
      end
    end
  end
  assign has_data_o = alive != '0;
  // A front that is stale leaves, too.
  assign pop = (taken & last) | (any & ~alive);

  always_comb begin
    packet_o = '0;
    if (has_data_o) begin
      packet_o.protocol    = messages_q[chosen_id].protocol;
      packet_o.dst_ip      = messages_q[chosen_id].dst_ip;
      packet_o.dst_context = messages_q[chosen_id].dst_context;
      packet_o.msg_len     = messages_q[chosen_id].msg_len;
      packet_o.pkt_offset  = 8'(index_of(chosen_pkt));
      packet_o.src_context = names_q[chosen_id].src_context;
      packet_o.tx_msg_id   = {names_q[chosen_id].generation, chosen_id};
      packet_o.buf_ptr     = messages_q[chosen_id].buf_ptr;
      packet_o.size_class  = messages_q[chosen_id].size_class;
      packet_o.flags       = DataFlag;
      packet_o.is_new_msg  = states_q[chosen_id].sent == '0;
      packet_o.is_rtx      = chosen_rtx;
    end
  end

  // ---- Submission.
  logic     buffer_ready, submits;
  ids_t     free;
  id_t      free_id;
  message_t submitted;
  name_t    submitted_name;
  assign free = first_free(live_q);
  always_comb begin
    free_id = '0;
    for (int unsigned i = 0; i < Ids; i++) free_id |= id_t'(i) & {IdW{free[i]}};
  end
  assign submit_ready_o = live_q != '1 && buffer_ready;
  assign submits        = submit_valid_i && submit_ready_o;
  assign submit_id_o    = submits ? free_id : '0;
  assign submit_buf_ptr_o = submit_ready_o ? submitted.buf_ptr : '0;

  always_comb begin
    submitted.protocol         = submit_protocol_i;
    submitted.dst_ip           = submit_dst_ip_i;
    submitted.dst_context      = submit_dst_context_i;
    submitted.msg_len          = submit_msg_len_i;
    submitted_name.generation  = submit_generation_i;
    submitted_name.src_context = submit_src_context_i;
  end

  // ---- Which message a packet means (rule 14). Found in the cycle before, among messages that
  // have been submitted by then; what is submitted now is compared now.
  // A free id may have any name, so nobody waits for whether it is taken.
  function automatic logic has_name(id_t id, name_t name);
    return free[id] ? name == submitted_name : name == names_q[id];
  endfunction

  id_t   prio_id, prio_id_q, delivered_id, delivered_id_q, credit_id, credit_id_q;
  name_t prio_name, prio_name_q, delivered_name, credit_name, credit_name_q;
  logic  credit_valid_q;
  // There is a message that has the name, if it lives.
  logic  prio_same_q, delivered_same_q, credit_same_q;
  assign {prio_name.generation, prio_id}           = prio_tx_msg_id_i;
  assign {delivered_name.generation, delivered_id} = delivered_tx_msg_id_i;
  assign {credit_name.generation, credit_id}       = credit_tx_msg_id_i;
  assign prio_name.src_context      = prio_src_context_i;
  assign delivered_name.src_context = delivered_src_context_i;
  assign credit_name.src_context    = credit_src_context_i;

  // Of a message that has been there, and of the one that is submitted in this cycle.
  function automatic logic lives(id_t id);
    return live_q[id] && !(cancel_valid_i && id == cancel_id_i);
  endfunction

  function automatic logic would_come(id_t id, name_t name);
    return free[id] && name == submitted_name && !(cancel_valid_i && id == cancel_id_i);
  endfunction

  assign prio_live_o = (prio_same_q && lives(prio_id_q))
                       || (submits && would_come(prio_id_q, prio_name_q));

  bitmap_t     delivered_pkts_q;
  logic        credit_rtx_q, credit_update_q;
  bitmap_t     credit_pkt_q, credit_all_q;
  packets_t    credit_new_q, credit_said;
  assign credit_said = credit_new_credit_i > 16'(PacketsMax) ? packets_t'(PacketsMax)
                                                             : packets_t'(credit_new_credit_i);

  // ---- State, one step after another: taken, delivered, credit. A step of a message that nobody
  // sends changes nothing that anybody reads.
  typedef struct packed {
    logic taken;
    logic delivered;
    logic rtx;
    logic update;
  } steps_t;

  typedef struct packed {
    state_t  state;
    // What its credit sends.
    bitmap_t sends;
  } stepped_t;

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

  // What is of one message in a cycle: the packet's index, if it is the highest so far, and what
  // credit allows.
  logic [5:0] chosen_index;
  logic       chosen_highest, credit_higher;
  bitmap_t    credit_allows;
  assign chosen_index   = index_of(chosen_pkt);
  assign chosen_highest = chosen_index > states_q[chosen_id].max_tx;
  assign credit_higher  = credit_new_q > states_q[credit_id_q].credit;
  assign credit_allows  = below(states_q[credit_id_q].credit) | credit_all_q;

  function automatic stepped_t stepped(state_t state, steps_t steps, bitmap_t allows,
                                       logic is_higher);
    bitmap_t gone, arrived, marked;
    gone          = chosen_pkt & {PacketsMax{steps.taken}};
    state.waiting = state.waiting & ~gone;
    state.sent    = state.sent | gone;
    if (steps.taken && chosen_highest) state.max_tx = chosen_index;
    // A peer is not believed that packets have come which were not sent (rule 12).
    arrived           = delivered_pkts_q & state.sent & {PacketsMax{steps.delivered}};
    state.progress    = state.progress || (arrived & state.undelivered) != '0;
    state.undelivered = state.undelivered & ~arrived;
    state.to_btx      = state.to_btx & ~arrived;
    // Not what has arrived (homa-tr.md, E4), nor what is about to go.
    marked        = credit_pkt_q & state.undelivered & ~state.waiting & {PacketsMax{steps.rtx}};
    state.to_btx  = state.to_btx | marked;
    stepped.sends = state.to_btx & allows & {PacketsMax{steps.update}};
    if (steps.update && is_higher) state.credit = credit_new_q;
    // Nothing waits for two things.
    stepped.state = state;
    if (room[Credit]) begin
      stepped.state.to_btx  = state.to_btx & ~stepped.sends;
      stepped.state.waiting = state.waiting | stepped.sends;
    end
  endfunction

  function automatic steps_t steps_of(id_t id);
    logic credits;
    credits            = credit_same_q && credit_id_q == id;
    steps_of.taken     = take_i && chosen_id == id;
    steps_of.delivered = delivered_same_q && delivered_id_q == id;
    steps_of.rtx       = credits && credit_rtx_q;
    steps_of.update    = credits && credit_update_q;
  endfunction

  // The one that is submitted. Nothing of it can have arrived.
  bitmap_t  all_new;
  state_t   begun;
  stepped_t begun_stepped;
  logic     may_credit_new, credits_new;
  assign all_new     = below(packets(submit_msg_len_i));
  assign push_init   = submits && room[Init];
  assign pushed_init = '{id: free_id, pkts: all_new & below(Unasked), is_rtx: 1'b0};
  assign may_credit_new = credit_valid_q && would_come(credit_id_q, credit_name_q);
  assign credits_new    = submits && may_credit_new;
  always_comb begin
    begun             = '0;
    begun.undelivered = all_new;
    begun.credit      = Unasked;
    begun.to_btx      = all_new & ~below(Unasked);
    begun             = waits(begun, pushed_init.pkts, room[Init]);
  end
  assign begun_stepped = stepped(begun, '{taken: 1'b0, delivered: 1'b0,
                                          rtx: may_credit_new && credit_rtx_q,
                                          update: may_credit_new && credit_update_q},
                                 below(Unasked) | credit_all_q, credit_new_q > Unasked);

  // All others, and of these the one whose timer is looked at.
  stepped_t [Ids-1:0] all_stepped;
  bitmap_t            credit_sends, known_sends;
  id_t                looked_id;
  stepped_t           looked;
  // Its state was chosen in the cycle before: no timer fires in that one, nor is it that of a
  // message which is submitted then.
  state_t             looked_q, looked_d;
  id_t                next_id;
  assign looked_id = now_i[IdW:1];
  assign next_id   = id_t'((now_i + 32'd1) >> 1);
  logic unused_sends;
  assign unused_sends = ^looked.sends;
  assign looked    = stepped(looked_q, steps_of(looked_id), credit_allows, credit_higher);
  always_comb begin
    known_sends = '0;
    looked_d    = '0;
    for (int unsigned i = 0; i < Ids; i++) begin
      all_stepped[i] = stepped(states_q[i], steps_of(id_t'(i)), credit_allows, credit_higher);
      known_sends |= all_stepped[i].sends;
      looked_d |= all_stepped[i].state & {$bits(state_t){next_id == id_t'(i)}};
    end
    // A message is known or new.
    credit_sends = may_credit_new ? begun_stepped.sends : known_sends;
  end

  // The packet that is taken is one that can have arrived.
  bitmap_t remaining;
  logic    whole;
  always_comb begin
    remaining = '0;
    for (int unsigned i = 0; i < Ids; i++) begin
      remaining |= states_q[i].undelivered & ~(delivered_pkts_q & states_q[i].sent)
                   & {PacketsMax{delivered_id_q == id_t'(i)}};
    end
    whole = remaining == '0;
    for (int unsigned q = 0; q < Queues; q++) begin
      if (taken[q] && front[q].id == delivered_id_q) begin
        whole |= (remaining & ~(first[q] & delivered_pkts_q)) == '0;
      end
    end
  end

  logic cancels, delivered_whole, credits_known;
  assign cancels = cancel_valid_i && (live_q[cancel_id_i] || (submits && free_id == cancel_id_i));
  assign delivered_whole = delivered_same_q && lives(delivered_id_q) && whole;
  // What is over with this very packet has nothing left that credit could send.
  assign credits_known = credit_same_q && lives(credit_id_q);
  assign pushed_credit = '{id: credit_id_q, pkts: credit_sends, is_rtx: credit_rtx_q};
  assign push_credit   = room[Credit] && ((credits_known && known_sends != '0)
                                          || (credits_new && begun_stepped.sends != '0));

  // ---- Rule 15, of the message whose timer is looked at.
  logic    due, fires, is_cancelled, times_out, is_last, gives_up, stuck;
  id_t     timeout_id;
  bitmap_t repeats, timeout_send, known;

  // Whether it has sent a packet beyond those that were sent when its timer was started, and
  // whether it has done that or one of its packets has arrived.
  logic    beyond, moved, arrives;
  bitmap_t news;
  assign known   = below(packets_t'(looked_q.rtx_offset) + 7'd1);
  assign arrives = delivered_same_q && delivered_id_q == looked_id;
  assign news    = delivered_pkts_q & looked_q.undelivered & {PacketsMax{arrives}};
  always_comb begin
    beyond = looked_q.max_tx > looked_q.rtx_offset;
    moved  = looked_q.progress || (news & looked_q.sent) != '0;
    for (int unsigned q = 0; q < Queues; q++) begin
      if (taken[q] && front[q].id == looked_id) begin
        beyond |= (first[q] & ~known) != '0;
        moved  |= (first[q] & news) != '0;
      end
    end
    moved |= beyond;
  end

  state_t  late, repeated;
  always_comb begin
    late          = looked.state;
    late.timeouts = moved ? '0 : late.timeouts + CountW'(1);
    repeats       = known & late.undelivered;
    stuck         = repeats == '0 && !beyond && late.waiting == '0;
    // A lost GRANT or PULL with everything acknowledged: no packet is left that could be answered.
    timeout_send    = Probe && stuck ? lowest(late.to_btx) : repeats;
    late.progress   = 1'b0;
    late.rtx_offset = late.max_tx;
  end
  assign repeated       = waits(late, timeout_send, room[Timeout]);
  // A message whose timer runs lives, so none that is submitted now can be meant.
  assign is_cancelled   = cancel_valid_i && cancel_id_i == looked_id;
  assign times_out      = due && !is_cancelled && !(delivered_whole && delivered_id_q == looked_id);
  assign is_last        = MaxTimeouts != 0 && !moved
                          && looked_q.timeouts == CountW'(MaxTimeouts - 1);
  assign gives_up       = times_out && is_last;
  assign pushed_timeout = '{id: looked_id, pkts: timeout_send & ~late.waiting, is_rtx: 1'b1};
  // Of a message of which all has arrived there is nothing to send.
  assign push_timeout   = due && !is_cancelled && !is_last && room[Timeout]
                          && pushed_timeout.pkts != '0;

  always_comb begin
    for (int unsigned i = 0; i < Ids; i++) begin
      if (free[i]) begin
        states_d[i] = begun_stepped.state;
      end else if (due && looked_id == id_t'(i)) begin
        states_d[i] = repeated;
      end else begin
        states_d[i] = all_stepped[i].state;
      end
    end
  end

  // Of a message that nobody sends all is over already, so a cancelling need not wait for whether
  // it lives, nor the last timeout for whether it is cancelled.
  ids_t over;
  always_comb begin
    over = '0;
    if (cancel_valid_i) over |= only(cancel_id_i);
    if (delivered_whole) over |= only(delivered_id_q);
    if (due && is_last) over |= only(looked_id);
    live_d = (live_q | (free & {Ids{submits}})) & ~over;
  end

  // Of a message that is over all descriptors are stale. Which have any is found beside the counts:
  // of those that leave there was one.
  always_comb begin
    for (int unsigned q = 0; q < Queues; q++) begin
      for (int unsigned i = 0; i < Ids; i++) begin
        logic   leaves, enters, drops;
        count_t fewer, stale;
        leaves = pop[q] && front[q].id == id_t'(i);
        drops  = leaves && !alive[q];
        enters = push[q] && pushed[q].id == id_t'(i);
        fewer  = counts_q[q][i] - count_t'(leaves);
        stale  = stale_q[q][i] - count_t'(drops);
        counts_d[q][i]    = enters ? fewer + count_t'(1) : fewer;
        stale_d[q][i]     = over[i] ? counts_d[q][i] : stale;
        has_stale_d[q][i] = over[i] ? enters || fewer != '0 : stale != '0;
      end
    end
  end

  timers #(.Ids(Ids), .TimeoutCycles(TimeoutCycles)) u_timers (
    .clk_i, .rst_ni, .now_i,
    .restart_valid_i(1'b0), .restart_id_i('0),
    .start_valid_i(submits), .start_id_i(free_id),
    .cancel_valid_i({cancels, delivered_whole}), .cancel0_id_i(delivered_id_q),
    .cancel1_id_i(cancel_id_i),
    .due_o(due), .fire_valid_o(fires), .fire_id_o(timeout_id), .again_i(times_out && !gives_up)
  );

  logic [15:0] unused_ptr;
  logic [BufW-1:0] buffer_free;
  buffers #(.Classes(Classes), .ClassBytes(ClassBytes), .ClassBuffers(ClassBuffers)) u_buffers (
    .clk_i, .rst_ni,
    .take_len_i(submit_msg_len_i), .take_ready_o(buffer_ready), .take_index_o(buffer_free),
    .take_ptr_o(submitted.buf_ptr), .take_class_o(submitted.size_class), .take_i(submits),
    .of_index_i('0), .of_ptr_o(unused_ptr),
    .give_i({cancels, gives_up, delivered_whole}),
    .give0_index_i(buffers_q[delivered_id_q]),
    .give1_index_i(buffers_q[looked_id]),
    .give2_index_i(submits && cancel_id_i == free_id ? buffer_free : buffers_q[cancel_id_i])
  );

  assign repeats_valid_o = push_timeout;
  assign repeats_id_o    = push_timeout ? looked_id : '0;
  assign done_valid_o    = delivered_whole;
  assign done_id_o       = delivered_whole ? delivered_id_q : '0;
  assign gave_up_valid_o = gives_up;
  assign gave_up_id_o    = gives_up ? looked_id : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      live_q           <= '0;
      prio_same_q      <= 1'b0;
      delivered_same_q <= 1'b0;
      credit_same_q    <= 1'b0;
      credit_valid_q   <= 1'b0;
      for (int unsigned q = 0; q < Queues; q++) begin
        begun_q[q]     <= '0;
        counts_q[q]    <= '0;
        stale_q[q]     <= '0;
        has_stale_q[q] <= '0;
      end
    end else begin
      live_q           <= live_d;
      stale_q          <= stale_d;
      has_stale_q      <= has_stale_d;
      counts_q         <= counts_d;
      prio_same_q      <= has_name(prio_id, prio_name);
      delivered_same_q <= delivered_valid_i && has_name(delivered_id, delivered_name);
      credit_same_q    <= credit_valid_i && has_name(credit_id, credit_name);
      credit_valid_q   <= credit_valid_i;
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
      looked_is_now: assert (!due || looked_q == states_q[looked_id]);
      waits_for_one_thing: assert (!live_q[looked_id]
                                   || (looked.state.to_btx & looked.state.waiting) == '0);
      fires_alive: assert (!fires || live_q[timeout_id]);
      fires_as_found: assert (fires == times_out);
    end
  end

  always_ff @(posedge clk_i) begin
    states_q         <= states_d;
    looked_q         <= looked_d;
    prio_id_q        <= prio_id;
    prio_name_q      <= prio_name;
    delivered_id_q   <= delivered_id;
    delivered_pkts_q <= delivered_pkts_i;
    credit_id_q      <= credit_id;
    credit_name_q    <= credit_name;
    credit_rtx_q     <= credit_rtx_i;
    credit_update_q  <= credit_update_i;
    credit_pkt_q     <= packet(credit_rtx_pkt_offset_i);
    credit_all_q     <= below(credit_said);
    credit_new_q     <= credit_said;
    if (submits) messages_q[free_id] <= submitted;
    for (int unsigned i = 0; i < Ids; i++) begin
      if (submits && free[i]) begin
        names_q[i]   <= submitted_name;
        buffers_q[i] <= buffer_free;
      end
    end
  end

endmodule
