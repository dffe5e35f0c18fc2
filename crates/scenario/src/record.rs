//! [`Recorder`]: the observer that keeps a row per message and per job.

use std::io;
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use endpoint::{
    Cause, FailReason, Job, JobRecord, Life, MessageRecord, Observer, RttRecord, Stat, UNBOUNDED,
};
use metrics::{Failure, FileError, FlowRow, JobRow, LifeRow, Pack, Sorted, Sorter};
use units::{Dur, MsgKey, Rate, Time};

use crate::steps::Worked;
use crate::steps_done::StepsDone;

/// Keeps what became of each message and of each job: of messages in a file, once there are many
/// and it may write.
pub(crate) struct Recorder {
    rows: Sorter<FlowRow>,
    lives: Sorter<LifeRow>,
    counts: Sorter<Count>,
    /// One row per job, in the order of time and host; without the rates of links.
    jobs: Vec<JobRow>,
    /// What ranks of training jobs have done, in the same order.
    works: Vec<Worked>,
    /// Who else is told of these.
    told: Option<Arc<StepsDone>>,
    /// The round-trip samples inside the window, in the order of time and host.
    rtts: Vec<RttRecord>,
    /// The measurement window: messages submitted at `from <= t < to` are measured.
    from: Time,
    to: Option<Time>,
    /// The first row that could not be written.
    error: Option<FileError>,
    /// The same for whoever runs the simulation, which then makes no sense any more.
    failed: Arc<AtomicBool>,
}

/// What a run has left.
pub(crate) struct Recorded {
    /// A row per message, by source and number.
    pub(crate) rows: Sorted<FlowRow>,
    /// Where the time went of each that was delivered, if that is asked for.
    pub(crate) lives: Sorted<LifeRow>,
    pub(crate) jobs: Vec<JobRow>,
    /// What ranks of training jobs have done.
    pub(crate) works: Vec<Worked>,
    /// The round-trip samples, each with the traffic table of its message, ascending.
    pub(crate) rtts: Vec<(Dur, u16)>,
}

impl Recorder {
    /// It writes to `dir`, if there is one ([`Sorter`]).
    pub(crate) fn new(from: Time, to: Option<Time>, dir: Option<&Path>) -> Self {
        Self {
            rows: Sorter::new(dir),
            lives: Sorter::new(dir),
            counts: Sorter::new(dir),
            jobs: Vec::new(),
            works: Vec::new(),
            told: None,
            rtts: Vec::new(),
            from,
            to,
            error: None,
            failed: Arc::default(),
        }
    }

    /// `steps` are told of steps that are complete.
    pub(crate) fn tell(&mut self, steps: Option<Arc<StepsDone>>) {
        self.told = steps;
    }

    /// Raised when something cannot be written.
    pub(crate) fn failed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.failed)
    }

    /// Everything, or what could not be written.
    pub(crate) fn finish(self) -> Result<Recorded, FileError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let rows = counted(self.rows.sort()?, &self.counts.sort()?)?;
        let rtts = with_tables(self.rtts, &rows)?;
        let (jobs, works) = (self.jobs, self.works);
        Ok(Recorded { rows, lives: self.lives.sort()?, jobs, works, rtts })
    }

    /// Whether what began at `start` is measured.
    fn measures(&self, start: Time) -> bool {
        self.from <= start && self.to.is_none_or(|to| start < to)
    }

    fn note(&mut self, written: Result<(), FileError>) {
        if let Err(error) = written {
            self.error.get_or_insert(error);
            self.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// The rows with what transports have counted for them.
fn counted(rows: Sorted<FlowRow>, counts: &Sorted<Count>) -> Result<Sorted<FlowRow>, FileError> {
    if counts.is_empty() {
        return Ok(rows);
    }
    let mut counts = counts.iter()?.peekable();
    rows.update(|row| add_counts(row, &mut counts))
}

/// Add those of `counts` that are of `row`. Both come in the same order.
fn add_counts(
    row: &mut FlowRow,
    counts: &mut Peekable<impl Iterator<Item = Result<Count, FileError>>>,
) -> Result<(), FileError> {
    while let Some(count) =
        counts.next_if(|count| count.as_ref().map_or(true, |count| count.of <= row.key()))
    {
        let Count { of, stat, times } = count?;
        if of == row.key() {
            let sum = stat.of(row);
            *sum = sum.saturating_add(times);
        }
    }
    Ok(())
}

/// Each of `rtts` with the traffic table of its message, by length.
fn with_tables(
    mut rtts: Vec<RttRecord>,
    rows: &Sorted<FlowRow>,
) -> Result<Vec<(Dur, u16)>, FileError> {
    let of = |record: &RttRecord| (record.key.src.0, record.key.id.0);
    rtts.sort_unstable_by_key(of);
    let (mut found, mut left) = (Vec::with_capacity(rtts.len()), rtts.iter().peekable());
    for row in rows.iter()? {
        let row = row?;
        while let Some(record) = left.next_if(|record| of(record) <= row.key()) {
            found.extend((of(record) == row.key()).then_some((record.rtt, row.traffic)));
        }
        if left.peek().is_none() {
            break;
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// So often has a transport counted something for a message, since it last said so.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// The key of the message's row.
    of: (u32, u64),
    stat: OfRow,
    times: u32,
}

/// What is counted in a column of `flows.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfRow {
    Timeouts,
    FastRetransmits,
    Retransmissions,
    SpuriousFastRetransmits,
}

impl OfRow {
    const ALL: [Self; 4] = [
        Self::Timeouts,
        Self::FastRetransmits,
        Self::Retransmissions,
        Self::SpuriousFastRetransmits,
    ];

    /// `None`: in none.
    const fn new(stat: Stat) -> Option<Self> {
        Some(match stat {
            Stat::Timeout => Self::Timeouts,
            Stat::FastRetransmit => Self::FastRetransmits,
            Stat::Retransmission => Self::Retransmissions,
            Stat::SpuriousFastRetransmit => Self::SpuriousFastRetransmits,
            _ => return None,
        })
    }

    const fn of(self, row: &mut FlowRow) -> &mut u32 {
        match self {
            Self::Timeouts => &mut row.timeouts,
            Self::FastRetransmits => &mut row.fast_retransmits,
            Self::Retransmissions => &mut row.retransmissions,
            Self::SpuriousFastRetransmits => &mut row.spurious_fast_retransmits,
        }
    }
}

impl Pack for Count {
    type Key = (u32, u64);

    fn key(&self) -> (u32, u64) {
        self.of
    }

    fn pack(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend(self.of.0.to_le_bytes());
        out.extend(self.of.1.to_le_bytes());
        out.extend(self.times.to_le_bytes());
        out.push(self.stat as u8);
        Ok(())
    }

    fn unpack(bytes: &mut &[u8]) -> io::Result<Self> {
        let src = u32::from_le_bytes(metrics::take(bytes)?);
        let msg = u64::from_le_bytes(metrics::take(bytes)?);
        let times = u32::from_le_bytes(metrics::take(bytes)?);
        let [stat] = metrics::take(bytes)?;
        let stat = OfRow::ALL.get(usize::from(stat)).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { of: (src, msg), stat: *stat, times })
    }
}

/// The cause as result files have it.
const fn failure(why: FailReason) -> Failure {
    match why {
        FailReason::TimedOut => Failure::TimedOut,
        FailReason::Refused => Failure::Refused,
        FailReason::Cancelled => Failure::Cancelled,
        FailReason::Forgotten => Failure::Forgotten,
    }
}

impl Observer for Recorder {
    fn message(&mut self, r: &MessageRecord) {
        let measured = self.measures(r.submitted);
        let written = self.rows.push(FlowRow {
            src: r.key.src.0,
            dst: r.dst.0,
            msg: r.key.id.0,
            traffic: r.tag,
            size: (r.len != UNBOUNDED).then_some(r.len),
            start: r.submitted,
            deadline: (r.deadline != Dur::MAX).then_some(r.deadline),
            finish: r.delivered,
            acked: r.acked,
            failed: r.failed.map(failure),
            ideal: r.ideal,
            placed: r.placed,
            placed_in_window: r.placed_in_window,
            measured,
            ..FlowRow::default()
        });
        self.note(written);
    }

    fn count(&mut self, key: MsgKey, stat: Stat, times: u64) {
        if let Some(stat) = OfRow::new(stat) {
            let times = u32::try_from(times).unwrap_or(u32::MAX);
            let written = self.counts.push(Count { of: (key.src.0, key.id.0), stat, times });
            self.note(written);
        }
    }

    fn life(&mut self, life: &Life<'_>) {
        let written = self.lives.push(LifeRow {
            src: life.key.src.0,
            msg: life.key.id.0,
            fct: life.delivered.since(life.submitted),
            measured: self.measures(life.submitted),
            spent: Cause::ALL.map(|cause| life.spent[cause as usize]),
        });
        self.note(written);
    }

    fn rtt(&mut self, record: &RttRecord) {
        if self.measures(record.at) {
            self.rtts.push(*record);
        }
    }

    fn job(&mut self, record: &JobRecord) {
        let Job { tag, completed, start, end, bytes, received, parts, in_time, work } = record.job;
        if let Some(work) = work {
            let (host, table) = (record.host, tag);
            let worked = Worked { host, table, start, end, completed, bytes, work };
            if let Some(steps) = &self.told {
                steps.note(&worked);
            }
            self.works.push(worked);
            return;
        }
        let measured = self.measures(start);
        self.jobs.push(JobRow {
            host: record.host.0,
            traffic: tag,
            start,
            end,
            completed,
            bytes,
            received,
            rate: Rate(0),
            parts,
            in_time,
            measured,
        });
    }
}

#[cfg(test)]
mod tests {
    use units::{HostId, MsgId};

    use super::*;

    fn message(id: u64, failed: Option<FailReason>) -> MessageRecord {
        MessageRecord {
            key: MsgKey { src: HostId(3), id: MsgId(id) },
            dst: HostId(1),
            len: 10,
            tag: 0,
            submitted: Time(5),
            deadline: Dur::MAX,
            delivered: None,
            acked: None,
            failed,
            ideal: Dur(1),
            placed: 0,
            placed_in_window: 0,
        }
    }

    /// More messages than are held, each of which has had something counted for it, in parts and
    /// also after it was over.
    #[test]
    fn rows_in_a_file_are_those_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let rows = |dir: Option<&Path>| {
            let mut recorder = Recorder::new(Time::ZERO, None, dir);
            let key = |id: u64| MsgKey { src: HostId(3), id: MsgId(id) };
            for id in (0..150_000_u64).map(|n| n * 7_919 % 150_000) {
                recorder.count(key(id), Stat::Retransmission, id % 5);
                recorder.message(&message(id, None));
                recorder.count(key(id / 2), Stat::Retransmission, 1);
                recorder.count(key(id), Stat::Timeout, 2);
                recorder.count(key(id), Stat::Rejected, 2);
            }
            recorder.rtt(&RttRecord { at: Time(9), key: key(9), rtt: Dur(4) });
            recorder.rtt(&RttRecord { at: Time(9), key: key(1 << 40), rtt: Dur(4) });
            recorder.finish().unwrap()
        };
        let (held, written) = (rows(None), rows(Some(dir.path())));
        assert!(matches!(written.rows, Sorted::Written(_)), "in memory");
        assert_eq!((&held.rtts, &written.rtts), (&vec![(Dur(4), 0)], &vec![(Dur(4), 0)]));
        let held = held.rows.into_vec().unwrap();
        assert!(held == written.rows.into_vec().unwrap());
        let counts = |row: &FlowRow| (row.msg, row.retransmissions, row.timeouts);
        assert_eq!(counts(&held[74_999]), (74_999, 74_999 % 5 + 2, 2));
        assert_eq!(counts(&held[149_999]), (149_999, 149_999 % 5, 2));
    }

    /// A disk that is full: the run ends, and says so.
    #[test]
    fn what_cannot_be_written_ends_the_run_with_an_error() {
        let mut recorder = Recorder::new(Time::ZERO, None, Some(Path::new("/nowhere")));
        let failed = recorder.failed();
        (0..140_000).for_each(|id| recorder.message(&message(id, None)));
        assert!(failed.load(Ordering::Relaxed));
        let error = recorder.finish().err().unwrap();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }

    #[test]
    fn rows_come_out_in_order_with_the_cause_of_failure() {
        let mut recorder = Recorder::new(Time::ZERO, None, None);
        for id in (0..9).rev() {
            recorder.message(&message(id, (id == 7).then_some(FailReason::Refused)));
        }
        let rows = recorder.finish().unwrap().rows.into_vec().unwrap();
        assert!(rows.iter().map(|row| row.msg).eq(0..9));
        assert_eq!((rows[7].failed, rows[8].failed), (Some(Failure::Refused), None));
    }
}
