//! The `[routing]` table: who chooses the path of a packet.

use fabric::{Encoding, Routing, Topology};
use transports::ndp::PathStrategy;
use units::Dur;

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;
use crate::transport::Transports;

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

/// How the sender's choice is written into packets. Without a word, it is worked out from the
/// number of the path.
const ENCODINGS: [(&str, Routing); 4] = [
    ("computed", Routing::Source),
    ("source-route", Routing::Encoded(Encoding::SourceRoute)),
    ("core-label", Routing::Encoded(Encoding::CoreLabel)),
    ("core-address", Routing::Encoded(Encoding::CoreAddress)),
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

/// Read `[routing]`: the mode with how paths are encoded, and how long switches and hosts take to
/// learn of a `[[fault]]`, which matters only if there are any.
pub(crate) fn read(table: &mut Reader<'_>, faults: bool) -> Result<(Mode, Dur), Diagnostic> {
    let mut mode = *table.choose("mode", &MODES, |mode| mode.name)?;
    if mode.switches == Routing::Source {
        mode.switches = table.choose_or_first("path_encoding", &ENCODINGS, |e| e.0)?.1;
    } else if table.has("path_encoding") {
        let message = format!("`path_encoding` with `mode = \"{}\"`", mode.name);
        let error = table.error("path_encoding", message, "switches choose the path");
        return Err(error.hint("remove it, or use `permute`, `spray` or `single`"));
    }
    let reroute_after =
        if faults { table.need("reroute_after")? } else { table.or("reroute_after", Dur::ZERO)? };
    Ok((mode, reroute_after))
}

/// Check that one of the transports can do what `mode` asks of it.
pub(crate) fn check(
    table: &Reader<'_>,
    mode: Mode,
    transports: &Transports,
) -> Result<(), Diagnostic> {
    let sprays = transports.iter().any(|transport| transport.sprays);
    let permutes = transports.iter().any(|transport| transport.permutes);
    if sprays && mode.sender == PathStrategy::Permute && !permutes {
        let message = "this transport draws a path for each packet, whatever it drew before";
        let error = table.error("mode", message, "all paths in turn");
        return Err(error.hint("use `spray`, or `random` (the switches choose)"));
    }
    if sprays || !mode.needs_spraying() {
        return Ok(());
    }
    let message = "this transport keeps one path per message";
    let error = table.error("mode", message, "a choice for each packet");
    Err(error.hint("use `ecmp`, `single` or `random` (the switches choose)"))
}

/// Check that the fabric is not too large for the way in which `mode` encodes paths.
pub(crate) fn check_encoding(
    table: &Reader<'_>,
    mode: Mode,
    topology: &Topology,
) -> Result<(), Diagnostic> {
    let Routing::Encoded(encoding) = mode.switches else { return Ok(()) };
    encoding.check(topology).map_err(|why| {
        let error = table.error("path_encoding", why.to_string(), "not in this fabric");
        error.hint("leave it out: `computed` gives the same run in every fabric")
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Scenario;

    fn read(mode: &str, topology: &str) -> Result<Scenario, String> {
        let text = format!(
            r#"name = "encodings"
            seed = 1
            topology = {{ {topology}, link_rate = "10Gbps", link_delay = "1us" }}
            queue = {{ kind = "ndp", capacity = "8 packets" }}
            routing = {{ {mode} }}
            transport = {{ kind = "ndp", preset = "paper", payload = "9000B", initial_window = 30 }}
            traffic = {{ kind = "permutation", size = "9KB" }}"#
        );
        let read = Scenario::parse("encodings.toml", &text, Path::new("."), &[]);
        read.map_err(|why| why.render(false))
    }

    #[test]
    fn an_encoding_needs_a_sender_that_chooses_and_a_fabric_that_it_fits() {
        let tree = "kind = \"fat-tree\", k = 4";
        for encoding in ["computed", "source-route", "core-label", "core-address"] {
            let path_encoding = format!("path_encoding = \"{encoding}\"");
            assert!(read(&format!("mode = \"spray\", {path_encoding}"), tree).is_ok());
            let why = read(&format!("mode = \"random\", {path_encoding}"), tree).err().unwrap();
            assert!(why.contains("switches choose the path"), "{why}");
        }
        let by_address = "mode = \"permute\", path_encoding = \"core-address\"";
        let why = read(by_address, "kind = \"fat-tree\", k = 64").err().unwrap();
        assert!(why.contains("table entries") && why.contains("encodings.toml:5"), "{why}");
        let default = read("mode = \"permute\"", tree).unwrap();
        assert!(default.resolved().to_string().contains("path_encoding = \"computed\""));
    }
}
