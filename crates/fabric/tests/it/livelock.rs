//! Nothing hangs: calls or events that follow each other at one instant without end are found in
//! every loop, named, and end the run with what it has.

use endpoint::{AppCx, AppEvent, Cx, FailReason, Packet, Tx};
use trimline_fabric::{End, Events, RecentKind, Violated};
use units::{Dur, HostId, MsgKey, Time, TimerId};

use crate::contract::{NOTHING, Script, us, whole};

/// When it begins.
const WHEN: Time = us(5);

/// Host 3 begins at `WHEN`; the others have something to do then, too.
fn all_at_once(cx: &mut AppCx<'_>) {
    cx.arm(TimerId(0), WHEN);
}

/// How `script` ends: in the same way with either event queue, and with two threads.
fn ending(script: Script) -> Box<Violated> {
    let ways = [(Events::Heap, 1), (Events::Wheel, 2)];
    let ends = ways.map(|(events, threads)| whole(script, events, threads).unwrap_err());
    for violated in &ends {
        let (violation, outcome) = (&violated.violation, &violated.outcome);
        assert_eq!(violation.to_string(), ends[0].violation.to_string());
        assert_eq!((violation.at, outcome.end), (WHEN, End::Violated));
        assert!(outcome.now >= WHEN && outcome.links.len() > 4, "the outcome is whole");
    }
    let [first, ..] = ends;
    first
}

/// That it is a livelock of host 3, and how its last calls are named.
fn livelock(script: Script, kind: RecentKind) -> Box<Violated> {
    let violated = ending(script);
    let violation = &violated.violation;
    assert!(violation.what.starts_with("host 3: livelock: more than "), "{violation}");
    assert!(violation.what.ends_with(" calls at one instant"), "{violation}");
    assert_eq!(violation.recent.len(), 8, "{violation}");
    for recent in &violation.recent {
        let named = (recent.kind, recent.host, recent.at);
        assert_eq!(named, (kind, Some(HostId(3)), WHEN), "{violation}");
    }
    violated
}

fn on_host_3(cx: &mut AppCx<'_>) {
    if cx.me == HostId(3) {
        cx.submit(HostId(0), 100);
    }
}

#[test]
fn a_timer_that_rearms_for_now() {
    let submit = |cx: &mut Cx<'_>, _: &endpoint::Msg| cx.fx.arm(TimerId(7), cx.now);
    let timer = |cx: &mut Cx<'_>| cx.fx.arm(TimerId(7), cx.now);
    let script = Script { start: all_at_once, app_timer: on_host_3, submit, timer, ..NOTHING };
    let violated = livelock(script, RecentKind::Timer);
    assert!(violated.violation.recent.iter().all(|recent| recent.timer == Some(7)));
}

#[test]
fn a_poll_that_arms_a_timer_for_now() {
    let poll = |cx: &mut Cx<'_>, _: &mut Packet| {
        if cx.me == HostId(3) && cx.now >= WHEN {
            cx.fx.arm(TimerId(7), cx.now);
        }
        Tx::Idle
    };
    let script = Script { start: all_at_once, app_timer: on_host_3, poll, ..NOTHING };
    livelock(script, RecentKind::Timer);
}

#[test]
fn an_application_whose_timer_rearms_for_now() {
    let app_timer = |cx: &mut AppCx<'_>| {
        if cx.me == HostId(3) {
            cx.arm(TimerId(0), cx.now);
        }
    };
    livelock(Script { start: all_at_once, app_timer, ..NOTHING }, RecentKind::App);
}

/// The message is known here: the last one that failed.
#[test]
fn an_application_that_submits_again_what_fails_at_once() {
    let submit = |cx: &mut Cx<'_>, msg: &endpoint::Msg| {
        cx.fx.failed(MsgKey { src: cx.me, id: msg.id }, FailReason::Cancelled);
    };
    let event = |cx: &mut AppCx<'_>, _: AppEvent| {
        cx.submit(HostId(0), 100);
    };
    let start = all_at_once;
    let script = Script { start, app_timer: on_host_3, submit, event, ..NOTHING };
    let violated = livelock(script, RecentKind::Effect);
    assert_eq!(violated.violation.key.map(|key| key.src), Some(HostId(3)));
    assert!(violated.outcome.counters.failed > 1000, "counted all the same");
}

/// Another violation, while timers are due at the same instant: they must not keep the loop busy.
#[test]
fn a_violation_ends_the_instant() {
    let submit = |cx: &mut Cx<'_>, _: &endpoint::Msg| {
        for timer in 0..3 {
            cx.fx.arm(TimerId(timer), cx.now + Dur(1));
        }
    };
    // The same bytes twice.
    let timer = |cx: &mut Cx<'_>| {
        for _ in 0..2 {
            cx.fx.place(MsgKey { src: HostId(1), id: units::MsgId(0) }, 0, 100);
        }
    };
    let start = |cx: &mut AppCx<'_>| cx.arm(TimerId(0), Time(WHEN.0 - 1));
    let app_timer = |cx: &mut AppCx<'_>| {
        cx.submit(HostId(cx.me.0 ^ 1), 100);
    };
    let violated = ending(Script { start, app_timer, submit, timer, ..NOTHING });
    assert!(violated.violation.what.contains("placed twice"), "{violated}");
}
