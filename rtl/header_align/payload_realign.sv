// The payload of frames without the first bytes of each, a beat of the frame taken each cycle as
// long as the payload is.
//
// Of a header of `cut_bytes_i` the whole beats are passed over; what remains is a shift by less
// than a beat, so a beat of payload takes the end of one beat of the frame and the beginning of the
// next.
module payload_realign (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              frame_valid_i,
  output logic              frame_ready_o,
  input  stream_pkg::beat_t frame_beat_i,
  // Of the frame whose beat is there: the length of its header, and whether nothing of it is
  // wanted. Taken with the frame's last beat.
  input  logic              cut_valid_i,
  output logic              cut_ready_o,
  input  logic [7:0]        cut_bytes_i,
  input  logic              cut_drop_i,
  output logic              payload_valid_o,
  input  logic              payload_ready_i,
  output stream_pkg::beat_t payload_beat_o
);

  import stream_pkg::*;

  // The beat that the next one completes.
  logic         held_q, held_last_q;
  logic [511:0] data_q;
  logic [6:0]   bytes_q;
  logic [5:0]   shift_q;
  // Beats of this frame that are gone, up to 3.
  logic [1:0]   gone_q;

  logic known, in_header, pass, complete, ends, give, free, take;

  assign known     = frame_valid_i && cut_valid_i;
  assign in_header = gone_q < cut_bytes_i[7:6];
  // A frame that ends in what is passed over leaves an empty payload behind.
  assign pass      = cut_drop_i || (in_header && !frame_beat_i.last);

  // A beat without a shift is a beat of payload as it is; the frame's last has nothing to wait for.
  assign complete = held_last_q || shift_q == '0;
  assign ends     = frame_beat_i.last && frame_beat_i.bytes <= 7'(shift_q);

  assign payload_valid_o = held_q && (complete || known);
  assign give            = payload_valid_o && payload_ready_i;
  assign free            = !held_q || give;
  assign frame_ready_o   = cut_valid_i && (pass || free);
  assign take            = frame_valid_i && frame_ready_o;
  assign cut_ready_o     = frame_valid_i && frame_ready_o && frame_beat_i.last;

  logic [1023:0] both;
  assign both = {complete ? 512'd0 : frame_beat_i.data, data_q} >> {shift_q, 3'd0};
  assign payload_beat_o.data = both[511:0];
  logic unused_both;
  assign unused_both = ^both[1023:512];

  always_comb begin
    payload_beat_o.last  = complete ? held_last_q : ends;
    payload_beat_o.bytes = 7'(BeatBytes);
    if (complete) begin
      if (held_last_q) payload_beat_o.bytes = bytes_q > 7'(shift_q) ? bytes_q - 7'(shift_q) : '0;
    end else if (ends) begin
      payload_beat_o.bytes = 7'(BeatBytes) - 7'(shift_q) + frame_beat_i.bytes;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
      gone_q <= '0;
    end else begin
      if (take) begin
        if (frame_beat_i.last) gone_q <= '0;
        else if (gone_q != '1) gone_q <= gone_q + 2'd1;
      end
      if (free) held_q <= take && !pass && !(held_q && !complete && ends);
    end
  end

  always_ff @(posedge clk_i) begin
    if (take && !pass) begin
      data_q      <= in_header ? '0 : frame_beat_i.data;
      bytes_q     <= in_header ? '0 : frame_beat_i.bytes;
      held_last_q <= frame_beat_i.last;
      shift_q     <= cut_bytes_i[5:0];
    end
  end

endmodule
