//! Bits of packets: the first is the most significant of the first byte (P4-16 section 12.8.1).

/// The next `width` bits from bit `at` on. They must be there.
pub fn get(bytes: &[u8], at: usize, width: u16) -> u128 {
    let (mut value, mut at, mut left) = (0, at, usize::from(width));
    while left > 0 {
        let (before, after) = (at % 8, 8 - at % 8);
        let take = after.min(left);
        let rest = bytes[at / 8] & (0xff >> before);
        value = (value << take) | u128::from(rest >> (after - take));
        at += take;
        left -= take;
    }
    value
}

/// Writes the lowest `width` bits of `value` from bit `at` on, where all bits were 0.
pub fn put(bytes: &mut [u8], at: usize, width: u16, value: u128) {
    let (mut at, mut left) = (at, usize::from(width));
    while left > 0 {
        let after = 8 - at % 8;
        let take = after.min(left);
        // Fewer than eight bits, after the mask.
        let part = (value >> (left - take)) as u8 & (0xff >> (8 - take));
        bytes[at / 8] |= part << (after - take);
        at += take;
        left -= take;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ir::mask;

    #[test]
    fn the_first_bit_is_the_most_significant_of_the_first_byte() {
        let bytes = [0b1010_0101, 0xff, 0x12];
        assert_eq!(get(&bytes, 0, 4), 0b1010);
        assert_eq!(get(&bytes, 1, 1), 0);
        assert_eq!(get(&bytes, 4, 12), 0x5ff);
        assert_eq!(get(&bytes, 6, 14), 0b01_1111_1111_0001);
        let mut out = [0; 3];
        put(&mut out, 0, 4, 0xf_a);
        put(&mut out, 4, 12, 0x5ff);
        put(&mut out, 16, 8, 0x12);
        assert_eq!(out, bytes);
    }

    proptest! {
        #[test]
        fn what_is_put_is_got(
            at in 0_usize..20,
            width in 1_u16..=128,
            value in any::<u128>(),
        ) {
            let mut bytes = [0; 20];
            put(&mut bytes, at, width, value);
            prop_assert_eq!(get(&bytes, at, width), value & mask(width));
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            prop_assert_eq!(ones, (value & mask(width)).count_ones(), "nothing else is touched");
        }
    }
}
