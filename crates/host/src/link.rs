//! The network interface in software: packets to datagrams and back, over one UDP socket.
//!
//! Packets to one host that follow one another leave as a train, in one system call (UDP GSO), and
//! arrive so (GRO).

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;

use endpoint::{Draw, Flags, Packet, Purpose};
use nix::sys::socket::{getsockopt, sockopt};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use units::{Dur, HostId, MsgId, MsgKey};
use wire::shim::{Datagram, ShimError, ShimRepr, flag, seal};

use crate::doorbell::Doorbell;
use crate::{Config, Content, ContractViolation, Counters};

const _: () = assert!(
    flag::TRIMMED == Flags::TRIMMED.0
        && flag::BOUNCED == Flags::BOUNCED.0
        && flag::CE == Flags::CE.0
        && flag::INT == Flags::INT.0,
    "the flags of a datagram are those of its packet"
);

/// The most payload of a UDP datagram over IPv4: 65535 less the IP and UDP headers.
const DATAGRAM_MAX: usize = 65_507;
/// Before a datagram's bytes: IPv4 (RFC 791, 3.1) and UDP (RFC 768).
const IP_AND_UDP: usize = 20 + 8;
/// Socket buffers asked for. The kernel grants at most `net.core.{r,w}mem_max`.
const SOCKET_BUFFER: usize = 8 << 20;
/// Shorter waits are spun, as waking up takes longer. Others that can run go first.
const SPIN_BELOW: Dur = Dur::from_us(20);

/// What happens to a datagram on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is sent.
    Pass,
    /// It is lost.
    Drop,
    /// It is sent two times.
    Twice,
    /// One bit of it is turned over.
    Damage,
}

/// Decides the fate of the `n`-th datagram that a host sends.
pub type Faults = Box<dyn FnMut(u64) -> Fate + Send>;

/// Faults of which `drop` of a thousand datagrams are lost and `twice` are duplicated, the same
/// ones for the same seed and host.
#[must_use]
pub fn seeded_faults(seed: u64, host: HostId, drop: u16, twice: u16) -> Faults {
    const FATE: Purpose = Purpose::new("datagram fate");
    let draw = Draw::new(seed, Purpose::new("udp link"), u64::from(host.0));
    Box::new(move |n| match draw.below(FATE, n, 1_000) {
        x if x < u64::from(drop) => Fate::Drop,
        x if x < u64::from(drop) + u64::from(twice) => Fate::Twice,
        _ => Fate::Pass,
    })
}

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

/// What one look at the socket gave.
pub(crate) enum Received {
    /// Nothing is waiting.
    Nothing,
    /// A datagram that was counted and ignored.
    Ignored,
    /// A packet, and what the shim says beside it. Its payload is in [`Link::payload`] until the
    /// next look.
    Packet(Packet, Beside),
}

/// What an application says with a message: its tag and its token.
pub(crate) type Said = (u16, u64);

/// What travels beside a packet, of which transports know nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) said: Said,
    /// All messages of the packet's source to its destination below this one are over.
    pub(crate) oldest: MsgId,
    /// The life of the packet's source.
    pub(crate) src_life: u64,
    /// The life of the packet's destination as its source knows it, otherwise zero.
    pub(crate) dst_life: u64,
}

/// One host's end of the network.
pub(crate) struct Link {
    socket: UdpSocket,
    /// What cuts and joins trains, where there are any.
    offloads: Option<UdpSocketState>,
    me: HostId,
    mtu: u16,
    peers: BTreeMap<HostId, Peer>,
    pub(crate) faults: Faults,
    /// The datagrams of `trains`, one behind the other.
    tx: Vec<u8>,
    /// What the socket has not taken yet.
    trains: VecDeque<Train>,
    /// Tokens of what was loaded since all had left.
    tokens: Vec<u32>,
    rx: Arrivals,
}

/// The most bytes that wait for the socket: the port is busy then, so that packets are chosen late.
const BURST: usize = 64 << 10;

struct Peer {
    addr: SocketAddr,
    /// The longest IP packet that the way to it takes, bytes; no limit where that is not known.
    mtu: usize,
}

/// Datagrams to one host, all of one length but for the last, which may be shorter.
struct Train {
    to: SocketAddr,
    ecn: Option<EcnCodepoint>,
    /// Where they are in [`Link::tx`].
    range: Range<usize>,
    segment: usize,
}

impl Train {
    /// Whether a datagram of `len` bytes can follow, of at most `most` in all.
    fn takes(&self, to: SocketAddr, ecn: Option<EcnCodepoint>, len: usize, most: usize) -> bool {
        let (have, full) = (self.range.len(), self.range.len().is_multiple_of(self.segment));
        (self.to, self.ecn) == (to, ecn)
            && full
            && len <= self.segment
            && have / self.segment < most
            && have + len <= DATAGRAM_MAX
    }
}

/// Buffers that the socket fills with trains, and how far they have been looked at.
struct Arrivals {
    buffers: [Vec<u8>; TRAINS],
    metas: [RecvMeta; TRAINS],
    filled: usize,
    /// The train that is looked at, and where in it the next datagram begins.
    at: (usize, usize),
    /// Where the payload of the packet received last is, in which buffer.
    payload: (usize, Range<usize>),
}

/// Trains that one look at the socket takes.
const TRAINS: usize = 8;

impl Arrivals {
    fn new() -> Self {
        Self {
            buffers: std::array::from_fn(|_| vec![0; BURST]),
            metas: [RecvMeta::default(); TRAINS],
            filled: 0,
            at: (0, 0),
            payload: (0, 0..0),
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

    fn fill(&mut self, socket: &UdpSocket, offloads: Option<&UdpSocketState>) -> io::Result<()> {
        (self.filled, self.at) = (0, (0, 0));
        let Some(offloads) = offloads else {
            let (len, addr) = socket.recv_from(&mut self.buffers[0])?;
            self.metas[0] = RecvMeta { addr, len, stride: len, ..RecvMeta::default() };
            self.filled = 1;
            return Ok(());
        };
        let mut slices = self.buffers.each_mut().map(|buffer| IoSliceMut::new(buffer));
        self.filled = offloads.recv(socket.into(), &mut slices, &mut self.metas)?;
        Ok(())
    }
}

impl Peer {
    /// The kernel knows the MTU of the way to whom a socket is connected (ip(7), `IP_MTU`).
    fn at(addr: SocketAddr) -> Self {
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mtu = UdpSocket::bind(unspecified).and_then(|socket| {
            socket.connect(addr)?;
            Ok(getsockopt(&socket, sockopt::IpMtu)?)
        });
        let mtu = mtu.ok().and_then(|mtu| usize::try_from(mtu).ok()).unwrap_or(usize::MAX);
        Self { addr, mtu }
    }
}

impl Link {
    pub(crate) fn new(socket: UdpSocket, config: &Config) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let offloads = match config.trains {
            true => Some(UdpSocketState::new((&socket).into())?),
            false => None,
        };
        Ok(Self {
            socket,
            offloads,
            me: config.me,
            mtu: config.mtu,
            peers: config.peers.iter().map(|(&host, &addr)| (host, Peer::at(addr))).collect(),
            faults: Box::new(|_| Fate::Pass),
            tx: vec![0; BURST + 2 * DATAGRAM_MAX],
            trains: VecDeque::new(),
            tokens: Vec::new(),
            rx: Arrivals::new(),
        })
    }

    /// Whether `host` has an address.
    pub(crate) fn knows(&self, host: HostId) -> bool {
        self.peers.contains_key(&host)
    }

    /// Whether datagrams wait for the socket.
    pub(crate) fn is_loaded(&self) -> bool {
        !self.trains.is_empty()
    }

    /// Whether as many wait as may: the port is busy.
    pub(crate) fn is_full(&self) -> bool {
        self.end() >= BURST
    }

    /// Where the next datagram goes.
    fn end(&self) -> usize {
        self.trains.back().map_or(0, |train| train.range.end)
    }

    /// Make the datagram of `pkt` and what travels beside it, with its payload if it carries one.
    pub(crate) fn load(
        &mut self,
        pkt: &Packet,
        beside: Beside,
        content: &mut dyn Content,
        counters: &mut Counters,
    ) -> Result<(), ContractViolation> {
        let &Peer { addr: to, mtu } = match self.peers.get(&pkt.dst) {
            Some(peer) if pkt.src == self.me => peer,
            _ => return Err(ContractViolation::Address { src: pkt.src, dst: pkt.dst }),
        };
        if pkt.wire_len > self.mtu {
            return Err(ContractViolation::Mtu { wire_len: pkt.wire_len, mtu: self.mtu });
        }
        // More than 65535 bytes do not fit the buffer either; `emit` says so.
        let payload_len = u16::try_from(pkt.payload_len()).unwrap_or(u16::MAX);
        let end = self.end();
        let datagram = &mut self.tx[end..end + DATAGRAM_MAX];
        let len = shim(pkt, beside).emit(pkt.header(), payload_len, datagram)?;
        let bytes = IP_AND_UDP + len;
        if bytes > mtu {
            return Err(ContractViolation::PathMtu { bytes, dst: pkt.dst, mtu });
        }
        if payload_len > 0 {
            let key = MsgKey { src: self.me, id: pkt.span.msg };
            let payload = &mut datagram[len - usize::from(payload_len)..len];
            content.read(key, pkt.span.offset, payload);
        }
        seal(&mut datagram[..len]);
        let ecn = pkt.flags.has(Flags::ECT).then_some(EcnCodepoint::Ect0);
        match (self.faults)(counters.sent) {
            Fate::Drop => counters.dropped_on_purpose += 1,
            Fate::Pass => self.append(to, ecn, len),
            Fate::Damage => {
                counters.damaged_on_purpose += 1;
                let at = counters.sent as usize;
                self.tx[end + at % len] ^= 1 << (at / len % 8);
                self.append(to, ecn, len);
            }
            Fate::Twice => {
                counters.doubled_on_purpose += 1;
                self.tx.copy_within(end..end + len, end + len);
                self.append(to, ecn, len);
                self.append(to, ecn, len);
            }
        }
        counters.sent += 1;
        counters.data_sent += u64::from(payload_len > 0);
        if pkt.token != 0 {
            self.tokens.push(pkt.token);
        }
        Ok(())
    }

    /// The next `len` bytes of `tx` are a datagram.
    fn append(&mut self, to: SocketAddr, ecn: Option<EcnCodepoint>, len: usize) {
        let end = self.end();
        let most = self.offloads.as_ref().map_or(1, UdpSocketState::max_gso_segments);
        match self.trains.back_mut() {
            Some(train) if train.takes(to, ecn, len, most) => train.range.end = end + len,
            _ => self.trains.push_back(Train { to, ecn, range: end..end + len, segment: len }),
        }
    }

    /// Give what is loaded to the socket. False if it is full.
    pub(crate) fn flush(&mut self, counters: &mut Counters) -> io::Result<bool> {
        while let Some(Train { to, ecn, range, segment }) = self.trains.front() {
            let datagrams = range.len().div_ceil(*segment);
            let transmit = Transmit {
                destination: *to,
                ecn: *ecn,
                contents: &self.tx[range.clone()],
                segment_size: (datagrams > 1).then_some(*segment),
                src_ip: None,
            };
            let sent = match &self.offloads {
                Some(offloads) if datagrams > 1 || ecn.is_some() => {
                    offloads.try_send((&self.socket).into(), &transmit)
                }
                // The cheaper call.
                _ => self.socket.send_to(transmit.contents, *to).map(drop),
            };
            match sent {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                // A card that cannot cut trains says so once: then there are no more.
                Err(e) if is_loss(&e) || datagrams > 1 => counters.send_losses += datagrams as u64,
                Err(e) => return Err(e),
            }
            self.trains.pop_front();
        }
        Ok(true)
    }

    /// The tokens of what has left since they were last asked for, in place of those in `tokens`;
    /// what was lost on purpose has left, too.
    pub(crate) fn take_tokens(&mut self, tokens: &mut Vec<u32>) {
        tokens.clear();
        std::mem::swap(&mut self.tokens, tokens);
    }

    /// Look for one datagram.
    pub(crate) fn receive(&mut self, counters: &mut Counters) -> io::Result<Received> {
        let next = match self.rx.next() {
            Some(next) => next,
            None => {
                match self.rx.fill(&self.socket, self.offloads.as_ref()).map(|()| self.rx.next()) {
                    Ok(Some(next)) => next,
                    Ok(None) => return Ok(Received::Nothing),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
                    Err(e) if is_loss(&e) => return Ok(Received::Ignored),
                    Err(e) => return Err(e),
                }
            }
        };
        let (n, range) = next;
        let RecvMeta { addr, ecn, .. } = self.rx.metas[n];
        counters.received += 1;
        let (mut pkt, beside, payload_len) = match decode(&self.rx.buffers[n][range.clone()]) {
            Ok(decoded) => decoded,
            Err(ShimError::HeaderDamaged | ShimError::PayloadDamaged) => {
                counters.damaged += 1;
                return Ok(Received::Ignored);
            }
            Err(_) => {
                counters.malformed += 1;
                return Ok(Received::Ignored);
            }
        };
        if pkt.dst != self.me {
            counters.misaddressed += 1;
            return Ok(Received::Ignored);
        }
        if self.peers.get(&pkt.src).is_none_or(|peer| peer.addr != addr) {
            counters.unknown_peer += 1;
            return Ok(Received::Ignored);
        }
        if ecn == Some(EcnCodepoint::Ce) {
            pkt.flags.set(Flags::CE);
        }
        self.rx.payload = (n, range.end - payload_len..range.end);
        Ok(Received::Packet(pkt, beside))
    }

    /// The payload of the packet received last.
    pub(crate) fn payload(&self) -> &[u8] {
        let (n, range) = &self.rx.payload;
        &self.rx.buffers[*n][range.clone()]
    }

    /// Sleep until a datagram arrives, the socket takes a loaded one, the bell rings, or `timeout`
    /// has passed.
    pub(crate) fn wait(&self, timeout: Dur, doorbell: Option<&Doorbell>) -> io::Result<()> {
        if timeout < SPIN_BELOW {
            std::thread::yield_now();
            return Ok(());
        }
        let flags = match self.is_loaded() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let ns = timeout.0 / 1_000;
        let timeout =
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
        let socket = PollFd::new(&self.socket, flags);
        let woken = match doorbell {
            Some(bell) => {
                let mut both = [socket, bell.poll_fd()];
                let woken = poll(&mut both, Some(&timeout));
                if !both[1].revents().is_empty() {
                    bell.silence();
                }
                woken
            }
            None => poll(&mut [socket], Some(&timeout)),
        };
        match woken {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
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

/// Line 0 of `pkt`, as it travels.
fn shim(pkt: &Packet, beside: Beside) -> ShimRepr {
    let Beside { said: (tag, token), oldest, src_life, dst_life } = beside;
    ShimRepr { tag, token, oldest, src_life, dst_life, ..pkt.shim() }
}

/// The packet in `bytes`, what is said beside it, and the length of its payload, which must be
/// what the packet's flags let expect.
fn decode(bytes: &[u8]) -> Result<(Packet, Beside, usize), ShimError> {
    let datagram = Datagram::new_checked(bytes)?;
    let shim = ShimRepr::parse(&datagram);
    let pkt = Packet::from_shim(&shim, datagram.header());
    let ShimRepr { tag, token, oldest, src_life, dst_life, .. } = shim;
    let beside = Beside { said: (tag, token), oldest, src_life, dst_life };
    let (have, need) = (datagram.payload().len(), pkt.payload_len() as usize);
    match have == need {
        true => Ok((pkt, beside, need)),
        false => Err(ShimError::Short { need, have }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressBook, Pattern};
    use endpoint::Span;
    use wire::shim::SHIM_LEN;

    const BESIDE: Beside = Beside { said: (5, 6), oldest: MsgId(4), src_life: 7, dst_life: 8 };
    const LOOPBACK: &str = "127.0.0.1:0";

    fn pair() -> (Link, Link) {
        let sockets = [0, 1].map(|_| bind(LOOPBACK.parse().unwrap()).unwrap());
        let peers: AddressBook =
            (0..2).map(|i| (HostId(i), sockets[i as usize].local_addr().unwrap())).collect();
        let mut id = 0..;
        let [a, b] = sockets.map(|socket| {
            let config = Config::loopback(HostId(id.next().unwrap()), peers.clone(), 1);
            Link::new(socket, &config).unwrap()
        });
        (a, b)
    }

    fn data(len: u32) -> Packet {
        let mut pkt = Packet {
            src: HostId(0),
            dst: HostId(1),
            proto: 199,
            path: 3,
            wire_len: 9064,
            class: 2,
            flags: Flags::ECT,
            span: Span { msg: MsgId(4), offset: 18_000, len },
            hdr_len: 3,
            token: 9,
            ..Packet::EMPTY
        };
        pkt.hdr[..3].copy_from_slice(b"hdr");
        pkt
    }

    /// Loopback delivers inside `send`, so that one look is enough.
    fn look(link: &mut Link, counters: &mut Counters) -> Option<Packet> {
        match link.receive(counters).unwrap() {
            Received::Packet(pkt, beside) => {
                assert_eq!(beside, BESIDE);
                Some(pkt)
            }
            _ => None,
        }
    }

    fn tokens(link: &mut Link) -> Vec<u32> {
        let mut tokens = vec![77];
        link.take_tokens(&mut tokens);
        tokens
    }

    /// Trains end with a shorter packet, before a longer one, one with another mark, and when they
    /// are as long as a datagram may be.
    #[test]
    fn packets_leave_and_arrive_in_trains_each_with_its_own_bytes() {
        let (mut a, mut b) = pair();
        let mut counters = Counters::default();
        let lens = [1_000, 1_000, 1_000, 700, 700, 900, 900].into_iter().chain([1_400; 60]);
        let sent: Vec<Packet> = (0..)
            .zip(lens)
            .map(|(n, len)| {
                let span = Span { msg: MsgId(n), offset: 1_000 * n, len };
                let flags = if n == 30 { Flags(0) } else { Flags::ECT };
                Packet { span, flags, ..data(len) }
            })
            .collect();
        let mut loaded = 0;
        while loaded < sent.len() {
            while loaded < sent.len() && !a.is_full() {
                a.load(&sent[loaded], BESIDE, &mut Pattern::default(), &mut counters).unwrap();
                loaded += 1;
            }
            assert!(a.trains.iter().any(|train| train.range.len() > train.segment));
            assert!(a.flush(&mut counters).unwrap());
        }
        for sent in &sent {
            let got = look(&mut b, &mut counters).unwrap();
            assert_eq!((shim(&got, BESIDE), got.header()), (shim(sent, BESIDE), sent.header()));
            let key = MsgKey { src: HostId(0), id: sent.span.msg };
            assert_eq!(b.payload().len(), sent.span.len as usize);
            assert_eq!(
                endpoint::payload::first_difference(key, sent.span.offset, b.payload()),
                None
            );
        }
        assert!(look(&mut b, &mut counters).is_none());
        assert_eq!((counters.sent, counters.received, counters.send_losses), (67, 67, 0));
    }

    /// A switch that marks writes into the IP header.
    #[test]
    fn a_mark_of_the_network_is_seen() {
        let (a, mut b) = pair();
        let mut bytes = vec![0; 200];
        let len = shim(&data(5), BESIDE).emit(b"hdr", 5, &mut bytes).unwrap();
        seal(&mut bytes[..len]);
        for (ecn, marked) in [(EcnCodepoint::Ect0, false), (EcnCodepoint::Ce, true)] {
            let transmit = Transmit {
                destination: b.socket.local_addr().unwrap(),
                ecn: Some(ecn),
                contents: &bytes[..len],
                segment_size: None,
                src_ip: None,
            };
            a.offloads.as_ref().unwrap().try_send((&a.socket).into(), &transmit).unwrap();
            let got = look(&mut b, &mut Counters::default()).unwrap();
            assert_eq!(got.flags.has(Flags::CE), marked);
        }
    }

    #[test]
    fn a_packet_crosses_with_its_payload() {
        let (mut a, mut b) = pair();
        let mut counters = Counters::default();
        let sent = data(9000);
        a.load(&sent, BESIDE, &mut Pattern::default(), &mut counters).unwrap();
        assert!(a.is_loaded());
        assert!(a.flush(&mut counters).unwrap());
        assert_eq!(tokens(&mut a), [9]);
        assert!(!a.is_loaded());
        let got = look(&mut b, &mut counters).unwrap();
        let line = |p: &Packet| (shim(p, BESIDE), p.header().to_vec());
        assert_eq!(line(&got), line(&sent));
        let key = MsgKey { src: HostId(0), id: MsgId(4) };
        assert_eq!(b.payload().len(), 9000);
        assert_eq!(endpoint::payload::first_difference(key, 18_000, b.payload()), None);
        assert!(look(&mut b, &mut counters).is_none());
    }

    #[test]
    fn trimmed_and_control_packets_carry_no_payload_but_name_their_span() {
        let (mut a, mut b) = pair();
        let mut counters = Counters::default();
        for flags in [Flags::TRIMMED, Flags::CONTROL] {
            a.load(&Packet { flags, ..data(9000) }, BESIDE, &mut Pattern::default(), &mut counters)
                .unwrap();
            a.flush(&mut counters).unwrap();
            let got = look(&mut b, &mut counters).unwrap();
            assert_eq!((got.flags, got.span.len, b.payload().len()), (flags, 9000, 0));
        }
    }

    #[test]
    fn strange_datagrams_are_counted_and_ignored() {
        let (a, mut b) = pair();
        let mut counters = Counters::default();
        let to = b.socket.local_addr().unwrap();
        let mut bytes = vec![0; 200];
        let repr = ShimRepr { span_len: 5, ..shim(&data(5), BESIDE) };
        let cut = repr.emit(b"hdr", 4, &mut bytes).unwrap();
        seal(&mut bytes[..cut]);
        a.socket.send_to(&bytes[..cut], to).unwrap();
        a.socket.send_to(b"hello", to).unwrap();
        let elsewhere = ShimRepr { dst: HostId(7), ..repr };
        let len = elsewhere.emit(b"hdr", 5, &mut bytes).unwrap();
        seal(&mut bytes[..len]);
        a.socket.send_to(&bytes[..len], to).unwrap();
        let len = repr.emit(b"hdr", 5, &mut bytes).unwrap();
        bytes[SHIM_LEN + 3] = 1;
        seal(&mut bytes[..len]);
        bytes[SHIM_LEN + 3] = 2;
        a.socket.send_to(&bytes[..len], to).unwrap();
        seal(&mut bytes[..len]);
        let stranger = UdpSocket::bind(LOOPBACK).unwrap();
        stranger.send_to(&bytes[..len], to).unwrap();
        for _ in 0..5 {
            assert!(look(&mut b, &mut counters).is_none());
        }
        assert_eq!(counters.damaged, 1);
        assert_eq!((counters.malformed, counters.misaddressed, counters.unknown_peer), (2, 1, 1));
        a.socket.send_to(&bytes[..len], to).unwrap();
        assert!(look(&mut b, &mut counters).is_some(), "the same bytes from their host");
    }

    /// EMSGSIZE for a datagram longer than UDP's; the others cannot be had from loopback.
    #[test]
    fn what_the_kernel_refuses_to_send_is_counted_and_the_next_one_leaves() {
        let (mut a, mut b) = pair();
        let mut counters = Counters::default();
        let to = b.socket.local_addr().unwrap();
        a.append(to, None, 70_000);
        assert!(a.flush(&mut counters).unwrap());
        assert_eq!(counters.send_losses, 1);
        a.load(&data(10), BESIDE, &mut Pattern::default(), &mut counters).unwrap();
        a.flush(&mut counters).unwrap();
        assert!(look(&mut b, &mut counters).is_some());
        for errno in [Errno::PERM, Errno::ACCESS, Errno::MSGSIZE, Errno::HOSTDOWN] {
            assert!(is_loss(&errno.into()), "{errno}");
        }
        assert!(!is_loss(&Errno::BADF.into()));
    }

    #[test]
    fn faults_drop_and_double() {
        let (mut a, mut b) = pair();
        let mut counters = Counters::default();
        a.faults = Box::new(|n| [Fate::Drop, Fate::Twice, Fate::Pass][n as usize % 3]);
        for _ in 0..3 {
            a.load(&data(1), BESIDE, &mut Pattern::default(), &mut counters).unwrap();
            assert!(a.flush(&mut counters).unwrap());
            assert_eq!(tokens(&mut a), [9], "a lost one has left, too");
        }
        let arrived = std::iter::from_fn(|| look(&mut b, &mut counters)).count();
        assert_eq!(arrived, 3);
        assert_eq!((counters.dropped_on_purpose, counters.doubled_on_purpose), (1, 1));
    }

    #[test]
    fn seeded_faults_have_the_stated_rates() {
        let mut faults = seeded_faults(7, HostId(1), 50, 20);
        let fates: Vec<Fate> = (0..100_000).map(&mut *faults).collect();
        let count = |fate| fates.iter().filter(|&&f| f == fate).count();
        // Standard deviations are 69 and 44; six of them.
        assert!((4_586..=5_414).contains(&count(Fate::Drop)), "{}", count(Fate::Drop));
        assert!((1_736..=2_264).contains(&count(Fate::Twice)), "{}", count(Fate::Twice));
    }

    #[test]
    fn packets_that_cannot_be_sent_are_breaches() {
        let (mut a, _b) = pair();
        let mut counters = Counters::default();
        let mut load =
            |pkt: Packet| a.load(&pkt, BESIDE, &mut Pattern::default(), &mut counters).unwrap_err();
        let dst = HostId(9);
        assert_eq!(
            load(Packet { dst, ..data(1) }),
            ContractViolation::Address { src: HostId(0), dst }
        );
        let jumbo = Packet { wire_len: 9065, ..data(1) };
        assert_eq!(load(jumbo), ContractViolation::Mtu { wire_len: 9065, mtu: 9064 });
        assert!(matches!(load(data(70_000)), ContractViolation::Datagram(_)));
    }

    #[test]
    fn a_packet_too_long_for_the_way_to_its_host_is_a_breach_that_says_by_how_much() {
        let (mut a, mut b) = pair();
        let lo = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
        let lo: usize = lo.trim().parse().unwrap();
        let dst = HostId(1);
        // No IP packet is longer than 65535 bytes.
        assert_eq!(a.peers[&dst].mtu, lo.min(65_535), "as the kernel has it");
        let mut counters = Counters::default();
        a.load(&data(1_400), BESIDE, &mut Pattern::default(), &mut counters).unwrap();
        a.flush(&mut counters).unwrap();
        look(&mut b, &mut counters).unwrap();
        let bytes = b.rx.payload.1.end + IP_AND_UDP;
        a.peers.get_mut(&dst).unwrap().mtu = bytes;
        a.load(&data(1_400), BESIDE, &mut Pattern::default(), &mut counters).unwrap();
        let longer =
            a.load(&data(1_407), BESIDE, &mut Pattern::default(), &mut counters).unwrap_err();
        assert_eq!(longer, ContractViolation::PathMtu { bytes: bytes + 7, dst, mtu: bytes });
        assert!(longer.to_string().contains("payload by 7 bytes"), "{longer}");
    }
}
