//! What carries datagrams: UDP sockets, AF_XDP, or memory. All write the same bytes, so hosts with
//! either of the first two understand each other.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::time::{Instant, SystemTime};

use crate::{Counters, Memory, Xdp};

/// The most payload of a UDP datagram over IPv4: 65535 less the IP and UDP headers.
pub(crate) const DATAGRAM_MAX: usize = 65_507;
/// The most bytes that wait to be sent: the port is busy then, so that packets are chosen late.
pub(crate) const BURST: usize = 64 << 10;

/// What a host sends and receives with.
#[non_exhaustive]
pub enum Socket {
    /// The kernel's UDP, without privileges; see [`crate::bind`].
    Udp(UdpSocket),
    /// Frames of an interface, past the kernel's stack.
    Xdp(Box<Xdp>),
    /// Another end in this process.
    Memory(Memory),
}

impl From<Memory> for Socket {
    fn from(end: Memory) -> Self {
        Self::Memory(end)
    }
}

impl From<UdpSocket> for Socket {
    fn from(socket: UdpSocket) -> Self {
        Self::Udp(socket)
    }
}

impl From<Xdp> for Socket {
    fn from(socket: Xdp) -> Self {
        Self::Xdp(Box::new(socket))
    }
}

/// A datagram to be sent, of which the bytes are in the slot.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    pub(crate) to: SocketAddr,
    /// From which of the host's ports it leaves.
    pub(crate) port: u16,
    /// Its class and marks ([`wire::frame::tos`]).
    pub(crate) tos: u8,
    pub(crate) len: usize,
    /// It is sent two times.
    pub(crate) twice: bool,
    /// Not zero: to be told when it has left.
    pub(crate) token: u32,
}

/// How it is known that a datagram has left, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The kernel took it then; nothing more is known. Or it was lost then, on purpose.
    Handed(Instant),
    /// The kernel stamped it as it handed it to the interface, by the system's clock.
    Stamped(SystemTime),
    /// The kernel has given its frame back, now or since the last look.
    Completed,
}

/// What one look gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Nothing is waiting.
    Nothing,
    /// Nothing that is worth a datagram; more may wait.
    Ignored,
    /// It came damaged.
    Damaged,
    /// A datagram. Its bytes are there until the next look.
    Datagram {
        from: SocketAddr,
        /// A switch has marked it (CE, RFC 3168).
        marked: bool,
    },
}

/// Datagrams in and out.
pub(crate) trait Backend {
    /// Where the next datagram is to be written: what the way takes, at most [`DATAGRAM_MAX`].
    fn slot(&mut self) -> &mut [u8];

    /// What is in the slot is a datagram. It leaves at the next `flush`. False if it is lost.
    fn append(&mut self, datagram: Outgoing, counters: &mut Counters) -> bool;

    /// Whether datagrams wait to be sent.
    fn is_loaded(&self) -> bool;

    /// Whether more is to be received before what answers it leaves: it is at hand, or answers
    /// join in trains.
    fn gathers(&self) -> bool;

    /// Whether as many wait as may.
    fn is_full(&mut self) -> bool;

    /// Send what waits. False if some of it has to wait on.
    fn flush(&mut self, counters: &mut Counters) -> io::Result<bool>;

    /// Whether tokens of what was sent are still to come.
    fn awaits(&self) -> bool;

    /// The tokens of what has left since the last call.
    fn left(&mut self, left: &mut Vec<(u32, Left)>);

    /// Look for one datagram.
    fn receive(&mut self) -> io::Result<Arrived>;

    /// The bytes of the datagram received last.
    fn datagram(&self) -> &[u8];

    /// What poll(2) waits for.
    fn fd(&self) -> BorrowedFd<'_>;
}
