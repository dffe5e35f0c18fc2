//! The sender by itself: scripts of what is acknowledged when, in segments, and what must be sent.

use endpoint::{Effect, Effects, Stat, UNBOUNDED};
use units::{Dur, HostId, MsgId, Time};
use wire::tcp::Control;

use crate::deadlines::Timer;
use crate::tcp::config::{Config, IdleRestart, Increase, ReceiveWindow, Recovery, Reduces, Undo};
use crate::tcp::ictcp;
use crate::tcp::retransmission::Retransmission;
use crate::tcp::rr;
use crate::tcp::rule::{RuleConfig, State, cubic, dctcp};
use crate::tcp::sender::{Identity, Incoming, Sender};
use crate::tcp::timestamps;
use crate::tcp::window::Phase;

const MSS: u64 = 1000;

/// Ten segments at once, then by the textbook.
fn config() -> Config {
    Config {
        increase: Increase::PerAck,
        limited_transmit: false,
        ssthresh_of: Reduces::Flight,
        ..Config::linux_datacenter(MSS as u16)
    }
}

/// An acknowledgement of all segments before `n`, and no more than that.
fn everything_before(n: u64) -> Incoming<'static> {
    Incoming {
        ack: n * MSS,
        edge: u64::MAX,
        stamp: 0,
        echo: 0,
        complete: false,
        marked: false,
        sack: &[],
    }
}

struct Script {
    config: Config,
    sender: Sender,
    now: Time,
    fx: Effects,
}

impl Script {
    /// A sender with no end of data, which has sent segments 0 to 9.
    fn new(config: Config) -> Self {
        let id = Identity { dst: HostId(1), conn: 0, path: 0, channel: 0, mss: MSS as u16 };
        let mut sender = Sender::new(&config, id);
        sender.submit(MsgId(0), UNBOUNDED, Time::NEVER);
        let mut script = Self { config, sender, now: Time::ZERO, fx: Effects::new() };
        assert_eq!(script.sent(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        script
    }

    /// The segments that it sends now.
    fn sent(&mut self) -> Vec<u64> {
        let next = || self.sender.next_segment(&self.config, self.now).map(|s| s.seq / MSS);
        std::iter::from_fn(next).collect()
    }

    /// `incoming` comes 10 us later.
    fn take(&mut self, incoming: &Incoming<'_>) -> Timer {
        self.now += Dur::from_us(10);
        self.sender.on_ack(&self.config, self.now, incoming, &mut self.fx)
    }

    /// Everything before segment `n` is acknowledged.
    fn ack(&mut self, n: u64) -> Timer {
        self.take(&everything_before(n))
    }

    /// As [`Self::ack`], and the receiver holds the segments of `held`, most recent first.
    fn sack(&mut self, n: u64, held: &[(u64, u64)]) -> Timer {
        let blocks: Vec<(u64, u64)> = held.iter().map(|&(l, r)| (l * MSS, r * MSS)).collect();
        self.take(&Incoming { sack: &blocks, ..everything_before(n) })
    }

    /// As [`Self::ack`], with ECE.
    fn marked(&mut self, n: u64) {
        self.take(&Incoming { marked: true, ..everything_before(n) });
    }

    fn acks(&mut self, n: u64, times: u32) {
        for _ in 0..times {
            self.ack(n);
        }
    }

    fn timeout(&mut self) {
        self.now += Dur::from_ms(200);
        assert!(self.sender.on_timeout(&self.config, self.now, &mut self.fx));
    }

    fn cwnd(&self) -> f64 {
        self.sender.window().cwnd()
    }

    fn ssthresh(&self) -> f64 {
        self.sender.window().ssthresh()
    }
}

/// RFC 6582, section 3.2: segments 0 and 3 of ten are lost.
#[test]
fn recovery_inflates_and_deflates() {
    let mut s = Script::new(config());
    s.acks(0, 2);
    assert_eq!(s.sent(), []);
    assert_eq!(s.ack(0), Timer::Restart);
    assert_eq!((s.ssthresh(), s.cwnd()), (5.0, 5.0));
    assert_eq!(s.sent(), [0], "the third duplicate");
    s.acks(0, 5);
    assert_eq!(s.sent(), [10, 11, 12], "5 + 8 allowed, 10 in flight");
    s.ack(3);
    assert_eq!(s.sent(), [3, 13], "5 + 8 - 3 + 1 allowed, 10 in flight");
    s.acks(3, 3);
    assert_eq!(s.sent(), [14, 15, 16], "no new recovery, only inflation");
    s.ack(12);
    assert_eq!((s.sender.window().phase(), s.cwnd()), (Phase::Open, 5.0));
    assert_eq!(s.sent(), [], "5 in flight, 5 allowed");
}

/// RFC 5681, section 3.2, with the same losses: each needs three duplicates and halves the window.
#[test]
fn reno_begins_a_recovery_for_each_loss() {
    let mut s = Script::new(Config { recovery: Recovery::Reno, ..config() });
    s.acks(0, 8);
    assert_eq!(s.sent(), [0, 10, 11, 12]);
    s.ack(3);
    assert_eq!((s.sender.window().phase(), s.cwnd()), (Phase::Open, 5.0));
    assert_eq!(s.sent(), [], "10 in flight, 5 allowed");
    s.acks(3, 3);
    assert_eq!((s.sent(), s.ssthresh()), (vec![3], 2.5));
    let recoveries = |e: &&Effect| **e == Effect::CountFor(Stat::FastRetransmit, MsgId(0));
    assert_eq!(s.fx.as_slice().iter().filter(recoveries).count(), 2);
}

/// Without RFC 6582's `recover`, the duplicates of a go-back-N are taken for a loss.
#[test]
fn reno_believes_duplicates_after_a_timeout() {
    let mut s = Script::new(Config { recovery: Recovery::Reno, ..config() });
    s.timeout();
    assert_eq!(s.sent(), [0]);
    s.ack(1);
    assert_eq!(s.sent(), [1, 2]);
    s.acks(1, 3);
    assert_eq!((s.sender.window().phase(), s.ssthresh()), (Phase::Recovery, 2.0));
    assert_eq!(s.sent(), [1, 3, 4, 5], "1 again; 2 + 3 allowed, 1 and 2 in flight");
}

#[test]
fn leaving_recovery_bursts_or_not() {
    let cwnd = |conservative_exit| {
        let mut s = Script::new(Config { conservative_exit, ..config() });
        s.acks(0, 3);
        s.sent();
        s.ack(10);
        s.cwnd()
    };
    assert_eq!(cwnd(false), 5.0);
    assert_eq!(cwnd(true), 2.0, "nothing is in flight: one segment above one");
}

#[test]
fn patience_restarts_the_timer_on_each_partial_acknowledgement() {
    let timers = |impatient| {
        let mut s = Script::new(Config { impatient, ..config() });
        s.acks(0, 3);
        [2, 4, 6].map(|n| s.ack(n))
    };
    assert_eq!(timers(false), [Timer::Restart; 3]);
    assert_eq!(timers(true), [Timer::Restart, Timer::Keep, Timer::Keep]);
}

/// RFC 6582, section 3.2, step 2: the duplicates of a needless go-back-N prove nothing.
#[test]
fn duplicates_after_a_timeout_do_not_start_a_recovery() {
    let mut s = Script::new(config());
    s.timeout();
    assert_eq!(s.sent(), [0]);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 5.0));
    s.ack(1);
    assert_eq!(s.sent(), [1, 2]);
    s.acks(1, 4);
    assert_eq!((s.sent(), s.sender.window().phase()), (vec![], Phase::Loss));
    s.ack(10);
    assert_eq!(s.sent(), [10, 11, 12], "what the receiver holds is skipped");
    s.acks(10, 4);
    assert_eq!((s.sent(), s.sender.window().phase()), (vec![], Phase::Open));
    s.ack(11);
    s.sent();
    s.acks(11, 3);
    assert_eq!(s.sender.window().phase(), Phase::Recovery, "more than recover is acknowledged");
}

#[test]
fn a_second_timeout_of_a_segment_leaves_ssthresh() {
    let mut s = Script::new(config());
    for _ in 0..3 {
        s.timeout();
        assert_eq!(s.sent(), [0]);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 5.0));
    }
    s.ack(2);
    s.sent();
    s.timeout();
    assert_eq!(s.ssthresh(), 2.0, "progress lies between: another loss");
}

/// What is acknowledged before anything could be sent again had arrived.
#[test]
fn an_acknowledgement_before_the_retransmission_makes_a_timeout_spurious() {
    for (sends, spurious) in [(false, 1), (true, 0)] {
        let mut s = Script::new(config());
        s.timeout();
        if sends {
            assert_eq!(s.sent(), [0]);
        }
        s.ack(10);
        let counted = |e: &&Effect| **e == Effect::Count(Stat::SpuriousTimeout);
        assert_eq!(s.fx.as_slice().iter().filter(counted).count(), spurious);
        let next = s.sender.next_segment(&s.config, s.now).unwrap();
        assert!(!next.control.has(Control::URG), "it does not follow the timeout");
    }
}

/// As with a timeout: it is acknowledged before it could be sent again.
#[test]
fn an_acknowledgement_before_the_retransmission_makes_a_fast_retransmit_spurious() {
    for (sends, spurious) in [(false, 1), (true, 0)] {
        let mut s = Script::new(config());
        s.acks(0, 3);
        if sends {
            assert_eq!(s.sent(), [0]);
        }
        s.ack(10);
        let counted = |e: &&Effect| **e == Effect::CountFor(Stat::SpuriousFastRetransmit, MsgId(0));
        assert_eq!(s.fx.as_slice().iter().filter(counted).count(), spurious);
        let next = s.sender.next_segment(&s.config, s.now).unwrap();
        assert_eq!(Retransmission::of(next.control), Retransmission::No, "it is new");
    }
}

#[test]
fn a_timeout_counts_only_once_its_segment_has_left() {
    let mut s = Script::new(config());
    s.timeout();
    let timeout = s.sender.rto().timeout(&s.config.rto);
    s.timeout();
    assert_eq!(s.sender.rto().timeout(&s.config.rto), timeout, "still waiting for the interface");
    s.sent();
    s.timeout();
    assert_eq!(s.sender.rto().timeout(&s.config.rto), timeout * 2);
}

/// Karn's algorithm (RFC 6298, section 3).
#[test]
fn nothing_is_measured_across_a_retransmission() {
    let mut s = Script::new(config());
    s.timeout();
    s.sent();
    s.ack(1);
    assert_eq!(s.sender.rto().srtt(), None);
    s.ack(10);
    assert_eq!(s.sent()[0], 10);
    s.ack(11);
    assert_eq!(s.sender.rto().srtt(), Some(Dur::from_ms(1)), "one tick of the clock");

    // Segment 0, which is being timed, is retransmitted in recovery.
    let mut s = Script::new(config());
    s.acks(0, 3);
    s.sent();
    s.ack(1);
    assert_eq!(s.sender.rto().srtt(), None);
}

#[test]
fn growth_counts_bytes_or_acknowledgements() {
    let after = |increase, acked, initial_ssthresh| {
        let mut s = Script::new(Config { increase, initial_ssthresh, ..config() });
        s.ack(acked);
        s.cwnd()
    };
    let abc = |limit| Increase::PerByte { slow_start_limit: limit };
    assert_eq!(after(Increase::PerAck, 4, f64::INFINITY), 11.0);
    assert_eq!(after(abc(2.0), 4, f64::INFINITY), 12.0);
    assert_eq!(after(abc(f64::INFINITY), 4, f64::INFINITY), 14.0);
    assert_eq!(after(Increase::PerAck, 4, 5.0), 10.1);
    assert_eq!(after(abc(2.0), 4, 5.0), 10.4);
    let additive = Config { slow_start: false, increase: Increase::PerAck, ..config() };
    let mut s = Script::new(additive);
    s.ack(1);
    assert_eq!(s.cwnd(), 10.1, "no slow start, however high ssthresh is");
    // Slow start from 10 to 12, the other six in congestion avoidance.
    assert_eq!(after(abc(f64::INFINITY), 8, 12.0), 12.5);
}

fn sack() -> Config {
    Config { recovery: Recovery::Sack, ..config() }
}

/// RFC 6675, section 5: segments 0, 3 and 4 of ten are lost.
#[test]
fn sack_repairs_several_losses_in_one_round_trip() {
    let mut s = Script::new(sack());
    s.sack(0, &[(1, 2)]);
    s.sack(0, &[(1, 3)]);
    assert_eq!(s.sent(), []);
    s.sack(0, &[(5, 6), (1, 3)]);
    assert_eq!((s.ssthresh(), s.cwnd()), (5.0, 5.0));
    assert_eq!(s.sent(), [0], "pipe: 3 to 9 but 5 are not known to be lost, and 0 again");
    s.sack(0, &[(5, 7), (1, 3)]);
    assert_eq!(s.sent(), [], "3, 4, 7, 8, 9 and 0: six");
    s.sack(0, &[(5, 8), (1, 3)]);
    assert_eq!(s.sent(), [3, 4], "3 and 4 are lost: 8, 9 and 0 are in flight");
    s.sack(0, &[(5, 9), (1, 3)]);
    assert_eq!(s.sent(), [10]);
    s.sack(0, &[(5, 10), (1, 3)]);
    assert_eq!(s.sent(), [11]);
    s.sack(3, &[(5, 10)]);
    assert_eq!((s.sent(), s.sender.window().phase()), (vec![12], Phase::Recovery));
    s.ack(10);
    assert_eq!((s.sender.window().phase(), s.cwnd()), (Phase::Open, 5.0));
    assert_eq!(s.sent(), [13, 14], "10 to 12 are in flight");
}

/// RFC 6675, section 4, NextSeg: new data goes before what is not known to be lost, "if the
/// receiver's advertised window allows". Segments 0 and 8 are lost, and the window of ten is full.
#[test]
fn a_full_receive_window_does_not_hold_up_a_recovery() {
    let params = ictcp::Params { min_window: 10, ..ictcp::Params::paper(Dur::ZERO) };
    let mut s = Script::new(Config { receive_window: ReceiveWindow::Ictcp(params), ..sack() });
    let mut sent = |held: &[(u64, u64)]| {
        let blocks: Vec<(u64, u64)> = held.iter().map(|&(l, r)| (l * MSS, r * MSS)).collect();
        s.take(&Incoming { edge: 10 * MSS, sack: &blocks, ..everything_before(0) });
        s.sent()
    };
    assert_eq!(sent(&[(1, 4)]), [0]);
    assert_eq!(sent(&[(1, 8)]), [9], "rule 4: 0, 8 and 9 in flight, five allowed, no hole");
    assert_eq!(sent(&[(9, 10), (1, 8)]), [8], "rule 3: not known to be lost");
}

/// RFC 6675, section 5, step 2: two segments more than the first are missing nothing.
#[test]
fn sack_needs_three_segments_or_ranges_but_not_three_acknowledgements() {
    let mut s = Script::new(sack());
    s.sack(0, &[(1, 3)]);
    assert_eq!(s.sender.window().phase(), Phase::Open);
    s.sack(0, &[(1, 3)]);
    s.sack(0, &[(1, 3)]);
    assert_eq!(s.sender.window().phase(), Phase::Open, "they say nothing new");
    s.sack(0, &[(1, 4)]);
    assert_eq!(s.sender.window().phase(), Phase::Recovery, "acknowledgements were lost");
}

/// Nothing repairs a lost retransmission but the timer, and then only what is missing is sent.
#[test]
fn after_a_timeout_what_the_receiver_holds_is_skipped() {
    let mut s = Script::new(sack());
    s.sack(0, &[(1, 4)]);
    assert_eq!(s.sent(), [0]);
    for last in 5..=10 {
        s.sack(0, &[(1, last)]);
    }
    assert_eq!(s.sent(), [10, 11, 12, 13]);
    s.sack(0, &[(12, 14), (1, 10)]);
    s.sent();
    s.timeout();
    assert_eq!((s.sent(), s.cwnd()), (vec![0], 1.0));
    s.sack(10, &[(12, 14)]);
    assert_eq!(s.sent(), [10, 11], "slow start; 12 and 13 are there");
}

/// NextSeg, rule 4: with nothing else to send, the last segment missing is sent again, once.
#[test]
fn a_rescue_retransmission_asks_after_the_tail() {
    let mut s = Script::new(sack());
    s.sender.cancel(MsgId(0)); // nothing but its mark follows segment 9
    assert_eq!(s.sent(), []);
    s.sack(0, &[(1, 4)]);
    assert_eq!(s.sent(), [0]);
    s.sack(0, &[(1, 7)]);
    assert_eq!(s.sent(), [10, 10], "the mark, of one byte, is new; then it is the rescue");
    s.sack(0, &[(1, 8)]);
    assert_eq!(s.sent(), [], "one rescue in a recovery");
}

/// RFC 8257, section 3.3, by hand: alpha begins at 1 and the first mark halves; a round of ten
/// without marks and one of ten with five leave (1 * 15/16 + 1/16) * 15/16, then * 15/16 + 1/32.
#[test]
fn dctcp_reduces_once_for_each_window_and_in_proportion() {
    let rule = RuleConfig::Dctcp(dctcp::Params::RFC);
    let mut s = Script::new(Config { rule, ecn: true, initial_ssthresh: 5.0, ..config() });
    s.marked(1);
    assert_eq!(s.cwnd(), 5.0, "alpha is still 1");
    for n in 2..=10 {
        s.marked(n);
    }
    assert_eq!(s.cwnd(), 5.0, "the same window of data, and marks do not let it grow");
    assert_eq!(s.sent(), [10, 11, 12, 13, 14]);
    s.ack(11);
    let grown = 5.0 + 1.0 / 5.0;
    assert_eq!(s.cwnd(), grown);
    // The observation window of 1 to 11: nine of ten were marked.
    let alpha = 15.0 / 16.0 + 0.9 / 16.0;
    s.marked(12);
    assert!((s.cwnd() - grown * (1.0 - alpha / 2.0)).abs() < 1e-12, "{}", s.cwnd());
}

/// RFC 3168, section 6.1.2: the first new segment says that the window was reduced.
#[test]
fn the_receiver_hears_of_a_reduction_once() {
    let mut s = Script::new(Config { ecn: true, ..config() });
    s.marked(1);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
    s.ack(8);
    let reduced: Vec<bool> = std::iter::from_fn(|| s.sender.next_segment(&s.config, s.now))
        .map(|segment| segment.control.has(Control::CWR))
        .collect();
    assert_eq!(reduced, [true, false, false]);
}

/// RFC 3168, section 6.1.2: a mark and a loss in one window of data are one event of congestion.
/// For DCTCP the loss leaves half of the window before the mark (RFC 8257, section 3.5).
#[test]
fn a_mark_and_a_loss_in_one_window_reduce_once() {
    // Half, and 1/16 of a first window that was all marked: 10 * (1 - 0.53125 / 2).
    let half = dctcp::Params { initial_alpha: 0.5, ..dctcp::Params::RFC };
    let cubic = RuleConfig::Cubic(cubic::Params::RFC);
    for (rule, marked, left) in [
        (RuleConfig::NewReno, 5.0, 5.0),
        (cubic, 7.0, 7.0),
        (RuleConfig::Dctcp(half), 7.34375, 5.0),
    ] {
        let conservative_exit = false;
        let mut s = Script::new(Config { rule, ecn: true, conservative_exit, ..config() });
        s.marked(1);
        assert_eq!(s.cwnd(), marked);
        s.acks(1, 3);
        assert_eq!((s.cwnd(), s.ssthresh()), (left, left), "{rule:?}");
        assert_eq!(s.sent()[0], 1);
        s.ack(10);
        assert_eq!((s.sender.window().phase(), s.cwnd()), (Phase::Open, left));
        // What is sent from now on is another window.
        s.sent();
        s.ack(11);
        let grown = s.cwnd();
        s.acks(11, 3);
        assert!(s.cwnd() < grown, "{rule:?}");
    }
}

/// The two in two windows: 15 segments are sent after the mark, the first of them is lost.
#[test]
fn a_loss_after_the_marked_window_reduces_again() {
    let mut s = Script::new(Config { ecn: true, ..config() });
    s.marked(1);
    s.ack(10);
    assert_eq!(s.sent(), [10, 11, 12, 13, 14]);
    s.acks(10, 3);
    assert_eq!(s.ssthresh(), 2.5);
}

#[test]
fn a_mark_never_enlarges_the_window() {
    let mut s = Script::new(Config { ecn: true, ..config() });
    s.timeout();
    assert_eq!(s.sent(), [0]);
    s.ack(10); // of all that was sent before: slow start to two segments
    assert_eq!((s.cwnd(), s.sent()), (2.0, vec![10, 11]));
    s.timeout();
    assert_eq!(s.sent(), [10]);
    s.marked(12);
    assert_eq!(s.cwnd(), 1.0, "a window of one stays one, and does not grow by a mark");
}

/// RFC 3465, section 2.3: however much an acknowledgement covers after a timeout, slow start grows
/// by one segment.
#[test]
fn after_a_timeout_slow_start_grows_by_one() {
    let abc = Increase::PerByte { slow_start_limit: 2.0 };
    let initial_ssthresh = 40.0;
    let mut s = Script::new(Config { increase: abc, initial_ssthresh, ..config() });
    s.ack(2);
    assert_eq!(s.cwnd(), 12.0);
    assert_eq!(s.sent(), [10, 11, 12, 13]);
    s.timeout();
    assert_eq!(s.sent(), [2]);
    s.ack(14);
    assert_eq!((s.cwnd(), s.ssthresh()), (2.0, 6.0));
    s.sent();
    s.ack(16);
    assert_eq!(s.cwnd(), 3.0, "the slow start that follows the timeout is not over yet");
}

/// Linux counts the whole acknowledgement: as measured, one of 12 segments takes the window from 1
/// to ssthresh at once, and what is left of it counts as congestion avoidance.
#[test]
fn without_a_limit_slow_start_after_a_timeout_has_none() {
    let increase = Increase::PerByte { slow_start_limit: f64::INFINITY };
    let mut s = Script::new(Config { increase, ..config() });
    s.ack(2);
    s.sent();
    s.timeout();
    s.sent();
    s.ack(14);
    assert_eq!((s.cwnd(), s.ssthresh()), (6.0 + 7.0 / 6.0, 6.0));
}

/// Measured of Linux: a window of 10 with one segment outstanding leaves ssthresh at 5 after a
/// timeout; RFC 5681, equation 4, at 2.
#[test]
fn a_loss_reduces_the_window_or_what_is_in_flight() {
    for (ssthresh_of, left) in [(Reduces::Window, 5.0), (Reduces::Flight, 2.0)] {
        let mut s = Script::new(Config { ssthresh_of, initial_ssthresh: 10.0, ..config() });
        s.sender.cancel(MsgId(0)); // its mark is the one segment that remains
        s.ack(10);
        assert_eq!((s.cwnd(), s.sent()), (10.1, vec![10]));
        s.timeout();
        let left = if left == 5.0 { 10.1 / 2.0 } else { left };
        assert_eq!(s.ssthresh(), left, "{ssthresh_of:?}");
        let mut s = Script::new(Config { ssthresh_of, window_cap: 20.0, ..config() });
        s.acks(0, 3);
        assert_eq!(s.ssthresh(), 5.0, "the window is full");
    }
}

/// In congestion avoidance only what SACK had not named before the timeout lets the window grow.
#[test]
fn what_arrived_before_a_timeout_does_not_count_again() {
    let increase = Increase::PerByte { slow_start_limit: 2.0 };
    let mut s = Script::new(Config { increase, ..sack() });
    s.sack(0, &[(8, 10)]);
    s.timeout();
    s.timeout();
    assert_eq!(s.sent(), [0]);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 5.0));
    for n in 1..=4 {
        s.sack(n, &[(8, 10)]);
        s.sent();
    }
    assert_eq!(s.cwnd(), 5.0);
    s.sack(10, &[]);
    assert_eq!(s.cwnd(), 5.0 + 4.0 / 5.0, "segments 4 to 7, not 8 and 9");
}

/// A pause is what lies between the last acknowledgement and the next segment, and it is one pause,
/// however many messages end it.
#[test]
fn a_pause_is_counted_once_and_without_the_flight() {
    let rule = RuleConfig::Cubic(cubic::Params::RFC);
    let config =
        Config { rule, idle_restart: IdleRestart::Never, initial_ssthresh: 5.0, ..config() };
    let id = Identity { dst: HostId(1), conn: 0, path: 0, channel: 1, mss: MSS as u16 };
    let mut s =
        Script { config, sender: Sender::new(&config, id), now: Time::ZERO, fx: Effects::new() };
    s.sender.submit(MsgId(0), 10 * MSS, Time::NEVER);
    s.sent();
    s.ack(10);
    let began = |s: &Script| match s.sender.window().rule() {
        State::Cubic(cubic) => cubic.epoch.unwrap().began,
        other => panic!("{other:?}"),
    };
    assert_eq!(began(&s), s.now);
    s.now += Dur::from_ms(50);
    s.sender.submit(MsgId(1), MSS, Time::NEVER);
    s.sender.submit(MsgId(2), MSS, Time::NEVER);
    s.sent();
    assert_eq!(began(&s), s.now, "10 us of flight do not belong to the 50 ms");
}

fn eifel() -> Config {
    Config { undo: Undo::Eifel, timestamps: true, ..config() }
}

impl Script {
    /// As [`Self::ack`], of a segment sent at `at`.
    fn answer(&mut self, n: u64, at: Time) -> Timer {
        self.take(&Incoming { echo: timestamps::stamp(at), ..everything_before(n) })
    }
}

/// Reordering of depth 5 under a threshold of 3. RFC 3522: what was in flight is acknowledged with
/// the stamp of the original. RFC 4015: the window is what is in flight, 4, and the 6 acknowledged:
/// the 10 it was.
#[test]
fn eifel_undoes_a_recovery_without_a_loss() {
    let mut s = Script::new(Config { initial_ssthresh: 8.0, ..eifel() });
    s.acks(0, 3);
    assert_eq!((s.sent(), s.cwnd()), (vec![0], 5.0));
    s.acks(0, 2);
    s.answer(6, Time::ZERO);
    assert_eq!((s.sender.window().phase(), s.cwnd(), s.ssthresh()), (Phase::Open, 10.0, 10.0));
    assert_eq!(s.sent(), [10, 11, 12, 13, 14, 15]);
    s.acks(6, 3);
    assert_eq!(s.sender.window().phase(), Phase::Recovery, "a loss in the same window is one");
}

/// From an initial window of two segments no burst follows: slow start takes the window back.
#[test]
fn eifel_undoes_without_a_burst() {
    let mut s = Script::new(eifel());
    s.config.initial_window = 2.0;
    s.acks(0, 3);
    s.sent();
    s.answer(6, Time::ZERO);
    assert_eq!((s.cwnd(), s.ssthresh()), (6.0, f64::INFINITY));
    assert_eq!(s.sent(), [10, 11]);
}

/// A loss is none of it: what fills the hole was sent again. Nor is what the network marked, nor
/// what is acknowledged whole, since then acknowledgements of originals may have been lost (RFC
/// 3522, step 5).
#[test]
fn eifel_does_not_undo_a_loss() {
    let after = |n, at, marked| {
        let mut s = Script::new(Config { ecn: true, ..eifel() });
        s.acks(0, 3);
        s.sent();
        let echo = timestamps::stamp(at);
        s.take(&Incoming { echo, marked, ..everything_before(n) });
        s.ssthresh()
    };
    let repaired = Time::ZERO + Dur::from_us(30);
    assert_eq!(after(6, Time::ZERO, false), f64::INFINITY);
    assert_eq!(after(6, repaired, false), 5.0);
    assert_eq!(after(6, Time::ZERO, true), 5.0);
    assert_eq!(after(10, Time::ZERO, false), 5.0);
}

/// RFC 4015 after a timeout: no go-back-N, the window as it was, and a timer that allows for the
/// delay. The second timeout of a segment is no event of its own.
#[test]
fn eifel_undoes_a_spurious_timeout() {
    let mut s = Script::new(Config { initial_ssthresh: 8.0, ..eifel() });
    s.timeout();
    assert_eq!((s.sent(), s.cwnd()), (vec![0], 1.0));
    s.timeout();
    s.sent();
    s.answer(1, Time::ZERO);
    assert_eq!((s.sender.window().phase(), s.cwnd(), s.ssthresh()), (Phase::Open, 10.0, 10.0));
    assert_eq!(s.sent(), [10], "and not 1");
    s.answer(10, Time::ZERO);
    s.sent();
    let sent = s.now;
    s.now += Dur::from_ms(300);
    s.answer(11, sent);
    assert_eq!(s.sender.rto().srtt(), Some(Dur::from_ms(300)), "the sample, no average");
}

fn dsack() -> Config {
    Config { undo: Undo::Dsack, dsack: true, initial_ssthresh: 8.0, ..sack() }
}

/// RFC 3708, on the same reordering: what was sent again comes, and is reported, when the recovery
/// is nearly over. Slow start goes back to the window of ten.
#[test]
fn a_report_of_all_that_was_sent_again_undoes_a_recovery() {
    let ssthresh = |reports: &[(u64, u64)]| {
        let mut s = Script::new(dsack());
        for last in 2..=4 {
            s.sack(0, &[(1, last)]);
        }
        assert_eq!((s.sent(), s.cwnd()), (vec![0], 5.0));
        s.sack(0, &[(1, 6)]);
        s.ack(6);
        for report in reports {
            s.sack(7, &[*report]);
        }
        s.ssthresh()
    };
    assert_eq!(ssthresh(&[]), 5.0, "a loss");
    assert_eq!(ssthresh(&[(0, 1)]), 10.0);
    assert_eq!(ssthresh(&[(3, 4), (0, 1)]), 5.0, "the network duplicates: nothing is proved");
}

/// RFC 2883 and RR-TCP: while duplicates come, each releases a segment, and the threshold is one
/// above the depth of the first reordering.
#[test]
fn rr_learns_a_depth_and_waits_for_it() {
    let mut s = Script::new(Config { rr: Some(rr::Params::PRESET), ..dsack() });
    s.sack(0, &[(1, 2)]);
    assert_eq!(s.sent(), [10]);
    s.sack(0, &[(1, 3)]);
    assert_eq!(s.sent(), [11]);
    s.sack(0, &[(1, 4)]);
    assert_eq!((s.sent(), s.ssthresh()), (vec![0], 5.0), "three, as ever");
    s.sack(0, &[(1, 6)]);
    s.ack(6);
    s.sack(8, &[(0, 1)]);
    assert_eq!(s.ssthresh(), 12.0, "what was in flight");
    s.ack(12);
    assert_eq!(s.sent(), [12, 13, 14, 15, 16, 17, 18, 19]);
    for last in 14..19 {
        s.sack(12, &[(13, last)]);
        assert_eq!(s.sent(), [last + 6], "five");
    }
    s.sack(12, &[(13, 19)]);
    assert_eq!(s.sent(), [12], "six");
}
