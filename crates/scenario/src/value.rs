//! [`ScenarioValue`]: the types that keys can have, read from a file and shown in one.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use units::{Bytes, Dur, Rate, Time};

use crate::document::Value;

/// A type that a key can have.
pub trait ScenarioValue: Sized {
    /// What messages, the reference and the schema say of the type.
    fn form() -> Form;
    /// The value, or why it is none.
    ///
    /// # Errors
    /// A value of another type, or one that this type does not hold.
    fn read(value: &Value) -> Result<Self, Refused>;
    /// The value as `read` takes it back.
    fn show(&self) -> toml::Value;
}

/// What a type looks like in a file.
#[derive(Clone, Debug)]
pub struct Form {
    /// The name of the type in the reference.
    pub name: String,
    /// A value as one writes it.
    pub example: String,
    /// The words that it takes, if they are all that it takes.
    pub words: Vec<&'static str>,
    /// Its types in JSON schema.
    pub json: Vec<&'static str>,
}

impl Form {
    /// A type without words.
    #[must_use]
    pub fn new(name: &str, example: &str, json: &'static str) -> Self {
        let (name, example) = (name.to_owned(), example.to_owned());
        Self { name, example, words: Vec::new(), json: vec![json] }
    }

    /// A type whose values are these words.
    pub(crate) fn of_words(words: Vec<&'static str>) -> Self {
        let example = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>();
        Self { words, ..Self::new("text", &example.join("` or `"), "string") }
    }

    /// The type, for a hint: with its words, if they are all.
    pub(crate) fn described(&self) -> String {
        match self.words.as_slice() {
            [] => self.name.clone(),
            words => words.join(", "),
        }
    }

    /// The same type, which also takes the text `word`.
    pub(crate) fn or_word(mut self, word: &str) -> Self {
        self.name = format!("{} or `\"{word}\"`", self.name);
        self.example = format!("{}` or `\"{word}\"", self.example);
        if !self.json.contains(&"string") {
            self.json.push("string");
        }
        self
    }
}

/// Why a value is refused.
#[derive(Clone, Debug)]
pub enum Refused {
    /// It is not of the type, and why.
    Type(String),
    /// It is not in the range: the value, and the range.
    Range(String, String),
    /// It is none of the words that there are.
    Word(String, Vec<&'static str>),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Type(why)
    }
}

impl Refused {
    /// In a list or a table: as one sentence.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Type(why) => why,
            Self::Range(value, range) => format!("{value} is not from {range}"),
            Self::Word(word, known) => format!("`{word}` is none of {}", known.join(", ")),
        }
    }
}

/// The value of `value` if it is in `range`.
pub(crate) fn read_in<K: ScenarioValue + PartialOrd + Display>(
    value: &Value,
    range: &RangeInclusive<K>,
) -> Result<K, Refused> {
    let read = K::read(value).map_err(|why| match why {
        Refused::Range(value, _) => Refused::Range(value, words(range)),
        other => other,
    })?;
    if range.contains(&read) {
        Ok(read)
    } else {
        Err(Refused::Range(read.to_string(), words(range)))
    }
}

/// A range as the reference writes it.
pub(crate) fn words<K: Display>(range: &RangeInclusive<K>) -> String {
    format!("{} to {}", range.start(), range.end())
}

/// The one of `all` that `value` names.
pub(crate) fn read_word<T: Copy>(value: &Value, all: &[(&'static str, T)]) -> Result<T, Refused> {
    let word = String::read(value)?;
    let known = || all.iter().map(|(word, _)| *word).collect();
    let found = all.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value).ok_or_else(|| Refused::Word(word, known()))
}

/// The word of `all` for `value`.
pub(crate) fn show_word<T: PartialEq>(value: &T, all: &[(&'static str, T)]) -> toml::Value {
    let word = all.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word);
    toml::Value::String(word.to_owned())
}

/// Makes a type one whose values are words: `choices!(Discipline, "fair" => Discipline::Fair,
/// ...)`.
macro_rules! choices {
    ($type:ty, $($word:literal => $value:expr),+ $(,)?) => {
        impl $crate::value::ScenarioValue for $type {
            fn form() -> $crate::value::Form {
                $crate::value::Form::of_words(vec![$($word),+])
            }
            fn read(
                value: &$crate::document::Value,
            ) -> Result<Self, $crate::value::Refused> {
                $crate::value::read_word(value, &[$(($word, $value)),+])
            }
            fn show(&self) -> toml::Value {
                $crate::value::show_word(self, &[$(($word, $value)),+])
            }
        }
    };
}
pub(crate) use choices;

/// A type whose values are written as texts and parsed by `FromStr`.
macro_rules! quantity {
    ($type:ty, $name:literal, $example:literal) => {
        impl ScenarioValue for $type {
            fn form() -> Form {
                Form::new($name, concat!("\"", $example, "\""), "string")
            }
            fn read(value: &Value) -> Result<Self, Refused> {
                Ok(match value {
                    Value::Text(text) => {
                        text.parse().map_err(|e: units::UnitError| e.to_string())?
                    }
                    Value::Integer(0) => Self(0),
                    Value::Integer(n) if *n < 0 => return Err(format!("{n} is negative").into()),
                    Value::Integer(n) => return Err(format!("{n} has no unit").into()),
                    other => {
                        let kind = other.kind();
                        return Err(format!("a quantity with a unit is wanted, not {kind}").into());
                    }
                })
            }
            fn show(&self) -> toml::Value {
                toml::Value::String(self.to_string())
            }
        }
    };
}

quantity!(Dur, "time", "1us");
quantity!(Time, "time", "5ms");
quantity!(Bytes, "size", "9000B");
quantity!(Rate, "rate", "10Gbps");

/// A type that is a whole number.
macro_rules! integer {
    ($($type:ty),+) => {$(
        impl ScenarioValue for $type {
            fn form() -> Form {
                Form::new("integer", "1", "integer")
            }
            fn read(value: &Value) -> Result<Self, Refused> {
                match value {
                    Value::Integer(n) if *n < 0 => Err(format!("{n} is negative").into()),
                    Value::Integer(n) => Self::try_from(*n)
                        .map_err(|_| format!("{n} is more than {}", Self::MAX).into()),
                    other => Err(format!("a whole number is wanted, not {}", other.kind()).into()),
                }
            }
            fn show(&self) -> toml::Value {
                // What was read from an i64 fits one; a larger default has no place in a file.
                toml::Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )+};
}

integer!(u8, u16, u32, u64);

impl ScenarioValue for f64 {
    fn form() -> Form {
        let form = Form::new("number", "0.6", "number");
        Form { json: vec!["number", "integer"], ..form }
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Float(x) if x.is_finite() => Ok(*x),
            Value::Integer(n) => Ok(*n as f64),
            Value::Float(x) => Err(format!("{x} is not a finite number").into()),
            other => Err(format!("a number is wanted, not {}", other.kind()).into()),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::Float(*self)
    }
}

impl ScenarioValue for bool {
    fn form() -> Form {
        Form::new("boolean", "true", "boolean")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Boolean(b) => Ok(*b),
            other => Err(format!("true or false is wanted, not {}", other.kind()).into()),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::Boolean(*self)
    }
}

impl ScenarioValue for String {
    fn form() -> Form {
        Form::new("text", "\"...\"", "string")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            other => Err(format!("a text in \"quotes\" is wanted, not {}", other.kind()).into()),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.clone())
    }
}

impl<K: ScenarioValue> ScenarioValue for Vec<K> {
    fn form() -> Form {
        Form::new(&format!("list of {}s", K::form().name), "[...]", "array")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Array(items) => items.iter().map(|item| K::read(&item.value)).collect(),
            other => Err(format!("a list is wanted, not {}", other.kind()).into()),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::Array(self.iter().map(ScenarioValue::show).collect())
    }
}

impl ScenarioValue for PathBuf {
    fn form() -> Form {
        Form::new("path", "\"traffic.cm\"", "string")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        String::read(value).map(Self::from)
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.to_string_lossy().into_owned())
    }
}

/// A size that fits the 16 bits of a packet's length.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Size16(pub(crate) u16);

/// The largest part of a packet: with the rest it must fit the 16 bits of its length.
pub(crate) const PART_MAX: Size16 = Size16(65_000);

impl ScenarioValue for Size16 {
    fn form() -> Form {
        Bytes::form()
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let bytes = Bytes::read(value)?;
        let beyond = || Refused::Range(bytes.to_string(), format!("0B to {PART_MAX}"));
        u16::try_from(bytes.0).map(Self).map_err(|_| beyond())
    }
    fn show(&self) -> toml::Value {
        Bytes(u64::from(self.0)).show()
    }
}

impl Display for Size16 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Bytes(u64::from(self.0)).fmt(f)
    }
}

impl From<u16> for Size16 {
    fn from(bytes: u16) -> Self {
        Self(bytes)
    }
}

impl From<Size16> for u16 {
    fn from(size: Size16) -> Self {
        size.0
    }
}

/// A size that is counted in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Size32(pub(crate) u32);

impl ScenarioValue for Size32 {
    fn form() -> Form {
        Bytes::form()
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let bytes = Bytes::read(value)?;
        let beyond = |_| Refused::Range(bytes.to_string(), format!("0B to {}B", u32::MAX));
        u32::try_from(bytes.0).map(Self).map_err(beyond)
    }
    fn show(&self) -> toml::Value {
        Bytes(u64::from(self.0)).show()
    }
}

impl Display for Size32 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Bytes(u64::from(self.0)).fmt(f)
    }
}

impl From<u32> for Size32 {
    fn from(bytes: u32) -> Self {
        Self(bytes)
    }
}

impl From<Size32> for u32 {
    fn from(size: Size32) -> Self {
        size.0
    }
}

/// A word that stands for the absence of a value.
pub(crate) trait Word {
    /// The word.
    const WORD: &'static str;
}

/// Makes types of words.
macro_rules! absent {
    ($($name:ident = $word:literal),+) => {$(
        #[doc = concat!("\"", $word, "\".")]
        pub(crate) struct $name;
        impl Word for $name {
            const WORD: &'static str = $word;
        }
    )+};
}

absent!(
    Lifetime = "lifetime",
    Off = "off",
    Unlimited = "unlimited",
    Start = "start",
    Wire = "wire"
);

/// A value, or the word `W`, which stands for `None`.
pub(crate) struct Or<W, T>(pub(crate) Option<T>, PhantomData<W>);

impl<W: Word, T: ScenarioValue> ScenarioValue for Or<W, T> {
    fn form() -> Form {
        T::form().or_word(W::WORD)
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        Ok(match value {
            Value::Text(text) if text == W::WORD => None.into(),
            _ => Some(T::read(value)?).into(),
        })
    }
    fn show(&self) -> toml::Value {
        let word = || toml::Value::String(W::WORD.to_owned());
        self.0.as_ref().map_or_else(word, ScenarioValue::show)
    }
}

impl<W, T> From<Option<T>> for Or<W, T> {
    fn from(value: Option<T>) -> Self {
        Self(value, PhantomData)
    }
}

impl<W, T> From<Or<W, T>> for Option<T> {
    fn from(value: Or<W, T>) -> Self {
        value.0
    }
}

/// A number, or "unlimited", which is infinite.
pub(crate) struct Limit(f64);

impl ScenarioValue for Limit {
    fn form() -> Form {
        f64::form().or_word("unlimited")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let Or(limit, _) = Or::<Unlimited, f64>::read(value)?;
        Ok(Self(limit.unwrap_or(f64::INFINITY)))
    }
    fn show(&self) -> toml::Value {
        Or::<Unlimited, f64>::from(Some(self.0).filter(|limit| limit.is_finite())).show()
    }
}

impl From<f64> for Limit {
    fn from(limit: f64) -> Self {
        Self(limit)
    }
}

impl From<Limit> for f64 {
    fn from(limit: Limit) -> Self {
        limit.0
    }
}

/// A size, or the word `W`, which is [`u64::MAX`].
pub(crate) struct SizeOr<W>(u64, PhantomData<W>);

impl<W: Word> ScenarioValue for SizeOr<W> {
    fn form() -> Form {
        Bytes::form().or_word(W::WORD)
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let Or(size, _) = Or::<W, Bytes>::read(value)?;
        Ok(size.map_or(u64::MAX, |Bytes(size)| size).into())
    }
    fn show(&self) -> toml::Value {
        Or::<W, Bytes>::from(Some(Bytes(self.0)).filter(|size| size.0 != u64::MAX)).show()
    }
}

impl<W> From<u64> for SizeOr<W> {
    fn from(size: u64) -> Self {
        Self(size, PhantomData)
    }
}

impl<W> From<SizeOr<W>> for u64 {
    fn from(size: SizeOr<W>) -> Self {
        size.0
    }
}
