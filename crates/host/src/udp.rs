//! Datagrams over UDP sockets.
//!
//! Packets to one host that follow one another, in one class and from one port, leave as a train,
//! in one system call (UDP GSO), and arrive so (GRO).
//!
//! Each port that packets leave from has a socket. Class and marks are the socket's (`IP_TOS`), and
//! so is how trains are cut (`UDP_SEGMENT`): the kernel is told of a change before the call that
//! sends. It need not be told often, and no memory is needed for it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use crate::Counters;
use crate::backend::{Arrived, BURST, Backend, DATAGRAM_MAX, Left, Outgoing};
use crate::stamps::Stamps;

/// Socket buffers asked for. The kernel grants at most `net.core.{r,w}mem_max`.
const SOCKET_BUFFER: usize = 8 << 20;

/// A socket on `addr` with large buffers.
///
/// # Errors
/// The address is not this machine's, or taken.
pub fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(addr)?;
    set_socket_recv_buffer_size(&socket, SOCKET_BUFFER)?;
    set_socket_send_buffer_size(&socket, SOCKET_BUFFER)?;
    Ok(socket)
}

/// UDP sockets and what waits before and behind them.
pub(crate) struct Udp {
    /// The first is the host's address. To the others comes only what was sent back.
    ports: Vec<Port>,
    /// All of them, where there are several.
    any: Option<OwnedFd>,
    /// Which of the others is looked at next.
    next: usize,
    /// The datagrams of `trains`, one behind the other.
    tx: Vec<u8>,
    /// What the sockets have not taken yet.
    trains: VecDeque<Train>,
    /// The tokens of these, in their order.
    tokens: VecDeque<u32>,
    /// Those of what left without a stamp.
    unstamped: Vec<(u32, Left)>,
    /// The most datagrams of a train.
    most: usize,
    rx: Arrivals,
}

/// A socket, and what the kernel was told last of what it sends.
struct Port {
    socket: UdpSocket,
    /// What joins trains, where there are any.
    offloads: Option<UdpSocketState>,
    tos: u8,
    segment: usize,
    stamps: Stamps,
}

impl Port {
    fn new(socket: UdpSocket, trains: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let offloads = match trains {
            true => Some(UdpSocketState::new((&socket).into())?),
            false if socket.local_addr()?.is_ipv4() => {
                setsockopt(&socket, sockopt::IpRecvTos, &true).map(|()| None)?
            }
            false => setsockopt(&socket, sockopt::Ipv6RecvTClass, &true).map(|()| None)?,
        };
        Ok(Self { socket, offloads, tos: 0, segment: 0, stamps: Stamps::new() })
    }

    /// Send a train. Whether it is stamped.
    fn send(&mut self, train: &Train, bytes: &[u8]) -> io::Result<bool> {
        let &Train { to, tos, segment, tokens, .. } = train;
        if tos != self.tos {
            match to {
                SocketAddr::V4(_) => setsockopt(&self.socket, sockopt::Ipv4Tos, &tos.into())?,
                SocketAddr::V6(_) => setsockopt(&self.socket, sockopt::Ipv6TClass, &tos.into())?,
            }
            self.tos = tos;
        }
        let several = bytes.len() > segment;
        let wrong = if several { segment != self.segment } else { bytes.len() > self.segment };
        if wrong && (several || self.segment > 0) {
            let segment = if several { segment } else { 0 };
            setsockopt(&self.socket, sockopt::UdpGsoSegment, &(segment as i32))?;
            self.segment = segment;
        }
        let stamped = self.stamps.ask(&self.socket, tokens > 0);
        self.socket.send_to(bytes, to).map(|_| stamped)
    }
}

/// Datagrams to one host, all of one length but for the last, which may be shorter.
struct Train {
    to: SocketAddr,
    port: usize,
    tos: u8,
    /// Where they are in [`Udp::tx`].
    range: Range<usize>,
    segment: usize,
    /// How many of them have tokens.
    tokens: usize,
}

impl Train {
    /// Whether `datagram` can follow, of at most `most` in all.
    fn takes(&self, datagram: &Outgoing, most: usize) -> bool {
        let &Outgoing { to, port, tos, len, .. } = datagram;
        let (have, full) = (self.range.len(), self.range.len().is_multiple_of(self.segment));
        (self.to, self.port, self.tos) == (to, usize::from(port), tos)
            && full
            && len <= self.segment
            && have / self.segment < most
            && have + len <= DATAGRAM_MAX
    }
}

/// Buffers that a socket fills with trains, and how far they have been looked at.
struct Arrivals {
    buffers: [Vec<u8>; TRAINS],
    metas: [RecvMeta; TRAINS],
    filled: usize,
    /// The train that is looked at, and where in it the next datagram begins.
    at: (usize, usize),
    /// Where the datagram received last is, in which buffer.
    last: (usize, Range<usize>),
    /// For what the kernel says beside a datagram.
    control: Vec<u8>,
}

/// Trains that one look at a socket takes.
const TRAINS: usize = 8;

impl Arrivals {
    fn new() -> Self {
        Self {
            buffers: std::array::from_fn(|_| vec![0; BURST]),
            metas: [RecvMeta::default(); TRAINS],
            filled: 0,
            at: (0, 0),
            last: (0, 0..0),
            // A kernel that cannot leave stamps away may say when a datagram came, too.
            control: cmsg_space!([TimeSpec; 3], i32),
        }
    }

    /// The next datagram: its train and where in it.
    fn next(&mut self) -> Option<(usize, Range<usize>)> {
        let (n, start) = self.at;
        if n >= self.filled {
            return None;
        }
        let RecvMeta { len, stride, .. } = self.metas[n];
        let end = len.min(start + stride.max(1));
        self.at = if end < len { (n, end) } else { (n + 1, 0) };
        Some((n, start..end))
    }

    fn fill(&mut self, port: &Port) -> io::Result<()> {
        (self.filled, self.at) = (0, (0, 0));
        let Some(offloads) = &port.offloads else {
            let (meta, tos) = self.one(&port.socket)?;
            self.metas[0] = RecvMeta { ecn: tos.and_then(EcnCodepoint::from_bits), ..meta };
            self.filled = 1;
            return Ok(());
        };
        let mut slices = self.buffers.each_mut().map(|buffer| IoSliceMut::new(buffer));
        self.filled = offloads.recv((&port.socket).into(), &mut slices, &mut self.metas)?;
        Ok(())
    }

    /// One datagram, into the first buffer, and what its IP header says of class and marks.
    fn one(&mut self, socket: &UdpSocket) -> io::Result<(RecvMeta, Option<u8>)> {
        let mut slices = [IoSliceMut::new(&mut self.buffers[0])];
        let (fd, control) = (socket.as_raw_fd(), Some(self.control.as_mut_slice()));
        let message = recvmsg::<SockaddrStorage>(fd, &mut slices, control, MsgFlags::empty())?;
        let from = message.address.as_ref().and_then(|from| {
            let v4 = from.as_sockaddr_in().map(|&from| SocketAddr::V4(from.into()));
            v4.or_else(|| from.as_sockaddr_in6().map(|&from| SocketAddr::V6(from.into())))
        });
        let tos = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
            ControlMessageOwned::Ipv6TClass(class) => Some(class as u8),
            _ => None,
        });
        let (len, addr) = (message.bytes, from.ok_or(ErrorKind::Interrupted)?);
        Ok((RecvMeta { addr, len, stride: len, ..RecvMeta::default() }, tos))
    }
}

impl Udp {
    /// Over `socket` and, if packets leave from several ports, those behind its own.
    pub(crate) fn new(socket: UdpSocket, ports: u16, trains: bool) -> io::Result<Self> {
        let others = reserve(socket.local_addr()?, ports, bind)?;
        let sockets = std::iter::once(socket).chain(others);
        let ports: Vec<Port> =
            sockets.map(|socket| Port::new(socket, trains)).collect::<io::Result<_>>()?;
        let offloads = ports[0].offloads.as_ref();
        Ok(Self {
            any: if ports.len() > 1 { Some(all(&ports)?) } else { None },
            next: 1,
            tx: vec![0; BURST + 2 * DATAGRAM_MAX],
            trains: VecDeque::new(),
            tokens: VecDeque::new(),
            unstamped: Vec::new(),
            most: offloads.map_or(1, UdpSocketState::max_gso_segments),
            rx: Arrivals::new(),
            ports,
        })
    }

    /// Where the next datagram goes.
    fn end(&self) -> usize {
        self.trains.back().map_or(0, |train| train.range.end)
    }

    /// The next bytes of `tx` are a datagram.
    fn load(&mut self, datagram: Outgoing) {
        let Outgoing { to, port, tos, len, token, .. } = datagram;
        let (end, tokens) = (self.end(), usize::from(token != 0));
        match self.trains.back_mut() {
            Some(train) if train.takes(&datagram, self.most) => {
                train.range.end = end + len;
                train.tokens += tokens;
            }
            _ => {
                let (port, range) = (port.into(), end..end + len);
                self.trains.push_back(Train { to, port, tos, range, segment: len, tokens });
            }
        }
        self.tokens.extend((tokens > 0).then_some(token));
    }

    /// Fill the buffers: of the host's own port, or else of the next other one.
    fn look(&mut self) -> io::Result<()> {
        match self.rx.fill(&self.ports[0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && self.ports.len() > 1 => {
                let n = self.next;
                self.next = if n + 1 < self.ports.len() { n + 1 } else { 1 };
                self.rx.fill(&self.ports[n])
            }
            looked => looked,
        }
    }
}

/// The sockets of the ports behind that of `first`, of `ports` ports.
pub(crate) fn reserve(
    first: SocketAddr,
    ports: u16,
    bind: impl Fn(SocketAddr) -> io::Result<UdpSocket>,
) -> io::Result<Vec<UdpSocket>> {
    let one = |n| {
        let mut at = first;
        let port = first.port().checked_add(n).ok_or(ErrorKind::AddrNotAvailable);
        let bound = port.map_err(io::Error::from).and_then(|port| {
            at.set_port(port);
            bind(at)
        });
        let says = |error: io::Error| {
            let what = format!("of {ports} source ports from {first} on, number {n}: {error}");
            io::Error::new(error.kind(), what)
        };
        bound.map_err(says)
    };
    (1..ports).map(one).collect()
}

/// What is ready when one of `ports` is.
fn all(ports: &[Port]) -> io::Result<OwnedFd> {
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (n, port) in (0..).zip(ports) {
        epoll::add(&any, &port.socket, epoll::EventData::new_u64(n), epoll::EventFlags::IN)?;
    }
    Ok(any)
}

impl Backend for Udp {
    fn slot(&mut self) -> &mut [u8] {
        let end = self.end();
        &mut self.tx[end..end + DATAGRAM_MAX]
    }

    fn append(&mut self, datagram: Outgoing, _: &mut Counters) -> bool {
        let (end, len) = (self.end(), datagram.len);
        if datagram.twice {
            self.tx.copy_within(end..end + len, end + len);
            self.load(Outgoing { token: 0, ..datagram });
        }
        self.load(datagram);
        true
    }

    fn is_loaded(&self) -> bool {
        !self.trains.is_empty()
    }

    fn gathers(&self) -> bool {
        self.most > 1
    }

    fn is_full(&mut self) -> bool {
        self.end() >= BURST
    }

    fn flush(&mut self, counters: &mut Counters) -> io::Result<bool> {
        while let Some(train) = self.trains.front() {
            let port = &mut self.ports[train.port];
            let datagrams = train.range.len().div_ceil(train.segment);
            let tokens = train.tokens;
            match port.send(train, &self.tx[train.range.clone()]) {
                Ok(true) => port.stamps.sent(self.tokens.drain(..tokens)),
                Ok(false) => self.hand_over(tokens),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if is_loss(&e) || datagrams > 1 => {
                    // Some cards cannot cut trains: then there are no more.
                    if matches!(Errno::from_io_error(&e), Some(Errno::IO | Errno::INVAL)) {
                        self.most = 1;
                    }
                    counters.send_losses += datagrams as u64;
                    self.hand_over(tokens);
                }
                Err(e) => return Err(e),
            }
            self.trains.pop_front();
        }
        Ok(true)
    }

    fn awaits(&self) -> bool {
        !self.unstamped.is_empty() || self.ports.iter().any(|port| port.stamps.awaits())
    }

    fn left(&mut self, left: &mut Vec<(u32, Left)>) {
        left.append(&mut self.unstamped);
        for port in &mut self.ports {
            port.stamps.take(&port.socket, left);
        }
    }

    fn receive(&mut self) -> io::Result<Arrived> {
        let next = match self.rx.next() {
            Some(next) => next,
            None => match self.look().map(|()| self.rx.next()) {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(Arrived::Nothing),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Arrived::Nothing),
                Err(e) if is_loss(&e) => return Ok(Arrived::Ignored),
                Err(e) => return Err(e),
            },
        };
        let RecvMeta { addr: from, ecn, .. } = self.rx.metas[next.0];
        self.rx.last = next;
        Ok(Arrived::Datagram { from, marked: ecn == Some(EcnCodepoint::Ce) })
    }

    fn datagram(&self) -> &[u8] {
        let (n, range) = &self.rx.last;
        &self.rx.buffers[*n][range.clone()]
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.any.as_ref().map_or_else(|| self.ports[0].socket.as_fd(), AsFd::as_fd)
    }
}

impl Udp {
    /// The first `tokens` have left, without a stamp.
    fn hand_over(&mut self, tokens: usize) {
        if tokens > 0 {
            let now = Left::Handed(Instant::now());
            self.unstamped.extend(self.tokens.drain(..tokens).map(|token| (token, now)));
        }
    }
}

/// Errors that mean no more than a lost datagram: the transport's own work. Firewalls answer with
/// EPERM or EACCES, a path with a smaller MTU with EMSGSIZE, a neighbour that is switched off with
/// EHOSTDOWN: all of that may pass.
fn is_loss(error: &io::Error) -> bool {
    const LOSSES: [Errno; 15] = [
        Errno::PERM,
        Errno::ACCESS,
        Errno::MSGSIZE,
        Errno::HOSTDOWN,
        Errno::TIMEDOUT,
        Errno::PROTO,
        Errno::AGAIN,
        Errno::INTR,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::CONNREFUSED,
        Errno::CONNRESET,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::NETDOWN,
    ];
    Errno::from_io_error(error).is_some_and(|errno| LOSSES.contains(&errno))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::time::{Duration, SystemTime};

    use rustix::event::{PollFlags, Timespec};
    use wire::frame::{Ecn, tos};

    use super::*;

    const LOOPBACK: &str = "127.0.0.1:0";
    const PLAIN: u8 = tos(0, Ecn::NotCapable);

    fn end(ports: u16, trains: bool) -> Udp {
        // The ports behind a free one are mostly free, too.
        let some = std::iter::repeat_with(|| bind(LOOPBACK.parse().unwrap()).unwrap());
        some.take(20).find_map(|socket| Udp::new(socket, ports, trains).ok()).unwrap()
    }

    fn pair() -> (Udp, Udp) {
        (end(1, true), end(1, true))
    }

    fn to(udp: &Udp) -> SocketAddr {
        udp.ports[0].socket.local_addr().unwrap()
    }

    /// A datagram with these bytes to `to`, its other properties those of `like`.
    fn append(from: &mut Udp, to: &Udp, bytes: &[u8], like: Outgoing) {
        from.slot()[..bytes.len()].copy_from_slice(bytes);
        let datagram = Outgoing { to: tests::to(to), len: bytes.len(), ..like };
        from.append(datagram, &mut Counters::default());
    }

    const LIKE: Outgoing = Outgoing {
        to: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9)),
        port: 0,
        tos: PLAIN,
        len: 0,
        twice: false,
        token: 0,
    };

    /// Loopback delivers inside `send`, so that one look is enough.
    fn look(at: &mut Udp) -> Option<(Vec<u8>, bool)> {
        match at.receive().unwrap() {
            Arrived::Datagram { marked, .. } => Some((at.datagram().to_vec(), marked)),
            _ => None,
        }
    }

    /// Trains end with a shorter datagram, before a longer one, and before one with another mark.
    #[test]
    fn datagrams_of_one_length_leave_as_a_train_and_arrive_one_by_one() {
        let (mut a, mut b) = pair();
        let sent: Vec<Vec<u8>> =
            [900, 900, 900, 500, 500, 700, 700].iter().map(|&len| vec![len as u8; len]).collect();
        for (n, bytes) in sent.iter().enumerate() {
            let ecn = if n < 6 { Ecn::Capable } else { Ecn::NotCapable };
            append(&mut a, &b, bytes, Outgoing { tos: tos(0, ecn), ..LIKE });
        }
        let trains: Vec<(usize, usize)> =
            a.trains.iter().map(|train| (train.range.len(), train.segment)).collect();
        assert_eq!(trains, [(3_200, 900), (500, 500), (700, 700), (700, 700)]);
        assert!(a.is_loaded() && a.flush(&mut Counters::default()).unwrap() && !a.is_loaded());
        let arrived: Vec<Vec<u8>> =
            std::iter::from_fn(|| look(&mut b)).map(|(bytes, _)| bytes).collect();
        assert_eq!(arrived, sent);
    }

    /// A switch that marks writes into the IP header.
    #[test]
    fn a_mark_of_the_network_is_seen_with_trains_and_without() {
        for trains in [true, false] {
            let (mut a, mut b) = (end(1, trains), end(1, trains));
            for (ecn, expected) in [(Ecn::Capable, false), (Ecn::Marked, true)] {
                append(&mut a, &b, b"datagram", Outgoing { tos: tos(7, ecn), ..LIKE });
                a.flush(&mut Counters::default()).unwrap();
                assert_eq!(look(&mut b), Some((b"datagram".to_vec(), expected)));
            }
        }
    }

    /// As a switch or a capture sees them, which knows nothing of shims: class, marks, source port.
    #[test]
    fn class_is_dscp_and_ports_follow_the_host_s_own_also_in_trains() {
        let receiver = UdpSocket::bind(LOOPBACK).unwrap();
        setsockopt(&receiver, sockopt::IpRecvTos, &true).unwrap();
        let to = receiver.local_addr().unwrap();
        for trains in [true, false] {
            let mut a = end(3, trains);
            let first = tests::to(&a).port();
            let mut expected = Vec::new();
            for (port, class, ecn) in [
                (0, 0, Ecn::NotCapable),
                (1, 7, Ecn::Capable),
                (1, 7, Ecn::Capable),
                (2, 5, Ecn::NotCapable),
                (0, 0, Ecn::NotCapable),
            ] {
                let datagram = Outgoing { to, port, tos: tos(class, ecn), len: 4, ..LIKE };
                a.append(datagram, &mut Counters::default());
                // Class selectors (RFC 2474): the class is the upper three bits of the byte.
                expected.push((first + port, class << 5 | ecn as u8));
            }
            assert_eq!(a.trains.len(), if trains { 4 } else { 5 });
            assert!(a.flush(&mut Counters::default()).unwrap());
            let mut seen = Arrivals::new();
            let got = expected.iter().map(|_| {
                let (meta, tos) = seen.one(&receiver).unwrap();
                (meta.addr.port(), tos.unwrap())
            });
            assert_eq!(got.collect::<Vec<_>>(), expected, "trains: {trains}");
        }
    }

    /// A switch sends headers back to where they came from.
    #[test]
    fn what_comes_to_another_port_is_received_and_wakes() {
        let mut a = end(4, false);
        let stranger = UdpSocket::bind(LOOPBACK).unwrap();
        let mut at = to(&a);
        at.set_port(at.port() + 3);
        stranger.send_to(b"back", at).unwrap();
        let mut fds = [rustix::event::PollFd::from_borrowed_fd(a.fd(), PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&Timespec::default())).unwrap();
        assert_eq!(fds[0].revents(), PollFlags::IN);
        let looks = (0..3).find_map(|_| look(&mut a));
        assert_eq!(looks, Some((b"back".to_vec(), false)), "each look is at one more port");
    }

    #[test]
    fn a_source_port_that_is_taken_is_an_error_that_names_it() {
        let socket = bind(LOOPBACK.parse().unwrap()).unwrap();
        let mut next = socket.local_addr().unwrap();
        next.set_port(next.port() + 1);
        let _taken = UdpSocket::bind(next);
        let error = Udp::new(socket, 2, false).err().unwrap().to_string();
        assert!(error.contains("of 2 source ports from 127.0.0.1:"), "{error}");
        assert!(error.contains("number 1: "), "{error}");
    }

    /// Those of one call share its stamp, and none is asked for where there is no token.
    #[test]
    fn the_kernel_stamps_what_was_asked_for() {
        for trains in [true, false] {
            let (mut a, b) = (end(1, trains), end(1, trains));
            let before = SystemTime::now();
            for token in [0, 7, 8, 0] {
                append(&mut a, &b, &[1; 100], Outgoing { token, ..LIKE });
            }
            a.flush(&mut Counters::default()).unwrap();
            append(&mut a, &b, &[1; 100], Outgoing { token: 0, ..LIKE });
            a.flush(&mut Counters::default()).unwrap();
            append(&mut a, &b, &[1; 100], Outgoing { token: 9, ..LIKE });
            a.flush(&mut Counters::default()).unwrap();
            assert!(a.awaits());
            let mut left = Vec::new();
            a.left(&mut left);
            assert_eq!(left.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [7, 8, 9]);
            for (_, how) in left {
                let Left::Stamped(at) = how else { panic!("{how:?}") };
                assert!(before <= at && at <= SystemTime::now());
            }
            assert!(!a.awaits());
        }
    }

    #[test]
    fn what_was_lost_and_what_gets_no_stamp_is_told_of_all_the_same() {
        let (mut a, b) = pair();
        append(&mut a, &b, &[1; 100], Outgoing { token: 7, ..LIKE });
        a.trains[0].range.end = 70_000;
        a.flush(&mut Counters::default()).unwrap();
        // Nobody will stamp this one.
        a.ports[0].stamps.sent([8].into_iter());
        let mut left = Vec::new();
        a.left(&mut left);
        assert!(matches!(left[..], [(7, Left::Handed(_))]) && a.awaits(), "{left:?}");
        std::thread::sleep(Duration::from_millis(11));
        a.left(&mut left);
        assert!(matches!(left[1..], [(8, Left::Handed(_))]) && !a.awaits(), "{left:?}");
    }

    /// EMSGSIZE for a datagram longer than UDP's; the others cannot be had from loopback.
    #[test]
    fn what_the_kernel_refuses_to_send_is_counted_and_the_next_one_leaves() {
        let (mut a, mut b) = pair();
        let mut counters = Counters::default();
        a.load(Outgoing { to: to(&b), len: 70_000, ..LIKE });
        assert!(a.flush(&mut counters).unwrap());
        assert_eq!(counters.send_losses, 1);
        append(&mut a, &b, b"next", LIKE);
        a.flush(&mut counters).unwrap();
        assert!(look(&mut b).is_some());
        for errno in [Errno::PERM, Errno::ACCESS, Errno::MSGSIZE, Errno::HOSTDOWN] {
            assert!(is_loss(&errno.into()), "{errno}");
        }
        assert!(!is_loss(&Errno::BADF.into()));
    }
}
