//! `make bench-host`: requests and responses between two threads over UDP on loopback, each
//! transport beside plain UDP and the kernel's TCP in interleaved rounds. Both threads spin, and
//! each wants a core of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use endpoint::{App, AppCx, AppEvent, Endpoint, Msg};
use host::{AddressBook, Config, Content, Host, bind};
use rustix::thread::{CpuSet, sched_setaffinity};
use units::{Dur, HostId, MsgKey, Rate};

const ROUNDS: usize = 5;
const REQUESTS: usize = 2_000;
/// Before those that count: caches and windows are warm then.
const WARM: usize = 200;
const SIZES: [usize; 2] = [64, 1_000];
const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{ROUNDS} rounds of {REQUESTS} requests; load before: {}", load.trim());
    println!("{:<24} {:>6} {:>10} {:>10}", "", "bytes", "median us", "p99 us");
    for size in SIZES {
        let mut all = vec![Vec::new(); CONTESTANTS.len()];
        for _ in 0..ROUNDS {
            for (times, (_, run)) in all.iter_mut().zip(CONTESTANTS) {
                times.extend(run(size));
            }
        }
        for (times, (name, _)) in all.iter_mut().zip(CONTESTANTS) {
            times.sort_unstable();
            let at = |share: f64| times[(times.len() as f64 * share) as usize] as f64 / 1e3;
            println!("{name:<24} {size:>6} {:>10.2} {:>10.2}", at(0.5), at(0.99));
        }
    }
    bulk_table();
}

/// A round: how long each request took until its response, ns.
type Round = fn(usize) -> Vec<u64>;

/// Messages of 1 MB, so many, at most [`AT_ONCE`] unfinished.
const MESSAGES: u64 = 300;
const LONG: u64 = 1_000_000;
const AT_ONCE: u64 = 4;

fn bulk_table() {
    println!("\n{:<24} {:>6} {:>10} {:>10}", "1 MB messages, Gb/s", "bytes", "single", "trains");
    for payload in [1_400, 8_900] {
        let mut all = [const { [const { Vec::new() }; 2] }; 3];
        for _ in 0..ROUNDS {
            for (rates, (_, endpoint)) in all.iter_mut().zip(TRANSPORTS) {
                for (rates, trains) in rates.iter_mut().zip([false, true]) {
                    rates.push(bulk(payload, trains, endpoint));
                }
            }
        }
        for (rates, (name, _)) in all.iter_mut().zip(TRANSPORTS) {
            let [single, trains] = rates.each_mut().map(|rates| {
                rates.sort_unstable_by(f64::total_cmp);
                rates[ROUNDS / 2]
            });
            println!("{name:<24} {payload:>6} {single:>10.2} {trains:>10.2}");
        }
    }
}

/// Of packets with so many bytes of payload.
type Make = fn(u16) -> Box<dyn Endpoint>;

const TRANSPORTS: [(&str, Make); 3] = [("NDP", ndp), ("Homa", homa), ("NewReno", newreno)];

const CONTESTANTS: [(&str, Round); 6] = [
    ("UDP, a packet each way", |size| udp(size, 1)),
    ("UDP, two each way", |size| udp(size, 2)),
    ("kernel TCP, kept", tcp),
    ("NDP", |size| hosts(size, || ndp(1_436))),
    ("Homa", |size| hosts(size, || homa(1_400))),
    ("NewReno", |size| hosts(size, || newreno(1_436))),
];

fn ndp(payload: u16) -> Box<dyn Endpoint> {
    Box::new(transports::ndp::Ndp::new(transports::ndp::Config::paper(payload)).unwrap())
}

fn homa(payload: u16) -> Box<dyn Endpoint> {
    use transports::homa::{Config, Cutoffs, Homa};
    let cutoffs = Cutoffs::new(&[433, 2_339, 6_756]).unwrap();
    Box::new(Homa::new(Config { payload, ..Config::paper(cutoffs) }).unwrap())
}

fn newreno(payload: u16) -> Box<dyn Endpoint> {
    let config = transports::tcp::Config::linux_datacenter(payload);
    Box::new(transports::tcp::Tcp::new(config).unwrap())
}

/// Keeps messages on their way.
struct Sender;

impl App for Sender {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..AT_ONCE {
            cx.submit_as(Msg::new(SERVER, LONG));
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        if let AppEvent::Acked(_) = event {
            cx.submit_as(Msg::new(SERVER, LONG));
        }
    }
}

struct Sink;

impl App for Sink {
    fn on_start(&mut self, _: &mut AppCx<'_>) {}

    fn on_event(&mut self, _: &mut AppCx<'_>, _: AppEvent) {}
}

/// Gb/s of payload that a host delivers to another one.
fn bulk(payload: u16, trains: bool, endpoint: Make) -> f64 {
    let [a, b] = [0, 1].map(|_| bind(local()).unwrap());
    let peers: AddressBook =
        [(CLIENT, a.local_addr().unwrap()), (SERVER, b.local_addr().unwrap())].into();
    // No link is faster: a pacer by its rate does not hold anything back.
    let rate = Rate(100_000_000_000);
    let config =
        move |me| Config { busy: true, rate, trains, ..Config::loopback(me, peers.clone(), 1) };
    let (client, server) = (config(CLIENT), config(SERVER));
    let serve = move |stop: &AtomicBool| {
        let (mut app, mut content) = (Sink, Zeros::default());
        let mut host = Host::new(server, b, endpoint(payload), &mut app, &mut content).unwrap();
        host.run(Dur::from_ms(60_000), |_| stop.load(Ordering::Relaxed)).unwrap();
    };
    let taken = beside(serve, || {
        let (mut app, mut content) = (Sender, Zeros::default());
        let mut host = Host::new(client, a, endpoint(payload), &mut app, &mut content).unwrap();
        let start = Instant::now();
        assert!(host.run(Dur::from_ms(60_000), |c| c.acked >= MESSAGES).unwrap(), "too slow");
        vec![start.elapsed().as_nanos() as u64]
    });
    (8 * LONG * MESSAGES) as f64 / taken[0] as f64
}

/// Keep this thread on core `core`, if there is one.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // On one core they take turns, and the figures show it.
    let _ = sched_setaffinity(None, &set);
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Run `server` beside `client` until the client is done.
fn beside(
    server: impl FnOnce(&AtomicBool) + Send + 'static,
    client: impl FnOnce() -> Vec<u64>,
) -> Vec<u64> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let (started, other_core) = channel();
    let other = thread::spawn(move || {
        pin(1);
        let _ = started.send(());
        server(&seen);
    });
    // It begins on this thread's core, and would never get there while this one spins.
    let _ = other_core.recv();
    pin(0);
    let times = client();
    stop.store(true, Ordering::Relaxed);
    other.join().unwrap();
    times
}

fn timed(mut request: impl FnMut()) -> Vec<u64> {
    let mut times = Vec::with_capacity(REQUESTS);
    for n in 0..WARM + REQUESTS {
        let start = Instant::now();
        request();
        if n >= WARM {
            times.push(start.elapsed().as_nanos() as u64);
        }
    }
    times
}

/// `packets` datagrams each way, as one who waits for data and its acknowledgement.
fn udp(size: usize, packets: usize) -> Vec<u64> {
    let [a, b] = [0, 1].map(|_| UdpSocket::bind(local()).unwrap());
    let (to_a, to_b) = (a.local_addr().unwrap(), b.local_addr().unwrap());
    for socket in [&a, &b] {
        socket.set_nonblocking(true).unwrap();
    }
    let server = move |stop: &AtomicBool| {
        let mut buf = [0; 2_048];
        while !stop.load(Ordering::Relaxed) {
            if let Ok((len, _)) = b.recv_from(&mut buf) {
                b.send_to(&buf[..len], to_a).unwrap();
            }
        }
    };
    beside(server, || {
        let mut buf = [0; 2_048];
        timed(|| {
            for _ in 0..packets {
                a.send_to(&buf[..size], to_b).unwrap();
            }
            let mut left = packets;
            while left > 0 {
                left -= usize::from(a.recv_from(&mut buf).is_ok());
            }
        })
    })
}

fn tcp(size: usize) -> Vec<u64> {
    let listener = TcpListener::bind(local()).unwrap();
    let to = listener.local_addr().unwrap();
    let read = |stream: &mut TcpStream, buf: &mut [u8], stop: &dyn Fn() -> bool| {
        let mut have = 0;
        while have < buf.len() && !stop() {
            have += stream.read(&mut buf[have..]).unwrap_or(0);
        }
    };
    let server = move |stop: &AtomicBool| {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut buf = vec![0; size];
        while !stop.load(Ordering::Relaxed) {
            read(&mut stream, &mut buf, &|| stop.load(Ordering::Relaxed));
            let _ = stream.write_all(&buf);
        }
    };
    beside(server, || {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut buf = vec![0; size];
        timed(|| {
            stream.write_all(&buf).unwrap();
            read(&mut stream, &mut buf, &|| false);
        })
    })
}

/// Sends a request once the response to the one before is there.
struct Client {
    size: u64,
    start: Instant,
    times: Vec<u64>,
}

impl App for Client {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        self.start = Instant::now();
        cx.submit_as(Msg::new(SERVER, self.size));
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        if let AppEvent::Delivered { .. } = event {
            self.times.push(self.start.elapsed().as_nanos() as u64);
            self.on_start(cx);
        }
    }
}

struct Server;

impl App for Server {
    fn on_start(&mut self, _: &mut AppCx<'_>) {}

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        if let AppEvent::Delivered { len, .. } = event {
            cx.submit_as(Msg::new(CLIENT, len));
        }
    }
}

/// Bytes that cost nothing but their copy, as those of the others.
#[derive(Default)]
struct Zeros {
    received: u64,
}

impl Content for Zeros {
    fn read(&mut self, _: MsgKey, _: u64, buf: &mut [u8]) {
        buf.fill(0);
    }

    fn received(&mut self, _: MsgKey, bytes: Vec<u8>) {
        self.received += bytes.len() as u64;
    }
}

fn hosts(size: usize, endpoint: fn() -> Box<dyn Endpoint>) -> Vec<u64> {
    let [a, b] = [0, 1].map(|_| bind(local()).unwrap());
    let peers: AddressBook =
        [(CLIENT, a.local_addr().unwrap()), (SERVER, b.local_addr().unwrap())].into();
    let config =
        move |me| Config { busy: true, trains: false, ..Config::loopback(me, peers.clone(), 1) };
    let (client, server) = (config(CLIENT), config(SERVER));
    let serve = move |stop: &AtomicBool| {
        let (mut app, mut content) = (Server, Zeros::default());
        let mut host = Host::new(server, b, endpoint(), &mut app, &mut content).unwrap();
        host.run(Dur::from_ms(60_000), |_| stop.load(Ordering::Relaxed)).unwrap();
    };
    beside(serve, || {
        let mut app = Client { size: size as u64, start: Instant::now(), times: Vec::new() };
        let mut content = Zeros::default();
        let mut host = Host::new(client, a, endpoint(), &mut app, &mut content).unwrap();
        let all = (WARM + REQUESTS) as u64;
        assert!(host.run(Dur::from_ms(60_000), |c| c.delivered >= all).unwrap(), "too slow");
        drop(host);
        assert!(content.received >= all * size as u64);
        app.times.split_off(WARM)
    })
}
