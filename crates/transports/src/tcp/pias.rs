//! PIAS: what a message has sent says how urgent its packets are (W. Bai, L. Chen, K. Chen, D. Han,
//! C. Tian, H. Wang, "Information-agnostic flow scheduling for commodity data centers", NSDI 2015,
//! section 4; specs/pfabric.md#6). Nobody needs to know how long a message will be.

/// The bytes after which packets of a message go in a lower class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demotion {
    thresholds: [u64; 7],
    count: u8,
}

impl Demotion {
    /// One class lower beyond each of these positions in the message; `None` unless they are one to
    /// seven and ascend.
    #[must_use]
    pub fn new(thresholds: &[u64]) -> Option<Self> {
        if !(1..=7).contains(&thresholds.len()) || !thresholds.is_sorted() {
            return None;
        }
        let mut all = [u64::MAX; 7];
        all[..thresholds.len()].copy_from_slice(thresholds);
        Some(Self { thresholds: all, count: thresholds.len() as u8 })
    }

    /// How many classes there are below the first.
    #[must_use]
    pub const fn steps(&self) -> u8 {
        self.count
    }

    /// How many classes a packet goes below the first whose payload begins at `offset`: it is not
    /// demoted at the threshold itself (specs/pfabric.md#6).
    #[must_use]
    pub fn steps_at(&self, offset: u64) -> u8 {
        let thresholds = self.thresholds.iter().take(usize::from(self.count));
        thresholds.take_while(|&&threshold| offset > threshold).count() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_threshold_passed_is_a_class_lower() {
        let demotion = Demotion::new(&[1000, 5000, 5000, 20_000]).unwrap();
        let steps = [0, 1000, 1001, 5000, 5001, 20_000, 20_001, u64::MAX];
        assert_eq!(steps.map(|offset| demotion.steps_at(offset)), [0, 0, 1, 1, 3, 3, 4, 4]);
        assert_eq!(demotion.steps(), 4);
    }

    #[test]
    fn seven_ascending_thresholds_at_most() {
        assert!(Demotion::new(&[]).is_none());
        assert!(Demotion::new(&[2, 1]).is_none());
        assert!(Demotion::new(&[1; 8]).is_none());
        assert!(Demotion::new(&[u64::MAX; 7]).is_some());
    }
}
