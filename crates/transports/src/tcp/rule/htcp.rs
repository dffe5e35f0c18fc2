//! H-TCP (Leith and Shorten; draft-leith-tcp-htcp): growth quickens with the time since the last
//! loss, and what a loss leaves depends on the queueing that the flow has seen. As in Linux
//! (specs/tcp.md#8.2).

use units::{Dur, Time};

use super::{Acked, Parameters, Rule, seconds};

/// Parameters of H-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Growth is divided by 100 ms / RTTmin, within 1/2 to 10 (Linux, `use_rtt_scaling`).
    pub rtt_scaling: bool,
    /// A loss halves the window where throughput changed by more than a fifth since the loss
    /// before (Linux, `use_bandwidth_switch`).
    pub bandwidth_switch: bool,
}

impl Params {
    /// As Linux has it.
    pub const LINUX: Self = Self { rtt_scaling: true, bandwidth_switch: true };
}

const BETA_MIN: f64 = 0.5;
const BETA_MAX: f64 = 0.8;
/// Below this RTTmin beta stays at its least (Linux: HZ/100).
const SHORT: Dur = Dur::from_ms(10);
/// For so long after a loss growth is Reno's.
const LOW_SPEED: Dur = Dur::from_ms(1_000);

impl Parameters for Params {}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct HTcp {
    params: Params,
    /// The last loss; the first acknowledgement before any.
    last_loss: Option<Time>,
    /// Least and greatest round-trip time since the connection began; zero without a sample. The
    /// greatest is brought nearer to the least at every loss.
    rtt_min: Dur,
    rtt_max: Dur,
    /// Segments acknowledged since the last loss, and segments per second between the two before.
    acked: f64,
    throughput: f64,
    beta: f64,
    /// Losses so far, up to two.
    epochs: u8,
}

impl HTcp {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            last_loss: None,
            rtt_min: Dur::ZERO,
            rtt_max: Dur::ZERO,
            acked: 0.0,
            throughput: 0.0,
            beta: BETA_MIN,
            epochs: 0,
        }
    }

    /// Segments of growth per round trip, `since` the last loss.
    fn alpha(&self, since: Dur) -> f64 {
        let mut alpha = 1.0;
        if since > LOW_SPEED {
            let over = seconds(since - LOW_SPEED);
            alpha = 1.0 + 10.0 * over + over * over / 4.0;
        }
        if self.params.rtt_scaling && self.rtt_min > Dur::ZERO {
            alpha = (alpha / (0.1 / seconds(self.rtt_min)).clamp(0.5, 10.0)).max(1.0);
        }
        (2.0 * (1.0 - self.beta) * alpha).max(1.0)
    }

    /// What a loss leaves, and whether throughput is steady enough to say so.
    fn adapt_beta(&mut self, now: Time) {
        let took = self.last_loss.map_or(0.0, |last| seconds(now.since(last)));
        let old = self.throughput;
        self.throughput = if took > 0.0 { self.acked / took } else { 0.0 };
        self.epochs = (self.epochs + 1).min(2);
        let change = self.throughput - old;
        let unsteady = self.params.bandwidth_switch && !(-0.2 * old..=0.2 * old).contains(&change);
        if unsteady || self.epochs < 2 || self.rtt_min <= SHORT {
            self.beta = BETA_MIN;
        } else {
            self.beta = (seconds(self.rtt_min) / seconds(self.rtt_max)).clamp(BETA_MIN, BETA_MAX);
        }
    }
}

impl Rule for HTcp {
    fn on_ack(&mut self, ack: &Acked) {
        self.last_loss.get_or_insert(ack.now);
        self.acked += ack.segments;
        if let Some(rtt) = ack.sample {
            self.rtt_min = if self.rtt_min == Dur::ZERO { rtt } else { self.rtt_min.min(rtt) };
            self.rtt_max = self.rtt_max.max(rtt);
        }
    }

    fn increase(&mut self, cwnd: f64, n: f64, ack: &Acked) -> f64 {
        let since = self.last_loss.map_or(Dur::ZERO, |last| ack.now.since(last));
        n * self.alpha(since) / cwnd
    }

    fn after_loss(&mut self, used: f64, now: Time) -> f64 {
        self.adapt_beta(now);
        (self.last_loss, self.acked) = (Some(now), 0.0);
        let spread = self.rtt_max.0.saturating_sub(self.rtt_min.0);
        self.rtt_max = self.rtt_min + Dur(spread / 100 * 95);
        used * self.beta
    }

    /// Time without data does not count as time without loss.
    fn after_idle(&mut self, idle: Dur, _: bool) {
        self.last_loss = self.last_loss.map(|last| last.saturating_add(idle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(rule: &mut HTcp, now: Time, ms: u64) {
        let sample = Some(Dur::from_ms(ms));
        rule.on_ack(&Acked { sample, ..Acked::one(now) });
    }

    /// draft-leith-tcp-htcp: alpha = 1 + 10 (t - 1) + ((t - 1) / 2)^2, scaled by 2 (1 - beta).
    #[test]
    fn growth_quickens_a_second_after_the_loss() {
        let rule = HTcp::new(Params { rtt_scaling: false, ..Params::LINUX });
        assert_eq!(rule.alpha(Dur::from_ms(1_000)), 1.0);
        assert_eq!(rule.alpha(Dur::from_ms(3_000)), 1.0 + 20.0 + 1.0);
        let steady = HTcp { beta: 0.8, ..rule };
        assert!((steady.alpha(Dur::from_ms(3_000)) - 0.4 * 22.0).abs() < 1e-9);
    }

    #[test]
    fn short_round_trips_slow_the_growth_tenfold() {
        let mut rule = HTcp::new(Params::LINUX);
        sampled(&mut rule, Time::ZERO, 1);
        assert!((rule.alpha(Dur::from_ms(3_000)) - 2.2).abs() < 1e-9);
        assert_eq!(rule.alpha(Dur::from_ms(1_500)), 1.0, "never below Reno's");
    }

    /// Round trips of 100 to 150 ms: beta is 2/3, once two epochs had the same throughput.
    #[test]
    fn what_a_loss_leaves_depends_on_the_queueing_seen() {
        let mut rule = HTcp::new(Params::LINUX);
        let at = |s: u64| Time::ZERO + Dur::from_ms(1_000 * s);
        let mut epoch = |from: u64, acks: u64| {
            for i in 0..acks {
                sampled(&mut rule, at(from), if i == 0 { 100 } else { 150 });
            }
            rule.after_loss(90.0, at(from + 10))
        };
        assert_eq!(epoch(0, 100), 45.0, "the first epoch");
        assert!((epoch(10, 100) - 60.0).abs() < 1e-9);
        assert_eq!(epoch(20, 200), 45.0, "throughput has changed");
    }

    /// Invariant specs/tcp.md#T11: with losses more often than once a second and round trips of
    /// less than 10 ms it is Reno.
    #[test]
    fn t11_in_a_data_centre_it_is_reno() {
        let mut rule = HTcp::new(Params::LINUX);
        let mut now = Time::ZERO;
        for _ in 0..5 {
            for _ in 0..100 {
                now += Dur::from_ms(5);
                sampled(&mut rule, now, 3);
                assert_eq!(rule.increase(20.0, 1.0, &Acked::one(now)), 1.0 / 20.0);
            }
            assert_eq!(rule.after_loss(20.0, now), 10.0);
        }
    }
}
