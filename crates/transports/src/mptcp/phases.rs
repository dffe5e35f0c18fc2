//! Which subflows a connection has, and when: those of MPTCP from the start; in MMPTCP one whose
//! packets are scattered over all paths, and after it the others (specs/mptcp.md#4).

use endpoint::{Cx, Purpose};
use units::Dur;

use super::config::{Config, GAP_STEP, Scatter, ScatterThreshold, Switch, SwitchOn};
use super::connection::{Connection, State, Subflow};
use crate::tcp::sender::{Identity, Sender};
use crate::tcp::{self, PATH, RuleConfig, rr};

/// How long a join waits.
const JOIN_GAP: Purpose = Purpose::new("mptcp join gap");

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// MPTCP: as many subflows as it has, all alike.
    Multipath,
    /// One subflow, whose packets are scattered.
    Scatter,
    /// The same, while others are being opened.
    Switching,
    /// The others carry the data; the first repairs what it has outstanding.
    Switched,
}

impl Phase {
    /// That of a new connection.
    pub(super) fn first(config: &Config) -> Self {
        if config.scatter.is_some() { Self::Scatter } else { Self::Multipath }
    }

    /// Whether subflow `i` is the one whose packets are scattered, in this phase or the one before.
    pub(super) fn scatters(self, i: usize) -> bool {
        self != Self::Multipath && i == 0
    }

    /// Whether new data may be mapped to subflow `i`.
    pub(super) fn maps_to(self, i: usize) -> bool {
        self != Self::Switched || i != 0
    }

    /// Whether subflow `i` is one of those whose windows are coupled.
    pub(super) fn is_coupled(self, i: usize) -> bool {
        !self.scatters(i)
    }
}

impl Connection {
    /// Open the first subflow, and if that takes no handshake the others, too. True if subflows
    /// wait to join.
    pub(super) fn open(&mut self, config: &Config, cx: &Cx<'_>) -> bool {
        let mut tcp = config.tcp;
        if let Some(scatter) = config.scatter {
            // Alone, it is no part of a group.
            tcp.rule = RuleConfig::NewReno;
            (tcp.dup_threshold, tcp.rr) = scatter_threshold(&scatter, cx.net.paths(self.id.dst));
        }
        let sender = Sender::new(&tcp, self.id);
        self.subflows.push(Subflow::new(sender, State::Live));
        self.subflows[0].sender.is_open() && self.on_open(config, cx, 0)
    }

    /// Subflow `i` is open. True if subflows wait to join now.
    pub(super) fn on_open(&mut self, config: &Config, cx: &Cx<'_>, i: usize) -> bool {
        match self.phase {
            Phase::Multipath if i == 0 => self.join(config, cx),
            Phase::Switching if i != 0 => {
                self.phase = Phase::Switched;
                false
            }
            _ => false,
        }
    }

    /// An acknowledgement has come. True if subflows wait to join now.
    pub(super) fn may_switch(&mut self, config: &Config, cx: &Cx<'_>) -> bool {
        self.lost |= self.subflows[0].sender.is_recovering();
        let Some(Scatter { switch: Some(switch), .. }) = config.scatter else { return false };
        if self.phase != Phase::Scatter || !self.is_time(config, &switch, cx) {
            return false;
        }
        self.phase = Phase::Switching;
        self.join(config, cx)
    }

    /// A subflow has failed. If none of those that followed the first one is left, that one has to
    /// go on.
    pub(super) fn after_failure(&mut self) {
        let others = self.subflows.get(1..).unwrap_or_default();
        if self.phase == Phase::Switched && others.iter().all(|s| s.state == State::Dead) {
            self.phase = Phase::Switching;
        }
    }

    /// Whether the first phase is to end.
    fn is_time(&self, config: &Config, switch: &Switch, cx: &Cx<'_>) -> bool {
        let sender = &self.subflows[0].sender;
        let due = match switch.on {
            SwitchOn::Bytes(threshold) => self.next > threshold,
            SwitchOn::Window(share) => sender.rto().srtt().is_some_and(|srtt| {
                let bits = sender.cwnd() * f64::from(self.id.mss) * 8.0;
                bits / (srtt.0 as f64 / 1e12) >= share * cx.net.rate(0).0 as f64
            }),
            SwitchOn::Loss => self.lost,
        };
        due && !(switch.postpone && sender.is_unsettled(&config.tcp))
    }

    /// Let the other subflows join, each after a gap of its own. True if there are any.
    fn join(&mut self, config: &Config, cx: &Cx<'_>) -> bool {
        let draw = cx.draw.part(u64::from(self.id.dst.0));
        let tcp = tcp::Config { handshake: true, ..config.tcp };
        let first = self.subflows.len() as u32;
        let mut gaps = Gaps::new(config);
        for number in first..first + config.joins() {
            let conn = (self.id.conn + number) % (1 << tcp::CONN_BITS);
            let path = draw.bits(PATH, u64::from(conn)) as u32;
            let id = Identity { conn, path, ..self.id };
            let gap = gaps.next(|n| draw.below(JOIN_GAP, u64::from(conn), n));
            let mut sender = Sender::new(&tcp, id);
            sender.spread_timeout(&tcp, cx.draw);
            self.subflows.push(Subflow::new(sender, State::Waiting(cx.now + gap)));
        }
        config.joins() > 0
    }
}

/// Duplicate acknowledgements that mean loss while packets take `paths` paths, and how to learn
/// others.
fn scatter_threshold(scatter: &Scatter, paths: u32) -> (u32, Option<rr::Params>) {
    match scatter.dup_threshold {
        ScatterThreshold::Fixed(n) => (n, None),
        ScatterThreshold::Paths if paths <= 1 => (3, None),
        ScatterThreshold::Paths => (3 + paths, None),
        ScatterThreshold::Rr(params) => (rr::LEAST, Some(params)),
    }
}

/// How long joins wait: different steps, each set of them as likely as every other.
pub(super) struct Gaps {
    /// How many there are to choose from, and how many joins are left.
    steps: u64,
    left: u64,
    taken: Vec<u64>,
}

impl Gaps {
    pub(super) fn new(config: &Config) -> Self {
        let (steps, left) = (config.join_gap.0 / GAP_STEP.0, u64::from(config.joins()));
        Self { steps, left, taken: Vec::new() }
    }

    /// The next one; `below` draws a number below what it is given. (Floyd's algorithm: Bentley and
    /// Floyd, CACM 30(9), 1987.)
    pub(super) fn next(&mut self, below: impl Fn(u64) -> u64) -> Dur {
        if self.steps == 0 {
            return Dur::ZERO;
        }
        let last = self.steps.saturating_sub(self.left);
        self.left = self.left.saturating_sub(1);
        let drawn = below(last + 1);
        let step = if self.taken.contains(&drawn) { last } else { drawn };
        self.taken.push(step);
        GAP_STEP * step
    }
}
