//! The loop against scripted endpoints. A host whose only peer is itself needs no second process.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use endpoint::{Flags, RangeSet, Span, TimerId, UNBOUNDED};
use units::HostId;
use wire::shim::ShimRepr;

use super::*;
use crate::{Fate, Pattern, bind};

const ME: HostId = HostId(0);
const LIMIT: Dur = Dur::from_ms(2_000);

/// A call of the endpoint.
#[derive(Clone, Copy, Debug)]
enum Call {
    Submit(Msg),
    Packet(Packet),
    Timer(u32),
    Poll,
    Cancel(u64),
    Room(u64),
    Sent(u32, Time),
}

/// What a script answers.
enum Answer {
    Default,
    Full,
    Send(Packet),
    NotBefore(Time),
}

/// An endpoint that is a closure.
struct Script<F>(F);

impl<F: FnMut(&mut Cx<'_>, Call) -> Answer + Send> Endpoint for Script<F> {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        match (self.0)(cx, Call::Submit(*msg)) {
            Answer::Full => Submit::Full,
            _ => Submit::Taken,
        }
    }
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        (self.0)(cx, Call::Packet(*pkt));
    }
    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        (self.0)(cx, Call::Timer(id.0));
    }
    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        match (self.0)(cx, Call::Poll) {
            Answer::Send(pkt) => {
                *slot = pkt;
                Tx::Sent
            }
            Answer::NotBefore(at) => Tx::NotBefore(at),
            _ => Tx::Idle,
        }
    }
    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        (self.0)(cx, Call::Cancel(id.0));
    }
    fn on_room(&mut self, cx: &mut Cx<'_>) {
        let room = cx.room;
        (self.0)(cx, Call::Room(room));
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, at: Time) {
        (self.0)(cx, Call::Sent(token, at));
    }
}

/// An application that asks for everything at once and keeps what it is told.
#[derive(Default)]
struct Wishes {
    wishes: Vec<AppEffect>,
    told: Vec<AppEvent>,
    timers: Vec<u32>,
}

impl App for Wishes {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        cx.fx.append(&mut self.wishes);
    }
    fn on_event(&mut self, _: &mut AppCx<'_>, event: AppEvent) {
        self.told.push(event);
    }
    fn on_timer(&mut self, _: &mut AppCx<'_>, id: TimerId) {
        self.timers.push(id.0);
    }
}

fn submit(id: u64, len: u64) -> AppEffect {
    let msg = Msg { id: MsgId(id), ..Msg::new(ME, len) };
    AppEffect::Submit { msg, tag: 0, token: 0 }
}

fn delivered(id: u64, len: u64) -> AppEvent {
    AppEvent::Delivered { key: key(id), len, tag: 0, token: 0 }
}

fn key(id: u64) -> MsgKey {
    MsgKey { src: ME, id: MsgId(id) }
}

fn data(msg: u64, offset: u64, len: u32) -> Packet {
    let span = Span { msg: MsgId(msg), offset, len };
    Packet { src: ME, dst: ME, span, wire_len: 64, ..Packet::EMPTY }
}

/// Run an endpoint with `wishes` until it has sent `()` through the channel that it is made with.
fn run_script<F>(
    wishes: Vec<AppEffect>,
    script: impl FnOnce(Sender<()>) -> F,
) -> (Result<bool, Error>, Wishes, Counters)
where
    F: FnMut(&mut Cx<'_>, Call) -> Answer + Send + 'static,
{
    let mut app = Wishes { wishes, ..Wishes::default() };
    let (finish, finished) = channel();
    let endpoint = Box::new(Script(script(finish)));
    let mut content = Pattern::default();
    let mut host = host(endpoint, &mut app, &mut content).0;
    let result = host.run(LIMIT, |_| finished.try_recv().is_ok());
    let counters = *host.counters();
    drop(host);
    (result, app, counters)
}

/// A host that knows only itself, and its address.
fn host<'a>(
    endpoint: Box<dyn Endpoint>,
    app: &'a mut dyn App,
    content: &'a mut dyn Content,
) -> (Host<'a>, std::net::SocketAddr) {
    let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    let config = Config {
        max_message: 10_000,
        incarnation: 3,
        ..Config::loopback(ME, [(ME, addr)].into(), 1)
    };
    (Host::new(config, socket, endpoint, app, content).unwrap(), addr)
}

fn violation(result: Result<bool, Error>) -> ContractViolation {
    match result {
        Err(Error::Contract(violation)) => violation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn timers_fire_once_in_order_and_not_early() {
    let (log, fired): (Sender<(u32, Time)>, Receiver<_>) = channel();
    let mut due = Time::ZERO;
    let (result, ..) = run_script(vec![submit(0, 1)], |finish| {
        move |cx, call| {
            match call {
                Call::Submit(_) => {
                    due = cx.now + Dur::from_ms(3);
                    cx.fx.arm(TimerId(5), cx.now + Dur::from_ms(1));
                    for id in [9, 5, 1, 7] {
                        cx.fx.arm(TimerId(id), due);
                    }
                    cx.fx.disarm(TimerId(7));
                    cx.fx.arm(TimerId(0), due + Dur::from_ms(1));
                }
                Call::Timer(id) => {
                    assert!(cx.now >= due, "{} is before {due}", cx.now);
                    log.send((id, cx.now)).unwrap();
                    if id == 0 {
                        finish.send(()).unwrap();
                    }
                }
                _ => {}
            }
            Answer::Default
        }
    });
    assert!(result.unwrap());
    let fired: Vec<_> = fired.try_iter().collect();
    assert_eq!(fired.iter().map(|f| f.0).collect::<Vec<_>>(), [1, 5, 9, 0]);
    assert!(fired.is_sorted_by_key(|f| f.1), "time never goes back");
}

#[test]
fn a_full_endpoint_is_offered_the_same_message_after_an_ack() {
    let (log, offers) = channel();
    let mut busy = false;
    let (result, app, _) = run_script((0..3).map(|id| submit(id, 1)).collect(), |finish| {
        move |cx, call| {
            match call {
                Call::Submit(msg) => {
                    log.send((msg.id.0, busy)).unwrap();
                    if busy {
                        return Answer::Full;
                    }
                    busy = true;
                    cx.fx.arm(TimerId(msg.id.0 as u32), cx.now + Dur::from_ms(1));
                }
                Call::Timer(id) => {
                    busy = false;
                    cx.fx.acked(MsgId(u64::from(id)));
                    if id == 2 {
                        finish.send(()).unwrap();
                    }
                }
                _ => {}
            }
            Answer::Default
        }
    });
    assert!(result.unwrap());
    let offers: Vec<_> = offers.try_iter().collect();
    assert_eq!(offers, [(0, false), (1, true), (1, false), (2, true), (2, false)]);
    assert_eq!(app.told, [0, 1, 2].map(|id| AppEvent::Acked(MsgId(id))));
}

#[test]
fn the_port_waits_as_long_as_it_is_told() {
    let mut hold = None;
    let (result, ..) = run_script(vec![], |finish| {
        move |cx, call| {
            if let Call::Poll = call {
                match hold {
                    None => {
                        hold = Some(cx.now + Dur::from_ms(4));
                        return Answer::NotBefore(cx.now + Dur::from_ms(4));
                    }
                    Some(t) => {
                        assert!(cx.now >= t, "nothing else has happened");
                        finish.send(()).unwrap();
                    }
                }
            }
            Answer::Default
        }
    });
    assert!(result.unwrap());
}

#[test]
fn not_before_now_is_a_breach() {
    let (result, ..) = run_script(vec![], |_| |cx, _| Answer::NotBefore(cx.now));
    assert!(matches!(violation(result), ContractViolation::NotLater { now, at } if now == at));
}

/// What an endpoint does in a call.
type Act = fn(&mut Effects);

/// Sends packets one by one, and does `effects` when each arrives.
fn on_arrival(mut pkts: Vec<Packet>, effects: Act) -> (Result<bool, Error>, Wishes, Counters) {
    run_script(vec![], |finish| {
        let mut left = pkts.len();
        move |cx, call| match call {
            Call::Poll => pkts.pop().map_or(Answer::Default, Answer::Send),
            Call::Packet(_) => {
                effects(cx.fx);
                left -= 1;
                if left == 0 {
                    finish.send(()).unwrap();
                }
                Answer::Default
            }
            _ => Answer::Default,
        }
    })
}

#[test]
fn only_bytes_of_the_packet_are_placed_and_only_once() {
    let pkt = data(3, 0, 50);
    let (result, app, counters) = on_arrival(vec![pkt], |fx| {
        fx.place(key(3), 0, 50);
        fx.delivered(key(3));
    });
    assert!(result.unwrap());
    assert_eq!(app.told, [delivered(3, 50)]);
    assert_eq!((counters.placed, counters.contradictions), (50, 0));

    let pkt = data(3, 100, 50);
    let trimmed = Packet { flags: Flags::TRIMMED, ..pkt };
    let cases: [(Packet, Act); 6] = [
        (pkt, |fx| fx.place(key(3), 110, 41)),
        (pkt, |fx| fx.place(key(3), 99, 10)),
        (Packet { span: Span { msg: MsgId(4), ..pkt.span }, ..pkt }, |fx| {
            fx.place(key(3), 100, 10);
        }),
        (trimmed, |fx| fx.place(key(3), 100, 50)),
        (pkt, |fx| {
            fx.place(key(3), 100, 30);
            fx.place(key(3), 129, 10);
        }),
        (pkt, |fx| {
            fx.place(key(3), 100, 50);
            fx.delivered(key(3));
        }),
    ];
    for (nth, (pkt, effects)) in cases.into_iter().enumerate() {
        // The second one is too late for a message that is over.
        let (result, app, counters) = on_arrival(vec![pkt, pkt], effects);
        assert!(result.unwrap(), "{nth}: the host goes on");
        assert_eq!(app.told, [AppEvent::Failed(key(3), FailReason::Refused)], "{nth}");
        assert!(counters.contradictions >= 2 && counters.delivered == 0, "{nth}: {counters:?}");
    }
}

#[test]
fn placing_without_a_packet_of_that_host_is_a_breach() {
    let foreign = MsgKey { src: HostId(7), id: MsgId(3) };
    let (result, ..) = run_script(vec![submit(0, 1)], |_| {
        |cx, call| {
            if let Call::Submit(_) = call {
                cx.fx.place(key(3), 0, 10);
            }
            Answer::Default
        }
    });
    assert_eq!(
        violation(result),
        ContractViolation::PlacedElsewhere { key: key(3), offset: 0, len: 10 }
    );
    let (result, ..) = on_arrival(vec![data(3, 0, 50)], |fx| {
        fx.place(MsgKey { src: HostId(7), id: MsgId(3) }, 0, 10);
    });
    assert_eq!(
        violation(result),
        ContractViolation::PlacedElsewhere { key: foreign, offset: 0, len: 10 }
    );
}

/// Keeps the first id and a draw of the life it is in.
#[derive(Default)]
struct Life(Vec<(MsgId, u64)>);

impl App for Life {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        self.0.push((*cx.next_id, cx.draw.bits(Purpose::new("test"), 0)));
    }
}

#[test]
fn lives_share_neither_ids_nor_draws() {
    let mut life = Life::default();
    for incarnation in [7, 8, 7] {
        let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = Config { incarnation, ..Config::loopback(ME, BTreeMap::new(), 1) };
        let mut content = Pattern::default();
        let endpoint = Box::new(Blast::default());
        let mut host = Host::new(config, socket, endpoint, &mut life, &mut content).unwrap();
        host.run(Dur::ZERO, |_| true).unwrap();
    }
    assert_eq!(life.0[0].0, MsgId(7 << 12));
    assert!(life.0[0].0 < life.0[1].0 && life.0[0].1 != life.0[1].1);
    assert_eq!(life.0[0], life.0[2], "the same life again: for tests");
}

#[test]
fn a_departure_is_stamped_and_an_arrival_comes_after_it() {
    let mut slot = Some(Packet { token: 77, ..data(0, 0, 1) });
    let mut stamp = None;
    let (result, ..) = run_script(vec![], |finish| {
        move |cx, call| {
            match call {
                Call::Poll => return slot.take().map_or(Answer::Default, Answer::Send),
                Call::Sent(token, at) => {
                    assert!(token == 77 && at <= cx.now);
                    stamp = Some(at);
                }
                Call::Packet(_) => {
                    let sent = stamp.expect("on_sent comes first");
                    assert!(sent <= cx.rx_at && cx.rx_at <= cx.now);
                    finish.send(()).unwrap();
                }
                _ => {}
            }
            Answer::Default
        }
    });
    assert!(result.unwrap());
}

/// In which order packets about these messages come that are chosen in one turn: those with payload
/// are written as what they are, control packets below zero.
fn order_of(chosen: &[i64]) -> Vec<i64> {
    let mut slots: Vec<Packet> =
        chosen.iter().rev().map(|&n| data(n.unsigned_abs(), 0, 1)).collect();
    for (slot, n) in slots.iter_mut().rev().zip(chosen) {
        slot.flags = if *n < 0 { Flags::CONTROL } else { slot.flags };
    }
    let (all, (come, came)) = (chosen.len(), channel());
    let (result, ..) = run_script(vec![], |finish| {
        let mut left = all;
        move |_, call| {
            match call {
                Call::Poll => return slots.pop().map_or(Answer::Default, Answer::Send),
                Call::Packet(pkt) => {
                    let n = pkt.span.msg.0 as i64;
                    come.send(if pkt.carries_payload() { n } else { -n }).unwrap();
                    left -= 1;
                    if left == 0 {
                        finish.send(()).unwrap();
                    }
                }
                _ => {}
            }
            Answer::Default
        }
    });
    assert!(result.unwrap());
    came.try_iter().collect()
}

#[test]
fn a_response_leaves_before_the_acknowledgement_of_its_request() {
    assert_eq!(order_of(&[-1, 2]), [2, -1]);
    assert_eq!(order_of(&[-1, -2, 3, 4, -5, 6]), [3, -1, -2, 4, -5, 6], "one packet goes before");
    assert_eq!(order_of(&[-1, -2, 1, 3]), [-1, -2, 1, 3], "not what announces it");
    assert_eq!(order_of(&[-1, -2]), [-1, -2]);
}

/// Of hosts that number from zero, as in testbeds.
#[test]
fn what_another_host_is_answered_does_not_keep_back_a_message_of_the_same_number() {
    let (response, mut answer) = (data(1, 0, 1), data(1, 0, 0));
    answer.flags = Flags::CONTROL;
    assert!(may_announce(&answer, &response));
    answer.dst = HostId(7);
    assert!(!may_announce(&answer, &response));
}

#[test]
fn beyond_the_limits_the_endpoint_does_not_even_see_a_packet() {
    let mut slots = vec![data(1, 0, 1), data(0, 9_999, 2)];
    let (result, _, counters) = run_script(vec![], |finish| {
        move |_, call| {
            match call {
                Call::Poll => return slots.pop().map_or(Answer::Default, Answer::Send),
                Call::Packet(pkt) => {
                    assert_eq!(pkt.span.msg, MsgId(1));
                    finish.send(()).unwrap();
                }
                _ => {}
            }
            Answer::Default
        }
    });
    assert!(result.unwrap());
    assert_eq!((counters.received, counters.refused), (2, 1));
}

#[test]
fn messages_to_nowhere_or_without_end_are_refused() {
    let mut stray = submit(0, 1);
    if let AppEffect::Submit { msg, .. } = &mut stray {
        msg.dst = HostId(9);
    }
    let wishes = vec![stray, submit(1, 10_001), submit(2, UNBOUNDED), submit(3, 10_000)];
    let (result, app, counters) = run_script(wishes, |finish| {
        move |_, call| {
            if let Call::Submit(msg) = call {
                assert_eq!(msg.id, MsgId(3));
                finish.send(()).unwrap();
            }
            Answer::Default
        }
    });
    assert!(result.unwrap());
    assert_eq!(app.told, [0, 1, 2].map(|id| AppEvent::Failed(key(id), FailReason::Refused)));
    assert_eq!((counters.submitted, counters.failed), (4, 3));
}

#[test]
fn a_cancel_reaches_the_message_wherever_it_is() {
    let cancel = |id| AppEffect::Cancel(MsgId(id));
    let wishes = vec![submit(0, 1), submit(1, 1), submit(2, 1), cancel(2), cancel(0)];
    let (result, app, _) = run_script(wishes, |finish| {
        move |cx, call| match call {
            Call::Submit(msg) if msg.id != MsgId(0) => Answer::Full,
            Call::Cancel(id) => {
                assert_eq!(id, 0, "2 is still with the host");
                cx.fx.failed(key(0), FailReason::Cancelled);
                finish.send(()).unwrap();
                Answer::Default
            }
            _ => Answer::Default,
        }
    });
    assert!(result.unwrap());
    assert_eq!(app.told, [2, 0].map(|id| AppEvent::Failed(key(id), FailReason::Cancelled)));
}

#[test]
fn applications_have_timers_and_signal_themselves_but_no_stranger() {
    let at = Time::ZERO + Dur::from_ms(2);
    let arm = |id, at| AppEffect::Arm { timer: TimerId(id), at };
    let signal = |to, token| AppEffect::Signal { to, token, after: Dur::from_ms(1), tag: 0 };
    let wishes = vec![arm(2, at), arm(1, at), signal(ME, 5), signal(ME, 6)];
    let mut app = Wishes { wishes, ..Wishes::default() };
    let mut content = Pattern::default();
    let idle = || Box::new(Script(|_: &mut Cx<'_>, _| Answer::Default));
    let finished = host(idle(), &mut app, &mut content).0.run(Dur::from_ms(200), |_| false);
    assert!(!finished.unwrap(), "stops at the limit");
    assert_eq!(app.timers, [1, 2]);
    assert_eq!(app.told, [5, 6].map(|token| AppEvent::Signal { from: ME, tag: 0, token }));

    app.wishes = vec![signal(HostId(1), 7)];
    let result = host(idle(), &mut app, &mut content).0.run(LIMIT, |_| false);
    assert!(matches!(result, Err(Error::Stranger(HostId(1)))));
}

/// Every packet at the sender's end is lost two times of three.
#[test]
fn what_applications_signal_and_say_crosses_the_network_once() {
    let sockets = [0, 1].map(|_| bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let peers: crate::AddressBook =
        (0..2).map(|n| (HostId(n), sockets[n as usize].local_addr().unwrap())).collect();
    let signal = |tag, token| AppEffect::Signal {
        to: HostId(1),
        token,
        after: Dur::from_ms(5 * u64::from(tag)),
        tag,
    };
    let message = |id, len, token| AppEffect::Submit {
        msg: Msg { id: MsgId(id), ..Msg::new(HostId(1), len) },
        tag: 9,
        token,
    };
    let wishes = vec![signal(3, 30), signal(2, 20), message(5, 3, 50), message(6, 0, 60)];
    let mut apps = [wishes, vec![]].map(|wishes| Wishes { wishes, ..Wishes::default() });
    let mut contents = [Pattern::default(), Pattern::default()];
    // Sends its messages as one packet each, until the other end has confirmed them.
    let endpoint = || {
        let mut waiting: Vec<Msg> = Vec::new();
        let mut confirm: Vec<Packet> = Vec::new();
        Box::new(Script(move |cx: &mut Cx<'_>, call| match call {
            Call::Submit(msg) => {
                waiting.push(msg);
                Answer::Default
            }
            Call::Packet(pkt) if pkt.flags.has(Flags::CONTROL) => {
                let there = waiting.iter().position(|msg| msg.id == pkt.span.msg);
                if let Some(msg) = there.map(|n| waiting.remove(n)) {
                    cx.fx.acked(msg.id);
                }
                Answer::Default
            }
            Call::Packet(pkt) => {
                let key = MsgKey { src: pkt.src, id: pkt.span.msg };
                if !confirm.iter().any(|seen| seen.span == pkt.span) {
                    cx.fx.place(key, 0, pkt.span.len);
                    cx.fx.delivered(key);
                }
                confirm.push(Packet {
                    src: pkt.dst,
                    dst: pkt.src,
                    flags: Flags::CONTROL,
                    hdr_len: 1,
                    ..pkt
                });
                Answer::Default
            }
            Call::Poll if confirm.last().is_some_and(|pkt| pkt.hdr_len == 1) => {
                let last = confirm.len() - 1;
                confirm[last].hdr_len = 0;
                Answer::Send(confirm[last])
            }
            Call::Poll => match waiting.pop() {
                Some(msg) => {
                    waiting.insert(0, msg);
                    let span = Span { msg: msg.id, offset: 0, len: msg.len as u32 };
                    let pkt = Packet { src: ME, dst: msg.dst, span, ..Packet::EMPTY };
                    Answer::Send(pkt)
                }
                None => Answer::Default,
            },
            _ => Answer::Default,
        }))
    };
    let mut hosts: Vec<Host<'_>> = sockets
        .into_iter()
        .zip(apps.iter_mut().zip(&mut contents))
        .zip(0..)
        .map(|((socket, (app, content)), n)| {
            let config = Config::loopback(HostId(n), peers.clone(), 1);
            let mut host = Host::new(config, socket, endpoint(), app, content).unwrap();
            host.set_faults(Box::new(|n| if n % 3 == 2 { Fate::Pass } else { Fate::Drop }));
            host
        })
        .collect();
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_secs(10) {
        let idle = hosts.iter_mut().map(|host| host.run(Dur::ZERO, |_| false).unwrap()).count();
        let quiet = hosts[0].signals.due().is_none() && hosts[0].later.is_empty();
        if idle == 2 && quiet && hosts[0].counters.acked == 2 {
            break;
        }
    }
    assert_eq!(hosts[0].counters.signals_lost, 0);
    assert!(hosts[0].outbox.is_empty());
    drop(hosts);
    let told = &apps[1].told;
    let signals: Vec<_> =
        told.iter().filter(|event| matches!(event, AppEvent::Signal { .. })).copied().collect();
    let expected = [(2, 20), (3, 30)];
    let from = HostId(0);
    assert_eq!(signals, expected.map(|(tag, token)| AppEvent::Signal { from, tag, token }));
    for (id, len, token) in [(5, 3, 50), (6, 0, 60)] {
        let there = AppEvent::Delivered { key: key(id), len, tag: 9, token };
        assert_eq!(told.iter().filter(|&&event| event == there).count(), 1, "{told:?}");
    }
    assert_eq!(contents[1].intact, 2);
}

/// Takes nothing at first, then everything.
struct Reluctant(std::cell::Cell<u64>);

impl Content for Reluctant {
    fn read(&mut self, _: MsgKey, _: u64, _: &mut [u8]) {}
    fn received(&mut self, _: MsgKey, _: Vec<u8>) {}
    fn room(&self) -> u64 {
        self.0.set(self.0.get() + 1);
        if self.0.get() < 20 { 0 } else { u64::MAX }
    }
}

#[test]
fn the_endpoint_hears_when_the_application_takes_data_again() {
    let (log, rooms) = channel();
    let endpoint = Script(move |_: &mut Cx<'_>, call| {
        if let Call::Room(room) = call {
            log.send(room).unwrap();
        }
        Answer::Default
    });
    let mut app = Wishes::default();
    let mut content = Reluctant(0.into());
    let mut host = host(Box::new(endpoint), &mut app, &mut content).0;
    let mut heard = None;
    assert!(host.run(LIMIT, |_| rooms.try_recv().map(|room| heard = Some(room)).is_ok()).unwrap());
    assert_eq!(heard, Some(u64::MAX));
    host.run(Dur::ZERO, |_| false).unwrap();
    assert!(rooms.try_recv().is_err(), "once");
}

/// A transport for a wire that loses nothing: packets of 1000 bytes with the message's length as
/// their header, and nothing back.
#[derive(Default)]
struct Blast {
    queue: VecDeque<Packet>,
    incoming: BTreeMap<MsgKey, RangeSet>,
}

impl Endpoint for Blast {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        for offset in (0..msg.len).step_by(1_000) {
            let len = (msg.len - offset).min(1_000) as u32;
            let mut pkt = Packet { hdr_len: 8, ..data(msg.id.0, offset, len) };
            pkt.hdr[..8].copy_from_slice(&msg.len.to_be_bytes());
            self.queue.push_back(pkt);
        }
        cx.fx.acked(msg.id);
        Submit::Taken
    }
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        let Ok(total) = pkt.header().try_into().map(u64::from_be_bytes) else { return };
        let end = pkt.span.offset + u64::from(pkt.span.len);
        let have = self.incoming.entry(key).or_default();
        let is_new = have.insert(pkt.span.offset..end) == u64::from(pkt.span.len);
        if pkt.carries_payload() && is_new {
            cx.fx.place(key, pkt.span.offset, pkt.span.len);
            if have.prefix() == total {
                cx.fx.delivered(key);
            }
        }
    }
    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}
    fn poll_tx(&mut self, _: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        self.queue.pop_front().map_or(Tx::Idle, |pkt| {
            *slot = pkt;
            Tx::Sent
        })
    }
}

#[test]
fn messages_arrive_whole_with_their_bytes() {
    let sizes = [1, 999, 1_000, 1_001, 10_000];
    let wishes = (0..).zip(sizes).map(|(id, len)| submit(id, len)).collect();
    let mut app = Wishes { wishes, ..Wishes::default() };
    let mut content = Pattern::default();
    let mut host = host(Box::new(Blast::default()), &mut app, &mut content).0;
    assert!(host.run(LIMIT, |c| c.delivered == 5).unwrap());
    assert_eq!(host.counters().placed, sizes.iter().sum());
    drop(host);
    assert_eq!(content, Pattern { intact: 5, damaged: vec![], bytes: sizes.iter().sum() });
    for (id, len) in (0..).zip(sizes) {
        assert!(app.told.contains(&delivered(id, len)));
    }
}

#[test]
fn random_datagrams_are_counted_and_never_stop_a_host() {
    let mut app = Wishes { wishes: vec![submit(0, 10_000)], ..Wishes::default() };
    let mut content = Pattern::default();
    let (mut host, addr) = host(Box::new(Blast::default()), &mut app, &mut content);
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let draw = Draw::new(3, Purpose::new("test"), 0);
    let below = |what, n, bound| draw.below(Purpose::new(what), n, bound);
    for n in 0..2_000 {
        let noise: Vec<u8> =
            (0..below("len", n, 120)).map(|i| below("byte", n << 8 | i, 256) as u8).collect();
        let mut bytes = vec![0; 200];
        if below("framed", n, 2) == 1 {
            let dst = HostId(below("dst", n, 2) as u32);
            let shim = ShimRepr { src: ME, dst, ..ShimRepr::default() };
            let len = shim.emit(&noise[..noise.len().min(64)], 0, &mut bytes).unwrap();
            bytes.truncate(len);
            wire::shim::seal(&mut bytes, None);
        } else {
            bytes = noise;
        }
        stranger.send_to(&bytes, addr).unwrap();
        let received = host.counters().received + 1;
        host.run(Dur(u64::MAX), |c| c.received >= received).unwrap();
    }
    host.run(Dur(u64::MAX), |c| c.delivered == 1).unwrap();
    let c = *host.counters();
    assert_eq!(c.malformed + c.misaddressed + c.unknown_peer, c.received - c.sent);
    assert!(c.malformed > 500 && c.misaddressed > 200 && c.unknown_peer > 200, "{c:?}");
    assert_eq!(content.intact, 1);
}
