//! [`App`]: what generates messages and reacts to their completion.

use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

use crate::transport::Msg;
use crate::{Draw, FailReason};

/// One host's application, driven inline by the environment.
pub trait App: Send {
    /// The run begins. Called once, at time zero, in host order.
    fn on_start(&mut self, cx: &mut AppCx<'_>);

    /// Something happened to a message, or a signal came.
    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        let _ = (cx, event);
    }

    /// A timer that this application armed has come.
    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        let _ = (cx, id);
    }

    /// The run is over, whether or not all is done. Only [`AppCx::report`] has an effect. Real
    /// hosts have no end, and do not call it.
    fn on_end(&mut self, cx: &mut AppCx<'_>) {
        let _ = cx;
    }

    /// Whether this application may still submit messages without any further event reaching it
    /// from elsewhere (a timer is armed, a schedule has entries left). A run can end once every
    /// application says no and every message is done. Applications that never stop by themselves
    /// (a closed loop, an open Poisson process) also say no: they are background to whatever ends
    /// the run.
    fn more_to_come(&self) -> bool {
        false
    }

    /// How far it has come with work that repeats, if it does such work and nothing else. Only
    /// simulators that skip time ask.
    fn rounds(&self) -> Option<Rounds> {
        None
    }

    /// `count` rounds of its work, which take `time` each, have been left out. Times that it
    /// remembers, and timers and signals that are to come, are later by all of that; what has begun
    /// is of later rounds. Of the rounds it may [report](AppCx::report); nothing else has an
    /// effect, and `cx.now` is the time before. At most as many as [`App::rounds`] says are left.
    fn on_skipped(&mut self, cx: &mut AppCx<'_>, count: u32, time: Dur) {
        let _ = (cx, count, time);
    }

    /// The shortest delay of any signal that this application ever sends to another host; `None` if
    /// it sends none. Hosts that are simulated in parallel may run ahead of each other by so much.
    fn signal_delay(&self) -> Option<Dur> {
        None
    }
}

/// Work of an application that repeats: see [`App::rounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// How many are complete here, those left out included.
    pub done: u32,
    /// How many have not begun here and can be left out.
    pub left: u32,
}

impl Rounds {
    /// Of no application: it bounds nothing.
    pub const UNBOUNDED: Self = Self { done: u32::MAX, left: u32::MAX };

    /// What holds for both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { done: self.done.min(other.done), left: self.left.min(other.left) }
    }
}

/// What an application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEvent {
    /// A message to this host is whole.
    Delivered {
        /// Which.
        key: MsgKey,
        /// Its length, bytes.
        len: u64,
        /// The tag with which it was submitted. Zero where the environment does not carry it.
        tag: u16,
        /// The token with which it was submitted. Zero where the environment does not carry it.
        token: u64,
    },
    /// A message of this host is known to be delivered.
    Acked(MsgId),
    /// A message will not complete. One of another host may be begun anew by that, and then fails
    /// again or is delivered.
    Failed(MsgKey, FailReason),
    /// Another host's application sent this outside the network.
    Signal {
        /// Who.
        from: HostId,
        /// Which part of the workload, as in [`AppEffect::Signal`].
        tag: u16,
        /// What, in the applications' own code.
        token: u64,
    },
}

/// What an application wants done, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEffect {
    /// Hand a message to the transport.
    Submit {
        /// The message.
        msg: Msg,
        /// Which part of the workload it belongs to. It comes back in the message's record and in
        /// [`AppEvent::Delivered`]; transports never see it.
        tag: u16,
        /// What the message says, in the applications' own code: what an application's header would
        /// hold, for the receiving application. Transports never see it.
        token: u64,
    },
    /// Give a message up.
    Cancel(MsgId),
    /// Call `on_timer(timer)` at `at`; replaces an earlier deadline. [`Time::NEVER`] disarms.
    Arm {
        /// Which timer.
        timer: TimerId,
        /// When.
        at: Time,
    },
    /// Reach another host's application outside the network, after an explicit delay.
    Signal {
        /// Whom.
        to: HostId,
        /// What.
        token: u64,
        /// How much later; at least one picosecond.
        after: Dur,
        /// Which part of the workload it concerns: an application of several parts hands it to that
        /// part.
        tag: u16,
    },
    /// A piece of work of several messages is over: for the run's results.
    Job(Job),
}

/// A piece of work of several messages that an application coordinates: a block of an incast, a
/// query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Which part of the workload it belongs to, as with messages.
    pub tag: u16,
    /// Whether it came to its end. Otherwise it was given up, because a message failed.
    pub completed: bool,
    /// When it began.
    pub start: Time,
    /// When it was complete, or given up.
    pub end: Time,
    /// Payload delivered, bytes.
    pub bytes: u64,
    /// Bytes on the wire that arrived meanwhile at the host that reports it, headers and whatever
    /// else arrives there included: the difference of [`AppCx::received`].
    pub received: u64,
    /// The results it asked for.
    pub parts: u64,
    /// Those of them that came in time.
    pub in_time: u64,
    /// If it is the work of a rank of a training job: what of it.
    pub work: Option<Work>,
}

/// What a rank of a training job has done: a step, or a collective of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The rank.
    pub rank: u32,
    /// The step, from 0.
    pub step: u32,
    /// What, in the application's own code.
    pub what: u64,
    /// How long the rank computed meanwhile.
    pub computed: Dur,
    /// It was not simulated: it is as the one before, later.
    pub skipped: bool,
}

/// An application's context.
pub struct AppCx<'a> {
    /// The time of this call.
    pub now: Time,
    /// The host.
    pub me: HostId,
    /// The application's own draws.
    pub draw: Draw,
    /// Bytes on the wire that have arrived at this host so far.
    pub received: u64,
    /// The next message id of this host; [`AppCx::submit`] advances it.
    pub next_id: &'a mut MsgId,
    /// What this call wants done, in order.
    pub fx: &'a mut Vec<AppEffect>,
}

impl AppCx<'_> {
    /// Submit a message of `len` bytes to `dst`, without order or priority. Returns its id.
    pub fn submit(&mut self, dst: HostId, len: u64) -> MsgId {
        self.submit_as(Msg::new(dst, len))
    }

    /// Submit `msg`, with nothing to say; its id is chosen here and returned.
    pub fn submit_as(&mut self, msg: Msg) -> MsgId {
        self.submit_saying(msg, 0)
    }

    /// Submit `msg`, which says `token` to the receiving application, with tag 0; its id is chosen
    /// here and returned.
    pub fn submit_saying(&mut self, msg: Msg, token: u64) -> MsgId {
        let id = *self.next_id;
        self.next_id.0 += 1;
        self.fx.push(AppEffect::Submit { msg: Msg { id, ..msg }, tag: 0, token });
        id
    }

    /// Call `on_timer(timer)` at `at`.
    pub fn arm(&mut self, timer: TimerId, at: Time) {
        self.fx.push(AppEffect::Arm { timer, at });
    }

    /// Send `token` to the application of host `to`, `after` from now, with tag 0.
    pub fn signal(&mut self, to: HostId, token: u64, after: Dur) {
        self.fx.push(AppEffect::Signal { to, token, after, tag: 0 });
    }

    /// Report that `job` is over.
    pub fn report(&mut self, job: Job) {
        self.fx.push(AppEffect::Job(job));
    }

    /// Give message `id` up.
    pub fn cancel(&mut self, id: MsgId) {
        self.fx.push(AppEffect::Cancel(id));
    }
}
