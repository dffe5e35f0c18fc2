//! [`Mux`]: the applications of several `[[traffic]]` tables on one host.

use endpoint::{App, AppCx, AppEffect, AppEvent};
use units::{Dur, TimerId};

/// The application of one table on one host.
pub(crate) struct Part {
    /// The index of the table: the tag of its messages.
    pub(crate) table: u16,
    /// Who carries its messages.
    pub(crate) transport: u8,
    /// The deadline of each of its messages, from its submission; [`Dur::MAX`]: none.
    pub(crate) deadline: Dur,
    pub(crate) app: Box<dyn App>,
}

/// Several applications as one. Each has its own timers and its own draws, and hears of the
/// messages and signals of its own table; that a message of this host is over goes to all, and each
/// ignores those that it did not submit.
pub(crate) struct Mux(Vec<Part>);

impl Mux {
    /// `apps` as one application. With `alone`, the scenario has only one table, and its
    /// application stays as it is if it sends without a deadline: tag and transport of a message
    /// are 0 anyway.
    pub(crate) fn of(mut apps: Vec<Part>, alone: bool) -> Box<dyn App> {
        match apps.pop() {
            None => Box::new(workload::Quiet),
            Some(Part { transport: 0, deadline: Dur::MAX, app, .. }) if alone => app,
            Some(last) => {
                apps.push(last);
                Box::new(Self(apps))
            }
        }
    }

    /// Call part `index` with the draws of its table, which do not depend on what else there is on
    /// this host, and keep its timers apart: timer `t` of part `i` of `n` is `t * n + i`.
    fn part(
        &mut self,
        cx: &mut AppCx<'_>,
        index: usize,
        call: impl FnOnce(&mut dyn App, &mut AppCx<'_>),
    ) {
        let parts = self.0.len() as u32;
        let Some(Part { table, transport, deadline, app }) = self.0.get_mut(index) else { return };
        let first = cx.fx.len();
        let draw = cx.draw.part(u64::from(*table));
        let AppCx { now, me, received, .. } = *cx;
        let mut own = AppCx { now, me, draw, received, next_id: cx.next_id, fx: cx.fx };
        call(app.as_mut(), &mut own);
        for effect in cx.fx.iter_mut().skip(first) {
            match effect {
                AppEffect::Arm { timer, .. } => *timer = TimerId(timer.0 * parts + index as u32),
                AppEffect::Submit { msg, tag, .. } => {
                    (msg.transport, msg.deadline, *tag) = (*transport, *deadline, *table);
                }
                AppEffect::Signal { tag, .. } => *tag = *table,
                AppEffect::Job(job) => job.tag = *table,
                AppEffect::Cancel(_) => {}
            }
        }
    }
}

impl App for Mux {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for index in 0..self.0.len() {
            self.part(cx, index, |app, cx| app.on_start(cx));
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        let table = match event {
            AppEvent::Delivered { tag, .. } | AppEvent::Signal { tag, .. } => Some(tag),
            AppEvent::Acked(_) | AppEvent::Failed(..) => None,
        };
        for index in 0..self.0.len() {
            if table.is_none_or(|table| table == self.0[index].table) {
                self.part(cx, index, |app, cx| app.on_event(cx, event));
            }
        }
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        let parts = self.0.len() as u32;
        let index = (id.0 % parts) as usize;
        self.part(cx, index, |app, cx| app.on_timer(cx, TimerId(id.0 / parts)));
    }

    fn on_end(&mut self, cx: &mut AppCx<'_>) {
        for index in 0..self.0.len() {
            self.part(cx, index, |app, cx| app.on_end(cx));
        }
    }

    fn more_to_come(&self) -> bool {
        self.0.iter().any(|part| part.app.more_to_come())
    }

    fn rounds(&self) -> Option<endpoint::Rounds> {
        match &self.0[..] {
            [only] => only.app.rounds(),
            _ => None,
        }
    }

    fn on_skipped(&mut self, cx: &mut AppCx<'_>, count: u32, time: Dur) {
        for index in 0..self.0.len() {
            self.part(cx, index, |app, cx| app.on_skipped(cx, count, time));
        }
    }

    fn signal_delay(&self) -> Option<Dur> {
        self.0.iter().filter_map(|part| part.app.signal_delay()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpoint::{Draw, Job, Purpose};
    use units::{HostId, MsgId, MsgKey, Time};

    /// Arms timer 3 at its own number and submits to its own number when it fires.
    struct Probe(u32);

    impl App for Probe {
        fn on_start(&mut self, cx: &mut AppCx<'_>) {
            cx.arm(TimerId(3), Time(u64::from(self.0)));
        }
        fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
            assert_eq!(id, TimerId(3));
            cx.submit(HostId(self.0), cx.draw.bits(Purpose::new("probe"), 0) | 1);
        }
    }

    #[test]
    fn timers_and_draws_are_kept_apart_and_ids_are_shared() {
        let app = |n| Box::new(Probe(n));
        let first = Part { table: 2, transport: 1, deadline: Dur(9), app: app(7) };
        let mut mux = Mux::of(
            vec![first, Part { table: 5, transport: 0, deadline: Dur::MAX, app: app(8) }],
            false,
        );
        let (mut next_id, mut fx) = (MsgId(0), Vec::new());
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let (now, me, received) = (Time(0), HostId(0), 0);
        let mut cx = AppCx { now, me, draw, received, next_id: &mut next_id, fx: &mut fx };
        mux.on_start(&mut cx);
        let timers: Vec<TimerId> = cx
            .fx
            .drain(..)
            .map(|e| match e {
                AppEffect::Arm { timer, .. } => timer,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(timers, [TimerId(6), TimerId(7)]);
        mux.on_timer(&mut cx, timers[1]);
        mux.on_timer(&mut cx, timers[0]);
        let submitted: Vec<(u32, u64, u64, u16, u8, Dur)> = cx
            .fx
            .iter()
            .map(|e| match e {
                AppEffect::Submit { msg, tag, .. } => {
                    (msg.dst.0, msg.id.0, msg.len, *tag, msg.transport, msg.deadline)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!([submitted[0].0, submitted[1].0], [8, 7], "each timer reaches its owner");
        assert_eq!([submitted[0].1, submitted[1].1], [0, 1]);
        assert_ne!(submitted[0].2, submitted[1].2, "draws differ");
        assert_eq!([submitted[0].3, submitted[1].3], [5, 2], "the tag is the index of the table");
        assert_eq!([submitted[0].4, submitted[1].4], [0, 1], "and the transport is the table's");
        assert_eq!([submitted[0].5, submitted[1].5], [Dur::MAX, Dur(9)], "as is the deadline");
    }

    /// Reports and passes on whatever reaches it.
    struct Echo(u32);

    impl App for Echo {
        fn on_start(&mut self, _: &mut AppCx<'_>) {}
        fn on_event(&mut self, cx: &mut AppCx<'_>, _: AppEvent) {
            cx.signal(HostId(self.0), 1, Dur(1));
            cx.report(Job::default());
        }
    }

    #[test]
    fn a_table_hears_what_concerns_it_and_speaks_for_itself() {
        let part =
            |table, to| Part { table, transport: 0, deadline: Dur::MAX, app: Box::new(Echo(to)) };
        let mut mux = Mux::of(vec![part(2, 7), part(5, 8)], false);
        let (mut next_id, mut fx) = (MsgId(0), Vec::new());
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let (now, me, received) = (Time(0), HostId(0), 0);
        let mut cx = AppCx { now, me, draw, received, next_id: &mut next_id, fx: &mut fx };
        let key = MsgKey { src: HostId(3), id: MsgId(0) };
        mux.on_event(&mut cx, AppEvent::Signal { from: HostId(3), tag: 5, token: 0 });
        mux.on_event(&mut cx, AppEvent::Delivered { key, len: 1, tag: 2, token: 0 });
        let by = |to, tag| {
            let (to, token, after) = (HostId(to), 1, Dur(1));
            [
                AppEffect::Signal { to, token, after, tag },
                AppEffect::Job(Job { tag, ..Job::default() }),
            ]
        };
        assert_eq!(*cx.fx, [by(8, 5), by(7, 2)].concat());
        cx.fx.clear();
        mux.on_event(&mut cx, AppEvent::Acked(MsgId(0)));
        assert_eq!(cx.fx.len(), 4, "whose message that was, each knows itself");
    }
}
