//! TCP incast beside ns-2.35: the points of tests/golden/ns2/incast.csv, whose README says where
//! they come from. Goodput agrees within 5 %, or the 95 % intervals of five seeds overlap.
//!
//! `make test` runs four points that are quick, `make golden` (`TRIMLINE_GOLDEN=all`) all.

use std::path::Path;

use metrics::mean_and_interval;
use trimline_scenario::{Options, Scenario, evaluate};
use units::{Dur, Time};

use crate::golden;

/// Its directory in tests/golden.
const PEER: &str = "ns2";

/// Payload of a block, bytes: 256 packets of each sender.
const PART: u64 = 256_000;
const SEEDS: usize = 5;

/// A line of incast.csv.
struct Point {
    variant: String,
    senders: usize,
    ties: String,
    window: String,
    queue: u32,
    rto_min: String,
    rto_tick: String,
    delayed_ack: String,
    seconds: u64,
    mbps: f64,
    half: f64,
}

impl Point {
    fn of(row: &[String]) -> Self {
        let [variant, senders, ties, window, queue, rto_min, rto_tick, delayed_ack, rest @ ..] =
            row
        else {
            panic!("{row:?}")
        };
        Self {
            variant: variant.clone(),
            senders: senders.parse().unwrap(),
            ties: ties.clone(),
            window: window.clone(),
            queue: queue.parse().unwrap(),
            rto_min: rto_min.clone(),
            rto_tick: rto_tick.clone(),
            delayed_ack: delayed_ack.clone(),
            seconds: rest[0].parse().unwrap(),
            mbps: rest[1].parse().unwrap(),
            half: rest[2].parse().unwrap(),
        }
    }

    fn scenario(&self, seed: usize) -> String {
        let Self { senders, window, queue, rto_min, rto_tick, delayed_ack, seconds, .. } = self;
        let window = match window.as_str() {
            "unlimited" => {
                "window_cap = \"unlimited\"\ninitial_ssthresh = \"unlimited\"".to_owned()
            }
            window => format!("window_cap = {window}\ninitial_ssthresh = {window}"),
        };
        let hosts = senders + 1;
        let delays = golden::rows(PEER, "delays.csv");
        let link = |sender: usize| {
            let delay = &delays[sender - 1][seed];
            format!("[[topology.link]]\nlink = \"host {sender} -> tor 0\"\ndelay = \"{delay}ns\"\n")
        };
        let links: String = (1..hosts).filter(|_| self.ties == "none").map(link).collect();
        format!(
            r#"
            name = "incast beside ns-2"
            seed = {seed}
            queue = {{ kind = "drop-tail", capacity = "{queue} packets" }}
            routing = {{ mode = "ecmp" }}
            host = {{ clock_ppm = 0, send_jitter = "0" }}
            measure = {{ to = "{seconds}s", limit = "{seconds}s" }}
            [transport]
            kind = "tcp"
            preset = "ns2"
            rule = "newreno"
            recovery = "newreno"
            ecn = false
            mss = "1000B"
            rto_min = "{rto_min}"
            rto_tick = "{rto_tick}"
            delayed_ack = "{delayed_ack}"
            {window}
            [traffic]
            kind = "barrier"
            receiver = 0
            senders = {senders}
            size = "{PART}B"
            request_latency = "50us"
            request_gap = "0"
            connections = "persistent"
            cap = "none"
            [topology]
            kind = "star"
            hosts = {hosts}
            link_rate = "1Gbps"
            link_delay = "25us"
            {links}
            "#
        )
    }

    /// Mb/s of one run: of the blocks that are complete, as incast.tcl counts them.
    fn goodput(&self, seed: usize) -> f64 {
        let scenario = Scenario::parse("ns2.toml", &self.scenario(seed), Path::new(""), &[]);
        let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
        let options = Options { threads: Some(1), ..Options::default() };
        let results = evaluate(&scenario, &options, &mut |_| ()).unwrap();
        let end = Time::ZERO + Dur::from_ms(1_000 * self.seconds);
        let jobs = results.jobs.iter().filter(|job| job.completed && job.end <= end);
        let last = jobs.clone().map(|job| job.end).max().unwrap();
        jobs.map(|job| job.bytes).sum::<u64>() as f64 * 8e-6 / last.since(Time::ZERO).as_s_f64()
    }

    /// One line that says what both have, and whether that is the same.
    fn compare(&self) -> (String, bool) {
        let runs: Vec<f64> = (1..=SEEDS).map(|seed| self.goodput(seed)).collect();
        let (ours, half) = mean_and_interval(&runs).unwrap();
        let (apart, half) = ((ours - self.mbps).abs(), half.unwrap());
        let agrees = apart <= 0.05 * self.mbps || apart <= half + self.half;
        let line = format!(
            "{}, {} senders, ties {}: ns-2 {:.1} +- {:.1}, here {ours:.1} +- {half:.1} Mb/s, \
             ratio {:.3}",
            self.variant,
            self.senders,
            self.ties,
            self.mbps,
            self.half,
            ours / self.mbps,
        );
        (line, agrees)
    }
}

/// Ties `scheduled` are those of ns-2's event list; here they are drawn.
fn is_compared(point: &Point) -> bool {
    let all = golden::is_whole();
    let quick = point.variant == "base" && [24, 64].contains(&point.senders);
    point.ties != "scheduled" && (all || quick)
}

#[test]
fn incast_is_that_of_ns_2() {
    let points: Vec<Point> =
        golden::rows(PEER, "incast.csv").iter().map(|row| Point::of(row)).collect();
    let mut wrong = Vec::new();
    for point in points.iter().filter(|point| is_compared(point)) {
        let (line, agrees) = point.compare();
        println!("{line}{}", if agrees { "" } else { ", apart" });
        if !agrees {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "apart:\n{}", wrong.join("\n"));
}
