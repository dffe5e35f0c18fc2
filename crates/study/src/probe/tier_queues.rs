//! The probe `tier-queues`: how much waits before the links of each tier of two switches, on average over time and
//! links. For the table of queue lengths of the Homa paper (SIGCOMM 2018, section 5.2), which does not count the packet in transmission:
//! the simulator behind it takes it out of the queue first.

use endpoint::{Observer, Packet, PacketEvent};
use fabric::{Node, Tier, Topology};
use scenario::{Error, Options, Scenario};
use units::{Dur, Time};

use super::at_switch::{AtSwitch, Left};
use super::{Probe, Probed};

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "tier-queues",
    metrics: &[
        "tier_queues.tor_down.mean_bytes",
        "tier_queues.tor_up.mean_bytes",
        "tier_queues.agg_down.mean_bytes",
    ],
    measure,
};

/// Adds up what waits.
struct Watch {
    topology: Topology,
    window: (Time, Time),
    at_switch: AtSwitch,
    /// Bytes times picoseconds, by metric.
    waited: [u128; 3],
}

/// The metric that the queue before a link counts for.
fn metric(from: Node, to: Node) -> Option<usize> {
    match (from, to) {
        (Node::Switch(Tier::Tor, _), Node::Host(_)) => Some(0),
        (Node::Switch(Tier::Tor, _), Node::Switch(..)) => Some(1),
        (Node::Switch(Tier::Agg, _), Node::Switch(Tier::Tor, _)) => Some(2),
        _ => None,
    }
}

impl Observer for Watch {
    const PACKETS: bool = true;

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let left = self.at_switch.left(&self.topology, at, link, event, pkt);
        let Some(Left { link, from, to }) = left else { return };
        let Some(metric) = metric(link.from, link.to) else { return };
        let began = Time(to.0.saturating_sub(link.rate.serialise(u64::from(pkt.wire_len)).0));
        let within = |t: Time| t.clamp(self.window.0, self.window.1);
        let waited = within(began).since(within(from.min(began)));
        self.waited[metric] += u128::from(waited.0) * u128::from(pkt.wire_len);
    }
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let (topology, measure) = (scenario.topology().clone(), scenario.measure());
    // What has not left by the end of the run is missing: a run goes on beyond its window, or lasts so long that it
    // does not matter.
    let end = measure.to.unwrap_or(measure.from);
    let window = (measure.from, end);
    let (at_switch, waited) = (AtSwitch::default(), [0; 3]);
    let watch = Watch { topology: topology.clone(), window, at_switch, waited };
    let options = Options { threads: Some(1), ..Options::default() };
    let (_, watch) = scenario::observe(scenario, &options, watch)?;
    let mut links = [0u32; 3];
    for link in topology.links() {
        if let Some(metric) = metric(link.from, link.to) {
            links[metric] += 1;
        }
    }
    let all: Dur = end.since(measure.from);
    let mean = |(waited, links): (&u128, &u32)| {
        let time = all.0 as f64 * f64::from(*links);
        (time > 0.0).then(|| *waited as f64 / time)
    };
    Ok(Probed { values: watch.waited.iter().zip(&links).map(mean).collect(), timeline: None })
}

#[cfg(test)]
mod tests {
    use fabric::LinkSpec;
    use units::{HostId, Rate};

    use super::*;

    /// Two packets of 1000 B come to a switch at 10 us; the second waits 1 us for the first, half of it in the window.
    #[test]
    fn waiting_by_hand() {
        let link = LinkSpec { rate: Rate(8_000_000_000), delay: Dur::from_us(2) };
        let topology = Topology::star(2, link).unwrap();
        let up = topology.find_link(Node::Host(0), Node::Switch(Tier::Tor, 0)).unwrap();
        let down = topology.find_link(Node::Switch(Tier::Tor, 0), Node::Host(1)).unwrap();
        let us = |n| Time::ZERO + Dur::from_ns(n);
        let window = (us(10_500), us(20_000));
        let (at_switch, waited) = (AtSwitch::default(), [0; 3]);
        let mut watch = Watch { topology, window, at_switch, waited };
        for key in [1, 2] {
            let pkt =
                Packet { key, src: HostId(0), dst: HostId(1), wire_len: 1000, ..Packet::EMPTY };
            watch.packet(us(10_000), up, PacketEvent::Arrived, &pkt);
            watch.packet(us(12_000 + 1_000 * key), down, PacketEvent::Arrived, &pkt);
        }
        assert_eq!(watch.waited, [500_000 * 1000, 0, 0]);
    }
}
