//! `p4/kv_cache.p4`: the NIC answers what it knows, its host the rest.

use crate::shipped;

use std::collections::BTreeMap;

use crate::bytes::device::Output;
use crate::bytes::network::{Fate, Network};
use proptest::prelude::*;
use shipped::{compile, config, device};
use trimline_nic::nano::config::Config;
use units::{Dur, HostId, Rate};
use wire::nano::Protocol;

const RATE: Rate = Rate(200_000_000_000);
const DELAY: Dur = Dur::from_ns(262);
const SERVER: HostId = HostId(0);
const CLIENT: HostId = HostId(1);
/// What a server in software takes from message to answer: eRPC wire to wire
/// (specs/nanotransport.md#1).
const HOST: Dur = Dur::from_ns(850);

const GET: u8 = 1;
const PUT: u8 = 2;
const FOUND: u8 = 0x81;
const STORED: u8 = 0x82;
const NONE: u8 = 0x83;

/// A request or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kv {
    op: u8,
    request: u32,
    key: u64,
    value: u128,
}

impl Kv {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = b"KVC1".to_vec();
        bytes.extend((u32::from(self.op) << 24 | self.request).to_be_bytes());
        bytes.extend(self.key.to_be_bytes());
        bytes.extend(self.value.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Self {
        assert_eq!((bytes.len(), &bytes[..4]), (32, &b"KVC1"[..]));
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(0, |n: u128, byte| n << 8 | u128::from(*byte))
        };
        let (op, request) = (bytes[4], number(5..8) as u32);
        Self { op, request, key: number(8..16) as u64, value: number(16..32) }
    }
}

/// A client with a NIC, and a server whose NIC has the cache.
struct Bench {
    net: Network,
    transport: u8,
    /// What the server's host has.
    store: BTreeMap<u64, u128>,
    /// Messages that the server's host was given.
    at_host: u32,
    requests: u32,
}

impl Bench {
    fn new(transport: u8) -> Self {
        let protocols = vec![Protocol::Ndp.number(), Protocol::Homa.number()];
        let config = Config { protocols, ..config(Protocol::Ndp, 9) };
        let program = compile("kv_cache.p4", &[]);
        let devices = [SERVER, CLIENT].map(|host| device(host, &program, config.clone()));
        let net = Network::new(devices.into(), RATE, DELAY);
        Self { net, transport, store: BTreeMap::new(), at_host: 0, requests: 0 }
    }

    /// The client asks, and waits for the answer. Returns it, and how long it took.
    fn ask(&mut self, op: u8, key: u64, value: u128) -> (Kv, Dur) {
        self.requests += 1;
        let request = Kv { op, request: self.requests, key, value };
        let (start, client) = self.net.device(CLIENT).unwrap();
        client.submit(start, SERVER, self.transport, request.to_bytes());
        let mut answer = None;
        while answer.is_none() {
            let heard = self.net.step(start + Dur::from_ms(1)).expect("an answer comes");
            for (host, at, output) in heard {
                let Output::Message { bytes, .. } = output else { continue };
                if host == SERVER {
                    self.serve(Kv::parse(&bytes));
                } else {
                    answer = Some((Kv::parse(&bytes), Dur(at.0 - start.0)));
                }
            }
        }
        // The rest of the exchange, so that the next request finds the network idle.
        self.net.run(self.net.now() + Dur::from_us(50));
        answer.unwrap()
    }

    /// The server's host.
    fn serve(&mut self, request: Kv) {
        self.at_host += 1;
        let (op, value) = match request.op {
            PUT => {
                self.store.insert(request.key, request.value);
                (STORED, 0)
            }
            _ => self.store.get(&request.key).map_or((NONE, 0), |value| (FOUND, *value)),
        };
        let answer = Kv { op, value, ..request };
        let at = self.net.now() + HOST;
        self.net.run(at);
        let (_, server) = self.net.device(SERVER).unwrap();
        server.submit(at, CLIENT, self.transport, answer.to_bytes());
    }
}

fn cycles_35() -> Dur {
    Dur(7_188 + 3_750)
}

/// The client's NIC: 12 cycles out, 23 in; the wire twice; the server's NIC: 35 cycles, and the
/// request's ACK before the answer. To the picosecond.
#[test]
fn a_hit_is_answered_at_pipeline_latency() {
    for transport in [0, 1] {
        let mut bench = Bench::new(transport);
        bench.ask(PUT, 5, 55);
        let (answer, took) = bench.ask(GET, 5, 0);
        assert_eq!(answer, Kv { op: FOUND, request: 2, key: 5, value: 55 });
        let wire = RATE.serialise(64 + 32) + DELAY;
        let expected = cycles_35() + wire + wire + cycles_35() + RATE.serialise(65);
        assert_eq!((took, bench.at_host), (expected, 1), "the host has seen the PUT only");
    }
}

#[test]
fn a_miss_goes_to_the_host() {
    let mut bench = Bench::new(0);
    let (answer, _) = bench.ask(GET, 5, 0);
    assert_eq!((answer.op, bench.at_host), (NONE, 1));
    // In the host, not in the cache.
    bench.store.insert(5, 99);
    let (answer, took) = bench.ask(GET, 5, 0);
    assert_eq!((answer.op, answer.value, bench.at_host), (FOUND, 99, 2));
    let wire = RATE.serialise(64 + 32) + DELAY;
    // The ACK has long left when the host answers.
    assert_eq!(took, cycles_35() + wire + wire + cycles_35() + HOST);
}

/// Two keys of one cell: the later one has it, and the earlier one is found at the host. Key 0 is a
/// key.
#[test]
fn the_later_of_two_keys_has_the_cell() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.ask(GET, 0, 0).0.op, NONE, "an empty cell is no hit");
    let other = 1 << 48 | 1;
    bench.ask(PUT, 1, 11);
    bench.ask(PUT, other, 22);
    let before = bench.at_host;
    let asked = [bench.ask(GET, other, 0).0, bench.ask(GET, 1, 0).0];
    assert_eq!(asked.map(|answer| answer.value), [22, 11]);
    assert!(bench.at_host - before <= 1);
}

/// A message of another length, or that begins otherwise, is delivered as it is.
#[test]
fn other_messages_pass() {
    let mut bench = Bench::new(0);
    for bytes in [vec![1; 32], vec![2; 31], b"KVC1".to_vec(), vec![3; 5_000]] {
        let (now, client) = bench.net.device(CLIENT).unwrap();
        client.submit(now, SERVER, 0, bytes.clone());
        let heard = bench.net.run(now + Dur::from_us(50));
        let expected = Output::Message { src: CLIENT, bytes };
        assert!(heard.iter().any(|(host, _, out)| *host == SERVER && *out == expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Against a map, over both transports, with frames that are lost, trimmed, late and doubled.
    #[test]
    fn answers_are_those_of_a_map(
        ops in prop::collection::vec((any::<bool>(), 0..6u64, any::<u128>()), 1..40),
        transport in 0..2u8,
        fates in prop::collection::vec(0..12u8, 64),
    ) {
        let mut bench = Bench::new(transport);
        bench.net.set_fates(Box::new(move |n, frame| match fates[n as usize % 64] {
            0 => Fate::Lost,
            // A header that has no payload is not trimmed, and Homa without TRIM knows no trimmed
            // ones.
            1 if frame.len() > 65 && transport == 0 => Fate::Trimmed,
            2 => Fate::Twice,
            3 => Fate::Late(Dur::from_us(3)),
            _ => Fate::Arrives,
        }));
        let mut model = BTreeMap::new();
        for (put, key, value) in ops {
            // Keys whose cells differ, but for two.
            let key = key | (key & 1) << 48;
            let (answer, _) = bench.ask(if put { PUT } else { GET }, key, value);
            if put {
                model.insert(key, value);
                prop_assert_eq!(answer.op, STORED);
            } else {
                let expected = model.get(&key).map_or((NONE, 0), |value| (FOUND, *value));
                prop_assert_eq!((answer.op, answer.value), expected);
            }
        }
    }
}
