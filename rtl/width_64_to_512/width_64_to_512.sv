// Words of 8 bytes become beats of 64. A word each cycle, without a bubble between beats or frames.
module width_64_to_512 (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  stream_pkg::word_t in_word_i,
  output logic              out_valid_o,
  input  logic              out_ready_i,
  output stream_pkg::beat_t out_beat_o
);

  logic [7:0][63:0] words_q;
  logic [2:0]       at_q;
  logic [6:0]       bytes_q;
  logic             last_q, whole_q;
  logic             take;
  logic [63:0]      word;

  assign in_ready_o = !whole_q || out_ready_i;
  assign take       = in_valid_i && in_ready_o;

  always_comb begin
    for (int unsigned i = 0; i < 8; i++) begin
      word[8*i +: 8] = 4'(i) < in_word_i.bytes ? in_word_i.data[8*i +: 8] : 8'h00;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      at_q    <= '0;
      whole_q <= 1'b0;
    end else begin
      if (take) begin
        at_q    <= in_word_i.last ? '0 : at_q + 3'd1;
        whole_q <= in_word_i.last || at_q == 3'd7;
      end else if (out_ready_i) begin
        whole_q <= 1'b0;
      end
      full_words_but_the_last: assert (!take || in_word_i.last || in_word_i.bytes == 4'd8);
      no_empty_word: assert (!take || in_word_i.bytes inside {[4'd1:4'd8]});
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      last_q  <= in_word_i.last;
      bytes_q <= {1'b0, at_q, 3'd0} + 7'(in_word_i.bytes);
      for (int unsigned i = 0; i < 8; i++) begin
        // The first word of a beat clears the others: a frame may end before they come.
        if (at_q == 3'(i)) words_q[i] <= word;
        else if (at_q == '0) words_q[i] <= '0;
      end
    end
  end

  assign out_valid_o      = whole_q;
  assign out_beat_o.last  = last_q;
  assign out_beat_o.bytes = bytes_q;
  assign out_beat_o.data  = words_q;

endmodule
