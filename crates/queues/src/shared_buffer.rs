//! The memory that all ports of a switch share, with dynamic thresholds: a queue may grow while it
//! holds less than `alpha` times what is free. A. Choudhury, E. Hahne, "Dynamic queue length
//! thresholds for shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998;
//! what the switches of the DCTCP paper do (SIGCOMM'10, sections 2.3 and 4).
//!
//! n queues that always have more to take come to rest at `alpha * size / (1 + n * alpha)` each,
//! and leave `size / (1 + n * alpha)` free, for a queue that begins to grow. The caller keeps the
//! queues, asks before a packet joins one, and tells of every change. Memory is counted in bytes on
//! the wire; switches count cells of some hundred bytes.

/// Parameters of a [`SharedBuffer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedBufferSpec {
    /// Memory of one switch, bytes.
    pub size: u32,
    /// What a queue may hold, over what is free. Above 0.
    pub alpha: f64,
}

/// The memory of one switch.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    spec: SharedBufferSpec,
    used: u32,
    stats: SharedBufferStats,
}

/// What has become of a switch's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedBufferStats {
    /// The most bytes in use.
    pub max_bytes: u32,
    /// Packets that found their queue at its threshold, while there was room for them in the
    /// memory.
    pub over_threshold: u64,
    /// Packets that found no room for them in the memory.
    pub exhausted: u64,
}

impl SharedBuffer {
    /// Nothing is in use.
    #[must_use]
    pub fn new(spec: SharedBufferSpec) -> Self {
        Self { spec, used: 0, stats: SharedBufferStats::default() }
    }

    /// Whether a packet of `len` bytes may join a queue that holds `queued` bytes. If not, it is
    /// counted as lost.
    pub fn admits(&mut self, queued: u32, len: u16) -> bool {
        let free = self.spec.size.saturating_sub(self.used);
        let fits = u32::from(len) <= free;
        let below = f64::from(queued) < self.spec.alpha * f64::from(free);
        self.stats.exhausted += u64::from(!fits);
        self.stats.over_threshold += u64::from(fits && !below);
        fits && below
    }

    /// A queue held `before` bytes and holds `after` bytes now.
    ///
    /// # Errors
    /// A sentence, if more is in use than there is, or less than nothing.
    pub fn change(&mut self, before: u32, after: u32) -> Result<(), String> {
        let used = (self.used.checked_add(after)).and_then(|sum| sum.checked_sub(before));
        let Some(used) = used.filter(|&used| used <= self.spec.size) else {
            let (held, size) = (self.used, self.spec.size);
            return Err(format!(
                "a shared buffer of {size} bytes held {held} when a queue in it went from {before} \
                 to {after}"
            ));
        };
        self.used = used;
        self.stats.max_bytes = self.stats.max_bytes.max(used);
        Ok(())
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }

    /// What has become of the memory so far.
    #[must_use]
    pub fn stats(&self) -> SharedBufferStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u16 = 1000;

    /// Offer a packet to queue `n`, which has room of its own.
    fn try_enqueue(buffer: &mut SharedBuffer, queues: &mut [u32], n: usize) -> bool {
        let admitted = buffer.admits(queues[n], PACKET);
        if admitted {
            let after = queues[n] + u32::from(PACKET);
            buffer.change(queues[n], after).unwrap();
            queues[n] = after;
        }
        admitted
    }

    /// The paper's fixed point, for numbers of queues and alphas that switches have.
    #[test]
    fn queues_that_want_everything_get_the_same_share_and_leave_one_free() {
        let size = 4_000_000;
        for alpha in [0.125, 0.5, 1.0, 2.0, 8.0] {
            for n in [1, 2, 7, 31] {
                let mut buffer = SharedBuffer::new(SharedBufferSpec { size, alpha });
                let mut queues = vec![0; n];
                while (0..n).filter(|&queue| try_enqueue(&mut buffer, &mut queues, queue)).count()
                    > 0
                {}
                let share = alpha * f64::from(size) / (1.0 + n as f64 * alpha);
                for &queue in &queues {
                    // What does not come out in packets, the others' share of it included.
                    let off = (f64::from(queue) - share).abs();
                    assert!(off <= 2.0 * f64::from(PACKET), "{n} at {alpha}: {queue}, not {share}");
                }
                let free = f64::from(size - buffer.used());
                assert!((free - share / alpha).abs() <= 2.0 * n as f64 * f64::from(PACKET));
                assert!(buffer.stats().over_threshold > 0);
                assert_eq!(buffer.stats().exhausted, 0);
            }
        }
    }

    /// Served in turn while they take what they can, queues stay at their shares, and one that
    /// joins them gets as much: those that have too much wait until they have not.
    #[test]
    fn a_new_queue_comes_to_its_share_while_the_others_give_way() {
        let spec = SharedBufferSpec { size: 1_000_000, alpha: 1.0 };
        let mut buffer = SharedBuffer::new(spec);
        let mut queues = [0; 4];
        let mut round = |active: usize| {
            for n in 0..active {
                for _ in 0..3 {
                    try_enqueue(&mut buffer, &mut queues, n);
                }
                if queues[n] > 0 {
                    buffer.change(queues[n], queues[n] - u32::from(PACKET)).unwrap();
                    queues[n] -= u32::from(PACKET);
                }
            }
            queues
        };
        let rest = |queues: &[u32], share: u32| {
            queues.iter().all(|queue| queue.abs_diff(share) <= 3 * u32::from(PACKET))
        };
        let three = (0..2000).map(|_| round(3)).last().unwrap();
        assert!(rest(&three[..3], 250_000), "{three:?}");
        let four = (0..2000).map(|_| round(4)).last().unwrap();
        assert!(rest(&four, 200_000), "{four:?}");
    }

    #[test]
    fn what_is_lost_for_want_of_memory_and_at_the_threshold_are_told_apart() {
        let spec = SharedBufferSpec { size: 10_500, alpha: 1000.0 };
        let (mut buffer, mut queues) = (SharedBuffer::new(spec), [0, 0]);
        let joined = (0..20).filter(|_| try_enqueue(&mut buffer, &mut queues, 0)).count();
        assert_eq!((joined, buffer.used()), (10, 10_000), "as many as fit");
        let full = SharedBufferStats { max_bytes: 10_000, over_threshold: 0, exhausted: 10 };
        assert_eq!(buffer.stats(), full);
        assert!(!try_enqueue(&mut buffer, &mut queues, 1), "not even the first of an empty queue");
        buffer.change(10_000, 0).unwrap();
        assert_eq!((buffer.used(), buffer.stats().max_bytes), (0, 10_000));

        let mut strict = SharedBuffer::new(SharedBufferSpec { alpha: 0.25, ..spec });
        let joined = (0..9).filter(|_| try_enqueue(&mut strict, &mut queues, 1)).count();
        // 2000 is less than a quarter of 8500, 3000 is not less than a quarter of 7500.
        assert_eq!((joined, strict.stats().over_threshold), (3, 6));
    }

    #[test]
    fn more_than_there_is_and_less_than_nothing_are_errors() {
        let mut buffer = SharedBuffer::new(SharedBufferSpec { size: 5000, alpha: 1.0 });
        assert!(buffer.change(0, 5001).is_err());
        buffer.change(0, 5000).unwrap();
        assert!(buffer.change(5001, 0).is_err());
        assert!(buffer.change(0, u32::MAX).is_err());
        assert_eq!(buffer.used(), 5000);
    }
}
