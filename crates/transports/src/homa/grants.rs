//! Who may have grants (specs/homa.md#5.3): of each sender the message with the least left to
//! grant, and of these the `overcommitment` best. A sender is given one packet at a time, a packet
//! time apart.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use endpoint::Cx;
use units::Time;
use wire::homa::Kind;

use super::Outbox;
use super::config::Config;
use super::receiver::Conn;
use crate::received::WINDOW_MAX;
use crate::slab::{Slab, SlotRef};

/// How good a message is, the least the best: bytes left to grant, then age.
type Rank = (u64, u64);

/// The messages of one sender that need grants.
#[derive(Debug)]
struct Sender {
    /// The best first. An entry means nothing once its message is gone or has another number left.
    messages: BinaryHeap<Reverse<(u64, u64, SlotRef)>>,
    /// When the last grant was given, and at which level. The next is a packet time later, earlier
    /// only at a better level.
    given_at: Time,
    next_at: Time,
    level: u8,
    active: bool,
}

/// The scheduler of grants of a host. Senders are numbered from zero.
#[derive(Debug)]
pub(super) struct Grants {
    senders: Vec<Sender>,
    /// Senders that are given grants, the best first, by the rank of their best message.
    active: Vec<(Rank, u32)>,
    /// Others that need some, each with its best message. An entry means nothing once its sender is
    /// active or its best message is another one or has another rank.
    waiting: BinaryHeap<Reverse<(Rank, u32, SlotRef)>>,
    /// When a grant can be given that could not yet; `NEVER` if only data can make one possible.
    wake: Time,
}

impl Grants {
    pub(super) fn new() -> Self {
        let (senders, active) = (Vec::new(), Vec::new());
        Self { senders, active, waiting: BinaryHeap::new(), wake: Time::NEVER }
    }

    /// When to call `give` if nothing arrives before.
    pub(super) const fn wake(&self) -> Time {
        self.wake
    }

    /// A message of `sender` needs grants, or has another number left.
    pub(super) fn add(
        &mut self,
        conns: &mut Slab<Conn>,
        config: &Config,
        sender: u32,
        at: SlotRef,
    ) {
        while self.senders.len() <= sender as usize {
            self.senders.push(Sender {
                messages: BinaryHeap::new(),
                given_at: Time::NEVER,
                next_at: Time::ZERO,
                level: 0,
                active: false,
            });
        }
        if let Some(conn) = conns.get(at) {
            let entry = Reverse((conn.left_bytes(), conn.order, at));
            self.senders[sender as usize].messages.push(entry);
        }
        self.change(conns, config, sender);
    }

    /// The best message of `sender` may be another one, or there may be none.
    pub(super) fn change(&mut self, conns: &mut Slab<Conn>, config: &Config, sender: u32) {
        if let Some(place) = self.active.iter().position(|&(_, active)| active == sender) {
            self.active.remove(place);
            self.senders[sender as usize].active = false;
        }
        self.wait(conns, sender);
        self.fill(conns, config);
        if self.active.is_empty() {
            self.wake = Time::NEVER;
        }
    }

    /// Have `sender` among those that wait, if it needs grants. An entry from before may do.
    fn wait(&mut self, conns: &mut Slab<Conn>, sender: u32) {
        let Some((rank, at)) = self.best(conns, sender) else { return };
        let Some(conn) = conns.get_mut(at) else { return };
        if conn.waits != Some(rank.0) {
            conn.waits = Some(rank.0);
            self.waiting.push(Reverse((rank, sender, at)));
        }
    }

    /// The best message of `sender`.
    fn best(&mut self, conns: &Slab<Conn>, sender: u32) -> Option<(Rank, SlotRef)> {
        let messages = &mut self.senders.get_mut(sender as usize)?.messages;
        loop {
            let &Reverse((left, order, at)) = messages.peek()?;
            if left > 0 && conns.get(at).is_some_and(|conn| conn.left_bytes() == left) {
                return Some(((left, order), at));
            }
            messages.pop();
        }
    }

    /// Make the best of those that wait active while there is room, or one that is active is worse.
    fn fill(&mut self, conns: &mut Slab<Conn>, config: &Config) {
        let most = config.overcommitment as usize;
        while let Some(&Reverse((rank, sender, at))) = self.waiting.peek() {
            let worst = self.active.last().copied();
            if self.active.len() >= most && worst.is_some_and(|(worst, _)| worst <= rank) {
                return;
            }
            self.waiting.pop();
            if let Some(conn) = conns.get_mut(at).filter(|conn| conn.waits == Some(rank.0)) {
                conn.waits = None;
            }
            let current = self.best(conns, sender).is_some_and(|(best, _)| best == rank);
            if self.senders[sender as usize].active || !current {
                continue;
            }
            if self.active.len() >= most
                && let Some(evicted) = self.active.pop()
            {
                self.senders[evicted.1 as usize].active = false;
                self.wait(conns, evicted.1);
            }
            self.senders[sender as usize].active = true;
            let place = self.active.partition_point(|(other, _)| *other < rank);
            self.active.insert(place, (rank, sender));
        }
    }

    /// Give the grants that are due.
    pub(super) fn give(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        conns: &mut Slab<Conn>,
        out: &mut Outbox,
    ) {
        self.wake = Time::NEVER;
        let mut place = 0;
        while place < self.active.len() {
            match self.grant(cx, config, conns, place, out) {
                // Its best message is another one, if any: who is active may have changed.
                Some(0) => {
                    let (_, sender) = self.active[place];
                    self.change(conns, config, sender);
                    self.wake = Time::NEVER;
                    place = 0;
                }
                Some(left) => {
                    self.improve(place, left);
                    place += 1;
                }
                None => place += 1,
            }
        }
    }

    /// Grant a packet to the sender at `place`, if it may have one. How many bytes its message has
    /// left then.
    fn grant(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        conns: &mut Slab<Conn>,
        place: usize,
        out: &mut Outbox,
    ) -> Option<u64> {
        let (_, number) = self.active[place];
        let (_, at) = self.best(conns, number)?;
        let sender = &mut self.senders[number as usize];
        let conn = conns.get_mut(at)?;
        if !conn.has_window(config) {
            return None;
        }
        let scheduled = config.scheduled_level(place, self.active.len());
        let level = config.grant_level(scheduled, conn.granted, &conn.cut);
        let early = cx.now < sender.next_at;
        if early && (level >= sender.level || sender.given_at == cx.now) {
            self.wake = self.wake.min(sender.next_at);
            return None;
        }
        sender.given_at = cx.now;
        sender.next_at = cx.paced_from(sender.next_at) + config.packet_time(cx.net);
        sender.level = level;
        conn.granted += 1;
        // With it leaves what was refused.
        conn.refused = 0;
        let left = conn.left_bytes();
        if let Some(mut top) = sender.messages.peek_mut() {
            // It is the best, and now even better: it stays the first.
            top.0.0 = left;
            if left == 0 {
                PeekMut::pop(top);
            }
        }
        if left > 0 && conn.has_window(config) {
            self.wake = self.wake.min(sender.next_at);
        }
        // Low bits: the sender knows about where it stands.
        let granted = conn.granted as u32;
        out.push(conn.control(cx, Kind::Grant { granted, level }));
        Some(left)
    }

    /// The message of the sender at `place` has `left` bytes left now, fewer than before.
    fn improve(&mut self, mut place: usize, left: u64) {
        self.active[place].0.0 = left;
        while place > 0 && self.active[place - 1].0 > self.active[place].0 {
            self.active.swap(place - 1, place);
            place -= 1;
        }
    }
}

impl Conn {
    /// Whether less than `rtt_bytes` of what it was granted is in flight.
    fn has_window(&self, config: &Config) -> bool {
        let room = self.under_way() < config.rtt_packets();
        room && self.granted < self.received.prefix() + WINDOW_MAX
    }
}
