//! [`Running`]: a collective at one of its ranks, while it lasts.

use std::collections::BTreeMap;

use units::Time;

use crate::collective::{Act, Move, Moves};

/// The end of a list.
const NONE: u32 = u32::MAX;

/// How far a rank has come with a collective.
#[derive(Debug)]
pub(super) struct Running {
    /// Its task.
    pub(super) task: u32,
    pub(super) start: Time,
    moves: Moves,
    /// By move: how many others it waits for.
    waits: Vec<u8>,
    /// By move: the first of those who wait for it, as move * 3 + which of its three.
    followers: Vec<u32>,
    /// By move and which of its three: the next who waits for the same.
    next: Vec<u32>,
    /// By move: of a send, which of those to its peer it is.
    nth: Vec<u32>,
    over: Vec<bool>,
    /// By peer: its receives in order.
    receives: BTreeMap<u32, Vec<u32>>,
    /// Moves that can begin.
    ready: Vec<u32>,
    unreceived: u32,
    unsent: u32,
    unacked: u32,
    has_receives: bool,
}

impl Running {
    pub(super) fn new(task: u32, start: Time, moves: Moves) -> Self {
        let count = moves.as_slice().len();
        let mut running = Self {
            task,
            start,
            waits: vec![0; count],
            followers: vec![NONE; count],
            next: vec![NONE; 3 * count],
            nth: vec![0; count],
            over: vec![false; count],
            receives: BTreeMap::new(),
            ready: Vec::new(),
            unreceived: 0,
            unsent: 0,
            unacked: 0,
            has_receives: false,
            moves,
        };
        let mut sends: BTreeMap<u32, u32> = BTreeMap::new();
        // From the last one on, so that lists are in order.
        for index in (0..count as u32).rev() {
            let m = *running.get(index);
            for (which, pred) in (0..).zip(m.after()) {
                let edge = 3 * index + which;
                running.waits[index as usize] += 1;
                running.next[edge as usize] = running.followers[pred as usize];
                running.followers[pred as usize] = edge;
            }
            let is_free = running.waits[index as usize] == 0;
            if is_free && matches!(m.act, Act::Send | Act::Join) {
                running.ready.push(index);
            }
        }
        for index in 0..count as u32 {
            let m = *running.get(index);
            match m.act {
                Act::Send => {
                    let nth = sends.entry(m.peer).or_default();
                    running.nth[index as usize] = *nth;
                    *nth += 1;
                    running.unsent += 1;
                    running.unacked += 1;
                }
                Act::Reduce | Act::Copy => {
                    running.receives.entry(m.peer).or_default().push(index);
                    running.unreceived += 1;
                }
                Act::Join => {}
            }
        }
        running.has_receives = running.unreceived > 0;
        running
    }

    /// A send that can begin now, and which of those to its peer it is.
    pub(super) fn next_send(&mut self) -> Option<(u32, u32)> {
        while let Some(index) = self.ready.pop() {
            match self.moves.as_slice()[index as usize].act {
                Act::Send => {
                    self.unsent -= 1;
                    return Some((index, self.nth[index as usize]));
                }
                Act::Join | Act::Reduce | Act::Copy => self.end(index),
            }
        }
        None
    }

    pub(super) fn get(&self, index: u32) -> &Move {
        &self.moves.as_slice()[index as usize]
    }

    /// The `nth` message of `peer` has arrived.
    pub(super) fn arrived(&mut self, peer: u32, nth: u32) {
        let receives = self.receives.get(&peer);
        let Some(&index) = receives.and_then(|all| all.get(nth as usize)) else { return };
        if !self.over[index as usize] {
            self.unreceived -= 1;
            self.end(index);
        }
    }

    /// Send `index` is acknowledged.
    pub(super) fn acked(&mut self, index: u32) {
        if !self.over[index as usize] {
            self.unacked -= 1;
            self.end(index);
        }
    }

    fn end(&mut self, index: u32) {
        self.over[index as usize] = true;
        let mut edge = self.followers[index as usize];
        // Those who can begin come out in order: the last one in is the first out.
        let from = self.ready.len();
        while edge != NONE {
            let waiting = edge / 3;
            self.waits[waiting as usize] -= 1;
            if self.waits[waiting as usize] == 0 {
                self.ready.push(waiting);
            }
            edge = self.next[edge as usize];
        }
        self.ready[from..].reverse();
    }

    /// Whether the rank has done its part: all that it receives is there, and all that it sends is
    /// handed over. One that only sends waits for the acknowledgements.
    pub(super) fn is_over(&self) -> bool {
        let left = if self.has_receives { self.unsent } else { self.unacked };
        self.unreceived == 0 && left == 0
    }

    /// Of one that is not over: a peer that it waits for, and whether for its acknowledgement. What
    /// is in flight comes first: for the rest it may have to wait because of that.
    pub(super) fn waits_for(&self) -> Option<(u32, bool)> {
        let list = self.moves.as_slice();
        let open = |index: &usize| {
            let is_due = self.waits[*index] == 0 && list[*index].act != Act::Join;
            is_due && !self.over[*index]
        };
        let sends = |index: &usize| open(index) && list[*index].act == Act::Send;
        let index = (0..list.len()).find(sends).or_else(|| (0..list.len()).find(open))?;
        Some((list[index].peer, list[index].act == Act::Send))
    }
}
