//! [`Packet`]: one type for every packet of every transport.

use units::{HostId, MsgId};
use wire::frame::{Carrier, Ecn, FrameRepr, UDP};
use wire::shim::{MAX_HEADER, ShimRepr};
use wire::{cbr, roce};

/// Bytes of transport header that a packet can hold.
pub const HDR_MAX: usize = 64;

const _: () = assert!(MAX_HEADER == HDR_MAX, "a datagram carries the whole header of a packet");

/// Which bytes of which message a packet is about. Payload itself is not carried in simulation.
/// For data, the message is one of the packet's source; for control, what it answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The message.
    pub msg: MsgId,
    /// Position of the payload in the message.
    pub offset: u64,
    /// Payload bytes; kept when the payload is trimmed away, so that the span is still named.
    pub len: u32,
}

/// Properties that switches read and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The payload has been cut off.
    pub const TRIMMED: Self = Self(1);
    /// The header has been sent back to its sender; source and destination are swapped.
    pub const BOUNCED: Self = Self(2);
    /// The transport understands congestion marks (ECT).
    pub const ECT: Self = Self(4);
    /// A switch has marked congestion (CE).
    pub const CE: Self = Self(8);
    /// Carries no payload by nature (an acknowledgement, a pull, a grant).
    pub const CONTROL: Self = Self(16);
    /// Every switch port writes what it knows of itself into the last `wire::int::LEN` bytes of the
    /// header.
    pub const INT: Self = Self(32);
    /// What has been trimmed was trimmed at its last hop, by a switch that says so: the link on
    /// which it did not find room leads to its host.
    pub const LAST_HOP: Self = Self(64);

    /// Whether every flag of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether a packet with these flags carries payload now: not control, not trimmed, not
    /// bounced.
    #[must_use]
    pub const fn payload(self) -> bool {
        const NONE: u8 = Flags::TRIMMED.0 | Flags::BOUNCED.0 | Flags::CONTROL.0;
        self.0 & NONE == 0
    }

    /// Set every flag of `other`.
    pub const fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// These flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A packet, two cache lines. The first is all that a switch touches, and authoritative for
/// addresses, class, marks, trimming and bouncing. The second is the transport header.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// What the payload is.
    pub span: Span,
    /// The environment's own: identity of the packet for digests and traces.
    pub key: u64,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Path index where the source chooses the path; otherwise entropy for hashing switches.
    pub path: u32,
    /// Not zero: the sender wants `on_sent` with this token when the packet has left.
    pub token: u32,
    /// Bytes on the wire, every header included.
    pub wire_len: u16,
    /// Switch-visible properties.
    pub flags: Flags,
    /// Traffic class, for priority queues and PFC. Zero is the lowest.
    pub class: u8,
    /// Transport protocol: the IP protocol number, or one of the experimental numbers.
    pub proto: u8,
    /// Bytes of `hdr` in use.
    pub hdr_len: u8,
    /// The environment's own: what it wants at hand at every hop.
    pub scratch: [u16; 5],
    /// The transport header as on the wire, after IP.
    pub hdr: [u8; HDR_MAX],
}

const _: () = assert!(size_of::<Packet>() == 128, "two cache lines");
const _: () = assert!(std::mem::offset_of!(Packet, hdr) == 64, "line 0 is what switches touch");

impl Packet {
    /// A cleared packet, as `poll_tx` receives it.
    pub const EMPTY: Self = Self {
        span: Span { msg: MsgId(0), offset: 0, len: 0 },
        key: 0,
        src: HostId(0),
        dst: HostId(0),
        path: 0,
        token: 0,
        wire_len: 0,
        proto: 0,
        hdr_len: 0,
        class: 0,
        flags: Flags(0),
        scratch: [0; 5],
        hdr: [0; HDR_MAX],
    };

    /// Write the transport header, of at most [`HDR_MAX`] bytes.
    #[inline(always)]
    pub fn put_header(&mut self, header: &[u8]) {
        self.hdr_len = header.len() as u8;
        self.hdr[..header.len()].copy_from_slice(header);
    }

    /// Whether the packet carries payload now (not control, not trimmed, not bounced).
    #[must_use]
    pub const fn carries_payload(&self) -> bool {
        self.flags.payload()
    }

    /// Bytes of payload that it carries now.
    #[must_use]
    pub const fn payload_len(&self) -> u32 {
        if self.carries_payload() { self.span.len } else { 0 }
    }

    /// Line 0, as it travels between real hosts, before the transport header. What hosts say beside
    /// it is left out.
    #[must_use]
    pub fn shim(&self) -> ShimRepr {
        ShimRepr {
            src: self.src,
            dst: self.dst,
            proto: self.proto,
            path: self.path,
            class: self.class,
            flags: self.flags.0,
            wire_len: self.wire_len,
            msg: self.span.msg,
            offset: self.span.offset,
            span_len: self.span.len,
            ..ShimRepr::default()
        }
    }

    /// The packet that has travelled so, with its transport header, of at most [`HDR_MAX`] bytes.
    #[must_use]
    pub fn from_shim(shim: &ShimRepr, header: &[u8]) -> Self {
        let mut pkt = Self {
            src: shim.src,
            dst: shim.dst,
            proto: shim.proto,
            path: shim.path,
            class: shim.class,
            flags: Flags(shim.flags),
            wire_len: shim.wire_len,
            span: Span { msg: shim.msg, offset: shim.offset, len: shim.span_len },
            ..Self::EMPTY
        };
        pkt.put_header(header);
        pkt
    }

    /// Ethernet, IP and perhaps UDP around the transport header, as a capture or a switch's program
    /// sees them.
    #[must_use]
    pub fn frame(&self) -> FrameRepr {
        // Not from `wire_len`: simulators count headers in their own ways, and a dissector adds up
        // the bytes of a stream.
        let body_len = (usize::from(self.hdr_len) + self.payload_len() as usize)
            .min(usize::from(u16::MAX)) as u16;
        let ecn = if self.flags.has(Flags::CE) {
            Ecn::Marked
        } else if self.flags.has(Flags::ECT) {
            Ecn::Capable
        } else {
            Ecn::NotCapable
        };
        let carrier = match self.proto {
            UDP => Carrier::Udp { port: cbr::PORT },
            roce::PROTO => Carrier::Udp { port: roce::PORT },
            proto => Carrier::Ip { proto },
        };
        FrameRepr {
            src: self.src,
            dst: self.dst,
            carrier,
            class: self.class & 7,
            ecn,
            path: self.path,
            body_len,
        }
    }

    /// The header bytes in use.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.hdr[..usize::from(self.hdr_len).min(HDR_MAX)]
    }
}
