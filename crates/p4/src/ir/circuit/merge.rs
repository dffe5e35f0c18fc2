//! One access where several exclude one another, and no node that nothing needs.
//!
//! Accesses over one port (a method, a function, the reading or writing of a register) on ways that
//! no packet goes both become one, whose arguments are chosen. The n-th access on a way is joined
//! with the n-th on others: none of them can be waiting for another, so joining them makes no
//! circle, whatever else they wait for.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::super::Program;
use super::build::{Build, Site};
use super::conditions::{Cond, NEVER};
use super::graph::{AccessId, Graph, Node, NodeId};
use super::{Access, Circuit, Order, Outputs, Port, Unit};

/// Most accesses to one memory whose ways are compared with one another.
const MOST_COMPARED: usize = 256;

/// Accesses that are one.
#[derive(Clone, Debug)]
struct Group {
    sites: Vec<usize>,
    /// Where packets come to any of them.
    on: Cond,
}

/// What waits for what: nodes first, then accesses.
struct Waits<'a> {
    graph: &'a Graph,
    /// Of every access: where packets come to it, its arguments, accesses before it.
    on: &'a [NodeId],
    sites: &'a [Site],
    before: &'a [Vec<usize>],
    /// The group of each access.
    group: &'a [usize],
    groups: &'a [Group],
}

impl Waits<'_> {
    /// What a vertex waits for: of an access that has been joined, what any of its group does.
    fn of(&self, vertex: usize) -> Vec<usize> {
        let nodes = self.graph.nodes().len();
        if vertex < nodes {
            return match self.graph.nodes()[vertex].node {
                Node::Result(site, _) => vec![nodes + self.first(site.index())],
                node => node.operands().map(NodeId::index).collect(),
            };
        }
        let mut all = Vec::new();
        for &site in &self.groups[self.group[vertex - nodes]].sites {
            all.push(self.on[site].index());
            all.extend(self.sites[site].args.iter().map(|arg| arg.index()));
            all.extend(self.before[site].iter().map(|site| nodes + self.first(*site)));
        }
        all
    }

    /// The access that stands for its group.
    fn first(&self, site: usize) -> usize {
        self.groups[self.group[site]].sites[0]
    }

    /// Calls `done` for every vertex that an access waits for and then for it, for all accesses.
    fn walk(&self, mut done: impl FnMut(usize, &[usize])) {
        let nodes = self.graph.nodes().len();
        let mut seen = vec![false; nodes + self.sites.len()];
        for site in 0..self.sites.len() {
            let start = nodes + self.first(site);
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut open = vec![(start, self.of(start), 0)];
            while let Some((vertex, waits, at)) = open.last_mut() {
                match waits.get(*at) {
                    Some(&next) => {
                        *at += 1;
                        if !std::mem::replace(&mut seen[next], true) {
                            open.push((next, self.of(next), 0));
                        }
                    }
                    None => {
                        done(*vertex, waits);
                        open.pop();
                    }
                }
            }
        }
    }

    /// How many accesses over a port come one behind the other before each access, it included.
    fn levels(&self, port: Port) -> Vec<u32> {
        let nodes = self.graph.nodes().len();
        let mut levels = vec![0; nodes + self.sites.len()];
        self.walk(|vertex, waits| {
            let before = waits.iter().map(|wait| levels[*wait]).max().unwrap_or(0);
            let own = vertex >= nodes && self.sites[vertex - nodes].port == port;
            levels[vertex] = before + u32::from(own);
        });
        levels.split_off(nodes)
    }
}

/// The accesses that must come before each access: those to the same memory before it in the
/// source, on ways that a packet may go both. Of more than are compared, each follows the last.
fn orders(program: &Program, build: &mut Build<'_>) -> Vec<Vec<usize>> {
    let mut units: BTreeMap<Unit, Vec<usize>> = BTreeMap::new();
    let mut before: Vec<Vec<usize>> = Vec::new();
    for later in 0..build.sites.len() {
        before.push(Vec::new());
        let Some(unit) = build.sites[later].port.unit(program) else { continue };
        let known = units.entry(unit).or_default();
        if known.len() > MOST_COMPARED {
            before[later].extend(known.last());
        } else {
            let here = build.sites[later].on;
            for &earlier in &*known {
                let both = build.conditions.and(build.sites[earlier].on, here);
                if both != NEVER {
                    before[later].push(earlier);
                }
            }
        }
        known.push(later);
    }
    before
}

/// Which accesses are one.
fn groups(build: &mut Build<'_>, before: &[Vec<usize>]) -> Vec<Group> {
    let on: Vec<NodeId> = (0..build.sites.len())
        .map(|at| build.conditions.node(&mut build.graph, build.sites[at].on))
        .collect();
    let alone = |at: usize| Group { sites: vec![at], on: build.sites[at].on };
    let mut groups: Vec<Group> = (0..build.sites.len()).map(alone).collect();
    let mut group: Vec<usize> = (0..groups.len()).collect();
    let mut ports: BTreeMap<Port, Vec<usize>> = BTreeMap::new();
    for (at, site) in build.sites.iter().enumerate().filter(|(_, site)| site.port.is_shared()) {
        ports.entry(site.port).or_default().push(at);
    }
    for (port, here) in ports {
        if here.len() < 2 || here.len() > MOST_COMPARED {
            continue;
        }
        let waits = Waits {
            graph: &build.graph,
            on: &on,
            sites: &build.sites,
            before,
            group: &group,
            groups: &groups,
        };
        let levels = waits.levels(port);
        join(build, &here, &levels, &mut groups, &mut group);
    }
    groups
}

/// Joins those accesses over one port that exclude one another and have as many before them.
fn join(
    build: &mut Build<'_>,
    here: &[usize],
    levels: &[u32],
    groups: &mut [Group],
    group: &mut [usize],
) {
    let mut open: Vec<usize> = Vec::new();
    for &site in here {
        let cond = build.sites[site].on;
        let fits = open.iter().copied().find(|at| {
            let first = groups[*at].sites[0];
            levels[first] == levels[site] && build.conditions.and(groups[*at].on, cond) == NEVER
        });
        match fits {
            None => open.push(site),
            Some(at) => {
                groups[at].sites.push(site);
                groups[at].on = build.conditions.or(groups[at].on, cond);
                groups[site].sites.clear();
                group[site] = at;
            }
        }
    }
}

/// The circuit of a pipeline that has been translated.
pub(super) fn finish(program: &Program, mut build: Build<'_>, outputs: &Outputs) -> Circuit {
    let before = orders(program, &mut build);
    let groups = groups(&mut build, &before);
    let mut group = vec![0; build.sites.len()];
    for (at, one) in groups.iter().enumerate() {
        one.sites.iter().for_each(|site| group[*site] = at);
    }
    let chosen: Vec<Vec<NodeId>> = groups.iter().map(|one| arguments(&mut build, one)).collect();
    let mut copy = Copy {
        program,
        build: &build,
        groups: &groups,
        group: &group,
        before: &before,
        chosen: &chosen,
        needed: vec![false; groups.len()],
        graph: Graph::default(),
        nodes: HashMap::default(),
        accesses: Vec::new(),
        numbers: vec![None; groups.len()],
        order: Vec::new(),
    };
    let effects: Vec<usize> = (0..groups.len())
        .filter(|at| !groups[*at].sites.is_empty())
        .filter(|at| build.sites[groups[*at].sites[0]].port.has_effects())
        .collect();
    copy.find_needed(&effects, outputs);
    effects.into_iter().for_each(|at| copy.reach(Vertex::Group(at)));
    let outputs = outputs.map(&mut |node| {
        copy.reach(Vertex::Node(node));
        copy.nodes[&node]
    });
    Circuit { graph: copy.graph, accesses: copy.accesses, order: copy.order, outputs }
}

/// Where packets come to a group, and its arguments, as nodes.
fn arguments(build: &mut Build<'_>, group: &Group) -> Vec<NodeId> {
    let Some((&first, rest)) = group.sites.split_first() else { return Vec::new() };
    build.graph.here = build.sites[first].place;
    let mut all = vec![build.conditions.node(&mut build.graph, group.on)];
    for at in 0..build.sites[first].args.len() {
        let (mut value, mut on) = (build.sites[first].args[at], build.sites[first].on);
        for &site in rest {
            let Site { on: other, args, .. } = &build.sites[site];
            let (other, arg) = (*other, args[at]);
            let any = build.conditions.or(on, other);
            let here = build.conditions.restrict(other, any);
            let here = build.conditions.node(&mut build.graph, here);
            value = build.graph.mux(here, arg, value);
            on = any;
        }
        all.push(value);
    }
    all
}

#[derive(Clone, Copy)]
enum Vertex {
    Node(NodeId),
    Group(usize),
}

/// What is needed, copied in an order in which operands come first.
struct Copy<'a> {
    program: &'a Program,
    build: &'a Build<'a>,
    groups: &'a [Group],
    group: &'a [usize],
    before: &'a [Vec<usize>],
    chosen: &'a [Vec<NodeId>],
    /// Groups that do something, or whose answers something needs.
    needed: Vec<bool>,
    graph: Graph,
    nodes: HashMap<NodeId, NodeId, FxBuildHasher>,
    accesses: Vec<Access>,
    /// What has become of each group.
    numbers: Vec<Option<AccessId>>,
    order: Vec<Order>,
}

impl Copy<'_> {
    fn find_needed(&mut self, effects: &[usize], outputs: &Outputs) {
        let mut seen = vec![false; self.build.graph.nodes().len()];
        let mut open: Vec<Vertex> = effects.iter().map(|at| Vertex::Group(*at)).collect();
        let _ = outputs.map(&mut |node| {
            open.push(Vertex::Node(node));
            node
        });
        while let Some(vertex) = open.pop() {
            let known = match vertex {
                Vertex::Node(node) => &mut seen[node.index()],
                Vertex::Group(group) => &mut self.needed[group],
            };
            if !std::mem::replace(known, true) {
                open.extend(self.operands(vertex));
            }
        }
    }

    fn is_done(&self, vertex: Vertex) -> bool {
        match vertex {
            Vertex::Node(node) => self.nodes.contains_key(&node),
            Vertex::Group(group) => self.numbers[group].is_some(),
        }
    }

    /// What it is computed from.
    fn operands(&self, vertex: Vertex) -> Vec<Vertex> {
        match vertex {
            Vertex::Node(node) => match self.build.graph.value(node).node {
                Node::Result(site, _) => vec![Vertex::Group(self.group[site.index()])],
                node => node.operands().map(Vertex::Node).collect(),
            },
            Vertex::Group(group) => {
                self.chosen[group].iter().map(|node| Vertex::Node(*node)).collect()
            }
        }
    }

    /// What comes before it.
    fn needs(&self, vertex: Vertex) -> Vec<Vertex> {
        let mut needs = self.operands(vertex);
        if let Vertex::Group(group) = vertex {
            needs.extend(self.earlier(group).into_iter().map(Vertex::Group));
        }
        needs
    }

    /// Groups that must come before.
    fn earlier(&self, group: usize) -> Vec<usize> {
        let sites = self.groups[group].sites.iter();
        let mut earlier: Vec<usize> =
            sites.flat_map(|site| &self.before[*site]).map(|site| self.group[*site]).collect();
        earlier.retain(|group| self.needed[*group]);
        earlier.sort_unstable();
        earlier.dedup();
        earlier
    }

    fn reach(&mut self, vertex: Vertex) {
        let mut open = vec![(vertex, false)];
        while let Some((vertex, ready)) = open.pop() {
            if self.is_done(vertex) {
                continue;
            }
            if ready {
                self.make(vertex);
                continue;
            }
            open.push((vertex, true));
            let needs = self.needs(vertex);
            open.extend(needs.into_iter().rev().map(|need| (need, false)));
        }
    }

    fn make(&mut self, vertex: Vertex) {
        match vertex {
            Vertex::Node(node) => {
                let old = *self.build.graph.value(node);
                let new = match old.node {
                    Node::Result(site, at) => {
                        let group = self.group[site.index()];
                        let access = self.numbers[group].unwrap_or(AccessId(0));
                        Node::Result(access, at)
                    }
                    other => renamed(other, &self.nodes),
                };
                let new = self.graph.like(new, &old);
                self.nodes.insert(node, new);
            }
            Vertex::Group(group) => {
                let access = self.access(group);
                self.accesses.push(access);
                let id = AccessId(self.accesses.len() as u32 - 1);
                for earlier in self.earlier(group) {
                    let Some(before) = self.numbers[earlier] else { continue };
                    let [first, second] = [before, id].map(|id| self.accesses[id.index()].port);
                    let gap = first.until(second, self.program);
                    self.order.push(Order { before, after: id, gap });
                }
                self.numbers[group] = Some(id);
            }
        }
    }

    fn access(&self, group: usize) -> Access {
        let nodes = &self.chosen[group];
        let mut nodes = nodes.iter().map(|node| self.nodes[node]);
        let sites = &self.groups[group].sites;
        let first = &self.build.sites[sites[0]];
        Access {
            port: first.port,
            on: nodes.next().unwrap_or(NodeId(0)),
            args: nodes.collect(),
            results: first.results.clone(),
            places: sites.iter().map(|site| self.build.sites[*site].place).collect(),
        }
    }
}

/// A node over other operands.
fn renamed(node: Node, names: &HashMap<NodeId, NodeId, FxBuildHasher>) -> Node {
    let of = |id: NodeId| names[&id];
    match node {
        Node::PacketAt(a) => Node::PacketAt(of(a)),
        Node::Unary(op, a) => Node::Unary(op, of(a)),
        Node::Slice(a, low) => Node::Slice(of(a), low),
        Node::Resize(a, sign) => Node::Resize(of(a), sign),
        Node::Binary(op, a, b) => Node::Binary(op, of(a), of(b)),
        Node::Concat(a, b) => Node::Concat(of(a), of(b)),
        Node::Mux(on, a, b) => Node::Mux(of(on), of(a), of(b)),
        leaf => leaf,
    }
}
