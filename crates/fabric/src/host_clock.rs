//! What sets real hosts apart in time: no two clocks run at one rate, and no two packets wait
//! equally long before they leave. Without either, hosts that start together stay in step for a
//! whole run, and who is ahead of whom decides who loses (specs/phases.md#2).

use endpoint::{Draw, Purpose, Stream};
use units::{Dur, HostId, Rate, Time};

use crate::topology::{Node, Topology};

const CLOCK: Purpose = Purpose::new("fabric: host clock");
const RATE: Purpose = Purpose::new("rate");
const JITTER: Purpose = Purpose::new("send jitter");

/// How far hosts differ in time. [`HostClock::EXACT`] by default: they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostClock {
    /// A host's clock is within this many parts per million of the nominal rate, drawn uniformly
    /// for each. The quickest host that can be drawn sends at its link's rate, the slowest by twice
    /// the tolerance below it: ideal completion times stay lower bounds.
    pub tolerance_ppm: u32,
    /// How late a packet can leave a host.
    pub send_jitter: SendJitter,
}

/// How late a packet can leave a host. Each time is drawn uniformly from zero up to a longest one;
/// packets keep their order and their distance on the link, so no capacity is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendJitter {
    /// Not at all.
    #[default]
    None,
    /// By as much as the longest packet takes on the host's link: what removes phase effects
    /// (specs/phases.md#2).
    Frame,
    /// By this much.
    UpTo(Dur),
}

impl HostClock {
    /// Hosts do not differ.
    pub const EXACT: Self = Self { tolerance_ppm: 0, send_jitter: SendJitter::None };

    /// At which rate `host` sends over its link of `nominal` rate.
    pub(crate) fn rate(self, seed: u64, host: u32, nominal: Rate) -> Rate {
        const MILLION: u128 = 1_000_000;
        let range = 2 * u64::from(self.tolerance_ppm) * 1_000_000 + 1;
        let below = Draw::new(seed, CLOCK, u64::from(host)).below(RATE, 0, range);
        // In millionths of a millionth.
        let share = MILLION * MILLION - u128::from(below);
        Rate(((u128::from(nominal.0) * share / (MILLION * MILLION)) as u64).max(1))
    }

    /// The most that a packet on `link` of `topology` can be late: zero if no host sends on it.
    #[must_use]
    pub fn longest_delay(self, topology: &Topology, link: u32) -> Dur {
        let link = &topology.links()[link as usize];
        match (link.from, self.send_jitter) {
            (Node::Switch(..) | Node::Plane(..), _) | (_, SendJitter::None) => Dur::ZERO,
            (_, SendJitter::Frame) => link.rate.serialise(u64::from(topology.mtu())),
            (_, SendJitter::UpTo(most)) => most,
        }
    }
}

/// The send jitter of one host.
pub(crate) struct Jitter {
    draws: Stream,
    longest: Dur,
    sent: u64,
    /// When the last packet arrives at the far end of the link.
    arrival: Time,
}

impl Jitter {
    pub(crate) fn new(seed: u64, host: HostId, longest: Dur) -> Self {
        let draws = Draw::new(seed, CLOCK, u64::from(host.0)).stream(JITTER);
        Self { draws, longest, sent: 0, arrival: Time::ZERO }
    }

    /// When a packet arrives that would at `due`, and takes `time` on the link.
    #[inline(always)]
    pub(crate) fn delay(&mut self, due: Time, time: Dur) -> Time {
        let late = Dur(self.draws.below(self.sent, self.longest.0 + 1));
        self.sent += 1;
        // Not before the link has carried it: the one before may be later still.
        self.arrival = (due + late).max(self.arrival + time);
        self.arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: Rate = Rate(1_000_000_000);

    #[test]
    fn clocks_are_within_their_tolerance_and_differ() {
        let clock = HostClock { tolerance_ppm: 100, ..HostClock::EXACT };
        let rates: Vec<u64> = (0..1000).map(|host| clock.rate(1, host, GIGABIT).0).collect();
        let (low, high) = (*rates.iter().min().unwrap(), *rates.iter().max().unwrap());
        assert!(low >= GIGABIT.0 - 200_000 && high <= GIGABIT.0, "{low} {high}");
        assert!(high - low > 195_000, "{low} {high}");
        assert_eq!(HostClock::EXACT.rate(1, 7, GIGABIT), GIGABIT);
    }

    /// Packets back to back keep the distance that the link gives them, and none is later than the
    /// longest jitter; packets far apart are late by all of the range.
    #[test]
    fn a_full_link_stays_full() {
        let (time, longest) = (Dur::from_us(12), Dur::from_us(12));
        let mut jitter = Jitter::new(1, HostId(3), longest);
        let mut before = Time::ZERO;
        for n in 1..10_000 {
            let due = Time(n * time.0);
            let at = jitter.delay(due, time);
            assert!(at >= before + time && due <= at && at <= due + longest, "{n}");
            before = at;
        }
        let lates: Vec<u64> = (0..1000_u64)
            .map(|n| Time(1_000_000_000 * (1000 + n)))
            .map(|due| jitter.delay(due, time).since(due).0)
            .collect();
        assert!(lates.iter().max().unwrap() > &11_900_000);
        assert!(lates.iter().min().unwrap() < &100_000);
    }
}
