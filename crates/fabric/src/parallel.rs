//! Partitions in parallel, one thread each, in rounds.
//!
//! In a round every partition handles what happens before a common limit: the first event of all,
//! plus the lookahead. Nothing sent meanwhile arrives before that limit, so nothing is missed.
//! Between rounds partitions exchange what has crossed the cut. The one lock per pair and round is
//! never contended: a mailbox is filled before the barrier and emptied after it. There are two sets
//! of mailboxes, for rounds of either parity, so that a quick partition does not fill what a slow
//! one is still emptying.
//!
//! Where it is to be found out whether that pays, one thread runs all partitions in series, in the
//! same rounds, while meeting costs more than it gains, and the others sleep ([`Pace`] says when).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use units::{Dur, Time};

use crate::event_loop::EventLoop;
use crate::outgoing::Outgoing;
use crate::pace::{Pace, SLICE, Slice};

/// In debug builds, and so in tests, this many rounds go both ways, whatever they cost.
const BOTH_WAYS: u64 = 1000;

/// What threads share.
///
/// The partitions belong to the run, which lends them out to be run up to some time: it leaves them
/// in `lent`, runs the first one itself, and takes them back. Workers wait for that as they wait
/// between rounds.
pub(crate) struct Rounds<'o, const WATCHED: bool> {
    lent: Vec<Mutex<Option<EventLoop<'o, WATCHED>>>>,
    /// What to run up to.
    until: AtomicU64,
    /// By parity, receiver and sender.
    mailboxes: [Vec<Mutex<Outgoing>>; 2],
    /// Whether there is something in them: of many partitions few have something for one another.
    full: [Vec<AtomicBool>; 2],
    /// By parity and partition: its first event.
    next: [Vec<AtomicU64>; 2],
    /// The same while one thread runs all.
    serial_next: Mutex<Vec<Time>>,
    barrier: Barrier,
    lookahead: Dur,
    /// By parity, whether a partition has met a violation: then all stop.
    broken: [AtomicBool; 2],
    /// Rounds so far.
    done: AtomicU64,
    /// By parity, whether the slice is over.
    over: [AtomicBool; 2],
    pace: Mutex<Pace>,
}

impl<'o, const WATCHED: bool> Rounds<'o, WATCHED> {
    /// `auto`: one thread runs all where that is quicker.
    pub(crate) fn new(parts: usize, lookahead: Dur, auto: bool) -> Self {
        let mailboxes = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let full = || (0..parts * parts).map(|_| AtomicBool::new(false)).collect();
        let next = || (0..parts).map(|_| AtomicU64::new(0)).collect();
        Self {
            lent: (0..parts).map(|_| Mutex::default()).collect(),
            until: AtomicU64::new(0),
            mailboxes: [mailboxes(), mailboxes()],
            full: [full(), full()],
            next: [next(), next()],
            serial_next: Mutex::default(),
            barrier: Barrier::new(parts),
            lookahead,
            broken: [AtomicBool::new(false), AtomicBool::new(false)],
            done: AtomicU64::new(0),
            over: [AtomicBool::new(false), AtomicBool::new(false)],
            pace: Mutex::new(if auto { Pace::new(parts) } else { Pace::always() }),
        }
    }

    /// Let every partition handle what happens strictly before `until`. An error if a worker has
    /// panicked.
    pub(crate) fn run(
        &self,
        parts: &mut Vec<EventLoop<'o, WATCHED>>,
        until: Time,
    ) -> Result<(), Abandoned> {
        let pace = &mut *lock(&self.pace);
        let so_far = |parts: &[EventLoop<'o, WATCHED>]| {
            let events = parts.iter().map(|of| of.part().core().handled()).sum::<u64>();
            (events, self.done.load(Ordering::Relaxed))
        };
        loop {
            let (begun, before) = (Instant::now(), so_far(parts));
            let both_ways = cfg!(debug_assertions) && before.1 < BOTH_WAYS;
            let parallel = if both_ways { before.1.is_multiple_of(2) } else { pace.is_parallel() };
            let ended = self.run_slice(parts, until, parallel, Some(begun + SLICE))?;
            let (events, rounds) = so_far(parts);
            let (events, rounds) = (events - before.0, rounds - before.1);
            pace.note(Slice { took: begun.elapsed(), events, rounds });
            if ended {
                return Ok(());
            }
        }
    }

    /// The same up to the first round that is over after `deadline`. Whether it came to an end.
    fn run_slice(
        &self,
        parts: &mut Vec<EventLoop<'o, WATCHED>>,
        until: Time,
        parallel: bool,
        deadline: Option<Instant>,
    ) -> Result<bool, Abandoned> {
        match parallel {
            true => self.run_parallel(parts, until, deadline),
            false => Ok(self.run_serial(parts, until, deadline)),
        }
    }

    /// All on this thread: where rounds hold little, meeting others takes longer. Of many
    /// partitions few have something to do in such a round; the others are left alone.
    fn run_serial(
        &self,
        parts: &mut [EventLoop<'o, WATCHED>],
        until: Time,
        deadline: Option<Instant>,
    ) -> bool {
        let next = &mut *lock(&self.serial_next);
        next.clear();
        next.extend(parts.iter().map(|of| of.part().next_at()));
        (0..parts.len()).for_each(|n| hand_over(parts, n, Time::ZERO, next));
        let mut broken = false;
        for round in 1_u32.. {
            let first = next.iter().copied().min().unwrap_or(Time::NEVER);
            if first >= until {
                parts.iter_mut().for_each(|of| of.part_mut().core_mut().pass(until));
                return true;
            }
            let end = until.min(first + self.lookahead);
            for n in 0..parts.len() {
                if next[n] < end {
                    parts[n].run(end);
                    next[n] = parts[n].part().next_at();
                    hand_over(parts, n, first, next);
                    broken |= parts[n].part().core().violated();
                }
            }
            self.done.fetch_add(1, Ordering::Relaxed);
            if broken {
                return true;
            }
            // Rounds can be shorter than a look at the clock.
            if round.is_multiple_of(16) && is_past(deadline) {
                return false;
            }
        }
        false
    }

    /// Each on a thread of its own.
    fn run_parallel(
        &self,
        parts: &mut Vec<EventLoop<'o, WATCHED>>,
        until: Time,
        deadline: Option<Instant>,
    ) -> Result<bool, Abandoned> {
        let _guard = self.barrier.guard();
        for part in parts.drain(1..) {
            let place = part.part().core().index() as usize;
            *lock(&self.lent[place]) = Some(part);
        }
        self.until.store(until.0, Ordering::Relaxed);
        self.barrier.wait()?;
        let ended = self.rounds(&mut parts[0], until, deadline)?;
        self.barrier.wait()?;
        parts.extend(self.lent.iter().filter_map(|lent| lock(lent).take()));
        Ok(ended)
    }

    /// Run partition `index` whenever it is lent out, until the run is over.
    pub(crate) fn work(&self, index: usize) {
        let _guard = self.barrier.guard();
        while self.work_once(index) == Ok(true) {}
    }

    fn work_once(&self, index: usize) -> Result<bool, Abandoned> {
        self.barrier.wait()?;
        let until = Time(self.until.load(Ordering::Relaxed));
        let Some(mut part) = lock(&self.lent[index]).take() else { return Ok(false) };
        self.rounds(&mut part, until, None)?;
        *lock(&self.lent[index]) = Some(part);
        self.barrier.wait()?;
        Ok(true)
    }

    /// While this lives, a panic of the caller reaches the workers.
    pub(crate) fn guard(&self) -> impl Drop {
        self.barrier.guard()
    }

    /// Send the workers home, although not all have come.
    pub(crate) fn abandon(&self) {
        self.barrier.abandon();
    }

    /// Send the workers home.
    pub(crate) fn dismiss(&self) {
        // Nothing is lent: that is the sign.
        let _ = self.barrier.wait();
    }

    /// Until all is done before `until`, or part 0 finds that its `deadline` is past. Whether it is
    /// done.
    fn rounds(
        &self,
        part: &mut EventLoop<'o, WATCHED>,
        until: Time,
        deadline: Option<Instant>,
    ) -> Result<bool, Abandoned> {
        for parity in [0, 1].into_iter().cycle() {
            let me = part.part().core().index() as usize;
            let next = self.send(part, parity).min(part.part().next_at());
            self.next[parity][me].store(next.0, Ordering::Relaxed);
            if part.part().core().violated() {
                self.broken[parity].store(true, Ordering::Relaxed);
            }
            if me == 0 {
                self.over[parity].store(is_past(deadline), Ordering::Relaxed);
            }
            self.barrier.wait()?;
            self.receive(part, parity);
            let first = self.next[parity].iter().map(|next| next.load(Ordering::Relaxed)).min();
            let first = Time(first.unwrap_or(u64::MAX));
            if first >= until || self.broken[parity].load(Ordering::Relaxed) {
                return Ok(true);
            }
            if self.over[parity].load(Ordering::Relaxed) {
                return Ok(false);
            }
            part.run(until.min(first + self.lookahead));
            self.done.fetch_add(u64::from(me == 0), Ordering::Relaxed);
        }
        Ok(true)
    }

    fn place(&self, from: usize, to: usize) -> usize {
        to * self.lent.len() + from
    }

    /// Put what `part` has for others into their mailboxes. When the first of it happens.
    fn send(&self, part: &mut EventLoop<'o, WATCHED>, parity: usize) -> Time {
        let network = part.part_mut().network_mut();
        network.sort_leaving();
        let me = network.core().index() as usize;
        let mut first = Time::NEVER;
        let all = network.core_mut().all_outgoing().iter_mut().enumerate();
        for (to, outgoing) in all.filter(|(_, outgoing)| !outgoing.is_empty()) {
            first = first.min(outgoing.first_at());
            let place = self.place(me, to);
            // What comes back is empty, with memory to use again.
            std::mem::swap(outgoing, &mut lock(&self.mailboxes[parity][place]));
            self.full[parity][place].store(true, Ordering::Relaxed);
        }
        first
    }

    fn receive(&self, part: &mut EventLoop<'o, WATCHED>, parity: usize) {
        for from in 0..self.lent.len() {
            let place = self.place(from, part.part().core().index() as usize);
            if self.full[parity][place].load(Ordering::Relaxed) {
                self.full[parity][place].store(false, Ordering::Relaxed);
                part.part_mut().receive(&mut lock(&self.mailboxes[parity][place]));
            }
        }
    }
}

/// Give the others what partition `from` has for them, in a round that begins at `first`. Note in
/// `next` when they have to handle the first of it: not in this round.
fn hand_over<const WATCHED: bool>(
    parts: &mut [EventLoop<'_, WATCHED>],
    from: usize,
    first: Time,
    next: &mut [Time],
) {
    parts[from].part_mut().network_mut().sort_leaving();
    for to in 0..parts.len() {
        let all = parts[from].part_mut().core_mut().all_outgoing();
        if all[to].is_empty() {
            continue;
        }
        let mut outgoing = std::mem::take(&mut all[to]);
        next[to] = next[to].min(outgoing.first_at());
        // It may have been left alone for long: far behind, it would take what comes for far ahead.
        parts[to].part_mut().core_mut().pass(first);
        parts[to].part_mut().receive(&mut outgoing);
        // Empty now, with memory to use again.
        parts[from].part_mut().core_mut().all_outgoing()[to] = outgoing;
    }
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another thread has panicked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Abandoned;

/// Where threads meet. Rounds take microseconds, and so does being woken. So whoever comes first
/// spins for a moment, as long as that has paid: until the others come. On a busy machine they do
/// not, for they wait for a processor, perhaps for the one that spins. Then the next spins are
/// shorter, down to none, and waiting is sleep; they grow again once sleeps turn out to be short.
struct Barrier {
    threads: usize,
    /// How often to look before falling asleep.
    spins: AtomicU32,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    /// A thread has panicked and will not come.
    abandoned: AtomicBool,
    /// How many threads sleep.
    asleep: Mutex<usize>,
    wake: Condvar,
}

/// Marks the barrier when its thread unwinds.
#[must_use]
struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

/// The most: some tens of microseconds.
const SPINS: u32 = 2000;
/// The fewest that are not none.
const SPINS_MIN: u32 = 60;
/// A sleep that is shorter would not have been one with [`SPINS`].
const SHORT: Duration = Duration::from_micros(30);

impl Barrier {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            spins: AtomicU32::new(SPINS),
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
            asleep: Mutex::new(0),
            wake: Condvar::new(),
        }
    }

    fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    /// Return when all are here. An error if that will never be.
    fn wait(&self) -> Result<(), Abandoned> {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            self.wake_all();
            return Ok(());
        }
        // Threads that write here at once may lose a change: the next one makes up for it.
        let spins = self.spins.load(Ordering::Relaxed);
        for _ in 0..spins {
            if !self.is_closed(generation)? {
                self.spins.store((2 * spins).min(SPINS), Ordering::Relaxed);
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let fallen_asleep = Instant::now();
        self.sleep(generation)?;
        let fewer = if spins > SPINS_MIN { spins / 2 } else { 0 };
        let next = if fallen_asleep.elapsed() < SHORT { (2 * spins).max(SPINS_MIN) } else { fewer };
        self.spins.store(next.min(SPINS), Ordering::Relaxed);
        Ok(())
    }

    /// Whether not all have come to the meeting `generation`.
    fn is_closed(&self, generation: usize) -> Result<bool, Abandoned> {
        match self.abandoned.load(Ordering::Acquire) {
            true => Err(Abandoned),
            false => Ok(self.generation.load(Ordering::Acquire) == generation),
        }
    }

    fn sleep(&self, generation: usize) -> Result<(), Abandoned> {
        let mut asleep = lock(&self.asleep);
        // A thread that changes what is looked at here wakes the others after that, with the lock.
        while self.is_closed(generation)? {
            *asleep += 1;
            asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            *asleep -= 1;
        }
        Ok(())
    }

    fn wake_all(&self) {
        if *lock(&self.asleep) > 0 {
            self.wake.notify_all();
        }
    }

    fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Have another thread wait until it sleeps, then do `what`. What the other's waiting has come
    /// to.
    fn while_another_sleeps(what: impl FnOnce(&Barrier)) -> Result<(), Abandoned> {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| barrier.wait());
            while *lock(&barrier.asleep) == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
            what(&barrier);
            other.join().unwrap()
        })
    }

    /// Meet so often, the other thread each time so late. How often the first then spins.
    fn spins_after(meetings: u32, late: Duration) -> u32 {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..meetings).for_each(|_| barrier.wait().unwrap()));
            for _ in 0..meetings {
                std::thread::sleep(late);
                barrier.wait().unwrap();
            }
        });
        barrier.spins.load(Ordering::Relaxed)
    }

    /// What a busy machine does to threads: they come late, milliseconds.
    #[test]
    fn who_waits_long_soon_sleeps_at_once() {
        assert_eq!(spins_after(12, Duration::from_millis(3)), 0);
    }

    #[test]
    fn a_sleeper_is_woken_by_the_last_and_when_all_is_abandoned() {
        assert_eq!(while_another_sleeps(|barrier| barrier.wait().unwrap()), Ok(()));
        assert_eq!(while_another_sleeps(Barrier::abandon), Err(Abandoned));
    }
}
