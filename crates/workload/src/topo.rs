//! The reader of htsim's fat-tree descriptions (`.topo`).
//!
//! Blank-separated lines of a key and a value, `#` starts a comment, keys in any case. First the
//! header, then for each tier a line `Tier T` and its keys:
//!
//! | key | meaning | if absent |
//! |---|---|---|
//! | `Nodes` | hosts | error |
//! | `Tiers` | 2 (leaf-spine) or 3 | error |
//! | `Podsize` | hosts per pod; with two tiers all of them | error |
//! | `Tier` | 0 = top of rack, 1 = aggregation (or spine), 2 = core | error |
//! | `Downlink_speed_Gbps` | rate of the links below this tier's switches, both directions | error |
//! | `Downlink_Latency_ns` | delay of those links | error |
//! | `Switch_Latency_ns` | what a switch of this tier adds to each packet | 0 |
//! | `Radix_Down` | ports of a switch towards the hosts | error |
//! | `Radix_Up` | ports of a switch away from the hosts; not in the highest tier | error |
//! | `Queue_Down`, `Queue_Up` | bytes of queue per such port; `Queue_Up` not in the highest tier | given elsewhere (`-q`) |
//! | `Oversubscribed` | capacity below / capacity above a switch, a whole number | 1 |
//! | `Bundle` | parallel links between a switch and each of its neighbours below | 1 |
//!
//! Source: `FatTreeTopology::load` and `set_custom_params` of Broadcom/csg-htsim,
//! `FatTreeTopologyCfg::read_cfg` of ultraethernet/uet-htsim. Different here: speeds and latencies
//! may have fractions; unknown keys are errors in the header too; so are keys given twice with
//! their default value, a tier given twice, and tiers above `Tiers`. Whether the numbers make a
//! fabric is for its builder to check.

use units::{Bytes, Dur, Rate, UnitError};

use crate::text::{Line, Parsed, Place, Source, TextError, Word, one_of};

/// A fat-tree in htsim's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topo {
    /// Hosts.
    pub nodes: u32,
    /// Hosts per pod.
    pub pod_size: u32,
    /// Two or three, the top of rack first.
    pub tiers: Vec<Tier>,
}

/// The switches of one tier and the links below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Rate of each link below, each direction.
    pub downlink_rate: Rate,
    /// Delay of each link below.
    pub downlink_delay: Dur,
    /// What a switch adds to each packet.
    pub switch_latency: Dur,
    /// Ports towards the hosts.
    pub radix_down: u32,
    /// Ports away from the hosts; `None` in the highest tier only.
    pub radix_up: Option<u32>,
    /// Queue of each port towards the hosts, if the file says.
    pub queue_down: Option<Bytes>,
    /// Queue of each port away from the hosts, if the file says; `None` in the highest tier.
    pub queue_up: Option<Bytes>,
    /// Capacity below / capacity above.
    pub oversubscribed: u32,
    /// Parallel links to each neighbour below.
    pub bundle: u32,
}

const HEADER: [&str; 4] = ["Nodes", "Tiers", "Podsize", "Tier"];

const SPEED: usize = 0;
const DELAY: usize = 1;
const SWITCH: usize = 2;
const RADIX_DOWN: usize = 3;
const RADIX_UP: usize = 4;
const QUEUE_DOWN: usize = 5;
const QUEUE_UP: usize = 6;
const OVERSUBSCRIBED: usize = 7;
const BUNDLE: usize = 8;

/// The keys of a tier, in the order of the constants above.
const KEYS: [&str; 9] = [
    "Downlink_speed_Gbps",
    "Downlink_Latency_ns",
    "Switch_Latency_ns",
    "Radix_Down",
    "Radix_Up",
    "Queue_Down",
    "Queue_Up",
    "Oversubscribed",
    "Bundle",
];

/// Read a fat-tree description. `name` is the file's name, for errors.
///
/// # Errors
/// Unknown, repeated, missing or misplaced keys; values that are not numbers of their kind.
pub fn read_topo(text: &str, name: &str) -> Result<Topo, TextError> {
    let source = Source::new(text, name);
    let mut raw = Raw::default();
    for line in source.lines(char::is_whitespace) {
        raw.read(&source, &line)?;
    }
    raw.finish(&source)
}

/// A line: key and value.
#[derive(Clone, Copy)]
struct Pair<'a> {
    key: Word<'a>,
    value: Word<'a>,
}

/// The lines, sorted by what they are about.
#[derive(Default)]
struct Raw<'a> {
    header: [Option<Pair<'a>>; 3],
    tiers: [Option<RawTier<'a>>; 3],
    current: Option<usize>,
}

#[derive(Clone, Copy)]
struct RawTier<'a> {
    /// The line `Tier T`.
    line: Pair<'a>,
    keys: [Option<Pair<'a>>; KEYS.len()],
}

fn position(known: &[&str], key: Word<'_>) -> Option<usize> {
    known.iter().position(|name| name.eq_ignore_ascii_case(key.text))
}

impl<'a> Raw<'a> {
    fn read(&mut self, source: &Source<'a>, line: &Line<'a>) -> Parsed<()> {
        let pair = Pair { key: line.first(), value: line.word(1) };
        if let Some(extra) = line.words.get(2) {
            return Err(source.wrong(*extra, "a second value", "write one value per key"));
        }
        let tier = self.current.and_then(|tier| self.tiers.get_mut(tier)?.as_mut());
        let slot = match (position(&HEADER, pair.key), position(&KEYS, pair.key), tier) {
            (Some(3), ..) => return self.open_tier(source, pair),
            (Some(index), _, None) => &mut self.header[index],
            (_, Some(index), Some(tier)) => &mut tier.keys[index],
            (Some(_), _, Some(_)) => {
                let hint = "move it above the first Tier";
                return Err(source.wrong(pair.key, "a key of the header inside a tier", hint));
            }
            (_, Some(_), None) => {
                let hint = "write a line such as \"Tier 0\" before it";
                return Err(source.wrong(pair.key, "a key of a tier outside a tier", hint));
            }
            (None, None, tier) => {
                let known = if tier.is_some() { &KEYS[..] } else { &HEADER[..] };
                return Err(source.wrong(pair.key, "unknown key", one_of(pair.key.text, known)));
            }
        };
        match slot.replace(pair) {
            None => Ok(()),
            Some(_) => Err(source.wrong(pair.key, "given twice", "keep one of them")),
        }
    }

    fn open_tier(&mut self, source: &Source<'a>, line: Pair<'a>) -> Parsed<()> {
        let tier = source.whole(line.value, "the tier", 2)? as usize;
        self.current = Some(tier);
        match self.tiers[tier].replace(RawTier { line, keys: [None; KEYS.len()] }) {
            None => Ok(()),
            Some(_) => Err(source.wrong(line.value, "this tier is given twice", "merge the two")),
        }
    }

    fn finish(&self, source: &Source<'_>) -> Parsed<Topo> {
        let header = |index: usize| {
            self.header[index].map(|pair| pair.value).ok_or_else(|| {
                let name = HEADER[index];
                let hint = format!("start the file with a line such as \"{name} 3\"");
                let at = Place { line: 1, column: 1 };
                source.missing(at, format!("{name} is missing"), hint)
            })
        };
        let nodes = source.positive_u32(header(0)?, "Nodes")?;
        let (tiers_word, pod_word) = (header(1)?, header(2)?);
        let count = source.whole(tiers_word, "Tiers", 3)? as usize;
        if count < 2 {
            return Err(source.wrong(tiers_word, "too few tiers", "write 2 or 3"));
        }
        let pod_size = source.positive_u32(pod_word, "Podsize")?;
        let mut tiers = Vec::with_capacity(count);
        for (index, raw) in self.tiers.iter().enumerate() {
            match raw {
                Some(raw) if index < count => tiers.push(raw.get(source, index + 1 == count)?),
                Some(raw) => {
                    let message = format!("a tier too many: Tiers is {count}");
                    return Err(source.wrong(raw.line.value, message, "tiers count from 0"));
                }
                None if index < count => {
                    let hint = format!("add a line \"Tier {index}\" and its keys");
                    let message = format!("tier {index} is missing");
                    return Err(source.missing(source.end(), message, hint));
                }
                None => {}
            }
        }
        Ok(Topo { nodes, pod_size, tiers })
    }
}

impl RawTier<'_> {
    fn get(&self, source: &Source<'_>, highest: bool) -> Parsed<Tier> {
        if highest {
            let upward = [RADIX_UP, QUEUE_UP].into_iter().find_map(|index| self.keys[index]);
            if let Some(pair) = upward {
                let message = "the highest tier has nothing above it";
                return Err(source.wrong(pair.key, message, "remove the line"));
            }
        }
        let radix_up = if highest { None } else { Some(self.positive(source, RADIX_UP, None)?) };
        Ok(Tier {
            downlink_rate: self.rate(source)?,
            downlink_delay: self.delay(source, DELAY, None)?,
            switch_latency: self.delay(source, SWITCH, Some(Dur::ZERO))?,
            radix_down: self.positive(source, RADIX_DOWN, None)?,
            radix_up,
            queue_down: self.queue(source, QUEUE_DOWN)?,
            queue_up: self.queue(source, QUEUE_UP)?,
            oversubscribed: self.positive(source, OVERSUBSCRIBED, Some(1))?,
            bundle: self.positive(source, BUNDLE, Some(1))?,
        })
    }

    /// The value of key `index`, or `absent`.
    fn value<T>(
        &self,
        source: &Source<'_>,
        index: usize,
        absent: Option<T>,
        read: impl FnOnce(Word<'_>) -> Parsed<T>,
    ) -> Parsed<T> {
        match (self.keys[index], absent) {
            (Some(pair), _) => read(pair.value),
            (None, Some(absent)) => Ok(absent),
            (None, None) => {
                let name = KEYS[index];
                let message = format!("{name} is missing in this tier");
                Err(source.wrong(self.line.value, message, format!("add a line \"{name} ...\"")))
            }
        }
    }

    fn positive(&self, source: &Source<'_>, index: usize, absent: Option<u32>) -> Parsed<u32> {
        self.value(source, index, absent, |word| source.positive_u32(word, KEYS[index]))
    }

    fn queue(&self, source: &Source<'_>, index: usize) -> Parsed<Option<Bytes>> {
        self.value(source, index, Some(None), |word| {
            match source.whole(word, KEYS[index], i64::MAX as u64)? {
                0 => Err(source.wrong(word, "a queue without a byte", "leave the line out")),
                bytes => Ok(Some(Bytes(bytes))),
            }
        })
    }

    fn rate(&self, source: &Source<'_>) -> Parsed<Rate> {
        self.value(source, SPEED, None, |word| {
            let rate: Rate = quantity(source, word, "Gbps")?;
            if rate.0 == 0 {
                return Err(source.wrong(word, "a link without speed", "write 10 for 10Gbps"));
            }
            Ok(rate)
        })
    }

    fn delay(&self, source: &Source<'_>, index: usize, absent: Option<Dur>) -> Parsed<Dur> {
        self.value(source, index, absent, |word| quantity(source, word, "ns"))
    }
}

/// A bare number that means so many `unit`.
fn quantity<T>(source: &Source<'_>, word: Word<'_>, unit: &str) -> Parsed<T>
where
    T: std::str::FromStr<Err = UnitError>,
{
    let hint = format!("write a number of {unit} without the unit, as in \"100\"");
    if word.text.is_empty() {
        return Err(source.wrong(word, "the value is missing", hint));
    }
    if !word.text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(source.wrong(word, "not a number", hint));
    }
    format!("{}{unit}", word.text).parse().map_err(|error: UnitError| {
        let message = match error {
            UnitError::TooLarge(_) => "too large",
            UnitError::NotWhole { .. } => "too fine a fraction",
            _ => "not a number",
        };
        source.wrong(word, message, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF_SPINE: &str = "# leaf-spine\nNodes 32\nTiers 2\nPodsize 32\n\nTier 0\n\
        Downlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\nDownlink_Latency_ns 1000\n\
        Switch_Latency_ns 0.5\nOversubscribed 4\n\nTIER 1\ndownlink_speed_gbps 2.5\n\
        Radix_Down 4\nDownlink_Latency_ns 750\nQueue_Down 72000\n";

    #[test]
    fn reads_a_leaf_spine() {
        let topo = read_topo(LEAF_SPINE, "x").expect("valid");
        assert_eq!((topo.nodes, topo.pod_size, topo.tiers.len()), (32, 32, 2));
        let leaf = Tier {
            downlink_rate: Rate(100_000_000_000),
            downlink_delay: Dur::from_ns(1000),
            switch_latency: Dur(500),
            radix_down: 8,
            radix_up: Some(2),
            queue_down: None,
            queue_up: None,
            oversubscribed: 4,
            bundle: 1,
        };
        assert_eq!(topo.tiers[0], leaf);
        let spine = &topo.tiers[1];
        assert_eq!((spine.downlink_rate, spine.radix_up), (Rate(2_500_000_000), None));
        assert_eq!(spine.queue_down, Some(Bytes(72_000)));
    }

    #[test]
    fn errors_name_the_place_and_the_value() {
        let cases = [
            ("Nodes 32\n", "", 1, 1, "", "Nodes is missing"),
            ("Nodes 32", "Nodes 0", 2, 7, "0", "Nodes is zero"),
            ("Tiers 2", "Tiers 4", 3, 7, "4", "Tiers is too large"),
            ("Tiers 2", "Tiers 1", 3, 7, "1", "too few tiers"),
            ("Tiers 2", "Tiers 3", 14, 6, "1", "Radix_Up is missing in this tier"),
            ("Podsize 32", "Pod_size 32", 4, 1, "Pod_size", "unknown key"),
            ("Podsize 32", "nodes 32", 4, 1, "nodes", "given twice"),
            ("Podsize 32", "Podsize 32 9", 4, 12, "9", "a second value"),
            ("Podsize 32", "Bundle 1", 4, 1, "Bundle", "a key of a tier outside a tier"),
            ("Tier 0", "Tier 7", 6, 6, "7", "the tier is too large"),
            ("TIER 1", "TIER 0", 14, 6, "0", "this tier is given twice"),
            ("TIER 1", "Nodes 1", 14, 1, "Nodes", "a key of the header inside a tier"),
            ("Radix_Up 2\n", "", 6, 6, "0", "Radix_Up is missing in this tier"),
            (
                "Radix_Down 4",
                "Radix_Up 4",
                16,
                1,
                "Radix_Up",
                "the highest tier has nothing above it",
            ),
            ("2.5", "fast", 15, 21, "fast", "not a number"),
            ("2.5", "0", 15, 21, "0", "a link without speed"),
            ("750", "-750", 17, 21, "-750", "not a number"),
            ("750", "99999999999999999999", 17, 21, "99999999999999999999", "too large"),
            ("750", "0.0001", 17, 21, "0.0001", "too fine a fraction"),
            ("72000", "0", 18, 12, "0", "a queue without a byte"),
        ];
        for (from, to, line, column, value, message) in cases {
            assert!(LEAF_SPINE.contains(from), "{from}");
            let error = read_topo(&LEAF_SPINE.replacen(from, to, 1), "x").expect_err(to);
            assert_eq!(error.says(), (line, column, value, message), "{to:?}");
        }
        let cut = LEAF_SPINE.split_once("\nTIER").expect("has it").0;
        let error = read_topo(cut, "x").expect_err("cut");
        assert_eq!((error.line, error.message.as_str()), (12, "tier 1 is missing"));
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let text = LEAF_SPINE.replace("Oversubscribed", "Oversubscription");
        let error = read_topo(&text, "x").expect_err("unknown");
        assert!(error.hint.starts_with("did you mean Oversubscribed?"), "{}", error.hint);
    }
}
