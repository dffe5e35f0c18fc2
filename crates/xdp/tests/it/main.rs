//! Sockets at both ends of a virtual link, in a network namespace of the test's own. As root;
//! elsewhere they say that they are skipped, and why.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use trimline_xdp::{Filter, OpenError, Socket};

/// Call `test` where interfaces `left` and `right` are the ends of a link for IP packets of `mtu`
/// bytes.
fn with_link(mtu: usize, test: impl FnOnce() + Send) {
    let inside = || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            println!("skipped: no network namespace: {error}");
            return;
        }
        let lines = format!(
            "ip link add name left mtu {mtu} type veth peer name right mtu {mtu} && \
             ip addr add 10.9.0.2/24 dev right && \
             ip link set dev left addrgenmode none up && \
             ip link set dev right addrgenmode none up"
        );
        assert!(Command::new("sh").args(["-c", &lines]).status().unwrap().success(), "{lines}");
        let refused = Socket::open("left", Filter::All).err();
        match refused {
            Some(error @ OpenError::Forbidden(_)) => println!("skipped: {error}"),
            _ => test(),
        }
    };
    // A namespace is the thread's, and goes with it.
    std::thread::scope(|scope| scope.spawn(inside).join().unwrap());
}

fn pair() -> (Socket, Socket) {
    (Socket::open("left", Filter::All).unwrap(), Socket::open("right", Filter::All).unwrap())
}

/// A frame of `len` bytes, of a kind that no kernel answers (local experimental EtherType 1, IEEE
/// 802), with a content of its own.
fn frame(n: u32, len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|at| (at as u32 * 31 + n) as u8).collect();
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    frame
}

fn push(socket: &mut Socket, frame: &[u8]) {
    socket.slot().unwrap()[..frame.len()].copy_from_slice(frame);
    socket.push(frame.len(), 0);
}

/// Frames that arrive until there are `n`, or for a second.
fn take(socket: &mut Socket, n: usize) -> Vec<Vec<u8>> {
    let (mut frames, begun) = (Vec::new(), Instant::now());
    while frames.len() < n && begun.elapsed() < Duration::from_secs(1) {
        let some = socket.receive();
        frames.extend((0..some).map(|n| socket.frame(n).to_vec()));
    }
    frames
}

fn cross(lens: impl Iterator<Item = usize>) {
    let (mut a, mut b) = pair();
    for (n, len) in (0..).zip(lens) {
        let sent = frame(n, len);
        push(&mut a, &sent);
        assert!(a.flush().unwrap() && !a.is_loaded());
        assert_eq!(take(&mut b, 1), std::slice::from_ref(&sent), "{n}: {len} bytes");
        push(&mut b, &sent);
        assert!(b.flush().unwrap());
        assert_eq!(take(&mut a, 1), [sent], "{n}: {len} bytes, back");
    }
    assert_eq!((a.lost().unwrap(), b.lost().unwrap()), (0, 0));
}

#[test]
fn frames_cross_both_ways_as_they_were() {
    with_link(1500, || cross((14..=1514).step_by(50).chain([1514])));
}

/// More than a chunk, and every number of chunks that such a frame takes.
#[test]
fn long_frames_cross_in_parts() {
    with_link(9000, || cross((14..=9014).step_by(333).chain([4095, 4096, 4097, 8192, 8193, 9014])));
}

/// Ten times as many as there are chunks: all come back.
#[test]
fn many_frames_cross_in_order() {
    for mtu in [1500, 9000] {
        with_link(mtu, move || {
            let (mut a, mut b) = pair();
            let (mut sent, mut received) = (0, 0);
            while received < 10_240 {
                for _ in 0..a.room().min(40) {
                    push(&mut a, &frame(sent, mtu + 14));
                    sent += 1;
                }
                a.flush().unwrap();
                let some = take(&mut b, (sent - received) as usize);
                assert_eq!(some.len(), (sent - received) as usize);
                for got in some {
                    assert_eq!(got, frame(received, mtu + 14));
                    received += 1;
                }
            }
        });
    }
}

#[test]
fn without_room_there_is_no_slot() {
    with_link(1500, || {
        let mut a = Socket::open("left", Filter::All).unwrap();
        let room = a.room();
        assert_eq!(room, 1024);
        (0..room).for_each(|n| push(&mut a, &frame(n as u32, 100)));
        assert!(a.slot().is_none() && a.is_loaded());
    });
}

/// An IPv4 packet with UDP, from 10.9.0.1 to 10.9.0.2 unless `change` says otherwise.
fn datagram(port: u16, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + 8 + 5];
    frame[..12].fill(0xff);
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&(20_u16 + 8 + 5).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame[38..40].copy_from_slice(&(8_u16 + 5).to_be_bytes());
    frame[42..].copy_from_slice(b"hello");
    change(&mut frame);
    let sum: u32 = frame[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn what_the_filter_does_not_name_goes_to_the_kernel() {
    with_link(1500, || {
        let address = Ipv4Addr::new(10, 9, 0, 2);
        let mut a = Socket::open("left", Filter::All).unwrap();
        let mut b = Socket::open("right", Filter::Udp { address, port: 700, ports: 1 }).unwrap();
        let kernel = UdpSocket::bind((address, 701)).unwrap();
        kernel.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let ours = datagram(700, |_| {});
        let others: [Vec<u8>; 6] = [
            datagram(701, |_| {}),
            datagram(700, |frame| frame[33] = 3),
            datagram(700, |frame| frame[23] = 6),
            datagram(700, |frame| frame[20] = 0x20),
            datagram(700, |frame| frame[12] = 0x86),
            datagram(700, |frame| frame[14] = 0x46),
        ];
        for frame in [&ours].into_iter().chain(&others).chain([&ours]) {
            push(&mut a, frame);
        }
        a.flush().unwrap();
        assert_eq!(take(&mut b, 2), [ours.clone(), ours]);
        assert_eq!(take(&mut b, 1).len(), 0);
        let mut bytes = [0; 10];
        assert_eq!(kernel.recv(&mut bytes).unwrap(), 5);
    });
}

#[test]
fn a_queue_serves_one_socket_and_then_the_next() {
    with_link(1500, || {
        let first = Socket::open("left", Filter::All).unwrap();
        let error = Socket::open("left", Filter::All).err().unwrap();
        assert!(matches!(error, OpenError::Busy(_)), "{error}");
        drop(first);
        for n in 0..5 {
            let (mut a, mut b) = pair();
            push(&mut a, &frame(n, 60));
            a.flush().unwrap();
            assert_eq!(take(&mut b, 1), [frame(n, 60)]);
        }
    });
}

#[test]
fn interfaces_that_cannot_be_are_refused_with_what_to_do() {
    with_link(1500, || {
        let error = Socket::open("nowhere0", Filter::All).err().unwrap().to_string();
        assert!(error.contains("no interface nowhere0") && error.contains("left"), "{error}");
        let lines = "ip link add name several numrxqueues 4 numtxqueues 4 type veth peer name d \
                     numrxqueues 4 numtxqueues 4";
        assert!(Command::new("sh").args(["-c", lines]).status().unwrap().success());
        let error = Socket::open("several", Filter::All).err().unwrap().to_string();
        assert!(error.contains("4 receive queues"), "{error}");
    });
}
