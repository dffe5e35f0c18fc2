//! What a host remembers of a peer does not grow with the messages that come of it, whatever the
//! transport. Two hosts in one thread, so that the heap of one can be counted; `make soak` has ten
//! million messages.

use std::time::{Duration, Instant};

use endpoint::{App, AppCx, AppEvent};
use trimline_host::{AddressBook, Config, Host, Pattern};
use units::{Dur, HostId};

use crate::hostile::{Heap, socket};
use crate::subjects;

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
