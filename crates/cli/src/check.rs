//! `trimline check`: what a scenario will do, and what looks wrong in it.

use std::io::IsTerminal;

use scenario::Scenario;

use crate::{Ended, args, say, table, tell};

/// `trimline check`. Warnings are no error: a scenario may mean what looks wrong.
pub(crate) fn check(args: &args::Check) -> Ended {
    let scenario = Scenario::load(&args.file, &args.edits.all())?;
    say(table::forecast(scenario.name(), scenario.forecast()))?;
    let colour = std::io::stderr().is_terminal();
    scenario.warnings().iter().for_each(|warning| tell(warning.render(colour)));
    say(match scenario.warnings().len() {
        0 => "nothing looks wrong".to_owned(),
        1 => "1 warning".to_owned(),
        several => format!("{several} warnings"),
    })
}
