//! In-band telemetry: a switch port writes what it knows of itself into packets that ask for it, as they begin to
//! leave (`wire::int`). That is a moment that somebody else hears of, so departures are events where it is used, and every
//! packet goes the long way into its queue ([`queues::Queue::in_shared_buffer`]).

use endpoint::Flags;
use wire::int::{self, Hop};

use crate::part::Part;

impl<const WATCHED: bool> Part<WATCHED> {
    /// The packet in service at the switch port of `link` begins to leave now. A port writes its time, the bytes that it has
    /// sent before the packet and those that wait behind it; nothing if its line has a rate without a code.
    pub(crate) fn stamp(&mut self, link: u32) {
        if !self.world.config.telemetry {
            return;
        }
        let port = &self.ports[link as usize];
        let Some(packet) = port.serving().filter(|packet| packet.flags.has(Flags::INT)) else {
            return;
        };
        let len = u64::from(packet.len);
        let behind = u64::from(port.queued_bytes()) - len;
        let Some(hop) = Hop::new(port.rate(), self.now, port.bytes - len, behind) else { return };
        let pkt = &mut self.slab[packet.handle];
        let used = usize::from(pkt.hdr_len).min(pkt.hdr.len());
        int::push(&mut pkt.hdr[..used], hop);
    }
}
