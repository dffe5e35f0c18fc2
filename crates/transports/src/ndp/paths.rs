//! Which path the next packet takes (specs/ndp.md#6).
//!
//! Paths are asked whether they are up when they are about to be used, so a change of routes takes
//! effect with the next packet and no list has to be rebuilt.
//!
//! The scoreboard of a message is made when its second round of paths begins, and counts from then
//! on: what it judges has been used a hundred times, and short messages in large fabrics, which
//! never come round, need no memory for it.

use endpoint::{Draw, NetView, Purpose, Stream};
use units::HostId;

use super::config::{Config, PathStrategy, ScoreboardRule};
use super::scoreboard::{Outcome, Scoreboard};

const DATA_PATH: Purpose = Purpose::new("ndp data path");
const CONTROL_PATH: Purpose = Purpose::new("ndp control path");

/// Paths beyond this many to one host stay unused (indices are kept in 16 bits).
const PATHS_MAX: u32 = 1 << 16;

/// The data packets of one message.
#[derive(Debug)]
pub(crate) struct PathWalk {
    strategy: PathStrategy,
    dst: HostId,
    /// How many paths there are.
    paths: u32,
    draws: Stream,
    /// How many draws have been used.
    drawn: u64,
    /// Permute: the paths; those before `cursor` have been used in this round.
    order: Vec<u16>,
    /// Permute: where in `order` the round stands.
    cursor: usize,
    /// Single: the path in use.
    single: Option<u32>,
    /// Permute: who sits out, if anybody may.
    rule: ScoreboardRule,
    /// What is known of the paths, once it counts.
    board: Option<Box<Scoreboard>>,
}

impl PathWalk {
    /// The walk of one message; `order` is memory to use.
    pub(crate) fn new(
        config: &Config,
        net: &NetView<'_>,
        dst: HostId,
        draw: Draw,
        mut order: Vec<u16>,
    ) -> Self {
        let strategy = config.paths;
        let paths = net.paths(dst).clamp(1, PATHS_MAX);
        order.clear();
        let mut rule = ScoreboardRule::Off;
        if strategy == PathStrategy::Permute && paths > 1 {
            order.extend((0..paths).map(|p| p as u16));
            rule = config.scoreboard;
        }
        let draws = draw.stream(DATA_PATH);
        let (cursor, single, board) = (0, None, None);
        Self { strategy, dst, paths, draws, drawn: 0, order, cursor, single, rule, board }
    }

    /// Have at hand where the round stands.
    pub(crate) fn prefetch(&self) {
        if let Some(path) = self.order.get(self.cursor) {
            endpoint::prefetch::item(path);
        }
    }

    /// The memory given to `new`.
    pub(crate) fn into_memory(self) -> Vec<u16> {
        self.order
    }

    /// What became of a packet that took `path`.
    #[inline(always)]
    pub(crate) fn note(&mut self, path: u16, outcome: Outcome) {
        if let Some(board) = &mut self.board {
            board.note(path, outcome);
        } else if self.drawn > u64::from(self.paths) && self.rule != ScoreboardRule::Off {
            self.open_board(path, outcome);
        }
    }

    #[cold]
    fn open_board(&mut self, path: u16, outcome: Outcome) {
        let board = Box::new(Scoreboard::new(self.order.len(), self.rule));
        self.board.insert(board).note(path, outcome);
    }

    /// The next packet's path; not `avoid` if there is another that is up (specs/ndp.md#5.5: a
    /// packet is sent again on another path). A single path stays the same.
    #[inline(always)]
    pub(crate) fn next(&mut self, net: &NetView<'_>, avoid: Option<u32>) -> u32 {
        if self.paths == 1 {
            return 0;
        }
        if self.strategy == PathStrategy::Single {
            return self.single(net);
        }
        let path = self.candidate(avoid);
        if avoid != Some(path) && net.path_up(self.dst, path) && !self.sits_out(path) {
            return path;
        }
        self.another(net, avoid, true)
            .or_else(|| self.another(net, avoid, false))
            .unwrap_or_else(|| first_up(net, self.dst, self.paths))
    }

    /// The first candidate was not good: try as many as make up two rounds, or, not `judging`,
    /// whoever is up.
    #[cold]
    fn another(&mut self, net: &NetView<'_>, avoid: Option<u32>, judging: bool) -> Option<u32> {
        for _ in 0..2 * self.paths {
            let path = self.candidate(avoid);
            let good = avoid != Some(path) && net.path_up(self.dst, path);
            if good && !(judging && self.sits_out(path)) {
                return Some(path);
            }
        }
        None
    }

    /// Whether the scoreboard has `path` miss this turn.
    #[inline(always)]
    fn sits_out(&mut self, path: u32) -> bool {
        self.board.as_mut().is_some_and(|board| board.sits_out(path as u16))
    }

    #[inline(always)]
    fn candidate(&mut self, avoid: Option<u32>) -> u32 {
        match self.strategy {
            PathStrategy::Permute => self.permuted(avoid),
            PathStrategy::Random | PathStrategy::Single => self.drawn_below(self.paths),
        }
    }

    /// The path in use, or another if it has broken.
    #[inline(never)]
    fn single(&mut self, net: &NetView<'_>) -> u32 {
        if let Some(path) = self.single.filter(|&path| net.path_up(self.dst, path)) {
            return path;
        }
        let path = self.drawn_below(self.paths);
        let up =
            if net.path_up(self.dst, path) { Some(path) } else { self.another(net, None, false) };
        self.single = up.or(self.single);
        up.unwrap_or_else(|| first_up(net, self.dst, self.paths))
    }

    fn drawn_below(&mut self, bound: u32) -> u32 {
        self.drawn += 1;
        self.draws.below(self.drawn, u64::from(bound)) as u32
    }

    /// One step of Fisher-Yates: a uniform choice among the paths not used in this round. `avoid`
    /// stays in the round unless it is the last one there.
    #[inline(always)]
    fn permuted(&mut self, avoid: Option<u32>) -> u32 {
        if self.cursor == self.order.len() {
            self.cursor = 0;
        }
        let at = self.cursor;
        self.cursor += 1;
        let rest = self.paths - at as u32;
        let chosen = at + self.drawn_below(rest) as usize;
        self.order.swap(at, chosen);
        if avoid == Some(u32::from(self.order[at])) && rest > 1 {
            let other = at + 1 + self.drawn_below(rest - 1) as usize;
            self.order.swap(at, other);
        }
        u32::from(self.order[at])
    }
}

#[cold]
fn first_up(net: &NetView<'_>, dst: HostId, paths: u32) -> u32 {
    (0..paths).find(|&p| net.path_up(dst, p)).unwrap_or(0)
}

/// The control packets of one message: an independent draw for each, or always the same path under
/// [`PathStrategy::Single`].
#[derive(Debug)]
pub(crate) struct ControlPaths {
    strategy: PathStrategy,
    to: HostId,
    /// How many paths there are.
    paths: u32,
    draws: Stream,
}

/// Draws for one control packet before they are given up: misses all of half the paths once in
/// 65536.
const TRIES: u64 = 16;

impl ControlPaths {
    pub(crate) fn new(strategy: PathStrategy, net: &NetView<'_>, to: HostId, draw: Draw) -> Self {
        Self { strategy, to, paths: net.paths(to), draws: draw.stream(CONTROL_PATH) }
    }

    /// The path of the `n`-th control packet.
    #[inline(always)]
    pub(crate) fn path(&self, net: &NetView<'_>, n: u64) -> u32 {
        if self.paths <= 1 {
            return 0;
        }
        let path = self.drawn(n, 0);
        if net.path_up(self.to, path) { path } else { self.another(net, n) }
    }

    /// The first draw gave a broken path.
    #[cold]
    fn another(&self, net: &NetView<'_>, n: u64) -> u32 {
        (1..TRIES)
            .map(|attempt| self.drawn(n, attempt))
            .find(|&path| net.path_up(self.to, path))
            .unwrap_or_else(|| first_up(net, self.to, self.paths))
    }

    fn drawn(&self, n: u64, attempt: u64) -> u32 {
        let n = if self.strategy == PathStrategy::Single { 0 } else { n };
        self.draws.below(n.wrapping_mul(TRIES) + attempt, u64::from(self.paths)) as u32
    }
}

#[cfg(test)]
mod tests {
    use endpoint::Routes;
    use units::{Dur, Rate};

    use super::*;

    struct Fabric {
        paths: u32,
        down: Vec<u32>,
    }

    impl Routes for Fabric {
        fn paths(&self, _: HostId, _: HostId) -> u32 {
            self.paths
        }
        fn path_up(&self, _: HostId, _: HostId, path: u32) -> bool {
            !self.down.contains(&path)
        }
        fn hops(&self, _: HostId, _: HostId) -> u32 {
            2
        }
        fn base_rtt(&self, _: HostId, _: HostId) -> Dur {
            Dur::ZERO
        }
    }

    const NICS: [Rate; 1] = [Rate(10_000_000_000)];
    const DST: HostId = HostId(1);

    fn view(routes: &Fabric) -> NetView<'_> {
        NetView { me: HostId(0), nics: &NICS, mtu: 9064, whole: false, lateness: Dur::ZERO, routes }
    }

    fn walk(strategy: PathStrategy, fabric: &Fabric) -> PathWalk {
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let config = Config { paths: strategy, ..Config::paper(9000) };
        PathWalk::new(&config, &view(fabric), DST, draw, Vec::new())
    }

    /// A bad path sits out as many rounds as it is charged; every other path is used once in each.
    #[test]
    fn rounds_go_on_without_a_bad_path() {
        let fabric = Fabric { paths: 4, down: vec![] };
        let mut walk = walk(PathStrategy::Permute, &fabric);
        let round = |walk: &mut PathWalk, n: usize| {
            let mut used: Vec<_> = (0..n).map(|_| walk.next(&view(&fabric), None)).collect();
            used.sort_unstable();
            used
        };
        assert_eq!(round(&mut walk, 4), [0, 1, 2, 3]);
        walk.note(2, Outcome::Loss);
        assert!(walk.board.is_none(), "no memory in the first round");
        assert_eq!(round(&mut walk, 4), [0, 1, 2, 3]);
        (0..3).for_each(|_| walk.note(2, Outcome::Loss));
        for _ in 0..3 {
            assert_eq!(round(&mut walk, 3), [0, 1, 3]);
        }
        assert_eq!(round(&mut walk, 4), [0, 1, 2, 3], "then it has a chance");
    }

    /// The guard: with all that work judged bad, they are used in turn all the same.
    #[test]
    fn bad_paths_are_better_than_dead_ones() {
        let fabric = Fabric { paths: 4, down: vec![1, 3] };
        let mut walk = walk(PathStrategy::Permute, &fabric);
        (0..4).for_each(|_| assert!(walk.next(&view(&fabric), None) < 4));
        for path in [0, 2] {
            (0..200).for_each(|_| walk.note(path, Outcome::Loss));
        }
        let mut used = [0; 4];
        for _ in 0..40 {
            used[walk.next(&view(&fabric), None) as usize] += 1;
        }
        assert!(used[0] > 10 && used[2] > 10 && used[0] + used[2] == 40, "{used:?}");
        assert_eq!(walk.next(&view(&fabric), Some(0)), 2);
    }

    /// I7: per round each usable path appears once; rounds differ.
    #[test]
    fn permute_uses_each_path_once_per_round() {
        let fabric = Fabric { paths: 36, down: vec![3, 35] };
        let mut walk = walk(PathStrategy::Permute, &fabric);
        let mut rounds = Vec::new();
        for _ in 0..50 {
            let round: Vec<_> = (0..34).map(|_| walk.next(&view(&fabric), None)).collect();
            let mut sorted = round.clone();
            sorted.sort_unstable();
            let usable: Vec<_> = (0..36).filter(|p| !fabric.down.contains(p)).collect();
            assert_eq!(sorted, usable);
            assert!(!rounds.contains(&round));
            rounds.push(round);
        }
    }

    #[test]
    fn permutations_are_uniform() {
        let fabric = Fabric { paths: 3, down: vec![] };
        let mut walk = walk(PathStrategy::Permute, &fabric);
        let mut counts = [0u32; 27];
        for _ in 0..6000 {
            let index = (0..3).fold(0, |sum, _| sum * 3 + walk.next(&view(&fabric), None));
            counts[index as usize] += 1;
        }
        // Six permutations, 1000 each, standard deviation 29; five of them.
        let seen: Vec<_> = counts.iter().filter(|&&n| n > 0).collect();
        assert_eq!(seen.len(), 6);
        assert!(seen.iter().all(|&&n| (855..=1145).contains(&n)), "{seen:?}");
    }

    #[test]
    fn a_path_to_avoid_is_avoided_and_stays_in_its_round() {
        let fabric = Fabric { paths: 4, down: vec![] };
        let mut walk = walk(PathStrategy::Permute, &fabric);
        for _ in 0..100 {
            let first = walk.next(&view(&fabric), Some(2));
            assert_ne!(first, 2);
            let mut round = vec![first];
            round.extend((0..3).map(|_| walk.next(&view(&fabric), None)));
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3]);
        }
        let alone = Fabric { paths: 4, down: vec![0, 1, 3] };
        assert_eq!(walk.next(&view(&alone), Some(2)), 2, "there is no other");
    }

    /// Edge case 11.
    #[test]
    fn with_one_path_all_strategies_are_equal() {
        let fabric = Fabric { paths: 1, down: vec![] };
        for strategy in [PathStrategy::Permute, PathStrategy::Random, PathStrategy::Single] {
            let mut walk = walk(strategy, &fabric);
            for avoid in [None, Some(0)] {
                assert_eq!(walk.next(&view(&fabric), avoid), 0);
            }
            assert!(walk.order.is_empty(), "no memory");
        }
    }

    #[test]
    fn a_single_path_stays_until_it_breaks() {
        let fabric = Fabric { paths: 8, down: vec![] };
        let mut walk = walk(PathStrategy::Single, &fabric);
        let first = walk.next(&view(&fabric), None);
        assert!((0..20).all(|_| walk.next(&view(&fabric), Some(first)) == first));
        let broken = Fabric { paths: 8, down: vec![first] };
        let second = walk.next(&view(&broken), None);
        assert_ne!(second, first);
        assert_eq!(walk.next(&view(&fabric), None), second, "and does not flap back");
    }

    #[test]
    fn control_packets_keep_to_working_paths() {
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let fabric = Fabric { paths: 8, down: vec![0, 1, 2, 4, 5, 6, 7] };
        let paths = ControlPaths::new(PathStrategy::Random, &view(&fabric), DST, draw);
        assert!((0..100).all(|n| paths.path(&view(&fabric), n) == 3));
        let whole = Fabric { paths: 8, down: vec![] };
        let path = |strategy, n| {
            ControlPaths::new(strategy, &view(&whole), DST, draw).path(&view(&whole), n)
        };
        let single = path(PathStrategy::Single, 0);
        assert!((0..20).all(|n| path(PathStrategy::Single, n) == single));
        assert!((0..20).any(|n| path(PathStrategy::Permute, n) != single));
    }
}
