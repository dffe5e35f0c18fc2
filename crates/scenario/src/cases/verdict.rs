//! [`Verdict`]: whether a case was within its limits.

use endpoint::Routes;
use metrics::FlowRow;
use units::{Dur, HostId, Time};

use super::list::{Case, Word};
use super::ready::{Ready, of_flow};

/// What became of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The messages of its matrix.
    pub messages: usize,
    /// Those that were complete before the end of the run.
    pub complete: usize,
    /// When the sender of the last of these knew it, microseconds from time zero.
    pub tail_us: Option<f64>,
    /// The messages that have a limit of their own.
    pub flows: Vec<Flow>,
    /// All is complete within its limits.
    pub passed: bool,
}

/// Messages from one host to another, with a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// What the list calls them.
    pub name: String,
    /// Microseconds from time zero.
    pub limit: u64,
    /// When the last of them was complete; `None` if none is.
    pub tail_us: Option<f64>,
}

impl Verdict {
    /// Judge the messages that a run of `case`, made ready as `ready`, has left.
    #[must_use]
    pub fn of(case: &Case, ready: &Ready, flows: &[FlowRow]) -> Self {
        let heard = Heard::of(&ready.scenario, flows);
        let tail = |named: &dyn Fn(&FlowRow) -> bool| heard.last(named).map(us);
        let complete = heard.messages.iter().filter(|(_, at)| at.is_some()).count();
        let flow = |(name, limit): &(Word, u64)| Flow {
            name: name.text.clone(),
            limit: *limit,
            tail_us: tail(&|row| name.text == of_flow(ready.of, row.src, row.dst)),
        };
        let (tail_us, limited) = (tail(&|_| true), case.flows.iter().map(flow).collect::<Vec<_>>());
        let within = |limit: u64, tail: Option<f64>| tail.is_some_and(|tail| tail <= limit as f64);
        let passed = complete == ready.messages
            && case.limit.is_none_or(|limit| within(limit, tail_us))
            && limited.iter().all(|flow| within(flow.limit, flow.tail_us));
        Self { messages: ready.messages, complete, tail_us, flows: limited, passed }
    }
}

/// When senders knew that their messages were complete. A run ends as the last message is there:
/// the acknowledgements that are then on their way take as long as they do over empty links. One
/// that would come after the end of the case does not come.
struct Heard<'f> {
    messages: Vec<(&'f FlowRow, Option<Time>)>,
}

impl<'f> Heard<'f> {
    fn of(scenario: &crate::Scenario, flows: &'f [FlowRow]) -> Self {
        let topology = scenario.topology().clone().with_mtu(CONTROL);
        let there_and_back = |row: &FlowRow| topology.base_rtt(HostId(row.src), HostId(row.dst));
        let back = |row: &FlowRow| Dur(there_and_back(row).0 / 2);
        let end = scenario.measure.limit;
        let heard =
            |row: &FlowRow| row.acked.or_else(|| Some(row.finish?.saturating_add(back(row))));
        let heard = |row: &FlowRow| heard(row).filter(|&at| at <= end);
        Self { messages: flows.iter().map(|row| (row, heard(row))).collect() }
    }

    /// When the last of some messages was complete.
    fn last(&self, of: &dyn Fn(&FlowRow) -> bool) -> Option<Time> {
        self.messages.iter().filter(|(row, _)| of(row)).filter_map(|&(_, at)| at).max()
    }
}

/// Bytes on the wire of an acknowledgement.
const CONTROL: u16 = 64;

fn us(at: Time) -> f64 {
    at.0 as f64 / 1e6
}
