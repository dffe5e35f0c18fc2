//! What whole NICs cost in cells, with `TRIMLINE_RTL_COST=1`: minutes.

use std::fs;
use std::sync::Arc;

use ::nic::nano::blocks::clocked::least_spacing;
use ::nic::nano::config::Config;
use p4::state::State;
use trimline_rtl::nic;
use trimline_rtl::report::{Report, WIRING, report};
use trimline_rtl::sim::Design;
use trimline_rtl::synth::SynthTools;

use crate::busy::{compile, config};
use crate::folder;

const COST: &str = "TRIMLINE_RTL_COST";

/// The NICs of the publication: 16 messages each way, 1024 remembered.
#[test]
fn pipelines_and_blocks_in_cells() {
    if std::env::var_os(COST).is_none() {
        println!("cost skipped: set {COST}=1");
        return;
    }
    let tools = SynthTools::find().unwrap();
    for (name, file, constants, protocol) in [
        ("ndp", "ndp.p4", &[][..], 155),
        ("homa", "homa.p4", &[], 154),
        ("homa_tr", "homa.p4", &[("TRIM", 1)], 154),
    ] {
        let program = compile(file, constants);
        let state = State::new(Arc::clone(&program));
        let config = Config { remember: Some(1024), ..config(&[protocol]) };
        let nic = nic::build(&program, &state, &config).unwrap();
        let at = folder(&format!("cost_{name}"));
        let report =
            report(&tools, &nic.design(&at).unwrap(), &at.join("parts"), &folder("cost")).unwrap();
        let spacing = u32::try_from(least_spacing(&program)).unwrap();
        print(name, &report, spacing);
        assert!(report.packets_per_second(spacing) > 0.0);
    }
}

fn print(name: &str, report: &Report, spacing: u32) {
    println!("| {name} | um^2 | cells | flip-flops | memory bits | ps | longest path |");
    for block in &report.blocks {
        let cost = &block.cost;
        println!(
            "| {} | {:.0} | {} | {} | {} | {:.0} | {} to {} |",
            block.module,
            cost.area,
            cost.cells,
            cost.flip_flops,
            cost.memory_bits,
            cost.period_ps,
            cost.path[0],
            cost.path[1]
        );
    }
    println!(
        "| all | {:.0} | {} | {} | {} | {:.0} | {:.0} million packets/s, {spacing} cycles apart |",
        report.area(),
        report.cells(),
        report.flip_flops(),
        report.memory_bits(),
        report.period_ps(),
        report.packets_per_second(spacing) / 1e6
    );
}

/// Two adders that are not of one width, and a value that waits between.
const PAIR: &str = "
module adder #(parameter int Width = 8) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] step_i,
  output logic [Width-1:0] sum_o
);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) sum_o <= '0;
    else sum_o <= sum_o + step_i;
  end
endmodule

module pair (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [7:0]  step_i,
  output logic [31:0] sum_o
);
  logic [7:0] narrow, later;
  adder #(.Width(8)) u_narrow (.clk_i, .rst_ni, .step_i, .sum_o(narrow));
  delay #(.Width(8), .Cycles(3)) u_later (.clk_i, .rst_ni, .data_i(narrow), .data_o(later));
  adder #(.Width(32)) u_wide (.clk_i, .rst_ni, .step_i(32'(later)), .sum_o);
endmodule
";

#[test]
fn a_block_is_mapped_once_and_what_is_in_none_counts() {
    let tools = match SynthTools::find() {
        Ok(tools) => tools,
        Err(why) => return println!("report skipped: {why}"),
    };
    let folder = folder("pair");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let (delay, pair) = (folder.join("delay.sv"), folder.join("pair.sv"));
    let block = trimline_rtl::blocks::BLOCKS.iter().find(|(name, _)| *name == "delay").unwrap();
    fs::write(&delay, block.1).unwrap();
    fs::write(&pair, PAIR).unwrap();
    let design = Design {
        top: "pair".into(),
        sources: vec![delay, pair],
        parameters: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let cache = folder.join("cache");
    let report = || report(&tools, &design, &folder.join("parts"), &cache).unwrap();
    let first = report();
    let stored: Vec<_> =
        first.blocks.iter().map(|block| (&*block.module, block.cost.flip_flops)).collect();
    assert_eq!(stored, [("adder", 32), ("adder", 8), (WIRING, 24)], "{first:?}");
    assert_eq!(first.flip_flops(), 64);
    assert_eq!(first.slowest().unwrap().instance, "u_wide");
    assert!((1e12 / (2.0 * first.period_ps()) - first.packets_per_second(2)).abs() < 1.0);
    assert_eq!(report(), first);
    // What is kept is taken.
    let kept: Vec<_> = fs::read_dir(&cache).unwrap().map(|at| at.unwrap().path()).collect();
    assert_eq!(kept.len(), 3);
    for folder in kept {
        let file = folder.join("cost.json");
        let text = fs::read_to_string(&file).unwrap().replace("\"cells\":", "\"cells\":1000");
        fs::write(file, text).unwrap();
    }
    assert!(report().cells() > 3000, "{first:?}");
}
