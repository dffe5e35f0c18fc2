//! Rust source from [`crate::ir`]: what the interpreter does, compiled.
//!
//! A program becomes a type that implements [`Program`](crate::program::Program). Each of its
//! pipelines is a struct with a field for each slot and a method for each state of the parser, each
//! action and table, the control and the deparser. Names are those of the source, and a comment
//! says from which line of it a statement comes. Numbers are Rust's integers; nothing is allocated
//! for a packet.
//!
//! Tables whose entries and default are constant are written out; others are looked up in
//! [`State`], where registers and counters are, too.

mod code;
mod context;
mod expr;
mod names;
mod packet;

use crate::ir::{
    Action, ActionId, Block, CORE_ERRORS, Choice, Direction, ErrorId, Expr, Header, HeaderId,
    Pipeline, PipelineId, Program, Slice, SlotId, Stmt, StmtKind, Table, TableId, called, mask,
};
use crate::state::State;
use code::Code;
use expr::{Exprs, bare, cast, masked, type_of};
use names::{Names, Unique, camel};
use std::sync::Arc;

pub use context::{Context, Exit};

/// Source of a type of this name that runs a program which [`check`](crate::ir::check()) accepts.
///
/// It wants `use nic::...` as in `crates/programs/src/lib.rs` around it. Its `new` takes the
/// program, its `FINGERPRINT` is [`Program::fingerprint`] of that.
#[must_use]
pub fn generate(program: &Arc<Program>, name: &str) -> String {
    let mut code = Code::new(program);
    let entries = State::new(Arc::clone(program));
    let title = camel(name);
    top(&mut code, program, &title);
    for (at, pipeline) in (0..).zip(&program.pipelines) {
        let generator = Generator::new(program, &entries, PipelineId(at), pipeline);
        code.blank();
        generator.write(&mut code);
    }
    code.finish()
}

/// The name of the type that [`generate`] makes.
#[must_use]
pub fn type_name(name: &str) -> String {
    camel(name)
}

/// The type itself.
fn top(code: &mut Code<'_>, program: &Program, title: &str) {
    let files = program.files.join(", ");
    code.line(format_args!("/// Compiled from {files}."));
    code.line("#[derive(Clone)]");
    code.braces(format_args!("pub struct {title}"), |code| code.line("state: State,"));
    code.blank();
    code.braces(format_args!("impl {title}"), |code| {
        code.line("/// Which program this is.");
        let fingerprint = program.fingerprint();
        code.line(format_args!("pub const FINGERPRINT: u64 = {fingerprint:#x};"));
        code.blank();
        code.line("/// With the state in which the program begins.");
        code.braces("pub fn new(program: Arc<ir::Program>) -> Self", |code| {
            code.line("Self { state: State::new(program) }");
        });
    });
    code.blank();
    code.braces(format_args!("impl<E: Externs + ?Sized> Program<E> for {title}"), |code| {
        let head = "fn run(&mut self, pipeline: PipelineId, packet: &[u8], meta: &mut [u128], \
                    out: &mut Vec<u8>, externs: &mut E) -> Result<Parsed, ErrorId>";
        code.braces(head, |code| {
            code.line("let cx = Context { state: &mut self.state, externs, packet, cursor: 0 };");
            code.braces("match pipeline.0", |code| {
                for (at, pipeline) in program.pipelines.iter().enumerate() {
                    let name = camel(&pipeline.name);
                    code.line(format_args!("{at} => {name}::default().run(meta, out, cx),"));
                }
                code.line("_ => panic!(\"no pipeline {}\", pipeline.0),");
            });
        });
        code.blank();
        code.braces("fn duplicate(&self) -> Box<dyn Program<E>>", |code| {
            code.line("Box::new(self.clone())");
        });
        code.blank();
        code.braces("fn state(&mut self) -> &mut State", |code| code.line("&mut self.state"));
    });
}

/// The name of an error.
fn error(program: &Program, error: ErrorId) -> String {
    let name = program.errors.get(error.index()).filter(|_| error.index() < CORE_ERRORS.len());
    match name.map(String::as_str) {
        Some("NoError") => "NO_ERROR".to_owned(),
        Some("PacketTooShort") => "PACKET_TOO_SHORT".to_owned(),
        Some("NoMatch") => "NO_MATCH".to_owned(),
        _ => format!("ErrorId({})", error.0),
    }
}

/// How `return` leaves what it stands in.
#[derive(Clone, Copy)]
enum Leave {
    /// The method of an action or the control.
    Method,
    /// The innermost of so many scopes.
    Scope(u32),
}

impl Leave {
    fn by_return(self) -> String {
        match self {
            Self::Method => "return Ok(());".to_owned(),
            Self::Scope(depth) => format!("break 'scope{depth};"),
        }
    }

    /// In a scope here.
    fn scope(self) -> u32 {
        match self {
            Self::Method => 1,
            Self::Scope(depth) => depth + 1,
        }
    }
}

/// Writes a pipeline.
struct Generator<'a> {
    program: &'a Program,
    /// As the program begins: entries of tables in the order in which they win.
    state: &'a State,
    id: PipelineId,
    pipeline: &'a Pipeline,
    names: Names,
    /// Names of the methods of the parser's states.
    states: Vec<String>,
    /// Names of the methods of tables, of other pipelines' too.
    tables: Vec<String>,
    /// The parser takes whole bytes only.
    whole_bytes: bool,
}

impl<'a> Generator<'a> {
    fn new(program: &'a Program, state: &'a State, id: PipelineId, pipeline: &'a Pipeline) -> Self {
        let (mut states, mut tables) = (Unique::default(), Unique::default());
        let parser = pipeline.parser.iter().flat_map(|parser| &parser.states);
        let mut generator = Self {
            program,
            state,
            id,
            pipeline,
            names: Names::new(pipeline),
            states: parser.map(|state| states.name("state_", &state.name)).collect(),
            tables: program.tables.iter().map(|t| tables.name("apply_", &t.name)).collect(),
            whole_bytes: true,
        };
        if let Some(parser) = &pipeline.parser {
            generator.whole_bytes = packet::whole_bytes(&generator, parser);
        }
        generator
    }

    fn header(&self, header: HeaderId) -> &'a Header {
        &self.pipeline.headers[header.index()]
    }

    fn state(&self, at: usize) -> &str {
        &self.states[at]
    }

    fn exprs(&self) -> Exprs<'_> {
        Exprs { names: &self.names }
    }

    fn width(&self, slot: SlotId) -> u16 {
        self.pipeline.slots[slot.index()].width
    }

    /// `self.field = value;`, of a value of type `u128` that may have bits too many.
    fn set_from_wide(&self, slot: SlotId, wide: &str) -> String {
        let width = self.width(slot);
        let value = cast(wide, "u128", type_of(width));
        let value = bare(if width == 1 { value } else { masked(value, width) });
        format!("self.{} = {value};", self.names.slot(slot))
    }

    fn write(&self, code: &mut Code<'_>) {
        let title = camel(&self.pipeline.name);
        code.line(format_args!("/// Values of the pipeline `{}`.", self.pipeline.name));
        code.line("#[derive(Default)]");
        code.braces(format_args!("struct {title}"), |code| {
            for (slot, known) in (0..).map(SlotId).zip(&self.pipeline.slots) {
                let (name, kind) = (self.names.slot(slot), type_of(known.width));
                code.line(format_args!("{name}: {kind}, // {}: {}", known.name, known.width));
            }
        });
        code.blank();
        code.braces(format_args!("impl {title}"), |code| {
            self.run(code);
            if let Some(parser) = &self.pipeline.parser {
                packet::parser(self, code, parser);
            }
            for (id, action) in (0..).map(ActionId).zip(&self.pipeline.actions) {
                self.action(code, id, action);
            }
            for (id, table) in (0..).map(TableId).zip(&self.program.tables) {
                if table.pipeline == self.id {
                    self.table(code, id, table);
                }
            }
            self.control(code);
            packet::deparser(self, code);
        });
    }

    fn run(&self, code: &mut Code<'_>) {
        let head = "fn run<E: Externs + ?Sized>(&mut self, meta: &mut [u128], out: &mut Vec<u8>, \
                    mut cx: Context<'_, E>) -> Result<Parsed, ErrorId>";
        code.line("/// The whole pipeline.");
        code.braces(head, |code| {
            let count = self.pipeline.meta.len();
            code.line(format_args!(
                "let meta: &mut [u128; {count}] = meta.try_into().expect(\"a value for each name\");"
            ));
            for (at, meta) in self.pipeline.meta.iter().enumerate() {
                if meta.direction != Direction::Out {
                    code.line(self.set_from_wide(meta.slot, &format!("meta[{at}]")));
                }
            }
            if self.pipeline.parser.is_some() {
                code.line(format_args!("self.{}(&mut cx)?;", self.state(0)));
            }
            code.line("// However it ends.");
            code.line("let _ = self.control(&mut cx);");
            for (at, meta) in self.pipeline.meta.iter().enumerate() {
                if meta.direction != Direction::In {
                    let field = format!("self.{}", self.names.slot(meta.slot));
                    let value = cast(&field, type_of(self.width(meta.slot)), "u128");
                    code.line(format_args!("meta[{at}] = {value};"));
                }
            }
            code.line("self.deparse(out);");
            code.line("Ok(Parsed { bytes: cx.cursor.div_ceil(8) })");
        });
    }

    fn control(&self, code: &mut Code<'_>) {
        code.blank();
        code.line(format_args!("/// Control of `{}`.", self.pipeline.name));
        let head = "fn control<E: Externs + ?Sized>(&mut self, cx: &mut Context<'_, E>) \
                    -> Result<(), Exit>";
        code.braces(head, |code| {
            self.block(code, &self.pipeline.control, Leave::Method);
            code.line("Ok(())");
        });
    }

    /// A method that fails where the action leaves the control.
    fn action(&self, code: &mut Code<'_>, id: ActionId, action: &Action) {
        code.blank();
        let place = code.place(action.place).map_or(String::new(), |place| format!(" {place}"));
        code.line(format_args!("/// Action `{}`.{place}", action.name));
        let params: String = action
            .params
            .iter()
            .map(|slot| format!(", {}: {}", self.names.slot(*slot), type_of(self.width(*slot))))
            .collect();
        let head = format!(
            "fn {}<E: Externs + ?Sized>(&mut self, cx: &mut Context<'_, E>{params}) \
             -> Result<(), Exit>",
            self.names.action(id)
        );
        code.braces(head, |code| {
            for param in &action.params {
                let name = self.names.slot(*param);
                code.line(format_args!("self.{name} = {name};"));
            }
            self.block(code, &action.body, Leave::Method);
            code.line("Ok(())");
        });
    }

    /// A method that returns whether an entry matched and which action has run.
    fn table(&self, code: &mut Code<'_>, id: TableId, table: &Table) {
        code.blank();
        let place = code.place(table.place).map_or(String::new(), |place| format!(" {place}"));
        code.line(format_args!("/// Table `{}`: hit, action.{place}", table.name));
        let head = format!(
            "fn {}<E: Externs + ?Sized>(&mut self, cx: &mut Context<'_, E>) \
             -> Result<(bool, u16), Exit>",
            self.tables[id.index()]
        );
        code.braces(head, |code| {
            if table.const_entries && table.const_default {
                self.constant_table(code, id, table);
            } else {
                self.changeable_table(code, id, table);
            }
        });
    }

    fn constant_table(&self, code: &mut Code<'_>, id: TableId, table: &Table) {
        let exprs = self.exprs();
        let keys: Vec<String> =
            (0..).zip(&table.keys).map(|(at, _): (u32, _)| format!("key{at}")).collect();
        for (key, name) in table.keys.iter().zip(&keys) {
            code.line(format_args!("let {name} = {}; // {}", exprs.bare(&key.value), key.name));
        }
        let run = |choice: &Choice, hit: bool| {
            let action = table.actions[usize::from(choice.action)].action;
            let params = &self.pipeline.actions[action.index()].params;
            let args: String = params
                .iter()
                .zip(&choice.args)
                .map(|(param, arg)| match self.width(*param) {
                    1 => format!(", {}", *arg == 1),
                    _ => format!(", {arg:#x}"),
                })
                .collect();
            let call = format!("self.{}(cx{args})?;", self.names.action(action));
            (call, format!("({hit}, {})", choice.action))
        };
        for entry in self.state.entries(id) {
            let pairs = table.keys.iter().zip(&keys).zip(&entry.patterns);
            let conditions: Vec<String> = pairs
                .filter_map(|((key, name), pattern)| {
                    packet::condition(name, key.value.width, *pattern)
                })
                .collect();
            let conditions =
                if conditions.is_empty() { "true".to_owned() } else { conditions.join(" && ") };
            code.braces(format_args!("if {conditions}"), |code| {
                let (call, result) = run(&entry.choice, true);
                code.line(call);
                code.line(format_args!("return Ok({result});"));
            });
        }
        let (call, result) = run(&table.default, false);
        code.line(call);
        code.line(format_args!("Ok({result})"));
    }

    fn changeable_table(&self, code: &mut Code<'_>, id: TableId, table: &Table) {
        let keys: Vec<String> =
            table.keys.iter().map(|key| self.exprs().wide(&key.value)).collect();
        let count = keys.len();
        code.line(format_args!("let keys: [u128; {count}] = [{}];", keys.join(", ")));
        let number = id.0;
        code.line(format_args!("let (choice, hit) = cx.state.look_up(TableId({number}), &keys);"));
        code.line("let action = choice.action;");
        code.line("match action {");
        code.inside(|code| {
            for (at, known) in table.actions.iter().enumerate() {
                let params = &self.pipeline.actions[known.action.index()].params;
                let args: String = (0..)
                    .zip(params)
                    .map(|(at, param): (u32, _)| {
                        let kind = type_of(self.width(*param));
                        format!(", {}", bare(cast(&format!("choice.args[{at}]"), "u128", kind)))
                    })
                    .collect();
                let action = self.names.action(known.action);
                // The arguments are read before the state is needed again.
                let names: Vec<String> = (0..params.len()).map(|at| format!("arg{at}")).collect();
                if names.is_empty() {
                    code.line(format_args!("{at} => self.{action}(cx)?,"));
                } else {
                    let (names, args) = (names.join(", "), args.trim_start_matches(", "));
                    code.braces(format_args!("{at} =>"), |code| {
                        code.line(format_args!("let ({names},) = ({args},);"));
                        code.line(format_args!("self.{action}(cx, {names})?;"));
                    });
                }
            }
            code.line("_ => {}");
        });
        code.line("}");
        code.line("Ok((hit, action))");
    }

    fn block(&self, code: &mut Code<'_>, block: &Block, leave: Leave) {
        for stmt in block {
            self.stmt(code, stmt, leave);
        }
    }

    fn stmt(&self, code: &mut Code<'_>, stmt: &Stmt, leave: Leave) {
        let exprs = self.exprs();
        match &stmt.kind {
            StmtKind::If { on, then, otherwise } => {
                let place = code.place(stmt.place).map_or(String::new(), |at| format!(" // {at}"));
                code.line(format_args!("if {} {{{place}", exprs.bare(on)));
                code.inside(|code| self.block(code, then, leave));
                if !otherwise.is_empty() {
                    code.line("} else {");
                    code.inside(|code| self.block(code, otherwise, leave));
                }
                code.line("}");
            }
            StmtKind::Switch { on, cases, default } => {
                code.braces(format_args!("match {}", exprs.wide(on)), |code| {
                    for (values, body) in cases.iter().filter(|(values, _)| !values.is_empty()) {
                        let values: Vec<String> =
                            values.iter().map(|value| format!("{value:#x}")).collect();
                        let head = format!("{} =>", values.join(" | "));
                        code.braces(head, |code| self.block(code, body, leave));
                    }
                    code.braces("_ =>", |code| self.block(code, default, leave));
                });
            }
            StmtKind::Scope(body) => {
                let depth = leave.scope();
                code.braces(format_args!("'scope{depth}:"), |code| {
                    self.block(code, body, Leave::Scope(depth));
                });
            }
            StmtKind::Return => code.from(stmt.place, leave.by_return()),
            StmtKind::Exit => code.from(stmt.place, "return Err(Exit);"),
            StmtKind::Run { action, args } => {
                let args: String =
                    args.iter().map(|arg| format!(", {}", exprs.bare(arg))).collect();
                let call = format!("self.{}(cx{args})?;", self.names.action(*action));
                code.from(stmt.place, call);
            }
            StmtKind::Apply { table, hit, action_run } => {
                let call = format!("self.{}(cx)", self.tables[table.index()]);
                code.from(stmt.place, format_args!("let (hit, action) = {call}?;"));
                for (slot, value) in [(hit, "hit"), (action_run, "action")] {
                    let Some(slot) = slot else { continue };
                    code.line(format_args!("self.{} = {value};", self.names.slot(*slot)));
                }
            }
            StmtKind::Extract(_)
            | StmtKind::Lookahead(_)
            | StmtKind::Advance(_)
            | StmtKind::Verify { .. } => packet::parsing(self, code, stmt),
            _ => self.simple(code, stmt),
        }
    }

    fn simple(&self, code: &mut Code<'_>, stmt: &Stmt) {
        let exprs = self.exprs();
        let name = |slot: SlotId| self.names.slot(slot);
        match &stmt.kind {
            StmtKind::Assign { to, slice: None, value } => {
                let value = exprs.bare(value);
                code.from(stmt.place, format_args!("self.{} = {value};", name(*to)));
            }
            StmtKind::Assign { to, slice: Some(slice), value } => {
                code.from(stmt.place, self.assign_slice(*to, *slice, value));
            }
            StmtKind::SetValid { header, valid } => {
                let header = self.header(*header);
                code.from(stmt.place, format_args!("self.{} = {valid};", name(header.valid)));
                for field in header.fields.iter().filter(|_| !valid) {
                    code.line(format_args!("self.{} = Default::default();", name(field.slot)));
                }
            }
            StmtKind::Call { which, args, results } => {
                let known = called(&self.program.externs[which.index()]);
                let args: Vec<String> = args.iter().map(|arg| bare(exprs.wide(arg))).collect();
                code.line(format_args!("let args = [{}];", args.join(", ")));
                code.line(format_args!("let mut results = [0; {}];", results.len()));
                let call = format!("cx.externs.call(ExternId({}), &args, &mut results);", which.0);
                let place = code.place(stmt.place).unwrap_or_default();
                code.line(format_args!("{call} // {known} {place}"));
                for (at, to) in results.iter().enumerate() {
                    code.line(self.set_from_wide(*to, &format!("results[{at}]")));
                }
            }
            StmtKind::ReadRegister { register, index, to } => {
                let index = bare(exprs.wide(index));
                let call = format!("cx.state.register(RegisterId({}), {index})", register.0);
                code.from(stmt.place, self.set_from_wide(*to, &call));
            }
            StmtKind::WriteRegister { register, index, value } => {
                let (index, value) = (bare(exprs.wide(index)), bare(exprs.wide(value)));
                let register = register.0;
                let call =
                    format!("cx.state.set_register(RegisterId({register}), {index}, {value});");
                code.from(stmt.place, call);
            }
            StmtKind::Count { counter, index } => {
                let index = bare(exprs.wide(index));
                let call =
                    format!("cx.state.count(CounterId({}), {index}, cx.packet.len());", counter.0);
                code.from(stmt.place, call);
            }
            _ => {}
        }
    }

    /// Some bits of a field.
    fn assign_slice(&self, to: SlotId, slice: Slice, value: &Expr) -> String {
        let (field, width) = (self.names.slot(to), self.width(to));
        if width == 1 {
            return format!("self.{field} = {};", self.exprs().bare(value));
        }
        let kind = type_of(width);
        let part = cast(&self.exprs().value(value), type_of(value.width), kind);
        let keep = mask(width) & !(mask(slice.width()) << slice.low);
        format!("self.{field} = self.{field} & {keep:#x} | {part} << {};", slice.low)
    }
}
