//! Telemetry that a switch port writes into packets, by hand.

use queues::{Capacity, DropTailSpec, QueueSpec};
use trimline_fabric::{Config, Departures, Events, Node, Topology};
use wire::int::{Hop, Stack};

use super::script::{LINK, config, memory, ns, run, send};

/// Two hosts send three packets of 1064 B each to a third. They reach the switch after 1851.2 ns,
/// two at once every 851.2 ns, and one leaves in that time: none waits behind the first and the
/// second, one behind the third, two behind the fourth.
#[test]
fn what_a_port_writes_by_hand() {
    let topology = Topology::star(3, LINK).unwrap();
    let last = topology.links().iter().position(|link| link.to == Node::Host(0)).unwrap() as u32;
    let behind = [0, 0, 1, 2, 1, 0];
    let lossless = Config { telemetry: true, ..config(memory()) };
    let capacity = Capacity::Bytes(100_000);
    let drop_tail = QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None });
    let plain = Config { queue: drop_tail, ..lossless.clone() };
    let eager = Config { departures: Departures::Eager, events: Events::Heap, ..plain.clone() };
    for config in [lossless, plain, eager] {
        let (_, log) = run(&topology, config, &[send(1, 0, 3), send(2, 0, 3)], false);
        let arrived = log.packets.iter().filter(|(_, link, _)| *link == last);
        let stacks: Vec<Stack> =
            arrived.map(|(_, _, pkt)| Stack::parse(pkt.header()).unwrap()).collect();
        assert_eq!(stacks.len(), 6);
        for ((n, stack), waiting) in (0..).zip(&stacks).zip(behind) {
            let hop = Hop::new(LINK.rate, ns(18_512 + 8_512 * n), 1064 * n, 1064 * waiting);
            assert_eq!(stack.hops(), [hop.unwrap()], "packet {n}");
        }
    }
}

/// Without it nothing is written.
#[test]
fn switches_write_only_where_they_are_told_to() {
    let topology = Topology::star(2, LINK).unwrap();
    let (_, log) = run(&topology, config(memory()), &[send(1, 0, 1)], false);
    assert!(log.packets.iter().all(|(_, _, pkt)| pkt.header() == Stack::default().to_bytes()));
}
