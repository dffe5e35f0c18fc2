//! How long the messages of a `[traffic]` table are: a size, or a distribution.

use units::Bytes;
use workload::SizeDist;

use super::Context;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::document::Value;
use crate::files;
use crate::reader::Reader;
use crate::value::{Form, Refused, ScenarioValue};

/// The keys of a size: a fixed one, a published distribution, points of one; and where the resolved
/// scenario says what a distribution is.
pub(super) struct SizeKeys {
    size: &'static str,
    distribution: &'static str,
    file: &'static str,
    about: &'static str,
}

/// How long messages are.
const MESSAGES: SizeKeys = SizeKeys {
    size: "size",
    distribution: "distribution",
    file: "distribution_file",
    about: "about",
};
/// How long the requests of calls are.
pub(super) const REQUESTS: SizeKeys = SizeKeys {
    size: "request",
    distribution: "request_distribution",
    file: "request_distribution_file",
    about: "about_request",
};
/// How long the responses of calls are.
pub(super) const RESPONSES: SizeKeys = SizeKeys {
    size: "response",
    distribution: "response_distribution",
    file: "response_distribution_file",
    about: "about_response",
};

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

impl ScenarioValue for Size {
    fn form() -> Form {
        Bytes::form().or_word("unbounded")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "unbounded" => Ok(Self(None)),
            _ => match Bytes::read(value)? {
                Bytes(0) => Err("a message needs at least one byte".to_owned().into()),
                Bytes(n) if n > SIZE_MAX => {
                    Err(format!("{n} bytes is more than {SIZE_MAX}").into())
                }
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

/// The sizes of messages that end.
pub(super) fn drawn_sizes(
    table: &mut Reader<'_>,
    context: &Context<'_>,
) -> Result<SizeDist, Diagnostic> {
    drawn_sizes_of(table, context, &MESSAGES)
}

/// The sizes that `keys` give, of messages that end.
pub(super) fn drawn_sizes_of(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    keys: &SizeKeys,
) -> Result<SizeDist, Diagnostic> {
    match sizes_of(table, context, keys, false)? {
        Sizes::Drawn(dist) => Ok(dist),
        Sizes::Unbounded => Err(never_ends(table, keys.size)),
    }
}

/// The sizes of messages.
pub(super) fn sizes(table: &mut Reader<'_>, context: &Context<'_>) -> Result<Sizes, Diagnostic> {
    sizes_of(table, context, &MESSAGES, true)
}

/// Exactly one of a size, a published distribution and points of one.
fn sizes_of(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    keys: &SizeKeys,
    may_be_unbounded: bool,
) -> Result<Sizes, Diagnostic> {
    let SizeKeys { size, distribution, file, about } = *keys;
    let given: Vec<&str> =
        [size, distribution, file].into_iter().filter(|key| table.has(key)).collect();
    if let [first, second, ..] = given.as_slice() {
        let message = format!("`{first}` and `{second}` exclude each other");
        return Err(table.error(second, message, "one too many").hint("remove one of them"));
    }
    if let Some(Size(size)) = table.maybe(size)? {
        return Ok(size.map_or(Sizes::Unbounded, |n| Sizes::Drawn(SizeDist::fixed(n))));
    }
    let dist = if let Some(name) = table.maybe::<String>(distribution)? {
        SizeDist::shipped(&name).ok_or_else(|| {
            let names: Vec<&str> = SizeDist::names().collect();
            let error = table.error(distribution, format!("unknown distribution `{name}`"), "here");
            error.hint(did_you_mean(&name, &names))
        })?
    } else if table.has(file) {
        let file = files::read(table, file, context.dir)?;
        let dist = workload::read_sizes(&file.source.text, &file.source.name);
        dist.map_err(|e| files::located(&file.source, &e))?
    } else {
        let unbounded = if may_be_unbounded { " or \"unbounded\"" } else { "" };
        let hint =
            format!("add `{size} = \"135KB\"`{unbounded}, or `{distribution} = \"web-search\"`");
        return Err(table.missing(size, &hint));
    };
    describe(table, &dist, about)?;
    Ok(Sizes::Drawn(dist))
}

/// Say in the resolved scenario what a distribution is. When that is read again, it is a comment.
fn describe(table: &mut Reader<'_>, dist: &SizeDist, key: &'static str) -> Result<(), Diagnostic> {
    let _ = table.table(key)?;
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
    table.keep(key, rows.collect());
    Ok(())
}
