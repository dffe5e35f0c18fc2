//! Partition and aggregate: a query fans out from a root over aggregators to workers, and the
//! answers come back the same way. Every node that waits has a deadline, at which it goes on with
//! what it has: what comes later is ignored, and the quality of the answer suffers. Alizadeh et
//! al., DCTCP, SIGCOMM'10, section 2.1.
//!
//! Requests and answers are messages over the network. A deadline counts from the moment at which
//! the node got its request, a root's from its query. Answers that are late go on using the
//! network: their senders are not told, as in the systems that the paper describes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use endpoint::{App, AppCx, AppEvent, Draw, Job, Msg, Purpose};
use units::{Dur, HostId, Time, TimerId};

use crate::{Gap, SizeDist, arrivals};

const ARRIVAL: Purpose = Purpose::new("partition-aggregate: arrival");
const CHILD: Purpose = Purpose::new("partition-aggregate: child");
const COMPUTE: Purpose = Purpose::new("partition-aggregate: compute");
const SIZE: Purpose = Purpose::new("partition-aggregate: size");

/// The root's next query.
const QUERY: TimerId = TimerId(0);
/// The first of the deadlines and computations.
const DUE: TimerId = TimerId(1);

/// More workers than this are refused: their numbers have a place of 27 bits in a request.
pub const WORKERS_MAX: u64 = 1 << 27;
/// The most levels below the root.
pub const LEVELS_MAX: usize = 8;

/// What all hosts of a partition-aggregate workload have in common.
#[derive(Clone, Debug)]
pub struct QuerySpec {
    /// Who asks.
    pub roots: Vec<HostId>,
    /// Who can be an aggregator; nobody needs to be if `fanout` has one level.
    pub aggregators: Vec<HostId>,
    /// Who can be a worker.
    pub workers: Vec<HostId>,
    /// How many nodes each node asks, the root first. The product is the workers of a query, at
    /// most [`WORKERS_MAX`], on at most [`LEVELS_MAX`] levels.
    pub fanout: Vec<u32>,
    /// How long each node waits for answers, the root first: as many as `fanout`.
    pub deadlines: Vec<Dur>,
    /// Which hosts a node asks.
    pub placement: Placement,
    /// The size of every request.
    pub request: u64,
    /// The size of a worker's answer.
    pub answer: SizeDist,
    /// What an aggregator answers.
    pub aggregate: Aggregate,
    /// How long a worker takes for its answer.
    pub compute: Gap,
    /// When a root asks.
    pub arrivals: Arrivals,
    /// No query before this, ...
    pub start: Time,
    /// ... and none at or after this.
    pub until: Time,
    /// Each root asks so many queries at most.
    pub queries: u64,
    /// As in [`BarrierSpec`](crate::BarrierSpec).
    pub channel: u32,
    /// See [`Msg::prio`].
    pub prio: u8,
}

/// Which of the hosts that could do it a node asks. Never itself, none twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Drawn by each node for each query.
    #[default]
    Drawn,
    /// The nodes of a level take the hosts in turn, in every query the same.
    InOrder,
}

/// The size of an aggregator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// That of a worker's answer: the best few of many results.
    Fixed,
    /// All that it holds; one byte if it holds nothing.
    Proportional,
}

/// When a root asks, or a client calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// So long after the end of the query or call before, or after the start.
    Closed(Gap),
    /// At random instants, whatever is in flight: exponential gaps of this mean, in picoseconds.
    Poisson(f64),
}

impl QuerySpec {
    /// The workers of a query.
    #[must_use]
    pub fn results(&self) -> u64 {
        self.fanout.iter().map(|&n| u64::from(n)).product()
    }

    /// The longest answer that a worker or an aggregator may give, bytes.
    #[must_use]
    pub fn longest_answer(&self) -> u64 {
        let below_root = self.fanout.iter().skip(1).map(|&n| u64::from(n)).product();
        match self.aggregate {
            Aggregate::Fixed => self.answer.largest(),
            Aggregate::Proportional => self.answer.largest().saturating_mul(below_root),
        }
    }

    /// Whether it ends without being stopped.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.until != Time::NEVER || self.queries != u64::MAX
    }

    /// All hosts that take part, each with its application.
    #[must_use]
    pub fn apps(self: &Arc<Self>) -> Vec<(HostId, PartitionAggregate)> {
        let Self { roots, aggregators, workers, .. } = &**self;
        let hosts: BTreeSet<HostId> =
            roots.iter().chain(aggregators).chain(workers).copied().collect();
        let app = |host| (host, PartitionAggregate::new(Arc::clone(self), roots.contains(&host)));
        hosts.into_iter().map(app).collect()
    }

    /// Whom the `index`-th node of `level`, host `me`, asks.
    fn children(&self, me: HostId, level: usize, index: u64, draw: Draw) -> Vec<HostId> {
        let last = level + 1 == self.fanout.len();
        let hosts = if last { &self.workers } else { &self.aggregators };
        let mut hosts: Vec<HostId> = hosts.iter().copied().filter(|&host| host != me).collect();
        let count = self.fanout.get(level).map_or(0, |&n| n as usize).min(hosts.len());
        match self.placement {
            Placement::Drawn => draw.shuffle(CHILD, 0, &mut hosts),
            Placement::InOrder => {
                let first = index * count as u64 % (hosts.len() as u64).max(1);
                hosts.rotate_left(first as usize);
            }
        }
        hosts.truncate(count);
        hosts
    }
}

/// What a message says. As a token: 32 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// To the `index`-th node of `level`: work for `task` of the sender. The highest bit is 0.
    Request { level: usize, index: u64, task: u32 },
    /// So many results for `task` of the receiver.
    Answer { results: u64, task: u32 },
}

impl Said {
    const ANSWER: u64 = 1 << 63;
    const LEVEL: u32 = 59;
    const TASK: u32 = 32;

    fn token(self) -> u64 {
        match self {
            Self::Request { level, index, task } => {
                (level as u64) << Self::LEVEL | index << Self::TASK | u64::from(task)
            }
            Self::Answer { results, task } => {
                Self::ANSWER | results << Self::TASK | u64::from(task)
            }
        }
    }

    fn of(token: u64) -> Self {
        let (above, task) = ((token & !Self::ANSWER) >> Self::TASK, token as u32);
        if token & Self::ANSWER != 0 {
            return Self::Answer { results: above, task };
        }
        let level = (token >> Self::LEVEL) as usize;
        Self::Request { level, index: above & (WORKERS_MAX - 1), task }
    }
}

/// Who waits for a node's answer: a host and its task.
type Parent = (HostId, u32);

/// What a node is doing.
#[derive(Debug)]
enum Task {
    /// It waits for answers.
    Gather(Gather),
    /// It works out its own.
    Compute(Parent),
}

#[derive(Debug)]
struct Gather {
    /// `None`: it is the root of a query.
    parent: Option<Parent>,
    start: Time,
    /// What had arrived at the host before, bytes on the wire.
    received_before: u64,
    /// Answers that have not come.
    missing: usize,
    /// What the others hold: results of workers, and payload.
    results: u64,
    bytes: u64,
}

/// One host's part in the workload. It can be root, aggregator and worker, of several queries at
/// once. Made by [`QuerySpec::apps`].
#[derive(Debug)]
pub struct PartitionAggregate {
    spec: Arc<QuerySpec>,
    is_root: bool,
    /// Its own queries so far.
    asked: u64,
    /// Its own queries in flight.
    open: u32,
    /// When it asks the next time; never, if that is not known yet, or will not be.
    next: Time,
    /// Tasks so far: the name of the next.
    begun: u32,
    /// Answers of its own so far: the number of its next draws.
    answered: u64,
    /// What it is doing, and when that ends if nothing else ends it.
    tasks: BTreeMap<u32, (Time, Task)>,
    /// The same by time.
    due: BTreeSet<(Time, u32)>,
}

impl PartitionAggregate {
    fn new(spec: Arc<QuerySpec>, is_root: bool) -> Self {
        Self {
            spec,
            is_root,
            asked: 0,
            open: 0,
            next: Time::NEVER,
            begun: 0,
            answered: 0,
            tasks: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Ask again, some time after `from`; not at all if that is too late.
    fn pause(&mut self, cx: &mut AppCx<'_>, from: Time) {
        let unit = || cx.draw.unit(ARRIVAL, self.asked);
        let gap = match self.spec.arrivals {
            Arrivals::Closed(gap) => gap.length(unit),
            Arrivals::Poisson(mean) => arrivals::exponential(mean, unit()),
        };
        let at = from.saturating_add(gap);
        let asks = at < self.spec.until && self.asked < self.spec.queries;
        self.next = if asks { at } else { Time::NEVER };
        cx.arm(QUERY, self.next);
    }

    fn query(&mut self, cx: &mut AppCx<'_>) {
        self.asked += 1;
        self.open += 1;
        self.next = Time::NEVER;
        self.gather(cx, None, 0, 0);
        if let Arrivals::Poisson(_) = self.spec.arrivals {
            self.pause(cx, cx.now);
        }
    }

    fn begin(&mut self, task: Task, until: Time) -> u32 {
        let id = self.begun;
        self.begun = self.begun.wrapping_add(1);
        self.tasks.insert(id, (until, task));
        self.due.insert((until, id));
        id
    }

    /// Ask the nodes below, as the `index`-th of `level`.
    fn gather(&mut self, cx: &mut AppCx<'_>, parent: Option<Parent>, level: usize, index: u64) {
        let spec = Arc::clone(&self.spec);
        let Some(&deadline) = spec.deadlines.get(level) else { return };
        let draw = cx.draw.part(u64::from(self.begun));
        let children = spec.children(cx.me, level, index, draw);
        let gather = Gather {
            parent,
            start: cx.now,
            received_before: cx.received,
            missing: children.len(),
            results: 0,
            bytes: 0,
        };
        let task = self.begin(Task::Gather(gather), cx.now.saturating_add(deadline));
        let first = index * children.len() as u64;
        for (index, child) in (first..).zip(children) {
            let said = Said::Request { level: level + 1, index, task };
            self.submit(cx, child, spec.request, said);
        }
    }

    fn submit(&self, cx: &mut AppCx<'_>, dst: HostId, len: u64, said: Said) {
        let QuerySpec { channel, prio, .. } = *self.spec;
        cx.submit_saying(Msg { channel, prio, ..Msg::new(dst, len) }, said.token());
    }

    fn hear(&mut self, cx: &mut AppCx<'_>, from: HostId, len: u64, said: Said) {
        match said {
            Said::Request { level, index, task } if level < self.spec.fanout.len() => {
                self.gather(cx, Some((from, task)), level, index);
            }
            Said::Request { task, .. } => {
                let unit = || cx.draw.unit(COMPUTE, u64::from(self.begun));
                let time = self.spec.compute.length(unit);
                let task = self.begin(Task::Compute((from, task)), cx.now.saturating_add(time));
                if time == Dur::ZERO {
                    self.end(cx, task);
                }
            }
            Said::Answer { results, task } => {
                // Of a task that is over, it is late.
                let Some((_, Task::Gather(gather))) = self.tasks.get_mut(&task) else { return };
                gather.results += results;
                gather.bytes += len;
                gather.missing = gather.missing.saturating_sub(1);
                if gather.missing == 0 {
                    self.end(cx, task);
                }
            }
        }
    }

    /// Task `id` is over: it answers with what it has.
    fn end(&mut self, cx: &mut AppCx<'_>, id: u32) {
        let Some((until, task)) = self.tasks.remove(&id) else { return };
        self.due.remove(&(until, id));
        match task {
            Task::Compute(parent) => {
                let len = self.answer_len(cx);
                self.answer(cx, parent, 1, len);
            }
            Task::Gather(gather) => match gather.parent {
                Some(parent) => {
                    let len = match self.spec.aggregate {
                        Aggregate::Fixed => self.answer_len(cx),
                        Aggregate::Proportional => gather.bytes.max(1),
                    };
                    self.answer(cx, parent, gather.results, len);
                }
                None => self.end_query(cx, &gather),
            },
        }
    }

    fn answer_len(&self, cx: &AppCx<'_>) -> u64 {
        self.spec.answer.sample(cx.draw.unit(SIZE, self.answered))
    }

    fn answer(&mut self, cx: &mut AppCx<'_>, (host, task): Parent, results: u64, len: u64) {
        self.answered += 1;
        self.submit(cx, host, len, Said::Answer { results, task });
    }

    fn end_query(&mut self, cx: &mut AppCx<'_>, gather: &Gather) {
        self.open -= 1;
        cx.report(Job {
            tag: 0,
            completed: true,
            start: gather.start,
            end: cx.now,
            bytes: gather.bytes,
            received: cx.received - gather.received_before,
            parts: self.spec.results(),
            in_time: gather.results,
            work: None,
        });
        if let Arrivals::Closed(_) = self.spec.arrivals {
            self.pause(cx, cx.now);
        }
    }

    /// Be called when the first task is due.
    fn watch(&self, cx: &mut AppCx<'_>) {
        cx.arm(DUE, self.due.first().map_or(Time::NEVER, |&(at, _)| at));
    }
}

impl App for PartitionAggregate {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        if self.is_root {
            self.pause(cx, self.spec.start);
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        // A message that fails is an answer that never comes.
        if let AppEvent::Delivered { key, len, token, .. } = event {
            self.hear(cx, key.src, len, Said::of(token));
            self.watch(cx);
        }
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        if id == QUERY {
            self.query(cx);
        }
        while let Some(&(_, task)) = self.due.first().filter(|(at, _)| *at <= cx.now) {
            self.end(cx, task);
        }
        self.watch(cx);
    }

    fn more_to_come(&self) -> bool {
        self.spec.ends_by_itself() && (self.open > 0 || self.next != Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::bench::Bench;

    const US: u64 = 1_000_000;
    /// How long a message takes in the bench.
    const TRANSIT: u64 = 5 * US;

    fn hosts(range: std::ops::Range<u32>) -> Vec<HostId> {
        range.map(HostId).collect()
    }

    /// Host 0 asks two of hosts 1 to 3, each of which asks three of hosts 4 to 12.
    fn spec() -> QuerySpec {
        QuerySpec {
            roots: hosts(0..1),
            aggregators: hosts(1..4),
            workers: hosts(4..13),
            fanout: vec![2, 3],
            deadlines: vec![Dur::from_us(500), Dur::from_us(400)],
            placement: Placement::InOrder,
            request: 100,
            answer: SizeDist::fixed(2_000),
            aggregate: Aggregate::Proportional,
            compute: Gap::Fixed(Dur::from_us(100)),
            arrivals: Arrivals::Closed(Gap::Fixed(Dur::from_us(30))),
            start: Time::ZERO,
            until: Time::NEVER,
            queries: 2,
            channel: 9,
            prio: 1,
        }
    }

    fn bench(spec: QuerySpec) -> Bench<PartitionAggregate> {
        let apps = Arc::new(spec).apps();
        let mut bench = Bench::new(apps.into_iter().map(|(_, app)| app).collect(), 3);
        bench.run();
        assert!(bench.apps.iter().all(|app| app.tasks.is_empty() && app.due.is_empty()));
        assert!(bench.apps.iter().all(|app| !app.more_to_come()));
        bench
    }

    #[test]
    fn a_query_goes_down_and_its_answers_come_up() {
        let bench = bench(spec());
        let start = Time(30 * US);
        let end = start + Dur(4 * TRANSIT + 100 * US);
        let job = Job {
            completed: true,
            start,
            end,
            bytes: 6 * 2_000,
            parts: 6,
            in_time: 6,
            ..Job::default()
        };
        let later = Dur(end.0);
        let second = Job { start: start + later, end: end + later, ..job };
        assert_eq!(bench.jobs, [job, second]);
        let first = bench.submitted.iter().filter(|s| s.at < end);
        let sent: Vec<_> = first.map(|s| (s.at.0 / US, s.src.0, s.msg.dst.0, s.msg.len)).collect();
        let requests = |at, src, to: std::ops::Range<u32>| to.map(move |dst| (at, src, dst, 100));
        let answers =
            |at, from: std::ops::Range<u32>, dst, len| from.map(move |src| (at, src, dst, len));
        let expected: Vec<_> = requests(30, 0, 1..3)
            .chain(requests(35, 1, 4..7))
            .chain(requests(35, 2, 7..10))
            .chain(answers(140, 4..7, 1, 2_000))
            .chain(answers(140, 7..10, 2, 2_000))
            .chain(answers(145, 1..3, 0, 6_000))
            .collect();
        assert_eq!(sent, expected);
        assert!(bench.submitted.iter().all(|s| (s.msg.channel, s.msg.prio) == (9, 1)));
    }

    #[test]
    fn an_aggregator_answers_at_its_deadline_with_what_it_has() {
        // The workers' answers come 110 us after their aggregator has got its request.
        let quality = |us| {
            let deadlines = vec![Dur::from_us(500), Dur::from_us(us)];
            let bench = bench(QuerySpec { deadlines, aggregate: Aggregate::Fixed, ..spec() });
            let job = bench.jobs[0];
            (job.in_time, job.bytes, job.end.since(job.start).0 / US)
        };
        assert_eq!(quality(111), (6, 4_000, 120));
        assert_eq!(quality(109), (0, 4_000, 10 + 109), "late ones do not count");
        // The answer of one that holds nothing has a byte.
        let deadlines = vec![Dur::from_us(500), Dur::from_us(109)];
        assert_eq!(bench(QuerySpec { deadlines, ..spec() }).jobs[0].bytes, 2);
    }

    #[test]
    fn a_root_ends_at_its_deadline() {
        let deadlines = vec![Dur::from_us(119), Dur::from_us(118)];
        let bench = bench(QuerySpec { deadlines, ..spec() });
        let job = bench.jobs[0];
        assert!(job.completed);
        assert_eq!((job.in_time, job.end.since(job.start)), (0, Dur::from_us(119)));
        assert_eq!(bench.jobs.len(), 2, "late answers of the first change nothing in the second");
    }

    #[test]
    fn computations_that_take_too_long_miss_the_deadline() {
        // One level, and no other work: in time is who computes no longer than 200 - 10 us.
        let bench = bench(QuerySpec {
            fanout: vec![9],
            deadlines: vec![Dur::from_us(200)],
            compute: Gap::Exponential(Dur::from_us(100)),
            queries: 2_000,
            ..spec()
        });
        let in_time: u64 = bench.jobs.iter().map(|job| job.in_time).sum();
        let share = in_time as f64 / (9.0 * 2_000.0);
        // 1 - exp(-1.9) = 0.8504; sigma is 0.0027.
        assert!((share - 0.8504).abs() < 0.011, "{share}");
    }

    #[test]
    fn hosts_are_drawn_for_every_query_and_nobody_asks_itself() {
        let all = hosts(0..6);
        let bench = bench(QuerySpec {
            aggregators: all.clone(),
            workers: all,
            placement: Placement::Drawn,
            queries: 200,
            ..spec()
        });
        assert!(bench.jobs.iter().all(|job| job.in_time == 6));
        let mut asked = [0; 6];
        let of_root = bench.submitted.iter().filter(|s| s.src == HostId(0) && s.msg.len == 100);
        of_root.for_each(|s| asked[s.msg.dst.index()] += 1);
        assert!(bench.submitted.iter().all(|s| s.src != s.msg.dst));
        // 400 aggregators among five hosts, and what host 0 asks as an aggregator of no host.
        assert_eq!(asked[0], 0);
        assert!(asked[1..].iter().all(|n| (40..=120).contains(n)), "{asked:?}");
        for job in &bench.jobs {
            let mut to: Vec<u32> = bench
                .submitted
                .iter()
                .filter(|s| s.at == job.start && s.src == HostId(0))
                .map(|s| s.msg.dst.0)
                .collect();
            to.dedup();
            assert_eq!(to.len(), 2, "two different ones");
        }
    }

    #[test]
    fn an_open_loop_asks_whatever_is_under_way() {
        let bench = bench(QuerySpec {
            arrivals: Arrivals::Poisson(20.0 * US as f64),
            until: Time(20_000 * US),
            queries: u64::MAX,
            ..spec()
        });
        // 1000 in 20 ms; sigma is 32.
        assert!((870..1130).contains(&bench.jobs.len()), "{}", bench.jobs.len());
        assert!(bench.jobs.iter().all(|job| job.in_time == 6));
        let overlap = bench.jobs.windows(2).filter(|pair| pair[1].start < pair[0].end).count();
        assert!(overlap > 500, "{overlap}");
    }

    #[test]
    fn what_is_said_survives_its_token() {
        let (level, index, task) = (LEVELS_MAX, WORKERS_MAX - 1, u32::MAX);
        for said in [
            Said::Request { level, index, task },
            Said::Request { level: 0, index: 0, task: 0 },
            Said::Answer { results: WORKERS_MAX, task },
            Said::Answer { results: 0, task: 0 },
        ] {
            assert_eq!(Said::of(said.token()), said);
        }
    }
}
