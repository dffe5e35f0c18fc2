// Messages of the application go into the buffers that packetization gives them
// (specs/nanotransport.md#6.2).
//
// A submission is taken when packetization has room for it and the message before is written; from
// the next cycle on a beat of the message may come each cycle. Its packets may be sent from the
// submission on: their reader keeps behind what is pending.
module tx_writer (
  input  logic              clk_i,
  input  logic              rst_ni,
  // From the application: a message, and its bytes in as many beats as they need. One of no bytes
  // is a beat of none, and travels as one byte, zero (docs/nic.md, rule 5).
  input  logic              app_valid_i,
  output logic              app_ready_o,
  input  logic [31:0]       app_dst_ip_i,
  input  logic [15:0]       app_dst_context_i,
  input  logic [15:0]       app_msg_len_i,
  input  logic              words_valid_i,
  output logic              words_ready_o,
  input  stream_pkg::beat_t words_beat_i,
  // To packetization: `submit_buf_ptr_i` is the buffer that the message would get in this cycle.
  output logic              submit_valid_o,
  input  logic              submit_ready_i,
  output logic [31:0]       submit_dst_ip_o,
  output logic [15:0]       submit_dst_context_o,
  output logic [15:0]       submit_msg_len_o,
  input  logic [15:0]       submit_buf_ptr_i,
  // Of the message RAM.
  output logic              write_valid_o,
  output logic [15:0]       write_addr_o,
  output logic [63:0]       write_enables_o,
  output logic [511:0]      write_data_o,
  // Words still to be written, from `write_addr_o` on.
  output logic [10:0]       pending_o,
  // The application has given more bytes or fewer than it had said. What is missing is zero.
  output logic              wrong_length_o
);

  logic        begin_ready, wrong_length, empty_q;
  logic [15:0] msg_len;
  assign msg_len = app_msg_len_i == '0 ? 16'd1 : app_msg_len_i;

  assign submit_valid_o       = app_valid_i && begin_ready;
  assign submit_dst_ip_o      = app_dst_ip_i;
  assign submit_dst_context_o = app_dst_context_i;
  assign submit_msg_len_o     = msg_len;
  assign app_ready_o          = submit_ready_i && begin_ready;

  burst_writer u_writer (
    .clk_i, .rst_ni,
    .begin_valid_i(app_valid_i && submit_ready_i), .begin_ready_o(begin_ready),
    .begin_addr_i(submit_buf_ptr_i),
    .begin_bytes_i({1'b0, msg_len}),
    .in_valid_i(words_valid_i), .in_ready_o(words_ready_o), .in_beat_i(words_beat_i),
    .write_valid_o, .write_addr_o, .write_enables_o, .write_data_o,
    .pending_o, .wrong_length_o(wrong_length)
  );

  // A byte is in place of none: that beat is right if it is empty.
  assign wrong_length_o = wrong_length && !(empty_q && words_beat_i.bytes == '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) empty_q <= 1'b0;
    else if (app_valid_i && app_ready_o) empty_q <= app_msg_len_i == '0;
  end

endmodule
