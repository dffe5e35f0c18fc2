//! The shortest inputs that still fail: delta debugging (Zeller, Hildebrandt: IEEE TSE 28, 2002)
//! over messages and packets, and then over the cycles in which nothing comes.

use std::time::{Duration, Instant};

/// What a design is given, of which some can be left out.
pub trait Inputs: Clone {
    /// How many messages and packets.
    fn count(&self) -> usize;

    /// Those of the events that `stays` names, by their number.
    #[must_use]
    fn keep(&self, stays: &dyn Fn(usize) -> bool) -> Self;

    /// How many cycles can go before an event, or behind the last, if packets stay `spacing` apart.
    fn idle(&self, event: usize, spacing: u64) -> u64;

    /// Without so many of them.
    #[must_use]
    fn without(&self, event: usize, cycles: u64) -> Self;

    /// Without what comes after `cycles`.
    #[must_use]
    fn cut(&self, cycles: u64) -> Self;
}

/// Make `inputs`, which fail, shorter for as long as `fails` says that they fail as before, and no
/// longer than `limit`. Packets stay `spacing` cycles apart. How often that was tried is told, too.
pub fn shrink<T: Inputs>(
    inputs: &T,
    spacing: u64,
    limit: Duration,
    fails: &mut dyn FnMut(&T) -> bool,
) -> (T, u32) {
    let until = Instant::now() + limit;
    let mut search = Search { best: inputs.clone(), spacing, tried: 0, until, fails };
    loop {
        let some = search.events();
        let fewer = search.gaps();
        if !(some || fewer) || search.is_over() {
            return (search.best, search.tried);
        }
    }
}

struct Search<'a, T> {
    best: T,
    spacing: u64,
    tried: u32,
    until: Instant,
    fails: &'a mut dyn FnMut(&T) -> bool,
}

impl<T: Inputs> Search<'_, T> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Take `candidate` if it fails, too.
    fn takes(&mut self, candidate: T) -> bool {
        if self.is_over() {
            return false;
        }
        self.tried += 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Fewer events: without one of `parts` parts, which get smaller. Whether there are fewer now.
    fn events(&mut self) -> bool {
        let (before, mut parts) = (self.best.count(), 2);
        while self.best.count() > 0 && !self.is_over() {
            let count = self.best.count();
            let size = count.div_ceil(parts);
            // From behind: what is last is nearest to the failure, so most of the rest goes first.
            let found = (0..count.div_ceil(size)).any(|part| {
                let candidate = self.best.keep(&|at| at / size != part);
                self.takes(candidate)
            });
            if found {
                parts = (parts - 1).max(2);
            } else if size == 1 {
                break;
            } else {
                parts = (2 * parts).min(count);
            }
        }
        self.best.count() < before
    }

    /// Fewer cycles: before each event as many as can go, half of them and so on.
    fn gaps(&mut self) -> bool {
        let mut found = false;
        for event in 0..=self.best.count() {
            let mut some = self.best.idle(event, self.spacing);
            while some > 0 && !self.is_over() {
                let candidate = self.best.without(event, some);
                if self.takes(candidate) {
                    found = true;
                    break;
                }
                some /= 2;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cosim::trace::Trace;

    /// Fails while packets of two lengths are in it, one behind the other.
    #[test]
    fn two_of_many_are_left() {
        let text = |cycle: usize| {
            format!(
                r#"{{"cycle":{cycle},"message":{{"id":{cycle},"dst":2,"bytes":9,"transport":0}}}}"#
            )
        };
        let events: Vec<String> = (0..200).map(|at| text(10 * at)).collect();
        let text = format!(r#"{{"cycles":2000,"open":[5],"events":[{}]}}"#, events.join(","));
        let trace: Trace = serde_json::from_str(&text).unwrap();
        let mut fails = |trace: &Trace| {
            let ids: Vec<u64> =
                trace.cycles().filter_map(|given| Some(given.message?.id.0)).collect();
            ids.contains(&370) && ids.contains(&1990)
        };
        let (small, tried) = shrink(&trace, 1, Duration::from_secs(60), &mut fails);
        assert_eq!((small.count(), small.len()), (2, 2), "{small:?}");
        assert!(tried < 400, "{tried}");
        let (whole, _) = shrink(&trace, 1, Duration::ZERO, &mut |_| true);
        assert_eq!(whole, trace, "no time, nothing shorter");
    }
}
