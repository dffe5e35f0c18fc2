//! `trimline list`: what scenarios can name, one line each.

use scenario::list;

use crate::args::What;
use crate::{Ended, say};

/// `trimline list`.
pub(crate) fn list(what: What) -> Ended {
    let entries = match what {
        What::Transports => list::transports(),
        What::Topologies => list::topologies(),
        What::Queues => list::queues(),
        What::Workloads => list::workloads(),
    };
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    entries.iter().try_for_each(|(name, about)| say(format_args!("{name:width$}  {about}")))
}
