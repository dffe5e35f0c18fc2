//! Every kind of endpoint on drawn networks ([`testkit::hostile`]): a few seeds here, as many as
//! `TRIMLINE_HOSTILE_SEEDS` says elsewhere, from `TRIMLINE_HOSTILE_FIRST` on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use testkit::hostile::{self, Subject};

use crate::subjects;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Try each kind with each seed, and then say which have failed.
fn try_all(run: impl Fn(&Subject<'_>, u64)) {
    let first = number("TRIMLINE_HOSTILE_FIRST", 1);
    let seeds = first..first + number("TRIMLINE_HOSTILE_SEEDS", 20);
    let mut failed = Vec::new();
    subjects::each(|subject| {
        for seed in seeds.clone() {
            if catch_unwind(AssertUnwindSafe(|| run(subject, seed))).is_err() {
                failed.push(format!("{} {seed}", subject.name));
            }
        }
    });
    assert!(failed.is_empty(), "{} runs failed: {failed:?}", failed.len());
}

/// By how many bytes the heap of this thread grows.
fn growth(run: &mut dyn FnMut()) -> u64 {
    let mut result = Ok(());
    // The counter does not survive a panic.
    let count = allocation_counter::measure(|| result = catch_unwind(AssertUnwindSafe(&mut *run)));
    result.unwrap_or_else(|panic| resume_unwind(panic));
    u64::try_from(count.bytes_current).unwrap_or(0)
}

#[test]
fn honest_networks_deliver_everything_once() {
    try_all(hostile::honest);
}

#[test]
fn no_altered_packet_makes_an_endpoint_panic_grow_or_lie() {
    try_all(|subject, seed| {
        hostile::altered(subject, seed, growth);
    });
}
