//! What a NIC was given, cycle by cycle: to be given again, and to be read.

use std::fmt;

use endpoint::{Flags, HDR_MAX, Msg, MsgId, Packet, Span};
use nic::nano::config::Config;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use units::HostId;

use super::hex::{self, Hex};
use super::shrink::Inputs;
use super::traffic::{Given, Traffic, headers};

/// The inputs of a NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// How many cycles.
    cycles: u64,
    /// The cycles in which the wire begins to let the arbiter choose and, in turn, ceases to.
    open: Vec<u64>,
    /// In the order of their cycles.
    #[serde(deserialize_with = "in_order")]
    events: Vec<Event>,
}

/// A message or a packet, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When.
    cycle: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packet: Option<Arrival>,
}

/// A message that the application submits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    id: u64,
    dst: u32,
    bytes: u64,
    transport: u8,
}

/// A packet that comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(serialize_with = "hex::serialize", deserialize_with = "short")]
    header: Vec<u8>,
    /// All headers as they are at `rx_frame_i`: to be read; a replay makes them again.
    frame: String,
}

/// A transport header, of no more bytes than a packet has room for.
fn short<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let header = hex::deserialize(from)?;
    if header.len() > HDR_MAX {
        let text = format!("a header of {} bytes, where {HDR_MAX} are possible", header.len());
        return Err(D::Error::custom(text));
    }
    Ok(header)
}

/// Events, each with something in it and none before the one before.
fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Event>, D::Error> {
    struct InOrder;

    impl<'de> Visitor<'de> for InOrder {
        type Value = Vec<Event>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("messages and packets, in the order of their cycles")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<Event>, A::Error> {
            let mut events: Vec<Event> = Vec::new();
            while let Some(event) = from.next_element::<Event>()? {
                let cycle = event.cycle;
                let fault = match events.last() {
                    _ if event.message.is_none() && event.packet.is_none() => {
                        Some(format!("neither message nor packet in cycle {cycle}"))
                    }
                    Some(last) if last.cycle > cycle => {
                        Some(format!("cycle {cycle} stands behind cycle {}", last.cycle))
                    }
                    Some(_) if twice(&events, &event) => {
                        Some(format!("two packets or two messages in cycle {cycle}"))
                    }
                    _ => None,
                };
                if let Some(fault) = fault {
                    return Err(A::Error::custom(fault));
                }
                events.push(event);
            }
            Ok(events)
        }
    }

    from.deserialize_seq(InOrder)
}

/// Whether the cycle of an event has its message or its packet already.
fn twice(events: &[Event], event: &Event) -> bool {
    let mut same = events.iter().rev().take_while(|before| before.cycle == event.cycle);
    same.any(|before| {
        before.message.is_some() && event.message.is_some()
            || before.packet.is_some() && event.packet.is_some()
    })
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
            // An event each: one of them may be left out.
            let message = given.message.as_ref().map(message_of);
            let packet = given.packet.as_ref().map(arrival_of);
            let event = Event { cycle, ..Event::default() };
            trace.events.extend(message.map(|it| Event { message: Some(it), ..event.clone() }));
            trace.events.extend(packet.map(|it| Event { packet: Some(it), ..event }));
        }
        trace
    }

    /// Whether a NIC of `config` can be given it, whose packets are `spacing` cycles apart at
    /// least.
    ///
    /// # Errors
    /// What it cannot be given.
    pub fn check(&self, config: &Config, spacing: u64) -> Result<(), String> {
        if self.cycles == 0 {
            return Err("it has no cycles".into());
        }
        if self.open.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err("`open` is not in the order of its cycles".into());
        }
        let mut free = 0;
        for Event { cycle, message, packet } in &self.events {
            let longest = config.longest().into();
            if *cycle >= self.cycles {
                return Err(format!("an event in cycle {cycle}, of {} cycles", self.cycles));
            }
            if let Some(message) = message.as_ref().filter(|message| message.bytes > longest) {
                let bytes = message.bytes;
                return Err(format!("cycle {cycle}: a message of {bytes} bytes, {longest} fit"));
            }
            if packet.is_some() && *cycle < free {
                return Err(format!("cycle {cycle}: a packet, {free} is the first one for it"));
            }
            if packet.is_some() {
                free = cycle + spacing;
            }
        }
        Ok(())
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
                given.message = event.message.as_ref().map(msg_of).or(given.message);
                given.packet = event.packet.as_ref().map(packet_of).or(given.packet);
            }
            given
        })
    }

    /// How many cycles.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.cycles
    }

    /// Whether it has no cycles.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cycles == 0
    }

    /// Messages and packets.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many packets.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.events.iter().filter(|event| event.packet.is_some()).count()
    }
}

impl Inputs for Trace {
    fn count(&self) -> usize {
        self.events.len()
    }

    fn keep(&self, stays: &dyn Fn(usize) -> bool) -> Self {
        let events = self.events.iter().enumerate().filter(|(at, _)| stays(*at));
        Self { events: events.map(|(_, event)| event.clone()).collect(), ..self.clone() }
    }

    fn idle(&self, event: usize, spacing: u64) -> u64 {
        let after = event.checked_sub(1).map_or(0, |before| self.events[before].cycle + spacing);
        let end = self.events.get(event).map_or(self.cycles, |event| event.cycle);
        end.saturating_sub(after)
    }

    /// The wire is in each cycle after them as it was.
    fn without(&self, event: usize, cycles: u64) -> Self {
        let from = event.checked_sub(1).map_or(0, |before| self.events[before].cycle + 1);
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

    fn cut(&self, cycles: u64) -> Self {
        let events = self.events.iter().filter(|event| event.cycle < cycles).cloned().collect();
        let open = self.open.iter().copied().filter(|at| *at < cycles).collect();
        Self { cycles: cycles.min(self.cycles), open, events }
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
        header: packet.header().to_vec(),
        frame: format!("{:?}", Hex(&headers(packet))),
    }
}

fn packet_of(arrival: &Arrival) -> Packet {
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
    packet.put_header(&arrival.header);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let packet = Packet { src: HostId(2), dst: HostId(1), wire_len: 65, ..Packet::EMPTY };
        let mut packet = packet;
        packet.put_header(&[1, 0xab]);
        let event = |cycle| Event { cycle, ..Event::default() };
        let arrival = Some(arrival_of(&packet));
        Trace {
            cycles: 40,
            open: vec![3, 12, 20],
            events: vec![
                Event { packet: arrival.clone(), ..event(5) },
                Event { message: Some(message_of(&Msg::new(HostId(3), 7))), ..event(5) },
                Event { packet: arrival, ..event(30) },
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
        let less = trace().without(2, 10);
        assert_eq!((less.len(), less.events[2].cycle), (30, 20));
        let before: Vec<bool> = trace().cycles().map(|given| given.open).collect();
        let after: Vec<bool> = less.cycles().map(|given| given.open).collect();
        assert_eq!(after, [&before[..6], &before[16..]].concat());
        let cut = trace().cut(6);
        assert_eq!((cut.len(), cut.count()), (6, 2));
    }

    #[test]
    fn it_is_text() {
        let text = serde_json::to_string(&trace()).unwrap();
        assert!(text.contains("\"header\":\"01ab\""), "{text}");
        assert_eq!(serde_json::from_str::<Trace>(&text).unwrap(), trace());
    }

    /// What is wrong with a trace is said where it stands.
    #[test]
    fn what_is_no_trace_is_refused_with_its_place() {
        let text = serde_json::to_string_pretty(&trace()).unwrap();
        for (from, to, why) in [
            ("\"01ab\"", "\"01a\"", "bytes, two hex digits each"),
            ("\"01ab\"", "\"01+b\"", "bytes, two hex digits each"),
            ("\"01ab\"", &format!("\"{}\"", "00".repeat(HDR_MAX + 1)), "a header of"),
            ("\"cycle\": 30", "\"cycle\": 4", "cycle 4 stands behind cycle 5"),
            ("\"cycle\": 30", "\"cycle\": 5", "two packets or two messages in cycle 5"),
            ("\"message\": {", "\"mesage\": {", "unknown field `mesage`"),
        ] {
            assert!(text.contains(from), "{text}");
            let error = serde_json::from_str::<Trace>(&text.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(why) && error.line() > 8, "{to}: {error}");
        }
        let neither = r#"{"cycles":9,"open":[],"events":[{"cycle":3}]}"#;
        let error = serde_json::from_str::<Trace>(neither).unwrap_err();
        assert!(error.to_string().contains("neither message nor packet in cycle 3"), "{error}");
    }

    #[test]
    fn what_a_nic_cannot_be_given_is_refused() {
        let config = Config::prototype(9, units::Dur::from_us(1));
        assert_eq!(trace().check(&config, 2), Ok(()));
        let mut long = trace();
        long.events[1].message = Some(message_of(&Msg::new(HostId(3), 1 << 30)));
        for (trace, spacing, why) in [
            (Trace::default(), 2, "no cycles"),
            (trace(), 26, "cycle 30: a packet, 31 is the first one for it"),
            (Trace { cycles: 30, ..trace() }, 2, "an event in cycle 30, of 30 cycles"),
            (Trace { open: vec![5, 3], ..trace() }, 2, "`open`"),
            (long, 2, "a message of 1073741824 bytes"),
        ] {
            let refused = trace.check(&config, spacing).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
