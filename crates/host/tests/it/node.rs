//! [`Node`]: hosts that any thread and any executor uses.

use std::future::Future;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use endpoint::{Endpoint, FailReason};
use trimline_host::{Config, Limits, Manner, Node, NodeError, bind};
use units::HostId;

const LIMIT: Duration = Duration::from_secs(20);
const A: HostId = HostId(0);
const B: HostId = HostId(1);

/// Homa with timeouts of processes that may not run for milliseconds.
fn homa() -> Box<dyn Endpoint> {
    use transports::homa::{Config, Cutoffs, Homa};
    let cutoffs = Cutoffs::new(&[433, 2_339, 6_756]).unwrap();
    Box::new(Homa::new(Config { payload: 8_900, ..Config::paper(cutoffs) }).unwrap())
}

fn newreno() -> Box<dyn Endpoint> {
    use transports::tcp::{Config, Tcp};
    Box::new(Tcp::new(Config::processes(8_900)).unwrap())
}

type Make = fn() -> Box<dyn Endpoint>;

/// Both ends of loopback.
fn pair(endpoint: Make, limits: Limits) -> [Node; 2] {
    let sockets = [A, B].map(|_| bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let [a, b] = [0, 1].map(|n: usize| sockets[n].local_addr().unwrap());
    let mut me = [A, B].into_iter();
    sockets.map(|socket| {
        let config = Config::loopback(me.next().unwrap(), [(A, a), (B, b)].into(), 1);
        Node::start(config, socket, endpoint(), limits).unwrap()
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Bytes that no other message has.
fn bytes(n: usize) -> Vec<u8> {
    let len = 1 + n * n * 7 % 60_000;
    (0..len).map(|at| (at * 31 + n) as u8).collect()
}

#[test]
fn threads_send_and_receive_over_one_node() {
    for endpoint in [homa as Make, newreno] {
        let [a, b] = pair(endpoint, Limits::default());
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let a = a.clone();
                thread::spawn(move || {
                    for n in 0..50 {
                        a.send(B, bytes(4 * n + sender)).unwrap().wait_timeout(LIMIT).unwrap();
                    }
                })
            })
            .collect();
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let b = b.clone();
                thread::spawn(move || (0..100).map(|_| b.recv().unwrap()).collect::<Vec<_>>())
            })
            .collect();
        senders.into_iter().for_each(|thread| thread.join().unwrap());
        let got = receivers.into_iter().flat_map(|thread| thread.join().unwrap());
        let mut got: Vec<Vec<u8>> = got.map(|message| message.bytes).collect();
        let mut sent: Vec<Vec<u8>> = (0..200).map(bytes).collect();
        got.sort();
        sent.sort();
        assert!(got == sent);
        assert_eq!(a.shutdown(LIMIT).unwrap().acked, 200);
        assert_eq!(b.shutdown(LIMIT).unwrap().delivered, 200);
    }
}

#[test]
fn messages_of_a_channel_come_in_order() {
    let [a, b] = pair(newreno, Limits::default());
    let manner = Manner { channel: 3, priority: 1 };
    for n in 0..60 {
        a.send_as(B, bytes(60 - n), manner).unwrap();
    }
    for n in 0..60 {
        assert!(b.recv_timeout(LIMIT).unwrap().bytes == bytes(60 - n));
    }
}

#[test]
fn requests_are_answered_blocking_and_as_futures() {
    let [a, b] = pair(homa, Limits::default());
    let server = thread::spawn(move || {
        while let Ok(request) = b.recv() {
            if request.bytes == b"stop" {
                break;
            }
            let answer: Vec<u8> = request.bytes.iter().rev().copied().collect();
            b.respond(&request, answer).unwrap();
        }
        b
    });
    assert_eq!(a.request(B, &b"abc"[..]).unwrap().wait_timeout(LIMIT).unwrap().bytes, b"cba");
    let both = async {
        let (one, two) = (a.request_async(B, &b"one"[..]), a.request_async(B, &b"two"[..]));
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        (two.answer().await.unwrap().bytes, one.answer().await.unwrap().bytes)
    };
    assert_eq!(block_on(both), (b"owt".to_vec(), b"eno".to_vec()));

    a.send(B, &b"stop"[..]).unwrap().wait().unwrap();
    let b = server.join().unwrap();
    block_on(async {
        let sent = a.send_async(B, &b"plain"[..], Manner::default()).await.unwrap();
        let plain = b.recv_async().await.unwrap();
        sent.delivered().await.unwrap();
        assert!(!plain.is_request());
        assert_eq!(b.respond(&plain, &b"x"[..]).err(), Some(NodeError::NoRequest));
    });
    let unanswered = a.request(B, &b"hello"[..]).unwrap();
    assert!(b.recv().unwrap().is_request());
    let short = Duration::from_millis(20);
    assert_eq!(unanswered.wait_timeout(short), Err(NodeError::TimedOut(short)));
}

/// A peer that is bound and never reads.
fn deaf() -> (Node, UdpSocket) {
    let sockets = [A, B].map(|_| bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let [a, b] = [0, 1].map(|n: usize| sockets[n].local_addr().unwrap());
    let [socket, peer] = sockets;
    let config = Config::loopback(A, [(A, a), (B, b)].into(), 1);
    let limits = Limits { unsent: 10_000, ..Limits::default() };
    (Node::start(config, socket, newreno(), limits).unwrap(), peer)
}

#[test]
fn senders_wait_while_much_is_under_way_and_what_is_cancelled_makes_room() {
    let (a, _peer) = deaf();
    // As many as fit the limit and the queue behind it; each of them is more than half of it.
    let first = a.send(B, vec![0; 9_000]).unwrap();
    let second = a.send(B, vec![1; 9_000]).unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let filler = {
        let (a, sent) = (a.clone(), Arc::clone(&sent));
        thread::spawn(move || {
            while a.send(B, vec![2; 9_000]).is_ok() {
                sent.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    // The queue has 64 places; how soon they are full is the machine's.
    while sent.load(Ordering::Relaxed) < 64 {
        thread::sleep(Duration::from_millis(1));
    }
    let short = Duration::from_millis(50);
    assert_eq!(first.wait_timeout(short), Err(NodeError::TimedOut(short)));
    let waiting = sent.load(Ordering::Relaxed);
    assert_eq!(second.wait_timeout(short), Err(NodeError::TimedOut(short)));
    assert_eq!(sent.load(Ordering::Relaxed), waiting, "it waits");
    assert!(waiting <= 2 * 64, "{waiting} beside what is under way");
    for delivery in [first, second] {
        delivery.cancel();
        assert_eq!(delivery.wait_timeout(LIMIT), Err(NodeError::Failed(FailReason::Cancelled)));
    }
    a.shutdown(Duration::ZERO).unwrap();
    filler.join().unwrap();
    assert_eq!(a.send(B, vec![]).err(), Some(NodeError::Stopped));
}

#[test]
fn a_receiver_that_does_not_take_makes_its_peer_wait() {
    let limits = Limits { unread: 100_000, ..Limits::default() };
    let [a, b] = pair(homa, limits);
    let sent: Vec<_> = (0..50).map(|_| a.send(B, vec![7; 10_000]).unwrap()).collect();
    let there = |wait| sent.iter().filter(|d| d.wait_timeout(wait).is_ok()).count();
    let before = there(Duration::from_millis(10));
    assert!(before <= 12, "{before} messages of 10 KB where 100 KB are kept");
    for _ in 0..50 {
        assert_eq!(b.recv_timeout(LIMIT).unwrap().bytes, vec![7; 10_000]);
    }
}

#[test]
fn a_node_that_is_shut_down_or_dropped_lets_nobody_wait() {
    let [a, b] = pair(homa, Limits::default());
    let waiting = {
        let b = b.clone();
        thread::spawn(move || b.recv())
    };
    a.send(B, &b"last"[..]).unwrap();
    assert_eq!(waiting.join().unwrap().unwrap().bytes, b"last");
    let waiting = {
        let b = b.clone();
        thread::spawn(move || b.recv())
    };
    b.shutdown(LIMIT).unwrap();
    assert_eq!(waiting.join().unwrap(), Err(NodeError::Stopped));
    assert_eq!(b.request(A, &b"x"[..]).err(), Some(NodeError::Stopped));
    assert!(b.shutdown(LIMIT).is_err(), "only once");

    let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    let config = Config::loopback(A, [(A, addr)].into(), 1);
    drop(Node::start(config, socket, homa(), Limits::default()).unwrap());
    let start = std::time::Instant::now();
    while bind(addr).is_err() {
        assert!(start.elapsed() < LIMIT, "the dropped node keeps its address");
        thread::sleep(Duration::from_millis(5));
    }
}
