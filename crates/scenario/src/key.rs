//! [`Key`]: the one definition of a key. From tables of keys come the reader, the manifest, the
//! errors, the reference page and the schema.

use crate::document::Value;
use crate::value::{Form, Refused, ScenarioValue};

/// A key of a table that is read into a `C`.
pub(crate) struct Key<C> {
    /// What it is.
    pub(crate) info: Info,
    /// Puts a value that was written into its place.
    pub(crate) read: fn(&mut C, &Value) -> Result<(), Refused>,
    /// Its value; `None` if it has no effect beside the values of other keys.
    pub(crate) show: fn(&C) -> Option<toml::Value>,
}

/// What a key is, wherever its value goes.
#[derive(Clone, Copy)]
pub(crate) struct Info {
    /// As it is written.
    pub(crate) name: &'static str,
    /// One sentence, with source and unit.
    pub(crate) about: &'static str,
    /// Its type.
    pub(crate) form: fn() -> Form,
    /// What values it can have.
    pub(crate) range: Range,
    /// Where its value comes from if it is not written.
    pub(crate) source: Source,
    /// What must be chosen for it to have an effect: `rule = "cubic"`.
    pub(crate) only: &'static str,
    /// What it was called before.
    pub(crate) was: &'static str,
}

/// What values a key can have.
#[derive(Clone, Copy)]
pub(crate) enum Range {
    /// All of its type.
    Any,
    /// In words; the configuration as a whole is checked.
    Words(&'static str),
    /// Bounds that are checked where the value is read.
    Bounds(fn() -> String),
}

/// Where the value of a key comes from if it is not written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From a preset that has it; without one it must be written.
    Preset,
    /// From any preset, which all have the same value.
    AnyPreset,
    /// It must be written: its value changes the science, and no source has it.
    Written,
    /// It has a default, or none is needed; in words, if the value alone does not tell.
    Default(&'static str),
}

impl Info {
    /// A key of which only name, sentence and type are known.
    pub(crate) const fn new(name: &'static str, about: &'static str, form: fn() -> Form) -> Self {
        let (range, source) = (Range::Any, Source::Preset);
        Self { name, about, form, range, source, only: "", was: "" }
    }

    /// With these bounds.
    pub(crate) const fn bounds(self, bounds: fn() -> String) -> Self {
        Self { range: Range::Bounds(bounds), ..self }
    }

    /// What values it can have, in words.
    pub(crate) const fn range(self, range: &'static str) -> Self {
        Self { range: Range::Words(range), ..self }
    }

    /// No preset sets it.
    pub(crate) const fn written(self) -> Self {
        Self { source: Source::Written, ..self }
    }

    /// Every preset sets it.
    pub(crate) const fn any_preset(self) -> Self {
        Self { source: Source::AnyPreset, ..self }
    }

    /// It need not be written; `default` says what holds then, or is empty if the value tells.
    pub(crate) const fn default(self, default: &'static str) -> Self {
        Self { source: Source::Default(default), ..self }
    }

    /// What it takes for it to have an effect.
    pub(crate) const fn only(self, only: &'static str) -> Self {
        Self { only, ..self }
    }

    /// What it was called before.
    pub(crate) const fn was(self, was: &'static str) -> Self {
        Self { was, ..self }
    }

    /// The range as the reference has it.
    fn range_words(&self) -> String {
        let words = (self.form)().words;
        match self.range {
            Range::Words(words) => words.to_owned(),
            Range::Bounds(bounds) => bounds(),
            Range::Any => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// What it is, and what it takes for it to have an effect.
    fn sentence(&self) -> String {
        let colon = if self.only.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", self.only, self.about)
    }

    /// For a hint: name, type and range.
    pub(crate) fn described(&self) -> String {
        let form = (self.form)();
        let range = self.range_words();
        let range = if range.is_empty() { range } else { format!(", {range}") };
        format!("`{} = ...` ({}{range})", self.name, form.name)
    }
}

/// Keys of a `C`, one to a row: `name (place): Type [range], "sentence" .flag(...);`. The place is
/// the field of the same name, a path of fields, the `C` itself (`self`), a pattern in a field, or
/// a pair of functions. With `maybe` the field is an `Option`; with `when` the key has an effect
/// only if the condition holds; with `keep` the numbers in an enum stay as they are if its variant
/// does. A name before the table's is what the reference calls it, and stands beside the keys.
macro_rules! keys {
    ($name:literal $table:ident: $c:ty { $($rows:tt)* }) => {
        pub(super) const $table: (&str, &[$crate::key::Key<$c>]) = {
            $crate::key::keys! { KEYS: $c { $($rows)* } }
            ($name, KEYS)
        };
    };
    ($vis:vis $table:ident: $c:ty {
        $( $name:ident $(( $($place:tt)+ ))? : $k:ty $([ $range:expr ])? , $about:literal
           $( . $flag:ident ( $($arg:expr),* ) )* ; )*
    }) => {
        $vis const $table: &[$crate::key::Key<$c>] = &[$(
            $crate::key::Key {
                info: $crate::key::Info::new(
                    stringify!($name),
                    $about,
                    <$k as $crate::value::ScenarioValue>::form,
                )
                $( .bounds(|| $crate::value::words(&($range))) )?
                $( .$flag($($arg),*) )*,
                read: |c: &mut $c, v: &$crate::document::Value| {
                    let value = $crate::key::value!(v, $k $(, $range)?)?;
                    $crate::key::put!(c, value, $name $(, $($place)+)?);
                    Ok(())
                },
                show: |c: &$c| $crate::key::take!(c, $k, $name $(, $($place)+)?),
            },
        )*];
    };
}

/// Change the variant at `place`. The same one keeps its numbers, which are keys of their own.
pub(crate) fn change<T>(place: &mut T, new: T) {
    if std::mem::discriminant(place) != std::mem::discriminant(&new) {
        *place = new;
    }
}

/// What `get` finds in a configuration, as it is shown.
pub(crate) fn shown_by<C, K: ScenarioValue>(
    config: &C,
    get: fn(&C) -> Option<K>,
) -> Option<toml::Value> {
    get(config).map(|value| value.show())
}

/// Put `value` into a configuration by `set`.
pub(crate) fn set_by<C, K>(config: &mut C, value: K, set: fn(&mut C, K)) {
    set(config, value);
}

/// Whether a key has an effect in `config`.
pub(crate) fn holds<C>(config: &C, when: fn(&C) -> bool) -> bool {
    when(config)
}

/// The value of a key, in its range if it has one.
macro_rules! value {
    ($v:ident, $k:ty) => {
        <$k as $crate::value::ScenarioValue>::read($v)
    };
    ($v:ident, $k:ty, $range:expr) => {
        $crate::value::read_in::<$k>($v, &($range))
    };
}

/// Puts a value into its place.
macro_rules! put {
    ($c:ident, $value:ident, $name:ident) => {
        $c.$name = $value.into()
    };
    ($c:ident, $value:ident, $name:ident, keep $field:ident) => {
        $crate::key::change(&mut $c.$field, $value)
    };
    ($c:ident, $value:ident, $name:ident, self) => {
        *$c = $value.into()
    };
    ($c:ident, $value:ident, $name:ident, maybe $($field:ident).+ $(when $when:expr)?) => {
        $c.$($field).+ = Some($value.into())
    };
    ($c:ident, $value:ident, $name:ident, keep $($field:ident).+ : $pat:pat => $place:expr) => {
        if let $pat = &mut $c.$($field).+ {
            $crate::key::change(&mut $place, $value);
        }
    };
    ($c:ident, $value:ident, $name:ident, $($field:ident).+ $(when $when:expr)?) => {
        $c.$($field).+ = $value.into()
    };
    ($c:ident, $value:ident, $name:ident, $($field:ident).+ : $pat:pat => $place:expr) => {
        if let $pat = &mut $c.$($field).+ {
            $place = $value.into();
        }
    };
    ($c:ident, $value:ident, $name:ident, get $get:expr, set $set:expr) => {
        $crate::key::set_by($c, $value, $set)
    };
}

/// Shows the value in its place, if the place is there.
macro_rules! take {
    (@some $k:ty, $value:expr) => {
        Some($crate::value::ScenarioValue::show(&<$k>::from(Clone::clone(&$value))))
    };
    ($c:ident, $k:ty, $name:ident, self) => {
        $crate::key::take!(@some $k, *$c)
    };
    ($c:ident, $k:ty, $name:ident, maybe $($field:ident).+) => {
        Clone::clone(&$c.$($field).+)
            .map(|value| $crate::value::ScenarioValue::show(&<$k>::from(value)))
    };
    ($c:ident, $k:ty, $name:ident, maybe $($field:ident).+ when $when:expr) => {
        if $crate::key::holds($c, $when) {
            $crate::key::take!($c, $k, $name, maybe $($field).+)
        } else {
            None
        }
    };
    ($c:ident, $k:ty, $name:ident, $($field:ident).+ when $when:expr) => {
        $crate::key::holds($c, $when).then(|| {
            $crate::value::ScenarioValue::show(&<$k>::from(Clone::clone(&$c.$($field).+)))
        })
    };
    ($c:ident, $k:ty, $name:ident) => {
        $crate::key::take!(@some $k, $c.$name)
    };
    ($c:ident, $k:ty, $name:ident, keep $($place:tt)+) => {
        $crate::key::take!($c, $k, $name, $($place)+)
    };
    ($c:ident, $k:ty, $name:ident, $($field:ident).+) => {
        $crate::key::take!(@some $k, $c.$($field).+)
    };
    ($c:ident, $k:ty, $name:ident, $($field:ident).+ : $pat:pat => $place:expr) => {
        if let $pat = &$c.$($field).+ { $crate::key::take!(@some $k, $place) } else { None }
    };
    ($c:ident, $k:ty, $name:ident, get $get:expr, set $set:expr) => {
        $crate::key::shown_by::<_, $k>($c, $get)
    };
}

pub(crate) use {keys, put, take, value};

/// The keys of one table of a scenario, for the reference and the schema.
pub struct Section {
    /// What the reference calls it: `transport.ndp`.
    pub(crate) name: &'static str,
    /// Presets, in the order of the values of each row.
    pub(crate) presets: Vec<&'static str>,
    /// A row for each key.
    pub(crate) rows: Vec<Row>,
}

/// A key in the reference.
pub(crate) struct Row {
    /// What it is.
    pub(crate) info: &'static Info,
    /// Its value in each preset; `None`: it has no effect there, or must be written.
    values: Vec<Option<toml::Value>>,
    /// Its value if nothing is written.
    default: Option<toml::Value>,
}

/// Of the table `name` with `keys`: their values in each of `presets`, and the defaults of `base`.
pub(crate) fn section<C>(
    name: &'static str,
    keys: &'static [Key<C>],
    presets: &[(&'static str, C)],
    base: Option<&C>,
) -> Section {
    let rows = keys.iter().map(|Key { info, show, .. }| {
        let from = |config: &C| match info.source {
            Source::Written => None,
            _ => show(config),
        };
        let values = presets.iter().map(|(_, config)| from(config)).collect();
        let is_default = matches!(info.source, Source::Default(""));
        Row { info, values, default: base.filter(|_| is_default).and_then(from) }
    });
    Section { name, presets: presets.iter().map(|(name, _)| *name).collect(), rows: rows.collect() }
}

/// The same for keys of which every preset has the values of their source: each from the one of
/// `variants` in which it has an effect.
pub(crate) fn section_of_variants<C>(
    name: &'static str,
    keys: &'static [Key<C>],
    title: &'static str,
    variants: &[C],
) -> Section {
    let rows = keys.iter().map(|Key { info, show, .. }| {
        let is_written = info.source == Source::Written;
        let value = variants.iter().find_map(show).filter(|_| !is_written);
        Row { info, values: vec![value], default: None }
    });
    Section { name, presets: vec![title], rows: rows.collect() }
}

impl Section {
    /// As a table in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let has_presets = !self.presets.is_empty();
        let titles: Vec<String> = match has_presets {
            true => self.presets.iter().map(|name| title(name)).collect(),
            false => vec!["default".to_owned()],
        };
        let mut out = format!("| key | type | range | {} | meaning |\n", titles.join(" | "));
        out += &format!("|{}\n", "---|".repeat(4 + titles.len()));
        for row in &self.rows {
            let info = row.info;
            let cells = if has_presets { row.by_preset() } else { vec![row.without_preset()] };
            let (form, range) = ((info.form)().name, info.range_words());
            let (cells, sentence) = (cells.join(" | "), info.sentence());
            out += &format!("| `{}` | {form} | {range} | {cells} | {sentence} |\n", info.name);
        }
        out
    }

    /// A line for each key: table and key; type, range, values and sentence.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (String, String)> {
        let line = |row: &Row| {
            let info = row.info;
            let mut line = (info.form)().name;
            let range = info.range_words();
            if !range.is_empty() {
                line += &format!(" ({range})");
            }
            let of_presets = self.presets.iter().zip(row.by_preset());
            let mut cells: Vec<String> =
                of_presets.map(|(name, cell)| format!("{name}: {cell}")).collect();
            if cells.is_empty() {
                cells.push(format!("default: {}", row.without_preset()));
            }
            let cells = cells.join(", ");
            (
                format!("{} {}", self.name, info.name),
                format!("{line}; {cells}; {}", info.sentence()),
            )
        };
        self.rows.iter().map(line)
    }

    /// The properties of a JSON schema.
    pub(crate) fn schema(&self, properties: &mut serde_json::Map<String, serde_json::Value>) {
        // Titles in words are no names of presets.
        let presets: Vec<_> = self.presets.iter().filter(|name| !name.contains(' ')).collect();
        if !presets.is_empty() {
            let about = "published values for the keys that are not written";
            let preset = serde_json::json!({ "description": about, "enum": presets });
            properties.insert("preset".to_owned(), preset);
        }
        for Row { info, .. } in &self.rows {
            let form = (info.form)();
            let mut about = info.about.to_owned();
            let range = info.range_words();
            if !range.is_empty() && form.words.is_empty() {
                about += &format!(" ({range})");
            }
            let mut key = serde_json::json!({ "description": about, "type": form.json });
            if !form.words.is_empty() {
                key["enum"] = form.words.into();
            }
            // A key of several rules has the types of all.
            match properties.get_mut(info.name) {
                None => drop(properties.insert(info.name.to_owned(), key)),
                Some(there) => *there = serde_json::json!({ "anyOf": [there.take(), key] }),
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The title of a column: the name of a preset, or words.
fn title(name: &str) -> String {
    if name.contains(' ') { name.to_owned() } else { format!("`{name}`") }
}

impl Row {
    fn by_preset(&self) -> Vec<String> {
        let cell = |value: &Option<toml::Value>| match (value, self.info.source) {
            (Some(value), _) => format!("`{value}`"),
            (None, Source::Written) => "required".to_owned(),
            (None, Source::AnyPreset) => "its source's".to_owned(),
            (None, Source::Default("")) => "none".to_owned(),
            (None, Source::Default(default)) => default.to_owned(),
            (None, Source::Preset) => "-".to_owned(),
        };
        self.values.iter().map(cell).collect()
    }

    fn without_preset(&self) -> String {
        match (&self.default, self.info.source) {
            (_, Source::Default(default)) if !default.is_empty() => default.to_owned(),
            (Some(value), _) => format!("`{value}`"),
            (None, Source::Default(_)) => "none".to_owned(),
            (None, _) => "required".to_owned(),
        }
    }
}
