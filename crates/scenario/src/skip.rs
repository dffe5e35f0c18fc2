//! `engine.skip`: what a run that skips time has no answer to. Such a run is refused, with the line
//! and what does answer.

use fabric::SkipSpec;
use metrics::{FctUs, RelativeError, Summary, Verified};

use crate::diagnostic::{Checked, Diagnostic};
use crate::error::Error;
use crate::level::Asked;
use crate::reader::Reader;
use crate::run::{OnProgress, Options, evaluate};
use crate::scenario::Scenario;

/// When time is skipped.
pub(crate) fn spec(tolerance: f64) -> SkipSpec {
    // The range of the key keeps it from 1 to 999 999.
    SkipSpec { tolerance_ppm: ppm(tolerance), exact_ppm: 0 }
}

/// A share in millionths.
pub(crate) fn ppm(share: f64) -> u32 {
    (share * 1e6).round() as u32
}

/// What is said of what only an exact run answers.
const EXACT: &str = "an exact run has it: `engine.skip = false`";

/// That everything asked of the run can be answered although packets are left out.
pub(crate) fn answers(asked: &Asked<'_, '_>) -> Checked<()> {
    let (table, measure) = asked.measure;
    if let Some(key) = measure.of_packets() {
        let message = "what is measured here is of each packet, and `engine.skip` leaves some out";
        return Err(table.error(key, message, "here").hint(EXACT));
    }
    asked.transport.iter().try_for_each(shortens)
}

/// That this transport can make a message shorter on its way.
fn shortens(table: &Reader<'_>) -> Checked<()> {
    let word = |key: &str| table.peek::<String>(key).unwrap_or_default();
    let refuse = |key: &'static str, what: &str| {
        let error = table.error(key, format!("`engine.skip` cannot shorten {what}"), "here");
        let hint = "ndp, uet, tcp (not d2tcp, not with PIAS) and rdma (write, rule none) can";
        Err(error.hint(format!("{hint}; {EXACT}")))
    };
    match word("kind").as_str() {
        "ndp" | "uet" => Ok(()),
        "tcp" if word("rule") == "d2tcp" => {
            refuse("rule", "a message with a deadline, which comes in skipped time")
        }
        "tcp" if table.has("pias_thresholds") => {
            refuse("pias_thresholds", "a message whose class follows from what it has sent")
        }
        "tcp" => Ok(()),
        "rdma" if word("operation") == "read" => {
            refuse("operation", "a message that its receiver asks for")
        }
        "rdma" if word("rule") != "none" => {
            refuse("rule", "a message whose rate goes on changing for longer than windows are")
        }
        "rdma" => Ok(()),
        kind => refuse("kind", &format!("the messages of `{kind}`")),
    }
}

/// That everything asked of the command line can be answered.
pub(crate) fn check(options: &Options) -> Checked<()> {
    match options.of_packets() {
        Some(what) => {
            let message = format!("{what} is of each packet, and `engine.skip` leaves some out");
            Err(Diagnostic::new(message).hint("`--set engine.skip=false`"))
        }
        None => Ok(()),
    }
}

/// Run `scenario` again with `share` of what it skips simulated, and compare it with what `ran`.
pub(crate) fn verify(
    scenario: &Scenario,
    options: &Options,
    (share, summary): (f64, &Summary),
    progress: OnProgress<'_>,
) -> Result<Verified, Error> {
    let options = Options { verify: None, exact: Some(share), ..options.clone() };
    let other = evaluate(scenario, &options, progress)?.summary;
    let error = |of: fn(&FctUs) -> Option<f64>| {
        let (exact, skipped) = (of(&other.flows.fct_us)?, of(&summary.flows.fct_us)?);
        (exact > 0.0).then(|| skipped / exact - 1.0)
    };
    Ok(Verified {
        share: Some(share),
        skipped: Some(other.skipped.share),
        wall_s: Some(other.wall_s),
        fct_error: RelativeError {
            mean: error(|fct| fct.mean),
            p50: error(|fct| fct.p50),
            p99: error(|fct| fct.p99),
        },
    })
}

/// That there is something to verify.
pub(crate) fn check_verify(scenario: &Scenario, options: &Options) -> Checked<()> {
    match options.verify {
        Some(_) if scenario.config.skip.is_none() => {
            let message = "`--verify` measures what skipping changes, and nothing is skipped";
            Err(Diagnostic::new(message).hint("`--skip`, or `engine.skip = true`"))
        }
        Some(share) if ppm(share) == 0 => {
            let message = format!("`--verify {share}` simulates nothing of what is skipped");
            Err(Diagnostic::new(message).hint("`--verify 1` simulates all of it"))
        }
        _ => Ok(()),
    }
}
