//! The priority scheduler: which message is granted next (specs/nanotransport.md#9).
//!
//! Sixteen entries are in registers and compared at once; what finds no register waits in a FIFO
//! until one is removed, and is kept up to date there, but never chosen and never counted.

use std::collections::VecDeque;

/// Registers that are compared.
pub const REGISTERS: usize = 16;

/// What a program says of the message whose packet has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The message.
    pub rx_msg_id: u16,
    /// Smaller is better; equal ones by id.
    pub rank: u16,
    /// What its sender has been told.
    pub granted: u16,
    /// What it could be told.
    pub grantable: u16,
}

/// The message to grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub rx_msg_id: u16,
    /// Entries that are better than it, fewer than the overcommitment.
    pub level: u8,
    /// Packets that it may send.
    pub grant_offset: u16,
}

/// See the top of the file.
#[derive(Debug)]
pub struct Scheduler {
    registers: [Option<Entry>; REGISTERS],
    fifo: VecDeque<Entry>,
    overcommitment: u8,
}

impl Entry {
    const fn order(&self) -> (u16, u16) {
        (self.rank, self.rx_msg_id)
    }
}

impl Scheduler {
    /// Without entries. Messages that have `overcommitment` better ones are not granted.
    #[must_use]
    pub const fn new(overcommitment: u8) -> Self {
        Self { registers: [None; REGISTERS], fifo: VecDeque::new(), overcommitment }
    }

    /// Put the entry of its message, or replace it; then choose.
    pub fn update(&mut self, entry: Entry) -> Option<Choice> {
        let id = entry.rx_msg_id;
        let place = |slot: &&mut Option<Entry>| slot.is_some_and(|e| e.rx_msg_id == id);
        if let Some(slot) = self.registers.iter_mut().find(place) {
            *slot = Some(entry);
        } else if let Some(waiting) = self.fifo.iter_mut().find(|e| e.rx_msg_id == id) {
            *waiting = entry;
        } else if let Some(free) = self.registers.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(entry);
        } else {
            self.fifo.push_back(entry);
        }
        self.choose()
    }

    /// The message of the packet has no entry from now on; then choose.
    pub fn update_without(&mut self, rx_msg_id: u16) -> Option<Choice> {
        self.remove(rx_msg_id);
        self.choose()
    }

    /// Take the entry of a message out, if it has one.
    pub fn remove(&mut self, rx_msg_id: u16) {
        let place = |slot: &&mut Option<Entry>| slot.is_some_and(|e| e.rx_msg_id == rx_msg_id);
        match self.registers.iter_mut().find(place) {
            Some(slot) => *slot = self.fifo.pop_front(),
            None => self.fifo.retain(|e| e.rx_msg_id != rx_msg_id),
        }
    }

    /// The best entry that has something to grant. Entries that have nothing count as better all
    /// the same: their packets are in flight.
    fn choose(&mut self) -> Option<Choice> {
        let valid = || self.registers.iter().flatten();
        let best =
            valid().filter(|e| e.grantable > e.granted).min_by_key(|e| e.order()).copied()?;
        let level = valid().filter(|e| e.order() < best.order()).count() as u8;
        if level >= self.overcommitment {
            return None;
        }
        let mut entries = self.registers.iter_mut().flatten();
        let chosen = entries.find(|e| e.rx_msg_id == best.rx_msg_id)?;
        chosen.granted = chosen.grantable;
        Some(Choice { rx_msg_id: best.rx_msg_id, level, grant_offset: best.grantable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn entry(rx_msg_id: u16, rank: u16, granted: u16, grantable: u16) -> Entry {
        Entry { rx_msg_id, rank, granted, grantable }
    }

    const fn choice(rx_msg_id: u16, level: u8, grant_offset: u16) -> Option<Choice> {
        Some(Choice { rx_msg_id, level, grant_offset })
    }

    #[test]
    fn the_best_with_something_to_grant_and_its_level() {
        let mut s = Scheduler::new(3);
        assert_eq!(s.update(entry(5, 10, 2, 3)), choice(5, 0, 3));
        assert_eq!(s.update(entry(6, 12, 2, 3)), choice(6, 1, 3), "5 is better and in flight");
        assert_eq!(s.update(entry(4, 10, 2, 4)), choice(4, 0, 4), "equal ranks by id");
        assert_eq!(s.update(entry(7, 20, 2, 3)), None, "three are better");
        assert_eq!(s.update_without(4), choice(7, 2, 3));
        assert_eq!(s.update_without(4), None, "nothing is left to grant");
    }

    /// The trap of specs/nanotransport.md#9: those that are granted in part block levels.
    #[test]
    fn outstanding_messages_keep_their_levels() {
        let mut s = Scheduler::new(1);
        assert_eq!(s.update(entry(0, 5, 9, 10)), choice(0, 0, 10));
        assert_eq!(s.update(entry(1, 8, 9, 12)), None);
        s.remove(0);
        assert_eq!(s.update(entry(1, 8, 9, 12)), choice(1, 0, 12));
    }

    #[test]
    fn the_seventeenth_waits_and_is_kept_up_to_date() {
        let mut s = Scheduler::new(3);
        for id in 0..16 {
            s.update(entry(id, 100 + id, 9, 9));
        }
        assert_eq!(s.update(entry(16, 1, 9, 10)), None, "it would be the best");
        assert_eq!(s.update(entry(17, 0, 9, 10)), None);
        s.update(entry(16, 1, 9, 11));
        assert_eq!(s.update_without(3), choice(16, 0, 11), "first in, first out");
        s.remove(17);
        assert_eq!(s.update_without(5), None, "gone while it waited");
    }

    proptest! {
        /// Against a list that is sorted and searched anew each time (up to 16 messages).
        #[test]
        fn agrees_with_sorting(
            steps in prop::collection::vec((0..16u16, 0..4u16, 0..4u16, 0..4u16, any::<bool>()), 1..200)
        ) {
            let mut s = Scheduler::new(3);
            let mut model: Vec<Entry> = Vec::new();
            for (id, rank, granted, grantable, remove) in steps {
                model.retain(|e| e.rx_msg_id != id);
                let new = entry(id, rank, granted, grantable);
                let chosen = if remove { s.update_without(id) } else {
                    model.push(new);
                    s.update(new)
                };
                model.sort_by_key(Entry::order);
                let at = model.iter().position(|e| e.grantable > e.granted).filter(|&at| at < 3);
                prop_assert_eq!(chosen, at.and_then(|at| {
                    let e = &mut model[at];
                    e.granted = e.grantable;
                    choice(e.rx_msg_id, at as u8, e.grantable)
                }));
            }
        }
    }
}
