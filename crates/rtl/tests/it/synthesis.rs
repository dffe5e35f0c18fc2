//! What designs cost, on designs of which that is known.

use std::fs;

use trimline_rtl::sim::Design;
use trimline_rtl::synth::{SynthTools, Synthesis, synthesise};

use crate::folder;

/// A register that counts, and a memory that is only written.
const COUNTER: &str = "
module counter #(parameter int Width = 8) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [Width-1:0]  step_i,
  input  logic [3:0]        at_i,
  output logic [Width-1:0]  count_o,
  output logic [Width-1:0]  kept_o
);
  logic [Width-1:0] count_q, step_q;
  logic [Width-1:0] kept_q[16];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      step_q <= '0;
    end else begin
      count_q <= count_q + step_q;
      step_q <= step_i;
    end
  end
  always_ff @(posedge clk_i) kept_q[at_i] <= count_q;
  assign count_o = count_q;
  assign kept_o = kept_q[at_i];
endmodule
";

fn counter(width: u32) -> Option<Synthesis> {
    let tools = SynthTools::find().map_err(|why| println!("synthesis skipped: {why}")).ok()?;
    let folder = folder(&format!("counter{width}"));
    fs::create_dir_all(&folder).unwrap();
    let source = folder.join("counter.sv");
    fs::write(&source, COUNTER).unwrap();
    let design = Design {
        top: "counter".into(),
        sources: vec![source],
        parameters: vec![("Width".into(), width.to_string())],
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    Some(synthesise(&tools, &design, &folder).unwrap())
}

#[test]
fn flip_flops_memories_and_the_path_of_an_adder() {
    let (Some(narrow), Some(wide)) = (counter(8), counter(64)) else { return };
    assert_eq!((narrow.flip_flops, wide.flip_flops), (16, 128));
    assert_eq!((narrow.memory_bits, wide.memory_bits), (128, 1024));
    // An adder of 8 bits takes a third of a nanosecond in this library; one of 64 bits more, and as
    // a chain of 64 full adders it would take 4 ns.
    assert!((150.0..700.0).contains(&narrow.period_ps), "{narrow:?}");
    assert!((narrow.period_ps..1500.0).contains(&wide.period_ps), "{narrow:?} {wide:?}");
    assert!(wide.area > 4.0 * narrow.area && wide.cells > narrow.cells);
    assert!(
        wide.path.iter().any(|end| end.contains("step_q") || end.contains("count_q")),
        "{wide:?}"
    );
}
