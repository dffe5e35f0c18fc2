//! The reader of message lists: CSV with a header line, one message per row.
//!
//! ```text
//! start,src,dst,size,prio
//! 10us,0,5,135000B,0
//! ```
//! `start` and `size` carry their unit, as everywhere in a scenario (a bare 0 is a fine time); a
//! `size` may be `unbounded`: that message never ends.
//! `src` and `dst` are host numbers. `prio` (0 to 255, 0 the most urgent) may be absent. Columns
//! may come in any order; rows need not be sorted; lines that start with `#` are comments.

use endpoint::UNBOUNDED;
use units::{Bytes, HostId, Time, UnitError};

use crate::plan::{Flow, Plan};
use crate::rows::{Row, Rows};
use crate::text::{Parsed, Place, Source, TextError, Word, one_of};

/// A list of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// In the order of the file.
    pub list: Vec<Message>,
    file: String,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it is submitted.
    pub start: Time,
    /// Who sends.
    pub src: HostId,
    /// Who receives; never `src`.
    pub dst: HostId,
    /// How long it is: at least one byte, or [`UNBOUNDED`] of them.
    pub size: Bytes,
    /// See [`endpoint::Msg::prio`].
    pub prio: u8,
    src_at: Place,
    dst_at: Place,
}

impl Messages {
    /// Whether a fabric of `hosts` hosts has everybody.
    ///
    /// # Errors
    /// The first host that does not exist, with its place.
    pub fn check_hosts(&self, hosts: u32) -> Result<(), TextError> {
        let ends = self.list.iter().flat_map(|m| [(m.src, m.src_at), (m.dst, m.dst_at)]);
        for (host, at) in ends {
            if host.0 >= hosts {
                return Err(Source::new("", &self.file).wrong(
                    Word { text: &host.0.to_string(), at },
                    format!("no such host: the fabric has {hosts}"),
                    "hosts are numbered from 0",
                ));
            }
        }
        Ok(())
    }

    /// The messages as a plan, in the same order.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let flow = |m: &Message| Flow { prio: m.prio, ..Flow::at(m.start, m.src, m.dst, m.size.0) };
        Plan { flows: self.list.iter().map(flow).collect(), triggers: Vec::new() }
    }
}

const COLUMNS: [&str; 5] = ["start", "src", "dst", "size", "prio"];
/// How many of the columns, from the front, must be there.
const REQUIRED: usize = 4;

/// After so many rows it is said how far reading has come.
const ROWS_BETWEEN: usize = 1 << 14;

/// Read a list of messages. `name` is the file's name, for errors. `on_progress` is told now and
/// then what share of the file has been read.
///
/// # Errors
/// A missing, unknown or repeated column, a row that is too short or too long, a quantity without
/// its unit, a message without bytes or from a host to itself, a file without messages.
pub fn read_messages(
    text: &str,
    name: &str,
    on_progress: &dyn Fn(f64),
) -> Result<Messages, TextError> {
    let source = Source::new(text, name);
    let mut rows = Rows::new(source);
    let Some(header) = rows.next().transpose()? else {
        let hint = format!("start with the line \"{}\"", COLUMNS.join(","));
        return Err(source.missing(source.end(), "no header", hint));
    };
    let columns = columns(&source, &header)?;
    let mut list = Vec::new();
    for row in rows {
        let row = row?;
        list.push(message(&source, &row, &columns, header.len())?);
        if list.len().is_multiple_of(ROWS_BETWEEN) {
            on_progress(row.offset() as f64 / source.text.len() as f64);
        }
    }
    if list.is_empty() {
        let hint = "write a row such as \"10us,0,5,135000B\", or is the file cut off?";
        return Err(source.missing(source.end(), "no messages", hint));
    }
    Ok(Messages { list, file: name.to_owned() })
}

/// Where each of [`COLUMNS`] is in the file.
type Columns = [Option<usize>; COLUMNS.len()];

fn columns(source: &Source<'_>, header: &Row<'_>) -> Parsed<Columns> {
    let mut columns = Columns::default();
    for at in 0..header.len() {
        let word = header.word(at);
        let Some(index) = COLUMNS.iter().position(|name| *name == word.text) else {
            return Err(source.wrong(word, "unknown column", one_of(word.text, &COLUMNS)));
        };
        if columns[index].replace(at).is_some() {
            return Err(source.wrong(word, "this column is given twice", "keep one of them"));
        }
    }
    let missing = COLUMNS.iter().zip(columns).take(REQUIRED).find(|(_, at)| at.is_none());
    match missing {
        None => Ok(columns),
        Some((name, _)) => {
            let hint = format!("start with the line \"{}\"", COLUMNS.join(","));
            let word = header.word(header.len());
            Err(source.missing(word.at, format!("the column {name} is missing"), hint))
        }
    }
}

fn message(source: &Source<'_>, row: &Row<'_>, columns: &Columns, width: usize) -> Parsed<Message> {
    if row.len() != width {
        let message = format!("the row has {} fields, the header {width}", row.len());
        let word = row.word(width.min(row.len()));
        return Err(source.wrong(word, message, "give every column a value"));
    }
    let [start, src, dst, size, prio] = columns.map(|at| row.word(at.unwrap_or(width)));
    let host = |word, what| source.whole_u32(word, what).map(HostId);
    let message = Message {
        start: quantity(source, start)?,
        src: host(src, "the source")?,
        dst: host(dst, "the destination")?,
        size: match size.text {
            "unbounded" => Bytes(UNBOUNDED),
            _ => bounded(source, size)?,
        },
        prio: if columns[4].is_some() { source.whole(prio, "prio", 255)? as u8 } else { 0 },
        src_at: src.at,
        dst_at: dst.at,
    };
    if message.src == message.dst {
        let hint = "choose another destination";
        return Err(source.wrong(dst, "the message goes from a host to itself", hint));
    }
    Ok(message)
}

/// The size of a message that ends.
fn bounded(source: &Source<'_>, size: Word<'_>) -> Parsed<Bytes> {
    match quantity(source, size)? {
        Bytes(0) => Err(source.wrong(size, "the message has no bytes", "write at least \"1B\"")),
        Bytes(UNBOUNDED) => Err(source.wrong(
            size,
            "the size is too large",
            "write less than 18446744073709551615B, or \"unbounded\"",
        )),
        bytes => Ok(bytes),
    }
}

fn quantity<T>(source: &Source<'_>, word: Word<'_>) -> Parsed<T>
where
    T: std::str::FromStr<Err = UnitError>,
{
    word.text.parse().map_err(|error: UnitError| {
        source.wrong(word, error.to_string(), "times look like \"10us\", sizes like \"135000B\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rows_in_any_order_of_columns() {
        let text = "\u{feff}# a trace\r\nsrc,dst,size,start,prio\r\n\r\n0, 1 ,1.5KB,10us,3\r\n2,0,1B,0,0\r\n";
        let messages = read_messages(text, "x").expect("valid");
        assert_eq!(messages.list.len(), 2);
        let first = messages.list[0];
        assert_eq!((first.src, first.dst), (HostId(0), HostId(1)));
        assert_eq!((first.size, first.start, first.prio), (Bytes(1500), Time(10_000_000), 3));
        assert_eq!(messages.check_hosts(3), Ok(()));
        let error = messages.check_hosts(2).expect_err("host 2");
        assert_eq!((error.line, error.column, error.value.as_str()), (5, 1, "2"));
        let plan = messages.plan();
        assert_eq!((plan.flows[0].prio, plan.flows[1].len), (3, 1));
    }

    #[test]
    fn a_message_may_be_without_an_end() {
        let messages = read_messages("start,src,dst,size\n0,1,2,unbounded\n", "x").expect("valid");
        assert_eq!(messages.plan().flows[0].len, UNBOUNDED);
    }

    fn read_messages(text: &str, name: &str) -> Result<Messages, TextError> {
        super::read_messages(text, name, &|_| ())
    }

    fn long(rows: usize) -> String {
        "# head\nstart,src,dst,size\n".to_owned() + &"10us,0,1,\"5KB\"\n".repeat(rows)
    }

    /// Reading took a time in proportion to the square of the file: ten times the rows, a hundred
    /// times the time. The least of a few is compared, as other programs only ever take time.
    #[test]
    fn a_long_file_is_read_in_proportion_to_its_length() {
        let least = |rows: usize| {
            let text = long(rows);
            let time = |_| {
                let started = std::time::Instant::now();
                assert_eq!(read_messages(&text, "x").expect("valid").list.len(), rows);
                started.elapsed()
            };
            (0..5).map(time).min().expect("five")
        };
        let (short, long) = (least(20_000), least(200_000));
        assert!(long < 30 * short, "{short:?} and {long:?}");
    }

    #[test]
    fn places_far_into_a_long_file_are_right_and_progress_is_told() {
        let (rows, text) = (60_000, long(60_000));
        let told = std::cell::RefCell::new(Vec::new());
        let read = super::read_messages(&text, "x", &|share| told.borrow_mut().push(share));
        let told = told.into_inner();
        assert_eq!(told.len(), rows / ROWS_BETWEEN);
        let shares = (1_u64..).map(|n| n as f64 * ROWS_BETWEEN as f64 / rows as f64);
        assert!(
            told.iter().zip(shares).all(|(told, share)| (told - share).abs() < 1e-3),
            "{told:?}"
        );
        let messages = read.expect("valid");
        let last = messages.check_hosts(1).expect_err("host 1");
        assert_eq!((last.line, last.column), (3, 8));
        let wrong = read_messages(&(text + "10us,0,1,\n"), "x").expect_err("no size");
        assert_eq!((wrong.line, wrong.column), (60_003, 10));
    }

    #[test]
    fn errors_name_the_place_and_the_value() {
        let cases = [
            ("", 1, 1, "", "no header"),
            ("# nothing\n", 1, 10, "", "no header"),
            ("start,src,dst,size\n", 1, 19, "", "no messages"),
            ("start,src,dst,bytes\n", 1, 15, "bytes", "unknown column"),
            ("start,src,dst,src\n", 1, 15, "src", "this column is given twice"),
            ("start,src,dst\n", 1, 14, "", "the column size is missing"),
            ("start,src,dst,size\n0,1,2\n", 2, 6, "", "the row has 3 fields, the header 4"),
            ("start,src,dst,size\n0,1,2,3B,4\n", 2, 10, "4", "the row has 5 fields, the header 4"),
            (
                "start,src,dst,size\n\n# c\n5,1,2,3B\n",
                4,
                1,
                "5",
                "\"5\" has no unit: write it like \"20us\"",
            ),
            (
                "start,src,dst,size\n0,1,2,300\n",
                2,
                7,
                "300",
                "\"300\" has no unit: write it like \"9000B\"",
            ),
            ("start,src,dst,size\n0,1,2,0B\n", 2, 7, "0B", "the message has no bytes"),
            (
                "start,src,dst,size\n0,\"1\", 1 ,1B\n",
                2,
                8,
                "1",
                "the message goes from a host to itself",
            ),
            ("start,src,dst,size\n0,-1,1,1B\n", 2, 3, "-1", "the source is negative"),
            ("start,src,dst,size\n0,0,,1B\n", 2, 5, "", "the destination is missing"),
            ("start,src,dst,size,prio\n0,0,1,1B,256\n", 2, 10, "256", "prio is too large"),
        ];
        for (text, line, column, value, message) in cases {
            let error = read_messages(text, "x").expect_err(text);
            assert_eq!(error.says(), (line, column, value, message), "{text:?}");
        }
    }
}
