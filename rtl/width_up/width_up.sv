// A stream of narrow words to one of wide words, as a link's 64 bits become the NIC's 512
// (specs/nanotransport.md, section 12). The first narrow word is in the lowest bits. A packet
// begins in a wide word of its own.
//
// It takes a narrow word in each cycle as long as wide words are taken.
module width_up #(
  parameter int unsigned NarrowBytes = 8,
  // A multiple of it.
  parameter int unsigned WideBytes = 64
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     valid_i,
  output logic                     ready_o,
  input  logic [NarrowBytes*8-1:0] data_i,
  // Which bytes there are: the lowest ones, all but in the last word of a packet.
  input  logic [NarrowBytes-1:0]   keep_i,
  input  logic                     last_i,
  output logic                     valid_o,
  input  logic                     ready_i,
  output logic [WideBytes*8-1:0]   data_o,
  output logic [WideBytes-1:0]     keep_o,
  output logic                     last_o
);

  if (WideBytes % NarrowBytes != 0) begin : gen_refused
    $error("WideBytes has to be a multiple of NarrowBytes");
  end

  localparam int unsigned Parts = WideBytes / NarrowBytes;
  localparam int unsigned PartW = Parts > 1 ? $clog2(Parts) : 1;

  logic [Parts-1:0][NarrowBytes*8-1:0] data_q;
  logic [Parts-1:0][NarrowBytes-1:0]   keep_q;
  logic [PartW-1:0]                    part_q;
  logic                                whole_q, last_q, takes, ends;

  // A word that leaves makes room in the same cycle.
  assign ready_o = !whole_q || ready_i;
  assign takes   = valid_i && ready_o;
  assign ends    = last_i || part_q == PartW'(Parts - 1);

  assign valid_o = whole_q;
  assign data_o  = whole_q ? data_q : '0;
  assign keep_o  = whole_q ? keep_q : '0;
  assign last_o  = whole_q && last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      whole_q <= 1'b0;
      part_q  <= '0;
      last_q  <= 1'b0;
      data_q  <= '0;
      keep_q  <= '0;
    end else begin
      if (ready_i) whole_q <= 1'b0;
      if (takes) begin
        whole_q <= ends;
        last_q  <= last_i;
        part_q  <= ends ? '0 : part_q + PartW'(1);
        for (int unsigned i = 0; i < Parts; i++) begin
          if (part_q == PartW'(i)) begin
            data_q[i] <= data_i;
            keep_q[i] <= keep_i;
          end else if (part_q == '0) begin
            // What is beyond the end of a packet is zero.
            data_q[i] <= '0;
            keep_q[i] <= '0;
          end
        end
      end
      lowest_bytes: assert (!valid_i || (keep_i & (keep_i + NarrowBytes'(1))) == '0);
      all_but_the_last: assert (!valid_i || last_i || keep_i == '1);
      some_bytes: assert (!valid_i || keep_i != '0);
    end
  end

endmodule
