//! Datagrams between two ends in one process, without sockets: for what hosts themselves cost, and
//! for bytes that no host would send.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wire::frame::Ecn;

use crate::Counters;
use crate::backend::{Arrived, BURST, Backend, DATAGRAM_MAX, Left, Outgoing};
use crate::doorbell::Doorbell;

/// A datagram, and what its headers say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Where it comes from.
    pub from: SocketAddr,
    /// Its class and marks (`wire::frame::tos`).
    pub tos: u8,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What is on the way to one end.
struct Way {
    datagrams: Mutex<VecDeque<Carried>>,
    bell: Doorbell,
}

impl Way {
    fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { datagrams: Mutex::new(VecDeque::new()), bell: Doorbell::new()? }))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Carried>> {
        self.datagrams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An end of a wire in memory, of any length and without loss.
pub struct Memory {
    at: SocketAddr,
    here: Arc<Way>,
    there: Arc<Way>,
}

impl Memory {
    /// Both ends of a wire, at these addresses, of which nobody else has to know.
    ///
    /// # Errors
    /// The kernel has no more descriptors.
    pub fn pair(at: [SocketAddr; 2]) -> io::Result<[Self; 2]> {
        let (a, b) = (Way::new()?, Way::new()?);
        let [first, second] = at;
        let (here, there) = (Arc::clone(&a), Arc::clone(&b));
        Ok([Self { at: first, here, there }, Self { at: second, here: b, there: a }])
    }

    /// To the other end, whatever it is.
    pub fn send(&self, carried: Carried) {
        self.there.lock().push_back(carried);
        self.there.bell.ring();
    }

    /// The next datagram that has come.
    #[must_use]
    pub fn receive(&self) -> Option<Carried> {
        self.here.lock().pop_front()
    }
}

/// A host's end.
pub(crate) struct Wire {
    end: Memory,
    slot: Vec<u8>,
    /// What leaves at the next flush.
    loaded: Vec<Carried>,
    bytes: usize,
    left: Vec<(u32, Left)>,
    /// What the last look at the wire gave and was not looked at.
    arrived: VecDeque<Carried>,
    last: Vec<u8>,
    /// Memory for the next datagrams.
    free: Vec<Vec<u8>>,
}

impl From<Memory> for Wire {
    fn from(end: Memory) -> Self {
        Self {
            end,
            slot: vec![0; DATAGRAM_MAX],
            loaded: Vec::new(),
            bytes: 0,
            left: Vec::new(),
            arrived: VecDeque::new(),
            last: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl Wire {
    fn load(&mut self, datagram: Outgoing) {
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(&self.slot[..datagram.len]);
        let mut from = self.end.at;
        from.set_port(from.port().wrapping_add(datagram.port));
        self.loaded.push(Carried { from, tos: datagram.tos, bytes });
        self.bytes += datagram.len;
    }
}

impl Backend for Wire {
    fn slot(&mut self) -> &mut [u8] {
        &mut self.slot
    }

    fn append(&mut self, datagram: Outgoing, _: &mut Counters) -> bool {
        (0..1 + u8::from(datagram.twice)).for_each(|_| self.load(datagram));
        if datagram.token != 0 {
            self.left.push((datagram.token, Left::Handed(Instant::now())));
        }
        true
    }

    fn is_loaded(&self) -> bool {
        !self.loaded.is_empty()
    }

    fn gathers(&self) -> bool {
        !self.arrived.is_empty()
    }

    fn is_full(&mut self) -> bool {
        self.bytes >= BURST
    }

    fn flush(&mut self, _: &mut Counters) -> io::Result<bool> {
        if self.is_loaded() {
            self.end.there.lock().extend(self.loaded.drain(..));
            self.end.there.bell.ring();
            self.bytes = 0;
        }
        Ok(true)
    }

    fn awaits(&self) -> bool {
        !self.left.is_empty()
    }

    fn left(&mut self, left: &mut Vec<(u32, Left)>) {
        if !self.is_loaded() {
            left.append(&mut self.left);
        }
    }

    fn receive(&mut self) -> io::Result<Arrived> {
        if self.arrived.is_empty() && self.end.here.bell.take() {
            // Before the look: what rings from now on is looked at next time.
            self.end.here.bell.silence();
            self.arrived.append(&mut self.end.here.lock());
        }
        let Some(Carried { from, tos, bytes }) = self.arrived.pop_front() else {
            return Ok(Arrived::Nothing);
        };
        self.free.push(std::mem::replace(&mut self.last, bytes));
        Ok(Arrived::Datagram { from, marked: Ecn::from_bits(tos) == Ecn::Marked })
    }

    fn datagram(&self) -> &[u8] {
        &self.last
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.end.here.bell.fd()
    }
}
