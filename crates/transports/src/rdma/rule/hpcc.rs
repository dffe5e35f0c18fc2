//! HPCC (Li et al., SIGCOMM 2019, algorithm 1): switches write into packets what their links carry
//! and how long their queues are, and the sender sets a window that leaves every link a little
//! below full. specs/rdma.md#5.
//!
//! Every acknowledgement changes the window, but all those of one round trip start from the same
//! reference window, so that nothing is corrected twice.

use units::{Dur, Rate, Time};
use wire::int::{HOPS, Hop};

use super::super::config::Speed;
use super::{Ack, Parameters, PathView, Rule, rate};
use crate::config::{ConfigError, within};

/// Parameters of HPCC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Eta: the utilisation aimed at, above 0 and at most 1.
    pub eta: f64,
    /// maxStage: after so many additive increases the window is set by the utilisation, whatever
    /// that is.
    pub max_stage: u32,
    /// T: a little more than the longest round-trip time without queues, the same for all.
    pub rtt: Dur,
    /// W_AI: what is added to the window at each step.
    pub w_ai: Increase,
    /// R_min: the rate is never below.
    pub min_rate: Speed,
    /// Which acknowledgements do what.
    pub reaction: Reaction,
}

/// The additive increase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Increase {
    /// For so many flows at once, 1 or more: W_init (1 - eta) / N (the paper, section 3.3).
    Flows(u32),
    /// As a rate, which T makes a window of (its authors' simulator).
    Speed(Speed),
}

/// Which acknowledgements change the window: the paper's, and what it is compared with (section
/// 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// All, from a reference window that changes once in a round trip.
    Both,
    /// One in a round trip; nothing is measured in between (its authors' simulator without fast
    /// reaction).
    PerRtt,
    /// All, each from the window that the last one left.
    PerAck,
}

impl Params {
    /// The paper's (sections 3.3 and 5.1), for round trips of up to 13 us (its fat tree) and 16
    /// flows at once. It has no R_min: its simulator's least.
    pub const PAPER: Self = Self {
        eta: 0.95,
        max_stage: 5,
        rtt: Dur::from_us(13),
        w_ai: Increase::Flows(16),
        min_rate: Speed::Fixed(Rate(100_000_000)),
        reaction: Reaction::Both,
    };

    /// Its authors' simulator as its script runs it: 10 Mb/s per 25 Gb/s of the line are added, the
    /// window always follows the utilisation, and the rate is never below 1 Gb/s at 100 Gb/s.
    pub const SIMULATOR: Self = Self {
        max_stage: 0,
        w_ai: Increase::Speed(Speed::Share(0.0004)),
        min_rate: Speed::Share(0.01),
        ..Self::PAPER
    };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        let must = "it must be above 0 and at most 1";
        within("eta", self.eta, f64::MIN_POSITIVE..=1.0, must)?;
        let must = "it must be above zero";
        within("rtt", self.rtt.0 as f64, 1.0..=f64::MAX, must)?;
        self.min_rate.check("min_rate")?;
        match self.w_ai {
            Increase::Flows(n) => within("flows", f64::from(n), 1.0..=f64::MAX, must),
            Increase::Speed(speed) => speed.check("w_ai"),
        }
    }
}

/// The sender of one queue pair. Windows are in bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Hpcc {
    params: Params,
    /// The line's rate, bits per second.
    line: f64,
    /// W_init: what the line carries in T.
    initial: f64,
    /// W_AI.
    step: f64,
    /// What R_min carries in T.
    least: f64,
    /// Bytes of a full packet.
    packet: u64,
    /// W.
    window: f64,
    /// W_c.
    reference: f64,
    /// incStage.
    stage: u32,
    /// U.
    utilization: f64,
    /// lastUpdateSeq: an acknowledgement beyond it ends a round trip.
    round: u64,
    /// L: what the last acknowledgement brought, as far as it did; nothing before the first.
    before: [Hop; HOPS],
    hops: usize,
}

impl Hpcc {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            line: 1.0,
            initial: 1.0,
            step: 0.0,
            least: 1.0,
            packet: 1,
            window: 1.0,
            reference: 1.0,
            stage: 0,
            utilization: 1.0,
            round: 0,
            before: [Hop::default(); HOPS],
            hops: 0,
        }
    }

    /// MeasureInflight: brings U up to date. `None` if `hops` tell nothing, as there is nothing to
    /// compare them with: the first ones, and those of another way.
    fn measure(&mut self, hops: &[Hop]) -> Option<f64> {
        let before = &self.before[..self.hops];
        let same = |(now, before): (&Hop, &Hop)| now.rate() == before.rate();
        let comparable = hops.len() == before.len() && hops.iter().zip(before).all(same);
        let t = self.params.rtt.as_s_f64();
        let mut busiest = None::<(f64, f64)>;
        for (now, before) in hops.iter().zip(before).filter(|_| comparable) {
            let line = now.rate().0 as f64;
            let tau = now.since(*before).as_s_f64();
            let queue = now.queue().min(before.queue()) as f64 * 8.0;
            let u = queue / (line * t) + now.sent_since(*before) as f64 * 8.0 / tau / line;
            // Two packets in a nanosecond, by way of packets lost between them, say nothing.
            if tau > 0.0 && busiest.is_none_or(|(most, _)| u > most) {
                busiest = Some((u, tau));
            }
        }
        self.hops = hops.len().min(HOPS);
        self.before[..self.hops].copy_from_slice(&hops[..self.hops]);
        let (u, tau) = busiest?;
        let weight = tau.min(t) / t;
        self.utilization = (1.0 - weight) * self.utilization + weight * u;
        Some(self.utilization)
    }

    /// ComputeWind: the window for utilisation `u`, and the stage, from the reference.
    fn compute(&self, u: f64) -> (f64, u32) {
        let load = u / self.params.eta;
        let (window, stage) = if load >= 1.0 || self.stage >= self.params.max_stage {
            (self.reference / load + self.step, 0)
        } else {
            (self.reference + self.step, self.stage + 1)
        };
        (window.max(self.least).min(self.initial), stage)
    }
}

impl Rule for Hpcc {
    fn start(&mut self, path: &PathView, _: Time) {
        let (params, line) = (&self.params, path.line_rate);
        let bytes = |rate: f64| rate * params.rtt.as_s_f64() / 8.0;
        self.line = line.0 as f64;
        self.packet = u64::from(path.packet);
        self.initial = bytes(self.line);
        self.least = bytes(params.min_rate.of(line));
        self.step = match params.w_ai {
            Increase::Flows(n) => self.initial * (1.0 - params.eta) / f64::from(n),
            Increase::Speed(speed) => bytes(speed.of(line)),
        };
        (self.window, self.reference) = (self.initial, self.initial);
    }

    /// NewAck.
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.hops.is_empty() {
            return;
        }
        let first = self.hops == 0;
        let ends_round = ack.acked > self.round;
        if self.params.reaction == Reaction::PerRtt && !first && !ends_round {
            return;
        }
        let u = self.measure(ack.hops);
        if first || ends_round && u.is_some() {
            self.round = ack.next;
        }
        let Some(u) = u else { return };
        let (window, stage) = self.compute(u);
        self.window = window;
        if ends_round || self.params.reaction == Reaction::PerAck {
            (self.reference, self.stage) = (window, stage);
        }
    }

    /// W / T, at most the line's.
    fn rate(&self) -> Rate {
        rate((self.window * 8.0 / self.params.rtt.as_s_f64()).min(self.line))
    }

    /// A packet may leave while less than W is in flight.
    fn window(&self) -> u64 {
        (self.window as u64).saturating_add(self.packet - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{self, PATH};
    use super::*;

    const LINE: Rate = Rate(100_000_000_000);
    const T: Dur = Dur::from_us(13);
    /// 100 Gb/s times 13 us.
    const INITIAL: f64 = 162_500.0;

    fn begun(params: Params) -> Hpcc {
        let mut rule = Hpcc::new(params);
        rule.start(&PathView { line_rate: LINE, ..PATH }, Time::ZERO);
        rule
    }

    fn hop(ns: u64, sent: u64, queue: u64) -> Hop {
        Hop::new(LINE, Time(ns * 1_000), sent, queue).unwrap()
    }

    /// Acknowledge `acked` of `next` with what switches wrote.
    fn ack(rule: &mut Hpcc, acked: u64, next: u64, hops: &[Hop]) {
        let ack = Ack { acked, next, hops, ..bench::ack(rule, Time::ZERO, T) };
        rule.on_ack(&ack);
    }

    fn is(what: f64, expected: f64) {
        assert!((what - expected).abs() <= expected.abs() * 1e-9, "{what}, not {expected}");
    }

    /// specs/rdma.md#I9: a link that is always full, with an empty queue, has U = 1. Bytes and
    /// times as they are on the wire, quantised.
    #[test]
    fn i9_a_full_link_without_queue_is_one() {
        let mut rule = begun(Params::PAPER);
        rule.utilization = 0.5;
        for n in 0..2_000 {
            let acked = [hop(n * 84, n * 1_050, 0)];
            rule.measure(&acked);
        }
        assert!((rule.utilization - 1.0).abs() < 0.01, "{}", rule.utilization);
    }

    /// The queue counts by the time that it takes of T: 16 250 B are a tenth; the shorter of two
    /// queues counts.
    #[test]
    fn a_queue_adds_its_share_of_t() {
        let mut rule = begun(Params::PAPER);
        assert_eq!(rule.measure(&[hop(0, 0, 16_320)]), None);
        let u = rule.measure(&[hop(13_000, 81_408, 64_000)]).unwrap();
        is(u, 16_320.0 / 162_500.0 + 81_408.0 / 162_500.0);
    }

    /// The busiest port counts, with the weight of its own interval: T/4 here.
    #[test]
    fn the_busiest_port_counts() {
        let mut rule = begun(Params::PAPER);
        rule.measure(&[hop(0, 0, 0), hop(0, 0, 0)]);
        let u = rule.measure(&[hop(3_250, 20_480, 0), hop(3_250, 40_960, 0)]).unwrap();
        is(u, 0.75 + 0.25 * (40_960.0 / 40_625.0));
    }

    /// The first acknowledgement is only remembered, as is the first of another way.
    #[test]
    fn nothing_to_compare_with_changes_nothing() {
        let mut rule = begun(Params::PAPER);
        ack(&mut rule, 1, 10, &[hop(0, 0, 0)]);
        assert_eq!((rule.round, rule.utilization, rule.window), (10, 1.0, INITIAL));
        ack(&mut rule, 11, 20, &[hop(0, 0, 0), hop(9, 0, 0)]);
        assert_eq!((rule.round, rule.utilization, rule.window), (10, 1.0, INITIAL));
        ack(&mut rule, 12, 20, &[]);
        assert_eq!(rule.hops, 2);
    }

    /// specs/rdma.md#I9: W_c changes once in a round trip, W with every acknowledgement, from W_c.
    #[test]
    fn i9_the_reference_changes_once_in_a_round_trip() {
        let mut rule = begun(Params::PAPER);
        let mut changes = 0;
        for n in 0..100 {
            let reference = rule.reference;
            ack(&mut rule, n, n + 10, &[hop(n * 650, n * 8_192, 20_000)]);
            changes += u32::from(rule.reference != reference);
            if n > 0 && rule.reference == reference {
                let load = rule.utilization / 0.95;
                is(rule.window, (reference / load + rule.step).min(INITIAL));
            }
        }
        // A round trip is 10 packets: 100 are 9 of them after the first.
        assert_eq!(changes, 9);
    }

    /// specs/rdma.md#I10: alone on a link of which it uses W/T, a flow comes to eta W_init and a
    /// few W_AI.
    #[test]
    fn i10_a_single_flow_settles_at_eta() {
        let mut rule = begun(Params::PAPER);
        let (mut sent, mut ns) = (0.0, 0);
        for n in 0..40 {
            ns += 13_000;
            sent += rule.window.min(INITIAL);
            ack(&mut rule, n + 1, n + 2, &[hop(ns, sent as u64, 0)]);
        }
        let settled = 0.95 * INITIAL;
        assert!((rule.window - settled).abs() <= 7.0 * rule.step, "{}", rule.window);
        let window = rule.window;
        ack(&mut rule, 40, 41, &[]);
        assert_eq!(rule.window, window, "nothing acknowledged, no growth");
    }

    /// After five additive steps below eta, the window is set by the utilisation: up.
    #[test]
    fn stages_of_increase() {
        let mut rule = begun(Params::PAPER);
        (rule.reference, rule.utilization) = (10_000.0, 0.1);
        for stage in 0..5 {
            let (window, next) = rule.compute(0.1);
            is(window, rule.reference + rule.step);
            assert_eq!(next, stage + 1);
            (rule.reference, rule.stage) = (window, next);
        }
        let (window, stage) = rule.compute(0.1);
        is(window, rule.reference * 9.5 + rule.step);
        assert_eq!(stage, 0);
    }

    /// The ablations of the paper's figure 6.
    #[test]
    fn ablations() {
        let run = |reaction| {
            let mut rule = begun(Params { reaction, ..Params::PAPER });
            for n in 0..5 {
                ack(&mut rule, n, 10, &[hop(n * 6_500, n * 81_408, 162_560)]);
            }
            rule
        };
        let (both, per_rtt, per_ack) =
            (run(Reaction::Both), run(Reaction::PerRtt), run(Reaction::PerAck));
        assert_eq!(per_rtt.window, INITIAL, "the round trip is not over");
        assert!(both.window < INITIAL && both.reference == INITIAL);
        assert!(per_ack.window < both.window / 2.0, "the same queue is corrected again and again");
    }

    /// Its authors' simulator without fast reaction: what comes within a round trip is not looked
    /// at, so that U is that of the whole round trip, by its first and its last queue.
    #[test]
    fn without_fast_reaction_a_whole_round_trip_is_measured() {
        let mut rule = begun(Params { reaction: Reaction::PerRtt, ..Params::PAPER });
        for n in 0..=13 {
            let queue = if n < 13 { 162_560 } else { 0 };
            ack(&mut rule, n, 12, &[hop(n * 1_000, n * 5_120, queue)]);
        }
        assert_eq!(rule.before[0], hop(13_000, 13 * 5_120, 0));
        is(rule.utilization, 13.0 * 5_120.0 / 162_500.0);
    }

    /// W_AI: W_init (1-eta)/N; as a rate, what it carries in T.
    #[test]
    fn the_additive_step() {
        is(begun(Params::PAPER).step, 162_500.0 * 0.05 / 16.0);
        let increase = Increase::Speed(Speed::Fixed(Rate(40_000_000)));
        is(begun(Params { w_ai: increase, ..Params::PAPER }).step, 65.0);
    }
}
