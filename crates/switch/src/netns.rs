//! A topology as network namespaces of this machine: one for each host and switch, joined by
//! virtual links (veth(4)). Made with `ip` of iproute2.
//!
//! Host n has address and MAC of [`wire::frame`] at its interface `net`; port k of a switch, in
//! the order of [`crate::Switch::ports`], is `p`k there. Everybody knows all MAC addresses, nobody
//! asks for them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fabric::{Node, Topology};
use nix::sched::{CloneFlags, setns};
use units::HostId;
use wire::frame::{address, mac};

use crate::offloads::disable_offloads;

/// Where `ip netns` keeps the names.
const NAMES: &str = "/run/netns";
/// The interface of a host.
pub const HOST_INTERFACE: &str = "net";

/// Why namespaces cannot be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// One of that name is there.
    #[error(
        "there is a network namespace {0} already: is it of an earlier run? Take it down first"
    )]
    Stale(String),
    /// `ip` said no.
    #[error(
        "`ip` of iproute2 failed ({0}): is it installed, and may you? Be root, or run inside \
             `unshare -Urnm` after `mount -t tmpfs tmpfs /run`"
    )]
    Ip(String),
    /// Something else did.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// What came of it.
        error: io::Error,
    },
}

/// The name of the namespace of `node`, of those that begin with `prefix`.
#[must_use]
pub fn name(prefix: &str, node: Node) -> String {
    match node {
        Node::Host(n) => format!("{prefix}-h{n}"),
        Node::Switch(tier, n) => format!("{prefix}-{tier}{n}"),
        Node::Plane(plane, tier, n) => format!("{prefix}-p{plane}{tier}{n}"),
    }
}

/// The names of all namespaces of `topology`, of those that begin with `prefix`.
#[must_use]
pub fn names(prefix: &str, topology: &Topology) -> Vec<String> {
    let mut nodes: Vec<Node> = topology.links().iter().map(|link| link.from).collect();
    nodes.dedup();
    nodes.into_iter().map(|node| name(prefix, node)).collect()
}

/// The namespaces that there are of those whose names begin with `prefix` and a dash.
#[must_use]
pub fn there(prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(NAMES).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let start = format!("{prefix}-");
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&start)).collect();
    names.sort_unstable();
    names
}

/// Whether there is a namespace of that name.
#[must_use]
pub fn exists(name: &str) -> bool {
    path(name).exists()
}

/// Make the namespaces of `topology`, with links that take IP packets of up to `mtu` bytes. All of
/// them, or none.
///
/// # Errors
/// One of them is there, or the kernel refuses.
pub fn up(prefix: &str, topology: &Topology, mtu: u32) -> Result<(), NetnsError> {
    let names = names(prefix, topology);
    if let Some(stale) = names.iter().find(|name| exists(name)) {
        return Err(NetnsError::Stale(stale.clone()));
    }
    let made = make(prefix, &names, topology, mtu);
    if made.is_err() {
        // What is there of them is ours: none was there before.
        let _ = down(names.iter().filter(|name| exists(name)));
    }
    made
}

/// Remove these namespaces and the links in them.
///
/// # Errors
/// The kernel refuses.
pub fn down<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), NetnsError> {
    let lines: Vec<String> = names.into_iter().map(|name| format!("netns del {name}")).collect();
    batch(&[], &lines)
}

/// Call `f` inside namespace `name`; what it starts and opens is there.
///
/// # Errors
/// There is no such namespace, or the caller may not enter it.
pub fn within<T: Send>(name: &str, f: impl FnOnce() -> T + Send) -> Result<T, NetnsError> {
    let error = |error| NetnsError::Io { what: format!("network namespace {name}"), error };
    let namespace = File::open(path(name)).map_err(error)?;
    let inside = move || {
        setns(&namespace, CloneFlags::CLONE_NEWNET)?;
        Ok(f())
    };
    // A namespace is the thread's.
    let result = std::thread::scope(|scope| scope.spawn(inside).join());
    result.unwrap_or_else(|_| Err(io::Error::other("a thread in it panicked"))).map_err(error)
}

fn path(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

fn make(prefix: &str, names: &[String], topology: &Topology, mtu: u32) -> Result<(), NetnsError> {
    let mut lines: Vec<String> = names.iter().map(|name| format!("netns add {name}")).collect();
    let ends = ends(topology);
    let both = ends.iter().filter(|end| end.node < end.peer);
    lines.extend(both.map(|end| {
        let (a, b) = (name(prefix, end.node), name(prefix, end.peer));
        let (a_if, b_if) = (&end.interface, &end.peer_interface);
        format!("link add {a_if} netns {a} type veth peer name {b_if} netns {b}")
    }));
    batch(&[], &lines)?;
    for name in names {
        let ends = ends.iter().filter(|end| self::name(prefix, end.node) == *name);
        let (mut lines, mut interfaces) = (Vec::new(), Vec::new());
        for end in ends {
            lines.extend(configure(end, topology.hosts(), mtu));
            interfaces.push(end.interface.clone());
        }
        batch(&["-n", name], &lines)?;
        let off = || interfaces.iter().try_for_each(|interface| disable_offloads(interface));
        within(name, off)?
            .map_err(|error| NetnsError::Io { what: format!("offloads in {name}"), error })?;
    }
    Ok(())
}

/// One end of a link.
struct End {
    node: Node,
    interface: String,
    peer: Node,
    peer_interface: String,
}

/// The ends of all links, by the nodes that they are at.
fn ends(topology: &Topology) -> Vec<End> {
    let interface = |at: Node, to: Node| match at {
        Node::Host(_) => HOST_INTERFACE.to_owned(),
        Node::Switch(..) | Node::Plane(..) => {
            let ports = topology.links().iter().filter(|link| link.from == at);
            format!("p{}", ports.take_while(|link| link.to != to).count())
        }
    };
    let end = |link: &fabric::Link| End {
        node: link.from,
        interface: interface(link.from, link.to),
        peer: link.to,
        peer_interface: interface(link.to, link.from),
    };
    topology.links().iter().map(end).collect()
}

/// The commands that make one end work.
fn configure(end: &End, hosts: u32, mtu: u32) -> Vec<String> {
    let interface = &end.interface;
    // No addresses of IPv6: nothing is to be sent unasked.
    let mut lines = vec![format!("link set dev {interface} addrgenmode none mtu {mtu}")];
    if let Node::Host(me) = end.node {
        lines.push(format!("link set dev {interface} address {}", hex(HostId(me))));
        // Alone: as one of a network, host 0 would have the address of the network itself.
        lines.push(format!("addr add {}/32 dev {interface}", dotted(HostId(me))));
        lines.push("link set dev lo up".to_owned());
    }
    lines.push(format!("link set dev {interface} up"));
    if let Node::Host(me) = end.node {
        lines.push(format!("route add 10.0.0.0/8 dev {interface}"));
        lines.extend((0..hosts).filter(|host| *host != me).map(HostId).map(|host| {
            let (ip, mac) = (dotted(host), hex(host));
            format!("neigh add {ip} lladdr {mac} dev {interface} nud permanent")
        }));
    }
    lines
}

fn dotted(host: HostId) -> std::net::Ipv4Addr {
    address(host).into()
}

fn hex(host: HostId) -> String {
    mac(host).map(|byte| format!("{byte:02x}")).join(":")
}

/// Let `ip` do what `lines` say.
fn batch(arguments: &[&str], lines: &[String]) -> Result<(), NetnsError> {
    let mut ip = Command::new("ip");
    ip.args(arguments).args(["-batch", "-"]).stdin(Stdio::piped());
    ip.stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: io::Error| NetnsError::Ip(error.to_string());
    let mut child = ip.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        let mut text = lines.join("\n");
        text.push('\n');
        stdin.write_all(text.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(NetnsError::Ip(said.lines().collect::<Vec<_>>().join("; ")))
        }
    }
}
