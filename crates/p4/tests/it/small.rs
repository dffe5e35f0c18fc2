//! Three small programs, written from docs/p4.md alone, and the example of that page: compiled, and
//! run by the interpreter on packets made by hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimline_p4::front;
use trimline_p4::interp::Machine;
use trimline_p4::ir::{self, ErrorId, PipelineId};
use trimline_p4::program::{NoExterns, Parsed, Program};
use trimline_p4::state::State;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/small")
}

fn machine(name: &str) -> Machine {
    let read = |file: &str| std::fs::read_to_string(folder().join(file)).map_err(|e| e.to_string());
    let compiled = front::check(&read, name, &[]);
    let said: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    assert!(said.is_empty(), "{}", said.join("\n"));
    let program = compiled.program.unwrap();
    assert_eq!(ir::check(&program), Ok(()));
    Machine::new(Arc::new(program))
}

/// What comes out of the box: the packet, the port that it leaves by, or the parser's error.
fn pass(machine: &mut Machine, packet: &[u8], port: u8) -> Result<(Vec<u8>, u8), String> {
    let names: Vec<String> =
        machine.program().pipelines[0].meta.iter().map(|m| m.name.clone()).collect();
    assert_eq!(names, ["box.in_port", "box.out_port"], "as the architecture declares them");
    let (mut meta, mut out) = ([u128::from(port), 0], Vec::new());
    let done: Result<Parsed, ErrorId> =
        machine.run(PipelineId(0), packet, &mut meta, &mut out, &mut NoExterns);
    match done {
        Ok(parsed) => {
            out.extend_from_slice(&packet[parsed.bytes..]);
            Ok((out, meta[1] as u8))
        }
        Err(error) => Err(machine.program().errors[error.index()].clone()),
    }
}

fn state(machine: &mut Machine) -> &mut State {
    Program::<NoExterns>::state(machine)
}

const DST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SRC: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn ethernet(ty: u16, rest: &[u8]) -> Vec<u8> {
    [&DST[..], &SRC, &ty.to_be_bytes(), rest].concat()
}

fn ipv4(protocol: u8, dst: [u8; 4], port: u16, length: u16) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend(length.to_be_bytes());
    header.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 9, 9, 9]);
    header.extend(dst);
    header.extend([0x30, 0x39]);
    header.extend(port.to_be_bytes());
    header.extend([0xaa; 8]);
    ethernet(0x0800, &header)
}

#[test]
fn flow_counter_takes_the_longest_prefix_and_the_first_mask() {
    let mut machine = machine("flow_counter.p4");
    for (packet, flow) in [
        (ipv4(17, [10, 0, 1, 7], 0x1234, 300), 2),
        (ipv4(17, [10, 0, 1, 7], 0x2234, 200), 2),
        (ipv4(17, [10, 7, 1, 7], 0x1234, 500), 1),
        (ipv4(6, [10, 0, 1, 7], 0x1234, 900), 0),
        (ipv4(17, [11, 0, 1, 7], 0x1234, 900), 0),
    ] {
        let before = state(&mut machine).counted(ir::CounterId(0), flow).packets;
        let (out, port) = pass(&mut machine, &packet, 4).unwrap();
        assert_eq!((out, port), (packet, 5), "packets pass unchanged");
        let after = state(&mut machine).counted(ir::CounterId(0), flow).packets;
        assert_eq!(after, before + 1, "flow {flow}");
    }
    let largest: Vec<u128> =
        (0..3).map(|n| state(&mut machine).register(ir::RegisterId(0), n)).collect();
    assert_eq!(largest, [0, 500, 300]);
    let high = ipv4(17, [11, 0, 1, 7], 0x8234, 900);
    assert!(pass(&mut machine, &high, 4).is_ok());
    let classes: Vec<u64> =
        (0..4).map(|n| state(&mut machine).counted(ir::CounterId(1), n).packets).collect();
    assert_eq!(classes, [0, 4, 1, 1], "of two entries that match, the first");
    let mut options = ipv4(17, [10, 0, 0, 1], 1, 40);
    options[14] = 0x46;
    assert_eq!(pass(&mut machine, &options, 4), Err("Options".to_owned()));
    assert_eq!(pass(&mut machine, &options[..20], 4), Err("PacketTooShort".to_owned()));
    let other = ethernet(0x86dd, &[1, 2, 3]);
    assert_eq!(pass(&mut machine, &other, 4), Ok((other, 5)));
}

fn segment(flow: u8, bits: u8, sequence: u32, acknowledged: u32, length: u16) -> Vec<u8> {
    let mut header = vec![flow, bits];
    header.extend(sequence.to_be_bytes());
    header.extend(acknowledged.to_be_bytes());
    header.extend(length.to_be_bytes());
    header
}

#[test]
fn ecn_echo_acknowledges_in_order_and_echoes_marks() {
    let mut machine = machine("ecn_echo.p4");
    let answer = |bits, sequence, acknowledged| {
        let mut packet = [&SRC[..], &DST, &[0x88, 0xb5]].concat();
        packet.extend(segment(5, bits, sequence, acknowledged, 0));
        packet
    };
    // Bits of the second byte: five reserved, two of ECN, one echo.
    for (bits, sequence, answer_bits, acknowledged) in [
        (0b0000_0100, 0, 0b0000_0100, 100),
        (0b0000_0110, 100, 0b0000_0101, 200),
        (0b0000_0110, 300, 0b0000_0101, 200),
        (0b1010_1000, 200, 0b1010_1000, 300),
    ] {
        let packet = ethernet(0x88b5, &segment(5, bits, sequence, 77, 100));
        let got = pass(&mut machine, &packet, 9);
        assert_eq!(got, Ok((answer(answer_bits, sequence, acknowledged), 9)), "{sequence}");
    }
    let empty = ethernet(0x88b5, &segment(5, 0, 0, 0, 0));
    assert_eq!(pass(&mut machine, &empty, 9), Ok((empty.clone(), 0)), "exit: nothing is changed");
    let high_flow = ethernet(0x88b5, &segment(0x85, 0, 0, 0, 1));
    assert_eq!(pass(&mut machine, &high_flow, 9), Err("NoError".to_owned()));
    assert_eq!(pass(&mut machine, &empty[..14], 9), Err("PacketTooShort".to_owned()));
}

#[test]
fn source_route_takes_one_hop_and_leaves_a_trail() {
    let mut machine = machine("source_route.p4");
    let trail = |length: u8, last: [u8; 2]| [vec![length, 0, 0, 0, 0, 0], last.to_vec()].concat();
    let packet = |ty, hops: &[u8], trail: &[u8]| ethernet(ty, &[hops, trail, b"payload"].concat());
    let first = packet(0x88b6, &[2, 1, 0x83], &trail(0, [0, 0]));
    let second = packet(0x88b6, &[1, 0x83], &trail(1, [0, 40]));
    let third = packet(0x88b6, &[0x83], &trail(2, [40, 41]));
    assert_eq!(pass(&mut machine, &first, 40), Ok((second.clone(), 12)));
    assert_eq!(pass(&mut machine, &second, 41), Ok((third.clone(), 11)));
    let (last, port) = pass(&mut machine, &third, 42).unwrap();
    assert_eq!((&last[12..14], port), (&[0x88, 0xb7][..], 13), "no hop is left");
    let unknown = packet(0x88b6, &[0x89], &trail(0, [0, 0]));
    assert_eq!(pass(&mut machine, &unknown, 1), Ok((unknown.clone(), 0)));
    let endless = packet(0x88b6, &[1, 1, 1, 1, 0x81], &trail(0, [0, 0]));
    assert_eq!(pass(&mut machine, &endless, 1), Err("StackOutOfBounds".to_owned()));
    let plain = ethernet(0x0800, b"abc");
    assert_eq!(pass(&mut machine, &plain, 1), Ok((plain.clone(), 0)));
}

/// The first program of docs/p4.md is what its text says it is.
#[test]
fn the_example_of_the_page_compiles_and_counts() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/p4.md");
    let page = std::fs::read_to_string(page).unwrap();
    let text = page.split("```p4\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    let compiled = front::check(&|_| Ok(text.clone()), "example.p4", &[]);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let program = Arc::new(compiled.program.unwrap());
    let pipeline = program.pipeline("ingress").unwrap();
    let count = program.pipelines[pipeline.index()].meta.len();
    let mut machine = Machine::new(program);
    let udp = ipv4(17, [10, 0, 0, 1], 0x0bad, 40);
    for _ in 0..3 {
        let (mut meta, mut out) = (vec![0; count], Vec::new());
        let done = machine.run(pipeline, &udp, &mut meta, &mut out, &mut NoExterns);
        assert!(done.is_ok());
    }
    assert_eq!(state(&mut machine).register(ir::RegisterId(0), 0x0b), 3);
}
