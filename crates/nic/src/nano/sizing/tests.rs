//! Sizing against counting, against every choice there is, and against the NIC's own buffers.

use endpoint::{Draw, Purpose};

use super::super::buffers::Buffers;
use super::*;

const fn class(bytes: u32, buffers: u16) -> SizeClass {
    SizeClass { bytes, buffers }
}

/// Mostly small messages, as in Homa's W3, and a few of every size up to 38 packets.
fn demand() -> Demand {
    let sizes = [(40, 0.5), (300, 0.3), (1_400, 0.1), (9_000, 0.07), (38_912, 0.03)];
    Demand::new(&sizes, 38_912).unwrap()
}

/// specs/nanotransport.md#15.3: 16 messages of 38 packets take 1.2 MB. specs/nanotransport.md#17:
/// 8.4 MB for 128 are messages of 32 KB; of 38 packets they would be 9.96 MB.
#[test]
fn the_memory_of_the_publication() {
    let both = |bytes, buffers| 2 * memory(&[class(bytes, buffers)]);
    assert_eq!(both(38_912, 16), 1_245_184);
    assert_eq!(both(32 * 1024, 128), 8_388_608);
    assert_eq!(both(38_912, 128), 9_961_472);
    assert_eq!(memory(&[class(32 * 1024, 128)]), MEMORY_MAX, "as far as pointers reach");
}

#[test]
fn one_class_refuses_what_is_beyond_its_buffers() {
    for n in [1, 16, 17, 64] {
        let expected = f64::from(n - n.min(16)) / f64::from(n);
        let refused = demand().refused(&[class(38_912, 16)], n);
        assert!((refused - expected).abs() < 1e-12, "{n}: {refused}");
    }
}

/// Every sequence of four messages through the NIC's buffers.
#[test]
fn refusals_are_those_of_all_sequences() {
    let sizes = [(100_u32, 0.5), (1_000, 0.3), (5_000, 0.2)];
    let masses = sizes.map(|(size, share)| (u64::from(size), share));
    let demand = Demand::new(&masses, 5_000).unwrap();
    for classes in [
        vec![class(128, 1), class(1_024, 1), class(5_056, 1)],
        vec![class(128, 4), class(5_056, 1)],
        vec![class(1_024, 2), class(5_056, 2)],
        vec![class(128, 2), class(1_024, 3)],
    ] {
        let mut expected = 0.0;
        for sequence in 0..3_usize.pow(4) {
            let mut buffers = Buffers::new(&classes);
            let (mut chance, mut refused) = (1.0, 0);
            for i in 0..4 {
                let (size, share) = sizes[sequence / 3_usize.pow(i) % 3];
                chance *= share;
                refused += u32::from(buffers.take(size).is_none());
            }
            expected += chance * f64::from(refused) / 4.0;
        }
        let refused = demand.refused(&classes, 4);
        assert!((refused - expected).abs() < 1e-12, "{classes:?}: {refused} {expected}");
    }
}

/// Drawn messages through the NIC's buffers: within four standard errors.
#[test]
fn refusals_are_those_of_the_real_buffers() {
    const RUNS: u64 = 3_000;
    let demand = demand();
    let purpose = Purpose::new("sizing");
    let draw = Draw::new(7, purpose, 0);
    let sizes = [(0.5, 40), (0.8, 300), (0.9, 1_400), (0.97, 9_000), (1.0, 38_912)];
    for n in [24_u32, 60, 120] {
        let classes = demand.classes(60, 0.01, 3);
        let (mut sum, mut squares) = (0.0, 0.0);
        for run in 0..RUNS {
            let mut buffers = Buffers::new(&classes);
            let size = |i: u32| {
                let u = draw.unit(purpose, run * 1000 + u64::from(i));
                sizes.iter().find(|(share, _)| u < *share).map_or(38_912, |(_, size)| *size)
            };
            let refused = (0..n).filter(|&i| buffers.take(size(i)).is_none()).count();
            let share = refused as f64 / f64::from(n);
            sum += share;
            squares += share * share;
        }
        let mean = sum / RUNS as f64;
        let error = ((squares / RUNS as f64 - mean * mean) / RUNS as f64).sqrt();
        let refused = demand.refused(&classes, n);
        assert!((refused - mean).abs() <= 4.0 * error + 1e-12, "{n}: {refused} {mean} {error}");
    }
}

/// What is asked for is kept, and no choice of classes with the same rule needs less.
#[test]
fn classes_take_the_least_memory_that_keeps_the_promise() {
    let demand = demand();
    let bytes: Vec<u32> = demand.steps.iter().map(|step| step.bytes).collect();
    for (n, refused) in [(16, 0.001), (128, 0.001), (128, 0.05), (1_000, 0.01)] {
        for count in 1..=4 {
            let found = demand.classes(n, refused, count);
            assert!(found.len() <= count && found.windows(2).all(|w| w[0].bytes < w[1].bytes));
            assert!(demand.refused(&found, n) <= refused, "{n} {refused}: {found:?}");
            assert_eq!(demand.refused(&found, 1), 0.0, "one of every size fits");
            let allowed = refused * f64::from(n) / count as f64;
            let needed = |below: u32| {
                let above = demand.share_above(below);
                if above > 0.0 { enough(&binomial(n, above), allowed).max(1) } else { 0 }
            };
            // Every subset of the sizes that has the largest.
            for subset in 0..1_u32 << (bytes.len() - 1) {
                let chosen: Vec<u32> = (0..bytes.len())
                    .filter(|&i| i + 1 == bytes.len() || subset >> i & 1 == 1)
                    .map(|i| bytes[i])
                    .collect();
                let mut below = 0;
                let mut cost = 0;
                for &size in &chosen {
                    let buffers = needed(below) - needed(size);
                    cost += u64::from(size) * u64::from(buffers);
                    below = size;
                }
                assert!(chosen.len() > count || memory(&found) <= cost, "{found:?} {chosen:?}");
            }
        }
    }
}

#[test]
fn a_budget_is_used_for_messages_or_against_refusals() {
    let demand = demand();
    let budget = memory(&[class(38_912, 16)]);
    let (one, single) = demand.within(budget, 0.0, 1).unwrap();
    assert_eq!((one, single), (16, vec![class(38_912, 16)]));
    let (most, classes) = demand.within(budget, 0.001, 4).unwrap();
    assert!(most > 100 && memory(&classes) <= budget, "{most} {classes:?}");
    assert!(memory(&demand.classes(most + 1, 0.001, 4)) > budget, "not one more");
    let squeezed = demand.squeezed(2 * most, budget, 0.001, 4).unwrap();
    let refused = demand.refused(&squeezed, 2 * most);
    assert!(memory(&squeezed) <= budget && (0.001..0.5).contains(&refused), "{refused}");
    assert_eq!(demand.squeezed(10, budget, 0.001, 4), Some(demand.classes(10, 0.001, 4)));
    assert_eq!((demand.within(38_911, 0.1, 4), demand.squeezed(9, 38_911, 0.1, 4)), (None, None));
}

#[test]
fn what_is_too_long_is_said_and_left_out() {
    assert_eq!(Demand::new(&[(1_000, 1.0)], 999), None);
    let demand = Demand::new(&[(10, 0.5), (60, 0.25), (1_000_000, 0.25)], 38_912).unwrap();
    assert_eq!(demand.too_long(), 0.25);
    assert_eq!(demand.classes(1, 0.0, 1), [class(38_912, 1)]);
    let usage = demand.usage(&[class(38_912, 1)]);
    assert!((usage[0].share - 1.0).abs() < 1e-12 && usage.len() == 1);
    assert!((usage[0].utilisation() - 80.0 / 3.0 / 38_912.0).abs() < 1e-12);
}
