//! `trimline list`: what scenarios can name, one line each.

use std::fmt::Display;

use scenario::{Diagnostic, list};
use serde::Serialize;

use crate::args::What;
use crate::{Ended, say, say_json, shipped};

/// `trimline list`.
pub(crate) fn list(what: What, json: bool) -> Ended {
    match what {
        What::Transports => print(&list::transports(), json),
        What::Topologies => print(&list::topologies(), json),
        What::Queues => print(&list::queues(), json),
        What::Workloads => print(&list::workloads(), json),
        What::Scenarios => print(&shipped::scenarios(), json),
        What::Keys => print(&list::key_lines(), json),
        What::Schema => say(format_args!("{:#}", list::schema())),
        What::Studies => print(&studies()?, json),
    }
}

/// An entry, for `--json`.
#[derive(Serialize)]
struct Entry {
    name: String,
    about: String,
}

fn print<N: Display>(entries: &[(N, String)], json: bool) -> Ended {
    if json {
        let entry =
            |(name, about): &(N, String)| Entry { name: name.to_string(), about: about.clone() };
        return say_json(&entries.iter().map(entry).collect::<Vec<_>>());
    }
    let names: Vec<String> = entries.iter().map(|(name, _)| name.to_string()).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    names
        .iter()
        .zip(entries)
        .try_for_each(|(name, (_, about))| say(format_args!("{name:width$}  {about}")))
}

/// Those in `./studies`; else those that come with the program.
fn studies() -> Result<Vec<(String, String)>, Diagnostic> {
    let studies = study::list()?;
    if studies.is_empty() {
        let shipped = shipped::studies().into_iter();
        return Ok(shipped.map(|(name, title)| (name.to_owned(), title)).collect());
    }
    Ok(studies)
}
