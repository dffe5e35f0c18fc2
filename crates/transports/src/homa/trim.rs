//! Homa-Tr: switches cut the payload off what they have no room for, and its receiver says so at
//! once, a round trip after it was sent instead of a timeout (specs/homa-tr.md; invented in
//! "NanoTransport", SOSR 2021).
//!
//! That specification counts in packets of a NIC and knows messages of one direction; here it is
//! Homa's receiver, of bytes cut into packets, and each of the two messages of a call is treated
//! alike. What stands for what:
//!
//! | specs/homa-tr.md | here |
//! |---|---|
//! | K = 3 entries, those wholly in flight included | `overcommitment` messages of as many senders, as Homa has it |
//! | grantable - granted | `rtt_bytes` less what is in flight, in packets |
//! | NACK(packet, ackNo) | NACK(packet, granted): messages are acknowledged whole, so there is no ackNo; the sender sees by `granted` whether a GRANT has left after the NACK |
//! | exactly one of GRANT and ACK for a packet | GRANTs as Homa gives them, ACKs of whole messages |
//! | N_UNSCHED | the levels of the cut-offs |
//! | timeout at the sender, receive timer | RESEND at the receiver, NEED_ACK, `rx_idle_timeout` |
//!
//! A refused packet waits at its sender and leaves with the next GRANT of its message, so that who
//! sends is still the receiver's choice. Until that GRANT it counts neither as in flight (E3: it
//! has made room) nor as missing: nothing asks for it. If the message has been granted whole, no
//! GRANT will come, and it leaves at once (E2); so it does if that GRANT has overtaken the NACK,
//! where packets are sprayed. What is lost for all that, NACKs and GRANTs (E7) included, RESEND
//! repairs, as in Homa. Of the other defects of the public code (specs/homa-tr.md#6) there is
//! nothing here: a message begins in one way (E1), what has come is not refused (E4), there is no
//! number or buffer to run out of (E5), messages that are over are remembered (E6), and switches
//! count what they drop (E8).
//!
//! As published ([`Trimmed::RefusedAsPublished`]): E2, E3, E4.

use endpoint::{Cx, Packet};
use units::Dur;
use wire::homa::{Data, Kind};

use super::Outbox;
use super::config::{Config, Trimmed};
use super::receiver::Receiver;
use super::sender::{Flow, Named, Sender};
use crate::received::unwrap_index;

impl Receiver {
    /// A packet of data has come without its payload (specs/homa-tr.md#4).
    pub(super) fn on_trimmed(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        (number, data): (u32, Data),
        out: &mut Outbox,
    ) {
        let peer = self.peer(cx, pkt.src);
        let peer = &mut self.peers[peer as usize];
        let whole = unwrap_index(peer.over.prefix(), number);
        if peer.over.contains(whole) {
            // It was sent again, so its sender does not know (E6).
            out.push(peer.ack(cx, (whole, pkt.span.msg)));
            return;
        }
        let Some((at, index)) = self.arrive(cx, pkt, (number, data)) else { return };
        let Some(conn) = self.conns.get_mut(at) else { return };
        let as_published = self.config.trimmed == Trimmed::RefusedAsPublished;
        if conn.received.contains(index) && !as_published {
            // Nothing of it is missing (E4).
            return;
        }
        // Low bits: the sender knows about where it stands.
        let refusal = Kind::Nack { index: index as u32, granted: conn.granted as u32 };
        out.push(conn.control(cx, refusal));
        if conn.left() > 0 && !as_published {
            conn.refused += 1;
            conn.in_vain = None;
        }
        self.give_grants(cx, out);
    }
}

impl Sender {
    /// Packet `index` came without its payload, when `granted` had been permitted
    /// (specs/homa-tr.md#5).
    pub(super) fn on_nack(&mut self, cx: &mut Cx<'_>, name: Named, (index, granted): (u32, u32)) {
        let as_published = self.config.trimmed == Trimmed::RefusedAsPublished;
        let Some((at, flow)) = self.find(name) else { return };
        (flow.heard, flow.unknown) = (cx.now, Dur::ZERO);
        let index = unwrap_index(flow.next, index);
        let granted = unwrap_index(flow.granted, granted);
        // What has not been sent, or will be again anyway, is not marked.
        if index >= flow.next || flow.again.iter().any(|a| a.range.contains(&index)) {
            return;
        }
        if let Err(place) = flow.refused.binary_search(&index) {
            flow.refused.insert(place, index);
        }
        // What cannot be ahead is behind, beyond zero.
        let overtaken = flow.granted > granted || granted - flow.granted > u64::from(u32::MAX / 2);
        let no_grant = flow.granted == flow.packets || overtaken;
        if no_grant && !as_published {
            flow.release();
            self.list(at);
        }
    }
}

impl Flow {
    /// Send what was refused again, the lowest packets first.
    pub(super) fn release(&mut self) {
        let mut refused = std::mem::take(&mut self.refused);
        for run in refused.chunk_by(|a, b| a + 1 == *b) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                self.repeat(*first..last + 1, true);
            }
        }
        refused.clear();
        self.refused = refused;
    }

    /// The level of refused packets: that of the latest grant, but none of those for first packets
    /// (specs/homa-tr.md#5).
    pub(super) fn refused_level(&self, config: &Config) -> u8 {
        let first = config.first_scheduled_level();
        if self.granted > self.unscheduled { self.level.max(first) } else { first }
    }
}
