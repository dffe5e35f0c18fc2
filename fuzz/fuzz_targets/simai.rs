//! The readers of SimAI's workloads and AICB's tables: whatever the text, tasks or an error with a
//! place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let errors = [
        ai::readers::read_simai(text, "x.txt", 64).err(),
        ai::readers::read_aicb(text, "x.csv", 64).err(),
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.line >= 1 && error.column >= 1, "{error:?}");
    }
});
