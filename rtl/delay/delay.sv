// A value some cycles later; zero for as long after reset.
module delay #(
  parameter int unsigned Width = 1,
  parameter int unsigned Cycles = 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);

  logic [Width-1:0] data_q [Cycles];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Cycles; i++) data_q[i] <= '0;
    end else begin
      data_q[0] <= data_i;
      for (int unsigned i = 1; i < Cycles; i++) data_q[i] <= data_q[i-1];
    end
  end

  assign data_o = data_q[Cycles-1];

endmodule
