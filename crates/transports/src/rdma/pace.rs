//! When the segments of one queue pair leave (specs/timely.md#4): each is followed by a gap of its
//! bytes over the rate, from its release on, whenever the interface gets round to it.

use units::{Rate, Time};

/// The pacing of one queue pair, and the meter of what it has used of its rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Since when it has had something that it may send.
    since: Time,
    /// When the last segment was released.
    released: Time,
    /// Bytes of that segment.
    bytes: u64,
    /// When the next one may be.
    next: Time,
    /// Bytes of all segments.
    total: u64,
    /// When the meter was started, and what it showed.
    started: Time,
    start: f64,
}

impl Pace {
    pub(super) fn new(now: Time) -> Self {
        Self { since: now, released: now, bytes: 0, next: now, total: 0, started: now, start: 0.0 }
    }

    /// When the next segment is released.
    pub(super) fn due(&self) -> Time {
        self.since.max(self.next)
    }

    /// There is something to send from `at` on.
    pub(super) fn ready(&mut self, at: Time) {
        self.since = at;
    }

    /// A segment of `bytes` is released at `at`.
    pub(super) fn release(&mut self, at: Time, bytes: u64, rate: Rate) {
        (self.released, self.bytes) = (at, bytes);
        self.total += bytes;
        self.retime(rate);
    }

    /// The last segment has `bytes` less than was thought.
    pub(super) fn shorten(&mut self, bytes: u64, rate: Rate) {
        self.bytes -= bytes;
        self.total -= bytes;
        self.retime(rate);
    }

    /// The gap that has begun follows a new rate.
    pub(super) fn retime(&mut self, rate: Rate) {
        self.next = self.released + rate.serialise(self.bytes);
    }

    /// Bytes released until `now`, where those of a segment are spread over its gap.
    fn spread(&self, now: Time) -> f64 {
        let gap = self.next.since(self.released).0;
        let left = self.next.since(now.max(self.released)).0;
        let share = if gap == 0 { 0.0 } else { left as f64 / gap as f64 };
        self.total as f64 - self.bytes as f64 * share
    }

    /// The rate at which bytes were released since the meter was started, bits per second; `None`
    /// if that is now.
    pub(super) fn achieved(&self, now: Time) -> Option<f64> {
        let elapsed = now.since(self.started).0;
        (elapsed > 0).then(|| (self.spread(now) - self.start) * 8e12 / elapsed as f64)
    }

    /// Start the meter again.
    pub(super) fn start_meter(&mut self, now: Time) {
        (self.started, self.start) = (now, self.spread(now));
    }
}

#[cfg(test)]
mod tests {
    use units::Dur;

    use super::*;

    /// 10 000 B at 1 Gb/s are 80 us.
    const GIG: Rate = Rate(1_000_000_000);

    fn us(n: u64) -> Time {
        Time::ZERO + Dur::from_us(n)
    }

    #[test]
    fn a_segment_is_followed_by_its_bytes_over_the_rate() {
        let mut pace = Pace::new(us(0));
        pace.release(us(10), 10_000, GIG);
        pace.ready(us(20));
        assert_eq!(pace.due(), us(90));
        pace.retime(Rate(2 * GIG.0));
        assert_eq!(pace.due(), us(50), "a higher rate shortens the gap that has begun");
        pace.ready(us(100));
        assert_eq!(pace.due(), us(100), "nothing is made up for afterwards");
    }

    #[test]
    fn the_meter_shows_the_rate_to_who_always_sends_and_half_of_it_to_who_sends_half_of_the_time() {
        let mut pace = Pace::new(us(0));
        for n in 0..10 {
            pace.release(us(80 * n), 10_000, GIG);
            for at in [1, 33, 79] {
                assert!((pace.achieved(us(80 * n + at)).unwrap() - 1e9).abs() < 1.0);
                pace.start_meter(us(80 * n + at));
            }
        }
        for n in 0..10 {
            pace.release(us(1_000 + 160 * n), 10_000, GIG);
        }
        pace.start_meter(us(2_520));
        pace.release(us(2_600), 10_000, GIG);
        assert!((pace.achieved(us(2_680)).unwrap() - 0.5e9).abs() < 1.0);
    }
}
