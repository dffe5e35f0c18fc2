//! The TCP header (RFC 9293, section 3.1).
//!
//! Of the options, SACK blocks (RFC 2018) and timestamps (RFC 7323, section 3) are read and
//! written; all others are skipped: nothing in the workspace negotiates any. The checksum covers
//! the payload and the IP addresses, which a header does not know: it is emitted as zero, and
//! whoever builds the whole frame fills it in. The urgent pointer is emitted as zero too.

use thiserror::Error;

/// The IP protocol number of TCP.
pub const PROTO: u8 = 6;
/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;
/// Bytes of a header with as many options as its length can say.
const HEADER_MAX: usize = 60;
/// SACK blocks that fit the 40 bytes of options (RFC 2018, section 3).
pub const SACK_BLOCKS_MAX: usize = 4;
/// SACK blocks that fit beside timestamps (RFC 2018, section 3).
pub const SACK_BLOCKS_WITH_TIMESTAMPS: usize = 3;

/// Kinds of options.
mod option {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;

    /// The body of the first option of kind `wanted` among `options`; `None` if there is none, or
    /// the options before it make no sense.
    pub(super) fn find(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
        loop {
            match *options {
                [NOP, ref rest @ ..] => options = rest,
                [kind, len, ..] if kind != END && len >= 2 => {
                    let (whole, rest) = options.split_at_checked(usize::from(len))?;
                    if kind == wanted {
                        return Some(&whole[2..]);
                    }
                    options = rest;
                }
                _ => return None,
            }
        }
    }
}

/// The body of the first option of kind `wanted` among `options`, as [`option::find`].
pub(crate) fn find_option(options: &[u8], wanted: u8) -> Option<&[u8]> {
    option::find(options, wanted)
}

/// Add `option`, whole words, to those of the header at the front of `buf`. Returns the bytes of
/// header then.
pub(crate) fn append_option(buf: &mut [u8], option: &[u8]) -> Result<usize, TcpError> {
    let at = Header::new_checked(&*buf)?.header_len();
    let (need, have) = (at + option.len(), buf.len());
    if need > HEADER_MAX {
        return Err(TcpError::Options(need - HEADER_LEN));
    }
    let place = buf.get_mut(at..need).ok_or(TcpError::Short { need, have })?;
    place.copy_from_slice(option);
    buf[field::OFFSET] = ((need / 4) as u8) << 4;
    Ok(need)
}

/// Where each field is.
mod field {
    use std::ops::Range;

    pub(super) const SRC_PORT: Range<usize> = 0..2;
    pub(super) const DST_PORT: Range<usize> = 2..4;
    pub(super) const SEQ: Range<usize> = 4..8;
    pub(super) const ACK: Range<usize> = 8..12;
    /// Four bits of data offset in words, four reserved.
    pub(super) const OFFSET: usize = 12;
    pub(super) const FLAGS: usize = 13;
    pub(super) const WINDOW: Range<usize> = 14..16;
}

/// Why bytes are not a TCP header.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TcpError {
    /// Fewer bytes than a header, or than its data offset says.
    #[error("TCP header cut off: {have} bytes where {need} are needed")]
    Short {
        /// Bytes needed.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// The data offset points into the header itself.
    #[error("TCP data offset of {0} words, below the 5 of a bare header")]
    DataOffset(u8),
    /// More than fit: four SACK blocks and timestamps, say.
    #[error("{0} bytes of TCP options where 40 fit")]
    Options(usize),
}

/// The control bits (RFC 9293, section 3.1; ECE and CWR: RFC 3168, section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control(pub u8);

impl Control {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// Congestion echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A view of bytes as a TCP header with whatever follows it. Judges nothing beyond lengths.
#[derive(Clone, Copy, Debug)]
pub struct Header<T: AsRef<[u8]>>(T);

impl<T: AsRef<[u8]>> Header<T> {
    /// View `bytes`, after checking that the header is whole. No getter panics afterwards.
    ///
    /// # Errors
    /// If there are fewer bytes than the header has, or its data offset is impossible.
    pub fn new_checked(bytes: T) -> Result<Self, TcpError> {
        let have = bytes.as_ref().len();
        if have < HEADER_LEN {
            return Err(TcpError::Short { need: HEADER_LEN, have });
        }
        let header = Self(bytes);
        let need = header.header_len();
        if need < HEADER_LEN {
            return Err(TcpError::DataOffset((need / 4) as u8));
        }
        if have < need {
            return Err(TcpError::Short { need, have });
        }
        Ok(header)
    }

    fn array<const N: usize>(&self, at: std::ops::Range<usize>) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0.as_ref()[at]);
        out
    }

    /// Port of the sender of this segment.
    #[must_use]
    pub fn src_port(&self) -> u16 {
        u16::from_be_bytes(self.array(field::SRC_PORT))
    }

    /// Port of its receiver.
    #[must_use]
    pub fn dst_port(&self) -> u16 {
        u16::from_be_bytes(self.array(field::DST_PORT))
    }

    /// Sequence number of the first payload byte.
    #[must_use]
    pub fn seq(&self) -> u32 {
        u32::from_be_bytes(self.array(field::SEQ))
    }

    /// The next sequence number expected, if [`Control::ACK`] is set.
    #[must_use]
    pub fn ack(&self) -> u32 {
        u32::from_be_bytes(self.array(field::ACK))
    }

    /// Bytes of header, options included.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(self.0.as_ref()[field::OFFSET] >> 4) * 4
    }

    /// The control bits.
    #[must_use]
    pub fn control(&self) -> Control {
        Control(self.0.as_ref()[field::FLAGS])
    }

    /// The receive window, unscaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        u16::from_be_bytes(self.array(field::WINDOW))
    }

    /// The options, raw.
    #[must_use]
    pub fn options(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LEN..self.header_len()]
    }

    /// What follows the header.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..]
    }
}

/// What a receiver holds beyond the acknowledgement number: up to four blocks, the most recent
/// first (RFC 2018, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    len: u8,
    /// First sequence number of each block, and the one after its last.
    blocks: [(u32, u32); SACK_BLOCKS_MAX],
}

impl SackBlocks {
    /// No blocks.
    pub const NONE: Self = Self { len: 0, blocks: [(0, 0); SACK_BLOCKS_MAX] };

    /// Add the sequence numbers from `left` up to, but without, `right`. A fifth block is ignored.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.len)) {
            *place = (left, right);
            self.len += 1;
        }
    }

    /// The blocks.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Bytes of options that they take, in whole words: two of padding, two of kind and length,
    /// eight for each block (RFC 2018, section 3).
    #[must_use]
    pub const fn option_bytes(&self) -> usize {
        if self.len == 0 { 0 } else { 4 + 8 * self.len as usize }
    }

    /// Read the first SACK option among `options`; none if the options make no sense.
    fn parse(options: &[u8]) -> Self {
        option::find(options, option::SACK).map_or(Self::NONE, Self::from_body)
    }

    fn from_body(body: &[u8]) -> Self {
        let mut blocks = Self::NONE;
        for block in body.as_chunks::<8>().0 {
            let [a, b, c, d, e, f, g, h] = *block;
            blocks.push(u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        }
        blocks
    }

    /// Write the option to `buf`, which is [`Self::option_bytes`] long.
    fn emit(&self, buf: &mut [u8]) {
        let Some((head, body)) = buf.split_first_chunk_mut::<4>() else { return };
        *head = [option::NOP, option::NOP, option::SACK, 2 + 8 * self.len];
        for (place, (left, right)) in body.as_chunks_mut::<8>().0.iter_mut().zip(self.as_slice()) {
            place[..4].copy_from_slice(&left.to_be_bytes());
            place[4..].copy_from_slice(&right.to_be_bytes());
        }
    }
}

/// When a packet left, and when the latest packet from the other side had left (RFC 7323, section
/// 3.2), in a unit that both ends know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// `TSval`: the sender's clock.
    pub value: u32,
    /// `TSecr`: the value being echoed; zero if there is none.
    pub echo: u32,
}

impl Timestamps {
    /// Bytes of the option, in whole words: two of padding, ten of its own.
    const OPTION_BYTES: usize = 12;

    fn parse(options: &[u8]) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h] = option::find(options, option::TIMESTAMPS)? else {
            return None;
        };
        let (value, echo) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        Some(Self { value, echo })
    }

    fn option(self) -> [u8; Self::OPTION_BYTES] {
        let mut bytes = [option::NOP, option::NOP, option::TIMESTAMPS, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[4..8].copy_from_slice(&self.value.to_be_bytes());
        bytes[8..].copy_from_slice(&self.echo.to_be_bytes());
        bytes
    }
}

/// The contents of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Port of the sender of this segment.
    pub src_port: u16,
    /// Port of its receiver.
    pub dst_port: u16,
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// The next sequence number expected, if [`Control::ACK`] is set.
    pub ack: u32,
    /// The control bits.
    pub control: Control,
    /// The receive window, unscaled.
    pub window: u16,
    /// What the receiver holds out of order; beside timestamps, at most
    /// [`SACK_BLOCKS_WITH_TIMESTAMPS`] blocks.
    pub sack: SackBlocks,
    /// Times, where the ends measure by them.
    pub timestamps: Option<Timestamps>,
}

impl Repr {
    /// Read a header, skipping all options but SACK and timestamps.
    ///
    /// # Errors
    /// As [`Header::new_checked`].
    pub fn parse(bytes: &[u8]) -> Result<Self, TcpError> {
        let header = Header::new_checked(bytes)?;
        let (sack, timestamps) = match header.options() {
            [] => (SackBlocks::NONE, None), // as in most headers
            options => (SackBlocks::parse(options), Timestamps::parse(options)),
        };
        Ok(Self {
            src_port: header.src_port(),
            dst_port: header.dst_port(),
            seq: header.seq(),
            ack: header.ack(),
            control: header.control(),
            window: header.window(),
            sack,
            timestamps,
        })
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN + self.timestamp_bytes() + self.sack.option_bytes()
    }

    const fn timestamp_bytes(&self) -> usize {
        if self.timestamps.is_some() { Timestamps::OPTION_BYTES } else { 0 }
    }

    /// Write the header to the front of `buf`.
    ///
    /// # Errors
    /// If `buf` is shorter than [`Repr::buffer_len`], or the options than what they must hold.
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), TcpError> {
        let (have, need) = (buf.len(), self.buffer_len());
        if need > HEADER_MAX {
            return Err(TcpError::Options(need - HEADER_LEN));
        }
        let Some(buf) = buf.get_mut(..need) else {
            return Err(TcpError::Short { need, have });
        };
        let mut header = [0; HEADER_LEN];
        header[field::SRC_PORT].copy_from_slice(&self.src_port.to_be_bytes());
        header[field::DST_PORT].copy_from_slice(&self.dst_port.to_be_bytes());
        header[field::SEQ].copy_from_slice(&self.seq.to_be_bytes());
        header[field::ACK].copy_from_slice(&self.ack.to_be_bytes());
        header[field::OFFSET] = ((need / 4) as u8) << 4;
        header[field::FLAGS] = self.control.0;
        header[field::WINDOW].copy_from_slice(&self.window.to_be_bytes());
        let (front, options) = buf.split_at_mut(HEADER_LEN);
        front.copy_from_slice(&header);
        if !options.is_empty() {
            self.emit_options(options);
        }
        Ok(())
    }

    /// Write the options to `buf`, which is as long as they are.
    fn emit_options(&self, buf: &mut [u8]) {
        let (timestamps, sack) = buf.split_at_mut(self.timestamp_bytes());
        if let Some(times) = self.timestamps {
            timestamps.copy_from_slice(&times.option());
        }
        self.sack.emit(sack);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REPR: Repr = Repr {
        src_port: 0x8001,
        dst_port: 80,
        seq: 0x0102_0304,
        ack: 0xfffe_fdfc,
        control: Control(0x18),
        window: 0xabcd,
        sack: SackBlocks::NONE,
        timestamps: None,
    };

    /// The bytes of `REPR`, written out from RFC 9293, figure 1.
    const BYTES: [u8; 20] = [
        0x80, 0x01, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04, 0xff, 0xfe, 0xfd, 0xfc, 0x50, 0x18, 0xab,
        0xcd, 0, 0, 0, 0,
    ];

    #[test]
    fn emits_the_bytes_of_the_standard() {
        let mut buf = [0xff; 20];
        REPR.emit(&mut buf).unwrap();
        assert_eq!(buf, BYTES);
        assert_eq!(REPR.emit(&mut buf[..19]), Err(TcpError::Short { need: 20, have: 19 }));
    }

    #[test]
    fn options_are_skipped() {
        let mut with_options = BYTES.to_vec();
        with_options[12] = 0x70;
        with_options.extend([4, 2, 1, 0, 9, 9, 9, 9, 42]);
        assert_eq!(Repr::parse(&with_options), Ok(REPR));
        let header = Header::new_checked(&with_options).unwrap();
        assert_eq!(header.options(), [4, 2, 1, 0, 9, 9, 9, 9]);
        assert_eq!(header.payload(), [42]);
        let short = Repr::parse(&with_options[..24]);
        assert_eq!(short, Err(TcpError::Short { need: 28, have: 24 }));
        with_options[12] = 0x40;
        assert_eq!(Repr::parse(&with_options), Err(TcpError::DataOffset(4)));
    }

    /// Two blocks, the bytes written out from RFC 2018, section 3.
    #[test]
    fn sack_blocks_are_an_option() {
        let mut repr = REPR;
        repr.sack.push(0x0000_1000, 0x0000_2000);
        repr.sack.push(0xffff_ff00, 0x0000_0010);
        let mut bytes = BYTES.to_vec();
        bytes[12] = 0xa0;
        bytes.extend([1, 1, 5, 18]);
        bytes.extend([0, 0, 0x10, 0, 0, 0, 0x20, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x10]);
        let mut buf = [0xff; 40];
        repr.emit(&mut buf).unwrap();
        assert_eq!(buf[..], bytes[..]);
        assert_eq!(Repr::parse(&bytes), Ok(repr));
        assert_eq!(repr.emit(&mut buf[..39]), Err(TcpError::Short { need: 40, have: 39 }));
        bytes[23] = 30;
        assert_eq!(Repr::parse(&bytes).unwrap().sack, SackBlocks::NONE, "longer than the header");
    }

    /// Beside a SACK block, the bytes written out from RFC 7323, section 3.2 and appendix A.
    #[test]
    fn timestamps_are_an_option() {
        let timestamps = Some(Timestamps { value: 0x0102_0304, echo: 0xf1f2_f3f4 });
        let mut repr = Repr { timestamps, ..REPR };
        repr.sack.push(0x10, 0x20);
        let mut bytes = BYTES.to_vec();
        bytes[12] = 0xb0;
        bytes.extend([1, 1, 8, 10, 1, 2, 3, 4, 0xf1, 0xf2, 0xf3, 0xf4]);
        bytes.extend([1, 1, 5, 10, 0, 0, 0, 0x10, 0, 0, 0, 0x20]);
        let mut buf = [0xff; 44];
        repr.emit(&mut buf).unwrap();
        assert_eq!(buf[..], bytes[..]);
        assert_eq!(Repr::parse(&bytes), Ok(repr));
        bytes[23] = 9;
        assert_eq!(Repr::parse(&bytes).unwrap().timestamps, None, "not as long as it must be");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(header) = Header::new_checked(&bytes[..]) {
                let all = HEADER_LEN + header.options().len() + header.payload().len();
                prop_assert_eq!(all, bytes.len());
                prop_assert!(Repr::parse(&bytes).is_ok());
            } else {
                prop_assert!(Repr::parse(&bytes).is_err());
            }
        }

        #[test]
        fn emit_then_parse_is_identity(
            ports in any::<(u16, u16)>(), numbers in any::<(u32, u32)>(),
            control in any::<u8>(), window in any::<u16>(),
            blocks in proptest::collection::vec(any::<(u32, u32)>(), 0..6),
            times in proptest::option::of(any::<(u32, u32)>()),
        ) {
            let timestamps = times.map(|(value, echo)| Timestamps { value, echo });
            let control = Control(control);
            let mut sack = SackBlocks::NONE;
            blocks.iter().for_each(|&(left, right)| sack.push(left, right));
            prop_assert_eq!(sack.as_slice(), &blocks[..blocks.len().min(SACK_BLOCKS_MAX)]);
            let repr = Repr {
                src_port: ports.0, dst_port: ports.1, seq: numbers.0, ack: numbers.1, control, window, sack,
                timestamps,
            };
            let mut buf = vec![0xff; repr.buffer_len()];
            if times.is_some() && sack.as_slice().len() > SACK_BLOCKS_WITH_TIMESTAMPS {
                prop_assert_eq!(repr.emit(&mut buf), Err(TcpError::Options(48)));
            } else {
                repr.emit(&mut buf).unwrap();
                prop_assert_eq!(Repr::parse(&buf), Ok(repr));
            }
        }
    }
}
