//! All-reduce in two levels (specs/ai-jobs.md#1.4): a reduce-scatter within each host, an
//! all-reduce of each part between hosts, an all-gather within each host.

use std::collections::BTreeMap;

use super::moves::{Moves, Part};
use super::ring::Ring;
use super::{Cut, Unsuited};

/// The members of each host, hosts in the order of their first members.
fn by_host(hosts: &[u32]) -> Vec<Vec<usize>> {
    let mut place: BTreeMap<u32, usize> = BTreeMap::new();
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (member, host) in hosts.iter().enumerate() {
        let at = *place.entry(*host).or_insert(all.len());
        if at == all.len() {
            all.push(Vec::new());
        }
        all[at].push(member);
    }
    all
}

/// Whether each of `hosts` has equally many members.
pub(super) fn check(hosts: &[u32]) -> Result<(), Unsuited> {
    let all = by_host(hosts);
    let Some(first) = all.first().map(Vec::len) else { return Ok(()) };
    match all.iter().find(|members| members.len() != first) {
        Some(other) => Err(Unsuited::Uneven(first, other.len())),
        None => Ok(()),
    }
}

/// All members get the sum of all.
pub(super) fn all_reduce(moves: &mut Moves, me: usize, hosts: &[u32], whole: Part, cut: Cut) {
    let all = by_host(hosts);
    let place = |members: &[usize]| members.iter().position(|&member| member == me);
    let Some((host, within)) = all.iter().enumerate().find_map(|(n, m)| Some((n, place(m)?)))
    else {
        return;
    };
    let local = Ring { members: &all[host], me: within, cut };
    let across: Vec<usize> =
        all.iter().filter_map(|members| members.get(within).copied()).collect();
    let across = Ring { members: &across, me: host, cut };
    let own = whole.nth(within as u64, all[host].len() as u64);

    let scattered = local.reduce_scatter(moves, whole, None);
    let scattered = moves.join(scattered.into_iter().flatten());
    let reduced = across.all_reduce(moves, own, scattered);
    let reduced = moves.join(scattered.into_iter().chain(reduced));
    // Each piece waits for the whole part: both levels cut it differently.
    local.all_gather(moves, whole, &vec![reduced; local.pieces(whole) as usize]);
}
