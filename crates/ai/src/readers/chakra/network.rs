//! astra-sim's JSON file of a network for its ns-3 front end, as far as it says how many ranks
//! there are: the fabric is the scenario's.

use serde_json::{Map, Value};
use workload::text::Source;

use crate::readers::{File, ReadError, Warnings, json_error, text_of};

const DIMENSIONS: &str =
    "dimensions of the network file beyond one: collectives run over their whole group";
const KEYS_IGNORED: &str = "keys of the network file that do not count here: logical-dims does";
const DIMS: &str = "logical-dims";

/// Check that the network of the file has `ranks` ranks.
///
/// # Errors
/// What is no such object, and another number of ranks.
pub(super) fn check(file: &File<'_>, ranks: u32, warnings: &mut Warnings) -> Result<(), ReadError> {
    let source = Source::new(text_of(file)?, file.name);
    let hint = "astra-sim's ns-3 front end has such files: {\"logical-dims\": [\"8\"]}. Those of its \
                analytical one are YAML and describe a fabric, which is [topology] here";
    let json: Map<String, Value> = serde_json::from_str(source.text())
        .map_err(|error| json_error(&source, &error, "not a network of astra-sim", hint))?;
    let at = source.place(source.text().find(DIMS).unwrap_or(0));
    let wrong = |message: &str, hint: &str| Err(source.missing(at, message, hint).into());
    let Some(dims) = json.get(DIMS) else {
        return wrong("not a network of astra-sim: there is no `logical-dims`", hint);
    };
    let Some(sizes) = sizes(dims) else {
        return wrong("logical-dims are not numbers in quotes", hint);
    };
    // Without end, at most: more ranks than any trace has.
    let product = sizes.iter().fold(1_u64, |all, size| all.saturating_mul(u64::from(*size)));
    if product != u64::from(ranks) {
        let message = format!("a network of {product} ranks, and the trace has {ranks}");
        return wrong(&message, "give the network that the trace was made for, or leave it out");
    }
    if sizes.len() > 1 {
        warnings.add(DIMENSIONS, sizes.len() as u64 - 1);
    }
    if json.len() > 1 {
        warnings.add(KEYS_IGNORED, json.len() as u64 - 1);
    }
    Ok(())
}

/// A list of numbers in quotes.
fn sizes(dims: &Value) -> Option<Vec<u32>> {
    dims.as_array()?.iter().map(|size| size.as_str()?.parse().ok()).collect()
}
