//! [`Mux`]: several transports on one host. Packets find theirs by protocol, messages by
//! [`Msg::transport`].
//!
//! The transports share the host's link packet by packet, in turn, as the transmit queues of a
//! network interface do (hosts' drivers give each protocol's traffic a queue of its own, and
//! interfaces serve them round robin). None knows of the others.
//!
//! Transports of one kind (TCP beside TCP with another rule) have one protocol, by which a host
//! could not tell whose a packet is. So packets of the second bear another number on the wire, see
//! [`wire_protocols`], and their own again when they are handed to their transport.
//!
//! Each has its own draws and timers. A message that one of them has no room for holds up those
//! behind it, over any transport: that is the caller's side of the contract ([`Submit::Full`]).

use endpoint::{
    Cx, Endpoint, FailReason, FlowState, Msg, MsgId, Packet, Stat, Submit, TimerId, Tx, TxPort,
};
use units::{HostId, MsgKey, Time};

/// The first number that is given away: use for experiments (RFC 3692, section 2.1). Its neighbour
/// 254 is pHost's.
const EXPERIMENTAL: u8 = 253;
/// The last: the lowest that IANA's registry of protocol numbers leaves unassigned without a gap
/// from there down.
const UNASSIGNED: u8 = 148;

/// The protocols that packets of several transports bear on the wire, where their own are `own`:
/// the first of each protocol its own, any other the highest number from 253 down that is still
/// free. `None` if there are not enough of these; there are for 100 transports.
#[must_use]
pub fn wire_protocols(own: &[u8]) -> Option<Vec<u8>> {
    let mut free = (UNASSIGNED..=EXPERIMENTAL).rev().filter(|number| !own.contains(number));
    let on_wire = |(at, proto)| if own[..at].contains(proto) { free.next() } else { Some(*proto) };
    own.iter().enumerate().map(on_wire).collect()
}

/// One of the transports of a host.
struct Part {
    /// The protocol of its packets, as it knows it.
    own: u8,
    /// The same on the wire.
    on_wire: u8,
    endpoint: Box<dyn Endpoint>,
}

/// Several transports as one.
pub struct Mux {
    parts: Vec<Part>,
    /// Whose turn it is to send.
    turn: usize,
}

impl Mux {
    /// `endpoints`, each with the protocol of its packets, as one; in the order of
    /// [`Msg::transport`], the same on all hosts. `None` as for [`wire_protocols`].
    #[must_use]
    pub fn new(endpoints: Vec<(u8, Box<dyn Endpoint>)>) -> Option<Self> {
        let own: Vec<u8> = endpoints.iter().map(|(own, _)| *own).collect();
        let parts = endpoints.into_iter().zip(wire_protocols(&own)?);
        let part = |((own, endpoint), on_wire)| Part { own, on_wire, endpoint };
        Some(Self { parts: parts.map(part).collect(), turn: 0 })
    }

    /// Call part `index` with its own draws, and keep its timers apart: timer `t` of part `i` of
    /// `n` is `t * n + i`. `None` if there is no such part.
    fn part<R>(
        &mut self,
        cx: &mut Cx<'_>,
        index: usize,
        call: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let n = self.parts.len() as u32;
        let part = self.parts.get_mut(index)?;
        let before = cx.fx.as_slice().len();
        let (draw, all) = (cx.draw.part(index as u64), cx.draw);
        cx.draw = draw;
        let answer = call(&mut *part.endpoint, cx);
        cx.draw = all;
        for timer in cx.fx.timers_mut(before) {
            *timer = TimerId(timer.0 * n + index as u32);
        }
        Some(answer)
    }

    fn each(&mut self, cx: &mut Cx<'_>, mut call: impl FnMut(&mut dyn Endpoint, &mut Cx<'_>)) {
        for index in 0..self.parts.len() {
            self.part(cx, index, &mut call);
        }
    }

    /// The part that the number of one of its timers or tokens names, and its own number for it.
    fn owner(&self, number: u32) -> (usize, u32) {
        let n = (self.parts.len() as u32).max(1);
        ((number % n) as usize, number / n)
    }
}

impl Endpoint for Mux {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        let taken = self.part(cx, usize::from(msg.transport), |ep, cx| ep.on_submit(cx, msg));
        taken.unwrap_or_else(|| {
            cx.fx.failed(MsgKey { src: cx.me, id: msg.id }, FailReason::Refused);
            Submit::Taken
        })
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let Some(index) = self.parts.iter().position(|part| part.on_wire == pkt.proto) else {
            return cx.fx.count(Stat::Rejected);
        };
        let proto = self.parts[index].own;
        if proto == pkt.proto {
            self.part(cx, index, |ep, cx| ep.on_packet(cx, pkt));
        } else {
            let own = Packet { proto, ..*pkt };
            self.part(cx, index, |ep, cx| ep.on_packet(cx, &own));
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        let (index, id) = self.owner(id.0);
        self.part(cx, index, |ep, cx| ep.on_timer(cx, TimerId(id)));
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        let n = self.parts.len();
        let mut earliest = Time::NEVER;
        for index in (self.turn..n).chain(0..self.turn) {
            match self.part(cx, index, |ep, cx| ep.poll_tx(cx, port, slot)) {
                Some(Tx::Sent) => {
                    if slot.token != 0 {
                        slot.token = slot.token * n as u32 + index as u32;
                    }
                    slot.proto = self.parts[index].on_wire;
                    self.turn = (index + 1) % n;
                    return Tx::Sent;
                }
                Some(Tx::NotBefore(at)) => earliest = earliest.min(at),
                Some(Tx::Idle) | None => {}
            }
            // The next one's slot is to arrive cleared.
            *slot = Packet::EMPTY;
        }
        if earliest == Time::NEVER { Tx::Idle } else { Tx::NotBefore(earliest) }
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        // Those that do not carry it ignore it.
        self.each(cx, |ep, cx| ep.on_cancel(cx, id));
    }

    fn on_room(&mut self, cx: &mut Cx<'_>) {
        self.each(cx, |ep, cx| ep.on_room(cx));
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        self.each(cx, |ep, cx| ep.on_restart(cx, host));
    }

    fn on_over_below(&mut self, host: HostId, oldest: MsgId) {
        self.parts.iter_mut().for_each(|part| part.endpoint.on_over_below(host, oldest));
    }

    fn prefetch(&self, step: u8) {
        for part in &self.parts {
            if step == 0 {
                endpoint::prefetch::item(&*part.endpoint);
            } else {
                part.endpoint.prefetch(0);
            }
        }
    }

    fn unsent(&self, id: MsgId) -> Option<u64> {
        // Those that do not carry it do not know it.
        self.parts.iter().find_map(|part| part.endpoint.unsent(id))
    }

    fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        let carrier = self.parts.iter_mut().find(|part| part.endpoint.unsent(id).is_some());
        carrier.map_or(0, |part| part.endpoint.shorten(id, bytes))
    }

    fn on_shortened(&mut self, key: MsgKey, bytes: u64) {
        self.parts.iter_mut().for_each(|part| part.endpoint.on_shortened(key, bytes));
    }

    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        // Those that do not carry it do not know it.
        self.parts.iter().find_map(|part| part.endpoint.flow_state(id))
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, at: Time) {
        let (index, token) = self.owner(token);
        self.part(cx, index, |ep, cx| ep.on_sent(cx, token, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpoint::{Draw, Effect, Effects, NetView, Purpose, UNBOUNDED};
    use testkit::{Link, Net, Sent, Star, fault};
    use units::{Dur, HostId, Rate};

    use crate::tcp::rule::{RuleConfig, cubic};
    use crate::{ndp, tcp};

    const LINK: Link = Link {
        rate: Rate(10_000_000_000),
        delay: Dur::from_us(2),
        mtu: 1564,
        paths: 4,
        hashed: true,
    };

    fn both(_: u32) -> Box<dyn Endpoint> {
        let ndp = ndp::Ndp::new(ndp::Config::paper(1500)).unwrap();
        let tcp = tcp::Config::linux_datacenter(1460);
        let tcp = tcp::Tcp::new(tcp).unwrap();
        mux(vec![(wire::ndp::PROTOCOL, Box::new(ndp)), (wire::tcp::PROTO, Box::new(tcp))])
    }

    fn mux(endpoints: Vec<(u8, Box<dyn Endpoint>)>) -> Box<dyn Endpoint> {
        Box::new(Mux::new(endpoints).unwrap())
    }

    fn submit(net: &mut Net, from: u32, to: u32, len: u64, transport: u8) -> MsgKey {
        let msg = Msg { transport, ..Msg::new(HostId(to), len) };
        net.submit_as(HostId(from), msg)
    }

    #[test]
    fn each_message_goes_by_its_transport_and_all_arrive() {
        let mut net = Net::new(1, LINK, (0..3).map(both).collect());
        // Losses make timers fire.
        net.fault(fault::drop_data(HostId(0), &[3, 4, 20, 90, 91]));
        for n in 0..20 {
            // Both senders' even messages by NDP, their odd ones by TCP.
            submit(&mut net, n % 2, 2, 1 + u64::from(n) * 9_999, (n / 2 % 2) as u8);
        }
        net.run_until_idle(Dur::from_ms(60_000));
        net.ledger().assert_all_done();
        let odd = |s: &&Sent| s.pkt.span.msg.0 % 2 == 1;
        assert!(net.log().iter().filter(odd).all(|s| s.pkt.proto == wire::tcp::PROTO));
        assert!(net.log().iter().filter(|s| !odd(s)).all(|s| s.pkt.proto == wire::ndp::PROTOCOL));
    }

    /// Two TCPs, the second with another rule, in a mux.
    fn two_tcps(_: u32) -> Box<dyn Endpoint> {
        let first = tcp::Config::linux_datacenter(1460);
        let rule = RuleConfig::Cubic(cubic::Params::RFC);
        let second = tcp::Config { rule, ..first };
        let tcp = |config| Box::new(tcp::Tcp::new(config).unwrap()) as Box<dyn Endpoint>;
        mux(vec![(wire::tcp::PROTO, tcp(first)), (wire::tcp::PROTO, tcp(second))])
    }

    /// Both have connections between the same hosts with the same ports; each gets its own packets
    /// only.
    #[test]
    fn two_of_a_kind_tell_their_packets_apart() {
        let mut net = Net::new(1, LINK, (0..3).map(two_tcps).collect());
        net.fault(fault::drop_data(HostId(0), &[3, 4, 20, 90, 91]));
        for n in 0..20 {
            submit(&mut net, n % 2, 2, 1 + u64::from(n) * 9_999, (n / 2 % 2) as u8);
        }
        net.run_until_idle(Dur::from_ms(60_000));
        net.ledger().assert_all_done();
        assert!((0..3).all(|host| net.stat(HostId(host), Stat::Rejected) == 0));
        for Sent { pkt, .. } in net.log() {
            let wanted = [wire::tcp::PROTO, EXPERIMENTAL][(pkt.span.msg.0 % 2) as usize];
            assert_eq!(pkt.proto, wanted, "{pkt:?}");
        }
    }

    #[test]
    fn who_comes_second_gets_a_number_that_nobody_has() {
        let (udp, tcp, ndp) = (17, wire::tcp::PROTO, wire::ndp::PROTOCOL);
        assert_eq!(wire_protocols(&[tcp, ndp, udp]), Some(vec![tcp, ndp, udp]));
        assert_eq!(wire_protocols(&[tcp, tcp, ndp, tcp]), Some(vec![tcp, 253, ndp, 252]));
        assert_eq!(wire_protocols(&[253, tcp, tcp, 252]), Some(vec![253, tcp, 251, 252]));
        let mut many = wire_protocols(&[ndp; 100]).unwrap();
        many.sort_unstable();
        many.dedup();
        assert_eq!(many.len(), 100);
        assert_eq!(wire_protocols(&[ndp; 200]), None);
    }

    /// While both have something to send, they send a packet each.
    #[test]
    fn transports_take_turns_at_the_link() {
        let mut net = Net::new(1, LINK, (0..3).map(both).collect());
        submit(&mut net, 0, 1, UNBOUNDED, 0);
        submit(&mut net, 0, 2, UNBOUNDED, 1);
        net.run_until(Time::ZERO + Dur::from_ms(5));
        let of = net.log().iter().filter(|s| s.pkt.src == HostId(0) && s.pkt.carries_payload());
        let protos: Vec<u8> = of.map(|s| s.pkt.proto).collect();
        let settled = &protos[protos.len() / 2..];
        let tcp = settled.iter().filter(|&&proto| proto == wire::tcp::PROTO).count();
        assert!(settled.len() > 1_000 && tcp.abs_diff(settled.len() - tcp) <= 2, "{tcp}");
    }

    /// Answers every call with an `Acked` of its own number and what it is called with.
    struct Probe(u64);

    impl Probe {
        fn say(&self, cx: &mut Cx<'_>, number: u32) {
            cx.fx.acked(MsgId(self.0 << 32 | u64::from(number)));
        }
    }

    impl Endpoint for Probe {
        fn on_submit(&mut self, _: &mut Cx<'_>, _: &Msg) -> Submit {
            Submit::Full
        }
        fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
            self.say(cx, pkt.path);
            cx.fx.arm(TimerId(7), Time(9));
        }
        fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
            self.say(cx, id.0);
        }
        fn poll_tx(&mut self, _: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
            assert_eq!(slot.token, 0, "the slot arrives cleared");
            slot.token = 5;
            match u64::from(port.nic) {
                nic if nic == self.0 => Tx::Sent,
                9 => Tx::Idle,
                _ => Tx::NotBefore(Time(20 + self.0)),
            }
        }
        fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, _: Time) {
            self.say(cx, token);
        }
    }

    /// Call a mux of three probes, of protocols 100, 101 and 102; what it answers and its effects.
    fn call<R>(what: impl FnOnce(&mut Mux, &mut Cx<'_>) -> R) -> (R, Vec<Effect>) {
        let probe = |n| (100 + n as u8, Box::new(Probe(n)) as Box<dyn Endpoint>);
        let mut mux = Mux::new((0..3).map(probe).collect()).unwrap();
        let (me, nics, mut fx) = (HostId(0), [LINK.rate], Effects::new());
        let routes = &Star::new(1, Dur::from_us(10));
        let net = NetView { me, nics: &nics, mtu: 9064, whole: true, lateness: Dur::ZERO, routes };
        let (now, draw) = (Time(3), Draw::new(1, Purpose::new("test"), 0));
        let mut cx = Cx { now, rx_at: now, me, room: u64::MAX, net: &net, draw, fx: &mut fx };
        let answer = what(&mut mux, &mut cx);
        (answer, fx.as_slice().to_vec())
    }

    fn said(probe: u64, number: u64) -> Effect {
        Effect::Acked(MsgId(probe << 32 | number))
    }

    #[test]
    fn packets_timers_and_tokens_reach_their_owners_under_their_own_numbers() {
        let pkt = Packet { proto: 101, path: 42, ..Packet::EMPTY };
        let ((), effects) = call(|mux, cx| mux.on_packet(cx, &pkt));
        let timer = TimerId(3 * 7 + 1);
        assert_eq!(effects, [said(1, 42), Effect::Arm { timer, at: Time(9) }]);
        let ((), effects) = call(|mux, cx| mux.on_timer(cx, timer));
        assert_eq!(effects, [said(1, 7)]);
        let ((), effects) = call(|mux, cx| {
            let (port, mut slot) = (TxPort { nic: 2, open: 1 }, Packet::EMPTY);
            assert_eq!(mux.poll_tx(cx, port, &mut slot), Tx::Sent);
            mux.on_sent(cx, slot.token, cx.now);
        });
        assert_eq!(effects, [said(2, 5)]);
        let ((), effects) = call(|mux, cx| mux.on_packet(cx, &Packet::EMPTY));
        assert_eq!(effects, [Effect::Count(Stat::Rejected)]);
    }

    #[test]
    fn the_earliest_of_those_that_wait_is_waited_for() {
        let poll = |nic| {
            call(|mux, cx| mux.poll_tx(cx, TxPort { nic, open: 1 }, &mut Packet::EMPTY.clone())).0
        };
        assert_eq!((poll(8), poll(9)), (Tx::NotBefore(Time(20)), Tx::Idle));
    }
}
