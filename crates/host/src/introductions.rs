//! Messages to peers that have not said yet in which life they are: among hosts with keys they wait
//! for the answer ([`crate::lives`]). Peers are asked as often as signals are sent.

use std::collections::BTreeMap;

use endpoint::Msg;
use units::{HostId, MsgId, Time};

use crate::signals::{TRIES, pause};

#[derive(Default)]
struct Waiting {
    messages: Vec<Msg>,
    tries: u32,
    due: Time,
}

/// What waits, by peer.
#[derive(Default)]
pub(crate) struct Introductions(BTreeMap<HostId, Waiting>);

impl Introductions {
    /// `msg` waits until its destination has answered. It is asked at once, if it is the first.
    pub(crate) fn wait(&mut self, msg: Msg) {
        self.0.entry(msg.dst).or_default().messages.push(msg);
    }

    /// When a peer is to be asked, the soonest.
    pub(crate) fn due(&self) -> Option<Time> {
        self.0.values().map(|waiting| waiting.due).min()
    }

    /// A peer that is to be asked by `now`, and what is given up if it has been asked often enough.
    pub(crate) fn ask(&mut self, now: Time) -> Option<(HostId, Vec<Msg>)> {
        let (&host, waiting) = self.0.iter_mut().find(|(_, waiting)| waiting.due <= now)?;
        if waiting.tries == TRIES {
            return Some((host, self.answered(host)));
        }
        waiting.due = now + pause(waiting.tries);
        waiting.tries += 1;
        Some((host, Vec::new()))
    }

    /// What waited for `host`, which has answered.
    pub(crate) fn answered(&mut self, host: HostId) -> Vec<Msg> {
        self.0.remove(&host).map_or_else(Vec::new, |waiting| waiting.messages)
    }

    /// A message is cancelled. Whether it was waiting.
    pub(crate) fn cancel(&mut self, id: MsgId) -> bool {
        self.0.values_mut().any(|waiting| {
            let at = waiting.messages.iter().position(|msg| msg.id == id);
            at.map(|at| waiting.messages.remove(at)).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use units::Dur;

    use super::*;

    #[test]
    fn a_peer_is_asked_until_it_is_given_up_and_messages_keep_their_order() {
        let msg = |id, dst| Msg { id: MsgId(id), ..Msg::new(HostId(dst), 1) };
        let mut all = Introductions::default();
        assert_eq!(all.due(), None);
        for (id, dst) in [(1, 7), (2, 7), (3, 8), (4, 7)] {
            all.wait(msg(id, dst));
        }
        assert!(all.cancel(MsgId(2)) && !all.cancel(MsgId(2)));
        let mut now = Time::ZERO;
        assert_eq!(all.ask(now), Some((HostId(7), vec![])));
        assert_eq!(all.ask(now), Some((HostId(8), vec![])));
        assert_eq!(all.ask(now), None, "not again so soon");
        assert_eq!(all.answered(HostId(8)), [msg(3, 8)]);
        let mut asked = 1;
        let given_up = loop {
            now = all.due().unwrap();
            match all.ask(now) {
                Some((_, given_up)) if given_up.is_empty() => asked += 1,
                Some((_, given_up)) => break given_up,
                None => unreachable!(),
            }
        };
        assert_eq!((given_up, asked, all.due()), (vec![msg(1, 7), msg(4, 7)], TRIES, None));
        assert!(
            (Time::ZERO + Dur::from_ms(9_000)..Time::ZERO + Dur::from_ms(11_000)).contains(&now)
        );
    }
}
