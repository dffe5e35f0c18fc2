//! Traffic for a NIC under test: NICs of cycles that send one another messages over a network that
//! loses, trims, repeats and delays packets. Of the first of them every cycle is told: what it is
//! given, and what it does.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use endpoint::{Draw, Effect, Effects, Flags, Msg, MsgId, MsgKey, Packet, Purpose, Stat, Submit};
use nic::nano::blocks::clocked::Clocked;
use nic::nano::config::Config;
use nic::nano::endpoint::{ProgramError, Runs};
use nic::nano::frame;
use nic::nano::ticking::Machine;
use p4::ir;
use units::HostId;

use super::hex::Hex;

/// The host whose NIC is under test.
pub const UNDER_TEST: HostId = HostId(1);

/// Hosts that it talks with.
const PEERS: u32 = 4;

/// Bits that a link of 200 Gb/s carries in a cycle of 312.5 ps, doubled to be a whole number.
const BITS_IN_TWO_CYCLES: u64 = 125;

/// Which network, and how busy.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Of all draws.
    pub seed: u64,
    /// Fewest cycles between two packets that arrive.
    pub spacing: u64,
    /// Whether packets come as close as that wherever they can; otherwise gaps are drawn.
    pub is_dense: bool,
}

/// What the NIC is given in a cycle.
#[derive(Clone, Default)]
pub struct Given {
    /// A packet.
    pub packet: Option<Packet>,
    /// A message that the application submits.
    pub message: Option<Msg>,
    /// The wire lets the arbiter choose.
    pub open: bool,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(packet) = &self.packet {
            write!(f, "packet of {} bytes {:?} ", packet.wire_len, Hex(&headers(packet)))?;
        }
        if let Some(Msg { id, dst, len, .. }) = &self.message {
            write!(f, "message {} of {len} bytes to host {} ", id.0, dst.0)?;
        }
        Ok(())
    }
}

/// What it does in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Whether it takes the message.
    pub takes: bool,
    /// The headers of the packet that the arbiter chooses.
    pub sends: Option<Vec<u8>>,
    /// A message that it has received.
    pub delivers: Option<MsgKey>,
    /// A message of its own that has been delivered.
    pub acked: Option<MsgId>,
    /// A message of its own that it gives up.
    pub gives_up: Option<MsgId>,
    /// Control packets for which there was no room.
    pub lost: u32,
}

struct Host {
    me: HostId,
    nic: Clocked,
    /// Packets on their way to it, by the cycle in which they come at the earliest.
    inbox: BTreeMap<(u64, u64), Packet>,
    /// The next packet may come in this cycle.
    comes: u64,
    /// The wire is free, in cycles of which [`BITS_IN_TWO_CYCLES`] are one.
    free: u64,
    next_message: u64,
    /// Messages that it delivers although it has delivered and forgotten them, with the cycles:
    /// the model only counts them (C11).
    again: VecDeque<(u64, MsgKey)>,
}

impl Host {
    /// The arbiter may choose from this cycle on.
    const fn opens(&self) -> u64 {
        self.free / BITS_IN_TWO_CYCLES
    }
}

/// Cycles of a packet on the wire, rounded up.
fn on_wire(pkt: &Packet) -> u64 {
    (16 * u64::from(pkt.wire_len)).div_ceil(BITS_IN_TWO_CYCLES)
}

/// See the top of the file.
pub struct Traffic {
    plan: Plan,
    /// Bytes of all messages, if two hosts do nothing but send one another such.
    steady: Option<u64>,
    /// The network is never whole.
    always_rough: bool,
    hosts: Vec<Host>,
    /// Transports of the program: each message is of one of them.
    transports: u64,
    /// Cycles from a packet to the delivery of a message.
    delivers_after: u64,
    cycle: u64,
    arrived: u64,
    closest: u64,
    last: u64,
    drawn: u64,
    flights: u64,
    /// What the NIC under test has chosen in the last cycle.
    sent: Option<Packet>,
    /// Bytes of each message that goes to the NIC under test.
    lengths: BTreeMap<MsgKey, u64>,
    fx: Effects,
}

const DRAWS: Purpose = Purpose::new("rtl traffic");

impl Traffic {
    /// NICs of `config` with a program that `runs` makes ready to run.
    ///
    /// # Errors
    /// The program cannot run on such a NIC.
    pub fn new(
        program: &ir::Program,
        runs: &dyn Fn() -> Runs,
        config: &Config,
        plan: Plan,
    ) -> Result<Self, ProgramError> {
        Self::of(program, runs, config, plan, PEERS)
    }

    /// The NIC under test without anybody to talk with: for what it was given before.
    ///
    /// # Errors
    /// The program cannot run on such a NIC.
    pub fn alone(
        program: &ir::Program,
        runs: &dyn Fn() -> Runs,
        config: &Config,
    ) -> Result<Self, ProgramError> {
        Self::of(program, runs, config, Plan { seed: 0, spacing: 1, is_dense: false }, 0)
    }

    fn of(
        program: &ir::Program,
        runs: &dyn Fn() -> Runs,
        config: &Config,
        plan: Plan,
        peers: u32,
    ) -> Result<Self, ProgramError> {
        let host = |me| {
            let nic = Clocked::new(program, runs(), config.clone())?;
            let (inbox, me) = (BTreeMap::new(), HostId(me));
            let again = VecDeque::new();
            Ok(Host { me, nic, inbox, comes: 0, free: 0, next_message: 0, again })
        };
        let hosts: Result<Vec<Host>, ProgramError> =
            (UNDER_TEST.0..=UNDER_TEST.0 + peers).map(host).collect();
        let (fx, delivers_after) = (Effects::new(), config.ingress_cycles.into());
        let hosts = hosts?;
        Ok(Self {
            plan,
            steady: None,
            always_rough: false,
            hosts,
            transports: config.protocols.len() as u64,
            delivers_after,
            cycle: 0,
            arrived: 0,
            closest: 0,
            last: 0,
            drawn: 0,
            flights: 0,
            sent: None,
            lengths: BTreeMap::new(),
            fx,
        })
    }

    /// The NIC under test and one other send each other messages of `len` bytes, as many as they
    /// have room for, over links that neither lose nor delay anything.
    #[must_use]
    pub fn steady(self, len: u64) -> Self {
        Self { steady: Some(len), ..self }
    }

    /// The network loses, trims, repeats and delays packets from the first on.
    #[must_use]
    pub fn rough(self) -> Self {
        Self { always_rough: true, ..self }
    }

    /// Packets that have come as close behind the one before as they may.
    #[must_use]
    pub const fn closest(&self) -> u64 {
        self.closest
    }

    /// Packets that the NIC under test has been given.
    #[must_use]
    pub const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The next cycle.
    pub fn cycle(&mut self) -> (Given, Done) {
        let told = self.of_host(0);
        self.of_others();
        told
    }

    /// The message that the application of the NIC under test submits next, if it does so now.
    pub fn offers(&mut self) -> Option<Msg> {
        self.next_message(0)
    }

    /// The packet that comes to the NIC under test next, if one does so now, with its last bit or
    /// with its first.
    pub fn arrives(&mut self, with_its_first_bit: bool) -> Option<Packet> {
        self.comes_to(0, with_its_first_bit)
    }

    /// Whether the wire lets the NIC under test choose.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.cycle >= self.hosts[0].opens()
    }

    /// The next cycle, of a NIC that takes messages and packets when it can: it has taken these.
    pub fn follow(&mut self, message: Option<&Msg>, packet: Option<&Packet>, open: bool) -> Done {
        let done = self.step(0, (message, packet, open));
        self.of_others();
        done
    }

    /// What the NIC under test has chosen in the last cycle.
    #[must_use]
    pub const fn sent(&self) -> Option<&Packet> {
        self.sent.as_ref()
    }

    /// Bytes of a message that goes to the NIC under test.
    #[must_use]
    pub fn length(&self, key: MsgKey) -> u64 {
        self.lengths.get(&key).copied().unwrap_or(0)
    }

    fn of_others(&mut self) {
        for host in 1..self.hosts.len() {
            self.of_host(host);
        }
        self.cycle += 1;
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        Draw::new(self.plan.seed, DRAWS, 0).below(DRAWS, self.drawn, bound)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// The network is whole for a while, and then it is not.
    fn is_rough(&self) -> bool {
        let now = self.always_rough || !(self.cycle / 50_000).is_multiple_of(4);
        self.steady.is_none() && now
    }

    /// How busy applications are changes, too: sometimes no message finds room.
    fn idles_for(&self) -> u64 {
        [40, 400, 1500][(self.cycle / 20_000 % 3) as usize]
    }

    fn of_host(&mut self, at: usize) -> (Given, Done) {
        let open = self.cycle >= self.hosts[at].opens();
        let message = self.next_message(at);
        let packet = self.comes_to(at, false);
        let done = self.step(at, (message.as_ref(), packet.as_ref(), open));
        (Given { packet, message, open }, done)
    }

    /// A cycle of a host, in which it is given these.
    fn step(
        &mut self,
        at: usize,
        (message, packet, open): (Option<&Msg>, Option<&Packet>, bool),
    ) -> Done {
        let cycle = self.cycle;
        let mut done = Done::default();
        if let Some(message) = message {
            done.takes = self.submit(at, message);
        }
        if let Some(pkt) = packet {
            self.receive(at, pkt);
        }
        let mut slot = Packet::EMPTY;
        let Host { me, nic, .. } = &mut self.hosts[at];
        let chosen = nic.step(cycle, open, *me, &mut slot, &mut self.fx).is_some();
        if chosen {
            done.sends = Some(nic.headers().to_vec());
            self.send(at, slot);
        }
        if at == 0 {
            self.sent = chosen.then_some(slot);
        }
        self.heard(&mut done);
        let again = self.hosts[at].again.pop_front_if(|(due, _)| *due == cycle);
        done.delivers = done.delivers.or(again.map(|(_, key)| key));
        done
    }

    /// The message that a host submits in this cycle, if it does.
    fn next_message(&mut self, at: usize) -> Option<Msg> {
        let Some(len) = self.steady else {
            return self.one_in(self.idles_for()).then(|| self.message(at));
        };
        let (host, other) = (self.hosts.get(at)?, self.hosts.get(1 - at.min(1))?);
        let id = MsgId(host.next_message);
        (at < 2).then(|| Msg { id, ..Msg::new(other.me, len) })
    }

    /// Most messages are short; some have as many packets as a buffer holds.
    fn message(&mut self, at: usize) -> Msg {
        let longest = [100, 1024, 4096, 12_000, 38_912][self.below(5) as usize];
        let len = if self.one_in(32) { 0 } else { 1 + self.below(longest) };
        let other = (at as u64 + 1 + self.below(u64::from(PEERS))) % (u64::from(PEERS) + 1);
        // Half of all go to the NIC under test or come from it.
        let dst =
            if at != 0 && self.one_in(2) { UNDER_TEST } else { self.hosts[other as usize].me };
        let id = MsgId(self.hosts[at].next_message);
        // No draw where there is no choice.
        let transport = if self.transports > 1 { self.below(self.transports) as u8 } else { 0 };
        Msg { id, transport, ..Msg::new(dst, len) }
    }

    fn submit(&mut self, at: usize, message: &Msg) -> bool {
        let host = &mut self.hosts[at];
        let took = host.nic.submit(self.cycle, host.me, message, &mut self.fx) == Submit::Taken;
        host.next_message += u64::from(took);
        if took && message.dst == UNDER_TEST {
            self.lengths.insert(MsgKey { src: host.me, id: message.id }, message.len);
        }
        took
    }

    /// The packet that comes now, if one does.
    fn comes_to(&mut self, at: usize, with_its_first_bit: bool) -> Option<Packet> {
        let cycle = self.cycle;
        let host = &mut self.hosts[at];
        let ((due, _), pkt) = host.inbox.first_key_value()?;
        let early = if with_its_first_bit { on_wire(pkt) } else { 0 };
        if *due > cycle + early || cycle < host.comes {
            return None;
        }
        let (_, pkt) = host.inbox.pop_first()?;
        // What is held up for a while comes in a burst.
        let is_held = self.one_in(16);
        let longest = match (self.plan.is_dense, is_held) {
            _ if self.steady.is_some() => 1,
            (true, true) => 800,
            (true, false) => 1,
            (false, _) => 60,
        };
        let gap = self.below(longest);
        self.hosts[at].comes = cycle + self.plan.spacing + gap;
        Some(pkt)
    }

    /// `pkt` has come.
    fn receive(&mut self, at: usize, pkt: &Packet) {
        let cycle = self.cycle;
        let host = &mut self.hosts[at];
        host.nic.receive(cycle, host.me, (pkt, 1), &mut self.fx);
        if self.fx.as_slice().contains(&Effect::Count(Stat::DeliveredTwice)) {
            let key = MsgKey { src: pkt.src, id: pkt.span.msg };
            host.again.push_back((cycle + self.delivers_after, key));
        }
        if at == 0 {
            self.arrived += 1;
            self.closest += u64::from(cycle - self.last == self.plan.spacing);
            self.last = cycle;
        }
    }

    /// `pkt` leaves, and comes or does not.
    fn send(&mut self, at: usize, pkt: Packet) {
        // What was recorded has its pauses in it.
        let drawn = self.steady.is_none() && self.hosts.len() > 1;
        let pauses = drawn && self.one_in(50);
        let pause = if pauses { self.below(300) } else { 0 };
        // Of short packets the next is chosen before the one before is out.
        let begins = self.hosts[at].free.max(self.cycle * BITS_IN_TWO_CYCLES);
        self.hosts[at].free = begins + 16 * u64::from(pkt.wire_len) + pause * BITS_IN_TWO_CYCLES;
        let longer = if self.steady.is_none() { self.below(20) } else { 0 };
        let lands = self.cycle + 12 + on_wire(&pkt) + 60 + longer;
        let mut pkt = pkt;
        if self.is_rough() {
            match self.below(100) {
                0..4 => return,
                4..7 => {
                    let again = lands + self.below(3000);
                    self.fly(again, pkt);
                }
                7..10 => {
                    let late = lands + self.below(3000);
                    return self.fly(late, pkt);
                }
                10..20 if pkt.carries_payload() => {
                    pkt.flags.set(Flags::TRIMMED);
                    pkt.wire_len = 65;
                }
                _ => {}
            }
        }
        self.fly(lands, pkt);
    }

    fn fly(&mut self, lands: u64, pkt: Packet) {
        self.flights += 1;
        // A trace may have packets for anybody.
        let to = pkt.dst.0.checked_sub(UNDER_TEST.0);
        if let Some(host) = to.and_then(|to| self.hosts.get_mut(to as usize)) {
            host.inbox.insert((lands, self.flights), pkt);
        }
    }

    fn heard(&mut self, done: &mut Done) {
        for effect in self.fx.as_slice() {
            match *effect {
                Effect::Delivered(key) => done.delivers = Some(key),
                Effect::Acked(id) => done.acked = Some(id),
                Effect::Failed(key, _) => done.gives_up = Some(key.id),
                Effect::Count(Stat::HostDrop) => done.lost += 1,
                _ => {}
            }
        }
        self.fx.clear();
    }
}

/// The headers of a packet, as the NIC under test is given them.
pub(super) fn headers(pkt: &Packet) -> Vec<u8> {
    let mut headers = Vec::new();
    frame::write(pkt, 1, &mut headers);
    headers
}
