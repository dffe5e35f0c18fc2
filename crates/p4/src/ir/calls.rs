//! What a pipeline calls.

use super::{Block, ExternId, Pipeline, Stmt, StmtKind};

impl Pipeline {
    /// The externs that it calls somewhere, in parser, control or actions; one as often as it is
    /// called.
    #[must_use]
    pub fn calls(&self) -> Vec<ExternId> {
        let states = self.parser.iter().flat_map(|parser| &parser.states).map(|state| &state.body);
        let actions = self.actions.iter().map(|action| &action.body);
        let mut calls = Vec::new();
        states.chain(actions).chain([&self.control]).for_each(|block| of_block(block, &mut calls));
        calls
    }
}

fn of_block(block: &Block, calls: &mut Vec<ExternId>) {
    for Stmt { kind, .. } in block {
        match kind {
            StmtKind::Call { which, .. } => calls.push(*which),
            StmtKind::If { then, otherwise, .. } => {
                of_block(then, calls);
                of_block(otherwise, calls);
            }
            StmtKind::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, case)| of_block(case, calls));
                of_block(default, calls);
            }
            StmtKind::Scope(block) => of_block(block, calls),
            _ => {}
        }
    }
}
