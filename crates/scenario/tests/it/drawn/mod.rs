//! Scenarios that nobody has thought up: fabric, queues, routing, transport, traffic and faults
//! from one seed. Small enough that a run takes a moment.

use std::fmt::Write;
use std::path::Path;

use endpoint::{Draw, Purpose};
use fabric::{Fault, FaultAction, Link, Node, Topology};
use trimline_scenario::Scenario;
use units::{Rate, Time};

/// The draws that make one scenario, one after the other.
pub(crate) struct Dice {
    draw: Draw,
    rolled: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { draw: Draw::new(seed, Purpose::new("swarm"), 0), rolled: 0 }
    }

    /// As [`Dice::new`], for another kind of drawn scenarios.
    pub(crate) fn part(seed: u64, part: u64) -> Self {
        Self { draw: Self::new(seed).draw.part(part), rolled: 0 }
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rolled += 1;
        self.draw.below(Purpose::new("dice"), self.rolled, bound)
    }

    /// Uniform from `low` to `high`, both included.
    pub(crate) fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// `key = "one of these"`, or no such line with the chance that is left.
    pub(crate) fn maybe(&mut self, text: &mut String, chance: u64, key: &str, values: &[&str]) {
        let value = self.pick(values);
        if self.percent(chance) {
            writeln!(text, "{key} = {value}").unwrap();
        }
    }
}

/// A scenario, and what the tests want to know of it.
pub(crate) struct Drawn {
    pub(crate) text: String,
    /// The file of messages that the text names, if it does: its name and what is in it.
    pub(crate) file: Option<(String, String)>,
    pub(crate) ndp: bool,
    /// Of a full packet.
    pub(crate) payload: u16,
    /// When the run ends at the latest.
    pub(crate) limit: Time,
    pub(crate) faults: Vec<Fault>,
}

/// Rates with a whole number of picoseconds per byte, and others.
const RATES: [&str; 6] = ["10Gbps", "10Gbps", "9.7Gbps", "3Gbps", "25Gbps", "40Gbps"];
/// Too short for a cut, just short enough, just long enough, and plenty.
const DELAYS: [&str; 10] =
    ["0", "99ns", "100ns", "250ns", "500ns", "1us", "1us", "1.234567us", "3us", "5us"];

pub(crate) fn draw(seed: u64) -> Drawn {
    let dice = &mut Dice::new(seed);
    let shape = shape(dice);
    let fabric = fabric_of(&shape);
    let (ndp, payload) = (dice.percent(65), dice.pick(&[1000, 1460, 4096, 8936]));
    let limit = limit(dice, &fabric, payload);
    let mut text = format!("name = \"swarm\"\nseed = {seed}\n\n[topology]\n{shape}");
    text += &uneven(dice, &fabric);
    text += &queue(dice, ndp, payload);
    let modes = ["permute", "permute", "spray", "single", "random", "ecmp"];
    let mode = dice.pick(if ndp { &modes } else { &modes[3..] });
    let reroute_after = dice.pick(&["0", "1ps", "10us", "33.3us"]);
    writeln!(text, "\n[routing]\nmode = \"{mode}\"\nreroute_after = \"{reroute_after}\"").unwrap();
    if ["permute", "spray", "single"].contains(&mode) && is_tree(&fabric) {
        let encodings = ["\"source-route\"", "\"core-label\"", "\"core-address\""];
        dice.maybe(&mut text, 40, "path_encoding", &encodings);
    }
    let mut other = Dice { draw: dice.draw.part(2), rolled: 0 };
    let mptcp = !ndp && other.percent(30);
    text += &match () {
        () if ndp => ndp_transport(dice, payload),
        () if mptcp => mptcp_transport(&mut other, payload),
        () => newreno_transport(dice, payload),
    };
    let (traffic, endless, file) = traffic(dice, &fabric, limit, (seed, !ndp && !mptcp));
    text += &traffic;
    text += &measure(dice, limit, endless);
    let (tables, faults) = faults(dice, &fabric, limit);
    text += &tables;
    Drawn { text, file, ndp, payload, limit, faults }
}

/// A scenario of lossless switches, without faults: in it nothing may be lost.
pub(crate) fn draw_lossless(seed: u64) -> Drawn {
    let dice = &mut Dice::part(seed, 3);
    let shape = shape(dice);
    let fabric = fabric_of(&shape);
    let payload = dice.pick(&[1000, 1000, 4096]);
    let limit = limit(dice, &fabric, payload);
    let mut text = format!("name = \"swarm\"\nseed = {seed}\n\n[topology]\n{shape}");
    text += &uneven(dice, &fabric);
    text += &lossless_queue(dice);
    let mode = dice.pick(&["single", "random", "ecmp", "ecmp"]);
    writeln!(text, "\n[routing]\nmode = \"{mode}\"").unwrap();
    text += &rdma_transport(dice, payload);
    let (traffic, endless, file) = traffic(dice, &fabric, limit, (seed, false));
    text += &traffic;
    text += &measure(dice, limit, endless);
    Drawn { text, file, ndp: false, payload, limit, faults: Vec::new() }
}

/// Memory so small that neighbours must be paused, and as much headroom as the links need.
pub(crate) fn lossless_queue(dice: &mut Dice) -> String {
    let (buffer, reserve) = dice.pick(&[("40KB", "0B"), ("200KB", "0B"), ("2MB", "2KB")]);
    let threshold = dice.pick(&["alpha = 0.125", "alpha = 1", "alpha = 8", "xoff = \"20KB\""]);
    let resume_offset = dice.pick(&["0B", "2KB", "9KB"]);
    let schedule = dice.pick(&["\"strict\"", "\"strict\"", "[1, 1, 1, 1, 1, 1, 1, 4]"]);
    let mut text = format!(
        "\n[queue]\nkind = \"lossless\"\nbuffer = \"{buffer}\"\nreserve = \"{reserve}\"\n{threshold}\n\
         headroom = \"auto\"\nheadroom_beside = true\nresume_offset = \"{resume_offset}\"\n\
         lossless = [0]\ncontrol_class = 7\nschedule = {schedule}\ndeadlock_after = \"50us\"\n"
    );
    dice.maybe(&mut text, 50, "xon", &["\"1KB\"", "\"5KB\""]);
    // Refreshed after half of it, and before that a long packet may be in the way of the frame.
    dice.maybe(&mut text, 30, "pause", &["\"200us\""]);
    let ramp = "min = \"5KB\", max = \"20KB\", probability = 0.5";
    let ecn = ["arrival", "departure"].map(|at| format!("{{ {ramp}, at = \"{at}\" }}"));
    dice.maybe(&mut text, 60, "ecn", &[&ecn[0], &ecn[1]]);
    text
}

/// RDMA without a rule for its rate, with one, or TCP: whoever sends, flow control keeps it from
/// losses.
fn rdma_transport(dice: &mut Dice, payload: u16) -> String {
    let kind = match dice.below(100) {
        0..40 => "kind = \"rdma\"\nrule = \"none\"\npreset = \"roce\"",
        40..55 => "kind = \"rdma\"\nrule = \"timely\"\npreset = \"paper\"\nsegment = \"16KB\"",
        55..75 => "kind = \"rdma\"\nrule = \"dcqcn\"\npreset = \"paper\"",
        75..85 => "kind = \"rdma\"\nrule = \"swift\"\npreset = \"paper\"",
        _ => {
            let tcp = "kind = \"tcp\"\nrule = \"newreno\"\nrecovery = \"newreno\"\necn = false\npreset = \"linux-datacenter\"";
            return format!("\n[transport]\n{tcp}\nmss = \"{payload}B\"\noverhead = \"64B\"\n");
        }
    };
    format!("\n[transport]\n{kind}\npayload = \"{payload}B\"\n")
}

/// Whether it is a tree of tiers, so that a path can be named by its core switch.
pub(crate) fn is_tree(fabric: &Topology) -> bool {
    fabric.plane_count() == 1 && !["vl2", "jellyfish", "bcube"].contains(&fabric.kind())
}

/// The keys of `[topology]`, links that differ excepted.
pub(crate) fn shape(dice: &mut Dice) -> String {
    let mut planes = Dice { draw: dice.draw.part(4), rolled: 0 };
    let mut text = match dice.below(100) {
        0..6 => format!("kind = \"star\"\nhosts = {}\n", dice.from(2, 12)),
        6..16 => format!(
            "kind = \"dumbbell\"\nleft_hosts = {}\nright_hosts = {}\nbottleneck_rate = \"{}\"\n",
            dice.from(1, 8),
            dice.from(1, 8),
            dice.pick(&RATES),
        ),
        16..40 => format!(
            "kind = \"leaf-spine\"\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\n\
             uplink_rate = \"{}\"\nuplink_delay = \"{}\"\n",
            dice.from(2, 9),
            dice.from(1, 4),
            dice.from(1, 4),
            dice.pick(&RATES),
            dice.pick(&DELAYS),
        ),
        40..60 => {
            format!("kind = \"fat-tree\"\nk = 4\noversubscription = {}\n", dice.pick(&[1, 1, 2, 3]))
        }
        60..66 => "kind = \"fat-tree\"\nk = 6\n".to_owned(),
        66..72 => {
            let (da, di) = dice.pick(&[(2, 4), (4, 2), (4, 4), (4, 6)]);
            format!(
                "kind = \"vl2\"\naggregation_ports = {da}\nintermediate_ports = {di}\n\
                 hosts_per_rack = {}\nuplink_rate = \"{}\"\n",
                dice.from(1, 3),
                dice.pick(&RATES),
            )
        }
        72..84 => format!(
            "kind = \"jellyfish\"\nswitches = {}\ndegree = {}\nhosts_per_switch = {}\n\
             graph_seed = {}\npaths = {}\nstretch = {}\n",
            dice.pick(&[6, 8, 10, 14]),
            dice.pick(&[3, 3, 4, 5]),
            dice.from(1, 3),
            dice.below(1000),
            dice.pick(&[1, 3, 8]),
            dice.pick(&["0", "1", "2", "\"unlimited\""]),
        ),
        84..96 => {
            let (n, k) = dice.pick(&[(4, 1), (2, 2), (3, 2), (2, 3), (5, 0)]);
            let stretch = dice.pick(&["0", "4", "\"unlimited\""]);
            format!("kind = \"bcube\"\nn = {n}\nk = {k}\nstretch = {stretch}\n")
        }
        _ => {
            let file = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../scenarios/htsim/fat_tree_16.topo");
            return format!("kind = \"file\"\nfile = '{}'\n", file.display());
        }
    };
    let (rate, delay) = (dice.pick(&RATES), dice.pick(&DELAYS));
    writeln!(text, "link_rate = \"{rate}\"\nlink_delay = \"{delay}\"").unwrap();
    dice.maybe(&mut text, 30, "switch_latency", &["\"1ns\"", "\"100ns\"", "\"800ns\""]);
    if ["star", "dumbbell", "leaf-spine", "k = 4"].iter().any(|shape| text.contains(shape)) {
        planes.maybe(&mut text, 20, "planes", &["2", "3", "4"]);
    }
    text
}

/// The fabric of this shape, to know what there is to name.
pub(crate) fn fabric_of(shape: &str) -> Topology {
    let text = format!(
        "name = \"shape\"\nseed = 1\nrouting.mode = \"ecmp\"\n\
         transport = {{ kind = \"tcp\", rule = \"newreno\", recovery = \"newreno\", ecn = false, preset = \"ns2\", mss = \"1000B\" }}\n\
         queue = {{ kind = \"drop-tail\", capacity = \"9 packets\" }}\n\
         traffic = {{ kind = \"permutation\", size = \"1KB\" }}\n[topology]\n{shape}"
    );
    parse(&text, Path::new(".")).topology().clone()
}

/// As long as a test has time for, if all hosts send at full rate: half a millisecond or less.
fn limit(dice: &mut Dice, fabric: &Topology, payload: u16) -> Time {
    const PACKETS: u64 = 20_000;
    let Rate(rate) = fabric.links()[0].rate;
    let packet = Rate(rate).serialise(u64::from(payload));
    let long = PACKETS * packet.0 / u64::from(fabric.hosts());
    let long = long.clamp(120_000_000, 500_000_000);
    Time(dice.from(long / 2, long))
}

/// Links with numbers of their own, and one that has failed.
pub(crate) fn uneven(dice: &mut Dice, fabric: &Topology) -> String {
    let mut text = String::new();
    for _ in 0..dice.below(4).saturating_sub(1) {
        let link = any_link(dice, fabric);
        writeln!(text, "[[topology.link]]\nlink = \"{link}\"").unwrap();
        writeln!(text, "delay = \"{}\"", dice.pick(&DELAYS)).unwrap();
        dice.maybe(&mut text, 50, "rate", &["\"1Gbps\"", "\"7.77Gbps\"", "\"100Gbps\""]);
        dice.maybe(&mut text, 50, "one_way", &["true"]);
    }
    if matches!(fabric.kind(), "jellyfish" | "bcube") {
        return text; // Listed paths may all go over one link.
    }
    // Where there is another way.
    let up = |link: &&Link| link.from.is_switch() && link.from.tier() < link.to.tier();
    let ups: Vec<&Link> = fabric.links().iter().filter(up).collect();
    let spare = |link: &&&Link| ups.iter().filter(|other| other.from == link.from).count() > 1;
    let spare: Vec<&Link> = ups.iter().filter(spare).copied().collect();
    if !spare.is_empty() && dice.percent(20) {
        let link = dice.pick(&spare);
        writeln!(text, "[[topology.link]]\nlink = \"{link}\"\nfailed = true").unwrap();
    }
    text
}

/// A link; half of the time one between switches.
fn any_link(dice: &mut Dice, fabric: &Topology) -> Link {
    let inner = |link: &&Link| ![link.from, link.to].iter().any(|n| matches!(n, Node::Host(_)));
    let inner: Vec<&Link> = fabric.links().iter().filter(inner).collect();
    if inner.is_empty() || dice.percent(50) {
        dice.pick(fabric.links())
    } else {
        *dice.pick(&inner)
    }
}

pub(crate) fn queue(dice: &mut Dice, ndp: bool, payload: u16) -> String {
    if dice.percent(if ndp { 85 } else { 15 }) {
        ndp_queue(dice, payload)
    } else {
        drop_tail_queue(dice, payload)
    }
}

pub(crate) fn ndp_queue(dice: &mut Dice, payload: u16) -> String {
    let bytes = format!("{}B", 3 * u64::from(payload));
    let capacity = dice.pick(&["1 packets", "2 packets", "8 packets", "8 packets", &bytes]);
    let mut text = format!("\n[queue]\nkind = \"ndp\"\ncapacity = \"{capacity}\"\n");
    dice.maybe(&mut text, 50, "header_capacity", &["\"128B\"", "\"640B\"", "\"2 packets\""]);
    dice.maybe(&mut text, 30, "header_weight", &["1", "3"]);
    dice.maybe(&mut text, 30, "trim_arriving", &["0.0", "0.3", "1.0"]);
    dice.maybe(&mut text, 30, "trim_to", &["\"100B\""]);
    dice.maybe(&mut text, 25, "bounce", &["false"]);
    let low = format!("\"{payload}B\"\necn_high = \"{}B\"", 3 * u64::from(payload));
    dice.maybe(&mut text, 25, "ecn_low", &["\"1 packets\"\necn_high = \"4 packets\"", &low]);
    dice.maybe(&mut text, 25, "flag_last_hop", &["true"]);
    text
}

/// Half of the time in memory that all ports of a switch share.
pub(crate) fn drop_tail_queue(dice: &mut Dice, payload: u16) -> String {
    let bytes = format!("{}B", 3 * u64::from(payload));
    let capacity = dice.pick(&["2 packets", "5 packets", "30 packets", &bytes]);
    let mut text = format!("\n[queue]\nkind = \"drop-tail\"\ncapacity = \"{capacity}\"\n");
    marking(dice, &mut text);
    if dice.percent(50) {
        let (size, alpha) =
            (dice.pick(&["10KB", "30KB", "200KB"]), dice.pick(&["0.25", "1.0", "64.0"]));
        writeln!(text, "\n[buffer]\nkind = \"shared\"\nsize = \"{size}\"\nalpha = {alpha}")
            .unwrap();
    }
    text
}

/// A threshold, a ramp or nothing, and what goes with it.
fn marking(dice: &mut Dice, text: &mut String) {
    match dice.below(100) {
        0..35 => return,
        35..60 => {
            let threshold = dice.pick(&["1 packets", "2000B"]);
            writeln!(text, "ecn_threshold = \"{threshold}\"").unwrap();
            if dice.percent(50) {
                return; // As a threshold mostly is.
            }
        }
        _ => {
            let (min, max) = dice.pick(&[("1 packets", "4 packets"), ("1B", "9KB")]);
            let probability = dice.pick(&["0.1", "0.5", "1.0"]);
            writeln!(text, "red_min = \"{min}\"\nred_max = \"{max}\"").unwrap();
            writeln!(text, "red_probability = {probability}").unwrap();
        }
    }
    let (at, not_ect) = (dice.pick(&["arrival", "departure"]), dice.pick(&["pass", "drop"]));
    writeln!(text, "mark_at = \"{at}\"\nnot_ect = \"{not_ect}\"").unwrap();
    dice.maybe(text, 30, "red_weight", &["0.002", "0.3", "1.0"]);
}

/// NDP, half of the time with timeouts short enough to run out, a quarter so impatient that
/// messages fail.
pub(crate) fn ndp_transport(dice: &mut Dice, payload: u16) -> String {
    let window = dice.from(1, 60);
    let mut text = format!(
        "\n[transport]\nkind = \"ndp\"\npreset = \"paper\"\npayload = \"{payload}B\"\n\
         initial_window = {window}\n"
    );
    if dice.percent(50) {
        text += "rto_initial = \"60us\"\nrto_min = \"20us\"\nrto_max = \"90us\"\n";
        dice.maybe(&mut text, 50, "rto_jitter_percent", &["0", "99"]);
        dice.maybe(&mut text, 50, "stall_timeout", &["\"30us\"", "\"77us\""]);
    }
    if dice.percent(25) {
        // Nothing is under way in the network for longer than the receiver remembers.
        text += "abort_after = \"70us\"\ntime_wait = \"10s\"\nmsl = \"5us\"\nrx_idle_timeout = \"400us\"\n";
    }
    dice.maybe(&mut text, 30, "scoreboard", &["\"literal\"", "\"off\""]);
    dice.maybe(&mut text, 30, "discipline", &["\"prio\""]);
    dice.maybe(&mut text, 20, "pull_interval", &["\"500ns\"", "\"8us\""]);
    dice.maybe(&mut text, 20, "pull_on_duplicate", &["false"]);
    dice.maybe(&mut text, 15, "max_rx_messages", &["1", "3"]);
    dice.maybe(&mut text, 15, "max_tx_messages", &["1", "3"]);
    dice.maybe(&mut text, 15, "control_queue", &["1", "4"]);
    text
}

/// MPTCP, or MMPTCP that switches soon or never; mostly with timeouts short enough to run out.
pub(crate) fn mptcp_transport(dice: &mut Dice, mss: u16) -> String {
    let preset = dice.pick(&["mmptcp-infocom16", "linux", "htsim"]);
    let phases = dice.pick(&["multipath", "scatter-then-multipath", "scatter"]);
    let mut text = format!(
        "\n[transport]\nkind = \"mptcp\"\nphases = \"{phases}\"\npreset = \"{preset}\"\nmss = \"{mss}B\"\noverhead = \"84B\"\n"
    );
    if dice.percent(80) {
        text +=
            "rto_initial = \"50us\"\nrto_min = \"20us\"\nrto_max = \"1ms\"\nrto_tick = \"1us\"\n";
        dice.maybe(&mut text, 30, "max_timeouts", &["1", "2", "4"]);
    }
    if phases != "multipath" {
        let threshold = dice.pick(&["\"paths\"", "3", "\"rr\"\nrecovery = \"sack\"\ndsack = true"]);
        writeln!(text, "scatter_dup_threshold = {threshold}").unwrap();
    }
    if phases == "scatter-then-multipath" {
        let switch = dice.pick(&["\"bytes\"\nswitch_bytes = \"9KB\"", "\"loss\""]);
        writeln!(text, "switch = {switch}\nswitch_postpone = false").unwrap();
    }
    if phases != "scatter" {
        dice.maybe(&mut text, 60, "subflows", &["1", "2", "4"]);
        dice.maybe(&mut text, 40, "coupling", &["\"olia\"", "\"uncoupled\""]);
        dice.maybe(&mut text, 40, "scheduler", &["\"lowest-rtt\"", "\"round-robin\""]);
        dice.maybe(&mut text, 40, "reinject", &["\"timeout\""]);
        dice.maybe(&mut text, 40, "opportunistic", &["true", "false"]);
    }
    dice.maybe(&mut text, 40, "receive_buffer", &["\"9KB\"", "\"40KB\""]);
    dice.maybe(&mut text, 30, "send_buffer", &["\"20KB\""]);
    dice.maybe(&mut text, 30, "initial_window", &["10.0"]);
    dice.maybe(&mut text, 40, "delayed_ack", &["\"off\"", "\"3us\""]);
    dice.maybe(&mut text, 30, "handshake", &["true"]);
    text
}

/// NewReno, or DCTCP, which switches can mark; half of the time with timeouts short enough to run
/// out.
fn newreno_transport(dice: &mut Dice, mss: u16) -> String {
    let preset = dice.pick(&["linux-datacenter", "ns2", "htsim"]);
    let kind = match dice.percent(50) {
        true => "kind = \"tcp\"\nrule = \"dctcp\"\nrecovery = \"sack\"\necn = true",
        false => "kind = \"tcp\"\nrule = \"newreno\"\nrecovery = \"newreno\"\necn = false",
    };
    let mut text = format!(
        "\n[transport]\n{kind}\npreset = \"{preset}\"\nmss = \"{mss}B\"\noverhead = \"64B\"\n"
    );
    if dice.percent(60) {
        text += "rto_initial = \"50us\"\nrto_min = \"20us\"\nrto_max = \"1ms\"\n";
        let tick = dice.pick(&["0", "1us"]);
        writeln!(text, "rto_tick = \"{tick}\"").unwrap();
        dice.maybe(&mut text, 30, "max_timeouts", &["1", "2"]);
    }
    dice.maybe(&mut text, 30, "initial_window", &["1.0", "30.0"]);
    dice.maybe(&mut text, 40, "delayed_ack", &["\"off\"", "\"3us\"", "\"20us\""]);
    dice.maybe(&mut text, 40, "quick_acks", &["0"]);
    dice.maybe(&mut text, 20, "limited_transmit", &["true", "false"]);
    dice.maybe(&mut text, 20, "max_messages", &["1", "3"]);
    text + &tcp_options(dice)
}

/// What few TCPs have, by dice of its own.
pub(crate) fn tcp_options(dice: &Dice) -> String {
    let mut dice = Dice { draw: dice.draw.part(1), rolled: 0 };
    let mut text = String::new();
    dice.maybe(&mut text, 50, "handshake", &["true"]);
    dice.maybe(&mut text, 30, "timestamps", &["true"]);
    dice.maybe(&mut text, 30, "rto_random", &["0.5"]);
    dice.maybe(&mut text, 20, "early_retransmit", &["true"]);
    dice.maybe(&mut text, 20, "slow_start", &["false"]);
    dice.maybe(&mut text, 30, "ssthresh_of", &["\"window\"", "\"flight\""]);
    let restarts = ["\"never\"", "\"initial-window\"", "\"halving\""];
    dice.maybe(&mut text, 30, "idle_restart", &restarts);
    if dice.percent(30) {
        text += "receive_window = \"ictcp\"\nictcp_idle = \"50us\"\n";
    }
    text
}

/// One to three tables of traffic, whether one of them never ends, and the file that one names.
fn traffic(
    dice: &mut Dice,
    fabric: &Topology,
    limit: Time,
    (seed, capped): (u64, bool),
) -> (String, bool, Option<(String, String)>) {
    let (mut text, mut endless, mut file) = (String::new(), false, None);
    for _ in 0..dice.pick(&[1, 1, 1, 2, 3]) {
        text += "\n[[traffic]]\n";
        match dice.below(100) {
            0..18 if file.is_none() => {
                let name = format!("swarm-{seed}.cm");
                writeln!(text, "file = \"{name}\"").unwrap();
                file = Some((name, connection_matrix(dice, fabric.hosts(), limit)));
            }
            0..28 if file.is_none() => {
                let name = format!("swarm-{seed}.csv");
                writeln!(text, "file = \"{name}\"").unwrap();
                file = Some((name, messages(dice, fabric.hosts(), limit)));
            }
            0..70 => endless |= pairs(dice, &mut text, fabric.hosts(), limit),
            70..85 => {
                let (sizes, load) = dice.pick(&SIZES);
                writeln!(text, "kind = \"poisson\"\n{sizes}\nload = {load}").unwrap();
                endless = true;
            }
            _ => {
                let (sizes, _) = dice.pick(&SIZES[..3]);
                let kind = dice.pick(&["fixed", "exponential"]);
                writeln!(
                    text,
                    "kind = \"closed-loop\"\n{sizes}\nconnections = {}\ngap = \"{}\"\n\
                     gap_kind = \"{kind}\"\nkeep_destination = {}",
                    dice.from(1, 3),
                    dice.pick(&["1ns", "1us", "20us"]),
                    dice.percent(50),
                )
                .unwrap();
                endless = true;
            }
        }
    }
    // With dice of their own: what else is drawn does not depend on them.
    let dice = &mut Dice::new(!seed);
    if dice.percent(50) {
        text += "\n[[traffic]]\n";
        match dice.percent(50) && fabric.hosts() > 3 {
            true => queries(dice, &mut text, fabric.hosts()),
            false => barrier(dice, &mut text, fabric.hosts(), capped),
        }
        span(dice, &mut text, limit, endless);
    }
    let dice = &mut Dice::new(seed.rotate_left(32));
    if dice.percent(30) {
        text += "\n[[traffic]]\n";
        calls(dice, &mut text, fabric.hosts());
        span(dice, &mut text, limit, endless);
    }
    (text, endless, file)
}

/// Sizes of messages, and a load at which they are not too many for a test.
const SIZES: [(&str, &str); 6] = [
    ("size = \"20KB\"", "0.6"),
    ("size = \"4321B\"", "0.4"),
    ("distribution = \"hadoop\"", "0.9"),
    ("distribution = \"web-search\"", "1.5"),
    ("distribution = \"homa-w3\"", "0.2"),
    ("distribution = \"homa-w1\"", "0.02"),
];

/// Flows between pairs of hosts that all start at once. Whether they never end.
fn pairs(dice: &mut Dice, text: &mut String, hosts: u32, limit: Time) -> bool {
    let hosts = u64::from(hosts);
    match dice.below(8) {
        0 if hosts <= 16 => *text += "kind = \"all-to-all\"\n",
        0..2 => writeln!(text, "kind = \"random\"\nflows = {}", dice.from(1, 2 * hosts)).unwrap(),
        2..5 => {
            let (receiver, senders) = (dice.below(hosts), dice.from(1, hosts - 1));
            writeln!(text, "kind = \"incast\"\nreceiver = {receiver}\nsenders = {senders}")
                .unwrap();
            dice.maybe(text, 30, "other_racks", &["true"]);
        }
        _ => *text += "kind = \"permutation\"\n",
    }
    dice.maybe(text, 40, "priority", &["1", "7"]);
    if dice.percent(40) {
        writeln!(text, "start = \"{}ps\"", instant(dice, limit).0).unwrap();
    }
    let unbounded = dice.percent(35);
    let sizes = ["size = \"unbounded\"", dice.pick(&SIZES).0];
    writeln!(text, "{}", sizes[usize::from(!unbounded)]).unwrap();
    unbounded
}

/// Blocks of an incast. NDP has no windows to cap.
fn barrier(dice: &mut Dice, text: &mut String, hosts: u32, capped: bool) {
    let hosts = u64::from(hosts);
    let size = dice.pick(&["size = \"20KB\"", "size = \"1B\"", "block = \"77777B\""]);
    writeln!(
        text,
        "kind = \"barrier\"\nreceiver = {}\nsenders = {}\n{size}\nrequest_latency = \"{}\"\n\
         request_gap = \"{}\"",
        dice.below(hosts),
        dice.from(1, hosts - 1),
        dice.pick(&["1ps", "500ns", "2us", "20us"]),
        dice.pick(&["0", "1ps", "700ns"]),
    )
    .unwrap();
    if dice.percent(50) && capped {
        let (rate, senders) = (dice.pick(&RATES), dice.from(1, hosts));
        writeln!(
            text,
            "cap = \"dynamic\"\ncap_rate = \"{rate}\"\ncap_rtt = \"20us\"\ncap_queue = \"50KB\"\n\
             cap_senders = {senders}"
        )
        .unwrap();
    } else {
        *text += "cap = \"none\"\n";
    }
}

/// Queries over a tree of one or two levels.
fn queries(dice: &mut Dice, text: &mut String, hosts: u32) {
    let hosts = u64::from(hosts);
    let (roots, half) = (dice.pick(&["0", "0-1", "all"]), hosts / 2);
    let tree = if dice.percent(50) {
        let deadline = dice.pick(&["3us", "30us", "1ms"]);
        format!("fanout = [{}]\ndeadlines = [\"{deadline}\"]\n", dice.from(1, hosts - 2))
    } else {
        let (first, second) = (dice.from(1, half - 1), dice.from(1, hosts - half - 1));
        format!(
            "fanout = [{first}, {second}]\ndeadlines = [\"90us\", \"{}\"]\naggregate = \"{}\"\n\
             aggregators = \"0-{}\"\n",
            dice.pick(&["5us", "40us", "89us"]),
            dice.pick(&["fixed", "proportional"]),
            half - 1,
        )
    };
    let workers = if tree.contains("aggregators") { half } else { 1 };
    let arrivals = dice.pick(&[
        "gap = \"1us\"\ngap_kind = \"fixed\"",
        "gap = \"20us\"\ngap_kind = \"exponential\"",
        "query_rate = 10000",
    ]);
    writeln!(
        text,
        "kind = \"partition-aggregate\"\nroots = \"{roots}\"\nworkers = \"{workers}-{}\"\n{tree}\
         placement = \"{}\"\nrequest = \"{}\"\n{}\n{arrivals}",
        hosts - 1,
        dice.pick(&["drawn", "in-order"]),
        dice.pick(&["1B", "1600B"]),
        dice.pick(&SIZES[..2]).0,
    )
    .unwrap();
    if dice.percent(50) {
        let kind = dice.pick(&["fixed", "exponential"]);
        writeln!(text, "compute = \"7us\"\ncompute_kind = \"{kind}\"").unwrap();
    }
}

/// Calls, in a closed loop or an open one.
fn calls(dice: &mut Dice, text: &mut String, hosts: u32) {
    let pace = dice.pick(&[
        "outstanding = 3\ngap = 0\ngap_kind = \"fixed\"",
        "outstanding = 1\ngap = \"20us\"\ngap_kind = \"exponential\"",
        "call_rate = 10000",
        "load = 0.2",
    ]);
    writeln!(
        text,
        "kind = \"rpc\"\nrequest = \"{}\"\nresponse = \"{}\"\n{pace}\ndraw_server = \"{}\"",
        dice.pick(&["1B", "20KB"]),
        dice.pick(&["1B", "20KB"]),
        dice.pick(&["once", "every-call"]),
    )
    .unwrap();
    if dice.percent(30) {
        writeln!(text, "sources = {}", dice.below(hosts.into())).unwrap();
    }
    if dice.percent(50) {
        let kind = dice.pick(&["fixed", "exponential"]);
        writeln!(text, "compute = \"7us\"\ncompute_kind = \"{kind}\"").unwrap();
    }
}

/// What blocks, queries and calls have in common. With traffic that is `endless`, they may be, too.
fn span(dice: &mut Dice, text: &mut String, limit: Time, endless: bool) {
    let connections = dice.pick(&["persistent", "fresh"]);
    writeln!(text, "connections = \"{connections}\"").unwrap();
    if dice.percent(30) {
        writeln!(text, "start = \"{}ps\"", instant(dice, limit).0).unwrap();
    }
    if !(endless && dice.percent(50)) {
        writeln!(text, "until = \"{}ps\"", limit.0).unwrap();
    }
}

/// Some instant, as often as not one at which other things happen, too.
fn instant(dice: &mut Dice, limit: Time) -> Time {
    match dice.below(4) {
        0 => Time::ZERO,
        1 => Time(10_000_000 * dice.below(limit.0 / 10_000_000)),
        2 => Time(1_000 * dice.below(limit.0 / 1_000)),
        _ => Time(dice.below(limit.0)),
    }
}

/// A connection matrix of htsim: flows that start in time, and triggers that start others when they
/// are done. Every trigger has the activations that it needs.
pub(crate) fn connection_matrix(dice: &mut Dice, hosts: u32, limit: Time) -> String {
    let mut flows = Vec::new();
    let mut flow = |dice: &mut Dice, start: String| {
        let src = dice.below(u64::from(hosts));
        let dst = (src + dice.from(1, u64::from(hosts) - 1)) % u64::from(hosts);
        let size = dice.pick(&[1, 999, 9_000, 30_000, 100_000]);
        flows.push(format!("{src}->{dst} {start} size {size}"));
        flows.len()
    };
    let mut count = 0;
    for _ in 0..dice.from(2, 12) {
        let start = instant(dice, Time(limit.0 / 4)).0;
        count = flow(dice, format!("start {start}"));
    }
    let (mut kinds, mut claims) = (Vec::new(), vec![[None, None]; count]);
    for trigger in 1..=dice.from(1, 8) {
        let kind = dice.pick(&["oneshot", "multishot", "barrier"]);
        let wanted = if kind == "oneshot" { 1 } else { dice.from(1, 4) };
        let mut activated = 0;
        for _ in 0..wanted {
            // By a flow that starts whatever this trigger does; its beginning or end is over once.
            let (by, end) = (dice.below(claims.len() as u64) as usize, dice.below(2) as usize);
            if claims[by][end].is_none() {
                claims[by][end] = Some(trigger);
                activated += 1;
            }
        }
        if activated == 0 {
            break;
        }
        kinds.push(match kind {
            "barrier" => format!("trigger id {trigger} barrier count {activated}"),
            _ => format!("trigger id {trigger} {kind}"),
        });
        let released = if kind == "multishot" { activated } else { dice.from(1, 4) };
        for _ in 0..released {
            count = flow(dice, format!("trigger {trigger}"));
        }
        claims.resize(count, [None, None]);
    }
    let mut text =
        format!("Nodes {hosts}\nConnections {}\nTriggers {}\n", flows.len(), kinds.len());
    for (line, [sent, received]) in flows.iter().zip(&claims) {
        text += line;
        let done = [("send", sent), ("recv", received)];
        for (end, trigger) in done.iter().filter_map(|(end, t)| t.map(|t: u64| (end, t))) {
            write!(text, " {end}_done_trigger {trigger}").unwrap();
        }
        text += "\n";
    }
    text + &kinds.join("\n") + "\n"
}

/// A list of messages.
pub(crate) fn messages(dice: &mut Dice, hosts: u32, limit: Time) -> String {
    let mut text = "start,src,dst,size,prio\n".to_owned();
    for _ in 0..dice.from(1, 60) {
        let src = dice.below(u64::from(hosts));
        let dst = (src + dice.from(1, u64::from(hosts) - 1)) % u64::from(hosts);
        let (start, size, prio) = (instant(dice, limit).0, dice.from(1, 40_000), dice.below(3));
        writeln!(text, "{start}ps,{src},{dst},{size}B,{prio}").unwrap();
    }
    text
}

fn measure(dice: &mut Dice, limit: Time, endless: bool) -> String {
    let mut text = format!("\n[measure]\nlimit = \"{}ps\"\n", limit.0);
    if endless || dice.percent(50) {
        let from = instant(dice, Time(limit.0 / 2));
        let to = dice.from(from.0 + 1, limit.0);
        writeln!(text, "from = \"{}ps\"\nto = \"{to}ps\"", from.0).unwrap();
    }
    dice.maybe(&mut text, 10, "max_in_flight", &["3", "40"]);
    text
}

/// Links and switches that fail in the middle of the run, and mostly come back.
pub(crate) fn faults(dice: &mut Dice, fabric: &Topology, limit: Time) -> (String, Vec<Fault>) {
    let (mut text, mut all) = (String::new(), Vec::new());
    if dice.percent(50) {
        return (text, all);
    }
    for _ in 0..dice.from(1, 5) {
        let (target, links) = target(dice, fabric);
        let (at, long) = (instant(dice, limit), dice.from(1, limit.0 / 2));
        let until = Time(at.0 + long);
        let ends = dice.percent(70).then_some(until);
        write!(text, "\n[[fault]]\nat = \"{}ps\"\n{target}", at.0).unwrap();
        let mut fault = |action, until: Option<Time>| {
            let until = until.unwrap_or(Time::NEVER);
            all.extend(links.iter().map(|&link| Fault { until, ..Fault::new(at, link, action) }));
        };
        match dice.below(6) {
            0..2 => {
                text += "action = \"down\"\n";
                fault(FaultAction::Down, None);
                if ends.is_some() {
                    // Perhaps at the same instant.
                    let at = Time(at.0 + long - 1);
                    write!(text, "[[fault]]\nat = \"{}ps\"\n{target}action = \"up\"\n", at.0)
                        .unwrap();
                    all.extend(links.iter().map(|&link| Fault::new(at, link, FaultAction::Up)));
                }
                continue;
            }
            2 => {
                text += "action = \"down\"\n";
                fault(FaultAction::Down, ends);
            }
            3 => {
                let period = dice.from(limit.0 / 100, limit.0 / 4);
                let share = dice.pick(&["0.1", "0.5", "0.9"]);
                writeln!(text, "action = \"flap\"\nperiod = \"{period}ps\"\ndown_share = {share}")
                    .unwrap();
                writeln!(text, "until = \"{}ps\"", until.0).unwrap();
                fault(FaultAction::Down, Some(until));
                continue;
            }
            4 => {
                let rate: Rate = dice.pick(&["1Gbps", "777Mbps", "50Gbps"]).parse().unwrap();
                writeln!(text, "action = \"rate\"\nrate = \"{rate}\"").unwrap();
                fault(FaultAction::Rate(rate), ends);
            }
            _ => {
                let probability = dice.pick(&[0.01, 0.3]);
                writeln!(text, "action = \"loss\"\nprobability = {probability}").unwrap();
                fault(FaultAction::Loss(probability), ends);
            }
        }
        if let Some(until) = ends {
            writeln!(text, "until = \"{}ps\"", until.0).unwrap();
        }
        dice.maybe(&mut text, 30, "announce", &["true", "false"]);
    }
    (text, all)
}

/// A link, one direction of it, a switch or a plane: how a table names it, and which links that is.
fn target(dice: &mut Dice, fabric: &Topology) -> (String, Vec<u32>) {
    let link = any_link(dice, fabric);
    let links_of = |mine: &dyn Fn(Node) -> bool| -> Vec<u32> {
        let links = (0..).zip(fabric.links());
        links.filter(|(_, l)| mine(l.from) || mine(l.to)).map(|(n, _)| n).collect()
    };
    match link.from {
        Node::Plane(plane, ..) if dice.percent(20) => {
            let links = links_of(&|node| matches!(node, Node::Plane(n, ..) if n == plane));
            return (format!("switch = \"plane {plane}\"\n"), links);
        }
        node if dice.percent(25) && node.is_switch() => {
            return (format!("switch = \"{node}\"\n"), links_of(&|other| other == node));
        }
        _ => {}
    }
    let one_way = dice.percent(40);
    let there = fabric.find_link(link.from, link.to);
    let back = fabric.find_link(link.to, link.from).filter(|_| !one_way);
    let text = format!("link = \"{link}\"\none_way = {one_way}\n");
    (text, there.into_iter().chain(back).collect())
}

pub(crate) fn parse(text: &str, dir: &Path) -> Scenario {
    Scenario::parse("swarm.toml", text, dir, &[])
        .unwrap_or_else(|why| panic!("{}\n{text}", why.render(false)))
}

/// The number in an environment variable.
pub(crate) fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |n| n.parse().unwrap())
}
