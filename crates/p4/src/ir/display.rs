//! The IR as text, for people and tests (`trimline p4 ir FILE`). A number is written with its width
//! as P4 writes it (`16w0x800`), so the text says everything but places.

use std::fmt::{self, Display, Formatter, Write};

use super::{
    Action, BinaryOp, Choice, Direction, Expr, ExprKind, Extern, MatchKind, Parser, Pattern,
    Pipeline, Program, Sign, Slice, SlotId, Stmt, StmtKind, Table, Target, Transition, UnaryOp,
    Value,
};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Printer { program: self, out: f, depth: 0 };
        out.line(format_args!("architecture {}", self.architecture))?;
        out.line(format_args!("errors {}", self.errors.join(", ")))?;
        for register in &self.registers {
            let super::Register { name, width, size, .. } = register;
            out.line(format_args!("register {name}: {size} of {width}"))?;
        }
        for counter in &self.counters {
            out.line(format_args!("counter {}: {}", counter.name, counter.size))?;
        }
        for known in &self.externs {
            out.known(known)?;
        }
        for pipeline in &self.pipelines {
            out.pipeline(pipeline)?;
        }
        Ok(())
    }
}

/// An extern as the source calls it: `instance.method`, or the function alone.
pub fn called(known: &Extern) -> String {
    if known.instance.is_empty() {
        known.kind.clone()
    } else {
        format!("{}.{}", known.instance, known.method)
    }
}

/// Writes a program line by line.
struct Printer<'a, 'f> {
    program: &'a Program,
    out: &'a mut Formatter<'f>,
    depth: usize,
}

impl Printer<'_, '_> {
    fn line(&mut self, text: impl Display) -> fmt::Result {
        writeln!(self.out, "{:width$}{text}", "", width = 2 * self.depth)
    }

    /// What stands one step further in.
    fn inside(&mut self, write: impl FnOnce(&mut Self) -> fmt::Result) -> fmt::Result {
        self.depth += 1;
        let result = write(self);
        self.depth -= 1;
        result
    }

    fn known(&mut self, known: &Extern) -> fmt::Result {
        let values = |values: &[Value]| list(values, |v| format!("{}: {}", v.name, v.width));
        let constructor = list(&known.constructor, u128::to_string);
        self.line(format_args!(
            "extern {} = {}({constructor}) ({}) -> ({}) in {} cycles",
            called(known),
            known.kind,
            values(&known.args),
            values(&known.results),
            known.latency
        ))
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> fmt::Result {
        self.line(format_args!("pipeline {}", pipeline.name))?;
        self.inside(|p| {
            for slot in &pipeline.slots {
                p.line(format_args!("slot {}: {}", slot.name, slot.width))?;
            }
            for meta in &pipeline.meta {
                let direction = match meta.direction {
                    Direction::In => "in",
                    Direction::Out => "out",
                    Direction::InOut => "inout",
                };
                let slot = name(pipeline, meta.slot);
                p.line(format_args!("meta {direction} {} = {slot}", meta.name))?;
            }
            for header in &pipeline.headers {
                p.line(format_args!("header {}: {} bits", header.name, header.bits))?;
                p.inside(|p| {
                    header.fields.iter().try_for_each(|field| {
                        p.line(format_args!("{} {}", field.offset, name(pipeline, field.slot)))
                    })
                })?;
            }
            if let Some(parser) = &pipeline.parser {
                p.parser(pipeline, parser)?;
            }
            for action in &pipeline.actions {
                p.action(pipeline, action)?;
            }
            let at = p.program.pipelines.iter().position(|other| std::ptr::eq(other, pipeline));
            let program = p.program;
            for table in program.tables.iter().filter(|t| Some(t.pipeline.index()) == at) {
                p.table(pipeline, table)?;
            }
            p.line("control")?;
            p.block(pipeline, &pipeline.control)?;
            let emitted =
                list(&pipeline.deparser, |header| pipeline.headers[header.index()].name.clone());
            p.line(format_args!("emit {emitted}"))
        })
    }

    fn parser(&mut self, pipeline: &Pipeline, parser: &Parser) -> fmt::Result {
        let target = |to: Target| match to {
            Target::State(state) => parser.states[state.index()].name.clone(),
            Target::Accept => "accept".to_owned(),
            Target::Reject => "reject".to_owned(),
        };
        for state in &parser.states {
            self.line(format_args!("state {}", state.name))?;
            self.block(pipeline, &state.body)?;
            self.inside(|p| match &state.transition {
                Transition::To(to) => p.line(format_args!("to {}", target(*to))),
                Transition::Select { on, cases } => {
                    p.line(format_args!("select {}", list(on, |e| text(pipeline, e))))?;
                    p.inside(|p| {
                        cases.iter().try_for_each(|case| {
                            let patterns = list(&case.patterns, ToString::to_string);
                            p.line(format_args!("{patterns}: {}", target(case.to)))
                        })
                    })
                }
            })?;
        }
        Ok(())
    }

    fn action(&mut self, pipeline: &Pipeline, action: &Action) -> fmt::Result {
        let params = list(&action.params, |slot| name(pipeline, *slot).to_owned());
        self.line(format_args!("action {}({params})", action.name))?;
        self.block(pipeline, &action.body)
    }

    fn table(&mut self, pipeline: &Pipeline, table: &Table) -> fmt::Result {
        let constant = |yes: bool| if yes { "const " } else { "" };
        let action = |at: u16| {
            let action = table.actions[usize::from(at)].action;
            pipeline.actions[action.index()].name.as_str()
        };
        let choice = |choice: &Choice| {
            let args = list(&choice.args, |arg| format!("{arg:#x}"));
            format!("{}({args})", action(choice.action))
        };
        let entries = constant(table.const_entries);
        self.line(format_args!("table {} of {} {entries}entries", table.name, table.size))?;
        self.inside(|p| {
            for key in &table.keys {
                let kind = match key.kind {
                    MatchKind::Exact => "exact",
                    MatchKind::Ternary => "ternary",
                    MatchKind::Lpm => "lpm",
                };
                let value = text(pipeline, &key.value);
                p.line(format_args!("key {}: {kind} {value}", key.name))?;
            }
            for (at, known) in (0..).zip(&table.actions) {
                let only = match (known.in_entries, known.as_default) {
                    (false, _) => " defaultonly",
                    (_, false) => " tableonly",
                    _ => "",
                };
                p.line(format_args!("may run {}{only}", action(at)))?;
            }
            for entry in &table.entries {
                let patterns = list(&entry.patterns, ToString::to_string);
                let (priority, choice) = (entry.priority, choice(&entry.choice));
                p.line(format_args!("entry {priority} {patterns}: {choice}"))?;
            }
            let constant = constant(table.const_default);
            p.line(format_args!("{constant}default {}", choice(&table.default)))
        })
    }

    fn block(&mut self, pipeline: &Pipeline, block: &[Stmt]) -> fmt::Result {
        self.inside(|p| block.iter().try_for_each(|stmt| p.stmt(pipeline, &stmt.kind)))
    }

    fn stmt(&mut self, pipeline: &Pipeline, stmt: &StmtKind) -> fmt::Result {
        let expr = |e: &Expr| text(pipeline, e);
        match stmt {
            StmtKind::If { on, then, otherwise } => {
                self.line(format_args!("if {}", expr(on)))?;
                self.block(pipeline, then)?;
                if otherwise.is_empty() {
                    return Ok(());
                }
                self.line("else")?;
                self.block(pipeline, otherwise)
            }
            StmtKind::Switch { on, cases, default } => {
                self.line(format_args!("switch {}", expr(on)))?;
                self.inside(|p| {
                    for (values, body) in cases {
                        p.line(format_args!("case {}", list(values, u128::to_string)))?;
                        p.block(pipeline, body)?;
                    }
                    p.line("default")?;
                    p.block(pipeline, default)
                })
            }
            StmtKind::Scope(body) => {
                self.line("scope")?;
                self.block(pipeline, body)
            }
            simple => {
                let text = statement(self.program, pipeline, simple);
                self.line(text)
            }
        }
    }
}

/// A statement without others in it.
fn statement(program: &Program, pipeline: &Pipeline, stmt: &StmtKind) -> String {
    let expr = |e: &Expr| text(pipeline, e);
    let slot = |at: SlotId| name(pipeline, at);
    match stmt {
        StmtKind::Assign { to, slice: None, value } => format!("{} = {}", slot(*to), expr(value)),
        StmtKind::Assign { to, slice: Some(Slice { high, low }), value } => {
            format!("{}[{high}:{low}] = {}", slot(*to), expr(value))
        }
        StmtKind::SetValid { header, valid } => {
            format!(
                "{} {}",
                if *valid { "valid" } else { "invalid" },
                header_name(pipeline, *header)
            )
        }
        StmtKind::Run { action, args } => {
            format!("run {}({})", pipeline.actions[action.index()].name, list(args, expr))
        }
        StmtKind::Apply { table, hit, action_run } => {
            let mut line = format!("apply {}", program.tables[table.index()].name);
            for (what, to) in [("hit", hit), ("action_run", action_run)] {
                if let Some(to) = to {
                    let _ = write!(line, ", {what} to {}", slot(*to));
                }
            }
            line
        }
        StmtKind::Call { which, args, results } => {
            let known = called(&program.externs[which.index()]);
            let results = list(results, |at| slot(*at).to_owned());
            format!("call {known}({}) -> ({results})", list(args, expr))
        }
        StmtKind::ReadRegister { register, index, to } => {
            let register = &program.registers[register.index()].name;
            format!("{} = register {register}[{}]", slot(*to), expr(index))
        }
        StmtKind::WriteRegister { register, index, value } => {
            let register = &program.registers[register.index()].name;
            format!("register {register}[{}] = {}", expr(index), expr(value))
        }
        StmtKind::Count { counter, index } => {
            format!("count {}[{}]", program.counters[counter.index()].name, expr(index))
        }
        StmtKind::Return => "return".to_owned(),
        StmtKind::Exit => "exit".to_owned(),
        StmtKind::Extract(header) => format!("extract {}", header_name(pipeline, *header)),
        StmtKind::Lookahead(to) => format!("{} = lookahead", slot(*to)),
        StmtKind::Advance(bits) => format!("advance {}", expr(bits)),
        StmtKind::Verify { on, error } => {
            format!("verify {} else {}", expr(on), program.errors[error.index()])
        }
        StmtKind::If { .. } | StmtKind::Switch { .. } | StmtKind::Scope(_) => String::new(),
    }
}

fn name(pipeline: &Pipeline, slot: SlotId) -> &str {
    &pipeline.slots[slot.index()].name
}

fn header_name(pipeline: &Pipeline, header: super::HeaderId) -> &str {
    &pipeline.headers[header.index()].name
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// An expression, as P4 would write it, in brackets wherever it has parts.
fn text(pipeline: &Pipeline, expr: &Expr) -> String {
    let of = |e: &Expr| text(pipeline, e);
    match &expr.kind {
        ExprKind::Const(value) => format!("{}w{value:#x}", expr.width),
        ExprKind::Slot(slot) => name(pipeline, *slot).to_owned(),
        ExprKind::Unary(UnaryOp::Not, a) => format!("~{}", of(a)),
        ExprKind::Unary(UnaryOp::Neg, a) => format!("-{}", of(a)),
        ExprKind::Binary(op, a, b) => format!("({} {} {})", of(a), symbol(*op), of(b)),
        ExprKind::Slice(a, Slice { high, low }) => format!("{}[{high}:{low}]", of(a)),
        ExprKind::Concat(a, b) => format!("({} ++ {})", of(a), of(b)),
        ExprKind::Resize(a, sign) => {
            let kind = if *sign == Sign::Signed { "int" } else { "bit" };
            format!("({kind}<{}>){}", expr.width, of(a))
        }
        ExprKind::Mux(on, a, b) => format!("({} ? {} : {})", of(on), of(a), of(b)),
    }
}

/// How it is written; the signed operators with an `s`.
fn symbol(op: BinaryOp) -> &'static str {
    use Sign::{Signed, Unsigned};
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::AddSat(Unsigned) => "|+|",
        BinaryOp::AddSat(Signed) => "|+|s",
        BinaryOp::SubSat(Unsigned) => "|-|",
        BinaryOp::SubSat(Signed) => "|-|s",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr(Unsigned) => ">>",
        BinaryOp::Shr(Signed) => ">>s",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt(Unsigned) => "<",
        BinaryOp::Lt(Signed) => "<s",
        BinaryOp::Le(Unsigned) => "<=",
        BinaryOp::Le(Signed) => "<=s",
        BinaryOp::Gt(Unsigned) => ">",
        BinaryOp::Gt(Signed) => ">s",
        BinaryOp::Ge(Unsigned) => ">=",
        BinaryOp::Ge(Signed) => ">=s",
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => write!(f, "_"),
            Self::Value(value) => write!(f, "{value:#x}"),
            Self::Mask { value, mask } => write!(f, "{value:#x} &&& {mask:#x}"),
            Self::Range { low, high } => write!(f, "{low:#x} .. {high:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::example;

    #[test]
    fn the_text_says_everything_but_places() {
        let text = example::program().to_string();
        let wanted = "\
architecture Example
errors NoError, PacketTooShort, NoMatch, Empty
register said: 4 of 16
counter seen: 4
extern ask.what = Ask(7) (len: 16) -> (return: 16) in 2 cycles
pipeline main
  slot hdr.h.$valid: 1
  slot hdr.h.kind: 8
  slot hdr.h.len: 16
  slot meta.port: 9
  slot answer: 16
  slot send.port: 9
  slot $hit: 1
  meta inout meta.port = meta.port
  header hdr.h: 24 bits
    0 hdr.h.kind
    8 hdr.h.len
  state start
    extract hdr.h
    verify (hdr.h.len != 16w0x0) else Empty
    select hdr.h.kind
      0x0 .. 0x3: accept
      0x80 &&& 0x80: reject
  action nothing()
  action send(send.port)
    meta.port = send.port
  table by_kind of 4 entries
    key kind: exact hdr.h.kind
    may run nothing
    may run send tableonly
    entry 0 0x1: send(0x11)
    entry 0 0x2: send(0x22)
    const default nothing()
  control
    count seen[hdr.h.kind]
    call ask.what(hdr.h.len) -> (answer)
    apply by_kind, hit to $hit
    if $hit
      register said[hdr.h.kind] = answer
    else
      invalid hdr.h
  emit hdr.h
";
        assert_eq!(text, wanted);
    }
}
