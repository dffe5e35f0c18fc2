// Free lists of two size classes: no buffer is out twice, and who needs one gets the lowest of the
// smallest class that is large enough.
module buffers_proof (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [15:0] take_len_i,
  input logic        take_i,
  input logic [2:0]  give_i,
  input logic [1:0]  give0_index_i,
  input logic [1:0]  give1_index_i,
  input logic [1:0]  give2_index_i
);

  localparam int unsigned Total = 4;

  // The smaller class is the second.
  localparam logic [63:0] Bytes = {32'd1024, 32'd4096};

  logic        take_ready, take;
  logic [1:0]  take_index;
  logic [2:0]  give;
  logic [15:0] take_ptr;
  logic [7:0]  take_class;

  // What is out, and what of it is given back: each buffer once.
  logic [Total-1:0] out_q, given0, given1, given;
  assign take    = take_i && take_ready;
  assign give[0] = give_i[0] && out_q[give0_index_i];
  assign given0  = Total'(give[0]) << give0_index_i;
  assign give[1] = give_i[1] && out_q[give1_index_i] && !given0[give1_index_i];
  assign given1  = given0 | (Total'(give[1]) << give1_index_i);
  assign give[2] = give_i[2] && out_q[give2_index_i] && !given1[give2_index_i];
  assign given   = given1 | (Total'(give[2]) << give2_index_i);

  buffers #(.Classes(2), .ClassBytes(Bytes), .ClassBuffers({32'd2, 32'd2})) u_buffers (
    .clk_i, .rst_ni,
    .take_len_i, .take_ready_o(take_ready), .take_index_o(take_index), .take_ptr_o(take_ptr),
    .take_class_o(take_class), .take_i(take),
    .give_i(give), .give0_index_i, .give1_index_i, .give2_index_i
  );

  // Buffers 0 and 1 have 64 words each, 2 and 3 have 16.
  logic [Total-1:0] fits;
  logic [1:0]       best;
  assign fits = ~out_q & {{2{take_len_i <= 16'd1024}}, {2{take_len_i <= 16'd4096}}};
  assign best = fits[2] ? 2'd2 : fits[3] ? 2'd3 : fits[0] ? 2'd0 : 2'd1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      out_q <= '0;
    end else begin
      out_q <= (out_q & ~given) | (Total'(take) << take_index);
      not_out_twice: assert (!take || !out_q[take_index]);
      one_if_there_is_one: assert (take_ready == (fits != '0));
      the_best: assert (!take_ready || take_index == best);
      its_class: assert (!take_ready || take_class == 8'(best[1]));
      its_place: assert (!take_ready || take_ptr ==
                         (best[1] ? 16'd128 + {11'd0, best[0], 4'd0} : {9'd0, best[0], 6'd0}));
    end
  end

endmodule
