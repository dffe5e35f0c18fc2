//! Parsers (section 13), controls and tables (section 14).

use std::rc::Rc;

use super::super::ast::{
    self, Action, ActionRef, Case, Control, Declaration, Entry, Key, Local, Name, Param, State,
    Table, Transition,
};
use super::super::token::Kind;
use super::{Parsed, Parser};

impl Parser<'_> {
    /// A parser's body.
    pub(super) fn parser(&mut self, name: Name, params: Vec<Param>) -> Parsed<Declaration> {
        self.expect("{", "to begin the parser")?;
        let (mut locals, mut states) = (Vec::new(), Vec::new());
        self.items(|p| {
            p.annotations()?;
            if p.is("state") && p.is_name(1) && p.is_at(2, "{") {
                states.push(p.state()?);
            } else if let Kind::Word(word @ ("action" | "table")) = p.kind() {
                let (span, message) = (p.span(), format!("`{word}` in a parser"));
                let hint = "actions and tables stand in controls";
                return Err(p.messages.error(span, message, hint));
            } else {
                locals.push(p.local()?);
            }
            Ok(None::<()>)
        })?;
        let parser = ast::Parser { name, params, locals, states };
        Ok(Declaration::Parser(Rc::new(parser)))
    }

    fn state(&mut self) -> Parsed<State> {
        self.advance();
        let name = self.name("the state's name")?;
        self.expect("{", "to begin the state")?;
        let mut transition = Transition::Missing;
        let body = self.items(|p| {
            if p.is("transition") {
                transition = p.transition()?;
                if !p.is("}") {
                    let span = p.span();
                    let hint = "`transition` is the last statement of a state";
                    return Err(p.messages.error(span, "a statement behind `transition`", hint));
                }
                return Ok(None);
            }
            p.statement().map(Some)
        })?;
        Ok(State { name, body, transition })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        let start = self.advance();
        if !self.eat("select") {
            let to = self.name("a state")?;
            self.expect(";", "behind the state")?;
            return Ok(Transition::To(to));
        }
        self.expect("(", "and what to select on")?;
        let keys = self.list(")", Self::expr)?;
        let span = self.since(start);
        self.expect("{", "and cases")?;
        let cases = self.items(|p| {
            let start = p.span();
            let keys = p.key_sets()?;
            p.expect(":", "and a state")?;
            let to = p.name("a state")?;
            p.expect(";", "behind the state")?;
            Ok(Some(Case { keys, to, span: p.since(start) }))
        })?;
        Ok(Transition::Select { keys, cases, span })
    }

    /// A control's body.
    pub(super) fn control(&mut self, name: Name, params: Vec<Param>) -> Parsed<Declaration> {
        self.expect("{", "to begin the control")?;
        let (mut locals, mut body) = (Vec::new(), None);
        self.items(|p| {
            p.annotations()?;
            if p.is("apply") && p.is_at(1, "{") {
                p.advance();
                body = Some(p.block()?);
                if !p.is("}") {
                    return Err(p.behind_apply());
                }
            } else {
                locals.push(p.local()?);
            }
            Ok(None::<()>)
        })?;
        let Some(body) = body else {
            let message = format!("the control `{name}` has no `apply`");
            return Err(self.messages.error(name.span, message, "add `apply { ... }`"));
        };
        Ok(Declaration::Control(Rc::new(Control { name, params, locals, body })))
    }

    fn behind_apply(&mut self) -> super::Reported {
        let (span, found) = (self.span(), self.kind().describe());
        let top = ["control", "parser", "package", "header", "struct", "extern", "typedef", "enum"];
        if top.iter().any(|word| self.is(word)) {
            let hint = format!("a `}}` is missing before {found}");
            return self.messages.error(span, format!("{found} within a control"), hint);
        }
        let hint = "declarations stand before it";
        self.messages.error(span, "`apply` is the last of a control", hint)
    }

    fn local(&mut self) -> Parsed<Local> {
        let start = self.span();
        match self.kind() {
            Kind::Word("const") => self.constant().map(Local::Constant),
            Kind::Word("action") => self.action().map(|a| Local::Action(Rc::new(a))),
            Kind::Word("table") => self.table().map(|t| Local::Table(Rc::new(t))),
            Kind::Word("value_set") => {
                Err(self.refuse(start, "parser value sets", "write the values in `select`"))
            }
            Kind::Word(word @ ("if" | "switch" | "return" | "exit")) => {
                let message = format!("`{word}` outside `apply`");
                let hint = "statements of a control stand in `apply { ... }`";
                Err(self.messages.error(start, message, hint))
            }
            _ if self.is_variable() => self.variable().map(Local::Variable),
            _ if self.is_name(0) => self.instance().map(Local::Instance),
            _ => Err(self.wrong("a declaration, `apply` or `}`")),
        }
    }

    pub(super) fn action(&mut self) -> Parsed<Action> {
        self.advance();
        let name = self.name("the action's name")?;
        self.expect("(", "and parameters")?;
        let params = self.parameters()?;
        let body = self.block()?;
        Ok(Action { name, params, body })
    }

    fn table(&mut self) -> Parsed<Table> {
        self.advance();
        let name = self.name("the table's name")?;
        self.expect("{", "and properties")?;
        let mut table = Table {
            name,
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: None,
            entries: Vec::new(),
            const_entries: false,
            size: None,
        };
        let mut seen: Vec<Name> = Vec::new();
        self.items(|p| {
            p.annotations()?;
            let constant = p.eat("const");
            let property = p.name("a property of the table")?;
            if seen.iter().any(|other| other.text == property.text) {
                let message = format!("the property `{property}` is there twice");
                return Err(p.messages.error(property.span, message, "remove one"));
            }
            if constant && ["key", "actions"].contains(&&*property.text) {
                let message = format!("`const` before `{property}`");
                let hint = "only entries, the default action and the size can be `const`";
                return Err(p.messages.error(property.span, message, hint));
            }
            seen.push(property.clone());
            p.property(&mut table, &property, constant)?;
            Ok(None::<()>)
        })?;
        Ok(table)
    }

    fn property(&mut self, table: &mut Table, property: &Name, constant: bool) -> Parsed<()> {
        self.expect("=", "behind the property")?;
        match &*property.text {
            "key" => {
                self.expect("{", "and keys")?;
                table.keys = self.items(|p| p.table_key().map(Some))?;
            }
            "actions" => {
                self.expect("{", "and actions")?;
                table.actions = self.items(|p| {
                    let annotations = p.annotations()?;
                    let action = ActionRef { annotations, ..p.action_ref()? };
                    p.expect(";", "behind the action")?;
                    Ok(Some(action))
                })?;
            }
            "entries" => {
                self.expect("{", "and entries")?;
                table.const_entries = constant;
                table.entries = self.items(|p| p.entry().map(Some))?;
            }
            "default_action" => {
                if table.actions.is_empty() {
                    let message = "`default_action` stands before `actions`";
                    let hint = "section 14.2.1.3 wants it behind them";
                    return Err(self.messages.error(property.span, message, hint));
                }
                table.default_action = Some((constant, self.action_ref()?));
                self.expect(";", "behind the action")?;
            }
            "size" => {
                table.size = Some(self.expr()?);
                self.expect(";", "behind the size")?;
            }
            _ => {
                let instead =
                    "tables have `key`, `actions`, `default_action`, `entries` and `size`";
                let what = format!("the table property `{property}`");
                return Err(self.refuse(property.span, &what, instead));
            }
        }
        Ok(())
    }

    fn table_key(&mut self) -> Parsed<Key> {
        let value = self.expr()?;
        self.expect(":", "and a match kind behind the key")?;
        let match_kind = self.name("a match kind")?;
        self.annotations()?;
        self.expect(";", "behind the key")?;
        Ok(Key { value, match_kind })
    }

    fn action_ref(&mut self) -> Parsed<ActionRef> {
        let start = self.span();
        self.eat(".");
        let name = self.name("an action")?;
        let args = if self.eat("(") { self.arguments()? } else { Vec::new() };
        Ok(ActionRef { annotations: Vec::new(), name, args, span: self.since(start) })
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let start = self.span();
        if self.is("const") || (self.is_word("priority") && self.is_at(1, "=")) {
            let what = "entries with a priority, or constant one by one";
            let instead = "write `const entries = { ... }`: earlier ones go first";
            return Err(self.refuse(start, what, instead));
        }
        let keys = self.key_sets()?;
        self.expect(":", "and an action behind the keys")?;
        let action = self.action_ref()?;
        self.annotations()?;
        self.expect(";", "behind the entry")?;
        Ok(Entry { keys, action, span: self.since(start) })
    }
}
