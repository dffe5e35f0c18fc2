//! Kernel TCP through the software switch, as a witness beside `trimline testbed`: seven senders to
//! one, 1 Gb/s, 64 KB of drop-tail. Prints the last completion over the time that the last link
//! needs for all bytes, for each round, and the processor time of senders, receiver and switch for
//! a packet of data.
//!
//! ```text
//! unshare -Urnm sh -c 'mount -t tmpfs tmpfs /run && \
//!     cargo run --release -p trimline-switch --example witness -- cubic 100000 9000 5'
//! ```

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Instant, SystemTime};

use endpoint::Framing;
use fabric::{Config, LinkSpec, Node, Tier, Topology};
use queues::{Capacity, DropTailSpec};
use rustix::time::{ClockId, clock_gettime};
use trimline_switch::{Backend, Harm, Interface, Options, Switch, netns, run};
use units::{Dur, HostId, Rate};
use wire::frame::address;

const SENDERS: u32 = 7;
const LINK: LinkSpec = LinkSpec { rate: Rate(1_000_000_000), delay: Dur(1) };
const SWITCH: Node = Node::Switch(Tier::Tor, 0);
const PREFIX: &str = "witness";
/// Of IPv4 and TCP, with its timestamps.
const HEADERS: u64 = 20 + 20 + 12;

/// Processor time of the threads of senders, receiver and switch, ns.
static CPU: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Add this thread's processor time so far to that of `who`.
fn count(who: usize) {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    CPU[who].fetch_add(ns, Ordering::Relaxed);
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "witness CONGESTION_CONTROL BYTES MTU ROUNDS";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [control, size, mtu, rounds] = args.as_slice() else { return Err(usage.into()) };
    let (size, mtu, rounds): (u64, u64, u32) = (size.parse()?, mtu.parse()?, rounds.parse()?);
    let topology = Arc::new(Topology::star(SENDERS + 1, LINK)?);
    netns::up(PREFIX, &topology, u32::try_from(mtu)?)?;
    let stop = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        let switch = scope.spawn(|| switch(&topology, &stop));
        let done = (0..rounds).try_for_each(|_| {
            let took = incast(control, size)?;
            let packets = size.div_ceil(mtu - HEADERS);
            let wire = u64::from(SENDERS) * (size + packets * HEADERS);
            let least = LINK.rate.serialise(wire).as_s_f64();
            println!("{control} {size} B, MTU {mtu}: {:.1} us, {:.3}", took * 1e6, took / least);
            Ok::<(), Box<dyn Error>>(())
        });
        stop.store(true, Ordering::Relaxed);
        let _ = switch.join();
        let packets = u64::from(rounds * SENDERS) * size.div_ceil(mtu - HEADERS);
        let each = |who: usize| CPU[who].load(Ordering::Relaxed) as f64 / 1e3 / packets as f64;
        let [senders, receiver, switch] = [0, 1, 2].map(each);
        println!(
            "CPU a packet, us: senders {senders:.2}, receiver {receiver:.2}, switch {switch:.2}"
        );
        done
    });
    netns::down(&netns::there(PREFIX))?;
    done
}

fn switch(topology: &Arc<Topology>, stop: &AtomicBool) {
    let queue = DropTailSpec { capacity: Capacity::Bytes(64_000), ecn_threshold: None };
    let config = config(queue.into());
    let inside = || {
        let ports = (0..=SENDERS).map(|n| Interface::open(&format!("p{n}"), Backend::Packet));
        let mut ports = ports.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let mut switch = Switch::new(topology, &config, SWITCH).map_err(|e| e.to_string())?;
        let options =
            Options { harm: Harm::default(), seed: 1, start: SystemTime::now(), busy: false };
        let go_on = |_: &Switch, _: &_| !stop.load(Ordering::Relaxed);
        let totals =
            run(&mut switch, &mut ports, options, None, go_on).map_err(|e| e.to_string())?;
        count(2);
        let dropped: u64 = switch.counters().map(|c| c.dropped).sum();
        println!("{dropped} dropped, {totals:?}");
        Ok::<(), String>(())
    };
    match netns::within(&netns::name(PREFIX, SWITCH), inside) {
        Ok(Ok(())) => {}
        other => eprintln!("{other:?}"),
    }
}

/// One round: seconds from the first byte that may be sent to the last one received.
fn incast(control: &str, size: u64) -> Result<f64, Box<dyn Error>> {
    let at = SocketAddr::from((address(HostId(0)), 5_000));
    let inside = |n: u32| netns::name(PREFIX, Node::Host(n));
    let listener = netns::within(&inside(0), || TcpListener::bind(at))??;
    for n in 1..=SENDERS {
        let choose = || std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", control);
        netns::within(&inside(n), choose)?.map_err(|error| {
            format!(
                "{control}: {error}: is it in net.ipv4.tcp_allowed_congestion_control, where the \
                 machine's root can put it?"
            )
        })?;
    }
    let begin = Barrier::new(SENDERS as usize + 1);
    std::thread::scope(|scope| {
        let (begin, listener) = (&begin, &listener);
        let sender = |n: u32| {
            let connect = || TcpStream::connect(at);
            scope.spawn(move || {
                let stream = netns::within(&inside(n), connect);
                begin.wait();
                let mut stream = stream.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
                let sent = stream.write_all(&vec![7; size as usize]);
                count(0);
                sent.map_err(|e| e.to_string())
            })
        };
        let senders: Vec<_> = (1..=SENDERS).map(sender).collect();
        let streams = (0..SENDERS).map(|_| listener.accept().map(|(stream, _)| stream));
        let streams = streams.collect::<Result<Vec<TcpStream>, _>>()?;
        begin.wait();
        let start = Instant::now();
        let read = |mut stream: TcpStream| {
            scope.spawn(move || {
                let read = stream.read_to_end(&mut Vec::new());
                count(1);
                read
            })
        };
        let readers: Vec<_> = streams.into_iter().map(read).collect();
        for reader in readers {
            let read = reader.join().map_err(|_| "a reader panicked")??;
            assert_eq!(read as u64, size);
        }
        let took = start.elapsed().as_secs_f64();
        for sender in senders {
            sender.join().map_err(|_| "a sender panicked")??;
        }
        Ok(took)
    })
}

/// A fabric with such queues; of the rest the switch looks at seed and routing alone.
fn config(queue: queues::QueueSpec) -> Config {
    Config {
        grid: Dur::from_ms(1),
        check: false,
        ..Config::new(1, Framing { payload: 9_000, overhead: 64 }, queue)
    }
}
