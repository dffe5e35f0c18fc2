//! Entropy values (EVs): the number in a packet by which its sender chooses the path, and the rules
//! that choose it. Any transport that spreads the packets of a message may use them.
//!
//! An EV is an index of a path where the sender says the path, and what switches hash where they
//! choose (specs/uet.md#3). A rule hears what became of packets with the EV that they had. It does
//! not know how many paths there are, nor which EVs share one.
//!
//! | rule | state for n EVs |
//! |---|---|
//! | oblivious | 8 B |
//! | bitmap | 8 B, and 4 bits for each EV |
//! | REPS | 24 B |
//! | mixed | that of the bitmap, and 2 B for each EV that waits to be used again, n at most |
//! | MRC | 8 B, and 16 B for each EV |

mod bitmap;
mod mixed;
mod mrc;
mod oblivious;
mod reps;
#[cfg(test)]
mod tests;

use endpoint::{Draw, Purpose, Stream};
use units::{Dur, Time};

use bitmap::Bitmap;
use mixed::Mixed;
use mrc::Mrc;
use oblivious::Oblivious;
use reps::Reps;

const ENTROPY: Purpose = Purpose::new("entropy value");

/// The most EVs of a message: the greatest power of two that a field of 16 bits can count.
pub const VALUES_MAX: u16 = 1 << 15;

/// How EVs are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Each once before any again, in an order that changes from round to round.
    Oblivious,
    /// The same, but an EV that was marked, trimmed or lost misses turns.
    Bitmap,
    /// As the bitmap, but an EV that was marked or trimmed misses one turn (EQDS).
    Skip,
    /// REPS: EVs of packets that arrived unmarked are used again; otherwise a random one.
    Reps,
    /// As REPS, but otherwise the bitmap's.
    Mixed,
    /// MRC: an EV that was marked or trimmed is skipped for a while, one that lost a packet is left
    /// out until a probe through it is answered.
    Mrc,
}

/// How long a rule that knows time waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The base round trip: an EV with a mark is skipped for so long at most.
    pub rtt: Dur,
    /// The timeout: an EV that is left out is probed every so often.
    pub rto: Dur,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// It arrived unmarked.
    Good,
    /// It arrived with a congestion mark.
    Marked,
    /// Its payload was cut off.
    Trimmed,
    /// Nothing was heard of it in time.
    Lost,
}

/// The EVs of one message.
#[derive(Debug)]
pub struct Entropy {
    draws: Draws,
    state: State,
}

#[derive(Debug)]
enum State {
    Oblivious(Oblivious),
    Bitmap(Bitmap),
    Reps { mask: u16, high: u16, state: Reps },
    Mixed(Mixed),
    Mrc(Mrc),
}

impl Entropy {
    /// The choice among `values` EVs, a power of two up to [`VALUES_MAX`], by `rule`.
    #[must_use]
    pub fn new(rule: Rule, values: u16, waits: Waits, draw: Draw) -> Self {
        let values = values.clamp(1, VALUES_MAX);
        let mask = values.next_power_of_two() - 1;
        let mut draws = Draws { stream: draw.stream(ENTROPY), drawn: 0 };
        let state = match rule {
            Rule::Oblivious => State::Oblivious(Oblivious::new(mask, &mut draws)),
            Rule::Bitmap => State::Bitmap(Bitmap::new(mask, &mut draws)),
            Rule::Skip => State::Bitmap(Bitmap::once(mask, &mut draws)),
            Rule::Reps => State::Reps { mask, high: draws.bits() & !mask, state: Reps::default() },
            Rule::Mixed => State::Mixed(Mixed::new(mask, &mut draws)),
            Rule::Mrc => State::Mrc(Mrc::new(mask, waits, &mut draws)),
        };
        Self { draws, state }
    }

    /// The EV of the next packet, which leaves `now`.
    pub fn choose(&mut self, now: Time) -> u16 {
        let draws = &mut self.draws;
        match &mut self.state {
            State::Oblivious(state) => state.next(draws),
            State::Bitmap(state) => state.next(draws),
            State::Reps { mask, high, state } => *high | state.next(*mask, draws),
            State::Mixed(state) => state.next(draws),
            State::Mrc(state) => state.next(now, draws),
        }
    }

    /// When a path has to be probed, or sooner.
    #[must_use]
    pub fn probe_due(&self) -> Option<Time> {
        match &self.state {
            State::Mrc(state) => state.probe_due(),
            _ => None,
        }
    }

    /// The next EV to be probed `now`, if one is due: what becomes of the probe is said by
    /// [`Entropy::feedback`].
    pub fn probe(&mut self, now: Time) -> Option<u16> {
        match &mut self.state {
            State::Mrc(state) => state.probe(now),
            _ => None,
        }
    }

    /// What became of a packet with EV `value` is known `now`.
    pub fn feedback(&mut self, now: Time, value: u16, what: Feedback) {
        match &mut self.state {
            State::Oblivious(_) => {}
            State::Bitmap(state) => state.feedback(value, what),
            State::Reps { state, .. } => state.feedback(now, value, what),
            State::Mixed(state) => state.feedback(value, what),
            State::Mrc(state) => state.feedback(now, value, what),
        }
    }
}

/// Random numbers of one message.
#[derive(Debug)]
struct Draws {
    stream: Stream,
    drawn: u64,
}

impl Draws {
    /// 16 uniform bits.
    fn bits(&mut self) -> u16 {
        self.drawn += 1;
        self.stream.bits(self.drawn) as u16
    }
}
