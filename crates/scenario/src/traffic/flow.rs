//! `kind = "flow"`: one message, from one host to another.

use units::HostId;

use super::{Context, Part, flows};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// `kind = "flow"`. With `every`, one again and again.
pub(crate) fn flow(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let last = context.topology.hosts() - 1;
    let source = table.need("source")?;
    table.within("source", source, 0..=last)?;
    let destination = table.need("destination")?;
    table.within("destination", destination, 0..=last)?;
    if source == destination {
        let message = format!("host {source} would send to itself");
        let error = table.error("destination", message, "the source, too");
        return Err(error.hint("name another host"));
    }
    flows(table, context, &[(HostId(source), HostId(destination))])
}
