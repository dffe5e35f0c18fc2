//! [`Cutoffs`]: which size of message goes to which priority level, and how that follows from a
//! workload (specs/homa.md#6).

/// The most levels there can be.
const LEVELS_MAX: usize = 8;

/// Upper bounds of message sizes, bytes, of each level but the last, which has no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    bounds: [u64; LEVELS_MAX],
    levels: u8,
}

impl Cutoffs {
    /// One level for messages up to each of `bounds`, inclusive, and one for all others. `None` if
    /// there are more than seven bounds, or one that is not greater than the one before.
    #[must_use]
    pub fn new(bounds: &[u64]) -> Option<Self> {
        if bounds.len() >= LEVELS_MAX || bounds.windows(2).any(|pair| pair[0] >= pair[1]) {
            return None;
        }
        let mut all = [u64::MAX; LEVELS_MAX];
        all[..bounds.len()].copy_from_slice(bounds);
        // At most eight.
        Some(Self { bounds: all, levels: bounds.len() as u8 + 1 })
    }

    /// How many levels there are.
    #[must_use]
    pub const fn levels(&self) -> u8 {
        self.levels
    }

    /// The upper bounds, without that of the last level.
    #[must_use]
    pub fn bounds(&self) -> &[u64] {
        &self.bounds[..usize::from(self.levels) - 1]
    }

    /// The level of `size` bytes.
    #[must_use]
    #[inline]
    pub fn level(&self, size: u64) -> u8 {
        // At most seven.
        self.bounds().iter().filter(|&&bound| size > bound).count() as u8
    }

    /// Bounds with which `levels` levels (1 to 8) carry equal bytes of a workload: of a share `.1`
    /// of messages the size is `.0`; sizes ascend, shares sum up to 1. `None` for another number of
    /// levels.
    ///
    /// The rule of OM ("STATIC_CBF_GRADUATED"): a packet counts with its bytes on the wire for what
    /// is left of its message there, if it is among the first or last `wire.cap` bytes of it, and
    /// each grant for size zero.
    #[must_use]
    pub fn of_workload(sizes: &[(u64, f64)], levels: u8, wire: &Wire) -> Option<Self> {
        if !(1..=LEVELS_MAX).contains(&usize::from(levels)) {
            return None;
        }
        let mut counted: Vec<(u64, f64)> = Vec::new();
        for &(size, share) in sizes {
            wire.count(size, |left, bytes| counted.push((left, share * bytes as f64)));
        }
        counted.sort_by_key(|(left, _)| *left);
        let all: f64 = counted.iter().map(|(_, bytes)| bytes).sum();
        let (mut bounds, mut below) = (Vec::new(), 0.0);
        for (i, &(left, bytes)) in counted.iter().enumerate() {
            below += bytes;
            if counted.get(i + 1).is_some_and(|(next, _)| *next == left) {
                continue;
            }
            // Rounding of the sums must not move a bound.
            let reached = below / all * f64::from(levels) + 1e-9;
            let next = bounds.len() as f64 + 1.0;
            if bounds.len() + 1 < usize::from(levels) && reached >= next && left > 0 {
                bounds.push(left);
            }
        }
        Self::new(&bounds)
    }
}

/// How messages of a workload are cut and what they take on the wire, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Payload of a full packet.
    pub payload: u16,
    /// Bytes beside the payload.
    pub header: u16,
    /// Bytes of a grant.
    pub grant: u16,
    /// Payload that leaves unscheduled.
    pub unscheduled: u64,
    /// So many bytes at the start and at the end of a message count.
    pub cap: u64,
}

impl Wire {
    /// Tell of each packet of a message of `size` bytes what is left of the message, and its bytes
    /// on the wire; and of all its grants together.
    fn count(&self, size: u64, mut tell: impl FnMut(u64, u64)) {
        let (payload, header) = (u64::from(self.payload.max(1)), u64::from(self.header));
        let packets = size.div_ceil(payload);
        let all = size + packets * header;
        let unscheduled = self.unscheduled.div_ceil(payload);
        tell(0, packets.saturating_sub(unscheduled) * u64::from(self.grant));
        let full = payload + header;
        // Those between the first and the last that count are left out at once.
        let head = self.cap.div_ceil(full).min(packets);
        let tail = packets.saturating_sub(self.cap / full + 2).max(head);
        for n in (0..head).chain(tail..packets) {
            let (left, ahead) = (size - n * payload, n * full);
            if ahead < self.cap || all - ahead < self.cap {
                tell(left, left.min(payload) + header);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_the_first_level_that_it_fits() {
        let cutoffs = Cutoffs::new(&[11, 131]).unwrap();
        assert_eq!(
            [0, 11, 12, 131, 132, u64::MAX].map(|size| cutoffs.level(size)),
            [0, 0, 1, 1, 2, 2]
        );
        assert_eq!(Cutoffs::new(&[]).unwrap().level(7), 0);
        assert_eq!((Cutoffs::new(&[5, 5]), Cutoffs::new(&[1, 2, 3, 4, 5, 6, 7, 8])), (None, None));
    }

    /// Of two sizes with equally many bytes, one level each.
    #[test]
    fn bytes_are_halved_by_hand() {
        let wire = Wire { payload: 1000, header: 0, grant: 0, unscheduled: 9000, cap: 1 << 40 };
        // 1000 and 250 B, four times as many of the latter.
        let sizes = [(250, 0.8), (1000, 0.2)];
        assert_eq!(Cutoffs::of_workload(&sizes, 2, &wire).unwrap().bounds(), [250]);
        // Of one of 2500 B, packets count for 2500, 1500 and 500 B left: 1000, 1000 and 500 B.
        let sizes = [(2500, 1.0)];
        assert_eq!(Cutoffs::of_workload(&sizes, 5, &wire).unwrap().bounds(), [500, 1500, 2500]);
        assert_eq!(Cutoffs::of_workload(&sizes, 9, &wire), None);
    }
}
