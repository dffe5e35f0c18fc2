//! The side that receives: packets that come, reassembly, and what programs keep of messages.

use nic::nano::blocks::clocked::{GRANT_RESTART, LOOKUP};
use p4::ir;

use super::data::ALIGN;
use super::requests::{Asked, in_time};
use super::top::{Top, classes};
use super::{BEAT, INGRESS, NicError};

/// Cycles from a lookup to its answer (`@latency` in `nano.p4`).
pub(crate) const ANSWER: u64 = 2;

/// What of the answer the top says, too.
const FOUND: [&str; 4] = ["fail", "is_new_msg", "is_new_pkt", "is_done"];

impl Top<'_> {
    pub(super) fn clock(&mut self) {
        for (name, width) in [("nic_mac_i", 48), ("switch_mac_i", 48), ("nic_ip_i", 32)] {
            self.input(name, width);
        }
        self.line("// The number of this cycle (C1).");
        self.wire("now_q", 32);
        self.line("always_ff @(posedge clk_i or negedge rst_ni) begin");
        self.line("  if (!rst_ni) now_q <= '0;\n    else now_q <= now_q + 32'd1;\n  end");
    }

    /// What a pipeline is told beside its packet; `behind` is the cycle of the packet.
    pub(super) fn told(&self, name: &str, behind: u64) -> Option<String> {
        Some(match name {
            "nic.nic_mac" => "nic_mac_i".into(),
            "nic.switch_mac" => "switch_mac_i".into(),
            "nic.nic_ip" => "nic_ip_i".into(),
            "nic.rtt_pkts" => format!("16'd{}", self.config.rtt_packets),
            "nic.now" => format!("now_q - 32'd{behind}"),
            _ => return None,
        })
    }

    pub(super) fn arrivals(&mut self) -> Result<(), NicError> {
        let beats = self.ingress.window().div_ceil(BEAT).max(1);
        let bits = beats * BEAT * 8;
        self.input("rx_valid_i", 1);
        self.input("rx_frame_i", bits);
        self.input("rx_length_i", 16);
        self.line("// A packet waits, so that its lookup comes in cycle 4 (C2).");
        let wait = self.wait;
        // The way of the bytes has had a part of that already.
        let had = if self.is_joined { ALIGN } else { 0 };
        let left = wait.checked_sub(had).ok_or_else(|| NicError::Late {
            what: "get_rx_msg_info".into(),
            late: had - wait,
            key: "ingress_cycles",
        })?;
        let valid = self.later("rx_valid_i", 1, left);
        let frame = self.later("rx_frame_i", bits, left);
        let length = self.later("rx_length_i", 16, left);
        let window = self.ingress.window() * 8;
        let into = &mut self.into[INGRESS];
        into.insert("valid_i".into(), valid);
        into.insert("length_i".into(), length);
        if window > 0 {
            let text = if window == bits {
                frame.clone()
            } else {
                format!("{frame}[{}:{}]", bits - 1, bits - window)
            };
            into.insert("packet_i".into(), text);
        }
        if window < bits {
            let unused =
                if window == 0 { frame } else { format!("{frame}[{}:0]", bits - window - 1) };
            self.unused.push(unused);
        }
        let pipeline = &self.program.pipelines[INGRESS];
        for (meta, port) in pipeline.meta.iter().zip(&self.ingress.ports().meta_in) {
            let Some(port) = port else { continue };
            let told = self.told(&meta.name, wait).unwrap_or_else(|| "'0".into());
            self.into[INGRESS].insert(port.clone(), told);
        }
        Ok(())
    }

    pub(super) fn cycles(&self, time: units::Dur) -> u64 {
        self.config.tick().of(time).0
    }

    pub(super) fn reassembly(&mut self) -> Result<(), NicError> {
        let rx = u32::from(self.config.rx_messages);
        let id = rx.trailing_zeros().max(1);
        self.line("// Reassembly (C2, C4, C6, C7, C9).");
        for (name, width) in
            [("completed", 1), ("completed_id", id), ("expired", 1), ("expired_id", id)]
        {
            self.wire(name, width);
        }
        let asked = self.asked(INGRESS, "get_rx_msg_info", "", None)?;
        let (valid, args, results) = match &asked {
            Some(asked) => (asked.valid.clone(), asked.args.clone(), asked.results.clone()),
            None => ("1'b0".into(), vec!["'0".into(); 6], Vec::new()),
        };
        let names =
            ["mark_received", "src_ip", "src_context", "tx_msg_id", "msg_len", "pkt_offset"];
        let mut ports: Vec<String> =
            names.iter().zip(&args).map(|(name, arg)| format!(".{name}_i({arg})")).collect();
        let answers = [
            ("fail", 1),
            ("rx_msg_id", 16),
            ("is_new_msg", 1),
            ("is_new_pkt", 1),
            ("is_last_pkt", 1),
            ("ack_no", 9),
            ("is_done", 1),
        ];
        for (at, (name, width)) in answers.into_iter().enumerate() {
            let wire = format!("info_{name}");
            self.wire(&wire, width);
            ports.push(format!(".{name}_o({wire})"));
            match results.get(at) {
                Some(input) => drop(self.into[INGRESS].insert(input.clone(), wire)),
                None if FOUND.contains(&name) => {}
                None => self.unused.push(wire),
            }
        }
        self.wire("info_buf_ptr", 16);
        self.wire("restart", 1);
        self.wire("restart_id", id);
        let text = format!(
            "reassembly #(\n    .Ids({rx}), .TimeoutCycles({}), .Remember({}),\n    {}\n  ) \
             u_reassembly (\n    .clk_i, .rst_ni, .now_i(now_q), .valid_i({valid}),\n    {},\n    \
             .buf_ptr_o(info_buf_ptr), .granted_valid_i(restart), .granted_id_i(restart_id),\n    \
             .completed_valid_o(completed), .completed_id_o(completed_id),\n    \
             .expired_valid_o(expired), .expired_id_o(expired_id)\n  );",
            self.cycles(self.config.silence()),
            self.config.remember.unwrap_or(0),
            classes(self.config),
            ports.join(", ")
        );
        self.line(text);
        self.looked_up(&valid);
        self.deliveries(asked.as_ref())?;
        if self.is_joined {
            return self.places(asked.as_ref());
        }
        self.unused.push("info_buf_ptr".into());
        Ok(())
    }

    /// What a lookup has found, for who counts it.
    fn looked_up(&mut self, valid: &str) {
        let answers = self.later(valid, 1, ANSWER);
        self.output("looked_up_valid_o", 1, &answers);
        for name in FOUND {
            self.output(&format!("looked_up_{name}_o"), 1, &format!("info_{name}"));
        }
    }

    /// What the data path is told of a packet: where its payload belongs, when its lookup is
    /// answered, and what the program says of it, at its end.
    fn places(&mut self, asked: Option<&Asked>) -> Result<(), NicError> {
        let rx = u32::from(self.config.rx_messages);
        let id = rx.trailing_zeros().max(1);
        let results = self.wait + u64::from(self.ingress.latency());
        let answer = asked.map_or(0, |asked| asked.answered - asked.cycle);
        let arg = |at: usize| asked.map_or("'0", |asked| asked.args[at].as_str()).to_owned();
        let valid = asked.map_or("1'b0", |asked| asked.valid.as_str()).to_owned();
        let valid = self.later(&valid, 1, answer);
        let mark = self.later(&arg(0), 1, answer);
        let found = format!("{valid} && !info_fail && !info_is_done");
        self.output("lookup_valid_o", 1, &found);
        self.output("lookup_begins_o", 1, "info_is_new_msg");
        self.output("lookup_keep_o", 1, &format!("{mark} && info_is_new_pkt"));
        self.output("lookup_id_o", id, &format!("info_rx_msg_id[{}:0]", id - 1));
        self.output("lookup_buf_ptr_o", 16, "info_buf_ptr");
        for (name, at, width) in
            [("src_ip", 1, 32), ("src_context", 2, 16), ("msg_len", 4, 16), ("offset", 5, 8)]
        {
            let value = self.later(&arg(at), width, answer);
            self.output(&format!("lookup_{name}_o"), width, &value);
        }
        self.output("expired_valid_o", 1, "expired");
        self.output("expired_id_o", id, "expired_id");
        let whole = self.later("completed", 1, in_time("the lookup", LOOKUP + 1, results)?);
        let [last, drop, to] = ["is_last_pkt", "drop", "to"].map(|name| self.says(name));
        let wanted = format!("in_accepted_o && !{drop} && {to} == '0");
        self.output("results_valid_o", 1, "in_valid_o");
        self.output("results_bytes_o", 8, "in_bytes_o[7:0]");
        self.output("results_keep_o", 1, &format!("{wanted} && (!{whole} || {last})"));
        self.output("results_whole_o", 1, &whole);
        self.unused.push("in_bytes_o[15:8]".into());
        Ok(())
    }

    /// What the program says of a packet beside its headers; 0 if it does not.
    fn says(&self, field: &str) -> String {
        let at = self.program.pipelines[INGRESS].meta(&format!("ingress.{field}"));
        let port = at.and_then(|at| self.ingress.ports().meta_out.get(at)?.as_ref());
        port.map_or_else(|| "1'b0".to_owned(), |port| format!("in_{port}"))
    }

    /// A message that its lookup has found whole is announced when the packet takes effect, if the
    /// program says so (C7).
    fn deliveries(&mut self, asked: Option<&Asked>) -> Result<(), NicError> {
        let effect = u64::from(self.config.ingress_cycles);
        let results = self.wait + u64::from(self.ingress.latency());
        let by = in_time("the results of ingress", results, effect)?;
        let [last, drop, to] = ["is_last_pkt", "drop", "to"].map(|name| self.says(name));
        let says = format!("in_valid_o && in_accepted_o && {last} && !{drop} && {to} != 2'd1");
        self.assign("says_whole", 1, &says);
        let says = self.later("says_whole", 1, by);
        // With its bytes, a NIC has nobody who counts them.
        if !self.is_joined {
            let refused = format!("in_valid_o && (!in_accepted_o || {to} == 2'd1)");
            self.output("refused_o", 1, &refused);
        }
        // Reassembly knows one cycle behind the lookup.
        let whole = self.later("completed", 1, effect - LOOKUP - 1);
        self.output("delivered_valid_o", 1, &format!("{says} && {whole}"));
        for (name, at, width) in
            [("src_ip", 1, 32), ("src_context", 2, 16), ("tx_msg_id", 3, 16), ("msg_len", 4, 16)]
        {
            let value = asked.map_or_else(|| "'0".to_owned(), |asked| asked.args[at].clone());
            let value = self.later(&value, width, effect - LOOKUP);
            self.output(&format!("delivered_{name}_o"), width, &value);
        }
        Ok(())
    }

    pub(super) fn cells(&mut self) -> Result<(), NicError> {
        let rx = self.config.rx_messages;
        for kind in ["IfElseRaw", "DualPortRaw"] {
            for instance in self.instances(&[kind]) {
                let known = &self.program.externs[instance.index()];
                let width = u32::from(known.results.last().map_or(1, |value| value.width));
                let module = if kind == "IfElseRaw" { "if_else_raw" } else { "dual_port_raw" };
                let name = format!("cells_{}", instance.index());
                self.line(format!("// {}", known.instance));
                let first = self.asked(INGRESS, kind, "execute", Some(instance))?;
                let mut ports = self.cell_port(
                    &name,
                    width,
                    first.as_ref(),
                    &["index", "predicate", "op0", "data0", "op1", "data1"],
                    "",
                );
                if kind == "DualPortRaw" {
                    let second = self.asked(INGRESS, kind, "second", Some(instance))?;
                    let names = ["index", "op", "data"];
                    ports.extend(self.cell_port(&name, width, second.as_ref(), &names, "second_"));
                }
                self.line(format!(
                    "{module} #(.Ids({rx}), .Width({width})) u_{name} (\n    .clk_i, .rst_ni, {}\n  );",
                    ports.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Connections of a port of cells.
    fn cell_port(
        &mut self,
        name: &str,
        width: u32,
        asked: Option<&Asked>,
        args: &[&str],
        prefix: &str,
    ) -> Vec<String> {
        let value = format!("{name}_{prefix}value");
        self.wire(&value, width);
        let valid = asked.map_or("1'b0".to_owned(), |asked| asked.valid.clone());
        let mut ports = vec![format!(".{prefix}valid_i({valid})")];
        for (at, arg) in args.iter().enumerate() {
            let given = asked.map_or("'0", |asked| asked.args[at].as_str());
            ports.push(format!(".{prefix}{arg}_i({given})"));
        }
        ports.push(format!(".{prefix}value_o({value})"));
        match asked.and_then(|asked| asked.results.first()) {
            Some(input) => drop(self.into[INGRESS].insert(input.clone(), value)),
            None => self.unused.push(value),
        }
        ports
    }

    pub(super) fn scheduler(&mut self) -> Result<(), NicError> {
        let rx = u32::from(self.config.rx_messages);
        let id = rx.trailing_zeros().max(1);
        let instances = self.instances(&["SrptScheduler"]);
        if let Some(second) = instances.get(1) {
            return Err(NicError::Twice(ir::called(&self.program.externs[second.index()])));
        }
        let asked = self.asked(INGRESS, "SrptScheduler", "schedule", None)?;
        let Some(asked) = asked else {
            self.line("assign restart = 1'b0;\n  assign restart_id = '0;");
            self.unused.extend(["completed_id", "expired", "expired_id"].map(Into::into));
            return Ok(());
        };
        self.line("// The scheduler; ids that are free leave it behind the packet (C6).");
        let behind = asked.cycle.checked_sub(LOOKUP + 1).ok_or_else(|| NicError::Late {
            what: "SrptScheduler.schedule".into(),
            late: LOOKUP + 1 - asked.cycle,
            key: "ingress_cycles",
        })?;
        let drops = self.all_later(
            &[
                ("completed".into(), 1),
                ("completed_id".into(), id),
                ("expired".into(), 1),
                ("expired_id".into(), id),
            ],
            behind,
        );
        let args = ["rx_msg_id", "remove", "rank", "granted", "grantable"];
        let args: Vec<String> =
            args.iter().zip(&asked.args).map(|(name, arg)| format!(".{name}_i({arg})")).collect();
        let answers = [("success", 1), ("prio_level", 8), ("rx_msg_id", 16), ("grant_offset", 16)];
        let mut outs = Vec::new();
        for ((name, width), input) in answers.into_iter().zip(&asked.results) {
            let wire = format!("best_{name}");
            self.wire(&wire, width);
            outs.push(format!(".{name}_o({wire})"));
            self.into[INGRESS].insert(input.clone(), wire);
        }
        let level = self.program.externs[instances[0].index()].constructor.first();
        self.line(format!(
            "srpt #(.Ids({rx}), .Overcommitment({})) u_srpt (\n    .clk_i, .rst_ni, .valid_i({}), \
             {},\n    .drop_valid_i({{{}, {}}}), .drop0_id_i({}), .drop1_id_i({}),\n    {}\n  );",
            level.copied().unwrap_or(0),
            asked.valid,
            args.join(", "),
            drops[2],
            drops[0],
            drops[1],
            drops[3],
            outs.join(", ")
        ));
        let answered = asked.cycle + 2;
        let by = in_time("SrptScheduler.schedule", answered, LOOKUP + GRANT_RESTART.0)?;
        let restart = self.later("best_success", 1, by);
        let message = self.later(&format!("best_rx_msg_id[{}:0]", id - 1), id, by);
        self.line(format!("assign restart = {restart};\n  assign restart_id = {message};"));
        Ok(())
    }
}
