//! What a scenario can name, as (name, line of description), and the keys of its tables.

use serde_json::json;
use workload::SizeDist;

use crate::key::Section;
use crate::queue::QUEUES;
use crate::registry::Kind;
use crate::topology::TOPOLOGIES;
use crate::traffic::TRAFFIC;
use crate::transport::TRANSPORTS;

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
    let kind = |kind: &Kind<_>| {
        let mut keys = serde_json::Map::new();
        let sections = (kind.keys)();
        sections.iter().for_each(|section| section.schema(&mut keys));
        keys.insert("kind".to_owned(), json!({ "const": kind.name, "description": kind.about }));
        json!({ "type": "object", "properties": keys, "required": ["kind"] })
    };
    let transport = json!({ "oneOf": TRANSPORTS.iter().map(kind).collect::<Vec<_>>() });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario of Trimline",
        "type": "object",
        "properties": {
            "transport": {
                "anyOf": [
                    { "$ref": "#/definitions/transport" },
                    { "type": "array", "items": { "$ref": "#/definitions/transport" } },
                ],
            },
        },
        "definitions": { "transport": transport },
    })
}

/// The keys of all tables of a scenario.
#[must_use]
pub fn keys() -> Vec<Section> {
    let transports = TRANSPORTS.iter().map(|kind| kind.keys);
    let queues = QUEUES.iter().map(|kind| kind.keys);
    let topologies = TOPOLOGIES.iter().map(|kind| kind.keys);
    let traffic = TRAFFIC.iter().map(|kind| kind.keys);
    let all = transports.chain(queues).chain(topologies).chain(traffic);
    all.flat_map(|keys| keys()).collect()
}
