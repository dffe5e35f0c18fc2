//! astra-sim's JSON file of a system, as far as it says how collectives are carried out.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use workload::text::{Parsed, Source, Word, one_of};

use crate::collective::Algorithm;
use crate::readers::{File, ReadError, Warnings, json_error, text_of};

/// Into how many pieces a collective can be cut.
const SPLITS_MAX: u32 = 256;

const ALGORITHMS: [(&str, Algorithm); 7] = [
    ("ring", Algorithm::Ring),
    ("oneRing", Algorithm::Ring),
    ("doubleBinaryTree", Algorithm::Tree),
    ("halvingDoubling", Algorithm::HalvingDoubling),
    ("oneHalvingDoubling", Algorithm::HalvingDoubling),
    ("direct", Algorithm::Direct),
    ("oneDirect", Algorithm::Direct),
];

const OTHERS_DIFFER: &str =
    "collectives with another implementation than all-reduce, whose algorithm is used for all";
const KEYS_IGNORED: &str = "keys of the system file that do not count here: \
                            preferred-dataset-splits, active-chunks-per-dimension and the \
                            implementations of collectives do";

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct System {
    /// Collectives are cut into so many pieces.
    pub(super) splits: u32,
    /// Of which so many run at a time.
    pub(super) active: u32,
    pub(super) algorithm: Option<Algorithm>,
}

impl Default for System {
    /// Without a file.
    fn default() -> Self {
        Self { splits: 1, active: 1, algorithm: None }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "an object")]
struct Json {
    preferred_dataset_splits: Option<u32>,
    active_chunks_per_dimension: Option<u32>,
    all_reduce_implementation: Option<Vec<String>>,
    reduce_scatter_implementation: Option<Vec<String>>,
    all_gather_implementation: Option<Vec<String>>,
    all_to_all_implementation: Option<Vec<String>>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// Read the file.
///
/// # Errors
/// What is not such an object, numbers of pieces out of range, collectives over several dimensions,
/// algorithms that do not exist.
pub(super) fn read(file: &File<'_>, warnings: &mut Warnings) -> Result<System, ReadError> {
    let source = Source::new(text_of(file)?, file.name);
    let hint = "astra-sim's examples/system/native_collectives has such files";
    let json: Json = serde_json::from_str(source.text())
        .map_err(|error| json_error(&source, &error, "not a system of astra-sim", hint))?;
    let splits = pieces(&source, "preferred-dataset-splits", json.preferred_dataset_splits)?;
    let active = pieces(&source, "active-chunks-per-dimension", json.active_chunks_per_dimension)?;
    let all_reduce = algorithm(&source, json.all_reduce_implementation)?;
    let others = [
        json.reduce_scatter_implementation,
        json.all_gather_implementation,
        json.all_to_all_implementation,
    ];
    for other in others {
        if algorithm(&source, other)?.is_some_and(|other| all_reduce != Some(other)) {
            warnings.count(OTHERS_DIFFER);
        }
    }
    if !json.others.is_empty() {
        warnings.add(KEYS_IGNORED, json.others.len() as u64);
    }
    Ok(System { splits, active, algorithm: all_reduce })
}

fn pieces(source: &Source<'_>, key: &str, number: Option<u32>) -> Parsed<u32> {
    match number.unwrap_or(1) {
        number @ 1..=SPLITS_MAX => Ok(number),
        number => {
            let message = format!("{key} is out of range");
            let hint = format!("write 1 to {SPLITS_MAX}");
            Err(source.wrong(found(source, key, &number.to_string()), message, hint))
        }
    }
}

fn algorithm(source: &Source<'_>, names: Option<Vec<String>>) -> Parsed<Option<Algorithm>> {
    let Some(names) = names else { return Ok(None) };
    let [name] = names.as_slice() else {
        let message = format!("an implementation for {} dimensions", names.len());
        let hint = "a job's collectives have one dimension: write [\"ring\"]";
        return Err(source.wrong(found(source, "-implementation", ""), message, hint));
    };
    match ALGORITHMS.iter().find(|(known, _)| known == name) {
        Some((_, algorithm)) => Ok(Some(*algorithm)),
        None => {
            let known = ALGORITHMS.map(|(known, _)| known);
            let word = found(source, &format!("\"{name}\""), name);
            Err(source.wrong(word, "unknown implementation", one_of(name, &known)))
        }
    }
}

/// `value` where `value` stands first after `key`; it stands there unless the JSON escapes it.
fn found<'a>(source: &Source<'_>, key: &str, value: &'a str) -> Word<'a> {
    let text = source.text();
    let key = text.find(key).unwrap_or(0);
    let value_at = text.get(key..).and_then(|rest| rest.find(value)).unwrap_or(0);
    Word { text: value, at: source.place(key + value_at) }
}
