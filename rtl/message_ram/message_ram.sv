// Messages' bytes, in words of 64 bytes (specs/nanotransport.md, section 5.1). One write and one
// read in a cycle; what is read is there one cycle later, as the writes of the cycles before the
// read have left it, and stays until the next read.
module message_ram #(
  parameter int unsigned Words = 9728,
  localparam int unsigned AddrW = $clog2(Words)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             write_i,
  input  logic [AddrW-1:0] write_addr_i,
  input  logic [511:0]     write_data_i,
  // Which bytes of the word.
  input  logic [63:0]      write_keep_i,
  input  logic             read_i,
  input  logic [AddrW-1:0] read_addr_i,
  output logic [511:0]     read_data_o
);

  logic [63:0][7:0] words_q [Words];
  logic [63:0][7:0] write_data;
  assign write_data = write_data_i;

  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < 64; b++) begin
      if (write_i && write_keep_i[b]) words_q[write_addr_i][b] <= write_data[b];
    end
    if (read_i) read_data_o <= words_q[read_addr_i];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      write_inside: assert (!write_i || 32'(write_addr_i) < Words);
      read_inside: assert (!read_i || 32'(read_addr_i) < Words);
    end
  end

endmodule
