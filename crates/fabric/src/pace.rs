//! Whether threads side by side are quicker than one thread for all partitions, by trying it.
//!
//! One thread begins. Where rounds hold enough, the others are called for a slice of time, and stay
//! while they gain. If they do not, because the machine is busy or rounds are short, one thread
//! goes on, and the next trial comes when this one's loss is a small share of the time since. So a
//! run with threads is never much slower than with one. Only time depends on it: results do not.
//!
//! Means are compared, not the best: on a busy machine most of the time of one thread is spent
//! waiting for a processor, and threads that sleep while they wait for one another get more of it.

use std::time::Duration;

/// What is measured at once, and the longest that a trial takes.
pub(crate) const SLICE: Duration = Duration::from_millis(2);
/// Before the first trial, and between two that went well.
const WAIT: Duration = Duration::from_millis(20);
/// Between two trials, whatever they have cost.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// A trial that lost time is repeated after so many times that time.
const REPAID: u32 = 50;
/// After so many slices side by side, one thread is measured again.
const REMEASURED: u32 = 64;
/// Events of a partition in a round that are worth meeting the other threads, which takes some
/// microseconds.
const WORTH_IT: u64 = 4;
/// What threads must take of one thread's time to be worth having.
const GAIN: f64 = 0.9;
/// Over which time means are taken: of one thread, whose turns on a busy machine are tens of
/// milliseconds apart, and of several, whose loss is to be noticed soon.
const ALONE_OVER: Duration = Duration::from_millis(100);
const BESIDE_OVER: Duration = Duration::from_millis(10);
/// How long a trial may lose before it has lost: so long, or so small a share of the run.
const PATIENCE: Duration = Duration::from_millis(4);
const PATIENCE_SHARE: u32 = 100;

/// What has been measured, and what follows from it.
#[derive(Debug)]
pub(crate) struct Pace {
    partitions: u64,
    /// Partitions run side by side.
    parallel: bool,
    /// And always do.
    always: bool,
    /// Not judged yet: all of one kind.
    slice: Slice,
    /// What one thread has taken lately, and several since they were called.
    alone: Cost,
    beside: Cost,
    /// Since the run began, and since the others were called.
    elapsed: Duration,
    called: Duration,
    /// Since the last trial, and how long it is to be before the next.
    since: Duration,
    wait: Duration,
    /// Slices that threads have won in a row.
    won: u32,
}

/// Some of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    pub(crate) took: Duration,
    pub(crate) events: u64,
    pub(crate) rounds: u64,
}

impl Pace {
    pub(crate) fn new(partitions: usize) -> Self {
        Self {
            partitions: partitions as u64,
            parallel: false,
            always: false,
            slice: Slice::default(),
            alone: Cost::default(),
            beside: Cost::default(),
            elapsed: Duration::ZERO,
            called: Duration::ZERO,
            since: Duration::ZERO,
            wait: WAIT,
            won: 0,
        }
    }

    /// Side by side, whatever that costs: as many threads as somebody has asked for.
    pub(crate) fn always() -> Self {
        Self { parallel: true, always: true, ..Self::new(0) }
    }

    /// Whether partitions are to run side by side.
    pub(crate) fn is_parallel(&self) -> bool {
        self.parallel
    }

    /// So the last slice went.
    pub(crate) fn note(&mut self, slice: Slice) {
        if self.always {
            return;
        }
        self.slice.took += slice.took;
        self.slice.events += slice.events;
        self.slice.rounds += slice.rounds;
        if self.slice.took >= SLICE && self.slice.events > 0 {
            let slice = std::mem::take(&mut self.slice);
            self.judge(slice);
        }
    }

    fn judge(&mut self, slice: Slice) {
        let Slice { took, events, rounds } = slice;
        let is_full = events >= WORTH_IT * self.partitions * rounds;
        self.elapsed += took;
        if !self.parallel {
            self.alone.add(slice, ALONE_OVER);
            (self.beside, self.called) = (Cost::default(), Duration::ZERO);
            self.since += took;
            self.parallel = is_full && self.since >= self.wait;
            return;
        }
        self.called += took;
        self.beside.add(slice, BESIDE_OVER);
        let alone = self.beside.events * self.alone.of_event();
        if is_full && self.beside.took < GAIN * alone {
            (self.wait, self.won) = (WAIT, self.won + 1);
            // Then the next trial comes after one slice.
            self.parallel = !self.won.is_multiple_of(REMEASURED);
            return;
        }
        if is_full && self.called < PATIENCE.max(self.elapsed / PATIENCE_SHARE) {
            return;
        }
        let lost = Duration::from_nanos((self.beside.took - alone).max(0.0) as u64);
        (self.parallel, self.since, self.won) = (false, Duration::ZERO, 0);
        self.wait = (2 * self.wait).max(REPAID * lost).min(WAIT_MAX);
    }
}

/// What events have taken, those of long ago less and less.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Nanoseconds.
    took: f64,
    events: f64,
}

impl Cost {
    /// One more slice; what was before counts half once there is more than `over`.
    fn add(&mut self, slice: Slice, over: Duration) {
        if self.took > over.as_nanos() as f64 {
            (self.took, self.events) = (self.took / 2.0, self.events / 2.0);
        }
        self.took += slice.took.as_nanos() as f64;
        self.events += slice.events as f64;
    }

    /// Nanoseconds for an event.
    fn of_event(&self) -> f64 {
        self.took / self.events.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices with this many nanoseconds for an event of one thread and of several, until `total`
    /// has gone: the time spent, and that of one thread.
    fn spend(pace: &mut Pace, (alone, threads): (u64, u64), total: Duration) -> [Duration; 2] {
        let mut spent = [Duration::ZERO; 2];
        while spent[0] < total {
            let cost = if pace.is_parallel() { threads } else { alone };
            // A slice ends with a round, which may be long: that is what a trial can cost.
            let events = (SLICE.as_nanos() as u64).div_ceil(cost).max(200);
            let took = Duration::from_nanos(events * cost);
            pace.note(Slice { took, events, rounds: events / 100 });
            spent[0] += took;
            spent[1] += Duration::from_nanos(events * alone);
        }
        spent
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn threads_that_gain_are_used_nearly_always() {
        let mut pace = Pace::new(2);
        let [spent, alone] = spend(&mut pace, (100, 55), SECOND);
        let gain = alone.as_secs_f64() / spent.as_secs_f64();
        assert!(gain > 0.95 * 100.0 / 55.0, "{gain}");
    }

    /// However slow threads are, a run that may use them is hardly slower than one that may not.
    #[test]
    fn threads_that_lose_cost_a_small_share() {
        for threads in [95, 100, 200, 1_000, 50_000] {
            let mut pace = Pace::new(2);
            let [spent, alone] = spend(&mut pace, (100, threads), SECOND);
            let share = spent.as_secs_f64() / alone.as_secs_f64();
            assert!(share < 1.05, "{threads} ns: {share}");
        }
    }

    #[test]
    fn a_machine_that_becomes_busy_or_quiet_is_noticed() {
        let mut pace = Pace::new(2);
        spend(&mut pace, (100, 55), SECOND);
        assert!(pace.is_parallel());
        let [spent, alone] = spend(&mut pace, (100, 10_000), SECOND);
        assert!(spent.as_secs_f64() / alone.as_secs_f64() < 1.05 && !pace.is_parallel());
        let [spent, alone] = spend(&mut pace, (100, 55), 10 * SECOND);
        assert!(alone.as_secs_f64() / spent.as_secs_f64() > 1.3 && pace.wait == WAIT);
    }

    /// One thread has a tenth of a processor, in turns of 3 ms; of threads that sleep in between,
    /// some slices go wrong, too, but less time is lost.
    #[test]
    fn on_a_busy_machine_the_mean_counts() {
        let mut pace = Pace::new(2);
        let (mut spent, mut done, mut turn) = (Duration::ZERO, 0, 0_u32);
        while spent < 2 * SECOND {
            turn += 1;
            let waits = match pace.is_parallel() {
                true if turn.is_multiple_of(4) => Duration::from_millis(12),
                false if turn.is_multiple_of(2) => Duration::from_millis(27),
                _ => Duration::ZERO,
            };
            let events = if pace.is_parallel() { 36_000 } else { 20_000 };
            pace.note(Slice { took: SLICE + waits, events, rounds: events / 100 });
            spent += SLICE + waits;
            done += events;
        }
        let alone = spent.as_secs_f64() / 15.5e-3 * 20_000.0;
        assert!(done as f64 > 4.0 * alone, "{done} events; one thread: {alone}");
    }

    #[test]
    fn who_has_asked_for_threads_has_them() {
        let mut pace = Pace::always();
        spend(&mut pace, (100, 50_000), SECOND);
        assert!(pace.is_parallel());
    }

    #[test]
    fn a_short_run_and_rounds_of_few_events_call_nobody() {
        let mut pace = Pace::new(2);
        spend(&mut pace, (100, 55), WAIT - SLICE);
        assert!(!pace.is_parallel(), "a short run");
        for _ in 0..1_000 {
            pace.note(Slice { took: SLICE, events: 7_000, rounds: 1_000 });
            assert!(!pace.is_parallel(), "7 events in a round of two partitions");
        }
    }
}
