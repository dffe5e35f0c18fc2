//! What a scenario can name, as (name, line of description), and the keys of its tables.

use std::collections::BTreeSet;

use serde_json::json;
use workload::SizeDist;

use crate::buffer::BUFFERS;
use crate::key::Section;
use crate::queue::QUEUES;
use crate::registry::Kind;
use crate::topology::TOPOLOGIES;
use crate::traffic::TRAFFIC;
use crate::transport::TRANSPORTS;
use crate::{fault, host, lossless, measure, queue, routing, topology};

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
pub fn schema() -> serde_json::Value {
    let mut host = table(&host::keys());
    host["properties"]["stack"] = table(&host::stack_keys());
    let mut topology = one_of(TOPOLOGIES);
    for kind in topology["oneOf"].as_array_mut().into_iter().flatten() {
        kind["properties"]["link"] = some(&table(&topology::link_keys()));
    }
    let mut queue = one_of(QUEUES);
    for kind in queue["oneOf"].as_array_mut().into_iter().flatten() {
        let keys = &mut kind["properties"];
        keys["switch"] = some(&table(&queue::switch_keys()));
        match keys["kind"]["const"].as_str() {
            Some("lossless") => keys["ecn"] = some(&table(&lossless::ecn_keys())),
            Some("fair" | "priority") => keys["class"] = some(&table(&queue::class_keys())),
            _ => {}
        }
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario of Trimline",
        "type": "object",
        "properties": {
            "topology": topology,
            "queue": queue,
            "buffer": one_of(BUFFERS),
            "host": host,
            "routing": table(&routing::keys()),
            "transport": some(&json!({ "$ref": "#/definitions/transport" })),
            "measure": table(&measure::keys()),
            "fault": some(&table(&fault::keys())),
        },
        "definitions": { "transport": one_of(TRANSPORTS) },
    })
}

/// The schema of a table with the keys of these sections.
fn table(sections: &[Section]) -> serde_json::Value {
    let mut keys = serde_json::Map::new();
    sections.iter().for_each(|section| section.schema(&mut keys));
    json!({ "type": "object", "properties": keys })
}

/// The schema of a table whose keys are those of its `kind`.
fn one_of<F>(kinds: &[Kind<F>]) -> serde_json::Value {
    let kind = |kind: &Kind<F>| {
        let mut schema = table(&(kind.keys)());
        schema["properties"]["kind"] = json!({ "const": kind.name, "description": kind.about });
        schema["required"] = json!(["kind"]);
        schema
    };
    json!({ "oneOf": kinds.iter().map(kind).collect::<Vec<_>>() })
}

/// The schema of one such table, or a list of them.
fn some(table: &serde_json::Value) -> serde_json::Value {
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
    let others: [fn() -> Vec<Section>; 9] = [
        topology::link_keys,
        queue::class_keys,
        queue::switch_keys,
        lossless::ecn_keys,
        host::keys,
        host::stack_keys,
        routing::keys,
        measure::keys,
        fault::keys,
    ];
    let all = topologies.chain(queues).chain(buffers).chain(transports).chain(traffic);
    let mut sections: Vec<Section> = all.chain(others).flat_map(|keys| keys()).collect();
    // Kinds share keys.
    let mut seen = BTreeSet::new();
    sections.retain(|section| seen.insert(section.name));
    sections
}
