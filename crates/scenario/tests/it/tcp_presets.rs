//! The presets of TCP: the table of docs/scenario-reference.md is what they are, and a manifest
//! spells them out.

use std::path::{Path, PathBuf};

use toml::Value;
use trimline_scenario::Scenario;

const MSS: u32 = 1400;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A scenario with `transport`, or what is said against it.
fn load(transport: &str) -> Result<Scenario, String> {
    let file = repository().join("scenarios/demo/incast_newreno.toml");
    Scenario::load(&file, &[format!("transport={transport}")]).map_err(|e| e.render(false))
}

/// The transport table of a scenario with `transport`, as its manifest has it.
fn resolved(transport: &str) -> toml::Table {
    let scenario = load(transport).unwrap_or_else(|why| panic!("{why}"));
    scenario.resolved()["transport"].as_table().unwrap().clone()
}

/// The rows of the table of the keys of a connection: cells, without quotes.
fn documented() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(repository().join("docs/scenario-reference.md")).unwrap();
    let below = text.split("<!-- keys: transport.tcp.connection -->").nth(1).unwrap();
    let table =
        below.lines().skip_while(|l| !l.starts_with('|')).take_while(|l| l.starts_with('|'));
    let plain = |cell: &str| cell.trim().trim_matches(['`', '"']).to_owned();
    let cells = |row: &str| row.trim_matches('|').split('|').map(plain).collect();
    table.map(cells).collect()
}

/// Whether a documented cell says `value`.
fn says(cell: &str, value: Option<&Value>) -> bool {
    match (cell, value) {
        ("-", value) => value.is_none(),
        (cell, Some(Value::Float(value))) => cell.parse() == Ok(*value),
        (cell, Some(Value::Integer(value))) => cell.parse() == Ok(*value),
        (cell, Some(Value::Boolean(value))) => cell.parse() == Ok(*value),
        (cell, Some(Value::String(value))) => cell == value,
        _ => false,
    }
}

#[test]
fn the_reference_says_what_each_preset_is() {
    let rows = documented();
    let presets = &rows[0][3..rows[0].len() - 1];
    assert_eq!(presets.len(), 6, "{presets:?}");
    for (i, preset) in presets.iter().enumerate() {
        let mut table = resolved(&format!(
            "{{kind=\"tcp\", rule=\"newreno\", recovery=\"newreno\", ecn=false, preset=\"{preset}\", mss=\"{MSS}B\"}}"
        ));
        for row in rows[2..].iter().filter(|row| row[0] != "mss") {
            let (key, cell) = (&row[0], &row[3 + i]);
            let value = table.get(key);
            assert!(says(cell, value), "{preset}.{key}: {cell} in the reference, {value:?}");
        }
        assert_eq!(table.remove("preset"), Some(Value::String(preset.clone())));
        let known = |key: &String| {
            ["kind", "mss", "rule", "recovery", "ecn"].contains(&key.as_str())
                || rows.iter().any(|r| r[0] == *key)
        };
        let unknown: Vec<&String> = table.keys().filter(|key| !known(key)).collect();
        assert!(unknown.is_empty(), "not in the reference: {unknown:?}");
        let again = resolved(&Value::Table(table.clone()).to_string());
        assert_eq!(again, table, "without the preset, what it stands for");
    }
}

#[test]
fn a_misspelt_name_is_refused_with_the_names_there_are() {
    for (key, value, hint) in [
        ("idle_restart", "halvng", "did you mean `halving`?"),
        ("receive_window", "none", "`unlimited` and `ictcp`"),
        ("undo", "eiffel", "did you mean `eifel`?"),
        ("increase", "per-bite", "did you mean `per-byte`?"),
    ] {
        let preset = "kind=\"tcp\", rule=\"newreno\", recovery=\"newreno\", ecn=false, preset=\"ns2\", mss=\"1000B\"";
        let why = load(&format!("{{{preset}, {key}=\"{value}\"}}")).err().unwrap();
        let unknown = format!("unknown {key} `{value}`");
        assert!(why.contains(&unknown) && why.contains(hint), "{why}");
    }
}

/// What tolerates reordering says what it relies on; a manifest has RR-TCP's numbers.
#[test]
fn what_is_undone_needs_what_proves_it() {
    let tcp = "kind=\"tcp\", preset=\"ns2\", mss=\"1000B\", rule=\"newreno\", ecn=false";
    for (keys, why) in [
        ("recovery=\"newreno\", dsack=true", "dsack needs recovery sack"),
        ("recovery=\"sack\", undo=\"dsack\"", "undo dsack needs dsack"),
        ("recovery=\"sack\", undo=\"eifel\"", "undo eifel needs timestamps"),
        ("recovery=\"sack\", dup_threshold=\"rr\"", "dup_threshold rr needs dsack"),
        ("recovery=\"sack\", dsack=true, dup_threshold=\"rr\", rr_step=0.0", "above 0"),
        (
            "recovery=\"sack\", dsack=true, dup_threshold=\"r\"",
            "help: write it like `dup_threshold = 1` or `\"rr\"`",
        ),
        ("recovery=\"sack\", dsack=true, rr_step=0.1", "rr_step"),
    ] {
        let said = load(&format!("{{{tcp}, {keys}}}")).err().unwrap();
        assert!(said.contains(why), "{keys}: {said}");
    }
    let rr = "recovery=\"sack\", dsack=true, dup_threshold=\"rr\", undo=\"dsack\"";
    let table = resolved(&format!("{{{tcp}, {rr}}}"));
    assert_eq!(table["dup_threshold"].as_str(), Some("rr"));
    assert_eq!(table["rr_fa_ratio"].as_float(), Some(0.9));
}
