//! The scenario reader: whatever the text, a scenario or a diagnostic with a place.
#![no_main]

use std::path::Path;

use scenario::Scenario;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(diagnostic) = Scenario::parse("x.toml", text, Path::new("."), &[]) {
        assert!(!diagnostic.to_string().is_empty());
    }
});
