//! The message RAM, and what writes and reads messages in it.

use std::collections::{BTreeMap, VecDeque};

use crate::bench::{
    BEAT, Bench, Block, Channel, Failure, Moved, Mutant, Words, beats_in, beats_out, compare, words,
};

/// Words of 64 bytes in these memories.
const WORDS: usize = 4096;

/// Words of a packet.
const PACKET: usize = 16;

/// A write: address, enables of bytes, data.
fn write(addr: usize, enabled: usize, data: &[u8]) -> Vec<Words> {
    let enables = if enabled == 64 { u64::MAX } else { (1 << enabled) - 1 };
    let mut word = data.to_vec();
    word.resize(64, 0);
    vec![vec![addr as u32], vec![enables as u32, (enables >> 32) as u32], words(&word)]
}

/// The writes of a burst of `len` bytes from word `addr` on: what a stream lacks is zero, what it
/// has beyond is dropped.
fn writes(addr: usize, len: usize, stream: &[u8]) -> Vec<Vec<Words>> {
    let word = |at: usize| {
        let data = stream.chunks(64).nth(at).unwrap_or_default();
        write(addr + at, (len - 64 * at).min(64), data)
    };
    (0..len.div_ceil(64)).map(word).collect()
}

const WRITE: Channel = Channel {
    name: "write",
    ready: false,
    fields: &[("write_addr", 16), ("write_enables", 64), ("write_data", 512)],
};

/// What a writer has promised and not written, from what has moved in each cycle.
#[derive(Default)]
struct Pending(usize);

impl Pending {
    /// After a cycle in which a burst of `begun` words was taken or not.
    fn follow(
        &mut self,
        bench: &mut Bench,
        begun: Option<usize>,
        wrote: bool,
    ) -> Result<(), Failure> {
        bench.check("pending_o", &[self.0 as u32])?;
        self.0 -= usize::from(wrote);
        if let Some(words) = begun {
            // A burst begins when the one before is written.
            compare("words that were pending", &[self.0 as u32], &[0])?;
            self.0 = words;
        }
        Ok(())
    }
}

/// A length for a stream that should have `len` bytes: mostly that.
fn other_length(bench: &mut Bench, len: usize) -> usize {
    match bench.rng.below(12) {
        _ if bench.full_rate => len,
        0 => 0,
        1 => bench.rng.between(1, len),
        2 => len + bench.rng.between(1, 200),
        _ => len,
    }
}

fn drive_rx_writer(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    let mut begun = VecDeque::new();
    for _ in 0..250 {
        let rng = &mut bench.rng;
        let msg_len = if rng.one_in(2) { rng.between(1, 1100) } else { rng.between(1, 40_000) };
        let offset = rng.between(0, (msg_len - 1) / 1024);
        let buf_ptr = rng.between(0, WORDS);
        let (keep, whole) = (!rng.one_in(5), rng.one_in(3));
        let place = (msg_len - 1024 * offset).min(1024);
        let (src_ip, src_context) = (rng.next() as u32, rng.next() as u32 & 0xffff);
        let len = other_length(bench, place);
        let stream = bench.rng.bytes(len);
        let beats = beats_in(&mut bench.rng, &stream);
        beats.into_iter().for_each(|beat| bench.offer("payload", vec![beat]));
        let packet = [u32::from(keep), u32::from(whole), buf_ptr as u32, offset as u32];
        let message = [buf_ptr as u32, msg_len as u32, src_ip, src_context];
        let fields = packet.into_iter().chain(message[1..].iter().copied());
        bench.offer("packet", fields.map(|value| vec![value]).collect());
        begun.push_back(if keep { place.div_ceil(64) } else { 0 });
        if whole && !keep {
            bench.expect("dropped", vec![vec![buf_ptr as u32]]);
        }
        if keep {
            for write in writes(buf_ptr + PACKET * offset, place, &stream) {
                bench.expect("write", write);
            }
            if whole {
                bench.expect("whole", message.map(|value| vec![value]).into());
            }
            if len != place {
                bench.expect("wrong_length", vec![]);
            }
        }
    }
    follow(bench, &mut begun, "packet")?;
    bench.never("beats refused", bench.refused("payload").saturating_sub(1))
}

/// All that is to come, with what is pending in each cycle.
fn follow(bench: &mut Bench, begun: &mut VecDeque<usize>, source: &str) -> Result<(), Failure> {
    let mut pending = Pending::default();
    while bench.busy() {
        let moved = bench.cycle()?;
        let begins = moved.on(source).and_then(|_| begun.pop_front());
        pending.follow(bench, begins, moved.on("write").is_some())?;
    }
    bench.finish()
}

fn drive_tx_writer(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    let mut begun = VecDeque::new();
    for _ in 0..60 {
        let rng = &mut bench.rng;
        let msg_len = match rng.below(4) {
            0 => rng.between(0, 2),
            1 => rng.between(3000, 9000),
            _ => rng.between(1, 1100),
        };
        let buf_ptr = rng.between(0, WORDS);
        let (dst_ip, dst_context) = (rng.next() as u32, rng.next() as u32 & 0xffff);
        let len = if msg_len == 0 { 0 } else { other_length(bench, msg_len) };
        let stream = bench.rng.bytes(len);
        let beats = beats_in(&mut bench.rng, &stream);
        beats.into_iter().for_each(|beat| bench.offer("words", vec![beat]));
        let message = |msg_len| [dst_ip, dst_context, msg_len as u32].map(|value| vec![value]);
        let place = msg_len.max(1);
        bench.offer("app", message(msg_len).into());
        bench.expect("submit", message(place).into());
        let writes = writes(buf_ptr, place, &stream);
        begun.push_back((writes.len(), buf_ptr));
        writes.into_iter().for_each(|write| bench.expect("write", write));
        if len != msg_len {
            bench.expect("wrong_length", vec![]);
        }
    }
    let mut pending = Pending::default();
    while bench.busy() {
        // The buffer that packetization would give: it matters in the cycle of the submission only.
        let buf_ptr = begun.front().map_or(0, |(_, buf_ptr)| *buf_ptr);
        bench.set("submit_buf_ptr_i", &[buf_ptr as u32]);
        let moved = bench.cycle()?;
        // Both ends of a submission, or neither.
        let [from, to] = ["app", "submit"].map(|channel| moved.on(channel).is_some());
        compare("submit_valid_o", &[to.into()], &[from.into()])?;
        let begins = to.then(|| begun.pop_front()).flatten().map(|(words, _)| words);
        pending.follow(bench, begins, moved.on("write").is_some())?;
    }
    bench.finish()?;
    bench.never("beats refused", bench.refused("words").saturating_sub(1))
}

const WRONG: Channel = Channel { name: "wrong_length", ready: false, fields: &[] };

const WRITER: &str = "burst_writer/burst_writer";
const READER: &str = "burst_reader/burst_reader";

pub(crate) const RX_WRITER: Block = Block {
    name: "rx_writer",
    files: &["stream_pkg/stream_pkg", WRITER, "rx_writer/rx_writer"],
    cases: &[&[]],
    sources: &[
        Channel {
            name: "packet",
            ready: true,
            fields: &[
                ("packet_keep", 1),
                ("packet_whole", 1),
                ("packet_buf_ptr", 16),
                ("packet_offset", 8),
                ("packet_msg_len", 16),
                ("packet_src_ip", 32),
                ("packet_src_context", 16),
            ],
        },
        Channel { name: "payload", ready: true, fields: &[("payload_beat", BEAT)] },
    ],
    sinks: &[
        WRITE,
        WRONG,
        Channel { name: "dropped", ready: false, fields: &[("dropped_buf_ptr", 16)] },
        Channel {
            name: "whole",
            ready: true,
            fields: &[
                ("whole_buf_ptr", 16),
                ("whole_msg_len", 16),
                ("whole_src_ip", 32),
                ("whole_src_context", 16),
            ],
        },
    ],
    inputs: &[],
    outputs: &[("pending", 11)],
    run: drive_rx_writer,
    mutants: &[
        // A packet has 15 words.
        Mutant::new(
            "rx_writer/rx_writer",
            "{4'd0, packet_offset_i, 4'd0}",
            "{4'd0, packet_offset_i, 4'd0} - 16'(packet_offset_i)",
        ),
        // A duplicate is written.
        Mutant::new("rx_writer/rx_writer", "packet_keep_i ? bytes : '0", "bytes"),
        // A packet writes beyond the message.
        Mutant::new("stream_pkg/stream_pkg", "left > 16'd1024 ? 17'd1024 : 17'(left)", "17'd1024"),
        // A packet that nobody wants makes a message whole.
        Mutant::new("rx_writer/rx_writer", "packet_keep_i && packet_whole_i", "packet_whole_i"),
        // A message is written that its reader has no room for, and one is announced twice.
        Mutant::new(
            "rx_writer/rx_writer",
            "begin_ready && (!whole || whole_ready_i)",
            "begin_ready",
        ),
        Mutant::new(
            "rx_writer/rx_writer",
            "packet_valid_i && whole && begin_ready",
            "packet_valid_i && whole",
        ),
        // A message that nobody wants keeps its buffer.
        Mutant::new("rx_writer/rx_writer", "packet_whole_i && !packet_keep_i;", "1'b0;"),
        // What is too much is written behind the place.
        Mutant::new(WRITER, "else if (take && state_q == Write && final_word) state_d = Drop;", ""),
        // What is missing stays as it was.
        Mutant::new(
            WRITER,
            "else if (take && state_q == Write && in_beat_i.last) state_d = Fill;",
            "else if (take && state_q == Write && in_beat_i.last) state_d = Idle;",
        ),
        // A bubble between bursts.
        Mutant::new(WRITER, "state_q == Idle || ends;", "state_q == Idle;"),
        // Words of the last burst remain promised, or one is promised too few.
        Mutant::new(WRITER, "words_q - 11'(write_valid_o)", "words_q - 11'(take)"),
        Mutant::new(
            WRITER,
            "assign pending_o       = words_q;",
            "assign pending_o = words_q - 11'(write_valid_o);",
        ),
        // All bytes of the last word are written.
        Mutant::new(WRITER, "final_word ? last_bytes_q : 7'(BeatBytes)", "7'(BeatBytes)"),
        // A length that differs is not seen.
        Mutant::new(WRITER, "|| in_beat_i.bytes != last_bytes_q", ""),
        Mutant::new(WRITER, "take && !dropped_q &&", "take &&"),
        Mutant::new("stream_pkg/stream_pkg", "11'(bytes[5:0] != '0)", "11'd1"),
    ],
};

pub(crate) const TX_WRITER: Block = Block {
    name: "tx_writer",
    files: &["stream_pkg/stream_pkg", WRITER, "tx_writer/tx_writer"],
    cases: &[&[]],
    sources: &[
        Channel {
            name: "app",
            ready: true,
            fields: &[("app_dst_ip", 32), ("app_dst_context", 16), ("app_msg_len", 16)],
        },
        Channel { name: "words", ready: true, fields: &[("words_beat", BEAT)] },
    ],
    sinks: &[
        WRITE,
        WRONG,
        Channel {
            name: "submit",
            ready: true,
            fields: &[("submit_dst_ip", 32), ("submit_dst_context", 16), ("submit_msg_len", 16)],
        },
    ],
    inputs: &[("submit_buf_ptr", 16)],
    outputs: &[("pending", 11)],
    run: drive_tx_writer,
    mutants: &[
        // A message of no bytes has no place.
        Mutant::new("tx_writer/tx_writer", "app_msg_len_i == '0 ? 16'd1 :", ""),
        // It is submitted while the one before is written.
        Mutant::new("tx_writer/tx_writer", "app_valid_i && begin_ready;", "app_valid_i;"),
        Mutant::new("tx_writer/tx_writer", "submit_ready_i && begin_ready;", "begin_ready;"),
        // It is written before packetization has it.
        Mutant::new("tx_writer/tx_writer", "app_valid_i && submit_ready_i)", "app_valid_i)"),
        // No bytes count as a length that differs.
        Mutant::new("tx_writer/tx_writer", " && !(empty_q && words_beat_i.bytes == '0)", ""),
        Mutant::new("tx_writer/tx_writer", "empty_q && words_beat_i", "words_beat_i"),
    ],
};

/// The memory that a reader reads: what is promised is not there until its cycle has come.
struct Memory {
    words: BTreeMap<usize, [u8; 64]>,
    promised: std::ops::Range<usize>,
    /// What is put at the words that are written, from the first promised on.
    written: VecDeque<[u8; 64]>,
    /// Whether the reader says when it has done with a message.
    done: bool,
    /// Then, the word that it needs next.
    needed: Option<usize>,
    /// The first words of messages that it has not begun, and the cycles of their announcements.
    announced: VecDeque<(u64, usize)>,
}

impl Memory {
    fn new(done: bool) -> Self {
        Self {
            words: BTreeMap::new(),
            promised: 0..0,
            written: VecDeque::new(),
            done,
            needed: None,
            announced: VecDeque::new(),
        }
    }

    /// Put `bytes` at `addr`, and anything behind them.
    fn put(&mut self, bench: &mut Bench, addr: usize, bytes: &[u8]) {
        for (at, chunk) in bytes.chunks(64).enumerate() {
            let mut word: [u8; 64] = std::array::from_fn(|_| bench.rng.next() as u8);
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.insert(addr + at, word);
        }
    }

    /// Promise words that are there, and take them away until they are written.
    fn promise(&mut self, bench: &mut Bench, words: std::ops::Range<usize>) {
        assert!(self.promised.is_empty(), "one writer");
        let mut take = |at| self.words.insert(at, std::array::from_fn(|_| bench.rng.next() as u8));
        self.written = words.clone().map(|at| take(at).unwrap_or([0; 64])).collect();
        self.promised = words;
    }

    /// Until the writer has done what it has promised, and mostly until the reader has caught up:
    /// else it would never meet what is promised next.
    fn settle(&mut self, bench: &mut Bench) -> Result<(), Failure> {
        let waits = !bench.full_rate && !bench.rng.one_in(4);
        while !self.promised.is_empty() || (waits && bench.busy()) {
            self.cycle(bench)?;
        }
        Ok(())
    }

    /// A cycle: the reader's answer, and perhaps a word is written.
    fn cycle(&mut self, bench: &mut Bench) -> Result<Moved, Failure> {
        bench.set("pending_i", &[self.promised.len() as u32]);
        bench.set("pending_addr_i", &[self.promised.start as u32]);
        // A message goes through its queue, and is begun.
        if self.needed.is_none() && self.announced.front().is_some_and(|at| at.0 + 2 <= bench.now())
        {
            self.needed = self.announced.pop_front().map(|(_, addr)| addr);
        }
        let cycle = bench.now();
        let moved = bench.cycle()?;
        if let Some(whole) = moved.on("whole") {
            self.announced.push_back((cycle, whole[0][0] as usize));
        }
        let needed = self.needed.filter(|at| !self.promised.contains(at));
        if needed.is_some() && bench.given("app_ready_i") == [1] {
            // It waits for nothing but what is promised.
            bench.check("read_valid_o", &[1])?;
        }
        if bench.get("read_valid_o") == [1] {
            let addr = bench.get("read_addr_o")[0] as usize;
            let word = self.words.get(&addr).copied().unwrap_or([0xee; 64]);
            bench.set("read_data_i", &words(&word));
            self.needed = (self.done && moved.on("done").is_none()).then_some(addr + 1);
        }
        if !self.promised.is_empty() && bench.rng.one_in(3) {
            self.words.extend(self.written.pop_front().map(|word| (self.promised.start, word)));
            self.promised.start += 1;
        }
        Ok(moved)
    }

    /// All that is to come, and some cycles in which nothing may.
    fn finish(&mut self, bench: &mut Bench) -> Result<(), Failure> {
        while bench.busy() {
            self.cycle(bench)?;
        }
        for _ in 0..40 {
            self.cycle(bench)?;
        }
        Ok(())
    }
}

fn drive_rx_reader(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    let mut memory = Memory::new(true);
    let mut next = 0;
    for _ in 0..60 {
        memory.settle(bench)?;
        let rng = &mut bench.rng;
        let len = if rng.one_in(4) { rng.between(1, 8000) } else { rng.between(1, 200) };
        let (src_ip, src_context) = (rng.next() as u32, rng.next() as u32 & 0xffff);
        let bytes = rng.bytes(len);
        let addr = next % WORDS;
        let end = addr + len.div_ceil(64);
        next += end - addr;
        memory.put(bench, addr, &bytes);
        if !bench.full_rate {
            // One packet of the message is still to be written as it is announced.
            let first = addr + PACKET * bench.rng.between(0, (len - 1) / 1024);
            memory.promise(bench, first..end.min(first + PACKET));
        }
        let message = [addr as u32, len as u32, src_ip, src_context];
        bench.offer("whole", message.map(|value| vec![value]).into());
        for beat in beats_out(&bytes) {
            let fields = [message[2], message[3], message[1]].map(|value| vec![value]);
            bench.expect("app", std::iter::once(beat).chain(fields).collect());
        }
        bench.expect("done", vec![vec![addr as u32]]);
    }
    memory.finish(bench)?;
    bench.never("cycles without a beat", bench.gaps("app"))
}

fn drive_tx_reader(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    let mut memory = Memory::new(false);
    for _ in 0..120 {
        memory.settle(bench)?;
        let rng = &mut bench.rng;
        let msg_len = if rng.one_in(2) { rng.between(1, 65_000) } else { rng.between(1, 1200) };
        let (offset, buf_ptr) = (rng.between(0, (msg_len - 1) / 1024), rng.between(0, 15 * WORDS));
        let bytes = rng.bytes((msg_len - 1024 * offset).min(1024));
        let addr = buf_ptr + PACKET * offset;
        let end = addr + bytes.len().div_ceil(64);
        if (addr..end).any(|at| memory.words.contains_key(&at)) || end > 1 << 16 {
            continue;
        }
        memory.put(bench, addr, &bytes);
        if !bench.full_rate && bench.rng.one_in(2) {
            let first = bench.rng.between(addr, end - 1);
            memory.promise(bench, first..end);
        }
        let packet = [buf_ptr, offset, msg_len].map(|value| vec![value as u32]);
        bench.offer("packet", packet.into());
        beats_out(&bytes).into_iter().for_each(|beat| bench.expect("payload", vec![beat]));
    }
    memory.finish(bench)?;
    bench.never("cycles without a beat", bench.gaps("payload"))
}

pub(crate) const RX_READER: Block = Block {
    name: "rx_reader",
    files: &["stream_pkg/stream_pkg", "stream_fifo/stream_fifo", READER, "rx_reader/rx_reader"],
    cases: &[&[("Messages", 4)]],
    sources: &[Channel {
        name: "whole",
        ready: true,
        fields: &[
            ("whole_buf_ptr", 16),
            ("whole_msg_len", 16),
            ("whole_src_ip", 32),
            ("whole_src_context", 16),
        ],
    }],
    sinks: &[
        Channel {
            name: "app",
            ready: true,
            fields: &[
                ("app_beat", BEAT),
                ("app_src_ip", 32),
                ("app_src_context", 16),
                ("app_msg_len", 16),
            ],
        },
        Channel { name: "done", ready: false, fields: &[("done_buf_ptr", 16)] },
    ],
    inputs: &[("pending", 11), ("pending_addr", 16), ("read_data", 512)],
    outputs: &[("read_valid", 1), ("read_addr", 16)],
    run: drive_rx_reader,
    mutants: &[
        // It overtakes the writer: by all, by its last word.
        Mutant::new(READER, "busy_q && !blocked &&", "busy_q &&"),
        Mutant::new(READER, "ahead < 16'(pending_i);", "ahead + 16'd1 < 16'(pending_i);"),
        // It waits for what has been written.
        Mutant::new(READER, "ahead < 16'(pending_i);", "pending_i != '0;"),
        // A beat that waits is read over.
        Mutant::new(READER, "(!out_valid_q || out_ready_i);", "1'b1;"),
        // A bubble behind each beat, and behind each message.
        Mutant::new(READER, "(!out_valid_q || out_ready_i);", "!out_valid_q;"),
        Mutant::new(READER, "!busy_q || done_valid_o;", "!busy_q;"),
        // The header of the next message comes with the last beat.
        Mutant::new(READER, "assign out_user_o       = out_user_q;", "assign out_user_o = user_q;"),
        // What is behind the message in memory comes out.
        Mutant::new(READER, "clean(read_data_i, out_bytes_q)", "read_data_i"),
        Mutant::new(READER, "final_word ? last_bytes_q : 7'(BeatBytes)", "7'(BeatBytes)"),
        // The same word again.
        Mutant::new(READER, "addr_q  <= addr_q + 16'd1;", "addr_q  <= addr_q;"),
        // A message one word too long.
        Mutant::new(READER, "words_q == 11'd1", "words_q == 11'd0"),
        // A beat is lost when the next cannot be read.
        Mutant::new(READER, "read || (out_valid_q && !out_ready_i)", "read"),
        Mutant::new("stream_pkg/stream_pkg", "{bytes == '0, bytes}", "{1'b0, bytes}"),
    ],
};

pub(crate) const TX_READER: Block = Block {
    name: "tx_reader",
    files: &["stream_pkg/stream_pkg", "stream_fifo/stream_fifo", READER, "tx_reader/tx_reader"],
    cases: &[&[("Packets", 4)]],
    sources: &[Channel {
        name: "packet",
        ready: true,
        fields: &[("packet_buf_ptr", 16), ("packet_offset", 8), ("packet_msg_len", 16)],
    }],
    sinks: &[Channel { name: "payload", ready: true, fields: &[("payload_beat", BEAT)] }],
    inputs: &[("pending", 11), ("pending_addr", 16), ("read_data", 512)],
    outputs: &[("read_valid", 1), ("read_addr", 16)],
    run: drive_tx_reader,
    mutants: &[
        Mutant::new(
            "tx_reader/tx_reader",
            "packet_buf_ptr_i + {4'd0, packet_offset_i, 4'd0}",
            "packet_buf_ptr_i + {5'd0, packet_offset_i, 3'd0}",
        ),
        Mutant::new("stream_pkg/stream_pkg", "left > 16'd1024 ?", "left >= 16'd1000 ?"),
        Mutant::new("tx_reader/tx_reader", ".pending_i, ", ".pending_i('0), "),
    ],
};

/// Random writes and reads, each cycle compared with a memory of bytes.
fn drive_message_ram(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    let mut memory = vec![[0; 64]; RAM];
    let mut read: Option<[u8; 64]> = None;
    // All words once: what is in a memory at first is anything.
    for at in 0..4 * RAM {
        let rng = &mut bench.rng;
        let first = at < RAM;
        let writes = first || rng.one_in(2);
        let to = if first { at } else { rng.between(0, RAM - 1) };
        let enables = if first { u64::MAX } else { rng.next() };
        let data: [u8; 64] = std::array::from_fn(|_| rng.next() as u8);
        let from = rng.between(0, RAM - 1);
        let reads = !first && rng.one_in(2) && !(writes && to == from);
        bench.set("write_valid_i", &[u32::from(writes)]);
        bench.set("write_addr_i", &[to as u32]);
        bench.set("write_enables_i", &[enables as u32, (enables >> 32) as u32]);
        bench.set("write_data_i", &words(&data));
        bench.set("read_valid_i", &[u32::from(reads)]);
        bench.set("read_addr_i", &[from as u32]);
        bench.cycle()?;
        if let Some(read) = read {
            bench.check("read_data_o", &words(&read))?;
        }
        if reads {
            read = Some(memory[from]);
        }
        for byte in (0..64).filter(|byte| writes && enables >> byte & 1 == 1) {
            memory[to][byte] = data[byte];
        }
    }
    Ok(())
}

/// Words of the memory that is tested.
const RAM: usize = 300;

pub(crate) const MESSAGE_RAM: Block = Block {
    name: "message_ram",
    files: &["message_ram/message_ram"],
    cases: &[&[("Words", RAM as u64)]],
    sources: &[],
    sinks: &[],
    inputs: &[
        ("write_valid", 1),
        ("write_addr", 16),
        ("write_enables", 64),
        ("write_data", 512),
        ("read_valid", 1),
        ("read_addr", 16),
    ],
    outputs: &[("read_data", 512)],
    run: drive_message_ram,
    mutants: &[
        Mutant::new("message_ram/message_ram", "if (write_enables_i[i])", ""),
        // What has been read does not stay.
        Mutant::new("message_ram/message_ram", "if (read_valid_i)", ""),
        // An address bit is missing.
        Mutant::new(
            "message_ram/message_ram",
            "read_addr_i[AddrW-1:0];",
            "AddrW'(read_addr_i[AddrW-2:0]);",
        ),
    ],
};

#[test]
fn message_ram() {
    MESSAGE_RAM.check();
}

#[test]
fn rx_writer() {
    RX_WRITER.check();
}

#[test]
fn rx_reader() {
    RX_READER.check();
}

#[test]
fn tx_writer() {
    TX_WRITER.check();
}

#[test]
fn tx_reader() {
    TX_READER.check();
}
