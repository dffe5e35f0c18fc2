//! Transports of every kind, alone and several on a host.

use crate::drawn::{self, Dice};

/// A transport with what the rest of the scenario must know of it.
pub(super) struct Carrier {
    pub(super) kind: &'static str,
    /// Its table.
    pub(super) table: String,
    /// The routing modes that it can have alone.
    pub(super) modes: &'static [&'static str],
    /// The traffic classes of its packets.
    pub(super) classes: Vec<u8>,
    /// The longest message that it takes, bytes.
    pub(super) longest: u64,
    /// Whether its messages have no end.
    pub(super) endless: bool,
    /// Whether switches must have rates that its telemetry can name.
    pub(super) telemetry: bool,
    /// What traffic calls its parts, if it is several already.
    pub(super) parts: &'static [&'static str],
}

/// Who chooses paths: switches, and for some also senders, packet by packet.
const BY_SWITCHES: &[&str] = &["single", "random", "ecmp"];
const BY_ALL: &[&str] = &["single", "random", "ecmp", "spray"];

/// The longest message of a NIC.
const NIC_LONGEST: u64 = 38_912;

/// A transport of `kind`.
pub(super) fn transport(dice: &mut Dice, kind: &'static str, payload: u16) -> Carrier {
    let with = |table| Carrier {
        kind,
        table,
        modes: BY_SWITCHES,
        classes: vec![0],
        longest: u64::MAX,
        endless: false,
        telemetry: false,
        parts: &[],
    };
    match kind {
        "ndp" => Carrier {
            modes: &["permute", "spray", "single", "random", "ecmp"],
            ..with(ndp(dice, payload))
        },
        "tcp" => {
            let table = tcp(dice, payload);
            let demoted = table.contains("pias_thresholds");
            Carrier { classes: if demoted { vec![2, 1, 0] } else { vec![0] }, ..with(table) }
        }
        "mptcp" => with(mptcp(dice, payload)),
        "phost" => Carrier { modes: BY_ALL, ..with(phost(dice, payload)) },
        "pfabric" => Carrier { modes: BY_ALL, ..with(pfabric(dice, payload)) },
        "uet" => Carrier { modes: BY_ALL, ..with(uet(dice, payload)) },
        "homa" => Carrier { modes: BY_ALL, classes: (0..8).collect(), ..with(homa(dice, payload)) },
        "rdma" => {
            let table = rdma(dice, payload);
            let telemetry = table.contains("hpcc");
            Carrier { classes: vec![0, 7], telemetry, ..with(table) }
        }
        "nic" => nic(dice, with(String::new())),
        "cbr" => Carrier { endless: true, ..with(cbr(dice, payload)) },
        other => panic!("the swarm does not draw the transport `{other}`"),
    }
}

/// With timeouts of microseconds it gives up in good time: ten seconds of them are half a million.
fn ndp(dice: &mut Dice, payload: u16) -> String {
    let mut text = drawn::ndp_transport(dice, payload);
    if text.contains("rto_min") && !text.contains("abort_after") {
        text += "abort_after = \"3ms\"\n";
    }
    for (key, word) in [("scoreboard", "decaying"), ("discipline", "fair")] {
        if !text.contains(key) {
            dice.maybe(&mut text, 30, key, &[&format!("\"{word}\"")]);
        }
    }
    text
}

fn tcp(dice: &mut Dice, payload: u16) -> String {
    let fast = "fast\"\nfast_alpha = 8.0\nfast_gamma = 0.5\nfast_slow_start_delay = \"100us";
    let rule = dice.pick(&["newreno", "bic", "htcp", "cubic", "dctcp", "d2tcp", fast]);
    let ecn = rule == "dctcp" || rule == "d2tcp" || dice.percent(30);
    let recovery = dice.pick(&["reno", "newreno", "sack", "sack"]);
    let presets = ["linux-datacenter", "ns2", "htsim", "linux-2.6", "ns3-3.17", "ns3-3.39"];
    let preset = dice.pick(&presets);
    let mut text = format!(
        "\n[transport]\nkind = \"tcp\"\npreset = \"{preset}\"\nrule = \"{rule}\"\n\
         recovery = \"{recovery}\"\necn = {ecn}\nmss = \"{payload}B\"\noverhead = \"64B\"\n"
    );
    if dice.percent(60) {
        text +=
            "rto_initial = \"50us\"\nrto_min = \"20us\"\nrto_max = \"1ms\"\nrto_tick = \"1us\"\n";
    }
    dice.maybe(&mut text, 40, "delayed_ack", &["\"off\"", "\"3us\"", "\"20us\""]);
    dice.maybe(&mut text, 20, "rto_fixed", &["true"]);
    text += &drawn::tcp_options(dice);
    dice.maybe(&mut text, 30, "increase", &["\"per-ack\"", "\"per-byte\"\nslow_start_limit = 2"]);
    dice.maybe(&mut text, 20, "idle_restart", &["\"one-segment\""]);
    dice.maybe(&mut text, 20, "pias_thresholds", &["[\"0B\", \"10KB\"]\nclass = 2"]);
    if !text.contains("receive_window") {
        dice.maybe(&mut text, 30, "receive_window", &["\"unlimited\""]);
    }
    let undo = if text.contains("timestamps") { "eifel" } else { "none" };
    if recovery != "sack" {
        dice.maybe(&mut text, 30, "undo", &[&format!("\"{undo}\"")]);
    } else if dice.percent(40) {
        let threshold = dice.pick(&["", "dup_threshold = \"rr\"\n"]);
        text += &format!("dsack = true\nundo = \"dsack\"\n{threshold}");
    }
    text
}

const SEMICOUPLED: &str =
    "semicoupled\"\nsemicoupled_exponent = 1\nsemicoupled_weight = 0.5\nreinject = \"none";

/// Multipath TCP with any coupling.
fn mptcp(dice: &mut Dice, payload: u16) -> String {
    let mut text = drawn::mptcp_transport(dice, payload);
    let multipath = !text.contains("phases = \"scatter\"");
    if multipath && !text.contains("coupling") {
        let couplings = ["lia", "linked", "fully-coupled", SEMICOUPLED, "uncoupled"];
        let weights = ["1/sqrt(n)", "1/n^2"].map(|w| format!("ewtcp\"\newtcp_weight = \"{w}"));
        let all: Vec<&str> =
            couplings.into_iter().chain(weights.iter().map(String::as_str)).collect();
        text += &format!("coupling = \"{}\"\n", dice.pick(&all));
    }
    if multipath && !text.contains("reinject") {
        dice.maybe(&mut text, 40, "reinject", &["\"none\""]);
    }
    if !text.contains("recovery") {
        dice.maybe(&mut text, 40, "recovery", &["\"reno\"", "\"newreno\"", "\"sack\""]);
    }
    text.replace("switch = \"loss\"", dice.pick(&["switch = \"loss\"", "switch = \"window\""]))
}

fn phost(dice: &mut Dice, payload: u16) -> String {
    let preset = "preset = \"ndp-paper\"";
    let mut text = format!("\n[transport]\nkind = \"phost\"\n{preset}\npayload = \"{payload}B\"\n");
    dice.maybe(&mut text, 30, "free_tokens", &["1", "8"]);
    // With requests every few microseconds, ten seconds of silence take long.
    text + "abort_after = \"5ms\"\nrx_idle_timeout = \"10ms\"\n"
}

/// With probes after fewer timeouts, too.
fn pfabric(dice: &mut Dice, payload: u16) -> String {
    let preset = dice.pick(&["paper", "homa-paper"]);
    let mut text = format!(
        "\n[transport]\nkind = \"pfabric\"\npreset = \"{preset}\"\npayload = \"{payload}B\"\n"
    );
    dice.maybe(&mut text, 40, "probe_after", &["1", "2"]);
    dice.maybe(&mut text, 40, "initial_window", &["1", "4"]);
    // With a timeout each few microseconds, ten seconds of silence take long.
    text + "abort_after = \"5ms\"\nrx_idle_timeout = \"10ms\"\n"
}

/// Ultra Ethernet with any choice of entropy values.
fn uet(dice: &mut Dice, payload: u16) -> String {
    let mut text =
        format!("\n[transport]\nkind = \"uet\"\npreset = \"htsim\"\npayload = \"{payload}B\"\n");
    let sprays = ["\"oblivious\"", "\"bitmap\"", "\"skip\"", "\"reps\"", "\"mixed\"", "\"mrc\""];
    dice.maybe(&mut text, 70, "spray", &sprays);
    if text.contains("skip") {
        text = text.replace("htsim", "eqds");
    }
    dice.maybe(&mut text, 40, "entropies", &["1", "4", "256"]);
    let constant = "\"constant\"\ninitial_window = \"20KB\"";
    let credit = "\"none\"\ncredit = true\ncredit_rule = \"rccc\"";
    let both = "\"nscc\"\ncredit = true\ncredit_rule = \"eqds\"\nhold_back = true";
    let sleek = "\"nscc\"\nsleek = true\ntrimming = false\nkeep_connections = \"100us\"";
    let [dctcp, smartt] = ["\"dctcp\"", "\"smartt\""];
    let controls = ["\"nscc\"", constant, credit, both, sleek, dctcp, smartt];
    dice.maybe(&mut text, 75, "control", &controls);
    let others = ["eqds", constant, credit, dctcp, smartt];
    if !others.iter().any(|other| text.contains(other)) {
        text = text.replace("htsim", dice.pick(&["htsim", "ue-1.0"]));
        dice.maybe(&mut text, 30, "profile", &["\"htsim\"", "\"ue-1.0\""]);
    }
    dice.maybe(&mut text, 30, "sack_threshold", &["\"1B\"", "\"4000B\""]);
    dice.maybe(&mut text, 20, "base_rtt", &["\"10us\"", "\"200us\""]);
    dice.maybe(&mut text, 20, "rto_doublings", &["0", "1"]);
    // With a timeout each few microseconds, ten seconds of silence take long.
    text + "abort_after = \"5ms\"\nrx_idle_timeout = \"10ms\"\n"
}

/// Homa as its paper has it, or refusing what switches trim.
fn homa(dice: &mut Dice, payload: u16) -> String {
    let workload = dice.pick(&["homa-w1", "homa-w3", "homa-w5"]);
    let unscheduled = dice.pick(&[1, 4, 7]);
    let mut text = format!(
        "\n[transport]\nkind = \"homa\"\npreset = \"paper\"\npayload = \"{payload}B\"\n\
         workload = \"{workload}\"\nunscheduled_priorities = {unscheduled}\n"
    );
    let trimmed = ["\"lost\"", "\"refused\"", "\"refused-as-published\""];
    dice.maybe(&mut text, 50, "trimmed", &trimmed);
    dice.maybe(&mut text, 50, "priority_by", &["\"remaining\"", "\"length\""]);
    text
}

fn rdma(dice: &mut Dice, payload: u16) -> String {
    let rule = dice.pick(&[
        "rule = \"none\"\npreset = \"roce\"",
        "rule = \"timely\"\npreset = \"paper\"\nsegment = \"16KB\"",
        "rule = \"patched-timely\"\npreset = \"paper\"",
        "rule = \"fast\"\npreset = \"timely-paper\"\nalpha = \"50Mbps\"",
        "rule = \"dcqcn\"\npreset = \"paper\"",
        "rule = \"dcqcn\"\npreset = \"mlx\"",
        "rule = \"hpcc\"\npreset = \"paper\"\nrtt = \"20us\"\nflows = 4\noverhead = \"106B\"",
        "rule = \"swift\"\npreset = \"paper\"",
    ]);
    let mut text = format!("\n[transport]\nkind = \"rdma\"\n{rule}\npayload = \"{payload}B\"\n");
    for (rules, key, words) in RDMA_WORDS {
        if rules.iter().any(|of| rule.contains(of)) {
            dice.maybe(&mut text, 40, key, words);
        }
    }
    // What repeats selectively writes, and its acknowledgements carry no telemetry.
    let selects = !["timely", "hpcc", "swift"].iter().any(|rules| rule.contains(rules));
    if selects && dice.percent(40) {
        let recovery = dice.pick(&["\"selective\"\nreordering = 3", "\"go-back-n\""]);
        text += &format!("recovery = {recovery}\n");
    } else if !rule.contains("swift") {
        dice.maybe(&mut text, 50, "operation", &["\"read\"", "\"write\""]);
    }
    text
}

/// Words of keys that only some rules have: part of the rule's name, key, words.
const RDMA_WORDS: &[(&[&str], &str, &[&str])] = &[
    (&["hpcc"], "reaction", &["\"both\"", "\"per-rtt\"", "\"per-ack\"", "\"per-rtt\""]),
    (&["dcqcn\"\npreset = \"paper"], "feedback", &["\"cnp\"", "\"ack\"\ncut_interval = \"4us\""]),
    (&["timely", "swift"], "timestamps", &["\"nic\"", "\"host\""]),
    (&["timely", "swift"], "subtract", &["\"segment\"", "\"packet\""]),
];

/// The NIC: its models, their programs interpreted and compiled, and programs by their files.
fn nic(dice: &mut Dice, plain: Carrier) -> Carrier {
    let plain = Carrier { longest: NIC_LONGEST, ..plain };
    let header = "\n[transport]\nkind = \"nic\"\npreset = \"firesim\"\n";
    if dice.percent(60) {
        let program = dice.pick(&["ndp", "homa", "homa-tr"]);
        let classes = if program == "ndp" { vec![7] } else { (4..8).collect() };
        let mut table = format!("{header}program = \"{program}\"\n");
        dice.maybe(&mut table, 70, "backend", &["\"model\"", "\"interpreter\"", "\"rust\""]);
        return Carrier { table, classes, ..plain };
    }
    let (file, protocol, priorities, more, parts): (_, _, u8, _, &[&str]) = dice.pick(&[
        ("ndp", "155", 1, "", &[] as &[&str]),
        ("homa", "154", 4, "constants = { TRIM = true }\n", &[]),
        ("ndp_homa", "{ homa = 154, ndp = 155 }", 4, "", &["homa", "ndp"]),
        ("swift", "198", 2, "", &[]),
        ("dcqcn", "199", 2, "rtt_packets = 1024\n", &[]),
        ("hpcc", "197", 2, HPCC, &[]),
    ]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4");
    let mut table = format!(
        "{header}program = '{path}/{file}.p4'\nprotocol = {protocol}\npriorities = {priorities}\n{more}"
    );
    dice.maybe(&mut table, 70, "backend", &["\"interpreter\"", "\"rust\""]);
    let telemetry = file == "hpcc";
    // The programs that send by a rate or a window wait for milliseconds before they repeat.
    if priorities == 2 {
        table += "timeout = \"1ms\"\n";
    }
    Carrier { table, classes: (8 - priorities..8).collect(), telemetry, parts, ..plain }
}

const HPCC: &str = "constants = { BASE_RTT = 4500, INCREASE = 176 }\ntelemetry = true\n\
                    overhead = \"98B\"\n";

fn cbr(dice: &mut Dice, payload: u16) -> String {
    let rate = dice.pick(&["100Mbps", "2.5Gbps", "9Gbps", "40Gbps"]);
    format!(
        "\n[transport]\nkind = \"cbr\"\npayload = \"{payload}B\"\nheader = \"64B\"\nrate = \"{rate}\"\n"
    )
}
