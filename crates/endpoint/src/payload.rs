//! Payload bytes as a fixed function of (message, offset), where an environment carries any.

use units::MsgKey;

/// The byte at `offset` of message `key`.
#[must_use]
pub fn byte(key: MsgKey, offset: u64) -> u8 {
    let word = word(key, offset / 8);
    (word >> (8 * (offset % 8))) as u8
}

/// Write the bytes of `key` from `offset` on into `buf`.
pub fn fill(key: MsgKey, offset: u64, buf: &mut [u8]) {
    for (i, b) in buf.iter_mut().enumerate() {
        *b = byte(key, offset + i as u64);
    }
}

/// The position in `buf` of the first byte that is not the one of `key` at that place.
#[must_use]
pub fn first_difference(key: MsgKey, offset: u64, buf: &[u8]) -> Option<usize> {
    (0..buf.len()).find(|&i| buf[i] != byte(key, offset + i as u64))
}

fn word(key: MsgKey, index: u64) -> u64 {
    let mut x = (u64::from(key.src.0) << 32) ^ key.id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ index).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{HostId, MsgId};

    #[test]
    fn a_cut_fill_equals_a_whole_one_and_a_shifted_one_differs() {
        let key = MsgKey { src: HostId(3), id: MsgId(9) };
        let mut whole = [0; 100];
        fill(key, 0, &mut whole);
        let mut tail = [0; 60];
        fill(key, 40, &mut tail);
        assert_eq!(whole[40..], tail);
        assert_eq!(first_difference(key, 40, &tail), None);
        assert_eq!(first_difference(key, 41, &tail), Some(0));
    }
}
