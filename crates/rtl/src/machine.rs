//! A circuit as the NIC of a simulated host: a [`Machine`] of cycles that runs in Verilator.
//!
//! The circuit runs cycle by cycle for as long as it may do something by itself, and catches up
//! with the clock before its next input otherwise. What only simulation knows stays here: what a
//! message is called, and the bytes of it (docs/nic.md, C11). Payload counts as placed when its
//! message is delivered.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use endpoint::{Effects, FailReason, Flags, Msg, MsgId, MsgKey, Packet, Span, Stat, Submit};
use nic::nano::bits::PAYLOAD;
use nic::nano::config::Config;
use nic::nano::frame;
use nic::nano::meta::{carried_id, host_of};
use nic::nano::ticking::Machine;
use units::HostId;

use crate::ports;
use crate::record::Record;
use crate::sim::{SimError, Simulation};

/// Cycles that the circuit is given at once where nothing happens.
const BATCH: u64 = 4096;

/// After so many cycles without an input and without a message to send nothing happens by itself:
/// as many PULLs as may wait have been released.
fn settles(config: &Config) -> u64 {
    u64::from(config.max_pulls + 2) * u64::from(config.pull_cycles) + 1000
}

/// See the top of the file.
pub struct Circuit {
    circuit: Simulation,
    config: Config,
    /// Cycles from the choice of a packet to its headers.
    making: u64,
    /// The first cycle that has not run.
    next: u64,
    /// Nothing happens by itself from this cycle on, if no message is being sent.
    settled: u64,
    /// A packet is being made until this cycle.
    made: u64,
    inputs: VecDeque<(u64, Record)>,
    /// What each slot sends: message and bytes.
    messages: Vec<Option<(MsgId, u64)>>,
    /// Messages that have been delivered: a circuit that forgets one delivers it again (C11).
    delivered: BTreeSet<MsgKey>,
    /// Slots whose messages are cancelled, one in a cycle.
    cancels: VecDeque<usize>,
    /// Why the circuit runs no more, until the run has been told.
    broken: Option<SimError>,
    is_over: bool,
}

impl Circuit {
    /// A [NIC](crate::nic) of `config` that has been started; `making` is its
    /// [`crate::nic::Nic::making`].
    #[must_use]
    pub fn new(circuit: Simulation, config: Config, making: u32) -> Self {
        let messages = vec![None; usize::from(config.tx_messages)];
        Self {
            circuit,
            config,
            making: making.into(),
            next: 0,
            settled: 0,
            made: 0,
            inputs: VecDeque::new(),
            messages,
            delivered: BTreeSet::new(),
            cancels: VecDeque::new(),
            broken: None,
            is_over: false,
        }
    }

    /// The circuit has ended by itself, by an assertion or from outside, and so the host cannot go
    /// on.
    fn end(&mut self, fx: &mut Effects) {
        if let Some(error) = self.broken.take() {
            fx.broken(error.to_string());
            self.is_over = true;
        }
    }

    fn is_busy(&self) -> bool {
        let sends = self.messages.iter().any(Option::is_some);
        let waits = sends || self.next < self.settled || !self.cancels.is_empty();
        !self.is_over && (self.broken.is_some() || waits)
    }

    /// The inputs of a cycle, to be added to.
    fn given(&mut self, cycle: u64, me: HostId) -> &mut Record {
        if self.inputs.back().is_none_or(|(at, _)| *at < cycle) {
            let nothing = self.nothing(me);
            self.inputs.push_back((cycle, nothing));
        }
        self.settled = cycle + settles(&self.config);
        let last = self.inputs.len() - 1;
        &mut self.inputs[last].1
    }

    fn set(&self, record: &mut Record, port: &str, value: u128) {
        self.circuit.inputs().set_named(record, port, value);
    }

    fn get_input(&self, inputs: &Record, port: &str) -> u128 {
        self.circuit.inputs().get_named(inputs, port)
    }

    fn get(&self, outputs: &Record, port: &str) -> u128 {
        self.circuit.outputs().get_named(outputs, port)
    }

    fn nothing(&self, me: HostId) -> Record {
        ports::idle(self.circuit.inputs(), me)
    }

    /// Everything up to `cycle`, in which nothing was to happen.
    fn catch_up(&mut self, cycle: u64, me: HostId) {
        while self.next < cycle && self.broken.is_none() {
            let cycles = (cycle - self.next).min(BATCH);
            let idle = vec![self.nothing(me); cycles as usize];
            self.broken = self.circuit.run(&idle).err();
            self.next += cycles;
        }
    }

    /// The packet that has been made.
    fn packet(&self, outputs: &Record, me: HostId, slot: &mut Packet) -> bool {
        let get = |port| self.get(outputs, port);
        let (number, context) = (get("made_tx_msg_id_o") as u16, get("made_dst_context_o") as u16);
        let is_data = get("made_flags_o") as u8 & wire::nano::flags::DATA != 0;
        let cell = usize::from(number) & (self.messages.len() - 1);
        slot.src = me;
        slot.dst = host_of(get("made_dst_ip_o") as u32);
        slot.proto = get("made_protocol_o") as u8;
        if is_data {
            let Some((msg, len)) = self.messages[cell] else { return false };
            let payload = u64::from(PAYLOAD);
            let offset = payload * get("made_pkt_offset_o") as u64;
            let len = len.saturating_sub(offset).min(payload) as u32;
            slot.span = Span { msg, offset, len };
        } else {
            slot.flags = Flags::CONTROL;
            let msg = carried_id(number, context, self.config.tx_messages);
            slot.span = Span { msg, offset: 0, len: 0 };
        }
        let headers = ports::frame(self.circuit.outputs(), outputs, "made");
        frame::read(&headers, self.config.priorities, slot).is_ok()
    }

    /// A message of which the application has cancelled the sending in this cycle.
    fn cancelled(&mut self, inputs: &Record, me: HostId, fx: &mut Effects) {
        let cell = self.get_input(inputs, "cancel_id_i") as usize;
        if self.get_input(inputs, "cancel_valid_i") == 1
            && let Some((id, _)) = self.messages[cell].take()
        {
            fx.failed(MsgKey { src: me, id }, FailReason::Cancelled);
        }
    }

    /// The message of the slot that the circuit says is over.
    fn over(&mut self, outputs: &Record, name: &str) -> Option<MsgId> {
        let slot = ports::slot(self.circuit.outputs(), outputs, name)?;
        self.messages[slot].take().map(|(id, _)| id)
    }

    /// What the application hears.
    fn hear(&mut self, outputs: &Record, me: HostId, fx: &mut Effects) {
        let layout = self.circuit.outputs();
        (0..ports::lost(layout, outputs)).for_each(|_| fx.count(Stat::HostDrop));
        let delivered = ports::delivered(layout, outputs, &self.config);
        if let Some(id) = self.over(outputs, "acked") {
            fx.acked(id);
        }
        if let Some(key) = delivered {
            if self.delivered.insert(key) {
                fx.place(key, 0, self.get(outputs, "delivered_msg_len_o") as u32);
                fx.delivered(key);
            } else {
                fx.count(Stat::DeliveredTwice);
            }
        }
        if let Some(id) = self.over(outputs, "gave_up") {
            fx.failed(MsgKey { src: me, id }, FailReason::TimedOut);
        }
    }

    /// What has come of a cycle.
    fn happened(
        &mut self,
        cycle: u64,
        me: HostId,
        (record, outputs): (&Record, &Record),
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> Option<u64> {
        let is_open = self.get_input(record, "tx_open_i") == 1;
        if is_open && self.get(outputs, "waits_o") == 1 {
            self.made = cycle + self.making + 1;
            self.settled = self.settled.max(cycle + settles(&self.config));
        }
        let made = self.get(outputs, "made_valid_o") == 1 && self.packet(outputs, me, slot);
        self.cancelled(record, me, fx);
        self.hear(outputs, me, fx);
        made.then(|| cycle - self.making)
    }
}

impl Machine for Circuit {
    /// One in a cycle: a circuit has one port for them. Another one is told that there is no room.
    fn submit(&mut self, cycle: u64, me: HostId, msg: &Msg, fx: &mut Effects) -> Submit {
        if msg.len > u64::from(self.config.longest()) {
            fx.failed(MsgKey { src: me, id: msg.id }, FailReason::Refused);
            return Submit::Taken;
        }
        self.catch_up(cycle, me);
        let mut record = self.given(cycle, me).clone();
        if self.get_input(&record, "submit_valid_i") == 1 {
            return Submit::Full;
        }
        ports::submit(self.circuit.inputs(), &mut record, &self.config, msg);
        let outputs = match self.circuit.look(&record) {
            Ok(outputs) => outputs,
            Err(error) => {
                self.broken = Some(error);
                return Submit::Full;
            }
        };
        if self.get(&outputs, "submit_ready_o") == 0 {
            return Submit::Full;
        }
        *self.given(cycle, me) = record;
        let cell = self.get(&outputs, "submit_id_o") as usize;
        self.messages[cell] = Some((msg.id, msg.len));
        Submit::Taken
    }

    fn cancel(&mut self, cycle: u64, me: HostId, id: MsgId) {
        let is_it = |message: &Option<(MsgId, u64)>| message.is_some_and(|(known, _)| known == id);
        let Some(cell) = self.messages.iter().position(is_it) else { return };
        self.catch_up(cycle, me);
        self.given(cycle, me);
        self.cancels.push_back(cell);
    }

    fn receive(
        &mut self,
        cycle: u64,
        me: HostId,
        (pkt, switches): (&Packet, u32),
        _: &mut Effects,
    ) {
        self.catch_up(cycle, me);
        let mut headers = Vec::new();
        frame::write(pkt, switches, &mut headers);
        let mut record = self.given(cycle, me).clone();
        ports::receive(self.circuit.inputs(), &mut record, &headers, pkt.wire_len);
        *self.given(cycle, me) = record;
    }

    fn next(&self) -> Option<u64> {
        self.is_busy().then_some(self.next)
    }

    fn chooses(&self, open: RangeInclusive<u64>) -> Option<u64> {
        let cycle = self.next.max(*open.start()).max(self.made);
        (self.is_busy() && open.contains(&cycle)).then_some(cycle)
    }

    fn step(
        &mut self,
        cycle: u64,
        tx_open: bool,
        me: HostId,
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> Option<u64> {
        self.catch_up(cycle, me);
        let given = self.inputs.pop_front_if(|(at, _)| *at == cycle).map(|(_, record)| record);
        let mut record = given.unwrap_or_else(|| self.nothing(me));
        self.next = cycle + 1;
        if let Some(cell) = self.cancels.pop_front() {
            self.set(&mut record, "cancel_valid_i", 1);
            self.set(&mut record, "cancel_id_i", cell as u128);
        }
        self.set(&mut record, "tx_open_i", tx_open.into());
        if self.broken.is_none() {
            match self.circuit.step(&record) {
                Ok(outputs) => return self.happened(cycle, me, (&record, &outputs), slot, fx),
                Err(error) => self.broken = Some(error),
            }
        }
        self.end(fx);
        None
    }
}
