//! What a scenario can name, as (name, line of description), and the keys of its tables.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use workload::SizeDist;

use crate::buffer::BUFFERS;
use crate::key::Section;
use crate::queue::QUEUES;
use crate::registry::Kind;
use crate::topology::TOPOLOGIES;
use crate::traffic::TRAFFIC;
use crate::transport::{CUSTOM, TRANSPORTS, custom, nic};
use crate::{fault, host, level, lossless, measure, queue, routing, scenario, topology, variant};

fn of<F>(kinds: &[Kind<F>]) -> Vec<(&'static str, String)> {
    kinds.iter().map(|kind| (kind.name, kind.about.to_owned())).collect()
}

/// Values of `transport.kind`.
#[must_use]
pub fn transports() -> Vec<(&'static str, String)> {
    of(TRANSPORTS)
}

/// Values of `topology.kind`.
#[must_use]
pub fn topologies() -> Vec<(&'static str, String)> {
    of(TOPOLOGIES)
}

/// Values of `queue.kind`.
#[must_use]
pub fn queues() -> Vec<(&'static str, String)> {
    of(QUEUES)
}

/// Values of `traffic.kind`, then those of `traffic.distribution`.
#[must_use]
pub fn workloads() -> Vec<(&'static str, String)> {
    let sizes = SizeDist::names().filter_map(|name| {
        let dist = SizeDist::shipped(name)?;
        let mean = dist.mean() / 1e3;
        Some((name, format!("sizes of {}, mean {mean:.1} KB", dist.about().title)))
    });
    of(TRAFFIC).into_iter().chain(sizes).collect()
}

/// A schema in JSON of the tables that have definitions of their keys, for editors.
#[must_use]
pub fn schema() -> Value {
    let mut host = table(&host::keys());
    host["properties"]["stack"] = table(&host::stack_keys());
    let mut topology = one_of(TOPOLOGIES);
    each(&mut topology, |_, keys| keys["link"] = some(&table(&topology::link_keys())));
    let mut queue = one_of(QUEUES);
    let mut classes = one_of_these(QUEUES.iter().filter(|kind| queue::is_of_class(kind)));
    each(&mut classes, |_, keys| {
        let mut of_class = table(&queue::class_keys());
        let of_class = of_class["properties"].as_object_mut().into_iter().flatten();
        of_class.for_each(|(name, key)| keys[name] = key.take());
    });
    each(&mut queue, |kind, keys| {
        keys["switch"] = some(&table(&queue::switch_keys()));
        keys["link"] = some(&table(&queue::links::keys()));
        match kind {
            "lossless" => keys["ecn"] = some(&table(&lossless::ecn_keys())),
            "fair" | "priority" => keys["class"] = some(&classes),
            _ => {}
        }
    });
    let mut transport = one_of_these(TRANSPORTS.iter().chain([&CUSTOM]));
    each(&mut transport, |kind, keys| {
        if kind == "nic" {
            keys["buffer"] = some(&table(&nic::buffer_keys()));
        }
    });
    let mut all = table(&scenario::keys());
    all["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    all["title"] = json!("A scenario of Trimline");
    all["definitions"] = json!({ "transport": transport, "traffic": one_of(TRAFFIC) });
    let tables = [
        ("topology", topology),
        ("queue", queue),
        ("buffer", one_of(BUFFERS)),
        ("host", host),
        ("engine", table(&level::keys())),
        ("routing", table(&routing::keys())),
        ("transport", some(&json!({ "$ref": "#/definitions/transport" }))),
        ("traffic", some(&json!({ "$ref": "#/definitions/traffic" }))),
        ("measure", table(&measure::keys())),
        ("fault", some(&table(&fault::keys()))),
        ("variant", some(&table(&variant::keys()))),
    ];
    tables.into_iter().for_each(|(name, table)| all["properties"][name] = table);
    all
}

/// Add to the keys of each kind of `table`.
fn each(table: &mut Value, mut add: impl FnMut(&str, &mut Value)) {
    for kind in table["oneOf"].as_array_mut().into_iter().flatten() {
        let name = kind["properties"]["kind"]["const"].as_str().unwrap_or_default().to_owned();
        add(&name, &mut kind["properties"]);
    }
}

/// The schema of a table with the keys of these sections.
fn table(sections: &[Section]) -> Value {
    let mut keys = serde_json::Map::new();
    sections.iter().for_each(|section| section.schema(&mut keys));
    json!({ "type": "object", "properties": keys })
}

/// The schema of a table whose keys are those of its `kind`.
fn one_of<F>(kinds: &[Kind<F>]) -> Value {
    one_of_these(kinds.iter())
}

fn one_of_these<'k, F: 'k>(kinds: impl Iterator<Item = &'k Kind<F>>) -> Value {
    let kind = |kind: &Kind<F>| {
        let mut schema = table(&(kind.keys)());
        schema["properties"]["kind"] = json!({ "const": kind.name, "description": kind.about });
        schema["required"] = json!(["kind"]);
        schema
    };
    json!({ "oneOf": kinds.map(kind).collect::<Vec<_>>() })
}

/// The schema of one such table, or a list of them.
fn some(table: &Value) -> Value {
    json!({ "anyOf": [table, { "type": "array", "items": table }] })
}

/// The table and name of each key, with its type, range, default and what it is.
#[must_use]
pub fn key_lines() -> Vec<(String, String)> {
    keys().iter().flat_map(Section::lines).collect()
}

/// The keys of all tables of a scenario.
#[must_use]
pub fn keys() -> Vec<Section> {
    let topologies = TOPOLOGIES.iter().map(|kind| kind.keys);
    let transports = TRANSPORTS.iter().map(|kind| kind.keys);
    let queues = QUEUES.iter().map(|kind| kind.keys);
    let buffers = BUFFERS.iter().map(|kind| kind.keys);
    let traffic = TRAFFIC.iter().map(|kind| kind.keys);
    let others: [fn() -> Vec<Section>; 15] = [
        scenario::keys,
        topology::link_keys,
        custom::keys,
        nic::buffer_keys,
        queue::class_keys,
        queue::switch_keys,
        queue::links::keys,
        lossless::ecn_keys,
        host::keys,
        host::stack_keys,
        level::keys,
        routing::keys,
        measure::keys,
        fault::keys,
        variant::keys,
    ];
    let all = topologies.chain(queues).chain(buffers).chain(transports).chain(traffic);
    let mut sections: Vec<Section> = all.chain(others).flat_map(|keys| keys()).collect();
    // Kinds share keys.
    let mut seen = BTreeSet::new();
    sections.retain(|section| seen.insert(section.name));
    sections
}
