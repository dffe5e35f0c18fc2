// One entry of a queue that takes two in a cycle, whichever, is followed: it comes out as it went
// in, and in its turn. What is lost is what finds no place.
module fifo_proof #(
  parameter int unsigned Width = 2,
  parameter int unsigned Depth = 4
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             pop_i,
  input logic [1:0]       push_i,
  input logic [Width-1:0] data0_i,
  input logic [Width-1:0] data1_i,
  input logic [1:0]       follow_i
);

  logic             valid, pop;
  logic [1:0]       kept, follow;
  logic [Width-1:0] front, item_q;

  // Nothing is taken where nothing is.
  assign pop = pop_i && valid;

  fifo #(.Width(Width), .Depth(Depth)) u_fifo (
    .clk_i, .rst_ni, .pop_i(pop), .valid_o(valid), .front_o(front),
    .push_i, .data0_i, .data1_i, .kept_o(kept)
  );

  // Entries inside, those before the followed one, and those inside when this cycle's front has
  // left.
  logic [7:0] inside_q, ahead_q, left;
  logic       followed_q;
  assign left   = inside_q - 8'(pop);
  assign follow = followed_q ? '0 : follow_i & kept;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q   <= '0;
      ahead_q    <= '0;
      followed_q <= 1'b0;
      item_q     <= '0;
    end else begin
      inside_q <= left + 8'(kept[0]) + 8'(kept[1]);
      if (follow != '0) begin
        followed_q <= 1'b1;
        item_q     <= follow[0] ? data0_i : data1_i;
        ahead_q    <= follow[0] ? left : left + 8'(kept[0]);
      end else if (followed_q && pop) begin
        ahead_q    <= ahead_q - 8'd1;
        followed_q <= ahead_q != '0;
      end
      something_to_take: assert (valid == (inside_q != '0));
      first_has_a_place: assert (kept[0] == (push_i[0] && left < 8'(Depth)));
      second_has_a_place: assert (kept[1] == (push_i[1] && left + 8'(kept[0]) < 8'(Depth)));
      comes_out_as_it_went_in: assert (!followed_q || ahead_q != '0 || front == item_q);
    end
  end

endmodule
