//! A table of things that come and go, named by small references that never alias.

/// A reference into a [`Slab`]. It finds nothing once its thing has been removed, even if the
/// place is in use again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotRef {
    index: u32,
    generation: u32,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    /// One number per insertion, so that references stay unique even after the table shrank.
    generation: u32,
}

/// An empty table gives its memory back if it had grown beyond this many places.
const KEEP: usize = 4;

impl SlotRef {
    /// Which place of the table, counted from zero.
    pub(crate) fn index(self) -> u32 {
        self.index
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), generation: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn insert(&mut self, value: T) -> SlotRef {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let index = if let Some(index) = self.free.pop() {
            self.slots[index as usize] = (generation, Some(value));
            index
        } else {
            if self.slots.is_empty() {
                // Many hosts never have more than one; a list begins with room for four.
                self.slots.reserve_exact(1);
            }
            self.slots.push((generation, Some(value)));
            self.slots.len() as u32 - 1
        };
        SlotRef { index, generation }
    }

    /// Have a thing at hand.
    pub(crate) fn prefetch(&self, at: SlotRef) {
        if let Some(slot) = self.slots.get(at.index as usize) {
            endpoint::prefetch::item(slot);
        }
    }

    pub(crate) fn get(&self, at: SlotRef) -> Option<&T> {
        match self.slots.get(at.index as usize) {
            Some((generation, value)) if *generation == at.generation => value.as_ref(),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: SlotRef) -> Option<&mut T> {
        match self.slots.get_mut(at.index as usize) {
            Some((generation, value)) if *generation == at.generation => value.as_mut(),
            _ => None,
        }
    }

    /// What is in a place, if anything is.
    pub(crate) fn at(&self, index: u32) -> Option<SlotRef> {
        let (generation, value) = self.slots.get(index as usize)?;
        value.as_ref().map(|_| SlotRef { index, generation: *generation })
    }

    pub(crate) fn remove(&mut self, at: SlotRef) -> Option<T> {
        let (generation, value) = self.slots.get_mut(at.index as usize)?;
        if *generation != at.generation {
            return None;
        }
        // Not through `?`, which would move the thing twice.
        let value = value.take();
        if value.is_some() {
            self.freed(at);
        }
        value
    }

    /// Remove a thing, of which only what `keep` says is wanted: large ones are not moved.
    #[inline]
    pub(crate) fn remove_but<R>(
        &mut self,
        at: SlotRef,
        keep: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let kept = keep(self.get_mut(at)?);
        self.slots[at.index as usize].1 = None;
        self.freed(at);
        Some(kept)
    }

    /// A place is empty now.
    fn freed(&mut self, at: SlotRef) {
        self.free.push(at.index);
        if self.is_empty() && self.slots.len() > KEEP {
            self.slots = Vec::new();
            self.free = Vec::new();
        }
    }

    /// Everything, by place.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (SlotRef, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(i, (generation, value))| {
            let at = SlotRef { index: i as u32, generation: *generation };
            value.as_mut().map(|value| (at, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_references_find_nothing() {
        let mut slab = Slab::new();
        let refs: Vec<_> = (0..10).map(|i| slab.insert(i)).collect();
        assert_eq!(slab.remove_but(refs[3], |three| *three + 1), Some(4));
        assert_eq!(slab.remove_but(refs[3], |three| *three), None);
        let again = slab.insert(33);
        assert_eq!(again.index, refs[3].index, "the place is reused");
        assert_eq!(slab.get_mut(refs[3]), None);
        assert_eq!(slab.remove(refs[3]), None);
        assert_eq!(slab.get_mut(again), Some(&mut 33));
        for at in refs.iter().chain([&again]) {
            slab.remove(*at);
        }
        assert!(slab.is_empty() && slab.slots.capacity() == 0, "the memory is given back");
        let first = slab.insert(0);
        assert_eq!(slab.get_mut(refs[0]), None, "also after shrinking");
        assert_eq!(slab.get_mut(first), Some(&mut 0));
    }
}
