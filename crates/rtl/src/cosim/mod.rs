//! A NIC in hardware beside the model of the clocked law (docs/nic.md), cycle by cycle.

pub mod bytes;
mod evidence;
mod hex;
mod locate;
mod outside;
pub mod packets;
pub mod pipelines;
mod shrink;
pub mod switch;
pub mod trace;
pub mod traffic;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use endpoint::{Msg, MsgId};
use nic::nano::config::Config;
use thiserror::Error;

use crate::ports;
use crate::record::Record;
use crate::sim::{SimError, Simulation};
pub use evidence::{Again, Evidence, Failure, evidence, recorded, smallest, waves};
use hex::Hex;
pub use locate::{Located, locate};
pub use outside::Outside;
pub use shrink::{Inputs, shrink};
use trace::Trace;
use traffic::{Done, Given, Traffic, UNDER_TEST, headers};

/// Cycles that the simulation is given at once.
const BATCH: usize = 1024;

/// Inputs and outputs that a mismatch tells of.
const REMEMBERED: usize = 12;

/// What has been compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Cycles.
    pub cycles: u64,
    /// Packets that the NIC was given.
    pub packets: u64,
    /// Those of them that have come as close behind the one before as they may.
    pub closest: u64,
    /// Packets that it has sent.
    pub sent: u64,
    /// Messages that it has delivered.
    pub delivered: u64,
    /// Its own messages that have been delivered.
    pub acked: u64,
    /// Those that it has given up.
    pub gave_up: u64,
}

/// The circuit and the model part, or the simulation ends.
#[derive(Debug, Error)]
pub enum CosimError {
    /// An output differs.
    #[error(transparent)]
    Mismatch(Box<Mismatch>),
    /// There is no output.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// An output that differs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "cycle {cycle}, after {packets} packets: {what} is {found}, in the model {expected}\n{before}"
)]
pub struct Mismatch {
    /// In which cycle.
    pub cycle: u64,
    /// Packets given before.
    pub packets: u64,
    /// Which output.
    pub what: &'static str,
    /// The first of its bytes that differs, where it is a packet's headers.
    pub byte: Option<usize>,
    /// What it is.
    pub found: String,
    /// What it should be.
    pub expected: String,
    /// What happened last before, a line each.
    pub before: String,
}

/// A circuit that runs beside traffic.
pub struct Cosim {
    circuit: Simulation,
    traffic: Traffic,
    config: Config,
    /// The message that has each slot.
    messages: Vec<MsgId>,
    /// Headers that are to come out, by the cycle.
    sends: BTreeMap<u64, Vec<u8>>,
    before: VecDeque<String>,
    compared: Compared,
}

impl Cosim {
    /// `circuit` is a NIC of `config` ([`crate::nic`]), in its reset.
    #[must_use]
    pub fn new(circuit: Simulation, traffic: Traffic, config: Config) -> Self {
        let messages = vec![MsgId(0); usize::from(config.tx_messages)];
        let (sends, before) = (BTreeMap::new(), VecDeque::new());
        Self { circuit, traffic, config, messages, sends, before, compared: Compared::default() }
    }

    /// Until the NIC has been given so many packets in all; `progress` is told how many it has.
    ///
    /// # Errors
    /// See [`CosimError`].
    pub fn run(
        &mut self,
        packets: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Compared, CosimError> {
        while self.traffic.arrived() < packets {
            let cycles: Vec<_> = (0..BATCH).map(|_| self.traffic.cycle()).collect();
            self.batch(&cycles)?;
            progress(self.traffic.arrived().min(packets));
        }
        self.compared.closest = self.traffic.closest();
        Ok(self.compared)
    }

    /// What has been recorded, and nothing else: [`Traffic::alone`].
    ///
    /// # Errors
    /// See [`CosimError`].
    pub fn replay(&mut self, trace: &Trace) -> Result<Compared, CosimError> {
        let mut given = trace.cycles();
        loop {
            let some: Vec<Given> = given.by_ref().take(BATCH).collect();
            if some.is_empty() {
                return Ok(self.compared);
            }
            let follow = |mut given: Given| {
                // Packets do not leave closer than the wire lets them, whatever is left of inputs.
                given.open &= self.traffic.is_open();
                let (message, packet) = (given.message.as_ref(), given.packet.as_ref());
                let done = self.traffic.follow(message, packet, given.open);
                (given, done)
            };
            let cycles: Vec<_> = some.into_iter().map(follow).collect();
            self.batch(&cycles)?;
        }
    }

    /// Cycles of which the model has said what happens.
    fn batch(&mut self, cycles: &[(Given, Done)]) -> Result<(), CosimError> {
        let inputs: Vec<Record> = cycles.iter().map(|(given, _)| self.inputs(given)).collect();
        let outputs = self.circuit.run(&inputs)?;
        for ((given, done), outputs) in cycles.iter().zip(&outputs) {
            self.compare(given, done, outputs).map_err(CosimError::Mismatch)?;
            self.compared.cycles += 1;
        }
        Ok(())
    }

    fn inputs(&self, given: &Given) -> Record {
        let layout = self.circuit.inputs();
        let mut record = ports::idle(layout, UNDER_TEST);
        layout.set_named(&mut record, "tx_open_i", given.open.into());
        if let Some(message) = &given.message {
            ports::submit(layout, &mut record, &self.config, message);
        }
        if let Some(packet) = &given.packet {
            ports::receive(layout, &mut record, &headers(packet), packet.wire_len);
        }
        record
    }

    fn compare(
        &mut self,
        given: &Given,
        done: &Done,
        outputs: &Record,
    ) -> Result<(), Box<Mismatch>> {
        let cycle = self.compared.cycles;
        self.tell(given, done);
        self.compared.packets += u64::from(given.packet.is_some());
        if let Some(headers) = &done.sends {
            let out = cycle + u64::from(self.config.egress_cycles);
            self.sends.insert(out, headers.clone());
        }
        if let Some(message) = given.message {
            self.same("submit_ready_o", &(self.get(outputs, "submit_ready_o") == 1), &done.takes)?;
            self.takes(done.takes.then_some(message), outputs);
        }
        let sends = self.sends.remove(&cycle);
        self.compared.sent += u64::from(sends.is_some());
        self.same_frame(self.frame(outputs).as_deref(), sends.as_deref())?;
        self.compared.delivered += u64::from(done.delivers.is_some());
        let delivered = ports::delivered(self.circuit.outputs(), outputs, &self.config);
        self.same("delivered", &delivered, &done.delivers)?;
        self.compared.acked += u64::from(done.acked.is_some());
        self.same("acked", &self.of_slot(outputs, "acked"), &done.acked)?;
        self.compared.gave_up += u64::from(done.gives_up.is_some());
        self.same("gave_up", &self.of_slot(outputs, "gave_up"), &done.gives_up)?;
        self.same("lost_o", &ports::lost(self.circuit.outputs(), outputs), &done.lost)
    }

    fn get(&self, outputs: &Record, port: &str) -> u128 {
        self.circuit.outputs().get_named(outputs, port)
    }

    fn takes(&mut self, message: Option<Msg>, outputs: &Record) {
        if let Some(message) = message {
            let slot = self.get(outputs, "submit_id_o") as usize;
            self.messages[slot] = message.id;
        }
    }

    fn of_slot(&self, outputs: &Record, name: &str) -> Option<MsgId> {
        ports::slot(self.circuit.outputs(), outputs, name).map(|slot| self.messages[slot])
    }

    fn frame(&self, outputs: &Record) -> Option<Vec<u8>> {
        let is_valid = self.get(outputs, "tx_valid_o") == 1;
        is_valid.then(|| ports::frame(self.circuit.outputs(), outputs, "tx"))
    }

    /// Keep what happens for a mismatch.
    fn tell(&mut self, given: &Given, done: &Done) {
        let happens = given.packet.is_some() || given.message.is_some() || *done != Done::default();
        if happens {
            self.before.push_back(format!("  {}: {given:?}{done:?}", self.compared.cycles));
        }
        if self.before.len() > REMEMBERED {
            self.before.pop_front();
        }
    }

    /// Headers that come out: the first byte that differs is told, too.
    fn same_frame(
        &self,
        found: Option<&[u8]>,
        expected: Option<&[u8]>,
    ) -> Result<(), Box<Mismatch>> {
        let byte = found.zip(expected).map(|(found, expected)| {
            found.iter().zip(expected).take_while(|(one, other)| one == other).count()
        });
        let same = self.same("tx_frame_o", &found.map(Hex), &expected.map(Hex));
        same.map_err(|mismatch| Box::new(Mismatch { byte, ..*mismatch }))
    }

    fn same<T: PartialEq + fmt::Debug>(
        &self,
        what: &'static str,
        found: &T,
        expected: &T,
    ) -> Result<(), Box<Mismatch>> {
        if found == expected {
            return Ok(());
        }
        let before: Vec<&str> = self.before.iter().map(String::as_str).collect();
        Err(Box::new(Mismatch {
            cycle: self.compared.cycles,
            packets: self.compared.packets,
            what,
            byte: None,
            found: format!("{found:?}"),
            expected: format!("{expected:?}"),
            before: before.join("\n"),
        }))
    }
}
