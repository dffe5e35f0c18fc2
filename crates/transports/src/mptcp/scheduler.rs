//! Which subflow sends next (specs/mptcp.md#2).
//!
//! A subflow that has to send again what it has outstanding does so first, and takes nothing new
//! before. Of those that have window for a segment of new data, the scheduler chooses.

use units::{Dur, Time};

use super::config::{Config, Scheduler};
use super::connection::Connection;
use crate::tcp::stream::Segment;

impl Connection {
    /// Take the next segment: the subflow that sends it, and its data sequence number.
    pub(super) fn next_segment(
        &mut self,
        config: &Config,
        now: Time,
    ) -> Option<(usize, Segment, u64)> {
        let i = self.choose(config)?;
        let (segment, dsn) = self.take(config, now, i)?;
        Some((i, segment, dsn))
    }

    /// The subflow that sends next.
    fn choose(&mut self, config: &Config) -> Option<usize> {
        let (n, next) = (self.subflows.len(), self.next_data());
        let mut best: Option<(usize, Dur)> = None;
        for i in (self.turn..n).chain(0..self.turn.min(n)) {
            let subflow = &self.subflows[i];
            let rtt = match config.scheduler {
                Scheduler::RoundRobin => Dur::ZERO,
                Scheduler::LowestRtt => subflow.srtt().unwrap_or(Dur(u64::MAX)),
            };
            let better = best.is_none_or(|(_, least)| rtt < least);
            let new_only = subflow.sender.sends_new_only();
            debug_assert!(
                !new_only || self.sendable(config, i, next).is_none_or(|s| self.is_new(i, &s)),
                "a subflow repeats although it has nothing to repeat"
            );
            if !better && new_only {
                continue; // whatever it may send
            }
            let Some(segment) = self.sendable(config, i, next) else { continue };
            if !self.is_new(i, &segment) {
                return Some(i);
            }
            if better {
                best = Some((i, rtt));
            }
        }
        best.map(|(i, _)| i)
    }

    /// Whether `segment`, which subflow `i` may send, is data that it has not sent before.
    fn is_new(&self, i: usize, segment: &Segment) -> bool {
        let sender = &self.subflows[i].sender;
        sender.is_open() && sender.source().is_new(segment)
    }
}
