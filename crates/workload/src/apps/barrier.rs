//! The barrier-synchronised incast: one receiver asks many senders for a part each of a block, and
//! asks for the next block once it has all of them. Phanishayee et al., FAST'08, section 2: a
//! client that reads data striped over servers; each part is a *server request unit* (SRU).
//!
//! Requests take no room in the network: a request is a signal of an explicit latency. The next
//! block is requested when the last byte of the slowest part has arrived, so a block lasts from its
//! request to that byte.

use std::collections::BTreeSet;
use std::sync::Arc;

use endpoint::{App, AppCx, AppEvent, Job, Msg, Purpose};
use units::{Bytes, Dur, HostId, MsgId, Rate, Time, TimerId};

const ORDER: Purpose = Purpose::new("barrier: order of requests");
const START: TimerId = TimerId(0);

/// What all hosts of a barrier have in common.
#[derive(Clone, Debug)]
pub struct BarrierSpec {
    /// Who asks for blocks.
    pub receiver: HostId,
    /// Who sends, and how many bytes of each block. Each host once, never the receiver.
    pub senders: Vec<(HostId, u64)>,
    /// From a request to the sender's first packet, at least 1 ps.
    pub request_latency: Dur,
    /// The requests of a block go out in an order drawn for it, each so much after the one before.
    /// Zero: by 1 ps, which is the order alone.
    pub request_gap: Dur,
    /// The channel of all messages between two hosts, which so share a connection; zero: a
    /// connection for each.
    pub channel: u32,
    /// When the first block is requested.
    pub start: Time,
    /// No block is requested at or after this time; one in flight is finished.
    pub until: Time,
    /// No more blocks than this.
    pub blocks: u64,
    /// See [`Msg::window`].
    pub window: u64,
    /// See [`Msg::prio`].
    pub prio: u8,
}

impl BarrierSpec {
    /// The parts of a block of `block` bytes: equal, and where that leaves some bytes, the first
    /// senders have one more each.
    #[must_use]
    pub fn split(senders: &[HostId], block: u64) -> Vec<(HostId, u64)> {
        let count = (senders.len() as u64).max(1);
        let part = |n: u64| block / count + u64::from(n < block % count);
        (0..).zip(senders).map(|(n, &sender)| (sender, part(n))).collect()
    }

    /// The barrier's hosts, each with its application.
    #[must_use]
    pub fn apps(self: &Arc<Self>) -> Vec<(HostId, Barrier)> {
        let receiver = (self.receiver, Barrier::Receiver(Receiver::new(Arc::clone(self))));
        let sender = |&(host, len): &(HostId, u64)| {
            (host, Barrier::Sender(Sender { spec: Arc::clone(self), len, open: Vec::new() }))
        };
        std::iter::once(receiver).chain(self.senders.iter().map(sender)).collect()
    }

    /// Whether it ends without being stopped.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.until != Time::NEVER || self.blocks != u64::MAX
    }
}

/// The greatest window of each of `senders` that share a bottleneck of `rate` with a round trip of
/// `rtt` and a buffer of `queue`: what fits into both, divided equally, bytes on the wire. The
/// dynamic cap of the incast study (specs/incast.md#5).
#[must_use]
pub fn window_share(rate: Rate, rtt: Dur, queue: Bytes, senders: u32) -> u64 {
    rate.bytes_in(rtt).0.saturating_add(queue.0) / u64::from(senders.max(1))
}

/// One host's part in a barrier. Made by [`BarrierSpec::apps`].
#[derive(Debug)]
pub enum Barrier {
    /// It asks.
    Receiver(Receiver),
    /// It sends.
    Sender(Sender),
}

impl App for Barrier {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        if let Self::Receiver(receiver) = self {
            receiver.begin(cx);
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match self {
            Self::Receiver(receiver) => receiver.hear(cx, event),
            Self::Sender(sender) => sender.hear(cx, event),
        }
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, _: TimerId) {
        if let Self::Receiver(receiver) = self {
            receiver.request(cx, 0);
        }
    }

    fn more_to_come(&self) -> bool {
        match self {
            Self::Receiver(receiver) => {
                receiver.spec.ends_by_itself() && !matches!(receiver.state, State::Over)
            }
            Self::Sender(_) => false,
        }
    }

    fn signal_delay(&self) -> Option<Dur> {
        let (Self::Receiver(Receiver { spec, .. }) | Self::Sender(Sender { spec, .. })) = self;
        Some(spec.request_latency)
    }
}

/// The host that asks for blocks.
#[derive(Debug)]
pub struct Receiver {
    spec: Arc<BarrierSpec>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Before the first block.
    Idle,
    /// A block is in flight.
    Run(Block),
    /// No block is requested any more.
    Over,
}

#[derive(Debug)]
struct Block {
    number: u64,
    start: Time,
    /// What had arrived at the host when it began, bytes on the wire.
    received_before: u64,
    /// Payload of the parts that are here.
    bytes: u64,
    /// The senders whose parts are not.
    missing: BTreeSet<HostId>,
}

impl Receiver {
    fn new(spec: Arc<BarrierSpec>) -> Self {
        Self { spec, state: State::Idle }
    }

    fn begin(&mut self, cx: &mut AppCx<'_>) {
        if self.spec.start > cx.now {
            cx.arm(START, self.spec.start);
        } else {
            self.request(cx, 0);
        }
    }

    /// Ask for block `number`, unless the barrier is over.
    fn request(&mut self, cx: &mut AppCx<'_>, number: u64) {
        let BarrierSpec { senders, request_latency, request_gap, until, blocks, .. } = &*self.spec;
        if cx.now >= *until || number >= *blocks {
            self.state = State::Over;
            return;
        }
        let mut order: Vec<HostId> = senders.iter().map(|&(host, _)| host).collect();
        cx.draw.shuffle(ORDER, number, &mut order);
        let mut after = *request_latency;
        for &sender in &order {
            cx.signal(sender, number, after);
            after += (*request_gap).max(Dur(1));
        }
        let missing = order.into_iter().collect();
        let (start, received_before) = (cx.now, cx.received);
        self.state = State::Run(Block { number, start, received_before, bytes: 0, missing });
    }

    fn hear(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        let State::Run(block) = &mut self.state else { return };
        match event {
            AppEvent::Delivered { key, len, token, .. } if token == block.number => {
                if block.missing.remove(&key.src) {
                    block.bytes += len;
                }
                if block.missing.is_empty() {
                    let next = block.number + 1;
                    cx.report(block.job(cx, self.spec.senders.len()));
                    self.request(cx, next);
                }
            }
            // A sender has given its part up: the block will never be whole, and none comes after
            // it.
            AppEvent::Signal { from, token, .. }
                if token == block.number && block.missing.contains(&from) =>
            {
                cx.report(block.job(cx, self.spec.senders.len()));
                self.state = State::Over;
            }
            _ => {}
        }
    }
}

impl Block {
    /// The block, of `parts` parts, as it is now.
    fn job(&self, cx: &AppCx<'_>, parts: usize) -> Job {
        Job {
            tag: 0,
            completed: self.missing.is_empty(),
            start: self.start,
            end: cx.now,
            bytes: self.bytes,
            received: cx.received - self.received_before,
            parts: parts as u64,
            in_time: (parts - self.missing.len()) as u64,
            work: None,
        }
    }
}

/// A host that sends its part of every block.
#[derive(Debug)]
pub struct Sender {
    spec: Arc<BarrierSpec>,
    len: u64,
    /// Messages not known to be delivered, with their blocks. More than one only if a request
    /// overtakes an acknowledgement.
    open: Vec<(MsgId, u64)>,
}

impl Sender {
    fn hear(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Signal { token: block, .. } => {
                let BarrierSpec { receiver, channel, prio, window, .. } = *self.spec;
                let msg = Msg { channel, prio, window, ..Msg::new(receiver, self.len) };
                self.open.push((cx.submit_saying(msg, block), block));
            }
            AppEvent::Acked(id) => {
                self.close(id);
            }
            AppEvent::Failed(key, _) if key.src == cx.me => {
                if let Some(block) = self.close(key.id) {
                    cx.signal(self.spec.receiver, block, self.spec.request_latency);
                }
            }
            AppEvent::Failed(..) | AppEvent::Delivered { .. } => {}
        }
    }

    /// Message `id` is over; the block that it was of.
    fn close(&mut self, id: MsgId) -> Option<u64> {
        let at = self.open.iter().position(|&(open, _)| open == id)?;
        Some(self.open.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use endpoint::{FailReason, UNBOUNDED};
    use units::MsgKey;

    use super::*;
    use crate::apps::bench::{Bench, FCT, Submitted};

    const LATENCY: Dur = Dur(50_000);

    fn spec() -> BarrierSpec {
        let senders: Vec<HostId> = (1..5).map(HostId).collect();
        BarrierSpec {
            receiver: HostId(0),
            senders: BarrierSpec::split(&senders, 1_002),
            request_latency: LATENCY,
            request_gap: Dur::ZERO,
            channel: 7,
            start: Time(1_000),
            until: Time::NEVER,
            blocks: 3,
            window: 9_000,
            prio: 2,
        }
    }

    fn bench(spec: BarrierSpec, seed: u64) -> Bench<Barrier> {
        let apps = Arc::new(spec).apps();
        Bench::new(apps.into_iter().map(|(_, app)| app).collect(), seed)
    }

    fn order(submitted: &[Submitted]) -> Vec<u32> {
        submitted.iter().map(|s| s.src.0).collect()
    }

    #[test]
    fn a_block_follows_the_last_part_of_the_one_before() {
        let mut bench = bench(spec(), 1);
        bench.run();
        assert_eq!(bench.submitted.len(), 12);
        // In the bench every message takes half of FCT, so the last to start is the last to arrive.
        let block = LATENCY + Dur(3) + Dur(FCT.0 / 2);
        let mut start = Time(1_000);
        for (job, submitted) in bench.jobs.iter().zip(bench.submitted.chunks(4)) {
            let times: Vec<Time> = submitted.iter().map(|s| s.at).collect();
            assert_eq!(times, [0, 1, 2, 3].map(|k| start + LATENCY + Dur(k)));
            let expected = Job {
                completed: true,
                start,
                end: start + block,
                bytes: 1_002,
                parts: 4,
                in_time: 4,
                ..Job::default()
            };
            assert_eq!(*job, expected);
            start += block;
            for s in submitted {
                let len = 250 + u64::from(s.src.0 <= 2);
                let msg = Msg {
                    id: s.msg.id,
                    channel: 7,
                    window: 9_000,
                    prio: 2,
                    ..Msg::new(HostId(0), len)
                };
                assert_eq!(s.msg, msg, "1002 = 251 + 251 + 250 + 250");
            }
        }
        assert_eq!(bench.jobs.len(), 3);
        assert!(bench.apps.iter().all(|app| !app.more_to_come()));
    }

    #[test]
    fn each_block_and_each_seed_has_its_own_order() {
        let orders = |seed| {
            let senders: Vec<HostId> = (1..33).map(HostId).collect();
            let senders = BarrierSpec::split(&senders, 3_200);
            let mut bench = bench(BarrierSpec { senders, ..spec() }, seed);
            bench.run();
            bench.submitted.chunks(32).map(order).collect::<Vec<_>>()
        };
        let first = orders(1);
        assert_eq!(first, orders(1));
        assert_ne!(first, orders(2));
        assert_ne!(first[0], first[1]);
        for mut order in first {
            order.sort_unstable();
            assert_eq!(order, (1..33).collect::<Vec<_>>(), "everybody once");
        }
    }

    #[test]
    fn no_block_begins_at_or_after_the_end() {
        let block = LATENCY + Dur(30) + Dur(FCT.0 / 2);
        let blocks = |until| {
            let request_gap = Dur(10);
            let mut bench =
                bench(BarrierSpec { until, blocks: u64::MAX, request_gap, ..spec() }, 1);
            bench.run();
            assert!(!bench.apps[0].more_to_come());
            bench.jobs.len()
        };
        let second = Time(1_000) + block;
        assert_eq!([Time(1_000), Time(1_001), second, second + Dur(1)].map(blocks), [0, 1, 1, 2]);
    }

    #[test]
    fn a_part_that_fails_ends_the_barrier_and_is_reported() {
        // Messages without an end are never delivered in the bench.
        let senders = vec![(HostId(1), 10), (HostId(2), UNBOUNDED)];
        let mut bench = bench(BarrierSpec { senders, ..spec() }, 1);
        bench.run();
        assert!(bench.jobs.is_empty() && bench.apps[0].more_to_come());
        let failed = |src| {
            let key = MsgKey { src: HostId(src), id: MsgId(0) };
            (key.src, AppEvent::Failed(key, FailReason::TimedOut))
        };
        // That of host 1 has been acknowledged.
        for (host, event) in [failed(1), failed(2)] {
            bench.event(host, event);
        }
        bench.resume(usize::MAX);
        let [job] = bench.jobs[..] else { panic!("{:?}", bench.jobs) };
        assert_eq!((job.completed, job.bytes, job.parts, job.in_time), (false, 10, 2, 1));
        assert!(!bench.apps[0].more_to_come());
    }

    #[test]
    fn a_window_is_a_share_of_pipe_and_buffer() {
        // 1 Gb/s x 100 us = 12 500 B, and 64 packets of 1040 B.
        let share = |n| window_share(Rate(1_000_000_000), Dur::from_us(100), Bytes(66_560), n);
        assert_eq!([1, 8, 64].map(share), [79_060, 9_882, 1_235]);
        assert_eq!(share(0), share(1));
    }
}
