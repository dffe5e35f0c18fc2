//! The harness itself: cycles, widths, and a design that ends by itself.

use std::fs;

use trimline_rtl::record::Port;
use trimline_rtl::sim::{Design, SimError};

use crate::{folder, tools};

/// Adds up what it is given, turns a wide word over, and does not bear a 7.
const SUM: &str = "
module sum #(parameter int Start = 0) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [15:0]  a_i,
  input  logic [99:0]  wide_i,
  output logic [15:0]  sum_o,
  output logic [99:0]  wide_o
);
  logic [15:0] sum_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sum_q <= 16'(Start);
    end else begin
      sum_q <= sum_q + a_i;
      no_seven: assert (a_i != 16'd7);
    end
  end
  assign sum_o = sum_q;
  assign wide_o = ~wide_i;
endmodule
";

fn sum(test: &str, text: &str) -> Design {
    let folder = folder(test);
    fs::create_dir_all(&folder).unwrap();
    let source = folder.join("sum.sv");
    fs::write(&source, text).unwrap();
    Design {
        top: "sum".into(),
        sources: vec![source],
        parameters: vec![("Start".into(), "5".into())],
        inputs: vec![Port::new("a_i", 16), Port::new("wide_i", 100)],
        outputs: vec![Port::new("sum_o", 16), Port::new("wide_o", 100)],
    }
}

#[test]
fn outputs_are_those_before_the_edge_and_an_assertion_ends_the_run() {
    let Some(tools) = tools("harness") else { return };
    let folder = folder("sum");
    let mut run = sum("sum", SUM).start(&tools, &folder).unwrap();
    let (ins, outs) = (run.inputs().clone(), run.outputs().clone());
    let inputs: Vec<_> = [1u128, 2, 3]
        .map(|a| {
            let mut record = ins.zero();
            ins.set(&mut record, 0, a);
            ins.set(&mut record, 1, a << 90);
            record
        })
        .into();
    let outputs = run.run(&inputs).unwrap();
    let sums: Vec<u128> = outputs.iter().map(|record| outs.get(record, 0)).collect();
    assert_eq!(sums, [5, 6, 8], "reset has given 5");
    let all = (1u128 << 100) - 1;
    assert_eq!(outs.get(&outputs[2], 1), all ^ (3 << 90), "in the same cycle");
    let mut seven = ins.zero();
    ins.set(&mut seven, 0, 7);
    let error = run.step(&seven).map(|_| run.step(&ins.zero()));
    let error = error.and_then(|next| next).unwrap_err();
    assert!(matches!(&error, SimError::Died { .. }), "{error}");
    assert!(error.to_string().contains("no_seven"), "{error}");
}

#[test]
fn a_warning_is_an_error_that_names_file_and_line() {
    let Some(tools) = tools("harness") else { return };
    let text = SUM.replace("16'(Start)", "Start");
    let folder = folder("narrow");
    let error = sum("narrow", &text).build(&tools, &folder).unwrap_err();
    assert!(error.to_string().contains("sum.sv:13"), "{error}");
}
