//! The nodes of a circuit, each once, and what is known of them without running anything.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::super::{BinaryOp, Place, Sign, SlotId, UnaryOp, mask};
use crate::interp::{binary, signed};

ids! {
    pub(super),
    /// Index into [`Graph::nodes`].
    NodeId;
    /// Index into [`Circuit::accesses`](super::Circuit::accesses).
    AccessId;
}

/// Width of the length of a packet in bytes.
pub const LENGTH_WIDTH: u16 = 16;

/// Width of a position in a packet in bits: that of any packet so long, and a header beyond.
pub const CURSOR_WIDTH: u16 = 40;

/// How far choices of numbers are taken apart where they are compared.
const LEVELS: u32 = 16;

/// What makes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number.
    Const(u128),
    /// What the caller sets: index into [`Pipeline::meta`](super::super::Pipeline::meta).
    Input(u32),
    /// Bytes of the packet.
    Length,
    /// Bits of the packet from this one on.
    Packet(u32),
    /// Bits of the packet from where this value says.
    PacketAt(NodeId),
    /// Of an operand as wide as the result.
    Unary(UnaryOp, NodeId),
    /// Of two operands.
    Binary(BinaryOp, NodeId, NodeId),
    /// Bits of a value from this one up.
    Slice(NodeId, u16),
    /// The first operand's bits above the second's.
    Concat(NodeId, NodeId),
    /// The same value in another width.
    Resize(NodeId, Sign),
    /// The second if the first is 1, else the third.
    Mux(NodeId, NodeId, NodeId),
    /// What an access answers, by its place among the answers.
    Result(AccessId, u32),
}

impl Node {
    /// What it is computed from, but for accesses.
    pub fn operands(self) -> impl Iterator<Item = NodeId> {
        let (a, b, c) = match self {
            Self::Const(_) | Self::Input(_) | Self::Length | Self::Packet(_) => (None, None, None),
            Self::Result(..) => (None, None, None),
            Self::PacketAt(a) | Self::Unary(_, a) | Self::Slice(a, _) | Self::Resize(a, _) => {
                (Some(a), None, None)
            }
            Self::Binary(_, a, b) | Self::Concat(a, b) => (Some(a), Some(b), None),
            Self::Mux(a, b, c) => (Some(a), Some(b), Some(c)),
        };
        [a, b, c].into_iter().flatten()
    }
}

/// A node of the graph.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// What makes it.
    pub node: Node,
    /// Its width, bits.
    pub width: u16,
    /// The statement that first computes it.
    pub place: Place,
    /// What it is first assigned to.
    pub name: Option<SlotId>,
}

/// Nodes, operands before what is computed from them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Value>,
    known: HashMap<(Node, u16), NodeId, FxBuildHasher>,
    /// The statement that is being translated.
    pub(super) here: Place,
}

impl Graph {
    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Value] {
        &self.nodes
    }

    /// The numbers of all of them.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// One of them.
    #[must_use]
    pub fn value(&self, id: NodeId) -> &Value {
        &self.nodes[id.index()]
    }

    /// The number that a node is, if that is known.
    #[must_use]
    pub fn constant(&self, id: NodeId) -> Option<u128> {
        match self.value(id).node {
            Node::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Its width.
    #[must_use]
    pub fn width(&self, id: NodeId) -> u16 {
        self.value(id).width
    }

    /// What it is first assigned to names it.
    pub(super) fn name(&mut self, id: NodeId, name: SlotId) {
        let value = &mut self.nodes[id.index()];
        if !matches!(value.node, Node::Const(_)) {
            value.name.get_or_insert(name);
        }
    }

    /// A node as it is, with the name and the place of another one's.
    pub(super) fn like(&mut self, node: Node, old: &Value) -> NodeId {
        self.here = old.place;
        let id = self.node(node, old.width);
        if let Some(name) = old.name {
            self.name(id, name);
        }
        id
    }

    pub(super) fn number(&mut self, value: u128, width: u16) -> NodeId {
        self.raw(Node::Const(value & mask(width)), width)
    }

    /// The node itself.
    fn raw(&mut self, node: Node, width: u16) -> NodeId {
        let (nodes, place) = (&mut self.nodes, self.here);
        *self.known.entry((node, width)).or_insert_with(|| {
            nodes.push(Value { node, width, place, name: None });
            NodeId(nodes.len() as u32 - 1)
        })
    }

    /// A node, or what is the same and simpler.
    pub(super) fn node(&mut self, node: Node, width: u16) -> NodeId {
        if let Some(known) = self.known.get(&(node, width)) {
            return *known;
        }
        let simple = self.simple(node, width);
        // Choices of choices have many ways to the same parts: each is taken once.
        self.known.insert((node, width), simple);
        simple
    }

    fn simple(&mut self, node: Node, width: u16) -> NodeId {
        if let Some(value) = self.folded(node, width) {
            return self.number(value, width);
        }
        match node {
            Node::Unary(UnaryOp::Not, a) => self.not(a, width),
            Node::Binary(op, a, b) => self.binary(op, a, b, width),
            Node::Slice(a, low) => self.slice(a, low, width),
            Node::Resize(a, _) if self.width(a) == width => a,
            Node::Resize(a, _) if self.width(a) > width => self.slice(a, 0, width),
            Node::Mux(on, a, b) => self.mux(on, a, b),
            Node::PacketAt(at) => self.packet_at(at, width),
            node => self.raw(node, width),
        }
    }

    /// Its number, if all operands are numbers.
    fn folded(&self, node: Node, width: u16) -> Option<u128> {
        if matches!(node, Node::PacketAt(_)) || node.operands().next().is_none() {
            return None;
        }
        if node.operands().any(|operand| self.constant(operand).is_none()) {
            return None;
        }
        let number = |id: NodeId| self.constant(id).unwrap_or(0);
        Some(compute(node, width, &|id| (number(id), self.width(id))))
    }

    pub(super) fn not(&mut self, a: NodeId, width: u16) -> NodeId {
        match self.value(a).node {
            Node::Unary(UnaryOp::Not, inner) => inner,
            _ => match self.constant(a) {
                Some(value) => self.number(!value, width),
                None => self.raw(Node::Unary(UnaryOp::Not, a), width),
            },
        }
    }

    fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId, width: u16) -> NodeId {
        let all = mask(width);
        let known = [(a, self.constant(b)), (b, self.constant(a))];
        for (other, number) in known {
            match (op, number) {
                (BinaryOp::And, Some(0)) => return self.number(0, width),
                (BinaryOp::Or, Some(n)) if n == all => return self.number(all, width),
                (BinaryOp::And, Some(n)) if n == all => return other,
                (BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add, Some(0)) => return other,
                _ => {}
            }
        }
        match op {
            BinaryOp::And | BinaryOp::Or if a == b => a,
            BinaryOp::Sub if self.constant(b) == Some(0) => a,
            BinaryOp::Shl | BinaryOp::Shr(_) if self.constant(b) >= Some(width.into()) => {
                self.shifted_out(op, a, width)
            }
            BinaryOp::Xor | BinaryOp::Sub if a == b => self.number(0, width),
            BinaryOp::Eq if a == b => self.number(1, 1),
            BinaryOp::Ne if a == b => self.number(0, 1),
            BinaryOp::Eq | BinaryOp::Ne if self.constant(b).is_some() => {
                self.compare(op, a, b, LEVELS)
            }
            BinaryOp::Eq | BinaryOp::Ne if self.constant(a).is_some() => {
                self.compare(op, b, a, LEVELS)
            }
            BinaryOp::Lt(sign) | BinaryOp::Le(sign) | BinaryOp::Gt(sign) | BinaryOp::Ge(sign) => {
                match self.known_order(op, a, b, sign) {
                    Some(known) => self.number(known.into(), 1),
                    None => self.raw(Node::Binary(op, a, b), 1),
                }
            }
            // A position in the packet stays a choice of numbers.
            BinaryOp::Add if width == CURSOR_WIDTH && self.constant(b).is_some() => {
                self.move_on(a, b)
            }
            _ => self.raw(Node::Binary(op, a, b), width),
        }
    }

    /// A value shifted by its width or more.
    fn shifted_out(&mut self, op: BinaryOp, a: NodeId, width: u16) -> NodeId {
        if op != BinaryOp::Shr(Sign::Signed) {
            return self.number(0, width);
        }
        let sign = self.slice(a, width - 1, 1);
        self.node(Node::Resize(sign, Sign::Signed), width)
    }

    /// Whether a value is below another, as far as an end of the range says that.
    fn known_order(&self, op: BinaryOp, a: NodeId, b: NodeId, sign: Sign) -> Option<bool> {
        let all = mask(self.width(a));
        let (least, most) = match sign {
            Sign::Unsigned => (0, all),
            Sign::Signed => (all - (all >> 1), all >> 1),
        };
        let (x, y) = (self.constant(a), self.constant(b));
        match op {
            _ if a == b => Some(matches!(op, BinaryOp::Le(_) | BinaryOp::Ge(_))),
            BinaryOp::Lt(_) if x == Some(most) || y == Some(least) => Some(false),
            BinaryOp::Gt(_) if x == Some(least) || y == Some(most) => Some(false),
            BinaryOp::Le(_) if x == Some(least) || y == Some(most) => Some(true),
            BinaryOp::Ge(_) if x == Some(most) || y == Some(least) => Some(true),
            _ => None,
        }
    }

    /// Whether a value is, or is not, a number. Of a choice of numbers that is a condition, so many
    /// levels deep.
    fn compare(&mut self, op: BinaryOp, a: NodeId, number: NodeId, levels: u32) -> NodeId {
        if let (Some(value), Some(wanted)) = (self.constant(a), self.constant(number)) {
            return self.number(u128::from((value == wanted) == (op == BinaryOp::Eq)), 1);
        }
        if self.width(a) == 1 {
            let same = self.constant(number) == Some(u128::from(op == BinaryOp::Eq));
            return if same { a } else { self.not(a, 1) };
        }
        match self.value(a).node {
            Node::Mux(on, x, y)
                if levels > 0 && (self.constant(x).is_some() || self.constant(y).is_some()) =>
            {
                let x = self.compare(op, x, number, levels - 1);
                let y = self.compare(op, y, number, levels - 1);
                self.mux(on, x, y)
            }
            _ => self.raw(Node::Binary(op, a, number), 1),
        }
    }

    /// The sum of a choice of positions and a number.
    fn move_on(&mut self, a: NodeId, by: NodeId) -> NodeId {
        match self.value(a).node {
            Node::Mux(on, x, y) => {
                let sum = |graph: &mut Self, x| {
                    graph.node(Node::Binary(BinaryOp::Add, x, by), CURSOR_WIDTH)
                };
                let (x, y) = (sum(self, x), sum(self, y));
                self.mux(on, x, y)
            }
            _ => self.raw(Node::Binary(BinaryOp::Add, a, by), CURSOR_WIDTH),
        }
    }

    fn packet_at(&mut self, at: NodeId, width: u16) -> NodeId {
        match self.value(at).node {
            Node::Const(offset) => {
                // Beyond any packet: never reached, the length is checked before.
                self.raw(Node::Packet(u32::try_from(offset).unwrap_or(0)), width)
            }
            Node::Mux(on, x, y) => {
                let x = self.node(Node::PacketAt(x), width);
                let y = self.node(Node::PacketAt(y), width);
                self.mux(on, x, y)
            }
            _ => self.raw(Node::PacketAt(at), width),
        }
    }

    pub(super) fn slice(&mut self, a: NodeId, low: u16, width: u16) -> NodeId {
        if low == 0 && self.width(a) == width {
            return a;
        }
        match self.value(a).node {
            Node::Const(value) => self.number(value >> low, width),
            Node::Slice(inner, below) => self.slice(inner, low + below, width),
            Node::Concat(_, right) if low + width <= self.width(right) => {
                self.slice(right, low, width)
            }
            Node::Concat(left, right) if low >= self.width(right) => {
                let low = low - self.width(right);
                self.slice(left, low, width)
            }
            Node::Packet(offset) => {
                let above = self.width(a) - low - width;
                self.raw(Node::Packet(offset + u32::from(above)), width)
            }
            _ => self.raw(Node::Slice(a, low), width),
        }
    }

    pub(super) fn mux(&mut self, on: NodeId, a: NodeId, b: NodeId) -> NodeId {
        let width = self.width(a);
        let (mut a, mut b) = (a, b);
        match self.value(on).node {
            Node::Const(0) => return b,
            Node::Const(_) => return a,
            Node::Unary(UnaryOp::Not, inner) => return self.mux(inner, b, a),
            _ => {}
        }
        if let Node::Mux(also, inner, _) = self.value(a).node
            && also == on
        {
            a = inner;
        }
        if let Node::Mux(also, _, inner) = self.value(b).node
            && also == on
        {
            b = inner;
        }
        if a == b {
            return a;
        }
        if width == 1 {
            return self.choice(on, a, b);
        }
        self.raw(Node::Mux(on, a, b), width)
    }

    /// A choice between single bits.
    fn choice(&mut self, on: NodeId, a: NodeId, b: NodeId) -> NodeId {
        match (self.constant(a), self.constant(b)) {
            (Some(1), Some(_)) => on,
            (Some(_), Some(_)) => self.not(on, 1),
            (Some(1), None) => self.binary(BinaryOp::Or, on, b, 1),
            (None, Some(0)) => self.binary(BinaryOp::And, on, a, 1),
            (Some(_), None) => {
                let not = self.not(on, 1);
                self.binary(BinaryOp::And, not, b, 1)
            }
            (None, Some(_)) => {
                let not = self.not(on, 1);
                self.binary(BinaryOp::Or, not, a, 1)
            }
            (None, None) => self.raw(Node::Mux(on, a, b), 1),
        }
    }
}

/// The value of a node from those of its operands and their widths; 0 where it has none.
pub(super) fn compute(node: Node, width: u16, of: &dyn Fn(NodeId) -> (u128, u16)) -> u128 {
    let value = match node {
        Node::Const(value) => value,
        Node::Unary(UnaryOp::Not, a) => !of(a).0,
        Node::Unary(UnaryOp::Neg, a) => of(a).0.wrapping_neg(),
        Node::Binary(op, a, b) => {
            let ((a, width), (b, _)) = (of(a), of(b));
            binary(op, a, b, width)
        }
        Node::Slice(a, low) => of(a).0 >> low,
        Node::Concat(a, b) => {
            let ((a, _), (b, width)) = (of(a), of(b));
            (a << width) | b
        }
        Node::Resize(a, Sign::Unsigned) => of(a).0,
        Node::Resize(a, Sign::Signed) => {
            let (a, width) = of(a);
            signed(a, width).cast_unsigned()
        }
        Node::Mux(on, a, b) => {
            if of(on).0 == 1 {
                of(a).0
            } else {
                of(b).0
            }
        }
        Node::Input(_) | Node::Length | Node::Packet(_) | Node::PacketAt(_) => 0,
        Node::Result(..) => 0,
    };
    value & mask(width)
}
