//! Congestion-control rules: how the window grows beyond slow start, and what a loss or a mark
//! leaves of it. A rule knows windows in segments and times, no packets. Everything else (slow
//! start, recovery, timeouts, caps) is the same for all of them. The coupled rules of MPTCP's
//! subflows also hear of their connection (`Group`), which `mptcp/coupling.rs` works out.
//!
//! To add a rule: a file here with its `Parameters` and its `Rule`, its `mod`, its line in the
//! table below, and its keys in `crates/scenario/src/transport/tcp.rs`. `cubic.rs` is an example.

pub mod bic;
pub mod cubic;
pub mod d2tcp;
pub mod dctcp;
pub mod ewtcp;
pub mod fast;
mod fully_coupled;
pub mod htcp;
pub mod lia;
mod newreno;
mod olia;
pub mod semicoupled;
#[cfg(test)]
mod tests;

use units::{Dur, Time};

use super::config::Increase;
use crate::config::{ConfigError, refuse};
use crate::rules::rules;

rules! { pub(super),
    /// One segment per round trip, half after a loss (RFC 5681).
    NewReno => newreno::NewReno,
    /// BIC (Xu, Harfoush and Rhee, INFOCOM 2004) as in Linux.
    Bic(params: bic::Params) => bic::Bic,
    /// H-TCP (draft-leith-tcp-htcp) as in Linux.
    HTcp(params: htcp::Params) => htcp::HTcp,
    /// CUBIC (RFC 9438).
    Cubic(params: cubic::Params) => cubic::Cubic,
    /// DCTCP (RFC 8257).
    Dctcp(params: dctcp::Params) => dctcp::Dctcp,
    /// D2TCP (Vamanan and others, SIGCOMM 2012).
    D2tcp(params: d2tcp::Params) => d2tcp::D2tcp,
    /// FAST TCP (Wei and others, ToN 2006).
    Fast(params: fast::Params) => fast::Fast,
    /// LIA (RFC 6356), for subflows as those that follow.
    Lia(params: lia::Params) => lia::Lia,
    /// COUPLED (Wischik and others, NSDI 2011).
    FullyCoupled => fully_coupled::FullyCoupled,
    /// EWTCP (Honda and others, PFLDNeT 2009).
    Ewtcp(weight: ewtcp::Weight) => ewtcp::Ewtcp,
    /// SEMICOUPLED (Wischik and others, NSDI 2011) and its family.
    Semicoupled(params: semicoupled::Params) => semicoupled::Semicoupled,
    /// OLIA (Khalili and others, CoNEXT 2012).
    Olia => olia::Olia,
}

/// What is asked of the parameters of any rule.
pub(super) trait Parameters {
    /// An error if one of them is out of its range.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Whether the rule's receivers echo each mark, not just whether there was one (RFC 8257,
    /// section 3.2, instead of RFC 3168, section 6.1.3).
    fn echoes_each_mark(&self) -> bool {
        false
    }
}

impl Parameters for () {}

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Time,
    /// Segments acknowledged, a real number.
    pub(super) segments: f64,
    /// No loss was being repaired when it came.
    pub(super) open: bool,
    /// It echoes congestion (ECE).
    pub(super) marked: bool,
    /// It is the first beyond what had been sent when the last such came: a round trip is over.
    pub(super) new_round: bool,
    /// The round-trip time that it measures, if it does.
    pub(super) sample: Option<Dur>,
    /// The smoothed round-trip time, this sample included.
    pub(super) srtt: Option<Dur>,
    /// What is left of the message that is acknowledged next, if that has a deadline.
    pub(super) due: Option<Due>,
}

/// What is left of a message with a deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Due {
    /// Segments not acknowledged.
    pub(super) segments: f64,
    /// The time left for them; zero if it is up.
    pub(super) within: Dur,
    /// The smoothed round-trip time, by an ideal clock.
    pub(super) rtt: Dur,
}

/// What a coupled rule knows of the connection that its subflow belongs to, as `mptcp/coupling.rs`
/// works it out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    /// Established subflows, at least 1.
    pub(crate) subflows: u32,
    /// Their windows together, segments: w_tot.
    pub(crate) total: f64,
    /// LIA's alpha (RFC 6356, equation 2): 1 for a single subflow.
    pub(crate) alpha: f64,
    /// The part of the connection's rate that is this subflow's, by windows and round trips: 0 to
    /// 1.
    pub(crate) rate_share: f64,
    /// OLIA's alpha_i: how strongly window is moved to (above 0) or from this subflow, -1 to 1.
    pub(crate) shift: f64,
}

impl Group {
    /// Of a subflow that is alone. Whatever its window, the total is that: rules take the larger of
    /// both.
    pub(crate) const ALONE: Self =
        Self { subflows: 1, total: 0.0, alpha: 1.0, rate_share: 1.0, shift: 0.0 };
}

/// What a subflow contributes to the [`Group`]s of its connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    /// Its window, segments. In fast recovery that is ssthresh: what is inflated does not count
    /// (RFC 6356, section 3).
    pub(crate) window: f64,
    /// Its smoothed round-trip time by an ideal clock, if it has been measured.
    pub(crate) srtt: Option<Dur>,
    /// [`Rule::loss_interval`].
    pub(crate) loss_interval: f64,
}

/// A rule. Windows are in segments; what the methods return is bounded by the caller, who never
/// lets a window go below what RFC 5681 says.
pub(super) trait Rule {
    /// How acknowledgements are counted: before any other call.
    fn start(&mut self, _increase: Increase) {}

    /// What the connection is like now, of which this is a subflow's rule: before any other call.
    fn on_group(&mut self, _group: &Group) {}

    /// Hears of every acknowledgement of new data, in recovery too, before anything else happens.
    fn on_ack(&mut self, _ack: &Acked) {}

    /// Whether slow start is over, though the window is below ssthresh.
    fn ends_slow_start(&self) -> bool {
        false
    }

    /// By how much a window of `cwnd` grows in congestion avoidance. `n` is what to count the
    /// acknowledgement as: its segments, or one ([`super::Increase`]).
    fn increase(&mut self, cwnd: f64, n: f64, ack: &Acked) -> f64;

    /// ssthresh, and with it the window, after a loss with the window `used` in use.
    fn after_loss(&mut self, used: f64, now: Time) -> f64;

    /// ssthresh after a timeout; the window is then one segment.
    fn after_timeout(&mut self, used: f64, now: Time) -> f64 {
        self.after_loss(used, now)
    }

    /// The window after a congestion mark: as after a loss (RFC 3168, section 6.1.2).
    fn after_mark(&mut self, used: f64, now: Time) -> f64 {
        self.after_loss(used, now)
    }

    /// The window is never below so many segments after a loss or a mark (RFC 5681, equation 4).
    fn least(&self) -> f64 {
        2.0
    }

    /// ssthresh after a loss in a window of data that a mark has reduced already, from `before` to
    /// `reduced`: one reduction per window (RFC 3168, section 6.1.2), which was as great as for a
    /// loss.
    fn after_mark_and_loss(&mut self, _before: f64, reduced: f64) -> f64 {
        reduced
    }

    /// Nothing was in flight for `idle`, and now something will be; `restarts`: by slow start.
    fn after_idle(&mut self, _idle: Dur, _restarts: bool) {}

    /// Segments that the path has carried without a loss, as OLIA counts them; others do not.
    fn loss_interval(&self) -> f64 {
        0.0
    }
}

impl State {
    /// The rule of a connection that counts acknowledgements by `increase`.
    pub(super) fn started(config: &RuleConfig, increase: Increase) -> Self {
        let mut rule = Self::new(config);
        rule.get_mut().start(increase);
        rule
    }
}

#[cfg(test)]
impl Acked {
    /// One segment, by itself, without a sample.
    fn one(now: Time) -> Self {
        Self {
            now,
            segments: 1.0,
            open: true,
            marked: false,
            new_round: false,
            sample: None,
            srtt: None,
            due: None,
        }
    }
}

fn seconds(dur: Dur) -> f64 {
    dur.0 as f64 / 1e12
}

/// `value` of the parameter `name` must be in a range that excludes its ends.
pub(super) fn between(
    name: &'static str,
    value: f64,
    low: f64,
    high: f64,
    must: &'static str,
) -> Result<(), ConfigError> {
    // Not `value <= low`: a NaN is out of range too.
    if value > low && value < high { Ok(()) } else { refuse(name, value, must) }
}
