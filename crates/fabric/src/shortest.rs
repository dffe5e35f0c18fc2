//! The k shortest paths without loops between two switches (what Yen's algorithm finds), every link
//! counting one.
//!
//! That every link counts the same makes it simpler: all paths of one length are found by walking
//! on for as long as the distance that is left allows it. Of equally long paths it is drawn which
//! are taken: any fixed order would prefer some links for all pairs, and that is where queues would
//! be.

use endpoint::{Draw, Purpose};

/// How many paths, and how long.
#[derive(Clone, Copy)]
pub(crate) struct Most {
    pub(crate) paths: usize,
    /// Beyond the shortest.
    pub(crate) stretch: u32,
}

const TIES: Purpose = Purpose::new("paths: ties");

/// The shortest paths between two different switches, shortest first, each as its switches.
/// `distance` is that to `to`.
pub(crate) fn paths(
    neighbours: &[Vec<u32>],
    distance: impl Fn(u32) -> u16,
    from: u32,
    to: u32,
    most: Most,
    draw: Draw,
) -> Vec<Vec<u32>> {
    let shortest = u32::from(distance(from));
    // No path without loops is longer than through all switches.
    let longest = shortest.saturating_add(most.stretch).min(neighbours.len() as u32 - 1);
    let walk = Walk { neighbours, distance, to };
    let mut found = Vec::new();
    for length in shortest..=longest {
        let mut ties = Vec::new();
        walk.on(&mut vec![from], length, &mut ties);
        draw.shuffle(TIES, u64::from(length), &mut ties);
        found.extend(ties);
        if found.len() >= most.paths {
            found.truncate(most.paths);
            break;
        }
    }
    found
}

struct Walk<'a, D> {
    neighbours: &'a [Vec<u32>],
    distance: D,
    to: u32,
}

impl<D: Fn(u32) -> u16> Walk<'_, D> {
    /// Add to `found` every path that begins with `path` and has exactly `left` links more.
    fn on(&self, path: &mut Vec<u32>, left: u32, found: &mut Vec<Vec<u32>>) {
        let Some(&at) = path.last() else { return };
        if left == 0 || at == self.to {
            if left == 0 && at == self.to {
                found.push(path.clone());
            }
            return;
        }
        for &next in &self.neighbours[at as usize] {
            if u32::from((self.distance)(next)) < left && !path.contains(&next) {
                path.push(next);
                self.on(path, left - 1, found);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path without loops, by walking everywhere.
    fn all_paths(neighbours: &[Vec<u32>], path: &mut Vec<u32>, to: u32, all: &mut Vec<Vec<u32>>) {
        let at = path[path.len() - 1];
        if at == to {
            all.push(path.clone());
            return;
        }
        for &next in &neighbours[at as usize] {
            if !path.contains(&next) {
                path.push(next);
                all_paths(neighbours, path, to, all);
                path.pop();
            }
        }
    }

    /// Distances by relaxing every link as often as there are switches.
    fn distances(neighbours: &[Vec<u32>], to: u32) -> Vec<u16> {
        let mut distances = vec![u16::MAX - 1; neighbours.len()];
        distances[to as usize] = 0;
        for _ in neighbours {
            for (at, all) in neighbours.iter().enumerate() {
                let best = all.iter().map(|&next| distances[next as usize] + 1).min();
                distances[at] = distances[at].min(best.unwrap_or(u16::MAX));
            }
        }
        distances
    }

    /// A cube with one diagonal, and a long way round beside it.
    fn graph() -> Vec<Vec<u32>> {
        let links = [
            (0, 1),
            (1, 3),
            (3, 2),
            (2, 0),
            (4, 5),
            (5, 7),
            (7, 6),
            (6, 4),
            (0, 4),
            (1, 5),
            (2, 6),
            (3, 7),
            (0, 7),
            (0, 8),
            (8, 9),
            (9, 10),
            (10, 7),
        ];
        let mut neighbours = vec![Vec::new(); 11];
        for (a, b) in links {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        neighbours
    }

    #[test]
    fn they_are_the_first_of_all_paths_by_length() {
        let graph = graph();
        for (from, to) in (0..11).flat_map(|a| (0..11).map(move |b| (a, b))) {
            if from == to {
                continue;
            }
            let mut all = Vec::new();
            all_paths(&graph, &mut vec![from], to, &mut all);
            all.sort_by_key(Vec::len);
            let distances = distances(&graph, to);
            for (most, stretch) in [(1, 0), (8, 99), (8, 0), (8, 1), (1000, 99)] {
                let limit = Most { paths: most, stretch };
                let draw = Draw::new(1, TIES, 0);
                let found = paths(&graph, |at| distances[at as usize], from, to, limit, draw);
                let longest = all[0].len() + stretch as usize;
                let wanted = all.iter().map(Vec::len).take_while(|&len| len <= longest).take(most);
                assert!(found.iter().map(Vec::len).eq(wanted), "{from} to {to}: {found:?}");
                assert!(found.iter().all(|path| all.contains(path)));
                let distinct: std::collections::BTreeSet<_> = found.iter().collect();
                assert_eq!(distinct.len(), found.len());
            }
        }
    }

    #[test]
    fn every_tie_has_its_chance() {
        let graph = graph();
        let distances = distances(&graph, 5);
        let first = |draw| {
            let most = Most { paths: 1, stretch: 0 };
            paths(&graph, |at| distances[at as usize], 0, 5, most, draw).swap_remove(0)
        };
        let mut counts = std::collections::BTreeMap::new();
        for n in 0..900 {
            *counts.entry(first(Draw::new(1, TIES, n))).or_insert(0) += 1;
        }
        // 0-1-5, 0-4-5, 0-7-5; a standard deviation is 14.
        assert_eq!(counts.len(), 3);
        assert!(counts.values().all(|n| (230..370).contains(n)), "{counts:?}");
    }
}
