//! How long a packet can be in flight. A receiver that forgets a message sooner than the last copy
//! of its packets has gone could deliver it twice.

use fabric::{Fault, FaultAction, Link, Topology};
use queues::{QueueSpec, SharedBufferSpec};
use units::{Dur, Rate};

use crate::diagnostic::Checked;
use crate::host::Host;
use crate::reader::Reader;
use crate::transport::Transport;

const PS_PER_S: u128 = 1_000_000_000_000;
const PS_PER_US: u128 = 1_000_000;
/// The shortest Ethernet frame, bytes.
const SHORTEST: u128 = 64;
/// Beyond any sensible network, and far from overflow: ten days.
const LIFE_MAX_US: u64 = 864_000_000_000;

/// Check that `transport` remembers its messages for longer than packets live here, `longest`;
/// `table` is its own.
pub(crate) fn check(table: &Reader<'_>, transport: &Transport, longest: Dur) -> Checked<()> {
    let Some(most) = transport.life_max.filter(|&most| longest > most) else { return Ok(()) };
    let lacking = Dur(2 * (longest.0 - most.0));
    let message = format!(
        "a packet can be in flight here for up to {longest}, and this transport knows a repeated \
         message only if that is at most {most}: it could deliver one twice"
    );
    let key = table.likeliest(&["time_wait", "abort_after"]).unwrap_or("kind");
    let error = table.error(key, message, "forgets too soon");
    Err(error.hint(format!("raise `time_wait` by {lacking}, or make queues shorter")))
}

/// The longest life of a packet on the longest path, if it finds every queue on its way full, and
/// that way leads over the slowest links, at the lowest rate that a fault gives them. A bound: no
/// run will have it.
pub(crate) fn longest(
    topology: &Topology,
    queues: &[&QueueSpec],
    buffer: Option<SharedBufferSpec>,
    host: &Host,
    faults: &[Fault],
) -> Dur {
    let mtu = u64::from(topology.mtu());
    let memory = buffer.map_or(u64::MAX, |buffer| u64::from(buffer.size));
    let before_the_link = u64::from(host.queue.unwrap_or(0)) * mtu;
    let backlog = queues.iter().map(|queue| queue.spec().backlog(mtu)).max().unwrap_or(0);
    let ahead = u128::from(backlog.min(memory).max(before_the_link) + mtu);
    // Slow links with long queues come to more than a clock can hold.
    let hop = |link: &Link, rate: Rate| {
        let delay = u128::from(link.delay.0) + u128::from(topology.switch_latency().0);
        // A slot takes one packet at least, however short.
        let slots = topology.switch_slot().map_or(0, |slot| ahead / SHORTEST * u128::from(slot.0));
        (ahead * 8 * PS_PER_S / u128::from(rate.0)).max(slots) + delay
    };
    let links = topology.links();
    let mut each: Vec<u128> = links.iter().map(|link| hop(link, link.rate)).collect();
    for fault in faults {
        let i = fault.link as usize;
        if let (FaultAction::Rate(rate), Some(link)) = (fault.action, links.get(i)) {
            each[i] = each[i].max(hop(link, rate));
        }
    }
    each.sort_unstable_by(|a, b| b.cmp(a));
    let on_the_way: u128 = each.iter().take(topology.longest_path() as usize).sum();
    let all = on_the_way + host.longest_delay(topology);
    // Whole microseconds: it is a figure to be read.
    Dur::from_us(u64::try_from(all.div_ceil(PS_PER_US)).unwrap_or(LIFE_MAX_US).min(LIFE_MAX_US))
}

#[cfg(test)]
mod tests {
    use fabric::{Bcube, LinkSpec};
    use queues::{Capacity, NdpSpec};
    use units::Time;

    use super::*;

    /// By hand: 72000 B of full packets and of headers. Seven full packets with ten headers between
    /// each two; 1800 headers of 40 B with 180 full packets between them; one's own.
    #[test]
    fn the_bound_counts_both_queues_of_every_hop() {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay: Dur::from_us(1) };
        let fabric = Topology::fat_tree(4, 1, link).unwrap().with_mtu(9064);
        let queue =
            QueueSpec::Ndp(NdpSpec { data_capacity: Capacity::Bytes(72_000), ..NdpSpec::PAPER });
        let none = &Host::default();
        let bytes = 72_000 + 70 * 64 + 72_000 + 180 * 9064 + 9064;
        let ceil = |ps: u64| Dur::from_us(ps.div_ceil(1_000_000));
        assert_eq!(longest(&fabric, &[&queue], None, none, &[]), ceil(6_000_000 + 6 * bytes * 800));
        // One link at a tenth of its rate takes ten times as long.
        let slow = Fault::new(Time::ZERO, 3, FaultAction::Rate(Rate(1_000_000_000)));
        assert_eq!(
            longest(&fabric, &[&queue], None, none, &[slow]),
            ceil(6_000_000 + 15 * bytes * 800)
        );
        // From the first server to the last it is four links between switches, from one to its
        // neighbour the long way six; and the hosts' own.
        let bcube = Bcube { n: 3, k: 1, stretch: u32::MAX, link };
        let bcube = Topology::bcube(&bcube).unwrap().with_mtu(9064);
        let bcube = bcube.with_switch_latency(Dur::from_ns(300));
        assert_eq!(
            longest(&bcube, &[&queue], None, none, &[]),
            ceil(8 * 1_300_000 + 8 * bytes * 800)
        );
        // No queue is longer than the memory that all share.
        let buffer = Some(SharedBufferSpec { size: 50_000, alpha: 8.0 });
        let bytes = 50_000 + 9064;
        assert_eq!(
            longest(&fabric, &[&queue], buffer, none, &[]),
            ceil(6_000_000 + 6 * bytes * 800)
        );
        // Nor shorter than the one before a host's link.
        let host = &Host { queue: Some(100), ..Host::default() };
        let bytes = 101 * 9064;
        assert_eq!(
            longest(&fabric, &[&queue], buffer, host, &[]),
            ceil(6_000_000 + 6 * bytes * 800)
        );
    }
}
