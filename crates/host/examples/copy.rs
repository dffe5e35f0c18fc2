//! Copies a file from one host to another, over NDP.
//!
//! ```sh
//! cargo run --release -p trimline-host --example copy -- receive OUT 127.0.0.1:7001 127.0.0.1:7000
//! cargo run --release -p trimline-host --example copy -- send FILE 127.0.0.1:7000 127.0.0.1:7001
//! ```
//!
//! The file travels as messages of 1 MiB, in order on one channel; one without bytes ends it. A few
//! are under way at once. The memory that they are read into is lent to the node.

use std::collections::VecDeque;
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use transports::ndp::{Config as NdpConfig, Ndp};
use trimline_host::{Config, Limits, Manner, Node, bind};
use units::HostId;

const SENDER: HostId = HostId(0);
const RECEIVER: HostId = HostId(1);
const PIECE: u64 = 1 << 20;
const AT_ONCE: usize = 4;
const IN_ORDER: Manner = Manner { priority: 0, channel: 1 };
/// The other end may repeat its last packets so long.
const LINGER: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let bytes = copy(&args)?;
    println!("{bytes} bytes");
    Ok(())
}

/// Do what the arguments say. Returns how many bytes were copied.
pub(crate) fn copy(args: &[&str]) -> Result<u64, Box<dyn Error>> {
    let &[what, path, me, other] = args else {
        return Err("send FILE ME OTHER, or receive OUT ME OTHER; both are addresses".into());
    };
    let (me, other): (SocketAddr, SocketAddr) = (me.parse()?, other.parse()?);
    match what {
        "send" => send(File::open(path)?, &node(SENDER, [me, other])?),
        "receive" => receive(&mut File::create(path)?, &node(RECEIVER, [other, me])?),
        other => Err(format!("{other} is neither send nor receive").into()),
    }
}

/// Host `me` of two.
fn node(me: HostId, addrs: [SocketAddr; 2]) -> Result<Node, Box<dyn Error>> {
    let ndp = NdpConfig::processes(8_900);
    let socket = bind(addrs[me.0 as usize])?;
    let peers = [(SENDER, addrs[0]), (RECEIVER, addrs[1])].into();
    let config = Config::loopback(me, peers, 1);
    Ok(Node::start(config, socket, Box::new(Ndp::new(ndp)?), Limits::default())?)
}

fn send(mut file: File, node: &Node) -> Result<u64, Box<dyn Error>> {
    let mut under_way = VecDeque::new();
    let mut total = 0;
    loop {
        let mut piece = Vec::new();
        let len = Read::by_ref(&mut file).take(PIECE).read_to_end(&mut piece)?;
        under_way.push_back(node.send_as(RECEIVER, piece, IN_ORDER)?);
        while under_way.len() > if len == 0 { 0 } else { AT_ONCE }
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.wait()?;
        }
        if len == 0 {
            node.shutdown(LINGER)?;
            return Ok(total);
        }
        total += len as u64;
    }
}

fn receive(out: &mut File, node: &Node) -> Result<u64, Box<dyn Error>> {
    let mut total = 0;
    loop {
        let message = node.recv()?;
        if message.bytes.is_empty() {
            node.shutdown(LINGER)?;
            return Ok(total);
        }
        out.write_all(&message.bytes)?;
        total += message.bytes.len() as u64;
    }
}
