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
use super::config::Config;
use super::externs::OwnMessage;
use super::ticking::{Ticking, input_cycle};
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
    Clocked(Box<Ticking<Clocked>>),
}

impl Nano {
    /// An idle NIC with `program`, which `runs`.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn new(program: &ir::Program, runs: Runs, config: Config) -> Result<Self, ProgramError> {
        let law = if config.clocked {
            let machine = Clocked::new(program, runs, config.clone())?;
            Law::Clocked(Box::new(Ticking::new(machine, &config)))
        } else {
            Law::Exact(Box::new(Exact::new(Blocks::new(program, runs, config)?)))
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
            Law::Clocked(ticking) => ticking.into_machine().blocks.try_egress(),
        }
    }

    const fn blocks(&self) -> &Blocks {
        match &self.law {
            Law::Exact(exact) => &exact.blocks,
            Law::Clocked(ticking) => &ticking.machine().blocks,
        }
    }

    const fn blocks_mut(&mut self) -> &mut Blocks {
        match &mut self.law {
            Law::Exact(exact) => &mut exact.blocks,
            Law::Clocked(ticking) => &mut ticking.machine_mut().blocks,
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
        let next = match &mut self.law {
            Law::Exact(exact) => exact.next().unwrap_or(Time::NEVER),
            Law::Clocked(ticking) => return ticking.arm(cx),
        };
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
                ticking.machine_mut().receive_frame(input_cycle(cx), cx.me, source, frame, cx.fx)
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
            Law::Clocked(ticking) => return ticking.on_submit(cx, msg),
        };
        self.arm(cx);
        taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.advance(cx);
        let switches = cx.net.hops(pkt.src).saturating_sub(1);
        match &mut self.law {
            Law::Clocked(ticking) => return ticking.on_packet(cx, pkt),
            Law::Exact(_) if pkt.flags.has(Flags::BOUNCED) => cx.fx.count(Stat::Rejected),
            Law::Exact(exact) => exact.receive(cx, pkt, switches),
        }
        self.arm(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        if let Law::Clocked(ticking) = &mut self.law {
            return ticking.on_timer(cx, timer);
        }
        self.armed = Time::NEVER;
        self.advance(cx);
        self.arm(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        self.advance(cx);
        self.arm(cx);
        match &mut self.law {
            Law::Clocked(ticking) => ticking.poll_tx(cx, port, slot),
            // Which class the next packet has is known once it is made, so a pause of any pauses
            // all.
            Law::Exact(_) if port.open != u8::MAX => Tx::Idle,
            Law::Exact(exact) => exact.poll(cx, slot),
        }
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.advance(cx);
        match &mut self.law {
            Law::Exact(exact) => exact.cancel(cx, id),
            Law::Clocked(ticking) => return ticking.on_cancel(cx, id),
        }
        self.arm(cx);
    }
}
