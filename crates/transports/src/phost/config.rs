//! [`Config`]: every number and switch of pHost. No `Default`: these values change the science.

use endpoint::{Framing, NetView};
use units::{Dur, HostId};

use crate::config::{self, ConfigError};
use crate::time_wait::life_max;

pub use crate::ndp::PathStrategy;

/// How many tokens a sender gives itself when a message starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeTokens {
    /// As many packets as fit into one round trip at line rate, rounded up.
    Bdp,
    /// One for each packet of a message of at most so many packets; none for a longer one.
    UpTo(u32),
}

/// The traffic classes of packets, 0 to 7; a higher one is more urgent where switches look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Of REQ, TOKEN, ACK and END.
    pub control: u8,
    /// Of the data of short messages.
    pub short: u8,
    /// Of all other data.
    pub long: u8,
}

/// The parameters of pHost. Times are in "MTU times": what a full packet takes on the host's link.
/// Sources as in specs/ndp.md#11: P is the NDP paper's variant, R2 the pHost authors' simulator
/// (branch phost of `NetSys/simulator`, with the values of its `run_experiments.py`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full packet, bytes; 1 or more, with `header` at most 65535. P: 9000. R2: 1460.
    pub payload: u16,
    /// Bytes on the wire beside the payload. P: 64. R2: 40.
    pub header: u16,
    /// Bytes on the wire of a control packet. P: 64. R2: 40.
    pub control: u16,
    /// How packets are spread over paths: an independent draw for each, or one path for a message.
    pub paths: PathStrategy,
    /// P: line rate in the first round trip. R2: 8 ("capability_initial").
    pub free_tokens: FreeTokens,
    /// Tokens of a message in flight at once; 1 or more. R2: 8 ("capability_window").
    pub window: u32,
    /// A token unused for so long is void. R2: 1.5 ("capability_timeout").
    pub token_expiry: f64,
    /// A message whose window is used up and that has had no token for so long gets one more. R2:
    /// 25 ("capability_window_timeout").
    pub window_timeout: f64,
    /// How long a message is put aside that has had a token for each packet, before what is missing
    /// gets tokens again. R2: 9 ("capability_resend_timeout").
    pub resend_timeout: f64,
    /// A sender that has heard nothing for so long repeats its REQ. R2: its "retx_timeout" of
    /// 9.50003 us is 31.7 times the 0.3 us of a packet there.
    pub request_timeout: f64,
    /// Messages of at most so many packets are short. R2 leaves it open; ours: those with free
    /// tokens.
    pub short_packets: u64,
    /// R2: three priorities. P: none.
    pub classes: Classes,
    /// A message fails if no packet about it comes for so long. Ours (both publications wait for
    /// ever).
    pub abort_after: Dur,
    /// How long a receiver remembers a finished message, from the last copy that asked about it;
    /// more than `abort_after`. Ours.
    pub time_wait: Dur,
    /// A receiver forgets a message silent for so long (up to twice as long); at least
    /// `abort_after`. Ours.
    pub rx_idle_timeout: Dur,
}

impl Config {
    /// The pHost of the NDP paper's comparison: a line-rate burst in the first round trip, no
    /// priorities, 9000 B packets. What the paper does not say is R2's.
    #[must_use]
    pub fn ndp_paper(payload: u16) -> Self {
        Self {
            header: 64,
            control: 64,
            free_tokens: FreeTokens::Bdp,
            classes: Classes { control: 0, short: 0, long: 0 },
            ..Self::authors(payload)
        }
    }

    /// The authors' own simulation (R2), with packets of `payload` bytes.
    #[must_use]
    pub fn authors(payload: u16) -> Self {
        Self {
            payload,
            header: 40,
            control: 40,
            paths: PathStrategy::Random,
            free_tokens: FreeTokens::UpTo(8),
            window: 8,
            token_expiry: 1.5,
            window_timeout: 25.0,
            resend_timeout: 9.0,
            request_timeout: 32.0,
            short_packets: 8,
            classes: Classes { control: 2, short: 1, long: 0 },
            abort_after: Dur::from_ms(10_000),
            time_wait: Dur::from_ms(11_000),
            rx_idle_timeout: Dur::from_ms(15_000),
        }
    }

    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let &Self { payload, header, .. } = self;
        let Classes { control, short, long } = self.classes;
        let positive = [
            ("payload", u64::from(payload)),
            ("control", u64::from(self.control)),
            ("window", u64::from(self.window)),
            ("abort_after", self.abort_after.0),
        ];
        config::positive("pHost", &positive)?;
        config::fits("pHost", payload, header)?;
        let times = [
            ("token_expiry", self.token_expiry),
            ("window_timeout", self.window_timeout),
            ("resend_timeout", self.resend_timeout),
            ("request_timeout", self.request_timeout),
        ];
        if let Some((name, _)) = times.into_iter().find(|(_, n)| !(0.001..=1e6).contains(n)) {
            let what = format!("pHost: {name} must be from 0.001 to 1000000 packets");
            return Err(ConfigError::new([name], what));
        }
        let classes = [("class_control", control), ("class_short", short), ("class_long", long)];
        if let Some((name, _)) = classes.into_iter().find(|(_, class)| *class > 7) {
            let what = format!("pHost: {name} must be from 0 to 7");
            return Err(ConfigError::new([name], what));
        }
        let ordered = [
            (self.abort_after < self.time_wait, "time_wait"),
            (self.abort_after <= self.rx_idle_timeout, "rx_idle_timeout"),
        ];
        match ordered.into_iter().find(|(holds, _)| !holds) {
            Some((_, high)) => {
                let what = format!("pHost: abort_after must be less than {high}");
                Err(ConfigError::new(["abort_after", high], what))
            }
            None => Ok(()),
        }
    }

    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.header }
    }

    /// The longest life of a packet with which no message is delivered twice: a REQ may ask for the
    /// last time after `abort_after`, and come a life later, after another life of the packet
    /// before it.
    #[must_use]
    pub fn life_max(&self) -> Dur {
        life_max(self.time_wait, self.abort_after).unwrap_or_default()
    }

    /// The MTU time on interface 0.
    pub(super) fn mtu_time(&self, net: &NetView<'_>) -> Dur {
        net.rate(0).serialise(u64::from(self.payload) + u64::from(self.header))
    }

    /// How long a token may be used.
    pub(super) fn token_life(&self, net: &NetView<'_>) -> Dur {
        scaled(self.mtu_time(net), self.token_expiry) + net.lateness
    }

    /// How long a sender waits for an answer to its REQ.
    pub(super) fn request_wait(&self, net: &NetView<'_>) -> Dur {
        scaled(self.mtu_time(net), self.request_timeout) + net.answer_lateness()
    }

    /// How many tokens a message of `packets` packets to `dst` starts with.
    pub(super) fn free(&self, net: &NetView<'_>, dst: HostId, packets: u64) -> u32 {
        let most = match self.free_tokens {
            FreeTokens::Bdp => net.base_rtt(dst).0.div_ceil(self.mtu_time(net).0.max(1)),
            FreeTokens::UpTo(n) if packets <= u64::from(n) => packets,
            FreeTokens::UpTo(_) => 0,
        };
        most.min(packets).min(u64::from(FREE_MAX)) as u32
    }
}

/// Free tokens of a message at most. Ours.
pub(super) const FREE_MAX: u32 = 1 << 16;

/// `times` MTU times.
pub(super) fn scaled(mtu_time: Dur, times: f64) -> Dur {
    Dur((mtu_time.0 as f64 * times) as u64)
}
