//! The payload's path: streams of other widths, the message RAM, and the way into it and out.

use crate::bench::{Block, Case, Forbidden, Model, Mutant, Rng, Values};

/// Bytes of a wide word.
const WIDE: usize = 64;

/// Bytes of a narrow one.
const NARROW: usize = 8;

/// A word of a stream: its bytes, and whether its packet ends with it.
#[derive(Clone, Debug)]
struct Word {
    bytes: Vec<u8>,
    last: bool,
}

impl Word {
    fn draw(rng: &mut Rng, width: usize, last: bool) -> Self {
        let length = if last { rng.below(width as u64) as usize + 1 } else { width };
        Self { bytes: (0..length).map(|_| rng.next() as u8).collect(), last }
    }

    fn set(&self, ports: &mut Values<'_>, [data, keep, last]: [&str; 3]) {
        set_bytes(ports, data, &self.bytes);
        ports.set(keep, self.keep());
        ports.set(last, self.last);
    }

    fn keep(&self) -> u128 {
        (1 << self.bytes.len()) - 1
    }
}

/// The first byte is in the lowest bits.
fn set_bytes(ports: &mut Values<'_>, port: &str, bytes: &[u8]) {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let words: Vec<u32> = bytes.chunks(4).map(word).collect();
    ports.set_words(port, &words);
}

/// Words of packets of one to a few words, offered until they are taken.
struct Source {
    width: usize,
    /// Words of the longest packet.
    longest: u64,
    left: u64,
    offered: Option<Word>,
}

impl Source {
    const fn new(width: usize, longest: u64) -> Self {
        Self { width, longest, left: 0, offered: None }
    }

    /// What is offered in this cycle.
    fn offer(&mut self, rng: &mut Rng, inputs: &mut Values<'_>) -> Option<Word> {
        if self.offered.is_none() && !rng.one_in(5) {
            if self.left == 0 {
                let longest = if rng.one_in(2) { 3 } else { self.longest };
                self.left = rng.below(longest) + 1;
            }
            self.left -= 1;
            self.offered = Some(Word::draw(rng, self.width, self.left == 0));
        }
        let word = self.offered.clone()?;
        inputs.set("valid_i", 1u8);
        word.set(inputs, ["data_i", "keep_i", "last_i"]);
        Some(word)
    }
}

/// Whether the words are taken in this cycle: phases of always and seldom.
fn ready(rng: &mut Rng, seldom: &mut bool, inputs: &mut Values<'_>) -> bool {
    if rng.one_in(50) {
        *seldom = rng.one_in(2);
    }
    let ready = !*seldom || rng.one_in(4);
    inputs.set("ready_i", ready);
    ready
}

fn give(outputs: &mut Values<'_>, word: Option<&Word>) {
    if let Some(word) = word {
        outputs.set("valid_o", 1u8);
        word.set(outputs, ["data_o", "keep_o", "last_o"]);
    }
}

const UP: &[Mutant] = &[
    Mutant::new(
        "width_up",
        "part_q  <= ends ? '0 :",
        "part_q  <= part_q == PartW'(Parts - 1) ? '0 :",
    ),
    Mutant::new("width_up", "part_q == PartW'(Parts - 1);", "part_q == PartW'(Parts - 2);"),
    Mutant::new("width_up", "part_q  <= ends ? '0 : part_q", "part_q  <= part_q"),
    Mutant::new("width_up", "ready_o = !whole_q || ready_i;", "ready_o = 1'b1;"),
    Mutant::new("width_up", "ready_o = !whole_q || ready_i;", "ready_o = !whole_q;"),
    Mutant::new("width_up", "if (ready_i) whole_q <= 1'b0;", ""),
    Mutant::new("width_up", "last_q  <= last_i;", "last_q  <= last_i || last_q;"),
    Mutant::new("width_up", "            keep_q[i] <= '0;", ""),
];

/// Words of a stream that are none.
const STREAM: &[Forbidden] = &[
    Forbidden {
        assertion: "lowest_bytes",
        inputs: &[("valid_i", 1), ("keep_i", 2), ("last_i", 1)],
        cycles: 1,
    },
    Forbidden {
        assertion: "all_but_the_last",
        inputs: &[("valid_i", 1), ("keep_i", 1)],
        cycles: 1,
    },
    Forbidden { assertion: "some_bytes", inputs: &[("valid_i", 1), ("last_i", 1)], cycles: 1 },
];

/// Narrow words until one is whole.
struct Up {
    rng: Rng,
    source: Source,
    seldom: bool,
    part: Vec<u8>,
    whole: Option<Word>,
}

impl Model for Up {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        give(outputs, self.whole.as_ref());
        let free = ready(&mut self.rng, &mut self.seldom, inputs) || self.whole.is_none();
        outputs.set("ready_o", free);
        let offered = self.source.offer(&mut self.rng, inputs);
        if !free {
            return;
        }
        self.whole = None;
        let Some(word) = offered else { return };
        self.source.offered = None;
        self.part.extend(word.bytes);
        if word.last || self.part.len() == WIDE {
            self.whole = Some(Word { bytes: std::mem::take(&mut self.part), last: word.last });
        }
    }
}

const DOWN: &[Mutant] = &[
    Mutant::new(
        "width_down",
        "last_o    = valid_o && last_q && ends;",
        "last_o    = valid_o && last_q;",
    ),
    Mutant::new(
        "width_down",
        "data_q <= data_q >> (NarrowBytes * 8);",
        "data_q <= data_q >> NarrowBytes;",
    ),
    Mutant::new("width_down", "!valid_o || (gives && ends);", "!valid_o;"),
    Mutant::new("width_down", "!valid_o || (gives && ends);", "!valid_o || ends;"),
    Mutant::new("width_down", "gives     = valid_o && ready_i;", "gives     = valid_o;"),
    Mutant::new("width_down", "        keep_q <= keep_next;\n", ""),
    Mutant::new("width_down", "        last_q <= last_i;\n", "        last_q <= 1'b1;\n"),
];

/// The bytes of a wide word that have not left.
struct Down {
    rng: Rng,
    source: Source,
    seldom: bool,
    rest: Option<Word>,
}

impl Model for Down {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let ready = ready(&mut self.rng, &mut self.seldom, inputs);
        let narrow = self.rest.as_ref().map(|rest| {
            let ends = rest.bytes.len() <= NARROW;
            let bytes = rest.bytes[..rest.bytes.len().min(NARROW)].to_vec();
            Word { bytes, last: rest.last && ends }
        });
        give(outputs, narrow.as_ref());
        if let Some(rest) = self.rest.as_mut().filter(|_| ready) {
            rest.bytes.drain(..rest.bytes.len().min(NARROW));
        }
        self.rest.take_if(|rest| rest.bytes.is_empty());
        outputs.set("ready_o", self.rest.is_none());
        if let Some(word) = self.source.offer(&mut self.rng, inputs)
            && self.rest.is_none()
        {
            self.source.offered = None;
            self.rest = Some(word);
        }
    }
}

fn stream([from, to]: [usize; 2], model: impl Fn(Rng, Source) -> Box<dyn Model> + 'static) -> Case {
    let bits = |bytes: usize| bytes as u32;
    Case {
        parameters: Vec::new(),
        inputs: vec![
            ("valid_i", 1),
            ("data_i", 8 * bits(from)),
            ("keep_i", bits(from)),
            ("last_i", 1),
            ("ready_i", 1),
        ],
        outputs: vec![
            ("ready_o", 1),
            ("valid_o", 1),
            ("data_o", 8 * bits(to)),
            ("keep_o", bits(to)),
            ("last_o", 1),
        ],
        model: Box::new(move |seed| model(Rng::new(seed), Source::new(from, 20))),
    }
}

#[test]
fn width_up() {
    let case = stream([NARROW, WIDE], |rng, source| {
        Box::new(Up { rng, source, seldom: false, part: Vec::new(), whole: None })
    });
    Block { name: "width_up", parts: &[], cases: vec![case], mutants: UP, forbidden: STREAM }
        .check();
}

#[test]
fn width_down() {
    let case = stream([WIDE, NARROW], |rng, source| {
        Box::new(Down { rng, source, seldom: false, rest: None })
    });
    Block { name: "width_down", parts: &[], cases: vec![case], mutants: DOWN, forbidden: STREAM }
        .check();
}

const RAM: &[Mutant] = &[
    Mutant::new("message_ram", "if (write_i && write_keep_i[b])", "if (write_i)"),
    Mutant::new("message_ram", "if (write_i && write_keep_i[b])", "if (write_keep_i[b])"),
    Mutant::new("message_ram", "if (read_i) read_data_o", "read_data_o"),
    Mutant::new(
        "message_ram",
        "if (read_i) read_data_o <= words_q[read_addr_i];",
        "if (read_i) read_data_o <= write_i && write_addr_i == read_addr_i ? write_data_i : words_q[read_addr_i];",
    ),
    Mutant::new(
        "message_ram",
        "words_q[write_addr_i][b] <=",
        "words_q[write_addr_i ^ 6'd32][b] <=",
    ),
];

/// No power of two: some addresses are beyond it.
const RAM_WORDS: usize = 48;

const OUTSIDE: &[Forbidden] = &[
    Forbidden {
        assertion: "write_inside",
        inputs: &[("write_i", 1), ("write_addr_i", 48)],
        cycles: 1,
    },
    Forbidden {
        assertion: "read_inside",
        inputs: &[("read_i", 1), ("read_addr_i", 63)],
        cycles: 1,
    },
];

struct Ram {
    rng: Rng,
    /// Words that have been written once: nothing is read before all have.
    written: usize,
    words: Vec<Vec<u8>>,
    read: Vec<u8>,
}

impl Model for Ram {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let started = self.written == RAM_WORDS;
        set_bytes(outputs, "read_data_o", &self.read);
        let among = if self.rng.one_in(2) { 3 } else { RAM_WORDS as u64 };
        let [read, write] = [(); 2].map(|()| self.rng.below(among) as usize);
        inputs.set("read_addr_i", read as u64);
        if started && self.rng.one_in(2) {
            inputs.set("read_i", 1u8);
            self.read.clone_from(&self.words[read]);
        }
        let word = Word::draw(&mut self.rng, WIDE, false);
        let (valid, keep) = (self.rng.one_in(2), self.rng.next());
        let (valid, keep, write) = match started {
            true => (valid, keep, write),
            false => (true, u64::MAX, self.written),
        };
        self.written += usize::from(!started);
        inputs.set("write_i", valid);
        inputs.set("write_addr_i", write as u64);
        set_bytes(inputs, "write_data_i", &word.bytes);
        inputs.set("write_keep_i", keep);
        for (at, (to, byte)) in self.words[write].iter_mut().zip(word.bytes).enumerate() {
            *to = if valid && keep >> at & 1 != 0 { byte } else { *to };
        }
    }
}

#[test]
fn message_ram() {
    let case = Case {
        parameters: vec![("Words", RAM_WORDS.to_string())],
        inputs: vec![
            ("write_i", 1),
            ("write_addr_i", 6),
            ("write_data_i", 512),
            ("write_keep_i", 64),
            ("read_i", 1),
            ("read_addr_i", 6),
        ],
        outputs: vec![("read_data_o", 512)],
        model: Box::new(|seed| {
            Box::new(Ram {
                rng: Rng::new(seed),
                written: 0,
                words: vec![vec![0; WIDE]; RAM_WORDS],
                read: vec![0; WIDE],
            })
        }),
    };
    Block { name: "message_ram", parts: &[], cases: vec![case], mutants: RAM, forbidden: OUTSIDE }
        .check();
}

const IN: &[Mutant] = &[
    Mutant::new("rx_payload", "word_q   <= last_i ? '0 : word_q", "word_q   <= word_q"),
    Mutant::new("rx_payload", "drop = inside_q ? drop_q : drop_i;", "drop = drop_i;"),
    Mutant::new("rx_payload", "addr = inside_q ? addr_q : ", "addr = "),
    Mutant::new("rx_payload", "{4'b0, pkt_offset_i, 4'b0};", "{5'b0, pkt_offset_i, 3'b0};"),
    Mutant::new("rx_payload", "write_o      = valid_i && !drop;", "write_o      = valid_i;"),
];

const LONG: &[Forbidden] =
    &[Forbidden { assertion: "no_longer_than_a_packet", inputs: &[("valid_i", 1)], cycles: 17 }];

struct In {
    rng: Rng,
    source: Source,
    /// Of the packet that is inside: whether it is dropped, and where its next word belongs.
    packet: Option<(bool, u16)>,
}

impl Model for In {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let (drop, ptr) = (self.rng.one_in(3), self.rng.next() as u16);
        let offset = self.rng.below(64) as u8;
        inputs.set("drop_i", drop);
        inputs.set("buf_ptr_i", ptr);
        inputs.set("pkt_offset_i", offset);
        let Some(word) = self.source.offer(&mut self.rng, inputs) else { return };
        self.source.offered = None;
        let begins = (drop, ptr.wrapping_add(16 * u16::from(offset)));
        let (drop, addr) = self.packet.unwrap_or(begins);
        if !drop {
            outputs.set("write_o", 1u8);
            set_bytes(outputs, "write_data_o", &word.bytes);
            outputs.set("write_keep_o", word.keep());
            outputs.set("write_addr_o", addr);
        }
        self.packet = (!word.last).then_some((drop, addr.wrapping_add(1)));
    }
}

#[test]
fn rx_payload() {
    let case = Case {
        parameters: Vec::new(),
        inputs: vec![
            ("valid_i", 1),
            ("data_i", 512),
            ("keep_i", 64),
            ("last_i", 1),
            ("drop_i", 1),
            ("buf_ptr_i", 16),
            ("pkt_offset_i", 8),
        ],
        outputs: vec![
            ("write_o", 1),
            ("write_addr_o", 16),
            ("write_data_o", 512),
            ("write_keep_o", 64),
        ],
        model: Box::new(|seed| {
            Box::new(In { rng: Rng::new(seed), source: Source::new(WIDE, 16), packet: None })
        }),
    };
    Block { name: "rx_payload", parts: &[], cases: vec![case], mutants: IN, forbidden: LONG }
        .check();
}

const OUT: &[Mutant] = &[
    Mutant::new(
        "tx_payload",
        "busy_q       <= bytes_q > 11'd64;",
        "busy_q       <= bytes_q >= 11'd64;",
    ),
    Mutant::new(
        "tx_payload",
        "word_last_q  <= bytes_q <= 11'd64;",
        "word_last_q  <= bytes_q < 11'd64;",
    ),
    Mutant::new(
        "tx_payload",
        "left > 16'd1024 ? 11'd1024 : left[10:0];",
        "left >= 16'd1024 ? 11'd1023 : left[10:0];",
    ),
    Mutant::new("tx_payload", "read_data_i & mask(word_bytes_q)", "read_data_i"),
    Mutant::new("tx_payload", "read_o      = busy_q && moves;", "read_o      = busy_q;"),
    Mutant::new("tx_payload", "ready_o = !busy_q && moves;", "ready_o = !busy_q;"),
    Mutant::new("tx_payload", "{4'b0, pkt_offset_i, 4'b0};", "{4'b0, pkt_offset_i, 4'b1};"),
    Mutant::new("tx_payload", "addr_q       <= addr_q + 16'd1;", "addr_q       <= addr_q + 16'd2;"),
];

const BEYOND: &[Forbidden] = &[Forbidden {
    assertion: "of_the_message",
    inputs: &[("valid_i", 1), ("pkt_offset_i", 1), ("msg_len_i", 1024)],
    cycles: 1,
}];

struct Out {
    rng: Rng,
    seldom: bool,
    /// Where the next word is and how many bytes are left of the packet.
    left: (u16, usize),
    /// The word that waits to be taken.
    word: Option<Word>,
    /// What the RAM says.
    ram: Vec<u8>,
}

impl Model for Out {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        set_bytes(inputs, "read_data_i", &self.ram);
        give(outputs, self.word.as_ref());
        let moves = ready(&mut self.rng, &mut self.seldom, inputs) || self.word.is_none();
        let (addr, left) = self.left;
        let free = moves && left == 0;
        outputs.set("ready_o", free);
        if moves {
            self.word = None;
        }
        if moves && left > 0 {
            outputs.set("read_o", 1u8);
            outputs.set("read_addr_o", addr);
            self.ram = Word::draw(&mut self.rng, WIDE, false).bytes;
            let here = left.min(WIDE);
            self.word = Some(Word { bytes: self.ram[..here].to_vec(), last: left == here });
            self.left = (addr.wrapping_add(1), left - here);
        }
        let among = if self.rng.one_in(2) { 3 } else { 64 };
        let offset = self.rng.below(among) as u16;
        let rest = match self.rng.below(4) {
            0 => 64 * (self.rng.below(17) as u16).max(1),
            1 => self.rng.next() as u16,
            _ => self.rng.below(130) as u16,
        };
        let len = (offset * 1024).saturating_add(rest.max(1)).max(offset * 1024 + 1);
        let (valid, ptr) = (!self.rng.one_in(3), self.rng.next() as u16);
        inputs.set("valid_i", valid);
        inputs.set("buf_ptr_i", ptr);
        inputs.set("msg_len_i", len);
        inputs.set("pkt_offset_i", offset);
        if valid && free {
            let bytes = usize::from(len - offset * 1024).min(1024);
            self.left = (ptr.wrapping_add(16 * offset), bytes);
        }
    }
}

#[test]
fn tx_payload() {
    let case = Case {
        parameters: Vec::new(),
        inputs: vec![
            ("valid_i", 1),
            ("buf_ptr_i", 16),
            ("msg_len_i", 16),
            ("pkt_offset_i", 8),
            ("read_data_i", 512),
            ("ready_i", 1),
        ],
        outputs: vec![
            ("ready_o", 1),
            ("read_o", 1),
            ("read_addr_o", 16),
            ("valid_o", 1),
            ("data_o", 512),
            ("keep_o", 64),
            ("last_o", 1),
        ],
        model: Box::new(|seed| {
            Box::new(Out {
                rng: Rng::new(seed),
                seldom: false,
                left: (0, 0),
                word: None,
                ram: vec![0; WIDE],
            })
        }),
    };
    Block { name: "tx_payload", parts: &[], cases: vec![case], mutants: OUT, forbidden: BEYOND }
        .check();
}
