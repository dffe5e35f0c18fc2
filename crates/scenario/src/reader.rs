//! [`Reader`]: reads one table of a scenario or study, checks it, and writes down what it read.
//!
//! Reading a key is its only definition. Whatever was not asked for when [`Reader::finish`] is
//! called is an unknown key; whatever was read, defaults included, is in the resolved scenario.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::rc::Rc;

use units::{Bytes, Dur, Rate, Time};

use crate::diagnostic::{Diagnostic, did_you_mean, nearest};
use crate::document::{At, Node, Table, Value};

/// A table being read.
pub struct Reader<'d> {
    table: &'d Table,
    /// The table's own place, for keys that are missing.
    at: At,
    /// What to call the table in messages: `[topology]`.
    name: String,
    asked: Vec<&'static str>,
    resolved: toml::Table,
    /// Warnings about this table, those around it and those in it.
    warnings: Rc<RefCell<Vec<Diagnostic>>>,
}

/// A type that a key can have.
pub trait Knob: Sized {
    /// A value of this type as one writes it, for hints.
    const EXAMPLE: &'static str;
    /// The value, or why it is none.
    fn read(value: &Value) -> Result<Self, String>;
    /// The value as `read` takes it back.
    fn show(&self) -> toml::Value;
}

impl<'d> Reader<'d> {
    /// Read the table `node`; `name` is what messages call it.
    pub fn new(node: &'d Node, at: &At, name: &str) -> Result<Self, Diagnostic> {
        let Value::Table(table) = &node.value else {
            let message = format!("{name} must be a table, not {}", node.value.kind());
            return Err(node.at.error(message, "not a table"));
        };
        Ok(Self::of(table, at, name))
    }

    fn of(table: &'d Table, at: &At, name: &str) -> Self {
        let (at, name) = (at.clone(), name.to_owned());
        Self {
            table,
            at,
            name,
            asked: Vec::new(),
            resolved: toml::Table::new(),
            warnings: Rc::default(),
        }
    }

    /// The table `node` within this one.
    fn within_this(&self, node: &'d Node, at: &At, name: &str) -> Result<Self, Diagnostic> {
        let warnings = Rc::clone(&self.warnings);
        Ok(Self { warnings, ..Self::new(node, at, name)? })
    }

    /// Note what is suspicious and does not forbid the run.
    pub(crate) fn warn(&self, warning: Diagnostic) {
        self.warnings.borrow_mut().push(warning);
    }

    /// What has been noted so far, in this table or another of the file.
    pub(crate) fn warnings(&self) -> Vec<Diagnostic> {
        self.warnings.borrow().clone()
    }

    /// The value of `key` as it is written, if it is there.
    pub fn node(&mut self, key: &'static str) -> Option<&'d Node> {
        self.asked.push(key);
        self.table.get(key).map(|(_, node)| node)
    }

    /// The value of `key` if it is there.
    pub fn maybe<K: Knob>(&mut self, key: &'static str) -> Result<Option<K>, Diagnostic> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let value = K::read(&node.value).map_err(|why| {
            let message = format!("`{key}` in {}: {why}", self.name);
            let example = K::EXAMPLE;
            node.at.error(message, "here").hint(format!("write it like `{key} = {example}`"))
        })?;
        self.resolved.insert(key.to_owned(), value.show());
        Ok(Some(value))
    }

    /// The value of `key`, which changes the science and therefore has no default.
    pub fn need<K: Knob>(&mut self, key: &'static str) -> Result<K, Diagnostic> {
        match self.maybe(key)? {
            Some(value) => Ok(value),
            None => Err(self.missing(key, &format!("add `{key} = {}`", K::EXAMPLE))),
        }
    }

    /// The value of `key`, or `default`, which the resolved scenario then spells out.
    pub fn or<K: Knob>(&mut self, key: &'static str, default: K) -> Result<K, Diagnostic> {
        if let Some(value) = self.maybe(key)? {
            return Ok(value);
        }
        self.resolved.insert(key.to_owned(), default.show());
        Ok(default)
    }

    /// The value of `key`; what is not written comes from a preset, if one is in force.
    pub(crate) fn given<K: Knob>(
        &mut self,
        key: &'static str,
        preset: Option<K>,
    ) -> Result<K, Diagnostic> {
        match preset {
            Some(value) => self.or(key, value),
            None => self.need(key),
        }
    }

    /// Check that the value just read for `key` lies in `range`.
    pub fn within<K: PartialOrd + Display>(
        &self,
        key: &'static str,
        value: K,
        range: RangeInclusive<K>,
    ) -> Result<K, Diagnostic> {
        if range.contains(&value) {
            return Ok(value);
        }
        let (low, high) = range.into_inner();
        let message = format!("`{key}` in {} is {value}", self.name);
        Err(self.error(key, message, "out of range").hint(format!("from {low} to {high}")))
    }

    /// The entry of `registry` whose name is the value of `key`. No default.
    pub fn choose<'r, E>(
        &mut self,
        key: &'static str,
        registry: &'r [E],
        name_of: impl Fn(&E) -> &'static str,
    ) -> Result<&'r E, Diagnostic> {
        let names: Vec<&str> = registry.iter().map(&name_of).collect();
        let Some(wanted) = self.maybe::<String>(key)? else {
            return Err(
                self.missing(key, &format!("add `{key} = \"...\"`: one of {}", names.join(", ")))
            );
        };
        registry.iter().find(|e| name_of(e) == wanted).ok_or_else(|| {
            let message = format!("unknown {key} `{wanted}` in {}", self.name);
            self.error(key, message, "no such name").hint(did_you_mean(&wanted, &names))
        })
    }

    /// The same; without the key, `usual`, if there is such an entry.
    pub(crate) fn choose_or<'r, E>(
        &mut self,
        key: &'static str,
        registry: &'r [E],
        name_of: impl Fn(&E) -> &'static str,
        usual: Option<&'r E>,
    ) -> Result<&'r E, Diagnostic> {
        match usual {
            Some(usual) if !self.has(key) => {
                self.or(key, name_of(usual).to_owned())?;
                Ok(usual)
            }
            _ => self.choose(key, registry, name_of),
        }
    }

    /// The same; without the key, the first entry of `registry`.
    pub(crate) fn choose_or_first<'r, E>(
        &mut self,
        key: &'static str,
        registry: &'r [E],
        name_of: impl Fn(&E) -> &'static str,
    ) -> Result<&'r E, Diagnostic> {
        self.choose_or(key, registry, name_of, registry.first())
    }

    /// The table below `key`, to be [finished](Self::finish) when it is read.
    pub fn table(&mut self, key: &'static str) -> Result<Option<Reader<'d>>, Diagnostic> {
        self.asked.push(key);
        let Some((at, node)) = self.table.get(key) else { return Ok(None) };
        self.within_this(node, at, &self.child(key)).map(Some)
    }

    /// The table below `key`, or an empty one: all of its keys have defaults.
    pub(crate) fn table_or_empty(&mut self, key: &'static str) -> Result<Reader<'d>, Diagnostic> {
        static EMPTY: Table = Table::new();
        if let Some(table) = self.table(key)? {
            return Ok(table);
        }
        if let Some(error) = self.misspelt(key) {
            return Err(error);
        }
        let warnings = Rc::clone(&self.warnings);
        Ok(Self { warnings, ..Self::of(&EMPTY, &self.at, &self.child(key)) })
    }

    /// The tables below `key`, written `[[key]]`, or `[key]` for a single one.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Reader<'d>>, Diagnostic> {
        self.asked.push(key);
        let Some((at, node)) = self.table.get(key) else { return Ok(Vec::new()) };
        let name = self.child(key);
        match &node.value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| {
                    // An array of tables has no place of its own for an empty entry.
                    let at = if item.at.span.is_empty() { at } else { &item.at };
                    self.within_this(item, at, &format!("{name} (number {i})"))
                })
                .collect(),
            _ => Ok(vec![self.within_this(node, at, &name)?]),
        }
    }

    fn child(&self, key: &str) -> String {
        match self.name.strip_prefix('[').and_then(|n| n.strip_suffix(']')) {
            Some(parent) => format!("[{parent}.{key}]"),
            None => format!("[{key}]"),
        }
    }

    /// Put what `child` read into this table's resolved form, beside what is there already.
    pub(crate) fn keep(&mut self, key: &'static str, child: toml::Table) {
        match self.resolved.get_mut(key) {
            Some(toml::Value::Table(there)) => there.extend(child),
            _ => drop(self.resolved.insert(key.to_owned(), toml::Value::Table(child))),
        }
    }

    /// Put a list of tables that a default has given into the resolved form.
    pub(crate) fn keep_list(&mut self, key: &'static str, tables: Vec<toml::Table>) {
        let tables = tables.into_iter().map(toml::Value::Table).collect();
        self.resolved.insert(key.to_owned(), toml::Value::Array(tables));
    }

    /// `child` is read: check that it has no unknown key, and keep what it read.
    pub(crate) fn finish_table(
        &mut self,
        key: &'static str,
        child: Reader<'_>,
    ) -> Result<(), Diagnostic> {
        self.keep(key, child.finish()?);
        Ok(())
    }

    /// The same for a list of tables.
    pub(crate) fn finish_tables(
        &mut self,
        key: &'static str,
        children: Vec<Reader<'_>>,
    ) -> Result<(), Diagnostic> {
        let tables = children.into_iter().map(|child| child.finish().map(toml::Value::Table));
        let tables: Vec<toml::Value> = tables.collect::<Result<_, _>>()?;
        if !tables.is_empty() {
            self.resolved.insert(key.to_owned(), toml::Value::Array(tables));
        }
        Ok(())
    }

    /// Replace the resolved value of `key`, say a path by the absolute one.
    pub(crate) fn resolve(&mut self, key: &'static str, value: &impl Knob) {
        self.resolved.insert(key.to_owned(), value.show());
    }

    /// The place of the value of `key`, or of the table if the key is not written.
    pub fn place(&self, key: &str) -> At {
        self.table.get(key).map_or(&self.at, |(_, node)| &node.at).clone()
    }

    /// Whether `key` is written.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value of `key` as it is written, without asking for it: it stays unknown if nobody does.
    pub(crate) fn peek(&self, key: &str) -> Option<&'d Value> {
        self.table.get(key).map(|(_, node)| &node.value)
    }

    /// Whether `key` was written in a `--set` option.
    pub(crate) fn is_set_by_option(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(|(_, node)| node.at.source.name == "--set")
    }

    /// An error about the value of `key`, or about the table if the key is not written.
    pub fn error(&self, key: &str, message: impl Into<String>, label: &str) -> Diagnostic {
        match self.table.get(key) {
            Some((_, node)) => node.at.error(message, label),
            None => self.at.error(message, label),
        }
    }

    /// The one of `keys` that a user would change first: from `--set`, or written at all.
    pub(crate) fn likeliest<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        let by_option = keys.iter().find(|key| self.is_set_by_option(key));
        by_option.or_else(|| keys.iter().find(|key| self.has(key))).copied()
    }

    /// An unread key that resembles `key`, which is not there.
    fn misspelt(&self, key: &'static str) -> Option<Diagnostic> {
        let unread = self.table.keys().map(String::as_str).filter(|k| !self.asked.contains(k));
        let (wrong, (at, _)) = self.table.get_key_value(nearest(key, unread)?)?;
        let message = format!("unknown key `{wrong}` in {}", self.name);
        let hint = format!("did you mean `{key}`?{}", self.replace_whole());
        Some(at.error(message, "unknown").hint(hint))
    }

    /// `key` is not there. A misspelt one is a likelier explanation than a forgotten one.
    pub fn missing(&self, key: &'static str, hint: &str) -> Diagnostic {
        if let Some(error) = self.misspelt(key) {
            return error;
        }
        let message = format!("`{key}` is missing in {}", self.name);
        let hint = format!("{hint}; it has no default{}", self.replace_whole());
        self.at.error(message, "in this table").hint(hint)
    }

    /// What to add to a hint where `--set` gave this table another kind and left it the keys of the
    /// old one.
    fn replace_whole(&self) -> String {
        let others = self.table.keys().any(|key| !self.is_set_by_option(key));
        if !(self.is_set_by_option("kind") && others) {
            return String::new();
        }
        let table = self.name.trim_matches(['[', ']']);
        format!("; another kind has other keys: replace the table whole, --set '{table}={{...}}'")
    }

    /// The table is read: every key that nobody asked for is an error. Returns the resolved form.
    pub fn finish(self) -> Result<toml::Table, Diagnostic> {
        for (key, (at, _)) in self.table {
            if !self.asked.contains(&key.as_str()) {
                let message = format!("unknown key `{key}` in {}", self.name);
                let hint = did_you_mean(key, &self.asked) + &self.replace_whole();
                return Err(at.error(message, "unknown").hint(hint));
            }
        }
        Ok(self.resolved)
    }
}

/// A knob whose values are written as texts and parsed by `FromStr`.
macro_rules! quantity {
    ($type:ty, $example:literal) => {
        impl Knob for $type {
            const EXAMPLE: &'static str = concat!("\"", $example, "\"");
            fn read(value: &Value) -> Result<Self, String> {
                match value {
                    Value::Text(text) => text.parse().map_err(|e: units::UnitError| e.to_string()),
                    Value::Integer(0) => Ok(Self(0)),
                    Value::Integer(n) if *n < 0 => Err(format!("{n} is negative")),
                    Value::Integer(n) => Err(format!("{n} has no unit")),
                    other => Err(format!("a quantity with a unit is wanted, not {}", other.kind())),
                }
            }
            fn show(&self) -> toml::Value {
                toml::Value::String(self.to_string())
            }
        }
    };
}

quantity!(Dur, "1us");
quantity!(Time, "5ms");
quantity!(Bytes, "9000B");
quantity!(Rate, "10Gbps");

/// A knob that is a whole number.
macro_rules! integer {
    ($type:ty) => {
        impl Knob for $type {
            const EXAMPLE: &'static str = "1";
            fn read(value: &Value) -> Result<Self, String> {
                match value {
                    Value::Integer(n) if *n < 0 => Err(format!("{n} is negative")),
                    Value::Integer(n) => {
                        Self::try_from(*n).map_err(|_| format!("{n} is more than {}", Self::MAX))
                    }
                    other => Err(format!("a whole number is wanted, not {}", other.kind())),
                }
            }
            fn show(&self) -> toml::Value {
                // What was read from an i64 fits one; a larger default has no place in a file.
                toml::Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    };
}

integer!(u8);
integer!(u16);
integer!(u32);
integer!(u64);

impl Knob for f64 {
    const EXAMPLE: &'static str = "0.6";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Float(x) if x.is_finite() => Ok(*x),
            Value::Integer(n) => Ok(*n as f64),
            Value::Float(x) => Err(format!("{x} is not a finite number")),
            other => Err(format!("a number is wanted, not {}", other.kind())),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::Float(*self)
    }
}

impl Knob for bool {
    const EXAMPLE: &'static str = "true";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Boolean(b) => Ok(*b),
            other => Err(format!("true or false is wanted, not {}", other.kind())),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::Boolean(*self)
    }
}

impl Knob for String {
    const EXAMPLE: &'static str = "\"...\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            other => Err(format!("a text in \"quotes\" is wanted, not {}", other.kind())),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.clone())
    }
}

impl<K: Knob> Knob for Vec<K> {
    const EXAMPLE: &'static str = "[...]";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(items) => items.iter().map(|item| K::read(&item.value)).collect(),
            other => Err(format!("a list is wanted, not {}", other.kind())),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::Array(self.iter().map(Knob::show).collect())
    }
}

impl Knob for PathBuf {
    const EXAMPLE: &'static str = "\"traffic.cm\"";
    fn read(value: &Value) -> Result<Self, String> {
        String::read(value).map(Self::from)
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.to_string_lossy().into_owned())
    }
}
