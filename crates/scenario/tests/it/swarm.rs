//! Any transport over any queue under any fault: whatever is drawn, no message is delivered twice,
//! every message is delivered or given up, and nothing hangs.
//!
//! Each scenario comes from a seed of its own. What does not hold fails with seed and scenario.
//! `TRIMLINE_SWARM=10000` draws ten thousand (`make swarm`), `TRIMLINE_SWARM_SEED=17` begins with
//! seed 17, `TRIMLINE_SWARM_SHOW=1` prints each scenario.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use fabric::Topology;
use metrics::FlowRow;
use trimline_scenario::{Options, Scenario, simulate};
use units::Time;

use crate::drawn::{self, Dice, is_tree, setting};

/// Traffic starts, and faults begin, before this.
const BUSY: Time = Time(300_000_000);

/// A transport: its name here, its table, the routing modes that it can have, the longest message
/// that it takes in one piece.
struct Kind {
    name: &'static str,
    table: String,
    modes: &'static [&'static str],
    /// The traffic classes of its packets.
    classes: Vec<u8>,
    longest: u64,
}

/// Who chooses paths: switches, and for some also senders, packet by packet.
const BY_SWITCHES: [&str; 3] = ["single", "random", "ecmp"];
const BY_ALL: [&str; 4] = ["single", "random", "ecmp", "spray"];

fn kind(name: &'static str, table: String) -> Kind {
    Kind { name, table, modes: &BY_SWITCHES, classes: vec![0], longest: u64::MAX }
}

/// Every kind of transport in turn, each with some of its variants.
fn transport(dice: &mut Dice, seed: u64, payload: u16) -> Kind {
    match seed % 9 {
        0 => Kind {
            modes: &["permute", "spray", "single", "random", "ecmp"],
            ..kind("ndp", drawn::ndp_transport(dice, payload))
        },
        1 | 2 => kind("tcp", tcp(dice, payload)),
        3 => kind("mptcp", drawn::mptcp_transport(dice, payload)),
        4 => Kind { modes: &BY_ALL, ..kind("phost", phost(payload)) },
        5 => {
            Kind { modes: &BY_ALL, classes: (0..8).collect(), ..kind("homa", homa(dice, payload)) }
        }
        6 | 7 => Kind { classes: vec![0, 7], ..kind("rdma", rdma(dice, payload)) },
        _ => {
            let program = dice.pick(&["ndp", "homa", "homa-tr"]);
            let classes = if program == "ndp" { vec![7] } else { (4..8).collect() };
            Kind { classes, longest: 38_912, ..kind("nic", nic(dice, program)) }
        }
    }
}

fn tcp(dice: &mut Dice, payload: u16) -> String {
    let rule = dice.pick(&["newreno", "bic", "htcp", "cubic", "dctcp", "d2tcp"]);
    let ecn = rule == "dctcp" || rule == "d2tcp" || dice.percent(30);
    let recovery = dice.pick(&["reno", "newreno", "sack", "sack"]);
    let preset = dice.pick(&["linux-datacenter", "ns2", "htsim", "linux-2.6"]);
    let mut text = format!(
        "\n[transport]\nkind = \"tcp\"\npreset = \"{preset}\"\nrule = \"{rule}\"\n\
         recovery = \"{recovery}\"\necn = {ecn}\nmss = \"{payload}B\"\noverhead = \"64B\"\n"
    );
    if dice.percent(60) {
        text +=
            "rto_initial = \"50us\"\nrto_min = \"20us\"\nrto_max = \"1ms\"\nrto_tick = \"1us\"\n";
    }
    dice.maybe(&mut text, 40, "delayed_ack", &["\"off\"", "\"3us\"", "\"20us\""]);
    text + &drawn::tcp_options(dice)
}

fn phost(payload: u16) -> String {
    format!("\n[transport]\nkind = \"phost\"\npreset = \"ndp-paper\"\npayload = \"{payload}B\"\n")
}

/// Homa as its paper has it, or refusing what switches trim.
fn homa(dice: &mut Dice, payload: u16) -> String {
    let workload = dice.pick(&["homa-w1", "homa-w3", "homa-w5"]);
    let unscheduled = dice.pick(&[1, 4, 7]);
    format!(
        "\n[transport]\nkind = \"homa\"\npreset = \"paper\"\npayload = \"{payload}B\"\n\
         workload = \"{workload}\"\nunscheduled_priorities = {unscheduled}\n"
    )
}

fn rdma(dice: &mut Dice, payload: u16) -> String {
    let rule = dice.pick(&[
        "rule = \"none\"\npreset = \"roce\"",
        "rule = \"timely\"\npreset = \"paper\"\nsegment = \"16KB\"",
        "rule = \"patched-timely\"\npreset = \"paper\"",
        "rule = \"dcqcn\"\npreset = \"paper\"",
        "rule = \"hpcc\"\npreset = \"paper\"\nrtt = \"20us\"\nflows = 4\noverhead = \"98B\"",
        "rule = \"swift\"\npreset = \"paper\"",
    ]);
    let mut text = format!("\n[transport]\nkind = \"rdma\"\n{rule}\npayload = \"{payload}B\"\n");
    dice.maybe(&mut text, 30, "operation", &["\"read\"", "\"write\""]);
    text
}

/// The NIC: its model, and its programs interpreted and compiled.
fn nic(dice: &mut Dice, program: &str) -> String {
    let mut text =
        format!("\n[transport]\nkind = \"nic\"\nprogram = \"{program}\"\npreset = \"firesim\"\n");
    dice.maybe(&mut text, 70, "backend", &["\"model\"", "\"interpreter\"", "\"rust\""]);
    text
}

/// A queue of any kind, for packets of `classes`.
fn queue(dice: &mut Dice, payload: u16, classes: &[u8]) -> String {
    let short = format!("\"{}B\"", 3 * u64::from(payload));
    let capacity = dice.pick(&["\"2 packets\"", "\"8 packets\"", "\"100 packets\"", &short]);
    let class = |n: &u8| {
        format!("[[queue.class]]\nclass = {n}\nkind = \"drop-tail\"\ncapacity = {capacity}\n")
    };
    let each: String = classes.iter().rev().map(class).collect();
    match dice.below(8) {
        0 | 1 => drawn::queue(dice, true, payload),
        2 => drawn::queue(dice, false, payload),
        3 => format!("\n[queue]\nkind = \"cut-payload\"\ncapacity = {capacity}\n"),
        4 => format!("\n[queue]\nkind = \"fair\"\n{each}"),
        5 => format!("\n[queue]\nkind = \"priority\"\n{each}"),
        6 if classes.len() == 4 => format!(
            "\n[queue]\nkind = \"priority\"\nfull = \"trim\"\ntrim_to = \"72B\"\n\
             header_class = \"next\"\n{each}"
        ),
        _ => drawn::lossless_queue(dice),
    }
}

/// Finite traffic: one to three tables.
fn traffic(dice: &mut Dice, fabric: &Topology, longest: u64) -> String {
    let hosts = u64::from(fabric.hosts());
    let mut text = String::new();
    for n in 0..dice.pick(&[1, 1, 2, 3]) {
        let size = dice.pick(&[1, 64, 999, 8_200, 21_525, 90_000, 400_000]).min(longest);
        let start = dice.below(BUSY.0 / 2);
        write!(text, "\n[[traffic]]\nname = \"t{n}\"\n").unwrap();
        match dice.below(5) {
            0 => write!(text, "kind = \"permutation\"\nsize = \"{size}B\"\nstart = \"{start}ps\"\n"),
            1 if hosts <= 16 => write!(text, "kind = \"all-to-all\"\nsize = \"{}B\"\n", size.min(20_000)),
            1 | 2 => write!(
                text,
                "kind = \"incast\"\nreceiver = {}\nsenders = {}\nsize = \"{size}B\"\nevery = \"100us\"\n\
                 until = \"{}ps\"\n",
                dice.below(hosts),
                dice.from(1, hosts - 1),
                BUSY.0,
            ),
            3 => write!(
                text,
                "kind = \"rpc\"\nrequest = \"{}B\"\nresponse = \"{size}B\"\noutstanding = {}\ngap = \"1us\"\n\
                 gap_kind = \"exponential\"\ndraw_server = \"every-call\"\nconnections = \"{}\"\ncalls = {}\n",
                dice.pick(&[1, 2_512]),
                dice.from(1, 3),
                dice.pick(&["persistent", "fresh"]),
                dice.from(1, 6),
            ),
            _ => write!(
                text,
                "kind = \"random\"\nsize = \"{size}B\"\nflows = {}\nstart_spread = \"{}ps\"\n",
                dice.from(1, 2 * hosts),
                BUSY.0 / 2,
            ),
        }
        .unwrap();
    }
    text
}

/// The text of a scenario.
fn draw(seed: u64) -> (&'static str, String) {
    let dice = &mut Dice::part(seed, 4);
    let shape = drawn::shape(dice);
    let fabric = drawn::fabric_of(&shape);
    let payload = dice.pick(&[1000, 1460, 4096, 8936]);
    let Kind { name, table, modes, classes, longest } = transport(dice, seed, payload);
    let mut text = format!("name = \"swarm {seed}\"\nseed = {seed}\n\n[topology]\n{shape}");
    text += &drawn::uneven(dice, &fabric);
    text += &queue(dice, payload, &classes);
    let mode = dice.pick(modes);
    let reroute_after = dice.pick(&["0", "1us", "33us"]);
    write!(text, "\n[routing]\nmode = \"{mode}\"\nreroute_after = \"{reroute_after}\"\n").unwrap();
    if is_tree(&fabric) && mode == "single" {
        dice.maybe(&mut text, 30, "path_encoding", &["\"source-route\"", "\"core-label\""]);
    }
    text += &table;
    text += &traffic(dice, &fabric, longest);
    text += "\n[measure]\nlimit = \"3000s\"\n";
    text += &drawn::faults(dice, &fabric, BUSY).0;
    (name, text)
}

/// What has become of the scenarios of one transport.
#[derive(Debug, Default)]
struct Seen {
    runs: u32,
    refused: u32,
    messages: u64,
    failed: u64,
    paused_for_ever: u32,
}

/// Run one scenario. What it breaks, if it breaks anything.
fn follow(scenario: &Scenario, seed: u64, seen: &mut Seen) -> Result<(), String> {
    let options = Options { threads: Some(1), check: seed.is_multiple_of(7), ..Options::default() };
    let run = simulate(scenario, &options, &mut |_| ()).map_err(|why| why.render(false))?;
    seen.runs += 1;
    seen.messages += run.flows.len() as u64;
    seen.failed += run.flows.iter().filter(|row| row.has_failed()).count() as u64;
    let paused = run.outcome.links.iter().any(|link| link.pfc.pauses > link.pfc.resumes);
    if paused || run.outcome.deadlock.is_some() {
        // Circles of pauses do not end, nor do those of a switch that died before it sent XON: a
        // pause without a time lasts until it is taken back.
        seen.paused_for_ever += 1;
        return Ok(());
    }
    let stuck: Vec<&FlowRow> = run.flows.iter().filter(|row| row.is_unfinished()).collect();
    match stuck.first() {
        None => Ok(()),
        Some(row) => Err(format!(
            "{} messages neither delivered nor given up when the run ended ({:?}), the first: {row:?}",
            stuck.len(),
            run.outcome.end
        )),
    }
}

#[test]
fn whatever_is_drawn_is_delivered_once_or_given_up() {
    const DRAWS: u64 = 500;
    let (draws, first) = (setting("TRIMLINE_SWARM", DRAWS), setting("TRIMLINE_SWARM_SEED", 1));
    let shows = std::env::var_os("TRIMLINE_SWARM_SHOW").is_some();
    let (mut seen, mut wrong) = (BTreeMap::<&str, Seen>::new(), Vec::new());
    for seed in first..first + draws {
        let (name, text) = draw(seed);
        if shows {
            println!("{text}");
        }
        let seen = seen.entry(name).or_default();
        match Scenario::parse("swarm.toml", &text, Path::new("."), &[]) {
            // What does not go together is refused by a message; the rest is run.
            Err(why) => {
                seen.refused += 1;
                if shows {
                    println!("{}", why.render(false));
                }
            }
            Ok(scenario) => {
                if let Err(why) = follow(&scenario, seed, seen) {
                    wrong.push(format!("seed {seed}, {name}: {why}\n{text}"));
                }
            }
        }
    }
    println!("{seen:#?}");
    assert!(wrong.is_empty(), "{} of {draws}\n{}", wrong.len(), wrong.join("\n\n"));
    if draws >= DRAWS {
        for (name, seen) in &seen {
            assert!(seen.runs >= 20 && seen.refused < seen.runs, "{name}: {seen:?}");
        }
    }
}
