//! What has happened to a message at its two ends, and what let a packet of it leave.
//!
//! The environment sees what endpoints are given and what they send, not why they send it. So what
//! let a packet leave is worked out from the order of things (docs/explain.md has the rules).

use std::collections::BTreeMap;

use endpoint::{Carried, Cause, Place, Segment};
use units::{Dur, HostId, Time};

use super::path::Path;

/// Something that happened to a message at one of its ends.
#[derive(Clone)]
pub(super) struct Activity {
    pub(super) at: Time,
    pub(super) path: Path,
    /// How long each class had been paused at the host by then.
    pub(super) paused: [Dur; 8],
}

/// A packet of a message is about to leave a host.
pub(super) struct Departure {
    pub(super) host: HostId,
    pub(super) now: Time,
    pub(super) carried: Carried,
    pub(super) control: bool,
    /// How long the host's port has been busy without a break, up to now.
    pub(super) busy: Dur,
    /// How long each class has been paused at the host.
    pub(super) paused: [Dur; 8],
    /// The endpoint was asked because a time had come that it had named.
    pub(super) timed: bool,
    /// When the last timer of the host's endpoint fired.
    pub(super) timer_at: Time,
}

/// A message at one of its ends.
#[derive(Default)]
struct End {
    /// What it heard last: a packet; at the sender at first its submission.
    heard: Option<Activity>,
    /// What it sent last. At the sender when that had left; at the receiver what lets a sender go
    /// on, when it began to.
    sent: Option<Activity>,
    /// Of the receiver: packets of the message that it has not answered with such a one.
    owed: u64,
}

/// A packet that was dropped, and whose bytes have not been sent again.
struct Lost {
    len: u32,
    started: Time,
    path: Path,
    link: u32,
}

/// A message on its way.
pub(super) struct Message {
    pub(super) dst: HostId,
    pub(super) submitted: Time,
    sender: End,
    receiver: End,
    /// By the first byte.
    lost: BTreeMap<u64, Lost>,
    /// When its sender's retransmission timer last expired.
    timed_out: Option<Time>,
    /// Its last packet waited for a time that the sender had chosen, and not for a packet.
    paced: bool,
    /// When its last new bytes came to their places, and the path there.
    placed: Option<(Time, Path)>,
}

impl Message {
    pub(super) fn new(dst: HostId, submission: Activity) -> Self {
        Self {
            dst,
            submitted: submission.at,
            sender: End { heard: Some(submission), ..End::default() },
            receiver: End::default(),
            lost: BTreeMap::new(),
            timed_out: None,
            paced: false,
            placed: None,
        }
    }

    /// Whether its receiver has heard of it.
    pub(super) fn is_known(&self) -> bool {
        self.receiver.heard.is_some()
    }

    /// Whether its sender has sent anything.
    pub(super) fn has_begun(&self) -> bool {
        self.sender.sent.is_some()
    }

    pub(super) fn hear(&mut self, at_sender: bool, control: bool, what: Activity) {
        let end = if at_sender { &mut self.sender } else { &mut self.receiver };
        end.heard = Some(what);
        end.owed += u64::from(!control);
    }

    pub(super) fn time_out(&mut self, now: Time) {
        self.timed_out = Some(now);
    }

    pub(super) fn place(&mut self, now: Time, path: Path) {
        self.placed = Some((now, path));
    }

    pub(super) fn lose(&mut self, carried: Carried, started: Time, path: Path, link: u32) {
        self.lost.insert(carried.offset, Lost { len: carried.len, started, path, link });
    }

    /// The path up to its delivery now.
    pub(super) fn deliver(&mut self, now: Time) -> Option<Path> {
        let heard = self.receiver.heard.take().or_else(|| self.sender.heard.take());
        let heard = heard.map(|heard| (heard.at, heard.path));
        let (at, mut path) = self.placed.take().or(heard)?;
        let (length, place) = (now.since(at), Place::Host(self.dst));
        path.spend(Segment { at, length, cause: Cause::DeliveryWait, place, packet: None });
        Some(path)
    }

    /// A packet leaves the sender now. The path up to now.
    pub(super) fn leave_sender(&mut self, departure: &Departure) -> Option<Path> {
        if let Some(lost) = self.take_lost(departure) {
            return Some(self.repair(lost, departure));
        }
        let Departure { now, timed, .. } = *departure;
        let End { heard, sent, .. } = &self.sender;
        let is_now = |what: &&Activity| what.at == now;
        let (behind, answered) = (sent.as_ref().filter(is_now), heard.as_ref().filter(is_now));
        let base = match (behind, answered) {
            (Some(own), _) => own,
            (None, Some(heard)) => {
                self.paced = false;
                heard
            }
            (None, None) => {
                let later = sent.as_ref().zip(heard.as_ref()).is_none_or(|(s, h)| s.at >= h.at);
                // What has been heard since then has let it leave, unless a time had to come, too.
                self.paced = timed || self.paced && later;
                let own = sent.as_ref().filter(|_| later || self.paced);
                own.or(heard.as_ref())?
            }
        };
        let cause = match self.timed_out {
            Some(at) if at >= base.at => Cause::Timeout,
            _ if self.paced => Cause::Pacing,
            _ => Cause::SenderWait,
        };
        Some(wait(base, departure, cause))
    }

    /// A control packet leaves the receiver now. The path up to now.
    pub(super) fn leave_receiver(&mut self, departure: &Departure) -> Option<Path> {
        let End { heard, sent, owed } = &mut self.receiver;
        let heard = heard.as_ref()?;
        let answers = heard.at == departure.now;
        // By its own pace the receiver answers what came long ago: one after the other.
        let in_turn = !answers && *owed > 0 && departure.timer_at > heard.at;
        let base = sent.as_ref().filter(|_| in_turn).unwrap_or(heard);
        let path = wait(base, departure, Cause::ReceiverWait);
        if departure.carried.len == 0 {
            *owed = if answers { 0 } else { owed.saturating_sub(1) };
            let Departure { now: at, paused, .. } = *departure;
            *sent = Some(Activity { at, path: path.clone(), paused });
        }
        Some(path)
    }

    /// What has left the sender has done so at `end`.
    pub(super) fn sent(&mut self, path: &Path, departure: &Departure, end: Time) {
        let mut path = path.clone();
        let Departure { host, now: at, carried, control, paused, .. } = *departure;
        let cause = if control { Cause::Control } else { Cause::Serialization };
        let (length, place) = (end.since(at), Place::Host(host));
        path.spend(Segment { at, length, cause, place, packet: Some(carried) });
        self.sender.sent = Some(Activity { at: end, path, paused });
    }

    /// It has done so, where classes have been `paused` for so long.
    pub(super) fn depart(&mut self, paused: [Dur; 8]) {
        self.sender.sent.iter_mut().for_each(|sent| sent.paused = paused);
    }

    /// What was dropped of the bytes that leave now. It stays while more of it is to be sent.
    fn take_lost(&mut self, departure: &Departure) -> Option<Lost> {
        let Departure { carried, control, .. } = *departure;
        if control || self.lost.is_empty() {
            return None;
        }
        let end = carried.offset.saturating_add(u64::from(carried.len));
        let (&offset, lost) = self.lost.range_mut(..end).next_back()?;
        let lost_end = offset.saturating_add(u64::from(lost.len));
        if lost_end <= carried.offset {
            return None;
        }
        if lost_end > end {
            let Lost { len, started, link, .. } = *lost;
            return Some(Lost { len, started, path: lost.path.clone(), link });
        }
        self.lost.remove(&offset)
    }

    /// Bytes that were dropped leave again.
    fn repair(&mut self, lost: Lost, departure: &Departure) -> Path {
        let Lost { started: at, mut path, link, .. } = lost;
        let timed_out = self.timed_out.is_some_and(|timeout| timeout >= at);
        let cause = if timed_out { Cause::Timeout } else { Cause::Dropped };
        let (length, packet) = (departure.now.since(at), Some(departure.carried));
        path.spend(Segment { at, length, cause, place: Place::Link(link), packet });
        path
    }
}

/// The path from `base` on to `departure`: first what is due to `cause`, then the host's port, and
/// then pauses of it.
fn wait(base: &Activity, departure: &Departure, cause: Cause) -> Path {
    let Departure { host, now, carried, busy, .. } = *departure;
    let mut path = base.path.clone();
    let waited = now.since(base.at);
    let class = usize::from(carried.class.min(7));
    let paused = departure.paused[class].0.saturating_sub(base.paused[class].0);
    let paused = Dur(paused).min(waited);
    let busy = busy.min(Dur(waited.0 - paused.0));
    let held = Dur(waited.0 - paused.0 - busy.0);
    let mut at = base.at;
    for (cause, length) in [(cause, held), (Cause::PortBusy, busy), (Cause::Paused, paused)] {
        path.spend(Segment { at, length, cause, place: Place::Host(host), packet: Some(carried) });
        at += length;
    }
    path
}
