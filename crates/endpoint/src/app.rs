//! [`App`]: what generates messages and reacts to their completion.

use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

use crate::transport::Msg;
use crate::{Draw, Why};

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

    /// Whether this application may still submit messages without any further event reaching it
    /// from elsewhere (a timer is armed, a schedule has entries left). A run can end once every
    /// application says no and every message is done. Applications that never stop by themselves
    /// (a closed loop, an open Poisson process) also say no: they are background to whatever ends
    /// the run.
    fn more_to_come(&self) -> bool {
        false
    }

    /// The shortest delay of any signal that this application ever sends to another host; `None` if
    /// it sends none. Hosts that are simulated in parallel may run ahead of each other by so much.
    fn signal_delay(&self) -> Option<Dur> {
        None
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
    },
    /// A message of this host is known to be delivered.
    Acked(MsgId),
    /// A message will not complete.
    Failed(MsgKey, Why),
    /// Another host's application sent this outside the network.
    Signal {
        /// Who.
        from: HostId,
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
        /// Which part of the workload it belongs to. It comes back in the message's record;
        /// transports never see it.
        tag: u16,
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
    },
}

/// An application's context.
pub struct AppCx<'a> {
    /// The time of this call.
    pub now: Time,
    /// The host.
    pub me: HostId,
    /// The application's own draws.
    pub draw: Draw,
    /// The next message id of this host; [`AppCx::submit`] advances it.
    pub next_id: &'a mut MsgId,
    /// What this call wants done, in order.
    pub fx: &'a mut Vec<AppEffect>,
}

impl AppCx<'_> {
    /// Submit a message of `len` bytes to `dst`, without order or priority. Returns its id.
    pub fn submit(&mut self, dst: HostId, len: u64) -> MsgId {
        self.submit_as(Msg {
            id: MsgId(0),
            dst,
            len,
            channel: 0,
            prio: 0,
            transport: 0,
            reply_to: None,
        })
    }

    /// Submit `msg`, with tag 0; its id is chosen here and returned.
    pub fn submit_as(&mut self, msg: Msg) -> MsgId {
        let id = *self.next_id;
        self.next_id.0 += 1;
        self.fx.push(AppEffect::Submit { msg: Msg { id, ..msg }, tag: 0 });
        id
    }

    /// Call `on_timer(timer)` at `at`.
    pub fn arm(&mut self, timer: TimerId, at: Time) {
        self.fx.push(AppEffect::Arm { timer, at });
    }

    /// Send `token` to the application of host `to`, `after` from now.
    pub fn signal(&mut self, to: HostId, token: u64, after: Dur) {
        self.fx.push(AppEffect::Signal { to, token, after });
    }

    /// Give message `id` up.
    pub fn cancel(&mut self, id: MsgId) {
        self.fx.push(AppEffect::Cancel(id));
    }
}
