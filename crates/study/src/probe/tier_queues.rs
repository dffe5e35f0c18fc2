//! The probe `tier-queues`: how much waits before the links of each tier of two switches. On
//! average over time and links, without the packet in transmission; and as packets find it that
//! come, what is left of that packet included: so the simulator behind the table of queue lengths
//! of the Homa paper (SIGCOMM 2018, section 5.2) has it (`DropTailQueue::enqueue` in its inet,
//! `digestQueueLenInfo` in analysis/MetricsDashBoard.py).

use endpoint::{Observer, Packet, PacketEvent};
use fabric::{Node, Tier, Topology};
use scenario::{Error, Options, Scenario};
use units::{Bytes, Rate, Time};

use super::at_switch::{AtSwitch, Left};
use super::{Probe, Probed};

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "tier-queues",
    metrics: &[
        "tier_queues.tor_down.mean_bytes",
        "tier_queues.tor_up.mean_bytes",
        "tier_queues.agg_down.mean_bytes",
        "tier_queues.tor_down.found_bytes",
        "tier_queues.tor_up.found_bytes",
        "tier_queues.agg_down.found_bytes",
    ],
    over_time: false,
    measure,
};

/// The tiers of `PROBE`'s metrics, in their order.
const TIERS: usize = 3;

/// A packet's stay before a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stay {
    link: u32,
    /// When it came, when its first bit left and when its last did.
    came: Time,
    began: Time,
    left: Time,
    bytes: u16,
}

/// The stays that overlap the window, by tier.
struct Watch {
    topology: Topology,
    window: (Time, Time),
    at_switch: AtSwitch,
    stays: [Vec<Stay>; TIERS],
}

/// The tier that the queue before a link counts for.
fn tier(from: Node, to: Node) -> Option<usize> {
    match (from, to) {
        (Node::Switch(Tier::Tor, _), Node::Host(_)) => Some(0),
        (Node::Switch(Tier::Tor, _), Node::Switch(..)) => Some(1),
        (Node::Switch(Tier::Agg, _), Node::Switch(Tier::Tor, _)) => Some(2),
        _ => None,
    }
}

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let crossed = self.at_switch.left(&self.topology, at, link, event, pkt);
        let Some(Left { link: crossed, from: came, to: left }) = crossed else { return };
        let Some(tier) = tier(crossed.from, crossed.to) else { return };
        let bytes = pkt.wire_len;
        let began = Time(left.0.saturating_sub(crossed.rate.serialise(u64::from(bytes)).0));
        if came < self.window.1 && left > self.window.0 {
            self.stays[tier].push(Stay { link, came: came.min(began), began, left, bytes });
        }
    }
}

/// Bytes that wait, on average over `window` and `links` links.
fn mean(stays: &[Stay], window: (Time, Time), links: u32) -> Option<f64> {
    let within = |t: Time| t.clamp(window.0, window.1);
    let waited = |stay: &Stay| {
        u128::from(within(stay.began).since(within(stay.came)).0) * u128::from(stay.bytes)
    };
    let time = window.1.since(window.0).0 as f64 * f64::from(links);
    (time > 0.0).then(|| stays.iter().map(waited).sum::<u128>() as f64 / time)
}

/// Bytes that packets find before them that come within `window`, on average over these packets.
fn found(stays: &mut [Stay], window: (Time, Time), rate: impl Fn(u32) -> Rate) -> Option<f64> {
    stays.sort_unstable();
    let (mut bytes, mut arrivals) = (0, 0);
    for of_link in stays.chunk_by(|a, b| a.link == b.link) {
        let mut there: Vec<Stay> = Vec::new();
        for &stay in of_link {
            there.retain(|other| other.left > stay.came);
            if window.0 <= stay.came && stay.came < window.1 {
                let rate = rate(stay.link);
                bytes += there.iter().map(|other| other.rest(stay.came, rate).0).sum::<u64>();
                arrivals += 1;
            }
            there.push(stay);
        }
    }
    (arrivals > 0).then(|| bytes as f64 / f64::from(arrivals))
}

impl Stay {
    /// What has not left at `at`.
    fn rest(&self, at: Time, rate: Rate) -> Bytes {
        if self.began > at {
            return Bytes(u64::from(self.bytes));
        }
        Bytes(rate.bytes_in(self.left.since(at)).0.min(u64::from(self.bytes)))
    }
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let (topology, measure) = (scenario.topology().clone(), scenario.measure());
    // What has not left by the end of the run is missing: it has to go on beyond the window for
    // longer than packets wait.
    let window = (measure.from, measure.to.unwrap_or(measure.from));
    let (at_switch, stays) = (AtSwitch::default(), [const { Vec::new() }; TIERS]);
    let watch = Watch { topology: topology.clone(), window, at_switch, stays };
    let options = Options { threads: Some(1), ..Options::default() };
    let (_, mut watch) = scenario::observe(scenario, &options, watch)?;
    let mut links = [0; TIERS];
    for tier in topology.links().iter().filter_map(|link| tier(link.from, link.to)) {
        links[tier] += 1;
    }
    let means = watch.stays.iter().zip(links).map(|(stays, links)| mean(stays, window, links));
    let mut values: Vec<_> = means.collect();
    let rate = |link: u32| topology.links().get(link as usize).map_or(Rate(0), |link| link.rate);
    values.extend(watch.stays.iter_mut().map(|stays| found(stays, window, rate)));
    Ok(Probed::values(values))
}

#[cfg(test)]
mod tests {
    use fabric::LinkSpec;
    use units::{Dur, HostId};

    use super::*;

    /// Packets of 1000 B, which take 1 us, come to a switch at 10, 10 and 11.25 us.
    #[test]
    fn waiting_by_hand() {
        let link = LinkSpec { rate: Rate(8_000_000_000), delay: Dur::from_us(2) };
        let topology = Topology::star(2, link).unwrap();
        let up = topology.find_link(Node::Host(0), Node::Switch(Tier::Tor, 0)).unwrap();
        let down = topology.find_link(Node::Switch(Tier::Tor, 0), Node::Host(1)).unwrap();
        let ns = |n| Time::ZERO + Dur::from_ns(n);
        let window = (ns(10_000), ns(20_000));
        let (at_switch, stays) = (AtSwitch::default(), [const { Vec::new() }; TIERS]);
        let mut watch = Watch { topology, window, at_switch, stays };
        for (key, came, gone) in [(1, 10_000, 11_000), (2, 10_000, 12_000), (3, 11_250, 13_000)] {
            let pkt =
                Packet { key, src: HostId(0), dst: HostId(1), wire_len: 1000, ..Packet::EMPTY };
            watch.packet(ns(came), up, PacketEvent::Arrived, &pkt);
            watch.packet(ns(gone + 2_000), down, PacketEvent::Arrived, &pkt);
        }
        let [to_hosts, others @ ..] = &mut watch.stays;
        assert!(others.iter().all(Vec::is_empty));
        // The second waits for 1 us, the third for 0.75 us; half a microsecond of the former is in
        // the second window.
        assert_eq!(mean(to_hosts, window, 1), Some(175.0));
        assert_eq!(mean(to_hosts, (ns(10_500), ns(11_000)), 2), Some(500.0));
        // The second finds the first whole, the third finds three quarters of the second.
        assert_eq!(found(to_hosts, window, |_| link.rate), Some(1750.0 / 3.0));
        assert_eq!(found(to_hosts, (ns(11_000), ns(12_000)), |_| link.rate), Some(750.0));
        assert_eq!(found(to_hosts, (ns(12_000), ns(13_000)), |_| link.rate), None);
    }
}
