//! `trimline check`: what a scenario will do, and what looks wrong in it.

use std::io::IsTerminal;

use scenario::{Diagnostic, Scenario};
use serde::Serialize;
use study::Sweep;

use crate::{Ended, args, say, say_json, table, tell};

/// What is printed, for `--json`.
#[derive(Serialize)]
struct Checked<'a> {
    scenario: &'a str,
    forecast: Vec<Row>,
    warnings: Vec<Warning<'a>>,
}

/// A row of the table. Values are for people, with their units.
#[derive(Serialize)]
struct Row {
    label: String,
    value: String,
}

#[derive(Serialize)]
struct Warning<'a> {
    message: String,
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
}

impl<'a> Checked<'a> {
    fn of(scenario: &'a Scenario) -> Self {
        let row = |(label, value): (String, String)| Row { label: label.trim().to_owned(), value };
        let warning = |warning: &'a Diagnostic| {
            let place = warning.location();
            Warning {
                message: warning.to_string(),
                file: place.map(|(file, ..)| file),
                line: place.map(|(_, line, _)| line),
                column: place.map(|(.., column)| column),
            }
        };
        Self {
            scenario: scenario.name(),
            forecast: scenario.forecast().into_iter().map(row).collect(),
            warnings: scenario.warnings().iter().map(warning).collect(),
        }
    }
}

/// `trimline check`. Warnings are no error: a scenario may mean what looks wrong.
pub(crate) fn check(args: &args::Check) -> Ended {
    let edits = args.edits.all();
    let scenario = Scenario::load(&args.file, &edits)?;
    study::check_variants(&args.file, &edits)?;
    // Edits are those of a run: a sweep may vary what they set.
    if edits.is_empty() && Sweep::is_in(&args.file)? {
        Sweep::load(&args.file, &[], None)?;
    }
    if args.json {
        return say_json(&Checked::of(&scenario));
    }
    say(table::forecast(scenario.name(), scenario.forecast()))?;
    let colour = std::io::stderr().is_terminal();
    scenario.warnings().iter().for_each(|warning| tell(warning.render(colour)));
    say(match scenario.warnings().len() {
        0 => "nothing looks wrong".to_owned(),
        1 => "1 warning".to_owned(),
        several => format!("{several} warnings"),
    })
}
