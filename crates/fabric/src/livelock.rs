//! Livelocks: calls or events that lead to one another without end at one instant.
//!
//! Nothing is counted while all is well. An event at the instant in hand comes up within the open
//! slot, so the loop counts those of one slot, in a register. Beyond [`FRESH_MAX`] they are counted
//! by instant, here, and the last ones are kept for the report. So it is with calls at one host.

use std::collections::VecDeque;
use std::fmt;

use units::{HostId, MsgKey, Time};

/// Events that come up within one slot before anything is suspected.
pub(crate) const FRESH_MAX: u32 = 1 << 16;
/// Calls at one host within one call before they are counted.
pub(crate) const CALLS_MAX: u32 = 1 << 6;
/// Calls or events at one instant that are a livelock in the smallest fabric, where there may be
/// many messages: an application may submit all of them at once.
const LIVELOCK: u64 = 1 << 20;
/// As many again for each thing in the fabric.
const LIVELOCK_EACH: u64 = 64;
/// The last calls or events that are kept.
const RECENT: usize = 8;

/// What was called or happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecentKind {
    /// A packet arrived at the end of a link.
    Arrival,
    /// A port had sent a packet.
    Departure,
    /// A timer of a host's endpoint.
    Timer,
    /// A timer of, or a signal to, a host's application.
    App,
    /// A frame of flow control, or what one waits for.
    FlowControl,
    /// A fault.
    Fault,
    /// What an endpoint or an application wanted done was carried out.
    Effect,
    /// A host's endpoint was asked for a packet.
    Poll,
}

/// A call or event shortly before a livelock was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recent {
    /// What.
    pub kind: RecentKind,
    /// At which host or, with `host` unknown, at which directed link.
    pub host: Option<HostId>,
    /// The directed link of an event, by its number.
    pub link: Option<u32>,
    /// Which timer.
    pub timer: Option<u32>,
    /// The message concerned, if one is.
    pub message: Option<MsgKey>,
    /// When.
    pub at: Time,
}

impl fmt::Display for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            RecentKind::Arrival => "arrival",
            RecentKind::Departure => "departure",
            RecentKind::Timer => "timer",
            RecentKind::App => "application",
            RecentKind::FlowControl => "flow control",
            RecentKind::Fault => "fault",
            RecentKind::Effect => "effect",
            RecentKind::Poll => "poll",
        })?;
        if let Some(timer) = self.timer {
            write!(f, " {timer}")?;
        }
        match (self.host, self.link) {
            (Some(host), _) => write!(f, " at {host}")?,
            (None, Some(link)) => write!(f, " at link {link}")?,
            (None, None) => {}
        }
        if let Some(message) = self.message {
            write!(f, " of {message}")?;
        }
        write!(f, ", {}", self.at)
    }
}

/// What is suspected to be a livelock.
#[derive(Default)]
pub(crate) struct Suspect {
    at: Time,
    count: u64,
    recent: VecDeque<Recent>,
}

impl Suspect {
    /// One more call or event, of those that are counted; `size` things are in the fabric. If they
    /// are too many at one instant: how many that is.
    #[cold]
    pub(crate) fn count(&mut self, recent: Recent, size: usize) -> Option<u64> {
        if self.at != recent.at {
            (self.at, self.count) = (recent.at, 0);
            self.recent.clear();
        }
        self.count += 1;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(recent);
        let most = LIVELOCK + LIVELOCK_EACH * size as u64;
        (self.count > most).then_some(most)
    }

    /// The last ones.
    pub(crate) fn take_recent(&mut self) -> Vec<Recent> {
        std::mem::take(&mut self.recent).into()
    }
}
