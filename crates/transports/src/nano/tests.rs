mod bench;
mod conformance;
mod defects;
mod goldens;
mod invariants;
mod lone;

use std::sync::Arc;

use endpoint::{Endpoint, Packet};
use testkit::{Link, Net};
use units::{Dur, HostId, Rate, Time};
use wire::nano::{Header, Repr};

use super::{Config, Nano, Program};

const TO: HostId = HostId(0);
const PROGRAMS: [Program; 3] = [Program::Ndp, Program::Homa, Program::HomaTr];

/// 200 Gb/s and half the round trip of the hardware experiment, less the NIC's and the wire's own
/// times.
const LINK: Link = Link {
    rate: Rate(200_000_000_000),
    delay: Dur::from_ns(200),
    mtu: 1088,
    paths: 1,
    hashed: true,
};

fn net(config: &Config, hosts: usize) -> Net {
    let config = Arc::new(config.clone());
    let host = || Box::new(Nano::new(Arc::clone(&config)).unwrap()) as Box<dyn Endpoint>;
    Net::new(1, LINK, (0..hosts).map(|_| host()).collect())
}

fn header(config: &Config, pkt: &Packet) -> Repr {
    Repr::parse(&Header::new(config.program.protocol(), pkt.header()).unwrap()).unwrap()
}

/// What `host` has answered, as headers.
fn controls(net: &Net, config: &Config, host: HostId) -> Vec<(Time, Repr)> {
    let answers = net.log().iter().filter(|s| s.pkt.src == host && !s.pkt.carries_payload());
    answers.map(|sent| (sent.at, header(config, &sent.pkt))).collect()
}
