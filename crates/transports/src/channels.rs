//! [`Channels`]: messages of one channel one after the other, for transports whose messages are
//! otherwise independent: the next starts when the sender knows that the one before is over.

use std::collections::VecDeque;

use endpoint::Msg;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, MsgId};

/// The messages that wait for one before them on their channel, for the channels in use.
#[derive(Debug, Default)]
pub(crate) struct Channels(HashMap<(HostId, u32), VecDeque<Msg>, FxBuildHasher>);

impl Channels {
    /// A message is handed over. Whether it may start now; otherwise it waits here.
    pub(crate) fn enter(&mut self, msg: &Msg) -> bool {
        if msg.channel == 0 {
            return true;
        }
        let channel = (msg.dst, msg.channel);
        if let Some(waiting) = self.0.get_mut(&channel) {
            waiting.push_back(*msg);
            return false;
        }
        self.0.insert(channel, VecDeque::new());
        true
    }

    /// A message that had started is over. The one that starts now.
    pub(crate) fn leave(&mut self, msg: &Msg) -> Option<Msg> {
        if msg.channel == 0 {
            return None;
        }
        let channel = (msg.dst, msg.channel);
        let next = self.0.get_mut(&channel)?.pop_front();
        if next.is_none() {
            self.0.remove(&channel);
        }
        next
    }

    /// Take a message out that has not started. Whether it was here.
    pub(crate) fn cancel(&mut self, id: MsgId) -> bool {
        self.0.values_mut().any(|waiting| {
            let place = waiting.iter().position(|msg| msg.id == id);
            place.and_then(|place| waiting.remove(place)).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_of_a_channel_at_a_time_and_others_at_once() {
        let mut channels = Channels::default();
        let msg = |id, channel| Msg { id: MsgId(id), channel, ..Msg::new(HostId(1), 10) };
        assert!(channels.enter(&msg(0, 0)) && channels.enter(&msg(1, 0)), "channel 0 has no order");
        assert!(channels.enter(&msg(2, 7)) && channels.enter(&msg(3, 8)));
        assert!(!channels.enter(&msg(4, 7)) && !channels.enter(&msg(5, 7)));
        assert!(channels.cancel(MsgId(4)) && !channels.cancel(MsgId(4)));
        assert_eq!(channels.leave(&msg(0, 0)), None);
        assert_eq!(channels.leave(&msg(2, 7)).map(|next| next.id), Some(MsgId(5)));
        assert_eq!(channels.leave(&msg(5, 7)), None);
        assert!(channels.0.len() == 1 && channels.enter(&msg(6, 7)), "the channel is free again");
    }
}
