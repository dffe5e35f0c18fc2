//! Wakes a host that sleeps, from any thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};

/// A bell at the host's door.
pub(crate) struct Doorbell {
    rung: AtomicBool,
    /// An eventfd(2), readable once the bell is rung.
    fd: OwnedFd,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { rung: AtomicBool::new(false), fd })
    }

    /// Ring. One system call, none where it has been rung already.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // It cannot overflow: it is rung once for each time that it is heard.
            let _ = write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Whether it has been rung since this was last asked. What rang it has been done before.
    pub(crate) fn take(&self) -> bool {
        self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::SeqCst)
    }

    /// What to wait for.
    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.fd, PollFlags::IN)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// It has been waited for: make it silent. Whether it was rung stays known.
    pub(crate) fn silence(&self) {
        let _ = read(&self.fd, &mut [0; 8]);
    }
}
