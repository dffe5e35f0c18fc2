//! Which packets of which messages have come (specs/nanotransport.md#5), with the full key of a
//! message, and with what the prototype lacks: a timer that ends unfinished messages, and a memory
//! of those that are over (specs/homa-tr.md#E6; docs/nic.md, rules 16 to 18).
//!
//! All of it is a function of the packets' order and times, so it may be asked at once about an
//! instant that comes only when the packet has passed the pipeline.

use std::collections::VecDeque;

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, Time};

use super::buffers::{Buffer, Buffers};
use super::config::Config;
use super::control::Data;
use crate::time_wait::TimeWait;

/// A message, as its packets name it: the sender, its context, its number there.
type Key = (HostId, u16, u16);

const fn key(data: &Data) -> Key {
    (data.from, data.header.src_context, data.header.tx_msg_id)
}

/// What is known of the message of a packet (`get_rx_msg_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// There is no number or no buffer for it, it makes no sense, or it was ended with packets in
    /// it.
    Fail,
    /// It was delivered before.
    Done,
    /// It is being reassembled.
    Known(Info),
}

/// A message in reassembly, after its packet has been noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    /// The receiver's number of the message.
    pub(super) rx: usize,
    /// This is the first packet of it.
    pub(super) is_new_message: bool,
    /// This packet had not come before.
    pub(super) is_new_packet: bool,
    /// All packets are there.
    pub(super) is_last_packet: bool,
    /// The first packet that is missing.
    pub(super) ack_no: u16,
    /// The application has the bytes of this packet from an earlier life of the message.
    pub(super) is_placed: bool,
    /// The message begins anew: a part of it had come, and is forgotten.
    pub(super) is_forgotten: bool,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    received: u64,
    all: u64,
    buffer: Buffer,
    /// What became of the message before the NIC forgot it.
    before: Over,
    /// When it is ended, if nothing comes before.
    expires: Time,
}

/// What became of a message. Bit i: packet i.
#[derive(Clone, Copy, Debug, Default)]
struct Over {
    delivered: bool,
    placed: u64,
}

impl Over {
    /// Its sender has heard of packets, and it was not whole.
    const fn is_part(self) -> bool {
        !self.delivered && self.placed != 0
    }
}

/// The last messages that are over, the oldest forgotten first.
#[derive(Debug)]
struct Last {
    keys: HashSet<Key, FxBuildHasher>,
    order: VecDeque<Key>,
    room: usize,
}

impl Last {
    fn new(room: u32) -> Self {
        Self { keys: HashSet::default(), order: VecDeque::new(), room: room as usize }
    }

    fn remember(&mut self, key: Key) {
        if self.keys.insert(key) {
            self.order.push_back(key);
        }
        if self.order.len() > self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}

/// Keys that have one hash share this many places.
const WAYS: usize = 4;

/// The largest table: 16 bits of hash name its sets.
pub(super) const REMEMBERED_MAX: u32 = 1 << 18;

/// A table in a circuit (docs/nic.md, C9).
#[derive(Debug)]
struct Hashed {
    /// The places of all sets, one set after another.
    places: Vec<Option<Key>>,
    ways: usize,
    /// Of each set the place that is overwritten next.
    turn: Vec<usize>,
}

impl Hashed {
    fn new(places: u32) -> Self {
        let places = places as usize;
        let ways = places.clamp(1, WAYS);
        Self { places: vec![None; places], ways, turn: vec![0; places / ways] }
    }

    /// The first place of a key's set, and the set's number.
    fn set(&self, &(from, context, number): &Key) -> (usize, usize) {
        // 10.x.y.z, in two halves.
        let (high, low) = (0x0a00 | from.0 >> 16 & 0xff, from.0 & 0xffff);
        let turned = |value: u16, by: u32| u32::from(value.rotate_left(by));
        let hash = (high ^ low ^ turned(context, 5) ^ turned(number, 11)) & 0xffff;
        let set = (hash ^ hash >> 8) as usize % self.turn.len().max(1);
        (set * self.ways, set)
    }

    fn has(&self, key: &Key) -> bool {
        let (first, _) = self.set(key);
        self.places.iter().skip(first).take(self.ways).any(|place| place.as_ref() == Some(key))
    }

    fn remember(&mut self, key: Key) {
        if self.has(&key) {
            return;
        }
        let (first, set) = self.set(&key);
        let turn = &mut self.turn[set];
        self.places[first + *turn] = Some(key);
        *turn = (*turn + 1) % self.ways;
    }
}

/// What a NIC knows of messages that are over: of those delivered and of those ended.
#[derive(Debug)]
enum Known {
    /// What is true.
    All,
    /// Of the last.
    Last([Last; 2]),
    /// Of those in a circuit's tables.
    Hashed([Hashed; 2]),
}

/// Messages that are over.
#[derive(Debug)]
struct Past {
    /// All of which a packet may still come.
    all: TimeWait<Key, Over>,
    /// What the NIC knows.
    known: Known,
}

impl Past {
    fn new(config: &Config) -> Self {
        let known = match config.remember {
            None => Known::All,
            Some(room) if config.clocked => Known::Hashed([Hashed::new(room), Hashed::new(room)]),
            Some(room) => Known::Last([Last::new(room), Last::new(room)]),
        };
        Self { all: TimeWait::new(), known }
    }

    /// `whole`: it is whole now, or ended with packets in it; `None`: without any.
    fn remember(&mut self, now: Time, key: Key, over: Over, whole: Option<bool>, config: &Config) {
        self.all.insert(now, config.wait(), u32::MAX, key, over);
        let Some(whole) = whole else { return };
        match &mut self.known {
            Known::All => {}
            Known::Last(last) => last[usize::from(!over.delivered)].remember(key),
            // A circuit knows of no earlier life of the message.
            Known::Hashed(last) => last[usize::from(!whole)].remember(key),
        }
    }

    /// What became of the message of a packet, and whether the NIC knows.
    fn find(&mut self, now: Time, key: &Key, config: &Config) -> (Over, bool) {
        let over = self.all.get(now, key);
        self.all.refresh(now, config.wait(), key);
        let known = match &self.known {
            Known::All => over.is_some(),
            Known::Last(last) => over.is_some() && last.iter().any(|last| last.keys.contains(key)),
            // Whether or not a packet may still come.
            Known::Hashed([delivered, _]) if delivered.has(key) => {
                return (Over { delivered: true, ..over.unwrap_or_default() }, true);
            }
            Known::Hashed([_, ended]) if ended.has(key) => {
                return (Over { delivered: false, ..over.unwrap_or_default() }, true);
            }
            Known::Hashed(_) => false,
        };
        (over.unwrap_or_default(), known)
    }
}

/// The messages of one host in reassembly.
#[derive(Debug)]
pub(super) struct Reassembly {
    entries: Vec<Option<Entry>>,
    buffers: Buffers,
    /// Messages that are granted more, each with the cycle in which it hears of that.
    granted: VecDeque<(Time, usize)>,
    /// Delivered, or ended by their silence after some of their packets had been acknowledged.
    past: Past,
}

impl Reassembly {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            entries: Vec::new(),
            buffers: Buffers::new(&config.buffers),
            granted: VecDeque::new(),
            past: Past::new(config),
        }
    }

    /// When the next message falls silent for too long, and which.
    fn next_end(&self) -> Option<(Time, usize)> {
        let expires = |(rx, entry): (usize, &Option<Entry>)| Some((entry.as_ref()?.expires, rx));
        self.entries.iter().enumerate().filter_map(expires).min()
    }

    /// A message that is ended before `now`, one per call, in the order in which their times ran
    /// out: a table of a few places forgets the first.
    pub(super) fn expire(&mut self, now: Time, config: &Config) -> Option<usize> {
        while let Some((at, rx)) = self.granted.front().copied().filter(|(at, _)| *at < now) {
            // Timers are looked at after they are started again.
            if self.next_end().is_some_and(|(end, _)| end < at) {
                break;
            }
            self.granted.pop_front();
            self.granted(at, rx, config);
        }
        let (_, rx) = self.next_end().filter(|(expires, _)| *expires < now)?;
        let entry = self.free(rx, config)?;
        let over = Over { placed: entry.before.placed | entry.received, ..entry.before };
        if over.placed != 0 {
            let whole = (entry.received != 0).then_some(false);
            self.past.remember(now, entry.key, over, whole, config);
        }
        Some(rx)
    }

    /// Look up the message of `data`, which takes effect at `now`, or begin it; a packet that is
    /// not chopped is noted as received. Whatever has [expired](Self::expire) must be gone.
    pub(super) fn lookup(&mut self, now: Time, data: &Data, config: &Config) -> Lookup {
        let key = key(data);
        let offset = u16::from(data.header.pkt_offset);
        if offset >= data.packets() || u64::from(data.header.msg_len) > config.longest() {
            return Lookup::Fail;
        }
        let known = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.key == key);
        let found = self.entries.iter().position(known);
        let is_new_message = found.is_none();
        let mut before = Over::default();
        if is_new_message {
            before = match self.past.find(now, &key, config) {
                (Over { delivered: true, .. }, true) => return Lookup::Done,
                (_, true) => return Lookup::Fail,
                (forgotten, false) => forgotten,
            };
        }
        let begun = found.or_else(|| self.begin(data, before, config));
        let Some(rx) = begun else { return Lookup::Fail };
        let Some(entry) = &mut self.entries[rx] else { return Lookup::Fail };
        entry.expires = config.fires(now, silence(config), rx, config.rx_messages);
        let bit = if data.chopped { 0 } else { 1u64 << offset & entry.all };
        // What lies beyond the message as its first packet described it is no packet of it.
        let is_new_packet = data.chopped || entry.received & bit != bit || is_new_message;
        entry.received |= bit;
        Lookup::Known(Info {
            rx,
            is_new_message,
            is_new_packet,
            is_last_packet: entry.received == entry.all,
            ack_no: entry.received.trailing_ones() as u16,
            is_placed: entry.before.placed & bit != 0,
            is_forgotten: is_new_message && entry.before.is_part(),
        })
    }

    /// Message `rx` is granted more at `now`: its sender needs time to hear of it.
    pub(super) fn granted(&mut self, now: Time, rx: usize, config: &Config) {
        if let Some(Some(entry)) = self.entries.get_mut(rx) {
            entry.expires = config.fires(now, silence(config), rx, config.rx_messages);
        }
    }

    /// The same, `at` a later cycle (docs/nic.md, C6).
    pub(super) fn granted_later(&mut self, at: Time, rx: usize) {
        self.granted.push_back((at, rx));
    }

    /// A new message: the lowest free number and the smallest buffer, if there are.
    fn begin(&mut self, data: &Data, before: Over, config: &Config) -> Option<usize> {
        let rx = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if rx >= usize::from(config.rx_messages) {
            return None;
        }
        let buffer = self.buffers.take(&config.buffers, u64::from(data.header.msg_len))?;
        let all = u64::MAX >> (64 - data.packets());
        let expires = Time::NEVER;
        let entry = Entry { key: key(data), received: 0, all, buffer, before, expires };
        if rx == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[rx] = Some(entry);
        Some(rx)
    }

    /// Message `rx` is whole and goes to the application. Whether that is the second time.
    pub(super) fn delivered(&mut self, now: Time, rx: usize, config: &Config) -> bool {
        let Some(entry) = self.free(rx, config) else { return false };
        let over = Over { delivered: true, placed: entry.before.placed | entry.received };
        self.past.remember(now, entry.key, over, Some(true), config);
        entry.before.delivered
    }

    fn free(&mut self, rx: usize, config: &Config) -> Option<Entry> {
        let entry = self.entries.get_mut(rx)?.take()?;
        self.buffers.give_back(&config.buffers, entry.buffer);
        Some(entry)
    }

    /// Numbers in use, and buffers in use.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> (usize, usize) {
        (self.entries.iter().flatten().count(), self.buffers.in_use())
    }
}

/// A message that is silent for so long is over.
fn silence(config: &Config) -> Dur {
    config.timeout * u64::from(config.ingress_timeouts)
}

#[cfg(test)]
mod tests {
    use endpoint::MsgId;
    use wire::nano::{Kind, Repr};

    use super::*;
    use crate::nano::Program;

    fn data(message: u16, packets: u16, pkt_offset: u8, chopped: bool) -> Data {
        let header = Repr {
            kind: Kind::Data { chopped },
            src_context: message,
            dst_context: 0,
            msg_len: packets * 1024,
            pkt_offset,
            credit: 0,
            grant_prio: 0,
            tx_msg_id: 0,
            buf_ptr: 0,
            buf_size_class: 0,
        };
        Data { from: HostId(1), msg: MsgId(u64::from(message)), header, chopped, len: 1024 }
    }

    fn known(lookup: Lookup) -> Info {
        let Lookup::Known(info) = lookup else { panic!("{lookup:?}") };
        info
    }

    /// N2 and N11: sixteen messages have numbers and buffers; the seventeenth has none until one is
    /// whole.
    #[test]
    fn n11_the_seventeenth_message_fails() {
        let config = Config::firesim(Program::Ndp);
        let mut reassembly = Reassembly::new(&config);
        for n in 0..16 {
            let info = known(reassembly.lookup(Time(1), &data(n, 2, 0, false), &config));
            assert_eq!((info.rx, info.is_new_message, info.ack_no), (usize::from(n), true, 1));
            assert_eq!(reassembly.in_use(), (usize::from(n) + 1, usize::from(n) + 1));
        }
        assert_eq!(reassembly.lookup(Time(1), &data(16, 1, 0, false), &config), Lookup::Fail);
        let last = known(reassembly.lookup(Time(1), &data(5, 2, 1, false), &config));
        assert!(last.is_last_packet && !last.is_new_message);
        reassembly.delivered(Time(1), last.rx, &config);
        assert_eq!(reassembly.in_use(), (15, 15));
        assert_eq!(known(reassembly.lookup(Time(1), &data(16, 1, 0, false), &config)).rx, 5);
        assert_eq!(reassembly.lookup(Time(1), &data(5, 2, 1, false), &config), Lookup::Done);
    }

    /// A table of one place keeps the message whose time ran out last, whatever its number.
    #[test]
    fn what_ran_out_first_is_forgotten_first() {
        let config = Config { remember: Some(1), ..Config::firesim(Program::Ndp) };
        let mut reassembly = Reassembly::new(&config);
        known(reassembly.lookup(Time(1), &data(0, 3, 0, false), &config));
        known(reassembly.lookup(Time(1), &data(1, 3, 0, false), &config));
        known(reassembly.lookup(Time(1_000_000), &data(0, 3, 1, false), &config));
        let later = Time(2_000_000) + config.timeout * 3;
        assert_eq!(reassembly.expire(later, &config), Some(1));
        assert_eq!(reassembly.expire(later, &config), Some(0));
        assert_eq!(reassembly.expire(later, &config), None);
        assert_eq!(reassembly.lookup(later, &data(0, 3, 2, false), &config), Lookup::Fail);
        assert!(known(reassembly.lookup(later, &data(1, 3, 2, false), &config)).is_forgotten);
    }

    /// R1 and E1: a chopped packet begins a message and is not counted as received.
    #[test]
    fn r1_a_chopped_packet_is_not_received() {
        let config = Config::firesim(Program::HomaTr);
        let mut reassembly = Reassembly::new(&config);
        let first = known(reassembly.lookup(Time(1), &data(0, 2, 0, true), &config));
        assert!(first.is_new_message && first.is_new_packet && first.ack_no == 0);
        let whole = known(reassembly.lookup(Time(2), &data(0, 2, 0, false), &config));
        assert!(!whole.is_new_message && whole.is_new_packet && whole.ack_no == 1);
        let again = known(reassembly.lookup(Time(3), &data(0, 2, 0, false), &config));
        assert!(!again.is_new_packet);
    }

    /// E6 and rule 16: what falls silent is ended. With packets in it, it is refused from then on;
    /// without any, it may begin anew.
    #[test]
    fn e6_a_silent_message_is_ended() {
        let config = Config::firesim(Program::Ndp);
        let mut reassembly = Reassembly::new(&config);
        let from = Time(1_000_000);
        known(reassembly.lookup(from, &data(0, 3, 1, false), &config));
        let end = from + config.timeout * 2;
        assert_eq!(reassembly.expire(end, &config), None);
        assert_eq!(reassembly.expire(end + Dur::from_ns(11), &config), Some(0));
        assert_eq!(reassembly.in_use(), (0, 0));
        let later = end + Dur::from_ns(12);
        assert_eq!(reassembly.lookup(later, &data(0, 3, 1, false), &config), Lookup::Fail);
        known(reassembly.lookup(later, &data(1, 3, 1, true), &config));
        let last = later + config.timeout * 3;
        assert_eq!(reassembly.expire(last, &config), Some(0));
        assert!(known(reassembly.lookup(last, &data(1, 3, 1, false), &config)).is_new_message);
    }

    #[test]
    fn packets_that_make_no_sense_fail() {
        let config = Config::firesim(Program::Ndp);
        let mut reassembly = Reassembly::new(&config);
        for wrong in [data(0, 0, 0, false), data(0, 2, 2, false), data(0, 39, 0, false)] {
            assert_eq!(reassembly.lookup(Time(1), &wrong, &config), Lookup::Fail);
        }
        assert_eq!(reassembly.in_use(), (0, 0));
    }

    /// A peer may call a message longer later on: what was not part of it at first never is.
    #[test]
    fn a_message_stays_as_long_as_its_first_packet_says() {
        let config = Config::firesim(Program::Homa);
        let mut reassembly = Reassembly::new(&config);
        known(reassembly.lookup(Time(1), &data(0, 2, 0, false), &config));
        for _ in 0..3 {
            let beyond = known(reassembly.lookup(Time(1), &data(0, 38, 30, false), &config));
            assert!(!beyond.is_new_packet && !beyond.is_last_packet);
        }
        assert!(known(reassembly.lookup(Time(1), &data(0, 2, 1, false), &config)).is_last_packet);
    }

    /// Message `n` of one packet: how it is found, and whether it is then delivered twice.
    fn deliver(reassembly: &mut Reassembly, now: Time, n: u16, config: &Config) -> Option<bool> {
        match reassembly.lookup(now, &data(n, 1, 0, false), config) {
            Lookup::Known(info) => Some(reassembly.delivered(now, info.rx, config)),
            _ => None,
        }
    }

    /// Nothing is forgotten of which a packet may still come.
    #[test]
    fn every_message_is_known_for_as_long_as_its_packets_live() {
        let packet_life = Dur::from_us(100);
        let config = Config { packet_life, ..Config::firesim(Program::Ndp) };
        let wait = config.time_wait();
        assert!(wait > Dur::from_us(200) + config.timeout * 70 && wait < Dur::from_ms(1), "{wait}");
        let mut reassembly = Reassembly::new(&config);
        for n in 0..5_000 {
            assert_eq!(deliver(&mut reassembly, Time(1), n, &config), Some(false));
        }
        let late = Time::ZERO + wait;
        assert_eq!(deliver(&mut reassembly, late, 0, &config), None);
        // Of the others no packet can come any more; this one was asked about.
        let gone = late + Dur::from_us(1);
        assert_eq!(deliver(&mut reassembly, gone, 1, &config), Some(false));
        assert_eq!(deliver(&mut reassembly, gone, 0, &config), None);
    }

    /// A table in hardware has an end. What it forgets is delivered again, and that is known here.
    #[test]
    fn a_table_forgets_the_oldest_and_delivers_it_twice() {
        let config = Config { remember: Some(1024), ..Config::firesim(Program::Ndp) };
        let mut reassembly = Reassembly::new(&config);
        for n in 0..=1024 {
            assert_eq!(deliver(&mut reassembly, Time(1), n, &config), Some(false));
        }
        assert_eq!(deliver(&mut reassembly, Time(1), 1, &config), None);
        assert_eq!(deliver(&mut reassembly, Time(1), 0, &config), Some(true));
        assert_eq!(deliver(&mut reassembly, Time(1), 0, &config), None);
    }

    /// A message that was ended and forgotten may begin anew: no byte goes to the application
    /// twice.
    #[test]
    fn what_an_earlier_life_has_placed_is_not_placed_again() {
        let config = Config { remember: Some(0), ..Config::firesim(Program::Ndp) };
        let mut reassembly = Reassembly::new(&config);
        assert!(!known(reassembly.lookup(Time(1), &data(0, 2, 0, false), &config)).is_placed);
        let later = Time(1) + config.timeout * 3;
        assert_eq!(reassembly.expire(later, &config), Some(0));
        let again = known(reassembly.lookup(later, &data(0, 2, 0, false), &config));
        assert!(again.is_new_message && again.is_new_packet && again.is_placed);
        let last = known(reassembly.lookup(later, &data(0, 2, 1, false), &config));
        assert!(last.is_last_packet && !last.is_placed);
        assert!(!reassembly.delivered(later, last.rx, &config), "it is the first time");
    }
}
