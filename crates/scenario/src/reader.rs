//! [`Reader`]: reads one table of a scenario or study, checks it, and writes down what it read.
//!
//! Whatever was not asked for when [`Reader::finish`] is called is an unknown key; whatever was
//! read, defaults included, is in the resolved scenario. Keys with a definition in a table
//! ([`Key`]) are read by `Reader::keys`, which reports all that are missing at once.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::rc::Rc;

use crate::diagnostic::{Checked, Diagnostic, did_you_mean, nearest};
use crate::document::{At, Node, Table, Value};
use crate::key::{Info, Key, Source};
use crate::value::{Form, Refused, ScenarioValue};

/// A table being read.
pub struct Reader<'d> {
    table: &'d Table,
    /// The table's own place, for keys that are missing.
    at: At,
    /// What to call the table in messages: `[topology]`.
    name: String,
    asked: Vec<&'static str>,
    /// Whether [`Reader::rest`] has read all others.
    is_read_whole: bool,
    /// Every key of the tables that were read, those without effect included.
    known: Vec<&'static Info>,
    /// Keys of tables that do not apply, and what those are for.
    idle: Vec<(&'static str, &'static str)>,
    /// Keys that must be written and are not.
    missing: Vec<&'static Info>,
    resolved: toml::Table,
    /// Warnings about this table, those around it and those in it.
    warnings: Rc<RefCell<Vec<Diagnostic>>>,
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
            is_read_whole: false,
            known: Vec::new(),
            idle: Vec::new(),
            missing: Vec::new(),
            resolved: toml::Table::new(),
            warnings: Rc::default(),
        }
    }

    /// The table `node` within this one. What an option has set whole stands in the option.
    fn within_this(&self, node: &'d Node, at: &At, name: &str) -> Checked<Self> {
        let at = if node.at.source.name == "--set" { &node.at } else { at };
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
    pub fn maybe<K: ScenarioValue>(&mut self, key: &'static str) -> Result<Option<K>, Diagnostic> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let value = K::read(&node.value).map_err(|why| self.refused(key, node, why, K::form))?;
        self.resolved.insert(key.to_owned(), value.show());
        Ok(Some(value))
    }

    /// The value of `key` if it is there and can be read. The key itself is read later.
    pub(crate) fn peek<K: ScenarioValue>(&self, key: &str) -> Option<K> {
        let (_, node) = self.table.get(key)?;
        K::read(&node.value).ok()
    }

    /// Read all keys that nobody has asked for, as they are written. The table with those read
    /// before.
    pub(crate) fn rest(&mut self) -> toml::Table {
        self.is_read_whole = true;
        for (key, (_, node)) in self.table {
            if !self.asked.contains(&key.as_str()) {
                self.resolved.insert(key.clone(), node.value.to_toml());
            }
        }
        self.resolved.clone()
    }

    /// An error about the value of `key`, which stands at `node`.
    fn refused(&self, key: &str, node: &Node, why: Refused, form: fn() -> Form) -> Diagnostic {
        let name = &self.name;
        match why {
            Refused::Type(why) => {
                let message = format!("`{key}` in {name}: {why}");
                let hint = format!("write it like `{key} = {}`", form().example);
                node.at.error(message, "here").hint(hint)
            }
            Refused::Range(value, range) => {
                let message = format!("`{key}` in {name} is {value}");
                node.at.error(message, "out of range").hint(format!("from {range}"))
            }
            Refused::Word(word, known) => {
                let message = format!("unknown {key} `{word}` in {name}");
                node.at.error(message, "no such name").hint(did_you_mean(&word, &known))
            }
        }
    }

    /// The value of `key`, which changes the science and therefore has no default.
    pub fn need<K: ScenarioValue>(&mut self, key: &'static str) -> Result<K, Diagnostic> {
        match self.maybe(key)? {
            Some(value) => Ok(value),
            None => {
                Err(self.missing(key, &format!("add `{key} = ...` ({})", K::form().described())))
            }
        }
    }

    /// Read `keys` into `config`, which holds the values of the preset, if one is in force, and
    /// those of defaults. Later keys see what earlier ones have set. What is missing is reported by
    /// [`Reader::complete`].
    pub(crate) fn keys<C>(
        &mut self,
        keys: &'static [Key<C>],
        config: &mut C,
        preset: Option<&C>,
    ) -> Checked<()> {
        self.known.extend(keys.iter().map(|key| &key.info));
        for Key { info, read, show } in keys {
            let is_optional = matches!(info.source, Source::Default(_));
            if !is_optional && show(config).is_none() {
                continue;
            }
            let from_preset = match info.source {
                Source::Preset => preset.is_some_and(|preset| show(preset).is_some()),
                Source::AnyPreset => preset.is_some(),
                Source::Written => false,
                Source::Default(_) => true,
            };
            self.key(info, from_preset, &mut |value| read(config, value))?;
            match show(config) {
                Some(value) => drop(self.resolved.insert(info.name.to_owned(), value)),
                None => self.without_effect(info.name).map_or(Ok(()), Err)?,
            }
        }
        Ok(())
    }

    /// Read `keys`, which are all and have no presets.
    pub(crate) fn all_keys<C>(&mut self, keys: &'static [Key<C>], config: &mut C) -> Checked<()> {
        self.keys(keys, config, None)?;
        self.complete(&[])
    }

    /// Read one key; `is_given`: it need not be written.
    fn key(
        &mut self,
        info: &'static Info,
        is_given: bool,
        read: &mut dyn FnMut(&Value) -> Result<(), Refused>,
    ) -> Checked<()> {
        match self.node(info.name) {
            Some(node) => {
                read(&node.value).map_err(|why| self.refused(info.name, node, why, info.form))
            }
            None => {
                if !is_given {
                    self.missing.push(info);
                }
                Ok(())
            }
        }
    }

    /// `keys` have no effect in this table: they are for `only`.
    pub(crate) fn without<C>(&mut self, keys: &'static [Key<C>], only: &'static str) {
        self.idle.extend(keys.iter().map(|key| (key.info.name, only)));
    }

    /// All keys of tables are read: an error that names every one that is missing.
    pub(crate) fn complete(&mut self, presets: &[&'static str]) -> Checked<()> {
        let missing = std::mem::take(&mut self.missing);
        let Some(first) = missing.first() else { return Ok(()) };
        if let Some(error) = self.renamed() {
            return Err(error);
        }
        if let Some(error) = missing.iter().find_map(|info| self.misspelt(info.name)) {
            return Err(error);
        }
        let names: Vec<String> = missing.iter().map(|info| format!("`{}`", info.name)).collect();
        let (message, mut hint) = match missing.as_slice() {
            [_] => {
                let message = format!("{} is missing in {}", names[0], self.name);
                let about = first.about.trim_end_matches('.');
                (message, format!("add {}: {about}; it has no default", first.described()))
            }
            _ => {
                let message = format!("{} keys are missing in {}", names.len(), self.name);
                let each: Vec<String> = missing.iter().map(|info| info.described()).collect();
                (message, format!("add {}; they have no default", each.join(", ")))
            }
        };
        let needs_preset = |info: &&Info| info.source != Source::Written;
        if !presets.is_empty()
            && !self.has("preset")
            && missing.iter().copied().any(|i| needs_preset(&i))
        {
            hint += &format!(", but published values: `preset` names {}", presets.join(", "));
        }
        Err(self.at.error(message, "in this table").hint(hint + &self.replace_whole()))
    }

    /// A key that is written as it was called before.
    fn renamed(&self) -> Option<Diagnostic> {
        self.known.iter().find_map(|info| {
            let (at, _) = self.table.get(info.was).filter(|_| !self.asked.contains(&info.was))?;
            let message = format!("`{}` in {} is called `{}` now", info.was, self.name, info.name);
            Some(at.error(message, "an old name").hint(format!("write `{}`", info.name)))
        })
    }

    /// A key that has no effect beside the values of others.
    fn without_effect(&self, key: &str) -> Option<Diagnostic> {
        let only = self.known.iter().filter(|info| info.name == key).map(|info| info.only);
        let idle = self.idle.iter().filter(|(name, _)| *name == key).map(|(_, only)| *only);
        let only: Vec<&str> = only.filter(|only| !only.is_empty()).chain(idle).collect();
        let (at, _) = self.table.get(key).filter(|_| !only.is_empty())?;
        let message = format!("`{key}` has no effect here, in {}", self.name);
        let hint = format!("it has an effect only with {}", only.join(", or with "));
        Some(at.error(message, "no effect").hint(hint))
    }

    /// The value of `key`, or `default`, which the resolved scenario then spells out.
    pub fn or<K: ScenarioValue>(&mut self, key: &'static str, default: K) -> Result<K, Diagnostic> {
        if let Some(value) = self.maybe(key)? {
            return Ok(value);
        }
        self.resolved.insert(key.to_owned(), default.show());
        Ok(default)
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
            let hint = did_you_mean(&wanted, &names) + &self.replace_whole();
            self.error(key, message, "no such name").hint(hint)
        })
    }

    /// The one of `keys` that is written, if one is. They exclude each other.
    pub(crate) fn at_most_one(&self, keys: &[&'static str]) -> Checked<Option<&'static str>> {
        let mut written = keys.iter().copied().filter(|key| self.has(key));
        let first = written.next();
        match (first, written.next()) {
            (Some(first), Some(second)) => {
                let message = format!("`{first}` and `{second}` exclude each other");
                Err(self.error(second, message, "one too many").hint("remove one of them"))
            }
            _ => Ok(first),
        }
    }

    /// Check that exactly one of `keys` is written; `hint` says what there is to choose from.
    pub(crate) fn one_of(&self, keys: &[&'static str], hint: &str) -> Checked<()> {
        match self.at_most_one(keys)? {
            Some(_) => Ok(()),
            None => Err(self.missing(keys[0], hint)),
        }
    }

    /// The table below `key`, to be [finished](Self::finish) when it is read.
    pub fn table(&mut self, key: &'static str) -> Result<Option<Reader<'d>>, Diagnostic> {
        self.asked.push(key);
        let Some((at, node)) = self.table.get(key) else { return Ok(None) };
        self.within_this(node, at, &self.child(key)).map(Some)
    }

    /// The table below `key`, or an empty one: all of its keys have defaults.
    pub(crate) fn table_or_empty(&mut self, key: &'static str) -> Checked<Reader<'d>> {
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
    pub(crate) fn finish_table(&mut self, key: &'static str, child: Reader<'_>) -> Checked<()> {
        self.keep(key, child.finish()?);
        Ok(())
    }

    /// The same for a list of tables.
    pub(crate) fn finish_tables(
        &mut self,
        key: &'static str,
        children: Vec<Reader<'_>>,
    ) -> Checked<()> {
        let tables = children.into_iter().map(|child| child.finish().map(toml::Value::Table));
        let tables: Vec<toml::Value> = tables.collect::<Result<_, _>>()?;
        if !tables.is_empty() {
            self.resolved.insert(key.to_owned(), toml::Value::Array(tables));
        }
        Ok(())
    }

    /// Replace the resolved value of `key`, say a path by the absolute one.
    pub(crate) fn resolve(&mut self, key: &'static str, value: &impl ScenarioValue) {
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

    /// The same as a result, with what would be right.
    pub(crate) fn fail<T>(
        &self,
        key: &str,
        message: impl Into<String>,
        label: &str,
        hint: impl Into<String>,
    ) -> Checked<T> {
        Err(self.error(key, message, label).hint(hint))
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
    pub fn finish(mut self) -> Result<toml::Table, Diagnostic> {
        self.complete(&[])?;
        if let Some(error) = self.renamed() {
            return Err(error);
        }
        for (key, (at, _)) in self.table {
            if !self.is_read_whole && !self.asked.contains(&key.as_str()) {
                if let Some(error) = self.without_effect(key) {
                    return Err(error);
                }
                let mut names: Vec<&str> = self.asked.clone();
                names.extend(self.known.iter().map(|info| info.name));
                names.sort_unstable();
                names.dedup();
                let message = format!("unknown key `{key}` in {}", self.name);
                let hint = did_you_mean(key, &names) + &self.replace_whole();
                return Err(at.error(message, "unknown").hint(hint));
            }
        }
        Ok(self.resolved)
    }
}
