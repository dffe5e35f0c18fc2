//! What a host's processor spends on packets that it refuses.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{TryRecvError, channel};

use host::{Config, Counters, Host, Key, Socket};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use units::{Dur, HostId, MsgId};
use wire::shim::{ShimRepr, seal};

use crate::place::{CLIENT, Place, SERVER, at, beside, socket};
use crate::{Sink, Zeros, config, ndp};

const PACKETS: u64 = 200_000;
const PAYLOAD: u16 = 1_400;

/// What is wrong with a packet, where that is counted, and whether its host has keys.
type Fault = (&'static str, fn() -> Vec<u8>, fn(&Counters) -> u64, bool);

const FAULTS: [Fault; 6] = [
    ("cut off", || datagram(|_| ())[..60].to_vec(), |c| c.malformed, false),
    ("damaged", damaged, |c| c.damaged, false),
    ("of a stranger", || datagram(|shim| shim.src = HostId(9)), |c| c.unknown_peer, false),
    ("for another life", || datagram(|shim| shim.dst_life = 9), |c| c.stale, false),
    ("far behind", || datagram(|shim| shim.offset = 1 << 40), |c| c.refused, false),
    ("with false tags", || datagram(|shim| shim.tagged = true), |c| c.forged, true),
];

/// A packet of the client's to the server, as `change` makes it.
fn datagram(change: fn(&mut ShimRepr)) -> Vec<u8> {
    let header = wire::ndp::Repr {
        connection: 1,
        kind: wire::ndp::Kind::Data(wire::ndp::Data {
            seq: 0,
            syn: true,
            last: false,
            retransmission: false,
            chopped: false,
            prio: 0,
            len: PAYLOAD,
            pacer_echo: None,
        }),
    };
    let mut shim = ShimRepr {
        src: CLIENT,
        dst: SERVER,
        proto: wire::ndp::PROTOCOL,
        wire_len: PAYLOAD + 64,
        msg: MsgId(1),
        span_len: PAYLOAD.into(),
        src_life: 1,
        ..ShimRepr::default()
    };
    change(&mut shim);
    let mut bytes = vec![0; 2_000];
    let len = shim.emit(&header.to_bytes(), PAYLOAD, &mut bytes).unwrap();
    bytes.truncate(len);
    seal(&mut bytes, None);
    bytes
}

fn damaged() -> Vec<u8> {
    let mut bytes = datagram(|_| ());
    bytes[1_000] ^= 1;
    bytes
}

/// A line for each fault: processor time for each refused packet, in the program and in the kernel.
pub(crate) fn rows() {
    println!("\n{:<26} {:>10} {:>10}", "refused packets, us each", "program", "kernel");
    for (name, bytes, count, keys) in FAULTS {
        let (user, system) = cost(&bytes(), count, keys);
        println!("{name:<26} {user:>10.2} {system:>10.2}");
    }
}

fn cost(bytes: &[u8], count: fn(&Counters) -> u64, keys: bool) -> (f64, f64) {
    let config = config(Place::Loopback, SERVER);
    let key = |&peer: &HostId| (peer, Key::new([1; 32]));
    let keys = if keys { config.peers.keys().map(key).collect() } else { Default::default() };
    let config = Config { keys, busy: false, trains: true, ..config };
    let (tell, told) = channel();
    let server = move |server: Socket, _: &AtomicBool| {
        let (mut app, mut content) = (Sink, Zeros::default());
        let mut host = Host::new(config, server, ndp(PAYLOAD), &mut app, &mut content).unwrap();
        let before = used();
        let done = host.run(Dur::from_ms(60_000), |c| count(c) >= PACKETS).unwrap();
        assert!(done, "{:?}", host.counters());
        let (counted, after) = (count(host.counters()) as f64, used());
        let _ = tell.send(((after.0 - before.0) / counted, (after.1 - before.1) / counted));
    };
    beside(
        Place::Loopback,
        || socket(Place::Loopback, SERVER),
        server,
        || {
            let attacker = UdpSocket::bind(at(Place::Loopback, CLIENT)).unwrap();
            let to = at(Place::Loopback, SERVER);
            loop {
                let _ = attacker.send_to(bytes, to);
                match told.try_recv() {
                    Ok(cost) => return cost,
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => panic!("the host has failed"),
                }
            }
        },
    )
}

/// Processor time of this thread in the program and in the kernel, us.
fn used() -> (f64, f64) {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    let us = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64;
    (us(usage.user_time()), us(usage.system_time()))
}
