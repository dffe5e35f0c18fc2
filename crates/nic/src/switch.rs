//! A program of the architecture `switch.p4` at a switch's output ports.

use std::fmt;
use std::sync::Arc;

use endpoint::{Action, Flags, HDR_MAX, Packet, Pipeline, Verdict};
use wire::frame::mirror_trimmed;

use p4::ir::{self, PipelineId};
use p4::program::{NoExterns, Program};

/// Room for Ethernet, IPv4, UDP and the longest transport header.
const FRAME_MAX: usize = 42 + HDR_MAX;

/// Why a program cannot run at a switch's ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// It is for something else.
    #[error("a program for {0} where one for SwitchPort (`#include <switch.p4>`) is wanted")]
    Architecture(String),
    /// It calls what no port has.
    #[error("a switch port has no extern `{0}`: it has registers and counters")]
    Extern(String),
}

/// A program at a port.
pub struct SwitchPort {
    program: Box<dyn Program<NoExterns>>,
    known: Arc<Known>,
    arrival: Vec<u128>,
    departure: Vec<u128>,
    /// The frame that the program reads, and what it emits: nothing.
    frame: [u8; FRAME_MAX],
    out: Vec<u8>,
}

/// What all ports of a program know.
#[derive(Debug)]
struct Known {
    fingerprint: u64,
    arrival: PipelineId,
    departure: PipelineId,
    /// Places in the metadata.
    length: usize,
    bounced: usize,
    random: usize,
    trim_to: usize,
    queue: usize,
    bounce: usize,
    drop: usize,
    sent_queue: usize,
    sent_length: usize,
}

impl Known {
    fn new(program: &ir::Program) -> Option<Self> {
        let (arrival, departure) = (program.pipeline("arrival")?, program.pipeline("departure")?);
        let arrives = |name: &str| program.pipelines[arrival.index()].meta(name);
        let departs = |name: &str| program.pipelines[departure.index()].meta(name);
        Some(Self {
            fingerprint: program.fingerprint(),
            arrival,
            departure,
            length: arrives("arrival.length")?,
            bounced: arrives("arrival.bounced")?,
            random: arrives("arrival.random")?,
            trim_to: arrives("decision.trim_to")?,
            queue: arrives("decision.queue")?,
            bounce: arrives("decision.bounce")?,
            drop: arrives("decision.drop")?,
            sent_queue: departs("departure.queue")?,
            sent_length: departs("departure.length")?,
        })
    }
}

impl SwitchPort {
    /// `program`, as `run` runs it: the interpreter, or code generated from it.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn new(
        program: &ir::Program,
        run: Box<dyn Program<NoExterns>>,
    ) -> Result<Self, ProgramError> {
        let known = Known::new(program).filter(|_| program.architecture == "SwitchPort");
        let known =
            known.ok_or_else(|| ProgramError::Architecture(program.architecture.clone()))?;
        if let Some(called) = program.externs.first() {
            return Err(ProgramError::Extern(ir::called(called)));
        }
        let zeros = |id: PipelineId| vec![0; program.pipelines[id.index()].meta.len()];
        Ok(Self {
            arrival: zeros(known.arrival),
            departure: zeros(known.departure),
            program: run,
            known: Arc::new(known),
            frame: [0; FRAME_MAX],
            out: Vec::new(),
        })
    }

    /// The program with its tables, registers and counters.
    pub fn program(&mut self) -> &mut dyn Program<NoExterns> {
        &mut *self.program
    }

    /// Writes the headers of `packet` as a switch would see them; how many bytes. None of what has
    /// no frame.
    fn write_frame(&mut self, packet: &Packet) -> Option<usize> {
        let repr = packet.frame();
        let end = repr.emit(packet.header(), &mut self.frame).ok()?;
        if packet.flags.has(Flags::TRIMMED) {
            mirror_trimmed(packet.proto, &mut self.frame[repr.overhead()..end]);
        }
        Some(end)
    }
}

impl Pipeline for SwitchPort {
    fn arrive(&mut self, packet: &Packet, random: u64) -> Verdict {
        let lost = Verdict { trim_to: None, then: Action::Drop };
        let Some(end) = self.write_frame(packet) else { return lost };
        let (known, meta) = (&*self.known, &mut self.arrival);
        meta.fill(0);
        meta[known.length] = packet.wire_len.into();
        meta[known.bounced] = packet.flags.has(Flags::BOUNCED).into();
        meta[known.random] = random.into();
        let frame = &self.frame[..end];
        let run = self.program.run(known.arrival, frame, meta, &mut self.out, &mut NoExterns);
        if run.is_err() {
            return lost;
        }
        // Their widths are those of `switch.p4`.
        let (trim_to, queue) = (meta[known.trim_to] as u16, meta[known.queue] as u8);
        let then = match (meta[known.drop], meta[known.bounce]) {
            (0, 0) => Action::Queue(queue),
            (0, _) => Action::Bounce,
            _ => Action::Drop,
        };
        Verdict { trim_to: (trim_to != 0).then_some(trim_to), then }
    }

    fn sent(&mut self, queue: u8, len: u16) {
        let (known, meta) = (&*self.known, &mut self.departure);
        meta[known.sent_queue] = queue.into();
        meta[known.sent_length] = len.into();
        // Without a parser, nothing is rejected.
        let _ = self.program.run(known.departure, &[], meta, &mut self.out, &mut NoExterns);
    }

    fn duplicate(&self) -> Box<dyn Pipeline> {
        Box::new(Self {
            program: self.program.duplicate(),
            known: Arc::clone(&self.known),
            arrival: self.arrival.clone(),
            departure: self.departure.clone(),
            frame: self.frame,
            out: Vec::new(),
        })
    }

    fn fingerprint(&self) -> u64 {
        self.known.fingerprint
    }
}

impl fmt::Debug for SwitchPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwitchPort").field("known", &self.known).finish_non_exhaustive()
    }
}
