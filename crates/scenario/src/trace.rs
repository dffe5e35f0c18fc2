//! What looks at every packet. `--trace`: every packet as a capture and on a time line, and every
//! switch queue over time. `measure.packet_latency`: how long packets take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use endpoint::{
    Flags, FlowRecord, JobRecord, Life, MessageRecord, Observer, Packet, PacketEvent, RttRecord,
    Stat,
};
use fabric::Link;
use metrics::{FileError, OutputDir, PerfettoWriter, QueueRow, TableWriter};
use units::{MsgKey, Time};
use wire::frame::mirror_trimmed;
use wire::pfc;

use crate::Scenario;
use crate::captures::Captures;
use crate::flow_trace::FlowTracer;
use crate::packet_latency::{Latencies, LatencyMeter};
use crate::record::Recorder;

/// What to trace. Tracing changes no result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Packets: `packets.pcapng`, `hops.pcapng` and `trace.perfetto.json`.
    pub packets: bool,
    /// Queues: `queues.parquet`.
    pub queues: bool,
    /// Windows, rates and round trips of these messages: `flow_trace.parquet`.
    pub flows: Vec<MsgKey>,
}

impl Trace {
    /// Whether anything is traced.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.packets || self.queues || !self.flows.is_empty()
    }
}

/// The observer that keeps messages, writes traces and times packets.
pub(crate) struct Tracer {
    recorder: Recorder,
    meter: Option<LatencyMeter>,
    links: Vec<Link>,
    /// By the protocol that packets bear on the wire, that of their transport's kind.
    protocols: Vec<(u8, u8)>,
    packets: Option<Packets>,
    queues: Option<TableWriter<QueueRow>>,
    flows: Option<FlowTracer>,
    /// What each queue held when it was last seen.
    held: Vec<u32>,
    /// The first thing that could not be written; nothing is written after it.
    error: Option<FileError>,
    /// Whether there is one, for the run to stop.
    pub(crate) failed: Arc<AtomicBool>,
}

/// What a traced run leaves beside the files of its traces.
pub(crate) struct Traced {
    pub(crate) recorder: Recorder,
    pub(crate) latencies: Option<Latencies>,
    /// Messages that were to be traced, and of which there is nothing to say.
    pub(crate) silent: Vec<MsgKey>,
}

/// The files of `--trace packets`.
struct Packets {
    captures: Captures,
    time_line: PerfettoWriter,
}

impl Packets {
    fn new(out: &OutputDir, links: &[Link]) -> Result<Self, FileError> {
        let names = links.iter().map(Link::to_string);
        let time_line = PerfettoWriter::new(out.file("trace.perfetto.json")?, names)?;
        Ok(Self { captures: Captures::new(out, links)?, time_line })
    }

    fn finish(self) -> Result<(), FileError> {
        self.captures.finish()?;
        self.time_line.finish()
    }
}

/// Room for all headers of a frame; payload is not simulated.
const FRAME_MAX: usize = 128;

impl Tracer {
    /// Start the files of `trace` in `out`; without `out` there are none. With `meter`, time
    /// packets.
    pub(crate) fn new(
        trace: &Trace,
        scenario: &Scenario,
        out: Option<&OutputDir>,
        recorder: Recorder,
        meter: Option<LatencyMeter>,
    ) -> Result<Self, FileError> {
        let links = scenario.topology().links().to_vec();
        let protocols = scenario.transports.protocols();
        let packets = out.filter(|_| trace.packets).map(|out| Packets::new(out, &links));
        let packets = packets.transpose()?;
        let queues = match out.filter(|_| trace.queues) {
            Some(out) => Some(TableWriter::new(out.file("queues.parquet")?)?),
            None => None,
        };
        let flows = out.filter(|_| !trace.flows.is_empty());
        let keeps_rtts = scenario.measure().rtt;
        let flows = flows.map(|out| FlowTracer::new(&trace.flows, keeps_rtts, out)).transpose()?;
        let (held, error) = (vec![0; links.len()], None);
        let failed = recorder.failed();
        Ok(Self { recorder, meter, links, protocols, packets, queues, flows, held, error, failed })
    }

    /// Complete the files, or say what could not be written.
    pub(crate) fn finish(self) -> Result<Traced, FileError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.packets.map_or(Ok(()), Packets::finish)?;
        self.queues.map_or(Ok(()), TableWriter::finish)?;
        let silent = self.flows.map_or(Ok(Vec::new()), FlowTracer::finish)?;
        let latencies = self.meter.map(LatencyMeter::finish);
        Ok(Traced { recorder: self.recorder, latencies, silent })
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Self) -> Result<(), FileError>) {
        if self.error.is_none()
            && let Err(error) = write(self)
        {
            self.error = Some(error);
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    fn write_packet(
        &mut self,
        at: Time,
        link: u32,
        event: PacketEvent,
        pkt: &Packet,
    ) -> Result<(), FileError> {
        let Some(Packets { captures, time_line }) = self.packets.as_mut() else { return Ok(()) };
        let Some(on) = self.links.get(link as usize) else { return Ok(()) };
        // When it was on the wire, if it has arrived.
        let length = on.rate.serialise(u64::from(pkt.wire_len));
        let start = Time(at.0.saturating_sub(on.delay.0).saturating_sub(length.0));
        match event {
            PacketEvent::Sent => Ok(()),
            PacketEvent::Arrived => {
                time_line.slice(start, length, link, &name(pkt), u64::from(pkt.wire_len))?;
                let mut frame = [0; FRAME_MAX];
                let (repr, mut hdr) = (pkt.frame(), pkt.hdr);
                let hdr = &mut hdr[..pkt.header().len()];
                if pkt.flags.has(Flags::TRIMMED) {
                    mirror_trimmed(own_protocol(&self.protocols, pkt), hdr);
                }
                match repr.emit(hdr, &mut frame) {
                    Ok(n) => captures.frame(at, link, &frame[..n], repr.original_len() as u32),
                    // A packet with no place in the formats of the Internet is in the time line.
                    Err(_) => Ok(()),
                }
            }
            PacketEvent::Trimmed => time_line.instant(at, link, "trimmed"),
            PacketEvent::Bounced => time_line.instant(at, link, "bounced"),
            PacketEvent::Marked => time_line.instant(at, link, "marked"),
            PacketEvent::Dropped(_) => time_line.instant(at, link, "dropped"),
            PacketEvent::FlowControl => {
                let said = flow_control(pkt.header());
                time_line.slice(start, length, link, &said, u64::from(pkt.wire_len))?;
                captures.frame(at, link, pkt.header(), u32::from(pkt.hdr_len))
            }
        }
    }

    fn write_queue(&mut self, at: Time, link: u32, bytes: u32) -> Result<(), FileError> {
        let bytes = u64::from(bytes);
        if let Some(Packets { time_line, .. }) = self.packets.as_mut() {
            time_line.queue(at, link, bytes)?;
        }
        self.queues.as_mut().map_or(Ok(()), |table| table.push(QueueRow { at, link, bytes }))
    }
}

impl Observer for Tracer {
    fn watches_packets(&self) -> bool {
        true
    }

    fn message(&mut self, record: &MessageRecord) {
        self.recorder.message(record);
    }

    fn count(&mut self, key: MsgKey, stat: Stat, times: u64) {
        self.recorder.count(key, stat, times);
    }

    fn job(&mut self, record: &JobRecord) {
        self.recorder.job(record);
    }

    fn life(&mut self, life: &Life<'_>) {
        self.recorder.life(life);
    }

    fn rtt(&mut self, record: &RttRecord) {
        let keeps = self.flows.as_mut().is_none_or(|flows| flows.rtt(record));
        if keeps {
            self.recorder.rtt(record);
        }
    }

    fn flow(&mut self, record: &FlowRecord) {
        self.flows.iter_mut().for_each(|flows| flows.state(record));
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        if let Some(meter) = &mut self.meter {
            meter.packet(at, link, event, pkt);
        }
        self.attempt(|tracer| tracer.write_packet(at, link, event, pkt));
    }

    fn queue(&mut self, at: Time, link: u32, bytes: u32) {
        // Only changes are written.
        let Some(held) = self.held.get_mut(link as usize) else { return };
        if *held != bytes {
            *held = bytes;
            self.attempt(|tracer| tracer.write_queue(at, link, bytes));
        }
    }
}

/// The protocol of the kind of transport whose packet this is.
fn own_protocol(protocols: &[(u8, u8)], pkt: &Packet) -> u8 {
    let of = protocols.iter().find(|(on_wire, _)| *on_wire == pkt.proto);
    of.map_or(pkt.proto, |(_, own)| *own)
}

/// "data 3 9000+9000": what a packet is, the message and the bytes that it is about.
fn name(pkt: &Packet) -> String {
    let kind = if pkt.flags.has(Flags::BOUNCED) {
        "bounced"
    } else if pkt.flags.has(Flags::TRIMMED) {
        "header"
    } else if pkt.flags.has(Flags::CONTROL) {
        "control"
    } else {
        "data"
    };
    let span = pkt.span;
    format!("{kind} {}->{} #{} {}+{}", pkt.src.0, pkt.dst.0, span.msg.0, span.offset, span.len)
}

/// "XOFF 3, XON 5": what a PFC frame says of which class.
fn flow_control(frame: &[u8]) -> String {
    let repr = pfc::Frame::new_checked(frame).and_then(|frame| pfc::Repr::parse(&frame));
    let Ok(repr) = repr else { return "PFC".to_owned() };
    let said = (0..8).filter_map(|class| match repr.of(class)? {
        0 => Some(format!("XON {class}")),
        _ => Some(format!("XOFF {class}")),
    });
    said.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_flow_control_is_named_by_what_it_says() {
        let mut repr = pfc::Repr { classes: 0b1001_0001, ..pfc::Repr::default() };
        repr.quanta[4] = 79;
        assert_eq!(flow_control(&repr.to_bytes()), "XON 0, XOFF 4, XON 7");
        assert_eq!(flow_control(&[0; 60]), "PFC", "whatever it is");
    }
}
