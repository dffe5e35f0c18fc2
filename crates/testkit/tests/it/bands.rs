//! No band of a published row is wider than its specification has it.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

/// Lower and upper end.
type Band = (Option<f64>, Option<f64>);

/// What a specification allows.
enum Tolerance {
    Ends(Band),
    Share(f64),
}

fn number(text: &str) -> Option<f64> {
    (text != "-").then(|| text.parse().expect("a number or -"))
}

/// By figure: how names of rows begin, and what is allowed to them.
fn tolerances() -> BTreeMap<&'static str, Vec<(&'static str, Tolerance)>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in include_str!("bands.txt").lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let (figure, name, tolerance) = match cells.as_slice() {
            [figure, name, low, high] => {
                (figure, name, Tolerance::Ends((number(low), number(high))))
            }
            [figure, name, share] => (figure, name, Tolerance::Share(share.parse().unwrap())),
            _ => panic!("{line}"),
        };
        all.entry(*figure).or_default().push((*name, tolerance));
    }
    all
}

/// The targets of a row, none if it has only a bound, and its band around each.
fn bands(row: &Table) -> Vec<(Option<f64>, Band)> {
    let key = |key: &str| row.get(key).map(float);
    let of = |target: Option<f64>| {
        let half = key("plus_minus").or(key("within").zip(target).map(|(w, t)| (w * t).abs()));
        let band = match half.zip(target) {
            Some((half, target)) => (Some(target - half), Some(target + half)),
            None => (key("low"), key("high")),
        };
        (target, band)
    };
    match row.get("points").and_then(Value::as_array) {
        Some(points) => {
            let target = |point: &Value| point.as_array().map(|pair| float(&pair[1]));
            points.iter().map(|point| of(target(point))).collect()
        }
        None => {
            let other = row.get("contradicted").and_then(Value::as_table).map(bands);
            [vec![of(key("target"))], other.unwrap_or_default()].concat()
        }
    }
}

fn float(value: &Value) -> f64 {
    value.as_float().or(value.as_integer().map(|n| n as f64)).expect("a number")
}

/// Whether the band is within the tolerance, but for rounding.
fn is_as_narrow((target, (low, high)): (Option<f64>, Band), tolerance: &Tolerance) -> bool {
    let (least, most) = match (tolerance, target) {
        (Tolerance::Ends(band), _) => *band,
        (Tolerance::Share(share), Some(target)) => {
            let half = (target * share).abs() + 1e-9;
            (Some(target - half), Some(target + half))
        }
        (Tolerance::Share(_), None) => return false,
    };
    least.is_none_or(|least| low.is_some_and(|low| low >= least))
        && most.is_none_or(|most| high.is_some_and(|high| high <= most))
}

#[test]
fn no_band_is_wider_than_its_specification() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    for (figure, tolerances) in tolerances() {
        let text = std::fs::read_to_string(studies.join(figure).join("figure.toml")).unwrap();
        let file: Table = text.parse().unwrap();
        let mut met = vec![0; tolerances.len()];
        for row in file["row"].as_array().unwrap() {
            let row = row.as_table().unwrap();
            let id = row["id"].as_str().unwrap();
            if row["origin"].as_str() != Some("published") {
                continue;
            }
            // Of several beginnings the longest is meant.
            let begins = tolerances.iter().enumerate().filter(|(_, (name, _))| {
                let rest = id.strip_prefix(name);
                rest.is_some_and(|rest| {
                    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                })
            });
            let Some((i, (_, tolerance))) = begins.max_by_key(|(_, (name, _))| name.len()) else {
                continue;
            };
            met[i] += 1;
            for band in bands(row) {
                assert!(is_as_narrow(band, tolerance), "{figure}: `{id}` has the band {band:?}");
            }
        }
        let unmet = met.iter().position(|n| *n == 0).map(|i| tolerances[i].0);
        assert_eq!(unmet, None, "{figure}: no published row is called so");
    }
}
