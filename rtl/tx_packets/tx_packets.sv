// What the arbiter has chosen and what has not left yet.
//
// A packet is in here from its choice to the last beat of its frame. There are at most `Ahead` of
// them: then there is no room for another choice. Their headers wait here for the way out.
//
// A message may be over while a packet of it that is sent once more is still read, and the law
// gives its buffer to the next message at once. `busy_o` keeps that message from being written for
// as long: it is submitted when the buffer has been read.
module tx_packets #(
  // A power of two.
  parameter int unsigned Ahead = 8,
  // Bytes of the longest header, and one more.
  parameter int unsigned HeaderBytes = 65
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  // The arbiter's choice, and whether there is room for another.
  output logic                     room_o,
  input  logic                     chosen_valid_i,
  input  logic                     chosen_data_i,
  input  logic [15:0]              chosen_buf_ptr_i,
  // Whether a packet out of this buffer is still on its way.
  input  logic [15:0]              ask_buf_ptr_i,
  output logic                     busy_o,
  // The header of each choice, in order, some cycles later: byte 0 lowest; of no bytes if the
  // program has made none.
  input  logic                     made_valid_i,
  input  logic                     made_data_i,
  input  logic [8*HeaderBytes-1:0] made_header_i,
  input  logic [7:0]               made_bytes_i,
  // To header_merge. What has no payload has a byte of nothing behind its header: no frame is as
  // short as a beat.
  output logic                     header_valid_o,
  input  logic                     header_ready_i,
  output logic [8*HeaderBytes-1:0] header_o,
  output logic [7:0]               header_bytes_o,
  output logic                     header_payload_o,
  // The last beat of a frame has left.
  input  logic                     gone_i
);

  if (Ahead < 2 || 2 ** $clog2(Ahead) != Ahead) begin : gen_refused
    $error("Ahead has to be a power of two, at least 2");
  end

  localparam int unsigned PtrW = $clog2(Ahead);

  logic [15:0]      buf_ptr_q [Ahead];
  logic [Ahead-1:0] data_q, here_q, here_d;
  logic [PtrW-1:0]  in_q, out_q;
  logic             leaves, front_valid, front_payload, empty, skips, room;
  // A header has left, and its payload has not.
  logic             sends_q;
  logic [7:0]       front_bytes;

  assign room_o = here_q[in_q] == 1'b0;

  always_comb begin
    busy_o = 1'b0;
    for (int unsigned i = 0; i < Ahead; i++) begin
      if (here_q[i] && data_q[i] && buf_ptr_q[i] == ask_buf_ptr_i) busy_o = 1'b1;
    end
    here_d = here_q;
    if (chosen_valid_i) here_d[in_q] = 1'b1;
    if (leaves) here_d[out_q] = 1'b0;
  end

  stream_fifo #(.Width(8*HeaderBytes + 9), .Depth(Ahead)) u_headers (
    .clk_i, .rst_ni,
    .in_valid_i(made_valid_i), .in_ready_o(room),
    .in_data_i({made_data_i, made_bytes_i, made_header_i}),
    .out_valid_o(front_valid), .out_ready_i(header_ready_i || skips),
    .out_data_o({front_payload, front_bytes, header_o})
  );

  // A choice of which nothing was made leaves when those before it have.
  assign empty            = front_bytes == '0;
  assign header_valid_o   = front_valid && !empty;
  assign header_bytes_o   = front_payload ? front_bytes : front_bytes + 8'd1;
  assign header_payload_o = front_payload;
  assign skips            = front_valid && empty && !sends_q;
  assign leaves           = gone_i || skips;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      here_q  <= '0;
      in_q    <= '0;
      out_q   <= '0;
      sends_q <= 1'b0;
    end else begin
      here_q  <= here_d;
      in_q    <= in_q + PtrW'(chosen_valid_i);
      out_q   <= out_q + PtrW'(leaves);
      sends_q <= (sends_q || (header_valid_o && header_ready_i)) && !gone_i;
      choose_where_room_is: assert (!chosen_valid_i || room_o);
      room_for_each_header: assert (!made_valid_i || room);
      nothing_else_leaves: assert (!leaves || here_q[out_q]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (chosen_valid_i) begin
      buf_ptr_q[in_q] <= chosen_buf_ptr_i;
      data_q[in_q]    <= chosen_data_i;
    end
  end

endmodule
