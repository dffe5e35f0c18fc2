//! Topologies whose paths are listed: `jellyfish` and `bcube`.

use std::path::Path;

use fabric::{Bcube, Jellyfish, Topology};

use super::{PORTS_MAX, count_of, finish, host_link};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::Reader;
use crate::value::{Form, Refused, ScenarioValue};

/// More paths between two switches than this are refused: NDP walks them all.
const PATHS_MAX: u32 = 64;

/// `kind = "jellyfish"`: a random regular graph of switches.
pub(crate) fn jellyfish(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let switches = count_of(table, "switches", 3)?;
    let degree = count_of(table, "degree", 2)?;
    let hosts_per_switch = count_of(table, "hosts_per_switch", 1)?;
    let seed = table.need("graph_seed")?;
    let paths = table.need("paths")?;
    table.within("paths", paths, 1..=PATHS_MAX)?;
    let Stretch(stretch) = table.need("stretch")?;
    let link = host_link(table)?;
    let shape = Jellyfish { switches, degree, hosts_per_switch, seed, paths, stretch, link };
    finish(table, "switches", Topology::jellyfish(&shape))
}

/// `kind = "bcube"`: servers that forward for each other.
pub(crate) fn bcube(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let n = count_of(table, "n", 2)?;
    let k = table.need("k")?;
    table.within("k", k, 0..=PORTS_MAX)?;
    let Stretch(stretch) = table.need("stretch")?;
    let link = host_link(table)?;
    finish(table, "n", Topology::bcube(&Bcube { n, k, stretch, link }))
}

/// By how many links a path may be longer than the shortest, or "unlimited".
struct Stretch(u32);

impl ScenarioValue for Stretch {
    fn form() -> Form {
        u32::form().or_word("unlimited")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "unlimited" => Ok(Self(u32::MAX)),
            other => u32::read(other).map(Self),
        }
    }
    fn show(&self) -> toml::Value {
        if self.0 == u32::MAX { toml::Value::String("unlimited".into()) } else { self.0.show() }
    }
}
