//! The metrics of a run by name: the numbers of its summary, more of its messages, and the tiers of
//! its fabric.

use std::borrow::Cow;
use std::collections::BTreeMap;

use metrics::{
    FlowRow, LinkRow, Moments, Summary, TrafficStats, acked_us, fct_us, jain, long_flow_goodputs,
    nearest_rank, slowdowns,
};
use scenario::{Results, Scenario};
use serde_json::Value;
use units::Dur;

use crate::by_size;
use crate::run::Run;

/// Metrics by name. Names of tables and tiers have `_` for `-`, which is minus in a formula.
pub(crate) type Metrics = BTreeMap<String, f64>;

/// What a curve can show the distribution of, over messages.
const OF_MESSAGES: [&str; 6] =
    ["fct_us", "acked_us", "slowdown", "flow_goodput_gbps", "timeouts", "fast_retransmits"];

/// What a curve can show the distribution of, over packets.
const PACKET_LATENCY: &str = "packet_latency_us";

/// What a curve can show the distribution of, over the samples of transports.
const RTT: &str = "rtt_us";

/// What a curve can show the distribution of, over jobs.
const JOB_TIME: &str = "job_time_us";

/// What is worked out from messages beside what the summary says of them.
const MORE_OF_FLOWS: [&str; 12] = [
    "fct_us.min",
    "acked_us.mean",
    "acked_us.stdev",
    "acked_us.p50",
    "acked_us.p99",
    "acked_us.max",
    "flow_goodput_gbps.worst_decile",
    "flow_goodput_gbps.jain",
    "small.fct_us.p50",
    "small.fct_us.p90",
    "small.fct_us.p99",
    "small.slowdown.p99",
];

/// Messages shorter than this are small (pFabric, SIGCOMM 2013; CoNEXT 2016, section 5.1), bytes.
const SMALL: u64 = 100_000;

/// All metrics of a run but those of its probe.
pub(crate) fn of(scenario: &Scenario, results: &Results) -> Metrics {
    let mut metrics = Metrics::new();
    flatten("", &json(&results.summary), &mut |name, value| {
        metrics.extend(value.map(|value| (name.replace('-', "_"), value)));
    });
    metrics.extend(more_of_flows(&results.flows, results));
    for (table, rows) in tables(scenario, results) {
        let named = |(name, value)| (format!("traffic.{table}.{name}"), value);
        metrics.extend(more_of_flows(&rows, results).into_iter().map(named));
    }
    metrics.insert("hosts".to_owned(), f64::from(scenario.topology().hosts()));
    metrics.extend(of_tiers(&results.links));
    metrics.extend(of_digest(&results.summary.digest));
    metrics
}

/// The halves of a digest: all of it is more than a number of a formula has digits for.
const DIGEST: [&str; 2] = ["digest.high", "digest.low"];

fn of_digest(digest: &str) -> Metrics {
    let halves = digest.split_at_checked(8).map(|(high, low)| [high, low]);
    let numbers = halves.into_iter().flatten().map(|half| u32::from_str_radix(half, 16).ok());
    let named = DIGEST.into_iter().zip(numbers);
    named.filter_map(|(name, half)| Some((name.to_owned(), f64::from(half?)))).collect()
}

/// The messages of each traffic table that has a name.
fn tables(scenario: &Scenario, results: &Results) -> Vec<(String, Vec<FlowRow>)> {
    let rows = |table: u16| results.flows.iter().filter(|r| r.traffic == table).copied().collect();
    let named = (0..).zip(scenario.traffic_names());
    named.filter_map(|(i, name)| Some((name.as_ref()?.replace('-', "_"), rows(i)))).collect()
}

/// Whether `name` can be a metric of `run`. Which tiers there are, only its fabric knows; for
/// tables see [`table_of`].
pub(crate) fn is_known(name: &str, run: &Run) -> bool {
    match table_of(name) {
        Some((_, metric)) => of_messages().any(|known| known == metric),
        None => name.starts_with("tier.") || names(run).iter().any(|known| known == name),
    }
}

/// The traffic table that `name` is about, as formulas write it, and the rest of the name.
pub(crate) fn table_of(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("traffic.")?.split_once('.')
}

/// The names of the traffic tables of `scenario`, as formulas write them.
pub(crate) fn table_names(scenario: &Scenario) -> Vec<String> {
    let names = scenario.traffic_names().iter().flatten();
    names.map(|name| name.replace('-', "_")).collect()
}

/// The metrics of `run`, those of tables and tiers left out.
pub(crate) fn names(run: &Run) -> Vec<String> {
    let mut names = vec!["hosts".to_owned()];
    flatten("", &json(&Summary::default()), &mut |name, _| names.push(name));
    names.extend(MORE_OF_FLOWS.map(str::to_owned));
    names.extend(DIGEST.map(str::to_owned));
    names.extend(by_size::names());
    let of_probe = run.probe.iter().flat_map(|probe| probe.metrics);
    names.extend(of_probe.map(|name| (*name).to_owned()));
    names
}

/// The metrics of a traffic table, without its name.
fn of_messages() -> impl Iterator<Item = String> {
    let mut names: Vec<String> = MORE_OF_FLOWS.map(str::to_owned).to_vec();
    names.extend(by_size::names());
    flatten("", &json(&TrafficStats::default()), &mut |name, _| names.push(name));
    names.into_iter()
}

/// What the distribution `name` is over, or what there is.
pub(crate) fn check_distribution(name: &str) -> Result<(), Vec<&'static str>> {
    let of_table = table_of(name);
    let metric = of_table.map_or(name, |(_, metric)| metric);
    let known: Vec<&str> = OF_MESSAGES.into_iter().chain([PACKET_LATENCY, RTT, JOB_TIME]).collect();
    let over_packets = metric == PACKET_LATENCY;
    if known.contains(&metric) && !(over_packets && of_table.is_some()) {
        Ok(())
    } else {
        Err(known)
    }
}

/// What a curve can show of single messages.
const OF_EACH_MESSAGE: [&str; 2] = ["fct_us", "acked_us"];

/// Whether there is a scatter plot `name`, or what there is.
pub(crate) fn check_scatter(name: &str) -> Result<(), [&'static str; 2]> {
    let metric = table_of(name).map_or(name, |(_, metric)| metric);
    if OF_EACH_MESSAGE.contains(&metric) { Ok(()) } else { Err(OF_EACH_MESSAGE) }
}

/// The values whose distribution is called `name`, ascending.
pub(crate) fn distribution(name: &str, scenario: &Scenario, results: &Results) -> Vec<f64> {
    if name == PACKET_LATENCY {
        let latencies = results.latencies.iter().flat_map(|l| &l.ascending);
        return latencies.map(|latency| latency.as_us_f64()).collect();
    }
    let (table, metric) = table_of(name).map_or((None, name), |(of, name)| (Some(of), name));
    let named = |traffic: u16| scenario.traffic_names().get(usize::from(traffic))?.as_deref();
    let of_table = |traffic: u16| {
        table.is_none_or(|of| named(traffic).is_some_and(|name| name.replace('-', "_") == of))
    };
    match metric {
        RTT => {
            let rtts = results.rtts.iter().filter(|(_, traffic)| of_table(*traffic));
            return rtts.map(|(rtt, _)| rtt.as_us_f64()).collect();
        }
        JOB_TIME => {
            let jobs = results.jobs.iter().filter(|job| of_table(job.traffic));
            let mut times: Vec<f64> = metrics::job_times_us(jobs).collect();
            times.sort_unstable_by(f64::total_cmp);
            return times;
        }
        _ => {}
    }
    let rows = messages_of(name, scenario, results);
    match table_of(name).map_or(name, |(_, metric)| metric) {
        "fct_us" => fct_us(&rows),
        "acked_us" => acked_us(&rows),
        "slowdown" => slowdowns(&rows),
        "timeouts" => counts(&rows, |row| row.timeouts),
        "fast_retransmits" => counts(&rows, |row| row.fast_retransmits),
        _ => long_flow_goodputs(&rows, results.window),
    }
}

/// A count of each measured message, ascending.
fn counts(rows: &[FlowRow], count: fn(&FlowRow) -> u32) -> Vec<f64> {
    let mut counts: Vec<u32> = rows.iter().filter(|row| row.measured).map(count).collect();
    counts.sort_unstable();
    counts.into_iter().map(f64::from).collect()
}

/// When each message that the scatter plot `name` is about was submitted, in seconds, and its time
/// in microseconds; measured ones that completed.
pub(crate) fn scatter(name: &str, scenario: &Scenario, results: &Results) -> Vec<(f64, f64)> {
    let rows = messages_of(name, scenario, results);
    let acked = table_of(name).map_or(name, |(_, metric)| metric) == "acked_us";
    let end = |row: &FlowRow| if acked { row.acked } else { row.finish };
    let dot =
        |row: &FlowRow| Some((row.start.as_us_f64() / 1e6, end(row)?.since(row.start).as_us_f64()));
    rows.iter().filter(|row| row.measured && row.finish.is_some()).filter_map(dot).collect()
}

/// The messages that `name` is about.
fn messages_of<'r>(name: &str, scenario: &Scenario, results: &'r Results) -> Cow<'r, [FlowRow]> {
    let Some((table, _)) = table_of(name) else { return Cow::Borrowed(&results.flows) };
    let of_table = tables(scenario, results).into_iter().find(|(name, _)| name == table);
    Cow::Owned(of_table.map(|(_, rows)| rows).unwrap_or_default())
}

/// [`MORE_OF_FLOWS`] and slowdowns by size, as far as there are values.
fn more_of_flows(rows: &[FlowRow], results: &Results) -> Vec<(String, f64)> {
    let goodputs = long_flow_goodputs(rows, results.window);
    let acked = acked_us(rows);
    let moments: Moments = acked.iter().copied().collect();
    let small = rows.iter().filter(|row| row.size.is_some_and(|size| size < SMALL));
    let small: Vec<FlowRow> = small.copied().collect();
    let small_fct = fct_us(&small);
    let values = [
        fct_us(rows).first().copied(),
        moments.mean(),
        moments.stdev(),
        nearest_rank(&acked, 500),
        nearest_rank(&acked, 990),
        acked.last().copied(),
        worst_decile(&goodputs),
        jain(goodputs.iter().copied()),
        nearest_rank(&small_fct, 500),
        nearest_rank(&small_fct, 900),
        nearest_rank(&small_fct, 990),
        nearest_rank(&slowdowns(&small), 990),
    ];
    let by_size = by_size::names().zip(by_size::values(rows));
    let named = MORE_OF_FLOWS.map(str::to_owned).into_iter().zip(values).chain(by_size);
    named.filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The mean over the lowest tenth of ascending values, at least one.
fn worst_decile(ascending: &[f64]) -> Option<f64> {
    let worst = ascending.get(..ascending.len().div_ceil(10))?;
    (!worst.is_empty()).then(|| worst.iter().sum::<f64>() / worst.len() as f64)
}

/// The distance of Kolmogorov and Smirnov between `samples` and values with weights, both
/// ascending: the greatest difference of their distribution functions.
pub(crate) fn ks_distance(samples: &[f64], weighted: &[(f64, f64)]) -> Option<f64> {
    let whole: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    if samples.is_empty() || whole <= 0.0 {
        return None;
    }
    let (mut most, mut taken, mut weight) = (0.0_f64, 0, 0.0);
    let mut rest = weighted.iter().peekable();
    for (n, sample) in (1..).zip(samples) {
        // Just below the sample, and at it.
        while let Some((_, more)) = rest.next_if(|(value, _)| value < sample) {
            weight += more;
        }
        most = most.max((weight / whole - taken as f64 / samples.len() as f64).abs());
        while let Some((_, more)) = rest.next_if(|(value, _)| value <= sample) {
            weight += more;
        }
        taken = n;
        let next = samples.get(n).is_none_or(|next| next > sample);
        if next {
            most = most.max((weight / whole - taken as f64 / samples.len() as f64).abs());
        }
    }
    Some(most)
}

fn of_tiers(links: &[LinkRow]) -> Metrics {
    let mut tiers: BTreeMap<String, Vec<&LinkRow>> = BTreeMap::new();
    for link in links {
        tiers.entry(link.tier.replace('-', "_")).or_default().push(link);
    }
    let mut metrics = Metrics::new();
    for (tier, links) in tiers {
        let mut add = |name: &str, value: f64| {
            metrics.insert(format!("tier.{tier}.{name}"), value);
        };
        let sum = |get: fn(&LinkRow) -> u64| links.iter().map(|l| get(l)).sum::<u64>() as f64;
        add("trimmed", sum(|l| l.trimmed));
        add("dropped", sum(|l| l.dropped));
        add("bounced", sum(|l| l.bounced));
        add("marked", sum(|l| l.marked));
        add("pauses", sum(|l| l.pauses));
        add("paused_us", links.iter().fold(Dur::ZERO, |all, l| all + l.paused).as_us_f64());
        let longest = links.iter().map(|l| l.max_queue_bytes).max().unwrap_or(0);
        add("max_queue_bytes", longest as f64);
        let used: Vec<f64> = links.iter().filter_map(|l| l.utilization).collect();
        if used.is_empty() {
            continue;
        }
        add("utilization.mean", used.iter().sum::<f64>() / used.len() as f64);
        add("utilization.min", used.iter().copied().fold(f64::INFINITY, f64::min));
        add("utilization.max", used.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    }
    metrics
}

/// A result struct as its JSON, of which the names are the documented ones.
fn json(value: &impl serde::Serialize) -> Value {
    // Structs of numbers and texts: this cannot fail.
    serde_json::to_value(value).unwrap_or_default()
}

/// Every number of `value`, called by its path; `None` where there is nothing to state.
fn flatten(path: &str, value: &Value, found: &mut impl FnMut(String, Option<f64>)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, found);
            }
        }
        Value::Number(n) => found(path.to_owned(), n.as_f64()),
        Value::Null => found(path.to_owned(), None),
        Value::Bool(_) | Value::String(_) | Value::Array(_) => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_by_hand() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(worst_decile(&values), Some(1.5), "two of twenty");
        assert_eq!(worst_decile(&[7.0, 9.0]), Some(7.0), "one at least");
        assert_eq!(worst_decile(&[]), None);
    }

    #[test]
    fn a_digest_is_two_numbers() {
        let halves = of_digest("00000001ffffffff");
        assert_eq!((halves["digest.high"], halves["digest.low"]), (1.0, 4_294_967_295.0));
        assert!(of_digest("1").is_empty());
    }

    #[test]
    fn distances_by_hand() {
        assert_eq!(ks_distance(&[1.0, 2.0], &[(1.0, 3.0), (2.0, 3.0)]), Some(0.0));
        assert_eq!(ks_distance(&[1.0, 1.0], &[(2.0, 1.0)]), Some(1.0));
        assert_eq!(ks_distance(&[3.0, 4.0], &[(2.0, 1.0)]), Some(1.0));
        // At 1: a quarter against a half.
        assert_eq!(ks_distance(&[1.0, 2.0], &[(1.0, 1.0), (2.0, 3.0)]), Some(0.25));
        // Below 5, three quarters are there, and one of two samples.
        assert_eq!(ks_distance(&[1.0, 5.0], &[(1.0, 1.0), (2.0, 2.0), (5.0, 1.0)]), Some(0.25));
        assert_eq!(ks_distance(&[], &[(1.0, 1.0)]), None);
    }

    #[test]
    fn tiers_are_summed() {
        let link = |tier: &str, trimmed, utilization| LinkRow {
            tier: tier.to_owned(),
            trimmed,
            utilization,
            ..LinkRow::default()
        };
        let links =
            [link("tor-up", 3, Some(0.5)), link("tor-up", 4, Some(1.0)), link("x", 1, None)];
        let metrics = of_tiers(&links);
        assert_eq!(metrics["tier.tor_up.trimmed"], 7.0);
        assert_eq!(metrics["tier.tor_up.utilization.mean"], 0.75);
        assert_eq!(metrics["tier.x.trimmed"], 1.0);
        assert!(!metrics.contains_key("tier.x.utilization.mean"));
    }
}
