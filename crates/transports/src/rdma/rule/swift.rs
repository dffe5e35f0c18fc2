//! Swift (Kumar et al., SIGCOMM 2020, algorithms 1 and 2): windows that hold the delay at a target,
//! one for the fabric and one for the hosts; the fabric's target grows with the length of the way
//! and as the window shrinks. A window below one packet is a packet every so many round trips.
//! specs/rdma.md#7.

use units::{Dur, Rate, Time};

use super::{Ack, Parameters, PathView, Rule, rate};
use crate::config::{ConfigError, within};

/// Parameters of Swift. Windows are in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The fabric's target for no links and a large window.
    pub base_target: Dur,
    /// What each link on the way adds to it.
    pub hop_scaling: Dur,
    /// What small windows add to it; `None`: nothing.
    pub scaling: Option<Scaling>,
    /// The target for the delay in hosts.
    pub endpoint_target: Dur,
    /// Packets that the window grows by in a round trip, above 0.
    pub ai: f64,
    /// Beta: how much of a relative excess of delay comes off the window, above 0 and below 1.
    pub beta: f64,
    /// max_mdf: no more than this part of the window comes off at once, above 0 and below 1.
    pub max_mdf: f64,
    /// The least window, above 0.
    pub min_cwnd: f64,
    /// The greatest window, not below the least.
    pub max_cwnd: f64,
    /// The window at first, between both.
    pub initial_window: f64,
    /// So many timeouts without an acknowledgement make the window the least.
    pub retx_reset_threshold: u32,
}

/// Flow scaling (section 3.5): more target where many flows share a link, as small windows tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// fs_range: the most that is added.
    pub fs_range: Dur,
    /// fs_min: the window at which all of it is.
    pub fs_min: f64,
    /// fs_max: the window at which nothing is, above `least`.
    pub fs_max: f64,
}

impl Params {
    /// As far as the paper says (specs/rdma.md#7): not what hops and flow scaling add, which are
    /// those of the `htsim` simulator (`Broadcom/csg-htsim`), nor the first window.
    pub const PAPER: Self = Self {
        base_target: Dur::from_us(25),
        hop_scaling: Dur::from_us(1),
        scaling: Some(Scaling { fs_range: Dur::from_us(125), fs_min: 0.1, fs_max: 100.0 }),
        endpoint_target: Dur::from_us(100),
        ai: 1.0,
        beta: 0.8,
        max_mdf: 0.5,
        min_cwnd: 0.001,
        max_cwnd: 256.0,
        initial_window: 15.0,
        retx_reset_threshold: 5,
    };

    /// The fabric's target over `hops` links for a window of `window` packets, seconds.
    fn target(&self, hops: u32, window: f64) -> f64 {
        let constant = (self.base_target + self.hop_scaling * u64::from(hops)).as_s_f64();
        constant + self.scaling.map_or(0.0, |scaling| scaling.adds(window))
    }
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        const ABOVE: f64 = f64::MIN_POSITIVE;
        let most = f64::MAX;
        within("ai", self.ai, ABOVE..=most, "it must be above 0")?;
        let must = "it must be above 0 and below 1";
        within("beta", self.beta, ABOVE..=1.0 - f64::EPSILON, must)?;
        within("max_mdf", self.max_mdf, ABOVE..=1.0 - f64::EPSILON, must)?;
        within("min_cwnd", self.min_cwnd, ABOVE..=most, "it must be above 0")?;
        let must = "it must not be below `min_cwnd`";
        within("max_cwnd", self.max_cwnd, self.min_cwnd..=most, must)?;
        let range = self.min_cwnd..=self.max_cwnd;
        let must = "it must be between `min_cwnd` and `max_cwnd`";
        within("initial_window", self.initial_window, range, must)?;
        if let Some(Scaling { fs_min: least, fs_max: most, .. }) = self.scaling {
            within("fs_min", least, ABOVE..=f64::MAX, "it must be above 0")?;
            let must = "it must be above `fs_min`";
            within("fs_max", most, least * (1.0 + f64::EPSILON)..=f64::MAX, must)?;
        }
        Ok(())
    }
}

impl Scaling {
    /// a / sqrt(w) + b, with a and b such that it is `range` at `least` and nothing at `most`.
    fn adds(&self, window: f64) -> f64 {
        let range = self.fs_range.as_s_f64();
        let a = range / (1.0 / self.fs_min.sqrt() - 1.0 / self.fs_max.sqrt());
        let b = -a / self.fs_max.sqrt();
        (a / window.sqrt() + b).clamp(0.0, range)
    }
}

/// One of the two windows.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Packets.
    cwnd: f64,
    /// t_last_decrease.
    fell: Option<Time>,
}

/// The sender of one queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Swift {
    params: Params,
    line: Rate,
    hops: u32,
    /// Bytes of a packet on the wire.
    packet: f64,
    fabric: Window,
    endpoint: Window,
    /// The last round-trip time measured, before that the least possible.
    rtt: Dur,
    /// Timeouts since the last acknowledgement.
    timeouts: u32,
}

impl Swift {
    pub(super) fn new(params: Params) -> Self {
        let window = Window { cwnd: params.initial_window, fell: None };
        Self {
            params,
            line: Rate(1),
            hops: 1,
            packet: 1.0,
            fabric: window,
            endpoint: window,
            rtt: Dur::ZERO,
            timeouts: 0,
        }
    }

    /// The lesser of both windows, packets.
    fn cwnd(&self) -> f64 {
        self.fabric.cwnd.min(self.endpoint.cwnd)
    }

    /// Take at most the greatest part off both windows.
    fn fall(&mut self, now: Time) {
        let (rtt, factor) = (self.rtt, 1.0 - self.params.max_mdf);
        for window in [&mut self.fabric, &mut self.endpoint] {
            if window.may_fall(now, rtt) {
                window.set(window.cwnd * factor, now, &self.params);
            }
        }
    }
}

impl Window {
    /// Once in a round trip.
    fn may_fall(&self, now: Time, rtt: Dur) -> bool {
        self.fell.is_none_or(|fell| now.since(fell) >= rtt)
    }

    fn set(&mut self, cwnd: f64, now: Time, params: &Params) {
        let cwnd = cwnd.clamp(params.min_cwnd, params.max_cwnd);
        if cwnd < self.cwnd {
            self.fell = Some(now);
        }
        self.cwnd = cwnd;
    }

    /// `acked` packets have met `delay`, where `target` is wanted, both in seconds (algorithm 1).
    fn on_ack(
        &mut self,
        (delay, target): (f64, f64),
        acked: f64,
        ack: (Time, Dur),
        params: &Params,
    ) {
        let (now, rtt) = ack;
        if delay < target {
            let per_packet = if self.cwnd >= 1.0 { 1.0 / self.cwnd } else { 1.0 };
            self.set(self.cwnd + params.ai * per_packet * acked, now, params);
        } else if self.may_fall(now, rtt) {
            let factor = 1.0 - params.beta * (delay - target) / delay;
            self.set(self.cwnd * factor.max(1.0 - params.max_mdf), now, params);
        }
    }
}

impl Rule for Swift {
    fn start(&mut self, path: &PathView, _: Time) {
        (self.line, self.hops) = (path.line_rate, path.hops);
        self.packet = f64::from(path.packet);
        self.rtt = path.base_rtt;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.timeouts = 0;
        let Some(rtt) = ack.rtt else { return };
        self.rtt = rtt + ack.local;
        let acked = ack.bytes as f64 / self.packet;
        let when = (ack.now, self.rtt);
        // What hosts take is the remote one's time from interface to interface and this one's to
        // here.
        let (fabric, hosts) = (rtt - ack.remote.min(rtt), ack.remote + ack.local);
        let target = self.params.target(self.hops, self.fabric.cwnd);
        self.fabric.on_ack((fabric.as_s_f64(), target), acked, when, &self.params);
        let target = self.params.endpoint_target.as_s_f64();
        self.endpoint.on_ack((hosts.as_s_f64(), target), acked, when, &self.params);
    }

    /// Fast recovery begins.
    fn on_nack(&mut self, now: Time) {
        self.fall(now);
    }

    fn on_timeout(&mut self, now: Time) {
        self.timeouts += 1;
        if self.timeouts >= self.params.retx_reset_threshold {
            let least = self.params.min_cwnd;
            self.fabric.set(least, now, &self.params);
            self.endpoint.set(least, now, &self.params);
        } else {
            self.fall(now);
        }
    }

    /// Below one packet: one every rtt / cwnd. Otherwise acknowledgements say when.
    fn rate(&self) -> Rate {
        let cwnd = self.cwnd();
        if cwnd >= 1.0 || self.rtt == Dur::ZERO {
            return self.line;
        }
        let paced = rate(self.packet * 8.0 * cwnd / self.rtt.as_s_f64());
        paced.min(self.line)
    }

    fn window(&self) -> u64 {
        (self.cwnd() * self.packet) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{self, PATH};
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    fn begun(params: Params) -> Swift {
        let mut rule = Swift::new(params);
        rule.start(&PATH, Time::ZERO);
        rule
    }

    fn is(what: f64, expected: f64) {
        assert!((what - expected).abs() <= expected.abs() * 1e-9, "{what}, not {expected}");
    }

    /// One packet is acknowledged at `now` after `rtt`.
    fn ack(rule: &mut Swift, now: Time, rtt: Dur) {
        let ack = bench::ack(rule, now, rtt);
        rule.on_ack(&ack);
    }

    /// specs/rdma.md#I12: base + hops for a window of fs_max and more, fs_range more for one of
    /// fs_min and less, and never more for a greater window.
    #[test]
    fn i12_the_target_falls_with_the_window() {
        let target = |window| Params::PAPER.target(2, window) * 1e6;
        is(target(100.0), 27.0);
        is(target(1_000.0), 27.0);
        is(target(0.1), 152.0);
        is(target(0.001), 152.0);
        // By hand: a = 125 / (sqrt(10) - 1/10), b = -a/10; at 1 packet a + b.
        is(target(1.0), 27.0 + 125.0 * 0.9 / (10f64.sqrt() - 0.1));
        let windows = (1..2_000).map(|n| f64::from(n) / 10.0);
        assert!(windows.clone().zip(windows.skip(1)).all(|(a, b)| target(a) >= target(b)));
        is(Params { scaling: None, ..Params::PAPER }.target(5, 0.1) * 1e6, 30.0);
    }

    /// specs/rdma.md#I12: no more than max_mdf at once, and once in a round trip.
    #[test]
    fn i12_one_bounded_decrease_in_a_round_trip() {
        let rtt = Dur::from_us(1_000);
        let mut rule = begun(Params::PAPER);
        ack(&mut rule, at(2_000), rtt);
        is(rule.cwnd(), 7.5);
        ack(&mut rule, at(2_999), rtt);
        rule.on_nack(at(2_999));
        rule.on_timeout(at(2_999));
        is(rule.cwnd(), 7.5);
        ack(&mut rule, at(3_000), rtt);
        is(rule.cwnd(), 3.75);
    }

    /// A fifth more delay than wanted: 0.8 of a sixth less window.
    #[test]
    fn the_decrease_is_the_excess() {
        let mut rule = begun(Params { scaling: None, ..Params::PAPER });
        ack(&mut rule, at(100), Dur(32_400_000));
        is(rule.cwnd(), 15.0 * (1.0 - 0.8 * (32.4 - 27.0) / 32.4));
    }

    /// One packet more in a round trip; below one, one for each packet.
    #[test]
    fn the_increase_is_a_packet_in_a_round_trip() {
        let mut rule = begun(Params::PAPER);
        ack(&mut rule, at(100), Dur::from_us(20));
        is(rule.cwnd(), 15.0 + 1.0 / 15.0);
        let mut rule = begun(Params { initial_window: 0.25, ..Params::PAPER });
        ack(&mut rule, at(100), Dur::from_us(20));
        is(rule.cwnd(), 1.25);
    }

    /// specs/rdma.md#I13: half a packet is one packet in two round trips.
    #[test]
    fn i13_half_a_window_is_every_second_round_trip() {
        let mut rule = begun(Params { initial_window: 0.5, ..Params::PAPER });
        rule.rtt = Dur::from_us(100);
        // 1082 B in 200 us.
        assert_eq!(rule.rate(), Rate(43_280_000));
        assert_eq!(rule.rate().serialise(1082), Dur::from_us(200));
        assert_eq!(rule.window(), 541);
        let rule = begun(Params { initial_window: 1.0, ..Params::PAPER });
        assert_eq!((rule.rate(), rule.window()), (PATH.line_rate, 1082));
    }

    /// The hosts' part of the delay is not the fabric's, and has a window of its own.
    #[test]
    fn delay_in_hosts_is_another_window() {
        let mut rule = begun(Params::PAPER);
        let slow =
            Ack { remote: Dur::from_us(200), ..bench::ack(&rule, at(300), Dur::from_us(220)) };
        rule.on_ack(&slow);
        is(rule.fabric.cwnd, 15.0 + 1.0 / 15.0);
        is(rule.endpoint.cwnd, 15.0 * (1.0 - 0.8 * 0.5));
        is(rule.cwnd(), rule.endpoint.cwnd);
        // What the acknowledgement waits in this host comes on top, and is in no round-trip time of
        // the interface's.
        let mut rule = begun(Params::PAPER);
        let (remote, local) = (Dur::from_us(50), Dur::from_us(150));
        let slow = Ack { remote, local, ..bench::ack(&rule, at(300), Dur::from_us(70)) };
        rule.on_ack(&slow);
        is(rule.fabric.cwnd, 15.0 + 1.0 / 15.0);
        is(rule.endpoint.cwnd, 15.0 * (1.0 - 0.8 * 0.5));
        assert_eq!(rule.rtt, Dur::from_us(220));
    }

    /// Timeouts halve; the fifth in a row makes it the least window; an acknowledgement begins the
    /// count again.
    #[test]
    fn timeouts_in_a_row_reset() {
        let mut rule = begun(Params { initial_window: 64.0, ..Params::PAPER });
        for n in 1..5 {
            rule.on_timeout(at(1_000 * n));
        }
        is(rule.cwnd(), 4.0);
        ack(&mut rule, at(4_010), Dur::from_us(20));
        rule.on_timeout(at(5_000));
        assert!(rule.cwnd() > 2.0);
        for n in 6..10 {
            rule.on_timeout(at(1_000 * n));
        }
        is(rule.cwnd(), 0.001);
    }
}
