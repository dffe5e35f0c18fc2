//! `kind = "partition-aggregate"`: queries over a tree of hosts, with a deadline at each level.

use std::sync::Arc;

use units::{Dur, HostId};
use workload::{
    Aggregate, Arrivals, HostSet, LEVELS_MAX, Placement, QuerySpec, SizeDist, WORKERS_MAX,
};

use super::sizes::{drawn_sizes, fixed_size};
use super::{Context, Part, channel, compute, gap_kind, members, span};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// `kind = "partition-aggregate"`.
pub(super) fn partition_aggregate(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    let fanout = fanout(table)?;
    let deadlines = deadlines(table, fanout.len())?;
    let nodes = nodes(table, context, &fanout)?;
    let kinds = [("drawn", Placement::Drawn), ("in-order", Placement::InOrder)];
    let &(_, placement) = table.choose("placement", &kinds, |kind| kind.0)?;
    let (request, answer) = sizes(table, context)?;
    let kinds = [("fixed", Aggregate::Fixed), ("proportional", Aggregate::Proportional)];
    // With one level these keys may stand there all the same: trees are swept.
    let aggregate = match fanout.len() {
        1 if !table.has("aggregate") => Aggregate::Fixed,
        _ => table.choose("aggregate", &kinds, |kind| kind.0)?.1,
    };
    let compute = compute(table)?;
    let arrivals = arrivals(table)?;
    let channel = channel(table, context)?;
    let (start, until, queries) = span(table, "queries")?;
    let prio = table.or("priority", 0)?;
    let Nodes { roots, aggregators, workers } = nodes;
    Ok(Part::Queries(Arc::new(QuerySpec {
        roots,
        aggregators,
        workers,
        fanout,
        deadlines,
        placement,
        request,
        answer,
        aggregate,
        compute,
        arrivals,
        start,
        until,
        queries,
        channel,
        prio,
    })))
}

/// How many nodes each node asks, the root first.
fn fanout(table: &mut Reader<'_>) -> Result<Vec<u32>, Diagnostic> {
    let fanout: Vec<u32> = table.need("fanout")?;
    let product = fanout.iter().try_fold(1_u64, |all, &n| all.checked_mul(u64::from(n)));
    let possible = product.is_some_and(|workers| (1..=WORKERS_MAX).contains(&workers));
    if fanout.is_empty() || fanout.len() > LEVELS_MAX || !possible {
        let message = "an impossible `fanout`";
        let error = table.error("fanout", message, "no workers, or too many");
        return Err(error.hint(format!(
            "how many each node asks, the root first, for example `[4, 10]`: at most {LEVELS_MAX} \
             levels and {WORKERS_MAX} workers"
        )));
    }
    Ok(fanout)
}

/// How long each node waits, the root first.
fn deadlines(table: &mut Reader<'_>, levels: usize) -> Result<Vec<Dur>, Diagnostic> {
    let deadlines: Vec<Dur> = table.need("deadlines")?;
    let hint = "one for each level that waits, the root first, as many as in `fanout`, each less \
                than the one before: for example `[\"250ms\", \"200ms\"]`";
    if deadlines.len() != levels {
        let message = format!("{} deadlines for {levels} levels", deadlines.len());
        return Err(table.error("deadlines", message, "here").hint(hint));
    }
    if deadlines.last() == Some(&Dur::ZERO) || deadlines.windows(2).any(|d| d[0] <= d[1]) {
        let message = "a deadline that no answer can meet";
        return Err(table.error("deadlines", message, "here").hint(hint));
    }
    Ok(deadlines)
}

struct Nodes {
    roots: Vec<HostId>,
    aggregators: Vec<HostId>,
    workers: Vec<HostId>,
}

/// The hosts of each role: enough of them, so that a node asks none twice and never itself.
fn nodes(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    fanout: &[u32],
) -> Result<Nodes, Diagnostic> {
    let has_aggregators = table.has("aggregators");
    let mut named = |key: &'static str| {
        let set: HostSet = table.need(key)?;
        members(table, key, &set, context)
    };
    let (roots, workers) = (named("roots")?, named("workers")?);
    let aggregates = fanout.len() > 1 || has_aggregators;
    let aggregators = if aggregates { named("aggregators")? } else { Vec::new() };
    let enough = |key: &str, of: &[HostId], asked: &[u32], by: &[HostId]| {
        let others = of.len() - usize::from(by.iter().any(|host| of.contains(host)));
        let most = asked.iter().copied().max().unwrap_or(0);
        if others >= most as usize {
            return Ok(());
        }
        let message = format!("a node asks {most} `{key}`, and there are {others} beside itself");
        Err(table.error(key, message, "too few").hint("more hosts, or a smaller `fanout`"))
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
    Ok(Nodes { roots, aggregators, workers })
}

/// The size of a request, and those of answers.
fn sizes(table: &mut Reader<'_>, context: &Context<'_>) -> Result<(u64, SizeDist), Diagnostic> {
    let Some(request) = fixed_size(table, "request")? else {
        return Err(table.missing("request", "add `request = \"1600B\"`"));
    };
    Ok((request, drawn_sizes(table, context)?))
}

/// Exactly one of `gap` (a closed loop) and `query_rate` (an open one).
fn arrivals(table: &mut Reader<'_>) -> Result<Arrivals, Diagnostic> {
    match (table.maybe::<Dur>("gap")?, table.maybe::<f64>("query_rate")?) {
        (Some(gap), None) => Ok(Arrivals::Closed(gap_kind(table, "gap_kind", gap)?)),
        (None, Some(rate)) => {
            table.within("query_rate", rate, 0.001..=1e9)?;
            Ok(Arrivals::Poisson(1e12 / rate))
        }
        (Some(_), Some(_)) => {
            let message = "`gap` and `query_rate` exclude each other";
            Err(table.error("query_rate", message, "one too many").hint("remove one of them"))
        }
        (None, None) => {
            let hint = "add `gap = \"10ms\"`, the pause after each query, or `query_rate = 100`, \
                        queries per second of each root";
            Err(table.missing("gap", hint))
        }
    }
}
