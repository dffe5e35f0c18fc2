//! Accesses: registers, counters and tables inside, externs outside.

use p4::ir::circuit::{AccessId, LENGTH_WIDTH, Node, NodeId};
use p4::ir::{self, Choice, CounterId, Pattern, RegisterId, TableId, mask};

use super::text::{Operand, literal, logic};
use super::{Emitter, Reading, Request, names};

/// Width of what a counter counts.
const COUNT_WIDTH: u32 = 64;

/// Width of an index of the control plane.
const INDEX_WIDTH: u16 = 32;

/// What signals of an access end in, beside those of a table's answers.
const ENDS: [&str; 9] = [
    "_enable",
    "_place",
    "_data",
    "_length",
    "_packets",
    "_bytes",
    "_answer",
    "_hit",
    "_forwarded",
];

/// Bits that choose one of so many cells, two or more.
fn address_width(size: u32) -> u16 {
    (u32::BITS - (size - 1).leading_zeros()) as u16
}

/// The cell of an index as an array of so many cells wants it.
fn address(index: &Operand, size: u32) -> String {
    let bits = if size > 1 { address_width(size) } else { 0 };
    match index.width {
        _ if bits == 0 => "0".into(),
        width if width >= bits => index.bits(0, bits),
        width => format!("{{{}'d0, {}}}", bits - width, index.text),
    }
}

impl Emitter<'_> {
    /// Names for what belongs to accesses, and the registers and counters that are inside.
    pub(super) fn memories(&mut self) {
        for id in self.circuit.access_ids() {
            let port = self.circuit.access(id).port;
            let answers = self.circuit.access(id).results.len();
            let ends = (0..answers).flat_map(|at| [format!("_found{at}"), format!("_answer{at}")]);
            let ends: Vec<String> = ENDS.map(str::to_owned).into_iter().chain(ends).collect();
            let base = self.names.signal(&self.port_name(port), &ends);
            self.bases.push(base);
        }
        let ports: Vec<ir::Port> = self.accesses().map(|id| self.circuit.access(id).port).collect();
        for (id, register) in (0..).map(RegisterId).zip(&self.program.registers) {
            let own = ports
                .iter()
                .find(|port| **port == ir::Port::Read(id) || **port == ir::Port::Write(id));
            if own.is_some_and(|port| !self.is_shared(*port)) {
                self.register(id, register);
            }
        }
        for (id, counter) in (0..).map(CounterId).zip(&self.program.counters) {
            let port = ir::Port::Count(id);
            if ports.contains(&port) && !self.is_shared(port) {
                self.counter(id, counter);
            }
        }
    }

    /// What an access is called: without the controls around it.
    fn port_name(&self, port: ir::Port) -> String {
        let name = port.name(self.program);
        let parts: Vec<&str> = name.split('.').collect();
        parts[parts.len().saturating_sub(2)..].join("_")
    }

    /// A signal that belongs to an access.
    fn own(&self, id: AccessId, what: &str) -> String {
        format!("{}_{what}", self.bases[id.index()])
    }

    /// The array of a register.
    fn array(&self, id: RegisterId) -> String {
        let name = &self.program.registers[id.index()].name;
        format!("{}_{}_mem", names::plain(name), id.0)
    }

    fn sites(&self, port: ir::Port) -> Vec<AccessId> {
        self.accesses().filter(|at| self.circuit.access(*at).port == port).collect()
    }

    fn register(&mut self, id: RegisterId, known: &ir::Register) {
        let array = self.array(id);
        self.names.unique(&array, "");
        let place = self.place(known.place);
        self.line(&format!("// Register {}: {place}", known.name));
        self.line(&format!("{} {array} [{}];", logic(known.width.into()), known.size));
        let index = self.names.port(&format!("{}_index", names::plain(&known.name)), "_i");
        self.input(index.clone(), INDEX_WIDTH.into());
        let value = self.names.port(&format!("{}_value", names::plain(&known.name)), "_o");
        self.output(value.clone(), known.width.into());
        let text = self.control_plane(&array, &index, known.size, known.width.into());
        self.line(&format!("assign {value} = {text};"));
        let (name, size) = (known.name.clone(), known.size);
        self.module.readings.push(Reading { name, index, values: vec![value], size });
        self.inside.push(ir::Port::Write(id));
    }

    /// A value of an array for the control plane; 0 beyond its end.
    fn control_plane(&mut self, array: &str, index: &str, size: u32, width: u32) -> String {
        self.read_all(index);
        let operand = Operand { text: index.to_owned(), width: INDEX_WIDTH, number: None };
        let at = address(&operand, size);
        format!("({index} < 32'd{size}) ? {array}[{at}] : {width}'d0")
    }

    /// A counter: a pair of arrays for each access, since packets may come to several at once.
    fn counter(&mut self, id: CounterId, known: &ir::Counter) {
        let sites = self.sites(ir::Port::Count(id));
        let place = self.place(known.place);
        self.line(&format!("// Counter {}: {place}", known.name));
        let index = self.names.port(&format!("{}_index", names::plain(&known.name)), "_i");
        self.input(index.clone(), INDEX_WIDTH.into());
        let mut values = Vec::new();
        for what in ["packets", "bytes"] {
            let mut parts = Vec::new();
            for at in &sites {
                let array = self.own(*at, what);
                self.line(&format!("{} {array} [{}];", logic(COUNT_WIDTH), known.size));
                let part = self.control_plane(&array, &index, known.size, COUNT_WIDTH);
                parts.push(format!("({part})"));
            }
            let name = format!("{}_{what}", names::plain(&known.name));
            let value = self.names.port(&name, "_o");
            self.output(value.clone(), COUNT_WIDTH);
            self.line(&format!("assign {value} = {};", parts.join(" + ")));
            values.push(value);
        }
        let (name, size) = (known.name.clone(), known.size);
        self.module.readings.push(Reading { name, index, values, size });
        self.inside.push(ir::Port::Count(id));
    }

    /// What changes memories and what is read of them, behind the wires that say how.
    pub(super) fn changes(&mut self) {
        for port in std::mem::take(&mut self.inside) {
            match port {
                ir::Port::Write(id) => {
                    self.writes(id);
                    self.sites(ir::Port::Read(id)).into_iter().for_each(|at| self.answer(at, id));
                }
                _ => self.sites(port).into_iter().for_each(|at| self.count(at)),
            }
        }
        for id in std::mem::take(&mut self.forwarded) {
            self.forward(id);
        }
    }

    /// The writes of packets ahead that a read may meet in its cycle.
    fn ahead(&self, read: AccessId, register: RegisterId) -> Vec<AccessId> {
        let closest = self.schedule.access(read).cycle + self.module.spacing;
        let mut writes = self.sites(ir::Port::Write(register));
        writes.retain(|write| self.schedule.access(*write).cycle >= closest);
        writes
    }

    /// Whether a write and a read are of one cell.
    fn meet(&self, write: AccessId, read: AccessId, size: u32) -> String {
        let [enable, place] = ["enable", "place"].map(|what| self.own(write, what));
        if size == 1 {
            enable
        } else {
            format!("{enable} && {place} == {}", self.own(read, "place"))
        }
    }

    fn writes(&mut self, id: RegisterId) {
        let array = self.array(id);
        let size = self.program.registers[id.index()].size;
        self.line("always_ff @(posedge clk_i or negedge rst_ni) begin");
        self.line(&format!("  if (!rst_ni) {array} <= '{{default: '0}};"));
        for at in self.sites(ir::Port::Write(id)) {
            let [enable, data] = ["enable", "data"].map(|what| self.own(at, what));
            let place = self.cell(at, size);
            self.line(&format!("  else if ({enable}) {array}[{place}] <= {data};"));
        }
        self.line("end");
    }

    fn cell(&self, at: AccessId, size: u32) -> String {
        if size == 1 { "0".into() } else { self.own(at, "place") }
    }

    fn count(&mut self, at: AccessId) {
        let ir::Port::Count(counter) = self.circuit.access(at).port else { return };
        let place = self.cell(at, self.program.counters[counter.index()].size);
        let [enable, length, packets, bytes] =
            ["enable", "length", "packets", "bytes"].map(|what| self.own(at, what));
        let zeros = COUNT_WIDTH - u32::from(LENGTH_WIDTH);
        for line in [
            "always_ff @(posedge clk_i or negedge rst_ni) begin".to_owned(),
            "  if (!rst_ni) begin".to_owned(),
            format!("    {packets} <= '{{default: '0}};"),
            format!("    {bytes} <= '{{default: '0}};"),
            format!("  end else if ({enable}) begin"),
            format!("    {packets}[{place}] <= {packets}[{place}] + 64'd1;"),
            format!("    {bytes}[{place}] <= {bytes}[{place}] + {{{zeros}'d0, {length}}};"),
            "  end".to_owned(),
            "end".to_owned(),
        ] {
            self.line(&line);
        }
    }

    /// Whether the memory of an access is outside.
    fn is_outside(&self, port: ir::Port) -> bool {
        match port {
            ir::Port::Call(_) => true,
            ir::Port::LookUp(_) => false,
            port => self.is_shared(port),
        }
    }

    pub(super) fn access(&mut self, id: AccessId) {
        let access = self.circuit.access(id);
        let (port, args) = (access.port, access.args.clone());
        let places: Vec<String> = access.places.iter().map(|place| self.place(*place)).collect();
        let cycle = self.schedule.access(id).cycle;
        let name = port.name(self.program);
        self.line(&format!("// {name}, cycle {cycle}: {}", places.join(", ")));
        if self.is_outside(port) {
            return self.request(id);
        }
        match port {
            ir::Port::Read(register) => self.read_register(id, register),
            ir::Port::Write(register) => {
                let known = &self.program.registers[register.index()];
                self.place_of(id, known.size);
                let data = self.operand(args[1], cycle).text;
                self.inner(id, "data", known.width.into(), &data);
            }
            ir::Port::Count(counter) => {
                self.place_of(id, self.program.counters[counter.index()].size);
                let length = self.operand(args[1], cycle).text;
                self.inner(id, "length", LENGTH_WIDTH.into(), &length);
            }
            ir::Port::LookUp(table) => self.look_up(id, table),
            ir::Port::Call(_) => {}
        }
    }

    /// A wire of an access that is read.
    fn inner(&mut self, id: AccessId, what: &str, width: u32, value: &str) {
        let name = self.own(id, what);
        self.wire(&name, width, value, "");
        self.read_all(&name);
    }

    /// Whether and where an access to an array happens.
    fn place_of(&mut self, id: AccessId, size: u32) {
        let cycle = self.schedule.access(id).cycle;
        let access = self.circuit.access(id);
        let (on, index) = (access.on, access.args[0]);
        let on = self.operand(on, cycle).text;
        let index = self.operand(index, cycle);
        let mut enable = format!("{} && {on}", self.valid(cycle));
        if mask(index.width) >= u128::from(size) {
            let within = match index.number {
                Some(number) => format!("1'b{}", u8::from(number < u128::from(size))),
                None => format!("{} < {}", index.text, literal(size.into(), index.width)),
            };
            enable = format!("{enable} && {within}");
        }
        self.inner(id, "enable", 1, &enable);
        if size > 1 {
            self.inner(id, "place", address_width(size).into(), &address(&index, size));
        }
    }

    fn read_register(&mut self, id: AccessId, register: RegisterId) {
        let known = &self.program.registers[register.index()];
        let (size, width) = (known.size, u32::from(known.width));
        self.place_of(id, size);
        let answer = self.own(id, "answer");
        self.declare(&answer, width);
        self.line(&format!("{} {answer};", logic(width)));
        self.answers[id.index()] = vec![answer];
    }

    /// What is read of a register inside: what a packet ahead writes in this cycle, or else what
    /// the register has.
    fn answer(&mut self, id: AccessId, register: RegisterId) {
        let known = &self.program.registers[register.index()];
        let (size, width) = (known.size, u32::from(known.width));
        let [enable, answer] = ["enable", "answer"].map(|what| self.own(id, what));
        let mut value = format!("{}[{}]", self.array(register), self.cell(id, size));
        for write in self.ahead(id, register) {
            value =
                format!("{} ? {} : {value}", self.meet(write, id, size), self.own(write, "data"));
        }
        let value = format!("{enable} ? ({value}) : {width}'d0");
        let value = self.mutated_register(&answer, width, &value);
        self.line(&format!("always_ff @(posedge clk_i) {answer} <= {value};"));
    }

    /// What is read of a register outside, which does not forward: the answer that comes in, or
    /// what a packet ahead was writing when it was asked for.
    fn with_forward(&mut self, id: AccessId, input: &str) -> String {
        let width = self.circuit.access(id).results[0].into();
        let [answer, hit, data] = ["answer", "hit", "forwarded"].map(|what| self.own(id, what));
        for (name, width) in [(&hit, 1), (&data, width)] {
            self.declare(name, width);
            self.read_all(name);
            self.line(&format!("{} {name};", logic(width)));
        }
        self.read_all(input);
        self.wire(&answer, width, &format!("{hit} ? {data} : {input}"), "");
        self.forwarded.push(id);
        answer
    }

    fn forward(&mut self, id: AccessId) {
        let ir::Port::Read(register) = self.circuit.access(id).port else { return };
        let known = &self.program.registers[register.index()];
        let (size, width) = (known.size, u32::from(known.width));
        let [enable, hit, data] = ["enable", "hit", "forwarded"].map(|what| self.own(id, what));
        let (mut hits, mut value) = (Vec::new(), format!("{width}'d0"));
        for write in self.ahead(id, register) {
            let meet = self.meet(write, id, size);
            value = format!("{meet} ? {} : {value}", self.own(write, "data"));
            hits.push(meet);
        }
        let hits = format!("{enable} && ({})", hits.join(" || "));
        let hits = self.mutated_register(&hit, 1, &hits);
        self.line(&format!("always_ff @(posedge clk_i) {hit} <= {hits};"));
        let value = self.mutated_register(&data, width, &value);
        self.line(&format!("always_ff @(posedge clk_i) {data} <= {value};"));
    }

    /// Whether and where a register outside is accessed, where a read meets writes.
    fn place_of_forward(&mut self, id: AccessId) {
        let access = self.circuit.access(id);
        let (ir::Port::Read(register) | ir::Port::Write(register)) = access.port else { return };
        let args = access.args.clone();
        let known = &self.program.registers[register.index()];
        let reads = self.sites(ir::Port::Read(register));
        let mut ahead = reads.into_iter().map(|read| (read, self.ahead(read, register)));
        if !ahead.any(|(read, writes)| writes.contains(&id) || read == id && !writes.is_empty()) {
            return;
        }
        self.place_of(id, known.size);
        if let Some(value) = args.get(1) {
            let data = self.operand(*value, self.schedule.access(id).cycle).text;
            self.inner(id, "data", known.width.into(), &data);
        }
    }

    /// The ports of an access to what is outside.
    fn request(&mut self, id: AccessId) {
        let access = self.circuit.access(id);
        let (port, args) = (access.port, access.args.clone());
        let cycle = self.schedule.access(id).cycle;
        let base = self.bases[id.index()].clone();
        let valid = self.names.unique(&format!("{base}_valid"), "_o");
        self.output(valid.clone(), 1);
        let on = self.operand(access.on, cycle).text;
        let packet = self.valid(cycle);
        self.line(&format!("assign {valid} = {packet} && {on};"));
        let (gives, takes) = self.signature(port);
        let mut names = Vec::new();
        for (path, arg) in gives.iter().zip(args) {
            let name = self.names.unique(&format!("{base}_{path}"), "_o");
            let value = self.operand(arg, cycle);
            self.output(name.clone(), value.width.into());
            self.line(&format!("assign {name} = {};", value.text));
            names.push(name);
        }
        let mut results = Vec::new();
        for (path, width) in takes.iter().zip(access.results.clone()) {
            let name = self.names.unique(&format!("{base}_{path}"), "_i");
            results.push(self.input(name, width.into()));
        }
        self.answers[id.index()].clone_from(&results);
        self.place_of_forward(id);
        if let ir::Port::Read(register) = port
            && !self.ahead(id, register).is_empty()
        {
            let answer = self.with_forward(id, &results[0]);
            self.answers[id.index()] = vec![answer];
        }
        let latency = port.latency(self.program);
        self.module.requests.push(Request { port, cycle, latency, valid, args: names, results });
    }

    /// What the arguments and answers of a port are called.
    fn signature(&self, port: ir::Port) -> (Vec<String>, Vec<String>) {
        let of = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let last =
            |value: &ir::Value| names::plain(value.name.rsplit('.').next().unwrap_or(&value.name));
        match port {
            ir::Port::Call(which) => {
                let known = &self.program.externs[which.index()];
                let names = |values: &[ir::Value]| values.iter().map(last).collect();
                (names(&known.args), names(&known.results))
            }
            ir::Port::Read(_) => (of(&["index"]), of(&["value"])),
            ir::Port::Write(_) => (of(&["index", "value"]), Vec::new()),
            ir::Port::Count(_) => (of(&["index", "length"]), Vec::new()),
            ir::Port::LookUp(_) => (Vec::new(), Vec::new()),
        }
    }

    // ---- Tables

    /// The entries as a row of comparisons, those first that win.
    fn look_up(&mut self, id: AccessId, table: TableId) {
        let cycle = self.schedule.access(id).cycle;
        let access = self.circuit.access(id);
        let (keys, widths) = (access.args.clone(), access.results.clone());
        let wanted: Vec<usize> =
            (0..widths.len()).filter(|at| self.is_wanted(id, *at as u32)).collect();
        let found: Vec<String> =
            wanted.iter().map(|at| self.own(id, &format!("found{at}"))).collect();
        for (at, name) in wanted.iter().zip(&found) {
            self.declare(name, widths[*at].into());
            self.line(&format!("{} {name};", logic(widths[*at].into())));
        }
        let set = |choice: &Choice, hit: bool, program: &ir::Program| -> Vec<String> {
            let values = answers(program, table, choice, hit, widths.len());
            let values = wanted.iter().map(|at| literal(values[*at], widths[*at]));
            found.iter().zip(values).map(|(name, value)| format!("{name} = {value};")).collect()
        };
        let default = set(self.state.default_choice(table), false, self.program).join(" ");
        let mut lines = vec!["always_comb begin".to_owned(), format!("  {default}")];
        let mut otherwise = "";
        for entry in self.state.entries(table) {
            let matches = self.matching(&keys, &entry.patterns, cycle);
            let then = set(&entry.choice, true, self.program).join(" ");
            lines.push(format!("  {otherwise}if ({matches}) begin {then} end"));
            otherwise = "else ";
        }
        lines.push("end".into());
        lines.iter().for_each(|line| self.line(line));
        self.answers[id.index()] = vec![String::new(); widths.len()];
        for (at, name) in wanted.iter().zip(&found) {
            let mut answer = name.clone();
            if self.circuit.access(id).port.latency(self.program) > 0 {
                answer = self.own(id, &format!("answer{at}"));
                self.declare(&answer, widths[*at].into());
                self.read_all(name);
                self.line(&format!("{} {answer};", logic(widths[*at].into())));
                let value = self.mutated_register(&answer, widths[*at].into(), name);
                self.line(&format!("always_ff @(posedge clk_i) {answer} <= {value};"));
            }
            self.answers[id.index()][*at] = answer;
        }
    }

    /// Whether something needs an answer.
    fn is_wanted(&self, id: AccessId, at: u32) -> bool {
        let mut nodes = self.circuit.graph().ids().filter(|node| self.live[node.index()]);
        nodes.any(|node| self.circuit.graph().value(node).node == Node::Result(id, at))
    }

    fn matching(&mut self, keys: &[NodeId], patterns: &[Pattern], cycle: u32) -> String {
        let mut all = Vec::new();
        for (key, pattern) in keys.iter().zip(patterns) {
            let width = self.circuit.graph().width(*key);
            match *pattern {
                Pattern::Any | Pattern::Range { .. } => {}
                Pattern::Value(value) => {
                    let key = self.operand(*key, cycle).text;
                    all.push(format!("{key} == {}", literal(value, width)));
                }
                Pattern::Mask { value, mask } => {
                    let key = self.operand(*key, cycle).text;
                    let bits = literal(mask, width);
                    all.push(format!("({key} & {bits}) == {}", literal(value, width)));
                }
            }
        }
        if all.is_empty() { "1'b1".into() } else { all.join(" && ") }
    }
}

/// What a table answers where this is chosen: see [`ir::Port::LookUp`].
fn answers(
    program: &ir::Program,
    table: TableId,
    choice: &Choice,
    hit: bool,
    count: usize,
) -> Vec<u128> {
    let mut answers = vec![0; count];
    answers[0] = hit.into();
    answers[1] = choice.action.into();
    let first = ir::circuit::first_argument(program, table, choice.action);
    answers[first..first + choice.args.len()].copy_from_slice(&choice.args);
    answers
}
