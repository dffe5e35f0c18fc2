//! The probe `signals`: what round-trip samples and ECN marks tell about the longest queue of a
//! run. For figures 2 and 3 of TIMELY (SIGCOMM 2015; specs/timely.md#9).

use endpoint::{Observer, Packet, PacketEvent, Routes, RttRecord};
use fabric::Node;
use scenario::{Error, Options, Scenario};
use units::{Dur, HostId, Time};

use super::queue::{Levels, Watch};
use super::{Probe, Probed};
use crate::metric::ks_distance;

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "signals",
    metrics: &["signals.rtt_ks", "signals.rtt_correlation", "signals.ecn_correlation"],
    over_time: false,
    measure,
};

/// So long are the intervals whose averages are compared: about a round trip under load.
const INTERVAL: Dur = Dur::from_us(100);

/// Keeps what passes switches, and what transports measure.
struct Listener {
    queues: Watch,
    rtts: Vec<RttRecord>,
}

impl Observer for Listener {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        self.queues.packet(at, link, event, pkt);
    }

    fn rtt(&mut self, record: &RttRecord) {
        if self.queues.window.0 <= record.at && record.at < self.queues.window.1 {
            self.rtts.push(*record);
        }
    }
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let listener = Listener { queues: Watch::new(scenario), rtts: Vec::new() };
    let options = Options { threads: Some(1), ..Options::default() };
    let (_, listener) = scenario::observe(scenario, &options, listener)?;
    let (topology, window) = (scenario.topology(), listener.queues.window);
    let link = listener.queues.busiest()?;
    let stays = &listener.queues.stays[link];
    let rate = topology.links()[link].rate;
    let us = |bytes: u64| rate.serialise(bytes).as_us_f64();
    let delays = Levels::of(stays, window).stays.into_iter();
    let delays: Vec<(f64, f64)> =
        delays.map(|(bytes, time)| (us(bytes), time.as_us_f64())).collect();
    let Node::Host(receiver) = topology.links()[link].to else {
        return Ok(Probed::values(vec![None; 3]));
    };
    let receiver = HostId(receiver);
    // Without queues: what is left when the sender's own serialisation is removed.
    let idle = |from: HostId| {
        let packet = rate.serialise(u64::from(topology.mtu()));
        topology.base_rtt(from, receiver).as_us_f64() - packet.as_us_f64()
    };
    let queued = |r: &RttRecord| r.rtt.as_us_f64() - idle(r.key.src);
    let mut waits: Vec<f64> = listener.rtts.iter().map(queued).collect();
    waits.sort_unstable_by(f64::total_cmp);
    let mean_wait = stays.iter().map(|s| (s.from, s.to.since(s.from).as_us_f64()));
    let marks = stays.iter().map(|s| (s.from, f64::from(u8::from(s.marked))));
    let rtts = listener.rtts.iter().map(|r| (r.at, r.rtt.as_us_f64()));
    let queue = averages(mean_wait, window.0);
    let values = vec![
        ks_distance(&waits, &delays),
        correlation(&averages(rtts, window.0), &queue),
        correlation(&averages(marks, window.0), &queue),
    ];
    Ok(Probed::values(values))
}

/// The average of `values` in each interval from `from` on; `None` where there are none.
fn averages(values: impl Iterator<Item = (Time, f64)>, from: Time) -> Vec<Option<f64>> {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for (at, value) in values.filter(|(at, _)| *at >= from) {
        let interval = (at.since(from).0 / INTERVAL.0) as usize;
        if sums.len() <= interval {
            sums.resize(interval + 1, (0.0, 0.0));
        }
        let (sum, count) = &mut sums[interval];
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    sums.into_iter().map(|(sum, count)| (count > 0.0).then(|| sum / count)).collect()
}

/// The correlation coefficient (Pearson) over the intervals in which both have a value.
fn correlation(a: &[Option<f64>], b: &[Option<f64>]) -> Option<f64> {
    let pairs: Vec<(f64, f64)> =
        a.iter().zip(b).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    let product = sum(&|x, _| x * x) * sum(&|_, y| y * y);
    (product > 0.0).then(|| sum(&|x, y| x * y) / product.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_by_hand() {
        let some = |values: [f64; 4]| values.map(Some);
        let up = some([1.0, 2.0, 3.0, 4.0]);
        assert_eq!(correlation(&up, &some([2.0, 4.0, 6.0, 8.0])), Some(1.0));
        assert_eq!(correlation(&up, &some([4.0, 3.0, 2.0, 1.0])), Some(-1.0));
        // Deviations (-1, 1) and (-1, 1) of the two that both have.
        assert_eq!(
            correlation(&[Some(1.0), None, Some(3.0)], &[Some(1.0), Some(9.0), Some(3.0)]),
            Some(1.0)
        );
        assert_eq!(correlation(&up, &some([5.0; 4])), None, "what does not change tells nothing");
    }

    #[test]
    fn averages_by_hand() {
        let at = |us| Time(0) + Dur::from_us(us);
        let values = [(at(5), 9.0), (at(10), 1.0), (at(109), 2.0), (at(310), 4.0)];
        let averages = averages(values.into_iter(), at(10));
        assert_eq!(averages, [Some(1.5), None, None, Some(4.0)]);
    }
}
