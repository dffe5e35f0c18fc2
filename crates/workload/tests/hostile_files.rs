//! Ten thousand malformed files per reader: cut, spliced, overwritten with noise and with numbers
//! that nobody expects. No reader may panic, and an error must stand inside the file.

use proptest::prelude::*;
use proptest::sample::Index;
use trimline_workload::{Messages, TextError, read_cm, read_sizes, read_topo};

fn read_messages(text: &str, name: &str) -> Result<Messages, TextError> {
    trimline_workload::read_messages(text, name, &|_| ())
}

const SIZES: &str = "# title: t\n# sampling: discrete\n0 0\n180 0.1\n3160 0.7\n1000000 1\n";
const PERCENT: &str = "1500.0\n0,0\n70,1\n70 10\n3000000 100\n";
const CM: &str = "Nodes 8\nConnections 3\nTriggers 2\nFailures 1\n\
    0->1 id 1 start 0 size 2000000 send_done_trigger 1 prio 4\n\
    1->2 id 2 trigger 1 size 0\n# a comment\n\
    3->7 id 3 msg 1 start 12.000 size 1 recv_done_trigger 2\n\
    trigger id 1 oneshot\ntrigger id 2 barrier count 1\n\
    failure switch_type AGG switch_id 0 link_id 1\n";
const TOPO: &str = "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\n\
    Radix_Down 8\nRadix_Up 2\nDownlink_Latency_ns 1000\nQueue_Up 9000\nOversubscribed 4\n\
    Tier 1\nDownlink_speed_Gbps 2.5\nRadix_Down 4\nDownlink_Latency_ns 1000\nBundle 1\n";
const CSV: &str = "start,src,dst,size,prio\n10us,0,5,135000B,0\n# c\n\"0\", 3 ,1,1.5KB,255\n";

/// Words that readers might trip over.
const NASTY: [&str; 22] = [
    "0",
    "-1",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "1e308",
    "1e-400",
    "NaN",
    "inf",
    "-0",
    ".",
    "->",
    "\"",
    "\u{feff}",
    "é\u{301}",
    "\r\n",
    "\0",
    "#",
    ",",
    "0.1ps",
];

#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Remove(Index, Index),
    Repeat(Index, Index),
    Noise(Index, String),
    Nasty(Index, Index),
    ReplaceWord(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Damage::Cut),
        (at(), at()).prop_map(|(a, b)| Damage::Remove(a, b)),
        (at(), at()).prop_map(|(a, b)| Damage::Repeat(a, b)),
        (at(), any::<String>()).prop_map(|(a, noise)| Damage::Noise(a, noise)),
        (at(), at()).prop_map(|(a, b)| Damage::Nasty(a, b)),
        (at(), at()).prop_map(|(a, b)| Damage::ReplaceWord(a, b)),
    ]
}

/// Applies one damage to the characters of a file.
fn apply(text: &mut Vec<char>, damage: &Damage) {
    let len = text.len() + 1;
    let range = |a: &Index, b: &Index| {
        let (a, b) = (a.index(len), b.index(len));
        a.min(b)..a.max(b)
    };
    match damage {
        Damage::Cut(at) => text.truncate(at.index(len)),
        Damage::Remove(a, b) => drop(text.drain(range(a, b))),
        Damage::Repeat(a, b) => {
            let piece = text[range(a, b)].to_vec();
            text.extend(piece);
        }
        Damage::Noise(at, noise) => {
            let at = at.index(len);
            text.splice(at..at, noise.chars());
        }
        Damage::Nasty(at, which) => {
            let at = at.index(len);
            text.splice(at..at, NASTY[which.index(NASTY.len())].chars());
        }
        Damage::ReplaceWord(at, which) => {
            let at = at.index(len);
            let end = text[at..].iter().position(|c| c.is_whitespace() || *c == ',');
            let end = at + end.unwrap_or(text.len() - at);
            text.splice(at..end, NASTY[which.index(NASTY.len())].chars());
        }
    }
}

fn damaged(valid: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(damage(), 1..4).prop_map(move |damages| {
        let mut text: Vec<char> = valid.chars().collect();
        for damage in &damages {
            apply(&mut text, damage);
        }
        text.into_iter().collect()
    })
}

/// An error stands inside the file (or where its missing end would be), says what, and how to mend
/// it; its value is what stands there.
fn located(text: &str, error: &TextError) -> Result<(), TestCaseError> {
    prop_assert_eq!(&error.file, "f");
    prop_assert!(!error.message.is_empty() && !error.hint.is_empty());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.split('\n').collect();
    let line = error.line as usize;
    prop_assert!((1..=lines.len()).contains(&line), "line {} of {}", line, lines.len());
    let rest: Vec<char> = lines[line - 1].chars().collect();
    let before = error.column as usize - 1;
    prop_assert!(before <= rest.len(), "column {} of {:?}", error.column, lines[line - 1]);
    prop_assert_eq!(error.len as usize, error.value.chars().count());
    Ok(())
}

/// The same, and the value stands where the error says. Not asked of CSV, where quotes are taken
/// off.
fn quoted(text: &str, error: &TextError) -> Result<(), TestCaseError> {
    located(text, error)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let line = text.split('\n').nth(error.line as usize - 1).unwrap_or("");
    let there: String =
        line.chars().skip(error.column as usize - 1).take(error.len as usize).collect();
    prop_assert_eq!(&there, &error.value);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn size_distributions(text in prop_oneof![damaged(SIZES), damaged(PERCENT)], u in 0.0..1.0) {
        match read_sizes(&text, "f") {
            Ok(dist) => {
                let (low, high) = dist.range();
                prop_assert!((low..=high).contains(&dist.sample(u)) && low > 0);
                prop_assert!(low as f64 * 0.999 <= dist.mean() && dist.mean() <= high as f64 * 1.001);
            }
            Err(error) => quoted(&text, &error)?,
        }
    }

    #[test]
    fn connection_matrices(text in damaged(CM)) {
        match read_cm(&text, "f") {
            Ok(matrix) => {
                prop_assert!(matrix.flows.iter().all(|f| f.src != f.dst && f.size > 0));
                if matrix.nodes <= 1000 {
                    let delay = units::Dur(1);
                    prop_assert!(matrix.plan().schedules(matrix.nodes, delay).is_ok());
                }
            }
            Err(error) => quoted(&text, &error)?,
        }
    }

    #[test]
    fn topologies(text in damaged(TOPO)) {
        match read_topo(&text, "f") {
            Ok(topo) => prop_assert!(topo.tiers.iter().all(|t| t.downlink_rate.0 > 0)),
            Err(error) => quoted(&text, &error)?,
        }
    }

    #[test]
    fn message_lists(text in damaged(CSV)) {
        match read_messages(&text, "f") {
            Ok(messages) => {
                prop_assert!(messages.list.iter().all(|m| m.src != m.dst && m.size.0 > 0));
                if let Err(error) = messages.check_hosts(4) {
                    located(&text, &error)?;
                }
            }
            Err(error) => located(&text, &error)?,
        }
    }

    #[test]
    fn noise_is_never_a_panic(text in any::<String>()) {
        for error in [
            read_sizes(&text, "f").err(),
            read_cm(&text, "f").err(),
            read_topo(&text, "f").err(),
            read_messages(&text, "f").err(),
        ].into_iter().flatten() {
            located(&text, &error)?;
        }
    }
}

#[test]
fn the_files_are_valid_before_they_are_damaged() {
    assert!(read_sizes(SIZES, "f").is_ok() && read_sizes(PERCENT, "f").is_ok());
    assert!(read_cm(CM, "f").is_ok() && read_topo(TOPO, "f").is_ok());
    assert!(read_messages(CSV, "f").is_ok());
}
