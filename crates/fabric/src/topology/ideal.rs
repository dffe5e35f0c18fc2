//! Ideal completion times: how long a message takes that is alone in the fabric.

use endpoint::{Framing, Routes, UNBOUNDED};
use units::{Dur, HostId, Rate};

use super::Topology;

impl Topology {
    /// The time for a message of `len` bytes alone in the fabric, from its submission to the
    /// arrival of its last byte, when its packets leave back to back: the ideal completion time.
    /// With links of different rates, or paths of different lengths, the best path's. With `spray`,
    /// consecutive packets may take different paths.
    #[must_use]
    pub fn ideal(&self, src: HostId, dst: HostId, len: u64, framing: Framing, spray: bool) -> Dur {
        if len == UNBOUNDED {
            return Dur::ZERO;
        }
        let payload = u64::from(framing.payload).max(1);
        let packets = len.div_ceil(payload).max(1);
        let overhead = u64::from(framing.overhead);
        let cut = Partitioning {
            full: payload + overhead,
            last: len - (packets - 1) * payload + overhead,
            packets,
        };
        let all = self.paths(src, dst);
        let usable =
            |path: &u32| self.path_links(src, dst, *path).all(|l| self.links[l as usize].up);
        if !self.uneven && !self.slow_core {
            let in_order = self.pipeline(src, dst, 0, cut);
            return if spray && all > 1 && packets > 1 {
                in_order.min(self.overtaking(src, dst, 0, cut))
            } else {
                in_order
            };
        }
        let mut paths: Vec<u32> = (0..all).filter(usable).collect();
        if paths.is_empty() {
            paths.extend(0..all);
        }
        if spray && paths.len() > 1 && packets > 1 {
            return self.sprayed(src, dst, &paths, cut);
        }
        paths.iter().map(|&path| self.pipeline(src, dst, path, cut)).min().unwrap_or(Dur::ZERO)
    }

    /// A bound for a message sprayed over paths whose links differ, or are slower than the hosts':
    /// at each hop, the bytes have to get through all links of that hop together, after the first
    /// packet has come there and before the last has gone the rest of the way. Paths of different
    /// lengths have their first hops in common, and counted from the end their last.
    fn sprayed(&self, src: HostId, dst: HostId, paths: &[u32], cut: Partitioning) -> Dur {
        let paths: Vec<Vec<u32>> =
            paths.iter().map(|&path| self.path_links(src, dst, path).collect()).collect();
        let common = paths.iter().map(Vec::len).min().unwrap_or(0);
        let through = |(hop, cut)| {
            let from_start = self.through(src, cut, paths.iter().map(|path| path.split_at(hop)));
            let from_end = |path: &Vec<u32>| path.len() - common + hop;
            let ends = paths.iter().map(|path| path.split_at(from_end(path)));
            from_start.max(self.through(src, cut, ends))
        };
        // A short last packet may be quick; the full ones before it are no sooner there than alone.
        let full = Partitioning { last: cut.full, packets: cut.packets - 1, ..cut };
        (0..common)
            .flat_map(|hop| [(hop, cut), (hop, full)])
            .map(through)
            .max()
            .unwrap_or(Dur::ZERO)
    }

    /// The bound for one hop: of each path the links before it, and those from it on.
    fn through<'a>(
        &self,
        src: HostId,
        cut: Partitioning,
        paths: impl Iterator<Item = (&'a [u32], &'a [u32])> + Clone,
    ) -> Dur {
        let time = |links: &[u32], bytes: u64| {
            links.iter().fold(Dur::ZERO, |sum, &link| {
                sum + self.links[link as usize].rate.serialise(bytes) + self.delay(link)
            })
        };
        let least = |times: &mut dyn Iterator<Item = Dur>| times.min().unwrap_or(Dur::ZERO);
        let mut links: Vec<u32> = paths.clone().map(|(_, on)| on[0]).collect();
        links.sort_unstable();
        links.dedup();
        let rate = links.iter().map(|&link| self.links[link as usize].rate.0).sum();
        let delay = least(&mut links.iter().map(|&link| self.delay(link)));
        let full = least(&mut paths.clone().map(|(before, _)| time(before, cut.full)));
        let short = least(&mut paths.clone().map(|(before, _)| time(before, cut.last)));
        let rest = least(&mut paths.map(|(_, on)| time(&on[1..], cut.last)));
        let before_last = self.links[src.index()].rate.serialise(cut.full) * (cut.packets - 1);
        let bytes = cut.full * (cut.packets - 1) + cut.last;
        full.min(before_last + short) + Rate(rate).serialise(bytes) + delay + rest
    }

    /// Store and forward over one path. With packets of one size, the n-th leaves a link after the
    /// sum of the serialisations so far plus n-1 times the slowest of them; the last, shorter one
    /// follows at once or waits for the one before.
    fn pipeline(&self, src: HostId, dst: HostId, path: u32, cut: Partitioning) -> Dur {
        let (mut first, mut slowest, mut last) = (Dur::ZERO, Dur::ZERO, Dur::ZERO);
        for link in self.path_links(src, dst, path) {
            let (rate, delay) = (self.links[link as usize].rate, self.delay(link));
            let full = rate.serialise(cut.full);
            slowest = slowest.max(full);
            let before = match cut.packets {
                1 => Dur::ZERO,
                n => first + full + slowest * (n - 2),
            };
            last = last.max(before) + rate.serialise(cut.last) + delay;
            first = first + full + delay;
        }
        last
    }

    /// The last packet, shorter, takes another path of the same rates and waits behind nothing
    /// before the last link, where it may even come before the first one. Full packets keep the
    /// last link busy from the arrival of the first.
    fn overtaking(&self, src: HostId, dst: HostId, path: u32, cut: Partitioning) -> Dur {
        let (mut first, mut short, mut slowest) = (Dur::ZERO, Dur::ZERO, Dur::ZERO);
        let mut links = self.path_links(src, dst, path).map(|link| {
            let rate = self.links[link as usize].rate;
            (rate.serialise(cut.full), rate.serialise(cut.last), self.delay(link))
        });
        let (mut full, mut last, mut delay) = links.next().unwrap_or_default();
        let before = full * (cut.packets - 1);
        for next in links {
            slowest = slowest.max(full);
            first = first + full + delay;
            short = short + last + delay;
            (full, last, delay) = next;
        }
        short += before;
        let last_full = first + slowest * (cut.packets - 2);
        let end = if full < slowest {
            // The last link idles between full packets.
            (last_full + full).max(short + last)
        } else if short < first {
            first.max(short + last) + full * (cut.packets - 1)
        } else {
            short.max(first + full * (cut.packets - 1)) + last
        };
        end + delay
    }
}

/// A message cut into packets: their number, and bytes on the wire.
#[derive(Clone, Copy)]
struct Partitioning {
    full: u64,
    last: u64,
    packets: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::LINK;
    use crate::{Bcube, LinkSpec, Node, Tier};

    const NDP: Framing = Framing { payload: 9000, overhead: 64 };

    /// The bound of the incast target in specs/ndp.md: store and forward over six hops by hand.
    #[test]
    fn the_ideal_time_is_the_pipeline_by_hand() {
        let tree = Topology::fat_tree(12, 1, LINK).unwrap();
        let far = |len| tree.ideal(HostId(0), HostId(431), len, NDP, false);
        let full = 9064 * 800;
        assert_eq!(far(9000), Dur(6 * (full + 1_000_000)));
        assert_eq!(far(27_000), Dur(6 * (full + 1_000_000) + 2 * full));
        // One byte more: a 65-byte packet leaves right behind and follows to the end, unless it
        // goes another way.
        assert_eq!(far(9001), Dur(6 * (full + 1_000_000) + 65 * 800));
        let sprayed = tree.ideal(HostId(0), HostId(431), 9001, NDP, true);
        assert_eq!(sprayed, Dur(6 * (full + 1_000_000)));
        // Two full packets and one of 2365 bytes, which is at the last link before both.
        let sprayed = tree.ideal(HostId(0), HostId(431), 20_301, NDP, true);
        assert_eq!(sprayed, Dur(6 * (full + 1_000_000) + full));
        // It comes too late to overtake the first of thirty.
        let many = 29 * 9000 + 1;
        assert_eq!(tree.ideal(HostId(0), HostId(431), many, NDP, true), far(many));
        let star = Topology::star(2, LINK).unwrap().with_switch_latency(Dur::from_ns(300));
        assert_eq!(star.ideal(HostId(0), HostId(1), 1, NDP, true), Dur(2 * 65 * 800 + 2_300_000));
    }

    #[test]
    fn the_slowest_hop_paces_and_the_best_path_counts() {
        let mut tree = Topology::leaf_spine(2, 2, 1, LINK, LINK).unwrap();
        let slow = LinkSpec { rate: Rate(1_000_000_000), delay: LINK.delay };
        let tor = Node::Switch(Tier::Tor, 0);
        let link = tree.find_link(tor, Node::Switch(Tier::Agg, 0)).unwrap();
        tree.set_link(link, slow);
        let (full, delay) = (9064 * 800, 1_000_000);
        let best = tree.ideal(HostId(0), HostId(1), 27_000, NDP, false);
        assert_eq!(best, Dur(4 * (full + delay) + 2 * full));
        let cut = Partitioning { full: 9064, last: 9064, packets: 3 };
        let over_slow = tree.pipeline(HostId(0), HostId(1), 0, cut);
        assert_eq!(over_slow, Dur(3 * full + 10 * full + 4 * delay + 2 * 10 * full));
    }

    /// Four uplinks of a quarter of the hosts' rate carry a message as fast as the hosts can.
    #[test]
    fn slow_links_side_by_side_are_used_together() {
        let quarter = LinkSpec { rate: Rate(2_500_000_000), delay: LINK.delay };
        let fabric = Topology::leaf_spine(2, 4, 1, LINK, quarter).unwrap();
        let len = 9000 * 1000;
        let sprayed = fabric.ideal(HostId(0), HostId(1), len, NDP, true);
        let at_least = Dur(9064 * 800 * 1000);
        assert!(sprayed > at_least && sprayed < at_least + Dur::from_us(100), "{sprayed}");
        let single = fabric.ideal(HostId(0), HostId(1), len, NDP, false);
        assert!(single > at_least * 4);
    }

    /// A BCube's server sends over all its ports together, whose rate its host's link has.
    #[test]
    fn unequal_paths_are_used_together() {
        let shape = Bcube { n: 4, k: 1, stretch: 4, link: LINK };
        let fabric = Topology::bcube(&shape).unwrap();
        // Server 1 differs from server 0 in one digit: 4 links, or 8.
        let (src, dst) = (HostId(0), HostId(1));
        let lengths = [0, 1].map(|path| fabric.path_links(src, dst, path).count());
        assert_eq!(lengths, [4, 8]);
        let (full, inner, delay) = (9064 * 800, 9064 * 400, 1_000_000);
        let lone = fabric.ideal(src, dst, 9000, NDP, true);
        assert_eq!(lone, Dur(2 * inner + 2 * (full + delay)), "over the shorter path");
        assert_eq!(fabric.ideal(src, dst, 9001, NDP, true), lone, "the short one is there before");
        // Thirty packets leave over two ports as fast as the link of the host; the last takes the
        // shorter way.
        let many = fabric.ideal(src, dst, 30 * 9000, NDP, true);
        assert_eq!(many, Dur(30 * inner + 2 * (full + delay) + inner));
        let single = fabric.ideal(src, dst, 30 * 9000, NDP, false);
        assert_eq!(single, Dur(2 * inner + 2 * (full + delay) + 29 * full));
        let shortest = Topology::bcube(&Bcube { stretch: 0, ..shape }).unwrap();
        assert_eq!(shortest.ideal(src, dst, 30 * 9000, NDP, true), single, "there is one only");
    }

    #[test]
    fn a_failed_path_is_never_ideal() {
        let mut fabric = Topology::leaf_spine(2, 2, 1, LINK, LINK).unwrap();
        let tor = Node::Switch(Tier::Tor, 0);
        let [fast, slow] =
            [0, 1].map(|n| fabric.find_link(tor, Node::Switch(Tier::Agg, n)).unwrap());
        fabric.set_link(slow, LinkSpec { rate: Rate(1_000_000_000), delay: LINK.delay });
        let ideal = |fabric: &Topology| fabric.ideal(HostId(0), HostId(1), 900_000, NDP, true);
        let before = ideal(&fabric);
        fabric.fail_link(fast);
        assert!(ideal(&fabric) > before * 5);
    }
}
