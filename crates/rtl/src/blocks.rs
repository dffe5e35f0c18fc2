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

/// Those of the data path.
pub const DATA_BLOCKS: &[(&str, &str)] = &[
    block("stream_pkg", include_str!("../../../rtl/stream_pkg/stream_pkg.sv")),
    block("stream_fifo", include_str!("../../../rtl/stream_fifo/stream_fifo.sv")),
    block("payload_realign", include_str!("../../../rtl/header_align/payload_realign.sv")),
    block("header_align", include_str!("../../../rtl/header_align/header_align.sv")),
    block("header_merge", include_str!("../../../rtl/header_merge/header_merge.sv")),
    block("message_ram", include_str!("../../../rtl/message_ram/message_ram.sv")),
    block("burst_writer", include_str!("../../../rtl/burst_writer/burst_writer.sv")),
    block("burst_reader", include_str!("../../../rtl/burst_reader/burst_reader.sv")),
    block("rx_writer", include_str!("../../../rtl/rx_writer/rx_writer.sv")),
    block("rx_reader", include_str!("../../../rtl/rx_reader/rx_reader.sv")),
    block("tx_writer", include_str!("../../../rtl/tx_writer/tx_writer.sv")),
    block("tx_reader", include_str!("../../../rtl/tx_reader/tx_reader.sv")),
    block("data_path", include_str!("../../../rtl/data_path/data_path.sv")),
    block("frame_gate", include_str!("../../../rtl/frame_gate/frame_gate.sv")),
    block("rx_places", include_str!("../../../rtl/rx_places/rx_places.sv")),
    block("rx_packets", include_str!("../../../rtl/rx_packets/rx_packets.sv")),
    block("tx_packets", include_str!("../../../rtl/tx_packets/tx_packets.sv")),
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
