//! Two implementations of the programmable NIC that share nothing but the headers, the native models
//! (`ndp-nano`, `homa-nano`, `homatr-nano`) and the P4 programs on the NIC's blocks (`p4`), send the same packets
//! at the same picosecond: on the incast of the nanoTransport paper, and in a hundred drawn scenarios.
//! docs/nanotransport.md, "Timing and order", is what both follow.

use std::path::Path;

use endpoint::{Draw, MessageRecord, Observer, Packet, PacketEvent, Purpose};
use trimline_scenario::{Options, Scenario, observe};
use units::Time;

/// Everything that a host puts on its link, or that a switch does to it: time, link, what, and the packet's
/// addresses, class, length and header.
#[derive(Default)]
struct Trace {
    packets: Vec<(Time, u32, String, Seen)>,
    /// What became of each message.
    messages: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    src: u32,
    dst: u32,
    proto: u8,
    class: u8,
    wire_len: u16,
    flags: u8,
    header: Vec<u8>,
}

impl Observer for Trace {
    const PACKETS: bool = true;

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let seen = Seen {
            src: pkt.src.0,
            dst: pkt.dst.0,
            proto: pkt.proto,
            class: pkt.class,
            wire_len: pkt.wire_len,
            flags: pkt.flags.0,
            header: pkt.header().to_vec(),
        };
        self.packets.push((at, link, format!("{event:?}"), seen));
    }

    fn message(&mut self, record: &MessageRecord) {
        self.messages.push(format!("{record:?}"));
    }
}

/// What happens in the scenario `text`.
fn trace(text: &str) -> Trace {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4");
    let name = here.join("agreement.toml").display().to_string();
    let scenario = Scenario::parse(&name, text, &here, &[]);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}\n{text}", e.render(false)));
    let options = Options { threads: Some(1), ..Options::default() };
    let observed = observe(&scenario, &options, Trace::default());
    observed.unwrap_or_else(|e| panic!("{e}\n{text}")).1
}

/// Run both and compare packet by packet. Returns how many events there were.
fn agree(scenario: &str, native: &str, p4: &str) -> usize {
    let [a, b] = [native, p4].map(|transport| trace(&format!("{scenario}\n{transport}")));
    for (i, (a, b)) in a.packets.iter().zip(&b.packets).enumerate() {
        assert_eq!(a, b, "event {i}: native (left) and P4 (right) differ\n{scenario}\n{native}");
    }
    assert_eq!(a.packets.len(), b.packets.len(), "one of them goes on\n{scenario}\n{native}");
    assert_eq!(a.messages, b.messages, "{scenario}\n{native}");
    a.packets.len()
}

/// The kind of the native model, its P4 program with its constants, protocol and priorities.
const PROGRAMS: [(&str, &str); 3] = [
    ("ndp-nano", "program = \"../../p4/ndp.p4\"\nprotocol = 155\npriorities = 1"),
    ("homa-nano", "program = \"../../p4/homa.p4\"\nprotocol = 154\npriorities = 4"),
    (
        "homatr-nano",
        "program = \"../../p4/homa.p4\"\nconstants = { TRIM = true }\nprotocol = 154\npriorities = 4",
    ),
];

fn transports((kind, program): (&str, &str), backend: &str, keys: &str) -> [String; 2] {
    let native = format!("kind = \"{kind}\"");
    let p4 = format!("kind = \"p4\"\nbackend = \"{backend}\"\n{program}");
    [native, p4].map(|first| format!("[transport]\n{first}\npreset = \"firesim\"\n{keys}"))
}

/// The study's own scenarios, with either buffer and both back ends.
#[test]
fn the_incast_of_the_study() {
    for (program, file) in PROGRAMS.into_iter().zip(["ndp", "homa", "homatr"]) {
        let study =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/nanotransport/incast");
        let text = std::fs::read_to_string(study.join(format!("{file}.toml"))).unwrap();
        let start = text.find("[transport]").unwrap();
        let end = text.find("[[traffic]]").unwrap();
        let scenario = format!("{}{}", &text[..start], &text[end..]);
        for (capacity, backend) in [("108800B", "rust"), ("54400B", "interpreter")] {
            let scenario = scenario.replace("108800B", capacity);
            let [native, p4] = transports(program, backend, "");
            let events = agree(&scenario, &native, &p4);
            assert!(events > 290 * 4, "{events} events");
        }
    }
}

/// Draws for one scenario.
struct Plan {
    draw: Draw,
    n: u64,
}

impl Plan {
    fn below(&mut self, bound: u64) -> u64 {
        self.n += 1;
        self.draw.below(Purpose::new("nano agreement"), self.n, bound)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A star or two tiers, the queues, and loss on the links of some hosts.
    fn fabric(&mut self, hosts: u64, ndp: bool) -> String {
        let delay = self.one_of(&["0", "43750ps", "131ns", "1us"]);
        let rate = self.one_of(&["200Gbps", "100Gbps", "10Gbps"]);
        let capacity = 1_088 * (2 + self.below(60));
        let mut text = format!(
            "seed = {}\n[topology]\nkind = \"star\"\nhosts = {hosts}\nlink_rate = \"{rate}\"\nlink_delay = \"{delay}\"\n",
            self.below(1000)
        );
        text += "[queue]\nkind = \"priority\"\n";
        let trim = self.below(3) > 0;
        if trim {
            let to = self.one_of(&[64, 72]);
            text += &format!("full = \"trim\"\ntrim_to = \"{to}B\"\n");
        }
        if ndp {
            text += "sort_by = \"payload\"\n";
        } else if trim {
            text += &format!("header_class = \"{}\"\n", self.one_of(&["next", "highest"]));
        }
        let classes: &[u8] = if ndp { &[1, 0] } else { &[7, 6, 5, 4] };
        for class in classes {
            text += &format!(
                "[[queue.class]]\nclass = {class}\nkind = \"drop-tail\"\ncapacity = \"{capacity}B\"\n"
            );
        }
        if self.below(3) == 0 {
            let (host, share) = (self.below(hosts), self.one_of(&["0.01", "0.1", "0.3"]));
            text += &format!(
                "[[fault]]\nat = \"0us\"\nlink = \"host {host} -> tor 0\"\naction = \"loss\"\nprobability = {share}\n"
            );
        }
        text + "[routing]\nmode = \"ecmp\"\nreroute_after = \"1ms\"\n"
    }

    /// Messages of any size and start; an incast half of the time.
    fn traffic(&mut self, hosts: u64) -> String {
        let incast = self.below(2) == 0;
        let spread = self.one_of(&[1, 1_000_000, 20_000_000]);
        let mut text = String::new();
        for _ in 0..1 + self.below(4 * hosts) {
            let src = self.below(hosts - 1);
            let src = if incast { src + 1 } else { src };
            let dst = if incast { 0 } else { (src + 1 + self.below(hosts - 1)) % hosts };
            let size = match self.below(3) {
                0 => 1 + self.below(2_048),
                1 => 1_024 * (1 + self.below(38)),
                _ => 1 + self.below(38_912),
            };
            let start = self.below(spread);
            text += &format!(
                "[[traffic]]\nkind = \"incast\"\nsources = \"{src}\"\nsenders = 1\nreceiver = {dst}\nsize = \"{size}B\"\nstart = \"{start}ps\"\n"
            );
        }
        text + "[measure]\nlimit = \"2ms\"\n"
    }

    /// Keys of the NIC.
    fn nic(&mut self, ndp: bool) -> String {
        let mut text = String::new();
        let mut key = |name: &str, value: String| text += &format!("{name} = {value}\n");
        key("rtt_packets", self.one_of(&[1, 2, 9, 12, 40]).to_string());
        key("tx_messages", self.one_of(&[1, 4, 16]).to_string());
        key("rx_messages", self.one_of(&[1, 4, 16, 32]).to_string());
        key("timeout", format!("\"{}\"", self.one_of(&["7us", "20us", "3333ns"])));
        key("timeouts_max", self.one_of(&["3", "5", "\"unlimited\""]).to_owned());
        key("ingress_timeouts", self.one_of(&[2, 10, 100]).to_string());
        key("ingress_cycles", self.one_of(&[23, 1, 100]).to_string());
        key("egress_cycles", self.one_of(&[12, 0, 33]).to_string());
        if ndp {
            key("pull_cycles", self.one_of(&[140, 122, 280]).to_string());
        }
        if self.below(3) == 0 {
            text += "[[transport.buffer]]\nsize = \"4096B\"\ncount = 3\n";
            text += "[[transport.buffer]]\nsize = \"38912B\"\ncount = 5\n";
        }
        text
    }
}

fn swarm(seed: u64) -> usize {
    let draw = Draw::new(seed, Purpose::new("nano agreement seed"), 0);
    let mut plan = Plan { draw, n: 0 };
    let program = plan.one_of(&PROGRAMS);
    let ndp = program.0 == "ndp-nano";
    let hosts = 2 + plan.below(15);
    let scenario =
        format!("name = \"agreement {seed}\"\n{}{}", plan.fabric(hosts, ndp), plan.traffic(hosts));
    let keys = plan.nic(ndp);
    let backend = plan.one_of(&["interpreter", "rust"]);
    let [native, p4] = transports(program, backend, &keys);
    println!("seed {seed}: {} on {hosts} hosts, {backend}", program.0);
    agree(&scenario, &native, &p4)
}

/// Rules 15 and 16: a receiver that holds messages back for longer than its timer, because it grants to
/// others, ends none of them; nothing is lost and everything arrives. Of sixty senders some wait for
/// more than two timeouts after a GRANT, behind what has been granted with higher priorities.
#[test]
fn a_message_that_is_held_back_is_not_ended() {
    for (senders, ingress_timeouts) in [(20, 2), (60, 6)] {
        let mut scenario = format!(
            "name = \"held back\"\nseed = 1\n[topology]\nkind = \"star\"\nhosts = {}\nlink_rate = \"200Gbps\"\nlink_delay = \"87500ps\"\n[queue]\nkind = \"priority\"\n",
            senders + 1
        );
        for class in [7, 6, 5, 4] {
            scenario += &format!(
                "[[queue.class]]\nclass = {class}\nkind = \"drop-tail\"\ncapacity = \"10MB\"\n"
            );
        }
        scenario += &format!(
            "[routing]\nmode = \"single\"\n[[traffic]]\nkind = \"incast\"\nsenders = {senders}\nreceiver = 0\nsize = \"38912B\"\nstart = \"0us\"\n[measure]\nlimit = \"2ms\"\n"
        );
        let keys = format!(
            "tx_messages = 64\nrx_messages = 64\ningress_timeouts = {ingress_timeouts}\n[[transport.buffer]]\nsize = \"38912B\"\ncount = 64\n"
        );
        let [native, p4] = transports(PROGRAMS[1], "rust", &keys);
        agree(&scenario, &native, &p4);
        let messages = trace(&format!("{scenario}\n{native}")).messages;
        let whole = messages.iter().filter(|record| record.contains("acked: Some"));
        assert_eq!((messages.len(), whole.count()), (senders, senders));
    }
}

#[test]
fn a_hundred_drawn_scenarios() {
    let events: Vec<usize> = (1..=100).map(swarm).collect();
    println!("{} events", events.iter().sum::<usize>());
    assert!(events.iter().all(|&events| events > 0));
}
