//! EVs that do badly miss turns (specs/uet.md#3): four bits for each say how many. Those of EQDS
//! miss one at most (specs/uet.md#13.1).

use super::oblivious::Oblivious;
use super::{Draws, Feedback};

/// The most turns that an EV misses.
pub(super) const PENALTY_MAX: u8 = 15;

/// The turns that an EV misses for this.
fn penalty(what: Feedback) -> u8 {
    match what {
        Feedback::Good => 0,
        Feedback::Marked => 1,
        Feedback::Trimmed => 4,
        Feedback::Lost => PENALTY_MAX,
    }
}

/// The order of EVs, and what is held against each.
#[derive(Debug)]
pub(super) struct Bitmap {
    order: Oblivious,
    penalties: Box<[u8]>,
    /// A penalty is one turn, whatever it is for, and none for what is lost.
    once: bool,
}

impl Bitmap {
    pub(super) fn new(mask: u16, draws: &mut Draws) -> Self {
        let bytes = usize::from(mask) / 2 + 1;
        let penalties = vec![0; bytes].into();
        Self { order: Oblivious::new(mask, draws), penalties, once: false }
    }

    /// That of EQDS.
    pub(super) fn once(mask: u16, draws: &mut Draws) -> Self {
        Self { once: true, ..Self::new(mask, draws) }
    }

    /// The next EV without a penalty. The first that is passed over has one turn less to miss, of
    /// EQDS each. If all have penalties, it is that one's turn.
    pub(super) fn next(&mut self, draws: &mut Draws) -> u16 {
        let mask = self.order.mask();
        for passed in 0..=u32::from(mask) {
            let value = self.order.current();
            let penalty = self.penalty(value);
            if penalty == 0 {
                break;
            }
            if passed == 0 || self.once {
                self.set_penalty(value, penalty - 1);
            }
            self.order.skip(draws);
        }
        self.order.next(draws)
    }

    pub(super) fn feedback(&mut self, value: u16, what: Feedback) {
        let value = value & self.order.mask();
        let penalty = match (self.once, what) {
            (false, _) => (self.penalty(value) + penalty(what)).min(PENALTY_MAX),
            (true, Feedback::Marked | Feedback::Trimmed) => 1,
            (true, Feedback::Good | Feedback::Lost) => return,
        };
        self.set_penalty(value, penalty);
    }

    pub(super) fn penalty(&self, value: u16) -> u8 {
        self.penalties[usize::from(value) / 2] >> shift(value) & PENALTY_MAX
    }

    fn set_penalty(&mut self, value: u16, penalty: u8) {
        let byte = &mut self.penalties[usize::from(value) / 2];
        *byte = *byte & !(PENALTY_MAX << shift(value)) | penalty << shift(value);
    }

    /// Bytes of state beside the order.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.penalties.len()
    }
}

/// Where the four bits of an EV are in their byte.
fn shift(value: u16) -> u16 {
    value % 2 * 4
}
