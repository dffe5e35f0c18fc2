//! Peers and networks that keep no rule: whole runs drawn from a seed, with endpoints on a network
//! that loses, doubles and reorders packets ([`honest`]), and one that also alters headers, spans
//! and flags and forges packets from those it has seen ([`altered`]).
//!
//! An honest run must deliver everything, once, and then be silent. An altered run may lose
//! anything. It must not panic, break the contract, go round in circles, hold more memory than
//! came, or end a message twice; and a sender must not take a message for delivered before all of
//! it was sent.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use endpoint::{Draw, Msg, Packet, Purpose, UNBOUNDED};
use units::{Dur, HostId, MsgKey, Rate, Time};

use crate::conformance::{Make, Opts, net};
use crate::fault::{self, Mix};
use crate::{Bottleneck, Net};

const HOSTS: u64 = 4;
/// An altered run ends after so many packets,
const PACKETS_MAX: u64 = 4_000;
/// or at this time.
const LIMIT: Dur = Dur::from_ms(200);
/// Packets that forgeries are made from.
const SEEN_MAX: usize = 64;
/// What all endpoints of a run may hold, and what each packet that came may add.
const HELD_MAX: u64 = 1 << 20;
const HELD_PER_PACKET: u64 = 2 << 10;

/// Endpoints to try.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// For messages of failures.
    pub name: &'a str,
    /// Makes the endpoint of a host.
    pub make: Make<'a>,
    /// What there is to know of the transport.
    pub opts: Opts,
    /// How many transports each endpoint carries: messages name one of them.
    pub transports: u8,
    /// Every message is one without end, cancelled at last.
    pub endless: bool,
}

/// What an altered run was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Packets sent.
    pub sent: u64,
    /// Packets altered on their way.
    pub altered: u64,
    /// Packets that no host sent.
    pub forged: u64,
    /// Messages that their senders took for delivered.
    pub acked: u64,
}

/// Numbers drawn one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Dice {
    draw: Draw,
    n: u64,
}

impl Dice {
    fn new(seed: u64, part: u64) -> Self {
        Self::of(Draw::new(seed, Purpose::new("testkit hostile"), part))
    }

    /// The numbers of `draw`.
    #[must_use]
    pub fn of(draw: Draw) -> Self {
        Self { draw, n: 0 }
    }

    /// One below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.n += 1;
        self.draw.below(Purpose::new("dice"), self.n, bound)
    }

    /// Zero half of the time: faults hide behind other faults.
    fn odds(&mut self, max: f64) -> f64 {
        if self.below(2) == 0 { 0.0 } else { max * self.below(1_000) as f64 / 1e3 }
    }
}

/// A message: submitted so long after the one before, from a host; and cancelled after a while,
/// perhaps.
type Order = (Dur, HostId, Msg, Option<Dur>);

fn orders(subject: &Subject<'_>, dice: &mut Dice) -> Vec<Order> {
    let Subject { opts, transports, endless, .. } = *subject;
    let order = |dice: &mut Dice| {
        let src = dice.below(HOSTS);
        let dst = HostId(((src + 1 + dice.below(HOSTS - 1)) % HOSTS) as u32);
        let longest = [2, opts.payload.0 * 2, opts.window.0 * 4][dice.below(3) as usize];
        let len = if endless { UNBOUNDED } else { dice.below(longest) };
        let transport = dice.below(u64::from(transports)) as u8;
        // Each transport has channels of its own.
        let channel = dice.below(4) as u32;
        let channel = if channel == 0 { 0 } else { channel + 4 * u32::from(transport) };
        let prio = dice.below(8) as u8;
        let cancel = dice.below(10) == 0 || endless;
        let cancel = cancel.then(|| Dur::from_us(dice.below(300)));
        let gap = Dur::from_us(dice.below(2) * dice.below(200));
        let msg = Msg { channel, prio, transport, ..Msg::new(dst, len) };
        (gap, HostId(src as u32), msg, cancel)
    };
    (0..1 + dice.below(24)).map(|_| order(dice)).collect()
}

/// The network of a run, with its faults.
fn network(subject: &Subject<'_>, seed: u64, dice: &mut Dice) -> Net {
    let opts = subject.opts;
    let mut net = net(subject.make, opts, seed);
    net.stop_logging();
    let mix = Mix {
        drop: dice.odds(0.2),
        duplicate: dice.odds(0.2),
        delay: dice.odds(0.2),
        trim: if opts.trims { dice.odds(0.2) } else { 0.0 },
        bounce: if opts.bounces { dice.odds(0.1) } else { 0.0 },
        late_max: Dur::from_us(1 + dice.below(2_000)),
    };
    net.fault(fault::random(dice.draw, mix));
    if dice.below(2) == 0 {
        let rate = Rate(1_000_000_000 * (1 + dice.below(10)));
        let packets = 2 + dice.below(30) as usize;
        net.set_bottleneck(HostId(1), Bottleneck { rate, packets, trim: opts.trims });
    }
    net
}

/// Submit everything, with `step` in between. Returns what is to be cancelled and when.
fn submit(net: &mut Net, orders: &[Order], step: &mut dyn FnMut(&mut Net)) -> Vec<(Time, MsgKey)> {
    let mut cancels = Vec::new();
    for &(gap, src, msg, cancel) in orders {
        net.run_until(net.now() + gap);
        step(net);
        let key = net.submit_as(src, msg);
        cancels.extend(cancel.map(|after| (net.now() + after, key)));
    }
    cancels.sort_unstable();
    cancels
}

fn cancel(net: &mut Net, key: MsgKey) {
    let record = net.record(key);
    if record.acked.is_none() && record.failed.is_none() {
        net.cancel(key);
    }
}

/// A run drawn from `seed` in which packets are lost, doubled and late, and trimmed and bounced
/// where the transport takes that. Everything is delivered once, and then there is silence. Returns
/// the digest of the run.
///
/// # Panics
/// If not.
pub fn honest(subject: &Subject<'_>, seed: u64) -> u64 {
    println!("hostile::honest {} seed {seed}", subject.name);
    let mut dice = Dice::new(seed, 0);
    let mut net = network(subject, seed, &mut dice);
    let orders = orders(subject, &mut dice);
    for (at, key) in submit(&mut net, &orders, &mut |_| {}) {
        net.run_until(at);
        cancel(&mut net, key);
    }
    net.run_until_idle(subject.opts.patience);
    net.ledger().assert_all_done();
    assert!(!net.step(), "idle for ever");
    net.digest()
}

/// A run drawn from `seed` in which packets are also altered and forged. `measure` runs what it is
/// given and returns by how many bytes the heap has grown.
///
/// # Panics
/// If an endpoint does what none may do, see the head of this file.
pub fn altered(
    subject: &Subject<'_>,
    seed: u64,
    measure: impl Fn(&mut dyn FnMut()) -> u64,
) -> Outcome {
    println!("hostile::altered {} seed {seed}", subject.name);
    let mut outcome = Outcome::default();
    let mut kept = None;
    let held = measure(&mut || {
        let mut dice = Dice::new(seed, 1);
        let mut net = network(subject, seed, &mut dice);
        let orders = orders(subject, &mut dice);
        outcome = meddle(&mut net, &orders, &mut dice);
        kept = Some(net);
    });
    let came = outcome.sent + outcome.forged;
    let most = HELD_MAX + HELD_PER_PACKET * came;
    assert!(held <= most, "{held} bytes are held after {came} packets");
    outcome
}

/// Run `net` with alterations and forgeries.
fn meddle(net: &mut Net, orders: &[Order], dice: &mut Dice) -> Outcome {
    let seen = Rc::new(RefCell::new(VecDeque::with_capacity(SEEN_MAX)));
    let altered = Rc::new(Cell::new(0));
    let (often, forge) = (1 + dice.below(400), dice.below(3) * dice.below(200));
    let mut own = Dice::of(dice.draw.part(1));
    let (history, counter) = (Rc::clone(&seen), Rc::clone(&altered));
    net.tamper(move |pkt| {
        let mut history = history.borrow_mut();
        if history.len() == SEEN_MAX {
            history.pop_front();
        }
        history.push_back(*pkt);
        if own.below(1_000) < often {
            counter.set(counter.get() + 1);
            alter(&mut own, pkt);
        }
    });
    let mut forged = 0;
    let mut inject = |net: &mut Net| {
        let count = seen.borrow().len() as u64;
        if count > 0 && dice.below(1_000) < forge {
            let mut pkt = seen.borrow()[dice.below(count) as usize];
            alter(dice, &mut pkt);
            forged += 1;
            net.inject(pkt);
        }
    };
    let mut cancels = VecDeque::from(submit(net, orders, &mut inject));
    let end = net.now() + LIMIT;
    while net.sent() < PACKETS_MAX && net.now() < end && net.step() {
        inject(net);
        while cancels.front().is_some_and(|(at, _)| *at <= net.now()) {
            cancels.pop_front().into_iter().for_each(|(_, key)| cancel(net, key));
        }
    }
    let acked = net.ledger().iter().filter(|(_, m)| m.acked.is_some()).count() as u64;
    Outcome { sent: net.sent(), altered: altered.get(), forged, acked }
}

/// Change one to three things of a packet. What remains is still what a datagram can carry to a
/// host.
pub fn alter(dice: &mut Dice, pkt: &mut Packet) {
    for _ in 0..1 + dice.below(3) {
        match dice.below(14) {
            0..7 => alter_field(dice, pkt),
            7 => pkt.span.msg.0 = near(dice, pkt.span.msg.0),
            8 => pkt.span.offset = near(dice, pkt.span.offset),
            9 => pkt.span.len = near(dice, u64::from(pkt.span.len)) as u32,
            10 => pkt.flags.0 ^= 1 << dice.below(6),
            11 => pkt.src = HostId(dice.below(HOSTS) as u32),
            12 => std::mem::swap(&mut pkt.src, &mut pkt.dst),
            _ => {
                pkt.path = dice.below(1 << 32) as u32;
                pkt.wire_len = dice.below(1 << 16) as u16;
                pkt.hdr_len = dice.below(65) as u8;
            }
        }
    }
    if pkt.src == pkt.dst {
        pkt.src = HostId((pkt.dst.0 + 1) % HOSTS as u32);
    }
    if pkt.carries_payload() {
        pkt.span.len &= 0xffff;
    }
    pkt.span.offset = pkt.span.offset.min(u64::MAX - u64::from(pkt.span.len));
}

/// Change a field of the header, wherever its fields are.
fn alter_field(dice: &mut Dice, pkt: &mut Packet) {
    let len = pkt.header().len();
    let width = (1 << dice.below(4)).min(len);
    let at = dice.below((len - width + 1) as u64) as usize;
    let bytes = &mut pkt.hdr[at..at + width];
    let old = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let new = near(dice, old).to_be_bytes();
    bytes.copy_from_slice(&new[8 - width..]);
}

/// Another value for `old`: an end of its range, a neighbour, one bit more or less, any.
fn near(dice: &mut Dice, old: u64) -> u64 {
    match dice.below(8) {
        0 => 0,
        1 => u64::MAX - dice.below(2),
        2 => 1 << dice.below(64),
        3 => old.wrapping_add(1 + dice.below(4)),
        4 => old.wrapping_sub(1 + dice.below(4)),
        5 => old ^ 1 << dice.below(64),
        6 => dice.below(1 << 20),
        _ => dice.below(u64::MAX),
    }
}
