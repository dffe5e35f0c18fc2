//! The kinds that submit one message after another: `poisson`, whatever is under way, and
//! `closed-loop`, when the one before is over.

use std::sync::Arc;

use units::{Dur, Rate, Time};
use workload::{
    ClosedLoop, ClosedLoopSpec, Destinations, Poisson, PoissonSpec, SizeDist, arrivals,
};

use super::ends::senders;
use super::pairs::{self, PAIRS};
use super::sizes::{MESSAGES, drawn_sizes};
use super::{Context, GapKind, Part, SENDERS, SOURCES, TO, Written, each};
use crate::check::demand::Loop;
use crate::diagnostic::Checked;
use crate::key::keys;
use crate::value::choices;

keys! { "traffic.poisson" POISSON: Written {
    matrix (matrix when |w| !w.shared): Matrix,
        "whether each message draws its destination, or each host has one".default("")
            .only("no table whose pairs it shares");
    load (maybe load): f64 [LOADS],
        "payload that each sending host offers, over the rate of host 0's link"
            .default("this or `message_rate` is required");
    message_rate (maybe rate): f64 [0.001..=1e12],
        "messages per second of the whole network, each from a source drawn anew".default("");
    until (maybe until): Time, "nothing is submitted at or after this"
        .range("after 0").default("none");
}}

keys! { "traffic.closed-loop" CLOSED_LOOP: Written {
    connections: u32 [1..=65_536], "per host, each with at most one message in flight".written();
    gap: Dur, "pause before each message, the first included".written();
    gap_kind: GapKind, "whether `gap` is the pause or its mean".written();
    keep_destination: bool,
        "a connection draws its destination once, not for each message".written();
}}

/// What can be offered of the capacity of a host's link.
pub(super) const LOADS: std::ops::RangeInclusive<f64> = 0.0001..=10.0;

/// Between whom messages go.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Matrix {
    #[default]
    Random,
    Permutation,
}

choices!(Matrix, "random" => Matrix::Random, "permutation" => Matrix::Permutation);

/// `kind = "poisson"`. Open loop, under way from time zero, so that what is measured is drained
/// under continuing load unless `until` is written.
pub(super) fn poisson(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let (senders, share) = if cx.written.matrix == Matrix::Permutation || cx.written.shared {
        for (_, keys) in [SOURCES, SENDERS, TO] {
            cx.table.without(keys, "destinations that are drawn: `matrix = \"random\"`");
        }
        cx.table.keys(PAIRS.1, &mut cx.written, None)?;
        let share = pairs::share(cx)?;
        let to = |dst| Destinations::among(vec![dst]);
        let senders = share.pairs().iter().map(|&(src, dst)| (src, to(dst))).collect();
        (senders, Some(share))
    } else {
        cx.table.without(PAIRS.1, "`matrix = \"permutation\"`");
        for (_, keys) in [SOURCES, SENDERS, TO] {
            cx.table.keys(keys, &mut cx.written, None)?;
        }
        cx.table.complete(&[])?;
        (senders(cx)?, None)
    };
    let sizes = drawn_sizes(cx, &MESSAGES)?;
    let mean_gap_ps = mean_gap_ps(cx, &sizes, senders.len())?;
    let (until, prio) = (cx.until()?, cx.written.priority);
    let longest = vec![(sizes.largest(), MESSAGES.keys)];
    let endless = cx.written.endless("Poisson traffic without `until`");
    let per_s = 1e12 / mean_gap_ps;
    let spec = Arc::new(PoissonSpec { mean_gap_ps, sizes, until, prio });
    let (asking, asked) = (senders.clone(), Arc::clone(&spec));
    let part = Part::of_loop(
        &cx.written,
        Box::new(move |_| Ok(each(&senders, |to| Box::new(Poisson::new(Arc::clone(&spec), to))))),
        Box::new(move |demand, topology| {
            demand.open_loop(topology, &asking, (per_s, &asked.sizes, false));
        }),
    );
    Ok(Part { longest, endless, share, open_loop: true, ..part })
}

/// The mean time between two pieces of work of a host, each of which has `bytes` bytes of payload
/// on average, that offer `load`: relative to a host's own link, that of host 0, whose number is
/// also its link's.
pub(super) fn gap_of_load(cx: &Context<'_, '_>, load: f64, bytes: f64) -> Checked<f64> {
    let rate = cx.topology.links().first().map_or(Rate(0), |link| link.rate);
    arrivals::mean_gap_ps(load, rate, bytes)
        .ok_or_else(|| cx.table.error("load", "this load cannot be offered", "here"))
}

/// The mean time between two messages of one of `senders` hosts, from exactly one of `load` and
/// `message_rate`.
///
/// A Poisson process of which each arrival is at a host drawn anew is the same as an independent
/// process at each host, of a rate that is its share (superposition). So the rate of the whole
/// network is divided, and no host has to know of the others.
fn mean_gap_ps(cx: &Context<'_, '_>, sizes: &SizeDist, senders: usize) -> Checked<f64> {
    let hint = "add `load = 0.6`, of each host's link, or `message_rate = 256`, messages per second of \
         all sources together";
    cx.table.one_of(&["load", "message_rate"], hint)?;
    match cx.written.load {
        Some(load) => gap_of_load(cx, load, sizes.mean()),
        None => Ok(senders as f64 * 1e12 / cx.written.rate.unwrap_or(1.0)),
    }
}

/// `kind = "closed-loop"`.
pub(super) fn closed_loop(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let senders = senders(cx)?;
    let sizes = drawn_sizes(cx, &MESSAGES)?;
    let longest = vec![(sizes.largest(), MESSAGES.keys)];
    let Written { connections, keep_destination, priority: prio, .. } = cx.written;
    let (gap, until) = (cx.written.gap_kind.of(cx.written.gap), Time::NEVER);
    let spec = ClosedLoopSpec { connections, sizes, gap, keep_destination, until, prio };
    let (spec, asking) = (Arc::new(spec), senders.clone());
    let all = f64::from(connections) * senders.len() as f64;
    let asked = Loop { connections: all, size: spec.sizes.mean(), gap: cx.written.gap };
    let part = Part::of_loop(
        &cx.written,
        Box::new(move |_| {
            Ok(each(&senders, |to| Box::new(ClosedLoop::new(Arc::clone(&spec), to))))
        }),
        Box::new(move |demand, topology| {
            demand.flows.spread(topology, &asking, f64::from(connections));
            demand.loops.push(asked.clone());
        }),
    );
    Ok(Part { longest, endless: Some("a closed loop"), ..part })
}
