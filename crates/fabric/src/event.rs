//! What happens at some time, in two words.

use units::Time;

/// What happens, without when. Links, hosts and packets go by their numbers in this partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventId {
    /// The [`Kind`] and, below [`EventId::KIND_SHIFT`], a link or host.
    what: u32,
    /// Of an arrival the packet, of a frame what it says.
    pub(crate) packet: u32,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub(crate) at: Time,
    id: EventId,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A packet arrives at the far end of a link.
    Arrival,
    /// A port has finished a packet.
    Departure,
    /// A timer or a paced transmission of a host may be due.
    Timer,
    /// A timer of, or a signal to, a host's application may be due.
    App,
    /// A frame of flow control ([`crate::pfc::frame::Frame`]) arrives at the far end of a link.
    Frame,
    /// Something that flow control waits for may be due at a port.
    Pause,
    /// The next fault.
    Fault,
}

impl EventId {
    pub(crate) const NOTHING: Self = Self::new(Kind::Fault, 0, 0);
    /// There are at most four million links.
    const KIND_SHIFT: u32 = 29;

    #[inline(always)]
    pub(crate) const fn new(kind: Kind, link: u32, packet: u32) -> Self {
        Self { what: (kind as u32) << Self::KIND_SHIFT | link, packet }
    }

    #[inline(always)]
    pub(crate) const fn at(self, at: Time) -> Event {
        Event { at, id: self }
    }

    #[inline(always)]
    pub(crate) const fn is_arrival(self) -> bool {
        self.what < 1 << Self::KIND_SHIFT
    }

    #[inline(always)]
    pub(crate) const fn kind(self) -> Kind {
        match self.what >> Self::KIND_SHIFT {
            0 => Kind::Arrival,
            1 => Kind::Departure,
            2 => Kind::Timer,
            3 => Kind::App,
            4 => Kind::Frame,
            5 => Kind::Pause,
            _ => Kind::Fault,
        }
    }

    /// The link or host. A host's number is that of its link, so this names a port in any case.
    #[inline(always)]
    pub(crate) const fn link(self) -> u32 {
        self.what & ((1 << Self::KIND_SHIFT) - 1)
    }
}

impl Event {
    #[inline(always)]
    pub(crate) const fn new(at: Time, kind: Kind, link: u32, packet: u32) -> Self {
        Self { at, id: EventId::new(kind, link, packet) }
    }

    #[inline(always)]
    pub(crate) const fn id(self) -> EventId {
        self.id
    }
}
