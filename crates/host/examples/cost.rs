//! What hosts themselves cost: requests and responses between two hosts in one thread, over memory
//! instead of a socket, for counting instructions:
//!
//!     cargo build -p trimline-host --example cost
//!     valgrind --tool=callgrind target/debug/examples/cost ndp 64 10000 1
//!
//! The last number says how many requests are under way at a time. What a request costs is what
//! more requests cost beside fewer.

use std::net::SocketAddr;

use endpoint::{App, AppCx, AppEvent, Endpoint};
use transports::{homa, ndp, tcp};
use trimline_host::{AddressBook, Config, Content, Host, Memory};
use units::{Dur, HostId, MsgKey, Rate};

const PAYLOAD: u16 = 1_300;
const USAGE: &str = "cost TRANSPORT BYTES REQUESTS AT_ONCE";

fn endpoint(name: &str) -> Box<dyn Endpoint> {
    match name {
        "ndp" => Box::new(ndp::Ndp::new(ndp::Config::paper(PAYLOAD)).unwrap()),
        "newreno" => Box::new(tcp::Tcp::new(tcp::Config::linux_datacenter(PAYLOAD)).unwrap()),
        "homa" => {
            let cutoffs = homa::Cutoffs::new(&[433, 2_339, 6_756]).unwrap();
            let config = homa::Config { payload: PAYLOAD, ..homa::Config::paper(cutoffs) };
            Box::new(homa::Homa::new(config).unwrap())
        }
        other => panic!("{other}: ndp, homa or newreno"),
    }
}

/// Asks again for each answer; host 1 answers.
struct Echo {
    size: u64,
    at_once: u64,
}

impl App for Echo {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        if cx.me == HostId(0) {
            for _ in 0..self.at_once {
                cx.submit(HostId(1), self.size);
            }
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        if let AppEvent::Delivered { len, .. } = event {
            cx.submit(HostId(1 - cx.me.0), len);
        }
    }
}

struct Zeros;

impl Content for Zeros {
    fn read(&mut self, _: MsgKey, _: u64, buf: &mut [u8]) {
        buf.fill(0);
    }

    fn received(&mut self, _: MsgKey, _: Vec<u8>) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, numbers @ ..] = &arguments[..] else { panic!("{USAGE}") };
    let numbers: Vec<u64> = numbers.iter().map(|text| text.parse().expect(USAGE)).collect();
    let [size, count, at_once] = numbers[..] else { panic!("{USAGE}") };
    let at = [0, 1].map(|n| SocketAddr::from(([10, 0, 0, n + 1], 4_000)));
    let book: AddressBook = [0, 1].map(|n| (HostId(n), at[n as usize])).into();
    let config = |me| {
        let rate = Rate(100_000_000_000);
        Config { busy: true, trains: false, rate, ..Config::loopback(HostId(me), book.clone(), 1) }
    };
    let [a, b] = Memory::pair(at).unwrap();
    let (mut app_a, mut app_b) = (Echo { size, at_once }, Echo { size, at_once });
    let (mut zeros_a, mut zeros_b) = (Zeros, Zeros);
    let mut a = Host::new(config(0), a, endpoint(name), &mut app_a, &mut zeros_a).unwrap();
    let mut b = Host::new(config(1), b, endpoint(name), &mut app_b, &mut zeros_b).unwrap();
    while a.counters().delivered < count {
        a.run(Dur(1), |_| false).unwrap();
        b.run(Dur(1), |_| false).unwrap();
    }
    println!("{:?}", a.counters());
}
