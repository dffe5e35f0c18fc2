//! A host that is handed packets one by one, without a network.

use endpoint::{Cx, Draw, Effect, Effects, Endpoint, NetView, Packet, Purpose, Span, Tx, TxPort};
use testkit::Star;
use units::{Dur, HostId, MsgId, Rate, Time};
use wire::homa::{Data, Kind, Repr, Whole};

use super::{Config, Homa};
use crate::homa::{GRANT_TIMER, put_header};

pub(super) const RATE: Rate = Rate(10_000_000_000);
pub(super) const ME: HostId = HostId(0);

pub(super) struct Host {
    endpoint: Homa,
    pub(super) config: Config,
    star: Star,
    pub(super) now: Time,
    /// When the timer of grants stands.
    pub(super) timer: Time,
    /// What the application takes.
    pub(super) room: u64,
    /// What the last call wanted done.
    pub(super) effects: Vec<Effect>,
}

/// The number of the message of a packet, and what it says.
pub(super) fn kind(pkt: &Packet) -> (u32, Kind) {
    let Ok(Repr { number, kind }) = Repr::parse(pkt.header()) else { panic!("no header") };
    (number, kind)
}

impl Host {
    pub(super) fn new(config: Config) -> Self {
        Self {
            endpoint: Homa::new(config).unwrap(),
            config,
            star: Star::new(1, Dur::from_us(8)),
            now: Time::ZERO,
            timer: Time::NEVER,
            room: u64::MAX,
            effects: Vec::new(),
        }
    }

    /// Call the endpoint, and take all that it then sends.
    pub(super) fn call(&mut self, call: impl FnOnce(&mut Homa, &mut Cx<'_>)) -> Vec<Packet> {
        let net = NetView {
            me: ME,
            nics: &[RATE],
            mtu: 1538,
            whole: true,
            lateness: Dur::ZERO,
            routes: &self.star,
        };
        let mut fx = Effects::new();
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let (now, room, net) = (self.now, self.room, &net);
        let mut cx = Cx { now, rx_at: now, me: ME, room, net, draw, fx: &mut fx };
        call(&mut self.endpoint, &mut cx);
        let mut sent = Vec::new();
        let mut slot = Packet::EMPTY;
        while self.endpoint.poll_tx(&mut cx, TxPort { nic: 0, open: u8::MAX }, &mut slot)
            == Tx::Sent
        {
            sent.push(std::mem::replace(&mut slot, Packet::EMPTY));
        }
        self.effects = fx.as_slice().to_vec();
        for effect in &self.effects {
            if let Effect::Arm { timer: GRANT_TIMER, at } = *effect {
                self.timer = at;
            }
        }
        sent
    }

    /// Whether no message that others send is open.
    pub(super) fn receiver_is_idle(&self) -> bool {
        self.endpoint.receiver.is_idle()
    }

    /// `pkt` arrives.
    pub(super) fn arrive(&mut self, pkt: &Packet) -> Vec<Packet> {
        self.call(|endpoint, cx| endpoint.on_packet(cx, pkt))
    }

    /// Packet `index` of message `number` of `packets` full packets from `from`.
    pub(super) fn packet(&self, from: u32, number: u32, packets: u64, index: u64) -> Packet {
        let payload = self.config.payload;
        let mut pkt = Packet { src: HostId(from), dst: ME, wire_len: 1538, ..Packet::EMPTY };
        let offset = index * u64::from(payload);
        let msg = MsgId(u64::from(number));
        pkt.span = Span { msg, offset, len: u32::from(payload) };
        let data = Data {
            len: payload,
            index: index as u32,
            size: packets * u64::from(payload),
            unscheduled: self.config.rtt_packets().min(packets) as u16,
            head: 0,
            oldest: u16::MAX,
            marked: false,
            response: false,
            whole: Whole::default(),
        };
        put_header(&mut pkt, &Repr { number, kind: Kind::Data(data) });
        pkt
    }
}
