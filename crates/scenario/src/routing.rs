//! The `[routing]` table: who chooses the path of a packet.

use fabric::Routing;
use transports::ndp::PathStrategy;
use units::Dur;

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// A way to choose paths: what the switches do, and what a sender with a choice does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    name: &'static str,
    /// What the switches do.
    pub(crate) switches: Routing,
    /// What the sender does.
    pub(crate) sender: PathStrategy,
}

const MODES: [Mode; 5] = [
    // The sender walks a random permutation of all paths (NDP, section 3.1.1).
    Mode { name: "permute", switches: Routing::Source, sender: PathStrategy::Permute },
    // The sender draws a path for each packet.
    Mode { name: "spray", switches: Routing::Source, sender: PathStrategy::Random },
    // The sender draws one path for each message.
    Mode { name: "single", switches: Routing::Source, sender: PathStrategy::Single },
    // Each switch draws for each packet.
    Mode { name: "random", switches: Routing::PacketRandom, sender: PathStrategy::Single },
    // Each switch hashes the flow.
    Mode { name: "ecmp", switches: Routing::FlowHash, sender: PathStrategy::Single },
];

impl Mode {
    /// Whether the sender has to choose anew for each packet.
    pub(crate) fn needs_spraying(self) -> bool {
        self.sender != PathStrategy::Single
    }

    /// Whether consecutive packets of a message may take different paths.
    pub(crate) fn sprays(self) -> bool {
        self.needs_spraying() || self.switches == Routing::PacketRandom
    }
}

/// Read `[routing]`: the mode, and how long switches and hosts take to learn of a `[[fault]]`,
/// which matters only if there are any.
pub(crate) fn read(table: &mut Reader<'_>, faults: bool) -> Result<(Mode, Dur), Diagnostic> {
    let &mode = table.choose("mode", &MODES, |mode| mode.name)?;
    let reroute_after =
        if faults { table.need("reroute_after")? } else { table.or("reroute_after", Dur::ZERO)? };
    Ok((mode, reroute_after))
}

/// Check that the transport can do what `mode` asks of it.
pub(crate) fn check(table: &Reader<'_>, mode: Mode, sprays: bool) -> Result<(), Diagnostic> {
    if sprays || !mode.needs_spraying() {
        return Ok(());
    }
    let message = "this transport keeps one path per message";
    let error = table.error("mode", message, "a choice for each packet");
    Err(error.hint("use `ecmp`, `single` or `random` (the switches choose)"))
}
