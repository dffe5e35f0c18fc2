//! Collectives played with symbols: who has added what, byte by byte.

use endpoint::{Draw, Purpose};

use super::*;
use crate::graph::Rank;

/// For each byte of a vector, how often each member's value is in it.
type Vector = Vec<Vec<u8>>;

struct Play {
    moves: Vec<Moves>,
    vectors: Vec<Vector>,
    /// By member and move: whether it is over.
    over: Vec<Vec<bool>>,
    begun: Vec<Vec<bool>>,
    /// On their way: receiver, its move, what is sent, and sender with its move.
    wire: Vec<(usize, usize, Vector, (usize, usize))>,
}

/// `count` members on hosts with `per_host` of them.
fn group(count: usize, per_host: usize) -> Vec<u32> {
    (0..count).map(|member| (member / per_host) as u32).collect()
}

impl Play {
    fn new(
        (algorithm, op, root): (Algorithm, Op, usize),
        hosts: &[u32],
        cut: Cut,
        bytes: usize,
        holds: &dyn Fn(usize, usize) -> bool,
    ) -> Self {
        let of = |me| Member { me, hosts, cut }.moves(algorithm, op, root, bytes as u64).unwrap();
        let count = hosts.len();
        let moves: Vec<Moves> = (0..count).map(of).collect();
        let vector = |me: usize| {
            let byte = |at| (0..count).map(|n| u8::from(n == me && holds(me, at))).collect();
            (0..bytes).map(byte).collect()
        };
        let flags = || moves.iter().map(|m| vec![false; m.as_slice().len()]).collect();
        let (over, begun) = (flags(), flags());
        Self { vectors: (0..count).map(vector).collect(), over, begun, wire: Vec::new(), moves }
    }

    /// The receive for `sent`, a send of `from`: as many are before it there as here.
    fn counterpart(&self, from: usize, sent: usize) -> usize {
        let list = self.moves[from].as_slice();
        let to = list[sent].peer;
        let before = list[..sent].iter().filter(|m| m.act == Act::Send && m.peer == to).count();
        let others = self.moves[to as usize].as_slice();
        let is_from = |m: &Move| matches!(m.act, Act::Reduce | Act::Copy) && m.peer == from as u32;
        let mut receives = (0..others.len()).filter(|&at| is_from(&others[at]));
        receives.nth(before).expect("a receive for each send")
    }

    /// Begin all that can begin.
    fn begin(&mut self) -> bool {
        let mut any = false;
        for me in 0..self.moves.len() {
            for at in 0..self.moves[me].as_slice().len() {
                let m = self.moves[me].as_slice()[at];
                let can = !self.begun[me][at] && m.after().all(|n| self.over[me][n as usize]);
                if !can {
                    continue;
                }
                (self.begun[me][at], any) = (true, true);
                let range = m.offset as usize..(m.offset + m.bytes) as usize;
                match m.act {
                    Act::Send => {
                        let (to, there) = (m.peer as usize, self.counterpart(me, at));
                        let got = self.moves[to].as_slice()[there];
                        assert_eq!(got.bytes, m.bytes, "{me} to {to}");
                        let sent = self.vectors[me][range].to_vec();
                        self.wire.push((to, there, sent, (me, at)));
                    }
                    Act::Join => self.over[me][at] = true,
                    Act::Reduce | Act::Copy => {}
                }
            }
        }
        any
    }

    /// A message of the wire arrives.
    fn arrive(&mut self, which: usize) {
        let (to, there, sent, (from, at)) = self.wire.swap_remove(which);
        let m = self.moves[to].as_slice()[there];
        assert!(!self.over[to][there], "one message for each receive");
        for (n, value) in sent.into_iter().enumerate() {
            let byte = &mut self.vectors[to][m.offset as usize + n];
            match m.act {
                Act::Copy => *byte = value,
                Act::Reduce => byte.iter_mut().zip(value).for_each(|(sum, one)| *sum += one),
                Act::Send | Act::Join => panic!("{m:?} receives"),
            }
        }
        self.over[to][there] = true;
        self.over[from][at] = true;
    }

    /// To the end, messages arriving in an order drawn with `seed`.
    fn run(mut self, seed: u64) -> Vec<Vector> {
        let draw = Draw::new(seed, Purpose::new("test"), 0);
        let mut n = 0;
        while self.begin() || !self.wire.is_empty() {
            if !self.wire.is_empty() {
                n += 1;
                let which = draw.below(Purpose::new("order"), n, self.wire.len() as u64);
                self.arrive(which as usize);
            }
        }
        assert!(self.over.iter().flatten().all(|over| *over), "all moves are over");
        self.vectors
    }
}

const CUTS: [Cut; 3] = [
    Cut::WHOLE,
    Cut { channels: 3, chunk: 4, in_flight: 2 },
    Cut { channels: 1, chunk: 1, in_flight: 1 },
];

/// Play `op` with every cut, with sizes that divide and that do not, in several orders.
fn each(
    algorithm: Algorithm,
    op: Op,
    hosts: &[u32],
    holds: &dyn Fn(usize, usize, Whole) -> bool,
    check: &dyn Fn(&[Vector], Whole),
) {
    let count = hosts.len();
    for cut in CUTS {
        for bytes in [1, count, 3 * count + 1, 40] {
            for seed in 0..3 {
                let root = if let Op::Broadcast { root } = op { root.0 as usize } else { 0 };
                let what = (algorithm, op, root);
                let whole = Whole { bytes, count, channels: cut.channels.into() };
                let play = Play::new(what, hosts, cut, bytes, &|me, at| holds(me, at, whole));
                check(&play.run(seed), whole);
            }
        }
    }
}

/// How a vector is divided.
#[derive(Clone, Copy)]
struct Whole {
    bytes: usize,
    count: usize,
    channels: u64,
}

impl Whole {
    /// The member whose part of its channel has byte `at`.
    fn owner(self, at: usize) -> usize {
        let has = |part: Part| (part.offset..part.offset + part.bytes).contains(&(at as u64));
        let whole = Part { offset: 0, bytes: self.bytes as u64 };
        let mut channels = (0..self.channels).map(|n| whole.nth(n, self.channels));
        let channel = channels.find(|part| has(*part)).unwrap();
        let part = |n: &usize| has(channel.nth(*n as u64, self.count as u64));
        (0..self.count).find(part).unwrap()
    }
}

#[test]
fn after_an_all_reduce_every_member_has_every_value_once() {
    let everything = |_: usize, _: usize, _: Whole| true;
    let check = |vectors: &[Vector], _: Whole| {
        for byte in vectors.iter().flatten() {
            assert!(byte.iter().all(|times| *times == 1), "{byte:?}");
        }
    };
    for count in 1..=17 {
        let hosts = group(count, 1);
        for algorithm in [
            Algorithm::Ring,
            Algorithm::Tree,
            Algorithm::HalvingDoubling,
            Algorithm::Direct,
            Algorithm::Hierarchical,
        ] {
            each(algorithm, Op::AllReduce, &hosts, &everything, &check);
        }
    }
    for (count, per_host) in [(4, 2), (6, 3), (12, 4), (8, 8), (16, 2)] {
        let hosts = group(count, per_host);
        each(Algorithm::Hierarchical, Op::AllReduce, &hosts, &everything, &check);
    }
    // Ranks on alternating hosts.
    each(Algorithm::Hierarchical, Op::AllReduce, &[5, 9, 5, 9, 5, 9], &everything, &check);
}

#[test]
fn parts_are_summed_and_gathered() {
    for count in 1..=17_usize {
        let hosts = group(count, 1);
        let everything = |_: usize, _: usize, _: Whole| true;
        let summed = |vectors: &[Vector], whole: Whole| {
            for at in 0..whole.bytes {
                let byte = &vectors[whole.owner(at)][at];
                assert!(byte.iter().all(|times| *times == 1), "{byte:?}");
            }
        };
        let own = |me: usize, at: usize, whole: Whole| whole.owner(at) == me;
        let gathered = |vectors: &[Vector], whole: Whole| {
            for (at, byte) in vectors.iter().flat_map(|vector| vector.iter().enumerate()) {
                let expected = (0..count).map(|n| u8::from(n == whole.owner(at)));
                assert!(byte.iter().copied().eq(expected), "{byte:?}");
            }
        };
        for algorithm in [Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Direct] {
            if algorithm == Algorithm::HalvingDoubling && !count.is_power_of_two() {
                continue;
            }
            each(algorithm, Op::ReduceScatter, &hosts, &everything, &summed);
            each(algorithm, Op::AllGather, &hosts, &own, &gathered);
        }
    }
}

#[test]
fn a_broadcast_gives_all_what_the_root_has() {
    for count in 1..=17_usize {
        for root in [0, count / 2, count - 1] {
            let op = Op::Broadcast { root: Rank(root as u32) };
            let check = |vectors: &[Vector], _: Whole| {
                for byte in vectors.iter().flatten() {
                    assert!((0..count).all(|n| byte[n] == u8::from(n == root)), "{byte:?}");
                }
            };
            for algorithm in [Algorithm::Ring, Algorithm::Tree] {
                each(algorithm, op, &group(count, 1), &|me, _, _| me == root, &check);
            }
        }
    }
}

/// Bytes that each member sends each other.
fn sent(algorithm: Algorithm, op: Op, hosts: &[u32], cut: Cut, bytes: u64) -> Vec<Vec<u64>> {
    let of = |me| Member { me, hosts, cut }.moves(algorithm, op, 0, bytes).unwrap();
    let mut all = vec![vec![0; hosts.len()]; hosts.len()];
    for (me, sent) in all.iter_mut().enumerate() {
        for m in of(me).as_slice().iter().filter(|m| m.act == Act::Send) {
            sent[m.peer as usize] += m.bytes;
        }
    }
    all
}

#[test]
fn an_all_to_all_gives_each_pair_its_part() {
    for count in 2..=17_usize {
        let hosts = group(count, 1);
        each(Algorithm::Direct, Op::AllToAll, &hosts, &|_, _, _| true, &|_, _| {});
        for cut in CUTS {
            for bytes in [0, 5, 17 * 16 * 5, 1_003] {
                let pairs = sent(Algorithm::Ring, Op::AllToAll, &hosts, cut, bytes);
                let (low, high) = (bytes / count as u64, bytes.div_ceil(count as u64));
                let channels = u64::from(cut.channels);
                for (from, to) in (0..count).flat_map(|n| (0..count).map(move |m| (n, m))) {
                    let bytes = pairs[from][to];
                    let fair = bytes + channels > low && bytes < high + channels;
                    assert!(if from == to { bytes == 0 } else { fair }, "{from} {to} {bytes}");
                }
            }
        }
    }
}

/// What each algorithm sends: the bytes of the literature (specs/ai-jobs.md#1).
#[test]
fn members_send_what_the_forms_say() {
    let bytes = 16 * 15 * 1_000;
    let most = |algorithm, op| {
        let all = sent(algorithm, op, &group(16, 4), Cut::WHOLE, bytes);
        all.iter().map(|sent| sent.iter().sum::<u64>()).max().unwrap()
    };
    for algorithm in [Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Direct] {
        assert_eq!(most(algorithm, Op::AllReduce), 2 * bytes * 15 / 16, "{algorithm:?}");
        assert_eq!(most(algorithm, Op::ReduceScatter), bytes * 15 / 16, "{algorithm:?}");
        assert_eq!(most(algorithm, Op::AllGather), bytes * 15 / 16, "{algorithm:?}");
    }
    // A parent of two in one tree sends two halves down and one up, and one up in the other.
    assert_eq!(most(Algorithm::Tree, Op::AllReduce), 2 * bytes);
    assert_eq!(most(Algorithm::Ring, Op::AllToAll), bytes * 15 / 16);
    // Between hosts only a quarter of the vector for each rank, 3/4 of it twice.
    let all = sent(Algorithm::Hierarchical, Op::AllReduce, &group(16, 4), Cut::WHOLE, bytes);
    let outside = (0..16).filter(|to| to / 4 != 0).map(|to| all[0][to]).sum::<u64>();
    assert_eq!(outside, 2 * (bytes / 4) * 3 / 4);
    assert_eq!(all[0].iter().sum::<u64>() - outside, 2 * bytes * 3 / 4);
}

#[test]
fn a_barrier_holds_all_until_the_last_has_come() {
    for count in 2..=17_usize {
        let hosts = group(count, 1);
        for late in 0..count {
            let what = (Algorithm::Ring, Op::Barrier, 0);
            let mut play = Play::new(what, &hosts, CUTS[1], 0, &|_, _| true);
            // It does not begin.
            play.begun[late].fill(true);
            while play.begin() || !play.wire.is_empty() {
                if !play.wire.is_empty() {
                    play.arrive(0);
                }
            }
            for (member, over) in play.over.iter().enumerate() {
                assert!(member == late || over.iter().any(|over| !over), "{member} of {count}");
            }
        }
    }
}

#[test]
fn groups_that_do_not_suit() {
    let moves = |algorithm, op, hosts: &[u32], cut| {
        Member { me: 0, hosts, cut }.moves(algorithm, op, 0, 1 << 40).err().map(|e| e.to_string())
    };
    let halving = Algorithm::HalvingDoubling;
    assert_eq!(
        moves(halving, Op::AllGather, &group(6, 1), Cut::WHOLE).unwrap(),
        "halving-doubling all-gather needs a power of two of ranks, and the group has 6"
    );
    assert_eq!(
        moves(Algorithm::Hierarchical, Op::AllReduce, &group(7, 3), Cut::WHOLE).unwrap(),
        "a hierarchical all-reduce needs equally many ranks of its group on each host: there are \
         3 and 1"
    );
    let cut = Cut { chunk: 1_000, ..Cut::WHOLE };
    let chunks = moves(Algorithm::Ring, Op::AllReduce, &group(4, 1), cut).unwrap();
    assert!(chunks.starts_with("chunks of 1000 bytes"), "{chunks}");
    assert_eq!(moves(Algorithm::Ring, Op::AllReduce, &group(4, 1), Cut::WHOLE), None);
}
