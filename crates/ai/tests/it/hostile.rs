//! Ten thousand malformed files for each reader, or as many as `TRIMLINE_FUZZ` says. No reader may
//! panic, and an error must stand inside the file.

use std::time::Instant;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use trimline_ai::readers::{File, Format, Options, ReadError, Trace, read};

use crate::damage::damaged;
use crate::examples::data;

/// So many ranks there is room for: more than any of the files has.
const ROOM: u32 = 64;

/// Runs `check` on many damaged forms of `valid`, and prints how fast that went.
fn many(name: &str, valid: &[Vec<u8>], check: impl Fn(&[u8]) -> Result<(), TestCaseError>) {
    let cases = std::env::var("TRIMLINE_FUZZ").map_or(10_000, |n| n.parse().expect("a number"));
    // Without a file of failures: a failure prints the smallest file that shows it.
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(28),
        ..ProptestConfig::default()
    };
    let started = Instant::now();
    let result = TestRunner::new(config).run(&damaged(valid), |file| check(&file.0));
    result.unwrap_or_else(|error| panic!("{name}: {error}"));
    let rate = f64::from(cases) / started.elapsed().as_secs_f64();
    println!("{name}: {cases} malformed files, {rate:.0} a second");
}

fn files(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| std::fs::read(data(name)).unwrap()).collect()
}

/// A trace that was read can be played, and has what it should.
fn sound(trace: &Trace) -> Result<(), TestCaseError> {
    prop_assert!((1..=ROOM).contains(&trace.graph.ranks()));
    prop_assert!(trace.warnings.iter().all(|warning| warning.count > 0));
    Ok(())
}

/// A text's error stands inside it, or where its missing end would be; it says what is wrong and
/// how to mend it, and its value is what stands there. In CSV quotes are taken off values.
fn of_text(bytes: &[u8], format: Format) -> Result<(), TestCaseError> {
    let options = Options { ranks: ROOM, groups: None, system: None, network: None };
    let error = match read(&[File { name: "f", bytes }], format, &options) {
        Ok(trace) => return sound(&trace),
        Err(ReadError::Text(error)) => error,
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    prop_assert!(!error.message.is_empty() && !error.hint.is_empty(), "{}", error);
    prop_assert_eq!(&error.file, "f");
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines: Vec<&str> = text.split('\n').collect();
    let line = error.line as usize;
    prop_assert!((1..=lines.len()).contains(&line), "line {} of {}", line, lines.len());
    let rest: Vec<char> = lines[line - 1].chars().collect();
    let before = error.column as usize - 1;
    prop_assert!(before <= rest.len(), "column {} of {:?}", error.column, lines[line - 1]);
    prop_assert_eq!(error.len as usize, error.value.chars().count());
    if format != Format::Aicb {
        let there: String = rest.iter().skip(before).take(error.len as usize).collect();
        prop_assert_eq!(&there, &error.value, "{}", error);
    }
    Ok(())
}

#[test]
fn goal() {
    let valid = files(&["tree_8.goal", "any_3.goal"]);
    many("goal", &valid, |bytes| of_text(bytes, Format::Goal));
}

#[test]
fn simai() {
    let valid = files(&["transformer_8.txt", "micro.txt"]);
    many("simai", &valid, |bytes| of_text(bytes, Format::SimAi));
}

#[test]
fn aicb() {
    let valid = files(&["pipeline_8.csv", "micro.csv"]);
    many("aicb", &valid, |bytes| of_text(bytes, Format::Aicb));
}

/// Two ranks with the same bytes: what is sound for one may not match the other.
#[test]
fn chakra() {
    let valid = files(&[
        "astra-sim/all_reduce/4npus_1MB/all_reduce.0.et",
        "astra-sim/all_gather/8npus_1MB/all_gather.3.et",
        "nodes.0.et",
    ]);
    let options = Options { ranks: ROOM, groups: None, system: None, network: None };
    many("chakra", &valid, |bytes| {
        let files = [File { name: "f.1.et", bytes }, File { name: "f.0.et", bytes }];
        match read(&files, Format::Chakra, &options) {
            Ok(trace) => sound(&trace),
            Err(ReadError::Record(error)) => {
                prop_assert!(!error.message.is_empty() && !error.hint.is_empty(), "{}", error);
                prop_assert!(error.offset <= bytes.len(), "{}", error);
                Ok(())
            }
            Err(error) => Err(TestCaseError::fail(error.to_string())),
        }
    });
}
