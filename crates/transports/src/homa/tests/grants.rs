//! What grants a receiver gives, packet by packet: by hand, and against the rules written down as
//! plainly as possible. What a sender makes of them.

use endpoint::{Draw, Endpoint, Flags, Msg, Packet, Purpose, Submit};
use units::{Dur, HostId, Time};
use wire::homa::{Kind, Repr};

use super::host::{Host, ME, RATE, kind};
use super::{Config, Trimmed, w3};
use crate::homa::{GRANT_TIMER, put_header};

/// A grant: to whom, of which message, how many packets, at which level.
type Grant = (u32, u32, u32, u8);

/// The grants that a call has sent.
fn grants(sent: &[Packet]) -> Vec<Grant> {
    let all = sent.iter().filter_map(|pkt| match kind(pkt) {
        (number, Kind::Grant { granted, level }) => Some((pkt.dst.0, number, granted, level)),
        _ => None,
    });
    all.collect()
}

impl Host {
    /// Packet `index` of message `number` of `packets` full packets from `from` arrives.
    fn data(&mut self, from: u32, number: u32, packets: u64, index: u64) -> Vec<Grant> {
        let pkt = self.packet(from, number, packets, index);
        grants(&self.arrive(&pkt))
    }

    /// Let the timers come that are due by `to`.
    fn run_to(&mut self, to: Time) -> Vec<(Time, Vec<Grant>)> {
        let mut given = Vec::new();
        while self.timer <= to {
            self.now = std::mem::replace(&mut self.timer, Time::NEVER);
            let sent = self.call(|endpoint, cx| endpoint.on_timer(cx, GRANT_TIMER));
            if !sent.is_empty() {
                given.push((self.now, grants(&sent)));
            }
        }
        self.now = to;
        given
    }
}

fn us(us: u64) -> Time {
    Time::ZERO + Dur::from_us(us)
}

/// Two of three senders at a time (K = 2, levels 4 to 7 for scheduled packets). By hand, from rules
/// 1 to 6 of specs/homa.md#5.3.
#[test]
fn a_trace_by_hand() {
    let mut to = Host::new(Config { overcommitment: 2, ..w3() });
    // 100 packets from host 1, 7 unscheduled. One has come, so an eighth may; it is alone, at the
    // lowest level.
    assert_eq!(to.data(1, 0, 100, 0), [(1, 0, 8, 7)]);
    to.now = us(2);
    assert_eq!(to.data(1, 0, 100, 1), [(1, 0, 9, 7)]);
    // 50 packets from host 2: better, one level above; the other stays where it was.
    assert_eq!(to.data(2, 0, 50, 0), [(2, 0, 8, 6)]);
    // 20 packets from host 3: as many senders as may be active, so host 1 waits.
    to.now = us(4);
    assert_eq!(to.data(3, 0, 20, 0), [(3, 0, 8, 6)]);
    assert_eq!(to.data(1, 0, 100, 2), []);
    assert_eq!(to.data(2, 0, 50, 1), [(2, 0, 9, 7)]);
    // Another of 10 from host 3, which has its turn after the packet time, 1.2304 us: edge case 2,
    // only the better of one sender's messages is active. Its last 7 packets are 10094 B, more than
    // `rtt_bytes`; then the rest has the level of a short message.
    assert_eq!(to.data(3, 1, 10, 0), []);
    assert_eq!(to.run_to(us(5)), []);
    let given = to.run_to(us(6));
    assert_eq!(given, [(Time(5_230_400), vec![(3, 1, 8, 2)])], "three left: 4326 B");
    // It is full with two more; what then is left of host 3 is the longer one.
    assert_eq!(to.data(3, 1, 10, 1), []);
    assert_eq!(to.data(3, 1, 10, 2), []);
    let given = to.run_to(us(12));
    assert_eq!(
        given[..2],
        [(Time(6_460_800), vec![(3, 1, 9, 2)]), (Time(7_691_200), vec![(3, 1, 10, 1)]),]
    );
    // Edge case 4: its packets are in flight still, and do not count.
    assert_eq!(given.len(), 2, "{given:?}");
    assert_eq!(to.data(3, 0, 20, 1), [(3, 0, 9, 6)]);
}

/// Edge case 3: a better message evicts the worst, of which what has been granted still comes.
#[test]
fn a_better_message_evicts_the_worst() {
    let mut to = Host::new(Config { overcommitment: 2, ..w3() });
    assert_eq!(to.data(1, 0, 100, 0), [(1, 0, 8, 7)]);
    assert_eq!(to.data(2, 0, 90, 0), [(2, 0, 8, 6)]);
    to.now = us(2);
    assert_eq!(to.data(3, 0, 80, 0), [(3, 0, 8, 6)]);
    for index in 1..8 {
        to.now += Dur::from_us(2);
        assert_eq!(to.data(1, 0, 100, index), []);
    }
    // All that it was granted has come; the others have finished being granted: it is its turn
    // again, packet by packet.
    for (sender, packets) in [(3, 80), (2, 90)] {
        for index in 1..packets {
            to.now += Dur::from_us(2);
            to.data(sender, 0, packets, index);
            to.run_to(to.now + Dur::from_us(2));
        }
    }
    to.now += Dur::from_us(2);
    assert_eq!(to.data(1, 0, 100, 8).len(), 1);
}

/// A grant that is overtaken by a later one says nothing, neither how much nor how urgent (edge
/// case 5); nor does one of nearly 2^32 packets, which can only be one from before the first.
#[test]
fn an_older_grant_says_nothing() {
    let mut host = Host::new(w3());
    let msg = Msg::new(HostId(1), 100 * 1442);
    let unscheduled = host.call(|host, cx| assert_eq!(host.on_submit(cx, &msg), Submit::Taken));
    assert_eq!(unscheduled.len(), 7);
    let later = host.call(|host, cx| {
        for (granted, level) in [(10, 4), (9, 7), (u32::MAX, 5)] {
            let mut pkt = Packet { src: HostId(1), dst: ME, wire_len: 84, ..Packet::EMPTY };
            put_header(&mut pkt, &Repr { number: 0, kind: Kind::Grant { granted, level } });
            host.on_packet(cx, &pkt);
        }
    });
    assert_eq!(later.iter().map(|pkt| pkt.class).collect::<Vec<_>>(), [3, 3, 3]);
}

/// The rules as they stand, without any structure for speed.
struct Rules {
    config: Config,
    messages: Vec<Message>,
    /// By sender: no grant before, unless at a better level than this, and not when the last was
    /// given.
    next: Vec<(Time, u8, Time)>,
}

struct Message {
    from: u32,
    number: u32,
    packets: u64,
    granted: u64,
    count: u64,
    /// The first that has never arrived, and those that have only without their payload: sent
    /// again, and not.
    next: u64,
    again: Vec<u64>,
    refused: Vec<u64>,
    /// Known messages are numbered as they become known.
    order: Option<usize>,
}

impl Rules {
    /// The active messages, the best first: H3, H4.
    fn active(&self) -> Vec<usize> {
        let known = |m: &usize| self.messages[*m].order.is_some() && self.left(*m) > 0;
        let mut best: Vec<usize> = (0..self.messages.len()).filter(known).collect();
        best.sort_by_key(|&m| (self.left(m), self.messages[m].order));
        let mut senders = Vec::new();
        best.retain(|&m| {
            let first = !senders.contains(&self.messages[m].from);
            senders.push(self.messages[m].from);
            first
        });
        best.truncate(self.config.overcommitment as usize);
        best
    }

    fn left(&self, m: usize) -> u64 {
        self.messages[m].packets - self.messages[m].granted
    }

    /// Whether less than a window of it is in flight (specs/homa-tr.md#E3: refused packets are not
    /// until they leave again).
    fn has_window(&self, m: usize) -> bool {
        let message = &self.messages[m];
        let under_way = message.granted - message.count - message.refused.len() as u64;
        under_way < self.config.rtt_packets()
    }

    /// Whether somebody waits for a grant whose time has come.
    fn overdue(&self, now: Time) -> bool {
        self.active()
            .into_iter()
            .any(|m| self.has_window(m) && now >= self.next[self.messages[m].from as usize].0)
    }

    /// The grants that may be given now.
    fn give(&mut self, now: Time) -> Vec<Grant> {
        let mut grants: Vec<Grant> = Vec::new();
        'again: loop {
            let active = self.active();
            for (rank, &m) in active.iter().enumerate() {
                let message = &self.messages[m];
                let (next, last, given) = self.next[message.from as usize];
                let scheduled = self.config.scheduled_level(rank, active.len());
                let cut = self.config.cut(message.packets * u64::from(self.config.payload), 0);
                let level = self.config.grant_level(scheduled, message.granted, &cut);
                if self.has_window(m) && (now >= next || level < last && given != now) {
                    let message = &mut self.messages[m];
                    message.granted += 1;
                    message.again.append(&mut message.refused);
                    grants.push((message.from, message.number, message.granted as u32, level));
                    self.next[message.from as usize] = (now + RATE.serialise(1538), level, now);
                    continue 'again;
                }
            }
            return grants;
        }
    }
}

/// Messages of several senders, their packets in any order that grants permit, and whatever time
/// between them: what is granted when is what the rules say. That is H3 and H4: `overcommitment`
/// messages at most, of as many senders, none worse than one that waits. Half of the time packets
/// are trimmed (specs/homa-tr.md#R6).
#[test]
fn h3_h4_grants_are_those_of_the_rules() {
    const STEP: Purpose = Purpose::new("step");
    for seed in 0..80 {
        let draw = Draw::new(seed, Purpose::new("grants"), 0);
        let mut n = 0;
        let mut below = |bound: u64| {
            n += 1;
            draw.below(STEP, n, bound)
        };
        let trims = [0, 30][seed as usize % 2];
        let trimmed = if trims > 0 { Trimmed::Refused } else { Trimmed::Lost };
        let config = Config { overcommitment: 1 + below(5) as u32, trimmed, ..w3() };
        let mut to = Host::new(config);
        let next = vec![(Time::ZERO, 0, Time::NEVER); 7];
        let mut rules = Rules { config, messages: Vec::new(), next };
        let (mut given, mut known) = (0, 0);
        for _ in 0..1500 {
            // Wait, and let timers come.
            let until = to.now + Dur(below(2) * below(3_000_000));
            for (at, grants) in to.run_to(until) {
                assert_eq!(grants, rules.give(at), "seed {seed} at {at}");
                given += grants.len();
            }
            assert!(!rules.overdue(until), "seed {seed}: none forgotten at {until}");
            let m = below(rules.messages.len() as u64 + 1) as usize;
            if m == rules.messages.len() {
                let from = 1 + below(6) as u32;
                let number = rules.messages.iter().filter(|m| m.from == from).count() as u32;
                let packets = 1 + below(60);
                let granted = config.rtt_packets().min(packets);
                let (count, next, again, refused) = (0, 0, Vec::new(), Vec::new());
                let order = None;
                rules.messages.push(Message {
                    from,
                    number,
                    packets,
                    granted,
                    count,
                    next,
                    again,
                    refused,
                    order,
                });
            }
            let message = &mut rules.messages[m];
            let index = match message.again.pop() {
                Some(index) => index,
                None if message.next < message.granted => {
                    message.next += 1;
                    message.next - 1
                }
                None => continue,
            };
            let trim = below(100) < trims;
            match trim {
                // No grant will follow (E2).
                true if message.granted == message.packets => message.again.push(index),
                true => message.refused.push(index),
                false => message.count += 1,
            }
            if message.order.is_none() {
                message.order = Some(known);
                known += 1;
            }
            let (from, number, packets) = (message.from, message.number, message.packets);
            let mut pkt = to.packet(from, number, packets, index);
            if trim {
                pkt.flags.set(Flags::TRIMMED);
            }
            let grants = grants(&to.arrive(&pkt));
            assert_eq!(grants, rules.give(until), "seed {seed} at {until}");
            given += grants.len();
        }
        assert!(given > 50, "seed {seed}: {given} grants");
    }
}
