//! Tables (section 14.2).

use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::super::ast::{
    ActionRef, Arg, Direction, Entry, Expr, ExprKind, Key, KeySet, Name, Table,
};
use super::super::diagnostic::did_you_mean;
use super::super::limits::{DEFAULT_ENTRIES, MAX_ENTRIES};
use super::super::source::Span;
use super::call::arguments;
use super::frame::TableActions;
use super::scope::{Lowered, Symbol};
use super::types::Type;
use super::value::{Storage, as_bits};
use super::{Checked, Checker, Within};
use crate::ir::{
    self, Choice, MatchKind, Pattern, PipelineId, SlotId, StmtKind, TableAction, TableId,
};

/// An action of a table as it is being checked.
struct Listed {
    lowered: Rc<Lowered>,
    /// Arguments that the list gives, as written: entries and the default action repeat them.
    bound: Vec<String>,
    name: Rc<str>,
    made: TableAction,
}

impl Checker<'_> {
    pub(super) fn table(&mut self, table: &Rc<Table>) -> Checked<()> {
        let path = self.path(&table.name.text);
        if self.program.tables.iter().any(|t| t.name == path) {
            let what = format!("the table `{}` in a control that is applied twice", table.name);
            let instead = "make two instances of the control, or apply it once";
            return Err(self.refuse(table.name.span, &what, instead));
        }
        if let ([], [entry, ..]) = (&table.keys[..], &table.entries[..]) {
            // Section 14.2.1.1: without keys nothing is looked up.
            let hint = "the default action always runs";
            return Err(self.error(entry.span, "an entry in a table without keys", hint));
        }
        let (keys, types) = self.keys(&table.keys)?;
        let mut listed = Vec::new();
        for action in &table.actions {
            self.list_action(table, action, &mut listed)?;
        }
        let mut lowered = ir::Table {
            name: path,
            pipeline: PipelineId(self.program.pipelines.len() as u32),
            keys,
            actions: listed.iter().map(|l| l.made.clone()).collect(),
            default: self.default_action(table, &listed)?,
            const_default: table.default_action.as_ref().is_some_and(|(constant, _)| *constant),
            entries: Vec::new(),
            const_entries: table.const_entries,
            size: self.table_size(table)?,
            place: self.place(table.name.span),
        };
        for entry in &table.entries {
            let made = self.entry(entry, &listed, &lowered, &types)?;
            lowered.entries.push(made);
        }
        if lowered.entries.len() > lowered.size as usize {
            let message =
                format!("{} entries in a table of {}", lowered.entries.len(), lowered.size);
            return Err(self.error(table.name.span, message, "make `size` larger"));
        }
        let id = TableId(self.program.tables.len() as u32);
        self.program.tables.push(lowered);
        let names = listed.iter().map(|l| Rc::clone(&l.name)).collect();
        let exits = listed.iter().any(|l| l.lowered.exits);
        let statements = listed.iter().map(|l| l.lowered.statements).sum();
        self.frame.tables.push(TableActions { id, names, exits, statements });
        self.declare(&table.name, Symbol::Table(id, Rc::clone(&table.name.text)))
    }

    fn table_size(&mut self, table: &Table) -> Checked<u32> {
        let Some(size) = &table.size else {
            let entries = u32::try_from(table.entries.len()).unwrap_or(u32::MAX);
            return Ok(if table.const_entries {
                entries.max(1)
            } else {
                DEFAULT_ENTRIES.max(entries)
            });
        };
        let given = self.expr(size)?;
        let value = self.known(&given, "the size of a table")?;
        match value.to_u32().filter(|n| (1..=MAX_ENTRIES).contains(n)) {
            Some(size) => Ok(size),
            None => Err(self.error(size.span, format!("a table of {value} entries"), "1 to 2^24")),
        }
    }

    fn keys(&mut self, keys: &[Key]) -> Checked<(Vec<ir::Key>, Vec<Type>)> {
        let (mut all, mut types): (Vec<ir::Key>, Vec<Type>) = (Vec::new(), Vec::new());
        for key in keys {
            let (given, effects) = self.collect(|c| c.expr(&key.value))?;
            if !effects.is_empty() {
                let instead = "assign the result to a variable before the table is applied";
                return Err(self.refuse(key.value.span, "a call in a key", instead));
            }
            let value = self.scalar(&given)?;
            let kind = self.match_kind(&key.match_kind)?;
            if kind == MatchKind::Lpm && all.iter().any(|k| k.kind == MatchKind::Lpm) {
                let instead = "make one of them ternary";
                return Err(self.refuse(key.match_kind.span, "two `lpm` keys", instead));
            }
            all.push(ir::Key { name: self.written(key.value.span), value, kind });
            types.push(given.ty);
        }
        Ok((all, types))
    }

    /// The text of the program at a place.
    fn written(&self, span: Span) -> String {
        let file = self.messages.sources.file(span.file);
        file.and_then(|f| f.text.get(span.range())).unwrap_or_default().to_owned()
    }

    /// The same without white space: what is compared to tell whether two expressions are one.
    fn words(&self, span: Span) -> String {
        self.written(span).split_whitespace().collect()
    }

    fn match_kind(&mut self, name: &Name) -> Checked<MatchKind> {
        let declared = matches!(self.scopes.find_global(&name.text), Some(Symbol::MatchKind));
        if !declared && ["exact", "ternary", "lpm"].contains(&&*name.text) {
            let message = format!("the match kind `{name}` is not declared");
            return Err(self.error(name.span, message, "write `#include <core.p4>`"));
        }
        match &*name.text {
            "exact" => Ok(MatchKind::Exact),
            "ternary" => Ok(MatchKind::Ternary),
            "lpm" => Ok(MatchKind::Lpm),
            "range" | "optional" | "selector" => {
                let what = format!("the match kind `{name}`");
                Err(self.refuse(name.span, &what, "use `ternary`, with an entry for each prefix"))
            }
            _ => {
                let hint = did_you_mean(
                    &name.text,
                    ["exact", "ternary", "lpm"],
                    "there is `exact`, `ternary` and `lpm`",
                );
                Err(self.error(name.span, format!("unknown match kind `{name}`"), hint))
            }
        }
    }

    /// An action by its name.
    fn action_named(&mut self, name: &Name) -> Checked<Rc<Lowered>> {
        match self.scopes.find(&name.text).cloned() {
            Some(Symbol::Lowered(lowered)) => Ok(lowered),
            Some(Symbol::Action(action)) => self.global_action(&action),
            Some(other) => Err(self.misused(name, &other, "", "an action")),
            None => {
                let known =
                    self.scopes.names(|s| matches!(s, Symbol::Lowered(_) | Symbol::Action(_)));
                let hint = did_you_mean(&name.text, known, "actions are declared before tables");
                Err(self.error(name.span, format!("unknown action `{name}`"), hint))
            }
        }
    }

    /// One of `actions = { ... }`. Parameters with a direction are bound here; such an action is
    /// wrapped in one that has only the control plane's parameters.
    fn list_action(
        &mut self,
        table: &Table,
        action: &ActionRef,
        listed: &mut Vec<Listed>,
    ) -> Checked<()> {
        let lowered = self.action_named(&action.name)?;
        if listed.iter().any(|l| l.name == action.name.text) {
            let message = format!("`{}` is listed twice", action.name);
            return Err(self.error(action.span, message, "remove one"));
        }
        let directed =
            lowered.action.params.iter().filter(|p| p.direction != Direction::None).count();
        if action.args.len() != directed {
            let message = format!(
                "`{}` has {directed} parameters with a direction, not {}",
                action.name,
                action.args.len()
            );
            let hint = "bind those with `in`, `out` or `inout` here; entries give the others";
            return Err(self.error(action.span, message, hint));
        }
        let directed = lowered.action.params.iter().filter(|p| p.direction != Direction::None);
        let directed: Vec<_> = directed.cloned().collect();
        let name = &action.name.text;
        let args = self.ordered(&directed, &action.args, name, action.span)?;
        let bound = args.iter().map(|a| self.words(a.span)).collect();
        let id = if directed.is_empty() {
            lowered.id
        } else {
            let args = args.into_iter().map(|value| Arg { name: None, value: value.clone() });
            self.wrapper(table, &lowered, args.collect(), action.span)?
        };
        let has = |name: &str| action.annotations.iter().any(|a| *a.name.text == *name);
        let (in_entries, as_default) = (!has("defaultonly"), !has("tableonly"));
        let made = TableAction { action: id, in_entries, as_default };
        listed.push(Listed { lowered, bound, name: Rc::clone(&action.name.text), made });
        Ok(())
    }

    /// An action that calls `lowered` with these arguments and passes on those of the entry.
    fn wrapper(
        &mut self,
        table: &Table,
        lowered: &Rc<Lowered>,
        args: Vec<Arg>,
        span: Span,
    ) -> Checked<ir::ActionId> {
        let action = Rc::clone(&lowered.action);
        let name = self.path(&format!("{}.{}", table.name, action.name));
        let within = std::mem::replace(&mut self.within, Within::Action);
        self.scopes.open();
        let mut inputs: Vec<SlotId> = Vec::new();
        let body = self.collect(|c| {
            let mut all = args;
            for (param, made) in action.params.iter().zip(&lowered.params) {
                if param.direction != Direction::None {
                    continue;
                }
                let storage = c.storage(&format!("{name}.{}", param.name), &made.ty, span)?;
                inputs.extend(storage.slots());
                // A name of its own: the expressions bound in the list may use the parameter's.
                let hidden =
                    Name { text: format!("${}", param.name).into(), span: param.name.span };
                let (ty, readonly) = (made.ty.clone(), Some("a parameter of the control plane"));
                c.declare(&hidden, Symbol::Variable { ty, storage, readonly })?;
                let kind = ExprKind::Name { name: hidden, global: false };
                all.push(Arg { name: None, value: Expr { kind, span, depth: 1 } });
            }
            c.run_action(lowered, &all, span)
        });
        self.scopes.close();
        self.within = within;
        let (_, body) = body?;
        Ok(self.new_action(name, inputs, body, span))
    }

    /// P4-16 lets a miss do nothing unasked (section 14.2.1.3); here a program says so.
    fn default_action(&mut self, table: &Table, listed: &[Listed]) -> Checked<Choice> {
        match &table.default_action {
            Some((_, action)) => self.choice_of(action, listed, true),
            None => {
                let what = format!("the table `{}` without a default action", table.name);
                let instead = "if a miss does nothing, write `default_action = NoAction();`";
                Err(self.refuse(table.name.span, &what, instead))
            }
        }
    }

    /// An action with its arguments, in an entry or as the default.
    fn choice_of(
        &mut self,
        action: &ActionRef,
        listed: &[Listed],
        is_default: bool,
    ) -> Checked<Choice> {
        let Some(at) = listed.iter().position(|l| l.name == action.name.text) else {
            let known = listed.iter().map(|l| &*l.name);
            let hint = did_you_mean(&action.name.text, known, "add it to `actions`");
            let message = format!("`{}` is not among the table's actions", action.name);
            return Err(self.error(action.span, message, hint));
        };
        let Listed { lowered, bound, made, .. } = &listed[at];
        if !(if is_default { made.as_default } else { made.in_entries }) {
            let (kind, other) = if is_default {
                ("@tableonly", "the default")
            } else {
                ("@defaultonly", "an entry")
            };
            let message = format!("`{}` is {kind}, and here {other}", action.name);
            return Err(self.error(action.span, message, "remove the annotation, or use another"));
        }
        let wanted = lowered.action.params.len();
        if action.args.len() != wanted {
            let given = action.args.len();
            let message = format!("`{}` takes {}, not {given}", action.name, arguments(wanted));
            let hint = "one for each parameter, those that `actions` gives repeated";
            return Err(self.error(action.span, message, hint));
        }
        let name = &action.name.text;
        let ordered = self.ordered(&lowered.action.params, &action.args, name, action.span)?;
        let (first, given) = ordered.split_at(bound.len());
        for (arg, listed) in first.iter().zip(bound) {
            if self.words(arg.span) != *listed {
                let hint = format!("`actions` gives `{listed}`, which is repeated here");
                return Err(self.error(arg.span, "another argument than in `actions`", hint));
            }
        }
        let mut args = Vec::new();
        for (made, arg) in lowered.params.iter().skip(bound.len()).zip(given) {
            let value = self.expr(arg)?;
            let value = self.convert(value, &made.ty)?;
            let Storage::Scalar(_) = &made.storage else {
                let what = format!("{} from the control plane", made.ty);
                return Err(self.refuse(arg.span, &what, "one parameter for each field"));
            };
            let known = self.known(&value, "an argument of a table's action")?;
            args.push(as_bits(&known, made.ty.width().unwrap_or(1)));
        }
        Ok(Choice { action: at as u16, args })
    }

    fn entry(
        &mut self,
        entry: &Entry,
        listed: &[Listed],
        table: &ir::Table,
        types: &[Type],
    ) -> Checked<ir::Entry> {
        let any = matches!(entry.keys[..], [KeySet::Any]);
        if entry.keys.len() != table.keys.len() && !any {
            let (wanted, given) = (table.keys.len(), entry.keys.len());
            let message = format!("the table has {wanted} keys, the entry {given}");
            return Err(self.error(entry.span, message, "write them as `(a, b): action();`"));
        }
        let mut patterns = Vec::new();
        for (n, (key, ty)) in table.keys.iter().zip(types).enumerate() {
            let set = entry.keys.get(n).or(entry.keys.first());
            let Some(set) = set else { continue };
            let Some(pattern) = self.pattern(set, ty)? else {
                return Err(self.error(entry.span, "this range is empty", "it matches nothing"));
            };
            patterns.push(self.key_pattern(pattern, key, entry.span)?);
        }
        let choice = self.choice_of(&entry.action, listed, false)?;
        Ok(ir::Entry { patterns, priority: 0, choice })
    }

    /// Whether a key of that kind can be matched with the pattern.
    fn key_pattern(&mut self, pattern: Pattern, key: &ir::Key, span: Span) -> Checked<Pattern> {
        let width = key.value.width;
        let fine = match key.kind {
            MatchKind::Exact => matches!(pattern, Pattern::Value(_)),
            MatchKind::Ternary => !matches!(pattern, Pattern::Range { .. }),
            MatchKind::Lpm => ir::prefix_length(pattern, width).is_some(),
        };
        if fine {
            return Ok(pattern);
        }
        if (key.kind, pattern) == (MatchKind::Exact, Pattern::Any) {
            let instead = "make the key ternary, or use the default action";
            return Err(self.refuse(span, "`_` for an exact key", instead));
        }
        let hint = match key.kind {
            MatchKind::Exact => "an exact key has one value; make the key ternary",
            MatchKind::Ternary => "a ternary key has a value and a mask: `value &&& mask`",
            MatchKind::Lpm => "the mask of an lpm key is a prefix: ones, then zeros",
        };
        Err(self.error(span, format!("the key `{}` cannot match that", key.name), hint))
    }

    /// A set of values of a type; `None` is the empty one.
    pub(super) fn pattern(&mut self, set: &KeySet, ty: &Type) -> Checked<Option<Pattern>> {
        let width = ty.width().unwrap_or(1);
        Ok(Some(match set {
            KeySet::Any => Pattern::Any,
            KeySet::Value(value) => Pattern::Value(as_bits(&self.label(value, ty)?, width)),
            KeySet::Mask(value, mask) => {
                let value = as_bits(&self.label(value, ty)?, width);
                let mask = as_bits(&self.label(mask, ty)?, width);
                Pattern::Mask { value: value & mask, mask }
            }
            KeySet::Range(first, last) => {
                let (low, high) = (self.label(first, ty)?, self.label(last, ty)?);
                if ty.is_signed() {
                    let hint = "list the values";
                    return Err(self.refuse(first.span, "ranges of signed numbers", hint));
                }
                if low > high {
                    // Section 8.15.4.
                    return Ok(None);
                }
                Pattern::Range { low: as_bits(&low, width), high: as_bits(&high, width) }
            }
        }))
    }

    /// A number to compare with.
    fn label(&mut self, expr: &Expr, ty: &Type) -> Checked<BigInt> {
        let given = self.expr(expr)?;
        let given = self.convert(given, ty)?;
        self.known(&given, "what is compared with")
    }

    /// Apply a table; what it did goes into these slots.
    pub(super) fn apply_table(
        &mut self,
        table: TableId,
        hit: Option<SlotId>,
        action_run: Option<SlotId>,
        span: Span,
    ) -> Checked<()> {
        if self.within != Within::Control {
            let message = "a table is applied outside of a control's `apply`";
            return Err(self.error(span, message, "actions and parsers cannot apply tables"));
        }
        let applied = self.frame.tables.iter().find(|t| t.id == table);
        let (exits, statements) = applied.map_or((false, 0), |t| (t.exits, t.statements));
        self.efforts(statements, span)?;
        self.frame.exits |= exits;
        self.emit(StmtKind::Apply { table, hit, action_run }, span)
    }

    /// The names of a table's actions, in order.
    pub(super) fn table_actions(&self, table: TableId) -> Vec<Rc<str>> {
        let found = self.frame.tables.iter().find(|t| t.id == table);
        found.map(|t| t.names.clone()).unwrap_or_default()
    }
}
