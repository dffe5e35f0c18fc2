// The data path of a NIC, both ways: what reads and writes frames, payloads and messages. All that
// decides is outside: pipelines, reassembly, packetization, arbiter.
//
// In: frames, a window onto their headers for the ingress pipeline, their payloads into the buffers
// of messages, whole messages to the application. Out: messages of the application into buffers,
// the arbiter's packets out of them, behind the headers of the egress pipeline. Both ways take a
// beat of 64 bytes each cycle; a 200 Gb/s link at 3.2 GHz brings one in 8.2 cycles.
module data_path #(
  // Bytes of the longest header that is sent, and of the window.
  parameter int unsigned HeaderBytes = 64,
  parameter int unsigned WindowBytes = HeaderBytes,
  // Words of the message RAM of what is sent, and of that of what comes.
  parameter int unsigned Words = 9728,
  parameter int unsigned RxWords = Words,
  // Whole messages that may wait for the application, a power of two.
  parameter int unsigned Messages = 16,
  // Beats that may wait for the ingress pipeline, a power of two.
  parameter int unsigned Beats = 64,
  // Packets that may wait to be read, a power of two.
  parameter int unsigned Packets = 4
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  // header_align.
  input  logic                     rx_frame_valid_i,
  output logic                     rx_frame_ready_o,
  input  stream_pkg::beat_t        rx_frame_beat_i,
  output logic                     rx_window_valid_o,
  output logic [8*WindowBytes-1:0] rx_window_o,
  output logic [7:0]               rx_window_bytes_o,
  output logic                     rx_length_valid_o,
  output logic [15:0]              rx_length_o,
  input  logic                     rx_parsed_valid_i,
  input  logic [7:0]               rx_parsed_bytes_i,
  input  logic                     rx_parsed_drop_i,
  // rx_writer.
  input  logic                     rx_packet_valid_i,
  output logic                     rx_packet_ready_o,
  input  logic                     rx_packet_keep_i,
  input  logic                     rx_packet_whole_i,
  input  logic [15:0]              rx_packet_buf_ptr_i,
  input  logic [7:0]               rx_packet_offset_i,
  input  logic [15:0]              rx_packet_msg_len_i,
  input  logic [31:0]              rx_packet_src_ip_i,
  input  logic [15:0]              rx_packet_src_context_i,
  output logic                     rx_dropped_valid_o,
  output logic [15:0]              rx_dropped_buf_ptr_o,
  output logic                     rx_wrong_length_o,
  // rx_reader.
  output logic                     rx_app_valid_o,
  input  logic                     rx_app_ready_i,
  output stream_pkg::beat_t        rx_app_beat_o,
  output logic [31:0]              rx_app_src_ip_o,
  output logic [15:0]              rx_app_src_context_o,
  output logic [15:0]              rx_app_msg_len_o,
  output logic                     rx_done_valid_o,
  output logic [15:0]              rx_done_buf_ptr_o,
  // tx_writer.
  input  logic                     tx_app_valid_i,
  output logic                     tx_app_ready_o,
  input  logic [31:0]              tx_app_dst_ip_i,
  input  logic [15:0]              tx_app_dst_context_i,
  input  logic [15:0]              tx_app_msg_len_i,
  input  logic                     tx_words_valid_i,
  output logic                     tx_words_ready_o,
  input  stream_pkg::beat_t        tx_words_beat_i,
  output logic                     tx_submit_valid_o,
  input  logic                     tx_submit_ready_i,
  output logic [31:0]              tx_submit_dst_ip_o,
  output logic [15:0]              tx_submit_dst_context_o,
  output logic [15:0]              tx_submit_msg_len_o,
  input  logic [15:0]              tx_submit_buf_ptr_i,
  output logic                     tx_wrong_length_o,
  // tx_reader.
  input  logic                     tx_packet_valid_i,
  output logic                     tx_packet_ready_o,
  input  logic [15:0]              tx_packet_buf_ptr_i,
  input  logic [7:0]               tx_packet_offset_i,
  input  logic [15:0]              tx_packet_msg_len_i,
  // header_merge.
  input  logic                     tx_header_valid_i,
  output logic                     tx_header_ready_o,
  input  logic [8*HeaderBytes-1:0] tx_header_i,
  input  logic [7:0]               tx_header_bytes_i,
  input  logic                     tx_header_payload_i,
  output logic                     tx_frame_valid_o,
  input  logic                     tx_frame_ready_i,
  output stream_pkg::beat_t        tx_frame_beat_o
);

  import stream_pkg::beat_t;

  logic         rx_payload_valid, rx_payload_ready, rx_write, rx_read, whole_valid, whole_ready;
  beat_t        rx_payload;
  logic [15:0]  rx_write_addr, rx_read_addr, whole_buf_ptr, whole_msg_len, whole_src_context;
  logic [31:0]  whole_src_ip;
  logic [63:0]  rx_write_enables;
  logic [511:0] rx_write_data, rx_read_data;
  logic [10:0]  rx_pending;

  header_align #(.HeaderBytes(WindowBytes), .Beats(Beats)) u_header_align (
    .clk_i, .rst_ni,
    .frame_valid_i(rx_frame_valid_i), .frame_ready_o(rx_frame_ready_o),
    .frame_beat_i(rx_frame_beat_i),
    .window_valid_o(rx_window_valid_o), .window_o(rx_window_o),
    .window_bytes_o(rx_window_bytes_o),
    .length_valid_o(rx_length_valid_o), .length_o(rx_length_o),
    .parsed_valid_i(rx_parsed_valid_i), .parsed_bytes_i(rx_parsed_bytes_i),
    .parsed_drop_i(rx_parsed_drop_i),
    .payload_valid_o(rx_payload_valid), .payload_ready_i(rx_payload_ready),
    .payload_beat_o(rx_payload)
  );

  rx_writer u_rx_writer (
    .clk_i, .rst_ni,
    .packet_valid_i(rx_packet_valid_i), .packet_ready_o(rx_packet_ready_o),
    .packet_keep_i(rx_packet_keep_i), .packet_whole_i(rx_packet_whole_i),
    .packet_buf_ptr_i(rx_packet_buf_ptr_i), .packet_offset_i(rx_packet_offset_i),
    .packet_msg_len_i(rx_packet_msg_len_i), .packet_src_ip_i(rx_packet_src_ip_i),
    .packet_src_context_i(rx_packet_src_context_i),
    .payload_valid_i(rx_payload_valid), .payload_ready_o(rx_payload_ready),
    .payload_beat_i(rx_payload),
    .write_valid_o(rx_write), .write_addr_o(rx_write_addr), .write_enables_o(rx_write_enables),
    .write_data_o(rx_write_data), .pending_o(rx_pending),
    .whole_valid_o(whole_valid), .whole_ready_i(whole_ready),
    .whole_buf_ptr_o(whole_buf_ptr), .whole_msg_len_o(whole_msg_len),
    .whole_src_ip_o(whole_src_ip), .whole_src_context_o(whole_src_context),
    .dropped_valid_o(rx_dropped_valid_o), .dropped_buf_ptr_o(rx_dropped_buf_ptr_o),
    .wrong_length_o(rx_wrong_length_o)
  );

  message_ram #(.Words(RxWords)) u_rx_ram (
    .clk_i, .rst_ni,
    .write_valid_i(rx_write), .write_addr_i(rx_write_addr), .write_enables_i(rx_write_enables),
    .write_data_i(rx_write_data),
    .read_valid_i(rx_read), .read_addr_i(rx_read_addr), .read_data_o(rx_read_data)
  );

  rx_reader #(.Messages(Messages)) u_rx_reader (
    .clk_i, .rst_ni,
    .whole_valid_i(whole_valid), .whole_ready_o(whole_ready),
    .whole_buf_ptr_i(whole_buf_ptr), .whole_msg_len_i(whole_msg_len),
    .whole_src_ip_i(whole_src_ip), .whole_src_context_i(whole_src_context),
    .pending_i(rx_pending), .pending_addr_i(rx_write_addr),
    .read_valid_o(rx_read), .read_addr_o(rx_read_addr), .read_data_i(rx_read_data),
    .app_valid_o(rx_app_valid_o), .app_ready_i(rx_app_ready_i), .app_beat_o(rx_app_beat_o),
    .app_src_ip_o(rx_app_src_ip_o), .app_src_context_o(rx_app_src_context_o),
    .app_msg_len_o(rx_app_msg_len_o),
    .done_valid_o(rx_done_valid_o), .done_buf_ptr_o(rx_done_buf_ptr_o)
  );

  logic         tx_payload_valid, tx_payload_ready, tx_write, tx_read;
  beat_t        tx_payload;
  logic [15:0]  tx_write_addr, tx_read_addr;
  logic [63:0]  tx_write_enables;
  logic [511:0] tx_write_data, tx_read_data;
  logic [10:0]  tx_pending;

  tx_writer u_tx_writer (
    .clk_i, .rst_ni,
    .app_valid_i(tx_app_valid_i), .app_ready_o(tx_app_ready_o), .app_dst_ip_i(tx_app_dst_ip_i),
    .app_dst_context_i(tx_app_dst_context_i), .app_msg_len_i(tx_app_msg_len_i),
    .words_valid_i(tx_words_valid_i), .words_ready_o(tx_words_ready_o),
    .words_beat_i(tx_words_beat_i),
    .submit_valid_o(tx_submit_valid_o), .submit_ready_i(tx_submit_ready_i),
    .submit_dst_ip_o(tx_submit_dst_ip_o), .submit_dst_context_o(tx_submit_dst_context_o),
    .submit_msg_len_o(tx_submit_msg_len_o), .submit_buf_ptr_i(tx_submit_buf_ptr_i),
    .write_valid_o(tx_write), .write_addr_o(tx_write_addr), .write_enables_o(tx_write_enables),
    .write_data_o(tx_write_data), .pending_o(tx_pending), .wrong_length_o(tx_wrong_length_o)
  );

  message_ram #(.Words(Words)) u_tx_ram (
    .clk_i, .rst_ni,
    .write_valid_i(tx_write), .write_addr_i(tx_write_addr), .write_enables_i(tx_write_enables),
    .write_data_i(tx_write_data),
    .read_valid_i(tx_read), .read_addr_i(tx_read_addr), .read_data_o(tx_read_data)
  );

  tx_reader #(.Packets(Packets)) u_tx_reader (
    .clk_i, .rst_ni,
    .packet_valid_i(tx_packet_valid_i), .packet_ready_o(tx_packet_ready_o),
    .packet_buf_ptr_i(tx_packet_buf_ptr_i), .packet_offset_i(tx_packet_offset_i),
    .packet_msg_len_i(tx_packet_msg_len_i),
    .pending_i(tx_pending), .pending_addr_i(tx_write_addr),
    .read_valid_o(tx_read), .read_addr_o(tx_read_addr), .read_data_i(tx_read_data),
    .payload_valid_o(tx_payload_valid), .payload_ready_i(tx_payload_ready),
    .payload_beat_o(tx_payload)
  );

  header_merge #(.HeaderBytes(HeaderBytes)) u_header_merge (
    .clk_i, .rst_ni,
    .header_valid_i(tx_header_valid_i), .header_ready_o(tx_header_ready_o),
    .header_i(tx_header_i), .header_bytes_i(tx_header_bytes_i),
    .header_payload_i(tx_header_payload_i),
    .payload_valid_i(tx_payload_valid), .payload_ready_o(tx_payload_ready),
    .payload_beat_i(tx_payload),
    .frame_valid_o(tx_frame_valid_o), .frame_ready_i(tx_frame_ready_i),
    .frame_beat_o(tx_frame_beat_o)
  );

endmodule
