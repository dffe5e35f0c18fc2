//! Wires that misbehave: a rule looks at each packet as it leaves its host and says what happens.
//! Any closure is a rule; rules are asked in the order in which they were added, and the first
//! that does not say [`Verdict::Pass`] decides.

use endpoint::{Draw, Flags, Packet, Purpose};
use units::Dur;

use crate::Sent;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives.
    Pass,
    /// It is lost.
    Drop,
    /// It arrives twice, the second time this much later.
    Duplicate(Dur),
    /// It arrives this much later than it should: later packets overtake it.
    Delay(Dur),
    /// Its payload is cut off on the way. Control packets pass.
    Trim,
    /// Its payload is cut off and the header returns to the sender, one one-way delay after it
    /// left. Control packets pass.
    Bounce,
}

/// A fault rule.
pub type Rule = Box<dyn FnMut(&Sent) -> Verdict>;

/// How often each fault strikes, each as a probability in `0.0..=1.0`; their sum is at most 1.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Of losing a packet.
    pub drop: f64,
    /// Of duplicating one.
    pub duplicate: f64,
    /// Of delaying one.
    pub delay: f64,
    /// Of trimming one.
    pub trim: f64,
    /// Of bouncing one.
    pub bounce: f64,
    /// Delays and second copies are late by up to this much.
    pub late_max: Dur,
}

impl Mix {
    /// No faults.
    pub const NONE: Self =
        Self { drop: 0.0, duplicate: 0.0, delay: 0.0, trim: 0.0, bounce: 0.0, late_max: Dur::ZERO };
}

const KIND: Purpose = Purpose::new("testkit fault kind");
const LATE: Purpose = Purpose::new("testkit fault lateness");

/// Faults at random, the same ones under the same `draw`.
pub fn random(draw: Draw, mix: Mix) -> impl FnMut(&Sent) -> Verdict {
    move |sent| {
        let u = draw.unit(KIND, sent.n);
        let late = Dur(1 + draw.below(LATE, sent.n, mix.late_max.0));
        let mut upto = 0.0;
        for (p, verdict) in [
            (mix.drop, Verdict::Drop),
            (mix.duplicate, Verdict::Duplicate(late)),
            (mix.delay, Verdict::Delay(late)),
            (mix.trim, Verdict::Trim),
            (mix.bounce, Verdict::Bounce),
        ] {
            upto += p;
            if u < upto {
                return verdict;
            }
        }
        Verdict::Pass
    }
}

/// Lose the packets that carry payload with these ordinals, counted from zero over all of them
/// (retransmissions included) from host `src`.
pub fn drop_data(src: units::HostId, ordinals: &[u64]) -> impl FnMut(&Sent) -> Verdict + use<> {
    let ordinals = ordinals.to_vec();
    let mut n = 0;
    move |sent| {
        if sent.pkt.src != src || !sent.pkt.carries_payload() {
            return Verdict::Pass;
        }
        n += 1;
        if ordinals.contains(&(n - 1)) { Verdict::Drop } else { Verdict::Pass }
    }
}

/// Wire bytes of a packet after its payload was cut off (specs/ndp.md#2.1).
pub const TRIMMED_LEN: u16 = 64;

/// Cut the payload off.
pub(crate) fn trim(pkt: &mut Packet) {
    pkt.flags.set(Flags::TRIMMED);
    pkt.wire_len = pkt.wire_len.min(TRIMMED_LEN);
}

/// Cut the payload off and turn the packet round.
pub(crate) fn bounce(pkt: &mut Packet) {
    trim(pkt);
    pkt.flags.set(Flags::BOUNCED);
    std::mem::swap(&mut pkt.src, &mut pkt.dst);
}
