//! From what a run did to the result files: summary, series, link table.

use std::collections::BTreeMap;
use std::path::Path;

use endpoint::Stat;
use fabric::{HEIGHTS, Link, LinkStats, Outcome, PauseStats, Sample, Tier, Topology};
use metrics::{
    CollectiveRow, CriticalRow, FileError, FlowFold, FlowRow, FlowStats, JobRow, LifeStats,
    LinkRow, Packets, Pfc, Phase, PhaseFold, QueueBytes, QueueSample, RESULT_SCHEMA, Series,
    SeriesRow, SharedBuffer, SkipStats, Sorted, StepRow, Summary, Timeouts, TrafficStats, Verified,
    Window,
};
use queues::SharedBufferStats;
use units::{Dur, HostId, Rate, Time};

use crate::Scenario;
use crate::critical;
use crate::packet_latency::Latencies;
use crate::record::Recorded;
use crate::run::{Ran, why_it_ended};
use crate::steps;
use crate::warnings::{self, Seen};

/// Everything that a run leaves, except traces.
#[derive(Debug, Clone)]
pub struct Results {
    /// `summary.json`.
    pub summary: Summary,
    /// `flows.parquet`, sorted by source and message.
    pub flows: Vec<FlowRow>,
    /// `jobs.parquet`, in the order of time and host.
    pub jobs: Vec<JobRow>,
    /// `steps.parquet`, by traffic table, step and rank.
    pub steps: Vec<StepRow>,
    /// `collectives.parquet`, by traffic table, collective and rank.
    pub collectives: Vec<CollectiveRow>,
    /// `critical.parquet`, by traffic table, step and time.
    pub critical: Vec<CriticalRow>,
    /// `series.parquet`.
    pub series: Series,
    /// `links.parquet`, in the order of the topology's links.
    pub links: Vec<LinkRow>,
    /// The measurement window as it was.
    pub window: Window,
    /// How long packets took, if the scenario asks for it.
    pub latencies: Option<Latencies>,
    /// Round-trip samples with the traffic tables of their messages, ascending; empty unless the
    /// scenario asks for them.
    pub rtts: Vec<(Dur, u16)>,
}

impl Results {
    /// Work out the results of `scenario` from what its simulation left.
    pub(crate) fn of(scenario: &Scenario, ran: Ran) -> Result<Self, FileError> {
        let Evaluated { summary, series, links, window } = Evaluated::of(scenario, &ran, None)?;
        let Recorded { rows, jobs, works, rtts, .. } = ran.recorded;
        let steps = steps::step_rows(&works);
        let collectives = steps::collective_rows(scenario, &works);
        let critical = critical::rows(scenario, &works, &rows)?;
        let (flows, latencies) = (rows.into_vec()?, ran.latencies);
        Ok(Self {
            summary,
            flows,
            jobs,
            steps,
            collectives,
            critical,
            series,
            links,
            window,
            latencies,
            rtts,
        })
    }
}

/// The results of a run without what it left itself: they do not grow with its messages.
pub(crate) struct Evaluated {
    pub(crate) summary: Summary,
    pub(crate) series: Series,
    pub(crate) links: Vec<LinkRow>,
    window: Window,
}

impl Evaluated {
    /// Work them out. `dir` is where it may write meanwhile.
    pub(crate) fn of(
        scenario: &Scenario,
        ran: &Ran,
        dir: Option<&Path>,
    ) -> Result<Self, FileError> {
        let Ran { outcome, recorded, latencies, wall_s, violation, .. } = ran;
        let Recorded { rows, lives, jobs, works, rtts } = recorded;
        let topology = &scenario.topology;
        let window = window(scenario, outcome, rows)?;
        let alone = steps::step_rows(&ran.alone);
        let folded = OfMessages::fold(scenario, outcome, (recorded, &alone), window, dir)?;
        let mut warnings =
            warnings::of(scenario, outcome, (&folded.seen, jobs), window, folded.said);
        warnings.extend(violation.as_ref().map(why_it_ended));
        warnings.extend(ran.warnings.iter().cloned());
        warnings.extend(steps::warnings(scenario, works));
        let summary = Summary {
            schema: RESULT_SCHEMA,
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            digest: format!("{:016x}", outcome.digest),
            sim_time_us: outcome.now.as_us_f64(),
            partial: ran.is_partial,
            skipped: skipped(outcome),
            calibration: ran.calibration.clone(),
            wall_s: *wall_s,
            events: outcome.events,
            packet_hops: outcome.packet_hops,
            flows: folded.stats,
            traffic: folded.by_table,
            rtt_us: rtts.iter().map(|(rtt, _)| rtt.as_us_f64()).collect(),
            jobs: metrics::fold_jobs(jobs.iter()),
            steps: steps::fold(scenario, steps::step_rows(works).iter(), &alone),
            packet_latency_us: latencies.as_ref().map(Latencies::stats).unwrap_or_default(),
            life_us: LifeStats::of(lives)?,
            delivered_twice: outcome.counters.stat(Stat::DeliveredTwice),
            packets: packets(outcome),
            timeouts: timeouts(outcome),
            queue_bytes: QueueBytes {
                p99: outcome.queue_bytes_p99.map(u64::from),
                max: longest_queue(topology, &outcome.links),
            },
            shared_buffer: shared_buffer(&outcome.buffers),
            pfc: pfc(outcome),
            phases: folded.phases,
            warnings,
        };
        let links = links(topology, outcome, window);
        let series = series(topology, &outcome.samples);
        Ok(Self { summary, series, links, window })
    }
}

/// What the messages say, read once.
struct OfMessages {
    stats: FlowStats,
    /// Warnings that follow.
    said: Vec<String>,
    seen: Seen,
    /// The numbers of each traffic table that has a name.
    by_table: BTreeMap<String, TrafficStats>,
    phases: Vec<Phase>,
}

impl OfMessages {
    fn fold(
        scenario: &Scenario,
        outcome: &Outcome,
        (recorded, alone): (&Recorded, &[StepRow]),
        window: Window,
        dir: Option<&Path>,
    ) -> Result<Self, FileError> {
        let names = &scenario.traffic.names;
        let (mut all, mut seen) = (FlowFold::new(window, dir), Seen::default());
        let mut phases = phases(scenario, outcome, dir);
        let of_table = |name: &Option<String>| Some((name.clone()?, FlowFold::new(window, dir)));
        let mut tables: Vec<Option<(String, FlowFold)>> = names.iter().map(of_table).collect();
        for row in recorded.rows.iter()? {
            let row = row?;
            all.add(&row)?;
            seen.add(&row);
            phases.add(&row)?;
            if let Some(Some((_, table))) = tables.get_mut(usize::from(row.traffic)) {
                table.add(&row)?;
            }
        }
        let rate = |host| scenario.topology.receive_rate(HostId(host));
        let (stats, said) = all.finish(rate)?;
        let mut by_table = BTreeMap::new();
        let steps = steps::step_rows(&recorded.works);
        for (table, named) in (0..).zip(tables) {
            let Some((name, fold)) = named else { continue };
            // Without utilization, so that no rate is needed.
            let (stats, _) = fold.finish(|_| Rate(0))?;
            let jobs = recorded.jobs.iter().filter(|job| job.traffic == table);
            let rtts = recorded.rtts.iter().filter(|(_, of)| *of == table);
            let rtts = rtts.map(|(rtt, _)| rtt.as_us_f64()).collect();
            let (jobs, of) =
                (metrics::fold_jobs(jobs), steps.iter().filter(|s| s.traffic == table));
            let steps = steps::fold(scenario, of, alone);
            by_table.insert(name, TrafficStats::new(&stats, jobs, steps, rtts));
        }
        Ok(Self { stats, said, seen, by_table, phases: phases.finish()? })
    }
}

/// The window as written, or from `from` until the last message was whole.
fn window(
    scenario: &Scenario,
    outcome: &Outcome,
    rows: &Sorted<FlowRow>,
) -> Result<Window, FileError> {
    let from = scenario.measure.from;
    if let Some(to) = scenario.measure.to {
        return Ok(Window { from, to: to.min(outcome.now) });
    }
    let mut last = None;
    for row in rows.iter()? {
        match row?.finish {
            Some(finish) => last = last.max(Some(finish)),
            None => return Ok(Window { from, to: outcome.now }),
        }
    }
    Ok(Window { from, to: last.unwrap_or(outcome.now).min(outcome.now) })
}

/// The phases of the fault script, as far as the run has come.
fn phases(scenario: &Scenario, outcome: &Outcome, dir: Option<&Path>) -> PhaseFold {
    let changes: Vec<(Time, &str)> =
        scenario.changes.iter().map(|(&at, what)| (at, what.as_str())).collect();
    let placed: Vec<(Time, u64)> =
        outcome.samples.iter().map(|sample| (sample.at, sample.placed_bytes)).collect();
    PhaseFold::new(&changes, &placed, outcome.now, dir)
}

fn skipped(outcome: &Outcome) -> SkipStats {
    let (time_us, all) = (outcome.skipped.time.as_us_f64(), outcome.now.as_us_f64());
    let share = if all > 0.0 { time_us / all } else { 0.0 };
    let count = outcome.skipped.count;
    SkipStats { time_us, share, count, verify: Verified::default() }
}

fn packets(outcome: &Outcome) -> Packets {
    let c = &outcome.counters;
    Packets {
        data_sent: c.data_sent,
        control_sent: c.control_sent,
        retransmitted: c.stat(Stat::Retransmission),
        trimmed: c.trimmed,
        bounced: c.bounced,
        dropped: c.dropped,
        host_dropped: c.stat(Stat::HostDrop),
        ecn_marked: c.marked,
        pfc_pauses: outcome.links.iter().map(|link| link.pfc.pauses).sum(),
        fast_retransmits: c.stat(Stat::FastRetransmit),
        spurious_fast_retransmits: c.stat(Stat::SpuriousFastRetransmit),
    }
}

fn timeouts(outcome: &Outcome) -> Timeouts {
    let c = &outcome.counters;
    Timeouts {
        total: c.stat(Stat::Timeout),
        head: c.stat(Stat::HeadTimeout),
        tail: c.stat(Stat::TailTimeout),
        retransmission: c.stat(Stat::RetransmissionTimeout),
        other: c.stat(Stat::OtherTimeout),
        spurious: c.stat(Stat::SpuriousTimeout),
    }
}

/// The most that any switch queue held.
fn longest_queue(topology: &Topology, stats: &[LinkStats]) -> Option<u64> {
    let pairs = topology.links().iter().zip(stats);
    let switches = pairs.filter(|(link, _)| link.from.is_switch());
    switches.map(|(_, stats)| u64::from(stats.max_queue_bytes)).max()
}

/// Of the switches' memories, the most that one of them held, and what all of them have lost.
fn shared_buffer(switches: &[SharedBufferStats]) -> SharedBuffer {
    let sum = |of: fn(&SharedBufferStats) -> u64| {
        (!switches.is_empty()).then(|| switches.iter().map(of).sum())
    };
    SharedBuffer {
        max_bytes: switches.iter().map(|switch| u64::from(switch.max_bytes)).max(),
        over_threshold: sum(|switch| switch.over_threshold),
        exhausted: sum(|switch| switch.exhausted),
    }
}

/// Flow control on all links, and the memories that call for it.
fn pfc(outcome: &Outcome) -> Pfc {
    if outcome.memories.is_empty() {
        return Pfc::default();
    }
    let links = || outcome.links.iter().map(|link| &link.pfc);
    let sum = |of: fn(&PauseStats) -> u64| Some(links().map(of).sum());
    let memories = || outcome.memories.iter();
    let seconds = outcome.now.since(Time::ZERO).as_s_f64();
    let pauses: u64 = links().map(|link| link.pauses).sum();
    let paused: Dur = links().fold(Dur::ZERO, |all, link| all + link.paused);
    let longest = links().map(|link| link.longest).max();
    let deadlock = outcome.deadlock.as_ref();
    Pfc {
        frames: sum(|link| link.frames),
        pauses_per_s: (seconds > 0.0).then(|| pauses as f64 / seconds),
        paused_us: Some(paused.as_us_f64()),
        longest_pause_us: longest.map(Dur::as_us_f64),
        pause_depth: links().map(|link| u64::from(link.depth)).max(),
        lossless_violations: Some(memories().map(|memory| memory.violations).sum()),
        lossy_drops: Some(memories().map(|memory| memory.refused).sum()),
        watchdog: sum(|link| link.watchdog),
        watchdog_drops: sum(|link| link.watchdog_drops),
        buffer_max_bytes: memories().map(|memory| u64::from(memory.max_bytes)).max(),
        headroom_bytes: memories().map(|memory| u64::from(memory.max_headroom)).max(),
        deadlock: deadlock.map(ToString::to_string),
        deadlock_since_us: deadlock.map(|deadlock| deadlock.since.as_us_f64()),
    }
}

/// The level that a link leaves and its direction, for example `tor-down`.
fn tier(link: &Link) -> String {
    match (link.from.tier(), link.to.tier()) {
        (None, _) => "host-up".to_owned(),
        (Some(from), to) if to < Some(from) => format!("{from}-down"),
        (Some(from), _) => format!("{from}-up"),
    }
}

fn links(topology: &Topology, outcome: &Outcome, window: Window) -> Vec<LinkRow> {
    let length = window.to.since(window.from);
    let row = |(link, stats): (&Link, &LinkStats)| LinkRow {
        name: link.to_string(),
        tier: tier(link),
        rate: link.rate,
        tx_bytes: stats.bytes,
        utilization: share(stats.bytes_in_window, link.rate, length),
        max_queue_bytes: u64::from(stats.max_queue_bytes),
        dropped: stats.dropped,
        trimmed: stats.trimmed,
        bounced: stats.bounced,
        marked: stats.marked,
        pauses: stats.pfc.pauses,
        paused: stats.pfc.paused,
        longest_pause: stats.pfc.longest,
    };
    topology.links().iter().zip(&outcome.links).map(row).collect()
}

/// The share of `length` that transmitting `bytes` at `rate` takes. At most 1: the last packet may
/// end after the window.
fn share(bytes: u64, rate: Rate, length: Dur) -> Option<f64> {
    let most = rate.0 as f64 * length.as_s_f64() / 8.0;
    (most > 0.0).then(|| (bytes as f64 / most).min(1.0))
}

fn series(topology: &Topology, samples: &[Sample]) -> Series {
    // The engine samples by the upper ends of links.
    let tiers: Vec<(Tier, Rate)> = Tier::ALL
        .into_iter()
        .filter(|&tier| topology.switches_of(tier) > 0)
        .map(|tier| (tier, tier_rate(topology, tier)))
        .collect();
    let mut series = Series::new(tiers.iter().map(|(tier, _)| tier.to_string()).collect());
    let mut before = (Time::ZERO, 0, [0; HEIGHTS]);
    for sample in samples {
        let (at, placed, sent) = before;
        let length = sample.at.since(at).as_s_f64();
        if length <= 0.0 {
            continue;
        }
        let gbps = |bytes: u64| bytes as f64 * 8.0 / length / 1e9;
        let used = |&(tier, rate): &(Tier, Rate)| {
            let most = rate.as_gbps_f64();
            let gbps = gbps(sample.tier_bytes[tier.height()] - sent[tier.height()]);
            if most > 0.0 { (gbps / most).min(1.0) } else { 0.0 }
        };
        series.push(SeriesRow {
            at: sample.at,
            queues: QueueSample {
                p50: u64::from(sample.queue_bytes.p50),
                p99: u64::from(sample.queue_bytes.p99),
                max: u64::from(sample.queue_bytes.max),
                total: sample.queue_bytes.total,
            },
            goodput_gbps: gbps(sample.placed_bytes - placed),
            in_flight: sample.messages_in_flight,
            tier_utilization: tiers.iter().map(used).collect(),
        });
        before = (sample.at, sample.placed_bytes, sample.tier_bytes);
    }
    series
}

/// The rates of all links whose upper end is a switch of `tier`, both directions together.
fn tier_rate(topology: &Topology, tier: Tier) -> Rate {
    let below = |l: &&Link| l.from.tier().max(l.to.tier()) == Some(tier);
    Rate(topology.links().iter().filter(below).map(|link| link.rate.0).sum())
}
