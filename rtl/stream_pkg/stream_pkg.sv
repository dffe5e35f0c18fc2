// Streams of the data path: beats of 64 bytes, or words of 8 at a MAC or an application.
//
// Byte i of a beat is data[8*i +: 8]. All beats but the last are full. What is beyond the bytes of
// a last beat is ignored in inputs and zero in outputs. `valid` waits for no `ready`, and what is
// offered stays until it is taken.
package stream_pkg;

  localparam int unsigned BeatBytes = 64;

  typedef struct packed {
    logic         last;
    logic [6:0]   bytes;  // 1 to 64; an empty payload is one beat of 0 bytes
    logic [511:0] data;
  } beat_t;

  typedef struct packed {
    logic        last;
    logic [3:0]  bytes;  // 1 to 8
    logic [63:0] data;
  } word_t;

  // A bit for each of the first `bytes` bytes of a beat.
  function automatic logic [63:0] enables(logic [6:0] bytes);
    for (int unsigned i = 0; i < BeatBytes; i++) enables[i] = 7'(i) < bytes;
  endfunction

  // Beats of so many bytes.
  function automatic logic [10:0] beats(logic [16:0] bytes);
    return bytes[16:6] + 11'(bytes[5:0] != '0);
  endfunction

  // Bytes of the last of them; 64 for none.
  function automatic logic [6:0] last_bytes(logic [5:0] bytes);
    return {bytes == '0, bytes};
  endfunction

  // Data of a beat without what is beyond its bytes.
  function automatic logic [511:0] clean(logic [511:0] data, logic [6:0] bytes);
    logic [63:0] kept;
    kept = enables(bytes);
    for (int unsigned i = 0; i < BeatBytes; i++) begin
      clean[8*i +: 8] = kept[i] ? data[8*i +: 8] : 8'h00;
    end
  endfunction

  // Bytes of a packet of a message: 1024, or the message's rest.
  function automatic logic [16:0] packet_bytes(logic [15:0] msg_len, logic [5:0] pkt_offset);
    logic [15:0] left;
    left = msg_len - {pkt_offset, 10'd0};
    return left > 16'd1024 ? 17'd1024 : 17'(left);
  endfunction

endpackage
