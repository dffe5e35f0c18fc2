//! A peer that keeps no rule: it floods a host with packets that look like those of its transport.
//! Every kind of endpoint must stay within its memory, and serve another peer meanwhile.
//!
//! Packets are real ones, of a run of the same transport in the test network, and altered. All of
//! it runs in one thread, so that the heap of the host can be counted.

use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use endpoint::{App, AppCx, Draw, Flags, Packet, Purpose, UNBOUNDED};
use testkit::hostile::{Dice, Subject, alter};
use testkit::{Net, Verdict, conformance};
use trimline_host::{AddressBook, Config, Content, Counters, Host, bind};
use units::{Dur, HostId, MsgId, MsgKey};
use wire::shim::{ShimRepr, seal};

use crate::subjects;

pub(crate) const ATTACKER: HostId = HostId(0);
pub(crate) const VICTIM: HostId = HostId(1);
const HONEST: HostId = HostId(2);
/// Packets of one flood, unless `TRIMLINE_HOSTILE_DATAGRAMS` says how many.
const FLOOD: usize = 3_000;
/// Sent at once: no more than the socket holds.
const BURST: usize = 16;
/// What the host may keep of unfinished messages.
const MAX_BUFFERED: u64 = 256 << 10;
/// Longest message.
const MAX_MESSAGE: u64 = 64 << 10;
/// Of a host that answers: it ends long before.
const LIMIT: Dur = Dur::from_ms(100_000);
/// The life of the hosts that are not hostile.
pub(crate) const LIFE: u64 = 1_000;
/// For what takes milliseconds, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(300);
/// Messages of the honest peer.
const HONEST_MESSAGES: u64 = 5;

/// What a flood is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// The first packets of many messages.
    First,
    /// The same, as a switch leaves them that has cut their payload off.
    Cut,
    /// The same packets again and again.
    Replay,
    /// Headers, spans and flags altered in any way: ids, offsets and lengths among them.
    Forged,
    /// Real packets about other messages.
    Ids,
    /// Real packets of bytes far behind.
    Far,
    /// Acknowledgements, pulls, grants and the like for nothing.
    Control,
    /// Datagrams cut or with more behind.
    Lengths,
    /// What hosts say to each other beside transports: lives, signals, answers, what is over.
    Shim,
}

const ATTACKS: [Attack; 9] = [
    Attack::First,
    Attack::Cut,
    Attack::Replay,
    Attack::Forged,
    Attack::Ids,
    Attack::Far,
    Attack::Control,
    Attack::Lengths,
    Attack::Shim,
];

/// Packets of one flood.
fn count() -> usize {
    let asked = std::env::var("TRIMLINE_HOSTILE_DATAGRAMS");
    asked.ok().and_then(|text| text.parse().ok()).unwrap_or(FLOOD)
}

/// Run a test network of `subject`, and keep what is seen of the packets from the attacker to the
/// victim.
fn watched(
    subject: &Subject<'_>,
    keep: impl Fn(&[Packet], &Packet) -> bool + 'static,
    run: impl FnOnce(&mut Net),
) -> Vec<Packet> {
    let mut net = conformance::net(subject.make, subject.opts, 7);
    net.stop_logging();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&seen);
    net.watch(move |_, _, pkt| {
        let mut sink = sink.borrow_mut();
        if (pkt.src, pkt.dst) == (ATTACKER, VICTIM) && keep(&sink, pkt) {
            sink.push(*pkt);
        }
    });
    run(&mut net);
    seen.take()
}

/// All packets to the victim: of many messages there, and the answers to messages back.
pub(crate) fn real(subject: &Subject<'_>) -> Vec<Packet> {
    let run = |net: &mut Net| {
        for n in 0..200 {
            let len = 1 + n * 37 % (3 * subject.opts.payload.0);
            for (src, dst) in [(ATTACKER, VICTIM), (VICTIM, ATTACKER)] {
                let key = net.submit(src, dst, if subject.endless { UNBOUNDED } else { len });
                if subject.endless {
                    net.run_until(net.now() + Dur::from_us(20));
                    net.cancel(key);
                }
            }
            net.run_until(net.now() + Dur::from_us(20));
        }
        net.run_until(net.now() + Dur::from_ms(20));
    };
    watched(subject, |_, _| true, run)
}

/// The first packets of as many messages as there are in a flood. None of them arrives.
fn first(subject: &Subject<'_>) -> Vec<Packet> {
    let is_next = |sent: &[Packet], pkt: &Packet| {
        pkt.span.msg.0 >= sent.last().map_or(0, |last| last.span.msg.0 + 1)
    };
    let run = |net: &mut Net| {
        net.fault(|_| Verdict::Drop);
        for _ in 0..count() {
            let len = 3 * subject.opts.payload.0;
            let key = net.submit(ATTACKER, VICTIM, if subject.endless { UNBOUNDED } else { len });
            net.run_until(net.now() + Dur::from_us(5));
            net.cancel(key);
        }
    };
    watched(subject, is_next, run)
}

/// What the attacker's shim says of `pkt`.
pub(crate) fn shim(pkt: &Packet) -> ShimRepr {
    ShimRepr { src: ATTACKER, dst: VICTIM, src_life: 1, ..pkt.shim() }
}

/// The same, altered in what transports do not see; half of the time it becomes a packet between
/// hosts, with that header.
pub(crate) fn altered(dice: &mut Dice, shim: ShimRepr) -> (ShimRepr, Option<u8>) {
    const NUMBERS: [u64; 8] = [0, 1, 2, LIFE, LIFE - 1, LIFE << 12, 1 << 63, u64::MAX];
    let mut number = || NUMBERS[dice.below(8) as usize].wrapping_add(dice.below(2));
    let (src_life, dst_life, oldest) = (number(), number(), MsgId(number()));
    let (token, msg) = (number(), MsgId(number()));
    let of_hosts = dice.below(2) == 0;
    // Half of the packets must be of the life that counts, or all others are ignored.
    let src_life = if dice.below(2) == 0 { 1 } else { src_life };
    let shim = ShimRepr { src_life, dst_life, oldest, token, ..shim };
    match of_hosts {
        true => {
            let flags = dice.below(64) as u8;
            let shim = ShimRepr { proto: 255, msg, span_len: 0, flags, ..shim };
            (shim, Some(dice.below(7) as u8))
        }
        false => (shim, None),
    }
}

/// A datagram, with zeros for payload.
fn datagram(shim: &ShimRepr, header: &[u8], payload: u32) -> Option<Vec<u8>> {
    let payload = u16::try_from(payload).ok()?;
    let mut bytes = vec![0; 2_000 + usize::from(payload)];
    let len = shim.emit(header, payload, &mut bytes).ok()?;
    seal(&mut bytes[..len], None);
    bytes.truncate(len);
    (len <= 9_000).then_some(bytes)
}

/// The datagrams of a flood.
fn flood(attack: Attack, real: &[Packet]) -> Vec<Vec<u8>> {
    let draw = Draw::new(3, Purpose::new("hostile peer"), attack as u64);
    let mut dice = Dice::of(draw);
    let is = |pkt: &&Packet| attack != Attack::Control || !pkt.carries_payload();
    let from: Vec<Packet> = real.iter().filter(is).copied().collect();
    let mut all = Vec::new();
    for n in 0..count() {
        let Some(&(mut pkt)) = from.get(n % from.len().max(1)) else { break };
        match attack {
            Attack::Ids => pkt.span.msg = MsgId(dice.below(u64::MAX)),
            Attack::Forged | Attack::Control => alter(&mut dice, &mut pkt),
            Attack::Far => pkt.span.offset = MAX_MESSAGE - u64::from(pkt.span.len),
            Attack::Cut if !pkt.flags.has(Flags::CONTROL) => {
                pkt.flags = pkt.flags.with(Flags::TRIMMED);
            }
            Attack::First | Attack::Cut | Attack::Replay | Attack::Lengths | Attack::Shim => {}
        }
        let bytes = match attack {
            // The first life that is heard of counts.
            Attack::Shim if !all.is_empty() => match altered(&mut dice, shim(&pkt)) {
                (shim, Some(kind)) => datagram(&shim, &[kind], 0),
                (shim, None) => datagram(&shim, pkt.header(), pkt.payload_len()),
            },
            _ => datagram(&shim(&pkt), pkt.header(), pkt.payload_len()),
        };
        let Some(mut bytes) = bytes else { continue };
        if attack == Attack::Lengths {
            let len = dice.below(bytes.len() as u64 * 2) as usize;
            bytes.resize(len, 1);
        }
        all.push(bytes);
    }
    all
}

/// Sends some messages to the victim.
struct Sender(u64);

impl App for Sender {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..self.0 {
            cx.submit(VICTIM, 3_000);
        }
    }
}

fn config(me: HostId, book: &AddressBook) -> Config {
    let (max_message, max_buffered) = (MAX_MESSAGE, MAX_BUFFERED);
    let incarnation = LIFE;
    Config { max_message, max_buffered, incarnation, ..Config::loopback(me, book.clone(), 1) }
}

/// Counts the messages of the honest peer that arrive as they were sent.
#[derive(Default)]
struct Checked {
    intact: u64,
}

impl Content for Checked {
    fn read(&mut self, key: MsgKey, offset: u64, buf: &mut [u8]) {
        endpoint::payload::fill(key, offset, buf);
    }

    fn received(&mut self, key: MsgKey, bytes: Vec<u8>) {
        let as_sent = endpoint::payload::first_difference(key, 0, &bytes).is_none();
        self.intact += u64::from(key.src == HONEST && as_sent);
    }
}

/// The heap of what is run in this thread.
#[derive(Default)]
pub(crate) struct Heap {
    pub(crate) now: i64,
    most: i64,
}

impl Heap {
    pub(crate) fn run<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let (mut result, mut run) = (None, Some(run));
        let count = allocation_counter::measure(|| {
            let run = run.take().expect("once");
            // The counter does not survive a panic.
            result = Some(catch_unwind(AssertUnwindSafe(run)));
        });
        let value = result.expect("it ran").unwrap_or_else(|panic| resume_unwind(panic));
        self.most = self.most.max(self.now + count.bytes_max as i64);
        self.now += count.bytes_current;
        value
    }
}

/// One of any port.
pub(crate) fn socket() -> UdpSocket {
    bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// What a flood did to a host.
struct Flooded {
    /// Its heap before.
    idle: i64,
    /// Its heap at most.
    most: i64,
    /// Whether an honest peer did not get everything there.
    starved: bool,
    counters: Counters,
}

/// Flood a host of `subject` while an honest peer sends it so many messages.
fn flooded(subject: &Subject<'_>, datagrams: &[Vec<u8>], messages: u64) -> Flooded {
    let [attacker, victim, honest] = [(); 3].map(|()| socket());
    let at = |socket: &UdpSocket| socket.local_addr().unwrap();
    let book: AddressBook =
        [(ATTACKER, at(&attacker)), (VICTIM, at(&victim)), (HONEST, at(&honest))].into();
    let to = at(&victim);
    let mut apps = [Sender(0), Sender(messages)];
    let mut contents = [Checked::default(), Checked::default()];
    let ([app, app_2], [content, content_2]) = (&mut apps, &mut contents);
    let mut heap = Heap::default();
    let mut host = heap.run(|| {
        let endpoint = (subject.make)(VICTIM);
        Host::new(config(VICTIM, &book), victim, endpoint, app, content).unwrap()
    });
    let idle = heap.now;
    heap.most = idle;
    let endpoint = (subject.make)(HONEST);
    let mut peer = Host::new(config(HONEST, &book), honest, endpoint, app_2, content_2).unwrap();
    for burst in datagrams.chunks(BURST) {
        let come = host.counters().received + burst.len() as u64;
        for bytes in burst {
            attacker.send_to(bytes, to).unwrap();
        }
        let done = heap.run(|| host.run(LIMIT, |c| c.received >= come).unwrap());
        assert!(done, "{:?}", host.counters());
        peer.run(Dur(1), |_| false).unwrap();
    }
    let since = Instant::now();
    while peer.counters().acked < messages {
        if since.elapsed() > PATIENCE {
            panic!("the honest peer got {} of {messages} through", peer.counters().acked);
        }
        host.run(Dur(1), |_| false).unwrap();
        peer.run(Dur(1), |_| false).unwrap();
    }
    let counters = *host.counters();
    drop(host);
    Flooded { idle, most: heap.most, starved: contents[0].intact < messages, counters }
}

#[test]
fn a_flood_claims_little_memory_and_starves_nobody() {
    let mut failed = Vec::new();
    subjects::each(|subject| {
        let (real, first) = (real(subject), first(subject));
        for attack in ATTACKS {
            let opens = matches!(attack, Attack::First | Attack::Cut);
            let datagrams = flood(attack, if opens { &first } else { &real });
            // The published NICs have tables of fixed sizes: a flood of first packets fills them,
            // and then nobody else has room. So it is meant there.
            let full = subject.name.ends_with("nano") && opens;
            let messages = if full || subject.endless { 0 } else { HONEST_MESSAGES };
            let flooded = flooded(subject, &datagrams, messages);
            let Flooded { idle, most, starved, counters } = flooded;
            let (name, sent) = (subject.name, datagrams.len());
            if attack == Attack::Shim {
                assert!(counters.stale < sent as u64 * 2 / 3, "{name}: {counters:?}");
            }
            // It sends nothing but data.
            let has_none = name == "cbr" && attack == Attack::Control;
            assert!(sent > 0 || has_none, "{name} {attack:?}: nothing to send");
            let bound = 2 * idle + MAX_BUFFERED as i64;
            println!("{name} {attack:?}: {sent} datagrams, heap {idle} idle, {most} at most");
            println!("  {counters:?}");
            if most > bound || starved {
                failed.push(format!("{name} {attack:?}: {most} of {bound}, starved: {starved}"));
            }
        }
    });
    assert!(failed.is_empty(), "{} floods: {failed:#?}", failed.len());
}
