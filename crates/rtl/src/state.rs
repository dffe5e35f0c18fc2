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
/// Queues of descriptors, and the places of each.
const QUEUES: u32 = 3;
const PLACES: u64 = 256;

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
    let descriptors = QUEUES * (bits_for(PLACES) + PACKETS);
    let block = 1 + message(id, buffer_bits(config)) + progress(count) + descriptors;
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
    let key = 32 + 16 + 16;
    let mut all = vec![
        kept("reassembly", 1 + key + BITMAP + PACKETS + buffer_bits(config) + 16),
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

/// Of the scheduler: rank, id, granted, grantable.
const fn entry(id: u32) -> u32 {
    16 + id + 16 + 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::BLOCKS;

    /// Bits of a structure of a block, by the widths of its members.
    fn width(block: &str, name: &str, of: &[(&str, u32)]) -> u32 {
        let (_, text) = BLOCKS.iter().find(|(known, _)| *known == block).unwrap();
        let (before, _) = text.split_once(&format!("}} {name};")).unwrap();
        let (_, members) = before.rsplit_once("struct packed {").unwrap();
        let code = members.lines().map(|line| line.split("//").next().unwrap().trim());
        let of = |kind: &str| of.iter().find(|(known, _)| *known == kind).map(|(_, bits)| *bits);
        code.filter(|line| !line.is_empty())
            .map(|line| {
                let (kind, _) = line.rsplit_once(' ').unwrap();
                let kind = kind.trim();
                let range = kind.strip_prefix("logic [").and_then(|kind| kind.strip_suffix(":0]"));
                let number = range.and_then(|high| high.parse::<u32>().ok()).map(|high| high + 1);
                let one = (kind == "logic").then_some(1);
                number.or(one).or_else(|| of(kind)).unwrap_or_else(|| panic!("{kind}"))
            })
            .sum()
    }

    /// The formulas are those of the blocks' text.
    #[test]
    fn structures_are_as_wide_as_in_the_blocks() {
        let of = [
            ("packets_t", PACKETS),
            ("bitmap_t", BITMAP),
            ("id_t", 4),
            ("logic [15-IdW:0]", 12),
            ("logic [CountW-1:0]", 3),
        ];
        let name = width("packetization", "name_t", &of);
        assert_eq!(name + width("packetization", "message_t", &of) + 5, message(4, 5));
        assert_eq!(width("packetization", "state_t", &of), progress(3));
        assert_eq!(width("srpt", "entry_t", &of), entry(4));
    }

    #[test]
    fn counts_have_the_bits_that_they_need() {
        let bits: Vec<u32> = [0, 1, 2, 255, 256].into_iter().map(bits_for).collect();
        assert_eq!(bits, [0, 1, 2, 8, 9]);
        assert_eq!([1, 2, 16, 17].map(bits_below), [1, 1, 4, 5]);
    }
}
