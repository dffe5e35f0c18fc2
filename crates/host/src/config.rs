//! What a host is told about itself and its network.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use endpoint::Routes;
use units::{Dur, HostId, Rate};
use wire::shim::Key;

use crate::clock;

/// Where each host listens. A packet is believed only if it comes from its host's address.
pub type AddressBook = BTreeMap<HostId, SocketAddr>;

/// What endpoints are told of the way to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Paths to choose from, at least one.
    pub paths: u32,
    /// Links of the first path.
    pub hops: u32,
}

/// What a host is told about itself and its network.
#[derive(Clone, Debug)]
pub struct Config {
    /// This host.
    pub me: HostId,
    /// The others.
    pub peers: AddressBook,
    /// The key that this host shares with each of them, or no key at all. With keys, every packet
    /// has tags; what has none, or false ones, is ignored, and so is what is repeated: a peer's
    /// life counts only once it has answered, and packets that name no life of this host are none.
    /// Messages to a peer wait for that answer, one round trip.
    pub keys: BTreeMap<HostId, Key>,
    /// Seed of the endpoint's and the application's draws.
    pub seed: u64,
    /// Which life of this host this is: each start needs a larger number than all before it, so
    /// that its peers do not take its messages and connections for those of an earlier life. It
    /// is mixed into every draw, and message ids start at `incarnation << 12`. The lower 52 bits
    /// count, which in microseconds since 1970 is enough until 2112. A life must submit fewer than
    /// 4096 messages per step to the next life's number (in microseconds: 4 per nanosecond).
    pub incarnation: u64,
    /// When the host's time is zero: hosts that are to be compared have it in common.
    pub start: Instant,
    /// The nominal rate of the interface. Endpoints read it: a pull pacer derives its interval
    /// from it.
    pub rate: Rate,
    /// Whether the interface is busy for as long as a packet takes at `rate`, so that the next one
    /// is chosen after that. Otherwise it is as fast as the socket. What is late is made up for,
    /// as far as `lateness` goes.
    pub paced: bool,
    /// The largest `wire_len`, bytes.
    pub mtu: u16,
    /// The ways to other hosts: how many paths the network has, and over how many links the first
    /// leads. One path of one link to whom is not here.
    pub ways: BTreeMap<HostId, Way>,
    /// From how many ports packets leave, the same number for all hosts: one of path `p` leaves
    /// from port `p % source_ports` behind the host's own, so switches that hash ports (ECMP)
    /// spread them. Hosts at one address are as many ports apart. One: all leave from the host's
    /// own. Packets of several ports make no train.
    pub source_ports: u16,
    /// The round-trip time that endpoints are told to expect when nothing else is on the way.
    pub base_rtt: Dur,
    /// By how much this process, and those of its peers, may look at packets and timers late:
    /// pacers make up for that much, and who waits for an answer waits longer. Endpoints are told
    /// of it as [`endpoint::NetView::lateness`].
    pub lateness: Dur,
    /// The longest message that is sent or received, bytes. A packet beyond it is refused, so
    /// that a forged offset cannot claim memory.
    pub max_message: u64,
    /// The most bytes of unfinished messages that are kept; a packet beyond it is refused, unless
    /// it belongs to the unfinished message that began first: were that refused too, messages that
    /// fill the memory together could never finish. The most memory is therefore `max_buffered +
    /// max_message`. Behind its first 16 KiB a message takes pieces of 16 KiB, which count whole.
    pub max_buffered: u64,
    /// Packets to one host that follow one another share a system call (UDP GSO and GRO), where
    /// they have one class and one source port. Long messages are several times faster for it; a
    /// lone packet takes some microseconds longer.
    pub trains: bool,
    /// Never sleep: look for datagrams again and again. Takes a core, and saves being woken.
    pub busy: bool,
    /// The most datagrams received, and the most sent, in one turn of the loop.
    pub batch: usize,
}

impl Config {
    /// Loopback between processes: nominally 10 Gb/s, 9 KB packets with 64 B of headers, 50 us of
    /// round-trip time (two wake-ups of a sleeping process), up to 100 us late (the kernel's timer
    /// slack of 50 us, prctl(2), and as much until a core is free), messages of at most 64 MiB. The
    /// incarnation is the system clock's, in microseconds since 1970.
    #[must_use]
    pub fn loopback(me: HostId, peers: AddressBook, seed: u64) -> Self {
        Self {
            me,
            peers,
            keys: BTreeMap::new(),
            seed,
            incarnation: clock::since_1970_us(),
            start: Instant::now(),
            rate: Rate(10_000_000_000),
            paced: false,
            mtu: 9064,
            ways: BTreeMap::new(),
            source_ports: 1,
            base_rtt: Dur::from_us(50),
            lateness: Dur::from_us(100),
            max_message: 64 << 20,
            max_buffered: 256 << 20,
            trains: true,
            busy: false,
            batch: 32,
        }
    }
}

impl Routes for Config {
    fn paths(&self, _src: HostId, dst: HostId) -> u32 {
        self.ways.get(&dst).map_or(1, |way| way.paths)
    }

    fn hops(&self, _src: HostId, dst: HostId) -> u32 {
        self.ways.get(&dst).map_or(1, |way| way.hops)
    }

    fn base_rtt(&self, _src: HostId, _dst: HostId) -> Dur {
        self.base_rtt
    }
}
