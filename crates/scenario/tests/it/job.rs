//! Training jobs: against the closed forms of specs/ai-jobs.md#3, against the bisection, with
//! faults, with threads, and what cannot be.

use std::path::Path;

use endpoint::{Draw, Purpose};
use trimline_scenario::{Options, Results, Scenario, evaluate};
use units::{Dur, Rate, Time};

/// All-reduces over a switch without contention, with the fewest bytes beside data.
const IDLE: &str = r#"
name = "idle"
seed = 1
[topology]
kind = "star"
hosts = 8
link_rate = "100Gbps"
link_delay = "1us"
[host]
clock_ppm = 0
send_jitter = 0
[queue]
kind = "lossless"
preset = "hpcc"
[routing]
mode = "single"
[transport]
kind = "rdma"
rule = "none"
preset = "roce"
payload = "1000B"
ack_bytes = "40B"
[traffic]
kind = "job"
name = "job"
collective = "all-reduce"
size = "800kB"
steps = 2
ranks_per_host = 1
placement = "packed"
algorithm = "ring"
connections = "persistent"
"#;

fn parse(text: &str, sets: &[String]) -> Result<Scenario, String> {
    Scenario::parse("job.toml", text, Path::new(""), sets).map_err(|e| e.render(false))
}

fn run_with(text: &str, sets: &[&str], options: &Options) -> Results {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = parse(text, &sets).unwrap_or_else(|e| panic!("{e}"));
    evaluate(&scenario, options, &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

fn run(text: &str, sets: &[&str]) -> Results {
    run_with(text, sets, &Options::default())
}

/// How long collective `number` took, from its last rank's start, and its closed form.
fn took(results: &Results, number: u32) -> (Dur, Option<Dur>) {
    let rows = || results.collectives.iter().filter(|row| row.collective == number);
    let end = rows().map(|row| row.end).max().unwrap();
    let row = rows().next().unwrap();
    (end.since(row.last_start), row.ideal)
}

/// A packet, and an acknowledgement, at the rate of links.
const RATE: Rate = Rate(100_000_000_000);

/// No sooner than the form, and later by no more than a packet for each of `rounds` and what the
/// acknowledgements take that share the links: one of 40 B for each packet of 1000.
fn check(sets: &[&str], rounds: u64, bytes: u64) {
    let results = run(IDLE, sets);
    assert_eq!(results.summary.steps.completed, 2, "{:?}", results.summary.warnings);
    let packet = RATE.serialise(1_100);
    let acks = RATE.serialise(bytes / 1_000 * 40 + 40);
    for number in 0..2 {
        let (took, ideal) = took(&results, number);
        let (ideal, slack) = (ideal.unwrap(), packet * rounds + acks);
        let late = took.0 as i64 - ideal.0 as i64;
        assert!((0..=slack.0 as i64).contains(&late), "{sets:?}: {took} {ideal} {slack}");
    }
}

#[test]
fn a_ring_on_an_idle_fabric_takes_what_its_form_says() {
    for n in [2_u64, 5, 8] {
        let ranks = format!("traffic.0.ranks={n}");
        let bytes = 800_000 * 2 * (n - 1) / n;
        check(&[&ranks], 2 * (n - 1), bytes);
        check(&[&ranks, "traffic.0.collective=all-gather"], n - 1, bytes / 2);
        check(&[&ranks, "traffic.0.collective=reduce-scatter"], n - 1, bytes / 2);
    }
}

#[test]
fn the_others_on_an_idle_fabric_take_what_their_forms_say() {
    let halving = "traffic.0.algorithm=halving-doubling";
    check(&[halving], 6, 1_400_000);
    check(&[halving, "traffic.0.collective=all-gather"], 3, 700_000);
    // Each receives from all others at once, so what comes last is later by a packet of each.
    check(&["traffic.0.collective=all-to-all"], 7, 700_000);
}

/// Four hosts on either side of one link: a quarter of what each sends to the others goes over it
/// for each of them.
#[test]
fn an_all_to_all_is_bound_by_bisection() {
    let sets = [
        "topology={kind='leaf-spine', leaves=2, spines=1, hosts_per_leaf=4, link_rate='100Gbps', \
         uplink_rate='100Gbps', link_delay='1us'}",
        "routing.mode=ecmp",
        "traffic.0.collective=all-to-all",
    ];
    let results = run(IDLE, &sets);
    let least = RATE.serialise(16 * 100_000);
    let (took, ideal) = took(&results, 0);
    assert!(took > least && took.0 < least.0 * 13 / 10, "{took} {least}");
    assert!(ideal.unwrap().0 * 2 < took.0, "hosts' links are not what holds it up");
}

/// One message at a time, in many: each waits for the acknowledgement of the one before, and at a
/// rank sends and receives take turns.
#[test]
fn one_message_in_flight_is_slow_but_goes_on() {
    let size = "traffic.0.size=4MiB";
    let cut = ["traffic.0.ranks=2", size, "traffic.0.chunk=64KiB", "traffic.0.in_flight=1"];
    for algorithm in ["ring", "tree", "halving-doubling", "direct"] {
        let algorithm = format!("traffic.0.algorithm={algorithm}");
        let sets = [&cut[..], &[&*algorithm]].concat();
        let slow = run(IDLE, &sets);
        assert_eq!(slow.summary.steps.completed, 2, "{algorithm}: {:?}", slow.summary.warnings);
        assert_eq!(slow.flows.iter().map(|row| row.size.unwrap()).max(), Some(65_536));
        // Both directions of each link carry the vector once. A message waits a round trip for the
        // one before.
        let times = slow.summary.steps.time_us;
        let least = RATE.serialise(4 << 20).as_us_f64();
        assert!(times.min.unwrap() > least, "{algorithm}: {times:?}");
        assert!(times.max.unwrap() < 4.0 * least, "{algorithm}: {times:?}");
    }
}

#[test]
fn tasks_count_in_the_estimate() {
    let estimate = |steps: u32| {
        let steps = format!("traffic.0.steps={steps}");
        let sets = [steps, "traffic.0.compute=1us".into(), "traffic.0.collective=barrier".into()];
        let text = IDLE.replace("size = \"800kB\"\n", "");
        parse(&text, &sets).unwrap_or_else(|e| panic!("{e}")).estimate().unwrap().memory
    };
    let (few, many) = (estimate(1), estimate(100_000));
    // 1.6 million tasks, and as many rows of results.
    assert!((0.3e9..2.5e9).contains(&(many - few)), "{few} {many}");
}

#[test]
fn a_job_that_takes_months_is_refused_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.goal");
    // Each rank works for eleven days, one after the other.
    let days = "calc 900000000000000";
    std::fs::write(
        &path,
        format!(
            "num_ranks 2\nrank 0 {{\na: {days}\nb: send 1b to 1\nb requires a\n}}\nrank 1 {{\n\
             a: recv 1b from 0\nb: {days}\nb requires a\n}}\n"
        ),
    )
    .unwrap();
    let sets = [format!("traffic.0.file={}", path.display())];
    let said = parse(&traced("tree_8.goal", "ring"), &sets).err().expect("it is refused");
    assert!(said.contains("its work takes 1800000") && said.contains("file"), "{said}");
}

/// Two jobs on the same hosts. Before the second one arrives, and after it is over, a step of the
/// first takes what it takes alone; in between both take longer, and together no longer than one
/// after the other.
#[test]
fn jobs_share_the_fabric_while_both_run() {
    let job = |name: &str, start: &str, steps: u32| {
        format!(
            "{{kind='job', name='{name}', collective='all-reduce', size='800kB', steps={steps}, \
             start='{start}', ranks_per_host=1, placement='packed', algorithm='ring', \
             connections='persistent'}}"
        )
    };
    let (first, second) = (job("first", "0s", 9), job("second", "400us", 2));
    let of = |jobs: &str| run(IDLE, &[&format!("traffic=[{jobs}]")]);
    let together = of(&format!("{first}, {second}"));
    let alone = [of(&first), of(&second)];
    let ends = |results: &Results, traffic: u16, step: u32| {
        let rows = results.steps.iter().filter(|row| (row.traffic, row.step) == (traffic, step));
        rows.map(|row| row.end).max().unwrap()
    };
    let time = |results: &Results, traffic, step: u32| {
        ends(results, traffic, step).since(ends(results, traffic, step - 1)).as_us_f64()
    };
    let (first, second) = (time(&alone[0], 0, 1), time(&alone[1], 0, 1));
    assert_eq!(ends(&together, 0, 1), ends(&alone[0], 0, 1), "nobody else is there yet");
    let (slow, other) = (time(&together, 0, 3), time(&together, 1, 1));
    assert!(slow > 1.2 * first && slow < 2.2 * first, "{slow} {first}");
    assert!(other > 1.2 * second && other < 2.2 * second, "{other} {second}");
    let last = time(&together, 0, 8);
    assert!((last - first).abs() < 0.01 * first, "alone again: {last} {first}");
    let by_name = |name: &str| together.summary.traffic[name].steps;
    assert_eq!((by_name("first").completed, by_name("second").completed), (9, 2));
    assert!(by_name("first").time_us.max.unwrap() > 1.2 * first);
}

/// A model with all kinds of parallelism, small.
const MODEL: &str = r#"
name = "model"
seed = 3
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 2
link_rate = "100Gbps"
uplink_rate = "100Gbps"
link_delay = "500ns"
[queue]
kind = "ndp"
capacity = "8 packets"
[routing]
mode = "permute"
[transport]
kind = "ndp"
preset = "paper"
payload = "4096B"
initial_window = 30
[traffic]
kind = "job"
name = "train"
ranks_per_host = 2
placement = "packed"
scale_up_rate = "900Gbps"
scale_up_latency = "300ns"
data_parallel = 4
tensor_parallel = 2
pipeline_parallel = 2
expert_parallel = 2
layers = 2
microbatches = 3
forward = "5us"
backward = "10us"
activations = "40kB"
gradients = "200kB"
dispatch = "60kB"
overlap = true
steps = 3
algorithm = "ring"
straggler_share = 0.1
straggler_excess = 1.0
connections = "persistent"
"#;

#[test]
fn a_model_runs_alike_with_any_number_of_threads() {
    let run =
        |threads| run_with(MODEL, &[], &Options { threads: Some(threads), ..Options::default() });
    let one = run(1);
    assert_eq!((one.summary.steps.completed, one.steps.len()), (3, 48));
    // Work of three microbatches and two layers, forward and back, and some of it longer.
    let steps = one.summary.steps;
    assert!(steps.time_us.min.unwrap() > 90.0 && steps.exposed_us.min.unwrap() > 0.0, "{steps:?}");
    assert!(one.steps.iter().all(|row| row.computed >= Dur::from_us(90)));
    let slow = one.steps.iter().filter(|row| row.computed > Dur::from_us(90)).count();
    assert!((12..48).contains(&slow), "{slow} of 48 ranks' steps have a straggler");
    let names: Vec<&str> = one.collectives.iter().filter_map(|row| row.name.as_deref()).collect();
    for name in ["activations", "gradients", "experts"] {
        assert!(names.contains(&name), "{name}");
    }
    for threads in [2, 8] {
        let other = run(threads);
        assert_eq!(other.summary.digest, one.summary.digest);
        assert!(other.steps == one.steps && other.collectives == one.collectives);
    }
    assert_eq!(one.summary.traffic["train"].steps, steps);
}

/// The way to the end of each step is without gaps, and begins where the step before ended.
#[test]
fn critical_paths_add_up_to_steps() {
    let model = run(MODEL, &[]);
    let mut before = Time::ZERO;
    for step in 0..3 {
        let end = model.steps.iter().filter(|row| row.step == step).map(|row| row.end).max();
        let path: Vec<_> = model.critical.iter().filter(|row| row.step == step).collect();
        let whole = path.windows(2).all(|pair| pair[0].end == pair[1].start);
        assert!(whole, "step {step}: {path:#?}");
        assert_eq!((path[0].start, path.last().unwrap().end), (before, end.unwrap()));
        before = end.unwrap();
        // Three microbatches cross two stages: at least a forward and a backward pass of each are
        // on the way, 2 layers of 5 and 10 us.
        let work: u64 = path.iter().filter(|row| row.what == "work").map(|row| row.time().0).sum();
        assert!(work >= 2 * 15_000_000, "step {step}: {work}");
    }
    let what = |what: &str| model.critical.iter().filter(|row| row.what == what).count();
    assert!(what("message") > 0 && what("collective") > 0 && what("work") > 0);
    // What crosses the fabric names the message that came last.
    let crossed =
        model.critical.iter().filter(|row| row.what == "message" && row.peer != Some(row.rank));
    assert!(
        crossed.clone().all(|row| row.last_src == row.peer_host),
        "{:#?}",
        crossed.collect::<Vec<_>>()
    );
}

#[test]
fn the_critical_path_of_a_ring_ends_with_a_neighbour_s_message() {
    let ring = run(IDLE, &["traffic.0.compute=20us"]);
    let path: Vec<(&str, u32)> =
        ring.critical.iter().map(|row| (row.what.as_str(), row.step)).collect();
    assert_eq!(path, [("work", 0), ("collective", 0), ("work", 1), ("collective", 1)]);
    for row in ring.critical.iter().filter(|row| row.what == "collective") {
        assert_eq!((row.last_src, row.bytes), (Some((row.host + 7) % 8), Some(800_000)));
    }
}

/// There has to be work to hide behind: without it the pieces only get into each other's way.
#[test]
fn overlapping_hides_communication() {
    let exposed = |overlap| {
        let sets = [&*format!("traffic.0.overlap={overlap}"), "traffic.0.straggler_share=0"];
        let more = ["traffic.0.gradients=1MB", "traffic.0.backward=300us"];
        let sets = [&sets[..], &more].concat();
        let text = MODEL.replace("straggler_excess = 1.0\n", "");
        run(&text, &sets).summary.steps.exposed_us.p50.unwrap()
    };
    let (with, without) = (exposed(true), exposed(false));
    assert!(with < without, "{with} {without}");
}

/// What fails in mid-job at `at` µs and comes back: a link, a switch, a NIC's link, optics that
/// flap.
fn failure(which: u64, at: u64) -> String {
    let back = at + 200;
    let both = |what: &str| {
        format!("[{{at='{at}us', {what}, action='down'}}, {{at='{back}us', {what}, action='up'}}]")
    };
    match which {
        0 => both("link='tor 0 -> agg 1'"),
        1 => both("switch='agg 0'"),
        2 => both("link='host 2 -> tor 1'"),
        _ => format!(
            "[{{at='{at}us', link='tor 0 -> agg 0', action='flap', period='40us', down_share=0.5, \
             until='{back}us'}}]"
        ),
    }
}

/// Drawn jobs over three transports while something fails: each rank does each collective once, and
/// each byte that the job sends is delivered once.
#[test]
fn drawn_jobs_with_faults_deliver_each_byte_once() {
    const WHAT: Purpose = Purpose::new("test: drawn jobs");
    let transports = [
        "transport={kind='ndp', preset='paper', payload='4096B', initial_window=30, \
         rto_initial='1ms', rto_min='1ms', rto_max='1ms'}",
        "transport={kind='tcp', rule='newreno', preset='linux-datacenter', mss='1460B', \
         recovery='newreno', ecn=false, rto_initial='2ms', rto_min='1ms'}",
        "transport={kind='uet', preset='htsim', payload='4096B'}",
    ];
    let ops = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"];
    let algorithms = ["ring", "tree", "direct", "nccl"];
    for case in 0..16_u64 {
        let draw = Draw::new(case, WHAT, 0);
        let one_of =
            |n: u64, all: &[&str]| all[draw.below(WHAT, n, all.len() as u64) as usize].to_owned();
        let up_to = |n: u64, most: u64| 1 + draw.below(WHAT, n, most);
        let mut sets = vec![
            one_of(0, &transports),
            format!(
                "traffic.0={{kind='job', collective='{}', size='{}B', steps={}, ranks_per_host={}, \
                 ranks={}, placement='{}', algorithm='{}', channels={}, chunk='{}B', in_flight={}, \
                 compute='{}us', scale_up_rate='900Gbps', scale_up_latency='1us', \
                 connections='persistent'}}",
                one_of(1, &ops),
                up_to(2, 300_000),
                up_to(3, 3),
                1 + up_to(4, 2),
                7 + up_to(5, 9),
                one_of(6, &["packed", "spread"]),
                one_of(7, &algorithms),
                up_to(8, 3),
                9_999 + up_to(9, 100_000),
                up_to(10, 8),
                up_to(11, 50),
            ),
        ];
        sets.push(format!("fault={}", failure(draw.below(WHAT, 13, 4), up_to(12, 100))));
        if !sets[0].contains("ndp") {
            sets.push("queue={kind='drop-tail', capacity='60 packets'}".into());
            sets.push("routing.mode=ecmp".into());
        }
        let text =
            MODEL.replace("mode = \"permute\"", "mode = \"permute\"\nreroute_after = \"50us\"");
        let scenario = parse(&text, &sets).unwrap_or_else(|e| panic!("{e}"));
        let results =
            evaluate(&scenario, &Options { check: true, ..Options::default() }, &mut |_| ())
                .unwrap_or_else(|e| panic!("{sets:?} {e}"));
        let summary = &results.summary;
        let steps = summary.steps;
        assert_eq!(steps.unfinished, 0, "{sets:?}: {:?}", summary.warnings);
        assert_eq!(summary.delivered_twice, 0);
        assert!(
            results.flows.iter().all(|row| row.finish.is_some() && Some(row.placed) == row.size)
        );
        let sent: u64 = results.flows.iter().filter_map(|row| row.size).sum();
        assert_eq!(sent, scenario.job_bytes(), "{sets:?}");
        // Every rank, every collective, once.
        let mut done: Vec<(u32, u32)> =
            results.collectives.iter().map(|row| (row.collective, row.rank)).collect();
        let count = done.len();
        done.sort_unstable();
        done.dedup();
        assert_eq!((done.len(), done.len()), (count, results.steps.len()));
    }
}

/// Rank 5 computes 20 us instead of 10 from the second step on: all others wait for it, 10 us in
/// each step.
#[test]
fn a_slow_gpu_holds_up_all_ranks() {
    let slow = "fault=[{at='140us', action='slow', rank=5, factor=2}]";
    let sets = ["traffic.0.compute=10us", "traffic.0.steps=3", slow];
    let results = run(IDLE, &sets);
    let well = run(IDLE, &sets[..2]);
    let ends = |results: &Results| -> Vec<Time> {
        let of = |step| results.steps.iter().filter(move |row| row.step == step);
        (0..3).map(|step| of(step).map(|row| row.end).max().unwrap()).collect()
    };
    let (slow, well) = (ends(&results), ends(&well));
    assert!(slow[0] == well[0] && well[0] > Time::ZERO + Dur::from_us(140), "{well:?}");
    let late = slow[2].since(well[2]);
    assert!(late > Dur::from_us(19) && late < Dur::from_us(22), "{late}");
    for row in &results.steps {
        let is_slow = row.rank == 5 && row.step > 0;
        assert_eq!(row.computed, Dur::from_us(if is_slow { 20 } else { 10 }), "{row:?}");
    }
    let path: Vec<u32> = results.critical.iter().map(|row| row.rank).collect();
    assert_eq!(path[2], 5, "whose work the second step waited for: {path:?}");
    let said: Vec<&str> = results.summary.phases.iter().map(|phase| &*phase.what).collect();
    assert_eq!(said, ["start", "rank 5 takes 2 times as long to compute"]);
}

/// Rank 5 stands still for 30 us in the midst of 10 us of work: all others wait for it.
#[test]
fn a_paused_gpu_holds_up_all_ranks() {
    let pause = "fault=[{at='5us', action='pause', rank=5, until='35us'}]";
    let sets = ["traffic.0.compute=10us", "traffic.0.collective=barrier", pause];
    let text = IDLE.replace("size = \"800kB\"\n", "");
    let (results, well) = (run(&text, &sets), run(&text, &sets[..2]));
    let end = |results: &Results, step| {
        results.steps.iter().filter(|row| row.step == step).map(|row| row.end).max().unwrap()
    };
    for step in [0, 1] {
        let late = end(&results, step).since(end(&well, step));
        assert!(late > Dur::from_us(29) && late < Dur::from_us(31), "{step}: {late}");
    }
    let said: Vec<&str> = results.summary.phases.iter().map(|phase| &*phase.what).collect();
    assert_eq!(said, ["start", "rank 5 stops computing", "rank 5 computes again"]);
    let endless = "fault=[{at='5us', action='pause', rank=5}]".to_owned();
    let said = parse(IDLE, &[endless]).err().unwrap();
    assert!(said.contains("`until` is missing"), "{said}");
    let factor = "fault=[{at='5us', action='pause', rank=5, until='9us', factor=2}]".to_owned();
    let said = parse(IDLE, &[factor]).err().unwrap();
    assert!(said.contains("`factor` has no effect here"), "{said}");
}

/// Every kind of fault in the second of four steps: the job comes through, and until the fault
/// nothing is otherwise. What it costs, and when the first message is late, is printed:
/// docs/jobs.md has it.
#[test]
fn a_job_comes_through_every_kind_of_fault() {
    let base = [
        "transport={kind='ndp', preset='paper', payload='4096B', initial_window=30, \
         rto_initial='200us', rto_min='200us', rto_max='200us'}",
        "routing.reroute_after=50us",
        "host={clock_ppm=0, send_jitter='0'}",
        "traffic.0={kind='job', name='job', collective='all-to-all', size='2MB', steps=4, \
         compute='20us', ranks_per_host=1, placement='packed', algorithm='direct', \
         connections='persistent'}",
    ];
    let at = Time(300_000_000);
    // A fault of some link, so that routing may be told of it.
    let with = |fault: &str| {
        let fault = format!("fault=[{{at='300us', until='500us', {fault}}}]");
        let sets: Vec<&str> = base.iter().copied().chain([&*fault]).collect();
        run_with(MODEL, &sets, &Options { check: true, ..Options::default() })
    };
    let well = with("action='loss', link='tor 0 -> agg 0', probability=0");
    let ends = |results: &Results| -> Vec<Time> {
        let of = |step| results.steps.iter().filter(move |row| row.step == step);
        (0..4).map(|step| of(step).map(|row| row.end).max().unwrap()).collect()
    };
    let whole = ends(&well);
    assert!(whole[0] < at && at + Dur::from_us(200) < whole[2], "{whole:?}");
    let messages = |results: &Results| -> Vec<Time> {
        let mut all: Vec<_> =
            results.flows.iter().map(|row| (row.src, row.msg, row.finish.unwrap())).collect();
        all.sort_unstable();
        all.into_iter().map(|(.., finish)| finish).collect()
    };
    for (name, fault) in [
        ("link", "action='down', link='tor 0 -> agg 0'"),
        ("switch", "action='down', switch='agg 0'"),
        ("NIC", "action='down', link='host 2 -> tor 1'"),
        ("flapping optics", "action='flap', link='host 2 -> tor 1', period='20us', down_share=0.2"),
        ("loss", "action='loss', link='host 2 -> tor 1', probability=0.01"),
        ("slow link", "action='rate', link='host 2 -> tor 1', rate='10Gbps'"),
        ("slow GPU", "action='slow', rank=2, factor=8"),
        ("paused GPU", "action='pause', rank=2"),
    ] {
        let results = with(fault);
        let summary = &results.summary;
        assert_eq!((summary.steps.completed, summary.delivered_twice), (4, 0), "{name}");
        assert!(results.flows.iter().all(|row| Some(row.placed) == row.size), "{name}");
        let (of_well, of_this) = (messages(&well), messages(&results));
        assert_eq!(of_well.len(), of_this.len(), "{name}");
        let late = of_this.iter().zip(&of_well).filter(|(this, well)| this > well);
        let noticed = late.map(|(this, _)| *this).min().expect(name);
        let cost = ends(&results)[3].since(whole[3]);
        println!("{name}: costs {cost}, first late message {} after", noticed.since(at));
        assert!(noticed > at && noticed < ends(&results)[2], "{name}: {noticed}");
        assert!(cost > Dur::from_us(10), "{name}: {cost}");
        // It is over then.
        let last = |ends: &[Time]| ends[3].since(ends[2]).as_us_f64();
        let (this, whole) = (last(&ends(&results)), last(&whole));
        assert!((this / whole - 1.0).abs() < 0.3, "{name}: {this} {whole}");
    }
}

#[test]
fn slow_gpus_that_cannot_be_are_refused_where_they_stand() {
    let refused = |fault: &str, more: &[&str]| {
        let mut sets = vec![format!("fault=[{{at='1us', action='slow', {fault}}}]")];
        sets.extend(more.iter().map(|set| (*set).to_owned()));
        parse(IDLE, &sets).err().unwrap_or_else(|| panic!("{fault} is taken"))
    };
    for (fault, expected) in [
        ("rank=8, factor=2", "there is no rank 8"),
        ("rank=5, factor=0", "work cannot take 0 times as long"),
        ("rank=5, factor=-1.5", "work cannot take -1.5 times as long"),
        ("rank=5, factor=nan", "NaN is not a finite number"),
        ("rank=5", "`factor` is missing"),
        ("factor=2", "`rank` is missing"),
        ("rank=5, host=5, factor=2", "exclude each other"),
        ("host=8, factor=2", "there is no host 8"),
        ("rank=5, job='jop', factor=2", "no job is called `jop`"),
        ("rank=5, factor=2, until='1us'", "over before it begins"),
        ("rank=5, factor=2, link='tor 0 -> host 1'", "`link` has no effect here"),
        ("rank=5, factor=2, announce=true", "unknown key `announce`"),
    ] {
        let said = refused(fault, &[]);
        assert!(said.contains(expected), "{fault}: {said}");
    }
    let said = refused("host=7, factor=2", &["traffic.0.ranks=7"]);
    assert!(said.contains("host 7 has no ranks"), "{said}");
    let flow = "traffic={kind='flow', source=0, destination=1, size='1kB'}";
    let said = refused("rank=0, factor=2", &[flow]);
    assert!(said.contains("no traffic of this scenario is a job"), "{said}");
    let link = "fault=[{at='1us', action='down', rank=3, link='tor 0 -> host 1'}]".to_owned();
    let said = parse(IDLE, &[link, "routing.reroute_after=1us".into()]).err().unwrap();
    assert!(said.contains("`rank` has no effect here"), "{said}");
    let once = parse(IDLE, &["fault=[{at='1us', action='slow', rank=1, factor=1}]".into()]);
    let once = once.unwrap_or_else(|e| panic!("{e}"));
    let warned = once.warnings().iter().any(|w| w.render(false).contains("no fault"));
    assert!(warned, "a choice without effect");
}

/// Two nodes of four NICs each, at four leaves and two spines.
const NODES: &str = "topology={kind='leaf-spine', leaves=4, spines=2, hosts_per_leaf=2, \
                     link_rate='100Gbps', uplink_rate='400Gbps', link_delay='1us'}";

/// The settings of a job of [`IDLE`] with nodes of four NICs, `wiring` says where.
fn with_nics(wiring: &str) -> Vec<String> {
    let rest = [
        NODES,
        "routing.mode=ecmp",
        "traffic.0.nics=4",
        "traffic.0.scale_up_rate=900Gbps",
        "traffic.0.scale_up_latency=300ns",
        "traffic.0.algorithm=hierarchical",
    ];
    let wiring = format!("traffic.0.nic_wiring={wiring}");
    rest.map(str::to_owned).into_iter().chain([wiring]).collect()
}

/// Bytes on links between leaves and spines.
fn between_leaves(results: &Results) -> u64 {
    let up = results.links.iter().filter(|link| link.tier == "tor-up");
    up.map(|link| link.tx_bytes).sum()
}

/// Within nodes, along rails, within nodes: on a rail messages do not leave their leaf.
#[test]
fn an_all_reduce_along_rails_takes_what_its_form_says() {
    let of = |wiring, nics| {
        let mut sets = with_nics(wiring);
        sets.push(format!("traffic.0.nics={nics}"));
        run(IDLE, &sets.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (rail, leaf) = (of("rail", 4), of("leaf", 2));
    let up = Rate(900_000_000_000).serialise(200_000) + Dur::from_ns(300);
    // A message of 100 kB to another host of the leaf: 100 packets over two links.
    let packets = |count: u64| RATE.serialise(1_066 * count);
    let across = packets(100) + packets(1) + Dur::from_us(2);
    let least = up * 6 + across * 2;
    for number in 0..2 {
        let (took, _) = took(&rail, number);
        let late = took.0 as f64 / least.0 as f64 - 1.0;
        // Acknowledgements of 40 B for packets of 1066 B share the links.
        assert!((0.0..0.05).contains(&late), "{took} {least}");
    }
    assert_eq!(between_leaves(&rail), 0);
    // A half of the vector goes around four nodes, in two steps.
    assert!(between_leaves(&leaf) > 2 * 8 * 600_000);
    assert!(rail.flows.iter().all(|row| row.dst == row.src ^ 1), "hosts 2r and 2r + 1 at leaf r");
}

/// What ranks of an all-to-all send to other rails crosses the spines, three quarters of what
/// leaves the nodes; with all NICs of a node at two leaves, all of it.
#[test]
fn an_all_to_all_crosses_rails() {
    let of = |nics: u32, wiring, threads| {
        let mut sets = with_nics(wiring);
        let nics = format!("traffic.0.nics={nics}");
        sets.extend(["traffic.0.collective=all-to-all".to_owned(), nics]);
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        run_with(IDLE, &sets, &Options { threads: Some(threads), ..Options::default() })
    };
    let rails = of(4, "rail", 1);
    assert_eq!(rails.summary.steps.completed, 2, "{:?}", rails.summary.warnings);
    // Two steps, eight ranks, 100 kB to each of the four of the other node.
    let sent: u64 = rails.flows.iter().filter_map(|row| row.size).sum();
    assert_eq!(sent, 2 * 8 * 4 * 100_000);
    let packets = 2 * 8 * 3 * 100;
    let bytes = between_leaves(&rails);
    let (data, acks) = (packets * 1_066, packets * 40);
    assert!(bytes > data && bytes <= data + acks, "{bytes}, of {data} and {acks}");
    for threads in [2, 8] {
        let other = of(4, "rail", threads);
        assert_eq!(other.summary.digest, rails.summary.digest);
        assert!(other.steps == rails.steps && other.collectives == rails.collectives);
    }
    // Nodes of two NICs at one leaf: all that leaves a node leaves its leaf.
    let leaf = of(2, "leaf", 1);
    assert!(between_leaves(&leaf) > 2 * 8 * 6 * 100 * 1_066);
}

#[test]
fn nodes_that_cannot_be_are_refused() {
    let refused = |wiring: &str, set: &str| {
        let mut sets = with_nics(wiring);
        sets.push(set.to_owned());
        parse(IDLE, &sets).err().unwrap_or_else(|| panic!("{set} is taken"))
    };
    for (wiring, set, expected) in [
        ("rail", "traffic.0.nics=3", "8 hosts are no whole number of nodes of 3"),
        ("rail", "traffic.0.nics=8", "4 leaves are no whole number of groups of 8"),
        ("rail", "traffic.0.hosts='0, 1, 2, 4'", "leaves have 2 and 1 hosts of this job"),
        ("leaf", "traffic.0.nics=4", "of one node, hang at several leaves"),
        ("rail", "traffic.0.scale_up_latency=0", "hosts of their own"),
    ] {
        let said = refused(wiring, set);
        assert!(said.contains(expected), "{set}: {said}");
    }
    let alone = ["traffic.0.nic_wiring=rail".to_owned()];
    let said = parse(IDLE, &alone).err().unwrap();
    assert!(said.contains("`nic_wiring` has no effect here"), "{said}");
}

/// Ranks where a file says: 0 and 1 on the hosts of one leaf, 2 on another.
#[test]
fn ranks_are_placed_by_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ranks.txt");
    let placed = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let mut sets = vec![
            "traffic.0.placement=file".to_owned(),
            format!("traffic.0.placement_file={}", file.display()),
        ];
        sets.extend(more.iter().map(|set| (*set).to_owned()));
        sets
    };
    let sets = placed("# rank 0 first\n3\n\n6\n1\n", &[]);
    let results = run(IDLE, &sets.iter().map(String::as_str).collect::<Vec<_>>());
    let mut pairs: Vec<(u32, u32)> = results.flows.iter().map(|row| (row.src, row.dst)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs, [(1, 3), (3, 6), (6, 1)], "a ring of three");
    let refused = |text: &str, more: &[&str]| {
        parse(IDLE, &placed(text, more)).err().unwrap_or_else(|| panic!("{text:?} is taken"))
    };
    for (text, more, expected) in [
        ("0\n1\n0\n", &[][..], "ranks.txt:3:1"),
        ("0\n8\n", &[], "ranks.txt:2:1"),
        ("0\n5\n", &["traffic.0.hosts='0-3'"], "ranks.txt:2:1"),
        ("0\none\n", &[], "ranks.txt:2:1"),
        ("0 1\n", &[], "ranks.txt:1:3"),
        ("# nobody\n", &[], "no ranks are placed"),
        ("0\n1\n", &["traffic.0.ranks=3"], "2 ranks are placed, and the job has 3"),
        ("0\n1\n", &["traffic.0.nics=2"], "`nics` has no effect here"),
    ] {
        let said = refused(text, more);
        assert!(said.contains(expected), "{text:?} {more:?}: {said}");
    }
    let alone = [format!("traffic.0.placement_file={}", file.display())];
    let said = parse(IDLE, &alone).err().unwrap();
    assert!(said.contains("`placement_file` has no effect here"), "{said}");
}

/// A trace in the place of the collective of [`IDLE`].
fn traced(file: &str, algorithm: &str) -> String {
    let from = IDLE.find("collective").unwrap();
    format!(
        "{}file = \"../ai/tests/data/{file}\"\nranks_per_host = 1\nplacement = \
         \"packed\"\nalgorithm = \"{algorithm}\"\nconnections = \"persistent\"\n",
        &IDLE[..from]
    )
}

#[test]
fn traces_are_played() {
    let tree = run(&traced("tree_8.goal", "ring"), &[]);
    assert_eq!((tree.summary.steps.completed, tree.flows.len()), (1, 14));
    // astra-sim's example: an all-reduce of 1 MiB among 8.
    let ring = run(&traced("astra-sim/all_reduce/8npus_1MB", "ring"), &[]);
    assert_eq!((ring.collectives.len(), ring.flows.len()), (8, 8 * 14));
    let (took, ideal) = took(&ring, 0);
    let (took, ideal) = (took.as_us_f64(), ideal.unwrap().as_us_f64());
    // Acknowledgements of 40 B share the links with packets of 1066 B.
    assert!((ideal..ideal * 1.05).contains(&took), "{took} {ideal}");
}

#[test]
fn traces_that_are_wrong_say_where() {
    let refused = |file: &str, algorithm: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        parse(&traced(file, algorithm), &sets).err().unwrap_or_else(|| panic!("{file} is taken"))
    };
    let large = refused("astra-sim/all_reduce/16npus_1MB", "ring", &[]);
    assert!(large.contains("16") && large.contains("8"), "{large}");
    let none = refused("tree_8.goal", "trace", &[]);
    assert!(none.contains("no file of this job says an algorithm"), "{none}");
    let missing = refused("tree_9.goal", "ring", &[]);
    assert!(missing.contains("cannot read"), "{missing}");
    let kind = refused("README.md", "ring", &[]);
    assert!(kind.contains("is no trace that can be read"), "{kind}");
    let few = refused("tree_8.goal", "ring", &["topology.hosts=4"]);
    assert!(few.contains("tree_8.goal:2"), "the line: {few}");
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read("../ai/tests/data/pair/pair.1.et").unwrap();
    let cut = dir.path().join("cut.0.et");
    std::fs::write(&cut, &whole[..whole.len() - 9]).unwrap();
    let said = refused("tree_8.goal", "ring", &[&format!("traffic.0.file={}", cut.display())]);
    assert!(said.contains("cut.0.et: record"), "{said}");
    let network = dir.path().join("network.json");
    std::fs::write(&network, "{\n  \"logical-dims\": [\"4\"]\n}").unwrap();
    let network = format!("traffic.0.network={}", network.display());
    let other = refused("astra-sim/all_reduce/8npus_1MB", "ring", &[&network]);
    assert!(other.contains("network.json:2:4") && other.contains("logical-dims"), "{other}");
    let scenario = parse(&traced("tree_8.goal", "ring"), &[network]).unwrap();
    let warning = "`network` goes with Chakra traces, and this is none";
    let mut warnings = scenario.warnings().iter().map(ToString::to_string);
    assert!(warnings.any(|of| of.contains(warning)), "{:?}", scenario.warnings());
}

#[test]
fn a_job_that_cannot_go_on_says_who_waits_for_whom() {
    let fault = "fault=[{at='50us', link='host 2 -> tor 0', action='down'}]";
    let results = run(IDLE, &[fault, "measure.limit=5ms", "routing.reroute_after=1ms"]);
    let steps = results.summary.steps;
    assert_eq!((steps.completed, steps.unfinished), (0, 1));
    let said = results.summary.warnings.iter().find(|w| w.contains("the job `job`"));
    let said = said.unwrap_or_else(|| panic!("{:?}", results.summary.warnings));
    let expected = "has done 0 of 2 steps; in step 0 rank 1 (host 1) waits until rank 2 (host 2) \
                    has its message: all-reduce of 800000 B (task 0); other ranks that wait: 7";
    assert!(said.contains(expected), "{said}");
    assert!(results.steps.len() == 8 && results.steps.iter().all(|row| !row.completed));
}

#[test]
fn bad_jobs_are_refused() {
    let refused = |text: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        parse(text, &sets).err().unwrap_or_else(|| panic!("{sets:?} is taken"))
    };
    let cases: [(&str, &[&str], &str); 8] = [
        (IDLE, &["traffic.0.ranks=9"], "9 ranks, 1 on each host, need 9 hosts, and there are 8"),
        (
            IDLE,
            &[
                "traffic.0.collective=all-gather",
                "traffic.0.algorithm=halving-doubling",
                "traffic.0.ranks=6",
            ],
            "needs a power of two of ranks, and the group has 6",
        ),
        (MODEL, &["traffic.0.expert_parallel=3"], "3 ranks share experts, which does not divide 4"),
        (MODEL, &["traffic.0.data_parallel=5"], "2 x 5 x 2 ranks, and the hosts have 16"),
        (IDLE, &["traffic.0.chunk=1B", "traffic.0.size=10GB"], "too many messages"),
        (MODEL, &["traffic.0.collective=all-reduce"], "exclude each other"),
        (IDLE, &["traffic.0.algorithm=star"], "star"),
        (
            &IDLE.replace("ranks_per_host = 1", "ranks_per_host = 3\nranks = 8"),
            &[
                "traffic.0.algorithm=hierarchical",
                "traffic.0.scale_up_rate=1Tbps",
                "traffic.0.scale_up_latency=1us",
            ],
            "equally many ranks of its group on each host: there are 3 and 2",
        ),
    ];
    for (text, sets, expected) in cases {
        let said = refused(text, sets);
        let words = |text: &str| {
            text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
        };
        assert!(words(&said).contains(&words(expected)), "{sets:?}: {said}");
    }
    let said = refused(&IDLE.replace("size = \"800kB\"\n", ""), &[]);
    assert!(said.contains("size"), "{said}");
}

/// A traced run has a track for each rank, with its steps, work and collectives.
#[test]
fn ranks_have_tracks_on_the_time_line() {
    let sets = ["traffic.0.compute=20us".to_owned(), "traffic.0.size=80kB".to_owned()];
    let scenario = parse(IDLE, &sets).unwrap_or_else(|e| panic!("{e}"));
    let dir = tempfile::tempdir().unwrap();
    let out = metrics::OutputDir::create(dir.path()).unwrap();
    let trace = trimline_scenario::Trace { packets: true, ..Default::default() };
    let options = Options { trace, ..Options::default() };
    trimline_scenario::run(&scenario, &options, &out, &mut |_| ()).unwrap();
    out.commit().unwrap();
    let text = std::fs::read_to_string(dir.path().join("trace.perfetto.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let names = events.iter().filter_map(|event| event["args"]["name"].as_str());
    assert_eq!(names.filter(|name| name.starts_with("job: rank ")).count(), 8);
    let begun = |name: &str| {
        events.iter().filter(|event| event["ph"] == "b" && event["name"] == name).count()
    };
    let counts = [begun("step 0"), begun("step 1"), begun("work"), begun("all-reduce")];
    assert_eq!(counts, [8, 8, 16, 16]);
}
