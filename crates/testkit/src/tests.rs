//! The harness tells time exactly, does to packets what it is told, and catches endpoints that
//! break the contract.

use std::collections::VecDeque;

use endpoint::{Cx, Endpoint, Flags, Msg, Packet, Span, Stat, Submit, Tx, TxPort};
use units::{Dur, HostId, MsgKey, Rate, Time, TimerId};

use crate::fault::drop_data;
use crate::{Bottleneck, Link, Net, Verdict, conformance};

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const LINK: Link =
    Link { rate: Rate(1_000_000_000), delay: Dur::from_us(3), mtu: 1040, paths: 1, hashed: false };

/// What an endpoint does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    PlacesTwice,
    PlacesBeside,
    DeliversEarly,
    AcksEarly,
    WaitsForThePast,
    SpinsOnATimer,
}

/// Sends each packet of a message once, and hopes.
struct Hopeful {
    bug: Bug,
    queue: VecDeque<Packet>,
}

impl Hopeful {
    fn packet(&mut self, to: HostId, span: Span, payload: bool, last: bool) {
        let mut pkt = Packet { dst: to, span, hdr_len: 1, ..Packet::EMPTY };
        pkt.hdr[0] = u8::from(last);
        pkt.wire_len = 40 + if payload { span.len as u16 } else { 0 };
        pkt.flags = if payload { Flags::default() } else { Flags::CONTROL };
        self.queue.push_back(pkt);
    }
}

impl Endpoint for Hopeful {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        for i in 0..msg.len.div_ceil(1000).max(1) {
            let offset = 1000 * i;
            let len = (msg.len - offset).min(1000) as u32;
            let last = offset + u64::from(len) == msg.len;
            self.packet(msg.dst, Span { msg: msg.id, offset, len }, true, last);
        }
        match self.bug {
            Bug::AcksEarly => cx.fx.acked(msg.id),
            Bug::SpinsOnATimer => cx.fx.arm(TimerId(0), cx.now),
            _ => {}
        }
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        if pkt.flags.has(Flags::CONTROL) {
            cx.fx.acked(pkt.span.msg);
            return;
        }
        if pkt.flags.has(Flags::TRIMMED) {
            cx.fx.count(Stat::Rejected);
            return;
        }
        let Span { offset, len, .. } = pkt.span;
        if len > 0 {
            cx.fx.place(key, offset + u64::from(self.bug == Bug::PlacesBeside), len);
        }
        if self.bug == Bug::PlacesTwice {
            cx.fx.place(key, offset, len);
        }
        if pkt.hdr[0] == 1 || self.bug == Bug::DeliversEarly {
            cx.fx.delivered(key);
            self.packet(pkt.src, pkt.span, false, false);
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        cx.fx.arm(id, cx.now);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        if self.bug == Bug::WaitsForThePast {
            return Tx::NotBefore(cx.now);
        }
        let Some(pkt) = self.queue.pop_front() else { return Tx::Idle };
        *slot = Packet { src: cx.me, ..pkt };
        Tx::Sent
    }
}

fn net(bug: Bug) -> Net {
    let make = || Box::new(Hopeful { bug, queue: VecDeque::new() }) as Box<dyn Endpoint>;
    Net::new(1, LINK, vec![make(), make(), make()])
}

fn us(n: u64) -> Time {
    Time::ZERO + Dur::from_us(n)
}

#[test]
fn time_is_serialisation_and_delay() {
    let mut net = net(Bug::None);
    let key = net.submit(A, B, 1960);
    let end = net.run_until_idle(Dur::from_ms(1));
    // 1040 and 1000 bytes at 8 ns each, 3 us on the way; the answer: 40 bytes and 3 us.
    let arrived = Time::ZERO + Dur::from_ns(8 * 2040 + 3_000);
    assert_eq!(net.record(key).delivered, Some(arrived));
    assert_eq!(net.record(key).acked, Some(arrived + Dur::from_ns(320 + 3_000)));
    assert_eq!(end, arrived + Dur::from_ns(3_320));
    assert_eq!(net.log().iter().map(|s| s.pkt.wire_len).collect::<Vec<_>>(), [1040, 1000, 40]);
    net.ledger().assert_all_done();
}

#[test]
fn faults_do_what_they_say() {
    let arrivals = |verdict: Verdict| {
        let mut net = net(Bug::None);
        net.fault(move |sent| if sent.n == 0 { verdict } else { Verdict::Pass });
        let key = net.submit(A, B, 960);
        net.run_until_idle(Dur::from_ms(1));
        let rejected = net.stat(A, Stat::Rejected) + 10 * net.stat(B, Stat::Rejected);
        (net.record(key).delivered, net.dropped(), rejected)
    };
    assert_eq!(arrivals(Verdict::Pass), (Some(us(11)), 0, 0));
    assert_eq!(arrivals(Verdict::Delay(Dur::from_us(5))), (Some(us(16)), 0, 0));
    assert_eq!(arrivals(Verdict::Drop), (None, 1, 0));
    assert_eq!(arrivals(Verdict::Trim), (None, 0, 10), "rejected by the receiver");
    assert_eq!(arrivals(Verdict::Bounce), (None, 0, 1), "rejected by the sender");
}

#[test]
#[should_panic(expected = "placed after Delivered")]
fn a_duplicate_arrives_twice() {
    let mut net = net(Bug::None);
    net.fault(|_| Verdict::Duplicate(Dur::from_us(1)));
    net.submit(A, B, 960);
    net.run_until_idle(Dur::from_ms(1));
}

#[test]
fn a_bottleneck_drops_or_trims_what_does_not_fit() {
    for trim in [false, true] {
        let mut net = net(Bug::None);
        net.set_bottleneck(B, Bottleneck { rate: Rate(100_000_000), packets: 2, trim });
        let key = net.submit(A, B, 10 * 1000 + 1);
        net.run_until_idle(Dur::from_ms(10));
        // The first, and one for every ten that arrive; two wait; the last is a short one.
        assert_eq!(net.record(key).placed.iter().map(|r| r.end - r.start).sum::<u64>(), 3000);
        let trimmed = net.stat(B, Stat::Rejected);
        assert_eq!(trimmed + net.dropped(), 8);
        assert_eq!(trimmed > 0, trim);
    }
}

#[test]
fn a_dead_path_loses_until_it_is_known() {
    let lost = |hashed, after| {
        let link = Link { paths: 2, hashed, ..LINK };
        let hopeful = || Box::new(Hopeful { bug: Bug::None, queue: VecDeque::new() });
        let mut net = Net::new(1, link, vec![hopeful(), hopeful()]);
        net.fail_path(0, Dur::from_us(10));
        net.run_until(us(after));
        net.submit(A, B, 960);
        net.run_until_idle(Dur::from_ms(1));
        net.dropped()
    };
    assert_eq!((lost(true, 5), lost(true, 15)), (1, 0), "the switches move flows away");
    assert_eq!((lost(false, 5), lost(false, 15)), (1, 1), "the sender chose a dead path");
}

#[test]
fn the_same_events_have_the_same_digest() {
    let digest = |len, ordinals: &[u64]| {
        let mut net = net(Bug::None);
        net.fault(drop_data(A, ordinals));
        net.submit(A, B, len);
        net.run_until_idle(Dur::from_ms(1));
        net.digest()
    };
    assert_eq!(digest(5_500, &[]), digest(5_500, &[]));
    assert_ne!(digest(5_500, &[]), digest(5_501, &[]));
    assert_ne!(digest(5_500, &[]), digest(5_500, &[5]), "the last packet was lost, no answer");
}

fn run_with(bug: Bug) {
    let mut net = net(bug);
    net.submit(A, B, 1960);
    net.run_until_idle(Dur::from_ms(1));
}

#[test]
#[should_panic(expected = "placed twice")]
fn placing_twice_is_caught() {
    run_with(Bug::PlacesTwice);
}

#[test]
#[should_panic(expected = "the packet carries")]
fn placing_what_did_not_come_is_caught() {
    run_with(Bug::PlacesBeside);
}

#[test]
#[should_panic(expected = "delivered before all of it was placed")]
fn early_delivery_is_caught() {
    run_with(Bug::DeliversEarly);
}

#[test]
#[should_panic(expected = "acked before it was delivered")]
fn early_acknowledgement_is_caught() {
    run_with(Bug::AcksEarly);
}

#[test]
#[should_panic(expected = "NotBefore")]
fn waiting_for_the_past_is_caught() {
    run_with(Bug::WaitsForThePast);
}

#[test]
#[should_panic(expected = "runs in circles")]
fn a_timer_loop_is_caught() {
    run_with(Bug::SpinsOnATimer);
}

const SUITE: conformance::Opts = conformance::Opts {
    payload: units::Bytes(1000),
    window: units::Bytes(5_000),
    trims: false,
    bounces: false,
    hashed_paths: false,
    patience: Dur::from_ms(1_000),
};

fn hopeful(_: HostId) -> Box<dyn Endpoint> {
    Box::new(Hopeful { bug: Bug::None, queue: VecDeque::new() })
}

#[test]
fn on_a_perfect_wire_hope_is_enough() {
    conformance::every_size_arrives(&hopeful, SUITE);
}

#[test]
#[should_panic(expected = "delivered before all of it was placed")]
fn a_transport_that_repairs_nothing_does_not_conform() {
    conformance::loss_is_repaired(&hopeful, SUITE);
}
