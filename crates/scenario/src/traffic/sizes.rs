//! How long the messages of a `[traffic]` table are: a size, or a distribution.

use units::Bytes;
use workload::SizeDist;

use super::Context;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::document::Value;
use crate::files;
use crate::reader::{Knob, Reader};

/// How long the messages of a table are.
pub(super) enum Sizes {
    /// They never end.
    Unbounded,
    /// Drawn from this; a fixed size is a distribution, too.
    Drawn(SizeDist),
}

/// A size or "unbounded", as one writes it.
struct Size(Option<u64>);

/// Larger messages than this are refused: 1 PB takes ten days at 10 Gb/s.
const SIZE_MAX: u64 = 1_000_000_000_000_000;

impl Knob for Size {
    const EXAMPLE: &'static str = "\"135KB\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "unbounded" => Ok(Self(None)),
            _ => match Bytes::read(value)? {
                Bytes(0) => Err("a message needs at least one byte".to_owned()),
                Bytes(n) if n > SIZE_MAX => Err(format!("{n} bytes is more than {SIZE_MAX}")),
                Bytes(n) => Ok(Self(Some(n))),
            },
        }
    }
    fn show(&self) -> toml::Value {
        self.0.map_or_else(|| toml::Value::String("unbounded".to_owned()), |n| Bytes(n).show())
    }
}

/// The size `key`, of something that ends, if it is there.
pub(super) fn fixed_size(
    table: &mut Reader<'_>,
    key: &'static str,
) -> Result<Option<u64>, Diagnostic> {
    match table.maybe(key)? {
        Some(Size(None)) => Err(never_ends(table, key)),
        Some(Size(size)) => Ok(size),
        None => Ok(None),
    }
}

fn never_ends(table: &Reader<'_>, key: &str) -> Diagnostic {
    let message = "messages that come one after another must end";
    let error = table.error(key, message, "never ends");
    error.hint("give a size such as \"135KB\"")
}

pub(super) fn drawn_sizes(
    table: &mut Reader<'_>,
    context: &Context<'_>,
) -> Result<SizeDist, Diagnostic> {
    match sizes(table, context, false)? {
        Sizes::Drawn(dist) => Ok(dist),
        Sizes::Unbounded => Err(never_ends(table, "size")),
    }
}

/// Exactly one of `size`, `distribution` (a published one) and `distribution_file` (points).
pub(super) fn sizes(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    may_be_unbounded: bool,
) -> Result<Sizes, Diagnostic> {
    const KEYS: [&str; 3] = ["size", "distribution", "distribution_file"];
    let given: Vec<&str> = KEYS.into_iter().filter(|key| table.has(key)).collect();
    if let [_, second, ..] = given.as_slice() {
        let message = format!("`{}` and `{second}` exclude each other", given[0]);
        return Err(table.error(second, message, "one too many").hint("remove one of them"));
    }
    if let Some(Size(size)) = table.maybe("size")? {
        return Ok(size.map_or(Sizes::Unbounded, |n| Sizes::Drawn(SizeDist::fixed(n))));
    }
    let dist = if let Some(name) = table.maybe::<String>("distribution")? {
        SizeDist::shipped(&name).ok_or_else(|| {
            let names: Vec<&str> = SizeDist::names().collect();
            let error =
                table.error("distribution", format!("unknown distribution `{name}`"), "here");
            error.hint(did_you_mean(&name, &names))
        })?
    } else if table.has("distribution_file") {
        let file = files::read(table, "distribution_file", context.dir)?;
        let dist = workload::read_sizes(&file.source.text, &file.source.name);
        dist.map_err(|e| files::located(&file.source, &e))?
    } else {
        let unbounded = if may_be_unbounded { " or \"unbounded\"" } else { "" };
        let hint = format!("add `size = \"135KB\"`{unbounded}, or `distribution = \"web-search\"`");
        return Err(table.missing("size", &hint));
    };
    describe(table, &dist)?;
    Ok(Sizes::Drawn(dist))
}

/// Say in the resolved scenario what a distribution is. When that is read again, it is a comment.
fn describe(table: &mut Reader<'_>, dist: &SizeDist) -> Result<(), Diagnostic> {
    let _ = table.table("about")?;
    let about = dist.about();
    let (smallest, largest) = dist.range();
    let sampling = dist.sampling().map(|s| format!("{s:?}").to_lowercase());
    let rows = [
        ("title", about.title.clone()),
        ("publication", about.publication.clone()),
        ("source", about.source.clone()),
        ("sampling", sampling.unwrap_or_default()),
        ("mean_bytes", format!("{:.1}", dist.mean())),
        ("smallest", Bytes(smallest).to_string()),
        ("largest", Bytes(largest).to_string()),
    ];
    let rows = rows.into_iter().map(|(key, text)| (key.to_owned(), toml::Value::String(text)));
    table.keep("about", rows.collect());
    Ok(())
}
