//! A key-value store: requests and responses over Homa.
//!
//! ```sh
//! cargo run --release -p trimline-host --example store -- serve 127.0.0.1:7001 127.0.0.1:7000
//! cargo run --release -p trimline-host --example store -- put 127.0.0.1:7000 127.0.0.1:7001 KEY VALUE
//! cargo run --release -p trimline-host --example store -- get 127.0.0.1:7000 127.0.0.1:7001 KEY
//! cargo run --release -p trimline-host --example store -- stop 127.0.0.1:7000 127.0.0.1:7001
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use transports::homa::{Config as HomaConfig, Cutoffs, Homa};
use trimline_host::{Config, Limits, Message, Node, bind};
use units::HostId;

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);
const PATIENCE: Duration = Duration::from_secs(5);

/// The first byte of a request.
const PUT: u8 = b'P';
const GET: u8 = b'G';
const STOP: u8 = b'S';

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    println!("{}", store(&args)?);
    Ok(())
}

/// Do what the arguments say. Returns what is to be printed.
pub(crate) fn store(args: &[&str]) -> Result<String, Box<dyn Error>> {
    let &[what, me, other, ref words @ ..] = args else {
        return Err("serve, put, get or stop; my address and the other's; KEY and VALUE".into());
    };
    let (me, other): (SocketAddr, SocketAddr) = (me.parse()?, other.parse()?);
    if what == "serve" {
        return serve(&node(SERVER, [other, me])?);
    }
    let request = match (what, words) {
        // A key has no zero byte: the first one ends it.
        ("put", [key, value]) => [&[PUT], key.as_bytes(), &[0], value.as_bytes()].concat(),
        ("get", [key]) => [&[GET], key.as_bytes()].concat(),
        ("stop", []) => vec![STOP],
        _ => return Err(format!("{what} {words:?}: put KEY VALUE, get KEY, or stop").into()),
    };
    let node = node(CLIENT, [me, other])?;
    let answer = node.request(SERVER, request)?.wait_timeout(PATIENCE)?;
    node.shutdown(PATIENCE)?;
    Ok(String::from_utf8_lossy(&answer.bytes).into_owned())
}

fn node(me: HostId, addrs: [SocketAddr; 2]) -> Result<Node, Box<dyn Error>> {
    // Unscheduled priorities for sizes as those of memcached, the paper's W1.
    let cutoffs = Cutoffs::new(&[433, 2_339, 6_756]).ok_or("cutoffs that do not rise")?;
    let homa = Homa::new(HomaConfig { payload: 1_400, ..HomaConfig::paper(cutoffs) })?;
    let peers = [(CLIENT, addrs[0]), (SERVER, addrs[1])].into();
    let config = Config::loopback(me, peers, 1);
    Ok(Node::start(config, bind(addrs[me.0 as usize])?, Box::new(homa), Limits::default())?)
}

fn serve(node: &Node) -> Result<String, Box<dyn Error>> {
    let mut values: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    loop {
        let request = node.recv()?;
        let stop = request.bytes == [STOP];
        let answer = if stop { b"stopped".to_vec() } else { answer(&mut values, &request) };
        let sent = node.respond(&request, answer)?;
        if stop {
            sent.wait_timeout(PATIENCE)?;
            node.shutdown(PATIENCE)?;
            return Ok(format!("{} keys", values.len()));
        }
    }
}

fn answer(values: &mut BTreeMap<Vec<u8>, Vec<u8>>, request: &Message) -> Vec<u8> {
    match request.bytes.split_first() {
        Some((&PUT, rest)) => match rest.iter().position(|&byte| byte == 0) {
            Some(end) => {
                let old = values.insert(rest[..end].to_vec(), rest[end + 1..].to_vec());
                if old.is_some() { b"replaced".to_vec() } else { b"stored".to_vec() }
            }
            None => b"a put without a value".to_vec(),
        },
        Some((&GET, key)) => values.get(key).cloned().unwrap_or_else(|| b"no such key".to_vec()),
        _ => b"neither put nor get".to_vec(),
    }
}
