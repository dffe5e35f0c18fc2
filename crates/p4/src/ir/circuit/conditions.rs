//! Whether two ways through a pipeline exclude one another: conditions as binary decision diagrams
//! over the conditions of the program.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::super::{BinaryOp, UnaryOp};
use super::graph::{Graph, Node, NodeId};

/// A condition: index into [`Conditions::branches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cond(u32);

/// Never.
pub(super) const NEVER: Cond = Cond(0);
/// Always.
pub(super) const ALWAYS: Cond = Cond(1);

/// What is left if a variable is 1, and if it is 0. Variables further down have higher numbers:
/// those that came before. So what a later condition adds to a way stands above what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Branch {
    variable: u32,
    high: Cond,
    low: Cond,
}

/// Most different conditions of a pipeline, and steps to decide about them: both are far beyond
/// what programs have, and keep the time for odd ones within bounds.
const MOST_VARIABLES: usize = 2048;
const MOST_BRANCHES: usize = 1 << 20;

/// How far a condition is taken apart into others.
const LEVELS: u32 = 24;

type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// Conditions, each once.
#[derive(Debug)]
pub(super) struct Conditions {
    branches: Vec<Branch>,
    known: Map<Branch, Cond>,
    choices: Map<(Cond, Cond, Cond), Cond>,
    restricted: Map<(Cond, Cond), Cond>,
    /// The node of each variable.
    variables: Vec<NodeId>,
    by_node: Map<NodeId, Cond>,
    nodes: Map<Cond, NodeId>,
}

impl Conditions {
    pub(super) fn new() -> Self {
        let end = |number| Branch { variable: u32::MAX, high: Cond(number), low: Cond(number) };
        Self {
            branches: vec![end(0), end(1)],
            known: Map::default(),
            choices: Map::default(),
            restricted: Map::default(),
            variables: Vec::new(),
            by_node: Map::default(),
            nodes: Map::default(),
        }
    }

    /// Whether there are more than can be decided about.
    pub(super) fn too_many(&self) -> bool {
        self.variables.len() > MOST_VARIABLES || self.branches.len() > MOST_BRANCHES
    }

    fn branch(&mut self, branch: Branch) -> Cond {
        if branch.high == branch.low {
            return branch.high;
        }
        let branches = &mut self.branches;
        *self.known.entry(branch).or_insert_with(|| {
            branches.push(branch);
            Cond(branches.len() as u32 - 1)
        })
    }

    /// That a node of one bit is 1.
    pub(super) fn of(&mut self, graph: &Graph, node: NodeId) -> Cond {
        self.part_of(graph, node, LEVELS)
    }

    fn part_of(&mut self, graph: &Graph, node: NodeId, levels: u32) -> Cond {
        if let Some(known) = self.by_node.get(&node) {
            return *known;
        }
        let parts = match graph.value(node).node {
            _ if levels == 0 => None,
            Node::Const(value) => Some(if value == 0 { NEVER } else { ALWAYS }),
            Node::Unary(UnaryOp::Not, a) => {
                let a = self.part_of(graph, a, levels - 1);
                Some(self.not(a))
            }
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor), a, b) => {
                let a = self.part_of(graph, a, levels - 1);
                let b = self.part_of(graph, b, levels - 1);
                Some(match op {
                    BinaryOp::And => self.and(a, b),
                    BinaryOp::Or => self.or(a, b),
                    _ => {
                        let not = self.not(b);
                        self.choose(a, not, b)
                    }
                })
            }
            Node::Mux(on, a, b) => {
                let [on, a, b] = [on, a, b].map(|node| self.part_of(graph, node, levels - 1));
                Some(self.choose(on, a, b))
            }
            _ => None,
        };
        // Past the limit the answers no longer matter: the caller gives up.
        if parts.is_none() && self.too_many() {
            return NEVER;
        }
        let cond = parts.unwrap_or_else(|| {
            self.variables.push(node);
            let variable = u32::MAX - self.variables.len() as u32;
            self.branch(Branch { variable, high: ALWAYS, low: NEVER })
        });
        self.by_node.insert(node, cond);
        cond
    }

    pub(super) fn not(&mut self, a: Cond) -> Cond {
        self.choose(a, NEVER, ALWAYS)
    }

    pub(super) fn and(&mut self, a: Cond, b: Cond) -> Cond {
        self.choose(a, b, NEVER)
    }

    pub(super) fn or(&mut self, a: Cond, b: Cond) -> Cond {
        self.choose(a, ALWAYS, b)
    }

    /// The second where the first holds, else the third.
    fn choose(&mut self, on: Cond, a: Cond, b: Cond) -> Cond {
        match (on, a, b) {
            (ALWAYS, ..) => return a,
            (NEVER, ..) => return b,
            _ if a == b => return a,
            (_, ALWAYS, NEVER) => return on,
            _ => {}
        }
        if let Some(known) = self.choices.get(&(on, a, b)) {
            return *known;
        }
        if self.too_many() {
            return NEVER;
        }
        let top = |c: Cond| self.branches[c.0 as usize].variable;
        let variable = top(on).min(top(a)).min(top(b));
        let [high, low] = [true, false].map(|value| {
            let [on, a, b] = [on, a, b].map(|cond| self.follow(cond, variable, value));
            self.choose(on, a, b)
        });
        let cond = self.branch(Branch { variable, high, low });
        self.choices.insert((on, a, b), cond);
        cond
    }

    /// What is left of a condition if a variable, none further down than its first, is known.
    fn follow(&self, cond: Cond, variable: u32, value: bool) -> Cond {
        let branch = self.branches[cond.0 as usize];
        match (branch.variable == variable, value) {
            (false, _) => cond,
            (true, true) => branch.high,
            (true, false) => branch.low,
        }
    }

    /// A simpler condition that is the same wherever `care` holds.
    pub(super) fn restrict(&mut self, cond: Cond, care: Cond) -> Cond {
        if care == NEVER || care == ALWAYS || cond == NEVER || cond == ALWAYS {
            return cond;
        }
        if cond == care {
            return ALWAYS;
        }
        if let Some(known) = self.restricted.get(&(cond, care)) {
            return *known;
        }
        let (own, other) = (self.branches[cond.0 as usize], self.branches[care.0 as usize]);
        let simple = if other.variable < own.variable {
            let either = self.or(other.high, other.low);
            self.restrict(cond, either)
        } else {
            let variable = own.variable;
            let [high, low] = [true, false].map(|value| self.follow(care, variable, value));
            match (high, low) {
                (NEVER, _) => self.restrict(own.low, low),
                (_, NEVER) => self.restrict(own.high, high),
                _ => {
                    let high = self.restrict(own.high, high);
                    let low = self.restrict(own.low, low);
                    self.branch(Branch { variable, high, low })
                }
            }
        };
        self.restricted.insert((cond, care), simple);
        simple
    }

    /// A node that is 1 where the condition holds.
    pub(super) fn node(&mut self, graph: &mut Graph, cond: Cond) -> NodeId {
        if let Some(known) = self.nodes.get(&cond) {
            return *known;
        }
        let node = match cond {
            NEVER => graph.number(0, 1),
            ALWAYS => graph.number(1, 1),
            _ => {
                let branch = self.branches[cond.0 as usize];
                let high = self.node(graph, branch.high);
                let low = self.node(graph, branch.low);
                let variable = self.variables[(u32::MAX - 1 - branch.variable) as usize];
                graph.mux(variable, high, low)
            }
        };
        self.nodes.insert(cond, node);
        node
    }
}
