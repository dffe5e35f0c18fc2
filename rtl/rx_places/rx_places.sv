// Where payloads lie while the law has given their buffers away.
//
// A message's id and buffer are free in the lookup of the packet that makes it whole (C7): before
// that packet is written, and long before the application has read the message. So the message RAM
// has `Extra` buffers of each class more than the law, and each new message gets one that nobody
// needs any longer: the lowest of its law's class. A place is free again when the application has
// read its message, when a program drops the packet that makes it whole, or when the message is
// ended before it is whole.
module rx_places #(
  // Messages, a power of two.
  parameter int unsigned Ids = 16,
  // Messages that may be whole and not read: those that wait in rx_reader, one that is read, and
  // those on the way from the lookup to there.
  parameter int unsigned Extra = 20,
  // The law's size classes: bytes of a buffer, and how many; class 0 in the lowest 32 bits.
  parameter int unsigned Classes = 1,
  parameter logic [Classes*32-1:0] ClassBytes = {Classes{32'd38912}},
  parameter logic [Classes*32-1:0] ClassBuffers = {Classes{32'd16}},
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  // The answer to a packet's lookup that has not failed. `begins` with the first of its message;
  // then the law's buffer says which class it is.
  input  logic           packet_valid_i,
  input  logic           packet_begins_i,
  input  logic [IdW-1:0] packet_id_i,
  input  logic [15:0]    packet_buf_ptr_i,
  // In the same cycle: where its message lies, in words of 64 bytes.
  output logic [15:0]    packet_place_o,
  // A message is ended that is not whole.
  input  logic           expired_valid_i,
  input  logic [IdW-1:0] expired_id_i,
  // A message has been read, and one is whole that nobody wants: their places.
  input  logic           done_valid_i,
  input  logic [15:0]    done_place_i,
  input  logic           dropped_valid_i,
  input  logic [15:0]    dropped_place_i
);

  localparam int unsigned Total = total();
  localparam int unsigned PlaceW = $clog2(Total);

  function automatic int unsigned total();
    total = 0;
    for (int unsigned c = 0; c < Classes; c++) total += ClassBuffers[32*c +: 32] + Extra;
  endfunction

  function automatic int unsigned words(int unsigned class_index);
    return (ClassBytes[32*class_index +: 32] + 63) / 64;
  endfunction

  // The class of place `place`: the places of all classes lie one after another.
  function automatic int unsigned class_of(int unsigned place);
    int unsigned first;
    class_of = 0;
    first = 0;
    for (int unsigned c = 0; c < Classes; c++) begin
      if (place >= first) class_of = c;
      first += ClassBuffers[32*c +: 32] + Extra;
    end
  endfunction

  // The first word of place `place`.
  function automatic int unsigned word_of(int unsigned place);
    word_of = 0;
    for (int unsigned i = 0; i < place; i++) word_of += words(class_of(i));
  endfunction

  // The first word of the law's buffers of a class.
  function automatic int unsigned law_word_of(int unsigned class_index);
    law_word_of = 0;
    for (int unsigned c = 0; c < class_index; c++) begin
      law_word_of += ClassBuffers[32*c +: 32] * words(c);
    end
  endfunction

  logic [Total-1:0]  free_q, given;
  logic [PlaceW-1:0] places_q [Ids];
  logic [PlaceW-1:0] fresh, place;
  logic              is_fresh, takes;

  // The lowest free place of the law's class.
  always_comb begin
    is_fresh = 1'b0;
    fresh    = '0;
    for (int unsigned i = Total; i > 0; i--) begin
      if (free_q[i-1] && 32'(packet_buf_ptr_i) >= law_word_of(class_of(i - 1)) &&
          32'(packet_buf_ptr_i) < law_word_of(class_of(i - 1) + 1)) begin
        is_fresh = 1'b1;
        fresh    = PlaceW'(i - 1);
      end
    end
  end

  assign takes = packet_valid_i && packet_begins_i;
  assign place = packet_begins_i ? fresh : places_q[packet_id_i];

  always_comb begin
    packet_place_o = '0;
    given          = '0;
    if (expired_valid_i) given[places_q[expired_id_i]] = 1'b1;
    for (int unsigned i = 0; i < Total; i++) begin
      if (place == PlaceW'(i)) packet_place_o = 16'(word_of(i));
      if (done_valid_i && 32'(done_place_i) == word_of(i)) given[i] = 1'b1;
      if (dropped_valid_i && 32'(dropped_place_i) == word_of(i)) given[i] = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      free_q <= '1;
    end else begin
      free_q <= (free_q | given) & ~(Total'(takes) << fresh);
      a_place_for_each_message: assert (!takes || is_fresh);
      give_what_is_taken: assert ((given & free_q) == '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (takes) places_q[packet_id_i] <= fresh;
  end

endmodule
