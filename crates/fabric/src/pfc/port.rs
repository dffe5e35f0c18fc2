//! Flow control at one port: what it asks of the far end of its link ([`PauseTx`]), and what the
//! far end asks of it ([`PauseRx`]).

use units::{Dur, Time};

use super::frame::Frame;
use crate::outcome::PauseStats;

/// The one place that a port has for frames: what is to be sent when the packet in service has
/// left.
#[derive(Debug, Default)]
pub(crate) struct PauseTx {
    /// Bit c: class c is to be stopped at the far end.
    wanted: u8,
    /// Bit c: the last frame that named class c stopped it.
    advertised: u8,
    /// What is to be stopped there is to be sent again.
    again: bool,
    /// Bit c: what was last said of class c may not be known at the far end.
    doubtful: u8,
    /// When that is due next, where a pause ends by itself.
    pub(super) again_at: Time,
    /// How deep a pause of each class would be.
    depths: [u8; 8],
}

impl PauseTx {
    /// From now on, `class` is to be stopped or not. A stop that is taken back before its frame was
    /// sent is never sent.
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

    /// What has been stopped at the far end would resume soon: it is to be stopped again.
    pub(crate) fn refresh(&mut self) {
        self.again = true;
    }

    /// The far end has forgotten what was said to it.
    pub(crate) fn repeat(&mut self) {
        self.doubtful |= self.advertised;
    }

    /// Bit c: the last frame that named class c stopped it.
    pub(crate) fn advertised(&self) -> u8 {
        self.advertised
    }

    /// Whether there is a frame to send.
    pub(crate) fn pending(&self) -> bool {
        let changed = self.wanted ^ self.advertised | self.doubtful;
        changed != 0 || self.again && self.wanted != 0
    }

    /// The frame to send: what has changed and, if pauses end by themselves (`timed`), everything
    /// that is to be stopped, so that all of it is refreshed at one time.
    pub(crate) fn next_frame(&mut self, timed: bool) -> Frame {
        let changed = self.wanted ^ self.advertised | self.doubtful;
        let classes = changed | if timed { self.wanted } else { 0 };
        let stops = (0..8).filter(|class| classes & self.wanted & 1 << class != 0);
        let depth = stops.map(|class| self.depths[class]).max().unwrap_or(0);
        self.advertised = self.wanted;
        (self.again, self.doubtful) = (false, 0);
        Frame::new(classes, self.wanted, depth)
    }
}

/// The pauses of a port's classes.
#[derive(Debug, Default)]
pub(crate) struct PauseRx {
    /// Bit c: class c is paused.
    paused: u8,
    /// Bit c: class c is paused and has been for too long.
    overdue: u8,
    pauses: [Pausing; 8],
    /// By class, how long pauses have been that are over, all together.
    over: [Dur; 8],
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

impl PauseRx {
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
            let lasted = now.since(self.pauses[class].since);
            self.stats.resumes += 1;
            self.stats.add(lasted);
            self.over[class] += lasted;
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

    /// Every pause is over.
    pub(crate) fn forget(&mut self, now: Time) {
        (0..8).for_each(|class| self.resume(class, now));
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

    /// How long `class`, at most 7, has been paused by `now`.
    pub(crate) fn paused_for(&self, class: u8, now: Time) -> Dur {
        let lasts = self.pause(class).map_or(Dur::ZERO, |(since, _)| now.since(since));
        self.over[usize::from(class)] + lasts
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
    fn one_frame_carries_all_that_has_changed_and_nothing_taken_back() {
        let mut tx = PauseTx::default();
        assert!(!tx.pending());
        tx.want(3, true, 2).unwrap();
        tx.want(5, true, 1).unwrap();
        tx.want(5, false, 0).unwrap();
        assert_eq!(tx.next_frame(false), Frame::new(0b1000, 0b1000, 2));
        assert!(!tx.pending());
        tx.want(3, false, 0).unwrap();
        tx.want(0, true, 1).unwrap();
        assert_eq!(tx.next_frame(false), Frame::new(0b1001, 0b0001, 1));
    }

    /// specs/rdma.md#I3.
    #[test]
    fn i3_stops_and_resumes_alternate() {
        let mut tx = PauseTx::default();
        assert!(tx.want(0, false, 0).is_err());
        tx.want(0, true, 1).unwrap();
        assert!(tx.want(0, true, 1).is_err());
        tx.want(1, true, 1).unwrap();
        tx.want(0, false, 0).unwrap();
        assert!(tx.want(0, false, 0).is_err());
    }

    #[test]
    fn a_timed_pause_is_refreshed_unless_the_class_may_resume() {
        let mut tx = PauseTx::default();
        tx.want(0, true, 1).unwrap();
        tx.want(1, true, 1).unwrap();
        tx.next_frame(true);
        tx.refresh();
        assert!(tx.pending());
        tx.want(1, false, 0).unwrap();
        assert_eq!(tx.next_frame(true), Frame::new(0b11, 0b01, 1));
        assert!(!tx.pending());
        tx.want(0, false, 0).unwrap();
        assert_eq!(tx.next_frame(true), Frame::new(0b01, 0, 0));
        tx.refresh();
        assert!(!tx.pending());
    }

    #[test]
    fn a_port_counts_pauses_and_their_time_once() {
        let mut rx = PauseRx::default();
        let stop = |classes| Frame::new(classes, classes, 1);
        rx.hear(stop(0b11), Time(100), Time(500));
        rx.hear(stop(0b01), Time(300), Time(700));
        assert_eq!(rx.pause(0), Some((Time(100), 1)), "said again, it is still one pause");
        assert_eq!(rx.paused_for(0, Time(350)), Dur(250));
        rx.expire(Time(500));
        assert_eq!(rx.paused(), 0b01);
        rx.hear(Frame::new(0b11, 0, 0), Time(600), Time::NEVER);
        assert_eq!(rx.paused(), 0);
        rx.hear(stop(0b10), Time(900), Time::NEVER);
        let stats = rx.stats(Time(950));
        assert_eq!((stats.pauses, stats.resumes), (3, 2));
        assert_eq!([0, 1, 2].map(|class| rx.paused_for(class, Time(950)).0), [500, 450, 0]);
        assert_eq!((stats.paused, stats.longest), (Dur(400 + 500 + 50), Dur(500)));
    }

    #[test]
    fn the_watchdog_barks_once_for_each_pause() {
        let mut rx = PauseRx::default();
        let stop = Frame::new(1, 1, 1);
        rx.hear(stop, Time(100), Time::NEVER);
        assert_eq!(rx.overrun(Time(149), Dur(50)), 0);
        assert_eq!((rx.overrun(Time(150), Dur(50)), rx.overdue()), (1, 1));
        assert_eq!(rx.overrun(Time(200), Dur(50)), 0);
        rx.hear(Frame::new(1, 0, 0), Time(210), Time::NEVER);
        assert_eq!(rx.overdue(), 0);
        rx.hear(stop, Time(220), Time::NEVER);
        assert_eq!(rx.overrun(Time(260), Dur(50)), 0, "another pause, another time");
        assert_eq!(rx.overrun(Time(270), Dur(50)), 1);
        assert_eq!(rx.stats(Time(270)).watchdog, 2);
    }
}
