//! `trimline bench`: the simulator's own speed on fixed scenarios. Each run is a process of its own,
//! so that its peak memory is its own; of three runs the fastest counts, as neighbours on the
//! machine only ever add.

use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use scenario::{Diagnostic, Error, Options, Scenario};
use serde::{Deserialize, Serialize};

use crate::{Ended, args, say, table};

/// A fixed scenario.
struct Case {
    name: &'static str,
    text: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "ndp-permutation-432",
        text: include_str!("../../../scenarios/ndp_permutation_432.toml"),
    },
    Case {
        name: "ndp-incast-431",
        text: include_str!("../../../scenarios/bench/ndp_incast_431.toml"),
    },
    Case {
        name: "newreno-websearch-128",
        text: include_str!("../../../scenarios/bench/newreno_websearch_128.toml"),
    },
];

/// One line of the result. The keys are part of the command-line contract.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) threads: u32,
    pub(crate) packet_hops: u64,
    pub(crate) events: u64,
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) ns_per_packet_hop: f64,
    /// `None` where the machine gives no performance counters.
    pub(crate) instructions_per_packet_hop: Option<f64>,
    pub(crate) peak_rss_mb: f64,
}

/// `trimline bench`.
pub(crate) fn bench(args: &args::Bench) -> Ended {
    if let Some(name) = &args.case {
        return print_json(&measure(find(name)?)?);
    }
    let mut all = Vec::new();
    for case in CASES {
        all.push(fastest(case)?);
    }
    if args.json {
        return print_json(&all);
    }
    say(table::bench(&all))
}

fn find(name: &str) -> Result<&'static Case, Error> {
    CASES.iter().find(|case| case.name == name).ok_or_else(|| {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        Diagnostic::new(format!("unknown bench case `{name}`")).hint(names.join(", ")).into()
    })
}

fn failed(what: impl Into<Box<dyn std::error::Error>>) -> Error {
    Error::Run { what: what.into().to_string(), hint: "run `trimline bench` again".to_owned() }
}

fn print_json<T: Serialize>(value: &T) -> Ended {
    say(serde_json::to_string_pretty(value).map_err(failed)?)
}

/// Runs of each case.
const RUNS: usize = 3;

/// The run of `case` that took the least processor time.
fn fastest(case: &Case) -> Result<Measured, Error> {
    let mut best = in_a_child(case)?;
    for _ in 1..RUNS {
        let run = in_a_child(case)?;
        if run.cpu_s < best.cpu_s {
            best = run;
        }
    }
    Ok(best)
}

/// Run `case` in a process of its own and read what it prints.
fn in_a_child(case: &Case) -> Result<Measured, Error> {
    let program = std::env::current_exe().map_err(failed)?;
    let output = Command::new(program)
        .args(["bench", "--json", "--case", case.name])
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        return Err(failed(format!("the case {} ended with {}", case.name, output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(failed)
}

/// Run `case` here. Building the fabric counts, reading the scenario does not.
fn measure(case: &Case) -> Result<Measured, Error> {
    let scenario = Scenario::parse(case.name, case.text, std::path::Path::new("."), &[])?;
    let instructions = Instructions::start();
    let (cpu, wall) = (cpu_s()?, Instant::now());
    let outcome = scenario::simulate(&scenario, &Options::default(), &mut |_| ())?.outcome;
    let wall_s = wall.elapsed().as_secs_f64();
    let cpu_s = cpu_s()? - cpu;
    let hops = outcome.packet_hops.max(1) as f64;
    Ok(Measured {
        name: case.name.to_owned(),
        threads: 1,
        packet_hops: outcome.packet_hops,
        events: outcome.events,
        cpu_s,
        wall_s,
        ns_per_packet_hop: cpu_s * 1e9 / hops,
        instructions_per_packet_hop: instructions.and_then(Instructions::stop).map(|n| n / hops),
        peak_rss_mb: peak_rss_mb().unwrap_or(0.0),
    })
}

/// User and system time of this process so far, seconds.
fn cpu_s() -> Result<f64, Error> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(failed)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The most memory this process has held, megabytes (10^6 bytes).
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// Instructions of this thread in user mode, by the processor's counter.
struct Instructions(perf_event::Counter);

impl Instructions {
    /// `None` where the machine or its rules do not allow it (virtual machines, containers).
    fn start() -> Option<Self> {
        let mut counter = perf_event::Builder::new()
            .kind(perf_event::events::Hardware::INSTRUCTIONS)
            .build()
            .ok()?;
        counter.enable().ok()?;
        Some(Self(counter))
    }

    fn stop(mut self) -> Option<f64> {
        self.0.disable().ok()?;
        // A counter that exists and counts nothing is the virtual machine's way to say no.
        self.0.read().ok().filter(|&n| n > 0).map(|n| n as f64)
    }
}
