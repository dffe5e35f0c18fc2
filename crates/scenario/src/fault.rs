//! The `[[fault]]` tables: links that go down and come back during the run.

use fabric::{Fault, FaultAction, Topology};

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;
use crate::topology::named_links;

/// Read one `[[fault]]`: a fault for each direction of the link, unless `one_way` is set.
pub(crate) fn read(table: &mut Reader<'_>, topology: &Topology) -> Result<Vec<Fault>, Diagnostic> {
    let at = table.need("at")?;
    let links = named_links(table, topology)?;
    let actions = [("down", FaultAction::Down), ("up", FaultAction::Up)];
    let &(_, action) = table.choose("action", &actions, |a| a.0)?;
    Ok(links.into_iter().map(|link| Fault { at, link, action }).collect())
}
