//! The one list of what there is: transports, topologies, queues, traffic. `trimline list`, the
//! names in error messages and construction all read it.

use crate::key::Section;
use crate::lossless;
use crate::queue::{self, ReadQueue};
use crate::topology::{self, ReadTopology};
use crate::traffic::{self, ReadTraffic};
use crate::transport::TRANSPORTS;

/// Something that a scenario can name in a `kind` key.
pub(crate) struct Kind<F> {
    /// The name in scenarios.
    pub(crate) name: &'static str,
    /// A line of description.
    pub(crate) about: &'static str,
    /// Reads the rest of its table.
    pub(crate) read: F,
    /// Its keys, for the reference.
    pub(crate) keys: fn() -> Vec<Section>,
}

/// What `[topology] kind` can be.
pub(crate) const TOPOLOGIES: &[Kind<ReadTopology>] = &[
    Kind { name: "star", about: "hosts around one switch", read: topology::star, keys: Vec::new },
    Kind {
        name: "dumbbell",
        about: "two switches with hosts on both sides of one bottleneck link",
        read: topology::dumbbell,
        keys: Vec::new,
    },
    Kind {
        name: "leaf-spine",
        about: "two tiers: every leaf joined to every spine",
        read: topology::leaf_spine,
        keys: Vec::new,
    },
    Kind {
        name: "fat-tree",
        about: "three tiers of k-port switches, k^3/4 hosts (Al-Fares et al., SIGCOMM'08)",
        read: topology::fat_tree,
        keys: Vec::new,
    },
    Kind {
        name: "vl2",
        about: "aggregation x intermediate switches, every packet over any intermediate one (Greenberg et al., SIGCOMM'09)",
        read: topology::vl2,
        keys: Vec::new,
    },
    Kind {
        name: "jellyfish",
        about: "a random regular graph of switches, k shortest paths (Singla et al., NSDI'12)",
        read: topology::jellyfish,
        keys: Vec::new,
    },
    Kind {
        name: "bcube",
        about: "servers with a port per level that forward for each other (Guo et al., SIGCOMM'09)",
        read: topology::bcube,
        keys: Vec::new,
    },
    Kind {
        name: "file",
        about: "a .topo file of htsim (two or three tiers)",
        read: topology::file,
        keys: Vec::new,
    },
];

/// What `[queue] kind` can be.
pub(crate) const QUEUES: &[Kind<ReadQueue>] = &[
    Kind {
        name: "ndp",
        about: "short data queue, headers and control first (10:1), trimming, bouncing",
        read: queue::ndp,
        keys: Vec::new,
    },
    Kind {
        name: "drop-tail",
        about: "first in, first out; drops what does not fit; optional ECN threshold or RED",
        read: queue::drop_tail,
        keys: Vec::new,
    },
    Kind {
        name: "cut-payload",
        about: "first in, first out; cuts the payload off what would exceed a threshold",
        read: queue::cut_payload,
        keys: Vec::new,
    },
    Kind {
        name: "fair",
        about: "a queue for each traffic class, served in turn: equal shares in bytes",
        read: queue::fair,
        keys: Vec::new,
    },
    Kind {
        name: "priority",
        about: "a queue for each traffic class, the highest class first",
        read: queue::priority,
        keys: Vec::new,
    },
    Kind {
        name: "p4",
        about: "a P4 program says which queue a packet joins, trimmed or not: p4/ndp_switch.p4, or your own",
        read: queue::p4,
        keys: Vec::new,
    },
    Kind {
        name: "lossless",
        about: "priority flow control: switches pause their neighbours before their memory is full",
        read: lossless::read,
        keys: Vec::new,
    },
];

/// What `[traffic] kind` can be.
pub(crate) const TRAFFIC: &[Kind<ReadTraffic>] = &[
    Kind { name: "flow", about: "one message, from one host to another", read: traffic::flow },
    Kind {
        name: "permutation",
        about: "every host sends to one host and receives from one",
        read: traffic::permutation,
        keys: Vec::new,
    },
    Kind {
        name: "random",
        about: "every host sends to a host drawn at random",
        read: traffic::random,
        keys: Vec::new,
    },
    Kind {
        name: "incast",
        about: "many hosts send to one, all at once",
        read: traffic::incast,
        keys: Vec::new,
    },
    Kind {
        name: "all-to-all",
        about: "every host sends to every other",
        read: traffic::all_to_all,
        keys: Vec::new,
    },
    Kind {
        name: "poisson",
        about: "messages at random instants, sizes of a distribution, at a stated load",
        read: traffic::poisson,
        keys: Vec::new,
    },
    Kind {
        name: "closed-loop",
        about: "every host keeps a number of messages under way, the next after a gap",
        read: traffic::closed_loop,
        keys: Vec::new,
    },
    Kind {
        name: "barrier",
        about: "blocks of an incast: the next one is requested when all senders' parts are there",
        read: traffic::barrier,
        keys: Vec::new,
    },
    Kind {
        name: "partition-aggregate",
        about: "queries over a tree of hosts, with deadlines: late answers are dropped",
        read: traffic::partition_aggregate,
        keys: Vec::new,
    },
    Kind {
        name: "rpc",
        about: "calls in a closed or open loop: a request, a computation, a response",
        read: traffic::rpc,
        keys: Vec::new,
    },
    Kind {
        name: "file",
        about: "a connection matrix of htsim (.cm) or a list of messages (.csv)",
        read: traffic::file,
        keys: Vec::new,
    },
];

/// What there is, as (name, line of description).
pub mod list {
    use super::{Kind, QUEUES, Section, TOPOLOGIES, TRAFFIC, TRANSPORTS};
    use workload::SizeDist;

    fn of<F>(kinds: &[Kind<F>]) -> Vec<(&'static str, String)> {
        kinds.iter().map(|kind| (kind.name, kind.about.to_owned())).collect()
    }

    /// Values of `transport.kind`.
    #[must_use]
    pub fn transports() -> Vec<(&'static str, String)> {
        of(TRANSPORTS)
    }

    /// Values of `topology.kind`.
    #[must_use]
    pub fn topologies() -> Vec<(&'static str, String)> {
        of(TOPOLOGIES)
    }

    /// Values of `queue.kind`.
    #[must_use]
    pub fn queues() -> Vec<(&'static str, String)> {
        of(QUEUES)
    }

    /// Values of `traffic.kind`, then those of `traffic.distribution`.
    #[must_use]
    pub fn workloads() -> Vec<(&'static str, String)> {
        let sizes = SizeDist::names().filter_map(|name| {
            let dist = SizeDist::shipped(name)?;
            let mean = dist.mean() / 1e3;
            Some((name, format!("sizes of {}, mean {mean:.1} KB", dist.about().title)))
        });
        of(TRAFFIC).into_iter().chain(sizes).collect()
    }

    /// The keys of all tables of a scenario.
    #[must_use]
    pub fn keys() -> Vec<Section> {
        TRANSPORTS.iter().flat_map(|kind| (kind.keys)()).collect()
    }
}
