//! python/trimline/keys.py says of keys what the schema says, as types of Python. With UPDATE=1 in
//! the environment it is written anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};
use trimline_scenario::list;

const HEAD: &str = "\"\"\"Tables of a scenario and their keys, for type checkers and editors.

Made from the definitions of keys by `UPDATE=1 cargo test -p trimline-scenario --test it
python_keys`. `docs/scenario-reference.md` explains them.
\"\"\"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Union
";

/// The most columns of a line.
const WIDTH: usize = 100;

/// Keys that are no names in Python.
const RESERVED: [&str; 3] = ["class", "from", "lambda"];

/// The classes and unions so far, those first that others name.
#[derive(Default)]
struct Module {
    text: String,
    /// By name, what each describes: tables of several kinds have the same table inside.
    seen: BTreeMap<String, Value>,
}

impl Module {
    /// The type of what `schema` describes, which is called `name` if it is a table; tables in it
    /// are called `family` and their key.
    fn type_of(&mut self, name: &str, family: &str, schema: &Value) -> String {
        if let Some(reference) = schema["$ref"].as_str() {
            return camel(reference.rsplit('/').next().unwrap());
        }
        if let Some(words) = schema["enum"].as_array() {
            return literal(words);
        }
        if let Some(word) = schema.get("const") {
            return literal(std::slice::from_ref(word));
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            let types = choices.iter().map(|each| self.type_of(name, family, each));
            return either(types.collect());
        }
        if let Some(items) = schema.get("items") {
            return format!("Sequence[{}]", self.type_of(name, family, items));
        }
        if schema["oneOf"].is_array() || schema["properties"].is_object() {
            if let Some(seen) = self.seen.insert(name.to_owned(), schema.clone()) {
                assert_eq!(seen, *schema, "two tables called {name}");
            } else if let Some(kinds) = schema["oneOf"].as_array() {
                self.union(name, kinds);
            } else if let Some(properties) = schema["properties"].as_object() {
                self.class(name, family, properties);
            }
            return name.to_owned();
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            one => vec![one.clone()],
        };
        either(types.iter().map(|json| plain(json.as_str().unwrap())).collect())
    }

    /// A table whose keys depend on its `kind`.
    fn union(&mut self, name: &str, kinds: &[Value]) {
        let kind = |kind: &Value| kind["properties"]["kind"]["const"].as_str().unwrap().to_owned();
        let class = |each: &Value| format!("{name}{}", camel(&kind(each)));
        let names: Vec<String> = kinds.iter().map(class).collect();
        for (each, class) in kinds.iter().zip(&names) {
            self.type_of(class, name, each);
        }
        let list: String = names.iter().map(|name| format!("    {name},\n")).collect();
        write!(self.text, "\n\n#: Any kind.\n{name} = Union[\n{list}]\n").unwrap();
    }

    fn class(&mut self, name: &str, family: &str, properties: &Map<String, Value>) {
        let about = properties.get("kind").and_then(|kind| kind["description"].as_str());
        let about = about.map_or_else(|| format!("The table {}.", spaced(name)), sentence);
        let (mut fields, mut reserved) = (String::new(), String::new());
        for (key, value) in properties {
            let inner = self.type_of(&format!("{family}{}", camel(key)), family, value);
            if RESERVED.contains(&key.as_str()) {
                reserved += &format!("        {key:?}: {inner},\n");
                continue;
            }
            let about = value["description"].as_str().map(|about| docstring(&sentence(about)));
            fields += &format!("    {key}: {inner}\n{}", about.unwrap_or_default());
        }
        let mut base = "TypedDict".to_owned();
        if !reserved.is_empty() {
            base = format!("_{name}");
            let arguments = format!("    {base:?},\n    {{\n{reserved}    }},\n    total=False,\n");
            write!(self.text, "\n\n{base} = TypedDict(\n{arguments})\n").unwrap();
        }
        let about = docstring(&about);
        write!(self.text, "\n\nclass {name}({base}, total=False):\n{about}\n{fields}").unwrap();
    }
}

/// A type of JSON in Python.
fn plain(json: &str) -> String {
    match json {
        "string" => "str",
        "integer" => "int",
        "number" => "float",
        "boolean" => "bool",
        "array" => "Sequence[Any]",
        "object" => "dict[str, Any]",
        other => panic!("no type of Python for {other}"),
    }
    .to_owned()
}

fn literal(words: &[Value]) -> String {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    format!("Literal[{}]", words.join(", "))
}

/// The union of `types`, each once.
fn either(types: Vec<String>) -> String {
    let mut once: Vec<String> = Vec::new();
    types.into_iter().for_each(|each| {
        if !once.contains(&each) {
            once.push(each);
        }
    });
    match once.as_slice() {
        [alone] => alone.clone(),
        several => format!("Union[{}]", several.join(", ")),
    }
}

/// `leaf-spine` as `LeafSpine`.
fn camel(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    let upper = |part: &str| {
        let (first, rest) = part.split_at(1);
        first.to_uppercase() + rest
    };
    parts.filter(|part| !part.is_empty()).map(upper).collect()
}

/// `HostStack` as `host.stack`.
fn spaced(name: &str) -> String {
    let dotted = name.chars().fold(String::new(), |mut dotted, c| {
        if c.is_uppercase() && !dotted.is_empty() {
            dotted.push('.');
        }
        dotted.extend(c.to_lowercase());
        dotted
    });
    format!("`[{dotted}]`")
}

/// With a capital letter and a full stop, without the links of the reference page.
fn sentence(about: &str) -> String {
    let mut plain = String::new();
    let mut rest = about;
    while let Some((before, link)) = rest.split_once("](") {
        let (text, after) = (before.rsplit_once('[').unwrap(), link.split_once(')').unwrap().1);
        plain += &format!("{}{}", text.0, text.1);
        rest = after;
    }
    plain += rest;
    let mut chars = plain.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    let whole: String = first.chain(chars).collect();
    whole.trim_end_matches('.').to_owned() + "."
}

/// `text` as the docstring of a class or a field, wrapped.
fn docstring(text: &str) -> String {
    let (margin, text) = ("    ", text.replace('\\', "\\\\"));
    let mut lines = vec![format!("{margin}\"\"\"")];
    for (n, word) in text.split_whitespace().enumerate() {
        let last = lines.last_mut().unwrap();
        if n > 0 && last.chars().count() + 1 + word.chars().count() > WIDTH - 3 {
            lines.push(format!("{margin}{word}"));
        } else {
            *last += if n > 0 { " " } else { "" };
            *last += word;
        }
    }
    lines.join("\n") + "\"\"\"\n"
}

#[test]
fn types_of_python_have_every_key_as_it_is_defined() {
    let schema = list::schema();
    let mut module = Module::default();
    // Others refer to these.
    for (name, table) in schema["definitions"].as_object().unwrap() {
        module.type_of(&camel(name), &camel(name), table);
    }
    let properties = schema["properties"].as_object().unwrap();
    let fields = properties.iter().map(|(key, value)| {
        let inner = module.type_of(&camel(key), &camel(key), value);
        format!("    {key}: {inner}\n")
    });
    let fields: String = fields.collect();
    let about = "    \"\"\"A scenario: one experiment.\"\"\"\n";
    let scenario = format!("\n\nclass Scenario(TypedDict, total=False):\n{about}\n{fields}");
    let others = "    sweep: dict[str, Any]\n    tune: dict[str, Any]\n";
    let text = format!("{HEAD}{}{scenario}{others}", module.text);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/trimline/keys.py");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&page, &text).unwrap();
    }
    let there = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(there == text, "python/trimline/keys.py is another: UPDATE=1 writes it anew");
}
