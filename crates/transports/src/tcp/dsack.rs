//! Duplicates as acknowledgements report them (RFC 2883).

use std::ops::Range;

/// The duplicate segment that an acknowledgement of everything below `ack` reports, if it reports
/// one: in its first SACK block, which then lies below `ack`, or within the second (RFC 2883,
/// section 4).
pub(super) fn duplicate(ack: u64, blocks: &[(u64, u64)]) -> Option<Range<u64>> {
    let &(left, right) = blocks.first()?;
    let within =
        |&(outer_left, outer_right): &(u64, u64)| outer_left <= left && right <= outer_right;
    let reported = left < right && (right <= ack || blocks.get(1).is_some_and(within));
    reported.then_some(left..right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 2883, section 4.1: a segment below the acknowledgement (1); beside a
    /// hole (2); within what is held (3); and what reports none.
    #[test]
    fn the_first_block_may_be_a_duplicate() {
        assert_eq!(duplicate(4000, &[(3000, 3500)]), Some(3000..3500));
        assert_eq!(duplicate(4000, &[(3000, 3500), (4500, 5000)]), Some(3000..3500));
        assert_eq!(duplicate(4000, &[(5000, 5500), (4500, 6000)]), Some(5000..5500));
        assert_eq!(duplicate(4000, &[(4500, 5500), (7000, 7500)]), None);
        assert_eq!(duplicate(4000, &[(4500, 5500)]), None);
        assert_eq!(duplicate(4000, &[(0, 0), (4500, 5500)]), None, "a block that makes no sense");
        assert_eq!(duplicate(4000, &[]), None);
    }
}
