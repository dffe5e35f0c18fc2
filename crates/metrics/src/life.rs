//! [`LifeRow`]: where the time of a message went, one row of `life.parquet`, and [`LifeStats`].

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use units::Dur;

use crate::table::{read_each, read_table, write_sorted};
use crate::{Columns, FileError, Pack, Row, Sorted, StagedFile};

/// What a part of a completion time was spent on: its name, and a sentence on it.
#[derive(Clone, Copy, Debug)]
pub struct LifeCause {
    /// As in `life.parquet` (before `_ps`) and in `summary.json`.
    pub name: &'static str,
    /// As in the documentation.
    pub about: &'static str,
}

/// How many causes there are.
pub const LIFE_CAUSES: usize = 15;

/// The causes. Each picosecond of a completion time has exactly one.
pub const CAUSES: [LifeCause; LIFE_CAUSES] = [
    LifeCause {
        name: "serialization",
        about: "bits of its data were put on a link: at its host, packet after packet of its own, \
                and at each hop of the packets that made it late",
    },
    LifeCause {
        name: "propagation",
        about: "bits of its data were on a link, or within a switch (its latency)",
    },
    LifeCause {
        name: "fabric_queueing",
        about: "its data waited at a switch port that leads to another switch",
    },
    LifeCause {
        name: "last_hop_queueing",
        about: "its data waited at the switch port that leads to the receiver",
    },
    LifeCause {
        name: "paused",
        about: "PFC had paused its class while its data waited, at a switch port or at its host",
    },
    LifeCause {
        name: "trimmed",
        about: "a packet was on its way whose payload a switch cut off, or whose header it \
                bounced, until the header arrived",
    },
    LifeCause {
        name: "dropped",
        about: "from the start of a packet that was dropped until its bytes were sent again, \
                without a timeout",
    },
    LifeCause {
        name: "timeout",
        about: "the same where the sender's retransmission timer expired in between; also a wait \
                that ended with such a timeout although no data was lost",
    },
    LifeCause {
        name: "control",
        about: "a control packet was on its way: handshake, acknowledgement, pull, grant, with its \
                serialization, propagation and queueing",
    },
    LifeCause {
        name: "receiver_wait",
        about: "the receiver had not yet sent the control packet that let the sender go on: pull \
                pacing, grants to others, delayed acknowledgements",
    },
    LifeCause {
        name: "sender_wait",
        about: "the transport held it at the sender, without a time of its own: window, grant, \
                turn behind other messages",
    },
    LifeCause {
        name: "pacing",
        about: "the sender waited for a time that it had chosen itself: its rate, or the latency of \
                a NIC",
    },
    LifeCause {
        name: "port_busy",
        about: "its host's port sent packets of other messages, or answers to them",
    },
    LifeCause { name: "send_jitter", about: "its packet left late (`[host] send_jitter`)" },
    LifeCause {
        name: "delivery_wait",
        about: "all of it had arrived, and it was not yet delivered: what comes before it on its \
                connection was missing, or a NIC took its time",
    },
];

/// Their names.
pub(crate) const CAUSE_NAMES: [&str; LIFE_CAUSES] = {
    let mut names = [""; LIFE_CAUSES];
    let mut n = 0;
    while n < LIFE_CAUSES {
        names[n] = CAUSES[n].name;
        n += 1;
    }
    names
};

/// Where the time of a message went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LifeRow {
    /// The sending host.
    pub src: u32,
    /// The sending host's counter of messages.
    pub msg: u64,
    /// Completion time.
    pub fct: Dur,
    /// Whether it was submitted inside the measurement window.
    pub measured: bool,
    /// How long it spent on each of [`CAUSES`]: together its completion time.
    pub spent: [Dur; LIFE_CAUSES],
}

impl Row for LifeRow {
    fn columns() -> Columns<Self> {
        let columns = Columns::<Self>::new()
            .column("src", "sending host, from 0")
            .field(|r| &mut r.src)
            .column("msg", "the sending host's counter of messages, from 0")
            .field(|r| &mut r.msg)
            .column("fct_ps", "completion time, the sum of the columns after the next one")
            .field(|r| &mut r.fct)
            .column("measured", "whether it was submitted inside the measurement window")
            .field(|r| &mut r.measured);
        CAUSES.iter().enumerate().fold(columns, |columns, (n, cause)| {
            let name = format!("{}_ps", cause.name);
            columns.column(name, cause.about).field(move |r| &mut r.spent[n])
        })
    }
}

impl Pack for LifeRow {
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

/// The columns, put together once.
fn packed() -> &'static Columns<LifeRow> {
    static COLUMNS: LazyLock<Columns<LifeRow>> = LazyLock::new(LifeRow::columns);
    &COLUMNS
}

/// Writes `life.parquet`: one row per message that was delivered, by (src, msg).
///
/// # Errors
/// The file cannot be written, or the rows not be read.
pub fn write_lives(file: StagedFile, rows: &Sorted<LifeRow>) -> Result<(), FileError> {
    write_sorted(file, rows)
}

/// All rows of a `life.parquet`, in file order.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_lives(path: &Path) -> Result<Vec<LifeRow>, FileError> {
    read_table(path)
}

/// Calls `each` with the rows of a `life.parquet`, some at a time, in file order.
///
/// # Errors
/// As [`read_lives`], or what `each` says.
pub fn read_each_life(
    path: &Path,
    each: impl FnMut(&[LifeRow]) -> Result<(), FileError>,
) -> Result<(), FileError> {
    read_each(path, each)
}

/// Where the time of measured messages went, in microseconds, by cause. Without numbers unless
/// `measure.life` is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifeStats {
    /// Means over all of them: together the mean completion time.
    pub mean: ByCause,
    /// Means over the tail: those that took no less than the 99th percentile.
    pub tail: ByCause,
}

/// A number for each of [`CAUSES`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByCause(pub BTreeMap<String, Option<f64>>);

impl Default for ByCause {
    fn default() -> Self {
        Self(CAUSES.iter().map(|cause| (cause.name.to_owned(), None)).collect())
    }
}

impl LifeStats {
    /// The numbers of `rows`.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn of(rows: &Sorted<LifeRow>) -> Result<Self, FileError> {
        let (mut all, mut times) = (Sums::default(), Vec::new());
        for row in rows.iter()? {
            let row = row?;
            if row.measured {
                all.add(&row);
                times.push(row.fct);
            }
        }
        times.sort_unstable();
        let Some(from) = crate::nearest_rank(&times, 990) else { return Ok(Self::default()) };
        let mut tail = Sums::default();
        for row in rows.iter()? {
            let row = row?;
            if row.measured && row.fct >= from {
                tail.add(&row);
            }
        }
        Ok(Self { mean: all.means(), tail: tail.means() })
    }
}

/// Of some messages.
#[derive(Default)]
struct Sums {
    count: u64,
    /// Picoseconds.
    spent: [u128; LIFE_CAUSES],
}

impl Sums {
    fn add(&mut self, row: &LifeRow) {
        self.count += 1;
        for (sum, part) in self.spent.iter_mut().zip(row.spent) {
            *sum += u128::from(part.0);
        }
    }

    fn means(&self) -> ByCause {
        let mean = |sum: &u128| *sum as f64 / self.count as f64 / 1e6;
        let named = CAUSES.iter().zip(&self.spent);
        ByCause(named.map(|(cause, sum)| (cause.name.to_owned(), Some(mean(sum)))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutputDir, Sorter};

    fn row(msg: u64) -> LifeRow {
        let mut spent = [Dur::ZERO; LIFE_CAUSES];
        spent[0] = Dur::from_us(msg);
        spent[8] = Dur::from_us(1);
        LifeRow { src: 7, msg, fct: Dur::from_us(msg + 1), measured: msg > 0, spent }
    }

    #[test]
    fn rows_come_back_and_means_are_those_by_hand() {
        let mut sorter = Sorter::new(None);
        (0..=200).rev().for_each(|msg| sorter.push(row(msg)).unwrap());
        let rows = sorter.sort().unwrap();
        let stats = LifeStats::of(&rows).unwrap();
        assert_eq!(stats.mean.0["serialization"], Some(100.5));
        assert_eq!(stats.mean.0["control"], Some(1.0));
        // Of 200 measured ones those from rank 198 on.
        assert_eq!(stats.tail.0["serialization"], Some(199.0));

        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        write_lives(out.file("life.parquet").unwrap(), &rows).unwrap();
        out.commit().unwrap();
        let read = read_lives(&dir.path().join("life.parquet")).unwrap();
        assert!(read.iter().copied().eq((0..=200).map(row)));
    }

    /// The page that explains the causes has these words.
    #[test]
    fn the_page_has_every_cause() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.md");
        let page = std::fs::read_to_string(page).unwrap();
        for LifeCause { name, about } in CAUSES {
            let line = format!("| `{name}` | {about} |");
            assert!(page.contains(&line), "docs/explain.md has no line\n{line}");
        }
    }

    #[test]
    fn the_longest_row_can_be_packed() {
        let spent = [Dur(i64::MAX as u64); LIFE_CAUSES];
        let row = LifeRow { src: u32::MAX, msg: 1 << 60, fct: spent[0], measured: true, spent };
        let mut bytes = Vec::new();
        row.pack(&mut bytes).unwrap();
        assert!(bytes.len() < 256, "{}", bytes.len());
        assert_eq!(LifeRow::unpack(&mut &bytes[..]).unwrap(), row);
    }

    #[test]
    fn nothing_measured_has_every_key_and_no_number() {
        let stats = LifeStats::of(&Sorted::Held(vec![row(0)])).unwrap();
        assert!(stats.mean.0.len() == LIFE_CAUSES && stats.mean.0.values().all(Option::is_none));
    }
}
