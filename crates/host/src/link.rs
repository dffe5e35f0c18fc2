//! The network interface in software: packets to datagrams and back, losses on purpose.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::time::Instant;

use endpoint::{Draw, Flags, Packet, Purpose};
use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use units::{Dur, HostId, MsgId, MsgKey};
use wire::frame::{Ecn, tos};
use wire::shim::{Datagram, Key, SHIM_LEN, ShimError, ShimRepr, TAGS_LEN, flag, seal};

use crate::backend::{Arrived, Backend, Left, Outgoing, Socket};
use crate::doorbell::Doorbell;
use crate::memory::Wire;
use crate::udp::Udp;
use crate::{Config, Content, ContractViolation, Counters, Error};

const _: () = assert!(
    flag::TRIMMED == Flags::TRIMMED.0
        && flag::BOUNCED == Flags::BOUNCED.0
        && flag::CE == Flags::CE.0
        && flag::INT == Flags::INT.0,
    "the flags of a datagram are those of its packet"
);

/// Before a datagram's bytes: IPv4 (RFC 791, 3.1) and UDP (RFC 768).
const IP_AND_UDP: usize = 20 + 8;
/// Shorter waits are spun, as waking up takes longer. Others that can run go first.
const SPIN_BELOW: Dur = Dur::from_us(20);
/// How often is looked whether a packet has left, where nothing says so to a sleeper.
const LOOK: Dur = Dur::from_us(50);

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

/// What one look at the socket gave.
pub(crate) enum Received {
    /// Nothing is waiting.
    Nothing,
    /// A datagram that was counted and ignored.
    Ignored,
    /// A packet: [`Link::packet`]. Its payload is in [`Link::payload`] until the next look.
    Packet,
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
    backend: Box<dyn Backend>,
    me: HostId,
    mtu: u16,
    peers: BTreeMap<HostId, Peer>,
    /// From how many ports packets leave.
    ports: u16,
    pub(crate) faults: Faults,
    /// Tokens of what was lost on purpose or for lack of room.
    lost: Vec<(u32, Left)>,
    /// The packet received last, what its shim says beside it, and where in its datagram its
    /// payload is.
    packet: Packet,
    beside: Beside,
    payload: Range<usize>,
}

struct Peer {
    addr: SocketAddr,
    /// The longest IP packet that the way to it takes, bytes; no limit where that is not known.
    mtu: usize,
    /// The key that this host shares with it, if any.
    key: Option<Key>,
}

impl Peer {
    /// The kernel knows the MTU of the way to whom a socket is connected (ip(7), `IP_MTU`).
    fn at(addr: SocketAddr, key: Option<Key>) -> Self {
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mtu = UdpSocket::bind(unspecified).and_then(|socket| {
            socket.connect(addr)?;
            Ok(getsockopt(&socket, sockopt::IpMtu)?)
        });
        let mtu = mtu.ok().and_then(|mtu| usize::try_from(mtu).ok()).unwrap_or(usize::MAX);
        Self { addr, mtu, key }
    }

    /// Whether a packet comes from it that has come from `from`, one of `ports` ports by `path`.
    /// What it was sent and comes back comes from its own port.
    fn sends_from(&self, from: SocketAddr, pkt: &Packet, ports: u16) -> bool {
        let port = match pkt.flags.has(Flags::BOUNCED) {
            true => 0,
            false => source_port(pkt.path, ports),
        };
        let mut expected = self.addr;
        expected.set_port(expected.port().wrapping_add(port));
        from == expected
    }
}

/// Which of `ports` ports a packet of `path` leaves from, so that switches which know nothing of
/// paths spread them.
fn source_port(path: u32, ports: u16) -> u16 {
    (path % u32::from(ports)) as u16
}

impl Link {
    pub(crate) fn new(socket: Socket, config: &Config) -> Result<Self, Error> {
        let ports = config.source_ports.max(1);
        let backend: Box<dyn Backend> = match socket {
            Socket::Udp(socket) => Box::new(Udp::new(socket, ports, config.trains)?),
            Socket::Xdp(socket) => Box::new(socket.to(&config.peers, ports)?),
            Socket::Memory(end) => Box::new(Wire::from(end)),
        };
        let peer = |(&host, &addr): (&HostId, &SocketAddr)| {
            let key = config.keys.get(&host).cloned();
            match key.is_some() || config.keys.is_empty() {
                true => Ok((host, Peer::at(addr, key))),
                false => Err(Error::NoKey(host)),
            }
        };
        Ok(Self {
            backend,
            me: config.me,
            mtu: config.mtu,
            peers: config.peers.iter().map(peer).collect::<Result<_, _>>()?,
            ports,
            faults: Box::new(|_| Fate::Pass),
            lost: Vec::new(),
            packet: Packet::EMPTY,
            beside: Beside::default(),
            payload: 0..0,
        })
    }

    /// Whether `host` has an address.
    pub(crate) fn knows(&self, host: HostId) -> bool {
        self.peers.contains_key(&host)
    }

    /// Whether datagrams wait to be sent.
    pub(crate) fn is_loaded(&self) -> bool {
        self.backend.is_loaded()
    }

    /// Whether more is to be received before what answers it leaves.
    pub(crate) fn gathers(&self) -> bool {
        self.backend.gathers()
    }

    /// Whether as many wait as may: the port is busy.
    pub(crate) fn is_full(&mut self) -> bool {
        self.backend.is_full()
    }

    /// Make the datagram of `pkt` and what travels beside it, with its payload if it carries one.
    pub(crate) fn load(
        &mut self,
        pkt: &Packet,
        beside: Beside,
        content: &mut dyn Content,
        counters: &mut Counters,
    ) -> Result<(), ContractViolation> {
        let &Peer { addr: to, mtu, ref key } = match self.peers.get(&pkt.dst) {
            Some(peer) if pkt.src == self.me => peer,
            _ => return Err(ContractViolation::Address { src: pkt.src, dst: pkt.dst }),
        };
        let tags = if key.is_some() { TAGS_LEN } else { 0 };
        if pkt.wire_len > self.mtu {
            return Err(ContractViolation::Mtu { wire_len: pkt.wire_len, mtu: self.mtu });
        }
        let bytes = IP_AND_UDP + SHIM_LEN + tags + pkt.header().len() + pkt.payload_len() as usize;
        if bytes > mtu {
            return Err(ContractViolation::PathMtu { bytes, dst: pkt.dst, mtu });
        }
        // More than 65535 bytes do not fit the slot either; `emit` says so.
        let payload_len = u16::try_from(pkt.payload_len()).unwrap_or(u16::MAX);
        let slot = self.backend.slot();
        let shim = ShimRepr { tagged: key.is_some(), ..shim(pkt, beside) };
        let len = shim.emit(pkt.header(), payload_len, slot)?;
        let datagram = &mut slot[..len];
        if payload_len > 0 {
            let key = MsgKey { src: self.me, id: pkt.span.msg };
            let payload = &mut datagram[len - usize::from(payload_len)..];
            content.read(key, pkt.span.offset, payload);
        }
        seal(datagram, key.as_ref());
        let fate = (self.faults)(counters.sent);
        match fate {
            Fate::Pass => {}
            Fate::Drop => counters.dropped_on_purpose += 1,
            Fate::Twice => counters.doubled_on_purpose += 1,
            Fate::Damage => {
                counters.damaged_on_purpose += 1;
                let at = counters.sent as usize;
                datagram[at % len] ^= 1 << (at / len % 8);
            }
        }
        let (port, token) = (source_port(pkt.path, self.ports), pkt.token);
        let ecn = if pkt.flags.has(Flags::ECT) { Ecn::Capable } else { Ecn::NotCapable };
        let (tos, twice) = (tos(pkt.class, ecn), fate == Fate::Twice);
        let outgoing = Outgoing { to, port, tos, len, twice, token };
        if (fate == Fate::Drop || !self.backend.append(outgoing, counters)) && token != 0 {
            self.lost.push((token, Left::Handed(Instant::now())));
        }
        counters.sent += 1;
        counters.data_sent += u64::from(payload_len > 0);
        Ok(())
    }

    /// Send what is loaded. False if some of it has to wait on.
    pub(crate) fn flush(&mut self, counters: &mut Counters) -> io::Result<bool> {
        self.backend.flush(counters)
    }

    /// Whether tokens of what was sent are still to come.
    pub(crate) fn awaits(&self) -> bool {
        !self.lost.is_empty() || self.backend.awaits()
    }

    /// The tokens of what has left since they were last asked for; what was lost on purpose has
    /// left, too.
    pub(crate) fn left(&mut self, left: &mut Vec<(u32, Left)>) {
        left.append(&mut self.lost);
        self.backend.left(left);
    }

    /// Look for one datagram.
    pub(crate) fn receive(&mut self, counters: &mut Counters) -> io::Result<Received> {
        let (from, marked) = match self.backend.receive()? {
            Arrived::Nothing => return Ok(Received::Nothing),
            Arrived::Ignored => return Ok(Received::Ignored),
            Arrived::Damaged => {
                counters.received += 1;
                counters.damaged += 1;
                return Ok(Received::Ignored);
            }
            Arrived::Datagram { from, marked } => (from, marked),
        };
        counters.received += 1;
        let datagram = self.backend.datagram();
        let pkt = &mut self.packet;
        let decoded = match decode(datagram, pkt, &mut self.beside) {
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
        // Switches send back trimmed headers and nothing else. This host would take a control
        // packet of its own, sent back by somebody else, for its peer's. That flag stays as it is.
        let whole = !pkt.flags.has(Flags::TRIMMED) || pkt.flags.has(Flags::CONTROL);
        if pkt.flags.has(Flags::BOUNCED) && whole {
            counters.malformed += 1;
            return Ok(Received::Ignored);
        }
        // What comes back is by this host, with the key of whom it was for.
        let peer = self.peers.get(&pkt.src);
        let Some(peer) = peer.filter(|peer| peer.sends_from(from, pkt, self.ports)) else {
            counters.unknown_peer += 1;
            return Ok(Received::Ignored);
        };
        if decoded.is_by(peer.key.as_ref()).is_err() {
            counters.forged += 1;
            return Ok(Received::Ignored);
        }
        if marked {
            pkt.flags.set(Flags::CE);
        }
        self.payload = datagram.len() - decoded.payload().len()..datagram.len();
        Ok(Received::Packet)
    }

    /// The packet received last.
    pub(crate) fn packet(&self) -> &Packet {
        &self.packet
    }

    /// What is said beside it.
    pub(crate) fn beside(&self) -> Beside {
        self.beside
    }

    /// The payload of the packet received last.
    pub(crate) fn payload(&self) -> &[u8] {
        self.backend.datagram().get(self.payload.clone()).unwrap_or(&[])
    }

    /// Sleep until a datagram arrives, a loaded one can be sent, the bell rings, or `timeout`
    /// has passed.
    pub(crate) fn wait(&self, timeout: Dur, doorbell: Option<&Doorbell>) -> io::Result<()> {
        if timeout < SPIN_BELOW {
            std::thread::yield_now();
            return Ok(());
        }
        let timeout = if self.awaits() { timeout.min(LOOK) } else { timeout };
        let flags = match self.is_loaded() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let ns = timeout.0 / 1_000;
        let timeout =
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
        let socket = PollFd::from_borrowed_fd(self.backend.fd(), flags);
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

/// Line 0 of `pkt`, as it travels.
fn shim(pkt: &Packet, beside: Beside) -> ShimRepr {
    let Beside { said: (tag, token), oldest, src_life, dst_life } = beside;
    ShimRepr { tag, token, oldest, src_life, dst_life, ..pkt.shim() }
}

/// `bytes` as a datagram, the packet in it, and what is said `beside` it. Its payload must be as
/// long as the packet's flags let expect.
fn decode<'a>(
    bytes: &'a [u8],
    pkt: &mut Packet,
    beside: &mut Beside,
) -> Result<Datagram<'a>, ShimError> {
    let datagram = Datagram::new_checked(bytes)?;
    let shim = ShimRepr::parse(&datagram);
    *pkt = Packet::from_shim(&shim, datagram.header());
    let ShimRepr { tag, token, oldest, src_life, dst_life, .. } = shim;
    *beside = Beside { said: (tag, token), oldest, src_life, dst_life };
    let (have, need) = (datagram.payload().len(), pkt.payload_len() as usize);
    match have == need {
        true => Ok(datagram),
        false => Err(ShimError::Short { need, have }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressBook, Pattern, bind};
    use endpoint::Span;

    const BESIDE: Beside = Beside { said: (5, 6), oldest: MsgId(4), src_life: 7, dst_life: 8 };
    const LOOPBACK: &str = "127.0.0.1:0";

    /// Two ends that know each other.
    fn pair() -> (Link, Link) {
        let (links, _) = with_sockets();
        links
    }

    /// The same, and their sockets.
    fn with_sockets() -> ((Link, Link), [UdpSocket; 2]) {
        let sockets = [0, 1].map(|_| bind(LOOPBACK.parse().unwrap()).unwrap());
        let peers: AddressBook =
            (0..2).map(|i| (HostId(i), sockets[i as usize].local_addr().unwrap())).collect();
        let link = |me: u32| {
            let config = Config::loopback(HostId(me), peers.clone(), 1);
            Link::new(sockets[me as usize].try_clone().unwrap().into(), &config).unwrap()
        };
        ((link(0), link(1)), sockets)
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
            Received::Packet => {
                assert_eq!(link.beside(), BESIDE);
                Some(*link.packet())
            }
            _ => None,
        }
    }

    /// Of what has left: loopback stamps inside `send`.
    fn tokens(link: &mut Link) -> Vec<u32> {
        let mut left = Vec::new();
        link.left(&mut left);
        left.into_iter().map(|(token, _)| token).collect()
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
        let ((_, mut b), [a, to]) = with_sockets();
        let to = to.local_addr().unwrap();
        let mut counters = Counters::default();
        let mut bytes = vec![0; 200];
        let repr = ShimRepr { span_len: 5, ..shim(&data(5), BESIDE) };
        let cut = repr.emit(b"hdr", 4, &mut bytes).unwrap();
        seal(&mut bytes[..cut], None);
        a.send_to(&bytes[..cut], to).unwrap();
        a.send_to(b"hello", to).unwrap();
        let elsewhere = ShimRepr { dst: HostId(7), ..repr };
        let len = elsewhere.emit(b"hdr", 5, &mut bytes).unwrap();
        seal(&mut bytes[..len], None);
        a.send_to(&bytes[..len], to).unwrap();
        let len = repr.emit(b"hdr", 5, &mut bytes).unwrap();
        bytes[SHIM_LEN + 3] = 1;
        seal(&mut bytes[..len], None);
        bytes[SHIM_LEN + 3] = 2;
        a.send_to(&bytes[..len], to).unwrap();
        seal(&mut bytes[..len], None);
        let stranger = UdpSocket::bind(LOOPBACK).unwrap();
        stranger.send_to(&bytes[..len], to).unwrap();
        for _ in 0..5 {
            assert!(look(&mut b, &mut counters).is_none());
        }
        assert_eq!(counters.damaged, 1);
        assert_eq!((counters.malformed, counters.misaddressed, counters.unknown_peer), (2, 1, 1));
        a.send_to(&bytes[..len], to).unwrap();
        assert!(look(&mut b, &mut counters).is_some(), "the same bytes from their host");
    }

    /// Of path 6, with four ports, from the third; what is sent back comes from where it was sent.
    #[test]
    fn a_packet_is_believed_from_the_port_of_its_path_alone() {
        let sockets = || [0, 1].map(|_| bind(LOOPBACK.parse().unwrap()).unwrap());
        // The ports behind a free one are mostly free, too.
        let some = std::iter::repeat_with(sockets).take(20);
        let ((mut a, mut b), [at_a, at_b]) = some.into_iter().find_map(linked).unwrap();
        let mut counters = Counters::default();
        let pkt = Packet { path: 6, ..data(5) };
        a.load(&pkt, BESIDE, &mut Pattern::default(), &mut counters).unwrap();
        a.flush(&mut counters).unwrap();
        assert_eq!(look(&mut b, &mut counters).unwrap().path, 6);
        let mut bytes = b.backend.datagram().to_vec();
        for path in [5, 7] {
            let forged = ShimRepr { path, ..shim(&pkt, BESIDE) };
            let len = forged.emit(b"hdr", 5, &mut bytes).unwrap();
            seal(&mut bytes[..len], None);
            at_a.send_to(&bytes, at_b.local_addr().unwrap()).unwrap();
            assert!(look(&mut b, &mut counters).is_none());
        }
        assert_eq!(counters.unknown_peer, 2, "both have left from the first port");
        a.load(&pkt, BESIDE, &mut Pattern::default(), &mut counters).unwrap();
        a.flush(&mut counters).unwrap();
        look(&mut b, &mut counters).unwrap();
        let mut bytes = b.backend.datagram().to_vec();
        let len = wire::shim::trim(&mut bytes, 64);
        wire::shim::bounce(&mut bytes);
        let mut back = at_a.local_addr().unwrap();
        back.set_port(back.port() + 2);
        at_b.send_to(&bytes[..len], back).unwrap();
        let bounced = (0..4).find_map(|_| look(&mut a, &mut counters)).unwrap();
        assert!(bounced.flags.has(Flags::BOUNCED.with(Flags::TRIMMED)));
    }

    /// Two ends of four source ports each, if those are free, and sockets at their first ports.
    fn linked(sockets: [UdpSocket; 2]) -> Option<((Link, Link), [UdpSocket; 2])> {
        let at = |i: u32| sockets[i as usize].local_addr().unwrap();
        let peers: AddressBook = (0..2).map(|i| (HostId(i), at(i))).collect();
        let link = |me: u32| {
            let config = Config::loopback(HostId(me), peers.clone(), 1);
            let config = Config { source_ports: 4, ..config };
            Link::new(sockets[me as usize].try_clone().unwrap().into(), &config).ok()
        };
        Some(((link(0)?, link(1)?), sockets))
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
        assert!(matches!(load(data(70_000)), ContractViolation::PathMtu { .. }));
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
        let bytes = b.payload.end + IP_AND_UDP;
        a.peers.get_mut(&dst).unwrap().mtu = bytes;
        a.load(&data(1_400), BESIDE, &mut Pattern::default(), &mut counters).unwrap();
        let longer =
            a.load(&data(1_407), BESIDE, &mut Pattern::default(), &mut counters).unwrap_err();
        assert_eq!(longer, ContractViolation::PathMtu { bytes: bytes + 7, dst, mtu: bytes });
        assert!(longer.to_string().contains("payload by 7 bytes"), "{longer}");
    }
}
