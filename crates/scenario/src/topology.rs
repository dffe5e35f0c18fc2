//! The `[topology]` table: shape, links, overrides and failures.

mod graphs;

use std::path::Path;

use fabric::{Clos, Link, LinkSpec, Node, Tier, Topology, Vl2};
use units::{Dur, Rate};

use crate::diagnostic::Diagnostic;
use crate::files;
use crate::reader::Reader;
use crate::registry::Kind;

use graphs::{bcube, jellyfish};

/// How one kind of topology is read. Paths in the table are relative to the directory given.
pub(crate) type ReadTopology = fn(&mut Reader<'_>, &Path) -> Result<Topology, Diagnostic>;

/// What `kind` can be.
pub(crate) const TOPOLOGIES: &[Kind<ReadTopology>] = &[
    Kind { name: "star", about: "hosts around one switch", read: star, keys: Vec::new },
    Kind {
        name: "dumbbell",
        about: "two switches with hosts on both sides of one bottleneck link",
        read: dumbbell,
        keys: Vec::new,
    },
    Kind {
        name: "leaf-spine",
        about: "two tiers: every leaf joined to every spine",
        read: leaf_spine,
        keys: Vec::new,
    },
    Kind {
        name: "fat-tree",
        about: "three tiers of k-port switches, k^3/4 hosts (Al-Fares et al., SIGCOMM'08)",
        read: fat_tree,
        keys: Vec::new,
    },
    Kind {
        name: "vl2",
        about: "aggregation x intermediate switches, every packet over any intermediate one \
                (Greenberg et al., SIGCOMM'09)",
        read: vl2,
        keys: Vec::new,
    },
    Kind {
        name: "jellyfish",
        about: "a random regular graph of switches, k shortest paths (Singla et al., NSDI'12)",
        read: jellyfish,
        keys: Vec::new,
    },
    Kind {
        name: "bcube",
        about: "servers with a port per level that forward for each other (Guo et al., SIGCOMM'09)",
        read: bcube,
        keys: Vec::new,
    },
    Kind {
        name: "file",
        about: "a .topo file of htsim (two or three tiers)",
        read: file,
        keys: Vec::new,
    },
];

/// Read `[topology]`.
pub(crate) fn read(table: &mut Reader<'_>, dir: &Path) -> Result<Topology, Diagnostic> {
    let kind: &Kind<ReadTopology> = table.choose("kind", TOPOLOGIES, |k| k.name)?;
    let mut topology = (kind.read)(table, dir)?;
    let mut links = table.tables("link")?;
    for link in &mut links {
        override_link(link, &mut topology)?;
    }
    table.finish_tables("link", links)?;
    Ok(topology)
}

/// `kind = "star"`: one switch.
fn star(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let hosts = count_of(table, "hosts", 2)?;
    let link = host_link(table)?;
    finish(table, "hosts", Topology::star(hosts, link))
}

/// `kind = "dumbbell"`: two switches and the link between them.
fn dumbbell(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let left = count_of(table, "left_hosts", 1)?;
    let right = count_of(table, "right_hosts", 1)?;
    let link = host_link(table)?;
    let trunk = other_link(table, "bottleneck_rate", "bottleneck_delay", link.delay)?;
    finish(table, "left_hosts", Topology::dumbbell(left, right, link, trunk))
}

/// `kind = "leaf-spine"`: two tiers, every leaf joined to every spine.
fn leaf_spine(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let leaves = count_of(table, "leaves", 1)?;
    let spines = count_of(table, "spines", 1)?;
    let hosts = count_of(table, "hosts_per_leaf", 1)?;
    let link = host_link(table)?;
    let uplink = other_link(table, "uplink_rate", "uplink_delay", link.delay)?;
    finish(table, "leaves", Topology::leaf_spine(leaves, spines, hosts, link, uplink))
}

/// `kind = "fat-tree"`: three tiers of k-port switches.
fn fat_tree(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let k = table.need("k")?;
    let oversubscription = table.or("oversubscription", 1)?;
    table.within("oversubscription", oversubscription, 1..=PORTS_MAX)?;
    let link = host_link(table)?;
    finish(table, "k", Topology::fat_tree(k, oversubscription, link))
}

/// `kind = "vl2"`: every aggregation switch joined to every intermediate switch.
fn vl2(table: &mut Reader<'_>, _: &Path) -> Result<Topology, Diagnostic> {
    let aggregation_ports = count_of(table, "aggregation_ports", 2)?;
    let intermediate_ports = count_of(table, "intermediate_ports", 2)?;
    let hosts_per_rack = count_of(table, "hosts_per_rack", 1)?;
    let host_link = host_link(table)?;
    let switch_link = other_link(table, "uplink_rate", "uplink_delay", host_link.delay)?;
    let shape = Vl2 {
        aggregation_ports,
        intermediate_ports,
        hosts_per_rack,
        host_link,
        switch_link,
        shortcut: table.or("shortcut", false)?,
    };
    finish(table, "aggregation_ports", Topology::vl2(&shape))
}

/// The most ports of a switch.
const PORTS_MAX: u32 = 65_534;

/// A number of nodes.
fn count_of(table: &mut Reader<'_>, key: &'static str, least: u32) -> Result<u32, Diagnostic> {
    let n = table.need(key)?;
    table.within(key, n, least..=PORTS_MAX)
}

/// The links of hosts, and of everything else that has no keys of its own.
fn host_link(table: &mut Reader<'_>) -> Result<LinkSpec, Diagnostic> {
    let rate = rate(table, "link_rate")?;
    let delay = delay(table, "link_delay")?;
    Ok(LinkSpec { rate, delay })
}

/// Links with a rate of their own, and a delay that is the hosts' unless it is written.
fn other_link(
    table: &mut Reader<'_>,
    rate_key: &'static str,
    delay_key: &'static str,
    usual: Dur,
) -> Result<LinkSpec, Diagnostic> {
    let rate = rate(table, rate_key)?;
    let delay = table.or(delay_key, usual)?;
    Ok(LinkSpec { rate, delay: table.within(delay_key, delay, Dur::ZERO..=DELAY_MAX)? })
}

/// From a modem to beyond anything built, so that no serialisation time overflows.
pub(crate) const RATE_MIN: Rate = Rate(1_000);
pub(crate) const RATE_MAX: Rate = Rate(100_000_000_000_000);
/// Beyond the moon.
const DELAY_MAX: Dur = Dur::from_ms(10_000);

fn rate(table: &mut Reader<'_>, key: &'static str) -> Result<Rate, Diagnostic> {
    let rate = table.need(key)?;
    table.within(key, rate, RATE_MIN..=RATE_MAX)
}

fn delay(table: &mut Reader<'_>, key: &'static str) -> Result<Dur, Diagnostic> {
    let delay = table.need(key)?;
    table.within(key, delay, Dur::ZERO..=DELAY_MAX)
}

/// What every kind has, and where an impossible shape is reported: at `key`.
fn finish<E: std::fmt::Display>(
    table: &mut Reader<'_>,
    key: &str,
    built: Result<Topology, E>,
) -> Result<Topology, Diagnostic> {
    let latency = table.or("switch_latency", Dur::ZERO)?;
    table.within("switch_latency", latency, Dur::ZERO..=DELAY_MAX)?;
    let topology = built.map_err(|why| {
        let error = table.error(key, format!("impossible topology: {why}"), "this shape");
        error.hint("change the numbers of this table")
    })?;
    Ok(topology.with_switch_latency(latency))
}

/// One `[[topology.link]]`: other numbers for a link, or its failure, in both directions unless
/// `one_way` is set.
fn override_link(table: &mut Reader<'_>, topology: &mut Topology) -> Result<(), Diagnostic> {
    let links = named_links(table, topology)?;
    let rate: Option<Rate> = table.maybe("rate")?;
    let delay: Option<Dur> = table.maybe("delay")?;
    rate.map(|rate| table.within("rate", rate, RATE_MIN..=RATE_MAX)).transpose()?;
    delay.map(|delay| table.within("delay", delay, Dur::ZERO..=DELAY_MAX)).transpose()?;
    let failed = table.or("failed", false)?;
    for link in links {
        let old = topology.links()[link as usize];
        if rate.is_some() || delay.is_some() {
            let rate = rate.unwrap_or(old.rate);
            topology.set_link(link, LinkSpec { rate, delay: delay.unwrap_or(old.delay) });
        }
        if failed {
            topology.fail_link(link);
        }
    }
    Ok(())
}

/// The directed links that `link = "tor 0 -> agg 1"` names: that one and, unless `one_way` is set,
/// the one back.
pub(crate) fn named_links(
    table: &mut Reader<'_>,
    topology: &Topology,
) -> Result<Vec<u32>, Diagnostic> {
    let text: String = table.need("link")?;
    let one_way = table.or("one_way", false)?;
    let wrong = |what: String| table.error("link", what, "no such link").hint(LINK_HINT);
    let Some((from, to)) = text.split_once("->") else {
        return Err(wrong(format!("`{text}` does not name two ends")));
    };
    let node = |text: &str| known_node(table, "link", text, topology, LINK_HINT);
    let (from, to) = (node(from)?, node(to)?);
    let missing = || wrong(format!("no link joins {from} and {to}"));
    let there = topology.find_link(from, to).ok_or_else(missing)?;
    let back = topology.find_link(to, from).ok_or_else(missing)?;
    Ok(if one_way { vec![there] } else { vec![there, back] })
}

const LINK_HINT: &str = "write it like \"tor 0 -> agg 1\", with `host`, `tor`, `agg` or `core` (the \
                         leaves of a leaf-spine are `tor`, its spines `agg`; the intermediate \
                         switches of a vl2 are `core`); in a bcube with \
                         `host`, `relay` or `switch`";

/// The switch that `key = "core 3"` names, and all of its links, in both directions.
pub(crate) fn links_of_switch(
    table: &mut Reader<'_>,
    key: &'static str,
    topology: &Topology,
) -> Result<(Node, Vec<u32>), Diagnostic> {
    let text: String = table.need(key)?;
    let hint = "write it like \"core 3\", with `tor`, `agg` or `core` (the leaves of a leaf-spine \
                are `tor`, its spines `agg`); in a bcube with `relay` or `switch`";
    let switch = known_node(table, key, &text, topology, hint)?;
    if let Node::Host(_) = switch {
        let error = table.error(key, format!("{switch} is no switch"), "no such switch");
        return Err(error.hint(hint));
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
) -> Result<Node, Diagnostic> {
    let Some(node) = node(text) else {
        let message = format!("`{}` is no node", text.trim());
        return Err(table.error(key, message, &format!("no such {key}")).hint(hint));
    };
    let (Node::Host(n) | Node::Switch(_, n), count) = (node, count(topology, node));
    if n < count {
        return Ok(node);
    }
    let message = format!("there is no {node} in this {}", topology.kind());
    let kind = text.trim().split(' ').next().unwrap_or_default();
    Err(table.error(key, message, "out of range").hint(match count.checked_sub(1) {
        Some(last) => format!("{kind} 0 to {kind} {last}"),
        None => format!("it has no {kind} switches"),
    }))
}

/// "agg 3".
fn node(text: &str) -> Option<Node> {
    let (kind, n) = text.trim().split_once(' ')?;
    let n = n.trim().parse().ok()?;
    if kind == "host" {
        return Some(Node::Host(n));
    }
    let tier = Tier::ALL.into_iter().find(|tier| tier.to_string() == kind)?;
    Some(Node::Switch(tier, n))
}

fn count(topology: &Topology, node: Node) -> u32 {
    match node {
        Node::Host(_) => topology.hosts(),
        Node::Switch(tier, _) => topology.switches_of(tier),
    }
}

/// `kind = "file"`: a fat-tree as htsim describes it. Its queue sizes are not used: `[queue]` says
/// how large queues are.
fn file(table: &mut Reader<'_>, dir: &Path) -> Result<Topology, Diagnostic> {
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
        let Node::Switch(tier, _) = to else { continue };
        let latency = topo.tiers.get(tier as usize).map_or(least, |tier| tier.switch_latency);
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
