//! Every kind of endpoint on a network that alters and forges packets, from a seed: see
//! `testkit::hostile`. What runs hold is counted by the transports' own tests
//! (`crates/transports/tests/it/hostile.rs`).
#![no_main]

#[path = "../../crates/transports/tests/it/subjects.rs"]
mod subjects;

libfuzzer_sys::fuzz_target!(|seed: u64| {
    subjects::each(|subject| {
        testkit::hostile::altered(subject, seed, |run| {
            run();
            0
        });
    });
});
