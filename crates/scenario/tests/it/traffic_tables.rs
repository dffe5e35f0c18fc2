//! Traffic between some of the hosts, results by table, and the latency of packets.

use std::path::Path;

use metrics::FlowRow;
use trimline_scenario::{Options, Results, Scenario, evaluate};

/// NDP on eight hosts around one switch.
const STAR: &str = r#"
    name = "star"
    seed = 1
    topology = { kind = "star", hosts = 8, link_rate = "10Gbps", link_delay = "1us" }
    queue = { kind = "ndp", capacity = "8 packets" }
    routing = { mode = "permute" }
    host = { clock_ppm = 0, send_jitter = "0" }
    transport = { kind = "ndp", preset = "paper", payload = "9000B", initial_window = 10 }
"#;

fn load(rest: &str) -> Result<Scenario, String> {
    let parsed = Scenario::parse("star.toml", &format!("{STAR}{rest}"), Path::new(""), &[]);
    parsed.map_err(|e| e.render(false))
}

fn run(rest: &str) -> Results {
    let scenario = load(rest).unwrap_or_else(|e| panic!("{e}"));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// Source and destination of every message of table `traffic`.
fn pairs(results: &Results, traffic: u16) -> Vec<(u32, u32)> {
    let of_table = |r: &&FlowRow| r.traffic == traffic;
    results.flows.iter().filter(of_table).map(|r| (r.src, r.dst)).collect()
}

#[test]
fn a_short_transfer_again_and_again_beside_others() {
    let results = run(r#"
        measure = { from = "1ms", to = "6ms" }
        [[traffic]]
        kind = "random"
        sources = "all but 0, 1"
        destinations = "2-7"
        flows_per_host = 4
        size = "unbounded"
        [[traffic]]
        name = "short"
        kind = "closed-loop"
        sources = 0
        destinations = 1
        connections = 1
        gap = 0
        gap_kind = "fixed"
        keep_destination = true
        size = "90KB"
    "#);
    let long = pairs(&results, 0);
    assert_eq!(long.len(), 6 * 4);
    for host in 2..8 {
        assert_eq!(long.iter().filter(|(src, _)| *src == host).count(), 4, "host {host}");
    }
    assert!(long.iter().all(|&(src, dst)| src > 1 && dst > 1 && src != dst), "{long:?}");
    let short = pairs(&results, 1);
    assert!(short.iter().all(|&pair| pair == (0, 1)), "{short:?}");
    // Undisturbed: ten packets of 9064 B one after another over two hops, and two links.
    let alone = 11.0 * 7.2512 + 2.0;
    let stats = &results.summary.traffic["short"];
    assert_eq!(stats.fct_us.p50, Some(alone));
    assert_eq!(stats.fct_us.max, Some(alone));
    // The acknowledgement takes two links and its own time on both; then the next one starts.
    let period = alone + 2.0 + 2.0 * 0.0512;
    let expected = 5_000.0 / period;
    let measured = results.flows.iter().filter(|r| r.traffic == 1 && r.measured).count();
    assert!((measured as f64 - expected).abs() <= 1.0, "{measured} of {expected}");
    assert_eq!(stats.flow_goodput_gbps.max, None, "the long flows are not its own");
    assert_eq!(results.summary.traffic.len(), 1, "only what has a name");
}

#[test]
fn starts_are_spread_and_sources_chosen() {
    let results = run(r#"
        [traffic]
        kind = "incast"
        sources = "4-7"
        receiver = 0
        senders = 3
        size = "9KB"
        start = "10us"
        start_spread = "50us"
    "#);
    assert!(results.flows.iter().all(|r| (4..8).contains(&r.src) && r.dst == 0));
    let us: Vec<u64> = results.flows.iter().map(|r| r.start.0 / 1_000_000).collect();
    assert!(us.iter().all(|us| (10..60).contains(us)), "{us:?}");
    assert!(us[0] != us[1] || us[1] != us[2], "{us:?}");
}

#[test]
fn the_latency_of_a_packet_is_what_it_takes_alone() {
    let results = run(r#"
        measure = { packet_latency = true }
        [traffic]
        kind = "incast"
        receiver = 0
        senders = 1
        size = "45KB"
    "#);
    let latency = results.summary.packet_latency_us;
    assert_eq!((latency.count, latency.unacknowledged), (5, 0));
    // 9064 B twice, 64 B back twice, four times 1 us.
    let alone = 2.0 * 7.2512 + 2.0 * 0.0512 + 4.0;
    for measured in [latency.p50, latency.max] {
        assert!((measured.unwrap_or_default() - alone).abs() < 1e-9, "{latency:?}");
    }
}

#[test]
fn the_latency_of_a_trimmed_packet_counts_from_its_first_transmission() {
    let two = |measure: &str| {
        let traffic = "[traffic]\nkind = \"incast\"\nreceiver = 0\nsenders = 2\nsize = \"9KB\"\n";
        let scenario = load(&format!("measure = {{ {measure} }}\n{traffic}")).unwrap();
        let sets = ["queue.capacity=1 packets".to_owned()];
        let text = toml::to_string(scenario.resolved()).unwrap();
        let scenario = Scenario::parse("one packet", &text, Path::new(""), &sets);
        let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
        evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap().summary
    };
    let summary = two("packet_latency = true");
    assert_eq!(summary.packets.trimmed, 1);
    let latency = summary.packet_latency_us;
    assert_eq!((latency.count, latency.unacknowledged), (2, 0), "each packet once");
    // One goes straight through. The other is trimmed, its header follows the first packet, comes
    // back as a NACK with a pull, and the packet goes once more: two crossings of data, one of a
    // header behind data, two of control.
    let (data, control, link) = (7.2512, 0.0512, 1.0);
    let straight = 2.0 * data + 2.0 * control + 4.0 * link;
    let header = 2.0 * data + control + 2.0 * link;
    let nack = 2.0 * control + 2.0 * link;
    assert!((latency.p50.unwrap_or_default() - straight).abs() < 1e-6, "{latency:?}");
    assert!(
        (latency.max.unwrap_or_default() - (header + nack + straight)).abs() < 1e-6,
        "{latency:?}"
    );
    assert_eq!(summary.digest, two("").digest, "measuring changes nothing");
    // A window that begins between the two transmissions of the trimmed packet.
    let latency = two("packet_latency = true, from = \"10us\", to = \"1ms\"").packet_latency_us;
    assert_eq!((latency.count, latency.unacknowledged), (0, 0), "sent again is not sent first");
}

#[test]
fn sources_may_be_drawn_as_destinations_are() {
    let results = run(r#"
        [traffic]
        kind = "random"
        sources = "2-7"
        flows = 24
        random_sources = true
        size = "9KB"
    "#);
    let pairs = pairs(&results, 0);
    assert_eq!(pairs.len(), 24);
    assert!(pairs.iter().all(|&(src, dst)| src > 1 && src != dst), "{pairs:?}");
    let sent = |host| pairs.iter().filter(|(src, _)| *src == host).count();
    assert!((2..8).any(|host| sent(host) != 4), "not in turns: {pairs:?}");
}

#[test]
fn impossible_tables_say_what_is_wrong() {
    let closed = "[traffic]\nkind = \"closed-loop\"\nconnections = 1\ngap = 0\nsize = \"1KB\"\n\
                  gap_kind = \"fixed\"\nkeep_destination = true\n";
    let random = "[traffic]\nkind = \"random\"\nsize = \"1KB\"\n";
    for (rest, says) in [
        (format!("{closed}sources = \"0-8\""), "`sources`: host 8 does not exist"),
        (format!("{closed}sources = \"0-\""), "names no hosts"),
        (format!("{closed}destinations = 3"), "host 3 would send to itself"),
        (format!("{random}flows = 8\nflows_per_host = 1"), "exclude each other"),
        (format!("{random}name = \"a.b\""), "`a.b` is no name"),
        (format!("{random}until = \"1ms\""), "it has an effect only with `every`"),
        (random.replace("random", "closed-loop"), "4 keys are missing in [traffic]"),
    ] {
        let error = load(&rest).map(drop).unwrap_err();
        assert!(error.contains(says), "{says}: {error}");
    }
}
