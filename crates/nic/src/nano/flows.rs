//! Windows and paces of flows, for programs whose senders decide how fast they send (docs/nic.md,
//! "Flows"). A flow is all messages to one host; a program sets its window and its gap by
//! `set_flow`.
//!
//! In hardware: a table of [`FLOWS`] entries beside packetization's, 112 bits each, read and
//! written once for each packet that leaves. The message whose packet is next is found among those
//! that wait, one for each id, as the priority scheduler finds its own.

use units::{Dur, Time};

/// Flows of a NIC. The low bits of a host's address choose its cell; hosts in which they agree
/// share it.
pub const FLOWS: usize = 256;

/// A gap counts in so many parts of a cycle, for each [`WORD`] of payload.
const PARTS: u128 = 256;
/// Bytes of a word.
const WORD: u16 = 64;

/// What a program says of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Packets that may be in flight; one may always.
    pub window: u16,
    /// From one packet to the next, also if the last one was sent with another gap, in 1/256 cycle
    /// for each 64 bytes of the first one's payload. Zero: as the wire has it.
    pub gap: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    pace: Pace,
    /// Packets that have been sent and neither delivered nor trimmed, of all its messages.
    in_flight: u32,
    /// When the last packet was in the arbiter, as the pace has it, and the bytes of its payload.
    last: Time,
    payload: u16,
    /// When the window last opened.
    opened: Time,
}

/// The flows of a NIC.
#[derive(Debug)]
pub struct Flows(Vec<Flow>);

/// The flow of messages to the host with this address.
#[must_use]
pub const fn flow_of(dst_ip: u32) -> usize {
    dst_ip as usize % FLOWS
}

impl Flows {
    /// Nothing is in flight, and so many packets may be in each.
    #[must_use]
    pub fn new(window: u16) -> Self {
        let pace = Pace { window, gap: 0 };
        let (last, opened) = (Time::ZERO, Time::ZERO);
        Self(vec![Flow { pace, in_flight: 0, last, payload: 0, opened }; FLOWS])
    }

    /// Since when `flow` may send; `None`: not before something is delivered or the window is
    /// larger. What goes again and `has_room`, since it is in flight or has arrived meanwhile,
    /// needs no window.
    #[must_use]
    pub fn open_since(&self, flow: usize, has_room: bool) -> Option<Time> {
        let flow = self.0.get(flow)?;
        (has_room || flow.is_open()).then_some(flow.since())
    }

    /// A packet with so many bytes of payload goes to the wire, which was in the arbiter at `at`. A
    /// packet that was late does not delay those after it, but by no more than its own gap.
    pub fn sent(&mut self, flow: usize, has_room: bool, payload: u16, at: Time) {
        let Some(flow) = self.0.get_mut(flow) else { return };
        flow.in_flight += u32::from(!has_room);
        let late = at.since(flow.since()).min(flow.pace.time_of(payload));
        flow.last = Time(at.0 - late.0);
        flow.payload = payload;
    }

    /// So many packets are in flight again, whether there is room for them or not.
    pub fn again(&mut self, flow: usize, packets: u32) {
        if let Some(flow) = self.0.get_mut(flow) {
            flow.in_flight += packets;
        }
    }

    /// So many of the packets in flight have been delivered or trimmed, or their message is over.
    pub fn done(&mut self, now: Time, flow: usize, packets: u32) {
        let Some(flow) = self.0.get_mut(flow) else { return };
        let was_open = flow.is_open();
        flow.in_flight = flow.in_flight.saturating_sub(packets);
        flow.opens(now, was_open);
    }

    /// The program's word.
    pub fn set(&mut self, now: Time, flow: usize, pace: Pace) {
        let Some(flow) = self.0.get_mut(flow) else { return };
        let was_open = flow.is_open();
        flow.pace = pace;
        flow.opens(now, was_open);
    }
}

impl Flow {
    fn is_open(&self) -> bool {
        self.in_flight < u32::from(self.pace.window.max(1))
    }

    /// Since when the next packet may be in the arbiter, if the window is open.
    fn since(&self) -> Time {
        self.opened.max(self.last + self.pace.time_of(self.payload))
    }

    /// A window that opens at `now` lets the next packet into the arbiter then.
    fn opens(&mut self, now: Time, was_open: bool) {
        if self.is_open() && !was_open {
            self.opened = now;
        }
    }
}

impl Pace {
    /// How long a packet with so many bytes of payload holds its flow.
    fn time_of(self, payload: u16) -> Dur {
        let words = payload.div_ceil(WORD);
        let parts = u128::from(self.gap) * u128::from(words);
        // A cycle lasts 312.5 ps.
        Dur((parts * 625).div_ceil(2 * PARTS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u16 = 1024;

    #[test]
    fn a_window_counts_what_is_under_way() {
        let mut flows = Flows::new(2);
        let send = |flows: &mut Flows, n| (0..n).for_each(|_| flows.sent(7, false, FULL, Time(0)));
        send(&mut flows, 2);
        assert_eq!(flows.open_since(7, false), None);
        assert_eq!(flows.open_since(7, true), Some(Time(0)), "a repeat is in flight already");
        assert_eq!(flows.open_since(8, false), Some(Time(0)), "another flow");
        flows.done(Time(50), 7, 1);
        assert_eq!(flows.open_since(7, false), Some(Time(50)), "not before it has opened");
        flows.set(Time(60), 7, Pace { window: 0, gap: 0 });
        assert_eq!(flows.open_since(7, false), None, "one is in flight");
        flows.done(Time(70), 7, 1);
        assert_eq!(flows.open_since(7, false), Some(Time(70)), "one may always be");
    }

    /// 1024 bytes in 16 words; 256 cycles of 312.5 ps each.
    #[test]
    fn a_gap_spreads_packets_by_their_payload() {
        let pace = Pace { window: 100, gap: 256 * 256 };
        assert_eq!(pace.time_of(FULL), Dur(16 * 80_000));
        assert_eq!(pace.time_of(1), Dur(80_000));
        assert_eq!(Pace { gap: 1, ..pace }.time_of(FULL), Dur(20), "19.53 ps, rounded up");
        let mut flows = Flows::new(100);
        flows.set(Time(0), 1, pace);
        flows.sent(1, false, 64, Time(1_000));
        assert_eq!(flows.open_since(1, false), Some(Time(80_000)));
        // 30 ns late: the next is not.
        flows.sent(1, false, 64, Time(110_000));
        assert_eq!(flows.open_since(1, false), Some(Time(160_000)));
        // Late by more than a gap: that is not made up for.
        flows.sent(1, false, 64, Time(1_000_000));
        assert_eq!(flows.open_since(1, false), Some(Time(1_000_000)));
        flows.sent(1, false, 64, Time(1_000_000));
        assert_eq!(flows.open_since(1, false), Some(Time(1_080_000)));
        flows.set(Time(1_000_001), 1, Pace { gap: 128 * 256, ..pace });
        assert_eq!(
            flows.open_since(1, false),
            Some(Time(1_040_000)),
            "what holds is the last word"
        );
    }
}
