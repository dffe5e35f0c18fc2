//! What SimAI's and AICB's files have in common: one program for many ranks, whose collectives name
//! kinds of groups, and the groups themselves.

use std::collections::BTreeMap;

use units::Dur;
use workload::text::Place;

use crate::graph::{Builder, Fault, GroupId, Kind, Op, Rank, Task, TaskId};

/// How a job's ranks are cut into groups, by Megatron's rule (`tp-ep-dp-pp`): neighbours share a
/// tensor-parallel group, and the stages of a pipeline are the outermost division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Ranks of a tensor-parallel group.
    pub(super) tp: u32,
    /// Ranks of an expert-parallel group; a divisor of `dp`.
    pub(super) ep: u32,
    /// Ranks of a data-parallel group.
    pub(super) dp: u32,
    /// Stages.
    pub(super) pp: u32,
}

/// A kind of group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Tp,
    Dp,
    Ep,
    /// The ranks that hold the same experts.
    DpEp,
    EpTp,
    Pp,
    /// The first and the last stage.
    Embedding,
    All,
}

impl Layout {
    pub(super) fn ranks(&self) -> u32 {
        self.tp * self.dp * self.pp
    }

    /// How many ranks a group has.
    pub(super) fn size(&self, group: Group) -> u32 {
        match group {
            Group::Tp => self.tp,
            Group::Dp => self.dp,
            Group::Ep => self.ep,
            Group::DpEp => self.dp / self.ep,
            Group::EpTp => self.ep * self.tp,
            Group::Pp => self.pp,
            Group::Embedding => self.pp.min(2),
            Group::All => self.ranks(),
        }
    }

    /// The members of the group that `rank` is in.
    fn members(&self, group: Group, rank: u32) -> Vec<Rank> {
        let Self { tp, ep, dp, pp } = *self;
        let stage = rank / (tp * dp);
        let (t, d) = (rank % tp, rank / tp % dp);
        let at = move |t: u32, d: u32, stage: u32| Rank(t + tp * (d + dp * stage));
        let first = d / ep * ep;
        match group {
            Group::Tp => (0..tp).map(|t| at(t, d, stage)).collect(),
            Group::Dp => (0..dp).map(|d| at(t, d, stage)).collect(),
            Group::Ep => (first..first + ep).map(|d| at(t, d, stage)).collect(),
            Group::DpEp => (d % ep..dp).step_by(ep as usize).map(|d| at(t, d, stage)).collect(),
            Group::EpTp => {
                let members = (first..first + ep).flat_map(|d| (0..tp).map(move |t| (t, d)));
                members.map(|(t, d)| at(t, d, stage)).collect()
            }
            Group::Pp => (0..pp).map(|stage| at(t, d, stage)).collect(),
            Group::Embedding => [0, pp - 1].map(|stage| at(t, d, stage)).to_vec(),
            Group::All => (0..self.ranks()).map(Rank).collect(),
        }
    }

    /// The first member of the group that `rank` is in.
    fn first(&self, group: Group, rank: Rank) -> Rank {
        self.members(group, rank.0).first().copied().unwrap_or(rank)
    }

    /// The rank `steps` stages after `rank`, if there is one.
    fn other_stage(&self, rank: Rank, steps: i32) -> Option<Rank> {
        let stride = i64::from(self.tp * self.dp);
        let other = i64::from(rank.0) + i64::from(steps) * stride;
        (0..i64::from(self.ranks())).contains(&other).then_some(Rank(other as u32))
    }
}

/// The groups of a job that programs have named so far.
pub(super) struct Groups {
    layout: Layout,
    /// By kind and rank.
    ids: BTreeMap<Group, Vec<Option<GroupId>>>,
}

impl Groups {
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout, ids: BTreeMap::new() }
    }

    fn id(&mut self, builder: &mut Builder, group: Group, rank: Rank) -> Result<GroupId, Fault> {
        let ranks = self.layout.ranks() as usize;
        let ids = self.ids.entry(group).or_insert_with(|| vec![None; ranks]);
        if let Some(id) = ids[rank.0 as usize] {
            return Ok(id);
        }
        let members = self.layout.members(group, rank.0);
        let id = builder.group(&members)?;
        for member in members {
            ids[member.0 as usize] = Some(id);
        }
        Ok(id)
    }
}

/// What one entry of a program does.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Compute {
        dur: Dur,
        stream: u8,
    },
    Collective {
        group: Group,
        op: Collective,
        bytes: u64,
    },
    /// To or from the rank so many stages on; nothing where there is none.
    Send {
        stages: i32,
        bytes: u64,
    },
    Recv {
        stages: i32,
        bytes: u64,
    },
}

/// [`Op`] without a root, which depends on the group: it is the first member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Barrier,
}

/// A program that several ranks run.
#[derive(Debug, Default)]
pub(super) struct Program<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    /// The entries that the next one waits for.
    last: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Entry<'a> {
    what: What,
    after: Vec<u32>,
    step: u32,
    label: &'a str,
    /// Where it stands in the file.
    pub(super) at: Place,
}

/// What entries have in common that come from one line of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) step: u32,
    pub(super) label: &'a str,
    pub(super) at: Place,
}

impl<'a> Program<'a> {
    /// Add an entry that waits for the one before; the next one waits for it.
    pub(super) fn then(&mut self, line: Line<'a>, what: What) {
        self.last = vec![self.beside(line, what)];
    }

    /// Add an entry that starts with the one before; the next one waits for both.
    pub(super) fn together(&mut self, line: Line<'a>, what: What) {
        let after = self.entries.last().map_or_else(Vec::new, |entry| entry.after.clone());
        let index = self.add(line, what, after);
        self.last.push(index);
    }

    /// Add an entry that waits for the one before, but not the next one for it.
    pub(super) fn beside(&mut self, line: Line<'a>, what: What) -> u32 {
        self.add(line, what, self.last.clone())
    }

    fn add(&mut self, line: Line<'a>, what: What, after: Vec<u32>) -> u32 {
        let index = self.entries.len() as u32;
        let Line { step, label, at } = line;
        self.entries.push(Entry { what, after, step, label, at });
        index
    }

    /// `entry` also waits for `pred`.
    pub(super) fn after(&mut self, entry: u32, pred: u32) {
        self.entries[entry as usize].after.push(pred);
    }

    /// The next entry also waits for `entry`.
    pub(super) fn join(&mut self, entry: u32) {
        self.last.push(entry);
    }

    /// Add the program's tasks to `rank`, which has none yet: task `i` is entry `i`.
    pub(super) fn add_to(
        &self,
        builder: &mut Builder,
        groups: &mut Groups,
        rank: Rank,
    ) -> Result<(), Fault> {
        for (index, entry) in (0..).zip(&self.entries) {
            let kind = kind(entry.what, builder, groups, rank)?;
            let label =
                if entry.label.is_empty() { None } else { Some(builder.label(entry.label)?) };
            let task = builder.add(rank, Task { kind, step: entry.step, label })?;
            debug_assert_eq!(task.index, index);
            for &pred in &entry.after {
                builder.after(task, TaskId { rank, index: pred })?;
            }
        }
        Ok(())
    }
}

/// A point without work: what stands for a collective or message of a rank with itself.
const POINT: Kind = Kind::Compute { dur: Dur::ZERO, stream: 0 };

fn kind(what: What, builder: &mut Builder, groups: &mut Groups, rank: Rank) -> Result<Kind, Fault> {
    Ok(match what {
        What::Compute { dur, stream } => Kind::Compute { dur, stream },
        What::Collective { group, .. } if groups.layout.size(group) == 1 => POINT,
        What::Collective { group, op, bytes } => {
            let id = groups.id(builder, group, rank)?;
            let op = match op {
                Collective::AllReduce => Op::AllReduce,
                Collective::AllGather => Op::AllGather,
                Collective::ReduceScatter => Op::ReduceScatter,
                Collective::AllToAll => Op::AllToAll,
                Collective::Broadcast => Op::Broadcast { root: groups.layout.first(group, rank) },
                Collective::Barrier => Op::Barrier,
            };
            Kind::Collective { group: id, op, bytes }
        }
        What::Send { stages, bytes } => match groups.layout.other_stage(rank, stages) {
            Some(to) => Kind::Send { to, bytes, tag: 0 },
            None => POINT,
        },
        What::Recv { stages, bytes } => match groups.layout.other_stage(rank, stages) {
            Some(from) => Kind::Recv { from, bytes, tag: 0 },
            None => POINT,
        },
    })
}

#[cfg(test)]
mod tests;
