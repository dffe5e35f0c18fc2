//! `engine.skip`: time in which everything repeats is left out, beside the exact run.

use std::path::Path;

use trimline_scenario::{Options, Scenario, Simulated, evaluate, simulate};
use units::{Dur, Time};

const NDP: &str = "kind = \"ndp\"\npreset = \"paper\"\npayload = \"9000B\"\ninitial_window = 12";
const TRIMMING: &str = "kind = \"ndp\"\ncapacity = \"8 packets\"";
const DCTCP: &str = "kind = \"tcp\"\nrule = \"dctcp\"\nrecovery = \"sack\"\necn = true\n\
                     preset = \"linux-datacenter\"\nmss = \"8960B\"";
const MARKING: &str = "kind = \"drop-tail\"\ncapacity = \"300 packets\"\n\
                       ecn_threshold = \"20 packets\"";
const RDMA: &str = "kind = \"rdma\"\nrule = \"none\"\npreset = \"roce\"\npayload = \"4096B\"";
const DROP_TAIL: &str = "kind = \"drop-tail\"\ncapacity = \"300 packets\"";
const UET: &str = "kind = \"uet\"\npreset = \"htsim\"\npayload = \"4086B\"\nentropies = 128";
const TRIM_AND_MARK: &str = "kind = \"ndp\"\ncapacity = \"178450B\"\nheader_capacity = \"356900B\"\n\
                             header_weight = 255\nbounce = false\necn_low = \"37350B\"\n\
                             ecn_high = \"145250B\"\nflag_last_hop = true";

const STAR: &str = "kind = \"star\"\nhosts = 9\nlink_rate = \"100Gbps\"\nlink_delay = \"1us\"";
const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n\
                          link_rate = \"100Gbps\"\nuplink_rate = \"100Gbps\"\n\
                          link_delay = \"1us\"";
const PERMUTATION: &str = "[traffic]\nkind = \"permutation\"\nsize = \"100MB\"\n";
const SKIP: &str = "engine.skip=true";

/// So many all-reduces of sixteen ranks, one after the other.
fn ring(steps: u32) -> String {
    format!(
        "kind = \"job\"\nname = \"ring\"\ncollective = \"all-reduce\"\nsize = \"2MiB\"\n\
         steps = {steps}\nranks_per_host = 1\nplacement = \"packed\"\nalgorithm = \"ring\"\n\
         connections = \"persistent\"\n"
    )
}

/// Transport, queue and routing.
type How<'a> = (&'a str, &'a str, &'a str);

const SPRAYED: How<'_> = (NDP, TRIMMING, "permute");
const HASHED: How<'_> = (DCTCP, MARKING, "ecmp");

fn text(topology: &str, (transport, queue, routing): How<'_>, rest: &str) -> String {
    format!(
        "name = \"skip\"\nseed = 1\n[topology]\n{topology}\n[transport]\n{transport}\n\
         [queue]\n{queue}\n[routing]\nmode = \"{routing}\"\n{rest}"
    )
}

fn read(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("skip.toml", text, Path::new(""), &set);
    scenario.unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn ran(text: &str, set: &[&str], threads: u32) -> Simulated {
    let options = Options { threads: Some(threads), check: true, ..Options::default() };
    simulate(&read(text, set), &options, &mut |_| ()).unwrap()
}

/// The completion time at a share of the messages, in microseconds.
fn percentile(ran: &Simulated, share: f64) -> f64 {
    let mut all: Vec<f64> = ran.flows.iter().map(|f| f.fct().unwrap().as_us_f64()).collect();
    all.sort_by(f64::total_cmp);
    all[((all.len() - 1) as f64 * share).round() as usize]
}

fn share(ran: &Simulated) -> f64 {
    ran.outcome.skipped.time.as_us_f64() / ran.outcome.now.as_us_f64()
}

/// Run exactly and with skips, which leave out `least` of the time. The two.
fn beside(text: &str, least: f64) -> (Simulated, Simulated) {
    let (exact, skipped) = (ran(text, &[], 1), ran(text, &[SKIP], 1));
    assert_eq!((exact.outcome.skipped.time, exact.outcome.skipped.count), (Dur::ZERO, 0));
    assert!(share(&skipped) > least, "{} skipped", share(&skipped));
    assert!(skipped.outcome.events < exact.outcome.events);
    assert_ne!(skipped.outcome.digest, exact.outcome.digest);
    for flow in &skipped.flows {
        assert_eq!(Some(flow.placed), flow.size, "whole, once: {flow:?}");
        assert!(flow.acked.is_none_or(|acked| Some(acked) > flow.finish));
    }
    (exact, skipped)
}

fn assert_near(what: &str, exact: f64, skipped: f64, share: f64) {
    assert!((skipped / exact - 1.0).abs() < share, "{what}: {skipped}, exactly {exact}");
}

#[test]
fn a_permutation_is_skipped_and_ends_when_it_should() {
    for (how, topology) in [(SPRAYED, LEAF_SPINE), (HASHED, STAR)] {
        let (exact, skipped) = beside(&text(topology, how, PERMUTATION), 0.7);
        for (what, at, off) in [("median", 0.5, 0.01), ("99th percentile", 0.99, 0.03)] {
            assert_near(what, percentile(&exact, at), percentile(&skipped, at), off);
        }
        // What is counted beside messages is that of the whole time.
        let sum = |ran: &Simulated| ran.outcome.links.iter().map(|l| l.bytes).sum::<u64>() as f64;
        assert_near("bytes on links", sum(&exact), sum(&skipped), 0.01);
        let sent = |ran: &Simulated| ran.outcome.counters.data_sent as f64;
        assert_near("packets sent", sent(&exact), sent(&skipped), 0.01);
        assert_near(
            "packet-hops",
            exact.outcome.packet_hops as f64,
            skipped.outcome.packet_hops as f64,
            0.02,
        );
    }
}

#[test]
fn rdma_and_ultra_ethernet_can_be_shortened() {
    for (how, topology) in
        [((RDMA, DROP_TAIL, "ecmp"), STAR), ((UET, TRIM_AND_MARK, "ecmp"), LEAF_SPINE)]
    {
        let (exact, skipped) = beside(&text(topology, how, PERMUTATION), 0.5);
        assert_near("median", percentile(&exact, 0.5), percentile(&skipped, 0.5), 0.01);
        assert_near("99th", percentile(&exact, 0.99), percentile(&skipped, 0.99), 0.03);
    }
}

/// Three messages share a link under DCTCP. Their shares never settle for good: who ends first is
/// as far off as the shares of the moment are from those of the whole, the last is not.
#[test]
fn messages_that_share_a_link_keep_their_shares() {
    let incast = "[traffic]\nkind = \"incast\"\nreceiver = 0\nsenders = 3\nsize = \"100MB\"\n";
    let (exact, skipped) = beside(&text(STAR, HASHED, incast), 0.3);
    assert_near("last", percentile(&exact, 1.0), percentile(&skipped, 1.0), 0.01);
    assert_near("first", percentile(&exact, 0.0), percentile(&skipped, 0.0), 0.1);
}

#[test]
fn any_number_of_threads_skips_the_same() {
    let text = text(LEAF_SPINE, SPRAYED, PERMUTATION);
    let [one, two, eight] = [1, 2, 8].map(|threads| ran(&text, &[SKIP], threads));
    for other in [&two, &eight] {
        assert_eq!(one.outcome.digest, other.outcome.digest);
        assert_eq!(one.outcome.skipped, other.outcome.skipped);
        assert_eq!(one.outcome.links, other.outcome.links);
        assert_eq!(one.outcome.samples, other.outcome.samples);
        assert_eq!(one.flows, other.flows);
    }
}

/// A link becomes slow in the midst, and well again: neither instant is skipped.
#[test]
fn a_fault_wakes_it() {
    let slow = format!(
        "{PERMUTATION}[[fault]]\nlink = \"host 0 -> tor 0\"\nat = \"3ms\"\nuntil = \"5ms\"\n\
         action = \"rate\"\nrate = \"50Gbps\"\n"
    );
    let text = text(STAR, SPRAYED, &slow);
    let set = ["routing.reroute_after=10us"];
    let (exact, skipped) = (ran(&text, &set, 1), ran(&text, &[SKIP, set[0]], 1));
    assert!(skipped.outcome.skipped.count >= 3, "{:?}", skipped.outcome.skipped);
    let of_host = |ran: &Simulated| {
        let flow = ran.flows.iter().find(|flow| flow.src == 0).unwrap();
        flow.fct().unwrap().as_us_f64()
    };
    assert_near("through the slow link", of_host(&exact), of_host(&skipped), 0.005);
    let late = of_host(&exact) - percentile(&exact, 0.5);
    assert!((900.0..1_100.0).contains(&late), "{late} us: half of two milliseconds");
}

/// A message that begins in the midst takes its share from then on.
#[test]
fn a_message_that_begins_wakes_it() {
    let two = "[[traffic]]\nkind = \"flow\"\nsource = 1\ndestination = 0\nsize = \"100MB\"\n\
               start = \"0ps\"\n[[traffic]]\nkind = \"flow\"\nsource = 2\ndestination = 0\n\
               size = \"50MB\"\nstart = \"4ms\"\n";
    let (exact, skipped) = beside(&text(STAR, SPRAYED, two), 0.5);
    for (exact, skipped) in exact.flows.iter().zip(&skipped.flows) {
        assert_eq!(exact.start, skipped.start);
        let [exact, skipped] = [exact, skipped].map(|flow| flow.fct().unwrap().as_us_f64());
        assert_near("completion time", exact, skipped, 0.01);
    }
}

/// Messages without an end, in a window: goodput and samples go on in true time.
#[test]
fn series_have_no_gap_and_windows_count_what_is_skipped() {
    let long = "[traffic]\nkind = \"permutation\"\nsize = \"unbounded\"\n\
                [measure]\nfrom = \"2ms\"\nto = \"22ms\"\n";
    let text = text(LEAF_SPINE, SPRAYED, long);
    let (exact, skipped) = (ran(&text, &[], 1), ran(&text, &[SKIP], 1));
    assert!(share(&skipped) > 0.8, "{}", share(&skipped));
    let times = |ran: &Simulated| ran.outcome.samples.iter().map(|s| s.at).collect::<Vec<Time>>();
    let (exact_times, times) = (times(&exact), times(&skipped));
    assert!(exact_times.len().abs_diff(times.len()) <= 2);
    assert!(exact_times.iter().zip(&times).all(|(exact, at)| exact == at));
    assert!(skipped.outcome.samples.iter().map(|s| s.placed_bytes).is_sorted());
    assert!(skipped.outcome.samples.iter().map(|s| s.tier_bytes[0]).is_sorted());
    for (exact, skipped) in exact.outcome.samples.iter().zip(&skipped.outcome.samples).skip(50) {
        assert_near("placed", exact.placed_bytes as f64, skipped.placed_bytes as f64, 0.02);
    }
    let in_window = |ran: &Simulated| {
        let links = ran.outcome.links.iter().map(|link| link.bytes_in_window).sum::<u64>() as f64;
        let placed = ran.flows.iter().map(|flow| flow.placed_in_window).sum::<u64>() as f64;
        (links, placed)
    };
    let ((links, placed), (links_skipped, placed_skipped)) =
        (in_window(&exact), in_window(&skipped));
    assert_near("on links in the window", links, links_skipped, 0.01);
    assert_near("placed in the window", placed, placed_skipped, 0.01);
}

/// Steps of a ring that take as long as each other: most are left out, each has its rows, and the
/// last ends when it should, alone and with work between collectives.
#[test]
fn steps_of_a_job_are_left_out() {
    let ring = format!("[traffic]\n{}", ring(60));
    let text = text(LEAF_SPINE, SPRAYED, &ring);
    let results = |set: &[&str], threads| {
        let options = Options { threads: Some(threads), check: true, ..Options::default() };
        evaluate(&read(&text, set), &options, &mut |_| ()).unwrap()
    };
    let (exact, skipped) = (results(&[], 1), results(&[SKIP], 1));
    let left_out = skipped.steps.iter().filter(|row| row.skipped).count();
    assert_eq!(exact.steps.len(), skipped.steps.len());
    assert!(left_out >= 40 * 16 && exact.steps.iter().all(|row| !row.skipped), "{left_out}");
    assert!(skipped.summary.events < exact.summary.events / 3);
    for (exact, skipped) in exact.steps.iter().zip(&skipped.steps) {
        assert_eq!((exact.step, exact.rank), (skipped.step, skipped.rank));
        assert!(skipped.completed && skipped.sent_bytes == exact.sent_bytes);
        let [exact, skipped] = [exact, skipped].map(|row| row.end.since(Time::ZERO).as_us_f64());
        assert_near("end of a step", exact, skipped, 0.01);
    }
    // The collectives that were played have the numbers of their steps.
    let last = |rows: &[metrics::CollectiveRow]| rows.iter().map(|row| row.collective).max();
    assert_eq!(last(&exact.collectives), last(&skipped.collectives));
    let two = results(&[SKIP], 2);
    assert_eq!((two.steps, two.summary.digest), (skipped.steps, skipped.summary.digest));
}

/// A link becomes slow for good just before the last of three equal steps ends: that step hardly
/// shows it, all others do.
#[test]
fn a_fault_late_in_a_step_counts_in_those_after_it() {
    let ring = format!("[traffic]\n{}", ring(30));
    let ends = |rest: &str, set: &[&str]| {
        let read = read(&text(LEAF_SPINE, SPRAYED, rest), set);
        let results = evaluate(&read, &Options::default(), &mut |_| ()).unwrap();
        let of_step = |step| {
            let rows = results.steps.iter().filter(|row| row.step == step);
            rows.map(|row| row.end).max().unwrap().since(Time::ZERO).as_us_f64()
        };
        ([3, 29].map(of_step), results.steps.iter().filter(|row| row.skipped).count())
    };
    let ([fourth, _], _) = ends(&ring, &[]);
    let slow = format!(
        "{ring}[[fault]]\nlink = \"host 0 -> tor 0\"\nat = \"{:.3}us\"\naction = \"rate\"\n\
         rate = \"25Gbps\"\n",
        fourth - 2.0
    );
    let set = ["routing.reroute_after=10us", SKIP];
    let (([_, exact], _), ([_, skipped], left_out)) = (ends(&slow, &set[..1]), ends(&slow, &set));
    assert!(left_out >= 10 * 16, "{left_out}");
    assert_near("the last step", exact, skipped, 0.02);
}

/// A loss that only a timer tells: as long as its message is open nothing is skipped, which would
/// put the timer off.
#[test]
fn after_a_loss_nothing_is_skipped() {
    let cubic = "kind = \"tcp\"\nrule = \"cubic\"\nrecovery = \"sack\"\necn = false\n\
                 preset = \"linux-datacenter\"\nmss = \"8960B\"";
    let four = "[traffic]\nkind = \"incast\"\nreceiver = 0\nsenders = 4\nsize = \"40MB\"\n";
    let text = text(STAR, (cubic, DROP_TAIL, "ecmp"), four);
    let [exact, skipped] = [&[] as &[&str], &[SKIP]].map(|set| ran(&text, set, 1));
    assert!(exact.outcome.counters.dropped > 0);
    assert_eq!(skipped.outcome.skipped.count, 0);
    assert_eq!(exact.outcome.digest, skipped.outcome.digest);
}

/// Beside other traffic no step is left out.
#[test]
fn steps_beside_other_traffic_are_played() {
    let both = "[[traffic]]\nkind = \"flow\"\nsource = 1\ndestination = 9\n\
                size = \"unbounded\"\nstart = \"0ps\"\n[measure]\nto = \"3ms\"\n";
    let both = format!("[[traffic]]\n{}{both}", ring(20));
    let text = text(LEAF_SPINE, SPRAYED, &both);
    let results =
        |set: &[&str]| evaluate(&read(&text, set), &Options::default(), &mut |_| ()).unwrap();
    assert!(results(&[SKIP]).steps.iter().all(|row| !row.skipped));
}

/// With all of it simulated, nothing is skipped; with half, half.
#[test]
fn what_is_skipped_can_be_simulated() {
    let scenario = read(&text(LEAF_SPINE, SPRAYED, PERMUTATION), &[SKIP]);
    let skipped = |exact: Option<f64>| {
        let options = Options { exact, ..Options::default() };
        evaluate(&scenario, &options, &mut |_| ()).unwrap().summary.skipped.share
    };
    let all = skipped(None);
    assert_eq!(skipped(Some(1.0)), 0.0);
    let half = skipped(Some(0.5));
    assert!((0.2..0.8).contains(&(half / all)), "{half} of {all}");
}

#[test]
fn what_only_exact_runs_answer_is_refused() {
    let star = text(STAR, SPRAYED, PERMUTATION);
    let refused = |text: &str, set: &[&str], options: Options| {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let error = match Scenario::parse("skip.toml", text, Path::new(""), &set) {
            Err(error) => error.into(),
            Ok(read) => simulate(&read, &options, &mut |_| ()).err().unwrap(),
        };
        assert_eq!(error.exit_code(), 2);
        error.render(false)
    };
    for (set, why) in [
        ("measure.life=true", "of each packet, and `engine.skip` leaves some out"),
        ("measure.packet_latency=true", "of each packet"),
        ("measure.rtt=true", "of each packet"),
        ("engine.skip_tolerance=0", "`skip_tolerance` in [engine] is 0"),
        ("engine.skip_tolerance=1", "`skip_tolerance` in [engine] is 1"),
        ("engine.skip_tolerance=1.5", "`skip_tolerance` in [engine] is 1.5"),
        ("engine.level=flow", "this is flow level"),
    ] {
        let said = refused(&star, &[SKIP, set], Options::default());
        assert!(said.contains(why), "{set}: {said}");
    }
    let dcqcn = RDMA.replace("none", "dcqcn").replace("roce", "paper");
    let dcqcn = text(STAR, (&dcqcn, DROP_TAIL, "ecmp"), PERMUTATION);
    let said = refused(&dcqcn, &[SKIP], Options::default());
    assert!(said.contains("cannot shorten a message whose rate goes on changing"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let out = metrics::OutputDir::create(dir.path().join("out")).unwrap();
    for (set, share, why) in
        [(&[SKIP] as &[_], 0.0, "`--verify 0` simulates nothing"), (&[], 0.5, "nothing is skipped")]
    {
        let verify = Options { verify: Some(share), ..Options::default() };
        let error = trimline_scenario::run(&read(&star, set), &verify, &out, &mut |_| ());
        assert!(error.err().unwrap().render(false).contains(why), "{why}");
    }
    let said = refused(&star, &["engine.skip_tolerance=0.1"], Options::default());
    assert!(said.contains("`skip_tolerance` has no effect here"), "{said}");
    let homa = (crate::life::HOMA, crate::life::PRIORITIES, "spray");
    let said = refused(&text(STAR, homa, PERMUTATION), &[SKIP], Options::default());
    assert!(said.contains("cannot shorten the messages of `homa`"), "{said}");
    assert!(said.contains("skip.toml:9"), "with its line: {said}");
    let options = Options { life: fabric::LifeDetail::Sums, ..Options::default() };
    let said = refused(&star, &[SKIP], options);
    assert!(said.contains("the life of a message"), "{said}");
}

/// Drawn scenarios of the swarm: whole messages, the same twice and with any number of threads.
#[test]
fn drawn_scenarios_deliver_whole_messages_and_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let set = [SKIP.to_owned()];
    let (mut runs, mut skips) = (0, 0);
    for seed in 1..=40 {
        let (_, text) = crate::swarm::draw(seed, dir.path());
        let Ok(read) = Scenario::parse("drawn.toml", &text, dir.path(), &set) else { continue };
        let run = |threads| {
            let options = Options { threads: Some(threads), ..Options::default() };
            simulate(&read, &options, &mut |_| ())
        };
        let ran = match run(1) {
            Ok(ran) => ran,
            Err(error) => {
                assert_eq!(error.exit_code(), 2, "seed {seed}: {}", error.render(false));
                continue;
            }
        };
        for flow in ran.flows.iter().filter(|flow| flow.finish.is_some()) {
            assert_eq!(Some(flow.placed), flow.size, "seed {seed}: {flow:?}");
        }
        (runs, skips) = (runs + 1, skips + ran.outcome.skipped.count);
        for threads in [2, 8] {
            let other = run(threads).unwrap();
            assert_eq!(other.outcome.digest, ran.outcome.digest, "seed {seed}");
            assert_eq!(other.outcome.skipped, ran.outcome.skipped, "seed {seed}");
        }
    }
    println!("{runs} runs, {skips} skips");
    assert!(runs >= 5, "{runs} runs, {skips} skips");
}
