//! `kind = "rpc"`: calls, each a request and its response.

use std::sync::Arc;

use units::Dur;
use workload::{Arrivals, RESPONSE_MAX, RpcSpec};

use super::poisson::gap_of_load;
use super::sizes::{REQUESTS, RESPONSES, drawn_sizes_of};
use super::{Context, Part, channel, compute, gap_kind, senders, span};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// `kind = "rpc"`. The `sources` call the `destinations`.
pub(super) fn rpc(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let clients = senders(table, context)?;
    let requests = drawn_sizes_of(table, context, &REQUESTS)?;
    let responses = drawn_sizes_of(table, context, &RESPONSES)?;
    if responses.range().1 > RESPONSE_MAX {
        let key = table.likeliest(&["response", "response_distribution"]).unwrap_or("kind");
        let message = format!("a response of more than {RESPONSE_MAX} bytes");
        return Err(table.error(key, message, "too large").hint("smaller responses"));
    }
    let compute = compute(table)?;
    let (arrivals, slots) = pace(table, context, requests.mean() + responses.mean())?;
    let kinds = [("once", true), ("every-call", false)];
    let &(_, keep_server) = table.choose("draw_server", &kinds, |kind| kind.0)?;
    let channel = channel(table, context)?;
    let (start, until, calls) = span(table, "calls")?;
    let prio = table.or("priority", 0)?;
    let spec = RpcSpec {
        requests,
        responses,
        compute,
        arrivals,
        slots,
        keep_server,
        start,
        until,
        calls,
        channel,
        prio,
    };
    Ok(Part::Calls(Arc::new(spec), clients))
}

/// When a client calls, and how many calls it keeps under way: exactly one of `outstanding` (a
/// closed loop, with its `gap`), `load` and `call_rate` (open ones). A call moves `bytes` bytes on
/// average.
fn pace(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    bytes: f64,
) -> Result<(Arrivals, u32), Diagnostic> {
    const KEYS: [&str; 3] = ["outstanding", "load", "call_rate"];
    let given: Vec<&str> = KEYS.into_iter().filter(|key| table.has(key)).collect();
    if let [first, second, ..] = given.as_slice() {
        let message = format!("`{first}` and `{second}` exclude each other");
        return Err(table.error(second, message, "one too many").hint("remove one of them"));
    }
    if let Some(slots) = table.maybe::<u32>("outstanding")? {
        table.within("outstanding", slots, 1..=65_536)?;
        let gap: Dur = table.need("gap")?;
        return Ok((Arrivals::Closed(gap_kind(table, "gap_kind", gap)?), slots));
    }
    if let Some(load) = table.maybe::<f64>("load")? {
        return Ok((Arrivals::Poisson(gap_of_load(table, context, load, bytes)?), 1));
    }
    if let Some(rate) = table.maybe::<f64>("call_rate")? {
        table.within("call_rate", rate, 0.001..=1e9)?;
        return Ok((Arrivals::Poisson(1e12 / rate), 1));
    }
    let hint = "add `outstanding = 4`, calls that each client keeps under way, `load = 0.6`, or \
                `call_rate = 1000`, calls per second of each client";
    Err(table.missing("outstanding", hint))
}
