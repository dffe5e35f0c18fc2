//! [`DeviceQueue`]: the transmit queue of a host's network interface, around any endpoint.
//!
//! Without it, a transport is asked what it sends when the link is free, and nothing waits below
//! it. With it, all that the transport may send goes at once into a first-in-first-out queue of so
//! many packets per interface, and what does not fit is lost, acknowledgements as data. That is how
//! simulators and operating systems with a fixed transmit queue and no backpressure behave, ns-3
//! before its traffic-control layer among them (ns-3.17, `point-to-point-net-device.cc`,
//! `drop-tail-queue.cc`): a packet goes straight to an idle link, otherwise it joins the queue,
//! which is full when so many packets *wait*. The packet in transmission does not count.
//!
//! The transport's choice among its packets (priorities, turns of several transports) is then made
//! when it may send, not when the link is free, and its round-trip samples contain the wait.
//!
//! Only for transports whose windows, credits or pacing bound what they may send at one instant:
//! another would be asked without end. All here have some.

use std::collections::VecDeque;

use endpoint::{
    Cx, Endpoint, FlowState, Msg, MsgId, MsgKey, Packet, Stat, Submit, TimerId, Tx, TxPort,
};
use units::{HostId, Time};

use crate::inner::Inner;

/// The queue's own timer.
const PACING: TimerId = Inner::OUTER;

/// One interface.
#[derive(Debug, Default)]
struct Device {
    queue: VecDeque<Packet>,
    /// Whether it is transmitting, as far as it can know: it has been given a packet and has not
    /// asked for another without success since.
    busy: bool,
    /// Whether the endpoint has nothing more to send here now.
    drained: bool,
}

impl Device {
    /// `packet` joins the queue, of which `capacity` packets may wait: whether it found room. To an
    /// idle link one goes straight.
    fn join(&mut self, packet: Packet, capacity: usize) -> bool {
        let room = self.queue.len() < capacity.saturating_add(usize::from(!self.busy));
        if room {
            self.queue.push_back(packet);
        }
        room
    }

    /// The packet that leaves now over `port`: the first of those whose class may.
    fn leave(&mut self, port: TxPort) -> Option<Packet> {
        let first = self.queue.iter().position(|packet| port.opens(packet.class));
        let packet = first.and_then(|at| self.queue.remove(at));
        // An idle link with a queue is one that may not transmit what is there.
        self.busy = packet.is_some() || !self.queue.is_empty();
        packet
    }
}

/// An endpoint behind the transmit queues of its host's interfaces.
pub struct DeviceQueue {
    endpoint: Inner,
    /// Packets that may wait at each interface.
    capacity: usize,
    devices: Vec<Device>,
    /// When the endpoint wants to be asked again, for [`PACING`].
    wake: Time,
}

impl DeviceQueue {
    /// `endpoint`, with room for `capacity` waiting packets at each interface.
    #[must_use]
    pub fn new(endpoint: Box<dyn Endpoint>, capacity: u32) -> Self {
        let capacity = capacity as usize;
        Self { endpoint: Inner(endpoint), capacity, devices: Vec::new(), wake: Time::NEVER }
    }

    /// Call the endpoint, then queue all that it may send now.
    fn call<R>(
        &mut self,
        cx: &mut Cx<'_>,
        call: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R,
    ) -> R {
        let answer = self.endpoint.call(cx, call);
        self.fill(cx);
        answer
    }

    /// Queue all that the endpoint may send now, each packet where the fewest wait, and see to it
    /// that the endpoint is asked again when it wants to be.
    fn fill(&mut self, cx: &mut Cx<'_>) {
        self.devices.resize_with(cx.net.nics.len(), Device::default);
        self.devices.iter_mut().for_each(|device| device.drained = false);
        let mut wake = Time::NEVER;
        while let Some(nic) = self.shortest() {
            let mut packet = Packet::EMPTY;
            let port = TxPort { nic: nic as u8, open: u8::MAX };
            let answer = self.endpoint.call(cx, |ep, cx| ep.poll_tx(cx, port, &mut packet));
            let device = &mut self.devices[nic];
            match answer {
                Tx::Sent if device.join(packet, self.capacity) => {}
                Tx::Sent => cx.fx.count(Stat::HostDrop),
                Tx::NotBefore(at) => {
                    wake = wake.min(at);
                    device.drained = true;
                }
                Tx::Idle => device.drained = true,
            }
        }
        if wake != self.wake {
            self.wake = wake;
            cx.fx.arm(PACING, wake);
        }
    }

    /// The interface where the fewest packets wait, of those for which the endpoint may have more.
    fn shortest(&self) -> Option<usize> {
        let devices = self.devices.iter().enumerate().filter(|(_, device)| !device.drained);
        devices.min_by_key(|(_, device)| device.queue.len()).map(|(nic, _)| nic)
    }
}

impl Endpoint for DeviceQueue {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.call(cx, |ep, cx| ep.on_submit(cx, msg))
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.call(cx, |ep, cx| ep.on_packet(cx, pkt));
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        match Inner::timer(id) {
            Some(inner) => self.call(cx, |ep, cx| ep.on_timer(cx, inner)),
            None => {
                self.wake = Time::NEVER;
                self.fill(cx);
            }
        }
    }

    fn poll_tx(&mut self, _: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        // What the endpoint may send is in the queue already, or comes with its next call.
        let device = self.devices.get_mut(usize::from(port.nic));
        match device.and_then(|device| device.leave(port)) {
            Some(packet) => {
                *slot = packet;
                Tx::Sent
            }
            None => Tx::Idle,
        }
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

    fn on_over(&mut self, me: HostId, key: MsgKey) {
        self.endpoint.0.on_over(me, key);
    }

    fn on_over_below(&mut self, host: HostId, oldest: MsgId) {
        self.endpoint.0.on_over_below(host, oldest);
    }

    fn prefetch(&self, step: u8) {
        if step == 0 {
            endpoint::prefetch::item(&*self.endpoint.0);
        } else {
            self.endpoint.0.prefetch(0);
        }
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
    use endpoint::{Draw, Effect, Effects, NetView, Purpose, UNBOUNDED};
    use testkit::{Link, Net, Star, conformance};
    use units::{Bytes, Dur, HostId, Rate};

    use super::*;
    use crate::mux::Mux;
    use crate::tcp::{Config, Tcp};

    const MSS: u16 = 1460;

    /// Sends as many packets as a message has bytes, at once: of class 1, numbered by their path.
    /// An arrival makes it wait until 50 ps; what timer 7 and departures say, it counts as
    /// acknowledged.
    #[derive(Default)]
    struct Burst {
        left: u64,
        next: u32,
        pause: bool,
    }

    impl Endpoint for Burst {
        fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
            self.left += msg.len;
            cx.fx.arm(TimerId(7), Time(90));
            Submit::Taken
        }
        fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {
            (self.left, self.pause) = (self.left + 1, true);
        }
        fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
            cx.fx.acked(MsgId(u64::from(id.0)));
        }
        fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
            if self.pause && cx.now < Time(50) {
                return Tx::NotBefore(Time(50));
            }
            if self.left == 0 {
                return Tx::Idle;
            }
            (self.left, self.next) = (self.left - 1, self.next + 1);
            (slot.path, slot.class, slot.token) = (self.next, 1, self.next);
            Tx::Sent
        }
        fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, _: Time) {
            cx.fx.acked(MsgId(u64::from(token)));
        }
    }

    /// A queue before [`Burst`], with `nics` interfaces, and its clock.
    struct Bench {
        queue: DeviceQueue,
        nics: Vec<Rate>,
        now: Time,
    }

    impl Bench {
        fn new(capacity: u32, nics: usize) -> Self {
            let queue = DeviceQueue::new(Box::new(Burst::default()), capacity);
            Self { queue, nics: vec![Rate(1_000_000_000); nics], now: Time(3) }
        }

        /// Call the queue; what it answers and its effects.
        fn call<R>(
            &mut self,
            what: impl FnOnce(&mut DeviceQueue, &mut Cx<'_>) -> R,
        ) -> (R, Vec<Effect>) {
            let (me, mut fx, now) = (HostId(0), Effects::new(), self.now);
            let routes = &Star::new(1, Dur::from_us(10));
            let net = NetView {
                me,
                nics: &self.nics,
                mtu: 9064,
                whole: true,
                lateness: Dur::ZERO,
                routes,
            };
            let draw = Draw::new(1, Purpose::new("test"), 0);
            let mut cx = Cx { now, rx_at: now, me, room: u64::MAX, net: &net, draw, fx: &mut fx };
            let answer = what(&mut self.queue, &mut cx);
            (answer, fx.as_slice().to_vec())
        }

        /// Hand over `packets` packets; how many are lost.
        fn burst(&mut self, packets: u64) -> usize {
            let msg = Msg::new(HostId(1), packets);
            let effects = self.call(|queue, cx| queue.on_submit(cx, &msg)).1;
            effects.iter().filter(|&&effect| effect == Effect::Count(Stat::HostDrop)).count()
        }

        /// The packet that leaves interface `nic` now, if one does.
        fn poll(&mut self, nic: u8, open: u8) -> Option<u32> {
            let mut slot = Packet::EMPTY;
            let port = TxPort { nic, open };
            let answer = self.call(|queue, cx| queue.poll_tx(cx, port, &mut slot)).0;
            (answer == Tx::Sent).then_some(slot.path)
        }
    }

    /// By hand from ns-3.17: `Send` with an idle transmitter takes the packet past the queue;
    /// `DoEnqueue` refuses while `size() >= MaxPackets`.
    #[test]
    fn three_may_wait_beside_the_one_on_the_wire() {
        let mut bench = Bench::new(3, 1);
        assert_eq!(bench.burst(6), 2, "one goes straight to the link, three wait");
        assert_eq!(bench.poll(0, u8::MAX), Some(1));
        assert_eq!(bench.burst(1), 1, "while it is on the wire three wait");
        assert_eq!(bench.poll(0, u8::MAX), Some(2));
        assert_eq!(bench.burst(2), 1, "in its place came one");
        let rest: Vec<_> = std::iter::from_fn(|| bench.poll(0, u8::MAX)).collect();
        assert_eq!(rest, [3, 4, 8], "first in, first out; 5 to 7 and 9 are lost");
        assert_eq!(bench.burst(5), 1, "idle again");
    }

    #[test]
    fn a_packet_that_is_to_wait_joins_the_queue_at_its_time() {
        let mut bench = Bench::new(3, 1);
        let ((), effects) = bench.call(|queue, cx| queue.on_packet(cx, &Packet::EMPTY));
        assert_eq!(effects, [Effect::Arm { timer: PACING, at: Time(50) }]);
        assert_eq!(bench.poll(0, u8::MAX), None);
        bench.now = Time(50);
        let ((), effects) = bench.call(|queue, cx| queue.on_timer(cx, PACING));
        assert_eq!(effects, [], "nothing more to wait for");
        assert_eq!(bench.poll(0, u8::MAX), Some(1));
    }

    #[test]
    fn timers_and_departures_reach_the_endpoint_under_its_own_numbers() {
        let mut bench = Bench::new(3, 1);
        let msg = Msg::new(HostId(1), 1);
        let (_, effects) = bench.call(|queue, cx| queue.on_submit(cx, &msg));
        assert_eq!(effects, [Effect::Arm { timer: TimerId(8), at: Time(90) }]);
        let ((), effects) = bench.call(|queue, cx| queue.on_timer(cx, TimerId(8)));
        assert_eq!(effects, [Effect::Acked(MsgId(7))]);
        let ((), effects) = bench.call(|queue, cx| queue.on_sent(cx, 1, Time(3)));
        assert_eq!(effects, [Effect::Acked(MsgId(1))]);
    }

    /// A paused class waits, and so long nothing goes straight to the link.
    #[test]
    fn a_paused_class_stays_in_the_queue() {
        let mut bench = Bench::new(3, 1);
        bench.burst(3);
        assert_eq!(bench.poll(0, 0b1111_1101), None);
        assert_eq!(bench.burst(2), 2, "three wait already");
        assert_eq!(bench.poll(0, 0b0000_0010), Some(1));
    }

    #[test]
    fn several_interfaces_share_what_there_is() {
        let mut bench = Bench::new(3, 2);
        assert_eq!(bench.burst(9), 1, "two on the wire, three in each queue");
        let leaves =
            [0, 1].map(|nic| std::iter::from_fn(|| bench.poll(nic, 2)).collect::<Vec<_>>());
        assert_eq!(leaves, [vec![1, 3, 5, 7], vec![2, 4, 6, 8]]);
    }

    fn tcp(initial_window: f64) -> Box<dyn Endpoint> {
        let config = Config { initial_window, ..Config::linux_datacenter(MSS) };
        Box::new(Tcp::new(config).unwrap())
    }

    /// A first window of 20 segments, of which 11 find room: they go one after another, and the
    /// rest are lost here, not in the network.
    #[test]
    fn a_first_window_beyond_the_queue_is_lost_in_it() {
        let link = Link {
            rate: Rate(10_000_000_000),
            delay: Dur::from_us(2),
            mtu: MSS + 40,
            paths: 1,
            hashed: true,
        };
        let make = |_| Box::new(DeviceQueue::new(tcp(20.0), 10)) as Box<dyn Endpoint>;
        let mut net = Net::new(1, link, (0..2).map(make).collect());
        net.submit(HostId(0), HostId(1), 20 * u64::from(MSS));
        net.run_until(Time::ZERO + Dur::from_us(1));
        assert_eq!(net.stat(HostId(0), Stat::HostDrop), 9);
        net.run_until_idle(Dur::from_ms(60_000));
        net.ledger().assert_all_done();
        let gap = link.rate.serialise(u64::from(MSS + 40));
        let data = net.log().iter().filter(|sent| sent.pkt.carries_payload());
        for (n, sent) in data.take(11).enumerate() {
            assert_eq!(sent.pkt.span.offset, n as u64 * u64::from(MSS));
            assert_eq!(sent.at, Time(n as u64 * gap.0));
        }
        assert_eq!(net.dropped(), 0, "the network has lost nothing");
    }

    #[test]
    fn conforms() {
        let opts = conformance::Opts {
            payload: Bytes(u64::from(MSS)),
            window: Bytes(10 * u64::from(MSS)),
            trims: false,
            bounces: false,
            hashed_paths: true,
            patience: Dur::from_ms(600_000),
        };
        for capacity in [4, 100] {
            conformance::run(|_| Box::new(DeviceQueue::new(tcp(10.0), capacity)), opts);
        }
        let both = || vec![(wire::tcp::PROTO, tcp(10.0)), (wire::tcp::PROTO, tcp(2.0))];
        let mux = || Box::new(Mux::new(both()).unwrap());
        conformance::run(|_| Box::new(DeviceQueue::new(mux(), 20)), opts);
    }

    /// Two long flows through one device queue: the link stays full, though the queue loses
    /// packets.
    #[test]
    fn the_link_stays_busy() {
        let link = Link {
            rate: Rate(100_000_000),
            delay: Dur::from_us(20),
            mtu: MSS + 40,
            paths: 1,
            hashed: true,
        };
        let make = |_| Box::new(DeviceQueue::new(tcp(10.0), 30)) as Box<dyn Endpoint>;
        let mut net = Net::new(1, link, (0..3).map(make).collect());
        let keys = [1, 2].map(|to| net.submit(HostId(0), HostId(to), UNBOUNDED));
        net.stop_logging();
        let end = Dur::from_ms(3_000);
        net.run_until(Time::ZERO + end);
        assert!(net.stat(HostId(0), Stat::HostDrop) > 0);
        let placed =
            keys.map(|key| net.record(key).placed.iter().map(|r| r.end - r.start).sum::<u64>());
        let placed: u64 = placed.iter().sum();
        let most = link.rate.bytes_in(end).0 * u64::from(MSS) / u64::from(MSS + 40);
        assert!(placed <= most && placed > most * 97 / 100, "{placed} of {most}");
    }
}
