//! Message buffers of fixed size classes with their free lists, and lists of free ids
//! (specs/nanotransport.md#5.1).

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Bytes of a message that fits, at most 65535 (the header has 16 bits).
    pub bytes: u32,
    /// How many buffers.
    pub buffers: u16,
}

/// A buffer that a message has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Where it begins, in words of 64 bytes: the buffers of all classes one after another.
    pub ptr: u16,
    /// Its class.
    pub class: u8,
}

/// Bytes of a word of the message RAM: 512 bits.
pub const WORD: u32 = 64;

impl SizeClass {
    /// Words of one buffer.
    const fn words(self) -> u32 {
        self.bytes.div_ceil(WORD)
    }
}

/// Words of all buffers of `classes`.
#[must_use]
pub fn words(classes: &[SizeClass]) -> u64 {
    classes.iter().map(|c| u64::from(c.words()) * u64::from(c.buffers)).sum()
}

/// Numbers from zero, the lowest free one first.
#[derive(Debug)]
pub struct FreeList {
    /// Bit i of word w: number 64 w + i is free.
    free: Vec<u64>,
    left: u16,
}

impl FreeList {
    /// `n` numbers, all free.
    #[must_use]
    pub fn new(n: u16) -> Self {
        let mut list = Self { free: vec![0; usize::from(n).div_ceil(64)], left: 0 };
        (0..n).for_each(|i| list.give(i));
        list
    }

    /// The lowest, if any is free.
    pub fn take(&mut self) -> Option<u16> {
        let at = self.free.iter().position(|&word| word != 0)?;
        let bit = self.free[at].trailing_zeros();
        self.free[at] &= self.free[at] - 1;
        self.left -= 1;
        Some(at as u16 * 64 + bit as u16)
    }

    /// Number `i`, which was taken, is free again.
    pub fn give(&mut self, i: u16) {
        if let Some(word) = self.free.get_mut(usize::from(i) / 64) {
            let bit = 1 << (i % 64);
            self.left += u16::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// How many are free.
    #[must_use]
    pub const fn left(&self) -> u16 {
        self.left
    }
}

/// The buffers of one direction.
#[derive(Debug)]
pub struct Buffers {
    classes: Vec<SizeClass>,
    /// First word of each class.
    bases: Vec<u32>,
    free: Vec<FreeList>,
}

impl Buffers {
    /// All free.
    #[must_use]
    pub fn new(classes: &[SizeClass]) -> Self {
        let mut next = 0;
        let bases = classes.iter().map(|c| {
            let base = next;
            next += c.words() * u32::from(c.buffers);
            base
        });
        Self {
            bases: bases.collect(),
            free: classes.iter().map(|c| FreeList::new(c.buffers)).collect(),
            classes: classes.to_vec(),
        }
    }

    /// A buffer for a message of `len` bytes, of the smallest class that is large enough and has
    /// one.
    pub fn take(&mut self, len: u32) -> Option<Buffer> {
        let fits = |&c: &usize| self.classes[c].bytes >= len && self.free[c].left() > 0;
        let class = (0..self.classes.len()).filter(fits).min_by_key(|&c| self.classes[c].bytes)?;
        let index = self.free[class].take()?;
        let ptr = self.bases[class] + u32::from(index) * self.classes[class].words();
        Some(Buffer { ptr: ptr as u16, class: class as u8 })
    }

    /// `buffer`, which was taken, is free again.
    pub fn give(&mut self, buffer: Buffer) {
        let class = usize::from(buffer.class);
        let (Some(sizes), Some(base)) = (self.classes.get(class), self.bases.get(class)) else {
            return;
        };
        let index = (u32::from(buffer.ptr) - base) / sizes.words().max(1);
        self.free[class].give(index as u16);
    }

    /// Buffers that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        let all = self.classes.iter().map(|c| usize::from(c.buffers)).sum::<usize>();
        all - self.free.iter().map(|list| usize::from(list.left())).sum::<usize>()
    }

    /// The longest message that any class can hold, bytes.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.classes.iter().map(|c| c.bytes).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: [SizeClass; 2] =
        [SizeClass { bytes: 38_912, buffers: 2 }, SizeClass { bytes: 1_000, buffers: 1 }];

    #[test]
    fn the_smallest_class_that_is_large_enough_and_has_one() {
        let mut buffers = Buffers::new(&CLASSES);
        let small = buffers.take(1_000).unwrap();
        // Behind two buffers of 608 words.
        assert_eq!(small, Buffer { ptr: 1_216, class: 1 });
        let next = buffers.take(10).unwrap();
        assert_eq!(next, Buffer { ptr: 0, class: 0 }, "the small class is empty");
        assert_eq!(buffers.take(38_912), Some(Buffer { ptr: 608, class: 0 }));
        assert_eq!((buffers.take(1), buffers.taken()), (None, 3));
        buffers.give(small);
        assert_eq!(buffers.take(1_001), None, "too small for it");
        assert_eq!(buffers.take(1), Some(small));
    }

    #[test]
    fn no_class_is_large_enough() {
        assert_eq!(Buffers::new(&CLASSES).take(38_913), None);
        assert_eq!(Buffers::new(&CLASSES).longest(), 38_912);
    }

    /// The prototype: 16 messages of 38 packets are 622 592 bytes (specs/nanotransport.md#5.1).
    #[test]
    fn the_message_ram_of_the_prototype() {
        let class = SizeClass { bytes: 38_912, buffers: 16 };
        assert_eq!(words(&[class]) * 64, 622_592);
    }

    #[test]
    fn ids_are_given_lowest_first() {
        let mut ids = FreeList::new(70);
        assert_eq!(
            (0..70).map(|_| ids.take()).collect::<Option<Vec<_>>>(),
            Some((0..70).collect())
        );
        assert_eq!((ids.take(), ids.left()), (None, 0));
        ids.give(69);
        ids.give(3);
        ids.give(3);
        assert_eq!((ids.left(), ids.take(), ids.take(), ids.take()), (2, Some(3), Some(69), None));
    }
}
