//! RCCC at the sender: what of a message may be sent by its receiver's credit, and how much it asks
//! for (specs/uet.md#10.1).

use wire::uet::UNIT;

use super::config::CreditRule;

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
    rule: CreditRule,
    /// EQDS: what was left of its own as it heard something. It permits nothing, but as long as it
    /// is there less is asked for.
    spare: i64,
    /// EQDS: what was last asked for.
    asked: u32,
}

impl Credit {
    /// A sender begins with `most` bytes of its own.
    pub(super) fn new(rule: CreditRule, most: u64) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let left = i64::from(most);
        Self { left, given: 0, speculative: true, most, rule, spare: 0, asked: 0 }
    }

    pub(super) fn left(&self) -> i64 {
        self.left
    }

    /// A packet of `size` bytes is sent.
    pub(super) fn spend(&mut self, size: u16) {
        self.left -= i64::from(size);
    }

    /// The receiver has been heard: what the sender gave itself is over.
    /// So many bytes wait to be sent for the first time.
    pub(super) fn end_speculation(&mut self, backlog: u64) {
        if self.speculative {
            self.speculative = false;
            // A message shorter than that would never ask for anything.
            if self.rule == CreditRule::Eqds && backlog as i64 >= self.left {
                self.spare = self.left.max(0);
            }
            self.left = self.left.min(0);
        }
    }

    /// It has been heard again, and a packet of `size` bytes waits for credit.
    pub(super) fn wait(&mut self, size: u16) {
        if self.spare > 0 && self.left + self.spare > 0 && self.left <= 0 {
            self.spare -= i64::from(size);
        }
    }

    /// Whether an answer is asked for, because nothing more is permitted. EQDS asks where less than
    /// nothing is left of what was given.
    pub(super) fn is_used_up(&self) -> bool {
        match self.rule {
            CreditRule::Rccc => self.left <= 0,
            CreditRule::Eqds => !self.speculative && self.left < 0,
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

    /// What a packet that is sent asks for.
    pub(super) fn ask_with_packet(&mut self, demand: Demand) -> u32 {
        let target = self.ask(demand);
        if self.rule == CreditRule::Rccc {
            return target;
        }
        // Where asking for no more would stop what is given, its own credit is used up first.
        let stands = target.wrapping_sub(self.asked) as i32 <= 0;
        if stands && !self.speculative && self.spare > 0 {
            self.spare -= demand.mtu as i64;
        }
        self.asked = self.ask(demand);
        self.asked
    }

    /// What to ask for now, counted as `given` is.
    pub(super) fn ask(&self, demand: Demand) -> u32 {
        let Demand { backlog, resends, window, mtu, turns } = demand;
        // EQDS: of packets to be sent again the receiver knows, and turns are the pacer's.
        let (resends, turns) = match self.rule {
            CreditRule::Rccc => (resends, turns),
            CreditRule::Eqds => (0, 1),
        };
        let wanted = backlog.saturating_add(resends).min(u64::from(self.most));
        let wanted = wanted.min(window.map_or(u64::MAX, |window| window.saturating_add(mtu)));
        let mut more = wanted as i64 - self.left - self.spare;
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
        let mut credit = Credit::new(CreditRule::Rccc, MOST);
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
        let mut credit = Credit::new(CreditRule::Rccc, MOST);
        credit.spend(4150);
        credit.end_speculation(2_000_000);
        assert_eq!(credit.left(), 0);
        credit.give(64);
        credit.end_speculation(2_000_000);
        assert_eq!(credit.left(), 16_384, "only the first");
        credit.give(32);
        assert_eq!(credit.left(), 16_384, "older news");
        assert_eq!(credit.ask(demand(100)) as i32, 64 - (16_284 / 256));
    }

    /// By hand, with windows of ten packets: after four and the first answer six are its own.
    #[test]
    fn eqds_asks_for_less_while_credit_of_its_own_is_there() {
        let mut credit = Credit::new(CreditRule::Eqds, 10 * MTU);
        let ask = |credit: &mut Credit| credit.ask_with_packet(demand(2_000_000));
        for n in 1..=4 {
            credit.spend(4150);
            assert_eq!(ask(&mut credit), (n * 4150_u32).div_ceil(256));
        }
        assert!(!credit.is_used_up());
        let mut short = Credit::new(CreditRule::Eqds, 10 * MTU);
        short.spend(4150);
        assert_eq!(short.ask_with_packet(demand(MTU)), 4150_u32.div_ceil(256), "a packet");
        short.end_speculation(MTU);
        assert_eq!((short.left(), short.spare), (0, 0), "it has to ask for the rest");
        credit.end_speculation(2_000_000);
        assert_eq!((credit.left(), credit.spare), (0, 6 * 4150), "it permits nothing");
        credit.wait(4150);
        assert_eq!(credit.spare, 5 * 4150);
        credit.give(16);
        credit.spend(4150);
        assert!(credit.is_used_up() && credit.left() == 4096 - 4150);
        // Half of ten packets and 54 B beside 16 units: 82 and 16.
        assert_eq!(ask(&mut credit), 98);
        assert_eq!(credit.spare, 5 * 4150);
        assert_eq!(ask(&mut credit), 98 + 16, "asked for before, so one more packet");
        assert_eq!(credit.spare, 4 * 4150);
    }

    proptest! {
        /// specs/uet.md#U4: what is sent is covered by the first credit, what was given, and a
        /// packet, whatever numbers come in whatever order.
        #[test]
        fn u4_no_more_is_sent_than_was_given(
            steps in proptest::collection::vec((0..3_u8, any::<u32>(), 1..=4150_u16), 1..200),
        ) {
            let mut credit = Credit::new(CreditRule::Rccc, MOST);
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
                    1 => credit.end_speculation(0),
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
