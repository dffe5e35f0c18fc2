//! What looks at every packet. `--trace`: every packet as a capture and on a time line, and every
//! switch queue over time. `measure.packet_latency`: how long packets take.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use endpoint::{
    Flags, FlowRecord, JobRecord, Life, MessageRecord, Observer, Packet, PacketEvent, RttRecord,
    Stat,
};
use fabric::Link;
use metrics::{FileError, OutputDir, QueueRow, TableWriter};
use units::{MsgKey, Time};
use wire::frame::mirror_trimmed;

use crate::captures::{CapturePoints, Captures, End};
use crate::explain::message_key;
use crate::flow_trace::FlowTracer;
use crate::packet_latency::{Latencies, LatencyMeter};
use crate::record::Recorder;
use crate::time_line::TimeLine;
use crate::{Diagnostic, Error, Scenario, unwritable};

/// What to trace. Tracing changes no result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Packets: `packets.pcapng`, `hops.pcapng` and `trace.perfetto.json`.
    pub packets: bool,
    /// Only what is seen at these places (`host:0`, `tor:1`, `tor 1 -> host 5`); none: everywhere.
    /// Then there is no `hops.pcapng`.
    pub at: Vec<String>,
    /// Queues: `queues.parquet`.
    pub queues: bool,
    /// Windows, rates and round trips of these messages: `flow_trace.parquet`.
    pub flows: Vec<MsgKey>,
}

/// A text of `--trace`: `packets`, `packets@PLACE`, `queues` or `flows@SRC:MSG`.
impl FromStr for Trace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trace = Self::default();
        match text.split_once('@') {
            None if text == "packets" => Ok(Self { packets: true, ..trace }),
            None if text == "queues" => Ok(Self { queues: true, ..trace }),
            None if text == "flows" => Err("say of which message: flows@SRC:MSG".to_owned()),
            Some(("packets", place)) if !place.trim().is_empty() => {
                Ok(Self { packets: true, at: vec![place.to_owned()], ..trace })
            }
            Some(("flows", message)) => Ok(Self { flows: vec![message_key(message)?], ..trace }),
            _ => Err("packets, packets@PLACE, queues or flows@SRC:MSG".to_owned()),
        }
    }
}

/// All that any of them traces; packets at places only, if there are some and none is of all.
impl FromIterator<Self> for Trace {
    fn from_iter<T: IntoIterator<Item = Self>>(traces: T) -> Self {
        let mut everywhere = false;
        let mut all = traces.into_iter().fold(Self::default(), |mut all, one| {
            everywhere |= one.packets && one.at.is_empty();
            all.packets |= one.packets;
            all.queues |= one.queues;
            all.at.extend(one.at);
            all.flows.extend(one.flows);
            all
        });
        if everywhere {
            all.at.clear();
        }
        all
    }
}

impl Trace {
    /// Whether anything is traced.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.packets || self.queues || !self.flows.is_empty()
    }
}

/// That messages can be there. Whether they are shows when the run is over.
fn check_sources(flows: &[MsgKey], hosts: u32) -> Result<(), Error> {
    match flows.iter().find(|key| key.src.0 >= hosts) {
        Some(key) => {
            let MsgKey { src, id } = key;
            let error = format!("--trace flows@{}:{}: there is no host {}", src.0, id.0, src.0);
            Err(Diagnostic::new(error).hint(format!("hosts are 0 to {}", hosts - 1)).into())
        }
        None => Ok(()),
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
    time_line: TimeLine,
}

impl Packets {
    fn new(out: &OutputDir, at: &[String], scenario: &Scenario) -> Result<Self, Error> {
        let topology = &scenario.topology;
        let points = CapturePoints::new(at, topology)?;
        let files = || {
            let captures = Captures::new(out, topology.links(), points.as_ref())?;
            Ok(Self { captures, time_line: TimeLine::new(out, scenario, points.as_ref())? })
        };
        files().map_err(|e: FileError| unwritable(&e))
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
    ) -> Result<Self, Error> {
        check_sources(&trace.flows, scenario.topology().hosts())?;
        let links = scenario.topology().links().to_vec();
        let protocols = scenario.transports.protocols();
        let packets = out.filter(|_| trace.packets);
        let packets = packets.map(|out| Packets::new(out, &trace.at, scenario));
        let packets = packets.transpose()?;
        let queues = out.filter(|_| trace.queues).map(|out| out.file("queues.parquet"));
        let queues = queues.map(|file| TableWriter::new(file?)).transpose();
        let queues = queues.map_err(|e| unwritable(&e))?;
        let flows = out.filter(|_| !trace.flows.is_empty());
        let keeps_rtts = scenario.measure().rtt;
        let flows = flows.map(|out| FlowTracer::new(&trace.flows, keeps_rtts, out)).transpose();
        let flows = flows.map_err(|e| unwritable(&e))?;
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
        time_line.packet(at, (link, on), event, pkt)?;
        let end = match event {
            PacketEvent::Sent => End::Sending,
            PacketEvent::Arrived => End::Receiving,
            PacketEvent::FlowControl => {
                let at_end = (link, End::Receiving);
                return captures.frame(at, at_end, pkt.header(), u32::from(pkt.hdr_len));
            }
            _ => return Ok(()),
        };
        let mut frame = [0; FRAME_MAX];
        let (repr, mut hdr) = (pkt.frame(), pkt.hdr);
        let hdr = &mut hdr[..pkt.header().len()];
        if pkt.flags.has(Flags::TRIMMED) {
            mirror_trimmed(own_protocol(&self.protocols, pkt), hdr);
        }
        match repr.emit(hdr, &mut frame) {
            Ok(n) => captures.frame(at, (link, end), &frame[..n], repr.original_len() as u32),
            // A packet with no place in the formats of the Internet is in the time line.
            Err(_) => Ok(()),
        }
    }

    fn write_queue(&mut self, at: Time, link: u32, bytes: u32) -> Result<(), FileError> {
        if let Some(Packets { time_line, .. }) = self.packets.as_mut() {
            time_line.queue(at, link, bytes)?;
        }
        self.queues
            .as_mut()
            .map_or(Ok(()), |table| table.push(QueueRow { at, link, bytes: u64::from(bytes) }))
    }
}

impl Observer for Tracer {
    fn watches_packets(&self) -> bool {
        true
    }

    fn message(&mut self, record: &MessageRecord) {
        self.recorder.message(record);
        self.attempt(|tracer| match &mut tracer.packets {
            Some(packets) => packets.time_line.message(record),
            None => Ok(()),
        });
    }

    fn count(&mut self, key: MsgKey, stat: Stat, times: u64) {
        self.recorder.count(key, stat, times);
    }

    fn job(&mut self, record: &JobRecord) {
        self.recorder.job(record);
        self.attempt(|tracer| match &mut tracer.packets {
            Some(packets) => packets.time_line.work(record),
            None => Ok(()),
        });
    }

    fn life(&mut self, life: &Life<'_>) {
        self.packets.iter_mut().for_each(|packets| packets.time_line.life(life));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_all_are_not_fewer_for_a_place_beside_them() {
        let all = |texts: &[&str]| texts.iter().map(|t| t.parse::<Trace>().unwrap()).collect();
        let chosen: Trace = all(&["packets@host:0", "packets@host:1"]);
        assert_eq!(chosen.at, ["host:0", "host:1"]);
        for order in [["packets", "packets@host:0"], ["packets@host:0", "packets"]] {
            let everything: Trace = all(&order);
            assert!(everything.packets && everything.at.is_empty());
        }
    }
}
