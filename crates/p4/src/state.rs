//! What outlives packets, and the control plane's access to it: tables, registers and counters.

use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::ir::{
    Choice, CounterId, Entry, EntryFault, MatchKind, Pattern, Program, RegisterId, Table, TableId,
    check_choice, check_entry, mask, prefix_length,
};

/// Tables, registers and counters of a program.
#[derive(Clone, Debug)]
pub struct State {
    program: Arc<Program>,
    tables: Vec<Lookup>,
    registers: Vec<Vec<u128>>,
    counters: Vec<Vec<Count>>,
}

/// What a counter has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes, as they came to the pipeline.
    pub bytes: u64,
}

/// Why the control plane is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The entry or default does not go with the table.
    #[error(transparent)]
    Entry(#[from] EntryFault),
    /// Its source says that they are constant.
    #[error("the {what} of table {table} is constant")]
    Constant {
        /// The table's name.
        table: String,
        /// `entries` or `default action`.
        what: &'static str,
    },
    /// There is an entry that matches the same (with the same priority).
    #[error("table {table} has this entry already")]
    Duplicate {
        /// The table's name.
        table: String,
    },
    /// There is no such entry.
    #[error("table {table} has no such entry")]
    Missing {
        /// The table's name.
        table: String,
    },
    /// The table is full.
    #[error("table {table} has no room for more than {size} entries")]
    Full {
        /// The table's name.
        table: String,
        /// Its size.
        size: u32,
    },
    /// Beyond the end of a register or a counter, or a value too wide.
    #[error("{name}[{index}] of {size}: no such place, or too large a value")]
    Array {
        /// Its name.
        name: String,
        /// Which value.
        index: u128,
        /// How many values it has.
        size: u32,
    },
}

impl State {
    /// As a program begins: entries of its source, zeros.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        let tables = program.tables.iter().map(Lookup::new).collect();
        let registers = program.registers.iter().map(|r| vec![0; r.size as usize]).collect();
        let counters =
            program.counters.iter().map(|c| vec![Count::default(); c.size as usize]).collect();
        Self { program, tables, registers, counters }
    }

    /// The program whose state it is.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What a table runs for these values, one for each key, and whether by an entry rather than by
    /// default.
    #[must_use]
    pub fn look_up(&self, table: TableId, keys: &[u128]) -> (&Choice, bool) {
        self.tables[table.index()].look_up(keys)
    }

    /// Entries of a table, those first that win.
    #[must_use]
    pub fn entries(&self, table: TableId) -> &[Entry] {
        &self.tables[table.index()].entries
    }

    /// What a table runs where no entry matches.
    #[must_use]
    pub fn default_choice(&self, table: TableId) -> &Choice {
        &self.tables[table.index()].default
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The table's entries are constant, it is full, it has the entry, or the entry does not fit
    /// it.
    pub fn insert(&mut self, table: TableId, mut entry: Entry) -> Result<(), Refused> {
        let known = self.changeable(table)?;
        check_entry(&self.program, known, &entry)?;
        entry.patterns = canonical(known, &entry.patterns);
        let (name, size) = (known.name.clone(), known.size);
        let lookup = &mut self.tables[table.index()];
        if lookup.find(&entry.patterns, entry.priority).is_some() {
            return Err(Refused::Duplicate { table: name });
        }
        if lookup.entries.len() >= size as usize {
            return Err(Refused::Full { table: name, size });
        }
        lookup.insert(entry);
        Ok(())
    }

    /// Takes the entry with these patterns and this priority (of no meaning without ternary keys)
    /// away.
    ///
    /// # Errors
    /// The table's entries are constant, or it has none such.
    pub fn remove(
        &mut self,
        table: TableId,
        patterns: &[Pattern],
        priority: u32,
    ) -> Result<(), Refused> {
        let at = self.find(table, patterns, priority)?;
        let lookup = &mut self.tables[table.index()];
        lookup.entries.remove(at);
        lookup.index();
        Ok(())
    }

    /// Gives the entry with these patterns and this priority (of no meaning without ternary keys)
    /// another action.
    ///
    /// # Errors
    /// The table's entries are constant, it has none such, or the action does not fit the table.
    pub fn modify(
        &mut self,
        table: TableId,
        patterns: &[Pattern],
        priority: u32,
        choice: Choice,
    ) -> Result<(), Refused> {
        let at = self.find(table, patterns, priority)?;
        check_choice(&self.program, &self.program.tables[table.index()], &choice, false)?;
        self.tables[table.index()].entries[at].choice = choice;
        Ok(())
    }

    /// Where the entry is that the control plane names so.
    fn find(&self, table: TableId, patterns: &[Pattern], priority: u32) -> Result<usize, Refused> {
        let known = self.changeable(table)?;
        let found = self.tables[table.index()].find(&canonical(known, patterns), priority);
        found.ok_or_else(|| Refused::Missing { table: known.name.clone() })
    }

    /// Changes what runs where no entry matches.
    ///
    /// # Errors
    /// The default is constant, or not one that the table may have.
    pub fn set_default(&mut self, table: TableId, choice: Choice) -> Result<(), Refused> {
        let known = &self.program.tables[table.index()];
        if known.const_default {
            return Err(Refused::Constant { table: known.name.clone(), what: "default action" });
        }
        check_choice(&self.program, known, &choice, true)?;
        self.tables[table.index()].default = choice;
        Ok(())
    }

    fn changeable(&self, table: TableId) -> Result<&Table, Refused> {
        let known = &self.program.tables[table.index()];
        if known.const_entries {
            return Err(Refused::Constant { table: known.name.clone(), what: "entries" });
        }
        Ok(known)
    }

    /// A value of a register; 0 beyond its end.
    #[must_use]
    pub fn register(&self, register: RegisterId, index: u128) -> u128 {
        place(index).and_then(|at| self.registers[register.index()].get(at)).map_or(0, |v| *v)
    }

    /// Writes a value of a register as a program does: nothing beyond its end.
    pub fn set_register(&mut self, register: RegisterId, index: u128, value: u128) {
        let values = &mut self.registers[register.index()];
        if let Some(old) = place(index).and_then(|at| values.get_mut(at)) {
            *old = value;
        }
    }

    /// Writes a value of a register as the control plane does.
    ///
    /// # Errors
    /// It has no such value, or not so wide a one.
    pub fn write_register(
        &mut self,
        register: RegisterId,
        index: u128,
        value: u128,
    ) -> Result<(), Refused> {
        let known = &self.program.registers[register.index()];
        if index >= u128::from(known.size) || value > mask(known.width) {
            let (name, size) = (known.name.clone(), known.size);
            return Err(Refused::Array { name, index, size });
        }
        self.set_register(register, index, value);
        Ok(())
    }

    /// Counts a packet so long; nothing beyond the counter's end.
    pub fn count(&mut self, counter: CounterId, index: u128, bytes: usize) {
        let counts = &mut self.counters[counter.index()];
        if let Some(count) = place(index).and_then(|at| counts.get_mut(at)) {
            count.packets = count.packets.wrapping_add(1);
            count.bytes = count.bytes.wrapping_add(bytes as u64);
        }
    }

    /// What a counter has counted; nothing beyond its end.
    #[must_use]
    pub fn counted(&self, counter: CounterId, index: u128) -> Count {
        let counts = &self.counters[counter.index()];
        place(index).and_then(|at| counts.get(at)).copied().unwrap_or_default()
    }
}

/// Patterns written so that equal sets are equal.
fn canonical(table: &Table, patterns: &[Pattern]) -> Vec<Pattern> {
    let pairs = patterns.iter().zip(&table.keys);
    pairs.map(|(pattern, key)| pattern.canonical(key.value.width)).collect()
}

fn place(index: u128) -> Option<usize> {
    usize::try_from(index).ok()
}

/// Values of exact keys.
fn values(patterns: &[Pattern]) -> Box<[u128]> {
    let value = |pattern: &Pattern| match pattern {
        Pattern::Value(value) => Some(*value),
        _ => None,
    };
    patterns.iter().filter_map(value).collect()
}

/// A table's entries, found by their keys.
#[derive(Clone, Debug)]
struct Lookup {
    kinds: Vec<MatchKind>,
    widths: Vec<u16>,
    /// In the order in which they win.
    entries: Vec<Entry>,
    default: Choice,
    /// Where all keys are exact: entries by their values. Never iterated.
    exact: Option<HashMap<Box<[u128]>, usize, FxBuildHasher>>,
}

impl Lookup {
    fn new(table: &Table) -> Self {
        let kinds: Vec<MatchKind> = table.keys.iter().map(|key| key.kind).collect();
        let all_exact = !kinds.is_empty() && kinds.iter().all(|kind| *kind == MatchKind::Exact);
        let mut lookup = Self {
            kinds,
            widths: table.keys.iter().map(|key| key.value.width).collect(),
            entries: Vec::new(),
            default: table.default.clone(),
            exact: all_exact.then(HashMap::default),
        };
        for entry in &table.entries {
            let patterns = canonical(table, &entry.patterns);
            lookup.insert(Entry { patterns, ..entry.clone() });
        }
        lookup
    }

    fn look_up(&self, keys: &[u128]) -> (&Choice, bool) {
        let found = match &self.exact {
            Some(exact) => exact.get(keys).map(|at| &self.entries[*at]),
            None if keys.is_empty() => None,
            None => self.entries.iter().find(|entry| {
                entry.patterns.iter().zip(keys).all(|(pattern, key)| pattern.matches(*key))
            }),
        };
        found.map_or((&self.default, false), |entry| (&entry.choice, true))
    }

    /// What entries are ordered by: smaller wins. With a ternary key its priority, which decides
    /// whatever else there is (P4-16 section 14.2.1.4 leaves prefixes beside ternary keys to the
    /// architecture); else the length of the prefix.
    fn order(&self, entry: &Entry) -> u32 {
        if self.kinds.contains(&MatchKind::Ternary) {
            return entry.priority;
        }
        let lpm = self.kinds.iter().position(|kind| *kind == MatchKind::Lpm);
        let length = lpm.and_then(|at| prefix_length(entry.patterns[at], self.widths[at]));
        length.map_or(0, |length| u32::from(u16::MAX - length))
    }

    fn insert(&mut self, entry: Entry) {
        let order = self.order(&entry);
        let at = self.entries.partition_point(|other| self.order(other) <= order);
        self.entries.insert(at, entry);
        if at + 1 == self.entries.len() {
            self.index_from(at);
        } else {
            self.index();
        }
    }

    /// Builds the index anew.
    fn index(&mut self) {
        if let Some(exact) = &mut self.exact {
            exact.clear();
        }
        self.index_from(0);
    }

    fn index_from(&mut self, first: usize) {
        let Some(exact) = &mut self.exact else { return };
        for (at, entry) in self.entries.iter().enumerate().skip(first) {
            // Of entries that match the same, the first counts.
            exact.entry(values(&entry.patterns)).or_insert(at);
        }
    }

    fn find(&self, patterns: &[Pattern], priority: u32) -> Option<usize> {
        if let Some(exact) = &self.exact {
            return exact.get(&values(patterns)).copied();
        }
        let by_priority = self.kinds.contains(&MatchKind::Ternary);
        self.entries.iter().position(|entry| {
            entry.patterns == patterns && (!by_priority || entry.priority == priority)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ir::{Expr, Key, MatchKind::*, SlotId, example};

    const TABLE: TableId = TableId(0);

    /// The example with keys of these kinds, eight bits wide, and no entries.
    fn with_keys(kinds: &[MatchKind]) -> State {
        let mut program = example::program();
        let key = |kind: &MatchKind| {
            let value = Expr::slot(SlotId(1), 8);
            Key { name: "k".into(), value, kind: *kind }
        };
        program.tables[0].keys = kinds.iter().map(key).collect();
        program.tables[0].entries.clear();
        program.tables[0].size = 8;
        State::new(Arc::new(program))
    }

    /// An entry that sends to a port.
    fn entry(patterns: &[Pattern], priority: u32, port: u128) -> Entry {
        let choice = Choice { action: 1, args: vec![port] };
        Entry { patterns: patterns.to_vec(), priority, choice }
    }

    fn masked(value: u128, mask: u128) -> Pattern {
        Pattern::Mask { value, mask }
    }

    /// Port that a table finds; 0: by default.
    fn port(state: &State, keys: &[u128]) -> u128 {
        let (choice, hit) = state.look_up(TABLE, keys);
        assert_eq!(hit, choice.action == 1);
        if hit { choice.args[0] } else { 0 }
    }

    #[test]
    fn the_longest_prefix_wins_however_entries_come() {
        let entries = [
            entry(&[masked(0b1010_0000, 0b1111_0000)], 0, 4),
            entry(&[masked(0b1000_0000, 0b1100_0000)], 0, 2),
            entry(&[Pattern::Any], 0, 9),
            entry(&[Pattern::Value(0b1010_1010)], 0, 8),
        ];
        for turn in 0..entries.len() {
            let mut state = with_keys(&[Lpm]);
            for at in 0..entries.len() {
                state.insert(TABLE, entries[(at + turn) % entries.len()].clone()).unwrap();
            }
            let ports =
                [0b1010_1010, 0b1010_0101, 0b1001_0000, 0b0111_1111].map(|k| port(&state, &[k]));
            assert_eq!(ports, [8, 4, 2, 9]);
        }
    }

    #[test]
    fn the_smallest_priority_wins_and_of_equals_the_first() {
        let mut state = with_keys(&[Ternary, Exact]);
        let seven = Pattern::Value(7);
        state.insert(TABLE, entry(&[Pattern::Any, seven], 5, 1)).unwrap();
        state.insert(TABLE, entry(&[masked(1, 1), seven], 2, 2)).unwrap();
        state.insert(TABLE, entry(&[masked(2, 2), seven], 2, 3)).unwrap();
        let ports = [[4, 7], [1, 7], [3, 7], [2, 7], [3, 6]].map(|keys| port(&state, &keys));
        assert_eq!(ports, [1, 2, 2, 3, 0]);
        state.remove(TABLE, &[masked(1, 1), seven], 2).unwrap();
        assert_eq!(port(&state, &[3, 7]), 3);
    }

    #[test]
    fn what_the_source_holds_constant_stays() {
        let mut program = example::program();
        program.tables[0].const_entries = true;
        let mut state = State::new(Arc::new(program));
        assert_eq!((port(&state, &[1]), port(&state, &[3])), (0x11, 0), "entries of the source");
        let (table, what) = ("by_kind".to_owned(), "entries");
        let refused = Refused::Constant { table: table.clone(), what };
        assert_eq!(state.insert(TABLE, entry(&[Pattern::Value(3)], 0, 1)), Err(refused.clone()));
        assert_eq!(state.remove(TABLE, &[Pattern::Value(1)], 0), Err(refused));
        let choice = Choice { action: 0, args: Vec::new() };
        let refused = Refused::Constant { table, what: "default action" };
        assert_eq!(state.set_default(TABLE, choice), Err(refused));
    }

    #[test]
    fn an_entry_comes_once_and_while_there_is_room() {
        let mut state = State::new(Arc::new(example::program()));
        let three = || entry(&[Pattern::Value(3)], 0, 1);
        let table = || "by_kind".to_owned();
        state.insert(TABLE, three()).unwrap();
        assert_eq!(state.insert(TABLE, three()), Err(Refused::Duplicate { table: table() }));
        state.insert(TABLE, entry(&[Pattern::Value(4)], 0, 1)).unwrap();
        let full = state.insert(TABLE, entry(&[Pattern::Value(5)], 0, 1));
        assert_eq!(full, Err(Refused::Full { table: table(), size: 4 }));
        state.remove(TABLE, &[Pattern::Value(3)], 0).unwrap();
        assert_eq!(port(&state, &[3]), 0);
        assert_eq!(port(&state, &[2]), 0x22, "the others are still found");
        let gone = state.remove(TABLE, &[Pattern::Value(3)], 0);
        assert_eq!(gone, Err(Refused::Missing { table: table() }));
        let wide = state.insert(TABLE, entry(&[Pattern::Value(5)], 0, 512)).unwrap_err();
        assert_eq!(wide.to_string(), "0x200 does not fit the 9 bits of send.port");
    }

    #[test]
    fn an_entry_is_found_however_its_patterns_are_written() {
        let mut state = with_keys(&[Ternary]);
        state.insert(TABLE, entry(&[masked(7, 0xff)], 1, 1)).unwrap();
        state.insert(TABLE, entry(&[masked(0, 0)], 2, 2)).unwrap();
        let duplicate = Err(Refused::Duplicate { table: "by_kind".to_owned() });
        assert_eq!(state.insert(TABLE, entry(&[Pattern::Value(7)], 1, 3)), duplicate);
        assert_eq!(state.insert(TABLE, entry(&[Pattern::Any], 2, 3)), duplicate);
        let choice = Choice { action: 1, args: vec![5] };
        state.modify(TABLE, &[Pattern::Any], 2, choice.clone()).unwrap();
        assert_eq!([7, 8].map(|key| port(&state, &[key])), [1, 5]);
        let missing = Err(Refused::Missing { table: "by_kind".to_owned() });
        assert_eq!(state.modify(TABLE, &[Pattern::Any], 3, choice), missing);
        let wide = Choice { action: 1, args: vec![512] };
        assert!(state.modify(TABLE, &[Pattern::Any], 2, wide).is_err());
        state.remove(TABLE, &[Pattern::Value(7)], 1).unwrap();
        assert_eq!(port(&state, &[7]), 5);
    }

    #[test]
    fn arrays_end_quietly_for_programs_and_loudly_for_the_control_plane() {
        let mut state = State::new(Arc::new(example::program()));
        let (register, counter) = (RegisterId(0), CounterId(0));
        state.set_register(register, 3, 5);
        state.set_register(register, 4, 5);
        assert_eq!([2, 3, 4, u128::MAX].map(|at| state.register(register, at)), [0, 5, 0, 0]);
        state.count(counter, 1, 100);
        state.count(counter, 1, 50);
        state.count(counter, 4, 50);
        assert_eq!(state.counted(counter, 1), Count { packets: 2, bytes: 150 });
        assert_eq!(state.counted(counter, 4), Count::default());
        assert_eq!(state.write_register(register, 0, 0xffff), Ok(()));
        for (index, value) in [(4, 0), (0, 0x1_0000)] {
            let (name, size) = ("said".to_owned(), 4);
            let refused = Refused::Array { name, index, size };
            assert_eq!(state.write_register(register, index, value), Err(refused));
        }
    }

    proptest! {
        /// The index of exact tables finds what a search finds.
        #[test]
        fn exact_entries_are_found_by_their_values(
            changes in proptest::collection::vec((any::<bool>(), 0_u128..6, 0_u128..3), 0..40),
        ) {
            let mut state = with_keys(&[Exact, Exact]);
            let mut wanted = std::collections::BTreeMap::new();
            for (number, (add, a, b)) in (1..).zip(changes) {
                let patterns = [Pattern::Value(a), Pattern::Value(b)];
                if add {
                    let fits = wanted.len() < 8 && !wanted.contains_key(&[a, b]);
                    let result = state.insert(TABLE, entry(&patterns, 0, number));
                    prop_assert_eq!(result.is_ok(), fits);
                    if fits {
                        wanted.insert([a, b], number);
                    }
                } else {
                    let there = wanted.remove(&[a, b]).is_some();
                    prop_assert_eq!(state.remove(TABLE, &patterns, 0).is_ok(), there);
                }
            }
            for keys in (0..6).flat_map(|a| (0..3).map(move |b| [a, b])) {
                prop_assert_eq!(port(&state, &keys), wanted.get(&keys).copied().unwrap_or(0));
            }
        }
    }
}
