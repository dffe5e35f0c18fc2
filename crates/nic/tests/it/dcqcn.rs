//! `p4/dcqcn.p4`: ACK after ACK against the rule of DCQCN in real numbers, within the bounds that
//! the program states at its head.

use crate::shipped;
use crate::step;

use shipped::compile;
use step::{Ack, Drawn, Step};

const ACK_FLAG: u8 = 2;
const CNP: u8 = 0x40;
/// Cycles in a microsecond, and Mb/s.
const US: u32 = 3_200;
const LINE: f64 = 40_000.0;
const MBPS: f64 = 4_096.0;

fn ack(flags: u8) -> Ack {
    Ack { protocol: 199, flags: ACK_FLAG | flags, sent_at: 0, remark: 0, rest: vec![0; 8] }
}

/// The reaction point, Mb/s and cycles. Timers are looked at when an ACK comes, each once.
#[derive(Clone, Copy, Debug)]
struct Rule {
    current: f64,
    target: f64,
    alpha: f64,
    alpha_at: u32,
    rate_at: u32,
    bytes: u32,
    timer_stage: u32,
    byte_stage: u32,
    cut_before: bool,
}

impl Rule {
    const NEW: Self = Self {
        current: LINE,
        target: LINE,
        alpha: 1.0,
        alpha_at: 0,
        rate_at: 0,
        bytes: 0,
        timer_stage: 0,
        byte_stage: 0,
        cut_before: false,
    };

    fn increase(&mut self) {
        let (least, most) =
            (self.timer_stage.min(self.byte_stage), self.timer_stage.max(self.byte_stage));
        if most >= 5 {
            let times = if least >= 5 { least - 4 } else { 1 };
            self.target = (self.target + 40.0 * f64::from(times)).min(LINE);
        }
        self.current = (self.target + self.current) / 2.0;
    }

    fn ack(&mut self, now: u32, cnp: bool) {
        if self.cut_before {
            if now >= self.alpha_at {
                self.alpha *= 255.0 / 256.0;
                self.alpha_at += 55 * US;
            }
            if now >= self.rate_at {
                self.rate_at += 55 * US;
                self.timer_stage += 1;
                self.increase();
            }
            self.bytes += 1_088;
            if self.bytes >= 10_000_000 {
                self.bytes -= 10_000_000;
                self.byte_stage += 1;
                self.increase();
            }
        }
        if cnp {
            self.target = self.current;
            self.current = (self.current * (1.0 - self.alpha / 2.0)).max(200.0);
            self.alpha = self.alpha * 255.0 / 256.0 + 1.0 / 256.0;
            (self.alpha_at, self.rate_at) = (now + 55 * US, now + 55 * US);
            (self.bytes, self.timer_stage, self.byte_stage) = (0, 0, 0);
            self.cut_before = true;
        }
    }
}

/// Hundreds of thousands of ACKs, with cuts in between: rates within 0.1 % and alpha within 1/100
/// 000 of the rule's, though errors add up; the pace within 0.03 % of the rate.
#[test]
fn a_long_run_stays_within_its_bound() {
    let mut drawn = Drawn(11);
    let mut step = Step::new(compile("dcqcn.p4", &[]));
    let mut rule = Rule::NEW;
    let (mut now, mut cuts, mut hyper) = (0, 0, 0);
    let mut next_cut = 40_000;
    for n in 0..300_000 {
        now += 900 + drawn.below(2_000) as u32;
        let cnp = n == next_cut;
        if cnp {
            cuts += 1;
            next_cut = n + 1 + drawn.scaled(20.0, 120_000.0) as u32;
        }
        rule.ack(now, cnp);
        let pace = step.ack(now, &ack(if cnp { CNP } else { 0 }));
        hyper += u32::from(rule.timer_stage.min(rule.byte_stage) >= 5);
        if !rule.cut_before {
            assert_eq!(pace, None, "at the line's rate until the first cut");
            continue;
        }
        let current = step.get("current") as f64 / MBPS;
        let target = step.get("target") as f64 / MBPS;
        let alpha = step.get("alpha") as f64 / 16_777_216.0;
        let all = format!("{n}: {current} {target} {alpha}, {rule:?}");
        assert!((current / rule.current - 1.0).abs() < 0.001, "{all}");
        assert!((target / rule.target - 1.0).abs() < 0.001, "{all}");
        assert!((alpha - rule.alpha).abs() < 1e-5, "{all}");
        let stages = [step.get("timer_stages"), step.get("byte_stages")];
        assert_eq!(stages, [rule.timer_stage.into(), rule.byte_stage.into()], "{all}");
        let pace = pace.unwrap();
        // 544 bits on the wire for each word.
        let gap = 544.0 / current * f64::from(US) * 256.0;
        assert!((f64::from(pace.gap) - gap).abs() <= 0.0003 * gap + 1.0, "{all} {pace:?}");
        assert_eq!(pace.window, u16::MAX);
    }
    assert!(cuts > 10 && hyper > 1_000, "{cuts} {hyper}");
}

/// specs/rdma.md#I6,I7,I8: half the rate after the first CNP; k expiries of the timer bring R_T -
/// (R_T - R_C) / 2^k, the fifth raises the target first; alpha is (1 - g)^k of itself after k idle
/// periods.
#[test]
fn i6_i7_i8_closed_forms() {
    let mut step = Step::new(compile("dcqcn.p4", &[]));
    step.ack(1_000, &ack(CNP));
    let rate = |step: &mut Step, name| step.get(name) as f64 / MBPS;
    assert_eq!((rate(&mut step, "current"), rate(&mut step, "target")), (20_000.0, 40_000.0));
    assert_eq!(step.get("alpha"), 1 << 24);
    // Cut again, so that the target is below the line.
    step.ack(2_000, &ack(CNP));
    let (aim, cut) = (rate(&mut step, "target"), rate(&mut step, "current"));
    assert_eq!((aim, cut), (20_000.0, 10_000.0));
    for k in 1..=5 {
        step.ack(2_000 + k * 55 * US, &ack(0));
        let alpha = step.get("alpha") as f64 / 16_777_216.0;
        let idle = (1..=k).fold(1.0, |alpha, _| alpha * 255.0 / 256.0);
        assert!((alpha - idle).abs() < 1e-6, "I8 {k}: {alpha}");
        let expected = if k < 5 {
            aim - (aim - cut) / f64::from(1 << k)
        } else {
            (aim + 40.0 + aim - (aim - cut) / 16.0) / 2.0
        };
        let current = rate(&mut step, "current");
        assert!((current - expected).abs() < 0.001, "I7 {k}: {current}, not {expected}");
    }
}

/// specs/rdma.md#I6: at most one CNP each 50 us, however many packets are marked.
#[test]
fn i6_one_cnp_in_an_interval() {
    let mut step = Step::new(compile("dcqcn.p4", &[]));
    // Class 6, local use; ECT(0) and CE.
    let (capable, marked) = (0b1100_1110, 0b1100_1111);
    let mut notified = |at_us: f64, tos| {
        let flags = step.data((at_us * f64::from(US)) as u32, tos, 199).unwrap();
        assert_eq!(flags & !CNP, ACK_FLAG);
        flags & CNP != 0
    };
    assert!(!notified(1.0, capable));
    assert!(notified(2.0, marked), "the first mark at once");
    assert!(!notified(2.1, marked) && !notified(51.9, marked));
    assert!(notified(52.0, marked) && !notified(52.1, marked));
    assert!(!notified(200.0, capable) && notified(201.0, marked));
    assert!(!notified(202.0, 0b0000_0011), "rank 3 of the prototype is no mark");
}
