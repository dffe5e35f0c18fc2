//! In-band telemetry: a switch port writes what it knows of itself into packets that ask for it, as
//! they begin to leave (`wire::int`). Where it is used, departures are events, because another
//! entity learns of that moment, and every packet goes the long way into its queue
//! ([`queues::Queue::in_shared_buffer`]).

use endpoint::Flags;
use units::Time;
use wire::int::{self, Hop};

use crate::port::Port;
use crate::slab::Slab;

/// The packet in service at a switch port begins to leave `now`. The port writes its time, the bytes
/// that it has sent before the packet and those that wait behind it; nothing if its line has a rate
/// without a code.
pub(crate) fn stamp(port: &Port, now: Time, slab: &mut Slab) {
    let Some(packet) = port.serving().filter(|packet| packet.flags.has(Flags::INT)) else {
        return;
    };
    let len = u64::from(packet.len);
    let behind = u64::from(port.queued_bytes()) - len;
    let Some(hop) = Hop::new(port.rate(), now, port.bytes - len, behind) else { return };
    let pkt = &mut slab[packet.handle];
    let used = usize::from(pkt.hdr_len).min(pkt.hdr.len());
    int::push(&mut pkt.hdr[..used], hop);
}
