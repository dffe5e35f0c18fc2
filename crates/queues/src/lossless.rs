//! A switch that loses nothing: memory that all its ports share, accounted to the port over which
//! each packet came in, and priority flow control (PFC, IEEE 802.1Qbb) instead of losses. What it
//! decides, without frames, links and time: those are the caller's. The rules are those of
//! specs/rdma.md#2, which are those of the HPCC authors' simulator (Y. Li et al., SIGCOMM 2019) and
//! of the DCQCN paper (Y. Zhu et al., SIGCOMM 2015, section 4).
//!
//! A packet that comes in over port p in class c is accounted to (p, c), to the first of these with
//! room for it:
//!
//! - its **reserve**, which no other queue can take, if c is lossless;
//! - the **shared** memory, up to a threshold: a fixed one, or, as with [`crate::SharedBuffer`],
//!   `alpha` times what is free;
//! - the **headroom** of (p, c), for what is on its way while the far end has not heard of the
//!   pause.
//!
//! (p, c) sends XOFF once it holds headroom or has reached its threshold, and XON when the headroom
//! is free and it is `resume_offset` below its threshold. What has room nowhere is lost: of a
//! lossless class that is a violation, because the headroom is too small for the link. Classes that
//! are not lossless have no headroom and are lost at their threshold; control classes are neither
//! counted nor paused.
//!
//! Packets wait at the port over which they leave, in a queue for each class without a limit of its
//! own ([`crate::QueueSpec::Lossless`]).

#[cfg(test)]
mod tests;

use units::{Dur, Rate};

use crate::boxed::MarksFrom;
use crate::by_class::ByClass;
use crate::red::{MarkAt, NotEct, Ramp, RedSpec};
use crate::{ByClassSpec, Capacity, DisciplineSpec, DropTailSpec, Queue, QueueSpec, Schedule};

/// Length of a PFC frame on the wire, bytes (specs/rdma.md#1).
pub const PFC_FRAME: u16 = 64;

const CLASS_0: u8 = 1;
const CLASS_7: u8 = 1 << 7;
/// What the DCQCN authors' simulator counts memory in, bytes: a full packet of theirs.
const CELL: u32 = 1_030;

/// A lossless switch: its memory, and the queue of each of its ports.
#[derive(Clone, Debug, PartialEq)]
pub struct LosslessSpec {
    /// The memory of one switch.
    pub memory: PfcBufferSpec,
    /// Which class is served next.
    pub schedule: Schedule,
    /// How packets of classes 0 to 7 are marked.
    pub marking: [Option<Marking>; 8],
}

/// ECN of a class, by what the class holds at the port over which a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marking {
    /// At a port of the rate `per`.
    pub ramp: Ramp,
    /// When the queue is looked at.
    pub mark_at: MarkAt,
    /// The lengths of the ramp grow with the rate of the port, from this one. `None`: they are the
    /// same at every port.
    pub per: Option<Rate>,
}

impl LosslessSpec {
    /// The same for a port that transmits at `rate`: its ramps are those of that rate.
    #[must_use]
    pub fn at_rate(&self, rate: Rate) -> Self {
        let marking = self.marking.map(|marking| marking.map(|marking| marking.at_rate(rate)));
        Self { marking, ..self.clone() }
    }

    /// The queues of a port.
    pub(crate) fn classes(&self) -> ByClassSpec {
        let capacity = Capacity::Bytes(u32::MAX);
        let queue = |marking: Option<Marking>| match marking {
            None => QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None }),
            Some(Marking { ramp, mark_at, .. }) => {
                let not_ect = NotEct::Pass;
                RedSpec { capacity, ramp, weight: None, mark_at, not_ect }.into()
            }
        };
        let classes = (0..8).zip(self.marking.map(queue)).collect();
        ByClassSpec::new(self.schedule, classes)
    }
}

impl DisciplineSpec for LosslessSpec {
    fn wrap(self) -> QueueSpec {
        QueueSpec::Lossless(Box::new(self))
    }

    fn build(&self) -> Queue {
        Queue::boxed(ByClass::admitted(&self.classes()))
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![Capacity::Bytes(self.memory.size)]
    }

    fn marks_from(&self, classes: &[u8]) -> MarksFrom {
        let ramps = classes.iter().filter_map(|class| self.marking[usize::from(class & 7)]);
        let first = ramps.map(|marking| marking.ramp).min_by_key(|ramp| ramp.min);
        first.map_or(MarksFrom::Never, |ramp| MarksFrom::Length(ramp.unit.capacity(ramp.min)))
    }

    fn sorts_by_class(&self) -> bool {
        true
    }

    fn marks_at_departure(&self) -> bool {
        self.marking.iter().flatten().any(|marking| marking.mark_at == MarkAt::Departure)
    }

    fn loses_because(&self) -> &'static str {
        "classes that are not lossless were at their threshold"
    }
}

impl Marking {
    fn at_rate(self, rate: Rate) -> Self {
        let Some(per) = self.per else { return self };
        let scale = |length: u32| {
            let scaled = u128::from(length) * u128::from(rate.0) / u128::from(per.0.max(1));
            u32::try_from(scaled).unwrap_or(u32::MAX)
        };
        let ramp = Ramp { min: scale(self.ramp.min), max: scale(self.ramp.max), ..self.ramp };
        Self { ramp, per: None, ..self }
    }
}

/// Parameters of [`PfcBuffer`].
#[derive(Clone, Debug, PartialEq)]
pub struct PfcBufferSpec {
    /// Memory of one switch, bytes.
    pub size: u32,
    /// What each (port, lossless class) has for itself, bytes.
    pub reserve: u32,
    /// What each (port, lossless class) has for what is on its way when it sends XOFF.
    pub headroom: Headroom,
    /// Whether the headroom is memory beside `size` (SONiC's pool of its own) or part of it.
    pub headroom_beside: bool,
    /// How much of the shared memory a (port, class) may hold.
    pub threshold: Threshold,
    /// XON when the shared memory that is held is no more than this, whatever the threshold, bytes.
    pub xon: u32,
    /// XON when the shared memory that is held is so much below the threshold, bytes.
    pub resume_offset: u32,
    /// Bit c: class c is lossless. The others are lost at their threshold.
    pub lossless: u8,
    /// Bit c: class c is neither counted nor paused.
    pub control: u8,
}

/// The most of the shared memory that a (port, class) may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// So many bytes.
    Static(u32),
    /// `alpha` times what is free of it.
    Dynamic {
        /// At a port of a host's rate. Above 0.
        alpha: f64,
        /// Whether `alpha` is twice as large for each doubling of the port's rate over a host's, up
        /// to 1, so that a port for many hosts is not paused before theirs (HPCC's simulator).
        with_rate: bool,
    },
}

/// What a (port, class) can still take after XOFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// So many bytes.
    Bytes(u32),
    /// So many times what the link carries in its delay (HPCC's simulator: 3).
    Delays(u32),
    /// What can come, at most: [`Ingress::most_after_xoff`].
    Auto,
}

/// A port of the switch, as packets come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// Rate of the link by which packets come.
    pub rate: Rate,
    /// From the last bit sent over it to the arrival that [`PfcBuffer::admit`] is asked about.
    pub delay: Dur,
    /// Rate of the link by which PFC frames go back.
    pub back_rate: Rate,
    /// From the last bit of a PFC frame sent to the far end's obeying it.
    pub back_delay: Dur,
    /// The longest packet on both, bytes on the wire.
    pub mtu: u16,
}

impl Ingress {
    /// The most bytes that take headroom. The packet that leads to XOFF; then, at the link's rate,
    /// while the frame waits for the packet in service, is sent, travels, and while what had been
    /// sent by then arrives; and the packet that the far end has begun when it obeys
    /// (specs/rdma.md#2: 2·C·t_prop + MTU + MTU + 64 B; the packet that leads to XOFF comes on top,
    /// because one that does not fit below the threshold is in the headroom already).
    #[must_use]
    pub fn most_after_xoff(&self) -> u32 {
        let frame = self.back_rate.serialise(u64::from(self.mtu) + u64::from(PFC_FRAME));
        let deaf = frame.0.saturating_add(self.back_delay.0).saturating_add(self.delay.0);
        let bytes = carried(self.rate, Dur(deaf)).saturating_add(2 * u64::from(self.mtu));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// Bytes that a link of `rate` carries in `time`, rounded up.
fn carried(rate: Rate, time: Dur) -> u64 {
    const BIT_PS_PER_BYTE_S: u128 = 8_000_000_000_000;
    let bytes = (u128::from(rate.0) * u128::from(time.0)).div_ceil(BIT_PS_PER_BYTE_S);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What becomes of a packet that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// There is no room for it: it is lost.
    Refused,
    /// It is in the memory.
    Joins {
        /// Its class must now be paused at the far end of its port's link.
        xoff: bool,
    },
}

/// What has become of a switch's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfcBufferStats {
    /// The most bytes in use.
    pub max_bytes: u32,
    /// The most bytes of headroom that one (port, class) has used.
    pub max_headroom: u32,
    /// Times that XOFF was due.
    pub pauses: u64,
    /// Packets of lossless classes that found no room: there is not enough headroom.
    pub violations: u64,
    /// Packets of other classes that found no room.
    pub refused: u64,
}

/// The memory of one switch.
#[derive(Clone, Debug)]
pub struct PfcBuffer {
    spec: PfcBufferSpec,
    ports: Vec<PortAccount>,
    /// What there is to share, bytes.
    pool: u32,
    /// What of it is in use.
    shared: u32,
    /// What is accounted to anybody.
    used: u32,
    /// Every (port, class) for which XOFF has been due, and no XON since.
    paused: Vec<(u32, u8)>,
    stats: PfcBufferStats,
}

#[derive(Clone, Debug)]
struct PortAccount {
    /// Of each lossless class.
    headroom: u32,
    /// Of a dynamic threshold.
    alpha: f64,
    classes: [Account; 8],
}

/// Bytes of a (port, class).
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// In the reserve, and beyond that in the shared memory.
    held: u32,
    headroom: u32,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The reserve, the shared memory, or what is left of the one and then the other.
    Held,
    Headroom,
}

impl PfcBuffer {
    /// Nothing is in use. `hosts` is the rate of hosts' links.
    ///
    /// # Errors
    /// A sentence, if reserves and headroom leave nothing to share.
    pub fn new(spec: &PfcBufferSpec, ports: &[Ingress], hosts: Rate) -> Result<Self, String> {
        let lossless = u64::from((spec.lossless & !spec.control).count_ones());
        let reserves = lossless * u64::from(spec.reserve) * ports.len() as u64;
        let headroom: u64 = ports.iter().map(|port| u64::from(spec.headroom_of(port))).sum();
        let beside = if spec.headroom_beside { 0 } else { headroom * lossless };
        let Some(pool) = u64::from(spec.size).checked_sub(reserves + beside).filter(|&n| n > 0)
        else {
            let (n, size) = (ports.len(), spec.size);
            return Err(format!(
                "a switch with {n} ports needs {reserves} bytes for reserves and {beside} for headroom, and \
                 has a memory of {size}"
            ));
        };
        let ports = ports.iter().map(|port| PortAccount {
            headroom: spec.headroom_of(port),
            alpha: spec.alpha_of(port.rate, hosts),
            classes: [Account::default(); 8],
        });
        Ok(Self {
            spec: spec.clone(),
            ports: ports.collect(),
            // No more than `size`, so it fits.
            pool: pool as u32,
            shared: 0,
            used: 0,
            paused: Vec::new(),
            stats: PfcBufferStats::default(),
        })
    }

    /// A packet of `len` bytes comes in over `port` in `class`. If it joins, it is accounted for.
    pub fn admit(&mut self, port: u32, class: u8, len: u16) -> Admit {
        if self.is_control(class) {
            return Admit::Joins { xoff: false };
        }
        let Some(place) = self.place(port, class, len) else {
            let lossless = self.spec.lossless & 1 << class != 0;
            self.stats.violations += u64::from(lossless);
            self.stats.refused += u64::from(!lossless);
            return Admit::Refused;
        };
        self.used += u32::from(len);
        self.stats.max_bytes = self.stats.max_bytes.max(self.used);
        let reserve = self.spec.reserve_of(class);
        let account = &mut self.ports[port as usize].classes[usize::from(class)];
        match place {
            Place::Held => {
                let before = account.held.saturating_sub(reserve);
                account.held += u32::from(len);
                self.shared += account.held.saturating_sub(reserve) - before;
            }
            Place::Headroom => {
                account.headroom += u32::from(len);
                self.stats.max_headroom = self.stats.max_headroom.max(account.headroom);
            }
        }
        Admit::Joins { xoff: self.pauses(port, class) }
    }

    /// A packet that joined has left: it came in over `port`. `xon` is told of every (port, class)
    /// that is to be resumed: all whose thresholds the departure has raised.
    ///
    /// # Errors
    /// A sentence, if (port, class) does not hold as much.
    pub fn depart(
        &mut self,
        port: u32,
        class: u8,
        len: u16,
        xon: &mut impl FnMut(u32, u8),
    ) -> Result<(), String> {
        if self.is_control(class) {
            return Ok(());
        }
        let (len, reserve) = (u32::from(len), self.spec.reserve_of(class));
        let account = &mut self.ports[port as usize].classes[usize::from(class)];
        if account.held + account.headroom < len {
            let (held, headroom) = (account.held, account.headroom);
            return Err(format!(
                "a packet of {len} bytes left that came in over port {port} in class {class}, which held {held} \
                 and {headroom} of headroom"
            ));
        }
        // Headroom first, then shared memory, then the reserve.
        let from_headroom = account.headroom.min(len);
        account.headroom -= from_headroom;
        let before = account.held.saturating_sub(reserve);
        account.held -= len - from_headroom;
        self.shared -= before - account.held.saturating_sub(reserve);
        self.used -= len;
        if !self.paused.is_empty() {
            self.resume(xon);
        }
        Ok(())
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Bit c: class c of `port` has been paused and not been resumed.
    #[must_use]
    pub fn paused(&self, port: u32) -> u8 {
        let classes = self.paused.iter().filter(|(paused, _)| *paused == port);
        classes.fold(0, |mask, (_, class)| mask | 1 << class)
    }

    /// Whether any class of any port has been paused and not been resumed.
    #[must_use]
    pub fn pauses_any(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Whether packets of `class` are neither counted nor paused.
    #[must_use]
    pub fn is_control(&self, class: u8) -> bool {
        self.spec.control & 1 << class != 0
    }

    /// What has become of the memory so far.
    #[must_use]
    pub fn stats(&self) -> PfcBufferStats {
        self.stats
    }

    /// Where a packet of `len` bytes has room. Once any headroom is in use, what follows goes there
    /// until it is free again, so that a class does not creep on below a threshold that rises; what
    /// no longer fits there is not lost while the threshold allows for it.
    fn place(&self, port: u32, class: u8, len: u16) -> Option<Place> {
        let (owner, reserve) = (&self.ports[port as usize], self.spec.reserve_of(class));
        let account = owner.classes[usize::from(class)];
        let held = account.held + u32::from(len);
        if held <= reserve {
            return Some(Place::Held);
        }
        let taken = held - account.held.max(reserve);
        let shares =
            f64::from(held - reserve) <= self.threshold(port) && taken <= self.pool - self.shared;
        let headroom = if self.spec.lossless & 1 << class != 0 { owner.headroom } else { 0 };
        let fits = account.headroom + u32::from(len) <= headroom;
        match (shares, fits) {
            (true, true) if account.headroom > 0 => Some(Place::Headroom),
            (true, _) => Some(Place::Held),
            (false, true) => Some(Place::Headroom),
            (false, false) => None,
        }
    }

    /// The most of the shared memory that a class of `port` may hold now.
    fn threshold(&self, port: u32) -> f64 {
        match self.spec.threshold {
            Threshold::Static(bytes) => f64::from(bytes),
            Threshold::Dynamic { .. } => {
                self.ports[port as usize].alpha * f64::from(self.pool - self.shared)
            }
        }
    }

    /// Whether (port, class) is to be paused now; it is noted if so.
    fn pauses(&mut self, port: u32, class: u8) -> bool {
        let account = self.ports[port as usize].classes[usize::from(class)];
        let shared = account.held.saturating_sub(self.spec.reserve_of(class));
        let due = self.spec.lossless & 1 << class != 0
            && (account.headroom > 0 || f64::from(shared) >= self.threshold(port))
            && !self.paused.contains(&(port, class));
        if due {
            self.paused.push((port, class));
            self.stats.pauses += 1;
        }
        due
    }

    /// Every (port, class) that is paused and need not be. One departure can end several pauses,
    /// because it raises every dynamic threshold.
    fn resume(&mut self, xon: &mut impl FnMut(u32, u8)) {
        let mut paused = std::mem::take(&mut self.paused);
        paused.retain(|&(port, class)| {
            let resumes = self.resumes(port, class);
            if resumes {
                xon(port, class);
            }
            !resumes
        });
        self.paused = paused;
    }

    fn resumes(&self, port: u32, class: u8) -> bool {
        let account = self.ports[port as usize].classes[usize::from(class)];
        let shared = account.held.saturating_sub(self.spec.reserve_of(class));
        let below = f64::from(shared) + f64::from(self.spec.resume_offset) <= self.threshold(port);
        account.headroom == 0 && (shared <= self.spec.xon || below)
    }
}

impl PfcBufferSpec {
    /// As the HPCC authors' simulator has it (specs/rdma.md#2, `hpcc`), in binary units. They run
    /// 16 MiB for each 50 Gb/s of a host's link. They set 4 KiB aside once for each port, which is
    /// once for each lossless class here: they have one.
    #[must_use]
    pub fn hpcc() -> Self {
        Self {
            size: 12 << 20,
            reserve: 4 << 10,
            headroom: Headroom::Delays(3),
            headroom_beside: false,
            threshold: Threshold::Dynamic { alpha: 0.125, with_rate: true },
            xon: 0,
            resume_offset: 3 << 10,
            lossless: CLASS_0,
            control: CLASS_7,
        }
    }

    /// As switches with SONiC are configured (specs/rdma.md#2, `sonic`): headroom is a pool of its
    /// own. What each class reserves is for the operator to say. Not here: the limits of egress
    /// pools, which the ingress pool keeps from being reached by lossless classes.
    #[must_use]
    pub fn sonic(reserve: u32) -> Self {
        Self {
            size: 18_000_000,
            reserve,
            headroom: Headroom::Auto,
            headroom_beside: true,
            threshold: Threshold::Dynamic { alpha: 0.125, with_rate: false },
            xon: 1_248,
            resume_offset: 2_496,
            lossless: CLASS_0,
            control: CLASS_7,
        }
    }

    /// As the DCQCN authors' simulator has it (specs/rdma.md#2, `legacy`): XOFF at 20 cells of 1030
    /// B, XON two cells below. Not here: its limit of 4000 cells for each egress port.
    #[must_use]
    pub fn legacy() -> Self {
        Self {
            size: 9_000_000,
            reserve: CELL,
            headroom: Headroom::Bytes(100 * CELL),
            headroom_beside: false,
            threshold: Threshold::Static(20 * CELL),
            xon: 0,
            resume_offset: 2 * CELL,
            lossless: CLASS_0,
            control: CLASS_7,
        }
    }

    fn reserve_of(&self, class: u8) -> u32 {
        if self.lossless & 1 << class != 0 { self.reserve } else { 0 }
    }

    /// The headroom of each lossless class at `port`, bytes.
    #[must_use]
    pub fn headroom_of(&self, port: &Ingress) -> u32 {
        match self.headroom {
            Headroom::Bytes(bytes) => bytes,
            Headroom::Delays(n) => {
                let bytes = carried(port.rate, port.delay).saturating_mul(u64::from(n));
                u32::try_from(bytes).unwrap_or(u32::MAX)
            }
            Headroom::Auto => port.most_after_xoff(),
        }
    }

    fn alpha_of(&self, mut rate: Rate, hosts: Rate) -> f64 {
        match self.threshold {
            Threshold::Static(_) => 0.0,
            Threshold::Dynamic { alpha, with_rate: false } => alpha,
            Threshold::Dynamic { mut alpha, with_rate: true } => {
                while rate > hosts && alpha < 1.0 {
                    alpha = (alpha * 2.0).min(1.0);
                    rate = Rate(rate.0 / 2);
                }
                alpha
            }
        }
    }
}
