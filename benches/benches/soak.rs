//! `make soak`: three hosts send messages to one another for as long as it takes, over a network
//! that loses, doubles and damages datagrams, while each is started again now and then. Nothing may
//! be lost, delivered twice or damaged, and memory must not grow.
//!
//! Arguments: how many messages in all, and the transport: ndp, homa, newreno, phost, pfabric, uet or
//! rdma.

use std::alloc::System;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use endpoint::{App, AppCx, AppEffect, AppEvent, Draw, Endpoint, Msg, Purpose, RangeSet};
use host::{AddressBook, Config, Fate, Faults, Host, Pattern, bind};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use units::{Dur, HostId, MsgId};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const HOSTS: u32 = 3;
/// Of each host, to both others together.
const OUTSTANDING: u64 = 64;
/// Of a thousand datagrams.
const LOST: u64 = 5;
const DOUBLED: u64 = 5;
const DAMAGED: u64 = 2;
/// Of the heap from the first tenth of the messages to the last.
const HEAP_GROWTH: f64 = 0.05;
/// Messages of a host in one of its lives; a third more for each host before it.
const LIFE: u64 = 200_000;

/// What one host has sent and heard, over all its lives.
#[derive(Default)]
struct Ledger {
    /// The next number to each host.
    next: BTreeMap<HostId, u64>,
    /// Messages known to be delivered.
    acked: u64,
    /// Those of them that were not.
    lost: u64,
    /// Messages that failed: they may have been delivered, or not.
    failed: u64,
    /// Numbers of each host delivered here. Each message that failed may leave a gap for ever.
    delivered: BTreeMap<HostId, RangeSet>,
    twice: u64,
    damaged: u64,
}

/// One life of a host's application.
struct Soak<'a> {
    me: HostId,
    ledgers: &'a [Mutex<Ledger>],
    /// Messages that have come to their end, of all hosts.
    over: &'a AtomicU64,
    /// Beyond so many no new ones begin.
    all: u64,
    open: BTreeMap<MsgId, (HostId, u64)>,
}

impl Soak<'_> {
    fn ledger(&self, host: HostId) -> MutexGuard<'_, Ledger> {
        self.ledgers[host.0 as usize].lock().unwrap()
    }

    fn submit(&mut self, cx: &mut AppCx<'_>) {
        const LEN: Purpose = Purpose::new("length");
        if self.over.load(Ordering::Relaxed) >= self.all {
            return;
        }
        let id = *cx.next_id;
        cx.next_id.0 += 1;
        let dst = HostId((cx.me.0 + 1 + (id.0 % u64::from(HOSTS - 1)) as u32) % HOSTS);
        let mut ledger = self.ledger(self.me);
        let next = ledger.next.entry(dst).or_default();
        let token = *next;
        *next += 1;
        drop(ledger);
        // Most are short; one of a hundred is 100 KB.
        let len = match token % 100 {
            0 => 100_000,
            _ => 1 + cx.draw.below(LEN, id.0, 2_000),
        };
        self.open.insert(id, (dst, token));
        let msg = Msg { id, ..Msg::new(dst, len) };
        cx.fx.push(AppEffect::Submit { msg, tag: 1, token });
    }
}

impl App for Soak<'_> {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..OUTSTANDING {
            self.submit(cx);
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Delivered { key, token, .. } => {
                let mut ledger = self.ledger(self.me);
                let is_new =
                    ledger.delivered.entry(key.src).or_default().insert(token..token + 1) == 1;
                ledger.twice += u64::from(!is_new);
                return;
            }
            AppEvent::Acked(id) => {
                let Some((dst, number)) = self.open.remove(&id) else { return };
                let is_there = |set: &RangeSet| set.contains(number);
                let there = self.ledger(dst).delivered.get(&self.me).is_some_and(is_there);
                let mut ledger = self.ledger(self.me);
                ledger.acked += 1;
                ledger.lost += u64::from(!there);
            }
            AppEvent::Failed(key, _) if key.src == self.me => {
                if self.open.remove(&key.id).is_none() {
                    return;
                }
                self.ledger(self.me).failed += 1;
            }
            _ => return,
        }
        self.over.fetch_add(1, Ordering::Relaxed);
        self.submit(cx);
    }
}

fn faults(seed: u64) -> Faults {
    const FATE: Purpose = Purpose::new("fate");
    let draw = Draw::new(seed, Purpose::new("soak"), 0);
    Box::new(move |n| match draw.below(FATE, n, 1_000) {
        x if x < LOST => Fate::Drop,
        x if x < LOST + DOUBLED => Fate::Twice,
        x if x < LOST + DOUBLED + DAMAGED => Fate::Damage,
        _ => Fate::Pass,
    })
}

fn endpoint(transport: &str) -> Box<dyn Endpoint> {
    match transport {
        "ndp" => {
            use transports::ndp::{Config, Ndp};
            Box::new(Ndp::new(Config::processes(8_900)).unwrap())
        }
        "homa" => {
            use transports::homa::{Config, Cutoffs, Homa};
            let cutoffs = Cutoffs::new(&[433, 2_339, 6_756]).unwrap();
            Box::new(Homa::new(Config { payload: 8_900, ..Config::paper(cutoffs) }).unwrap())
        }
        "newreno" => {
            use transports::tcp::{Config, Tcp};
            Box::new(Tcp::new(Config::processes(8_900)).unwrap())
        }
        other => other_endpoint(other),
    }
}

/// Those whose timeouts are of microseconds get some that processes keep.
fn other_endpoint(transport: &str) -> Box<dyn Endpoint> {
    use transports::{pfabric, phost, rdma, rto::RtoConfig, uet};
    let ms = Dur::from_ms;
    match transport {
        "phost" => Box::new(phost::PHost::new(phost::Config::ndp_paper(8_900)).unwrap()),
        "pfabric" => {
            let config = pfabric::Config { rto: ms(10), ..pfabric::Config::paper(8_900) };
            Box::new(pfabric::PFabric::new(config).unwrap())
        }
        "uet" => {
            let config = uet::Config { rto: Some(ms(10)), ..uet::Config::htsim(8_900) };
            Box::new(uet::Uet::new(config).unwrap())
        }
        "rdma" => {
            let plain = rdma::Config::roce(8_900, rdma::RuleConfig::Unlimited);
            let recovery = rdma::Recovery::Selective { reordering: 3 };
            let rto = RtoConfig { min: ms(5), initial: ms(10), max: ms(50), ..plain.rto };
            let config = rdma::Config { recovery, rto, max_timeouts: 1_000, ..plain };
            Box::new(rdma::Rdma::new(config).unwrap())
        }
        other => panic!("{other} is no transport of this program"),
    }
}

/// One host, life after life, until `stop`.
fn live(
    me: HostId,
    mut socket: Option<UdpSocket>,
    book: &AddressBook,
    transport: &str,
    soak: (&[Mutex<Ledger>], &AtomicU64, u64),
    stop: &AtomicBool,
) {
    let (ledgers, over, all) = soak;
    let mut life = 0;
    while !stop.load(Ordering::Relaxed) {
        let socket = socket.take().unwrap_or_else(|| bind(book[&me]).unwrap());
        let mut app = Soak { me, ledgers, over, all, open: BTreeMap::new() };
        let mut content = Pattern::default();
        let config = Config::loopback(me, book.clone(), 1);
        let mut host =
            Host::new(config, socket, endpoint(transport), &mut app, &mut content).unwrap();
        host.set_faults(faults(u64::from(me.0) << 32 | life));
        life += 1;
        // They do not all start again at once.
        let end = LIFE + LIFE * u64::from(me.0) / u64::from(HOSTS);
        host.run(Dur::MAX, |counters| {
            let may_end = over.load(Ordering::Relaxed) < all && counters.submitted >= end;
            stop.load(Ordering::Relaxed) || may_end
        })
        .unwrap();
        drop(host);
        let under_way = app.open.len() as u64;
        let mut ledger = ledgers[me.0 as usize].lock().unwrap();
        ledger.damaged += content.damaged.len() as u64;
        // What was under way ends with the life: it may have been delivered, or not.
        ledger.failed += under_way;
        over.fetch_add(under_way, Ordering::Relaxed);
    }
}

fn heap() -> f64 {
    let stats = HEAP.stats();
    (stats.bytes_allocated - stats.bytes_deallocated) as f64 / 1e6
}

/// Print how it goes until all messages are over: a line for each tenth of them. What is under way
/// makes the heap go up and down, so it is the median of those looked at since the line before.
/// Returns those medians.
fn watch(transport: &str, over: &AtomicU64, all: u64) -> Vec<f64> {
    let start = Instant::now();
    println!("{transport}\n{:>12} {:>9} {:>9}", "messages", "seconds", "heap MB");
    let mut medians = Vec::new();
    let mut heaps = Vec::new();
    while over.load(Ordering::Relaxed) < all {
        thread::sleep(Duration::from_millis(5));
        heaps.push(heap());
        let done = over.load(Ordering::Relaxed);
        if done >= (medians.len() as u64 + 1) * all / 10 {
            heaps.sort_by(f64::total_cmp);
            let median = heaps[heaps.len() / 2];
            println!("{done:>12} {:>9.1} {median:>9.2}", start.elapsed().as_secs_f64());
            medians.push(median);
            heaps.clear();
        }
    }
    medians
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let all: u64 = args.first().map_or(1_000_000, |n| n.parse().expect("how many messages"));
    let transport = args.get(1).map_or("ndp", String::as_str);
    let sockets: Vec<UdpSocket> =
        (0..HOSTS).map(|_| bind(([127, 0, 0, 1], 0).into()).unwrap()).collect();
    let book: AddressBook = sockets
        .iter()
        .zip(0..)
        .map(|(socket, host)| (HostId(host), socket.local_addr().unwrap()))
        .collect();
    let ledgers: Vec<Mutex<Ledger>> = (0..HOSTS).map(|_| Mutex::default()).collect();
    let (over, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let heaps = thread::scope(|scope| {
        for (socket, host) in sockets.into_iter().zip(0..) {
            let (ledgers, book, over, stop) = (&ledgers, &book, &over, &stop);
            let soak = move || {
                live(HostId(host), Some(socket), book, transport, (ledgers, over, all), stop);
            };
            scope.spawn(soak);
        }
        let heaps = watch(transport, &over, all);
        // What is still under way comes to its end, one way or the other.
        thread::sleep(Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
        heaps
    });
    let (mut lost, mut acked, mut failed, mut twice, mut damaged) = (0, 0, 0, 0, 0);
    for ledger in &ledgers {
        let ledger = ledger.lock().unwrap();
        (acked, lost, failed) = (acked + ledger.acked, lost + ledger.lost, failed + ledger.failed);
        (twice, damaged) = (twice + ledger.twice, damaged + ledger.damaged);
    }
    println!("{acked} confirmed, {failed} failed or cut off by a restart");
    println!("{lost} of the confirmed ones lost, {twice} delivered twice, {damaged} damaged");
    assert!(lost == 0 && twice == 0 && damaged == 0);
    let [first, .., last] = heaps[..] else { panic!("too few messages to tell of the heap") };
    let growth = last / first - 1.0;
    println!("heap of the last tenth to that of the first: {:+.1} %", 100.0 * growth);
    assert!(growth <= HEAP_GROWTH, "it grows");
}
