//! The contract between the engine and what runs on its hosts: what endpoints and applications may
//! rely on, and what becomes of those that violate it. Each host follows a short script.

use std::ops::ControlFlow;

use endpoint::{App, AppCx, AppEvent, Cx, Endpoint, Framing, Msg, Packet, Submit, Tx, TxPort};
use queues::{Capacity, DropTailSpec, QueueSpec};
use trimline_fabric::{
    Config, End, Events, LinkSpec, Outcome, Sim, Threads, Topology, Violated, Violation,
};
use units::{Dur, HostId, MsgKey, Rate, Time, TimerId};

/// What every host does. By default, nothing.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    pub(crate) start: fn(&mut AppCx<'_>),
    pub(crate) app_timer: fn(&mut AppCx<'_>),
    pub(crate) event: fn(&mut AppCx<'_>, AppEvent),
    pub(crate) signal_delay: Option<Dur>,
    pub(crate) submit: fn(&mut Cx<'_>, &Msg),
    pub(crate) timer: fn(&mut Cx<'_>),
    pub(crate) poll: fn(&mut Cx<'_>, &mut Packet) -> Tx,
}

pub(crate) const NOTHING: Script = Script {
    start: |_| {},
    app_timer: |_| {},
    event: |_, _| {},
    signal_delay: None,
    submit: |_, _| {},
    timer: |_| {},
    poll: |_, _| Tx::Idle,
};

impl App for Script {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        (self.start)(cx);
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, _: TimerId) {
        (self.app_timer)(cx);
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        (self.event)(cx, event);
    }

    fn signal_delay(&self) -> Option<Dur> {
        self.signal_delay
    }
}

impl Endpoint for Script {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        (self.submit)(cx, msg);
        Submit::Taken
    }

    fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        (self.timer)(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        (self.poll)(cx, slot)
    }
}

/// Two racks of two hosts, all of which follow `script`; in two threads, each simulates one rack.
fn run(script: Script, events: Events, threads: u32) -> Result<Outcome, Violation> {
    whole(script, events, threads).map_err(|violated| violated.violation)
}

/// The same, with what there is after a violation.
pub(crate) fn whole(
    script: Script,
    events: Events,
    threads: u32,
) -> Result<Outcome, Box<Violated>> {
    let link = LinkSpec { rate: Rate(10_000_000_000), delay: Dur::from_us(1) };
    let topology = Topology::leaf_spine(2, 1, 2, link, link).unwrap();
    let capacity = Capacity::Bytes(100_000);
    let config = Config {
        reroute_after: Dur::from_us(20),
        events,
        threads: Threads::Fixed(threads),
        limit: us(400),
        sample_every: Some(Dur::from_us(3)),
        ..Config::new(
            1,
            Framing { payload: 1000, overhead: 64 },
            QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None }),
        )
    };
    let endpoints = (0..4).map(|_| Box::new(script) as Box<dyn Endpoint>).collect();
    let apps = (0..4).map(|_| Box::new(script) as Box<dyn App>).collect();
    let mut observer = ();
    let sim = Sim::new(topology, config, endpoints, apps, &mut observer).unwrap();
    sim.run(&mut |_| ControlFlow::Continue(()))
}

/// The invariant that hosts violate by following `script`: the same at any number of threads.
fn violation(script: Script) -> Violation {
    let [one, two] = [1, 2].map(|threads| run(script, Events::Wheel, threads).unwrap_err());
    assert_eq!(one.to_string(), two.to_string());
    two
}

pub(crate) const fn us(us: u64) -> Time {
    Time(Dur::from_us(us).0)
}

/// Host 3, the last of the second rack, has a message to send.
fn host_3_submits(cx: &mut AppCx<'_>) {
    if cx.me == HostId(3) {
        cx.submit(HostId(0), 100);
    }
}

#[test]
fn a_slot_arrives_cleared_whoever_was_polled_before() {
    let poll = |_: &mut Cx<'_>, slot: &mut Packet| {
        assert_eq!(format!("{slot:?}"), format!("{:?}", Packet::EMPTY));
        (slot.token, slot.hdr[0], slot.dst) = (9, 77, HostId(u32::MAX));
        Tx::Idle
    };
    let start = |cx: &mut AppCx<'_>| {
        cx.submit(HostId(cx.me.0 ^ 1), 100);
    };
    for threads in [1, 2] {
        run(Script { start, poll, ..NOTHING }, Events::Wheel, threads).unwrap();
    }
}

#[test]
fn a_violation_at_time_zero_is_not_forgotten() {
    // The sender says that its message is delivered: at the wrong host, and not a byte placed.
    let submit = |cx: &mut Cx<'_>, msg: &Msg| {
        cx.fx.delivered(MsgKey { src: cx.me, id: msg.id });
        cx.fx.acked(msg.id);
    };
    let at_once = Script { start: host_3_submits, submit, ..NOTHING };
    assert_eq!(violation(at_once).at, Time::ZERO);
    let start = |cx: &mut AppCx<'_>| cx.arm(TimerId(0), us(7));
    let later = Script { start, app_timer: host_3_submits, submit, ..NOTHING };
    assert_eq!(violation(later).at, us(7));
}

#[test]
fn a_violation_names_the_host() {
    let in_the_past = Script {
        start: host_3_submits,
        submit: |cx, _| cx.fx.arm(TimerId(0), us(2)),
        timer: |cx| cx.fx.arm(TimerId(0), us(1)),
        ..NOTHING
    };
    let not_later = Script {
        poll: |cx, _| if cx.me == HostId(3) { Tx::NotBefore(cx.now) } else { Tx::Idle },
        ..NOTHING
    };
    let empty_packet =
        Script { poll: |cx, _| if cx.me == HostId(3) { Tx::Sent } else { Tx::Idle }, ..NOTHING };
    for script in [in_the_past, not_later, empty_packet] {
        let what = violation(script).what;
        assert!(what.starts_with(&format!("{} ", HostId(3))), "{what}");
    }
}

#[test]
fn a_broken_host_ends_the_run_with_its_reason_and_blames_nobody() {
    let broken = Script {
        start: host_3_submits,
        submit: |cx, _| cx.fx.broken("the device is gone".into()),
        ..NOTHING
    };
    for threads in [1, 2] {
        let ended = whole(broken, Events::Wheel, threads).unwrap_err();
        let why = &ended.violation;
        assert_eq!(why.to_string(), format!("at 0ps: {}: the device is gone", HostId(3)));
        assert!(why.is_outside);
        assert_eq!(ended.outcome.end, End::Broken);
    }
    let defect = Script { timer: |cx| cx.fx.arm(TimerId(0), us(1)), ..NOTHING };
    let submit = |cx: &mut Cx<'_>, _: &Msg| cx.fx.arm(TimerId(0), us(2));
    assert!(!violation(Script { start: host_3_submits, submit, ..defect }).is_outside);
}

#[test]
fn a_signal_sooner_than_signal_delay_says_is_a_violation() {
    // The other host of the rack, then one of the other rack.
    let near: fn(&mut AppCx<'_>) = |cx| cx.signal(HostId(cx.me.0 ^ 1), 1, Dur::from_us(3));
    let far: fn(&mut AppCx<'_>) = |cx| cx.signal(HostId(cx.me.0 ^ 2), 1, Dur::from_us(3));
    for start in [near, far] {
        for signal_delay in [None, Some(Dur(Dur::from_us(3).0 + 1))] {
            let what = violation(Script { start, signal_delay, ..NOTHING }).what;
            assert!(what.contains("signal_delay"), "{what}");
        }
        for threads in [1, 2] {
            let kept = Script { start, signal_delay: Some(Dur::from_us(3)), ..NOTHING };
            run(kept, Events::Wheel, threads).unwrap();
        }
    }
}

#[test]
fn a_timer_moved_earlier_does_not_delay_the_end() {
    // Armed for 90 us at 1 us; moved to 5 us at 2 us.
    let start = |cx: &mut AppCx<'_>| {
        cx.arm(TimerId(0), us(1));
        cx.arm(TimerId(1), us(2));
    };
    let submit = |cx: &mut Cx<'_>, _: &Msg| {
        cx.fx.arm(TimerId(0), if cx.now == us(1) { us(90) } else { us(5) });
    };
    let script = Script { start, app_timer: host_3_submits, submit, ..NOTHING };
    for events in [Events::Heap, Events::Wheel] {
        for threads in [1, 2] {
            let outcome = run(script, events, threads).unwrap();
            let end = (outcome.end, outcome.now, outcome.samples.len());
            assert_eq!(end, (End::Idle, us(10), 3), "{events:?}, {threads} threads");
        }
    }
}
