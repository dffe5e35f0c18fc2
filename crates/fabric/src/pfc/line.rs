//! Flow control at one port: what it tells the far end of its link to do ([`Teller`]), and what it has been told
//! itself ([`Gate`]).

use endpoint::{Flags, Packet};
use units::{Dur, HostId, Time};

use crate::digest;
use crate::outcome::PauseStats;

/// What a frame says, in the word that an event has room for. Not zero: it names a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame(pub(crate) u32);

impl Frame {
    /// Of `classes`, those in `stop` stop; the others resume. Behind the port that sends it are so many
    /// pauses in a row; see [`PauseStats::depth`].
    fn new(classes: u8, stop: u8, depth: u8) -> Self {
        Self(u32::from_le_bytes([classes, stop & classes, depth, 0]))
    }

    /// Bit c: it says something of class c.
    pub(crate) fn classes(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// Bit c: class c stops.
    pub(crate) fn stop(self) -> u8 {
        self.0.to_le_bytes()[1]
    }

    fn depth(self) -> u8 {
        self.0.to_le_bytes()[2]
    }

    /// One more link of a digest's chain.
    pub(super) fn chain(self, chain: u64, now: Time, outcome: digest::Outcome) -> u64 {
        // Without the depth: it is counted along, not said.
        let key = u64::from(self.stop()) << 8 | u64::from(self.classes());
        digest::chain(chain, now.0, key, outcome)
    }

    /// As it is on link number `link`: not a packet between hosts, but the whole Ethernet frame in the place of a
    /// header.
    pub(super) fn packet(self, link: u32, quanta: u16) -> Packet {
        let mut times = [0; 8];
        for (class, time) in (0..8).zip(&mut times) {
            *time = if self.stop() & 1 << class != 0 { quanta } else { 0 };
        }
        let repr = wire::pfc::Repr { source: link, classes: self.classes(), quanta: times };
        let mut pkt = Packet { wire_len: wire::pfc::WIRE_LEN, ..Packet::EMPTY };
        (pkt.src, pkt.dst) = (HostId(u32::MAX), HostId(u32::MAX));
        pkt.flags = Flags::CONTROL;
        pkt.hdr[..wire::pfc::LEN].copy_from_slice(&repr.to_bytes());
        pkt.hdr_len = wire::pfc::LEN as u8;
        pkt
    }
}

/// The one place that a port has for frames: what is to be said when the packet in service has left.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// Bit c: class c is to be stopped at the far end.
    wanted: u8,
    /// Bit c: the far end has last been told to stop class c.
    told: u8,
    /// The far end is to be told again what is to be stopped there.
    again: bool,
    /// When that is due next, where a pause ends by itself.
    pub(crate) again_at: Time,
    /// How deep a pause of each class would be.
    depths: [u8; 8],
}

impl Teller {
    /// From now on, `class` is to be stopped or not. A stop that is taken back before it has been said is never
    /// said.
    ///
    /// # Errors
    /// If that is no change: stops and resumes alternate.
    pub(crate) fn want(&mut self, class: u8, stop: bool, depth: u8) -> Result<(), String> {
        let bit = 1 << class;
        if (self.wanted & bit != 0) == stop {
            let what = if stop { "XOFF" } else { "XON" };
            return Err(format!("{what} of class {class} twice in a row"));
        }
        self.wanted ^= bit;
        self.depths[usize::from(class)] = depth;
        Ok(())
    }

    /// What has been stopped at the far end would go on soon: it is to be told again.
    pub(crate) fn remind(&mut self) {
        self.again = true;
    }

    /// Bit c: the far end has last been told to stop class c.
    pub(crate) fn told(&self) -> u8 {
        self.told
    }

    /// Whether there is something to say.
    pub(crate) fn has_news(&self) -> bool {
        self.wanted != self.told || self.again && self.wanted != 0
    }

    /// All that is to be said: what has changed and, if pauses end by themselves (`timed`), everything that is
    /// to be stopped, so that all of it is to be told again at one time.
    pub(crate) fn tell(&mut self, timed: bool) -> Frame {
        let classes = self.wanted ^ self.told | if timed { self.wanted } else { 0 };
        let stops = (0..8).filter(|class| classes & self.wanted & 1 << class != 0);
        let depth = stops.map(|class| self.depths[class]).max().unwrap_or(0);
        self.told = self.wanted;
        self.again = false;
        Frame::new(classes, self.wanted, depth)
    }
}

/// The pauses of a port's classes.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Bit c: class c is paused.
    paused: u8,
    /// Bit c: class c is paused and has been for too long.
    overdue: u8,
    pauses: [Pausing; 8],
    stats: PauseStats,
}

/// The last pause of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Pausing {
    since: Time,
    /// When it ends if nothing more is heard.
    until: Time,
    depth: u8,
}

impl Gate {
    /// A frame that stops classes until `until` has been heard.
    pub(crate) fn hear(&mut self, frame: Frame, now: Time, until: Time) {
        for class in (0..8).filter(|class| frame.classes() & 1 << class != 0) {
            if frame.stop() & 1 << class == 0 {
                self.resume(class, now);
                continue;
            }
            let (bit, pause) = (1 << class, &mut self.pauses[class]);
            (pause.until, pause.depth) = (until, frame.depth());
            self.stats.depth = self.stats.depth.max(pause.depth);
            if self.paused & bit == 0 {
                self.paused |= bit;
                pause.since = now;
                self.stats.pauses += 1;
            }
        }
    }

    fn resume(&mut self, class: usize, now: Time) {
        let bit = 1 << class;
        if self.paused & bit != 0 {
            self.stats.resumes += 1;
            self.stats.add(now.since(self.pauses[class].since));
        }
        self.paused &= !bit;
        self.overdue &= !bit;
    }

    /// Every pause that ends by itself at `now`, or has, is over.
    pub(crate) fn expire(&mut self, now: Time) {
        for class in 0..8 {
            if self.is_paused(class as u8) && self.pauses[class].until <= now {
                self.resume(class, now);
            }
        }
    }

    /// Bit c: class c has just been paused for `after`, which is too long.
    pub(crate) fn overrun(&mut self, now: Time, after: Dur) -> u8 {
        let due = |class: &usize| {
            let new = self.paused & !self.overdue & 1 << class != 0;
            new && self.pauses[*class].since + after <= now
        };
        let overrun = (0..8).filter(due).fold(0, |mask, class| mask | 1 << class);
        self.overdue |= overrun;
        self.stats.watchdog += u64::from(overrun.count_ones());
        overrun
    }

    /// Since when the first of the classes is paused that have not been for too long.
    pub(crate) fn first_since(&self) -> Option<Time> {
        let bearable = self.paused & !self.overdue;
        let classes = (0..8).filter(|class| bearable & 1 << class != 0);
        classes.map(|class| self.pauses[class].since).min()
    }

    /// Bit c: class c is paused.
    pub(crate) fn paused(&self) -> u8 {
        self.paused
    }

    /// Bit c: class c is paused and has been for too long.
    pub(crate) fn overdue(&self) -> u8 {
        self.overdue
    }

    pub(crate) fn is_paused(&self, class: u8) -> bool {
        self.paused & 1 << class != 0
    }

    /// Since when `class` is paused, and how deep in a row of pauses; `None` if it is not.
    pub(crate) fn pause(&self, class: u8) -> Option<(Time, u8)> {
        let pause = self.pauses[usize::from(class)];
        self.is_paused(class).then_some((pause.since, pause.depth))
    }

    /// The watchdog has dropped a packet.
    pub(crate) fn count_drop(&mut self) {
        self.stats.watchdog_drops += 1;
    }

    /// What has happened so far, pauses that are not over included.
    pub(crate) fn stats(&self, now: Time) -> PauseStats {
        let mut stats = self.stats;
        for class in 0..8 {
            if let Some((since, _)) = self.pause(class) {
                stats.add(now.since(since));
            }
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_says_all_that_has_changed_and_nothing_that_was_taken_back() {
        let mut teller = Teller::default();
        assert!(!teller.has_news());
        teller.want(3, true, 2).unwrap();
        teller.want(5, true, 1).unwrap();
        teller.want(5, false, 0).unwrap();
        assert_eq!(teller.tell(false), Frame::new(0b1000, 0b1000, 2));
        assert!(!teller.has_news());
        teller.want(3, false, 0).unwrap();
        teller.want(0, true, 1).unwrap();
        assert_eq!(teller.tell(false), Frame::new(0b1001, 0b0001, 1));
    }

    /// specs/rdma.md#I3.
    #[test]
    fn i3_stops_and_resumes_alternate() {
        let mut teller = Teller::default();
        assert!(teller.want(0, false, 0).is_err());
        teller.want(0, true, 1).unwrap();
        assert!(teller.want(0, true, 1).is_err());
        teller.want(1, true, 1).unwrap();
        teller.want(0, false, 0).unwrap();
        assert!(teller.want(0, false, 0).is_err());
    }

    #[test]
    fn who_is_stopped_for_a_time_is_told_again_unless_it_may_go_on() {
        let mut teller = Teller::default();
        teller.want(0, true, 1).unwrap();
        teller.want(1, true, 1).unwrap();
        teller.tell(true);
        teller.remind();
        assert!(teller.has_news());
        teller.want(1, false, 0).unwrap();
        assert_eq!(teller.tell(true), Frame::new(0b11, 0b01, 1));
        assert!(!teller.has_news());
        teller.want(0, false, 0).unwrap();
        assert_eq!(teller.tell(true), Frame::new(0b01, 0, 0));
        teller.remind();
        assert!(!teller.has_news());
    }

    #[test]
    fn a_gate_counts_pauses_and_their_time_once() {
        let mut gate = Gate::default();
        let stop = |classes| Frame::new(classes, classes, 1);
        gate.hear(stop(0b11), Time(100), Time(500));
        gate.hear(stop(0b01), Time(300), Time(700));
        assert_eq!(gate.pause(0), Some((Time(100), 1)), "said again, it is still one pause");
        gate.expire(Time(500));
        assert_eq!(gate.paused(), 0b01);
        gate.hear(Frame::new(0b11, 0, 0), Time(600), Time::NEVER);
        assert_eq!(gate.paused(), 0);
        gate.hear(stop(0b10), Time(900), Time::NEVER);
        let stats = gate.stats(Time(950));
        assert_eq!((stats.pauses, stats.resumes), (3, 2));
        assert_eq!((stats.paused, stats.longest), (Dur(400 + 500 + 50), Dur(500)));
    }

    #[test]
    fn the_watchdog_barks_once_for_each_pause() {
        let mut gate = Gate::default();
        let stop = Frame::new(1, 1, 1);
        gate.hear(stop, Time(100), Time::NEVER);
        assert_eq!(gate.overrun(Time(149), Dur(50)), 0);
        assert_eq!((gate.overrun(Time(150), Dur(50)), gate.overdue()), (1, 1));
        assert_eq!(gate.overrun(Time(200), Dur(50)), 0);
        gate.hear(Frame::new(1, 0, 0), Time(210), Time::NEVER);
        assert_eq!(gate.overdue(), 0);
        gate.hear(stop, Time(220), Time::NEVER);
        assert_eq!(gate.overrun(Time(260), Dur(50)), 0, "another pause, another time");
        assert_eq!(gate.overrun(Time(270), Dur(50)), 1);
        assert_eq!(gate.stats(Time(270)).watchdog, 2);
    }
}
