//! `--trace flows@SRC:MSG`: windows, rates and round trips of one message over time.

use std::path::Path;

use metrics::{FlowTraceRow, OutputDir, read_flow_trace};
use trimline_scenario::{Options, Scenario, Trace, run};
use units::{Dur, HostId, MsgId, MsgKey};

use crate::EXACT;
use crate::life::{HOMA, PRIORITIES};

/// What is traced of the only message: 300 kB over two links of 10 Gb/s and 1 us.
fn traced(queue: &str, transport: &str) -> Vec<FlowTraceRow> {
    let text = format!(
        "name = \"one flow\"\nseed = 1\nrouting.mode = \"ecmp\"\n\
         topology = {{ kind = \"star\", hosts = 2, link_rate = \"10Gbps\", link_delay = \"1us\" }}\n\
         [queue]\n{queue}\n[transport]\n{transport}\n\
         [traffic]\nkind = \"random\"\nsources = 0\ndestinations = 1\nsize = \"300KB\"\n"
    );
    let exact: Vec<String> = EXACT.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("flow.toml", &text, Path::new(""), &exact);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let key = |id| MsgKey { src: HostId(0), id: MsgId(id) };
    let trace = Trace { flows: vec![key(0), key(7)], ..Trace::default() };
    let dir = tempfile::tempdir().unwrap();
    let out = OutputDir::create(dir.path()).unwrap();
    let written = run(&scenario, &Options { trace, ..Options::default() }, &out, &mut |_| ());
    let summary = written.unwrap().summary;
    out.commit().unwrap();
    assert!(summary.warnings.iter().any(|w| w.contains("nothing to trace of message 7")));
    assert_eq!(summary.rtt_us.mean, None, "samples are for the trace only");
    let rows = read_flow_trace(&dir.path().join("flow_trace.parquet")).unwrap();
    assert!(rows.is_sorted_by_key(|row| row.at) && rows.iter().all(|row| row.msg == 0));
    rows
}

const DROP_TAIL: &str = "kind = \"drop-tail\"\ncapacity = \"300 packets\"";

#[test]
fn a_window_in_slow_start_grows_by_what_is_acknowledged() {
    let rows = traced(
        DROP_TAIL,
        "kind = \"tcp\"\nrule = \"newreno\"\nrecovery = \"newreno\"\necn = false\n\
         preset = \"linux-datacenter\"\nmss = \"1460B\"\ninitial_window = 10.0",
    );
    let windows: Vec<u64> = rows.iter().filter_map(|row| row.window).collect();
    assert_eq!(windows[0], 14_600);
    assert!(windows.is_sorted() && windows.last() > Some(&14_600), "{windows:?}");
    let within = |row: &FlowTraceRow| row.in_flight <= row.window && row.rate.is_none();
    assert!(rows.iter().filter(|row| row.rtt.is_none()).all(within));
    // A segment and its acknowledgement over two links each, and nothing shorter.
    let least = rows.iter().filter_map(|row| row.rtt).min().unwrap();
    assert!((Dur::from_us(6)..Dur::from_us(8)).contains(&least), "{least}");
}

#[test]
fn subflows_count_together() {
    let rows = traced(
        DROP_TAIL,
        "kind = \"mptcp\"\nphases = \"multipath\"\nsubflows = 2\npreset = \"linux\"\n\
         mss = \"1460B\"",
    );
    let most = rows.iter().filter_map(|row| row.window).max().unwrap();
    assert!(most >= 2 * 14_600, "{most}");
}

#[test]
fn a_paced_queue_pair_has_a_rate() {
    let rows = traced(
        DROP_TAIL,
        "kind = \"rdma\"\nrule = \"dcqcn\"\npreset = \"paper\"\npayload = \"1000B\"",
    );
    let rates: Vec<u64> = rows.iter().filter_map(|row| row.rate).collect();
    assert!(!rates.is_empty() && rates.iter().all(|&rate| rate == 10_000_000_000), "{rates:?}");
    assert!(rows.iter().any(|row| row.in_flight > Some(0)));
}

#[test]
fn credit_is_what_receivers_have_given() {
    let ndp = traced(
        "kind = \"ndp\"\ncapacity = \"8 packets\"",
        "kind = \"ndp\"\npreset = \"paper\"\npayload = \"9000B\"\ninitial_window = 12",
    );
    // The first packet leaves at once.
    assert_eq!(ndp[0].credit, Some(11 * 9_000));
    assert_eq!(ndp[0].in_flight, Some(9_000));
    let homa = traced(PRIORITIES, HOMA);
    let credits: Vec<u64> = homa.iter().filter_map(|row| row.credit).collect();
    assert!(credits.iter().any(|&credit| credit > 0) && credits.len() > 10, "{credits:?}");
    assert!(credits.iter().all(|&credit| credit <= 300_000));
}
