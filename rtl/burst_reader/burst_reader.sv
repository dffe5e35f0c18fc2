// Reads a stream out of a memory of 64-byte words: `begin_bytes_i` bytes from word `begin_addr_i`
// on. A beat each cycle, without a bubble between bursts; the memory's output register is the only
// stage.
//
// A word that a writer has promised and not yet written is waited for, so the reader may follow
// close behind the writer and never overtakes it.
module burst_reader #(
  // Bits that go with each burst.
  parameter int unsigned UserWidth = 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  // At least one byte.
  input  logic                 begin_valid_i,
  output logic                 begin_ready_o,
  input  logic [15:0]          begin_addr_i,
  input  logic [16:0]          begin_bytes_i,
  input  logic [UserWidth-1:0] begin_user_i,
  // So many words from `pending_addr_i` on are still to be written.
  input  logic [10:0]          pending_i,
  input  logic [15:0]          pending_addr_i,
  output logic                 read_valid_o,
  output logic [15:0]          read_addr_o,
  input  logic [511:0]         read_data_i,
  output logic                 out_valid_o,
  input  logic                 out_ready_i,
  output stream_pkg::beat_t    out_beat_o,
  output logic [UserWidth-1:0] out_user_o,
  // In the cycle of its last read: the burst, which needs its words no longer.
  output logic                 done_valid_o,
  output logic [UserWidth-1:0] done_user_o
);

  import stream_pkg::*;

  logic                 busy_q, out_valid_q, out_last_q;
  logic [15:0]          addr_q, ahead;
  logic [10:0]          words_q;
  logic [6:0]           last_bytes_q, out_bytes_q;
  logic [UserWidth-1:0] user_q, out_user_q;
  logic                 blocked, read, final_word, begins;

  assign ahead      = addr_q - pending_addr_i;
  assign blocked    = ahead < 16'(pending_i);
  assign read       = busy_q && !blocked && (!out_valid_q || out_ready_i);
  assign final_word = words_q == 11'd1;

  assign read_valid_o  = read;
  assign read_addr_o   = addr_q;
  assign begin_ready_o = !busy_q || done_valid_o;
  assign begins        = begin_valid_i && begin_ready_o;
  assign done_valid_o  = read && final_word;
  assign done_user_o   = user_q;

  assign out_valid_o      = out_valid_q;
  assign out_beat_o.last  = out_last_q;
  assign out_beat_o.bytes = out_bytes_q;
  assign out_beat_o.data  = clean(read_data_i, out_bytes_q);
  assign out_user_o       = out_user_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      busy_q      <= begins || (busy_q && !done_valid_o);
      out_valid_q <= read || (out_valid_q && !out_ready_i);
      something_to_read: assert (!begins || begin_bytes_i != '0);
      // Buffers do not go around the end of the memory.
      never_overtakes: assert (!read || addr_q < pending_addr_i ||
                               {1'b0, addr_q} >= 17'(pending_addr_i) + 17'(pending_i));
    end
  end

  always_ff @(posedge clk_i) begin
    if (begins) begin
      addr_q       <= begin_addr_i;
      words_q      <= beats(begin_bytes_i);
      last_bytes_q <= last_bytes(begin_bytes_i[5:0]);
      user_q       <= begin_user_i;
    end else if (read) begin
      addr_q  <= addr_q + 16'd1;
      words_q <= words_q - 11'd1;
    end
    if (read) begin
      out_last_q  <= final_word;
      out_bytes_q <= final_word ? last_bytes_q : 7'(BeatBytes);
      out_user_q  <= user_q;
    end
  end

endmodule
