//! What a NIC keeps of each message, bits: what its blocks have for each id, and what the program
//! has in cells of its own. The publication has below 100 bytes (specs/nanotransport.md#1).

use nic::nano::config::Config;
use p4::ir::Program;
use serde::Serialize;

/// Who keeps bits of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The block, or the program's cells.
    pub name: String,
    /// For each message.
    pub bits: u32,
}

/// What a NIC keeps of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// Of each message that is sent.
    pub sent: Vec<Kept>,
    /// Of each message that comes.
    pub received: Vec<Kept>,
}

/// Bits that count to `most`.
const fn bits_for(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

/// Bits of an id or a number below `count`.
fn bits_below(count: u64) -> u32 {
    bits_for(count.saturating_sub(1)).max(1)
}

const BITMAP: u32 = 64;
/// 0 to 64 packets.
const PACKETS: u32 = 7;
/// Queues of descriptors, and the places of each. A message's are counted in each, and those of
/// them that are stale; another bit says whether there are such.
const QUEUES: u32 = 3;
const PLACES: u64 = 256;
const DESCRIPTORS: u32 = QUEUES * (2 * bits_for(PLACES) + 1);

impl State {
    /// Of a NIC of `config` with this program.
    #[must_use]
    pub fn new(program: &Program, config: &Config) -> Self {
        Self { sent: sent(program, config), received: received(program, config) }
    }

    /// Bits of a message that is sent, and of one that comes.
    #[must_use]
    pub fn bits(&self) -> [u32; 2] {
        [&self.sent, &self.received].map(|all| all.iter().map(|kept| kept.bits).sum())
    }
}

fn kept(name: &str, bits: u32) -> Kept {
    Kept { name: name.to_owned(), bits }
}

fn buffer_bits(config: &Config) -> u32 {
    let buffers = config.classes.iter().map(|class| u64::from(class.buffers)).sum();
    bits_below(buffers)
}

/// Whether it runs, and its deadline.
fn timer(ids: u16, cycles: u64) -> u32 {
    1 + bits_for(cycles.max(2 * u64::from(ids))) + 1
}

/// What is written when a message is submitted, and what changes of it.
fn message(id: u32, buffer: u32) -> u32 {
    let name = (16 - id) + 16;
    name + 8 + 32 + 16 + 16 + 16 + 8 + buffer
}

fn progress(count: u32) -> u32 {
    4 * BITMAP + PACKETS + 6 + 6 + 1 + count
}

fn sent(program: &Program, config: &Config) -> Vec<Kept> {
    let id = bits_below(config.tx_messages.into());
    let count = bits_below(u64::from(config.max_timeouts.unwrap_or(0)) + 2);
    let block = 1 + message(id, buffer_bits(config)) + progress(count) + DESCRIPTORS;
    let mut all = vec![
        kept("packetization", block),
        kept("its timer", timer(config.tx_messages, config.tick().of(config.timeout).0)),
    ];
    if program.externs.iter().any(|known| known.kind == "TxMsgPrio") {
        all.push(kept("priority", 8));
    }
    all
}

fn received(program: &Program, config: &Config) -> Vec<Kept> {
    let mut all = vec![
        kept("reassembly", arrived(buffer_bits(config))),
        kept("its timer", timer(config.rx_messages, config.tick().of(config.silence()).0)),
    ];
    let mut known: Vec<&str> = Vec::new();
    for cells in &program.externs {
        let is_one = ["IfElseRaw", "DualPortRaw"].contains(&cells.kind.as_str());
        if is_one && !known.contains(&cells.instance.as_str()) {
            known.push(&cells.instance);
            // And whether it has been written.
            let width = cells.results.last().map_or(0, |value| u32::from(value.width));
            all.push(kept(&cells.instance, width + 1));
        }
        if cells.kind == "SrptScheduler" && !known.contains(&cells.instance.as_str()) {
            known.push(&cells.instance);
            all.push(kept(&cells.instance, entry(bits_below(config.rx_messages.into()))));
        }
    }
    all
}

/// Whether it lives, its key and whether a request has that; what is missing, whether something has
/// come, and of how many packets.
const fn arrived(buffer: u32) -> u32 {
    1 + (32 + 16 + 16) + 1 + BITMAP + 1 + PACKETS + buffer
}

/// Of the scheduler: rank, id, granted, grantable.
const fn entry(id: u32) -> u32 {
    16 + id + 16 + 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::BLOCKS;

    fn text(block: &str) -> impl Iterator<Item = &'static str> {
        let (_, text) = BLOCKS.iter().find(|(known, _)| *known == block).unwrap();
        text.lines().map(|line| line.split("//").next().unwrap().trim())
    }

    /// Bits of a type, by the widths of those that are not numbers.
    fn bits(kind: &str, of: &[(&str, u32)]) -> u32 {
        let range = kind.strip_prefix("logic [").and_then(|kind| kind.strip_suffix(":0]"));
        let number = range.and_then(|high| high.parse::<u32>().ok()).map(|high| high + 1);
        let one = (kind == "logic").then_some(1);
        let of = of.iter().find(|(known, _)| *known == kind).map(|(_, bits)| *bits);
        number.or(one).or(of).unwrap_or_else(|| panic!("{kind}"))
    }

    /// Bits of a structure of a block.
    fn width(block: &str, name: &str, of: &[(&str, u32)]) -> u32 {
        let lines: Vec<&str> = text(block).filter(|line| !line.is_empty()).collect();
        let end = lines.iter().position(|line| *line == format!("}} {name};")).unwrap();
        let members = lines[..end].iter().rev().take_while(|line| !line.contains('{'));
        members.map(|line| bits(line.rsplit_once(' ').unwrap().0.trim(), of)).sum()
    }

    /// Bits that a block stores for each id: its registers and memories with a place for each.
    fn stored(block: &str, of: &[(&str, u32)]) -> u32 {
        let declared = |line: &str| {
            let has_ids = ["[Ids-1:0]", "[Ids]"].iter().any(|ids| line.contains(ids));
            let line = line.strip_suffix(';').filter(|line| !line.contains('='))?;
            let bare = line.replace("[Ids-1:0]", "").replace("[Ids]", "").replace("ids_t", "logic");
            let (kind, names) = bare.trim().split_once(' ')?;
            let (range, names) = match names.trim().strip_prefix('[') {
                Some(names) => names.split_once(']')?,
                None => ("", names),
            };
            let kind = if range.is_empty() { kind.into() } else { format!("{kind} [{range}]") };
            let of_queues = if names.contains("[Queues]") { QUEUES } else { 1 };
            let words = names.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let count = words.filter(|word| word.ends_with("_q")).count() as u32;
            let is_one = has_ids || line.starts_with("ids_t ");
            (is_one && count > 0).then(|| bits(&kind, of) * of_queues * count)
        };
        text(block).filter_map(declared).sum()
    }

    /// The formulas are those of the blocks' text.
    #[test]
    fn bits_are_those_of_the_blocks() {
        let mut of = vec![
            ("packets_t", PACKETS),
            ("bitmap_t", BITMAP),
            ("id_t", 4),
            ("logic [15-IdW:0]", 12),
            ("logic [CountW-1:0]", 3),
            ("logic [BufW-1:0]", 5),
            ("logic [Width-1:0]", 17),
            ("count_t", bits_for(PLACES)),
            ("cycles_t", 17),
        ];
        for name in ["name_t", "message_t", "state_t"] {
            of.push((name, width("packetization", name, &of)));
        }
        let block = 1 + message(4, 5) + progress(3) + DESCRIPTORS;
        assert_eq!(stored("packetization", &of), block);
        assert_eq!(stored("reassembly", &of), arrived(5));
        // Deadlines of up to 2^16 cycles.
        assert_eq!(stored("timers", &of), timer(16, (1 << 16) - 1));
        assert_eq!(stored("tx_msg_prio", &of), 8);
        assert_eq!(["if_else_raw", "dual_port_raw"].map(|block| stored(block, &of)), [18; 2]);
        assert_eq!(width("srpt", "entry_t", &of), entry(4));
    }

    #[test]
    fn counts_have_the_bits_that_they_need() {
        let bits: Vec<u32> = [0, 1, 2, 255, 256].into_iter().map(bits_for).collect();
        assert_eq!(bits, [0, 1, 2, 8, 9]);
        assert_eq!([1, 2, 16, 17].map(bits_below), [1, 1, 4, 5]);
    }
}
