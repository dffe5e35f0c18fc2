//! What every transport must do, whatever its paper says: deliver each message whole, once, and
//! then be silent. A transport's own tests call [`run`] with a way to make an endpoint; the
//! harness underneath checks the contract at every call.

use endpoint::{Draw, Endpoint, FailReason, Packet, Purpose, Stat};
use units::{Bytes, Dur, HostId, MsgId, MsgKey, Rate, Time};

use crate::fault::{self, Mix};
use crate::{Bottleneck, Link, Naps, Net};

/// What the suite must know about a transport.
#[derive(Clone, Copy, Debug)]
pub struct Opts {
    /// Payload of a full packet.
    pub payload: Bytes,
    /// About as much as is in flight to one destination at first: messages of several times this
    /// are used.
    pub window: Bytes,
    /// Whether the transport recovers from trimmed packets (others see them as lost or rejected).
    pub trims: bool,
    /// Whether it understands returned headers.
    pub bounces: bool,
    /// Whether `Packet::path` is entropy for hashing, not an index of the sender's choice.
    pub hashed_paths: bool,
    /// Longest time that any run of the suite may take to become idle.
    pub patience: Dur,
}

/// Makes the endpoint of a host.
pub type Make<'a> = &'a dyn Fn(HostId) -> Box<dyn Endpoint>;

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const HOSTS: u32 = 4;

/// The whole suite.
pub fn run(make: impl Fn(HostId) -> Box<dyn Endpoint>, opts: Opts) {
    long_flows_never_end(&make, opts);
    run_bounded(make, opts);
}

/// The suite for a transport whose messages all end, the longest after 20 windows or more.
pub fn run_bounded(make: impl Fn(HostId) -> Box<dyn Endpoint>, opts: Opts) {
    let make: Make<'_> = &make;
    every_size_arrives(make, opts);
    loss_is_repaired(make, opts);
    duplicates_and_reordering_are_harmless(make, opts);
    late_packets_start_nothing(make, opts);
    trimming_and_bouncing_are_survived(make, opts);
    a_dead_path_is_left(make, opts);
    an_overloaded_receiver_gets_everything(make, opts);
    channels_keep_order(make, opts);
    cancelled_messages_end(make, opts);
    lateness_is_no_loss(make, opts);
    pauses_are_survived(make, opts);
    for seed in 1..=10 {
        swarm(make, opts, seed);
    }
}

/// A network of four hosts, 10 Gb/s, 2 us away from one another, four paths.
#[must_use]
pub fn net(make: Make<'_>, opts: Opts, seed: u64) -> Net {
    let link = Link {
        rate: Rate(10_000_000_000),
        delay: Dur::from_us(2),
        mtu: u16::try_from(opts.payload.0 + 100).expect("payload of a packet"),
        paths: 4,
        hashed: opts.hashed_paths,
    };
    Net::new(seed, link, (0..HOSTS).map(|h| make(HostId(h))).collect())
}

/// Run to silence, and check that everything was delivered and that silence is for ever.
fn finish(net: &mut Net, opts: Opts) {
    net.run_until_idle(opts.patience);
    net.ledger().assert_all_done();
    assert!(!net.step(), "idle for ever");
}

/// From nothing to several windows, on and beside packet boundaries.
fn sizes(opts: Opts) -> Vec<u64> {
    let (p, w) = (opts.payload.0, opts.window.0);
    vec![0, 1, p - 1, p, p + 1, 2 * p, 3 * p + 7, w - 1, w, w + 1, 3 * w + p / 2, 7 * w + 11]
}

pub(crate) fn every_size_arrives(make: Make<'_>, opts: Opts) {
    for len in sizes(opts) {
        let mut net = net(make, opts, len);
        let key = net.submit(A, B, len);
        finish(&mut net, opts);
        let sent: u64 = net.log().iter().map(|s| u64::from(s.pkt.span.len)).sum();
        assert!(sent >= net.record(key).msg.len);
        assert_eq!(net.ledger().bytes_placed(), len);
    }
}

/// Every size in both directions, all at once.
fn submit_all(net: &mut Net, opts: Opts) {
    for len in sizes(opts) {
        net.submit(A, B, len);
        net.submit(B, A, len);
    }
}

pub(crate) fn loss_is_repaired(make: Make<'_>, opts: Opts) {
    for (seed, drop) in [(1, 0.001), (2, 0.01), (3, 0.05), (4, 0.1), (5, 0.2), (6, 0.3)] {
        let mut net = net(make, opts, seed);
        net.fault(fault::random(draw(seed), Mix { drop, ..Mix::NONE }));
        submit_all(&mut net, opts);
        finish(&mut net, opts);
        assert!(drop < 0.01 || net.dropped() > 0, "nothing was dropped");
    }
}

fn duplicates_and_reordering_are_harmless(make: Make<'_>, opts: Opts) {
    for (seed, late_us) in [(1, 1), (2, 20), (3, 500), (4, 20_000)] {
        let mut net = net(make, opts, seed);
        let late_max = Dur::from_us(late_us);
        let mix = Mix { duplicate: 0.2, delay: 0.3, late_max, ..Mix::NONE };
        net.fault(fault::random(draw(seed), mix));
        submit_all(&mut net, opts);
        finish(&mut net, opts);
    }
}

/// As on real hosts, whose peers say how far they are done: of many messages, all packets once
/// more.
fn late_packets_start_nothing(make: Make<'_>, opts: Opts) {
    let mut net = net(make, opts, 1);
    for n in 0..300 {
        let key = net.submit(A, B, 1 + n % (2 * opts.payload.0));
        net.run_until_idle(opts.patience);
        net.over_below(B, key.src, MsgId(key.id.0 + 1));
    }
    let late: Vec<Packet> = net.log().iter().map(|sent| sent.pkt).collect();
    late.into_iter().filter(|pkt| pkt.src == A).for_each(|pkt| net.inject(pkt));
    finish(&mut net, opts);
    let delivered = net.submit(A, B, opts.payload.0);
    finish(&mut net, opts);
    assert!(net.record(delivered).delivered.is_some());
}

fn trimming_and_bouncing_are_survived(make: Make<'_>, opts: Opts) {
    for (seed, trim, bounce) in [(1, 0.1, 0.0), (2, 0.4, 0.0), (3, 0.2, 0.1), (4, 0.0, 0.2)] {
        let trim = if opts.trims { trim } else { trim / 4.0 };
        let bounce = if opts.bounces { bounce } else { bounce / 4.0 };
        let mut net = net(make, opts, seed);
        net.fault(fault::random(draw(seed), Mix { trim, bounce, ..Mix::NONE }));
        submit_all(&mut net, opts);
        finish(&mut net, opts);
    }
}

fn a_dead_path_is_left(make: Make<'_>, opts: Opts) {
    for seed in 1..=4 {
        let mut net = net(make, opts, seed);
        submit_all(&mut net, opts);
        net.run_until(net.now() + Dur::from_us(20));
        net.fail_path(seed as u32 % 4, Dur::from_ms(1));
        finish(&mut net, opts);
    }
}

fn an_overloaded_receiver_gets_everything(make: Make<'_>, opts: Opts) {
    let mut net = net(make, opts, 1);
    let config = Bottleneck { rate: Rate(1_000_000_000), packets: 8, trim: opts.trims };
    net.set_bottleneck(A, config);
    for i in 0..60 {
        net.submit(HostId(1 + i % (HOSTS - 1)), A, u64::from(i) * opts.window.0 / 10);
    }
    finish(&mut net, opts);
}

fn channels_keep_order(make: Make<'_>, opts: Opts) {
    let mut net = net(make, opts, 1);
    let mix = Mix { drop: 0.02, delay: 0.1, late_max: Dur::from_us(50), ..Mix::NONE };
    net.fault(fault::random(draw(1), mix));
    for round in 0..5 {
        for (i, len) in sizes(opts).into_iter().enumerate() {
            net.submit_on(A, B, 1, len);
            net.submit_on(A, B, 2, opts.payload.0 / 3);
            net.submit_on(B, A, 1, len / 2);
            net.submit_on(A, HostId(2), 1 + i as u32 % 3, len + round);
        }
        net.run_until(net.now() + Dur::from_us(200));
    }
    finish(&mut net, opts);
}

fn cancelled_messages_end(make: Make<'_>, opts: Opts) {
    let len = 20 * opts.window.0;
    for (after_us, drop) in [(0, 0.0), (1, 0.0), (7, 0.0), (40, 0.1), (100_000, 0.0)] {
        let mut net = net(make, opts, after_us);
        net.fault(fault::random(draw(after_us), Mix { drop, ..Mix::NONE }));
        let keys: Vec<MsgKey> = [0, 0, 1, 1, 1].map(|ch| net.submit_on(A, B, ch, len)).to_vec();
        net.run_until(net.now() + Dur::from_us(after_us));
        net.cancel(keys[1]);
        net.cancel(keys[3]);
        finish(&mut net, opts);
        for key in [keys[1], keys[3]] {
            let record = net.record(key);
            if let Some((_, why)) = record.failed {
                assert_eq!(why, FailReason::Cancelled);
            }
        }
        if after_us == 0 {
            let placed = net.record(keys[1]).placed.prefix();
            assert!(placed < len, "cancelled at once, yet delivered");
        }
    }
}

/// On a machine that looks at its packets and timers up to 50 us late, and says so, nothing that
/// was not lost is sent again.
pub(crate) fn lateness_is_no_loss(make: Make<'_>, opts: Opts) {
    for (seed, late_us) in [(1, 5), (2, 20), (3, 50), (4, 50)] {
        let mut net = net(make, opts, seed);
        net.set_naps(Naps { max: Dur::from_us(late_us), pause: Dur::ZERO, pause_every: 0 });
        submit_all(&mut net, opts);
        finish(&mut net, opts);
        let count = |stat| (0..HOSTS).map(|host| net.stat(HostId(host), stat)).sum::<u64>();
        if count(Stat::HostDrop) > 0 {
            continue;
        }
        for stat in [Stat::Retransmission, Stat::Duplicate] {
            assert_eq!(count(stat), 0, "{stat:?}, {late_us} us late, seed {seed}");
        }
    }
}

/// Processes that also stop for 10 ms, of which nobody is told, over a network that loses.
fn pauses_are_survived(make: Make<'_>, opts: Opts) {
    for (seed, drop) in [(1, 0.0), (2, 0.02), (3, 0.1)] {
        let mut net = net(make, opts, seed);
        let (max, pause) = (Dur::from_us(50), Dur::from_ms(10));
        net.set_naps(Naps { max, pause, pause_every: 50 });
        net.fault(fault::random(draw(seed), Mix { drop, duplicate: drop, ..Mix::NONE }));
        submit_all(&mut net, opts);
        finish(&mut net, opts);
    }
}

fn long_flows_never_end(make: Make<'_>, opts: Opts) {
    let mut net = net(make, opts, 1);
    let key = net.submit(A, B, endpoint::UNBOUNDED);
    let end = Time::ZERO + Dur::from_ms(5);
    net.run_until(end);
    let ideal = Rate(10_000_000_000).bytes_in(Dur::from_ms(5)).0;
    let placed = net.ledger().bytes_placed();
    assert!(placed > ideal / 2 && placed < ideal, "{placed} of {ideal} bytes");
    net.cancel(key);
    net.run_until_idle(opts.patience);
    assert!(matches!(net.record(key).failed, Some((_, FailReason::Cancelled))));
}

fn draw(seed: u64) -> Draw {
    Draw::new(seed, Purpose::new("testkit conformance"), 0)
}

/// A configuration drawn from `seed`, run twice: everything arrives, and the digests agree. The
/// configuration is printed first, so that a failure names it.
pub fn swarm(make: Make<'_>, opts: Opts, seed: u64) {
    let plan = Plan::draw(opts, seed);
    println!("conformance::swarm seed {seed}: {plan:?}");
    let digests = [(); 2].map(|()| plan.run(make, opts, seed));
    assert_eq!(digests[0], digests[1], "same seed, same digest");
}

/// One swarm configuration. Each fault is off half of the time: bugs hide behind other faults.
#[derive(Clone, Debug)]
struct Plan {
    mix: Mix,
    bottleneck: Option<Bottleneck>,
    fail_path: Option<(u32, Dur)>,
    /// (submit after the one before, source, destination, channel, bytes, cancel after)
    messages: Vec<(Dur, HostId, HostId, u32, u64, Option<Dur>)>,
}

impl Plan {
    fn draw(opts: Opts, seed: u64) -> Self {
        const SWARM: Purpose = Purpose::new("testkit swarm");
        let draw = draw(seed);
        let mut n = 0;
        let mut below = |bound: u64| {
            n += 1;
            draw.below(SWARM, n, bound)
        };
        let mut odds = |max: f64| if below(2) == 0 { 0.0 } else { max * below(1000) as f64 / 1e3 };
        let mix = Mix {
            drop: odds(0.2),
            duplicate: odds(0.2),
            delay: odds(0.2),
            trim: if opts.trims { odds(0.2) } else { 0.0 },
            bounce: if opts.bounces { odds(0.1) } else { 0.0 },
            late_max: Dur::from_us(1 + below(2_000)),
        };
        let bottleneck = (below(2) == 0).then(|| Bottleneck {
            rate: Rate(1_000_000_000 * (1 + below(10))),
            packets: 2 + below(30) as usize,
            trim: opts.trims,
        });
        let fail_path = (below(2) == 0).then(|| (below(4) as u32, Dur::from_us(below(5_000))));
        let count = 1 + below(40);
        let messages = (0..count).map(|_| {
            let src = below(u64::from(HOSTS));
            let dst = (src + 1 + below(u64::from(HOSTS) - 1)) % u64::from(HOSTS);
            let bound = [2, opts.payload.0 * 2, opts.window.0 * 4][below(3) as usize];
            let cancel = (below(10) == 0).then(|| Dur::from_us(below(300)));
            let gap = Dur::from_us(below(2) * below(200));
            let hosts = (HostId(src as u32), HostId(dst as u32));
            (gap, hosts.0, hosts.1, below(4) as u32, below(bound), cancel)
        });
        Self { mix, bottleneck, fail_path, messages: messages.collect() }
    }

    fn run(&self, make: Make<'_>, opts: Opts, seed: u64) -> u64 {
        let mut net = net(make, opts, seed);
        net.fault(fault::random(draw(seed), self.mix));
        if let Some(config) = self.bottleneck {
            net.set_bottleneck(B, config);
        }
        let mut cancels = Vec::new();
        for &(gap, src, dst, channel, len, cancel) in &self.messages {
            net.run_until(net.now() + gap);
            let key = net.submit_on(src, dst, channel, len);
            cancels.extend(cancel.map(|after| (net.now() + after, key)));
        }
        if let Some((path, after)) = self.fail_path {
            net.fail_path(path, after);
        }
        cancels.sort_unstable();
        for (at, key) in cancels {
            net.run_until(at);
            let record = net.record(key);
            if record.acked.is_none() && record.failed.is_none() {
                net.cancel(key);
            }
        }
        finish(&mut net, opts);
        net.digest()
    }
}

/// Run long flows through a bottleneck past their warm-up, then call `measure` on something that
/// keeps them running, and expect no allocation. `measure` runs what it is given
/// and returns how many allocations that took; it comes from the test, because counting them needs
/// a global allocator.
pub fn allocates_nothing(make: Make<'_>, opts: Opts, measure: impl Fn(&mut dyn FnMut()) -> u64) {
    let mut net = net(make, opts, 1);
    net.stop_logging();
    net.set_bottleneck(B, Bottleneck { rate: Rate(5_000_000_000), packets: 50, trim: opts.trims });
    net.submit(A, B, endpoint::UNBOUNDED);
    net.submit(B, A, endpoint::UNBOUNDED);
    net.submit(HostId(2), B, endpoint::UNBOUNDED);
    net.run_until(Time::ZERO + Dur::from_ms(300));
    let before = net.sent();
    let allocations = measure(&mut || net.run_until(net.now() + Dur::from_ms(20)));
    assert!(net.sent() > before + 1_000, "only {} packets", net.sent() - before);
    assert_eq!(allocations, 0, "allocations in {} packets", net.sent() - before);
}
