//! EVs in an order that no feedback changes (specs/uet.md#3).

use super::Draws;

/// Where it stands.
#[derive(Debug)]
pub(super) struct Oblivious {
    /// How many EVs there are, less one: the bits of an EV that this rule chooses.
    mask: u16,
    /// Their place in the order of this round.
    index: u16,
    /// What makes the order of this round.
    xor: u16,
    /// The bits of all EVs of the message that `mask` leaves out.
    high: u16,
}

impl Oblivious {
    pub(super) fn new(mask: u16, draws: &mut Draws) -> Self {
        Self { mask, index: 0, xor: draws.bits(), high: draws.bits() & !mask }
    }

    /// The next EV, and on.
    pub(super) fn next(&mut self, draws: &mut Draws) -> u16 {
        let value = self.value(self.current());
        self.skip(draws);
        value
    }

    /// The EV with these low bits.
    pub(super) fn value(&self, low: u16) -> u16 {
        self.high | low
    }

    /// The low bits of the next EV.
    pub(super) fn current(&self) -> u16 {
        (self.index ^ self.xor) & self.mask
    }

    /// Leave the next EV out.
    pub(super) fn skip(&mut self, draws: &mut Draws) {
        if self.index == self.mask {
            self.index = 0;
            self.xor = draws.bits();
        } else {
            self.index += 1;
        }
    }

    /// How many EVs there are, less one.
    pub(super) fn mask(&self) -> u16 {
        self.mask
    }
}
