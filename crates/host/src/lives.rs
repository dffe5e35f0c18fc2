//! Which life of each peer counts: a host that starts again lives anew, and knows nothing.
//!
//! Every packet names the life of its source, and that of its destination as far as the source
//! knows it. The first life that is heard of counts. Any other one is believed only by an answer to
//! a random number that this host has sent there: otherwise one datagram with a forged address
//! could silence a peer for ever.
//!
//! Among hosts with keys nobody can forge a packet, but anybody can repeat one, to a host that has
//! started again and so has forgotten it. There the first life, too, counts only once its host has
//! answered, and a packet that names no life of this host is none for it.

use std::collections::BTreeMap;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use units::{Dur, HostId, Time};

/// A peer is not asked more often, however many packets name another life.
const PAUSE: Dur = Dur::from_ms(1);

#[derive(Default)]
struct Peer {
    /// Which life counts; zero if none was heard of.
    life: u64,
    /// What was asked, and when last.
    asked: Option<(u64, Time)>,
}

/// What a packet is, by the lives that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Of the life that counts, and for this one.
    Current,
    /// For a former life of this host: who sent it is to hear of this one.
    Former,
    /// Of another life of its source than the one that counts. If there is a number, its source is
    /// to be asked with it.
    Other(Option<u64>),
}

/// The lives of this host and its peers.
pub(crate) struct Lives {
    pub(crate) mine: u64,
    /// Whether packets could be repeated by somebody else: there are keys.
    wary: bool,
    peers: BTreeMap<HostId, Peer>,
}

impl Lives {
    pub(crate) fn new(mine: u64, wary: bool) -> Self {
        Self { mine, wary, peers: BTreeMap::new() }
    }

    /// Whether `host` may be sent messages: not if it must answer first, and has not.
    pub(crate) fn knows(&self, host: HostId) -> bool {
        !self.wary || self.of(host) != 0
    }

    /// The number to ask `host` with in which life it is, if it is time.
    pub(crate) fn ask(&mut self, host: HostId, now: Time) -> io::Result<Option<u64>> {
        self.peers.entry(host).or_default().ask(now)
    }

    /// The life of `host` that counts; zero if none was heard of.
    pub(crate) fn of(&self, host: HostId) -> u64 {
        self.peers.get(&host).map_or(0, |peer| peer.life)
    }

    /// What a packet of `src` is that names `theirs` as its source's life, `mine` as this host's.
    pub(crate) fn judge(
        &mut self,
        src: HostId,
        (theirs, mine): (u64, u64),
        now: Time,
    ) -> io::Result<Verdict> {
        let peer = self.peers.entry(src).or_default();
        if peer.life == 0 && !self.wary {
            peer.life = theirs;
        }
        if theirs != peer.life {
            return Ok(Verdict::Other(peer.ask(now)?));
        }
        let for_this = mine == self.mine || mine == 0 && !self.wary;
        Ok(if for_this { Verdict::Current } else { Verdict::Former })
    }

    /// `src` has answered with `number`, in life `theirs`. True if that counts from now on, and
    /// another one did before.
    pub(crate) fn answered(&mut self, src: HostId, number: u64, theirs: u64) -> bool {
        let Some(peer) = self.peers.get_mut(&src) else { return false };
        if peer.asked.is_none_or(|(asked, _)| asked != number) {
            return false;
        }
        peer.asked = None;
        // Lives rise. Nobody can forge an answer, and this does not depend on that.
        if self.wary && theirs < peer.life {
            return false;
        }
        let before = std::mem::replace(&mut peer.life, theirs);
        before != 0 && before != theirs
    }
}

impl Peer {
    /// The number to ask with, if it is time. The same one until it is answered, so that a late
    /// answer counts.
    fn ask(&mut self, now: Time) -> io::Result<Option<u64>> {
        let number = match self.asked {
            Some((_, last)) if now < last + PAUSE => return Ok(None),
            Some((number, _)) => number,
            None => {
                let mut bytes = [0; 8];
                getrandom(&mut bytes, GetRandomFlags::empty())?;
                u64::from_ne_bytes(bytes)
            }
        };
        self.asked = Some((number, now));
        Ok(Some(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: HostId = HostId(7);

    #[test]
    fn another_life_counts_only_once_its_host_has_answered() {
        let mut lives = Lives::new(50, false);
        let mut now = Time::ZERO;
        let mut judge = |lives: &mut Lives, theirs, mine| {
            now += PAUSE;
            lives.judge(A, (theirs, mine), now).unwrap()
        };
        assert_eq!(judge(&mut lives, 9, 0), Verdict::Current, "the first that is heard of");
        assert_eq!(judge(&mut lives, 9, 50), Verdict::Current);
        assert_eq!(judge(&mut lives, 9, 49), Verdict::Former);
        let Verdict::Other(Some(number)) = judge(&mut lives, u64::MAX, 50) else { panic!() };
        assert_eq!(judge(&mut lives, 9, 50), Verdict::Current, "a claim changes nothing");
        assert!(!lives.answered(A, number ^ 1, 12) && !lives.answered(HostId(8), number, 12));
        assert_eq!(judge(&mut lives, 12, 0), Verdict::Other(Some(number)), "as long as it is open");
        assert!(lives.answered(A, number, 12) && lives.of(A) == 12);
        assert!(!lives.answered(A, number, 13), "only once");
        assert_eq!(judge(&mut lives, 12, 50), Verdict::Current);
        assert!(matches!(judge(&mut lives, 9, 50), Verdict::Other(_)), "the former one");
    }

    #[test]
    fn among_hosts_with_keys_the_first_life_has_to_answer_too() {
        let mut lives = Lives::new(50, true);
        let now = Time::ZERO;
        let Verdict::Other(Some(number)) = lives.judge(A, (9, 50), now).unwrap() else { panic!() };
        assert!(!lives.knows(A), "that may be a packet of long ago");
        assert!(!lives.answered(A, number, 9), "none counted before");
        assert!(lives.knows(A) && lives.of(A) == 9);
        let mut judge = |theirs, mine| lives.judge(A, (theirs, mine), now + PAUSE).unwrap();
        assert_eq!(judge(9, 50), Verdict::Current);
        assert_eq!(judge(9, 0), Verdict::Former, "to whom it was is not said");
        assert_eq!(judge(9, 49), Verdict::Former);
        let Verdict::Other(Some(number)) = judge(8, 50) else { panic!() };
        assert!(!lives.answered(A, number, 8) && lives.of(A) == 9, "lives rise");
    }

    #[test]
    fn a_flood_of_claims_asks_once_a_millisecond() {
        let mut lives = Lives::new(1, false);
        lives.judge(A, (1, 0), Time::ZERO).unwrap();
        let asked = (0..10_000u64).filter(|&n| {
            let now = Time::ZERO + Dur::from_us(n);
            lives.judge(A, (2 + n, 0), now).unwrap() != Verdict::Other(None)
        });
        assert_eq!(asked.count(), 10);
    }
}
