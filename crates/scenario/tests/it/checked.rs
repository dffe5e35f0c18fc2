//! Choices without effect are warned of before a run: of each rule, a scenario that it warns of and
//! one that it does not.

use std::path::Path;

use trimline_scenario::{Options, Scenario, evaluate};
use units::{Dur, Time};

const NDP: &str = r#"{ kind = "ndp", preset = "paper", payload = "9000B", initial_window = 30 }"#;
const DCTCP: &str = r#"{ kind = "tcp", preset = "linux-datacenter", mss = "1460B",
    recovery = "sack", rule = "dctcp", ecn = true, initial_window = 100 }"#;
const CUBIC: &str = r#"{ kind = "tcp", preset = "linux-datacenter", mss = "1460B",
    recovery = "sack", rule = "cubic", ecn = ECN, initial_window = 100 }"#;
const HOMA: &str = r#"{ kind = "homa", preset = "paper", workload = "homa-w3",
    unscheduled_priorities = 4 }"#;
const DCQCN: &str = r#"{ kind = "rdma", rule = "dcqcn", preset = "paper",
    payload = "1000B", class = 3 }"#;
const DROP_TAIL: &str = r#"{ kind = "drop-tail", capacity = "100 packets" }"#;
const MARKING: &str =
    r#"{ kind = "drop-tail", capacity = "100 packets", ecn_threshold = "20 packets" }"#;
const TRIMMING: &str = r#"{ kind = "ndp", capacity = "8 packets" }"#;
const INCAST: &str = r#"{ kind = "incast", receiver = 0, senders = 7, size = "1MB" }"#;

/// At the end of a scenario: that news of faults takes some time.
const NEWS: &str = "# news";

/// Switches with priority flow control.
fn lossless(keys: &str) -> String {
    format!(
        "{{ kind = \"lossless\", preset = \"hpcc\", buffer = \"32MB\", headroom = \"auto\", {keys} }}"
    )
}

/// What is warned of in a star of eight hosts.
fn warned(transport: &str, queue: &str, traffic: &str, rest: &str) -> Vec<String> {
    let text = star(transport, queue, traffic, rest);
    let read = Scenario::parse("x.toml", &text, Path::new("."), &[]);
    let scenario = read.unwrap_or_else(|why| panic!("{}", why.render(false)));
    scenario.warnings().iter().map(ToString::to_string).collect()
}

/// A scenario of a star of eight hosts.
fn star(transport: &str, queue: &str, traffic: &str, rest: &str) -> String {
    let mode = if transport.contains("\"ndp\"") { "permute" } else { "ecmp" };
    let (news, rest) = match rest.strip_suffix(NEWS) {
        Some(rest) => ("reroute_after = \"10us\"\n", rest),
        None => ("", rest),
    };
    let inline = |text: &str| text.replace('\n', " ");
    format!(
        "name = \"checked\"\nseed = 1\ntransport = {}\nqueue = {}\ntraffic = {}\n{rest}\n\
         [routing]\nmode = \"{mode}\"\n{news}\
         [topology]\nkind = \"star\"\nhosts = 8\nlink_rate = \"10Gbps\"\nlink_delay = \"1us\"\n",
        inline(transport),
        inline(queue),
        inline(traffic)
    )
}

/// Check that the one scenario is warned of with `says` once, and the other of nothing.
fn one_of(says: &str, bad: &[String], good: &[String]) {
    assert_eq!(bad.iter().filter(|warning| warning.contains(says)).count(), 1, "{says}: {bad:?}");
    assert!(good.is_empty(), "{says}: {good:?}");
}

#[test]
fn marks() {
    let says = "congestion control acts on ECN marks, and no queue";
    let [bad, good] = [DROP_TAIL, MARKING].map(|queue| warned(DCTCP, queue, INCAST, ""));
    one_of(says, &bad, &good);
    let marked = MARKING.replace("100 packets", "4MB");
    let [bad, good] = [DROP_TAIL, &marked].map(|queue| warned(DCQCN, queue, INCAST, ""));
    one_of(says, &bad, &good);
    let ramp = "lossless = [3], ecn = { min = \"5KB\", max = \"200KB\", probability = 0.01, \
                at = \"departure\" }";
    let [bad, good] =
        ["lossless = [3]", ramp].map(|keys| warned(DCQCN, &lossless(keys), INCAST, ""));
    one_of(says, &bad, &good);

    let cubic = |ecn, queue| warned(&CUBIC.replace("ECN", ecn), queue, INCAST, "");
    one_of("`ecn` has no effect here", &cubic("true", DROP_TAIL), &cubic("true", MARKING));
    let far = MARKING.replace("20 packets", "120 packets");
    one_of("before it is long enough", &cubic("true", &far), &cubic("true", MARKING));
}

#[test]
fn trimming_and_priorities() {
    let ndp = |queue| warned(NDP, queue, INCAST, "");
    one_of("these queues never trim", &ndp(DROP_TAIL), &ndp(TRIMMING));
    let classes: Vec<String> = (0..8)
        .map(|class| format!("{{ class = {class}, kind = \"drop-tail\", capacity = \"1MB\" }}"))
        .collect();
    let by_class = format!("{{ kind = \"priority\", class = [{}] }}", classes.join(", "));
    let homa = |queue| warned(HOMA, queue, INCAST, "");
    for queue in [TRIMMING, DROP_TAIL] {
        one_of("these queues serve all alike", &homa(queue), &homa(&by_class));
    }
    let urgent = INCAST.replace("size", "priority = 1, size");
    let says = "the priority of these messages has no effect";
    let prio = NDP.replace("payload", "discipline = \"prio\", payload");
    let [bad, good] = [NDP, &prio].map(|ndp| warned(ndp, TRIMMING, &urgent, ""));
    one_of(says, &bad, &good);
}

#[test]
fn jobs_on_kept_connections() {
    let says = "each message between two hosts waits until the one before it is acknowledged";
    let classes: Vec<String> = (0..8)
        .map(|class| format!("{{ class = {class}, kind = \"drop-tail\", capacity = \"1MB\" }}"))
        .collect();
    let by_class = format!("{{ kind = \"priority\", class = [{}] }}", classes.join(", "));
    let job = |connections| {
        format!(
            "{{ kind = \"job\", collective = \"all-reduce\", size = \"1MB\", steps = 1, \
             ranks_per_host = 1, placement = \"packed\", algorithm = \"ring\", connections = \
             \"{connections}\" }}"
        )
    };
    let [bad, good] = ["persistent", "fresh"].map(|kept| warned(HOMA, &by_class, &job(kept), ""));
    one_of(says, &bad, &good);
    assert_eq!(warned(NDP, TRIMMING, &job("persistent"), ""), Vec::<String>::new());
}

#[test]
fn lossless_classes() {
    let says = "no packet is of a lossless class";
    let rdma = DCQCN.replace("dcqcn", "none").replace("paper", "roce");
    let [bad, good] =
        ["lossless = [6]", "lossless = [3]"].map(|keys| warned(&rdma, &lossless(keys), INCAST, ""));
    one_of(says, &bad, &good);
    let says = "the watchdog has nothing to do";
    let watched = ["lossless = [6]", "lossless = [3]"].map(|keys| {
        let keys = format!("{keys}, watchdog = \"1ms\", watchdog_action = \"drop\"");
        warned(&rdma, &lossless(&keys), INCAST, "")
    });
    let [bad, good] = watched;
    one_of(says, &bad, &good);
}

#[test]
fn what_comes_after_the_end() {
    let ndp = |traffic: &str, rest: &str| warned(NDP, TRIMMING, traffic, rest);
    let late = INCAST.replace("size", "start = \"3ms\", size");
    let says = "7 of 7 messages of this table start after the end: `limit` is 2.00 ms";
    let limits = ["2ms", "20ms"].map(|limit| format!("measure = {{ limit = \"{limit}\" }}"));
    let [bad, good] = limits.map(|rest| ndp(&late, &rest));
    one_of(says, &bad, &good);
    let stop = |stop| late.replace("size", &format!("stop = \"{stop}\", size"));
    one_of("`stop` is 2.00 ms", &ndp(&stop("2ms"), ""), &ndp(&stop("20ms"), ""));
    let fault = |at| {
        let fault = format!("at = \"{at}\", link = \"host 1 -> tor 0\", action = \"down\"");
        ndp(INCAST, &format!("measure = {{ limit = \"50ms\" }}\nfault = [{{ {fault} }}]\n{NEWS}"))
    };
    one_of("this fault comes after the end of the run", &fault("50ms"), &fault("1ms"));
    one_of("there is no [[fault]]", &ndp(INCAST, NEWS), &ndp(INCAST, ""));
}

/// A run ends when its messages are over, which nobody knows before.
#[test]
fn faults_that_a_run_does_not_live_to_see() {
    let fault = |at| {
        let fault = format!(
            "at = \"{at}\", link = \"host 1 -> tor 0\", action = \"rate\", rate = \"1Gbps\""
        );
        let text = star(NDP, TRIMMING, INCAST, &format!("fault = [{{ {fault} }}]\n{NEWS}"));
        let scenario = Scenario::parse("x.toml", &text, Path::new("."), &[]).unwrap();
        let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
        results.summary.warnings
    };
    let late: Vec<String> = fault("20ms");
    assert!(
        late.iter().any(|w| w.contains("faults that came after the end of the run, at 5.")),
        "{late:?}"
    );
    let seen = fault("1ms");
    assert!(!seen.iter().any(|w| w.contains("faults that came")), "{seen:?}");
}

#[test]
fn metrics_of_what_never_ends() {
    let sweep = "sweep = { axes = { n = [1] }, set = [\"seed={n}\"], seeds = [1], \
                 metrics = [\"fct_us.p99\"] }\nmeasure = { to = \"1ms\" }";
    let unbounded = INCAST.replace("1MB", "unbounded");
    let [bad, good] = [&unbounded, INCAST].map(|traffic| warned(NDP, TRIMMING, traffic, sweep));
    one_of("of messages without an end", &bad, &good);
}

#[test]
fn more_than_there_is_time_or_capacity_for() {
    let rest = |limit: &str| format!("measure = {{ limit = \"{limit}\" }}");
    let [bad, good] = ["5ms", "10ms"].map(|limit| warned(NDP, TRIMMING, INCAST, &rest(limit)));
    one_of("tor 0 -> host 0 has to carry takes 5.60 ms at least", &bad, &good);
    let poisson = |load: f64| {
        let traffic = format!(
            "{{ kind = \"poisson\", load = {load}, size = \"90KB\", destinations = \"0-3\" }}"
        );
        warned(NDP, TRIMMING, &traffic, "measure = { to = \"5ms\" }")
    };
    // Four receivers have what eight send, and those of the four send to three.
    one_of(
        "the load is more than the fabric carries: with headers 141 %",
        &poisson(0.7),
        &poisson(0.3),
    );
}

#[test]
fn a_first_window_below_the_bandwidth_delay_product() {
    let small = NDP.replace("= 30", "= 1");
    let says = "the initial window of 9000B is below the greatest bandwidth-delay product";
    let [bad, good] = [&small, NDP].map(|ndp| warned(ndp, TRIMMING, INCAST, ""));
    one_of(says, &bad, &good);
    let tcp = r#"{ kind = "tcp", preset = "linux-datacenter", rule = "newreno", recovery = "sack",
        ecn = false, mss = "1460B", initial_window = 1 }"#;
    let grown = warned(tcp, TRIMMING, INCAST, "");
    assert!(!grown.iter().any(|w| w.contains("initial window")), "slow start grows: {grown:?}");
}

/// Messages from file lists that nobody gave a limit.
#[test]
fn the_usual_limit_leaves_time_for_what_is_listed() {
    let limit = |traffic: &str| {
        let text = format!(
            "name = \"limit\"\nseed = 1\ntransport = {NDP}\nqueue = {TRIMMING}\n\
             traffic = {traffic}\n[routing]\nmode = \"permute\"\n\
             [topology]\nkind = \"star\"\nhosts = 8\nlink_rate = \"10Gbps\"\nlink_delay = \"1us\"\n"
        );
        let read = Scenario::parse("x.toml", &text, Path::new("."), &[]);
        read.unwrap_or_else(|why| panic!("{}", why.render(false))).measure().limit
    };
    assert_eq!(limit(INCAST), Time::ZERO + Dur::from_ms(1_000));
    // 7 GB take 5.6 s over the receiver's link: four times that, and a second.
    let large = INCAST.replace("1MB", "1GB");
    assert_eq!(limit(&large), Time::ZERO + Dur::from_ms(23_400));
    let flow = r#"{ kind = "flow", source = 3, destination = 5, size = "90KB", start = "3s" }"#;
    assert_eq!(limit(flow), Time::ZERO + Dur::from_ms(4_000) + Dur::from_us(288));
}

/// What no run could end with is refused.
#[test]
fn timers_and_payloads_have_a_least_value() {
    let refused = |transport: &str| {
        let text = format!(
            "name = \"least\"\nseed = 1\ntransport = {transport}\nqueue = {TRIMMING}\n\
             traffic = {INCAST}\nrouting = {{ mode = \"permute\" }}\n\
             [topology]\nkind = \"star\"\nhosts = 8\nlink_rate = \"10Gbps\"\nlink_delay = \"1us\"\n"
        );
        Scenario::parse("x.toml", &text, Path::new("."), &[]).err().map(|why| why.to_string())
    };
    let with = |keys: &str| NDP.replace("payload", &format!("{keys}, payload"));
    let timers = |time: &str| with(&format!("rto_initial = \"{time}\", rto_min = \"100ns\""));
    assert_eq!(refused(&timers("100ns")), None);
    let why = refused(&timers("1ps").replace("100ns", "1ps")).unwrap();
    assert!(why.starts_with("x.toml:3:") && why.contains("`rto_initial` is 1ps"), "{why}");
    let stray = refused(&with("request_timeout = \"1us\"")).unwrap();
    assert!(stray.contains("unknown key `request_timeout`"), "{stray}");
    assert_eq!(refused(&NDP.replace("9000B", "16B")), None);
    let why = refused(&NDP.replace("9000B", "15B")).unwrap();
    assert!(why.contains("packets with 15 bytes of payload"), "{why}");
}

/// The first took minutes to be read, as each link of a switch was looked for among all of them;
/// the second, as each pair of hosts was compared before the wrong key was named.
#[test]
fn large_fabrics_are_read_soon() {
    let started = std::time::Instant::now();
    let with = |topology: &str, traffic: &str| {
        let text = format!(
            "name = \"large\"\nseed = 1\ntransport = {NDP}\nqueue = {TRIMMING}\n\
             topology = {{ {topology}, link_rate = \"10Gbps\", link_delay = \"1us\" }}\n\
             routing = {{ mode = \"permute\" }}\nmeasure = {{ to = \"1ms\" }}\n\
             traffic = {traffic}\n"
        );
        Scenario::parse("x.toml", &text, Path::new("."), &[])
    };
    let leaves = "kind = \"leaf-spine\", leaves = 4, spines = 2, hosts_per_leaf = 60000, \
                  uplink_rate = \"100Gbps\"";
    let large = with(leaves, INCAST).unwrap_or_else(|why| panic!("{}", why.render(false)));
    assert_eq!(large.topology().hosts(), 240_000);
    let estimate = large.estimate().unwrap();
    assert!(estimate.is_large(), "{estimate}");
    // Measured: 2.2 GB.
    assert!((0.7e9..6e9).contains(&estimate.memory), "{estimate}");
    let far = "{ kind = \"poisson\", load = 0.1, size = \"9KB\", longest_path = true }";
    let wrong = far.replace("load", "laod = 1, load");
    let why = with("kind = \"fat-tree\", k = 64", &format!("[{far}, {wrong}]")).err().unwrap();
    assert!(why.to_string().contains("unknown key `laod`"), "{why}");
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

/// Starts that all lie within a microsecond are not what the file means, unless the scenario says
/// so.
#[test]
fn tiny_starts_of_a_connection_matrix() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        "Nodes 8\nConnections 2\n0->1 id 1 start 0 size 9000\n2->3 id 2 start 40 size 9000\n";
    std::fs::write(dir.path().join("x.cm"), text).unwrap();
    let read = |keys: &str| {
        let text = star(NDP, TRIMMING, &format!("{{ file = \"x.cm\"{keys} }}"), "");
        let scenario = Scenario::parse("x.toml", &text, dir.path(), &[]).unwrap();
        let said: Vec<String> = scenario.warnings().iter().map(ToString::to_string).collect();
        let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
        (said, results.flows.iter().map(|row| row.start).max())
    };
    let (said, start) = read("");
    assert!(
        said.len() == 1 && said[0].contains("the latest start in this file is at 40ps"),
        "{said:?}"
    );
    assert_eq!(start, Some(Time(40)));
    let (said, start) = read(", start_unit = \"us\"");
    assert_eq!((said.len(), start), (0, Some(Time(40_000_000))));
    assert_eq!(read(", start_unit = \"ps\"").0.len(), 0);
}

/// One message, as its keys say.
#[test]
fn a_single_flow() {
    let flow = |source, destination| {
        let keys = format!("source = {source}, destination = {destination}, size = \"9KB\"");
        let text = star(NDP, TRIMMING, &format!("{{ kind = \"flow\", {keys} }}"), "");
        Scenario::parse("x.toml", &text, Path::new("."), &[]).map_err(|why| why.to_string())
    };
    let results = evaluate(&flow(3, 5).unwrap(), &Options::default(), &mut |_| ()).unwrap();
    let ends: Vec<(u32, u32)> = results.flows.iter().map(|row| (row.src, row.dst)).collect();
    assert_eq!((ends, results.flows[0].size), (vec![(3, 5)], Some(9_000)));
    for (source, destination, says) in
        [(3, 3, "host 3 would send to itself"), (3, 8, "is 8"), (8, 3, "is 8")]
    {
        let why = flow(source, destination).map(drop).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn loops_that_end_are_in_the_forecast() {
    let poisson = |until: &str| {
        let traffic = format!("{{ kind = \"poisson\", load = 0.5, size = \"90KB\"{until} }}");
        let text = star(NDP, TRIMMING, &traffic, "");
        let scenario = Scenario::parse("x.toml", &text, Path::new("."), &[]).unwrap();
        scenario.forecast().into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    let (soon, late) = (poisson(", until = \"1ms\""), poisson(", until = \"900ms\""));
    assert_ne!(soon, late, "the time and memory that it takes");
}

/// Short messages are packets of their own, each with its headers.
#[test]
fn headers_count_and_so_do_sources_of_a_constant_rate() {
    let says = "the load is more than the fabric carries: with headers";
    let cubic = CUBIC.replace("ECN", "false");
    let poisson = |size: &str| {
        let traffic = format!("{{ kind = \"poisson\", load = 0.7, size = \"{size}\" }}");
        warned(&cubic, DROP_TAIL, &traffic, "measure = { to = \"10ms\" }")
    };
    one_of(says, &poisson("64B"), &poisson("64KB"));
    let cbr = |rate: &str| {
        let cbr = format!(
            "{{ kind = \"cbr\", rate = \"{rate}\", payload = \"1000B\", header = \"40B\" }}"
        );
        let flow = "{ kind = \"flow\", source = 0, destination = 1, size = \"unbounded\" }";
        warned(&cbr, DROP_TAIL, flow, "measure = { to = \"10ms\" }")
    };
    one_of("none of them carries this rate", &cbr("11Gbps"), &cbr("9Gbps"));
    let measured = |transport: &str| {
        let flow = "{ kind = \"flow\", source = 0, destination = 1, size = \"unbounded\" }";
        warned(transport, DROP_TAIL, flow, "measure = { to = \"10ms\", rtt = true }")
    };
    let cbr = "{ kind = \"cbr\", rate = \"9Gbps\", payload = \"1000B\", header = \"40B\" }";
    one_of("takes no round-trip samples", &measured(cbr), &measured(&cubic));
}

#[test]
fn timers_below_the_round_trip() {
    let tcp = |keys: &str| {
        let keys = format!("rule = \"cubic\", rto_fixed = true, rto_tick = \"0ns\", {keys},");
        CUBIC.replace("rule = \"cubic\",", &keys).replace("ECN", "false")
    };
    let of = |keys: &str| warned(&tcp(keys), DROP_TAIL, INCAST, "");
    one_of("expires before an answer", &of("rto_min = \"1us\""), &of("rto_min = \"1ms\""));
    let text = star(&tcp("rto_min = \"1ps\""), DROP_TAIL, INCAST, "");
    let why = Scenario::parse("x.toml", &text, Path::new("."), &[]).err().unwrap();
    assert!(why.to_string().contains("`rto_min` is 1ps"), "{why}");
    // A packet of 100 B takes 80 ns.
    let phost = |payload: &str| {
        let phost =
            format!("{{ kind = \"phost\", preset = \"ndp-paper\", payload = \"{payload}\" }}");
        let said = warned(&phost, DROP_TAIL, INCAST, "");
        said.iter().any(|why| why.contains("`resend_timeout` is"))
    };
    assert_eq!([phost("100B"), phost("9000B")], [true, false]);
}

#[test]
fn deadlines_and_headroom() {
    let d2tcp = DCTCP.replace("dctcp", "d2tcp");
    let of = |traffic: &str| warned(&d2tcp, MARKING, traffic, "");
    let late = INCAST.replace("size", "deadline = \"20ms\", size");
    one_of("acts on deadlines, and no message", &of(INCAST), &of(&late));
    let rdma = DCQCN.replace("dcqcn", "none").replace("paper", "roce");
    let of = |headroom: &str| {
        let queue = lossless("lossless = [3]").replace("auto", headroom);
        warned(&rdma, &queue, INCAST, "")
    };
    one_of("packets of it may be lost", &of("3 delays"), &of("auto"));
}

/// The window is held against the path that it has to fill, not against the first host's link.
#[test]
fn the_bandwidth_delay_product_is_that_of_a_path() {
    let dumbbell = |bottleneck: &str| {
        let text = star(
            &NDP.replace("9000B", "1000B").replace("30", "12"),
            TRIMMING,
            "{ kind = \"flow\", source = 0, destination = 2, size = \"10MB\" }",
            "",
        );
        let from = text.find("kind = \"star\"").unwrap();
        let topology = format!(
            "kind = \"dumbbell\"\nleft_hosts = 2\nright_hosts = 2\nlink_rate = \"10Gbps\"\n\
             link_delay = \"1us\"\nbottleneck_rate = \"{bottleneck}\"\nbottleneck_delay = \"20us\"\n"
        );
        let text = format!("{}{topology}", &text[..from]);
        let scenario = Scenario::parse("x.toml", &text, Path::new("."), &[]).unwrap();
        scenario.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    one_of("a lone message cannot fill", &dumbbell("10Gbps"), &dumbbell("1Gbps"));
}

/// Each message takes time and memory, however short it is.
#[test]
fn messages_count_in_the_estimate() {
    let estimate = |traffic: &str| {
        let text = star(NDP, TRIMMING, traffic, "");
        Scenario::parse("x.toml", &text, Path::new("."), &[]).unwrap().estimate()
    };
    let flows = |n: u32| format!("{{ kind = \"random\", flows = {n}, size = \"64B\" }}");
    let (few, many) = (estimate(&flows(10)).unwrap(), estimate(&flows(1_000_000)).unwrap());
    // Measured with TCP in a star of three hosts: 6 s and 1.9 GB for 1.2 million.
    assert!((1.6..15.0).contains(&many.seconds) && (0.5e9..4.8e9).contains(&many.memory), "{many}");
    assert!(few.seconds > 0.003, "{few}: the program starts, too");
}
