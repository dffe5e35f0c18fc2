//! One endpoint on the bench: the test plays everyone else.

use endpoint::{
    Cx, Draw, Effect, Effects, Endpoint, Flags, Msg, MsgId, MsgKey, NetView, Packet, Purpose,
    Routes, Span, Tx, TxPort,
};
use units::{Dur, HostId, Rate, Time, TimerId};
use wire::ndp::{Data, Feedback, Kind, Repr};

use crate::ndp::{Config, Ndp, put_header};

/// The host on the bench, and the other one.
pub(super) const ME: HostId = HostId(0);
pub(super) const PEER: HostId = HostId(1);

struct FourPaths;

impl Routes for FourPaths {
    fn paths(&self, _: HostId, _: HostId) -> u32 {
        4
    }
    fn hops(&self, _: HostId, _: HostId) -> u32 {
        2
    }
    fn base_rtt(&self, _: HostId, _: HostId) -> Dur {
        Dur::from_us(10)
    }
}

pub(super) struct Bench {
    pub(super) ndp: Ndp,
    pub(super) now: Time,
    /// Every effect so far that is not a timer.
    pub(super) effects: Vec<Effect>,
    /// The port is not free: nothing is sent.
    pub(super) busy: bool,
    timers: [Time; 3],
}

impl Bench {
    pub(super) fn new(config: Config) -> Self {
        let ndp = Ndp::new(config).unwrap();
        Self { ndp, now: Time::ZERO, effects: Vec::new(), busy: false, timers: [Time::NEVER; 3] }
    }

    fn call<R>(&mut self, what: impl FnOnce(&mut Ndp, &mut Cx<'_>) -> R) -> R {
        let nics = [Rate(10_000_000_000)];
        let net = NetView {
            me: ME,
            nics: &nics,
            mtu: 9064,
            whole: false,
            lateness: Dur::ZERO,
            routes: &FourPaths,
        };
        let mut fx = Effects::new();
        let (now, draw) = (self.now, Draw::new(1, Purpose::new("bench"), 0));
        let mut cx = Cx { now, rx_at: now, me: ME, room: u64::MAX, net: &net, draw, fx: &mut fx };
        let result = what(&mut self.ndp, &mut cx);
        for &effect in fx.as_slice() {
            match effect {
                Effect::Arm { timer, at } => self.timers[timer.0 as usize] = at,
                other => self.effects.push(other),
            }
        }
        result
    }

    /// Everything that is ready to be sent, on a wire without end.
    pub(super) fn drain(&mut self) -> Vec<Packet> {
        let mut packets = Vec::new();
        if self.busy {
            return packets;
        }
        loop {
            let mut slot = Packet::EMPTY;
            let port = TxPort { nic: 0, open: 0xff };
            match self.call(|ndp, cx| ndp.poll_tx(cx, port, &mut slot)) {
                Tx::Sent => packets.push(slot),
                other => {
                    assert_eq!(other, Tx::Idle);
                    return packets;
                }
            }
        }
    }

    /// Submit message `id` for the peer, and return what is sent at once.
    pub(super) fn submit(&mut self, id: u64, len: u64) -> Vec<Packet> {
        self.submit_on(0, id, len)
    }

    /// The same on a channel.
    pub(super) fn submit_on(&mut self, channel: u32, id: u64, len: u64) -> Vec<Packet> {
        let msg = Msg { id: MsgId(id), channel, ..Msg::new(PEER, len) };
        self.call(|ndp, cx| ndp.on_submit(cx, &msg));
        self.drain()
    }

    /// Hand over a packet from `src`, and return what is sent in answer.
    pub(super) fn receive(
        &mut self,
        src: HostId,
        id: u64,
        flags: Flags,
        kind: Kind,
    ) -> Vec<Packet> {
        let span = match kind {
            Kind::Data(data) => Span {
                msg: MsgId(id),
                offset: u64::from(data.seq) * 9000,
                len: u32::from(data.len),
            },
            _ => Span::default(),
        };
        let mut pkt = Packet { src, dst: ME, flags, span, ..Packet::EMPTY };
        put_header(&mut pkt, Repr { connection: id, kind }.to_bytes());
        self.call(|ndp, cx| ndp.on_packet(cx, &pkt));
        self.drain()
    }

    /// A packet of the peer's that is neither trimmed nor bounced.
    pub(super) fn hear(&mut self, id: u64, kind: Kind) -> Vec<Packet> {
        self.receive(PEER, id, Flags(0), kind)
    }

    /// Give the packet back as a bounced header.
    pub(super) fn bounce(&mut self, pkt: &Packet) -> Vec<Packet> {
        let mut pkt = *pkt;
        std::mem::swap(&mut pkt.src, &mut pkt.dst);
        pkt.flags.set(Flags::TRIMMED.with(Flags::BOUNCED));
        self.call(|ndp, cx| ndp.on_packet(cx, &pkt));
        self.drain()
    }

    /// Let time pass, with all timers in it, and return what is sent on the way.
    pub(super) fn wait(&mut self, d: Dur) -> Vec<Packet> {
        let end = self.now + d;
        let mut packets = Vec::new();
        while let Some((at, i)) = (0..3).map(|i| (self.timers[i], i)).min()
            && at <= end
        {
            self.now = self.now.max(at);
            self.timers[i] = Time::NEVER;
            self.call(|ndp, cx| ndp.on_timer(cx, TimerId(i as u32)));
            packets.extend(self.drain());
        }
        self.now = end;
        packets
    }

    pub(super) fn delivered(&self, id: u64) -> bool {
        self.effects.contains(&Effect::Delivered(MsgKey { src: PEER, id: MsgId(id) }))
    }

    pub(super) fn count(&self, effect: Effect) -> usize {
        self.effects.iter().filter(|e| **e == effect).count()
    }
}

/// A full packet of 9000 B.
pub(super) fn data(seq: u32) -> Data {
    Data {
        seq,
        syn: true,
        last: false,
        retransmission: false,
        chopped: false,
        prio: 0,
        len: 9000,
        pacer_echo: None,
    }
}

pub(super) fn ack(seq: u32, cumulative: u32, pull: Option<u32>) -> Kind {
    Kind::Ack(Feedback { seq, cumulative, pull })
}

pub(super) fn nack(seq: u32, cumulative: u32, pull: Option<u32>) -> Kind {
    Kind::Nack(Feedback { seq, cumulative, pull })
}

pub(super) fn pull(pull: u32) -> Kind {
    Kind::Pull { pull, pacer: 0, cumulative: 0 }
}
