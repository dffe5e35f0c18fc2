//! `trimline testbed`: scenarios on this machine; and `trimline compare sim testbed`.

use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use fabric::Node;
use metrics::{OutputDir, Summary};
use scenario::testbed::{self, Cost, Wires};
use scenario::{Error, Options, Scenario, Trace, unwritable};
use serde::Serialize;

use crate::run::{print_warnings, run_into};
use crate::table::{number, right};
use crate::{Ended, Printed, args, html, own_command_line, said, say, say_json, table};

/// `trimline testbed up`.
pub(crate) fn up(args: &args::TestbedUp) -> Ended {
    let scenario = Scenario::load(&args.file, &args.edits.all())?;
    let bed = testbed::up(&scenario, &name(args.name.as_deref(), &args.file))?;
    let (first, last) = (bed.namespaces().first(), bed.namespaces().last());
    let ends = first.zip(last).map_or(String::new(), |(a, b)| format!(": {a} ... {b}"));
    if args.json {
        return say_json(&bed.namespaces());
    }
    say(format_args!("{} network namespaces{ends}", bed.namespaces().len()))
}

/// `trimline testbed down`.
pub(crate) fn down(args: &args::TestbedDown) -> Ended {
    let file = args.file.clone().unwrap_or_default();
    let count = testbed::down(&name(args.name.as_deref(), &file))?;
    if args.json {
        return say_json(&Removed { removed: count });
    }
    say(format_args!("{count} network namespaces removed"))
}

/// How many namespaces are gone, for `--json`.
#[derive(Serialize)]
struct Removed {
    removed: usize,
}

/// `trimline testbed run`.
pub(crate) fn run(args: &args::TestbedRun) -> Ended {
    let args::TestbedUp { file, edits, name: called, json } = &args.up;
    let scenario = Scenario::load(file, &edits.all())?;
    let stem = file.file_stem().unwrap_or(file.as_os_str());
    let dir = args.out.clone().unwrap_or_else(|| Path::new("out/testbed").join(stem));
    let name = name(called.as_deref(), file);
    let command = own_command_line();
    let wires = Wires { harm: args.harm.harm(), xdp: args.xdp, busy: args.busy };
    let trace = Trace { packets: args.capture, ..Trace::default() };
    let options = Options { command, trace, ..Options::default() };
    let (summary, costs) = live(&dir, &scenario, &name, wires, &options)?;
    print_warnings(&summary.warnings);
    let printed = match json {
        true => say_json(&Printed { directory: &dir, results: &summary }),
        false => say(table::summary(&summary))
            .and_then(|()| say(per_packet(&costs)))
            .and_then(|()| say(format_args!("results: {}", dir.display()))),
    };
    said(printed, &dir, *json)?;
    Ok(())
}

/// Run `scenario` on this machine and leave all of its files in `dir`, or none.
fn live(
    dir: &Path,
    scenario: &Scenario,
    name: &str,
    wires: Wires,
    options: &Options,
) -> Result<(Summary, Vec<Cost>), Error> {
    let out = OutputDir::create(dir).map_err(|e| unwritable(&e))?;
    let ran = testbed::run(scenario, name, wires, options, &out)?;
    out.text("report.html", &html::of_run(out.staged())?).map_err(|e| unwritable(&e))?;
    out.commit().map_err(|e| unwritable(&e))?;
    Ok(ran)
}

/// What a packet costs a processor at hosts and at switches, on average.
fn per_packet(costs: &[Cost]) -> String {
    let mean = |of: fn(&Node) -> bool| {
        let (cpu, packets) = costs
            .iter()
            .filter(|cost| of(&cost.node))
            .fold((0.0, 0), |sum, cost| (sum.0 + cost.cpu.as_us_f64(), sum.1 + cost.packets));
        cpu / packets.max(1) as f64
    };
    let hosts = mean(|node| matches!(node, Node::Host(_)));
    let switches = mean(|node| node.is_switch());
    format!("CPU per packet received or sent: hosts {hosts:.2} us, switches {switches:.2} us")
}

/// `trimline compare sim testbed FILE`. The testbed is made for it and removed again, unless one of
/// that name is up.
pub(crate) fn compare(file: &Path, args: &args::Compare) -> Ended {
    let scenario = Scenario::load(file, &args.edits.all())?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("out/compare"));
    let dirs: [PathBuf; 2] = ["sim", "testbed"].map(|of| out.join(of));
    let name = name(None, file);
    let options = Options { command: own_command_line(), ..Options::default() };
    let mine = testbed::up(&scenario, &name).map(|_| ());
    let wires = Wires { xdp: args.xdp, busy: args.busy, ..Wires::default() };
    let ran = live(&dirs[1], &scenario, &name, wires, &options);
    if mine.is_ok() {
        testbed::down(&name)?;
    }
    // One that was up may serve; if it does not, why there is no other is what matters.
    let (real, _) = ran.or_else(|why| mine.and(Err(why)))?;
    let sim = run_into(&dirs[0], &scenario, &options, &mut |_| ())?;
    let sim = sim.violated.map_or(Ok(sim.summary), Err)?;
    for (of, summary) in [("sim", &sim), ("testbed", &real)] {
        let named = summary.warnings.iter().map(|w| format!("{of}: {w}"));
        print_warnings(&named.collect::<Vec<_>>());
    }
    let testbed = if args.xdp { "testbed, AF_XDP" } else { "testbed" };
    let printed = match args.jobs.json {
        true => say_json(&Printed { directory: &out, results: &Both { sim, testbed: real } }),
        false => say(side_by_side(&sim, &real, testbed))
            .and_then(|()| say(format_args!("results: {}", out.display()))),
    };
    said(printed, &out, args.jobs.json)?;
    Ok(())
}

/// The two, for `--json`.
#[derive(Serialize)]
struct Both {
    sim: Summary,
    testbed: Summary,
}

/// Completion times and queues of both, and by how much the testbed's are above the simulator's.
fn side_by_side(sim: &Summary, real: &Summary, testbed: &str) -> String {
    let rows = |s: &Summary| {
        let fct = &s.flows.fct_us;
        let queue = s.queue_bytes.max.map(|bytes| bytes as f64);
        [
            ("FCT p50, us", fct.p50),
            ("FCT p90, us", fct.p90),
            ("FCT p99, us", fct.p99),
            ("FCT max, us", fct.max),
            ("FCT mean, us", fct.mean),
            ("last completion, us", s.flows.last_completion_us),
            ("messages completed", Some(s.flows.messages.completed as f64)),
            ("trimmed", Some(s.packets.trimmed as f64)),
            ("dropped", Some(s.packets.dropped as f64)),
            ("retransmitted", Some(s.packets.retransmitted as f64)),
            ("max queue, B", queue),
        ]
    };
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([sim.scenario.as_str(), "sim", testbed, "difference"]);
    for ((label, a), (_, b)) in rows(sim).into_iter().zip(rows(real)) {
        let share = a.zip(b).filter(|(a, _)| *a != 0.0).map(|(a, b)| (b - a) / a * 100.0);
        let share = share.map_or_else(|| "-".to_owned(), |share| format!("{share:+.1} %"));
        table.add_row([label.to_owned(), number(a), number(b), share]);
    }
    right(table)
}

/// What a testbed is called: as asked for, or as the scenario's file.
fn name(asked: Option<&str>, file: &Path) -> String {
    let stem = || file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    asked.map_or_else(stem, str::to_owned)
}
