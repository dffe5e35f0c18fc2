//! The handshake that opens a connection (RFC 9293, section 3.5): SYN and SYN-ACK, lost like other
//! packets and repaired by the sender's timer, which begins with the initial timeout.
//!
//! SYN has the number before the first data, as one that occupies a position. A receiver answers
//! each SYN with a SYN-ACK and keeps nothing until data comes, as with SYN cookies (RFC 4987,
//! section 3.6): only the sender has a timer. The acknowledgement of the SYN-ACK comes with the
//! first data.

use endpoint::{Flags, Packet, Span};
use units::{MsgId, Time};
use wire::tcp::{Control, Repr, SackBlocks};

use super::config::Config;
use super::receiver::Ack;
use super::sender::Identity;
use super::stream::Segment;
use super::{WINDOW, ports, times, write};

/// How far the handshake has come, at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// SYN is to be sent, or to be sent again.
    Syn,
    /// It was sent at this time.
    Sent(Time),
    /// The connection is open.
    Open,
}

impl Opening {
    /// Of a new connection.
    pub(crate) fn new(config: &Config) -> Self {
        if config.handshake { Self::Syn } else { Self::Open }
    }
}

/// A SYN, caused by a message. With ECN it asks for that (RFC 3168, section 6.1.1).
pub(crate) fn syn(config: &Config, msg: MsgId) -> Segment {
    let asks = Control::SYN.with(Control::ECE).with(Control::CWR);
    let control = if config.ecn { asks } else { Control::SYN };
    Segment { seq: 0, len: 0, msg, offset: 0, control, echo: 0, again: false }
}

/// The answer to a SYN of connection `conn`.
pub(crate) fn answer(config: &Config, conn: u32, header: &Repr, pkt: &Packet) -> Ack {
    let syn = Control::SYN.with(Control::ACK);
    Ack {
        peer: pkt.src,
        conn,
        number: config.isn,
        control: if config.ecn { syn.with(Control::ECE) } else { syn },
        sack: SackBlocks::NONE,
        window: WINDOW,
        path: pkt.path,
        msg: pkt.span.msg,
        stamp: header.timestamps.map_or(0, |times| times.value),
    }
}

/// Whether SYN and SYN-ACK may be marked instead of lost: for DCTCP alone (RFC 8257, section 3.6;
/// RFC 3168, section 6.1.1). Their marks mean nothing.
pub(crate) fn may_be_marked(config: &Config) -> bool {
    config.ecn && config.rule.params().echoes_each_mark()
}

/// The sequence number of SYN and SYN-ACK: that before the first data.
pub(crate) fn seq(config: &Config) -> u32 {
    config.isn.wrapping_sub(1)
}

/// Put `segment`, a SYN, on the wire.
pub(crate) fn fill_syn(
    config: &Config,
    now: Time,
    id: &Identity,
    segment: Segment,
    slot: &mut Packet,
) {
    slot.dst = id.dst;
    slot.path = id.path;
    slot.flags = Flags::CONTROL;
    slot.span = Span { msg: segment.msg, offset: 0, len: 0 };
    slot.wire_len = config.ack_bytes;
    if may_be_marked(config) {
        slot.flags.set(Flags::ECT);
    }
    let (src_port, dst_port) = ports(id.conn);
    let (seq, ack, control) = (seq(config), 0, segment.control);
    let (window, sack, timestamps) = (WINDOW, SackBlocks::NONE, times(config, now, 0));
    write(Repr { src_port, dst_port, seq, ack, control, window, sack, timestamps }, slot);
}
