// The payload of packets that leave, out of the message RAM: from word buf_ptr + 16 * pkt_offset
// on.
//
// The arbiter's packets wait in a short queue, so that a packet is read behind the one before
// without a bubble. A word that the application has not yet given is waited for.
module tx_reader #(
  // Packets that may wait, a power of two.
  parameter int unsigned Packets = 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // A packet inside of its message.
  input  logic              packet_valid_i,
  output logic              packet_ready_o,
  input  logic [15:0]       packet_buf_ptr_i,
  input  logic [7:0]        packet_offset_i,
  input  logic [15:0]       packet_msg_len_i,
  input  logic [10:0]       pending_i,
  input  logic [15:0]       pending_addr_i,
  // Of the message RAM.
  output logic              read_valid_o,
  output logic [15:0]       read_addr_o,
  input  logic [511:0]      read_data_i,
  output logic              payload_valid_o,
  input  logic              payload_ready_i,
  output stream_pkg::beat_t payload_beat_o
);

  logic        next_valid, next_ready;
  logic [15:0] next_addr;
  logic [16:0] bytes, next_bytes;
  assign bytes = stream_pkg::packet_bytes(packet_msg_len_i, packet_offset_i[5:0]);

  stream_fifo #(.Width(33), .Depth(Packets)) u_packets (
    .clk_i, .rst_ni,
    .in_valid_i(packet_valid_i), .in_ready_o(packet_ready_o),
    .in_data_i({bytes, packet_buf_ptr_i + {4'd0, packet_offset_i, 4'd0}}),
    .out_valid_o(next_valid), .out_ready_i(next_ready), .out_data_o({next_bytes, next_addr})
  );

  // Nothing goes with a packet.
  logic done_valid, out_user, done_user, unused;
  assign unused = ^{done_valid, out_user, done_user};

  burst_reader #(.UserWidth(1)) u_reader (
    .clk_i, .rst_ni,
    .begin_valid_i(next_valid), .begin_ready_o(next_ready),
    .begin_addr_i(next_addr), .begin_bytes_i(next_bytes), .begin_user_i(1'b0),
    .pending_i, .pending_addr_i,
    .read_valid_o, .read_addr_o, .read_data_i,
    .out_valid_o(payload_valid_o), .out_ready_i(payload_ready_i), .out_beat_o(payload_beat_o),
    .out_user_o(out_user), .done_valid_o(done_valid), .done_user_o(done_user)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      inside_its_message: assert (!packet_valid_i ||
                                  {packet_offset_i, 10'd0} < 18'(packet_msg_len_i));
    end
  end

endmodule
