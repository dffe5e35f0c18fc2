//! The probe `queue`: the longest queue of a run, worked out from packets alone. A packet is in the
//! queue of a link from its arrival at the switch until its last bit has left over that link.

use endpoint::{Flags, Observer, Packet, PacketEvent};
use fabric::Topology;
use scenario::{Diagnostic, Error, Options, Scenario};
use units::{Dur, Time};

use super::at_switch::{AtSwitch, Left};
use super::{Probe, Probed};

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "queue",
    metrics: &[
        "queue.mean_bytes",
        "queue.stdev_bytes",
        "queue.p50_bytes",
        "queue.p90_bytes",
        "queue.p99_bytes",
        "queue.max_bytes",
        "queue.utilization",
    ],
    over_time: true,
    measure,
};

/// A packet in the queue of a link: from when until when, and its length on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stay {
    pub(super) from: Time,
    pub(super) to: Time,
    len: u16,
    /// Whether it left with a mark (ECN).
    pub(super) marked: bool,
}

/// Keeps what passes switches within the window.
pub(super) struct Watch {
    topology: Topology,
    pub(super) window: (Time, Time),
    at_switch: AtSwitch,
    /// By link, in the order in which they leave.
    pub(super) stays: Vec<Vec<Stay>>,
}

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let Some(Left { from, to, .. }) = self.at_switch.left(&self.topology, at, link, event, pkt)
        else {
            return;
        };
        if let Some(stays) = self.stays.get_mut(link as usize)
            && to > self.window.0
            && from < self.window.1
        {
            let marked = pkt.flags.has(Flags::CE);
            stays.push(Stay { from, to, len: pkt.wire_len, marked });
        }
    }
}

impl Watch {
    /// To watch a run of `scenario`.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let (topology, measure) = (scenario.topology(), scenario.measure());
        Self {
            topology: topology.clone(),
            window: (measure.from, measure.to.unwrap_or(Time::NEVER)),
            at_switch: AtSwitch::default(),
            stays: vec![Vec::new(); topology.links().len()],
        }
    }

    /// The link with the longest queue, over time.
    pub(super) fn busiest(&self) -> Result<usize, Error> {
        let work = |stays: &Vec<Stay>| -> u128 {
            stays.iter().map(|s| u128::from(s.len) * u128::from(s.to.since(s.from).0)).sum()
        };
        let longest = (0..self.stays.len()).max_by_key(|&link| work(&self.stays[link]));
        longest.filter(|&link| !self.stays[link].is_empty()).ok_or_else(|| {
            let error = Diagnostic::new("the probe saw no packet pass a switch");
            Error::from(error.hint("it needs traffic in the window of [measure]"))
        })
    }
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let topology = scenario.topology();
    let options = Options { threads: Some(1), ..Options::default() };
    let (_, mut watch) = scenario::observe(scenario, &options, Watch::new(scenario))?;
    let busiest = watch.busiest()?;
    let levels = Levels::of(&watch.stays[busiest], watch.window);
    let rate = topology.links()[busiest].rate;
    let sent: u64 =
        watch.stays[busiest].iter().filter(|s| s.to < levels.to).map(|s| u64::from(s.len)).sum();
    let utilization = sent as f64 / rate.bytes_in(levels.to.since(levels.from)).0.max(1) as f64;
    Ok(Probed {
        values: levels.values().into_iter().chain([Some(utilization)]).collect(),
        timeline: None,
        queue: Some(OverTime { stays: watch.stays.swap_remove(busiest), window: watch.window }),
    })
}

/// The bytes in a queue of the packets `stays`, each with its time within the window, in order.
fn steps(stays: &[Stay], from: Time, to: Time) -> impl Iterator<Item = (u64, Time, Time)> {
    // Negative: it leaves. At one instant what leaves goes first.
    let changes =
        stays.iter().flat_map(|s| [(s.from, i64::from(s.len)), (s.to, -i64::from(s.len))]);
    let mut changes: Vec<(Time, i64)> = changes.collect();
    changes.sort_unstable();
    let (mut bytes, mut since) = (0, from);
    changes.into_iter().filter_map(move |(at, change)| {
        let (was, began) = (u64::try_from(bytes).unwrap_or(0), since);
        bytes += change;
        since = at.clamp(since, to.max(since));
        (since > began).then_some((was, began, since))
    })
}

/// A queue over time.
pub(crate) struct OverTime {
    stays: Vec<Stay>,
    window: (Time, Time),
}

impl OverTime {
    /// The corners of the line of bytes (y) over time in microseconds (x), of all that left in the
    /// window.
    pub(crate) fn corners(&self) -> Vec<(f64, f64)> {
        let steps = steps(&self.stays, self.window.0, self.window.1);
        steps.flat_map(|(bytes, a, b)| [a, b].map(|at| (at.as_us_f64(), bytes as f64))).collect()
    }
}

/// How long a queue had how many bytes.
pub(super) struct Levels {
    from: Time,
    to: Time,
    /// Bytes, and for how long: by bytes, ascending.
    pub(super) stays: Vec<(u64, Dur)>,
}

impl Levels {
    /// Of the packets `stays`, by departure. It ends where what has not left would be missing.
    pub(super) fn of(stays: &[Stay], (from, to): (Time, Time)) -> Self {
        let to = stays.iter().map(|stay| stay.from).max().unwrap_or(from).min(to);
        let mut levels: Vec<(u64, Dur)> = steps(stays, from, to)
            .map(|(bytes, since, until)| (bytes, until.since(since)))
            .collect();
        levels.sort_unstable();
        Self { from, to, stays: levels }
    }

    /// Mean, standard deviation, median, 90th and 99th percentile and maximum, each over time.
    fn values(&self) -> [Option<f64>; 6] {
        let whole: f64 = self.stays.iter().map(|(_, time)| time.0 as f64).sum();
        if whole <= 0.0 {
            return [None; 6];
        }
        let mean_of = |f: &dyn Fn(f64) -> f64| {
            self.stays.iter().map(|&(bytes, time)| f(bytes as f64) * time.0 as f64).sum::<f64>()
                / whole
        };
        let mean = mean_of(&|bytes| bytes);
        let variance = mean_of(&|bytes| (bytes - mean) * (bytes - mean));
        let percentile = |p: f64| {
            let mut time = 0.0;
            let found = self.stays.iter().find(|(_, stay)| {
                time += stay.0 as f64;
                time >= whole * p
            });
            found.or(self.stays.last()).map(|&(bytes, _)| bytes as f64)
        };
        [
            Some(mean),
            Some(variance.sqrt()),
            percentile(0.5),
            percentile(0.9),
            percentile(0.99),
            percentile(1.0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Time {
        Time::ZERO + Dur::from_us(n)
    }

    /// By hand, from 10 to 20 us: nothing for 2, 100 B for 6, 300 B for 2.
    #[test]
    fn levels_by_hand() {
        let stays = [
            Stay { from: us(5), to: us(12), len: 100, ..Stay::default() },
            Stay { from: us(14), to: us(18), len: 100, ..Stay::default() },
            Stay { from: us(16), to: us(30), len: 200, ..Stay::default() },
            Stay { from: us(25), to: us(31), len: 100, ..Stay::default() },
        ];
        let levels = Levels::of(&stays, (us(10), us(18)));
        let stays = [
            (0, Dur::from_us(2)),
            (100, Dur::from_us(2)),
            (100, Dur::from_us(2)),
            (300, Dur::from_us(2)),
        ];
        assert_eq!(levels.stays, stays);
        let values = levels.values().map(|value| value.unwrap());
        assert_eq!([values[0], values[2], values[3], values[5]], [125.0, 100.0, 300.0, 300.0]);
        assert!((values[1] - 11_875f64.sqrt()).abs() < 1e-9, "{}", values[1]);
    }

    /// The same packets, drawn: each step by its two ends.
    #[test]
    fn corners_by_hand() {
        let stays = [
            Stay { from: us(5), to: us(12), len: 100, ..Stay::default() },
            Stay { from: us(14), to: us(18), len: 200, ..Stay::default() },
        ];
        let corners =
            [(10.0, 100.0), (12.0, 100.0), (12.0, 0.0), (14.0, 0.0), (14.0, 200.0), (17.0, 200.0)];
        let over = |window| OverTime { stays: stays.to_vec(), window }.corners();
        assert_eq!(over((us(10), us(17))), corners);
        let all = over((us(0), Time::NEVER));
        assert_eq!((all[0], *all.last().unwrap()), ((0.0, 0.0), (18.0, 200.0)));
    }

    /// What comes after the last packet that has left came is not known whole.
    #[test]
    fn it_ends_where_packets_are_missing() {
        let stays = [
            Stay { from: us(0), to: us(2), len: 100, ..Stay::default() },
            Stay { from: us(1), to: us(4), len: 100, ..Stay::default() },
        ];
        assert_eq!(Levels::of(&stays, (us(0), us(9))).to, us(1));
    }
}
