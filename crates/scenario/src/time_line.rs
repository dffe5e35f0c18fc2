//! [`TimeLine`]: packets, queues and messages of a run for Perfetto.

use std::collections::BTreeMap;
use std::sync::Arc;

use ai::{Job, Kind, What};
use endpoint::{Flags, JobRecord, Life, MessageRecord, Packet, PacketEvent, UNBOUNDED};
use fabric::{Link, Topology};
use metrics::{FileError, MessageSlice, OutputDir, Part, PerfettoWriter, Port};
use serde_json::json;
use units::{MsgKey, Time};
use wire::pfc;

use crate::Scenario;
use crate::captures::CapturePoints;
use crate::explain::Step;
use crate::traffic::Part as Traffic;

/// Writes `trace.perfetto.json`.
pub(crate) struct TimeLine {
    file: PerfettoWriter,
    topology: Arc<Topology>,
    /// Lives of delivered messages that the run has still to say more of.
    lives: BTreeMap<MsgKey, Vec<Part>>,
    /// By traffic table: the training job that it is, and what it is called.
    jobs: Vec<Option<(Arc<Job>, String)>>,
    /// How much ranks have done so far.
    works: u64,
}

impl TimeLine {
    /// With all links, or those with a capture point.
    pub(crate) fn new(
        out: &OutputDir,
        scenario: &Scenario,
        points: Option<&CapturePoints>,
    ) -> Result<Self, FileError> {
        let topology = &scenario.topology;
        let is_shown = |link: u32| points.is_none_or(|points| points.has(link));
        let port = |l: &Link| Port { node: l.from.to_string(), to: l.to.to_string() };
        let links = (0..).zip(topology.links());
        let ports = links.map(|(n, link)| is_shown(n).then(|| port(link)));
        let file = PerfettoWriter::new(out.file("trace.perfetto.json")?, ports)?;
        let tables = (0_usize..).zip(&scenario.traffic.tables).zip(&scenario.traffic.names);
        let job = |((n, part), name): ((usize, &Traffic), &Option<String>)| {
            let name = name.clone().unwrap_or_else(|| format!("traffic {n}"));
            part.job.as_ref().map(|job| (Arc::clone(job), name))
        };
        let jobs = tables.map(job).collect();
        Ok(Self { file, topology: Arc::clone(topology), lives: BTreeMap::new(), jobs, works: 0 })
    }

    /// Something that happens to a packet on or before link `n`, which is `on`.
    pub(crate) fn packet(
        &mut self,
        at: Time,
        (n, on): (u32, &Link),
        event: PacketEvent,
        pkt: &Packet,
    ) -> Result<(), FileError> {
        // When it was on the wire, if it has arrived.
        let length = on.rate.serialise(u64::from(pkt.wire_len));
        let start = Time(at.0.saturating_sub(on.delay.0).saturating_sub(length.0));
        let wire_len = u64::from(pkt.wire_len);
        match event {
            PacketEvent::Sent => Ok(()),
            PacketEvent::Arrived => self.file.slice(start, length, n, &name(pkt), wire_len),
            PacketEvent::FlowControl => {
                self.file.slice(start, length, n, &flow_control(pkt.header()), wire_len)
            }
            PacketEvent::Trimmed => self.file.instant(at, n, "trimmed"),
            PacketEvent::Bounced => self.file.instant(at, n, "bounced"),
            PacketEvent::Marked => self.file.instant(at, n, "marked"),
            PacketEvent::Dropped(_) => self.file.instant(at, n, "dropped"),
        }
    }

    /// The length of a link's queue from `at` on.
    pub(crate) fn queue(&mut self, at: Time, link: u32, bytes: u32) -> Result<(), FileError> {
        self.file.queue(at, link, u64::from(bytes))
    }

    /// Where the time of a delivered message went. It is known before the message is over.
    pub(crate) fn life(&mut self, life: &Life<'_>) {
        let part = |segment| {
            let Step { after, length, cause, place, packet } =
                Step::new(&self.topology, life.submitted, segment);
            let args = json!({ "where": place, "packet": packet });
            Part { name: cause.name.to_owned(), from: life.submitted + after, length, args }
        };
        self.lives.insert(life.key, life.segments.iter().map(part).collect());
    }

    /// What became of a message.
    pub(crate) fn message(&mut self, record: &MessageRecord) -> Result<(), FileError> {
        let MessageRecord { key, dst, len, submitted, delivered, ideal, .. } = *record;
        let (src, id) = (key.src.0, key.id.0);
        let fct = delivered.map(|at| at.since(submitted));
        let args = json!({
            "bytes": (len != UNBOUNDED).then_some(len),
            "completion_us": fct.map(|fct| fct.0 as f64 / 1e6),
            "slowdown": fct.filter(|_| ideal.0 > 0).map(|fct| fct.0 as f64 / ideal.0 as f64),
            "failed": record.failed.map(|why| format!("{why:?}").to_lowercase()),
        });
        self.file.message(&MessageSlice {
            category: "message",
            id: &format!("{src}:{id}"),
            name: &format!("message {src}->{} #{id}", dst.0),
            node: &key.src.to_string(),
            from: submitted,
            to: delivered,
            args,
            parts: self.lives.remove(&key).unwrap_or_default(),
        })
    }

    /// What a rank of a training job has done: each rank has tracks of its own, one for each
    /// name of what it does.
    pub(crate) fn work(&mut self, record: &JobRecord) -> Result<(), FileError> {
        let endpoint::Job { tag, completed: true, start, end, bytes, work: Some(work), .. } =
            record.job
        else {
            return Ok(());
        };
        let Some(Some((job, name))) = self.jobs.get(usize::from(tag)) else { return Ok(()) };
        let (rank, step) = (ai::Rank(work.rank), work.step);
        let what = match What::decode(work.what) {
            What::Step => format!("step {step}"),
            What::Collective { task, .. } | What::Task { task } => {
                let about = job.graph().tasks(rank).get(task);
                let kind = match about.kind {
                    _ if end <= start => return Ok(()),
                    Kind::Compute { .. } => "work",
                    Kind::Send { .. } => "send",
                    Kind::Recv { .. } => "receive",
                    Kind::Collective { op, .. } => op.name(),
                };
                let label = about.label.map(|label| job.graph().text(label));
                label.map_or_else(|| kind.to_owned(), |label| format!("{kind} {label}"))
            }
            What::Waits { .. } => return Ok(()),
        };
        self.works += 1;
        let host = record.host;
        self.file.message(&MessageSlice {
            category: "rank",
            id: &format!("work {}", self.works),
            name: &what,
            node: &format!("{name}: rank {} ({host})", work.rank),
            from: start,
            to: Some(end),
            args: json!({ "step": step, "bytes": bytes }),
            parts: Vec::new(),
        })
    }

    pub(crate) fn finish(self) -> Result<(), FileError> {
        self.file.finish()
    }
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
