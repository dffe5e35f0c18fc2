//! A circuit as the NIC of a simulated host: a [`Machine`] of cycles that runs in Verilator.
//!
//! The circuit runs cycle by cycle for as long as it may do something by itself, and catches up
//! with the clock before its next input otherwise. What only simulation knows stays here: what a
//! message is called, which bytes of it have come, and what is counted (docs/nic.md, C11).

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use endpoint::{Effects, FailReason, Flags, Msg, MsgId, MsgKey, Packet, Span, Stat, Submit};
use nic::nano::bits::PAYLOAD;
use nic::nano::blocks::clocked::LOOKUP;
use nic::nano::config::Config;
use nic::nano::frame;
use nic::nano::meta::{carried_id, host_of};
use nic::nano::ticking::Machine;
use units::HostId;

use crate::nic::ANSWER;
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
    /// What each slot sends.
    messages: Vec<Option<Message>>,
    /// Packets that are in the lookup or before it.
    arrived: VecDeque<Arrived>,
    /// What the application has of messages, which circuits forget (C11).
    lives: BTreeMap<MsgKey, Life>,
    /// Packets of data that are being made, by the cycle of their choice.
    chosen: VecDeque<(u64, Message)>,
    /// What the packet that counts in the next cycle says has arrived: of which message, in which
    /// cell, and which packets.
    told: Option<(MsgId, usize, u64)>,
    /// Messages that are cancelled, one in a cycle.
    cancels: VecDeque<MsgId>,
    /// Why the circuit runs no more, until the run has been told.
    broken: Option<SimError>,
    is_over: bool,
}

/// A message that is being sent.
#[derive(Clone, Copy)]
struct Message {
    id: MsgId,
    len: u64,
    /// Where to, and in which order (zero: in none).
    channel: (HostId, u32),
    /// Bit i: packet i has been sent.
    sent: u64,
}

/// A packet that has come.
struct Arrived {
    cycle: u64,
    key: MsgKey,
    offset: u64,
    len: u32,
    carries_payload: bool,
}

/// What the application has of a message.
#[derive(Default)]
struct Life {
    delivered: bool,
    /// Bit i: the payload of packet i.
    placed: u64,
}

/// The bit of the packet that begins there.
const fn bit(offset: u64) -> u64 {
    1_u64.wrapping_shl((offset / PAYLOAD as u64) as u32)
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
            arrived: VecDeque::new(),
            lives: BTreeMap::new(),
            chosen: VecDeque::new(),
            told: None,
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

    /// The packet of data that is chosen, if it is one.
    fn choose(&mut self, cycle: u64, outputs: &Record, fx: &mut Effects) {
        let get = |port| self.get(outputs, port);
        let is_data = get("chosen_flags_o") as u8 & wire::nano::flags::DATA != 0;
        if get("chosen_valid_o") == 0 || !is_data {
            return;
        }
        let cell = get("chosen_tx_msg_id_o") as usize & (self.messages.len() - 1);
        let packet = bit(get("chosen_pkt_offset_o") as u64 * u64::from(PAYLOAD));
        let Some(message) = &mut self.messages[cell] else { return };
        if message.sent & packet != 0 {
            fx.count_for(Stat::Retransmission, message.id);
        }
        message.sent |= packet;
        self.chosen.push_back((cycle, *message));
    }

    /// The packet that has been made of what was chosen in a cycle.
    fn packet(&mut self, chosen: u64, outputs: &Record, me: HostId, slot: &mut Packet) -> bool {
        while self.chosen.pop_front_if(|(cycle, _)| *cycle < chosen).is_some() {}
        let message = self.chosen.pop_front_if(|(cycle, _)| *cycle == chosen);
        let get = |port| self.get(outputs, port);
        let (number, context) = (get("made_tx_msg_id_o") as u16, get("made_dst_context_o") as u16);
        let is_data = get("made_flags_o") as u8 & wire::nano::flags::DATA != 0;
        slot.src = me;
        slot.dst = host_of(get("made_dst_ip_o") as u32);
        slot.proto = get("made_protocol_o") as u8;
        if is_data {
            let Some((_, Message { id: msg, len, .. })) = message else { return false };
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

    /// Packets that the program refuses or leaves to software, which is not here; and what peers
    /// say has arrived that was never sent.
    fn reject(&mut self, outputs: &Record, fx: &mut Effects) {
        let get = |port| self.get(outputs, port);
        if get("refused_o") == 1 {
            fx.count(Stat::Rejected);
        }
        let (number, context) =
            (get("arrived_tx_msg_id_o") as u16, get("arrived_src_context_o") as u16);
        let says = (
            carried_id(number, context, self.config.tx_messages),
            usize::from(number) & (self.messages.len() - 1),
            get("arrived_pkts_o") as u64,
        );
        let told = (get("arrived_valid_o") == 1).then_some(says);
        let Some((id, cell, packets)) = std::mem::replace(&mut self.told, told) else { return };
        let carried = |message: &Message| message.id.0 & u64::from(u32::MAX) == id.0;
        if let Some(message) = self.messages[cell].filter(carried)
            && packets & !message.sent != 0
        {
            fx.count(Stat::Rejected);
        }
    }

    /// A message of which the application has cancelled the sending in this cycle.
    fn cancelled(&mut self, inputs: &Record, me: HostId, fx: &mut Effects) {
        let cell = self.get_input(inputs, "cancel_id_i") as usize;
        if self.get_input(inputs, "cancel_valid_i") == 1
            && let Some(Message { id, .. }) = self.messages[cell].take()
        {
            fx.failed(MsgKey { src: me, id }, FailReason::Cancelled);
        }
    }

    /// The message of the slot that the circuit says is over.
    fn over(&mut self, outputs: &Record, name: &str) -> Option<MsgId> {
        let slot = ports::slot(self.circuit.outputs(), outputs, name)?;
        self.messages[slot].take().map(|message| message.id)
    }

    /// What the application hears.
    fn hear(&mut self, outputs: &Record, me: HostId, fx: &mut Effects) {
        let layout = self.circuit.outputs();
        (0..ports::lost(layout, outputs)).for_each(|_| fx.count(Stat::HostDrop));
        let delivered = ports::delivered(layout, outputs, &self.config);
        let repeats = ports::slot(layout, outputs, "repeats");
        if let Some(id) = self.over(outputs, "acked") {
            fx.acked(id);
        }
        if let Some(key) = delivered {
            let life = self.lives.entry(key).or_default();
            if life.delivered {
                fx.count(Stat::DeliveredTwice);
            } else {
                life.delivered = true;
                fx.delivered(key);
            }
        }
        if let Some(message) = repeats.and_then(|slot| self.messages[slot]) {
            fx.timeout(Stat::OtherTimeout, message.id);
        }
        if let Some(id) = self.over(outputs, "gave_up") {
            fx.failed(MsgKey { src: me, id }, FailReason::TimedOut);
        }
    }

    /// What a lookup has found is counted, and the payload is placed.
    fn look_up(&mut self, cycle: u64, outputs: &Record, fx: &mut Effects) {
        let came = cycle.saturating_sub(LOOKUP + ANSWER);
        while self.arrived.pop_front_if(|packet| packet.cycle < came).is_some() {}
        let Some(packet) = self.arrived.pop_front_if(|packet| packet.cycle == came) else { return };
        let says = |what| self.get(outputs, what) == 1;
        let [fail, is_new, is_done] =
            ["looked_up_fail_o", "looked_up_is_new_pkt_o", "looked_up_is_done_o"].map(says);
        if !says("looked_up_valid_o") {
            return;
        }
        let begins = says("looked_up_is_new_msg_o");
        let Arrived { key, offset, len, carries_payload, .. } = packet;
        if is_done || (carries_payload && !is_new && !fail) {
            fx.count(Stat::Duplicate);
        }
        let life = self.lives.entry(key).or_default();
        if begins && !life.delivered && life.placed != 0 {
            fx.count_received(Stat::Forgotten, key);
        }
        if carries_payload && is_new && life.placed & bit(offset) == 0 {
            life.placed |= bit(offset);
            if len > 0 {
                fx.place(key, offset, len);
            }
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
        self.choose(cycle, outputs, fx);
        let chosen = cycle.saturating_sub(self.making);
        let makes = self.get(outputs, "made_valid_o") == 1;
        let made = makes && self.packet(chosen, outputs, me, slot);
        if makes && !made {
            fx.count(Stat::Rejected);
        }
        self.cancelled(record, me, fx);
        self.reject(outputs, fx);
        self.look_up(cycle, outputs, fx);
        self.hear(outputs, me, fx);
        made.then_some(chosen)
    }
}

impl Machine for Circuit {
    fn submit(&mut self, cycle: u64, me: HostId, msg: &Msg, fx: &mut Effects) -> Submit {
        if msg.len > u64::from(self.config.longest()) {
            fx.failed(MsgKey { src: me, id: msg.id }, FailReason::Refused);
            return Submit::Taken;
        }
        self.catch_up(cycle, me);
        let channel = (msg.dst, msg.channel);
        let same = |message: &Message| msg.channel != 0 && message.channel == channel;
        if self.messages.iter().flatten().any(same) {
            return Submit::Full;
        }
        let mut record = self.given(cycle, me).clone();
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
        self.messages[cell] = Some(Message { id: msg.id, len: msg.len, channel, sent: 0 });
        Submit::Taken
    }

    fn cancel(&mut self, cycle: u64, me: HostId, id: MsgId) {
        self.catch_up(cycle, me);
        self.given(cycle, me);
        self.cancels.push_back(id);
    }

    fn receive(
        &mut self,
        cycle: u64,
        me: HostId,
        (pkt, switches): (&Packet, u32),
        _: &mut Effects,
    ) {
        self.catch_up(cycle, me);
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        let (offset, len, carries_payload) = (pkt.span.offset, pkt.span.len, pkt.carries_payload());
        self.arrived.push_back(Arrived { cycle, key, offset, len, carries_payload });
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
        let cancelled = self.cancels.pop_front();
        let is_it = |message: &Option<Message>| message.map(|message| message.id) == cancelled;
        let cell = self.messages.iter().position(is_it).filter(|_| cancelled.is_some());
        if let Some(cell) = cell {
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

#[cfg(test)]
mod tests {
    use endpoint::Effect;
    use units::Dur;

    use super::*;
    use crate::sim::tests::script;

    #[test]
    fn a_circuit_that_ends_breaks_its_host_once() {
        let ports = ["nic_mac_i", "switch_mac_i", "nic_ip_i", "tx_open_i"];
        let circuit = script("breaks", "echo 'it broke' >&2; exit 3", &ports);
        let mut circuit = Circuit::new(circuit, Config::prototype(9, Dur::from_us(7)), 3);
        let (mut fx, mut slot) = (Effects::new(), Packet::EMPTY);
        assert_eq!(circuit.step(70, true, HostId(0), &mut slot, &mut fx), None);
        assert_eq!(fx.as_slice(), [Effect::Broken]);
        assert!(fx.why_broken().contains("it said: it broke"), "{}", fx.why_broken());
        assert_eq!((circuit.next(), circuit.chooses(0..=u64::MAX)), (None, None));
    }
}
