//! `[[queue.link]]`: the ports of some links hold a share of what others do.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Node, Topology};
use queues::{Capacity, QueueSpec};

use super::longest;
use crate::diagnostic::Checked;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::topology::{NAMED, Named, OF_SWITCH, links_meant};
use crate::transport::{Transport, Transports};

/// Read all `[[queue.link]]`. `queues_at` has the queues of the ports that already differ, by the
/// link that they transmit over.
pub(crate) fn read(
    tables: &mut [Reader<'_>],
    queue: &QueueSpec,
    topology: &Topology,
    transports: &Transports,
    queues_at: &mut BTreeMap<u32, QueueSpec>,
) -> Checked<()> {
    let transports: Vec<&Transport> = transports.iter().collect();
    let mut scaled = BTreeSet::new();
    for table in tables {
        let mut share = 1.0;
        let named = if table.has("switch") { "switch" } else { "link" };
        let (_, links) = links_meant(table, topology)?;
        table.all_keys(OF_LINK, &mut share)?;
        for link in links {
            let name = &topology.links()[link as usize];
            if let (Node::Host(_), "switch") = (name.from, named) {
                continue;
            }
            if let Node::Host(_) = name.from {
                let message = format!("{name} begins at a host, which has no [queue]");
                let error = table.error(named, message, "no port of a switch");
                return Err(error.hint("`one_way = true`, from the switch to the host"));
            }
            if !scaled.insert(link) {
                let error = table.error(named, format!("{name} has two tables"), "again");
                return Err(error.hint("one table for each link"));
            }
            let Some(own) = queues_at.get(&link).unwrap_or(queue).spec().scaled(share) else {
                let message = "what a share of this [queue] is, is not known";
                let error = table.error("share", message, "not with this [queue]");
                return Err(error.hint("take `kind = \"drop-tail\"` or `\"ndp\"` in [queue]"));
            };
            let mtu = longest(&transports).1;
            let data = own.spec().capacities().first().copied();
            if let Some(Capacity::Bytes(n)) =
                data.filter(|data| data.bytes(mtu.into()) < mtu.into())
            {
                let message = format!("ports of {n} bytes hold no packet of {mtu} bytes");
                return table.fail("share", message, "too small", "a greater share");
            }
            queues_at.insert(link, own);
        }
    }
    Ok(())
}

keys! { OF_LINK: f64 {
    share (self): f64 [0.001..=1000.0],
        "what the ports at its ends hold, and the lengths from which they mark, times this"
            .written();
}}

/// For the reference: the keys of `[[queue.link]]`.
pub(crate) fn keys() -> Vec<Section> {
    vec![
        section("topology.link.which", NAMED, &[], Some(&Named::default())),
        section("fault.switch", OF_SWITCH, &[], None),
        section("queue.link", OF_LINK, &[], None),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use queues::NdpSpec;

    use super::*;
    use crate::Scenario;

    fn read(queue: &str) -> Result<Scenario, String> {
        let text = format!(
            "name = \"links\"\nseed = 3\nrouting.mode = \"random\"\n\
             topology = {{ kind = \"leaf-spine\", leaves = 3, spines = 2, hosts_per_leaf = 2, \
             link_rate = \"10Gbps\", link_delay = \"1us\", uplink_rate = \"10Gbps\" }}\n\
             transport = {{ kind = \"uet\", preset = \"htsim\", payload = \"936B\" }}\n\
             traffic = {{ kind = \"permutation\", size = \"9KB\" }}\n\
             [queue]\n{queue}"
        );
        Scenario::parse("links.toml", &text, Path::new("."), &[]).map_err(|e| e.render(false))
    }

    const NDP: &str = "kind = \"ndp\"\ncapacity = \"20000B\"\nheader_capacity = \"8000B\"\n\
                       ecn_low = \"4000B\"\necn_high = \"16000B\"\nflag_last_hop = true\n";

    /// The queues of the ports that differ, by the name of their link.
    fn differ(queue: &str) -> Vec<(String, NdpSpec)> {
        let scenario = read(queue).unwrap();
        let name = |link: u32| scenario.topology().links()[link as usize].to_string();
        let ndp = |queue: &QueueSpec| match queue {
            QueueSpec::Ndp(spec) => *spec,
            other => panic!("{other:?}"),
        };
        scenario.config.queues_at.iter().map(|(link, queue)| (name(*link), ndp(queue))).collect()
    }

    #[test]
    fn the_ports_of_a_link_hold_and_mark_from_a_share() {
        let link = "[[queue.link]]\nlink = \"tor 0 -> agg 1\"\nshare = 0.25\n";
        let differ = differ(&format!("{NDP}{link}"));
        let slow: Vec<_> = differ.iter().filter(|(name, _)| name.contains("agg 1")).collect();
        assert_eq!(slow.len(), 2, "both ways: {differ:?}");
        for (_, spec) in slow {
            assert_eq!(spec.data_capacity, Capacity::Bytes(5000));
            assert_eq!(spec.header_capacity, Capacity::Bytes(2000));
            let marks = spec.marks.unwrap();
            assert_eq!((marks.min, marks.max), (1000, 4000));
        }
    }

    #[test]
    fn a_switch_stands_for_all_of_its_links() {
        let switch = "[[queue.link]]\nswitch = \"agg 1\"\nshare = 0.25\n";
        let spine = differ(&format!("{NDP}{switch}"));
        let short = spine.iter().filter(|(_, spec)| spec.data_capacity == Capacity::Bytes(5000));
        let short: Vec<&str> = short.map(|(name, _)| name.as_str()).collect();
        assert_eq!(short.len(), 6, "both ways of three leaves: {short:?}");
        assert!(short.iter().all(|name| name.contains("agg 1")), "{short:?}");
        let leaf = differ(&format!("{NDP}{}", switch.replace("agg 1", "tor 0")));
        let short = leaf.iter().filter(|(_, spec)| spec.data_capacity == Capacity::Bytes(5000));
        assert_eq!(short.count(), 6, "two spines both ways, and to two hosts: {leaf:?}");
    }

    /// It flags headers as others to hosts do.
    #[test]
    fn a_port_to_a_host_keeps_what_is_its_own() {
        let link = "[[queue.link]]\nlink = \"tor 0 -> host 1\"\none_way = true\nshare = 0.5\n";
        let differ = differ(&format!("{NDP}{link}"));
        let capacities: Vec<_> = differ
            .iter()
            .map(|(name, spec)| (name.as_str(), spec.last_hop, spec.data_capacity))
            .filter(|(.., capacity)| *capacity != Capacity::Bytes(20_000))
            .collect();
        assert_eq!(capacities, [("tor 0 -> host 1", Some(true), Capacity::Bytes(10_000))]);
    }

    #[test]
    fn bad_links_are_named_with_their_place() {
        let link = "[[queue.link]]\nlink = \"tor 0 -> agg 1\"\n";
        let cut = "kind = \"cut-payload\"\ncapacity = \"8 packets\"\n";
        for (queue, why) in [
            (
                format!("{NDP}{link}share = 0.01\n"),
                "ports of 200 bytes hold no packet of 1000 bytes",
            ),
            (format!("{NDP}{link}share = 0\n"), "out of range"),
            (format!("{NDP}{link}share = 0.5\n{link}share = 0.5\n"), "has two tables"),
            (format!("{NDP}{link}"), "share"),
            (format!("{cut}{link}share = 0.5\n"), "not with this [queue]"),
            (
                format!("{NDP}[[queue.link]]\nlink = \"tor 0 -> host 0\"\nshare = 0.5\n"),
                "begins at a host",
            ),
        ] {
            let error = read(&queue).err().unwrap();
            assert!(error.contains(why) && error.contains("links.toml:"), "{error}");
        }
    }
}
