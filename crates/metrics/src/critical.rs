//! Training jobs: [`CriticalRow`] of `critical.parquet`, what each step waited for.

use std::path::Path;

use units::{Dur, Time};

use crate::table::{read_table, write_table};
use crate::{Columns, FileError, Row, StagedFile};

/// A piece of the critical path of a step: what went on, so that the next piece could begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalRow {
    /// The `[[traffic]]` table of the scenario that it comes from, counted from zero.
    pub traffic: u16,
    /// Which step, from 0.
    pub step: u32,
    /// Which piece of its path, from 0, in the order of time.
    pub piece: u32,
    /// `work`, `message` or `collective`.
    pub what: String,
    /// Its name in the job.
    pub name: Option<String>,
    /// The rank that worked, waited for the message, or was in the collective.
    pub rank: u32,
    /// The host of the rank.
    pub host: u32,
    /// The rank that sent the message, or was the last to begin the collective.
    pub peer: Option<u32>,
    /// The host of that.
    pub peer_host: Option<u32>,
    /// When it began; a collective begins when its last rank does.
    pub start: Time,
    /// When it was over.
    pub end: Time,
    /// The size of the message, or of the collective's vector.
    pub bytes: Option<u64>,
    /// The source of the message whose arrival ended it, if it crossed the fabric, ...
    pub last_src: Option<u32>,
    /// ... and its number there.
    pub last_msg: Option<u64>,
}

impl CriticalRow {
    /// How long it took.
    #[must_use]
    pub fn time(&self) -> Dur {
        self.end.since(self.start)
    }
}

impl Row for CriticalRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("traffic", "the [[traffic]] table that it comes from, counted from 0")
            .field(|r| &mut r.traffic)
            .column("step", "which step of the job, from 0")
            .field(|r| &mut r.step)
            .column("piece", "which piece of the step's critical path, in the order of time")
            .field(|r| &mut r.piece)
            .column("what", "work, message or collective")
            .field(|r| &mut r.what)
            .column("name", "its name in the job, if it has one")
            .field(|r| &mut r.name)
            .column("rank", "who worked, waited for the message, or was in the collective")
            .field(|r| &mut r.rank)
            .column("host", "the host of the rank")
            .field(|r| &mut r.host)
            .column("peer", "who sent the message, or began the collective last")
            .field(|r| &mut r.peer)
            .column("peer_host", "the host of that")
            .field(|r| &mut r.peer_host)
            .column("start_ps", "when it began; a collective begins with its last rank")
            .field(|r| &mut r.start)
            .column("end_ps", "when it was over")
            .field(|r| &mut r.end)
            .column("bytes", "the size of the message, or of the collective's vector")
            .field(|r| &mut r.bytes)
            .column("last_src", "the source of the message whose arrival ended it, if one did")
            .field(|r| &mut r.last_src)
            .column("last_msg", "the number of that message at its source")
            .field(|r| &mut r.last_msg)
            .column("time_ps", "end_ps - start_ps")
            .derived(|r| r.time().0)
    }
}

/// Writes `critical.parquet`, in the order of `rows`.
///
/// # Errors
/// The file cannot be written.
pub fn write_critical(file: StagedFile, rows: &[CriticalRow]) -> Result<(), FileError> {
    write_table(file, rows.iter().cloned())
}

/// All rows of a `critical.parquet`, in file order.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_critical(path: &Path) -> Result<Vec<CriticalRow>, FileError> {
    read_table(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutputDir;

    #[test]
    fn reads_back_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let work = CriticalRow { what: "work".into(), end: Time(7), ..CriticalRow::default() };
        let message = CriticalRow {
            what: "message".into(),
            name: Some("activations".into()),
            piece: 1,
            peer: Some(3),
            peer_host: Some(1),
            bytes: Some(5),
            last_src: Some(1),
            last_msg: Some(9),
            ..work.clone()
        };
        let rows = [work, message];
        write_critical(out.file("critical.parquet").unwrap(), &rows).unwrap();
        out.commit().unwrap();
        assert_eq!(read_critical(&dir.path().join("critical.parquet")).unwrap(), rows);
        assert!(CriticalRow::columns().0.iter().all(|c| !c.about.is_empty()));
    }
}
