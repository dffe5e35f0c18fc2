//! The end of queue pairs that gets data: what has come, in which order, and what acknowledgements,
//! NAKs and congestion notifications say of it (specs/rdma.md#4,6).

use endpoint::{Cx, Effects, FailReason, Flags, Packet, Stat};
use units::{HostId, MsgId, MsgKey};
use wire::int;
use wire::roce::{Ack, BITS, Data, Kind};

use super::config::{Config, Recovery};
use super::control::{Control, Outbox};
use super::quiet::{Named, Notices};
use crate::connection_ids::unwrap;
use crate::connections::{Found, Half, Opened};
use crate::received::Received;

/// The end of a message among the packets of its queue pair.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Its last packet.
    psn: u64,
    msg: MsgId,
    /// Its sender has given it up.
    given_up: bool,
    /// The queue pair ends with it.
    last: bool,
}

/// One queue pair.
#[derive(Debug)]
struct Receiver {
    peer: HostId,
    queue_pair: u32,
    /// Packets that have come.
    received: Received,
    /// Ends of messages behind the first missing packet.
    ends: Vec<End>,
    /// Messages that have ended, modulo 2^24.
    messages: u32,
    named: Named,
    /// A marked packet has come since the last acknowledgement.
    marked: bool,
    notices: Notices,
}

/// Every queue pair to this host.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    queue_pairs: Opened<Receiver, BITS>,
}

impl Receivers {
    /// See [`endpoint::Endpoint::on_restart`].
    pub(super) fn restart(&mut self, host: HostId) {
        self.queue_pairs.restart(host, |_, _| {});
    }

    /// A data packet of queue pair `queue_pair` has come, with the low bits of its number.
    pub(super) fn on_data(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        (queue_pair, psn): (u32, u32),
        data: Data,
        pkt: &Packet,
        out: &mut Outbox,
    ) {
        let id = (pkt.src, queue_pair);
        let slot = match self.queue_pairs.find(id) {
            Found::Open(slot) => slot,
            Found::Over => {
                cx.fx.count(Stat::Duplicate);
                // All of it has come.
                let next = u64::from(psn) + 1;
                out.push(Control::acknowledge(cx, pkt, queue_pair, next, true));
                return;
            }
            Found::New => {
                let new = || Receiver::new(pkt.src, queue_pair);
                let Some(slot) = self.queue_pairs.open(cx.now, id, new, |_, _| {}) else {
                    return cx.fx.count(Stat::Rejected);
                };
                self.queue_pairs[slot] = new();
                slot
            }
        };
        let receiver = &mut self.queue_pairs[slot];
        let next = receiver.received.prefix();
        let Some(psn) = unwrap(psn, next, BITS) else { return };
        receiver.marked |= pkt.flags.has(Flags::CE);
        receiver.notify(cx, config, pkt, out);
        // What comes again is answered in any case, as its sender does not know that it came
        // (InfiniBand, volume 1, section 9.7.5.1.4).
        let asked = data.ack || receiver.received.contains(psn);
        let over = receiver.take(cx, config, psn, data, pkt);
        if let Some(ack) = receiver.answer(cx, config, (psn, asked), over, pkt) {
            out.push(ack);
        }
        if over {
            self.queue_pairs.finish(slot, id);
        }
    }
}

impl Half for Receiver {
    fn progress(&self) -> u64 {
        self.received.prefix()
    }
}

impl Receiver {
    fn new(peer: HostId, queue_pair: u32) -> Self {
        Self {
            peer,
            queue_pair,
            received: Received::default(),
            ends: Vec::new(),
            messages: 0,
            named: Named::default(),
            marked: false,
            notices: Notices::default(),
        }
    }

    /// Send a congestion notification for a marked packet, if it is time.
    fn notify(&mut self, cx: &Cx<'_>, config: &Config, pkt: &Packet, out: &mut Outbox) {
        let Some(interval) = config.cnp_interval else { return };
        if pkt.flags.has(Flags::CE) && self.notices.may(cx.now, interval) {
            out.push(Control::answer(pkt, self.queue_pair, 0, Kind::Cnp, cx.rx_at));
        }
    }

    /// Place what has come, if its turn has. Whether the queue pair is over.
    fn take(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        psn: u64,
        data: Data,
        pkt: &Packet,
    ) -> bool {
        let next = self.received.prefix();
        let in_turn = match config.recovery {
            Recovery::GoBackN { .. } => psn == next,
            Recovery::Selective { .. } => self.received.admits(psn),
        };
        if self.received.contains(psn) {
            cx.fx.count(Stat::Duplicate);
            return false;
        }
        // Without room for it, it is as good as lost.
        if !in_turn || u64::from(pkt.span.len) > cx.room {
            return false;
        }
        self.received.insert(psn);
        if pkt.span.len > 0 {
            let key = MsgKey { src: self.peer, id: pkt.span.msg };
            cx.fx.place(key, pkt.span.offset, pkt.span.len);
        }
        if data.ends_message {
            let Data { given_up, ends_queue_pair: last, .. } = data;
            let after = self.ends.partition_point(|end| end.psn > psn);
            self.ends.insert(after, End { psn, msg: pkt.span.msg, given_up, last });
        }
        self.end_messages(cx.fx)
    }

    /// Tell the application of messages that have ended. Whether the queue pair has.
    fn end_messages(&mut self, fx: &mut Effects) -> bool {
        let next = self.received.prefix();
        let mut over = false;
        while let Some(end) = self.ends.pop_if(|end| end.psn < next) {
            self.messages = self.messages.wrapping_add(1) & ((1 << BITS) - 1);
            let key = MsgKey { src: self.peer, id: end.msg };
            if end.given_up {
                fx.failed(key, FailReason::Cancelled);
            } else {
                fx.delivered(key);
            }
            over |= end.last;
        }
        over
    }

    /// What is said in answer to packet `psn`, for which it is `asked` or not.
    fn answer(
        &mut self,
        cx: &Cx<'_>,
        config: &Config,
        (psn, asked): (u64, bool),
        over: bool,
        pkt: &Packet,
    ) -> Option<Control> {
        let next = self.received.prefix();
        let nak = match config.recovery {
            Recovery::GoBackN { nack_interval } => {
                psn > next && !self.named.has(next, cx.now, nack_interval)
            }
            Recovery::Selective { .. } => false,
        };
        let refused = !self.received.contains(psn);
        if !nak && (refused || !asked) {
            return None;
        }
        let bitmap =
            matches!(config.recovery, Recovery::Selective { .. }).then(|| self.received.behind());
        let cause = i64::try_from(psn).ok().and_then(|psn| i16::try_from(psn - next as i64).ok());
        let ack = Ack {
            nak,
            over,
            marked: std::mem::take(&mut self.marked),
            messages: self.messages,
            cause: cause.filter(|_| !nak),
            remote: 0,
            bitmap,
        };
        let mut control = Control::answer(pkt, self.queue_pair, next, Kind::Ack(ack), cx.rx_at);
        if config.telemetry {
            control.telemetry = int::Stack::parse(pkt.header());
        }
        Some(control)
    }
}
