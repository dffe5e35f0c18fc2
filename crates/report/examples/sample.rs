//! Writes the report pages of made-up runs to a directory, to look at in a browser:
//! `cargo run -p trimline-report --example sample -- DIR`.

#[path = "../tests/it/fixture/mod.rs"]
mod fixture;

use std::path::{Path, PathBuf};

use fixture::Run;
use trimline_report as report;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir: PathBuf = std::env::args().nth(1).ok_or("give a directory to write to")?.into();
    let run = |name, messages, long_flows, samples, slow| Run {
        name,
        messages,
        long_flows,
        jobs: 0,
        ranks: 0,
        samples,
        slow,
    };
    let runs = [
        run("web_search_ndp", 100_000, 0, 5_000, 10),
        run("web_search_newreno", 100_000, 0, 5_000, 35),
        run("permutation", 0, 432, 200, 10),
        run("incast", 100, 0, 300, 10),
        run("nothing", 0, 0, 0, 10),
    ];
    let mut dirs = Vec::new();
    for run in runs {
        let out = dir.join(run.name);
        fixture::write(&out, &run);
        fixture::traces(&out);
        fixture::follow(&out);
        std::fs::write(out.join("report.html"), report::render(&out)?)?;
        dirs.push(out);
    }
    dirs.truncate(2);
    std::fs::write(dir.join("comparison.html"), report::render_comparison(&dirs)?)?;
    std::fs::write(dir.join("message.html"), report::message_page(&fixture::life()))?;
    let judged = [
        ("study", fixture::study as fn(&Path)),
        ("sweep", fixture::sweep),
        ("seeds", fixture::seeds),
        ("tune", fixture::tune),
    ];
    for (name, write) in judged {
        let out = dir.join(name);
        write(&out);
        std::fs::write(out.join("report.html"), report::render(&out)?)?;
    }
    let many: Vec<PathBuf> = fixture::twenty(&dir.join("twenty"), 100_000);
    std::fs::write(dir.join("twenty.html"), report::render_comparison(&many)?)?;
    Ok(())
}
