//! [`Share`]: what one workload takes of a traffic matrix that several share, such as the third of
//! a permutation that carries long flows while the rest carries short ones.

use std::ops::Range;
use std::sync::Arc;

use endpoint::{Draw, Purpose};

use crate::matrix::Pair;

const ORDER: Purpose = Purpose::new("workload.portion");

/// How far a share may be from the number it stands for: 0.29 x 100 is not 28.
const ROUNDING: f64 = 1e-6;

/// Some of the pairs of a matrix. The pairs are put into an order once, by a draw, and the shares
/// are consecutive stretches of it, so that each is a uniform choice among what the ones before it
/// left.
#[derive(Clone, Debug)]
pub struct Share {
    /// The whole matrix.
    matrix: Arc<[Pair]>,
    /// Which of it this share has.
    taken: Range<usize>,
    /// Which part of the matrix this share and those before it have together.
    shares: f64,
}

/// Why a share cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ShareError {
    /// More than there is.
    #[error("together with those before it, this share comes to {0}, which is more than all")]
    MoreThanAll(f64),
    /// No pair would send.
    #[error("no pair is left, or the share of so few pairs comes to none")]
    Empty,
}

impl Share {
    /// All of `matrix`, in its own order.
    #[must_use]
    pub fn whole(matrix: Vec<Pair>) -> Self {
        Self { taken: 0..matrix.len(), matrix: matrix.into(), shares: 1.0 }
    }

    /// The share `share` of `matrix`, drawn; of a fraction of a pair, nothing.
    ///
    /// # Errors
    /// A share that comes to no pair, or to more than all.
    pub fn drawn(mut matrix: Vec<Pair>, share: f64, draw: Draw) -> Result<Self, ShareError> {
        draw.shuffle(ORDER, 0, &mut matrix);
        Self { matrix: matrix.into(), taken: 0..0, shares: 0.0 }.rest(Some(share))
    }

    /// Of the pairs that this share and those before it left: so many as are the share `share` of
    /// the whole matrix (shares that come to 1 are all of it, whatever the fractions), or
    /// all.
    ///
    /// # Errors
    /// A share that comes to no pair, or to more than is left; nothing left.
    pub fn rest(&self, share: Option<f64>) -> Result<Self, ShareError> {
        let shares = share.map_or(1.0, |share| self.shares + share);
        if shares > 1.0 + ROUNDING {
            return Err(ShareError::MoreThanAll(shares));
        }
        let pairs = self.matrix.len();
        let end = ((shares * pairs as f64 + ROUNDING) as usize).min(pairs);
        let taken = self.taken.end..end;
        if taken.is_empty() {
            return Err(ShareError::Empty);
        }
        Ok(Self { matrix: Arc::clone(&self.matrix), taken, shares })
    }

    /// Whether some of its pairs are `other`'s, too, of the same matrix.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mine, others) = (&self.taken, &other.taken);
        Arc::ptr_eq(&self.matrix, &other.matrix)
            && mine.start < others.end
            && others.start < mine.end
    }

    /// The pairs.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        self.matrix.get(self.taken.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use units::HostId;

    use super::*;

    fn draw(seed: u64) -> Draw {
        Draw::new(seed, Purpose::new("test"), 0)
    }

    /// Each host sends to the next.
    fn ring(hosts: u32) -> Vec<Pair> {
        (0..hosts).map(|host| (HostId(host), HostId((host + 1) % hosts))).collect()
    }

    fn sorted(shares: &[&Share]) -> Vec<Pair> {
        let mut all: Vec<Pair> = shares.iter().flat_map(|p| p.pairs()).copied().collect();
        all.sort_unstable();
        all
    }

    /// specs/mptcp.md#6: 33 % of 512 hosts; the published script takes 512 * 33 / 100 in integers,
    /// 168.
    #[test]
    fn a_third_and_the_rest_are_the_whole() -> Result<(), ShareError> {
        let long = Share::drawn(ring(512), 0.33, draw(1))?;
        let short = long.rest(None)?;
        assert_eq!((long.pairs().len(), short.pairs().len()), (168, 344));
        assert_eq!(sorted(&[&long, &short]), ring(512));
        let other = Share::drawn(ring(512), 0.33, draw(2))?;
        assert_ne!(sorted(&[&long]), sorted(&[&other]));
        Ok(())
    }

    #[test]
    fn shares_are_of_the_whole_and_leave_no_gap() -> Result<(), ShareError> {
        let first = Share::drawn(ring(7), 0.3, draw(1))?;
        let second = first.rest(Some(0.3))?;
        let third = second.rest(Some(0.4))?;
        // 2.1, 4.2 and 7 pairs, counted from the beginning.
        assert_eq!([&first, &second, &third].map(|p| p.pairs().len()), [2, 2, 3]);
        assert_eq!(sorted(&[&first, &second, &third]), ring(7));
        assert!(!first.overlaps(&second) && !second.overlaps(&third));
        let rest = first.rest(None)?;
        assert!(rest.overlaps(&second) && third.overlaps(&rest) && !rest.overlaps(&first));
        assert!(!rest.overlaps(&Share::whole(ring(7))), "another matrix");
        assert_eq!(Share::drawn(ring(100), 0.29, draw(1))?.pairs().len(), 29);
        assert_eq!(Share::whole(ring(5)).pairs(), ring(5));
        Ok(())
    }

    #[test]
    fn every_pair_is_as_likely_as_the_others() -> Result<(), ShareError> {
        let mut counts = [0u32; 8];
        for seed in 0..4000 {
            for (src, _) in Share::drawn(ring(8), 0.25, draw(seed))?.pairs() {
                counts[src.index()] += 1;
            }
        }
        // 4000 draws of 2 in 8: 1000 each, sigma 27.
        assert!(counts.iter().all(|count| count.abs_diff(1000) < 110), "{counts:?}");
        Ok(())
    }

    #[test]
    fn impossible_shares_are_errors() -> Result<(), ShareError> {
        let half = Share::drawn(ring(4), 0.5, draw(1))?;
        assert_eq!(half.rest(Some(0.75)).err(), Some(ShareError::MoreThanAll(1.25)));
        assert_eq!(half.rest(Some(0.1)).err(), Some(ShareError::Empty));
        assert_eq!(half.rest(None)?.rest(None).err(), Some(ShareError::Empty));
        assert_eq!(Share::whole(ring(4)).rest(None).err(), Some(ShareError::Empty));
        Ok(())
    }
}
