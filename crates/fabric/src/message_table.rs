//! The run's book of messages, from submission to completion: what one end says is held against
//! what the other said. Hosts own the rest of a message's state (`host`, `reassembly`); what they
//! say is collected while partitions run, and entered here in an order that does not depend on how
//! the fabric is cut.

use endpoint::{FailReason, MessageRecord, UNBOUNDED};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgKey, Time};

use crate::reassembly::Placed;

/// What one end of a message says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageEvent {
    /// The application has handed it over.
    Submitted { dst: HostId, len: u64, tag: u16, ideal: Dur, deadline: Dur },
    /// Its receiver had a part of it, has forgotten that and begins anew.
    Forgotten,
    /// The endpoint of host `at` says that the message is whole.
    Delivered { at: HostId, placed: Placed },
    /// The sending endpoint knows that it was delivered.
    Acked,
    /// An endpoint gives it up.
    Failed(FailReason),
}

/// What one end says of a message, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) at: Time,
    pub(crate) key: MsgKey,
    pub(crate) news: MessageEvent,
}

impl Report {
    /// The order in which reports are entered. Cause comes before effect: the news of one message
    /// follow each other in time or, at one instant, in the order of this enum.
    pub(crate) fn order(&self) -> (Time, u8, MsgKey) {
        let stage = match self.news {
            MessageEvent::Submitted { .. } => 0,
            MessageEvent::Forgotten => 1,
            MessageEvent::Delivered { .. } => 2,
            MessageEvent::Acked => 3,
            MessageEvent::Failed(_) => 4,
        };
        (self.at, stage, self.key)
    }
}

/// A message that is not over at both ends.
pub(crate) struct Live {
    pub(crate) key: MsgKey,
    pub(crate) dst: HostId,
    len: u64,
    tag: u16,
    submitted: Time,
    acked: Option<Time>,
    ideal: Dur,
    deadline: Dur,
    awaited: bool,
    forgotten: bool,
    /// Why an endpoint gave it up before it was whole, if one did: the first of them.
    failed: Option<FailReason>,
    delivered: Option<Time>,
    placed: Placed,
    /// Bytes less than a packet by which it could not be shortened when time was skipped.
    pub(crate) debt: u64,
}

pub(crate) struct MessageTable {
    index: HashMap<MsgKey, u32, FxBuildHasher>,
    live: Vec<Live>,
    free: Vec<u32>,
    window: (Time, Time),
    pub(crate) submitted: u64,
    pub(crate) delivered: u64,
    pub(crate) failed: u64,
    /// Bounded messages neither delivered nor failed.
    pub(crate) open: u64,
    /// Of these, the ones submitted inside the window: the run waits for them.
    pub(crate) awaited: u64,
    /// Unbounded messages.
    pub(crate) unbounded: u64,
}

impl MessageTable {
    pub(crate) fn new(window: (Time, Time)) -> Self {
        Self {
            index: HashMap::default(),
            live: Vec::new(),
            free: Vec::new(),
            window,
            submitted: 0,
            delivered: 0,
            failed: 0,
            open: 0,
            awaited: 0,
            unbounded: 0,
        }
    }

    /// Messages neither delivered nor failed, in an order that lasts while none comes or goes.
    pub(crate) fn unfinished(&mut self) -> impl Iterator<Item = &mut Live> {
        let Self { index, live, .. } = self;
        let places = live.iter_mut().enumerate();
        let here = places.filter(|(n, live)| index.get(&live.key) == Some(&(*n as u32)));
        let here = here.map(|(_, live)| live);
        here.filter(|live| live.delivered.is_none() && live.failed.is_none())
    }

    /// `time` has been left out of the work that sends the messages: those that are not over are of
    /// later work.
    pub(crate) fn postpone(&mut self, time: Dur) {
        for &slot in self.index.values() {
            let live = &mut self.live[slot as usize];
            live.submitted += time;
            live.delivered.iter_mut().chain(&mut live.acked).for_each(|at| *at += time);
        }
    }

    /// Whether all messages that are not over are of this part of the workload.
    pub(crate) fn has_only(&self, tag: u16) -> bool {
        self.index.values().all(|&slot| self.live[slot as usize].tag == tag)
    }

    /// Enter a report. The message's record, if it is over at both ends.
    pub(crate) fn enter(&mut self, report: &Report) -> Result<Option<MessageRecord>, String> {
        let Report { at, key, news } = *report;
        match news {
            MessageEvent::Submitted { dst, len, tag, ideal, deadline } => {
                self.submit(key, (dst, len, tag), at, (ideal, deadline));
            }
            MessageEvent::Forgotten => self.forget(key),
            MessageEvent::Delivered { at: host, placed } => self.deliver(key, host, placed, at)?,
            MessageEvent::Acked => self.acknowledge(key, at)?,
            MessageEvent::Failed(why) => self.fail(key, why)?,
        }
        Ok(self.close(key))
    }

    fn submit(
        &mut self,
        key: MsgKey,
        (dst, len, tag): (HostId, u64, u16),
        now: Time,
        (ideal, deadline): (Dur, Dur),
    ) {
        self.submitted += 1;
        let bounded = len != UNBOUNDED;
        let awaited = bounded && now >= self.window.0 && now < self.window.1;
        self.open += u64::from(bounded);
        self.unbounded += u64::from(!bounded);
        self.awaited += u64::from(awaited);
        let live = Live {
            key,
            dst,
            len,
            tag,
            submitted: now,
            acked: None,
            ideal,
            deadline,
            awaited,
            forgotten: false,
            failed: None,
            delivered: None,
            placed: Placed::default(),
            debt: 0,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.live[slot as usize] = live;
                slot
            }
            None => {
                self.live.push(live);
                self.live.len() as u32 - 1
            }
        };
        self.index.insert(key, slot);
    }

    fn find(&mut self, key: MsgKey) -> Result<&mut Live, String> {
        match self.index.get(&key) {
            Some(&slot) => Ok(&mut self.live[slot as usize]),
            None => Err("unknown, or over already".into()),
        }
    }

    /// The receiving endpoint says that it has forgotten a part of the message. One that is over by
    /// then stays so.
    fn forget(&mut self, key: MsgKey) {
        if let Ok(live) = self.find(key) {
            live.forgotten = true;
        }
    }

    /// The receiving endpoint says that the message is whole, and `placed` has been placed at `at`.
    fn deliver(
        &mut self,
        key: MsgKey,
        at: HostId,
        placed: Placed,
        now: Time,
    ) -> Result<(), String> {
        let live = self.find(key)?;
        if live.dst != at || live.delivered.is_some() {
            return Err(format!("delivered at {at}: not its destination, or a second time"));
        }
        if placed.bytes != live.len || placed.end != live.len {
            let Placed { bytes, end, .. } = placed;
            return Err(format!("delivered with {bytes} of {} bytes, up to {end}", live.len));
        }
        live.delivered = Some(now);
        live.placed = placed;
        let (awaited, counted) = (live.awaited, live.failed.is_none());
        if counted {
            self.delivered += 1;
            self.open -= 1;
            self.awaited -= u64::from(awaited);
        }
        Ok(())
    }

    /// The sending endpoint believes that the message was delivered. If it was not, it is lost
    /// where the receiver has said that it forgets, and a violation elsewhere.
    fn acknowledge(&mut self, key: MsgKey, now: Time) -> Result<(), String> {
        let live = self.find(key)?;
        let lost = live.delivered.is_none();
        if lost && !live.forgotten {
            return Err("acknowledged before it was delivered".into());
        }
        if live.acked.replace(now).is_some() {
            return Err("acknowledged twice".into());
        }
        if lost { self.fail(key, FailReason::Forgotten) } else { Ok(()) }
    }

    /// An endpoint gives the message up. The other end may have done so too, or have it all.
    fn fail(&mut self, key: MsgKey, why: FailReason) -> Result<(), String> {
        let live = self.find(key)?;
        if live.failed.is_some() || live.delivered.is_some() {
            return Ok(());
        }
        live.failed = Some(why);
        let (bounded, awaited) = (live.len != UNBOUNDED, live.awaited);
        self.failed += 1;
        self.open -= u64::from(bounded);
        self.unbounded -= u64::from(!bounded);
        self.awaited -= u64::from(awaited);
        Ok(())
    }

    /// The message's record, and no more of the message, if both ends are done with it. A failed
    /// one is kept to the end of the run: the other end may not know yet.
    fn close(&mut self, key: MsgKey) -> Option<MessageRecord> {
        let &slot = self.index.get(&key)?;
        let live = &self.live[slot as usize];
        if live.delivered.is_none() || live.acked.is_none() || live.failed.is_some() {
            return None;
        }
        let record = record(live);
        self.index.remove(&key);
        self.free.push(slot);
        Some(record)
    }

    /// The records of everything still open, by key, and the first message of which more has been
    /// placed than there is. `placed` is what has been placed of a message to a host and not been
    /// delivered.
    pub(crate) fn drain(
        &mut self,
        mut placed: impl FnMut(HostId, MsgKey) -> Placed,
    ) -> (Vec<MessageRecord>, Option<(MsgKey, String)>) {
        let mut slots: Vec<u32> = self.index.drain().map(|(_, slot)| slot).collect();
        slots.sort_unstable_by_key(|&slot| self.live[slot as usize].key);
        let (mut records, mut first_wrong) = (Vec::with_capacity(slots.len()), None);
        for slot in slots {
            let live = &mut self.live[slot as usize];
            if live.delivered.is_none() {
                live.placed = placed(live.dst, live.key);
            }
            if live.placed.end > live.len && first_wrong.is_none() {
                let what = format!("bytes up to {} placed of {}", live.placed.end, live.len);
                first_wrong = Some((live.key, what));
            }
            records.push(record(live));
        }
        (records, first_wrong)
    }
}

fn record(live: &Live) -> MessageRecord {
    MessageRecord {
        key: live.key,
        dst: live.dst,
        len: live.len,
        tag: live.tag,
        submitted: live.submitted,
        deadline: live.deadline,
        delivered: live.delivered,
        acked: live.acked,
        failed: live.failed,
        ideal: live.ideal,
        placed: live.placed.bytes,
        placed_in_window: live.placed.in_window,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::MsgId;

    const KEY: MsgKey = MsgKey { src: HostId(0), id: MsgId(0) };
    const TO: HostId = HostId(1);

    fn one(len: u64) -> MessageTable {
        let mut messages = MessageTable::new((Time::ZERO, Time::NEVER));
        messages.submit(KEY, (TO, len, 7), Time(1), (Dur(5), Dur::MAX));
        messages
    }

    fn placed(bytes: u64) -> Placed {
        Placed { bytes, in_window: 0, end: bytes }
    }

    #[test]
    fn a_message_is_whole_once_and_then_over() {
        let mut messages = one(100);
        assert!(messages.deliver(KEY, TO, placed(50), Time(3)).is_err(), "half of it");
        assert!(messages.deliver(KEY, HostId(2), placed(100), Time(3)).is_err(), "elsewhere");
        assert!(messages.acknowledge(KEY, Time(3)).is_err(), "too early");
        assert!(messages.deliver(KEY, TO, placed(100), Time(4)).is_ok());
        assert!(messages.deliver(KEY, TO, placed(100), Time(4)).is_err(), "twice");
        assert!(messages.close(KEY).is_none(), "the sender does not know yet");
        assert!(messages.acknowledge(KEY, Time(9)).is_ok());
        let record = messages.close(KEY).unwrap();
        assert_eq!((record.delivered, record.acked), (Some(Time(4)), Some(Time(9))));
        assert_eq!(record.tag, 7);
        assert_eq!((messages.open, messages.awaited), (0, 0));
        assert!(messages.deliver(KEY, TO, placed(100), Time(9)).is_err(), "over");
    }

    #[test]
    fn what_its_receiver_forgot_may_be_acknowledged_and_has_failed() {
        let mut messages = one(100);
        messages.forget(KEY);
        assert!(messages.acknowledge(KEY, Time(3)).is_ok());
        assert!(messages.acknowledge(KEY, Time(3)).is_err(), "twice");
        assert_eq!((messages.open, messages.awaited, messages.failed), (0, 0, 1));
        assert!(messages.deliver(KEY, TO, placed(100), Time(4)).is_ok(), "late, and not counted");
        assert_eq!(messages.delivered, 0);
        let (records, _) = messages.drain(|_, _| placed(0));
        assert_eq!(records[0].failed, Some(FailReason::Forgotten));
    }

    #[test]
    fn what_is_given_up_has_the_first_cause() {
        let mut messages = one(100);
        assert!(messages.fail(KEY, FailReason::TimedOut).is_ok());
        assert!(messages.fail(KEY, FailReason::Refused).is_ok());
        assert_eq!((messages.open, messages.awaited, messages.failed), (0, 0, 1));
        let (records, _) = messages.drain(|_, _| placed(60));
        assert_eq!((records[0].failed, records[0].placed), (Some(FailReason::TimedOut), 60));
    }

    #[test]
    fn what_is_open_at_the_end_is_checked_too() {
        let (records, _) = one(100).drain(|_, _| placed(60));
        assert_eq!((records[0].placed, records[0].delivered), (60, None));
        let (records, wrong) = one(100).drain(|_, _| placed(101));
        assert!(wrong.is_some() && records.len() == 1, "more than there is");
    }
}
