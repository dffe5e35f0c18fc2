//! What a job asks of the network and of its ranks, without playing it.

use std::collections::BTreeMap;

use units::{Dur, HostId};

use crate::collective::{Act, Algorithm};
use crate::graph::{GroupId, Instance, InstanceId, Kind, Op, Rank};
use crate::job::Job;

/// Bytes and messages from one host to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Payload.
    pub bytes: u64,
    /// How many messages.
    pub messages: u64,
    /// The longest of them, bytes.
    pub longest: u64,
}

/// By hosts, from and to, as the placement numbers them.
type Volumes = BTreeMap<(u32, u32), Volume>;

impl Volume {
    fn add(&mut self, bytes: u64) {
        // As it is carried.
        let bytes = bytes.max(1);
        self.bytes = self.bytes.saturating_add(bytes);
        self.messages += 1;
        self.longest = self.longest.max(bytes);
    }

    fn join(&mut self, other: Self, times: u64) {
        self.bytes = self.bytes.saturating_add(other.bytes.saturating_mul(times));
        self.messages = self.messages.saturating_add(other.messages.saturating_mul(times));
        self.longest = self.longest.max(other.longest);
    }
}

impl Job {
    /// What each host sends each other over the network, by source and destination.
    #[must_use]
    pub fn volumes(&self) -> Vec<(HostId, HostId, Volume)> {
        let mut all = self.messages();
        for (instance, times) in self.kinds_of_collectives() {
            for (pair, volume) in self.of_collective(instance) {
                all.entry(pair).or_default().join(volume, times);
            }
        }
        let hosts = self.placement().hosts();
        let named = |((from, to), volume): ((u32, u32), Volume)| {
            (hosts[from as usize], hosts[to as usize], volume)
        };
        all.into_iter().map(named).collect()
    }

    /// How long it takes at least: the stream that works longest, or the longest chain of work, on
    /// the slowest GPU.
    #[must_use]
    pub fn longest_work(&self) -> Dur {
        let of_rank = |rank| {
            let mut streams: BTreeMap<u8, Dur> = BTreeMap::new();
            for task in self.graph().tasks(rank).iter() {
                if let Kind::Compute { dur, stream } = task.kind {
                    *streams.entry(stream).or_default() += dur;
                }
            }
            streams.into_values().max().unwrap_or_default()
        };
        let ranks = (0..self.graph().ranks()).map(Rank);
        let longest = ranks.map(of_rank).max().unwrap_or_default();
        self.slowest(longest.max(self.graph().longest_chain()))
    }

    /// About how much memory it takes while it is played, and with its results, bytes: tasks, how
    /// far each has come, what is done for the largest collective of each group, and two reports
    /// for each collective and each step of a rank.
    #[must_use]
    pub fn memory(&self) -> u64 {
        /// Of a task at its player, of a move, and of a report and its row.
        const OF_TASK: u64 = 5;
        const OF_MOVE: u64 = 80;
        const OF_ROW: u64 = 350;
        /// Of a task that is told.
        const OF_TOLD: u64 = 130;
        let graph = self.graph();
        let mut moves: BTreeMap<usize, u64> = BTreeMap::new();
        for (instance, _) in self.kinds_of_collectives() {
            let members = graph.members(instance.group).len() as u64;
            let of_first = self.moves(instance, 0).map_or(0, |moves| moves.as_slice().len());
            let all = moves.entry(instance.group.index()).or_default();
            *all = (*all).max(members * of_first as u64);
        }
        let joined = (0..graph.instances()).map(InstanceId);
        let joined = joined.map(|id| graph.members(graph.instance(id).group).len() as u64);
        let steps = (0..graph.steps()).map(|step| u64::from(self.ranks_of_step(step)));
        let rows: u64 = joined.chain(steps).sum();
        graph.memory()
            + graph.len() * OF_TASK
            + moves.values().sum::<u64>() * OF_MOVE
            + rows * OF_ROW
            + if self.config().tell_tasks { graph.len() * OF_TOLD } else { 0 }
    }

    /// How long a collective takes on an idle network once all its ranks have begun it, if a closed
    /// form says so (specs/ai-jobs.md#3): on nodes of their own, and not cut. `message` says how
    /// long a message takes alone.
    #[must_use]
    pub fn ideal(
        &self,
        instance: Instance,
        message: &dyn Fn(HostId, HostId, u64) -> Dur,
    ) -> Option<Dur> {
        let hosts: Vec<HostId> = self
            .graph()
            .members(instance.group)
            .iter()
            .map(|&rank| self.placement().host(rank))
            .collect();
        let (count, bytes) = (hosts.len(), instance.bytes);
        let cut = self.config().cut;
        let is_whole = cut.channels == 1 && cut.chunk >= bytes;
        if count < 2 || !is_whole || !self.has_own_nodes(instance.group) {
            return None;
        }
        let (n, part) = (count as u64, bytes.div_ceil(count as u64));
        let ring = |rounds: usize| {
            let next = |me: usize| message(hosts[me], hosts[(me + 1) % count], part);
            longest_chain(&(0..count).map(next).collect::<Vec<_>>(), rounds)
        };
        // The slowest pair of partners.
        let exchange = |distance: usize, bytes: u64| {
            let each = (0..count).map(|me| message(hosts[me], hosts[me ^ distance], bytes));
            each.max().unwrap_or_default()
        };
        // All parts for others, one after the other, the last one as far as any is.
        let direct = || {
            let pairs = (0..count).flat_map(|a| (1..count).map(move |d| (a, (a + d) % count)));
            let times = pairs.map(|(a, b)| message(hosts[a], hosts[b], part * (n - 1)));
            times.max().unwrap_or_default()
        };
        match (instance.op, self.algorithm(instance)) {
            (Op::AllToAll, _) => Some(direct()),
            (Op::AllReduce, Algorithm::Direct) => Some(direct() * 2),
            (Op::AllGather | Op::ReduceScatter, Algorithm::Direct) => Some(direct()),
            (Op::AllReduce, Algorithm::Ring) => Some(ring(2 * (count - 1))),
            (
                Op::AllGather | Op::ReduceScatter,
                Algorithm::Ring | Algorithm::Tree | Algorithm::Hierarchical,
            ) => Some(ring(count - 1)),
            (Op::AllReduce | Op::AllGather | Op::ReduceScatter, Algorithm::HalvingDoubling)
                if count.is_power_of_two() =>
            {
                let levels = 0..count.ilog2();
                let halving = levels.fold(Dur::ZERO, |all, level| {
                    all + exchange(1 << level, part.saturating_mul(1 << level))
                });
                Some(if instance.op == Op::AllReduce { halving * 2 } else { halving })
            }
            _ => None,
        }
    }

    /// Single messages.
    fn messages(&self) -> Volumes {
        let mut all = Volumes::new();
        for rank in (0..self.graph().ranks()).map(Rank) {
            for task in self.graph().tasks(rank).iter() {
                if let Kind::Send { to, bytes, .. } = task.kind {
                    let pair = (self.placement().seat(rank).0, self.placement().seat(to).0);
                    if self.crosses(pair) {
                        all.entry(pair).or_default().add(bytes);
                    }
                }
            }
        }
        all
    }

    /// The collectives that differ, each with how often it comes.
    fn kinds_of_collectives(&self) -> Vec<(Instance, u64)> {
        let mut kinds = BTreeMap::new();
        for id in (0..self.graph().instances()).map(InstanceId) {
            let instance = self.graph().instance(id);
            let root = if let Op::Broadcast { root } = instance.op { Some(root) } else { None };
            let key = (instance.group.index(), instance.bytes, instance.op.name(), root);
            kinds.entry(key).or_insert((instance, 0_u64)).1 += 1;
        }
        kinds.into_values().collect()
    }

    fn of_collective(&self, instance: Instance) -> Volumes {
        let members = self.graph().members(instance.group);
        let host = |member: u32| self.placement().seat(members[member as usize]).0;
        let mut all = Volumes::new();
        for me in 0..members.len() as u32 {
            let Ok(moves) = self.moves(instance, me) else { continue };
            for m in moves.as_slice().iter().filter(|m| m.act == Act::Send) {
                let pair = (host(me), host(m.peer));
                if self.crosses(pair) {
                    all.entry(pair).or_default().add(m.bytes);
                }
            }
        }
        all
    }

    /// Whether what goes from one host to another crosses the network.
    fn crosses(&self, (from, to): (u32, u32)) -> bool {
        self.placement().node(from) != self.placement().node(to)
    }

    fn has_own_nodes(&self, group: GroupId) -> bool {
        let (ranks, nodes) = self.shape(group);
        ranks == nodes
    }
}

/// The longest of all chains of `rounds` messages along a ring, each of which waits for the one
/// before: `times` are those of its links.
fn longest_chain(times: &[Dur], rounds: usize) -> Dur {
    let lap = times.iter().fold(Dur::ZERO, |all, &time| all + time);
    let rest = |first: usize| {
        let links = times.iter().cycle().skip(first).take(rounds % times.len());
        links.fold(Dur::ZERO, |all, &time| all + time)
    };
    let rest = (0..times.len()).map(rest).max().unwrap_or_default();
    lap * (rounds / times.len()) as u64 + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Cut;
    use crate::job::{Choice, Config, ScaleUp, Straggler};
    use crate::model::{Model, Repeated};
    use crate::placement::Placement;
    use units::{Rate, Time};

    fn job(graph: crate::graph::TaskGraph, per_host: u32, algorithm: Algorithm) -> Job {
        let hosts: Vec<HostId> = (0..64).map(HostId).collect();
        let placement = Placement::packed(graph.ranks(), &hosts, per_host).unwrap();
        let config = Config {
            start: Time::ZERO,
            choice: Choice::Fixed(algorithm),
            cut: Cut::WHOLE,
            scale_up: ScaleUp { rate: Rate(1), latency: Dur::ZERO },
            straggler: Straggler::default(),
            channel: 0,
            prio: 0,
            tell_tasks: false,
        };
        Job::new(graph, placement, config).unwrap()
    }

    fn repeated(op: Op, bytes: u64) -> Repeated {
        Repeated { ranks: 4, op, bytes, compute: Dur(7), steps: 3 }
    }

    #[test]
    fn volumes_count_what_crosses_the_network() {
        let ring = job(repeated(Op::AllReduce, 4_000).graph().unwrap(), 1, Algorithm::Ring);
        let volume = Volume { bytes: 18_000, messages: 18, longest: 1_000 };
        let next = |host: u32| (HostId(host), HostId((host + 1) % 4), volume);
        assert_eq!(ring.volumes(), [next(0), next(1), next(2), next(3)]);
        assert_eq!(ring.longest_work(), Dur(21));
        let inside = job(repeated(Op::AllReduce, 4_000).graph().unwrap(), 4, Algorithm::Ring);
        assert!(inside.volumes().is_empty());
        // Stages on two hosts: two microbatches there and back in each of two steps.
        let model = Model {
            tensor: 1,
            data: 1,
            pipeline: 2,
            experts: 1,
            layers: 1,
            microbatches: 2,
            forward: Dur(1),
            backward: Dur(1),
            activations: 50,
            gradients: 1,
            dispatch: 1,
            overlap: false,
            steps: 2,
        };
        let stages = job(model.graph().unwrap(), 1, Algorithm::Ring).volumes();
        let volume = Volume { bytes: 200, messages: 4, longest: 50 };
        assert_eq!(stages, [(HostId(0), HostId(1), volume), (HostId(1), HostId(0), volume)]);
    }

    #[test]
    fn closed_forms_by_hand() {
        // From the last host on a message takes 10 longer.
        let message =
            |from: HostId, _: HostId, bytes| Dur(bytes + if from.0 == 3 { 110 } else { 100 });
        let ideal = |op, algorithm, per_host| {
            let job = job(repeated(op, 4_000).graph().unwrap(), per_host, algorithm);
            job.ideal(job.graph().instance(InstanceId(0)), &message)
        };
        // Six rounds: a lap of 4410 and the longest half lap.
        assert_eq!(ideal(Op::AllReduce, Algorithm::Ring, 1), Some(Dur(4_410 + 2_210)));
        assert_eq!(ideal(Op::AllGather, Algorithm::Ring, 1), Some(Dur(3_310)));
        let halving = Dur(1_110 + 2_110);
        assert_eq!(ideal(Op::ReduceScatter, Algorithm::HalvingDoubling, 1), Some(halving));
        assert_eq!(ideal(Op::AllReduce, Algorithm::HalvingDoubling, 1), Some(halving * 2));
        assert_eq!(ideal(Op::AllToAll, Algorithm::Ring, 1), Some(Dur(3_110)));
        assert_eq!(ideal(Op::AllReduce, Algorithm::Direct, 1), Some(Dur(6_220)));
        assert_eq!(ideal(Op::AllReduce, Algorithm::Tree, 1), None, "no form");
        assert_eq!(ideal(Op::AllReduce, Algorithm::Ring, 2), None, "two on a host");
    }
}
