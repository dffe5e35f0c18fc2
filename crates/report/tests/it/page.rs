//! Pages in a browser: nothing is loaded, nothing goes wrong, everything can be read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use trimline_report::{message_page, render, render_comparison};

use crate::browser::{Browser, Reader, axe};
use crate::fixture::{self, Run};

const RUN: Run = Run {
    name: "web_search",
    messages: 20_000,
    long_flows: 0,
    jobs: 40,
    ranks: 0,
    samples: 1_000,
    slow: 10,
};

const ON_A_DESK: Reader = Reader { width: 1400, dark: false, scripts: true };

/// Where the pictures go, to be looked at.
fn pictures() -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/page-pictures");
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn write(dir: &Path, name: &str, page: &str) -> PathBuf {
    let path = dir.join(format!("{name}.html"));
    std::fs::write(&path, page).unwrap();
    path
}

/// A page of each kind.
fn pages(dir: &Path) -> Vec<(&'static str, PathBuf)> {
    let run = dir.join("run");
    fixture::write(&run, &RUN);
    fixture::traces(&run);
    fixture::follow(&run);
    let runs = fixture::twenty(&dir.join("twenty"), 2_000);
    let study = dir.join("study");
    fixture::study(&study);
    let sweep = dir.join("sweep");
    fixture::sweep(&sweep);
    let seeds = dir.join("seeds");
    fixture::seeds(&seeds);
    let tune = dir.join("tune");
    fixture::tune(&tune);
    vec![
        ("run", write(dir, "run", &render(&run).unwrap())),
        ("comparison", write(dir, "comparison", &render_comparison(&runs).unwrap())),
        ("study", write(dir, "study", &render(&study).unwrap())),
        ("sweep", write(dir, "sweep", &render(&sweep).unwrap())),
        ("seeds", write(dir, "seeds", &render(&seeds).unwrap())),
        ("tune", write(dir, "tune", &render(&tune).unwrap())),
        ("message", write(dir, "message", &message_page(&fixture::life()))),
    ]
}

#[test]
fn pages_can_be_read_on_a_desk_and_a_phone_by_day_and_night() {
    let Some(mut browser) = Browser::open() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, page) in pages(dir.path()) {
        // The page of a run has nearly all that others have.
        let views = [(1400, false), (390, true), (1400, true), (390, false)];
        for (width, dark) in views.into_iter().take(if name == "run" { 4 } else { 2 }) {
            browser.show(&page, &Reader { width, dark, scripts: true });
            browser.whole(width);
            let wide = browser.eval("document.documentElement.scrollWidth").as_u64();
            assert_eq!(wide, Some(u64::from(width)), "{name}: nothing is cut off at {width}");
            let plots = browser.eval("document.querySelectorAll('figure.plot').length");
            let drawn = browser.eval("document.querySelectorAll('figure.plot canvas').length");
            let folded = browser.eval("document.querySelectorAll('details figure.plot').length");
            let seen = plots.as_u64().unwrap() - folded.as_u64().unwrap();
            // That of one message has a picture, and no plot.
            let any = seen > 0 || name == "message";
            assert!(drawn.as_u64().unwrap() >= seen && any, "{name}: {drawn} of {plots}");
            let shade = if dark { "dark" } else { "light" };
            let picture = pictures().join(format!("{name}-{width}-{shade}.png"));
            browser.picture_of("document.documentElement", &picture);
        }
    }
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

/// Tables that do not fit say so.
const UNMARKED: &str = "[...document.querySelectorAll('.scroll')]
    .filter(box => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1 && !box.classList.contains('cut')).length";

#[test]
fn wide_tables_scroll_and_say_so() {
    let Some(mut browser) = Browser::open() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, page) in pages(dir.path()) {
        browser.show(&page, &Reader { width: 390, dark: false, scripts: true });
        assert_eq!(browser.eval(UNMARKED), 0, "{name}");
        let cut = browser.eval("document.querySelectorAll('.scroll.cut').length");
        let any_is_wide = name != "sweep";
        assert_eq!(cut.as_u64().unwrap() > 0, any_is_wide, "{name}: wider than a phone");
    }
}

#[test]
fn axe_finds_nothing_serious() {
    let (Some(mut browser), Some(axe)) = (Browser::open(), axe()) else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, page) in pages(dir.path()) {
        for (width, dark) in [(1400, false), (390, true)] {
            browser.show(&page, &Reader { width, dark, scripts: true });
            browser.eval("document.querySelectorAll('details').forEach(d => { d.open = true; })");
            browser.whole(width);
            browser.eval(&axe);
            let found = browser.eval("axe.run().then(found => found.violations)");
            for violation in found.as_array().unwrap() {
                let grave =
                    ["serious", "critical"].contains(&violation["impact"].as_str().unwrap());
                let what = format!("{name} at {width}: {} {}", violation["id"], nodes(violation));
                assert!(!grave, "{what}");
                println!("{} {what}", violation["impact"]);
            }
        }
    }
}

fn nodes(violation: &Value) -> String {
    let html = violation["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .take(5)
        .map(|node| format!("\n  {} {}", node["html"], node["failureSummary"]));
    html.collect()
}

#[test]
fn twenty_runs_of_a_hundred_thousand_messages_open_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let runs = fixture::twenty(dir.path(), 100_000);
    let page = render_comparison(&runs).unwrap();
    println!("{} bytes", page.len());
    assert!(page.len() < 5_000_000);
    let Some(mut browser) = Browser::open() else { return };
    let page = write(dir.path(), "page", &page);
    // The first time, the browser warms up.
    let times = [(); 3].map(|()| browser.show(&page, &ON_A_DESK));
    let canvases = browser.eval("document.querySelectorAll('canvas').length");
    assert_eq!(canvases, 2, "both plots are in sight, and drawn");
    println!("opened in {times:?}");
    assert!(times.iter().min().unwrap() < &Duration::from_secs(2));
    let shown = "document.querySelectorAll('.legend input:checked').length";
    assert_eq!(browser.eval(shown), 16, "eight of twenty curves on each of two plots");
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn plots_answer_to_keys_and_boxes() {
    let Some(mut browser) = Browser::open() else { return };
    let dir = tempfile::tempdir().unwrap();
    let runs = fixture::twenty(dir.path(), 2_000);
    let page = write(dir.path(), "page", &render_comparison(&runs).unwrap());
    browser.show(&page, &ON_A_DESK);
    let press = |browser: &mut Browser, key: &str| {
        browser.eval("document.querySelector('.canvas').focus()");
        for kind in ["keyDown", "keyUp"] {
            browser.call("Input.dispatchKeyEvent", &serde_json::json!({"type": kind, "key": key}));
        }
        browser.settle();
    };
    let readout = "document.querySelector('.readout').textContent";
    assert_eq!(browser.eval(readout), "");
    press(&mut browser, "ArrowRight");
    let before = browser.eval(readout).as_str().unwrap().to_owned();
    assert!(
        before.contains("completion time (µs)") && before.contains("variant_00: 0."),
        "{before}"
    );
    assert!(!before.contains("variant_08"), "the ninth is not shown at first: {before}");
    browser.eval("document.querySelectorAll('.legend input')[8].click()");
    press(&mut browser, "ArrowRight");
    let after = browser.eval(readout).as_str().unwrap().to_owned();
    assert!(after.contains("variant_08: 0."), "{after}");
    browser.eval(
        "[...document.querySelectorAll('label')].find(l => l.textContent.includes('tail'))
             .querySelector('input').click()",
    );
    press(&mut browser, "ArrowRight");
    press(&mut browser, "+");
    let zoomed = browser.eval(readout).as_str().unwrap().to_owned();
    assert!(!zoomed.is_empty() && zoomed != after, "{zoomed}");
    let select = "const select = document.querySelector('.controls select'); select.value = '1';
        select.onchange(); select.selectedOptions[0].textContent";
    assert!(browser.eval(select).as_str().unwrap().contains("KB"));
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

/// The library's own ticks never end from 0.095 on, and there are none from 121 on.
#[test]
fn logarithmic_axes_have_round_numbers() {
    let Some(mut browser) = Browser::open() else { return };
    let dir = tempfile::tempdir().unwrap();
    let runs = fixture::twenty(dir.path(), 1_000);
    let page = write(dir.path(), "page", &render_comparison(&runs).unwrap());
    browser.show(&page, &ON_A_DESK);
    for box_of in ["tail, logarithmic", "logarithmic x"] {
        let click = format!(
            "[...document.querySelectorAll('label')].find(l => l.textContent.includes('{box_of}'))
                 ?.querySelector('input').click()"
        );
        browser.eval(&click);
        browser.settle();
    }
    let uplot = "document.querySelectorAll('.canvas .u-over').length";
    assert_eq!(browser.eval(uplot), 2, "both plots are still there");
    let splits = |low: f64, high: f64| format!("window.trimline.roundValues({low}, {high})");
    for (low, high, expected) in [
        (0.095, 1.05, serde_json::json!([0.1, 0.2, 0.5, 1])),
        (121.0, 13_800.0, serde_json::json!([200, 500, 1000, 2000, 5000, 10_000])),
        (0.0009, 2.0, serde_json::json!([0.001, 0.01, 0.1, 1])),
    ] {
        assert_eq!(browser.eval(&splits(low, high)), expected, "{low} to {high}");
    }
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn without_a_script_there_are_pictures() {
    let Some(mut browser) = Browser::open() else { return };
    let dir = tempfile::tempdir().unwrap();
    let runs = fixture::twenty(dir.path(), 500);
    let page = write(dir.path(), "page", &render_comparison(&runs).unwrap());
    browser.show(&page, &Reader { scripts: false, ..ON_A_DESK });
    browser.picture(&pictures().join("without-script.png"));
    browser.call("Emulation.setScriptExecutionDisabled", &serde_json::json!({"value": false}));
    let seen =
        "[...document.querySelectorAll('.static svg')].filter(s => s.clientWidth > 300).length";
    assert_eq!(browser.eval(seen), 6, "three pictures of each of two plots");
}

#[test]
fn paper_has_pictures_and_what_is_folded() {
    let Some(mut browser) = Browser::open() else { return };
    let dir = tempfile::tempdir().unwrap();
    fixture::write(dir.path(), &RUN);
    let page = write(dir.path(), "page", &render(dir.path()).unwrap());
    browser.show(&page, &Reader { dark: true, ..ON_A_DESK });
    let paper = serde_json::json!({"media": "print"});
    browser.call("Emulation.setEmulatedMedia", &paper);
    let shown = |what: &str| {
        format!("[...document.querySelectorAll('{what}')].filter(e => e.checkVisibility()).length")
    };
    assert_eq!(browser.eval(&shown(".live")), 0);
    assert_eq!(browser.eval(&shown(".static svg")), 8);
    let paper = browser.eval("getComputedStyle(document.body).backgroundColor");
    assert_eq!(paper, "rgb(255, 255, 255)", "light, whatever the screen is");
    browser.eval("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.eval("document.querySelectorAll('details:not([open])').length"), 0);
}
