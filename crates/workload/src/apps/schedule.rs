//! [`Schedule`]: one host's part of a [`Plan`](crate::Plan). Flows start at their time or when a
//! trigger fires, and activate triggers when they are done.
//!
//! Triggers reach across hosts, hosts share nothing: each trigger is kept by one host, and
//! everything about it travels as a signal of the plan's delay (see
//! [`Plan::schedules`](crate::Plan::schedules)).

use std::collections::BTreeMap;
use std::sync::Arc;

use endpoint::{App, AppCx, AppEvent, Msg};
use units::{Dur, HostId, MsgId, Time, TimerId};

use crate::plan::{Flow, Start, TriggerKind};

const TIMER: TimerId = TimerId(0);

/// All triggers of a plan, shared by its hosts.
#[derive(Debug)]
pub(crate) struct TriggerTable {
    /// How long a signal takes.
    pub(crate) delay: Dur,
    pub(crate) rows: Vec<TriggerRow>,
}

/// One trigger.
#[derive(Debug)]
pub(crate) struct TriggerRow {
    pub(crate) kind: TriggerKind,
    /// The host that counts its activations.
    pub(crate) owner: HostId,
    /// What it starts, in the order of the plan: a host and an index into its entries.
    pub(crate) targets: Vec<(HostId, u32)>,
}

/// One flow of this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// `None`: when a trigger says so.
    start: Option<Time>,
    msg: Msg,
    done: Done,
}

/// The triggers that a message has yet to activate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Done {
    acked: Option<u32>,
    delivered: Option<u32>,
}

impl From<&Flow> for Entry {
    fn from(flow: &Flow) -> Self {
        let &Flow { dst, len, channel, prio, .. } = flow;
        let start = match flow.start {
            Start::At(time) => Some(time),
            Start::Trigger(_) => None,
        };
        Self {
            start,
            msg: Msg { channel, prio, ..Msg::new(dst, len) },
            done: Done { acked: flow.on_acked, delivered: flow.on_delivered },
        }
    }
}

/// What one schedule tells another. As a token: the kind in the two highest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// To a trigger's owner: one more activation.
    Activate(u32),
    /// To a flow's source: this entry starts.
    Start(u32),
    /// To a flow's source: this message of yours is whole.
    Delivered(MsgId),
}

impl Signal {
    const KIND: u32 = 62;

    fn token(self) -> u64 {
        match self {
            Self::Activate(trigger) => u64::from(trigger),
            Self::Start(entry) => 1 << Self::KIND | u64::from(entry),
            Self::Delivered(id) => 2 << Self::KIND | id.0,
        }
    }

    fn of(token: u64) -> Option<Self> {
        let value = token & ((1 << Self::KIND) - 1);
        match token >> Self::KIND {
            0 => u32::try_from(value).ok().map(Self::Activate),
            1 => u32::try_from(value).ok().map(Self::Start),
            2 => Some(Self::Delivered(MsgId(value))),
            _ => None,
        }
    }
}

/// One host's flows. Made by [`Plan::schedules`](crate::Plan::schedules).
#[derive(Debug)]
pub struct Schedule {
    /// Timed ones first, by time; then triggered ones.
    entries: Box<[Entry]>,
    /// The next timed entry.
    next: usize,
    /// How many entries have not been submitted.
    left: usize,
    /// The messages that have triggers to activate.
    open: BTreeMap<MsgId, Done>,
    /// The hosts that want to know when a message of theirs is whole here; sorted.
    notify: Box<[HostId]>,
    /// How often the triggers that this host keeps have been activated.
    activations: BTreeMap<u32, u32>,
    table: Arc<TriggerTable>,
}

impl Schedule {
    pub(crate) fn new(
        entries: Vec<Entry>,
        mut notify: Vec<HostId>,
        table: Arc<TriggerTable>,
    ) -> Self {
        notify.sort_unstable();
        notify.dedup();
        Self {
            next: 0,
            left: entries.len(),
            entries: entries.into(),
            open: BTreeMap::new(),
            notify: notify.into(),
            activations: BTreeMap::new(),
            table,
        }
    }

    /// Whether it does nothing in any run, so that the host can do without it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.notify.is_empty() && self.table.rows.is_empty()
    }

    /// Submits what is due and arms the timer for what comes next.
    fn advance(&mut self, cx: &mut AppCx<'_>) {
        while let Some(start) = self.entries.get(self.next).and_then(|entry| entry.start) {
            if start > cx.now {
                cx.arm(TIMER, start);
                return;
            }
            self.submit(cx, self.next);
            self.next += 1;
        }
    }

    fn submit(&mut self, cx: &mut AppCx<'_>, index: usize) {
        let Some(entry) = self.entries.get(index) else { return };
        let id = cx.submit_as(entry.msg);
        self.left = self.left.saturating_sub(1);
        if entry.done != (Done { acked: None, delivered: None }) {
            self.open.insert(id, entry.done);
        }
    }

    fn signal(&self, cx: &mut AppCx<'_>, to: HostId, signal: Signal) {
        cx.signal(to, signal.token(), self.table.delay);
    }

    /// Message `id` has reached a stage; `stage` takes the trigger of that stage.
    fn done(&mut self, cx: &mut AppCx<'_>, id: MsgId, stage: fn(&mut Done) -> Option<u32>) {
        let Some(done) = self.open.get_mut(&id) else { return };
        let trigger = stage(done);
        if *done == (Done { acked: None, delivered: None }) {
            self.open.remove(&id);
        }
        let Some(trigger) = trigger else { return };
        if let Some(row) = self.table.rows.get(trigger as usize) {
            self.signal(cx, row.owner, Signal::Activate(trigger));
        }
    }

    /// A trigger that this host keeps is activated once more.
    fn activate(&mut self, cx: &mut AppCx<'_>, trigger: u32) {
        let Some(row) = self.table.rows.get(trigger as usize) else { return };
        let count = self.activations.entry(trigger).or_insert(0);
        *count = count.saturating_add(1);
        let released = row.kind.released(*count, row.targets.len());
        for &(host, entry) in row.targets.get(released).unwrap_or_default() {
            self.signal(cx, host, Signal::Start(entry));
        }
    }
}

impl App for Schedule {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        self.advance(cx);
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Acked(id) => self.done(cx, id, |done| done.acked.take()),
            AppEvent::Delivered { key, .. } => {
                if self.notify.binary_search(&key.src).is_ok() {
                    self.signal(cx, key.src, Signal::Delivered(key.id));
                }
            }
            AppEvent::Failed(key, _) if key.src == cx.me => {
                self.open.remove(&key.id);
            }
            AppEvent::Failed(..) => {}
            AppEvent::Signal { token, .. } => match Signal::of(token) {
                Some(Signal::Activate(trigger)) => self.activate(cx, trigger),
                Some(Signal::Start(entry)) => self.submit(cx, entry as usize),
                Some(Signal::Delivered(id)) => self.done(cx, id, |done| done.delivered.take()),
                None => {}
            },
        }
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, _: TimerId) {
        self.advance(cx);
    }

    /// Entries that wait for a trigger count: the signal that starts them may be in flight. If a
    /// message that they wait for fails, they stay; the run then ends at its time limit or when
    /// nothing happens any more.
    fn more_to_come(&self) -> bool {
        self.left > 0
    }

    fn signal_delay(&self) -> Option<Dur> {
        (!self.table.rows.is_empty()).then_some(self.table.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::bench::{Bench, FCT};
    use crate::{Plan, PlanError};

    const DELAY: Dur = Dur(1_000);

    fn flow(src: u32, dst: u32, start: Start) -> Flow {
        Flow { start, ..Flow::at(Time::ZERO, HostId(src), HostId(dst), 100) }
    }

    /// Runs the plan and returns (time, source, destination) of every submission.
    fn run(
        flows: Vec<Flow>,
        triggers: Vec<TriggerKind>,
    ) -> Result<Vec<(u64, u32, u32)>, PlanError> {
        let mut bench = Bench::new(Plan { flows, triggers }.schedules(8, DELAY)?, 1);
        bench.run();
        assert!(bench.apps.iter().all(|app| !app.more_to_come() && app.open.is_empty()));
        Ok(bench.submitted.iter().map(|s| (s.at.0, s.src.0, s.msg.dst.0)).collect())
    }

    #[test]
    fn timed_flows_start_in_time_whatever_their_order() -> Result<(), PlanError> {
        let at = |ps| Start::At(Time(ps));
        let flows =
            vec![flow(1, 2, at(500)), flow(1, 3, at(0)), flow(1, 4, at(500)), flow(1, 5, at(7))];
        assert_eq!(run(flows, vec![])?, [(0, 1, 3), (7, 1, 5), (500, 1, 2), (500, 1, 4)]);
        Ok(())
    }

    #[test]
    fn a_barrier_waits_for_all_and_releases_all_at_once() -> Result<(), PlanError> {
        let mut flows: Vec<Flow> = (0..3)
            .map(|i| Flow {
                on_acked: Some(0),
                ..flow(i, 7, Start::At(Time(u64::from(i) * 10_000)))
            })
            .collect();
        flows.extend([flow(5, 6, Start::Trigger(0)), flow(2, 6, Start::Trigger(0))]);
        let submitted = run(flows, vec![TriggerKind::Barrier(3)])?;
        // The last flow starts at 20 000; then its acknowledgement and two signals.
        let released = 20_000 + FCT.0 + 2 * DELAY.0;
        assert_eq!(submitted[3..], [(released, 2, 6), (released, 5, 6)]);
        Ok(())
    }

    #[test]
    fn multishot_starts_one_flow_per_activation() -> Result<(), PlanError> {
        let first = Flow { on_acked: Some(0), ..flow(0, 1, Start::At(Time::ZERO)) };
        let second = Flow { on_acked: Some(0), ..flow(0, 2, Start::Trigger(0)) };
        let third = flow(3, 1, Start::Trigger(0));
        let step = FCT.0 + 2 * DELAY.0;
        let submitted = run(vec![first, second, third], vec![TriggerKind::Multishot])?;
        assert_eq!(submitted, [(0, 0, 1), (step, 0, 2), (2 * step, 3, 1)]);
        Ok(())
    }

    #[test]
    fn delivery_triggers_at_the_receiver() -> Result<(), PlanError> {
        let both =
            Flow { on_delivered: Some(0), on_acked: Some(1), ..flow(0, 1, Start::At(Time::ZERO)) };
        // To the same receiver and without a trigger: its delivery must change nothing.
        let other = flow(0, 1, Start::At(Time(1)));
        let flows = vec![both, other, flow(1, 2, Start::Trigger(0)), flow(4, 2, Start::Trigger(1))];
        let submitted = run(flows, vec![TriggerKind::Oneshot, TriggerKind::Oneshot])?;
        // Delivery is halfway to the acknowledgement and costs three signals.
        let expected = [(FCT.0 / 2 + 3 * DELAY.0, 1, 2), (FCT.0 + 2 * DELAY.0, 4, 2)];
        assert_eq!(submitted[2..], expected);
        Ok(())
    }

    #[test]
    fn signals_survive_their_tokens() {
        for signal in
            [Signal::Activate(u32::MAX), Signal::Start(u32::MAX), Signal::Delivered(MsgId(1 << 61))]
        {
            assert_eq!(Signal::of(signal.token()), Some(signal));
        }
        assert_eq!(Signal::of(u64::MAX), None);
    }

    #[test]
    fn an_idle_host_is_small() {
        assert!(size_of::<Schedule>() <= 160, "{}", size_of::<Schedule>());
    }
}
