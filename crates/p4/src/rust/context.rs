//! What the methods of generated programs are given.

use crate::bits;
use crate::ir::{ErrorId, PACKET_TOO_SHORT};
use crate::state::State;

/// A packet on its way through a pipeline.
pub struct Context<'a, E: ?Sized> {
    /// The program's tables, registers and counters.
    pub state: &'a mut State,
    /// What the architecture supplies.
    pub externs: &'a mut E,
    /// The packet.
    pub packet: &'a [u8],
    /// Bits of it that the parser has taken.
    pub cursor: usize,
}

/// The control has been left by `exit`.
#[derive(Clone, Copy, Debug)]
pub struct Exit;

impl<'a, E: ?Sized> Context<'a, E> {
    /// Takes the next bytes of a packet of which only whole bytes are taken.
    ///
    /// # Errors
    /// [`PACKET_TOO_SHORT`]
    #[inline]
    pub fn take<const BYTES: usize>(&mut self) -> Result<&'a [u8; BYTES], ErrorId> {
        let rest = self.packet.get(self.cursor / 8..);
        let bytes = rest.and_then(<[u8]>::first_chunk).ok_or(PACKET_TOO_SHORT)?;
        self.cursor += BYTES * 8;
        Ok(bytes)
    }

    /// Takes the next bits: where they begin.
    ///
    /// # Errors
    /// [`PACKET_TOO_SHORT`]
    #[inline]
    pub fn take_bits(&mut self, bits: u128) -> Result<usize, ErrorId> {
        let (at, left) = (self.cursor, self.packet.len() * 8 - self.cursor);
        let bits = usize::try_from(bits).ok().filter(|bits| *bits <= left);
        self.cursor += bits.ok_or(PACKET_TOO_SHORT)?;
        Ok(at)
    }

    /// Skips bits.
    ///
    /// # Errors
    /// [`PACKET_TOO_SHORT`]
    #[inline]
    pub fn advance(&mut self, bits: u128) -> Result<(), ErrorId> {
        self.take_bits(bits).map(|_| ())
    }

    /// The next bits, which stay.
    ///
    /// # Errors
    /// [`PACKET_TOO_SHORT`]
    #[inline]
    pub fn look(&mut self, width: u16) -> Result<u128, ErrorId> {
        let at = self.take_bits(width.into())?;
        self.cursor = at;
        Ok(bits::get(self.packet, at, width))
    }
}
