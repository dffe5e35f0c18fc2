//! Reassembly (rules 16 to 19; C2, C4, C6, C7, C9).

use std::collections::VecDeque;

use crate::bench::{Block, Case, Forbidden, Model, Mutant, Rng, Values};
use crate::law::{Buffer, Buffers, below, class_parameters, look, packets};

const MUTANTS: &[Mutant] = &[
    // The table of what is remembered: a stale forward.
    Mutant::new(
        "remembered",
        "read_q[w] <= filled[w] ? insert_key_q : keys_q",
        "read_q[w] <= keys_q",
    ),
    Mutant::new("remembered", "valid_q[w] <= filled[w] || ", "valid_q[w] <= "),
    Mutant::new("remembered", "same != '0 || same_inserted;", "same != '0;"),
    Mutant::new("remembered", "valid_q[w] && !replaced[w] && ", "valid_q[w] && ").in_case(2),
    Mutant::new("remembered", "if (insert_q) begun_q[insert_set_q] <= 1'b1;", ""),
    // A message is whole one packet early or late.
    Mutant::new("reassembly", "complete = ok && left == '0;", "complete = ok && missed == '0;"),
    // Missing clears: the bits, the id, the timer, the buffer.
    Mutant::new(
        "reassembly",
        "known ? had_missing : below(said_q);",
        "known ? had_missing : missing_q[id];",
    ),
    Mutant::new("reassembly", "live_q[i] <= !complete;", "live_q[i] <= 1'b1;"),
    Mutant::new("reassembly", "if (expires && looked_id == IdW'(i)) live_q[i] <= 1'b0;", ""),
    Mutant::new("reassembly", ".cancel_valid_i({1'b0, complete})", ".cancel_valid_i(2'b00)"),
    Mutant::new("reassembly", ".give_i({1'b0, expires, complete})", ".give_i({2'b00, complete})"),
    Mutant::new(
        "reassembly",
        "buffer   = known ? had_buffer : buffer_free;",
        "buffer   = had_buffer;",
    ),
    // A packet does not start the timer again; a GRANT starts what does not run, or nothing.
    Mutant::new("reassembly", ".start_valid_i(ok)", ".start_valid_i(begins)"),
    Mutant::new("reassembly", ".restart_valid_i(granted_valid_q)", ".restart_valid_i(1'b0)"),
    Mutant::new(
        "timers",
        "begun[restart_id_i] = running_q[restart_id_i];",
        "begun[restart_id_i] = 1'b1;",
    ),
    // Bounds.
    Mutant::new(
        "reassembly",
        "pkt_offset_i < 8'(packets(msg_len_i));",
        "pkt_offset_i <= 8'(packets(msg_len_i));",
    ),
    Mutant::new("reassembly", "msg_len_i != '0 && ", ""),
    Mutant::new("reassembly", "count    = known ? had_packets : said_q;", "count    = said_q;"),
    Mutant::new("reassembly", "arrives  = mark_q ? ", "arrives  = 1'b1 ? "),
    Mutant::new("reassembly", "packets_t'(first_of(left));", "packets_t'(first_of(missed));"),
    Mutant::new("reassembly", "ack_no = left == '0 ? count : ", "ack_no = "),
    Mutant::new("reassembly", "(!mark_q || is_new);", "is_new;"),
    Mutant::new("nano_pkg", "rest = rest >> (1 << (level - 1));", "rest = rest >> level;"),
    // Half of a key.
    Mutant::new(
        "reassembly",
        "same_q[i] <= keys_q[i] == key;",
        "same_q[i] <= keys_q[i][31:0] == key[31:0];",
    ),
    Mutant::new("reassembly", "hits   = live_q & same_q;", "hits   = same_q;"),
    // What is remembered: too much, nothing, the wrong key.
    Mutant::new("reassembly", "expires && touched_q[looked_id])", "expires)"),
    Mutant::new("reassembly", "is_new || (hits & touched_q) != '0;", "is_new;"),
    Mutant::new("reassembly", ".insert_key_i(keys_q[looked_id])", ".insert_key_i(key_q)"),
    Mutant::new(
        "reassembly",
        "!known && !was_delivered && !was_broken_off",
        "!known && !was_delivered",
    ),
    Mutant::new(
        "reassembly",
        "done     = possible_q && !known && was_delivered;",
        "done     = possible_q && !known && was_broken_off;",
    ),
    // Sets and ways one off, the oldest not first.
    Mutant::new("remembered", "hash ^ (hash >> 8)", "hash ^ (hash >> 7)"),
    Mutant::new("remembered", "{key[26:16], key[31:27]}", "{key[27:16], key[31:28]}"),
    Mutant::new("remembered", "{key[4:0], key[15:5]}", "{key[5:0], key[15:6]}"),
    Mutant::new("remembered", "'0 : old.next + way_t'(1);", "'0 : old.next;"),
    Mutant::new("remembered", "way_t'(w) < find_fill.next", "way_t'(w) <= find_fill.next"),
    Mutant::new("remembered", "= old.full || old.next == way_t'(Ways - 1);", "= old.full;"),
    // Buffers: not the smallest class, none of its size, given twice.
    Mutant::new("buffers", "return bytes(c) < bytes(d) || ", "return "),
    Mutant::new("buffers", "bytes(c) == bytes(d) && c < d", "bytes(c) == bytes(d) && c > d"),
    Mutant::new("buffers", "bytes(c) >= 32'(take_len_i)", "bytes(c) > 32'(take_len_i)"),
    Mutant::new(
        "buffers",
        "(free_q & ~(taken & {Total{take_i}})) | given;",
        "(free_q | given) & ~(taken & {Total{take_i}});",
    ),
    Mutant::new("buffers", "(bytes(class_of(i)) + 63) / 64", "bytes(class_of(i)) / 64"),
];

type Key = (u32, u16, u16);

struct Entry {
    key: Key,
    received: u64,
    packets: u32,
    buffer: Buffer,
    deadline: u64,
}

/// Messages that are over (C9).
struct Table {
    sets: Vec<(Vec<Option<Key>>, usize)>,
}

impl Table {
    fn new(places: usize) -> Self {
        let ways = places.min(4);
        let sets = places.checked_div(ways).unwrap_or(0);
        Self { sets: (0..sets).map(|_| (vec![None; ways], 0)).collect() }
    }

    fn set(&self, (ip, context, id): Key) -> Option<usize> {
        let h = (ip >> 16) as u16 ^ ip as u16 ^ context.rotate_left(5) ^ id.rotate_left(11);
        let h = usize::from(h ^ (h >> 8));
        (!self.sets.is_empty()).then(|| h & (self.sets.len() - 1))
    }

    fn has(&self, key: Key) -> bool {
        self.set(key).is_some_and(|set| self.sets[set].0.contains(&Some(key)))
    }

    /// The key that is forgotten for it.
    fn insert(&mut self, key: Key) -> Option<Key> {
        let set = self.set(key).filter(|_| !self.has(key))?;
        let (ways, next) = &mut self.sets[set];
        let forgotten = ways[*next].replace(key);
        *next = (*next + 1) % ways.len();
        forgotten
    }
}

#[derive(Clone, Copy, Default)]
struct Answer {
    fail: bool,
    rx_msg_id: usize,
    is_new_msg: bool,
    is_new_pkt: bool,
    is_last_pkt: bool,
    ack_no: u32,
    is_done: bool,
    buf_ptr: u16,
}

/// A packet's lookup.
#[derive(Clone, Copy)]
struct Request {
    mark: bool,
    key: Key,
    len: u16,
    offset: u8,
}

#[derive(Clone, Copy)]
struct Sizes {
    ids: usize,
    timeout: u64,
    remember: usize,
    classes: &'static [(u32, usize)],
    /// Keys that are drawn.
    keys: u64,
}

struct Reassembly {
    rng: Rng,
    sizes: Sizes,
    now: u64,
    entries: Vec<Option<Entry>>,
    buffers: Buffers,
    delivered: Table,
    broken_off: Table,
    /// Cycles since the last request, and cycles of silence to come.
    since: u64,
    silence: u64,
    answers: VecDeque<Answer>,
    freed: [Option<usize>; 2],
    /// Messages that were over, the last of them in the cycle before or earlier.
    over: VecDeque<Key>,
    /// Whether a message has expired in the cycle before.
    just_expired: bool,
    /// The last message whose breaking off is no longer remembered.
    forgotten: Key,
}

impl Reassembly {
    fn new(seed: u64, sizes: Sizes) -> Self {
        Self {
            rng: Rng::new(seed),
            now: (1 << 32) - 5_000,
            entries: (0..sizes.ids).map(|_| None).collect(),
            buffers: Buffers::new(sizes.classes),
            delivered: Table::new(sizes.remember),
            broken_off: Table::new(sizes.remember),
            since: 2,
            silence: 0,
            answers: VecDeque::from([Answer::default(); 2]),
            freed: [None; 2],
            over: VecDeque::from([(0, 0, 0)]),
            just_expired: false,
            forgotten: (0, 0, 0),
            sizes,
        }
    }

    fn key(&mut self) -> Key {
        // Keys agree in some fields and differ in any bit of the others; the first is all zeros.
        let n = self.rng.below(self.sizes.keys);
        let field = |n: u64| if n == 0 { 0 } else { Rng::new(n).next() };
        (field(n & 3) as u32, field(n >> 2 & 3) as u16, field(n >> 4) as u16)
    }

    fn request(&mut self) -> Request {
        let live: Vec<usize> =
            (0..self.entries.len()).filter(|id| self.entries[*id].is_some()).collect();
        let mark = !self.rng.one_in(4);
        let len = match self.rng.below(10) {
            0..4 => self.rng.below(1024) as u16 + 1,
            4..8 => self.rng.below(4096) as u16 + 1,
            8 => self.rng.next() as u16,
            _ => [0, 1024, 2048, 3000, 3001][self.rng.below(5) as usize],
        };
        let just = self.just_expired;
        let known = (!live.is_empty() && !just && !self.rng.one_in(3))
            .then(|| live[self.rng.below(live.len() as u64) as usize]);
        let Some(entry) = known.and_then(|id| self.entries[id].as_ref()) else {
            // Also one that has just been over and is remembered since, and the one that has been
            // forgotten for it.
            let key = match self.rng.below(if just { 3 } else { 9 }) {
                0 => self.over[self.over.len() - 1],
                1 => self.forgotten,
                2 => self.over[self.rng.below(self.over.len() as u64) as usize],
                _ => self.key(),
            };
            let offset = self.rng.below(u64::from(packets(len)) + 1) as u8;
            let offset = if self.rng.one_in(50) { self.rng.next() as u8 } else { offset };
            return Request { mark, key, len, offset };
        };
        // Most often what is missing, and as it should be.
        let missing = entry.received.trailing_ones() as u8;
        let (key, count) = (entry.key, entry.packets as u16);
        let len = if self.rng.one_in(8) { len } else { (count - 1) * 1024 + 100 };
        let offset = match self.rng.below(4) {
            0 => self.rng.below(u64::from(count) + 1) as u8,
            1 => missing.saturating_add(1),
            _ => missing,
        };
        Request { mark, key, len, offset }
    }

    fn lookup(&mut self, request: Request) -> Answer {
        let Request { mark, key, len, offset } = request;
        let failed = Answer { fail: true, ..Answer::default() };
        if len == 0 || u32::from(offset) >= packets(len) {
            return failed;
        }
        let known = self.entries.iter().position(|e| e.as_ref().is_some_and(|e| e.key == key));
        if known.is_none() && self.delivered.has(key) {
            let ack_no = packets(len);
            return Answer { is_done: true, is_last_pkt: true, ack_no, ..Answer::default() };
        }
        if known.is_none() && self.broken_off.has(key) {
            return failed;
        }
        let Some(id) = known.or_else(|| self.begin(key, len)) else { return failed };
        let deadline = self.now + self.sizes.timeout;
        let Some(entry) = &mut self.entries[id] else { return failed };
        entry.deadline = deadline;
        let mask = if mark { below(u32::from(offset) + 1) & !below(offset.into()) } else { 0 };
        let mask = mask & below(entry.packets);
        let is_new_msg = known.is_none();
        let is_new_pkt = !mark || entry.received & mask != mask || is_new_msg;
        entry.received |= mask;
        let answer = Answer {
            fail: false,
            rx_msg_id: id,
            is_new_msg,
            is_new_pkt,
            is_last_pkt: entry.received == below(entry.packets),
            ack_no: entry.received.trailing_ones(),
            is_done: false,
            buf_ptr: self.buffers.ptr(entry.buffer),
        };
        if answer.is_last_pkt {
            self.delivered.insert(key);
            self.free(id);
            self.freed[0] = Some(id);
        }
        answer
    }

    fn begin(&mut self, key: Key, len: u16) -> Option<usize> {
        let id = self.entries.iter().position(Option::is_none)?;
        let buffer = self.buffers.find(len)?;
        self.buffers.set_free(buffer, false);
        let packets = packets(len);
        self.entries[id] = Some(Entry { key, received: 0, packets, buffer, deadline: 0 });
        Some(id)
    }

    fn free(&mut self, id: usize) -> Option<Entry> {
        let entry = self.entries[id].take()?;
        self.buffers.set_free(entry.buffer, true);
        self.over.push_back(entry.key);
        if self.over.len() > 40 {
            self.over.pop_front();
        }
        Some(entry)
    }

    fn look(&mut self) {
        let Some(id) = look(self.now, self.sizes.ids) else { return };
        if self.entries[id].as_ref().is_none_or(|entry| entry.deadline > self.now) {
            return;
        }
        if let Some(entry) = self.free(id).filter(|entry| entry.received != 0)
            && let Some(forgotten) = self.broken_off.insert(entry.key)
        {
            self.forgotten = forgotten;
        }
        self.freed[1] = Some(id);
    }

    /// Whether a packet comes in this cycle: mostly as close as may be, with silences.
    fn asks(&mut self) -> bool {
        self.since += 1;
        if self.rng.one_in(400) {
            self.silence = self.rng.below(3 * self.sizes.timeout);
        }
        // One that has just expired may still come.
        if self.silence > 0 && !(self.just_expired && self.rng.one_in(2)) {
            self.silence -= 1;
            return false;
        }
        let asks = self.since >= 2 && !self.rng.one_in(4);
        if asks {
            self.since = 0;
        }
        asks
    }
}

fn say(outputs: &mut Values<'_>, answer: Answer) {
    outputs.set("fail_o", answer.fail);
    outputs.set("rx_msg_id_o", answer.rx_msg_id as u64);
    outputs.set("is_new_msg_o", answer.is_new_msg);
    outputs.set("is_new_pkt_o", answer.is_new_pkt);
    outputs.set("is_last_pkt_o", answer.is_last_pkt);
    outputs.set("ack_no_o", answer.ack_no);
    outputs.set("is_done_o", answer.is_done);
    outputs.set("buf_ptr_o", answer.buf_ptr);
}

impl Model for Reassembly {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let ports = [("completed_valid_o", "completed_id_o"), ("expired_valid_o", "expired_id_o")];
        let expired = self.freed[1].is_some();
        for ((valid, id), freed) in ports.into_iter().zip(std::mem::take(&mut self.freed)) {
            outputs.set(valid, freed.is_some());
            outputs.set(id, freed.unwrap_or(0) as u64);
        }
        inputs.set("now_i", self.now & 0xffff_ffff);
        self.just_expired = expired;
        let (granted, id) = (self.rng.one_in(8), self.rng.below(self.sizes.ids as u64));
        inputs.set("granted_valid_i", granted);
        inputs.set("granted_id_i", id);
        if let Some(entry) = self.entries[id as usize].as_mut().filter(|_| granted) {
            entry.deadline = self.now + self.sizes.timeout;
        }
        let (asks, request) = (self.asks(), self.request());
        inputs.set("valid_i", asks);
        inputs.set("mark_received_i", request.mark);
        inputs.set("src_ip_i", request.key.0);
        inputs.set("src_context_i", request.key.1);
        inputs.set("tx_msg_id_i", request.key.2);
        inputs.set("msg_len_i", request.len);
        inputs.set("pkt_offset_i", request.offset);
        let answer = if asks { self.lookup(request) } else { Answer::default() };
        self.look();
        self.answers.push_back(answer);
        say(outputs, self.answers.pop_front().unwrap_or_default());
        self.now += 1;
    }
}

fn case(sizes: Sizes) -> Case {
    let id = sizes.ids.ilog2();
    let mut parameters = vec![
        ("Ids", sizes.ids.to_string()),
        ("TimeoutCycles", sizes.timeout.to_string()),
        ("Remember", sizes.remember.to_string()),
    ];
    parameters.extend(class_parameters(sizes.classes));
    Case {
        parameters,
        inputs: vec![
            ("now_i", 32),
            ("valid_i", 1),
            ("mark_received_i", 1),
            ("src_ip_i", 32),
            ("src_context_i", 16),
            ("tx_msg_id_i", 16),
            ("msg_len_i", 16),
            ("pkt_offset_i", 8),
            ("granted_valid_i", 1),
            ("granted_id_i", id),
        ],
        outputs: vec![
            ("fail_o", 1),
            ("rx_msg_id_o", 16),
            ("is_new_msg_o", 1),
            ("is_new_pkt_o", 1),
            ("is_last_pkt_o", 1),
            ("ack_no_o", 9),
            ("is_done_o", 1),
            ("buf_ptr_o", 16),
            ("completed_valid_o", 1),
            ("completed_id_o", id),
            ("expired_valid_o", 1),
            ("expired_id_o", id),
        ],
        model: Box::new(move |seed| Box::new(Reassembly::new(seed, sizes))),
    }
}

/// Classes that are full now and then, one with a size that is not whole words.
const CLASSES: &[(u32, usize)] = &[(65_472, 3), (1024, 5), (3001, 4), (1024, 2)];

#[test]
fn reassembly() {
    let small = Sizes { ids: 16, timeout: 150, remember: 16, classes: CLASSES, keys: 200 };
    let large = Sizes {
        ids: 128,
        timeout: 1500,
        remember: 1024,
        classes: &[(38_912, 100), (3000, 60)],
        keys: 6000,
    };
    let odd = Sizes { remember: 2, ids: 4, timeout: 40, ..small };
    let none = Sizes { remember: 0, ..small };
    let cases = [small, large, odd, none].map(case);
    Block {
        name: "reassembly",
        parts: &["nano_pkg", "timers", "buffers", "remembered"],
        cases: cases.into(),
        mutants: MUTANTS,
        forbidden: &[Forbidden {
            assertion: "two_cycles_apart",
            inputs: &[("valid_i", 1)],
            cycles: 2,
        }],
    }
    .check();
}
