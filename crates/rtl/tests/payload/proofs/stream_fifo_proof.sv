// One item, whichever, is followed through the queue: it comes out as it went in, and in its turn.
module stream_fifo_proof #(
  parameter int unsigned Width = 4,
  parameter int unsigned Depth = 4
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_ready_i,
  input logic             follow_i
);

  logic in_ready, out_valid;
  logic [Width-1:0] out_data;

  stream_fifo #(.Width(Width), .Depth(Depth)) u_fifo (
    .clk_i, .rst_ni,
    .in_valid_i, .in_ready_o(in_ready), .in_data_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data)
  );

  logic push, pop;
  assign push = in_valid_i && in_ready;
  assign pop  = out_valid && out_ready_i;

  logic [7:0]       inside_q, ahead_q;
  logic             followed_q;
  logic [Width-1:0] item_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q   <= '0;
      ahead_q    <= '0;
      followed_q <= 1'b0;
      item_q     <= '0;
    end else begin
      inside_q <= inside_q + 8'(push) - 8'(pop);
      if (!followed_q && push && follow_i) begin
        followed_q <= 1'b1;
        item_q     <= in_data_i;
        ahead_q    <= inside_q - 8'(pop);
      end else if (followed_q && pop) begin
        ahead_q <= ahead_q - 8'd1;
        if (ahead_q == '0) followed_q <= 1'b0;
      end
      comes_out_as_it_went_in: assert (!(followed_q && pop && ahead_q == '0) || out_data == item_q);
      full_when_all_places_are_taken: assert (in_ready == (inside_q < 8'(Depth)));
      something_to_take: assert (out_valid == (inside_q != '0));
    end
  end

endmodule
