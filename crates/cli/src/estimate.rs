//! `trimline estimate`: what runs will take on this machine, from a short part of each.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use metrics::OutputDir;
use scenario::{Calibrated, Diagnostic, Error, Options, Scenario, unwritable};
use serde::{Deserialize, Serialize};
use study::{PlannedPoint, Sweep};

use crate::progress::{self, Bar};
use crate::table::{number, printable, right};
use crate::{Ended, args, cores, html, own_program, peak_rss, say, say_json, warn};

/// What is estimated: runs that differ only in their seeds.
struct Asked {
    /// Of a point of a sweep, what to call it.
    label: Option<String>,
    file: PathBuf,
    edits: Vec<String>,
    jobs: usize,
}

impl From<PlannedPoint> for Asked {
    fn from(PlannedPoint { label, file, edits, jobs }: PlannedPoint) -> Self {
        Self { label: Some(label), file, edits, jobs }
    }
}

/// One scenario. The keys are part of the command-line contract; `null` is what only a run shows.
#[derive(Serialize, Deserialize)]
struct Estimated {
    scenario: String,
    /// How many runs of it there are, each of which takes so much: the seeds of a sweep.
    jobs: usize,
    hosts: u32,
    /// One way each.
    links: usize,
    messages: Option<f64>,
    packet_hops: Option<f64>,
    /// The most at once.
    memory_mb: Option<f64>,
    /// Of all of `trimline run`: reading, building, running, writing.
    wall_s: Option<f64>,
    /// The share of it that was run for this; 1: all of it, and the numbers are those of the run.
    share: Option<f64>,
    /// How long that took.
    part_wall_s: f64,
    /// How much simulated time that was.
    part_us: f64,
}

/// From a smaller part of a run than this an estimate may be several times wrong: the errors that
/// docs/results.md states are those of such parts.
const PART_MIN: f64 = 0.05;

/// `trimline estimate`. Several scenarios have a process each, so that memory is that of one.
pub(crate) fn estimate(args: &args::Estimate, progress: args::Progress) -> Ended {
    let asked = asked(args, progress)?;
    let all: Vec<Estimated> = match asked.as_slice() {
        [only] => vec![of_runs(only, args, progress)?],
        several => several.iter().map(|one| in_a_child(one, args)).collect::<Result<_, _>>()?,
    };
    if args.json {
        return say_json(&all);
    }
    say(table(&all))?;
    let is_whole = |e: &Estimated| e.share == Some(1.0);
    if all.iter().any(is_whole) {
        say("a run of which 100 % were run is not estimated")?;
    }
    if args.sweep {
        say(in_sum(&all))?;
    } else if args.files.iter().any(|file| Sweep::is_in(file).unwrap_or(false)) {
        say("each is one run: --sweep estimates the jobs of a `[sweep]`")?;
    }
    for small in all.iter().filter(|e| e.share.is_some_and(|share| share < PART_MIN)) {
        let percent = PART_MIN * 100.0;
        warn(&format!(
            "{}: less than {percent} % were run, so this may be several times wrong: a longer --for \
             says more",
            small.scenario
        ));
    }
    Ok(())
}

/// The scenarios, or the points of their sweeps.
fn asked(args: &args::Estimate, progress: args::Progress) -> Result<Vec<Asked>, Error> {
    let edits = args.edits.all();
    if !args.sweep {
        let alone = |file: &PathBuf| Asked {
            label: None,
            file: file.clone(),
            edits: edits.clone(),
            jobs: 1,
        };
        return Ok(args.files.iter().map(alone).collect());
    }
    let mut points = Vec::new();
    for file in &args.files {
        let sweep = Sweep::load(file, &edits, None)?;
        let plan = progress::plan(sweep.study(), false, progress)?;
        points.extend(plan.points().into_iter().map(Asked::from));
    }
    Ok(points)
}

/// Threads of each run, as `--threads` has them: jobs of a sweep have one.
fn threads(args: &args::Estimate) -> Option<u32> {
    if args.sweep { Some(1) } else { args.threads.number() }
}

fn of_runs(
    asked: &Asked,
    args: &args::Estimate,
    progress: args::Progress,
) -> Result<Estimated, Error> {
    let began = Instant::now();
    let mut bar = Bar::reading(progress, &asked.file.display().to_string());
    let scenario = Scenario::load_telling(&asked.file, &asked.edits, &|file, share| {
        bar.read(file, share);
    })?;
    if scenario.skips() {
        let error = "a part of a run does not say how much of the rest is skipped";
        return Err(Diagnostic::new(error).hint("`--set engine.skip=false`").into());
    }
    if scenario.is_calibrated() {
        let error = "a part of a sample does not say how long what follows takes";
        return Err(Diagnostic::new(error)
            .hint("leave `calibrate` out of [engine], with `level = \"packet\"`")
            .into());
    }
    let reading_s = began.elapsed().as_secs_f64();
    let options = Options { threads: threads(args), ..Options::default() };
    let dir = std::env::temp_dir().join(format!("trimline-estimate-{}", std::process::id()));
    let out = OutputDir::create(&dir).map_err(|e| unwritable(&e))?;
    bar.running(&scenario);
    let time = Duration::from_nanos(args.time.0 / 1_000);
    let mut update = |p: &scenario::Progress| bar.update(&scenario, p);
    let calibrated = scenario::calibrate(&scenario, &options, &out, time, &mut update)?;
    let page = Instant::now();
    html::of_run(out.staged())?;
    let others_s = reading_s + page.elapsed().as_secs_f64();
    Ok(Estimated::new(&scenario, &calibrated, others_s).of(asked))
}

impl Estimated {
    /// `others_s` is what reading and the page take, in seconds.
    fn new(scenario: &Scenario, calibrated: &Calibrated, others_s: f64) -> Self {
        let Calibrated { part_s, part_until, whole } = *calibrated;
        let topology = scenario.topology();
        let memory = |more: f64| Some((peak_rss()? + more) / 1e6);
        Self {
            scenario: scenario.name().to_owned(),
            jobs: 1,
            hosts: topology.hosts(),
            links: topology.links().len(),
            messages: whole.map(|whole| whole.messages.round()),
            packet_hops: whole.map(|whole| whole.packet_hops.round()),
            memory_mb: whole.and_then(|whole| memory(whole.more_memory)),
            wall_s: whole.map(|whole| whole.seconds + others_s),
            share: whole.map(|whole| whole.share),
            part_wall_s: part_s,
            part_us: part_until.as_us_f64(),
        }
    }

    /// The same, called and counted as `asked` has it.
    fn of(mut self, asked: &Asked) -> Self {
        self.jobs = asked.jobs;
        if let Some(label) = &asked.label {
            self.scenario.clone_from(label);
        }
        self
    }
}

/// The same in a process of its own, which says what is wrong.
fn in_a_child(asked: &Asked, args: &args::Estimate) -> Result<Estimated, Error> {
    let (file, program) = (&asked.file, own_program());
    let threads = threads(args).map_or("auto".to_owned(), |n| n.to_string());
    let mut child = Command::new(&program[0]);
    child.args(&program[1..]).args(["estimate", "--json", "--threads", &threads]);
    child.arg("--for").arg(args.time.to_string());
    child.args(asked.edits.iter().map(|edit| format!("--set={edit}"))).arg("--").arg(file);
    let failed = |what: String| Error::Run {
        what: format!("no estimate of {}: {what}", file.display()),
        hint: "try it alone".to_owned(),
    };
    let output = child.stderr(Stdio::inherit()).output().map_err(|e| failed(e.to_string()))?;
    match (output.status.success(), output.status.code()) {
        (true, _) => {}
        (false, Some(2)) => {
            let error = format!("{} cannot be estimated", file.display());
            return Err(Diagnostic::new(error).hint("what is wrong stands above").into());
        }
        (false, _) => return Err(failed(format!("its process ended with {}", output.status))),
    }
    let all: Vec<Estimated> =
        serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))?;
    let first = all.into_iter().next();
    Ok(first.ok_or_else(|| failed("its process said nothing".to_owned()))?.of(asked))
}

/// What the jobs of a sweep take together, as many at once as there are cores.
fn in_sum(all: &[Estimated]) -> String {
    let jobs: usize = all.iter().map(|e| e.jobs).sum();
    let seconds: Option<f64> = all.iter().map(|e| Some(e.wall_s? * e.jobs as f64)).sum();
    let longest = all.iter().filter_map(|e| e.wall_s).fold(0.0, f64::max);
    let seconds = number(seconds.map(|all| longest.max(all / f64::from(cores()))));
    format!("{jobs} jobs, {} at once: {seconds} s", cores())
}

/// A row per scenario.
fn table(all: &[Estimated]) -> String {
    let mut table = Table::new();
    let head = ["scenario", "runs", "hosts", "links", "messages", "packet-hops", "memory (MB)"];
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(head.into_iter().chain(["wall time (s)", "run for it"]));
    for e in all {
        let share = e.share.map_or("-".to_owned(), |share| format!("{:.3} %", share * 100.0));
        let counts = [e.messages, e.packet_hops].map(|n| n.map_or("-".to_owned(), count));
        let [messages, packet_hops] = counts;
        table.add_row([
            printable(&e.scenario),
            e.jobs.to_string(),
            e.hosts.to_string(),
            e.links.to_string(),
            messages,
            packet_hops,
            number(e.memory_mb),
            number(e.wall_s),
            share,
        ]);
    }
    right(table)
}

/// Three digits of an estimate are more than enough.
fn count(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2} G", n / 1e9),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n => format!("{n:.0}"),
    }
}
