//! Bytes and numbers as traces write them: in hexadecimal.

use std::fmt;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serializer};

/// Bytes that are shown in hexadecimal.
#[derive(PartialEq, Eq)]
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Debug for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{:?}", Hex(bytes)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || D::Error::invalid_value(Unexpected::Str(&text), &"bytes, two hex digits each");
    bytes_of(&text).ok_or_else(wrong)
}

/// Numbers of up to 128 bits, which JSON does not have.
pub(super) mod numbers {
    use super::{Deserialize, Deserializer, Error, Serializer, Unexpected};

    pub(in super::super) fn serialize<S: Serializer>(
        numbers: &[u128],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(numbers.iter().map(|number| format!("{number:#x}")))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<u128>, D::Error> {
        let one = |text: &String| {
            let digits = text.strip_prefix("0x").unwrap_or_default();
            let wrong = || D::Error::invalid_value(Unexpected::Str(text), &"a number as 0x1f");
            u128::from_str_radix(digits, 16).map_err(|_| wrong())
        };
        Vec::<String>::deserialize(from)?.iter().map(one).collect()
    }
}
