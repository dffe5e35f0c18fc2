//! [`Stop`]: an application whose messages are given up at some instant: connections that are
//! closed.

use std::collections::BTreeSet;

use endpoint::{App, AppCx, AppEffect, AppEvent};
use units::{Dur, MsgId, Time, TimerId};

/// The application's timer `t` is `t + 1` outside.
const STOP: TimerId = TimerId(0);

/// An application, and when it is over: what it has in flight then is cancelled, and it is called
/// no more.
pub struct Stop {
    app: Box<dyn App>,
    at: Time,
    under_way: BTreeSet<MsgId>,
}

impl Stop {
    /// `app` until `at`.
    #[must_use]
    pub fn new(app: Box<dyn App>, at: Time) -> Self {
        Self { app, at, under_way: BTreeSet::new() }
    }

    /// Call the application, unless it is over.
    fn call(&mut self, cx: &mut AppCx<'_>, call: impl FnOnce(&mut dyn App, &mut AppCx<'_>)) {
        if cx.now >= self.at {
            return;
        }
        let before = cx.fx.len();
        call(&mut *self.app, cx);
        for effect in cx.fx.iter_mut().skip(before) {
            match effect {
                AppEffect::Submit { msg, .. } => drop(self.under_way.insert(msg.id)),
                AppEffect::Arm { timer, .. } => timer.0 += 1,
                _ => {}
            }
        }
    }
}

impl App for Stop {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        cx.arm(STOP, self.at);
        self.call(cx, |app, cx| app.on_start(cx));
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Acked(id) => drop(self.under_way.remove(&id)),
            AppEvent::Failed(key, _) if key.src == cx.me => drop(self.under_way.remove(&key.id)),
            _ => {}
        }
        self.call(cx, |app, cx| app.on_event(cx, event));
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        match id.0.checked_sub(1) {
            Some(inner) => self.call(cx, |app, cx| app.on_timer(cx, TimerId(inner))),
            None => std::mem::take(&mut self.under_way).into_iter().for_each(|id| cx.cancel(id)),
        }
    }

    fn on_end(&mut self, cx: &mut AppCx<'_>) {
        self.app.on_end(cx);
    }

    /// Until it is over it may, or its own timer comes.
    fn more_to_come(&self) -> bool {
        self.app.more_to_come() || !self.under_way.is_empty()
    }

    fn signal_delay(&self) -> Option<Dur> {
        self.app.signal_delay()
    }
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Purpose, UNBOUNDED};
    use units::{HostId, MsgKey};

    use super::*;

    /// Two endless messages and a short one; another one from timer 3.
    struct Three;

    impl App for Three {
        fn on_start(&mut self, cx: &mut AppCx<'_>) {
            for len in [UNBOUNDED, 1_000, UNBOUNDED] {
                cx.submit(HostId(1), len);
            }
            cx.arm(TimerId(3), Time(20));
        }
        fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
            assert_eq!(id, TimerId(3));
            cx.submit(HostId(1), 1);
        }
    }

    #[test]
    fn what_is_under_way_is_cancelled_and_nothing_comes_after_it() {
        let mut stop = Stop::new(Box::new(Three), Time(10));
        let (mut next_id, mut fx) = (MsgId(0), Vec::new());
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let mut call = |now, what: &mut dyn FnMut(&mut AppCx<'_>)| {
            let (me, next_id) = (HostId(0), &mut next_id);
            what(&mut AppCx { now, me, draw, received: 0, next_id, fx: &mut fx });
            std::mem::take(&mut fx)
        };
        let started = call(Time(0), &mut |cx| stop.on_start(cx));
        let arm = |timer, at| AppEffect::Arm { timer: TimerId(timer), at: Time(at) };
        assert_eq!([started[0], started[4]], [arm(0, 10), arm(4, 20)]);
        call(Time(5), &mut |cx| stop.on_event(cx, AppEvent::Acked(MsgId(1))));
        assert!(stop.more_to_come());
        let cancelled = call(Time(10), &mut |cx| stop.on_timer(cx, STOP));
        assert_eq!(cancelled, [0, 2].map(|id| AppEffect::Cancel(MsgId(id))));
        let failed = MsgKey { src: HostId(0), id: MsgId(0) };
        call(Time(10), &mut |cx| {
            stop.on_event(cx, AppEvent::Failed(failed, endpoint::FailReason::Cancelled));
        });
        assert_eq!(call(Time(20), &mut |cx| stop.on_timer(cx, TimerId(4))), []);
        assert!(!stop.more_to_come());
    }
}
