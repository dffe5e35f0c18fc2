//! Frames by the kernel's copy of all that an interface gets (AF_PACKET, packet(7)), with the
//! instants at which they came.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockProtocol,
    SockType, bind, recvmmsg, send, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::interface::InterfaceError;

/// Frames received with one system call.
const BATCH: usize = 64;
/// The longest frame: an IPv4 packet has at most 65535 bytes.
const FRAME_MAX: usize = 14 + 65_535;
/// Asked for; the kernel grants at most `net.core.rmem_max`.
const BUFFER: usize = 8 << 20;
/// `PACKET_OUTGOING` of packet(7): a copy of what this machine sent itself.
const OUTGOING: u8 = 4;

/// A socket on an interface.
pub(crate) struct Packet {
    fd: OwnedFd,
    index: usize,
    /// [`BATCH`] of [`FRAME_MAX`] bytes. In one piece, so that the kernel gives no memory for the
    /// ends of all.
    buffers: Vec<u8>,
    /// What the last look gave: in which buffer, how long, when it came (ns since 1970).
    received: Vec<(usize, usize, u64)>,
    /// Frames that the kernel has lost, since nobody took them in time.
    overflowed: u32,
}

impl Packet {
    /// On the interface `name` of this network namespace.
    pub(crate) fn open(name: &str) -> Result<Self, InterfaceError> {
        let kernel = |error: Errno| match error {
            Errno::EPERM | Errno::EACCES => InterfaceError::Forbidden(name.to_owned()),
            error => InterfaceError::Kernel { name: name.to_owned(), error: error.into() },
        };
        let address = address(name).map_err(kernel)?.map_err(|there| {
            let name = name.to_owned();
            InterfaceError::Unknown { name, there }
        })?;
        let kind = (AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC);
        let fd = socket(kind.0, kind.1, kind.2, SockProtocol::EthAll).map_err(kernel)?;
        // The address names no protocol: then that of the socket stays.
        bind(fd.as_raw_fd(), &address).map_err(kernel)?;
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true).map_err(kernel)?;
        setsockopt(&fd, sockopt::RxqOvfl, &1).map_err(kernel)?;
        setsockopt(&fd, sockopt::RcvBuf, &BUFFER).map_err(kernel)?;
        setsockopt(&fd, sockopt::SndBuf, &BUFFER).map_err(kernel)?;
        Ok(Self {
            fd,
            index: address.ifindex(),
            buffers: buffers(),
            received: Vec::with_capacity(BATCH),
            overflowed: 0,
        })
    }

    /// Frames that the kernel has lost, since nobody took them in time.
    pub(crate) fn overflowed(&self) -> u64 {
        u64::from(self.overflowed)
    }

    /// Look for frames. Whether more may wait.
    pub(crate) fn receive(&mut self) -> io::Result<bool> {
        self.received.clear();
        // Made anew each time: the kernel writes into them how much it has written.
        let space = cmsg_space!(TimeSpec, u32);
        let mut headers = MultiHeaders::<LinkAddr>::preallocate(BATCH, Some(space));
        let buffers = self.buffers.chunks_exact_mut(FRAME_MAX);
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            buffers.map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let fd = self.fd.as_raw_fd();
        let result = recvmmsg(fd, &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None);
        let messages = match result {
            Ok(messages) => messages,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let mut seen = 0;
        for (n, message) in messages.enumerate() {
            seen = n + 1;
            let mut at = 0;
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::ScmTimestampns(stamp) => at = nanoseconds(stamp),
                    ControlMessageOwned::RxqOvfl(lost) => self.overflowed = lost,
                    _ => {}
                }
            }
            // Until it was bound, the socket heard all interfaces.
            let mine = |from: &LinkAddr| from.ifindex() == self.index && from.pkttype() != OUTGOING;
            if message.address.as_ref().is_some_and(mine) {
                self.received.push((n, message.bytes, at));
            }
        }
        Ok(seen == BATCH)
    }

    /// Nothing is left of what the last look gave.
    pub(crate) fn forget(&mut self) {
        self.received.clear();
    }

    /// How many frames the last look gave.
    pub(crate) fn count(&self) -> usize {
        self.received.len()
    }

    /// When the `n`-th of them came, in ns since 1970.
    pub(crate) fn stamp(&self, n: usize) -> u64 {
        self.received[n].2
    }

    /// The `n`-th frame that the last look gave.
    pub(crate) fn frame(&self, n: usize) -> &[u8] {
        let (buffer, len, _) = self.received[n];
        &self.buffers[buffer * FRAME_MAX..][..len]
    }

    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.fd.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }
}

impl AsFd for Packet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Buffers whose beginnings have memory, so that the kernel need not give it as frames come.
fn buffers() -> Vec<u8> {
    const PAGE: usize = 4096;
    const USUAL: usize = 9_200;
    let mut buffers = vec![0; FRAME_MAX * BATCH];
    for buffer in buffers.chunks_exact_mut(FRAME_MAX) {
        buffer[..USUAL].iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    }
    buffers
}

/// The address of interface `name`, or the names of those that there are.
fn address(name: &str) -> nix::Result<Result<LinkAddr, Vec<String>>> {
    let mut there = Vec::new();
    for interface in getifaddrs()? {
        let Some(address) = interface.address.as_ref().and_then(|a| a.as_link_addr()) else {
            continue;
        };
        if interface.interface_name == name {
            return Ok(Ok(*address));
        }
        there.push(interface.interface_name);
    }
    Ok(Err(there))
}

fn nanoseconds(stamp: TimeSpec) -> u64 {
    let (s, ns) = (stamp.tv_sec(), stamp.tv_nsec());
    u64::try_from(s).unwrap_or(0) * 1_000_000_000 + u64::try_from(ns).unwrap_or(0)
}
