//! Training jobs in the results: what each step waited for.

use std::collections::{BTreeMap, BTreeSet};

use ai::{Because, Critical, Job, Kind, Piece, Rank, Span, Spans, What};
use metrics::{CriticalRow, FileError, FlowRow, Sorted};
use units::Time;

use crate::Scenario;
use crate::steps::Worked;

/// A row for each piece of the critical path of each step that is complete, by traffic table, step
/// and time. `rows` are the run's messages.
pub(crate) fn rows(
    scenario: &Scenario,
    works: &[Worked],
    rows: &Sorted<FlowRow>,
) -> Result<Vec<CriticalRow>, FileError> {
    let mut all = Vec::new();
    for (table, part) in (0..).zip(&scenario.traffic.tables) {
        if let Some(job) = part.job.as_deref().filter(|job| job.config().tell_tasks) {
            of_job(job, table, works, &mut all);
        }
    }
    name_messages(&mut all, rows)?;
    Ok(all)
}

fn of_job(job: &Job, table: u16, works: &[Worked], all: &mut Vec<CriticalRow>) {
    let ranks = (0..job.graph().ranks()).map(Rank);
    let mut spans: Spans = ranks.map(|rank| vec![None; job.graph().tasks(rank).len()]).collect();
    let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
    let of_table = works.iter().filter(|worked| worked.table == table && worked.completed);
    // Of what was left out there is nothing to know.
    for worked in of_table.filter(|worked| !worked.work.skipped) {
        let Worked { start, end, work, .. } = *worked;
        match What::decode(work.what) {
            What::Task { task } | What::Collective { task, .. } => {
                let of_rank = spans.get_mut(work.rank as usize);
                if let Some(span) = of_rank.and_then(|all| all.get_mut(task as usize)) {
                    *span = Some(Span { start, end });
                }
            }
            What::Step => {
                let last = ends.entry(work.step).or_default();
                *last = end.max(*last);
            }
            What::Waits { .. } => {}
        }
    }
    let mut critical = Critical::new(job, &spans);
    let mut begin = job.config().start;
    for (step, end) in ends {
        let path = critical.of_step(step, begin);
        begin = end.max(begin);
        let pieces = (0..).zip(path);
        all.extend(pieces.map(|(nth, piece)| row(job, (table, step, nth), piece)));
    }
}

fn row(job: &Job, (traffic, step, piece): (u16, u32, u32), at: Piece) -> CriticalRow {
    let Piece { task, start, end, because } = at;
    let graph = job.graph();
    let about = graph.tasks(task.rank).get(task.index);
    let (what, peer) = match because {
        Because::Work => ("work", None),
        Because::Message { from } => ("message", Some(from)),
        Because::Collective { last } => ("collective", Some(last)),
    };
    let bytes = match about.kind {
        Kind::Compute { .. } => None,
        Kind::Send { bytes, .. } | Kind::Recv { bytes, .. } | Kind::Collective { bytes, .. } => {
            Some(bytes)
        }
    };
    CriticalRow {
        traffic,
        step,
        piece,
        what: what.to_owned(),
        name: about.label.map(|label| graph.text(label).to_owned()),
        rank: task.rank.0,
        host: job.placement().host(task.rank).0,
        peer: peer.map(|rank| rank.0),
        peer_host: peer.map(|rank| job.placement().host(rank).0),
        start,
        end,
        bytes,
        last_src: None,
        last_msg: None,
    }
}

/// Say with the arrival of which message each piece of `all` ended: the first by source that its
/// host got at that instant.
fn name_messages(all: &mut [CriticalRow], rows: &Sorted<FlowRow>) -> Result<(), FileError> {
    let wanted: BTreeSet<(u32, Time)> =
        all.iter().filter(|row| row.what != "work").map(|row| (row.host, row.end)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut found: BTreeMap<(u32, Time), (u32, u64)> = BTreeMap::new();
    for row in rows.iter()? {
        let row = row?;
        let Some(at) = row.finish else { continue };
        if wanted.contains(&(row.dst, at)) {
            found.entry((row.dst, at)).or_insert((row.src, row.msg));
        }
    }
    for row in all.iter_mut().filter(|row| row.what != "work") {
        if let Some(&(src, msg)) = found.get(&(row.host, row.end)) {
            (row.last_src, row.last_msg) = (Some(src), Some(msg));
        }
    }
    Ok(())
}
