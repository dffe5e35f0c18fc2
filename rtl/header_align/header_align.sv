// The receiving end of the data path: a window onto the first bytes of each frame for the ingress
// pipeline, and the payload behind a header whose length the pipeline says later.
//
// Windows and lengths come one for each frame, in order, and wait for nobody: the pipeline takes a
// packet whenever one comes (C10). Until the pipeline has said where the payload of a frame begins,
// the frame waits in a queue of `Beats`. At full rate `frame_ready_o` never falls if that holds
// what arrives between a frame's first beat and the pipeline's word.
module header_align #(
  // Bytes of the window, 1 to 192.
  parameter int unsigned HeaderBytes = 64,
  // Places of the queue, a power of two.
  parameter int unsigned Beats = 64
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     frame_valid_i,
  output logic                     frame_ready_o,
  input  stream_pkg::beat_t        frame_beat_i,
  // The cycle after the beat that completes it: the window, zero beyond the frame, and how many of
  // its bytes are the frame's.
  output logic                     window_valid_o,
  output logic [8*HeaderBytes-1:0] window_o,
  output logic [7:0]               window_bytes_o,
  // The cycle after the frame's last beat: its bytes. Never before its window.
  output logic                     length_valid_o,
  output logic [15:0]              length_o,
  // One for each window, in the window's cycle or later: bytes of the header (0 to 255), and
  // whether the frame has no payload that is wanted. Then nothing of it comes out.
  input  logic                     parsed_valid_i,
  input  logic [7:0]               parsed_bytes_i,
  input  logic                     parsed_drop_i,
  // What of a frame is behind its header; nothing behind it is one beat of 0 bytes.
  output logic                     payload_valid_o,
  input  logic                     payload_ready_i,
  output stream_pkg::beat_t        payload_beat_o
);

  import stream_pkg::*;

  if (HeaderBytes < 1 || HeaderBytes > 192) begin : gen_refused
    $error("HeaderBytes has to be from 1 to 192");
  end

  localparam int unsigned WindowBeats = (HeaderBytes + BeatBytes - 1) / BeatBytes;

  logic  take;
  beat_t beat;
  assign take = frame_valid_i && frame_ready_o;
  always_comb begin
    beat      = frame_beat_i;
    beat.data = clean(frame_beat_i.data, frame_beat_i.bytes);
  end

  // The window. `at_q` counts the beats of this frame that are in it.
  logic [1:0]                 at_q;
  logic                       in_window, first, window_valid_q, length_valid_q;
  logic [512*WindowBeats-1:0] window_q;
  logic [7:0]                 window_bytes_q, seen;
  logic [15:0]                length_q;

  assign in_window = at_q < 2'(WindowBeats);
  assign first     = at_q == '0;
  assign seen      = {at_q, 6'd0} + 8'(beat.bytes);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      at_q           <= '0;
      window_valid_q <= 1'b0;
      length_valid_q <= 1'b0;
    end else begin
      window_valid_q <= take && in_window && (beat.last || at_q == 2'(WindowBeats - 1));
      length_valid_q <= take && beat.last;
      if (take) at_q <= beat.last ? '0 : at_q + 2'(in_window);
      full_beats_but_the_last: assert (!take || beat.last || beat.bytes == 7'(BeatBytes));
      no_empty_beat: assert (!take || beat.bytes inside {[7'd1:7'd64]});
      length_in_16_bits: assert (!take || first || length_q <= 16'hffff - 16'(beat.bytes));
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) length_q <= (first ? '0 : length_q) + 16'(beat.bytes);
    if (take && in_window) begin
      window_bytes_q <= seen < 8'(HeaderBytes) ? seen : 8'(HeaderBytes);
      for (int unsigned i = 0; i < WindowBeats; i++) begin
        if (at_q == 2'(i)) window_q[512*i +: 512] <= beat.data;
        else if (first) window_q[512*i +: 512] <= '0;
      end
    end
  end

  assign window_valid_o = window_valid_q;
  assign window_o       = window_q[8*HeaderBytes-1:0];
  assign window_bytes_o = window_bytes_q;
  assign length_valid_o = length_valid_q;
  assign length_o       = length_q;

  if (8 * HeaderBytes < 512 * WindowBeats) begin : gen_unused
    logic unused_window;
    assign unused_window = ^window_q[512*WindowBeats-1:8*HeaderBytes];
  end

  // The queue, and what the pipeline has said. It has answered no more frames than have a beat in
  // the queue, or one alone whose beats have all left it: so that queue needs no more places.
  logic  waiting_valid, waiting_ready, cut_valid, cut_ready, cut_drop, parsed_ready;
  logic [7:0] cut_bytes;
  beat_t waiting;

  stream_fifo #(.Width($bits(beat_t)), .Depth(Beats)) u_frames (
    .clk_i, .rst_ni,
    .in_valid_i(frame_valid_i), .in_ready_o(frame_ready_o), .in_data_i(beat),
    .out_valid_o(waiting_valid), .out_ready_i(waiting_ready), .out_data_o(waiting)
  );

  stream_fifo #(.Width(9), .Depth(Beats)) u_parsed (
    .clk_i, .rst_ni,
    .in_valid_i(parsed_valid_i), .in_ready_o(parsed_ready),
    .in_data_i({parsed_drop_i, parsed_bytes_i}),
    .out_valid_o(cut_valid), .out_ready_i(cut_ready), .out_data_o({cut_drop, cut_bytes})
  );

  payload_realign u_realign (
    .clk_i, .rst_ni,
    .frame_valid_i(waiting_valid), .frame_ready_o(waiting_ready), .frame_beat_i(waiting),
    .cut_valid_i(cut_valid), .cut_ready_o(cut_ready),
    .cut_bytes_i(cut_bytes), .cut_drop_i(cut_drop),
    .payload_valid_o, .payload_ready_i, .payload_beat_o
  );

  // Windows that the pipeline has not answered.
  logic [15:0] asked_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asked_q <= '0;
    end else begin
      asked_q <= asked_q + 16'(window_valid_q) - 16'(parsed_valid_i);
      answers_what_was_asked: assert (!parsed_valid_i || asked_q != '0 || window_valid_q);
      room_for_each_answer: assert (!parsed_valid_i || parsed_ready);
    end
  end

endmodule
