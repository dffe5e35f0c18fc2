//! NDP as a whole: against scripts ([`bench`]) and over the test kit's network.

mod bench;
mod conformance;
mod edge_cases;
mod ideal;
mod invariants;
mod swarm;

use endpoint::{Endpoint, Packet};
use testkit::{Link, Net};
use units::{Dur, Rate};
use wire::ndp::{Header, Kind, Repr};

use super::{Config, Ndp};

const TEN_GIG: Rate = Rate(10_000_000_000);

/// Hosts at 10 Gb/s, 2 us from one another, with four paths.
const LINK: Link =
    Link { rate: TEN_GIG, delay: Dur::from_us(2), mtu: 9064, paths: 4, hashed: false };

/// A network of `hosts` hosts.
fn net(config: &Config, link: Link, hosts: usize) -> Net {
    let make = |_| Box::new(Ndp::new(config.clone()).unwrap()) as Box<dyn Endpoint>;
    Net::new(1, link, (0..hosts).map(make).collect())
}

/// What a packet is.
fn kind(pkt: &Packet) -> Kind {
    Repr::parse(&Header::new(pkt.header()).unwrap()).unwrap().kind
}

/// The pull number of a PULL, or of an ACK or NACK with the PULL bit.
fn pull_number(pkt: &Packet) -> Option<u32> {
    match kind(pkt) {
        Kind::Ack(f) | Kind::Nack(f) => f.pull,
        Kind::Pull { pull, .. } => Some(pull),
        Kind::Data(_) | Kind::Keepalive => None,
    }
}
