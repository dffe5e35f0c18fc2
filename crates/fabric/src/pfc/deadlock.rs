//! Deadlocks: paused classes of links that wait for one another in a circle, for ever
//! (specs/rdma.md#I5).
//!
//! The switch at the end of a link pauses a class because packets that have come over the link wait
//! in it. Where they wait at a port that is paused itself, the one pause waits for the other. In a
//! fabric where packets go up and then down that ends somewhere. Looked for between rounds, among
//! pauses that have lasted for long: those that are short come and go in circles, too.

use std::collections::{BTreeMap, BTreeSet};

use units::Time;

/// A class of a link, numbered as in the whole fabric, that has been paused for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) class: u8,
    pub(crate) link: u32,
    pub(crate) since: Time,
    /// The links over which the packets have come that wait in it.
    pub(crate) waiting: Vec<u32>,
}

/// A circle of pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Circle {
    pub(crate) class: u8,
    /// Each waits for the next one, the last one for the first.
    pub(crate) links: Vec<u32>,
    /// Since when all of them have been paused.
    pub(crate) since: Time,
}

/// A circle among `stuck`, if there is one: always the same one, in whatever order they come.
pub(crate) fn find(stuck: &[Stuck]) -> Option<Circle> {
    let since: BTreeMap<(u8, u32), Time> =
        stuck.iter().map(|stuck| ((stuck.class, stuck.link), stuck.since)).collect();
    // By pause, those for which it waits.
    let mut next: BTreeMap<(u8, u32), Vec<u32>> = BTreeMap::new();
    for stuck in stuck {
        for &link in &stuck.waiting {
            if since.contains_key(&(stuck.class, link)) {
                next.entry((stuck.class, link)).or_default().push(stuck.link);
            }
        }
    }
    for ends in next.values_mut() {
        ends.sort_unstable();
    }
    let mut done = BTreeSet::new();
    next.keys().find_map(|&(class, link)| {
        let links = walk(class, link, &next, &mut done)?;
        let since = links.iter().filter_map(|&link| since.get(&(class, link))).max();
        Some(Circle { class, since: *since?, links })
    })
}

/// A circle that can be reached from `start`. Those in `done` lead to none.
fn walk(
    class: u8,
    start: u32,
    next: &BTreeMap<(u8, u32), Vec<u32>>,
    done: &mut BTreeSet<(u8, u32)>,
) -> Option<Vec<u32>> {
    // The way so far, and how many of each one's successors have been tried.
    let mut path = vec![(start, 0)];
    while let Some((link, tried)) = path.last_mut() {
        let successor = next.get(&(class, *link)).and_then(|ends| ends.get(*tried)).copied();
        *tried += 1;
        match successor {
            None => {
                done.insert((class, *link));
                path.pop();
            }
            Some(to) if done.contains(&(class, to)) => {}
            Some(to) => match path.iter().position(|&(link, _)| link == to) {
                Some(first) => return Some(path[first..].iter().map(|&(link, _)| link).collect()),
                None => path.push((to, 0)),
            },
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck(link: u32, waiting: &[u32]) -> Stuck {
        let since = Time(100 + u64::from(link));
        Stuck { class: 3, link, since, waiting: waiting.to_vec() }
    }

    #[test]
    fn a_circle_is_found_beside_what_only_leads_to_it() {
        // 9 and 8 wait for 5; 5 for 2, 2 for 7, 7 for 5; 7 for 1, which waits for none that is
        // stuck.
        let all = [stuck(5, &[9, 8, 7]), stuck(2, &[5, 40]), stuck(7, &[2]), stuck(1, &[7])];
        let ends = [stuck(9, &[50]), stuck(8, &[9])];
        let mut all: Vec<Stuck> = all.into_iter().chain(ends).collect();
        let found = find(&all).unwrap();
        assert_eq!(found, Circle { class: 3, links: vec![2, 7, 5], since: Time(107) });
        all.reverse();
        assert_eq!(find(&all), Some(found));
    }

    #[test]
    fn a_tree_of_pauses_is_no_circle_nor_are_two_classes() {
        let tree = [stuck(1, &[2, 3]), stuck(2, &[4, 5]), stuck(3, &[5]), stuck(5, &[6])];
        assert_eq!(find(&tree), None);
        let other = Stuck { class: 4, ..stuck(2, &[1]) };
        assert_eq!(find(&[stuck(1, &[2]), other]), None);
        assert_eq!(find(&[]), None);
    }
}
