//! [`Channels`]: messages of one channel one after the other, for transports whose messages are
//! otherwise independent: the next starts when the sender knows that the one before is over.
//!
//! A transport that says when a message is sent whole ([`Channels::sent`]) may start the next one
//! then, behind it: that one must not be delivered before the first is over.

use std::collections::VecDeque;

use endpoint::Msg;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, MsgId};

/// The messages of a channel in use.
#[derive(Debug)]
struct Channel {
    /// Started before all others.
    first: MsgId,
    /// All of the first one has been sent.
    is_sent: bool,
    /// Started behind it.
    second: Option<MsgId>,
    /// Not started.
    waiting: VecDeque<Msg>,
}

/// The channels in use.
#[derive(Debug, Default)]
pub(crate) struct Channels(HashMap<(HostId, u32), Channel, FxBuildHasher>);

/// What a message may do that is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Start.
    First,
    /// Start behind the first, of which all has been sent.
    Second,
    /// Wait.
    Later,
}

/// What comes after a message that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This one starts.
    Start(Msg),
    /// This one, which started behind it, is now the first.
    Release(MsgId),
}

impl Channels {
    /// A message is handed over.
    pub(crate) fn enter(&mut self, msg: &Msg) -> Turn {
        if msg.channel == 0 {
            return Turn::First;
        }
        let Some(channel) = self.0.get_mut(&(msg.dst, msg.channel)) else {
            let waiting = VecDeque::new();
            let channel = Channel { first: msg.id, is_sent: false, second: None, waiting };
            self.0.insert((msg.dst, msg.channel), channel);
            return Turn::First;
        };
        // One that waits goes before it, although the second was given up.
        let is_next = channel.second.is_none() && channel.waiting.is_empty();
        if channel.is_sent && is_next {
            channel.second = Some(msg.id);
            return Turn::Second;
        }
        channel.waiting.push_back(*msg);
        Turn::Later
    }

    /// All of a message that had started has been sent, for the first time. The one that starts
    /// now, behind it.
    pub(crate) fn sent(&mut self, msg: &Msg) -> Option<Msg> {
        let channel = self.0.get_mut(&(msg.dst, msg.channel))?;
        if channel.first != msg.id {
            return None;
        }
        channel.is_sent = true;
        if channel.second.is_some() {
            return None;
        }
        let next = channel.waiting.pop_front()?;
        channel.second = Some(next.id);
        Some(next)
    }

    /// A message that had started is over.
    pub(crate) fn leave(&mut self, msg: &Msg) -> Option<Next> {
        if msg.channel == 0 {
            return None;
        }
        let channel = self.0.get_mut(&(msg.dst, msg.channel))?;
        if channel.second == Some(msg.id) {
            channel.second = None;
            return None;
        }
        channel.is_sent = false;
        if let Some(second) = channel.second.take() {
            channel.first = second;
            return Some(Next::Release(second));
        }
        let Some(next) = channel.waiting.pop_front() else {
            self.0.remove(&(msg.dst, msg.channel));
            return None;
        };
        channel.first = next.id;
        Some(Next::Start(next))
    }

    /// Take a message out that has not started. Whether it was here.
    pub(crate) fn cancel(&mut self, id: MsgId) -> bool {
        self.0.values_mut().any(|Channel { waiting, .. }| {
            let place = waiting.iter().position(|msg| msg.id == id);
            place.and_then(|place| waiting.remove(place)).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn msg(id: u64, channel: u32) -> Msg {
        Msg { id: MsgId(id), channel, ..Msg::new(HostId(1), 10) }
    }

    #[test]
    fn one_message_of_a_channel_at_a_time_and_others_at_once() {
        let mut channels = Channels::default();
        let (enter, free) = (|c: &mut Channels, n, of| c.enter(&msg(n, of)), Turn::First);
        for (n, of) in [(0, 0), (1, 0), (2, 7), (3, 8)] {
            assert_eq!(enter(&mut channels, n, of), free, "channel 0 has no order");
        }
        assert_eq!([4, 5].map(|n| enter(&mut channels, n, 7)), [Turn::Later; 2]);
        assert!(channels.cancel(MsgId(4)) && !channels.cancel(MsgId(4)));
        assert_eq!(channels.leave(&msg(0, 0)), None);
        assert_eq!(channels.leave(&msg(2, 7)), Some(Next::Start(msg(5, 7))));
        assert_eq!(channels.leave(&msg(5, 7)), None);
        assert_eq!((channels.0.len(), channels.enter(&msg(6, 7))), (1, free), "free again");
    }

    #[test]
    fn one_may_start_behind_another_that_is_sent_whole() {
        let mut channels = Channels::default();
        assert_eq!(channels.enter(&msg(0, 7)), Turn::First);
        assert_eq!([1, 2].map(|n| channels.enter(&msg(n, 7))), [Turn::Later; 2]);
        assert_eq!(channels.sent(&msg(0, 7)), Some(msg(1, 7)));
        assert_eq!(channels.sent(&msg(0, 7)), None, "one at a time");
        assert_eq!(channels.sent(&msg(1, 7)), None, "and only behind the first");
        assert_eq!(channels.leave(&msg(0, 7)), Some(Next::Release(MsgId(1))));
        assert_eq!(channels.sent(&msg(1, 7)), Some(msg(2, 7)));
        assert_eq!(channels.enter(&msg(5, 7)), Turn::Later);
        assert_eq!(channels.leave(&msg(2, 7)), None, "the second was given up");
        assert_eq!(channels.enter(&msg(6, 7)), Turn::Later, "behind the one that waits");
        assert!(channels.cancel(MsgId(5)) && channels.cancel(MsgId(6)));
        assert_eq!(channels.enter(&msg(3, 7)), Turn::Second, "all of the first has been sent");
        assert_eq!(channels.leave(&msg(1, 7)), Some(Next::Release(MsgId(3))));
        assert_eq!(channels.enter(&msg(4, 7)), Turn::Later);
        assert_eq!(channels.leave(&msg(3, 7)), Some(Next::Start(msg(4, 7))));
        assert!(channels.leave(&msg(4, 7)).is_none() && channels.0.is_empty());
    }
}
