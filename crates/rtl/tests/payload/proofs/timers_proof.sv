// A timer that is neither stopped nor started anew fires at the first look at or after its
// deadline, and no other does (docs/nic.md, rule 16; C4).
module timers_proof #(
  parameter int unsigned Ids = 2,
  parameter int unsigned TimeoutCycles = 3,
  localparam int unsigned IdW = $clog2(Ids)
) (
  input logic           clk_i,
  input logic           rst_ni,
  // The host's count when the reset ends.
  input logic [31:0]    begin_i,
  // The timer that is looked at here.
  input logic [IdW-1:0] id_i,
  input logic           restart_valid_i,
  input logic [IdW-1:0] restart_id_i,
  input logic           start_valid_i,
  input logic [IdW-1:0] start_id_i,
  input logic [1:0]     cancel_valid_i,
  input logic [IdW-1:0] cancel0_id_i,
  input logic [IdW-1:0] cancel1_id_i,
  input logic           again_i
);

  logic [31:0]    now_q, left_q;
  logic           begun_q, fire, mine;
  logic [IdW-1:0] fire_id, id_q;

  timers #(.Ids(Ids), .TimeoutCycles(TimeoutCycles)) u_timers (
    .clk_i, .rst_ni, .now_i(now_q),
    .restart_valid_i, .restart_id_i, .start_valid_i, .start_id_i,
    .cancel_valid_i, .cancel0_id_i, .cancel1_id_i,
    .fire_valid_o(fire), .fire_id_o(fire_id), .again_i(again_i && fire)
  );

  // Cycles until the deadline of timer `id_q`, and whether it runs.
  logic runs_q, starts, stops, due;
  assign starts = (restart_valid_i && restart_id_i == id_q && runs_q) ||
                  (start_valid_i && start_id_i == id_q);
  assign stops  = (cancel_valid_i[0] && cancel0_id_i == id_q) ||
                  (cancel_valid_i[1] && cancel1_id_i == id_q);
  assign due    = runs_q && left_q == '0 && !starts && !stops &&
                  !now_q[0] && now_q[IdW:1] == id_q;
  assign mine   = fire && fire_id == id_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
      runs_q  <= 1'b0;
      now_q   <= '0;
      left_q  <= '0;
      id_q    <= '0;
    end else begin
      begun_q <= 1'b1;
      now_q   <= begun_q ? now_q + 32'd1 : begin_i;
      id_q    <= begun_q ? id_q : id_i;
      // Of the first cycle nothing is kept: count and timer are chosen in it.
      if (begun_q) begin
        runs_q <= (starts || (runs_q && !due) || (due && again_i)) && !stops;
        left_q <= starts || due ? 32'(TimeoutCycles) - 32'd1 : left_q - 32'(left_q != '0);
      end
      nothing_in_the_first_cycle: assume (begun_q ||
          (!restart_valid_i && !start_valid_i && cancel_valid_i == '0));
      fires_when_it_is_due: assert (!begun_q || mine == due);
    end
  end

endmodule
