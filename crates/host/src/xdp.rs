//! Datagrams over AF_XDP: the frames of UDP datagrams, made and read here instead of by the kernel.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use endpoint::prefetch;
use wire::frame::{Ecn, checksum};
use xdp::{Filter, Mode, OpenError};

use crate::backend::{Arrived, BURST, Backend, DATAGRAM_MAX, Left, Outgoing};
use crate::neighbours::{self, Mac, interface_of};
use crate::{AddressBook, Counters, udp};

/// Why a host cannot have AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The address is not this machine's.
    #[error("{0} is no address of an interface in this network namespace")]
    NoInterface(Ipv4Addr),
    /// The port is taken, or may not be had.
    #[error("cannot listen at {at}: {error}")]
    Port {
        /// The address and port.
        at: SocketAddrV4,
        /// What the kernel said.
        error: io::Error,
    },
    /// The interface cannot be had.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A peer that AF_XDP cannot reach.
    #[error("no frame can be sent to {peer}: {why}")]
    Peer {
        /// Its address.
        peer: SocketAddr,
        /// What is missing.
        why: String,
    },
    /// Packets are to leave from more ports than it listens at.
    #[error(
        "packets are to leave from {wanted} ports, and {at} has {have}: bind it with as many \
         (`Xdp::bind_ports`)"
    )]
    Ports {
        /// Where it listens.
        at: SocketAddrV4,
        /// As many as packets are to leave from.
        wanted: u16,
        /// As many as it has.
        have: u16,
    },
}

/// A UDP port of which the datagrams come and go as frames, past the kernel's stack (AF_XDP). The
/// ports are reserved at the kernel, too, so nobody else can have them. One per interface.
pub struct Xdp {
    socket: xdp::Socket,
    at: SocketAddrV4,
    interface: String,
    /// Hold the ports; get nothing.
    reserved: Vec<UdpSocket>,
}

impl Xdp {
    /// The datagrams to `at`, of which the address is an interface's. The interface has one receive
    /// queue; the caller is root or has `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_BPF`.
    ///
    /// # Errors
    /// There is no such address, the port is taken, or the interface cannot be had.
    pub fn bind(at: SocketAddrV4) -> Result<Self, XdpError> {
        Self::bind_ports(at, 1)
    }

    /// The same, with as many ports as packets are to leave from, that of `at` the first of them
    /// (`Config::source_ports`).
    ///
    /// # Errors
    /// As [`Self::bind`], or one of the ports is taken.
    pub fn bind_ports(at: SocketAddrV4, ports: u16) -> Result<Self, XdpError> {
        let interface = interface_of(*at.ip()).ok_or(XdpError::NoInterface(*at.ip()))?;
        let port = |error| XdpError::Port { at, error };
        let first = UdpSocket::bind(at).map_err(port)?;
        let SocketAddr::V4(at) = first.local_addr().map_err(port)? else {
            return Err(XdpError::NoInterface(*at.ip()));
        };
        let others = udp::reserve(at.into(), ports, UdpSocket::bind).map_err(port)?;
        let reserved: Vec<UdpSocket> = std::iter::once(first).chain(others).collect();
        let ports = reserved.len() as u16;
        let filter = Filter::Udp { address: *at.ip(), port: at.port(), ports };
        let socket = xdp::Socket::open(&interface, filter)?;
        Ok(Self { socket, at, interface, reserved })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddrV4 {
        self.at
    }

    /// Where frames are taken from the kernel.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.socket.mode()
    }

    /// With the frames' addresses of `peers`, which are asked for (ARP) where they are not known.
    /// Packets leave from `ports` ports.
    pub(crate) fn to(self, peers: &AddressBook, ports: u16) -> Result<Frames, XdpError> {
        let Self { socket, at, interface, reserved } = self;
        let have = reserved.len() as u16;
        if ports > have {
            return Err(XdpError::Ports { at, wanted: ports, have });
        }
        let mac = neighbours::own(&interface).ok_or(XdpError::NoInterface(*at.ip()))?;
        let mut headers = BTreeMap::new();
        for &peer in peers.values() {
            let error = |why| XdpError::Peer { peer, why };
            let SocketAddr::V4(to) = peer else {
                return Err(error("AF_XDP hosts speak IPv4".to_owned()));
            };
            if to != at {
                let next = neighbours::find(&interface, *to.ip(), &reserved[0]).map_err(error)?;
                headers.insert(peer, template((next, mac), (at, to)));
            }
        }
        Ok(Frames {
            socket,
            first: at.port(),
            headers,
            waiting: 0,
            spare: Vec::new(),
            frames: 0..0,
            last: 0,
            datagram: 0..0,
            _reserved: reserved,
        })
    }
}

/// Ethernet, IPv4 (RFC 791, 3.1) without options, UDP (RFC 768).
const ETHERNET: usize = 14;
const IP: usize = 20;
const HEADERS: usize = ETHERNET + IP + 8;
type Headers = [u8; HEADERS];

/// Offsets in the IP header, and in the UDP header.
const TOS: usize = 1;
const TOTAL_LEN: usize = 2;
const IP_CHECK: usize = 10;
const SOURCE: usize = 12;
const UDP_LEN: usize = 4;

/// The headers of a datagram without a length. It is not to be fragmented, so that its
/// identification may stay zero (RFC 6864, 4.1). A UDP checksum of zero is none: switches cut
/// payload away, and what hosts say to each other has checks of its own.
fn template((to_mac, mac): (Mac, Mac), (from, to): (SocketAddrV4, SocketAddrV4)) -> Headers {
    const DONT_FRAGMENT: u8 = 0x40;
    const TTL: u8 = 64;
    const UDP: u8 = 17;
    let mut bytes = [0; HEADERS];
    bytes[..6].copy_from_slice(&to_mac);
    bytes[6..12].copy_from_slice(&mac);
    bytes[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    let ip = &mut bytes[ETHERNET..];
    ip[6] = DONT_FRAGMENT;
    ip[8..10].copy_from_slice(&[TTL, UDP]);
    ip[SOURCE..16].copy_from_slice(&from.ip().octets());
    ip[16..20].copy_from_slice(&to.ip().octets());
    ip[IP..22].copy_from_slice(&from.port().to_be_bytes());
    ip[22..24].copy_from_slice(&to.port().to_be_bytes());
    bytes
}

/// Into the headers in `frame`, which [`template`] has made: a datagram of `len` bytes follows, of
/// this class and marks, and comes from `port`.
fn complete(frame: &mut [u8], len: usize, port: u16, tos: u8) {
    let (ip, udp) = frame[ETHERNET..HEADERS].split_at_mut(IP);
    put(udp, 0, port.into());
    put(udp, UDP_LEN, HEADERS - ETHERNET - IP + len);
    put(ip, TOTAL_LEN, HEADERS - ETHERNET + len);
    ip[TOS] = tos;
    let sum = checksum(ip);
    put(ip, IP_CHECK, usize::from(sum));
}

/// The two bytes at `at`.
fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

/// Datagrams as frames.
pub(crate) struct Frames {
    socket: xdp::Socket,
    /// The first of the host's ports.
    first: u16,
    /// Headers of datagrams to each peer.
    headers: BTreeMap<SocketAddr, Headers>,
    /// Bytes that have been appended since everything had left.
    waiting: usize,
    /// Where a datagram is written for which there is no room. It is lost.
    spare: Vec<u8>,
    /// Those frames of the last look that have not been looked at.
    frames: Range<usize>,
    /// The frame looked at last, and where in it its datagram is.
    last: usize,
    datagram: Range<usize>,
    _reserved: Vec<UdpSocket>,
}

impl Frames {
    /// A frame of what is in the slot. Whether there is room.
    fn push(&mut self, datagram: Outgoing, counters: &mut Counters) -> bool {
        let Outgoing { to, port, tos, len, token, .. } = datagram;
        let (Some(headers), Some(slot)) = (self.headers.get(&to), self.socket.slot()) else {
            counters.send_losses += 1;
            return false;
        };
        slot[..HEADERS].copy_from_slice(headers);
        complete(slot, len, self.first.wrapping_add(port), tos);
        self.socket.push(HEADERS + len, token);
        self.waiting += HEADERS + len;
        true
    }
}

impl Backend for Frames {
    fn slot(&mut self) -> &mut [u8] {
        let most = (self.socket.frame_max() - HEADERS).min(DATAGRAM_MAX);
        if !self.socket.has_room(1) {
            self.spare.resize(most, 0);
            return &mut self.spare;
        }
        match self.socket.slot() {
            Some(slot) => &mut slot[HEADERS..HEADERS + most],
            None => &mut [],
        }
    }

    fn append(&mut self, datagram: Outgoing, counters: &mut Counters) -> bool {
        let copy = datagram.twice.then(|| self.slot()[..datagram.len].to_vec());
        let taken = self.push(datagram, counters);
        if let Some(copy) = copy {
            self.slot()[..datagram.len].copy_from_slice(&copy);
            self.push(Outgoing { token: 0, ..datagram }, counters);
        }
        taken
    }

    fn is_loaded(&self) -> bool {
        self.socket.is_loaded()
    }

    fn gathers(&self) -> bool {
        !self.frames.is_empty()
    }

    fn is_full(&mut self) -> bool {
        // A datagram may be sent twice.
        self.waiting >= BURST || !self.socket.has_room(2)
    }

    fn flush(&mut self, _: &mut Counters) -> io::Result<bool> {
        let all = self.socket.flush()?;
        if all {
            self.waiting = 0;
        }
        Ok(all)
    }

    fn awaits(&self) -> bool {
        self.socket.awaits()
    }

    fn left(&mut self, left: &mut Vec<(u32, Left)>) {
        left.extend(self.socket.take_left().map(|token| (token, Left::Completed)));
    }

    fn receive(&mut self) -> io::Result<Arrived> {
        if self.frames.is_empty() {
            self.frames = 0..self.socket.receive();
        }
        let Some(n) = self.frames.next() else { return Ok(Arrived::Nothing) };
        self.last = n;
        let frame = self.socket.frame(n);
        // The kernel has written it on its sender's processor: all lines are asked for at once.
        prefetch::item(frame);
        let Some((from, ecn, datagram)) = read(frame) else {
            return Ok(Arrived::Damaged);
        };
        self.datagram = datagram;
        Ok(Arrived::Datagram { from, marked: ecn == Ecn::Marked })
    }

    fn datagram(&self) -> &[u8] {
        &self.socket.frame(self.last)[self.datagram.clone()]
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Who sent the datagram in `frame`, how its packet is marked, and where its bytes are. The filter
/// has seen that there are headers of Ethernet, IPv4 without options, and UDP.
fn read(frame: &[u8]) -> Option<(SocketAddr, Ecn, Range<usize>)> {
    let (ip, udp) = frame.get(ETHERNET..HEADERS)?.split_at(IP);
    if checksum(ip) != 0 {
        return None;
    }
    let (total, len) = (u16_at(ip, TOTAL_LEN), u16_at(udp, UDP_LEN));
    let end = ETHERNET + IP + len;
    // A short frame is padded; a switch that cuts payload away may leave more in either.
    let fits = (HEADERS..=frame.len()).contains(&end) && IP + len <= total;
    let source: [u8; 4] = *ip[SOURCE..].first_chunk()?;
    let from = SocketAddr::from((source, u16_at(udp, 0) as u16));
    fits.then(|| (from, Ecn::from_bits(ip[TOS]), HEADERS..end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpoint::{Draw, Purpose};
    use wire::frame::tos;

    const FROM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 700);
    const TO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 800);

    /// A frame with `len` bytes of datagram, as [`Frames::push`] completes it.
    fn frame(len: usize, ecn: Ecn) -> Vec<u8> {
        let mut frame = template(([2; 6], [4; 6]), (FROM, TO)).to_vec();
        frame.resize(HEADERS + len, 7);
        complete(&mut frame, len, FROM.port(), tos(1, ecn));
        frame
    }

    #[test]
    fn what_is_written_is_read() {
        for (len, ecn) in [(0, Ecn::NotCapable), (1, Ecn::Capable), (1_400, Ecn::Marked)] {
            let mut frame = frame(len, ecn);
            let read_as = Some((SocketAddr::V4(FROM), ecn, HEADERS..HEADERS + len));
            assert_eq!(read(&frame), read_as);
            // Ethernet's shortest frames are padded.
            frame.resize(HEADERS + len + 18, 0);
            assert_eq!(read(&frame), read_as);
            assert_eq!(frame[..12], [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
        }
    }

    #[test]
    fn the_kernel_s_reading_of_the_headers_is_the_same() {
        use wire::frame::{Carrier, FrameRepr};
        let (src, dst) = (units::HostId(1), units::HostId(2));
        let macs = (wire::frame::mac(dst), wire::frame::mac(src));
        let mut mine = template(macs, (FROM, TO)).to_vec();
        mine.resize(HEADERS + 5, 7);
        complete(&mut mine, 5, 703, tos(6, Ecn::Capable));
        let repr = FrameRepr {
            src,
            dst,
            carrier: Carrier::Udp { port: 800 },
            class: 6,
            ecn: Ecn::Capable,
            path: 0,
            body_len: 5,
        };
        let mut frame = [0; HEADERS + 5];
        repr.emit(&[7; 5], &mut frame).unwrap();
        // A simulated packet has no host's port to count from.
        frame[34..36].copy_from_slice(&703_u16.to_be_bytes());
        assert_eq!(mine, frame);
    }

    #[test]
    fn a_damaged_header_is_none_and_no_length_leads_outside() {
        const ANY: Purpose = Purpose::new("any bytes");
        let draw = Draw::new(1, Purpose::new("frames"), 0);
        let good = frame(100, Ecn::NotCapable);
        for bit in 8 * ETHERNET..8 * (ETHERNET + IP) {
            let mut frame = good.clone();
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&frame), None, "bit {bit}");
        }
        for n in 0..100_000 {
            let mut frame = good[..draw.below(ANY, 3 * n, 143) as usize].to_vec();
            if let Some(len) = frame.get_mut(38..40) {
                len.copy_from_slice(&(draw.bits(ANY, 3 * n + 1) as u16 % 300).to_be_bytes());
            }
            if let Some((_, _, datagram)) = read(&frame) {
                assert!(datagram.start <= datagram.end && datagram.end <= frame.len());
            }
        }
    }
}
