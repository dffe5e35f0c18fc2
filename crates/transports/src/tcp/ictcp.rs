//! ICTCP: the receive window as congestion control for incast, at the receiver alone (Wu, Feng,
//! Guo and Zhang, "ICTCP: Incast Congestion Control for TCP in Data Center Networks", CoNEXT 2010,
//! section 4; specs/incast.md#9). What the senders do is unchanged.
//!
//! An interface divides time into slots of two halves (section 4.1): in the first half it
//! measures what arrives; what that leaves of the capacity is the quota by which windows may grow
//! in the second. A connection compares what it receives with what its window would allow (section
//! 4.3): a window that is used up grows, one that stays half empty shrinks. When capacity becomes
//! scarce, windows above the average shrink (section 4.4).
//!
//! Windows change when an acknowledgement leaves. What was once allowed stays allowed: a window
//! shrinks only as data arrives (RFC 9293, section 3.8.6). As it never falls below
//! [`Params::min_window`], there is no zero window, and nothing to probe.

use units::{Dur, Time};

use super::timestamps;
use crate::config::{ConfigError, refuse, within};

/// The window field counts in units of so many bytes: a window scale of 7 (RFC 7323, section 2),
/// which is what Linux offers, here for every connection as no option negotiates it.
const SCALE: u64 = 1 << 7;
/// The largest window that the field can say, bytes.
const LARGEST: u64 = u16::MAX as u64 * SCALE;

/// The parameters of ICTCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The share of the capacity that windows may grow into, 0 to 1 (alpha: 0.9).
    pub alpha: f64,
    /// The weight of the old value in the measured throughput, 0 to 1 (beta: 0.75).
    pub beta: f64,
    /// A window grows while the throughput that it allows is missed by no more than this share, 0
    /// to 1 (gamma 1: 0.1).
    pub gamma1: f64,
    /// It shrinks when that is missed by at least this share, 0 to 1 (gamma 2: 0.5) ...
    pub gamma2: f64,
    /// ... in so many round trips in a row, at least 1 (3).
    pub shrink_after: u32,
    /// Windows begin with and never fall below so many segments, at least 1 (2).
    pub min_window: u32,
    /// Windows above the average shrink while less than this share of the capacity is available,
    /// 0 to 1 (0.2).
    pub scarce_below: f64,
    /// A connection that nothing has come on for longer begins anew. The paper says "long time
    /// idle" and no number.
    pub idle: Dur,
}

impl Params {
    /// The paper's values, but for the one it does not give.
    #[must_use]
    pub const fn paper(idle: Dur) -> Self {
        Self {
            alpha: 0.9,
            beta: 0.75,
            gamma1: 0.1,
            gamma2: 0.5,
            shrink_after: 3,
            min_window: 2,
            scarce_below: 0.2,
            idle,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (name, value) in [
            ("ictcp_alpha", self.alpha),
            ("ictcp_beta", self.beta),
            ("ictcp_gamma1", self.gamma1),
            ("ictcp_gamma2", self.gamma2),
            ("ictcp_scarce_below", self.scarce_below),
        ] {
            within(name, value, 0.0..=1.0, "it must be from 0 to 1")?;
        }
        let counts =
            [("ictcp_shrink_after", self.shrink_after), ("ictcp_min_window", self.min_window)];
        for (name, value) in counts {
            if value == 0 {
                return refuse(name, 0, "it must be at least 1");
            }
        }
        Ok(())
    }

    /// The window that a connection with segments of `mss` bytes begins with, bytes. Both ends know
    /// it, as no handshake says it.
    pub(super) fn first_window(&self, mss: u16) -> u64 {
        (u64::from(self.min_window) * u64::from(mss)).next_multiple_of(SCALE).min(LARGEST)
    }
}

/// The bytes that a window field stands for.
pub(super) fn window_bytes(field: u16) -> u64 {
    u64::from(field) * SCALE
}

/// Bytes in a time, as bytes a second.
fn rate(bytes: u64, time: Dur) -> f64 {
    bytes as f64 / time.as_s_f64()
}

/// The slots of an interface. A slot begins with the first packet that comes after the one before
/// it is over.
#[derive(Debug)]
struct Slots {
    /// When this slot began; `NEVER` while no round-trip time is known.
    from: Time,
    /// The length of each half: the round-trip time of the connections, averaged over their
    /// traffic in the slot before (section 4.2).
    half: Dur,
    /// What has arrived in the first half, bytes on the wire.
    bytes: u64,
    /// The first half is over.
    second: bool,
    /// What the last first half has left of the capacity, bytes a second: BW_A, equation (1).
    available: f64,
    /// What windows may still grow by in this second half, bytes a second.
    quota: f64,
    /// Payload bytes of this slot, and their sum weighted with round-trip times, ps.
    payload: u64,
    weighted: u128,
}

impl Slots {
    const fn new() -> Self {
        Self {
            from: Time::NEVER,
            half: Dur::ZERO,
            bytes: 0,
            second: false,
            available: f64::INFINITY,
            quota: 0.0,
            payload: 0,
            weighted: 0,
        }
    }

    /// A packet of `bytes` has arrived; windows may use `usable` bytes a second in all.
    fn arrived(&mut self, now: Time, bytes: u16, usable: f64) {
        if self.from == Time::NEVER {
            return;
        }
        let elapsed = now.since(self.from);
        if !self.second && elapsed >= self.half {
            self.available = (usable - rate(self.bytes, self.half)).max(0.0);
            self.quota = self.available;
            self.second = true;
        }
        if self.is_over(now) {
            self.begin(now);
        }
        if !self.second {
            self.bytes += u64::from(bytes);
        }
    }

    fn is_over(&self, now: Time) -> bool {
        now.since(self.from) >= self.half * 2
    }

    fn begin(&mut self, now: Time) {
        if self.payload > 0 {
            // An average of durations is one.
            self.half = Dur((self.weighted / u128::from(self.payload)) as u64);
        }
        (self.from, self.second, self.bytes) = (now, false, 0);
        (self.payload, self.weighted) = (0, 0);
    }

    /// A connection whose round-trip time is `rtt` has received `len` bytes of payload.
    fn weigh(&mut self, now: Time, rtt: Dur, len: u64) {
        self.payload += len;
        self.weighted += u128::from(len) * u128::from(rtt.0);
        if self.from == Time::NEVER {
            self.half = rtt;
            self.begin(now);
        }
    }

    /// Take `rate` from the quota, if it is the second half and there is as much.
    fn take(&mut self, rate: f64) -> bool {
        let enough = rate <= self.quota;
        if enough {
            self.quota -= rate;
        }
        enough
    }
}

/// A data segment as its connection sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The stamp of the latest acknowledgement that its sender had seen; zero if there was none.
    pub(super) echo: u32,
    /// Payload bytes.
    pub(super) len: u64,
    /// It ends a message: the sender may have nothing more to send.
    pub(super) last: bool,
}

/// The window of one connection.
#[derive(Clone, Copy, Debug)]
struct Connection {
    /// Bytes, a whole number of segments: rwnd.
    window: u64,
    /// The first position that the sender may not send yet.
    edge: u64,
    /// The window doubles; otherwise it grows by a segment.
    slow_start: bool,
    /// Smoothed as in RFC 6298, rule 2.3; none before the first sample.
    rtt: Option<Dur>,
    /// When the first data of the current message came; `NEVER` before it. Its sender may have had
    /// nothing to send before that, so that echoes of earlier times measure nothing.
    begun: Time,
    /// When this round trip began, and the payload bytes that have come in it.
    round_from: Time,
    round_bytes: u64,
    /// Smoothed throughput, bytes a second: equation (2).
    measured: f64,
    /// Round trips measured since the window changed.
    rounds: u32,
    /// Round trips in a row in which the window was far too large.
    oversized: u32,
    /// When data last came; `NEVER` if none has.
    heard: Time,
}

impl Connection {
    fn new(params: &Params, mss: u16) -> Self {
        Self {
            window: u64::from(params.min_window) * u64::from(mss),
            edge: params.first_window(mss),
            slow_start: true,
            rtt: None,
            begun: Time::NEVER,
            round_from: Time::ZERO,
            round_bytes: 0,
            measured: 0.0,
            rounds: 0,
            oversized: 0,
            heard: Time::NEVER,
        }
    }

    /// The window begins anew; what was allowed stays allowed.
    fn restart(&mut self, params: &Params, mss: u16, now: Time) {
        let (edge, rtt) = (self.edge, self.rtt);
        *self = Self { edge, rtt, round_from: now, ..Self::new(params, mss) };
    }

    /// Data has arrived that was sent after an acknowledgement stamped `echo` had come, and before
    /// the next: as long ago as that left, a round trip (section 5.4).
    fn measure_rtt(&mut self, now: Time, echo: u32) {
        let sample = timestamps::since(echo, now);
        if echo == 0 || now.since(self.begun) < sample {
            return;
        }
        self.rtt = Some(self.rtt.map_or(sample, |rtt| Dur(rtt.0 - rtt.0 / 8 + sample.0 / 8)));
    }

    /// The throughput that the window allows, bytes a second: b^e, equation (3).
    fn expected(&self, rtt: Dur) -> f64 {
        self.measured.max(rate(self.window, rtt))
    }

    /// If a round trip is over, take its throughput in: equation (2).
    fn end_round(&mut self, params: &Params, now: Time, rtt: Dur) {
        let took = now.since(self.round_from);
        if took < rtt {
            return;
        }
        let sample = rate(self.round_bytes, took);
        let smooth = params.beta * self.measured + (1.0 - params.beta) * sample;
        self.measured = sample.max(smooth);
        (self.round_from, self.round_bytes) = (now, 0);
        self.rounds = self.rounds.saturating_add(1);
        let expected = self.expected(rtt);
        let oversized = expected - self.measured >= params.gamma2 * expected;
        self.oversized = if oversized { self.oversized.saturating_add(1) } else { 0 };
    }

    /// The window is `window` from now on: measure what that makes of the throughput.
    fn set_window(&mut self, now: Time, window: u64) {
        self.window = window;
        (self.round_from, self.round_bytes) = (now, 0);
        (self.rounds, self.oversized) = (0, 0);
    }
}

/// The receive windows of all connections to a host.
#[derive(Debug)]
pub(super) struct Ictcp {
    params: Params,
    /// Of the interface, bytes a second: C.
    capacity: f64,
    /// The payload of a full segment.
    mss: u16,
    slots: Slots,
    /// By slot of the table of receivers.
    connections: Vec<Connection>,
    /// Of the open connections: how many, and the sum of their windows.
    open: u64,
    windows: u64,
}

impl Ictcp {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            capacity: 0.0,
            mss: 0,
            slots: Slots::new(),
            connections: Vec::new(),
            open: 0,
            windows: 0,
        }
    }

    /// A packet of `bytes` on the wire, whatever it carries, has arrived at an interface of
    /// `capacity` bits a second, where segments carry up to `mss` bytes.
    pub(super) fn arrived(&mut self, now: Time, capacity: u64, mss: u16, bytes: u16) {
        (self.capacity, self.mss) = (capacity as f64 / 8.0, mss);
        self.slots.arrived(now, bytes, self.params.alpha * self.capacity);
    }

    /// The connection in `slot` begins.
    pub(super) fn open(&mut self, slot: u32) {
        let fresh = Connection::new(&self.params, self.mss);
        let slot = slot as usize;
        if self.connections.len() <= slot {
            self.connections.resize(slot + 1, fresh);
        }
        self.connections[slot] = fresh;
        self.open += 1;
        self.windows += fresh.window;
    }

    /// The connection in `slot` is over.
    pub(super) fn close(&mut self, slot: u32) {
        self.open -= 1;
        self.windows -= self.connections[slot as usize].window;
    }

    /// Data has arrived on the connection in `slot`.
    pub(super) fn on_data(&mut self, slot: u32, now: Time, data: Arrival) {
        let connection = &mut self.connections[slot as usize];
        if connection.heard == Time::NEVER || now.since(connection.heard) > self.params.idle {
            self.windows -= connection.window;
            connection.restart(&self.params, self.mss, now);
            self.windows += connection.window;
        } else {
            connection.round_bytes += data.len;
        }
        connection.heard = now;
        if connection.begun == Time::NEVER {
            connection.begun = now;
        }
        connection.measure_rtt(now, data.echo);
        if data.last {
            connection.begun = Time::NEVER;
        }
        if let Some(rtt) = connection.rtt {
            self.slots.weigh(now, rtt, data.len);
        }
    }

    /// The connection in `slot` acknowledges everything below `next`: the window field to say.
    pub(super) fn advertise(&mut self, slot: u32, now: Time, next: u64) -> u16 {
        self.adjust(slot, now);
        let connection = &mut self.connections[slot as usize];
        // Rounded up, so that the edge does not move back, and whole segments fit.
        let units =
            connection.edge.max(next + connection.window).saturating_sub(next).div_ceil(SCALE);
        let field = u16::try_from(units).unwrap_or(u16::MAX);
        connection.edge = connection.edge.max(next + window_bytes(field));
        field
    }

    /// Move the window of the connection in `slot`, if it is time (sections 4.2 to 4.4).
    fn adjust(&mut self, slot: u32, now: Time) {
        let connection = &mut self.connections[slot as usize];
        let Some(rtt) = connection.rtt else { return };
        connection.end_round(&self.params, now, rtt);
        // One round trip until a change has its effect, and one to measure that (section 4.2).
        if connection.rounds < 2 {
            return;
        }
        let (window, mss) = (connection.window, u64::from(self.mss));
        let smaller = window.saturating_sub(mss).max(u64::from(self.params.min_window) * mss);
        let scarce = self.slots.available < self.params.scarce_below * self.capacity;
        let expected = connection.expected(rtt);
        let missed = expected - connection.measured;
        let used = missed <= self.params.gamma1 * expected
            || missed * window as f64 <= expected * mss as f64;
        let next = if scarce && window * self.open > self.windows {
            connection.slow_start = false; // as with any other decrease
            smaller
        } else if used {
            if !self.slots.second || self.slots.is_over(now) {
                return;
            }
            let more = if connection.slow_start { window } else { mss };
            let fits = window + more <= LARGEST && self.slots.take(rate(more, rtt));
            connection.slow_start &= fits;
            if fits { window + more } else { window }
        } else {
            connection.slow_start = false;
            if connection.oversized >= self.params.shrink_after { smaller } else { window }
        };
        if next != window {
            connection.set_window(now, next);
            self.windows = self.windows - window + next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use endpoint::{Stat, UNBOUNDED};
    use proptest::prelude::*;
    use testkit::{Bottleneck, Link, Net, Seen, fault};
    use units::{HostId, MsgKey, Rate};
    use wire::tcp::{Control, Repr};

    use super::super::timestamps::stamp;
    use super::super::{Config, ReceiveWindow, Tcp};
    use super::*;

    const MSS: u16 = 1000;
    /// 1 Gb/s.
    const CAPACITY: u64 = 1_000_000_000;
    const RTT: Dur = Dur::from_us(100);

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// Slots of 2 x 100 us, by hand: 1 Gb/s is 125 MB/s, of which 112.5 MB/s may be used. In the
    /// first half come 5000 B, which is 50 MB/s.
    #[test]
    fn the_first_half_measures_and_the_second_has_the_rest() {
        let usable = 0.9 * 125e6;
        let mut slots = Slots::new();
        slots.arrived(at(0), 9999, usable);
        assert!(!slots.second, "no round-trip time yet");
        slots.weigh(at(10), RTT, 1000);
        slots.weigh(at(15), RTT, 1000);
        for us in [20, 50, 100, 109] {
            slots.arrived(at(us), 1250, usable);
            assert!(!slots.second);
        }
        slots.arrived(at(110), 1250, usable);
        assert!(slots.second, "the packet at 110 us belongs to the second half");
        assert!((slots.available - 62.5e6).abs() < 1.0, "{}", slots.available);
        assert!(slots.take(40e6) && !slots.take(40e6) && slots.take(20e6));

        // Of 3000 B of payload 1000 are a connection's with 100 us and 2000 of one with 400 us.
        slots.weigh(at(150), Dur::from_us(400), 2000);
        assert!(!slots.is_over(at(209)) && slots.is_over(at(210)));
        slots.arrived(at(230), 1250, usable);
        assert_eq!((slots.from, slots.half), (at(230), Dur::from_us(300)));
        assert!(!slots.second && slots.bytes == 1250);
        slots.arrived(at(529), 60_000, usable);
        slots.arrived(at(530), 1250, usable);
        assert_eq!(slots.available, 0.0, "200 MB/s: nothing is left, not less");
        assert!(!slots.take(1.0));
    }

    /// A receiver on its own, given segments by hand.
    struct Script {
        ictcp: Ictcp,
        now: Time,
        /// Of each connection: the next position.
        next: Vec<u64>,
    }

    impl Script {
        fn new(connections: usize) -> Self {
            let mut ictcp = Ictcp::new(Params::paper(Dur::from_ms(10)));
            ictcp.arrived(Time::ZERO, CAPACITY, MSS, 40);
            (0..connections as u32).for_each(|slot| ictcp.open(slot));
            Self { ictcp, now: at(1_000), next: vec![0; connections] }
        }

        /// In the next round trip `segments` of connection `slot` come, one after the other.
        fn round(&mut self, slot: u32, segments: u64) {
            for i in 0..segments {
                let now = self.now + Dur::from_us(i);
                self.ictcp.arrived(now, CAPACITY, MSS, 1040);
                let next = &mut self.next[slot as usize];
                *next += u64::from(MSS);
                // Sent when the segments of the round trip before had been acknowledged.
                let echo = stamp(Time(now.0 - RTT.0));
                let data = Arrival { echo, len: u64::from(MSS), last: false };
                self.ictcp.on_data(slot, now, data);
                self.ictcp.advertise(slot, now, *next);
            }
        }

        fn rounds(&mut self, segments: &[u64]) -> Vec<u64> {
            let windows = segments.iter().map(|&n| {
                self.round(0, n);
                self.now += RTT;
                self.segments(0)
            });
            windows.collect()
        }

        /// The window of connection `slot` in segments.
        fn segments(&self, slot: u32) -> u64 {
            self.ictcp.connections[slot as usize].window / u64::from(MSS)
        }
    }

    /// One connection that uses what it may: it doubles in the second half of each second slot (a
    /// round trip to take effect, one to be measured) until doubling would not fit the quota, and
    /// then adds one at a time. 11 segments in 100 us would be 110 MB/s, 112.5 are usable.
    #[test]
    fn a_window_doubles_and_then_adds_one() {
        let mut s = Script::new(1);
        let mut windows = vec![2];
        while windows.len() < 60 {
            let may = *windows.last().unwrap();
            windows.extend(s.rounds(&[may]));
        }
        windows.dedup();
        assert_eq!(windows, [2, 4, 8, 9, 10]);
        assert!(!s.ictcp.connections[0].slow_start);
        assert_eq!(s.ictcp.windows, 10_000);
    }

    /// Half of what the window allows, or less, in three round trips: one segment less, down to
    /// two.
    #[test]
    fn a_window_that_stays_half_empty_shrinks() {
        let mut s = Script::new(1);
        s.rounds(&[2, 2, 2]);
        s.ictcp.connections[0].window = 8_000;
        s.ictcp.windows = 8_000;
        s.ictcp.connections[0].measured = 0.0;
        let windows = s.rounds(&[2; 60]);
        let mut distinct = windows.clone();
        distinct.dedup();
        assert_eq!(distinct[..6], [8, 7, 6, 5, 4, 3]);
        // Three segments are missed by one, so that window counts as used; four by half, so that
        // does not. The paper's two rules leave it between them.
        assert!(distinct[6..].iter().all(|&w| w == 3 || w == 4), "{distinct:?}");
        let stays = windows.iter().filter(|&&w| w == 6).count();
        assert_eq!(stays, 3, "three round trips for each segment: {windows:?}");
    }

    /// Section 4.4: with less than 0.2 C left, only windows above the average shrink.
    #[test]
    fn when_capacity_is_scarce_the_largest_gives_way() {
        let mut s = Script::new(3);
        for (slot, window) in [(0, 5_000), (1, 2_000), (2, 2_000)] {
            s.ictcp.connections[slot].window = window;
        }
        s.ictcp.windows = 9_000;
        for _ in 0..30 {
            for slot in 0..3 {
                s.round(slot, [5, 2, 2][slot as usize]);
            }
            s.now += RTT;
        }
        let windows = [0, 1, 2].map(|slot| s.segments(slot));
        assert!(windows[0] <= 4 && windows[1] >= 2 && windows[2] >= 2, "{windows:?}");
    }

    #[test]
    fn an_idle_connection_begins_anew_and_keeps_what_was_allowed() {
        let mut s = Script::new(1);
        s.rounds(&[2, 2, 2, 4, 4, 4, 8]);
        assert!(s.segments(0) >= 4);
        let edge = s.ictcp.connections[0].edge;
        s.now += Dur::from_ms(11);
        s.round(0, 1);
        assert_eq!(s.segments(0), 2);
        assert!(s.ictcp.connections[0].slow_start);
        assert!(s.ictcp.connections[0].edge >= edge);
    }

    #[test]
    fn impossible_parameters_are_named() {
        let good = Params::paper(Dur::from_ms(10));
        let error = |params: Params| params.check().unwrap_err().to_string();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(
            error(Params { beta: 1.5, ..good }),
            "ictcp_beta is 1.5: it must be from 0 to 1"
        );
        assert_eq!(
            error(Params { min_window: 0, ..good }),
            "ictcp_min_window is 0: it must be at least 1"
        );
    }

    proptest! {
        /// Whatever comes, what was allowed stays allowed, and two segments always are.
        #[test]
        fn the_edge_never_moves_back(
            steps in proptest::collection::vec((0..3u32, 0..20_000u64, 0..5u64, any::<bool>(), 0..9_999u32), 1..300)
        ) {
            let mut s = Script::new(3);
            for (slot, after_us, segments, last, echo) in steps {
                s.now += Dur::from_us(after_us);
                s.ictcp.arrived(s.now, CAPACITY, MSS, 1040);
                let len = segments * 700;
                let next = &mut s.next[slot as usize];
                *next += len;
                let echo = stamp(s.now).wrapping_sub(echo);
                s.ictcp.on_data(slot, s.now, Arrival { echo, len, last });
                let before = s.ictcp.connections[slot as usize].edge;
                let said = *next + window_bytes(s.ictcp.advertise(slot, s.now, *next));
                prop_assert!(said >= before && said >= *next + 2_000);
                let sum: u64 = s.ictcp.connections.iter().map(|c| c.window).sum();
                prop_assert_eq!(sum, s.ictcp.windows);
            }
        }
    }

    const LINK: Link =
        Link { rate: Rate(CAPACITY), delay: Dur::from_us(50), mtu: 1500, paths: 1, hashed: true };

    fn config(receive_window: ReceiveWindow) -> Config {
        Config { receive_window, delayed_ack: None, ..Config::linux_datacenter(MSS) }
    }

    fn ictcp() -> Config {
        config(ReceiveWindow::Ictcp(Params::paper(Dur::from_ms(10))))
    }

    fn hosts(n: u32, config: Config) -> Net<Tcp> {
        Net::new(1, LINK, (0..n).map(|_| Box::new(Tcp::new(config).unwrap())).collect())
    }

    /// No segment leaves that no acknowledgement has allowed, with losses too; what one has
    /// allowed, the next does not take back.
    #[test]
    fn a_sender_stays_within_the_window() {
        for handshake in [false, true] {
            stays_within_the_window(Config { handshake, ..ictcp() });
        }
    }

    fn stays_within_the_window(config: Config) {
        let mut net = hosts(2, config);
        net.fault(fault::drop_data(HostId(0), &[3, 17, 40, 41, 60]));
        let seen = Rc::new(RefCell::new((2_048u64, 0u64)));
        let shared = Rc::clone(&seen);
        net.watch(move |_, what, pkt| {
            let header = Repr::parse(pkt.header()).unwrap();
            if header.control.has(Control::SYN) {
                return; // it neither carries data nor says a window
            }
            let (edge, sent) = &mut *shared.borrow_mut();
            if what == Seen::Arrived(HostId(0)) {
                let said = u64::from(header.ack) + window_bytes(header.window);
                assert!(said >= *edge, "a window was taken back");
                *edge = said;
            } else if what == Seen::Sent && pkt.src == HostId(0) {
                *sent += 1;
                assert!(u64::from(header.seq) + u64::from(pkt.span.len) <= *edge);
            }
        });
        net.submit(HostId(0), HostId(1), 300_000);
        net.run_until_idle(Dur::from_ms(5_000));
        net.ledger().assert_all_done();
        assert!(seen.borrow().1 >= 305);
    }

    /// A long flow alone fills its link up to the share that windows may grow into.
    #[test]
    fn a_lone_flow_gets_what_may_be_used() {
        let mut net = hosts(2, ictcp());
        net.stop_logging();
        net.submit(HostId(0), HostId(1), UNBOUNDED);
        net.run_until(at(50_000));
        let before = net.ledger().bytes_placed();
        net.run_until(at(150_000));
        let share = (net.ledger().bytes_placed() - before) as f64 / (125e6 * 0.1);
        assert!(share > 0.8 && share < 0.97, "{share}");
    }

    /// `n` senders of 256 KB each to one port of 1 Gb/s with `buffer` packets of 1040 B: timeouts,
    /// and goodput as a share of the link.
    fn incast(n: u32, buffer: usize, config: Config) -> (u64, f64) {
        let mut net = hosts(n + 1, config);
        net.stop_logging();
        let receiver = HostId(n);
        net.set_bottleneck(
            receiver,
            Bottleneck { rate: Rate(CAPACITY), packets: buffer, trim: false },
        );
        let keys: Vec<MsgKey> =
            (0..n).map(|src| net.submit(HostId(src), receiver, 256_000)).collect();
        net.run_until_idle(Dur::from_ms(60_000));
        net.ledger().assert_all_done();
        let last = keys.iter().filter_map(|&key| net.record(key).delivered).max().unwrap();
        let timeouts = (0..n).map(|src| net.stat(HostId(src), Stat::Timeout)).sum();
        (timeouts, f64::from(n) * 256_000.0 * 8.0 / (last.as_us_f64() * 1_000.0))
    }

    /// specs/incast.md#9: near-zero timeouts and full goodput where NewReno collapses.
    #[test]
    fn an_incast_that_stops_newreno_does_not_stop_ictcp() {
        for (senders, buffer) in [(16, 64), (32, 64), (40, 96), (47, 128)] {
            let (timeouts, goodput) = incast(senders, buffer, ictcp());
            assert!(timeouts == 0 && goodput > 0.94, "{senders}: {timeouts}, {goodput}");
            let (timeouts, goodput) = incast(senders, buffer, config(ReceiveWindow::Unlimited));
            assert!(timeouts >= 10 && goodput < 0.5, "{senders}: {timeouts}, {goodput}");
        }
    }

    /// Where even the least windows do not fit, ICTCP cannot help: of 2 x 40 segments that come at
    /// once, 64 wait, one is being sent, and one has been when the second of each comes. Every one
    /// of the others, and nothing else, costs a timeout: two segments make no three duplicates.
    #[test]
    fn two_segments_of_everybody_must_fit() {
        for senders in [36, 40, 47] {
            let (timeouts, _) = incast(senders, 64, ictcp());
            assert_eq!(timeouts, 2 * u64::from(senders) - (64 + 1 + 1));
        }
    }
}
