//! Frames of flow control, as events carry them.

use endpoint::{Flags, Packet};
use units::{HostId, Time};

use crate::digest;

/// What a frame says, in the word that an event has room for. Not zero: it names a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame(pub(crate) u32);

impl Frame {
    /// Of `classes`, those in `stop` stop; the others resume. Behind the port that sends it are
    /// `depth` pauses in a row; see [`crate::PauseStats::depth`].
    pub(super) fn new(classes: u8, stop: u8, depth: u8) -> Self {
        Self(u32::from_le_bytes([classes, stop & classes, depth, 0]))
    }

    /// Bit c: it says something of class c.
    pub(crate) fn classes(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// Bit c: class c stops.
    pub(crate) fn stop(self) -> u8 {
        self.0.to_le_bytes()[1]
    }

    pub(super) fn depth(self) -> u8 {
        self.0.to_le_bytes()[2]
    }

    /// One more link of a digest's chain.
    pub(super) fn chain(self, chain: u64, now: Time, outcome: digest::Outcome) -> u64 {
        // Without the depth: it is counted along, not said.
        let key = u64::from(self.stop()) << 8 | u64::from(self.classes());
        digest::chain(chain, now.0, key, outcome)
    }

    /// As it is on link number `link`: not a packet between hosts, but the whole Ethernet frame in
    /// the place of a header.
    pub(super) fn packet(self, link: u32, quanta: u16) -> Packet {
        let mut times = [0; 8];
        for (class, time) in (0..8).zip(&mut times) {
            *time = if self.stop() & 1 << class != 0 { quanta } else { 0 };
        }
        let repr = wire::pfc::Repr { source: link, classes: self.classes(), quanta: times };
        let mut pkt = Packet { wire_len: wire::pfc::WIRE_LEN, ..Packet::EMPTY };
        (pkt.src, pkt.dst) = (HostId(u32::MAX), HostId(u32::MAX));
        pkt.flags = Flags::CONTROL;
        pkt.put_header(&repr.to_bytes());
        pkt
    }
}
