// The packet generator: control packets that a program asks for, on their way to the arbiter
// (docs/nic.md, rules 10 and 22; C8).
//
// Four queues, served in this order: ACKs, NACKs, what `ctrl_pkt` asks for, GRANTs. A PULL takes a
// token, which is back `PullCycles` later. One that finds the token goes joined to its ACK or NACK;
// otherwise that goes without it, and the PULL waits for the token.
//
// In a cycle: the arbiter takes, then what the packet asks for comes, then the pacer releases what
// has waited longest, if nobody has taken the token meanwhile (C3). A packet that finds its queue
// full is lost; a token that it has taken is gone.
module generator import nano_pkg::*; #(
  parameter int unsigned PullCycles = 140,
  // PULLs that may wait for the token, a power of two. Others are lost.
  parameter int unsigned MaxPulls = 256,
  // Places of each queue, a power of two.
  parameter int unsigned Places = 256
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         ack_valid_i,
  input  egress_meta_t ack_i,
  input  logic         nack_valid_i,
  input  egress_meta_t nack_i,
  input  logic         ctrl_valid_i,
  input  egress_meta_t ctrl_i,
  input  logic         grant_valid_i,
  input  egress_meta_t grant_i,
  output logic         has_control_o,
  output egress_meta_t packet_o,
  input  logic         take_i,
  // Control packets that found their queue full in this cycle: ack, nack, ctrl, released PULL,
  // grant from bit 0 on.
  output logic [4:0]   lost_o
);

  localparam int unsigned MetaW = $bits(egress_meta_t);

  // A bit of every control packet's flags (p4/include/nano.p4).
  localparam logic [7:0] PullFlag = 8'h08;

  // The pacer. `wait_q` cycles are left until the token is back.
  localparam int unsigned WaitW = $clog2(PullCycles + 1);
  logic [WaitW-1:0] wait_q;
  logic             token, pull, pull_joins, pull_waits, release_pull, pull_valid;
  egress_meta_t     joined, ctrl_rest, ctrl_pull, pull_front;
  logic             ctrl_goes;

  assign token        = wait_q == '0;
  assign pull         = ctrl_valid_i && (ctrl_i.flags & PullFlag) != '0;
  assign pull_joins   = pull && token;
  assign pull_waits   = pull && !token;
  assign release_pull = token && !pull && pull_valid;

  always_comb begin
    ctrl_rest       = ctrl_i;
    ctrl_rest.flags = ctrl_i.flags & ~PullFlag;
    ctrl_pull       = ctrl_i;
    ctrl_pull.flags = PullFlag;
  end
  assign joined    = pull_waits ? ctrl_rest : ctrl_i;
  assign ctrl_goes = ctrl_valid_i && !(pull_waits && ctrl_rest.flags == '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wait_q <= '0;
    end else if (pull_joins || release_pull) begin
      wait_q <= WaitW'(PullCycles - 1);
    end else if (!token) begin
      wait_q <= wait_q - WaitW'(1);
    end
  end

  logic [1:0] pulls_kept;
  logic       pulls_room;
  fifo #(.Width(MetaW), .Depth(MaxPulls)) u_pulls (
    .clk_i, .rst_ni,
    .pop_i(release_pull), .valid_o(pull_valid), .front_o(pull_front),
    .push_i({1'b0, pull_waits}), .data0_i(ctrl_pull), .data1_i('0), .room_o(pulls_room),
    .kept_o(pulls_kept)
  );
  // PULLs beyond the room are lost without a word (rule 22).
  logic unused_pulls;
  assign unused_pulls = ^{pulls_kept, pulls_room};

  // The queues, in the order in which they are served.
  localparam int unsigned Ack = 0;
  localparam int unsigned Nack = 1;
  localparam int unsigned Ctrl = 2;
  localparam int unsigned Grant = 3;

  logic [3:0]       valid, pop, room;
  logic [1:0]       push [4];
  logic [1:0]       kept [4];
  logic [MetaW-1:0] data [4];
  logic [MetaW-1:0] front [4];

  assign push[Ack]   = {1'b0, ack_valid_i};
  assign push[Nack]  = {1'b0, nack_valid_i};
  assign push[Ctrl]  = {release_pull, ctrl_goes};
  assign push[Grant] = {1'b0, grant_valid_i};
  assign data[Ack]   = ack_i;
  assign data[Nack]  = nack_i;
  assign data[Ctrl]  = joined;
  assign data[Grant] = grant_i;

  for (genvar q = 0; q < 4; q++) begin : gen_queues
    fifo #(.Width(MetaW), .Depth(Places)) u_queue (
      .clk_i, .rst_ni,
      .pop_i(pop[q]), .valid_o(valid[q]), .front_o(front[q]),
      .push_i(push[q]), .data0_i(data[q]), .data1_i(pull_front), .room_o(room[q]),
      .kept_o(kept[q])
    );
  end

  always_comb begin
    pop = '0;
    packet_o = '0;
    for (int unsigned q = 4; q > 0; q--) begin
      if (valid[q-1]) begin
        pop      = 4'(take_i) << (q - 1);
        packet_o = egress_meta_t'(front[q-1]);
      end
    end
  end
  assign has_control_o = valid != '0;

  assign lost_o = {push[Grant][0] && !kept[Grant][0], push[Ctrl][1] && !kept[Ctrl][1],
                   push[Ctrl][0] && !kept[Ctrl][0], push[Nack][0] && !kept[Nack][0],
                   push[Ack][0] && !kept[Ack][0]};
  logic unused_kept;
  assign unused_kept = kept[Ack][1] || kept[Nack][1] || kept[Grant][1] || room != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      take_what_is_there: assert (!take_i || has_control_o);
    end
  end

endmodule
