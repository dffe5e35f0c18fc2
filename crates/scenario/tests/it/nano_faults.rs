//! The two implementations of the programmable NIC on a network that loses, trims, doubles and
//! delays packets so that others overtake them, with applications that cancel: the same packets at
//! the same picosecond by either law of time.

use std::path::Path;
use std::sync::Arc;

use endpoint::{Draw, Endpoint, Purpose};
use nic::nano::buffers::SizeClass as Buffers;
use nic::nano::config::Config as NicConfig;
use nic::nano::endpoint::Nano as Nic;
use p4::interp::Machine;
use p4::ir;
use testkit::{Link, Net, Sent, Verdict};
use transports::nano::{Clocked, Config, Nano, Program, SizeClass};
use units::{Dur, HostId, Rate, Time};

const LINK: Link = Link {
    rate: Rate(200_000_000_000),
    delay: Dur::from_ns(131),
    mtu: 1088,
    paths: 3,
    hashed: true,
};
const HOSTS: u32 = 6;
const DRAWS: Purpose = Purpose::new("nano faults");

/// A NIC with so few ids, buffers and places that they run out.
fn native(program: Program, clocked: bool) -> Config {
    let (remember, ingress_timeouts) = (Some(4), 3);
    let buffers = [(4_096, 3), (38_912, 5)].map(|(bytes, count)| SizeClass { bytes, count });
    let (tx_messages, rx_messages) = (8, 4);
    let firesim = Config::firesim(program);
    let buffers = buffers.to_vec();
    Config { clocked, remember, ingress_timeouts, buffers, tx_messages, rx_messages, ..firesim }
}

/// The same for the blocks.
fn blocks(native: &Config) -> NicConfig {
    let class = |c: &SizeClass| Buffers { bytes: c.bytes.into(), buffers: c.count };
    NicConfig {
        classes: native.buffers.iter().map(class).collect(),
        tx_messages: native.tx_messages,
        rx_messages: native.rx_messages,
        ingress_timeouts: native.ingress_timeouts,
        remember: native.remember,
        clocked: native.clocked,
        protocols: vec![native.program.protocol().number()],
        priorities: if native.program == Program::Ndp { 1 } else { 4 },
        ..NicConfig::prototype(native.rtt_packets, native.timeout)
    }
}

fn compiled(program: Program) -> Arc<ir::Program> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let text = |file: &str| std::fs::read_to_string(dir.join(file)).map_err(|e| e.to_string());
    let file = if program == Program::Ndp { "ndp.p4" } else { "homa.p4" };
    let trim = [("TRIM".to_owned(), 1)];
    let constants = if program == Program::HomaTr { &trim[..] } else { &[] };
    Arc::new(p4::front::compile(&text, file, constants).unwrap())
}

/// What becomes of a packet: one in five is struck.
fn strike(seed: u64) -> impl Fn(&Sent) -> Verdict {
    let draws = Draw::new(seed, DRAWS, 0).stream(DRAWS);
    move |sent| {
        let late = Dur(draws.below(2 * sent.n + 1, 3_000_000));
        match draws.below(2 * sent.n, 100) {
            0..5 => Verdict::Drop,
            5..10 => Verdict::Trim,
            10..15 => Verdict::Duplicate(late),
            15..20 => Verdict::Delay(late),
            _ => Verdict::Pass,
        }
    }
}

/// All that hosts send, and what becomes of their messages.
fn run(seed: u64, endpoints: Vec<Box<dyn Endpoint>>) -> (Vec<String>, Vec<String>) {
    let mut net = Net::new(seed, LINK, endpoints);
    net.fault(strike(seed));
    let draws = Draw::new(seed, DRAWS, 1).stream(DRAWS);
    let mut keys = Vec::new();
    for n in 0..60 {
        let at = |part: u64, bound: u64| draws.below(8 * n + part, bound);
        net.run_until(Time(n * 1_500_000 + at(0, 1_000_000)));
        let src = at(1, HOSTS.into()) as u32;
        let dst = (src + 1 + at(2, u64::from(HOSTS) - 1) as u32) % HOSTS;
        keys.push(net.submit(HostId(src), HostId(dst), 1 + at(3, 38_912)));
        if at(4, 8) == 0 {
            net.cancel(keys[at(5, keys.len() as u64) as usize]);
        }
    }
    net.run_until(Time(400_000_000));
    let sent = net.log().iter().map(|Sent { at, pkt, .. }| {
        let (src, dst, class, path) = (pkt.src, pkt.dst, pkt.class, pkt.path);
        format!("{at:?} {src} {dst} {class} {path} {} {:?}", pkt.wire_len, pkt.header())
    });
    let records = keys.iter().map(|key| format!("{:?}", net.record(*key)));
    (sent.collect(), records.collect())
}

fn agree(clocked: bool) {
    for program in [Program::Ndp, Program::Homa, Program::HomaTr] {
        let config = Arc::new(native(program, clocked));
        let compiled = compiled(program);
        for seed in 1..=10 {
            let of_model = |_| -> Box<dyn Endpoint> {
                match clocked {
                    true => Box::new(Clocked::new(Arc::clone(&config)).unwrap()),
                    false => Box::new(Nano::new(Arc::clone(&config)).unwrap()),
                }
            };
            let of_blocks = |_| -> Box<dyn Endpoint> {
                let machine = Machine::new(Arc::clone(&compiled));
                Box::new(Nic::new(&compiled, Box::new(machine), blocks(&config)).unwrap())
            };
            let model = run(seed, (0..HOSTS).map(of_model).collect());
            let blocks = run(seed, (0..HOSTS).map(of_blocks).collect());
            let differs = model.0.iter().zip(&blocks.0).find(|(a, b)| a != b);
            assert_eq!(differs, None, "{program:?}, seed {seed}: native first");
            assert_eq!(model.0.len(), blocks.0.len(), "{program:?}, seed {seed}");
            assert_eq!(model.1, blocks.1, "{program:?}, seed {seed}");
            assert!(model.0.len() > 500, "{program:?}, seed {seed}: {} packets", model.0.len());
        }
    }
}

#[test]
fn faults_are_met_alike_by_the_law_of_instants() {
    agree(false);
}

#[test]
fn faults_are_met_alike_by_the_clocked_law() {
    agree(true);
}
