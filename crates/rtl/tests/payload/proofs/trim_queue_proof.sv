// The queues of a switch's port (docs/nic.md, S1 to S5). One packet that joins and one that is to
// be told, whichever, are followed: they come out as they went in, and in their turn. The port
// never holds more than its memory, and what it says it holds is what has come and not left.
module trim_queue_proof #(
  parameter int unsigned Depth = 2,
  parameter int unsigned Memory = 20
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       join_i,
  input logic [2:0] join_queue_i,
  input logic [3:0] join_length_i,
  input logic [1:0] join_tag_i,
  input logic       take_i,
  input logic       done_i,
  // This packet is followed from here on, if none is.
  input logic       follow_i,
  input logic [1:0] follow_told_i
);

  localparam int unsigned Queues = 2;

  logic        lost, valid, sent;
  logic [2:0]  queue, sent_queue;
  logic [15:0] length, sent_length;
  logic [1:0]  tag;
  logic [31:0] bytes;

  // What may be asked (S1): packets come four cycles apart, and leave four cycles after their turn.
  logic       joins, takes, done, busy_q;
  logic [2:0] since_join_q, since_take_q;
  assign joins = join_i && since_join_q >= 3'd3;
  assign done  = done_i && busy_q && since_take_q >= 3'd3;
  assign takes = take_i && valid && (!busy_q || done);

  trim_queue #(
    .Queues(Queues), .Weights({8'd1, 8'd2}), .Depth(Depth), .Memory(Memory), .TagW(2)
  ) u_queue (
    .clk_i, .rst_ni,
    .join_valid_i(joins), .join_queue_i, .join_length_i({12'd0, join_length_i}), .join_tag_i,
    .lost_o(lost),
    .valid_o(valid), .queue_o(queue), .length_o(length), .tag_o(tag), .take_i(takes),
    .done_i(done),
    .sent_valid_o(sent), .sent_queue_o(sent_queue), .sent_length_o(sent_length), .bytes_o(bytes)
  );

  // What is inside: packets of each queue, all bytes, and what is in service.
  logic [1:0][3:0] inside_q;
  logic [15:0]     held_q, left, service_length_q;
  logic [2:0]      service_queue_q;
  assign left = held_q - (done ? service_length_q : 16'd0);

  // Whether the packet has a place (S2): what leaves in this cycle makes room for it.
  logic       kept;
  logic [3:0] stays;
  assign stays = inside_q[join_queue_i[0]] - 4'(takes && queue == join_queue_i);
  assign kept  = joins && join_queue_i < 3'(Queues) && stays < 4'(Depth)
                 && left + 16'(join_length_i) <= 16'(Memory);

  // The packet that is followed, and how many of its queue are before it.
  logic        followed_q;
  logic [3:0]  ahead_q;
  logic [20:0] item_q;

  // Those that are to be told, how many are before the one that is followed, and its cycles left:
  // one leaves in two cycles.
  logic [3:0]  waiting_q, told_ahead_q;
  logic        told_q;
  logic [18:0] told_item_q;
  logic [7:0]  patience_q;
  logic [1:0]  tells, follows;
  logic [3:0]  waits;
  assign tells   = {lost, done};
  assign waits   = waiting_q - 4'(sent);
  assign follows = told_q ? '0 : follow_told_i & tells;

  // The place of the round that was served last: 0 and 1 are queue 0's, 2 is queue 1's (S3).
  logic [1:0] turn_q;
  logic [2:0] turn;
  logic       several;
  assign several = inside_q[0] != '0 && inside_q[1] != '0;
  assign turn    = turn_q == 2'd1 ? 3'd1 : 3'd0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {inside_q, held_q, service_length_q, service_queue_q, busy_q, turn_q} <= '0;
      {followed_q, ahead_q, item_q} <= '0;
      {waiting_q, told_ahead_q, told_q, told_item_q, patience_q} <= '0;
      {since_join_q, since_take_q} <= '1;
    end else begin
      since_join_q <= joins ? '0 : since_join_q + 3'(since_join_q != '1);
      since_take_q <= takes ? '0 : since_take_q + 3'(since_take_q != '1);
      busy_q       <= takes || (busy_q && !done);
      held_q       <= kept ? left + 16'(join_length_i) : left;
      if (takes) begin
        service_length_q <= length;
        service_queue_q  <= queue;
        if (several) turn_q <= turn_q == 2'd2 ? 2'd0 : turn_q + 2'd1;
      end
      for (int unsigned q = 0; q < Queues; q++) begin
        inside_q[q] <= inside_q[q] - 4'(takes && queue == 3'(q))
                       + 4'(kept && join_queue_i == 3'(q));
      end
      if (!followed_q && kept && follow_i) begin
        followed_q <= 1'b1;
        item_q     <= {join_queue_i, 12'd0, join_length_i, join_tag_i};
        ahead_q    <= stays;
      end else if (followed_q && takes && queue == item_q[20:18]) begin
        ahead_q    <= ahead_q - 4'd1;
        followed_q <= ahead_q != '0;
      end
      waiting_q  <= waits + 4'(tells[0]) + 4'(tells[1]);
      patience_q <= patience_q - 8'(patience_q != '0);
      if (follows != '0) begin
        told_q       <= 1'b1;
        told_item_q  <= follows[0] ? {service_queue_q, service_length_q}
                                   : {join_queue_i, 12'd0, join_length_i};
        told_ahead_q <= follows[0] ? waits : waits + 4'(tells[0]);
        patience_q   <= 8'(follows[0] ? waits : waits + 4'(tells[0])) * 8'd2 + 8'd2;
      end else if (told_q && sent) begin
        told_ahead_q <= told_ahead_q - 4'd1;
        told_q       <= told_ahead_q != '0;
      end
      lost_if_it_has_no_place: assert (lost == (joins && !kept));
      no_more_than_memory: assert (bytes <= Memory);
      as_much_as_has_come: assert (bytes == 32'(held_q));
      something_waits: assert (valid == (inside_q != '0));
      whose_turn: assert (!valid || queue == (several ? turn : 3'(inside_q[1] != '0)));
      in_its_turn: assert (!followed_q || ahead_q != '0 || !valid || queue != item_q[20:18] ||
                           {queue, length, tag} == item_q);
      told_if_there_is_one: assert (!sent || waiting_q != '0);
      told_as_it_was: assert (!told_q || told_ahead_q != '0 || !sent ||
                              {sent_queue, sent_length} == told_item_q);
      told_in_time: assert (!told_q || patience_q != '0);
    end
  end

endmodule
