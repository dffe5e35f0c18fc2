//! `engine.calibrate`: the first part of the measurement window packet by packet and as fluids. The
//! same messages are in both, so that each shows how far flow level is off. Later messages are
//! corrected by what those of their size and of about their slowdown show.

use std::collections::BTreeSet;

use endpoint::{Draw, Purpose};
use metrics::{
    Calibration, FileError, FlowRow, Moments, OutputDir, RelativeError, SizeError, nearest_rank,
    size_bucket, size_buckets,
};
use units::{Dur, Time};

use crate::Scenario;
use crate::document::At;
use crate::error::Error;
use crate::level::{self, Rung};
use crate::run::{OnProgress, Options, Ran, clock, simulate_at, unwritable, whole};

/// What is run packet by packet first.
pub(crate) struct Sample {
    /// The end of its measurement window.
    pub(crate) until: Time,
    /// The error with which flow level is taken; `None`: with any.
    pub(crate) wanted: Option<f64>,
    /// Where it is asked for.
    pub(crate) at: At,
}

/// A message is corrected as one of so many of its size, those whose slowdowns as fluids are
/// nearest. Ours: docs/notebook/2026-11-28-flow.md.
const NEAREST: usize = 50;

const CORRECTION: Purpose = Purpose::new("correction");

/// A message at both levels.
struct Pair {
    fluid: FlowRow,
    size: u64,
    over_packets: Dur,
}

/// What both runs of a sample leave.
struct Taken {
    /// In the order of their starts.
    pairs: Vec<Pair>,
    /// Messages that did not end over packets.
    unfinished: usize,
    digest: u64,
}

/// Run `scenario` at the level that its sample decides.
pub(crate) fn run(
    scenario: &Scenario,
    sample: &Sample,
    options: &Options,
    (out, progress): (Option<&OutputDir>, OnProgress<'_>),
) -> Result<Ran, Error> {
    let started = clock();
    match (sample.wanted, options.of_packets()) {
        (None, _) => level::check(options)?,
        (Some(_), Some(what)) => {
            let mut ran = simulate_at(scenario, options, out, progress)?;
            ran.calibration = packets(&format!("{what} is of packets"));
            return Ok(ran);
        }
        (Some(_), None) => {}
    }
    let taken = take(scenario, sample, options, progress)?;
    let (calibration, learned) = decide(scenario.seed, sample, &taken)?;
    let mut at = |rung| {
        let options = Options { rung: Some(rung), ..options.clone() };
        simulate_at(scenario, &options, out, progress)
    };
    let mut ran = match (learned, taken) {
        (Some(learned), Ok(taken)) => {
            let ran = at(Rung::Flow)?;
            let unknown = learned.unknown(&ran).map_err(|e| unwritable(&e))?;
            match unknown {
                Some(new) if new.is_table && sample.wanted.is_some() => {
                    Ran { calibration: packets(&new.what), ..at(Rung::Packet)? }
                }
                unknown => {
                    let ran = corrected(ran, (&learned, &taken), unknown);
                    Ran { calibration, ..ran.map_err(|e| unwritable(&e))? }
                }
            }
        }
        _ => Ran { calibration, ..at(Rung::Packet)? },
    };
    ran.wall_s = started.elapsed().as_secs_f64();
    Ok(ran)
}

/// A run at flow level with the completion times that the sample teaches. What is `unknown` keeps
/// its own.
fn corrected(
    mut ran: Ran,
    (learned, taken): (&Learned, &Taken),
    unknown: Option<Unknown>,
) -> Result<Ran, FileError> {
    ran.warnings.extend(unknown.map(|new| format!("{}: they are not corrected", new.what)));
    let warning = format!("{}: no correction and no error has them", taken.did_not_end());
    ran.warnings.extend((taken.unfinished > 0).then_some(warning));
    ran.recorded.rows = ran.recorded.rows.update(|row| {
        learned.correct(row);
        Ok(())
    })?;
    ran.outcome.digest = ran.outcome.digest.rotate_left(1) ^ taken.digest;
    Ok(ran)
}

/// The level that the sample decides, and the corrections if it is that of flows.
fn decide(
    seed: u64,
    sample: &Sample,
    taken: &Result<Taken, String>,
) -> Result<(Calibration, Option<Learned>), Error> {
    let pairs = match taken {
        Ok(taken) if taken.unfinished > 0 && sample.wanted.is_some() => {
            return Ok((packets(&taken.did_not_end()), None));
        }
        Ok(taken) => &taken.pairs,
        Err(why) if sample.wanted.is_some() => return Ok((packets(why), None)),
        Err(why) => {
            let error = sample.at.error(why, "too little");
            return Err(error.hint("a larger `calibrate`, or none").into());
        }
    };
    let (early, late) = pairs.split_at(pairs.len() / 2);
    let learned = Learned::of(seed, early);
    let judged = judged(learned.errors(late), sample.wanted);
    let is_flow = judged.level.as_deref() == Some("flow");
    let calibration = Calibration { sample: pairs.len() as u64, ..judged };
    Ok((calibration, is_flow.then(|| learned.and(late))))
}

/// Run the sample at both levels. Why nothing can be learned of it, if so.
fn take(
    scenario: &Scenario,
    sample: &Sample,
    options: &Options,
    progress: OnProgress<'_>,
) -> Result<Result<Taken, String>, Error> {
    let mut at = |rung| {
        let (rung, until) = (Some(rung), Some(sample.until));
        let options = Options { rung, until, steps: None, ..options.clone() };
        let ran = whole(scenario, &options, simulate_at(scenario, &options, None, progress)?)?;
        let rows = ran.recorded.rows.into_vec().map_err(|e| unwritable(&e))?;
        let measured: Vec<FlowRow> = rows.into_iter().filter(|row| row.measured).collect();
        Ok::<_, Error>((measured, ran.outcome.digest))
    };
    let (over_packets, digest) = at(Rung::Packet)?;
    let (fluids, _) = at(Rung::Flow)?;
    let unfinished = over_packets.iter().filter(|row| row.is_unfinished()).count();
    Ok(pairs(fluids, &over_packets).map(|pairs| Taken { pairs, unfinished, digest }))
}

impl Taken {
    fn did_not_end(&self) -> String {
        format!("{} messages of the sample did not end over packets", self.unfinished)
    }
}

/// The messages that were whole at both levels.
fn pairs(fluids: Vec<FlowRow>, over_packets: &[FlowRow]) -> Result<Vec<Pair>, String> {
    let of = |row: &FlowRow| (row.src, row.msg, row.size, row.start);
    if !fluids.iter().map(of).eq(over_packets.iter().map(of)) {
        return Err("the sample has other messages at flow level than over packets".to_owned());
    }
    let pair = |(fluid, other): (FlowRow, &FlowRow)| {
        let (_, size, over_packets) = (fluid.slowdown()?, fluid.size?, other.fct()?);
        Some(Pair { fluid, size, over_packets })
    };
    let mut pairs: Vec<Pair> = fluids.into_iter().zip(over_packets).filter_map(pair).collect();
    let least = 2 * Calibration::ENOUGH;
    if (pairs.len() as u64) < least {
        return Err(format!("the sample has {} messages, {least} are needed", pairs.len()));
    }
    pairs.sort_by_key(|pair| pair.fluid.start);
    Ok(pairs)
}

/// Packets, since `why`.
pub(crate) fn packets(why: &str) -> Calibration {
    let why = format!("packets, since {why}");
    Calibration { level: Some("packet".to_owned()), why: Some(why), ..Calibration::default() }
}

/// The level that these errors decide.
fn judged(by_size: Vec<SizeError>, wanted: Option<f64>) -> Calibration {
    let held_out = by_size.iter().map(|of| of.count).sum();
    let found = Calibration { held_out, ..Calibration::of(by_size) };
    let per_cent = |share: f64| format!("{:.1} %", share * 100.0);
    let error = found.error.map_or_else(
        || format!("no size has {} messages held out", Calibration::ENOUGH),
        |error| format!("the largest error held out is {}", per_cent(error)),
    );
    let (level, why) = match (wanted, found.error) {
        (None, _) => ("flow", format!("flow, corrected: {error}")),
        (Some(wanted), Some(e)) if e <= wanted => {
            ("flow", format!("flow, corrected: {error}, {} is accepted", per_cent(wanted)))
        }
        (Some(wanted), _) => {
            ("packet", format!("packets, since {error}, and {} is accepted", per_cent(wanted)))
        }
    };
    Calibration { level: Some(level.to_owned()), why: Some(why), ..found }
}

/// Messages like none in a sample.
struct Unknown {
    what: String,
    /// Whether there are some of a traffic table that it knows nothing of.
    is_table: bool,
}

/// What the messages of a sample teach.
struct Learned {
    seed: u64,
    /// By size, ascending: slowdown as a fluid, and how many times as long it took over packets.
    by_size: Vec<Vec<(f64, f64)>>,
    /// Traffic tables of which messages of these sizes were in the sample.
    seen: BTreeSet<(u16, usize)>,
}

impl Learned {
    fn of(seed: u64, pairs: &[Pair]) -> Self {
        let by_size = size_buckets().map(|_| Vec::new()).collect();
        Self { seed, by_size, seen: BTreeSet::new() }.and(pairs)
    }

    /// With those of these.
    fn and(mut self, pairs: &[Pair]) -> Self {
        for Pair { fluid, size, over_packets } in pairs {
            let (Some(slowdown), Some(fct)) = (fluid.slowdown(), fluid.fct()) else { continue };
            let ratio = over_packets.0 as f64 / fct.0 as f64;
            self.by_size[size_bucket(*size)].push((slowdown, ratio));
            self.seen.insert((fluid.traffic, size_bucket(*size)));
        }
        let ascending = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0);
        self.by_size.iter_mut().for_each(|of_size| of_size.sort_by(ascending));
        self
    }

    /// Messages of a run like none in the sample.
    fn unknown(&self, ran: &Ran) -> Result<Option<Unknown>, FileError> {
        let (mut count, mut first, mut is_table) = (0_u64, None, false);
        for row in ran.recorded.rows.iter()? {
            let row = row?;
            let Some(size) = row.size.filter(|_| row.measured) else { continue };
            if !self.seen.contains(&(row.traffic, size_bucket(size))) {
                count += 1;
                first = first.or(Some((row.traffic, size)));
                is_table |= !self.seen.iter().any(|&(traffic, _)| traffic == row.traffic);
            }
        }
        Ok(first.map(|(traffic, size)| {
            let what = format!(
                "the sample has nothing like {count} messages, for example of {size} bytes of \
                 traffic {traffic}"
            );
            Unknown { what, is_table }
        }))
    }

    /// Correct the completion of a message. None is sooner than alone.
    fn correct(&self, row: &mut FlowRow) {
        let (Some(size), Some(slowdown), Some(fct)) = (row.size, row.slowdown(), row.fct()) else {
            return;
        };
        let known = &self.by_size[size_bucket(size)];
        let among = known.len().min(NEAREST);
        let above = known.partition_point(|&(of, _)| of < slowdown);
        let first = above.saturating_sub(among / 2).min(known.len() - among);
        let draw = Draw::new(self.seed, CORRECTION, row.src.into());
        let drawn = draw.below(CORRECTION, row.msg, among as u64) as usize;
        let Some((_, ratio)) = known[first..].get(drawn) else { return };
        let corrected = Dur((fct.0 as f64 * ratio).round() as u64).max(row.ideal.min(fct));
        let finish = row.start.saturating_add(corrected);
        let ack = row.acked.and_then(|acked| Some(acked.since(row.finish?)));
        (row.finish, row.acked) = (Some(finish), ack.map(|ack| finish.saturating_add(ack)));
    }

    /// How far slowdowns of `pairs` are off, before and after.
    fn errors(&self, pairs: &[Pair]) -> Vec<SizeError> {
        let error = |(at, (from_bytes, to_bytes))| {
            let of_size = || pairs.iter().filter(move |pair| size_bucket(pair.size) == at);
            let over_packets =
                of_size().map(|pair| pair.over_packets.0 as f64 / pair.fluid.ideal.0 as f64);
            let truth = Stats::of(over_packets);
            let corrected = of_size().map(|pair| {
                let mut row = pair.fluid;
                self.correct(&mut row);
                row
            });
            SizeError {
                from_bytes,
                to_bytes,
                count: of_size().count() as u64,
                uncorrected: Stats::of(of_size().filter_map(|p| p.fluid.slowdown())).off(&truth),
                corrected: Stats::of(corrected.filter_map(|row| row.slowdown())).off(&truth),
            }
        };
        size_buckets().enumerate().map(error).collect()
    }
}

/// Mean, median and 99th percentile.
struct Stats([Option<f64>; 3]);

impl Stats {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let mean: Moments = values.iter().copied().collect();
        Self([mean.mean(), nearest_rank(&values, 500), nearest_rank(&values, 990)])
    }

    fn off(&self, truth: &Self) -> RelativeError {
        let [mean, p50, p99] = std::array::from_fn(|at| Some(self.0[at]? / truth.0[at]? - 1.0));
        RelativeError { mean, p50, p99 }
    }
}
