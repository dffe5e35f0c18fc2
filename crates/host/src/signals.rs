//! What hosts say to one another beside the packets of transports: the signals of applications,
//! which the simulator carries outside its network, and in which life they are (`lives`).
//!
//! Signals cross the same network as packets of their own protocol, one at a time to each host:
//! the next one leaves when the one before has been confirmed. So none is lost or heard twice, and
//! those of one host are heard in the order in which they were sent.

use std::collections::{BTreeMap, VecDeque};

use endpoint::{Flags, Packet, Span};
use units::{Dur, HostId, MsgId, Time};

use crate::link::Said;

/// Which protocol these packets are, among those of `wire`: numbers from 253 on are for experiments
/// (RFC 3692), and 255 is reserved (IANA, protocol numbers).
pub(crate) const PROTO: u8 = 255;

/// What a packet of this protocol is: the one byte of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A signal between applications.
    Signal,
    /// It has been heard.
    Confirmed,
    /// Nothing: the life that its shim names is the news.
    Hello,
    /// Say in which life you are, with this number.
    WhoAreYou,
    /// The answer, with the same number.
    ThisLife,
}

/// By their bytes.
const KINDS: [Kind; 5] =
    [Kind::Signal, Kind::Confirmed, Kind::Hello, Kind::WhoAreYou, Kind::ThisLife];

/// What `pkt`, of this protocol, is.
pub(crate) fn kind(pkt: &Packet) -> Option<Kind> {
    let &[byte] = pkt.header() else { return None };
    KINDS.get(usize::from(byte)).copied()
}

/// What is to be said to a host, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A signal has been heard: its number.
    Confirmed(u64),
    /// This host lives anew.
    Hello,
    /// Say in which life you are, with this number.
    WhoAreYou(u64),
    /// This life, to who asked with this number.
    ThisLife(u64),
}

/// Bytes of a signal on a simulated wire: the shortest Ethernet frame.
const WIRE_LEN: u16 = 64;

/// A confirmation is waited for so long, and twice as long after each of the first
/// [`DOUBLINGS`] times.
const WAIT: Dur = Dur::from_ms(1);
const DOUBLINGS: u32 = 6;
/// The most answers that wait for the port: what is not answered is sent again.
const ANSWERS: usize = 64;
/// So many times a signal is sent before its host is given up: about ten seconds.
pub(crate) const TRIES: u32 = 160;

/// How long is waited after so many times.
pub(crate) fn pause(tries: u32) -> Dur {
    Dur(WAIT.0 << tries.min(DOUBLINGS))
}

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
    /// Answers to send: to whom, what.
    answers: VecDeque<(HostId, Answer)>,
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

    /// Have `answer` sent to `to`. Where very many wait, one more is left out: who needs it asks
    /// again.
    pub(crate) fn answer(&mut self, to: HostId, answer: Answer) {
        if self.answers.len() < ANSWERS {
            self.answers.push_back((to, answer));
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
        if let Some((to, answer)) = self.answers.pop_front() {
            let (kind, of, token) = match answer {
                Answer::Confirmed(of) => (Kind::Confirmed, of, 0),
                Answer::Hello => (Kind::Hello, 0, 0),
                Answer::WhoAreYou(number) => (Kind::WhoAreYou, 0, number),
                Answer::ThisLife(number) => (Kind::ThisLife, 0, number),
            };
            return Some((self.packet(to, of, kind), (0, token)));
        }
        let is_due = |out: &Outgoing| !out.waiting.is_empty() && out.due <= now;
        let (&to, out) = self.to.iter_mut().find(|(_, out)| is_due(out))?;
        if out.tries == TRIES {
            out.next();
            self.lost += 1;
        }
        let &(number, said) = out.waiting.front()?;
        out.due = now + pause(out.tries);
        out.tries += 1;
        Some((self.packet(to, number, Kind::Signal), said))
    }

    fn packet(&self, dst: HostId, number: u64, kind: Kind) -> Packet {
        let span = Span { msg: MsgId(number), ..Span::default() };
        let flags = Flags::CONTROL;
        let (src, wire_len) = (self.me, WIRE_LEN);
        let mut pkt = Packet { src, dst, proto: PROTO, wire_len, flags, span, ..Packet::EMPTY };
        pkt.put_header(&[kind as u8]);
        pkt
    }

    /// A signal has come. True if it has not been heard.
    pub(crate) fn hear(&mut self, pkt: &Packet) -> bool {
        let number = pkt.span.msg.0;
        self.answer(pkt.src, Answer::Confirmed(number));
        // An old one is confirmed again and changes nothing.
        let last = self.heard.entry(pkt.src).or_insert(0);
        let is_new = *last < number;
        *last = number.max(*last);
        is_new
    }

    /// A confirmation has come.
    pub(crate) fn confirmed(&mut self, pkt: &Packet) {
        let Some(out) = self.to.get_mut(&pkt.src) else { return };
        if out.waiting.front().is_some_and(|first| first.0 == pkt.span.msg.0) {
            out.next();
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
                        assert_eq!(kind(&pkt), Some(Kind::Confirmed));
                        a.confirmed(&pkt);
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
