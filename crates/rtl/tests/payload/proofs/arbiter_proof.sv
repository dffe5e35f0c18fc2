// The arbiter takes one packet when the wire is open for it, control first, and gives what it
// takes (docs/nic.md, rule 10; C5).
module arbiter_proof import nano_pkg::*; (
  input logic         clk_i,
  input logic         rst_ni,
  input logic         tx_open_i,
  input logic         has_control_i,
  input egress_meta_t control_i,
  input logic         has_data_i,
  input egress_meta_t data_i
);

  logic         take_control, take_data, valid;
  egress_meta_t packet;

  arbiter u_arbiter (
    .clk_i, .rst_ni, .tx_open_i,
    .has_control_i, .control_i, .take_control_o(take_control),
    .has_data_i, .data_i, .take_data_o(take_data),
    .valid_o(valid), .packet_o(packet)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      when_something_waits: assert (valid == (tx_open_i && (has_control_i || has_data_i)));
      control_first: assert (take_control == (valid && has_control_i));
      else_data: assert (take_data == (valid && !has_control_i));
      what_it_takes: assert (!valid || packet == (has_control_i ? control_i : data_i));
    end
  end

endmodule
