//! An interface of this machine: whole frames in and out, with the instants at which they came.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use xdp::Filter;

use crate::packet::Packet;

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
    /// AF_XDP cannot be had.
    #[error(transparent)]
    Xdp(#[from] xdp::OpenError),
    /// The kernel refused something.
    #[error("interface {name}: {error}")]
    Kernel {
        /// The name.
        name: String,
        /// What it said.
        error: io::Error,
    },
}

/// By what frames come and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// AF_PACKET: for anybody in namespaces of their own. The kernel stamps frames as they come.
    #[default]
    Packet,
    /// AF_XDP: for root; several times cheaper. Frames count from when they were looked at.
    Xdp,
}

/// An interface, opened.
pub struct Interface {
    name: String,
    socket: Socket,
}

enum Socket {
    Packet(Packet),
    Xdp(Box<Frames>),
}

/// Over AF_XDP.
struct Frames {
    socket: xdp::Socket,
    /// Frames of the last look, and when that was, in ns since 1970.
    count: usize,
    at: u64,
}

impl Interface {
    /// The interface `name` of this network namespace.
    ///
    /// # Errors
    /// There is none, or it may not be opened.
    pub fn open(name: &str, backend: Backend) -> Result<Self, InterfaceError> {
        let socket = match backend {
            Backend::Packet => Socket::Packet(Packet::open(name)?),
            Backend::Xdp => {
                let socket = xdp::Socket::open(name, Filter::All)?;
                Socket::Xdp(Box::new(Frames { socket, count: 0, at: 0 }))
            }
        };
        Ok(Self { name: name.to_owned(), socket })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Frames that the kernel has lost, since nobody took them in time.
    pub(crate) fn overflowed(&self) -> u64 {
        match &self.socket {
            Socket::Packet(packet) => packet.overflowed(),
            Socket::Xdp(frames) => frames.socket.lost().unwrap_or(0),
        }
    }

    /// Whether to look for frames is a call of the kernel.
    pub(crate) fn asks_kernel(&self) -> bool {
        matches!(self.socket, Socket::Packet(_))
    }

    /// Nothing is left of what the last look gave.
    pub(crate) fn forget(&mut self) {
        match &mut self.socket {
            Socket::Packet(packet) => packet.forget(),
            Socket::Xdp(frames) => frames.count = 0,
        }
    }

    /// Look for frames, at `now` in ns since 1970. Whether more may wait.
    pub(crate) fn receive(&mut self, now: u64) -> io::Result<bool> {
        match &mut self.socket {
            Socket::Packet(packet) => packet.receive(),
            Socket::Xdp(frames) => {
                (frames.count, frames.at) = (frames.socket.receive(), now);
                Ok(frames.count == xdp::BATCH)
            }
        }
    }

    /// How many frames the last look gave.
    pub(crate) fn count(&self) -> usize {
        match &self.socket {
            Socket::Packet(packet) => packet.count(),
            Socket::Xdp(frames) => frames.count,
        }
    }

    /// When the `n`-th of them came, in ns since 1970.
    pub(crate) fn stamp(&self, n: usize) -> u64 {
        match &self.socket {
            Socket::Packet(packet) => packet.stamp(n),
            Socket::Xdp(frames) => frames.at,
        }
    }

    /// The `n`-th of them.
    pub(crate) fn frame(&self, n: usize) -> &[u8] {
        match &self.socket {
            Socket::Packet(packet) => packet.frame(n),
            Socket::Xdp(frames) => frames.socket.frame(n),
        }
    }

    /// Send `frame`, at the next `flush` at the latest.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Packet(packet) => packet.send(frame),
            Socket::Xdp(frames) => frames.send(frame),
        }
    }

    /// Send what waits. False if some of it has to wait on.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        match &mut self.socket {
            Socket::Xdp(frames) if frames.socket.is_loaded() => frames.socket.flush(),
            _ => Ok(true),
        }
    }
}

impl Frames {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > self.socket.frame_max() {
            return Err(Errno::EMSGSIZE.into());
        }
        if !self.socket.has_room(1) {
            self.socket.flush()?;
        }
        let slot = self.socket.slot().ok_or(Errno::ENOBUFS)?;
        slot[..frame.len()].copy_from_slice(frame);
        self.socket.push(frame.len(), 0);
        Ok(())
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Packet(packet) => packet.as_fd(),
            Socket::Xdp(frames) => frames.socket.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_refused_with_those_that_are() {
        let error = Interface::open("nowhere0", Backend::Packet).err().unwrap().to_string();
        assert!(error.contains("no interface nowhere0") && error.contains("lo"), "{error}");
    }
}
