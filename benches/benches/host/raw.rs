//! What transports are compared with: plain packets, and the kernel's TCP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use xdp::{Filter, Socket};

use crate::place::{CLIENT, Place, SERVER, at, beside};
use crate::timed;

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// `packets` datagrams each way, as one who waits for data and its acknowledgement.
pub(crate) fn udp(size: usize, packets: usize) -> Vec<u64> {
    let [a, b] = [CLIENT, SERVER].map(|host| UdpSocket::bind(at(Place::Loopback, host)).unwrap());
    for socket in [&a, &b] {
        socket.set_nonblocking(true).unwrap();
    }
    let (to_a, to_b) = (a.local_addr().unwrap(), b.local_addr().unwrap());
    let server = move |b: UdpSocket, stop: &AtomicBool| {
        let mut buf = [0; 2_048];
        while !stop.load(Ordering::Relaxed) {
            if let Ok((len, _)) = b.recv_from(&mut buf) {
                b.send_to(&buf[..len], to_a).unwrap();
            }
        }
    };
    beside(
        Place::Loopback,
        || b,
        server,
        || {
            let mut buf = [0; 2_048];
            timed(|| {
                for _ in 0..packets {
                    a.send_to(&buf[..size], to_b).unwrap();
                }
                let mut left = packets;
                while left > 0 {
                    left -= usize::from(a.recv_from(&mut buf).is_ok());
                }
            })
        },
    )
}

fn fill(stream: &mut TcpStream, buf: &mut [u8], stop: &dyn Fn() -> bool) {
    let mut have = 0;
    while have < buf.len() && !stop() {
        have += stream.read(&mut buf[have..]).unwrap_or(0);
    }
}

fn nonblocking(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Over one connection.
pub(crate) fn tcp_kept(size: usize) -> Vec<u64> {
    let listener = TcpListener::bind(local()).unwrap();
    let to = listener.local_addr().unwrap();
    let server = move |listener: TcpListener, stop: &AtomicBool| {
        let mut stream = nonblocking(listener.accept().unwrap().0);
        let mut buf = vec![0; size];
        while !stop.load(Ordering::Relaxed) {
            fill(&mut stream, &mut buf, &|| stop.load(Ordering::Relaxed));
            let _ = stream.write_all(&buf);
        }
    };
    beside(
        Place::Loopback,
        || listener,
        server,
        || {
            let mut stream = nonblocking(TcpStream::connect(to).unwrap());
            let mut buf = vec![0; size];
            timed(|| {
                stream.write_all(&buf).unwrap();
                fill(&mut stream, &mut buf, &|| false);
            })
        },
    )
}

/// A connection for each request.
pub(crate) fn tcp_fresh(size: usize) -> Vec<u64> {
    let listener = TcpListener::bind(local()).unwrap();
    listener.set_nonblocking(true).unwrap();
    let to = listener.local_addr().unwrap();
    let server = move |listener: TcpListener, stop: &AtomicBool| {
        let mut buf = vec![0; size];
        while !stop.load(Ordering::Relaxed) {
            if let Ok((stream, _)) = listener.accept() {
                let mut stream = nonblocking(stream);
                fill(&mut stream, &mut buf, &|| stop.load(Ordering::Relaxed));
                let _ = stream.write_all(&buf);
            }
        }
    };
    beside(
        Place::Loopback,
        || listener,
        server,
        || {
            let mut buf = vec![0; size];
            timed(|| {
                let mut stream = nonblocking(TcpStream::connect(to).unwrap());
                stream.write_all(&buf).unwrap();
                fill(&mut stream, &mut buf, &|| false);
            })
        },
    )
}

/// Bytes of Ethernet, IPv4 and UDP before a datagram.
const HEADERS: usize = 14 + 20 + 8;

fn open() -> Socket {
    Socket::open("net", Filter::All).unwrap()
}

/// A frame of `len` bytes that no kernel answers.
fn push(socket: &mut Socket, len: usize) {
    let slot = socket.slot().unwrap();
    slot[..len].fill(0);
    slot[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    socket.push(len, 0);
}

/// Send every frame back, `together` at most with one call of the kernel.
fn echo(mut socket: Socket, together: usize, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let came = socket.receive();
        for n in 0..came {
            let len = socket.frame(n).len();
            push(&mut socket, len);
            if (n + 1) % together == 0 || n + 1 == came {
                socket.flush().unwrap();
            }
        }
    }
}

/// `packets` frames each way.
pub(crate) fn frames(size: usize, packets: usize) -> Vec<u64> {
    let server = |socket: Socket, stop: &AtomicBool| echo(socket, 1, stop);
    beside(Place::Frames, open, server, || {
        let mut socket = open();
        timed(|| {
            for _ in 0..packets {
                push(&mut socket, HEADERS + size);
                socket.flush().unwrap();
            }
            let mut left = packets;
            while left > 0 {
                left -= socket.receive();
            }
        })
    })
}

/// Gb/s of frames with `payload` bytes that arrive at the other end, which looks at each.
pub(crate) fn flood(payload: usize) -> f64 {
    const TIME: Duration = Duration::from_millis(300);
    let (count, counted) = std::sync::mpsc::channel();
    let server = move |mut socket: Socket, stop: &AtomicBool| {
        let (mut bytes, mut sum, begun) = (0, 0_u64, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            for n in 0..socket.receive() {
                let frame = socket.frame(n);
                bytes += frame.len() - HEADERS;
                sum += u64::from(frame[HEADERS]);
            }
        }
        let _ = count.send((bytes, sum, begun.elapsed()));
    };
    beside(Place::Frames, open, server, || {
        let mut socket = open();
        let begun = Instant::now();
        while begun.elapsed() < TIME {
            // No more than the interface at the other end keeps.
            for _ in 0..socket.room().min(32) {
                push(&mut socket, HEADERS + payload);
            }
            socket.flush().unwrap();
        }
    });
    let (bytes, _, time) = counted.recv().unwrap();
    8.0 * bytes as f64 / time.as_nanos() as f64
}

/// Million frames a second with `payload` bytes that go to the other end and come back, as data and
/// its acknowledgement do.
pub(crate) fn echoed(payload: usize, frames: u64) -> f64 {
    // Fewer than any ring on the way holds, so that none is lost.
    const AWAY: usize = 256;
    let server = |socket: Socket, stop: &AtomicBool| echo(socket, AWAY, stop);
    beside(Place::Frames, open, server, || {
        let mut socket = open();
        let (mut back, mut away) = (0, 0);
        let begun = Instant::now();
        while back < frames {
            for _ in 0..socket.room().min(32).min(AWAY - away) {
                push(&mut socket, HEADERS + payload);
                away += 1;
            }
            socket.flush().unwrap();
            let came = socket.receive();
            away -= came;
            back += came as u64;
        }
        back as f64 / begun.elapsed().as_secs_f64() / 1e6
    })
}
