//! The pages as a reader gets them.

use crate::fixture;

use std::path::PathBuf;

use fixture::Run;
use trimline_report::{render, render_comparison};

const WEB_SEARCH: Run = Run {
    name: "web_search",
    messages: 3_000,
    long_flows: 0,
    jobs: 0,
    ranks: 0,
    samples: 500,
    slow: 10,
};

/// The page but for its scripts.
fn without_scripts(page: &str) -> String {
    let parts = page.split("<script");
    let after = |part: &str| part.split_once("</script>").map_or(part, |(_, rest)| rest).to_owned();
    parts.map(after).collect()
}

/// Nothing on the page may load or lead anywhere: no addresses, no foreign markup. What scripts do
/// is seen in a browser (`page.rs`), and forbidden by the policy.
fn assert_self_contained(page: &str) {
    assert!(page.contains("content=\"default-src 'none'; "), "the policy is there");
    let page = without_scripts(page);
    for word in ["http:", "https:", "//", "<link", "<img", "url(", "@import", "src="] {
        assert!(!page.contains(word), "{word:?} in the page");
    }
}

/// Pictures, but for those of the legends.
fn plots(page: &str) -> usize {
    page.matches("<svg").count() - page.matches("class=\"swatch\"").count()
}

#[test]
fn a_run_has_its_numbers_plots_and_warnings() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &WEB_SEARCH);
    let page = render(dir.path()).unwrap();
    assert_self_contained(&page);
    let headings = [
        "Before you trust these numbers",
        "Completion time",
        "Slowdown by message size",
        "Queue occupancy",
        "Link utilization",
        "Links by tier",
        "dropped: over threshold",
        "How to repeat this run",
        "topology.k = 12",
        "trimline run scenarios/web_search.toml --seed 7",
        "8f3a0c55d2e91b74",
        "made-up rows of web_search",
    ];
    for text in headings {
        assert!(page.contains(text), "{text:?} is missing");
    }
    assert_eq!(plots(&page), 9, "every plot, the map and the largest messages");
    assert!(!page.contains("Goodput of long flows"), "there are none");
    assert!(!page.contains("buffer exhausted"), "not counted");
    assert!(!page.contains("NaN") && !page.contains("inf"), "no number is broken");
}

#[test]
fn long_flows_have_a_plot() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &Run { messages: 0, long_flows: 432, ..WEB_SEARCH });
    let page = render(dir.path()).unwrap();
    assert!(page.contains("Goodput of long flows"));
    assert!(page.contains("long flow goodput min"));
    assert!(page.contains("No measured message completed"), "a sentence, not an empty plot");
}

#[test]
fn jobs_have_a_plot_and_numbers() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &Run { jobs: 40, ..WEB_SEARCH });
    let page = render(dir.path()).unwrap();
    assert_self_contained(&page);
    for text in ["Time of jobs", "jobs.parquet", "link idle overall", "80.0 %"] {
        assert!(page.contains(text), "{text:?} is missing");
    }
    assert_eq!(plots(&page), 10, "one more");
    fixture::write(dir.path(), &WEB_SEARCH);
    assert!(!render(dir.path()).unwrap().contains("Time of jobs"), "there are none");
}

#[test]
fn training_jobs_have_timelines_and_what_steps_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &Run { ranks: 30, ..WEB_SEARCH });
    let page = render(dir.path()).unwrap();
    assert_self_contained(&page);
    let texts = [
        "Steps of the job of traffic table 0",
        "10 of 30 ranks",
        "What step 0 of traffic table 0 waited for",
        "gradients of rank 0, for rank 1: 500 µs",
        "critical.parquet",
    ];
    for text in texts {
        assert!(page.contains(text), "{text:?} is missing");
    }
    fixture::write(dir.path(), &WEB_SEARCH);
    assert!(!render(dir.path()).unwrap().contains("Steps of the job"), "there are none");
}

#[test]
fn text_is_escaped() {
    let dir = tempfile::tempdir().unwrap();
    let name = "<script>alert('x')</script> & \"co\"";
    fixture::write(dir.path(), &WEB_SEARCH);
    let scripts = render(dir.path()).unwrap().matches("<script").count();
    fixture::write(dir.path(), &Run { name, ..WEB_SEARCH });
    let page = render(dir.path()).unwrap();
    let now = page.matches("<script").count();
    assert_eq!(now, scripts, "markup of a name is not markup of the page");
    assert!(page.contains("&lt;script&gt;alert('x')&lt;/script&gt; &amp; "));
    let page = render_comparison(&[dir.path().to_owned()]).unwrap();
    assert!(!page.contains("<script>alert"));
}

#[test]
fn an_empty_run_is_sentences() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &Run { messages: 0, samples: 0, ..WEB_SEARCH });
    let page = render(dir.path()).unwrap();
    assert_eq!(page.matches("<svg").count(), 0);
    assert_eq!(page.matches("class=\"empty\"").count(), 6);
    assert!(!page.contains("NaN"));
}

#[test]
fn a_hundred_thousand_messages_stay_below_a_megabyte() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &Run { messages: 100_000, samples: 50_000, ..WEB_SEARCH });
    let size = render(dir.path()).unwrap().len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn runs_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let dirs: Vec<PathBuf> = ["ndp", "newreno"].map(|name| dir.path().join(name)).to_vec();
    fixture::write(&dirs[0], &WEB_SEARCH);
    fixture::write(&dirs[1], &Run { slow: 30, ..WEB_SEARCH });
    let page = render_comparison(&dirs).unwrap();
    assert_self_contained(&page);
    for text in ["2 runs compared", "<th scope=\"row\">newreno</th>", "newreno: made-up rows"] {
        assert!(page.contains(text), "{text:?} is missing");
    }
    assert_eq!(page.matches("class=\"swatch\"").count(), 4, "two plots with two runs each");
    assert_eq!(render(dir.path()).unwrap(), page, "the directory of both");
    assert!(!page.contains("Where the time went"), "no messages were followed");
    fixture::follow(&dirs[0]);
    let page = render_comparison(&dirs).unwrap();
    assert!(page.contains("mean time: fabric_queueing") && page.contains("<td>30.0</td>"));
}

#[test]
fn a_run_has_its_slowest_messages() {
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &WEB_SEARCH);
    fixture::follow(dir.path());
    let page = render(dir.path()).unwrap();
    assert_self_contained(&page);
    // The slowest is the first of twelve; the 13th, and one that is not measured, are not there.
    let lanes: Vec<usize> = (0..30).filter(|n| page.contains(&format!(">{n}:7</text>"))).collect();
    assert_eq!(lanes, (17..29).collect::<Vec<_>>());
}

#[test]
fn what_is_missing_or_broken_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = || render(dir.path()).unwrap_err().to_string();
    assert!(error().contains("is not a result directory"), "{}", error());
    for name in
        ["summary.json", "manifest.json", "flows.parquet", "series.parquet", "links.parquet"]
    {
        fixture::write(dir.path(), &WEB_SEARCH);
        let path = dir.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(error().contains(name), "cut off: {}", error());
        assert!(error().contains("run the scenario again"), "{}", error());
        std::fs::remove_file(&path).unwrap();
        assert!(error().contains(if name == "summary.json" { "no summary.json" } else { name }));
    }
    let runs = dir.path().join("runs");
    std::fs::create_dir_all(runs.join("jobs")).unwrap();
    let said = render(&runs).unwrap_err().to_string();
    assert!(said.contains("has jobs and no results of all of them"), "{said}");
    let error = render_comparison(&[]).unwrap_err().to_string();
    assert!(error.contains("nothing to compare"), "{error}");
}

#[test]
fn a_study_has_its_rows_its_plot_and_its_pictures() {
    let dir = tempfile::tempdir().unwrap();
    fixture::study(dir.path());
    let page = render(dir.path()).unwrap();
    assert_self_contained(&page);
    let parts = [
        "A &lt;script&gt; study",
        "3 rows are left to the full form",
        "0 of 1",
        "1 of 1",
        "What the publication is known for",
        "Own properties",
        "experiment window_12: 1.25, in the band, ≤ 1.50",
        "2.00 ± 0.250",
        "notes.md#why",
        "Because &lt;b&gt;.",
        "Open marks: published (Fig 1). Not measured: left to the full form.",
        "over time",
        "it broke",
        "trimline run a.toml --seed 1",
    ];
    for part in parts {
        assert!(page.contains(part), "{part:?} is missing");
    }
    assert_eq!(
        plots(&page),
        6,
        "three plots, one of them twice, another in two pictures; a time line"
    );
    assert_eq!(page.matches("class=\"swatch\"").count(), 15, "14 lines and dots");
    let dots = page.matches("h0").count();
    assert!((1000..=2000).contains(&dots), "{dots}: what falls on one pixel is drawn once");
    assert!(page.contains("Dots: measured, one per message"));
    assert!(!page.contains("NaN") && !page.contains("inf"), "no number is broken");
    std::fs::write(dir.path().join("study.json"), "{}").unwrap();
    assert!(render(dir.path()).unwrap_err().to_string().contains("study.json"));
}

/// A name is no markup.
#[test]
fn a_comparison_over_seeds_has_sentences_tables_and_a_plot() {
    let dir = tempfile::tempdir().unwrap();
    fixture::seeds(dir.path());
    let page = render(dir.path()).unwrap();
    assert_self_contained(&page);
    let parts = [
        "HPCC's completion time p99 (µs) is lower than NDP's: yes, by 3.00 ± ",
        "&lt;b&gt;'s completion time p99 (µs) is lower than NDP's: unknown",
        "2 comparisons: with 95 %",
        "traffic: not the same with each seed",
        "7.00 ± 0.500",
        "&lt; 10 KB",
        "100 packets",
        "NDP, 1 of 5 seeds: made up",
        "trimline compare x.toml --seeds 1-5",
    ];
    for part in parts {
        assert!(page.contains(part), "{part:?} is missing");
    }
    assert_eq!(plots(&page), 1);
}

#[test]
fn a_search_has_a_plot_for_each_axis_and_says_where_it_is_flat() {
    let dir = tempfile::tempdir().unwrap();
    fixture::tune(dir.path());
    let page = render(dir.path()).unwrap();
    assert_self_contained(&page);
    let parts = [
        "A &lt;b&gt; search",
        "minimise completion time p99 (µs), with goodput_gbps &gt;= 9",
        "4 points, a scrambled Sobol sequence; successive halving, points x seeds: 4 x 2, 2 x 6",
        "best: k=20 rule=dctcp, completion time p99 (µs) 30.50 ± 2.484 over 3 fresh seeds",
        "flat: 2 of 4 points are not significantly different: k from 20 to 25, rule dctcp",
        "none of them is worse than the best by more than 12.5 %",
        "Along k",
        "Along rule",
        "violates a constraint",
        "the best point: made up",
        "trimline run x.toml --set queue.k=20 --seed 1",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<figure").count(), 2);
}
