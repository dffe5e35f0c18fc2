// Messages that are whole, out of the message RAM, one after another as they became whole
// (specs/nanotransport.md#5.3). Each beat comes with the application's header.
//
// A message may begin while its last packet is still being written: words that are pending are
// waited for.
module rx_reader #(
  // Messages that may wait, a power of two.
  parameter int unsigned Messages = 16
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              whole_valid_i,
  output logic              whole_ready_o,
  input  logic [15:0]       whole_buf_ptr_i,
  input  logic [15:0]       whole_msg_len_i,
  input  logic [31:0]       whole_src_ip_i,
  input  logic [15:0]       whole_src_context_i,
  input  logic [10:0]       pending_i,
  input  logic [15:0]       pending_addr_i,
  // Of the message RAM.
  output logic              read_valid_o,
  output logic [15:0]       read_addr_o,
  input  logic [511:0]      read_data_i,
  // To the application.
  output logic              app_valid_o,
  input  logic              app_ready_i,
  output stream_pkg::beat_t app_beat_o,
  output logic [31:0]       app_src_ip_o,
  output logic [15:0]       app_src_context_o,
  output logic [15:0]       app_msg_len_o,
  // A buffer whose message has been read.
  output logic              done_valid_o,
  output logic [15:0]       done_buf_ptr_o
);

  typedef struct packed {
    logic [15:0] buf_ptr;
    logic [15:0] msg_len;
    logic [31:0] src_ip;
    logic [15:0] src_context;
  } message_t;

  logic     next_valid, next_ready;
  message_t whole, next, app, done;

  assign whole.buf_ptr     = whole_buf_ptr_i;
  assign whole.msg_len     = whole_msg_len_i;
  assign whole.src_ip      = whole_src_ip_i;
  assign whole.src_context = whole_src_context_i;

  stream_fifo #(.Width($bits(message_t)), .Depth(Messages)) u_whole (
    .clk_i, .rst_ni,
    .in_valid_i(whole_valid_i), .in_ready_o(whole_ready_o), .in_data_i(whole),
    .out_valid_o(next_valid), .out_ready_i(next_ready), .out_data_o(next)
  );

  burst_reader #(.UserWidth($bits(message_t))) u_reader (
    .clk_i, .rst_ni,
    .begin_valid_i(next_valid), .begin_ready_o(next_ready),
    .begin_addr_i(next.buf_ptr), .begin_bytes_i({1'b0, next.msg_len}), .begin_user_i(next),
    .pending_i, .pending_addr_i,
    .read_valid_o, .read_addr_o, .read_data_i,
    .out_valid_o(app_valid_o), .out_ready_i(app_ready_i), .out_beat_o(app_beat_o), .out_user_o(app),
    .done_valid_o, .done_user_o(done)
  );

  assign app_src_ip_o      = app.src_ip;
  assign app_src_context_o = app.src_context;
  assign app_msg_len_o     = app.msg_len;
  assign done_buf_ptr_o    = done.buf_ptr;

  logic unused;
  assign unused = ^{app.buf_ptr, done.msg_len, done.src_ip, done.src_context};

endmodule
