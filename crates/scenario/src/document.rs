//! [`Document`]: a scenario or study file as a tree in which every value knows where it was
//! written, and `--set`, which edits that tree. Programs build such trees, too.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Checked, Diagnostic, Source};
use crate::{ENGINE_VERSION, files};

/// How the name of a source ends that is the scenario of a manifest, which has every default.
pub(crate) const RESOLVED: &str = " (resolved scenario)";

/// Where something was written.
#[derive(Debug, Clone)]
pub struct At {
    /// The text.
    pub source: Arc<Source>,
    /// Bytes of it.
    pub span: Range<usize>,
}

impl At {
    /// An error about what is written here; `label` is drawn beneath it.
    pub fn error(&self, message: impl Into<String>, label: &str) -> Diagnostic {
        Diagnostic::new(message).at(&self.source, self.span.clone(), label)
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it is written.
    pub at: At,
}

/// A TOML value. Dates have no use here; they stay text and fail where they are read.
#[derive(Debug, Clone)]
pub enum Value {
    /// In quotes.
    Text(String),
    /// Without a point or an exponent.
    Integer(i64),
    /// With one, `inf` or `nan`.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// In brackets.
    Array(Vec<Node>),
    /// Keys and values.
    Table(Table),
}

impl Value {
    /// What the value is, for messages: "a text", "a number", ...
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number with a fraction",
            Self::Boolean(_) => "true or false",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// The same without places.
    #[must_use]
    pub fn to_toml(&self) -> toml::Value {
        match self {
            Self::Text(text) => toml::Value::String(text.clone()),
            Self::Integer(n) => toml::Value::Integer(*n),
            Self::Float(x) => toml::Value::Float(*x),
            Self::Boolean(b) => toml::Value::Boolean(*b),
            Self::Array(items) => {
                toml::Value::Array(items.iter().map(|item| item.value.to_toml()).collect())
            }
            Self::Table(table) => {
                let entries = table.iter().map(|(key, (_, node))| (key, node.value.to_toml()));
                toml::Value::Table(entries.map(|(key, value)| (key.clone(), value)).collect())
            }
        }
    }
}

/// The most levels of a path in `--set`. Trees are read and dropped by recursion, level by level.
const LEVELS_MAX: usize = 64;

/// The keys of a table, each with its own place and its value.
pub type Table = BTreeMap<String, (At, Node)>;

/// A scenario file, `--set` edits included, or a file of a study.
#[derive(Debug, Clone)]
pub struct Document {
    /// The whole file, a table.
    pub root: Node,
}

impl Document {
    /// Read `text`; `name` is what messages call it.
    ///
    /// # Errors
    /// What is not TOML, and where.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostic> {
        let source = Arc::new(Source { name: name.to_owned(), text: text.to_owned() });
        if text.trim().is_empty() {
            return Err(Diagnostic::new(format!("{name} is empty"))
                .at(&source, 0..0, "nothing here")
                .hint("start from one of the files in scenarios/ or studies/"));
        }
        match DeTable::parse(text) {
            Ok(table) => {
                let at = At { source: Arc::clone(&source), span: 0..0 };
                Ok(Self { root: Node { value: of_table(table.get_ref(), &source)?, at } })
            }
            Err(e) => Err(not_toml(&source, &e)),
        }
    }

    /// Read the file `path`, or the scenario inside the `manifest.json` of a run.
    ///
    /// # Errors
    /// It cannot be read, or is not TOML.
    pub fn load(path: &Path) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        let text = files::read_text(path).map_err(|why| {
            Diagnostic::new(format!("cannot read {name}: {why}")).hint(
                "give the path of a scenario; `trimline examples DIR` writes those that come along",
            )
        })?;
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        if path.extension().is_some_and(|e| e == "json") {
            let text = of_manifest(&name, &text)?;
            return Self::parse(&format!("{name}{RESOLVED}"), &text);
        }
        Self::parse(&name, &text)
    }

    /// Apply one `--set path=value`. The path is dotted (`transport.initial_window`); a list takes
    /// an index (`traffic.0.size`), which may be left out where the list has one entry, and given
    /// where there is one table without a list. The value is TOML; what is not is a text, so that
    /// quotes may be left out (`queue.capacity=72000B`).
    ///
    /// # Errors
    /// A missing `=`, an empty or impossible path.
    pub fn set(&mut self, edit: &str) -> Result<(), Diagnostic> {
        let source = Arc::new(Source { name: "--set".to_owned(), text: edit.to_owned() });
        let Some((path, _)) = edit.split_once('=') else {
            return Err(Diagnostic::new("--set without a value")
                .at(&source, 0..edit.len(), "no `=` here")
                .hint("write --set path=value, for example --set transport.initial_window=23"));
        };
        let start = path.len() + 1;
        let at = At { source: Arc::clone(&source), span: start..edit.len() };
        let value = option_value(&source, start)?;
        self.put(path, Node { value, at }, |span| At { source: Arc::clone(&source), span })
    }

    /// Put `node` at `path`, as `--set` does. `place` has the place of each part of the path, which
    /// are such bytes of it.
    ///
    /// # Errors
    /// An empty or impossible path.
    pub fn put(
        &mut self,
        path: &str,
        node: Node,
        place: impl Fn(Range<usize>) -> At,
    ) -> Result<(), Diagnostic> {
        let levels = path.split('.').count();
        if levels > LEVELS_MAX {
            let error = place(0..path.len());
            let error = error.error(format!("--set with a path of {levels} levels"), "too deep");
            return Err(
                error.hint(format!("{LEVELS_MAX} levels at most; no scenario has more than five"))
            );
        }
        let mut there = &mut self.root;
        let mut from = 0;
        for key in path.split('.') {
            there = step(there, key.trim(), place(from..from + key.len()))?;
            from += key.len() + 1;
        }
        *there = node;
        Ok(())
    }
}

/// The scenario inside a manifest, as TOML.
fn of_manifest(name: &str, text: &str) -> Checked<String> {
    let wrong = |why: &str| {
        Diagnostic::new(format!("{name} is not the manifest of a run: {why}"))
            .hint("give a scenario (.toml) or the manifest.json in the output directory of a run")
    };
    let manifest: serde_json::Value =
        serde_json::from_str(text).map_err(|e| wrong(&e.to_string()))?;
    let scenario = manifest.get("scenario").ok_or_else(|| wrong("it has no scenario"))?;
    toml::to_string(scenario).map_err(|e| wrong(&e.to_string()))
}

/// A warning if the file is a manifest of another version of the engine.
pub(crate) fn of_other_engine(path: &Path) -> Option<Diagnostic> {
    let manifest = path.extension().is_some_and(|e| e == "json");
    let text = manifest.then(|| files::read_text(path).ok()).flatten()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    let engine = manifest.pointer("/versions/engine")?.as_u64()?;
    let message = format!(
        "{} is of engine {engine}, this is {ENGINE_VERSION}: results may differ from its run's",
        path.display()
    );
    (engine != u64::from(ENGINE_VERSION)).then(|| Diagnostic::new(message).warning())
}

/// The value of the option `source`, which begins at `start`: TOML if it is, else a text. It is
/// parsed in its place (`v=` stands for the end of the path), so that places are right.
fn option_value(source: &Arc<Source>, start: usize) -> Checked<Value> {
    let text = &source.text[start..];
    let padded = " ".repeat(start.saturating_sub(2)) + "v=" + text;
    match DeTable::parse(&padded) {
        Ok(table) if table.get_ref().len() == 1 && start >= 2 => {
            let table = table.get_ref().iter().next();
            let value = table.map(|(_, value)| Ok(of_spanned(value, source)?.value));
            value.unwrap_or_else(|| Ok(Value::Text(text.trim().to_owned())))
        }
        _ => Ok(Value::Text(text.trim().to_owned())),
    }
}

/// The node `key` below `node`, made if it is not there. A table that stands alone is a list of
/// one: `traffic.0` is `[traffic]`.
fn step<'a>(node: &'a mut Node, key: &str, at: At) -> Checked<&'a mut Node> {
    if key.is_empty() {
        return Err(at.error("--set with an empty path", "a key is missing here").hint(
            "write --set path=value with a dotted path, for example --set queue.capacity=72000B",
        ));
    }
    if key == "0" && matches!(node.value, Value::Table(_)) {
        return Ok(node);
    }
    match &mut node.value {
        Value::Array(items) => {
            let count = items.len();
            let index = key.parse::<usize>();
            let missing = at
                .error(format!("no entry `{key}` in a list of {count}"), "not an entry")
                .hint("lists take an index from 0, for example --set traffic.0.size=90KB");
            match index {
                Ok(i) => items.get_mut(i).ok_or(missing),
                Err(_) => match items.as_mut_slice() {
                    [only] => step(only, key, at),
                    _ => Err(missing),
                },
            }
        }
        Value::Table(table) => {
            let empty = Node { value: Value::Table(Table::new()), at: at.clone() };
            Ok(&mut table.entry(key.to_owned()).or_insert((at, empty)).1)
        }
        other => {
            let message = format!("`{key}` is below {}, which has no keys", other.kind());
            Err(at.error(message, "nothing to set").hint("leave out the last part of the path"))
        }
    }
}

fn not_toml(source: &Arc<Source>, error: &toml::de::Error) -> Diagnostic {
    let end = source.text.len();
    let span = error.span().unwrap_or(end..end);
    let message = format!("this is not TOML: {}", error.message().replace('\n', ", "));
    Diagnostic::new(message).at(source, span, "here").hint(
        "a line is `key = value`, `[table]` or `# comment`; texts stand in \"quotes\", also \
         sizes and rates: \"72000B\"",
    )
}

fn of_spanned(value: &Spanned<DeValue<'_>>, source: &Arc<Source>) -> Checked<Node> {
    let at = At { source: Arc::clone(source), span: value.span() };
    Ok(Node { value: of_value(value.get_ref(), &at)?, at })
}

fn of_value(value: &DeValue<'_>, at: &At) -> Checked<Value> {
    Ok(match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(n) => Value::Integer(
            i64::from_str_radix(&n.as_str().replace('_', ""), n.radix()).map_err(|_| {
                at.error("this number is too large", "beyond 64 bits").hint("use a smaller one")
            })?,
        ),
        DeValue::Float(x) => Value::Float(
            x.as_str()
                .replace('_', "")
                .parse()
                .map_err(|_| at.error("this is not a number", "here").hint("write it like 0.6"))?,
        ),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(items) => {
            let nodes = items.iter().map(|item| of_spanned(item, &at.source));
            Value::Array(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => of_table(table, &at.source)?,
    })
}

fn of_table(table: &DeTable<'_>, source: &Arc<Source>) -> Checked<Value> {
    let mut out = Table::new();
    for (key, value) in table {
        let at = At { source: Arc::clone(source), span: key.span() };
        out.insert(key.get_ref().clone().into_owned(), (at, of_spanned(value, source)?));
    }
    Ok(Value::Table(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(document: &'a Document, path: &[&str]) -> &'a Node {
        path.iter().fold(&document.root, |node, key| match &node.value {
            Value::Table(table) => &table[*key].1,
            Value::Array(items) => &items[key.parse::<usize>().unwrap()],
            other => panic!("{} has no {key}", other.kind()),
        })
    }

    #[test]
    fn values_know_their_place() {
        let document = Document::parse("x.toml", "[a]\nb = \"c\"\n").unwrap();
        let node = at(&document, &["a", "b"]);
        assert_eq!(node.at.span, 8..11);
        assert_eq!(node.at.error("m", "").to_string(), "x.toml:2:5: m");
    }

    #[test]
    fn set_replaces_adds_and_guesses_texts() {
        let mut d = Document::parse("x", "seed = 1\n[[traffic]]\nsize = \"1B\"\n").unwrap();
        d.set("seed=7").unwrap();
        d.set("traffic.size=135KB").unwrap();
        d.set("traffic.0.kind=\"incast\"").unwrap();
        d.set("new.table.x=0.5").unwrap();
        assert!(matches!(at(&d, &["seed"]).value, Value::Integer(7)));
        assert!(matches!(&at(&d, &["traffic", "0", "size"]).value, Value::Text(t) if t == "135KB"));
        assert!(
            matches!(&at(&d, &["traffic", "0", "kind"]).value, Value::Text(t) if t == "incast")
        );
        assert!(matches!(at(&d, &["new", "table", "x"]).value, Value::Float(0.5)));
        let place = at(&d, &["seed"]).at.error("m", "").to_string();
        assert_eq!(place, "--set:1:6: m", "errors in the value name --set");
    }

    #[test]
    fn a_single_table_is_a_list_of_one() {
        let mut d = Document::parse("x", "[traffic]\nload = 0.1\n").unwrap();
        d.set("traffic.0.load=0.2").unwrap();
        assert!(matches!(at(&d, &["traffic", "load"]).value, Value::Float(0.2)));
    }

    #[test]
    fn set_says_what_is_wrong_with_the_path() {
        let mut d = Document::parse("x", "seed = 1\n[[t]]\n[[t]]\n").unwrap();
        let mut error = |edit: &str| d.set(edit).unwrap_err().to_string();
        assert!(error("seed").starts_with("--set:1:1: --set without a value"));
        assert!(error("a..b=1").starts_with("--set:1:3: --set with an empty path"));
        assert!(error("t.2.x=1").starts_with("--set:1:3: no entry `2` in a list of 2"));
        assert!(error("seed.x=1").starts_with("--set:1:6: `x` is below a whole number"));
    }

    /// It overflowed the stack.
    #[test]
    fn a_path_of_many_levels_is_refused() {
        let mut d = Document::parse("x", "seed = 1\n").unwrap();
        let deep = vec!["a"; 60_000].join(".") + "=1";
        let error = d.set(&deep).unwrap_err().to_string();
        assert!(error.starts_with("--set:1:1: --set with a path of 60000 levels"), "{error}");
        let in_value = format!("x={{{}=1}}", vec!["a"; 60_000].join("."));
        d.set(&in_value).unwrap();
        assert!(d.set(&(vec!["b"; 64].join(".") + "=1")).is_ok());
        assert!(Document::parse("y", &(vec!["a"; 60_000].join(".") + "=1")).is_err());
    }
}
