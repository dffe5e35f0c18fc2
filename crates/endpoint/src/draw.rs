//! Random draws that depend on what they are for, never on who drew before.

/// What a draw is for. Two purposes never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose(u64);

impl Purpose {
    /// The purpose called `name`: FNV-1a, so that a new purpose needs no central list.
    #[must_use]
    pub const fn new(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        Self(hash)
    }
}

/// The draws of one entity: a pure function of (seed, entity, purpose, n). Adding a flow or a host
/// changes nobody else's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Draw(u64);

/// The finaliser of splitmix64 (Steele, Lea, Flood: OOPSLA 2014).
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draw {
    /// The draws of entity `id` of kind `kind` under `seed`.
    #[must_use]
    pub const fn new(seed: u64, kind: Purpose, id: u64) -> Self {
        Self(
            mix(mix(mix(seed.wrapping_add(GOLDEN)) ^ kind.0).wrapping_add(id.wrapping_mul(GOLDEN))),
        )
    }

    /// The draws of a part of this entity, say one of its flows.
    #[must_use]
    pub const fn part(self, id: u64) -> Self {
        Self(mix(self.0.wrapping_add(mix(id ^ GOLDEN))))
    }

    /// The draws for `purpose` alone, where one entity makes many of them.
    #[must_use]
    pub const fn stream(self, purpose: Purpose) -> Stream {
        Stream(mix(self.0 ^ purpose.0))
    }

    /// The `n`-th draw for `purpose`: 64 uniform bits.
    #[must_use]
    pub const fn bits(self, purpose: Purpose, n: u64) -> u64 {
        self.stream(purpose).bits(n)
    }

    /// The `n`-th draw for `purpose`, uniform in `0..bound`; zero if `bound` is zero. The bias is
    /// below `bound / 2^64`.
    #[must_use]
    pub const fn below(self, purpose: Purpose, n: u64, bound: u64) -> u64 {
        self.stream(purpose).below(n, bound)
    }

    /// The `n`-th draw for `purpose`, uniform in `[0, 1)` with 53 bits.
    #[must_use]
    pub fn unit(self, purpose: Purpose, n: u64) -> f64 {
        (self.bits(purpose, n) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Shuffle `items` uniformly (Fisher-Yates), with the draws `round * len ..` of `purpose`.
    pub fn shuffle<T>(self, purpose: Purpose, round: u64, items: &mut [T]) {
        let base = round.wrapping_mul(items.len() as u64);
        for i in (1..items.len()).rev() {
            let j = self.below(purpose, base.wrapping_add(i as u64), i as u64 + 1);
            items.swap(i, j as usize);
        }
    }
}

/// The draws of one entity for one purpose: those of [`Draw`], at half the work for each.
#[derive(Clone, Copy, Debug)]
pub struct Stream(u64);

impl Stream {
    /// See [`Draw::bits`].
    #[must_use]
    pub const fn bits(self, n: u64) -> u64 {
        mix(self.0.wrapping_add(n.wrapping_mul(GOLDEN)))
    }

    /// See [`Draw::below`].
    #[must_use]
    pub const fn below(self, n: u64, bound: u64) -> u64 {
        ((self.bits(n) as u128 * bound as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Purpose = Purpose::new("test");

    #[test]
    fn draws_are_uniform_and_independent_of_order() {
        let draw = Draw::new(7, Purpose::new("host"), 3);
        let mut counts = [0u32; 10];
        for n in 0..100_000 {
            counts[draw.below(TEST, n, 10) as usize] += 1;
        }
        // Standard deviation is 95; six of them.
        assert!(counts.iter().all(|&c| (9_430..=10_570).contains(&c)), "{counts:?}");
        assert_eq!(draw.bits(TEST, 5), draw.bits(TEST, 5));
        assert_ne!(draw.bits(TEST, 5), draw.bits(Purpose::new("other"), 5));
        assert_ne!(draw.part(0).bits(TEST, 5), draw.part(1).bits(TEST, 5));
    }

    #[test]
    fn a_stream_has_the_numbers_of_its_purpose() {
        let draw = Draw::new(7, Purpose::new("host"), 3);
        assert_eq!(draw.bits(TEST, 5), 0x7b88_00c9_0083_b335, "pinned: every digest depends on it");
        assert_eq!(draw.stream(TEST).bits(5), draw.bits(TEST, 5));
        assert_eq!(draw.stream(TEST).below(5, 36), draw.below(TEST, 5, 36));
        assert_ne!(draw.stream(TEST).bits(5), draw.stream(TEST).bits(6));
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_rounds_differ() {
        let draw = Draw::new(1, Purpose::new("host"), 0);
        let shuffled = |round| {
            let mut items: Vec<u32> = (0..36).collect();
            draw.shuffle(TEST, round, &mut items);
            items
        };
        let mut sorted = shuffled(0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..36).collect::<Vec<_>>());
        assert_ne!(shuffled(0), shuffled(1));
    }
}
