//! [`Recorder`]: the observer that keeps a row per message and per job.

use endpoint::{FailReason, Job, JobRecord, MessageRecord, Observer, RttRecord, Stat, UNBOUNDED};
use fabric::Counted;
use metrics::{Failure, FlowRow, JobRow};
use units::{Dur, MsgKey, Rate, Time};

/// Keeps what became of each message and of each job.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// One row per message, in the order in which they ended until they are [`Self::counted`].
    pub(crate) rows: Vec<FlowRow>,
    /// One row per job, in the order of time and host; without the rates of links.
    pub(crate) jobs: Vec<JobRow>,
    /// The round-trip samples inside the window, in the order of time and host.
    pub(crate) rtts: Vec<RttRecord>,
    /// The measurement window: messages submitted at `from <= t < to` are measured.
    from: Time,
    to: Option<Time>,
}

impl Recorder {
    pub(crate) const fn new(from: Time, to: Option<Time>) -> Self {
        Self { rows: Vec::new(), jobs: Vec::new(), rtts: Vec::new(), from, to }
    }

    /// The messages by source and number, with what transports have counted for them.
    pub(crate) fn counted(mut self, counted: &[Counted]) -> Self {
        self.rows.sort_unstable_by_key(|row| (row.src, row.msg));
        for &Counted { key, stat, times } in counted {
            let of = (key.src.0, key.id.0);
            let Ok(at) = self.rows.binary_search_by_key(&of, |row| (row.src, row.msg)) else {
                continue;
            };
            let row = &mut self.rows[at];
            let count = match stat {
                Stat::Timeout => &mut row.timeouts,
                Stat::FastRetransmit => &mut row.fast_retransmits,
                Stat::Retransmission => &mut row.retransmissions,
                Stat::SpuriousFastRetransmit => &mut row.spurious_fast_retransmits,
                _ => continue,
            };
            *count = u32::try_from(times).unwrap_or(u32::MAX);
        }
        self
    }

    /// The round-trip samples, each with the traffic table of its message, by length. After
    /// [`Self::counted`].
    pub(crate) fn rtts(&self) -> Vec<(Dur, u16)> {
        let row = |of: MsgKey| {
            let found = self.rows.binary_search_by_key(&(of.src.0, of.id.0), |r| (r.src, r.msg));
            found.ok().map(|at| self.rows[at].traffic)
        };
        let rtts = self.rtts.iter().filter_map(|record| Some((record.rtt, row(record.key)?)));
        let mut rtts: Vec<(Dur, u16)> = rtts.collect();
        rtts.sort_unstable();
        rtts
    }

    /// Whether what began at `start` is measured.
    fn measures(&self, start: Time) -> bool {
        self.from <= start && self.to.is_none_or(|to| start < to)
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
        self.rows.push(FlowRow {
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
    }

    fn rtt(&mut self, record: &RttRecord) {
        if self.measures(record.at) {
            self.rtts.push(*record);
        }
    }

    fn job(&mut self, record: &JobRecord) {
        let Job { tag, completed, start, end, bytes, received, parts, in_time } = record.job;
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

    #[test]
    fn rows_come_out_in_order_with_the_cause_of_failure() {
        let mut recorder = Recorder::new(Time::ZERO, None);
        for id in (0..9).rev() {
            recorder.message(&message(id, (id == 7).then_some(FailReason::Refused)));
        }
        let rows = recorder.counted(&[]).rows;
        assert!(rows.iter().map(|row| row.msg).eq(0..9));
        assert_eq!((rows[7].failed, rows[8].failed), (Some(Failure::Refused), None));
    }
}
