//! The command line, as one definition: parser, help and errors come from it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use metrics::Form;
use scenario::{Trace, Which};
use study::Seeds;
use units::{Bytes, Dur, Rate};

use crate::{init, shipped};

/// Packet-level simulation of datacenter transports.
#[derive(Parser)]
#[command(name = "trimline", version = VERSION.as_str(), about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How far a run has come, on stderr: a bar on a terminal and else a line every 10 s
    #[arg(long, global = true, value_enum, default_value_t = Progress::Auto, value_name = "WHEN")]
    pub(crate) progress: Progress,
}

/// Program, commit and engine: what a report of a defect needs.
static VERSION: LazyLock<String> = LazyLock::new(scenario::version);

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// A bar on a terminal, else a line every 10 s
    Auto,
    /// A line every 10 s
    Lines,
    /// Nothing
    Never,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Write a first scenario, with comments, after three questions
    Init(Init),
    /// Write a crate with a transport of your own, which runs beside those here
    #[command(subcommand)]
    New(New),
    /// Run one scenario: a summary on stdout, files in the output directory
    Run(Run),
    /// Say what a scenario will do, and what looks wrong in it, without running it
    Check(Check),
    /// Say what runs will take on this machine, from a short part of each: messages, packet-hops,
    /// memory, wall time
    Estimate(Estimate),
    /// Run several scenarios, two at a time, and print one table that compares them; or, as
    /// `compare sim testbed FILE`, one scenario in the simulator and on this machine
    Compare(Compare),
    /// Run a scenario again and say where the time of one of its messages went (docs/explain.md)
    Explain(Explain),
    /// Run a scenario along its own sweep: mean and 95 % interval per point
    Sweep(Sweep),
    /// Search for the best values of some keys of a scenario, and say which others are as good
    /// (docs/tuning.md)
    Tune(Tune),
    /// Run a study or a figure of it: published, band, measured and verdict of every row
    Reproduce(Reproduce),
    /// Say how many rows of reproduced studies came out: a line per study, and a page
    Scoreboard(Scoreboard),
    /// Run lists of cases of the public Ultra Ethernet simulator (validate_*.txt): limit, tail and
    /// verdict of each (docs/peers-files.md)
    Validate(Validate),
    /// List what a scenario can name, one line each
    List {
        /// Category
        what: What,
        /// Print a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Write what comes with Trimline into a directory: scenarios, studies, P4 programs, and
    /// Wireshark's script
    Examples {
        /// Where they go
        dir: PathBuf,
        /// Print JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Print a script that completes this command line in a shell
    Completions {
        /// Which shell
        shell: Shell,
        /// Print JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Write manual pages, one for each command
    Man {
        /// Where they go
        dir: PathBuf,
        /// Print JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Build (or rebuild) DIR/report.html from the results in DIR
    Report {
        /// The output directory of a run
        dir: PathBuf,
        /// Print JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Measure the simulator's own speed on fixed scenarios, with one thread and with several
    Bench(Bench),
    /// Work on programs of the NIC's pipelines (docs/p4.md)
    #[command(subcommand)]
    P4(P4),
    /// Size the NIC's buffers (docs/nic-uses.md)
    #[command(subcommand)]
    Nic(Nic),
    /// Make hardware of a P4 program: a design, a comparison, a report (docs/rtl.md)
    #[command(subcommand)]
    Rtl(Rtl),
    /// Be one switch of a scenario, for real frames at interfaces of this machine (docs/hosts.md)
    Switch(Switch),
    /// Run scenarios on this machine: hosts and switches in network namespaces (docs/hosts.md)
    #[command(subcommand)]
    Testbed(Testbed),
}

#[derive(Args)]
pub(crate) struct Init {
    /// The file to write
    #[arg(default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
    /// The answer to the first question
    #[arg(long, value_name = "ANSWER", value_parser = init::FABRIC.names())]
    pub(crate) fabric: Option<String>,
    /// To the second
    #[arg(long, value_name = "ANSWER", value_parser = init::TRANSPORT.names())]
    pub(crate) transport: Option<String>,
    /// To the third
    #[arg(long, value_name = "ANSWER", value_parser = init::TRAFFIC.names())]
    pub(crate) traffic: Option<String>,
    /// Print JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum New {
    /// Write a crate: a transport with a window, its tests, and a program that runs it beside NDP
    Transport(NewTransport),
}

#[derive(Args)]
pub(crate) struct NewTransport {
    /// What the crate is called, and its directory
    pub(crate) name: String,
    /// Where it goes [default: the name]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The directory of Trimline's sources, which the crate builds against [default: its
    /// repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) trimline: Option<PathBuf>,
    /// Print JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Switch {
    /// The scenario (TOML): its topology, `queue`, `routing` and `fault` are the switch's
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) edits: Edits,
    /// Which switch of the topology, as `fault` names it
    #[arg(long, value_name = "SWITCH", default_value = "tor 0")]
    pub(crate) switch: String,
    /// The interface of the port that leads to a host or switch: --port "host 3=eth2" (may be
    /// repeated) [default: p0, p1, ... in the order of the topology's links]
    #[arg(long = "port", value_name = "NODE=INTERFACE")]
    pub(crate) ports: Vec<String>,
    /// Write what comes and what becomes of it to this file (CSV)
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Write every frame that comes or leaves to this file (pcapng), one interface for each link
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) capture: Option<PathBuf>,
    /// Do not forward; play such a record to the simulator, which has to do the same
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// End after this time [default: when interrupted]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<Dur>,
    /// Take frames by AF_XDP (as root): cheaper than AF_PACKET
    #[arg(long)]
    pub(crate) xdp: bool,
    /// Never sleep: takes a core, and saves being woken
    #[arg(long)]
    pub(crate) busy: bool,
    #[command(flatten)]
    pub(crate) harm: Harm,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// What happens to frames as they leave a switch.
#[derive(Args)]
pub(crate) struct Harm {
    /// Send this share of frames twice
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(crate) duplicate: f64,
    /// Let this share of frames be overtaken by the next one
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(crate) reorder: f64,
    /// Change a bit of this share of frames
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(crate) corrupt: f64,
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("from 0 to 1".to_owned()) }
}

#[derive(Subcommand)]
pub(crate) enum Testbed {
    /// Make the network namespaces of a scenario's topology
    Up(TestbedUp),
    /// Run the scenario in them: the same summary and result files as of a simulated run
    Run(TestbedRun),
    /// Remove them, also those that a crash has left
    Down(TestbedDown),
}

#[derive(Args)]
pub(crate) struct TestbedUp {
    /// The scenario (TOML)
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) edits: Edits,
    /// What to call the testbed [default: the name of the file]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Print JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct TestbedRun {
    #[command(flatten)]
    pub(crate) up: TestbedUp,
    /// Where the result files go [default: out/testbed/ and the name of the scenario file]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Hosts and switches use AF_XDP (as root): cheaper than UDP sockets and AF_PACKET
    #[arg(long)]
    pub(crate) xdp: bool,
    /// Hosts and switches never sleep: for machines with a core for each
    #[arg(long)]
    pub(crate) busy: bool,
    /// Also capture every frame on every link (packets.pcapng, hops.pcapng), at the switches
    #[arg(long)]
    pub(crate) capture: bool,
    #[command(flatten)]
    pub(crate) harm: Harm,
}

#[derive(Args)]
pub(crate) struct TestbedDown {
    /// The scenario (TOML); only its name is looked at
    #[arg(required_unless_present = "name")]
    pub(crate) file: Option<PathBuf>,
    /// What the testbed is called [default: the name of the file]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Print JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum Rtl {
    /// Write a self-contained design in SystemVerilog: sources, file list, ports, an example
    Build(RtlBuild),
    /// Run the design in Verilator beside the model of it, cycle by cycle
    Cosim(RtlCosim),
    /// Say what the design takes: cycles, spacing, state, memory, area and clock
    Report(RtlReport),
}

#[derive(Args)]
pub(crate) struct Hardware {
    #[command(flatten)]
    pub(crate) program: P4Program,
    /// Change a size or a time of the NIC, by its key of scenarios: --set rx_messages=128; of a
    /// switch's port: memory, weights, places
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "pipelines")]
    pub(crate) sets: Vec<String>,
    /// Only the pipelines, as modules
    #[arg(long)]
    pub(crate) pipelines: bool,
    /// The link that the design has to keep up with, two of the shortest frames back to back
    #[arg(long, value_name = "RATE", default_value = USUAL_RATE, value_parser = some_rate)]
    pub(crate) rate: Rate,
}

/// The link of a design of which nothing is said.
pub(crate) const USUAL_RATE: &str = "200Gbps";

/// A rate at which something comes.
fn some_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|why: units::UnitError| why.to_string())?;
    if rate == Rate(0) { Err("a link has some rate, such as 100Gbps".into()) } else { Ok(rate) }
}

#[derive(Args)]
pub(crate) struct RtlBuild {
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// The NIC with its bytes: frames and messages go in and out as beats of 64 bytes
    #[arg(long, conflicts_with = "pipelines")]
    pub(crate) bytes: bool,
    /// Where the design goes: a directory that is not there, or is empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Print JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RtlCosim {
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// The NIC with its bytes, which are compared, too: a third of the packets at a beat a cycle, a
    /// third at the pace of their links, a third where everybody stops now and then
    #[arg(long, conflicts_with_all = ["pipelines", "replay"])]
    pub(crate) bytes: bool,
    /// Packets that the design is given; of pipelines alone, each pipeline
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) packets: u64,
    /// Of all draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Draw the distances of packets; otherwise they come as close as they may
    #[arg(long)]
    pub(crate) spaced: bool,
    /// Give it the inputs of an earlier mismatch instead: its trace.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["packets", "seed", "spaced"])]
    pub(crate) replay: Option<PathBuf>,
    /// Where trace and waveform of a mismatch go
    #[arg(long, value_name = "DIR", default_value = "out/rtl")]
    pub(crate) out: PathBuf,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RtlReport {
    #[command(flatten)]
    pub(crate) hardware: Hardware,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out area and clock, which take minutes the first time
    #[arg(long)]
    pub(crate) no_synthesis: bool,
}

#[derive(Subcommand)]
pub(crate) enum Nic {
    /// Choose its buffers: size classes and how many of each, from how long messages are
    Size(NicSize),
}

#[derive(Args)]
pub(crate) struct NicSize {
    /// How long messages are: a distribution (trimline list workloads), or a file with points of
    /// one
    pub(crate) sizes: String,
    /// Memory for the buffers of both directions, such as 1.2MB
    #[arg(long, value_name = "SIZE")]
    pub(crate) sram: Option<Bytes>,
    /// Messages at once, each way [default: as many as the memory holds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) messages: Option<u32>,
    /// Size classes, at most
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) classes: u8,
    /// The longest message that the NIC takes, at most 65472B
    #[arg(long, value_name = "SIZE", default_value = "38912B", value_parser = message_size)]
    pub(crate) longest: Bytes,
    /// Percent of so many messages that may find no buffer, on average
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1, value_parser = percent)]
    pub(crate) refused: f64,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// A size that a buffer may have: the header's length has 16 bits, and memory has words of 64
/// bytes.
fn message_size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|why: units::UnitError| why.to_string())?;
    if (1..=65_472).contains(&size.0) { Ok(size) } else { Err("1B to 65472B".to_owned()) }
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..100.0).contains(&value) { Ok(value) } else { Err("0 or more, below 100".to_owned()) }
}

#[derive(Subcommand)]
pub(crate) enum P4 {
    /// Check a program: its mistakes, or how many stages and cycles its pipelines take
    Check(P4Check),
}

#[derive(Args)]
pub(crate) struct P4Check {
    #[command(flatten)]
    pub(crate) program: P4Program,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct P4Program {
    /// The program; what it includes is looked for beside it
    pub(crate) file: PathBuf,
    /// Give a constant of the program another value (may be repeated)
    #[arg(long = "constant", value_name = "NAME=VALUE", value_parser = constant)]
    pub(crate) constants: Vec<(String, i128)>,
    /// A file of entries for its tables (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
}

/// `NAME=VALUE`: a number as P4 writes it (`12`, `0xff`, `0b11`, `-1`), `true` or `false`.
fn constant(text: &str) -> Result<(String, i128), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let (sign, digits) = value.strip_prefix('-').map_or((1, value), |digits| (-1, digits));
    let based = |prefix, radix| digits.strip_prefix(prefix).map(|digits| (digits, radix));
    let (digits, radix) = based("0x", 16).or(based("0b", 2)).unwrap_or((digits, 10));
    let number = || {
        let unsigned = !digits.starts_with(['+', '-']);
        Some(sign * i128::from_str_radix(digits, radix).ok().filter(|_| unsigned)?)
    };
    let value = match value {
        "true" => Some(1),
        "false" => Some(0),
        _ => number(),
    };
    let why = "such as 12, 0xff or -1, and neither `true` nor `false`";
    Ok((name.to_owned(), value.ok_or_else(|| format!("`{text}` gives no number {why}"))?))
}

#[derive(Args)]
pub(crate) struct Run {
    /// The scenario (TOML), or the manifest.json of an earlier run
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) edits: Edits,
    /// Threads: so many, or as many as pay (auto), found out during the run: from one, in a small
    /// fabric, to one for each core. No effect on results
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = threads)]
    pub(crate) threads: Threads,
    /// Where the result files go [default: out/ and the name of the scenario file]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Also write traces: packets (packets.pcapng, hops.pcapng, trace.perfetto.json), those seen
    /// at a host, switch or link (packets@host:0), queues, sampled (queues.parquet), flows@SRC:MSG,
    /// the windows, rates and round trips of a message (flow_trace.parquet)
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) trace: Vec<Trace>,
    /// Skip time in which everything repeats (engine.skip=true): quicker, with an error
    #[arg(long)]
    pub(crate) skip: bool,
    /// Run again with this share of what is skipped simulated, from above 0 to 1 (all of it), and
    /// print how far completion times are off
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) verify: Option<f64>,
    /// Check the costly invariants, too
    #[arg(long)]
    pub(crate) check: bool,
    /// The event queue: heap is the slow cross-check, with the same results
    #[arg(long, value_enum, default_value_t = Events::Wheel)]
    pub(crate) events: Events,
    /// How departures are worked out: eager is the slow cross-check, with the same results
    #[arg(long, value_enum, default_value_t = Departures::Lazy)]
    pub(crate) departures: Departures,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Check {
    /// The scenario (TOML), or the manifest.json of an earlier run
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) edits: Edits,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Validate {
    /// The lists; matrices and topologies are found relative to each
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// The seed of cases without `-seed`
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads, as for `trimline run`
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = threads)]
    pub(crate) threads: Threads,
    /// Print a JSON list instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Estimate {
    /// The scenarios (TOML), or manifest.json of earlier runs
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) edits: Edits,
    /// Threads, as for `trimline run`
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = threads)]
    pub(crate) threads: Threads,
    /// Estimate the jobs of each scenario's `[sweep]`, with one thread each, as `trimline sweep`
    /// runs them
    #[arg(long, conflicts_with_all = ["seed", "threads"])]
    pub(crate) sweep: bool,
    /// Run so much of each, in real time
    #[arg(long = "for", value_name = "TIME", default_value = "2s")]
    pub(crate) time: Dur,
    /// Print a JSON list instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Explain {
    /// The scenario (TOML), the output directory of an earlier run, or its manifest.json
    pub(crate) file: PathBuf,
    /// Which message: SRC:MSG as in flows.parquet, or `max`, the one that took the longest
    #[arg(value_name = "MSG", default_value = "max")]
    pub(crate) message: Which,
    #[command(flatten)]
    pub(crate) edits: Edits,
    /// Print every line, also of a long life
    #[arg(long)]
    pub(crate) all: bool,
    /// Write the life to this file, as a page for a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Compare {
    /// The scenarios (TOML), or `sim testbed FILE`; one with `[[variant]]` tables stands for these
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) edits: Edits,
    /// Run each scenario with all of these seeds, 1-10 or 1-5,8, and say what differs by more than
    /// chance
    #[arg(long, value_name = "RANGES", conflicts_with = "seed")]
    pub(crate) seeds: Option<Seeds>,
    /// With --seeds: compare this metric, or formula over metrics (may be repeated) [default:
    /// completion times, slowdown, goodput, timeouts]
    #[arg(long = "metric", value_name = "METRIC", requires = "seeds")]
    pub(crate) metrics: Vec<String>,
    /// With --seeds: the scenario or variant that others are compared with [default: the first]
    #[arg(long, value_name = "NAME", requires = "seeds")]
    pub(crate) baseline: Option<String>,
    /// With `sim testbed`: hosts and switches use AF_XDP (as root)
    #[arg(long)]
    pub(crate) xdp: bool,
    /// With `sim testbed`: hosts and switches never sleep, for machines with a core for each
    #[arg(long)]
    pub(crate) busy: bool,
    /// Where the result files go, one directory per scenario [default: out/compare, with --seeds
    /// out/comparison]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

impl Compare {
    /// An option that is given and says how a testbed is run.
    pub(crate) fn wires(&self) -> Option<&'static str> {
        [("--xdp", self.xdp), ("--busy", self.busy)]
            .into_iter()
            .find_map(|(name, is)| is.then_some(name))
    }
}

#[derive(Args)]
pub(crate) struct Sweep {
    /// The scenario (TOML)
    pub(crate) file: PathBuf,
    /// Change a value of the scenario in every run, for example --set transport.initial_window=23
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Seeds in place of those of the file: 1-10 or 1-5,8
    #[arg(long, value_name = "RANGES")]
    pub(crate) seeds: Option<Seeds>,
    /// Add seeds to a point until half of each of its intervals is at most this share of the value,
    /// such as 5%, or there are no more; ten at least
    #[arg(long, value_name = "PERCENT", value_parser = study::share, conflicts_with = "phases")]
    pub(crate) until: Option<f64>,
    /// Draw ties, clocks and jitter once for all seeds, then again for the first one, and name what
    /// that moves by more than single seeds differ
    #[arg(long)]
    pub(crate) phases: bool,
    /// Where the result files go [default: out/sweep/ and the name of the scenario file]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

#[derive(Args)]
pub(crate) struct Tune {
    /// The scenario (TOML), with a table `[tune]`
    pub(crate) file: PathBuf,
    /// Change a value of the scenario in every run, for example --set topology.k=16
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Seeds in place of those of the file: 1-40 or 1-20,31-40
    #[arg(long, value_name = "RANGES")]
    pub(crate) seeds: Option<Seeds>,
    /// How many runs the halving takes at most, in place of that of the file; finished ones are
    /// not run again
    #[arg(long, value_name = "RUNS")]
    pub(crate) budget: Option<u64>,
    /// Where the result files go [default: out/tune/ and the name of the scenario file]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

/// How the jobs of a sweep, a comparison or a search are run.
#[derive(Args)]
pub(crate) struct Jobs {
    /// Runs that go on at once, a process each; no effect on results [default: all cores]
    #[arg(long, value_name = "N", value_parser = thread_count())]
    pub(crate) threads: Option<u32>,
    /// Keep the messages of each run: flows.parquet in its directory
    #[arg(long)]
    pub(crate) flows: bool,
    /// Run nothing: show the results that there are, and say which are missing
    #[arg(long)]
    pub(crate) collect: bool,
    /// Run nothing: write a script that runs what is left of the jobs on a cluster
    #[arg(long, value_enum, value_name = "SCHEDULER", conflicts_with = "collect")]
    pub(crate) emit: Option<Scheduler>,
    /// Run nothing: list the jobs with their directories
    #[arg(long, conflicts_with_all = ["collect", "emit"])]
    pub(crate) list_jobs: bool,
    /// Run only the jobs of these numbers, into their directories, and show no results
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["collect", "emit", "list_jobs"])]
    pub(crate) job: Vec<JobNumber>,
    /// Be the worker process of another one: run the job with N threads
    #[arg(long, value_name = "N", hide = true, requires = "job")]
    pub(crate) worker: Option<u32>,
    /// Print JSON instead of tables; with --list-jobs a list, with the command that runs each
    #[arg(long)]
    pub(crate) json: bool,
}

impl Jobs {
    /// The first option that is there, if one is.
    pub(crate) fn first(&self) -> Option<&'static str> {
        let options = [
            (self.threads.is_some(), "--threads"),
            (self.flows, "--flows"),
            (self.collect, "--collect"),
            (self.emit.is_some(), "--emit"),
            (self.list_jobs, "--list-jobs"),
            (!self.job.is_empty(), "--job"),
        ];
        options.into_iter().find_map(|(is_there, option)| is_there.then_some(option))
    }
}

/// A job by its number, `3`; in arrays with the beginning of its directory's name, `3:0f3a9c21`,
/// which another scenario would not have.
#[derive(Clone, Debug)]
pub(crate) struct JobNumber {
    pub(crate) number: usize,
    pub(crate) name: Option<String>,
}

impl FromStr for JobNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, name) = match text.split_once(':') {
            Some((number, name)) => (number, Some(name.to_owned())),
            None => (text, None),
        };
        let number = number.trim().parse().map_err(|_| "a number of --list-jobs".to_owned())?;
        Ok(Self { number, name })
    }
}

/// What runs jobs on a cluster.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scheduler {
    /// A script for sbatch: an array of jobs
    Slurm,
}

#[derive(Args)]
pub(crate) struct Reproduce {
    /// A study or a figure in ./studies (ndp, ndp/fig14), or the path of its directory
    #[arg(hide_possible_values = true, value_parser = Suggested(shipped::studies().into_iter().map(|(name, _)| name).collect()))]
    pub(crate) study: String,
    /// A part of it: fewer sizes and seeds, shorter runs, the same parameters
    #[arg(long)]
    quick: bool,
    /// Run only what published rows and the experiments on their causes read, with all sizes and
    /// seeds; rows of our own are left out
    #[arg(long, conflicts_with = "quick")]
    published: bool,
    /// Where the result files go [default: out/reproduce/ and the name of the study]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs that go on at once; no effect on results [default: all cores]
    #[arg(long, value_name = "N", value_parser = thread_count())]
    pub(crate) threads: Option<u32>,
    /// Run every seed; without, a run stops when another seed would hardly change a verdict
    #[arg(long)]
    pub(crate) all_seeds: bool,
    /// Draw ties, clocks and jitter once for all seeds, then again for the first one, and name what
    /// that moves by more than single seeds differ
    #[arg(long, conflicts_with = "record")]
    pub(crate) phases: bool,
    /// Write the verdicts to the study's verdicts.toml, with which later runs are compared
    #[arg(long)]
    pub(crate) record: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Any text; shells complete these names.
#[derive(Clone)]
struct Suggested(Vec<&'static str>);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

impl Reproduce {
    pub(crate) const fn form(&self) -> Form {
        match (self.published, self.quick) {
            (true, _) => Form::Published,
            (false, true) => Form::Quick,
            (false, false) => Form::Full,
        }
    }
}

#[derive(Args)]
pub(crate) struct Scoreboard {
    /// Directories that `trimline reproduce` wrote, one per study
    #[arg(required = true, value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Write the scoreboard with the headline numbers to this Markdown file
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Changes to a scenario from the command line.
#[derive(Args)]
pub(crate) struct Edits {
    /// Change a value of the scenario, for example --set transport.initial_window=23
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) sets: Vec<String>,
    /// The same as --set seed=N
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

impl Edits {
    /// All edits in order, the seed last.
    pub(crate) fn all(&self) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        self.sets.iter().cloned().chain(seed).collect()
    }
}

#[derive(Args)]
pub(crate) struct Bench {
    /// Print a JSON list instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Only this case; may be given several times
    #[arg(long = "case", value_name = "NAME")]
    pub(crate) cases: Vec<String>,
    /// Run each case with these numbers of threads [default: 1 and all cores]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = thread_count())]
    pub(crate) threads: Vec<u32>,
    /// Runs of each case and number of threads, of which the best counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Also print new/old ratios to what an earlier `trimline bench --json` printed into FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Run one case once, in this process (what each run is)
    #[arg(long, hide = true, requires = "cases", requires = "threads")]
    pub(crate) child: bool,
}

/// How many threads a run has.
#[derive(Clone, Copy)]
pub(crate) enum Threads {
    /// As many as pay.
    Auto,
    /// So many.
    Number(u32),
}

impl Threads {
    /// As in [`scenario::Options`].
    pub(crate) const fn number(self) -> Option<u32> {
        match self {
            Self::Auto => None,
            Self::Number(n) => Some(n),
        }
    }
}

/// A number of threads, or `auto`.
fn threads(text: &str) -> Result<Threads, String> {
    match text.parse() {
        Ok(n @ 1..=THREADS_MAX) => Ok(Threads::Number(n)),
        _ if text == "auto" => Ok(Threads::Auto),
        _ => Err(format!("neither `auto` nor a number from 1 to {THREADS_MAX}")),
    }
}

/// The most threads that can be asked for.
const THREADS_MAX: u32 = 1024;

/// A number of worker threads.
fn thread_count() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(THREADS_MAX))
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum What {
    /// What runs on hosts
    Transports,
    /// Shapes of fabrics
    Topologies,
    /// Disciplines of switch ports
    Queues,
    /// Traffic and size distributions
    Workloads,
    /// Keys of scenarios: table and key, type, range, default, meaning
    Keys,
    /// The same as a JSON schema, for editors
    Schema,
    /// Published evaluations in ./studies
    Studies,
    /// Scenarios that come with Trimline; `trimline examples DIR` writes them
    Scenarios,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Events {
    /// A timing wheel
    Wheel,
    /// A binary heap
    Heap,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Departures {
    /// Replayed when a port is next touched
    Lazy,
    /// An event each
    Eager,
}
