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

    /// How long the rank computes that computes longest.
    #[must_use]
    pub fn longest_work(&self) -> Dur {
        let of_rank = |rank| {
            self.graph().tasks(rank).iter().fold(Dur::ZERO, |all, task| match task.kind {
                Kind::Compute { dur, .. } => all + dur,
                _ => all,
            })
        };
        (0..self.graph().ranks()).map(Rank).map(of_rank).max().unwrap_or_default()
    }

    /// How long a collective takes on an idle network once all its ranks have begun it, if a closed
    /// form says so (specs/ai-jobs.md#3): on hosts of their own, and not cut. `message` says how
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
        if count < 2 || !is_whole || !self.has_own_hosts(instance.group) {
            return None;
        }
        // All members at once, each with the one `distance` after it.
        let round = |distance: usize, bytes: u64| {
            let each =
                (0..count).map(|me| message(hosts[me], hosts[(me + distance) % count], bytes));
            each.max().unwrap_or_default()
        };
        let (n, part) = (count as u64, bytes.div_ceil(count as u64));
        let ring = round(1, part) * (n - 1);
        // All parts for others, one after the other.
        let direct =
            || (1..count).map(|distance| round(distance, part * (n - 1))).max().unwrap_or_default();
        match (instance.op, self.algorithm(instance)) {
            (Op::AllToAll, _) => Some(direct()),
            (Op::AllReduce, Algorithm::Direct) => Some(direct() * 2),
            (Op::AllGather | Op::ReduceScatter, Algorithm::Direct) => Some(direct()),
            (Op::AllReduce, Algorithm::Ring) => Some(ring * 2),
            (
                Op::AllGather | Op::ReduceScatter,
                Algorithm::Ring | Algorithm::Tree | Algorithm::Hierarchical,
            ) => Some(ring),
            (Op::AllReduce | Op::AllGather | Op::ReduceScatter, Algorithm::HalvingDoubling)
                if count.is_power_of_two() =>
            {
                let levels = 0..count.ilog2();
                // Partners exchange what they have: the distance is the same both ways round.
                let halving =
                    levels.fold(Dur::ZERO, |all, level| all + round(1 << level, part << level));
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
                    if pair.0 != pair.1 {
                        all.entry(pair).or_default().add(bytes);
                    }
                }
            }
        }
        all
    }

    /// The collectives that differ, each with how often it comes.
    fn kinds_of_collectives(&self) -> Vec<(Instance, u64)> {
        let mut kinds: BTreeMap<(usize, u64, &str, Option<Rank>), (Instance, u64)> =
            BTreeMap::new();
        for id in (0..self.graph().instances()).map(InstanceId) {
            let instance = self.graph().instance(id);
            let root = if let Op::Broadcast { root } = instance.op { Some(root) } else { None };
            let key = (instance.group.index(), instance.bytes, instance.op.name(), root);
            kinds.entry(key).or_insert((instance, 0)).1 += 1;
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
                if pair.0 != pair.1 {
                    all.entry(pair).or_default().add(m.bytes);
                }
            }
        }
        all
    }

    fn has_own_hosts(&self, group: GroupId) -> bool {
        let (ranks, hosts) = self.shape(group);
        ranks == hosts
    }
}
