//! A table as it stands: sections, rows and their fields, none of them understood yet.

use workload::rows::{Row, Rows};
use workload::text::{Parsed, Place, Source, Word, one_of, to_u32};

const COLUMNS: [&str; 12] = [
    "comm_type",
    "comm_group",
    "comm_group_size",
    "msg_size",
    "stage",
    "dst",
    "src",
    "additional",
    "_elapsed_time",
    "algbw",
    "busbw",
    "count",
];
pub(super) const TYPE: usize = 0;
pub(super) const GROUP: usize = 1;
pub(super) const GROUP_SIZE: usize = 2;
pub(super) const SIZE: usize = 3;
pub(super) const STAGE: usize = 4;
pub(super) const ADDITIONAL: usize = 7;
pub(super) const TIME: usize = 8;
/// Columns that must be there.
const REQUIRED: [usize; 3] = [TYPE, GROUP, SIZE];

/// What an absent value is called.
const NONE: &str = "None";

/// The program of some ranks.
pub(super) struct Section<'a> {
    /// How many; they follow those of the section before.
    pub(super) ranks: u32,
    columns: Columns,
    rows: Vec<Row<'a>>,
}

/// Where each of [`COLUMNS`] is in the file.
type Columns = [Option<usize>; COLUMNS.len()];

impl<'a> Section<'a> {
    pub(super) fn fields(&self) -> impl Iterator<Item = Fields<'_>> {
        self.rows.iter().map(|row| Fields { row, columns: &self.columns })
    }
}

/// A row's fields, by the numbers of [`COLUMNS`].
#[derive(Clone, Copy)]
pub(super) struct Fields<'s> {
    pub(super) row: &'s Row<'s>,
    columns: &'s Columns,
}

impl<'s> Fields<'s> {
    fn index(&self, column: usize) -> usize {
        self.columns[column].unwrap_or(usize::MAX)
    }

    /// A value; empty for an absent one.
    pub(super) fn text(&self, column: usize) -> &'s str {
        match self.row.text(self.index(column)) {
            NONE => "",
            text => text,
        }
    }

    /// The same with its place.
    pub(super) fn get(&self, column: usize) -> Word<'s> {
        Word { text: self.text(column), ..self.row.word(self.index(column)) }
    }

    /// The name in a value such as `CommType.all_reduce`.
    pub(super) fn name(&self, column: usize) -> &'s str {
        let text = self.text(column);
        &text[class_len(text)..]
    }

    /// The same with its place.
    pub(super) fn name_word(&self, column: usize) -> Word<'s> {
        let Word { text, at } = self.get(column);
        let (class, name) = text.split_at(class_len(text));
        let column = at.column + to_u32(class.chars().count());
        Word { text: name, at: Place { column, ..at } }
    }
}

/// How long `CommType.` is in `CommType.all_reduce`.
fn class_len(text: &str) -> usize {
    let class = text.len() - text.trim_start_matches(char::is_alphanumeric).len();
    if text[class..].starts_with('.') { class + 1 } else { 0 }
}

/// The sections of a table. Each has its line of ranks, or the only one all.
pub(super) fn sections<'a>(source: &Source<'a>, room: u32) -> Parsed<Vec<Section<'a>>> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    // Of the section whose header comes next.
    let mut ranks = None;
    // How many ranks the sections have so far.
    let mut next = 0;
    let mut width = 0;
    for row in Rows::new(*source) {
        let row = row?;
        if row.text(0).starts_with('[') {
            let count = stage(source, &row, next, room)?;
            if let Some(first) = sections.first().filter(|first| first.ranks != count) {
                let message = format!("{count} ranks, but the first stage has {}", first.ranks);
                let hint = "all stages have as many ranks";
                return Err(source.missing(row.word(0).at, message, hint));
            }
            if ranks.replace(count).is_some() {
                let hint = "the header and the rows of a stage follow its ranks";
                return Err(source.missing(row.word(0).at, "the stage before has no rows", hint));
            }
            next += count;
        } else if sections.is_empty() || ranks.is_some() {
            // Without a line in brackets the job has all ranks.
            let ranks = ranks.take().unwrap_or(room);
            next = next.max(ranks);
            width = row.len();
            sections.push(Section { ranks, columns: header(source, &row)?, rows: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            check_width(source, &row, width)?;
            section.rows.push(row);
        }
    }
    if ranks.is_some() || sections.iter().all(|section| section.rows.is_empty()) {
        let hint = format!("a header comes first, {:?}, then a row each", COLUMNS.join(","));
        return Err(source.missing(source.end(), "no rows", hint));
    }
    Ok(sections)
}

fn check_width(source: &Source<'_>, row: &Row<'_>, width: usize) -> Parsed<()> {
    if row.len() == width {
        return Ok(());
    }
    let message = format!("the row has {} fields, the header {width}", row.len());
    let word = row.word(width.min(row.len()));
    Err(source.wrong(word, message, "is the file cut off?"))
}

/// How many ranks a line such as `[rank0 ~ rank127]` or `[ pp_stage0: [rank0, rank1] ]` names.
/// They must follow those of the line before.
fn stage(source: &Source<'_>, row: &Row<'_>, next: u32, room: u32) -> Parsed<u32> {
    let begin = row.word(0).at;
    let line = row.line();
    let (mut count, mut expected, mut at) = (0, next, 0);
    let mut is_range = false;
    for piece in line.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let name = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        is_range |= piece.ends_with('~');
        at += piece.len();
        let Some(number) = name.strip_prefix("rank") else { continue };
        let before = line.get(..at - piece.len() + 4).unwrap_or("").chars().count();
        let place = Place { column: begin.column + to_u32(before), ..begin };
        let word = Word { text: number, at: place };
        let rank = source.whole_u32(word, "the rank")?;
        if rank >= room {
            let message = format!("more ranks than the {room} that there is room for");
            let hint = "use a larger topology, more ranks a host, or a smaller trace";
            return Err(source.wrong(word, message, hint));
        }
        let in_order = if is_range { rank >= expected } else { rank == expected };
        if !in_order {
            let message = format!("rank {expected} should come here");
            let hint = "the ranks of all stages are in order from 0";
            return Err(source.wrong(word, message, hint));
        }
        expected = rank + 1;
        count = expected - next;
    }
    if count == 0 {
        let word = Word { text: line, at: begin };
        return Err(source.wrong(word, "no ranks", "write \"[rank0 ~ rank7]\""));
    }
    Ok(count)
}

fn header(source: &Source<'_>, row: &Row<'_>) -> Parsed<Columns> {
    let mut columns = Columns::default();
    for at in 0..row.len() {
        let word = row.word(at);
        let Some(index) = COLUMNS.iter().position(|name| *name == word.text) else {
            return Err(source.wrong(word, "unknown column", one_of(word.text, &COLUMNS)));
        };
        if columns[index].replace(at).is_some() {
            return Err(source.wrong(word, "this column is given twice", "keep one of them"));
        }
    }
    match REQUIRED.iter().find(|&&index| columns[index].is_none()) {
        None => Ok(columns),
        Some(&index) => {
            let at = row.word(row.len()).at;
            let message = format!("the column {} is missing", COLUMNS[index]);
            Err(source.missing(at, message, format!("AICB writes {:?}", COLUMNS.join(","))))
        }
    }
}
