//! [`FlowRow`]: a message and what became of it, one row of `flows.parquet`.

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use units::{Dur, Time};

use crate::table::{read_each, read_table, write_sorted, write_table};
use crate::{Columns, FileError, Pack, Row, Sorted, StagedFile};

/// Why a message was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer did not answer for as long as the transport is willing to try.
    TimedOut,
    /// The peer refused it.
    Refused,
    /// The application cancelled it.
    Cancelled,
    /// Its receiver had forgotten a part of it, and its sender took it for delivered.
    Forgotten,
}

impl Failure {
    pub(crate) const ALL: [Self; 4] =
        [Self::TimedOut, Self::Refused, Self::Cancelled, Self::Forgotten];

    /// As in `flows.parquet` and in the keys of `summary.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Forgotten => "forgotten",
        }
    }
}

/// A message and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRow {
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// The sending host's counter of messages, from zero.
    pub msg: u64,
    /// The `[[traffic]]` table of the scenario that it comes from, counted from zero.
    pub traffic: u16,
    /// Its size in bytes; `None` if it is unbounded.
    pub size: Option<u64>,
    /// When the application submitted it.
    pub start: Time,
    /// From submission until its last byte should be placed; `None`: no deadline.
    pub deadline: Option<Dur>,
    /// When its last byte was placed at the receiver; `None` if that has not happened.
    pub finish: Option<Time>,
    /// When the sender learnt that it is complete; `None` if that has not happened.
    pub acked: Option<Time>,
    /// Why an end gave it up before it was whole; `None` if none did.
    pub failed: Option<Failure>,
    /// How long it takes alone in the same fabric; zero for an unbounded one.
    pub ideal: Dur,
    /// Bytes placed at the receiver by the end of the run.
    pub placed: u64,
    /// Bytes placed at the receiver inside the measurement window.
    pub placed_in_window: u64,
    /// Whether it was submitted inside the measurement window.
    pub measured: bool,
    /// Timeouts that made the sender send again while this message was the next to be acknowledged.
    pub timeouts: u32,
    /// Losses inferred from acknowledgements in the same place.
    pub fast_retransmits: u32,
    /// Packets of it sent again.
    pub retransmissions: u32,
    /// Fast retransmits of what the receiver had already.
    pub spurious_fast_retransmits: u32,
}

impl FlowRow {
    /// Completion time: from submission to the last byte placed at the receiver.
    #[must_use]
    pub fn fct(&self) -> Option<Dur> {
        Some(self.finish?.since(self.start))
    }

    /// Whether it was given up, and has not become whole all the same.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed.is_some() && self.finish.is_none()
    }

    /// Whether it is bounded, and neither whole nor given up.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        self.size.is_some() && self.finish.is_none() && self.failed.is_none()
    }

    /// Whether it was whole by its deadline; `None` without one.
    #[must_use]
    pub fn in_time(&self) -> Option<bool> {
        let deadline = self.deadline?;
        Some(self.fct().is_some_and(|fct| fct <= deadline))
    }

    /// Completion time over ideal completion time; `None` while unfinished or without an ideal.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        let fct = self.fct()?;
        (self.ideal > Dur::ZERO).then(|| fct.0 as f64 / self.ideal.0 as f64)
    }
}

impl Row for FlowRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("src", "sending host, from 0")
            .field(|r| &mut r.src)
            .column("dst", "receiving host, from 0")
            .field(|r| &mut r.dst)
            .column("msg", "the sending host's counter of messages, from 0")
            .field(|r| &mut r.msg)
            .column("traffic", "the [[traffic]] table that it comes from, counted from 0")
            .field(|r| &mut r.traffic)
            .column("size_bytes", "message size; null if unbounded")
            .field(|r| &mut r.size)
            .column("start_ps", "when the application submitted it, since the start of the run")
            .field(|r| &mut r.start)
            .column(
                "deadline_ps",
                "from start_ps until it should be whole at the receiver; null: none",
            )
            .field(|r| &mut r.deadline)
            .column(
                "finish_ps",
                "when its last byte was placed at the receiver; null if unfinished",
            )
            .field(|r| &mut r.finish)
            .column("acked_ps", "when the sender learnt that it is complete; null if it did not")
            .field(|r| &mut r.acked)
            .column(
                "failed",
                "why an end gave it up before it was whole: timed_out, refused, cancelled; \
                else null",
            )
            .field(|r| &mut r.failed)
            .column(
                "ideal_ps",
                "completion time of the same message alone in the same fabric; 0 if unbounded",
            )
            .field(|r| &mut r.ideal)
            .column("fct_ps", "completion time: finish_ps - start_ps; null if unfinished")
            .derived(Self::fct)
            .column("slowdown", "fct_ps / ideal_ps; null if unfinished or unbounded")
            .derived(Self::slowdown)
            .column("placed_bytes", "bytes placed at the receiver by the end of the run")
            .field(|r| &mut r.placed)
            .column(
                "placed_in_window_bytes",
                "bytes placed at the receiver inside the measurement window",
            )
            .field(|r| &mut r.placed_in_window)
            .column("measured", "whether it was submitted inside the measurement window")
            .field(|r| &mut r.measured)
            .column(
                "timeouts",
                "timeouts that made the sender send again while this message was next to be \
                acknowledged",
            )
            .field(|r| &mut r.timeouts)
            .column(
                "fast_retransmits",
                "recoveries begun by acknowledgements while this message was next to be \
                acknowledged",
            )
            .field(|r| &mut r.fast_retransmits)
            .column("retransmissions", "packets of it sent again")
            .field(|r| &mut r.retransmissions)
            .column(
                "spurious_fast_retransmits",
                "fast retransmits of what the receiver had already",
            )
            .field(|r| &mut r.spurious_fast_retransmits)
    }
}

impl Pack for FlowRow {
    type Key = (u32, u64);

    fn key(&self) -> (u32, u64) {
        (self.src, self.msg)
    }

    fn pack(&self, out: &mut Vec<u8>) -> io::Result<()> {
        packed().pack(&mut self.clone(), out)
    }

    fn unpack(bytes: &mut &[u8]) -> io::Result<Self> {
        let mut row = Self::default();
        packed().unpack(&mut row, bytes)?;
        Ok(row)
    }
}

/// The columns, put together once: a row is packed for each message.
fn packed() -> &'static Columns<FlowRow> {
    static COLUMNS: LazyLock<Columns<FlowRow>> = LazyLock::new(FlowRow::columns);
    &COLUMNS
}

/// Writes `flows.parquet`: one row per message, by (src, msg).
///
/// # Errors
/// The file cannot be written, or the rows not be read.
pub fn write_flows(file: StagedFile, rows: &Sorted<FlowRow>) -> Result<(), FileError> {
    write_sorted(file, rows)
}

/// Writes `flows.parquet` of rows in memory.
///
/// # Errors
/// The file cannot be written.
pub fn write_flow_rows(file: StagedFile, rows: &[FlowRow]) -> Result<(), FileError> {
    write_table(file, rows.iter().copied())
}

/// All rows of a `flows.parquet`, in file order.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_flows(path: &Path) -> Result<Vec<FlowRow>, FileError> {
    read_table(path)
}

/// Hands the rows of a `flows.parquet` to `each`, a group at a time: there may be millions.
///
/// # Errors
/// The file is missing, broken, or lacks a column; or that of `each`.
pub fn read_each_flow(
    path: &Path,
    each: impl FnMut(&[FlowRow]) -> Result<(), FileError>,
) -> Result<(), FileError> {
    read_each(path, each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutputDir, Sorter};

    fn row(src: u32, msg: u64) -> FlowRow {
        let start = Time(msg * 1_000 + 1);
        FlowRow {
            src,
            dst: src + 1,
            msg,
            traffic: (msg % 7) as u16,
            size: (!msg.is_multiple_of(3)).then_some(msg),
            start,
            deadline: msg.is_multiple_of(4).then_some(Dur(2_000 + msg)),
            finish: (!msg.is_multiple_of(5)).then_some(start + Dur(3_000)),
            acked: (!msg.is_multiple_of(7)).then_some(start + Dur(4_000)),
            failed: [None, Some(Failure::TimedOut), Some(Failure::Refused)][(msg % 3) as usize],
            ideal: Dur(1_500 * (msg % 3)),
            placed: msg / 2,
            placed_in_window: msg / 4,
            measured: msg.is_multiple_of(2),
            timeouts: (msg % 11) as u32,
            fast_retransmits: (msg % 13) as u32,
            retransmissions: (msg % 17) as u32,
            spurious_fast_retransmits: (msg % 19) as u32,
        }
    }

    #[test]
    fn reads_back_what_was_written_sorted() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        // More than one row group, in an order that no reader should see.
        let rows = (0..20_000).flat_map(|msg| [row(2, msg), row(0, msg), row(1, msg)]);
        let mut sorter = Sorter::new(None);
        rows.for_each(|row| sorter.push(row).unwrap());
        write_flows(out.file("flows.parquet").unwrap(), &sorter.sort().unwrap()).unwrap();
        out.commit().unwrap();
        let read = read_flows(&dir.path().join("flows.parquet")).unwrap();
        assert_eq!(read.len(), 60_000);
        assert!(read.is_sorted_by_key(|r| (r.src, r.msg)));
        assert!(read.iter().all(|r| *r == row(r.src, r.msg)), "every value survives");
    }

    #[test]
    fn a_packed_row_comes_back_whole() {
        let largest = FlowRow { start: Time(i64::MAX as u64), placed: 1 << 62, ..row(9, 1 << 40) };
        for row in (0..300).map(|msg| row(u32::MAX - 1, msg)).chain([largest]) {
            let mut bytes = Vec::new();
            row.pack(&mut bytes).unwrap();
            assert!(bytes.len() < 128, "{}", bytes.len());
            let mut left = &bytes[..];
            assert_eq!(FlowRow::unpack(&mut left).unwrap(), row);
            assert!(left.is_empty());
            let mut cut = &bytes[..bytes.len() - 1];
            assert!(FlowRow::unpack(&mut cut).is_err(), "cut off");
        }
        let too_large = FlowRow { start: Time(u64::MAX), ..FlowRow::default() };
        assert!(too_large.pack(&mut Vec::new()).is_err());
    }

    #[test]
    fn completion_time_and_slowdown() {
        let done = row(0, 1);
        assert_eq!((done.fct(), done.slowdown()), (Some(Dur(3_000)), Some(2.0)));
        assert_eq!((row(0, 5).fct(), row(0, 5).slowdown()), (None, None), "unfinished");
        assert_eq!(row(0, 3).slowdown(), None, "unbounded");
    }

    #[test]
    fn columns_are_stable_and_described() {
        let Columns(columns) = FlowRow::columns();
        let names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
        let expected = "src dst msg traffic size_bytes start_ps deadline_ps finish_ps acked_ps failed ideal_ps fct_ps \
             slowdown placed_bytes placed_in_window_bytes measured timeouts fast_retransmits \
             retransmissions spurious_fast_retransmits";
        assert_eq!(names.join(" "), expected);
        assert!(columns.iter().all(|c| !c.about.is_empty()));
    }
}
