//! Messages that are over at their receiver, so that a packet that comes again does not begin them
//! anew (docs/nic.md, rules 16 and 18).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use units::{Dur, Time};

use super::config::Config;
use super::reassembly::Key;

/// What became of a message. Bit i: packet i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Over {
    /// It was whole.
    pub(super) delivered: bool,
    /// Packets whose payload the application has.
    pub(super) placed: u64,
}

impl Over {
    /// Its sender has heard of packets, and it was not whole.
    pub(super) const fn is_part(self) -> bool {
        !self.delivered && self.placed != 0
    }
}

/// See the top of the file.
#[derive(Debug)]
pub(super) struct Past {
    /// How long after the last packet of a message another one may come.
    wait: Dur,
    /// Every message of which a packet may still come, with the time from which none can.
    all: BTreeMap<Key, (Time, Over)>,
    /// Each of them once, by the time that it had when it was put here.
    order: VecDeque<(Time, Key)>,
    /// What the NIC itself remembers, where that is less: complete messages, and broken off ones.
    table: Option<[Remembered; 2]>,
}

impl Past {
    /// Nothing is over. A `paced` flow keeps packets back for longer than senders' timeouts say.
    pub(super) fn new(config: &Config, paced: bool) -> Self {
        Self {
            wait: if paced { Dur::MAX } else { config.time_wait() },
            all: BTreeMap::new(),
            order: VecDeque::new(),
            table: config.remember.map(|room| [Remembered::new(room), Remembered::new(room)]),
        }
    }

    /// What became of the message of a packet at `now`, and whether the NIC remembers it.
    pub(super) fn find(&mut self, now: Time, key: &Key) -> Option<(Over, bool)> {
        self.expire(now);
        let (until, over) = self.all.get_mut(key)?;
        *until = now + self.wait;
        let mut tables = self.table.iter().flatten();
        let known = self.table.is_none() || tables.any(|table| table.keys.contains(key));
        Some((*over, known))
    }

    /// Message `key` is over; it goes into the NIC's table if `table` says so.
    pub(super) fn insert(&mut self, now: Time, key: Key, over: Over, table: bool) {
        self.expire(now);
        let until = now + self.wait;
        if self.all.insert(key, (until, over)).is_none() {
            self.order.push_back((until, key));
        }
        if let (Some([done, broken_off]), true) = (&mut self.table, table) {
            if over.delivered { done.insert(key) } else { broken_off.insert(key) }
        }
    }

    fn expire(&mut self, now: Time) {
        while let Some((_, key)) = self.order.pop_front_if(|(due, _)| *due <= now) {
            match self.all.get(&key) {
                Some(&(until, _)) if until > now => self.order.push_back((until, key)),
                _ => drop(self.all.remove(&key)),
            }
        }
    }
}

/// Messages that are over, the oldest of which is forgotten where there are too many.
#[derive(Debug)]
struct Remembered {
    order: VecDeque<Key>,
    keys: BTreeSet<Key>,
    room: usize,
}

impl Remembered {
    fn new(room: u32) -> Self {
        Self { order: VecDeque::new(), keys: BTreeSet::new(), room: room as usize }
    }

    fn insert(&mut self, key: Key) {
        if self.room == 0 {
            return;
        }
        if self.order.len() == self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        self.order.push_back(key);
        self.keys.insert(key);
    }
}
