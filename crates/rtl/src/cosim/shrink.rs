//! The shortest inputs that still fail: delta debugging (Zeller, Hildebrandt: IEEE TSE 28, 2002)
//! over messages and packets, and then over the cycles in which nothing comes.

use std::time::{Duration, Instant};

use super::trace::Trace;

/// Make `trace`, which fails, shorter for as long as `fails` says that it fails as before, and no
/// longer than `limit`. Packets stay `spacing` cycles apart. How often that was tried is told, too.
pub fn shrink(
    trace: &Trace,
    spacing: u64,
    limit: Duration,
    fails: &mut dyn FnMut(&Trace) -> bool,
) -> (Trace, u32) {
    let until = Instant::now() + limit;
    let mut search = Search { best: trace.clone(), spacing, tried: 0, until, fails };
    loop {
        let before = search.size();
        search.events();
        search.gaps();
        if search.size() == before || search.is_over() {
            return (search.best, search.tried);
        }
    }
}

struct Search<'a> {
    best: Trace,
    spacing: u64,
    tried: u32,
    until: Instant,
    fails: &'a mut dyn FnMut(&Trace) -> bool,
}

impl Search<'_> {
    fn size(&self) -> (usize, u64) {
        (self.best.events().len(), self.best.len())
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Take `candidate` if it fails, too.
    fn takes(&mut self, candidate: Trace) -> bool {
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

    /// Fewer events: without one of `parts` parts, which get smaller.
    fn events(&mut self) {
        let mut parts = 2;
        while !self.best.is_empty() && !self.is_over() {
            let count = self.best.events().len();
            let size = count.div_ceil(parts);
            let mut found = false;
            // From behind: what is last is nearest to the failure, so most of the rest goes first.
            for part in 0..count.div_ceil(size) {
                let all = self.best.events();
                let rest = all.iter().enumerate().filter(|(at, _)| at / size != part);
                let candidate = self.best.with(rest.map(|(_, event)| event.clone()).collect());
                if self.takes(candidate) {
                    found = true;
                    break;
                }
            }
            if found {
                parts = (parts - 1).max(2);
            } else if size == 1 {
                return;
            } else {
                parts = (2 * parts).min(count);
            }
        }
    }

    /// Fewer cycles: before each event as many as can go, half of them and so on.
    fn gaps(&mut self) {
        for event in 0..=self.best.events().len() {
            let before = event.checked_sub(1).and_then(|before| self.best.cycle(before));
            let after = before.map_or(0, |at| at + self.spacing);
            let end = self.best.cycle(event).unwrap_or(self.best.len());
            let mut some = end.saturating_sub(after);
            while some > 0 && !self.is_over() {
                let candidate = self.best.without(after, some);
                if self.takes(candidate) {
                    break;
                }
                some /= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((small.events().len(), small.len()), (2, 2), "{small:?}");
        assert!(tried < 400, "{tried}");
        let (whole, _) = shrink(&trace, 1, Duration::ZERO, &mut |_| true);
        assert_eq!(whole, trace, "no time, nothing shorter");
    }
}
