// A queue with places for `Depth` entries. In a cycle the front leaves first, then up to two
// entries come, the one of port 0 before that of port 1. What finds no place is lost, and `kept_o`
// says so. The front stands in a register of its own, so that nobody waits for the memory.
module fifo #(
  parameter int unsigned Width = 32,
  // A power of two.
  parameter int unsigned Depth = 256
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             pop_i,
  output logic             valid_o,
  output logic [Width-1:0] front_o,
  input  logic [1:0]       push_i,
  input  logic [Width-1:0] data0_i,
  input  logic [Width-1:0] data1_i,
  // Whether there is a place for one, after the front has left.
  output logic             room_o,
  output logic [1:0]       kept_o
);

  if (Depth < 2 || 2 ** $clog2(Depth) != Depth) begin : gen_refused
    $error("Depth has to be a power of two from 2 on");
  end

  localparam int unsigned PtrW = $clog2(Depth);

  logic [Width-1:0] places_q [Depth];
  logic [PtrW-1:0]  read_q, write_q;
  logic [PtrW:0]    count_q, left, count_d;
  logic [PtrW-1:0]  write_d, second;

  logic             valid_q;
  logic [Width-1:0] front_q;
  assign valid_o = valid_q;
  assign front_o = front_q;

  // Whether anything is behind the front.
  logic more, stays;
  assign more  = count_q > (PtrW+1)'(1);
  assign stays = pop_i ? more : valid_q;

  assign left      = count_q - (PtrW+1)'(pop_i);
  assign room_o    = pop_i || count_q != (PtrW+1)'(Depth);
  assign kept_o[0] = push_i[0] && room_o;
  assign kept_o[1] = push_i[1] && (push_i[0] ? left < (PtrW+1)'(Depth - 1) : room_o);
  assign second    = kept_o[0] ? write_q + PtrW'(1) : write_q;

  // How many come is known late.
  always_comb begin
    count_d = left;
    write_d = write_q;
    if (kept_o[0] != kept_o[1]) begin
      count_d = left + (PtrW+1)'(1);
      write_d = write_q + PtrW'(1);
    end else if (kept_o[0]) begin
      count_d = left + (PtrW+1)'(2);
      write_d = write_q + PtrW'(2);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q  <= '0;
      write_q <= '0;
      count_q <= '0;
      valid_q <= 1'b0;
    end else begin
      read_q  <= read_q + PtrW'(pop_i);
      write_q <= write_d;
      count_q <= count_d;
      valid_q <= stays || kept_o != '0;
      no_pop_of_nothing: assert (!pop_i || valid_o);
    end
  end

  always_ff @(posedge clk_i) begin
    if (kept_o[0]) places_q[write_q] <= data0_i;
    if (kept_o[1]) places_q[second] <= data1_i;
    if (pop_i || !valid_q) begin
      front_q <= stays ? places_q[read_q + PtrW'(1)] : (kept_o[0] ? data0_i : data1_i);
    end
  end

endmodule
