//! REPS: recycled entropies (T. Bonato and others, "REPS: Recycled Entropy Packet Spraying for
//! Adaptive Load Balancing and Failure Mitigation", 2024; specs/uet.md#3).
//!
//! A ring keeps the EVs of the last packets that arrived unmarked. Each is used once more. When a
//! packet is lost although switches trim, paths have failed: for a while no new EV is tried, and
//! those of the ring are used in turn, also twice.

use units::{Dur, Time};

use super::{Draws, Feedback};

/// Places of the ring.
pub(super) const PLACES: u8 = 8;
/// Packets with random EVs once no longer frozen.
pub(super) const EXPLORE: u8 = 16;
/// How long it is frozen, until the first feedback after that.
pub(super) const FREEZE: Dur = Dur::from_ms(10);

/// The state of one message.
#[derive(Debug, Default)]
pub(super) struct Reps {
    ring: [u16; PLACES as usize],
    /// When a freeze may end, in microseconds modulo 2^32; 0: it is not frozen. A message that
    /// hears nothing for half an hour is over.
    frozen_until: u32,
    /// Bit p: the EV in place p has not been used again yet.
    fresh: u8,
    /// EVs written so far; from 15 on to 8, so that it still says that every place has one.
    written: u8,
    /// The place whose turn is next while it is frozen.
    cursor: u8,
    /// Packets that are still to have a random EV.
    explore: u8,
}

impl Reps {
    /// The next EV of those up to `mask`.
    pub(super) fn next(&mut self, mask: u16, draws: &mut Draws) -> u16 {
        if self.explore > 0 {
            self.explore -= 1;
            return draws.bits() & mask;
        }
        let place = if self.frozen_until == 0 { self.oldest() } else { self.in_turn() };
        match place {
            Some(place) => {
                self.fresh &= !(1 << place);
                self.ring[usize::from(place)]
            }
            None => draws.bits() & mask,
        }
    }

    pub(super) fn feedback(&mut self, now: Time, value: u16, what: Feedback) {
        let micros = |time: Time| (time.0 / 1_000_000) as u32;
        let frozen = self.frozen_until != 0;
        if !frozen && what == Feedback::Lost && self.explore == 0 {
            self.frozen_until = micros(now.saturating_add(FREEZE)).max(1);
        } else if frozen && micros(now).wrapping_sub(self.frozen_until) as i32 > 0 {
            *self = Self { explore: EXPLORE, ..Self::default() };
        }
        if what == Feedback::Good {
            self.keep(value);
        }
    }

    /// In place of the oldest.
    fn keep(&mut self, value: u16) {
        let place = self.written % PLACES;
        self.ring[usize::from(place)] = value;
        self.fresh |= 1 << place;
        self.written = if self.written == 2 * PLACES - 1 { PLACES } else { self.written + 1 };
    }

    /// The place of the oldest EV that has not been used again.
    fn oldest(&self) -> Option<u8> {
        let places = (self.written..self.written + PLACES).map(|n| n % PLACES);
        places.into_iter().find(|place| self.fresh >> place & 1 == 1)
    }

    /// The place whose turn it is.
    fn in_turn(&mut self) -> Option<u8> {
        let places = self.written.min(PLACES);
        let place = self.cursor.checked_rem(places)?;
        self.cursor = place + 1;
        Some(place)
    }
}
