//! Hosts with keys, and one between them that has none: he sees every datagram, can change and
//! repeat them, and nothing comes of it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use endpoint::{App, AppCx, Endpoint};
use transports::ndp::{Config as NdpConfig, Ndp};
use trimline_host::{AddressBook, Config, Counters, Error, Host, Key, Pattern, bind};
use units::{Dur, HostId};

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);
const LIMIT: Dur = Dur::from_ms(20_000);
const MESSAGES: u64 = 20;
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Sends so many messages to its peer.
struct Sends(HostId, u64);

impl App for Sends {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..self.1 {
            cx.submit(self.0, 20_000);
        }
    }
}

fn other(me: HostId) -> HostId {
    if me == CLIENT { SERVER } else { CLIENT }
}

fn ndp() -> Box<dyn Endpoint> {
    Box::new(Ndp::new(NdpConfig::paper(8_000)).unwrap())
}

/// `me`, with `key` for its only peer, which it believes to be at `peer`.
fn config(me: HostId, peer: SocketAddr, key: Option<Key>) -> Config {
    let keys = key.map(|key| (other(me), key)).into_iter().collect();
    Config { keys, ..Config::loopback(me, AddressBook::from([(other(me), peer)]), 7) }
}

/// Run a host until `done`, or for `limit`; its counters and whether it was done.
fn run(
    config: Config,
    socket: UdpSocket,
    messages: u64,
    limit: Dur,
    done: impl FnMut(&Counters) -> bool,
) -> (Counters, bool) {
    let (mut app, mut content) = (Sends(other(config.me), messages), Pattern::default());
    let mut host = Host::new(config, socket, ndp(), &mut app, &mut content).unwrap();
    let was_done = host.run(limit, done).unwrap();
    (*host.counters(), was_done)
}

/// Who is between client and server: each believes the other to be at one of his two sockets.
struct Between {
    to_client: UdpSocket,
    to_server: UdpSocket,
    client: SocketAddr,
    server: SocketAddr,
}

impl Between {
    fn new(client: SocketAddr, server: SocketAddr) -> Self {
        let socket = || {
            let socket = UdpSocket::bind(ANY).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            socket
        };
        Self { to_client: socket(), to_server: socket(), client, server }
    }

    /// Where the client believes the server to be.
    fn for_client(&self) -> SocketAddr {
        self.to_client.local_addr().unwrap()
    }

    fn for_server(&self) -> SocketAddr {
        self.to_server.local_addr().unwrap()
    }

    /// Hand on what comes, and send it back. Of every tenth packet with payload only the header
    /// goes back, and nothing on.
    fn send_back(&self, stop: &AtomicBool) {
        let mut bytes = vec![0; 65_536];
        let mut long = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            let ways = [
                (&self.to_client, self.client, &self.to_server, self.server),
                (&self.to_server, self.server, &self.to_client, self.client),
            ];
            for (from, source, to, destination) in ways {
                while let Ok(len) = from.recv(&mut bytes) {
                    let mut copy = bytes[..len].to_vec();
                    long += u64::from(len > 1_000);
                    if len > 1_000 && long.is_multiple_of(10) {
                        let left = wire::shim::trim(&mut copy, 64);
                        copy.truncate(left);
                    } else {
                        to.send_to(&bytes[..len], destination).unwrap();
                    }
                    wire::shim::bounce(&mut copy);
                    from.send_to(&copy, source).unwrap();
                }
            }
        }
    }

    /// Hand on what comes, as `change` leaves it, until `stop`. All that the client sent, as it
    /// was.
    fn run(&self, stop: &AtomicBool, change: impl Fn(&mut [u8])) -> Vec<Vec<u8>> {
        let (mut seen, mut bytes) = (Vec::new(), vec![0; 65_536]);
        while !stop.load(Ordering::Relaxed) {
            if let Ok(len) = self.to_client.recv(&mut bytes) {
                seen.push(bytes[..len].to_vec());
                change(&mut bytes[..len]);
                self.to_server.send_to(&bytes[..len], self.server).unwrap();
            }
            while let Ok(len) = self.to_server.recv(&mut bytes) {
                self.to_client.send_to(&bytes[..len], self.client).unwrap();
            }
        }
        seen
    }
}

/// All messages arrive over him who is between; then the server starts again, and he sends it all
/// that the client sent. How many of them are delivered again.
fn delivered_again(key: Option<Key>) -> u64 {
    let (client, server) = (bind(ANY).unwrap(), bind(ANY).unwrap());
    let at_server = server.local_addr().unwrap();
    let between = Between::new(client.local_addr().unwrap(), at_server);
    let stop = AtomicBool::new(false);
    let of_server = config(SERVER, between.for_server(), key.clone());
    let seen = std::thread::scope(|scope| {
        let stop = &stop;
        let one = scope.spawn(|| between.run(stop, |_| ()));
        let stopped = move |_: &Counters| stop.load(Ordering::Relaxed);
        let other = scope.spawn(move || run(of_server, server, 0, LIMIT, stopped));
        let of_client = config(CLIENT, between.for_client(), key.clone());
        let (counters, done) = run(of_client, client, MESSAGES, LIMIT, |c| c.acked == MESSAGES);
        stop.store(true, Ordering::Relaxed);
        assert!(done, "{counters:?}");
        let (counters, _) = other.join().unwrap();
        assert_eq!((counters.delivered, counters.forged), (MESSAGES, 0), "{counters:?}");
        one.join().unwrap()
    });
    assert!(seen.len() as u64 >= 3 * MESSAGES);
    let again = bind(at_server).unwrap();
    let of_server = config(SERVER, between.for_server(), key);
    std::thread::scope(|scope| {
        let limit = Dur::from_ms(500);
        let other =
            scope.spawn(move || run(of_server, again, 0, limit, |c| c.delivered == MESSAGES));
        std::thread::sleep(Duration::from_millis(50));
        for datagram in &seen {
            between.to_server.send_to(datagram, at_server).unwrap();
            std::thread::sleep(Duration::from_micros(200));
        }
        let (counters, _) = other.join().unwrap();
        assert!(counters.received > 0, "{counters:?}");
        counters.delivered
    })
}

#[test]
fn what_is_repeated_to_a_host_that_has_started_again_is_not_delivered_again() {
    assert_eq!(delivered_again(Some(Key::new([1; 32]))), 0);
    assert!(delivered_again(None) > 0, "without keys what was sent first is");
}

/// He changes a byte of payload in every third datagram, and makes the checks anew.
#[test]
fn what_is_changed_is_not_delivered() {
    const PAYLOAD: usize = wire::shim::SHIM_LEN + wire::shim::TAGS_LEN + wire::ndp::LEN;
    let (client, server) = (bind(ANY).unwrap(), bind(ANY).unwrap());
    let between = Between::new(client.local_addr().unwrap(), server.local_addr().unwrap());
    let key = || Some(Key::new([2; 32]));
    let stop = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    let change = |datagram: &mut [u8]| {
        if datagram.len() > PAYLOAD + 100 && count.fetch_add(1, Ordering::Relaxed).is_multiple_of(3)
        {
            datagram[PAYLOAD + 50] ^= 1;
            wire::shim::seal(datagram, None);
        }
    };
    let of_server = config(SERVER, between.for_server(), key());
    std::thread::scope(|scope| {
        scope.spawn(|| between.run(&stop, change));
        let other = scope.spawn(|| {
            let (mut app, mut content) = (Sends(CLIENT, 0), Pattern::default());
            let mut host = Host::new(of_server, server, ndp(), &mut app, &mut content).unwrap();
            host.run(LIMIT, |_| stop.load(Ordering::Relaxed)).unwrap();
            let counters = *host.counters();
            drop(host);
            (counters, content)
        });
        let of_client = config(CLIENT, between.for_client(), key());
        let (counters, done) = run(of_client, client, MESSAGES, LIMIT, |c| c.acked == MESSAGES);
        stop.store(true, Ordering::Relaxed);
        assert!(done, "{counters:?}");
        let (counters, content) = other.join().unwrap();
        assert!(counters.forged > MESSAGES / 3, "{counters:?}");
        assert_eq!((counters.delivered, content.intact), (MESSAGES, MESSAGES), "{counters:?}");
    });
}

/// He returns to both what they send: control packets and whole data as they are, and now and then
/// a header alone, as a switch does. Nobody takes his own packets for his peer's.
#[test]
fn what_is_sent_back_is_nobody_s_but_his_who_sent_it() {
    for key in [Some(Key::new([7; 32])), None] {
        let (client, server) = (bind(ANY).unwrap(), bind(ANY).unwrap());
        let between = Between::new(client.local_addr().unwrap(), server.local_addr().unwrap());
        let of_client = config(CLIENT, between.for_client(), key.clone());
        let of_server = config(SERVER, between.for_server(), key);
        let (stop, both) = (AtomicBool::new(false), AtomicU64::new(0));
        let done = |told: &mut bool, c: &Counters| {
            let all = c.acked == MESSAGES && c.delivered == MESSAGES;
            both.fetch_add(u64::from(all && !*told), Ordering::Relaxed);
            *told |= all;
            both.load(Ordering::Relaxed) == 2
        };
        let counters = std::thread::scope(|scope| {
            scope.spawn(|| between.send_back(&stop));
            let (mut told, mut told_too) = (false, false);
            let one = scope
                .spawn(move || run(of_server, server, MESSAGES, LIMIT, |c| done(&mut told, c)));
            let (counters, _) = run(of_client, client, MESSAGES, LIMIT, |c| done(&mut told_too, c));
            let others = one.join().unwrap().0;
            stop.store(true, Ordering::Relaxed);
            [counters, others]
        });
        for counters in counters {
            assert_eq!((counters.acked, counters.delivered), (MESSAGES, MESSAGES), "{counters:?}");
            assert_eq!((counters.failed, counters.contradictions), (0, 0), "{counters:?}");
            assert!(counters.malformed > 0, "{counters:?}");
        }
    }
}

/// Another key, or none on one side: nothing is delivered, and the message fails.
#[test]
fn hosts_with_different_keys_do_not_hear_one_another() {
    let keys = [(Some([3; 32]), Some([4; 32])), (None, Some([4; 32])), (Some([3; 32]), None)];
    for (mine, theirs) in keys {
        let (client, server) = (bind(ANY).unwrap(), bind(ANY).unwrap());
        let of_client = config(CLIENT, server.local_addr().unwrap(), mine.map(Key::new));
        let of_server = config(SERVER, client.local_addr().unwrap(), theirs.map(Key::new));
        let limit = Dur::from_ms(300);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(of_server, server, 0, limit, |_| false));
            run(of_client, client, 1, limit, |_| false);
            let (counters, _) = other.join().unwrap();
            assert_eq!((counters.delivered, counters.placed), (0, 0), "{counters:?}");
            assert!(counters.forged > 0, "{counters:?}");
        });
    }
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let (client, nobody) = (bind(ANY).unwrap(), UdpSocket::bind(ANY).unwrap());
    let config = config(CLIENT, nobody.local_addr().unwrap(), Some(Key::new([5; 32])));
    let (counters, done) = run(config, client, 2, LIMIT, |c| c.failed == 2);
    assert!(done, "{counters:?}");
    assert!((100..=400).contains(&counters.sent), "{counters:?}");
}

#[test]
fn a_peer_without_key_and_a_life_of_zero_are_refused() {
    let refused = |config: Config| {
        let (mut app, mut content) = (Sends(CLIENT, 0), Pattern::default());
        let host = Host::new(config, bind(ANY).unwrap(), ndp(), &mut app, &mut content);
        host.err().expect("it is refused")
    };
    let mut partly = config(CLIENT, ANY, Some(Key::new([6; 32])));
    partly.peers.insert(HostId(5), ANY);
    let error = refused(partly);
    assert!(matches!(error, Error::NoKey(HostId(5))), "{error}");
    assert!(error.to_string().contains("host 5 has no key"), "{error}");
    let zero = Config { incarnation: 0, ..config(CLIENT, ANY, Some(Key::new([6; 32]))) };
    assert!(matches!(refused(zero), Error::NoLife));
}
