//! The two windows of EQDS: a DCTCP without an average, and SMaRTT (specs/uet.md#13.4).

use units::{Dur, Time};

/// The queueing delay that SMaRTT aims at (`EqdsSrc::_target_Qdelay` of the public simulator, as
/// all that follows).
const TARGET: Dur = Dur::from_us(7);
/// Below this delay a window may grow fast.
const NO_DELAY: Dur = Dur::from_us(1);
/// It then grows by so many packets.
const FAST: u64 = 4;
/// Increase in a round trip, packets (`_beta`).
const BETA: f64 = 0.25;
/// A window falls by this share of itself in a round trip of marks (`_gamma_g`).
const GAMMA: f64 = 0.8;
/// Weight of what is left to the target (`_mi`), and of what is beyond (`_md`).
const INCREASE: f64 = 2.0;
const DECREASE: f64 = 1.0;
/// A mark costs this part of what it covers.
const MARK: u64 = 3;

/// The window of DCTCP after an answer for `newly` bytes.
pub(super) fn dctcp(window: u64, newly: u64, marked: bool, mtu: u64) -> u64 {
    match marked {
        true => window.saturating_sub(newly / MARK).max(mtu),
        false => window + newly * mtu / window,
    }
}

/// What SMaRTT looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Time,
    pub(super) newly: u64,
    pub(super) in_flight: i64,
    pub(super) marked: bool,
    /// Beyond the base round trip.
    pub(super) delay: Dur,
    pub(super) base: Dur,
    /// The greatest window.
    pub(super) most: u64,
    pub(super) mtu: u16,
    pub(super) payload: u16,
}

/// SMaRTT: T. Bonato and others, "SMaRTT-REPS", 2024, as the public simulator has it.
#[derive(Debug, Default)]
pub(super) struct Smartt {
    /// A payload for each answer of this period.
    acked: u64,
    /// The end of this period, once there is one.
    period_end: Option<Time>,
    /// Something was trimmed.
    trimmed: bool,
    /// The window was adapted with packets in flight. These were to be ignored, but the simulator
    /// does not count them: it never changes again.
    frozen: bool,
    /// Bytes that arrived without delay, and how many let the window grow fast.
    fast_count: u64,
    fast_from: u64,
}

impl Smartt {
    /// The window after an answer.
    pub(super) fn on_ack(&mut self, window: u64, seen: Seen) -> u64 {
        self.acked += u64::from(seen.payload);
        let window = self.quick_adapt(window, seen, false);
        if self.frozen {
            return window;
        }
        let mtu = u64::from(seen.mtu);
        if seen.delay < NO_DELAY && !seen.marked {
            self.fast_count += seen.newly;
            if self.fast_count > self.fast_from {
                return (window + FAST * mtu).min(seen.most);
            }
        } else {
            (self.fast_from, self.fast_count) = (window, 0);
        }
        match seen.marked {
            false => (window + grows(window, seen)).min(seen.most),
            true => window.saturating_sub(falls(window, seen)).max(mtu),
        }
    }

    /// The window after a packet of `size` bytes was trimmed.
    pub(super) fn on_nack(&mut self, window: u64, size: u64, seen: Seen) -> u64 {
        if self.frozen {
            return window;
        }
        self.trimmed = true;
        let window = window.saturating_sub(size).max(u64::from(seen.mtu));
        self.quick_adapt(window, seen, true)
    }

    /// At the end of a period in which something was trimmed, what arrived in it.
    fn quick_adapt(&mut self, window: u64, seen: Seen, trimmed: bool) -> u64 {
        if self.frozen || self.period_end.is_some_and(|end| seen.now < end) {
            return window;
        }
        let period = seen.base + TARGET;
        let before = self.period_end.replace(seen.now.saturating_add(period));
        let acked = std::mem::take(&mut self.acked);
        let Some(end) = before.filter(|_| trimmed || self.trimmed) else { return window };
        self.trimmed = false;
        let late = seen.now.since(end) + period;
        let acked = (acked as f64 * period.0 as f64 / late.0 as f64) as u64;
        let payload = u64::from(seen.payload);
        self.frozen = seen.in_flight >= i64::from(seen.payload);
        acked.min(seen.most).max(payload)
    }
}

/// By how much a window grows for unmarked bytes.
fn grows(window: u64, seen: Seen) -> u64 {
    let (bytes, mtu) = (seen.newly as f64, f64::from(seen.mtu));
    let own = bytes * mtu / window as f64;
    let fair = (BETA * own) as u64;
    if seen.delay >= TARGET {
        return fair;
    }
    let left = (TARGET.0 - seen.delay.0) as f64 / (seen.base + seen.delay).0.max(1) as f64;
    ((INCREASE * own * left) as u64).min(seen.newly) + fair
}

/// By how much it falls for marked ones.
fn falls(window: u64, seen: Seen) -> u64 {
    let fair = |window: u64| (window as f64 * GAMMA * seen.newly as f64 / seen.most as f64) as u64;
    if seen.delay < TARGET {
        return fair(window);
    }
    let beyond = (seen.delay.0 - TARGET.0) as f64 / (seen.base + seen.delay).0.max(1) as f64;
    let first = ((DECREASE * seen.newly as f64 * beyond) as u64).min(seen.newly);
    first + fair(window.saturating_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 265_600;

    fn seen(us: u64, marked: bool, delay: Dur) -> Seen {
        let (now, base) = (Time::ZERO + Dur::from_us(us), Dur::from_us(14));
        let (newly, in_flight) = (4150, 100_000);
        Seen { now, newly, in_flight, marked, delay, base, most: MOST, mtu: 4150, payload: 4086 }
    }

    #[test]
    fn dctcp_adds_a_packet_in_a_round_trip_and_a_mark_takes_a_third() {
        let mut window = 100_000;
        for _ in 0..25 {
            window = dctcp(window, 4_000, false, 4150);
        }
        assert!((103_900..=104_150).contains(&window), "{window}");
        assert_eq!(dctcp(100_000, 4150, true, 4150), 100_000 - 1383);
        assert_eq!(dctcp(4200, 4150, true, 4150), 4150, "never less than a packet");
    }

    /// By hand: a quarter of 4150 * 4150 / 100 000 at the target; beside it twice 172 times a third
    /// of the round trip below it.
    #[test]
    fn smartt_grows_by_what_is_left_to_the_target() {
        let grown = |delay| {
            let mut smartt = Smartt { fast_from: MOST, ..Smartt::default() };
            smartt.on_ack(100_000, seen(1, false, delay)) - 100_000
        };
        assert_eq!(grown(Dur::from_us(7)), 43);
        assert_eq!(grown(Dur::from_us(1)), (2.0 * 172.225 * 6.0 / 15.0) as u64 + 43);
    }

    #[test]
    fn smartt_grows_fast_without_delay() {
        let mut smartt = Smartt::default();
        smartt.on_ack(8_000, seen(1, false, Dur::from_us(2)));
        let first = smartt.on_ack(8_000, seen(2, false, Dur::ZERO));
        assert!(first < 8_000 + 4 * 4150, "less than a window so far");
        assert_eq!(smartt.on_ack(8_000, seen(3, false, Dur::ZERO)), 8_000 + 4 * 4150);
    }

    /// By hand: 0.8 of the window, by the share that 4150 B are of the greatest; beyond the target
    /// 7 of 28 us more of these bytes.
    #[test]
    fn smartt_falls_by_marks_and_more_beyond_the_target() {
        let mut smartt = Smartt::default();
        let fair = (100_000.0 * 0.8 * 4150.0 / 265_600.0) as u64;
        assert_eq!(smartt.on_ack(100_000, seen(1, true, Dur::from_us(6))), 100_000 - fair);
        let first = 4150 / 4;
        let fair = ((100_000 - first) as f64 * 0.8 * 4150.0 / 265_600.0) as u64;
        assert_eq!(smartt.on_ack(100_000, seen(2, true, Dur::from_us(14))), 100_000 - first - fair);
    }

    /// Ten answers in 21 us; then nothing changes it any more.
    #[test]
    fn smartt_adapts_once_and_is_frozen() {
        let mut smartt = Smartt::default();
        let mut window = smartt.on_ack(200_000, seen(0, false, Dur::from_us(7)));
        for us in 1..=10 {
            window = smartt.on_ack(window, seen(us, false, Dur::from_us(7)));
        }
        let cut = smartt.on_nack(window, 4150, seen(11, true, Dur::ZERO));
        assert_eq!(cut, window - 4150);
        window = smartt.on_ack(cut, seen(21, false, Dur::from_us(7)));
        assert_eq!(window, 11 * 4086);
        for us in 22..60 {
            assert_eq!(smartt.on_ack(window, seen(us, true, Dur::from_us(20))), window);
            assert_eq!(smartt.on_nack(window, 4150, seen(us, true, Dur::ZERO)), window);
        }
    }
}
