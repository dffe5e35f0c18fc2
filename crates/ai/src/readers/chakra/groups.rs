//! Groups of ranks: those of a trace's metadata nodes, and astra-sim's JSON file of them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::proto::Node;
use crate::graph::Rank;
use crate::readers::{File, ReadError, json_error, text_of};
use workload::text::{Place, Source};

/// The ranks of groups, by name; none for all ranks.
pub(super) type Names = BTreeMap<String, Vec<Rank>>;

/// A group as PyTorch's traces have it.
#[derive(Deserialize)]
struct ProcessGroup {
    pg_name: String,
    ranks: Vec<u32>,
}

/// The groups that the inputs of a metadata node describe; none if they describe something else.
///
/// # Errors
/// For people: what is wrong.
pub(super) fn in_metadata(node: &Node, ranks: u32) -> Result<Names, String> {
    let values = node.inputs.as_ref().map_or("", |inputs| &inputs.values);
    if !values.contains("pg_name") {
        return Ok(Names::new());
    }
    // A list of one string, as Python prints it: two characters around the JSON in it.
    let json = values.get(2..values.len().saturating_sub(2)).unwrap_or("");
    let groups: Vec<ProcessGroup> =
        serde_json::from_str(json).map_err(|error| format!("not a list of groups: {error}"))?;
    let mut names = Names::new();
    for ProcessGroup { pg_name, ranks: members } in groups {
        check(&pg_name, &members, ranks)?;
        names.insert(pg_name, members.into_iter().map(Rank).collect());
    }
    Ok(names)
}

/// The groups of a JSON file: an object of names and lists of ranks.
///
/// # Errors
/// What is not such an object, and groups of ranks that the job does not have.
pub(super) fn read(file: &File<'_>, ranks: u32) -> Result<Names, ReadError> {
    let text = text_of(file)?;
    let source = Source::new(text, file.name);
    let hint = "astra-sim's groups are an object: {\"1\": [0, 1], \"2\": [2, 3]}";
    let groups: BTreeMap<String, Vec<u32>> = serde_json::from_str(source.text())
        .map_err(|error| json_error(&source, &error, "not a list of groups", hint))?;
    let mut names = Names::new();
    for (name, members) in groups {
        let first = Place { line: 1, column: 1 };
        if members.is_empty() {
            return Err(source.missing(first, format!("group {name:?} has no ranks"), hint).into());
        }
        check(&name, &members, ranks).map_err(|message| source.missing(first, message, hint))?;
        names.insert(name, members.into_iter().map(Rank).collect());
    }
    Ok(names)
}

fn check(name: &str, members: &[u32], ranks: u32) -> Result<(), String> {
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("group {name:?} names rank {} twice", pair[0]));
    }
    match sorted.last() {
        Some(last) if *last >= ranks => {
            Err(format!("group {name:?} names rank {last}, but the job has {ranks}, from 0"))
        }
        _ => Ok(()),
    }
}
