//! What one host may do to another: start again at the same address with the same configuration,
//! lie in its headers, and send more at once than the other has memory for.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use endpoint::{App, AppCx, AppEvent, Endpoint};
use trimline_host::{AddressBook, Config, Counters, Host, Key, Pattern, bind};
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
    use transports::tcp::{Config, Tcp};
    Box::new(Tcp::new(Config::linux_datacenter(8_000)).unwrap())
}

fn homa() -> Box<dyn Endpoint> {
    use transports::homa::{Config, Cutoffs, Homa};
    let cutoffs = Cutoffs::new(&[433, 2_339, 6_756]).unwrap();
    Box::new(Homa::new(Config { payload: 8_000, ..Config::paper(cutoffs) }).unwrap())
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

/// `me` on loopback, with a key for each peer if there are `keys`.
fn config(me: HostId, book: &AddressBook, keys: bool) -> Config {
    let key = |&host: &HostId| (host, Key::new([42; 32]));
    let keys = if keys { book.keys().map(key).collect() } else { BTreeMap::new() };
    Config { keys, ..Config::loopback(me, book.clone(), u64::from(me.0)) }
}

/// One life of the client, until all its messages are acked.
fn live(config: Config, socket: UdpSocket, endpoint: Box<dyn Endpoint>, lengths: Vec<u64>) {
    let sent = lengths.len() as u64;
    let (mut app, mut content) = (Burst(lengths), Pattern::default());
    let mut host = Host::new(config, socket, endpoint, &mut app, &mut content).unwrap();
    assert!(host.run(LIMIT, |c| c.acked == sent).unwrap(), "{:?}", host.counters());
}

fn a_restarted_client_is_heard(transport: fn() -> Box<dyn Endpoint>) {
    for keys in [false, true] {
        every_life_is_heard(transport, keys);
    }
}

fn every_life_is_heard(transport: fn() -> Box<dyn Endpoint>, keys: bool) {
    const LIVES: u64 = 3;
    let (client, server, book) = sockets();
    let server = Server::start(config(SERVER, &book, keys), server, transport());
    let mut client = Some(client);
    for _ in 0..LIVES {
        let socket = client.take().unwrap_or_else(|| bind(book[&CLIENT]).unwrap());
        live(config(CLIENT, &book, keys), socket, transport(), vec![5_000]);
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

#[test]
fn a_restarted_homa_client_is_heard() {
    a_restarted_client_is_heard(homa);
}

#[test]
fn a_restarted_phost_client_is_heard() {
    a_restarted_client_is_heard(|| {
        use transports::phost::{Config, PHost};
        Box::new(PHost::new(Config::authors(8_000)).unwrap())
    });
}

#[test]
fn a_restarted_pfabric_client_is_heard() {
    a_restarted_client_is_heard(|| {
        use transports::pfabric::{Config, PFabric};
        Box::new(PFabric::new(Config::paper(8_000)).unwrap())
    });
}

#[test]
fn a_restarted_rdma_client_is_heard() {
    a_restarted_client_is_heard(|| {
        use transports::rdma::{Config, Rdma, RuleConfig};
        Box::new(Rdma::new(Config::roce(1_024, RuleConfig::Unlimited)).unwrap())
    });
}

/// Sends one message after the other to the server, whatever becomes of them.
#[derive(Default)]
struct Steady {
    acked: u64,
    failed: u64,
}

impl App for Steady {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        cx.submit(SERVER, 20_000);
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Acked(_) => self.acked += 1,
            AppEvent::Failed(..) => self.failed += 1,
            _ => return,
        }
        self.on_start(cx);
    }
}

/// The client lives on while its server starts again twice, and learns of it.
fn a_restarted_server_is_found(transport: fn() -> Box<dyn Endpoint>) {
    for keys in [false, true] {
        every_life_is_found(transport, keys);
    }
}

fn every_life_is_found(transport: fn() -> Box<dyn Endpoint>, keys: bool) {
    let (client, server, book) = sockets();
    let mut server = Some(server);
    let (mut app, mut content) = (Steady::default(), Pattern::default());
    let mut host =
        Host::new(config(CLIENT, &book, keys), client, transport(), &mut app, &mut content)
            .unwrap();
    for life in 1..=3 {
        let socket = server.take().unwrap_or_else(|| bind(book[&SERVER]).unwrap());
        let life_of_server = Server::start(config(SERVER, &book, keys), socket, transport());
        let before = host.counters().acked;
        let more = |c: &Counters| c.acked >= before + 20;
        assert!(host.run(LIMIT + LIMIT, more).unwrap(), "life {life}: {:?}", host.counters());
        let (counters, content) = life_of_server.stop();
        // The last one of the life before may be confirmed in this one.
        assert!(counters.delivered >= 19 && content.damaged.is_empty(), "{counters:?}");
        // One may be under way when its server stops, and one when it is found to have started.
        assert!(host.counters().failed <= 2 * life, "{:?}", host.counters());
    }
}

#[test]
fn a_restarted_homa_server_is_found() {
    a_restarted_server_is_found(homa);
}

#[test]
fn a_restarted_ndp_server_is_found() {
    a_restarted_server_is_found(ndp);
}

#[test]
fn a_restarted_newreno_server_is_found() {
    a_restarted_server_is_found(newreno);
}

/// A datagram of the client's: `len` bytes at `offset` of `msg` behind the header `hdr`.
fn datagram(proto: u8, hdr: &[u8], msg: MsgId, offset: u64, len: u16) -> Vec<u8> {
    let shim = wire::shim::ShimRepr {
        src: CLIENT,
        dst: SERVER,
        proto,
        wire_len: len + 64,
        msg,
        offset,
        span_len: len.into(),
        ..Default::default()
    };
    let mut datagram = vec![0; 9_000];
    let len = shim.emit(hdr, len, &mut datagram).unwrap();
    datagram.truncate(len);
    wire::shim::seal(&mut datagram, None);
    datagram
}

/// NDP says packet `seq` of 8000 bytes, the environment says `offset`.
fn forged_ndp(seq: u32, offset: u64) -> Vec<u8> {
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
    let mut hdr = [0; LEN];
    let mut header = Header::new(&mut hdr[..]).unwrap();
    Repr { connection: 5, kind: Kind::Data(data) }.emit(&mut header);
    datagram(PROTOCOL, &hdr, MsgId(5), offset, 8_000)
}

/// TCP says that this is the beginning of connection `conn`, the environment says `offset` of
/// `msg`.
fn forged_tcp(conn: u16, control: wire::tcp::Control, msg: u64, offset: u64) -> Vec<u8> {
    use wire::tcp::{HEADER_LEN, PROTO, Repr};
    // The sender's port has the highest bit.
    let (src_port, dst_port) = (0x8000 | conn, conn);
    let mut hdr = [0; HEADER_LEN];
    Repr {
        src_port,
        dst_port,
        seq: 0,
        ack: 0,
        control,
        window: 0,
        sack: wire::tcp::SackBlocks::NONE,
        timestamps: None,
    }
    .emit(&mut hdr)
    .unwrap();
    datagram(PROTO, &hdr, MsgId(msg), offset, 1_000)
}

/// What a server has counted that got `forged` before an honest message of the same host.
fn after(forged: &[Vec<u8>], transport: fn() -> Box<dyn Endpoint>) -> Counters {
    let (client, server, book) = sockets();
    let of_server = config(SERVER, &book, false);
    let server = Server::start(of_server, server, transport());
    for datagram in forged {
        client.send_to(datagram, book[&SERVER]).unwrap();
    }
    live(config(CLIENT, &book, false), client, transport(), vec![100_000]);
    let (counters, content) = server.stop();
    assert_eq!((counters.delivered, content.intact), (1, 1), "{counters:?}");
    counters
}

#[test]
fn ndp_headers_that_disagree_do_not_stop_a_host() {
    let forged = [(1, 0), (1, 8_000), (0, 8_000), (0, 4_000), (7, u64::MAX - 8_000)];
    after(&forged.map(|(seq, offset)| forged_ndp(seq, offset)), ndp);
}

#[test]
fn tcp_headers_that_disagree_do_not_stop_a_host() {
    use wire::tcp::Control;
    let end = Control::PSH.with(Control::FIN);
    let counters = after(
        &[
            // The same bytes on two connections, and more of them.
            forged_tcp(1, Control::ACK, 5, 0),
            forged_tcp(2, Control::ACK, 5, 0),
            forged_tcp(3, Control::ACK, 5, 1_000),
            // The end of a message without its beginning, two times.
            forged_tcp(4, end, 6, 5_000),
            forged_tcp(5, end, 6, 0),
        ],
        newreno,
    );
    assert_eq!((counters.contradictions, counters.failed), (5, 2), "{counters:?}");
}

#[test]
fn messages_that_fill_the_memory_together_all_arrive() {
    let (client, server, book) = sockets();
    let of_server = Config { max_buffered: 600_000, ..config(SERVER, &book, false) };
    let server = Server::start(of_server, server, newreno());
    live(config(CLIENT, &book, false), client, newreno(), vec![500_000; 2]);
    let (counters, content) = server.stop();
    assert_eq!((counters.delivered, content.intact), (2, 2), "{counters:?}");
}
