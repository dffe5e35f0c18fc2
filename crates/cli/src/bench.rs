//! `trimline bench`: the simulator's own speed on fixed scenarios. Each run is a process of its
//! own, so that its peak memory is its own; the best of several runs counts, as neighbours on the
//! machine only ever add.

mod cases;
mod measure;
mod old;
mod table;

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use scenario::Error;
use serde::{Deserialize, Serialize};

use self::cases::Case;
use crate::{Ended, args, cores, own_program, say, tell};

/// One line of the result. The keys are part of the command-line contract.
#[derive(Clone, Serialize, Deserialize)]
struct Measured {
    name: String,
    threads: u32,
    packet_hops: u64,
    events: u64,
    /// User and system time of all threads, seconds.
    cpu_s: f64,
    wall_s: f64,
    /// Processor time over packet-hops.
    ns_per_packet_hop: f64,
    /// Over the event loop, all threads; `None` where the machine gives no performance counters.
    instructions_per_packet_hop: Option<f64>,
    peak_rss_mb: f64,
    /// Over wall time.
    packet_hops_per_s: f64,
    digest: String,
}

/// `trimline bench`.
pub(crate) fn bench(args: &args::Bench) -> Ended {
    let cases = cases::chosen(&args.cases)?;
    if args.child {
        return child(&cases, &args.threads);
    }
    let threads = threads(&args.threads);
    let old = args.compare.as_deref().map(|path| old::read(path, &cases, &threads)).transpose()?;
    let mut all = Vec::new();
    for case in cases {
        all.extend(best(case, &threads, args.runs)?);
    }
    if args.json {
        print_json(&all)?;
    } else {
        say(table::speed(&all))?;
    }
    match old {
        // Standard output is then JSON and nothing else.
        Some(old) if args.json => tell(format_args!("{}\n", table::ratios(&all, &old))),
        Some(old) => say(table::ratios(&all, &old))?,
        None => {}
    }
    Ok(())
}

/// The numbers of threads to run with: `asked`, each once, or one and all cores.
fn threads(asked: &[u32]) -> Vec<u32> {
    let usual = [1, cores()];
    let mut threads = Vec::new();
    for &n in if asked.is_empty() { &usual } else { asked } {
        if !threads.contains(&n) {
            threads.push(n);
        }
    }
    threads
}

/// One run, in this process.
fn child(cases: &[&Case], threads: &[u32]) -> Ended {
    match (cases, threads) {
        ([case], &[threads]) => print_json(&measure::run(case, threads)?),
        _ => Err(failed("one case and one number of threads at a time")),
    }
}

/// `runs` runs of `case` with each number of threads, interleaved, so that a change of the machine
/// meets all of them. The least of every figure.
fn best(case: &Case, threads: &[u32], runs: u32) -> Result<Vec<Measured>, Error> {
    let mut all: Vec<Measured> = Vec::new();
    for run in 1..=runs {
        for &n in threads {
            if std::io::stderr().is_terminal() {
                tell(format_args!("{}, {n} threads, run {run} of {runs}\n", case.name));
            }
            let new = in_a_child(case, n)?;
            if let Some(first) = all.first() {
                same_result(first, &new)?;
            }
            match all.iter_mut().find(|m| m.threads == n) {
                Some(m) => m.keep_least(&new),
                None => all.push(new),
            }
        }
    }
    Ok(all)
}

impl Measured {
    /// Every figure of speed and memory becomes the better one of the two.
    fn keep_least(&mut self, other: &Self) {
        self.cpu_s = self.cpu_s.min(other.cpu_s);
        self.wall_s = self.wall_s.min(other.wall_s);
        self.ns_per_packet_hop = self.ns_per_packet_hop.min(other.ns_per_packet_hop);
        self.packet_hops_per_s = self.packet_hops_per_s.max(other.packet_hops_per_s);
        self.peak_rss_mb = self.peak_rss_mb.min(other.peak_rss_mb);
        let instructions = self.instructions_per_packet_hop;
        self.instructions_per_packet_hop =
            instructions.zip(other.instructions_per_packet_hop).map(|(a, b)| a.min(b));
    }
}

/// No number of threads may change what is simulated.
fn same_result(a: &Measured, b: &Measured) -> Result<(), Error> {
    if a.digest == b.digest && a.packet_hops == b.packet_hops {
        return Ok(());
    }
    let of = |m: &Measured| {
        format!("with --threads {} digest {}, {} packet-hops", m.threads, m.digest, m.packet_hops)
    };
    Err(Error::Run {
        what: format!("{} has two results: {}; {}", a.name, of(a), of(b)),
        hint: format!(
            "this is a defect of the engine; to see it again: trimline bench --case {} --threads \
             {},{}",
            a.name, a.threads, b.threads
        ),
    })
}

/// Run `case` in a process of its own and read what it prints.
fn in_a_child(case: &Case, threads: u32) -> Result<Measured, Error> {
    let program = own_program();
    let output = Command::new(&program[0])
        .args(&program[1..])
        .args(["bench", "--child", "--case", case.name, "--threads", &threads.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        let name = case.name;
        return Err(failed(format!("{name}, --threads {threads}: ended with {}", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(failed)
}

fn failed(what: impl Into<Box<dyn std::error::Error>>) -> Error {
    Error::Run { what: what.into().to_string(), hint: "run `trimline bench` again".to_owned() }
}

fn print_json<T: Serialize>(value: &T) -> Ended {
    say(serde_json::to_string_pretty(value).map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn measured(threads: u32, wall_s: f64) -> Measured {
        Measured {
            name: "x".to_owned(),
            threads,
            packet_hops: 1_000_000,
            events: 1,
            cpu_s: 1.0,
            wall_s,
            ns_per_packet_hop: 1000.0,
            instructions_per_packet_hop: Some(280.0),
            peak_rss_mb: 50.0,
            packet_hops_per_s: 1e6 / wall_s,
            digest: "96684b1b1896b801".to_owned(),
        }
    }

    #[test]
    fn another_digest_or_number_of_packet_hops_is_an_error_that_says_how_to_see_it_again() {
        let (one, mut two) = (measured(1, 2.0), measured(2, 1.0));
        assert!(same_result(&one, &two).is_ok());
        two.digest = "0088dcfb206a99c4".to_owned();
        let error = same_result(&one, &two).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let said = error.render(false).split_whitespace().collect::<Vec<_>>().join(" ");
        let digests =
            ["--threads 1 digest 96684b1b1896b801", "--threads 2 digest 0088dcfb206a99c4"];
        for part in [&digests[..], &["trimline bench --case x --threads 1,2"]].concat() {
            assert!(said.contains(part), "{part:?} is missing in\n{said}");
        }
        two.digest.clone_from(&one.digest);
        two.packet_hops += 1;
        assert!(same_result(&one, &two).is_err());
    }

    #[test]
    fn the_least_of_every_figure_counts() {
        let mut best = measured(1, 2.0);
        let other = Measured {
            cpu_s: 3.0,
            instructions_per_packet_hop: Some(279.0),
            peak_rss_mb: 40.0,
            ..measured(1, 1.5)
        };
        best.keep_least(&other);
        assert_eq!((best.cpu_s, best.wall_s, best.peak_rss_mb), (1.0, 1.5, 40.0));
        assert_eq!(best.instructions_per_packet_hop, Some(279.0));
        assert_eq!(best.packet_hops_per_s, 1e6 / 1.5);
        best.keep_least(&Measured { instructions_per_packet_hop: None, ..other });
        assert_eq!(best.instructions_per_packet_hop, None, "one run could not be counted");
    }

    #[test]
    fn threads_asked_for_twice_are_run_once() {
        assert_eq!(threads(&[2, 1, 2]), [2, 1]);
        assert_eq!(threads(&[]).first(), Some(&1));
    }
}
