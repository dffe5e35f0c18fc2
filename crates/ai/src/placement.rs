//! [`Placement`]: which host each rank is on.

use std::collections::BTreeMap;

use units::HostId;

use crate::graph::Rank;

/// The most ranks of a job on one host.
pub const RANKS_PER_HOST_MAX: usize = 256;

/// Why ranks cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Not enough hosts.
    #[error("{ranks} ranks, {per_host} on each host, need {needed} hosts, and there are {hosts}")]
    TooFewHosts {
        /// The ranks.
        ranks: u32,
        /// How many a host may have.
        per_host: u32,
        /// How many hosts that takes.
        needed: u32,
        /// How many there are.
        hosts: usize,
    },
    /// No ranks per host, or too many.
    #[error("{0} ranks on a host: it can have 1 to {RANKS_PER_HOST_MAX}")]
    PerHost(u32),
    /// A host is named for more ranks than it may have.
    #[error("rank {rank} is one too many on {host}, which has {per_host}")]
    Crowded {
        /// The first rank without a place.
        rank: u32,
        /// Its host.
        host: HostId,
        /// How many a host may have.
        per_host: u32,
    },
}

/// The hosts of a job and the ranks on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    hosts: Vec<HostId>,
    ranks: Vec<Vec<Rank>>,
    /// By rank: the place of its host above, and its own place there.
    seats: Vec<(u32, u8)>,
    /// How many consecutive hosts are the NICs of one node.
    nics: u32,
}

impl Placement {
    /// Ranks 0, 1, ... fill one host of `hosts` after the other, `per_host` on each.
    ///
    /// # Errors
    /// Too few hosts, or no possible number on each.
    pub fn packed(ranks: u32, hosts: &[HostId], per_host: u32) -> Result<Self, PlacementError> {
        Self::check(ranks, hosts, per_host)?;
        Ok(Self::of(ranks, hosts, |rank| rank / per_host))
    }

    /// Ranks 0, 1, ... go to one host of `hosts` after the other, and again from the first one on
    /// when each has one: on as few hosts as `per_host` on each allow.
    ///
    /// # Errors
    /// As [`Placement::packed`].
    pub fn spread(ranks: u32, hosts: &[HostId], per_host: u32) -> Result<Self, PlacementError> {
        let needed = Self::check(ranks, hosts, per_host)?;
        Ok(Self::of(ranks, hosts, |rank| rank % needed))
    }

    /// Rank 0 goes to the first host of `of_rank`, rank 1 to the second, and so on.
    ///
    /// # Errors
    /// More than `per_host` ranks on a host, or no possible number on each.
    pub fn listed(of_rank: &[HostId], per_host: u32) -> Result<Self, PlacementError> {
        let ranks = of_rank.len() as u32;
        Self::check(ranks, of_rank, per_host)?;
        let (mut hosts, mut places) = (Vec::new(), BTreeMap::new());
        let mut counts: Vec<u32> = Vec::new();
        for (rank, &host) in (0..).zip(of_rank) {
            let place = *places.entry(host).or_insert(hosts.len());
            if place == hosts.len() {
                hosts.push(host);
                counts.push(0);
            }
            counts[place] += 1;
            if counts[place] > per_host {
                return Err(PlacementError::Crowded { rank, host, per_host });
            }
        }
        Ok(Self::of(ranks, &hosts, |rank| places[&of_rank[rank as usize]] as u32))
    }

    /// How many hosts that takes.
    fn check(ranks: u32, hosts: &[HostId], per_host: u32) -> Result<u32, PlacementError> {
        if per_host == 0 || per_host as usize > RANKS_PER_HOST_MAX {
            return Err(PlacementError::PerHost(per_host));
        }
        let (needed, hosts) = (ranks.div_ceil(per_host), hosts.len());
        if needed as usize > hosts {
            return Err(PlacementError::TooFewHosts { ranks, per_host, needed, hosts });
        }
        Ok(needed)
    }

    fn of(ranks: u32, hosts: &[HostId], place: impl Fn(u32) -> u32) -> Self {
        let mut all = Self { hosts: Vec::new(), ranks: Vec::new(), seats: Vec::new(), nics: 1 };
        for rank in 0..ranks {
            let host = place(rank);
            while all.hosts.len() <= host as usize {
                all.hosts.push(hosts[all.hosts.len()]);
                all.ranks.push(Vec::new());
            }
            let there = &mut all.ranks[host as usize];
            all.seats.push((host, there.len() as u8));
            there.push(Rank(rank));
        }
        all
    }

    /// The same placement where each `nics` hosts after each other, at least 1, are the NICs of one
    /// node, whose ranks meet in one scale-up domain.
    #[must_use]
    pub fn with_nics(self, nics: u32) -> Self {
        Self { nics: nics.max(1), ..self }
    }

    /// How many hosts are one node.
    #[must_use]
    pub fn nics(&self) -> u32 {
        self.nics
    }

    /// The node of host number `host` of [`Placement::hosts`].
    #[must_use]
    pub fn node(&self, host: u32) -> u32 {
        host / self.nics
    }

    /// The hosts that have ranks.
    #[must_use]
    pub fn hosts(&self) -> &[HostId] {
        &self.hosts
    }

    /// The ranks on host number `host` of [`Placement::hosts`].
    #[must_use]
    pub fn ranks_of(&self, host: u32) -> &[Rank] {
        &self.ranks[host as usize]
    }

    /// The host of `rank`.
    #[must_use]
    pub fn host(&self, rank: Rank) -> HostId {
        self.hosts[self.seat(rank).0 as usize]
    }

    /// How many ranks it places.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.seats.len() as u32
    }

    /// Whether it places none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// The place of the host of `rank` among [`Placement::hosts`], and its own place there.
    pub(crate) fn seat(&self, rank: Rank) -> (u32, u8) {
        self.seats[rank.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(placement: &Placement) -> Vec<(u32, u8)> {
        (0..placement.len()).map(|rank| placement.seat(Rank(rank))).collect()
    }

    #[test]
    fn packed_fills_hosts_and_spread_takes_turns() {
        let hosts: Vec<HostId> = [7, 3, 9].map(HostId).to_vec();
        let packed = Placement::packed(5, &hosts, 2).unwrap();
        assert_eq!(seats(&packed), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]);
        let spread = Placement::spread(5, &hosts, 2).unwrap();
        assert_eq!(seats(&spread), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]);
        assert_eq!(spread.ranks_of(0), [Rank(0), Rank(3)]);
        assert_eq!((spread.host(Rank(4)), spread.len()), (HostId(3), 5));
        let few = Placement::spread(4, &hosts, 2).unwrap();
        assert_eq!(few.hosts(), [HostId(7), HostId(3)], "as few hosts as suffice");
    }

    #[test]
    fn listed_takes_hosts_as_they_come() {
        let hosts = [7, 3, 7, 9].map(HostId);
        let listed = Placement::listed(&hosts, 2).unwrap();
        assert_eq!(seats(&listed), [(0, 0), (1, 0), (0, 1), (2, 0)]);
        assert_eq!(listed.hosts(), [7, 3, 9].map(HostId));
        let crowded = Placement::listed(&hosts, 1).unwrap_err().to_string();
        assert_eq!(crowded, "rank 2 is one too many on host 7, which has 1");
    }

    #[test]
    fn what_does_not_fit() {
        let hosts: Vec<HostId> = (0..3).map(HostId).collect();
        assert_eq!(
            Placement::packed(9, &hosts, 2).unwrap_err().to_string(),
            "9 ranks, 2 on each host, need 5 hosts, and there are 3"
        );
        assert!(Placement::packed(6, &hosts, 2).is_ok());
        for per_host in [0, 257] {
            let error = Placement::spread(1, &hosts, per_host).unwrap_err();
            assert_eq!(error, PlacementError::PerHost(per_host));
        }
    }
}
