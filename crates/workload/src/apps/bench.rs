//! Test bench: runs applications against a network that delivers every message in half of [`FCT`]
//! and acknowledges it after [`FCT`].

use std::collections::BTreeMap;

use endpoint::{App, AppCx, AppEffect, AppEvent, Draw, FailReason, Job, Msg, Purpose, UNBOUNDED};
use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

/// How long every message takes until it is acknowledged.
pub(crate) const FCT: Dur = Dur(10_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    pub(crate) at: Time,
    pub(crate) src: HostId,
    pub(crate) msg: Msg,
}

enum Happening {
    Timer(TimerId),
    Event(AppEvent),
}

pub(crate) struct Bench<A> {
    pub(crate) apps: Vec<A>,
    pub(crate) submitted: Vec<Submitted>,
    pub(crate) jobs: Vec<Job>,
    now: Time,
    seed: u64,
    ids: Vec<MsgId>,
    /// Keyed by time and host, then by insertion.
    queue: BTreeMap<(Time, HostId, u64), Happening>,
    armed: BTreeMap<(HostId, TimerId), Time>,
    inserted: u64,
}

impl<A: App> Bench<A> {
    pub(crate) fn new(apps: Vec<A>, seed: u64) -> Self {
        Self {
            ids: vec![MsgId(0); apps.len()],
            apps,
            submitted: Vec::new(),
            jobs: Vec::new(),
            now: Time::ZERO,
            seed,
            queue: BTreeMap::new(),
            armed: BTreeMap::new(),
            inserted: 0,
        }
    }

    pub(crate) fn start(&mut self) {
        for host in 0..self.apps.len() as u32 {
            self.call(HostId(host), A::on_start);
        }
    }

    pub(crate) fn event(&mut self, host: HostId, event: AppEvent) {
        self.call(host, |app, cx| app.on_event(cx, event));
    }

    /// A message that is in flight fails at its sender, and never arrives.
    pub(crate) fn fail(&mut self, key: MsgKey) {
        self.queue.retain(|&(_, host, _), happening| match happening {
            Happening::Event(AppEvent::Delivered { key: other, .. }) => *other != key,
            Happening::Event(AppEvent::Acked(id)) => (host, *id) != (key.src, key.id),
            _ => true,
        });
        self.event(key.src, AppEvent::Failed(key, FailReason::TimedOut));
    }

    /// Until nothing happens any more.
    pub(crate) fn run(&mut self) {
        self.run_for(usize::MAX);
    }

    /// Until `messages` have been submitted.
    pub(crate) fn run_for(&mut self, messages: usize) {
        self.start();
        self.resume(messages);
    }

    /// Go on until `messages` have been submitted.
    pub(crate) fn resume(&mut self, messages: usize) {
        while self.submitted.len() < messages {
            let Some(((at, host, _), happening)) = self.queue.pop_first() else { break };
            self.now = at;
            match happening {
                Happening::Event(event) => self.event(host, event),
                Happening::Timer(id) if self.armed.get(&(host, id)) == Some(&at) => {
                    self.armed.remove(&(host, id));
                    self.call(host, |app, cx| app.on_timer(cx, id));
                }
                Happening::Timer(_) => {}
            }
        }
    }

    fn call(&mut self, host: HostId, f: impl FnOnce(&mut A, &mut AppCx<'_>)) {
        let Some(app) = self.apps.get_mut(host.index()) else { return };
        let draw = Draw::new(self.seed, Purpose::new("app"), u64::from(host.0));
        let mut fx = Vec::new();
        let next_id = &mut self.ids[host.index()];
        let (now, received) = (self.now, 0);
        f(app, &mut AppCx { now, me: host, draw, received, next_id, fx: &mut fx });
        for effect in fx {
            self.apply(host, effect);
        }
    }

    fn apply(&mut self, host: HostId, effect: AppEffect) {
        match effect {
            AppEffect::Submit { msg, tag, token } => {
                self.submitted.push(Submitted { at: self.now, src: host, msg });
                if msg.len != UNBOUNDED {
                    let key = MsgKey { src: host, id: msg.id };
                    let delivered = AppEvent::Delivered { key, len: msg.len, tag, token };
                    self.push(self.now + Dur(FCT.0 / 2), msg.dst, Happening::Event(delivered));
                    self.push(self.now + FCT, host, Happening::Event(AppEvent::Acked(msg.id)));
                }
            }
            AppEffect::Arm { timer, at: Time::NEVER } => {
                self.armed.remove(&(host, timer));
            }
            AppEffect::Arm { timer, at } => {
                assert!(at > self.now, "a timer for now or before");
                self.armed.insert((host, timer), at);
                self.push(at, host, Happening::Timer(timer));
            }
            AppEffect::Signal { to, token, after, tag } => {
                assert!(after > Dur::ZERO, "a signal takes time");
                let event = AppEvent::Signal { from: host, tag, token };
                self.push(self.now + after, to, Happening::Event(event));
            }
            AppEffect::Job(job) => self.jobs.push(job),
            AppEffect::Cancel(_) => panic!("no application here cancels"),
        }
    }

    fn push(&mut self, at: Time, host: HostId, happening: Happening) {
        self.queue.insert((at, host, self.inserted), happening);
        self.inserted += 1;
    }
}
