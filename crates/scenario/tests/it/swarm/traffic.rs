//! Traffic of every kind that ends by itself, or is stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use fabric::Topology;
use units::HostId;
use workload::SizeDist;

use super::transports::Carrier;
use super::{BUSY, STOP};
use crate::drawn::{self, Dice};

/// Bytes that a table has its hosts send, about: enough for queues to fill.
const BYTES: u64 = 1_000_000;

/// Table `n`, of `kind` if its transport `by` carries such. `by` is called `name`, if it has one.
pub(super) fn table(
    dice: &mut Dice,
    kind: &str,
    fabric: &Topology,
    (by, name): (&Carrier, Option<&str>),
    (n, dir): (usize, &Path),
) -> String {
    let mut text = format!("\n[[traffic]]\nname = \"t{n}\"\n");
    if let Some(name) = name {
        writeln!(text, "transport = \"{name}\"").unwrap();
    }
    // Files and jobs have longer messages than a NIC takes.
    let long = ["file", "job"].contains(&kind);
    let kind = if long && by.longest < u64::MAX { "random" } else { kind };
    if kind == "job" && !by.endless {
        job(dice, &mut text, fabric);
        return text;
    }
    let listed = ["flow", "permutation", "random", "incast"].contains(&kind);
    match (by.endless, listed) {
        (true, _) => {
            pairs(dice, &mut text, if listed { kind } else { "incast" }, fabric, false);
            writeln!(text, "size = \"unbounded\"\nstop = \"{}ps\"", BUSY.0).unwrap();
            return text;
        }
        (false, true) => {
            let messages = pairs(dice, &mut text, kind, fabric, true);
            sizes(dice, &mut text, by.longest, messages);
        }
        (false, false) => other(dice, &mut text, kind, fabric, by.longest, (n, dir)),
    }
    if kind != "file" {
        dice.maybe(&mut text, 20, "priority", &["1", "7"]);
    }
    dice.maybe(&mut text, 20, "deadline", &["\"50us\"", "\"1ms\""]);
    if !text.contains("\nstop = ") && dice.percent(5) {
        writeln!(text, "stop = \"{}ps\"", dice.from(1, STOP.0)).unwrap();
    }
    text
}

/// Flows between pairs of hosts, without their sizes. How many there are.
fn pairs(dice: &mut Dice, text: &mut String, kind: &str, fabric: &Topology, ends: bool) -> u64 {
    let hosts = u64::from(fabric.hosts());
    let receiver = dice.below(hosts);
    let mut messages = match kind {
        "flow" => {
            let source = (receiver + dice.from(1, hosts - 1)) % hosts;
            write!(text, "kind = \"flow\"\nsource = {source}\ndestination = {receiver}\n").unwrap();
            1
        }
        "permutation" => {
            *text += "kind = \"permutation\"\n";
            hosts
        }
        "random" => {
            let flows = dice.from(1, 2 * hosts);
            write!(text, "kind = \"random\"\nflows = {flows}\n").unwrap();
            flows
        }
        _ => {
            let senders = dice.from(1, hosts - 1);
            write!(text, "kind = \"incast\"\nreceiver = {receiver}\nsenders = {senders}\n")
                .unwrap();
            senders
        }
    };
    match dice.below(if ends { 4 } else { 2 }) {
        0 => writeln!(text, "start = \"{}ps\"", dice.below(BUSY.0)),
        1 => writeln!(text, "start_spread = \"{}ps\"", BUSY.0 / 2),
        2 => {
            messages *= 3;
            writeln!(text, "every = \"100us\"\nuntil = \"{}ps\"", BUSY.0)
        }
        _ => Ok(()),
    }
    .unwrap();
    messages
}

/// How long so many messages are, together not too much. Of a distribution, a part is stopped.
fn sizes(dice: &mut Dice, text: &mut String, longest: u64, messages: u64) {
    let most = (BYTES / messages.max(1)).clamp(500, 400_000).min(longest);
    if longest == u64::MAX && dice.percent(20) {
        let names: Vec<&str> = SizeDist::names().collect();
        let name = dice.pick(&names);
        writeln!(text, "distribution = \"{name}\"\nstop = \"{}ps\"", STOP.0).unwrap();
    } else {
        writeln!(text, "size = \"{}B\"", size(dice, most)).unwrap();
    }
}

/// A byte, a packet, many, but no more than `most`.
fn size(dice: &mut Dice, most: u64) -> u64 {
    dice.pick(&[1, 64, 999, 8_200, 21_525, 90_000, 400_000]).min(most)
}

/// Every other kind.
fn other(
    dice: &mut Dice,
    text: &mut String,
    kind: &str,
    fabric: &Topology,
    longest: u64,
    (n, dir): (usize, &Path),
) {
    let hosts = u64::from(fabric.hosts());
    match kind {
        "all-to-all" => {
            let last = hosts.min(8) - 1;
            write!(text, "kind = \"all-to-all\"\nhosts = \"0-{last}\"\n").unwrap();
            sizes(dice, text, longest, last * (last + 1));
        }
        "poisson" => {
            let until = BUSY.0;
            let rate = dice.pick(&["1e5", "1e6"]);
            write!(text, "kind = \"poisson\"\nmessage_rate = {rate}\nuntil = \"{until}ps\"\n")
                .unwrap();
            dice.maybe(text, 30, "matrix", &["\"permutation\""]);
            sizes(dice, text, longest, 100);
        }
        "closed-loop" => {
            let (connections, gap) = (dice.from(1, 2), dice.pick(&["10us", "40us"]));
            let (kind, keep) = (dice.pick(&["fixed", "exponential"]), dice.percent(50));
            write!(
                text,
                "kind = \"closed-loop\"\nconnections = {connections}\ngap = \"{gap}\"\n\
                 gap_kind = \"{kind}\"\nkeep_destination = {keep}\nstop = \"{}ps\"\nsize = \"{}B\"\n",
                BUSY.0,
                size(dice, longest.min(20_000)),
            )
            .unwrap();
        }
        "barrier" => barrier(dice, text, hosts, longest),
        "partition-aggregate" => queries(dice, text, hosts, longest),
        "rpc" => calls(dice, text, longest),
        "file" => file(dice, text, fabric, (n, dir)),
        other => panic!("the swarm does not draw the traffic `{other}`"),
    }
}

/// What blocks, queries and calls have in common.
fn connections(dice: &mut Dice, text: &mut String) {
    let connections = dice.pick(&["persistent", "fresh"]);
    writeln!(text, "connections = \"{connections}\"").unwrap();
}

fn barrier(dice: &mut Dice, text: &mut String, hosts: u64, longest: u64) {
    let (receiver, senders) = (dice.below(hosts), dice.from(1, hosts - 1));
    write!(
        text,
        "kind = \"barrier\"\nreceiver = {receiver}\nsenders = {senders}\nsize = \"{}B\"\n\
         request_latency = \"{}\"\nrequest_gap = \"{}\"\nblocks = {}\ncap = \"none\"\n",
        size(dice, longest.min(BYTES / hosts)),
        dice.pick(&["1ps", "500ns", "20us"]),
        dice.pick(&["0", "1ps", "700ns"]),
        dice.from(1, 4),
    )
    .unwrap();
    connections(dice, text);
}

/// Queries over one level or, of hosts enough, two.
fn queries(dice: &mut Dice, text: &mut String, hosts: u64, longest: u64) {
    let last = hosts - 1;
    let tree = match hosts {
        2 => "fanout = [1]\ndeadlines = [\"50us\"]\nroots = \"0\"\nworkers = \"1\"\n".to_owned(),
        3..5 => {
            format!("fanout = [2]\ndeadlines = [\"1ms\"]\nroots = \"0\"\nworkers = \"1-{last}\"\n")
        }
        _ => format!(
            "fanout = [2, 2]\ndeadlines = [\"90us\", \"40us\"]\nroots = \"0-1\"\n\
             aggregators = \"2-{last}\"\nworkers = \"1-{last}\"\naggregate = \"fixed\"\n"
        ),
    };
    write!(
        text,
        "kind = \"partition-aggregate\"\n{tree}placement = \"{}\"\nrequest = \"{}\"\nsize = \"{}B\"\n\
         gap = \"5us\"\ngap_kind = \"{}\"\nqueries = {}\ncompute = \"7us\"\ncompute_kind = \"fixed\"\n",
        dice.pick(&["drawn", "in-order"]),
        dice.pick(&["1B", "1600B"]),
        size(dice, longest.min(90_000)),
        dice.pick(&["fixed", "exponential"]),
        dice.from(1, 5),
    )
    .unwrap();
    connections(dice, text);
}

fn calls(dice: &mut Dice, text: &mut String, longest: u64) {
    write!(
        text,
        "kind = \"rpc\"\nrequest = \"{}B\"\nresponse = \"{}B\"\n{}draw_server = \"{}\"\ncalls = {}\n",
        dice.pick(&[1, 2_512]),
        size(dice, longest.min(21_525)),
        dice.pick(&[
            "outstanding = 2\ngap = \"1us\"\ngap_kind = \"exponential\"\n",
            "call_rate = 50000\n"
        ]),
        dice.pick(&["once", "every-call"]),
        dice.from(1, 5),
    )
    .unwrap();
    connections(dice, text);
}

/// A few steps of a training job on all hosts: a collective, or a small model.
fn job(dice: &mut Dice, text: &mut String, fabric: &Topology) {
    let per_host = dice.pick(&[1, 2]);
    let wirings = wirings(fabric);
    let has_nics = !wirings.is_empty() && dice.percent(50);
    write!(
        text,
        "kind = \"job\"\nranks_per_host = {per_host}\nplacement = \"{}\"\nsteps = {}\n\
         channels = {}\nstart = \"{}ps\"\n",
        dice.pick(&["packed", "spread"]),
        dice.from(1, 3),
        dice.pick(&[1, 2]),
        dice.below(BUSY.0),
    )
    .unwrap();
    if has_nics {
        writeln!(text, "nics = 2\nnic_wiring = \"{}\"", dice.pick(&wirings)).unwrap();
    }
    if per_host > 1 || has_nics {
        *text += "scale_up_rate = \"900Gbps\"\nscale_up_latency = \"700ns\"\n";
    }
    dice.maybe(text, 30, "chunk", &["\"1000B\"", "\"9KB\""]);
    dice.maybe(text, 30, "in_flight", &["1", "3"]);
    if dice.percent(30) {
        *text += "straggler_share = 0.3\nstraggler_excess = 2.0\n";
        dice.maybe(text, 50, "straggler_kind", &["\"fixed\"", "\"exponential\""]);
    }
    dice.maybe(text, 50, "compute", &["\"3us\"", "\"40us\""]);
    let op = dice.pick(&COLLECTIVES);
    let of_op: Vec<&str> =
        ALGORITHMS.iter().filter(|(_, ops)| ops.contains(&op)).map(|(name, _)| *name).collect();
    writeln!(text, "algorithm = \"{}\"\ncollective = \"{op}\"", dice.pick(&of_op)).unwrap();
    if op != "barrier" {
        writeln!(text, "size = \"{}B\"", size(dice, 90_000)).unwrap();
    }
    connections(dice, text);
}

/// How nodes of two NICs can hang at the leaves of `fabric`.
fn wirings(fabric: &Topology) -> Vec<&'static str> {
    let racks: Vec<u32> = (0..fabric.hosts()).map(|host| fabric.rack(HostId(host))).collect();
    let mut of_rack: BTreeMap<u32, usize> = BTreeMap::new();
    racks.iter().for_each(|&rack| *of_rack.entry(rack).or_default() += 1);
    let sizes: BTreeSet<usize> = of_rack.values().copied().collect();
    let rail = of_rack.len().is_multiple_of(2) && sizes.len() == 1;
    let leaf = racks.len().is_multiple_of(2) && racks.chunks(2).all(|pair| pair[0] == pair[1]);
    [(rail, "rail"), (leaf, "leaf")].iter().filter(|(can, _)| *can).map(|(_, name)| *name).collect()
}

const COLLECTIVES: [&str; 6] =
    ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "barrier"];

/// Algorithms, and the collectives that each is for.
const ALGORITHMS: [(&str, &[&str]); 6] = [
    ("nccl", &COLLECTIVES),
    ("ring", &["all-reduce", "all-gather", "reduce-scatter", "broadcast"]),
    ("tree", &["all-reduce", "broadcast"]),
    ("halving-doubling", &["all-reduce"]),
    ("hierarchical", &["all-reduce"]),
    ("direct", &["all-to-all", "all-gather", "reduce-scatter"]),
];

/// Messages in a file, which is written into `dir`.
fn file(dice: &mut Dice, text: &mut String, fabric: &Topology, (n, dir): (usize, &Path)) {
    let (ending, content) = match dice.percent(50) {
        true => ("cm", drawn::connection_matrix(dice, fabric.hosts(), BUSY)),
        false => ("csv", drawn::messages(dice, fabric.hosts(), BUSY)),
    };
    let name = format!("messages-{n}.{ending}");
    std::fs::write(dir.join(&name), content).unwrap();
    write!(text, "kind = \"file\"\nfile = \"{name}\"\n").unwrap();
}
