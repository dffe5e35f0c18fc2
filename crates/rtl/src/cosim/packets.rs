//! Packets for a pipeline alone: drawn, or those of an earlier mismatch.

use endpoint::{Draw, Purpose};
use p4::ir;
use serde::{Deserialize, Serialize};

use super::hex::{self, numbers};
use super::shrink::Inputs;
use super::traffic::Plan;

const DRAWS: Purpose = Purpose::new("rtl pipelines");

/// Packets of a plan that is not dense come up to so many cycles later than they might.
const GAP: u64 = 60;

/// A packet that comes to a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Cycles since the packet before it, or since the first cycle.
    pub after: u64,
    /// Its bytes.
    #[serde(with = "hex")]
    pub bytes: Vec<u8>,
    /// A value for each of [`ir::Pipeline::meta`].
    #[serde(with = "numbers")]
    pub meta: Vec<u128>,
}

/// What a pipeline was given: to be given again, and to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// Which one.
    pub pipeline: String,
    /// What the program calls the values of `meta`.
    pub fields: Vec<String>,
    /// The packets, in the order in which they come.
    pub packets: Vec<Input>,
}

impl Packets {
    /// `count` packets of a plan with one of these IP protocols, if any: Ethernet, IPv4 and bytes
    /// of a transport header, now and then cut off or not quite right; half of them almost like
    /// the one before, so that they meet at what they have in common.
    #[must_use]
    pub fn draw(pipeline: &ir::Pipeline, protocols: &[u8], plan: Plan, count: u64) -> Self {
        let stream = Draw::new(plan.seed, DRAWS, 0);
        let mut drawn = 0;
        let mut below = |bound: u64| {
            drawn += 1;
            stream.below(DRAWS, drawn, bound)
        };
        let mut packets: Vec<Input> = Vec::new();
        for _ in 0..count {
            let mut next = match packets.last().filter(|_| below(2) == 0) {
                Some(before) => almost(before, &mut below),
                None => Input {
                    bytes: frame(protocols, &mut below),
                    meta: pipeline.meta.iter().map(|_| value(&mut below)).collect(),
                    after: 0,
                },
            };
            next.after = plan.spacing + if plan.is_dense { 0 } else { below(GAP) };
            packets.push(next);
        }
        Self { pipeline: pipeline.name.clone(), fields: fields(pipeline), packets }
    }

    /// Whether `pipeline` can be given them, whose packets are `spacing` cycles apart at least.
    ///
    /// # Errors
    /// What it cannot be given.
    pub fn check(&self, pipeline: &ir::Pipeline, spacing: u64) -> Result<(), String> {
        let wanted = fields(pipeline);
        if self.fields != wanted {
            let (found, wanted) = (self.fields.join(", "), wanted.join(", "));
            return Err(format!("`fields` are {found}; those of {} are {wanted}", pipeline.name));
        }
        if self.packets.is_empty() {
            return Err("it has no packets".into());
        }
        for (nth, Input { after, meta, .. }) in self.packets.iter().enumerate() {
            if nth > 0 && *after < spacing {
                return Err(format!("packet {nth}: `after` is {after}, {spacing} at least"));
            }
            if meta.len() != wanted.len() {
                let (found, wanted) = (meta.len(), wanted.len());
                return Err(format!("packet {nth}: {found} values in `meta` of {wanted} fields"));
            }
        }
        Ok(())
    }

    /// The cycles in which they come.
    pub fn cycles(&self) -> impl Iterator<Item = u64> {
        self.packets.iter().scan(0, |cycle, packet| {
            *cycle += packet.after;
            Some(*cycle)
        })
    }
}

impl Inputs for Packets {
    fn count(&self) -> usize {
        self.packets.len()
    }

    /// What is left moves together.
    fn keep(&self, stays: &dyn Fn(usize) -> bool) -> Self {
        let packets = self.packets.iter().enumerate().filter(|(at, _)| stays(*at));
        Self { packets: packets.map(|(_, packet)| packet.clone()).collect(), ..self.clone() }
    }

    fn idle(&self, event: usize, spacing: u64) -> u64 {
        let spacing = if event == 0 { 0 } else { spacing };
        self.packets.get(event).map_or(0, |packet| packet.after.saturating_sub(spacing))
    }

    fn without(&self, event: usize, cycles: u64) -> Self {
        let mut less = self.clone();
        if let Some(packet) = less.packets.get_mut(event) {
            packet.after = packet.after.saturating_sub(cycles);
        }
        less
    }

    fn cut(&self, cycles: u64) -> Self {
        let early = self.cycles().take_while(|cycle| *cycle < cycles).count();
        self.keep(&|at| at < early)
    }
}

fn fields(pipeline: &ir::Pipeline) -> Vec<String> {
    pipeline.meta.iter().map(|meta| meta.name.clone()).collect()
}

/// The same with some other bytes.
fn almost(before: &Input, below: &mut dyn FnMut(u64) -> u64) -> Input {
    let mut next = before.clone();
    for _ in 0..below(4) {
        let at = below(next.bytes.len().max(1) as u64) as usize;
        if let Some(byte) = next.bytes.get_mut(at) {
            *byte = below(256) as u8;
        }
    }
    next
}

/// Small numbers and large ones.
fn value(below: &mut dyn FnMut(u64) -> u64) -> u128 {
    let bits = |below: &mut dyn FnMut(u64) -> u64| u128::from(below(1 << 32));
    match below(4) {
        0 => below(4).into(),
        1 => u128::MAX,
        _ => (0..4).fold(0, |value, _| value << 32 | bits(below)),
    }
}

fn frame(protocols: &[u8], below: &mut dyn FnMut(u64) -> u64) -> Vec<u8> {
    let length = 64 + below(160);
    let mut frame: Vec<u8> = (0..length).map(|_| below(256) as u8).collect();
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    if !protocols.is_empty() {
        frame[23] = protocols[below(protocols.len() as u64) as usize];
    }
    // One flag as a rule.
    frame[34] = if below(4) == 0 { below(256) as u8 } else { 1 << below(5) };
    if below(20) == 0 {
        let at = below(length) as usize;
        frame[at] ^= 1 << below(8);
    }
    if below(20) == 0 {
        frame.truncate(below(70) as usize);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets() -> Packets {
        let one = |after| Input { after, bytes: vec![1, 0xab], meta: vec![u128::MAX, 3] };
        let fields = vec!["a.b".into(), "c".into()];
        Packets { pipeline: "ingress".into(), fields, packets: vec![one(3), one(2), one(9)] }
    }

    #[test]
    fn they_are_text_and_come_again() {
        let text = serde_json::to_string(&packets()).unwrap();
        assert!(
            text.contains(r#""bytes":"01ab","meta":["0xffffffffffffffffffffffffffffffff","0x3"]"#)
        );
        assert_eq!(serde_json::from_str::<Packets>(&text).unwrap(), packets());
        for (from, to) in [("01ab", "01a"), ("0x3", "3"), ("0x3", "0x"), ("\"after\":9,", "")] {
            let error = serde_json::from_str::<Packets>(&text.replace(from, to)).unwrap_err();
            assert!(error.column() > 0, "{error}");
        }
    }

    #[test]
    fn what_is_left_out_leaves_no_gap() {
        let all = packets();
        assert_eq!(all.cycles().collect::<Vec<_>>(), [3, 5, 14]);
        assert_eq!(all.keep(&|at| at != 1).cycles().collect::<Vec<_>>(), [3, 12]);
        assert_eq!([0, 1, 2, 3].map(|at| all.idle(at, 2)), [3, 0, 7, 0]);
        assert_eq!(all.without(2, 7).cycles().collect::<Vec<_>>(), [3, 5, 7]);
        assert_eq!(all.cut(6).count(), 2);
    }
}
