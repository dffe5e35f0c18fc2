//! Parsers (section 13). The IR's parsers have no way back, so a loop over a header stack becomes
//! states for every turn: a state is walked once for every filling of the stacks that it is
//! reached with. A loop that fills nothing would never end and is a mistake.

use std::rc::Rc;

use super::super::ast::{Case, Expr, KeySet, Local, Name, Parser, State, Transition};
use super::super::diagnostic::did_you_mean;
use super::super::limits::MAX_STATES;
use super::super::source::Span;
use super::types::Type;
use super::{Checked, Checker};
use crate::ir::{self, SelectCase, StateId, Target};

/// States that have been walked, or are being walked.
struct Walk<'a> {
    parser: &'a Parser,
    /// Scopes that are open outside of the states.
    depth: usize,
    made: Vec<Made>,
    states: Vec<Option<ir::State>>,
}

/// A state and how full the stacks are when it begins.
struct Made {
    name: Rc<str>,
    filled: Vec<u32>,
    /// On the way from the start to here.
    open: bool,
}

impl Checker<'_> {
    /// A parser's states, its parameters bound already.
    pub(super) fn parser_body(&mut self, parser: &Parser) -> Checked<ir::Parser> {
        self.used.push(Rc::clone(&parser.name.text));
        let ((), first) = self.collect(|c| c.locals(&parser.locals))?;
        self.check_states(parser)?;
        let mut walk =
            Walk { parser, depth: self.scopes.depth(), made: Vec::new(), states: Vec::new() };
        let span = parser.name.span;
        let start = Name { text: "start".into(), span };
        self.walk_state(&mut walk, &start)?;
        self.unreachable(&mut walk);
        let mut states: Vec<ir::State> = walk.states.into_iter().flatten().collect();
        if let Some(start) = states.first_mut() {
            start.body.splice(0..0, first);
        }
        Ok(ir::Parser { states })
    }

    fn check_states(&mut self, parser: &Parser) -> Checked<()> {
        for (n, state) in parser.states.iter().enumerate() {
            if ["accept", "reject"].contains(&&*state.name.text) {
                let message = format!("the state `{}` is there already", state.name);
                return Err(self.error(state.name.span, message, "choose another name"));
            }
            let before = parser.states.iter().take(n).map(|s| &s.name);
            let params = parser.params.iter().map(|p| &p.name);
            let mut others = before.chain(parser.locals.iter().map(Local::name)).chain(params);
            if others.any(|other| other.text == state.name.text) {
                // Section 13.2: states share a namespace with what else the parser declares.
                let message = format!("`{}` is declared twice", state.name);
                return Err(self.error(state.name.span, message, "choose another name"));
            }
        }
        if !parser.states.iter().any(|s| &*s.name.text == "start") {
            let message = format!("the parser `{}` has no state `start`", parser.name);
            return Err(self.error(parser.name.span, message, "parsing begins there"));
        }
        Ok(())
    }

    /// States that nothing leads to are walked for their mistakes only.
    fn unreachable(&mut self, walk: &mut Walk<'_>) {
        let states = walk.parser.states.iter();
        let is_reached = |s: &&State| walk.made.iter().any(|m| m.name == s.name.text);
        let others: Vec<&State> = states.filter(|s| !is_reached(s)).collect();
        let (count, externs) = (walk.states.len(), self.program.externs.len());
        let pipeline = self.frame.pipeline.clone();
        for state in &others {
            let message = format!("the state `{}` is never reached", state.name);
            self.messages.warn(state.name.span, message, "remove it, or lead to it");
            // How full stacks would be is not known: full enough for `last`. What is wrong is
            // reported.
            self.frame.filled.fill(1);
            let _ = self.walk_state(walk, &state.name);
        }
        walk.states.truncate(count);
        self.program.externs.truncate(externs);
        self.frame.pipeline = pipeline;
    }

    /// Where a transition to `name` leads.
    fn walk_state(&mut self, walk: &mut Walk<'_>, name: &Name) -> Checked<Target> {
        match &*name.text {
            "accept" => return Ok(Target::Accept),
            "reject" => return Ok(Target::Reject),
            _ => {}
        }
        let filled = self.frame.filled.clone();
        let known = walk.made.iter().position(|m| m.name == name.text && m.filled == filled);
        if let Some(at) = known {
            if walk.made[at].open {
                let message = format!("the parser comes back to `{name}` without end");
                let hint =
                    "a loop must extract into a header stack: `packet.extract(h.stack.next)`";
                return Err(self.error(name.span, message, hint));
            }
            return Ok(Target::State(StateId(at as u32)));
        }
        let states = &walk.parser.states;
        let Some(state) = states.iter().find(|s| s.name.text == name.text) else {
            let known = states.iter().map(|s| &*s.name.text).chain(["accept", "reject"]);
            let hint =
                did_you_mean(&name.text, known, "states are `accept`, `reject` and the parser's");
            return Err(self.error(name.span, format!("unknown state `{name}`"), hint));
        };
        if walk.made.len() >= MAX_STATES {
            let instead = "use shorter header stacks";
            return Err(self.refuse(name.span, "a parser this large, loops unrolled", instead));
        }
        let at = walk.made.len();
        walk.made.push(Made { name: Rc::clone(&name.text), filled: filled.clone(), open: true });
        walk.states.push(None);
        let made = self.state(walk, state, at);
        self.frame.filled = filled;
        walk.made[at].open = false;
        walk.states[at] = Some(made?);
        Ok(Target::State(StateId(at as u32)))
    }

    fn state(&mut self, walk: &mut Walk<'_>, state: &State, at: usize) -> Checked<ir::State> {
        // The state that leads here is being walked: what it has declared is its own.
        let hidden = self.scopes.hide(walk.depth);
        self.scopes.open();
        let done = self.state_inner(walk, state, at);
        self.scopes.close();
        self.scopes.show(hidden);
        done
    }

    fn state_inner(&mut self, walk: &mut Walk<'_>, state: &State, at: usize) -> Checked<ir::State> {
        self.frame.overflow = false;
        let (body, mut block) = self.collect(|c| Ok(c.statements(&state.body)))?;
        body?;
        let transition = if self.frame.overflow {
            // `verify` has rejected.
            ir::Transition::To(Target::Reject)
        } else {
            let (transition, effects) = self.collect(|c| c.transition(walk, state))?;
            block.extend(effects);
            transition
        };
        let turn = walk.made[..at].iter().filter(|m| m.name == state.name.text).count();
        let name = match turn {
            0 => state.name.text.to_string(),
            _ => format!("{}${turn}", state.name),
        };
        Ok(ir::State { name, body: block, transition, place: self.place(state.name.span) })
    }

    fn transition(&mut self, walk: &mut Walk<'_>, state: &State) -> Checked<ir::Transition> {
        match &state.transition {
            Transition::Missing => {
                let message = format!("the state `{}` has no transition", state.name);
                let hint = "that means `transition reject;`; say what is meant";
                self.messages.warn(state.name.span, message, hint);
                Ok(ir::Transition::To(Target::Reject))
            }
            Transition::To(name) => self.walk_state(walk, name).map(ir::Transition::To),
            Transition::Select { keys, cases, span } => self.select(walk, keys, cases, *span),
        }
    }

    fn select(
        &mut self,
        walk: &mut Walk<'_>,
        keys: &[Expr],
        cases: &[Case],
        span: Span,
    ) -> Checked<ir::Transition> {
        let all: Vec<&Expr> = keys.iter().collect();
        let given = self.sequence(&all)?;
        let (mut on, mut types) = (Vec::new(), Vec::new());
        for key in &given {
            if matches!(key.ty, Type::Error | Type::Int) {
                let message = format!("`select` on {}", key.ty);
                return Err(self.error(key.span, message, "it looks at bits, bools and enums"));
            }
            on.push(self.scalar(key)?);
            types.push(key.ty.clone());
        }
        let (mut lowered, mut whole) = (Vec::new(), false);
        for case in cases {
            if whole {
                self.messages.warn(case.span, "this case is never reached", "`default` comes last");
            }
            let any = matches!(case.keys[..], [KeySet::Any]);
            if case.keys.len() != keys.len() && !any {
                let (wanted, given) = (keys.len(), case.keys.len());
                let message = format!("`select` looks at {wanted} values, this case at {given}");
                return Err(self.error(case.span, message, "write them as `(a, b): state;`"));
            }
            let mut patterns = Vec::new();
            for (n, ty) in types.iter().enumerate() {
                let set = case.keys.get(n).or(case.keys.first());
                patterns.extend(set.map(|s| self.pattern(s, ty)).transpose()?.flatten());
            }
            let to = self.walk_state(walk, &case.to)?;
            if patterns.len() < types.len() {
                let hint = "of a range, the smaller end comes first";
                self.messages.warn(case.span, "this case is of an empty range", hint);
                continue;
            }
            whole |= patterns.iter().all(|p| *p == ir::Pattern::Any);
            lowered.push(SelectCase { patterns, to });
        }
        if !whole && !is_exhaustive(&on, &lowered) {
            // P4-16 rejects what matches no case (section 13.6); here a program says so.
            let instead = "say where other packets go, such as `default: reject;`";
            return Err(self.refuse(span, "a `select` without a default", instead));
        }
        Ok(ir::Transition::Select { on, cases: lowered })
    }
}

/// Whether a select on one value of a few bits has a case for each.
fn is_exhaustive(on: &[ir::Expr], cases: &[SelectCase]) -> bool {
    let [only] = on else { return false };
    let matched = |x: u128| cases.iter().any(|c| c.patterns.iter().all(|p| p.matches(x)));
    only.width <= 8 && (0..1u128 << only.width).all(matched)
}
