//! `kind = "torus"`.

use std::path::Path;

use fabric::{Topology, Torus};

use super::{NO_LINK, PORTS_MAX, finish, links_of_all, read_shape};
use crate::diagnostic::Diagnostic;
use crate::key::{Section, keys, section};
use crate::reader::Reader;

keys! { KEYS: Torus {
    columns: u32 [3..=PORTS_MAX], "switches of a row".written();
    rows: u32 [3..=PORTS_MAX], "switches of a column".written();
    hosts_per_switch: u32 [1..=PORTS_MAX], "hosts of each".written();
}}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    vec![links_of_all(), section("topology.torus", KEYS, &[], None)]
}

/// Read it.
pub(super) fn read(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let none = Torus { columns: 0, rows: 0, hosts_per_switch: 0, link: NO_LINK };
    let (shape, links) = read_shape(table, KEYS, none, &[])?;
    finish(table, "columns", Topology::torus(&Torus { link: links.host, ..shape }), &links)
}
