//! How long the messages of a `[traffic]` table are: a size, or a distribution.

use std::path::PathBuf;

use units::Bytes;
use workload::SizeDist;

use super::{Context, Written};
use crate::diagnostic::Checked;
use crate::distribution;
use crate::document::Value;
use crate::files;
use crate::key::keys;
use crate::reader::Reader;
use crate::value::{Form, Or, Refused, ScenarioValue, Unbounded};

keys! { "traffic.sizes" SIZES: Written {
    size (maybe lengths.size): Size,
        "every message has this size, of `partition-aggregate` every answer of a worker. \
         `\"unbounded\"` (the first five kinds): it never ends"
            .range("1 B to 10^15 B").default("one of the three is required");
    distribution (maybe lengths.distribution): String,
        "sizes are drawn from a published distribution".range("[below](#size-distributions)")
            .default("");
    distribution_file (maybe lengths.file): PathBuf,
        "sizes are drawn from points in a file".default("");
}}

/// What says how long messages are, one of them.
#[derive(Default)]
pub(super) struct Lengths {
    /// Within, `None`: unbounded.
    pub(super) size: Option<Option<Length>>,
    pub(super) distribution: Option<String>,
    pub(super) file: Option<PathBuf>,
}

/// The keys of a size: a fixed one, a published distribution, points of one; and where the resolved
/// scenario says what a distribution is.
pub(super) struct SizeKeys {
    pub(super) keys: [&'static str; 3],
    about: &'static str,
    lengths: fn(&Written) -> &Lengths,
}

/// How long messages are.
pub(super) const MESSAGES: SizeKeys = SizeKeys {
    keys: ["size", "distribution", "distribution_file"],
    about: "about",
    lengths: |written| &written.lengths,
};
/// How long the requests of calls are.
pub(super) const REQUESTS: SizeKeys = SizeKeys {
    keys: ["request", "request_distribution", "request_distribution_file"],
    about: "about_request",
    lengths: |written| &written.request,
};
/// How long the responses of calls are.
pub(super) const RESPONSES: SizeKeys = SizeKeys {
    keys: ["response", "response_distribution", "response_distribution_file"],
    about: "about_response",
    lengths: |written| &written.response,
};

/// A size or "unbounded", as one writes it.
pub(super) type Size = Or<Unbounded, Length>;

/// The size of messages that end, bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Length(pub(super) u64);

/// Larger messages than this are refused: 1 PB takes ten days at 10 Gb/s.
const SIZE_MAX: u64 = 1_000_000_000_000_000;

const MUST_END: &str = "messages that come one after another must end";

impl ScenarioValue for Length {
    fn form() -> Form {
        Bytes::form()
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "unbounded" => Err(MUST_END.to_owned().into()),
            _ => match Bytes::read(value)? {
                Bytes(0) => Err("a message needs at least one byte".to_owned().into()),
                Bytes(n) if n > SIZE_MAX => {
                    Err(format!("{n} bytes is more than {SIZE_MAX}").into())
                }
                Bytes(n) => Ok(Self(n)),
            },
        }
    }
    fn show(&self) -> toml::Value {
        Bytes(self.0).show()
    }
}

/// The sizes that `keys` give, of messages that end.
pub(super) fn drawn_sizes(cx: &mut Context<'_, '_>, keys: &SizeKeys) -> Checked<SizeDist> {
    sizes(cx, keys, "")?.ok_or_else(|| {
        cx.table.error(keys.keys[0], MUST_END, "never ends").hint("give a size such as \"135KB\"")
    })
}

/// Exactly one of a size, a published distribution and points of one; `None`: messages that never
/// end, which a hint may offer as `unbounded`.
pub(super) fn sizes(
    cx: &mut Context<'_, '_>,
    keys: &SizeKeys,
    unbounded: &str,
) -> Checked<Option<SizeDist>> {
    let [size, distribution, file] = keys.keys;
    let hint = format!("add `{size} = \"135KB\"`{unbounded}, or `{distribution} = \"web-search\"`");
    cx.table.one_of(&keys.keys, &hint)?;
    let lengths = (keys.lengths)(&cx.written);
    if let Some(size) = lengths.size {
        return Ok(size.map(|Length(bytes)| SizeDist::fixed(bytes)));
    }
    let dist = match &lengths.distribution {
        Some(name) => distribution::shipped(cx.table, distribution, name)?,
        None => {
            let file = files::read(cx.table, file, cx.dir)?;
            let dist = workload::read_sizes(&file.source.text, &file.source.name);
            dist.map_err(|e| files::located(&file.source, &e))?
        }
    };
    describe(cx.table, &dist, keys.about)?;
    Ok(Some(dist))
}

/// Say in the resolved scenario what a distribution is. When that is read again, it is a comment.
fn describe(table: &mut Reader<'_>, dist: &SizeDist, key: &'static str) -> Checked<()> {
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
