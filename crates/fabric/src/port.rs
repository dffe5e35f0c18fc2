//! The transmitting end of a directed link: its queue, the packet in service, and what is on the
//! wire.
//!
//! Nobody else reads a port's state, so departures need no events: [`Port::replay`] works out, when
//! the port is next touched, what it has sent in the meantime. The arrival at the far end needs one
//! event per packet, which also touches the port, so nothing is ever late.

use std::collections::VecDeque;

use queues::{Desc, Queue};
use units::{Dur, Rate, Time};

use crate::outcome::LinkStats;
use crate::topology::Link;

/// The far end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FarEnd {
    Host(u32),
    /// By index among all switches.
    Switch(u32),
}

/// What is touched for every packet comes first.
#[repr(C)]
pub(crate) struct Port {
    /// When the packet in service will have been, or was, sent.
    pub(crate) free_at: Time,
    /// The packet in service.
    serving: Option<Desc>,
    /// Packets on the wire or in service, with their arrival times, in order.
    flight: VecDeque<(Time, u32)>,
    /// Picoseconds per byte if that is a whole number, else zero.
    ps_per_byte: u64,
    /// From the last bit sent to its arrival, the receiving switch's latency included.
    delay: Dur,
    /// The digest chain of what happened here.
    pub(crate) chain: u64,
    pub(crate) end: FarEnd,
    /// Whether what arrives over this link arrives.
    pub(crate) up: bool,
    /// Waiting packets; `None` for a host's port, whose endpoint chooses when it is free.
    pub(crate) queue: Option<Queue>,
    pub(crate) stats: LinkStats,
    /// Bytes whose transmission begins in this interval count apart.
    window: (Time, Time),
    /// Random choices made so far.
    pub(crate) coins: u64,
    rate: Rate,
}

impl Port {
    pub(crate) fn new(
        link: &Link,
        end: FarEnd,
        delay: Dur,
        queue: Option<Queue>,
        window: (Time, Time),
    ) -> Self {
        Self {
            free_at: Time::ZERO,
            serving: None,
            flight: VecDeque::new(),
            ps_per_byte: link.rate.whole_ps_per_byte().unwrap_or(0),
            delay,
            chain: 0,
            end,
            up: link.up,
            queue,
            stats: LinkStats::default(),
            window,
            coins: 0,
            rate: link.rate,
        }
    }

    /// Whether a packet is in service.
    pub(crate) fn busy(&self) -> bool {
        self.serving.is_some()
    }

    /// Begin to transmit `packet` at `at`. Returns its arrival time if nothing was on the wire, so
    /// that no arrival is scheduled yet.
    // Inlined: see `EventQueue::schedule_fixed`.
    #[inline(always)]
    pub(crate) fn start(&mut self, packet: Desc, at: Time) -> Option<Time> {
        let len = u64::from(packet.len);
        let time = match self.ps_per_byte {
            0 => self.rate.serialise(len),
            ps => Dur(ps * len),
        };
        self.serving = Some(packet);
        self.free_at = at + time;
        let due = self.free_at + self.delay;
        let first = self.flight.is_empty();
        self.flight.push_back((due, packet.handle));
        self.stats.bytes += len;
        if at >= self.window.0 && at < self.window.1 {
            self.stats.bytes_in_window += len;
        }
        first.then_some(due)
    }

    /// The packet in service has been sent at `free_at`; begin the next, if one waits. Returns the
    /// arrival to schedule if the wire was empty.
    #[inline(always)]
    pub(crate) fn depart(&mut self) -> Option<Time> {
        let sent = self.serving.take()?;
        let queue = self.queue.as_mut()?;
        queue.finish(sent);
        let next = queue.dequeue()?;
        self.start(next, self.free_at)
    }

    /// Everything this port has done up to and including `until`. While a packet is in service the
    /// wire is not empty, or the caller has just emptied it and looks at `next_arrival`: so there is
    /// no arrival to report.
    #[inline]
    pub(crate) fn replay(&mut self, until: Time) {
        while self.serving.is_some() && self.free_at <= until {
            self.depart();
        }
    }

    /// The port is idle and its queue may not be: serve it from `at`.
    pub(crate) fn kick(&mut self, at: Time) -> Option<Time> {
        let next = self.queue.as_mut()?.dequeue()?;
        self.start(next, at)
    }

    /// The first packet on the wire has arrived.
    pub(crate) fn arrive(&mut self) -> Option<u32> {
        self.flight.pop_front().map(|(_, handle)| handle)
    }

    /// The first packet on the wire: its arrival and its handle.
    pub(crate) fn first_in_flight(&self) -> Option<&(Time, u32)> {
        self.flight.front()
    }

    /// When the next packet arrives at the far end.
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.flight.front().map(|&(due, _)| due)
    }

    /// Every packet here: on the wire, in service, waiting.
    pub(crate) fn handles(&self) -> impl Iterator<Item = u32> {
        let waiting = self.queue.iter().flat_map(Queue::waiting);
        self.flight.iter().map(|&(_, handle)| handle).chain(waiting.map(|packet| packet.handle))
    }

    /// Bytes in the queue, the packet in service included.
    pub(crate) fn queued_bytes(&self) -> u32 {
        self.queue.as_ref().map_or(0, Queue::bytes)
    }
}
