//! In which order packets arrive that arrive at one instant.

use endpoint::{Draw, Purpose};
use units::Time;

const TIES: Purpose = Purpose::new("fabric: ties");

/// A permutation of links for each instant, drawn from the seed.
#[derive(Clone, Copy)]
pub(crate) struct Ties {
    salt: u64,
    /// The least power of two that is no less than the number of links, less one.
    mask: u32,
    /// Half of its bits.
    half: u32,
}

/// Orders of few links are many enough only among more places than links.
const PLACES_MIN: u32 = 256;

impl Ties {
    pub(crate) fn new(seed: u64, links: u32) -> Self {
        let mask = links.max(PLACES_MIN).next_power_of_two() - 1;
        let salt = Draw::new(seed, TIES, 0).bits(TIES, 0);
        Self { salt, mask, half: mask.count_ones().div_ceil(2) }
    }

    /// Places are below this.
    pub(crate) fn places(self) -> u32 {
        self.mask + 1
    }

    /// The place of the link of `rank` among the arrivals at `at`: no two links have the same. Each
    /// step can be undone in the mask's bits: exclusive or with bits of the instant's hash, a
    /// product with an odd number out of it, upper bits into lower ones.
    #[inline(always)]
    pub(crate) fn place(self, at: Time, rank: u32) -> u32 {
        let hash = (at.0 ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let fold = |place: u32, factor: u64| {
            let place = place.wrapping_mul(factor as u32 | 1) & self.mask;
            place ^ place >> self.half
        };
        let place = (rank ^ (hash >> 40) as u32) & self.mask;
        fold(fold(place, hash >> 8), hash >> 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instant_has_a_permutation() {
        for links in [1, 2, 3, 40, 129, 5000] {
            let ties = Ties::new(1, links);
            for at in 0..50 {
                let mut places: Vec<u32> =
                    (0..ties.places()).map(|rank| ties.place(Time(at * 1_200_000), rank)).collect();
                places.sort_unstable();
                assert!(places.iter().copied().eq(0..ties.places()), "{links} links");
            }
        }
    }

    /// Ten thousand ties of any two links, at instants a frame apart: each wins half of them,
    /// within four standard deviations. Of any three, each order comes a sixth of the time.
    #[test]
    fn ties_are_fair() {
        const TIES: u64 = 10_000;
        for (seed, links) in [(1, 3), (2, 16), (3, 130), (4, 4096)] {
            let ties = Ties::new(seed, links);
            let place = |n: u64, rank| ties.place(Time(n * 1_200_000), rank);
            for (a, b) in [(0, 1), (0, links - 1), (1, 2), (links / 2, links - 1), (2, links / 3)] {
                if a == b {
                    continue;
                }
                let wins = (0..TIES).filter(|&n| place(n, a) < place(n, b)).count() as f64;
                assert!((wins - 5000.0).abs() < 4.0 * 50.0, "{links} links, {a} and {b}: {wins}");
            }
            let firsts = (0..TIES).filter(|&n| {
                let [a, b, c] = [0, 1, 2].map(|rank| place(n, rank));
                a < b && b < c
            });
            let (firsts, mean) = (firsts.count() as f64, TIES as f64 / 6.0);
            assert!((firsts - mean).abs() < 4.0 * (mean * 5.0 / 6.0).sqrt(), "{links}: {firsts}");
        }
    }
}
