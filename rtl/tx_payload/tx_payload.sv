// Packetization's payload path: a packet's payload from the message RAM, as a stream of words
// (specs/nanotransport.md, section 6). A packet is taken when all words of the one before have been
// read; its first word comes two cycles later, the others in the cycles that follow, as long as
// they are taken.
module tx_payload (
  input  logic         clk_i,
  input  logic         rst_ni,
  // A packet: its message's buffer, in words, and length, in bytes, and its place.
  input  logic         valid_i,
  output logic         ready_o,
  input  logic [15:0]  buf_ptr_i,
  input  logic [15:0]  msg_len_i,
  input  logic [7:0]   pkt_offset_i,
  // To the message RAM, whose answer comes a cycle later and stays.
  output logic         read_o,
  output logic [15:0]  read_addr_o,
  input  logic [511:0] read_data_i,
  output logic         valid_o,
  input  logic         ready_i,
  output logic [511:0] data_o,
  output logic [63:0]  keep_o,
  output logic         last_o
);

  // Bytes of the packet: 1024, or what is left of its message.
  logic [15:0] left;
  logic [10:0] bytes;
  assign left  = msg_len_i - {pkt_offset_i[5:0], 10'b0};
  assign bytes = left > 16'd1024 ? 11'd1024 : left[10:0];

  // Words that are still to be read, and their bytes.
  logic        busy_q;
  logic [15:0] addr_q;
  logic [10:0] bytes_q;
  // The word that the RAM gives.
  logic        word_q, word_last_q;
  logic [6:0]  word_bytes_q;

  logic takes, moves;
  assign moves   = !word_q || ready_i;
  assign ready_o = !busy_q && moves;
  assign takes   = valid_i && ready_o;

  assign read_o      = busy_q && moves;
  assign read_addr_o = read_o ? addr_q : '0;

  assign valid_o = word_q;
  assign data_o  = word_q ? read_data_i & mask(word_bytes_q) : '0;
  assign last_o  = word_q && word_last_q;
  always_comb begin
    for (int unsigned b = 0; b < 64; b++) keep_o[b] = word_q && 7'(b) < word_bytes_q;
  end

  // What the RAM has behind the end of a message is of another.
  function automatic logic [511:0] mask(logic [6:0] count);
    for (int unsigned b = 0; b < 64; b++) mask[8*b +: 8] = {8{7'(b) < count}};
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q       <= 1'b0;
      addr_q       <= '0;
      bytes_q      <= '0;
      word_q       <= 1'b0;
      word_last_q  <= 1'b0;
      word_bytes_q <= '0;
    end else begin
      if (moves) word_q <= busy_q;
      if (read_o) begin
        word_last_q  <= bytes_q <= 11'd64;
        word_bytes_q <= bytes_q <= 11'd64 ? bytes_q[6:0] : 7'd64;
        busy_q       <= bytes_q > 11'd64;
        addr_q       <= addr_q + 16'd1;
        bytes_q      <= bytes_q - 11'd64;
      end
      if (takes) begin
        busy_q  <= 1'b1;
        addr_q  <= buf_ptr_i + {4'b0, pkt_offset_i, 4'b0};
        bytes_q <= bytes;
      end
      of_the_message: assert (!takes || {pkt_offset_i, 10'b0} < 18'(msg_len_i));
    end
  end

endmodule
