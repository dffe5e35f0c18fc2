//! NSCC: the window of a sender, by specs/uet.md#4.1,4.2,4.3,4.4. Arithmetic only: which packets
//! are in flight, and what is sent, is the sender's business.

use units::{Bytes, Dur, Time};

use super::config::{Network, Profile, WindowControl};
use super::eqds::{self, Seen, Smartt};

/// The network that the constants were found on.
const REFERENCE_BDP: f64 = 150_000.0;
const REFERENCE_RTT: Dur = Dur::from_us(12);
/// A window falls by this share of what the average delay is beyond its target.
const GAMMA: f64 = 0.8;
/// But by no more than to this share.
const DECREASE_MAX: f64 = 0.5;
/// Weight of a new sample in the average delay.
const DELAY_GAIN: f64 = 0.0125;
/// Below this delay a window may grow fast.
const NO_DELAY: Dur = Dur::from_us(1);
/// Where there is none, all fits.
const NO_WINDOW: u64 = i64::MAX as u64;
/// Less than the greatest window, shifted by this, achieved in a period is next to nothing.
const QA_GATE: u32 = 3;

/// Values that follow from the network (specs/uet.md#2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derived {
    /// The queueing delay that windows aim at.
    pub target: Dur,
    /// Increase for each byte and picosecond below the target.
    pub alpha: f64,
    /// Increase for each byte at the target and beyond it.
    pub fi: f64,
    /// Increase for each byte without any delay.
    pub fi_scale: f64,
    /// Increase in each round trip, bytes.
    pub eta: f64,
    /// The window is adjusted after so many bytes.
    pub adjust_bytes: u64,
    /// Or after so long.
    pub adjust_period: Dur,
    /// Beyond this delay it is adapted at once.
    pub qa_delay: Dur,
    /// Its least value, bytes.
    pub min_window: u64,
    /// Its greatest value at first, bytes.
    pub max_window: u64,
}

impl Derived {
    /// For switches that trim, or do not.
    #[must_use]
    pub fn new(network: &Network, trimming: bool) -> Self {
        let (mtu, payload) = (u64::from(network.mtu), f64::from(network.payload));
        let target = if trimming { Dur(network.rtt.0 * 3 / 4) } else { network.rtt };
        let a = network.bdp() as f64 / REFERENCE_BDP;
        let b = target.0 as f64 / REFERENCE_RTT.0 as f64;
        Self {
            target,
            alpha: 4.0 * payload * a * b / target.0.max(1) as f64,
            fi: 5.0 * payload * a,
            fi_scale: 0.25 * a,
            eta: 0.15 * payload * a,
            adjust_bytes: 8 * mtu,
            adjust_period: network.rtt,
            qa_delay: target * 4,
            min_window: mtu,
            max_window: max_window(network),
        }
    }
}

/// One and a half bandwidth-delay products, but never less than a packet.
fn max_window(network: &Network) -> u64 {
    (network.bdp() + network.bdp() / 2).max(u64::from(network.mtu))
}

/// The answer to a packet, as far as it counts for the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) now: Time,
    /// Bytes on the wire that have newly arrived.
    pub(super) newly: u64,
    /// Bytes in flight.
    pub(super) in_flight: i64,
    pub(super) marked: bool,
    /// The round trip of a packet, if that is certain.
    pub(super) rtt: Option<Dur>,
}

/// The window of one message.
#[derive(Debug)]
pub(super) struct Nscc {
    control: WindowControl,
    profile: Profile,
    derived: Derived,
    /// With the least round trip seen.
    network: Network,
    /// The round trip that was configured.
    network_rtt: Dur,
    window: u64,
    max_window: u64,
    /// Picoseconds.
    average_delay: f64,
    /// To be added to the window, times the window.
    inc: f64,
    /// Bytes that arrived since the last adjustment.
    received: u64,
    last_adjust: Time,
    last_decrease: Option<Time>,
    /// Bytes that arrived without delay.
    fast_count: u64,
    /// It grows fast.
    fast: bool,
    /// Bytes that arrived in this period of quick adapt.
    achieved: u64,
    /// The end of this period, once there is one.
    period_end: Option<Time>,
    /// Something was trimmed.
    trigger: bool,
    bytes_ignored: u64,
    bytes_to_ignore: u64,
    /// Of SMaRTT.
    smartt: Smartt,
}

impl Nscc {
    pub(super) fn new(
        now: Time,
        (control, profile): (WindowControl, Profile),
        (network, trimming, most): (Network, bool, u64),
        first: Option<Bytes>,
    ) -> Self {
        let derived = Derived::new(&network, trimming);
        let min_window = derived.min_window;
        let max_window = match control {
            WindowControl::Nscc => derived.max_window.min(most),
            _ => most,
        };
        Self {
            control,
            profile,
            derived,
            network,
            network_rtt: network.rtt,
            window: match control {
                WindowControl::None => NO_WINDOW,
                _ => first.map_or(max_window, |first| first.0.clamp(min_window, max_window)),
            },
            max_window,
            average_delay: 0.0,
            inc: 0.0,
            received: 0,
            last_adjust: now,
            last_decrease: None,
            fast_count: 0,
            fast: false,
            achieved: 0,
            period_end: None,
            trigger: false,
            bytes_ignored: 0,
            bytes_to_ignore: 0,
            smartt: Smartt::default(),
        }
    }

    /// Whether a packet of `size` bytes may go with so many in flight. EQDS sends while any may.
    pub(super) fn admits(&self, in_flight: i64, size: u16) -> bool {
        let size = match self.control {
            WindowControl::Dctcp | WindowControl::Smartt => 1,
            _ => i64::from(size),
        };
        in_flight.saturating_add(size) <= self.window as i64
    }

    /// Whether a packet of `size` bytes asks for an acknowledgement, with which so many bytes are
    /// in flight: no other may go. Receivers acknowledge by themselves after `threshold` bytes.
    pub(super) fn asks(&self, in_flight: i64, size: u16, threshold: u32) -> bool {
        let (window, mtu) = (self.window as i64, i64::from(self.network.mtu));
        match self.profile {
            Profile::Htsim => in_flight.saturating_add(i64::from(size)) >= window,
            Profile::Ue10 => {
                window.saturating_sub(in_flight) < mtu || window < i64::from(threshold)
            }
        }
    }

    /// Bytes that may be in flight.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// The same, if there is a window at all.
    pub(super) fn some_window(&self) -> Option<u64> {
        (self.control != WindowControl::None).then_some(self.window)
    }

    /// The most that may ever be in flight.
    pub(super) fn max_window(&self) -> u64 {
        self.max_window
    }

    /// The least round trip so far.
    pub(super) fn base_rtt(&self) -> Dur {
        self.network.rtt
    }

    /// The queueing delay that it aims at.
    pub(super) fn target(&self) -> Dur {
        self.derived.target
    }

    /// Something has arrived.
    pub(super) fn on_ack(&mut self, answer: Answer) {
        let Answer { newly, rtt, marked, .. } = answer;
        self.achieved = self.achieved.saturating_add(newly);
        self.received = self.received.saturating_add(newly);
        self.bytes_ignored = self.bytes_ignored.saturating_add(newly);
        let delay = match rtt {
            Some(rtt) => {
                self.lower_base(rtt);
                let delay = rtt.0.saturating_sub(self.network.rtt.0) as f64;
                self.average(delay, marked);
                delay
            }
            None if self.profile == Profile::Ue10 => return,
            None => self.average_delay,
        };
        match self.control {
            WindowControl::Nscc => {}
            WindowControl::Dctcp => {
                self.window = eqds::dctcp(self.window, newly, marked, u64::from(self.network.mtu));
                return;
            }
            WindowControl::Smartt => {
                let seen = self.seen(answer, Dur(delay as u64));
                self.window = self.smartt.on_ack(self.window, seen);
                return;
            }
            WindowControl::Constant | WindowControl::None => return,
        }
        if self.quick_adapt(answer, delay) {
            return;
        }
        let target = self.derived.target.0 as f64;
        match (marked, delay < target) {
            (false, false) => self.inc += self.derived.fi * newly as f64,
            (false, true) => self.increase(newly, delay),
            (true, false) => self.decrease(answer.now),
            (true, true) => {}
        }
        self.bound();
        let waited = answer.now.since(self.last_adjust);
        if self.received > self.derived.adjust_bytes || waited > self.derived.adjust_period {
            self.adjust(answer.now);
        }
        self.bound();
    }

    /// A packet of `size` bytes was trimmed. `spare`: where credit takes care of it, which is not
    /// cut off the window.
    pub(super) fn on_nack(&mut self, answer: Answer, size: u64, spare: bool) {
        if let Some(rtt) = answer.rtt {
            self.lower_base(rtt);
        }
        self.bytes_ignored = self.bytes_ignored.saturating_add(size);
        self.average(self.network_rtt.0 as f64, true);
        if spare && self.profile == Profile::Ue10 {
            self.bound();
            return;
        }
        self.trigger = true;
        // Trimming says what a mark would.
        let answer = Answer { marked: true, ..answer };
        match self.control {
            WindowControl::Dctcp => {
                self.window = self.window.saturating_sub(size).max(self.derived.min_window);
            }
            WindowControl::Smartt => {
                let seen = self.seen(answer, Dur::ZERO);
                self.window = self.smartt.on_nack(self.window, size, seen);
            }
            _ => {}
        }
        if self.control == WindowControl::Nscc && !self.quick_adapt(answer, 0.0) && !spare {
            self.window = self.window.saturating_sub(size);
        }
        self.bound();
    }

    /// What SMaRTT looks at.
    fn seen(&self, answer: Answer, delay: Dur) -> Seen {
        let Answer { now, newly, in_flight, marked, .. } = answer;
        let Network { rtt: base, mtu, payload, .. } = self.network;
        let most = self.max_window;
        Seen { now, newly, in_flight, marked, delay, base, most, mtu, payload }
    }

    /// A packet of `size` bytes is lost.
    pub(super) fn on_loss(&mut self, size: u64) {
        if self.control == WindowControl::Nscc {
            self.window = self.window.saturating_sub(size);
            self.bound();
        }
        if self.profile == Profile::Ue10 {
            self.bytes_ignored = self.bytes_ignored.saturating_add(size);
        }
    }

    /// The base round trip is the least that was seen.
    fn lower_base(&mut self, rtt: Dur) {
        if rtt < self.network.rtt {
            self.network.rtt = rtt;
            if self.control == WindowControl::Nscc {
                self.max_window = self.max_window.min(max_window(&self.network));
                self.bound();
            }
        }
    }

    fn average(&mut self, delay: f64, marked: bool) {
        // A long queue that does not mark is not believed to last.
        let beyond = !marked && delay > self.derived.target.0 as f64;
        let sample = if beyond { 0.25 * self.network.rtt.0 as f64 } else { delay };
        self.average_delay += DELAY_GAIN * (sample - self.average_delay);
    }

    /// Below the target: fast where there is no delay, else in proportion to what is left to it.
    fn increase(&mut self, newly: u64, delay: f64) {
        if delay < NO_DELAY.0 as f64 {
            self.fast_count = self.fast_count.saturating_add(newly);
            if self.fast_count > self.window || self.fast {
                self.fast = true;
                self.window = grown(self.window, newly as f64 * self.derived.fi_scale);
                return;
            }
        } else {
            self.fast_count = 0;
        }
        self.fast = false;
        let room = self.derived.target.0 as f64 - delay;
        self.inc += self.derived.alpha * newly as f64 * room;
    }

    /// At most once in a round trip.
    fn decrease(&mut self, now: Time) {
        (self.fast, self.fast_count) = (false, 0);
        let (average, target) = (self.average_delay, self.derived.target.0 as f64);
        let lately = self.last_decrease.is_some_and(|last| now.since(last) <= self.network.rtt);
        if average <= target || lately {
            return;
        }
        let share = (1.0 - GAMMA * (average - target) / average).max(DECREASE_MAX);
        self.window = (self.window as f64 * share) as u64;
        self.last_decrease = Some(now);
    }

    fn adjust(&mut self, now: Time) {
        self.window = grown(self.window, self.inc / self.window as f64);
        if now.since(self.last_adjust) >= self.derived.adjust_period {
            self.window = grown(self.window, self.derived.eta);
            self.last_adjust = now;
        }
        (self.inc, self.received) = (0.0, 0);
    }

    /// Whether what has come has to be ignored, or has changed the window at once.
    fn quick_adapt(&mut self, answer: Answer, delay: f64) -> bool {
        let Answer { now, in_flight, marked, .. } = answer;
        let mut done = false;
        let at_end = self.profile == Profile::Ue10;
        if self.bytes_ignored < self.bytes_to_ignore && marked {
            done = true;
        } else if self.period_end.is_none_or(|end| now > end || at_end && now == end) {
            let bad = self.trigger || delay > self.derived.qa_delay.0 as f64;
            if self.period_end.is_some() && bad && self.achieved < self.max_window >> QA_GATE {
                self.window = self.achieved;
                self.bound();
                self.bytes_to_ignore = u64::try_from(in_flight).unwrap_or(0);
                self.bytes_ignored = 0;
                self.trigger = false;
                done = true;
            }
            self.achieved = 0;
            self.period_end =
                Some(now.saturating_add(self.network.rtt).saturating_add(self.derived.target));
        }
        if done {
            (self.inc, self.received) = (0.0, 0);
        }
        done
    }

    /// specs/uet.md#U1.
    fn bound(&mut self) {
        if self.control != WindowControl::Nscc {
            return;
        }
        self.window = self.window.clamp(self.derived.min_window, self.max_window);
    }
}

/// `window` with so many whole bytes more.
fn grown(window: u64, by: f64) -> u64 {
    window.saturating_add(by as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Rate;

    use super::*;

    /// Three tiers at 100 Gb/s and 1 us a link: the worked example of specs/uet.md#2.
    fn worked() -> Network {
        let rate = Rate(100_000_000_000);
        let (mtu, payload) = (4150, 4086);
        let rtt = Dur::from_us(12) + rate.serialise(4150 + 64) * 6;
        Network { rtt, rate, mtu, payload }
    }

    #[test]
    fn derived_values_are_those_of_the_table() {
        let network = worked();
        assert_eq!(network.rtt, Dur(14_022_720));
        assert_eq!((network.bdp(), network.bdp_packets()), (175_284, 43));
        assert_eq!((network.queue(), network.rto()), (178_450, Dur(100_656_000)));
        let derived = Derived::new(&network, true);
        assert_eq!(derived.target, Dur(10_517_040));
        assert_eq!(Derived::new(&network, false).target, network.rtt, "without trimming");
        assert_eq!(derived.qa_delay, Dur(42_068_160));
        let close = |value: f64, expected: f64| (value / expected - 1.0).abs() < 2e-5;
        assert!(close(derived.alpha, 0.001_591_58), "{}", derived.alpha);
        assert!(close(derived.fi, 23_873.7), "{}", derived.fi);
        assert!(close(derived.eta, 716.2), "{}", derived.eta);
        assert!(close(derived.fi_scale, 0.292_14), "{}", derived.fi_scale);
        assert_eq!((derived.min_window, derived.max_window), (4150, 262_926));
        assert_eq!((derived.adjust_bytes, derived.adjust_period), (33_200, network.rtt));
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    fn window(first: u64) -> Nscc {
        by(Profile::Htsim, first)
    }

    fn by(profile: Profile, first: u64) -> Nscc {
        let of = (WindowControl::Nscc, profile);
        Nscc::new(at(0), of, (worked(), true, 262_926), Some(Bytes(first)))
    }

    fn answer(us: u64, newly: u64, marked: bool, delay: Dur) -> Answer {
        let rtt = Some(worked().rtt + delay);
        Answer { now: at(us), newly, in_flight: 50_000, marked, rtt }
    }

    /// By hand: 40 000 B at 5 us add alpha * 40000 * 5.517 us / 100000; the period adds eta.
    #[test]
    fn a_window_grows_in_proportion_to_what_is_left_to_the_target() {
        let mut nscc = window(100_000);
        nscc.on_ack(answer(10, 40_000, false, Dur::from_us(5)));
        let expected = 0.001_591_58 * 40_000.0 * 5_517_040.0 / 100_000.0;
        assert_eq!(nscc.window, 100_000 + expected as u64, "and 33 200 B are enough");
        nscc.on_ack(answer(20, 0, false, Dur::from_us(5)));
        assert_eq!(nscc.window, 100_000 + expected as u64 + 716, "a round trip has passed");
    }

    #[test]
    fn at_the_target_it_grows_by_bytes_and_without_delay_fast() {
        let mut nscc = window(100_000);
        nscc.on_ack(answer(10, 40_000, false, Dur::from_us(11)));
        assert_eq!(nscc.window, 100_000 + (23_873.7 * 40_000.0 / 100_000.0) as u64);
        let mut nscc = window(50_000);
        nscc.on_ack(answer(1, 30_000, false, Dur::ZERO));
        assert!(!nscc.fast, "less than a window so far");
        nscc.on_ack(answer(2, 30_000, false, Dur::ZERO));
        assert!(nscc.fast && nscc.window > 50_000 + (30_000.0 * 0.292_14) as u64 - 1);
        nscc.on_ack(answer(3, 1_000, false, Dur::from_us(2)));
        assert!(!nscc.fast && nscc.fast_count == 0);
    }

    /// The average passes the target after many marked samples of three targets.
    #[test]
    fn marks_beyond_the_target_shrink_it_once_in_a_round_trip() {
        let mut nscc = window(200_000);
        nscc.average_delay = 20_000_000.0;
        let marked = |us| answer(us, 4_150, true, Dur::from_us(20));
        nscc.on_ack(marked(1));
        let share = 1.0 - 0.8 * (20.0 - 10.517_04) / 20.0;
        assert_eq!(nscc.window, (200_000.0 * share) as u64);
        let after = nscc.window;
        nscc.on_ack(marked(10));
        assert_eq!(nscc.window, after, "nine microseconds later");
        nscc.average_delay = 1e12;
        nscc.on_ack(marked(16));
        assert!((after / 2..after / 2 + 1_000).contains(&nscc.window), "by half at most");
        let after = nscc.window;
        nscc.on_ack(answer(40, 0, true, Dur::from_us(5)));
        assert!(nscc.window < after + 1_000, "a mark below the target changes only the path");
    }

    /// Hardly anything arrived in the period, and something was trimmed: the window is what did.
    #[test]
    fn quick_adapt_takes_what_was_achieved_and_then_ignores_what_was_in_flight() {
        let mut nscc = window(262_926);
        nscc.on_ack(answer(1, 4_150, true, Dur::from_us(20)));
        assert_eq!(nscc.period_end, Some(at(1) + Dur(14_022_720 + 10_517_040)));
        nscc.on_ack(answer(20, 12_450, true, Dur::from_us(20)));
        nscc.on_nack(answer(30, 0, false, Dur::ZERO), 4_150, false);
        assert_eq!(nscc.window, 12_450);
        assert_eq!((nscc.bytes_to_ignore, nscc.bytes_ignored), (50_000, 0));
        for _ in 0..11 {
            nscc.on_nack(answer(31, 0, true, Dur::ZERO), 4_150, false);
            assert_eq!(nscc.window, 12_450, "these were in flight");
        }
        nscc.on_nack(answer(32, 0, true, Dur::ZERO), 4_150, false);
        nscc.on_nack(answer(33, 0, true, Dur::ZERO), 4_150, false);
        assert_eq!(nscc.window, 4_150 + 4_150);
    }

    /// specs/uet.md#4.7, row by row: what each profile makes of the same answers.
    #[test]
    fn the_text_differs_where_the_table_says() {
        let both = |act: &dyn Fn(&mut Nscc) -> u64| {
            [Profile::Htsim, Profile::Ue10].map(|profile| act(&mut by(profile, 100_000)))
        };
        let unsure = |nscc: &mut Nscc| {
            let answer = Answer { rtt: None, ..answer(10, 40_000, false, Dur::ZERO) };
            nscc.on_ack(answer);
            nscc.window
        };
        let [simulator, text] = both(&unsure);
        assert!(simulator > 100_000 && text == 100_000, "without a sample: {simulator} {text}");
        let last_hop = |nscc: &mut Nscc| {
            nscc.on_nack(answer(10, 0, false, Dur::ZERO), 4_150, true);
            u64::from(nscc.trigger)
        };
        assert_eq!(both(&last_hop), [1, 0], "where credit takes care of it");
        let lost = |nscc: &mut Nscc| {
            nscc.on_loss(4_150);
            nscc.bytes_ignored
        };
        assert_eq!(both(&lost), [0, 4_150]);
        let last_tick = |nscc: &mut Nscc| {
            nscc.on_ack(answer(1, 4_150, true, Dur::from_us(20)));
            nscc.trigger = true;
            let end = nscc.period_end.unwrap();
            nscc.on_ack(Answer { now: end, ..answer(0, 0, true, Dur::from_us(20)) });
            nscc.window
        };
        assert_eq!(both(&last_tick)[1], 4_150, "what was achieved");
        assert!(both(&last_tick)[0] > 90_000, "not yet");
        let asks = |in_flight| both(&|nscc| u64::from(nscc.asks(in_flight, 4_150, 16_384)));
        assert_eq!(asks(95_849), [0, 0], "another packet fits");
        assert_eq!(asks(95_850), [1, 0], "another packet just fits");
        assert_eq!(asks(95_851), [1, 1]);
        let small = by(Profile::Ue10, 12_450);
        assert!(small.asks(4_150, 4_150, 16_384), "the receiver would wait for more than fits");
        assert!(!by(Profile::Htsim, 12_450).asks(4_150, 4_150, 16_384));
    }

    #[test]
    fn a_constant_window_stays() {
        let mut nscc = Nscc::new(
            at(0),
            (WindowControl::Constant, Profile::Htsim),
            (worked(), true, 262_926),
            Some(Bytes(50_000)),
        );
        for us in 1..200 {
            nscc.on_ack(answer(us, 4_150, us % 2 == 0, Dur::from_us(us)));
            nscc.on_nack(answer(us, 0, true, Dur::ZERO), 4_150, false);
            nscc.on_loss(4_150);
            assert_eq!(nscc.window(), 50_000);
        }
    }

    proptest! {
        /// specs/uet.md#U1,U10: whatever is answered.
        #[test]
        fn u1_u10_the_window_keeps_its_bounds(
            text in any::<bool>(),
            answers in proptest::collection::vec(
                (0..40u64, 0..300_000u64, any::<bool>(), proptest::option::of(0..200u64), 0..4u8,
                 -10_000i64..400_000),
                1..300,
            ),
        ) {
            let mut nscc = by(if text { Profile::Ue10 } else { Profile::Htsim }, 262_926);
            let (mut now, mut base) = (0, worked().rtt);
            let mut last_cut: Option<Time> = None;
            for (after, newly, marked, rtt, what, in_flight) in answers {
                now += after;
                let (before, decreased) = (nscc.window, nscc.last_decrease);
                let rtt = rtt.map(Dur::from_us);
                let answer = Answer { now: at(now), newly, in_flight, marked, rtt };
                match what {
                    0 => nscc.on_nack(answer, 4_150, false),
                    1 => nscc.on_loss(4_150),
                    _ => nscc.on_ack(answer),
                }
                if what != 1 {
                    base = rtt.map_or(base, |rtt| base.min(rtt));
                }
                let most = (worked().rate.bytes_in(base).0 * 3 / 2).max(4_150);
                prop_assert!((4_150..=most).contains(&nscc.window()), "{}", nscc.window());
                if nscc.last_decrease != decreased {
                    let least = (before / 2).min(most);
                    prop_assert!(nscc.window() >= least.min(before / 2));
                    let apart = last_cut.is_none_or(|last| at(now).since(last) > base);
                    prop_assert!(apart, "two decreases in a round trip");
                    last_cut = nscc.last_decrease;
                }
            }
        }
    }
}
