//! `kind = "barrier"`: blocks of parts from many senders, one after the other.

use std::sync::Arc;

use units::{Bytes, Dur, HostId, Rate};
use workload::{BarrierSpec, window_share};

use super::sizes::fixed_size;
use super::{Context, LONGEST, Part, channel, incast_pairs, span};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// The greatest rate: as that of links.
const FASTEST: Rate = Rate(100_000_000_000_000);

/// `kind = "barrier"`.
pub(super) fn barrier(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    let pairs = incast_pairs(table, context)?;
    let receiver = HostId(table.need("receiver")?);
    let mut hosts: Vec<HostId> = pairs.iter().map(|&(sender, _)| sender).collect();
    hosts.sort_unstable();
    let senders = parts(table, &hosts)?;
    let request_latency = table.need("request_latency")?;
    table.within("request_latency", request_latency, Dur(1)..=LONGEST)?;
    let request_gap = table.need("request_gap")?;
    table.within("request_gap", request_gap, Dur::ZERO..=LONGEST)?;
    let channel = channel(table, context)?;
    let (start, until, blocks) = span(table, "blocks")?;
    let window = window(table, hosts.len() as u32)?;
    let prio = table.or("priority", 0)?;
    let spec = BarrierSpec {
        receiver,
        senders,
        request_latency,
        request_gap,
        channel,
        start,
        until,
        blocks,
        window,
        prio,
    };
    Ok(Part::Barrier(Arc::new(spec)))
}

/// What each sender sends of a block: `size`, or its part of `block`.
fn parts(table: &mut Reader<'_>, hosts: &[HostId]) -> Result<Vec<(HostId, u64)>, Diagnostic> {
    let block = fixed_size(table, "block")?;
    let size = fixed_size(table, "size")?;
    match (size, block) {
        (Some(size), None) => Ok(hosts.iter().map(|&host| (host, size)).collect()),
        (None, Some(block)) if block >= hosts.len() as u64 => Ok(BarrierSpec::split(hosts, block)),
        (None, Some(block)) => {
            let message = format!("a block of {block} bytes for {} senders", hosts.len());
            let error = table.error("block", message, "less than a byte each");
            Err(error.hint("a larger block, or fewer senders"))
        }
        (Some(_), Some(_)) => {
            let message = "`size` and `block` exclude each other";
            Err(table.error("block", message, "one too many").hint("remove one of them"))
        }
        (None, None) => {
            let hint = "add `size = \"256KiB\"`, what each sender sends, or `block`, what all send";
            Err(table.missing("size", hint))
        }
    }
}

/// The greatest window of a connection, bytes on the wire.
fn window(table: &mut Reader<'_>, senders: u32) -> Result<u64, Diagnostic> {
    let kinds = [("none", false), ("dynamic", true)];
    let &(_, capped) = table.choose("cap", &kinds, |kind| kind.0)?;
    if !capped {
        return Ok(u64::MAX);
    }
    let rate = table.need("cap_rate")?;
    table.within("cap_rate", rate, Rate(1)..=FASTEST)?;
    let rtt = table.need("cap_rtt")?;
    table.within("cap_rtt", rtt, Dur::ZERO..=LONGEST)?;
    let queue: Bytes = table.need("cap_queue")?;
    let senders = table.or("cap_senders", senders)?;
    table.within("cap_senders", senders, 1..=u32::MAX)?;
    Ok(window_share(rate, rtt, queue, senders))
}
