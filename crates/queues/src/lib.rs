//! Switch queue disciplines, one output port each, over small descriptors.
//!
//! A discipline decides order, trimming, marking and loss; it never sees a packet. The caller owns
//! packet storage, applies each [`Disposition`] to its packets, and keeps the time. The simulator
//! and the software switch run this same code.
//!
//! The packet being transmitted counts against its queue's capacity until [`Queue::next`]: it is
//! still in the port's memory. (In specs/ndp.md terms: with 72 000 B and 9064 B packets, seven fit,
//! the one in service included.)
//!
//! Where the ports of a switch share memory, their caller asks [`SharedBuffer`] first.
//!
//! Deliberately absent: clocks, links, packet contents.

mod boxed;
mod by_class;
mod cut_payload;
pub mod draws;
mod drop_tail;
mod fifo;
mod lossless;
mod ndp;
mod ndp_signals;
mod pfabric;
mod port_wide;
mod programmed;
mod red;
mod shared_buffer;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use boxed::Admitted;
use fifo::Fifo;

pub use boxed::{Discipline, DisciplineSpec, MarksFrom, Random, SameSpec, Told};
pub use by_class::{ByClass, ByClassSpec, Classifier, HeaderClass, Schedule, Trim};
pub use cut_payload::{CutPayload, CutPayloadSpec};
pub use drop_tail::{DropTail, DropTailSpec};
use endpoint::{Flags, Packet};
pub use lossless::{
    Admit, Headroom, Ingress, LosslessSpec, Marking, PFC_FRAME, PfcBuffer, PfcBufferSpec,
    PfcBufferStats, Threshold,
};
pub use ndp::{Ndp, NdpSpec};
pub use pfabric::{PFabric, PFabricSpec};
pub use port_wide::{PortWide, PortWideSpec};
pub use programmed::{Programmed, ProgrammedSpec};
pub use red::{MarkAt, NotEct, Ramp, Red, RedSpec, Unit};
pub use shared_buffer::{SharedBuffer, SharedBufferSpec, SharedBufferStats};
use units::Bytes;

/// What a discipline knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desc {
    /// The caller's name for the packet.
    pub handle: u32,
    /// Bytes on the wire.
    pub len: u16,
    /// They say what may be done to it: what carries payload may be trimmed, what has been trimmed
    /// may be bounced, once; control may only be dropped. What is ECT may be marked.
    pub flags: Flags,
    /// Its traffic class, which says where it queues at a port with a queue for each class.
    pub class: u8,
}

const _: () = assert!(size_of::<Desc>() == 8, "ports and queues hold many");

impl Desc {
    #[inline(always)]
    pub(crate) fn is_data(&self) -> bool {
        self.flags.payload()
    }

    /// Whether its payload is gone, and it is on its way to where that was to go.
    pub(crate) fn is_header(&self) -> bool {
        self.flags.has(Flags::TRIMMED) && !self.flags.has(Flags::BOUNCED)
    }

    pub(crate) fn is_ect(&self) -> bool {
        self.flags.has(Flags::ECT)
    }
}

/// What a discipline has decided about a packet that did not simply join the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Cut its payload: it is now `len` bytes long (as in the descriptor given along).
    Trim,
    /// Set CE on it; it is in the queue.
    Mark,
    /// It is not in the queue: send its header back to its sender.
    Bounce,
    /// It is not in the queue: it is lost.
    Drop,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// So many packets of any size.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(u32),
}

/// Bytes on the wire of a trimmed packet or of control, at most, where
/// [`Queue::arrivals_before_bounce`] holds.
pub const HEADER_MAX: u16 = 96;

/// Contents of a queue against its capacity, the packet in service included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    packets: u32,
    bytes: u32,
    /// The one of these that is not the capacity is out of reach.
    packets_max: u32,
    bytes_max: u32,
}

impl Occupancy {
    pub(crate) const fn new(capacity: Capacity) -> Self {
        let (packets_max, bytes_max) = match capacity {
            Capacity::Packets(most) => (most, u32::MAX),
            Capacity::Bytes(most) => (u32::MAX, most),
        };
        Self { packets: 0, bytes: 0, packets_max, bytes_max }
    }

    #[inline(always)]
    pub(crate) fn fits(&self, len: u16) -> bool {
        let bytes = self.bytes.saturating_add(u32::from(len));
        self.packets < self.packets_max && bytes <= self.bytes_max
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, len: u16) {
        self.packets += 1;
        self.bytes += u32::from(len);
    }

    #[inline(always)]
    pub(crate) fn give_back(&mut self, len: u16) {
        self.packets -= 1;
        self.bytes -= u32::from(len);
    }
}

/// 64 uniform bits, halved, are below this with `probability`.
pub(crate) fn threshold(probability: f64) -> u64 {
    (probability.clamp(0.0, 1.0) * (1u64 << 63) as f64) as u64
}

impl Capacity {
    /// As bytes, with packets of `mtu` bytes.
    #[must_use]
    pub fn bytes(self, mtu: u64) -> u64 {
        match self {
            Self::Packets(n) => u64::from(n) * mtu,
            Self::Bytes(n) => u64::from(n),
        }
    }

    /// `share` of it, rounded down, but never nothing.
    #[must_use]
    pub fn scaled(self, share: f64) -> Self {
        let scaled = |n: u32| ((f64::from(n) * share) as u32).max(1);
        match self {
            Self::Packets(n) => Self::Packets(scaled(n)),
            Self::Bytes(n) => Self::Bytes(scaled(n)),
        }
    }
}

/// The shortest packet: bare headers of IP and a transport, bytes.
pub(crate) const PACKET_MIN: u64 = 40;

/// A discipline and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueSpec {
    /// First in, first out; what does not fit is lost.
    DropTail(DropTailSpec),
    /// Two queues, trimming and bouncing (SIGCOMM'17, section 3.1).
    Ndp(NdpSpec),
    /// A queue for each traffic class, without a capacity of its own: the switch's [`PfcBuffer`]
    /// says what joins it, and classes can be closed ([`Queue::set_open`]).
    Lossless(Box<LosslessSpec>),
    /// Any other kind.
    Boxed(Arc<dyn DisciplineSpec>),
}

impl QueueSpec {
    /// What it is like, whatever its kind.
    #[must_use]
    pub fn spec(&self) -> &dyn DisciplineSpec {
        match self {
            Self::DropTail(spec) => spec,
            Self::Ndp(spec) => spec,
            Self::Lossless(spec) => &**spec,
            Self::Boxed(spec) => &**spec,
        }
    }
}

impl<S: DisciplineSpec> From<S> for QueueSpec {
    fn from(spec: S) -> Self {
        spec.wrap()
    }
}

/// One output port's queue.
// With a tag of its own: cheaper to look at than a niche in a pointer.
#[derive(Debug)]
#[repr(u8)]
pub enum Queue {
    /// See [`DropTail`].
    DropTail(DropTail),
    /// See [`Ndp`].
    Ndp(Ndp),
    /// Any other kind.
    Boxed(Box<dyn Discipline>),
}

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new(spec: &QueueSpec) -> Self {
        spec.spec().build()
    }

    /// A queue of any kind.
    pub fn boxed(queue: impl Discipline + 'static) -> Self {
        Self::Boxed(Box::new(queue))
    }

    /// The same for a switch whose ports share memory, which is asked before a packet joins:
    /// `try_enqueue` and `cut_through` take nothing, `enqueue` what has been admitted.
    #[must_use]
    pub fn in_shared_buffer(spec: &QueueSpec) -> Self {
        Self::boxed(Admitted(Self::new(spec)))
    }

    /// Bit c of `open`: packets of class c may leave. Only of a queue for a lossless switch; the
    /// others leave whatever the class.
    pub fn set_open(&mut self, open: u8) {
        if let Self::Boxed(queue) = self {
            queue.set_open(open);
        }
    }

    /// Every packet that waits in `class` of a queue for a lossless switch is lost; `fate` is told
    /// of each.
    pub fn discard(&mut self, class: u8, fate: &mut impl FnMut(Disposition, Desc)) {
        if let Self::Boxed(queue) = self {
            queue.discard(class, fate);
        }
    }

    /// A packet arrives: it joins the queue if it may do so as it is. If not, nothing has happened,
    /// and `enqueue` says what becomes of it.
    #[inline(always)]
    pub fn try_enqueue(&mut self, packet: Desc) -> bool {
        match self {
            Self::DropTail(queue) => queue.try_enqueue(packet),
            Self::Ndp(queue) => queue.try_enqueue(packet),
            Self::Boxed(queue) => queue.try_enqueue(packet),
        }
    }

    /// A packet arrives while the port is idle, so that none waits: if it may join the queue as it
    /// is, it has done so and is the one in service. If not, nothing has happened.
    #[inline(always)]
    pub fn cut_through(&mut self, packet: Desc) -> bool {
        match self {
            Self::DropTail(queue) => queue.cut_through(packet),
            Self::Ndp(queue) => queue.cut_through(packet),
            Self::Boxed(queue) => queue.cut_through(packet),
        }
    }

    /// A packet arrives. `random` gives 64 uniform bits, at most once per call; `fate` is told of
    /// every packet that did not simply join the queue: the arriving one, or one that made room.
    pub fn enqueue(
        &mut self,
        packet: Desc,
        mut random: impl FnMut() -> u64,
        fate: &mut impl FnMut(Disposition, Desc),
    ) {
        match self {
            Self::DropTail(queue) => queue.enqueue(packet, fate),
            Self::Ndp(queue) => queue.enqueue(packet, random, fate),
            Self::Boxed(queue) => queue.enqueue(packet, &mut random, fate),
        }
    }

    /// Whether what becomes of a packet depends on its contents: then a packet arrives by
    /// `enqueue_read` instead of `enqueue`.
    #[must_use]
    pub fn reads_packets(&self) -> bool {
        matches!(self, Self::Boxed(queue) if queue.reads_packets())
    }

    /// As `enqueue`, of a packet with these contents.
    pub fn enqueue_read(
        &mut self,
        packet: Desc,
        contents: &Packet,
        mut random: impl FnMut() -> u64,
        fate: &mut impl FnMut(Disposition, Desc),
    ) {
        match self {
            Self::Boxed(queue) => queue.enqueue_read(packet, contents, &mut random, fate),
            _ => self.enqueue(packet, random, fate),
        }
    }

    /// The port is idle: which packet goes next. It counts as queued until `next`.
    #[inline]
    pub fn dequeue(&mut self) -> Option<Desc> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::Ndp(queue) => queue.dequeue(),
            Self::Boxed(queue) => queue.dequeue(),
        }
    }

    /// Which packet `dequeue` would give, of a kind that can tell ([`DisciplineSpec::peeks`]).
    #[must_use]
    pub fn peek(&self) -> Option<Desc> {
        match self {
            Self::DropTail(queue) => queue.waiting().iter().next(),
            Self::Ndp(_) => None,
            Self::Boxed(queue) => queue.peek(),
        }
    }

    /// `sent`, the packet in service, has been transmitted: which packet goes next.
    #[inline(always)]
    pub fn next(&mut self, sent: Desc) -> Option<Desc> {
        match self {
            Self::DropTail(queue) => {
                queue.finish(sent);
                queue.dequeue()
            }
            Self::Ndp(queue) => {
                queue.finish(sent);
                queue.dequeue()
            }
            Self::Boxed(queue) => {
                queue.finish(sent);
                queue.dequeue()
            }
        }
    }

    /// The packet that `dequeue` or `next` has just given, if it is to be marked as it leaves: only
    /// of queues that mark at departure.
    pub fn take_mark(&mut self) -> Option<Desc> {
        match self {
            Self::DropTail(_) | Self::Ndp(_) => None,
            Self::Boxed(queue) => queue.take_mark(),
        }
    }

    /// The first half of `next`, where something else goes in between: `sent` has been transmitted.
    pub fn finish(&mut self, sent: Desc) {
        match self {
            Self::DropTail(queue) => queue.finish(sent),
            Self::Ndp(queue) => queue.finish(sent),
            Self::Boxed(queue) => queue.finish(sent),
        }
    }

    /// Whether so many headers wait that one of the next might be sent back.
    #[must_use]
    #[inline(always)]
    pub fn bounce_possible(&self) -> bool {
        match self {
            Self::Ndp(queue) => queue.bounce_possible(),
            Self::DropTail(_) | Self::Boxed(_) => false,
        }
    }

    /// While it is not crowded, so many packets may arrive, none with a header longer than
    /// [`HEADER_MAX`], before any can be sent back.
    #[must_use]
    pub fn arrivals_before_bounce(&self) -> u32 {
        match self {
            Self::DropTail(_) => u32::MAX,
            Self::Ndp(queue) => queue.arrivals_before_bounce(),
            Self::Boxed(queue) if queue.bounces() => 0,
            Self::Boxed(_) => u32::MAX,
        }
    }

    /// The packets waiting, the one in service not among them.
    pub fn waiting(&self) -> impl Iterator<Item = Desc> {
        let (fifo, ndp, boxed) = match self {
            Self::DropTail(queue) => (Some(queue.waiting()), None, None),
            Self::Ndp(queue) => (None, Some(queue), None),
            Self::Boxed(queue) => (None, None, Some(queue)),
        };
        let usual = fifo.into_iter().flat_map(Fifo::iter);
        let usual = usual.chain(ndp.into_iter().flat_map(Ndp::waiting));
        usual.chain(boxed.into_iter().flat_map(|queue| queue.waiting()))
    }

    /// Whether no packet waits.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.waiting().is_empty(),
            Self::Ndp(queue) => queue.is_empty(),
            Self::Boxed(queue) => queue.is_empty(),
        }
    }

    /// Bytes held, the packet in service included.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u32 {
        match self {
            Self::DropTail(queue) => queue.bytes(),
            Self::Ndp(queue) => queue.bytes(),
            Self::Boxed(queue) => queue.bytes(),
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(n) => write!(f, "{n}B"),
        }
    }
}

/// Why a capacity could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityError(String);

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CapacityError {}

impl FromStr for Capacity {
    type Err = CapacityError;

    /// `"8 packets"` or a size such as `"72000B"`. At least one packet or byte, below 4 GB.
    fn from_str(text: &str) -> Result<Self, CapacityError> {
        let bad = |why: &str| CapacityError(format!("{text:?} {why}"));
        let count = text.trim().strip_suffix("packets").or(text.trim().strip_suffix("packet"));
        let capacity = match count {
            Some(n) => Self::Packets(
                n.trim()
                    .parse()
                    .map_err(|_| bad("is not a number of packets: write it like \"8 packets\""))?,
            ),
            None => {
                let bytes: Bytes = text.parse().map_err(|e: units::UnitError| {
                    CapacityError(format!("{e}, or like \"8 packets\""))
                })?;
                Self::Bytes(u32::try_from(bytes.0).map_err(|_| bad("is 4 GB or more"))?)
            }
        };
        match capacity {
            Self::Packets(0) | Self::Bytes(0) => Err(bad("holds nothing")),
            some => Ok(some),
        }
    }
}
