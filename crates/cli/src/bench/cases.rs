//! What `trimline bench` runs.

use scenario::{Diagnostic, Error};

/// A fixed scenario.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! case {
    ($name:literal, $file:literal) => {
        Case { name: $name, text: include_str!(concat!("../../../../scenarios/", $file)) }
    };
}

/// What runs unless `--case` says otherwise.
const CASES: &[Case] = &[
    case!("ndp-permutation-432", "ndp_permutation_432.toml"),
    case!("ndp-incast-432to1", "bench/ndp_incast_432to1.toml"),
    case!("ndp-incast-8192to1", "bench/ndp_incast_8192to1.toml"),
    case!("newreno-websearch-128", "bench/newreno_websearch_128.toml"),
    case!("ndp-leaf-spine-1024-400g", "bench/ndp_leaf_spine_1024_400g.toml"),
    case!("ndp-permutation-8192", "bench/ndp_permutation_8192.toml"),
];

/// Too small to measure anything: shows in a second that the command works.
const QUICK: Case = case!("quick", "first.toml");

/// The cases called `names`; without names, all but [`QUICK`].
pub(super) fn chosen(names: &[String]) -> Result<Vec<&'static Case>, Error> {
    if names.is_empty() {
        return Ok(CASES.iter().collect());
    }
    names.iter().map(|name| find(name)).collect()
}

fn find(name: &str) -> Result<&'static Case, Error> {
    let mut all = CASES.iter().chain([&QUICK]);
    all.clone().find(|case| case.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.by_ref().map(|case| case.name).collect();
        let hint = format!("there is {}", names.join(", "));
        Diagnostic::new(format!("unknown bench case `{name}`")).hint(hint).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_scenario() {
        for case in CASES.iter().chain([&QUICK]) {
            let here = std::path::Path::new(".");
            assert!(scenario::Scenario::parse(case.name, case.text, here, &[]).is_ok());
        }
    }
}
