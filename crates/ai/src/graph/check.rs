//! Whether tasks are a job: messages and collectives have all their parts, and nothing waits for
//! what waits for it.

use units::Dur;

use super::{Fault, GroupId, Instance, InstanceId, Kind, Map, Op, Rank, TaskGraph, TaskId};

/// The sends and the receives of one direction between two ranks with one tag, in order.
#[derive(Default)]
struct Line {
    sends: Vec<(u32, u64)>,
    recvs: Vec<(u32, u64)>,
}

/// Give each send its receive, and each receive its send.
pub(super) fn match_messages(graph: &mut TaskGraph) -> Result<(), Fault> {
    let mut lines: Map<(Rank, Rank, u32), Line> = Map::default();
    for (rank, tasks) in (0..).map(Rank).zip(&graph.ranks) {
        for (index, task) in (0..).zip(&tasks.list) {
            match task.kind {
                Kind::Send { to, bytes, tag } => {
                    lines.entry((rank, to, tag)).or_default().sends.push((index, bytes));
                }
                Kind::Recv { from, bytes, tag } => {
                    lines.entry((from, rank, tag)).or_default().recvs.push((index, bytes));
                }
                Kind::Compute { .. } | Kind::Collective { .. } => {}
            }
        }
    }
    // The map's order must not choose which of several faults is said.
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_unstable_by_key(|(key, _)| *key);
    for ((from, to, tag), Line { sends, recvs }) in lines {
        for (&(send, sent), &(recv, expected)) in sends.iter().zip(&recvs) {
            if sent != expected {
                let recv = TaskId { rank: to, index: recv };
                let send = TaskId { rank: from, index: send };
                return Err(Fault::OtherSize { recv, expected, send, sent });
            }
            graph.ranks[from.0 as usize].partner[send as usize] = recv;
            graph.ranks[to.0 as usize].partner[recv as usize] = send;
        }
        let counts = format!(
            "from rank {} to rank {} with tag {tag} there are {} sends and {} receives",
            from.0,
            to.0,
            sends.len(),
            recvs.len()
        );
        let surplus = |rank, line: &[(u32, u64)], others: usize| {
            let &(index, _) = line.get(others)?;
            Some(Fault::Unmatched { task: TaskId { rank, index }, what: counts.clone() })
        };
        let fault = surplus(from, &sends, recvs.len()).or(surplus(to, &recvs, sends.len()));
        if let Some(fault) = fault {
            return Err(fault);
        }
    }
    Ok(())
}

/// Give each collective its [`InstanceId`].
pub(super) fn match_collectives(graph: &mut TaskGraph) -> Result<(), Fault> {
    let mut by_group: Vec<Map<Rank, Vec<u32>>> = vec![Map::default(); graph.groups.len()];
    for (rank, tasks) in (0..).map(Rank).zip(&graph.ranks) {
        for (index, task) in (0..).zip(&tasks.list) {
            if let Kind::Collective { group, .. } = task.kind {
                by_group[group.0 as usize].entry(rank).or_default().push(index);
            }
        }
    }
    for (group, of_ranks) in (0..).map(GroupId).zip(by_group) {
        let count = of_ranks.values().map(Vec::len).max().unwrap_or(0);
        for nth in 0..count {
            meet(graph, group, &of_ranks, nth)?;
        }
    }
    Ok(())
}

/// Make the `nth` collective of `group`, from 0, one.
fn meet(
    graph: &mut TaskGraph,
    group: GroupId,
    of_ranks: &Map<Rank, Vec<u32>>,
    nth: usize,
) -> Result<(), Fault> {
    let members = &graph.groups[group.0 as usize];
    let task = |rank: Rank| {
        let index = *of_ranks.get(&rank)?.get(nth)?;
        Some(TaskId { rank, index })
    };
    let Some(first) = members.iter().find_map(|&rank| task(rank)) else { return Ok(()) };
    let what = |task: TaskId| graph.tasks(task.rank).get(task.index).kind;
    let Kind::Collective { op, bytes, .. } = what(first) else { return Ok(()) };
    let mut tasks = Vec::with_capacity(members.len());
    for &rank in members {
        let Some(member) = task(rank) else {
            return Err(Fault::Missing { task: first, missing: rank, nth: nth + 1 });
        };
        if let Kind::Collective { op: other_op, bytes: other_bytes, .. } = what(member) {
            differs(first, (op, bytes), member, (other_op, other_bytes))?;
        }
        tasks.push(member);
    }
    let id = super::index(graph.instances.len(), "collectives")?;
    graph.instances.push(Instance { group, op, bytes });
    for TaskId { rank, index } in tasks {
        graph.ranks[rank.0 as usize].partner[index as usize] = id;
    }
    Ok(())
}

fn differs(
    task: TaskId,
    (op, bytes): (Op, u64),
    other: TaskId,
    (other_op, other_bytes): (Op, u64),
) -> Result<(), Fault> {
    let (what, values) = match (op, other_op) {
        (Op::Broadcast { root: a }, Op::Broadcast { root: b }) if a != b => {
            ("the root", format!("rank {} and rank {}", a.0, b.0))
        }
        _ if op != other_op => ("the operation", format!("{op} and {other_op}")),
        _ if bytes != other_bytes => ("the size", format!("{bytes} and {other_bytes} bytes")),
        _ => return Ok(()),
    };
    Err(Fault::Differs { task, other, what, values })
}

/// Play all tasks on a network that takes no time, to find those that never end. How long the
/// longest chain of work is.
pub(super) fn play(graph: &TaskGraph) -> Result<Dur, Fault> {
    let mut played = Played::new(graph);
    for (rank, tasks) in (0..).map(Rank).zip(&graph.ranks) {
        for index in (0..tasks.list.len() as u32).filter(|&index| tasks.waits(index) == 0) {
            played.start(TaskId { rank, index });
        }
    }
    played.run();
    let unended = (0..).map(Rank).zip(&played.ended).find_map(|(rank, ended)| {
        let index = ended.iter().position(|ended| !ended)? as u32;
        Some(TaskId { rank, index })
    });
    unended.map_or(Ok(played.longest), |task| Err(Fault::Cycle(played.cycle(task))))
}

/// How far tasks have come.
struct Played<'a> {
    graph: &'a TaskGraph,
    waits: Vec<Vec<u32>>,
    /// When each can start, as far as those that it waits for have been looked at.
    starts: Vec<Vec<Dur>>,
    longest: Dur,
    started: Vec<Vec<bool>>,
    ended: Vec<Vec<bool>>,
    /// By collective: how many members have not started it.
    missing: Vec<usize>,
    /// By collective: those who have.
    present: Vec<Vec<TaskId>>,
    /// Started, and not looked at since.
    fresh: Vec<TaskId>,
}

impl<'a> Played<'a> {
    fn new(graph: &'a TaskGraph) -> Self {
        let flags = || graph.ranks.iter().map(|tasks| vec![false; tasks.list.len()]).collect();
        let members = |instance: &Instance| graph.members(instance.group).len();
        Self {
            graph,
            waits: graph.ranks.iter().map(|tasks| tasks.waits.clone()).collect(),
            starts: graph.ranks.iter().map(|tasks| vec![Dur::ZERO; tasks.list.len()]).collect(),
            longest: Dur::ZERO,
            started: flags(),
            ended: flags(),
            missing: graph.instances.iter().map(members).collect(),
            present: vec![Vec::new(); graph.instances.len()],
            fresh: Vec::new(),
        }
    }

    fn start(&mut self, task: TaskId) {
        self.started[task.rank.0 as usize][task.index as usize] = true;
        self.fresh.push(task);
    }

    fn run(&mut self) {
        while let Some(task) = self.fresh.pop() {
            let tasks = self.graph.tasks(task.rank);
            let start = self.starts_at(task);
            for waiting in tasks.after_start_of(task.index) {
                self.release(task.rank, waiting, start);
            }
            match tasks.get(task.index).kind {
                Kind::Compute { dur, .. } => self.end(task, start + dur),
                Kind::Send { to, .. } => {
                    let recv = TaskId { rank: to, index: tasks.partner[task.index as usize] };
                    self.end(task, start);
                    if self.has_started(recv) {
                        self.end(recv, start.max(self.starts_at(recv)));
                    }
                }
                Kind::Recv { from, .. } => {
                    let send = TaskId { rank: from, index: tasks.partner[task.index as usize] };
                    if self.has_started(send) && !self.has_ended(task) {
                        self.end(task, start.max(self.starts_at(send)));
                    }
                }
                Kind::Collective { .. } => self.join(task, tasks.partner[task.index as usize]),
            }
        }
    }

    fn join(&mut self, task: TaskId, instance: u32) {
        let instance = instance as usize;
        self.present[instance].push(task);
        self.missing[instance] -= 1;
        if self.missing[instance] == 0 {
            let present = std::mem::take(&mut self.present[instance]);
            let last = present.iter().map(|&member| self.starts_at(member)).max();
            for member in present {
                self.end(member, last.unwrap_or_default());
            }
        }
    }

    fn end(&mut self, task: TaskId, at: Dur) {
        let ended = &mut self.ended[task.rank.0 as usize][task.index as usize];
        if std::mem::replace(ended, true) {
            return;
        }
        self.longest = self.longest.max(at);
        for waiting in self.graph.tasks(task.rank).after_end_of(task.index) {
            self.release(task.rank, waiting, at);
        }
    }

    fn release(&mut self, rank: Rank, index: u32, at: Dur) {
        let start = &mut self.starts[rank.0 as usize][index as usize];
        *start = at.max(*start);
        let waits = &mut self.waits[rank.0 as usize][index as usize];
        *waits -= 1;
        if *waits == 0 {
            self.start(TaskId { rank, index });
        }
    }

    fn starts_at(&self, task: TaskId) -> Dur {
        self.starts[task.rank.0 as usize][task.index as usize]
    }

    fn has_started(&self, task: TaskId) -> bool {
        self.started[task.rank.0 as usize][task.index as usize]
    }

    fn has_ended(&self, task: TaskId) -> bool {
        self.ended[task.rank.0 as usize][task.index as usize]
    }

    /// Tasks that wait for each other. `task` waits for one of them, or is one.
    fn cycle(&self, task: TaskId) -> Vec<TaskId> {
        let preds = self.preds();
        let mut place: Map<TaskId, usize> = Map::default();
        let mut path = Vec::new();
        let mut at = task;
        loop {
            if let Some(&from) = place.get(&at) {
                return path.split_off(from);
            }
            place.insert(at, path.len());
            path.push(at);
            match self.cause(at, &preds) {
                Some(next) => at = next,
                None => return path,
            }
        }
    }

    /// By rank and task: one that it waits for in vain.
    fn preds(&self) -> Vec<Vec<u32>> {
        let of_rank = |(rank, tasks): (Rank, &super::Tasks)| {
            let mut preds = vec![u32::MAX; tasks.list.len()];
            for edge in &tasks.edges {
                let pred = TaskId { rank, index: edge.pred };
                let done = match edge.until {
                    super::Until::Start => self.has_started(pred),
                    super::Until::End => self.has_ended(pred),
                };
                if !done {
                    preds[edge.task as usize] = edge.pred;
                }
            }
            preds
        };
        (0..).map(Rank).zip(&self.graph.ranks).map(of_rank).collect()
    }

    /// The task for which `task` waits, which has not ended.
    fn cause(&self, task: TaskId, preds: &[Vec<u32>]) -> Option<TaskId> {
        let tasks = self.graph.tasks(task.rank);
        if !self.has_started(task) {
            let index = preds[task.rank.0 as usize][task.index as usize];
            return (index != u32::MAX).then_some(TaskId { rank: task.rank, index });
        }
        match tasks.get(task.index).kind {
            Kind::Recv { from, .. } => {
                let index = tasks.partner[task.index as usize];
                Some(TaskId { rank: from, index })
            }
            Kind::Collective { group, .. } => {
                let instance = InstanceId(tasks.partner[task.index as usize]);
                self.absent(group, instance)
            }
            Kind::Compute { .. } | Kind::Send { .. } => None,
        }
    }

    /// A task of `instance` that has not started.
    fn absent(&self, group: GroupId, instance: InstanceId) -> Option<TaskId> {
        self.graph.members(group).iter().find_map(|&rank| {
            let partners = &self.graph.tasks(rank).partner;
            let is_of_it = |&index: &u32| {
                self.graph.tasks(rank).instance(index) == Some(instance)
                    && !self.has_started(TaskId { rank, index })
            };
            let index = (0..partners.len() as u32).find(is_of_it)?;
            Some(TaskId { rank, index })
        })
    }
}
