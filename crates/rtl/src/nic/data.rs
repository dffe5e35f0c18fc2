//! A NIC with its bytes: the control path and the data path (`rtl/data_path`) as one design,
//! between a MAC and a host. Frames and messages go in and out as beats of 64 bytes.
//!
//! The cycle of a packet (docs/nic.md, C1) is that in which the last beat of its frame is taken,
//! and the cycle of a submission that in which the message is taken. A packet that is chosen in
//! cycle d has its first beat at `tx_frame_valid_o` in d + `egress_cycles`, if the application has
//! given its bytes by then and the frame before it is out.

use std::fmt::Write as _;

use nic::nano::config::Config;
use p4::ir::{self, Program};
use p4::state::State;

use super::requests::in_time;
use super::top::{classes, logic};
use super::{BEAT, Nic, NicError};
use crate::blocks::DATA_BLOCKS;
use crate::emit::Module;
use crate::record::Port;

/// Cycles from a frame's last beat to its window.
pub(super) const ALIGN: u64 = 1;

/// Frames on their way to their writer, and messages that are whole and not read, at most: as many
/// buffers more than the law's are there, of each class (`rtl/rx_packets`).
const EXTRA: u32 = 8;

/// Beats of a frame that are let in: its packet comes with the last of them, if not before.
pub const BEATS: u32 = 32;

/// Packets that are chosen and have not left, at most.
const AHEAD: u32 = 8;

/// Bytes of the longest window and header that the data path has room for.
const LONGEST: u32 = 192;

/// Words that a buffer pointer reaches.
const MOST_WORDS: u32 = 1 << 16;

/// Bits of a beat: data, how many bytes, whether it is the last.
const BEAT_BITS: u32 = BEAT * 8 + 8;

/// The NIC of `config` with this program, and with its data path: its top module is `nic_data`.
///
/// # Errors
/// See [`NicError`].
pub fn build(program: &Program, state: &State, config: &Config) -> Result<Nic, NicError> {
    let [ingress, egress] = super::pipelines(program, state, config)?;
    let mut nic = super::control(program, config, (&ingress, &egress), true)?;
    let joined = Joined::new(program, config, &ingress, &nic)?;
    let (text, inputs, outputs) = joined.text();
    nic.files.push(("nic_data.sv".into(), text));
    nic.blocks.push(DATA_BLOCKS);
    Ok(Nic { top: "nic_data", inputs, outputs, ..nic })
}

/// The top module in the making.
struct Joined<'a> {
    config: &'a Config,
    control: &'a Nic,
    spacing: u32,
    /// Bytes of the window and of the longest header, with the byte that is behind it where there
    /// is no payload.
    window: u32,
    header: u32,
    /// Cycles from a lookup's answer to the results.
    behind: u64,
}

impl<'a> Joined<'a> {
    fn new(
        program: &Program,
        config: &'a Config,
        ingress: &Module,
        control: &'a Nic,
    ) -> Result<Self, NicError> {
        let bits = |name: &str| {
            let port = control.outputs.iter().find(|port| port.name() == name);
            port.map_or(0, Port::bits)
        };
        let (window, header) = (ingress.window().max(1), bits("header_frame_o") / 8 + 1);
        for (what, bytes) in [("parser's window", window), ("header", header - 1)] {
            if bytes >= LONGEST {
                return Err(NicError::Header { what, bytes, most: LONGEST - 1 });
            }
        }
        let lookup = ingress.requests().iter().find(|asked| {
            matches!(asked.port, ir::Port::Call(which)
                if program.externs[which.index()].kind == "get_rx_msg_info")
        });
        let latency = u64::from(ingress.latency());
        let answered = lookup.map_or(latency, |asked| u64::from(asked.cycle + asked.latency));
        let behind = in_time("the answer of get_rx_msg_info", answered, latency)?;
        let spacing = ingress.spacing().max(1);
        let joined = Self { config, control, spacing, window, header, behind };
        match joined.words() {
            (_, words) if words > MOST_WORDS => Err(NicError::Size {
                key: "buffers",
                value: words.into(),
                wanted: "at most 65536 words of 64 bytes, with 8 buffers more of each size class",
            }),
            _ => Ok(joined),
        }
    }

    /// Words of 64 bytes of both memories: what is sent, what comes.
    fn words(&self) -> (u32, u32) {
        let words = |more: u32| {
            let classes = self.config.classes.iter();
            classes.map(|class| class.bytes.div_ceil(64) * (u32::from(class.buffers) + more)).sum()
        };
        (words(0), words(EXTRA))
    }

    /// Bits of a port of the control path, 1 if there is none.
    fn bits(&self, name: &str) -> u32 {
        let ports = self.control.inputs.iter().chain(&self.control.outputs);
        ports.clone().find(|port| port.name() == name).map_or(1, Port::bits)
    }

    /// Ports: what the control path shares with the outside, frames, and messages.
    fn ports(&self) -> (Vec<Port>, Vec<Port>) {
        let shared = |ports: &[Port], names: &[&str]| -> Vec<Port> {
            let is_one = |port: &&Port| names.iter().any(|name| port.name().starts_with(name));
            ports.iter().filter(is_one).cloned().collect()
        };
        let streams = |ports: &[(&str, u32)]| -> Vec<Port> {
            ports.iter().map(|(name, bits)| Port::new(name, *bits)).collect()
        };
        let mut inputs = shared(&self.control.inputs, &SHARED_INPUTS);
        inputs.extend(streams(&[
            ("rx_frame_valid_i", 1),
            ("rx_frame_beat_i", BEAT_BITS),
            ("rx_app_ready_i", 1),
            ("words_valid_i", 1),
            ("words_beat_i", BEAT_BITS),
            ("tx_frame_ready_i", 1),
        ]));
        let mut outputs = shared(&self.control.outputs, &SHARED_OUTPUTS);
        outputs.extend(streams(&[
            ("submit_ready_o", 1),
            ("words_ready_o", 1),
            ("rx_frame_ready_o", 1),
            ("rx_app_valid_o", 1),
            ("rx_app_beat_o", BEAT_BITS),
            ("rx_app_src_ip_o", 32),
            ("rx_app_src_context_o", 16),
            ("rx_app_msg_len_o", 16),
            ("rx_wrong_length_o", 1),
            ("tx_wrong_length_o", 1),
            ("tx_frame_valid_o", 1),
            ("tx_frame_beat_o", BEAT_BITS),
            ("tx_room_o", 1),
        ]));
        (inputs, outputs)
    }

    /// The control path with a wire for each port that is not one of the top.
    fn control(&self, body: &mut String, (inputs, outputs): (&[Port], &[Port])) {
        let ports = self.control.inputs.iter().chain(&self.control.outputs);
        let mut connections = Vec::new();
        for port in ports {
            let name = port.name();
            if inputs.iter().chain(outputs).any(|shared| shared == port && name != "submit_ready_o")
                && !GATED.contains(&name)
            {
                connections.push(format!(".{name}"));
            } else {
                let _ = writeln!(body, "  {} n_{name};", logic(port.bits()));
                connections.push(format!(".{name}(n_{name})"));
            }
        }
        let _ = writeln!(
            body,
            "  nic u_nic (\n    .clk_i, .rst_ni,\n    {}\n  );",
            connections.join(",\n    ")
        );
    }

    fn text(&self) -> (String, Vec<Port>, Vec<Port>) {
        let (inputs, outputs) = self.ports();
        let mut text = HEAD.to_owned();
        let ways = inputs.iter().map(|port| ("input ", port));
        for (way, port) in ways.chain(outputs.iter().map(|port| ("output", port))) {
            let kind = if port.bits() == BEAT_BITS {
                "stream_pkg::beat_t".into()
            } else {
                logic(port.bits())
            };
            let _ = write!(text, ",\n  {way} {kind} {}", port.name());
        }
        text += "\n);\n";
        self.control(&mut text, (&inputs, &outputs));
        let frame = self.bits("rx_frame_i");
        let made = self.bits("header_frame_o");
        let (tx_words, rx_words) = self.words();
        let rx = u32::from(self.config.rx_messages);
        let numbers = [
            ("@WINDOW@", self.window),
            ("@HEADER@", self.header),
            ("@FRAME_BYTES@", frame / 8),
            ("@MADE_BYTES@", made / 8),
            ("@TX_WORDS@", tx_words),
            ("@RX_WORDS@", rx_words),
            ("@RX_IDS@", rx),
            ("@EXTRA@", EXTRA),
            ("@AHEAD@", AHEAD),
            ("@BEHIND@", self.behind as u32),
            ("@SPACING@", self.spacing),
            ("@BEATS@", BEATS),
            ("@ALL_BEATS@", 2 * BEATS),
        ];
        let body = BODY.replace("@CLASSES@", &classes(self.config));
        text += &numbers
            .iter()
            .fold(body, |body, (name, number)| body.replace(name, &number.to_string()));
        (text, inputs, outputs)
    }
}

/// Ports of the control path that are the top's.
const SHARED_INPUTS: [&str; 6] =
    ["nic_mac_i", "switch_mac_i", "nic_ip_i", "submit_", "cancel_", "tx_open_i"];
const SHARED_OUTPUTS: [&str; 8] = [
    "delivered_",
    "submit_id_o",
    "acked_",
    "gave_up_",
    "lost_o",
    "waits_o",
    "looked_up_",
    "repeats_",
];

/// Those of them that the data path comes between.
const GATED: [&str; 3] = ["submit_valid_i", "submit_msg_len_i", "tx_open_i"];

const HEAD: &str = "// Made by trimline: a NIC with its bytes. Do not change it.
module nic_data (
  input  logic clk_i,
  input  logic rst_ni";

const BODY: &str = r"
  // Frames that come: a packet is one when the last beat of its frame is taken.
  logic frame_valid, frame_ready, frame_taken, frame_open;
  stream_pkg::beat_t frame_beat;
  frame_gate #(.Spacing(@SPACING@), .Longest(@BEATS@)) u_frame_gate (
    .clk_i, .rst_ni, .open_i(frame_open),
    .in_valid_i(rx_frame_valid_i), .in_ready_o(rx_frame_ready_o), .in_beat_i(rx_frame_beat_i),
    .out_valid_o(frame_valid), .out_ready_i(frame_ready), .out_beat_o(frame_beat),
    .taken_o(frame_taken)
  );

  // P4's first byte is the highest.
  logic [8*@WINDOW@-1:0] window;
  always_comb begin
    n_rx_frame_i = '0;
    for (int unsigned i = 0; i < @WINDOW@; i++) begin
      n_rx_frame_i[8*(@FRAME_BYTES@-1-i) +: 8] = window[8*i +: 8];
    end
  end

  logic        packet_valid, packet_ready, packet_keep, packet_whole;
  logic [15:0] packet_buf_ptr, packet_msg_len, packet_src_context, dropped_place, done_place;
  logic [31:0] packet_src_ip;
  logic [7:0]  packet_offset;
  logic        dropped_valid, done_valid;
  rx_packets #(
    .Ids(@RX_IDS@), .Extra(@EXTRA@), .Behind(@BEHIND@),
    @CLASSES@
  ) u_rx_packets (
    .clk_i, .rst_ni,
    .frame_taken_i(frame_taken), .frame_open_o(frame_open),
    .lookup_valid_i(n_lookup_valid_o), .lookup_begins_i(n_lookup_begins_o),
    .lookup_keep_i(n_lookup_keep_o), .lookup_id_i(n_lookup_id_o),
    .lookup_buf_ptr_i(n_lookup_buf_ptr_o), .lookup_offset_i(n_lookup_offset_o),
    .lookup_msg_len_i(n_lookup_msg_len_o), .lookup_src_ip_i(n_lookup_src_ip_o),
    .lookup_src_context_i(n_lookup_src_context_o),
    .expired_valid_i(n_expired_valid_o), .expired_id_i(n_expired_id_o),
    .results_valid_i(n_results_valid_o), .results_whole_i(n_results_whole_o),
    .results_keep_i(n_results_keep_o),
    .packet_valid_o(packet_valid), .packet_ready_i(packet_ready), .packet_keep_o(packet_keep),
    .packet_whole_o(packet_whole), .packet_buf_ptr_o(packet_buf_ptr),
    .packet_offset_o(packet_offset), .packet_msg_len_o(packet_msg_len),
    .packet_src_ip_o(packet_src_ip), .packet_src_context_o(packet_src_context),
    .dropped_valid_i(dropped_valid), .dropped_place_i(dropped_place),
    .done_valid_i(done_valid), .done_place_i(done_place)
  );

  // A message is submitted when nothing of its buffer's last message is on its way any longer.
  logic submit_busy, submit_ready;
  assign submit_ready_o = submit_ready && !submit_busy;

  // Packets that are chosen and have not left.
  logic        header_valid, header_ready, header_payload, tx_room;
  logic [7:0]  header_bytes;
  logic [8*@HEADER@-1:0] made_header, header;
  assign tx_room_o     = tx_room;
  assign n_tx_open_i   = tx_open_i && tx_room;
  always_comb begin
    made_header = '0;
    for (int unsigned i = 0; i < @MADE_BYTES@; i++) begin
      made_header[8*i +: 8] = n_header_frame_o[8*(@MADE_BYTES@-1-i) +: 8];
    end
  end
  tx_packets #(.Ahead(@AHEAD@), .HeaderBytes(@HEADER@)) u_tx_packets (
    .clk_i, .rst_ni, .room_o(tx_room),
    .chosen_valid_i(n_chosen_valid_o), .chosen_data_i(n_chosen_data_o),
    .chosen_buf_ptr_i(n_chosen_buf_ptr_o),
    .ask_buf_ptr_i(n_submit_buf_ptr_o), .busy_o(submit_busy),
    .made_valid_i(n_header_valid_o), .made_data_i(n_header_data_o), .made_header_i(made_header),
    .made_bytes_i(n_header_bytes_o[7:0]),
    .header_valid_o(header_valid), .header_ready_i(header_ready), .header_o(header),
    .header_bytes_o(header_bytes), .header_payload_o(header_payload),
    .gone_i(tx_frame_valid_o && tx_frame_ready_i && tx_frame_beat_o.last)
  );

  logic        reader_ready, window_valid;
  logic [7:0]  window_bytes;
  logic [31:0] writer_dst_ip;
  logic [15:0] writer_dst_context;
  data_path #(
    .HeaderBytes(@HEADER@), .WindowBytes(@WINDOW@), .Words(@TX_WORDS@), .RxWords(@RX_WORDS@),
    .Messages(@EXTRA@), .Beats(@ALL_BEATS@), .Packets(@AHEAD@)
  ) u_data_path (
    .clk_i, .rst_ni,
    .rx_frame_valid_i(frame_valid), .rx_frame_ready_o(frame_ready), .rx_frame_beat_i(frame_beat),
    .rx_window_valid_o(window_valid), .rx_window_o(window), .rx_window_bytes_o(window_bytes),
    .rx_length_valid_o(n_rx_valid_i), .rx_length_o(n_rx_length_i),
    .rx_parsed_valid_i(n_results_valid_o), .rx_parsed_bytes_i(n_results_bytes_o),
    .rx_parsed_drop_i(1'b0),
    .rx_packet_valid_i(packet_valid), .rx_packet_ready_o(packet_ready),
    .rx_packet_keep_i(packet_keep), .rx_packet_whole_i(packet_whole),
    .rx_packet_buf_ptr_i(packet_buf_ptr), .rx_packet_offset_i(packet_offset),
    .rx_packet_msg_len_i(packet_msg_len), .rx_packet_src_ip_i(packet_src_ip),
    .rx_packet_src_context_i(packet_src_context),
    .rx_dropped_valid_o(dropped_valid), .rx_dropped_buf_ptr_o(dropped_place),
    .rx_wrong_length_o,
    .rx_app_valid_o, .rx_app_ready_i, .rx_app_beat_o,
    .rx_app_src_ip_o, .rx_app_src_context_o, .rx_app_msg_len_o,
    .rx_done_valid_o(done_valid), .rx_done_buf_ptr_o(done_place),
    .tx_app_valid_i(submit_valid_i && !submit_busy), .tx_app_ready_o(submit_ready),
    .tx_app_dst_ip_i(submit_dst_ip_i), .tx_app_dst_context_i(submit_dst_context_i),
    .tx_app_msg_len_i(submit_msg_len_i),
    .tx_words_valid_i(words_valid_i), .tx_words_ready_o(words_ready_o),
    .tx_words_beat_i(words_beat_i),
    .tx_submit_valid_o(n_submit_valid_i), .tx_submit_ready_i(n_submit_ready_o),
    .tx_submit_dst_ip_o(writer_dst_ip), .tx_submit_dst_context_o(writer_dst_context),
    .tx_submit_msg_len_o(n_submit_msg_len_i), .tx_submit_buf_ptr_i(n_submit_buf_ptr_o),
    .tx_wrong_length_o,
    .tx_packet_valid_i(n_made_valid_o && n_made_data_o && n_made_bytes_o != '0),
    .tx_packet_ready_o(reader_ready), .tx_packet_buf_ptr_i(n_made_buf_ptr_o),
    .tx_packet_offset_i(n_made_pkt_offset_o), .tx_packet_msg_len_i(n_made_msg_len_o),
    .tx_header_valid_i(header_valid), .tx_header_ready_o(header_ready), .tx_header_i(header),
    .tx_header_bytes_i(header_bytes), .tx_header_payload_i(header_payload),
    .tx_frame_valid_o, .tx_frame_ready_i, .tx_frame_beat_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
    end else begin
      room_for_each_packet: assert (!n_made_valid_o || reader_ready);
    end
  end

  // What the simulation of the control path alone wants to know, and what passes twice.
  logic unused;
  assign unused = ^{window_valid, window_bytes, writer_dst_ip, writer_dst_context,
                    n_header_bytes_o[15:8], n_made_frame_o, n_made_protocol_o, n_made_dst_ip_o,
                    n_made_dst_context_o, n_made_tx_msg_id_o, n_made_flags_o};
endmodule
";
