//! Places of a fabric as texts name them: nodes, links.

use fabric::{Node, Tier, Topology};

use crate::Diagnostic;

/// What a text outside of scenarios names: the node `host 3` or `host:3`, or the link
/// `tor 0 -> host 3`.
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
        topology.find_link(from, to).map(Self::Link).ok_or_else(none)
    }
}

const PLACE_HINT: &str = "a host or switch, such as host:0 or tor:1, or a link, such as \
                          \"tor 1 -> host 5\"";

/// Whether `topology` has `node`; otherwise what is wrong, and what there is.
pub(crate) fn there_is(node: Node, topology: &Topology) -> Result<(), (String, String)> {
    let count = count(topology, node);
    let (n, kind) = match node {
        Node::Host(n) => (n, "host".to_owned()),
        Node::Switch(tier, n) => (n, tier.to_string()),
    };
    if n < count {
        return Ok(());
    }
    let hint = match count.checked_sub(1) {
        Some(last) => format!("{kind} 0 to {kind} {last}"),
        None => format!("it has no {kind} switches"),
    };
    Err((format!("there is no {node} in this {}", topology.kind()), hint))
}

/// "agg 3".
pub(crate) fn node(text: &str) -> Option<Node> {
    let (kind, n) = text.trim().split_once(' ')?;
    let n = n.trim().parse().ok()?;
    if kind == "host" {
        return Some(Node::Host(n));
    }
    let tier = Tier::ALL.into_iter().find(|tier| tier.to_string() == kind)?;
    Some(Node::Switch(tier, n))
}

fn count(topology: &Topology, node: Node) -> u32 {
    match node {
        Node::Host(_) => topology.hosts(),
        Node::Switch(tier, _) => topology.switches_of(tier),
    }
}
