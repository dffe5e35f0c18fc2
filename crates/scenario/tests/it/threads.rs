//! Fifty scenarios that nobody has thought up: whatever is drawn, 1, 2, 3, 4 and 8 threads, either
//! event queue and either way to work out departures give the same run to the last packet.
//!
//! Each scenario comes from a seed of its own. A difference fails with the seed and the scenario.
//! `TRIMLINE_SWARM=1000` draws a thousand, `TRIMLINE_SWARM_SEED=17` begins with seed 17.

use crate::drawn;

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::ops::ControlFlow;
use std::path::Path;

use drawn::{Dice, Drawn, draw, draw_lossless, is_tree, parse, setting};
use endpoint::{App, Endpoint, Framing, MessageRecord, Observer, Stat};
use fabric::{
    Config, Conservation, Counters, Deadlock, Departures, Encoding, End, Events, Fault,
    FaultAction, HostClock, LinkStats, Outcome, Routing, Sample, SendJitter, Sim, Skipped, Threads,
    Topology,
};
use metrics::{FlowRow, JobRow};
use queues::{
    Capacity, DropTailSpec, NdpSpec, PfcBufferStats, QueueSpec, SharedBufferSpec, SharedBufferStats,
};
use transports::{ndp, tcp};
use trimline_scenario::{Options, Scenario, simulate};
use units::{Dur, MsgKey, Time};
use workload::Plan;

// ---------------------------------------------------------------------------- what is compared

/// One way to carry out a run.
#[derive(Clone, Copy, Debug)]
struct Way {
    threads: u32,
    heap: bool,
    eager: bool,
    check: bool,
}

const fn way(threads: u32) -> Way {
    Way { threads, heap: false, eager: false, check: false }
}

/// The first is what the others are held against.
const WAYS: [Way; 9] = [
    way(1),
    way(2),
    way(3),
    way(4),
    way(8),
    Way { heap: true, ..way(1) },
    Way { eager: true, ..way(1) },
    Way { check: true, ..way(4) },
    Way { heap: true, eager: true, ..way(3) },
];

/// Everything that a run says of itself.
#[derive(Debug, PartialEq)]
struct Told<Row> {
    partitions: u32,
    digest: u64,
    end: End,
    now: Time,
    events: u64,
    packet_hops: u64,
    counters: Counters,
    conservation: Conservation,
    queue_bytes_p99: Option<u32>,
    links: Vec<LinkStats>,
    buffers: Vec<SharedBufferStats>,
    memories: Vec<PfcBufferStats>,
    deadlock: Option<Deadlock>,
    samples: Vec<Sample>,
    skipped: Skipped,
    rows: Vec<Row>,
}

impl<Row> Told<Row> {
    fn of(outcome: Outcome, rows: Vec<Row>) -> Self {
        let Outcome {
            digest,
            now,
            events,
            partitions,
            packet_hops,
            counters,
            conservation,
            links,
            buffers,
            memories,
            deadlock,
            samples,
            queue_bytes_p99,
            skipped,
            end,
        } = outcome;
        Self {
            partitions,
            digest,
            end,
            now,
            events,
            packet_hops,
            counters,
            conservation,
            queue_bytes_p99,
            links,
            buffers,
            memories,
            deadlock,
            samples,
            skipped,
            rows,
        }
    }
}

/// Carry out a run in all ways, which must agree but for the partitions. What it says, with the
/// most partitions that it ran in.
fn agree<Row: Debug + PartialEq>(
    about: &str,
    run: impl Fn(Way) -> Result<Told<Row>, String>,
) -> Told<Row> {
    let mut partitions = 0;
    let mut all = WAYS.iter().map(|&way| {
        let mut told = run(way).unwrap_or_else(|why| panic!("{way:?}: {why}\n{about}"));
        partitions = partitions.max(std::mem::take(&mut told.partitions));
        (way, told)
    });
    let (_, mut first) = all.next().unwrap();
    for (way, told) in all {
        if told != first {
            panic!("{way:?} is another run\n{}\n{about}", differences(&first, &told));
        }
    }
    first.partitions = partitions;
    first
}

/// The first lines in which two values differ.
fn differences(a: &impl Debug, b: &impl Debug) -> String {
    let (a, b) = (format!("{a:#?}"), format!("{b:#?}"));
    let lines = a.lines().zip(b.lines()).enumerate().filter(|(_, (a, b))| a != b).take(20);
    lines.map(|(n, (a, b))| format!("line {n}: {} | {}\n", a.trim(), b.trim())).collect()
}

fn run_scenario(scenario: &Scenario, way: Way) -> Result<Told<Row>, String> {
    let Way { threads, heap, eager, check } = way;
    let options = Options { threads: Some(threads), heap, eager, check, ..Options::default() };
    let told = simulate(scenario, &options, &mut |_| ()).map_err(|why| why.render(false))?;
    let flows = told.flows.into_iter().map(Row::Flow);
    let rows = flows.chain(told.jobs.into_iter().map(Row::Job)).collect();
    Ok(Told::of(told.outcome, rows))
}

/// A row of `flows.parquet` or of `jobs.parquet`.
#[derive(Debug, PartialEq)]
enum Row {
    Flow(FlowRow),
    Job(JobRow),
}

/// Keeps what became of messages, and what was counted for them.
#[derive(Debug, Default, PartialEq)]
struct Keep {
    messages: Vec<MessageRecord>,
    counts: BTreeMap<(MsgKey, u8), u64>,
}

impl Observer for Keep {
    fn message(&mut self, record: &MessageRecord) {
        self.messages.push(*record);
    }

    fn count(&mut self, key: MsgKey, stat: Stat, times: u64) {
        *self.counts.entry((key, stat as u8)).or_default() += times;
    }
}

/// The plan of a connection matrix on the drawn fabric, with signals that take `delay`. In
/// scenarios those of triggers always take one picosecond, and whoever has triggers runs in one
/// partition.
struct Signals {
    fabric: Topology,
    plan: Plan,
    delay: Dur,
    config: Config,
    ndp: bool,
    payload: u16,
}

impl Signals {
    fn new(drawn: &Drawn, seed: u64, fabric: &Topology, plan: Plan) -> Self {
        let dice = &mut Dice::new(!seed);
        let ns = dice.pick(&[1, 99, 100, 130, 700, 1_000, 12_345]);
        let queue = match drawn.ndp {
            true => QueueSpec::Ndp(NdpSpec {
                data_capacity: Capacity::Packets(dice.pick(&[1, 2, 8])),
                header_capacity: Capacity::Bytes(dice.pick(&[128, 640, 20_000])),
                ..NdpSpec::PAPER
            }),
            false => QueueSpec::DropTail(DropTailSpec {
                capacity: Capacity::Packets(dice.pick(&[3, 20])),
                ecn_threshold: Some(Capacity::Packets(2)),
            }),
        };
        let buffer = SharedBufferSpec { size: 30_000, alpha: 0.5 };
        let encoded = Routing::Encoded(Encoding::SourceRoute);
        let routings = [Routing::FlowHash, Routing::PacketRandom, Routing::Source, encoded];
        let jitters = [SendJitter::None, SendJitter::Frame, SendJitter::UpTo(Dur::from_ns(50))];
        let host_clock =
            HostClock { tolerance_ppm: dice.pick(&[0, 100]), send_jitter: dice.pick(&jitters) };
        let config = Config {
            host_clock,
            routing: dice
                .pick(&routings[..if !drawn.ndp { 2 } else { 3 + usize::from(is_tree(fabric)) }]),
            buffer: (!drawn.ndp && dice.percent(50)).then_some(buffer),
            faults: drawn.faults.clone(),
            reroute_after: Dur::from_ns(dice.below(30_000)),
            limit: drawn.limit,
            sample_every: Some(Dur::from_us(7)),
            check: false,
            ..Config::new(seed, Framing { payload: drawn.payload, overhead: 64 }, queue)
        };
        let (fabric, delay) = (fabric.clone(), Dur::from_ns(ns));
        Self { fabric, plan, delay, config, ndp: drawn.ndp, payload: drawn.payload }
    }

    fn endpoint(&self) -> Box<dyn Endpoint> {
        let (short, long) = (Dur::from_us(30), Dur::from_us(90));
        if self.ndp {
            let paper = ndp::Config::paper(self.payload);
            let config = ndp::Config { rto_initial: long, rto_min: short, rto_max: long, ..paper };
            Box::new(ndp::Ndp::new(config).unwrap())
        } else {
            let linux = tcp::Config::linux_datacenter(self.payload);
            let rto = transports::rto::RtoConfig { initial: long, min: short, ..linux.rto };
            let config = tcp::Config { overhead: 64, rto, ..linux };
            Box::new(tcp::Tcp::new(config).unwrap())
        }
    }

    fn run(&self, way: Way) -> Result<Told<Keep>, String> {
        let hosts = self.fabric.hosts();
        let apps = self.plan.schedules(hosts, self.delay).map_err(|why| why.to_string())?;
        let apps = apps.into_iter().map(|app| Box::new(app) as Box<dyn App>).collect();
        let endpoints = (0..hosts).map(|_| self.endpoint()).collect();
        let Way { threads, check, .. } = way;
        let config = Config {
            events: if way.heap { Events::Heap } else { Events::Wheel },
            departures: if way.eager { Departures::Eager } else { Departures::Lazy },
            threads: Threads::Fixed(threads),
            check,
            ..self.config.clone()
        };
        let mut keep = Keep::default();
        let sim = Sim::new(self.fabric.clone(), config, endpoints, apps, &mut keep);
        let outcome = sim
            .map_err(|why| why.to_string())?
            .run(&mut |_| ControlFlow::Continue(()))
            .map_err(|violated| violated.to_string())?;
        Ok(Told::of(outcome, vec![keep]))
    }
}

// ---------------------------------------------------------------------------- the test

/// How many runs had what.
#[derive(Debug, Default)]
struct Seen {
    /// Threads of this process beside those of a run.
    runs: u32,
    ndp: u32,
    newreno: u32,
    mptcp: u32,
    handshakes: u32,
    ictcp: u32,
    graphs: u32,
    vl2: u32,
    several_partitions: u32,
    eight_partitions: u32,
    link_faults: u32,
    slow_links: u32,
    lost_on_links: u32,
    triggers: u32,
    signals_between_partitions: u32,
    trimmed: u32,
    bounced: u32,
    dropped: u32,
    marked: u32,
    marked_leaving: u32,
    shared_buffers: u32,
    over_threshold: u32,
    exhausted: u32,
    timeouts: u32,
    failed: u32,
    packet_hops: u64,
    /// Fabrics that are cut, with blocks of a barrier, queries or calls.
    blocks_between_partitions: u32,
    queries_between_partitions: u32,
    calls_between_partitions: u32,
    /// Queries with some results too late.
    incomplete_queries: u32,
}

impl Seen {
    fn note_jobs(&mut self, drawn: &Drawn, told: &Told<Row>) {
        let rows = || told.rows.iter();
        let jobs =
            || rows().filter_map(|row| if let Row::Job(job) = row { Some(job) } else { None });
        let ran = |kind| drawn.text.contains(kind) && jobs().any(|job| job.completed);
        let cut = told.partitions > 1;
        self.blocks_between_partitions += u32::from(cut && ran("barrier"));
        self.queries_between_partitions += u32::from(cut && ran("partition-aggregate"));
        self.calls_between_partitions += u32::from(cut && ran("\"rpc\""));
        self.incomplete_queries += u32::from(
            jobs().any(|job| job.completed && 0 < job.in_time && job.in_time < job.parts),
        );
    }

    fn note<Row>(&mut self, drawn: &Drawn, told: &Told<Row>) {
        let count = told.counters;
        self.vl2 += u32::from(drawn.text.contains("\"vl2\"") && told.partitions > 1);
        let graph = ["jellyfish", "bcube"].iter().any(|kind| drawn.text.contains(kind));
        self.graphs += u32::from(graph && told.partitions > 1);
        self.runs += 1;
        self.ndp += u32::from(drawn.ndp);
        self.newreno += u32::from(!drawn.ndp);
        let cut_with = |key| u32::from(told.partitions > 1 && drawn.text.contains(key));
        self.mptcp += cut_with("\"multipath\"") + cut_with("\"scatter-then-multipath\"");
        self.handshakes += cut_with("handshake = true");
        self.ictcp += cut_with("\"ictcp\"");
        self.several_partitions += u32::from(told.partitions > 1);
        self.eight_partitions += u32::from(told.partitions >= 8);
        self.link_faults += u32::from(!drawn.faults.is_empty());
        let slow = |fault: &Fault| matches!(fault.action, FaultAction::Rate(_));
        self.slow_links += u32::from(drawn.faults.iter().any(slow));
        let lost = |fault: &Fault| told.links[fault.link as usize].dropped > 0;
        self.lost_on_links += u32::from(drawn.faults.iter().any(lost));
        self.trimmed += u32::from(count.trimmed > 0);
        self.bounced += u32::from(count.bounced > 0);
        self.dropped += u32::from(count.dropped > 0);
        let leaving = drawn.text.contains("mark_at = \"departure\"");
        self.marked += u32::from(count.marked > 0);
        self.marked_leaving += u32::from(count.marked > 0 && leaving);
        let buffers = told.buffers.iter();
        let (over, exhausted) = buffers.fold((0, 0), |(over, exhausted), buffer| {
            (over + buffer.over_threshold, exhausted + buffer.exhausted)
        });
        self.shared_buffers += u32::from(!told.buffers.is_empty() && told.partitions > 1);
        self.over_threshold += u32::from(over > 0);
        self.exhausted += u32::from(exhausted > 0);
        self.timeouts += u32::from(count.stat(Stat::Timeout) > 0);
        let causes =
            [Stat::HeadTimeout, Stat::TailTimeout, Stat::RetransmissionTimeout, Stat::OtherTimeout];
        let caused: u64 = causes.iter().map(|&cause| count.stat(cause)).sum();
        assert_eq!(caused, count.stat(Stat::Timeout), "specs/incast.md#I10: every cause, once");
        self.failed += u32::from(count.failed > 0);
        self.packet_hops += told.packet_hops;
    }

    /// That fifty scenarios were worth it.
    fn check(&self) {
        assert!(self.ndp >= 10 && self.newreno >= 10, "both transports: {self:#?}");
        assert!(self.link_faults >= 10 && self.lost_on_links >= 10, "faults: {self:#?}");
        assert!(self.slow_links >= 3, "faults: {self:#?}");
        assert!(self.triggers >= 5, "triggers: {self:#?}");
        let rare = [self.trimmed, self.bounced, self.dropped, self.timeouts, self.failed];
        let switches = [self.marked, self.marked_leaving, self.over_threshold, self.exhausted];
        let rare = rare.into_iter().chain(switches);
        assert!(self.incomplete_queries > 0, "deadlines that are missed: {self:#?}");
        assert!(rare.min() > Some(0), "what seldom happens: {self:#?}");
        assert!(self.shared_buffers >= 3, "shared buffers of fabrics that are cut: {self:#?}");
        assert!(self.graphs >= 5, "graphs that are cut: {self:#?}");
        assert!(self.vl2 >= 1, "a VL2 that is cut: {self:#?}");
        assert!(self.mptcp >= 2, "MPTCPs that are cut: {self:#?}");
        assert!(self.handshakes >= 3 && self.ictcp >= 3, "TCPs that are cut: {self:#?}");
        assert!(self.several_partitions >= 20 && self.eight_partitions >= 5, "{self:#?}");
        assert!(self.signals_between_partitions >= 2, "{self:#?}");
        let jobs = [
            self.blocks_between_partitions,
            self.queries_between_partitions,
            self.calls_between_partitions,
        ];
        assert!(jobs.iter().all(|&runs| runs >= 2), "jobs of fabrics that are cut: {self:#?}");
    }
}

fn try_seed(seed: u64, dir: &Path, seen: &mut Seen) {
    let drawn = draw(seed);
    let mut about = format!("seed {seed}:\n{}", drawn.text);
    if let Some((name, text)) = &drawn.file {
        std::fs::write(dir.join(name), text).unwrap();
        write!(about, "\n{name}:\n{text}").unwrap();
    }
    let scenario = parse(&drawn.text, dir);
    let told = agree(&about, |way| run_scenario(&scenario, way));
    seen.note(&drawn, &told);
    seen.note_jobs(&drawn, &told);
    let Some((name, text)) = drawn.file.as_ref().filter(|(name, _)| name.ends_with(".cm")) else {
        return;
    };
    seen.triggers += 1;
    let plan = workload::read_cm(text, name).unwrap().plan();
    let signals = Signals::new(&drawn, seed, scenario.topology(), plan);
    let about = format!("{about}\nin itself, signals take {}: {:?}", signals.delay, signals.config);
    let told = agree(&about, |way| signals.run(way));
    seen.note(&drawn, &told);
    seen.signals_between_partitions += u32::from(told.partitions > 1);
}

#[test]
fn any_number_of_threads_gives_the_same_run() {
    const DRAWS: u64 = 50;
    let (draws, first) = (setting("TRIMLINE_SWARM", DRAWS), setting("TRIMLINE_SWARM_SEED", 1));
    println!("{draws} scenarios, from seed {first}");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("threads");
    std::fs::create_dir_all(&dir).unwrap();
    let mut seen = Seen::default();
    for seed in first..first + draws {
        try_seed(seed, &dir, &mut seen);
    }
    println!("{seen:#?}");
    if draws >= DRAWS {
        seen.check();
    }
}

/// How many drawn runs of lossless switches had what.
#[derive(Debug, Default)]
struct Paused {
    pauses: u64,
    resumes: u64,
    cut: u32,
    runs_with_pauses: u32,
    behind_each_other: u32,
    deadlocks: u32,
}

/// Whatever is drawn, lossless switches lose nothing (specs/rdma.md#I1); on every link pauses
/// and resumes alternate (I3); and all ways of carrying out the run agree.
#[test]
fn i1_i3_drawn_lossless_fabrics_lose_nothing_and_pauses_alternate() {
    const DRAWS: u64 = 20;
    let (draws, first) = (setting("TRIMLINE_SWARM", DRAWS), setting("TRIMLINE_SWARM_SEED", 1));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lossless");
    std::fs::create_dir_all(&dir).unwrap();
    let mut seen = Paused::default();
    for seed in first..first + draws {
        let drawn = draw_lossless(seed);
        let about = format!("seed {seed}:\n{}", drawn.text);
        if let Some((name, text)) = &drawn.file {
            std::fs::write(dir.join(name), text).unwrap();
        }
        let scenario = parse(&drawn.text, &dir);
        let told = agree(&about, |way| run_scenario(&scenario, way));
        let lost: u64 = told.memories.iter().map(|memory| memory.violations).sum();
        // Acknowledgements of TCP are of the lossless class, too.
        assert_eq!((lost, told.counters.dropped), (0, 0), "{about}");
        let mut pauses = 0;
        for pfc in told.links.iter().map(|link| link.pfc) {
            // One class is lossless: when the run ends, it is paused or not.
            let lasting = pfc.pauses.checked_sub(pfc.resumes);
            assert!(lasting.is_some_and(|pauses| pauses <= 1), "{pfc:?}\n{about}");
            pauses += pfc.pauses;
            seen.resumes += pfc.resumes;
        }
        seen.pauses += pauses;
        seen.runs_with_pauses += u32::from(pauses > 0);
        seen.behind_each_other += u32::from(told.links.iter().any(|link| link.pfc.depth > 1));
        seen.cut += u32::from(told.partitions > 1 && pauses > 0);
        seen.deadlocks += u32::from(told.deadlock.is_some());
    }
    println!("{seen:#?}");
    if draws >= DRAWS {
        assert!(seen.runs_with_pauses >= 10 && seen.behind_each_other >= 3, "{seen:#?}");
        assert!(seen.resumes > 1000, "{seen:#?}");
        assert!(seen.cut >= 5, "fabrics that are cut: {seen:#?}");
    }
}

/// Every XOFF has its XON: where nothing is under way any more, links have been resumed as often as
/// paused (specs/rdma.md#I3). The run itself says so, too, class by class. Circles of pauses do not
/// end; they are named.
#[test]
fn i3_pauses_conserve_in_drawn_runs_that_come_to_rest() {
    const DRAWS: u64 = 300;
    let (draws, first) = (setting("TRIMLINE_SWARM", DRAWS), setting("TRIMLINE_SWARM_SEED", 1));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rest");
    std::fs::create_dir_all(&dir).unwrap();
    let (mut rested, mut pauses, mut deadlocks, mut stopped) = (0, 0, 0, 0);
    for seed in first..first + draws {
        let drawn = draw_lossless(seed);
        if drawn.text.contains("\nto = ") {
            continue; // It ends under load.
        }
        if let Some((name, text)) = &drawn.file {
            std::fs::write(dir.join(name), text).unwrap();
        }
        let sets = ["measure.limit=100ms".to_owned()];
        let scenario = Scenario::parse("swarm.toml", &drawn.text, &dir, &sets).unwrap();
        let options = Options { threads: Some(1 + seed as u32 % 3), ..Options::default() };
        let outcome = simulate(&scenario, &options, &mut |_| ()).unwrap().outcome;
        let about = format!("seed {seed}: {:?}\n{}", outcome.end, drawn.text);
        if outcome.conservation.in_flight.packets > 0 {
            // All messages are done while the last acknowledgements are under way, or will never
            // be.
            let stopped_early = matches!(outcome.end, End::Complete | End::Backlog);
            assert!(stopped_early || outcome.deadlock.is_some(), "{about}");
            (stopped, deadlocks) = match outcome.deadlock {
                Some(_) => (stopped, deadlocks + 1),
                None => (stopped + 1, deadlocks),
            };
            continue;
        }
        for pfc in outcome.links.iter().map(|link| link.pfc) {
            assert_eq!(pfc.pauses, pfc.resumes, "{about}");
            pauses += pfc.pauses;
        }
        rested += 1;
    }
    println!(
        "{rested} came to rest after {pauses} pauses; {stopped} stopped before, {deadlocks} deadlocks"
    );
    if draws >= DRAWS {
        assert!(rested >= 25 && pauses > 1000, "{rested} runs, {pauses} pauses");
    }
}
