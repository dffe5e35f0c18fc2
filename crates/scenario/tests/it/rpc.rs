//! `kind = "rpc"`: what a call takes, whom clients call, and how many calls a load is.

use std::path::Path;

use metrics::FlowRow;
use trimline_scenario::{Options, Results, Scenario, evaluate};

const MIX: &str = include_str!("../../../../scenarios/rpc_reads_and_writes.toml");

fn load(sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("rpc.toml", MIX, Path::new(""), &sets);
    scenario.map_err(|e| e.render(false))
}

fn run(sets: &[&str]) -> Results {
    let scenario = load(sets).unwrap_or_else(|e| panic!("{e}"));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// Reads that never meet each other: hardly any load, and servers that answer at once.
#[test]
fn a_lone_call_takes_what_the_links_take() {
    let still =
        ["load=0.0005", "compute=0"].map(|set| [0, 1].map(|t| format!("traffic.{t}.{set}")));
    let still: Vec<&str> = still.iter().flatten().map(String::as_str).collect();
    let until = ["traffic.0.until=1s", "traffic.1.until=1s"];
    let results = run(&[&still[..], &until[..], &crate::EXACT].concat());
    // 6 links of 1 us each way. A request, or response, of 1 KB is a packet of 1064 B; the other is
    // seven packets of 9064 B and a last one of 1064 B, which may overtake the others on another
    // path.
    let request = 6.0 * (1064.0 * 0.0008 + 1.0);
    let response = (7.0 * 9064.0 + 5.0 * 9064.0 + 1064.0) * 0.0008 + 6.0;
    for table in ["reads", "writes"] {
        let jobs = results.summary.traffic[table].jobs;
        assert!(jobs.completed > 50, "{}", jobs.completed);
        let least = jobs.time_us.min.unwrap();
        assert!((least - request - response).abs() < 1.0, "{table}: {least}");
        assert_eq!(jobs.quality.min, Some(1.0));
    }
}

/// Hosts 0 to 7 of 16, in four pods: a path of six links leads to the twelve of other pods.
#[test]
fn clients_call_only_hosts_as_far_away_as_any() {
    let results = run(&[]);
    let (requests, responses): (Vec<&FlowRow>, Vec<&FlowRow>) =
        results.flows.iter().partition(|row| match row.traffic {
            0 => row.size == Some(1_000),
            _ => row.size == Some(64_000),
        });
    assert!(requests.iter().all(|row| row.src < 8 && row.src / 4 != row.dst / 4));
    let mut servers: Vec<u32> = requests.iter().map(|row| row.dst).collect();
    servers.sort_unstable();
    servers.dedup();
    assert_eq!(servers.len(), 16);
    assert_eq!(requests.len(), responses.len(), "every request has its response");
    assert_eq!(results.jobs.len(), requests.len());
    // Payload of both directions over the clients' 8 links in 20 ms; sigma is 2 %.
    let bytes = |table| {
        let of_table = results.flows.iter().filter(|row| row.traffic == table);
        of_table.filter_map(|row| row.size).sum::<u64>() as f64
    };
    for (table, load) in [(0, 0.4), (1, 0.2)] {
        let offered = bytes(table) * 8.0 / (8.0 * 10e9 * 20e-3);
        assert!((offered / load - 1.0).abs() < 0.1, "{table}: {offered}");
    }
}

/// A closed loop keeps its calls under way, so many and no more.
#[test]
fn a_closed_loop_has_its_calls_outstanding() {
    let text = MIX.replace("load = 0.4", "outstanding = 3\ngap = 0\ngap_kind = \"fixed\"");
    let text = text.replace("load = 0.2", "outstanding = 1\ngap = 0\ngap_kind = \"fixed\"");
    let scenario = Scenario::parse("rpc.toml", &text, Path::new(""), &[]).unwrap();
    let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    for (table, outstanding) in [(0, 3), (1, 1)] {
        let mut calls: Vec<_> =
            results.jobs.iter().filter(|j| (j.host, j.traffic) == (0, table)).collect();
        calls.sort_unstable_by_key(|job| job.start);
        assert!(calls.len() > 50);
        for (n, job) in calls.iter().enumerate() {
            // Those that end later, or now: the next begins at the same instant.
            let under_way = calls[..n].iter().filter(|before| before.end > job.start).count();
            assert_eq!(under_way, if n < outstanding { n } else { outstanding - 1 }, "call {n}");
        }
    }
}

#[test]
fn what_is_missing_or_too_much_is_named() {
    let refuses = |from: &str, to: &str, wanted: &str| {
        let text = MIX.replacen(from, to, 1);
        let error = Scenario::parse("rpc.toml", &text, Path::new(""), &[]).err().expect("refused");
        let error = error.render(false);
        assert!(error.contains(wanted), "{error}");
        assert!(error.contains("rpc.toml:"), "{error}");
    };
    refuses("load = 0.4", "", "outstanding = 4");
    refuses("load = 0.4", "load = 0.4\ncall_rate = 3", "`load` and `call_rate` exclude each other");
    refuses("response = \"64KB\"", "", "response = \"135KB\"");
    refuses("response = \"64KB\"", "response = \"2000GB\"", "a response of more than");
    refuses(
        "load = 0.4",
        "load = 0.4\ndestinations = \"0-1, 8\"\nhotspots = 8",
        "`longest_path = false`",
    );
    refuses("load = 0.4", "load = 0.4\ndestinations = \"0-3\"", "no destination 6 links away");
}
