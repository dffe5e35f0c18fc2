//! The kinds whose messages are listed: flows between pairs of hosts, once or again and again.

use endpoint::{Purpose, UNBOUNDED};
use units::{Dur, HostId, Time};
use workload::matrix::{self, Pair};
use workload::{Flow, HostSet, Plan};

use super::ends::{ends, incast_pairs, possible};
use super::sizes::{MESSAGES, drawn_sizes, sizes};
use super::{Context, Part, Written, pairs};
use crate::diagnostic::Checked;
use crate::key::keys;

/// More flows than this do not fit into memory as a list.
const FLOWS_MAX: u32 = 16_000_000;

keys! { "traffic.flows" FLOWS: Written {
    start: Time, "when the messages are submitted".default("");
    start_spread: Dur,
        "each message is submitted this much later at most, drawn uniformly".default("");
    every (maybe every): Dur,
        "the same flows again at this interval, whether or not those before are done (a heartbeat); sizes \
         and `start_spread` are drawn anew".range("above 0; at most 16000000 flows in all")
            .default("once");
    until (maybe until when |w| w.every.is_some()): Time,
        "nothing is submitted at or after this".range("after `start`").default("required")
            .only("`every`");
}}

keys! { "traffic.flow" FLOW: Written {
    source: u32, "who sends".range("a host").written();
    destination: u32, "to whom".range("another host").written();
}}

keys! { "traffic.random" RANDOM: Written {
    flows (maybe flows): u32 [1..=FLOWS_MAX],
        "how many; flow i starts at source i modulo their number".default("as many as sources");
    flows_per_host (maybe flows_per_host): u32 [1..=FLOWS_MAX],
        "instead of `flows`; with `random_sources` on average"
            .range("1 to 16000000 over sources").default("");
    random_sources: bool,
        "the source of each flow is drawn, too: some hosts send several times, some not at all"
            .default("");
}}

keys! { "traffic.all-to-all" ALL_TO_ALL: Written {
    hosts: HostSet, "among whom".range("at least 2").default("");
}}

/// `kind = "flow"`: one message, from one host to another. With `every`, one again and again.
pub(super) fn flow(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let hosts = 0..=cx.topology.hosts() - 1;
    let source = cx.table.within("source", cx.written.source, hosts.clone())?;
    let destination = cx.table.within("destination", cx.written.destination, hosts)?;
    if source == destination {
        let message = format!("host {source} would send to itself");
        return cx.table.fail("destination", message, "the source, too", "name another host");
    }
    flows(cx, &[(HostId(source), HostId(destination))])
}

/// `kind = "permutation"`.
pub(super) fn permutation(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let share = pairs::share(cx)?;
    let part = flows(cx, share.pairs())?;
    Ok(Part { share: Some(share), ..part })
}

/// `kind = "random"`: as many flows as sources unless `flows` or `flows_per_host` says otherwise.
pub(super) fn random(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let (mut sources, to) = ends(cx)?;
    let hosts = sources.len() as u32;
    cx.table.at_most_one(&["flows_per_host", "flows"])?;
    let count = match cx.written.flows_per_host {
        Some(n) => cx.table.within("flows_per_host", n, 1..=FLOWS_MAX / hosts)? * hosts,
        None => cx.written.flows.unwrap_or(hosts),
    };
    if cx.written.random_sources {
        sources = matrix::random_sources(&sources, count, cx.draw);
    }
    let pairs = matrix::random_pairs(&sources, &to, count, cx.draw);
    let pairs = possible(cx, "sources", pairs)?;
    flows(cx, &pairs)
}

/// `kind = "incast"`.
pub(super) fn incast(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let pairs = incast_pairs(cx)?;
    flows(cx, &pairs)
}

/// `kind = "all-to-all"`.
pub(super) fn all_to_all(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let hosts = cx.members("hosts", &cx.written.hosts)?;
    let pairs = possible(cx, "hosts", matrix::all_to_all(&hosts))?;
    flows(cx, &pairs)
}

/// One flow per pair: its size, its start, its priority. With `every`, the same again and again.
fn flows(cx: &mut Context<'_, '_>, pairs: &[Pair]) -> Checked<Part> {
    const SIZE: Purpose = Purpose::new("scenario: flow size");
    const START: Purpose = Purpose::new("scenario: flow start");
    let rounds = rounds(cx, pairs.len())?;
    let prio = cx.written.priority;
    let sizes = match cx.written.every {
        Some(_) => Some(drawn_sizes(cx, &MESSAGES)?),
        None => sizes(cx, &MESSAGES, " or \"unbounded\"")?,
    };
    let mut flows = Vec::with_capacity(rounds.len() * pairs.len());
    let all = rounds.iter().flat_map(|&round| pairs.iter().map(move |&pair| (round, pair)));
    for (i, (round, (src, dst))) in (0..).zip(all) {
        let len = sizes.as_ref().map_or(UNBOUNDED, |s| s.sample(cx.draw.unit(SIZE, i)));
        let later = match cx.written.start_spread {
            Dur::ZERO => Dur::ZERO,
            spread => Dur(cx.draw.below(START, i, spread.0)),
        };
        flows.push(Flow { prio, ..Flow::at(round.saturating_add(later), src, dst, len) });
    }
    Ok(Part::of_plan(Plan { flows, triggers: Vec::new() }))
}

/// When `flows` flows are submitted, from `start`: once, or `every` so often before `until`.
fn rounds(cx: &Context<'_, '_>, flows: usize) -> Checked<Vec<Time>> {
    let start = cx.written.start;
    let Some(period) = cx.written.every else { return Ok(vec![start]) };
    if cx.written.until.is_none() {
        return Err(cx.table.missing("until", "say until when, `until = \"20s\"`"));
    }
    let span = cx.until()?.since(start);
    let most = u64::from(FLOWS_MAX) / (flows as u64).max(1);
    match span.0.checked_sub(1).and_then(|last| last.checked_div(period.0)) {
        Some(last) if last < most => {
            Ok((0..=last).map(|n| start.saturating_add(Dur(n * period.0))).collect())
        }
        _ => {
            let message = format!("more than {FLOWS_MAX} flows");
            cx.table.fail("every", message, "too often", "a longer time")
        }
    }
}
