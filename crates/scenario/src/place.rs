//! Places of a fabric as texts name them: nodes, links.

use fabric::{Node, Tier, Topology};

use crate::Diagnostic;

/// What a text outside of scenarios names: the node `host 3`, `host:3` or `plane 1 tor 0`, or the
/// link `tor 0 -> host 3`.
pub(crate) enum Place {
    /// A host or a switch.
    Node(Node),
    /// One direction of a link.
    Link(u32),
}

impl Place {
    /// What `text` names in `topology`.
    pub(crate) fn find(text: &str, topology: &Topology) -> Result<Self, Diagnostic> {
        let known = |part: &str| {
            let Some(node) = node(&part.replace(':', " ")) else {
                let message = format!("`{}` is no node: in `{text}`", part.trim());
                return Err(Diagnostic::new(message).hint(PLACE_HINT));
            };
            let wrong = |(message, hint)| Diagnostic::new(message).hint(hint);
            there_is(node, topology).map_err(wrong)?;
            Ok(node)
        };
        let Some((from, to)) = text.split_once("->") else { return known(text).map(Self::Node) };
        let (from, to) = (known(from)?, known(to)?);
        let none = || {
            Diagnostic::new(format!("no link joins {from} and {to}"))
                .hint("`trimline run` names all links in links.parquet")
        };
        link(topology, from, to).map(Self::Link).ok_or_else(none)
    }
}

/// The link from `from` to `to`, where a host stands for its ports into planes, too.
pub(crate) fn link(topology: &Topology, from: Node, to: Node) -> Option<u32> {
    let port = |node, other| match (node, other) {
        (Node::Host(n), Node::Plane(..)) => Node::Switch(Tier::Nic, n),
        _ => node,
    };
    topology.find_link(port(from, to), port(to, from))
}

const PLACE_HINT: &str = "a host or switch, such as host:0 or tor:1, or a link, such as \
                          \"tor 1 -> host 5\"";

/// Whether `topology` has `node`; otherwise what is wrong, and what there is.
pub(crate) fn there_is(node: Node, topology: &Topology) -> Result<(), (String, String)> {
    if topology.has(node) {
        return Ok(());
    }
    let planes = topology.plane_count();
    let hint = match node {
        Node::Host(_) => format!("host 0 to host {}", topology.hosts() - 1),
        Node::Switch(Tier::Nic, _) if planes == 1 => "only hosts of several planes".to_owned(),
        Node::Switch(tier, n) if planes > 1 && tier != Tier::Nic => {
            format!("say of which plane: `plane 0 {tier} {n}` to `plane {} {tier} {n}`", planes - 1)
        }
        Node::Plane(plane, ..) if u32::from(plane) >= planes => match planes {
            1 => "it has one plane, whose switches are written `tor 0`".to_owned(),
            _ => format!("plane 0 to plane {}", planes - 1),
        },
        Node::Switch(tier, _) | Node::Plane(_, tier, _) => {
            // NICs are of no plane.
            let copies = if tier == Tier::Nic { 1 } else { planes };
            match (topology.switches_of(tier) / copies).checked_sub(1) {
                Some(last) => format!("{tier} 0 to {tier} {last}"),
                None => format!("it has no {tier} switches"),
            }
        }
    };
    Err((format!("there is no {node} in this {}", topology.kind()), hint))
}

/// "agg 3", or "plane 1 agg 3".
pub(crate) fn node(text: &str) -> Option<Node> {
    let (kind, n) = text.trim().split_once(' ')?;
    if kind == "plane" {
        let (plane, switch) = n.trim_start().split_once(' ')?;
        let Some(Node::Switch(tier, n)) = node(switch) else { return None };
        return Some(Node::Plane(plane.parse().ok()?, tier, n));
    }
    let n = n.trim().parse().ok()?;
    if kind == "host" {
        return Some(Node::Host(n));
    }
    let tier = Tier::ALL.into_iter().find(|tier| tier.to_string() == kind)?;
    Some(Node::Switch(tier, n))
}
