//! Shares of pipes, kept up as members come, go and change: what a change does not reach is not
//! looked at.
//!
//! Each pipe grants each of its members a rate, given what the member's other pipes grant it. A
//! member has the least of its grants. A pipe is looked at again when one of its members has
//! changed elsewhere, until nothing changes: for max-min shares this is the distributed
//! computation of Charny, Clark and Jain (ICC 1995).

use std::collections::VecDeque;

use units::Time;

/// Who gets how much of a pipe that all of its members together would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All as much, but none more than it gets elsewhere.
    MaxMin,
    /// Who has the least left takes what it can, then the next.
    ShortestFirst,
}

/// Shares that differ by less, relatively, are equal.
const TOLERANCE: f64 = 1e-9;

/// Looks at pipes for each that had changed, at most: what cycles is cut off there.
const LOOKS_MAX: usize = 100_000;

struct Pipe {
    /// Bytes per picosecond.
    capacity: f64,
    /// Members, and which of their pipes this is.
    members: Vec<(u32, u8)>,
    /// What its members have, together.
    sum: f64,
    /// It bounds nobody.
    is_free: bool,
    is_waiting: bool,
}

#[derive(Default)]
struct Member {
    pipes: Vec<u32>,
    /// Its place in the list of each pipe.
    at: Vec<u32>,
    /// What each pipe grants it.
    grants: Vec<f64>,
    /// It can use no more.
    cap: f64,
    rate: f64,
    /// What was left at an instant, and how fast it has become less since: the least goes first, of
    /// equal ones the one that came first.
    left: f64,
    since: Time,
    speed: f64,
    born: u64,
    has_changed: bool,
}

impl Member {
    fn left_at(&self, now: Time) -> f64 {
        self.left - self.speed * now.since(self.since).0 as f64
    }

    /// The most that it gets, if not for its pipe `hop`.
    fn elsewhere(&self, hop: u8) -> f64 {
        let others = self.grants.iter().enumerate().filter(|(at, _)| *at != usize::from(hop));
        others.fold(self.cap, |least, (_, grant)| least.min(*grant))
    }
}

/// Pipes and who shares them.
pub(crate) struct Shares {
    rule: Rule,
    pipes: Vec<Pipe>,
    members: Vec<Member>,
    vacant: Vec<u32>,
    born: u64,
    /// Pipes to look at.
    waiting: VecDeque<u32>,
    changed: Vec<u32>,
    /// Scratch: what each member of a pipe wants, and its place in the pipe's list.
    wants: Vec<(f64, f64, u32)>,
}

impl Shares {
    pub(crate) fn new(rule: Rule) -> Self {
        let (pipes, members, vacant) = (Vec::new(), Vec::new(), Vec::new());
        let (waiting, changed, wants) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { rule, pipes, members, vacant, born: 0, waiting, changed, wants }
    }

    /// One more pipe, of `capacity` bytes per picosecond. Its number.
    pub(crate) fn add_pipe(&mut self, capacity: f64) -> u32 {
        let members = Vec::new();
        self.pipes.push(Pipe { capacity, members, sum: 0.0, is_free: true, is_waiting: false });
        self.pipes.len() as u32 - 1
    }

    pub(crate) fn set_capacity(&mut self, pipe: u32, capacity: f64) {
        self.pipes[pipe as usize].capacity = capacity;
        self.pipes[pipe as usize].is_free = false;
        self.await_look(pipe);
    }

    /// The least capacity on the way of `member`.
    pub(crate) fn narrowest(&self, member: u32) -> f64 {
        let pipes = self.members[member as usize].pipes.iter();
        pipes.map(|pipe| self.pipes[*pipe as usize].capacity).fold(f64::INFINITY, f64::min)
    }

    /// One more member, over `pipes`, which can use `cap` and has `left`.
    pub(crate) fn add(&mut self, pipes: Vec<u32>, cap: f64, left: f64) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.members.push(Member::default());
            self.members.len() as u32 - 1
        });
        let mut at = Vec::with_capacity(pipes.len());
        let mut grants = Vec::with_capacity(pipes.len());
        for (hop, &pipe) in pipes.iter().enumerate() {
            let of = &mut self.pipes[pipe as usize];
            at.push(of.members.len() as u32);
            of.members.push((number, hop as u8));
            // As if it were alone, until it is looked at.
            grants.push(of.capacity);
        }
        self.members[number as usize] =
            Member { pipes, at, grants, cap, left, born: self.born, ..Member::default() };
        self.born += 1;
        self.set_rate(number);
        self.await_all(number);
        number
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let member = std::mem::take(&mut self.members[number as usize]);
        for (&pipe, &at) in member.pipes.iter().zip(&member.at) {
            let of = &mut self.pipes[pipe as usize];
            of.members.swap_remove(at as usize);
            of.sum = if of.members.is_empty() { 0.0 } else { of.sum - member.rate };
            if let Some(&(moved, hop)) = of.members.get(at as usize) {
                self.members[moved as usize].at[usize::from(hop)] = at;
            }
            self.await_look(pipe);
        }
        self.changed.retain(|changed| *changed != number);
        self.vacant.push(number);
    }

    /// It can use `cap` from now on.
    pub(crate) fn set_cap(&mut self, number: u32, cap: f64) {
        self.members[number as usize].cap = cap;
        self.set_rate(number);
        self.await_all(number);
    }

    /// At `now` it has `left`.
    pub(crate) fn set_left(&mut self, number: u32, left: f64, now: Time) {
        let member = &mut self.members[number as usize];
        (member.left, member.since) = (left, now);
    }

    /// From when it had what it was said to have left, it moves at this rate.
    pub(crate) fn set_speed(&mut self, number: u32, speed: f64) {
        self.members[number as usize].speed = speed;
    }

    pub(crate) fn rate(&self, number: u32) -> f64 {
        self.members[number as usize].rate
    }

    pub(crate) fn pipes(&self, number: u32) -> &[u32] {
        &self.members[number as usize].pipes
    }

    /// Members whose rates have changed, each once.
    pub(crate) fn take_changed(&mut self) -> Vec<u32> {
        for &number in &self.changed {
            self.members[number as usize].has_changed = false;
        }
        std::mem::take(&mut self.changed)
    }

    /// Whose shares are not worked out yet.
    pub(crate) fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Work out all shares again, at `now`, as far as something has changed.
    pub(crate) fn settle(&mut self, now: Time) {
        let mut looks = LOOKS_MAX.saturating_mul(self.waiting.len().max(1));
        while let Some(pipe) = self.waiting.pop_front() {
            self.pipes[pipe as usize].is_waiting = false;
            self.look(pipe, now);
            looks -= 1;
            if looks == 0 {
                self.waiting
                    .drain(..)
                    .for_each(|pipe| self.pipes[pipe as usize].is_waiting = false);
            }
        }
    }

    fn await_look(&mut self, pipe: u32) {
        let of = &mut self.pipes[pipe as usize];
        if !std::mem::replace(&mut of.is_waiting, true) {
            self.waiting.push_back(pipe);
        }
    }

    fn await_all(&mut self, number: u32) {
        for hop in 0..self.members[number as usize].pipes.len() {
            self.await_look(self.members[number as usize].pipes[hop]);
        }
    }

    /// Its rate follows from its grants.
    fn set_rate(&mut self, number: u32) {
        let member = &mut self.members[number as usize];
        let rate = member.grants.iter().copied().fold(member.cap, f64::min);
        let more = rate - member.rate;
        if more == 0.0 {
            return;
        }
        member.rate = rate;
        if !std::mem::replace(&mut member.has_changed, true) {
            self.changed.push(number);
        }
        for &pipe in &self.members[number as usize].pipes {
            self.pipes[pipe as usize].sum += more;
        }
    }

    /// Grant the members of `pipe` what they are to have.
    fn look(&mut self, pipe: u32, now: Time) {
        let Pipe { capacity, sum, is_free, .. } = self.pipes[pipe as usize];
        let most = capacity * (1.0 + TOLERANCE);
        if is_free && sum <= most {
            return;
        }
        let mut wants = std::mem::take(&mut self.wants);
        wants.clear();
        for (at, &(number, hop)) in self.pipes[pipe as usize].members.iter().enumerate() {
            let member = &self.members[number as usize];
            wants.push((member.elsewhere(hop), member.left_at(now), at as u32));
        }
        let is_free = wants.iter().map(|(want, ..)| want).sum::<f64>() <= most;
        self.pipes[pipe as usize].is_free = is_free;
        if is_free {
            wants.iter().for_each(|&(.., at)| self.grant(pipe, at, capacity));
        } else if self.rule == Rule::MaxMin {
            let level = level(&mut wants, capacity);
            wants.iter().for_each(|&(.., at)| self.grant(pipe, at, level));
        } else {
            // One order for all pipes: else two could prefer different ones for ever.
            let members = &self.pipes[pipe as usize].members;
            let born = |at: u32| self.members[members[at as usize].0 as usize].born;
            wants.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| born(a.2).cmp(&born(b.2))));
            let mut left = capacity;
            for &(want, _, at) in &wants {
                self.grant(pipe, at, left);
                left = (left - want).max(0.0);
            }
        }
        // The sum has gathered what additions round off.
        let members = self.pipes[pipe as usize].members.iter();
        let sum = members.map(|(number, _)| self.members[*number as usize].rate).sum();
        self.pipes[pipe as usize].sum = sum;
        self.wants = wants;
    }

    fn grant(&mut self, pipe: u32, at: u32, rate: f64) {
        let (number, hop) = self.pipes[pipe as usize].members[at as usize];
        let member = &mut self.members[number as usize];
        let before = std::mem::replace(&mut member.grants[usize::from(hop)], rate);
        let is_same = before == rate || (before - rate).abs() <= TOLERANCE * before.min(rate);
        if is_same {
            member.grants[usize::from(hop)] = before;
            return;
        }
        self.set_rate(number);
        for other in 0..self.members[number as usize].pipes.len() {
            if other != usize::from(hop) {
                self.await_look(self.members[number as usize].pipes[other]);
            }
        }
    }
}

/// The level to which all are filled who want more, so that together they have `capacity`. They
/// want more.
fn level(wants: &mut [(f64, f64, u32)], capacity: f64) -> f64 {
    wants.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
    let (mut left, mut count) = (capacity, wants.len());
    for &(want, ..) in wants.iter() {
        if want * count as f64 > left {
            break;
        }
        left -= want;
        count -= 1;
    }
    left / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(rule: Rule, capacities: &[f64]) -> Shares {
        let mut shares = Shares::new(rule);
        for capacity in capacities {
            shares.add_pipe(*capacity);
        }
        shares
    }

    fn rates(shares: &mut Shares, members: &[u32]) -> Vec<f64> {
        shares.settle(Time::ZERO);
        members.iter().map(|member| (shares.rate(*member) * 1e6).round() / 1e6).collect()
    }

    /// Bertsekas and Gallager, figure 6.?: three on a first link, of which one goes on to a wider.
    #[test]
    fn a_parking_lot_is_max_min() {
        let mut shares = shares(Rule::MaxMin, &[1.0, 1.0, 2.0]);
        let long = shares.add(vec![0, 1, 2], f64::INFINITY, 1.0);
        let others: Vec<u32> =
            [0, 1, 1, 2].map(|pipe| shares.add(vec![pipe], f64::INFINITY, 1.0)).into();
        let all = [&[long][..], &others].concat();
        let third = 0.333333;
        assert_eq!(rates(&mut shares, &all), [third, 0.666667, third, third, 1.666667]);
        shares.remove(others[1]);
        assert_eq!(rates(&mut shares, &[long, others[0], others[2]]), [0.5, 0.5, 0.5]);
        shares.set_cap(long, 0.1);
        assert_eq!(rates(&mut shares, &[long, others[0], others[3]]), [0.1, 0.9, 1.9]);
        shares.set_capacity(1, 0.1);
        assert_eq!(rates(&mut shares, &[long, others[2], others[0]]), [0.05, 0.05, 0.95]);
    }

    #[test]
    fn the_shortest_goes_first_and_leaves_the_rest() {
        let mut shares = shares(Rule::ShortestFirst, &[1.0, 0.4]);
        let long = shares.add(vec![0], f64::INFINITY, 9.0);
        let short = shares.add(vec![0, 1], f64::INFINITY, 2.0);
        let other = shares.add(vec![1], f64::INFINITY, 5.0);
        assert_eq!(rates(&mut shares, &[long, short, other]), [0.6, 0.4, 0.0]);
        shares.remove(short);
        assert_eq!(rates(&mut shares, &[long, other]), [1.0, 0.4]);
    }

    /// Equal lengths over many pipes: all pipes agree who goes first, and none carries too much.
    #[test]
    fn equally_short_ones_have_one_order() {
        let mut shares = shares(Rule::ShortestFirst, &[1.0; 12]);
        let mut members = Vec::new();
        for n in 0..64 {
            members.push(shares.add(vec![n % 4, 4 + n % 3, 7 + n % 5], f64::INFINITY, 1.0));
            shares.settle(Time::ZERO);
            if n % 5 == 4 {
                shares.remove(members.swap_remove(n as usize % members.len()));
                shares.settle(Time::ZERO);
            }
            for pipe in 0..12 {
                let on = members.iter().filter(|member| shares.pipes(**member).contains(&pipe));
                let sum: f64 = on.map(|member| shares.rate(*member)).sum();
                assert!(sum < 1.0 + 1e-6, "{sum} of 1 after {n}");
            }
        }
    }

    /// Beside the textbook's algorithm, which fills all links at once.
    #[test]
    fn drawn_networks_have_the_shares_of_progressive_filling() {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let capacities: Vec<f64> = (0..6).map(|_| 1.0 + draw(5) as f64).collect();
            let mut shares = shares(Rule::MaxMin, &capacities);
            let mut members = Vec::new();
            for _ in 0..20 {
                let mut way: Vec<u32> = (0..=draw(3)).map(|_| draw(6) as u32).collect();
                way.sort_unstable();
                way.dedup();
                members.push((shares.add(way.clone(), f64::INFINITY, 1.0), way));
                if draw(3) == 0 {
                    let gone = members.swap_remove(draw(members.len() as u64) as usize);
                    shares.remove(gone.0);
                }
                shares.settle(Time::ZERO);
            }
            let ways: Vec<&[u32]> = members.iter().map(|(_, way)| way.as_slice()).collect();
            for ((member, _), filled) in members.iter().zip(filled(&capacities, &ways)) {
                assert!((shares.rate(*member) - filled).abs() < 1e-6, "{ways:?}");
            }
        }
    }

    /// Progressive filling: all rates grow together; who meets a full link stops.
    fn filled(capacities: &[f64], ways: &[&[u32]]) -> Vec<f64> {
        let mut rates = vec![0.0; ways.len()];
        let mut is_open = vec![true; ways.len()];
        while is_open.contains(&true) {
            let on = |pipe: u32| (0..ways.len()).filter(move |way| ways[*way].contains(&pipe));
            let room = |pipe: u32| {
                let used: f64 = on(pipe).map(|way| rates[way]).sum();
                let open = on(pipe).filter(|way| is_open[*way]).count();
                (open > 0).then(|| (capacities[pipe as usize] - used) / open as f64)
            };
            let rooms: Vec<(u32, f64)> =
                (0..capacities.len() as u32).filter_map(|pipe| Some((pipe, room(pipe)?))).collect();
            let (full, more) = rooms.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            let stop: Vec<usize> = on(full).filter(|way| is_open[*way]).collect();
            for way in 0..ways.len() {
                rates[way] += if is_open[way] { more } else { 0.0 };
            }
            stop.into_iter().for_each(|way| is_open[way] = false);
        }
        rates
    }
}
