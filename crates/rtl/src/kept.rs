//! Designs that have been built, kept by their texts and by what has built them: each is built once
//! for all runs.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::runtime::{self, Waves};
use crate::sim::{Design, Program, SimError};
use crate::tools::Tools;

/// Builds of this process: sweeps read scenarios side by side.
static BUILDS: AtomicU64 = AtomicU64::new(0);

/// Where they are.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::temp_dir().join("trimline-rtl")
}

/// The design of `texts`, names and texts of its sources, whose ports are those of `ports`.
///
/// # Errors
/// It cannot be built.
pub fn built(
    tools: &Tools,
    texts: &[(String, String)],
    ports: &Design,
) -> Result<Program, SimError> {
    let name = name(tools, texts, ports);
    let folder = folder().join(&name);
    if !folder.join("simulation").exists() {
        let nth = BUILDS.fetch_add(1, Ordering::Relaxed);
        let own = folder.with_file_name(format!("{name}.{}.{nth}", std::process::id()));
        ports.written(texts, &own)?.build(tools, &own)?;
        // Where somebody was quicker, theirs is the same.
        if fs::rename(&own, &folder).is_err() {
            fs::remove_dir_all(&own)?;
        }
    }
    Ok(ports.program(&folder))
}

/// The same for two that are the same simulation.
fn name(tools: &Tools, texts: &[(String, String)], ports: &Design) -> String {
    ports.key(runtime::key(tools, Waves::No), texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Port;

    #[test]
    fn everything_that_makes_a_simulation_names_it() {
        let texts = |text: &str| vec![("a.sv".to_owned(), text.to_owned())];
        let port = |bits| vec![Port::new("a_i", bits)];
        let design = Design {
            top: "a".into(),
            sources: Vec::new(),
            parameters: Vec::new(),
            inputs: port(3),
            outputs: Vec::new(),
        };
        let parameters = vec![("A".to_owned(), "1".to_owned())];
        let tools = Tools::named("Verilator 5", "c++ 13");
        let names = [
            name(&tools, &texts("x"), &design),
            name(&Tools::named("Verilator 6", "c++ 13"), &texts("x"), &design),
            name(&Tools::named("Verilator 5", "c++ 14"), &texts("x"), &design),
            name(&tools, &texts("y"), &design),
            name(&tools, &texts("x"), &Design { top: "b".into(), ..design.clone() }),
            name(&tools, &texts("x"), &Design { inputs: port(40), ..design.clone() }),
            name(&tools, &texts("x"), &Design { parameters, ..design.clone() }),
        ];
        for (at, one) in names.iter().enumerate() {
            assert!(!names[..at].contains(one), "{at}: {names:?}");
        }
        assert_eq!(names[0], name(&tools, &texts("x"), &design));
    }
}
