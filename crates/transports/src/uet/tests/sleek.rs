//! Where nothing is trimmed: recovery by packets out of order and by probes (specs/uet.md#11).

use super::*;

/// For switches that do not trim.
fn sleek() -> Config {
    Config { trimming: false, sleek: true, ..config() }
}

/// One full queue, and losses beyond it.
fn lossy(config: Config, seed: u64, drop: f64) -> Net<Uet> {
    let mut net = net(config, 4);
    net.set_bottleneck(TO, Bottleneck { rate: RATE, packets: 40, trim: false });
    let draw = endpoint::Draw::new(seed, endpoint::Purpose::new("uet sleek"), 0);
    net.fault(fault::random(draw, Mix { drop, ..Mix::NONE }));
    net
}

#[test]
fn sleek_conforms() {
    conforms(sleek());
    conforms(Config { credit: true, ..sleek() });
    conforms(Config { sleek: true, ..Config::htsim(1000) });
}

/// Lose the first copies of these packets. When the last packet was acknowledged.
fn done_without(config: Config, lost: &'static [u32]) -> (Dur, usize) {
    let mut net = net(config, 2);
    net.fault(move |sent: &Sent| match kind(sent) {
        Kind::Request { psn, repeated: false, .. } if lost.contains(&psn) => Verdict::Drop,
        _ => Verdict::Pass,
    });
    let key = net.submit(HostId(1), TO, 300 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(10));
    net.ledger().assert_all_done();
    let again = data(&net, 1).iter().filter(|data| data.repeated).count();
    (net.record(key).acked.unwrap().since(Time::ZERO), again)
}

/// 300 packets take 100 us, and the timeout as long. A hole is found when 64 packets have passed
/// it, the end of a message by a probe.
#[test]
fn losses_are_found_before_the_timeout() {
    for lost in [&[100_u32][..], &[299], &[100, 101, 299]] {
        let plain = done_without(Config { sleek: false, ..sleek() }, lost);
        let found = done_without(sleek(), lost);
        assert!(plain.1 >= lost.len(), "the timeout sends what was lost");
        assert!(found.0 < plain.0, "{lost:?}: {found:?}, without {plain:?}");
        assert!(found.0 < Dur::from_us(200), "{lost:?}: {found:?}");
    }
}

/// Between the last answer and the probe nothing else happened, and the probe waits with data.
#[test]
fn a_probe_is_no_control_packet_and_comes_after_a_silence() {
    let mut net = net(sleek(), 2);
    net.fault(|sent: &Sent| match kind(sent) {
        Kind::Request { psn: 9, repeated: false, .. } => Verdict::Drop,
        _ => Verdict::Pass,
    });
    net.submit(HostId(1), TO, 10 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(10));
    let probes = net.log().iter().filter(|sent| matches!(kind(sent), Kind::Probe { .. }));
    let probes: Vec<&Sent> = probes.collect();
    assert_eq!(probes.len(), 1);
    assert!(!probes[0].pkt.flags.has(Flags::CONTROL) && probes[0].pkt.wire_len == 64);
    let heard = acks(&net).into_iter().map(|(at, ..)| at + DELAY + RATE.serialise(64));
    let last = heard.filter(|at| *at < probes[0].at).max().unwrap();
    // Base round trip and target, which are the same here.
    let rtt = RATE.serialise(4150) + DELAY * 2 + RATE.serialise(64);
    let silence = probes[0].at.since(last);
    assert!((rtt..=rtt * 2 + Dur::from_us(1)).contains(&silence), "{silence}");
}

/// specs/uet.md#U1,U3,U9.
#[test]
fn what_is_lost_arrives_once_whatever_is_lost_again() {
    for seed in 0..12 {
        let config = sleek();
        let mut net = lossy(config, seed, 0.02 * seed as f64);
        for from in 1..4 {
            net.submit(HostId(from), TO, 1_500_000);
        }
        while net.step() {
            for host in 1..4 {
                net.endpoint(HostId(host)).sender.flows().for_each(|flow| {
                    flow.check(&config);
                });
            }
        }
        net.ledger().assert_all_done();
    }
}

/// A peer that is gone: probes do not keep the message alive.
#[test]
fn a_message_whose_peer_is_gone_fails_in_the_end() {
    let config = Config {
        abort_after: Dur::from_ms(20),
        time_wait: Dur::from_ms(30),
        rx_idle_timeout: Dur::from_ms(30),
        ..sleek()
    };
    let mut net = net(config, 2);
    net.fault(|sent: &Sent| match sent.at > Time::ZERO + Dur::from_us(60) {
        true => Verdict::Drop,
        false => Verdict::Pass,
    });
    let key = net.submit(HostId(1), TO, 1_000_000);
    net.run_until_idle(Dur::from_ms(200));
    assert!(net.record(key).failed.is_some());
    let probes = net.log().iter().filter(|sent| matches!(kind(sent), Kind::Probe { .. })).count();
    assert!(probes > 100, "{probes}");
}

#[test]
fn sleek_needs_a_window() {
    let alone = Config { control: WindowControl::None, credit: true, ..sleek() };
    let what = "Ultra Ethernet: sleek counts packets of NSCC's window (control nscc)";
    assert_eq!(alone.check().unwrap_err().to_string(), what);
}
