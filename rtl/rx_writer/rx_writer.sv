// Payload of packets that arrive goes to its place in the message's buffer: word
// buf_ptr + 16 * pkt_offset (specs/nanotransport.md#5.3).
//
// A word of metadata for each payload, in order. A duplicate, and all that reassembly has no place
// for, comes with `keep` 0 and is dropped. A message that its packet makes whole is announced as
// the packet's writing begins: its reader keeps behind what is pending.
module rx_writer (
  input  logic              clk_i,
  input  logic              rst_ni,
  // The message's first packet says `msg_len`; a packet of it is inside.
  input  logic              packet_valid_i,
  output logic              packet_ready_o,
  input  logic              packet_keep_i,
  input  logic              packet_whole_i,
  input  logic [15:0]       packet_buf_ptr_i,
  input  logic [7:0]        packet_offset_i,
  input  logic [15:0]       packet_msg_len_i,
  input  logic [31:0]       packet_src_ip_i,
  input  logic [15:0]       packet_src_context_i,
  input  logic              payload_valid_i,
  output logic              payload_ready_o,
  input  stream_pkg::beat_t payload_beat_i,
  // Of the message RAM.
  output logic              write_valid_o,
  output logic [15:0]       write_addr_o,
  output logic [63:0]       write_enables_o,
  output logic [511:0]      write_data_o,
  // Words still to be written, from `write_addr_o` on.
  output logic [10:0]       pending_o,
  // A message that is whole.
  output logic              whole_valid_o,
  input  logic              whole_ready_i,
  output logic [15:0]       whole_buf_ptr_o,
  output logic [15:0]       whole_msg_len_o,
  output logic [31:0]       whole_src_ip_o,
  output logic [15:0]       whole_src_context_o,
  // A message that is whole and not wanted: its program drops the last packet.
  output logic              dropped_valid_o,
  output logic [15:0]       dropped_buf_ptr_o,
  // A payload that was not as long as its packet's place.
  output logic              wrong_length_o
);

  logic [16:0] bytes;
  assign bytes = stream_pkg::packet_bytes(packet_msg_len_i, packet_offset_i[5:0]);

  // Both take it, or neither.
  logic begin_ready, whole;
  assign whole          = packet_keep_i && packet_whole_i;
  assign packet_ready_o = begin_ready && (!whole || whole_ready_i);

  burst_writer u_writer (
    .clk_i, .rst_ni,
    .begin_valid_i(packet_valid_i && (!whole || whole_ready_i)), .begin_ready_o(begin_ready),
    .begin_addr_i(packet_buf_ptr_i + {4'd0, packet_offset_i, 4'd0}),
    .begin_bytes_i(packet_keep_i ? bytes : '0),
    .in_valid_i(payload_valid_i), .in_ready_o(payload_ready_o), .in_beat_i(payload_beat_i),
    .write_valid_o, .write_addr_o, .write_enables_o, .write_data_o,
    .pending_o, .wrong_length_o
  );

  assign whole_valid_o       = packet_valid_i && whole && begin_ready;
  assign dropped_valid_o     = packet_valid_i && packet_ready_o && packet_whole_i && !packet_keep_i;
  assign dropped_buf_ptr_o   = packet_buf_ptr_i;
  assign whole_buf_ptr_o     = packet_buf_ptr_i;
  assign whole_msg_len_o     = packet_msg_len_i;
  assign whole_src_ip_o      = packet_src_ip_i;
  assign whole_src_context_o = packet_src_context_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      inside_its_message: assert (!packet_valid_i || !packet_keep_i ||
                                  {packet_offset_i, 10'd0} < 18'(packet_msg_len_i));
    end
  end

endmodule
