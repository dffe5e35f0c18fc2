//! What the blocks cost. It takes minutes: `TRIMLINE_RTL_COST=1`.

use crate::bench::Block;
use crate::{data_path, header_align, header_merge, memory, places, widths};

/// The environment's word that costs are asked for.
const COST: &str = "TRIMLINE_RTL_COST";

/// The first case of each block, and a second where it is wider. The message RAM alone has no path.
const BLOCKS: [(&Block, usize); 13] = [
    (&widths::QUEUE, 0),
    (&widths::WIDEN, 0),
    (&widths::NARROW, 0),
    (&header_align::BLOCK, 0),
    (&header_align::BLOCK, 1),
    (&header_merge::BLOCK, 0),
    (&header_merge::BLOCK, 1),
    (&memory::RX_WRITER, 0),
    (&memory::RX_READER, 0),
    (&places::BLOCK, 1),
    (&memory::TX_WRITER, 0),
    (&memory::TX_READER, 0),
    (&data_path::BLOCK, 0),
];

#[test]
fn costs() {
    if std::env::var_os(COST).is_none() {
        println!("costs skipped: {COST} is not set");
        return;
    }
    for (block, case) in BLOCKS {
        let Some(cost) = block.cost(case) else { return };
        let name = format!("{} {:?}", block.name, block.cases[case]);
        println!(
            "{name}: {:.0} um^2, {} cells, {} flip-flops, {} bits of memory, {:.0} ps, {} to {}",
            cost.area,
            cost.cells,
            cost.flip_flops,
            cost.memory_bits,
            cost.period_ps,
            cost.path[0],
            cost.path[1]
        );
        assert!(cost.area > 0.0 && cost.period_ps > 0.0, "{name}");
    }
}
