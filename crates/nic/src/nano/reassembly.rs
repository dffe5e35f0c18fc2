//! Reassembly: which packets of which messages have arrived (specs/nanotransport.md#5).
//!
//! A message has an id, a buffer and an entry in the table from its first packet to its last; it is
//! found by its whole key. A timer of its own, restarted by each packet and each GRANT, ends a
//! message whose sender has fallen silent. Those that are complete are remembered, so that a packet
//! that comes again does not begin them anew (the public code does; specs/homa-tr.md#E6). So are
//! those that were ended with packets in them: their senders have heard that these had arrived, and
//! would never send them again.

use std::collections::{BTreeMap, VecDeque};

use units::{Dur, Time};

use super::bits::{below, bit, packets};
use super::buffers::{Buffer, Buffers, FreeList};
use super::config::Config;
use super::past::{Over, Past};
use super::timers::Timers;

/// What names a message at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The sending host.
    pub src_ip: u32,
    /// The sending context.
    pub src_context: u16,
    /// The sender's number of the message.
    pub tx_msg_id: u16,
}

/// A request of `get_rx_msg_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message.
    pub key: Key,
    /// Whether the payload is there.
    pub mark_received: bool,
    /// Bytes of the message.
    pub msg_len: u16,
    /// Index of the packet.
    pub pkt_offset: u8,
}

/// The answer of `get_rx_msg_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// There is neither an entry nor room for one; nothing else holds.
    pub fail: bool,
    /// Index of the message's cells.
    pub rx_msg_id: u16,
    /// The entry is new.
    pub is_new_msg: bool,
    /// The packet was not there before.
    pub is_new_pkt: bool,
    /// Every packet is there.
    pub is_last_pkt: bool,
    /// The first packet that is missing.
    pub ack_no: u16,
    /// The message was complete before: it has no id any more.
    pub is_done: bool,
    /// The application has the payload already, from an earlier life of the message. Not for
    /// programs.
    pub is_placed: bool,
    /// The message begins anew: a part of it had come, and is forgotten. Not for programs.
    pub is_forgotten: bool,
}

/// A message that is being received.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    received: u64,
    packets: u8,
    buffer: Buffer,
    /// What became of the message before the NIC forgot it.
    before: Over,
}

impl Entry {
    /// Packets whose payload the application has, in this life of the message or before.
    const fn placed(&self) -> u64 {
        self.before.placed | self.received
    }
}

/// See the top of the file.
#[derive(Debug)]
pub struct Reassembly {
    entries: Vec<Option<Entry>>,
    table: BTreeMap<Key, u16>,
    ids: FreeList,
    buffers: Buffers,
    timers: Timers<()>,
    /// Timers that GRANTs start again, and when, where that is later than the GRANT.
    restarts: VecDeque<(Time, u16)>,
    timeout: Dur,
    past: Past,
}

impl Reassembly {
    /// Nothing is being received. `paced`: flows keep packets back.
    #[must_use]
    pub fn new(config: &Config, paced: bool) -> Self {
        let ids = config.rx_messages;
        Self {
            entries: vec![None; usize::from(ids)],
            table: BTreeMap::new(),
            ids: FreeList::new(ids),
            buffers: Buffers::new(&config.classes),
            timers: Timers::new(ids, config.tick()),
            restarts: VecDeque::new(),
            timeout: config.tick().of(config.silence()),
            past: Past::new(config, paced),
        }
    }

    /// Answer `request`, a packet that takes effect at `now`. Messages that have fallen silent
    /// before are ended first: see [`Reassembly::expire`].
    pub fn lookup(&mut self, now: Time, request: Request) -> Info {
        let Request { key, msg_len, pkt_offset, mark_received } = request;
        let packets = packets(msg_len);
        let failed = Info { fail: true, ..Info::default() };
        if msg_len == 0 || pkt_offset >= packets {
            return failed;
        }
        let known = self.table.get(&key).copied();
        let over = if known.is_none() { self.past.find(now, &key) } else { None };
        let before = match over {
            Some((over, true)) if over.delivered => {
                let ack_no = u16::from(packets);
                return Info { is_done: true, is_last_pkt: true, ack_no, ..Info::default() };
            }
            Some((_, true)) => return failed,
            Some((forgotten, false)) => forgotten,
            None => Over::default(),
        };
        let is_new_msg = known.is_none();
        let Some(rx_msg_id) = known.or_else(|| self.begin(key, msg_len, before)) else {
            return failed;
        };
        let Some(entry) = self.entries.get_mut(usize::from(rx_msg_id)).and_then(Option::as_mut)
        else {
            return failed;
        };
        self.timers.schedule(rx_msg_id, now + self.timeout, ());
        // What lies beyond the message as its first packet described it is no packet of it.
        let mask = if mark_received { bit(pkt_offset) & below(entry.packets.into()) } else { 0 };
        let is_new_pkt = !mark_received || entry.received & mask != mask || is_new_msg;
        entry.received |= mask;
        Info {
            fail: false,
            rx_msg_id,
            is_new_msg,
            is_new_pkt,
            is_last_pkt: entry.received == below(entry.packets.into()),
            ack_no: entry.received.trailing_ones() as u16,
            is_done: false,
            is_placed: entry.before.placed & mask != 0,
            is_forgotten: is_new_msg && entry.before.is_part(),
        }
    }

    /// A GRANT for message `id` starts its timer again `at` a later time, if one runs then (C6).
    pub fn grant_later(&mut self, at: Time, id: u16) {
        self.restarts.push_back((at, id));
    }

    /// A GRANT leaves for message `id` at `now`: what it permits will take its time.
    pub fn granted(&mut self, now: Time, id: u16) {
        if self.timers.runs(id) {
            self.timers.schedule(id, now + self.timeout, ());
        }
    }

    /// An id, a buffer and an entry for a new message, if there is one of each.
    fn begin(&mut self, key: Key, msg_len: u16, before: Over) -> Option<u16> {
        if self.ids.left() == 0 {
            return None;
        }
        let buffer = self.buffers.take(u32::from(msg_len))?;
        let id = self.ids.take()?;
        self.table.insert(key, id);
        self.entries[usize::from(id)] =
            Some(Entry { key, received: 0, packets: packets(msg_len), buffer, before });
        Some(id)
    }

    /// Message `id` is whole at `now`: free what it has, and remember it. Whether it had been
    /// delivered before, and forgotten.
    pub fn complete(&mut self, now: Time, id: u16) -> bool {
        let Some(entry) = self.free(id) else { return false };
        let over = Over { delivered: true, placed: entry.placed() };
        self.past.insert(now, entry.key, over, Some(true));
        entry.before.delivered
    }

    fn free(&mut self, id: u16) -> Option<Entry> {
        let entry = self.entries.get_mut(usize::from(id))?.take()?;
        self.table.remove(&entry.key);
        self.timers.cancel(id);
        self.buffers.give(entry.buffer);
        self.ids.give(id);
        Some(entry)
    }

    /// End the messages whose timers have fired before `now`, and return the first of them: to be
    /// called until there is none. A packet at `now` comes before a timer at `now`.
    pub fn expire(&mut self, now: Time) -> Option<u16> {
        let before = Time(now.0.checked_sub(1)?);
        // In one cycle a timer is started before it is looked at.
        while let Some(&(at, id)) = self.restarts.front()
            && at <= self.timers.next().unwrap_or(before).min(before)
        {
            self.restarts.pop_front();
            self.granted(at, id);
        }
        let (_, id, ()) = self.timers.pop(before)?;
        if let Some(entry) = self.free(id).filter(|entry| entry.placed() != 0) {
            let over = Over { placed: entry.placed(), ..entry.before };
            let whole = (entry.received != 0).then_some(false);
            self.past.insert(now, entry.key, over, whole);
        }
        Some(id)
    }

    /// N2: as many ids as buffers and table entries are in use, and N11: no more than there are.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        let used = self.entries.len() - usize::from(self.ids.left());
        let valid = self.entries.iter().flatten().count();
        assert_eq!((used, used, used), (valid, self.table.len(), self.buffers.taken()), "N2");
        let running = (0..self.entries.len() as u16).filter(|&id| self.timers.runs(id)).count();
        assert_eq!(running, used, "one timer for each message");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    const TIMEOUT: Dur = Dur::from_us(14);

    fn reassembly_of(remember: Option<u32>) -> Reassembly {
        let prototype = Config::prototype(9, Dur::from_us(7));
        let reassembly = Reassembly::new(&Config { remember, ..prototype }, false);
        assert_eq!(reassembly.timeout, TIMEOUT);
        reassembly
    }

    fn reassembly() -> Reassembly {
        reassembly_of(Some(2))
    }

    const fn key(host: u32, tx_msg_id: u16) -> Key {
        Key { src_ip: host, src_context: 7, tx_msg_id }
    }

    fn packet(key: Key, packets: u16, pkt_offset: u8) -> Request {
        Request { key, mark_received: true, msg_len: packets * 1024, pkt_offset }
    }

    /// The table of specs/nanotransport.md#5.2.
    #[test]
    fn the_cases_of_get_rx_msg_info() {
        let mut r = reassembly();
        let mut ask = |request| r.lookup(Time(0), request);
        let whole = |offset| packet(key(1, 0), 3, offset);
        let first = ask(whole(1));
        let expected = Info { is_new_msg: true, is_new_pkt: true, ..Info::default() };
        assert_eq!(first, expected, "ackNo 0: packet 0 is missing");
        assert!(!ask(whole(1)).is_new_pkt, "a duplicate");
        let chop = ask(Request { mark_received: false, ..whole(1) });
        assert!(chop.is_new_pkt && !chop.is_new_msg, "without payload it counts as new");
        assert_eq!(ask(whole(0)).ack_no, 2);
        let last = ask(whole(2));
        assert!(last.is_last_pkt && last.ack_no == 3 && last.rx_msg_id == 0);
        r.complete(Time(0), 0);
        r.assert_consistent();
        let again = r.lookup(Time(0), whole(2));
        assert!(again.is_done && again.ack_no == 3 && !again.is_new_pkt);
        r.assert_consistent();
    }

    /// N11: at most 16 messages; the 17th gets fail. Hosts whose low address bits agree are
    /// different.
    #[test]
    fn n11_the_seventeenth_message_fails() {
        let mut r = reassembly();
        for host in 0..16 {
            let info = r.lookup(Time(0), packet(key(host << 4, 0), 2, 0));
            assert_eq!((info.rx_msg_id, info.is_new_msg), (host as u16, true));
            r.assert_consistent();
        }
        assert!(r.lookup(Time(0), packet(key(999, 0), 1, 0)).fail);
        assert!(!r.lookup(Time(0), packet(key(16, 0), 2, 1)).is_new_msg, "one that is there");
    }

    #[test]
    fn impossible_packets_fail() {
        let mut r = reassembly();
        assert!(r.lookup(Time(0), packet(key(1, 0), 2, 2)).fail, "beyond the end");
        assert!(r.lookup(Time(0), packet(key(1, 0), 39, 0)).fail, "no buffer is large enough");
        assert!(r.lookup(Time(0), Request { msg_len: 0, ..packet(key(1, 0), 1, 0) }).fail);
        r.assert_consistent();
        // The length changes on the way: the first packet's holds.
        r.lookup(Time(0), packet(key(1, 0), 2, 0));
        assert!(!r.lookup(Time(0), packet(key(1, 0), 9, 8)).is_last_pkt);
    }

    /// E6, specs/nanotransport.md#5.3: a message that has fallen silent is ended, one that has not
    /// is not.
    #[test]
    fn silence_ends_a_message() {
        let mut r = reassembly();
        r.lookup(Time(0), packet(key(1, 0), 2, 0));
        let later = Time(TIMEOUT.0 / 2);
        r.lookup(later, Request { mark_received: false, ..packet(key(1, 0), 2, 1) });
        assert_eq!(r.expire(Time(TIMEOUT.0) + Dur::from_us(1)), None, "restarted by every packet");
        assert_eq!(r.expire(later + TIMEOUT + Dur::from_us(1)), Some(0));
        r.assert_consistent();
        assert_eq!(r.table.get(&key(1, 0)), None);
        assert!(r.lookup(later, packet(key(1, 0), 2, 1)).fail, "its packet 0 is lost for ever");
        // One of which nothing had arrived may begin anew.
        let chop = Request { mark_received: false, ..packet(key(2, 0), 2, 0) };
        r.lookup(later, chop);
        assert_eq!(r.expire(later + TIMEOUT + Dur::from_us(1)), Some(0));
        assert!(r.lookup(later, chop).is_new_msg);
    }

    /// Message `id` of one packet: `None` if it is known to be over, else whether it comes twice.
    fn deliver(r: &mut Reassembly, now: Time, id: u16) -> Option<bool> {
        let info = r.lookup(now, packet(key(1, id), 1, 0));
        (!info.is_done && !info.fail).then(|| r.complete(now, info.rx_msg_id))
    }

    /// C6: a GRANT starts the timer of its message again some cycles later, if one runs then; also
    /// one that another message has begun meanwhile.
    #[test]
    fn law_c6_a_grant_starts_the_timer_later() {
        let prototype = Config::prototype(9, Dur::from_us(7));
        let mut r =
            Reassembly::new(&Config { clocked: true, remember: Some(4), ..prototype }, false);
        let silence = Dur(44_800);
        // Of slot 0 in multiples of 32.
        let ends = |from: u64| Time((from + silence.0).next_multiple_of(32));
        r.lookup(Time(100), packet(key(1, 0), 2, 0));
        r.grant_later(Time(158), 0);
        assert!(ends(158) > ends(100));
        assert_eq!(r.expire(ends(158)), None);
        assert_eq!(r.expire(ends(158) + Dur(1)), Some(0));
        // Granted, over, and its id is another message's when the timer starts again.
        let later = Time(1_000_000);
        r.lookup(later, packet(key(2, 0), 1, 0));
        r.grant_later(later + Dur(50), 0);
        r.complete(later, 0);
        r.lookup(later + Dur(1), packet(key(3, 0), 2, 0));
        assert!(ends(later.0 + 50) > ends(later.0 + 1));
        assert_eq!(r.expire(ends(later.0 + 50)), None);
        assert_eq!(r.expire(ends(later.0 + 50) + Dur(1)), Some(0));
        // Over, and no timer runs.
        r.grant_later(Time(2_000_000), 0);
        assert_eq!(r.expire(Time(3_000_000)), None);
    }

    /// What the table has forgotten is delivered again, and that is known here.
    #[test]
    fn the_oldest_of_the_completed_is_forgotten_first() {
        let mut r = reassembly();
        let mut deliver = |id| deliver(&mut r, Time(0), id);
        assert_eq!([0, 1, 2].map(&mut deliver), [Some(false); 3]);
        assert_eq!([1, 2, 0].map(&mut deliver), [None, None, Some(true)]);
        assert_eq!(deliver(0), None);
    }

    /// Nothing is forgotten of which a packet may still come.
    #[test]
    fn every_message_is_known_for_as_long_as_its_packets_live() {
        let packet_life = Dur::from_us(100);
        let config = Config { packet_life, ..Config::prototype(9, Dur::from_us(7)) };
        let wait = config.time_wait();
        let mut r = Reassembly::new(&config, false);
        assert!((0..5_000).all(|id| deliver(&mut r, Time(0), id) == Some(false)));
        let last = Time(wait.0 - 1);
        assert_eq!(deliver(&mut r, last, 0), None);
        assert_eq!(deliver(&mut r, Time(wait.0), 1), Some(false), "of it none can come any more");
        assert_eq!(deliver(&mut r, Time(wait.0), 0), None, "it was asked about");
        // Where flows are paced there is no such time.
        let mut r = Reassembly::new(&config, true);
        assert_eq!(deliver(&mut r, Time(0), 0), Some(false));
        assert_eq!(deliver(&mut r, Time(u64::MAX / 2), 0), None);
    }

    /// A message that was ended and forgotten may begin anew: no byte goes to the application
    /// twice.
    #[test]
    fn what_an_earlier_life_has_placed_is_not_placed_again() {
        let mut r = reassembly_of(Some(0));
        assert!(!r.lookup(Time(0), packet(key(1, 0), 2, 0)).is_placed);
        let later = Time(2 * TIMEOUT.0);
        assert_eq!(r.expire(later), Some(0));
        let again = r.lookup(later, packet(key(1, 0), 2, 0));
        assert!(again.is_new_msg && again.is_new_pkt && again.is_placed);
        let last = r.lookup(later, packet(key(1, 0), 2, 1));
        assert!(last.is_last_pkt && !last.is_placed);
        assert!(!r.complete(later, last.rx_msg_id), "it is the first time");
    }

    proptest! {
        /// N2 at every step, N7's half here: whatever the order, duplicates, chops and silence,
        /// every packet is new exactly once per life of its message.
        #[test]
        fn n2_ids_buffers_and_entries_agree(
            steps in prop::collection::vec((0..24u32, 0..6u8, any::<bool>(), 0..3u64), 1..400)
        ) {
            let mut r = reassembly_of(Some(100));
            let mut model: BTreeMap<u32, BTreeSet<u8>> = BTreeMap::new();
            let mut over = BTreeSet::new();
            let mut now = Time(0);
            for (host, offset, mark_received, us) in steps {
                now += Dur::from_us(us);
                while let Some(_id) = r.expire(now) {
                    r.assert_consistent();
                }
                model.retain(|&host, received: &mut BTreeSet<u8>| {
                    let there = r.table.contains_key(&key(host, 0));
                    if !there && !received.is_empty() {
                        over.insert(host);
                    }
                    there
                });
                let request = Request { mark_received, ..packet(key(host, 0), 6, offset) };
                let info = r.lookup(now, request);
                r.assert_consistent();
                if info.fail {
                    prop_assert!(over.contains(&host) || model.len() == 16);
                } else if !info.is_done {
                    prop_assert_eq!(info.is_new_msg, !model.contains_key(&host));
                    let received = model.entry(host).or_default();
                    if mark_received {
                        prop_assert_eq!(info.is_new_pkt, received.insert(offset));
                    }
                    let missing = (0..7).find(|i| !received.contains(i));
                    prop_assert_eq!(info.ack_no, missing.map_or(0, u16::from));
                    prop_assert_eq!(info.is_last_pkt, received.len() == 6);
                    if info.is_last_pkt {
                        r.complete(now, info.rx_msg_id);
                        model.remove(&host);
                    }
                }
            }
        }
    }
}
