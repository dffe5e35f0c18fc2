//! The reader of GOAL schedules: whatever the text, tasks or an error with a place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = ai::readers::read_goal(text, "x.goal", 64) {
        assert!(error.line >= 1 && error.column >= 1, "{error:?}");
    }
});
