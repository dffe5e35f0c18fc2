//! The side that sends: packetization, the generator, the arbiter and the way out.

use p4::ir;

use super::requests::spare;
use super::top::{Top, classes};
use super::{BEAT, EARLY, EGRESS, NicError};
use crate::record::Port;

impl Top<'_> {
    pub(super) fn priorities(&mut self) -> Result<(), NicError> {
        let tx = u32::from(self.config.tx_messages);
        let id = tx.trailing_zeros().max(1);
        self.line("// Priorities of messages (C3, C5).");
        for (name, width) in [("prio_live", 1), ("prio_tx_msg_id", 16), ("prio_src_context", 16)] {
            self.wire(name, width);
        }
        let instances = self.instances(&["TxMsgPrio"]);
        if let Some(second) = instances.get(1) {
            return Err(NicError::Twice(ir::called(&self.program.externs[second.index()])));
        }
        let grant = self.effect("TxMsgPrio", "grant", EARLY)?;
        let read = self.asked(EGRESS, "TxMsgPrio", "read", None)?;
        let zeros = || vec!["1'b0".to_owned(), "16'd0".into(), "16'd0".into(), "8'd0".into()];
        let grant = grant.unwrap_or_else(zeros);
        self.line(format!(
            "assign prio_tx_msg_id = {};\n  assign prio_src_context = {};",
            grant[1], grant[2]
        ));
        if instances.is_empty() {
            self.unused.push("prio_live".into());
            return Ok(());
        }
        self.wire("prio", 8);
        let valid = self.later(&grant[0], 1, EARLY);
        let granted = self.later(&format!("prio_tx_msg_id[{}:0]", id - 1), id, EARLY);
        let prio = self.later(&grant[3], 8, EARLY);
        let cycle = read.as_ref().map_or(0, |read| read.cycle);
        let asked = read.as_ref().map_or_else(
            || "'0), .read_tx_msg_id_i('0), .read_update_i('0), .read_prio_i('0".to_owned(),
            |read| {
                format!(
                    "{}), .read_tx_msg_id_i({}), .read_update_i({}), .read_prio_i({}",
                    read.valid, read.args[0], read.args[1], read.args[2]
                )
            },
        );
        self.line(format!(
            "tx_msg_prio #(.Ids({tx}), .ReadCycles({cycle})) u_prio (\n    .clk_i, .rst_ni,\n    \
             .grant_valid_i({valid} && prio_live), .grant_id_i({granted}), \
             .grant_prio_i({prio}),\n    .read_valid_i({asked}), .prio_o(prio)\n  );"
        ));
        match read.as_ref().and_then(|read| read.results.first()) {
            Some(input) => drop(self.into[EGRESS].insert(input.clone(), "prio".into())),
            None => self.unused.push("prio".into()),
        }
        Ok(())
    }

    pub(super) fn packetization(&mut self) -> Result<(), NicError> {
        let config = self.config;
        let tx = u32::from(config.tx_messages);
        let id = tx.trailing_zeros().max(1);
        self.line("// Packetization (C3, C4, C8).");
        let submits = [
            ("submit_valid_i", 1),
            ("submit_protocol_i", 8),
            ("submit_dst_ip_i", 32),
            ("submit_dst_context_i", 16),
            ("submit_src_context_i", 16),
            ("submit_msg_len_i", 16),
            ("submit_generation_i", 16 - id),
        ];
        submits.iter().for_each(|(name, width)| self.input(name, *width));
        self.input("cancel_valid_i", 1);
        self.input("cancel_id_i", id);
        for (name, width) in [
            ("submit_ready_o", 1),
            ("submit_id_o", id),
            ("submit_buf_ptr_o", 16),
            ("repeats_valid_o", 1),
            ("repeats_id_o", id),
            ("acked_valid_o", 1),
            ("acked_id_o", id),
            ("gave_up_valid_o", 1),
            ("gave_up_id_o", id),
        ] {
            self.outputs.push(Port::new(name, width));
        }
        self.wire("has_data", 1);
        self.wire("take_data", 1);
        self.line("nano_pkg::egress_meta_t data_packet;");
        let names = ["valid", "tx_msg_id", "src_context", "pkts"];
        let delivered = self.effect_of("delivered", names.len())?;
        // With its bytes, a NIC has nobody who counts them.
        if !self.is_joined {
            for ((name, width), value) in names.iter().zip([1, 16, 16, 64]).zip(&delivered) {
                self.output(&format!("arrived_{name}_o"), width, value);
            }
        }
        let delivered = connected("delivered", &names, delivered);
        let names =
            ["valid", "tx_msg_id", "src_context", "rtx", "rtx_pkt_offset", "update", "new_credit"];
        let credit = connected("credit", &names, self.effect_of("credit_to_btx", names.len())?);
        let submits: Vec<String> = submits.iter().map(|(name, _)| format!(".{name}")).collect();
        let text = format!(
            "packetization #(\n    .Ids({tx}), .RttPkts({}), .TimeoutCycles({}), \
             .MaxTimeouts({}), .Probe(1'b{}),\n    {}\n  ) u_packetization (\n    .clk_i, .rst_ni, \
             .now_i(now_q), .has_data_o(has_data), .packet_o(data_packet), \
             .take_i(take_data),\n    {}, .submit_ready_o, .submit_id_o, .submit_buf_ptr_o,\n    .cancel_valid_i, .cancel_id_i, \
             .prio_tx_msg_id_i(prio_tx_msg_id), .prio_src_context_i(prio_src_context), \
             .prio_live_o(prio_live),\n    {},\n    {},\n    .repeats_valid_o, .repeats_id_o,\n    .done_valid_o(acked_valid_o), \
             .done_id_o(acked_id_o), .gave_up_valid_o, .gave_up_id_o\n  );",
            config.rtt_packets,
            self.cycles(config.timeout),
            config.max_timeouts.unwrap_or(0),
            u8::from(config.probe),
            classes(config),
            submits.join(", "),
            delivered.join(", "),
            credit.join(", ")
        );
        self.line(text);
        Ok(())
    }

    /// What an extern does to the sending side, a cycle before it counts; as many zeros if the
    /// program has none.
    fn effect_of(&mut self, kind: &str, values: usize) -> Result<Vec<String>, NicError> {
        Ok(self.effect(kind, "", EARLY)?.unwrap_or_else(|| vec!["'0".into(); values]))
    }

    pub(super) fn generator(&mut self) -> Result<(), NicError> {
        self.line("// The packet generator (C8).");
        let mut ports = Vec::new();
        for kind in ["ack", "nack", "ctrl", "grant"] {
            let asked = self.effect(&format!("{kind}_pkt"), "", 0)?;
            let (valid, packet) = match asked {
                // The notes behind the first fourteen are for programs that set flows.
                Some(values) => {
                    self.unused.extend(values[15..].iter().cloned());
                    (values[0].clone(), format!("{{{}}}", values[1..15].join(", ")))
                }
                None => ("1'b0".into(), "'0".into()),
            };
            ports.push(format!(".{kind}_valid_i({valid}), .{kind}_i({packet})"));
        }
        for (name, width) in [("has_control", 1), ("take_control", 1), ("lost", 5)] {
            self.wire(name, width);
        }
        self.line("nano_pkg::egress_meta_t control_packet;");
        self.line(format!(
            "generator #(.PullCycles({}), .MaxPulls({})) u_generator (\n    .clk_i, .rst_ni,\n    \
             {},\n    .has_control_o(has_control), .packet_o(control_packet), \
             .take_i(take_control), .lost_o(lost)\n  );",
            self.config.pull_cycles,
            self.config.max_pulls,
            ports.join(",\n    ")
        ));
        self.output("lost_o", 5, "lost");
        Ok(())
    }

    pub(super) fn departures(&mut self) -> Result<(), NicError> {
        self.input("tx_open_i", 1);
        self.output("waits_o", 1, "has_control || has_data");
        self.line("// The arbiter, and the way out (C5).");
        self.wire("chosen", 1);
        self.line("nano_pkg::egress_meta_t packet;");
        self.line(
            "arbiter u_arbiter (\n    .clk_i, .rst_ni, .tx_open_i, .has_control_i(has_control), \
             .control_i(control_packet),\n    .take_control_o(take_control), \
             .has_data_i(has_data), .data_i(data_packet), .take_data_o(take_data),\n    \
             .valid_o(chosen), .packet_o(packet)\n  );",
        );
        self.output("chosen_valid_o", 1, "chosen");
        // With its bytes, a NIC has nobody who counts them.
        let counted = [("tx_msg_id", 16), ("pkt_offset", 8), ("flags", 8)];
        for (field, width) in counted.into_iter().take(if self.is_joined { 0 } else { 3 }) {
            self.output(&format!("chosen_{field}_o"), width, &format!("packet.{field}"));
        }
        self.into[EGRESS].insert("valid_i".into(), "chosen".into());
        self.into[EGRESS].insert("length_i".into(), "'0".into());
        let pipeline = &self.program.pipelines[EGRESS];
        for (meta, port) in pipeline.meta.iter().zip(&self.egress.ports().meta_in) {
            let Some(port) = port else { continue };
            let field = meta.name.rsplit('.').next().unwrap_or_default();
            let told = self.told(&meta.name, 0).unwrap_or_else(|| {
                if field.starts_with("note") { "'0".into() } else { format!("packet.{field}") }
            });
            self.into[EGRESS].insert(port.clone(), told);
        }
        let latency = u64::from(self.egress.latency());
        let egress = u64::from(self.config.egress_cycles);
        let by = spare("the results of egress", latency, egress, "egress_cycles")?;
        if !self.egress.ports().header {
            return Err(NicError::Extern("an egress deparser that writes nothing".into()));
        }
        self.made(latency);
        if self.is_joined {
            self.ahead(latency, by)?;
            return Ok(());
        }
        let bits = self.width(EGRESS, "header_o");
        let all = bits.div_ceil(BEAT * 8) * BEAT * 8;
        let valid = self.later("out_valid_o", 1, by);
        let frame = self.later("out_header_o", bits, by);
        let bytes = self.later("out_header_length_o", 16, by);
        let frame = if all == bits { frame } else { format!("{{{frame}, {}'d0}}", all - bits) };
        self.output("tx_valid_o", 1, &valid);
        self.output("tx_frame_o", all, &frame);
        self.output("tx_bytes_o", 16, &bytes);
        Ok(())
    }

    /// What the data path is told of a packet: which buffer, when it is chosen, and its header, a
    /// cycle early: it waits for its payload in a queue.
    fn ahead(&mut self, latency: u64, by: u64) -> Result<(), NicError> {
        self.output("chosen_data_o", 1, "take_data");
        self.output("chosen_buf_ptr_o", 16, "packet.buf_ptr");
        let buf_ptr = self.later("packet.buf_ptr", 16, latency);
        self.output("made_buf_ptr_o", 16, &buf_ptr);
        let data = self.later("take_data", 1, latency);
        self.output("made_data_o", 1, &data);
        let early = spare("the results of egress", 1, by, "egress_cycles")?;
        let bits = self.width(EGRESS, "header_o");
        for (name, value, width) in [
            ("valid", "out_valid_o", 1),
            ("data", data.as_str(), 1),
            ("frame", "out_header_o", bits),
            ("bytes", "out_header_length_o", 16),
        ] {
            let value = self.later(value, width, early);
            self.output(&format!("header_{name}_o"), width, &value);
        }
        Ok(())
    }

    /// A packet as soon as it is made, and what it is, for whoever has the wire.
    pub(super) fn made(&mut self, latency: u64) {
        let bits = self.width(EGRESS, "header_o");
        self.output("made_valid_o", 1, "out_valid_o");
        self.output("made_frame_o", bits, "out_header_o");
        self.output("made_bytes_o", 16, "out_header_length_o");
        for (field, width) in [
            ("protocol", 8),
            ("dst_ip", 32),
            ("dst_context", 16),
            ("msg_len", 16),
            ("pkt_offset", 8),
            ("tx_msg_id", 16),
            ("flags", 8),
        ] {
            let value = self.later(&format!("packet.{field}"), width, latency);
            self.output(&format!("made_{field}_o"), width, &value);
        }
    }
}

/// Connections of ports `PREFIX_NAME_i`.
fn connected(prefix: &str, names: &[&str], values: Vec<String>) -> Vec<String> {
    let pairs = names.iter().zip(values);
    pairs.map(|(name, value)| format!(".{prefix}_{name}_i({value})")).collect()
}
