//! RCCC at the sender: what of a message may be sent by its receiver's credit, and how much it asks
//! for (specs/uet.md#10.1).

use wire::uet::UNIT;

/// What a credit target follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Bytes on the wire that wait to be sent for the first time, and again.
    pub(super) backlog: u64,
    pub(super) resends: u64,
    /// The congestion window, if there is one.
    pub(super) window: Option<u64>,
    /// Bytes on the wire of a full packet.
    pub(super) mtu: u64,
    /// Messages of this host that wait for their turn to send, this one included.
    pub(super) turns: u64,
}

/// The credit of one message.
#[derive(Debug)]
pub(super) struct Credit {
    /// Bytes on the wire that may be sent. Any permit a whole packet, so that there may be less
    /// than none.
    left: i64,
    /// All that the receiver has given, in units, modulo 2^32.
    given: u32,
    /// What is left is the sender's own: it has heard nothing yet.
    speculative: bool,
    /// The most that may be left.
    most: u32,
}

impl Credit {
    /// A sender begins with `most` bytes of its own.
    pub(super) fn new(most: u64) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        Self { left: i64::from(most), given: 0, speculative: true, most }
    }

    pub(super) fn left(&self) -> i64 {
        self.left
    }

    /// A packet of `size` bytes is sent.
    pub(super) fn spend(&mut self, size: u16) {
        self.left -= i64::from(size);
    }

    /// The receiver has been heard: what the sender gave itself is over.
    pub(super) fn end_speculation(&mut self) {
        if self.speculative {
            self.speculative = false;
            self.left = self.left.min(0);
        }
    }

    /// The receiver has given so much in all; false if older news, which changes nothing.
    pub(super) fn give(&mut self, given: u32) -> bool {
        let Ok(more) = u32::try_from(given.wrapping_sub(self.given) as i32) else { return false };
        let more = i64::from(more) * UNIT as i64;
        self.left = (self.left + more).min(i64::from(self.most));
        self.given = given;
        more > 0
    }

    /// What to ask for now, counted as `given` is.
    pub(super) fn ask(&self, demand: Demand) -> u32 {
        let Demand { backlog, resends, window, mtu, turns } = demand;
        let wanted = backlog.saturating_add(resends).min(u64::from(self.most));
        let wanted = wanted.min(window.map_or(u64::MAX, |window| window.saturating_add(mtu)));
        let mut more = wanted as i64 - self.left;
        if self.speculative && backlog > 0 {
            // Without it a short message would never be given anything.
            more = more.max(mtu as i64);
        }
        more /= turns.clamp(1, u64::from(u32::MAX)) as i64;
        self.given.wrapping_add(units_up(more) as u32)
    }
}

/// Units for so many bytes, rounded up.
fn units_up(bytes: i64) -> i64 {
    -(-bytes).div_euclid(UNIT as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MTU: u64 = 4150;
    const MOST: u64 = 262_926;

    fn demand(backlog: u64) -> Demand {
        Demand { backlog, resends: 0, window: None, mtu: MTU, turns: 1 }
    }

    #[test]
    fn units_are_rounded_up_on_both_sides_of_zero() {
        let units: Vec<i64> = [-257, -256, -255, -1, 0, 1, 256, 257].map(units_up).to_vec();
        assert_eq!(units, [-1, -1, 0, 0, 0, 1, 1, 2]);
    }

    /// By hand: of 2 MB all of the window is asked for, less what is left of it.
    #[test]
    fn a_target_is_the_backlog_up_to_a_window_less_what_is_left() {
        let mut credit = Credit::new(MOST);
        credit.spend(4150);
        assert_eq!(credit.ask(demand(2_000_000)), 4150_u32.div_ceil(256), "a packet at least");
        (0..9).for_each(|_| credit.spend(4150));
        assert_eq!(credit.ask(demand(2_000_000)), 41_500_u32.div_ceil(256));
        assert_eq!(credit.ask(demand(0)) as i32, -((MOST as i32 - 41_500) / 256), "nothing waits");
        let shared = Demand { turns: 4, ..demand(2_000_000) };
        assert_eq!(credit.ask(shared), (41_500_u32 / 4).div_ceil(256));
        let windowed = Demand { window: Some(MOST / 2), ..demand(2_000_000) };
        assert_eq!(credit.ask(windowed), 4150_u32.div_ceil(256), "the window has room for less");
    }

    #[test]
    fn what_a_sender_gave_itself_ends_with_the_first_answer() {
        let mut credit = Credit::new(MOST);
        credit.spend(4150);
        credit.end_speculation();
        assert_eq!(credit.left(), 0);
        credit.give(64);
        credit.end_speculation();
        assert_eq!(credit.left(), 16_384, "only the first");
        credit.give(32);
        assert_eq!(credit.left(), 16_384, "older news");
        assert_eq!(credit.ask(demand(100)) as i32, 64 - (16_284 / 256));
    }

    proptest! {
        /// specs/uet.md#U4: what is sent is covered by the first credit, what was given, and a
        /// packet, whatever numbers come in whatever order.
        #[test]
        fn u4_no_more_is_sent_than_was_given(
            steps in proptest::collection::vec((0..3_u8, any::<u32>(), 1..=4150_u16), 1..200),
        ) {
            let mut credit = Credit::new(MOST);
            let (mut sent, mut highest) = (0_u64, 0_u32);
            for (what, number, size) in steps {
                match what {
                    0 => {
                        let given = highest.wrapping_add(number % 5000).wrapping_sub(2000);
                        if (given.wrapping_sub(highest) as i32) > 0 {
                            highest = given;
                        }
                        credit.give(given);
                    }
                    1 => credit.end_speculation(),
                    _ => while credit.left() > 0 {
                        credit.spend(size);
                        sent += u64::from(size);
                    },
                }
                prop_assert!(credit.left() <= MOST as i64 && credit.left() > -4150);
                prop_assert!(sent <= MOST + u64::from(highest) * 256 + MTU);
            }
        }
    }
}
