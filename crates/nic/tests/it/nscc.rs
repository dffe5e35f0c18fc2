//! `p4/nscc.p4`: one answer after the other against the rules of NSCC in real numbers
//! (specs/uet.md#4, profile `ue-1.0`), within the bounds that the program states at its head, and
//! its entropy values against those of REPS.

use std::collections::VecDeque;

use crate::shipped;
use crate::step;

use shipped::compile;
use step::{Ack, Drawn, Step};

const PROTOCOL: u8 = 200;
const ACK: u8 = 0x02;
const NACK: u8 = 0x04;
const RTX: u8 = 0x20;
const MARK: u8 = 0x40;

/// 200 Gb/s, 7.8125 B in a cycle, and 10 us.
const RATE: f64 = 7.8125;
const RTT: u32 = 32_000;
const BDP: f64 = 250_000.0;
const MTU: f64 = 1088.0;
const TARGET: f64 = 24_000.0;
/// Cycles of 12 us, in which the rules were found on 150 kB.
const FOUND: f64 = 38_400.0;

/// The state of a flow; times in cycles, the average delay and `inc` are real.
#[derive(Clone, Debug)]
struct Flow {
    window: f64,
    base: u32,
    average: f64,
    inc: f64,
    received: f64,
    adjusted: u32,
    fell: Option<u32>,
    fast_count: f64,
    fast: bool,
    achieved: f64,
    period_end: Option<u32>,
    trigger: bool,
    ignored: f64,
    to_ignore: f64,
}

/// What has come.
#[derive(Clone, Copy, Debug)]
struct Answer {
    now: u32,
    trimmed: bool,
    marked: bool,
    /// Its round trip, if that is certain.
    rtt: Option<u32>,
    in_flight: f64,
}

impl Flow {
    fn most(&self) -> f64 {
        (1.5 * RATE * f64::from(self.base)).floor()
    }

    fn bound(&mut self) {
        self.window = self.window.min(self.most()).max(MTU);
    }

    /// specs/uet.md#4.2, 4.3: bytes on the wire are those of a full packet.
    fn on_answer(&mut self, answer: Answer) {
        self.ignored += MTU;
        if !answer.trimmed {
            self.achieved += MTU;
            self.received += MTU;
        }
        self.base = answer.rtt.map_or(self.base, |rtt| rtt.min(self.base));
        self.bound();
        if answer.trimmed {
            self.average += 0.0125 * (f64::from(RTT) - self.average);
            self.trigger = true;
            if !self.quick_adapt(answer, 0.0) {
                self.window -= MTU;
            }
            return self.bound();
        }
        let Some(rtt) = answer.rtt else { return };
        let delay = f64::from(rtt - self.base);
        let believed = answer.marked || delay <= TARGET;
        let sample = if believed { delay } else { f64::from(self.base) / 4.0 };
        self.average += 0.0125 * (sample - self.average);
        if self.quick_adapt(answer, delay) {
            return;
        }
        match (answer.marked, delay < TARGET) {
            (false, false) => self.inc += 5.0 * 1024.0 * BDP / 150_000.0 * MTU,
            (false, true) => self.increase(delay),
            (true, false) => self.decrease(answer.now),
            (true, true) => {}
        }
        self.bound();
        let waited = answer.now - self.adjusted;
        if self.received > 8.0 * MTU || waited > RTT {
            self.window += (self.inc / self.window).floor();
            if waited >= RTT {
                self.window += (0.15 * 1024.0 * BDP / 150_000.0).floor();
                self.adjusted = answer.now;
            }
            (self.inc, self.received) = (0.0, 0.0);
        }
        self.bound();
    }

    fn increase(&mut self, delay: f64) {
        self.fast_count = if delay < 3200.0 { self.fast_count + MTU } else { 0.0 };
        self.fast = delay < 3200.0 && (self.fast || self.fast_count > self.window);
        if self.fast {
            self.window += (MTU * 0.25 * BDP / 150_000.0).floor();
        } else {
            let alpha = 4.0 * 1024.0 * BDP / 150_000.0 / FOUND;
            self.inc += alpha * MTU * (TARGET - delay);
        }
    }

    fn decrease(&mut self, now: u32) {
        (self.fast, self.fast_count) = (false, 0.0);
        let lately = self.fell.is_some_and(|last| now - last <= self.base);
        if self.average > TARGET && !lately {
            let share = (1.0 - 0.8 * (self.average - TARGET) / self.average).max(0.5);
            self.window = (self.window * share).floor();
            self.fell = Some(now);
        }
    }

    /// specs/uet.md#4.4.
    fn quick_adapt(&mut self, answer: Answer, delay: f64) -> bool {
        let mut done = false;
        if self.ignored < self.to_ignore && answer.marked {
            done = true;
        } else if self.period_end.is_none_or(|end| answer.now >= end) {
            let bad = self.trigger || delay > 4.0 * TARGET;
            let little = self.achieved < (self.most() / 8.0).floor();
            if self.period_end.is_some() && bad && little {
                self.window = self.achieved;
                self.bound();
                (self.to_ignore, self.ignored) = (answer.in_flight, 0.0);
                self.trigger = false;
                done = true;
            }
            self.achieved = 0.0;
            self.period_end = Some(answer.now + self.base + TARGET as u32);
        }
        if done {
            (self.inc, self.received) = (0.0, 0.0);
        }
        done
    }
}

/// A time that there may have been, with a one before it.
fn since(time: Option<u32>) -> u128 {
    time.map_or(0, |time| 1 << 32 | u128::from(time))
}

/// What a flow has in the program's registers, by name.
fn registers(flow: &Flow) -> [(&'static str, u128); 14] {
    let fine = |value: f64| (value * 65_536.0).round() as u128;
    [
        ("windows", flow.window.round() as u128),
        ("bases", flow.base.into()),
        ("averages", fine(flow.average)),
        ("incs", fine(flow.inc)),
        ("receiveds", flow.received as u128),
        ("adjusted", flow.adjusted.into()),
        ("fell", since(flow.fell)),
        ("fast_count", flow.fast_count as u128),
        ("fast", flow.fast.into()),
        ("achieved", flow.achieved as u128),
        ("period_end", since(flow.period_end)),
        ("trigger", flow.trigger.into()),
        ("ignored", flow.ignored as u128),
        ("to_ignore", flow.to_ignore as u128),
    ]
}

const NOW: u32 = 1_000_000_000;

fn drawn_flow(drawn: &mut Drawn) -> Flow {
    let base = RTT - drawn.below(8_000) as u32;
    let before = |drawn: &mut Drawn, most| NOW - drawn.below(most) as u32;
    let packets = |drawn: &mut Drawn, most| MTU * drawn.below(most) as f64;
    let mut flow = Flow {
        window: drawn.scaled(MTU, 1.5 * BDP).round(),
        base,
        average: (80_000.0 * drawn.share()).round(),
        inc: drawn.scaled(0.0, 1e9).round(),
        received: packets(drawn, 10),
        adjusted: before(drawn, 64_000),
        fell: (drawn.below(3) > 0).then(|| before(drawn, 64_000)),
        fast_count: packets(drawn, 300),
        fast: drawn.below(4) == 0,
        achieved: packets(drawn, 60),
        period_end: (drawn.below(8) > 0).then(|| NOW + 40_000 - drawn.below(60_000) as u32),
        trigger: drawn.below(4) == 0,
        ignored: packets(drawn, 100),
        to_ignore: packets(drawn, 60),
    };
    flow.bound();
    flow
}

/// From no delay to far beyond what is adapted to at once.
fn drawn_answer(drawn: &mut Drawn, flow: &Flow) -> Answer {
    let trimmed = drawn.below(6) == 0;
    let delay = match drawn.below(4) {
        0 => drawn.below(3_200),
        1 => drawn.below(150_000),
        _ => drawn.below(40_000),
    };
    let rtt = flow.base - drawn.below(2) as u32 * 100 + delay as u32;
    Answer {
        now: NOW,
        trimmed,
        marked: trimmed || drawn.below(2) == 0,
        rtt: (drawn.below(8) > 0).then_some(rtt),
        in_flight: MTU * drawn.below(200) as f64,
    }
}

fn sent(answer: &Answer) -> Ack {
    let (kind, rtt) = (if answer.trimmed { NACK } else { ACK }, answer.rtt.unwrap_or(5_000));
    let mark = if answer.marked && !answer.trimmed { MARK } else { 0 };
    let flags = kind | mark | if answer.rtt.is_none() { RTX } else { 0 };
    Ack { protocol: PROTOCOL, flags, sent_at: answer.now - rtt, remark: 0, rest: vec![0; 8] }
}

#[test]
fn a_step_is_within_its_bound() {
    let mut drawn = Drawn(7);
    let mut step = Step::new(compile("nscc.p4", &[]));
    let (mut grown, mut cut, mut adapted, mut ignored) = (0, 0, 0, 0);
    for n in 0..20_000 {
        let mut flow = drawn_flow(&mut drawn);
        let mut answer = drawn_answer(&mut drawn, &flow);
        registers(&flow).iter().for_each(|(name, value)| step.set(name, *value));
        // The answer itself is not in flight any more.
        step.set("sent", answer.in_flight as u128 + 5_000 + 1_088);
        step.set("answered", 5_000);
        let before = flow.clone();
        let pace = step.ack(NOW, &sent(&answer)).unwrap();
        let most = before.base.min(answer.rtt.unwrap_or(u32::MAX));
        answer.in_flight = answer.in_flight.min((1.5 * RATE * f64::from(most)).floor());
        flow.on_answer(answer);
        let after = step.get("windows") as f64;
        let all = format!("draw {n}: {after}, {before:?}, {answer:?}, {flow:?}");
        let change = (flow.window - before.window).abs();
        assert!((after - flow.window).abs() <= 2.0 + 0.001 * change, "{all}");
        assert_eq!(f64::from(pace.window), (after / MTU).floor(), "{all}");
        let wrong = |name: &str, is: u128, wanted: u128| {
            let slack = match name {
                "windows" => return false,
                "averages" => 256,
                "incs" => 65_536 + wanted / 3_000,
                _ => 0,
            };
            is.abs_diff(wanted) > slack
        };
        for (name, wanted) in registers(&flow) {
            let is = step.get(name);
            assert!(!wrong(name, is, wanted), "{name} is {is}, not {wanted}; {all}");
        }
        grown += u32::from(after > before.window);
        cut += u32::from(flow.fell != before.fell);
        adapted += u32::from(flow.to_ignore != before.to_ignore);
        ignored += u32::from(answer.marked && before.ignored + MTU < before.to_ignore);
    }
    let all = [grown, cut, adapted, ignored];
    assert!(all.into_iter().all(|n| n > 500), "{all:?}");
}

/// A flow begins with the most that may ever be in flight.
#[test]
fn the_first_answer_finds_the_greatest_window() {
    let mut step = Step::new(compile("nscc.p4", &[]));
    let answer = Answer { now: NOW, trimmed: true, marked: true, rtt: Some(RTT), in_flight: 0.0 };
    let pace = step.ack(NOW, &sent(&answer)).unwrap();
    assert_eq!(step.get("windows"), 375_000 - 1_088);
    assert_eq!(pace.window, 343);
}

/// REPS (specs/uet.md#3): what came unmarked is used again once, the oldest first, eight at most;
/// otherwise an entropy value is drawn.
#[test]
fn entropy_values_of_unmarked_packets_are_used_again() {
    let mut drawn = Drawn(11);
    let mut step = Step::new(compile("nscc.p4", &[]));
    let mut ring: VecDeque<u16> = VecDeque::new();
    let mut fresh = Vec::new();
    for n in 0..20_000u32 {
        if drawn.below(2) == 0 {
            let value = drawn.below(1 << 16) as u16;
            let marked = drawn.below(4) == 0;
            let [high, low] = value.to_be_bytes();
            let rest = vec![high, low, 0, 0, 0, 0, 0, 0];
            let flags = ACK | if marked { MARK } else { 0 };
            step.ack(n, &Ack { protocol: PROTOCOL, flags, sent_at: n, remark: 0, rest });
            if !marked {
                ring.push_back(value);
            }
            if ring.len() > 8 {
                ring.pop_front();
            }
        } else {
            let path = step.leave(n, PROTOCOL).unwrap();
            match ring.pop_front() {
                Some(value) => assert_eq!(path, value, "packet {n}"),
                None => fresh.push(path),
            }
        }
    }
    // Drawn values: of so many, evenly spread over 16 paths.
    let mut counts = [0.0; 16];
    fresh.iter().for_each(|path| counts[usize::from(path % 16)] += 1.0);
    let each = fresh.len() as f64 / 16.0;
    let chi: f64 = counts.iter().map(|n| (n - each) * (n - each) / each).sum();
    assert!(fresh.len() > 1_000 && chi < 37.7, "99.9 % of draws are below: {chi}, {counts:?}");
}
