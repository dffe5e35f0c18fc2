//! The rules of specs/uet.md#3, for any feedback.

use std::collections::{BTreeMap, BTreeSet};

use endpoint::{Draw, Purpose};
use proptest::prelude::*;
use units::{Dur, Time};

use super::bitmap::{Bitmap, PENALTY_MAX};
use super::mrc::Mrc;
use super::oblivious::Oblivious;
use super::reps::{EXPLORE, FREEZE, PLACES, Reps};
use super::{Draws, ENTROPY, Entropy, Feedback, Rule, Waits};

const RULES: [Rule; 6] =
    [Rule::Oblivious, Rule::Bitmap, Rule::Skip, Rule::Reps, Rule::Mixed, Rule::Mrc];
const WAITS: Waits = Waits { rtt: Dur::from_us(10), rto: Dur::from_us(70) };
const START: Time = Time(1_000_000_000);

fn draw(seed: u64) -> Draw {
    Draw::new(seed, Purpose::new("entropy test"), 0)
}

fn draws(seed: u64) -> Draws {
    Draws { stream: draw(seed).stream(ENTROPY), drawn: 0 }
}

/// The published size (specs/uet.md#3).
#[test]
fn reps_has_25_bytes_of_state() {
    assert!(size_of::<Reps>() <= 25, "{} B", size_of::<Reps>());
}

#[test]
fn a_bitmap_has_four_bits_for_each_value() {
    for log2 in 1..=15u16 {
        let values = 1usize << log2;
        let bitmap = Bitmap::new((values - 1) as u16, &mut draws(1));
        assert_eq!(bitmap.bytes(), values / 2);
    }
    assert_eq!(size_of::<Oblivious>(), 8, "the order beside it");
}

/// Specs/uet.md#U6, and that the order changes.
#[test]
fn u6_without_losses_each_value_is_used_once_in_a_round() {
    for rule in [Rule::Oblivious, Rule::Bitmap, Rule::Skip, Rule::Mrc] {
        for log2 in 0..=8u32 {
            let values = 1u16 << log2;
            let mut entropy = Entropy::new(rule, values, WAITS, draw(u64::from(log2)));
            let rounds: Vec<Vec<u16>> =
                (0..20).map(|_| (0..values).map(|_| entropy.choose(START)).collect()).collect();
            for round in &rounds {
                let different: BTreeSet<u16> = round.iter().copied().collect();
                assert_eq!(different.len(), usize::from(values), "{rule:?}");
                assert_eq!(different, rounds[0].iter().copied().collect(), "the same values");
            }
            let orders: BTreeSet<&Vec<u16>> = rounds.iter().collect();
            assert!(values < 64 || orders.len() > 10, "{rule:?}: {} orders", orders.len());
        }
    }
}

/// Four marks against one of eight values: it misses four rounds, and the others none.
#[test]
fn a_penalised_value_misses_as_many_turns() {
    for (what, turns) in
        [(Feedback::Marked, 1), (Feedback::Trimmed, 4), (Feedback::Lost, PENALTY_MAX)]
    {
        let mut entropy = Entropy::new(Rule::Bitmap, 8, WAITS, draw(3));
        let round: Vec<u16> = (0..8).map(|_| entropy.choose(START)).collect();
        entropy.feedback(START, round[5], what);
        let used: Vec<u16> = (0..200).map(|_| entropy.choose(START)).collect();
        let until = used.iter().position(|&value| value == round[5]).unwrap();
        // A round takes seven packets while it is left out.
        let missed = u8::try_from(until / 7).unwrap();
        assert!((turns..=turns + 1).contains(&missed), "{what:?}: {missed} rounds");
    }
}

/// However often it was marked, and whatever else was.
#[test]
fn a_skipped_value_misses_one_turn() {
    let mut entropy = Entropy::new(Rule::Skip, 8, WAITS, draw(3));
    let round: Vec<u16> = (0..8).map(|_| entropy.choose(START)).collect();
    for what in [Feedback::Marked, Feedback::Trimmed, Feedback::Lost, Feedback::Good] {
        entropy.feedback(START, round[5], what);
        entropy.feedback(START, round[2], what);
    }
    entropy.feedback(START, round[3], Feedback::Lost);
    let used: BTreeSet<u16> = (0..6).map(|_| entropy.choose(START)).collect();
    let others: BTreeSet<u16> = [0, 1, 3, 4, 6, 7].map(|at| round[at]).into();
    assert_eq!(used, others);
    let next: BTreeSet<u16> = (0..8).map(|_| entropy.choose(START)).collect();
    assert_eq!(next.len(), 8, "and no other");
}

#[test]
fn penalties_end_at_fifteen() {
    let mut bitmap = Bitmap::new(7, &mut draws(1));
    for what in [Feedback::Lost, Feedback::Lost, Feedback::Trimmed, Feedback::Marked] {
        bitmap.feedback(3, what);
        assert_eq!(bitmap.penalty(3), PENALTY_MAX);
    }
    assert_eq!((bitmap.penalty(2), bitmap.penalty(4)), (0, 0), "its neighbours have none");
}

/// Eight that arrived are used again in their order, each once; then it draws.
#[test]
fn reps_uses_what_arrived_once_more_and_the_latest_eight_of_it() {
    let mut reps = Reps::default();
    for value in 100..100 + 3 * u16::from(PLACES) {
        reps.feedback(START, value, Feedback::Good);
    }
    for value in 100 + 2 * u16::from(PLACES)..100 + 3 * u16::from(PLACES) {
        assert_eq!(reps.next(63, &mut draws(1)), value);
    }
    assert!(reps.next(63, &mut draws(1)) < 64, "drawn");
}

/// A loss freezes: what the ring has is used in turn, again and again, until feedback comes after
/// ten milliseconds. Then sixteen are drawn.
#[test]
fn reps_freezes_after_a_loss_and_explores_when_it_thaws() {
    let (mut reps, mut draws) = (Reps::default(), draws(5));
    for value in [200, 201, 202] {
        reps.feedback(START, value, Feedback::Good);
    }
    reps.feedback(START, 9, Feedback::Lost);
    let used: Vec<u16> = (0..7).map(|_| reps.next(63, &mut draws)).collect();
    assert_eq!(used, [200, 201, 202, 200, 201, 202, 200]);
    // A loss while it is frozen does not make it longer.
    reps.feedback(START + FREEZE, 9, Feedback::Lost);
    assert!(reps.next(63, &mut draws) >= 200);
    reps.feedback(START + FREEZE + Dur::from_us(1), 203, Feedback::Good);
    for _ in 0..EXPLORE {
        assert!(reps.next(63, &mut draws) < 64, "drawn, though 203 has arrived");
    }
    assert_eq!(reps.next(63, &mut draws), 203);
}

#[test]
fn without_anything_to_use_again_mixed_is_the_bitmap() {
    let [mut mixed, mut bitmap] =
        [Rule::Mixed, Rule::Bitmap].map(|rule| Entropy::new(rule, 64, WAITS, draw(7)));
    for n in 0..500 {
        let (value, same) = (mixed.choose(START), bitmap.choose(START));
        assert_eq!(value, same);
        let what = [Feedback::Marked, Feedback::Trimmed, Feedback::Lost][n % 3];
        mixed.feedback(START, value, what);
        bitmap.feedback(START, value, what);
    }
    mixed.feedback(START, 11, Feedback::Good);
    mixed.feedback(START, 12, Feedback::Good);
    assert_eq!((mixed.choose(START), mixed.choose(START)), (11, 12));
    assert_eq!(mixed.choose(START), bitmap.choose(START));
}

/// specs/uet.md#14.2: marked or trimmed, it is passed over for a base round trip, but not where
/// there is no other.
#[test]
fn mrc_skips_a_marked_path_for_a_round_trip() {
    let mut draws = draws(2);
    let mut mrc = Mrc::new(7, WAITS, &mut draws);
    mrc.feedback(START, 3, Feedback::Marked);
    mrc.feedback(START, 5, Feedback::Trimmed);
    let mut used = |mrc: &mut Mrc, now: Time, count: usize| -> BTreeSet<u16> {
        (0..count).map(|_| mrc.next(now, &mut draws) & 7).collect()
    };
    assert_eq!(used(&mut mrc, START, 100), [0, 1, 2, 4, 6, 7].into());
    assert_eq!(used(&mut mrc, START + WAITS.rtt, 16).len(), 8);
    (0..8).for_each(|value| mrc.feedback(START, value, Feedback::Marked));
    let first = used(&mut mrc, START, 1);
    assert_eq!(used(&mut mrc, START, 50), first, "the one that was sent through is open again");
}

/// A lost packet's EV is left out and probed every timeout; an answer through it brings it back.
#[test]
fn mrc_leaves_a_lost_path_out_until_a_probe_is_answered() {
    let mut draws = draws(4);
    let mut mrc = Mrc::new(7, WAITS, &mut draws);
    assert_eq!(mrc.probe_due(), None);
    mrc.feedback(START, 2, Feedback::Lost);
    mrc.feedback(START + Dur::from_us(5), 6, Feedback::Lost);
    mrc.feedback(START + Dur::from_us(6), 6, Feedback::Lost);
    let later = START + Dur::from_ms(1);
    assert!((0..100).all(|_| ![2, 6].contains(&(mrc.next(later, &mut draws) & 7))));
    let low = |value: Option<u16>| value.map(|value| value & 7);
    let first = START + WAITS.rto;
    assert_eq!((mrc.probe_due(), low(mrc.probe(START))), (Some(first), None));
    assert_eq!((low(mrc.probe(first)), low(mrc.probe(first))), (Some(2), None));
    let second = first + Dur::from_us(5);
    assert_eq!((mrc.probe_due(), low(mrc.probe(second))), (Some(second), Some(6)));
    assert_eq!((low(mrc.probe(second)), mrc.probe_due()), (None, Some(first + WAITS.rto)));
    mrc.feedback(second, 6, Feedback::Good);
    mrc.feedback(second, 2, Feedback::Marked);
    assert_eq!((mrc.failed(), low(mrc.probe(later)), mrc.probe_due()), (0, None, None));
    (0..8).for_each(|value| mrc.feedback(START, value, Feedback::Lost));
    let used: BTreeSet<u16> = (0..8).map(|_| mrc.next(START, &mut draws)).collect();
    assert!(used.len() > 1, "where all have failed, all are tried: {used:?}");
}

fn any_feedback() -> impl Strategy<Value = Feedback> {
    prop_oneof![
        4 => Just(Feedback::Good),
        2 => Just(Feedback::Marked),
        1 => Just(Feedback::Trimmed),
        1 => Just(Feedback::Lost),
    ]
}

/// What is done with a rule: how long after what was done before, and to which of the packets in
/// flight what happens. `None`: another packet is sent.
fn any_steps() -> impl Strategy<Value = Vec<(u64, Option<(usize, Feedback)>)>> {
    let answer = (0..64usize, any_feedback());
    proptest::collection::vec((0..3_000u64, proptest::option::of(answer)), 1..400)
}

proptest! {
    /// A packet has an EV that this message may have, and the same steps give the same EVs.
    #[test]
    fn values_stay_in_their_set_whatever_happens(
        seed: u64,
        log2 in 0u16..=10,
        steps in any_steps(),
    ) {
        for rule in RULES {
            let run = || {
                let values = 1u16 << log2;
                let mut entropy = Entropy::new(rule, values, WAITS, draw(seed));
                let (mut flight, mut sent) = (Vec::new(), Vec::new());
                let mut now = START;
                for (after, what) in &steps {
                    now += Dur::from_us(*after);
                    match what {
                        Some((n, what)) if !flight.is_empty() => {
                            let value = flight.swap_remove(n % flight.len());
                            entropy.feedback(now, value, *what);
                        }
                        _ => {
                            let value = entropy.choose(now);
                            flight.push(value);
                            sent.push(value);
                        }
                    }
                }
                sent
            };
            let sent = run();
            let different: BTreeSet<u16> = sent.iter().copied().collect();
            prop_assert!(different.len() <= 1 << log2, "{:?}: {}", rule, different.len());
            prop_assert_eq!(sent, run());
        }
    }

    /// specs/uet.md#U7: REPS uses again what arrived unmarked, and never more often than it did,
    /// unless frozen.
    #[test]
    fn u7_reps_uses_again_only_what_arrived_unmarked(steps in any_steps(), seed: u64) {
        let (mut reps, mut draws) = (Reps::default(), draws(seed));
        let mut arrived: BTreeMap<u16, usize> = BTreeMap::new();
        // What arrives has numbers that are never drawn.
        for (n, (_, what)) in (1024..).zip(steps) {
            match what {
                Some((_, Feedback::Lost)) => {}
                Some((_, what)) => {
                    reps.feedback(START, n, what);
                    if what == Feedback::Good {
                        *arrived.entry(n).or_default() += 1;
                    }
                }
                None => {
                    let value = reps.next(1023, &mut draws);
                    if value >= 1024 {
                        let left = arrived.get_mut(&value);
                        prop_assert!(left.is_some_and(|left| { *left -= 1; true }), "{}", value);
                        arrived.retain(|_, left| *left > 0);
                    }
                }
            }
        }
    }

    /// At the beginning of a round, a value without a penalty is not passed over for one with a
    /// penalty. Within one, the order may change on the way to it.
    #[test]
    fn the_bitmap_takes_an_unpenalised_value_if_there_is_one(
        marks in proptest::collection::vec((0..16u16, any_feedback()), 0..60),
        seed: u64,
    ) {
        let mut draws = draws(seed);
        let mut bitmap = Bitmap::new(15, &mut draws);
        for (value, what) in marks {
            bitmap.feedback(value, what);
        }
        let free = (0..16).any(|value| bitmap.penalty(value) == 0);
        let penalties: Vec<u8> = (0..16).map(|value| bitmap.penalty(value)).collect();
        let next = bitmap.next(&mut draws) & 15;
        prop_assert!(!free || penalties[usize::from(next)] == 0);
    }
}
