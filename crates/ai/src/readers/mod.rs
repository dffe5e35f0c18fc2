//! Readers of training traces: GOAL ([`read_goal`]), SimAI ([`read_simai`]), AICB ([`read_aicb`])
//! and Chakra ([`read_chakra`]). They take text or bytes and give a [`TaskGraph`], or say where the
//! file is wrong. docs/specs/ai-traces.md describes the formats.

mod aicb;
mod chakra;
mod goal;
mod program;
mod simai;

use std::fmt;

use workload::TextError;
use workload::text::{Parsed, Place, Source, Word, to_u32};

pub use aicb::read_aicb;
pub use chakra::{RecordError, read_chakra};
pub use goal::read_goal;
pub use simai::read_simai;

use crate::collective::Algorithm;
use crate::graph::{Fault, TaskGraph, TaskId};

/// The longest message and the largest vector, bytes: as in scenarios.
const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// The longest piece of work, in picoseconds: 11 days.
const WORK_MAX_PS: u64 = 1_000_000_000_000_000_000;

/// A file: its name, for errors, and what it holds.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it holds.
    pub bytes: &'a [u8],
}

/// The formats that there are readers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A GOAL schedule as text.
    Goal,
    /// A SimAI workload.
    SimAi,
    /// An AICB table.
    Aicb,
    /// Chakra execution traces, a file for each rank.
    Chakra,
}

impl Format {
    /// All of them, with their names and the usual ends of their files' names.
    pub const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Goal, "goal", ".goal"),
        (Self::SimAi, "simai", ".txt"),
        (Self::Aicb, "aicb", ".csv"),
        (Self::Chakra, "chakra", ".et"),
    ];

    /// The format of files with such a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(.., end)| name.ends_with(end)).map(|(format, ..)| *format)
    }
}

/// What a trace does not say itself.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// How many ranks there is room for. A trace that does not say how many it has gets all.
    pub ranks: u32,
    /// Groups of ranks for Chakra traces, as astra-sim's JSON.
    pub groups: Option<File<'a>>,
    /// How Chakra traces' collectives are carried out: astra-sim's JSON of a system.
    pub system: Option<File<'a>>,
    /// The network that a Chakra trace is for: astra-sim's JSON for its ns-3 front end.
    pub network: Option<File<'a>>,
}

/// A trace that was read.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its tasks.
    pub graph: TaskGraph,
    /// What of it counts for nothing or for something else, and how often.
    pub warnings: Vec<Warning>,
    /// The algorithm of collectives, where files say it.
    pub algorithm: Option<Algorithm>,
}

/// Something in a trace that is not played as it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// How often.
    pub count: u64,
    /// What, and what becomes of it.
    pub what: &'static str,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.count)
    }
}

/// Why a trace cannot be read, and where it is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A file of records.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Read a trace: one file, or one for each rank in any order.
///
/// # Errors
/// As the reader of the format.
pub fn read(files: &[File<'_>], format: Format, options: &Options<'_>) -> Result<Trace, ReadError> {
    let read_text: fn(&str, &str, u32) -> Result<Trace, TextError> = match format {
        Format::Goal => read_goal,
        Format::SimAi => read_simai,
        Format::Aicb => read_aicb,
        Format::Chakra => return read_chakra(files, options),
    };
    let [file] = files else {
        let name = files.first().map_or("", |file| file.name);
        let message = format!("{} files instead of one", files.len());
        let hint = "only Chakra traces have a file for each rank";
        return Err(Source::new("", name).missing(FIRST, message, hint).into());
    };
    Ok(read_text(text_of(file)?, file.name, options.ranks)?)
}

/// Where a file begins.
const FIRST: Place = Place { line: 1, column: 1 };

/// What `file` holds, as text.
fn text_of<'a>(file: &File<'a>) -> Parsed<&'a str> {
    std::str::from_utf8(file.bytes).map_err(|error| {
        let valid = file.bytes.get(..error.valid_up_to()).unwrap_or(&[]);
        let valid = std::str::from_utf8(valid).unwrap_or("");
        let source = Source::new(valid, file.name);
        let message = "the file is not text in UTF-8";
        source.missing(source.end(), message, "does its format fit its name? Is it compressed?")
    })
}

/// A JSON file that is not what it should be.
fn json_error(
    source: &Source<'_>,
    error: &serde_json::Error,
    message: &str,
    hint: &str,
) -> TextError {
    let at = Place { line: to_u32(error.line()).max(1), column: to_u32(error.column()).max(1) };
    let error = error.to_string();
    let what = error.split(" at line ").next().unwrap_or("");
    source.missing(at, format!("{message}: {what}"), hint)
}

/// Counts what is not played as it stands.
#[derive(Debug, Default)]
struct Warnings(Vec<Warning>);

impl Warnings {
    fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    fn add(&mut self, what: &'static str, count: u64) {
        match self.0.iter_mut().find(|warning| warning.what == what) {
            Some(warning) => warning.count = warning.count.saturating_add(count),
            None => self.0.push(Warning { count, what }),
        }
    }
}

/// `fault` where it stands in a text: `at` gives the place at which a task begins.
fn located(
    source: &Source<'_>,
    fault: &Fault,
    at: impl FnOnce(TaskId) -> Option<Place>,
) -> TextError {
    let Some(at) = fault.task().and_then(at) else {
        return source.missing(source.end(), fault.to_string(), hint(fault));
    };
    let line = source.text().lines().nth(at.line as usize - 1).unwrap_or("");
    let column = line.char_indices().nth(at.column as usize - 1);
    let rest = column.and_then(|(byte, _)| line.get(byte..)).unwrap_or("").trim_end();
    source.wrong(Word { text: rest, at }, fault.to_string(), hint(fault))
}

/// What to do about `fault`.
fn hint(fault: &Fault) -> &'static str {
    match fault {
        Fault::Cycle(_) => "take one of these dependencies out",
        Fault::Unmatched { .. } => "a send and its receive name each other, and the same tag",
        Fault::OtherSize { .. } => "give both the same size",
        Fault::Missing { .. } | Fault::Differs { .. } => {
            "all ranks of a group run the same collectives in the same order"
        }
        Fault::ToItself(_) => "name another rank",
        Fault::NoSuchRank { .. } | Fault::NotInGroup { .. } => "name a rank of the job",
        Fault::EmptyGroup | Fault::TwiceInGroup(_) => "name each rank of a group once",
        Fault::Ranks(_) | Fault::Tasks(_) | Fault::TooMany(_) => "use a part of the trace",
        Fault::NoSuchTask(_) | Fault::AcrossRanks { .. } => "wait for a task of the same rank",
    }
}

/// What tests of readers compare: line, column, value and message.
#[cfg(test)]
fn says(error: &TextError) -> (u32, u32, &str, &str) {
    assert!(!error.hint.is_empty() && error.file == "x", "{error}");
    (error.line, error.column, &error.value, &error.message)
}
