//! The whole receive path of a host: drawn and altered datagrams, of every kind that there is to
//! look at, into hosts of every transport. No bytes stop a host, each datagram is counted, and what
//! it answers is well-formed.
//!
//! `make fuzz` sends ten million (`TRIMLINE_FUZZ`). A failure names its seed;
//! `TRIMLINE_FUZZ_SEED` begins there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use endpoint::{App, AppCx, AppEvent, Draw, Packet, Purpose};
use testkit::hostile::{Dice, Subject, alter};
use trimline_host::{AddressBook, Carried, Config, Content, Counters, Host, Key, Memory};
use units::{Dur, HostId, MsgKey};
use wire::shim::{Datagram, ShimRepr, seal};

use crate::hostile::{ATTACKER, LIFE, VICTIM, altered, real, shim};
use crate::subjects;

/// Datagrams in all, unless `TRIMLINE_FUZZ` says how many.
const DATAGRAMS: u64 = 60_000;
/// To one host.
const RUN: u64 = 500;
/// The ports of the hosts.
const PORTS: u16 = 3;
const MAX_MESSAGE: u64 = 64 << 10;
const MAX_BUFFERED: u64 = 256 << 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn at(host: HostId) -> SocketAddr {
    ([10, 0, 0, host.0 as u8 + 1], 4_000).into()
}

fn key() -> Key {
    Key::new([7; 32])
}

/// Has messages on their way to the peer, cancels one, and is told of each end once. Messages of
/// the peer, who may begin them anew, fail as often as that, but not once they were delivered.
#[derive(Default)]
struct Busy {
    ended: BTreeSet<MsgKey>,
    delivered: u64,
}

impl App for Busy {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for n in 0..6 {
            let id = cx.submit(ATTACKER, 1 + n * 1_700);
            if n == 5 {
                cx.cancel(id);
            }
        }
        cx.signal(ATTACKER, 1, Dur::ZERO);
    }

    fn on_event(&mut self, _: &mut AppCx<'_>, event: AppEvent) {
        let (key, ends) = match event {
            AppEvent::Delivered { key, .. } => (key, true),
            AppEvent::Acked(id) => (MsgKey { src: VICTIM, id }, true),
            AppEvent::Failed(key, _) => (key, key.src == VICTIM),
            AppEvent::Signal { .. } => return,
        };
        self.delivered += u64::from(matches!(event, AppEvent::Delivered { .. }));
        assert!(!self.ended.contains(&key), "{event:?} after its end");
        self.ended.extend(ends.then_some(key));
    }
}

struct Any;

impl Content for Any {
    fn read(&mut self, _: MsgKey, _: u64, buf: &mut [u8]) {
        buf.fill(0);
    }

    fn received(&mut self, _: MsgKey, _: Vec<u8>) {}
}

/// What became of datagrams.
type Sum = [u64; 12];
const OF: [&str; 12] = [
    "received",
    "malformed",
    "damaged",
    "misaddressed",
    "of strangers",
    "forged",
    "stale",
    "refused",
    "contradictions",
    "bytes placed",
    "delivered",
    "sent",
];

fn sum(c: &Counters) -> Sum {
    [
        c.received,
        c.malformed,
        c.damaged,
        c.misaddressed,
        c.unknown_peer,
        c.forged,
        c.stale,
        c.refused,
        c.contradictions,
        c.placed,
        c.delivered,
        c.sent,
    ]
}

fn add(to: &mut Sum, more: &Sum) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

fn print(name: &str, sum: &Sum) {
    let counts: Vec<String> = OF.iter().zip(sum).map(|(of, n)| format!("{n} {of}")).collect();
    println!("{name}: {}", counts.join(", "));
}

/// A datagram of these headers, with any payload of as many bytes; none if no host could write it.
fn written(dice: &mut Dice, shim: ShimRepr, header: &[u8], len: u32, by: Option<&Key>) -> Vec<u8> {
    let mut bytes = vec![dice.below(256) as u8; 9_400];
    let shim = ShimRepr { tagged: by.is_some(), ..shim };
    let len = u16::try_from(len).ok().and_then(|len| shim.emit(header, len, &mut bytes).ok());
    bytes.truncate(len.unwrap_or(0));
    if !bytes.is_empty() {
        seal(&mut bytes, by);
    }
    bytes
}

/// Bytes for the host: noise, or a packet that its peer has once sent, or something between.
fn datagram(dice: &mut Dice, real: &[Packet], key: Option<&Key>) -> Vec<u8> {
    let mut pkt = real[dice.below(real.len() as u64) as usize];
    if dice.below(2) == 0 {
        alter(dice, &mut pkt);
        // Others are ignored before anything is done.
        if dice.below(8) > 0 {
            (pkt.src, pkt.dst) = (ATTACKER, VICTIM);
        }
    }
    let repr = ShimRepr { src: pkt.src, dst: pkt.dst, dst_life: LIFE, ..shim(&pkt) };
    // Who has no key, or another one, may try.
    let other = Key::new([8; 32]);
    let by = match dice.below(16) {
        0 => None,
        1 => Some(&other),
        _ => key,
    };
    let (repr, kind) = match dice.below(4) {
        0 => altered(dice, repr),
        _ => (repr, None),
    };
    let mut bytes = match kind {
        Some(kind) => written(dice, repr, &[kind], 0, by),
        None => written(dice, repr, pkt.header(), pkt.payload_len(), by),
    };
    match dice.below(16) {
        // After it was sealed.
        0 if !bytes.is_empty() => {
            let bit = dice.below(8 * bytes.len() as u64) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        1 => {
            let len = dice.below(2 * bytes.len() as u64 + 1) as usize;
            bytes.resize(len, 1);
        }
        2 => bytes = (0..dice.below(200)).map(|_| dice.below(256) as u8).collect(),
        3 if bytes.len() > 24 => {
            let at = dice.below(24) as usize;
            bytes[at] = dice.below(256) as u8;
            // As if a host had meant it: what is read behind the checks.
            let whole = bytes.len() >= 216;
            if whole && usize::from(bytes[22]) <= 64 && matches!(bytes[23], 0 | 32) {
                seal(&mut bytes, by);
            }
        }
        _ => {}
    }
    bytes
}

/// What the peer answers to `asked`, if that is the question in which life it is.
fn life(asked: &[u8], key: Option<&Key>) -> Option<Vec<u8>> {
    let datagram = Datagram::new_checked(asked).expect("what a host sends is well-formed");
    let repr = ShimRepr::parse(&datagram);
    if repr.proto != 255 || datagram.header() != [3] {
        return None;
    }
    let answer = ShimRepr { src: ATTACKER, dst: VICTIM, src_life: 1, dst_life: LIFE, ..repr };
    let mut bytes = vec![0; 400];
    let len = answer.emit(&[4], 0, &mut bytes).ok()?;
    bytes.truncate(len);
    seal(&mut bytes, key);
    Some(bytes)
}

/// A host of `subject` gets what `seed` draws.
fn run(subject: &Subject<'_>, real: &[Packet], seed: u64) -> Sum {
    let mut dice = Dice::of(Draw::new(seed, Purpose::new("receive path"), 0));
    let key = (dice.below(4) == 0).then(key);
    let book: AddressBook = [ATTACKER, VICTIM].map(|host| (host, at(host))).into();
    let keys: BTreeMap<HostId, Key> =
        key.iter().flat_map(|key| book.keys().map(|&host| (host, key.clone()))).collect();
    let config = Config {
        keys,
        max_message: MAX_MESSAGE,
        max_buffered: MAX_BUFFERED,
        incarnation: LIFE,
        source_ports: PORTS,
        ..Config::loopback(VICTIM, book, seed)
    };
    let [end, peer] = Memory::pair([at(VICTIM), at(ATTACKER)]).unwrap();
    let (mut app, mut content) = (Busy::default(), Any);
    let endpoint = (subject.make)(VICTIM);
    let mut host = Host::new(config, end, endpoint, &mut app, &mut content).unwrap();
    let mut given = 0;
    while given < RUN {
        for _ in 0..1 + dice.below(32) {
            let bytes = datagram(&mut dice, real, key.as_ref());
            let path = bytes.get(16..20).map_or(0, |b| u32::from_be_bytes(b.try_into().unwrap()));
            let mut from = at(ATTACKER);
            match dice.below(32) {
                0 => from.set_port(dice.below(1 << 16) as u16),
                1 => from = at(HostId(77)),
                _ => from.set_port(from.port() + (path % u32::from(PORTS)) as u16),
            }
            peer.send(Carried { from, tos: dice.below(256) as u8, bytes });
            given += 1;
        }
        // One turn.
        host.run(Dur(1), |_| false).unwrap();
        while let Some(Carried { bytes, .. }) = peer.receive() {
            if let Some(bytes) = life(&bytes, key.as_ref()) {
                peer.send(Carried { from: at(ATTACKER), tos: 0, bytes });
                given += 1;
            }
        }
    }
    while host.counters().received < given {
        host.run(Dur(1), |_| false).unwrap();
    }
    let counters = *host.counters();
    drop(host);
    assert_eq!((counters.received, counters.delivered), (given, app.delivered));
    sum(&counters)
}

#[test]
fn no_bytes_stop_a_host_and_all_are_counted() {
    let (datagrams, first) = (number("TRIMLINE_FUZZ"), number("TRIMLINE_FUZZ_SEED"));
    let mut kinds = 0;
    subjects::each(|_| kinds += 1);
    let runs = datagrams.unwrap_or(DATAGRAMS).div_ceil(RUN * kinds).max(1);
    let mut all = Sum::default();
    subjects::each(|subject| {
        let (name, real, mut sum) = (subject.name, real(subject), Sum::default());
        for seed in (first.unwrap_or(0)..).take(runs as usize) {
            let run = AssertUnwindSafe(|| run(subject, &real, seed));
            let ran = catch_unwind(run).unwrap_or_else(|panic| {
                println!("{name}: TRIMLINE_FUZZ_SEED={seed}");
                resume_unwind(panic)
            });
            add(&mut sum, &ran);
        }
        print(name, &sum);
        add(&mut all, &sum);
    });
    print("all", &all);
    assert!(all.into_iter().all(|count| count > 0), "something was never reached");
}
