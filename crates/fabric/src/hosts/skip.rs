//! What hosts have to do with time that is skipped: messages become shorter, applications see true
//! time.

use std::cmp::Reverse;

use endpoint::{Rounds, UNBOUNDED};
use units::{Dur, HostId, MsgKey, Time};

use super::{Host, Hosts, reported};
use crate::network::Network;
use crate::outgoing::Signal;

impl<const WATCHED: bool> Hosts<WATCHED> {
    fn host(&self, host: HostId) -> &Host {
        &self.hosts[(host.0 - self.first) as usize]
    }

    fn host_mut(&mut self, host: HostId) -> &mut Host {
        &mut self.hosts[(host.0 - self.first) as usize]
    }

    /// When an application has something to do next, in true time.
    pub(crate) fn next_app(&self) -> Time {
        self.hosts.iter().map(Host::next_app).min().unwrap_or(Time::NEVER)
    }

    /// Bytes of message `key` that are at host `at`, its receiver.
    pub(crate) fn placed_of(&self, at: HostId, key: MsgKey) -> u64 {
        self.host(at).reassembly.bytes(key)
    }

    /// As [`endpoint::Endpoint::unsent`] of the message's source.
    pub(crate) fn unsent(&self, key: MsgKey) -> Option<u64> {
        self.host(key.src).endpoint.unsent(key.id)
    }

    /// Shorten a message at its source by up to `bytes`. How many were taken out: of one without an
    /// end, all.
    pub(crate) fn shorten(&mut self, key: MsgKey, bytes: u64) -> u64 {
        let endpoint = &mut self.host_mut(key.src).endpoint;
        match endpoint.unsent(key.id) {
            Some(UNBOUNDED) => bytes,
            _ => endpoint.shorten(key.id, bytes),
        }
    }

    /// `bytes` of message `key` to host `at` count as placed there, at the simulated time `now`.
    pub(crate) fn place_skipped(&mut self, at: HostId, key: MsgKey, bytes: u64, now: Time) {
        self.placed_bytes += bytes;
        let host = self.host_mut(at);
        host.reassembly.skip(key, bytes, now);
        host.endpoint.on_shortened(key, bytes);
    }

    /// Bytes that each host has received.
    pub(crate) fn received(&self) -> impl Iterator<Item = (HostId, u64)> {
        self.hosts.iter().map(|host| (host.me, host.received.bytes))
    }

    /// `bytes` more count as received by host `at`.
    pub(crate) fn receive_skipped(&mut self, at: HostId, bytes: u64) {
        self.host_mut(at).skipped_bytes += bytes;
    }

    /// `time` has been skipped: what applications wait for, and the window, are nearer.
    pub(crate) fn skip(&mut self, net: &mut Network<'_, WATCHED>, time: Dur) {
        self.skipped += time;
        for h in 0..self.hosts.len() as u32 {
            let host = &mut self.hosts[h as usize];
            host.reassembly.pass(time);
            host.app_at = Time::NEVER;
            self.note_app(net, h);
        }
    }

    /// How far the work of all its hosts has come that repeats; `None` if a host does other work.
    pub(crate) fn rounds(&self) -> Option<Rounds> {
        self.hosts.iter().try_fold(Rounds::UNBOUNDED, |all, host| {
            let is_idle = !host.app.more_to_come() && host.next_app() == Time::NEVER;
            match host.app.rounds() {
                Some(of) => Some(all.and(of)),
                None => is_idle.then_some(all),
            }
        })
    }

    /// `count` rounds of all work have been left out, which take `time` each: the same packets go
    /// on in a later round. It is `now` in true time.
    pub(crate) fn skip_rounds(&mut self, now: Time, count: u32, time: Dur) {
        let all = time * u64::from(count);
        self.skipped += all;
        for host in &mut self.hosts {
            host.reassembly.pass(all);
            host.enter_app(now, &mut self.app_fx, |app, cx| app.on_skipped(cx, count, time));
            self.jobs.extend(reported(host.me, &mut self.app_fx));
            host.app_timers.change_all(|at| at + all);
            let inbox = std::mem::take(&mut host.inbox).into_iter();
            let later = |Reverse(of): Reverse<Signal>| Reverse(Signal { at: of.at + all, ..of });
            host.inbox = inbox.map(later).collect();
            if host.app_at != Time::NEVER {
                host.app_at += all;
            }
        }
    }

    /// `bytes` more count as placed.
    pub(crate) fn place_all_skipped(&mut self, bytes: u64) {
        self.placed_bytes += bytes;
    }
}
