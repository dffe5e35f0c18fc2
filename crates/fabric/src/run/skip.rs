//! Skipping time in which everything repeats (docs/skip.md).
//!
//! A skip is a shift of time. Nothing in flight is touched: sequence numbers, windows, timers and
//! packets stay, in *simulated* time, which has no gaps. Each message is shortened by what it would
//! have moved. What happens from outside (applications, faults, samples, the window, the limit)
//! lives in *true* time, which is the simulated time and all that was skipped: a skip never passes
//! one of these, and all come nearer by it.

use std::sync::Arc;

use endpoint::{Draw, Purpose, Routes, UNBOUNDED};
use units::{Dur, HostId, Time};

use super::rounds::Seen;
use super::{Run, before};
use crate::config::{Config, SkipSpec};
use crate::event_loop::EventLoop;
use crate::hosts::{Hosts, simulated};
use crate::network::Network;
use crate::sample::Counts;
use crate::steady::{History, Mark, Ratio, Tolerance, Totals};
use crate::topology::Topology;

/// A window is so many looks at the queues.
const LOOKS: u64 = 4;
/// The shortest window is at least so many round trips of an idle network.
const ROUND_TRIPS: u64 = 4;
/// So many windows are left of the message that ends first: its end is simulated.
const MARGIN: u64 = 1;
/// A skip is at most so many times what has passed since something last came or went: what drifts
/// slowly is seen again after some of its time.
const GROWTH: u64 = 10;

const MILLION: Dur = Dur(1_000_000);
const EXACT: Purpose = Purpose::new("skip: what is simulated");

/// How often things have come or gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    messages: [u64; 3],
    pub(super) faults: usize,
}

/// What is simulated although it could be skipped.
struct Exact {
    ppm: u32,
    draw: Draw,
}

impl Exact {
    /// Of `time` that could be skipped, what is skipped, and what is simulated then; where the
    /// latter is, is the `n`th draw.
    fn divide(&self, time: Dur, n: u64) -> (Dur, Dur) {
        let exact = self.of(time.0);
        let place = Ratio { part: Dur(self.draw.bits(EXACT, n) % MILLION.0), of: MILLION };
        let first = place.of(time.0 - exact);
        if exact == 0 { (time, Dur::ZERO) } else { (Dur(first), Dur(exact)) }
    }

    /// The share of `count` that is simulated.
    fn of(&self, count: u64) -> u64 {
        Ratio { part: Dur(self.ppm.into()), of: MILLION }.of(count)
    }
}

/// What is known of whether time can be skipped.
pub(super) struct Skipper {
    pub(super) tolerance: Tolerance,
    exact: Exact,
    /// Before this, in true time, nothing is skipped.
    hold: Time,
    /// Up to this, in true time, it is planned what is simulated although it could be skipped.
    planned: Time,
    /// When to look next, in simulated time, and how often.
    next: Time,
    every: Dur,
    events: Events,
    /// Since when nothing has come or gone, in true time.
    since: Time,
    looks: u64,
    /// By link, the sum of what its queue held at all looks.
    queued: Vec<u64>,
    /// How many packets had been lost when no message was open.
    lost: u64,
    history: History,
    /// The first mark since which things have repeated, over the skips since then: simulated time
    /// has no gaps, and the longer rates are measured the less it matters that packets are whole.
    base: Option<Arc<Mark>>,
    /// What counts as if it had happened in the time that was skipped.
    pub(super) extra: Totals,
    pub(super) count: u64,
    /// How often time could be skipped.
    plans: u64,
    /// Work that repeats.
    pub(super) rounds: Seen,
}

impl Skipper {
    pub(super) fn new(config: &Config, spec: SkipSpec, topology: &Topology) -> Self {
        let (links, hosts) = (topology.links().len(), topology.hosts() as usize);
        let rates = topology.links().iter().map(|link| link.rate).collect();
        Self {
            tolerance: Tolerance { ppm: spec.tolerance_ppm, rates },
            exact: Exact { ppm: spec.exact_ppm, draw: Draw::new(config.seed, EXACT, 0) },
            hold: Time::ZERO,
            planned: Time::ZERO,
            next: Time::ZERO,
            every: Dur::ZERO,
            events: Events::default(),
            since: Time::ZERO,
            looks: 0,
            queued: vec![0; links],
            lost: 0,
            history: History::default(),
            base: None,
            extra: Totals::none(links, hosts),
            count: 0,
            plans: 0,
            rounds: Seen::default(),
        }
    }

    /// When the fabric is to be looked at, in simulated time.
    pub(super) fn next_at(&self) -> Time {
        self.next
    }

    fn window(&self) -> Dur {
        self.every * LOOKS
    }

    /// How much is skipped `now`, in true time, of `time` that could be. What is left when a part
    /// has been simulated is skipped whole.
    fn plan(&mut self, now: Time, time: Dur) -> Dur {
        if now < self.planned {
            return time.min(self.planned.since(now));
        }
        self.planned = now + time;
        let (time, exact) = self.exact.divide(time, self.plans);
        self.plans += 1;
        self.hold = now + time + exact;
        time
    }

    /// Of `count` rounds that could be left out, how many are: those that are to be simulated come
    /// at the end, and it is not asked again.
    pub(super) fn left_out(&self, count: u64) -> u64 {
        match (self.exact.ppm, self.count) {
            (0, _) => count,
            (_, 0) => count - self.exact.of(count),
            _ => 0,
        }
    }
}

impl<const WATCHED: bool> Run<'_, WATCHED> {
    /// The true time now.
    pub(super) fn true_now(&self) -> Time {
        self.now.saturating_add(self.skipped)
    }

    /// The simulated time that is `time` in true time.
    pub(super) fn simulated(&self, time: Time) -> Time {
        simulated(time, self.skipped)
    }

    /// All before `now` has happened: look whether everything repeats, and skip time if it does.
    pub(super) fn skip_if_steady(&mut self) {
        let Some(mut skipper) = self.skipper.take() else { return };
        if !self.skip_rounds(&mut skipper) && self.now >= skipper.next {
            self.look(&mut skipper);
        }
        self.skipper = Some(skipper);
    }

    fn look(&mut self, skipper: &mut Skipper) {
        let events = self.happened();
        let is_idle = self.messages.open + self.messages.unbounded == 0;
        // A look was left out: no packet was about.
        let is_late =
            !skipper.history.is_empty() && self.now.since(skipper.next) >= self.world.config.grid;
        if events != skipper.events || is_idle || is_late {
            (skipper.events, skipper.since) = (events, self.true_now());
            skipper.history.clear();
            skipper.base = None;
            if is_idle {
                skipper.lost = self.lost();
            }
            // Nothing else is counted while things come and go at every look.
            skipper.next = self.now + skipper.every;
            return;
        }
        if skipper.history.is_empty() {
            skipper.every = self.look_every();
            skipper.looks = 0;
        } else {
            skipper.looks += 1;
            self.add_queues(&mut skipper.queued);
        }
        skipper.next = self.now + skipper.every;
        if skipper.looks.is_multiple_of(LOOKS) {
            let mark = self.mark(skipper);
            let alike = skipper.history.push(mark, &skipper.tolerance);
            let may = self.true_now() >= skipper.hold;
            if let Some((from, to)) = alike.filter(|_| may && self.lost() == skipper.lost) {
                let base =
                    skipper.base.take().filter(|base| skipper.tolerance.go_on(base, &from, &to));
                let base = skipper.base.insert(base.unwrap_or(from)).clone();
                self.try_skip(skipper, &base, &to);
            }
        }
    }

    pub(super) fn happened(&self) -> Events {
        let messages = [self.messages.submitted, self.messages.delivered, self.messages.failed];
        let faults = self.networks().next().map_or(0, Network::faults_done);
        Events { messages, faults }
    }

    /// Packets that were lost so far. While a sender waits for its timer to tell, all else may
    /// repeat: a skip would put the timer off.
    fn lost(&self) -> u64 {
        let faulted: u64 = self.networks().map(Network::faulted).sum();
        faulted + self.links().iter().map(|link| link.dropped).sum::<u64>()
    }

    /// How often to look: a whole number of grid steps, so that a window is some of the longest
    /// round trips.
    fn look_every(&mut self) -> Dur {
        let Self { world, messages, .. } = self;
        let pairs = messages.unfinished().map(|live| (live.key.src, live.dst));
        let longest = pairs.map(|(src, dst)| world.topology.base_rtt(src, dst)).max();
        let wanted = longest.unwrap_or(Dur::ZERO) * ROUND_TRIPS;
        let grid = world.config.grid.0.max(1);
        Dur(wanted.0.div_ceil(grid * LOOKS).max(1) * grid)
    }

    fn add_queues(&mut self, queued: &mut [u64]) {
        let last = before(self.now);
        for part in self.parts_mut() {
            part.network_mut().replay(last);
            for port in part.network().ports().iter().filter(|port| port.queue.is_some()) {
                queued[port.rare.link as usize] += u64::from(port.queued_bytes());
            }
        }
    }

    fn mark(&mut self, skipper: &Skipper) -> Mark {
        let totals = self.totals();
        let Self { world, loops, messages, now, .. } = self;
        let placed = messages.unfinished().map(|live| {
            let owner = world.partitioning.host_owner(live.dst);
            loops[owner as usize].part().hosts().placed_of(live.dst, live.key)
        });
        let (placed, queued) = (placed.collect(), skipper.queued.clone());
        Mark { at: *now, placed, queued, looks: skipper.looks, totals }
    }

    /// What has been counted so far, without what was skipped.
    pub(super) fn totals(&mut self) -> Totals {
        let last = before(self.now);
        let hosts = self.world.topology.hosts() as usize;
        let mut totals = Totals::none(0, hosts);
        let mut scratch = Vec::new();
        for part in self.parts_mut() {
            part.network_mut().replay(last);
            scratch.clear();
            let tiers = part.network_mut().sample(last, &mut scratch);
            totals.tier_bytes.iter_mut().zip(tiers).for_each(|(all, one)| *all += one);
            for (host, bytes) in part.hosts().received() {
                totals.received[host.index()] = bytes;
            }
            totals.add(part);
        }
        totals.links = self.links();
        totals
    }

    /// What samples count so far.
    pub(super) fn counts(&mut self) -> Counts {
        let last = before(self.now);
        self.sampler.look(last, self.loops.iter_mut().map(EventLoop::part_mut))
    }

    /// The windows between `from` and `to` are alike: skip as much time as can be.
    fn try_skip(&mut self, skipper: &mut Skipper, from: &Mark, to: &Mark) {
        let span = to.at.since(from.at);
        let Some(time) = self.skippable(skipper, from, to) else { return };
        let time = skipper.plan(self.true_now(), time);
        if time < skipper.window() {
            return;
        }
        let share = Ratio { part: time, of: span };
        let counts = self.counts();
        let moved = self.shorten(from, to, share);
        self.count_skipped(skipper, (&from.totals, &to.totals), share, (counts, moved));
        self.skipped += time;
        for part in self.parts_mut() {
            part.skip(time);
        }
        skipper.history.clear();
        skipper.next = self.now;
    }

    /// `share` of what was counted between the two looks `from` and `to` comes in the time that is
    /// to be skipped, and so many bytes are placed. There is `counts` now.
    pub(super) fn count_skipped(
        &mut self,
        skipper: &mut Skipper,
        (from, to): (&Totals, &Totals),
        share: Ratio,
        (counts, placed_bytes): (Counts, u64),
    ) {
        let in_window = self.edges.len() == 1;
        let before = (skipper.extra.sent.packets, skipper.extra.tier_bytes);
        skipper.extra.grow(from, to, share, in_window);
        skipper.count += 1;
        let Totals { sent, mut tier_bytes, .. } = skipper.extra;
        tier_bytes.iter_mut().zip(before.1).for_each(|(all, before)| *all -= before);
        let gain = Counts { placed_bytes, packets: sent.packets - before.0, tier_bytes };
        let (at, ports) = (self.true_now(), self.switch_ports());
        self.sampler.fill((at, share.part), ports, (counts, gain), &self.messages);
        for (n, (from, to)) in from.received.iter().zip(&to.received).enumerate() {
            let (host, bytes) = (HostId(n as u32), share.of(to.saturating_sub(*from)));
            self.hosts_of(host).receive_skipped(host, bytes);
        }
    }

    /// How much time can be skipped now, where what was counted from `from` to `to` goes on; `None`
    /// if a transport cannot.
    fn skippable(&mut self, skipper: &Skipper, from: &Mark, to: &Mark) -> Option<Dur> {
        let span = to.at.since(from.at);
        let margin = skipper.window() * MARGIN;
        let now = self.true_now();
        let passed = now.since(skipper.since);
        let apps = self.parts().map(|part| part.hosts().next_app()).min();
        let mut time = self.next_from_outside(apps).since(now).min(passed * GROWTH);
        let Self { world, loops, messages, .. } = self;
        for ((live, from), to) in messages.unfinished().zip(&from.placed).zip(&to.placed) {
            let owner = world.partitioning.host_owner(live.key.src);
            let unsent = loops[owner as usize].part().hosts().unsent(live.key)?;
            if unsent != UNBOUNDED {
                let lasts = Ratio { part: span, of: Dur(to - from) }.of(unsent);
                time = time.min(Dur(lasts.saturating_sub(margin.0)));
            }
        }
        Some(time)
    }

    /// When something happens next that does not follow from packets, in true time: something of
    /// applications at `apps`, if that counts.
    pub(super) fn next_from_outside(&self, apps: Option<Time>) -> Time {
        let faults = self.networks().map(Network::next_fault).min();
        let faults = faults.map(|at| at.saturating_add(self.skipped));
        let edge = self.edges.last().copied();
        let first = [apps, faults, edge].into_iter().flatten().min().unwrap_or(Time::NEVER);
        first.min(self.world.config.limit)
    }

    /// Take out of each message what it would move in the time that is skipped. How many bytes.
    fn shorten(&mut self, from: &Mark, to: &Mark, share: Ratio) -> u64 {
        let mut moved = 0;
        let Self { world, loops, messages, now, .. } = self;
        let owner = |host| world.partitioning.host_owner(host) as usize;
        for ((live, from), to) in messages.unfinished().zip(&from.placed).zip(&to.placed) {
            let wanted = share.of(to - from) + live.debt;
            let source = loops[owner(live.key.src)].part_mut().hosts_mut();
            let taken = source.shorten(live.key, wanted);
            live.debt = wanted - taken;
            moved += taken;
            let receiver = loops[owner(live.dst)].part_mut().hosts_mut();
            receiver.place_skipped(live.dst, live.key, taken, *now);
        }
        moved
    }

    fn hosts_of(&mut self, host: HostId) -> &mut Hosts<WATCHED> {
        let owner = self.world.partitioning.host_owner(host);
        self.loops[owner as usize].part_mut().hosts_mut()
    }
}
