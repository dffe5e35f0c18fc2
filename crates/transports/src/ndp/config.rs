//! [`Config`]: every number and switch of NDP. No `Default`: these values change the science.

use endpoint::{Framing, NetView};
use units::{Dur, MsgKey};

use crate::config::{self, ConfigError};
use crate::time_wait::life_max;

/// How a sender spreads its packets over the paths to a host (specs/ndp.md#6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStrategy {
    /// Walk a uniform random permutation of all paths, then draw the next one (NDP section 3.1.1).
    Permute,
    /// An independent uniform draw per packet.
    Random,
    /// One path per message, drawn once; drawn again only if it breaks.
    Single,
}

/// Which paths of a permutation sit out because they do so much worse than the others
/// (specs/ndp.md#6). Without effect under the other strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreboardRule {
    /// None.
    Off,
    /// Outliers by NACKs or losses; each round that a path sits out counts, so it is tried again
    /// (S, P: "temporarily").
    Decaying,
    /// R to the letter: outliers by NACKs only; only feedback of packets already in flight ends
    /// a path's absence, so it is away for the rest of the message.
    Literal,
}

/// In which order a receiver serves the messages that wait for pulls (specs/ndp.md#7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Round robin over messages.
    Fair,
    /// Strictly by [`endpoint::Msg::prio`], lowest value first; round robin among equals.
    Prio,
}

/// The parameters of NDP. "specs/ndp.md" is the specification; S, P and R are its provenance tags
/// (source text, SIGCOMM'17 paper, the authors' public code); "ours" is in neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload of a full DATA packet, bytes; 1 or more, with `header` at most 65535. P, R: 9000.
    pub payload: u16,
    /// Bytes on the wire beside the payload of a DATA packet. R: 64.
    pub header: u16,
    /// Bytes on the wire of an ACK, NACK or PULL. P, R: 64.
    pub control: u16,
    /// IW: packets sent at once, without being asked, when a message starts; 1 or more. P: 30.
    pub initial_window: u32,
    /// How packets are spread over paths. S, P: permute.
    pub paths: PathStrategy,
    /// Which paths sit out. S, P: on, bad paths are left temporarily.
    pub scoreboard: ScoreboardRule,
    /// Retransmission timeout before the first round-trip sample; more than zero. R: 20 ms.
    ///
    /// S, P say that any timeout may be 1 ms at most, because the worst round trip is 400 us. That
    /// leaves the header queue out: 1125 headers, served ten to each full packet, take 0.87 ms at
    /// 10 Gb/s, so in a large incast 1 ms resends what was not lost.
    pub rto_initial: Dur,
    /// Smallest timeout, before jitter; more than zero. S, P: at most 1 ms. R: 5 ms, in examples 1
    /// or 50 ms.
    pub rto_min: Dur,
    /// Largest timeout, before jitter; at least `rto_min`. S, P: 1 ms. R: none.
    pub rto_max: Dur,
    /// A timeout clamped to `rto_min` is spread uniformly by this many percent either way; below
    /// 100. R: 25.
    pub rto_jitter_percent: u8,
    /// A sender that waits for pulls and hears nothing for this long sends one packet unasked; it
    /// waits twice as long before each next one until a pull comes. Longer than one round of the
    /// receiver's pull queue. Ours: without it, losing the last PULL ends the message (R loses
    /// none).
    pub stall_timeout: Dur,
    /// A message whose packets went unanswered for this long fails. Ours (R tries for ever).
    pub abort_after: Dur,
    /// How many feedbacks bounce rule b looks back; 1 to 32. R: 12.
    pub bounce_history: u8,
    /// T: least time between two pulls; `None` is the wire time of a full DATA packet on interface
    /// 0. R: the time of its payload alone, 0.7 % less; RB: the wire time.
    pub pull_interval: Option<Dur>,
    /// Who is pulled next. S, P, R: fair.
    pub discipline: Discipline,
    /// A message whose pulls go before all others (NDP figure 16), if any.
    pub priority_message: Option<MsgKey>,
    /// Whether a DATA packet that came before asks for a pull again. R: yes.
    pub pull_on_duplicate: bool,
    /// N: how many messages may be in reception at once; DATA for more is ignored, and the sender
    /// recovers by timeout. R (simulator): no limit, `u32::MAX`.
    pub max_rx_messages: u32,
    /// How long a sender refuses to use the id of a finished message again: the longest life of a
    /// packet. S, P: below 1 ms.
    pub msl: Dur,
    /// How long a receiver remembers a finished message, counted from the last copy that asked
    /// about it; at least `abort_after`, the longest timeout and twice `msl` together, see
    /// [`Config::life_max`]. S, P: at least one MSL.
    pub time_wait: Dur,
    /// How many messages a receiver knows at once, finished or not: data of others is ignored until
    /// one is forgotten, and its sender recovers by timeout. A sender remembers as many finished
    /// ones; the oldest is forgotten first. Ours.
    pub time_wait_entries: u32,
    /// A receiver gives up a message that has been silent, or of which no payload has come although
    /// it was pulled for, for this long (up to twice as long); at least `abort_after`. Ours (R
    /// never gives up).
    pub rx_idle_timeout: Dur,
    /// How many messages a sender takes at once, those that wait on a channel included. Ours.
    pub max_tx_messages: u32,
    /// How many control packets may wait for the interface; more are lost, as in a full queue. R:
    /// 1000 (host NIC queue).
    pub control_queue: u32,
}

impl Config {
    /// The values of the paper, and of the authors' code where the paper has none, for DATA packets
    /// of `payload` bytes (specs/ndp.md#1; what is ours is marked at the field).
    #[must_use]
    pub fn paper(payload: u16) -> Self {
        Self {
            payload,
            header: 64,
            control: 64,
            initial_window: 30,
            paths: PathStrategy::Permute,
            scoreboard: ScoreboardRule::Decaying,
            rto_initial: Dur::from_ms(20),
            rto_min: Dur::from_ms(5),
            rto_max: Dur::from_ms(20),
            rto_jitter_percent: 25,
            // 8192 senders of 9 KB packets at 10 Gb/s are pulled every 59 ms.
            stall_timeout: Dur::from_ms(100),
            abort_after: Dur::from_ms(10_000),
            bounce_history: 12,
            pull_interval: None,
            discipline: Discipline::Fair,
            priority_message: None,
            pull_on_duplicate: true,
            max_rx_messages: u32::MAX,
            msl: Dur::from_ms(1),
            // Longer than a sender may go on asking (`abort_after`).
            time_wait: Dur::from_ms(11_000),
            time_wait_entries: u32::MAX,
            rx_idle_timeout: Dur::from_ms(15_000),
            max_tx_messages: u32::MAX,
            control_queue: 1000,
        }
    }

    /// [`Config::paper`] with timeouts of processes that share a machine with others: they may not
    /// run for milliseconds. 10 ms at first, then 5 to 50 ms; 20 ms without PULLs. Ours.
    #[must_use]
    pub fn processes(payload: u16) -> Self {
        Self {
            rto_initial: Dur::from_ms(10),
            rto_min: Dur::from_ms(5),
            rto_max: Dur::from_ms(50),
            stall_timeout: Dur::from_ms(20),
            ..Self::paper(payload)
        }
    }

    /// Check what the fields say about themselves and one another.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            ("payload", u64::from(self.payload)),
            ("control", u64::from(self.control)),
            ("initial_window", u64::from(self.initial_window)),
            ("rto_initial", self.rto_initial.0),
            ("rto_min", self.rto_min.0),
            ("stall_timeout", self.stall_timeout.0),
            ("abort_after", self.abort_after.0),
            ("pull_interval", self.pull_interval.map_or(1, |t| t.0)),
            ("max_rx_messages", u64::from(self.max_rx_messages)),
            ("time_wait_entries", u64::from(self.time_wait_entries)),
            ("rx_idle_timeout", self.rx_idle_timeout.0),
            ("max_tx_messages", u64::from(self.max_tx_messages)),
            ("control_queue", u64::from(self.control_queue)),
        ];
        config::positive("NDP", &positive)?;
        config::fits("NDP", self.payload, self.header)?;
        if self.rto_min > self.rto_max {
            let what = "NDP: rto_min must not exceed rto_max";
            return Err(ConfigError::new(["rto_min", "rto_max"], what));
        }
        if self.abort_after > self.rx_idle_timeout {
            let what = "NDP: abort_after must not exceed rx_idle_timeout";
            return Err(ConfigError::new(["abort_after", "rx_idle_timeout"], what));
        }
        let (jitter, history) = (self.rto_jitter_percent, self.bounce_history);
        if jitter >= 100 {
            let what = format!("NDP: rto_jitter_percent {jitter} must be below 100");
            return Err(ConfigError::new(["rto_jitter_percent"], what));
        }
        if !(1..=32).contains(&history) {
            let what = format!("NDP: bounce_history {history} must be 1 to 32");
            return Err(ConfigError::new(["bounce_history"], what));
        }
        if self.life_max().is_none_or(|most| most < self.msl) {
            let what = format!(
                "NDP: time_wait must be at least {}: abort_after, the longest timeout and twice \
                 msl together",
                self.time_wait_min()
            );
            return Err(ConfigError::new(["time_wait", "abort_after", "msl", "rto_max"], what));
        }
        Ok(())
    }

    /// The least `time_wait`.
    pub(super) fn time_wait_min(&self) -> Dur {
        Dur(self.asking_max().0.saturating_add(self.msl.0.saturating_mul(2)))
    }

    /// The longest that a sender goes on sending after it last heard from the receiver: it gives up
    /// when it next looks at its timeouts.
    fn asking_max(&self) -> Dur {
        let percent = 100 + u64::from(self.rto_jitter_percent);
        let jittered = Dur(self.rto_min.0.saturating_mul(percent) / 100);
        let timeout = self.rto_initial.max(self.rto_max).max(jittered);
        Dur(self.abort_after.0.saturating_add(timeout.0))
    }

    /// The longest life of a packet with which no message is delivered twice; `None` if there is
    /// none.
    ///
    /// The sender hears the receiver's last word one life after it was said, goes on for
    /// `asking_max`, and its last packet arrives another life later. By then the receiver must not
    /// have forgotten the message.
    #[must_use]
    pub fn life_max(&self) -> Option<Dur> {
        life_max(self.time_wait, self.asking_max())
    }

    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.header }
    }

    /// T.
    pub(crate) fn interval(&self, net: &NetView<'_>) -> Dur {
        self.pull_interval.unwrap_or_else(|| {
            net.rate(0).serialise(u64::from(self.payload) + u64::from(self.header))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preset_is_legal_and_nonsense_is_named() {
        let paper = Config::paper(9000);
        assert_eq!(paper.check(), Ok(()));
        let refused = |config: Config| config.check().unwrap_err().to_string();
        let broken = Config { rto_min: Dur::from_ms(21), ..paper.clone() };
        assert_eq!(refused(broken), "NDP: rto_min must not exceed rto_max");
        let broken = Config { payload: 65_500, ..paper.clone() };
        let what = "NDP: payload 65500 B and header 64 B exceed 65535 B together";
        assert_eq!(refused(broken), what);
        // 10 s until the sender gives up, 20 ms until it notices, 1 ms there and 1 ms back.
        let least = Dur::from_ms(10_022);
        assert_eq!(Config { time_wait: least, ..paper.clone() }.check(), Ok(()));
        let broken = Config { time_wait: Dur(least.0 - 1), ..paper.clone() };
        assert_eq!(broken.time_wait_min(), least);
        let what = format!(
            "NDP: time_wait must be at least {least}: abort_after, the longest timeout and twice \
             msl together"
        );
        assert_eq!(refused(broken), what);
        let endless =
            Config { abort_after: Dur(u64::MAX), rx_idle_timeout: Dur(u64::MAX), ..paper.clone() };
        assert_eq!(endless.time_wait_min(), Dur(u64::MAX));
        assert_eq!(endless.check().unwrap_err().fields()[0], "time_wait");
        let broken = Config { initial_window: 0, ..paper };
        assert_eq!(refused(broken), "NDP: initial_window must be more than zero");
    }
}
