//! Fabrics that are no trees of tiers, under a transport that sends every message over one path:
//! what is tested is that packets take that path, and headers that are turned back the same one
//! home.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use endpoint::{
    App, AppCx, Cx, Endpoint, Framing, MessageRecord, Msg, Observer, Packet, PacketEvent, Routes,
    Submit, Tx, TxPort,
};
use queues::{Capacity, NdpSpec, QueueSpec};
use trimline_fabric::{
    Bcube, Config, Encapsulation, Jellyfish, LinkSpec, Node, Sim, Topology, Vl2,
};
use units::{Dur, HostId, MsgKey, Rate, Time, TimerId};

const PAYLOAD: u64 = 1000;
const OVERHEAD: u64 = 64;
const LINK: LinkSpec = LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };

/// Sends every message at line rate over path `path`; delivers it when all of it is there.
struct OnePath {
    path: u32,
    queue: std::collections::VecDeque<(Msg, u64)>,
    received: BTreeMap<MsgKey, u64>,
}

impl Endpoint for OnePath {
    fn on_submit(&mut self, _: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.queue.push_back((*msg, 0));
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        if !pkt.carries_payload() {
            return;
        }
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        cx.fx.place(key, pkt.span.offset, pkt.span.len);
        let so_far = self.received.entry(key).or_default();
        *so_far += u64::from(pkt.span.len);
        if *so_far == u64::from(pkt.token) {
            cx.fx.delivered(key);
        }
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}

    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        let Some((msg, offset)) = self.queue.front_mut() else { return Tx::Idle };
        let len = PAYLOAD.min(msg.len - *offset);
        (slot.src, slot.dst, slot.proto) = (cx.me, msg.dst, 253);
        slot.path = self.path;
        slot.span = endpoint::Span { msg: msg.id, offset: *offset, len: len as u32 };
        slot.wire_len = (len + OVERHEAD) as u16;
        slot.token = msg.len as u32;
        *offset += len;
        if *offset == msg.len {
            self.queue.pop_front();
        }
        Tx::Sent
    }
}

/// Submits these messages at the start: from, to, bytes.
struct At(Vec<(HostId, HostId, u64)>);

impl App for At {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        let me = cx.me;
        for &(_, dst, len) in self.0.iter().filter(|(src, ..)| *src == me) {
            cx.submit(dst, len);
        }
    }
}

/// The links that each packet has crossed, and how many of them before it was turned back.
#[derive(Default)]
struct Seen {
    crossed: BTreeMap<u64, (Packet, Vec<u32>, Option<usize>)>,
    messages: Vec<MessageRecord>,
}

impl Observer for Seen {
    fn watches_packets(&self) -> bool {
        true
    }

    fn message(&mut self, record: &MessageRecord) {
        self.messages.push(*record);
    }

    fn packet(&mut self, _: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let (_, links, bounced) = self.crossed.entry(pkt.key).or_insert((*pkt, vec![], None));
        match event {
            PacketEvent::Arrived => links.push(link),
            PacketEvent::Bounced => *bounced = Some(links.len()),
            _ => {}
        }
    }
}

fn run(topology: &Topology, path: u32, headers: u32, messages: &[(HostId, HostId, u64)]) -> Seen {
    let topology = topology.clone().with_mtu((PAYLOAD + OVERHEAD) as u16);
    let hosts = topology.hosts();
    let queue =
        QueueSpec::Ndp(NdpSpec { header_capacity: Capacity::Bytes(headers), ..NdpSpec::PAPER });
    let config = Config {
        limit: Time(400_000_000),
        encapsulations: vec![Encapsulation {
            framing: Framing { payload: PAYLOAD as u16, overhead: OVERHEAD as u16 },
            spray: false,
        }],
        ..Config::new(1, Framing { payload: PAYLOAD as u16, overhead: OVERHEAD as u16 }, queue)
    };
    let endpoint = |_| {
        let endpoint = OnePath { path, queue: Default::default(), received: BTreeMap::new() };
        Box::new(endpoint) as Box<dyn Endpoint>
    };
    let apps = (0..hosts).map(|_| Box::new(At(messages.to_vec())) as Box<dyn App>).collect();
    let endpoints = (0..hosts).map(endpoint).collect();
    let mut seen = Seen::default();
    let sim = Sim::new(topology, config, endpoints, apps, &mut seen).unwrap();
    sim.run(&mut |_| ControlFlow::Continue(())).unwrap();
    seen
}

fn graphs() -> [Topology; 2] {
    let (switches, degree, hosts_per_switch) = (10, 3, 2);
    let (paths, stretch, seed, link) = (8, u32::MAX, 1, LINK);
    let jellyfish = Jellyfish { switches, degree, hosts_per_switch, paths, stretch, seed, link };
    let bcube = Bcube { n: 3, k: 1, stretch, link };
    [Topology::jellyfish(&jellyfish).unwrap(), Topology::bcube(&bcube).unwrap()]
}

fn vl2() -> Topology {
    let (host_link, switch_link) = (LINK, LINK);
    let shape = Vl2 {
        aggregation_ports: 4,
        intermediate_ports: 4,
        hosts_per_rack: 3,
        host_link,
        switch_link,
        shortcut: false,
    };
    Topology::vl2(&shape).unwrap()
}

/// The time of `packets` full packets over these links, by hand: the first stores and forwards, the
/// others follow it out of the slowest link.
fn pipeline(topology: &Topology, links: &[u32], packets: u64) -> Dur {
    let links = links.iter().map(|&link| topology.links()[link as usize]);
    let times = links.map(|link| (link.rate.serialise(PAYLOAD + OVERHEAD), link.delay));
    let slowest = times.clone().map(|(sending, _)| sending).max().unwrap();
    let first = times.fold(Dur::ZERO, |sum, (sending, delay)| sum + sending + delay);
    first + slowest * (packets - 1)
}

#[test]
fn a_lone_message_takes_its_path_and_exactly_the_time_of_it() {
    let src = HostId(0);
    for topology in graphs() {
        let mut unequal = 0;
        for dst in (2..topology.hosts()).map(HostId) {
            let mut lengths = Vec::new();
            for path in 0..topology.paths(src, dst) {
                let seen = run(&topology, path, 4000, &[(src, dst, 5 * PAYLOAD)]);
                let (_, links, _) = seen.crossed.values().next().unwrap();
                assert!(seen.crossed.values().all(|(_, others, _)| others == links), "one path");
                let took = seen.messages[0].delivered.unwrap().since(Time::ZERO);
                assert_eq!(took, pipeline(&topology, links, 5), "path {path} to {dst}");
                let shortest = links.len() == topology.hops(src, dst) as usize;
                assert_eq!(took == seen.messages[0].ideal, shortest, "a shortest one's is ideal");
                lengths.push(links.len());
            }
            assert!(lengths.is_sorted(), "shortest first: {lengths:?}");
            unequal += u32::from(lengths.first() != lengths.last());
        }
        assert!(unequal >= 3, "{unequal} pairs of {} have unequal paths", topology.kind());
    }
}

/// The eight paths of a VL2, all of six links and over a core switch, also to the rack (host 3)
/// that shares both aggregation switches with the sender's.
#[test]
fn in_a_vl2_a_lone_message_takes_its_path_over_a_core_switch() {
    let topology = vl2();
    for dst in [3, 11].map(HostId) {
        let mut ways = std::collections::BTreeSet::new();
        for path in 0..topology.paths(HostId(0), dst) {
            let seen = run(&topology, path, 4000, &[(HostId(0), dst, 5 * PAYLOAD)]);
            let (_, links, _) = seen.crossed.values().next().unwrap();
            assert!(seen.crossed.values().all(|(_, others, _)| others == links), "one path");
            let turn = topology.links()[links[2] as usize].to;
            assert!(matches!(turn, Node::Switch(trimline_fabric::Tier::Core, _)), "{turn}");
            let took = seen.messages[0].delivered.unwrap().since(Time::ZERO);
            assert_eq!(took, pipeline(&topology, links, 5));
            assert_eq!((took, links.len()), (seen.messages[0].ideal, 6));
            ways.insert(links.clone());
        }
        assert_eq!(ways.len(), 8, "all different");
    }
}

#[test]
fn a_header_that_is_turned_back_goes_home_the_way_it_came() {
    for topology in graphs().into_iter().chain([vl2()]) {
        let to = HostId(0);
        let others = (1..topology.hosts()).map(|src| (HostId(src), to, 20 * PAYLOAD));
        let mut home = 0;
        for path in 0..2 {
            let seen = run(&topology, path, 128, &others.clone().collect::<Vec<_>>());
            for (pkt, links, bounced) in seen.crossed.values() {
                let Some(there) = *bounced else { continue };
                let nodes = |links: &[u32], end: fn(&Topology, u32) -> Node| {
                    links.iter().map(|&link| end(&topology, link)).collect::<Vec<_>>()
                };
                let mut came = nodes(&links[..there], |t, link| t.links()[link as usize].from);
                came.reverse();
                let went = nodes(&links[there..], |t, link| t.links()[link as usize].to);
                // It may be lost on the way: then as far as it came.
                assert_eq!(went, came[..went.len()], "{pkt:?}");
                home += u32::from(went.len() == came.len());
            }
        }
        assert!(home > 50, "{home} headers of {}", topology.kind());
    }
}
