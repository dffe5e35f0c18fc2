//! [`ConfigError`]: why a transport cannot run as configured, and what several transports ask of
//! their numbers.

use std::fmt::Display;
use std::ops::RangeInclusive;

use thiserror::Error;

/// Why a configuration cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct ConfigError {
    what: String,
    fields: Vec<&'static str>,
}

impl ConfigError {
    pub(crate) fn new<const N: usize>(fields: [&'static str; N], what: impl Into<String>) -> Self {
        Self { what: what.into(), fields: fields.to_vec() }
    }

    /// The fields that it is about, as keys of scenario files.
    #[must_use]
    pub fn fields(&self) -> &[&'static str] {
        &self.fields
    }
}

/// `value` of the parameter `name` is not what it `must` be.
pub(crate) fn refuse<T>(name: &'static str, value: impl Display, must: &str) -> Result<T> {
    Err(ConfigError::new([name], format!("{name} is {value}: {must}")))
}

/// `value` of the parameter `name` must be in a range.
pub(crate) fn within(
    name: &'static str,
    value: f64,
    range: RangeInclusive<f64>,
    must: &str,
) -> Result<()> {
    // A NaN is in no range.
    if range.contains(&value) { Ok(()) } else { refuse(name, value, must) }
}

/// None of these fields of `transport` must be zero.
pub(crate) fn positive(transport: &str, fields: &[(&'static str, u64)]) -> Result<()> {
    match fields.iter().find(|(_, value)| *value == 0) {
        Some(&(name, _)) => {
            Err(ConfigError::new([name], format!("{transport}: {name} must be more than zero")))
        }
        None => Ok(()),
    }
}

/// A full packet of `transport` must fit `Packet::wire_len`.
pub(crate) fn fits(transport: &str, payload: u16, header: u16) -> Result<()> {
    if payload.checked_add(header).is_some() {
        return Ok(());
    }
    let what =
        format!("{transport}: payload {payload} B and header {header} B exceed 65535 B together");
    Err(ConfigError::new(["payload", "header"], what))
}

type Result<T> = std::result::Result<T, ConfigError>;
