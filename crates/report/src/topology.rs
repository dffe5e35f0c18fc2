//! The map of a run's topology: hosts below, switches above them, links by their utilization.

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use metrics::LinkRow;

use crate::heat::{LEVELS, key, level};
use crate::number::{bytes, percent};
use crate::page::{scroll, table};

/// More than this is a black area; links of hosts are left out first.
const MOST_LINKS: usize = 3000;

/// A map of fewer links says of each what it is.
const TOLD: usize = 1500;

/// How many of the busiest links the table has.
const BUSIEST: usize = 10;

/// Sizes in the picture's own units.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 70.0;
const ROW: f64 = 130.0;
const TOP: f64 = 26.0;

/// Both directions between two nodes; the utilization of each, where there is one.
struct Pair<'a> {
    ends: [&'a str; 2],
    used: [Option<f64>; 2],
}

impl Pair<'_> {
    fn most(&self) -> f64 {
        self.used.iter().flatten().copied().fold(0.0, f64::max)
    }

    fn is_of_host(&self) -> bool {
        self.ends.iter().any(|end| kind(end) == "host")
    }

    fn told(&self) -> String {
        let [a, b] = self.ends;
        let [there, back] = self.used.map(percent);
        format!("{a} → {b}: {there}; {b} → {a}: {back}")
    }
}

/// The map, and the busiest links as a table.
pub(crate) fn map(links: &[LinkRow]) -> Markup {
    let all = pairs(links);
    if all.is_empty() {
        return html! {};
    }
    let few = all.len() <= MOST_LINKS;
    let shown: Vec<&Pair<'_>> = all.iter().filter(|pair| few || !pair.is_of_host()).collect();
    html! {
        h3 { "Map of the links" }
        @if shown.len() > MOST_LINKS || shown.is_empty() {
            p.empty { (all.len()) " links are too many for a map." }
        } @else {
            (scroll("map of the links", &picture(&shown)))
            p.note {
                "Utilization over the measurement, of the busier direction: the wider and the more "
                "different from the paper, the more. "
                @if !few { "Links of hosts are left out. " }
                @if shown.len() <= TOLD { "Point at a link to read both directions." }
            }
        }
        (busiest(links))
    }
}

fn pairs(links: &[LinkRow]) -> Vec<Pair<'_>> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    let mut places: BTreeMap<[&str; 2], usize> = BTreeMap::new();
    for link in links {
        let Some((from, to)) = link.name.split_once(" -> ") else { continue };
        match places.get(&[to, from]) {
            Some(&back) if pairs[back].used[1].is_none() => pairs[back].used[1] = link.utilization,
            _ => {
                places.insert([from, to], pairs.len());
                pairs.push(Pair { ends: [from, to], used: [link.utilization, None] });
            }
        }
    }
    pairs
}

/// `tor` and 12 of `tor 12`, and 3 of `plane 3 tor 12`.
fn parts(node: &str) -> (&str, u64, u64) {
    let number = |n: &str| n.parse().unwrap_or_default();
    let (rest, n) = node.rsplit_once(' ').unwrap_or((node, ""));
    match rest.strip_prefix("plane ").and_then(|plane| plane.split_once(' ')) {
        Some((plane, kind)) => (kind, number(plane), number(n)),
        None => (rest, 0, number(n)),
    }
}

fn kind(node: &str) -> &str {
    parts(node).0
}

/// How many links each node is away from hosts, or, without any, from the first node.
fn heights<'a>(pairs: &[&Pair<'a>]) -> BTreeMap<&'a str, usize> {
    let mut heights: BTreeMap<&str, usize> = BTreeMap::new();
    let ends = || pairs.iter().flat_map(|pair| pair.ends);
    heights.extend(ends().filter(|end| kind(end) == "host").map(|end| (end, 0)));
    if heights.is_empty() {
        // Without hosts the lowest are those of the first kind.
        let first = ends().next().map_or("", kind);
        heights.extend(ends().filter(|end| kind(end) == first).map(|end| (end, 0)));
    }
    for height in 1.. {
        let below = |end: &str| heights.get(end) == Some(&(height - 1));
        let next = |[a, b]: [&'a str; 2]| [(a, b), (b, a)].into_iter().find(|(a, _)| below(a));
        let above = pairs.iter().filter_map(|pair| next(pair.ends)).map(|(_, above)| above);
        let new: Vec<&str> = above.filter(|end| !heights.contains_key(end)).collect();
        if new.is_empty() {
            break;
        }
        heights.extend(new.into_iter().map(|end| (end, height)));
    }
    heights
}

fn picture(pairs: &[&Pair<'_>]) -> Markup {
    let heights = heights(pairs);
    let highest = heights.values().copied().max().unwrap_or_default();
    let mut rows: Vec<Vec<&str>> = vec![Vec::new(); highest + 1];
    heights.iter().for_each(|(node, height)| rows[*height].push(node));
    let mut at: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (height, row) in rows.iter_mut().enumerate() {
        row.sort_by_key(|node| parts(node));
        let y = TOP + ROW * (highest - height) as f64;
        let step = (WIDTH - LEFT) / row.len() as f64;
        at.extend(row.iter().zip(0..).map(|(n, i)| (*n, (LEFT + step * (f64::from(i) + 0.5), y))));
    }
    let height = TOP * 2.0 + ROW * highest as f64;
    // Many links leave little paper between them.
    let pen = (250.0 / pairs.len() as f64).clamp(0.15, 1.0);
    html! {
        svg.map viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
            aria-label="Map of the links, by utilization" {
            @for step in 0..=LEVELS {
                g.{ "heat" (step) } stroke-width=(pen * (0.6 + 0.9 * step as f64)) {
                    (PreEscaped(lines(pairs, step, &at)))
                }
            }
            @for (height, row) in rows.iter().enumerate() {
                // Of the lowest the numbers stand below, where no links are.
                @let number = if height == 0 { 16.0 } else { -8.0 };
                @if let Some(first) = row.first() {
                    text x="0" y=(at[first].1 + 4.0) { (kind(first)) }
                    @for node in row { (of_node(node, at[node], (row.len() <= 40).then_some(number))) }
                }
            }
        }
        (key(0, "0 %", "100 %"))
    }
}

/// The links of one level, each with its own words, or all of them as one.
fn lines(pairs: &[&Pair<'_>], step: usize, at: &BTreeMap<&str, (f64, f64)>) -> String {
    let of_step = pairs.iter().filter(|pair| level(pair.most(), 1.0) == step);
    let mut out = String::new();
    let mut all = String::new();
    for pair in of_step {
        let [Some((x1, y1)), Some((x2, y2))] = pair.ends.map(|end| at.get(end)) else { continue };
        let path = if y1 == y2 {
            // A bow over what stands between them.
            let (middle, bow) = ((x1 + x2) / 2.0, y1 - 20.0 - (x2 - x1).abs() / 8.0);
            format!("M{x1:.0} {y1:.0}Q{middle:.0} {bow:.0} {x2:.0} {y2:.0}")
        } else {
            format!("M{x1:.1} {y1:.0}L{x2:.1} {y2:.0}")
        };
        if pairs.len() > TOLD {
            all += &path;
        } else {
            let told = html! { title { (pair.told()) } }.into_string();
            let _ = write!(out, "<path d=\"{path}\">{told}</path>");
        }
    }
    if !all.is_empty() {
        let _ = write!(out, "<path d=\"{all}\"/>");
    }
    out
}

fn of_node(node: &str, (x, y): (f64, f64), number: Option<f64>) -> Markup {
    html! {
        circle cx={ (format!("{x:.1}")) } cy=(y) r=(if number.is_some() { 4.0 } else { 1.5 }) {
            title { (node) }
        }
        @if let Some(dy) = number { text.node x={ (format!("{x:.1}")) } y=(y + dy) { (parts(node).2) } }
    }
}

fn busiest(links: &[LinkRow]) -> Markup {
    let mut used: Vec<&LinkRow> = links.iter().filter(|l| l.utilization.is_some()).collect();
    // Of equally busy ones the first.
    used.sort_by(|a, b| b.utilization.unwrap_or(0.0).total_cmp(&a.utilization.unwrap_or(0.0)));
    let head = ["Busiest links", "utilization", "max queue"].map(str::to_owned);
    let row = |link: &&LinkRow| {
        vec![link.name.clone(), percent(link.utilization), bytes(link.max_queue_bytes)]
    };
    let rows: Vec<Vec<String>> = used.iter().take(BUSIEST).map(row).collect();
    if rows.is_empty() {
        html! {}
    } else {
        table(&head, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, utilization: f64) -> LinkRow {
        let name = name.to_owned();
        LinkRow { name, utilization: Some(utilization), ..LinkRow::default() }
    }

    #[test]
    fn nodes_stand_as_high_as_they_are_away_from_hosts() {
        let links = [
            link("host 0 -> tor 2", 0.5),
            link("tor 2 -> host 0", 0.9),
            link("tor 2 -> agg <3>", 0.1),
            link("nothing", 0.3),
        ];
        let pairs = pairs(&links);
        assert_eq!(pairs.len(), 2, "both directions are one, and a name without ends none");
        let of: Vec<&Pair<'_>> = pairs.iter().collect();
        let heights: Vec<_> = heights(&of).into_iter().collect();
        assert_eq!(heights, [("agg <3>", 2), ("host 0", 0), ("tor 2", 1)]);
        assert_eq!([parts("tor 12"), parts("plane 3 tor 12")], [("tor", 0, 12), ("tor", 3, 12)]);
        let page = map(&links).into_string();
        assert!(page.contains("host 0 → tor 2: 50.0 %; tor 2 → host 0: 90.0 %"), "{page}");
        assert!(page.contains("agg &lt;3&gt;") && !page.contains("agg <3>"), "{page}");
        assert_eq!(map(&[]).into_string(), "");
    }
}
