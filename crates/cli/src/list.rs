//! `trimline list`: what scenarios can name, one line each.

use std::fmt::Display;

use scenario::{Diagnostic, list};

use crate::args::What;
use crate::{Ended, say, shipped};

/// `trimline list`.
pub(crate) fn list(what: What) -> Ended {
    match what {
        What::Transports => print(&list::transports()),
        What::Topologies => print(&list::topologies()),
        What::Queues => print(&list::queues()),
        What::Workloads => print(&list::workloads()),
        What::Scenarios => print(&shipped::scenarios()),
        What::Keys => print(&list::key_lines()),
        What::Schema => say(format_args!("{:#}", list::schema())),
        What::Studies => print(&studies()?),
    }
}

fn print<N: Display>(entries: &[(N, String)]) -> Ended {
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
