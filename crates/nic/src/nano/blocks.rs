//! A NIC's blocks and its program, put together: what a packet, a submission or a timer does to
//! them. When that is, the two laws of time say, that of instants (`exact`) and [`clocked`]; rules
//! are those of docs/nic.md.
//!
//! A packet runs through the ingress pipeline as it arrives. The receiving side is touched by
//! nothing else, so that it may run ahead by the way in (rule 1); what it does to the sending side,
//! and what the application hears, waits until then ([`Event`]).

pub mod clocked;
pub(super) mod exact;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use endpoint::{Effects, FailReason, Flags, Msg, MsgId, MsgKey, Packet, Span, Stat, Submit};
use thiserror::Error;
use units::{HostId, Time};

use super::arbiter::Chosen;
use super::bits::PAYLOAD;
use super::buffers::WORD;
use super::config::{Config, ConfigError};
use super::externs::{Arrival, BindError, Event, OwnMessage, Units};
use super::frame::{self, FrameError, SWITCH_MAC, mac_of};
use super::generator::{Class, Control, Pacer};
use super::meta::{Egress, Ingress, To, carried_id, host_of, ip_of};
use super::packetization::{DataPacket, Outgoing, Packetization};
use super::reassembly::Request;
use p4::ir::{self, PipelineId};
use p4::program::Program;

/// What a program is told and says on ingress, in the order of `nano.p4`.
const INGRESS_META: [&str; 15] = [
    "nic.nic_mac",
    "nic.switch_mac",
    "nic.nic_ip",
    "nic.rtt_pkts",
    "nic.now",
    "ingress.src_ip",
    "ingress.src_context",
    "ingress.msg_len",
    "ingress.pkt_offset",
    "ingress.dst_context",
    "ingress.rx_msg_id",
    "ingress.tx_msg_id",
    "ingress.is_last_pkt",
    "ingress.drop",
    "ingress.to",
];

/// What it is told on egress: `nic` as above, then the members of `egress_metadata_t`.
const EGRESS_META: usize = 22;

/// Why a program cannot run on a NIC.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProgramError {
    /// It is for something else.
    #[error(
        "a program for `{0}` does not run on a NIC: #include <nano.p4> and instantiate NanoNic"
    )]
    Architecture(String),
    /// It calls what the NIC does not have.
    #[error(transparent)]
    Extern(#[from] BindError),
    /// The NIC itself is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A circuit chooses among the fronts of its queues alone.
    #[error(
        "the program calls `{0}`, which a clocked NIC does not have: leave out `clocked`, or take \
         a program that does not call it"
    )]
    Clocked(&'static str),
    /// It does not make the packets that the NIC asks for.
    #[error("the egress pipeline makes no frame of a packet of protocol {protocol}: {why}")]
    Frame {
        /// The packet's protocol.
        protocol: u8,
        /// What is wrong.
        why: FrameError,
    },
}

/// A program that runs, in whatever environment.
pub type Runs = Box<dyn Program<Units>>;

/// The blocks of one NIC. Their times are ticks of its law.
pub(super) struct Blocks {
    config: Config,
    program: Runs,
    ingress: PipelineId,
    egress: PipelineId,
    units: Units,
    packetization: Packetization,
    pacer: Pacer,
    control: Control,
    /// What is submitted and not over.
    messages: BTreeMap<MsgId, Submitted>,
    /// Channels with a message in flight: the next one waits for it.
    channels: BTreeSet<(HostId, u32)>,
    /// Control packets go only to hosts that have sent something.
    peers: BTreeSet<HostId>,
    frame: Vec<u8>,
    /// Messages that the program sends of its own, where somebody supplies their bytes.
    own: Option<VecDeque<OwnMessage>>,
}

/// What becomes of an arriving packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// There is none that would be wanted.
    Nothing,
    /// It belongs to a message.
    Payload {
        /// The message.
        key: MsgKey,
        /// Its id here.
        rx_msg_id: u16,
        /// What its packet said in the lookup.
        request: Request,
        /// The application has it already: the NIC had forgotten the message.
        is_placed: bool,
        /// The message is whole with it, for the first time.
        is_last: bool,
        /// The message is for the program, not for the host.
        ends_here: bool,
    },
    /// The whole packet is for software, round reassembly.
    Software,
}

#[derive(Clone, Copy, Debug)]
struct Submitted {
    dst: HostId,
    channel: u32,
    len: u64,
}

/// What is known of a packet beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The host of this network that it is from.
    pub(super) host: Option<HostId>,
    /// Whether no switch has cut its payload off.
    pub(super) carries_payload: bool,
    /// What its sender calls the message; `None`: what its header says of that.
    pub(super) key: Option<MsgKey>,
}

/// When a packet comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The cycle that its program is told.
    pub(super) cycle: u64,
    /// The tick of its lookup.
    pub(super) lookup: Time,
    /// The tick in which the rest of it takes effect.
    pub(super) effect: Time,
}

impl Blocks {
    /// Idle, with `program`, which `runs`.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub(super) fn new(
        program: &ir::Program,
        runs: Runs,
        config: Config,
    ) -> Result<Self, ProgramError> {
        config.check()?;
        let (ingress, egress) = pipelines(program)
            .ok_or_else(|| ProgramError::Architecture(program.architecture.clone()))?;
        let units = Units::new(program, &config)?;
        if config.clocked && units.sets_flows() {
            return Err(ProgramError::Clocked("set_flow"));
        }
        if config.clocked && units.sets_paths() {
            return Err(ProgramError::Clocked("set_path"));
        }
        Ok(Self {
            packetization: Packetization::new(&config, units.sets_flows()),
            units,
            pacer: Pacer::new(config.pull_time(), config.max_pulls),
            control: Control::new(&config),
            program: runs,
            ingress,
            egress,
            messages: BTreeMap::new(),
            channels: BTreeSet::new(),
            peers: BTreeSet::new(),
            frame: Vec::new(),
            own: None,
            config,
        })
    }

    /// A packet that has arrived takes effect (rules 12 to 14).
    fn dispatch(&mut self, at: Time, event: Event, fx: &mut Effects) {
        match event {
            Event::Delivered { message: (number, context), packets } => {
                let id = self.packetization.id_of(number, context);
                let Some(id) = id else { return };
                // What was never sent cannot have come: a peer that says so is not believed.
                let sent = self.packetization.sent(id);
                if packets & !sent != 0 {
                    fx.count(Stat::Rejected);
                }
                if let Some(tag) = self.packetization.delivered(at, id, packets & sent) {
                    self.finish(MsgId(tag));
                    fx.acked(MsgId(tag));
                }
            }
            Event::Credit { message: (number, context), credit } => {
                if let Some(id) = self.packetization.id_of(number, context) {
                    self.packetization.credit(at, id, credit);
                }
            }
            Event::Flow { flow, pace } => self.packetization.set_flow(at, flow, pace),
            Event::Prio { register, message: (number, context), prio } => {
                if let Some(id) = self.packetization.id_of(number, context) {
                    self.units.set_prio(register, id, prio);
                }
            }
            Event::Control { class, packet } => {
                let paced = class == Class::Ctrl;
                let now = if paced { self.pacer.ask(at, packet) } else { Some(packet) };
                if let Some(packet) = now {
                    self.push_control(at, class, packet, fx);
                }
            }
            Event::Whole(key) => fx.delivered(key),
            Event::Message(message) => match &mut self.own {
                Some(own) => own.push_back(message),
                // Simulated packets have no payload for it.
                None => fx.count(Stat::Rejected),
            },
        }
    }

    fn push_control(&mut self, at: Time, class: Class, packet: Egress, fx: &mut Effects) {
        if !self.control.push(at, class, packet) {
            fx.count(Stat::HostDrop);
        }
    }

    /// Everything that happens by itself at `now`, when one of the three is due: packets first,
    /// then timeouts, then the pacer (rule 4).
    fn happen(&mut self, now: Time, me: HostId, fx: &mut Effects) {
        while let Some((at, event)) = self.units.events.pop_front_if(|(at, _)| *at <= now) {
            self.dispatch(at, event, fx);
        }
        while self.packetization.next_timeout().is_some_and(|at| at <= now) {
            self.time_out(now, me, fx);
        }
        while let Some(packet) = self.pacer.release(now) {
            self.push_control(now, Class::Ctrl, packet, fx);
        }
    }

    /// When the next thing happens by itself.
    fn next(&self) -> Option<Time> {
        let event = self.units.events.front().map(|(at, _)| *at);
        let others = [self.packetization.next_timeout(), self.pacer.next_release()];
        others.into_iter().chain([event]).flatten().min()
    }

    /// Rule 15.
    fn time_out(&mut self, now: Time, me: HostId, fx: &mut Effects) {
        let Some(timeout) = self.packetization.on_timeout(now) else { return };
        let id = MsgId(timeout.tag);
        if timeout.gave_up {
            self.finish(id);
            fx.failed(MsgKey { src: me, id }, FailReason::TimedOut);
        } else if timeout.repeats > 0 {
            fx.timeout(Stat::OtherTimeout, id);
        }
    }

    /// A message of this host is over.
    fn finish(&mut self, id: MsgId) {
        if let Some(message) = self.messages.remove(&id) {
            self.channels.remove(&(message.dst, message.channel));
        }
    }

    /// What both pipelines are told of the NIC: it counts its cycles in 32 bits.
    fn nic(&self, me: HostId, cycle: u64) -> [u128; 5] {
        let (mac, ip) = (mac_of(me).into(), ip_of(me).into());
        let cycle = cycle as u32;
        [mac, SWITCH_MAC.into(), ip, self.config.rtt_packets.into(), cycle.into()]
    }

    /// Send the packet in `self.frame` through the ingress pipeline. `None`: the program does not
    /// want it.
    fn run_ingress(&mut self, me: HostId, cycle: u64) -> Option<Ingress> {
        let mut meta = [0; INGRESS_META.len()];
        meta[..5].copy_from_slice(&self.nic(me, cycle));
        let mut nothing = Vec::new();
        let ran =
            self.program.run(self.ingress, &self.frame, &mut meta, &mut nothing, &mut self.units);
        self.units.leave();
        ran.ok()?;
        let [.., rx_msg_id, _, is_last_pkt, drop, to] = meta;
        Some(Ingress {
            rx_msg_id: rx_msg_id as u16,
            is_last_pkt: is_last_pkt != 0,
            drop: drop != 0,
            to: To::from_number(to),
        })
    }

    /// Have the egress pipeline make `packet` in `slot`, of which source, destination, flags and
    /// payload are known.
    fn run_egress(
        &mut self,
        cycle: u64,
        packet: &Egress,
        slot: &mut Packet,
    ) -> Result<(), FrameError> {
        let mut meta = [0; EGRESS_META];
        meta[..5].copy_from_slice(&self.nic(slot.src, cycle));
        meta[5..].copy_from_slice(&packet.to_values());
        let ran = self.program.run(self.egress, &[], &mut meta, &mut self.frame, &mut self.units);
        let frame = if ran.is_ok() { self.frame.as_slice() } else { &[] };
        slot.proto = packet.protocol;
        frame::read(frame, self.config.priorities, slot)
    }

    /// What the egress pipeline makes of the first packet of a message of two, of each protocol: a
    /// program that is wrong there is wrong everywhere. It leaves its marks in the program's
    /// memory: not for a NIC that is to run.
    ///
    /// # Errors
    /// See [`ProgramError::Frame`].
    pub(super) fn try_egress(mut self) -> Result<(), ProgramError> {
        let (src, dst) = (HostId(1), HostId(2));
        for protocol in self.config.protocols.clone() {
            let packet = Egress {
                protocol,
                dst_ip: ip_of(dst),
                msg_len: 2 * PAYLOAD,
                flags: wire::nano::flags::DATA,
                is_new_msg: true,
                ..Egress::default()
            };
            let span = Span { msg: MsgId(0), offset: 0, len: PAYLOAD.into() };
            let mut slot = Packet { src, dst, span, ..Packet::EMPTY };
            let made = self.run_egress(0, &packet, &mut slot);
            made.map_err(|why| ProgramError::Frame { protocol, why })?;
        }
        Ok(())
    }

    /// Make the packet that the arbiter has chosen in `cycle`, all but its path. Whether the
    /// program has made one.
    fn make(
        &mut self,
        cycle: u64,
        me: HostId,
        chosen: Chosen,
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> bool {
        let (packet, span) = match chosen {
            Chosen::Control(packet) => {
                slot.flags = Flags::CONTROL;
                let msg = message_of(&packet, self.config.tx_messages);
                (packet, Span { msg, offset: 0, len: 0 })
            }
            Chosen::Data(data) => {
                if data.again {
                    fx.count_for(Stat::Retransmission, MsgId(data.message.tag));
                }
                (egress_of(&data), self.span_of(&data))
            }
        };
        let dst = host_of(packet.dst_ip);
        (slot.src, slot.dst, slot.span) = (me, dst, span);
        let known = matches!(chosen, Chosen::Data(_)) || self.peers.contains(&dst);
        let made = known && self.run_egress(cycle, &packet, slot).is_ok();
        if !made {
            fx.count(Stat::Rejected);
            *slot = Packet::EMPTY;
        }
        made
    }

    fn span_of(&self, data: &DataPacket) -> Span {
        let id = MsgId(data.message.tag);
        let len = self.messages.get(&id).map_or(0, |message| message.len);
        let offset = u64::from(data.pkt_offset) * u64::from(PAYLOAD);
        let rest = len.saturating_sub(offset).min(u64::from(PAYLOAD));
        Span { msg: id, offset, len: rest as u32 }
    }
}

/// The two pipelines of a program, if it is one for this NIC.
fn pipelines(program: &ir::Program) -> Option<(PipelineId, PipelineId)> {
    let [ingress, egress] = program.pipelines.as_slice() else { return None };
    let names: Vec<&str> = ingress.meta.iter().map(|meta| meta.name.as_str()).collect();
    let fits = names == INGRESS_META && egress.meta.len() == EGRESS_META;
    fits.then_some((PipelineId(0), PipelineId(1)))
}

/// Metadata of a data packet.
fn egress_of(data: &DataPacket) -> Egress {
    let Outgoing { protocol, dst_ip, dst_context, src_context, msg_len, .. } = data.message;
    Egress {
        protocol,
        dst_ip,
        dst_context,
        msg_len,
        pkt_offset: data.pkt_offset,
        src_context,
        tx_msg_id: data.tx_msg_id,
        buffer: data.buffer,
        credit: 0,
        rank: 0,
        flags: wire::nano::flags::DATA,
        is_new_msg: data.is_new_msg,
        is_rtx: data.is_rtx,
        notes: [0; 3],
    }
}

/// The id of the message that a control packet is about, from the bits of it that the header has
/// (rule 7). It names the message in traces.
fn message_of(packet: &Egress, tx_ids: u16) -> MsgId {
    carried_id(packet.tx_msg_id, packet.dst_context, tx_ids)
}

impl Blocks {
    /// Take `msg` at `now`, if there is room for it (rules 6 to 8).
    fn submit(&mut self, now: Time, me: HostId, msg: &Msg, fx: &mut Effects) -> Submit {
        if msg.len > u64::from(self.packetization.longest()) {
            fx.failed(MsgKey { src: me, id: msg.id }, FailReason::Refused);
            return Submit::Taken;
        }
        let channel = (msg.dst, msg.channel);
        if msg.channel != 0 && self.channels.contains(&channel) {
            return Submit::Full;
        }
        let default = self.config.protocols.first().copied().unwrap_or(0);
        let own = self.config.protocols.get(usize::from(msg.transport)).copied();
        let out = Outgoing {
            protocol: own.unwrap_or(default),
            dst_ip: ip_of(msg.dst),
            dst_context: 0,
            src_context: msg.id.0 as u16,
            // It fits a size class; one of no bytes travels as a dummy byte (rule 5).
            msg_len: msg.len.max(1) as u16,
            generation: (msg.id.0 >> 16) as u16,
            tag: msg.id.0,
        };
        if !self.packetization.submit(now, out) {
            return Submit::Full;
        }
        if msg.channel != 0 {
            self.channels.insert(channel);
        }
        let submitted = Submitted { dst: msg.dst, channel: msg.channel, len: msg.len };
        self.messages.insert(msg.id, submitted);
        Submit::Taken
    }

    /// The application does not want message `id` delivered any more.
    fn cancel(&mut self, now: Time, me: HostId, id: MsgId, fx: &mut Effects) {
        if self.packetization.cancel(now, id.0) {
            self.finish(id);
            fx.failed(MsgKey { src: me, id }, FailReason::Cancelled);
        }
    }

    /// A simulated packet, from behind so many switches.
    fn receive(
        &mut self,
        entry: Entry,
        me: HostId,
        (pkt, switches): (&Packet, u32),
        fx: &mut Effects,
    ) {
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        frame::write(pkt, switches, &mut self.frame);
        if pkt.carries_payload() && pkt.span.len <= WORD {
            // Payload is not carried in simulation; a program that reads a short one finds zeros.
            self.frame.resize(self.frame.len() + pkt.span.len as usize, 0);
        }
        let carries_payload = pkt.carries_payload();
        let source = Source { host: Some(pkt.src), carries_payload, key: Some(key) };
        match self.arrive(entry, me, source, fx) {
            Arrived::Payload { is_placed: false, .. } if pkt.span.len > 0 => {
                fx.place(key, pkt.span.offset, pkt.span.len);
            }
            // There is no software beside the simulated NIC.
            Arrived::Software => fx.count(Stat::Rejected),
            _ => {}
        }
    }

    /// A packet with bytes, beginning with Ethernet.
    fn receive_frame(
        &mut self,
        entry: Entry,
        me: HostId,
        source: Source,
        frame: &[u8],
        fx: &mut Effects,
    ) -> Arrived {
        self.frame.clear();
        self.frame.extend_from_slice(frame);
        self.arrive(entry, me, source, fx)
    }

    /// Rule 1, for the packet in `self.frame`: the receiving side at once, the rest when the packet
    /// takes effect.
    fn arrive(&mut self, entry: Entry, me: HostId, source: Source, fx: &mut Effects) -> Arrived {
        let Source { host, carries_payload, key } = source;
        self.units.enter(Arrival { lookup: entry.lookup, at: entry.effect, key });
        self.peers.extend(host);
        let Some(ingress) = self.run_ingress(me, entry.cycle) else {
            fx.count(Stat::Rejected);
            return Arrived::Nothing;
        };
        if ingress.to == To::Software {
            return Arrived::Software;
        }
        let Some((request, info)) = self.units.lookup_made() else { return Arrived::Nothing };
        if info.is_forgotten {
            fx.count_received(Stat::Forgotten, self.units.key());
        }
        if info.is_done || (carries_payload && !info.is_new_pkt && !info.fail) {
            fx.count(Stat::Duplicate);
        }
        if ingress.drop || !carries_payload || !info.is_new_pkt {
            return Arrived::Nothing;
        }
        let rx_msg_id = ingress.rx_msg_id;
        let key = self.units.key();
        let twice = if ingress.is_last_pkt { self.units.complete(rx_msg_id) } else { None };
        if twice == Some(true) {
            // The simulated application gets a message once; this counts the promise broken.
            fx.count(Stat::DeliveredTwice);
        }
        let is_last = twice == Some(false);
        let (is_placed, ends_here) = (info.is_placed, ingress.to == To::Nobody);
        Arrived::Payload { key, rx_msg_id, request, is_placed, is_last, ends_here }
    }

    /// The headers of the packet that was made last.
    pub(super) fn headers(&self) -> &[u8] {
        &self.frame
    }

    /// Keep the messages that the program sends of its own.
    pub(super) fn keep_own_messages(&mut self) {
        self.own = Some(VecDeque::new());
    }

    /// A message of the program's own that takes effect now.
    pub(super) fn own_message(&mut self) -> Option<OwnMessage> {
        self.own.as_mut()?.pop_front()
    }

    /// Sizes and times.
    pub(super) const fn config(&self) -> &Config {
        &self.config
    }
}
