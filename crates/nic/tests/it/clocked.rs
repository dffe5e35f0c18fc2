//! The clocked law on the machine of cycles (docs/nic.md, C1 to C11): inputs in cycles, and the
//! cycles in which it answers. The wire lets a packet go in every cycle, unless a test says
//! otherwise.

use crate::shipped;

use std::sync::Arc;

use endpoint::{Effect, Effects, Flags, Msg, Packet, Span, Stat, Submit};
use p4::interp::Machine as Interpreter;
use p4::ir;
use shipped::{HOMA_TR, compile, compile_including, config};
use trimline_nic::nano::blocks::clocked::Clocked;
use trimline_nic::nano::config::Config;
use trimline_nic::nano::ticking::Machine;
use units::{Dur, HostId, MsgId};
use wire::nano::flags::{ACK as ACK_FLAG, NACK as NACK_FLAG, PULL as PULL_FLAG};
use wire::nano::{Header, Kind, Protocol, Repr};

const ME: HostId = HostId(0);
const RTT: u16 = 2;
/// The way in.
const IN: u64 = 23;
/// From a packet to its lookup.
const LOOKUP: u64 = 4;

/// One machine, all its cycles, and what it has sent.
struct Bench {
    machine: Clocked,
    protocol: Protocol,
    fx: Effects,
    next: u64,
    sent: Vec<(u64, Repr)>,
}

/// The prototype's NIC, clocked. Its timers run for 3200 cycles.
fn clocked(protocol: Protocol) -> Config {
    let config = Config { clocked: true, remember: Some(16), ..config(protocol, RTT) };
    Config { timeout: Dur::from_us(1), ..config }
}

impl Bench {
    fn new(program: &Arc<ir::Program>, config: Config) -> Self {
        let protocol = Protocol::of(config.protocols[0]).unwrap_or(Protocol::Ndp);
        let runs = Box::new(Interpreter::new(Arc::clone(program)));
        let machine = Clocked::new(program, runs, config).unwrap();
        Self { machine, protocol, fx: Effects::new(), next: 0, sent: Vec::new() }
    }

    fn ndp() -> Self {
        Self::new(&compile("ndp.p4", &[]), clocked(Protocol::Ndp))
    }

    fn homa() -> Self {
        Self::new(&compile("homa.p4", HOMA_TR), clocked(Protocol::Homa))
    }

    /// All cycles before `cycle`; the arbiter may choose in those that `open` says.
    fn until(&mut self, cycle: u64, open: impl Fn(u64) -> bool) {
        while self.next < cycle {
            let mut slot = Packet::EMPTY;
            if self.machine.step(self.next, open(self.next), ME, &mut slot, &mut self.fx).is_some()
            {
                let header = Header::new(self.protocol, slot.header()).unwrap();
                self.sent.push((self.next, Repr::parse(&header).unwrap()));
            }
            self.next += 1;
        }
    }

    fn run(&mut self, cycle: u64) {
        self.until(cycle, |_| true);
    }

    /// A packet of `cycle` with this header, from host `from`.
    fn packet(&mut self, cycle: u64, from: u32, repr: Repr) {
        self.packet_with(cycle, from, repr, |_| {});
    }

    /// The same, whose header is changed so.
    fn packet_with(&mut self, cycle: u64, from: u32, repr: Repr, change: impl Fn(&mut [u8])) {
        self.run(cycle);
        let is_data = matches!(repr.kind, Kind::Data { .. });
        let offset = u64::from(repr.pkt_offset) * 1024;
        let span = Span { msg: MsgId(repr.src_context.into()), offset, len: 1024 };
        let flags = if is_data { Flags::default() } else { Flags::CONTROL };
        let mut pkt = Packet { span, flags, wire_len: 1088, ..Packet::EMPTY };
        (pkt.src, pkt.dst, pkt.class) = (HostId(from), ME, 7);
        pkt.proto = self.protocol.number();
        let bytes = repr.to_bytes(self.protocol);
        pkt.hdr[..bytes.len()].copy_from_slice(&bytes);
        change(&mut pkt.hdr);
        pkt.hdr_len = bytes.len() as u8;
        self.machine.receive(cycle, ME, (&pkt, 1), &mut self.fx);
    }

    /// Packet `offset` of message `number` of `packets`, from host `from`, in `cycle`.
    fn data(&mut self, cycle: u64, (from, number): (u32, u16), packets: u16, offset: u8) {
        let repr = Repr {
            kind: DATA,
            src_context: number,
            msg_len: packets * 1024,
            pkt_offset: offset,
            tx_msg_id: number,
            ..ABOUT
        };
        self.packet(cycle, from, repr);
    }

    /// What host 1 says of message 0 of this host.
    fn hear(&mut self, cycle: u64, kind: Kind, pkt_offset: u8, credit: u16) {
        self.packet(cycle, 1, Repr { kind, pkt_offset, credit, ..ABOUT });
    }

    /// The same with these flags, of packet 0.
    fn hear_flags(&mut self, cycle: u64, flags: u8) {
        self.packet_with(cycle, 1, ABOUT, |header| header[0] = flags);
    }

    /// Message `id` of so many packets to host 1.
    fn submit(&mut self, cycle: u64, id: u64, packets: u64) -> Submit {
        self.run(cycle);
        let msg = Msg { id: MsgId(id), ..Msg::new(HostId(1), packets * 1024) };
        self.machine.submit(cycle, ME, &msg, &mut self.fx)
    }

    fn count(&self, stat: Stat) -> usize {
        let is_it =
            |fx: &&Effect| matches!(fx, Effect::Count(s) | Effect::CountFor(s, _) if *s == stat);
        self.fx.as_slice().iter().filter(is_it).count()
    }

    /// Cycles, kinds and indices of what was sent.
    fn briefs(&self) -> Vec<(u64, Kind, u8)> {
        self.sent.iter().map(|(cycle, repr)| (*cycle, repr.kind, repr.pkt_offset)).collect()
    }
}

/// A control packet about message 0 of this host.
const ABOUT: Repr = Repr {
    kind: ACK,
    src_context: 0,
    dst_context: 0,
    msg_len: 0,
    pkt_offset: 0,
    credit: 0,
    grant_prio: 0,
    tx_msg_id: 0,
    buf_ptr: 0,
    buf_size_class: 0,
};

const ACK: Kind = Kind::Ack { pull: false };
const PULLED: Kind = Kind::Ack { pull: true };
const DATA: Kind = Kind::Data { chopped: false };

/// C2: what follows from a packet of cycle 100 comes in cycle 123; then it may be chosen in the
/// next one (C3).
#[test]
fn law_c2_a_packet_takes_effect_after_the_way_in() {
    let mut bench = Bench::ndp();
    bench.data(100, (1, 0), 1, 0);
    let delivered =
        |bench: &Bench| bench.fx.as_slice().iter().any(|fx| matches!(fx, Effect::Delivered(_)));
    bench.run(100 + IN);
    assert!(!delivered(&bench));
    bench.run(100 + IN + 1);
    assert!(delivered(&bench));
    bench.run(200);
    assert_eq!(bench.briefs(), [(100 + IN + 1, PULLED, 0)]);
}

/// C2 and C4: the timer of a message starts in its packet's lookup, which is four cycles after the
/// packet, and a lookup comes before the look of the same cycle. Slot 0 is looked at in multiples
/// of 32.
#[test]
fn law_c2_a_message_is_timed_by_its_lookup() {
    let ends = 32 * 203;
    let first = ends - 2 * 3200 - LOOKUP;
    for (later, is_known) in [(0, true), (1, false)] {
        let mut bench = Bench::ndp();
        bench.data(first, (1, 0), 3, 0);
        bench.data(ends - LOOKUP + later, (1, 0), 3, 1);
        bench.run(ends + 100);
        assert_eq!(bench.sent.len(), if is_known { 2 } else { 1 }, "{later}");
    }
    // A cycle later it would have been looked at one turn later.
    let mut bench = Bench::ndp();
    bench.data(first + 1, (1, 0), 3, 0);
    bench.data(ends - LOOKUP + 32, (1, 0), 3, 1);
    bench.run(ends + 100);
    assert_eq!(bench.sent.len(), 2);
}

/// C3: what is submitted in a cycle is chosen in the next one.
#[test]
fn law_c3_the_arbiter_sees_what_the_cycles_before_have_left() {
    let mut bench = Bench::ndp();
    assert_eq!(bench.submit(50, 0, 1), Submit::Taken);
    bench.run(60);
    assert_eq!(bench.briefs(), [(51, DATA, 0)]);
}

/// C3: an ACK comes before the timeout of its cycle, so that nothing is repeated.
#[test]
fn law_c3_packets_come_before_timeouts() {
    for (later, timeouts) in [(0, 0), (1, 1)] {
        let mut bench = Bench::ndp();
        bench.submit(0, 0, 1);
        // Of slot 0 at a multiple of 32, as the timeout is.
        bench.hear(3200 - IN + later, ACK, 0, 0);
        bench.run(3300);
        assert_eq!(bench.count(Stat::OtherTimeout), timeouts, "{later}");
    }
}

/// C3: a packet comes before the pacer: it takes a token that is back in its cycle, and the PULL
/// that has waited goes on waiting.
#[test]
fn law_c3_packets_come_before_the_pacer() {
    let mut bench = Bench::ndp();
    for (cycle, offset) in [(100, 0), (110, 1), (240, 2)] {
        bench.data(cycle, (1, 0), 9, offset);
    }
    bench.run(500);
    let at = |cycle: u64| cycle + IN + 1;
    let expected =
        [(at(100), PULLED, 0), (at(110), ACK, 1), (at(240), PULLED, 2), (at(380), Kind::Credit, 1)];
    assert_eq!(bench.briefs(), expected);
}

/// C5: what has been chosen leaves as it was, whatever happens to its message then. What has not,
/// does not.
#[test]
fn law_c5_a_choice_is_final() {
    let mut bench = Bench::ndp();
    bench.submit(0, 0, 2);
    bench.machine.cancel(2, ME, MsgId(0));
    bench.run(50);
    assert_eq!(bench.briefs(), [(1, DATA, 0), (2, DATA, 1)], "in the cycle of its end");
    let mut bench = Bench::ndp();
    bench.submit(0, 0, 2);
    bench.machine.cancel(1, ME, MsgId(0));
    bench.run(50);
    assert_eq!(bench.briefs(), [(1, DATA, 0)]);
}

/// C3 and C5: nor does what an ACK does in the cycle of the choice. The timeout of cycle 3200 has
/// the packet repeated, which is chosen in the next one.
#[test]
fn law_c5_an_ack_in_the_cycle_of_the_choice_is_too_late() {
    let mut bench = Bench::ndp();
    bench.submit(0, 0, 1);
    bench.hear(3201 - IN, ACK, 0, 0);
    bench.run(3300);
    assert_eq!(bench.briefs(), [(1, DATA, 0), (3201, DATA, 0)]);
}

/// C3: an answer that says of a packet that it has come and that it is refused has it delivered,
/// although this program asks for its repetition first.
#[test]
fn law_c3_what_a_packet_does_has_an_order() {
    let turned = compile_including("ndp.p4", "ndp_rules.p4", |text| {
        let first = text.find("if ((flags & ACK_FLAG) != 0) {").unwrap();
        let second = text.find("if ((flags & (NACK_FLAG | PULL_FLAG)) != 0) {").unwrap();
        let end = "credit_to_btx(event);\n            }\n";
        let end = second + text[second..].find(end).unwrap() + end.len();
        let parts = [&text[..first], &text[second..end], &text[first..second], &text[end..]];
        parts.concat()
    });
    let mut bench = Bench::new(&turned, clocked(Protocol::Ndp));
    bench.submit(0, 0, 2);
    bench.hear_flags(50, ACK_FLAG | NACK_FLAG | PULL_FLAG);
    bench.run(200);
    assert_eq!(bench.briefs(), [(1, DATA, 0), (2, DATA, 1)], "nothing is repeated");
}

/// C5: with a wire that lets nothing go, nothing is chosen; then control goes first.
#[test]
fn law_c5_nothing_is_chosen_while_the_wire_is_shut() {
    let mut bench = Bench::ndp();
    bench.submit(0, 0, 1);
    bench.data(1, (1, 7), 1, 0);
    bench.until(80, |cycle| cycle >= 60);
    assert_eq!(bench.briefs(), [(60, PULLED, 0), (61, DATA, 0)]);
}

/// C6: a message that ends in the cycle of another packet's lookup still counts for that packet,
/// and no more for the next one. Message 0 is better than message 1, which is so granted with one
/// priority lower.
#[test]
fn law_c6_an_entry_leaves_behind_the_packet_in_its_lookup() {
    let mut bench = Bench::homa();
    let ends = 32 * 203;
    // Its GRANT starts its timer again eight cycles after the lookup.
    bench.data(ends - 2 * 3200 - 8 - LOOKUP, (1, 0), 6, 0);
    bench.data(ends - LOOKUP, (2, 1), 20, 0);
    bench.data(ends - LOOKUP + 1, (2, 1), 20, 1);
    bench.run(ends + 200);
    let prios: Vec<u8> = bench.sent.iter().map(|(_, repr)| repr.grant_prio).collect();
    assert_eq!(prios, [1, 2, 1]);
}

/// C7: a message is over in the lookup that makes it whole, whatever the program says of the
/// packet: id and buffer are free for the next one, and it is remembered.
#[test]
fn law_c7_a_message_is_over_in_its_lookup() {
    let silent = compile_including("ndp.p4", "ndp_rules.p4", |text| {
        text.replacen("is_last_pkt = info.is_last_pkt;", "is_last_pkt = 0;", 1)
    });
    let one = Config { rx_messages: 1, ..clocked(Protocol::Ndp) };
    let mut bench = Bench::new(&silent, one);
    bench.data(100, (1, 0), 1, 0);
    bench.data(101, (1, 1), 2, 0);
    bench.data(102, (1, 0), 1, 0);
    bench.run(200);
    let kinds: Vec<Kind> = bench.sent.iter().map(|(_, repr)| repr.kind).collect();
    assert_eq!(
        kinds,
        [PULLED, ACK, ACK],
        "whole; another one, without the token; known to be over"
    );
    assert!(!bench.fx.as_slice().iter().any(|fx| matches!(fx, Effect::Delivered(_))));
    assert_eq!(bench.count(Stat::Duplicate), 1);
}

/// C8: a descriptor of a message that is over costs its queue a cycle, in which a lower queue may
/// send.
#[test]
fn law_c8_what_is_over_costs_its_queue_a_cycle() {
    let shut = |cycle: u64| cycle >= 100;
    let mut bench = Bench::ndp();
    (0..3).for_each(|id| assert_eq!(bench.submit(0, id, 1), Submit::Taken));
    bench.machine.cancel(99, ME, MsgId(0));
    bench.machine.cancel(99, ME, MsgId(1));
    bench.until(150, shut);
    assert_eq!(bench.briefs(), [(102, DATA, 0)], "one is dropped in cycle 100, the other in 101");
    assert_eq!(bench.sent[0].1.src_context, 2);
}

/// Cycles in which nothing happens may be left out.
#[test]
fn idle_cycles_may_be_left_out() {
    let mut dense = Bench::homa();
    let mut sparse = Bench::homa();
    let mut seen = Vec::new();
    for bench in [&mut dense, &mut sparse] {
        for id in 0..3 {
            bench.submit(0, id, 6);
        }
    }
    dense.run(20_000);
    let mut open_from = 0;
    while let Some(cycle) = {
        let chooses = sparse.machine.chooses(open_from..=u64::MAX);
        sparse.machine.next().into_iter().chain(chooses).min().filter(|cycle| *cycle < 20_000)
    } {
        let chooses = sparse.machine.chooses(open_from..=u64::MAX) == Some(cycle);
        let mut slot = Packet::EMPTY;
        if sparse.machine.step(cycle, chooses, ME, &mut slot, &mut sparse.fx).is_some() {
            let header = Header::new(Protocol::Homa, slot.header()).unwrap();
            seen.push((cycle, Repr::parse(&header).unwrap()));
        }
        open_from = cycle + 1;
    }
    assert!(seen.len() > 6, "first packets, and what timeouts repeat");
    assert_eq!(seen, dense.sent);
}
