//! What is wrong in a study's files, as its author reads it. The messages are in `snapshots/`.

use std::path::Path;

use trimline_study::{Plan, Study};

const FIGURE: &str = include_str!("../tiny/fig1/figure.toml");

/// What is said of the tiny study with `figure` as its figure, by reading it or by planning it.
fn refused(figure: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny");
    std::fs::create_dir(dir.path().join("fig1")).unwrap();
    for file in ["study.toml", "fig1/incast.toml", "fig1/notes.md"] {
        std::fs::copy(tiny.join(file), dir.path().join(file)).unwrap();
    }
    std::fs::write(dir.path().join("fig1/figure.toml"), figure).unwrap();
    let study = Study::load(&dir.path().display().to_string());
    let error = match &study {
        Ok(study) => Plan::new(study, false).err(),
        Err(error) => Some(error.clone()),
    };
    let said = error.expect("something is wrong").render(false);
    said.replace(&dir.path().display().to_string(), "tiny")
}

/// Snapshot what is said when `from` is replaced by `to`.
macro_rules! bad {
    ($($name:ident: $from:literal => $to:literal;)*) => {
        $(
            #[test]
            fn $name() {
                assert!(FIGURE.contains($from), "{:?} is not in the figure", $from);
                let figure = FIGURE.replacen($from, $to, 1);
                insta::assert_snapshot!(stringify!($name), refused(&figure));
            }
        )*
    };
}

bad! {
    unknown_key: "expect =" => "expcet =";
    no_seeds: "seeds = [1, 2, 3]" => "";
    unknown_run: "run = \"large\"" => "run = \"lagre\"";
    unknown_metric: "metric = \"packets.trimmed\"" => "metric = \"packets.trimed\"";
    unknown_run_in_a_formula: "ndp::last" => "nbp::last";
    distance_to_an_unknown_run: "last_completion_us / ndp::last_completion_us" => "ks.nbp.fct_us";
    distance_between_no_distributions: "last_completion_us / ndp::last_completion_us" => "ks.ndp.fct";
    not_a_formula: "metric = \"packets.trimmed\"" => "metric = \"packets.trimmed / \"";
    seed_twice: "seeds = [1, 2, 3]" => "seeds = [1, 2, 1]";
    axis_value_twice: "sweep = { n = [1, 4, 8] }" => "sweep = { n = [1, 4, 4] }";
    seeds_that_differ: "seeds = [1, 2, 3]" => "seeds = [1, 2]";
    point_of_the_other_run: "sweep = { n = [8] }" => "sweep = { n = [8, 5] }";
    point_missing: "at = { n = 8 }" => "";
    point_not_run: "at = { n = 8 }" => "at = { n = 7 }";
    axis_not_used: "set = [\"traffic.senders={n}\"]" => "set = [\"traffic.size=1KB\"]";
    axis_unknown: "set = [\"traffic.senders={n}\"]" => "set = [\"traffic.senders={m}\"]";
    edit_that_the_scenario_refuses: "traffic.size=180KB" => "traffic.size=180XB";
    edit_of_an_unknown_key: "traffic.size=180KB" => "traffic.sizes=180KB";
    quick_with_other_parameters:
        "quick = { n = [8], seeds = [1] }" => "quick = { set = [\"transport.initial_window=3\"] }";
    quick_with_another_value: "quick = { n = [8]" => "quick = { n = [9]";
    quick_with_another_seed: "seeds = [1] }" => "seeds = [7] }";
    target_out_of_its_band: "low = 1.9" => "low = 2.1";
    no_band: "low = 1.9\n" => "";
    two_bands: "low = 1.9" => "low = 1.9\nwithin = 0.1";
    two_ways_of_a_band: "within = 0.05" => "within = 0.05\nplus_minus = 2";
    origin_missing: "origin = \"own\"" => "";
    origin_unknown: "origin = \"own\"" => "origin = \"ours\"";
    own_headline: "origin = \"own\"" => "origin = \"own\"\nheadline = true";
    cause_without_a_note: "note = \"notes.md#trimmed-packets\"\n" => "";
    cause_of_an_own_row: "origin = \"published\"\nheadline = true" => "origin = \"own\"";
    cause_of_another_metric: "cause = { run = \"single\" }" => "cause = { run = \"single\", metric = \"n\" }";
    cause_at_another_point:
        "why = \"the first packets compete\"" =>
        "why = \"the first packets compete\"\nnote = \"notes.md\"\ncause = { run = \"large\" }";
    by_size_of_an_unknown_percentile: "by_size = \"p99\"" => "by_size = \"p42\"";
    cause_with_other_seeds:
        "id = \"single\"\nscenario = \"incast.toml\"\nseeds = [1, 2, 3]" =>
        "id = \"single\"\nscenario = \"incast.toml\"\nseeds = [1, 2]";
    cause_that_shows_something: "shows = \"unreachable\"" => "shows = \"it\"";
    contradicted_without_a_target: "target = 100\nwithin = 0.05" => "high = 105";
    contradicted_out_of_its_band: "target = 590, within = 0.05" => "target = 590, low = 600";
    scatter_of_few_seeds: "shows = \"unreachable\", high = 1" => "shows = \"scatter\"";
    unreachable_by_nothing: "shows = \"unreachable\", high = 1" => "shows = \"unreachable\"";
    share_of_no_target: "points = [[1, 82]" => "points = [1";
    note_missing: "notes.md#trimmed-packets" => "other.md";
    note_without_the_heading: "notes.md#trimmed-packets" => "notes.md#trimed-packets";
    two_rows_of_one_name: "id = \"ratio\"" => "id = \"known to differ\"";
    scenario_missing: "scenario = \"incast.toml\"" => "scenario = \"nowhere.toml\"";
    points_not_pairs: "[[1, 82]" => "[[1, 82, 3]";
    target_beside_points: "within = 0.05" => "within = 0.05\ntarget = 3";
    not_toml: "title = \"Incast\"" => "title = Incast";
    unknown_distribution: "cdf = \"fct_us\"" => "cdf = \"fct\"";
    scatter_of_something_else: "scatter = \"fct_us\"" => "scatter = \"slowdown\"";
    distribution_and_scatter: "scatter = \"fct_us\"" => "scatter = \"fct_us\"\ncdf = \"fct_us\"";
    unknown_table: "cdf = \"fct_us\"" => "cdf = \"traffic.al.fct_us\"";
    unknown_table_in_a_formula: "metric = \"packets.trimmed\"" => "metric = \"traffic.alll.fct_us.max\"";
    onset_along_nothing: "along = \"n\"" => "along = \"m\"";
    onset_at_a_point: "onset = { along = \"n\", below = -200 }" => "at = { n = 8 }\nonset = { along = \"n\", below = -200 }";
    onset_over_nothing: "over = \"large\"" => "over = \"larg\"";
    unknown_probe: "quick = {" => "probe = \"nothing\"\nquick = {";
}

#[test]
fn study_that_is_not_there() {
    let error = Study::load("nowhere/at/all").err().expect("it is not there");
    insta::assert_snapshot!(error.render(false));
}

#[test]
fn figure_that_is_not_there() {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny/fgi1");
    let error = Study::load(&tiny.display().to_string()).err().expect("it is not there");
    insta::assert_snapshot!(error.render(false));
}
