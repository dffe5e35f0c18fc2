// A deadline for each message id, looked at in turn (docs/nic.md, rule 16; C4).
//
// Timers count cycles. Slot i is looked at in the cycles 2i mod 2N of the host's count, and fires
// at the first look at or after its deadline. What happens to a timer in the cycle of its look
// comes before the look: restart, start, cancel, in this order.
module timers #(
  // Messages, a power of two from 2 to 128.
  parameter int unsigned Ids = 16,
  // From starting to the deadline.
  parameter int unsigned TimeoutCycles = 22400,
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  // The number of this cycle, modulo 2^32.
  input  logic [31:0]    now_i,
  // Of a timer that runs; else nothing.
  input  logic           restart_valid_i,
  input  logic [IdW-1:0] restart_id_i,
  input  logic           start_valid_i,
  input  logic [IdW-1:0] start_id_i,
  // Up to two may be stopped in a cycle.
  input  logic [1:0]     cancel_valid_i,
  input  logic [IdW-1:0] cancel0_id_i,
  input  logic [IdW-1:0] cancel1_id_i,
  // A timer that is looked at in this cycle is past its deadline, whatever happens to it.
  output logic           due_o,
  output logic           fire_valid_o,
  output logic [IdW-1:0] fire_id_o,
  // The timer that fires starts again.
  input  logic           again_i
);

  if (Ids < 2 || Ids > 128 || 2 ** $clog2(Ids) != Ids) begin : gen_refused
    $error("Ids has to be a power of two from 2 to 128");
  end

  // A deadline is less than 2^(TimeW-1) cycles away on either side of any of its looks.
  localparam int unsigned Longest = TimeoutCycles > 2 * Ids ? TimeoutCycles : 2 * Ids;
  localparam int unsigned TimeW = $clog2(Longest + 1) + 1;
  typedef logic [TimeW-1:0] cycles_t;

  logic [Ids-1:0] running_q;
  // Flip-flops: any of them may begin anew in a cycle.
  cycles_t [Ids-1:0] deadline_q;

  cycles_t now, deadline, late;
  assign now      = now_i[TimeW-1:0];
  assign deadline = now + cycles_t'(TimeoutCycles);

  logic unused_now;
  assign unused_now = ^now_i[31:TimeW];

  // Which timers begin anew in this cycle, and which end.
  logic [Ids-1:0] begun, ended;
  always_comb begin
    begun = '0;
    ended = '0;
    if (restart_valid_i) begun[restart_id_i] = running_q[restart_id_i];
    if (start_valid_i) begun[start_id_i] = 1'b1;
    if (cancel_valid_i[0]) ended[cancel0_id_i] = 1'b1;
    if (cancel_valid_i[1]) ended[cancel1_id_i] = 1'b1;
  end

  logic           look, fire;
  logic [IdW-1:0] slot;
  assign look = !now_i[0];
  assign slot = now_i[IdW:1];
  assign late = now - deadline_q[slot];
  assign due_o = look && running_q[slot] && !late[TimeW-1];
  assign fire = due_o && !begun[slot] && !ended[slot];
  assign fire_valid_o = fire;
  assign fire_id_o    = fire ? slot : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      running_q <= '0;
    end else begin
      running_q <= (running_q | begun) & ~ended;
      if (fire) running_q[slot] <= again_i;
      again_what_fires: assert (!again_i || fire);
    end
  end

  // All that begins in a cycle has the same deadline; what ends has none that matters.
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Ids; i++) begin
      if (begun[i] || (due_o && slot == IdW'(i))) deadline_q[i] <= deadline;
    end
  end

endmodule
