//! The scoreboard over studies, as a Markdown page.

use std::fmt::Write as _;

use metrics::{FigureRow, Form, Score, StudyResults};

use crate::number::number;

/// The page: a line per study, then the headline numbers of each.
#[must_use]
pub fn scoreboard(studies: &[StudyResults]) -> String {
    let mut page = String::from(
        "# Reproduction\n\n\
         Written by `make reproduce`, from the results of the studies; \
         [studies.md](studies.md) says what the verdicts mean.\n",
    );
    let is_any = |form| studies.iter().any(|study| study.form == form);
    if is_any(Form::Published) {
        page += "\nWhere published rows were run, all their sizes and seeds were, and nothing for \
                 own properties.\n";
    }
    if is_any(Form::Quick) {
        page += "\nA quick form has fewer sizes and seeds, and shorter runs.\n";
    }
    page += "\n| study | published rows in band | | cause tested | not reproduced | \
             own properties that hold |\n|---|---|---|---|---|---|\n";
    let mut all = Score::default();
    for study in studies {
        all = all + study.score();
        let name = of_study(&study.study, study.form);
        let _ = writeln!(page, "{}", score_line(&name, study.score()));
    }
    let _ = writeln!(page, "{}", score_line("all", all));
    studies.iter().for_each(|study| headline(study, &mut page));
    page
}

/// What the line of a study is called.
#[must_use]
pub fn of_study(name: &str, form: Form) -> String {
    let form = match form {
        Form::Full => "",
        Form::Published => ", published rows",
        Form::Quick => ", quick form",
    };
    format!("[{name}](#{name}){form}")
}

/// The line of the scoreboard for `name`.
#[must_use]
pub fn score_line(name: &str, score: Score) -> String {
    let (in_band, published) = (score.in_band, score.published());
    let share = 100.0 * in_band as f64 / published.max(1) as f64;
    let (tested, missed) = (score.cause_tested, score.not_reproduced);
    let own = match score.own() {
        0 => "–".to_owned(),
        own => format!("{} of {own}", score.holds),
    };
    format!("| {name} | {in_band} of {published} | {share:.0} % | {tested} | {missed} | {own} |")
}

/// The headline numbers of `study`.
fn headline(study: &StudyResults, page: &mut String) {
    let rows: Vec<&FigureRow> = study.rows().filter(|row| row.headline).collect();
    let _ = write!(page, "\n## {}\n\n{}\n", study.study, study.publication);
    if rows.is_empty() {
        return;
    }
    page.push_str("\n| figure | number | published | ours | unit | verdict |\n");
    page.push_str("|---|---|---|---|---|---|\n");
    for row in rows {
        let result = &row.result;
        let published = match (result.target, result.low, result.high) {
            (Some(target), _, _) => number(Some(target)),
            (None, Some(low), Some(high)) => {
                format!("{} – {}", number(Some(low)), number(Some(high)))
            }
            (None, Some(low), None) => format!("≥ {}", number(Some(low))),
            (None, None, high) => format!("≤ {}", number(high)),
        };
        let (figure, name, unit) = (&result.figure, &result.row, &result.unit);
        let (ours, verdict) = (number(result.measured), result.verdict.name());
        let _ = writeln!(page, "| {figure} | {name} | {published} | {ours} | {unit} | {verdict} |");
    }
}
