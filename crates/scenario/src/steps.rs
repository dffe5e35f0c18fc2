//! Training jobs in the results: the rows of steps and collectives, and what holds up a job that
//! is not done.

use std::collections::BTreeMap;

use ai::{InstanceId, Job, Kind, Rank, Wait, What};
use endpoint::Work;
use metrics::{CollectiveRow, StepRow, StepStats};
use units::{Dur, HostId, Time};

use crate::Scenario;

/// What a rank has reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worked {
    pub(crate) host: HostId,
    /// The traffic table.
    pub(crate) table: u16,
    pub(crate) start: Time,
    pub(crate) end: Time,
    pub(crate) completed: bool,
    pub(crate) bytes: u64,
    pub(crate) work: Work,
}

impl Worked {
    fn what(&self) -> What {
        What::decode(self.work.what)
    }
}

/// The job of traffic table `table`.
fn job(scenario: &Scenario, table: u16) -> Option<&Job> {
    scenario.traffic.tables.get(usize::from(table))?.job.as_deref()
}

/// A row for each step of each rank.
pub(crate) fn step_rows(works: &[Worked]) -> Vec<StepRow> {
    let steps = works.iter().filter(|worked| worked.what() == What::Step);
    let row = |&Worked { host, table, start, end, completed, bytes, work }: &Worked| StepRow {
        traffic: table,
        step: work.step,
        rank: work.rank,
        host: host.0,
        start,
        end,
        completed,
        sent_bytes: bytes,
        computed: work.computed,
        skipped: work.skipped,
    };
    let mut rows: Vec<StepRow> = steps.map(row).collect();
    rows.sort_by_key(|row| (row.traffic, row.step, row.rank));
    rows
}

/// What the steps of `rows` say, beside those of `alone`, where jobs were run by themselves.
pub(crate) fn fold<'a>(
    scenario: &Scenario,
    rows: impl Iterator<Item = &'a StepRow>,
    alone: &[StepRow],
) -> StepStats {
    let ranks = |table, step| job(scenario, table).map_or(0, |job| job.ranks_of_step(step)).into();
    let (stats, together) = metrics::fold_steps(rows, ranks);
    let (_, alone) = metrics::fold_steps(alone.iter(), ranks);
    stats.beside(&together, &alone)
}

/// A row for each collective of each rank, in the order of traffic table, collective and rank.
pub(crate) fn collective_rows(scenario: &Scenario, works: &[Worked]) -> Vec<CollectiveRow> {
    let mut done: Vec<(InstanceId, u32, &Worked)> = Vec::new();
    for worked in works {
        if let What::Collective { id, task } = worked.what() {
            done.push((id, task, worked));
        }
    }
    done.sort_by_key(|(id, _, worked)| (worked.table, *id, worked.work.rank));
    let mut ideals: BTreeMap<(u16, ai::GroupId, u64, &str), Option<Dur>> = BTreeMap::new();
    let mut rows = Vec::with_capacity(done.len());
    for all in done.chunk_by(|a, b| (a.2.table, a.0) == (b.2.table, b.0)) {
        let last_start = all.iter().map(|(_, _, worked)| worked.start).max().unwrap_or_default();
        let times = all.iter().map(|(_, _, worked)| worked.end.since(worked.start));
        let longest = times.max().unwrap_or_default();
        for &(id, task, worked) in all {
            let Some(job) = job(scenario, worked.table) else { continue };
            let instance = job.graph().instance(id);
            let key = (worked.table, instance.group, instance.bytes, instance.op.name());
            let ideal =
                *ideals.entry(key).or_insert_with(|| ideal(scenario, worked.table, job, id));
            let row = row(job, (id, task), worked);
            rows.push(CollectiveRow { last_start, longest, ideal, ..row });
        }
    }
    rows
}

/// What is known of a rank's part alone.
fn row(job: &Job, (id, task): (InstanceId, u32), worked: &Worked) -> CollectiveRow {
    let instance = job.graph().instance(id);
    let rank = Rank(worked.work.rank);
    let name = job.graph().tasks(rank).get(task).label;
    CollectiveRow {
        traffic: worked.table,
        step: worked.work.step,
        collective: id.0,
        op: instance.op.name().to_owned(),
        name: name.map(|label| job.graph().text(label).to_owned()),
        rank: rank.0,
        host: worked.host.0,
        start: worked.start,
        end: worked.end,
        bytes: instance.bytes,
        ranks: job.graph().members(instance.group).len() as u32,
        ..CollectiveRow::default()
    }
}

/// How long a collective takes on an idle fabric, if that is known.
fn ideal(scenario: &Scenario, table: u16, job: &Job, id: InstanceId) -> Option<Dur> {
    let transport = scenario.traffic.tables.get(usize::from(table))?.transport;
    let how = scenario.config.encapsulations.get(usize::from(transport))?;
    let (framing, spray, topology) = (how.framing, how.spray, &scenario.topology);
    job.ideal(job.graph().instance(id), &|from, to, bytes| {
        topology.ideal(from, to, bytes.max(1), framing, spray)
    })
}

/// Of each job that is not done: who waits for whom.
pub(crate) fn warnings(scenario: &Scenario, works: &[Worked]) -> Vec<String> {
    let tables = scenario.traffic.tables.iter().zip(0..);
    let jobs = tables.filter_map(|(part, table)| Some((part.job.as_deref()?, table)));
    jobs.filter_map(|(job, table)| unfinished(scenario, job, table, works)).collect()
}

/// What holds up the job of table `table`, if it is not done.
fn unfinished(scenario: &Scenario, job: &Job, table: u16, works: &[Worked]) -> Option<String> {
    let of_job = || works.iter().filter(|worked| worked.table == table);
    let rows = step_rows(&of_job().copied().collect::<Vec<_>>());
    let done = fold(scenario, rows.iter(), &[]).completed;
    let steps = (0..job.graph().steps()).filter(|&step| job.ranks_of_step(step) > 0).count();
    if done == steps as u64 {
        return None;
    }
    let waits = of_job().filter_map(|worked| match worked.what() {
        What::Waits { task, peer, wait } => Some((worked, task, peer, wait)),
        _ => None,
    });
    // A message that is lost or in flight holds up those who wait for what comes of it.
    let order = |(worked, _, _, wait): &(&Worked, u32, Rank, Wait)| {
        let last = match wait {
            Wait::Lost => 0,
            Wait::Ack => 1,
            Wait::Message | Wait::Work => 2,
        };
        (last, worked.work.step, worked.work.rank)
    };
    let others = waits.clone().count().saturating_sub(1);
    let name = scenario.traffic.names.get(usize::from(table)).cloned().flatten();
    let name = name.map_or_else(|| format!("of traffic table {table}"), |name| format!("`{name}`"));
    let begun = format!("the job {name} has done {done} of {steps} steps");
    let Some((worked, task, peer, wait)) = waits.min_by_key(order) else {
        return Some(format!("{begun}; no rank has begun the next one"));
    };
    let (rank, host) = (worked.work.rank, worked.host.0);
    let (other, step) = (job.placement().host(peer).0, worked.work.step);
    let peer = format!("rank {} (host {other})", peer.0);
    let task = describe(job, Rank(rank), task);
    let what = match wait {
        Wait::Work => format!("computes: {task}"),
        Wait::Message => format!("waits for a message from {peer}: {task}"),
        Wait::Ack => format!("waits until {peer} has its message: {task}"),
        Wait::Lost => format!("has lost a message to {peer}, which its transport gave up: {task}"),
    };
    Some(format!(
        "{begun}; in step {step} rank {rank} (host {host}) {what}; other ranks that wait: {others}"
    ))
}

/// A task for people: what it does, its name, and its number.
fn describe(job: &Job, rank: Rank, index: u32) -> String {
    let task = job.graph().tasks(rank).get(index);
    let what = match task.kind {
        Kind::Compute { .. } => "work".to_owned(),
        Kind::Send { bytes, tag, .. } => format!("send of {bytes} B with tag {tag}"),
        Kind::Recv { bytes, tag, .. } => format!("receive of {bytes} B with tag {tag}"),
        Kind::Collective { op, bytes, .. } => format!("{op} of {bytes} B"),
    };
    let name = task.label.map(|label| format!(" `{}`", job.graph().text(label)));
    format!("{what}{} (task {index})", name.unwrap_or_default())
}
