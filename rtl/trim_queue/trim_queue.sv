// The queues of a switch's output port (docs/nic.md, S1 to S5). A program has
// said which queue a packet joins, trimmed or not; here are descriptors, served in turn by weights.
//
// In a cycle the packet in service has left, then one is taken, then one comes. Every packet that a
// program has counted in is told to it once: when it has left, or found no place.
module trim_queue #(
  // Two to eight.
  parameter int unsigned Queues = 2,
  // Packets of a queue in a round in which others wait: at least one each, queue 0 in the low bits.
  parameter logic [Queues*8-1:0] Weights = {8'd1, 8'd10},
  // Places for descriptors of each queue, a power of two.
  parameter int unsigned Depth = 1024,
  // Bytes that the port holds, the packet in service included.
  parameter int unsigned Memory = 144000,
  // Cycles from one packet that is told to the next, at least.
  parameter int unsigned Apart = 2,
  // What else a descriptor has: where the packet is.
  parameter int unsigned TagW = 16,
  localparam int unsigned QueueW = $clog2(Queues)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // A packet that joins a queue.
  input  logic              join_valid_i,
  input  logic [2:0]        join_queue_i,
  input  logic [15:0]       join_length_i,
  input  logic [TagW-1:0]   join_tag_i,
  // It finds no place.
  output logic              lost_o,
  // The packet whose turn it is, and that it is taken: nothing is in service any more.
  output logic              valid_o,
  output logic [2:0]        queue_o,
  output logic [15:0]       length_o,
  output logic [TagW-1:0]   tag_o,
  input  logic              take_i,
  // The last bit of the packet in service has left.
  input  logic              done_i,
  // A packet that the program counts out.
  output logic              sent_valid_o,
  output logic [2:0]        sent_queue_o,
  output logic [15:0]       sent_length_o,
  // Bytes in the port.
  output logic [31:0]       bytes_o
);

  localparam int unsigned Width = 16 + TagW;
  localparam int unsigned Places = places();
  localparam int unsigned TurnW = Places > 1 ? $clog2(Places) : 1;

  function automatic int unsigned places();
    places = 0;
    for (int unsigned q = 0; q < Queues; q++) places += 32'(Weights[8*q +: 8]);
  endfunction

  // Whose each place of a round is.
  function automatic logic [QueueW-1:0] owner(int unsigned place);
    int unsigned first;
    first = 0;
    owner = '0;
    for (int unsigned q = 0; q < Queues; q++) begin
      if (place >= first) owner = QueueW'(q);
      first += 32'(Weights[8*q +: 8]);
    end
  endfunction

  if (Queues < 2 || Queues > 8 || Places < Queues) begin : gen_refused
    $error("Queues has to be 2 to 8, and each weight at least 1");
  end

  logic [Queues-1:0]            holds, room, joins, takes;
  logic [Queues-1:0][Width-1:0] fronts;

  // Whose turn it is: while several hold something, that of the next place in the round.
  logic [TurnW-1:0]  turn_q, turn_d;
  logic [QueueW-1:0] chosen;
  logic              several;

  assign several = (holds & (holds - Queues'(1))) != '0;
  always_comb begin
    logic found;
    found  = 1'b0;
    chosen = '0;
    turn_d = turn_q;
    if (several) begin
      for (int unsigned step = 1; step <= Places; step++) begin
        for (int unsigned place = 0; place < Places; place++) begin
          if (32'(turn_q) == (place + Places - step) % Places && !found
              && holds[owner(place)]) begin
            found  = 1'b1;
            chosen = owner(place);
            turn_d = TurnW'(place);
          end
        end
      end
    end else begin
      for (int unsigned q = 0; q < Queues; q++) begin
        if (holds[q]) chosen = QueueW'(q);
      end
    end
  end

  assign valid_o            = holds != '0;
  assign queue_o            = 3'(chosen);
  assign {length_o, tag_o}  = valid_o ? fronts[chosen] : '0;

  // The packet in service.
  logic        busy_q;
  logic [2:0]  service_queue_q;
  logic [15:0] service_length_q;
  logic [31:0] bytes_q, left, wanted;
  logic        known, kept;

  assign left   = bytes_q - (done_i ? 32'(service_length_q) : 32'd0);
  assign wanted = left + 32'(join_length_i);
  assign known  = 32'(join_queue_i) < Queues;
  assign kept   = join_valid_i && known && room[QueueW'(join_queue_i)] && wanted <= Memory;
  assign lost_o  = join_valid_i && !kept;
  assign bytes_o = bytes_q;

  // The queue keeps what it is said to, and nothing else.
  logic [Queues-1:0] as_said;
  for (genvar q = 0; q < Queues; q++) begin : gen_queue
    assign takes[q] = take_i && chosen == QueueW'(q);
    assign joins[q] = kept && join_queue_i == 3'(q);
    logic [1:0] keeps;
    assign as_said[q] = keeps == {1'b0, joins[q]};
    fifo #(.Width(Width), .Depth(Depth)) u_fifo (
      .clk_i, .rst_ni, .pop_i(takes[q]), .valid_o(holds[q]), .front_o(fronts[q]),
      .push_i({1'b0, joins[q]}), .data0_i({join_length_i, join_tag_i}), .data1_i('0),
      .room_o(room[q]), .kept_o(keeps)
    );
  end

  // What is told, one in a cycle: what has left before what has just come and found no place.
  localparam int unsigned Told = 4;
  logic [1:0]  told_kept;
  logic [18:0] told;
  logic        told_room, tells;
  logic [7:0]  since_q;
  assign sent_valid_o = tells && since_q >= 8'(Apart - 1);
  fifo #(.Width(19), .Depth(Told)) u_told (
    .clk_i, .rst_ni, .pop_i(sent_valid_o), .valid_o(tells), .front_o(told),
    .push_i({lost_o, done_i}), .data0_i({service_queue_q, service_length_q}),
    .data1_i({join_queue_i, join_length_i}), .room_o(told_room), .kept_o(told_kept)
  );
  assign {sent_queue_o, sent_length_o} = sent_valid_o ? told : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      turn_q           <= '0;
      busy_q           <= 1'b0;
      service_queue_q  <= '0;
      service_length_q <= '0;
      bytes_q          <= '0;
      since_q          <= '1;
    end else begin
      since_q <= sent_valid_o ? '0 : since_q + 8'(since_q != '1);
      busy_q  <= take_i || (busy_q && !done_i);
      bytes_q <= kept ? wanted : left;
      if (take_i) begin
        turn_q           <= turn_d;
        service_queue_q  <= queue_o;
        service_length_q <= length_o;
      end
      one_in_service:    assert (!take_i || !busy_q || done_i);
      done_in_service:   assert (!done_i || busy_q);
      keeps_as_said:     assert (as_said == '1);
      all_told:          assert (told_kept == {lost_o, done_i} && (told_room || !done_i));
    end
  end

endmodule
