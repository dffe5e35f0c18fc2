//! RCCC where links between switches carry less than those of hosts: a receiver gives credit at a
//! lower rate while what arrives is marked, or was trimmed before the last hop
//! (specs/uet.md#10.3).

use endpoint::{Draw, Purpose};
use units::{Dur, Time};

use super::receiver::Arrival;

const LOOK: Purpose = Purpose::new("oversubscription");

/// Weight of the latest share of marks.
const GAIN: f64 = 0.5;
/// Up to this average share of marks the rate is not lowered for it.
const TARGET: f64 = 0.3;
/// It falls by this share of what is beyond.
const DECREASE: f64 = 0.5;
/// It rises by this; twice as much each time in a row while nothing is marked.
const INCREASE: f64 = 0.01;
/// More than enough for any rate to become whole.
const TIMES_MAX: f64 = 1e6;
/// The lowest rate is this share of what the fabric carries at worst.
const LEAST: f64 = 0.9;
/// So many base round trips pass between two looks, more or less by a quarter.
const ROUND_TRIPS: f64 = 1.5;
/// After so many looks at nothing the rate is whole, and marks are forgotten.
const IDLE_MAX: u64 = 16;

/// The rate of a receiver's credit, as a share of its link's.
#[derive(Debug)]
pub(super) struct Oversubscription {
    rate: f64,
    least: f64,
    /// The average share of marks.
    marks: f64,
    /// How many times as much it rises next if nothing is marked.
    times: f64,
    /// How many intervals were drawn, and when the last of them ends.
    looks: u64,
    next: Time,
    seen: Seen,
}

/// Packets since the last look.
#[derive(Debug, Default)]
struct Seen {
    all: u32,
    whole: u32,
    marked: u32,
    /// Trimmed before the last hop.
    trimmed: u32,
}

impl Oversubscription {
    /// In a fabric that carries one part in `ratio` of what hosts can send.
    pub(super) fn new(ratio: f64) -> Self {
        let least = (LEAST / ratio).max(0.01);
        let (seen, looks, next) = (Seen::default(), 0, Time::ZERO);
        Self { rate: 1.0, least, marks: 0.0, times: 1.0, looks, next, seen }
    }

    /// A packet has arrived.
    pub(super) fn on_packet(&mut self, marked: bool, how: Arrival) {
        let seen = &mut self.seen;
        let whole = how == Arrival::Whole;
        seen.all += 1;
        seen.whole += u32::from(whole);
        seen.marked += u32::from(marked && whole);
        seen.trimmed += u32::from(how == Arrival::Trimmed { last_hop: false });
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// When the next look is due. They follow one another from time zero on; an idle host leaves
    /// them out, and they are made up for.
    pub(super) fn due(&mut self, now: Time, draw: Draw, rtt: Dur) -> Time {
        let mean = Dur((ROUND_TRIPS * rtt.0 as f64) as u64).max(Dur(1));
        let missed = now.since(self.next).0 / mean.0;
        for _ in 0..missed.min(IDLE_MAX) {
            self.look();
        }
        self.next += mean * missed;
        while self.next <= now {
            self.looks += 1;
            let about = 0.75 + draw.unit(LOOK, self.looks) / 2.0;
            self.next += Dur((about * mean.0 as f64) as u64).max(Dur(1));
        }
        self.next
    }

    /// The rate from now on, by what has arrived since the last look.
    pub(super) fn look(&mut self) -> f64 {
        let Seen { all, whole, marked, trimmed } = std::mem::take(&mut self.seen);
        let share = |part: u32, of: u32| f64::from(part) / f64::from(of.max(1));
        self.rate -= share(trimmed, all);
        self.marks += GAIN * (share(marked, whole) - self.marks);
        let beyond = self.marks - TARGET;
        if beyond > 0.0 {
            self.rate *= 1.0 - beyond * DECREASE;
        }
        if trimmed > 0 || beyond > 0.0 {
            self.times = 1.0;
        } else {
            self.rate += INCREASE * if marked == 0 { self.times } else { 1.0 };
            self.times = (self.times * 2.0).min(TIMES_MAX);
        }
        self.rate = self.rate.clamp(self.least, 1.0);
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(state: &mut Oversubscription, marked: u32, trimmed: u32, of: u32) -> f64 {
        (0..marked).for_each(|_| state.on_packet(true, Arrival::Whole));
        (0..trimmed).for_each(|_| state.on_packet(false, Arrival::Trimmed { last_hop: false }));
        (marked + trimmed..of).for_each(|_| state.on_packet(false, Arrival::Whole));
        state.look()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    /// By hand: an average of .5 and then .75 is .2 and .45 beyond the target.
    #[test]
    fn marks_beyond_the_target_lower_the_rate() {
        let mut state = Oversubscription::new(4.0);
        close(see(&mut state, 10, 0, 10), 1.0 - 0.2 * 0.5);
        close(see(&mut state, 10, 0, 10), 0.9 * (1.0 - 0.45 * 0.5));
        for _ in 0..100 {
            see(&mut state, 10, 0, 10);
        }
        close(see(&mut state, 10, 0, 10), 0.9 / 4.0);
    }

    #[test]
    fn trimming_before_the_last_hop_lowers_it_by_its_share() {
        let mut state = Oversubscription::new(4.0);
        close(see(&mut state, 0, 3, 10), 0.7);
        (0..5).for_each(|_| state.on_packet(false, Arrival::Trimmed { last_hop: true }));
        close(state.look(), 0.71);
    }

    #[test]
    fn it_rises_faster_and_faster_while_nothing_is_marked() {
        let mut state = Oversubscription::new(4.0);
        close(see(&mut state, 0, 5, 10), 0.5);
        close(see(&mut state, 0, 0, 10), 0.51);
        close(see(&mut state, 0, 0, 10), 0.53);
        close(see(&mut state, 1, 0, 10), 0.54);
        close(see(&mut state, 0, 0, 10), 0.62);
        for _ in 0..10 {
            see(&mut state, 0, 0, 0);
        }
        close(see(&mut state, 0, 0, 0), 1.0);
    }

    #[test]
    fn looks_are_one_and_a_half_round_trips_apart_on_average() {
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let mut state = Oversubscription::new(4.0);
        let (rtt, mut now) = (Dur::from_us(10), Time::ZERO);
        for _ in 0..4000 {
            let due = state.due(now, draw, rtt);
            assert!((11_250_000..=18_750_000).contains(&due.since(now).0));
            now = due;
        }
        let mean = now.0 / 4000;
        // Four standard deviations of the mean: 7.5 / sqrt(12 * 4000) * 4 us.
        assert!(mean.abs_diff(15_000_000) < 137_000, "{mean}");
    }

    /// Half the rate is lost; two milliseconds later it is whole, as if looks had gone on.
    #[test]
    fn looks_that_an_idle_host_left_out_are_made_up_for() {
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let mut state = Oversubscription::new(4.0);
        let (rtt, first) = (Dur::from_us(10), Time::ZERO + Dur::from_us(5));
        let due = state.due(first, draw, rtt);
        assert!(due < first + Dur::from_us(14), "the first interval began at time zero: {due}");
        close(see(&mut state, 0, 5, 10), 0.5);
        let later = due + Dur::from_us(2000);
        let next = state.due(later, draw, rtt);
        assert!((later..later + Dur::from_us(19)).contains(&next), "{next}");
        close(state.rate(), 1.0);
    }
}
