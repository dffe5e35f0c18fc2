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
    /// What the NIC itself remembers.
    table: Table,
}

/// What a NIC remembers of messages that are over: complete ones, and broken off ones.
#[derive(Debug)]
enum Table {
    /// All of which a packet may still come.
    Lifetime,
    /// The last ones.
    Last([Remembered; 2]),
    /// The last ones of each set: what a circuit holds, whatever is true of them.
    Sets([Sets; 2]),
}

impl Past {
    /// Nothing is over. A `paced` flow keeps packets back for longer than senders' timeouts say.
    pub(super) fn new(config: &Config, paced: bool) -> Self {
        let table = match config.remember {
            None => Table::Lifetime,
            Some(places) if config.clocked => Table::Sets([Sets::new(places), Sets::new(places)]),
            Some(room) => Table::Last([Remembered::new(room), Remembered::new(room)]),
        };
        Self {
            wait: if paced { Dur::MAX } else { config.tick().of(config.time_wait()) },
            all: BTreeMap::new(),
            order: VecDeque::new(),
            table,
        }
    }

    /// What became of the message of a packet at `now`, and whether the NIC remembers it.
    pub(super) fn find(&mut self, now: Time, key: &Key) -> Option<(Over, bool)> {
        self.expire(now);
        let over = self.all.get_mut(key).map(|(until, over)| {
            *until = now + self.wait;
            *over
        });
        match &self.table {
            Table::Lifetime => Some((over?, true)),
            Table::Last(tables) => {
                Some((over?, tables.iter().any(|table| table.keys.contains(key))))
            }
            Table::Sets(tables) => match tables.iter().position(|table| table.holds(key)) {
                Some(table) => {
                    Some((Over { delivered: table == 0, ..over.unwrap_or_default() }, true))
                }
                None => Some((over?, false)),
            },
        }
    }

    /// Message `key` is over. `whole`: it is whole now, or ended with packets in it, which the
    /// NIC's table keeps; `None`: without any.
    pub(super) fn insert(&mut self, now: Time, key: Key, over: Over, whole: Option<bool>) {
        self.expire(now);
        let until = now + self.wait;
        if self.all.insert(key, (until, over)).is_none() {
            self.order.push_back((until, key));
        }
        let Some(whole) = whole else { return };
        match &mut self.table {
            Table::Lifetime => {}
            Table::Last(tables) => tables[usize::from(!over.delivered)].insert(key),
            // A circuit knows of no earlier life of the message.
            Table::Sets(tables) => tables[usize::from(!whole)].insert(key),
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

/// Places in a set: the keys that are compared with one that is looked for.
const WAYS: u32 = 4;

/// The most places of a table: the hash that chooses a set has 16 bits.
pub(super) const REMEMBERED_MAX: u32 = WAYS << 16;

/// A table as circuits have it (C9): a few places for all keys of one hash, filled in turn.
#[derive(Debug)]
struct Sets {
    /// Each set with the place that is written next.
    sets: Vec<(Vec<Option<Key>>, usize)>,
}

impl Sets {
    /// A table of so many places, a power of two.
    fn new(places: u32) -> Self {
        let ways = WAYS.min(places).max(1);
        let set = (vec![None; ways as usize], 0);
        Self { sets: vec![set; (places / ways).max(1) as usize] }
    }

    fn index(&self, key: &Key) -> usize {
        let hash = hash(key);
        usize::from(hash ^ hash >> 8) & (self.sets.len() - 1)
    }

    fn holds(&self, key: &Key) -> bool {
        self.sets[self.index(key)].0.contains(&Some(*key))
    }

    fn insert(&mut self, key: Key) {
        if self.holds(&key) {
            return;
        }
        let index = self.index(&key);
        let (ways, next) = &mut self.sets[index];
        ways[*next] = Some(key);
        *next = (*next + 1) % ways.len();
    }
}

/// Contexts and numbers are turned so that their low bits, which differ most, do not meet.
const fn hash(key: &Key) -> u16 {
    let Key { src_ip, src_context, tx_msg_id } = *key;
    (src_ip >> 16) as u16 ^ src_ip as u16 ^ src_context.rotate_left(5) ^ tx_msg_id.rotate_left(11)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(n: u16) -> Key {
        Key { src_ip: 0x0a00_0001, src_context: n, tx_msg_id: 0 }
    }

    /// C9, by hand: 0x0a00 ^ 0x0001 is 0x0a01; 1 to the left by 5 is 0x0020, 0x8001 by 11 is
    /// 0x0c00.
    #[test]
    fn law_c9_the_hash() {
        let of =
            |src_context, tx_msg_id| hash(&Key { src_ip: 0x0a00_0001, src_context, tx_msg_id });
        assert_eq!([of(0, 0), of(1, 0), of(0, 0x8001)], [0x0a01, 0x0a21, 0x0601]);
        let sets = Sets::new(1024);
        assert_eq!((sets.sets.len(), sets.sets[0].0.len()), (256, 4));
        // 0x21 ^ 0x0a.
        assert_eq!(sets.index(&key(1)), 0x2b);
    }

    /// C9: of five keys of one set the first is forgotten; one that is there is not put there
    /// again; two places are two ways.
    #[test]
    fn law_c9_the_places_of_a_set_are_filled_in_turn() {
        let mut table = Sets::new(1024);
        let mine = (0..).map(key).filter(|k| table.index(k) == 7).take(5).collect::<Vec<_>>();
        mine[..4].iter().for_each(|key| table.insert(*key));
        table.insert(mine[0]);
        assert!(mine[..4].iter().all(|key| table.holds(key)));
        table.insert(mine[4]);
        assert_eq!(
            mine.iter().map(|key| table.holds(key)).collect::<Vec<_>>(),
            [false, true, true, true, true]
        );
        let mut two = Sets::new(2);
        [1, 2, 3].map(key).into_iter().for_each(|key| two.insert(key));
        assert_eq!([1, 2, 3].map(|n| two.holds(&key(n))), [false, true, true]);
        assert_eq!(Sets::new(1).sets.len(), 1);
    }
}
