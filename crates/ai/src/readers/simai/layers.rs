//! The layers of a workload: a line each.

use units::Dur;
use workload::text::{Line as TextLine, Parsed, Source, Word, one_of};

use crate::readers::program::{Collective, Group, Line};
use crate::readers::{BYTES_MAX, WORK_MAX_PS, Warnings};

/// The longest time of a layer, in nanoseconds.
const TIME_MAX: u64 = WORK_MAX_PS / 1_000;

/// The fields of a layer.
const FIELDS: [&str; 12] = [
    "name",
    "the dependency",
    "the forward time",
    "the forward collective",
    "the size of the forward collective",
    "the input gradient's time",
    "the input gradient's collective",
    "the size of the input gradient's collective",
    "the weight gradient's time",
    "the weight gradient's collective",
    "the size of the weight gradient's collective",
    "the update time",
];

const COLLECTIVES: [&str; 7] = [
    "NONE",
    "ALLREDUCE",
    "ALLTOALL",
    "ALLGATHER",
    "REDUCESCATTER",
    "BROADCAST",
    "ALLREDUCEALLTOALL",
];

const ALL_REDUCE_ALL_TO_ALL: &str = "ALLREDUCEALLTOALL, played as all-reduce, as SimAI does";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    Forward,
    InputGradient,
    WeightGradient,
}

/// A layer.
#[derive(Debug)]
pub(super) struct Layer<'a> {
    pub(super) line: Line<'a>,
    passes: [Work; 3],
    /// What each of its collectives takes afterwards.
    pub(super) update: Dur,
}

/// What a layer does in one pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) time: Dur,
    pub(super) collective: Option<Collective>,
    /// The group that the collective names, if it does.
    pub(super) group: Option<Group>,
    pub(super) bytes: u64,
}

impl Layer<'_> {
    pub(super) fn pass(&self, pass: Pass) -> Work {
        self.passes[pass as usize]
    }
}

/// The second line, which counts the layers, and those.
pub(super) fn layers<'a>(
    source: &Source<'a>,
    mut lines: impl Iterator<Item = TextLine<'a>>,
    warnings: &mut Warnings,
) -> Parsed<Vec<Layer<'a>>> {
    let Some(second) = lines.next() else {
        let hint = "the second line is the number of layers";
        return Err(source.missing(source.end(), "no layers", hint));
    };
    let word = second.first();
    let count = source.whole_u32(word, "the number of layers")?;
    nothing_after(source, &second, 1)?;
    if count == 0 {
        return Err(source.wrong(word, "no layers", "write at least one"));
    }
    let mut layers = Vec::new();
    for line in lines {
        if layers.len() == count as usize {
            let message = format!("a layer more than the {count} that the second line says");
            return Err(source.wrong(line.first(), message, "correct the second line"));
        }
        layers.push(layer(source, &line, warnings)?);
    }
    if layers.len() < count as usize {
        let message = format!("{} layers instead of {count}", layers.len());
        return Err(source.missing(source.end(), message, "is the file cut off?"));
    }
    Ok(layers)
}

fn nothing_after(source: &Source<'_>, line: &TextLine<'_>, fields: usize) -> Parsed<()> {
    match line.words().get(fields) {
        None => Ok(()),
        Some(word) => {
            let message = format!("a field more than the {fields} of such a line");
            Err(source.wrong(*word, message, "take it out"))
        }
    }
}

fn layer<'a>(
    source: &Source<'a>,
    line: &TextLine<'a>,
    warnings: &mut Warnings,
) -> Parsed<Layer<'a>> {
    nothing_after(source, line, FIELDS.len())?;
    let time = |field: usize| {
        let ns = source.whole(line.word(field), FIELDS[field], TIME_MAX)?;
        Parsed::Ok(Dur::from_ns(ns))
    };
    let mut work = |field: usize| {
        let (collective, group) = collective(source, line.word(field + 1), warnings)?;
        let bytes = source.whole(line.word(field + 2), FIELDS[field + 2], BYTES_MAX)?;
        Parsed::Ok(Work { time: time(field)?, collective, group, bytes })
    };
    if line.word(1).text.parse::<i32>().is_err() {
        let hint = "write -1: SimAI reads it, but does not use it";
        return Err(source.wrong(line.word(1), "the dependency is not a whole number", hint));
    }
    let passes = [work(2)?, work(5)?, work(8)?];
    let first = line.first();
    let line = Line { step: 0, label: first.text, at: first.at };
    Ok(Layer { line, passes, update: time(11)? })
}

fn collective(
    source: &Source<'_>,
    word: Word<'_>,
    warnings: &mut Warnings,
) -> Parsed<(Option<Collective>, Option<Group>)> {
    let ends = [("_DP_EP", Group::DpEp), ("_EP", Group::Ep)];
    let named = ends.iter().find_map(|(end, group)| Some((word.text.strip_suffix(end)?, *group)));
    let (name, group) = named.map_or((word.text, None), |(name, group)| (name, Some(group)));
    let collective = match name {
        "NONE" if group.is_none() => return Ok((None, None)),
        "ALLREDUCE" => Collective::AllReduce,
        "ALLTOALL" => Collective::AllToAll,
        "ALLGATHER" => Collective::AllGather,
        "REDUCESCATTER" => Collective::ReduceScatter,
        "BROADCAST" => Collective::Broadcast,
        "ALLREDUCEALLTOALL" => {
            warnings.count(ALL_REDUCE_ALL_TO_ALL);
            Collective::AllReduce
        }
        _ => {
            let hint = format!("{}; _EP or _DP_EP may follow", one_of(name, &COLLECTIVES));
            return Err(source.wrong(word, "unknown collective", hint));
        }
    };
    Ok((Some(collective), group))
}
