// A queue with ready and valid. Full rate from two places on. What comes in can leave in the next
// cycle; the front is a function of registered state alone.
module stream_fifo #(
  parameter int unsigned Width = 32,
  // A power of two, at least 2.
  parameter int unsigned Depth = 16
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);

  if (Depth < 2 || 2 ** $clog2(Depth) != Depth) begin : gen_refused
    $error("Depth has to be a power of two, at least 2");
  end

  localparam int unsigned PtrW = $clog2(Depth);

  logic [Width-1:0] places_q [Depth];
  // One bit more than a place needs: full and empty differ in it.
  logic [PtrW:0] read_q, write_q, count;

  assign count       = write_q - read_q;
  assign in_ready_o  = count != (PtrW+1)'(Depth);
  assign out_valid_o = count != '0;
  assign out_data_o  = places_q[read_q[PtrW-1:0]];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q  <= '0;
      write_q <= '0;
    end else begin
      read_q  <= read_q + (PtrW+1)'(out_valid_o && out_ready_i);
      write_q <= write_q + (PtrW+1)'(in_valid_i && in_ready_o);
      no_more_than_places: assert (count <= (PtrW+1)'(Depth));
    end
  end

  always_ff @(posedge clk_i) begin
    if (in_valid_i && in_ready_o) places_q[write_q[PtrW-1:0]] <= in_data_i;
  end

endmodule
