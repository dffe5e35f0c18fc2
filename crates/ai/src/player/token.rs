//! What a message of a job says: for which of its receiver's ranks it is, and for which task; and
//! what players of one node tell each other.

use crate::graph::InstanceId;

/// The most collectives of a job.
pub(crate) const INSTANCES_MAX: u32 = 1 << 25;

const SEAT_BITS: u32 = 8;
const NTH_BITS: u32 = 22;
const INSTANCE_BITS: u32 = 25;
const COLLECTIVE: u64 = 1 << 63;
const ACK: u64 = 1 << 62;

const _: () = assert!(1 + 2 * SEAT_BITS + NTH_BITS + INSTANCE_BITS == 64);
const _: () = assert!(1 << NTH_BITS == crate::collective::MESSAGES_MAX);
const _: () = assert!(1 << INSTANCE_BITS == INSTANCES_MAX);
const _: () = assert!(1 << SEAT_BITS == crate::placement::RANKS_PER_HOST_MAX);

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The receive `index` of the rank on seat `to`.
    Recv { to: u8, index: u32 },
    /// The `nth` message of a collective from the rank on seat `from` of the sending host to that
    /// on seat `to`.
    Part { to: u8, from: u8, instance: InstanceId, nth: u32 },
    /// Within a node: the oldest message that the rank on seat `to` has sent to that on seat
    /// `from` is there.
    Ack { to: u8, from: u8 },
}

impl Token {
    pub(crate) fn encode(self) -> u64 {
        match self {
            Self::Recv { to, index } => u64::from(to) << 32 | u64::from(index),
            Self::Part { to, from, instance, nth } => {
                let seats = u64::from(to) << SEAT_BITS | u64::from(from);
                let what = u64::from(instance.0) << NTH_BITS | u64::from(nth);
                COLLECTIVE | seats << (INSTANCE_BITS + NTH_BITS) | what
            }
            Self::Ack { to, from } => ACK | u64::from(to) << SEAT_BITS | u64::from(from),
        }
    }

    pub(crate) fn decode(token: u64) -> Self {
        let bits = |shift: u32, bits: u32| (token >> shift) & ((1 << bits) - 1);
        if token & (COLLECTIVE | ACK) == ACK {
            return Self::Ack { to: bits(SEAT_BITS, SEAT_BITS) as u8, from: token as u8 };
        }
        if token & COLLECTIVE == 0 {
            return Self::Recv { to: bits(32, SEAT_BITS) as u8, index: token as u32 };
        }
        let seats = INSTANCE_BITS + NTH_BITS;
        Self::Part {
            to: bits(seats + SEAT_BITS, SEAT_BITS) as u8,
            from: bits(seats, SEAT_BITS) as u8,
            instance: InstanceId(bits(NTH_BITS, INSTANCE_BITS) as u32),
            nth: bits(0, NTH_BITS) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_said() {
        for (to, from) in [(0, 0), (255, 1), (7, 255)] {
            let ack = Token::Ack { to, from };
            assert_eq!(Token::decode(ack.encode()), ack);
            for (instance, nth) in [(0, 0), (INSTANCES_MAX - 1, 3), (5, (1 << NTH_BITS) - 1)] {
                let part = Token::Part { to, from, instance: InstanceId(instance), nth };
                assert_eq!(Token::decode(part.encode()), part);
                let recv = Token::Recv { to, index: u32::MAX - nth };
                assert_eq!(Token::decode(recv.encode()), recv);
            }
        }
    }
}
