//! In-band network telemetry as HPCC has it (Li et al., SIGCOMM 2019, section 4.1 and figure 7; the
//! authors' simulator `alibaba-edu/High-Precision-Congestion-Control`): each switch port writes
//! what it knows of itself into a packet as the packet begins to leave, and the receiver sends that
//! back.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 2 | switch ports passed, also those beyond the fifth, of which nothing is written |
//! | 2 + 8i | 8 | port i: 3 bits line rate, 24 bits time, 20 bits bytes sent, 17 bits queue, the first the highest |
//!
//! All big-endian. The sender leaves all [`LEN`] bytes free, at the end of its header and zeroed,
//! so that a packet keeps its size on the way. Bytes count in units of 128 B and queues in units of
//! 80 B, both times the whole 25 Gb/s of the line.

use units::{Dur, Rate, Time};

/// Ports that are written down: the longest way through a Clos of three tiers.
pub const HOPS: usize = 5;
/// Bytes of it in a header.
pub const LEN: usize = 2 + 8 * HOPS;

/// Line rates by their code, Gb/s. The paper has the first five; the others are ours.
const GBPS: [u64; 8] = [25, 50, 100, 200, 400, 10, 40, 800];
/// Bytes sent count in so many bytes per 25 Gb/s of the line.
const BYTES_UNIT: u64 = 128;
/// Queues count in so many bytes per 25 Gb/s of the line.
const QUEUE_UNIT: u64 = 80;

const TIME_BITS: u32 = 24;
const BYTES_BITS: u32 = 20;
const QUEUE_BITS: u32 = 17;

/// What a switch port writes. Time and bytes are counters that go round: only differences mean
/// something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop(u64);

impl Hop {
    /// Of a port with a line of `rate` that begins to send the packet at `now`, having sent `sent`
    /// bytes before it and with `queue` bytes behind it. `None` if INT has no code for the rate;
    /// see [`Hop::rates`].
    #[must_use]
    pub fn new(rate: Rate, now: Time, sent: u64, queue: u64) -> Option<Self> {
        let code = GBPS.iter().position(|gbps| gbps * 1_000_000_000 == rate.0)? as u64;
        let scale = scale(code);
        let time = now.0 / 1_000 % (1 << TIME_BITS);
        let sent = sent / (BYTES_UNIT * scale) % (1 << BYTES_BITS);
        let queue = (queue / (QUEUE_UNIT * scale)).min((1 << QUEUE_BITS) - 1);
        let bits = (code << TIME_BITS | time) << BYTES_BITS | sent;
        Some(Self(bits << QUEUE_BITS | queue))
    }

    /// The line rates that have a code, Gb/s.
    #[must_use]
    pub const fn rates() -> [u64; 8] {
        GBPS
    }

    fn code(self) -> u64 {
        self.0 >> (TIME_BITS + BYTES_BITS + QUEUE_BITS)
    }

    /// The line rate.
    #[must_use]
    pub fn rate(self) -> Rate {
        Rate(GBPS[self.code() as usize] * 1_000_000_000)
    }

    /// Bytes that the packet left behind, to the unit below; at most about 10 MB per 25 Gb/s.
    #[must_use]
    pub fn queue(self) -> u64 {
        self.0 % (1 << QUEUE_BITS) * QUEUE_UNIT * scale(self.code())
    }

    /// From what the same port wrote `earlier`, less than 16.8 ms before: the time between, to a
    /// nanosecond.
    #[must_use]
    pub fn since(self, earlier: Self) -> Dur {
        let time = |hop: Self| hop.0 >> (BYTES_BITS + QUEUE_BITS);
        Dur::from_ns(time(self).wrapping_sub(time(earlier)) % (1 << TIME_BITS))
    }

    /// From what the same port wrote `earlier`: bytes sent between, to a unit, if they were fewer
    /// than 134 MB per 25 Gb/s of the line.
    #[must_use]
    pub fn sent_since(self, earlier: Self) -> u64 {
        let sent = |hop: Self| hop.0 >> QUEUE_BITS;
        let units = sent(self).wrapping_sub(sent(earlier)) % (1 << BYTES_BITS);
        units * BYTES_UNIT * scale(self.code())
    }
}

/// How many times 25 Gb/s the line has, at least once.
fn scale(code: u64) -> u64 {
    (GBPS[code as usize] / 25).max(1)
}

/// The telemetry of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Switch ports passed.
    pub passed: u16,
    hops: [Hop; HOPS],
}

impl Stack {
    /// What the ports passed have written, the first first.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.passed).min(HOPS)]
    }

    /// Another port is passed.
    pub fn push(&mut self, hop: Hop) {
        if let Some(free) = self.hops.get_mut(usize::from(self.passed)) {
            *free = hop;
        }
        self.passed = self.passed.saturating_add(1);
    }

    /// Read what is at the end of `header`; `None` if that is too short.
    #[must_use]
    pub fn parse(header: &[u8]) -> Option<Self> {
        let [p0, p1, records @ ..] = header.last_chunk::<LEN>()?;
        let mut hops = [Hop::default(); HOPS];
        for (hop, bytes) in hops.iter_mut().zip(records.as_chunks().0) {
            *hop = Hop(u64::from_be_bytes(*bytes));
        }
        Some(Self { passed: u16::from_be_bytes([*p0, *p1]), hops })
    }

    /// This as on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..2].copy_from_slice(&self.passed.to_be_bytes());
        for (bytes, hop) in bytes[2..].as_chunks_mut().0.iter_mut().zip(&self.hops) {
            *bytes = hop.0.to_be_bytes();
        }
        bytes
    }
}

/// Another port is passed by a packet with `header`, at whose end its telemetry is. Nothing happens
/// if that is too short.
pub fn push(header: &mut [u8], hop: Hop) {
    if let Some(mut stack) = Stack::parse(header)
        && let Some(place) = header.last_chunk_mut::<LEN>()
    {
        stack.push(hop);
        *place = stack.to_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GBPS_100: Rate = Rate(100_000_000_000);

    fn hop(ns: u64, sent: u64, queue: u64) -> Hop {
        Hop::new(GBPS_100, Time(ns * 1_000), sent, queue).unwrap()
    }

    /// By hand, at 100 Gb/s: code 2, 5 ns, 3 units of 512 B, 2 units of 320 B.
    #[test]
    fn byte_for_byte() {
        let mut stack = Stack::default();
        stack.push(hop(5, 3 * 512 + 511, 2 * 320 + 319));
        let bits = (2u64 << 61) | (5 << 37) | (3 << 17) | 2;
        assert_eq!(stack.to_bytes()[..2], [0, 1]);
        assert_eq!(stack.to_bytes()[2..10], bits.to_be_bytes());
        assert_eq!(stack.hops()[0].rate(), GBPS_100);
        assert_eq!(stack.hops()[0].queue(), 640, "quantised to the unit below");
    }

    /// specs/rdma.md#I11: time goes round after 2^24 ns, bytes after 2^20 units.
    #[test]
    fn i11_counters_go_round() {
        let before = hop((1 << 24) - 100, ((1 << 20) - 2) * 512, 0);
        let after = hop((1 << 24) + 60, ((1 << 20) + 5) * 512, 0);
        assert_eq!(after.since(before), Dur::from_ns(160));
        assert_eq!(after.sent_since(before), 7 * 512);
        assert_eq!(after.since(after), Dur::ZERO);
        let much = hop(0, 0, u64::MAX);
        assert_eq!(
            much.queue(),
            ((1 << 17) - 1) * 320,
            "a queue does not go round: it is the longest"
        );
    }

    #[test]
    fn only_rates_with_a_code() {
        assert_eq!(Hop::new(Rate(7_000_000_000), Time::ZERO, 0, 0), None);
        for gbps in Hop::rates() {
            let rate = Rate(gbps * 1_000_000_000);
            assert_eq!(Hop::new(rate, Time::ZERO, 0, 0).unwrap().rate(), rate);
        }
    }

    #[test]
    fn a_sixth_port_is_counted_and_not_written() {
        let mut header = [0; 50];
        for n in 0..7 {
            push(&mut header, hop(n, 0, 0));
        }
        let stack = Stack::parse(&header).unwrap();
        assert_eq!((stack.passed, stack.hops().len()), (7, HOPS));
        assert_eq!(stack.hops()[4], hop(4, 0, 0));
        assert_eq!(header[..8], [0; 8], "before it is the transport's header");
        assert_eq!(Stack::parse(&header[..LEN - 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_telemetry(bytes in proptest::collection::vec(any::<u8>(), LEN)) {
            let stack = Stack::parse(&bytes).unwrap();
            prop_assert_eq!(&stack.to_bytes()[..], &bytes[..]);
            for &hop in stack.hops() {
                let ns = hop.0 >> 37 & 0xff_ffff;
                prop_assert_eq!(Hop::new(hop.rate(), Time(ns * 1_000), hop.sent_since(Hop(hop.code() << 61)), hop.queue()), Some(hop));
            }
        }
    }
}
