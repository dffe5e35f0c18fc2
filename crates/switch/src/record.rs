//! What came to a switch and what became of it, as a file: `trimline switch --record`.
//!
//! One line for each event, comma-separated, after a line that names the columns. Times are
//! picoseconds since the switch began; packets are numbered as they came. Of an arrival, `link` is
//! the one it came over and `out` the one it leaves by, `header` its transport header in
//! hexadecimal; of anything else, only time, event, packet, `out` and length are written.

use std::fmt;
use std::io::{self, Write};

use endpoint::{Flags, HDR_MAX, Packet, Span};
use units::{HostId, MsgId, Time};

const COLUMNS: &str =
    "at,event,packet,out,len,link,src,dst,proto,path,class,flags,msg,offset,span,header";

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// It came.
    Arrived,
    /// Its payload was cut off.
    Trimmed,
    /// It was marked.
    Marked,
    /// Its header turned back to its sender: it leaves by `out` from now on.
    Bounced,
    /// It was lost at a full queue.
    Dropped,
    /// Its last bit left.
    Sent,
}

impl Event {
    const ALL: [(Self, &str); 6] = [
        (Self::Arrived, "arrived"),
        (Self::Trimmed, "trimmed"),
        (Self::Marked, "marked"),
        (Self::Bounced, "bounced"),
        (Self::Dropped, "dropped"),
        (Self::Sent, "sent"),
    ];
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(event, _)| event == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// A line of a record.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// What.
    pub event: Event,
    /// The packet's number.
    pub packet: u64,
    /// The number of the link that it leaves by.
    pub out: u32,
    /// Bytes on the wire, after the event.
    pub len: u16,
    /// Of an arrival: the number of the link that it came over, and the packet.
    pub arrival: Option<(u32, Packet)>,
}

/// Where a record is written.
pub(crate) struct Recorder(Box<dyn Write + Send>);

impl Recorder {
    pub(crate) fn new(mut to: Box<dyn Write + Send>) -> io::Result<Self> {
        writeln!(to, "{COLUMNS}")?;
        Ok(Self(to))
    }

    pub(crate) fn note(&mut self, entry: &Entry) -> io::Result<()> {
        let Entry { at, event, packet, out, len, arrival } = entry;
        write!(self.0, "{},{event},{packet},{out},{len}", at.0)?;
        if let Some((link, pkt)) = arrival {
            let Packet { src, dst, proto, path, class, flags, span, .. } = pkt;
            let Span { msg, offset, len } = span;
            let (src, dst, flags, msg) = (src.0, dst.0, flags.0, msg.0);
            write!(
                self.0,
                ",{link},{src},{dst},{proto},{path},{class},{flags},{msg},{offset},{len},"
            )?;
            pkt.header().iter().try_for_each(|byte| write!(self.0, "{byte:02x}"))?;
        }
        writeln!(self.0)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {what}; a record is what `trimline switch --record` writes")]
pub struct RecordError {
    line: usize,
    what: String,
}

/// Read a record.
///
/// # Errors
/// The first line that is none of a record.
pub fn read(text: &str) -> Result<Vec<Entry>, RecordError> {
    let mut lines = (1..).zip(text.lines());
    let error = |line, what: &str| RecordError { line, what: what.to_owned() };
    if lines.next().is_none_or(|(_, columns)| columns != COLUMNS) {
        return Err(error(1, "other columns"));
    }
    lines.map(|(line, text)| entry(text).ok_or_else(|| error(line, "not an event"))).collect()
}

fn entry(line: &str) -> Option<Entry> {
    let mut fields = line.split(',');
    let at = Time(fields.next()?.parse().ok()?);
    let name = fields.next()?;
    let (event, _) = *Event::ALL.iter().find(|(_, known)| *known == name)?;
    let packet = fields.next()?.parse().ok()?;
    let out = fields.next()?.parse().ok()?;
    let len = fields.next()?.parse().ok()?;
    let arrival = match event {
        Event::Arrived => Some(arrival(&mut fields, len)?),
        _ => None,
    };
    fields.next().is_none().then_some(Entry { at, event, packet, out, len, arrival })
}

fn arrival<'a>(fields: &mut impl Iterator<Item = &'a str>, len: u16) -> Option<(u32, Packet)> {
    let link = fields.next()?.parse().ok()?;
    let mut pkt = Packet { wire_len: len, ..Packet::EMPTY };
    pkt.src = HostId(fields.next()?.parse().ok()?);
    pkt.dst = HostId(fields.next()?.parse().ok()?);
    pkt.proto = fields.next()?.parse().ok()?;
    pkt.path = fields.next()?.parse().ok()?;
    pkt.class = fields.next()?.parse().ok()?;
    pkt.flags = Flags(fields.next()?.parse().ok()?);
    let msg = MsgId(fields.next()?.parse().ok()?);
    let offset = fields.next()?.parse().ok()?;
    pkt.span = Span { msg, offset, len: fields.next()?.parse().ok()? };
    let header = hexadecimal(fields.next()?)?;
    (header.len() <= HDR_MAX).then(|| pkt.put_header(&header))?;
    Some((link, pkt))
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn reads_back_what_it_writes() {
        let text = Shared::default();
        let mut recorder = Recorder::new(Box::new(text.clone())).unwrap();
        let mut pkt = Packet {
            src: HostId(3),
            dst: HostId(0),
            proto: 199,
            path: 2,
            class: 1,
            flags: Flags::ECT,
            wire_len: 9_064,
            span: Span { msg: MsgId(8), offset: 9_000, len: 9_000 },
            ..Packet::EMPTY
        };
        pkt.put_header(&[0x01, 0xfe]);
        let arrived = Entry {
            at: Time(5),
            event: Event::Arrived,
            packet: 1,
            out: 8,
            len: 9_064,
            arrival: Some((3, pkt)),
        };
        let trimmed =
            Entry { at: Time(6), event: Event::Trimmed, len: 64, arrival: None, ..arrived };
        recorder.note(&arrived).unwrap();
        recorder.note(&trimmed).unwrap();
        let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let whole = "5,arrived,1,8,9064,3,3,0,199,2,1,4,8,9000,9000,01fe";
        assert_eq!(lines, [whole, "6,trimmed,1,8,64"]);
        let read_back = read(&text).unwrap();
        assert_eq!(format!("{read_back:?}"), format!("{:?}", [arrived, trimmed]));
        for wrong in ["x", "5,went,1,8,64", "5,sent,1,8", "5,sent,1,8,64,9", "5,arrived,1,8,64"] {
            let error = read(&format!("{COLUMNS}\n{wrong}\n")).unwrap_err();
            assert_eq!(error.line, 2, "{wrong}");
        }
        assert_eq!(read("at,event\n").unwrap_err().line, 1);
    }
}
