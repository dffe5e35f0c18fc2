// Writes a stream into a memory of 64-byte words: `begin_bytes_i` bytes from word `begin_addr_i`
// on. A beat each cycle, without a bubble between bursts.
//
// A stream may be longer than it should, or shorter: what is too much is dropped, what is missing
// is zero. So a burst changes no byte outside of its place, and nothing of what lay there before
// remains.
module burst_writer (
  input  logic              clk_i,
  input  logic              rst_ni,
  // A burst, taken as the one before ends or later. One of no bytes drops its stream.
  input  logic              begin_valid_i,
  output logic              begin_ready_o,
  input  logic [15:0]       begin_addr_i,
  input  logic [16:0]       begin_bytes_i,
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  stream_pkg::beat_t in_beat_i,
  output logic              write_valid_o,
  output logic [15:0]       write_addr_o,
  output logic [63:0]       write_enables_o,
  output logic [511:0]      write_data_o,
  // From the cycle after a burst is taken: how many words it has still to write, from
  // `write_addr_o` on, the one of this cycle among them.
  output logic [10:0]       pending_o,
  // A stream of another length than its burst has ended.
  output logic              wrong_length_o
);

  import stream_pkg::*;

  typedef enum logic [1:0] {Idle, Write, Fill, Drop} state_e;

  state_e      state_q, state_d;
  logic [15:0] addr_q;
  logic [10:0] words_q;
  logic [6:0]  last_bytes_q, word_bytes;
  // Of a burst that drops all, nothing is too much.
  logic        dropped_q;
  logic        take, final_word, ends, begins;

  assign in_ready_o = state_q == Write || state_q == Drop;
  assign take       = in_valid_i && in_ready_o;
  assign final_word = words_q == 11'd1;
  assign word_bytes = final_word ? last_bytes_q : 7'(BeatBytes);

  assign write_valid_o   = (take && state_q == Write) || state_q == Fill;
  assign write_addr_o    = addr_q;
  assign write_enables_o = enables(word_bytes);
  assign write_data_o    = state_q == Fill ? '0 : clean(in_beat_i.data, in_beat_i.bytes);

  assign pending_o       = words_q;

  // The burst's last cycle: of the stream or of the zeros, whichever is later.
  assign ends = (take && in_beat_i.last && (final_word || state_q == Drop)) ||
                (state_q == Fill && final_word);
  assign begin_ready_o = state_q == Idle || ends;
  assign begins        = begin_valid_i && begin_ready_o;

  assign wrong_length_o = take && !dropped_q &&
      (state_q == Drop ? in_beat_i.last :
       in_beat_i.last && (!final_word || in_beat_i.bytes != last_bytes_q));

  always_comb begin
    state_d = state_q;
    if (begins) state_d = begin_bytes_i == '0 ? Drop : Write;
    else if (ends) state_d = Idle;
    else if (take && state_q == Write && in_beat_i.last) state_d = Fill;
    else if (take && state_q == Write && final_word) state_d = Drop;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      words_q <= '0;
    end else begin
      state_q <= state_d;
      words_q <= begins ? beats(begin_bytes_i) : words_q - 11'(write_valid_o);
      full_beats_but_the_last: assert (!take || in_beat_i.last || in_beat_i.bytes == 7'(BeatBytes));
      writes_what_is_left: assert ((state_q == Write || state_q == Fill) == (words_q != '0));
    end
  end

  always_ff @(posedge clk_i) begin
    if (begins) begin
      addr_q       <= begin_addr_i;
      last_bytes_q <= last_bytes(begin_bytes_i[5:0]);
      dropped_q    <= begin_bytes_i == '0;
    end else if (write_valid_o) begin
      addr_q <= addr_q + 16'd1;
    end
  end

endmodule
