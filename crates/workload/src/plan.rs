//! [`Plan`]: a whole run's flows, with start times and triggers, before they are dealt to hosts.

use std::ops::Range;
use std::sync::Arc;

use units::{Dur, HostId, Time};

use crate::apps::{Entry, Schedule, TriggerRow, TriggerTable};

/// When a flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Time),
    /// When this trigger (an index into [`Plan::triggers`]) fires.
    Trigger(u32),
}

/// What a trigger does each time it is activated. The rules are those of htsim (`trigger.cpp`);
/// where htsim aborts, at an activation too many, nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerKind {
    /// The first activation starts all its flows.
    Oneshot,
    /// Each activation starts the next of its flows, in the order of the plan.
    Multishot,
    /// The activation with this number, from 1, starts all its flows.
    Barrier(u32),
}

impl TriggerKind {
    /// Which of its `flows` flows the `n`-th activation starts, `n` from 1.
    pub(crate) fn released(self, n: u32, flows: usize) -> Range<usize> {
        match self {
            Self::Oneshot if n == 1 => 0..flows,
            Self::Barrier(count) if n == count => 0..flows,
            Self::Multishot if (n as usize) <= flows => n as usize - 1..n as usize,
            _ => 0..0,
        }
    }
}

/// One message of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// Bytes, at least 1, or [`endpoint::UNBOUNDED`].
    pub len: u64,
    /// When it starts.
    pub start: Start,
    /// See [`endpoint::Msg::channel`]; zero: no order.
    pub channel: u32,
    /// See [`endpoint::Msg::prio`]; zero is the most urgent.
    pub prio: u8,
    /// The trigger activated when the sender knows that the message was delivered.
    pub on_acked: Option<u32>,
    /// The trigger activated when the receiver has the message whole.
    pub on_delivered: Option<u32>,
}

impl Flow {
    /// `len` bytes from `src` to `dst` at `start`: no order, no priority, no triggers.
    #[must_use]
    pub const fn at(start: Time, src: HostId, dst: HostId, len: u64) -> Self {
        let start = Start::At(start);
        Self { src, dst, len, start, channel: 0, prio: 0, on_acked: None, on_delivered: None }
    }

    fn triggers(&self) -> impl Iterator<Item = u32> {
        let start = match self.start {
            Start::At(_) => None,
            Start::Trigger(trigger) => Some(trigger),
        };
        [start, self.on_acked, self.on_delivered].into_iter().flatten()
    }
}

/// The flows of a run and the triggers between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The messages.
    pub flows: Vec<Flow>,
    /// The triggers; flows name them by index.
    pub triggers: Vec<TriggerKind>,
}

/// Why a plan cannot run. `flow` is an index into [`Plan::flows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A host that the fabric does not have.
    #[error("flow {flow} names {host}, but the fabric has {hosts} hosts, numbered from 0")]
    NoSuchHost {
        /// The flow.
        flow: usize,
        /// The host.
        host: HostId,
        /// How many there are.
        hosts: u32,
    },
    /// A host that sends to itself.
    #[error("flow {flow} goes from {host} to itself")]
    ToItself {
        /// The flow.
        flow: usize,
        /// The host.
        host: HostId,
    },
    /// A message without a byte.
    #[error("flow {flow} has no bytes")]
    Empty {
        /// The flow.
        flow: usize,
    },
    /// A trigger that the plan does not have.
    #[error("flow {flow} names trigger {trigger}, which does not exist")]
    NoSuchTrigger {
        /// The flow.
        flow: usize,
        /// The trigger's index.
        trigger: u32,
    },
    /// A flow whose trigger cannot fire, even if everything else completes.
    #[error("flow {flow} never starts: its trigger cannot fire")]
    NeverStarts {
        /// The flow.
        flow: usize,
    },
    /// Signals between hosts take time.
    #[error("the signal delay is zero: a trigger needs at least 1ps to reach another host")]
    NoDelay,
}

impl Plan {
    /// One application for each of `hosts` hosts.
    ///
    /// A trigger is kept by one host (the sender of the first flow that it starts) and costs
    /// signals of `signal_delay` each, wherever the hosts are: one from the host where a flow was
    /// done to the keeper, and one from the keeper to the host whose flow starts. `on_delivered`
    /// costs one more, from the receiver to the sender, which knows the flow. In htsim triggers
    /// act at once; `signal_delay` = 1 ps comes closest.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn schedules(&self, hosts: u32, signal_delay: Dur) -> Result<Vec<Schedule>, PlanError> {
        self.check(hosts)?;
        if signal_delay == Dur::ZERO {
            return Err(PlanError::NoDelay);
        }
        let (mut entries, rows) = self.deal(hosts);
        let table = Arc::new(TriggerTable { delay: signal_delay, rows });
        let mut notify = vec![Vec::new(); hosts as usize];
        for flow in self.flows.iter().filter(|flow| flow.on_delivered.is_some()) {
            notify[flow.dst.index()].push(flow.src);
        }
        let schedule = |(entries, notify): (&mut Vec<Entry>, Vec<HostId>)| {
            Schedule::new(std::mem::take(entries), notify, Arc::clone(&table))
        };
        Ok(entries.iter_mut().zip(notify).map(schedule).collect())
    }

    /// The entries of each host in the order in which [`Schedule`] wants them (timed ones by time,
    /// then triggered ones), and what each trigger starts.
    fn deal(&self, hosts: u32) -> (Vec<Vec<Entry>>, Vec<TriggerRow>) {
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|&flow| match self.flows[flow].start {
            Start::At(time) => (false, time),
            Start::Trigger(_) => (true, Time::ZERO),
        });
        let mut entries: Vec<Vec<Entry>> = vec![Vec::new(); hosts as usize];
        let owner = HostId(0);
        let mut rows: Vec<TriggerRow> = self
            .triggers
            .iter()
            .map(|&kind| TriggerRow { kind, owner, targets: Vec::new() })
            .collect();
        // The sort is stable: triggered flows come in the order of the plan, as multishot needs.
        for flow in order.into_iter().map(|flow| &self.flows[flow]) {
            let mine = &mut entries[flow.src.index()];
            if let Start::Trigger(trigger) = flow.start {
                let row = &mut rows[trigger as usize];
                if row.targets.is_empty() {
                    row.owner = flow.src;
                }
                row.targets.push((flow.src, mine.len() as u32));
            }
            mine.push(Entry::from(flow));
        }
        (entries, rows)
    }

    fn check(&self, hosts: u32) -> Result<(), PlanError> {
        for (flow, f) in self.flows.iter().enumerate() {
            if let Some(host) = [f.src, f.dst].into_iter().find(|host| host.0 >= hosts) {
                return Err(PlanError::NoSuchHost { flow, host, hosts });
            }
            if f.src == f.dst {
                return Err(PlanError::ToItself { flow, host: f.src });
            }
            if f.len == 0 {
                return Err(PlanError::Empty { flow });
            }
            let known = self.triggers.len();
            if let Some(trigger) = f.triggers().find(|&trigger| trigger as usize >= known) {
                return Err(PlanError::NoSuchTrigger { flow, trigger });
            }
        }
        self.never_starts().map_or(Ok(()), |flow| Err(PlanError::NeverStarts { flow }))
    }

    /// The first flow that never starts, although every bounded flow that starts completes: its
    /// trigger lacks activations, or waits for itself. Flows name only triggers that exist.
    pub(crate) fn never_starts(&self) -> Option<usize> {
        let mut targets = vec![Vec::new(); self.triggers.len()];
        let mut started = vec![false; self.flows.len()];
        let mut work = Vec::new();
        for (index, flow) in self.flows.iter().enumerate() {
            match flow.start {
                Start::At(_) => work.push(index),
                Start::Trigger(trigger) => targets[trigger as usize].push(index),
            }
        }
        let mut activations = vec![0u32; self.triggers.len()];
        while let Some(index) = work.pop() {
            started[index] = true;
            let flow = &self.flows[index];
            if flow.len == endpoint::UNBOUNDED {
                continue;
            }
            for trigger in [flow.on_acked, flow.on_delivered].into_iter().flatten() {
                let trigger = trigger as usize;
                activations[trigger] = activations[trigger].saturating_add(1);
                let flows = &targets[trigger];
                let released = self.triggers[trigger].released(activations[trigger], flows.len());
                work.extend(&flows[released]);
            }
        }
        started.iter().position(|started| !started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(src: u32, dst: u32) -> Flow {
        Flow::at(Time::ZERO, HostId(src), HostId(dst), 1000)
    }

    #[test]
    fn impossible_plans_are_errors() {
        let error = |flows: &[Flow]| {
            let plan = Plan { flows: flows.to_vec(), triggers: vec![TriggerKind::Barrier(2)] };
            plan.schedules(4, Dur(1)).err()
        };
        let waits = |f: Flow| Flow { start: Start::Trigger(0), ..f };
        let fires = |f: Flow| Flow { on_acked: Some(0), ..f };
        assert_eq!(error(&[flow(0, 1)]), None);
        assert_eq!(
            error(&[flow(0, 4)]),
            Some(PlanError::NoSuchHost { flow: 0, host: HostId(4), hosts: 4 })
        );
        assert_eq!(error(&[flow(1, 1)]), Some(PlanError::ToItself { flow: 0, host: HostId(1) }));
        assert_eq!(error(&[Flow { len: 0, ..flow(0, 1) }]), Some(PlanError::Empty { flow: 0 }));
        assert_eq!(
            error(&[Flow { on_delivered: Some(1), ..flow(0, 1) }]),
            Some(PlanError::NoSuchTrigger { flow: 0, trigger: 1 })
        );
        let stuck = Some(PlanError::NeverStarts { flow: 1 });
        assert_eq!(error(&[fires(flow(0, 1)), waits(flow(1, 2))]), stuck, "one of two");
        assert_eq!(
            error(&[fires(flow(0, 1)), fires(waits(flow(1, 2)))]),
            stuck,
            "waits for itself"
        );
        let unbounded = Flow { len: endpoint::UNBOUNDED, ..fires(flow(2, 1)) };
        let flows = [fires(flow(0, 1)), waits(flow(1, 2)), unbounded];
        assert_eq!(error(&flows), stuck, "an unbounded flow is never done");
        assert_eq!(error(&[fires(flow(0, 1)), waits(flow(1, 2)), fires(flow(2, 1))]), None);
        let plan = Plan { flows: vec![flow(0, 1)], triggers: Vec::new() };
        assert_eq!(plan.schedules(2, Dur(0)).err(), Some(PlanError::NoDelay));
    }

    #[test]
    fn triggers_release_as_in_htsim() {
        let released = |kind: TriggerKind| {
            (1..=4).map(|n| kind.released(n, 3).collect()).collect::<Vec<Vec<usize>>>()
        };
        assert_eq!(released(TriggerKind::Oneshot), [vec![0, 1, 2], vec![], vec![], vec![]]);
        assert_eq!(released(TriggerKind::Multishot), [vec![0], vec![1], vec![2], vec![]]);
        assert_eq!(released(TriggerKind::Barrier(3)), [vec![], vec![], vec![0, 1, 2], vec![]]);
    }
}
