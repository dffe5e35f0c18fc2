//! Packetization (rules 5 to 15; C3, C4, C8).

use std::collections::VecDeque;

use crate::bench::{Ahead, Block, Case, Forbidden, Model, Mutant, Rng, Values};
use crate::law::{Buffer, Buffers, below, class_parameters, look, packets};
use crate::meta::{BITS, Meta};

// No mistakes, since they change nothing: credit for what the same packet has made whole (nothing
// of it is left to be sent), and what waits left in what credit sends (nothing waits for two
// things).
const MUTANTS: &[Mutant] = &[
    // A stale copy: a timeout does not see what its cycle does.
    Mutant::new("packetization", "late          = looked.state;", "late          = looked_q;"),
    // What has no place in its queue is lost, or waits there all the same.
    Mutant::new(
        "packetization",
        "waits.to_btx = (state.to_btx & ~pkts) | fresh;",
        "waits.to_btx = state.to_btx & ~pkts;",
    ),
    Mutant::new(
        "packetization",
        "    if (room[Credit]) begin\n      stepped",
        "    if (1'b1) begin\n      stepped",
    ),
    // A cancelled message lives on, its buffer is another's.
    Mutant::new(
        "packetization",
        "return live_q[id] && !(cancel_valid_i && id == cancel_id_i);",
        "return live_q[id];",
    ),
    Mutant::new(
        "packetization",
        "&& name == submitted_name && !(cancel_valid_i && id == cancel_id_i);",
        "&& name == submitted_name;",
    ),
    Mutant::new(
        "packetization",
        "submits && cancel_id_i == free_id ? buffer_free",
        "1'b0 ? buffer_free",
    ),
    // Packets that wait already no longer do.
    Mutant::new("packetization", "waits.waiting = state.waiting | fresh;", "waits.waiting = pkts;"),
    // Descriptors: stale ones are sent, live ones dropped, the front's last packet twice or never.
    Mutant::new(
        "packetization",
        "alive[q] = any[q] && !has_stale_q[q][front[q].id];",
        "alive[q] = any[q];",
    ),
    Mutant::new(
        "packetization",
        "= over[i] ? counts_d[q][i] : stale;",
        "= over[i] ? counts_q[q][i] : stale;",
    ),
    Mutant::new("packetization", "= counts_q[q][i] - count_t'(leaves);", "= counts_q[q][i];"),
    Mutant::new("packetization", "over[i] ? enters || fewer != '0", "over[i] ? fewer != '0"),
    Mutant::new("packetization", "= !has_more(left[q]);", "= 1'b1;"),
    Mutant::new(
        "packetization",
        "          begun_q[q] <= '0;\n        end else if",
        "          begun_q[q] <= begun_q[q];\n        end else if",
    ),
    Mutant::new(
        "packetization",
        "(taken & last) | (any & ~alive);",
        "(taken & last) | (any & ~alive & {Queues{!take_i}});",
    ),
    // The order of the queues.
    Mutant::new(
        "packetization",
        "localparam int unsigned Credit = 1;\n  localparam int unsigned Timeout = 2;",
        "localparam int unsigned Credit = 2;\n  localparam int unsigned Timeout = 1;",
    ),
    // What waits is put in again (rule 9).
    Mutant::new("packetization", "pkts: timeout_send & ~late.waiting,", "pkts: timeout_send,"),
    // The packet.
    Mutant::new(
        "packetization",
        "packet_o.is_new_msg  = states_q[chosen_id].sent == '0;",
        "packet_o.is_new_msg  = index_of(chosen_pkt) == '0;",
    ),
    Mutant::new(
        "packetization",
        "packet_o.tx_msg_id   = {names_q[chosen_id].generation, chosen_id};",
        "packet_o.tx_msg_id   = 16'(chosen_id);",
    ),
    Mutant::new("packetization", "steps.taken && chosen_highest", "steps.taken"),
    // Submission.
    Mutant::new(
        "packetization",
        "submit_ready_o = live_q != '1 && buffer_ready;",
        "submit_ready_o = live_q != '1;",
    ),
    Mutant::new(
        "packetization",
        "RttPkts < PacketsMax ? RttPkts",
        "RttPkts < PacketsMax ? RttPkts - 1",
    ),
    // Names: a message that is over, another's context, another generation.
    Mutant::new("packetization", ": name == names_q[id];", ": submitted_name == names_q[id];"),
    Mutant::new(
        "packetization",
        "prio_name.src_context      = prio_src_context_i",
        "prio_name.src_context      = names_q[prio_id].src_context",
    ),
    Mutant::new("packetization", "return live_q[id] &&", "return"),
    Mutant::new(
        "packetization",
        "return free[id] ? name == submitted_name : name == names_q[id];",
        "return name == names_q[id];",
    ),
    Mutant::new("packetization", "return free[id] && name", "return 1'b0 && name"),
    Mutant::new("packetization", "credit_valid_q && would_come(", "1'b0 && would_come("),
    // Delivered: the guard, the clear of what waits for credit, what is over gets credit.
    Mutant::new("packetization", "= delivered_pkts_q & state.sent & {", "= delivered_pkts_q & {"),
    Mutant::new("packetization", "state.sent    = state.sent | gone;", ""),
    Mutant::new("packetization", "state.to_btx & ~arrived;", "state.to_btx;"),
    Mutant::new(
        "packetization",
        "state.progress || (arrived & state.undelivered) != '0;",
        "state.progress;",
    ),
    // Credit: one that is lower counts, one that is no packet, E4, one that waits.
    Mutant::new("packetization", "if (steps.update && is_higher)", "if (steps.update)"),
    Mutant::new(
        "packetization",
        "credit_pkt_q & state.undelivered & ~state.waiting",
        "credit_pkt_q & ~state.waiting",
    ),
    Mutant::new(
        "packetization",
        "credit_pkt_q & state.undelivered & ~state.waiting",
        "credit_pkt_q & state.undelivered",
    ),
    Mutant::new(
        "packetization",
        "credit_new_credit_i > 16'(PacketsMax) ? packets_t'(PacketsMax)",
        "credit_new_credit_i > 16'(PacketsMax) ? packets_t'(0)",
    ),
    Mutant::new("packetization", "is_rtx: credit_rtx_q};", "is_rtx: 1'b0};"),
    // What a packet says counts for the message whose timer is looked at, too.
    Mutant::new("packetization", "stepped(looked_q, steps_of(looked_id),", "stepped(looked_q, '0,"),
    Mutant::new("packetization", "moved  = looked_q.progress || (news", "moved  = (news"),
    Mutant::new(
        "packetization",
        "looked_q.timeouts == CountW'(MaxTimeouts - 1);",
        "looked_q.timeouts == CountW'(MaxTimeouts);",
    ),
    Mutant::new(
        "packetization",
        "packets_t'(looked_q.rtx_offset) + 7'd1)",
        "packets_t'(looked_q.rtx_offset))",
    ),
    Mutant::new("packetization", "= known & late.undelivered;", "= known;"),
    Mutant::new("packetization", "Probe && stuck ? ", "1'b0 ? "),
    Mutant::new("packetization", "!beyond && late.waiting == '0;", "!beyond;"),
    Mutant::new("packetization", "    late.progress   = 1'b0;", ""),
    Mutant::new(
        "packetization",
        "late.rtx_offset = late.max_tx;",
        "late.rtx_offset = late.rtx_offset;",
    ),
    // Frees.
    Mutant::new("packetization", "if (due && is_last) over |= only(looked_id);", ""),
    Mutant::new(
        "packetization",
        ".give_i({cancels, gives_up, delivered_whole})",
        ".give_i({1'b0, gives_up, delivered_whole})",
    ),
    Mutant::new(
        "packetization",
        ".cancel_valid_i({cancels, delivered_whole})",
        ".cancel_valid_i({1'b0, delivered_whole})",
    ),
    Mutant::new(
        "packetization",
        ".give1_index_i(buffers_q[looked_id])",
        ".give1_index_i(buffers_q[delivered_id_q])",
    ),
];

#[derive(Clone, Copy)]
struct Message {
    meta: Meta,
    packets: u32,
    buffer: Buffer,
    delivered: u64,
    credit: u32,
    to_btx: u64,
    waiting: u64,
    sent: u64,
    max_tx: u32,
    rtx_offset: u32,
    delivered_before: u64,
    timeouts: u32,
    deadline: u64,
    serial: u64,
}

#[derive(Clone, Copy)]
struct Descriptor {
    id: usize,
    /// Whose it is, of all messages that ever were.
    serial: u64,
    bits: u64,
    is_rtx: bool,
}

#[derive(Clone, Copy)]
struct Sizes {
    ids: usize,
    rtt_pkts: u32,
    timeout: u64,
    max_timeouts: u32,
    probe: bool,
    places: usize,
    classes: &'static [(u32, usize)],
}

const INIT: usize = 0;
const CREDIT: usize = 1;
const TIMEOUT: usize = 2;

struct Packetization {
    rng: Rng,
    sizes: Sizes,
    now: u64,
    messages: Vec<Option<Message>>,
    buffers: Buffers,
    queues: [VecDeque<Descriptor>; 3],
    accepted: u64,
    /// Names of messages that were.
    past: Vec<(u16, u16)>,
    /// One cycle in so many each for: a take, a submission, a control packet.
    busy: [u64; 3],
}

const fn bit(index: u32) -> u64 {
    if index < 64 { 1 << index } else { 0 }
}

impl Packetization {
    fn new(seed: u64, sizes: Sizes) -> Self {
        Self {
            rng: Rng::new(seed),
            now: (1 << 32) - 5_000,
            messages: vec![None; sizes.ids],
            buffers: Buffers::new(sizes.classes),
            queues: [const { VecDeque::new() }; 3],
            accepted: 0,
            past: vec![(0, 0)],
            busy: [1, 2, 3],
            sizes,
        }
    }

    fn is_alive(&self, descriptor: &Descriptor) -> bool {
        self.messages[descriptor.id].is_some_and(|message| message.serial == descriptor.serial)
    }

    /// What the cycles before have left: the packet that the arbiter may take. Stale fronts leave.
    fn arbiter(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let fronts: Vec<Option<Descriptor>> =
            self.queues.iter().map(|queue| queue.front().copied()).collect();
        let alive: Vec<bool> =
            fronts.iter().map(|front| front.is_some_and(|front| self.is_alive(&front))).collect();
        for (queue, (front, alive)) in self.queues.iter_mut().zip(fronts.iter().zip(&alive)) {
            if front.is_some() && !alive {
                queue.pop_front();
            }
        }
        let Some(chosen) = alive.iter().position(|alive| *alive) else { return };
        let Some(descriptor) = self.queues[chosen].front_mut() else { return };
        let Some(message) = self.messages[descriptor.id].as_mut() else { return };
        let index = descriptor.bits.trailing_zeros();
        let packet = Meta {
            pkt_offset: index as u8,
            is_new_msg: message.sent == 0,
            is_rtx: descriptor.is_rtx,
            ..message.meta
        };
        outputs.set("has_data_o", 1u8);
        outputs.set_words("packet_o", &packet.words());
        if !self.rng.one_in(self.busy[0]) {
            return;
        }
        inputs.set("take_i", 1u8);
        message.waiting &= !bit(index);
        message.sent |= bit(index);
        message.max_tx = message.max_tx.max(index);
        descriptor.bits &= !bit(index);
        if descriptor.bits == 0 {
            self.queues[chosen].pop_front();
        }
    }

    /// The id of the message that is submitted.
    fn submit(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) -> Option<usize> {
        let mut meta = Meta::draw(&mut self.rng);
        meta.msg_len = match self.rng.below(8) {
            0..3 => meta.msg_len % 1024 + 1,
            3..6 => meta.msg_len % 20_000 + 1,
            6 => meta.msg_len.max(1),
            _ => (meta.msg_len % 64).max(1) * 1023,
        };
        let generation = meta.tx_msg_id / self.sizes.ids as u16;
        let asks = self.rng.one_in(self.busy[1]);
        inputs.set("submit_valid_i", asks);
        inputs.set("submit_protocol_i", meta.protocol);
        inputs.set("submit_dst_ip_i", meta.dst_ip);
        inputs.set("submit_dst_context_i", meta.dst_context);
        inputs.set("submit_src_context_i", meta.src_context);
        inputs.set("submit_msg_len_i", meta.msg_len);
        inputs.set("submit_generation_i", generation);
        let id = self.messages.iter().position(Option::is_none);
        let (id, buffer) = id.zip(self.buffers.find(meta.msg_len))?;
        outputs.set("submit_ready_o", 1u8);
        let buf_ptr = self.buffers.ptr(buffer);
        outputs.set("submit_buf_ptr_o", buf_ptr);
        if !asks {
            return None;
        }
        outputs.set("submit_id_o", id as u64);
        self.buffers.set_free(buffer, false);
        let tx_msg_id = generation * self.sizes.ids as u16 + id as u16;
        let size_class = buffer.0 as u8;
        let fixed = Meta { credit: 0, rank: 0, flags: 1, ..meta };
        let meta = Meta { tx_msg_id, buf_ptr, size_class, ..fixed };
        self.begin(id, meta, buffer);
        Some(id)
    }

    fn begin(&mut self, id: usize, meta: Meta, buffer: Buffer) {
        let packets = packets(meta.msg_len);
        let (all, unasked) = (below(packets), below(self.sizes.rtt_pkts));
        self.messages[id] = Some(Message {
            meta,
            packets,
            buffer,
            delivered: 0,
            credit: self.sizes.rtt_pkts,
            to_btx: all & !unasked,
            waiting: 0,
            sent: 0,
            max_tx: 0,
            rtx_offset: 0,
            delivered_before: 0,
            timeouts: 0,
            deadline: self.now + self.sizes.timeout,
            serial: self.accepted,
        });
        self.accepted += 1;
        self.schedule(INIT, id, all & unasked, false);
    }

    /// Rule 9, with C8's places.
    /// Whether that queues something.
    fn schedule(&mut self, queue: usize, id: usize, bits: u64, is_rtx: bool) -> bool {
        let room = self.queues[queue].len() < self.sizes.places;
        let Some(message) = &mut self.messages[id] else { return false };
        message.to_btx &= !bits;
        let bits = bits & !message.waiting;
        if bits == 0 {
            return false;
        }
        if !room {
            message.to_btx |= bits;
            return false;
        }
        message.waiting |= bits;
        let serial = message.serial;
        self.queues[queue].push_back(Descriptor { id, serial, bits, is_rtx });
        true
    }

    fn free(&mut self, id: usize) {
        if let Some(message) = self.messages[id].take() {
            self.buffers.set_free(message.buffer, true);
            self.past.push((message.meta.tx_msg_id, message.meta.src_context));
        }
    }

    /// A name that a packet could say: mostly of a message that lives.
    fn name(&mut self) -> (u16, u16) {
        // Often of one whose timer fires in this cycle.
        let looked_at = look(self.now, self.sizes.ids).and_then(|id| self.messages[id]);
        let late = looked_at.filter(|message| message.deadline <= self.now);
        if let Some(Message { meta, .. }) = late.filter(|_| self.rng.one_in(2)) {
            return (meta.tx_msg_id, meta.src_context);
        }
        let live: Vec<Meta> = self.messages.iter().flatten().map(|message| message.meta).collect();
        let mut name = match live.len() as u64 {
            0 => (0, 0),
            n => {
                let meta = live[self.rng.below(n) as usize];
                (meta.tx_msg_id, meta.src_context)
            }
        };
        match self.rng.below(30) {
            0 => name.0 = self.rng.next() as u16,
            1 => name.1 = self.rng.next() as u16,
            2 | 3 => {
                let ago = self.rng.below(self.past.len().min(30) as u64) as usize;
                name = self.past[self.past.len() - 1 - ago];
            }
            _ => {}
        }
        name
    }

    /// Rule 14.
    fn named(&self, (number, context): (u16, u16)) -> Option<usize> {
        let id = usize::from(number) % self.sizes.ids;
        let meta = self.messages[id]?.meta;
        (meta.tx_msg_id == number && meta.src_context == context).then_some(id)
    }

    /// What a packet does, in its order: priority, delivered, credit.
    fn packet(
        &mut self,
        [name, second, third]: [(u16, u16); 3],
        inputs: &mut Values<'_>,
        outputs: &mut Values<'_>,
    ) {
        inputs.set("prio_tx_msg_id_i", name.0);
        inputs.set("prio_src_context_i", name.1);
        outputs.set("prio_live_o", self.named(name).is_some());
        let name = if self.rng.one_in(4) { second } else { name };
        self.deliver(name, inputs, outputs);
        let name = if self.rng.one_in(4) { third } else { name };
        self.credit(name, inputs);
    }

    fn deliver(&mut self, name: (u16, u16), inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let sent = self.named(name).and_then(|id| self.messages[id]).map_or(0, |m| m.sent);
        let lowest = |bits: u64| bits & bits.wrapping_neg();
        let bits = match self.rng.below(8) {
            0 => self.rng.next(),
            1 => self.rng.next() & self.rng.next() & self.rng.next() | 1,
            2 => below(self.rng.below(64) as u32),
            3..5 => sent & self.rng.next(),
            5 => lowest(sent & self.rng.next()),
            6 => sent,
            _ => sent | lowest(!sent),
        };
        let valid = self.rng.one_in(self.busy[2]);
        inputs.set("delivered_valid_i", valid);
        inputs.set("delivered_tx_msg_id_i", name.0);
        inputs.set("delivered_src_context_i", name.1);
        inputs.set("delivered_pkts_i", bits);
        let Some(id) = self.named(name).filter(|_| valid) else { return };
        let Some(message) = &mut self.messages[id] else { return };
        message.delivered |= bits & message.sent;
        message.to_btx &= !message.delivered;
        if message.delivered == below(message.packets) {
            outputs.set("done_valid_o", 1u8);
            outputs.set("done_id_o", id as u64);
            self.free(id);
        }
    }

    fn credit(&mut self, name: (u16, u16), inputs: &mut Values<'_>) {
        let (valid, rtx, update) =
            (self.rng.one_in(self.busy[2]), self.rng.one_in(2), self.rng.one_in(2));
        let offset = match self.rng.below(4) {
            0 => self.rng.next() as u8,
            _ => self.rng.below(20) as u8,
        };
        let had = self.named(name).and_then(|id| self.messages[id]).map_or(0, |m| m.credit);
        let credit = match self.rng.below(16) {
            0 => self.rng.next() as u16,
            1 => self.rng.below(70) as u16,
            // Less than there was: one that another has overtaken.
            2..6 => self.rng.below(u64::from(had) + 1) as u16,
            // A little more, as receivers do.
            _ => had as u16 + self.rng.below(4) as u16,
        };
        inputs.set("credit_valid_i", valid);
        inputs.set("credit_tx_msg_id_i", name.0);
        inputs.set("credit_src_context_i", name.1);
        inputs.set("credit_rtx_i", rtx);
        inputs.set("credit_rtx_pkt_offset_i", offset);
        inputs.set("credit_update_i", update);
        inputs.set("credit_new_credit_i", credit);
        let Some(id) = self.named(name).filter(|_| valid) else { return };
        let Some(message) = &mut self.messages[id] else { return };
        if rtx {
            let marked = bit(offset.into()) & below(message.packets);
            message.to_btx |= marked & !message.delivered & !message.waiting;
        }
        if update {
            message.credit = message.credit.max(credit.into());
            let send = message.to_btx & below(message.credit);
            self.schedule(CREDIT, id, send, rtx);
        }
    }

    /// Rule 15.
    fn timeout(&mut self, outputs: &mut Values<'_>) {
        let Some(id) = look(self.now, self.sizes.ids) else { return };
        let Some(message) = self.messages[id].as_mut().filter(|m| m.deadline <= self.now) else {
            return;
        };
        let sent_more = message.max_tx > message.rtx_offset;
        let moved = sent_more || message.delivered != message.delivered_before;
        message.timeouts = if moved { 0 } else { message.timeouts + 1 };
        message.delivered_before = message.delivered;
        if self.sizes.max_timeouts != 0 && message.timeouts >= self.sizes.max_timeouts {
            outputs.set("gave_up_valid_o", 1u8);
            outputs.set("gave_up_id_o", id as u64);
            self.free(id);
            return;
        }
        let mut rtx = below(message.rtx_offset + 1) & below(message.packets) & !message.delivered;
        if self.sizes.probe && rtx == 0 && !sent_more && message.waiting == 0 {
            rtx = message.to_btx & message.to_btx.wrapping_neg();
        }
        message.deadline = self.now + self.sizes.timeout;
        message.rtx_offset = message.max_tx;
        if self.schedule(TIMEOUT, id, rtx, true) {
            outputs.set("repeats_valid_o", 1u8);
            outputs.set("repeats_id_o", id as u64);
        }
    }
}

impl Model for Packetization {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        if self.rng.one_in(300) {
            self.busy = [8, 12, 25].map(|seldom| self.rng.below(seldom) + 1);
            if self.rng.one_in(4) {
                // The wire is busy with others: queues fill.
                self.busy[0] = 200;
            }
            if self.rng.one_in(6) {
                // An answer seldom comes: messages fail.
                self.busy[2] = 10_000;
            }
        }
        inputs.set("now_i", self.now & 0xffff_ffff);
        self.arbiter(inputs, outputs);
        let begun = self.submit(inputs, outputs);
        // What is drawn may be cancelled before it comes to that.
        let names = [(); 3].map(|()| self.name());
        let id = self.rng.below(self.sizes.ids as u64) as usize;
        let id = begun.filter(|_| self.rng.one_in(4)).unwrap_or(id);
        let cancel = self.rng.one_in(if begun == Some(id) { 4 } else { 60 });
        inputs.set("cancel_valid_i", cancel);
        inputs.set("cancel_id_i", id as u64);
        if cancel {
            self.free(id);
        }
        self.packet(names, inputs, outputs);
        self.timeout(outputs);
        self.now += 1;
    }
}

/// What a packet says, a cycle before it counts.
const PACKET: &[&str] = &[
    "prio_tx_msg_id_i",
    "prio_src_context_i",
    "delivered_valid_i",
    "delivered_tx_msg_id_i",
    "delivered_src_context_i",
    "delivered_pkts_i",
    "credit_valid_i",
    "credit_tx_msg_id_i",
    "credit_src_context_i",
    "credit_rtx_i",
    "credit_rtx_pkt_offset_i",
    "credit_update_i",
    "credit_new_credit_i",
];

fn case(sizes: Sizes) -> Case {
    let id = sizes.ids.ilog2();
    let mut parameters = vec![
        ("Ids", sizes.ids.to_string()),
        ("RttPkts", sizes.rtt_pkts.to_string()),
        ("TimeoutCycles", sizes.timeout.to_string()),
        ("MaxTimeouts", sizes.max_timeouts.to_string()),
        ("Probe", u8::from(sizes.probe).to_string()),
        ("Places", sizes.places.to_string()),
    ];
    parameters.extend(class_parameters(sizes.classes));
    let submit = [
        ("submit_valid_i", 1),
        ("submit_protocol_i", 8),
        ("submit_dst_ip_i", 32),
        ("submit_dst_context_i", 16),
        ("submit_src_context_i", 16),
        ("submit_msg_len_i", 16),
        ("submit_generation_i", 16 - id),
    ];
    let packet = [
        ("prio_tx_msg_id_i", 16),
        ("prio_src_context_i", 16),
        ("delivered_valid_i", 1),
        ("delivered_tx_msg_id_i", 16),
        ("delivered_src_context_i", 16),
        ("delivered_pkts_i", 64),
        ("credit_valid_i", 1),
        ("credit_tx_msg_id_i", 16),
        ("credit_src_context_i", 16),
        ("credit_rtx_i", 1),
        ("credit_rtx_pkt_offset_i", 8),
        ("credit_update_i", 1),
        ("credit_new_credit_i", 16),
    ];
    let others = [("now_i", 32), ("take_i", 1), ("cancel_valid_i", 1), ("cancel_id_i", id)];
    Case {
        parameters,
        inputs: others.into_iter().chain(submit).chain(packet).collect(),
        outputs: vec![
            ("has_data_o", 1),
            ("packet_o", BITS),
            ("submit_ready_o", 1),
            ("submit_id_o", id),
            ("submit_buf_ptr_o", 16),
            ("prio_live_o", 1),
            ("done_valid_o", 1),
            ("done_id_o", id),
            ("gave_up_valid_o", 1),
            ("gave_up_id_o", id),
            ("repeats_valid_o", 1),
            ("repeats_id_o", id),
        ],
        model: Box::new(move |seed| {
            let model = Packetization::new(seed, sizes);
            // The buffer that a message of no bytes would have.
            let first = model.buffers.find(0).map_or(0, |buffer| model.buffers.ptr(buffer));
            let idle = vec![("submit_ready_o", 1), ("submit_buf_ptr_o", first)];
            Box::new(Ahead::new(model, PACKET, idle))
        }),
    }
}

#[test]
fn packetization() {
    let small = Sizes {
        ids: 16,
        rtt_pkts: 4,
        timeout: 300,
        max_timeouts: 3,
        probe: true,
        places: 4,
        classes: &[(65_535, 6), (3000, 5), (1024, 8)],
    };
    let large = Sizes {
        ids: 128,
        rtt_pkts: 9,
        timeout: 3000,
        max_timeouts: 5,
        places: 256,
        classes: &[(38_912, 100), (1024, 20)],
        ..small
    };
    let odd = Sizes { ids: 2, max_timeouts: 0, probe: false, places: 2, rtt_pkts: 100, ..small };
    Block {
        name: "packetization",
        parts: &["nano_pkg", "timers", "buffers", "fifo"],
        cases: [small, large, odd].map(case).into(),
        mutants: MUTANTS,
        forbidden: &[
            Forbidden { assertion: "take_what_is_there", inputs: &[("take_i", 1)], cycles: 1 },
            Forbidden {
                assertion: "a_message_has_bytes",
                inputs: &[("submit_valid_i", 1)],
                cycles: 1,
            },
        ],
    }
    .check();
}
