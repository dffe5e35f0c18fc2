//! How long a frame stops a class.

use units::{Dur, Rate};

use crate::config::Pause;
use crate::topology::{Link, Topology};

impl Pause {
    /// For how many quanta a frame stops a class of a link of `rate`.
    pub(super) fn quanta(self, rate: Rate) -> u16 {
        let Self::Timed(time) = self else { return u16::MAX };
        // Not zero, and not too many: `check_pause`.
        time.0.div_ceil(wire::pfc::quantum(rate).0.max(1)).min(u64::from(u16::MAX)) as u16
    }

    /// How long that is; `None`: until another one resumes it.
    pub(super) fn time(self, rate: Rate) -> Option<Dur> {
        let quanta = u64::from(self.quanta(rate));
        (self != Self::UntilResume).then(|| wire::pfc::quantum(rate) * quanta)
    }
}

/// Whether PFC frames can say how long `pause` is.
///
/// # Errors
/// A sentence, if it is no time at all, or too long for some link.
pub fn check_pause(topology: &Topology, pause: Pause) -> Result<(), String> {
    let Pause::Timed(time) = pause else { return Ok(()) };
    if time == Dur::ZERO {
        return Err("a pause of no time is none".to_owned());
    }
    let longest = |link: &Link| wire::pfc::quantum(link.rate) * u64::from(u16::MAX);
    match topology.links().iter().find(|link| longest(link) < time) {
        Some(link) => {
            let longest = longest(link);
            Err(format!(
                "a frame stops {link} for 65535 quanta, {longest}, at most; not for {time}"
            ))
        }
        None => Ok(()),
    }
}
