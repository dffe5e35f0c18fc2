//! The end of queue pairs that gets data: what has come, in which order, and what acknowledgements, NAKs and
//! congestion notifications say of it (specs/dcqcn_pfc_hpcc_swift.md, sections 4 and 6).

use endpoint::{Cx, Effects, Flags, Packet, Stat, Why};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, MsgId, MsgKey, Time};
use wire::int;
use wire::roce::{Ack, BITS, Data, Kind};

use super::config::{Config, Recovery};
use super::control::{Control, Outbox};
use crate::connection_ids::{Finished, unwrap};
use crate::received::{Received, WINDOW_MAX};

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
    /// The hole that was last named, and when.
    named: Option<(u64, Time)>,
    /// A marked packet has come since the last acknowledgement.
    marked: bool,
    /// No congestion notification before this.
    quiet_until: Time,
}

/// Every queue pair to this host.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    table: Vec<Receiver>,
    free: Vec<u32>,
    by_id: HashMap<(HostId, u32), u32, FxBuildHasher>,
    finished: Finished<BITS>,
}

impl Receivers {
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
        let slot = match self.by_id.get(&(pkt.src, queue_pair)) {
            Some(&slot) => slot,
            None if self.finished.contains(pkt.src, queue_pair) => {
                cx.fx.count(Stat::Duplicate);
                out.push(answer_finished(cx, pkt, queue_pair, psn));
                return;
            }
            None => self.create(pkt.src, queue_pair),
        };
        let receiver = &mut self.table[slot as usize];
        let next = receiver.received.prefix();
        let Some(psn) = unwrap(psn, next, BITS) else { return };
        receiver.marked |= pkt.flags.has(Flags::CE);
        receiver.notify(cx, config, pkt, out);
        // What comes again is answered in any case, as its sender does not know that it came (InfiniBand, volume 1,
        // section 9.7.5.1.4).
        let asked = data.ack || receiver.received.contains(psn);
        let over = receiver.take(cx, config, psn, data, pkt);
        if let Some(ack) = receiver.answer(cx, config, (psn, asked), over, pkt) {
            out.push(ack);
        }
        if over {
            self.by_id.remove(&(pkt.src, queue_pair));
            self.finished.insert(pkt.src, queue_pair);
            self.free.push(slot);
        }
    }

    fn create(&mut self, peer: HostId, queue_pair: u32) -> u32 {
        let new = Receiver {
            peer,
            queue_pair,
            received: Received::default(),
            ends: Vec::new(),
            messages: 0,
            named: None,
            marked: false,
            quiet_until: Time::ZERO,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.table[slot as usize] = new;
                slot
            }
            None => {
                self.table.push(new);
                self.table.len() as u32 - 1
            }
        };
        self.by_id.insert((peer, queue_pair), slot);
        slot
    }
}

impl Receiver {
    /// Send a congestion notification for a marked packet, if it is time.
    fn notify(&mut self, cx: &Cx<'_>, config: &Config, pkt: &Packet, out: &mut Outbox) {
        let Some(interval) = config.cnp_interval else { return };
        if pkt.flags.has(Flags::CE) && cx.now >= self.quiet_until {
            self.quiet_until = cx.now.saturating_add(interval);
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
            Recovery::Selective { .. } => psn < next + WINDOW_MAX,
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
                fx.failed(key, Why::Cancelled);
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
                let quiet = |(hole, at): (u64, Time)| hole == next && cx.now < at + nack_interval;
                psn > next && !self.named.is_some_and(quiet)
            }
            Recovery::Selective { .. } => false,
        };
        let refused = !self.received.contains(psn);
        if !nak && (refused || !asked) {
            return None;
        }
        if nak {
            self.named = Some((next, cx.now));
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

/// The answer to a packet of a queue pair that is over: all of it has come.
fn answer_finished(cx: &Cx<'_>, pkt: &Packet, queue_pair: u32, psn: u32) -> Control {
    let ack = Ack {
        nak: false,
        over: true,
        marked: false,
        messages: 0,
        cause: None,
        remote: 0,
        bitmap: None,
    };
    Control::answer(pkt, queue_pair, u64::from(psn) + 1, Kind::Ack(ack), cx.rx_at)
}
