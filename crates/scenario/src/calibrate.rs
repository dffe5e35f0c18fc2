//! How much a run takes, from a short part of it on this machine. The scenario says how many
//! packets there will be; the part says what a packet takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use endpoint::Stat;
use fabric::Progress;
use metrics::OutputDir;
use units::Time;

use crate::Scenario;
use crate::check::{Asked, memory_of_messages, seconds};
use crate::error::Error;
use crate::run::{OnProgress, Options, Ran, simulate_into, unwritable, violated, write};

/// The first part of a run, and what follows for the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated {
    /// How long the part was, without the building of the fabric, seconds of real time.
    pub part_s: f64,
    /// And of simulated time.
    pub part_until: Time,
    /// What the whole takes. `None` where only a run shows when the traffic ends.
    pub whole: Option<Whole>,
}

/// What a whole run takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole {
    /// The share of it that was run; 1: all of it, so that nothing below is estimated.
    pub share: f64,
    /// Messages.
    pub messages: f64,
    /// Packets that cross a link, once per link: acknowledgements and what is sent again, too.
    pub packet_hops: f64,
    /// Building, running and writing the files, seconds.
    pub seconds: f64,
    /// Memory beyond that of the part, bytes.
    pub more_memory: f64,
}

/// How far a run was.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// Since the fabric was built, seconds.
    wall_s: f64,
    now_s: f64,
    /// Messages.
    submitted: f64,
    placed_bytes: f64,
    /// Packets that hosts have sent; of marks before the last one, at the sample before.
    packets: f64,
}

impl Mark {
    fn new(wall_s: f64, progress: &Progress) -> Self {
        Self {
            wall_s,
            now_s: seconds(progress.now),
            submitted: progress.submitted as f64,
            placed_bytes: progress.placed_bytes as f64,
            packets: 0.0,
        }
    }
}

/// What was seen of a part.
struct Seen {
    /// About half-way.
    half: Mark,
    last: Mark,
    building_s: f64,
    writing_s: f64,
    packet_hops: f64,
    /// Packets with payload, those sent again left out.
    fresh_packets: f64,
    is_whole: bool,
}

/// So many marks are kept of the time for which a part runs.
const MARKS: u32 = 100;

/// Of listed messages this share has to be delivered, since a burst says nothing of what follows;
/// that is waited for so many times as long as was asked for.
const LEAST: f64 = 0.02;
const PATIENCE: u32 = 10;

/// Writing this many messages takes no longer than what is written of none.
const FREE_MESSAGES: f64 = 10_000.0;

/// Run `scenario` for about `time`, into `out`, which is then of no more use, and say what all of
/// it takes.
///
/// # Errors
/// As [`crate::run()`]; also after a violated invariant.
pub fn calibrate(
    scenario: &Scenario,
    options: &Options,
    out: &OutputDir,
    time: Duration,
    progress: OnProgress<'_>,
) -> Result<Calibrated, Error> {
    let interrupt: Arc<AtomicBool> = Arc::default();
    let options = Options { interrupt: Some(Arc::clone(&interrupt)), ..options.clone() };
    let began = Instant::now();
    let least = match scenario.expected().asked {
        Asked::Listed { bytes, .. } => bytes * LEAST,
        Asked::Drawn { .. } | Asked::Loops => 0.0,
    };
    let (mut built, mut marks, mut latest) = (None, Vec::new(), Mark::default());
    let ran = simulate_into(scenario, &options, Some(out), &mut |p| {
        progress(p);
        let since = built.get_or_insert_with(Instant::now).elapsed();
        latest = Mark::new(since.as_secs_f64(), p);
        if since >= time / MARKS * marks.len() as u32 {
            marks.push(latest);
        }
        let has_begun = p.placed_bytes as f64 >= least || since >= time * PATIENCE;
        if since >= time && has_begun {
            interrupt.store(true, Ordering::Relaxed);
        }
    })?;
    let building_s = built.map_or(0.0, |at| at.duration_since(began).as_secs_f64());
    let part_s = began.elapsed().as_secs_f64() - building_s;
    if let Some(error) = violated(scenario, &options, ran.violation.as_ref()) {
        return Err(error);
    }
    let writing = Instant::now();
    write(scenario, &options, &ran, out).map_err(|e| unwritable(&e))?;
    let counters = &ran.outcome.counters;
    let again = counters.stat(Stat::Retransmission);
    let packets = ran.outcome.conservation.sent.packets as f64;
    let seen = Seen {
        half: half(&marks, &latest, &ran),
        last: Mark { wall_s: part_s, packets, ..latest },
        building_s,
        writing_s: writing.elapsed().as_secs_f64(),
        packet_hops: ran.outcome.packet_hops as f64,
        fresh_packets: counters.data_sent.saturating_sub(again) as f64,
        is_whole: !ran.is_partial,
    };
    Ok(Calibrated { part_s, part_until: ran.outcome.now, whole: seen.whole(scenario) })
}

/// The last mark of the first half of what was delivered until `last`: a run begins unlike it goes
/// on, with bursts. It is one after a sample, which knows the packets; the beginning, where there
/// is none.
fn half(marks: &[Mark], last: &Mark, ran: &Ran) -> Mark {
    let first = marks.iter().take_while(|mark| mark.placed_bytes <= last.placed_bytes / 2.0);
    let at_sample = |mark: &Mark| {
        let samples = &ran.outcome.samples;
        let sample = samples.iter().rev().find(|sample| seconds(sample.at) <= mark.now_s)?;
        Some(Mark { packets: sample.packets as f64, ..*mark })
    };
    first.filter_map(at_sample).last().unwrap_or_default()
}

impl Seen {
    fn whole(&self, scenario: &Scenario) -> Option<Whole> {
        let last = self.last;
        let more = if self.is_whole { More::default() } else { self.more(scenario)? };
        let each_s = last.wall_s / last.packets.max(1.0);
        let factor = more.packets / last.packets.max(1.0);
        let messages = last.submitted + more.messages;
        let written = (messages + FREE_MESSAGES) / (last.submitted + FREE_MESSAGES);
        Some(Whole {
            share: 1.0 / (1.0 + factor),
            messages,
            packet_hops: self.packet_hops * (1.0 + factor),
            seconds: self.building_s
                + last.wall_s
                + more.packets * each_s
                + self.writing_s * written,
            more_memory: memory_of_messages(messages) - memory_of_messages(last.submitted),
        })
    }

    /// What is to come after the part.
    fn more(&self, scenario: &Scenario) -> Option<More> {
        let (half, last) = (self.half, self.last);
        let expected = scenario.expected();
        let left_s = expected.until_s.map_or(0.0, |until| (until - last.now_s).max(0.0));
        let messages = (expected.messages - last.submitted).max(0.0);
        let packets = last.packets - half.packets;
        match expected.asked {
            Asked::Drawn { packets_per_s } => {
                let each = last.packets / self.fresh_packets.max(1.0);
                Some(More { packets: each * packets_per_s * left_s, messages })
            }
            Asked::Listed { bytes, bytes_per_s } => {
                let drawn = bytes_per_s * expected.until_s.unwrap_or(0.0);
                let left = (bytes + drawn - last.placed_bytes).max(bytes_per_s * left_s);
                let each = packets / (last.placed_bytes - half.placed_bytes).max(1.0);
                Some(More { packets: each * left, messages })
            }
            Asked::Loops => {
                expected.until_s?;
                let times = left_s / (last.now_s - half.now_s).max(1e-12);
                let messages = (last.submitted - half.submitted) * times;
                Some(More { packets: packets * times, messages })
            }
        }
    }
}

/// What is to come.
#[derive(Default)]
struct More {
    packets: f64,
    messages: f64,
}
