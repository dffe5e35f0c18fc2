//! [`Ledger`]: what became of every message, and the assertions that no endpoint may break.

use std::collections::BTreeMap;

use endpoint::{Effect, FailReason, Msg, Packet, RangeSet, UNBOUNDED};
use units::{HostId, MsgKey, Time};

/// One message, as the harness sees it.
#[derive(Clone, Debug)]
pub struct Record {
    /// What was submitted.
    pub msg: Msg,
    /// When it was first offered to the transport.
    pub submitted: Time,
    /// Which bytes have left the sender, once peers are not trusted; and whether any packet has.
    pub left: RangeSet,
    /// See `left`.
    pub begun: bool,
    /// Which bytes have been placed at the receiver.
    pub placed: RangeSet,
    /// When the receiver had it whole.
    pub delivered: Option<Time>,
    /// When the sender knew that.
    pub acked: Option<Time>,
    /// When and why the sender gave it up.
    pub failed: Option<(Time, FailReason)>,
    /// When and why the receiver gave it up.
    pub receiver_failed: Option<(Time, FailReason)>,
    /// Whether the test has cancelled it.
    pub cancelled: bool,
}

/// Every message of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    messages: BTreeMap<MsgKey, Record>,
    /// The last message delivered on each channel: (source, destination, channel).
    in_order: BTreeMap<(HostId, HostId, u32), MsgKey>,
    /// Packets may have been altered or forged: only what holds for any peer is checked.
    hostile: bool,
}

impl Ledger {
    /// The record of `key`, which must have been submitted.
    #[must_use]
    pub fn get(&self, key: MsgKey) -> &Record {
        self.messages.get(&key).unwrap_or_else(|| panic!("{key} was never submitted"))
    }

    /// Every message, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&MsgKey, &Record)> {
        self.messages.iter()
    }

    /// Payload bytes placed so far, all messages together.
    #[must_use]
    pub fn bytes_placed(&self) -> u64 {
        self.messages.values().map(|m| m.placed.iter().map(|r| r.end - r.start).sum::<u64>()).sum()
    }

    /// Assert that every message has been delivered and acknowledged, cancelled ones excepted:
    /// those must have ended at the sender one way or the other.
    pub fn assert_all_done(&self) {
        for (key, m) in &self.messages {
            assert!(m.acked.is_some() || m.failed.is_some(), "{key} never ended: {m:?}");
            if !m.cancelled {
                assert!(m.failed.is_none(), "{key} failed: {m:?}");
                assert!(m.delivered.is_some(), "{key} was not delivered: {m:?}");
            }
        }
    }

    pub(crate) fn submit(&mut self, key: MsgKey, msg: Msg, now: Time) {
        let record = Record {
            msg,
            submitted: now,
            left: RangeSet::new(),
            begun: false,
            placed: RangeSet::new(),
            delivered: None,
            acked: None,
            failed: None,
            receiver_failed: None,
            cancelled: false,
        };
        let old = self.messages.insert(key, record);
        assert!(old.is_none(), "{key} submitted twice");
    }

    pub(crate) fn cancel(&mut self, key: MsgKey) {
        self.get_mut(key).cancelled = true;
    }

    pub(crate) fn distrust(&mut self) {
        self.hostile = true;
    }

    /// A host begins to send `pkt`.
    pub(crate) fn sent(&mut self, pkt: &Packet) {
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        if self.hostile
            && pkt.carries_payload()
            && let Some(m) = self.messages.get_mut(&key)
        {
            m.begun = true;
            m.left.insert(pkt.span.offset..pkt.span.offset + u64::from(pkt.span.len));
        }
    }

    /// [`Ledger::apply`] where any packet may be a lie: what a host says of messages that come to
    /// it may be wrong, but not what it says of its own.
    fn apply_hostile(&mut self, now: Time, me: HostId, rx: Option<&Packet>, effect: Effect) {
        match effect {
            Effect::Place { key, .. } => {
                let of_its_host = rx.is_some_and(|pkt| pkt.src == key.src);
                assert!(of_its_host, "{key}: placed without a packet of that host");
                let carried = rx.is_some_and(Packet::carries_payload);
                assert!(carried, "{key}: placed from a packet without payload");
            }
            Effect::Acked(id) => {
                let key = MsgKey { src: me, id };
                let m = self.get_mut(key);
                assert!(m.acked.is_none() && m.failed.is_none(), "{key} ends twice: {m:?}");
                let all = m.begun && m.left.prefix() == m.msg.len;
                assert!(all, "{key} acked before all of it was sent: {m:?}");
                m.acked = Some(now);
            }
            Effect::Failed(key, why) if key.src == me => {
                let m = self.get_mut(key);
                assert!(m.acked.is_none() && m.failed.is_none(), "{key} ends twice: {m:?}");
                m.failed = Some((now, why));
            }
            _ => {}
        }
    }

    fn get_mut(&mut self, key: MsgKey) -> &mut Record {
        self.messages.get_mut(&key).unwrap_or_else(|| panic!("{key} was never submitted"))
    }

    /// Check and record one effect of host `me` about a message. `rx` is the packet being received.
    pub(crate) fn apply(&mut self, now: Time, me: HostId, rx: Option<&Packet>, effect: Effect) {
        if self.hostile {
            return self.apply_hostile(now, me, rx, effect);
        }
        match effect {
            Effect::Place { key, offset, len } => self.place(me, rx, key, offset, u64::from(len)),
            Effect::Delivered(key) => self.deliver(now, me, key),
            Effect::Acked(id) => {
                let key = MsgKey { src: me, id };
                let m = self.get_mut(key);
                assert!(m.delivered.is_some(), "{key} acked before it was delivered");
                assert!(m.acked.is_none(), "{key} acked twice");
                assert!(m.failed.is_none(), "{key} acked after it failed");
                m.acked = Some(now);
            }
            Effect::Failed(key, why) => self.fail(now, me, key, why),
            Effect::Broken => panic!("{me} is broken"),
            Effect::Arm { .. }
            | Effect::Count(_)
            | Effect::CountFor(..)
            | Effect::CountReceived(..)
            | Effect::Rtt(..)
            | Effect::RttReceived(..) => {}
        }
    }

    fn place(&mut self, me: HostId, rx: Option<&Packet>, key: MsgKey, offset: u64, len: u64) {
        let Some(pkt) = rx else { panic!("{key}: Place outside on_packet") };
        assert!(pkt.carries_payload(), "{key}: Place from a packet without payload");
        assert_eq!((pkt.src, pkt.span.msg), (key.src, key.id), "Place of another message");
        let carried = pkt.span.offset..pkt.span.offset + u64::from(pkt.span.len);
        assert!(
            carried.start <= offset && offset + len <= carried.end,
            "{key}: placed {offset}+{len}, the packet carries {carried:?}"
        );
        let m = self.get_mut(key);
        assert_eq!(m.msg.dst, me, "{key} placed at the wrong host");
        assert!(len > 0 && offset + len <= m.msg.len, "{key}: placed {offset}+{len}, outside");
        assert!(m.delivered.is_none(), "{key}: placed after Delivered");
        let new = m.placed.insert(offset..offset + len);
        assert_eq!(new, len, "{key}: bytes of {offset}+{len} placed twice");
    }

    fn deliver(&mut self, now: Time, me: HostId, key: MsgKey) {
        let m = self.get_mut(key);
        assert_eq!(m.msg.dst, me, "{key} delivered at the wrong host");
        assert!(m.delivered.is_none(), "{key} delivered twice");
        assert!(m.receiver_failed.is_none(), "{key} delivered after it failed");
        assert_ne!(m.msg.len, UNBOUNDED, "{key} has no end, yet was delivered");
        assert_eq!(m.placed.prefix(), m.msg.len, "{key} delivered before all of it was placed");
        m.delivered = Some(now);
        let channel = (key.src, me, m.msg.channel);
        // One that was cancelled has no order: what is still on its way may complete it at any
        // time.
        if channel.2 != 0
            && !m.cancelled
            && let Some(last) = self.in_order.insert(channel, key)
        {
            assert!(last < key, "channel {}: {key} delivered after {last}", channel.2);
        }
    }

    fn fail(&mut self, now: Time, me: HostId, key: MsgKey, why: FailReason) {
        let m = self.get_mut(key);
        assert!(why != FailReason::Cancelled || m.cancelled, "{key} was not cancelled");
        if key.src == me {
            assert!(m.failed.is_none(), "{key} failed twice");
            assert!(m.acked.is_none(), "{key} failed after it was acked");
            m.failed = Some((now, why));
        } else {
            assert_eq!(m.msg.dst, me, "{key} failed at the wrong host");
            assert!(m.receiver_failed.is_none(), "{key} failed twice at the receiver");
            assert!(m.delivered.is_none(), "{key} failed after it was delivered");
            m.receiver_failed = Some((now, why));
        }
    }
}
