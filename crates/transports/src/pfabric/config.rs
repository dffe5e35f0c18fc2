//! [`Config`]: every number and switch of pFabric. No `Default`: these values change the science.

use endpoint::{Cx, Framing};
use units::{Dur, Time};

use crate::config::{self, ConfigError};
use crate::time_wait::life_max;

pub use crate::ndp::PathStrategy;

/// The parameters of pFabric. Sources as in specs/pfabric.md#5: M is its paper, R the program that
/// the authors of Homa ran for their comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full packet, bytes; 1 or more, with `header` at most 65535. M, R: 1460.
    pub payload: u16,
    /// Bytes on the wire beside the payload. R: 40.
    pub header: u16,
    /// Bytes on the wire of a packet without payload. R: 40, and 10 to 26 of options.
    pub control: u16,
    /// How packets are spread over paths: an independent draw for each, or one path for a message.
    pub paths: PathStrategy,
    /// The window of a message that starts, packets. M, R: 12.
    pub initial_window: u32,
    /// The window grows up to this, packets; at least `initial_window`. R: 12.
    pub max_window: u32,
    /// So long after the last progress everything in flight is lost. Always the same. M: 45 us. R:
    /// 24 us.
    pub rto: Dur,
    /// After so many timeouts in a row a message sends probes instead of packets; 1 or more. M, R:
    /// 5.
    pub probe_after: u32,
    /// The traffic class of all packets. pFabric has none.
    pub class: u8,
    /// A message fails if nothing is acknowledged for so long while it sends. Ours (M waits for
    /// ever).
    pub abort_after: Dur,
    /// How long a receiver remembers a finished message, from the last copy of a packet of it; more
    /// than `abort_after`. Ours.
    pub time_wait: Dur,
    /// A receiver forgets a message silent for so long (up to twice as long); at least
    /// `abort_after`. Ours.
    pub rx_idle_timeout: Dur,
}

/// Packets in flight at most. Ours: a receiver accepts packets so far beyond the first gap.
pub const WINDOW_MAX: u32 = 4096;

impl Config {
    /// The paper's own simulations (M): a bandwidth-delay product of 12 packets, 45 us. What it
    /// does not say is R's, but for the greatest window, which the paper's program takes from its
    /// queue of 24 packets.
    #[must_use]
    pub fn paper(payload: u16) -> Self {
        Self { max_window: 23, rto: Dur::from_us(45), ..Self::homa_paper(payload) }
    }

    /// What the authors of Homa ran beside it (R).
    #[must_use]
    pub fn homa_paper(payload: u16) -> Self {
        Self {
            payload,
            header: 40,
            control: 40,
            paths: PathStrategy::Random,
            initial_window: 12,
            max_window: 12,
            rto: Dur::from_us(24),
            probe_after: 5,
            class: 0,
            abort_after: Dur::from_ms(10_000),
            time_wait: Dur::from_ms(11_000),
            rx_idle_timeout: Dur::from_ms(15_000),
        }
    }

    /// Until when a packet that is sent now has to be acknowledged.
    pub(super) fn timeout(&self, cx: &Cx<'_>) -> Time {
        cx.now + self.rto + cx.net.answer_lateness()
    }

    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let &Self { payload, header, .. } = self;
        let positive = [
            ("payload", u64::from(payload)),
            ("control", u64::from(self.control)),
            ("initial_window", u64::from(self.initial_window)),
            ("rto", self.rto.0),
            ("probe_after", u64::from(self.probe_after)),
            ("abort_after", self.abort_after.0),
        ];
        config::positive("pFabric", &positive)?;
        config::fits("pFabric", payload, header)?;
        if self.max_window > WINDOW_MAX {
            let what = format!("pFabric: max_window must be at most {WINDOW_MAX} packets");
            return Err(ConfigError::new(["max_window"], what));
        }
        if self.class > 7 {
            return Err(ConfigError::new(["class"], "pFabric: class must be from 0 to 7"));
        }
        let ordered = [
            (self.initial_window <= self.max_window, "initial_window", "max_window"),
            (self.abort_after < self.time_wait, "abort_after", "time_wait"),
            (self.abort_after <= self.rx_idle_timeout, "abort_after", "rx_idle_timeout"),
        ];
        match ordered.into_iter().find(|(holds, ..)| !holds) {
            Some((_, low, high)) => {
                let what = format!("pFabric: {low} is too large for {high}");
                Err(ConfigError::new([low, high], what))
            }
            None => Ok(()),
        }
    }

    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.header }
    }

    /// The longest life of a packet with which no message is delivered twice: the last packet may
    /// be sent after `abort_after`, and come a life later, after another life of the packet that
    /// completed the message.
    #[must_use]
    pub fn life_max(&self) -> Dur {
        life_max(self.time_wait, self.abort_after).unwrap_or_default()
    }
}
