//! Where two threads meet: loopback, or the two ends of a virtual link, each in a network namespace
//! of its own.

use std::fs::File;
use std::net::SocketAddrV4;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;

use host::{Socket, Xdp, bind};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::gettid;
use rustix::thread::{CpuSet, sched_setaffinity};
use units::HostId;
use xdp::Filter;

pub(crate) const CLIENT: HostId = HostId(0);
pub(crate) const SERVER: HostId = HostId(1);

/// Where, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Sockets of the kernel, over loopback.
    Loopback,
    /// AF_XDP, over a virtual link.
    Frames,
}

/// The server's namespace, once there is a link to it.
static OTHER: OnceLock<File> = OnceLock::new();

/// Make the link, whose clients are in the calling thread. Why there can be none.
pub(crate) fn make_link() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("no network namespace: {error}"))?;
    sh("ip link set lo up")?;
    let (here, there) = channel();
    let (go, gone) = channel();
    let other = thread::spawn(move || -> Result<File, String> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
        let _ = here.send(gettid());
        let _ = gone.recv();
        configure(SERVER)?;
        File::open("/proc/thread-self/ns/net").map_err(|error| error.to_string())
    });
    let tid = there.recv().map_err(|error| error.to_string())?;
    sh(&format!("ip link add name net type veth peer name net netns {tid}"))?;
    configure(CLIENT)?;
    let _ = go.send(());
    let other = other.join().map_err(|_| "a thread failed")??;
    let _ = OTHER.set(other);
    xdp::Socket::open("net", Filter::All).map(drop).map_err(|error| error.to_string())
}

fn sh(script: &str) -> Result<(), String> {
    let status = Command::new("sh").args(["-c", script]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("failed: {script}")),
    }
}

fn configure(host: HostId) -> Result<(), String> {
    let ip = *at(Place::Frames, host).ip();
    sh(&format!("ip addr add {ip}/24 dev net && ip link set net addrgenmode none up"))
}

/// IP packets on the link have at most `mtu` bytes from now on.
pub(crate) fn set_mtu(mtu: usize) {
    let set = move || sh(&format!("ip link set net mtu {mtu}")).unwrap();
    set();
    thread::spawn(move || {
        enter();
        set();
    })
    .join()
    .unwrap();
}

fn enter() {
    let other = OTHER.get().expect("the link has been made");
    setns(other, CloneFlags::CLONE_NEWNET).unwrap();
}

/// Where a host listens.
pub(crate) fn at(place: Place, host: HostId) -> SocketAddrV4 {
    let n = host.0 as u8 + 1;
    match place {
        Place::Loopback => SocketAddrV4::new([127, 0, 0, 1].into(), 40_000 + u16::from(n)),
        Place::Frames => SocketAddrV4::new([10, 0, 0, n].into(), 4_000),
    }
}

/// Its socket; on the link it can only be made by a thread that is there.
pub(crate) fn socket(place: Place, host: HostId) -> Socket {
    let at = at(place, host);
    match place {
        Place::Loopback => bind(at.into()).unwrap().into(),
        Place::Frames => Xdp::bind(at).unwrap().into(),
    }
}

/// Keep this thread on core `core`, if there is one.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // On one core they take turns, and the figures show it.
    let _ = sched_setaffinity(None, &set);
}

/// Run `server` beside `client` until the client is done. Each is made by `prepare` or its like on
/// its own side, and the client begins when the server is there.
pub(crate) fn beside<S, T>(
    place: Place,
    prepare: impl FnOnce() -> S + Send + 'static,
    server: impl FnOnce(S, &AtomicBool) + Send + 'static,
    client: impl FnOnce() -> T,
) -> T {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let (started, other_core) = channel();
    let other = thread::spawn(move || {
        if place == Place::Frames {
            enter();
        }
        let prepared = prepare();
        pin(1);
        let _ = started.send(());
        server(prepared, &seen);
    });
    // It begins on this thread's core, and would never get there while this one spins.
    let _ = other_core.recv();
    pin(0);
    let result = client();
    stop.store(true, Ordering::Relaxed);
    other.join().unwrap();
    result
}
