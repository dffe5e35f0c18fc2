//! One packet of one message at a time; the next when it has been acknowledged.

use std::collections::VecDeque;

use endpoint::{
    Cx, Endpoint, FailReason, Flags, Framing, Msg, Packet, Span, Stat, Submit, TimerId, Tx, TxPort,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgId, MsgKey};
use wire::frame::UDP;

const RESEND: TimerId = TimerId(0);
/// Message, index of the packet, bytes of the message.
const LEN: usize = 24;

/// Its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of a packet.
    pub payload: u16,
    /// Bytes on the wire beside them, and of an acknowledgement.
    pub header: u16,
    /// What is not acknowledged by then is sent again.
    pub timeout: Dur,
}

impl Config {
    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.header }
    }
}

/// Stop-and-wait on one host.
#[derive(Debug)]
pub struct StopAndWait {
    config: Config,
    /// Messages to send; the packet of the first one that is next, and whether it is under way.
    messages: VecDeque<Msg>,
    index: u64,
    sent: bool,
    /// Acknowledgements to send: to whom, of what.
    acks: VecDeque<(HostId, [u64; 3])>,
    /// Packets that have come, by message.
    arrived: HashMap<MsgKey, u64, FxBuildHasher>,
}

impl StopAndWait {
    /// An idle host.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (messages, acks) = (VecDeque::new(), VecDeque::new());
        Self { config, messages, index: 0, sent: false, acks, arrived: HashMap::default() }
    }

    fn on_data(&mut self, cx: &mut Cx<'_>, src: HostId, said: [u64; 3]) {
        let [id, index, size] = said;
        let key = MsgKey { src, id: MsgId(id) };
        let framing = self.config.framing();
        let arrived = self.arrived.entry(key).or_default();
        let len = framing.payload_of(index, size);
        if index > *arrived || index >= framing.packets(size) || u64::from(len) > cx.room {
            return;
        }
        if index == *arrived {
            *arrived += 1;
            if len > 0 {
                cx.fx.place(key, index * u64::from(self.config.payload), u32::from(len));
            }
            if *arrived == framing.packets(size) {
                cx.fx.delivered(key);
            }
        }
        self.acks.push_back((src, said));
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, src: HostId, [id, index, _]: [u64; 3]) {
        let Some(&msg) = self.messages.front() else { return };
        if (msg.dst, msg.id.0, self.index) != (src, id, index) || !self.sent {
            return;
        }
        self.sent = false;
        self.index += 1;
        cx.fx.disarm(RESEND);
        if self.index == self.config.framing().packets(msg.len) {
            cx.fx.acked(msg.id);
            self.messages.pop_front();
            self.index = 0;
        }
    }
}

impl Endpoint for StopAndWait {
    fn on_submit(&mut self, _: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.messages.push_back(*msg);
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let (words, _) = pkt.header().as_chunks::<8>();
        let ([id, index, size], UDP) = (words, pkt.proto) else {
            cx.fx.count(Stat::Rejected);
            return;
        };
        let said = [id, index, size].map(|word| u64::from_be_bytes(*word));
        match pkt.flags.has(Flags::CONTROL) {
            true => self.on_ack(cx, pkt.src, said),
            false => self.on_data(cx, pkt.src, said),
        }
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {
        self.sent = false;
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if port.open & 1 == 0 {
            return Tx::Idle;
        }
        let said = if let Some((to, said)) = self.acks.pop_front() {
            slot.dst = to;
            slot.flags = Flags::CONTROL;
            slot.wire_len = self.config.header;
            slot.span = Span { msg: MsgId(said[0]), offset: 0, len: 0 };
            said
        } else {
            let Some(msg) = self.messages.front().filter(|_| !self.sent) else { return Tx::Idle };
            let len = self.config.framing().payload_of(self.index, msg.len);
            let offset = self.index * u64::from(self.config.payload);
            slot.dst = msg.dst;
            slot.wire_len = len + self.config.header;
            slot.span = Span { msg: msg.id, offset, len: u32::from(len) };
            self.sent = true;
            cx.fx.arm(RESEND, cx.now + self.config.timeout);
            [msg.id.0, self.index, msg.len]
        };
        slot.src = cx.me;
        slot.proto = UDP;
        slot.hdr_len = LEN as u8;
        for (bytes, word) in slot.hdr.chunks_exact_mut(8).zip(said) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Tx::Sent
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        let Some(at) = self.messages.iter().position(|msg| msg.id == id) else { return };
        self.messages.remove(at);
        if at == 0 {
            (self.index, self.sent) = (0, false);
        }
        cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
    }
}
