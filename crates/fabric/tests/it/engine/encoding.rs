//! The forms in which a path is written into packets lead over the same ports.

use trimline_fabric::{Clos, Config, Encoding, LinkSpec, Node, Routing, Threads, Tier, Topology};
use units::{Dur, Rate, Time};

use super::blast::{LINK, config, ndp, run, shapes};

const ENCODINGS: [Encoding; 3] =
    [Encoding::SourceRoute, Encoding::CoreLabel, Encoding::CoreAddress];

/// Beside those of the other tests: more pods than a pod has switches, oversubscribed twice; and
/// fabrics of which links have failed, or are slow.
fn all_shapes() -> Vec<Topology> {
    let slow = LinkSpec { rate: Rate(2_000_000_000), delay: Dur::from_us(2) };
    let uneven = Clos {
        pods: 5,
        tors_per_pod: 3,
        hosts_per_tor: 4,
        aggs_per_pod: 2,
        cores_per_agg: 3,
        links: [LINK, slow, LINK],
    };
    let mut shapes = shapes();
    shapes.retain(|shape| shape.kind() != "vl2");
    shapes.push(Topology::clos(uneven).unwrap());
    shapes.push(Topology::fat_tree(6, 1, LINK).unwrap());
    for shape in &mut shapes[2..] {
        let (tor, agg) = (Node::Switch(Tier::Tor, 1), Node::Switch(Tier::Agg, 0));
        let core = Node::Switch(Tier::Core, 1);
        for (a, b) in [(tor, agg), (agg, core)] {
            if let (Some(there), Some(back)) = (shape.find_link(a, b), shape.find_link(b, a)) {
                shape.fail_link(there);
                shape.fail_link(back);
            }
        }
    }
    shapes
}

/// specs/ndp.md#6: all are equal for load balance. Here to the last packet, headers that turn
/// back included, and so is every count of every link.
#[test]
fn every_encoding_is_the_same_run() {
    for topology in all_shapes() {
        for seed in 0..3 {
            let base = Config { queue: ndp(2, 256), limit: Time(90_000_000), ..config(seed) };
            let computed = run(&topology, base.clone(), 6, 40_000);
            let racks = topology.switches_of(Tier::Tor) > 1;
            assert!(computed.counters.bounced > 0 || !racks, "{}", topology.kind());
            for encoding in ENCODINGS {
                for threads in [1, 3] {
                    let routing = Routing::Encoded(encoding);
                    let other =
                        Config { routing, threads: Threads::Fixed(threads), ..base.clone() };
                    let other = run(&topology, other, 6, 40_000);
                    let about = format!("{encoding:?} in {}, {threads} threads", topology.kind());
                    assert_eq!(other.links, computed.links, "{about}");
                    assert_eq!(other.digest, computed.digest, "{about}");
                }
            }
        }
    }
}

#[test]
fn ports_have_16_bits_and_tables_of_labels_an_end() {
    let wide = Topology::leaf_spine(2, 40_000, 40_000, LINK, LINK).unwrap_err().to_string();
    assert_eq!(wide, "80000 ports on one switch: at most 65534");
    let flat = Clos {
        pods: 30,
        tors_per_pod: 2000,
        hosts_per_tor: 1,
        aggs_per_pod: 1,
        cores_per_agg: 30_000,
        links: [LINK; 3],
    };
    let flat = Topology::clos(flat).unwrap();
    assert_eq!(Encoding::SourceRoute.check(&flat), Ok(()));
    let why = Encoding::CoreLabel.check(&flat).unwrap_err().to_string();
    assert_eq!(why, "a label per core switch takes 1800960030 table entries; at most 100000000");
}

#[test]
fn addresses_have_32_bits_and_tables_an_end() {
    let check = |k| Encoding::CoreAddress.check(&Topology::fat_tree(k, 1, LINK).unwrap());
    assert_eq!(check(32), Ok(()), "8192 hosts");
    let why = check(64).unwrap_err().to_string();
    assert_eq!(why, "an address per core switch takes 73665536 table entries; at most 16000000");
    let flat = Topology::leaf_spine(60_000, 4, 1, LINK, LINK).unwrap();
    assert_eq!(Encoding::CoreAddress.check(&flat), Ok(()));
    // 12 bits for 3078 turns, 8 for pods, 8 for racks, 5 for hosts: one of each too many.
    let wide = Clos {
        pods: 129,
        tors_per_pod: 129,
        hosts_per_tor: 17,
        aggs_per_pod: 3,
        cores_per_agg: 1025,
        links: [LINK; 3],
    };
    let wide = Topology::clos(wide).unwrap();
    let why = Encoding::CoreAddress.check(&wide).unwrap_err().to_string();
    assert_eq!(why, "an address per core switch takes 33 bits of 32");
}
