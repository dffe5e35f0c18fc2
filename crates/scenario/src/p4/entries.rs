//! [`Entries`]: what a TOML file puts into the tables of a P4 program, in place of a control plane.
//!
//! Tables, keys, actions and parameters are named as the program names them. Numbers are TOML's, or
//! texts: `"0x1f"`, `"10.0.0.1"`, `"02:00:00:00:00:01"`. docs/p4.md describes the file.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use p4::ir::{self, Choice, Entry, Key, MatchKind, Pattern, TableId, prefix_length};
use p4::state::{Refused, State};

use crate::diagnostic::{Checked, Diagnostic, did_you_mean};
use crate::document::{At, Document, Node, Table, Value};
use crate::reader::Reader;
use crate::value::ScenarioValue;

/// What is put into tables, checked against the program that they are of.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Insert(TableId, Entry),
    Default(TableId, Choice),
}

impl Change {
    fn apply(&self, state: &mut State) -> Result<(), Refused> {
        match self {
            Self::Insert(table, entry) => state.insert(*table, entry.clone()),
            Self::Default(table, choice) => state.set_default(*table, choice.clone()),
        }
    }
}

impl Entries {
    /// Read `text`, which messages call `name`.
    ///
    /// # Errors
    /// What is not as the program has it, and where.
    pub fn read(program: &Arc<ir::Program>, name: &str, text: &str) -> Result<Self, Diagnostic> {
        let document = Document::parse(name, text)?;
        let mut file = Reader::new(&document.root, &document.root.at, "the file of entries")?;
        let mut state = State::new(Arc::clone(program));
        let mut changes = Vec::new();
        for mut table in file.tables("entry")? {
            let (id, known) = table_named(&mut table, program)?;
            let patterns = patterns(&mut table, known)?;
            let priority = priority(&mut table, known)?;
            let choice = choice(&mut table, program, known, Role::Entry)?;
            let change = Change::Insert(id, Entry { patterns, priority, choice });
            change.apply(&mut state).map_err(|why| refused(&table, &why))?;
            changes.push(change);
            table.finish()?;
        }
        for mut table in file.tables("default")? {
            let (id, known) = table_named(&mut table, program)?;
            let change = Change::Default(id, choice(&mut table, program, known, Role::Default)?);
            change.apply(&mut state).map_err(|why| refused(&table, &why))?;
            changes.push(change);
            table.finish()?;
        }
        file.finish()?;
        Ok(Self { changes })
    }

    /// Put them into the tables of their program, which are as it begins.
    pub fn apply(&self, state: &mut State) {
        for change in &self.changes {
            // All of them have been put into such tables before.
            let _ = change.apply(state);
        }
    }
}

/// What the tables would have refused.
fn refused(table: &Reader<'_>, why: &Refused) -> Diagnostic {
    let (key, hint) = match why {
        Refused::Constant { .. } => ("table", "its source says `const`: change it there"),
        Refused::Duplicate { .. } => ("key", "change one of them, or its priority"),
        Refused::Full { .. } => ("table", "make `size` larger in the source"),
        _ => ("table", "see the table in the source"),
    };
    table.error(key, why.to_string(), "here").hint(hint)
}

fn table_named<'p>(
    table: &mut Reader<'_>,
    program: &'p ir::Program,
) -> Checked<(TableId, &'p ir::Table)> {
    let name: String = table.need("table")?;
    let id = program.table(&name).ok_or_else(|| {
        let known: Vec<&str> = program.tables.iter().map(|t| t.name.as_str()).collect();
        let message = format!("the program has no table `{name}`, or several");
        table.error("table", message, "no such name").hint(did_you_mean(&name, &known))
    })?;
    Ok((id, &program.tables[id.index()]))
}

/// The table below `key`, if it is there.
fn named<'d>(table: &mut Reader<'d>, key: &'static str) -> Checked<Option<&'d Table>> {
    match table.node(key) {
        None => Ok(None),
        Some(Node { value: Value::Table(named), .. }) => Ok(Some(named)),
        Some(Node { value, at }) => {
            let message = format!("`{key}` is a table of names and values, not {}", value.kind());
            Err(at.error(message, "here").hint(format!("write it like `{key} = {{ name = 1 }}`")))
        }
    }
}

/// An error at a name that nothing has.
fn unknown(at: &At, what: &str, name: &str, known: &[&str]) -> Diagnostic {
    at.error(format!("no {what} `{name}`"), "no such name").hint(did_you_mean(name, known))
}

/// A pattern for each key of the table. What is not written matches everything.
fn patterns(table: &mut Reader<'_>, known: &ir::Table) -> Checked<Vec<Pattern>> {
    let empty = Table::new();
    let written = named(table, "key")?.unwrap_or(&empty);
    let names: Vec<&str> = known.keys.iter().map(|key| key.name.as_str()).collect();
    for (name, (at, _)) in written {
        if !names.contains(&name.as_str()) {
            return Err(unknown(at, &format!("key in {}", known.name), name, &names));
        }
    }
    let pattern = |key: &Key| match (written.get(&key.name), key.kind) {
        (Some((_, node)), _) => pattern(&node.value, key).map_err(|why| {
            let (message, hint) = (format!("`{}`: {why}", key.name), key_hint(key));
            node.at.error(message, "here").hint(hint)
        }),
        (None, MatchKind::Exact) => {
            let message = format!("the exact key `{}` has no value", key.name);
            table.fail("key", message, "here", key_hint(key))
        }
        (None, _) => Ok(Pattern::Any),
    };
    known.keys.iter().map(pattern).collect()
}

/// How a key is written.
fn key_hint(key: &Key) -> String {
    let (name, width) = (&key.name, key.value.width);
    match key.kind {
        MatchKind::Exact => format!("a number of {width} bits: `\"{name}\" = 7`"),
        MatchKind::Ternary => {
            format!("a number of {width} bits, with or without a mask: `\"{name}\" = \"4 &&& 6\"`")
        }
        MatchKind::Lpm => {
            format!(
                "a number of {width} bits and how many of them count: `\"{name}\" = \"0x40/2\"`"
            )
        }
    }
}

/// `7`, `"4 &&& 6"`, `"10.0.0.0/8"` or `"_"`.
fn pattern(value: &Value, key: &Key) -> Result<Pattern, String> {
    let width = key.value.width;
    let text = match value {
        Value::Text(text) => text.trim(),
        _ => "",
    };
    let pattern = if text == "_" {
        Pattern::Any
    } else if let Some((value, mask)) = text.split_once("&&&") {
        Pattern::Mask { value: fitting(value, width)?, mask: fitting(mask, width)? }
    } else if let Some((value, length)) = text.split_once('/') {
        let length = length.trim().parse::<u16>().ok().filter(|length| *length <= width);
        let length = length.ok_or_else(|| format!("a prefix has 0 to {width} bits"))?;
        let mask = ir::mask(width) & !ir::mask(width - length);
        Pattern::Mask { value: fitting(value, width)?, mask }
    } else {
        Pattern::Value(number(value, width)?)
    };
    match (pattern, key.kind) {
        (Pattern::Mask { value, mask }, _) if value & !mask != 0 => {
            Err(format!("{value:#x} has bits outside of the mask {mask:#x}"))
        }
        (Pattern::Any | Pattern::Mask { .. }, MatchKind::Exact) => {
            Err("an exact key has one value".to_owned())
        }
        (pattern, MatchKind::Lpm) if prefix_length(pattern, width).is_none() => {
            Err("the mask of an lpm key is a prefix: ones, then zeros".to_owned())
        }
        (pattern, _) => Ok(pattern.canonical(width)),
    }
}

/// A number of so many bits, as TOML or a text writes it.
fn number(value: &Value, width: u16) -> Result<u128, String> {
    match value {
        Value::Boolean(value) if width == 1 => Ok(u128::from(*value)),
        Value::Integer(n) => fitting(&n.to_string(), width),
        Value::Text(text) => fitting(text, width),
        other => Err(format!("{} where a number of {width} bits is wanted", other.kind())),
    }
}

/// `12`, `0x1f`, `0b101`, an IPv4 address (32 bits), an IPv6 address (128) or a MAC address (48).
fn fitting(text: &str, width: u16) -> Result<u128, String> {
    let text = text.trim();
    let none = || format!("`{text}` is no number of {width} bits");
    let digits = text.replace('_', "");
    let radix = |prefix, radix| digits.strip_prefix(prefix).map(|rest| (rest.to_owned(), radix));
    let value = if width == 32 && text.contains('.') {
        u128::from(text.parse::<Ipv4Addr>().map_err(|_| none())?.to_bits())
    } else if width == 128 && text.contains(':') {
        text.parse::<Ipv6Addr>().map_err(|_| none())?.to_bits()
    } else if width == 48 && text.contains(':') {
        mac(text).ok_or_else(none)?
    } else {
        let plain = || (digits.clone(), 10);
        let (digits, radix) = radix("0x", 16).or_else(|| radix("0b", 2)).unwrap_or_else(plain);
        let digits = Some(digits).filter(|digits| !digits.starts_with('+')).ok_or_else(none)?;
        u128::from_str_radix(&digits, radix).map_err(|_| none())?
    };
    if value > ir::mask(width) {
        return Err(format!("{text} does not fit {width} bits"));
    }
    Ok(value)
}

/// `02:00:00:00:00:01`.
fn mac(text: &str) -> Option<u128> {
    let bytes: Option<Vec<u8>> = text
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok().filter(|_| byte.len() == 2))
        .collect();
    let bytes = bytes.filter(|bytes| bytes.len() == 6)?;
    Some(bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
}

/// `priority`, which decides between entries with ternary keys and means nothing elsewhere.
fn priority(table: &mut Reader<'_>, known: &ir::Table) -> Checked<u32> {
    if known.keys.iter().any(|key| key.kind == MatchKind::Ternary) {
        return table.need("priority");
    }
    match table.node("priority") {
        None => Ok(0),
        Some(node) => {
            let message = format!("`priority` in the table {} without ternary keys", known.name);
            Err(node.at.error(message, "means nothing").hint("remove it; the longest prefix wins"))
        }
    }
}

/// What a choice is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Entry,
    Default,
}

/// `action` and `arguments`.
fn choice(
    table: &mut Reader<'_>,
    program: &ir::Program,
    known: &ir::Table,
    role: Role,
) -> Checked<Choice> {
    let name: String = table.need("action")?;
    let may = |action: &ir::TableAction| match role {
        Role::Entry => action.in_entries,
        Role::Default => action.as_default,
    };
    let actions = || (0..).zip(&known.actions).filter(|(_, action)| may(action));
    let named_so = |action: &ir::TableAction| program.action_name(known, action) == name;
    let Some((chosen, action)) = actions().find(|(_, action)| named_so(action)) else {
        let names: Vec<&str> = actions().map(|(_, a)| program.action_name(known, a)).collect();
        return Err(unknown(&table.place("action"), "action here", &name, &names));
    };
    let empty = Table::new();
    let written = named(table, "arguments")?.unwrap_or(&empty);
    let params = program.params(known, action);
    let names: Vec<&str> = params.iter().map(|(name, _)| *name).collect();
    for (given, (at, _)) in written {
        if !names.contains(&given.as_str()) {
            return Err(unknown(at, &format!("parameter of `{name}`"), given, &names));
        }
    }
    let mut args = Vec::new();
    for (param, width) in params {
        let Some((_, node)) = written.get(param) else {
            let message = format!("`{name}` has no argument for `{param}`");
            let hint = format!("add `arguments = {{ {param} = ... }}`, a number of {width} bits");
            return table.fail("arguments", message, "here", hint);
        };
        args.push(number(&node.value, width).map_err(|why| {
            let hint = format!("a number such as {}, of at most {width} bits", u32::form().example);
            node.at.error(format!("`{param}`: {why}"), "here").hint(hint)
        })?);
    }
    Ok(Choice { action: chosen, args })
}
