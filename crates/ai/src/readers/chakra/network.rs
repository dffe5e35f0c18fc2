//! astra-sim's JSON file of a network for its ns-3 front end, as far as it says how many ranks
//! there are: the fabric is the scenario's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use workload::text::Source;

use crate::readers::{File, ReadError, Warnings, json_error, text_of};

const DIMENSIONS: &str =
    "dimensions of the network file beyond one: collectives run over their whole group";
const KEYS_IGNORED: &str = "keys of the network file that do not count here: logical-dims does";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "an object")]
struct Json {
    /// Numbers in quotes.
    logical_dims: Vec<String>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// Check that the network of the file has `ranks` ranks.
///
/// # Errors
/// What is no such object, and another number of ranks.
pub(super) fn check(file: &File<'_>, ranks: u32, warnings: &mut Warnings) -> Result<(), ReadError> {
    let source = Source::new(text_of(file)?, file.name);
    let hint = "astra-sim's ns-3 front end has such files: {\"logical-dims\": [\"8\"]}. Those of its \
                analytical one are YAML and describe a fabric, which is [topology] here";
    let json: Json = serde_json::from_str(source.text())
        .map_err(|error| json_error(&source, &error, "not a network of astra-sim", hint))?;
    let at = source.place(source.text().find("logical-dims").unwrap_or(0));
    let mut sizes = json.logical_dims.iter().map(|size| size.parse::<u32>().ok());
    let product = sizes.try_fold(1_u32, |all, size| all.checked_mul(size?));
    match product {
        Some(product) if product == ranks => {}
        Some(product) => {
            let message = format!("a network of {product} ranks, and the trace has {ranks}");
            let hint = "give the network that the trace was made for, or leave it out";
            return Err(source.missing(at, message, hint).into());
        }
        None => {
            let message = "logical-dims are not numbers in quotes";
            return Err(source.missing(at, message, hint).into());
        }
    }
    if json.logical_dims.len() > 1 {
        warnings.add(DIMENSIONS, json.logical_dims.len() as u64 - 1);
    }
    if !json.others.is_empty() {
        warnings.add(KEYS_IGNORED, json.others.len() as u64);
    }
    Ok(())
}
