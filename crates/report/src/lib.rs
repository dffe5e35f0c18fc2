//! Result files to one self-contained HTML page.
//!
//! [`render`] makes the page of one run, a study, a comparison over seeds or a search,
//! [`render_comparison`] that of several runs, [`message_page`] that of one message.
//! [`scoreboard()`] is a Markdown page over several studies.
//! The pages need no network and no fonts. The text is escaped by `maud`, and colours follow the
//! reader's light or dark setting. Plots are live by uPlot, which is in the page; without a script,
//! and on paper, they are inline SVG by `plotters`.

mod axis;
mod chart;
mod comparison;
mod flows;
mod heat;
mod heat_map;
mod jobs;
mod life;
mod message;
mod number;
mod numbers;
mod page;
mod palette;
mod plot_data;
mod results;
mod run;
mod scoreboard;
mod seeds;
mod study;
mod timeline;
mod topology;
mod training;
mod tune;
mod values;

use std::path::{Path, PathBuf};

use metrics::FileError;

pub use message::{MessageLife, Part, message_page};
pub use scoreboard::{of_study, score_line, scoreboard};

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A result file is missing or broken; the message names it and says what to do.
    #[error(transparent)]
    File(#[from] FileError),
    /// The directory holds no results.
    #[error("{} is not a result directory: it has no summary.json (give the directory that \
             `trimline run --out` wrote to)", .0.display())]
    NoResults(PathBuf),
    /// It has the jobs of a sweep, a comparison over seeds or a search, and not what is made of
    /// them.
    #[error("{} has jobs and no results of all of them (give the command that ran them again; \
             with --collect it runs nothing)", .0.display())]
    OnlyJobs(PathBuf),
    /// A comparison of nothing.
    #[error("nothing to compare (give at least one result directory)")]
    NothingToCompare,
    /// A plot could not be drawn.
    #[error("cannot draw {plot:?}: {cause} (this is a defect: report it)")]
    Plot {
        /// What it shows.
        plot: String,
        /// What the plotting library said.
        cause: String,
    },
}

/// The page of the run, the study, the comparison over seeds or the search whose results are in
/// `dir`; of a directory of runs the page that compares them, in the order of their names.
///
/// # Errors
/// A result file is missing or broken.
pub fn render(dir: &Path) -> Result<String, ReportError> {
    let study = dir.join("study.json");
    if study.exists() {
        return study::page(&metrics::StudyResults::read(&study)?);
    }
    let comparison = dir.join("comparison.json");
    if comparison.exists() {
        return seeds::page(&metrics::ComparisonResults::read(&comparison)?);
    }
    let tune = dir.join("tune.json");
    if tune.exists() {
        return tune::page(&metrics::TuneResults::read(&tune)?);
    }
    if !dir.join("summary.json").exists() {
        if dir.join("jobs").is_dir() {
            return Err(ReportError::OnlyJobs(dir.to_owned()));
        }
        let runs = results::runs_in(dir);
        if !runs.is_empty() {
            return render_comparison(&runs);
        }
    }
    run::page(&results::Results::read(dir)?)
}

/// The page that sets several runs side by side, in the order given, labelled by the names of their
/// directories.
///
/// # Errors
/// `dirs` is empty, or a result file is missing or broken.
pub fn render_comparison(dirs: &[PathBuf]) -> Result<String, ReportError> {
    if dirs.is_empty() {
        return Err(ReportError::NothingToCompare);
    }
    let labels = results::labels(dirs);
    let runs: Result<Vec<_>, _> = dirs.iter().map(|dir| comparison::Compared::read(dir)).collect();
    comparison::page(&labels, &runs?)
}
