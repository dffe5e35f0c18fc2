//! The law of exact instants (docs/nic.md, "Timing and order"): ticks are picoseconds, and the
//! arbiter chooses as a packet begins, among what was there the way out before.

use endpoint::{Cx, Effects, MsgId, Packet, Submit, Tx};
use units::{HostId, Time};

use super::super::arbiter::{choose, next_start};
use super::super::clock::first_cycle;
use super::super::paths::Paths;
use super::{Arrived, Blocks, Entry, Msg, Source};

/// A NIC of instants.
pub(in super::super) struct Exact {
    pub(in super::super) blocks: Blocks,
    paths: Paths,
}

impl Exact {
    /// Of these blocks, idle.
    pub(in super::super) fn new(blocks: Blocks) -> Self {
        let paths = Paths::new(&blocks.config, blocks.units.sets_flows());
        Self { blocks, paths }
    }

    /// Everything that happens by itself up to `now`, in the order of rule 4.
    pub(in super::super) fn advance(&mut self, now: Time, me: HostId, fx: &mut Effects) {
        while let Some(next) = self.next().filter(|next| *next <= now) {
            self.blocks.happen(next, me, fx);
        }
    }

    /// When the next thing happens by itself.
    pub(in super::super) fn next(&self) -> Option<Time> {
        self.blocks.next()
    }

    pub(in super::super) fn submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.blocks.submit(cx.now, cx.me, msg, cx.fx)
    }

    pub(in super::super) fn cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.blocks.cancel(cx.now, cx.me, id, cx.fx);
    }

    pub(in super::super) fn receive(&mut self, cx: &mut Cx<'_>, pkt: &Packet, switches: u32) {
        self.blocks.receive(self.entry(cx.now), cx.me, (pkt, switches), cx.fx);
    }

    pub(in super::super) fn receive_frame(
        &mut self,
        cx: &mut Cx<'_>,
        source: Source,
        frame: &[u8],
    ) -> Arrived {
        self.blocks.receive_frame(self.entry(cx.now), cx.me, source, frame, cx.fx)
    }

    /// Rule 1: all of a packet takes effect at once.
    fn entry(&self, now: Time) -> Entry {
        let effect = now + self.blocks.config.ingress();
        Entry { cycle: first_cycle(now), lookup: effect, effect }
    }

    /// The wire is free: the packet that begins now (rules 2 and 3).
    pub(in super::super) fn poll(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Tx {
        let Self { blocks, paths } = self;
        let egress = blocks.config.egress();
        loop {
            let data = &mut blocks.packetization;
            let Some(chosen) = choose(&mut blocks.control, data, egress, cx.now) else { break };
            let made = blocks.make(first_cycle(cx.now), cx.me, chosen, slot, cx.fx);
            let entropy = blocks.units.entropy();
            if made {
                slot.path = paths.next(cx, slot.dst, slot.span.msg, entropy);
                return Tx::Sent;
            }
        }
        match next_start(&blocks.control, &mut blocks.packetization, egress) {
            Some(at) => Tx::NotBefore(at),
            None => Tx::Idle,
        }
    }
}
