// The sending end of the data path: headers of any length, from the deparser, and the payload
// behind them become frames. Back to back, without a bubble: a frame takes as many cycles as it has
// beats.
module header_merge #(
  // Bytes of the longest header, 1 to 192.
  parameter int unsigned HeaderBytes = 64
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  // A header of 1 to HeaderBytes bytes, and whether a payload of at least one byte belongs to it.
  // It is taken with its last byte.
  input  logic                     header_valid_i,
  output logic                     header_ready_o,
  input  logic [8*HeaderBytes-1:0] header_i,
  input  logic [7:0]               header_bytes_i,
  input  logic                     header_payload_i,
  input  logic                     payload_valid_i,
  output logic                     payload_ready_o,
  input  stream_pkg::beat_t        payload_beat_i,
  output logic                     frame_valid_o,
  input  logic                     frame_ready_i,
  output stream_pkg::beat_t        frame_beat_o
);

  import stream_pkg::*;

  if (HeaderBytes < 1 || HeaderBytes > 192) begin : gen_refused
    $error("HeaderBytes has to be from 1 to 192");
  end

  localparam int unsigned HeaderBeats = (HeaderBytes + BeatBytes - 1) / BeatBytes;

  typedef enum logic [1:0] {Header, Payload, Rest} state_e;

  state_e       state_q, state_d;
  logic [1:0]   at_q, at_d;
  // What did not fit into the beat before: `rest_bytes_q` of it.
  logic [511:0] rest_q;
  logic [6:0]   rest_bytes_q;

  // The header's beat of this cycle.
  logic [511:0] header_beat;
  logic [7:0]   header_left;
  assign header_left = header_bytes_i - {at_q, 6'd0};
  always_comb begin
    logic [512*HeaderBeats-1:0] padded;
    logic [511:0] data;
    padded = (512*HeaderBeats)'(header_i);
    data   = '0;
    for (int unsigned i = 0; i < HeaderBeats; i++) begin
      if (at_q == 2'(i)) data = padded[512*i +: 512];
    end
    header_beat = clean(data, header_left > 8'(BeatBytes) ? 7'(BeatBytes) : header_left[6:0]);
  end

  // What stands before the payload in this beat, and the payload moved behind it.
  logic [511:0]  ahead;
  logic [6:0]    ahead_bytes;
  logic [1023:0] moved;
  logic [7:0]    sum;
  assign ahead       = state_q == Header ? header_beat : rest_q;
  assign ahead_bytes = state_q == Header ? header_left[6:0] : rest_bytes_q;
  assign moved        = 1024'(clean(payload_beat_i.data, payload_beat_i.bytes))
                        << {ahead_bytes[5:0], 3'd0};
  assign sum          = 8'(ahead_bytes) + 8'(payload_beat_i.bytes);

  // Whether the beat is of header alone, and whether of what was left alone.
  logic whole_header, joins, give;
  assign whole_header = state_q == Header &&
                        (header_left >= 8'(BeatBytes) || !header_payload_i);
  assign joins        = state_q == Payload || (state_q == Header && !whole_header);

  always_comb begin
    frame_beat_o.data  = ahead;
    frame_beat_o.bytes = 7'(BeatBytes);
    frame_beat_o.last  = 1'b0;
    if (joins) begin
      frame_beat_o.data = ahead | moved[511:0];
      frame_beat_o.last = payload_beat_i.last && sum <= 8'(BeatBytes);
      if (frame_beat_o.last) frame_beat_o.bytes = sum[6:0];
    end else if (state_q == Rest) begin
      frame_beat_o.bytes = rest_bytes_q;
      frame_beat_o.last  = 1'b1;
    end else if (header_left <= 8'(BeatBytes)) begin
      frame_beat_o.bytes = header_left[6:0];
      frame_beat_o.last  = !header_payload_i;
    end
  end

  always_comb begin
    unique case (state_q)
      Header:  frame_valid_o = header_valid_i && (whole_header || payload_valid_i);
      Payload: frame_valid_o = payload_valid_i;
      default: frame_valid_o = 1'b1;
    endcase
  end
  assign give            = frame_valid_o && frame_ready_i;
  assign payload_ready_o = give && joins;
  assign header_ready_o  = give && state_q == Header && header_left <= 8'(BeatBytes);

  always_comb begin
    state_d = state_q;
    at_d    = at_q;
    if (give) begin
      if (state_q == Header) at_d = header_ready_o ? '0 : at_q + 2'd1;
      if (frame_beat_o.last) state_d = Header;
      else if (joins) state_d = payload_beat_i.last ? Rest : Payload;
      else if (header_ready_o) state_d = Payload;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Header;
      at_q    <= '0;
    end else begin
      state_q <= state_d;
      at_q    <= at_d;
      header_fits: assert (!header_valid_i || header_bytes_i - 8'd1 < 8'(HeaderBytes));
      full_beats_but_the_last: assert (!payload_ready_o || payload_beat_i.last ||
                                       payload_beat_i.bytes == 7'(BeatBytes));
      no_empty_beat: assert (!payload_ready_o || payload_beat_i.bytes inside {[7'd1:7'd64]});
    end
  end

  always_ff @(posedge clk_i) begin
    if (give) begin
      rest_q       <= moved[1023:512];
      rest_bytes_q <= !joins ? '0 : payload_beat_i.last ? 7'(sum - 8'(BeatBytes)) : ahead_bytes;
    end
  end

endmodule
