//! Configurations and networks that nobody has thought up: loss up to 30 %, duplication,
//! reordering, trimming, bouncing, path failures, queues of one packet, windows from 1 to 60. Every
//! message arrives once, and the invariants of specs/ndp.md#10 hold at every packet.
//!
//! `TRIMLINE_SWARM=1000` draws a thousand, `TRIMLINE_SWARM_SEED=17` begins with seed 17.

use std::cell::RefCell;
use std::rc::Rc;

use endpoint::{Draw, FailReason, Msg, Purpose};
use testkit::fault::{self, Mix};
use testkit::ndp::{HostInvariants, Rules};
use testkit::{Bottleneck, Link, Net, Seen};
use units::{Dur, HostId, Rate};

use super::{TEN_GIG, net};
use crate::ndp::{Config, Discipline, PathStrategy, ScoreboardRule};

const HOSTS: u32 = 5;

/// The draws that make one run, one after the other.
struct Dice {
    draw: Draw,
    rolled: u64,
}

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.rolled += 1;
        self.draw.below(Purpose::new("ndp swarm"), self.rolled, bound)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Nothing, or a share of up to `most`: bugs hide behind other faults.
    fn odds(&mut self, most: f64) -> f64 {
        if self.below(2) == 0 { 0.0 } else { most * self.below(1001) as f64 / 1e3 }
    }
}

/// One run.
#[derive(Debug)]
struct Plan {
    config: Config,
    link: Link,
    mix: Mix,
    /// Before which host, and what.
    bottleneck: Option<(HostId, Bottleneck)>,
    failure: Option<(u32, Dur)>,
    /// Submitted how long after the one before, from, to, bytes, priority.
    messages: Vec<(Dur, HostId, HostId, u64, u8)>,
}

fn config(dice: &mut Dice) -> Config {
    let rto = Dur::from_us(dice.pick(&[300, 1_000, 5_000]));
    let payload = dice.pick(&[1500, 9000]);
    Config {
        initial_window: 1 + dice.below(60) as u32,
        paths: dice.pick(&[PathStrategy::Permute, PathStrategy::Permute, PathStrategy::Random]),
        scoreboard: dice.pick(&[
            ScoreboardRule::Decaying,
            ScoreboardRule::Decaying,
            ScoreboardRule::Literal,
            ScoreboardRule::Off,
        ]),
        rto_initial: rto,
        rto_min: rto,
        rto_max: rto * dice.pick(&[1, 4]),
        rto_jitter_percent: dice.pick(&[0, 25, 90]),
        stall_timeout: rto * dice.pick(&[1, 5]),
        discipline: dice.pick(&[Discipline::Fair, Discipline::Prio]),
        pull_on_duplicate: dice.below(4) > 0,
        pull_interval: dice.pick(&[None, Some(Dur::from_us(8))]),
        // Nothing is in flight for as long as that, see `mix`.
        msl: Dur::from_ms(100),
        ..Config::paper(payload)
    }
}

fn plan(seed: u64) -> Plan {
    let dice = &mut Dice { draw: Draw::new(seed, Purpose::new("swarm"), 0), rolled: 0 };
    let config = config(dice);
    let paths = dice.pick(&[1, 2, 4, 8]);
    let packet = config.payload + config.header;
    let link = Link { rate: TEN_GIG, delay: Dur::from_us(2), mtu: packet, paths, hashed: false };
    let mix = Mix {
        drop: dice.odds(0.3),
        duplicate: dice.odds(0.2),
        delay: dice.odds(0.2),
        trim: dice.odds(0.2),
        bounce: dice.odds(0.1),
        late_max: Dur::from_us(1 + dice.below(2_000)),
    };
    let bottleneck = (dice.below(2) == 0).then(|| {
        let rate = Rate(1_000_000_000 * dice.pick(&[2, 10]));
        let packets = 1 + dice.below(8) as usize;
        (HostId(dice.below(2) as u32), Bottleneck { rate, packets, trim: true })
    });
    let failure = (dice.below(3) == 0 && paths > 1)
        .then(|| (dice.below(u64::from(paths)) as u32, Dur::from_us(dice.below(3_000))));
    let window = u64::from(config.initial_window) * u64::from(config.payload);
    let messages = (0..1 + dice.below(25)).map(|_| {
        let src = dice.below(u64::from(HOSTS));
        // Half of them to one host.
        let dst = if src > 0 && dice.below(2) == 0 { 0 } else { (src + 1 + dice.below(4)) % 5 };
        let bound = dice.pick(&[2, 2 * u64::from(config.payload), 4 * window]);
        let gap = Dur::from_us(dice.below(2) * dice.below(300));
        let (src, dst) = (HostId(src as u32), HostId(dst as u32));
        (gap, src, dst, dice.below(bound), dice.below(3) as u8)
    });
    let messages = messages.collect();
    Plan { config, link, mix, bottleneck, failure, messages }
}

/// What the checker must know of a configuration in this network.
fn rules(plan: &Plan) -> Rules {
    let Config { rto_min, rto_initial, stall_timeout, .. } = plan.config;
    let jitter = 100 - u64::from(plan.config.rto_jitter_percent);
    let packet = u64::from(plan.config.payload + plan.config.header);
    let interval = plan.config.pull_interval.unwrap_or(TEN_GIG.serialise(packet));
    let permutes = plan.config.paths == PathStrategy::Permute && plan.failure.is_none();
    let paths = plan.link.paths;
    Rules {
        initial_window: u64::from(plan.config.initial_window),
        timeout_min: Dur(rto_min.0 / 100 * jitter).min(rto_initial).min(stall_timeout),
        interval: vec![interval; HOSTS as usize],
        rate: vec![TEN_GIG; HOSTS as usize],
        answers_all: true,
        pull_on_duplicate: plan.config.pull_on_duplicate,
        fair: plan.config.discipline == Discipline::Fair,
        queued: false,
        permuted: permutes.then(|| Box::new(move |_, _| paths) as Box<_>),
    }
}

fn start(plan: &Plan, seed: u64) -> Net {
    let mut net = net(&plan.config, plan.link, HOSTS as usize);
    net.stop_logging();
    net.fault(fault::random(Draw::new(seed, Purpose::new("faults"), 0), plan.mix));
    if let Some((host, bottleneck)) = plan.bottleneck {
        net.set_bottleneck(host, bottleneck);
    }
    net
}

fn submit(plan: &Plan, net: &mut Net) {
    for &(gap, src, dst, len, prio) in &plan.messages {
        net.run_until(net.now() + gap);
        let msg = Msg { prio, ..Msg::new(dst, len) };
        net.submit_as(src, msg);
    }
    if let Some((path, reroute_after)) = plan.failure {
        net.fail_path(path, reroute_after);
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |n| n.parse().unwrap())
}

/// The packets that were looked at, and the shares of pulls.
fn try_seed(seed: u64) -> (u64, u64) {
    let plan = plan(seed);
    println!("seed {seed}: {plan:?}");
    let mut net = start(&plan, seed);
    let checker = Rc::new(RefCell::new(HostInvariants::new(rules(&plan))));
    let watch = Rc::clone(&checker);
    net.watch(move |at, seen, pkt| match seen {
        Seen::Sent => watch.borrow_mut().sent(at, pkt),
        Seen::Arrived(host) => watch.borrow_mut().arrived(at, host, pkt),
    });
    submit(&plan, &mut net);
    net.run_until_idle(Dur::from_ms(60_000));
    net.ledger().assert_all_done();
    let now = net.now();
    drop(net);
    let checker = Rc::into_inner(checker).unwrap().into_inner();
    let looked_at = checker.looked_at();
    assert_eq!(checker.finish(now), Vec::<String>::new(), "seed {seed}");
    looked_at
}

#[test]
fn whatever_is_drawn_arrives_once_and_keeps_the_invariants() {
    let (draws, first) = (setting("TRIMLINE_SWARM", 60), setting("TRIMLINE_SWARM_SEED", 1));
    let mut all = (0, 0);
    for seed in first..first + draws {
        let (packets, shares) = try_seed(seed);
        all = (all.0 + packets, all.1 + shares);
    }
    println!("{all:?} packets and shares looked at");
    assert!(draws < 60 || all.0 > 100_000 && all.1 > 10, "{all:?}");
}

/// The shortest time-wait that [`Config::check`] accepts, where packets live for up to `msl` and
/// many messages are given up: the ledger sees anything that is delivered twice.
#[test]
fn at_the_shortest_time_wait_nothing_arrives_twice() {
    let mut failed = 0;
    for seed in 1..=setting("TRIMLINE_SWARM", 40) {
        let drawn = plan(seed);
        let us = Dur::from_us;
        let mix = Mix { drop: 0.3, duplicate: 0.2, delay: 0.2, late_max: us(400), ..drawn.mix };
        let mut config = Config {
            rto_initial: us(50),
            rto_min: us(20),
            rto_max: us(60),
            stall_timeout: us(50),
            abort_after: us(150),
            rx_idle_timeout: us(150),
            // What is late waits for a place before a slow host.
            msl: us(1_000),
            ..drawn.config
        };
        config.time_wait = config.time_wait.max(config.time_wait_min());
        config.time_wait = config.time_wait.min(us(150 + 60 + 2_000));
        assert_eq!(config.check(), Ok(()));
        let plan = Plan { config, mix, ..drawn };
        let mut net = start(&plan, seed);
        submit(&plan, &mut net);
        net.run_until(net.now() + Dur::from_ms(200));
        failed += net
            .ledger()
            .iter()
            .filter(|(_, m)| matches!(m.failed, Some((_, FailReason::TimedOut))))
            .count();
        assert!(net.ledger().iter().all(|(_, m)| m.acked.is_some() || m.failed.is_some()));
    }
    assert!(failed > 20, "{failed} messages were given up");
}
