//! What one host may do to another: start again at the same address with the same configuration,
//! lie in its headers, and send more at once than the other has memory for.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use endpoint::{App, AppCx, Endpoint};
use trimline_host::{AddressBook, Config, Counters, Host, Pattern, bind};
use units::{Dur, HostId, MsgId};

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);
/// Typically milliseconds.
const LIMIT: Dur = Dur::from_ms(10_000);

/// Sends messages of these lengths to the server, all at once.
struct Burst(Vec<u64>);

impl App for Burst {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for &len in &self.0 {
            cx.submit(SERVER, len);
        }
    }
}

fn ndp() -> Box<dyn Endpoint> {
    use transports::ndp::{Config, Ndp};
    Box::new(Ndp::new(Config::paper(8_000)).unwrap())
}

fn newreno() -> Box<dyn Endpoint> {
    use transports::newreno::{Config, NewReno};
    Box::new(NewReno::new(Config::linux_datacenter(8_000)).unwrap())
}

/// Two sockets, the client's and the server's, and where they are.
fn sockets() -> (UdpSocket, UdpSocket, AddressBook) {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (client, server) = (bind(any).unwrap(), bind(any).unwrap());
    let book = [(CLIENT, client.local_addr().unwrap()), (SERVER, server.local_addr().unwrap())];
    (client, server, book.into())
}

/// A host that only receives, on a thread of its own.
struct Server {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Counters, Pattern)>,
}

impl Server {
    fn start(config: Config, socket: UdpSocket, endpoint: Box<dyn Endpoint>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut app, mut content) = (Burst(vec![]), Pattern::default());
            let mut host = Host::new(config, socket, endpoint, &mut app, &mut content).unwrap();
            host.run(LIMIT + LIMIT, |_| stopped.load(Ordering::Relaxed)).unwrap();
            let counters = *host.counters();
            drop(host);
            (counters, content)
        });
        Self { stop, thread }
    }

    fn stop(self) -> (Counters, Pattern) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// One life of the client, until all its messages are acked.
fn live(book: &AddressBook, socket: UdpSocket, endpoint: Box<dyn Endpoint>, lengths: Vec<u64>) {
    let sent = lengths.len() as u64;
    let (mut app, mut content) = (Burst(lengths), Pattern::default());
    let config = Config::loopback(CLIENT, book.clone(), 1);
    let mut host = Host::new(config, socket, endpoint, &mut app, &mut content).unwrap();
    assert!(host.run(LIMIT, |c| c.acked == sent).unwrap(), "{:?}", host.counters());
}

fn a_restarted_client_is_heard(transport: fn() -> Box<dyn Endpoint>) {
    const LIVES: u64 = 3;
    let (client, server, book) = sockets();
    let config = Config::loopback(SERVER, book.clone(), 7);
    let server = Server::start(config, server, transport());
    let mut client = Some(client);
    for _ in 0..LIVES {
        let socket = client.take().unwrap_or_else(|| bind(book[&CLIENT]).unwrap());
        live(&book, socket, transport(), vec![5_000]);
    }
    let (counters, content) = server.stop();
    assert_eq!((counters.delivered, content.intact), (LIVES, LIVES), "{counters:?}");
    assert_eq!((counters.failed, counters.contradictions), (0, 0));
}

#[test]
fn a_restarted_ndp_client_is_heard() {
    a_restarted_client_is_heard(ndp);
}

#[test]
fn a_restarted_newreno_client_is_heard() {
    a_restarted_client_is_heard(newreno);
}

/// A datagram whose two headers disagree about the place of its bytes: the middle of the message
/// in one, the second of two packets in the other.
fn forged(msg: MsgId, seq: u32, offset: u64) -> Vec<u8> {
    use wire::ndp::{Data, Header, Kind, LEN, PROTOCOL, Repr};
    let data = Data {
        seq,
        syn: true,
        last: false,
        retransmission: false,
        chopped: false,
        prio: 0,
        len: 8_000,
        pacer_echo: None,
    };
    let mut hdr = [0; 64];
    let mut header = Header::new(&mut hdr[..]).unwrap();
    Repr { connection: msg.0, kind: Kind::Data(data) }.emit(&mut header);
    let shim = wire::shim::ShimRepr {
        src: CLIENT,
        dst: SERVER,
        proto: PROTOCOL,
        wire_len: 8_064,
        msg,
        offset,
        span_len: 8_000,
        ..Default::default()
    };
    let mut datagram = vec![0; 9_000];
    let len = shim.emit(&hdr[..LEN], 8_000, &mut datagram).unwrap();
    datagram.truncate(len);
    datagram
}

#[test]
fn headers_that_disagree_do_not_stop_a_host() {
    let (client, server, book) = sockets();
    let config = Config::loopback(SERVER, book.clone(), 7);
    let server = Server::start(config, server, ndp());
    for (seq, offset) in [(1, 0), (1, 8_000), (0, 8_000), (0, 4_000), (7, u64::MAX - 8_000)] {
        client.send_to(&forged(MsgId(5), seq, offset), book[&SERVER]).unwrap();
    }
    live(&book, client, ndp(), vec![100_000]);
    let (counters, content) = server.stop();
    assert_eq!((counters.delivered, content.intact), (1, 1), "{counters:?}");
}

#[test]
fn messages_that_fill_the_memory_together_all_arrive() {
    let (client, server, book) = sockets();
    let config = Config { max_buffered: 600_000, ..Config::loopback(SERVER, book.clone(), 7) };
    let server = Server::start(config, server, newreno());
    live(&book, client, newreno(), vec![500_000; 2]);
    let (counters, content) = server.stop();
    assert_eq!((counters.delivered, content.intact), (2, 2), "{counters:?}");
}
