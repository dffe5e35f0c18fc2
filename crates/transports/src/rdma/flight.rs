//! What one queue pair has on its way: segments in the order of their numbers, each with when it
//! left; and, with selective recovery, what became of each.

use std::collections::VecDeque;

use units::{Dur, Time};

/// What has become of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is on its way, as far as is known.
    Sent,
    /// It has arrived, out of order.
    Arrived,
    /// It is to be sent again.
    Lost,
}

/// From when the round-trip time of a segment counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// From then.
    At(Time),
    /// From when its last packet will have left.
    Awaited,
    /// It says nothing: it has been sent before, or has been measured.
    Void,
}

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// The first packet after it.
    end: u64,
    /// Bytes on the wire that have been sent of it.
    bytes: u64,
    stamp: Stamp,
    /// What is not round-trip time after that: its own serialisation.
    own: Dur,
    /// Segments sent before it, repetitions included, since the queue pair began.
    order: u64,
    state: State,
}

/// The segments of one queue pair that are not acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    sent: VecDeque<Sent>,
    /// Bytes on the wire of those that are on their way.
    bytes: u64,
    /// How many are lost.
    lost: usize,
    /// None that ends before this packet is.
    lost_from: u64,
    /// Segments sent so far.
    count: u64,
    /// The highest order of those that have arrived, plus one.
    seen: u64,
}

impl Flight {
    /// Begin anew, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.forget();
        (self.count, self.seen) = (0, 0);
    }

    /// Nothing is on its way: all of it will be sent again, as new.
    pub(super) fn forget(&mut self) {
        self.sent.clear();
        (self.bytes, self.lost, self.lost_from) = (0, 0, 0);
    }

    /// Bytes on the wire of what is on its way.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Segments that are not acknowledged.
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// A segment up to packet `end` begins to leave, behind all others; `own` is not a part of its
    /// round-trip time.
    pub(super) fn begin(&mut self, end: u64, stamp: Stamp, own: Dur) {
        let order = self.count;
        self.count += 1;
        self.sent.push_back(Sent { end, bytes: 0, stamp, own, order, state: State::Sent });
    }

    /// A packet of `bytes` of the last segment that began has left.
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some(last) = self.sent.back_mut() {
            last.bytes += bytes;
        }
    }

    /// The last segment that began ends before packet `end`.
    pub(super) fn shorten(&mut self, end: u64) {
        if let Some(last) = self.sent.back_mut() {
            last.end = end;
        }
    }

    /// The first lost segment: its last packet and its bytes on the wire.
    pub(super) fn first_lost(&self) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let lost = self.sent.get(self.first_lost_at()?)?;
        Some((lost.end - 1, lost.bytes))
    }

    fn first_lost_at(&self) -> Option<usize> {
        let first = self.sent.partition_point(|s| s.end < self.lost_from);
        let lost = self.sent.range(first..).position(|s| s.state == State::Lost)?;
        Some(first + lost)
    }

    /// The first lost segment is sent again.
    pub(super) fn repeat(&mut self) {
        if let Some(at) = self.first_lost_at()
            && let Some(lost) = self.sent.get_mut(at)
        {
            self.lost_from = lost.end;
            (lost.state, lost.stamp, lost.order) = (State::Sent, Stamp::Void, self.count);
            self.count += 1;
            self.lost -= 1;
            self.bytes += lost.bytes;
        }
    }

    /// The last packet of a segment, the low bits of whose number these are, has left at `at`.
    pub(super) fn departed(&mut self, low: u8, at: Time) {
        let waits = |s: &&mut Sent| s.stamp == Stamp::Awaited && s.end as u8 == low;
        if let Some(sent) = self.sent.iter_mut().find(waits) {
            sent.stamp = Stamp::At(at);
        }
    }

    /// The segment whose last packet is `last`.
    fn find(&mut self, last: u64) -> Option<&mut Sent> {
        let i = self.sent.partition_point(|s| s.end <= last);
        self.sent.get_mut(i).filter(|s| s.end - 1 == last)
    }

    /// The round-trip time that ends at `now` with an acknowledgement of the segment whose last
    /// packet is `last`; once for each segment.
    pub(super) fn sample(&mut self, last: u64, now: Time) -> Option<Dur> {
        let sent = self.find(last)?;
        match std::mem::replace(&mut sent.stamp, Stamp::Void) {
            Stamp::At(at) => Some(Dur(now.since(at).0.saturating_sub(sent.own.0))),
            Stamp::Awaited | Stamp::Void => None,
        }
    }

    /// Everything before packet `next` has arrived. Returns the bytes on the wire that were not
    /// known to have.
    pub(super) fn acknowledge(&mut self, next: u64) -> u64 {
        let mut bytes = 0;
        while let Some(mut s) = self.sent.pop_front_if(|s| s.end <= next) {
            bytes += self.arrive(&mut s);
        }
        bytes
    }

    /// The segment whose last packet is `last` has arrived. Returns its bytes on the wire, if that
    /// was not known.
    pub(super) fn arrived(&mut self, last: u64) -> u64 {
        let Some(&mut mut s) = self.find(last) else { return 0 };
        let bytes = self.arrive(&mut s);
        if let Some(place) = self.find(last) {
            *place = s;
        }
        bytes
    }

    fn arrive(&mut self, s: &mut Sent) -> u64 {
        match s.state {
            State::Sent => self.bytes -= s.bytes,
            State::Lost => self.lost -= 1,
            State::Arrived => return 0,
        }
        s.state = State::Arrived;
        self.seen = self.seen.max(s.order + 1);
        s.bytes
    }

    /// What was sent `reordering` or more before something that has arrived is lost. Whether there
    /// is any such.
    pub(super) fn mark_lost(&mut self, reordering: u32) -> bool {
        let limit = self.seen.saturating_sub(u64::from(reordering));
        self.lose(|s| s.order < limit)
    }

    /// Everything on its way is lost.
    pub(super) fn lose_all(&mut self) {
        self.lose(|_| true);
    }

    fn lose(&mut self, which: impl Fn(&Sent) -> bool) -> bool {
        let before = self.lost;
        for s in self.sent.iter_mut().filter(|s| s.state == State::Sent && which(s)) {
            s.state = State::Lost;
            self.lost += 1;
            self.lost_from = self.lost_from.min(s.end);
            self.bytes -= s.bytes;
        }
        self.lost > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Time {
        Time::ZERO + Dur::from_us(n)
    }

    fn packets(n: u64) -> Flight {
        let mut flight = Flight::default();
        for psn in 0..n {
            flight.begin(psn + 1, Stamp::At(us(psn)), Dur::from_us(1));
            flight.add(100);
        }
        flight
    }

    #[test]
    fn a_round_trip_time_is_measured_once_and_never_of_what_was_repeated() {
        let mut flight = packets(6);
        assert_eq!(flight.sample(3, us(20)), Some(Dur::from_us(16)));
        assert_eq!(flight.sample(3, us(21)), None);
        flight.lose_all();
        assert_eq!(flight.first_lost(), Some((0, 100)));
        flight.repeat();
        assert_eq!(flight.sample(0, us(30)), None);
        flight.begin(8, Stamp::Awaited, Dur::ZERO);
        assert_eq!(flight.sample(7, us(31)), None);
    }

    #[test]
    fn a_stamp_finds_its_segment() {
        let mut flight = Flight::default();
        for end in [16, 32] {
            flight.begin(end, Stamp::Awaited, Dur::ZERO);
        }
        flight.departed(32, us(5));
        assert_eq!(flight.sample(31, us(9)), Some(Dur::from_us(4)));
        assert_eq!(flight.sample(15, us(9)), None);
    }

    /// By order of departure, not of numbers: what was repeated is lost again only after others
    /// that left later.
    #[test]
    fn lost_is_what_left_long_before_something_that_arrived() {
        let mut flight = packets(6);
        assert_eq!(flight.arrived(2), 100);
        assert!(!flight.mark_lost(3), "0 left two before 2");
        assert_eq!((flight.arrived(2), flight.bytes()), (0, 500));
        assert_eq!(flight.arrived(3) + flight.arrived(4), 200);
        assert!(flight.mark_lost(3) && flight.bytes() == 100, "0 and 1 are lost, 5 is on its way");
        flight.repeat();
        assert_eq!((flight.first_lost(), flight.bytes()), (Some((1, 100)), 200));
        flight.arrived(5);
        assert!(!flight.mark_lost(3), "0 has left after all of them");
        assert_eq!(
            flight.acknowledge(2),
            200,
            "0, which was on its way, and 1, which was thought lost"
        );
        assert_eq!((flight.bytes(), flight.first_lost(), flight.len()), (0, None, 4));
        assert_eq!(flight.acknowledge(6), 0);
    }
}
