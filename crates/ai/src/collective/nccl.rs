//! Which algorithm NCCL would take for a size: its model of latency and bandwidth
//! (specs/ai-jobs.md#2).

use super::Algorithm;
use crate::graph::Op;

/// A group as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Its ranks.
    pub ranks: u32,
    /// Its hosts.
    pub hosts: u32,
    /// What a ring carries: the rate of a host's links, or of the scale-up domain if there is one
    /// host; GB/s.
    pub bus: f64,
}

/// NCCL's protocols, as far as they are modelled here.
#[derive(Clone, Copy)]
enum Protocol {
    /// Low latency: a flag with each 4 bytes.
    Ll,
    /// Large messages.
    Simple,
}

/// A latency of each algorithm and protocol, in microseconds: LL and Simple.
struct Latency {
    tree: [f64; 2],
    ring: [f64; 2],
}

/// What a collective costs before any hop (specs/ai-jobs.md#2.2).
const BASE: Latency = Latency { tree: [4.4, 0.0], ring: [3.6, 8.4] };
/// A hop within a host.
const NVLINK: Latency = Latency { tree: [0.52, 28.0], ring: [0.47, 3.4] };
/// A hop between hosts.
const NET: Latency = Latency { tree: [5.0, 50.0], ring: [2.7, 9.6] };

/// The share of its bandwidth that a tree reaches, for vectors of 64 B and each power of two above
/// (specs/ai-jobs.md#2.3).
const TREE_SHARE: [[f64; 22]; 2] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.6,
        0.6, 0.7, 0.8, 0.9,
    ],
];

/// The algorithm for `op` with `bytes`.
#[must_use]
pub fn choose(op: Op, shape: Shape, bytes: u64) -> Algorithm {
    if op != Op::AllReduce || shape.ranks < 2 {
        return Algorithm::Ring;
    }
    let least = |time: fn(Shape, u64, Protocol) -> f64| {
        time(shape, bytes, Protocol::Ll).min(time(shape, bytes, Protocol::Simple))
    };
    if least(tree_us) < least(ring_us) { Algorithm::Tree } else { Algorithm::Ring }
}

/// How long a ring takes, microseconds.
fn ring_us(shape: Shape, bytes: u64, protocol: Protocol) -> f64 {
    let Shape { ranks, hosts, bus } = shape;
    let p = protocol as usize;
    let steps = f64::from(2 * (ranks - 1));
    let between = f64::from(2 * (hosts - 1));
    let bus = match protocol {
        Protocol::Ll => bus / 4.0,
        Protocol::Simple => bus,
    };
    let mut latency = BASE.ring[p]
        + (steps - between) * within(NVLINK.ring[p], shape, protocol)
        + between * NET.ring[p];
    let is_long = bytes as f64 >= f64::from(ranks) / 16.0 * 65_536.0;
    if matches!(protocol, Protocol::Simple) && hosts > 1 && is_long {
        latency *= 1.9;
    }
    latency + us(bytes, bus * f64::from(ranks) / steps)
}

/// How long a tree takes, microseconds.
fn tree_us(shape: Shape, bytes: u64, protocol: Protocol) -> f64 {
    let Shape { ranks, hosts, bus } = shape;
    let p = protocol as usize;
    let most = if hosts > 2 { 80.0 } else { 110.0 };
    let bus = (bus * 0.9).min(most);
    let bus = match protocol {
        Protocol::Ll => bus / 3.8,
        Protocol::Simple => bus,
    };
    let chain = f64::from(ranks / hosts) - 1.0;
    let levels = f64::from(hosts.ilog2());
    let hops = chain * within(NVLINK.tree[p], shape, protocol) + levels * NET.tree[p];
    let size = (bytes >> 6).max(1).ilog2() as usize;
    let share = TREE_SHARE[p].get(size).copied().unwrap_or(1.0);
    BASE.tree[p] + 2.0 * hops + us(bytes, bus * 0.5 * share)
}

/// The latency of a hop within a host.
fn within(latency: f64, shape: Shape, protocol: Protocol) -> f64 {
    if shape.hosts > 1 && matches!(protocol, Protocol::Ll) { latency * 1.8 } else { latency }
}

/// How long `bytes` take at `rate` GB/s, microseconds.
fn us(bytes: u64, rate: f64) -> f64 {
    bytes as f64 / (1_000.0 * rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the formulas of specs/ai-jobs.md#2 for 16 ranks on 16 hosts at 12.5 GB/s.
    #[test]
    fn times_by_hand() {
        let shape = Shape { ranks: 16, hosts: 16, bus: 12.5 };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        // 3.6 + 30 x 2.7, and 1024 B at 12.5 / 4 x 16/30 GB/s.
        close(ring_us(shape, 1_024, Protocol::Ll), 84.6 + 0.6144);
        // (8.4 + 30 x 9.6) x 1.9, and 2^30 B at 12.5 x 16/30 GB/s.
        close(ring_us(shape, 1 << 30, Protocol::Simple), 563.16 + 161_061.273_6);
        // 4.4 + 2 x 4 x 5, and 1024 B (share 0.9) at 12.5 x 0.9 / 3.8 / 2 GB/s.
        close(tree_us(shape, 1_024, Protocol::Ll), 44.4 + 1.024 * 7.6 / 11.25 / 0.9);
        // 2 x 4 x 50, and 2^20 B (share 0.5) at 5.625 GB/s.
        close(tree_us(shape, 1 << 20, Protocol::Simple), 400.0 + 1_048.576 / 5.625 / 0.5);
    }

    #[test]
    fn small_vectors_go_over_trees_and_large_ones_over_rings() {
        let shape = Shape { ranks: 128, hosts: 16, bus: 50.0 };
        let at = |bytes| choose(Op::AllReduce, shape, bytes);
        assert_eq!(at(1 << 10), Algorithm::Tree);
        assert_eq!(at(1 << 33), Algorithm::Ring);
        let changes = (6..34).filter(|&n| at(1 << n) != at(1 << (n + 1))).count();
        assert!(changes % 2 == 1, "{changes} changes");
        assert_eq!(choose(Op::AllGather, shape, 1), Algorithm::Ring);
        assert_eq!(choose(Op::AllReduce, Shape { ranks: 1, ..shape }, 1), Algorithm::Ring);
    }
}
