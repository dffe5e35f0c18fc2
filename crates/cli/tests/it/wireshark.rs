//! `wireshark/trimline.lua` reads what the crate `wire` writes, and captures raise no false alarm.
//! Skipped where there is no tshark.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use metrics::{Interface, PcapngWriter};
use units::{HostId, MsgId, Rate};
use wire::frame::{Carrier, Ecn, FrameRepr};
use wire::shim::{Key, ShimRepr, seal};
use wire::{cbr, homa, mptcp, nano, ndp, pfabric, phost, roce, tcp, uet};

/// Whether there is tshark; otherwise says why a test does nothing.
pub(crate) fn there_is_tshark() -> bool {
    let there = Command::new("tshark").arg("--version").output();
    if let Err(error) = &there {
        println!("skipped: tshark: {error}");
    }
    there.is_ok()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What tshark says of a capture, with the script.
pub(crate) fn tshark(capture: &Path, args: &[&str]) -> String {
    let script = format!("lua_script:{}", root().join("wireshark/trimline.lua").display());
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-X", &script, "-r"]).arg(capture).args(args);
    let Output { status, stdout, stderr } = tshark.output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.success() && !stderr.contains("Lua"), "{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// A packet, what the column of protocols calls it, and what its fields must say.
struct Case {
    frame: Vec<u8>,
    protocol: &'static str,
    fields: Vec<(String, u64)>,
}

fn case(
    protocol: &'static str,
    prefix: &str,
    carrier: Carrier,
    header: &[u8],
    fields: &[(&str, u64)],
) -> Case {
    let repr = FrameRepr {
        src: HostId(1),
        dst: HostId(2),
        carrier,
        class: 3,
        ecn: Ecn::Capable,
        path: 5,
        body_len: header.len() as u16,
    };
    let mut frame = vec![0; 200];
    let len = repr.emit(header, &mut frame).unwrap();
    frame.truncate(len);
    let fields =
        fields.iter().map(|(name, value)| (format!("trimline.{prefix}.{name}"), *value)).collect();
    Case { frame, protocol, fields }
}

const fn ip(proto: u8) -> Carrier {
    Carrier::Ip { proto }
}

fn ndp_cases() -> Vec<Case> {
    let connection = 0x0102_0304_0506_0708;
    let data = ndp::Data {
        seq: 11,
        syn: true,
        last: false,
        retransmission: true,
        chopped: true,
        prio: 3,
        len: 8936,
        pacer_echo: Some(77),
    };
    let feedback = ndp::Feedback { seq: 12, cumulative: 13, pull: Some(14) };
    let of = |kind, fields: &[(&str, u64)]| {
        let header = ndp::Repr { connection, kind }.to_bytes();
        let fields = [&[("connection", connection)], fields].concat();
        case("NDP", "ndp", ip(ndp::PROTOCOL), &header, &fields)
    };
    vec![
        of(
            ndp::Kind::Data(data),
            &[
                ("flags.data", 1),
                ("flags.syn", 1),
                ("flags.fin", 0),
                ("flags.rtx", 1),
                ("flags.chopped", 1),
                ("flags.pacer_valid", 1),
                ("seq", 11),
                ("pacer_echo", 77),
                ("priority", 3),
                ("payload_len", 8936),
            ],
        ),
        of(
            ndp::Kind::Ack(feedback),
            &[("flags.ack", 1), ("seq", 12), ("pull_number", 14), ("cumulative_ack", 13)],
        ),
        of(
            ndp::Kind::Nack(feedback),
            &[("flags.nack", 1), ("flags.pull", 1), ("seq", 12), ("cumulative_ack", 13)],
        ),
        of(
            ndp::Kind::Pull { pull: 21, pacer: 22, cumulative: 23 },
            &[
                ("flags.pull", 1),
                ("flags.ack", 0),
                ("pull_number", 21),
                ("pacer_number", 22),
                ("cumulative_ack", 23),
            ],
        ),
        of(ndp::Kind::Keepalive, &[("flags.keepalive", 1), ("flags.data", 0)]),
    ]
}

fn homa_cases() -> Vec<Case> {
    let whole = homa::Whole { first_missing: 31, behind: 0x8000_0001 };
    let data = homa::Data {
        len: 1460,
        index: 32,
        size: 0x0102_0304_0506,
        unscheduled: 33,
        head: 0,
        oldest: 34,
        marked: true,
        response: true,
        whole,
    };
    let of = |kind, fields: &[(&str, u64)]| {
        let header = homa::Repr { number: 30, kind }.to_bytes();
        let fields = [&[("number", 30)], fields].concat();
        case("Homa", "homa", ip(homa::PROTO), header.as_slice(), &fields)
    };
    vec![
        of(
            homa::Kind::Data(data),
            &[
                ("type", 1),
                ("marked", 1),
                ("response", 1),
                ("head", 0),
                ("payload_len", 1460),
                ("index", 32),
                ("message_len", 0x0102_0304_0506),
                ("unscheduled", 33),
                ("oldest", 34),
                ("first_missing", 31),
                ("whole", 0x8000_0001),
            ],
        ),
        of(
            homa::Kind::Grant { granted: 41, level: 6 },
            &[("type", 2), ("priority", 6), ("granted", 41)],
        ),
        of(
            homa::Kind::Resend { first: 42, end: 43, level: 5 },
            &[("type", 3), ("priority", 5), ("first", 42), ("end", 43)],
        ),
        of(homa::Kind::Unknown { mine: true }, &[("type", 4), ("mine", 1)]),
        of(homa::Kind::Busy { mine: false }, &[("type", 5), ("mine", 0)]),
        of(homa::Kind::NeedAck, &[("type", 6)]),
        of(
            homa::Kind::Ack { first_missing: 44, next: 9 },
            &[("type", 7), ("first_missing", 44), ("whole", 9)],
        ),
        of(
            homa::Kind::Nack { index: 45, granted: 46 },
            &[("type", 8), ("index", 45), ("granted", 46)],
        ),
    ]
}

fn phost_cases() -> Vec<Case> {
    let message = 0x1112_1314_1516_1718;
    let of = |kind, fields: &[(&str, u64)]| {
        let header = phost::Repr { message, kind }.to_bytes();
        let fields = [&[("message", message)], fields].concat();
        case("pHost", "phost", ip(phost::PROTO), &header, &fields)
    };
    vec![
        of(
            phost::Kind::Req { size: 50_000, free: 8 },
            &[("type", 1), ("free_tokens", 8), ("message_len", 50_000)],
        ),
        of(
            phost::Kind::Token { number: 51, seq: 52, missing: 53 },
            &[("type", 2), ("token", 51), ("index", 52), ("missing", 53)],
        ),
        of(
            phost::Kind::Data { number: 54, seq: 55, size: 56_000, len: 1460 },
            &[
                ("type", 3),
                ("token", 54),
                ("index", 55),
                ("message_len", 56_000),
                ("payload_len", 1460),
            ],
        ),
        of(phost::Kind::Ack, &[("type", 4)]),
        of(phost::Kind::End, &[("type", 5)]),
    ]
}

fn pfabric_cases() -> Vec<Case> {
    let message = 0x2122_2324_2526_2728;
    let of = |kind, fields: &[(&str, u64)]| {
        let header = pfabric::Repr { message, kind }.to_bytes();
        let fields = [&[("message", message)], fields].concat();
        case("pFabric", "pfabric", ip(pfabric::PROTO), &header, &fields)
    };
    vec![
        of(
            pfabric::Kind::Data { remaining: 60_000, seq: 61, size: 62_000, len: 1460 },
            &[
                ("type", 1),
                ("remaining", 60_000),
                ("index", 61),
                ("message_len", 62_000),
                ("payload_len", 1460),
            ],
        ),
        of(
            pfabric::Kind::Probe { remaining: 63, seq: 64, size: 65 },
            &[("type", 2), ("remaining", 63), ("index", 64), ("message_len", 65)],
        ),
        of(
            pfabric::Kind::Ack { seq: 66, missing: 67 },
            &[("type", 3), ("index", 66), ("missing", 67)],
        ),
        of(pfabric::Kind::End, &[("type", 4)]),
    ]
}

fn uet_cases() -> Vec<Case> {
    let message = 0x2122_2324_2526_2728;
    let of = |kind, fields: &[(&str, u64)]| {
        let header = uet::Repr { message, kind }.to_bytes();
        let fields = [&[("message", message)], fields].concat();
        case("Ultra Ethernet", "uet", ip(uet::PROTO), &header, &fields)
    };
    let (entropy, psn) = (0x7173, 61);
    let ack = uet::Ack {
        repeated: true,
        marked: true,
        probe: true,
        expected: 62,
        bitmap: 0x4000_0000_0000_0001,
        base: 63,
        received: 0x7a_7b7c,
        out_of_order: 64,
    };
    let answered = [("entropy", u64::from(entropy)), ("psn", 61)];
    let with = |fields: &[(&'static str, u64)]| [&answered, fields].concat();
    vec![
        of(
            uet::Kind::Request {
                entropy,
                psn,
                size: 62_000,
                len: 4086,
                ack_request: true,
                repeated: false,
                kept: true,
                target: 0x5152_5354,
            },
            &with(&[
                ("type", 2),
                ("flags.ack_request", 1),
                ("flags.repeated", 0),
                ("flags.kept", 1),
                ("message_len", 62_000),
                ("payload_len", 4086),
                ("credit_target", 0x5152_5354),
            ]),
        ),
        of(
            uet::Kind::Ack { entropy, psn, ack },
            &with(&[
                ("type", 8),
                ("flags.repeated", 1),
                ("flags.marked", 1),
                ("flags.probe", 1),
                ("expected", 62),
                ("bitmap", 0x4000_0000_0000_0001),
                ("base", 63),
                ("received", 0x7a_7b7c),
                ("out_of_order", 64),
            ]),
        ),
        of(
            uet::Kind::Nack { entropy, psn, marked: false, last_hop: true },
            &with(&[("type", 10), ("flags.marked", 0), ("flags.last_hop", 1)]),
        ),
        of(uet::Kind::Close, &[("type", 11), ("control", 0)]),
        of(uet::Kind::Credit { given: 65 }, &[("type", 11), ("control", 1), ("credit", 65)]),
        of(
            uet::Kind::CreditRequest { size: 62_000, kept: false, target: 66 },
            &[("type", 11), ("control", 2), ("message_len", 62_000), ("credit_target", 66)],
        ),
        of(uet::Kind::Probe { entropy, number: 61 }, &with(&[("type", 11), ("control", 3)])),
    ]
}

fn roce_cases() -> Vec<Case> {
    let of = |kind, fields: &[(&str, u64)]| {
        let header = roce::Repr { queue_pair: 0x71_7273, psn: 0x74_7576, kind }.to_bytes();
        let fields = [&[("queue_pair", 0x71_7273)], fields].concat();
        case("RoCE", "roce", Carrier::Udp { port: roce::PORT }, header.as_slice(), &fields)
    };
    let data = roce::Data {
        answers: false,
        part: roce::Part::Last,
        ack: true,
        ends_message: true,
        ends_queue_pair: false,
        given_up: true,
    };
    let ack = roce::Ack {
        nak: false,
        over: false,
        marked: true,
        messages: 81,
        cause: Some(82),
        remote: 83,
        bitmap: Some(84),
    };
    vec![
        of(
            roce::Kind::Data(data),
            &[
                ("opcode", 2),
                ("solicited", 1),
                ("ack_request", 1),
                ("ends", 0),
                ("given_up", 1),
                ("psn", 0x74_7576),
            ],
        ),
        of(
            roce::Kind::ReadRequest { position: 85, packets: 86 },
            &[("opcode", 0x0c), ("position", 85), ("packets", 86)],
        ),
        // An acknowledgement names the last packet that it acknowledges.
        of(
            roce::Kind::Ack(ack),
            &[
                ("opcode", 0x11),
                ("psn", 0x74_7575),
                ("becn", 1),
                ("syndrome", 0x1f),
                ("messages", 81),
                ("caused_by", 82),
                ("turnaround", 83),
                ("bitmap", 84),
            ],
        ),
        of(roce::Kind::Cnp, &[("opcode", 0x81)]),
        of(
            roce::Kind::Advert { message: 87, len: 88, ends_queue_pair: true, given_up: false },
            &[("opcode", 0xc0), ("message", 87), ("message_len", 88), ("ends", 1)],
        ),
    ]
}

fn nano_cases() -> Vec<Case> {
    let repr = |kind| nano::Repr {
        kind,
        src_context: 91,
        dst_context: 92,
        msg_len: 93,
        pkt_offset: 94,
        credit: 95,
        grant_prio: 5,
        tx_msg_id: 96,
        buf_ptr: 97,
        buf_size_class: 98,
    };
    let both = [
        ("src_context", 91),
        ("dst_context", 92),
        ("message_len", 93),
        ("index", 94),
        ("message", 96),
        ("buffer", 97),
        ("size_class", 98),
    ];
    let of = |protocol: nano::Protocol, name, prefix, kind, fields: &[(&str, u64)]| {
        let header = repr(kind).to_bytes(protocol);
        case(name, prefix, ip(protocol.number()), &header, &[&both, fields].concat())
    };
    let ndp = |kind, fields: &[_]| of(nano::Protocol::Ndp, "nano-NDP", "nano-ndp", kind, fields);
    let homa =
        |kind, fields: &[_]| of(nano::Protocol::Homa, "nano-Homa", "nano-homa", kind, fields);
    vec![
        ndp(nano::Kind::Data { chopped: true }, &[("flags.chop", 1), ("pull_offset", 95)]),
        ndp(nano::Kind::Ack { pull: true }, &[("flags.ack", 1), ("flags.pull", 1)]),
        ndp(nano::Kind::Nack { pull: false }, &[("flags.nack", 1), ("flags.pull", 0)]),
        homa(nano::Kind::Data { chopped: false }, &[("flags.data", 1), ("grant_offset", 95)]),
        homa(nano::Kind::Credit, &[("flags.grant", 1), ("priority", 5)]),
    ]
}

fn cbr_case() -> Case {
    let header = cbr::Repr { message: 101, seq: 102 }.to_bytes();
    let carrier = Carrier::Udp { port: cbr::PORT };
    case("CBR", "cbr", carrier, &header, &[("message", 101), ("seq", 102)])
}

/// Multipath TCP is TCP to Wireshark, with an option that it does not know.
fn mptcp_case() -> Case {
    let repr = tcp::Repr {
        src_port: 1,
        dst_port: 2,
        seq: 3,
        ack: 4,
        control: tcp::Control(0x18),
        window: 5,
        sack: tcp::SackBlocks::NONE,
        timestamps: None,
    };
    let body = mptcp::Body::Data { dsn: 6, len: 1400 };
    let signal = mptcp::Signal { token: 7, subflow: 8, scattered: true, body };
    let mut header = [0; 60];
    repr.emit(&mut header).unwrap();
    let len = signal.append(&mut header).unwrap();
    case("TCP", "", ip(tcp::PROTO), &header[..len], &[])
}

/// What a real host sends: the shim in UDP, NDP's header behind it, and payload.
fn shim_case(tagged: bool) -> Case {
    let shim = ShimRepr {
        src: HostId(111),
        dst: HostId(112),
        proto: ndp::PROTOCOL,
        path: 113,
        class: 4,
        flags: wire::shim::flag::CE,
        wire_len: 114,
        msg: MsgId(115),
        offset: 116,
        span_len: 117,
        tag: 118,
        token: 119,
        src_life: 120,
        dst_life: 121,
        oldest: MsgId(122),
        tagged,
    };
    let kind = ndp::Kind::Pull { pull: 123, pacer: 124, cumulative: 125 };
    let header = ndp::Repr { connection: 126, kind }.to_bytes();
    let mut datagram = vec![0; 200];
    let len = shim.emit(&header, 8, &mut datagram).unwrap();
    datagram.truncate(len);
    seal(&mut datagram, Some(&Key::new([1; 32])));
    let shim = [
        ("version", 2),
        ("proto", u64::from(ndp::PROTOCOL)),
        ("class", 4),
        ("flags.ce", 1),
        ("flags.trimmed", 0),
        ("src", 111),
        ("dst", 112),
        ("path", 113),
        ("wire_len", 114),
        ("hdr_len", 24),
        ("tags_len", if tagged { 32 } else { 0 }),
        ("message", 115),
        ("offset", 116),
        ("span", 117),
        ("payload_len", 8),
        ("tag", 118),
        ("token", 119),
        ("src_life", 120),
        ("dst_life", 121),
        ("oldest", 122),
    ];
    let mut case = case("NDP", "shim", Carrier::Udp { port: 4242 }, &datagram, &shim);
    case.fields.push(("trimline.ndp.pull_number".to_owned(), 123));
    case.fields.push(("trimline.ndp.cumulative_ack".to_owned(), 125));
    case
}

/// As tshark of any version writes numbers and bits.
fn value(text: &str) -> Option<u64> {
    match text {
        "True" => Some(1),
        "False" => Some(0),
        _ => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
    }
}

#[test]
fn every_field_of_every_header_is_decoded() {
    if !there_is_tshark() {
        return;
    }
    let mut cases = ndp_cases();
    cases.extend(homa_cases());
    cases.extend(phost_cases());
    cases.extend(pfabric_cases());
    cases.extend(uet_cases());
    cases.extend(roce_cases());
    cases.extend(nano_cases());
    cases.extend([cbr_case(), mptcp_case(), shim_case(false), shim_case(true)]);

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("packets.pcapng");
    let link = Interface { name: "host 1 -> host 2".to_owned(), rate: Rate(10_000_000_000) };
    let mut capture = PcapngWriter::new(File::create(&file).unwrap(), [link]).unwrap();
    for (at, case) in (0..).zip(&cases) {
        capture.packet(at, 0, &case.frame, case.frame.len() as u32).unwrap();
    }

    let mut names: Vec<&str> = Vec::new();
    names.extend(cases.iter().flat_map(|case| case.fields.iter().map(|(name, _)| name.as_str())));
    names.sort_unstable();
    names.dedup();
    let mut args = vec!["-T", "fields", "-E", "separator=|", "-e", "_ws.col.Protocol"];
    args.extend(names.iter().flat_map(|name| ["-e", *name]));
    let text = tshark(&file, &args);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), cases.len(), "{text}");
    for (case, line) in cases.iter().zip(lines) {
        let mut values = line.split('|');
        assert_eq!(values.next(), Some(case.protocol), "{line}");
        let decoded: Vec<_> = names.iter().zip(values).collect();
        for (name, wanted) in &case.fields {
            let (_, text) = decoded.iter().find(|(n, _)| *n == name).unwrap();
            assert_eq!(value(text), Some(*wanted), "{name} of {}: {text:?}", case.protocol);
        }
    }
    assert_eq!(tshark(&file, &["-Y", "_ws.malformed"]), "");
}

/// The capture of a run of `scenario`, in `dir`, and its summary.
fn captured(dir: &Path, scenario: &str, settings: &[&str]) -> (PathBuf, serde_json::Value) {
    let mut trimline = assert_cmd::Command::cargo_bin("trimline").unwrap();
    trimline.arg("run").arg(root().join("scenarios").join(scenario));
    for setting in settings {
        trimline.args(["--set", setting]);
    }
    trimline.args(["--trace", "packets", "--progress", "never", "--out"]).arg(dir);
    let output = trimline.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary = std::fs::read_to_string(dir.join("summary.json")).unwrap();
    (dir.join("packets.pcapng"), serde_json::from_str(&summary).unwrap())
}

/// An incast in which NDP trims and sends again, responses of Homa, a fabric that pauses: all is
/// as it should be, and tshark has nothing to say.
#[test]
fn captures_raise_no_alarm() {
    if !there_is_tshark() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let short = ["measure.from=0us", "measure.to=300us"];
    let runs: [(&str, &[&str]); 3] = [
        ("ndp_incast_100x135KB.toml", &[]),
        ("homa_incast.toml", &[]),
        ("lossless/victim.toml", &short),
    ];
    for (at, (scenario, settings)) in runs.into_iter().enumerate() {
        let (capture, _) = captured(&dir.path().join(at.to_string()), scenario, settings);
        assert!(!tshark(&capture, &["-c", "1"]).is_empty(), "{scenario}");
        let alarms = tshark(&capture, &["-q", "-z", "expert"]);
        assert_eq!(alarms.trim(), "", "{scenario}");
    }
}

/// Losses of an incast: Wireshark calls no packet a repetition but what was sent again.
#[test]
fn only_what_is_sent_again_is_called_so() {
    if !there_is_tshark() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (capture, summary) = captured(dir.path(), "demo/incast_newreno.toml", &[]);
    assert_eq!(tshark(&capture, &["-Y", "_ws.malformed"]), "");
    let again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission \
                 || tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order";
    let called = tshark(&capture, &["-Y", again]).lines().count() as u64;
    let sent = summary["packets"]["retransmitted"].as_u64().unwrap();
    assert!((1..=sent).contains(&called), "{called} of {sent}");
}

/// Interface, time and source of each frame.
fn frames(capture: &Path) -> Vec<(String, f64, String)> {
    let fields = ["frame.interface_name", "frame.time_epoch", "ip.src"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let args: Vec<&str> = ["-T", "fields"].into_iter().chain(fields).collect();
    let lines = tshark(capture, &args);
    let frame = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        let mut next = || fields.next().unwrap();
        (next(), next().parse().unwrap(), next())
    };
    lines.lines().map(frame).collect()
}

#[test]
fn a_capture_at_a_host_is_what_it_sends_and_gets() {
    if !there_is_tshark() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let traced = |trace: &str, out: &str| {
        let mut run = assert_cmd::Command::cargo_bin("trimline").unwrap();
        run.current_dir(dir.path()).args(["run", "--trace", trace, "--out", out]);
        let scenario = root().join("scenarios/first.toml");
        run.arg(scenario).args(["--set", "measure.to=1100us"]).assert().success();
        dir.path().join(out)
    };
    let all = frames(&traced("packets", "all").join("hops.pcapng"));
    let at_host = traced("packets@host:3", "host");
    assert!(!at_host.join("hops.pcapng").exists());
    let at_host = frames(&at_host.join("packets.pcapng"));
    assert!(at_host.is_sorted_by(|a, b| a.1 <= b.1), "in the order of time");
    let of = |frames: &[(String, f64, String)], name: &str| -> Vec<f64> {
        frames.iter().filter(|frame| frame.0 == name).map(|frame| frame.1).collect()
    };
    let (out, into) = ("host 3 -> tor 0", "tor 0 -> host 3");
    assert_eq!(of(&at_host, into), of(&all, into), "when they have arrived");
    let (begun, ended) = (of(&at_host, out), of(&all, out));
    assert!(begun.len() >= ended.len() && ended.len() > 10, "{begun:?} {ended:?}");
    // A link's delay and the shortest packet.
    assert!(begun.iter().zip(&ended).all(|(begun, ended)| ended - begun > 1e-6));
    assert_eq!(at_host.len(), begun.len() + of(&at_host, into).len(), "and nothing else");
    let link = frames(&traced("packets@tor 0 -> host 3", "link").join("packets.pcapng"));
    assert_eq!(of(&link, into), of(&all, into));
    assert_eq!(link.len(), of(&all, into).len());
}
