//! What the models of both sides share: packets of messages, size classes, deadlines.

/// Packets of a message of `len` bytes.
pub(crate) const fn packets(len: u16) -> u32 {
    if len == 0 { 1 } else { len.div_ceil(1024) as u32 }
}

/// The packets below `end`.
pub(crate) const fn below(end: u32) -> u64 {
    if end >= 64 { u64::MAX } else { (1 << end) - 1 }
}

/// A buffer: its class and its place there.
pub(crate) type Buffer = (usize, usize);

/// Message buffers by size class (rule 6).
pub(crate) struct Buffers {
    /// Bytes of each class.
    bytes: Vec<u32>,
    free: Vec<Vec<bool>>,
}

impl Buffers {
    pub(crate) fn new(classes: &[(u32, usize)]) -> Self {
        Self {
            bytes: classes.iter().map(|(bytes, _)| *bytes).collect(),
            free: classes.iter().map(|(_, buffers)| vec![true; *buffers]).collect(),
        }
    }

    /// The buffer that a message of `len` bytes would get.
    pub(crate) fn find(&self, len: u16) -> Option<Buffer> {
        let fits =
            |class: &usize| self.bytes[*class] >= len.into() && self.free[*class].contains(&true);
        let class = (0..self.bytes.len()).filter(fits).min_by_key(|class| self.bytes[*class])?;
        Some((class, self.free[class].iter().position(|free| *free)?))
    }

    pub(crate) fn set_free(&mut self, (class, place): Buffer, free: bool) {
        self.free[class][place] = free;
    }

    /// Its first word.
    pub(crate) fn ptr(&self, (class, place): Buffer) -> u16 {
        let words = |class: usize| self.bytes[class].div_ceil(64);
        let before = (0..class).map(|class| words(class) * self.free[class].len() as u32);
        (before.sum::<u32>() + words(class) * place as u32) as u16
    }
}

/// The parameters of size classes.
pub(crate) fn class_parameters(classes: &[(u32, usize)]) -> [(&'static str, String); 3] {
    let list = |values: Vec<u32>| {
        let digits = values.iter().rev().map(|value| format!("{value:08x}"));
        format!("{}'h{}", 32 * values.len(), digits.collect::<String>())
    };
    [
        ("Classes", classes.len().to_string()),
        ("ClassBytes", list(classes.iter().map(|(bytes, _)| *bytes).collect())),
        ("ClassBuffers", list(classes.iter().map(|(_, buffers)| *buffers as u32).collect())),
    ]
}

/// The slot that is looked at in a cycle (C4), of `ids`.
pub(crate) const fn look(now: u64, ids: usize) -> Option<usize> {
    if now.is_multiple_of(2) { Some((now / 2) as usize % ids) } else { None }
}
