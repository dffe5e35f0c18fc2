//! What is wrong with links during a run, and when the fabric learns of it.
//!
//! Faults last from one instant to another, and may overlap. Before the run they are worked out to
//! a [`Script`]: per link, when its loss, its rate and what is believed of it change.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use units::{Dur, Rate, Time};

use crate::config::{Fault, FaultAction};
use crate::hosts::simulated;
use crate::topology::{Link, Topology};

/// One step of the fault script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When.
    pub at: Time,
    /// Which directed link.
    pub link: u32,
    /// What changes.
    pub change: Change,
}

/// What changes at a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The probability with which a packet that arrives is lost: 1 of a dead link.
    Loss(f64),
    /// The rate at which packets are sent from now on.
    Rate(Rate),
    /// Whether switches and hosts believe that it works: ECMP groups and path lists follow.
    Believed(bool),
    /// Whether its receiving end has a signal. A link that loses every packet by
    /// [`FaultAction::Loss`] has one.
    Signal(bool),
}

/// The steps in order of time, the same in all partitions.
#[derive(Clone, Debug)]
pub struct Script {
    steps: Arc<[Step]>,
    next: usize,
    /// By how much sooner than they say the steps come, because time was skipped.
    sooner: Dur,
}

impl Script {
    /// The steps of `faults`, of which news takes `reroute_after`.
    #[must_use]
    pub fn new(topology: &Topology, faults: &[Fault], reroute_after: Dur) -> Self {
        let mut sorted: Vec<&Fault> = faults.iter().collect();
        sorted.sort_by_key(|fault| (fault.link, fault.at));
        let mut steps = Vec::new();
        for faults in sorted.chunk_by(|a, b| a.link == b.link) {
            let number = faults[0].link;
            let Some(link) = topology.links().get(number as usize) else { continue };
            for (at, change) in timeline(link, faults) {
                let news = matches!(change, Change::Believed(_));
                let at = if news { at + reroute_after } else { at };
                steps.push(Step { at, link: number, change });
            }
        }
        steps.retain(|step| step.at != Time::NEVER);
        steps.sort_by_key(|step| (step.at, step.link));
        Self { steps: steps.into(), next: 0, sooner: Dur::ZERO }
    }

    /// When the next step is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        self.steps.get(self.next).map(|step| simulated(step.at, self.sooner))
    }

    /// Steps so far.
    pub(crate) fn done(&self) -> usize {
        self.next
    }

    /// `time` has been skipped: what is to come is nearer.
    pub(crate) fn skip(&mut self, time: Dur) {
        self.sooner += time;
    }

    /// The next step if it is due at `now`.
    pub fn take(&mut self, now: Time) -> Option<Step> {
        self.next_at().filter(|&at| at <= now)?;
        let step = *self.steps.get(self.next)?;
        self.next += 1;
        Some(step)
    }
}

/// The faults that hold on a link at one time.
struct Holding<'a> {
    /// Since before the run.
    failed: bool,
    faults: Vec<&'a Fault>,
}

impl<'a> Holding<'a> {
    /// At `now`, some faults end and `starting` begin.
    fn step(&mut self, now: Time, starting: &[&'a Fault]) {
        self.faults.extend(starting.iter().filter(|fault| fault.action != FaultAction::Up));
        self.faults.retain(|fault| fault.until > now);
        if starting.iter().any(|fault| fault.action == FaultAction::Up) {
            self.failed = false;
            self.faults.retain(|fault| fault.action != FaultAction::Down);
        }
    }

    /// That of losses independent of each other.
    fn loss(&self) -> f64 {
        let passes = self.faults.iter().fold(1.0, |passes, fault| match fault.action {
            FaultAction::Down => 0.0,
            FaultAction::Loss(share) => passes * (1.0 - share),
            FaultAction::Rate(_) | FaultAction::Up => passes,
        });
        if self.failed { 1.0 } else { 1.0 - passes }
    }

    fn has_signal(&self) -> bool {
        !self.failed && !self.faults.iter().any(|fault| fault.action == FaultAction::Down)
    }

    fn rate(&self, nominal: Rate) -> Rate {
        let rates = self.faults.iter().filter_map(|fault| match fault.action {
            FaultAction::Rate(rate) => Some(rate),
            _ => None,
        });
        rates.min().unwrap_or(nominal)
    }

    /// Whether it would be believed to work if news took no time.
    fn sound(&self) -> bool {
        !self.failed && !self.faults.iter().any(|fault| fault.announced)
    }
}

/// What changes when at `link`, whose `faults` come in the order in which they begin.
fn timeline(link: &Link, faults: &[&Fault]) -> Vec<(Time, Change)> {
    let ends = faults.iter().map(|fault| fault.until).filter(|&until| until != Time::NEVER);
    let times: BTreeSet<Time> = faults.iter().map(|fault| fault.at).chain(ends).collect();
    let mut holding = Holding { failed: !link.up, faults: Vec::new() };
    let (mut loss, mut rate, mut sound) = (holding.loss(), link.rate, holding.sound());
    let mut signal = holding.has_signal();
    let (mut changes, mut coming) = (Vec::new(), faults);
    for now in times {
        let (starting, later) = coming.split_at(coming.partition_point(|fault| fault.at <= now));
        coming = later;
        holding.step(now, starting);
        if holding.loss() != loss {
            loss = holding.loss();
            changes.push((now, Change::Loss(loss)));
        }
        if holding.has_signal() != signal {
            signal = holding.has_signal();
            changes.push((now, Change::Signal(signal)));
        }
        if holding.rate(link.rate) != rate {
            rate = holding.rate(link.rate);
            changes.push((now, Change::Rate(rate)));
        }
        if holding.sound() != sound {
            sound = holding.sound();
            changes.push((now, Change::Believed(sound)));
        }
    }
    changes
}

/// Per link, the rates between which it is during the run.
pub(crate) fn rates(topology: &Topology, faults: &[Fault]) -> Vec<RangeInclusive<Rate>> {
    let own = topology.links().iter().map(|link| link.rate..=link.rate);
    let mut rates: Vec<RangeInclusive<Rate>> = own.collect();
    for fault in faults {
        if let (FaultAction::Rate(rate), Some(range)) =
            (fault.action, rates.get_mut(fault.link as usize))
        {
            *range = rate.min(*range.start())..=rate.max(*range.end());
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::LinkSpec;

    const FAST: Rate = Rate(10_000_000_000);
    const SLOW: Rate = Rate(1_000_000_000);
    const LINK: LinkSpec = LinkSpec { rate: FAST, delay: Dur(1_000_000) };

    fn fault(at: u64, until: u64, action: FaultAction) -> Fault {
        Fault { until: Time(until), ..Fault::new(Time(at), 1, action) }
    }

    /// The steps of a link of which news takes 5.
    fn steps(failed: bool, faults: &[Fault]) -> Vec<(u64, Change)> {
        let mut star = Topology::star(3, LINK).unwrap();
        if failed {
            star.fail_link(1);
        }
        let mut script = Script::new(&star, faults, Dur(5));
        let mut steps = Vec::new();
        while let Some(step) = script.take(Time(1_000)) {
            assert_eq!(step.link, 1);
            steps.push((step.at.0, step.change));
        }
        steps
    }

    #[test]
    fn a_link_works_again_when_nothing_keeps_it_down() {
        use Change::{Believed, Loss, Signal};
        let overlapping = [fault(10, 30, FaultAction::Down), fault(20, 40, FaultAction::Down)];
        let down = [(10, Loss(1.0)), (10, Signal(false)), (15, Believed(false))];
        let works = [(40, Loss(0.0)), (40, Signal(true)), (45, Believed(true))];
        let once = [down, works].concat();
        assert_eq!(steps(false, &overlapping), once);
        let never = Time::NEVER.0;
        let up = fault(40, never, FaultAction::Up);
        assert_eq!(steps(false, &[up, fault(10, never, FaultAction::Down)]), once);
        // Down and up at one instant is nothing.
        assert_eq!(steps(false, &[up, fault(40, 90, FaultAction::Down)]), []);
        assert_eq!(steps(true, &[up]), works);
    }

    #[test]
    fn slow_and_lossy_links_are_not_known_unless_announced() {
        use Change::{Believed, Loss, Rate};
        let slow = fault(10, 30, FaultAction::Rate(SLOW));
        assert_eq!(steps(false, &[slow]), [(10, Rate(SLOW)), (30, Rate(FAST))]);
        let slower = fault(20, 25, FaultAction::Rate(units::Rate(7)));
        let both =
            [(10, Rate(SLOW)), (20, Rate(units::Rate(7))), (25, Rate(SLOW)), (30, Rate(FAST))];
        assert_eq!(steps(false, &[slower, slow]), both);
        let announced = Fault { announced: true, ..slow };
        let heard =
            [(10, Rate(SLOW)), (15, Believed(false)), (30, Rate(FAST)), (35, Believed(true))];
        assert_eq!(steps(false, &[announced]), heard);
        // Half of what half of the packets survive.
        let lossy = [fault(10, 30, FaultAction::Loss(0.5)), fault(20, 30, FaultAction::Loss(0.5))];
        assert_eq!(steps(false, &lossy), [(10, Loss(0.5)), (20, Loss(0.75)), (30, Loss(0.0))]);
    }

    #[test]
    fn the_rates_of_a_link_are_all_that_it_ever_has() {
        let star = Topology::star(3, LINK).unwrap();
        let quick = Rate(40_000_000_000);
        let faults = [SLOW, quick].map(|rate| fault(1, 2, FaultAction::Rate(rate)));
        let rates = rates(&star, &faults);
        assert_eq!((&rates[0], &rates[1]), (&(FAST..=FAST), &(SLOW..=quick)));
    }
}
