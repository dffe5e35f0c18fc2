//! `trimline new transport`: a crate of its own with a transport that runs beside those here.

use std::fs;
use std::path::Path;

use scenario::{Diagnostic, Error};

use crate::{Ended, args, say_written};

/// Path and text of each file. NAME is the crate's.
const FILES: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../template/Cargo.toml.in")),
    ("scenario.toml", include_str!("../template/scenario.toml")),
    ("src/main.rs", include_str!("../template/src/main.rs")),
    ("src/transport.rs", include_str!("../template/src/transport.rs")),
];

/// Where the sources are, for who has no checkout.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// `trimline new transport NAME`.
pub(crate) fn transport(args: &args::NewTransport) -> Ended {
    let name = args.name.as_str();
    check_name(name)?;
    let dir = args.dir.clone().unwrap_or_else(|| name.into());
    if dir.exists() {
        let error = Diagnostic::new(format!("{} is there already", dir.display()));
        return Err(error.hint("choose another place with --dir, or remove it").into());
    }
    let sources = args.trimline.as_deref().map(checkout).transpose()?;
    let unwritable = |e: std::io::Error| {
        let error = Diagnostic::new(format!("cannot write {}: {e}", dir.display()));
        Error::from(error.hint("choose another place with --dir"))
    };
    fs::create_dir_all(dir.join("src")).map_err(unwritable)?;
    for (file, text) in FILES {
        fs::write(dir.join(file), filled(text, name, sources.as_deref())).map_err(unwritable)?;
    }
    if let Some(sources) = &args.trimline {
        // The versions of libraries with which these sources were tested.
        fs::copy(sources.join("Cargo.lock"), dir.join("Cargo.lock")).map_err(unwritable)?;
    }
    let said = format!("{0}; try: cd {0} && cargo run --release", dir.display());
    say_written(args.json, &dir, said)
}

/// Names of crates, without capitals.
fn check_name(name: &str) -> Result<(), Diagnostic> {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase());
    let rest = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if first && rest && name.len() <= 40 {
        return Ok(());
    }
    let error = Diagnostic::new(format!("`{name}` is no name for a crate"));
    Err(error.hint("a letter, then letters, digits and dashes, all of them small: my-transport"))
}

/// The absolute path of a checkout.
fn checkout(dir: &Path) -> Result<String, Diagnostic> {
    let wrong = |why: String| {
        let error = Diagnostic::new(format!("--trimline {}: {why}", dir.display()));
        error.hint("the directory of Trimline's sources, with crates/endpoint in it")
    };
    let path = fs::canonicalize(dir).map_err(|e| wrong(e.to_string()))?;
    if !path.join("crates/endpoint/Cargo.toml").is_file() {
        return Err(wrong("no sources of Trimline".to_owned()));
    }
    path.to_str().map(str::to_owned).ok_or_else(|| wrong("its name is no text".to_owned()))
}

/// `text` with the name, and with where Trimline's crates come from.
fn filled(text: &str, name: &str, sources: Option<&str>) -> String {
    let mut filled = text.replace("NAME", name);
    for of in ["endpoint", "scenario", "units"] {
        let from = match sources {
            Some(path) => format!("{{ path = {:?} }}", format!("{path}/crates/{of}")),
            None => format!("{{ git = {REPOSITORY:?} }}"),
        };
        filled = filled.replace(&format!("TRIMLINE({of})"), &from);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_the_sources() {
        let (_, text) = FILES[0];
        let own = filled(text, "x", Some("/src/trimline"));
        assert!(
            own.contains("trimline-units = { path = \"/src/trimline/crates/units\" }"),
            "{own}"
        );
        let other = filled(text, "x", None);
        assert!(other.contains(&format!("{{ git = \"{REPOSITORY}\" }}")), "{other}");
        for text in [own, other] {
            assert!(!text.contains("TRIMLINE(") && !text.contains("NAME"), "{text}");
        }
    }
}
