//! [`LinkRow`] of `links.parquet` and [`QueueRow`] of `queues.parquet`.

use std::path::Path;

use units::{Dur, Rate, Time};

use crate::table::{read_table, write_table};
use crate::{Columns, FileError, Row, StagedFile};

/// A directed link and the queue in front of it, over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRow {
    /// Its name in the topology, for example `tor 3 -> host 27`.
    pub name: String,
    /// The level of the fabric that it leaves and the direction, for example `tor-down`.
    pub tier: String,
    /// Its rate.
    pub rate: Rate,
    /// Bytes transmitted during the run, headers included.
    pub tx_bytes: u64,
    /// Share of the measurement window during which it was transmitting, 0 to 1.
    pub utilization: Option<f64>,
    /// The longest that its queue has been, in bytes.
    pub max_queue_bytes: u64,
    /// Packets dropped at its queue.
    pub dropped: u64,
    /// Packets whose payload was cut off at its queue.
    pub trimmed: u64,
    /// Headers returned to their senders from its queue.
    pub bounced: u64,
    /// Packets marked with congestion experienced at its queue.
    pub marked: u64,
    /// Times that the far end paused a class of it (priority flow control).
    pub pauses: u64,
    /// How long its classes were paused, together.
    pub paused: Dur,
    /// The longest of these pauses.
    pub longest_pause: Dur,
}

impl Row for LinkRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("name", "the directed link")
            .field(|r| &mut r.name)
            .column("tier", "the level that it leaves and the direction")
            .field(|r| &mut r.tier)
            .column("rate_bps", "its rate")
            .field(|r| &mut r.rate.0)
            .column("tx_bytes", "bytes transmitted during the run, headers included")
            .field(|r| &mut r.tx_bytes)
            .column(
                "utilization",
                "share of the measurement window during which it was transmitting, 0 to 1",
            )
            .field(|r| &mut r.utilization)
            .column("max_queue_bytes", "the longest that its queue has been")
            .field(|r| &mut r.max_queue_bytes)
            .column("dropped", "packets dropped at its queue")
            .field(|r| &mut r.dropped)
            .column("trimmed", "packets whose payload was cut off at its queue")
            .field(|r| &mut r.trimmed)
            .column("bounced", "headers returned to their senders from its queue")
            .field(|r| &mut r.bounced)
            .column("marked", "packets marked with congestion experienced at its queue")
            .field(|r| &mut r.marked)
            .column("pauses", "times that the far end paused a class of it (priority flow control)")
            .field(|r| &mut r.pauses)
            .column("paused_ps", "how long its classes were paused, together")
            .field(|r| &mut r.paused)
            .column("longest_pause_ps", "the longest of these pauses")
            .field(|r| &mut r.longest_pause)
    }
}

/// Writes `links.parquet`, in the order given.
///
/// # Errors
/// The file cannot be written.
pub fn write_links(
    file: StagedFile,
    rows: impl IntoIterator<Item = LinkRow>,
) -> Result<(), FileError> {
    write_table(file, rows)
}

/// All rows of a `links.parquet`.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_links(path: &Path) -> Result<Vec<LinkRow>, FileError> {
    read_table(path)
}

/// The length of a queue at a sample, if it differs from that at the sample before (at first: from
/// 0); write with [`crate::TableWriter`]. What happens between two samples does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueRow {
    /// The time of the sample.
    pub at: Time,
    /// The directed link that the queue stands before: a row number of `links.parquet`.
    pub link: u32,
    /// Bytes waiting at that time.
    pub bytes: u64,
}

impl Row for QueueRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("at_ps", "time of the sample, since the start of the run")
            .field(|r| &mut r.at)
            .column("link", "the directed link: row number in links.parquet, from 0")
            .field(|r| &mut r.link)
            .column(
                "bytes",
                "bytes waiting at that time; a queue that holds as much as at the sample \
                before has no row",
            )
            .field(|r| &mut r.bytes)
    }
}

/// All rows of a `queues.parquet`.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_queues(path: &Path) -> Result<Vec<QueueRow>, FileError> {
    read_table(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutputDir, TableWriter};

    #[test]
    fn links_and_queues_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let link = |name: &str, utilization| LinkRow {
            name: name.to_owned(),
            tier: "tor-down".to_owned(),
            rate: Rate(10_000_000_000),
            tx_bytes: 1 << 40,
            utilization,
            max_queue_bytes: 72_000,
            dropped: 1,
            trimmed: 2,
            bounced: 3,
            marked: 4,
            pauses: 5,
            paused: Dur(6),
            longest_pause: Dur(7),
        };
        let links = vec![link("tor 3 → host 27", Some(0.92)), link("", None)];
        write_links(out.file("links.parquet").unwrap(), links.clone()).unwrap();
        let queue = |i: u32| QueueRow { at: Time(u64::from(i)), link: i % 5, bytes: 9064 };
        let mut table = TableWriter::new(out.file("queues.parquet").unwrap()).unwrap();
        (0..70_000).try_for_each(|i| table.push(queue(i))).unwrap();
        table.finish().unwrap();
        out.commit().unwrap();
        assert_eq!(read_links(&dir.path().join("links.parquet")).unwrap(), links);
        let queues = read_queues(&dir.path().join("queues.parquet")).unwrap();
        assert_eq!(queues, (0..70_000).map(queue).collect::<Vec<_>>());
    }
}
