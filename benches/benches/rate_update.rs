//! What an update of the rate costs, per rule: the call that a queue pair makes for an acknowledgement (DCQCN: for a
//! congestion notification, and for a timer), without the packet around it. Inputs keep the rule between its bounds.
//! `none` is the cost of the call itself: subtract it. `cargo bench` in `benches/`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use transports::rdma::rule::{
    Ack, PathView, Rule, RuleConfig, State, dcqcn, fast, hpcc, swift, timely,
};
use units::{Dur, Rate, Time};
use wire::int::Hop;

const LINE: Rate = Rate(10_000_000_000);
const PATH: PathView =
    PathView { line_rate: LINE, base_rtt: Dur::from_us(10), hops: 5, packet: 1086, others: 0 };

/// Round-trip times about 100 us, rising and falling; the average moves by less than a microsecond.
const RTTS: [u64; 8] = [100, 101, 103, 102, 100, 98, 97, 99];

/// The `n`-th acknowledgement of a queue pair, of what was sent after the one before.
fn ack(n: u64, hops: &[Hop]) -> Ack<'_> {
    Ack {
        now: Time::ZERO + Dur::from_us(20 * n),
        acked: 2 * n,
        next: 2 * n + 1,
        bytes: 1086,
        rtt: Some(Dur::from_us(RTTS[n as usize % RTTS.len()])),
        remote: Dur::from_us(1),
        ce: false,
        hops,
        achieved: LINE.0 as f64,
        recovering: false,
    }
}

/// Five ports of which each has sent what its line carries in 20 us since the last acknowledgement.
fn telemetry(n: u64) -> [Hop; 5] {
    let now = Time::ZERO + Dur::from_us(20 * n);
    [(); 5].map(|()| Hop::new(LINE, now, 24_000 * n, 1_000 * (n % 8)).unwrap_or_default())
}

/// Measure `update`, which is told how often it was called before, of the rule by `config`.
fn measure(
    c: &mut Criterion,
    name: &str,
    config: &RuleConfig,
    mut update: impl FnMut(&mut dyn Rule, u64),
) {
    let mut state = State::new(config);
    state.get_mut().start(&PATH, Time::ZERO);
    let mut n = 0;
    c.bench_function(name, |bencher| {
        bencher.iter(|| {
            n += 1;
            update(state.get_mut(), black_box(n));
            state.get().rate()
        });
    });
}

fn on_ack(rule: &mut dyn Rule, n: u64) {
    rule.on_ack(&ack(n, &[]));
}

fn rules(c: &mut Criterion) {
    let fast = fast::Params::TIMELY_PAPER;
    measure(c, "none", &RuleConfig::Unlimited, on_ack);
    measure(c, "timely", &RuleConfig::Timely(timely::Params::PAPER), on_ack);
    measure(c, "patched timely", &RuleConfig::Timely(timely::Params::PATCHED), on_ack);
    measure(c, "fast", &RuleConfig::Fast(fast), on_ack);
    measure(c, "swift", &RuleConfig::Swift(swift::Params::PAPER), on_ack);
    // Written by switches, not by the rule; where the list begins again, one interval is wrong.
    let written: Vec<[Hop; 5]> = (0..1024).map(telemetry).collect();
    measure(c, "hpcc, 5 hops", &RuleConfig::Hpcc(hpcc::Params::PAPER), |rule, n| {
        rule.on_ack(&ack(n, &written[n as usize % written.len()]));
    });
    let dcqcn = RuleConfig::Dcqcn(dcqcn::Params::PAPER);
    measure(c, "dcqcn, notification", &dcqcn, |rule, n| {
        rule.on_cnp(Time::ZERO + Dur::from_us(50 * n));
    });
    measure(c, "dcqcn, timers after a notification", &dcqcn, |rule, n| {
        let now = Time::ZERO + Dur::from_us(500 * n);
        rule.on_cnp(now);
        rule.on_timer(now + Dur::from_us(55));
    });
}

criterion_group!(rate_update, rules);
criterion_main!(rate_update);
