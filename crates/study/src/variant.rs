//! Variants that are not what they seem: they change nothing, or what another one changes.

use std::path::Path;

use scenario::{Diagnostic, Scenario, Variant};

use crate::Checked;
use crate::run::{Edit, Point, Run, given, option};

/// That each variant of the scenario `file`, with the `edits` of the command line, is a scenario.
///
/// # Errors
/// The first thing that is wrong, where it stands in the variant.
pub fn check_variants(file: &Path, edits: &[String]) -> Result<(), Diagnostic> {
    let (_, variants) = Scenario::name_and_variants(file)?;
    let edits: Vec<Edit> = edits.iter().map(|edit| option(edit)).collect();
    for variant in variants {
        let at = given("the command line", &file.display().to_string());
        let run = Run::plain(variant.name().to_owned(), file, at, Vec::new(), edits.clone());
        run.with_variant(Some(variant)).scenario(&Point::new(), false, (1, None))?;
    }
    Ok(())
}

/// Warnings about the variants in the scenario `file`. `edits` are those of the command line.
pub(crate) fn without_effect(file: &Path, edits: &[String]) -> Checked<Vec<Diagnostic>> {
    let (_, variants) = Scenario::name_and_variants(file)?;
    let mut warnings = Vec::new();
    let mut known: Vec<(u128, &str)> = Vec::new();
    for variant in &variants {
        // What is wrong in it is said where it is planned.
        let Some(identity) = identity(file, variant, edits) else { continue };
        let same = known.iter().find(|(other, _)| *other == identity);
        let base = || Some(Scenario::load(file, edits).ok()?.identity());
        if let Some((_, other)) = same {
            let message = format!("the variants `{other}` and `{}` are the same", variant.name());
            warnings.push(variant.warning(message, "this one").hint("leave out one of them"));
        } else if !variant.edits().is_empty() && base() == Some(identity) {
            let message = format!("the variant `{}` changes nothing", variant.name());
            let hint = "its edits say what the scenario says already; for the scenario as it \
                        stands leave out `set`";
            warnings.push(variant.warning(message, "this one").hint(hint));
        }
        known.push((identity, variant.name()));
    }
    Ok(warnings)
}

fn identity(file: &Path, variant: &Variant, edits: &[String]) -> Option<u128> {
    let own = variant.edits().iter().map(|(edit, _)| edit.clone());
    let all: Vec<String> = own.chain(edits.iter().cloned()).collect();
    Some(Scenario::load(file, &all).ok()?.identity())
}
