//! The hand-written blocks of `rtl/`.

/// Names and texts, packages before those that import them.
pub const BLOCKS: &[(&str, &str)] = &[
    block("nano_pkg", include_str!("../../../rtl/nano_pkg/nano_pkg.sv")),
    block("delay", include_str!("../../../rtl/delay/delay.sv")),
    block("fifo", include_str!("../../../rtl/fifo/fifo.sv")),
    block("timers", include_str!("../../../rtl/timers/timers.sv")),
    block("buffers", include_str!("../../../rtl/buffers/buffers.sv")),
    block("remembered", include_str!("../../../rtl/remembered/remembered.sv")),
    block("if_else_raw", include_str!("../../../rtl/if_else_raw/if_else_raw.sv")),
    block("dual_port_raw", include_str!("../../../rtl/dual_port_raw/dual_port_raw.sv")),
    block("tx_msg_prio", include_str!("../../../rtl/tx_msg_prio/tx_msg_prio.sv")),
    block("srpt", include_str!("../../../rtl/srpt/srpt.sv")),
    block("generator", include_str!("../../../rtl/generator/generator.sv")),
    block("arbiter", include_str!("../../../rtl/arbiter/arbiter.sv")),
    block("reassembly", include_str!("../../../rtl/reassembly/reassembly.sv")),
    block("packetization", include_str!("../../../rtl/packetization/packetization.sv")),
];

/// Those of a switch's port.
pub(crate) const OF_PORTS: &[(&str, &str)] = &[
    block("delay", include_str!("../../../rtl/delay/delay.sv")),
    block("fifo", include_str!("../../../rtl/fifo/fifo.sv")),
    block("trim_queue", include_str!("../../../rtl/trim_queue/trim_queue.sv")),
];

const fn block(name: &'static str, text: &'static str) -> (&'static str, &'static str) {
    (name, text)
}
