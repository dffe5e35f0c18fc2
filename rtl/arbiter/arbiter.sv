// The arbiter: which packet is next, control strictly before data (docs/nic.md, rule 10; C5).
//
// `tx_open_i` is 1 from the cycle on in which the next packet may be chosen, until one is. What is
// chosen is what the cycles before have left: both sides answer from registered state, and it goes
// to the egress pipeline in the same cycle.
module arbiter import nano_pkg::*; (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         tx_open_i,
  input  logic         has_control_i,
  input  egress_meta_t control_i,
  output logic         take_control_o,
  input  logic         has_data_i,
  input  egress_meta_t data_i,
  output logic         take_data_o,
  output logic         valid_o,
  output egress_meta_t packet_o
);

  assign take_control_o = tx_open_i && has_control_i;
  assign take_data_o    = tx_open_i && has_data_i && !has_control_i;
  assign valid_o        = take_control_o || take_data_o;

  always_comb begin
    packet_o = '0;
    if (take_control_o) packet_o = control_i;
    if (take_data_o) packet_o = data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      one_at_a_time: assert (!(take_control_o && take_data_o));
      nothing_while_shut: assert (tx_open_i || !valid_o);
    end
  end

endmodule
