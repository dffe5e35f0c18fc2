//! The `[[fault]]` tables: links that go down and come back during the run.

use fabric::{Fault, FaultAction, Topology};

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;
use crate::topology::named_links;

/// Read all `[[fault]]`: each is a fault in either direction of the link, unless `one_way` is set.
pub(crate) fn read(
    tables: &mut [Reader<'_>],
    topology: &Topology,
) -> Result<Vec<Fault>, Diagnostic> {
    let mut faults = Vec::new();
    for table in tables {
        let at = table.need("at")?;
        let links = named_links(table, topology)?;
        let actions = [("down", FaultAction::Down), ("up", FaultAction::Up)];
        let &(_, action) = table.choose("action", &actions, |a| a.0)?;
        faults.extend(links.into_iter().map(|link| Fault { at, link, action }));
    }
    Ok(faults)
}
