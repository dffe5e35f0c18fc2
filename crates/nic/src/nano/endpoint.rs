//! The NIC as an [`Endpoint`]: simulated packets in and out of its blocks, by either law of time
//! of docs/nic.md.

use endpoint::{
    Cx, Endpoint, Flags, Framing, Msg, MsgId, Packet, Stat, Submit, TimerId, Tx, TxPort,
};
use units::{HostId, Time};

use super::bits::PAYLOAD;
use super::blocks::clocked::Clocked;
use super::blocks::exact::Exact;
use super::blocks::{Blocks, Source};
use super::clock::Edges;
use super::config::Config;
use super::externs::OwnMessage;
use super::mac::Mac;
use p4::ir;

pub use super::blocks::{Arrived, ProgramError, Runs};

/// How a NIC cuts messages into packets.
pub const FRAMING: Framing = Framing { payload: PAYLOAD, overhead: OVERHEAD };

/// Ethernet, IPv4 and the transport header.
const OVERHEAD: u16 = 64;

/// The only timer: when something happens by itself.
const WAKE: TimerId = TimerId(0);

/// A NIC with its program.
pub struct Nano {
    law: Law,
    armed: Time,
}

/// When what happens.
enum Law {
    Exact(Box<Exact>),
    Clocked(Box<Ticking>),
}

/// A machine of cycles on a clock and a wire.
struct Ticking {
    machine: Clocked,
    mac: Mac,
}

impl Ticking {
    /// Everything of the cycles that have begun.
    fn advance(&mut self, cx: &mut Cx<'_>) {
        let edges = Edges::of(cx.draw);
        let Some(last) = edges.last_by(cx.now) else { return };
        loop {
            let chooses = self.machine.chooses(self.mac.open(edges));
            let next = self.machine.next().into_iter().chain(chooses).min();
            let Some(cycle) = next.filter(|next| *next <= last) else { return };
            let mut packet = Packet::EMPTY;
            if self.machine.step(cycle, chooses == Some(cycle), cx.me, &mut packet, cx.fx) {
                let takes = cx.net.rate(0).serialise(u64::from(packet.wire_len));
                self.mac.push(edges, cycle, takes, packet);
            }
        }
    }

    /// The wire is free: the packet that begins now.
    fn poll(&mut self, cx: &Cx<'_>, slot: &mut Packet) -> Tx {
        let edges = Edges::of(cx.draw);
        if let Some(packet) = self.mac.take(cx.now) {
            *slot = packet;
            slot.path = self.machine.blocks.path(cx, slot.dst, slot.span.msg);
            return Tx::Sent;
        }
        let chooses = || self.machine.chooses(self.mac.open(edges));
        let starts = || Some(self.mac.start(edges, chooses()?));
        self.mac.next().or_else(starts).map_or(Tx::Idle, Tx::NotBefore)
    }
}

impl Nano {
    /// An idle NIC with `program`, which `runs`.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn new(program: &ir::Program, runs: Runs, config: Config) -> Result<Self, ProgramError> {
        let law = if config.clocked {
            let mac = Mac::new(config.egress_cycles.into());
            Law::Clocked(Box::new(Ticking { machine: Clocked::new(program, runs, config)?, mac }))
        } else {
            Law::Exact(Box::new(Exact { blocks: Blocks::new(program, runs, config)? }))
        };
        Ok(Self { law, armed: Time::NEVER })
    }

    /// What the egress pipeline makes of the first packet of a message of two, of each protocol: a
    /// program that is wrong there is wrong everywhere.
    ///
    /// # Errors
    /// See [`ProgramError::Frame`].
    pub fn try_egress(self) -> Result<(), ProgramError> {
        match self.law {
            Law::Exact(exact) => exact.blocks.try_egress(),
            Law::Clocked(ticking) => ticking.machine.blocks.try_egress(),
        }
    }

    const fn blocks(&self) -> &Blocks {
        match &self.law {
            Law::Exact(exact) => &exact.blocks,
            Law::Clocked(ticking) => &ticking.machine.blocks,
        }
    }

    const fn blocks_mut(&mut self) -> &mut Blocks {
        match &mut self.law {
            Law::Exact(exact) => &mut exact.blocks,
            Law::Clocked(ticking) => &mut ticking.machine.blocks,
        }
    }

    /// Everything that happens by itself up to now.
    fn advance(&mut self, cx: &mut Cx<'_>) {
        match &mut self.law {
            Law::Exact(exact) => exact.advance(cx.now, cx.me, cx.fx),
            Law::Clocked(ticking) => ticking.advance(cx),
        }
    }

    /// Be woken when the next thing happens by itself.
    fn arm(&mut self, cx: &mut Cx<'_>) {
        let next = match &self.law {
            Law::Exact(exact) => exact.next(),
            Law::Clocked(ticking) => {
                ticking.machine.next().map(|cycle| Edges::of(cx.draw).begin(cycle))
            }
        };
        let next = next.unwrap_or(Time::NEVER);
        if next != self.armed {
            self.armed = next;
            cx.fx.arm(WAKE, next);
        }
    }

    /// A packet with bytes, beginning with Ethernet: runs the ingress pipeline over `frame`, which
    /// came from `src` if that is a host of this network, and says what is to be done with the
    /// payload. `chopped`: a switch has cut that off.
    pub fn receive_frame(
        &mut self,
        cx: &mut Cx<'_>,
        src: Option<HostId>,
        chopped: bool,
        frame: &[u8],
    ) -> Arrived {
        self.advance(cx);
        let source = Source { host: src, carries_payload: !chopped, key: None };
        let arrived = match &mut self.law {
            Law::Exact(exact) => exact.receive_frame(cx, source, frame),
            Law::Clocked(ticking) => {
                let cycle = Edges::of(cx.draw).first_after(cx.now);
                ticking.machine.receive_frame(cycle, cx.me, source, frame, cx.fx)
            }
        };
        self.arm(cx);
        arrived
    }

    /// The headers of the packet that was made last.
    #[must_use]
    pub fn headers(&self) -> &[u8] {
        self.blocks().headers()
    }

    /// Keep the messages that the program sends of its own for [`Nano::own_message`].
    pub fn keep_own_messages(&mut self) {
        self.blocks_mut().keep_own_messages();
    }

    /// A message of the program's own that takes effect now.
    pub fn own_message(&mut self) -> Option<OwnMessage> {
        self.blocks_mut().own_message()
    }

    /// Sizes and times.
    #[must_use]
    pub const fn config(&self) -> &Config {
        self.blocks().config()
    }
}

impl Endpoint for Nano {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.advance(cx);
        let taken = match &mut self.law {
            Law::Exact(exact) => exact.submit(cx, msg),
            Law::Clocked(ticking) => {
                let cycle = Edges::of(cx.draw).first_after(cx.now);
                ticking.machine.submit(cycle, cx.me, msg, cx.fx)
            }
        };
        self.arm(cx);
        taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.advance(cx);
        let switches = cx.net.hops(pkt.src).saturating_sub(1);
        match &mut self.law {
            _ if pkt.flags.has(Flags::BOUNCED) => cx.fx.count(Stat::Rejected),
            Law::Exact(exact) => exact.receive(cx, pkt, switches),
            Law::Clocked(ticking) => {
                let cycle = Edges::of(cx.draw).first_after(cx.now);
                ticking.machine.receive(cycle, cx.me, (pkt, switches), cx.fx);
            }
        }
        self.arm(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.armed = Time::NEVER;
        self.advance(cx);
        self.arm(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        self.advance(cx);
        self.arm(cx);
        // Which class the next packet has is known once it is made, so a pause of any pauses all.
        if port.open != u8::MAX {
            return Tx::Idle;
        }
        match &mut self.law {
            Law::Exact(exact) => exact.poll(cx, slot),
            Law::Clocked(ticking) => ticking.poll(cx, slot),
        }
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.advance(cx);
        match &mut self.law {
            Law::Exact(exact) => exact.cancel(cx, id),
            Law::Clocked(ticking) => {
                ticking.machine.cancel(Edges::of(cx.draw).first_after(cx.now), id);
            }
        }
        self.arm(cx);
    }
}
