// Reassembly's payload path: the words of an arriving packet's payload go where they belong in the
// message RAM (specs/nanotransport.md, section 5.3). It takes a word in each cycle.
module rx_payload (
  input  logic         clk_i,
  input  logic         rst_ni,
  // The payload of a packet. What follows `valid_i` is read with its first word.
  input  logic         valid_i,
  input  logic [511:0] data_i,
  input  logic [63:0]  keep_i,
  input  logic         last_i,
  // Nobody wants it: the program drops it, or it has come before.
  input  logic         drop_i,
  // The message's buffer, in words, and the packet's place.
  input  logic [15:0]  buf_ptr_i,
  input  logic [7:0]   pkt_offset_i,
  // To the message RAM.
  output logic         write_o,
  output logic [15:0]  write_addr_o,
  output logic [511:0] write_data_o,
  output logic [63:0]  write_keep_o
);

  // A packet has 1024 bytes at most: sixteen words.
  localparam int unsigned WordW = 4;

  logic             inside_q, drop_q, drop;
  logic [15:0]      addr_q, addr;
  logic [WordW-1:0] word_q;

  assign drop = inside_q ? drop_q : drop_i;
  assign addr = inside_q ? addr_q : buf_ptr_i + {4'b0, pkt_offset_i, 4'b0};

  assign write_o      = valid_i && !drop;
  assign write_addr_o = write_o ? addr + 16'(word_q) : '0;
  assign write_data_o = write_o ? data_i : '0;
  assign write_keep_o = write_o ? keep_i : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
      drop_q   <= 1'b0;
      addr_q   <= '0;
      word_q   <= '0;
    end else if (valid_i) begin
      inside_q <= !last_i;
      drop_q   <= drop;
      addr_q   <= addr;
      word_q   <= last_i ? '0 : word_q + WordW'(1);
      no_longer_than_a_packet: assert (last_i || word_q != '1);
    end
  end

endmodule
