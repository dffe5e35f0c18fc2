//! The conformance suite, the ideal time of a lone message, and what queue pairs do that is not a rule's affair.

use endpoint::Endpoint;
use testkit::conformance::{self, Opts};
use testkit::{Link, Net};
use units::{Bytes, Dur, HostId, Rate, Time};

use super::{Config, Rdma, Recovery, RuleConfig, Segment};
use crate::rto::RtoConfig;

const TEN_GIG: Rate = Rate(10_000_000_000);
const DELAY: Dur = Dur::from_us(2);
const TO: HostId = HostId(0);

fn net(config: Config, hosts: usize) -> Net {
    let make = |_| Box::new(Rdma::new(config).unwrap()) as Box<dyn Endpoint>;
    let mtu = config.payload + config.overhead;
    let link = Link { rate: TEN_GIG, delay: DELAY, mtu, paths: 4, hashed: true };
    Net::new(1, link, (0..hosts).map(make).collect())
}

/// For networks that lose packets as RDMA's never do.
fn lossy(config: Config) -> Config {
    let rto = RtoConfig { min: Dur::from_us(500), initial: Dur::from_ms(1), ..config.rto };
    Config { rto, timeouts_max: 100, ..config }
}

fn conforms(config: Config) {
    let config = lossy(config);
    let opts = Opts {
        payload: Bytes(u64::from(config.payload)),
        window: Bytes(16 * u64::from(config.payload)),
        trims: false,
        bounces: false,
        hashed_paths: true,
        patience: Dur::from_ms(600_000),
    };
    conformance::run(|_| Box::new(Rdma::new(config).unwrap()) as Box<dyn Endpoint>, opts);
}

const UNLIMITED: Config = Config::roce(1024, RuleConfig::Unlimited);

#[test]
fn an_acknowledgement_for_each_packet_conforms() {
    conforms(UNLIMITED);
}

#[test]
fn an_acknowledgement_for_each_segment_conforms() {
    conforms(Config { segment: Segment::Bytes(4 << 10), ..UNLIMITED });
}

#[test]
fn timely_conforms() {
    conforms(Config::timely(1024));
}

#[test]
fn selective_recovery_conforms() {
    conforms(Config { recovery: Recovery::Selective { reordering: 3 }, ..UNLIMITED });
}

/// At the line rate nothing comes between the packets of a message, nor between its segments.
#[test]
fn a_lone_message_takes_the_ideal_time() {
    let unlimited = UNLIMITED;
    let segments = Config { segment: Segment::Bytes(4 << 10), ..UNLIMITED };
    let selective = Config { recovery: Recovery::Selective { reordering: 3 }, ..UNLIMITED };
    for config in [unlimited, segments, selective, Config::timely(1024), Config::timely(4096)] {
        let p = u64::from(config.payload);
        for len in [0, 1, p, p + 1, 4 * p, 5 * p + 7, 100 * p, 1000 * p + 1] {
            let mut net = net(config, 2);
            let key = net.submit(HostId(1), TO, len);
            net.run_until_idle(Dur::from_ms(100));
            let framing = config.framing();
            let wire = len + len.div_ceil(p).max(1) * u64::from(framing.overhead);
            let ideal = Time::ZERO + TEN_GIG.serialise(wire) + DELAY;
            assert_eq!(net.record(key).delivered, Some(ideal), "{len} B of {config:?}");
        }
    }
}
