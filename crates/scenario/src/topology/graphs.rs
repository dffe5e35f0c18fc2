//! Topologies whose paths are listed: `jellyfish` and `bcube`.

use std::path::Path;

use fabric::{Bcube, Jellyfish, Topology};

use super::{NO_LINK, PORTS_MAX, finish, read_shape};
use crate::diagnostic::Checked;
use crate::key::keys;
use crate::reader::Reader;
use crate::value::{Unlimited, UpTo};

/// More paths between two switches than this are refused: NDP walks them all.
const PATHS_MAX: u32 = 64;

keys! { pub(super) JELLYFISH: Jellyfish {
    switches: u32 [3..=PORTS_MAX], "switches, all alike"
        .range("3 to 2048, more than `degree`").written();
    degree: u32 [2..=PORTS_MAX],
        "ports of each that lead to other switches (the paper's r). 2: a ring"
            .range("2 to 256; `switches` x `degree` even").written();
    hosts_per_switch: u32 [1..=PORTS_MAX], "hosts of each".written();
    graph_seed (seed): u64,
        "seed of the graph and of the choice among equally long paths; the scenario's `seed` \
         changes neither".range("0 to 2^63 - 1").written();
    paths: u32 [1..=PATHS_MAX],
        "paths between two switches: this many of the shortest, or all if there are fewer (the \
         paper's k, there 8)".written();
    stretch: Stretch,
        "paths that are more than this many links longer than the shortest are left out; 0: the \
         shortest only".written();
}}

keys! { pub(super) BCUBE: Bcube {
    n: u32 [2..=PORTS_MAX], "ports of a switch".range("at least 2").written();
    k: u32 [0..=PORTS_MAX], "the highest level, from 0: a server has k + 1 ports"
        .range("n^(k+1) at most 2048").written();
    stretch: Stretch,
        "paths that are more than this many links longer than the shortest are left out; 0: the \
         shortest only. The longer paths are 4 links longer".written();
}}

/// `kind = "jellyfish"`: a random regular graph of switches.
pub(crate) fn jellyfish(table: &mut Reader<'_>, _: &Path) -> Checked<Topology> {
    let (switches, degree, hosts_per_switch, seed, paths, stretch) = (0, 0, 0, 0, 0, 0);
    let none =
        Jellyfish { switches, degree, hosts_per_switch, seed, paths, stretch, link: NO_LINK };
    let (shape, links) = read_shape(table, JELLYFISH, none, &[])?;
    let shape = Jellyfish { link: links.host, ..shape };
    finish(table, "switches", Topology::jellyfish(&shape), &links)
}

/// `kind = "bcube"`: servers that forward for each other.
pub(crate) fn bcube(table: &mut Reader<'_>, _: &Path) -> Checked<Topology> {
    let none = Bcube { n: 0, k: 0, stretch: 0, link: NO_LINK };
    let (shape, links) = read_shape(table, BCUBE, none, &[])?;
    finish(table, "n", Topology::bcube(&Bcube { link: links.host, ..shape }), &links)
}

/// By how many links a path may be longer than the shortest; [`u32::MAX`]: by any.
type Stretch = UpTo<Unlimited, u32>;
