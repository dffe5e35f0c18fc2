//! RCCC at the receiver: which message is given credit, how much, and when: one pacer for a host,
//! a little slower than its link (specs/uet.md#10.2).

use std::collections::VecDeque;

use units::{Bytes, Dur, Rate, Time};
use wire::uet::UNIT;

use super::config::CreditRule;
use crate::slab::SlotRef;

/// Credit is given at this share of the link's rate.
const SHARE: f64 = 0.99;
/// EQDS: for a turn of 4096 B 0.99 of the time that a packet of 4160 B takes with what is around a
/// frame, 38 B (`EqdsPullPacer` of the public simulator).
const EQDS_SHARE: f64 = 4096.0 / (0.99 * 4198.0);
/// After a turn that gave nothing, as long as so many bytes would take.
const PAUSE: u64 = 1024;

/// What the pacer keeps of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    /// The highest that its sender has asked for, in units, modulo 2^32.
    target: u32,
    /// What was given.
    given: u32,
    /// Without being asked for, it may be given so many beyond the target.
    beyond: i32,
    /// It waits for its turn, asked for or not.
    asked: bool,
    unasked: bool,
    /// EQDS: units of packets that were refused and not given credit since. It waits among those
    /// with such packets unless this is zero.
    refused: u32,
}

impl Given {
    /// Without being asked for, it may be given `units` beyond the target.
    pub(super) fn up_to(units: u64) -> Self {
        Self { beyond: i32::try_from(units).unwrap_or(i32::MAX), ..Self::default() }
    }

    /// The sender asks for so much. Whether that is more than before.
    fn hear(&mut self, target: u32) -> bool {
        let more = target.wrapping_sub(self.target) as i32 > 0;
        if more {
            self.target = target;
        }
        more
    }

    /// Units that were asked for and not given; below zero, those given beyond.
    fn owed(&self) -> i32 {
        self.target.wrapping_sub(self.given) as i32
    }
}

/// Why a message waits for credit that it has not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// It does not.
    No,
    /// A packet of it was refused.
    Refused,
    /// Its sender asks by REQ.
    Asks,
}

/// EQDS: what a refused packet of 4150 B counts for, nine quanta of 512 B, in units.
const REFUSED: u32 = 18;

/// Messages in the order of service. One that is over stays until its turn comes, or until more
/// than half of them are over: leaving costs the same however many wait.
#[derive(Debug, Default)]
struct Turns {
    queue: VecDeque<SlotRef>,
    /// How many of them are over.
    over: usize,
}

impl Turns {
    /// Nobody waits.
    fn is_empty(&self) -> bool {
        self.queue.len() == self.over
    }

    fn tidy(&mut self, open: impl Fn(SlotRef) -> bool) {
        if self.over * 2 > self.queue.len() {
            self.queue.retain(|&at| open(at));
            self.over = 0;
        }
    }

    fn pop(&mut self, open: impl Fn(SlotRef) -> bool) -> Option<SlotRef> {
        while let Some(at) = self.queue.pop_front() {
            if open(at) {
                return Some(at);
            }
            self.over -= 1;
        }
        None
    }
}

/// The pacer of a host.
#[derive(Debug)]
pub(super) struct Pacer {
    rule: CreditRule,
    /// EQDS: messages with refused packets, which come first.
    refused: Turns,
    /// Messages that ask.
    asked: Turns,
    /// Those that have been given all that they asked for, and may be given more.
    unasked: Turns,
    /// When the next may be given some.
    free_at: Time,
    /// When it is due to be; [`Time::NEVER`] where nobody waits.
    due: Time,
    /// What a message is given in a turn, units.
    turn: u32,
    /// Of [`SHARE`].
    scale: f64,
}

impl Pacer {
    /// In a turn a message is given so many bytes.
    pub(super) fn new(rule: CreditRule, turn: u32) -> Self {
        Self {
            rule,
            refused: Turns::default(),
            asked: Turns::default(),
            unasked: Turns::default(),
            free_at: Time::ZERO,
            due: Time::NEVER,
            turn: (turn / UNIT as u32).max(1),
            scale: 1.0,
        }
    }

    /// Credit is given at this part of its usual rate.
    pub(super) fn scale(&mut self, scale: f64) {
        self.scale = scale;
    }

    /// The sender of the message at `at` asks for so much; or see [`Join`].
    pub(super) fn ask(&mut self, at: SlotRef, message: &mut Given, target: u32, join: Join) {
        let more = message.hear(target);
        let joins = match self.rule {
            CreditRule::Rccc => more || join != Join::No,
            CreditRule::Eqds => message.refused == 0 && (more || join == Join::Asks),
        };
        if joins && !message.asked {
            message.asked = true;
            self.asked.queue.push_back(at);
        }
        if self.rule == CreditRule::Eqds && join != Join::No {
            if message.refused == 0 {
                self.refused.queue.push_back(at);
            }
            message.refused = message.refused.saturating_add(REFUSED);
        }
    }

    /// The turn that is due is left out.
    pub(super) fn leave_out(&mut self, from: Time, rate: Rate) {
        let bytes = u64::from(self.turn) * UNIT;
        self.free_at = from + gap(rate, bytes, self.share());
        self.due = Time::NEVER;
    }

    /// Of the link's rate, what is given.
    fn share(&self) -> f64 {
        match self.rule {
            CreditRule::Rccc => SHARE * self.scale,
            CreditRule::Eqds => EQDS_SHARE,
        }
    }

    /// When the next message is given credit, as of `now`.
    pub(super) fn due(&mut self, now: Time) -> Time {
        let lists = [&self.refused, &self.asked, &self.unasked];
        let waits = lists.into_iter().any(|list| !list.is_empty());
        if !waits {
            self.due = Time::NEVER;
        } else if self.due == Time::NEVER {
            self.due = self.free_at.max(now);
        }
        self.due
    }

    /// The message whose turn it is, of those that are `open`. It takes its place in the order
    /// again by [`Pacer::give`].
    pub(super) fn next(&mut self, open: impl Fn(SlotRef) -> bool) -> Option<SlotRef> {
        let mut lists = [&mut self.refused, &mut self.asked, &mut self.unasked];
        lists.iter_mut().for_each(|list| list.tidy(&open));
        lists.into_iter().find_map(|list| list.pop(&open))
    }

    /// Give credit to `message` at `at`, whose turn it is since `from`, by a link of `rate`. All
    /// that it has been given.
    pub(super) fn give(&mut self, from: Time, rate: Rate, at: SlotRef, message: &mut Given) -> u32 {
        if self.rule == CreditRule::Eqds {
            return self.give_turn(from, rate, at, message);
        }
        let units = if std::mem::take(&mut message.asked) {
            message.owed().clamp(0, self.turn as i32) as u32
        } else {
            message.unasked = false;
            self.turn
        };
        message.given = message.given.wrapping_add(units);
        if message.owed() > 0 {
            message.asked = true;
            self.asked.queue.push_back(at);
        } else if message.owed() > -message.beyond && !message.unasked {
            message.unasked = true;
            self.unasked.queue.push_back(at);
        }
        let bytes = if units == 0 { PAUSE } else { u64::from(units) * UNIT };
        self.free_at = from + gap(rate, bytes, self.share());
        self.due = Time::NEVER;
        message.given
    }

    /// The same by EQDS: a whole turn, whatever was asked for.
    fn give_turn(&mut self, from: Time, rate: Rate, at: SlotRef, message: &mut Given) -> u32 {
        message.given = message.given.wrapping_add(self.turn);
        if message.refused > 0 {
            message.refused = message.refused.saturating_sub(self.turn);
            if message.refused > 0 {
                self.refused.queue.push_back(at);
            } else if message.owed() > 0 && !message.asked {
                message.asked = true;
                self.asked.queue.push_back(at);
            }
        } else if std::mem::take(&mut message.asked) {
            if message.owed() > 0 {
                message.asked = true;
                self.asked.queue.push_back(at);
            } else if !message.unasked {
                message.unasked = true;
                self.unasked.queue.push_back(at);
            }
        } else {
            message.unasked = (1 - message.beyond..=0).contains(&message.owed());
            if message.unasked {
                self.unasked.queue.push_back(at);
            }
        }
        self.leave_out(from, rate);
        message.given
    }

    /// `message` is over, and no longer open.
    pub(super) fn forget(&mut self, message: &Given) {
        self.refused.over += usize::from(message.refused > 0);
        self.asked.over += usize::from(message.asked);
        self.unasked.over += usize::from(message.unasked);
    }
}

/// How long credit for `bytes` takes.
fn gap(rate: Rate, bytes: u64, share: f64) -> Dur {
    let wire = rate.serialise(Bytes(bytes).0);
    Dur((wire.0 as f64 / share) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slab::Slab;

    const RATE: Rate = Rate(100_000_000_000);

    /// So many messages, which may be given 1000 units beyond what they ask for.
    fn messages(count: usize) -> (Slab<Given>, Vec<SlotRef>) {
        let mut all = Slab::new();
        let refs = (0..count).map(|_| all.insert(Given::up_to(1000))).collect();
        (all, refs)
    }

    /// What is given until `end`: when, to whom, all that it has.
    fn run(pacer: &mut Pacer, all: &mut Slab<Given>, end: Time) -> Vec<(Time, SlotRef, u32)> {
        let mut given = Vec::new();
        loop {
            let due = pacer.due(Time::ZERO);
            if due > end {
                return given;
            }
            let at = pacer.next(|at| all.get(at).is_some()).unwrap();
            let message = all.get_mut(at).unwrap();
            given.push((due, at, pacer.give(due, RATE, at, message)));
        }
    }

    #[test]
    fn those_that_ask_take_turns_and_then_are_given_more_up_to_a_bound() {
        let mut pacer = Pacer::new(CreditRule::Rccc, 16_384);
        let (mut all, refs) = messages(2);
        for (&at, units) in refs.iter().zip([100, 40]) {
            pacer.ask(at, all.get_mut(at).unwrap(), units, Join::No);
        }
        let given = run(&mut pacer, &mut all, Time::ZERO + Dur::from_ms(1));
        let first: Vec<(usize, u32)> =
            given[..3].iter().map(|(_, at, units)| (usize::from(*at == refs[1]), *units)).collect();
        assert_eq!(first, [(0, 64), (1, 40), (0, 100)]);
        // 64 units at 100 Gb/s and 0.99.
        let gap = (RATE.serialise(16_384).0 as f64 / 0.99) as u64;
        assert_eq!(given[1].0, Time(gap));
        // Not asked for: 64 at a time, until 1000 beyond.
        let last = |at: SlotRef| given.iter().rev().find(|(_, a, _)| *a == at).unwrap().2;
        assert_eq!((last(refs[0]), last(refs[1])), (100 + 1024, 40 + 1024));
    }

    #[test]
    fn a_refused_packet_has_its_turn_even_if_nothing_is_owed() {
        let mut pacer = Pacer::new(CreditRule::Rccc, 16_384);
        let (mut all, refs) = messages(1);
        let message = all.get_mut(refs[0]).unwrap();
        pacer.ask(refs[0], message, 0, Join::No);
        assert_eq!(pacer.due(Time(5)), Time::NEVER, "nothing new is asked for");
        pacer.ask(refs[0], message, 0, Join::Refused);
        assert_eq!(pacer.due(Time(5)), Time(5));
        let at = pacer.next(|at| all.get(at).is_some()).unwrap();
        assert_eq!(pacer.give(Time(5), RATE, at, all.get_mut(at).unwrap()), 0);
        let pause = (RATE.serialise(1024).0 as f64 / 0.99) as u64;
        assert_eq!(pacer.due(Time(5)), Time(5 + pause), "as for 1024 B");
    }

    /// Messages of a hostile peer that open, ask and end beside two that stay: neither list keeps
    /// more than it has use for, and what is left is due as if they had never been.
    #[test]
    fn messages_that_are_over_leave_no_more_than_they_found() {
        let mut pacer = Pacer::new(CreditRule::Rccc, 16_384);
        let (mut all, refs) = messages(2);
        let mut served = [0, 0];
        for round in 0..10_000_u32 {
            for &at in &refs {
                pacer.ask(at, all.get_mut(at).unwrap(), (round + 1) * 64, Join::No);
            }
            let brief: Vec<SlotRef> = (0..3).map(|_| all.insert(Given::up_to(1000))).collect();
            for &at in &brief {
                pacer.ask(at, all.get_mut(at).unwrap(), 0, Join::Refused);
            }
            for turn in 0..3 {
                let due = pacer.due(Time::ZERO);
                let at = pacer.next(|at| all.get(at).is_some()).unwrap();
                pacer.give(due, RATE, at, all.get_mut(at).unwrap());
                if let Some(which) = refs.iter().position(|&one| one == at) {
                    served[which] += 1;
                } else {
                    assert_eq!(turn, 2, "those that stay come first");
                }
            }
            for at in brief {
                pacer.forget(&all.remove(at).unwrap());
            }
            assert!(pacer.asked.queue.len() <= 8 && pacer.unasked.queue.len() <= 8);
        }
        assert_eq!(served, [10_000, 10_000]);
        refs.iter().for_each(|&at| pacer.forget(&all.remove(at).unwrap()));
        assert_eq!(pacer.due(Time::ZERO), Time::NEVER, "nobody is left");
    }

    /// One with refused packets comes before those that ask, until it has had as much; turns are
    /// whole, 332.48 ns apart (`EqdsPullPacer`).
    #[test]
    fn eqds_gives_whole_turns_first_where_packets_were_refused() {
        let mut pacer = Pacer::new(CreditRule::Eqds, 4096);
        let (mut all, refs) = messages(2);
        let [a, b] = [refs[0], refs[1]];
        pacer.ask(a, all.get_mut(a).unwrap(), 20, Join::No);
        pacer.ask(b, all.get_mut(b).unwrap(), 5, Join::No);
        pacer.ask(b, all.get_mut(b).unwrap(), 5, Join::Refused);
        let given = run(&mut pacer, &mut all, Time::ZERO + Dur::from_us(3));
        let order: Vec<_> = given.iter().map(|(_, at, units)| (*at == b, *units)).collect();
        // 18 units for the refused packet are two turns; then a asks for 20, and b still waits.
        let first = [(true, 16), (true, 32), (false, 16), (true, 48), (false, 32)];
        assert_eq!(order[..5], first);
        assert_eq!(given[1].0.since(given[0].0).0 / 10, 33_248);
        let mut idle: Vec<bool> = order[5..].iter().map(|(b, _)| *b).collect();
        idle.dedup();
        assert!(idle.len() > 2, "then in turn without being asked: {order:?}");
    }

    #[test]
    fn eqds_gives_no_more_unasked_than_a_window() {
        let mut pacer = Pacer::new(CreditRule::Eqds, 4096);
        let (mut all, refs) = messages(1);
        pacer.ask(refs[0], all.get_mut(refs[0]).unwrap(), 16, Join::No);
        let given = run(&mut pacer, &mut all, Time::ZERO + Dur::from_ms(1));
        // 1000 units beyond the target: 63 turns, the last of which begins below.
        assert_eq!(given.len(), 1 + 63);
    }

    proptest! {
        /// specs/uet.md#U4,U5: numbers grow, and from one turn to any other no more is given than
        /// 0.99 of the link takes meanwhile, but for the last turn itself.
        #[test]
        fn u4_u5_credit_is_given_in_order_and_no_faster_than_the_link(
            asks in proptest::collection::vec((0..5_usize, 0..3000_u32, any::<bool>()), 1..60),
        ) {
            let mut pacer = Pacer::new(CreditRule::Rccc, 16_384);
            let (mut all, refs) = messages(5);
            for (who, target, join) in asks {
                let join = if join { Join::Refused } else { Join::No };
                pacer.ask(refs[who], all.get_mut(refs[who]).unwrap(), target, join);
            }
            let given = run(&mut pacer, &mut all, Time::ZERO + Dur::from_ms(5));
            let mut last: Vec<(SlotRef, u32)> = refs.iter().map(|&at| (at, 0)).collect();
            let mut bytes = 0;
            for (when, at, units) in given {
                let wire = RATE.bytes_in(when.since(Time::ZERO)).0 as f64;
                prop_assert!(bytes as f64 <= 0.99 * wire + 256.0, "{bytes} by {when:?}");
                let (_, before) = last.iter_mut().find(|(known, _)| *known == at).unwrap();
                prop_assert!(units >= *before);
                bytes += u64::from(units - *before) * UNIT;
                *before = units;
            }
        }
    }
}
