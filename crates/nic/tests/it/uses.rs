//! What the paper names beside transports (SOSR 2021, section 6.2), with bytes: software round
//! reassembly, messages written to memory, a stage for payload.

use crate::shipped;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bytes::device::Output;
use crate::bytes::memory::{Memory, Refusal, write_message};
use crate::bytes::network::{Fate, Network};
use crate::bytes::payload::{Cipher, PayloadStage};
use shipped::{compile, config, device, device_with};
use trimline_nic::nano::clock::cycles;
use units::{Dur, HostId, MsgId, Rate, Time};
use wire::nano::Protocol;

const RATE: Rate = Rate(200_000_000_000);
const DELAY: Dur = Dur::from_ns(262);
const SINK: HostId = HostId(0);
const SOURCE: HostId = HostId(1);
const END: Time = Time(Dur::from_ms(2).0);

/// A network of hosts that run `program`.
fn network(program: &str, hosts: u32) -> Network {
    let program = compile(program, &[]);
    let one = |host| device(HostId(host), &program, config(Protocol::Ndp, 9));
    Network::new((0..hosts).map(one).collect(), RATE, DELAY)
}

/// Every seventh frame is lost, others are trimmed, late, or come twice.
fn bad_network(n: u64, frame: &[u8]) -> Fate {
    match n % 23 {
        7 => Fate::Lost,
        3 | 11 if frame.len() > 65 => Fate::Trimmed,
        5 | 17 => Fate::Late(Dur::from_ns(1_500)),
        13 => Fate::Twice,
        _ => Fate::Arrives,
    }
}

fn bytes(seed: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) ^ seed).to_be_bytes()[1]).collect()
}

/// A frame of UDP, as software makes it.
fn datagram(src: HostId, dst: HostId, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((28 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, src.0 as u8, 10, 0, 0, dst.0 as u8]);
    // Ports whose bits say CHOP where a transport of the NIC has its flags.
    frame.extend([0x1f, 0x90, 0x1f, 0x91]);
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// An unknown protocol reaches software as it is, 23 cycles after its last bit; messages of NDP
/// beside it arrive whole, and neither waits for all of the other.
#[test]
fn software_gets_its_packets_round_reassembly() {
    let mut net = network("ndp_bypass.p4", 2);
    let message = bytes(1, 38_912);
    let frames: Vec<Vec<u8>> =
        (0..30).map(|i| datagram(SOURCE, SINK, &bytes(i, 40 + 30 * i as usize))).collect();
    let (now, source) = net.device(SOURCE).unwrap();
    source.submit(now, SINK, 0, message.clone());
    frames.iter().for_each(|frame| source.transmit(now, frame.clone()));
    let heard = net.run(END);
    let mut raw = Vec::new();
    let mut whole = None;
    for (host, at, output) in heard {
        match output {
            Output::Packet(frame) if host == SINK => raw.push((at, frame)),
            Output::Message { src: SOURCE, bytes } if host == SINK => whole = Some((at, bytes)),
            Output::Acked(MsgId(0)) if host == SOURCE => {}
            other => panic!("{host:?} {at:?} {other:?}"),
        }
    }
    let (whole_at, whole) = whole.unwrap();
    assert!(whole == message);
    assert!(raw.iter().map(|(_, frame)| frame).eq(&frames), "all, as they were, in order");
    // They take turns: a packet of NDP, then the first of software.
    let first =
        Time(0) + Dur(3_750) + RATE.serialise(1088) + RATE.serialise(frames[0].len() as u64);
    assert_eq!(raw[0].0, first + DELAY + Dur(7_188));
    assert!(raw[29].0 < whole_at, "30 packets of software and 30 of NDP go before its last 8");
}

/// Without the bypass the same program drops them.
#[test]
fn without_the_bypass_unknown_packets_are_dropped() {
    let mut net = network("ndp.p4", 2);
    let (now, source) = net.device(SOURCE).unwrap();
    source.transmit(now, datagram(SOURCE, SINK, &[1; 100]));
    assert_eq!(net.run(END), []);
}

/// Writes of three hosts, over a network that loses, trims, delays and doubles: every byte lands
/// once and in its place, each write has one completion, and what is not allowed is refused.
#[test]
fn messages_are_written_to_memory_once_and_in_place() {
    const KEY: u32 = 0xfeed_0001;
    const PART: usize = 12_000;
    let mut net = network("ndp.p4", 4);
    net.set_fates(Box::new(bad_network));
    let mut memory = Memory::new(64);
    memory.register(KEY, vec![0; 9 * PART], true);
    memory.register(2, vec![0; 100], false);
    let expected = bytes(99, 9 * PART);
    for (i, part) in expected.chunks(PART).enumerate() {
        let (now, source) = net.device(HostId(1 + i as u32 % 3)).unwrap();
        source.submit(now, SINK, 0, write_message(KEY, (i * PART) as u64, part));
    }
    for (key, offset) in [(KEY, 9 * PART as u64 - 3), (2, 0), (3, 0)] {
        let (now, source) = net.device(SOURCE).unwrap();
        source.submit(now, SINK, 0, write_message(key, offset, b"evil"));
    }
    let mut acked = 0;
    for (host, _, output) in net.run(END) {
        match output {
            Output::Message { src, bytes } if host == SINK => memory.write(src, &bytes),
            Output::Acked(_) => acked += 1,
            other => panic!("{host:?} {other:?}"),
        }
    }
    assert_eq!((acked, memory.refused()), (12, 3));
    assert!(memory.region(KEY).unwrap() == expected);
    let mut writes = BTreeMap::new();
    let mut refusals = Vec::new();
    while let Some(completion) = memory.poll() {
        match completion.outcome {
            Ok(written) => *writes.entry((written.offset, completion.src)).or_insert(0) += 1,
            Err(why) => refusals.push(why),
        }
    }
    let places = (0..9).map(|i| ((i * PART as u64, HostId(1 + i as u32 % 3)), 1));
    assert_eq!(writes, places.collect());
    let size = 9 * PART;
    let beyond = Refusal::Bounds { offset: size as u64 - 3, len: 4, size };
    refusals.sort_by_key(|why| format!("{why:?}"));
    assert_eq!(refusals, [beyond, Refusal::Key(3), Refusal::ReadOnly]);
}

/// One message from `SOURCE` to `SINK`, with keys of a cipher on both: when it is whole, its bytes,
/// and the frames on the wire.
fn through_ciphers(
    keys: Option<[u8; 2]>,
    message: &[u8],
    fates: fn(u64, &[u8]) -> Fate,
) -> (Time, Vec<u8>, Vec<Vec<u8>>) {
    let program = compile("ndp.p4", &[]);
    let stage = |host: HostId| {
        let key = keys?[host.0 as usize];
        Some(Box::new(Cipher::new([key; 32], 20)) as Box<dyn PayloadStage>)
    };
    let one = |host| device_with(host, &program, config(Protocol::Ndp, 9), stage(host));
    let mut net = Network::new([SINK, SOURCE].map(one).into(), RATE, DELAY);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    net.set_fates(Box::new(move |n, frame| {
        log.borrow_mut().push(frame.to_vec());
        fates(n, frame)
    }));
    let (now, source) = net.device(SOURCE).unwrap();
    source.submit(now, SINK, 0, message.to_vec());
    let whole = net.run(END).into_iter().find_map(|(_, at, output)| match output {
        Output::Message { bytes, .. } => Some((at, bytes)),
        _ => None,
    });
    let (at, bytes) = whole.unwrap();
    (at, bytes, seen.take())
}

/// Packets are sealed one by one, so that lost, trimmed and late ones do not matter; nothing of the
/// message is seen on the wire; a wrong key delivers something else; and both ways are longer by
/// the cycles.
#[test]
fn a_cipher_seals_every_packet_by_its_place() {
    let message = bytes(5, 30_000);
    let (plain_at, plain, seen) = through_ciphers(None, &message, |_, _| Fate::Arrives);
    assert!(plain == message && seen.iter().any(|frame| frame.ends_with(&message[..1024])));
    let (at, opened, sealed) = through_ciphers(Some([9, 9]), &message, |_, _| Fate::Arrives);
    assert!(opened == message);
    // Every 16 bytes of the message.
    let in_clear = |frame: &Vec<u8>| {
        frame.len() > 80
            && message.chunks(16).any(|part| frame[64..].windows(16).any(|w| w == part))
    };
    assert!(!sealed.iter().any(in_clear) && seen.iter().any(in_clear));
    // The first window of nine: no credit is waited for before the ninth packet.
    let short = &message[..9_000];
    let took = |keys| through_ciphers(keys, short, |_, _| Fate::Arrives).0.0;
    let longer = cycles(32).0 - cycles(12).0 + cycles(43).0 - cycles(23).0;
    assert_eq!(took(Some([9, 9])) - took(None), longer);
    assert!(at > plain_at);
    let (_, opened, sealed) = through_ciphers(Some([9, 9]), &message, bad_network);
    assert!(opened == message && sealed.len() > 60, "with losses");
    let (_, wrong, _) = through_ciphers(Some([9, 8]), &message, |_, _| Fate::Arrives);
    let equal = wrong.iter().zip(&message).filter(|(a, b)| a == b).count();
    assert!(wrong.len() == message.len() && equal < 200, "{equal} of 30000; 117 are chance");
}
