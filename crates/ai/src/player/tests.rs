//! Jobs over an ideal network: hosts with one link each, which carries one message after the
//! other, and a latency. So closed forms hold to the picosecond.

use std::collections::BTreeMap;

use endpoint::{AppEffect, Draw, FailReason, Job as Report};
use proptest::prelude::*;
use units::Rate;

use super::*;
use crate::collective::{Algorithm, Cut};
use crate::graph::{Builder, Op, Task, TaskId};
use crate::job::{Choice, Config, ScaleUp, Straggler};
use crate::placement::Placement;

const RATE: Rate = Rate(400_000_000_000);
const LATENCY: Dur = Dur::from_us(2);
const NVLINK: Rate = Rate(3_600_000_000_000);
const HOP: Dur = Dur::from_ns(500);

enum Happening {
    Timer,
    /// A message begins to arrive.
    AtPort(MsgKey, u64, u64),
    Event(AppEvent),
}

/// All hosts of a job and the network between them.
struct Net {
    players: Vec<Player>,
    ids: Vec<MsgId>,
    reports: Vec<Report>,
    now: Time,
    queue: BTreeMap<(Time, u64), (usize, Happening)>,
    armed: Vec<Time>,
    count: u64,
    egress: Vec<Time>,
    ingress: Vec<Time>,
    /// Messages of this host are given up.
    dead: Option<usize>,
}

impl Net {
    fn new(job: Job) -> Self {
        let players: Vec<Player> =
            Arc::new(job).players().into_iter().map(|(_, player)| player).collect();
        let count = players.len();
        Self {
            players,
            ids: vec![MsgId(0); count],
            reports: Vec::new(),
            now: Time::ZERO,
            queue: BTreeMap::new(),
            armed: vec![Time::NEVER; count],
            count: 0,
            egress: vec![Time::ZERO; count],
            ingress: vec![Time::ZERO; count],
            dead: None,
        }
    }

    fn at(&mut self, at: Time, host: usize, what: Happening) {
        self.queue.insert((at, self.count), (host, what));
        self.count += 1;
    }

    fn call(&mut self, host: usize, call: impl FnOnce(&mut Player, &mut AppCx<'_>)) {
        let (mut fx, me) = (Vec::new(), HostId(host as u32));
        let draw = Draw::new(1, Purpose::new("app"), host as u64);
        let (now, next_id) = (self.now, &mut self.ids[host]);
        let mut cx = AppCx { now, me, draw, received: 0, next_id, fx: &mut fx };
        call(&mut self.players[host], &mut cx);
        for effect in fx {
            match effect {
                AppEffect::Arm { at, .. } => {
                    self.armed[host] = at;
                    self.at(at, host, Happening::Timer);
                }
                AppEffect::Submit { msg, token, .. } => self.submit(host, msg, token),
                AppEffect::Job(report) => self.reports.push(report),
                AppEffect::Signal { to, token, after, tag } => {
                    assert!(Some(after) >= self.players[host].signal_delay());
                    let signal = AppEvent::Signal { from: me, tag, token };
                    self.at(now + after, to.index(), Happening::Event(signal));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn submit(&mut self, host: usize, msg: Msg, token: u64) {
        let key = MsgKey { src: HostId(host as u32), id: msg.id };
        if self.dead == Some(host) {
            let failed = AppEvent::Failed(key, FailReason::TimedOut);
            return self.at(self.now + LATENCY, host, Happening::Event(failed));
        }
        let (time, to) = (RATE.serialise(msg.len), msg.dst.index());
        let begins = self.now.max(self.egress[host]);
        self.egress[host] = begins + time;
        self.at(begins + LATENCY, to, Happening::AtPort(key, msg.len, token));
    }

    fn arrive(&mut self, to: usize, key: MsgKey, len: u64, token: u64) {
        let arrives = self.now.max(self.ingress[to]) + RATE.serialise(len);
        self.ingress[to] = arrives;
        let delivered = AppEvent::Delivered { key, len, tag: 0, token };
        self.at(arrives, to, Happening::Event(delivered));
        let acked = Happening::Event(AppEvent::Acked(key.id));
        self.at(arrives + LATENCY, key.src.index(), acked);
    }

    fn run(&mut self) {
        for host in 0..self.players.len() {
            self.call(host, Player::on_start);
        }
        while let Some(((at, _), (host, what))) = self.queue.pop_first() {
            self.now = at;
            match what {
                Happening::Timer if self.armed[host] == at => {
                    self.armed[host] = Time::NEVER;
                    self.call(host, |player, cx| player.on_timer(cx, AGENDA));
                }
                Happening::Timer => {}
                Happening::AtPort(key, len, token) => self.arrive(host, key, len, token),
                Happening::Event(event) => {
                    let is_ack = matches!(event, AppEvent::Acked(_));
                    assert!(!is_ack || self.players[host].more_to_come(), "the run could end");
                    self.call(host, |player, cx| player.on_event(cx, event));
                }
            }
        }
        assert!(self.players.iter().all(|player| !player.more_to_come()));
        for host in 0..self.players.len() {
            self.call(host, Player::on_end);
        }
    }

    /// What was reported of `what`.
    fn of(&self, what: What) -> Vec<Report> {
        let is = |report: &&Report| report.work.unwrap().what == what.encode();
        self.reports.iter().filter(is).copied().collect()
    }
}

const CONFIG: Config = Config {
    start: Time::ZERO,
    choice: Choice::Fixed(Algorithm::Ring),
    cut: Cut::WHOLE,
    scale_up: ScaleUp { rate: NVLINK, latency: HOP },
    straggler: Straggler { share: 0.0, excess: 0.0, exponential: false },
    channel: 0,
    prio: 0,
    tell_tasks: false,
};

fn placed(job: Builder, per_host: u32, config: Config) -> Net {
    Net::new(of_nodes(job, (per_host, 1), config))
}

/// With `per_host` ranks on each of the `nics` hosts of a node.
fn of_nodes(job: Builder, (per_host, nics): (u32, u32), config: Config) -> Job {
    let hosts: Vec<HostId> = (0..64).map(HostId).collect();
    let placement = Placement::packed(job.ranks(), &hosts, per_host).unwrap().with_nics(nics);
    Job::new(job.finish().unwrap(), placement, config).unwrap()
}

/// A job of one collective.
fn alone(ranks: u32, op: Op, bytes: u64) -> Builder {
    let mut job = Builder::new(ranks).unwrap();
    let group = job.everyone().unwrap();
    for rank in (0..ranks).map(Rank) {
        job.add(rank, Task::new(Kind::Collective { group, op, bytes })).unwrap();
    }
    job
}

/// How long one collective takes, with `per_host` ranks on each host.
fn time(ranks: u32, per_host: u32, op: Op, bytes: u64, algorithm: Algorithm, cut: Cut) -> Dur {
    let config = Config { choice: Choice::Fixed(algorithm), cut, ..CONFIG };
    let mut net = placed(alone(ranks, op, bytes), per_host, config);
    net.run();
    let done = net.of(What::Collective { id: InstanceId(0), task: 0 });
    assert_eq!(done.len(), ranks as usize);
    assert!(done.iter().all(|report| report.completed && report.bytes == bytes));
    let end = done.iter().map(|report| report.end).max().unwrap();
    end.since(Time::ZERO)
}

/// `times` messages of `bytes`, one after the other, each waiting for the one before.
fn hops(times: u64, bytes: u64) -> Dur {
    (RATE.serialise(bytes) + LATENCY) * times
}

#[test]
fn a_ring_takes_what_its_form_says() {
    for n in [2_u32, 3, 5, 8, 16] {
        let (part, steps) = (1_000_000, u64::from(n - 1));
        let bytes = part * u64::from(n);
        let ring = |op| time(n, 1, op, bytes, Algorithm::Ring, Cut::WHOLE);
        assert_eq!(ring(Op::AllReduce), hops(2 * steps, part));
        assert_eq!(ring(Op::AllGather), hops(steps, part));
        assert_eq!(ring(Op::ReduceScatter), hops(steps, part));
    }
}

#[test]
fn the_others_take_what_their_forms_say() {
    let bytes = 1 << 20;
    for levels in 1..=5_u64 {
        let n = 1_u32 << levels;
        let halving = (1..=levels).fold(Dur::ZERO, |all, k| all + hops(1, bytes >> k));
        let of = |op, algorithm| time(n, 1, op, bytes, algorithm, Cut::WHOLE);
        assert_eq!(of(Op::AllReduce, Algorithm::HalvingDoubling), halving * 2);
        assert_eq!(of(Op::AllGather, Algorithm::HalvingDoubling), halving);
        // In each turn every host sends to one and receives from one.
        let turns = RATE.serialise(bytes / u64::from(n)) * u64::from(n - 1) + LATENCY;
        assert_eq!(of(Op::AllToAll, Algorithm::Direct), turns);
        assert_eq!(of(Op::AllReduce, Algorithm::Direct), turns * 2);
        assert_eq!(of(Op::Barrier, Algorithm::Ring), hops(levels, 1));
    }
    // A message of nothing is carried as one byte.
    assert_eq!(time(5, 1, Op::Barrier, 0, Algorithm::Ring, Cut::WHOLE), hops(3, 1));
}

#[test]
fn chunks_make_a_pipeline() {
    let (chunk, chunks, n) = (100_000, 8, 6_u32);
    let cut = Cut { chunk, in_flight: 4, ..Cut::WHOLE };
    let op = Op::Broadcast { root: Rank(2) };
    let chain = time(n, 1, op, chunk * chunks, Algorithm::Ring, cut);
    // The last member has all; the root waits for the last acknowledgement of the next one, which
    // comes earlier.
    assert_eq!(chain, hops(u64::from(n - 1), chunk) + RATE.serialise(chunk) * (chunks - 1));
    // A node of a double tree sends twice the vector at most. Pipes up and down fill one after the
    // other, so it takes longer than that, and less than level by level.
    let bytes = 64 << 20;
    let tree = |cut| time(16, 1, Op::AllReduce, bytes, Algorithm::Tree, cut);
    let cut = Cut { chunk: 256 << 10, in_flight: 8, channels: 1 };
    let piped = tree(cut).as_us_f64() / (RATE.serialise(bytes) * 2).as_us_f64();
    assert!((1.0..1.85).contains(&piped), "{piped}");
    assert!(tree(Cut::WHOLE) > tree(cut));
}

#[test]
fn ranks_of_a_host_use_the_scale_up_domain() {
    let bytes = 8_000_000;
    let inside = time(8, 8, Op::AllReduce, bytes, Algorithm::Ring, Cut::WHOLE);
    assert_eq!(inside, (NVLINK.serialise(bytes / 8) + HOP) * 14);
    // Two levels of four: what goes between hosts is a quarter for each rank, and the link of the
    // host carries that of four ranks.
    let levels = time(16, 4, Op::AllReduce, bytes, Algorithm::Hierarchical, Cut::WHOLE);
    let up = (NVLINK.serialise(bytes / 4) + HOP) * 6;
    let across = (RATE.serialise(bytes / 16) * 4 + LATENCY) * 6;
    assert!(levels > up && levels <= up + across, "{levels} {up} {across}");
    // At least what the link has to carry.
    assert!(levels >= up + RATE.serialise(bytes * 6 / 4), "{levels}");
}

/// Hosts that are NICs of one node: what stays within it crosses its switch, and what leaves it has
/// a link for each rank.
#[test]
fn ranks_of_a_node_with_several_nics_use_the_scale_up_domain() {
    let bytes = 8_000_000;
    let time = |ranks, op, algorithm| {
        let config = Config { choice: Choice::Fixed(algorithm), ..CONFIG };
        let mut net = Net::new(of_nodes(alone(ranks, op, bytes), (1, 4), config));
        net.run();
        let done = net.of(What::Collective { id: InstanceId(0), task: 0 });
        assert_eq!(done.len(), ranks as usize);
        done.iter().map(|report| report.end).max().unwrap().since(Time::ZERO)
    };
    let inside = NVLINK.serialise(bytes / 4) + HOP;
    assert_eq!(time(4, Op::AllReduce, Algorithm::Ring), inside * 6);
    let levels = time(16, Op::AllReduce, Algorithm::Hierarchical);
    assert_eq!(levels, inside * 6 + hops(6, bytes / 16));
    // A rank sends over its link to the four of the other node, all of a node in the same order:
    // the last of these gets its first message after three others, and then four at once.
    let exchange = time(8, Op::AllToAll, Algorithm::Direct);
    assert_eq!(exchange, RATE.serialise(bytes / 8) * 7 + LATENCY);

    // Single messages, and their acknowledgements.
    let mut net = Net::new(of_nodes(pipeline(1), (1, 2), CONFIG));
    net.run();
    let ends: Vec<Time> = net.of(What::Step).iter().map(|report| report.end).collect();
    let there = Time::ZERO + Dur::from_us(10) + NVLINK.serialise(50_000) + HOP;
    assert_eq!(ends, [there + HOP, there + Dur::from_us(3)]);
}

#[test]
fn a_slow_gpu_computes_longer_from_its_time_on() {
    let job = of_nodes(pipeline(2), (1, 1), CONFIG);
    let slow = |rank, from, until, millionths| crate::Slowdown {
        rank: Rank(rank),
        from: Time::ZERO + Dur::from_us(from),
        until: Time::ZERO + Dur::from_us(until),
        millionths,
    };
    // Rank 0 has done 6 of its first 10 us; the other 4 take 12.
    let mut net = Net::new(job.with_slowdowns(vec![slow(0, 6, 18, 3_000_000)]));
    net.run();
    let computed = |rank: u32, step: u32| {
        let is = |r: &&Report| r.work.is_some_and(|w| (w.rank, w.step) == (rank, step));
        net.of(What::Step).iter().find(is).unwrap().work.unwrap().computed
    };
    let us = Dur::from_us;
    assert_eq!([computed(0, 0), computed(0, 1)], [us(18), us(10)]);
    assert_eq!([computed(1, 0), computed(1, 1)], [us(7), us(7)]);
    let longest = |slowdowns| of_nodes(pipeline(2), (1, 1), CONFIG).with_slowdowns(slowdowns);
    assert_eq!(longest(vec![]).longest_work(), us(23), "two steps of 10 us, and 3 at the end");
    assert_eq!(longest(vec![slow(1, 0, 99, 2_000_000)]).longest_work(), us(46));
}

#[test]
fn a_host_can_have_as_many_ranks_as_it_may() {
    let ranks = crate::placement::RANKS_PER_HOST_MAX as u32;
    let time = time(ranks, ranks, Op::Barrier, 0, Algorithm::Ring, Cut::WHOLE);
    assert_eq!(time, HOP * 8, "nothing is carried eight times");
}

/// Rank 0 computes 10 us and sends; rank 1 computes 4 us meanwhile, and 3 us with what it got.
fn pipeline(steps: u32) -> Builder {
    let mut job = Builder::new(2).unwrap();
    let work = |us| Kind::Compute { dur: Dur::from_us(us), stream: 0 };
    let mut last: [Option<TaskId>; 2] = [None; 2];
    for step in 0..steps {
        let task = |kind| Task { kind, step, label: None };
        let first = job.add(Rank(0), task(work(10))).unwrap();
        let send = Kind::Send { to: Rank(1), bytes: 50_000, tag: 3 };
        let send = job.add(Rank(0), task(send)).unwrap();
        let own = job.add(Rank(1), task(work(4))).unwrap();
        let recv = Kind::Recv { from: Rank(0), bytes: 50_000, tag: 3 };
        let recv = job.add(Rank(1), task(recv)).unwrap();
        let after = job.add(Rank(1), task(work(3))).unwrap();
        for (task, pred) in [(send, first), (after, own), (after, recv)] {
            job.after(task, pred).unwrap();
        }
        for (rank, tasks) in [(0, vec![first]), (1, vec![own, recv])] {
            for task in tasks {
                last[rank].into_iter().for_each(|last| job.after(task, last).unwrap());
            }
        }
        last = [Some(send), Some(after)];
    }
    job
}

#[test]
fn steps_have_times_and_exposed_communication() {
    let mut net = placed(pipeline(2), 1, CONFIG);
    net.run();
    let steps = net.of(What::Step);
    let message = RATE.serialise(50_000) + LATENCY;
    let us = Dur::from_us;
    let end = |rank, step| {
        let is = |r: &&Report| r.work.is_some_and(|w| (w.rank, w.step) == (rank, step));
        *steps.iter().find(is).unwrap()
    };
    assert_eq!((steps.len(), net.reports.len()), (4, 4), "and no rank waits");
    let first = end(0, 0);
    assert_eq!(first.end, Time::ZERO + us(10) + message + LATENCY, "until it is acknowledged");
    assert_eq!((first.bytes, first.work.unwrap().computed), (50_000, us(10)));
    let second = end(1, 0);
    assert_eq!(second.end, Time::ZERO + us(10) + message + us(3));
    assert_eq!((second.bytes, second.work.unwrap().computed), (0, us(7)));
    assert_eq!(end(0, 1).start, first.end);
    assert!(end(1, 1).start == second.end && end(1, 1).end > end(0, 1).end);
}

#[test]
fn a_stream_does_one_thing_at_a_time() {
    let mut job = Builder::new(1).unwrap();
    for (us, stream) in [(5, 0), (7, 0), (9, 1)] {
        let work = Kind::Compute { dur: Dur::from_us(us), stream };
        job.add(Rank(0), Task::new(work)).unwrap();
    }
    let mut net = placed(job, 1, CONFIG);
    net.run();
    let [step] = net.of(What::Step)[..] else { panic!("{:?}", net.reports) };
    assert_eq!((step.end, step.work.unwrap().computed), (Time(12_000_000), Dur::from_us(12)));
}

#[test]
fn stragglers_take_longer_and_are_drawn() {
    let times = |share, exponential| -> Vec<Dur> {
        let mut job = Builder::new(1).unwrap();
        for stream in 0..200 {
            let work = Kind::Compute { dur: Dur::from_us(10), stream };
            let task = Task { step: stream.into(), ..Task::new(work) };
            job.add(Rank(0), task).unwrap();
        }
        let straggler = Straggler { share, excess: 0.5, exponential };
        let mut net = placed(job, 1, Config { straggler, ..CONFIG });
        net.run();
        net.of(What::Step).iter().map(|r| r.end.since(r.start)).collect()
    };
    // The mean of 200 draws around 15 us, whose deviation is 5: 0.35 us, here four times that.
    let drawn = times(1.0, true);
    let mean = drawn.iter().map(|time| time.as_us_f64()).sum::<f64>() / 200.0;
    assert!((13.6..16.4).contains(&mean), "{mean}");
    assert!(drawn.iter().all(|time| *time >= Dur::from_us(10)), "{drawn:?}");
    // exp(-2) of an exponential distribution is above twice its mean: 27 of 200, deviation 5.
    let long = drawn.iter().filter(|time| **time > Dur::from_us(20)).count();
    assert!((8..48).contains(&long), "{long}");
    let times = times(0.25, false);
    let slow = times.iter().filter(|time| **time == Dur::from_us(15)).count();
    assert!((30..70).contains(&slow), "{slow} of 200");
    assert_eq!(slow + times.iter().filter(|time| **time == Dur::from_us(10)).count(), 200);
}

#[test]
fn a_job_begins_at_its_time() {
    let start = Time(5_000_000);
    let mut net = placed(pipeline(1), 1, Config { start, ..CONFIG });
    net.run();
    assert!(net.of(What::Step).iter().all(|report| report.start == start));
}

#[test]
fn a_job_that_cannot_go_on_says_who_waits_for_whom() {
    let mut net = placed(pipeline(3), 1, CONFIG);
    net.dead = Some(0);
    net.run();
    let last: Vec<(bool, What)> =
        net.reports.iter().map(|r| (r.completed, What::decode(r.work.unwrap().what))).collect();
    let lost = What::Waits { task: 1, peer: Rank(1), wait: Wait::Lost };
    let waits = What::Waits { task: 1, peer: Rank(0), wait: Wait::Message };
    let expected = [(false, What::Step), (false, lost), (false, What::Step), (false, waits)];
    assert_eq!(last, expected);
    // A collective: the member before the dead one has its sends, all others wait for it or for
    // those who wait.
    let mut net = placed(alone(4, Op::AllReduce, 4_000), 1, CONFIG);
    net.dead = Some(2);
    net.run();
    let waits: Vec<(u32, What)> = net
        .reports
        .iter()
        .filter_map(|report| {
            let work = report.work.unwrap();
            let what = What::decode(work.what);
            matches!(what, What::Waits { .. }).then_some((work.rank, what))
        })
        .collect();
    let wait = |peer, wait| What::Waits { task: 0, peer: Rank(peer), wait };
    let expected = [3, 0, 3, 2].map(|peer| wait(peer, Wait::Message));
    assert_eq!(waits[0], (0, expected[0]));
    assert_eq!(waits[2], (2, wait(3, Wait::Lost)));
    assert_eq!(waits[3], (3, expected[3]));
}

#[test]
fn codes_say_what_was_said() {
    let waits = |wait| What::Waits { task: u32::MAX, peer: Rank(Builder::RANKS_MAX), wait };
    let all = [
        What::Step,
        What::Task { task: u32::MAX },
        What::Collective { id: InstanceId(token::INSTANCES_MAX - 1), task: u32::MAX },
    ];
    for what in all.into_iter().chain(Wait::ALL.map(waits)) {
        assert_eq!(What::decode(what.encode()), what);
    }
}

const OPS: [Op; 6] = [
    Op::AllReduce,
    Op::AllGather,
    Op::ReduceScatter,
    Op::AllToAll,
    Op::Broadcast { root: Rank(0) },
    Op::Barrier,
];

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(vec![Algorithm::Ring, Algorithm::Tree, Algorithm::Direct])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the job: all of it ends, and every byte that is sent arrives.
    #[test]
    fn drawn_jobs_end(
        ranks in 2_u32..9,
        (per_host, nics) in (1_u32..4, 1_u32..4),
        algorithm in algorithm(),
        (channels, chunk, in_flight) in (1_u32..4, 500_u64..5_000, 1_u32..4),
        ops in prop::collection::vec((0_usize..6, 0_u64..20_000, any::<bool>()), 1..8),
    ) {
        let mut job = Builder::new(ranks).unwrap();
        let group = job.everyone().unwrap();
        let mut last: Vec<Option<TaskId>> = vec![None; ranks as usize];
        for (step, (op, bytes, waits)) in (0..).zip(ops.iter().copied()) {
            let (op, bytes) = (OPS[op], if OPS[op] == Op::Barrier { 0 } else { bytes });
            for rank in 0..ranks {
                let kind = Kind::Collective { group, op, bytes };
                let task = job.add(Rank(rank), Task { kind, step, label: None }).unwrap();
                if let (true, Some(last)) = (waits, last[rank as usize]) {
                    job.after(task, last).unwrap();
                }
                last[rank as usize] = Some(task);
            }
        }
        let cut = Cut { channels, chunk, in_flight };
        let config = Config { choice: Choice::Fixed(algorithm), cut, ..CONFIG };
        let mut net = Net::new(of_nodes(job, (per_host, nics), config));
        net.run();
        prop_assert!(net.reports.iter().all(|report| report.completed), "{:?}", net.reports);
        prop_assert_eq!(net.reports.len(), ops.len() * ranks as usize * 2);
    }
}

/// Two pieces of work on one stream, and one on another that waits for the start of the second:
/// that is when the stream takes it up, not when it could be.
#[test]
fn work_starts_when_its_stream_takes_it_up() {
    let mut job = Builder::new(1).unwrap();
    let work = |us, stream| Task::new(Kind::Compute { dur: Dur::from_us(us), stream });
    job.add(Rank(0), work(10, 0)).unwrap();
    let second = job.add(Rank(0), work(5, 0)).unwrap();
    let after = job.add(Rank(0), work(20, 1)).unwrap();
    job.after_start(after, second).unwrap();
    let mut net = placed(job, 1, CONFIG);
    net.run();
    let step = net.of(What::Step)[0];
    assert_eq!(step.end, Time::ZERO + Dur::from_us(30));
    assert_eq!(step.work.unwrap().computed, Dur::from_us(30));
}

/// The spans of all tasks of `net`, as its ranks told them.
fn spans(net: &Net) -> crate::Spans {
    let job = &net.players[0].job;
    let ranks = (0..job.graph().ranks()).map(Rank);
    let mut spans: crate::Spans =
        ranks.map(|rank| vec![None; job.graph().tasks(rank).len()]).collect();
    for report in &net.reports {
        let work = report.work.unwrap();
        if let What::Task { task } | What::Collective { task, .. } = What::decode(work.what) {
            let span = crate::Span { start: report.start, end: report.end };
            spans[work.rank as usize][task as usize] = Some(span);
        }
    }
    spans
}

#[test]
fn a_critical_path_goes_back_over_messages_and_late_ranks() {
    use crate::critical::{Because, Critical, Piece};
    let config = Config { tell_tasks: true, ..CONFIG };
    let mut net = placed(pipeline(1), 1, config);
    net.run();
    let (spans, job) = (spans(&net), Arc::clone(&net.players[0].job));
    let path = Critical::new(&job, &spans).of_step(0, Time::ZERO);
    let ends: Vec<(u32, Time, Time, Because)> =
        path.iter().map(|p| (p.task.rank.0, p.start, p.end, p.because)).collect();
    let message = RATE.serialise(50_000) + LATENCY;
    let at = |us: u64| Time::ZERO + Dur::from_us(us);
    // Rank 1 works 4 us and then waits for the message; the 3 us after it end last.
    let expected = [
        (0, at(0), at(10), Because::Work),
        (1, at(10), at(10) + message, Because::Message { from: Rank(0) }),
        (1, at(10) + message, at(13) + message, Because::Work),
    ];
    assert_eq!(ends, expected);

    // Ranks that work for 5, 9 and 7 us meet; then one works on.
    let mut job = Builder::new(3).unwrap();
    let group = job.everyone().unwrap();
    for (rank, us) in [(0, 5), (1, 9), (2, 7)] {
        let work = |us| Task::new(Kind::Compute { dur: Dur::from_us(us), stream: 0 });
        let before = job.add(Rank(rank), work(us)).unwrap();
        let meet = Task::new(Kind::Collective { group, op: Op::Barrier, bytes: 0 });
        let meet = job.add(Rank(rank), meet).unwrap();
        job.after(meet, before).unwrap();
        if rank == 2 {
            let after = job.add(Rank(2), work(11)).unwrap();
            job.after(after, meet).unwrap();
        }
    }
    let mut net = placed(job, 1, config);
    net.run();
    let (spans, job) = (self::spans(&net), Arc::clone(&net.players[0].job));
    let path = Critical::new(&job, &spans).of_step(0, Time::ZERO);
    let whole = path.windows(2).all(|pair| pair[0].end == pair[1].start);
    assert!(whole && path[0].start == Time::ZERO, "{path:?}");
    let [Piece { task, end, .. }, meet, last] = path[..] else { panic!("{path:?}") };
    assert_eq!(
        (task.rank, end, meet.because),
        (Rank(1), at(9), Because::Collective { last: Rank(1) })
    );
    assert_eq!((last.task.rank, last.end.since(last.start)), (Rank(2), Dur::from_us(11)));
    assert!(Critical::new(&job, &spans).of_step(7, Time::ZERO).is_empty(), "no such step");
}

/// What begins with another's start did not wait for its end.
#[test]
fn a_critical_path_has_no_more_of_a_task_than_was_waited_for() {
    use crate::critical::Critical;
    let mut job = Builder::new(1).unwrap();
    let work = |us, stream| Task::new(Kind::Compute { dur: Dur::from_us(us), stream });
    let first = job.add(Rank(0), work(4, 0)).unwrap();
    let second = job.add(Rank(0), work(6, 0)).unwrap();
    let beside = job.add(Rank(0), work(11, 1)).unwrap();
    job.after(second, first).unwrap();
    job.after_start(beside, second).unwrap();
    let mut net = placed(job, 1, Config { tell_tasks: true, ..CONFIG });
    net.run();
    let (spans, job) = (spans(&net), Arc::clone(&net.players[0].job));
    let path = Critical::new(&job, &spans).of_step(0, Time::ZERO);
    let ends: Vec<(u32, Dur, Dur)> = path
        .iter()
        .map(|p| (p.task.index, p.start.since(Time::ZERO), p.end.since(Time::ZERO)))
        .collect();
    let us = Dur::from_us;
    assert_eq!(ends, [(first.index, us(0), us(4)), (beside.index, us(4), us(15))]);
}

/// A rank that comes late to a broadcast holds nobody else up.
#[test]
fn a_critical_path_of_a_broadcast_goes_back_to_its_root() {
    use crate::critical::Critical;
    let mut job = Builder::new(3).unwrap();
    let group = job.everyone().unwrap();
    for (rank, us) in [(0, 2), (1, 1), (2, 3)] {
        let dur = Dur::from_us(us);
        let work = job.add(Rank(rank), Task::new(Kind::Compute { dur, stream: 0 })).unwrap();
        let op = Op::Broadcast { root: Rank(0) };
        let cast = Task::new(Kind::Collective { group, op, bytes: 5_000_000 });
        let cast = job.add(Rank(rank), cast).unwrap();
        job.after(cast, work).unwrap();
    }
    let mut net = placed(job, 1, Config { tell_tasks: true, ..CONFIG });
    net.run();
    let (spans, job) = (spans(&net), Arc::clone(&net.players[0].job));
    let path = Critical::new(&job, &spans).of_step(0, Time::ZERO);
    let ends: Vec<(Rank, Dur)> =
        path.iter().map(|p| (p.task.rank, p.start.since(Time::ZERO))).collect();
    assert_eq!(ends[0], (Rank(0), Dur::ZERO), "{path:?}");
    assert_eq!((path.len(), ends[1].1), (2, Dur::from_us(2)), "{path:?}");
}
