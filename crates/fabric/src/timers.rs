//! A binary heap over dense ids in which each id has at most one key, which can be moved.

/// Ids ordered by (key, id).
#[derive(Clone, Debug)]
pub(crate) struct IndexedHeap<K> {
    heap: Vec<(K, u32)>,
    /// Where each id is in `heap`; `ABSENT` if it is not.
    position: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl<K: Ord + Copy> IndexedHeap<K> {
    pub(crate) const fn new() -> Self {
        Self { heap: Vec::new(), position: Vec::new() }
    }

    /// Give `id` this key, whether or not it has one.
    pub(crate) fn set(&mut self, id: u32, key: K) {
        if self.position.len() <= id as usize {
            self.position.resize(id as usize + 1, ABSENT);
        }
        let at = self.position[id as usize];
        if at == ABSENT {
            self.heap.push((key, id));
            self.up(self.heap.len() - 1);
        } else {
            let at = at as usize;
            let earlier = key < self.heap[at].0;
            self.heap[at].0 = key;
            if earlier { self.up(at) } else { self.down(at) }
        }
    }

    /// Forget `id`.
    pub(crate) fn remove(&mut self, id: u32) {
        let Some(&at) = self.position.get(id as usize) else { return };
        if at == ABSENT {
            return;
        }
        let at = at as usize;
        self.position[id as usize] = ABSENT;
        let moved = self.heap.pop();
        if let Some(moved) = moved.filter(|_| at < self.heap.len()) {
            self.heap[at] = moved;
            self.position[moved.1 as usize] = at as u32;
            self.up(at);
            self.down(at);
        }
    }

    /// The least.
    pub(crate) fn peek(&self) -> Option<(K, u32)> {
        self.heap.first().copied()
    }

    /// Change every key by `change`, which keeps their order.
    pub(crate) fn change_all(&mut self, change: impl Fn(K) -> K) {
        self.heap.iter_mut().for_each(|(key, _)| *key = change(*key));
    }

    fn up(&mut self, mut at: usize) {
        let item = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= item {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, item);
    }

    fn down(&mut self, mut at: usize) {
        let item = self.heap[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if item <= self.heap[child] {
                break;
            }
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, item);
    }

    fn put(&mut self, at: usize, item: (K, u32)) {
        self.heap[at] = item;
        self.position[item.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_sorted_set() {
        let mut heap = IndexedHeap::new();
        let mut set: BTreeSet<(u64, u32)> = BTreeSet::new();
        let draw = endpoint::Draw::new(1, endpoint::Purpose::new("test"), 0);
        let purpose = endpoint::Purpose::new("heap");
        for n in 0..20_000 {
            let id = draw.below(purpose, 3 * n, 50) as u32;
            set.retain(|&(_, i)| i != id);
            match draw.below(purpose, 3 * n + 1, 3) {
                0 => heap.remove(id),
                _ => {
                    let key = draw.below(purpose, 3 * n + 2, 100);
                    heap.set(id, key);
                    set.insert((key, id));
                }
            }
            assert_eq!(heap.peek(), set.first().copied());
        }
    }
}
