// Reassembly's control: which packets of which messages have arrived (docs/nic.md, rules 16 to 19;
// C2, C4, C6, C7, C9).
//
// A request is answered two cycles later. In between, all that it does is done in one step: the
// block works one cycle behind the law, with the timers' looks and everything else in the law's
// order (granted, lookup, look), so no result depends on that. An id that is free since a cycle is
// said to be so in the next one.
module reassembly import nano_pkg::*; #(
  // Messages, a power of two from 2 to 128.
  parameter int unsigned Ids = 16,
  // A message that has been silent for so long is ended.
  parameter int unsigned TimeoutCycles = 44800,
  // Messages that are remembered, delivered ones and as many broken off ones: a power of two, or 0.
  parameter int unsigned Remember = 1024,
  parameter int unsigned Classes = 1,
  parameter logic [Classes*32-1:0] ClassBytes = {Classes{32'd38912}},
  parameter logic [Classes*32-1:0] ClassBuffers = {Classes{32'd16}},
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  // The number of this cycle, modulo 2^32.
  input  logic [31:0]    now_i,
  // get_rx_msg_info
  input  logic           valid_i,
  input  logic           mark_received_i,
  input  logic [31:0]    src_ip_i,
  input  logic [15:0]    src_context_i,
  input  logic [15:0]    tx_msg_id_i,
  input  logic [15:0]    msg_len_i,
  input  logic [7:0]     pkt_offset_i,
  // Its answer. Zero in all other cycles.
  output logic           fail_o,
  output logic [15:0]    rx_msg_id_o,
  output logic           is_new_msg_o,
  output logic           is_new_pkt_o,
  output logic           is_last_pkt_o,
  output logic [8:0]     ack_no_o,
  output logic           is_done_o,
  // Where the message's payload belongs, in words of 64 bytes.
  output logic [15:0]    buf_ptr_o,
  // A GRANT leaves for this message: its timer starts again, if it runs.
  input  logic           granted_valid_i,
  input  logic [IdW-1:0] granted_id_i,
  // Ids that have become free: the message is whole, or has fallen silent.
  output logic           completed_valid_o,
  output logic [IdW-1:0] completed_id_o,
  output logic           expired_valid_o,
  output logic [IdW-1:0] expired_id_o
);

  localparam int unsigned Total = total();
  localparam int unsigned BufW = Total > 1 ? $clog2(Total) : 1;

  function automatic int unsigned total();
    total = 0;
    for (int unsigned c = 0; c < Classes; c++) total += ClassBuffers[32*c +: 32];
  endfunction

  // The request, what follows from it alone, and which messages have its key. A key never changes
  // while its message lives, and none begins in the cycle before the step.
  logic           valid_q, mark_q, possible_q, granted_valid_q;
  logic [63:0]    key, key_q;
  logic [15:0]    len_q;
  logic [7:0]     offset_q;
  logic [31:0]    now_q;
  logic [IdW-1:0] granted_id_q;
  packets_t       said_q;
  logic [Ids-1:0] same_q;

  // Messages. Flip-flops: all keys are compared at once, and any message is changed in a cycle.
  logic [Ids-1:0]           live_q;
  logic [Ids-1:0][63:0]     keys_q;
  // The packets that have not arrived.
  bitmap_t [Ids-1:0]        missing_q;
  // Whether any has.
  logic [Ids-1:0]           touched_q;
  packets_t [Ids-1:0]       packets_q;
  logic [Ids-1:0][BufW-1:0] buffers_q;

  assign key = {src_ip_i, src_context_i, tx_msg_id_i};

  // Whose it is. Keys of live messages differ.
  logic [Ids-1:0] hits, free, chosen;
  logic           known, room;
  assign hits   = live_q & same_q;
  assign known  = hits != '0;
  assign free   = ~live_q & (live_q + Ids'(1));
  assign room   = free != '0;
  assign chosen = known ? hits : free;

  // What that message has: zero if there is none.
  bitmap_t         had_missing;
  packets_t        had_packets;
  logic [BufW-1:0] had_buffer;
  logic [IdW-1:0]  id;
  always_comb begin
    had_missing = '0;
    had_packets = '0;
    had_buffer  = '0;
    id          = '0;
    for (int unsigned i = 0; i < Ids; i++) begin
      had_missing |= missing_q[i] & {PacketsMax{hits[i]}};
      had_packets |= packets_q[i] & {$bits(packets_t){hits[i]}};
      had_buffer  |= buffers_q[i] & {BufW{hits[i]}};
      id          |= IdW'(i) & {IdW{chosen[i]}};
    end
  end

  logic            was_delivered, was_broken_off, done, begins, ok, complete;
  logic            buffer_ready;
  logic [BufW-1:0] buffer_free, buffer;
  packets_t        count;
  bitmap_t         missed, arrives, left;
  logic            is_new, touched;

  assign done     = possible_q && !known && was_delivered;
  assign begins   = possible_q && !known && !was_delivered && !was_broken_off && room
                    && buffer_ready;
  assign ok       = begins || (possible_q && known);

  // A message has as many packets as its first one says (rule 17).
  assign count    = known ? had_packets : said_q;
  assign missed   = known ? had_missing : below(said_q);
  assign arrives  = mark_q ? packet(offset_q) : '0;
  assign left     = missed & ~arrives;
  assign complete = ok && left == '0;
  assign is_new   = (missed & arrives) != '0;
  assign touched  = is_new || (hits & touched_q) != '0;
  assign buffer   = known ? had_buffer : buffer_free;

  // The first packet that is missing.
  packets_t ack_no;
  assign ack_no = left == '0 ? count : packets_t'(first_of(left));

  // The message whose timer is looked at in this step.
  logic           expires;
  logic [IdW-1:0] expired_id, looked_id;
  assign looked_id = now_q[IdW:1];
  logic unused_due;
  timers #(.Ids(Ids), .TimeoutCycles(TimeoutCycles)) u_timers (
    .clk_i, .rst_ni, .now_i(now_q),
    .restart_valid_i(granted_valid_q), .restart_id_i(granted_id_q),
    .start_valid_i(ok), .start_id_i(id),
    .cancel_valid_i({1'b0, complete}), .cancel0_id_i(id), .cancel1_id_i('0),
    .due_o(unused_due), .fire_valid_o(expires), .fire_id_o(expired_id), .again_i(1'b0)
  );

  // Where a message's payload belongs follows from its buffer.
  logic [15:0] buffer_ptr, unused_ptr;
  logic [7:0]  unused_class;
  buffers #(.Classes(Classes), .ClassBytes(ClassBytes), .ClassBuffers(ClassBuffers)) u_buffers (
    .clk_i, .rst_ni,
    .take_len_i(len_q), .take_ready_o(buffer_ready), .take_index_o(buffer_free),
    .take_ptr_o(unused_ptr), .take_class_o(unused_class), .take_i(begins),
    .of_index_i(buffer), .of_ptr_o(buffer_ptr),
    .give_i({1'b0, expires, complete}),
    .give0_index_i(buffer), .give1_index_i(buffers_q[looked_id]), .give2_index_i('0)
  );

  if (Remember == 0) begin : gen_nothing
    assign was_delivered  = 1'b0;
    assign was_broken_off = 1'b0;
  end else begin : gen_remembered
    remembered #(.Places(Remember)) u_delivered (
      .clk_i, .rst_ni, .find_key_i(key), .found_o(was_delivered),
      .insert_i(complete), .insert_key_i(key_q)
    );
    // Of one of which nothing had arrived, no sender has heard anything: it may begin anew.
    remembered #(.Places(Remember)) u_broken_off (
      .clk_i, .rst_ni, .find_key_i(key), .found_o(was_broken_off),
      .insert_i(expires && touched_q[looked_id]), .insert_key_i(keys_q[looked_id])
    );
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q         <= 1'b0;
      granted_valid_q <= 1'b0;
      now_q           <= '0;
      live_q          <= '0;
    end else begin
      valid_q         <= valid_i;
      granted_valid_q <= granted_valid_i;
      now_q           <= now_i;
      for (int unsigned i = 0; i < Ids; i++) begin
        if (ok && chosen[i]) live_q[i] <= !complete;
        if (expires && looked_id == IdW'(i)) live_q[i] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    mark_q       <= mark_received_i;
    key_q        <= key;
    len_q        <= msg_len_i;
    offset_q     <= pkt_offset_i;
    granted_id_q <= granted_id_i;
    said_q       <= packets(msg_len_i);
    possible_q   <= valid_i && msg_len_i != '0 && pkt_offset_i < 8'(packets(msg_len_i));
    for (int unsigned i = 0; i < Ids; i++) begin
      same_q[i] <= keys_q[i] == key;
      if (ok && chosen[i]) begin
        missing_q[i] <= left;
        touched_q[i] <= touched;
      end
      if (begins && free[i]) begin
        keys_q[i]    <= key_q;
        packets_q[i] <= said_q;
        buffers_q[i] <= buffer_free;
      end
    end
  end

  assign completed_valid_o = complete;
  assign completed_id_o    = complete ? id : '0;
  assign expired_valid_o   = expires;
  assign expired_id_o      = expired_id;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fail_o        <= 1'b0;
      rx_msg_id_o   <= '0;
      is_new_msg_o  <= 1'b0;
      is_new_pkt_o  <= 1'b0;
      is_last_pkt_o <= 1'b0;
      ack_no_o      <= '0;
      is_done_o     <= 1'b0;
      buf_ptr_o     <= '0;
    end else begin
      fail_o        <= valid_q && !ok && !done;
      rx_msg_id_o   <= ok ? 16'(id) : '0;
      is_new_msg_o  <= begins;
      is_new_pkt_o  <= ok && (!mark_q || is_new);
      is_last_pkt_o <= complete || done;
      ack_no_o      <= done ? 9'(said_q) : (ok ? 9'(ack_no) : '0);
      is_done_o     <= done;
      buf_ptr_o     <= ok ? buffer_ptr : '0;
      two_cycles_apart: assert (!(valid_i && valid_q));
      free_what_lives: assert (!expires || live_q[expired_id]);
      not_both: assert (!(ok && expires && id == expired_id));
    end
  end

endmodule
