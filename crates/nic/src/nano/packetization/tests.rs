//! Packetization against specs/nanotransport.md#6,N3 to N6.

use super::super::buffers::SizeClass;
use super::*;
use proptest::prelude::*;

const TIMEOUT: Dur = Dur::from_us(7);

fn packetization() -> Packetization {
    Packetization::new(&Config::prototype(2, TIMEOUT), false)
}

fn message(packets: u16) -> Outgoing {
    Outgoing { msg_len: packets * 1024, ..Outgoing::for_test(77) }
}

/// Indices of all packets that may go now, with whether they are retransmissions.
fn drain(p: &mut Packetization) -> Vec<(u8, bool)> {
    std::iter::from_fn(|| p.next(Time(u64::MAX - 1)).map(|d| (d.pkt_offset, d.is_rtx))).collect()
}

fn grant(p: &mut Packetization, credit: u16) {
    p.credit(Time(0), 0, Credit { rtx: None, new_credit: Some(credit) });
}

fn nack(p: &mut Packetization, offset: u8, new_credit: Option<u16>) {
    p.credit(Time(0), 0, Credit { rtx: Some(offset), new_credit });
}

/// Fire the only timer.
fn time_out(p: &mut Packetization) -> Timeout {
    let at = p.next_timeout().unwrap();
    p.on_timeout(at).unwrap()
}

#[test]
fn a_message_sends_its_window_and_then_what_credit_releases() {
    let mut p = packetization();
    assert!(p.submit(Time(0), message(5)));
    let first = p.next(Time(0)).unwrap();
    assert!(first.is_new_msg && first.pkt_offset == 0 && first.tx_msg_id == 0);
    assert!(!p.next(Time(0)).unwrap().is_new_msg, "only the first packet");
    assert_eq!(p.next(Time(0)), None);
    grant(&mut p, 4);
    grant(&mut p, 3);
    assert_eq!(drain(&mut p), [(2, false), (3, false)], "a lower credit means nothing");
    grant(&mut p, 99);
    assert_eq!(drain(&mut p), [(4, false)]);
}

/// Two messages to one host share its window, a third one to another host passes them by; a repeat
/// needs no window, and what is over holds none.
#[test]
fn a_flow_has_one_window() {
    let mut p = Packetization::new(&Config::prototype(3, TIMEOUT), true);
    let to = |tag, dst_ip| Outgoing { dst_ip, msg_len: 2048, ..Outgoing::for_test(tag) };
    for (tag, host) in [(1, 9), (2, 9), (3, 8)] {
        assert!(p.submit(Time(0), to(tag, host)));
    }
    let all = |p: &mut Packetization, at| -> Vec<(u64, u8)> {
        std::iter::from_fn(|| p.next(Time(at)).map(|d| (d.message.tag, d.pkt_offset))).collect()
    };
    assert_eq!(all(&mut p, 0), [(1, 0), (1, 1), (2, 0), (3, 0), (3, 1)]);
    assert_eq!(p.waiting_since(), None, "packet 1 of message 2 has no room");
    let timeout = time_out(&mut p);
    assert_eq!((timeout.tag, timeout.repeats), (1, 1), "its packet 0: the timer began with it");
    assert_eq!(all(&mut p, TIMEOUT.0 * 2), [(1, 0)]);
    let later = Time(TIMEOUT.0 * 2);
    assert_eq!(p.delivered(later, 0, 0b11), Some(1));
    assert_eq!(p.waiting_since(), Some(later), "not before its window has opened");
    assert_eq!(all(&mut p, later.0 - 1), []);
    assert_eq!(all(&mut p, later.0), [(2, 1)]);
    assert!(p.submit(later, to(4, 9)));
    assert_eq!(all(&mut p, later.0), [(4, 0)], "two of message 2 and one of message 4");
    assert!(p.cancel(later, 2));
    assert_eq!(all(&mut p, later.0), [(4, 1)]);
}

/// A packet arrives while its repeat waits for the wire: the repeat takes no room in the window,
/// now or later.
#[test]
fn a_repeat_of_what_has_arrived_takes_no_room() {
    let mut p = Packetization::new(&Config::prototype(3, TIMEOUT), true);
    p.submit(Time(0), message(2));
    assert_eq!(drain(&mut p), [(0, false), (1, false)]);
    assert_eq!(time_out(&mut p).repeats, 1);
    p.delivered(Time(0), 0, 0b1);
    assert_eq!(drain(&mut p), [(0, true)]);
    assert_eq!(p.delivered(Time(0), 0, 0b10), Some(77));
    p.submit(Time(0), message(5));
    assert_eq!(drain(&mut p), [(0, false), (1, false), (2, false)]);
}

/// What a program repeats is not in flight any more: another packet may go, and the repeat needs
/// room. What arrives meanwhile made room already.
#[test]
fn what_was_trimmed_needs_room_again() {
    let mut p = Packetization::new(&Config::prototype(2, TIMEOUT), true);
    p.submit(Time(0), message(5));
    assert_eq!(drain(&mut p), [(0, false), (1, false)]);
    nack(&mut p, 0, Some(1));
    assert_eq!(drain(&mut p), [(0, true)], "before what is new");
    p.delivered(Time(0), 0, 0b1);
    assert_eq!(drain(&mut p), [(2, false)]);
    nack(&mut p, 1, Some(2));
    p.delivered(Time(0), 0, 0b10);
    assert_eq!(drain(&mut p), [(1, true), (3, false)], "it has arrived, but waits already");
    p.delivered(Time(0), 0, 0b1100);
    assert_eq!(drain(&mut p), [(4, false)]);
    assert_eq!(p.delivered(Time(0), 0, 0b1_0000), Some(77));
    p.submit(Time(0), message(5));
    assert_eq!(drain(&mut p), [(0, false), (1, false)], "neither more nor less than the window");
}

/// A flow whose window is full of packets that nobody answers: what was trimmed goes at the next
/// timeout, and counts as in flight then.
#[test]
fn what_was_trimmed_waits_for_a_timeout_at_most() {
    let mut p = Packetization::new(&Config::prototype(2, TIMEOUT), true);
    p.submit(Time(0), message(3));
    assert_eq!(drain(&mut p), [(0, false), (1, false)]);
    p.set_flow(Time(0), Outgoing::for_test(77).dst_ip as usize % 256, Pace { window: 1, gap: 0 });
    nack(&mut p, 0, Some(1));
    assert_eq!(drain(&mut p), [], "packet 1 is in flight");
    time_out(&mut p);
    assert_eq!(drain(&mut p), [(0, true)]);
    p.delivered(Time(0), 0, 0b1);
    assert_eq!(drain(&mut p), []);
    p.delivered(Time(0), 0, 0b10);
    assert_eq!(drain(&mut p), [(2, false)]);
}

/// A NACK marks; what it marks leaves with the next credit, if that is only repeated.
#[test]
fn a_nack_marks_and_credit_sends() {
    let mut p = packetization();
    p.submit(Time(0), message(5));
    drain(&mut p);
    nack(&mut p, 1, None);
    assert_eq!(drain(&mut p), []);
    grant(&mut p, 3);
    assert_eq!(drain(&mut p), [(1, false), (2, false)]);
    // NDP: the PULL on a NACK does not raise the credit, but the packet goes again.
    nack(&mut p, 0, Some(3));
    assert_eq!(drain(&mut p), [(0, true)]);
    // E4: one that has arrived is not marked, nor one that is no packet of the message.
    p.delivered(Time(0), 0, 0b1);
    nack(&mut p, 0, Some(3));
    nack(&mut p, 70, Some(3));
    assert_eq!(drain(&mut p), []);
}

#[test]
fn init_goes_before_credit_before_timeout_and_each_is_fifo() {
    let mut p = packetization();
    for tag in 0..2 {
        p.submit(Time(0), Outgoing { tag, ..message(3) });
    }
    while p.next(Time(0)).is_some() {}
    let at = p.next_timeout().unwrap();
    p.on_timeout(at);
    p.credit(at, 1, Credit { rtx: None, new_credit: Some(3) });
    p.submit(at, Outgoing { tag: 2, ..message(1) });
    let order: Vec<_> = std::iter::from_fn(|| p.next(at)).map(|d| d.message.tag).collect();
    assert_eq!(order, [2, 1, 0]);
}

/// specs/nanotransport.md#6.3: what was sent when the timer was started, and no more.
#[test]
fn a_timeout_repeats_what_was_sent_before_it_was_started() {
    let mut p = packetization();
    p.submit(Time(0), message(5));
    drain(&mut p);
    assert_eq!(time_out(&mut p).repeats, 1, "started when nothing had been sent: packet 0 only");
    assert_eq!(drain(&mut p), [(0, true)]);
    grant(&mut p, 3);
    drain(&mut p);
    assert_eq!(time_out(&mut p).repeats, 2, "packets 0 and 1");
    p.delivered(Time(0), 0, 0b1);
    assert_eq!(drain(&mut p), [(0, true), (1, true)], "a descriptor is fixed");
    assert_eq!(time_out(&mut p).repeats, 2, "packets 1 and 2");
}

#[test]
fn timeouts_do_not_pile_up_behind_a_busy_wire() {
    let mut p = packetization();
    p.submit(Time(0), message(1));
    assert_eq!(time_out(&mut p).repeats, 0, "it has not been sent yet");
    assert_eq!(drain(&mut p), [(0, false)]);
    assert_eq!(time_out(&mut p).repeats, 1);
    assert_eq!(time_out(&mut p).repeats, 0, "it waits already");
    assert_eq!(drain(&mut p), [(0, true)]);
}

#[test]
fn a_message_without_progress_is_given_up() {
    let mut p = packetization();
    p.submit(Time(0), message(5));
    drain(&mut p);
    let given_up = (0..20).find(|_| time_out(&mut p).gave_up);
    // The first timeout sees that packet 1 was sent since its timer started, then five more.
    assert_eq!(given_up, Some(5));
    assert_eq!((p.next_timeout(), p.id_of(0, 3)), (None, None));
    assert!(p.queues.iter().any(|queue| !queue.is_empty()), "descriptors are left");
    assert_eq!((p.waiting_since(), drain(&mut p)), (None, vec![]), "which say nothing");
}

/// Its flow holds packets back for the room of those that are repeated in vain.
#[test]
fn repeats_without_progress_are_given_up_though_the_flow_holds_others_back() {
    let mut p = Packetization::new(&Config::prototype(3, TIMEOUT), true);
    p.submit(Time(0), message(5));
    assert_eq!(drain(&mut p).len(), 3);
    grant(&mut p, 5);
    assert_eq!(drain(&mut p), [], "a window of three");
    let given_up = (0..20).find(|_| {
        let timeout = time_out(&mut p);
        assert_eq!(drain(&mut p).len(), timeout.repeats as usize);
        timeout.gave_up
    });
    // As soon as where nothing is held back.
    assert_eq!(given_up, Some(5));
}

#[test]
fn progress_is_an_arrival_too() {
    let mut p = packetization();
    p.submit(Time(0), message(20));
    drain(&mut p);
    for _ in 0..4 {
        assert!(!time_out(&mut p).gave_up);
    }
    p.delivered(Time(0), 0, 0b1);
    assert!((0..5).all(|_| !time_out(&mut p).gave_up));
    assert!(time_out(&mut p).gave_up);
}

/// Everything sent has arrived, and the packet that raised the credit was lost.
#[test]
fn a_probe_goes_beyond_the_credit_where_nothing_can_be_repeated() {
    let mut p = packetization();
    p.submit(Time(0), message(5));
    drain(&mut p);
    p.delivered(Time(0), 0, 0b11);
    assert_eq!(time_out(&mut p).repeats, 0, "packet 1 was sent since the timer started");
    assert_eq!(time_out(&mut p).repeats, 1);
    assert_eq!(drain(&mut p), [(2, true)]);
    let mut strict = packetization();
    strict.probe = false;
    strict.submit(Time(0), message(5));
    drain(&mut strict);
    strict.delivered(Time(0), 0, 0b11);
    assert_eq!([0; 2].map(|_| time_out(&mut strict).repeats), [0, 0]);
}

#[test]
fn a_message_that_is_over_is_not_known_by_its_number() {
    let mut p = packetization();
    p.submit(Time(0), Outgoing { generation: 2, ..message(1) });
    let number = p.next(Time(0)).unwrap().tx_msg_id;
    assert_eq!((number, p.cell(number)), (32, 0));
    assert_eq!((p.id_of(32, 3), p.id_of(0, 3), p.id_of(32, 4)), (Some(0), None, None));
    assert_eq!(p.delivered(Time(0), 0, 0b1), Some(77));
    assert_eq!(p.id_of(32, 3), None);
    // A second ACK, a late PULL.
    assert_eq!(p.delivered(Time(0), 0, 0b1), None);
    grant(&mut p, 9);
    assert_eq!(drain(&mut p), []);
}

#[test]
fn without_an_id_or_a_buffer_a_message_is_not_taken() {
    let mut p = packetization();
    assert!((0..16).all(|tag| p.submit(Time(0), Outgoing { tag, ..message(1) })));
    assert!(!p.submit(Time(0), message(1)), "no id");
    assert!(p.cancel(Time(0), 9) && !p.cancel(Time(0), 9));
    assert!(!p.submit(Time(0), message(39)), "no buffer is large enough");
    assert!(p.submit(Time(0), message(38)));
}

#[derive(Clone, Debug)]
enum Step {
    Submit(u16),
    Delivered(u16, u64),
    Credit(u16, Option<u8>, Option<u16>),
    Timeout,
    Next,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..39u16).prop_map(Step::Submit),
        (0..16u16, any::<u64>(), any::<u64>()).prop_map(|(id, a, b)| Step::Delivered(id, a & b)),
        (0..16u16, any::<Option<u8>>(), prop::option::of(0..50u16))
            .prop_map(|(id, rtx, new)| Step::Credit(id, rtx.map(|i| i % 40), new)),
        Just(Step::Timeout),
        Just(Step::Next),
        Just(Step::Next),
        Just(Step::Next),
    ]
}

/// N3, N5, N6 of the state, whatever has happened.
fn assert_invariants(p: &Packetization) {
    let mut used = 0;
    for (id, message) in p.messages.iter().enumerate() {
        assert_eq!(message.is_some(), p.timers.runs(id as u16), "N3");
        let Some(m) = message else { continue };
        used += 1;
        assert_eq!(m.to_btx & m.waiting, 0, "N5: waits for credit or for the wire");
        assert_eq!(m.to_btx & m.delivered, 0, "E4");
        let all = below(u16::from(m.packets));
        assert_eq!(m.to_btx | m.waiting | m.sent | m.delivered, all, "no packet is forgotten");
        assert_eq!(m.sent & !below(u16::from(m.max_tx) + 1), 0, "N6");
        let queued = p.queues.iter().flatten().filter(|d| d.serial == m.serial);
        let mut bits = 0;
        for descriptor in queued {
            assert_eq!(bits & descriptor.bits, 0, "in one descriptor at most");
            bits |= descriptor.bits;
        }
        assert_eq!(bits, m.waiting);
    }
    assert_eq!(used, p.messages.len() - usize::from(p.ids.left()), "N3");
    assert_eq!(used, p.buffers.taken(), "as many buffers as messages");
}

proptest! {
    #[test]
    fn n3_n4_n5_n6_hold_in_any_order_of_events(steps in prop::collection::vec(any_step(), 1..300)) {
        let mut p = packetization();
        let mut now = Time(0);
        for (n, step) in steps.into_iter().enumerate() {
            now += Dur(1_000);
            match step {
                Step::Submit(packets) => {
                    p.submit(now, Outgoing { tag: n as u64, ..message(packets) });
                }
                Step::Delivered(id, bits) => { p.delivered(Time(0), id, bits); }
                Step::Credit(id, rtx, new_credit) => p.credit(now, id, Credit { rtx, new_credit }),
                Step::Timeout => if let Some(at) = p.next_timeout() {
                    now = now.max(at);
                    p.on_timeout(now);
                },
                Step::Next => if let Some(packet) = p.next(now) {
                    let id = p.cell(packet.tx_msg_id);
                    let m = p.messages[usize::from(id)].unwrap();
                    let covered = u16::from(packet.pkt_offset) < m.credit.max(p.rtt_pkts);
                    prop_assert!(covered || packet.is_rtx, "N4");
                    prop_assert!(packet.pkt_offset <= m.max_tx, "N6");
                },
            }
            assert_invariants(&p);
        }
    }
}

/// C8: 256 descriptors wait in a queue. A packet for which there is no place waits as if for
/// credit, and goes with what releases that; a timeout that finds none repeats nothing.
#[test]
fn law_c8_packets_without_a_place_wait_for_credit() {
    let prototype = Config::prototype(64, TIMEOUT);
    let classes = vec![SizeClass { bytes: 65_535, buffers: 16 }];
    let mut p = Packetization::new(&Config { classes, clocked: true, ..prototype }, false);
    for tag in 0..5 {
        assert!(p.submit(Time(0), Outgoing { msg_len: 65_535, ..Outgoing::for_test(tag) }));
    }
    assert_eq!(drain(&mut p).len(), 5 * 64);
    let refuse = |p: &mut Packetization, id: u16, offset| {
        p.credit(Time(0), id, Credit { rtx: Some(offset), new_credit: Some(0) });
    };
    (0..4).for_each(|id| (0..64).for_each(|offset| refuse(&mut p, id, offset)));
    refuse(&mut p, 4, 7);
    refuse(&mut p, 4, 9);
    assert_eq!(drain(&mut p).len(), 256, "those of message 4 have no place");
    refuse(&mut p, 4, 11);
    assert_eq!(drain(&mut p), [(7, true), (9, true), (11, true)]);
}
