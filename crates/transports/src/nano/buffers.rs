//! Buffers of a few fixed sizes (specs/nanotransport.md#5.1,6.2).

use super::config::{SizeClass, WORD};

/// One that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Its size, as a place in [`Config::buffers`](super::Config::buffers).
    pub(super) class: u8,
    /// Its start in the NIC's memory, in words.
    pub(super) pointer: u16,
}

/// Which buffers are free.
#[derive(Debug)]
pub(super) struct Buffers {
    /// Of each class, whether the n-th is in use.
    used: Vec<Vec<bool>>,
}

impl Buffers {
    pub(super) fn new(classes: &[SizeClass]) -> Self {
        Self { used: vec![Vec::new(); classes.len()] }
    }

    /// The smallest free buffer that holds `len` bytes, the first of its class.
    pub(super) fn take(&mut self, classes: &[SizeClass], len: u64) -> Option<Buffer> {
        let mut start = 0_u32;
        for (at, (class, used)) in classes.iter().zip(&mut self.used).enumerate() {
            let free = used.iter().position(|used| !used).unwrap_or(used.len());
            if u64::from(class.bytes) >= len && free < usize::from(class.count) {
                if free == used.len() {
                    used.push(true);
                }
                used[free] = true;
                // Below 2^16: there are no more words (`Config::check`).
                let pointer = (start + free as u32 * words(class)) as u16;
                return Some(Buffer { class: at as u8, pointer });
            }
            start += words(class) * u32::from(class.count);
        }
        None
    }

    /// `buffer` is free again.
    pub(super) fn give_back(&mut self, classes: &[SizeClass], buffer: Buffer) {
        let before = &classes[..usize::from(buffer.class)];
        let start: u32 = before.iter().map(|class| words(class) * u32::from(class.count)).sum();
        let words = words(&classes[usize::from(buffer.class)]);
        let place = (u32::from(buffer.pointer) - start) / words;
        self.used[usize::from(buffer.class)][place as usize] = false;
    }

    /// How many are in use.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.used.iter().flatten().filter(|used| **used).count()
    }
}

/// Words of a buffer.
fn words(class: &SizeClass) -> u32 {
    u32::from(class.bytes / WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_fits_and_larger_ones_when_those_are_out() {
        let classes = [SizeClass { bytes: 1024, count: 2 }, SizeClass { bytes: 38_912, count: 1 }];
        let mut buffers = Buffers::new(&classes);
        let taken: Vec<Option<Buffer>> =
            [1024, 0, 7, 1025].map(|len| buffers.take(&classes, len)).to_vec();
        let buffer = |class, pointer| Some(Buffer { class, pointer });
        assert_eq!(taken, [buffer(0, 0), buffer(0, 16), buffer(1, 32), None]);
        buffers.give_back(&classes, Buffer { class: 0, pointer: 16 });
        buffers.give_back(&classes, Buffer { class: 1, pointer: 32 });
        assert_eq!(buffers.in_use(), 1);
        assert_eq!(buffers.take(&classes, 1), buffer(0, 16), "the first that is free");
        assert_eq!(buffers.take(&classes, 38_912), buffer(1, 32));
        assert_eq!(buffers.take(&classes, 38_913), None);
    }

    /// All 65 536 words that a header can name.
    #[test]
    fn as_much_memory_as_pointers_reach() {
        let classes = [SizeClass { bytes: 32_768, count: 128 }];
        let mut buffers = Buffers::new(&classes);
        let taken: Vec<u16> =
            (0..128).filter_map(|_| Some(buffers.take(&classes, 1)?.pointer)).collect();
        assert_eq!((taken.len(), taken[127]), (128, 65_024));
        assert_eq!(buffers.take(&classes, 1), None);
        buffers.give_back(&classes, Buffer { class: 0, pointer: 65_024 });
        assert_eq!(buffers.in_use(), 127);
    }
}
