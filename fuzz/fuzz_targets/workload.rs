//! The readers of peers' files: whatever the text, a value or an error with a place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let errors = [
        workload::read_cm(text, "x.cm").err(),
        workload::read_topo(text, "x.topo").err(),
        workload::read_messages(text, "x.csv", &|_| ()).err(),
        workload::read_sizes(text, "x.txt").err(),
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.line >= 1 && error.column >= 1, "{error:?}");
    }
});
