//! What a scenario will do and what looks wrong in it, worked out before it runs. The warnings
//! after a run are in `warnings`.

pub(crate) mod demand;
mod rules;

use fabric::{PfcSpec, Topology};
use queues::{Capacity, QueueSpec};
use units::{Dur, Time};
use workload::SizeDist;

use crate::Scenario;
use crate::diagnostic::Diagnostic;
use crate::fault::Script;
use crate::measure::Measure;
use crate::scenario::Tables;
use crate::traffic::Traffic;
use crate::transport::Transports;
use crate::warnings::for_people;
use demand::Demand;
pub(crate) use rules::all as warnings;

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

/// About how much a run takes. Fitted to measured runs: right within a factor of three for most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Memory, bytes.
    pub memory: f64,
    /// Time of one thread, seconds.
    pub seconds: f64,
}

/// Bytes of memory: of a program without a fabric, a host with its endpoint, a link with its port,
/// a packet in flight, a message that is over, and what one takes beyond that until then.
const BASE: f64 = 20e6;
const OF_HOST: f64 = 5_000.0;
const OF_LINK: f64 = 600.0;
const OF_PACKET: f64 = 200.0;
const OF_MESSAGE: f64 = 330.0;
/// So many messages that are over are held; others are in a file.
const MESSAGES_HELD: f64 = 131_072.0;
const OF_OPEN_MESSAGE: f64 = 1_200.0;
/// Seconds: until a program has started and has written its files, of a host and its links until
/// they are built, of a message, and of a packet-hop where what is touched is near, and where not.
const STARTING: f64 = 10e-3;
const BUILDING: f64 = 10e-6;
const MESSAGE: f64 = 2.5e-6;
const HOP_NEAR: f64 = 0.2e-6;
const HOP_FAR: f64 = 0.4e-6;
/// From so many hosts on, it is not.
const FAR: f64 = 4_000.0;

/// A message has at least this share of a link.
const LEFT_MIN: f64 = 0.05;

/// From here on a run is large: somebody who started it by mistake would wait, or run out of
/// memory.
const LARGE: Estimate = Estimate { memory: 1e9, seconds: 60.0 };

/// Bytes of memory of so many messages that are over.
pub(crate) fn memory_of_messages(messages: f64) -> f64 {
    messages.min(MESSAGES_HELD) * OF_MESSAGE
}

/// Since the start.
pub(crate) fn seconds(at: Time) -> f64 {
    at.as_us_f64() / 1e6
}

/// What a scenario says of its traffic.
pub(crate) struct Expected {
    pub(crate) asked: Asked,
    /// Messages, as far as that is known.
    pub(crate) messages: f64,
    /// The end of the traffic that counts, where that is known: about.
    pub(crate) until_s: Option<f64>,
}

/// What is known of its amount.
pub(crate) enum Asked {
    /// Open loops draw messages of so many packets with payload in all.
    Drawn { packets_per_s: f64 },
    /// Messages of so many bytes of payload are listed, beside open loops.
    Listed { bytes: f64, bytes_per_s: f64 },
    /// Something goes on for as long as it is let.
    Loops,
}

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

    /// About how much a run takes; `None` where that is not known: of queries and the like.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        if self.demand.left_out > 0 {
            return None;
        }
        let (hosts, links) = (f64::from(self.topology.hosts()), self.topology.links().len() as f64);
        let payload = self.payload();
        // Senders without a window keep some round trips in flight, until something stops them.
        let window = self.transports.iter().map(|t| t.first_window).max().unwrap_or(0);
        let product = self.topology.bandwidth_delay();
        let window = window.min(4 * product).max(payload as u64) as f64;
        let (messages, open, sent) = self.messages(payload);
        let hops = self.hops(sent);
        let active = hosts.min(messages.max(self.demand.flows.total()));
        let hop = if hosts < FAR { HOP_NEAR } else { HOP_FAR };
        // Jobs alone have the messages of jobs together.
        let runs = if self.measure.alone { 2.0 } else { 1.0 };
        Some(Estimate {
            memory: BASE
                + hosts * OF_HOST
                + links * OF_LINK
                + memory_of_messages(messages)
                + self.demand.jobs
                + open * OF_OPEN_MESSAGE
                + active * window / payload * OF_PACKET,
            seconds: runs * (STARTING + hosts * BUILDING + messages * MESSAGE + hops * hop),
        })
    }

    /// The payload of the transport with the shortest packets.
    fn payload(&self) -> f64 {
        let payload = |t: &crate::transport::Transport| f64::from(t.framing.payload.max(1));
        self.transports.iter().map(payload).fold(f64::INFINITY, f64::min)
    }

    /// Packet-hops of so many bytes: each packet of data has its acknowledgement.
    fn hops(&self, bytes: f64) -> f64 {
        bytes / self.payload() * f64::from(self.topology.longest_path()) * 2.0
    }

    /// About how many packet-hops a second of simulated time has. Where the traffic does not say,
    /// as many as hosts can send.
    pub(crate) fn hops_per_s(&self) -> f64 {
        let topology = &*self.topology;
        let hosts = topology.links().iter().take(topology.hosts() as usize);
        let most = hosts.map(|link| link.rate.0 as f64 / 8.0).sum();
        if self.demand.left_out > 0 {
            return self.hops(most);
        }
        let needed =
            self.demand.bytes.bottleneck(topology).map_or(0.0, |busiest| busiest.seconds());
        let seconds = (seconds(self.last_instant())).max(needed);
        let (_, _, sent) = self.messages(self.payload());
        self.hops((sent / seconds.max(1e-12)).min(most))
    }

    /// About how many messages there are, how many at once, and their bytes: with `payload` for
    /// those that are shorter, which take a packet, too.
    fn messages(&self, payload: f64) -> (f64, f64, f64) {
        let (demand, topology) = (&self.demand, &*self.topology);
        let seconds = seconds(self.last_instant());
        let rates = topology.links().iter().take(topology.hosts() as usize);
        let carried: f64 = rates.map(|link| link.rate.0 as f64 / 8.0).sum();
        let (listed, drawn) = (demand.listed as f64, demand.messages_per_s * seconds);
        // What is listed for one instant is all there at once.
        let needed = demand.bytes.bottleneck(topology).map_or(0.0, |busiest| busiest.seconds());
        let spread = demand.last_start.as_us_f64() / 1e6;
        let at_once = (1.0 - spread / needed.max(1e-12)).clamp(0.0, 1.0);
        let mut messages = listed + drawn;
        let mut sent = demand.bytes.total().max(listed * payload)
            + (demand.rate.total() * seconds).max(drawn * payload);
        // Loops have their share of the links, and wait for each message.
        let bottlenecked = demand.flows.bottlenecked(topology) * seconds;
        let share = bottlenecked / demand.flows.total().max(1.0);
        let looping: f64 = demand.loops.iter().map(|of| of.connections).sum();
        sent += share * (demand.flows.total() - looping).max(0.0);
        let rtt = topology.longest_rtt();
        for of in &demand.loops {
            let each = (rtt + of.gap).as_us_f64() / 1e6;
            let rounds = of.connections * seconds / each.max(1e-12);
            let rounds = rounds.min(share * of.connections / of.size.max(1.0));
            messages += rounds;
            sent += rounds * of.size.max(payload);
        }
        let limit = self.measure.limit.as_us_f64() / 1e6;
        // Hosts receive no more than their links carry until the end.
        let waiting = demand.in_turn as f64;
        (
            messages,
            (listed - waiting) * at_once + looping,
            sent.min(carried * limit + messages * payload),
        )
    }

    /// What the traffic says.
    pub(crate) fn expected(&self) -> Expected {
        let demand = &self.demand;
        let ends = Some(demand.loops_until).filter(|&until| until > Time::ZERO);
        let until = self.measure.to.or(ends).map(seconds);
        let until = until.map(|until| until + self.draining(until - seconds(self.measure.from)));
        let drawn = demand.messages_per_s * until.unwrap_or(0.0);
        let (bytes, bytes_per_s) = (demand.bytes.total(), demand.rate.total());
        let asked = match (demand.left_out > 0 || demand.flows.total() > 0.0, demand.listed) {
            (true, _) => Asked::Loops,
            (false, 0) => Asked::Drawn { packets_per_s: demand.packets_per_s },
            (false, _) => Asked::Listed { bytes, bytes_per_s },
        };
        Expected { asked, messages: demand.listed as f64 + drawn, until_s: until }
    }

    /// How long after a window of `window` seconds the last message that an open loop began in it
    /// is complete: the largest of those that are to be expected, at the rate that others leave to
    /// it.
    fn draining(&self, window: f64) -> f64 {
        let (demand, topology) = (&self.demand, &*self.topology);
        let busiest = demand.rate.bottleneck(topology).map_or(0.0, |busiest| busiest.seconds());
        let rate = topology.links().first().map_or(1.0, |link| link.rate.0 as f64 / 8.0);
        let left = rate * (1.0 - busiest).max(LEFT_MIN);
        let takes = |(per_s, sizes): &(f64, SizeDist)| {
            let count = (per_s * window).max(1.0);
            sizes.sample(1.0 - 1.0 / (count + 1.0)) as f64 / left
        };
        let longest = demand.drawn.iter().map(takes).fold(0.0, f64::max);
        // It begins at any instant of the window.
        if longest < window { longest * longest / (2.0 * window) } else { longest - window / 2.0 }
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
        if topology.plane_count() > 1 {
            row("  planes, a port of each host into each", topology.plane_count().to_string());
        }
        if let Some(link) = topology.links().first() {
            row("  rate of a host's link", link.rate.to_string());
        }
        row("transport", self.kinds("transport"));
        row("queue", self.kinds("queue"));
        row("traffic", self.kinds("traffic"));
        let product = topology.bandwidth_delay();
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
        if let Some(estimate) = self.estimate() {
            let time = Dur((estimate.seconds * 1e12).min(1e19) as u64);
            row("memory, about", bytes(estimate.memory));
            row("time of one thread, about", for_people(time));
        }
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
