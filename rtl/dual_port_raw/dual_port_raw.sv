// DualPortRaw: two read-modify-write units on one memory, one cell for each message id, zero at
// first (docs/nic.md; specs/nanotransport.md, section 4).
//
// `execute` is for the message of the packet, `second` for one that the program has found out
// meanwhile. The value after an operation comes two cycles after its request: the cell is read in
// the first of them, written in the second. An operation sees all that were requested in cycles
// before it, on either port; of two in one cycle `second` comes first, since it is of the packet
// that came first.
module dual_port_raw #(
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
  output logic [Width-1:0] value_o,
  input  logic             second_valid_i,
  input  logic [15:0]      second_index_i,
  input  logic [7:0]       second_op_i,
  input  logic [Width-1:0] second_data_i,
  output logic [Width-1:0] second_value_o
);

  if (Ids < 2 || Ids > 128 || 2 ** $clog2(Ids) != Ids) begin : gen_refused
    $error("Ids has to be a power of two from 2 to 128");
  end

  localparam logic [7:0] Write = 8'd1;
  localparam logic [7:0] Add = 8'd2;

  function automatic logic [Width-1:0] apply(logic [7:0] op, logic [Width-1:0] old,
                                             logic [Width-1:0] data);
    unique case (op)
      Write:   return data;
      Add:     return old + data;
      default: return old;
    endcase
  endfunction

  logic [Width-1:0] cells_q [Ids];
  // A cell that has not been written is zero: the memory needs no reset.
  logic [Ids-1:0]   written_q;

  logic             first_q, second_q;
  logic [IdW-1:0]   first_index, second_index, first_index_q, second_index_q;
  logic [7:0]       first_op_q, second_op_q;
  logic [Width-1:0] first_data_q, second_data_q, first_cell_q, second_cell_q;
  logic [Width-1:0] first_old, first_value, second_value;

  // The low bits of the index choose the cell.
  assign first_index  = index_i[IdW-1:0];
  assign second_index = second_index_i[IdW-1:0];
  logic unused_index;
  assign unused_index = ^{index_i[15:IdW], second_index_i[15:IdW]};

  assign second_value = apply(second_op_q, second_cell_q, second_data_q);
  assign first_old    = second_q && second_index_q == first_index_q ? second_value : first_cell_q;
  assign first_value  = apply(first_op_q, first_old, first_data_q);

  // The cell as the operations leave it that are being written in this cycle.
  function automatic logic [Width-1:0] read(logic [IdW-1:0] index);
    if (first_q && first_index_q == index) return first_value;
    if (second_q && second_index_q == index) return second_value;
    return written_q[index] ? cells_q[index] : '0;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q        <= 1'b0;
      second_q       <= 1'b0;
      written_q      <= '0;
      value_o        <= '0;
      second_value_o <= '0;
    end else begin
      first_q        <= valid_i;
      second_q       <= second_valid_i;
      value_o        <= first_q ? first_value : '0;
      second_value_o <= second_q ? second_value : '0;
      if (first_q) written_q[first_index_q] <= 1'b1;
      if (second_q) written_q[second_index_q] <= 1'b1;
      two_cycles_apart: assert (!(valid_i && first_q));
      second_two_cycles_apart: assert (!(second_valid_i && second_q));
    end
  end

  always_ff @(posedge clk_i) begin
    first_index_q  <= first_index;
    first_op_q     <= predicate_i ? op0_i : op1_i;
    first_data_q   <= predicate_i ? data0_i : data1_i;
    first_cell_q   <= read(first_index);
    second_index_q <= second_index;
    second_op_q    <= second_op_i;
    second_data_q  <= second_data_i;
    second_cell_q  <= read(second_index);
    if (second_q) cells_q[second_index_q] <= second_value;
    if (first_q) cells_q[first_index_q] <= first_value;
  end

endmodule
