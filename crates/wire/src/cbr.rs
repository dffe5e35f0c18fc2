//! The header of a constant-bit-rate source, after UDP (RFC 768). It is ours: such sources have no
//! standard, only a service to send to, discard (RFC 863), which captures then name.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | the sender's message id |
//! | 8 | 8 | sequence number: the packet's index in the message |
//!
//! Big-endian.

use thiserror::Error;

/// The UDP port of the discard service.
pub const PORT: u16 = 9;
/// Bytes of the header.
pub const LEN: usize = 16;

/// Fewer than [`LEN`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a header of a constant-bit-rate source has {LEN} bytes, here are {0}")]
pub struct Short(pub usize);

/// The contents of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The sender's message id.
    pub message: u64,
    /// The packet's index in its message, from zero.
    pub seq: u64,
}

impl Repr {
    /// Read a header; what follows it is ignored.
    ///
    /// # Errors
    /// There are fewer than [`LEN`] bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Short> {
        let Some((message, rest)) = bytes.split_first_chunk() else {
            return Err(Short(bytes.len()));
        };
        let Some((seq, _)) = rest.split_first_chunk() else {
            return Err(Short(bytes.len()));
        };
        Ok(Self { message: u64::from_be_bytes(*message), seq: u64::from_be_bytes(*seq) })
    }

    /// This header as on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&self.message.to_be_bytes());
        bytes[8..].copy_from_slice(&self.seq.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_byte_for_byte() {
        let bytes = Repr { message: 0x0102_0304, seq: 7 }.to_bytes();
        assert_eq!(bytes, [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(Repr::parse(&bytes[..15]), Err(Short(15)));
        assert_eq!(Repr::parse(&bytes[..7]), Err(Short(7)));
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(message: u64, seq: u64, more in 0..20usize) {
            let repr = Repr { message, seq };
            let mut bytes = repr.to_bytes().to_vec();
            bytes.resize(LEN + more, 0xff);
            prop_assert_eq!(Repr::parse(&bytes), Ok(repr));
        }
    }
}
