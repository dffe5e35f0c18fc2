//! When the kernel hands datagrams to an interface: its software stamps of a UDP socket
//! (`SO_TIMESTAMPING`, the kernel's `networking/timestamping` page), which come back through the
//! socket's queue of errors.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant, SystemTime};

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::backend::Left;

/// A stamp that is not there by then is none: the kernel keeps few.
const PATIENCE: Duration = Duration::from_millis(10);
/// What arrives is not stamped (`SOF_TIMESTAMPING_OPT_RX_FILTER`, Linux 6.12).
const SENT_ONLY: u32 = 1 << 17;

/// A token that waits for its stamp.
struct Awaited {
    /// The kernel's number of the call that sent it: those that ask for stamps count.
    call: u32,
    token: u32,
    since: Instant,
}

/// The stamps of one socket.
pub(crate) struct Stamps {
    /// Whether the kernel stamps what is sent now; before the first time, nothing has been asked.
    on: Option<bool>,
    calls: u32,
    awaited: VecDeque<Awaited>,
    /// For what the kernel says of a stamp.
    control: Vec<u8>,
}

impl Stamps {
    pub(crate) fn new() -> Self {
        let control = cmsg_space!([TimeSpec; 3], [u64; 6]);
        Self { on: None, calls: 0, awaited: VecDeque::new(), control }
    }

    /// What `socket` sends from now on is to be stamped if `on`. Whether it is. Each change is a
    /// system call, but a stamp that nobody wants costs more.
    pub(crate) fn ask(&mut self, socket: &UdpSocket, on: bool) -> bool {
        if self.on.unwrap_or(false) != on {
            let numbered = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
            let flags = match on {
                true => numbered | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE,
                false => numbered,
            };
            let quiet = flags | TimestampingFlag::from_bits_retain(SENT_ONLY);
            let set = |flags| setsockopt(socket, sockopt::Timestamping, flags);
            self.on = Some(set(&quiet).or_else(|_| set(&flags)).is_ok() && on);
        }
        self.on == Some(true)
    }

    /// A call has sent what has these tokens, with a stamp.
    pub(crate) fn sent(&mut self, tokens: impl Iterator<Item = u32>) {
        let (call, since) = (self.calls, Instant::now());
        self.awaited.extend(tokens.map(|token| Awaited { call, token, since }));
        self.calls = call.wrapping_add(1);
    }

    /// Whether stamps are to come.
    pub(crate) fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Take the stamps that have come.
    pub(crate) fn take(&mut self, socket: &UdpSocket, left: &mut Vec<(u32, Left)>) {
        while !self.awaited.is_empty() {
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let message =
                recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut self.control), flags);
            let Ok(message) = message else { break };
            let (mut call, mut at) = (None, None);
            for control in message.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::ScmTimestampsns(stamps) => at = Some(stamps.system),
                    ControlMessageOwned::Ipv4RecvErr(error, _)
                    | ControlMessageOwned::Ipv6RecvErr(error, _) => call = Some(error.ee_data),
                    _ => {}
                }
            }
            if let Some((call, at)) = call.zip(at) {
                let at = SystemTime::UNIX_EPOCH + Duration::from(at);
                self.awaited.retain(|one| {
                    if one.call == call {
                        left.push((one.token, Left::Stamped(at)));
                    }
                    one.call != call
                });
            }
        }
        while let Some(one) = self.awaited.front().filter(|one| one.since.elapsed() > PATIENCE) {
            left.push((one.token, Left::Handed(one.since)));
            self.awaited.pop_front();
        }
    }
}
