//! Malformed files, drawn: valid ones cut, spliced, overwritten with noise and with numbers that
//! nobody expects.

use proptest::prelude::*;
use proptest::sample::Index;

/// Words that readers might trip over.
const NASTY: [&[u8]; 26] = [
    b"0",
    b"-1",
    b"1",
    b"9",
    b"4294967295",
    b"4294967296",
    b"18446744073709551615",
    b"18446744073709551616",
    b"99999999999999999999999999999999999999999",
    b"1e308",
    b"NaN",
    b"-0",
    b".",
    b"}",
    b"{",
    b":",
    b"/*",
    b"//",
    b"\"",
    b"[",
    b",",
    b"None",
    "\u{feff}".as_bytes(),
    "é\u{301}".as_bytes(),
    b"\r\n",
    b"\0",
];

#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Remove(Index, Index),
    Repeat(Index, Index),
    Noise(Index, Vec<u8>),
    Flip(Index, u8),
    Nasty(Index, Index),
    ReplaceWord(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Damage::Cut),
        (at(), at()).prop_map(|(a, b)| Damage::Remove(a, b)),
        (at(), at()).prop_map(|(a, b)| Damage::Repeat(a, b)),
        (at(), prop::collection::vec(any::<u8>(), 0..8)).prop_map(|(a, n)| Damage::Noise(a, n)),
        (at(), any::<u8>()).prop_map(|(a, b)| Damage::Flip(a, b)),
        (at(), at()).prop_map(|(a, b)| Damage::Nasty(a, b)),
        (at(), at()).prop_map(|(a, b)| Damage::ReplaceWord(a, b)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let len = bytes.len() + 1;
    let range = |a: &Index, b: &Index| {
        let (a, b) = (a.index(len), b.index(len));
        a.min(b)..a.max(b)
    };
    match damage {
        Damage::Cut(at) => bytes.truncate(at.index(len)),
        Damage::Remove(a, b) => drop(bytes.drain(range(a, b))),
        Damage::Repeat(a, b) => bytes.extend_from_within(range(a, b)),
        Damage::Noise(at, noise) => {
            let at = at.index(len);
            bytes.splice(at..at, noise.iter().copied());
        }
        Damage::Flip(at, bits) => {
            if let Some(byte) = bytes.get_mut(at.index(len)) {
                *byte ^= bits;
            }
        }
        Damage::Nasty(at, which) => {
            let at = at.index(len);
            bytes.splice(at..at, NASTY[which.index(NASTY.len())].iter().copied());
        }
        Damage::ReplaceWord(at, which) => {
            let at = at.index(len);
            let end = bytes[at..].iter().position(|b| b.is_ascii_whitespace() || *b == b',');
            let end = at + end.unwrap_or(bytes.len() - at);
            bytes.splice(at..end, NASTY[which.index(NASTY.len())].iter().copied());
        }
    }
}

/// A malformed file.
#[derive(Clone)]
pub(crate) struct Malformed(pub(crate) Vec<u8>);

impl std::fmt::Debug for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// One of `valid`, damaged one to three times.
pub(crate) fn damaged(valid: &[Vec<u8>]) -> impl Strategy<Value = Malformed> + use<> {
    let valid = valid.to_vec();
    let damages = prop::collection::vec(damage(), 1..4);
    (any::<Index>(), damages).prop_map(move |(which, damages)| {
        let mut bytes = valid[which.index(valid.len())].clone();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        Malformed(bytes)
    })
}
