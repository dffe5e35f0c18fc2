//! The reader of AICB's tables (docs/specs/ai-traces.md#3).
//!
//! ```text
//! [rank0 ~ rank3]
//! comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,...
//! CommType.all_reduce,CommGroup.tp_group,2,4096,forward_step,None,None,,None,...
//! ```
//! A file is one program for all ranks, or one for each stage of a pipeline: a line in brackets
//! with the stage's ranks, the header again, its rows. What AICB does with them
//! (`workload_applyer.py`), and what is different here:
//!
//! - Rows run one after another. `epoch_end` ends a step. An `isend` and an `irecv` of the same
//!   neighbour that follow one another run together, as Megatron's `send_forward_recv_backward`
//!   does. One after another, as AICB runs them, they wait for each other in its own example.
//! - Ranks are numbered by Megatron's rule: tensor, expert, data parallel, then stages. The sizes
//!   of the groups are those of the rows; a table without them has one group of all ranks.
//! - `isend` and `irecv` go to the next or previous stage, as `additional` says; at the ends of the
//!   pipeline they do nothing.
//! - A broadcast comes from the first rank of its group.
//! - `computation` takes its `_elapsed_time`: nanoseconds in a workload, which gives no times of
//!   communication; milliseconds in the log of a run, which does.
//! - `reduce` is not played, nor are collectives of the embedding group if its two stages do not
//!   have as many: AICB writes them for the last stage only.

mod table;

use units::Dur;
use workload::TextError;
use workload::text::{Parsed, Source, Word, number, one_of, to_u32};

use self::table::{
    ADDITIONAL, Fields, GROUP, GROUP_SIZE, SIZE, STAGE, Section, TIME, TYPE, sections,
};
use super::program::{Collective, Group, Groups, Layout, Line, Program, What};
use super::{BYTES_MAX, Trace, WORK_MAX_PS, Warnings, located};
use crate::graph::{Builder, Fault, Rank, TaskGraph};

const GROUPS: [(&str, Group); 9] = [
    ("tp_group", Group::Tp),
    ("dp_group", Group::Dp),
    ("ep_group", Group::Ep),
    ("ep_dp_group", Group::DpEp),
    ("ep_tp_group", Group::EpTp),
    ("pp_group", Group::Pp),
    ("embedding_group", Group::Embedding),
    ("all", Group::All),
    ("all_nodes", Group::All),
];

const REDUCE_IGNORED: &str = "reduce operations, which are left out";
const EMBEDDING_IGNORED: &str =
    "collectives of the embedding group that only one of its stages has, which are left out";
const TIMELESS: &str = "computations without a time, which take none";

/// The longest time that is read, in picoseconds.
const TIME_MAX: f64 = WORK_MAX_PS as f64;

/// Read a table for at most `room` ranks. `name` is the file's name, for errors.
///
/// # Errors
/// What is not such a table, groups whose sizes do not fit the ranks, and more ranks than `room`.
pub fn read_aicb(text: &str, name: &str, room: u32) -> Result<Trace, TextError> {
    let source = Source::new(text, name);
    let sections = sections(&source, room)?;
    let translator = Translator {
        source: &source,
        layout: layout(&source, &sections)?,
        time: TimeUnit::of(&sections),
        embedding: has_embedding(&sections),
    };
    let layout = translator.layout;
    let mut warnings = Warnings::default();
    let mut programs = Vec::new();
    for section in &sections {
        let mut program = Program::default();
        let mut step = 0;
        // The message of the row before, if it can still have a partner.
        let mut alone = None;
        for row in section.fields() {
            let Some(what) = translator.translate(&row, &mut step, &mut warnings)? else {
                continue;
            };
            let line = Line { step, label: row.text(STAGE), at: row.row.word(0).at };
            if alone.take().is_some_and(|before| is_exchange(before, what)) {
                program.together(line, what);
            } else {
                program.then(line, what);
                alone = Some(what);
            }
        }
        programs.push(program);
    }
    let ranks = sections[0].ranks;
    let entries: u64 = programs.iter().map(|program| program.entries.len() as u64).sum();
    if entries.saturating_mul(u64::from(ranks)) > Builder::TASKS_MAX {
        let message = format!("{} ranks make too many tasks of these rows", layout.ranks());
        let hint = format!("use fewer of either: a job can have {} tasks", Builder::TASKS_MAX);
        return Err(source.missing(source.end(), message, hint));
    }
    let graph = build(&programs, layout).map_err(|fault| {
        located(&source, &fault, |task| {
            let program = programs.get((task.rank.0 / ranks) as usize)?;
            program.entries.get(task.index as usize).map(|entry| entry.at)
        })
    })?;
    Ok(Trace { graph, warnings: warnings.0, algorithm: None })
}

fn build(programs: &[Program<'_>], layout: Layout) -> Result<TaskGraph, Fault> {
    let mut builder = Builder::new(layout.ranks())?;
    let mut groups = Groups::new(layout);
    for rank in (0..layout.ranks()).map(Rank) {
        let stage = rank.0 / (layout.tp * layout.dp);
        programs[stage as usize].add_to(&mut builder, &mut groups, rank)?;
    }
    builder.finish()
}

/// The layout that the rows' group sizes make of the sections' ranks.
fn layout(source: &Source<'_>, sections: &[Section<'_>]) -> Parsed<Layout> {
    let stage = sections[0].ranks;
    let size = |group: &str| {
        let mut rows = sections.iter().flat_map(Section::fields);
        let row = rows.find(|row| row.name(GROUP) == group)?;
        Some(row.get(GROUP_SIZE)).filter(|word| !word.text.is_empty())
    };
    let mut layout = Layout { tp: 1, ep: 1, dp: stage, pp: to_u32(sections.len()) };
    if let Some(word) = size("tp_group") {
        layout.tp = source.positive_u32(word, "comm_group_size")?;
        layout.dp = part(source, word, layout.tp, stage, "ranks of a stage")?;
    }
    if let Some(word) = size("ep_group") {
        layout.ep = source.positive_u32(word, "comm_group_size")?;
        part(source, word, layout.ep, layout.dp, "ranks of a data-parallel group")?;
    }
    Ok(layout)
}

fn part(source: &Source<'_>, word: Word<'_>, size: u32, whole: u32, of: &str) -> Parsed<u32> {
    if whole.is_multiple_of(size) {
        return Ok(whole / size);
    }
    let message = format!("groups of {size} do not divide the {whole} {of}");
    Err(source.wrong(word, message, "correct this or the ranks in brackets"))
}

/// What the times of a file count.
#[derive(Clone, Copy)]
struct TimeUnit {
    ps: f64,
}

impl TimeUnit {
    fn of(sections: &[Section<'_>]) -> Self {
        let is_log = sections
            .iter()
            .flat_map(Section::fields)
            .any(|row| row.name(TYPE) != "computation" && !row.text(TIME).is_empty());
        Self { ps: if is_log { 1e9 } else { 1e3 } }
    }

    fn read(self, source: &Source<'_>, word: Word<'_>) -> Parsed<Dur> {
        let ps = word.text.parse::<f64>().map(|time| time * self.ps);
        match ps {
            Ok(ps) if (0.0..TIME_MAX).contains(&ps) => Ok(Dur(ps.round() as u64)),
            _ => {
                let hint = "write a time from 0, in nanoseconds, or in a log in milliseconds";
                Err(source.wrong(word, "not a time", hint))
            }
        }
    }
}

/// Whether the stages of the embedding group have as many collectives of it.
fn has_embedding(sections: &[Section<'_>]) -> bool {
    let count = |section: Option<&Section<'_>>| {
        let rows = section.into_iter().flat_map(Section::fields);
        rows.filter(|row| row.name(GROUP) == "embedding_group").count()
    };
    count(sections.first()) == count(sections.last())
}

/// Whether two messages are one exchange with a neighbour.
fn is_exchange(one: What, other: What) -> bool {
    match (one, other) {
        (What::Send { stages: to, .. }, What::Recv { stages: from, .. })
        | (What::Recv { stages: from, .. }, What::Send { stages: to, .. }) => to == from,
        _ => false,
    }
}

/// Makes entries of rows.
struct Translator<'s> {
    source: &'s Source<'s>,
    layout: Layout,
    time: TimeUnit,
    /// Whether collectives of the embedding group are played.
    embedding: bool,
}

impl Translator<'_> {
    /// What `row` does, if it does something; at its end a step has a new number.
    fn translate(
        &self,
        row: &Fields<'_>,
        step: &mut u32,
        warnings: &mut Warnings,
    ) -> Parsed<Option<What>> {
        let source = self.source;
        Ok(Some(match row.name(TYPE) {
            "epoch_end" => {
                *step = step.saturating_add(1);
                return Ok(None);
            }
            "reduce" => {
                warnings.count(REDUCE_IGNORED);
                return Ok(None);
            }
            "computation" => {
                if row.text(TIME).is_empty() {
                    warnings.count(TIMELESS);
                    return Ok(None);
                }
                What::Compute { dur: self.time.read(source, row.get(TIME))?, stream: 0 }
            }
            "isend" => {
                What::Send { stages: stages(source, row, "send")?, bytes: size(source, row)? }
            }
            "irecv" => {
                What::Recv { stages: stages(source, row, "recv")?, bytes: size(source, row)? }
            }
            _ => {
                let op = collective(source, row)?;
                let group = group(source, row, &self.layout)?;
                let bytes = if op == Collective::Barrier { 0 } else { size(source, row)? };
                if group == Group::Embedding && !self.embedding {
                    warnings.count(EMBEDDING_IGNORED);
                    return Ok(None);
                }
                if bytes == 0 && op != Collective::Barrier {
                    return Ok(None);
                }
                What::Collective { group, op, bytes }
            }
        }))
    }
}

fn size(source: &Source<'_>, row: &Fields<'_>) -> Parsed<u64> {
    match number(row.text(SIZE), BYTES_MAX) {
        Some(size) => Ok(size),
        None => source.whole(row.get(SIZE), "msg_size", BYTES_MAX),
    }
}

fn collective(source: &Source<'_>, row: &Fields<'_>) -> Parsed<Collective> {
    const NAMES: [(&str, Collective); 8] = [
        ("all_reduce", Collective::AllReduce),
        ("all_gather", Collective::AllGather),
        ("all_gather_into_tensor", Collective::AllGather),
        ("reduce_scatter", Collective::ReduceScatter),
        ("reduce_scatter_tensor", Collective::ReduceScatter),
        ("all_to_all", Collective::AllToAll),
        ("broadcast", Collective::Broadcast),
        ("barrier", Collective::Barrier),
    ];
    const OTHERS: [&str; 5] = ["isend", "irecv", "computation", "epoch_end", "reduce"];
    match NAMES.iter().find(|(known, _)| *known == row.name(TYPE)) {
        Some((_, collective)) => Ok(*collective),
        None => {
            let name = row.name_word(TYPE);
            let mut known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
            known.extend(OTHERS);
            Err(source.wrong(name, "unknown comm_type", one_of(name.text, &known)))
        }
    }
}

/// The row's group, whose size must be what the layout makes it.
fn group(source: &Source<'_>, row: &Fields<'_>, layout: &Layout) -> Parsed<Group> {
    let Some((_, group)) = GROUPS.iter().find(|(known, _)| *known == row.name(GROUP)) else {
        let name = row.name_word(GROUP);
        let known = GROUPS.map(|(known, _)| known);
        return Err(source.wrong(name, "unknown comm_group", one_of(name.text, &known)));
    };
    let (says, is) = (row.text(GROUP_SIZE), layout.size(*group));
    if says.is_empty() || number(says, u64::from(u32::MAX)) == Some(u64::from(is)) {
        return Ok(*group);
    }
    let word = row.get(GROUP_SIZE);
    source.positive_u32(word, "comm_group_size")?;
    let Layout { tp, ep, dp, pp } = layout;
    let message = format!("with tp {tp}, ep {ep}, dp {dp} and pp {pp} this group has {is} ranks");
    let hint = "the ranks in brackets or the sizes of groups do not fit each other; \
                without brackets the job has all ranks that there is room for";
    Err(source.wrong(word, message, hint))
}

/// How many stages on: `send_next`, `recv_prev`.
fn stages(source: &Source<'_>, row: &Fields<'_>, verb: &str) -> Parsed<i32> {
    match row.text(ADDITIONAL).strip_prefix(verb) {
        Some("_next") => Ok(1),
        Some("_prev") => Ok(-1),
        _ => {
            let hint = format!("write {verb}_next or {verb}_prev");
            Err(source.wrong(row.get(ADDITIONAL), "neither the next nor the previous stage", hint))
        }
    }
}

#[cfg(test)]
mod tests;
