//! What the programs of `p4/` write before the payload, byte for byte (specs/nanotransport.md#3.2),
//! and what of it the NIC refuses.

use crate::shipped;

use p4::interp::Machine;
use p4::ir::PipelineId;
use p4::program::Program as _;
use shipped::{compile, config};
use trimline_nic::nano::buffers::Buffer;
use trimline_nic::nano::config::Config;
use trimline_nic::nano::endpoint::Nano;
use trimline_nic::nano::externs::Units;
use trimline_nic::nano::frame::{SWITCH_MAC, mac_of};
use trimline_nic::nano::meta::{Egress, ip_of};
use units::HostId;
use wire::nano::Protocol;

const ME: HostId = HostId(3);
const EGRESS: PipelineId = PipelineId(1);

/// The last of three packets of 2500 B to host 5, again.
const LAST: Egress = Egress {
    protocol: 0,
    dst_ip: ip_of(HostId(5)),
    dst_context: 0x0102,
    msg_len: 2500,
    pkt_offset: 2,
    src_context: 0x0304,
    tx_msg_id: 0x0506,
    buffer: Buffer { ptr: 0x0708, class: 9 },
    credit: 0,
    rank: 0,
    flags: wire::nano::flags::DATA,
    is_new_msg: false,
    is_rtx: true,
    notes: [0; 3],
};

/// What `program` makes of `packet`.
fn made(file: &str, packet: Egress) -> Vec<u8> {
    let program = compile(file, &[]);
    let config = config(Protocol::Homa, 9);
    let mut units = Units::new(&program, &config).unwrap();
    let (mac, ip) = (mac_of(ME).into(), ip_of(ME).into());
    let mut meta = vec![mac, SWITCH_MAC.into(), ip, config.rtt_packets.into(), 0];
    meta.extend(packet.to_values());
    let mut frame = Vec::new();
    let mut machine = Machine::new(program);
    machine.run(EGRESS, &[], &mut meta, &mut frame, &mut units).unwrap();
    frame
}

#[rustfmt::skip]
const ETHERNET: [u8; 14] = [
    2, 0, 0, 0, 0, 1,       // to the switch
    2, 0, 0x0a, 0, 0, 3,    // from host 3
    0x08, 0x00,
];

/// Headers of IPv4 from 10.0.0.3 to 10.0.0.5: not fragmented, no checksum.
#[rustfmt::skip]
fn ipv4(tos: u8, total_len: u16, protocol: u8) -> [u8; 20] {
    let [high, low] = total_len.to_be_bytes();
    [
        0x45, tos, high, low,
        0, 1, 0, 0,             // identification 1
        64, protocol, 0, 0,
        10, 0, 0, 3,
        10, 0, 0, 5,
    ]
}

fn frame(ipv4: [u8; 20], transport: &[u8]) -> Vec<u8> {
    let mut frame = [&ETHERNET, ipv4.as_slice(), transport].concat();
    frame.resize(64, 0);
    frame
}

#[test]
fn ndp_writes_the_bytes_of_the_specification() {
    let data = made("ndp.p4", Egress { protocol: 155, ..LAST });
    // 50 + 2500 - 2 x 1024.
    #[rustfmt::skip]
    let transport = [
        0x01, 3, 4, 1, 2, 0x09, 0xc4,   // DATA, contexts, 2500 B
        2, 0, 0,                        // packet 2, no PULL
        5, 6, 7, 8, 9,                  // message, buffer, class
    ];
    assert_eq!(data, frame(ipv4(0, 502, 155), &transport));
    let pull = Egress { protocol: 155, flags: 0x0a, credit: 0x0b0c, ..LAST };
    let transport = [0x0a, 3, 4, 1, 2, 0x09, 0xc4, 2, 0x0b, 0x0c, 5, 6, 7, 8, 9];
    assert_eq!(made("ndp.p4", pull), frame(ipv4(0, 51, 155), &transport), "a byte of nothing");
}

#[test]
fn homa_writes_the_bytes_of_the_specification() {
    let again = made("homa.p4", Egress { protocol: 154, ..LAST });
    let transport = [0x01, 3, 4, 1, 2, 0x09, 0xc4, 2, 0, 0, 0, 5, 6, 7, 8, 9];
    assert_eq!(again, frame(ipv4(1, 502, 154), &transport), "again: the first scheduled level");
    let first = Egress { protocol: 154, pkt_offset: 0, is_rtx: false, is_new_msg: true, ..LAST };
    let transport = [0x01, 3, 4, 1, 2, 0x09, 0xc4, 0, 0, 0, 0, 5, 6, 7, 8, 9];
    assert_eq!(made("homa.p4", first), frame(ipv4(0, 1074, 154), &transport), "a full packet");
    let grant = Egress { protocol: 154, flags: 0x08, credit: 12, rank: 2, is_rtx: false, ..LAST };
    let transport = [0x08, 3, 4, 1, 2, 0x09, 0xc4, 2, 0, 12, 2, 5, 6, 7, 8, 9];
    assert_eq!(made("homa.p4", grant), frame(ipv4(0, 51, 154), &transport));
}

/// Both programs in one image write what each writes alone.
#[test]
fn the_image_of_both_writes_the_same() {
    for (alone, protocol) in [("ndp.p4", 155), ("homa.p4", 154)] {
        let packet = Egress { protocol, ..LAST };
        assert_eq!(made("ndp_homa.p4", packet), made(alone, packet));
    }
}

/// Why the NIC does not take a program of `p4/window.p4` with one line replaced, for `protocol`.
fn refused(line: &str, by: &str, protocol: u8) -> Option<String> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).map_err(|e| e.to_string());
    let changed = |name: &str| {
        let text = read(name)?;
        if name == "window.p4" {
            assert_eq!(text.matches(line).count(), 1, "{line}");
        }
        Ok(if name == "window.p4" { text.replace(line, by) } else { text })
    };
    let program = std::sync::Arc::new(p4::front::compile(&changed, "window.p4", &[]).unwrap());
    let config = Config { protocols: vec![protocol], ..config(Protocol::Ndp, 9) };
    let nano = Nano::new(&program, Box::new(Machine::new(program.clone())), config);
    nano.and_then(Nano::try_egress).err().map(|why| why.to_string())
}

#[test]
fn frames_that_nobody_would_understand_are_refused() {
    let line = "headers.ipv4.dst = egress.dst_ip;";
    assert_eq!(refused(line, line, 253), None);
    let wrong = [
        (line, "headers.ipv4.dst = 0;", "its `ipv4.dst` is 0x0, that of the packet is 0xa000002"),
        (
            line,
            "headers.ipv4.dst = egress.dst_ip; headers.ipv4.total_len = 0;",
            "its `ipv4.total_len` is 0x0",
        ),
        (
            line,
            "headers.ipv4.dst = egress.dst_ip; headers.ipv4.version_ihl = 0;",
            "its `ipv4.version_ihl` is 0x0",
        ),
        (
            line,
            "headers.ipv4.dst = egress.dst_ip; headers.ipv4.setInvalid();",
            "its `ipv4.version_ihl` is 0x1",
        ),
        (
            line,
            "headers.ipv4.dst = egress.dst_ip; delivered({0, 0, 0});",
            "the egress pipeline calls `delivered`",
        ),
    ];
    for (line, by, why) in wrong {
        let refused = refused(line, by, 253).expect(by);
        assert!(refused.contains(why), "{by}: {refused}");
    }
}
