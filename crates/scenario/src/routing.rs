//! The `[routing]` table: who chooses the path of a packet.

use std::path::{Path, PathBuf};

use fabric::{Encoding, Routing, Topology};
use transports::ndp::PathStrategy;
use units::Dur;
use workload::{TextError, text};

use crate::diagnostic::Checked;
use crate::files;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::transport::Transports;
use crate::value::choices;

/// A way to choose paths: what the switches do, and what a sender with a choice does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mode {
    /// What the switches do.
    pub(crate) switches: Routing,
    /// What the sender does.
    pub(crate) sender: PathStrategy,
}

const fn mode(switches: Routing, sender: PathStrategy) -> Mode {
    Mode { switches, sender }
}

choices!(Mode,
    // The sender walks a random permutation of all paths (NDP, section 3.1.1).
    "permute" => mode(Routing::Source, PathStrategy::Permute),
    // The sender draws a path for each packet.
    "spray" => mode(Routing::Source, PathStrategy::Random),
    // The sender draws one path for each message.
    "single" => mode(Routing::Source, PathStrategy::Single),
    // Each switch draws for each packet.
    "random" => mode(Routing::PacketRandom, PathStrategy::Single),
    // Each switch hashes the flow.
    "ecmp" => mode(Routing::FlowHash, PathStrategy::Single),
    // A file says it for each host.
    "listed" => mode(Routing::Listed, PathStrategy::Single));

/// How the sender's choice is written into packets. Without a word, it is worked out from the
/// number of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PathEncoding(Routing);

choices!(PathEncoding,
    "computed" => PathEncoding(Routing::Source),
    "source-route" => PathEncoding(Routing::Encoded(Encoding::SourceRoute)),
    "core-label" => PathEncoding(Routing::Encoded(Encoding::CoreLabel)),
    "core-address" => PathEncoding(Routing::Encoded(Encoding::CoreAddress)));

/// What the table says.
struct Written {
    mode: Mode,
    reroute_after: Dur,
    path_encoding: PathEncoding,
    paths_file: PathBuf,
}

/// Before it is read.
const NONE: Written = Written {
    mode: mode(Routing::Source, PathStrategy::Permute),
    reroute_after: Dur::ZERO,
    path_encoding: PathEncoding(Routing::Source),
    paths_file: PathBuf::new(),
};

keys! { ROUTING: Written {
    mode: Mode, "who chooses a packet's path".written();
    reroute_after: Dur, "until switches and hosts know of the beginning or the end of a fault"
        .default("`\"0ps\"`; required if there is a `[[fault]]`");
}}

keys! { ENCODING: Written {
    path_encoding: PathEncoding,
        "with `permute`, `spray` and `single`: how the sender's choice is written into a packet. \
         No effect on results".default("");
}}

keys! { LISTED: Written {
    paths_file: PathBuf,
        "`mode = \"listed\"`: a line for each drawing, with the path of each host, host 0 first. \
         A run with seed s takes line s, counted on from the first after the last; lines with `#` \
         in front do not count".written();
}}

/// For the reference.
pub(crate) fn keys() -> Vec<Section> {
    let encoding = section("routing.encoding", ENCODING, &[], Some(&NONE));
    let listed = section("routing.listed", LISTED, &[], None);
    vec![section("routing", ROUTING, &[], Some(&NONE)), encoding, listed]
}

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
pub(crate) fn read(table: &mut Reader<'_>, faults: bool) -> Checked<(Mode, Dur)> {
    let mut read = NONE;
    table.all_keys(ROUTING, &mut read)?;
    if faults && !table.has("reroute_after") {
        return Err(table.missing("reroute_after", "add `reroute_after = ...` (time)"));
    }
    if read.mode.switches == Routing::Source {
        table.keys(ENCODING, &mut read, None)?;
        read.mode.switches = read.path_encoding.0;
    } else {
        table.without(ENCODING, "`permute`, `spray` or `single`; here switches choose the path");
    }
    if read.mode.switches != Routing::Listed {
        table.without(LISTED, "`mode = \"listed\"`");
    }
    Ok((read.mode, read.reroute_after))
}

/// The topology with the paths that a run with `seed` takes, if `mode` lists them.
pub(crate) fn listed(
    table: &mut Reader<'_>,
    mode: Mode,
    seed: u64,
    (topology, dir): (Topology, &Path),
) -> Checked<Topology> {
    if mode.switches != Routing::Listed {
        return Ok(topology);
    }
    let file = files::read(table, "paths_file", dir)?;
    let text = text::Source::new(&file.source.text, &file.source.name);
    let located = |error: TextError| files::located(&file.source, &error);
    let lines: Vec<_> = text.lines(char::is_whitespace).collect();
    let Some(last) = lines.len().checked_sub(1) else {
        let hint = "write a line with a path for each host";
        return Err(located(text.missing(text.end(), "no paths are listed", hint)));
    };
    let line = &lines[((seed % (last as u64 + 1) + last as u64) % (last as u64 + 1)) as usize];
    let paths = line.words().iter().map(|&word| text.whole_u32(word, "a path"));
    let paths = paths.collect::<Result<Vec<u32>, _>>().map_err(located)?;
    topology.with_paths(paths).map_err(|why| {
        let hint = "in a tree of tiers, a line has the number of a path for each host";
        located(text.wrong(line.first(), why.to_string(), hint))
    })
}

/// Check that one of the transports can do what `mode` asks of it.
pub(crate) fn check(table: &Reader<'_>, mode: Mode, transports: &Transports) -> Checked<()> {
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
pub(crate) fn check_encoding(table: &Reader<'_>, mode: Mode, topology: &Topology) -> Checked<()> {
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

    /// A file is beside the scenario: here in a folder of its own.
    fn read_listed(lines: &str, seed: u64, fabric: &str) -> Result<Scenario, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("paths.txt"), lines).unwrap();
        let text = format!(
            r#"name = "listed"
            seed = {seed}
            topology = {{ {fabric}, link_rate = "10Gbps", link_delay = "1us" }}
            queue = {{ kind = "ndp", capacity = "8 packets" }}
            routing = {{ mode = "listed", paths_file = "paths.txt" }}
            transport = {{ kind = "ndp", preset = "paper", payload = "9000B", initial_window = 30 }}
            traffic = {{ kind = "permutation", size = "9KB" }}"#
        );
        let read = Scenario::parse("listed.toml", &text, folder.path(), &[]);
        read.map_err(|why| why.render(false))
    }

    #[test]
    fn a_seed_takes_its_line_of_the_list_and_a_list_fits_the_fabric() {
        let tree = "kind = \"fat-tree\", k = 4";
        let line = |path: &str| [path; 16].join(" ");
        let two = format!("# two drawings\n{}\n\n{}\n", line("0"), line("x"));
        assert!(read_listed(&two, 1, tree).is_ok() && read_listed(&two, 3, tree).is_ok());
        for seed in [2, 4] {
            let why = read_listed(&two, seed, tree).err().unwrap();
            assert!(why.contains("paths.txt:4:1"), "{why}");
        }
        let why = read_listed("0 1 2\n", 1, tree).err().unwrap();
        assert!(why.contains("3 paths are listed for 16 hosts"), "{why}");
        let why = read_listed("# none\n", 1, tree).err().unwrap();
        assert!(why.contains("no paths are listed"), "{why}");
        let bcube = "kind = \"bcube\", n = 4, k = 1, stretch = 0";
        let why = read_listed(&two, 1, bcube).err().unwrap();
        assert!(why.contains("the paths of this bcube cannot be listed"), "{why}");
        let why = read("mode = \"ecmp\", paths_file = \"paths.txt\"", tree).err().unwrap();
        assert!(why.contains("`paths_file` has no effect here"), "{why}");
    }

    #[test]
    fn an_encoding_needs_a_sender_that_chooses_and_a_fabric_that_it_fits() {
        let tree = "kind = \"fat-tree\", k = 4";
        for encoding in ["computed", "source-route", "core-label", "core-address"] {
            let path_encoding = format!("path_encoding = \"{encoding}\"");
            assert!(read(&format!("mode = \"spray\", {path_encoding}"), tree).is_ok());
            let why = read(&format!("mode = \"random\", {path_encoding}"), tree).err().unwrap();
            assert!(why.contains("`path_encoding` has no effect here"), "{why}");
        }
        let by_address = "mode = \"permute\", path_encoding = \"core-address\"";
        let why = read(by_address, "kind = \"fat-tree\", k = 64").err().unwrap();
        assert!(why.contains("table entries") && why.contains("encodings.toml:5"), "{why}");
        let default = read("mode = \"permute\"", tree).unwrap();
        assert!(default.resolved().to_string().contains("path_encoding = \"computed\""));
    }
}
