//! What a NIC was given, cycle by cycle: to be given again, and to be read.

use endpoint::{Flags, Msg, MsgId, Packet, Span};
use serde::{Deserialize, Serialize};
use units::HostId;

use super::Hex;
use super::traffic::{Given, Traffic, headers};

/// The inputs of a NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// How many cycles.
    cycles: u64,
    /// The cycles in which the wire begins to let the arbiter choose and, in turn, ceases to.
    open: Vec<u64>,
    /// In the order of their cycles.
    events: Vec<Event>,
}

/// A message or a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    cycle: u64,
    /// What.
    #[serde(flatten)]
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Message(Message),
    Packet(Arrival),
}

/// A message that the application submits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    id: u64,
    dst: u32,
    bytes: u64,
    transport: u8,
}

/// A packet that comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Arrival {
    src: u32,
    dst: u32,
    protocol: u8,
    class: u8,
    flags: u8,
    wire_len: u16,
    message: u64,
    offset: u64,
    bytes: u32,
    /// The transport header.
    header: String,
    /// All headers as they are at `rx_frame_i`: to be read; a replay makes them again.
    frame: String,
}

impl Trace {
    /// The next `cycles` of traffic.
    pub fn record(traffic: &mut Traffic, cycles: u64) -> Self {
        let mut trace = Self { cycles, ..Self::default() };
        for cycle in 0..cycles {
            let (given, _) = traffic.cycle();
            if given.open == trace.open.len().is_multiple_of(2) {
                trace.open.push(cycle);
            }
            let message = given.message.as_ref().map(|message| What::Message(message_of(message)));
            let packet = given.packet.as_ref().map(|packet| What::Packet(arrival_of(packet)));
            trace
                .events
                .extend([message, packet].into_iter().flatten().map(|what| Event { cycle, what }));
        }
        trace
    }

    /// What the NIC is given in each cycle.
    pub fn cycles(&self) -> impl Iterator<Item = Given> {
        let (mut events, mut open) = (self.events.iter().peekable(), self.open.iter().peekable());
        let mut is_open = false;
        (0..self.cycles).map(move |cycle| {
            while open.next_if(|at| **at <= cycle).is_some() {
                is_open = !is_open;
            }
            let mut given = Given { open: is_open, ..Given::default() };
            while let Some(event) = events.next_if(|event| event.cycle <= cycle) {
                match &event.what {
                    What::Message(message) => given.message = Some(msg_of(message)),
                    What::Packet(arrival) => given.packet = packet_of(arrival),
                }
            }
            given
        })
    }

    /// How many cycles.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.cycles
    }

    /// Whether nothing is given in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Messages and packets.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many packets.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.events.iter().filter(|event| matches!(event.what, What::Packet(_))).count()
    }

    /// With these events instead.
    #[must_use]
    pub(super) fn with(&self, events: Vec<Event>) -> Self {
        Self { events, ..self.clone() }
    }

    /// Without what comes after `cycles`.
    #[must_use]
    pub(super) fn cut(&self, cycles: u64) -> Self {
        let events = self.events.iter().filter(|event| event.cycle < cycles).cloned().collect();
        let open = self.open.iter().copied().filter(|at| *at < cycles).collect();
        Self { cycles: cycles.min(self.cycles), open, events }
    }

    /// The cycle of an event.
    pub(super) fn cycle(&self, event: usize) -> Option<u64> {
        self.events.get(event).map(|event| event.cycle)
    }

    /// Without the `cycles` from `from` on, in which no event is. The wire is in each cycle after
    /// them as it was.
    #[must_use]
    pub(super) fn without(&self, from: u64, cycles: u64) -> Self {
        let end = from + cycles;
        let earlier = |at: u64| if at < end { at } else { at - cycles };
        let mut open: Vec<u64> = self.open.iter().copied().filter(|at| *at < from).collect();
        let inside = self.open.iter().filter(|at| (from..end).contains(*at)).count();
        if !inside.is_multiple_of(2) {
            open.push(from);
        }
        open.extend(self.open.iter().filter(|at| **at >= end).map(|at| at - cycles));
        let events =
            self.events.iter().map(|event| Event { cycle: earlier(event.cycle), ..event.clone() });
        Self { cycles: self.cycles.saturating_sub(cycles), open, events: events.collect() }
    }
}

fn message_of(message: &Msg) -> Message {
    let Msg { id, dst, len, transport, .. } = *message;
    Message { id: id.0, dst: dst.0, bytes: len, transport }
}

fn msg_of(message: &Message) -> Msg {
    let (id, transport) = (MsgId(message.id), message.transport);
    Msg { id, transport, ..Msg::new(HostId(message.dst), message.bytes) }
}

fn arrival_of(packet: &Packet) -> Arrival {
    Arrival {
        src: packet.src.0,
        dst: packet.dst.0,
        protocol: packet.proto,
        class: packet.class,
        flags: packet.flags.0,
        wire_len: packet.wire_len,
        message: packet.span.msg.0,
        offset: packet.span.offset,
        bytes: packet.span.len,
        header: format!("{:?}", Hex(packet.header().to_vec())),
        frame: format!("{:?}", Hex(headers(packet))),
    }
}

/// None where the header is no bytes, or too many.
fn packet_of(arrival: &Arrival) -> Option<Packet> {
    let header = arrival.header.as_bytes().chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    });
    let header: Vec<u8> = header.collect::<Option<_>>()?;
    let mut packet = Packet {
        src: HostId(arrival.src),
        dst: HostId(arrival.dst),
        proto: arrival.protocol,
        class: arrival.class,
        flags: Flags(arrival.flags),
        wire_len: arrival.wire_len,
        span: Span { msg: MsgId(arrival.message), offset: arrival.offset, len: arrival.bytes },
        ..Packet::EMPTY
    };
    (header.len() <= endpoint::HDR_MAX).then(|| packet.put_header(&header))?;
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let packet = Packet { src: HostId(2), dst: HostId(1), wire_len: 65, ..Packet::EMPTY };
        let mut packet = packet;
        packet.put_header(&[1, 0xab]);
        let event = |cycle, what| Event { cycle, what };
        Trace {
            cycles: 40,
            open: vec![3, 12, 20],
            events: vec![
                event(5, What::Packet(arrival_of(&packet))),
                event(5, What::Message(message_of(&Msg::new(HostId(3), 7)))),
                event(30, What::Packet(arrival_of(&packet))),
            ],
        }
    }

    #[test]
    fn what_was_recorded_comes_again() {
        let given: Vec<Given> = trace().cycles().collect();
        assert_eq!(given.len(), 40);
        let open: Vec<usize> = (0..40).filter(|cycle| given[*cycle].open).collect();
        assert_eq!(open, (3..12).chain(20..40).collect::<Vec<_>>());
        let at = |cycle: usize| (given[cycle].packet.is_some(), given[cycle].message.is_some());
        assert_eq!([at(4), at(5), at(30)], [(false, false), (true, true), (true, false)]);
        let packet = given[5].packet.unwrap();
        assert_eq!((packet.header(), packet.wire_len, packet.src), (&[1, 0xab][..], 65, HostId(2)));
    }

    #[test]
    fn a_gap_is_closed_and_the_wire_stays_as_it_was() {
        let less = trace().without(6, 10);
        assert_eq!((less.len(), less.cycle(2)), (30, Some(20)));
        let before: Vec<bool> = trace().cycles().map(|given| given.open).collect();
        let after: Vec<bool> = less.cycles().map(|given| given.open).collect();
        assert_eq!(after, [&before[..6], &before[16..]].concat());
        let cut = trace().cut(6);
        assert_eq!((cut.len(), cut.events().len()), (6, 2));
    }

    #[test]
    fn it_is_text() {
        let text = serde_json::to_string(&trace()).unwrap();
        assert!(text.contains("\"header\":\"01ab\""), "{text}");
        assert_eq!(serde_json::from_str::<Trace>(&text).unwrap(), trace());
    }
}
