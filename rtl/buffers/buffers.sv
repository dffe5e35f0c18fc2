// Message buffers of fixed size classes with their free lists (docs/nic.md, rule 6).
//
// A message gets the lowest free buffer of the smallest class that is large enough and has one, of
// equal classes of the first. What is given back in a cycle can be taken in the next one.
module buffers #(
  parameter int unsigned Classes = 1,
  // Bytes of a buffer, and how many there are: class 0 in the lowest 32 bits.
  parameter logic [Classes*32-1:0] ClassBytes = {Classes{32'd38912}},
  parameter logic [Classes*32-1:0] ClassBuffers = {Classes{32'd16}},
  localparam int unsigned Total = total(),
  localparam int unsigned BufW = Total > 1 ? $clog2(Total) : 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  // Whether there is one for a message of so many bytes, and which.
  input  logic [15:0]     take_len_i,
  output logic            take_ready_o,
  output logic [BufW-1:0] take_index_o,
  // Where it begins, in words of 64 bytes, and its class.
  output logic [15:0]     take_ptr_o,
  output logic [7:0]      take_class_o,
  // It is taken.
  input  logic            take_i,
  // Where a buffer begins.
  input  logic [BufW-1:0] of_index_i,
  output logic [15:0]     of_ptr_o,
  input  logic [2:0]      give_i,
  input  logic [BufW-1:0] give0_index_i,
  input  logic [BufW-1:0] give1_index_i,
  input  logic [BufW-1:0] give2_index_i
);

  function automatic int unsigned total();
    total = 0;
    for (int unsigned c = 0; c < Classes; c++) total += ClassBuffers[32*c +: 32];
  endfunction

  function automatic int unsigned bytes(int unsigned class_index);
    return ClassBytes[32*class_index +: 32];
  endfunction

  // The class of buffer `index`: the buffers of all classes stand one after another.
  function automatic int unsigned class_of(int unsigned index);
    int unsigned first;
    class_of = 0;
    first = 0;
    for (int unsigned c = 0; c < Classes; c++) begin
      if (index >= first) class_of = c;
      first += ClassBuffers[32*c +: 32];
    end
  endfunction

  // The first buffer of a class.
  function automatic int unsigned first_of_class(int unsigned class_index);
    first_of_class = 0;
    for (int unsigned c = 0; c < class_index; c++) first_of_class += ClassBuffers[32*c +: 32];
  endfunction

  // The first word of buffer `index`.
  function automatic int unsigned word_of(int unsigned index);
    word_of = 0;
    for (int unsigned i = 0; i < index; i++) word_of += (bytes(class_of(i)) + 63) / 64;
  endfunction

  logic [Total-1:0] free_q, given;

  // Whether a buffer of class `c` comes before one of class `d`: it is smaller, or as large and
  // further in front.
  function automatic logic comes_first(int unsigned c, int unsigned d);
    return bytes(c) < bytes(d) || (bytes(c) == bytes(d) && c < d);
  endfunction

  // In each class the first that is free.
  logic [Classes-1:0] fits, is_best;
  logic [Total-1:0]   firsts, taken;
  for (genvar c = 0; c < int'(Classes); c++) begin : gen_classes
    localparam int unsigned First = first_of_class(c);
    localparam int unsigned Count = ClassBuffers[32*c +: 32];
    logic [Count-1:0] free;
    assign free = free_q[First +: Count];
    assign firsts[First +: Count] = free & (~free + Count'(1));
    assign fits[c] = free != '0 && bytes(c) >= 32'(take_len_i);
    always_comb begin
      is_best[c] = fits[c];
      for (int unsigned d = 0; d < Classes; d++) begin
        if (comes_first(d, c) && fits[d]) is_best[c] = 1'b0;
      end
    end
    assign taken[First +: Count] = firsts[First +: Count] & {Count{is_best[c]}};
  end

  assign take_ready_o = fits != '0;
  always_comb begin
    take_index_o = '0;
    take_ptr_o   = '0;
    take_class_o = '0;
    for (int unsigned i = 0; i < Total; i++) begin
      take_index_o |= BufW'(i) & {BufW{taken[i]}};
      take_ptr_o   |= 16'(word_of(i)) & {16{taken[i]}};
      take_class_o |= 8'(class_of(i)) & {8{taken[i]}};
    end
  end

  always_comb begin
    of_ptr_o = '0;
    for (int unsigned i = 0; i < Total; i++) begin
      of_ptr_o |= 16'(word_of(i)) & {16{of_index_i == BufW'(i)}};
    end
  end

  always_comb begin
    given = '0;
    if (give_i[0]) given[give0_index_i] = 1'b1;
    if (give_i[1]) given[give1_index_i] = 1'b1;
    if (give_i[2]) given[give2_index_i] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      free_q <= '1;
    end else begin
      // A message of one packet takes a buffer and gives it back in one cycle.
      free_q <= (free_q & ~(taken & {Total{take_i}})) | given;
      take_what_is_there: assert (!take_i || take_ready_o);
      give_what_is_taken: assert ((given & free_q & ~(taken & {Total{take_i}})) == '0);
    end
  end

endmodule
