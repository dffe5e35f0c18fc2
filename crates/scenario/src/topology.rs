//! The `[topology]` table: shape, links, overrides and failures.

mod graphs;

use std::path::{Path, PathBuf};

use fabric::{Clos, Fault, Link, LinkSpec, Node, PLANES_MAX, Topology, Vl2};
use queues::QueueSpec;
use units::{Dur, Rate};

use crate::diagnostic::Checked;
use crate::files;
use crate::key::{Key, Section, keys, section};
use crate::place::{self, node, there_is};
use crate::reader::Reader;
use crate::registry::{Kind, kinds};

use graphs::{BCUBE, JELLYFISH, bcube, jellyfish};

/// How one kind of topology is read. Paths in the table are relative to the directory given.
pub(crate) type ReadTopology = fn(&mut Reader<'_>, &Path) -> Checked<Topology>;

kinds! { TOPOLOGIES: ReadTopology {
    "star", star, || vec![links_of_all(), counts("topology.star", STAR), planes()],
        "hosts around one switch";
    "dumbbell", dumbbell, || {
        let trunk = section("topology.dumbbell.bottleneck", BOTTLENECK, &[], None);
        vec![links_of_all(), counts("topology.dumbbell", DUMBBELL), trunk, planes()]
    },
        "two switches with hosts on both sides of one bottleneck link";
    "leaf-spine", leaf_spine, || {
        vec![links_of_all(), counts("topology.leaf-spine", LEAF_SPINE), uplinks(), planes()]
    },
        "two tiers: every leaf joined to every spine";
    "fat-tree", fat_tree, || {
        vec![links_of_all(), counts("topology.fat-tree", FAT_TREE), planes()]
    },
        "three tiers of k-port switches, k^3/4 hosts (Al-Fares et al., SIGCOMM'08)";
    "vl2", vl2, || vec![links_of_all(), section("topology.vl2", VL2, &[], Some(&NO_VL2)), uplinks()],
        "aggregation x intermediate switches, every packet over any intermediate one \
                (Greenberg et al., SIGCOMM'09)";
    "jellyfish", jellyfish, || vec![links_of_all(), section("topology.jellyfish", JELLYFISH, &[], None)],
        "a random regular graph of switches, k shortest paths (Singla et al., NSDI'12)";
    "bcube", bcube, || vec![links_of_all(), section("topology.bcube", BCUBE, &[], None)],
        "servers with a port per level that forward for each other (Guo et al., SIGCOMM'09)";
    "file", file, || vec![section("topology.file", FILE, &[], None)],
        "a .topo file of htsim (two or three tiers)";
}}

fn links_of_all() -> Section {
    section("topology.links", LINKS, &[], Some(&Links::UNKNOWN))
}

fn uplinks() -> Section {
    section("topology.uplinks", UPLINKS, &[], None)
}

fn planes() -> Section {
    section("topology.planes", PLANES, &[], Some(&1))
}

fn counts(name: &'static str, keys: &'static [Key<Counts>]) -> Section {
    section(name, keys, &[], Some(&Counts { oversubscription: 1, ..Counts::default() }))
}

/// The keys of `[[topology.link]]`, for the reference.
pub(crate) fn link_keys() -> Vec<Section> {
    let rest = section("topology.link", OTHER, &[], Some(&Other::default()));
    vec![section("topology.link.which", NAMED, &[], Some(&Named::default())), rest]
}

/// Read `[topology]`.
pub(crate) fn read(table: &mut Reader<'_>, dir: &Path) -> Checked<Topology> {
    let kind: &Kind<ReadTopology> = table.choose("kind", TOPOLOGIES, |k| k.name)?;
    let plane = (kind.read)(table, dir)?;
    let mut topology = in_planes(table, kind.name, plane)?;
    let mut links = table.tables("link")?;
    for link in &mut links {
        override_link(link, &mut topology)?;
    }
    table.finish_tables("link", links)?;
    Ok(topology)
}

/// The links of hosts, the others, and what all switches take.
struct Links {
    host: LinkSpec,
    other: LinkSpec,
    switch_latency: Dur,
    switch_slot: Option<Dur>,
    slot_heap: bool,
}

impl Links {
    const UNKNOWN: Self = Self {
        host: NO_LINK,
        other: NO_LINK,
        switch_latency: Dur::ZERO,
        switch_slot: None,
        slot_heap: false,
    };
}

/// Before it is read.
const NO_LINK: LinkSpec = LinkSpec { rate: Rate(0), delay: Dur::ZERO };

keys! { LINKS: Links {
    link_rate (host.rate): Rate [RATE_MIN..=RATE_MAX],
        "rate of hosts' links, and of every other link without a key of its own".written();
    link_delay (host.delay): Dur [Dur::ZERO..=DELAY_MAX],
        "one-way propagation of the same links".written();
    switch_latency: Dur [Dur::ZERO..=DELAY_MAX],
        "from a packet's last bit at a switch to the output queue".default("");
    switch_slot (maybe switch_slot): Dur [Dur(1)..=DELAY_MAX],
        "switches send in slots of this, from time 0 on, as the switch model of FireSim does: what has \
         come before a slot begins may leave in it, as much as ends within it, but one packet at \
         least. For `drop-tail`, and `priority` with drop-tail classes".default("none");
    slot_heap: bool,
        "with `switch_slot`: what comes within a slot joins the queues together as it ends, first \
         bits first, and of first bits at one instant in the order of a binary heap that is filled \
         host by host; in the slot that begins then none leaves before its first bit came in the \
         last. So does the switch model of FireSim. Each packet must fit a slot".default("");
}}

keys! { UPLINKS: Links {
    uplink_rate (other.rate): Rate [RATE_MIN..=RATE_MAX],
        "rate of the links between switches".written();
    uplink_delay (other.delay): Dur [Dur::ZERO..=DELAY_MAX], "their delay".default("`link_delay`");
}}

keys! { BOTTLENECK: Links {
    bottleneck_rate (other.rate): Rate [RATE_MIN..=RATE_MAX],
        "rate of the link between the two switches".written();
    bottleneck_delay (other.delay): Dur [Dur::ZERO..=DELAY_MAX],
        "its delay".default("`link_delay`");
}}

/// What the simple shapes count.
#[derive(Default)]
struct Counts {
    hosts: u32,
    left_hosts: u32,
    right_hosts: u32,
    leaves: u32,
    spines: u32,
    k: u32,
    oversubscription: u32,
}

keys! { STAR: Counts {
    hosts: u32 [2..=PORTS_MAX], "hosts around the switch".written();
}}

keys! { DUMBBELL: Counts {
    left_hosts: u32 [1..=PORTS_MAX], "hosts on the left".written();
    right_hosts: u32 [1..=PORTS_MAX], "hosts on the right".written();
}}

keys! { LEAF_SPINE: Counts {
    leaves: u32 [1..=PORTS_MAX], "switches that hosts hang at".written();
    spines: u32 [1..=PORTS_MAX], "switches that join the leaves".written();
    hosts_per_leaf (hosts): u32 [1..=PORTS_MAX], "hosts of each leaf".written();
}}

keys! { FAT_TREE: Counts {
    k: u32, "ports of a switch".range("even, 2 to 128").written();
    oversubscription: u32 [1..=PORTS_MAX],
        "hosts of a top-of-rack switch over its uplinks".default("");
}}

keys! { VL2: Vl2 {
    aggregation_ports: u32 [2..=PORTS_MAX],
        "ports of an aggregation switch (the paper's D_A)".range("even, 2 to 65534").written();
    intermediate_ports: u32 [2..=PORTS_MAX],
        "ports of an intermediate switch (the paper's D_I)"
            .range("even, 2 to 65534; not both 2").written();
    hosts_per_rack: u32 [1..=PORTS_MAX],
        "hosts of each top-of-rack switch (the paper: 20)".written();
    shortcut: bool,
        "packets between racks that share aggregation switches turn there, on the shortest way. \
         Not VL2, but its shape with plain ECMP: the testbed of DCQCN".default("");
}}

/// Before it is read.
const NO_VL2: Vl2 = Vl2 {
    aggregation_ports: 0,
    intermediate_ports: 0,
    hosts_per_rack: 0,
    host_link: NO_LINK,
    switch_link: NO_LINK,
    shortcut: false,
};

keys! { FILE: PathBuf {
    file (self): PathBuf, "a `.topo` file of htsim".written();
}}

keys! { PLANES: u32 {
    planes (self): u32 [1..=PLANES_MAX],
        "copies of this fabric, each with a port of every host; `link_rate` is that of a port, a \
         host's rate that of all ports together. Nodes of one are written `plane n tor m`"
            .default("");
}}

/// As many copies of a fabric as `planes` says.
fn in_planes(table: &mut Reader<'_>, kind: &str, plane: Topology) -> Checked<Topology> {
    if !matches!(kind, "star" | "dumbbell" | "leaf-spine" | "fat-tree") {
        table.without(PLANES, "a star, dumbbell, leaf-spine or fat-tree");
        return Ok(plane);
    }
    let mut planes = 1;
    table.keys(PLANES, &mut planes, Some(&1))?;
    Topology::in_planes(plane, planes).map_err(|why| {
        let error = table.error("planes", format!("impossible planes: {why}"), "so many");
        error.hint("fewer `planes`, or a smaller fabric; without `switch_slot`")
    })
}

/// The most ports of a switch.
const PORTS_MAX: u32 = 65_534;
/// From a modem to beyond anything built, so that no serialisation time overflows.
pub(crate) const RATE_MIN: Rate = Rate(1_000);
pub(crate) const RATE_MAX: Rate = Rate(100_000_000_000_000);
/// Beyond the moon.
const DELAY_MAX: Dur = Dur::from_ms(10_000);

/// Read the keys of a shape and of its links; `others` are links with keys of their own.
fn read_shape<C>(
    table: &mut Reader<'_>,
    keys: &'static [Key<C>],
    mut shape: C,
    others: &'static [Key<Links>],
) -> Checked<(C, Links)> {
    let mut links = Links::UNKNOWN;
    table.keys(keys, &mut shape, None)?;
    table.keys(LINKS, &mut links, None)?;
    links.other.delay = links.host.delay;
    table.all_keys(others, &mut links)?;
    Ok((shape, links))
}

/// `kind = "star"`: one switch.
fn star(table: &mut Reader<'_>, _: &Path) -> Checked<Topology> {
    let (n, links) = read_shape(table, STAR, Counts::default(), &[])?;
    finish(table, "hosts", Topology::star(n.hosts, links.host), &links)
}

/// `kind = "dumbbell"`: two switches and the link between them.
fn dumbbell(table: &mut Reader<'_>, _: &Path) -> Checked<Topology> {
    let (n, links) = read_shape(table, DUMBBELL, Counts::default(), BOTTLENECK)?;
    let built = Topology::dumbbell(n.left_hosts, n.right_hosts, links.host, links.other);
    finish(table, "left_hosts", built, &links)
}

/// `kind = "leaf-spine"`: two tiers, every leaf joined to every spine.
fn leaf_spine(table: &mut Reader<'_>, _: &Path) -> Checked<Topology> {
    let (n, links) = read_shape(table, LEAF_SPINE, Counts::default(), UPLINKS)?;
    let built = Topology::leaf_spine(n.leaves, n.spines, n.hosts, links.host, links.other);
    finish(table, "leaves", built, &links)
}

/// `kind = "fat-tree"`: three tiers of k-port switches.
fn fat_tree(table: &mut Reader<'_>, _: &Path) -> Checked<Topology> {
    let one_over_one = Counts { oversubscription: 1, ..Counts::default() };
    let (n, links) = read_shape(table, FAT_TREE, one_over_one, &[])?;
    finish(table, "k", Topology::fat_tree(n.k, n.oversubscription, links.host), &links)
}

/// `kind = "vl2"`: every aggregation switch joined to every intermediate switch.
fn vl2(table: &mut Reader<'_>, _: &Path) -> Checked<Topology> {
    let (shape, links) = read_shape(table, VL2, NO_VL2, UPLINKS)?;
    let shape = Vl2 { host_link: links.host, switch_link: links.other, ..shape };
    finish(table, "aggregation_ports", Topology::vl2(&shape), &links)
}

/// Refuse queues that cannot say what goes next where switches send in slots, and batches whose
/// ports would not begin together. `alone`: ports share no memory and write no telemetry.
pub(crate) fn check_slots(
    table: &Reader<'_>,
    topology: &Topology,
    queues: &[&QueueSpec],
    alone: bool,
    faults: &[Fault],
) -> Checked<()> {
    topology.check_slot_heap(faults).map_err(|why| {
        let error = table.error("slot_heap", why, "not in batches");
        error.hint("make `switch_slot` longer, or leave `slot_heap` and faults of rates out")
    })?;
    let peek = queues.iter().all(|queue| queue.spec().peeks());
    if topology.switch_slot().is_none() || peek && alone {
        return Ok(());
    }
    let message = "slots need ports that know which packet goes next".to_owned();
    let error = table.error("switch_slot", message, "not with this `[queue]`");
    Err(error
        .hint("use `drop-tail`, or `priority` with drop-tail classes; no `[buffer]`, no telemetry"))
}

/// What every kind has, and where an impossible shape is reported: at `key`.
fn finish<E: std::fmt::Display>(
    table: &Reader<'_>,
    key: &str,
    built: Result<Topology, E>,
    links: &Links,
) -> Checked<Topology> {
    let topology = built.map_err(|why| {
        let error = table.error(key, format!("impossible topology: {why}"), "this shape");
        error.hint("change the numbers of this table")
    })?;
    if links.slot_heap && links.switch_slot.is_none() {
        let error = table.error("slot_heap", "`slot_heap` has no effect here", "no effect");
        return Err(error.hint("it has an effect only with `switch_slot`"));
    }
    let topology = topology.with_switch_latency(links.switch_latency);
    Ok(topology.with_switch_slot(links.switch_slot).with_slot_heap(links.slot_heap))
}

/// What is different about a link.
#[derive(Default)]
struct Other {
    rate: Option<Rate>,
    delay: Option<Dur>,
    failed: bool,
}

keys! { OTHER: Other {
    rate (maybe rate): Rate [RATE_MIN..=RATE_MAX], "another rate".default("unchanged");
    delay (maybe delay): Dur [Dur::ZERO..=DELAY_MAX], "another delay".default("unchanged");
    failed: bool, "the link does not work, and everybody knows from the start".default("");
}}

/// One `[[topology.link]]`: other numbers for a link, or its failure, in both directions unless
/// `one_way` is set.
fn override_link(table: &mut Reader<'_>, topology: &mut Topology) -> Checked<()> {
    let links = named_links(table, topology)?;
    let mut other = Other::default();
    table.keys(OTHER, &mut other, None)?;
    for link in links {
        let old = topology.links()[link as usize];
        if other.rate.is_some() || other.delay.is_some() {
            let (rate, delay) = (other.rate.unwrap_or(old.rate), other.delay.unwrap_or(old.delay));
            topology.set_link(link, LinkSpec { rate, delay });
        }
        if other.failed {
            topology.fail_link(link);
        }
    }
    Ok(())
}

/// Which link a table is about.
#[derive(Default)]
pub(crate) struct Named {
    link: String,
    one_way: bool,
}

keys! { pub(crate) NAMED: Named {
    link: String,
        "the link. Nodes are `host n`, `tor n`, `agg n`, `core n`. The leaves of a leaf-spine are \
         `tor`, its spines `agg`; the switch of a star is `tor 0`, those of a dumbbell `tor 0` \
         and `tor 1`. The intermediate switches of a `vl2` are `core`. In a `bcube`: `host n`, \
         `relay n`, `switch m`, level 0 first. With several `planes`: `plane n tor m` and so on, \
         `nic n -> plane m tor k` for the port of a host".range("`\"A n -> B m\"`").written();
    one_way: bool, "only in the direction written; otherwise both".default("");
}}

keys! { pub(crate) OF_SWITCH: String {
    switch (self): String,
        "all links of this switch, both directions, or of a whole plane"
            .range("`tor n`, `agg n`, `core n`; in a `bcube` `relay n`, `switch n`; with `planes` \
                    `plane n tor m`, or `plane n`")
            .default("this or `link`");
}}

/// The links that a table is about, by `link` or by `switch`, and what to call them.
pub(crate) fn links_meant(
    table: &mut Reader<'_>,
    topology: &Topology,
) -> Checked<(String, Vec<u32>)> {
    if !table.has("switch") {
        let links = named_links(table, topology)?;
        let name = links.first().map(|&link| topology.links()[link as usize].to_string());
        let name = name.unwrap_or_default();
        let name = if links.len() > 1 { name.replace("->", "<->") } else { name };
        return Ok((name, links));
    }
    if table.has("link") {
        let error = table.error("link", "both `switch` and `link` are written", "one too many");
        return Err(error.hint("one link, or all links of one switch"));
    }
    let mut text = String::new();
    table.all_keys(OF_SWITCH, &mut text)?;
    if let Some(plane) = plane(&text) {
        return Ok((text.trim().to_owned(), links_of_plane(table, plane, topology)?));
    }
    let (switch, links) = links_of_switch(table, "switch", &text, topology)?;
    Ok((switch.to_string(), links))
}

/// The number of a whole plane that `text` names.
fn plane(text: &str) -> Option<u32> {
    text.trim().strip_prefix("plane ")?.trim().parse().ok()
}

/// All links of a plane, the ports of hosts into it included.
fn links_of_plane(table: &Reader<'_>, plane: u32, topology: &Topology) -> Checked<Vec<u32>> {
    let planes = topology.plane_count();
    if planes == 1 || plane >= planes {
        let message = format!("there is no plane {plane} in this {}", topology.kind());
        let hint = match planes {
            1 => "`planes` in [topology] makes several".to_owned(),
            _ => format!("plane 0 to plane {}", planes - 1),
        };
        return table.fail("switch", message, "out of range", hint);
    }
    let mine = |node| matches!(node, Node::Plane(n, ..) if u32::from(n) == plane);
    let links = (0..).zip(topology.links());
    Ok(links.filter(|(_, link)| mine(link.from) || mine(link.to)).map(|(n, _)| n).collect())
}

/// The directed links that `link = "tor 0 -> agg 1"` names: that one and, unless `one_way` is set,
/// the one back.
fn named_links(table: &mut Reader<'_>, topology: &Topology) -> Checked<Vec<u32>> {
    let mut named = Named::default();
    table.all_keys(NAMED, &mut named)?;
    let Named { link: text, one_way } = named;
    let wrong = |what: String| table.error("link", what, "no such link").hint(LINK_HINT);
    let Some((from, to)) = text.split_once("->") else {
        return Err(wrong(format!("`{text}` does not name two ends")));
    };
    let node = |text: &str| known_node(table, "link", text, topology, LINK_HINT);
    let (from, to) = (node(from)?, node(to)?);
    let missing = || wrong(format!("no link joins {from} and {to}"));
    let there = place::link(topology, from, to).ok_or_else(missing)?;
    let back = place::link(topology, to, from).ok_or_else(missing)?;
    Ok(if one_way { vec![there] } else { vec![there, back] })
}

const LINK_HINT: &str = "write it like \"tor 0 -> agg 1\", with `host`, `tor`, `agg` or `core` (the \
                         leaves of a leaf-spine are `tor`, its spines `agg`; the intermediate \
                         switches of a vl2 are `core`); in a bcube with \
                         `host`, `relay` or `switch`";

/// The switch that `key = "core 3"` names, and all of its links, in both directions.
pub(crate) fn links_of_switch(
    table: &Reader<'_>,
    key: &str,
    text: &str,
    topology: &Topology,
) -> Checked<(Node, Vec<u32>)> {
    let hint = "write it like \"core 3\", with `tor`, `agg` or `core` (the leaves of a leaf-spine \
                are `tor`, its spines `agg`); in a bcube with `relay` or `switch`";
    let switch = known_node(table, key, text, topology, hint)?;
    if let Node::Host(_) = switch {
        return table.fail(key, format!("{switch} is no switch"), "no such switch", hint);
    }
    let links = (0..).zip(topology.links());
    let mine = links.filter(|(_, link)| link.from == switch || link.to == switch);
    Ok((switch, mine.map(|(n, _)| n).collect()))
}

/// The node called `text`, which the value of `key` names.
fn known_node(
    table: &Reader<'_>,
    key: &str,
    text: &str,
    topology: &Topology,
    hint: &str,
) -> Checked<Node> {
    let Some(node) = node(text) else {
        let message = format!("`{}` is no node", text.trim());
        return table.fail(key, message, &format!("no such {key}"), hint);
    };
    there_is(node, topology)
        .map_err(|(message, hint)| table.error(key, message, "out of range").hint(hint))?;
    Ok(node)
}

/// `kind = "file"`: a fat-tree as htsim describes it. Its queue sizes are not used: `[queue]` says
/// how large queues are.
fn file(table: &mut Reader<'_>, dir: &Path) -> Checked<Topology> {
    table.all_keys(FILE, &mut PathBuf::new())?;
    let file = files::read(table, "file", dir)?;
    let topo = workload::read_topo(&file.source.text, &file.source.name);
    let topo = topo.map_err(|e| files::located(&file.source, &e))?;
    let impossible = |why: String| {
        let message = format!("`{}` describes no fabric: {why}", file.source.name);
        table
            .error("file", message, "this file")
            .hint("docs/peers-files.md says what is read of a .topo file")
    };
    let shape = clos(&topo).map_err(impossible)?;
    let mut topology = Topology::clos(shape).map_err(|why| impossible(why.to_string()))?;
    // The fabric has one latency for all switches; what a tier has beyond the least is added to
    // the links that lead to it.
    let least = topo.tiers.iter().map(|tier| tier.switch_latency).min().unwrap_or(Dur::ZERO);
    for link in 0..topology.links().len() as u32 {
        let Link { rate, delay, to, .. } = topology.links()[link as usize];
        let Some(tier) = to.tier() else { continue };
        let latency = topo.tiers.get(tier.height()).map_or(least, |tier| tier.switch_latency);
        if latency > least {
            topology.set_link(link, LinkSpec { rate, delay: delay + (latency - least) });
        }
    }
    Ok(topology.with_switch_latency(least))
}

/// The shape that a `.topo` file describes, or why it describes none.
fn clos(topo: &workload::Topo) -> Result<Clos, String> {
    let [tor, agg, core @ ..] = topo.tiers.as_slice() else {
        return Err("it has fewer than two tiers".to_owned());
    };
    if topo.tiers.iter().any(|tier| tier.bundle != 1) {
        return Err("bundles of parallel links are not supported".to_owned());
    }
    let divide = |all: u32, part: u32, what: &str| match all.checked_rem(part) {
        Some(0) => Ok(all / part),
        _ => Err(format!("{what}: {all} is not a multiple of {part}")),
    };
    let links = |tier: &workload::Tier| {
        let (rate, delay) = (tier.downlink_rate, tier.downlink_delay);
        if rate < RATE_MIN || rate > RATE_MAX || delay > DELAY_MAX {
            return Err(format!("a link of {rate} and {delay} is out of range"));
        }
        Ok(LinkSpec { rate, delay })
    };
    let top = core.first().unwrap_or(agg);
    let shape = Clos {
        pods: divide(topo.nodes, topo.pod_size, "Nodes / Podsize")?,
        tors_per_pod: divide(topo.pod_size, tor.radix_down, "Podsize / Radix_Down of tier 0")?,
        hosts_per_tor: tor.radix_down,
        aggs_per_pod: tor.radix_up.unwrap_or(0),
        cores_per_agg: if core.is_empty() { 0 } else { agg.radix_up.unwrap_or(0) },
        links: [links(tor)?, links(agg)?, links(top)?],
    };
    let expect = |what: &str, is: u32, should: u32| {
        if is == should { Ok(()) } else { Err(format!("{what} is {is}, the rest needs {should}")) }
    };
    expect("Radix_Down of tier 1", agg.radix_down, shape.tors_per_pod)?;
    core.first()
        .map_or(Ok(()), |core| expect("Radix_Down of tier 2", core.radix_down, shape.pods))?;
    Ok(shape)
}
