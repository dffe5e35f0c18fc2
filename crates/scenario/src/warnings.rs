//! What a reader should know before trusting a result, beyond what its messages say
//! (`metrics::FlowFold` says that).

use std::collections::BTreeMap;

use endpoint::Stat;
use fabric::{End, Outcome, WatchdogAction};
use metrics::{Failure, FlowRow, JobRow, Window};
use units::{Dur, Time};

use crate::Scenario;

/// A window of fewer round trips than this shows the start rather than the state.
const FEW_RTTS: u64 = 10;

/// The warnings of this run, each a sentence: `folded`, which its messages gave, and more.
pub(crate) fn of(
    scenario: &Scenario,
    outcome: &Outcome,
    (seen, jobs): (&Seen, &[JobRow]),
    window: Window,
    folded: Vec<String>,
) -> Vec<String> {
    if outcome.end == End::Backlog {
        // Everything else that could be said follows from this.
        return early_end(scenario, outcome).into_iter().collect();
    }
    let mut warnings: Vec<String> = scenario.warnings.iter().map(ToString::to_string).collect();
    warnings.extend(folded);
    if !seen.measured && seen.lasting.is_empty() {
        warnings.push(
            "nothing was measured: no message was submitted inside the measurement window"
                .to_owned(),
        );
    }
    warnings.extend(early_end(scenario, outcome));
    warnings.extend(failed_jobs(jobs));
    warnings.extend(short_window(scenario, window));
    warnings.extend(losses(scenario, outcome));
    warnings.extend(faulted(outcome));
    warnings.extend(late_faults(scenario, outcome));
    warnings.extend(flow_control(scenario, outcome));
    warnings.extend(delivered_twice(outcome));
    warnings.extend(forgotten(seen));
    warnings.extend(starved(seen));
    warnings
}

/// A run that did not end because everything measured was done.
fn early_end(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let now = for_people(outcome.now.since(Time::ZERO));
    let at = match outcome.end {
        End::Complete => return None,
        End::Backlog => {
            let most = scenario.config.open_limit;
            return Some(format!(
                "the run ended at {now} because more than {most} messages were in flight \
                 (measure.max_in_flight): the load is more than the network carries, so no \
                 completion time and no slowdown means anything"
            ));
        }
        End::Limit => format!("at its limit, {now},"),
        End::Idle => format!("at {now}, because nothing was left to happen,"),
        End::Stopped => {
            return Some(format!(
                "partial results: the run was interrupted at {now} of simulated time, and nothing \
                 is known of what was to come"
            ));
        }
        End::Violated => format!("at {now}, because an invariant was violated,"),
        End::Broken => format!("at {now}, because what a host rests on has ended,"),
    };
    Some(format!("the run ended {at} before everything measured was done"))
}

/// Messages that a NIC with a small table had forgotten.
fn delivered_twice(outcome: &Outcome) -> Option<String> {
    let twice = outcome.counters.stat(Stat::DeliveredTwice);
    (twice > 0).then(|| {
        format!(
            "messages delivered twice: {twice}, because receivers remember only the last messages \
             (`remember`); \"lifetime\" delivers each once"
        )
    })
}

/// What the messages say for these warnings.
#[derive(Default)]
pub(crate) struct Seen {
    /// Whether there is one inside the measurement window.
    measured: bool,
    /// Those forgotten before they were whole, and acknowledged none the less.
    forgotten: u64,
    /// By traffic table and receiver, what each unbounded flow got within the window.
    lasting: BTreeMap<(u16, u32), Vec<u64>>,
}

impl Seen {
    pub(crate) fn add(&mut self, row: &FlowRow) {
        self.measured |= row.measured;
        let lost = row.failed == Some(Failure::Forgotten) && row.has_failed();
        self.forgotten += u64::from(lost);
        if row.size.is_none() {
            self.lasting.entry((row.traffic, row.dst)).or_default().push(row.placed_in_window);
        }
    }
}

/// Unbounded flows that got next to nothing of a link that others of their table had: at a queue
/// that drops from its tail, phases decide that (specs/phases.md#3).
fn starved(seen: &Seen) -> Option<String> {
    const LITTLE: f64 = 0.01;
    let starved_of = |flows: &Vec<u64>| {
        let mean = flows.iter().sum::<u64>() as f64 / flows.len() as f64;
        flows.iter().filter(|&&bytes| (bytes as f64) < mean * LITTLE).count()
    };
    let starved: usize = seen.lasting.values().map(starved_of).sum();
    (starved > 0).then(|| {
        format!(
            "unbounded flows that got less than a hundredth of the mean to the same host: {starved}; \
             phases may decide who is lost (clock_ppm and send_jitter in [host])"
        )
    })
}

/// Messages that such a NIC had forgotten before they were whole, and acknowledged none the less.
fn forgotten(seen: &Seen) -> Option<String> {
    let lost = seen.forgotten;
    (lost > 0).then(|| {
        format!(
            "messages acknowledged and never delivered: {lost}, because receivers remember only \
             the last messages (`remember`); with \"lifetime\" none is lost so"
        )
    })
}

/// Jobs that were given up.
fn failed_jobs(jobs: &[JobRow]) -> Option<String> {
    let failed = jobs.iter().filter(|job| !job.completed).count();
    let first = jobs.iter().filter(|job| !job.completed).map(|job| job.end).min()?;
    let at = for_people(first.since(Time::ZERO));
    Some(format!(
        "jobs given up because a message of theirs failed: {failed}, the first at {at}; they do not \
         count, and no block of a barrier comes after one"
    ))
}

fn short_window(scenario: &Scenario, window: Window) -> Option<String> {
    let rtt = scenario.longest_rtt();
    let length = window.to.since(window.from);
    (scenario.measure.to.is_some() && length < rtt * FEW_RTTS).then(|| {
        let (length, rtt) = (for_people(length), for_people(rtt));
        format!(
            "the measurement window of {length} is shorter than {FEW_RTTS} round trips of {rtt}"
        )
    })
}

/// Losses in a fabric that trims are the exception and worth a look; elsewhere many of them say
/// that the capacity of the queues decides the result.
fn losses(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let told_elsewhere = outcome.counters.faulted + violations(outcome) + watchdog_drops(outcome);
    // Where time was skipped, each count is rounded by itself.
    let dropped = outcome.counters.dropped.saturating_sub(told_elsewhere);
    if dropped > 0 && scenario.config.queue.spec().always_trims() {
        let lost = "were lost although the switches trim: headers or control did not fit";
        return Some(format!("{dropped} packets {lost}"));
    }
    many(dropped, outcome).map(|lost| format!("{lost}: {}", full(scenario)))
}

/// Many losses that faults are to blame for, not queues.
fn faulted(outcome: &Outcome) -> Option<String> {
    many(outcome.counters.faulted, outcome).map(|lost| format!("{lost} by faults of links"))
}

/// Faults that begin before the limit, and yet after everything was over.
fn late_faults(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let limit = scenario.measure.limit;
    let late = |&&at: &&Time| (outcome.now..limit).contains(&at);
    let late = scenario.fault_begins.iter().filter(late).count();
    let end = for_people(outcome.now.since(Time::ZERO));
    (late > 0).then(|| format!("faults that came after the end of the run, at {end}: {late}"))
}

/// That so many packets were lost, if those are many beside the data.
fn many(lost: u64, outcome: &Outcome) -> Option<String> {
    const MANY: f64 = 0.01;
    let share = lost as f64 / outcome.counters.data_sent.max(1) as f64;
    let percent = share * 100.0;
    (share > MANY).then(|| format!("{lost} packets ({percent:.1} % of the data) were lost"))
}

/// Priority flow control that came to grief: losses that it is there to prevent, and deadlocks.
fn flow_control(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
    let mut warnings = Vec::new();
    let expired: u64 = outcome.links.iter().map(|link| link.pfc.watchdog).sum();
    let violations = violations(outcome);
    if violations > 0 {
        let watchdog = scenario.config.pfc.watchdog.filter(|_| expired > 0);
        let why = match watchdog.map(|watchdog| watchdog.action) {
            Some(WatchdogAction::Forward) => "the watchdog sent them to switches without room",
            _ => {
                "less headroom is configured than what arrives after a pause has been sent: \
                 `headroom = \"auto\"` in [queue] is enough"
            }
        };
        warnings.push(format!("{violations} packets of lossless classes were lost: {why}"));
    }
    if let Some(deadlock) = &outcome.deadlock {
        let since = for_people(deadlock.since.since(Time::ZERO));
        let found = for_people(deadlock.at.since(Time::ZERO));
        warnings.push(format!(
            "deadlock: {deadlock} waited for one another from {since} on, as was found at {found}"
        ));
    }
    if expired > 0 {
        let lost = watchdog_drops(outcome);
        warnings.push(format!(
            "pauses that lasted too long for the watchdog: {expired}; packets that it dropped: {lost}"
        ));
    }
    warnings
}

/// Packets of lossless classes that a switch had no room for.
fn violations(outcome: &Outcome) -> u64 {
    outcome.memories.iter().map(|memory| memory.violations).sum()
}

/// Packets that the watchdogs dropped.
fn watchdog_drops(outcome: &Outcome) -> u64 {
    outcome.links.iter().map(|link| link.pfc.watchdog_drops).sum()
}

/// Why switches lose what they do not trim.
fn full(scenario: &Scenario) -> &'static str {
    match scenario.config.buffer {
        Some(_) => "queues had their share of the switches' memory, or were full",
        None => scenario.config.queue.spec().loses_because(),
    }
}

/// `time` in three digits and the unit that suits them: scenarios are exact, sentences are short.
pub(crate) fn for_people(time: Dur) -> String {
    let ps = time.0 as f64;
    let units = [(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns")];
    let &(unit, name) = units.iter().find(|(unit, _)| ps >= *unit).unwrap_or(&(1.0, "ps"));
    match ps / unit {
        n if n >= 100.0 || unit == 1.0 => format!("{n:.0} {name}"),
        n if n >= 10.0 => format!("{n:.1} {name}"),
        n => format!("{n:.2} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_for_people() {
        let times = [0, 29_849_600, 1_000_000_000, 123_456, 4_900_000_000_000].map(Dur);
        assert_eq!(times.map(for_people), ["0 ps", "29.8 us", "1.00 ms", "123 ns", "4.90 s"]);
    }
}
