//! [`ClosedLoop`]: a fixed number of connections per host, each with at most one message in flight.

use std::sync::Arc;

use endpoint::{App, AppCx, AppEvent, Msg, Purpose};
use units::{Dur, MsgId, Time, TimerId};

use crate::{Destinations, SizeDist, arrivals};

const GAP: Purpose = Purpose::new("closed-loop.gap");
const SIZE: Purpose = Purpose::new("closed-loop.size");
const DESTINATION: Purpose = Purpose::new("closed-loop.destination");

/// A pause: between the end of a message and the start of the next, for a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Always this long; zero is none.
    Fixed(Dur),
    /// Exponential with this mean.
    Exponential(Dur),
}

impl Gap {
    /// How long it is; `unit` is a uniform draw in `[0, 1)`.
    pub(crate) fn length(self, unit: impl FnOnce() -> f64) -> Dur {
        match self {
            Self::Fixed(gap) => gap,
            Self::Exponential(mean) => arrivals::exponential(mean.0 as f64, unit()),
        }
    }
}

/// What all hosts of a closed loop have in common.
#[derive(Clone, Debug)]
pub struct ClosedLoopSpec {
    /// How many connections each host has.
    pub connections: u32,
    /// How long messages are.
    pub sizes: SizeDist,
    /// The pause before each message, the first included.
    pub gap: Gap,
    /// Whether a connection draws its destination once, or anew for each message.
    pub keep_destination: bool,
    /// No message is submitted at or after this time. [`Time::NEVER`]: the loop never stops by
    /// itself and is background to whatever ends the run.
    pub until: Time,
    /// See [`endpoint::Msg::prio`].
    pub prio: u8,
}

/// One host's closed loop. A message is over when its sender knows that it was delivered; a
/// connection whose message fails stops.
#[derive(Debug)]
pub struct ClosedLoop {
    spec: Arc<ClosedLoopSpec>,
    to: Destinations,
    connections: Vec<Connection>,
    /// How many connections are in their gap.
    waiting: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// How many messages it has submitted: the number of its next draws.
    submitted: u64,
    /// The message in flight.
    open: Option<MsgId>,
}

impl ClosedLoop {
    /// The loop of one host that sends to `to`.
    #[must_use]
    pub fn new(spec: Arc<ClosedLoopSpec>, to: Destinations) -> Self {
        Self { spec, to, connections: Vec::new(), waiting: 0 }
    }

    /// Connection `index` pauses, then submits; not at all if that is too late.
    fn pause(&mut self, cx: &mut AppCx<'_>, index: usize) {
        let Some(connection) = self.connections.get(index) else { return };
        let draw = cx.draw.part(index as u64);
        let gap = self.spec.gap.length(|| draw.unit(GAP, connection.submitted));
        let at = cx.now.saturating_add(gap);
        if at >= self.spec.until {
            return;
        }
        if gap == Dur::ZERO {
            self.submit(cx, index);
        } else {
            self.waiting += 1;
            cx.arm(TimerId(index as u32), at);
        }
    }

    fn submit(&mut self, cx: &mut AppCx<'_>, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let (draw, n) = (cx.draw.part(index as u64), connection.submitted);
        let which = if self.spec.keep_destination { 0 } else { n };
        let Some(dst) = self.to.pick(cx.me, draw, DESTINATION, which) else { return };
        let len = self.spec.sizes.sample(draw.unit(SIZE, n));
        let msg = Msg { prio: self.spec.prio, ..Msg::new(dst, len) };
        connection.open = Some(cx.submit_as(msg));
        connection.submitted += 1;
    }

    /// The connection whose message `id` was in flight; it is no longer. Connections are few.
    fn finish(&mut self, id: MsgId) -> Option<usize> {
        let index = self.connections.iter().position(|c| c.open == Some(id))?;
        self.connections.get_mut(index)?.open = None;
        Some(index)
    }
}

impl App for ClosedLoop {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        self.connections = vec![Connection::default(); self.spec.connections as usize];
        for index in 0..self.connections.len() {
            self.pause(cx, index);
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Acked(id) => {
                if let Some(index) = self.finish(id) {
                    self.pause(cx, index);
                }
            }
            AppEvent::Failed(key, _) if key.src == cx.me => {
                self.finish(key.id);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        self.waiting = self.waiting.saturating_sub(1);
        self.submit(cx, id.0 as usize);
    }

    fn more_to_come(&self) -> bool {
        self.waiting > 0 && self.spec.until != Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use endpoint::FailReason;
    use units::{HostId, MsgKey};

    use super::*;
    use crate::apps::bench::{Bench, FCT};

    fn spec(gap: Gap, keep_destination: bool) -> Arc<ClosedLoopSpec> {
        let sizes = SizeDist::fixed(1000);
        let until = Time(1_000_000_000);
        Arc::new(ClosedLoopSpec { connections: 3, sizes, gap, keep_destination, until, prio: 0 })
    }

    #[test]
    fn never_more_than_one_message_per_connection() {
        let gap = Dur::from_us(90);
        let app = ClosedLoop::new(spec(Gap::Fixed(gap), true), Destinations::all(50));
        let mut bench = Bench::new(vec![app], 7);
        bench.run();
        // Each message takes FCT and is followed by a gap; the first comes after a gap.
        let expected: Vec<Time> = (0..10)
            .map(|n| Time::ZERO + gap + (gap + FCT) * n)
            .take_while(|t| t.0 < 1_000_000_000)
            .collect();
        for dst in bench.submitted[..3].iter().map(|s| s.msg.dst) {
            let times: Vec<Time> =
                bench.submitted.iter().filter(|s| s.msg.dst == dst).map(|s| s.at).collect();
            assert_eq!(times, expected, "a connection keeps its destination");
        }
        assert!(!bench.apps[0].more_to_come(), "it is over");
    }

    #[test]
    fn gaps_and_destinations_are_drawn_anew() {
        let gap = Gap::Exponential(Dur::from_us(90));
        let app = ClosedLoop::new(spec(gap, false), Destinations::all(50));
        let mut bench = Bench::new(vec![app], 7);
        bench.run();
        let count = bench.submitted.len();
        // 3 connections x 1 ms / 100 us.
        assert!((15..=45).contains(&count), "{count}");
        let mut destinations: Vec<_> = bench.submitted.iter().map(|s| s.msg.dst).collect();
        destinations.sort_unstable();
        destinations.dedup();
        assert!(destinations.len() > 8, "{destinations:?}");
    }

    #[test]
    fn a_failed_message_stops_its_connection() {
        let app = ClosedLoop::new(spec(Gap::Fixed(Dur::ZERO), true), Destinations::all(50));
        let mut bench = Bench::new(vec![app], 7);
        bench.start();
        assert_eq!(bench.submitted.len(), 3, "without a gap all start at once");
        let key = |id| MsgKey { src: HostId(0), id: MsgId(id) };
        bench.event(HostId(0), AppEvent::Failed(key(1), FailReason::TimedOut));
        bench.event(HostId(0), AppEvent::Acked(MsgId(1)));
        assert_eq!(bench.submitted.len(), 3);
        bench.event(HostId(0), AppEvent::Acked(MsgId(2)));
        assert_eq!(bench.submitted.len(), 4);
    }
}
