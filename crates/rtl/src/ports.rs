//! The ports of a [NIC](crate::nic) by what they mean.

use endpoint::{Msg, MsgKey};
use nic::nano::config::Config;
use nic::nano::frame::{SWITCH_MAC, mac_of};
use nic::nano::meta::{carried_id, host_of, ip_of};
use units::HostId;

use crate::record::{Layout, Record};

/// A cycle in which nothing comes to host `me`.
pub(crate) fn idle(layout: &Layout, me: HostId) -> Record {
    let mut record = layout.zero();
    layout.set_named(&mut record, "nic_mac_i", mac_of(me).into());
    layout.set_named(&mut record, "switch_mac_i", SWITCH_MAC.into());
    layout.set_named(&mut record, "nic_ip_i", ip_of(me).into());
    record
}

/// The application submits `msg` (docs/nic.md, rules 5 and 7).
pub(crate) fn submit(layout: &Layout, record: &mut Record, config: &Config, msg: &Msg) {
    let own = config.protocols.get(usize::from(msg.transport));
    let protocol = own.or(config.protocols.first()).copied().unwrap_or(0);
    let mut set = |port, value| layout.set_named(record, port, value);
    set("submit_valid_i", 1);
    set("submit_protocol_i", protocol.into());
    set("submit_dst_ip_i", ip_of(msg.dst).into());
    set("submit_src_context_i", (msg.id.0 & 0xffff).into());
    set("submit_msg_len_i", msg.len.max(1).into());
    // The port is as wide as what of a number chooses no cell.
    set("submit_generation_i", (msg.id.0 >> 16).into());
}

/// A packet comes: its headers, and its length in bytes.
pub(crate) fn receive(layout: &Layout, record: &mut Record, headers: &[u8], length: u16) {
    layout.set_named(record, "rx_valid_i", 1);
    layout.set_named(record, "rx_length_i", length.into());
    layout.set_bytes(record, layout.port("rx_frame_i"), headers);
}

/// The slot that `NAME_valid_o` and `NAME_id_o` name, if one.
pub(crate) fn slot(layout: &Layout, outputs: &Record, name: &str) -> Option<usize> {
    let is_valid = layout.get_named(outputs, &format!("{name}_valid_o")) == 1;
    is_valid.then(|| layout.get_named(outputs, &format!("{name}_id_o")) as usize)
}

/// The message that is delivered, if one.
pub(crate) fn delivered(layout: &Layout, outputs: &Record, config: &Config) -> Option<MsgKey> {
    let get = |port| layout.get_named(outputs, port);
    let number = get("delivered_tx_msg_id_o") as u16;
    let context = get("delivered_src_context_o") as u16;
    let id = carried_id(number, context, config.tx_messages);
    let src = host_of(get("delivered_src_ip_o") as u32);
    (get("delivered_valid_o") == 1).then_some(MsgKey { src, id })
}

/// How many control packets found their queue full.
pub(crate) fn lost(layout: &Layout, outputs: &Record) -> u32 {
    (layout.get_named(outputs, "lost_o") as u32).count_ones()
}

/// The first bytes of a frame: port `NAME_frame_o`, of which `NAME_bytes_o` count.
pub(crate) fn frame(layout: &Layout, outputs: &Record, name: &str) -> Vec<u8> {
    let mut bytes = layout.get_bytes(outputs, layout.port(&format!("{name}_frame_o")));
    bytes.truncate(layout.get_named(outputs, &format!("{name}_bytes_o")) as usize);
    bytes
}
