//! Bad input, as a user makes it: one message with file, line, column and a hint, exit code 2,
//! nothing on stdout, no result files. The messages are in `snapshots/`.

use std::path::Path;

use assert_cmd::Command;

/// A small scenario that runs.
const GOOD: &str = include_str!("../../../../scenarios/first.toml");

fn trimline(dir: &Path, args: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("trimline").unwrap();
    command.current_dir(dir).args(args).output().unwrap()
}

/// Run the scenario `text` (as `x.toml`) with more arguments. What it says on stderr.
fn refused_with(text: &str, files: &[(&str, &str)], args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), text).unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let args: Vec<&str> = ["run", "x.toml"].iter().chain(args).copied().collect();
    let output = trimline(dir.path(), &args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(!dir.path().join("out").exists(), "no half-written result");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains('\u{1b}'), "no colour in a pipe");
    stderr
}

/// The same for the good scenario with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the scenario");
    refused_with(&GOOD.replacen(from, to, 1), &[], &[])
}

/// Snapshot what is said when `from` is replaced by `to`.
macro_rules! bad {
    ($($name:ident: $from:literal => $to:literal;)*) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(stringify!($name), refused($from, $to));
            }
        )*
    };
}

bad! {
    unknown_key: "link_delay" => "link_dealy";
    unknown_key_far_from_any: "seed = 1" => "seed = 1\nzebra = true";
    unknown_table: "[measure]" => "[mesure]";
    unknown_transport: "[transport]\nkind = \"ndp\"" => "[transport]\nkind = \"npd\"";
    unknown_topology: "leaf-spine" => "leafspine";
    unknown_queue: "[queue]\nkind = \"ndp\"" => "[queue]\nkind = \"red\"";
    unknown_routing: "permute" => "permutation";
    unknown_distribution: "google-rpc" => "google-rcp";
    unknown_preset: "preset = \"paper\"" => "preset = \"papre\"";
    missing_seed: "seed = 1\n" => "";
    missing_queue_capacity: "capacity = \"8 packets\"\n" => "";
    missing_initial_window: "initial_window = 12\n" => "";
    missing_table: "[routing]\nmode = \"permute\"\n" => "";
    parameter_without_preset: "preset = \"paper\"\n" => "";
    negative_size: "payload = \"9000B\"" => "payload = \"-9000B\"";
    absurd_size: "payload = \"9000B\"" => "payload = \"9000GB\"";
    absurd_rate: "link_rate = \"10Gbps\"" => "link_rate = \"10bps\"";
    absurd_load: "load = 0.5" => "load = 5000";
    load_is_not_a_number: "load = 0.5" => "load = \"half\"";
    unit_missing: "link_delay = \"1us\"" => "link_delay = \"1\"";
    unit_missing_in_a_number: "payload = \"9000B\"" => "payload = 9000";
    unit_of_another_kind: "link_delay = \"1us\"" => "link_delay = \"1Gbps\"";
    queue_smaller_than_a_packet: "8 packets" => "9000B";
    window_ends_before_it_begins: "to = \"5ms\"" => "to = \"0.5ms\"";
    endless_traffic_without_a_window: "to = \"5ms\"\n" => "";
    host_out_of_range:
        "kind = \"poisson\"\ndistribution = \"google-rpc\"\nload = 0.5" =>
        "kind = \"incast\"\nreceiver = 16\nsenders = 3\nsize = \"1KB\"";
    too_many_senders:
        "kind = \"poisson\"\ndistribution = \"google-rpc\"\nload = 0.5" =>
        "kind = \"incast\"\nreceiver = 0\nsenders = 16\nsize = \"1KB\"";
    size_and_distribution: "load = 0.5" => "load = 0.5\nsize = \"1KB\"";
    link_to_nowhere:
        "link_delay = \"1us\"" =>
        "link_delay = \"1us\"\n[[topology.link]]\nlink = \"tor 0 -> agg 2\"\nfailed = true";
    link_between_strangers:
        "link_delay = \"1us\"" =>
        "link_delay = \"1us\"\n[[topology.link]]\nlink = \"tor 0 -> tor 1\"\nfailed = true";
    impossible_shape: "spines = 2" => "spines = 0";
    fault_without_reroute:
        "[measure]" => "[[fault]]\nat = \"1ms\"\nlink = \"tor 0 -> agg 0\"\naction = \"down\"\n[measure]";
    spraying_transport_wanted:
        "[transport]\nkind = \"ndp\"\npreset = \"paper\"\npayload = \"9000B\"\ninitial_window = 12" =>
        "[transport]\nkind = \"tcp\"\nrule = \"newreno\"\nrecovery = \"newreno\"\necn = false\npreset = \"ns2\"\nmss = \"1000B\"";
    parameters_that_exclude_each_other: "initial_window = 12" => "initial_window = 12\nrto_min = \"2000s\"";
    distribution_file_missing:
        "distribution = \"google-rpc\"" => "distribution_file = \"nowhere.txt\"";
    not_toml: "leaves = 4" => "leaves 4";
    initial_window_of_zero: "initial_window = 12" => "initial_window = 0";
    priority_message_of_no_host:
        "initial_window = 12" => "initial_window = 12\npriority_message = { host = 16, message = 0 }";
    threshold_and_ramp:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\necn_threshold = \"9 packets\"\n\
         red_min = \"5 packets\"\nred_max = \"50 packets\"\nred_probability = 0.1";
    ramp_in_two_units:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\nred_min = \"5 packets\"\nred_max = \"90KB\"\n\
         red_probability = 0.1";
    ramp_downhill:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\nred_min = \"50 packets\"\n\
         red_max = \"5 packets\"\nred_probability = 0.1";
    ramp_to_nothing:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\nred_min = \"5 packets\"\n\
         red_max = \"50 packets\"\nred_probability = 0.0";
    ramp_without_what_is_not_ect:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\nred_min = \"5 packets\"\n\
         red_max = \"50 packets\"\nred_probability = 0.1\nmark_at = \"arrival\"";
    marks_without_a_length:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\nmark_at = \"departure\"";
    buffer_for_queues_that_trim:
        "[measure]" => "[buffer]\nkind = \"shared\"\nsize = \"4MB\"\nalpha = 1.0\n[measure]";
    buffer_of_no_kind:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\n[buffer]\nsize = \"4MB\"\nalpha = 1.0";
    buffer_without_alpha:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\n[buffer]\nkind = \"shared\"\nsize = \"4MB\"";
    buffer_with_an_alpha_of_zero:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\n[buffer]\nkind = \"shared\"\nsize = \"4MB\"\nalpha = 0";
    buffer_with_an_alpha_below_zero:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\n[buffer]\nkind = \"shared\"\nsize = \"4MB\"\nalpha = -1.0";
    buffer_with_an_alpha_that_is_no_number:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\n[buffer]\nkind = \"shared\"\nsize = \"4MB\"\nalpha = nan";
    buffer_smaller_than_a_packet:
        "kind = \"ndp\"\ncapacity = \"8 packets\"" =>
        "kind = \"drop-tail\"\ncapacity = \"80 packets\"\n[buffer]\nkind = \"shared\"\nsize = \"9063B\"\nalpha = 1.0";
    a_key_twice: "leaves = 4" => "leaves = 4\nleaves = 5";
    a_text_without_its_end: "name = \"first scenario\"" => "name = \"first scenario";
}

#[test]
fn hosts_without_a_path() {
    let cut = "link_delay = \"1us\"\n[[topology.link]]\nlink = \"host 3 -> tor 0\"\nfailed = true";
    insta::assert_snapshot!(refused("link_delay = \"1us\"", cut));
}

#[test]
fn empty_file() {
    insta::assert_snapshot!(refused_with(" \n", &[], &[]));
}

#[test]
fn cut_off_file() {
    let half = &GOOD[..GOOD.find("kind = \"ndp\"").unwrap() + 9];
    insta::assert_snapshot!(refused_with(half, &[], &[]));
}

#[test]
fn set_without_a_value() {
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", "seed"]));
}

#[test]
fn no_threads() {
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--threads", "0"]));
}

/// Long enough for what the transport knows, too short for full queues on the way.
#[test]
fn a_time_wait_shorter_than_packets_live_here() {
    let sets = ["--set", "transport.abort_after=70us", "--set", "transport.time_wait=23ms"];
    insta::assert_snapshot!(refused_with(GOOD, &[], &sets));
}

#[test]
fn a_time_wait_shorter_than_a_sender_asks() {
    let sets = ["--set", "transport.time_wait=10s"];
    insta::assert_snapshot!(refused_with(GOOD, &[], &sets));
}

#[test]
fn set_of_an_unknown_key() {
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", "transport.initial_windw=23"]));
}

#[test]
fn set_of_a_value_that_the_transport_refuses() {
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", "transport.rto_max=1ms"]));
}

#[test]
fn set_of_a_class_out_of_range() {
    let sets = [
        "transport={kind='tcp', rule='newreno', recovery='newreno', ecn=false, preset='ns2', mss='1KB', class=9}",
        "routing.mode=ecmp",
    ];
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", sets[0], "--set", sets[1]]));
}

#[test]
fn messages_that_end_over_a_transport_that_never_knows() {
    let sets =
        ["transport={kind='cbr', payload='1KB', header='64B', rate='1Gbps'}", "routing.mode=ecmp"];
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", sets[0], "--set", sets[1]]));
}

/// NDP beside TCP, with `from` replaced by `to`.
fn refused_coexistence(from: &str, to: &str) -> String {
    let good = include_str!("../../../../scenarios/coexistence/separate_queues.toml");
    assert!(good.contains(from), "{from:?} is not in the scenario");
    refused_with(&good.replacen(from, to, 1), &[], &[])
}

#[test]
fn traffic_over_an_unknown_transport() {
    insta::assert_snapshot!(refused_coexistence("transport = \"tcp\"", "transport = \"tpc\""));
}

#[test]
fn traffic_that_does_not_say_over_which_transport() {
    insta::assert_snapshot!(refused_coexistence("transport = \"tcp\"\n", ""));
}

#[test]
fn two_transports_of_one_name() {
    insta::assert_snapshot!(refused_coexistence("name = \"tcp\"", "name = \"ndp\""));
}

#[test]
fn two_tables_of_one_name_in_formulas() {
    let tables = "[[traffic]]\nname = \"to-all\"\n[[traffic]]\nname = \"to_all\"";
    let tables = tables.replace("\n[[", "\nkind = \"permutation\"\nsize = \"1KB\"\n[[");
    let text = GOOD.replacen("[traffic]", &tables, 1);
    insta::assert_snapshot!(refused_with(&text, &[], &[]));
}

#[test]
fn a_class_without_a_queue() {
    let queue = "[[queue.class]]\nclass = 1\nkind = \"drop-tail\"\ncapacity = \"100 packets\"\n\n";
    insta::assert_snapshot!(refused_coexistence(queue, ""));
}

#[test]
fn a_queue_without_packets() {
    insta::assert_snapshot!(refused_coexistence(
        "class = 1\n\n[[traffic",
        "class = 2\n\n[[traffic"
    ));
}

#[test]
fn a_queue_in_a_queue_in_a_queue() {
    let to = "class = 1\nkind = \"fair\"";
    insta::assert_snapshot!(refused_coexistence("class = 1\nkind = \"drop-tail\"", to));
}

#[test]
fn lossless_switches_that_cannot_be() {
    for (name, keys) in [
        ("lossless_without_a_preset", "buffer=\"9MB\""),
        ("lossless_with_two_thresholds", "preset=\"hpcc\", xoff=\"96KB\", alpha=1"),
        ("lossless_without_memory", "preset=\"legacy\", buffer=\"500KB\""),
        ("lossless_with_headroom_of_no_kind", "preset=\"hpcc\", headroom=\"some\""),
        ("lossless_with_a_class_out_of_range", "preset=\"hpcc\", lossless=[0, 8]"),
        ("lossless_with_a_lossless_control_class", "preset=\"hpcc\", control_class=0"),
        ("lossless_with_a_weight_too_few", "preset=\"hpcc\", schedule=[1, 2, 3]"),
        ("lossless_with_a_weight_of_zero", "preset=\"hpcc\", schedule=[1, 1, 1, 1, 1, 1, 1, 0]"),
        ("lossless_with_a_watchdog_that_does_nothing", "preset=\"hpcc\", watchdog=\"1ms\""),
        ("lossless_with_pauses_of_no_time", "preset=\"hpcc\", pause=\"0us\""),
        (
            "lossless_with_marks_at_no_moment",
            "preset=\"hpcc\", ecn={min=\"5KB\", max=\"9KB\", probability=1}",
        ),
    ] {
        let set = format!("queue={{kind=\"lossless\", {keys}}}");
        insta::assert_snapshot!(name, refused_with(GOOD, &[], &["--set", &set]));
    }
}

#[test]
fn paths_in_turn_wanted_of_a_transport_that_draws_them() {
    let set = "transport={kind='phost', preset='authors', payload='1460B'}";
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", set]));
}

#[test]
fn a_token_that_expires_before_it_is_given() {
    let set = "transport={kind='phost', preset='authors', payload='1460B', token_expiry=0}";
    let sets = ["--set", set, "--set", "routing.mode=spray"];
    insta::assert_snapshot!(refused_with(GOOD, &[], &sets));
}

#[test]
fn half_a_cut_payload_queue_smaller_than_a_packet() {
    let set = "queue={kind='cut-payload', capacity='18000B'}";
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", set]));
}

#[test]
fn set_of_another_kind() {
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", "transport.kind=tcp"]));
}

#[test]
fn set_of_a_bad_value() {
    insta::assert_snapshot!(refused_with(GOOD, &[], &["--set", "queue.capacity=10XB"]));
}

/// The good scenario with a traffic file in place of its Poisson traffic.
fn with_file(name: &str) -> String {
    let traffic = "kind = \"poisson\"\ndistribution = \"google-rpc\"\nload = 0.5";
    GOOD.replace(traffic, &format!("kind = \"file\"\nfile = \"{name}\""))
}

fn refused_file(name: &str, text: &str) -> String {
    refused_with(&with_file(name), &[(name, text)], &[])
}

#[test]
fn connection_matrix_of_too_many_hosts() {
    let text = "Nodes 32\nConnections 1\n1->30 id 1 start 0 size 1000\n";
    insta::assert_snapshot!(refused_file("x.cm", text));
}

#[test]
fn connection_matrix_cut_off() {
    let text = "Nodes 16\nConnections 2\n1->3 id 1 start 0 size 1000\n2->4 id 2 sta";
    insta::assert_snapshot!(refused_file("x.cm", text));
}

#[test]
fn connection_matrix_empty() {
    insta::assert_snapshot!(refused_file("x.cm", ""));
}

#[test]
fn connection_matrix_that_fails_a_link_that_is_not_there() {
    let text = "Nodes 16\nConnections 1\nFailures 1\n1->3 id 1 start 0 size 1000\n\
                failure switch_type TOR switch_id 0 link_id 2\n";
    insta::assert_snapshot!(refused_file("x.cm", text));
}

#[test]
fn messages_with_a_host_out_of_range() {
    let text = "start,src,dst,size\n0,1,2,1KB\n1us,3,16,1KB\n";
    insta::assert_snapshot!(refused_file("x.csv", text));
}

#[test]
fn traffic_file_of_an_unknown_kind() {
    insta::assert_snapshot!(refused_file("x.txt", "1 2 3\n"));
}

#[test]
fn traffic_file_missing() {
    insta::assert_snapshot!(refused_with(&with_file("x.cm"), &[], &[]));
}

#[test]
fn distribution_that_does_not_increase() {
    let text = GOOD.replace("distribution = \"google-rpc\"", "distribution_file = \"sizes.txt\"");
    let sizes = "# size share\n100 0.1\n300 0.5\n200 0.7\n400 1\n";
    insta::assert_snapshot!(refused_with(&text, &[("sizes.txt", sizes)], &[]));
}

/// Where a job cannot be, its file is named, and the line or the record.
#[test]
fn jobs_that_cannot_be() {
    let scenario = include_str!("../../../../scenarios/ai/ring.toml");
    let job = scenario.find("[traffic]").unwrap();
    let with = |rest: &str| {
        let keys = "ranks_per_host = 1\nplacement = \"packed\"\nalgorithm = \"ring\"\n\
                    connections = \"persistent\"";
        format!("{}[traffic]\nkind = \"job\"\n{keys}\n{rest}\n", &scenario[..job])
    };
    let goal = |ranks: &str| format!("num_ranks {ranks}\n}}\n");
    let blocks: String = (0..17).map(|rank| format!("rank {rank} {{\na: calc 1\n}}\n")).collect();
    for (text, expected) in [
        (goal("1\nrank 0 {\na: send 8b to 0"), ["x.goal:3", "a message of its own"]),
        (
            goal("1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a"),
            ["x.goal:3", "wait"],
        ),
        (goal("2\nrank 0 {\na: send 8b to 1\n}\nrank 1 {\na: calc 1"), ["x.goal:3", "receive"]),
        (format!("num_ranks 17\n{blocks}"), ["x.goal:1", "more ranks than the 16"]),
    ] {
        let said = refused_with(&with("file = \"x.goal\""), &[("x.goal", &text)], &[]);
        assert!(expected.iter().all(|part| said.contains(part)), "{text}: {said}");
    }
    // An all-reduce that half of its ranks do not take part in, and a cut-off record.
    let data =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../ai/tests/data/astra-sim/all_reduce/4npus_1MB");
    let dir = tempfile::tempdir().unwrap();
    let bytes = |rank: u32| std::fs::read(format!("{data}/all_reduce.{rank}.et")).unwrap();
    let whole = bytes(0);
    // The metadata alone: a varint of its length, below 128, and so many bytes.
    let metadata = &whole[..=usize::from(whole[0])];
    for (rank_1, expected) in [
        (metadata.to_vec(), ["x.0.et: record 2", "rank 1"]),
        (whole[..whole.len() - 9].to_vec(), ["x.1.et: record 2", "cut off"]),
    ] {
        for (name, bytes) in [("x.0.et", &whole), ("x.1.et", &rank_1)] {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let said = refused_with(&with(&format!("file = {:?}", dir.path())), &[], &[]);
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn scenario_missing() {
    let dir = tempfile::tempdir().unwrap();
    let output = trimline(dir.path(), &["run", "nowhere.toml"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[test]
fn output_directory_that_cannot_be_written() {
    let files = [("taken", "a file\n")];
    insta::assert_snapshot!(refused_with(GOOD, &files, &["--out", "taken/results"]));
}

#[test]
fn a_directory_without_results_gives_no_report() {
    let dir = tempfile::tempdir().unwrap();
    let output = trimline(dir.path(), &["report", "."]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[test]
fn connection_matrix_that_has_changed_since_the_run() {
    let text = "Nodes 16\nConnections 1\n1->3 id 1 start 0 size 1000\n";
    insta::assert_snapshot!(changed("x.cm", text, &with_file("x.cm")));
}

#[test]
fn distribution_that_has_changed_since_the_run() {
    let text = GOOD.replace("distribution = \"google-rpc\"", "distribution_file = \"x.txt\"");
    insta::assert_snapshot!(changed("x.txt", "100 0.1\n300 1\n", &text));
}

#[test]
fn graphs_that_cannot_be() {
    let jellyfish = "kind=\"jellyfish\", hosts_per_switch=2, graph_seed=1, paths=8, switches=9";
    let bcube = "kind=\"bcube\"";
    for (name, kind, keys) in [
        ("jellyfish_with_a_port_over", jellyfish, "degree=3, stretch=0"),
        ("jellyfish_of_some_stretch", jellyfish, "degree=4, stretch=\"some\""),
        ("bcube_too_large", bcube, "n=17, k=2, stretch=0"),
    ] {
        let links = "link_rate=\"10Gbps\", link_delay=\"1us\"";
        let shape = format!("topology={{{kind}, {keys}, {links}}}");
        insta::assert_snapshot!(name, refused_with(GOOD, &[], &["--set", &shape]));
    }
}

#[test]
fn topology_that_has_changed_since_the_run() {
    let start = GOOD.find("[topology]").unwrap();
    let end = start + 1 + GOOD[start + 1..].find("\n[").unwrap();
    let text = GOOD.replace(&GOOD[start..end], "[topology]\nfile = \"x.topo\"\nkind = \"file\"\n");
    let topo = include_str!("../../../../scenarios/htsim/fat_tree_16.topo");
    insta::assert_snapshot!(changed("x.topo", topo, &text));
}

/// What is said when the manifest of a run of the scenario `text`, which names `file`, is run
/// again after the file has changed.
fn changed(file: &str, before: &str, text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("x.toml", text);
    write(file, before);
    let short = ["run", "x.toml", "--set", "measure.to=1100us", "--out", "out"];
    let output = trimline(dir.path(), &short);
    assert!(output.status.success(), "{output:?}");
    write(file, &format!("{before}# changed\n"));
    let output = trimline(dir.path(), &["run", "out/manifest.json", "--out", "again"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!dir.path().join("again").exists());
    let said = String::from_utf8(output.stderr).unwrap();
    // The manifest holds the absolute path, which is another in every test.
    said.lines().filter(|line| !line.contains("file = ")).collect::<Vec<_>>().join("\n")
}

/// What `trimline explain` says to a message that is not there, or has no end.
#[test]
fn nothing_to_explain() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), GOOD).unwrap();
    let said: Vec<String> = [
        &["3:99999999"][..],
        &["16:0"],
        &["3"],
        &["10:450", "--set", "measure.to=2100us", "--set", "measure.limit=2100us"],
        &["max", "--set", "measure.to=1001us", "--set", "measure.limit=1001us"],
    ]
    .into_iter()
    .map(|args| {
        let args = [&["explain", "x.toml"], args].concat();
        let output = trimline(dir.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    })
    .collect();
    insta::assert_snapshot!("nothing_to_explain", said.join("\n"));
}

/// `--trace flows` of no message.
#[test]
fn a_trace_of_no_message() {
    let said: Vec<String> = ["flows", "flows@3", "flow@3:0", "flows@99:0"]
        .into_iter()
        .map(|kind| refused_with(GOOD, &[], &["--trace", kind]))
        .collect();
    insta::assert_snapshot!("a_trace_of_no_message", said.join("\n"));
}
