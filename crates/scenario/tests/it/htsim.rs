//! NDP, TCP, DCTCP and MPTCP beside csg-htsim on the same connection matrices: the points of
//! tests/golden/htsim/points.csv, whose README says what is compared and what differs.
//!
//! `make test` runs a few points over few seeds, `make golden` (`TRIMLINE_GOLDEN=all`) all.

use std::collections::BTreeMap;

use metrics::{long_flow_goodputs, mean_and_interval};
use trimline_scenario::{Options, Scenario, evaluate};
use units::Dur;

use crate::golden;

/// Its directory in tests/golden.
const PEER: &str = "htsim";

/// Transport, matrix and seeds of the points that `make test` runs; of each the first in the list.
const QUICK: &[(&str, &str, usize)] = &[
    ("ndp", "permutation", 2),
    ("ndp", "random", 2),
    ("ndp", "incast_32", 2),
    ("tcp", "racks", 2),
    ("dctcp", "racks", 2),
];

/// Statistics that are not held to the bar, by transport and matrix; the README says why.
const APART: &[(&str, &str, &[&str])] = &[
    ("tcp", "racks", &["mean", "last", "timeouts"]),
    ("tcp", "incast_8", &["mean", "median", "last", "timeouts"]),
    ("tcp", "permutation_long", &["last", "timeouts"]),
    ("tcp", "random_long", &["last", "timeouts"]),
    ("dctcp", "incast_8", &["first"]),
    ("dctcp-marked", "incast_8", &["first"]),
    ("mptcp", "permutation_unbounded", &["least"]),
];

/// The values of each statistic, one for each seed.
type Statistics = BTreeMap<String, Vec<f64>>;

/// A line of points.csv.
struct Point {
    /// Its columns but for the seeds, which are those of peer.csv too.
    setting: Vec<String>,
    seeds: usize,
}

impl Point {
    fn of(row: &[String]) -> Self {
        let (seeds, setting) = row.split_last().unwrap();
        Self { setting: setting.to_vec(), seeds: seeds.parse().unwrap() }
    }

    fn transport(&self) -> &str {
        &self.setting[0]
    }

    fn matrix(&self) -> &str {
        &self.setting[1]
    }

    /// Share of the peer's value that ours may be off.
    fn bar(&self) -> f64 {
        match self.transport() {
            "ndp" => 0.02,
            "mptcp" => 0.03,
            _ => 0.05,
        }
    }

    /// What this point has other than the transport's scenario.
    fn edits(&self) -> Vec<String> {
        let [_, matrix, rate, queue, window, paths] = self.setting.as_slice() else {
            panic!("{:?}", self.setting)
        };
        let queue: u64 = queue.parse::<u64>().unwrap() * 9000;
        let mut edits = vec![
            format!("traffic.file={matrix}.cm"),
            format!("topology.link_rate={rate}Gbps"),
            format!("queue.capacity={queue}B"),
        ];
        if self.transport() == "ndp" {
            // The peer's pacer has 99 % of the link's rate.
            let pull = 9064.0 * 8000.0 / rate.parse::<f64>().unwrap() / 0.99;
            let mode = if paths == "rand" { "spray" } else { "permute" };
            edits.extend([
                format!("queue.header_capacity={}B", 2 * queue),
                format!("transport.initial_window={window}"),
                format!("transport.pull_interval={}ps", pull.floor()),
                format!("routing.mode={mode}"),
            ]);
        }
        edits
    }

    fn peer(&self) -> Statistics {
        let mut of = Statistics::new();
        for row in golden::rows(PEER, "peer.csv") {
            let (setting, value) = row.split_at(self.setting.len());
            if setting == self.setting {
                of.entry(value[1].clone()).or_default().push(value[2].parse().unwrap());
            }
        }
        of
    }

    fn ours(&self, seeds: usize) -> Statistics {
        let name = format!("{}.toml", self.transport().trim_end_matches("-marked"));
        let text = std::fs::read_to_string(golden::dir(PEER).join(&name)).unwrap();
        let mut of = Statistics::new();
        for seed in 1..=seeds {
            let mut edits = self.edits();
            edits.push(format!("seed={seed}"));
            let scenario = Scenario::parse(&name, &text, &golden::dir(PEER), &edits);
            let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
            let options = Options { threads: Some(1), ..Options::default() };
            let results = evaluate(&scenario, &options, &mut |_| ()).unwrap();
            let values = if self.transport() == "mptcp" {
                long_flow_goodputs(&results.flows, results.window)
            } else {
                // The peer's flows end when the sender has the last acknowledgement.
                let times = results.flows.iter().map(|row| row.acked.unwrap().since(row.start));
                times.map(Dur::as_us_f64).collect()
            };
            for (name, value) in self.statistics(values) {
                of.entry(name.to_owned()).or_default().push(value);
            }
        }
        of
    }

    /// As in repeat.py.
    fn statistics(&self, mut values: Vec<f64>) -> Vec<(&'static str, f64)> {
        values.sort_by(f64::total_cmp);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let mut of = vec![("mean", mean(&values)), ("median", values[(values.len() - 1) / 2])];
        match self.transport() {
            "mptcp" => of.push(("least", values[0])),
            _ => of.push(("last", values[values.len() - 1])),
        }
        if ["racks", "incast_8"].contains(&self.matrix()) {
            of.push(("first", values[0]));
        }
        if self.transport() == "tcp" {
            let rest: Vec<f64> = values.iter().copied().filter(|us| *us < 200_000.0).collect();
            of.push(("mean without timeouts", mean(&rest)));
            of.push(("timeouts", (values.len() - rest.len()) as f64));
        }
        of
    }

    fn is_apart(&self, statistic: &str) -> bool {
        let of = APART.iter().find(|(transport, matrix, _)| {
            (*transport, *matrix) == (self.transport(), self.matrix())
        });
        of.is_some_and(|(_, _, statistics)| statistics.contains(&statistic))
    }

    /// What is off by more than the bar.
    fn compare(&self, seeds: usize) -> Vec<String> {
        let (peer, ours) = (self.peer(), self.ours(seeds));
        let mut wrong = Vec::new();
        for (name, values) in &peer {
            let (theirs, their_half) = mean_and_interval(values).unwrap();
            let (mean, half) = mean_and_interval(&ours[name]).unwrap();
            let apart = self.is_apart(name);
            let line = format!(
                "{}, {name}: htsim {theirs:.6} +- {:.3}, here {mean:.6} +- {:.3}, ratio {:.4}{}",
                self.setting.join(" "),
                their_half.unwrap(),
                half.unwrap(),
                mean / theirs,
                if apart { ", apart" } else { "" },
            );
            println!("{line}");
            if !apart && (mean / theirs - 1.0).abs() > self.bar() {
                wrong.push(line);
            }
        }
        wrong
    }
}

/// The seeds to run of a point: none, if it is not among the quick ones and not all are wanted.
fn seeds(points: &[Point], at: usize) -> usize {
    if golden::is_whole() {
        return points[at].seeds;
    }
    let same = |point: &&Point| {
        point.transport() == points[at].transport() && point.matrix() == points[at].matrix()
    };
    let is_first = !points[..at].iter().any(|point| same(&point));
    let is_quick = |(transport, matrix, _): &&(&str, &str, usize)| {
        *transport == points[at].transport() && *matrix == points[at].matrix()
    };
    QUICK.iter().find(is_quick).filter(|_| is_first).map_or(0, |(_, _, seeds)| *seeds)
}

#[test]
fn completion_times_are_those_of_htsim() {
    let points: Vec<Point> =
        golden::rows(PEER, "points.csv").iter().map(|row| Point::of(row)).collect();
    let mut wrong = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let seeds = seeds(&points, at);
        if seeds > 0 {
            wrong.extend(point.compare(seeds));
        }
    }
    assert!(wrong.is_empty(), "off by more than the bar:\n{}", wrong.join("\n"));
}
