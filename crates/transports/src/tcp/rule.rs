//! Congestion-control rules: how the window grows beyond slow start, and what a loss or a mark
//! leaves of it. A rule knows windows in segments and times, no packets. Everything else (slow
//! start, recovery, timeouts, caps) is the same for all of them. The coupled rules of MPTCP's subflows also
//! hear of their connection (`Group`), which `mptcp/coupling.rs` works out.
//!
//! To add a rule: a file here with its parameters and its `Rule`, a variant of [`RuleConfig`]
//! and of `State`, and its keys in `crates/scenario/src/transport/tcp.rs`. `cubic.rs` is an
//! example.

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

use super::config::{ConfigError, Increase};

/// Which rule, and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RuleConfig {
    /// One segment per round trip, half after a loss (RFC 5681).
    NewReno,
    /// BIC (Xu, Harfoush and Rhee, INFOCOM 2004) as in Linux.
    Bic(bic::Params),
    /// H-TCP (draft-leith-tcp-htcp) as in Linux.
    HTcp(htcp::Params),
    /// CUBIC (RFC 9438).
    Cubic(cubic::Params),
    /// DCTCP (RFC 8257).
    Dctcp(dctcp::Params),
    /// D2TCP (Vamanan and others, SIGCOMM 2012).
    D2tcp(d2tcp::Params),
    /// FAST TCP (Wei and others, ToN 2006).
    Fast(fast::Params),
    /// LIA (RFC 6356), for subflows as those that follow.
    Lia(lia::Params),
    /// COUPLED (Wischik and others, NSDI 2011).
    FullyCoupled,
    /// EWTCP (Honda and others, PFLDNeT 2009).
    Ewtcp(ewtcp::Weight),
    /// SEMICOUPLED (Wischik and others, NSDI 2011) and its family.
    Semicoupled(semicoupled::Params),
    /// OLIA (Khalili and others, CoNEXT 2012).
    Olia,
}

impl RuleConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::NewReno | Self::HTcp(_) | Self::FullyCoupled | Self::Ewtcp(_) | Self::Olia => {
                Ok(())
            }
            Self::Bic(params) => params.check(),
            Self::Cubic(params) => params.check(),
            Self::Dctcp(params) => params.check(),
            Self::D2tcp(params) => params.check(),
            Self::Fast(params) => params.check(),
            Self::Lia(params) => params.check(),
            Self::Semicoupled(params) => params.check(),
        }
    }

    /// Whether its receivers echo each mark, not just whether there was one (RFC 8257, section
    /// 3.2, instead of RFC 3168, section 6.1.3).
    pub(super) fn echoes_each_mark(&self) -> bool {
        matches!(self, Self::Dctcp(_) | Self::D2tcp(_))
    }
}

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

/// What a coupled rule knows of the connection that its subflow belongs to, as `mptcp/coupling.rs` works it out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    /// Established subflows, at least 1.
    pub(crate) subflows: u32,
    /// Their windows together, segments: w_tot.
    pub(crate) total: f64,
    /// LIA's alpha (RFC 6356, equation 2): 1 for a single subflow.
    pub(crate) alpha: f64,
    /// The part of the connection's rate that is this subflow's, by windows and round trips: 0 to 1.
    pub(crate) rate_share: f64,
    /// OLIA's alpha_i: how strongly window is moved to (above 0) or from this subflow, -1 to 1.
    pub(crate) shift: f64,
}

impl Group {
    /// Of a subflow that is alone. Whatever its window, the total is that: rules take the larger of both.
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
    /// [`State::loss_interval`].
    pub(crate) loss_interval: f64,
}

/// A rule. Windows are in segments; what the methods return is bounded by the caller, who never
/// lets a window go below what RFC 5681 says.
pub(super) trait Rule {
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
}

/// The rule of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    NewReno(newreno::NewReno),
    Bic(bic::Bic),
    HTcp(htcp::HTcp),
    Cubic(cubic::Cubic),
    Dctcp(dctcp::Dctcp),
    D2tcp(d2tcp::D2tcp),
    Fast(fast::Fast),
    Lia(lia::Lia),
    FullyCoupled(fully_coupled::FullyCoupled),
    Ewtcp(ewtcp::Ewtcp),
    Semicoupled(semicoupled::Semicoupled),
    Olia(olia::Olia),
}

impl State {
    pub(super) fn new(config: &RuleConfig, increase: Increase) -> Self {
        match *config {
            RuleConfig::NewReno => Self::NewReno(newreno::NewReno),
            RuleConfig::Bic(params) => Self::Bic(bic::Bic::new(params, increase)),
            RuleConfig::HTcp(params) => Self::HTcp(htcp::HTcp::new(params)),
            RuleConfig::Cubic(params) => Self::Cubic(cubic::Cubic::new(params)),
            RuleConfig::Dctcp(params) => Self::Dctcp(dctcp::Dctcp::new(params)),
            RuleConfig::D2tcp(params) => Self::D2tcp(d2tcp::D2tcp::new(params)),
            RuleConfig::Fast(params) => Self::Fast(fast::Fast::new(params)),
            RuleConfig::Lia(params) => Self::Lia(lia::Lia::new(params)),
            RuleConfig::FullyCoupled => Self::FullyCoupled(fully_coupled::FullyCoupled::new()),
            RuleConfig::Ewtcp(weight) => Self::Ewtcp(ewtcp::Ewtcp::new(weight)),
            RuleConfig::Semicoupled(params) => {
                Self::Semicoupled(semicoupled::Semicoupled::new(params))
            }
            RuleConfig::Olia => Self::Olia(olia::Olia::new()),
        }
    }

    /// Segments that the path has carried without a loss, as OLIA counts them; others do not.
    pub(super) fn loss_interval(&self) -> f64 {
        match self {
            Self::Olia(rule) => rule.loss_interval(),
            _ => 0.0,
        }
    }

    pub(super) fn get(&mut self) -> &mut dyn Rule {
        match self {
            Self::NewReno(rule) => rule,
            Self::Bic(rule) => rule,
            Self::HTcp(rule) => rule,
            Self::Cubic(rule) => rule,
            Self::Dctcp(rule) => rule,
            Self::D2tcp(rule) => rule,
            Self::Fast(rule) => rule,
            Self::Lia(rule) => rule,
            Self::FullyCoupled(rule) => rule,
            Self::Ewtcp(rule) => rule,
            Self::Semicoupled(rule) => rule,
            Self::Olia(rule) => rule,
        }
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
    if value > low && value < high { Ok(()) } else { Err(ConfigError::Range { name, value, must }) }
}
