//! Bitmaps of the packets of a message: at most 64, since its length has 16 bits.

/// Packets that a message may have: 65535 bytes, 1024 in each.
pub const PACKETS_MAX: u8 = 64;

/// Payload bytes of a full packet.
pub const PAYLOAD: u16 = wire::nano::PAYLOAD;

/// Packets of a message of `len` bytes, at least one.
#[must_use]
pub const fn packets(len: u16) -> u8 {
    let n = len.div_ceil(PAYLOAD);
    if n == 0 { 1 } else { n as u8 }
}

/// The bits of the packets below `end`.
#[must_use]
pub const fn below(end: u16) -> u64 {
    if end >= PACKETS_MAX as u16 { u64::MAX } else { (1 << end) - 1 }
}

/// The bit of packet `index`; none beyond the largest message.
#[must_use]
pub const fn bit(index: u8) -> u64 {
    if index < PACKETS_MAX { 1 << index } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_message() {
        assert_eq!([0, 1, 1024, 1025, 38_912, 65_535].map(packets), [1, 1, 1, 2, 38, 64]);
        assert_eq!([0, 1, 38, 64, 300].map(below), [0, 1, (1 << 38) - 1, u64::MAX, u64::MAX]);
        assert_eq!([0, 63, 64].map(bit), [1, 1 << 63, 0]);
    }
}
