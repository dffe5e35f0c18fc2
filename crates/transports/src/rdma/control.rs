//! Packets without payload: acknowledgements and the like, which wait for the interface and go
//! before data.

use endpoint::{Cx, Flags, MsgId, Packet, Span};
use units::{Dur, HostId, Time};
use wire::int;
use wire::roce::{Ack, BITS, Kind, PROTO, Repr};

use super::config::Config;

/// Control packets that may wait for the interface; more are lost, as in a full device queue.
pub(super) const OUTBOX_MAX: usize = 1 << 16;

/// Those that wait.
pub(super) type Outbox = crate::outbox::Outbox<Control>;

/// A control packet that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) to: HostId,
    pub(super) path: u32,
    pub(super) header: Repr,
    /// The message that it is about.
    pub(super) msg: MsgId,
    /// What caused it came to the interface then.
    pub(super) since: Time,
    /// The telemetry that it returns.
    pub(super) telemetry: Option<int::Stack>,
}

impl Control {
    /// An answer to `pkt`, about the packets before number `psn` of `queue_pair`.
    pub(super) fn answer(pkt: &Packet, queue_pair: u32, psn: u64, kind: Kind, since: Time) -> Self {
        let psn = psn as u32 & ((1 << BITS) - 1);
        let header = Repr { queue_pair, psn, kind };
        let Packet { src: to, path, span: Span { msg, .. }, .. } = *pkt;
        Self { to, path, header, msg, since, telemetry: None }
    }

    /// Tell the host that `pkt` came from that everything before packet `next` is here, or that the
    /// queue pair is `over`.
    pub(super) fn acknowledge(
        cx: &Cx<'_>,
        pkt: &Packet,
        queue_pair: u32,
        next: u64,
        over: bool,
    ) -> Self {
        let ack = Ack {
            nak: false,
            over,
            marked: false,
            messages: 0,
            cause: None,
            remote: 0,
            bitmap: None,
        };
        Self::answer(pkt, queue_pair, next, Kind::Ack(ack), cx.rx_at)
    }

    /// Write it into `slot`, which is sent now.
    pub(super) fn fill(mut self, config: &Config, now: Time, slot: &mut Packet) {
        if let Kind::Ack(ack) = &mut self.header.kind {
            ack.remote = nanoseconds(now.since(self.since));
        }
        slot.dst = self.to;
        slot.path = self.path;
        slot.class = config.ack_class;
        slot.flags = Flags::CONTROL;
        slot.wire_len =
            if self.telemetry.is_some() { config.longest_ack() } else { config.ack_bytes };
        slot.span = Span { msg: self.msg, offset: 0, len: 0 };
        put_header(slot, self.header, self.telemetry.as_ref());
    }
}

fn nanoseconds(dur: Dur) -> u32 {
    u32::try_from(dur.0 / 1_000).unwrap_or(u32::MAX)
}

/// Write the headers of a packet, with `telemetry` at their end.
pub(super) fn put_header(slot: &mut Packet, header: Repr, telemetry: Option<&int::Stack>) {
    slot.proto = PROTO;
    let bytes = header.to_bytes();
    let mut len = bytes.as_slice().len();
    slot.hdr[..len].copy_from_slice(bytes.as_slice());
    if let Some(stack) = telemetry {
        slot.hdr[len..len + int::LEN].copy_from_slice(&stack.to_bytes());
        len += int::LEN;
    }
    slot.hdr_len = len as u8;
}
