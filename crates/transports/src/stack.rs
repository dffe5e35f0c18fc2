//! [`HostStack`]: the operating system between a host's network interface and its transport, around
//! any endpoint: a model of what a simulation of links does not hold.
//!
//! Every packet takes a while from the interface to the transport and from the transport to the
//! interface: a lognormal time, drawn for each, in the order of the packets (one that is quicker
//! waits for the one before it). The interface goes on stamping packets as they pass it:
//! [`Cx::rx_at`] and [`Endpoint::on_sent`] are the interface's, so a transport with stamps of the
//! interface measures the network alone, and one with stamps of its own (TCP) measures the stack
//! twice at each end. The peer's acknowledgements come through the peer's stack, up and down, where
//! it has one: for acknowledgements by hardware, leave it out there. Messages cross without delay.
//!
//! It stands for kernel scheduling, interrupts and batching, of which TIMELY (SIGCOMM 2015, figures
//! 1 and 11) shows only that they make round-trip times wide that are nearly constant at the
//! interface (specs/timely.md#9,F1,F11).
//!
//! For simulations only: a packet reaches the endpoint after the call that brought it, and so what
//! the endpoint then places ([`endpoint::Effect::Place`]) is no longer at hand where packets carry
//! their payload.

use std::collections::VecDeque;

use endpoint::{
    Cx, Endpoint, FlowState, Msg, MsgId, MsgKey, Packet, Purpose, Submit, TimerId, Tx, TxPort,
};
use units::{Dur, HostId, Time};

use crate::inner::Inner;

const UP: Purpose = Purpose::new("host stack: up");
const DOWN: Purpose = Purpose::new("host stack: down");

/// The way up is open to every class.
const UPWARDS: TxPort = TxPort { nic: 0, open: u8::MAX };

/// So many packets at most are on their way down to an interface: a transport that may send without
/// bound is asked again as they leave. The transmit queue of Linux (`txqueuelen`).
const ON_THE_WAY: usize = 1_000;

/// How long a packet takes through the stack in one direction: lognormal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackDelay {
    /// Half of the packets are quicker.
    pub median: Dur,
    /// Standard deviation of the natural logarithm, 0 to 3.
    pub sigma: f64,
}

impl StackDelay {
    /// Longer than any that can be drawn: the least of the 2^53 uniform draws is a normal deviate
    /// of 8.6.
    #[must_use]
    pub fn longest(self) -> Dur {
        Dur((self.median.0 as f64 * libm::exp(self.sigma * 8.6)) as u64)
    }

    /// The delay of packet `n` in the direction `purpose`. The normal deviate is that of Box and
    /// Muller (1958).
    fn draw(self, cx: &Cx<'_>, purpose: Purpose, n: u64) -> Dur {
        let (u, v) = (cx.draw.unit(purpose, 2 * n), cx.draw.unit(purpose, 2 * n + 1));
        let normal = (-2.0 * libm::log(1.0 - u)).sqrt() * libm::cos(std::f64::consts::TAU * v);
        Dur((self.median.0 as f64 * libm::exp(self.sigma * normal) + 0.5) as u64)
    }
}

/// Packets on their way through one direction of the stack.
#[derive(Default)]
struct Lane {
    /// When each is through, ascending; when the interface stamped it; itself.
    packets: VecDeque<(Time, Time, Packet)>,
    /// Packets so far: the number of the next draw.
    count: u64,
    /// When the last one was through.
    last: Time,
}

impl Lane {
    fn enter(&mut self, cx: &Cx<'_>, delay: StackDelay, purpose: Purpose, packet: Packet) {
        let through = cx.now.saturating_add(delay.draw(cx, purpose, self.count)).max(self.last);
        (self.count, self.last) = (self.count + 1, through);
        self.packets.push_back((through, cx.rx_at, packet));
    }

    /// The first packet whose class may go on over `port`, if it is through.
    fn leave(&mut self, now: Time, port: TxPort) -> Option<(Time, Packet)> {
        let first = self.first(port).filter(|&i| self.packets[i].0 <= now)?;
        let (_, stamp, packet) = self.packets.remove(first)?;
        Some((stamp, packet))
    }

    /// When that packet is through.
    fn next(&self, port: TxPort) -> Time {
        self.first(port).map_or(Time::NEVER, |i| self.packets[i].0)
    }

    fn first(&self, port: TxPort) -> Option<usize> {
        self.packets.iter().position(|(_, _, packet)| port.opens(packet.class))
    }
}

/// An endpoint behind its host's stack.
pub struct HostStack {
    endpoint: Inner,
    delay: StackDelay,
    up: Lane,
    /// One for each interface.
    down: Vec<Lane>,
    /// When the endpoint wants to be asked again what it sends.
    ask: Time,
    /// When the stack's own timer comes.
    wake: Time,
}

impl HostStack {
    /// `endpoint`, each packet of which takes a `delay` in each direction.
    #[must_use]
    pub fn new(endpoint: Box<dyn Endpoint>, delay: StackDelay) -> Self {
        let (up, down) = (Lane::default(), Vec::new());
        let (ask, wake) = (Time::NEVER, Time::NEVER);
        Self { endpoint: Inner(endpoint), delay, up, down, ask, wake }
    }

    /// Call the endpoint, then let all that it may send begin its way down.
    fn call<R>(
        &mut self,
        cx: &mut Cx<'_>,
        call: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R,
    ) -> R {
        let answer = self.endpoint.call(cx, call);
        self.fill(cx);
        self.watch(cx);
        answer
    }

    /// Take what the endpoint may send now at each interface.
    fn fill(&mut self, cx: &mut Cx<'_>) {
        self.down.resize_with(cx.net.nics.len(), Lane::default);
        self.ask = Time::NEVER;
        for (nic, lane) in self.down.iter_mut().enumerate() {
            let port = TxPort { nic: nic as u8, open: u8::MAX };
            while lane.packets.len() < ON_THE_WAY {
                let mut packet = Packet::EMPTY;
                match self.endpoint.call(cx, |ep, cx| ep.poll_tx(cx, port, &mut packet)) {
                    Tx::Sent => lane.enter(cx, self.delay, DOWN, packet),
                    Tx::NotBefore(at) => {
                        self.ask = self.ask.min(at);
                        break;
                    }
                    Tx::Idle => break,
                }
            }
        }
    }

    /// Be called when the next packet is through, or the endpoint may send more.
    fn watch(&mut self, cx: &mut Cx<'_>) {
        let wake = self.up.next(UPWARDS).min(self.ask);
        if wake != self.wake {
            self.wake = wake;
            cx.fx.arm(Inner::OUTER, wake);
        }
    }

    /// The endpoint gets the packets that are through.
    fn deliver(&mut self, cx: &mut Cx<'_>) {
        while let Some((stamp, packet)) = self.up.leave(cx.now, UPWARDS) {
            let now = std::mem::replace(&mut cx.rx_at, stamp);
            self.endpoint.call(cx, |ep, cx| ep.on_packet(cx, &packet));
            cx.rx_at = now;
        }
    }
}

impl Endpoint for HostStack {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.call(cx, |ep, cx| ep.on_submit(cx, msg))
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.up.enter(cx, self.delay, UP, *pkt);
        self.watch(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        match Inner::timer(id) {
            Some(inner) => self.call(cx, |ep, cx| ep.on_timer(cx, inner)),
            None => {
                self.wake = Time::NEVER;
                self.deliver(cx);
                self.fill(cx);
                self.watch(cx);
            }
        }
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        let Some(lane) = self.down.get_mut(usize::from(port.nic)) else { return Tx::Idle };
        let was_full = lane.packets.len() >= ON_THE_WAY;
        let Some((_, packet)) = lane.leave(cx.now, port) else {
            return match lane.next(port) {
                Time::NEVER => Tx::Idle,
                at => Tx::NotBefore(at),
            };
        };
        *slot = packet;
        if was_full {
            self.fill(cx);
            self.watch(cx);
        }
        Tx::Sent
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.call(cx, |ep, cx| ep.on_cancel(cx, id));
    }

    fn on_room(&mut self, cx: &mut Cx<'_>) {
        self.call(cx, |ep, cx| ep.on_room(cx));
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        self.call(cx, |ep, cx| ep.on_restart(cx, host));
    }

    fn on_over_below(&mut self, host: HostId, oldest: MsgId) {
        self.endpoint.0.on_over_below(host, oldest);
    }

    fn unsent(&self, id: MsgId) -> Option<u64> {
        self.endpoint.0.unsent(id)
    }

    fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        self.endpoint.0.shorten(id, bytes)
    }

    fn on_shortened(&mut self, key: MsgKey, bytes: u64) {
        self.endpoint.0.on_shortened(key, bytes);
    }

    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        self.endpoint.0.flow_state(id)
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, at: Time) {
        self.call(cx, |ep, cx| ep.on_sent(cx, token, at));
    }
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Effect, Effects, NetView};
    use testkit::Star;
    use units::{HostId, Rate};

    use super::*;

    const DELAY: StackDelay = StackDelay { median: Dur::from_us(10), sigma: 0.5 };

    /// Do something at `now`; what it answers and its effects.
    fn at<R>(now: Time, what: impl FnOnce(&mut Cx<'_>) -> R) -> (R, Vec<Effect>) {
        let (me, nics, mut fx) = (HostId(0), [Rate(10_000_000_000)], Effects::new());
        let routes = &Star::new(1, Dur::from_us(10));
        let net = NetView { me, nics: &nics, mtu: 9064, whole: true, lateness: Dur::ZERO, routes };
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let mut cx = Cx { now, rx_at: now, me, room: u64::MAX, net: &net, draw, fx: &mut fx };
        let answer = what(&mut cx);
        (answer, fx.as_slice().to_vec())
    }

    #[test]
    fn delays_are_lognormal() {
        let n = 20_000;
        let log =
            |cx: &Cx<'_>, n| libm::log(DELAY.draw(cx, UP, n).0 as f64 / DELAY.median.0 as f64);
        let (logs, _) = at(Time(0), |cx| (0..n).map(|n| log(cx, n)).collect::<Vec<f64>>());
        let mean = logs.iter().sum::<f64>() / n as f64;
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / n as f64;
        // The mean of n is off by 0.5 / sqrt(n) = 0.0035, the variance by 0.25 sqrt(2 / n) =
        // 0.0025.
        assert!(mean.abs() < 0.014 && (variance - 0.25).abs() < 0.01, "{mean} {variance}");
    }

    /// Sends what it is asked to, and notes what it hears: whether it was stamped when it came.
    struct Echo(u64);

    impl Endpoint for Echo {
        fn on_submit(&mut self, _: &mut Cx<'_>, msg: &Msg) -> Submit {
            self.0 = msg.len;
            Submit::Taken
        }
        fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
            assert!(cx.rx_at < cx.now, "the interface's stamp");
            cx.fx.acked(MsgId(u64::from(pkt.path)));
        }
        fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}
        fn poll_tx(&mut self, _: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
            match self.0 {
                0 => Tx::Idle,
                _ => {
                    (slot.path, slot.wire_len, self.0) = (self.0 as u32, 64, self.0 - 1);
                    Tx::Sent
                }
            }
        }
    }

    /// A paused class waits in the stack, and what others send goes past it.
    #[test]
    fn a_paused_class_waits() {
        let mut lane = Lane::default();
        let constant = StackDelay { median: Dur(5), sigma: 0.0 };
        for class in [0, 7, 0] {
            let packet = Packet { class, ..Packet::EMPTY };
            at(Time(0), |cx| lane.enter(cx, constant, DOWN, packet));
        }
        let class = |left: Option<(Time, Packet)>| left.map(|(_, packet)| packet.class);
        let open = |open| TxPort { nic: 0, open };
        assert_eq!(class(lane.leave(Time(4), open(u8::MAX))), None, "not yet through");
        assert_eq!(lane.next(open(0b1000_0000)), Time(5));
        assert_eq!(class(lane.leave(Time(5), open(0b1111_1110))), Some(7));
        assert_eq!(class(lane.leave(Time(5), open(0b1111_1110))), None);
        assert_eq!(lane.next(open(0b1111_1110)), Time::NEVER);
        assert_eq!(class(lane.leave(Time(5), open(1))), Some(0));
    }

    /// In both directions packets keep their order, whatever each draws; and an endpoint that never
    /// stops sending is asked for so many at once only.
    #[test]
    fn packets_keep_their_order() {
        let mut stack = HostStack::new(Box::new(Echo(0)), DELAY);
        at(Time(0), |cx| stack.on_submit(cx, &Msg::new(HostId(1), 5_000)));
        assert_eq!(stack.down[0].packets.len(), ON_THE_WAY);
        let (mut now, mut left) = (Time(0), Vec::new());
        loop {
            let (mut slot, port) = (Packet::EMPTY, TxPort { nic: 0, open: u8::MAX });
            match at(now, |cx| stack.poll_tx(cx, port, &mut slot)).0 {
                Tx::Sent => left.push(slot.path),
                Tx::NotBefore(at) => now = at,
                Tx::Idle => break,
            }
        }
        assert!(left.iter().copied().eq((1..=5_000).rev()), "first in, first out");
        for path in 0..100 {
            let packet = Packet { path, ..Packet::EMPTY };
            at(now, |cx| stack.on_packet(cx, &packet));
        }
        let mut heard = Vec::new();
        while stack.wake != Time::NEVER {
            let ((), effects) = at(stack.wake, |cx| stack.on_timer(cx, Inner::OUTER));
            heard.extend(effects.into_iter().filter_map(|effect| match effect {
                Effect::Acked(id) => Some(id.0),
                _ => None,
            }));
        }
        assert!(heard.into_iter().eq(0..100));
    }
}
