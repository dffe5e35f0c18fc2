//! A NIC allocates nothing per packet once it is warm, whichever runs its program; per message a
//! node of a tree now and then. In a binary of its own, because counting takes a global allocator;
//! it counts per thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use endpoint::{Cx, Endpoint, Msg, Packet, Submit, Tx, TxPort};
use nic::nano::config::Config;
use nic::nano::endpoint::{Nano, Runs};
use p4::interp::Machine;
use testkit::{Bottleneck, Link, Net};
use units::{Dur, HostId, Rate, TimerId};
use wire::nano::Protocol;

const RATE: Rate = Rate(200_000_000_000);

/// A NIC and how much it has allocated.
struct Counted {
    nano: Nano,
    allocations: Arc<AtomicU64>,
}

impl Counted {
    fn count<R>(&mut self, call: impl FnOnce(&mut Nano) -> R) -> R {
        let mut result = None;
        let counted = allocation_counter::measure(|| result = Some(call(&mut self.nano)));
        self.allocations.fetch_add(counted.count_total, Relaxed);
        result.unwrap()
    }
}

impl Endpoint for Counted {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.count(|nano| nano.on_submit(cx, msg))
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.count(|nano| nano.on_packet(cx, pkt));
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.count(|nano| nano.on_timer(cx, id));
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        self.count(|nano| nano.poll_tx(cx, port, slot))
    }
}

/// Two hosts send messages to a third, which sends some back; what does not fit its link is
/// trimmed.
fn allocates_little(file: &str, constants: &[(&str, i128)], protocol: Protocol) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let files = |name: &str| std::fs::read_to_string(dir.join(name)).map_err(|e| e.to_string());
    let constants: Vec<_> =
        constants.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let program = Arc::new(p4::front::compile(&files, file, &constants).unwrap());
    for interpreted in [true, false] {
        let allocations = Arc::new(AtomicU64::new(0));
        let make = |_| {
            let runs: Runs = match interpreted {
                true => Box::new(Machine::new(Arc::clone(&program))),
                false => trimline_programs::find(Arc::clone(&program)).unwrap(),
            };
            let protocols = vec![protocol.number()];
            let config = Config { protocols, ..Config::prototype(9, Dur::from_us(7)) };
            let nano = Nano::new(&program, runs, config).unwrap();
            Box::new(Counted { nano, allocations: Arc::clone(&allocations) }) as Box<dyn Endpoint>
        };
        let delay = Dur::from_ns(200);
        let link = Link { rate: RATE, delay, mtu: 1088, paths: 1, hashed: false };
        let mut net = Net::new(1, link, (0..3).map(HostId).map(make).collect());
        net.stop_logging();
        net.set_bottleneck(HostId(0), Bottleneck { rate: RATE, packets: 20, trim: true });
        let mut round = || {
            for (from, to) in [(1, 0), (2, 0), (1, 0), (0, 2)] {
                net.submit(HostId(from), HostId(to), 20_000 + u64::from(from) * 3000);
            }
            net.run_until(net.now() + Dur::from_us(6));
            net.sent()
        };
        // Until the memory of messages that are over is full: a thousand.
        let warm = (0..600).map(|_| round()).last().unwrap();
        allocations.store(0, Relaxed);
        let sent = (0..200).map(|_| round()).last().unwrap() - warm;
        assert!(sent > 30_000, "only {sent} packets");
        // 800 messages of some 25 packets, each answered. Their trees split and merge nodes for
        // every sixth.
        let count = allocations.load(Relaxed);
        assert!(
            count < 200,
            "{file}, interpreted {interpreted}: {count} allocations, {sent} packets"
        );
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocation_counter::measure(|| drop(std::hint::black_box(vec![1]))).count_total, 1);
}

#[test]
fn ndp_allocates_nothing_per_packet() {
    allocates_little("ndp.p4", &[], Protocol::Ndp);
}

#[test]
fn homa_tr_allocates_nothing_per_packet() {
    allocates_little("homa.p4", &[("TRIM", 1)], Protocol::Homa);
}
