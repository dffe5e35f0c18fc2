//! Parser and deparser.

use super::code::Code;
use super::expr::{bare, cast, type_of};
use super::{Generator, Leave, error};
use crate::ir::{
    Block, Expr, ExprKind, Field, Header, HeaderId, Parser, Pattern, SelectCase, Slot, State,
    StmtKind, Target, Transition, mask,
};

/// Whether every header and every step ends at a byte.
pub(super) fn whole_bytes(generator: &Generator<'_>, parser: &Parser) -> bool {
    fn fine(generator: &Generator<'_>, block: &Block) -> bool {
        block.iter().all(|stmt| match &stmt.kind {
            StmtKind::Extract(header) => generator.header(*header).bits.is_multiple_of(8),
            StmtKind::Advance(by) => matches!(by.kind, ExprKind::Const(by) if by.is_multiple_of(8)),
            StmtKind::If { then, otherwise, .. } => {
                fine(generator, then) && fine(generator, otherwise)
            }
            _ => true,
        })
    }
    parser.states.iter().all(|state| fine(generator, &state.body))
}

/// One method for each state, which calls the next.
pub(super) fn parser(generator: &Generator<'_>, code: &mut Code<'_>, parser: &Parser) {
    for (at, state) in parser.states.iter().enumerate() {
        code.blank();
        let place = code.place(state.place).map_or(String::new(), |place| format!(" {place}"));
        code.line(format_args!("/// State `{}`.{place}", state.name));
        let head = format!(
            "fn {}<E: Externs + ?Sized>(&mut self, cx: &mut Context<'_, E>) -> Result<(), ErrorId>",
            generator.state(at)
        );
        code.braces(head, |code| {
            generator.block(code, &state.body, Leave::Method);
            transition(generator, code, state);
        });
    }
}

/// The last expression of a state's method.
fn transition(generator: &Generator<'_>, code: &mut Code<'_>, state: &State) {
    let to = |to: &Target| match to {
        Target::State(state) => format!("self.{}(cx)", generator.state(state.index())),
        Target::Accept => "Ok(())".to_owned(),
        Target::Reject => "Err(NO_ERROR)".to_owned(),
    };
    let Transition::Select { on, cases } = &state.transition else {
        let Transition::To(target) = &state.transition else { return };
        return code.line(to(target));
    };
    let mut rest = true;
    for (number, case) in cases.iter().enumerate() {
        let conditions = case_conditions(generator, on, case);
        let otherwise = if number == 0 { "" } else { "} else " };
        if conditions.is_empty() {
            // Whatever follows is never reached.
            rest = false;
            let head = if number == 0 { "{" } else { "} else {" };
            code.line(head);
        } else {
            code.line(format_args!("{otherwise}if {} {{", conditions.join(" && ")));
        }
        code.line(format_args!("    {}", to(&case.to)));
        if !rest {
            break;
        }
    }
    match (cases.is_empty(), rest) {
        (true, _) => code.line("Err(NO_MATCH)"),
        (false, true) => {
            code.line("} else {");
            code.line("    Err(NO_MATCH)");
            code.line("}");
        }
        (false, false) => code.line("}"),
    }
}

fn case_conditions(generator: &Generator<'_>, on: &[Expr], case: &SelectCase) -> Vec<String> {
    let pairs = on.iter().zip(&case.patterns);
    pairs
        .filter_map(|(e, pattern)| condition(&generator.exprs().value(e), e.width, *pattern))
        .collect()
}

/// Whether a value is in a pattern; nothing for the pattern that has all.
pub(super) fn condition(value: &str, width: u16, pattern: Pattern) -> Option<String> {
    let number = if width == 1 { cast(value, "bool", "u8") } else { value.to_owned() };
    match pattern {
        Pattern::Any => None,
        Pattern::Value(wanted) if width == 1 => {
            Some(if wanted == 1 { value.to_owned() } else { format!("!{value}") })
        }
        Pattern::Value(wanted) => Some(format!("{value} == {wanted:#x}")),
        Pattern::Mask { value: wanted, mask } => {
            Some(format!("{number} & {mask:#x} == {wanted:#x}"))
        }
        Pattern::Range { low, high } if low == 0 && high == mask(width) => None,
        Pattern::Range { low, high } => Some(format!("({low:#x}..={high:#x}).contains(&{number})")),
    }
}

/// Statements that only parsers have.
pub(super) fn parsing(generator: &Generator<'_>, code: &mut Code<'_>, stmt: &crate::ir::Stmt) {
    match &stmt.kind {
        StmtKind::Extract(header) => extract(generator, code, *header, stmt.place),
        StmtKind::Lookahead(to) => {
            let slot = &generator.pipeline.slots[to.index()];
            let bits = format!("cx.look({})?", slot.width);
            let value = bare(cast(&bits, "u128", type_of(slot.width)));
            let name = generator.names.slot(*to);
            code.from(stmt.place, format_args!("self.{name} = {value};"));
        }
        StmtKind::Advance(by) => {
            let by = generator.exprs().wide(by);
            code.from(stmt.place, format_args!("cx.advance({by})?;"));
        }
        StmtKind::Verify { on, error: which } => {
            let on = generator.exprs().value(on);
            let error = error(generator.program, *which);
            code.from(stmt.place, format_args!("if !{on} {{"));
            code.line(format_args!("    return Err({error});"));
            code.line("}");
        }
        _ => {}
    }
}

fn extract(generator: &Generator<'_>, code: &mut Code<'_>, id: HeaderId, place: crate::ir::Place) {
    let header = generator.header(id);
    let slot = |field: &Field| &generator.pipeline.slots[field.slot.index()];
    if !generator.whole_bytes {
        code.from(place, format_args!("let at = cx.take_bits({})?;", header.bits));
        for field in &header.fields {
            let (name, width) = (generator.names.slot(field.slot), slot(field).width);
            let bits = format!("bits::get(cx.packet, at + {}, {width})", field.offset);
            let value = bare(cast(&bits, "u128", type_of(width)));
            code.line(format_args!("self.{name} = {value};"));
        }
    } else if header.bits > 0 {
        code.from(place, format_args!("let bytes: &[u8; {}] = cx.take()?;", header.bits / 8));
        for field in &header.fields {
            let name = generator.names.slot(field.slot);
            let value = field_value(field, slot(field));
            code.line(format_args!("self.{name} = {value};"));
        }
    }
    code.line(format_args!("self.{} = true;", generator.names.slot(header.valid)));
}

/// A field of a header in `bytes`.
fn field_value(field: &Field, slot: &Slot) -> String {
    let (first, end) = (field.offset / 8, (field.offset + u32::from(slot.width)).div_ceil(8));
    let covering = end - first;
    if covering > 16 {
        let bits = format!("bits::get(bytes, {}, {})", field.offset, slot.width);
        return bare(cast(&bits, "u128", type_of(slot.width)));
    }
    let whole = type_of((covering * 8) as u16);
    let number = if covering == 1 {
        format!("bytes[{first}]")
    } else {
        let bytes: Vec<String> = (first..end).map(|at| format!("bytes[{at}]")).collect();
        let zeros = whole[1..].parse::<u32>().unwrap_or(8) / 8 - covering;
        let zeros = "0, ".repeat(zeros as usize);
        format!("{whole}::from_be_bytes([{zeros}{}])", bytes.join(", "))
    };
    let below = end * 8 - field.offset - u32::from(slot.width);
    let shifted = if below == 0 { number } else { format!("({number} >> {below})") };
    if slot.width == 1 {
        return format!("{} & 1 == 1", bare(shifted));
    }
    let wanted = type_of(slot.width);
    let value = cast(&shifted, whole, wanted);
    if below == 0 && field.offset.is_multiple_of(8) {
        return bare(value);
    }
    format!("{value} & {:#x}", mask(slot.width))
}

/// A method that replaces `out` by the valid headers.
pub(super) fn deparser(generator: &Generator<'_>, code: &mut Code<'_>) {
    let headers = &generator.pipeline.deparser;
    let whole = headers.iter().all(|id| generator.header(*id).bits.is_multiple_of(8));
    code.blank();
    code.line("/// Replaces `out` by the valid headers.");
    code.braces("fn deparse(&self, out: &mut Vec<u8>)", |code| {
        code.line("out.clear();");
        if !whole {
            code.line("let mut at = 0;");
        }
        for id in headers {
            let header = generator.header(*id);
            let valid = generator.names.slot(header.valid);
            code.braces(format_args!("if self.{valid}"), |code| {
                if whole {
                    emit(generator, code, header);
                } else {
                    emit_bits(generator, code, header);
                }
            });
        }
    });
}

/// A header of whole bytes.
fn emit(generator: &Generator<'_>, code: &mut Code<'_>, header: &Header) {
    code.line(format_args!("let mut bytes = [0; {}];", header.bits / 8));
    for field in &header.fields {
        let width = generator.pipeline.slots[field.slot.index()].width;
        let name = generator.names.slot(field.slot);
        let bytes_alone = field.offset.is_multiple_of(8) && width.is_multiple_of(8);
        if bytes_alone {
            let (first, count) = (field.offset / 8, width / 8);
            let end = first + u32::from(count);
            let unused = super::expr::native(width) / 8 - count;
            let all = format!("self.{name}.to_be_bytes()");
            let all = if unused == 0 { format!("&{all}") } else { format!("&{all}[{unused}..]") };
            code.line(format_args!("bytes[{first}..{end}].copy_from_slice({all});"));
        } else {
            let value = cast(&format!("self.{name}"), type_of(width), "u128");
            code.line(format_args!("bits::put(&mut bytes, {}, {width}, {value});", field.offset));
        }
    }
    code.line("out.extend_from_slice(&bytes);");
}

/// A header of a deparser where some header ends inside a byte.
fn emit_bits(generator: &Generator<'_>, code: &mut Code<'_>, header: &Header) {
    code.line(format_args!("out.resize((at + {}_usize).div_ceil(8), 0);", header.bits));
    for field in &header.fields {
        let width = generator.pipeline.slots[field.slot.index()].width;
        let value =
            cast(&format!("self.{}", generator.names.slot(field.slot)), type_of(width), "u128");
        code.line(format_args!("bits::put(out, at + {}, {width}, {value});", field.offset));
    }
    code.line(format_args!("at += {};", header.bits));
}
