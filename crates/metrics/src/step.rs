//! Training jobs: [`StepRow`] of `steps.parquet`, [`CollectiveRow`] of `collectives.parquet`, and
//! [`fold_steps`]: what the steps of a run say about it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use units::{Dur, Time};

use crate::job::Stats;
use crate::table::{read_table, write_table};
use crate::{Columns, FileError, Row, StagedFile};

/// A step of a training job at one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepRow {
    /// The `[[traffic]]` table of the scenario that it comes from, counted from zero.
    pub traffic: u16,
    /// Which step, from 0.
    pub step: u32,
    /// Which rank.
    pub rank: u32,
    /// The host of the rank.
    pub host: u32,
    /// When its first task began.
    pub start: Time,
    /// When its last task ended, or the run.
    pub end: Time,
    /// Whether it is complete.
    pub completed: bool,
    /// Payload that the rank sent in it.
    pub sent_bytes: u64,
    /// How long the rank computed in it.
    pub computed: Dur,
    /// Whether it was left out, as a copy of the one before.
    pub skipped: bool,
}

impl StepRow {
    /// How long it took.
    #[must_use]
    pub fn time(&self) -> Dur {
        self.end.since(self.start)
    }

    /// How long the rank did nothing but communicate, or wait.
    #[must_use]
    pub fn exposed(&self) -> Dur {
        Dur(self.time().0.saturating_sub(self.computed.0))
    }
}

impl Row for StepRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("traffic", "the [[traffic]] table that it comes from, counted from 0")
            .field(|r| &mut r.traffic)
            .column("step", "which step of the job, from 0")
            .field(|r| &mut r.step)
            .column("rank", "which rank of the job")
            .field(|r| &mut r.rank)
            .column("host", "the host of the rank")
            .field(|r| &mut r.host)
            .column("start_ps", "when its first task began, since the start of the run")
            .field(|r| &mut r.start)
            .column("end_ps", "when its last task ended, or the run")
            .field(|r| &mut r.end)
            .column("completed", "whether it is complete")
            .field(|r| &mut r.completed)
            .column("sent_bytes", "payload that the rank sent in it")
            .field(|r| &mut r.sent_bytes)
            .column("computed_ps", "how long the rank computed in it; of an incomplete one, 0")
            .field(|r| &mut r.computed)
            .column(
                "skipped",
                "whether it was not simulated but is as the one before (`engine.skip`)",
            )
            .field(|r| &mut r.skipped)
            .column("time_ps", "end_ps - start_ps")
            .derived(|r| r.time().0)
            .column("exposed_ps", "time_ps - computed_ps: how long the rank did not compute")
            .derived(|r| r.exposed().0)
    }
}

/// A collective of a training job at one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectiveRow {
    /// The `[[traffic]]` table of the scenario that it comes from, counted from zero.
    pub traffic: u16,
    /// The step that it is of.
    pub step: u32,
    /// Which of the job's collectives: all ranks of one have the same number.
    pub collective: u32,
    /// What it does.
    pub op: String,
    /// Its name in the job.
    pub name: Option<String>,
    /// Which rank.
    pub rank: u32,
    /// The host of the rank.
    pub host: u32,
    /// When the rank began it.
    pub start: Time,
    /// When the rank had done its part.
    pub end: Time,
    /// The size of its vector.
    pub bytes: u64,
    /// How many ranks take part.
    pub ranks: u32,
    /// How long it takes on an idle fabric once all ranks have begun it, if a closed form says so.
    pub ideal: Option<Dur>,
    /// When the last rank began it.
    pub last_start: Time,
    /// The longest time that a rank of it took, from its own start to its end.
    pub longest: Dur,
}

impl CollectiveRow {
    /// From the last rank's start to this one's end, over the time on an idle fabric. `None`
    /// without that, and of a broadcast: a rank of it need not wait for the last.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        let ideal = self.ideal.filter(|ideal| *ideal > Dur::ZERO && self.op != "broadcast")?;
        Some(self.end.since(self.last_start).0 as f64 / ideal.0 as f64)
    }

    /// The bus bandwidth as NCCL's tests define it (specs/ai-jobs.md#5), Gb/s: what the link of a
    /// rank would have to carry in the longest time of a rank. `None` of a barrier.
    #[must_use]
    pub fn bus_gbps(&self) -> Option<f64> {
        let (n, time) = (f64::from(self.ranks), self.longest.0 as f64);
        let share = match self.op.as_str() {
            "all-reduce" => 2.0 * (n - 1.0) / n,
            "all-gather" | "reduce-scatter" | "all-to-all" => (n - 1.0) / n,
            "broadcast" => 1.0,
            _ => return None,
        };
        (time > 0.0 && n > 0.0).then(|| self.bytes as f64 * share * 8e3 / time)
    }
}

impl Row for CollectiveRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("traffic", "the [[traffic]] table that it comes from, counted from 0")
            .field(|r| &mut r.traffic)
            .column("step", "the step that it is of, from 0")
            .field(|r| &mut r.step)
            .column("collective", "which of the job's: all ranks of one have the same number")
            .field(|r| &mut r.collective)
            .column("op", "what it does")
            .field(|r| &mut r.op)
            .column("name", "its name in the job, if it has one")
            .field(|r| &mut r.name)
            .column("rank", "which rank of the job")
            .field(|r| &mut r.rank)
            .column("host", "the host of the rank")
            .field(|r| &mut r.host)
            .column("start_ps", "when the rank began it, since the start of the run")
            .field(|r| &mut r.start)
            .column("end_ps", "when the rank had done its part")
            .field(|r| &mut r.end)
            .column("last_start_ps", "when the last rank began it")
            .field(|r| &mut r.last_start)
            .column("longest_ps", "the longest time of a rank, from its own start to its end")
            .field(|r| &mut r.longest)
            .column("bytes", "the size of its vector")
            .field(|r| &mut r.bytes)
            .column("ranks", "how many ranks take part")
            .field(|r| &mut r.ranks)
            .column("ideal_ps", "its time on an idle fabric, if a closed form says so")
            .field(|r| &mut r.ideal)
            .column("slowdown", "(end_ps - last_start_ps) / ideal_ps")
            .derived(Self::slowdown)
            .column("bus_gbps", "its bus bandwidth over longest_ps, as NCCL's tests have it")
            .derived(Self::bus_gbps)
    }
}

/// Writes `steps.parquet`, in the order of `rows`.
///
/// # Errors
/// The file cannot be written.
pub fn write_steps(file: StagedFile, rows: &[StepRow]) -> Result<(), FileError> {
    write_table(file, rows.iter().copied())
}

/// All rows of a `steps.parquet`, in file order.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_steps(path: &Path) -> Result<Vec<StepRow>, FileError> {
    read_table(path)
}

/// Writes `collectives.parquet`, in the order of `rows`.
///
/// # Errors
/// The file cannot be written.
pub fn write_collectives(
    file: StagedFile,
    rows: impl Iterator<Item = CollectiveRow>,
) -> Result<(), FileError> {
    write_table(file, rows)
}

/// All rows of a `collectives.parquet`, in file order.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_collectives(path: &Path) -> Result<Vec<CollectiveRow>, FileError> {
    read_table(path)
}

/// What the steps of training jobs say. A step lasts from the end of the one before it to its last
/// rank's end: stages of a pipeline begin a step while others are still in the one before. The
/// first step, and one that begins later, last from their first rank's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepStats {
    /// Those that all ranks have completed.
    pub completed: u64,
    /// Those that began and that some rank had not completed when the run ended.
    pub unfinished: u64,
    /// How long the completed ones took, in microseconds.
    pub time_us: Stats,
    /// How long their ranks did not compute, the mean over the ranks, in microseconds.
    pub exposed_us: Stats,
    /// Where jobs were run by themselves, too: how long the same steps took then, in microseconds.
    pub alone_us: Stats,
    /// How many times as long each step took as alone.
    pub slowdown: Stats,
}

/// How long each step took that all ranks have completed, by traffic table and number.
pub type StepTimes = BTreeMap<(u16, u32), Dur>;

impl StepStats {
    /// With what the same steps took where their job was alone. Of a step that was not completed
    /// both together and alone nothing is said.
    #[must_use]
    pub fn beside(self, together: &StepTimes, alone: &StepTimes) -> Self {
        let both = || together.iter().filter_map(|(key, time)| Some((*time, *alone.get(key)?)));
        let ratio = |(time, alone): (Dur, Dur)| time.0 as f64 / alone.0.max(1) as f64;
        let alone_us = both().map(|(_, alone)| alone.as_us_f64()).collect();
        Self { alone_us, slowdown: both().map(ratio).collect(), ..self }
    }
}

/// A step of all its ranks.
struct Step {
    start: Time,
    end: Time,
    is_completed: bool,
    ranks: u64,
    exposed: u64,
}

/// Folds rows into [`StepStats`], and what each step took. `ranks` says how many ranks the job of a
/// traffic table has in a step.
#[must_use]
pub fn fold_steps<'a>(
    rows: impl Iterator<Item = &'a StepRow>,
    ranks: impl Fn(u16, u32) -> u64,
) -> (StepStats, StepTimes) {
    let mut steps: BTreeMap<(u16, u32), Step> = BTreeMap::new();
    for row in rows {
        let step = steps.entry((row.traffic, row.step)).or_insert(Step {
            start: row.start,
            end: row.end,
            is_completed: true,
            ranks: 0,
            exposed: 0,
        });
        step.start = step.start.min(row.start);
        step.end = step.end.max(row.end);
        step.is_completed &= row.completed;
        step.ranks += 1;
        step.exposed += row.exposed().0;
    }
    let is_whole = |((traffic, number), step): &(&(u16, u32), &Step)| {
        step.is_completed && step.ranks >= ranks(*traffic, *number)
    };
    let whole = || steps.iter().filter(is_whole).map(|(_, step)| step);
    let completed = whole().count();
    let start = |(traffic, number): (u16, u32), step: &Step| {
        let before = number.checked_sub(1).and_then(|before| steps.get(&(traffic, before)));
        let before = before.filter(|before| before.is_completed && before.end <= step.end);
        before.map_or(step.start, |before| step.start.max(before.end))
    };
    let time = |(key, step): (&(u16, u32), &Step)| (*key, step.end.since(start(*key, step)));
    let times: StepTimes = steps.iter().filter(is_whole).map(time).collect();
    let stats = StepStats {
        completed: completed as u64,
        unfinished: (steps.len() - completed) as u64,
        time_us: times.values().map(|time| time.as_us_f64()).collect(),
        exposed_us: whole().map(|step| step.exposed as f64 / step.ranks as f64 / 1e6).collect(),
        ..StepStats::default()
    };
    (stats, times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutputDir;

    const US: u64 = 1_000_000;

    fn row(step: u32, rank: u32, start_us: u64, us: u64, computed_us: u64) -> StepRow {
        StepRow {
            step,
            rank,
            host: rank + 10,
            start: Time(start_us * US),
            end: Time((start_us + us) * US),
            completed: true,
            sent_bytes: 5,
            computed: Dur::from_us(computed_us),
            ..StepRow::default()
        }
    }

    #[test]
    fn by_hand() {
        let rows = [
            row(0, 0, 10, 20, 15),
            row(0, 1, 12, 28, 10),
            row(1, 0, 40, 10, 0),
            row(1, 1, 41, 13, 0),
            // One rank has not begun it, or not completed it.
            row(2, 0, 60, 5, 0),
            row(3, 0, 70, 5, 0),
            StepRow { completed: false, ..row(3, 1, 70, 5, 0) },
        ];
        let (stats, times) = fold_steps(rows.iter(), |_, _| 2);
        assert_eq!((stats.completed, stats.unfinished), (2, 2));
        assert_eq!([stats.time_us.p50, stats.time_us.max], [Some(14.0), Some(30.0)]);
        // (5 + 18) / 2 and (10 + 13) / 2.
        assert_eq!([stats.exposed_us.min, stats.exposed_us.max], [Some(11.5); 2]);
        let two_tables = [row(0, 0, 0, 1, 0), StepRow { traffic: 1, ..row(0, 0, 0, 2, 0) }];
        assert_eq!(fold_steps(two_tables.iter(), |_, _| 1).0.completed, 2);
        assert_eq!(fold_steps([].iter(), |_, _| 1).0, StepStats::default());
        // Alone, the first step takes half as long, the second as long, and a third is completed.
        let alone = [((0, 0), 15), ((0, 1), 14), ((0, 2), 9)];
        let alone = alone.map(|(step, us)| (step, Dur::from_us(us))).into();
        let stats = stats.beside(&times, &alone);
        assert_eq!([stats.alone_us.min, stats.alone_us.max], [Some(14.0), Some(15.0)]);
        assert_eq!([stats.slowdown.min, stats.slowdown.max], [Some(1.0), Some(2.0)]);
        assert_eq!(stats.time_us.max, Some(30.0), "the rest is as it was");
    }

    /// Rank 1 is ahead of rank 0 by a pass: three steps of 20 us end 20 us apart.
    #[test]
    fn steps_that_overlap_add_up() {
        let of = |step: u32| {
            let start = u64::from(step) * 20;
            [row(step, 0, start, 30, 0), row(step, 1, start + 5, 20, 0)]
        };
        let rows = [of(0), of(1), of(2)].concat();
        let (stats, _) = fold_steps(rows.iter(), |_, _| 2);
        assert_eq!([stats.time_us.max, stats.time_us.p50], [Some(30.0), Some(20.0)]);
    }

    #[test]
    fn slowdown_counts_from_the_last_start() {
        let row = CollectiveRow {
            start: Time(1),
            last_start: Time(100),
            end: Time(400),
            ideal: Some(Dur(200)),
            ..CollectiveRow::default()
        };
        assert_eq!(row.slowdown(), Some(1.5));
        assert_eq!(CollectiveRow { ideal: None, ..row.clone() }.slowdown(), None);
        assert_eq!(CollectiveRow { ideal: Some(Dur::ZERO), ..row }.slowdown(), None);
    }

    /// 1 MB among 4 in 10 us: 1.5 MB, 0.75 MB, 1 MB on a rank's link.
    #[test]
    fn bus_bandwidth_is_that_of_a_rank_s_link() {
        let of = |op: &str| {
            let row = CollectiveRow {
                op: op.into(),
                ranks: 4,
                bytes: 1_000_000,
                longest: Dur(10_000_000),
                ..CollectiveRow::default()
            };
            row.bus_gbps().map(|gbps| (gbps * 1e6) as u64)
        };
        assert_eq!(of("all-reduce"), Some(1_200_000_000));
        assert_eq!(of("all-to-all"), Some(600_000_000));
        assert_eq!([of("broadcast"), of("barrier")], [Some(800_000_000), None]);
    }

    #[test]
    fn reads_back_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let steps =
            [row(0, 0, 1, 2, 1), StepRow { completed: false, traffic: 3, ..row(7, 9, 3, 4, 0) }];
        write_steps(out.file("steps.parquet").unwrap(), &steps).unwrap();
        let named = CollectiveRow {
            op: "all-reduce".into(),
            name: Some("gradients".into()),
            ideal: Some(Dur(7)),
            ..CollectiveRow::default()
        };
        let collectives = [named, CollectiveRow { collective: 4, ..CollectiveRow::default() }];
        let file = out.file("collectives.parquet").unwrap();
        write_collectives(file, collectives.iter().cloned()).unwrap();
        out.commit().unwrap();
        assert_eq!(read_steps(&dir.path().join("steps.parquet")).unwrap(), steps);
        let read = read_collectives(&dir.path().join("collectives.parquet")).unwrap();
        assert_eq!(read, collectives);
        assert!(StepRow::columns().0.iter().all(|c| !c.about.is_empty()));
        assert!(CollectiveRow::columns().0.iter().all(|c| !c.about.is_empty()));
    }
}
