//! What everything in a partition shares: its clock, its event queue, what leaves for other
//! partitions, and the first violation. Ports get this alone to note in what follows from a packet.

use units::{MsgKey, Time};

use crate::events::EventQueue;
use crate::livelock::{Recent, Suspect};
use crate::outcome::Violation;
use crate::outgoing::Outgoing;
use crate::transit::Transit;

pub(crate) struct Core {
    /// The partition's number.
    index: u32,
    now: Time,
    events: EventQueue,
    transit: Transit,
    /// Events handled that are the same however the fabric is cut and departures are worked out.
    handled: u64,
    /// The first violation; the run stops.
    violation: Option<Violation>,
    /// By partition: what crosses the cut.
    outgoing: Vec<Outgoing>,
    suspect: Suspect,
}

impl Core {
    /// Of partition `index` of `partitions`.
    pub(crate) fn new(index: u32, partitions: u32, events: EventQueue) -> Self {
        let outgoing = (0..partitions).map(|_| Outgoing::default()).collect();
        Self {
            index,
            now: Time::ZERO,
            events,
            transit: Transit::default(),
            handled: 0,
            violation: None,
            outgoing,
            suspect: Suspect::default(),
        }
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// It is `now`.
    #[inline(always)]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Nothing is left to happen before `until`.
    pub(crate) fn pass(&mut self, until: Time) {
        self.events.close(until);
        self.now = self.now.max(until);
    }

    #[inline(always)]
    pub(crate) fn events(&self) -> &EventQueue {
        &self.events
    }

    #[inline(always)]
    pub(crate) fn events_mut(&mut self) -> &mut EventQueue {
        &mut self.events
    }

    /// What ports have noted beside events.
    #[inline(always)]
    pub(crate) fn transit(&self) -> &Transit {
        &self.transit
    }

    #[inline(always)]
    pub(crate) fn transit_mut(&mut self) -> &mut Transit {
        &mut self.transit
    }

    /// When something happens here next, or a bound below it.
    pub(crate) fn next_at(&self) -> Time {
        self.events.next_at().unwrap_or(Time::NEVER).min(self.transit.next_at())
    }

    /// Events handled so far.
    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    /// So many events are handled.
    #[inline(always)]
    pub(crate) fn count(&mut self, events: u64) {
        self.handled += events;
    }

    /// The event in hand does not count: it meant nothing, or others count it.
    #[inline(always)]
    pub(crate) fn uncount(&mut self) {
        self.handled -= 1;
    }

    /// What leaves for `partition`.
    pub(crate) fn outgoing(&mut self, partition: u32) -> &mut Outgoing {
        &mut self.outgoing[partition as usize]
    }

    /// Everything that leaves, by partition.
    pub(crate) fn all_outgoing(&mut self) -> &mut [Outgoing] {
        &mut self.outgoing
    }

    #[inline(always)]
    pub(crate) fn violated(&self) -> bool {
        self.violation.is_some()
    }

    /// The first violation, which is the caller's from now on.
    pub(crate) fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    /// Remember the first violation.
    #[cold]
    #[inline(never)]
    pub(crate) fn violate(&mut self, key: Option<MsgKey>, what: String) {
        self.end(Violation::new(self.now, key, what));
    }

    /// Remember what ends the run, if nothing has before.
    pub(crate) fn end(&mut self, why: Violation) {
        if self.violation.as_ref().is_none_or(|first| why.at < first.at) {
            self.violation = Some(why);
        }
    }

    /// A call or event that is one of very many. A livelock, if they are too many at one instant;
    /// the fabric has `links` links.
    #[cold]
    pub(crate) fn suspect(&mut self, recent: Recent, links: usize) {
        let Some(most) = self.suspect.count(recent, links) else { return };
        if self.violated() {
            return;
        }
        let place = recent.host.map_or_else(String::new, |host| format!("{host}: "));
        let what = format!("{place}livelock: more than {most} calls at one instant");
        let recent = self.suspect.take_recent();
        let key = recent.iter().rev().find_map(|recent| recent.message);
        self.violation = Some(Violation { recent, ..Violation::new(self.now, key, what) });
    }

    #[inline(always)]
    pub(crate) fn require(&mut self, key: Option<MsgKey>, result: Result<(), String>) {
        if let Err(what) = result {
            self.violate(key, what);
        }
    }
}
