//! What the kernel says of an interface.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::OpenError;
use crate::kernel::{Ask, ask};

/// An interface of this network namespace.
#[derive(Clone, Copy)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    /// The longest IP packet, bytes.
    pub(crate) mtu: usize,
}

impl Interface {
    /// The interface `name`, which must have one receive queue.
    pub(crate) fn find(name: &str) -> Result<Self, OpenError> {
        let error = |what| move |error: io::Error| OpenError::of(name, what, error);
        let kind = (AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC);
        let any = socket_with(kind.0, kind.1, kind.2, None)
            .map_err(|errno| OpenError::of(name, "a socket", errno.into()))?;
        let Ok(index) = name_to_index(&any, name) else {
            return Err(OpenError::Unknown { name: name.to_owned(), there: names() });
        };
        let mtu = ask(any.as_fd(), name, Ask::Mtu).map_err(error("its MTU"))?[0] as usize;
        // Of an interface that knows no channels there is one.
        let channels = ask(any.as_fd(), name, Ask::Channels).unwrap_or_default();
        let (receive, combined) = (channels[5], channels[8]);
        match (receive + combined) as usize {
            0 | 1 => Ok(Self { index, mtu }),
            queues => Err(OpenError::Queues { name: name.to_owned(), queues }),
        }
    }
}

/// The interfaces that there are. `/sys` shows those of the namespace of whoever mounted it.
fn names() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
    table.lines().filter_map(name).collect()
}
