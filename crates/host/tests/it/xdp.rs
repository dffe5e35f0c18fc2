//! Hosts over AF_XDP, in two network namespaces of the test's own, joined by a virtual link. As
//! root; elsewhere the tests say that they are skipped, and why.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::IoSliceMut;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use ::xdp::{Filter, OpenError};
use endpoint::{
    App, AppCx, AppEvent, Cx, Endpoint, Flags, Msg, Packet, Span, Stat, Submit, Tx, TxPort,
};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::unistd::gettid;
use testkit::hostile::Subject;
use trimline_host::{
    AddressBook, Config, Counters, Error, Host, Pattern, Socket, Way, Xdp, XdpError, bind,
    seeded_faults,
};
use units::{Dur, HostId, MsgId, Time};

use crate::subjects;

/// Takes the longest packets of all kinds.
const MTU: u32 = 9_500;
const PORT: u16 = 4_000;
/// From which packets leave, by their paths.
const PORTS: u16 = 3;
const MESSAGES: u64 = 40;
/// Typically milliseconds.
const LIMIT: Dur = Dur::from_ms(60_000);

/// The two hosts' addresses.
fn at(host: u32) -> SocketAddrV4 {
    SocketAddrV4::new([10, 0, 0, host as u8 + 1].into(), PORT)
}

fn sh(script: &str) {
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success(), "{script}");
}

/// One of two threads that wait for each other. If one of them fails, the other does, too.
struct Pair(mpsc::Sender<i32>, mpsc::Receiver<i32>);

impl Pair {
    fn new() -> [Self; 2] {
        let ((to_b, from_a), (to_a, from_b)) = (mpsc::channel(), mpsc::channel());
        [Self(to_b, from_b), Self(to_a, from_a)]
    }

    /// Wait until the other is here, too. What it says.
    fn meet(&self, say: i32) -> i32 {
        self.0.send(say).unwrap();
        self.1.recv().expect("the other host has failed")
    }
}

/// Call `run` for both hosts, each in a network namespace of its own where its interface is `net`.
fn two_hosts(run: impl Fn(u32, &Pair) + Sync) {
    std::thread::scope(|scope| {
        for (me, other) in (0..).zip(Pair::new()) {
            let run = &run;
            scope.spawn(move || {
                unshare(CloneFlags::CLONE_NEWNET).unwrap();
                let thread = other.meet(gettid().as_raw());
                if me == 0 {
                    sh(&format!(
                        "ip link add name net mtu {MTU} type veth \
                         peer name net mtu {MTU} netns {thread}"
                    ));
                }
                other.meet(0);
                let ip = at(me).ip().to_string();
                sh(&format!("ip addr add {ip}/24 dev net && ip link set net addrgenmode none up"));
                other.meet(0);
                run(me, &other);
                other.meet(0);
            });
        }
    });
}

/// Whether hosts may have AF_XDP here; says why not.
fn may() -> bool {
    let probe = || {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("no namespace: {error}"))?;
        sh("ip link add name probe type veth peer name probed");
        match ::xdp::Socket::open("probe", Filter::All) {
            Err(error @ OpenError::Forbidden(_)) => Err(error.to_string()),
            _ => Ok(()),
        }
    };
    let answer = std::thread::scope(|scope| scope.spawn(probe).join().unwrap());
    answer.inspect_err(|why| println!("skipped: {why}")).is_ok()
}

/// Sends messages of many sizes, four at a time, and counts what comes.
#[derive(Default)]
struct Exchange {
    submitted: u64,
    wrong: u64,
}

fn size(n: u64) -> u64 {
    1 + n * n * 61 % 20_000
}

impl Exchange {
    fn submit(&mut self, cx: &mut AppCx<'_>) {
        if self.submitted < MESSAGES {
            cx.submit(HostId(1 - cx.me.0), size(self.submitted));
            self.submitted += 1;
        }
    }
}

impl App for Exchange {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        (0..4).for_each(|_| self.submit(cx));
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Acked(_) => self.submit(cx),
            AppEvent::Delivered { key, len, .. } => {
                self.wrong += u64::from(len != size(key.id.0));
            }
            _ => {}
        }
    }
}

/// One host sends and receives over `socket` until `both` are done.
fn exchange(me: u32, socket: Socket, endpoint: Box<dyn Endpoint>, name: &str, both: &AtomicU32) {
    let peer = (HostId(1 - me), at(1 - me).into());
    let loopback = Config::loopback(HostId(me), AddressBook::from([peer]), 1);
    let ways = BTreeMap::from([(peer.0, Way { paths: 7, hops: 2 })]);
    let config = Config { incarnation: 0, ways, source_ports: PORTS, ..loopback };
    let (mut app, mut content) = (Exchange::default(), Pattern::default());
    let mut host = Host::new(config, socket, endpoint, &mut app, &mut content).unwrap();
    host.set_faults(seeded_faults(1, HostId(me), 20, 20));
    let mut done = false;
    let ended = host.run(LIMIT, |c| {
        if !done && (c.acked, c.delivered) == (MESSAGES, MESSAGES) {
            done = true;
            both.fetch_add(1, Ordering::SeqCst);
        }
        both.load(Ordering::SeqCst) == 2
    });
    let c = *host.counters();
    drop(host);
    assert!(ended.unwrap(), "{name}: not done in time: {c:?}");
    assert_eq!((content.intact, content.damaged.len(), app.wrong), (MESSAGES, 0, 0), "{name}");
    let bytes: u64 = (0..MESSAGES).map(size).sum();
    assert_eq!((content.bytes, c.placed), (bytes, bytes), "{name}: each byte once");
    let ignored = c.malformed + c.misaddressed + c.unknown_peer + c.refused + c.contradictions;
    assert_eq!((ignored, c.damaged, c.failed), (0, 0, 0), "{name}: {c:?}");
    assert!(c.dropped_on_purpose > 0 && c.stats[Stat::Retransmission as usize] > 0, "{name}");
}

/// Every kind of endpoint exchanges messages over sockets that `socket` makes for each host.
fn every_kind(socket: impl Fn(u32) -> Socket + Sync) {
    if !may() {
        return;
    }
    let both = AtomicU32::new(0);
    two_hosts(|me, other| {
        subjects::each(|subject: &Subject<'_>| {
            if subject.endless {
                return;
            }
            both.store(0, Ordering::SeqCst);
            let socket = socket(me);
            other.meet(0);
            exchange(me, socket, (subject.make)(HostId(me)), subject.name, &both);
            other.meet(0);
        });
    });
}

/// What `bind` makes. A process that another test starts has all sockets of this one until it is
/// another program: for so long a port that was closed here is still taken.
fn bound<T, E: Debug>(bind: impl Fn() -> Result<T, E>) -> T {
    for _ in 0..100 {
        if let Ok(socket) = bind() {
            return socket;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    bind().unwrap()
}

#[test]
fn every_transport_runs_over_frames() {
    every_kind(|me| bound(|| Xdp::bind_ports(at(me), PORTS)).into());
}

#[test]
fn frames_and_sockets_understand_each_other() {
    every_kind(|me| match me {
        0 => bound(|| Xdp::bind_ports(at(me), PORTS)).into(),
        _ => bound(|| bind(at(me).into())).into(),
    });
}

/// Sends a packet of each class, by as many paths, and wants to know when they have left.
struct EachClass {
    next: u8,
    /// By bits, what has left.
    left: u16,
}

const CLASSES: u8 = 8;

impl Endpoint for EachClass {
    fn on_submit(&mut self, _: &mut Cx<'_>, _: &Msg) -> Submit {
        Submit::Taken
    }

    fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}

    fn on_timer(&mut self, _: &mut Cx<'_>, _: endpoint::TimerId) {}

    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        if self.next == CLASSES {
            return Tx::Idle;
        }
        let n = self.next;
        self.next += 1;
        *slot = Packet {
            src: cx.me,
            dst: HostId(1),
            class: n,
            path: n.into(),
            flags: if n.is_multiple_of(2) { Flags(0) } else { Flags::ECT },
            token: u32::from(n) + 1,
            wire_len: 100,
            span: Span { msg: MsgId(n.into()), offset: 0, len: 10 },
            ..Packet::EMPTY
        };
        Tx::Sent
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, at: Time) {
        let bit = 1 << token;
        assert!(self.left & bit == 0 && Time::ZERO < at && at <= cx.now, "{token} at {at}");
        self.left |= bit;
    }
}

/// Source port, and class and marks, of a datagram that comes to `socket`.
fn seen_by(socket: &UdpSocket) -> (u16, u8) {
    let (mut bytes, mut control) = ([0; 2_000], nix::cmsg_space!(u8));
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let (fd, control) = (socket.as_raw_fd(), Some(control.as_mut_slice()));
    let message = recvmsg::<SockaddrIn>(fd, &mut slices, control, MsgFlags::empty()).unwrap();
    let tos = message.cmsgs().unwrap().find_map(|control| match control {
        ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
        _ => None,
    });
    (message.address.unwrap().port(), tos.unwrap())
}

/// What a switch that knows nothing of us can go by, over both back ends; and how each knows when
/// packets have left.
#[test]
fn class_is_dscp_marks_are_ecn_and_path_is_the_source_port() {
    if !may() {
        return;
    }
    two_hosts(|me, other| {
        for xdp in [true, false] {
            if me == 1 {
                let socket = UdpSocket::bind(at(1)).unwrap();
                setsockopt(&socket, sockopt::IpRecvTos, &true).unwrap();
                other.meet(0);
                let seen: Vec<_> = (0..CLASSES).map(|_| seen_by(&socket)).collect();
                let expected = (0..CLASSES).map(|n| {
                    // Class selector (RFC 2474, 4.2.2.1), then ECT(0) or none (RFC 3168).
                    (
                        PORT + u16::from(n) % PORTS,
                        n << 5 | if n.is_multiple_of(2) { 0b00 } else { 0b10 },
                    )
                });
                assert_eq!(seen, expected.collect::<Vec<_>>(), "AF_XDP: {xdp}");
                other.meet(0);
                continue;
            }
            other.meet(0);
            let socket: Socket = match xdp {
                true => Xdp::bind_ports(at(0), PORTS).unwrap().into(),
                false => bind(at(0).into()).unwrap().into(),
            };
            let peers = AddressBook::from([(HostId(1), at(1).into())]);
            let config = Config::loopback(HostId(0), peers, 1);
            let config = Config { source_ports: PORTS, ..config };
            let (mut app, mut content) = (Idle, Pattern::default());
            let endpoint = Box::new(EachClass { next: 0, left: 0 });
            let mut host = Host::new(config, socket, endpoint, &mut app, &mut content).unwrap();
            let told = |c: &Counters| c.left_completed + c.left_stamped + c.left_handed;
            assert!(host.run(LIMIT, |c| told(c) == CLASSES.into()).unwrap());
            let c = *host.counters();
            let expected = if xdp { (8, 0, 0) } else { (0, 8, 0) };
            assert_eq!((c.left_completed, c.left_stamped, c.left_handed), expected);
            other.meet(0);
        }
    });
}

struct Idle;

impl App for Idle {
    fn on_start(&mut self, _: &mut AppCx<'_>) {}

    fn on_event(&mut self, _: &mut AppCx<'_>, _: AppEvent) {}
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    if !may() {
        return;
    }
    two_hosts(|me, _| {
        if me == 1 {
            return;
        }
        let refused = |at: SocketAddrV4| Xdp::bind(at).err().unwrap();
        let error = refused(SocketAddrV4::new([10, 0, 0, 9].into(), PORT));
        assert!(matches!(error, XdpError::NoInterface(_)), "{error}");
        let taken = UdpSocket::bind(at(0)).unwrap();
        assert!(matches!(refused(at(0)), XdpError::Port { .. }));
        drop(taken);
        // Nobody has this address; one host is this one; one is of another kind.
        for (peer, says) in [
            ("10.0.0.77:1", "10.0.0.77 does not answer ARP at net"),
            ("10.1.0.1:1", "no route to it by net"),
            ("10.0.0.1:2", "on this machine"),
            ("[::1]:1", "IPv4"),
        ] {
            let peers = AddressBook::from([(HostId(1), peer.parse().unwrap())]);
            let (mut app, mut content) = (Exchange::default(), Pattern::default());
            let config = Config::loopback(HostId(0), peers, 1);
            let socket = Xdp::bind(at(0)).unwrap();
            let mut endpoint = None;
            subjects::each(|subject| endpoint = Some((subject.make)(HostId(0))));
            let host = Host::new(config, socket, endpoint.unwrap(), &mut app, &mut content);
            let error = host.err().unwrap().to_string();
            assert!(error.contains(says) && error.contains(peer), "{error}");
        }
        let config = Config::loopback(HostId(0), AddressBook::new(), 1);
        let config = Config { source_ports: 2, ..config };
        let (mut app, mut content) = (Idle, Pattern::default());
        let endpoint = Box::new(EachClass { next: CLASSES, left: 0 });
        let host = Host::new(config, Xdp::bind(at(0)).unwrap(), endpoint, &mut app, &mut content);
        let error = host.err().unwrap();
        let ports = Error::Xdp(XdpError::Ports { at: at(0), wanted: 2, have: 1 });
        assert_eq!(error.to_string(), ports.to_string());
        let taken = UdpSocket::bind(SocketAddrV4::new(*at(0).ip(), PORT + 1)).unwrap();
        let error = Xdp::bind_ports(at(0), 2).err().unwrap().to_string();
        assert!(error.contains("of 2 source ports from 10.0.0.1:4000 on, number 1"), "{error}");
        drop(taken);
    });
}
