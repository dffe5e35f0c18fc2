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
pub(crate) fn show_word<T>(
    value: &T,
    all: &[(&'static str, T)],
    same: fn(&T, &T) -> bool,
) -> toml::Value {
    let word = all.iter().find(|(_, known)| same(known, value)).map_or("", |(word, _)| word);
    toml::Value::String(word.to_owned())
}

/// Whether two values are the same but for the numbers that they hold.
pub(crate) fn same_variant<T>(one: &T, other: &T) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Makes a type one whose values are words: `choices!(Discipline, "fair" => Discipline::Fair,
/// ...)`. With `variants` the numbers that a value holds are keys of their own.
macro_rules! choices {
    (variants $type:ty, $($word:literal => $value:expr),+ $(,)?) => {
        $crate::value::choices!(@ $crate::value::same_variant, $type, $($word => $value),+);
    };
    ($type:ty, $($word:literal => $value:expr),+ $(,)?) => {
        $crate::value::choices!(@ PartialEq::eq, $type, $($word => $value),+);
    };
    (@ $same:path, $type:ty, $($word:literal => $value:expr),+) => {
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
                $crate::value::show_word(self, &[$(($word, $value)),+], $same)
            }
        }
    };
}

/// Makes an enum the value of a type `$k`, or one of some words: `word_or!(Segment: Size32,
/// "packet" => Segment::Packet; Segment::Bytes)`.
macro_rules! word_or {
    ($type:ty: $k:ty, $($word:literal => $variant:path),+; $other:path) => {
        impl $crate::value::ScenarioValue for $type {
            fn form() -> $crate::value::Form {
                <$k>::form()$(.or_word($word))+
            }
            fn read(
                value: &$crate::document::Value,
            ) -> Result<Self, $crate::value::Refused> {
                match value {
                    $($crate::document::Value::Text(text) if text == $word => Ok($variant),)+
                    _ => <$k>::read(value).map(|value| $other(value.into())),
                }
            }
            fn show(&self) -> toml::Value {
                match self {
                    $($variant => toml::Value::String($word.to_owned()),)+
                    $other(value) => <$k>::from(*value).show(),
                }
            }
        }
    };
}
pub(crate) use {choices, word_or};

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

/// A type of sizes that are counted in fewer bits.
macro_rules! size {
    ($type:ident, $int:ty, $most:expr, $about:literal) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub(crate) struct $type(pub(crate) $int);

        impl ScenarioValue for $type {
            fn form() -> Form {
                Bytes::form()
            }
            fn read(value: &Value) -> Result<Self, Refused> {
                let bytes = Bytes::read(value)?;
                let beyond = |_| Refused::Range(bytes.to_string(), format!("0B to {}B", $most));
                <$int>::try_from(bytes.0).map(Self).map_err(beyond)
            }
            fn show(&self) -> toml::Value {
                Bytes(u64::from(self.0)).show()
            }
        }

        impl Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                Bytes(u64::from(self.0)).fmt(f)
            }
        }

        impl From<$int> for $type {
            fn from(bytes: $int) -> Self {
                Self(bytes)
            }
        }

        impl From<$type> for $int {
            fn from(size: $type) -> Self {
                size.0
            }
        }
    };
}

/// The largest part of a packet: with the rest it must fit the 16 bits of its length.
pub(crate) const PART_MAX: Size16 = Size16(65_000);

size!(Size16, u16, PART_MAX.0, "A size that fits the 16 bits of a packet's length.");
size!(Size32, u32, u32::MAX, "A size that is counted in 32 bits.");
size!(Size64, u64, u64::MAX, "A size, where the greatest stands for a word.");

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
    Derived = "derived",
    Lifetime = "lifetime",
    Longest = "longest",
    Off = "off",
    Unlimited = "unlimited",
    Rr = "rr",
    Start = "start",
    Unbounded = "unbounded",
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

/// A type whose greatest value stands for a word.
pub(crate) trait Greatest: Copy + PartialEq {
    /// That value.
    const GREATEST: Self;
    /// As it is written.
    type Written: ScenarioValue + From<Self> + Into<Self>;
}

/// A value, or the word `W`, which stands for the greatest value of `T`.
pub(crate) struct UpTo<W, T>(T, PhantomData<W>);

/// A number, or "unlimited", which is infinite.
pub(crate) type Limit = UpTo<Unlimited, f64>;
/// A size, or the word `W`, which is [`u64::MAX`].
pub(crate) type SizeOr<W> = UpTo<W, u64>;

impl<W: Word, T: Greatest> ScenarioValue for UpTo<W, T> {
    fn form() -> Form {
        T::Written::form().or_word(W::WORD)
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let Or(value, _) = Or::<W, T::Written>::read(value)?;
        Ok(value.map_or(T::GREATEST, Into::into).into())
    }
    fn show(&self) -> toml::Value {
        let value = Some(self.0).filter(|value| *value != T::GREATEST);
        Or::<W, T::Written>::from(value.map(T::Written::from)).show()
    }
}

impl<W, T> From<T> for UpTo<W, T> {
    fn from(value: T) -> Self {
        Self(value, PhantomData)
    }
}

/// Types with a greatest value, and as what they are written.
macro_rules! greatest {
    ($($type:ty = $greatest:expr, $written:ty);+) => {$(
        impl Greatest for $type {
            const GREATEST: Self = $greatest;
            type Written = $written;
        }
        impl<W> From<UpTo<W, $type>> for $type {
            fn from(value: UpTo<W, $type>) -> Self {
                value.0
            }
        }
    )+};
}

greatest!(f64 = f64::INFINITY, f64; u32 = u32::MAX, u32; u64 = u64::MAX, Size64);
