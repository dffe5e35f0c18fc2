// The memory of messages: one port to write, with an enable for each byte, and one to read. What is
// read stays on the output until something else is read, so that a reader may wait. A word is not
// read in the cycle that writes it: memories differ in what comes out then.
module message_ram #(
  // Words of 64 bytes.
  parameter int unsigned Words = 9728
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         write_valid_i,
  input  logic [15:0]  write_addr_i,
  input  logic [63:0]  write_enables_i,
  input  logic [511:0] write_data_i,
  input  logic         read_valid_i,
  input  logic [15:0]  read_addr_i,
  // The cycle after.
  output logic [511:0] read_data_o
);

  if (Words < 2 || Words > 65536) begin : gen_refused
    $error("Words has to be from 2 to 65536: that is what a buffer pointer reaches");
  end

  localparam int unsigned AddrW = $clog2(Words);

  logic [511:0]     words_q [Words];
  logic [511:0]     read_data_q;
  logic [AddrW-1:0] write_at, read_at;

  assign write_at = write_addr_i[AddrW-1:0];
  assign read_at  = read_addr_i[AddrW-1:0];

  always_ff @(posedge clk_i) begin
    if (write_valid_i) begin
      for (int unsigned i = 0; i < 64; i++) begin
        if (write_enables_i[i]) words_q[write_at][8*i +: 8] <= write_data_i[8*i +: 8];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_valid_i) read_data_q <= words_q[read_at];
  end

  assign read_data_o = read_data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      write_inside: assert (!write_valid_i || 32'(write_addr_i) < Words);
      read_inside: assert (!read_valid_i || 32'(read_addr_i) < Words);
      no_read_of_what_is_written: assert (!write_valid_i || !read_valid_i ||
                                          write_addr_i != read_addr_i);
    end
  end

endmodule
