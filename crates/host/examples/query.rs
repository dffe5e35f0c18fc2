//! A partition/aggregate query: one host asks all others at once and adds up what comes in time.
//! Their answers collide at its port, which is why the workload matters to transports (DCTCP,
//! SIGCOMM'10, section 2.1).
//!
//! ```sh
//! cargo run --release -p trimline-host --example query -- 8 1000000
//! ```
//!
//! All hosts are threads of one process: eight workers that hold the numbers below a million.

use std::error::Error;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use transports::ndp::{Config as NdpConfig, Ndp};
use trimline_host::{AddressBook, Config, Limits, Node, NodeError, bind};
use units::HostId;

const LINGER: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [workers, numbers] = args.as_slice() else {
        return Err("how many workers, and how many numbers".into());
    };
    let (sum, in_time) = query(workers.parse()?, numbers.parse()?, Duration::from_millis(500))?;
    println!("the sum is {sum}, of {in_time} workers");
    Ok(())
}

/// Ask `workers` hosts for the sum of the numbers below `numbers`, of which each holds a part.
/// Returns the sum and how many have answered before `deadline`.
pub(crate) fn query(
    workers: u32,
    numbers: u64,
    deadline: Duration,
) -> Result<(u64, u32), Box<dyn Error>> {
    let local: SocketAddr = ([127, 0, 0, 1], 0).into();
    let sockets = (0..=workers).map(|_| bind(local)).collect::<Result<Vec<_>, _>>()?;
    let mut peers = AddressBook::new();
    for (socket, host) in sockets.iter().zip(0..) {
        peers.insert(HostId(host), socket.local_addr()?);
    }
    let mut nodes = Vec::new();
    for (socket, host) in sockets.into_iter().zip(0..) {
        let ndp = NdpConfig::processes(1_400);
        let config = Config::loopback(HostId(host), peers.clone(), 1);
        nodes.push(Node::start(config, socket, Box::new(Ndp::new(ndp)?), Limits::default())?);
    }
    let root = nodes.remove(0);
    let serving: Vec<_> = nodes
        .into_iter()
        .zip(0..u64::from(workers))
        .map(|(node, part)| thread::spawn(move || work(&node, part, u64::from(workers), numbers)))
        .collect();
    let asked = (1..=workers)
        .map(|worker| root.request(HostId(worker), &b"sum"[..]))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sum = 0;
    let mut in_time = 0;
    let start = std::time::Instant::now();
    for reply in &asked {
        if let Ok(answer) = reply.wait_timeout(deadline.saturating_sub(start.elapsed())) {
            sum += u64::from_be_bytes(answer.bytes.as_slice().try_into()?);
            in_time += 1;
        }
    }
    for worker in 1..=workers {
        root.send(HostId(worker), &b"stop"[..])?.wait_timeout(LINGER)?;
    }
    root.shutdown(LINGER)?;
    for thread in serving {
        thread.join().map_err(|_| "a worker panicked")??;
    }
    Ok((sum, in_time))
}

/// Answer with the sum of every `of`-th number from `part` on, until told to stop.
fn work(node: &Node, part: u64, of: u64, numbers: u64) -> Result<(), NodeError> {
    loop {
        let request = node.recv()?;
        if !request.is_request() {
            let _ = node.shutdown(LINGER);
            return Ok(());
        }
        let sum: u64 = (part..numbers).step_by(of as usize).sum();
        node.respond(&request, sum.to_be_bytes().to_vec())?;
    }
}
