//! Partitions side by side, one thread each, in rounds.
//!
//! In a round every partition handles what happens before a common limit: the first event of all,
//! plus the lookahead. Nothing sent meanwhile arrives before that limit, so nobody misses anything.
//! Between rounds partitions exchange what has crossed the cut. The one lock per pair and round is
//! never contended: a box is filled before the barrier and emptied after it, and two sets of boxes
//! take turns, so that a quick partition does not fill what a slow one is still emptying.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use endpoint::{Observer, Packet};
use units::{Dur, Time};

use crate::host::Signal;
use crate::part::Part;

/// What one partition has for another.
#[derive(Default)]
pub(crate) struct Post {
    /// Packets with the receiving end of their link and their arrival.
    pub(crate) packets: Vec<Packet>,
    pub(crate) arrivals: Vec<(u32, Time)>,
    /// Signals with the host they go to.
    pub(crate) signals: Vec<(u32, Signal)>,
}

impl Post {
    /// When the first of it happens.
    fn first_at(&self) -> Time {
        let arrivals = self.arrivals.iter().map(|&(_, at)| at);
        let signals = self.signals.iter().map(|(_, signal)| signal.at);
        arrivals.chain(signals).min().unwrap_or(Time::NEVER)
    }
}

/// What threads share.
pub(crate) struct Rounds {
    /// By turn, sender and receiver.
    boxes: [Vec<Mutex<Post>>; 2],
    /// By turn and partition: its first event.
    next: [Vec<AtomicU64>; 2],
    barrier: Barrier,
    parts: usize,
    lookahead: Dur,
    /// By turn, whether a partition has met a violation: then all stop.
    broken: [AtomicBool; 2],
}

impl Rounds {
    pub(crate) fn new(parts: usize, lookahead: Dur) -> Self {
        let boxes = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let next = || (0..parts).map(|_| AtomicU64::new(0)).collect();
        Self {
            boxes: [boxes(), boxes()],
            next: [next(), next()],
            barrier: Barrier::new(parts),
            parts,
            lookahead,
            broken: [AtomicBool::new(false), AtomicBool::new(false)],
        }
    }

    /// Let every partition handle what happens strictly before `until`.
    pub(crate) fn run<O: Observer + Send>(&self, parts: &mut [Part<O>], until: Time) {
        std::thread::scope(|scope| {
            let Some((first, rest)) = parts.split_first_mut() else { return };
            for part in rest {
                scope.spawn(|| self.rounds(part, until));
            }
            self.rounds(first, until);
        });
    }

    fn rounds<O: Observer>(&self, part: &mut Part<O>, until: Time) {
        let _guard = self.barrier.guard();
        for turn in [0, 1].into_iter().cycle() {
            let me = part.index as usize;
            let next = self.send(part, turn).min(part.next_at());
            self.next[turn][me].store(next.0, Ordering::Relaxed);
            if part.violation.is_some() {
                self.broken[turn].store(true, Ordering::Relaxed);
            }
            if self.barrier.wait().is_err() {
                return;
            }
            self.receive(part, turn);
            let first = self.next[turn].iter().map(|next| next.load(Ordering::Relaxed)).min();
            let first = Time(first.unwrap_or(u64::MAX));
            if first >= until || self.broken[turn].load(Ordering::Relaxed) {
                return;
            }
            part.run(until.min(first + self.lookahead));
        }
    }

    fn slot(&self, turn: usize, from: usize, to: usize) -> &Mutex<Post> {
        &self.boxes[turn][from * self.parts + to]
    }

    /// Put what `part` has for others into their boxes. When the first of it happens.
    fn send<O: Observer>(&self, part: &mut Part<O>, turn: usize) -> Time {
        part.sort_post();
        let me = part.index as usize;
        let mut first = Time::NEVER;
        for (to, post) in part.outbox.iter_mut().enumerate() {
            first = first.min(post.first_at());
            let mut slot = self.slot(turn, me, to).lock().unwrap_or_else(PoisonError::into_inner);
            // What comes back is empty, with memory to use again.
            std::mem::swap(post, &mut slot);
        }
        first
    }

    fn receive<O: Observer>(&self, part: &mut Part<O>, turn: usize) {
        for from in 0..self.parts {
            let slot = self.slot(turn, from, part.index as usize);
            part.receive(&mut slot.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Where threads meet. Rounds take microseconds, so waiting is spinning for a while, and giving way to
/// others after that, or at once if there are more threads than processors.
struct Barrier {
    threads: usize,
    spins: u32,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    /// A thread has panicked and will not come.
    abandoned: AtomicBool,
}

/// Marks the barrier when its thread unwinds.
struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandoned.store(true, Ordering::Release);
        }
    }
}

/// Some tens of microseconds.
const SPINS: u32 = 2000;

impl Barrier {
    fn new(threads: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads,
            spins: if threads > processors { 0 } else { SPINS },
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    /// Return when all are here. An error if that will never be.
    fn wait(&self) -> Result<(), ()> {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            if self.abandoned.load(Ordering::Acquire) {
                return Err(());
            }
            spins += 1;
            if spins < self.spins { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        Ok(())
    }
}
