//! `make bench-host`: requests and responses between two threads, each transport beside plain
//! packets and the kernel's TCP in interleaved rounds; then what refused packets cost, long messages,
//! and many short ones.
//! UDP and TCP go over loopback, AF_XDP over a virtual link between two network namespaces. Both
//! threads spin, and each wants a core of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use endpoint::{App, AppCx, AppEvent, Endpoint, Msg};
use host::{AddressBook, Config, Content, Host, Socket};
use units::{Dur, HostId, MsgKey, Rate};

use place::{CLIENT, Place, SERVER, at, beside, socket};

mod place;
mod raw;
mod refused;

const ROUNDS: usize = 5;
const REQUESTS: usize = 2_000;
/// Before those that count: caches and windows are warm then.
const WARM: usize = 200;
const SIZES: [usize; 2] = [64, 1_000];

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{ROUNDS} rounds of {REQUESTS} requests; load before: {}", load.trim());
    let frames = match place::make_link() {
        Ok(()) => true,
        Err(why) => {
            println!("AF_XDP: skipped: {why}");
            false
        }
    };
    requests(frames);
    if wanted("refused") {
        refused::rows();
    }
    if wanted(LONG_HEADING) {
        long_messages(frames);
    }
    if wanted(SHORT_HEADING) {
        short_messages(frames);
    }
}

/// Whether a row with this name is asked for: all are, unless arguments say a part of some.
fn wanted(name: &str) -> bool {
    let mut parts = std::env::args().skip(1).filter(|part| !part.starts_with("--")).peekable();
    parts.peek().is_none() || parts.any(|part| name.contains(&part))
}

/// Of packets with so many bytes of payload.
type Make = fn(u16) -> Box<dyn Endpoint>;

const TRANSPORTS: [(&str, Make); 3] = [("NDP", ndp), ("Homa", homa), ("NewReno", newreno)];

/// A round: how long each request took until its response, ns.
type Round = fn(usize) -> Vec<u64>;

const CONTESTANTS: [(&str, Place, Round); 12] = [
    ("UDP, a packet each way", Place::Loopback, |size| raw::udp(size, 1)),
    ("UDP, two each way", Place::Loopback, |size| raw::udp(size, 2)),
    ("kernel TCP, kept", Place::Loopback, raw::tcp_kept),
    ("kernel TCP, fresh", Place::Loopback, raw::tcp_fresh),
    ("NDP over UDP", Place::Loopback, |size| hosts(Place::Loopback, size, ndp)),
    ("Homa over UDP", Place::Loopback, |size| hosts(Place::Loopback, size, homa)),
    ("NewReno over UDP", Place::Loopback, |size| hosts(Place::Loopback, size, newreno)),
    ("AF_XDP, a packet each way", Place::Frames, |size| raw::frames(size, 1)),
    ("AF_XDP, two each way", Place::Frames, |size| raw::frames(size, 2)),
    ("NDP over AF_XDP", Place::Frames, |size| hosts(Place::Frames, size, ndp)),
    ("Homa over AF_XDP", Place::Frames, |size| hosts(Place::Frames, size, homa)),
    ("NewReno over AF_XDP", Place::Frames, |size| hosts(Place::Frames, size, newreno)),
];

fn requests(frames: bool) {
    println!("{:<26} {:>6} {:>10} {:>10}", "", "bytes", "median us", "p99 us");
    for size in SIZES {
        let mut all = CONTESTANTS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (times, (name, place, run)) in all.iter_mut().zip(CONTESTANTS) {
                if wanted(name) && (frames || place == Place::Loopback) {
                    times.extend(run(size));
                }
            }
        }
        for (times, (name, ..)) in all.iter_mut().zip(CONTESTANTS) {
            times.sort_unstable();
            let at = |share: f64| times.get((times.len() as f64 * share) as usize);
            if let (Some(&median), Some(&tail)) = (at(0.5), at(0.99)) {
                let (median, tail) = (median as f64 / 1e3, tail as f64 / 1e3);
                println!("{name:<26} {size:>6} {median:>10.2} {tail:>10.2}");
            }
        }
    }
}

/// Messages of a row, and how many of them are unfinished at most.
#[derive(Clone, Copy)]
struct Messages {
    count: u64,
    size: u64,
    at_once: u64,
}

const LONG: Messages = Messages { count: 300, size: 1_000_000, at_once: 4 };
const LONG_HEADING: &str = "1 MB messages, Gb/s";
const SHORT_HEADING: &str = "64 B messages, million/s";
const SHORT: Messages = Messages { count: 200_000, size: 64, at_once: 1_000 };

/// The middle of some figures of rounds.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// How messages travel: over what, and whether in trains.
const MANNERS: [(&str, Place, bool); 3] = [
    ("UDP, single", Place::Loopback, false),
    ("UDP, trains", Place::Loopback, true),
    ("AF_XDP", Place::Frames, false),
];

/// A table of every transport in every manner, by what `figure` makes of the rate of messages.
fn table(frames: bool, payload: u16, messages: Messages, figure: fn(f64) -> f64) {
    let mut all = TRANSPORTS.map(|_| MANNERS.map(|_| Vec::new()));
    for _ in 0..ROUNDS {
        for (row, (_, endpoint)) in all.iter_mut().zip(TRANSPORTS) {
            for (figures, (_, place, trains)) in row.iter_mut().zip(MANNERS) {
                if frames || place == Place::Loopback {
                    figures.push(figure(rate(place, trains, payload, messages, endpoint)));
                }
            }
        }
    }
    for (row, (name, _)) in all.into_iter().zip(TRANSPORTS) {
        let figures = row.into_iter().filter(|figures| !figures.is_empty()).map(median);
        let figures: Vec<String> = figures.map(|figure| format!("{figure:>12.2}")).collect();
        println!("{name:<26} {payload:>6} {}", figures.join(" "));
    }
}

fn heading(what: &str) {
    let names: Vec<String> = MANNERS.map(|(name, ..)| format!("{name:>12}")).into();
    println!("\n{what:<26} {:>6} {}", "bytes", names.join(" "));
}

fn long_messages(frames: bool) {
    heading(LONG_HEADING);
    for payload in [1_400, 8_900] {
        if frames {
            // Ethernet's, or long ones; with IP, UDP and what Trimline adds to a payload.
            place::set_mtu(if payload < 1_500 { 1_600 } else { 9_200 });
            let flood = median((0..ROUNDS).map(|_| raw::flood(payload.into())).collect());
            println!("{:<26} {payload:>6} {:>12} {:>12} {flood:>12.2}", "plain packets", "", "");
        }
        table(frames, payload, LONG, |messages| 8e-9 * LONG.size as f64 * messages);
    }
}

fn short_messages(frames: bool) {
    heading(SHORT_HEADING);
    if frames {
        place::set_mtu(1_600);
        let size = SHORT.size as usize;
        let rate = median((0..ROUNDS).map(|_| raw::echoed(size, SHORT.count)).collect());
        println!("{:<26} {size:>6} {:>12} {:>12} {rate:>12.2}", "plain packets, answered", "", "");
    }
    table(frames, 1_400, SHORT, |messages| messages / 1e6);
}

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
struct Sender(Messages);

impl App for Sender {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..self.0.at_once {
            cx.submit_as(Msg::new(SERVER, self.0.size));
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        if let AppEvent::Acked(_) = event {
            cx.submit_as(Msg::new(SERVER, self.0.size));
        }
    }
}

struct Sink;

impl App for Sink {
    fn on_start(&mut self, _: &mut AppCx<'_>) {}

    fn on_event(&mut self, _: &mut AppCx<'_>, _: AppEvent) {}
}

/// A host's configuration, which knows the other one.
fn config(place: Place, me: HostId) -> Config {
    let other = HostId(1 - me.0);
    let peers = AddressBook::from([(other, at(place, other).into())]);
    // No link is faster: a pacer by its rate does not hold anything back.
    let rate = Rate(100_000_000_000);
    Config { busy: true, trains: false, rate, ..Config::loopback(me, peers, 1) }
}

/// Run the server's side until told to stop.
fn serve(
    (socket, config): (Socket, Config),
    app: &mut dyn App,
    endpoint: Box<dyn Endpoint>,
    stop: &AtomicBool,
) {
    let mut content = Zeros::default();
    let mut host = Host::new(config, socket, endpoint, app, &mut content).unwrap();
    host.run(Dur::from_ms(60_000), |_| stop.load(Ordering::Relaxed)).unwrap();
}

/// Messages a second that a host delivers to another one.
fn rate(place: Place, trains: bool, payload: u16, messages: Messages, endpoint: Make) -> f64 {
    let configure = move |host| Config { trains, ..config(place, host) };
    let prepare = move || (socket(place, SERVER), configure(SERVER));
    let server = move |made, stop: &AtomicBool| serve(made, &mut Sink, endpoint(payload), stop);
    beside(place, prepare, server, || {
        let (mut app, mut content) = (Sender(messages), Zeros::default());
        let (socket, endpoint) = (socket(place, CLIENT), endpoint(payload));
        let mut host =
            Host::new(configure(CLIENT), socket, endpoint, &mut app, &mut content).unwrap();
        let start = Instant::now();
        assert!(host.run(Dur::from_ms(60_000), |c| c.acked >= messages.count).unwrap(), "too slow");
        messages.count as f64 / start.elapsed().as_secs_f64()
    })
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

/// Requests and responses of `size` bytes.
fn hosts(place: Place, size: usize, endpoint: Make) -> Vec<u64> {
    const PAYLOAD: u16 = 1_300;
    let prepare = move || (socket(place, SERVER), config(place, SERVER));
    let server = move |made, stop: &AtomicBool| serve(made, &mut Server, endpoint(PAYLOAD), stop);
    beside(place, prepare, server, || {
        let mut app = Client { size: size as u64, start: Instant::now(), times: Vec::new() };
        let (mut content, socket) = (Zeros::default(), socket(place, CLIENT));
        let config = config(place, CLIENT);
        let mut host =
            Host::new(config, socket, endpoint(PAYLOAD), &mut app, &mut content).unwrap();
        let all = (WARM + REQUESTS) as u64;
        assert!(host.run(Dur::from_ms(60_000), |c| c.delivered >= all).unwrap(), "too slow");
        drop(host);
        assert!(content.received >= all * size as u64);
        app.times.split_off(WARM)
    })
}
