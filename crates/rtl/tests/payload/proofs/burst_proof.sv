// A writer and a reader of one memory, and one word of it, whichever: a burst writes it once if it
// is in the burst's place and else never, and it is not read while it is promised.
module burst_proof (
  input logic        clk_i,
  input logic        rst_ni,
  // The word, chosen in the first cycle.
  input logic [15:0] word_i,
  input logic        write_begin_i,
  input logic [14:0] write_addr_i,
  input logic [7:0]  write_bytes_i,
  input logic        in_valid_i,
  input logic        in_last_i,
  input logic [5:0]  in_bytes_i,
  input logic        read_begin_i,
  input logic [14:0] read_addr_i,
  input logic [7:0]  read_bytes_i,
  input logic        out_ready_i
);

  import stream_pkg::*;

  beat_t        in, out;
  logic         begin_ready, in_ready, write, read, read_ready, out_valid, done, wrong_length;
  logic         out_user, done_user, unused;
  logic [15:0]  write_addr, read_addr;
  logic [63:0]  enables;
  logic [511:0] data;
  logic [10:0]  pending;

  assign in.last  = in_last_i;
  assign in.bytes = in_last_i ? 7'(in_bytes_i) : 7'd64;
  assign in.data  = '0;
  assign unused   = ^{out, out_valid, read_ready, in_ready, wrong_length, enables, data, done,
                      out_user, done_user};

  burst_writer u_writer (
    .clk_i, .rst_ni,
    .begin_valid_i(write_begin_i), .begin_ready_o(begin_ready),
    .begin_addr_i({1'b0, write_addr_i}), .begin_bytes_i({9'd0, write_bytes_i}),
    .in_valid_i, .in_ready_o(in_ready), .in_beat_i(in),
    .write_valid_o(write), .write_addr_o(write_addr), .write_enables_o(enables),
    .write_data_o(data), .pending_o(pending), .wrong_length_o(wrong_length)
  );

  burst_reader #(.UserWidth(1)) u_reader (
    .clk_i, .rst_ni,
    .begin_valid_i(read_begin_i && read_bytes_i != '0), .begin_ready_o(read_ready),
    .begin_addr_i({1'b0, read_addr_i}), .begin_bytes_i({9'd0, read_bytes_i}), .begin_user_i(1'b0),
    .pending_i(pending), .pending_addr_i(write_addr),
    .read_valid_o(read), .read_addr_o(read_addr), .read_data_i('0),
    .out_valid_o(out_valid), .out_ready_i, .out_beat_o(out), .out_user_o(out_user),
    .done_valid_o(done), .done_user_o(done_user)
  );

  // Whether the word is promised; `chosen_q` from the second cycle on.
  logic        chosen_q, promised_q, belongs;
  logic [15:0] word_q;
  assign belongs = word_q >= {1'b0, write_addr_i} &&
                   word_q - {1'b0, write_addr_i} < 16'(beats({9'd0, write_bytes_i}));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      chosen_q   <= 1'b0;
      promised_q <= 1'b0;
      word_q     <= '0;
    end else begin
      chosen_q <= 1'b1;
      if (!chosen_q) word_q <= word_i;
      if (write_begin_i && begin_ready) promised_q <= belongs;
      else if (write && write_addr == word_q) promised_q <= 1'b0;
      chosen_first: assume (chosen_q || !write_begin_i);
      written_if_it_is_promised: assert (!write || write_addr != word_q || promised_q);
      all_is_written: assert (!write_begin_i || !begin_ready || !promised_q ||
                              (write && write_addr == word_q));
      not_read_while_it_is_promised: assert (!read || read_addr != word_q || !promised_q);
    end
  end

endmodule
