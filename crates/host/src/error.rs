//! Why a host stops. Nothing that arrives from the network is an error: it is counted.

use std::io;

use thiserror::Error;
use units::{HostId, MsgKey, Time};
use wire::shim::ShimError;

use crate::XdpError;

/// Why a host stops.
#[derive(Debug, Error)]
pub enum Error {
    /// The socket failed for good.
    #[error("the socket failed: {0}")]
    Io(#[from] io::Error),
    /// AF_XDP cannot be had, or cannot reach a peer.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The endpoint broke the contract. A bug in the transport.
    #[error("the transport broke its contract: {0}")]
    Contract(#[from] ContractViolation),
    /// What the endpoint rests on has ended.
    #[error("the transport cannot go on: {0}")]
    Broken(String),
    /// Some peers have keys, and this one has none.
    #[error("{0} has no key, and other peers have: give each one a key, or none")]
    NoKey(HostId),
    /// There are keys, and the incarnation is zero.
    #[error(
        "a host with keys needs an incarnation above zero, each time that it starts a larger one"
    )]
    NoLife,
    /// The application signals a host that is not in the address book.
    #[error("the application signals {0}, which is not in the address book")]
    Stranger(HostId),
}

/// How an endpoint broke the contract of [`endpoint::Endpoint`], in ways that no peer can cause.
/// What a peer can cause (bytes placed twice or outside their packet, a message delivered twice or
/// with a hole) fails the peer's message instead, see [`crate::Counters::contradictions`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ContractViolation {
    /// `Place` while no packet was being received, or one of another host.
    #[error("{len} bytes at {offset} of {key} are placed without a packet of that host")]
    PlacedElsewhere {
        /// The message named.
        key: MsgKey,
        /// The place named.
        offset: u64,
        /// Its length.
        len: u32,
    },
    /// `NotBefore` of an instant that is not later than now.
    #[error("NotBefore({at}) at {now}")]
    NotLater {
        /// The time of the call.
        now: Time,
        /// The instant named.
        at: Time,
    },
    /// A packet to a host that is not in the address book.
    #[error("a packet from {src} to {dst}, where neither or only one is known")]
    Address {
        /// The packet's source.
        src: HostId,
        /// The packet's destination.
        dst: HostId,
    },
    /// A packet longer than the MTU.
    #[error("a packet of {wire_len} bytes, the MTU is {mtu}")]
    Mtu {
        /// Its length on the wire.
        wire_len: u16,
        /// The MTU.
        mtu: u16,
    },
    /// A packet longer on the real wire than the way to its destination takes.
    #[error(
        "a packet of {bytes} bytes with IP and UDP to {dst}, where the network takes {mtu}: lower \
         the transport's payload by {} bytes, or raise the interface's MTU", bytes - mtu
    )]
    PathMtu {
        /// Its length from the IP header on.
        bytes: usize,
        /// The packet's destination.
        dst: HostId,
        /// What the way to it takes.
        mtu: usize,
    },
    /// A packet that no datagram can carry.
    #[error("a packet that does not fit a datagram: {0}")]
    Datagram(#[from] ShimError),
}
