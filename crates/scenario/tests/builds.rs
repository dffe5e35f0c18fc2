//! A build must not change a result: the digests of small runs, one for each rule of
//! rates and windows and each kind of switch, as any build for any processor must find them.
//! `make test` runs this as all tests, with the checks of a debug build, `make swarm` as a release.
//!
//! What changes a model on purpose changes its digest here: run the test with `--nocapture`, say
//! why in the commit.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// Sixteen hosts: an incast beside a permutation, 200 us.
const SCENARIO: &str = r#"
    name = "builds"
    seed = 1
    topology = { kind = "fat-tree", k = 4, link_rate = "25Gbps", link_delay = "1us" }
    routing = { mode = "ecmp" }
    measure = { limit = "200us" }
    [[traffic]]
    kind = "incast"
    senders = 8
    receiver = 0
    size = "40KB"
    [[traffic]]
    kind = "permutation"
    size = "200KB"
"#;

const LOSSLESS: &str = "kind=\"lossless\", preset=\"hpcc\", buffer=\"1MB\"";
const ECN: &str = "ecn={min=\"5KB\", max=\"60KB\", probability=0.1, at=\"departure\"}";
const RED: &str = "kind=\"drop-tail\", capacity=\"100KB\", ecn_threshold=\"30KB\"";
const PAYLOAD: &str = "payload=\"1000B\"";

/// What it is, its queues, its transport, its digest.
fn runs() -> Vec<(&'static str, String, String, u64)> {
    let lossless = LOSSLESS.to_owned();
    let marking = format!("{LOSSLESS}, {ECN}");
    let rdma = |rule: &str| format!("kind=\"rdma\", rule={rule}, {PAYLOAD}");
    let tcp = |rule: &str| {
        format!(
            "kind=\"tcp\", rule=\"{rule}\", recovery=\"sack\", ecn={}, preset=\"linux-datacenter\", mss=\"1460B\"",
            rule == "dctcp"
        )
    };
    vec![
        ("rdma", lossless.clone(), rdma("\"none\", preset=\"roce\""), 0xb164_3a87_05d9_e7ec),
        (
            "timely",
            lossless.clone(),
            rdma("\"timely\", preset=\"paper\", rtt_noise=\"3us\""),
            0x9e5c_b4ef_0cfd_084c,
        ),
        (
            "timely read",
            lossless.clone(),
            rdma("\"timely\", preset=\"erpc\", operation=\"read\""),
            0xdaf0_bca0_d8e5_b3de,
        ),
        (
            "patched",
            lossless.clone(),
            rdma("\"patched-timely\", preset=\"paper\""),
            0x8cab_349c_2a2d_a29f,
        ),
        (
            "fast",
            lossless.clone(),
            rdma("\"fast\", preset=\"timely-paper\", alpha=\"50Mbps\""),
            0x63d3_7113_80b2_f989,
        ),
        ("dcqcn", marking.clone(), rdma("\"dcqcn\", preset=\"paper\""), 0x810f_8935_1eb9_7dac),
        ("dcqcn mlx", marking, rdma("\"dcqcn\", preset=\"mlx\""), 0x6760_cdc8_3941_6272),
        (
            "hpcc",
            lossless.clone(),
            rdma("\"hpcc\", preset=\"paper\", rtt=\"14us\", flows=8"),
            0xbd88_d818_21b5_019b,
        ),
        ("swift", lossless, rdma("\"swift\", preset=\"paper\""), 0x5c38_821b_9b4d_3587),
        (
            "swift, losses",
            RED.to_owned(),
            rdma("\"swift\", preset=\"paper\", initial_window=0.5"),
            0xbc76_5201_5a68_e40b,
        ),
        ("dctcp", RED.to_owned(), tcp("dctcp"), 0x9257_a64e_07d8_c5e5),
        ("cubic", RED.to_owned(), tcp("cubic"), 0xa7ff_955c_a7f9_67f8),
    ]
}

#[test]
fn every_build_finds_the_same_digests() {
    let (mut wrong, mut digests) = (Vec::new(), Vec::new());
    for (name, queue, transport, expected) in runs() {
        let sets = [format!("queue={{{queue}}}"), format!("transport={{{transport}}}")];
        let scenario = Scenario::parse("builds.toml", SCENARIO, Path::new(""), &sets);
        let scenario = scenario.unwrap_or_else(|e| panic!("{name}: {}", e.render(false)));
        let options = Options { threads: Some(1), ..Options::default() };
        let outcome = simulate(&scenario, &options, &mut |_| ()).unwrap().outcome;
        println!("{name}: {:#018x}, {} packet-hops", outcome.digest, outcome.packet_hops);
        if outcome.digest != expected {
            wrong.push(format!("{name}: {:#018x}, not {expected:#018x}", outcome.digest));
        }
        assert!(outcome.packet_hops > 5_000, "{name} does too little");
        digests.push(outcome.digest);
    }
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), runs().len(), "two of them are the same run");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
