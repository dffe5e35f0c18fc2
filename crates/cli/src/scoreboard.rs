//! `trimline scoreboard`: how many rows of several studies came out.

use metrics::{Score, StudyResults};
use scenario::{Diagnostic, Error};
use serde::Serialize;

use crate::{Ended, args, say, say_json};

/// A study, for `--json`.
#[derive(Serialize)]
struct Scored {
    study: String,
    #[serde(flatten)]
    score: Score,
}

/// `trimline scoreboard DIR...`.
pub(crate) fn scoreboard(args: &args::Scoreboard) -> Ended {
    let read = |dir: &std::path::PathBuf| {
        StudyResults::read(&dir.join("study.json")).map_err(|error| {
            let error = Diagnostic::new(error.to_string());
            Error::from(error.hint("give directories that `trimline reproduce` wrote"))
        })
    };
    let studies: Vec<StudyResults> = args.dirs.iter().map(read).collect::<Result<_, _>>()?;
    let score = |of: &StudyResults| Scored { study: of.study.clone(), score: of.score() };
    if args.json {
        say_json(&studies.iter().map(score).collect::<Vec<_>>())?;
    } else {
        for Scored { study, score } in studies.iter().map(score) {
            say(format_args!("{study}: {score}"))?;
        }
    }
    let Some(path) = &args.page else { return Ok(()) };
    std::fs::write(path, report::scoreboard(&studies)).map_err(|why| {
        let error = Diagnostic::new(format!("cannot write {}: {why}", path.display()));
        Error::from(error.hint("give another file with --page"))
    })
}
