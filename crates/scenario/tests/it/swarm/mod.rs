//! Any transports over any queue with any traffic under any fault: whatever is drawn, no message is
//! delivered twice, every message is delivered or given up, and nothing hangs.
//!
//! Each scenario comes from a seed of its own. What does not hold fails with seed and scenario.
//! `TRIMLINE_SWARM=10000` draws ten thousand (`make swarm`), `TRIMLINE_SWARM_SEED=17` begins with
//! seed 17, `TRIMLINE_SWARM_SHOW=1` prints each scenario.

mod coverage;
mod queues;
mod traffic;
mod transports;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use trimline_scenario::{Options, Scenario, Simulated, list, simulate};
use units::Time;

use self::transports::Carrier;
use crate::drawn::{self, Dice, is_tree, setting};

/// Traffic starts, and faults begin, before this.
const BUSY: Time = Time(300_000_000);

/// When tables end that would go on, or for too long.
const STOP: Time = Time(2 * BUSY.0);

/// Names of a list.
fn names(list: Vec<(&'static str, String)>) -> Vec<&'static str> {
    list.into_iter().map(|(name, _)| name).collect()
}

/// Kinds of traffic: what a list of workloads has beside distributions.
fn kinds_of_traffic() -> Vec<&'static str> {
    let distributions: Vec<&str> = workload::SizeDist::names().collect();
    let mut names = names(list::workloads());
    names.retain(|name| !distributions.contains(name));
    names
}

/// One transport, or two or three. Every kind in turn is the first; those with rules come oftener.
fn carriers(dice: &mut Dice, seed: u64, payload: u16) -> Vec<Carrier> {
    let kinds = names(list::transports());
    let firsts = [&kinds[..], &["tcp", "tcp", "rdma", "rdma", "nic"]].concat();
    let first = firsts[seed as usize % firsts.len()];
    let mut all = vec![transports::transport(dice, first, payload)];
    for _ in 0..dice.pick(&[0, 0, 0, 1, 2]) {
        let kind = dice.pick(&kinds);
        let another = transports::transport(dice, kind, payload);
        if all[0].parts.is_empty() && another.parts.is_empty() {
            all.push(another);
        }
    }
    all
}

/// The text of a scenario, whose files are in `dir`, and the kinds of its transports.
pub(crate) fn draw(seed: u64, dir: &Path) -> (String, String) {
    let dice = &mut Dice::part(seed, 4);
    let mut shape = drawn::shape(dice);
    let payload = dice.pick(&[1000, 1460, 4096, 8936]);
    let carriers = carriers(dice, seed, payload);
    let telemetry = carriers.iter().any(|carrier| carrier.telemetry);
    if telemetry {
        shape = known_rates(&shape);
    }
    let fabric = drawn::fabric_of(&shape);
    let mut text = format!("name = \"swarm {seed}\"\nseed = {seed}\n\n[topology]\n{shape}");
    let uneven = drawn::uneven(dice, &fabric);
    text += &if telemetry { known_rates(&uneven) } else { uneven };
    let mut classes: Vec<u8> =
        carriers.iter().flat_map(|carrier| carrier.classes.clone()).collect();
    classes.sort_unstable();
    classes.dedup();
    let queue = dice.pick(&names(list::queues()));
    text += &queues::queue(dice, queue, payload, &classes);
    if dice.percent(15) {
        let hosts = ["queue = \"20 packets\"", "stack = { median = \"2us\", sigma = 0.5 }"];
        writeln!(text, "\n[host]\n{}", dice.pick(&hosts)).unwrap();
    }
    let modes: Vec<&str> = carriers.iter().flat_map(|carrier| carrier.modes).copied().collect();
    let mode = dice.pick(&modes);
    let reroute_after = dice.pick(&["0", "1us", "33us"]);
    write!(text, "\n[routing]\nmode = \"{mode}\"\nreroute_after = \"{reroute_after}\"\n").unwrap();
    if is_tree(&fabric) && !["random", "ecmp"].contains(&mode) {
        let encodings =
            ["computed", "source-route", "core-label", "core-address"].map(|e| format!("\"{e}\""));
        dice.maybe(&mut text, 60, "path_encoding", &encodings.each_ref().map(String::as_str));
    }
    for (n, carrier) in carriers.iter().enumerate() {
        text += &match carriers.len() {
            1 => carrier.table.clone(),
            _ => carrier
                .table
                .replace("[transport]\n", &format!("[[transport]]\nname = \"by{n}\"\n")),
        };
    }
    for n in 0..carriers.len().max(dice.pick(&[1, 1, 2, 3])) {
        let carrier = &carriers[n % carriers.len()];
        let name = match (carriers.len(), carrier.parts) {
            (1, []) => None,
            (1, parts) => Some(dice.pick(parts).to_owned()),
            _ => Some(format!("by{}", n % carriers.len())),
        };
        let kind = dice.pick(&kinds_of_traffic());
        text += &traffic::table(dice, kind, &fabric, (carrier, name.as_deref()), (n, dir));
    }
    // Messages of a job wait for each other, and each for timeouts where packets are lost for good.
    let limit = if text.contains("\"job\"") { 30_000 } else { 3_000 };
    write!(text, "\n[measure]\nlimit = \"{limit}s\"\n").unwrap();
    if text.contains("\"closed-loop\"") || carriers.iter().any(|carrier| carrier.endless) {
        writeln!(text, "to = \"{}ps\"", STOP.0).unwrap();
    }
    text += &drawn::faults(dice, &fabric, BUSY).0;
    if text.contains("\"job\"") && dice.percent(50) {
        let at = dice.below(BUSY.0);
        let action = dice.pick(&["\"slow\"\nfactor = 3", "\"slow\"\nfactor = 40", "\"pause\""]);
        write!(text, "[[fault]]\nat = \"{at}ps\"\naction = {action}\nhost = 0\n").unwrap();
        if action == "\"pause\"" || dice.percent(50) {
            writeln!(text, "until = \"{}ps\"", at + dice.from(1, BUSY.0)).unwrap();
        }
    }
    let kinds: Vec<&str> = carriers.iter().map(|carrier| carrier.kind).collect();
    (if kinds.len() > 1 { "several".to_owned() } else { kinds[0].to_owned() }, text)
}

/// The same with rates that telemetry has numbers for.
fn known_rates(text: &str) -> String {
    let known = [("9.7G", "10G"), ("7.77G", "40G"), ("\"3G", "\"25G"), ("\"1G", "\"50G")];
    known.iter().fold(text.to_owned(), |text, (odd, known)| text.replace(odd, known))
}

/// What a scenario came to.
enum Came {
    /// What does not go together is refused by a message.
    Refused(String),
    Ran(Ran),
    Wrong(String),
}

struct Ran {
    messages: u64,
    failed: u64,
    paused_for_ever: bool,
}

/// One scenario of the swarm.
struct Drawn {
    seed: u64,
    kind: String,
    text: String,
    came: Came,
    events: u64,
    took_s: f64,
}

/// Draw a scenario and run it.
fn follow(seed: u64) -> Drawn {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let (kind, text) = draw(seed, dir.path());
    let mut events = 0;
    let came = run_text(&text, dir.path(), seed, &mut events).unwrap_or_else(|Hangs(now)| {
        // Pauses that stand in a circle are renewed for ever beside senders that never give up.
        let ends = text.replace("limit = \"3000s\"", &format!("limit = \"{}ps\"", now.0 / 2));
        match run_text(&ends, dir.path(), seed, &mut 0) {
            Ok(Came::Ran(ran)) if ran.paused_for_ever => Came::Ran(ran),
            _ => Came::Wrong(format!("hangs: it is {now}")),
        }
    });
    Drawn { seed, kind, text, came, events, took_s: began.elapsed().as_secs_f64() }
}

/// Run a scenario whose files are in `dir`.
fn run_text(text: &str, dir: &Path, seed: u64, events: &mut u64) -> Result<Came, Hangs> {
    let scenario = match Scenario::parse("swarm.toml", text, dir, &[]) {
        Ok(scenario) => scenario,
        Err(why) => return Ok(Came::Refused(why.render(false))),
    };
    catch_unwind(AssertUnwindSafe(|| run(&scenario, seed, events))).or_else(|panic| {
        let hangs = panic.downcast::<Hangs>().map(|hangs| *hangs);
        hangs.map_or_else(|panic| Ok(Came::Wrong(format!("panicked: {}", words(&*panic)))), Err)
    })
}

/// What a panic says.
fn words(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("")
}

/// A run that goes on and on, by then.
struct Hangs(Time);

fn run(scenario: &Scenario, seed: u64, events: &mut u64) -> Came {
    // Five hundred times what most have.
    const EVENTS_MAX: u64 = 30_000_000;
    let options = Options { threads: Some(1), check: seed.is_multiple_of(7), ..Options::default() };
    let mut steps = 0;
    let run = simulate(scenario, &options, &mut |progress| {
        (*events, steps) = (progress.events, steps + 1);
        if *events.max(&mut steps) >= EVENTS_MAX {
            panic_any(Hangs(progress.now));
        }
    });
    match run {
        Ok(run) => judge(&run, scenario.measure().to.unwrap_or(Time::NEVER)),
        Err(why) => Came::Wrong(why.render(false)),
    }
}

/// Whether every message of a run is over that was submitted before `to`.
fn judge(run: &Simulated, to: Time) -> Came {
    let stuck = || run.flows.iter().filter(|row| row.is_unfinished() && row.start < to);
    let paused = run.outcome.links.iter().any(|link| link.pfc.pauses > link.pfc.resumes);
    // Circles of pauses do not end. Nor does a pause without a time whose resume was lost.
    let paused_for_ever = paused || run.outcome.deadlock.is_some();
    match stuck().next().filter(|_| !paused_for_ever) {
        None => Came::Ran(Ran {
            messages: run.flows.len() as u64,
            failed: run.flows.iter().filter(|row| row.has_failed()).count() as u64,
            paused_for_ever,
        }),
        Some(row) => Came::Wrong(format!(
            "{} messages neither delivered nor given up when the run ended ({:?} at {}), the first: \
             {row:?}",
            stuck().count(),
            run.outcome.end,
            run.outcome.now,
        )),
    }
}

/// What has become of the scenarios of one transport.
#[derive(Debug, Default)]
struct Seen {
    runs: u32,
    refused: u32,
    messages: u64,
    failed: u64,
    paused_for_ever: u32,
    wrong: u32,
}

/// Draw so many scenarios from seed `first` on, and say how far it is.
fn swarm(first: u64, draws: u64) -> Vec<Drawn> {
    let (done, began) = (AtomicU64::new(0), Instant::now());
    let shows = std::env::var_os("TRIMLINE_SWARM_SHOW").is_some();
    let one = |seed| {
        let drawn = follow(seed);
        if shows {
            let refused = if let Came::Refused(why) = &drawn.came { why } else { "" };
            println!("{}\n{refused}", drawn.text);
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(500) {
            println!("{done} of {draws} scenarios, {:.0} s", began.elapsed().as_secs_f64());
        }
        drawn
    };
    (first..first + draws).into_par_iter().map(one).collect()
}

#[test]
fn whatever_is_drawn_is_delivered_once_or_given_up() {
    const DRAWS: u64 = 700;
    let (draws, first) = (setting("TRIMLINE_SWARM", DRAWS), setting("TRIMLINE_SWARM_SEED", 1));
    let all = swarm(first, draws);
    let (mut seen, mut wrong) = (BTreeMap::<&str, Seen>::new(), Vec::new());
    for Drawn { seed, kind, text, came, .. } in &all {
        let seen = seen.entry(kind).or_default();
        match came {
            Came::Refused(_) => seen.refused += 1,
            Came::Ran(ran) => {
                seen.runs += 1;
                seen.messages += ran.messages;
                seen.failed += ran.failed;
                seen.paused_for_ever += u32::from(ran.paused_for_ever);
            }
            Came::Wrong(why) => {
                seen.wrong += 1;
                wrong.push(format!("seed {seed}, {kind}: {why}\n{text}"));
            }
        }
    }
    println!("{seen:#?}");
    let mut longest: Vec<&Drawn> = all.iter().collect();
    longest.sort_by(|a, b| b.took_s.total_cmp(&a.took_s));
    println!("{:.0} s together; the longest:", all.iter().map(|drawn| drawn.took_s).sum::<f64>());
    for Drawn { seed, kind, events, took_s, .. } in longest.iter().take(10) {
        println!("  seed {seed}, {kind}: {took_s:.2} s, {events} events");
    }
    assert!(wrong.is_empty(), "{} of {draws}\n{}", wrong.len(), wrong.join("\n\n"));
    if draws >= DRAWS {
        for (name, seen) in &seen {
            assert!(seen.runs >= 20 && seen.refused < seen.runs / 4, "{name}: {seen:?}");
        }
        let ran = all.iter().filter(|drawn| !matches!(drawn.came, Came::Refused(_)));
        coverage::check(ran.map(|drawn| drawn.text.as_str()));
    }
}
