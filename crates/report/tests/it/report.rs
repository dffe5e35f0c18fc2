//! The pages as a reader gets them.

use crate::fixture;

use std::path::PathBuf;

use fixture::Run;
use metrics::{
    COMPARISON_SCHEMA, Compared, ComparisonResults, Difference, Estimate, OutputDir, Setting,
    SizeCompared,
};
use trimline_report::{render, render_comparison};

const WEB_SEARCH: Run =
    Run { name: "web_search", messages: 3_000, long_flows: 0, jobs: 0, samples: 500, slow: 10 };

/// Nothing on the page may load or lead anywhere: no addresses, no scripts, no foreign markup.
fn assert_self_contained(page: &str) {
    for word in ["http", "//", "<script", "<link", "<img", "url(", "@import", "src="] {
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
    assert_eq!(plots(&page), 7, "every plot is there");
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
    assert_eq!(plots(&page), 8, "one more");
    fixture::write(dir.path(), &WEB_SEARCH);
    assert!(!render(dir.path()).unwrap().contains("Time of jobs"), "there are none");
}

#[test]
fn text_is_escaped() {
    let dir = tempfile::tempdir().unwrap();
    let name = "<script>alert('x')</script> & \"co\"";
    fixture::write(dir.path(), &Run { name, ..WEB_SEARCH });
    let page = render(dir.path()).unwrap();
    assert!(!page.contains("<script"), "markup of a name is not markup of the page");
    assert!(page.contains("&lt;script&gt;alert('x')&lt;/script&gt; &amp; "));
    let page = render_comparison(&[dir.path().to_owned()]).unwrap();
    assert!(!page.contains("<script"));
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
    let error = render_comparison(&[]).unwrap_err().to_string();
    assert!(error.contains("nothing to compare"), "{error}");
}

#[test]
fn a_study_has_its_rows_its_plot_and_its_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let rows = serde_json::json!([{
        "study": "x", "figure": "fig1", "row": "off", "origin": "published",
        "metric": "m", "unit": "us",
        "target": 1.0, "low": null, "high": 1.5, "measured": 2.0, "verdict": "cause tested",
        "source": "Fig 1", "evidence": "notes.md#why", "interval": 0.25,
        "why": "digitised", "headline": true, "note": "## Why\nBecause <b>.", "problem": null,
        "experiment": {
            "run": "window_12", "metric": "m", "measured": 1.25, "low": null, "high": 1.5,
            "shows": "in-band",
        },
    }, {
        "study": "x", "figure": "fig1", "row": "ours", "origin": "own",
        "metric": "m", "unit": "", "target": null, "low": 7.0, "high": null,
        "measured": 8.0, "verdict": "holds", "source": "arithmetic", "evidence": "",
        "interval": null, "why": "a bound", "headline": false, "note": null,
        "problem": null, "experiment": null,
    }]);
    let text = serde_json::json!({
        "schema": metrics::STUDY_SCHEMA,
        "study": "x", "title": "A <script> study", "publication": "P", "form": "quick",
        "left_out": 3, "on_phases": [], "picture": "fig1", "command": "trimline reproduce x --quick", "engine": 2,
        "figures": [{
            "id": "fig1", "title": "One", "expect": "A line.",
            "x": {"label": "senders", "logarithmic": true}, "y": {"label": "us", "logarithmic": null},
            "curves": [{
                "label": "ours", "drawn": "points", "source": "Fig 1",
                "measured": [{"x": 1.0, "y": 2.0, "interval": 0.5}, {"x": 9.0, "y": 3.0, "interval": null}],
                "published": [[1.0, 2.5], [0.0, 1.0]],
            }, {
                "label": "left to the full form", "drawn": "points", "source": "Fig 9",
                "measured": [], "published": [[5.0, 5.0]],
            }],
            "timelines": [{
                "title": "over time", "about": "Boxes.",
                "lanes": [["link", [
                    {"from_us": 0.0, "to_us": 7.2, "label": "1", "accent": false},
                    {"from_us": 7.2, "to_us": 7.25, "label": "9", "accent": true},
                ]], ["empty", []]],
            }],
            "rows": rows,
            "runs": [{
                "run": "a n=1", "seed": 1, "command": "trimline run a.toml --seed 1",
                "digest": null, "wall_s": 0.1, "packet_hops": 5, "error": "it broke",
            }],
        }, {
            "id": "fig2", "title": "Two", "expect": "Dots.",
            "x": {"label": "s", "logarithmic": false}, "y": {"label": "us", "logarithmic": true},
            "curves": [{
                "label": "messages", "drawn": "dots", "source": "", "published": [],
                "measured": (0..2000).map(|i| serde_json::json!({
                    "x": f64::from(i) / 100.0, "y": f64::from(10 + i % 7), "interval": null,
                })).collect::<Vec<_>>(),
            }],
            "timelines": [], "rows": [], "runs": [],
        }],
    });
    std::fs::write(dir.path().join("study.json"), text.to_string()).unwrap();
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
    assert_eq!(plots(&page), 4, "two plots, the first of them twice, and a picture");
    assert_eq!(page.matches("class=\"swatch\"").count(), 3, "two lines and dots");
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
    let estimate = |mean| Some(Estimate { mean, interval: Some(0.5), seeds: 5 });
    let differences = [-3.0, -3.5, -2.5];
    let compared = Compared {
        metric: "fct_us.p99".to_owned(),
        values: vec![estimate(10.0), estimate(7.0), None],
        differences: vec![Difference::of(&differences, 2), Difference::of(&[], 2)],
    };
    let size = |from_bytes, to_bytes| SizeCompared {
        from_bytes,
        to_bytes,
        p50: vec![estimate(1.0), estimate(2.0), None],
        p99: vec![estimate(4.0), estimate(5.0), None],
        p99_less_first: vec![estimate(1.0), None],
    };
    let values = ["8 packets", "100 packets"].map(|value| Some(value.to_owned()));
    let capacity = Setting {
        path: "queue.capacity".to_owned(),
        values: values.into_iter().chain([None]).collect(),
    };
    let results = ComparisonResults {
        schema: COMPARISON_SCHEMA,
        engine: 7,
        command: "trimline compare x.toml --seeds 1-5".to_owned(),
        labels: ["NDP", "HPCC", "<b>"].map(str::to_owned).to_vec(),
        repeat: vec!["trimline run x.toml --seed 1".to_owned()],
        seeds: 5,
        metrics: vec![compared],
        sentences: 2,
        by_size: vec![size(0, Some(10_000)), size(10_000, None)],
        settings: vec![capacity],
        warnings: vec!["NDP, 1 of 5 seeds: made up".to_owned()],
        same_messages: false,
    };
    let dir = tempfile::tempdir().unwrap();
    let out = OutputDir::create(dir.path()).unwrap();
    results.write(&out).unwrap();
    out.commit().unwrap();
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
