//! The NIC with bytes: frames in and out, messages as bytes. What the simulated [`Nano`] does with
//! packets that have no payload, it does here with whole ones, so that programs may read payload,
//! software may have packets of its own, and what reaches an application are bytes.
//!
//! ```text
//!   submit ──► packetization ──► stage ──┐            ┌──► stage ──► buffers ──► Output::Message
//!                                        ├──► wire ───┤
//!   transmit ────────────────────────────┘            └──► software: Output::Packet
//! ```
//!
//! The law of time is that of docs/nic.md; a payload stage lengthens both ways by its cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use endpoint::{
    Cx, Draw, Effect, Effects, Endpoint, FailReason, Flags, Msg, NetView, Packet, Purpose, Routes,
    Submit, Tx, TxPort,
};
use units::{Dur, HostId, MsgId, MsgKey, Rate, Time};

use super::payload::{PayloadStage, Place};
use p4::ir;
use trimline_nic::nano::bits::PAYLOAD;
use trimline_nic::nano::config::Config;
use trimline_nic::nano::endpoint::{Arrived, Nano, ProgramError, Runs};
use trimline_nic::nano::externs::OwnMessage;
use trimline_nic::nano::frame::OUTER;
use trimline_nic::nano::meta::{carried_id, host_of};
use trimline_nic::nano::reassembly::Request;

/// The shortest frame that the NIC takes, bytes (specs/nanotransport.md#12: others are dropped).
const SHORTEST: usize = 65;

/// What a NIC tells its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A message is whole.
    Message {
        /// Who has sent it.
        src: HostId,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// A packet that the program has sent round reassembly, headers and all.
    Packet(Vec<u8>),
    /// A message of this host has arrived.
    Acked(MsgId),
    /// A message of this host will not arrive.
    Failed(MsgId, FailReason),
}

/// See the top of the file.
pub(crate) struct Device {
    me: HostId,
    nano: Nano,
    stage: Option<Box<dyn PayloadStage>>,
    fx: Effects,
    wake: Time,
    next_id: u64,
    /// Messages that have no id and buffer yet.
    waiting: VecDeque<(Msg, Vec<u8>)>,
    /// Messages that are being sent.
    outgoing: BTreeMap<MsgId, Vec<u8>>,
    /// The buffers of reassembly, by id.
    buffers: Vec<Vec<u8>>,
    /// Whole messages that have not taken effect.
    whole: BTreeMap<MsgKey, Vec<u8>>,
    /// Those of them that end at the program.
    ended: BTreeSet<MsgKey>,
    /// Packets for software that have not taken effect.
    bypassing: VecDeque<(Time, Vec<u8>)>,
    /// Packets of software, with the time at which they came.
    software: VecDeque<(Time, Vec<u8>)>,
    /// Whether software's packet is next, if both have one.
    software_next: bool,
    outputs: VecDeque<(Time, Output)>,
}

/// All that a NIC need know of a network without choices.
struct Cable;

impl Routes for Cable {
    fn paths(&self, _: HostId, _: HostId) -> u32 {
        1
    }
    fn hops(&self, _: HostId, _: HostId) -> u32 {
        1
    }
    fn base_rtt(&self, _: HostId, _: HostId) -> Dur {
        Dur::ZERO
    }
}

const DRAWS: Purpose = Purpose::new("device");

impl Device {
    /// The idle NIC of host `me` with `program`, which `runs`, and perhaps a stage for payload.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub(crate) fn new(
        me: HostId,
        program: &ir::Program,
        runs: Runs,
        mut config: Config,
        stage: Option<Box<dyn PayloadStage>>,
    ) -> Result<Self, ProgramError> {
        let cycles = stage.as_ref().map_or(0, |stage| stage.cycles());
        config.ingress_cycles = config.ingress_cycles.saturating_add(cycles);
        config.egress_cycles = config.egress_cycles.saturating_add(cycles);
        let buffers = vec![Vec::new(); usize::from(config.rx_messages)];
        let mut nano = Nano::new(program, runs, config)?;
        nano.keep_own_messages();
        Ok(Self {
            me,
            nano,
            stage,
            fx: Effects::new(),
            wake: Time::NEVER,
            next_id: 0,
            waiting: VecDeque::new(),
            outgoing: BTreeMap::new(),
            buffers,
            whole: BTreeMap::new(),
            ended: BTreeSet::new(),
            bypassing: VecDeque::new(),
            software: VecDeque::new(),
            software_next: false,
            outputs: VecDeque::new(),
        })
    }

    /// Call the NIC at `now`, and do what it wants done.
    fn call<R>(&mut self, now: Time, call: impl FnOnce(&mut Nano, &mut Cx<'_>) -> R) -> R {
        let Self { me, nano, fx, .. } = self;
        // Its rate matters to nobody: the NIC is asked when its port is free.
        let nics = [Rate(0)];
        let net = NetView {
            me: *me,
            nics: &nics,
            mtu: u16::MAX,
            whole: true,
            lateness: Dur::ZERO,
            routes: &Cable,
        };
        let draw = Draw::new(0, DRAWS, u64::from(me.0));
        let mut cx = Cx { now, rx_at: now, me: *me, room: u64::MAX, net: &net, draw, fx };
        let result = call(nano, &mut cx);
        self.apply(now);
        result
    }

    fn apply(&mut self, now: Time) {
        let mut room = false;
        let effects = std::mem::take(&mut self.fx);
        for effect in effects.as_slice() {
            match *effect {
                Effect::Arm { at, .. } => self.wake = at,
                Effect::Delivered(key) => {
                    let bytes = self.whole.remove(&key).unwrap_or_default();
                    if !self.ended.remove(&key) {
                        self.outputs.push_back((now, Output::Message { src: key.src, bytes }));
                    }
                }
                Effect::Acked(id) => {
                    room |= self.outgoing.remove(&id).is_some();
                    self.outputs.push_back((now, Output::Acked(id)));
                }
                Effect::Failed(MsgKey { id, .. }, why) => {
                    room |= self.outgoing.remove(&id).is_some();
                    self.outputs.push_back((now, Output::Failed(id, why)));
                }
                _ => {}
            }
        }
        self.fx = effects;
        self.fx.clear();
        while let Some(own) = self.nano.own_message() {
            let OwnMessage { protocol, dst_ip, len, bytes } = own;
            let protocols = &self.nano.config().protocols;
            let transport = protocols.iter().position(|&known| known == protocol).unwrap_or(0);
            let bytes = bytes[..usize::from(len)].to_vec();
            self.enqueue(host_of(dst_ip), transport as u8, bytes);
            room = true;
        }
        if room {
            self.offer(now);
        }
    }

    fn enqueue(&mut self, dst: HostId, transport: u8, bytes: Vec<u8>) -> MsgId {
        let id = MsgId(self.next_id);
        self.next_id += 1;
        let msg = Msg { id, transport, ..Msg::new(dst, bytes.len() as u64) };
        self.waiting.push_back((msg, bytes));
        id
    }

    /// Hand over the messages that wait, as far as there is room.
    fn offer(&mut self, now: Time) {
        while let Some((msg, bytes)) = self.waiting.pop_front() {
            self.outgoing.insert(msg.id, bytes);
            if self.call(now, |nano, cx| nano.on_submit(cx, &msg)) == Submit::Full {
                let bytes = self.outgoing.remove(&msg.id).unwrap_or_default();
                self.waiting.push_front((msg, bytes));
                return;
            }
        }
    }

    /// The application sends `bytes` to `dst`, over the so-manieth of the program's transports.
    /// Without an id or a buffer the message waits. An empty one arrives as a byte of zero (rule
    /// 5).
    pub(crate) fn submit(
        &mut self,
        now: Time,
        dst: HostId,
        transport: u8,
        bytes: Vec<u8>,
    ) -> MsgId {
        let id = self.enqueue(dst, transport, bytes);
        self.offer(now);
        id
    }

    /// Software sends a packet of its own, past packetization and the egress pipeline.
    pub(crate) fn transmit(&mut self, now: Time, frame: Vec<u8>) {
        self.software.push_back((now, frame));
    }

    /// The last bit of `frame` is in.
    pub(crate) fn receive(&mut self, now: Time, frame: &[u8]) {
        let src = source(frame);
        let chopped = frame.get(OUTER).is_some_and(|flags| flags & wire::nano::flags::CHOP != 0);
        if frame.len() < SHORTEST && !chopped {
            return;
        }
        let arrived = self.call(now, |nano, cx| nano.receive_frame(cx, src, chopped, frame));
        match arrived {
            Arrived::Nothing => {}
            Arrived::Software => {
                let at = now + self.nano.config().ingress();
                self.bypassing.push_back((at, frame.to_vec()));
            }
            Arrived::Payload { key, rx_msg_id, request, is_last, ends_here, .. } => {
                self.store(key, rx_msg_id, request, frame);
                if is_last {
                    let bytes = self.buffers.get_mut(usize::from(rx_msg_id)).map(std::mem::take);
                    self.whole.insert(key, bytes.unwrap_or_default());
                    if ends_here {
                        self.ended.insert(key);
                    }
                }
            }
        }
    }

    /// Write the payload at the end of `frame` into the message's buffer.
    fn store(&mut self, key: MsgKey, rx_msg_id: u16, request: Request, frame: &[u8]) {
        let Some(buffer) = self.buffers.get_mut(usize::from(rx_msg_id)) else { return };
        let len = usize::from(request.msg_len);
        let start = usize::from(request.pkt_offset) * usize::from(PAYLOAD);
        let end = len.min(start + usize::from(PAYLOAD));
        buffer.resize(len, 0);
        let headers = frame.len().saturating_sub(end.saturating_sub(start));
        let payload = &frame[headers..];
        let Some(to) = buffer.get_mut(start..end).filter(|to| to.len() == payload.len()) else {
            return;
        };
        to.copy_from_slice(payload);
        if let Some(stage) = &self.stage {
            let place = Place { src: key.src, msg: key.id, pkt_offset: request.pkt_offset };
            stage.open(place, to);
        }
    }

    /// The wire is free at `now`: the frame that begins, if there is one; otherwise when to ask
    /// again, if nothing else happens before.
    ///
    /// # Errors
    /// That instant; [`Time::NEVER`] if nothing waits.
    pub(crate) fn send(&mut self, now: Time) -> Result<Vec<u8>, Time> {
        let egress = self.nano.config().egress();
        let ready = self.software.front().map_or(Time::NEVER, |(came, _)| *came + egress);
        if ready <= now && self.software_next {
            self.software_next = false;
            return self.software.pop_front().map(|(_, frame)| frame).ok_or(Time::NEVER);
        }
        let mut slot = Packet::EMPTY;
        let port = TxPort { nic: 0, open: u8::MAX };
        match self.call(now, |nano, cx| nano.poll_tx(cx, port, &mut slot)) {
            Tx::Sent => {
                self.software_next = true;
                Ok(self.frame_of(&slot))
            }
            _ if ready <= now => self.software.pop_front().map(|(_, frame)| frame).ok_or(ready),
            Tx::NotBefore(at) => Err(at.min(ready)),
            Tx::Idle => Err(ready),
        }
    }

    /// The packet that the NIC has made, with its payload.
    fn frame_of(&self, pkt: &Packet) -> Vec<u8> {
        let mut frame = self.nano.headers().to_vec();
        let headers = frame.len();
        if !pkt.flags.has(Flags::CONTROL)
            && let Some(bytes) = self.outgoing.get(&pkt.span.msg)
        {
            let start = pkt.span.offset as usize;
            let end = start + pkt.span.len as usize;
            frame.extend(bytes.get(start..end).unwrap_or_default());
            if let Some(stage) = &self.stage {
                stage.seal(self.place_of(pkt), &mut frame[headers..]);
            }
        }
        // Control packets and empty messages have a byte of nothing.
        frame.resize(usize::from(pkt.wire_len).max(headers), 0);
        frame
    }

    /// The place of a packet of this host, as its receiver will name it.
    fn place_of(&self, pkt: &Packet) -> Place {
        let tx_ids = self.nano.config().tx_messages.max(1);
        let MsgId(id) = pkt.span.msg;
        let number = ((id >> 16) as u16).wrapping_mul(tx_ids);
        let msg = carried_id(number, id as u16, tx_ids);
        Place { src: self.me, msg, pkt_offset: (pkt.span.offset / u64::from(PAYLOAD)) as u8 }
    }

    /// When something happens by itself; [`Time::NEVER`] if nothing does.
    #[must_use]
    pub(crate) fn next(&self) -> Time {
        self.bypassing.front().map_or(Time::NEVER, |(at, _)| *at).min(self.wake)
    }

    /// All that happens by itself up to `now`, which is not after the next of it.
    pub(crate) fn advance(&mut self, now: Time) {
        if self.wake <= now {
            self.wake = Time::NEVER;
            self.call(now, |nano, cx| nano.on_timer(cx, endpoint::TimerId(0)));
        }
        while let Some((at, frame)) = self.bypassing.pop_front_if(|(at, _)| *at <= now) {
            self.outputs.push_back((at, Output::Packet(frame)));
        }
    }

    /// What the host has not heard yet, with its time.
    pub(crate) fn output(&mut self) -> Option<(Time, Output)> {
        self.outputs.pop_front()
    }
}

/// The sender of a frame: that of its IPv4 header, if it has one.
fn source(frame: &[u8]) -> Option<HostId> {
    if frame.get(12..14) != Some(&[0x08, 0x00]) {
        return None;
    }
    let ip: [u8; 4] = frame.get(26..30)?.try_into().ok()?;
    Some(host_of(u32::from_be_bytes(ip)))
}
