//! Where in the program, or in which block, an output that differs is made.

use p4::ir::circuit::{Circuit, Port};
use p4::ir::{Block, PipelineId, Place, Program, SlotId, StmtKind};

use super::Mismatch;

/// What differs, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// The field by the program's name, or the output.
    pub field: String,
    /// File and line, or the block.
    pub place: String,
}

/// Of an output of a NIC.
#[must_use]
pub fn locate(program: &Program, mismatch: &Mismatch) -> Located {
    let block = |field: &str, block: &str| Located { field: field.into(), place: block.into() };
    match (mismatch.what, mismatch.byte) {
        ("tx_frame_o", Some(byte)) => {
            field(program, byte).unwrap_or_else(|| block("a header", "the egress pipeline"))
        }
        ("tx_frame_o", None) => block("whether a packet leaves in this cycle", "block arbiter"),
        ("delivered", _) => called(program, "get_rx_msg_info", "a message that is delivered"),
        ("acked", _) => called(program, "delivered", "a message that is acknowledged"),
        ("gave_up", _) => block("a message that is given up", "block packetization"),
        ("submit_ready_o", _) => block("whether a message is taken", "block packetization"),
        ("lost_o", _) => block("control packets that are lost", "block generator"),
        (what, _) => block(what, ""),
    }
}

/// The field of a header at a byte of what egress writes. Which headers are valid is not known
/// here: of several that may stand there all are named.
fn field(program: &Program, byte: usize) -> Option<Located> {
    let egress = PipelineId(1);
    let pipeline = &program.pipelines[egress.index()];
    let circuit = Circuit::new(program, egress).ok()?;
    let outputs = &circuit.outputs().headers;
    let (mut found, mut places) = (Vec::new(), Vec::new());
    let mut begin = 0;
    for (id, (valid, _)) in pipeline.deparser.iter().zip(outputs) {
        let header = &pipeline.headers[id.index()];
        let bit = (8 * byte as u32).checked_sub(begin);
        let field = header.fields.iter().find(|field| {
            let end = field.offset + u32::from(pipeline.slots[field.slot.index()].width);
            bit.is_some_and(|bit| field.offset < bit + 8 && end > bit)
        });
        if let Some(field) = field {
            found.push(pipeline.slots[field.slot.index()].name.clone());
            places.extend(setters(program, egress, field.slot));
        }
        // What is always there shifts what follows.
        if circuit.graph().constant(*valid) == Some(1) {
            begin += header.bits;
        }
    }
    (!found.is_empty()).then(|| Located { field: found.join(" or "), place: places.join(" or ") })
}

/// The lines of a pipeline's control and actions that set a value.
pub(super) fn setters(program: &Program, at: PipelineId, slot: SlotId) -> Vec<String> {
    let pipeline = &program.pipelines[at.index()];
    let mut places = Vec::new();
    for block in pipeline.actions.iter().map(|action| &action.body).chain([&pipeline.control]) {
        assignments(block, slot, &mut places);
    }
    let mut lines: Vec<String> = places.into_iter().filter_map(|at| place(program, at)).collect();
    lines.dedup();
    lines
}

fn assignments(block: &Block, slot: SlotId, places: &mut Vec<Place>) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::Assign { to, .. } if *to == slot => places.push(stmt.place),
            StmtKind::If { then, otherwise, .. } => {
                assignments(then, slot, places);
                assignments(otherwise, slot, places);
            }
            StmtKind::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, body)| assignments(body, slot, places));
                assignments(default, slot, places);
            }
            StmtKind::Scope(body) => assignments(body, slot, places),
            _ => {}
        }
    }
}

/// The lines of ingress that call an extern.
fn called(program: &Program, kind: &str, field: &str) -> Located {
    let is_it =
        |port| matches!(port, Port::Call(which) if program.externs[which.index()].kind == kind);
    Located { field: field.to_owned(), place: accessed(program, PipelineId(0), &is_it) }
}

/// The lines of a pipeline that access something.
pub(super) fn accessed(program: &Program, at: PipelineId, is_it: &dyn Fn(Port) -> bool) -> String {
    let circuit = Circuit::new(program, at).ok();
    let accesses = circuit.iter().flat_map(Circuit::accesses);
    let here = accesses.filter(|access| is_it(access.port));
    let places: Vec<String> =
        here.flat_map(|access| &access.places).filter_map(|at| place(program, *at)).collect();
    places.join(" or ")
}

/// File and line.
fn place(program: &Program, at: Place) -> Option<String> {
    let file = program.files.get(usize::from(at.file))?;
    (at.line > 0).then(|| format!("{file}:{}", at.line))
}
