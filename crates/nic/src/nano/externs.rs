//! What programs call (`p4/include/nano.p4`), bound to the blocks.
//!
//! Reassembly, cells and scheduler answer at once. What concerns packetization, the generator and
//! the application takes effect when the packet has gone through the pipeline: it becomes an
//! [`Event`].

use std::collections::VecDeque;

use thiserror::Error;
use units::{MsgKey, Time};

use super::blocks::clocked::GRANT_RESTART;
use super::cells::{Cells, Op};
use super::config::Config;
use super::flows::Pace;
use super::generator::Class;
use super::meta::{Egress, carried_id, host_of};
use super::packetization::Credit;
use super::reassembly::{Info, Key, Reassembly, Request};
use super::srpt::{Choice, Entry, Scheduler};
use p4::ir::{self, ExternId};
use p4::program::Externs;

/// What a packet does to the sending side, or tells the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets have arrived at the other end.
    Delivered {
        /// Their message and the context that sends it.
        message: (u16, u16),
        /// Bit i: packet i.
        packets: u64,
    },
    /// A `creditToBtx` event.
    Credit {
        /// The message and the context that sends it.
        message: (u16, u16),
        /// What it says.
        credit: Credit,
    },
    /// A priority for a message, in one of the priority registers.
    Prio {
        /// Which register.
        register: usize,
        /// The message and the context that sends it.
        message: (u16, u16),
        /// The value.
        prio: u8,
    },
    /// A window and a pace for a flow.
    Flow {
        /// Which.
        flow: usize,
        /// What they are.
        pace: Pace,
    },
    /// A control packet to send.
    Control {
        /// Who asked for it.
        class: Class,
        /// The packet.
        packet: Egress,
    },
    /// A message is whole.
    Whole(MsgKey),
    /// The program sends a message of its own.
    Message(OwnMessage),
}

impl Event {
    /// The order in which the ports of the sending side take what a packet says in one cycle.
    const fn port(&self) -> u8 {
        match self {
            Self::Prio { .. } => 0,
            Self::Delivered { .. } => 1,
            Self::Credit { .. } => 2,
            Self::Flow { .. } | Self::Control { .. } | Self::Whole(_) | Self::Message(_) => 3,
        }
    }
}

/// A message that a program sends of its own, as an application would (`send_message`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnMessage {
    /// IP protocol of the transport that is to carry it.
    pub protocol: u8,
    /// The receiving host.
    pub dst_ip: u32,
    /// How many of the bytes.
    pub len: u8,
    /// The bytes.
    pub bytes: [u8; OWN_MAX],
}

/// Externs that answer something else once a message is freed. Where that is after the last stage,
/// because the ingress control's results say that the message is whole, the next packet must not
/// ask them before.
pub const FREED_BY_RESULTS: &[&str] = &["get_rx_msg_info"];

/// The longest message of a program, bytes: one word of the message RAM.
pub const OWN_MAX: usize = 64;

/// What an extern of a program is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    GetRxMsgInfo,
    Delivered,
    Credit,
    Flow,
    Control(Class),
    /// `execute` of either kind of cell.
    IfElse(usize),
    Second(usize),
    PrioGrant(usize),
    PrioRead(usize),
    Schedule(usize),
    SendMessage,
    Path,
}

/// A program asks for something that the NIC does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BindError {
    /// Nowhere.
    #[error("the NIC has no extern `{name}` with {args} arguments and {results} results")]
    Unknown {
        /// What it calls.
        name: String,
        /// Arguments that it has.
        args: usize,
        /// Results that it wants.
        results: usize,
    },
    /// It hangs on the ingress pipeline.
    #[error("the egress pipeline calls `{0}`, which only the ingress pipeline reaches")]
    Ingress(String),
    /// It hangs on the egress pipeline.
    #[error("the ingress pipeline calls `{0}`, which only the egress pipeline reaches")]
    Egress(String),
}

/// The packet whose ingress pipeline runs.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it is looked up: all that it does to the receiving side is of this tick.
    pub lookup: Time,
    /// When it takes effect on the sending side, and for the application.
    pub at: Time,
    /// Its sender and what that calls the message; `None`: what its header says of that.
    pub key: Option<MsgKey>,
}

/// The blocks that a program reaches, and what it has asked of the others.
#[derive(Debug)]
pub struct Units {
    bound: Vec<Bound>,
    /// Messages that are being received.
    pub reassembly: Reassembly,
    cells: Vec<Cells>,
    prios: Vec<Cells>,
    schedulers: Vec<Scheduler>,
    /// What takes effect later, in the order of time.
    pub events: VecDeque<(Time, Event)>,
    arrival: Arrival,
    /// How many events there were when it entered.
    entered: usize,
    /// The lookup of the packet in the pipeline, and its answer.
    info: Option<(Request, Info)>,
    /// The entropy value that the egress pipeline has given its packet.
    entropy: Option<u16>,
    /// The message that this lookup has made whole, and whether it was so before (C7).
    completed: Option<(u16, bool)>,
    tx_messages: u16,
    clocked: bool,
}

/// Which instance a method belongs to: its name is unique only where it is declared.
type Instance<'a> = (&'a str, ir::Place);

impl Units {
    /// The units of `program` in a NIC.
    ///
    /// # Errors
    /// The program calls what the NIC does not have.
    pub fn new(program: &ir::Program, config: &Config) -> Result<Self, BindError> {
        let paced = program.externs.iter().any(|called| called.kind == "set_flow");
        let mut units = Self {
            bound: Vec::new(),
            reassembly: Reassembly::new(config, paced),
            cells: Vec::new(),
            prios: Vec::new(),
            schedulers: Vec::new(),
            events: VecDeque::new(),
            arrival: Arrival { lookup: Time::ZERO, at: Time::ZERO, key: None },
            entered: 0,
            info: None,
            entropy: None,
            completed: None,
            tx_messages: config.tx_messages,
            clocked: config.clocked,
        };
        let mut instances: Vec<(Instance<'_>, usize)> = Vec::new();
        for called in &program.externs {
            let instance = (called.instance.as_str(), called.place);
            let known = instances.iter().find(|(other, _)| *other == instance);
            let bound = units.bind(called, config, known.map(|(_, at)| *at))?;
            if let (Some(at), None) = (bound.index(), known) {
                instances.push((instance, at));
            }
            units.bound.push(bound);
        }
        units.check_egress(program)?;
        Ok(units)
    }

    /// On egress a program reaches the priorities of messages and its packet's path alone: the
    /// other units hang on the ingress pipeline (specs/nanotransport.md#2), from which no packet
    /// leaves.
    fn check_egress(&self, program: &ir::Program) -> Result<(), BindError> {
        let [ingress, egress] = program.pipelines.as_slice() else { return Ok(()) };
        let bound = |id: &ExternId| self.bound.get(id.index());
        let name = |id: ExternId| ir::called(&program.externs[id.index()]);
        let on_egress = |id: &ExternId| matches!(bound(id), Some(Bound::PrioRead(_) | Bound::Path));
        if let Some(id) = egress.calls().into_iter().find(|id| !on_egress(id)) {
            return Err(BindError::Ingress(name(id)));
        }
        match ingress.calls().into_iter().find(|id| bound(id) == Some(&Bound::Path)) {
            None => Ok(()),
            Some(id) => Err(BindError::Egress(name(id))),
        }
    }

    /// What `called` is; `known` is the place of its instance if a method of it has come before.
    fn bind(
        &mut self,
        called: &ir::Extern,
        config: &Config,
        known: Option<usize>,
    ) -> Result<Bound, BindError> {
        let (args, results) = (called.args.len(), called.results.len());
        let width = called.results.last().map_or(8, |value| value.width);
        let bound = match (called.kind.as_str(), called.method.as_str(), args, results) {
            ("get_rx_msg_info", _, 6, 7) => Bound::GetRxMsgInfo,
            ("delivered", _, 3, 0) => Bound::Delivered,
            ("credit_to_btx", _, 6, 0) => Bound::Credit,
            ("set_flow", _, 3, 0) => Bound::Flow,
            ("ctrl_pkt", _, 17, 0) => Bound::Control(Class::Ctrl),
            ("ack_pkt", _, 17, 0) => Bound::Control(Class::Ack),
            ("nack_pkt", _, 17, 0) => Bound::Control(Class::Nack),
            ("grant_pkt", _, 17, 0) => Bound::Control(Class::Grant),
            ("IfElseRaw" | "DualPortRaw", "execute", 6, 1) => {
                Bound::IfElse(known.unwrap_or_else(|| self.add_cells(config.rx_messages, width)))
            }
            ("DualPortRaw", "second", 3, 1) => {
                Bound::Second(known.unwrap_or_else(|| self.add_cells(config.rx_messages, width)))
            }
            ("TxMsgPrio", "grant", 3, 0) => {
                Bound::PrioGrant(known.unwrap_or_else(|| self.add_prio(config.tx_messages)))
            }
            ("TxMsgPrio", "read", 3, 1) => {
                Bound::PrioRead(known.unwrap_or_else(|| self.add_prio(config.tx_messages)))
            }
            ("send_message", _, 7, 0) => Bound::SendMessage,
            ("set_path", _, 1, 0) => Bound::Path,
            ("SrptScheduler", "schedule", 5, 4) => {
                let level = called.constructor.first().copied().unwrap_or(0);
                self.schedulers.push(Scheduler::new(level as u8));
                Bound::Schedule(self.schedulers.len() - 1)
            }
            (kind, method, ..) => {
                let dot = if method.is_empty() { "" } else { "." };
                let name = format!("{kind}{dot}{method}");
                return Err(BindError::Unknown { name, args, results });
            }
        };
        Ok(bound)
    }

    fn add_cells(&mut self, ids: u16, width: u16) -> usize {
        self.cells.push(Cells::new(ids, ir::mask(width)));
        self.cells.len() - 1
    }

    fn add_prio(&mut self, ids: u16) -> usize {
        self.prios.push(Cells::new(ids, ir::mask(8)));
        self.prios.len() - 1
    }

    /// Whether the program sets windows of flows.
    #[must_use]
    pub fn sets_flows(&self) -> bool {
        self.bound.contains(&Bound::Flow)
    }

    /// Whether the program says which path a packet takes.
    #[must_use]
    pub fn sets_paths(&self) -> bool {
        self.bound.contains(&Bound::Path)
    }

    /// The entropy value that the egress pipeline has given the packet since this was asked.
    pub fn entropy(&mut self) -> Option<u16> {
        self.entropy.take()
    }

    /// A packet enters the ingress pipeline. Messages that have fallen silent before it are over.
    pub fn enter(&mut self, arrival: Arrival) {
        while let Some(id) = self.reassembly.expire(arrival.lookup) {
            self.forget(id);
        }
        self.arrival = arrival;
        self.info = None;
        self.completed = None;
        self.entered = self.events.len();
    }

    /// The packet has left the ingress pipeline. In a clocked NIC, the message that it has made
    /// whole leaves the schedulers behind it (C6), and what it does comes in the order of the ports
    /// that it is done by (C3).
    pub fn leave(&mut self) {
        if !self.clocked {
            return;
        }
        if let Some((rx_msg_id, _)) = self.completed {
            self.forget(rx_msg_id);
        }
        self.events.make_contiguous()[self.entered..].sort_by_key(|(_, event)| event.port());
    }

    /// The lookup of the packet in the pipeline and its answer, if its program made one.
    #[must_use]
    pub const fn lookup_made(&self) -> Option<(Request, Info)> {
        self.info
    }

    /// What the sender of the packet in the pipeline calls its message.
    #[must_use]
    pub fn key(&self) -> MsgKey {
        let carried = || {
            let Key { src_ip, src_context, tx_msg_id } = self.info?.0.key;
            let id = carried_id(tx_msg_id, src_context, self.tx_messages);
            Some(MsgKey { src: host_of(src_ip), id })
        };
        self.arrival.key.or_else(carried).unwrap_or_default()
    }

    /// The program says that the message of the packet in the pipeline is whole: it goes to the
    /// application. Whether that has had it before, when it does not; `None` if it is not whole.
    pub fn complete(&mut self, rx_msg_id: u16) -> Option<bool> {
        let twice = if self.clocked {
            self.completed?.1
        } else {
            let twice = self.reassembly.complete(self.arrival.lookup, rx_msg_id);
            self.forget(rx_msg_id);
            twice
        };
        if !twice {
            self.push(Event::Whole(self.key()));
        }
        Some(twice)
    }

    /// An id is free: no scheduler has an entry for it.
    fn forget(&mut self, rx_msg_id: u16) {
        self.schedulers.iter_mut().for_each(|scheduler| scheduler.remove(rx_msg_id));
    }

    /// Set the priority of the message in cell `id`.
    pub fn set_prio(&mut self, register: usize, id: u16, prio: u8) {
        if let Some(cells) = self.prios.get_mut(register) {
            cells.apply(u128::from(id), Op::Write, u128::from(prio));
        }
    }

    fn push(&mut self, event: Event) {
        self.events.push_back((self.arrival.at, event));
    }

    fn lookup(&mut self, args: &[u128], results: &mut [u128]) {
        let [mark_received, src_ip, src_context, tx_msg_id, msg_len, pkt_offset] = *args else {
            return;
        };
        let key = Key {
            src_ip: src_ip as u32,
            src_context: src_context as u16,
            tx_msg_id: tx_msg_id as u16,
        };
        let (msg_len, pkt_offset) = (msg_len as u16, pkt_offset as u8);
        let request = Request { key, mark_received: mark_received != 0, msg_len, pkt_offset };
        let now = self.arrival.lookup;
        let info = self.reassembly.lookup(now, request);
        self.info = Some((request, info));
        if self.clocked && info.is_last_pkt && !info.is_done {
            self.completed = Some((info.rx_msg_id, self.reassembly.complete(now, info.rx_msg_id)));
        }
        let answer = [
            info.fail.into(),
            info.rx_msg_id.into(),
            info.is_new_msg.into(),
            info.is_new_pkt.into(),
            info.is_last_pkt.into(),
            info.ack_no.into(),
            info.is_done.into(),
        ];
        results.copy_from_slice(&answer);
    }

    fn credit(&mut self, args: &[u128]) {
        let [tx_msg_id, context, rtx, offset, update, new_credit] = *args else { return };
        let credit = Credit {
            rtx: (rtx != 0).then_some(offset as u8),
            new_credit: (update != 0).then_some(new_credit as u16),
        };
        self.push(Event::Credit { message: (tx_msg_id as u16, context as u16), credit });
    }

    fn schedule(&mut self, scheduler: usize, args: &[u128], results: &mut [u128]) {
        let [rx_msg_id, remove, rank, granted, grantable] = *args else { return };
        let (rx_msg_id, rank) = (rx_msg_id as u16, rank as u16);
        let (granted, grantable) = (granted as u16, grantable as u16);
        let Some(scheduler) = self.schedulers.get_mut(scheduler) else { return };
        let choice = if remove != 0 {
            scheduler.update_without(rx_msg_id)
        } else {
            scheduler.update(Entry { rx_msg_id, rank, granted, grantable })
        };
        if let Some(Choice { rx_msg_id, level, grant_offset }) = choice {
            let now = self.arrival.lookup;
            if self.clocked {
                self.reassembly.grant_later(now + GRANT_RESTART, rx_msg_id);
            } else {
                self.reassembly.granted(now, rx_msg_id);
            }
            results.copy_from_slice(&[1, level.into(), rx_msg_id.into(), grant_offset.into()]);
        }
    }
}

impl Externs for Units {
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
        let Some(&bound) = self.bound.get(which.index()) else { return };
        match (bound, args) {
            (Bound::GetRxMsgInfo, _) => self.lookup(args, results),
            (Bound::Delivered, &[tx_msg_id, context, packets]) => {
                let message = (tx_msg_id as u16, context as u16);
                self.push(Event::Delivered { message, packets: packets as u64 });
            }
            (Bound::Credit, _) => self.credit(args),
            (Bound::Flow, &[flow, window, gap]) => {
                let pace = Pace { window: window as u16, gap: gap as u32 };
                self.push(Event::Flow { flow: flow as usize, pace });
            }
            (Bound::Control(class), _) => {
                self.push(Event::Control { class, packet: Egress::from_values(args) });
            }
            (Bound::IfElse(at), &[index, predicate, op0, data0, op1, data1]) => {
                let ops = [(Op::from_number(op0), data0), (Op::from_number(op1), data1)];
                results[0] = self.cells[at].if_else(index, predicate != 0, ops);
            }
            (Bound::Second(at), &[index, op, data]) => {
                results[0] = self.cells[at].apply(index, Op::from_number(op), data);
            }
            (Bound::PrioGrant(register), &[tx_msg_id, context, prio]) => {
                let message = (tx_msg_id as u16, context as u16);
                self.push(Event::Prio { register, message, prio: prio as u8 });
            }
            (Bound::PrioRead(register), &[tx_msg_id, update, prio]) => {
                let ops = [(Op::Write, prio), (Op::Read, 0)];
                results[0] = self.prios[register].if_else(tx_msg_id, update != 0, ops);
            }
            (Bound::Schedule(at), _) => self.schedule(at, args, results),
            (Bound::SendMessage, &[protocol, dst_ip, len, ref data @ ..]) => {
                let mut bytes = [0; OWN_MAX];
                for (to, from) in bytes.chunks_mut(16).zip(data) {
                    to.copy_from_slice(&from.to_be_bytes());
                }
                let (protocol, dst_ip) = (protocol as u8, dst_ip as u32);
                let len = len.clamp(1, OWN_MAX as u128) as u8;
                self.push(Event::Message(OwnMessage { protocol, dst_ip, len, bytes }));
            }
            (Bound::Path, &[entropy]) => self.entropy = Some(entropy as u16),
            // Binding has counted the arguments.
            _ => {}
        }
    }
}

impl Bound {
    /// The place of its instance, if it is a method of one.
    const fn index(self) -> Option<usize> {
        match self {
            Self::IfElse(at) | Self::Second(at) => Some(at),
            Self::PrioGrant(at) | Self::PrioRead(at) | Self::Schedule(at) => Some(at),
            Self::SendMessage | Self::GetRxMsgInfo | Self::Delivered | Self::Credit => None,
            Self::Flow | Self::Control(_) | Self::Path => None,
        }
    }
}
