//! A NIC in hardware beside the model of the clocked law (docs/nic.md), cycle by cycle.

pub mod traffic;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use endpoint::{Msg, MsgId, MsgKey};
use nic::nano::config::Config;
use nic::nano::frame::{SWITCH_MAC, mac_of};
use nic::nano::meta::{carried_id, host_of, ip_of};
use thiserror::Error;

use crate::record::Record;
use crate::sim::{SimError, Simulation};
use traffic::{Done, Given, Traffic, UNDER_TEST};

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

    /// Until the NIC has been given so many packets in all.
    ///
    /// # Errors
    /// See [`CosimError`].
    pub fn run(&mut self, packets: u64) -> Result<Compared, CosimError> {
        while self.traffic.arrived() < packets {
            let cycles: Vec<(Given, Done)> = (0..BATCH).map(|_| self.traffic.cycle()).collect();
            let inputs: Vec<Record> = cycles.iter().map(|(given, _)| self.inputs(given)).collect();
            let outputs = self.circuit.run(&inputs)?;
            for ((given, done), outputs) in cycles.iter().zip(&outputs) {
                self.compare(given, done, outputs).map_err(CosimError::Mismatch)?;
                self.compared.cycles += 1;
            }
        }
        self.compared.closest = self.traffic.closest();
        Ok(self.compared)
    }

    fn inputs(&self, given: &Given) -> Record {
        let layout = self.circuit.inputs();
        let mut record = layout.zero();
        let mut set = |port, value| layout.set(&mut record, layout.port(port), value);
        set("nic_mac_i", mac_of(UNDER_TEST).into());
        set("switch_mac_i", SWITCH_MAC.into());
        set("nic_ip_i", ip_of(UNDER_TEST).into());
        set("tx_open_i", given.open.into());
        if let Some(message) = given.message {
            let bits = self.config.tx_messages.trailing_zeros();
            set("submit_valid_i", 1);
            set("submit_protocol_i", self.config.protocols.first().copied().unwrap_or(0).into());
            set("submit_dst_ip_i", ip_of(message.dst).into());
            set("submit_src_context_i", (message.id.0 & 0xffff).into());
            set("submit_msg_len_i", message.len.into());
            set("submit_generation_i", u128::from(message.id.0 >> 16) & ((1 << (16 - bits)) - 1));
        }
        if let Some((headers, length)) = &given.packet {
            set("rx_valid_i", 1);
            set("rx_length_i", (*length).into());
            let port = layout.port("rx_frame_i");
            layout.set_words(&mut record, port, &words(headers, layout.ports()[port].words()));
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
        self.same("tx_frame_o", &self.frame(outputs).map(Hex), &sends.map(Hex))?;
        self.compared.delivered += u64::from(done.delivers.is_some());
        self.same("delivered", &self.delivered(outputs), &done.delivers)?;
        self.compared.acked += u64::from(done.acked.is_some());
        self.same("acked", &self.of_slot(outputs, "acked_valid_o", "acked_id_o"), &done.acked)?;
        self.compared.gave_up += u64::from(done.gives_up.is_some());
        let gives_up = self.of_slot(outputs, "gave_up_valid_o", "gave_up_id_o");
        self.same("gave_up", &gives_up, &done.gives_up)?;
        self.same("lost_o", &(self.get(outputs, "lost_o") as u32).count_ones(), &done.lost)
    }

    fn get(&self, outputs: &Record, port: &str) -> u128 {
        let layout = self.circuit.outputs();
        layout.get(outputs, layout.port(port))
    }

    fn takes(&mut self, message: Option<Msg>, outputs: &Record) {
        if let Some(message) = message {
            let slot = self.get(outputs, "submit_id_o") as usize;
            self.messages[slot] = message.id;
        }
    }

    fn of_slot(&self, outputs: &Record, valid: &str, id: &str) -> Option<MsgId> {
        let slot = self.get(outputs, id) as usize;
        (self.get(outputs, valid) == 1).then(|| self.messages[slot])
    }

    fn frame(&self, outputs: &Record) -> Option<Vec<u8>> {
        let layout = self.circuit.outputs();
        let bytes = self.get(outputs, "tx_bytes_o") as usize;
        let frame = bytes_of(layout.get_words(outputs, layout.port("tx_frame_o")));
        (self.get(outputs, "tx_valid_o") == 1).then(|| frame[..bytes.min(frame.len())].to_vec())
    }

    fn delivered(&self, outputs: &Record) -> Option<MsgKey> {
        let get = |port| self.get(outputs, port);
        let number = get("delivered_tx_msg_id_o") as u16;
        let context = get("delivered_src_context_o") as u16;
        let id = carried_id(number, context, self.config.tx_messages);
        let src = host_of(get("delivered_src_ip_o") as u32);
        (get("delivered_valid_o") == 1).then_some(MsgKey { src, id })
    }

    /// Keep what happens for a mismatch.
    fn tell(&mut self, given: &Given, done: &Done) {
        let happens = given.packet.is_some() || given.message.is_some() || *done != Done::default();
        if happens {
            self.before.push_back(format!("  {}: {given:?} {done:?}", self.compared.cycles));
        }
        if self.before.len() > REMEMBERED {
            self.before.pop_front();
        }
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
            found: format!("{found:?}"),
            expected: format!("{expected:?}"),
            before: before.join("\n"),
        }))
    }
}

/// Bytes that are shown in hexadecimal.
#[derive(PartialEq, Eq)]
struct Hex(Vec<u8>);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The words of a port whose most significant byte is the first; what is missing at the end is
/// zero.
pub(crate) fn words(bytes: &[u8], words: usize) -> Vec<u32> {
    let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
    let word = |at: usize| (0..4).fold(0, |word, i| word << 8 | byte(4 * at + i));
    (0..words).rev().map(word).collect()
}

/// And back.
pub(crate) fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().rev().flat_map(|word| word.to_be_bytes()).collect()
}
