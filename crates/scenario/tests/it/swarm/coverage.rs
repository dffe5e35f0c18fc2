//! That everything which lists name has been drawn and run: a new kind fails until it is drawn.

use std::collections::BTreeSet;

use serde_json::Value;
use trimline_scenario::list;
use workload::SizeDist;

use super::{kinds_of_traffic, names};

/// `table.key = word`, or with the kind of the table `table.kind.key = word`.
type Words = BTreeSet<String>;

/// Words of keys that are not drawn yet: presets and choices that only the schema names.
const NOT_DRAWN: [&str; 22] = [
    // crates/scenario/tests/it/flow_level.rs and calibration.rs have them.
    "engine.level = auto",
    "engine.level = flow",
    "engine.level = packet",
    "queue.lossless.preset = hpcc",
    "queue.lossless.preset = legacy",
    "queue.lossless.preset = sonic",
    "queue.p4.backend = model",
    "queue.p4.backend = rtl",
    // It needs a file: crates/scenario/src/routing.rs.
    "routing.mode = listed",
    "traffic.barrier.cap = dynamic",
    "traffic.file.start_unit = ps",
    "traffic.file.start_unit = us",
    // It needs astra-sim's files of a system.
    "traffic.job.algorithm = trace",
    // It needs a file: crates/scenario/tests/it/job.rs.
    "traffic.job.placement = file",
    "traffic.partition-aggregate.aggregate = proportional",
    "traffic.partition-aggregate.compute_kind = exponential",
    "traffic.poisson.matrix = random",
    "traffic.rpc.compute_kind = exponential",
    "traffic.rpc.compute_kind = fixed",
    "traffic.rpc.gap_kind = fixed",
    // crates/scenario/tests/it/nano_rtl.rs.
    "transport.nic.backend = rtl",
    "transport.phost.preset = authors",
];

/// Check that scenarios of these texts have, together, every word that the lists and the schema
/// name.
pub(super) fn check<'a>(texts: impl Iterator<Item = &'a str>) {
    let mut drawn = Words::new();
    for text in texts {
        let scenario: toml::Table = text.parse().unwrap();
        for (name, value) in &scenario {
            tables(name, value, &mut drawn);
        }
    }
    let wanted = wanted();
    let missing = wanted.difference(&drawn).filter(|word| !NOT_DRAWN.contains(&word.as_str()));
    let missing: Vec<&String> = missing.collect();
    assert!(missing.is_empty(), "never drawn and run: {missing:#?}");
}

/// The words in the tables of this name.
fn tables(name: &str, value: &toml::Value, words: &mut Words) {
    match value {
        toml::Value::Array(all) => all.iter().for_each(|value| tables(name, value, words)),
        toml::Value::Table(table) => {
            let kind = table.get("kind").and_then(toml::Value::as_str);
            let kind = kind.map_or(String::new(), |kind| format!(".{kind}"));
            for (key, value) in table {
                match value {
                    toml::Value::String(word) if key == "kind" => {
                        words.insert(format!("{name}.kind = {word}"));
                    }
                    toml::Value::String(word) if key == "distribution" => {
                        words.insert(format!("distribution = {word}"));
                    }
                    toml::Value::String(word) => {
                        words.insert(format!("{name}{kind}.{key} = {word}"));
                    }
                    other => tables(&format!("{name}.{key}"), other, words),
                }
            }
        }
        _ => {}
    }
}

/// Every kind of the lists, and every word of keys in the schema that have no others.
fn wanted() -> Words {
    let mut wanted = Words::new();
    let lists = [
        ("transport.kind", names(list::transports())),
        ("topology.kind", names(list::topologies())),
        ("queue.kind", names(list::queues())),
        ("traffic.kind", kinds_of_traffic()),
    ];
    for (key, names) in lists {
        wanted.extend(names.iter().map(|name| format!("{key} = {name}")));
    }
    let schema = list::schema();
    for (name, table) in schema["properties"].as_object().unwrap() {
        enumerated(name, table, &mut wanted);
    }
    for (name, table) in schema["definitions"].as_object().unwrap() {
        enumerated(name, table, &mut wanted);
    }
    let sizes = SizeDist::names().map(|name| format!("distribution = {name}"));
    wanted.extend(sizes);
    wanted
}

/// The words of the keys of a table with this schema.
fn enumerated(name: &str, schema: &Value, words: &mut Words) {
    let parts = ["oneOf", "anyOf"].into_iter().filter_map(|of| schema[of].as_array()).flatten();
    parts.for_each(|part| enumerated(name, part, words));
    let Some(keys) = schema["properties"].as_object() else { return };
    let kind = keys.get("kind").and_then(|kind| kind["const"].as_str());
    let kind = kind.map_or(String::new(), |kind| format!(".{kind}"));
    for (key, form) in keys {
        for word in form["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            words.insert(format!("{name}{kind}.{key} = {word}"));
        }
    }
}
