// TxMsgPrio: the priority of each message that is being sent (docs/nic.md, rules 14 and 31; C5).
//
// Ingress grants, egress reads. A packet's priority is read in the cycle in which the arbiter
// chooses it (C5), but the egress pipeline asks for it `ReadCycles` later. So grants wait as long:
// a read sees those of the cycles before the choice, and none that came later. An answer comes two
// cycles after its request. Whether the message of a grant lives is packetization's to say.
module tx_msg_prio #(
  // Messages, a power of two from 2 to 128.
  parameter int unsigned Ids = 16,
  // From the arbiter's choice of a packet to the read of its priority.
  parameter int unsigned ReadCycles = 1,
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic           grant_valid_i,
  input  logic [IdW-1:0] grant_id_i,
  input  logic [7:0]     grant_prio_i,
  input  logic           read_valid_i,
  input  logic [15:0]    read_tx_msg_id_i,
  input  logic           read_update_i,
  input  logic [7:0]     read_prio_i,
  output logic [7:0]     prio_o
);

  if (Ids < 2 || Ids > 128 || 2 ** $clog2(Ids) != Ids) begin : gen_refused
    $error("Ids has to be a power of two from 2 to 128");
  end

  typedef struct packed {
    logic           valid;
    logic [IdW-1:0] id;
    logic [7:0]     prio;
  } grant_t;

  logic [7:0] prio_q [Ids];

  // The low bits of a message's number choose its cell.
  logic [IdW-1:0] read_id;
  assign read_id = read_tx_msg_id_i[IdW-1:0];
  logic unused_number;
  assign unused_number = ^read_tx_msg_id_i[15:IdW];

  grant_t grant, due;
  assign grant = '{valid: grant_valid_i, id: grant_id_i, prio: grant_prio_i};

  if (ReadCycles == 0) begin : gen_at_once
    assign due = grant;
  end else begin : gen_later
    grant_t waiting_q [ReadCycles];
    assign due = waiting_q[ReadCycles-1];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        for (int unsigned i = 0; i < ReadCycles; i++) waiting_q[i] <= '0;
      end else begin
        waiting_q[0] <= grant;
        for (int unsigned i = 1; i < ReadCycles; i++) waiting_q[i] <= waiting_q[i-1];
      end
    end
  end

  logic [7:0] value, value_q;
  assign value = read_update_i ? read_prio_i : prio_q[read_id];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Ids; i++) prio_q[i] <= '0;
      value_q <= '0;
      prio_o  <= '0;
    end else begin
      value_q <= read_valid_i ? value : '0;
      prio_o  <= value_q;
      // The choice comes before what packets do in its cycle (C3).
      if (read_valid_i) prio_q[read_id] <= value;
      if (due.valid) prio_q[due.id] <= due.prio;
    end
  end

endmodule
