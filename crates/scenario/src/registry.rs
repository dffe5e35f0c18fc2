//! The one list of what there is: transports, topologies, queues, traffic. `trimline list`, the
//! names in error messages and construction all read it.

use crate::lossless;
use crate::queue::{self, ReadQueue};
use crate::topology::{self, ReadTopology};
use crate::traffic::{self, ReadTraffic};
use crate::transport::{self, ReadTransport};

/// Something that a scenario can name in a `kind` key.
pub(crate) struct Kind<F> {
    /// The name in scenarios.
    pub(crate) name: &'static str,
    /// A line of description.
    pub(crate) about: &'static str,
    /// Reads the rest of its table.
    pub(crate) read: F,
}

/// What `[transport] kind` can be.
pub(crate) const TRANSPORTS: &[Kind<ReadTransport>] = &[
    Kind {
        name: "ndp",
        about: "NDP (SIGCOMM'17): trimming, receiver-driven pulls, per-packet spraying",
        read: transport::ndp,
    },
    Kind {
        name: "newreno",
        about: "TCP NewReno (RFC 5681, 6582, 6298): loss-driven window, one path per message",
        read: transport::newreno,
    },
    Kind {
        name: "tcp",
        about: "TCP with SACK, NewReno or Reno recovery, ECN, ICTCP, and a rule: NewReno, BIC, H-TCP, CUBIC, DCTCP, D2TCP or FAST",
        read: transport::tcp,
    },
    Kind {
        name: "mptcp",
        about: "Multipath TCP (RFC 8684): subflows over several paths, windows coupled by LIA, OLIA or others",
        read: transport::mptcp,
    },
    Kind {
        name: "mmptcp",
        about: "MMPTCP (INFOCOM'16): packets scattered over all paths, and Multipath TCP after the first bytes",
        read: transport::mmptcp,
    },
    Kind {
        name: "packet-scatter",
        about: "MMPTCP's first phase alone: one TCP window, every packet over a path of its own",
        read: transport::packet_scatter,
    },
    Kind {
        name: "phost",
        about: "pHost (CoNEXT'15): receivers hand out tokens, shortest message first",
        read: transport::phost,
    },
    Kind {
        name: "homa",
        about: "Homa (SIGCOMM'18): receivers grant to the shortest messages and choose priorities",
        read: transport::homa,
    },
    Kind {
        name: "homa-tr",
        about: "Homa-Tr (nanoTransport, SOSR'21): Homa whose receivers refuse at once what switches have trimmed",
        read: transport::homa_tr,
    },
    Kind {
        name: "rdma",
        about: "RDMA over Converged Ethernet without rate control: queue pairs at line rate, go-back-N",
        read: transport::rdma,
    },
    Kind {
        name: "timely",
        about: "TIMELY (SIGCOMM'15): the rate of a queue pair follows the gradient of its round-trip time",
        read: transport::timely,
    },
    Kind {
        name: "patched-timely",
        about: "TIMELY with one fixed point (\"ECN or Delay\", CoNEXT'16)",
        read: transport::patched_timely,
    },
    Kind {
        name: "fast-rate",
        about: "FAST TCP's equation for the rate of a queue pair: the FAST* of the TIMELY paper",
        read: transport::fast_rate,
    },
    Kind {
        name: "dcqcn",
        about: "DCQCN (SIGCOMM'15): marks come back as notifications that cut the rate of a queue pair",
        read: transport::dcqcn,
    },
    Kind {
        name: "hpcc",
        about: "HPCC (SIGCOMM'19): windows by what switches write into packets of their links",
        read: transport::hpcc,
    },
    Kind {
        name: "swift",
        about: "Swift (SIGCOMM'20): windows that hold delay at a target, also below one packet",
        read: transport::swift,
    },
    Kind {
        name: "ndp-nano",
        about: "NDP as a programmable NIC runs it (nanoTransport, SOSR'21): a PULL in answer to every packet",
        read: transport::ndp_nano,
    },
    Kind {
        name: "homa-nano",
        about: "Homa as a programmable NIC runs it: SRPT grants with priorities, timeouts for what is lost",
        read: transport::homa_nano,
    },
    Kind {
        name: "homatr-nano",
        about: "Homa-Tr (nanoTransport): the same, with what switches trim refused at once",
        read: transport::homatr_nano,
    },
    Kind {
        name: "p4",
        about: "a P4 program on a programmable NIC (nanoTransport, SOSR'21): those of p4/, or your own",
        read: transport::p4,
    },
    Kind {
        name: "cbr",
        about: "unresponsive sources of a constant bit rate: load for switches, never complete",
        read: transport::cbr,
    },
];

/// What `[topology] kind` can be.
pub(crate) const TOPOLOGIES: &[Kind<ReadTopology>] = &[
    Kind { name: "star", about: "hosts around one switch", read: topology::star },
    Kind {
        name: "dumbbell",
        about: "two switches with hosts on both sides of one bottleneck link",
        read: topology::dumbbell,
    },
    Kind {
        name: "leaf-spine",
        about: "two tiers: every leaf joined to every spine",
        read: topology::leaf_spine,
    },
    Kind {
        name: "fat-tree",
        about: "three tiers of k-port switches, k^3/4 hosts (Al-Fares et al., SIGCOMM'08)",
        read: topology::fat_tree,
    },
    Kind {
        name: "vl2",
        about: "aggregation x intermediate switches, every packet over any intermediate one (Greenberg et al., SIGCOMM'09)",
        read: topology::vl2,
    },
    Kind {
        name: "jellyfish",
        about: "a random regular graph of switches, k shortest paths (Singla et al., NSDI'12)",
        read: topology::jellyfish,
    },
    Kind {
        name: "bcube",
        about: "servers with a port per level that forward for each other (Guo et al., SIGCOMM'09)",
        read: topology::bcube,
    },
    Kind {
        name: "file",
        about: "a .topo file of htsim (two or three tiers)",
        read: topology::file,
    },
];

/// What `[queue] kind` can be.
pub(crate) const QUEUES: &[Kind<ReadQueue>] = &[
    Kind {
        name: "ndp",
        about: "short data queue, headers and control first (10:1), trimming, bouncing",
        read: queue::ndp,
    },
    Kind {
        name: "drop-tail",
        about: "first in, first out; drops what does not fit; optional ECN threshold or RED",
        read: queue::drop_tail,
    },
    Kind {
        name: "cut-payload",
        about: "first in, first out; cuts the payload off what would exceed a threshold",
        read: queue::cut_payload,
    },
    Kind {
        name: "fair",
        about: "a queue for each traffic class, served in turn: equal shares in bytes",
        read: queue::fair,
    },
    Kind {
        name: "priority",
        about: "a queue for each traffic class, the highest class first",
        read: queue::priority,
    },
    Kind {
        name: "p4",
        about: "a P4 program says which queue a packet joins, trimmed or not: p4/ndp_switch.p4, or your own",
        read: queue::p4,
    },
    Kind {
        name: "lossless",
        about: "priority flow control: switches pause their neighbours before their memory is full",
        read: lossless::read,
    },
];

/// What `[traffic] kind` can be.
pub(crate) const TRAFFIC: &[Kind<ReadTraffic>] = &[
    Kind { name: "flow", about: "one message, from one host to another", read: traffic::flow },
    Kind {
        name: "permutation",
        about: "every host sends to one host and receives from one",
        read: traffic::permutation,
    },
    Kind {
        name: "random",
        about: "every host sends to a host drawn at random",
        read: traffic::random,
    },
    Kind { name: "incast", about: "many hosts send to one, all at once", read: traffic::incast },
    Kind {
        name: "all-to-all",
        about: "every host sends to every other",
        read: traffic::all_to_all,
    },
    Kind {
        name: "poisson",
        about: "messages at random instants, sizes of a distribution, at a stated load",
        read: traffic::poisson,
    },
    Kind {
        name: "closed-loop",
        about: "every host keeps a number of messages under way, the next after a gap",
        read: traffic::closed_loop,
    },
    Kind {
        name: "barrier",
        about: "blocks of an incast: the next one is requested when all senders' parts are there",
        read: traffic::barrier,
    },
    Kind {
        name: "partition-aggregate",
        about: "queries over a tree of hosts, with deadlines: late answers are dropped",
        read: traffic::partition_aggregate,
    },
    Kind {
        name: "rpc",
        about: "calls in a closed or open loop: a request, a computation, a response",
        read: traffic::rpc,
    },
    Kind {
        name: "file",
        about: "a connection matrix of htsim (.cm) or a list of messages (.csv)",
        read: traffic::file,
    },
];

/// What there is, as (name, line of description).
pub mod list {
    use super::{Kind, QUEUES, TOPOLOGIES, TRAFFIC, TRANSPORTS};
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
}
