//! Datagrams over a UDP socket.
//!
//! Packets to one host that follow one another leave as a train, in one system call (UDP GSO), and
//! arrive so (GRO).

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use crate::Counters;
use crate::backend::{Arrived, BURST, Backend, DATAGRAM_MAX, Outgoing};

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

/// A UDP socket and what waits before and behind it.
pub(crate) struct Udp {
    socket: UdpSocket,
    /// What cuts and joins trains, where there are any.
    offloads: Option<UdpSocketState>,
    /// The datagrams of `trains`, one behind the other.
    tx: Vec<u8>,
    /// What the socket has not taken yet.
    trains: VecDeque<Train>,
    rx: Arrivals,
}

/// Datagrams to one host, all of one length but for the last, which may be shorter.
struct Train {
    to: SocketAddr,
    ecn: Option<EcnCodepoint>,
    /// Where they are in [`Udp::tx`].
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
    /// Where the datagram received last is, in which buffer.
    last: (usize, Range<usize>),
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
            last: (0, 0..0),
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

impl Udp {
    pub(crate) fn new(socket: UdpSocket, trains: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let offloads = match trains {
            true => Some(UdpSocketState::new((&socket).into())?),
            false => None,
        };
        Ok(Self {
            socket,
            offloads,
            tx: vec![0; BURST + 2 * DATAGRAM_MAX],
            trains: VecDeque::new(),
            rx: Arrivals::new(),
        })
    }

    /// Where the next datagram goes.
    fn end(&self) -> usize {
        self.trains.back().map_or(0, |train| train.range.end)
    }

    /// The next `len` bytes of `tx` are a datagram.
    fn load(&mut self, to: SocketAddr, ecn: Option<EcnCodepoint>, len: usize) {
        let end = self.end();
        let most = self.offloads.as_ref().map_or(1, UdpSocketState::max_gso_segments);
        match self.trains.back_mut() {
            Some(train) if train.takes(to, ecn, len, most) => train.range.end = end + len,
            _ => self.trains.push_back(Train { to, ecn, range: end..end + len, segment: len }),
        }
    }
}

impl Backend for Udp {
    fn slot(&mut self) -> &mut [u8] {
        let end = self.end();
        &mut self.tx[end..end + DATAGRAM_MAX]
    }

    fn append(&mut self, Outgoing { to, markable, len, twice }: Outgoing, _: &mut Counters) {
        let ecn = markable.then_some(EcnCodepoint::Ect0);
        let end = self.end();
        if twice {
            self.tx.copy_within(end..end + len, end + len);
            self.load(to, ecn, len);
        }
        self.load(to, ecn, len);
    }

    fn is_loaded(&self) -> bool {
        !self.trains.is_empty()
    }

    fn is_full(&mut self) -> bool {
        self.end() >= BURST
    }

    fn flush(&mut self, counters: &mut Counters) -> io::Result<bool> {
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

    fn receive(&mut self) -> io::Result<Arrived> {
        let next = match self.rx.next() {
            Some(next) => next,
            None => {
                match self.rx.fill(&self.socket, self.offloads.as_ref()).map(|()| self.rx.next()) {
                    Ok(Some(next)) => next,
                    Ok(None) => return Ok(Arrived::Nothing),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Arrived::Nothing),
                    Err(e) if is_loss(&e) => return Ok(Arrived::Ignored),
                    Err(e) => return Err(e),
                }
            }
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
        self.socket.as_fd()
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
    use super::*;

    const LOOPBACK: &str = "127.0.0.1:0";

    fn pair() -> (Udp, Udp) {
        let end = || Udp::new(bind(LOOPBACK.parse().unwrap()).unwrap(), true).unwrap();
        (end(), end())
    }

    fn append(from: &mut Udp, to: &Udp, bytes: &[u8], markable: bool) {
        from.slot()[..bytes.len()].copy_from_slice(bytes);
        let to = to.socket.local_addr().unwrap();
        let outgoing = Outgoing { to, markable, len: bytes.len(), twice: false };
        from.append(outgoing, &mut Counters::default());
    }

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
        (0..).zip(&sent).for_each(|(n, bytes)| append(&mut a, &b, bytes, n < 6));
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
    fn a_mark_of_the_network_is_seen() {
        let (a, mut b) = pair();
        for (ecn, expected) in [(EcnCodepoint::Ect0, false), (EcnCodepoint::Ce, true)] {
            let transmit = Transmit {
                destination: b.socket.local_addr().unwrap(),
                ecn: Some(ecn),
                contents: b"datagram",
                segment_size: None,
                src_ip: None,
            };
            a.offloads.as_ref().unwrap().try_send((&a.socket).into(), &transmit).unwrap();
            assert_eq!(look(&mut b), Some((b"datagram".to_vec(), expected)));
        }
    }

    /// EMSGSIZE for a datagram longer than UDP's; the others cannot be had from loopback.
    #[test]
    fn what_the_kernel_refuses_to_send_is_counted_and_the_next_one_leaves() {
        let (mut a, mut b) = pair();
        let mut counters = Counters::default();
        a.load(b.socket.local_addr().unwrap(), None, 70_000);
        assert!(a.flush(&mut counters).unwrap());
        assert_eq!(counters.send_losses, 1);
        append(&mut a, &b, b"next", false);
        a.flush(&mut counters).unwrap();
        assert!(look(&mut b).is_some());
        for errno in [Errno::PERM, Errno::ACCESS, Errno::MSGSIZE, Errno::HOSTDOWN] {
            assert!(is_loss(&errno.into()), "{errno}");
        }
        assert!(!is_loss(&Errno::BADF.into()));
    }
}
