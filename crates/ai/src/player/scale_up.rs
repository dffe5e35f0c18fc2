//! The scale-up domain of a node (specs/ai-jobs.md#1.7): each rank has a port of a switch, whose
//! two directions each carry one message after the other.
//!
//! Where several hosts are NICs of one node, their players reach each other by signals: two for a
//! message, what it says and its length, which come one right after the other, and one back when
//! it is there.

use std::collections::{BTreeMap, VecDeque};

use endpoint::AppCx;
use units::{Dur, HostId};

use super::token::Token;
use super::{Due, Player, Sent};
use crate::graph::{Kind, Rank};
use crate::job::ScaleUp;

/// Whose message comes to a port.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// A rank's of this host.
    Here(Sent),
    /// One of another host of the node.
    Host(HostId),
}

/// What goes on between this host and the others of its node.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Messages that are not there yet, by sender's seat and receiver, in order.
    sent: BTreeMap<(u8, Rank), VecDeque<Sent>>,
    /// By host: what a message says whose length is to come.
    said: BTreeMap<HostId, u64>,
}

impl Beside {
    /// Whether all that was sent is there.
    pub(super) fn is_idle(&self) -> bool {
        self.sent.is_empty()
    }
}

impl Player {
    /// Send `bytes` to a rank of this node.
    pub(super) fn send_beside(
        &mut self,
        cx: &mut AppCx<'_>,
        sent: Sent,
        (to, bytes): (Rank, u64),
        token: u64,
    ) {
        let ScaleUp { rate, latency } = self.job.config().scale_up;
        let time = rate.serialise(bytes);
        let out = &mut self.ranks[usize::from(sent.seat)].egress_free;
        let begins = cx.now.max(*out);
        *out = begins + time;
        let (host, seat) = self.job.placement().seat(to);
        if host == self.host {
            let from = Source::Here(sent);
            self.schedule(begins + latency, Due::AtPort { from, to: seat, token, time });
            return;
        }
        let (host, after) = (self.job.placement().host(to), (begins + latency).since(cx.now));
        cx.signal(host, token, after);
        cx.signal(host, bytes, after);
        self.beside.sent.entry((sent.seat, to)).or_default().push_back(sent);
    }

    /// Another host of the node has something to say.
    pub(super) fn signalled(&mut self, cx: &mut AppCx<'_>, host: HostId, word: u64) {
        if let Some(token) = self.beside.said.remove(&host) {
            let time = self.job.config().scale_up.rate.serialise(word);
            let to = match Token::decode(token) {
                Token::Recv { to, .. } | Token::Part { to, .. } | Token::Ack { to, .. } => to,
            };
            self.at_port(cx, Source::Host(host), to, token, time);
            return;
        }
        let Token::Ack { to, from } = Token::decode(word) else {
            self.beside.said.insert(host, word);
            return;
        };
        let Some(receiver) = self.job.rank_on(host, from) else { return };
        let Some(all) = self.beside.sent.get_mut(&(to, receiver)) else { return };
        let sent = all.pop_front();
        if all.is_empty() {
            self.beside.sent.remove(&(to, receiver));
        }
        if let Some(sent) = sent {
            self.acked(cx, sent);
        }
    }

    /// A message begins to arrive at the port of the rank on seat `to`, which takes `time`.
    pub(super) fn at_port(&mut self, cx: &AppCx<'_>, from: Source, to: u8, token: u64, time: Dur) {
        let Some(rank) = self.ranks.get_mut(usize::from(to)) else { return };
        let at = cx.now.max(rank.ingress_free) + time;
        rank.ingress_free = at;
        self.schedule(at, Due::Arrived { from, token });
    }

    /// A message of a rank of this node is there.
    pub(super) fn arrived_beside(&mut self, cx: &mut AppCx<'_>, from: Source, token: u64) {
        match from {
            Source::Here(sent) => {
                self.arrived(cx, cx.me, token);
                self.acked(cx, sent);
            }
            Source::Host(host) => {
                self.arrived(cx, host, token);
                if let Some(ack) = self.ack(token) {
                    cx.signal(host, ack.encode(), self.job.config().scale_up.latency);
                }
            }
        }
    }

    /// What tells the sender of a message that it is there.
    fn ack(&self, token: u64) -> Option<Token> {
        match Token::decode(token) {
            Token::Recv { to, index } => {
                let rank = self.ranks.get(usize::from(to))?.rank;
                let Kind::Recv { from, .. } = self.job.graph().tasks(rank).get(index).kind else {
                    return None;
                };
                Some(Token::Ack { to: self.job.placement().seat(from).1, from: to })
            }
            Token::Part { to, from, .. } => Some(Token::Ack { to: from, from: to }),
            Token::Ack { .. } => None,
        }
    }
}
