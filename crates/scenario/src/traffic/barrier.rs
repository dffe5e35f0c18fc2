//! `kind = "barrier"`: blocks of parts from many senders, one after the other.

use std::sync::Arc;

use units::{Bytes, Dur, HostId, Rate};
use workload::{BarrierSpec, window_share};

use super::ends::incast_pairs;
use super::sizes::Length;
use super::{Context, LONGEST, Part, Written, boxed};
use crate::check::demand::Loop;
use crate::diagnostic::Checked;
use crate::key::keys;
use crate::value::choices;

/// The greatest rate: as that of links.
const FASTEST: Rate = Rate(100_000_000_000_000);

keys! { "traffic.barrier" BARRIER: Written {
    size (maybe part): Length,
        "what each sender sends of a block (the server request unit)"
            .range("1 B to 10^15 B").default("this or `block` is required");
    block (maybe block): Length,
        "what all of them send together, in equal parts; of bytes that remain, the first senders \
         send one each".range("a byte per sender to 10^15 B").default("");
    request_latency: Dur [Dur(1)..=LONGEST],
        "from the request of a block until the first sender is asked; from the end of a block, \
         too, therefore".written();
    request_gap: Dur [Dur::ZERO..=LONGEST],
        "the senders are asked in an order drawn for each block, each so much after the one \
         before; 0: at once, in that order".written();
    blocks (maybe most): u64 [1..=i64::MAX as u64],
        "at most this many blocks".range("at least 1").default("none");
    cap: Cap,
        "`dynamic`: the window of each connection is at most its share of pipe and buffer, \
         (`cap_rate` x `cap_rtt` + `cap_queue`) / `cap_senders`, bytes on the wire, rounded down \
         to whole segments, at least one. The transport's own rules go on below it. TCP only"
            .written();
    cap_rate (cap_rate when Written::is_capped): Rate [Rate(1)..=FASTEST],
        "rate of the bottleneck".written().only(DYNAMIC);
    cap_rtt (cap_rtt when Written::is_capped): Dur [Dur::ZERO..=LONGEST],
        "round trip without queues".written().only(DYNAMIC);
    cap_queue (cap_queue when Written::is_capped): Bytes,
        "buffer of the bottleneck, bytes on the wire".written().only(DYNAMIC);
    cap_senders (maybe cap_senders when Written::is_capped): u32 [1..=u32::MAX],
        "how many share it".range("at least 1").default("`senders`").only(DYNAMIC);
}}

const DYNAMIC: &str = "`cap = \"dynamic\"`";

/// What bounds the windows of connections.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Cap {
    #[default]
    None,
    Dynamic,
}

choices!(Cap, "none" => Cap::None, "dynamic" => Cap::Dynamic);

impl Written {
    fn is_capped(&self) -> bool {
        self.cap == Cap::Dynamic
    }
}

/// `kind = "barrier"`.
pub(super) fn barrier(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let pairs = incast_pairs(cx)?;
    let mut hosts: Vec<HostId> = pairs.iter().map(|&(sender, _)| sender).collect();
    hosts.sort_unstable();
    let senders = parts(cx, &hosts)?;
    let spec = Arc::new(BarrierSpec {
        receiver: HostId(cx.written.receiver),
        request_latency: cx.written.request_latency,
        request_gap: cx.written.request_gap,
        channel: cx.channel(),
        start: cx.written.start,
        until: cx.until()?,
        blocks: cx.written.most(),
        window: window(&cx.written, hosts.len() as u32),
        prio: cx.written.priority,
        senders,
    });
    let longest = spec.senders.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let asking = Arc::clone(&spec);
    let part = Part::of_loop(
        &cx.written,
        Box::new(move |_| Ok(boxed(spec.apps()))),
        Box::new(move |demand, topology| {
            for &(sender, bytes) in &asking.senders {
                demand.flows.pair(topology, sender, asking.receiver, 1.0);
                let (size, gap) = (bytes as f64, asking.request_latency);
                demand.loops.push(Loop { connections: 1.0, size, gap });
            }
        }),
    );
    Ok(Part {
        longest: vec![(longest, ["size", "block", "size"])],
        endless: cx.written.endless("a barrier without `until` and `blocks`"),
        capped: cx.written.is_capped(),
        ..part
    })
}

/// What each sender sends of a block: `size`, or its part of `block`.
fn parts(cx: &Context<'_, '_>, hosts: &[HostId]) -> Checked<Vec<(HostId, u64)>> {
    let hint = "add `size = \"256KiB\"`, what each sender sends, or `block`, what all send";
    cx.table.one_of(&["size", "block"], hint)?;
    if let Some(Length(size)) = cx.written.part {
        return Ok(hosts.iter().map(|&host| (host, size)).collect());
    }
    let block = cx.written.block.map_or(0, |Length(block)| block);
    if block < hosts.len() as u64 {
        let message = format!("a block of {block} bytes for {} senders", hosts.len());
        let error = cx.table.error("block", message, "less than a byte each");
        return Err(error.hint("a larger block, or fewer senders"));
    }
    Ok(BarrierSpec::split(hosts, block))
}

/// The greatest window of a connection, bytes on the wire.
fn window(written: &Written, senders: u32) -> u64 {
    let &Written { cap_rate, cap_rtt, cap_queue, .. } = written;
    let senders = written.cap_senders.unwrap_or(senders);
    if written.is_capped() { window_share(cap_rate, cap_rtt, cap_queue, senders) } else { u64::MAX }
}
