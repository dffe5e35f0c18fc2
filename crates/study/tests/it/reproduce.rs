//! A tiny study from its files to its verdicts.

use std::collections::BTreeSet;
use std::path::Path;

use metrics::{FigureRow, Form, Origin, Plot, Shows, StudyResults, Verdict};
use tempfile::TempDir;
use trimline_study::{Engine, Options, Plan, Seeding, Study};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny");
const STEP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/step");
const DRAWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drawn");

fn run(what: &str, form: Form, threads: u32) -> StudyResults {
    run_seeds(what, form, threads, false)
}

fn run_seeds(what: &str, form: Form, threads: u32, all_seeds: bool) -> StudyResults {
    let study = Study::load(what).unwrap().in_form(form);
    let plan = Plan::new(&study, false).unwrap();
    let seeds = if all_seeds { Seeding::All } else { Seeding::Verdicts };
    results(&plan, seeds, threads)
}

fn results(plan: &Plan<'_>, seeds: Seeding, threads: u32) -> StudyResults {
    let options = Options { seeds, engine: Engine::Threads(threads) };
    let outcome = trimline_study::run(plan, &options, &|_| ()).unwrap();
    outcome.results("trimline reproduce tiny".to_owned())
}

/// With clocks and jitter two flows share alike with every seed, which two of three tell. Where all
/// values are equal, or one is missing to the end, every seed is run.
#[test]
fn a_run_stops_when_its_rows_are_decided() {
    let seeds = |results: &StudyResults, of: &str| {
        results.figures[0].runs.iter().filter(|run| run.run == of).count()
    };
    let of = |study: &str, run: &str| {
        let (some, all) =
            (run_seeds(study, Form::Full, 2, false), run_seeds(study, Form::Full, 2, true));
        let verdicts = |results: &StudyResults| {
            results.rows().map(|row| row.result.verdict).collect::<Vec<Verdict>>()
        };
        assert_eq!(verdicts(&some), verdicts(&all));
        (seeds(&some, run), seeds(&all, run))
    };
    assert_eq!(of(STEP, "apart"), (2, 3));
    assert_eq!(of(TINY, "large n=8"), (3, 3));
    assert_eq!(of(TINY, "ndp n=8"), (3, 3));
}

/// Two flows in step: ties decide what each gets. With clocks and jitter they share.
#[test]
fn what_hangs_on_phases_is_named() {
    let study = Study::load(STEP).unwrap();
    let results = results(&Plan::new(&study, true).unwrap(), Seeding::All, 2);
    let on: Vec<&str> = results.on_phases.iter().map(|on| on.what.as_str()).collect();
    assert_eq!(on, ["in step"], "{:?}", results.on_phases);
    let commands = results.figures[0].runs.iter().map(|run| &run.command);
    let fixed = commands.filter(|command| command.contains("host.phase_seed=1")).count();
    assert_eq!(fixed, 6, "all seeds of a run have the phases of the first");
}

/// Without what a clock measured.
fn timeless(mut results: StudyResults) -> StudyResults {
    results.figures.iter_mut().flat_map(|f| &mut f.runs).for_each(|run| run.wall_s = 0.0);
    results
}

#[test]
fn every_row_has_its_verdict() {
    let results = run(TINY, Form::Full, 2);
    let rows: Vec<(&str, Verdict)> =
        results.rows().map(|row| (row.result.row.as_str(), row.result.verdict)).collect();
    let expected = [
        ("last n=1", Verdict::InBand),
        ("last n=4", Verdict::InBand),
        ("last n=8", Verdict::InBand),
        ("ratio", Verdict::Holds),
        ("known to differ", Verdict::CauseTested),
        ("cause refuted", Verdict::NotReproduced),
        ("without a value", Verdict::NotReproduced),
        ("first beyond 200 us", Verdict::Holds),
        ("first beyond a second", Verdict::DoesNotHold),
        ("first beyond 200 us over that of large", Verdict::Holds),
        ("not plotted n=8", Verdict::Holds),
        ("contradicted", Verdict::InBand),
    ];
    assert_eq!(rows, expected);
    let row = |i: usize| results.rows().nth(i).unwrap();
    assert!(row(2).interval.is_some(), "three seeds");
    assert!(row(4).result.evidence.ends_with("tiny/fig1/notes.md#trimmed-packets"));
    let command = &row(2).result.evidence;
    assert!(command.ends_with("incast.toml --set traffic.senders=8 --seed 1"), "{command}");
    let experiment = row(4).experiment.as_ref().unwrap();
    assert_eq!((experiment.run.as_str(), experiment.measured), ("single", Some(0.0)));
    assert!(!row(5).experiment.as_ref().unwrap().confirms());
    assert_eq!(row(6).result.measured, None, "an experiment does not excuse a missing value");
    assert_eq!(row(8).result.target, None, "a bound alone");
    let (target, source) = (row(11).result.target, row(11).result.source.as_str());
    assert_eq!((target, source), (Some(590.0), "a figure; contradicted by 100: a text"));
    assert!(row(4).headline && !row(5).headline);
    let score = results.score();
    assert_eq!((score.in_band, score.published(), score.holds, score.own()), (4, 7, 3, 4));
    let problem = row(6).problem.as_deref();
    assert_eq!(problem, Some("ndp, seed 1: `flow_goodput_gbps.min` has no value"));
    assert_eq!((row(7).result.measured, row(7).interval), (Some(4.0), Some(0.0)));
    assert_eq!(row(8).problem.as_deref(), Some("ndp: never below -1000000"));
}

/// Two flows whose ties a seed draws: the published draw is among ten, or beyond all of them. If
/// the ten are too far apart for its band, they say nothing.
#[test]
fn a_single_published_run_is_looked_for_among_seeds() {
    let results = run(DRAWN, Form::Full, 2);
    let rows: Vec<&FigureRow> = results.rows().collect();
    let verdicts = rows.iter().map(|row| row.result.verdict);
    let expected = [Verdict::CauseTested, Verdict::NotReproduced, Verdict::NotReproduced];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
    for row in rows {
        let scatter = row.experiment.as_ref().unwrap();
        assert_eq!((scatter.shows, scatter.measured), (Shows::Scatter, row.result.target));
        assert!(scatter.low < scatter.high && scatter.high < Some(1.0), "{scatter:?}");
    }
    let ran = results.figures[0].runs.iter().filter(|run| run.run == "ten").count();
    assert_eq!(ran, 10, "the range is that of all");
}

#[test]
fn curves_are_measured_beside_what_is_published() {
    let results = run(TINY, Form::Full, 2);
    let [last, completion, dots, ..] = results.figures[0].curves.as_slice() else {
        panic!("three curves")
    };
    assert_eq!((completion.label.as_str(), last.label.as_str()), ("completion", "last"));
    assert!(results.figures[0].curves.iter().all(|curve| curve.label != "not plotted"));
    let xs: Vec<f64> = last.measured.iter().map(|point| point.x).collect();
    assert_eq!((xs, last.published.len()), (vec![1.0, 4.0, 8.0], 3));
    let end = completion.measured.last().unwrap();
    let slowest = results.figures[0].rows[2].result.measured.unwrap();
    assert!(end.y == 1.0 && end.x >= slowest, "{end:?}: the slowest of all seeds");
    assert_eq!((dots.drawn, dots.measured.len()), (Plot::Dots, 8), "one per message, of one seed");
    assert!(dots.measured.iter().all(|dot| dot.x == 0.0 && dot.y <= end.x), "all begin at once");
}

#[test]
fn points_without_a_value_are_named() {
    let results = run(TINY, Form::Full, 2);
    let last = results.figures[0].curves.last().unwrap();
    assert_eq!(last.label, "without values");
    assert_eq!(last.measured, []);
    let why = "ndp, seed 1: `flow_goodput_gbps.min` has no value".to_owned();
    assert_eq!(last.missing, [1.0, 4.0, 8.0].map(|n| (n, why.clone())));
}

#[test]
fn threads_change_nothing() {
    let one = timeless(run(TINY, Form::Full, 1));
    assert_eq!(timeless(run(TINY, Form::Full, 3)), one);
    let all = run_seeds(TINY, Form::Full, 1, true);
    assert_eq!(all.figures[0].runs.len(), 18, "every run, with each seed");
}

#[test]
fn equal_runs_are_run_once_and_shown_wherever_they_are_asked_for() {
    let study = Study::load(TINY).unwrap();
    assert_eq!(
        Plan::new(&study, false).unwrap().runs(),
        12,
        "six of the eighteen are others again"
    );
    let results = run(TINY, Form::Full, 2);
    let of = |name: &str| {
        let runs = results.figures[0].runs.iter().filter(move |run| run.run == name);
        runs.map(|run| (run.seed, run.digest.clone(), run.packet_hops)).collect::<Vec<_>>()
    };
    assert_eq!(of("again").len(), 3);
    assert_eq!(of("again"), of("ndp n=8"));
}

#[test]
fn the_quick_form_is_a_part() {
    // Without the curve that shows the experiment, only the cause asks for it.
    let curve = "run = \"single\"\nby_size";
    let dir = changed(|figure| figure.replacen(curve, "run = \"again\"\nby_size", 1));
    let results = run(&format!("{}/fig1", dir.path().display()), Form::Quick, 2);
    assert_eq!(results.figures[0].runs.len(), 2, "one point, one seed, and the experiment");
    let rows: Vec<&str> = results.rows().map(|row| row.result.row.as_str()).collect();
    let expected = [
        "last n=8",
        "known to differ",
        "cause refuted",
        "without a value",
        "not plotted n=8",
        "contradicted",
    ];
    assert_eq!(rows, expected);
    assert_eq!(results.left_out, 6, "an onset takes the whole axis");
    let tested = results.rows().find(|row| row.result.row == "known to differ").unwrap();
    assert_eq!(tested.result.verdict, Verdict::CauseTested, "its run comes after the others");
}

/// A copy of the tiny study with its figure changed by `edit`.
fn changed(edit: impl Fn(&str) -> String) -> TempDir {
    let tiny = Path::new(TINY);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("fig1")).unwrap();
    for file in ["study.toml", "fig1/incast.toml", "fig1/notes.md"] {
        std::fs::copy(tiny.join(file), dir.path().join(file)).unwrap();
    }
    let figure = std::fs::read_to_string(tiny.join("fig1/figure.toml")).unwrap();
    std::fs::write(dir.path().join("fig1/figure.toml"), edit(&figure)).unwrap();
    dir
}

/// The figure with experiments that no other run is as well.
fn apart(figure: &str) -> String {
    let single = figure.replace("senders=1\"", "senders=1\", \"traffic.size=180KB\"");
    single.replace("senders=8\"", "senders=7\"")
}

/// Published rows, each of which reads a run that no other row reads, by another way.
const READERS: &str = r#"
    [[run]]
    id = "by_name"
    scenario = "incast.toml"
    seeds = [1, 2, 3]
    set = ["traffic.senders=2"]
    [[run]]
    id = "by_distance"
    scenario = "incast.toml"
    seeds = [1, 2, 3]
    set = ["traffic.senders=3"]
    [[run]]
    id = "by_place"
    scenario = "incast.toml"
    seeds = [1, 2, 3]
    sweep = { n = [2, 5] }
    set = ["traffic.senders={n}", "traffic.size=90KB"]
    [[row]]
    id = "over another"
    origin = "published"
    run = "again"
    metric = "last_completion_us / by_name::last_completion_us"
    unit = ""
    low = 1
    source = "nobody"
    why = "more senders"
    [[row]]
    id = "from another"
    origin = "published"
    run = "again"
    metric = "ks.by_distance.fct_us"
    unit = ""
    low = 0.1
    source = "nobody"
    why = "more senders"
    [[row]]
    id = "further than another"
    origin = "published"
    run = "ndp"
    onset = { along = "n", below = -200, over = "by_place" }
    metric = "-last_completion_us"
    unit = ""
    low = 0.5
    source = "nobody"
    why = "other sizes"
"#;

/// The names of runs that were run, sorted.
fn runs(results: &StudyResults) -> Vec<&str> {
    let mut runs: Vec<&str> = results.figures[0].runs.iter().map(|r| r.run.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    runs
}

/// A row of which a run were left out would have another value, interval, experiment or verdict:
/// they read runs at their own point, by name, along an axis and by their causes.
#[test]
fn published_rows_are_the_same_without_the_others() {
    let published = |results: &StudyResults| {
        let rows = results.rows().filter(|row| row.result.origin == Origin::Published);
        rows.cloned().collect::<Vec<FigureRow>>()
    };
    let dir = changed(|figure| apart(figure) + READERS);
    let dir = dir.path().to_str().unwrap();
    for all_seeds in [false, true] {
        let whole = run_seeds(dir, Form::Full, 2, all_seeds);
        let part = run_seeds(dir, Form::Published, 2, all_seeds);
        assert_eq!(published(&part), published(&whole));
        assert_eq!((part.form, part.rows().count(), part.left_out), (Form::Published, 10, 5));
        let left = |run: &&str| !runs(&part).contains(run);
        let left: Vec<&str> = runs(&whole).into_iter().filter(left).collect();
        assert_eq!(left, ["large n=8"], "for rows of our own");
        assert!(
            part.rows().all(|row| row.problem.is_none() || row.result.row == "without a value")
        );
        let verdicts: BTreeSet<Verdict> = part.rows().map(|row| row.result.verdict).collect();
        assert_eq!(verdicts.len(), 3, "each verdict that a published row may have");
    }
}

#[test]
fn curves_are_kept_where_all_their_points_are_run() {
    let results = run(TINY, Form::Published, 2);
    let labels: Vec<&str> = results.figures[0].curves.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["last", "completion", "one by one", "without values"], "not `by size`");
}

/// Its row is in the band: nobody asks why.
#[test]
fn an_experiment_without_a_question_is_not_run() {
    let dir = changed(|figure| {
        let figure = apart(figure).replacen("target = 0\nhigh = 0", "low = 0", 1);
        figure.replace("metric = \"flow_goodput_gbps.min\"", "metric = \"hosts / 9\"")
    });
    let dir = dir.path().to_str().unwrap();
    let runs = |all_seeds| {
        let results = run_seeds(dir, Form::Published, 2, all_seeds);
        runs(&results).contains(&"single")
    };
    assert_eq!((runs(false), runs(true)), (false, true));
}

/// A run is as far from itself as nothing, and from messages of half the size by more than half of
/// its own.
#[test]
fn distributions_of_two_runs_have_a_distance() {
    for (other, distance) in [("large", 0.0..=0.0), ("ndp", 0.5..=1.0)] {
        let ratio = "last_completion_us / ndp::last_completion_us";
        let dir = changed(|figure| figure.replacen(ratio, &format!("ks.{other}.fct_us"), 1));
        let results = run(&dir.path().display().to_string(), Form::Full, 1);
        let rows = &results.figures[0].rows;
        let row = rows.iter().find(|row| row.result.row == "ratio").unwrap();
        assert!(distance.contains(&row.result.measured.unwrap()), "{:?}", row.result);
    }
}
