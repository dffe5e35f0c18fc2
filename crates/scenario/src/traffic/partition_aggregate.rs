//! `kind = "partition-aggregate"`: queries over a tree of hosts, with a deadline at each level.

use std::sync::Arc;

use units::{Dur, HostId};
use workload::{Aggregate, Arrivals, HostSet, LEVELS_MAX, Placement, QuerySpec, WORKERS_MAX};

use super::sizes::{Length, MESSAGES, drawn_sizes};
use super::{Context, GapKind, Part, Written, boxed};
use crate::diagnostic::Checked;
use crate::key::keys;
use crate::value::choices;

keys! { "traffic.partition-aggregate" QUERIES: Written {
    fanout: Vec<u32>,
        "how many nodes each node asks, the root first. `[40]`: a root and its 40 workers; `[4, \
         10]`: 4 aggregators with 10 workers each".range("at most 8 levels").written();
    deadlines: Vec<Dur>,
        "how long each node waits, the root first: one for each number of `fanout`. A root's \
         counts from its query, others from their request"
            .range("each less than the one before").written();
    roots: HostSet, "who asks, each for itself".written();
    aggregators (maybe aggregators): HostSet,
        "who can be an aggregator; with one level it says nothing"
            .range("as many as a node asks").default("required with several levels");
    workers: HostSet,
        "who can be a worker. A host can have several of the roles; no node asks itself"
            .range("as many as a node asks").written();
    placement: Placement,
        "`drawn`: each node draws those it asks, for each query. `in-order`: the nodes of a level \
         take the hosts in order, in every query the same".written();
    request (asked): Length, "size of each request".range("1 B to 10^15 B").written();
    aggregate (maybe aggregate): Aggregate,
        "an aggregator's answer: `fixed`, as large as a worker's; `proportional`, all that it got \
         in time, at least 1 B".default("required with several levels");
    gap (maybe pause): Dur,
        "pause of a root before each query, the first included, from the end of the one before"
            .default("this or `query_rate` is required");
    gap_kind (gap_kind when |w| w.pause.is_some()): GapKind,
        "whether `gap` is the pause or its mean".written().only("`gap`");
    query_rate (maybe rate): f64 [0.001..=1e9],
        "queries per second of each root, at random instants (Poisson), whatever is in flight"
            .default("");
    queries (maybe most): u64 [1..=i64::MAX as u64],
        "each root asks at most this many".range("at least 1").default("none");
}}

choices!(Placement, "drawn" => Placement::Drawn, "in-order" => Placement::InOrder);
choices!(Aggregate, "fixed" => Aggregate::Fixed, "proportional" => Aggregate::Proportional);

/// `kind = "partition-aggregate"`.
pub(super) fn partition_aggregate(cx: &mut Context<'_, '_>) -> Checked<Part> {
    check_fanout(cx, &cx.written.fanout)?;
    check_deadlines(cx, &cx.written.deadlines, cx.written.fanout.len())?;
    let [roots, aggregators, workers] = nodes(cx)?;
    // With one level this key may stand there all the same: trees are swept.
    let aggregate = match cx.written.aggregate {
        None if cx.written.fanout.len() > 1 => {
            let hint = "add `aggregate = ...`: one of fixed, proportional";
            return Err(cx.table.missing("aggregate", hint));
        }
        aggregate => aggregate.unwrap_or(Aggregate::Fixed),
    };
    let hint = "add `gap = \"10ms\"`, the pause after each query, or `query_rate = 100`, queries per \
         second of each root";
    cx.table.one_of(&["gap", "query_rate"], hint)?;
    let spec = Arc::new(QuerySpec {
        roots,
        aggregators,
        workers,
        fanout: std::mem::take(&mut cx.written.fanout),
        deadlines: std::mem::take(&mut cx.written.deadlines),
        placement: cx.written.placement,
        request: cx.written.asked.0,
        answer: drawn_sizes(cx, &MESSAGES)?,
        aggregate,
        compute: cx.written.compute(),
        arrivals: match cx.written.rate {
            Some(rate) => Arrivals::Poisson(1e12 / rate),
            None => Arrivals::Closed(cx.written.gap_kind.of(cx.written.pause.unwrap_or_default())),
        },
        start: cx.written.start,
        until: cx.until()?,
        queries: cx.written.most(),
        channel: cx.channel(),
        prio: cx.written.priority,
    });
    let requests = ["request", "request_distribution", "request_distribution_file"];
    let longest = vec![(spec.request, requests), (spec.longest_answer(), MESSAGES.keys)];
    let endless = cx.written.endless("a series of queries without `until` and `queries`");
    let part = Part::of_loop(
        &cx.written,
        Box::new(move |_| Ok(boxed(spec.apps()))),
        Box::new(|demand, _| demand.left_out += 1),
    );
    // Queries one after the other are an open loop, too: at its deadline one leaves behind what
    // is under way.
    Ok(Part { longest, endless, open_loop: true, ..part })
}

/// Check how many nodes each node asks, the root first.
fn check_fanout(cx: &Context<'_, '_>, fanout: &[u32]) -> Checked<()> {
    let product = fanout.iter().try_fold(1_u64, |all, &n| all.checked_mul(u64::from(n)));
    let possible = product.is_some_and(|workers| (1..=WORKERS_MAX).contains(&workers));
    if !fanout.is_empty() && fanout.len() <= LEVELS_MAX && possible {
        return Ok(());
    }
    let error = cx.table.error("fanout", "an impossible `fanout`", "no workers, or too many");
    Err(error.hint(format!(
        "how many each node asks, the root first, for example `[4, 10]`: at most {LEVELS_MAX} \
         levels and {WORKERS_MAX} workers"
    )))
}

/// Check how long each node waits, the root first.
fn check_deadlines(cx: &Context<'_, '_>, deadlines: &[Dur], levels: usize) -> Checked<()> {
    let message = if deadlines.len() != levels {
        format!("{} deadlines for {levels} levels", deadlines.len())
    } else if deadlines.last() == Some(&Dur::ZERO) || deadlines.windows(2).any(|d| d[0] <= d[1]) {
        "a deadline that no answer can meet".to_owned()
    } else {
        return Ok(());
    };
    Err(cx.table.error("deadlines", message, "here").hint(
        "one for each level that waits, the root first, as many as in `fanout`, each less than \
         the one before: for example `[\"250ms\", \"200ms\"]`",
    ))
}

/// The roots, aggregators and workers: enough of them, so that a node asks none twice and never
/// itself.
fn nodes(cx: &Context<'_, '_>) -> Checked<[Vec<HostId>; 3]> {
    let fanout = cx.written.fanout.as_slice();
    let roots = cx.members("roots", &cx.written.roots)?;
    let workers = cx.members("workers", &cx.written.workers)?;
    let aggregators = match &cx.written.aggregators {
        Some(set) => cx.members("aggregators", set)?,
        None if fanout.len() > 1 => {
            return Err(cx.table.missing("aggregators", "add `aggregators = ...` (hosts)"));
        }
        None => Vec::new(),
    };
    let enough = |key: &str, of: &[HostId], asked: &[u32], by: &[HostId]| {
        let others = of.len() - usize::from(by.iter().any(|host| of.contains(host)));
        let most = asked.iter().copied().max().unwrap_or(0);
        if others >= most as usize {
            return Ok(());
        }
        let message = format!("a node asks {most} `{key}`, and there are {others} beside itself");
        cx.table.fail(key, message, "too few", "more hosts, or a smaller `fanout`")
    };
    match fanout {
        [alone] => enough("workers", &workers, &[*alone], &roots)?,
        [first, inner @ .., last] => {
            enough("aggregators", &aggregators, &[*first], &roots)?;
            enough("aggregators", &aggregators, inner, &aggregators)?;
            enough("workers", &workers, &[*last], &aggregators)?;
        }
        [] => {}
    }
    Ok([roots, aggregators, workers])
}
