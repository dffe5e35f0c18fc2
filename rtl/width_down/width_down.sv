// A stream of wide words to one of narrow words, as the NIC's 512 bits become a link's 64
// (specs/nanotransport.md, section 12). The first narrow word is in the lowest bits.
//
// It gives a narrow word in each cycle as long as wide words come, and takes the next wide word in
// the cycle in which the last of one leaves. So 65 bytes over 64 bits take nine cycles: what the
// link's width costs, more than the 8.3 cycles of 200 Gb/s.
module width_down #(
  parameter int unsigned NarrowBytes = 8,
  // A multiple of it.
  parameter int unsigned WideBytes = 64
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     valid_i,
  output logic                     ready_o,
  input  logic [WideBytes*8-1:0]   data_i,
  // Which bytes there are: the lowest ones, all but in the last word of a packet.
  input  logic [WideBytes-1:0]     keep_i,
  input  logic                     last_i,
  output logic                     valid_o,
  input  logic                     ready_i,
  output logic [NarrowBytes*8-1:0] data_o,
  output logic [NarrowBytes-1:0]   keep_o,
  output logic                     last_o
);

  if (WideBytes % NarrowBytes != 0) begin : gen_refused
    $error("WideBytes has to be a multiple of NarrowBytes");
  end

  localparam int unsigned Parts = WideBytes / NarrowBytes;

  // The word that leaves, the part that is next in the lowest bits.
  logic [Parts-1:0][NarrowBytes*8-1:0] data_q;
  logic [Parts-1:0][NarrowBytes-1:0]   keep_q, keep_next;
  logic                                last_q, ends, gives;

  assign keep_next = keep_q >> NarrowBytes;
  assign valid_o   = keep_q[0] != '0;
  assign data_o    = valid_o ? data_q[0] : '0;
  assign keep_o    = keep_q[0];
  assign ends      = keep_next == '0;
  assign last_o    = valid_o && last_q && ends;
  assign gives     = valid_o && ready_i;
  assign ready_o   = !valid_o || (gives && ends);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      data_q <= '0;
      keep_q <= '0;
      last_q <= 1'b0;
    end else begin
      if (gives) begin
        data_q <= data_q >> (NarrowBytes * 8);
        keep_q <= keep_next;
      end
      if (valid_i && ready_o) begin
        data_q <= data_i;
        keep_q <= keep_i;
        last_q <= last_i;
      end
      lowest_bytes: assert (!valid_i || (keep_i & (keep_i + WideBytes'(1))) == '0);
      all_but_the_last: assert (!valid_i || last_i || keep_i == '1);
      some_bytes: assert (!valid_i || keep_i != '0);
    end
  end

endmodule
