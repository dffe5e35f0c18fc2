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

  // The request.
  logic        valid_q, mark_q, granted_valid_q;
  logic [63:0] key_q;
  logic [15:0] len_q;
  logic [7:0]  offset_q;
  logic [31:0] now_q;
  logic [IdW-1:0] granted_id_q;

  // Messages.
  logic [Ids-1:0] live_q;
  // All of them are compared at once.
  logic [Ids-1:0][63:0] keys_q;
  bitmap_t        received_q [Ids];
  packets_t       packets_q [Ids];
  logic [BufW-1:0] buffers_q [Ids];
  logic [15:0]    ptrs_q [Ids];

  // Whose it is. Keys of live messages differ.
  logic           known, room;
  logic [IdW-1:0] known_id, free_id;
  always_comb begin
    known    = 1'b0;
    known_id = '0;
    room     = 1'b0;
    free_id  = '0;
    for (int unsigned i = Ids; i > 0; i--) begin
      if (live_q[i-1] && keys_q[i-1] == key_q) begin
        known    = 1'b1;
        known_id = IdW'(i - 1);
      end
      if (!live_q[i-1]) begin
        room    = 1'b1;
        free_id = IdW'(i - 1);
      end
    end
  end

  logic            possible, was_delivered, was_broken_off, done, begins, ok, complete;
  logic            buffer_ready;
  logic [BufW-1:0] buffer_free, buffer;
  logic [15:0]     buffer_ptr;
  logic [IdW-1:0]  id;
  packets_t        said, count;
  bitmap_t         had, mask, has;

  assign said     = packets(len_q);
  assign possible = valid_q && len_q != '0 && offset_q < 8'(said);
  assign done     = possible && !known && was_delivered;
  assign begins   = possible && !known && !was_delivered && !was_broken_off && room
                    && buffer_ready;
  assign ok       = begins || (possible && known);
  assign id       = known ? known_id : free_id;

  // A message has as many packets as its first one says (rule 17).
  assign count    = known ? packets_q[known_id] : said;
  assign had      = known ? received_q[known_id] : '0;
  assign mask     = mark_q ? packet(offset_q) & below(count) : '0;
  assign has      = had | mask;
  assign complete = ok && has == below(count);
  assign buffer   = known ? buffers_q[known_id] : buffer_free;

  // The first packet that is missing: how many ones are below the lowest zero.
  logic [8:0] ack_no;
  always_comb begin
    ack_no = 9'(PacketsMax);
    for (int unsigned i = PacketsMax; i > 0; i--) begin
      if (!has[i-1]) ack_no = 9'(i - 1);
    end
  end

  logic           expires;
  logic [IdW-1:0] expired_id;
  timers #(.Ids(Ids), .TimeoutCycles(TimeoutCycles)) u_timers (
    .clk_i, .rst_ni, .now_i(now_q),
    .restart_valid_i(granted_valid_q), .restart_id_i(granted_id_q),
    .start_valid_i(ok), .start_id_i(id),
    .cancel_valid_i({1'b0, complete}), .cancel0_id_i(id), .cancel1_id_i('0),
    .fire_valid_o(expires), .fire_id_o(expired_id), .again_i(1'b0)
  );

  logic [7:0] unused_class;
  buffers #(.Classes(Classes), .ClassBytes(ClassBytes), .ClassBuffers(ClassBuffers)) u_buffers (
    .clk_i, .rst_ni,
    .take_len_i(len_q), .take_ready_o(buffer_ready), .take_index_o(buffer_free),
    .take_ptr_o(buffer_ptr), .take_class_o(unused_class), .take_i(begins),
    .give_i({1'b0, expires, complete}),
    .give0_index_i(buffer), .give1_index_i(buffers_q[expired_id]), .give2_index_i('0)
  );

  if (Remember == 0) begin : gen_nothing
    assign was_delivered  = 1'b0;
    assign was_broken_off = 1'b0;
  end else begin : gen_remembered
    logic [63:0] find_key;
    assign find_key = {src_ip_i, src_context_i, tx_msg_id_i};
    remembered #(.Places(Remember)) u_delivered (
      .clk_i, .rst_ni, .find_key_i(find_key), .found_o(was_delivered),
      .insert_i(complete), .insert_key_i(key_q)
    );
    // Of one of which nothing had arrived, no sender has heard anything: it may begin anew.
    remembered #(.Places(Remember)) u_broken_off (
      .clk_i, .rst_ni, .find_key_i(find_key), .found_o(was_broken_off),
      .insert_i(expires && received_q[expired_id] != '0), .insert_key_i(keys_q[expired_id])
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
      if (ok) live_q[id] <= !complete;
      if (expires) live_q[expired_id] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    mark_q       <= mark_received_i;
    key_q        <= {src_ip_i, src_context_i, tx_msg_id_i};
    len_q        <= msg_len_i;
    offset_q     <= pkt_offset_i;
    granted_id_q <= granted_id_i;
    if (ok) received_q[id] <= has;
    if (begins) begin
      keys_q[id]    <= key_q;
      packets_q[id] <= said;
      buffers_q[id] <= buffer_free;
      ptrs_q[id]    <= buffer_ptr;
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
      is_new_pkt_o  <= ok && (!mark_q || (had & mask) != mask || begins);
      is_last_pkt_o <= complete || done;
      ack_no_o      <= done ? 9'(said) : (ok ? ack_no : '0);
      is_done_o     <= done;
      buf_ptr_o     <= !ok ? '0 : (known ? ptrs_q[known_id] : buffer_ptr);
      two_cycles_apart: assert (!(valid_i && valid_q));
      free_what_lives: assert (!expires || live_q[expired_id]);
      not_both: assert (!(ok && expires && id == expired_id));
    end
  end

endmodule
