//! An interface of this machine: whole frames in and out, with the instants at which they came
//! (AF_PACKET, packet(7)).

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

/// Frames received with one system call.
pub(crate) const BATCH: usize = 64;
/// The longest frame: an IPv4 packet has at most 65535 bytes.
const FRAME_MAX: usize = 14 + 65_535;
/// Asked for; the kernel grants at most `net.core.rmem_max`.
const BUFFER: usize = 8 << 20;
/// `PACKET_OUTGOING` of packet(7): a copy of what this machine sent itself.
const OUTGOING: u8 = 4;

/// Why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// There is none of that name.
    #[error("there is no interface {name} in this network namespace, only {}", there.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
    /// It may not be opened.
    #[error(
        "interface {0} may not be read: be root, or run inside `unshare -Urnm`, where any user has \
         interfaces of their own"
    )]
    Forbidden(String),
    /// The kernel refused something.
    #[error("interface {name}: {error}")]
    Kernel {
        /// The name.
        name: String,
        /// What it said.
        error: io::Error,
    },
}

/// An interface, opened.
pub struct Interface {
    name: String,
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

impl Interface {
    /// The interface `name` of this network namespace.
    ///
    /// # Errors
    /// There is none, or it may not be opened.
    pub fn open(name: &str) -> Result<Self, InterfaceError> {
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
            name: name.to_owned(),
            fd,
            index: address.ifindex(),
            buffers: buffers(),
            received: Vec::with_capacity(BATCH),
            overflowed: 0,
        })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Frames that the kernel has lost, since nobody took them in time.
    pub(crate) fn overflowed(&self) -> u32 {
        self.overflowed
    }

    /// Nothing is left of what the last look gave.
    pub(crate) fn forget(&mut self) {
        self.received.clear();
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

    /// When each of the frames came that the last look gave, in ns since 1970.
    pub(crate) fn stamps(&self) -> impl Iterator<Item = u64> {
        self.received.iter().map(|(_, _, at)| *at)
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

impl AsFd for Interface {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_refused_with_those_that_are() {
        let error = Interface::open("nowhere0").err().unwrap().to_string();
        assert!(error.contains("no interface nowhere0") && error.contains("lo"), "{error}");
    }
}
