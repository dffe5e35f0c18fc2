//! Which packets of which messages have come (nanotransport.md, section 5), with the full key of a message,
//! and with what the prototype lacks: a timer that forgets unfinished messages, and a memory of those that
//! are over (homa_tr.md, E6).
//!
//! All of it is a function of the packets' order and times, so it may be asked at once about an instant
//! that comes only when the packet has passed the pipeline.

use std::collections::VecDeque;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, Time};

use super::buffers::{Buffer, Buffers};
use super::clock::look;
use super::config::Config;
use super::control::Data;

/// Messages of which the past is remembered, the oldest forgotten first.
const REMEMBERED: usize = 1024;

/// A message, as its packets name it: the sender, its context, its number there.
type Key = (HostId, u16, u16);

const fn key(data: &Data) -> Key {
    (data.from, data.header.src_context, data.header.tx_msg_id)
}

/// What is known of the message of a packet (`get_rx_msg_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// There is no number or no buffer for it, or it makes no sense.
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
    /// Its payload has never been placed: it can have been in a message that was then forgotten.
    pub(super) place: bool,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    received: u64,
    placed: u64,
    all: u64,
    buffer: Buffer,
    /// When it is forgotten, if nothing comes before.
    expires: Time,
}

#[derive(Clone, Copy, Debug)]
enum Past {
    Delivered,
    /// Forgotten, with these packets placed.
    Forgotten(u64),
}

/// The messages of one host in reassembly.
#[derive(Debug)]
pub(super) struct Reassembly {
    entries: Vec<Option<Entry>>,
    buffers: Buffers,
    past: HashMap<Key, (Past, u64), FxBuildHasher>,
    /// Keys of `past` with the number of the event, which tells a key that has come twice.
    order: VecDeque<(Key, u64)>,
    events: u64,
}

impl Reassembly {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            entries: Vec::new(),
            buffers: Buffers::new(&config.buffers),
            past: HashMap::default(),
            order: VecDeque::new(),
            events: 0,
        }
    }

    /// A message that is forgotten before `now`, one per call.
    pub(super) fn expire(&mut self, now: Time, config: &Config) -> Option<usize> {
        let over = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.expires < now);
        let rx = self.entries.iter().position(over)?;
        let entry = self.free(rx, config)?;
        self.remember(entry.key, Past::Forgotten(entry.placed));
        Some(rx)
    }

    /// Look up the message of `data`, which takes effect at `now`, or begin it; a packet that is not
    /// chopped is noted as received. Whatever has [expired](Self::expire) must be gone.
    pub(super) fn lookup(&mut self, now: Time, data: &Data, config: &Config) -> Lookup {
        let key = key(data);
        let offset = u16::from(data.header.pkt_offset);
        if offset >= data.packets() || u64::from(data.header.msg_len) > config.longest() {
            return Lookup::Fail;
        }
        let known = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.key == key);
        let found = self.entries.iter().position(known);
        let is_new_message = found.is_none();
        if is_new_message && matches!(self.past.get(&key), Some((Past::Delivered, _))) {
            return Lookup::Done;
        }
        let Some(rx) = found.or_else(|| self.begin(data, config)) else { return Lookup::Fail };
        let Some(entry) = &mut self.entries[rx] else { return Lookup::Fail };
        let wait = config.timeout * u64::from(config.ingress_timeouts);
        entry.expires = look(now + wait, rx, config.rx_messages);
        let bit = if data.chopped { 0 } else { 1u64 << offset & entry.all };
        let is_new_packet = entry.received & bit == 0;
        let place = bit & !entry.placed != 0;
        entry.received |= bit;
        entry.placed |= bit;
        Lookup::Known(Info {
            rx,
            is_new_message,
            is_new_packet,
            is_last_packet: entry.received == entry.all,
            ack_no: entry.received.trailing_ones() as u16,
            place,
        })
    }

    /// A new message: the lowest free number and the smallest buffer, if there are.
    fn begin(&mut self, data: &Data, config: &Config) -> Option<usize> {
        let rx = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if rx >= usize::from(config.rx_messages) {
            return None;
        }
        let buffer = self.buffers.take(&config.buffers, u64::from(data.header.msg_len))?;
        let key = key(data);
        let placed = match self.past.remove(&key) {
            Some((Past::Forgotten(placed), _)) => placed,
            _ => 0,
        };
        let all = u64::MAX >> (64 - data.packets());
        let entry = Entry { key, received: 0, placed, all, buffer, expires: Time::NEVER };
        if rx == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[rx] = Some(entry);
        Some(rx)
    }

    /// Message `rx` is whole and has been delivered.
    pub(super) fn delivered(&mut self, rx: usize, config: &Config) {
        if let Some(entry) = self.free(rx, config) {
            self.remember(entry.key, Past::Delivered);
        }
    }

    fn free(&mut self, rx: usize, config: &Config) -> Option<Entry> {
        let entry = self.entries.get_mut(rx)?.take()?;
        self.buffers.give_back(&config.buffers, entry.buffer);
        Some(entry)
    }

    fn remember(&mut self, key: Key, past: Past) {
        self.events += 1;
        self.past.insert(key, (past, self.events));
        self.order.push_back((key, self.events));
        if self.order.len() > REMEMBERED
            && let Some((oldest, event)) = self.order.pop_front()
            && self.past.get(&oldest).is_some_and(|(_, latest)| *latest == event)
        {
            self.past.remove(&oldest);
        }
    }

    /// Numbers in use, and buffers in use.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> (usize, usize) {
        (self.entries.iter().flatten().count(), self.buffers.in_use())
    }
}
