// The door for frames: what comes behind it never finds a pipeline that is not ready, a queue that
// cannot hold a frame, or a message without a place.
//
// The pipeline takes a packet when the last beat of its frame is taken. So a last beat waits here
// until packets are `Spacing` cycles apart (docs/nic.md, C10), and until `open_i`. A frame of more
// than `Longest` beats is cut off behind them: nothing in a NIC wants the rest, and a frame has to
// fit into the queue in which it waits for its packet.
module frame_gate #(
  // Cycles from a packet to the next, at least 1.
  parameter int unsigned Spacing = 2,
  // At least 19: the longest header and the longest payload.
  parameter int unsigned Longest = 32
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // Another packet may come.
  input  logic              open_i,
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  stream_pkg::beat_t in_beat_i,
  output logic              out_valid_o,
  input  logic              out_ready_i,
  output stream_pkg::beat_t out_beat_o,
  // The last beat of a frame is taken.
  output logic              taken_o
);

  if (Longest < 19) begin : gen_refused
    $error("Longest has to be at least 19");
  end

  localparam int unsigned AtW   = $clog2(Longest);
  localparam int unsigned WaitW = Spacing > 1 ? $clog2(Spacing) : 1;

  // Beats of this frame before this one; those of a frame that is cut are let in and go nowhere.
  logic [AtW-1:0]   at_q;
  logic             over_q;
  logic [WaitW-1:0] wait_q;
  logic             ends, shut, gives;

  assign ends = in_beat_i.last || at_q == AtW'(Longest - 1);
  assign shut = ends && (wait_q != '0 || !open_i);

  assign out_valid_o = in_valid_i && !over_q && !shut;
  assign in_ready_o  = over_q || (out_ready_i && !shut);
  assign gives       = out_valid_o && out_ready_i;
  assign taken_o     = gives && ends;
  always_comb begin
    out_beat_o      = in_beat_i;
    out_beat_o.last = ends;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      at_q   <= '0;
      over_q <= 1'b0;
      wait_q <= '0;
    end else begin
      if (taken_o) at_q <= '0;
      else if (gives) at_q <= at_q + AtW'(1);
      if (in_valid_i && in_ready_o) over_q <= (over_q || taken_o) && !in_beat_i.last;
      if (taken_o) wait_q <= WaitW'(Spacing - 1);
      else if (wait_q != '0) wait_q <= wait_q - WaitW'(1);
    end
  end

endmodule
