//! Statements (section 12).

use super::super::ast::{
    Block, Constant, Expr, ExprKind, Statement, StatementKind, SwitchCase, Variable,
};
use super::super::token::Kind;
use super::{Parsed, Parser};

impl Parser<'_> {
    /// A block with its braces.
    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.annotations()?;
        self.expect("{", "to begin a block")?;
        let statements = self.nested(|p| p.items(|p| p.statement().map(Some)))?;
        Ok(Block { statements })
    }

    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        self.nested(Self::any_statement)
    }

    fn any_statement(&mut self) -> Parsed<Statement> {
        let annotated = !self.annotations()?.is_empty();
        let start = self.span();
        if annotated && !(self.is("{") || self.is("const") || self.is_variable()) {
            let message = "an annotation before this statement";
            let hint = "blocks and declarations can have annotations";
            return Err(self.messages.error(start, message, hint));
        }
        let kind = match self.kind().clone() {
            Kind::Symbol(";") => {
                self.advance();
                StatementKind::Empty
            }
            Kind::Symbol("{") => StatementKind::Block(self.block()?),
            Kind::Word("const") => StatementKind::Constant(self.constant()?),
            Kind::Word("if") => self.conditional()?,
            Kind::Word("switch") => self.switch()?,
            Kind::Word("return") => self.return_statement()?,
            Kind::Word("exit") => {
                self.advance();
                self.expect(";", "behind `exit`")?;
                StatementKind::Exit
            }
            Kind::Word(word @ ("action" | "table" | "state")) if self.is_name(1) => {
                let message = format!("`{word}` among statements");
                let hint = "actions and tables stand before `apply`, states beside one another";
                return Err(self.messages.error(start, message, hint));
            }
            _ if self.is_variable() => StatementKind::Variable(self.variable()?),
            _ => self.assignment_or_call()?,
        };
        Ok(Statement { kind, span: self.since(start) })
    }

    /// `const bit<16> RTT = 9;`
    pub(super) fn constant(&mut self) -> Parsed<Constant> {
        self.expect("const", "")?;
        let ty = self.type_ref()?;
        let name = self.name("the constant's name")?;
        self.expect("=", "and the constant's value")?;
        let value = self.expr()?;
        self.expect(";", "behind the constant")?;
        Ok(Constant { ty, name, value })
    }

    /// `bit<16> n = 0;`
    pub(super) fn variable(&mut self) -> Parsed<Variable> {
        let ty = self.type_ref()?;
        let name = self.name("the variable's name")?;
        let value = if self.eat("=") { Some(self.expr()?) } else { None };
        self.expect(";", "behind the variable")?;
        Ok(Variable { ty, name, value })
    }

    fn conditional(&mut self) -> Parsed<StatementKind> {
        self.advance();
        self.expect("(", "and a condition behind `if`")?;
        let condition = self.expr()?;
        self.expect(")", "behind the condition")?;
        let yes = Box::new(self.branch()?);
        let no = if self.eat("else") { Some(Box::new(self.branch()?)) } else { None };
        Ok(StatementKind::If(condition, yes, no))
    }

    /// What depends on a condition: a statement, no declaration.
    fn branch(&mut self) -> Parsed<Statement> {
        let statement = self.statement()?;
        if matches!(statement.kind, StatementKind::Variable(_) | StatementKind::Constant(_)) {
            let hint = "put it in braces, or before the `if`";
            let message = "a declaration under a condition";
            return Err(self.messages.error(statement.span, message, hint));
        }
        Ok(statement)
    }

    fn return_statement(&mut self) -> Parsed<StatementKind> {
        self.advance();
        if !self.is(";") {
            let span = self.span();
            let instead = "use an action with an `out` parameter";
            return Err(self.refuse(span, "functions that return values", instead));
        }
        self.advance();
        Ok(StatementKind::Return)
    }

    fn switch(&mut self) -> Parsed<StatementKind> {
        self.advance();
        self.expect("(", "behind `switch`")?;
        let on = self.expr()?;
        self.expect(")", "behind what `switch` looks at")?;
        self.expect("{", "to begin the cases")?;
        let cases = self.items(|p| {
            let start = p.span();
            let label = if p.eat("default") { None } else { Some(p.expr()?) };
            p.expect(":", "behind the case")?;
            let body = if p.is("{") || p.is("@") { Some(p.block()?) } else { None };
            Ok(Some(SwitchCase { label, body, span: p.since(start) }))
        })?;
        Ok(StatementKind::Switch { on, cases })
    }

    fn assignment_or_call(&mut self) -> Parsed<StatementKind> {
        let start = self.span();
        if self.is("(") {
            return Err(self.wrong("a statement"));
        }
        let left = self.expr()?;
        if self.eat("=") {
            let right = self.expr()?;
            self.expect(";", "behind the assignment")?;
            return Ok(StatementKind::Assign(left, right));
        }
        if let Kind::Symbol(op @ ("++" | "+" | "-")) = self.kind() {
            let message = format!("`{op}` ends no statement");
            let span = self.span();
            return Err(self.messages.error(span, message, "write `x = x + 1;`"));
        }
        let is_call = matches!(&left, Expr { kind: ExprKind::Call { .. }, .. });
        if !is_call && self.is(";") {
            let span = self.since(start);
            self.advance();
            let hint = "assign it or call something";
            return Err(self.messages.error(span, "an expression alone does nothing", hint));
        }
        self.expect(";", if is_call { "behind the call" } else { "or `=` behind the expression" })?;
        Ok(StatementKind::Call(left))
    }
}
