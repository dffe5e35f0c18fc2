//! What a rank sends and receives for a collective: a file per algorithm.
//!
//! Members of the group are numbered from 0 in its order. Every rank works out its own moves
//! alone; the n-th send of one member to another is for the n-th receive there.

mod direct;
mod halving;
mod hierarchical;
mod moves;
pub mod nccl;
mod ring;
mod tree;

use endpoint::UNBOUNDED;

use crate::graph::Op;

use moves::Part;
pub use moves::{Act, Move, Moves};

/// How a collective is carried out (specs/ai-jobs.md#1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each member sends to the next one.
    Ring,
    /// A double binary tree.
    Tree,
    /// Partners at doubling distances: recursive halving, then recursive doubling.
    HalvingDoubling,
    /// Rings within hosts, and rings between hosts over those who have the same place there.
    Hierarchical,
    /// Each member sends to every other at once.
    Direct,
}

/// How collectives are cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Channels among which the vector is divided; they do not wait for each other.
    pub channels: u32,
    /// No message is longer, bytes; [`UNBOUNDED`]: as the algorithm has it.
    pub chunk: u64,
    /// The most messages that a channel has unacknowledged at one member.
    pub in_flight: u32,
}

impl Cut {
    /// One channel, and messages as long as the algorithm has them.
    pub const WHOLE: Self = Self { channels: 1, chunk: UNBOUNDED, in_flight: u32::MAX };

    /// Into how many messages `bytes` are cut, at least one.
    fn pieces(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.chunk.max(1)).max(1)
    }
}

/// Why an algorithm does not suit a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuited {
    /// Halving and doubling without a power of two.
    #[error("halving-doubling {0} needs a power of two of ranks, and the group has {1}")]
    NoPowerOfTwo(&'static str, usize),
    /// Hosts with different numbers of the group's ranks.
    #[error(
        "a hierarchical all-reduce needs equally many ranks of its group on each host: there are \
         {0} and {1}"
    )]
    Uneven(usize, usize),
    /// More messages than one member may send another in one collective.
    #[error(
        "chunks of {chunk} bytes cut {bytes} bytes into too many messages: at most {MESSAGES_MAX}"
    )]
    TooManyChunks {
        /// The chunk.
        chunk: u64,
        /// What is cut.
        bytes: u64,
    },
}

/// No member sends another more messages in one collective.
pub const MESSAGES_MAX: u64 = 1 << 22;

/// The moves of one member, which hosts it and the others are on, and how messages are cut.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Which member it is.
    pub me: usize,
    /// The host of each member; equal numbers are one host.
    pub hosts: &'a [u32],
    /// How messages are cut.
    pub cut: Cut,
}

impl Member<'_> {
    /// What this member does for `op` with `bytes`.
    ///
    /// `root` is the member that has what is broadcast.
    ///
    /// # Errors
    /// An algorithm that does not suit the group.
    pub fn moves(
        &self,
        algorithm: Algorithm,
        op: Op,
        root: usize,
        bytes: u64,
    ) -> Result<Moves, Unsuited> {
        let Cut { channels, chunk, in_flight } = self.cut;
        let count = self.hosts.len();
        // A ring has the most: one message of each of its parts and pieces, there and back.
        let pieces = u128::from(self.cut.pieces(bytes));
        if 4 * (pieces + u128::from(channels) * (count as u128 + 1)) > u128::from(MESSAGES_MAX) {
            return Err(Unsuited::TooManyChunks { chunk, bytes });
        }
        check(algorithm, op, self.hosts)?;
        let mut moves = Moves::new(in_flight);
        if count < 2 {
            return Ok(moves);
        }
        let channels = if op == Op::Barrier { 1 } else { channels };
        for channel in 0..channels {
            moves.on_channel(channel);
            let whole = Part { offset: 0, bytes }.nth(channel.into(), channels.into());
            self.channel(&mut moves, algorithm, (op, root), whole);
        }
        Ok(moves)
    }

    /// The moves of one channel, which has `whole` of the vector.
    fn channel(
        &self,
        moves: &mut Moves,
        algorithm: Algorithm,
        (op, root): (Op, usize),
        whole: Part,
    ) {
        let Self { me, hosts, cut } = *self;
        let count = hosts.len();
        let ring: Vec<usize> = (0..count).collect();
        let ring = ring::Ring { members: &ring, me, cut };
        match (op, algorithm) {
            (Op::AllReduce, Algorithm::Ring) => {
                ring.all_reduce(moves, whole, None);
            }
            (Op::AllReduce, Algorithm::Tree) => tree::all_reduce(moves, me, count, whole, cut),
            (Op::AllReduce, Algorithm::HalvingDoubling) => {
                halving::all_reduce(moves, me, count, whole, cut);
            }
            (Op::AllReduce, Algorithm::Hierarchical) => {
                hierarchical::all_reduce(moves, me, hosts, whole, cut);
            }
            (Op::AllReduce, Algorithm::Direct) => direct::all_reduce(moves, me, count, whole, cut),
            (Op::AllGather, Algorithm::HalvingDoubling) => {
                halving::all_gather(moves, me, count, whole, cut);
            }
            (Op::AllGather, Algorithm::Direct) => {
                direct::all_gather(moves, me, count, whole, (cut, None));
            }
            (Op::AllGather, _) => {
                ring.all_gather(moves, whole, &[]);
            }
            (Op::ReduceScatter, Algorithm::HalvingDoubling) => {
                halving::reduce_scatter(moves, me, count, whole, cut);
            }
            (Op::ReduceScatter, Algorithm::Direct) => {
                direct::reduce_scatter(moves, me, count, whole, cut);
            }
            (Op::ReduceScatter, _) => {
                ring.reduce_scatter(moves, whole, None);
            }
            (Op::AllToAll, _) => direct::all_to_all(moves, me, count, whole, cut),
            (Op::Broadcast { .. }, Algorithm::Tree) => {
                tree::broadcast(moves, me, count, root, whole, cut);
            }
            (Op::Broadcast { .. }, _) => ring.broadcast(moves, root, whole),
            (Op::Barrier, _) => halving::barrier(moves, me, count),
        }
    }
}

/// Whether `algorithm` suits a group with members on `hosts`.
fn check(algorithm: Algorithm, op: Op, hosts: &[u32]) -> Result<(), Unsuited> {
    let count = hosts.len();
    match (algorithm, op) {
        (Algorithm::HalvingDoubling, Op::AllGather | Op::ReduceScatter)
            if !count.is_power_of_two() =>
        {
            Err(Unsuited::NoPowerOfTwo(op.name(), count))
        }
        (Algorithm::Hierarchical, Op::AllReduce) => hierarchical::check(hosts),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
