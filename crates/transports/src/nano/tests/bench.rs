//! A NIC that is handed packets one by one, without a network.

use std::sync::Arc;

use endpoint::{Cx, Draw, Effects, Endpoint, Flags, Msg, NetView, Packet, Purpose, Span, Submit};
use endpoint::{Tx, TxPort};
use testkit::Star;
use units::{Dur, HostId, MsgId, Time};
use wire::nano::{Kind, Repr};

use super::{LINK, header};
use crate::nano::control::put_header;
use crate::nano::{Config, Nano};

pub(super) const ACK: Kind = Kind::Ack { pull: false };
pub(super) const NACK: Kind = Kind::Nack { pull: false };
pub(super) const GRANT: Kind = Kind::Credit;

/// A header, the field that says how far, and the priority: type, pkt_offset, credit, grant_prio.
pub(super) type Brief = (Kind, u8, u16, u8);

/// Something that has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out {
    pub(super) at: Time,
    pub(super) header: Repr,
    pub(super) class: u8,
}

pub(super) struct Bench {
    endpoint: Nano,
    config: Config,
    star: Star,
    now: Time,
}

impl Bench {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            endpoint: Nano::new(Arc::new(config.clone())).unwrap(),
            config: config.clone(),
            star: Star::new(1, Dur::from_ns(500)),
            now: Time::ZERO,
        }
    }

    /// Call the NIC; what it sends stays in it.
    pub(super) fn call<R>(&mut self, call: impl FnOnce(&mut Nano, &mut Cx<'_>) -> R) -> R {
        let me = HostId(0);
        let net = NetView {
            me,
            nics: &[LINK.rate],
            mtu: 1088,
            whole: true,
            lateness: Dur::ZERO,
            routes: &self.star,
        };
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let (now, room, net, mut fx) = (self.now, u64::MAX, &net, Effects::new());
        let mut cx = Cx { now, rx_at: now, me, room, net, draw, fx: &mut fx };
        call(&mut self.endpoint, &mut cx)
    }

    /// Let time pass, in steps of a nanosecond; all that leaves, on a wire that is always free.
    pub(super) fn wait(&mut self, time: Dur) -> Vec<Out> {
        let (end, mut sent) = (self.now + time, Vec::new());
        while self.now < end {
            self.now += Dur::from_ns(1);
            let mut slot = Packet::EMPTY;
            let port = TxPort { nic: 0, open: u8::MAX };
            while self.call(|nic, cx| nic.poll_tx(cx, port, &mut slot)) == Tx::Sent {
                let header = header(&self.config, &slot);
                sent.push(Out { at: self.now, header, class: slot.class });
                slot = Packet::EMPTY;
            }
        }
        sent
    }

    /// `pkt` arrives, and 100 ns pass: what the NIC has answered.
    fn answers(&mut self, pkt: &Packet) -> Vec<Out> {
        self.call(|nic, cx| nic.on_packet(cx, pkt));
        self.wait(Dur::from_ns(100))
    }

    /// Packet `index` of message `message` of host 1, of `packets` full ones.
    pub(super) fn packet(&self, message: u16, packets: u16, index: u8, chopped: bool) -> Packet {
        let flags = if chopped { Flags::TRIMMED } else { Flags::default() };
        let mut pkt = Packet { src: HostId(1), dst: HostId(0), flags, ..Packet::EMPTY };
        let offset = u64::from(index) * 1024;
        pkt.span = Span { msg: MsgId(u64::from(message)), offset, len: 1024 };
        let repr = Repr {
            kind: Kind::Data { chopped },
            src_context: message,
            dst_context: 0,
            msg_len: packets * 1024,
            pkt_offset: index,
            credit: 0,
            grant_prio: 0,
            tx_msg_id: message,
            buf_ptr: 0,
            buf_size_class: 0,
        };
        put_header(&mut pkt, self.config.program.protocol(), &repr);
        pkt
    }

    /// Packet `index` of message 0 of `packets` arrives: the answers.
    pub(super) fn whole(&mut self, packets: u16, index: u8) -> Vec<Brief> {
        let pkt = self.packet(0, packets, index, false);
        briefs(&self.answers(&pkt))
    }

    /// The same without its payload.
    pub(super) fn chopped(&mut self, packets: u16, index: u8) -> Vec<Brief> {
        let pkt = self.packet(0, packets, index, true);
        briefs(&self.answers(&pkt))
    }

    /// The application submits message `id` of `packets` full packets to host 1.
    pub(super) fn submit(&mut self, id: u64, packets: u64) -> Submit {
        let msg = Msg { id: MsgId(id), ..Msg::new(HostId(1), packets * 1024) };
        self.call(|nic, cx| nic.on_submit(cx, &msg))
    }

    /// Host 1 says something of message `id`, which has the tx id `slot`: the data that leaves.
    pub(super) fn hear(&mut self, (id, slot): (u16, u16), brief: Brief) -> Vec<(u8, u8)> {
        let (kind, pkt_offset, credit, grant_prio) = brief;
        let mut pkt = Packet { src: HostId(1), flags: Flags::CONTROL, ..Packet::EMPTY };
        let repr = Repr {
            kind,
            src_context: 0,
            dst_context: id,
            msg_len: 0,
            pkt_offset,
            credit,
            grant_prio,
            tx_msg_id: slot,
            buf_ptr: 0,
            buf_size_class: 0,
        };
        put_header(&mut pkt, self.config.program.protocol(), &repr);
        data(&self.answers(&pkt))
    }
}

pub(super) fn briefs(sent: &[Out]) -> Vec<Brief> {
    sent.iter().map(|o| o.header).map(|h| (h.kind, h.pkt_offset, h.credit, h.grant_prio)).collect()
}

/// Indices and types of service of data packets.
pub(super) fn data(sent: &[Out]) -> Vec<(u8, u8)> {
    let data = sent.iter().filter(|out| matches!(out.header.kind, Kind::Data { .. }));
    data.map(|out| (out.header.pkt_offset, 7 - out.class)).collect()
}
