//! Whatever subflow dies, is late or loses packets, everything is delivered once and in order.

use super::*;

/// What befalls a subflow after the first millisecond.
#[derive(Clone, Copy, Debug)]
enum Ill {
    /// All its packets are lost, in both directions.
    Dies,
    /// Its data come 100 ms late.
    Late,
    /// Three in ten of its packets are lost.
    Loses,
}

fn illness(ill: Ill, subflow: u8) -> impl FnMut(&Sent) -> Verdict {
    let draw = Draw::new(1, Purpose::new("ill"), u64::from(subflow));
    move |sent| {
        if signal(sent).subflow != subflow || sent.at < ms(1) {
            return Verdict::Pass;
        }
        match ill {
            Ill::Dies => Verdict::Drop,
            Ill::Late if sent.pkt.src == A => Verdict::Delay(Dur::from_ms(100)),
            Ill::Loses if draw.unit(Purpose::new("loss"), sent.n) < 0.3 => Verdict::Drop,
            Ill::Late | Ill::Loses => Verdict::Pass,
        }
    }
}

/// The family, with timers that give up soon.
fn family() -> [(&'static str, Config); 5] {
    let [one, two] = [mptcp(4), mmptcp(3, 50_000)].map(|config| {
        let tcp = tcp::Config { max_timeouts: 5, ..config.tcp };
        Config { tcp, ..config }
    });
    let reinjecting = Config { reinject: Reinject::Timeout, opportunistic: true, ..one };
    let limited = Config { receive_buffer: 30 * MSS, send_buffer: 50 * MSS, ..reinjecting };
    let sack = tcp::Config { recovery: tcp::Recovery::Sack, ..one.tcp };
    let lowest = Config { scheduler: Scheduler::LowestRtt, tcp: sack, ..limited };
    [
        ("mptcp", one),
        ("mmptcp", two),
        ("reinjecting", reinjecting),
        ("limited", limited),
        ("lowest", lowest),
    ]
}

#[test]
fn whatever_happens_to_a_subflow_everything_arrives_once_and_in_order() {
    for (name, config) in family() {
        for ill in [Ill::Dies, Ill::Late, Ill::Loses] {
            for subflow in 0..4 {
                let mut net = pair(config, LINK);
                net.fault(illness(ill, subflow));
                // A channel's messages are delivered in order: the harness sees to it.
                for len in [3_000_000, 0, 1, 500_000] {
                    net.submit_on(A, B, 1, len);
                }
                net.submit(A, B, 2_000_000);
                net.run_until_idle(Dur::from_ms(600_000));
                println!("{name} {ill:?} {subflow}");
                net.ledger().assert_all_done();
            }
        }
    }
}

/// A path of four fails in either phase, for a while and for ever: hosts do not know it, switches
/// route around it after a millisecond.
#[test]
fn a_path_fails_in_either_phase() {
    for threshold in [20_000, 1_000_000_000] {
        for path in 0..4 {
            let mut net = pair(mmptcp(4, threshold), LINK);
            net.submit(A, B, 5_000_000);
            net.run_until(ms(1));
            net.fail_path(path, Dur::from_ms(1));
            net.run_until_idle(Dur::from_ms(10_000));
            net.ledger().assert_all_done();
        }
    }
}

/// specs/mptcp.md#I1: every byte once; what arrived is the message and duplicates, whatever is sent
/// twice.
#[test]
fn i1_what_arrives_is_the_message_and_duplicates() {
    for (name, config) in family() {
        let mut net = pair(config, LINK);
        let mix = fault::Mix { drop: 0.02, duplicate: 0.01, ..fault::Mix::NONE };
        net.fault(fault::random(Draw::new(7, Purpose::new("mix"), 0), mix));
        let arrived = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = std::rc::Rc::clone(&arrived);
        net.watch(move |_, seen, pkt| {
            let data = seen == testkit::Seen::Arrived(B) && pkt.carries_payload();
            count.set(count.get() + if data { u64::from(pkt.span.len) } else { 0 });
        });
        let len = 4_000 * MSS;
        net.submit(A, B, len);
        net.run_until_idle(Dur::from_ms(600_000));
        net.ledger().assert_all_done();
        let again = net.stat(B, Stat::Duplicate);
        assert!(again > 10, "{name}");
        assert_eq!(arrived.get(), len + again * MSS, "{name}");
        assert_eq!(net.ledger().bytes_placed(), len);
    }
}

/// specs/mptcp.md#T9: without reinjection a timeout of one subflow holds up the message for its
/// length; with it, the others see to it... after that timeout, which is when they are told.
#[test]
fn t9_a_timeout_of_one_subflow_stalls_the_connection() {
    let mut net = pair(patient(mptcp(4)), LINK);
    // All that subflow 2 sends within 200 us is lost, later in the message.
    net.fault(|sent| {
        let hit = sent.pkt.src == A && sent.at > ms(1) && sent.at < ms(1) + Dur::from_us(200);
        if hit && signal(sent).subflow == 2 { Verdict::Drop } else { Verdict::Pass }
    });
    let key = net.submit(A, B, 5_000_000);
    let placed = |net: &Net<Mptcp>| net.record(key).placed.prefix();
    let (mut last, mut longest) = ((ms(0), 0), Dur::ZERO);
    while net.step() {
        if placed(&net) > last.1 {
            longest = longest.max(net.now().since(last.0));
            last = (net.now(), placed(&net));
        }
    }
    net.ledger().assert_all_done();
    assert_eq!(timeouts(&net), 1);
    assert!((200..=260).contains(&(longest.0 / Dur::from_ms(1).0)), "{longest}");
}

/// A subflow that has given up leaves its data to the others, whatever `reinject` says; the last
/// one to go takes the connection with it.
#[test]
fn a_connection_lives_as_long_as_a_subflow() {
    let [(_, config), ..] = family();
    let mut net = pair(config, LINK);
    net.fault(illness(Ill::Dies, 2));
    let key = net.submit(A, B, 5_000_000);
    // It gives up after 1 + 2 + 4 + 8 + 16 ms.
    net.run_until(ms(30));
    assert_eq!(net.record(key).acked, None);
    net.run_until_idle(Dur::from_ms(100_000));
    net.ledger().assert_all_done();

    let mut net = pair(config, LINK);
    net.fault(|sent| if sent.at < ms(1) { Verdict::Pass } else { Verdict::Drop });
    let key = net.submit(A, B, 50_000_000);
    net.run_until_idle(Dur::from_ms(100_000));
    assert!(matches!(net.record(key).failed, Some((_, FailReason::TimedOut))));
    let ended = net.endpoint(A);
    assert!(
        ended.connections.open_count() == 0
            && ended.messages == 0
            && ended.timeouts.next() == Time::NEVER
    );
}

/// Subflows are down one after the other, each for several timeouts, so that what several of them
/// hold waits for others at a time; the messages are shorter than that.
#[test]
fn several_subflows_leave_data_to_the_others_in_turn() {
    for seed in 0..8 {
        let [_, _, (_, config), ..] = family();
        let patient = tcp::Config { max_timeouts: 15, ..config.tcp };
        let mut net = pair(Config { tcp: patient, ..config }, LINK);
        let draw = Draw::new(seed, Purpose::new("outages"), 0);
        net.fault(move |sent| {
            let subflow = signal(sent).subflow;
            let period = sent.at.since(Time::ZERO).0 / Dur::from_ms(7).0;
            let down = draw.part(u64::from(subflow)).unit(Purpose::new("down"), period) < 0.5;
            // The first stays up.
            if subflow > 0 && down { Verdict::Drop } else { Verdict::Pass }
        });
        for n in 0..400 {
            net.submit_on(A, B, 1, (n % 5) * MSS + n % 3);
        }
        net.submit(A, B, 2_000_000);
        net.run_until_idle(Dur::from_ms(600_000));
        net.ledger().assert_all_done();
    }
}

/// What was lost on its subflow is not sent again needlessly, even if others have brought it
/// meanwhile.
#[test]
fn a_repair_is_not_spurious_because_others_were_quicker() {
    let [_, _, (_, config), ..] = family();
    let mut net = pair(config, LINK);
    net.fault(|sent| {
        let out = sent.at > ms(1) && sent.at < ms(5);
        let lost = out && sent.pkt.src == A && signal(sent).subflow == 2;
        if lost { Verdict::Drop } else { Verdict::Pass }
    });
    net.submit(A, B, 10_000_000);
    net.run_until_idle(Dur::from_ms(100_000));
    net.ledger().assert_all_done();
    assert!(timeouts(&net) > 0 && net.stat(B, Stat::Duplicate) > 0);
    assert_eq!(net.stat(B, Stat::SpuriousTimeout), 0);
}
