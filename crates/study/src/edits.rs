//! What edits on the command line may not do: decide what a sweep or a search decides itself.

use crate::Checked;
use crate::run::{Edit, key_of};

/// What runs a scenario many times.
pub(crate) struct Varying {
    /// A sweep or a search.
    noun: &'static str,
    /// Its table in the scenario.
    table: &'static str,
    /// Where its seeds come from.
    seeds: &'static str,
    /// What takes the place of editing that table.
    options: &'static str,
}

pub(crate) const SWEEP: Varying = Varying {
    noun: "sweep",
    table: "sweep",
    seeds: "`seeds` of `[sweep]`, or `--seeds 1-30`",
    options: "`--seeds` and `--until` are options; else change the file",
};

pub(crate) const TUNE: Varying = Varying {
    noun: "search",
    table: "tune",
    seeds: "`seeds` of `[tune]`, or `--seeds 1-30`",
    options: "`--seeds` and `--budget` are options; else change the file",
};

pub(crate) const COMPARISON: Varying = Varying {
    noun: "comparison",
    table: "variant",
    seeds: "`--seeds 1-30`",
    options: "change the file, or name another",
};

/// That `varying` decides on seeds and axes, and nothing else sets them: its own edits `sets`, with
/// names of axes in them, come first, and those on the command line after.
pub(crate) fn check(varying: &Varying, sets: &[Edit], edits: &[Edit]) -> Checked<()> {
    let Varying { noun, table, seeds, options } = varying;
    for (edit, at) in sets.iter().chain(edits) {
        let key = key_of(edit);
        if key == "seed" {
            let error = at.error(format!("a {noun} has its own seeds"), "without effect");
            return Err(error.hint(*seeds));
        }
        if within(key, table) {
            let error = at.error(format!("the {noun} itself is not edited"), "without effect");
            return Err(error.hint(*options));
        }
    }
    for (edit, at) in edits {
        let cancels = |(set, _): &&Edit| {
            let (edit, varied) = (key_of(edit), key_of(set));
            set.contains('{') && (within(edit, varied) || within(varied, edit))
        };
        if let Some((set, _)) = sets.iter().find(cancels) {
            let error = at.error(format!("it cancels `{set}`, which the {noun} varies"), "here");
            return Err(error.hint(format!("take that and its axis out of `[{table}]` first")));
        }
    }
    Ok(())
}

/// Whether `key` is `of`, or below it. A table of a list may be named without its number.
pub(crate) fn within(key: &str, of: &str) -> bool {
    let is_number = |part: &&str| part.parse::<u32>().is_ok();
    let (mut key, mut of): (Vec<&str>, Vec<&str>) =
        (key.split('.').collect(), of.split('.').collect());
    if key.iter().any(is_number) != of.iter().any(is_number) {
        key.retain(|part| !is_number(part));
        of.retain(|part| !is_number(part));
    }
    key.starts_with(&of)
}
