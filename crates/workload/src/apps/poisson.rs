//! [`Poisson`]: open-loop traffic. Messages come whether or not earlier ones are done.

use std::sync::Arc;

use endpoint::{App, AppCx, Msg, Purpose};
use units::{Time, TimerId};

use crate::{Destinations, SizeDist, arrivals};

const GAP: Purpose = Purpose::new("poisson.gap");
const SIZE: Purpose = Purpose::new("poisson.size");
const DESTINATION: Purpose = Purpose::new("poisson.destination");
const TIMER: TimerId = TimerId(0);

/// What all hosts of a Poisson workload have in common.
#[derive(Clone, Debug)]
pub struct PoissonSpec {
    /// The mean time between two messages of one host, picoseconds: [`arrivals::mean_gap_ps`].
    pub mean_gap_ps: f64,
    /// How long messages are.
    pub sizes: SizeDist,
    /// No message is submitted at or after this time. [`Time::NEVER`]: the process never stops by
    /// itself and is background to whatever ends the run.
    pub until: Time,
    /// See [`endpoint::Msg::prio`].
    pub prio: u8,
}

/// One host's Poisson process. The first message comes after a gap like all others, so that the
/// process has no beginning to speak of.
#[derive(Debug)]
pub struct Poisson {
    spec: Arc<PoissonSpec>,
    to: Destinations,
    /// How many messages have been submitted: the number of the next draw.
    submitted: u64,
    /// When the next one comes.
    next: Time,
}

impl Poisson {
    /// The process of one host that sends to `to`.
    #[must_use]
    pub fn new(spec: Arc<PoissonSpec>, to: Destinations) -> Self {
        Self { spec, to, submitted: 0, next: Time::NEVER }
    }

    fn arm(&mut self, cx: &mut AppCx<'_>) {
        let u = cx.draw.unit(GAP, self.submitted);
        let next = cx.now.saturating_add(arrivals::exponential(self.spec.mean_gap_ps, u));
        self.next = if next < self.spec.until { next } else { Time::NEVER };
        if self.next != Time::NEVER {
            cx.arm(TIMER, self.next);
        }
    }
}

impl App for Poisson {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        self.arm(cx);
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, _: TimerId) {
        let n = self.submitted;
        let Some(dst) = self.to.pick(cx.me, cx.draw, DESTINATION, n) else {
            self.next = Time::NEVER;
            return;
        };
        let len = self.spec.sizes.sample(cx.draw.unit(SIZE, n));
        let prio = self.spec.prio;
        cx.submit_as(Msg { prio, ..Msg::new(dst, len) });
        self.submitted += 1;
        self.arm(cx);
    }

    fn more_to_come(&self) -> bool {
        self.next != Time::NEVER && self.spec.until != Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;
    use crate::apps::bench::Bench;

    fn spec(until: Time) -> Arc<PoissonSpec> {
        let sizes = SizeDist::shipped("hadoop").expect("shipped");
        let mean_gap_ps =
            arrivals::mean_gap_ps(0.6, Rate(10_000_000_000), sizes.mean()).expect("valid");
        Arc::new(PoissonSpec { mean_gap_ps, sizes, until, prio: 0 })
    }

    #[test]
    fn offers_the_stated_load_until_its_end() {
        let until = Time(2_000_000_000_000);
        let spec = spec(until);
        let app = |_| Poisson::new(Arc::clone(&spec), Destinations::all(8));
        let mut bench = Bench::new((0..8).map(app).collect(), 7);
        bench.run();
        assert!(bench.submitted.iter().all(|s| s.at < until && s.msg.dst != s.src));
        let bytes: u64 = bench.submitted.iter().map(|s| s.msg.len).sum();
        let load = bytes as f64 * 8.0 / (8.0 * 2.0 * 10e9);
        // About 100 000 messages; their sizes deviate by 5.6 means, so the sum by 1.8 %.
        assert!((load - 0.6).abs() < 0.6 * 0.06, "{load}");
        assert!(bench.apps.iter().all(|app| !app.more_to_come()), "it is over");
    }

    #[test]
    fn a_host_draws_the_same_whoever_else_is_there() {
        let spec = spec(Time(20_000_000_000));
        let run = |hosts: u32| {
            let app = |_| Poisson::new(Arc::clone(&spec), Destinations::all(64));
            let mut bench = Bench::new((0..hosts).map(app).collect(), 7);
            bench.run();
            bench.submitted.retain(|s| s.src.0 == 0);
            bench.submitted
        };
        assert_eq!(run(1), run(3));
        assert!(run(1).len() > 10);
    }

    #[test]
    fn without_an_end_it_is_background() {
        let app = Poisson::new(spec(Time::NEVER), Destinations::all(4));
        let mut bench = Bench::new(vec![app], 7);
        bench.run_for(10);
        assert_eq!(bench.submitted.len(), 10);
        assert!(!bench.apps[0].more_to_come());
        let alone = Poisson::new(spec(Time::NEVER), Destinations::all(1));
        let mut bench = Bench::new(vec![alone], 7);
        bench.run();
        assert!(bench.submitted.is_empty());
    }
}
