//! Frames of priority flow control (PFC): MAC control frames (IEEE 802.3, annex 31A) that tell the
//! far end of a link to stop or resume the classes they name (IEEE 802.1Q, 36; 802.3, annex 31D).
//! They go no further than that.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 6 | destination, 01-80-C2-00-00-01 |
//! | 6 | 6 | source |
//! | 12 | 2 | EtherType of MAC control, 0x8808 |
//! | 14 | 2 | opcode of PFC, 0x0101 |
//! | 16 | 2 | class-enable vector: bit c, if the frame says something of class c |
//! | 18 + 2c | 2 | for how long class c stops, in quanta of 512 bit times; zero: it resumes |
//! | 34 | 26 | zeros |
//!
//! All big-endian. The frame check sequence, four bytes more, is not in captures.

use thiserror::Error;
use units::{Dur, Rate};

/// Bytes of a frame without frame check sequence: the least that Ethernet has.
pub const LEN: usize = 60;
/// Bytes on the wire, frame check sequence included.
pub const WIRE_LEN: u16 = 64;

/// The group address of what a switch does not forward.
const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
const ETHERTYPE: [u8; 2] = [0x88, 0x08];
const OPCODE: [u8; 2] = [0x01, 0x01];
/// Bytes whose time on the wire is a quantum.
const QUANTUM: u64 = 512 / 8;

/// Why bytes are no PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PfcError {
    /// Fewer than [`LEN`] bytes.
    #[error("a PFC frame has {LEN} bytes, here are {0}")]
    Short(usize),
    /// Another kind of frame.
    #[error("not a PFC frame: {0}")]
    Foreign(&'static str),
    /// The upper byte of the class-enable vector is reserved.
    #[error("a class-enable vector of {0:#06x}: there are eight classes")]
    Classes(u16),
}

/// How long a quantum is on a link of `rate`.
#[must_use]
pub fn quantum(rate: Rate) -> Dur {
    rate.serialise(QUANTUM)
}

/// The contents of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// Of the port that sends it, 24 bits of a locally administered address.
    pub source: u32,
    /// Bit c: it says something of class c.
    pub classes: u8,
    /// For how long each of these stops, quanta; zero: it resumes.
    pub quanta: [u16; 8],
}

impl Repr {
    /// The frame as in a capture.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..6].copy_from_slice(&DESTINATION);
        // Beside the addresses of hosts, which begin with 02:00:0a.
        bytes[6..9].copy_from_slice(&[0x02, 0x00, 0x0b]);
        bytes[9..12].copy_from_slice(&self.source.to_be_bytes()[1..]);
        bytes[12..14].copy_from_slice(&ETHERTYPE);
        bytes[14..16].copy_from_slice(&OPCODE);
        bytes[17] = self.classes;
        for (class, place) in (0..).zip(bytes[18..].as_chunks_mut().0.iter_mut().take(8)) {
            *place = self.of(class).unwrap_or(0).to_be_bytes();
        }
        bytes
    }

    /// For how many quanta `class` stops; `None` if nothing is said of it.
    #[must_use]
    pub fn of(&self, class: u8) -> Option<u16> {
        let quanta = *self.quanta.get(usize::from(class))?;
        (self.classes & 1 << class != 0).then_some(quanta)
    }

    /// What `frame` says.
    ///
    /// # Errors
    /// It names a class that there is not.
    pub fn parse(frame: &Frame<'_>) -> Result<Self, PfcError> {
        let Ok(classes) = u8::try_from(frame.classes()) else {
            return Err(PfcError::Classes(frame.classes()));
        };
        let named = |class: u8| classes & 1 << class != 0;
        let mut quanta = [0; 8];
        for (class, (quanta, said)) in (0..).zip(quanta.iter_mut().zip(frame.quanta())) {
            *quanta = if named(class) { said } else { 0 };
        }
        let [high, middle, low] = frame.source();
        Ok(Self { source: u32::from_be_bytes([0, high, middle, low]), classes, quanta })
    }
}

/// A view over the bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a>(&'a [u8; LEN]);

impl<'a> Frame<'a> {
    /// A view over `bytes`, if they are a PFC frame; what follows it is ignored.
    ///
    /// # Errors
    /// Too short, or another kind of frame.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, PfcError> {
        let Some(frame) = bytes.first_chunk::<LEN>() else {
            return Err(PfcError::Short(bytes.len()));
        };
        if frame[12..14] != ETHERTYPE {
            return Err(PfcError::Foreign("the EtherType is not that of MAC control"));
        }
        if frame[14..16] != OPCODE {
            return Err(PfcError::Foreign("the opcode is not that of PFC"));
        }
        Ok(Self(frame))
    }

    /// The lower half of the source address.
    fn source(&self) -> [u8; 3] {
        [self.0[9], self.0[10], self.0[11]]
    }

    /// The class-enable vector.
    #[must_use]
    pub fn classes(&self) -> u16 {
        u16::from_be_bytes([self.0[16], self.0[17]])
    }

    /// The quanta of each class, also where nothing is said of it.
    pub fn quanta(&self) -> impl Iterator<Item = u16> {
        self.0[18..].as_chunks().0.iter().take(8).map(|bytes| u16::from_be_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By hand: port 0x010203 stops class 3 for as long as can be said, and resumes class 5.
    #[test]
    fn byte_for_byte() {
        let mut quanta = [0; 8];
        (quanta[2], quanta[3]) = (77, 0xffff);
        let repr = Repr { source: 0x0001_0203, classes: 0b10_1000, quanta };
        let bytes = repr.to_bytes();
        let head = [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0x0b, 1, 2, 3, 0x88, 8, 1, 1, 0, 0b10_1000];
        assert_eq!(bytes[..18], head);
        assert_eq!(bytes[18..34], [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[34..], [0; 26]);
        assert_eq!((repr.of(3), repr.of(5), repr.of(2)), (Some(0xffff), Some(0), None));
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        assert_eq!(quantum(Rate(10_000_000_000)), Dur(51_200));
        assert_eq!(quantum(Rate(100_000_000_000)), Dur(5_120));
    }

    #[test]
    fn other_frames_are_told_apart() {
        let good = Repr { classes: 1, ..Repr::default() }.to_bytes();
        assert_eq!(Frame::new_checked(&good[..59]).unwrap_err(), PfcError::Short(59));
        let bad = |at: usize| {
            let mut bytes = good;
            bytes[at] ^= 0x40;
            Frame::new_checked(&bytes).and_then(|frame| Repr::parse(&frame)).unwrap_err()
        };
        assert!(matches!(bad(12), PfcError::Foreign(_)));
        // A plain pause frame has opcode 0x0001.
        assert!(matches!(bad(14), PfcError::Foreign(_)));
        assert_eq!(bad(16), PfcError::Classes(0x4001));
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(source in 0..1u32 << 24, classes: u8, quanta: [u16; 8]) {
            let written = Repr { source, classes, quanta };
            let read = Repr::parse(&Frame::new_checked(&written.to_bytes()).unwrap()).unwrap();
            for class in 0..8 {
                prop_assert_eq!(read.of(class), written.of(class));
            }
            prop_assert_eq!((read.source, read.classes), (source, classes));
            prop_assert_eq!(read.to_bytes(), written.to_bytes());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(frame) = Frame::new_checked(&bytes) {
                let _ = Repr::parse(&frame);
            }
        }
    }
}
