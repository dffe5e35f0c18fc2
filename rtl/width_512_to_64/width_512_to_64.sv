// Beats of 64 bytes become words of 8. A word each cycle, without a bubble between beats or frames.
module width_512_to_64 (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  stream_pkg::beat_t in_beat_i,
  output logic              out_valid_o,
  input  logic              out_ready_i,
  output stream_pkg::word_t out_word_o
);

  import stream_pkg::*;

  localparam int unsigned WordBytes = 8;

  // What is left of a beat, its next word lowest.
  logic [511:0] data_q;
  logic [6:0]   left_q;
  logic         last_q;
  logic         ends, give, take;

  assign ends        = left_q <= 7'(WordBytes);
  assign out_valid_o = left_q != '0;
  assign give        = out_valid_o && out_ready_i;
  assign in_ready_o  = !out_valid_o || (give && ends);
  assign take        = in_valid_i && in_ready_o;

  assign out_word_o.data  = data_q[63:0];
  assign out_word_o.bytes = ends ? left_q[3:0] : 4'(WordBytes);
  assign out_word_o.last  = ends && last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q <= '0;
    end else begin
      if (take) left_q <= in_beat_i.bytes;
      else if (give) left_q <= ends ? '0 : left_q - 7'(WordBytes);
      full_beats_but_the_last: assert (!take || in_beat_i.last || in_beat_i.bytes == 7'(BeatBytes));
      no_empty_beat: assert (!take || in_beat_i.bytes inside {[7'd1:7'd64]});
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      data_q <= clean(in_beat_i.data, in_beat_i.bytes);
      last_q <= in_beat_i.last;
    end else if (give) begin
      data_q <= {64'd0, data_q[511:64]};
    end
  end

endmodule
