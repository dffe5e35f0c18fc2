//! The invariants I1 to I12 of NDP (specs/ndp.md#10) over whole runs: every scenario with NDP that
//! ships, cut short, and drawn ones. The checks see packets only: [`testkit::ndp`] those of hosts
//! (I4 to I9, I11), [`ports`] those of switch ports (I1 to I3, I10); I12 is held against the
//! records of messages, beside what the fabric itself checks.
//!
//! `TRIMLINE_SWARM=1000` draws a thousand, `TRIMLINE_SWARM_SEED=17` begins with seed 17.

use crate::drawn;
mod ports;

use std::path::{Path, PathBuf};

use drawn::{draw, parse, setting};
use endpoint::{MessageRecord, Observer, Packet, PacketEvent, Routes, UNBOUNDED};
use fabric::{Node, Outcome, Topology};
use ports::Ports;
use queues::NdpSpec;
use testkit::ndp::{HostInvariants, Rules};
use trimline_scenario::{Options, Scenario, observe};
use units::{Dur, Rate, Time};

/// All checkers of one run.
struct Watch {
    topology: Topology,
    hosts: HostInvariants,
    ports: Option<Ports>,
    records: Vec<MessageRecord>,
}

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn message(&mut self, record: &MessageRecord) {
        self.records.push(*record);
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        if let Some(ports) = &mut self.ports {
            ports.packet(at, link, event, pkt);
        }
        match (event, self.topology.links()[link as usize].to) {
            (PacketEvent::Sent, _) => self.hosts.sent(at, pkt),
            (PacketEvent::Arrived, Node::Host(h)) => self.hosts.arrived(at, units::HostId(h), pkt),
            _ => {}
        }
    }
}

/// A key of the resolved scenario.
fn value<'t>(table: &'t toml::Table, section: &str, key: &str) -> &'t toml::Value {
    &table[section][key]
}

fn text<T: std::str::FromStr>(table: &toml::Table, section: &str, key: &str) -> T {
    let value = value(table, section, key);
    let text = value.as_str().unwrap_or_else(|| panic!("{section}.{key} = {value}"));
    text.parse().unwrap_or_else(|_| panic!("{section}.{key} = {value}"))
}

fn integer(table: &toml::Table, section: &str, key: &str) -> u64 {
    value(table, section, key).as_integer().unwrap() as u64
}

/// What the checks of hosts must know of a scenario.
fn rules(scenario: &Scenario) -> Rules {
    let (table, topology) = (scenario.resolved(), scenario.topology().clone());
    let time = |key| text::<Dur>(table, "transport", key);
    let number = |key| integer(table, "transport", key);
    let bytes = |key| text::<units::Bytes>(table, "transport", key).0;
    let keep = 100 - number("rto_jitter_percent");
    let rate = |h| topology.links().iter().find(|l| l.from == Node::Host(h)).unwrap().rate;
    let rates: Vec<Rate> = (0..topology.hosts()).map(rate).collect();
    let wire = value(table, "transport", "pull_interval").as_str() == Some("wire");
    let packet = bytes("payload") + bytes("header");
    let interval = |rate: &Rate| if wire { rate.serialise(packet) } else { time("pull_interval") };
    let whole = !table.contains_key("fault") && topology.links().iter().all(|link| link.up);
    let permuted = value(table, "routing", "mode").as_str() == Some("permute") && whole;
    let fair = value(table, "transport", "discipline").as_str() == Some("fair");
    let unlimited =
        number("max_rx_messages").min(number("time_wait_entries")) == u64::from(u32::MAX);
    Rules {
        initial_window: number("initial_window"),
        timeout_min: Dur(time("rto_min").0 / 100 * keep)
            .min(time("rto_initial"))
            .min(time("stall_timeout")),
        interval: rates.iter().map(interval).collect(),
        rate: rates.iter().map(|&rate| rate.min(lowest_rate(table))).collect(),
        answers_all: unlimited
            && number("control_queue") >= 1000
            && time("abort_after") >= Dur::from_ms(1000),
        pull_on_duplicate: value(table, "transport", "pull_on_duplicate").as_bool() == Some(true),
        fair: fair && !table["transport"].as_table().unwrap().contains_key("priority_message"),
        queued: table["host"].as_table().is_some_and(|host| host.contains_key("queue")),
        permuted: permuted.then(|| Box::new(move |src, dst| topology.paths(src, dst)) as Box<_>),
    }
}

/// The lowest that a fault sets a link to.
fn lowest_rate(table: &toml::Table) -> Rate {
    let faults = table.get("fault").and_then(toml::Value::as_array).into_iter().flatten();
    let rate = |fault: &toml::Value| fault.get("rate").and_then(toml::Value::as_str)?.parse().ok();
    faults.filter_map(rate).min().unwrap_or(Rate(u64::MAX))
}

/// The queue of every port, if it is NDP's and links keep their rates.
fn queue(table: &toml::Table) -> Option<NdpSpec> {
    let faults = table.get("fault").and_then(toml::Value::as_array);
    let simple =
        |fault: &toml::Value| fault.get("action").and_then(toml::Value::as_str) != Some("rate");
    let steady = faults.is_none_or(|faults| faults.iter().all(simple));
    let ndp = value(table, "queue", "kind").as_str() == Some("ndp");
    let weight = |key| u8::try_from(integer(table, "queue", key)).unwrap();
    (ndp && steady).then(|| NdpSpec {
        data_capacity: text(table, "queue", "capacity"),
        header_capacity: text(table, "queue", "header_capacity"),
        header_weight: weight("header_weight"),
        data_weight: weight("data_weight"),
        trim_arriving: value(table, "queue", "trim_arriving").as_float().unwrap(),
        trim_to: text::<units::Bytes>(table, "queue", "trim_to").0 as u16,
        bounce: value(table, "queue", "bounce").as_bool().unwrap(),
        ..NdpSpec::PAPER
    })
}

/// What was looked at, over all runs.
#[derive(Debug, Default)]
struct Seen {
    runs: u32,
    packets: u64,
    shares: u64,
    contested: u64,
    delivered: u64,
    trimmed: u64,
    bounced: u64,
    dropped: u64,
}

/// Run a scenario under all checks, which must all hold.
fn check(about: &str, scenario: &Scenario, seen: &mut Seen) {
    let queue = queue(scenario.resolved());
    let violations = violations(about, scenario, rules(scenario), queue, seen);
    assert!(violations.is_empty(), "{about}\n{violations:#?}");
}

/// Run a scenario and hold it against these rules: what is violated.
fn violations(
    about: &str,
    scenario: &Scenario,
    rules: Rules,
    queue: Option<NdpSpec>,
    seen: &mut Seen,
) -> Vec<String> {
    let topology = scenario.topology().clone();
    let mode = value(scenario.resolved(), "routing", "mode").as_str();
    let watch = Watch {
        hosts: HostInvariants::new(rules),
        ports: queue.map(|queue| Ports::new(topology.clone(), queue, mode == Some("random"))),
        topology,
        records: Vec::new(),
    };
    let options = Options { check: true, threads: Some(1), ..Options::default() };
    let (outcome, watch) = observe(scenario, &options, watch)
        .unwrap_or_else(|why| panic!("{about}\n{}", why.render(false)));
    i12_whole_and_once(about, &outcome, &watch.records);
    let (packets, shares) = watch.hosts.looked_at();
    let mut violations = watch.hosts.finish(outcome.now);
    if let Some(ports) = watch.ports {
        let (more, contested) = ports.finish(outcome.conservation.in_flight.packets);
        violations.extend(more);
        seen.contested += contested;
    }
    seen.runs += 1;
    seen.packets += packets;
    seen.shares += shares;
    seen.delivered += outcome.counters.delivered;
    seen.trimmed += outcome.counters.trimmed;
    seen.bounced += outcome.counters.bounced;
    seen.dropped += outcome.counters.dropped;
    violations
}

/// I12: a message is delivered if, and only if, each of its bytes was placed; the fabric itself
/// sees to it that none is placed twice. Nobody learns of a delivery before it.
fn i12_whole_and_once(about: &str, outcome: &Outcome, records: &[MessageRecord]) {
    let mut keys: Vec<_> = records.iter().map(|r| r.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), records.len(), "I12, a message ended twice: {about}");
    assert_eq!(records.len() as u64, outcome.counters.submitted, "I12, messages lost: {about}");
    for r in records {
        let whole = r.len != UNBOUNDED && r.placed == r.len;
        // An empty one has all its bytes from the beginning.
        assert!(
            r.delivered.is_some() == whole || r.len == 0 || r.placed == r.len,
            "I12 {r:?} {about}"
        );
        assert!(r.delivered.is_none() || whole, "I12 {r:?} {about}");
        assert!(r.acked.is_none() || r.acked >= r.delivered && r.delivered.is_some(), "I12 {r:?}");
    }
}

// ---------------------------------------------------------------------------- those that ship

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every scenario file below `folder`.
fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path);
        }
    }
}

/// A scenario in a smaller fabric and for a short time; `None` if it is not one of NDP alone, or
/// needs the hosts of a larger one.
fn shortened(path: &Path) -> Option<Scenario> {
    let text: toml::Table = std::fs::read_to_string(path).unwrap().parse().ok()?;
    if text.get("transport")?.get("kind")?.as_str()? != "ndp" {
        return None;
    }
    let mut edits = vec!["measure={to=\"1ms\", limit=\"2ms\"}".to_owned()];
    // Distances between PULLs are those that their host gives them.
    edits.extend(crate::EXACT.map(str::to_owned));
    edits.extend(["engine.level=packet", "engine.skip=false"].map(str::to_owned));
    // Of the shapes that may be large, sixteen hosts; the others are small.
    match text.get("topology")?.get("kind")?.as_str()? {
        "fat-tree" => edits.push("topology.k=4".to_owned()),
        "leaf-spine" => {
            let sizes = ["leaves=4", "spines=4", "hosts_per_leaf=4"];
            edits.extend(sizes.map(|e| format!("topology.{e}")));
        }
        _ => return Some(load(path, &edits)),
    }
    let traffic = text.get("traffic")?;
    let tables = traffic.as_array().cloned().unwrap_or_else(|| vec![traffic.clone()]);
    for (i, table) in tables.iter().enumerate() {
        if ["hosts", "ranks", "data_parallel"].iter().any(|key| table.get(key).is_some()) {
            return None;
        }
        // Hosts named by number are those of a larger fabric.
        let chosen = table.get("sources").is_some();
        if chosen {
            edits.push(format!("traffic.{i}.sources=\"4-15\""));
        }
        if table.get("destinations").is_some() {
            edits.push(format!("traffic.{i}.destinations=\"0-3\""));
        }
        if table.get("senders").is_some() {
            edits.push(format!("traffic.{i}.senders={}", if chosen { 12 } else { 15 }));
        }
        if table.get("receiver").is_some() {
            edits.push(format!("traffic.{i}.receiver=3"));
        }
        if table.get("source").is_some() {
            edits.push(format!("traffic.{i}.source={}", 4 + i % 12));
            edits.push(format!("traffic.{i}.destination=3"));
        }
    }
    Some(load(path, &edits))
}

fn load(path: &Path, edits: &[String]) -> Scenario {
    Scenario::load(path, edits).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

#[test]
fn scenarios_that_ship_keep_the_invariants() {
    let mut found = Vec::new();
    scenarios(&root().join("scenarios"), &mut found);
    scenarios(&root().join("studies"), &mut found);
    found.sort();
    let mut seen = Seen::default();
    for path in found {
        if let Some(scenario) = shortened(&path) {
            check(&path.display().to_string(), &scenario, &mut seen);
        }
    }
    println!("{seen:#?}");
    assert!(seen.runs >= 8 && seen.packets > 100_000, "{seen:?}");
    assert!(seen.contested > 1_000 && seen.trimmed > 1_000 && seen.shares > 3, "{seen:?}");
}

// ---------------------------------------------------------------------------- drawn ones

#[test]
fn drawn_scenarios_keep_the_invariants() {
    const DRAWS: u64 = 60;
    let (draws, first) = (setting("TRIMLINE_SWARM", DRAWS), setting("TRIMLINE_SWARM_SEED", 1));
    println!("{draws} scenarios, from seed {first}");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ndp_invariants");
    std::fs::create_dir_all(&dir).unwrap();
    let mut seen = Seen::default();
    for seed in first..first + draws {
        let drawn = draw(seed);
        if !drawn.ndp {
            continue;
        }
        if let Some((name, text)) = &drawn.file {
            std::fs::write(dir.join(name), text).unwrap();
        }
        let text = format!("host = {{ clock_ppm = 0, send_jitter = \"0\" }}\n{}", drawn.text);
        check(&format!("seed {seed}:\n{text}"), &parse(&text, &dir), &mut seen);
    }
    println!("{seen:#?}");
    if draws >= DRAWS {
        let Seen { runs, packets, contested, .. } = seen;
        assert!(runs >= 20 && packets > 50_000 && contested > 1_000, "{seen:?}");
        assert!(seen.trimmed > 0 && seen.bounced > 0 && seen.dropped > 0, "{seen:?}");
    }
}

// ---------------------------------------------------------------------------- the checks
// themselves

/// Held against rules that it was not run by, a run breaks them: each check can fail.
#[test]
fn a_run_by_other_rules_is_found_out() {
    let sets = ["topology.k=4", "traffic.senders=15", "traffic.size=300KB"];
    let sets: Vec<String> = sets.iter().chain(&crate::EXACT).map(ToString::to_string).collect();
    let path = root().join("scenarios/ndp_incast_100x135KB.toml");
    let scenario = Scenario::load(&path, &sets).unwrap();
    let right = || rules(&scenario);
    let ports = queue(scenario.resolved()).unwrap();
    let found = |id: &str, rules: Rules, ports: NdpSpec| {
        let all = violations(id, &scenario, rules, Some(ports), &mut Seen::default());
        let own = all.iter().any(|v| v.starts_with(&format!("{id} ")));
        assert!(own, "{id} was not found: {all:#?}");
    };
    let tight = queues::Capacity::Bytes(50_000);
    found("I1", right(), NdpSpec { data_capacity: tight, ..ports });
    found("I2", right(), NdpSpec { header_weight: 11, ..ports });
    found("I10", right(), NdpSpec { header_weight: 1, ..ports });
    found("I5", Rules { initial_window: 29, ..right() }, ports);
    let slower = right().interval.iter().map(|t| Dur(t.0 + 1)).collect();
    found("I6", Rules { interval: slower, ..right() }, ports);
    found("I7", Rules { permuted: Some(Box::new(|_, _| 5)), ..right() }, ports);
    let prio = [
        "transport.discipline=prio",
        "transport.priority_message={host=1, message=0}",
        "traffic.size=1500KB",
    ];
    let exact = crate::EXACT.map(str::to_owned);
    let sets = [&sets[..2], &prio.map(str::to_owned), &exact].concat();
    let scenario = Scenario::load(&path, &sets).unwrap();
    let fair = Rules { fair: true, ..rules(&scenario) };
    let unfair = violations("I11", &scenario, fair, Some(ports), &mut Seen::default());
    assert!(unfair.iter().all(|v| v.starts_with("I11 ")) && !unfair.is_empty(), "{unfair:#?}");
}
