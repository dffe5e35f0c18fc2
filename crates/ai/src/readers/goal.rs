//! The reader of GOAL schedules (docs/specs/ai-traces.md#1).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! a: calc 500
//! b: send 1024b to 1 tag 7
//! b requires a
//! }
//! rank 1 {
//! recv 1024b from 0 tag 7
//! }
//! ```
//! What LogGOPSim does with such a file, and what is different here:
//!
//! - `calc` is in nanoseconds. LogGOPSim counts in the unit of its parameters, whose preset values
//!   are nanoseconds.
//! - `cpu` says which of a rank's streams a `calc` runs on; one does one `calc` at a time. It
//!   starts when that is free, which is what `irequires` waits for. A send or receive takes no time
//!   of a CPU, and `calc 0` does not wait for one. `nic` counts for nothing.
//! - A send ends when it is acknowledged.
//! - A receive from any source or with any tag gets its message when the file is read, not when one
//!   arrives: see [`any`].
//! - Labels may be used before they are defined. Blocks of ranks may come in any order.
//! - Errors here, silence there: a label defined twice, a rank without a block, a send without its
//!   receive, another size at the other end.

mod any;
mod tokens;

use std::collections::BTreeMap;

use units::Dur;
use workload::TextError;
use workload::text::{Parsed, Source, Word, one_of, to_u32};

use self::tokens::{Token, Tokens};
use super::{BYTES_MAX, Trace, WORK_MAX_PS, Warnings, located};
use crate::graph::{Builder, Fault, Kind, Rank, Task, TaskGraph, TaskId};

/// The fewest bytes that a rank takes in a file: `rank 0{}`.
const RANK_BYTES_MIN: usize = 8;

/// The longest `calc`, in nanoseconds.
const CALC_MAX: u64 = WORK_MAX_PS / 1_000;

const OPERATIONS: [&str; 3] = ["send", "recv", "calc"];

const NIC_IGNORED: &str = "operations that name a NIC; the topology says which one is used";

/// Read a schedule for at most `room` ranks. `name` is the file's name, for errors.
///
/// # Errors
/// What is not GOAL, more ranks than `room`, and all that the module's text calls an error.
pub fn read_goal(text: &str, name: &str, room: u32) -> Result<Trace, TextError> {
    let mut reader =
        Reader { tokens: Tokens::new(Source::new(text, name)), warnings: Warnings::default() };
    let ranks = reader.num_ranks(room)?;
    let mut blocks = reader.blocks(ranks)?;
    let source = &reader.tokens.source;
    any::resolve(&mut blocks, &mut reader.warnings).map_err(|at| {
        let recv = Word { text: "recv", at: source.place(at) };
        let hint = "every receive needs its own send; those that name source and tag come first";
        source.wrong(recv, "no send is left for this receive", hint)
    })?;
    let graph = build(&blocks).map_err(|fault| {
        located(source, &fault, |task| {
            let block = blocks.get(task.rank.0 as usize)?;
            block.ops.get(task.index as usize).map(|op| source.place(op.at))
        })
    })?;
    Ok(Trace { graph, warnings: reader.warnings.0, algorithm: None })
}

fn build(blocks: &[Block]) -> Result<TaskGraph, Fault> {
    let mut builder = Builder::new(to_u32(blocks.len()))?;
    for (rank, block) in (0..).map(Rank).zip(blocks) {
        for op in &block.ops {
            builder.add(rank, Task::new(op.kind()))?;
        }
        for wait in &block.waits {
            let [task, pred] = [wait.task, wait.pred].map(|index| TaskId { rank, index });
            if wait.until_start {
                builder.after_start(task, pred)?;
            } else {
                builder.after(task, pred)?;
            }
        }
    }
    builder.finish()
}

/// A rank's part of the file.
#[derive(Debug, Default)]
struct Block {
    ops: Vec<Op>,
    waits: Vec<Wait>,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
struct Op {
    what: What,
    /// Bytes, or nanoseconds of a calculation.
    size: u64,
    /// Of a message: the other rank and the tag; `None` for any. Only receives have `None`.
    peer: Option<u32>,
    tag: Option<u32>,
    cpu: u8,
    /// The byte at which it begins.
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Send,
    Recv,
    Calc,
}

/// A dependency between two operations of a rank.
#[derive(Clone, Copy, Debug)]
struct Wait {
    task: u32,
    pred: u32,
    until_start: bool,
}

impl Op {
    fn kind(&self) -> Kind {
        // `any::resolve` has put numbers where there were none.
        let (peer, tag) = (Rank(self.peer.unwrap_or(u32::MAX)), self.tag.unwrap_or(u32::MAX));
        match self.what {
            What::Send => Kind::Send { to: peer, bytes: self.size, tag },
            What::Recv => Kind::Recv { from: peer, bytes: self.size, tag },
            What::Calc => Kind::Compute { dur: Dur::from_ns(self.size), stream: self.cpu },
        }
    }
}

struct Reader<'a> {
    tokens: Tokens<'a>,
    warnings: Warnings,
}

/// A dependency as it is written: its labels and whether it is one on the start.
struct Written<'a> {
    task: Token<'a>,
    pred: Token<'a>,
    until_start: bool,
}

impl<'a> Reader<'a> {
    /// The first line. What it says is bounded before room is made for so many.
    fn num_ranks(&mut self, room: u32) -> Parsed<u32> {
        let tokens = &mut self.tokens;
        let first = tokens.next_word()?;
        if first.text != "num_ranks" {
            let hint = "a GOAL file begins with its number of ranks: \"num_ranks 8\"";
            return Err(tokens.wrong(first, "num_ranks is missing here", hint));
        }
        let token = tokens.next()?;
        let ranks = tokens.number_u32(token, "num_ranks")?;
        let bytes = tokens.source.text().len();
        if ranks == 0 {
            return Err(tokens.wrong(token, "a job without ranks", "write at least 1"));
        }
        if ranks as usize > bytes / RANK_BYTES_MIN {
            let message = format!("a file of {bytes} bytes cannot hold so many ranks");
            return Err(tokens.wrong(token, message, "is the file cut off?"));
        }
        if ranks > room {
            let message = format!("more ranks than the {room} that there is room for");
            let hint = "use a larger topology, more ranks a host, or a smaller trace";
            return Err(tokens.wrong(token, message, hint));
        }
        Ok(ranks)
    }

    fn blocks(&mut self, ranks: u32) -> Parsed<Vec<Block>> {
        let mut blocks: Vec<Option<Block>> = Vec::new();
        blocks.resize_with(ranks as usize, || None);
        loop {
            let token = self.tokens.next_word()?;
            match token.text {
                "" => break,
                "rank" => {}
                _ => {
                    let hint = "a block begins with \"rank 0 {\"";
                    return Err(self.tokens.wrong(token, "\"rank\" is missing here", hint));
                }
            }
            let token = self.tokens.next()?;
            let rank = self.rank(token, ranks)?;
            if blocks[rank as usize].is_some() {
                let hint = "keep one block for each rank";
                return Err(self.tokens.wrong(token, "this rank has a block already", hint));
            }
            self.tokens.expect("{", "a block begins with \"rank 0 {\"")?;
            blocks[rank as usize] = Some(self.block(rank, ranks)?);
        }
        let source = &self.tokens.source;
        let block = |(rank, block): (usize, Option<Block>)| {
            block.ok_or_else(|| {
                let hint = format!("is the file cut off? An idle rank is \"rank {rank} {{ }}\"");
                source.missing(source.end(), format!("rank {rank} has no block"), hint)
            })
        };
        blocks.into_iter().enumerate().map(block).collect()
    }

    fn rank(&self, token: Token<'a>, ranks: u32) -> Parsed<u32> {
        let rank = self.tokens.number_u32(token, "the rank")?;
        if rank < ranks {
            return Ok(rank);
        }
        let message = format!("no such rank: num_ranks is {ranks}");
        Err(self.tokens.wrong(token, message, "ranks are numbered from 0"))
    }

    /// The lines of a block, up to its closing brace.
    fn block(&mut self, rank: u32, ranks: u32) -> Parsed<Block> {
        let mut block = Block::default();
        let mut labels = BTreeMap::new();
        let mut written = Vec::new();
        loop {
            let mut token = self.tokens.next_word()?;
            match token.text {
                "}" => break,
                "" => {
                    let message = format!("the block of rank {rank} has no end");
                    return Err(self.tokens.wrong(token, message, "is the file cut off?"));
                }
                _ => {}
            }
            if !OPERATIONS.contains(&token.text) {
                let label = self.label(token)?;
                if let Some(dependency) = self.dependency(label)? {
                    written.push(dependency);
                    continue;
                }
                if labels.insert(label.text, to_u32(block.ops.len())).is_some() {
                    let hint = "a label names one operation of its rank";
                    return Err(self.tokens.wrong(label, "this label is defined twice", hint));
                }
                token = self.tokens.next()?;
            }
            block.ops.push(self.operation(token, rank, ranks)?);
            self.end_of_line()?;
        }
        block.waits = self.resolve(&written, &labels)?;
        Ok(block)
    }

    fn label(&self, token: Token<'a>) -> Parsed<Token<'a>> {
        let is_label = token.text.starts_with(|c: char| c.is_ascii_alphabetic())
            && token.text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if is_label {
            return Ok(token);
        }
        let hint = "a line is an operation (send, recv, calc), with a label in front, or a \
                    dependency of two labels; a label is a letter, then letters, digits or _";
        Err(self.tokens.wrong(token, "neither an operation nor a label", hint))
    }

    /// The rest of `A requires B`, if it is that and not `A: ...`.
    fn dependency(&mut self, task: Token<'a>) -> Parsed<Option<Written<'a>>> {
        let token = self.tokens.next()?;
        let until_start = match token.text {
            ":" => return Ok(None),
            "requires" => false,
            "irequires" => true,
            _ => {
                let hint = one_of(task.text, &OPERATIONS);
                let hint = format!("\":\", requires or irequires follows a label; {hint}");
                return Err(self.tokens.wrong(task, "a label without its operation", hint));
            }
        };
        let pred = self.tokens.next()?;
        let pred = self.label(pred)?;
        self.end_of_line()?;
        Ok(Some(Written { task, pred, until_start }))
    }

    fn end_of_line(&mut self) -> Parsed<()> {
        let token = self.tokens.peek()?;
        if token.ends_line() || token.text == "}" {
            return Ok(());
        }
        let hint = "one operation a line; tag, cpu and nic come in this order, each once";
        Err(self.tokens.wrong(token, "this does not belong here", hint))
    }

    fn operation(&mut self, first: Token<'a>, rank: u32, ranks: u32) -> Parsed<Op> {
        let what = match first.text {
            "send" => What::Send,
            "recv" => What::Recv,
            "calc" => What::Calc,
            _ => {
                let hint = one_of(first.text, &OPERATIONS);
                return Err(self.tokens.wrong(first, "no operation", hint));
            }
        };
        let mut op = Op { what, size: 0, peer: None, tag: Some(0), cpu: 0, at: first.at };
        if what == What::Calc {
            let token = self.tokens.next()?;
            op.size = self.tokens.number(token, "the time of calc", CALC_MAX)?;
        } else {
            op.size = self.size()?;
            op.peer = self.peer(what, rank, ranks)?;
            op.tag = self.tag(what)?;
        }
        op.cpu = self.field("cpu")?;
        if what != What::Calc && self.field("nic")? > 0 {
            self.warnings.count(NIC_IGNORED);
        }
        Ok(op)
    }

    /// `1024b`, also with a blank between.
    fn size(&mut self) -> Parsed<u64> {
        let token = self.tokens.next()?;
        let digits = token.text.strip_suffix('b');
        let number = Token { text: digits.unwrap_or(token.text), at: token.at };
        let size = self.tokens.number(number, "the size", BYTES_MAX)?;
        if digits.is_none() {
            self.tokens.expect("b", "write sizes in bytes: \"1024b\"")?;
        }
        Ok(size)
    }

    fn peer(&mut self, what: What, rank: u32, ranks: u32) -> Parsed<Option<u32>> {
        match what {
            What::Send => self.tokens.expect("to", "write \"send 1024b to 1\"")?,
            _ => self.tokens.expect("from", "write \"recv 1024b from 1\"")?,
        }
        let token = self.tokens.next()?;
        if token.text == "-1" && what == What::Recv {
            return Ok(None);
        }
        let peer = self.rank(token, ranks)?;
        if peer == rank {
            let message = format!("rank {rank} waits for a message of its own");
            return Err(self.tokens.wrong(token, message, "name another rank"));
        }
        Ok(Some(peer))
    }

    fn tag(&mut self, what: What) -> Parsed<Option<u32>> {
        if self.tokens.peek()?.text != "tag" {
            return Ok(Some(0));
        }
        self.tokens.next()?;
        let token = self.tokens.next()?;
        if token.text == "-1" && what == What::Recv {
            return Ok(None);
        }
        self.tokens.number_u32(token, "the tag").map(Some)
    }

    /// The number after `name`, if that comes next, or 0.
    fn field(&mut self, name: &str) -> Parsed<u8> {
        if self.tokens.peek()?.text != name {
            return Ok(0);
        }
        self.tokens.next()?;
        let token = self.tokens.next()?;
        self.tokens.number(token, name, u64::from(u8::MAX)).map(|n| n as u8)
    }

    /// The dependencies with numbers for labels.
    fn resolve(
        &self,
        written: &[Written<'a>],
        labels: &BTreeMap<&'a str, u32>,
    ) -> Parsed<Vec<Wait>> {
        let index = |token: Token<'a>| {
            labels.get(token.text).copied().ok_or_else(|| {
                let hint = match nearest(token.text, labels) {
                    Some(label) => format!("did you mean {label}?"),
                    None => "define it in the same block: \"a: calc 5\"".to_owned(),
                };
                self.tokens.wrong(token, "this label is not defined in its block", hint)
            })
        };
        let wait = |written: &Written<'a>| {
            let (task, pred) = (index(written.task)?, index(written.pred)?);
            if task == pred {
                let hint = "take the dependency out";
                return Err(self.tokens.wrong(written.pred, "it waits for itself", hint));
            }
            Ok(Wait { task, pred, until_start: written.until_start })
        };
        written.iter().map(wait).collect()
    }
}

/// The label next to `text` in the alphabet that shares its first letter.
fn nearest<'a>(text: &'a str, labels: &BTreeMap<&'a str, u32>) -> Option<&'a str> {
    let near = labels.range(..text).next_back().or_else(|| labels.range(text..).next());
    near.map(|(label, _)| *label).filter(|label| label.get(..1) == text.get(..1))
}

#[cfg(test)]
mod tests;
