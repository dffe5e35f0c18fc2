//! `[[variant]]`: named sets of edits of a scenario, which `trimline compare` and `trimline sweep`
//! run beside each other.

use crate::diagnostic::{Checked, Diagnostic};
use crate::document::{At, Node, Table, Value};
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::value::{Form, Refused, ScenarioValue};

/// A named set of edits.
#[derive(Clone, Debug)]
pub struct Variant {
    name: String,
    at: At,
    edits: Vec<(String, At)>,
}

impl Variant {
    /// What tables call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its edits, as `--set` takes them, and where each is written. None: the scenario as it
    /// stands.
    #[must_use]
    pub fn edits(&self) -> &[(String, At)] {
        &self.edits
    }

    /// `error` at the edit that it is about, if it is about one of these; else with the variant's
    /// name.
    #[must_use]
    pub fn located(&self, error: Diagnostic) -> Diagnostic {
        let edit = self.edits.iter().find(|(edit, _)| error.edit() == Some(edit));
        match edit {
            Some((_, at)) => error.moved_to(at, "here"),
            None => error.remark(&format!("in `{}`", self.name)),
        }
    }

    /// A warning about it.
    #[must_use]
    pub fn warning(&self, message: impl Into<String>, label: &str) -> Diagnostic {
        self.at.error(message, label).warning()
    }
}

/// What a `[[variant]]` table says.
#[derive(Default)]
struct Written {
    name: String,
    set: Edits,
}

keys! { VARIANT: Written {
    name: String, "what tables and pages call it".range("not empty, and that of no other variant")
            .written();
    set: Edits, "edits as for `--set`: a path in quotes, or a table. One with a `kind` replaces the \
        scenario's whole, of another the keys that it has are set"
            .range("not `seed`").default("the scenario as it stands");
}}

/// For the reference.
pub(crate) fn keys() -> Vec<Section> {
    vec![section("variant", VARIANT, &[], None)]
}

/// Read all `[[variant]]` of `root`.
pub(crate) fn read(root: &mut Reader<'_>) -> Checked<Vec<Variant>> {
    let mut variants: Vec<Variant> = Vec::new();
    for mut table in root.tables("variant")? {
        let mut written = Written::default();
        table.all_keys(VARIANT, &mut written)?;
        let Written { name, set: Edits(edits) } = written;
        if name.trim().is_empty() {
            return table.fail("name", "a variant without a name", "empty", "give it one");
        }
        if variants.iter().any(|other| other.name == name) {
            let message = format!("two variants are called `{name}`");
            return table.fail("name", message, "again", "give one of them another name");
        }
        let at = table.place("name");
        table.finish()?;
        variants.push(Variant { name, at, edits });
    }
    Ok(variants)
}

/// Edits as `--set` takes them, each with its place.
#[derive(Clone, Debug, Default)]
struct Edits(Vec<(String, At)>);

impl ScenarioValue for Edits {
    fn form() -> Form {
        Form::new("table", "{ \"transport.initial_window\" = 30 }", "object")
    }

    fn read(value: &Value) -> Result<Self, Refused> {
        let Value::Table(table) = value else {
            return Err(format!("a table of edits is wanted, not {}", value.kind()).into());
        };
        let mut edits = Vec::new();
        collect("", table, &mut edits)?;
        Ok(Self(edits))
    }

    fn show(&self) -> toml::Value {
        let texts = self.0.iter().map(|(text, _)| toml::Value::String(text.clone()));
        toml::Value::Array(texts.collect())
    }
}

/// The edits of `table`, whose keys are below `path`.
fn collect(path: &str, table: &Table, edits: &mut Vec<(String, At)>) -> Result<(), Refused> {
    for (key, (at, node)) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if path.contains('=') || path.split('.').any(|part| part.trim().is_empty()) {
            return Err(format!("`{path}` is no path of a scenario").into());
        }
        if path == "seed" {
            let why = "`seed` is set: all variants have the same seeds, so that they have the same \
                       traffic";
            return Err(why.to_owned().into());
        }
        match &node.value {
            Value::Table(keys) if !keys.contains_key("kind") => collect(&path, keys, edits)?,
            _ => edits.push((format!("{path}={}", shown(node)), at.clone())),
        }
    }
    Ok(())
}

/// The value as TOML, on one line as far as it goes.
fn shown(node: &Node) -> toml::Value {
    match &node.value {
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::Integer(n) => toml::Value::Integer(*n),
        Value::Float(x) => toml::Value::Float(*x),
        Value::Boolean(b) => toml::Value::Boolean(*b),
        Value::Array(items) => toml::Value::Array(items.iter().map(shown).collect()),
        Value::Table(table) => {
            let entry = |(key, (_, node)): (&String, &(At, Node))| (key.clone(), shown(node));
            toml::Value::Table(table.iter().map(entry).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn of(text: &str) -> Checked<Vec<Variant>> {
        let document = Document::parse("x.toml", text).unwrap();
        read(&mut Reader::new(&document.root, &document.root.at, "the scenario").unwrap())
    }

    fn edits(text: &str) -> Vec<String> {
        let variants = of(&format!("[[variant]]\nname = \"a\"\n{text}")).unwrap();
        variants[0].edits().iter().map(|(edit, _)| edit.clone()).collect()
    }

    #[test]
    fn a_table_with_a_kind_is_replaced_whole() {
        assert_eq!(edits(""), [""; 0]);
        let paths = "set = { \"transport.initial_window\" = 3, \"name\" = \"it's\" }";
        assert_eq!(edits(paths), ["name=\"it's\"", "transport.initial_window=3"]);
        let dotted = "set = { measure.to = \"5ms\", measure.rtt = true }";
        assert_eq!(edits(dotted), ["measure.rtt=true", "measure.to=\"5ms\""]);
        let whole = "[variant.set.transport]\nkind = \"ndp\"\npayload = \"9000B\"";
        assert_eq!(edits(whole), ["transport={ kind = \"ndp\", payload = \"9000B\" }"]);
        let list = "set = { fault = [{ at = \"1us\" }] }";
        assert_eq!(edits(list), ["fault=[{ at = \"1us\" }]"]);
    }

    #[test]
    fn an_edit_is_taken_back_as_it_was_written() {
        let odd = "set = { \"a.b\" = \"x = [1]\\n\\\"y\\\"\", c = [1.5, true] }";
        let mut document = Document::parse("y.toml", "seed = 1").unwrap();
        for edit in edits(odd) {
            document.set(&edit).unwrap();
        }
        let Value::Table(root) = &document.root.value else { panic!("a table") };
        let Value::Table(a) = &root["a"].1.value else { panic!("a table") };
        assert!(matches!(&a["b"].1.value, Value::Text(text) if text == "x = [1]\n\"y\""));
        assert!(matches!(&root["c"].1.value, Value::Array(items) if items.len() == 2));
    }

    #[test]
    fn what_is_no_variant() {
        let error = |text: &str| of(text).unwrap_err().to_string();
        let twice = error("[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"\n");
        assert!(twice.starts_with("x.toml:4:8: two variants are called `a`"), "{twice}");
        let named = error("[[variant]]\nset = {}\n");
        assert!(named.contains("`name` is missing in [variant] (number 0)"), "{named}");
        let seed = error("[[variant]]\nname = \"a\"\nset = { seed = 3 }\n");
        assert!(seed.starts_with("x.toml:3:7: ") && seed.contains("the same seeds"), "{seed}");
        let unknown = error("[[variant]]\nname = \"a\"\nsets = {}\n");
        assert!(unknown.contains("did you mean `set`?"), "{unknown}");
        let text = error("[[variant]]\nname = \"a\"\nset = \"transport.kind=ndp\"\n");
        assert!(text.contains("a table of edits is wanted, not a text"), "{text}");
    }
}
