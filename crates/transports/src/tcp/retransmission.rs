//! Why a segment is sent again, as its header says it, and which fast retransmits were spurious, as
//! its receiver finds.
//!
//! A fast retransmit is spurious if the original arrives: before what was sent again, which then
//! comes as a duplicate, or after it, and then the original is the duplicate.

use std::collections::VecDeque;

use endpoint::{Effects, Packet, Stat};
use units::MsgKey;
use wire::tcp::{Control, Repr};

/// Fast retransmits that a host remembers, of all its connections: more than arrive in the time by
/// which an original may be late. Ours.
const REMEMBERED: usize = 256;

/// Why a segment is sent again. Two bits of its header say so: URG, and ECE, which data has no use
/// for, as it flows one way only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retransmission {
    /// It is sent for the first time.
    No,
    /// A timer has expired, and this is the first segment since.
    Timeout,
    /// A recovery begins with it (RFC 5681, section 3.2, step 3).
    FastRetransmit,
    /// It follows one of these.
    Other,
}

impl Retransmission {
    const ALL: [Self; 4] = [Self::No, Self::Timeout, Self::FastRetransmit, Self::Other];
    const BITS: Control = Control::URG.with(Control::ECE);

    /// The bits that say so.
    pub(super) const fn mark(self) -> Control {
        match self {
            Self::No => Control(0),
            Self::Timeout => Control::URG,
            Self::FastRetransmit => Control::ECE,
            Self::Other => Self::BITS,
        }
    }

    /// What `control` says.
    pub(super) fn of(control: Control) -> Self {
        let bits = control.0 & Self::BITS.0;
        Self::ALL.into_iter().find(|kind| kind.mark().0 == bits).unwrap_or(Self::No)
    }
}

/// A segment that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrived {
    /// The message that it is of.
    msg: MsgKey,
    /// Its connection, of those from that host.
    conn: u32,
    /// Its sequence number, as on the wire.
    seq: u32,
}

/// The latest segments that were new to this host and came by a fast retransmit.
#[derive(Clone, Debug, Default)]
pub(crate) struct FastRetransmits(VecDeque<Arrived>);

impl FastRetransmits {
    /// A segment of connection `conn` has arrived, which is `new` or was here already. In the
    /// second case what it proves needless is counted.
    pub(crate) fn arrived(
        &mut self,
        conn: u32,
        header: &Repr,
        pkt: &Packet,
        new: bool,
        fx: &mut Effects,
    ) {
        let msg = MsgKey { src: pkt.src, id: pkt.span.msg };
        let segment = Arrived { msg, conn, seq: header.seq };
        let kind = Retransmission::of(header.control);
        if new {
            self.on_new(segment, kind);
        } else {
            self.on_duplicate(segment, kind, fx);
        }
    }

    fn on_new(&mut self, segment: Arrived, kind: Retransmission) {
        if kind == Retransmission::FastRetransmit {
            if self.0.len() == REMEMBERED {
                self.0.pop_front();
            }
            self.0.push_back(segment);
        }
    }

    fn on_duplicate(&mut self, segment: Arrived, kind: Retransmission, fx: &mut Effects) {
        fx.count(Stat::Duplicate);
        match kind {
            Retransmission::Timeout => fx.count(Stat::SpuriousTimeout),
            Retransmission::FastRetransmit => {
                fx.count_received(Stat::SpuriousFastRetransmit, segment.msg);
            }
            Retransmission::No if self.forget(segment) => {
                fx.count_received(Stat::SpuriousFastRetransmit, segment.msg);
            }
            Retransmission::No | Retransmission::Other => {}
        }
    }

    /// Whether it had come by a fast retransmit: this is its original, which that has overtaken.
    fn forget(&mut self, segment: Arrived) -> bool {
        let at = self.0.iter().rposition(|&known| known == segment);
        at.is_some_and(|at| self.0.remove(at).is_some())
    }
}

#[cfg(test)]
mod tests {
    use endpoint::Effect;
    use units::{HostId, MsgId};

    use super::*;

    const MSG: MsgKey = MsgKey { src: HostId(1), id: MsgId(2) };
    const SEGMENT: Arrived = Arrived { msg: MSG, conn: 3, seq: 4 };

    /// What the duplicate counts beside itself.
    fn counted(
        fast_retransmits: &mut FastRetransmits,
        segment: Arrived,
        kind: Retransmission,
    ) -> Vec<Effect> {
        let mut fx = Effects::new();
        fast_retransmits.on_duplicate(segment, kind, &mut fx);
        assert_eq!(fx.as_slice()[0], Effect::Count(Stat::Duplicate));
        fx.as_slice()[1..].to_vec()
    }

    const SPURIOUS: [Effect; 1] = [Effect::CountReceived(Stat::SpuriousFastRetransmit, MSG)];

    #[test]
    fn a_header_says_why_beside_all_else() {
        for kind in Retransmission::ALL {
            let others = Control::ACK.with(Control::CWR).with(Control::PSH);
            assert_eq!(Retransmission::of(others.with(kind.mark())), kind);
        }
    }

    #[test]
    fn either_copy_may_come_second_and_counts_once() {
        let mut fast_retransmits = FastRetransmits::default();
        fast_retransmits.on_new(SEGMENT, Retransmission::No);
        assert_eq!(
            counted(&mut fast_retransmits, SEGMENT, Retransmission::FastRetransmit),
            SPURIOUS
        );
        assert_eq!(counted(&mut fast_retransmits, SEGMENT, Retransmission::Other), []);

        fast_retransmits.on_new(SEGMENT, Retransmission::FastRetransmit);
        assert_eq!(
            counted(&mut fast_retransmits, SEGMENT, Retransmission::Other),
            [],
            "the rescue, not the original"
        );
        assert_eq!(counted(&mut fast_retransmits, SEGMENT, Retransmission::No), SPURIOUS);
        assert_eq!(
            counted(&mut fast_retransmits, SEGMENT, Retransmission::No),
            [],
            "a copy that the network made"
        );
    }

    /// Two fast retransmits of one segment are two, each spurious by its own duplicate.
    #[test]
    fn a_second_fast_retransmit_counts_for_itself() {
        let mut fast_retransmits = FastRetransmits::default();
        fast_retransmits.on_new(SEGMENT, Retransmission::FastRetransmit);
        assert_eq!(
            counted(&mut fast_retransmits, SEGMENT, Retransmission::FastRetransmit),
            SPURIOUS
        );
        assert_eq!(counted(&mut fast_retransmits, SEGMENT, Retransmission::No), SPURIOUS);
    }

    #[test]
    fn memory_is_bounded() {
        let mut fast_retransmits = FastRetransmits::default();
        for seq in 0..=REMEMBERED as u32 {
            fast_retransmits.on_new(Arrived { seq, ..SEGMENT }, Retransmission::FastRetransmit);
        }
        assert_eq!(fast_retransmits.0.len(), REMEMBERED);
        assert_eq!(
            counted(&mut fast_retransmits, Arrived { seq: 0, ..SEGMENT }, Retransmission::No),
            []
        );
        assert_eq!(
            counted(&mut fast_retransmits, Arrived { seq: 1, ..SEGMENT }, Retransmission::No),
            SPURIOUS
        );
    }
}
