//! Planted mistakes: a module in which one input, `mutant_i`, chooses one of many. 0 is the module
//! without any.

use std::fmt;

use super::text::logic;
use super::{Emitter, Module};

/// The input that chooses, and its width.
pub const SELECT: (&str, u32) = ("mutant_i", 16);

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This bit is inverted.
    Inverted(u32),
    /// It is always this bit.
    Forced(bool),
    /// A register has what it should have had a cycle before.
    Late,
    /// A register keeps what it has.
    Kept,
}

/// A planted mistake.
#[derive(Clone, Debug)]
pub struct Mutant {
    signal: String,
    change: Change,
    is_unread: bool,
}

impl Mutant {
    /// Whether nothing reads what it changes: there is no difference to be found.
    #[must_use]
    pub const fn is_unread(&self) -> bool {
        self.is_unread
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            Change::Inverted(bit) => write!(f, "`{}` bit {bit} inverted", self.signal),
            Change::Forced(bit) => write!(f, "`{}` always {}", self.signal, u8::from(bit)),
            Change::Late => write!(f, "`{}` a cycle late", self.signal),
            Change::Kept => write!(f, "`{}` never changes", self.signal),
        }
    }
}

impl Module {
    /// What the values 1, 2 and so on of `mutant_i` plant.
    #[must_use]
    pub fn mutants(&self) -> &[Mutant] {
        &self.mutants
    }
}

impl Emitter<'_> {
    /// That `mutant_i` has the number of a new mistake.
    fn mutant(&mut self, signal: &str, change: Change) -> String {
        let mutant = Mutant { signal: signal.to_owned(), change, is_unread: false };
        self.module.mutants.push(mutant);
        let (select, width) = SELECT;
        format!("({select} == {width}'d{})", self.module.mutants.len())
    }

    /// The value of a signal, and what it is with each mistake.
    pub(super) fn mutated(&mut self, signal: &str, width: u32, value: &str) -> String {
        if !self.has_mutants {
            return value.to_owned();
        }
        let low = self.mutant(signal, Change::Inverted(0));
        if width > 1 {
            let high = self.mutant(signal, Change::Inverted(width - 1));
            let between = if width > 2 { format!("{}'d0, ", width - 2) } else { String::new() };
            return format!("({value}) ^ {{{high}, {between}{low}}}");
        }
        let zero = self.mutant(signal, Change::Forced(false));
        let one = self.mutant(signal, Change::Forced(true));
        format!("!{zero} && ({one} || (({value}) ^ {low}))")
    }

    /// What a register is given in each cycle, and what with each mistake.
    pub(super) fn mutated_register(&mut self, register: &str, width: u32, value: &str) -> String {
        if !self.has_mutants {
            return value.to_owned();
        }
        let plain = super::names::plain(register);
        let before = self.names.unique(&format!("{plain}_before"), "");
        self.line(&format!("{} {before};", logic(width)));
        self.line(&format!("always_ff @(posedge clk_i) {before} <= {value};"));
        let late = self.mutant(register, Change::Late);
        let kept = self.mutant(register, Change::Kept);
        let value = format!("{late} ? {before} : {kept} ? {register} : {value}");
        self.mutated(register, width, &value)
    }

    /// The bits of `valid_q`, each one a register.
    pub(super) fn mutated_chain(&mut self, bits: u32) -> String {
        let bit = |at: u32| format!("valid_q[{at}]");
        let from = |at: u32| at.checked_sub(1).map_or_else(|| "valid_i".to_owned(), bit);
        let next: Vec<String> =
            (0..bits).rev().map(|at| self.mutated_register(&bit(at), 1, &from(at))).collect();
        format!("{{{}}}", next.join(", "))
    }

    /// A port that the circuit reads as a node: by its own name, so that it can be wrong inside.
    pub(super) fn mutated_port(&mut self, port: String, width: u32) -> String {
        if !self.has_mutants {
            return port;
        }
        let ends: Vec<String> =
            (1..=self.module.latency).map(|by| super::delayed("", by)).collect();
        let seen = self.names.signal(&format!("seen_{port}"), &ends);
        self.wire(&seen, width, &port, "");
        self.read_all(&port);
        seen
    }

    /// Find out which mistakes change what nothing reads.
    pub(super) fn find_unread_mutants(&mut self) {
        for mutant in &mut self.module.mutants {
            let Some(signal) = self.signals.get(&mutant.signal) else { continue };
            mutant.is_unread = match mutant.change {
                Change::Inverted(bit) => !signal.read[bit as usize],
                _ => !signal.read.contains(&true),
            };
        }
    }
}
