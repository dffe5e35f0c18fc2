//! The ports of a [NIC](crate::nic) by what they mean.

use endpoint::{Msg, MsgKey};
use nic::nano::config::Config;
use nic::nano::frame::{SWITCH_MAC, mac_of};
use nic::nano::meta::{carried_id, host_of, ip_of};
use units::HostId;

use crate::record::{Layout, Record};

/// What a port of a NIC is: a name or a beginning of names, what the program calls it, and what it
/// means.
pub(crate) type Meaning = (&'static str, &'static str, &'static str);

/// A beat.
const BEAT: &str = "`beat_t` of `rtl/stream_pkg.sv`: 64 bytes, how many, whether the last";

/// All of a NIC. A port is what the first row says whose name it has or begins with.
pub(crate) const MEANINGS: &[Meaning] = &[
    ("clk_i", "", "clock: the cycles of the law (C1)"),
    ("rst_ni", "", "reset, active low"),
    ("nic_mac_i", "`nic.nic_mac`", "this NIC; constant while it runs"),
    ("switch_mac_i", "`nic.switch_mac`", "the other end of its link; constant"),
    ("nic_ip_i", "`nic.nic_ip`", "its address; constant"),
    ("rx_valid_i", "", "a packet comes; by the least spacing behind the one before, or later"),
    ("rx_frame_i", "the headers that ingress extracts", "its first bytes, the first at the top"),
    ("rx_length_i", "", "bytes of the whole packet"),
    ("rx_frame_valid_i", "", "a beat of a frame comes; its packet is one with the last (C1)"),
    ("rx_frame_ready_o", "", "it is taken"),
    ("rx_frame_beat_i", "headers that ingress extracts, and payload", BEAT),
    ("rx_wrong_length_o", "", "a frame has more payload or less than its headers say"),
    ("rx_app_valid_o", "", "a beat of a message that is whole"),
    ("rx_app_ready_i", "", "the application takes it"),
    ("rx_app_beat_o", "", BEAT),
    ("rx_app_src_ip_o", "`request.src_ip` of `get_rx_msg_info`", "who has sent the message"),
    ("rx_app_src_context_o", "`request.src_context`", "its context there"),
    ("rx_app_msg_len_o", "`request.msg_len`", "its bytes"),
    ("words_valid_i", "", "a beat of the message that was submitted last"),
    ("words_ready_o", "", "it is taken"),
    ("words_beat_i", "", BEAT),
    ("tx_wrong_length_o", "", "the application has given more bytes of a message, or fewer"),
    ("tx_frame_valid_o", "", "a beat of a frame leaves"),
    ("tx_frame_ready_i", "", "the MAC takes it"),
    ("tx_frame_beat_o", "headers that egress emits, and payload", BEAT),
    ("tx_room_o", "", "there is room for another packet behind the arbiter"),
    ("delivered_valid_o", "`meta.is_last_pkt`", "a message is whole (C7)"),
    ("delivered_src_ip_o", "`request.src_ip` of `get_rx_msg_info`", "who has sent it"),
    ("delivered_src_context_o", "`request.src_context`", "its context there"),
    ("delivered_tx_msg_id_o", "`request.tx_msg_id`", "its number there"),
    ("delivered_msg_len_o", "`request.msg_len`", "its bytes"),
    ("looked_up_valid_o", "", "`get_rx_msg_info` answers a packet that came; for who counts it"),
    ("looked_up_fail_o", "`fail` of its answer", "not taken, as without room for its message"),
    ("looked_up_is_new_msg_o", "`is_new_msg`", "the packet is the first of its message to come"),
    ("looked_up_is_new_pkt_o", "`is_new_pkt`", "it has not come before"),
    ("looked_up_is_done_o", "`is_done`", "its message was delivered before"),
    ("refused_o", "", "ingress refuses a packet, or leaves it to software; for who counts it"),
    ("arrived_", "`delivered`", "what a packet says has arrived, a cycle before that counts"),
    ("submit_valid_i", "", "the application has a message"),
    ("submit_protocol_i", "`meta.protocol` of egress", "IP protocol of its transport"),
    ("submit_dst_ip_i", "`meta.dst_ip` of egress", "whom it is for"),
    ("submit_dst_context_i", "`meta.dst_context` of egress", "context there (rule 7)"),
    ("submit_src_context_i", "`meta.src_context` of egress", "context here (rule 7)"),
    ("submit_msg_len_i", "`meta.msg_len` of egress", "its bytes, 1 or more"),
    ("submit_generation_i", "the top of `meta.tx_msg_id`", "what of its number chooses no id"),
    ("submit_ready_o", "", "there are an id and a buffer for it: it is taken in this cycle"),
    ("submit_id_o", "the bottom of `meta.tx_msg_id`", "the id that it gets"),
    ("submit_buf_ptr_o", "`meta.buf_ptr` of egress", "its buffer, in words of 64 bytes"),
    ("cancel_valid_i", "", "the application wants a message no more"),
    ("cancel_id_i", "", "its id"),
    ("repeats_valid_o", "", "a timeout repeats packets of a message of this host"),
    ("repeats_id_o", "", "its id"),
    ("acked_valid_o", "`delivered`", "all packets of a message of this host have arrived"),
    ("acked_id_o", "", "its id, which is free"),
    ("gave_up_valid_o", "", "a message of this host is given up (rule 15)"),
    ("gave_up_id_o", "", "its id, which is free"),
    ("lost_o", "", "control packets that found their queues full (C8): a bit each"),
    ("tx_open_i", "", "the wire lets the arbiter choose (C5)"),
    ("waits_o", "", "a packet waits for that"),
    ("chosen_valid_o", "", "the arbiter chooses a packet (C5)"),
    ("chosen_", "`meta` of egress", "the field of this name of the packet that is chosen"),
    ("tx_valid_o", "", "a packet begins, `egress_cycles` behind its choice"),
    ("tx_frame_o", "the headers that egress emits", "its headers, the first byte at the top"),
    ("tx_bytes_o", "", "how many bytes of headers"),
    ("made_valid_o", "", "the same packet as soon as its headers are made: for simulation"),
    ("made_frame_o", "the headers that egress emits", "its headers, the first byte at the top"),
    ("made_bytes_o", "", "how many bytes of headers"),
    ("made_", "`meta` of egress", "the field of this name that the packet is made from"),
];

/// What the port of this name is, by one of these.
pub(crate) fn meaning(of: &'static [Meaning], name: &str) -> Option<&'static Meaning> {
    let is_it =
        |(known, ..): &&Meaning| name == *known || known.ends_with('_') && name.starts_with(known);
    of.iter().find(is_it)
}

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
