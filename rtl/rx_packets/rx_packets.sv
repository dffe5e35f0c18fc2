// Each frame's word for its writer: where its payload belongs, what the lookup has found and what
// the program says at its end.
//
// The lookup's answer comes `Behind` cycles before the program's results. Messages lie where
// `rx_places` has room for them while the law has given their buffers away (docs/nic.md, C7). So
// frames are let in as long as each of those that are on their way, and each message that is whole
// and not read, has a place beyond the law's buffers.
module rx_packets #(
  // Messages, a power of two.
  parameter int unsigned Ids = 16,
  // Places beyond the law's buffers, of each class.
  parameter int unsigned Extra = 8,
  // Cycles from a lookup's answer to the results.
  parameter int unsigned Behind = 2,
  parameter int unsigned Classes = 1,
  parameter logic [Classes*32-1:0] ClassBytes = {Classes{32'd38912}},
  parameter logic [Classes*32-1:0] ClassBuffers = {Classes{32'd16}},
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  // A frame is let in, and whether another one may be.
  input  logic           frame_taken_i,
  output logic           frame_open_o,
  // The answer to a lookup that has found or begun a message. `keep`: the packet is new and brings
  // its payload.
  input  logic           lookup_valid_i,
  input  logic           lookup_begins_i,
  input  logic           lookup_keep_i,
  input  logic [IdW-1:0] lookup_id_i,
  input  logic [15:0]    lookup_buf_ptr_i,
  input  logic [7:0]     lookup_offset_i,
  input  logic [15:0]    lookup_msg_len_i,
  input  logic [31:0]    lookup_src_ip_i,
  input  logic [15:0]    lookup_src_context_i,
  // A message is ended that is not whole.
  input  logic           expired_valid_i,
  input  logic [IdW-1:0] expired_id_i,
  // The results of each frame. `whole`: its packet makes its message whole; `keep`: the program
  // wants the payload, and the message if it is whole.
  input  logic           results_valid_i,
  input  logic           results_whole_i,
  input  logic           results_keep_i,
  // To rx_writer.
  output logic           packet_valid_o,
  input  logic           packet_ready_i,
  output logic           packet_keep_o,
  output logic           packet_whole_o,
  output logic [15:0]    packet_buf_ptr_o,
  output logic [7:0]     packet_offset_o,
  output logic [15:0]    packet_msg_len_o,
  output logic [31:0]    packet_src_ip_o,
  output logic [15:0]    packet_src_context_o,
  // From rx_writer and rx_reader: places that nobody needs any longer.
  input  logic           dropped_valid_i,
  input  logic [15:0]    dropped_place_i,
  input  logic           done_valid_i,
  input  logic [15:0]    done_place_i
);

  typedef struct packed {
    logic        keep;
    logic [15:0] place;
    logic [7:0]  offset;
    logic [15:0] msg_len;
    logic [31:0] src_ip;
    logic [15:0] src_context;
  } packet_t;

  // A packet's own word on its message's length counts as little as on its packets (rule 17).
  logic [15:0] lengths_q [Ids];
  packet_t     found, known, packet;

  always_comb begin
    found.keep        = lookup_valid_i && lookup_keep_i;
    found.offset      = lookup_offset_i;
    found.msg_len     = lookup_begins_i ? lookup_msg_len_i : lengths_q[lookup_id_i];
    found.src_ip      = lookup_src_ip_i;
    found.src_context = lookup_src_context_i;
  end

  always_ff @(posedge clk_i) begin
    if (lookup_valid_i && lookup_begins_i) lengths_q[lookup_id_i] <= lookup_msg_len_i;
  end

  rx_places #(
    .Ids(Ids), .Extra(Extra), .Classes(Classes), .ClassBytes(ClassBytes),
    .ClassBuffers(ClassBuffers)
  ) u_places (
    .clk_i, .rst_ni,
    .packet_valid_i(lookup_valid_i), .packet_begins_i(lookup_begins_i),
    .packet_id_i(lookup_id_i), .packet_buf_ptr_i(lookup_buf_ptr_i),
    .packet_place_o(found.place),
    .expired_valid_i, .expired_id_i, .done_valid_i, .done_place_i,
    .dropped_valid_i, .dropped_place_i
  );

  if (Behind == 0) begin : gen_at_once
    assign known = found;
  end else begin : gen_later
    delay #(.Width($bits(packet_t)), .Cycles(Behind)) u_known (
      .clk_i, .rst_ni, .data_i(found), .data_o(known)
    );
  end

  // No more frames are on their way than may be.
  localparam int unsigned Frames = 2 ** $clog2(Extra < 2 ? 2 : Extra);
  logic room;
  stream_fifo #(.Width($bits(packet_t) + 2), .Depth(Frames)) u_packets (
    .clk_i, .rst_ni,
    .in_valid_i(results_valid_i), .in_ready_o(room),
    .in_data_i({results_keep_i && known.keep, results_whole_i, known}),
    .out_valid_o(packet_valid_o), .out_ready_i(packet_ready_i),
    .out_data_o({packet_keep_o, packet_whole_o, packet})
  );

  assign packet_buf_ptr_o     = packet.place;
  assign packet_offset_o      = packet.offset;
  assign packet_msg_len_o     = packet.msg_len;
  assign packet_src_ip_o      = packet.src_ip;
  assign packet_src_context_o = packet.src_context;
  logic unused;
  assign unused = packet.keep;

  // Frames that are on their way, and messages that are whole and not read.
  localparam int unsigned CountW = $clog2(Extra + 1);
  logic [CountW-1:0] count_q;
  logic              ends;
  assign ends         = packet_valid_o && packet_ready_i && !(packet_keep_o && packet_whole_o);
  assign frame_open_o = count_q != CountW'(Extra);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      count_q <= count_q + CountW'(frame_taken_i) - CountW'(ends) - CountW'(done_valid_i);
      room_for_each_packet: assert (!results_valid_i || room);
      results_of_a_frame: assert (!results_valid_i || count_q != '0);
    end
  end

endmodule
