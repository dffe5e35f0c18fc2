// IfElseRaw: a read-modify-write unit over one cell for each message id, zero at first
// (docs/nic.md; specs/nanotransport.md, section 4).
//
// The value after the operation comes two cycles after its request. The cell is read in the first
// of them and written in the second, so requests may come every two cycles and no closer.
module if_else_raw #(
  // Cells, a power of two from 2 to 128.
  parameter int unsigned Ids = 16,
  // Bits of a cell.
  parameter int unsigned Width = 16,
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  input  logic [15:0]      index_i,
  input  logic             predicate_i,
  input  logic [7:0]       op0_i,
  input  logic [Width-1:0] data0_i,
  input  logic [7:0]       op1_i,
  input  logic [Width-1:0] data1_i,
  output logic [Width-1:0] value_o
);

  if (Ids < 2 || Ids > 128 || 2 ** $clog2(Ids) != Ids) begin : gen_refused
    $error("Ids has to be a power of two from 2 to 128");
  end

  localparam logic [7:0] Write = 8'd1;
  localparam logic [7:0] Add = 8'd2;

  logic [Width-1:0] cells_q [Ids];
  // A cell that has not been written is zero: the memory needs no reset.
  logic [Ids-1:0]   written_q;

  logic             busy_q;
  logic [IdW-1:0]   index, index_q;
  logic [7:0]       op_q;
  logic [Width-1:0] data_q, cell_q, value, value_q;

  // The low bits of the index choose the cell.
  assign index = index_i[IdW-1:0];
  logic unused_index;
  assign unused_index = ^index_i[15:IdW];

  always_comb begin
    unique case (op_q)
      Write:   value = data_q;
      Add:     value = cell_q + data_q;
      default: value = cell_q;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q    <= 1'b0;
      written_q <= '0;
      value_q   <= '0;
    end else begin
      busy_q  <= valid_i;
      value_q <= busy_q ? value : '0;
      if (busy_q) written_q[index_q] <= 1'b1;
      two_cycles_apart: assert (!(valid_i && busy_q));
    end
  end

  always_ff @(posedge clk_i) begin
    index_q <= index;
    op_q    <= predicate_i ? op0_i : op1_i;
    data_q  <= predicate_i ? data0_i : data1_i;
    cell_q  <= written_q[index] ? cells_q[index] : '0;
    if (busy_q) cells_q[index_q] <= value;
  end

  assign value_o = value_q;

endmodule
