//! Read-modify-write units over one cell for each message id (specs/nanotransport.md#4).

/// What is done to a cell. Numbers other than those of `nano.p4` read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Leave it.
    Read,
    /// Replace it.
    Write,
    /// Add to it.
    Add,
}

impl Op {
    /// By its number in `nano.p4`.
    #[must_use]
    pub const fn from_number(n: u128) -> Self {
        match n {
            1 => Self::Write,
            2 => Self::Add,
            _ => Self::Read,
        }
    }
}

/// The cells of one register.
#[derive(Clone, Debug)]
pub struct Cells {
    cells: Vec<u128>,
    /// All ones in a cell's width.
    mask: u128,
}

impl Cells {
    /// `n` cells of zero, a power of two, with the ones of `mask` as their width.
    #[must_use]
    pub fn new(n: u16, mask: u128) -> Self {
        Self { cells: vec![0; usize::from(n)], mask }
    }

    /// Apply `op` with `data` to the cell that the low bits of `index` choose; its value
    /// afterwards.
    pub fn apply(&mut self, index: u128, op: Op, data: u128) -> u128 {
        let low = (index & u128::from(u16::MAX)) as usize & self.cells.len().wrapping_sub(1);
        let Some(cell) = self.cells.get_mut(low) else { return 0 };
        *cell = self.mask
            & match op {
                Op::Read => *cell,
                Op::Write => data,
                Op::Add => cell.wrapping_add(data),
            };
        *cell
    }

    /// ifElseRaw: the first operation if `predicate`, else the second.
    pub fn if_else(&mut self, index: u128, predicate: bool, ops: [(Op, u128); 2]) -> u128 {
        let (op, data) = ops[usize::from(!predicate)];
        self.apply(index, op, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_after_the_operation() {
        let mut cells = Cells::new(16, 0xffff);
        let ops = [(Op::Write, 10), (Op::Add, 2)];
        assert_eq!(cells.if_else(3, true, ops), 10);
        assert_eq!(cells.if_else(3, false, ops), 12);
        assert_eq!(cells.apply(3, Op::Read, 99), 12);
        assert_eq!(cells.apply(3 + 16, Op::Add, 0xffff), 11, "low bits; minus one");
        assert_eq!(cells.apply(4, Op::Add, 0x1_0001), 1, "modulo 2^16");
        assert_eq!([0, 1, 2, 3].map(Op::from_number), [Op::Read, Op::Write, Op::Add, Op::Read]);
    }
}
