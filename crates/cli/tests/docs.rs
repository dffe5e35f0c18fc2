//! Every command block of the documentation is run, and what it prints is compared with the block
//! below it.
//!
//! - Every fenced block names its language. ` ```sh ` is run; ` ```output ` below it must be
//!   printed: its lines, in this order, with rows left out or not. Wall times are not compared.
//! - `<!-- file NAME -->` before a block: the block is written to that file, for the next commands.
//! - `<!-- not run: why -->` before a block: it is not run, and the reason is there to be read.
//! - `<!-- run -->` before a block of Python: it is run as a command is, with what
//!   `make python-setup` installs. Without that, it is said to be skipped.
//! - `<!-- slow -->` before a block: it is run where `DOCS_SLOW` is set, which `make docs` does.
//!
//! Each page has a directory of its own, in which `target/release/trimline` is the program under
//! test. `UPDATE_DOCS=1` writes what is printed now into the pages: rows that were left out stay
//! out.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fenced block of a page.
struct Block {
    language: String,
    /// What the comment before it says, if there is one.
    note: Option<String>,
    /// Its lines are these of the page, from 0.
    lines: std::ops::Range<usize>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Every page that a reader may follow, but the dated notebook.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "scenarios/README.md"]
        .iter()
        .map(|page| root.join(page))
        .filter(|page| page.exists())
        .collect();
    let markdown = |dir: PathBuf| {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|e| e == "md")).collect::<Vec<_>>()
    };
    pages.extend(markdown(root.join("docs")));
    for study in std::fs::read_dir(root.join("studies")).unwrap() {
        pages.extend(markdown(study.unwrap().path()));
    }
    pages.sort();
    pages
}

/// The fenced blocks of `page`.
fn blocks(page: &[String]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize)> = None;
    for (n, line) in page.iter().enumerate() {
        let Some(language) = line.trim_start().strip_prefix("```") else { continue };
        open = match open {
            None => Some((language.trim().to_owned(), n)),
            Some((language, fence)) => {
                let before = page[..fence].iter().rev().find(|line| !line.trim().is_empty());
                let note = before.and_then(|line| {
                    line.trim().strip_prefix("<!--")?.strip_suffix("-->").map(str::trim)
                });
                let note = note.map(str::to_owned);
                blocks.push(Block { language, note, lines: fence + 1..n });
                None
            }
        };
    }
    assert!(open.is_none(), "a block that does not end");
    blocks
}

/// A directory in which the commands of a page work as they do in a checkout.
fn checkout(root: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let release = dir.path().join("target/release");
    std::fs::create_dir_all(&release).unwrap();
    symlink(env!("CARGO_BIN_EXE_trimline"), release.join("trimline")).unwrap();
    for folder in ["scenarios", "studies", "p4", "crates", "docs"] {
        symlink(root.join(folder), dir.path().join(folder)).unwrap();
    }
    dir
}

/// What the commands of a block print. An error's exit code is part of what some show.
fn run(script: &str, dir: &Path) -> String {
    let path =
        format!("{}:{}", dir.join("target/release").display(), std::env::var("PATH").unwrap());
    let script = format!("exec 2>&1\n{script}");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(dir).env("PATH", path).env("COLUMNS", "100");
    String::from_utf8(bash.output().unwrap().stdout).unwrap()
}

/// What a program in Python prints, if there is one to run it.
fn run_python(program: &str, root: &Path, dir: &Path) -> Option<String> {
    let python = root.join("target/python/bin/python");
    if !python.exists() {
        println!("skipped: no target/python: make python-setup");
        return None;
    }
    std::fs::write(dir.join("block.py"), program).unwrap();
    Some(run(&format!("{} block.py", python.display()), dir))
}

/// A line without what may differ: borders, the width of columns. Empty if nothing is left.
fn plain(line: &str) -> String {
    if line.contains("wall time") {
        return String::new();
    }
    let words = line.split(|c: char| c.is_whitespace() || "│┆─═┄┌┐└┘├┤┬┴┼╞╪╡╌".contains(c));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The first line of `expected` that `printed` does not have after those before it.
fn missing<'e>(expected: &'e [String], printed: &str) -> Option<&'e String> {
    let mut printed = printed.lines().map(plain);
    expected.iter().find(|line| {
        let wanted = plain(line);
        !wanted.is_empty() && wanted != "..." && !printed.any(|line| line == wanted)
    })
}

/// The first cell of a row of a table.
fn label(line: &str) -> Option<&str> {
    Some(line.strip_prefix('│')?.split('┆').next()?.trim_end())
}

/// `printed`, without the rows of tables that `shown` leaves out.
fn shortened(shown: &[String], printed: &str) -> Vec<String> {
    let labels: Vec<&str> = shown.iter().filter_map(|line| label(line)).collect();
    let keep = |line: &&str| label(line).is_none_or(|label| labels.contains(&label));
    let first =
        |line: &&str| !shown.first().is_some_and(|f| f.starts_with('┌')) || !line.is_empty();
    printed.lines().filter(keep).filter(first).map(str::to_owned).collect()
}

/// Run the blocks of one page; what does not hold is added to `wrong`.
fn follow(root: &Path, path: &Path, wrong: &Mutex<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let page: Vec<String> = text.lines().map(str::to_owned).collect();
    let name = path.strip_prefix(root).unwrap().display();
    let complain = |line: usize, what: &str| {
        writeln!(wrong.lock().unwrap(), "{name}:{}: {what}", line + 1).unwrap();
    };
    let dir = checkout(root);
    let mut printed: Option<String> = None;
    let mut updated: Vec<(std::ops::Range<usize>, Vec<String>)> = Vec::new();
    for block in blocks(&page) {
        let lines = &page[block.lines.clone()];
        let fence = block.lines.start - 1;
        let note = block.note.as_deref().unwrap_or("");
        if let Some(file) = note.strip_prefix("file ") {
            std::fs::write(dir.path().join(file), lines.join("\n") + "\n").unwrap();
        }
        match block.language.as_str() {
            "" => complain(fence, "a block without a language: sh, output, text, toml, ..."),
            "sh" if note.starts_with("not run: ") => printed = None,
            "sh" if note == "slow" && std::env::var_os("DOCS_SLOW").is_none() => printed = None,
            "sh" => {
                let started = std::time::Instant::now();
                printed = Some(run(&lines.join("\n"), dir.path()));
                println!("{name}:{fence}: {:.1} s", started.elapsed().as_secs_f64());
            }
            "python" if note == "run" => {
                printed = run_python(&lines.join("\n"), root, dir.path());
            }
            "output" => match (&printed, missing(lines, printed.as_deref().unwrap_or(""))) {
                (Some(printed), Some(_)) if std::env::var_os("UPDATE_DOCS").is_some() => {
                    updated.push((block.lines.clone(), shortened(lines, printed)));
                }
                (Some(printed), Some(line)) => {
                    complain(fence, &format!("not printed: {line}\n--- but\n{printed}---"));
                }
                _ => {}
            },
            _ => {}
        }
    }
    if !updated.is_empty() {
        let mut page = page;
        for (range, lines) in updated.into_iter().rev() {
            page.splice(range, lines);
        }
        std::fs::write(path, page.join("\n") + "\n").unwrap();
    }
}

#[test]
fn every_command_block_prints_what_the_page_shows() {
    let root = repository();
    let only = std::env::var("DOCS_PAGE").unwrap_or_default();
    let mut pages = pages(&root);
    pages.retain(|page| page.to_string_lossy().contains(&only));
    // From the end: the page that takes longest is not begun last.
    pages.reverse();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(String::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    follow(&root, page, &wrong);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong}");
}

/// The sentence of the README is that of the scoreboard, which `make reproduce` writes.
#[test]
fn the_readme_says_what_the_scoreboard_says() {
    let root = repository();
    let board = std::fs::read_to_string(root.join("docs/reproduction.md")).unwrap();
    let all = board.lines().find(|line| line.starts_with("| all |")).unwrap();
    let cells: Vec<&str> = all.trim_matches('|').split('|').map(str::trim).collect();
    let (in_band, published) = cells[1].split_once(" of ").unwrap();
    let said = format!(
        "Of {published} published numbers {in_band} come out in their band ({}). For {} more an \
         experiment confirms why they differ, and {} are not reproduced.",
        cells[2], cells[3], cells[4]
    );
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&readme).contains(&words(&said)), "README.md: {said}");
}

#[test]
fn a_wrong_figure_is_found() {
    let shown = ["│ messages completed ┆ 5 of 6 │".to_owned()];
    assert!(missing(&shown, "│ messages completed   ┆ 5 of 6 │").is_none());
    assert!(missing(&shown, "│ messages completed   ┆ 6 of 6 │").is_some());
}
