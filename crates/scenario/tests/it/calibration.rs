//! `engine.calibrate` and `engine.level = "auto"`: corrections from a sample, beside runs of all
//! messages packet by packet.

use std::path::Path;

use metrics::{Calibration, FlowRow, nearest_rank};
use trimline_scenario::{Options, Results, Scenario, Trace, evaluate};
use units::Time;

use crate::flow_level::{LEAF_SPINE, NDP, TRIMMING, refused};

/// Short messages, which wait in queues that fluids do not have.
const SHORT: &str = "[traffic]\nkind = \"poisson\"\ndistribution = \"homa-w3\"\nload = 0.6\n\
                     [measure]\nfrom = \"200us\"\nto = \"1200us\"\n";
const CALIBRATED: [&str; 2] = ["engine.level=flow", "engine.calibrate=0.4"];
const HALF_WAY: Time = Time(400_000_000);
const SAMPLED: Time = Time(600_000_000);

fn text(rest: &str) -> String {
    format!(
        "name = \"levels\"\nseed = 1\n[topology]\n{LEAF_SPINE}\n[transport]\n{NDP}\n[queue]\n\
         {TRIMMING}\n[routing]\nmode = \"permute\"\n{rest}"
    )
}

fn read(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("levels.toml", text, Path::new(""), &set);
    scenario.unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn ran(text: &str, set: &[&str]) -> Results {
    evaluate(&read(text, set), &Options::default(), &mut |_| ()).unwrap()
}

fn auto(text: &str, set: &[&str]) -> Calibration {
    let auto = ["engine.level=auto", "engine.calibrate=0.4", "engine.error=0.9"];
    ran(text, &[&auto[..], set].concat()).summary.calibration
}

/// Mean, median and 99th percentile of the slowdowns of measured messages shorter than 10 KB.
fn slowdowns(rows: &[FlowRow], is_in: impl Fn(&FlowRow) -> bool) -> [f64; 3] {
    let short = |row: &&FlowRow| row.measured && row.size < Some(10_000) && is_in(row);
    let mut all: Vec<f64> = rows.iter().filter(short).filter_map(FlowRow::slowdown).collect();
    all.sort_by(f64::total_cmp);
    let at = |permille| nearest_rank(&all, permille).unwrap();
    [all.iter().sum::<f64>() / all.len() as f64, at(500), at(990)]
}

fn off(of: [f64; 3], truth: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|at| of[at] / truth[at] - 1.0)
}

/// The errors that are stated are those of the later half of the sample; and what the sample knows
/// nothing of is nearer to packets than without it.
#[test]
fn a_sample_corrects_what_follows_and_states_its_error() {
    let text = text(SHORT);
    let (packets, fluids) = (ran(&text, &[]).flows, ran(&text, &["engine.level=flow"]).flows);
    let corrected = ran(&text, &CALIBRATED);
    let of = &corrected.summary.calibration;
    assert_eq!(of.level.as_deref(), Some("flow"), "{of:?}");
    let later = |row: &FlowRow| row.start >= SAMPLED;
    let truth = slowdowns(&packets, later);
    let (before, after) =
        (off(slowdowns(&fluids, later), truth), off(slowdowns(&corrected.flows, later), truth));
    println!("{before:.3?} to {after:.3?}; held out {of:?}");
    for (before, after) in before.iter().zip(after) {
        assert!(after.abs() < before.abs() / 2.0, "{before:.3} to {after:.3}");
    }
    let short = &of.by_size[0];
    // Messages are halved by number, not by time.
    let held = |row: &FlowRow| row.start >= HALF_WAY && row.start < SAMPLED;
    let stated = short.uncorrected;
    let expected = off(slowdowns(&fluids, held), slowdowns(&packets, held));
    for (stated, expected) in [stated.mean, stated.p50, stated.p99].into_iter().zip(expected) {
        assert!((stated.unwrap() - expected).abs() < 0.1, "{stated:?}, {expected}");
    }
    assert!(of.held_out * 2 <= of.sample + 1 && short.count > 500, "{of:?}");
    for row in &corrected.flows {
        assert!(row.fct().is_none_or(|fct| fct.0 + 2 >= row.ideal.0), "sooner than alone: {row:?}");
        assert!(row.acked.is_none_or(|acked| Some(acked) > row.finish), "{row:?}");
    }
}

/// An incast after the sample, of which it knows nothing.
#[test]
fn traffic_that_comes_after_the_sample_is_not_taken_for_known() {
    let poisson = "[[traffic]]\nkind = \"poisson\"\nsize = \"2KB\"\nload = 0.4\n";
    let incast = "[[traffic]]\nkind = \"incast\"\nreceiver = 1\nsenders = 3\nsize = \"50KB\"\n\
                  start = \"900us\"\n[measure]\nfrom = \"200us\"\nto = \"1200us\"\n";
    let text = text(&format!("{poisson}{incast}"));
    let why = auto(&text, &[]).why.unwrap();
    let expected = "packets, since the sample has nothing like 3 messages, for example of 50000 \
                    bytes of traffic 1";
    assert_eq!(why, expected);
    let set = ["engine.level=auto", "engine.calibrate=0.4", "engine.error=0.9"];
    let (auto, packets) = (ran(&text, &set), ran(&text, &[]));
    assert_eq!((auto.summary.digest, auto.flows), (packets.summary.digest, packets.flows));
    let warnings = ran(&text, &CALIBRATED).summary.warnings;
    assert!(warnings.iter().any(|warning| warning.contains("not corrected")), "{warnings:?}");
}

#[test]
fn corrected_runs_repeat_with_any_number_of_threads() {
    let read = read(&text(SHORT), &CALIBRATED);
    let digest = |threads| {
        let options = Options { threads: Some(threads), ..Options::default() };
        evaluate(&read, &options, &mut |_| ()).unwrap().summary.digest
    };
    let one = digest(1);
    assert_eq!(one, digest(2));
    assert_ne!(one, ran(&text(SHORT), &["engine.level=flow"]).summary.digest);
}

#[test]
fn auto_takes_the_level_whose_error_is_accepted() {
    let text = text(SHORT);
    let set = |error| ["engine.level=auto", "engine.calibrate=0.4", error];
    let rough = ran(&text, &set("engine.error=0.9"));
    assert_eq!(rough.summary.digest, ran(&text, &CALIBRATED).summary.digest);
    let fine = ran(&text, &set("engine.error=0.001"));
    assert_eq!(fine.summary.digest, ran(&text, &[]).summary.digest, "all packets, as ever");
    let why = fine.summary.calibration.why.unwrap();
    assert!(why.starts_with("packets, since the largest error held out is "), "{why}");
    let traced =
        Options { trace: Trace { packets: true, ..Trace::default() }, ..Options::default() };
    let read = read(&text, &set("engine.error=0.9"));
    let traced = evaluate(&read, &traced, &mut |_| ()).unwrap().summary.calibration;
    assert_eq!(traced.why.as_deref(), Some("packets, since a trace is of packets"));
}

/// What flow level, or a sample, has no answer to.
#[test]
fn auto_takes_packets_where_it_must_and_says_why() {
    let flow = "[traffic]\nkind = \"random\"\nsources = 0\ndestinations = 1\nsize = \"1KB\"\n";
    let few = format!("{flow}[measure]\nto = \"10us\"\n");
    let late = format!(
        "{SHORT}[[fault]]\nlink = \"tor 0 -> agg 0\"\nat = \"1ms\"\naction = \"rate\"\n\
         rate = \"15Gbps\"\n"
    );
    let loops = "[traffic]\nkind = \"closed-loop\"\nconnections = 1\ngap = \"1us\"\n\
                 gap_kind = \"fixed\"\nkeep_destination = true\nsize = \"10KB\"\n\
                 [measure]\nto = \"100us\"\n";
    for (rest, set, why) in [
        (SHORT, "measure.packet_latency=true", "is of packets, and this is flow level"),
        (flow, "seed=1", "the measurement window, which has no end"),
        (&few, "seed=1", "the sample has 1 messages, 200 are needed"),
        (&late, "routing.reroute_after=1us", "the sample is over before the fault at 1ms"),
        (loops, "seed=1", "`closed-loop` waits for messages"),
    ] {
        let found = auto(&text(rest), &[set]);
        assert_eq!(found.level.as_deref(), Some("packet"), "{set}: {found:?}");
        let said = found.why.unwrap();
        assert!(said.starts_with("packets, since ") && said.contains(why), "{set}: {said}");
    }
}

#[test]
fn wrong_keys_are_errors_where_they_stand() {
    let loops = SHORT.replace("poisson", "closed-loop").replace(
        "load = 0.6",
        "connections = 1\ngap = \"1us\"\ngap_kind = \"fixed\"\nkeep_destination = true",
    );
    let endless = SHORT.replace("to = \"1200us\"\n", "limit = \"1s\"\n");
    let listed = "[traffic]\nkind = \"permutation\"\nsize = \"1KB\"\n[measure]\nto = \"1ms\"\n";
    let named = format!("{SHORT}[sweep]\nmetrics = [\"packets.bounced\"]\n");
    let flow = "engine.level=flow";
    let auto = "engine.level=auto";
    for (rest, set, why) in [
        (SHORT, vec![flow, "engine.calibrate=0"], "from 0.01 to 0.9"),
        (SHORT, vec![flow, "engine.calibrate=1.0"], "from 0.01 to 0.9"),
        (SHORT, vec!["engine.calibrate=0.1"], "`level = \"flow\"` or `\"auto\"`"),
        (SHORT, vec![flow, "engine.error=0.1"], "`level = \"auto\"`"),
        (SHORT, vec![auto, "engine.calibrate=0.1", "engine.error=0"], "from 0.001 to 1"),
        (SHORT, vec![auto, "engine.calibrate=0.1", "engine.error=2.0"], "from 0.001 to 1"),
        (SHORT, vec![auto, "engine.calibrate=0.1"], "`auto` needs `error`"),
        (SHORT, vec![auto, "engine.error=0.1"], "`auto` needs `calibrate`"),
        (SHORT, vec![auto, "engine.skip=true"], "no `skip`"),
        (&loops, vec![flow, "engine.calibrate=0.1"], "`closed-loop` waits for messages"),
        (&endless.replace("load", "until = \"1ms\"\nload"), CALIBRATED.to_vec(), "has no end"),
        (listed, CALIBRATED.to_vec(), "the sample has 16 messages, 200 are needed"),
        (&named, vec![flow], "`packets.bounced` is of packets"),
    ] {
        let said = refused(&text(rest), &set);
        assert!(said.contains(why), "{set:?}: {said}");
    }
}

/// Links that pause one another: flow level has no pauses, so that it sees no deadlock.
#[test]
fn a_deadlock_of_pauses_is_refused() {
    let pauses = "kind = \"lossless\"\nbuffer = \"400KB\"\nreserve = \"0B\"\nheadroom = \"auto\"\n\
                  headroom_beside = true\nresume_offset = \"0B\"\nlossless = [0]\n\
                  control_class = 3\nalpha = 0.5\nschedule = \"strict\"";
    let rdma = "kind = \"rdma\"\nrule = \"none\"\npreset = \"roce\"\npayload = \"4096B\"";
    let graph = "kind = \"jellyfish\"\nswitches = 8\ndegree = 3\nhosts_per_switch = 2\n\
                 graph_seed = 1\npaths = 8\nstretch = \"unlimited\"\nlink_rate = \"10Gbps\"\n\
                 link_delay = \"1us\"";
    let text = |topology: &str| {
        format!(
            "name = \"pauses\"\nseed = 1\n[engine]\nlevel = \"flow\"\n[topology]\n{topology}\n\
             [transport]\n{rdma}\n[queue]\n{pauses}\n[routing]\nmode = \"ecmp\"\n[traffic]\n\
             kind = \"permutation\"\nsize = \"1MB\"\n"
        )
    };
    let said = refused(&text(graph), &[]);
    assert!(said.contains("a deadlock of pauses, which this fabric can have,"), "{said}");
    let said = refused(&text(LEAF_SPINE), &["queue.deadlock_after=1ms"]);
    assert!(said.contains("a deadlock of pauses is of packets"), "{said}");
    read(&text(LEAF_SPINE), &[]);
}
