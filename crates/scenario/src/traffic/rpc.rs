//! `kind = "rpc"`: calls, each a request and its response.

use std::path::PathBuf;
use std::sync::Arc;

use endpoint::App;
use units::{Dur, HostId};
use workload::{Arrivals, RESPONSE_MAX, Rpc, RpcSpec};

use super::ends::senders;
use super::loops::{LOADS, gap_of_load};
use super::sizes::{Length, REQUESTS, RESPONSES, drawn_sizes};
use super::{Context, GapKind, Part, Written};
use crate::check::demand::{Load, Loop};
use crate::diagnostic::Checked;
use crate::key::keys;
use crate::value::choices;

keys! { "traffic.rpc" RPC: Written {
    request (get |w| w.request.size.flatten(), set |w, v| w.request.size = Some(Some(v))): Length,
        "size of every request"
        .range("1 B to 10^15 B").default("one of the three is required");
    request_distribution (maybe request.distribution): String,
        "as `distribution`, for requests".default("");
    request_distribution_file (maybe request.file): PathBuf,
        "as `distribution_file`, for requests".default("");
    response (get |w| w.response.size.flatten(), set |w, v| w.response.size = Some(Some(v))): Length,
        "size of every response"
        .range("1 B to 1.1 TB").default("one of the three is required");
    response_distribution (maybe response.distribution): String,
        "as `distribution`, for responses, drawn by the client".default("");
    response_distribution_file (maybe response.file): PathBuf,
        "as `distribution_file`, for responses".default("");
    outstanding (maybe outstanding): u32 [1..=65_536],
        "closed loop: calls that each client keeps in flight"
            .default("this, `load` or `call_rate` is required");
    gap (gap when |w| w.outstanding.is_some()): Dur,
        "pause before each call, the first included, from the end of the one before"
            .written().only("`outstanding`");
    gap_kind (gap_kind when |w| w.outstanding.is_some()): GapKind,
        "whether `gap` is the pause or its mean".written().only("`outstanding`");
    load (maybe load): f64 [LOADS],
        "open loop (Poisson): payload of requests and responses together that each client causes, \
         over the rate of host 0's link. If all hosts are clients and servers alike, that is the \
         load of their links in each direction".default("");
    call_rate (maybe rate): f64 [0.001..=1e9],
        "open loop: calls per second of each client".default("");
    draw_server: Draws,
        "how often each of the `outstanding` series, or the client, draws its server among the \
         `destinations`".written();
    calls (maybe most): u64 [1..=i64::MAX as u64],
        "each client calls at most this often".range("at least 1").default("none");
}}

/// How often a series of calls draws its server.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Draws {
    #[default]
    Once,
    EveryCall,
}

choices!(Draws, "once" => Draws::Once, "every-call" => Draws::EveryCall);

/// `kind = "rpc"`. The `sources` call the `destinations`.
pub(super) fn rpc(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let clients = senders(cx)?;
    let requests = drawn_sizes(cx, &REQUESTS)?;
    let responses = drawn_sizes(cx, &RESPONSES)?;
    if responses.range().1 > RESPONSE_MAX {
        let key = cx.table.likeliest(&["response", "response_distribution"]).unwrap_or("kind");
        let message = format!("a response of more than {RESPONSE_MAX} bytes");
        return cx.table.fail(key, message, "too large", "smaller responses");
    }
    let arrivals = arrivals(cx, requests.mean() + responses.mean())?;
    let longest = vec![(requests.largest(), REQUESTS.keys), (responses.largest(), RESPONSES.keys)];
    let spec = Arc::new(RpcSpec {
        requests,
        responses,
        compute: cx.written.compute(),
        arrivals,
        slots: cx.written.outstanding.unwrap_or(1),
        keep_server: cx.written.draw_server == Draws::Once,
        start: cx.written.start,
        until: cx.until()?,
        calls: cx.written.most(),
        channel: cx.channel(),
        prio: cx.written.priority,
    });
    let (asking, calling) = (Arc::clone(&spec), clients.clone());
    let looped = Loop {
        connections: f64::from(spec.slots) * clients.len() as f64,
        size: (spec.requests.mean() + spec.responses.mean()) / 2.0,
        gap: cx.written.gap + cx.written.compute.unwrap_or_default(),
    };
    let part = Part::of_loop(
        &cx.written,
        Box::new(move |hosts| {
            let mut servers = vec![None; hosts as usize];
            clients.iter().for_each(|(host, to)| servers[host.index()] = Some(to.clone()));
            let app = |to| Box::new(Rpc::new(Arc::clone(&spec), to)) as Box<dyn App>;
            Ok((0..hosts).map(HostId).zip(servers.into_iter().map(app)).collect())
        }),
        Box::new(move |demand, topology| {
            let Arrivals::Poisson(gap_ps) = asking.arrivals else {
                let mut answers = Load::new(topology);
                answers.spread(topology, &calling, f64::from(asking.slots));
                demand.flows.answer(&answers);
                return demand.loops.push(looped.clone());
            };
            let per_s = 1e12 / gap_ps;
            demand.open_loop(topology, &calling, (per_s, &asking.requests, false));
            demand.open_loop(topology, &calling, (per_s, &asking.responses, true));
        }),
    );
    let endless = cx.written.endless("a series of calls without `until` and `calls`");
    Ok(Part { longest, endless, open_loop: cx.written.outstanding.is_none(), ..part })
}

/// When a client calls: exactly one of `outstanding` (a closed loop, with its `gap`), `load` and
/// `call_rate` (open ones). A call moves `bytes` bytes on average.
fn arrivals(cx: &Context<'_, '_>, bytes: f64) -> Checked<Arrivals> {
    let hint = "add `outstanding = 4`, calls that each client keeps in flight, `load = 0.6`, or \
         `call_rate = 1000`, calls per second of each client";
    cx.table.one_of(&["outstanding", "load", "call_rate"], hint)?;
    Ok(match (cx.written.load, cx.written.rate) {
        (Some(load), _) => Arrivals::Poisson(gap_of_load(cx, load, bytes)?),
        (None, Some(rate)) => Arrivals::Poisson(1e12 / rate),
        (None, None) => Arrivals::Closed(cx.written.gap_kind.of(cx.written.gap)),
    })
}
