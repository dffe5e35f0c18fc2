//! Where things are, by key.

use std::hash::Hash;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A hash map that keeps its latest answer at hand: packets of one message come in runs.
#[derive(Debug)]
pub(crate) struct Index<K, V> {
    map: HashMap<K, V, FxBuildHasher>,
    /// An entry of `map`.
    latest: Option<(K, V)>,
}

impl<K: Copy + Eq + Hash, V: Copy> Index<K, V> {
    pub(crate) const fn new() -> Self {
        Self { map: HashMap::with_hasher(FxBuildHasher), latest: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    #[inline]
    pub(crate) fn get(&mut self, key: K) -> Option<V> {
        if self.latest.is_none_or(|(latest, _)| latest != key) {
            self.look_up(key)?;
        }
        self.latest.map(|(_, value)| value)
    }

    /// The same without remembering the answer.
    pub(crate) fn peek(&self, key: K) -> Option<V> {
        self.map.get(&key).copied()
    }

    /// The latest answer.
    pub(crate) fn latest(&self) -> Option<V> {
        self.latest.map(|(_, value)| value)
    }

    /// Make the entry of `key` the latest answer.
    #[inline(never)]
    fn look_up(&mut self, key: K) -> Option<()> {
        self.latest = Some((key, *self.map.get(&key)?));
        Some(())
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.latest = None;
        self.map.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: K) {
        self.latest = None;
        self.map.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_answer_is_never_an_old_one() {
        let mut index = Index::new();
        index.insert(1, 'a');
        index.insert(2, 'b');
        assert_eq!((index.get(1), index.get(1), index.get(2)), (Some('a'), Some('a'), Some('b')));
        index.insert(2, 'c');
        assert_eq!(index.get(2), Some('c'));
        index.remove(2);
        assert_eq!((index.get(2), index.get(1), index.len()), (None, Some('a'), 1));
    }
}
