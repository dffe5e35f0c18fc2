//! Partition and aggregate over TCP: quality is lost where a port overflows and a timeout is longer
//! than a deadline, and nowhere else.

use std::path::Path;

use trimline_scenario::{Options, Results, Scenario, evaluate};

const QUERIES: &str = include_str!("../../../../scenarios/partition_aggregate.toml");

fn load(sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("queries.toml", QUERIES, Path::new(""), &sets);
    scenario.map_err(|e| e.render(false))
}

/// Twenty queries with `sets`.
fn run(sets: &[&str]) -> Results {
    let scenario = load(&[&["traffic.0.queries=20"], sets].concat());
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// One worker: a request of 1600 B and an answer of 1460 B, and nothing else.
#[test]
fn a_lone_answer_takes_what_the_links_take() {
    let one = ["traffic.0.fanout=[1]", "traffic.0.deadlines=['250ms']", "traffic.0.size=1460B"];
    let results = run(&[&one[..], &crate::EXACT].concat());
    let jobs = results.summary.jobs;
    // 8 ns a byte. A request of 1500 and 180 B, which waits for the first at the switch, then an
    // answer of 1500 B; two links of 20 us each time.
    let request = (2.0 * 1500.0 + 180.0) * 0.008 + 40.0;
    let alone = request + 2.0 * 1500.0 * 0.008 + 40.0;
    // The request's acknowledgement of 40 B may leave before the answer.
    let acknowledgement = 0.32;
    assert_eq!(jobs.completed, 20);
    let [min, max] = [jobs.time_us.min, jobs.time_us.max].map(Option::unwrap);
    assert!((min - alone).abs() < 1e-3, "{min} {alone}");
    assert!((max - alone - acknowledgement).abs() < 1e-3, "{max} {alone}");
    assert_eq!((jobs.quality.min, results.jobs[0].bytes), (Some(1.0), 1460));
}

/// TCP loses tails of ten answers at once, whose timeout is as long as the deadline; DCTCP keeps
/// the queue short.
#[test]
fn what_overflows_a_port_is_missed() {
    let tcp = run(&[]);
    let jobs = tcp.summary.jobs;
    assert_eq!(jobs.completed, 20);
    assert!(tcp.summary.packets.dropped > 0);
    let quality = jobs.quality.mean.unwrap();
    assert!((0.5..0.999).contains(&quality), "{quality}");
    // Nobody waits longer than the deadline, and those that end sooner have everything.
    assert!(jobs.time_us.max.unwrap() <= 250_000.0);
    for job in &tcp.jobs {
        assert_eq!((job.parts, job.completed), (40, true));
        // The root may have all answers of its aggregators, and these not all of their workers'.
        assert!(job.in_time <= 40 && job.bytes <= 800_000 && job.bytes >= job.in_time * 20_000);
    }
    let dctcp = run(&["transport.0.rule=dctcp", "transport.0.ecn=true"]);
    assert_eq!(dctcp.summary.packets.dropped, 0);
    assert_eq!(dctcp.summary.jobs.quality.min, Some(1.0));
}

/// Deadlines that nothing can meet: no results, but queries that end.
#[test]
fn a_deadline_too_short_for_the_network_leaves_nothing() {
    let results = run(&["traffic.0.deadlines=['90us', '80us']"]);
    let jobs = results.summary.jobs;
    assert_eq!((jobs.completed, jobs.quality.max), (20, Some(0.0)));
    assert_eq!(jobs.time_us.max, Some(90.0));
    // What is late is delivered nevertheless.
    assert_eq!(results.summary.flows.messages.submitted, results.summary.flows.messages.completed);
}

/// Queries that end at their deadline, before their messages have: what is under way has a bound,
/// as in any open loop.
#[test]
fn queries_faster_than_the_network_end_soon_with_a_warning() {
    let sets = ["deadlines=['9us', '8us']", "gap='1us'", "queries=100000"];
    let sets = sets.map(|set| format!("traffic.0.{set}"));
    let scenario = load(&sets.each_ref().map(String::as_str)).unwrap_or_else(|e| panic!("{e}"));
    let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let warnings = results.summary.warnings;
    let says = "more than 100000 messages were in flight (measure.max_in_flight)";
    assert!(warnings.iter().any(|warning| warning.contains(says)), "{warnings:?}");
}

#[test]
fn impossible_trees_are_located() {
    for (set, says) in [
        ("traffic.0.fanout=[]", "an impossible `fanout`"),
        ("traffic.0.fanout=[4, 0]", "an impossible `fanout`"),
        ("traffic.0.fanout=[100000, 100000]", "an impossible `fanout`"),
        ("traffic.0.fanout=[4, 41]", "a node asks 41 `workers`, and there are 40"),
        ("traffic.0.fanout=[5, 4]", "a node asks 5 `aggregators`, and there are 4"),
        ("traffic.0.deadlines=['1ms']", "1 deadlines for 2 levels"),
        ("traffic.0.deadlines=['1ms', '1ms']", "a deadline that no answer can meet"),
        ("traffic.0.deadlines=['1ms', '0us']", "a deadline that no answer can meet"),
        ("traffic.0.query_rate=10", "`gap` and `query_rate` exclude each other"),
        ("traffic.0.size=unbounded", "must end"),
        ("traffic.0.request=unbounded", "must end"),
        ("traffic.0.until=0", "nothing would ever begin"),
        ("traffic.0.aggregate=best", "unknown aggregate"),
        ("traffic.0.workers=99", "`workers`"),
    ] {
        let error = load(&[set]).map(|_| ()).unwrap_err();
        assert!(error.contains(says), "{set}: {error}");
        assert!(error.contains("help: "), "{set}: {error}");
    }
}
