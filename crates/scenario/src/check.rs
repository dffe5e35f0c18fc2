//! What a scenario will do and what looks wrong in it, worked out before it runs. The warnings
//! after a run are in `warnings`.

pub(crate) mod demand;
mod rules;

use fabric::{PfcSpec, Topology};
use queues::{Capacity, QueueSpec};
use units::{Dur, Time};

use crate::Scenario;
use crate::diagnostic::Diagnostic;
use crate::fault::Script;
use crate::measure::Measure;
use crate::scenario::Tables;
use crate::traffic::Traffic;
use crate::transport::Transports;
use crate::warnings::for_people;
use demand::Demand;

/// A scenario that has been read, with its tables for the places of warnings.
pub(crate) struct View<'a> {
    pub(crate) tables: &'a Tables<'a>,
    pub(crate) topology: &'a Topology,
    pub(crate) transports: &'a Transports,
    pub(crate) queue: &'a QueueSpec,
    pub(crate) pfc: &'a PfcSpec,
    pub(crate) traffic: &'a Traffic,
    pub(crate) measure: &'a Measure,
    pub(crate) script: &'a Script,
    pub(crate) demand: &'a Demand,
}

/// What looks wrong.
pub(crate) fn warnings(view: &View<'_>) -> Vec<Diagnostic> {
    rules::all(view)
}

/// The bandwidth-delay product of the longest path, bytes.
fn product(topology: &Topology) -> u64 {
    let rate = topology.links().first().map(|link| link.rate);
    rate.map_or(0, |rate| rate.bytes_in(topology.longest_rtt()).0)
}

/// About how much a run takes. Fitted to the measured runs of docs/performance.md: right within a
/// factor of three or so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Memory, bytes.
    pub memory: f64,
    /// Time of one thread, seconds.
    pub seconds: f64,
}

/// Bytes of memory: of a program without a fabric, a host with its endpoint, a link with its port,
/// a packet in flight, a message.
const BASE: f64 = 20e6;
const OF_HOST: f64 = 5_000.0;
const OF_LINK: f64 = 600.0;
const OF_PACKET: f64 = 200.0;
const OF_MESSAGE: f64 = 330.0;
/// Seconds: of a host and its links until they are built, and of a packet-hop where what is touched
/// is near, and where it is not.
const BUILDING: f64 = 10e-6;
const HOP_NEAR: f64 = 0.15e-6;
const HOP_FAR: f64 = 0.4e-6;
/// From so many hosts on, it is not.
const FAR: f64 = 4_000.0;

/// From here on a run is large: somebody who started it by mistake would wait, or run out of
/// memory.
const LARGE: Estimate = Estimate { memory: 1e9, seconds: 60.0 };

impl Estimate {
    /// Whether one should know before it begins.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.memory > LARGE.memory || self.seconds > LARGE.seconds
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = for_people(Dur((self.seconds * 1e12).min(1e19) as u64));
        write!(f, "about {} of memory and {time} with one thread", bytes(self.memory))
    }
}

/// `n` bytes in three digits.
fn bytes(n: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| n >= *unit) else {
        return format!("{n:.0} B");
    };
    match n / unit {
        n if n >= 100.0 => format!("{n:.0} {name}"),
        n if n >= 10.0 => format!("{n:.1} {name}"),
        n => format!("{n:.2} {name}"),
    }
}

impl Scenario {
    /// What looks wrong, found before a run, each with its place.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// About how much a run takes.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let (hosts, links) = (f64::from(self.topology.hosts()), self.topology.links().len() as f64);
        let payload = |t: &crate::transport::Transport| f64::from(t.framing.payload.max(1));
        let payload = self.transports.iter().map(payload).fold(f64::INFINITY, f64::min);
        // Senders without a window keep some round trips in flight, until something stops them.
        let window = self.transports.iter().map(|t| t.first_window).max().unwrap_or(0);
        let window = window.min(4 * product(&self.topology)).max(payload as u64) as f64;
        let seconds = self.last_instant().as_us_f64() / 1e6;
        let listed = self.demand.listed as f64;
        let messages = listed + self.demand.messages_per_s * seconds;
        // Nobody receives more than the hosts' links carry until the end.
        let carried: f64 = self
            .topology
            .links()
            .iter()
            .take(self.topology.hosts() as usize)
            .map(|link| link.rate.0 as f64 / 8.0)
            .sum();
        let endless = self.demand.flows.bottlenecked(&self.topology);
        let asked = self.demand.bytes.total() + (self.demand.rate.total() + endless) * seconds;
        let limit = self.measure.limit.as_us_f64() / 1e6;
        let sent = asked.min(carried * limit);
        // Each packet of data has its acknowledgement.
        let hops = sent / payload * f64::from(self.topology.longest_path()) * 2.0;
        let active = hosts.min(messages.max(self.demand.flows.total()));
        let hop = if hosts < FAR { HOP_NEAR } else { HOP_FAR };
        Estimate {
            memory: BASE
                + hosts * OF_HOST
                + links * OF_LINK
                + messages * OF_MESSAGE
                + active * window / payload * OF_PACKET,
            seconds: hosts * BUILDING + hops * hop,
        }
    }

    /// The end of the window, or the last instant at which something finite begins.
    fn last_instant(&self) -> Time {
        self.measure.to.unwrap_or(self.demand.last_start.max(self.demand.loops_until))
    }

    /// What it will do: label and value of each row, for people.
    #[must_use]
    pub fn forecast(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut row = |label: &str, value: String| rows.push((label.to_owned(), value));
        let topology = &*self.topology;
        let (hosts, links) = (topology.hosts(), topology.links().len());
        row("topology", topology.kind().to_owned());
        row("  hosts, links (one way each)", format!("{hosts}, {links}"));
        if let Some(link) = topology.links().first() {
            row("  rate of a host's link", link.rate.to_string());
        }
        row("transport", self.kinds("transport"));
        row("queue", self.kinds("queue"));
        row("traffic", self.kinds("traffic"));
        let product = product(topology);
        row("base round trip, longest path", for_people(topology.longest_rtt()));
        row("bandwidth-delay product", bytes(product as f64));
        let times = |n: u64| {
            format!("{} ({:.2} times that)", bytes(n as f64), n as f64 / product.max(1) as f64)
        };
        if let Some(queue) = self.queue_bytes() {
            row("  queue of a port", times(queue));
        }
        for window in self.transports.iter().map(|t| t.first_window) {
            row(
                "  initial window",
                if window == u64::MAX { "none".to_owned() } else { times(window) },
            );
        }
        self.offered(&mut row);
        let limit = for_people(self.measure.limit.since(Time::ZERO));
        row("ends at the latest after", limit);
        let estimate = self.estimate();
        row("memory, about", bytes(estimate.memory));
        row(
            "time of one thread, about",
            for_people(Dur((estimate.seconds * 1e12).min(1e19) as u64)),
        );
        rows
    }

    /// The rows of what the traffic asks.
    fn offered(&self, row: &mut impl FnMut(&str, String)) {
        let (demand, topology) = (&self.demand, &*self.topology);
        if let Some(busiest) = demand.rate.bottleneck(topology) {
            let all: u64 = (0..topology.hosts()).map(|h| topology.links()[h as usize].rate.0).sum();
            let percent = demand.rate.total() * 8.0 / all.max(1) as f64 * 100.0;
            row("offered load, of all hosts' links", format!("{percent:.1} %"));
            row("  bottleneck", busiest.name.clone());
            row("  its load, headers not counted", format!("{:.1} %", busiest.seconds() * 100.0));
        }
        if let Some(busiest) = demand.bytes.bottleneck(topology) {
            row("messages listed", demand.listed.to_string());
            row("  together", bytes(demand.bytes.total()));
            row("  bottleneck", busiest.name.clone());
            row("  takes at least", rules::seconds(&busiest));
        }
        if let Some(busiest) = demand.flows.bottleneck(topology) {
            row("flows without an end, or in a loop", format!("{:.0}", demand.flows.total()));
            row("  bottleneck", busiest.name.clone());
            let each = busiest.rate.as_gbps_f64() / busiest.amount.max(1.0);
            row("  fair share there", format!("{each:.3} Gb/s"));
        }
        if demand.left_out > 0 {
            row("not estimated", format!("{} tables of queries", demand.left_out));
        }
    }

    /// What a port's queue holds, bytes; `None` if that is not one number.
    fn queue_bytes(&self) -> Option<u64> {
        let mtu = u64::from(self.topology.mtu());
        match *self.config.queue.spec().capacities().first()? {
            Capacity::Packets(n) => Some(u64::from(n) * mtu),
            Capacity::Bytes(n) => Some(u64::from(n)),
        }
    }

    /// The kinds that a table, or each of several, has.
    fn kinds(&self, key: &str) -> String {
        let kind = |table: &toml::Value| {
            let text = |key| table.get(key).and_then(toml::Value::as_str);
            let rule = text("rule").map(|rule| format!(" ({rule})")).unwrap_or_default();
            text("kind").map(|kind| format!("{kind}{rule}"))
        };
        match self.resolved().get(key) {
            Some(toml::Value::Array(all)) => {
                let mut kinds: Vec<String> = all.iter().filter_map(kind).collect();
                kinds.dedup();
                kinds.join(", ")
            }
            Some(one) => kind(one).unwrap_or_default(),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        let sizes = [7.0, 1500.0, 72_000.0, 135_000_000.0, 2_346e6];
        assert_eq!(sizes.map(bytes), ["7 B", "1.50 kB", "72.0 kB", "135 MB", "2.35 GB"]);
    }
}
