//! What a host remembers of a peer does not grow with the messages that come of it, whatever the
//! transport. Two hosts in one thread, so that the heap of one can be counted; `make soak` has ten
//! million messages.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use endpoint::{App, AppCx, AppEvent};
use trimline_host::{AddressBook, Config, Host, Pattern, bind};
use units::{Dur, HostId};

use crate::hostile::{Heap, socket};
use crate::subjects;
use testkit::hostile::Subject;

const RECEIVER: HostId = HostId(0);
const SENDER: HostId = HostId(1);
/// Messages under way at a time.
const OUTSTANDING: u64 = 8;
/// The heap is looked at after so many messages,
const FEW: u64 = 400;
/// and after so many.
const MANY: u64 = 2_400;
/// By so much it may differ for each message between the two: less than the least that can be said
/// of one, but for what is under way and for tables that double.
const PER_MESSAGE: i64 = 16;
/// For what takes a second, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// Sends one message for each that is over, until so many have been.
struct Steady(u64);

impl Steady {
    fn submit(&mut self, cx: &mut AppCx<'_>) {
        if self.0 > 0 {
            self.0 -= 1;
            cx.submit(RECEIVER, 100);
        }
    }
}

impl App for Steady {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..OUTSTANDING {
            self.submit(cx);
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        if let AppEvent::Acked(_) = event {
            self.submit(cx);
        }
    }
}

#[test]
fn what_is_remembered_does_not_grow_with_the_messages() {
    subjects::each(|subject| {
        // The published NICs remember in tables of fixed sizes.
        if subject.endless || subject.name.ends_with("nano") {
            return;
        }
        let sockets = [RECEIVER, SENDER].map(|host| (host, socket()));
        let book: AddressBook =
            sockets.iter().map(|(host, socket)| (*host, socket.local_addr().unwrap())).collect();
        let [(_, receiver), (_, sender)] = sockets;
        let config = |me| Config::loopback(me, book.clone(), 1);
        let (mut idle, mut steady) = (Steady(0), Steady(MANY));
        let (mut taken, mut sent) = (Pattern::default(), Pattern::default());
        let mut heap = Heap::default();
        let mut host = heap.run(|| {
            let endpoint = (subject.make)(RECEIVER);
            Host::new(config(RECEIVER), receiver, endpoint, &mut idle, &mut taken).unwrap()
        });
        let endpoint = (subject.make)(SENDER);
        let mut peer = Host::new(config(SENDER), sender, endpoint, &mut steady, &mut sent).unwrap();
        let since = Instant::now();
        let mut after = |messages| {
            while peer.counters().acked < messages {
                assert!(since.elapsed() < PATIENCE, "{}: {:?}", subject.name, peer.counters());
                peer.run(Dur(1), |_| false).unwrap();
                heap.run(|| host.run(Dur(1), |_| false).unwrap());
            }
            heap.now
        };
        let (few, many) = (after(FEW), after(MANY));
        println!("{}: {few} B, then {many} B, {:?}", subject.name, since.elapsed());
        let growth = (many - few) / (MANY - FEW) as i64;
        assert!(growth < PER_MESSAGE, "{}: {few} B, then {many} B", subject.name);
    });
}

/// Sends long messages, and does not live to see them arrive.
struct Cut;

impl App for Cut {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..OUTSTANDING {
            cx.submit(RECEIVER, 50_000);
        }
    }
}

/// Each of so many lives of a sender ends with a short message that arrives; of what the others
/// send some comes.
const PERIOD: u64 = 12;

/// Bytes that are kept of a sender after each period of its lives.
fn kept_after_lives(subject: &Subject<'_>, periods: u64) -> Vec<i64> {
    let [receiver, sender] = [socket(), socket()];
    let at = |socket: &UdpSocket| socket.local_addr().unwrap();
    let book: AddressBook = [(RECEIVER, at(&receiver)), (SENDER, at(&sender))].into();
    let config = |me, incarnation| Config { incarnation, ..Config::loopback(me, book.clone(), 1) };
    let mut idle = Steady(0);
    let (mut taken, mut sent) = (Pattern::default(), Pattern::default());
    let mut heap = Heap::default();
    let mut host = heap.run(|| {
        let endpoint = (subject.make)(RECEIVER);
        Host::new(config(RECEIVER, 1), receiver, endpoint, &mut idle, &mut taken).unwrap()
    });
    let (mut sender, mut kept) = (Some(sender), Vec::new());
    for life in 1..=periods * PERIOD {
        let socket = sender.take().unwrap_or_else(|| bind(book[&SENDER]).unwrap());
        let is_last = life % PERIOD == 0;
        let (mut cut, mut steady) = (Cut, Steady(1));
        let app: &mut dyn App = if is_last { &mut steady } else { &mut cut };
        let endpoint = (subject.make)(SENDER);
        let mut peer = Host::new(config(SENDER, life), socket, endpoint, app, &mut sent).unwrap();
        let (before, since) = (host.counters().placed, Instant::now());
        // It is asked in which life it is, and then it is heard.
        while if is_last { peer.counters().acked == 0 } else { host.counters().placed == before } {
            assert!(since.elapsed() < PATIENCE, "{}: {:?}", subject.name, host.counters());
            peer.run(Dur(1), |_| false).unwrap();
            heap.run(|| host.run(Dur(1), |_| false).unwrap());
        }
        if is_last {
            kept.push(heap.now);
        }
    }
    kept
}

#[test]
fn what_a_peer_has_left_behind_in_former_lives_is_forgotten() {
    /// Of a period of lives, if each leaves a packet of a message.
    const LEAST_LEFT: i64 = 10_000;
    subjects::each(|subject| {
        if subject.endless || subject.name.ends_with("nano") {
            return;
        }
        let kept = kept_after_lives(subject, 3);
        println!("{}: {kept:?}", subject.name);
        assert!(kept[2] - kept[1] < LEAST_LEFT, "{}: {kept:?}", subject.name);
    });
}
