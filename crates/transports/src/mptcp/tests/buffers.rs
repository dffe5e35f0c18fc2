//! Windows of the connection: receive and send buffers, the scheduler, and what happens when they
//! are full.

use std::collections::BTreeMap;

use super::*;

/// The highest data sequence number sent, and the highest acknowledged, packet by packet as A sees
/// it.
fn outstanding(net: &Net<Mptcp>) -> u64 {
    let connection = &net.endpoint(A).connections[0];
    connection.next - connection.una
}

/// specs/mptcp.md#I3: no subflow has more in flight than its window and the cap. Nor has the
/// connection more than the buffers hold.
#[test]
fn i3_windows_and_buffers_are_kept() {
    let caps = |config: Config| {
        let tcp = tcp::Config { window_cap: 20.0, ..config.tcp };
        Config { tcp, ..config }
    };
    let receive = Config { receive_buffer: 25 * MSS, ..caps(mptcp(3)) };
    let send = Config { send_buffer: 15 * MSS, ..caps(mptcp(3)) };
    let both = Config { opportunistic: true, reinject: Reinject::Timeout, ..receive };
    for (config, limit) in [(caps(mptcp(3)), 60), (receive, 25), (send, 15), (both, 25)] {
        let mut net = pair(config, LINK);
        let mix = fault::Mix { drop: 0.01, ..fault::Mix::NONE };
        net.fault(fault::random(Draw::new(3, Purpose::new("mix"), 0), mix));
        net.submit(A, B, 3_000_000);
        let mut most = 0;
        while net.step() {
            let connection = &net.endpoint(A).connections[0];
            most = most.max(outstanding(&net));
            for subflow in &connection.subflows {
                let sender = &subflow.sender;
                sender.assert_in_range();
                assert!(sender.flight() <= 20 * MSS + 2 * MSS, "{}", sender.flight());
            }
        }
        net.ledger().assert_all_done();
        let most = most / MSS;
        // Without a buffer, what is missing on one subflow does not hold back the others.
        assert!(if limit == 60 { most >= 50 } else { most == limit }, "{most} of {limit}");
    }
}

/// Receive windows are said in 16 bits, with a shift that both ends know.
#[test]
fn windows_fit_their_field() {
    for (buffer, shift) in
        [(1_000, 0), (65_535, 0), (65_536, 1), (6_291_456, 7), (u64::MAX - 1, 48)]
    {
        let config = Config { receive_buffer: buffer, ..mptcp(2) };
        assert_eq!(config.window_shift(), shift);
        let field = (buffer >> shift) as u16;
        let said = config.window(field);
        assert!(said <= buffer && buffer - said < 1 << shift, "{buffer}: {said}");
    }
    assert_eq!(mptcp(2).window(u16::MAX), u64::MAX);
}

/// Segments of new data that each subflow sent.
fn shares(net: &Net<Mptcp>) -> Vec<u64> {
    let mut shares = vec![0; 4];
    data(net).for_each(|(i, _)| shares[usize::from(i)] += 1);
    shares
}

#[test]
fn the_scheduler_takes_turns_or_the_quickest_subflow() {
    // Only subflow 0 has a short way; the windows of all are capped, so that none has all the link.
    let late = |sent: &Sent| match sent.pkt.src == A && signal(sent).subflow > 0 {
        true => Verdict::Delay(Dur::from_us(50)),
        false => Verdict::Pass,
    };
    let run = |scheduler, cap| {
        let tcp = tcp::Config { window_cap: cap, ..mptcp(4).tcp };
        let mut net = pair(patient(Config { tcp, scheduler, ..mptcp(4) }), LINK);
        net.fault(late);
        let key = net.submit(A, B, endpoint::UNBOUNDED);
        net.run_until(ms(20));
        net.cancel(key);
        shares(&net)
    };
    // 10 Gb/s carry about 12 segments in the short way's round trip, 60 in the long one's.
    let equal = run(Scheduler::RoundRobin, 100.0);
    let (least, most) = (equal.iter().min().unwrap(), equal.iter().max().unwrap());
    assert!(most - least < most / 20, "{equal:?}");
    let quick = run(Scheduler::LowestRtt, 100.0);
    assert!(quick[0] > 9 * quick[1..].iter().sum::<u64>(), "{quick:?}");
    let limited = run(Scheduler::LowestRtt, 4.0);
    assert!(limited[1..].iter().all(|&n| n > 1_000), "it is not quick enough for all: {limited:?}");
}

/// A message without end over subflows of which the last one's data is `late`, and a window of 30
/// segments.
fn held_up(config: Config, late: Dur) -> (Net<Mptcp>, MsgKey) {
    let config = Config { receive_buffer: 30 * MSS, ..patient(config) };
    let last = config.subflows as u8 - 1;
    let mut net = pair(config, LINK);
    net.fault(move |sent| match sent.pkt.src == A && signal(sent).subflow == last {
        true => Verdict::Delay(late),
        false => Verdict::Pass,
    });
    let key = net.submit(A, B, endpoint::UNBOUNDED);
    (net, key)
}

/// NSDI 2012, section 4: a slow subflow fills a small receive buffer with what cannot be delivered;
/// the others go on with opportunistic retransmission and penalisation.
#[test]
fn a_full_receive_window_does_not_wait_for_the_slow_subflow() {
    let run = |opportunistic| {
        let (mut net, key) = held_up(Config { opportunistic, ..mptcp(2) }, Dur::from_ms(5));
        net.run_until(ms(100));
        let placed = net.record(key).placed.prefix();
        net.cancel(key);
        net.run_until_idle(Dur::from_ms(10_000));
        placed
    };
    let (without, with) = (run(false), run(true));
    assert!(with > 5 * without, "{without} {with}");
}

/// Only what the slow subflow had sent is sent again, once, and only its window is halved.
#[test]
fn the_slow_subflow_pays_for_a_full_window() {
    let (mut net, _) = held_up(Config { opportunistic: true, ..mptcp(3) }, Dur::from_ms(5));
    net.run_until(ms(100));
    let sent = shares(&net);
    let mut copies = BTreeMap::new();
    for (i, packet) in data(&net) {
        let Body::Data { dsn, .. } = signal(packet).body else { panic!() };
        copies.entry(dsn).or_insert_with(Vec::new).push(i);
    }
    let again = copies.values().filter(|by| by.len() > 1);
    assert!(again.clone().all(|by| by.len() == 2 && by.contains(&2)), "{copies:?}");
    assert!(again.count() as u64 <= sent[2] && sent[2] > 10, "{sent:?}");
    let subflows = &net.endpoint(A).connections[0].subflows;
    let penalised: Vec<bool> = subflows.iter().map(|s| s.penalised.is_some()).collect();
    assert_eq!(penalised, [false, false, true]);
}

/// Linux: with a round trip that is not four times the other's, a subflow is left its data while
/// its window is above four segments; that is halved again and again, which takes it there unless
/// it is in slow start.
#[test]
fn a_subflow_not_much_slower_keeps_its_data_until_its_window_is_small() {
    let run = |initial_ssthresh| {
        let tcp = tcp::Config { initial_ssthresh, ..mptcp(2).tcp };
        let config = Config { opportunistic: true, tcp, ..mptcp(2) };
        // The round trip is 11 us and what waits for the link.
        let (mut net, _) = held_up(config, Dur::from_us(20));
        let (mut windows, mut logged, mut next) = (Vec::new(), 0, 0);
        while net.now() < ms(20) {
            net.step();
            let slow = &net.endpoint(A).connections[0].subflows[1];
            for sent in net.log()[logged..].iter().filter(|s| s.pkt.src == A) {
                let Body::Data { dsn, .. } = signal(sent).body else { continue };
                windows.extend((dsn < next).then(|| slow.sender.cwnd()));
                next = next.max(dsn + 1);
            }
            logged = net.log().len();
        }
        let subflows = &net.endpoint(A).connections[0].subflows;
        let [quick, slow] = [0, 1].map(|i| subflows[i].srtt().unwrap());
        assert!(slow > quick && slow < quick * 4, "{quick} {slow}");
        assert!(subflows[1].penalised.is_some());
        windows
    };
    assert_eq!(run(f64::INFINITY), []);
    let windows = run(10.0);
    assert!(!windows.is_empty() && windows.iter().all(|&window| window <= 4.0), "{windows:?}");
}

/// What a subflow has outstanding when its timer expires goes over the others, once.
#[test]
fn a_timeout_reinjects() {
    let run = |reinject| {
        let mut net = pair(Config { reinject, ..patient(mptcp(2)) }, LINK);
        net.fault(|sent| match sent.at > ms(1) && signal(sent).subflow == 1 {
            true => Verdict::Drop,
            false => Verdict::Pass,
        });
        let key = net.submit(A, B, 4_000_000);
        net.run_until(ms(1_000));
        (net.record(key).delivered, net.stat(B, Stat::Duplicate))
    };
    assert_eq!(run(Reinject::None), (None, 0), "the subflow tries again and again");
    let (delivered, duplicates) = run(Reinject::Timeout);
    let at = delivered.unwrap();
    assert!(at > ms(201) && at < ms(206) && duplicates == 0, "{at} {duplicates}");
}
