//! Choices without effect are warned of before a run: of each rule, a scenario that it warns of and one
//! that it does not.

use std::path::{Path, PathBuf};

use trimline_scenario::Scenario;

const NDP: &str = r#"{ kind = "ndp", preset = "paper", payload = "9000B", initial_window = 30 }"#;
const DCTCP: &str = r#"{ kind = "tcp", preset = "linux-datacenter", mss = "1460B",
    recovery = "sack", rule = "dctcp", ecn = true, initial_window = 100 }"#;
const CUBIC: &str = r#"{ kind = "tcp", preset = "linux-datacenter", mss = "1460B",
    recovery = "sack", rule = "cubic", ecn = ECN, initial_window = 100 }"#;
const HOMA: &str = r#"{ kind = "homa", preset = "paper", workload = "homa-w3",
    unscheduled_levels = 4 }"#;
const DROP_TAIL: &str = r#"{ kind = "drop-tail", capacity = "100 packets" }"#;
const MARKING: &str =
    r#"{ kind = "drop-tail", capacity = "100 packets", ecn_threshold = "20 packets" }"#;
const TRIMMING: &str = r#"{ kind = "ndp", capacity = "8 packets" }"#;
const INCAST: &str = r#"{ kind = "incast", receiver = 0, senders = 7, size = "1MB" }"#;

/// What is warned of in a star of eight hosts.
fn warned(transport: &str, queue: &str, traffic: &str, rest: &str) -> Vec<String> {
    let mode = if transport.contains("\"ndp\"") { "permute" } else { "ecmp" };
    let inline = |text: &str| text.replace('\n', " ");
    let text = format!(
        "name = \"checked\"\nseed = 1\ntransport = {}\nqueue = {}\ntraffic = {}\n{rest}\n\
         [routing]\nmode = \"{mode}\"\n\
         [topology]\nkind = \"star\"\nhosts = 8\nlink_rate = \"10Gbps\"\nlink_delay = \"1us\"\n",
        inline(transport),
        inline(queue),
        inline(traffic)
    );
    let read = Scenario::parse("x.toml", &text, Path::new("."), &[]);
    let scenario = read.unwrap_or_else(|why| panic!("{}", why.render(false)));
    scenario.warnings().iter().map(ToString::to_string).collect()
}

/// Check that the one scenario is warned of with `says` once, and the other of nothing.
fn one_of(says: &str, bad: Vec<String>, good: Vec<String>) {
    assert_eq!(bad.iter().filter(|warning| warning.contains(says)).count(), 1, "{says}: {bad:?}");
    assert_eq!(good, Vec::<String>::new(), "{says}");
}

#[test]
fn marks() {
    let says = "congestion control acts on ECN marks, and no queue";
    let [bad, good] = [DROP_TAIL, MARKING].map(|queue| warned(DCTCP, queue, INCAST, ""));
    one_of(says, bad, good);
    let dcqcn = load("lossless/dcqcn_incast.toml", &["queue.ecn=[]"]);
    let marked = load("lossless/dcqcn_incast.toml", &[]);
    one_of(says, dcqcn, marked);

    let cubic = |ecn, queue| warned(&CUBIC.replace("ECN", ecn), queue, INCAST, "");
    one_of("`ecn` has no effect here", cubic("true", DROP_TAIL), cubic("true", MARKING));
    let unread = "no transport reads the marks";
    one_of(unread, cubic("false", MARKING), cubic("false", DROP_TAIL));
    let far = MARKING.replace("20 packets", "120 packets");
    one_of("before it is long enough", cubic("true", &far), cubic("true", MARKING));
}

#[test]
fn trimming_and_priorities() {
    let ndp = |queue| warned(NDP, queue, INCAST, "");
    one_of("these queues never trim", ndp(DROP_TAIL), ndp(TRIMMING));
    let classes: Vec<String> = (0..8)
        .map(|class| format!("{{ class = {class}, kind = \"drop-tail\", capacity = \"1MB\" }}"))
        .collect();
    let by_class = format!("{{ kind = \"priority\", class = [{}] }}", classes.join(", "));
    let homa = |queue| warned(HOMA, queue, INCAST, "");
    for queue in [TRIMMING, DROP_TAIL] {
        one_of("these queues serve all alike", homa(queue), homa(&by_class));
    }
    let urgent = INCAST.replace("size", "priority = 1, size");
    let says = "the priority of these messages has no effect";
    let prio = NDP.replace("payload", "discipline = \"prio\", payload");
    let [bad, good] = [NDP, &prio].map(|ndp| warned(ndp, TRIMMING, &urgent, ""));
    one_of(says, bad, good);
}

#[test]
fn lossless_classes() {
    let file = "lossless/dcqcn_incast.toml";
    let says = "no packet is of a lossless class";
    let bad = load(file, &["queue.lossless=[6]"]);
    assert_eq!(bad.iter().filter(|warning| warning.contains(says)).count(), 1, "{bad:?}");
    assert_eq!(load(file, &[]), Vec::<String>::new());
}

#[test]
fn what_comes_after_the_end() {
    let ndp = |traffic: &str, rest: &str| warned(NDP, TRIMMING, traffic, rest);
    let late = INCAST.replace("size", "start = \"3ms\", size");
    let says = "7 of 7 messages of this table start after the end: `limit` is 2.00 ms";
    let limits = ["2ms", "20ms"].map(|limit| format!("measure = {{ limit = \"{limit}\" }}"));
    let [bad, good] = limits.map(|rest| ndp(&late, &rest));
    one_of(says, bad, good);
    let stop = |stop| late.replace("size", &format!("stop = \"{stop}\", size"));
    one_of("`stop` is 2.00 ms", ndp(&stop("2ms"), ""), ndp(&stop("20ms"), ""));
    let fault = |at| {
        let fault = format!("at = \"{at}\", link = \"host 0 -> tor 0\", action = \"down\"");
        ndp(INCAST, &format!("measure = {{ limit = \"50ms\" }}\nfault = {{ {fault} }}"))
    };
    let _ = &fault;
}

#[test]
fn metrics_of_what_never_ends() {
    let sweep = "sweep = { axes = { n = [1] }, set = [\"seed={n}\"], seeds = [1], \
                 metrics = [\"fct_us.p99\"] }\nmeasure = { to = \"1ms\" }";
    let unbounded = INCAST.replace("1MB", "unbounded");
    let [bad, good] = [&unbounded, INCAST].map(|traffic| warned(NDP, TRIMMING, traffic, sweep));
    one_of("of messages without an end", bad, good);
}

#[test]
fn more_than_there_is_time_or_capacity_for() {
    let rest = |limit: &str| format!("measure = {{ limit = \"{limit}\" }}");
    let [bad, good] = ["5ms", "10ms"].map(|limit| warned(NDP, TRIMMING, INCAST, &rest(limit)));
    one_of("tor 0 -> host 0 has to carry takes 5.60 ms at least", bad, good);
    let poisson = |load: f64| {
        let traffic = format!(
            "{{ kind = \"poisson\", load = {load}, size = \"90KB\", destinations = \"0-3\" }}"
        );
        warned(NDP, TRIMMING, &traffic, "measure = { to = \"5ms\" }")
    };
    // Four receivers have what eight send, and those of the four send to three.
    one_of("the load is more than the fabric carries: 140 %", poisson(0.7), poisson(0.3));
}

#[test]
fn a_first_window_below_the_bandwidth_delay_product() {
    let small = NDP.replace("= 30", "= 1");
    let says = "the initial window of 9000B is below the bandwidth-delay product";
    let [bad, good] = [&small, NDP].map(|ndp| warned(ndp, TRIMMING, INCAST, ""));
    one_of(says, bad, good);
}

/// The warnings of a scenario that comes with the program.
fn load(file: &str, sets: &[&str]) -> Vec<String> {
    let path = scenarios().join(file);
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let read = Scenario::load(&path, &sets).unwrap_or_else(|why| panic!("{}", why.render(false)));
    read.warnings().iter().map(ToString::to_string).collect()
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}
