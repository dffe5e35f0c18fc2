//! Signals between the applications of two hosts, which the simulator carries outside its network.
//!
//! Here they cross the same network as packets of their own protocol, one at a time to each host:
//! the next one leaves when the one before has been confirmed. So none is lost or heard twice, and
//! those of one host are heard in the order in which they were sent.

use std::collections::{BTreeMap, VecDeque};

use endpoint::{Flags, Packet, Span};
use units::{Dur, HostId, MsgId, Time};

use crate::link::Said;

/// Which protocol signals are, among those of `wire`: numbers from 253 on are for experiments
/// (RFC 3692), and 255 is reserved (IANA, protocol numbers).
pub(crate) const PROTO: u8 = 255;

/// What the one byte of header says.
const SIGNAL: u8 = 0;
const CONFIRMED: u8 = 1;
/// Nothing: the life that its shim names is the news.
const HELLO: u8 = 2;

/// Bytes of a signal on a simulated wire: the shortest Ethernet frame.
const WIRE_LEN: u16 = 64;

/// A confirmation is waited for so long, and twice as long after each of the first
/// [`DOUBLINGS`] times.
const WAIT: Dur = Dur::from_ms(1);
const DOUBLINGS: u32 = 6;
/// The most answers that wait for the port: what is not answered is sent again.
const ANSWERS: usize = 64;
/// So many times a signal is sent before its host is given up: about ten seconds.
const TRIES: u32 = 160;

/// What waits for one host. The first one is on its way.
#[derive(Default)]
struct Outgoing {
    waiting: VecDeque<(u64, Said)>,
    tries: u32,
    due: Time,
}

impl Outgoing {
    /// The first one has been confirmed, or given up.
    fn next(&mut self) {
        self.waiting.pop_front();
        (self.tries, self.due) = (0, Time::ZERO);
    }
}

/// The signals of one host to the others, and what it has heard.
pub(crate) struct Signals {
    me: HostId,
    /// The number of the next one.
    next: u64,
    to: BTreeMap<HostId, Outgoing>,
    /// The number heard last from each host: they rise also over a host's lives.
    heard: BTreeMap<HostId, u64>,
    /// Confirmations to send, and greetings: to whom, of which, what.
    answers: VecDeque<(HostId, u64, u8)>,
    /// Signals given up.
    pub(crate) lost: u64,
}

impl Signals {
    /// Numbered from `first` on, which rises from one life of the host to the next.
    pub(crate) fn new(me: HostId, first: u64) -> Self {
        Self {
            me,
            next: first,
            to: BTreeMap::new(),
            heard: BTreeMap::new(),
            answers: VecDeque::new(),
            lost: 0,
        }
    }

    /// Send `said` to `to`, behind what waits already.
    pub(crate) fn push(&mut self, to: HostId, said: Said) {
        self.to.entry(to).or_default().waiting.push_back((self.next, said));
        self.next += 1;
    }

    /// Let `to` hear of this life.
    pub(crate) fn greet(&mut self, to: HostId) {
        self.answer(to, 0, HELLO);
    }

    fn answer(&mut self, to: HostId, number: u64, kind: u8) {
        if self.answers.len() < ANSWERS {
            self.answers.push_back((to, number, kind));
        }
    }

    /// When one is to be sent, the soonest.
    pub(crate) fn due(&self) -> Option<Time> {
        let waiting = self.to.values().filter(|out| !out.waiting.is_empty()).map(|out| out.due);
        let answers = (!self.answers.is_empty()).then_some(Time::ZERO);
        waiting.chain(answers).min()
    }

    /// What is to be sent by `now`: a packet and what it says.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(Packet, Said)> {
        if let Some((to, number, kind)) = self.answers.pop_front() {
            return Some((self.packet(to, number, kind), (0, 0)));
        }
        let is_due = |out: &Outgoing| !out.waiting.is_empty() && out.due <= now;
        let (&to, out) = self.to.iter_mut().find(|(_, out)| is_due(out))?;
        if out.tries == TRIES {
            out.next();
            self.lost += 1;
        }
        let &(number, said) = out.waiting.front()?;
        out.due = now + Dur(WAIT.0 << out.tries.min(DOUBLINGS));
        out.tries += 1;
        Some((self.packet(to, number, SIGNAL), said))
    }

    fn packet(&self, dst: HostId, number: u64, kind: u8) -> Packet {
        let span = Span { msg: MsgId(number), ..Span::default() };
        let flags = Flags::CONTROL;
        let (src, wire_len) = (self.me, WIRE_LEN);
        let mut pkt = Packet { src, dst, proto: PROTO, wire_len, flags, span, ..Packet::EMPTY };
        pkt.put_header(&[kind]);
        pkt
    }

    /// A packet of this protocol has come. True if it is a signal that has not been heard.
    pub(crate) fn hear(&mut self, pkt: &Packet) -> bool {
        let number = pkt.span.msg.0;
        match pkt.header() {
            [SIGNAL] => {
                self.answer(pkt.src, number, CONFIRMED);
                let last = self.heard.insert(pkt.src, number).unwrap_or(0);
                // An old one is confirmed again and changes nothing.
                self.heard.insert(pkt.src, last.max(number));
                last < number
            }
            [CONFIRMED] => {
                let out = self.to.get_mut(&pkt.src);
                let first =
                    |out: &&mut Outgoing| out.waiting.front().is_some_and(|w| w.0 == number);
                if let Some(out) = out.filter(first) {
                    out.next();
                }
                false
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: HostId = HostId(0);
    const B: HostId = HostId(1);

    /// Two hosts whose packets are lost by turns and come twice.
    #[test]
    fn each_is_heard_once_and_in_order_whatever_is_lost() {
        for seed in 0..200u64 {
            let (mut a, mut b) = (Signals::new(A, 1 << 12), Signals::new(B, 1 << 12));
            for token in 0..20 {
                a.push(B, (7, token));
            }
            let mut heard = Vec::new();
            let mut draws = seed;
            let mut coin = move || {
                draws = draws.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(seed | 1);
                draws >> 62
            };
            let mut now = Time::ZERO;
            while let Some(due) = a.due() {
                now = now.max(due);
                let Some((pkt, said)) = a.poll(now) else { continue };
                for _ in 0..coin() {
                    if b.hear(&pkt) {
                        heard.push(said.1);
                    }
                }
                while let Some((pkt, _)) = b.poll(now) {
                    for _ in 0..coin() {
                        assert!(!a.hear(&pkt));
                    }
                }
            }
            assert_eq!(heard, (0..20).collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(a.lost, 0);
        }
    }

    #[test]
    fn a_host_that_never_answers_is_given_up_and_the_next_life_is_heard() {
        let mut a = Signals::new(A, 1 << 12);
        a.push(B, (0, 1));
        let (mut sent, mut now) = (0, Time::ZERO);
        while let Some(due) = a.due() {
            now = now.max(due);
            sent += u32::from(a.poll(now).is_some());
        }
        assert_eq!((sent, a.lost), (TRIES, 1));
        assert!(now > Time::ZERO + Dur::from_ms(9_000) && now < Time::ZERO + Dur::from_ms(11_000));

        let mut b = Signals::new(B, 0);
        for first in [1 << 12, 2 << 12] {
            let mut life = Signals::new(A, first);
            life.push(B, (0, 1));
            let (pkt, _) = life.poll(now).unwrap();
            assert!(b.hear(&pkt) && !b.hear(&pkt));
        }
    }
}
