//! Two implementations of the programmable NIC that share nothing but the headers, the native
//! models (`program = "ndp"`, `"homa"`, `"homa-tr"`) and the P4 programs on the NIC's blocks
//! (`p4`), send the same packets at the same picosecond: on the incast of the nanoTransport paper,
//! and in a hundred drawn scenarios. docs/nic.md, "Timing and order", is what both follow.

use std::path::Path;

use endpoint::{Draw, MessageRecord, Observer, Packet, PacketEvent, Purpose, Stat};
use fabric::Outcome;
use trimline_scenario::{Options, Scenario, observe};
use units::Time;
use wire::nano::{Header, Kind, Protocol, Repr};

/// Everything that a host puts on its link, or that a switch does to it: time, link, what, and the
/// packet's addresses, class, length and header.
#[derive(Default)]
struct Trace {
    packets: Vec<(Time, u32, String, Seen)>,
    /// What became of each message.
    messages: Vec<String>,
    /// Sums that hosts and switches keep.
    sums: Sums,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    trimmed: u64,
    dropped: u64,
    retransmitted: u64,
    timeouts: u64,
    failed: u64,
    delivered_twice: u64,
    pauses: u64,
}

impl Sums {
    fn of(outcome: &Outcome) -> Self {
        let Outcome { counters, .. } = outcome;
        Self {
            trimmed: counters.trimmed,
            dropped: counters.dropped + counters.faulted,
            retransmitted: counters.stat(Stat::Retransmission),
            timeouts: counters.stat(Stat::Timeout),
            failed: counters.failed,
            delivered_twice: counters.stat(Stat::DeliveredTwice),
            pauses: outcome.links.iter().map(|link| link.pfc.pauses).sum(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.trimmed += other.trimmed;
        self.dropped += other.dropped;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.failed += other.failed;
        self.delivered_twice += other.delivered_twice;
        self.pauses += other.pauses;
    }
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
    fn watches_packets(&self) -> bool {
        true
    }

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
    observed(text, 1).1
}

/// The digest of the run and what happens in it, with so many threads.
fn observed(text: &str, threads: u32) -> (u64, Trace) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4");
    let name = here.join("agreement.toml").display().to_string();
    let scenario = Scenario::parse(&name, text, &here, &[]);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}\n{text}", e.render(false)));
    let options = Options { threads: Some(threads), ..Options::default() };
    let observed = observe(&scenario, &options, Trace::default());
    let (outcome, trace) = observed.unwrap_or_else(|e| panic!("{e}\n{text}"));
    (outcome.digest, Trace { sums: Sums::of(&outcome), ..trace })
}

/// Run both and compare packet by packet.
fn agree(scenario: &str, native: &str, p4: &str) -> Trace {
    let [a, b] = [native, p4].map(|transport| trace(&format!("{scenario}\n{transport}")));
    for (i, (a, b)) in a.packets.iter().zip(&b.packets).enumerate() {
        assert_eq!(a, b, "event {i}: native (left) and P4 (right) differ\n{scenario}\n{native}");
    }
    assert_eq!(a.packets.len(), b.packets.len(), "one of them goes on\n{scenario}\n{native}");
    assert_eq!(a.messages, b.messages, "{scenario}\n{native}");
    assert_eq!(a.sums, b.sums, "{scenario}\n{native}");
    a
}

const KINDS: [&str; 3] = ["ndp", "homa", "homa-tr"];

/// Constants of `p4/homa.p4` with keys of the native model that mean the same.
#[derive(Clone, Copy)]
struct Constants {
    overcommitment: u8,
    strict: bool,
    count_chops: bool,
}

const USUAL: Constants = Constants { overcommitment: 3, strict: false, count_chops: false };

/// The native model and the P4 program, with constants and with further keys that both have.
fn transports(kind: &str, constants: Constants, backend: &str, keys: &str) -> [String; 2] {
    let Constants { overcommitment, strict, count_chops } = constants;
    let (file, protocol, priorities) = match kind {
        "ndp" => ("ndp.p4", 155, 1),
        _ => ("homa.p4", 154, overcommitment + 1),
    };
    let mut native = String::new();
    if kind != "ndp" {
        native = format!("overcommitment = {overcommitment}\nstrict_paper = {strict}\n");
    }
    if kind == "homa-tr" {
        native += &format!("count_chops = {count_chops}\n");
    }
    let constants = [
        (kind == "homa-tr", "TRIM = true".to_owned()),
        (strict, "STRICT_PAPER = true".to_owned()),
        (count_chops, "COUNT_CHOPS = true".to_owned()),
        (overcommitment != 3, format!("OVERCOMMITMENT = {overcommitment}")),
    ];
    let constants: Vec<String> =
        constants.into_iter().filter_map(|(set, c)| set.then_some(c)).collect();
    let constants = constants.join(", ");
    let p4 = format!(
        "backend = \"{backend}\"\nprogram = \"../../p4/{file}\"\nconstants = {{ {constants} }}\nprotocol = \
         {protocol}\npriorities = {priorities}\n"
    );
    [format!("program = \"{kind}\"\n{native}"), p4]
        .map(|own| format!("[transport]\nkind = \"nic\"\npreset = \"firesim\"\n{own}{keys}"))
}

/// The law of instants, and the clocked one.
const EXACT: &str = "";
const CLOCKED: &str = "clocked = true\n";

/// The study's own scenarios, with either buffer and both back ends.
#[test]
fn the_incast_of_the_study() {
    [EXACT, CLOCKED].into_iter().for_each(the_incast);
}

fn the_incast(law: &str) {
    for (kind, file) in KINDS.into_iter().zip(["ndp", "homa", "homatr"]) {
        let study =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/nanotransport/incast");
        let text = std::fs::read_to_string(study.join(format!("{file}.toml"))).unwrap();
        let start = text.find("[transport]").unwrap();
        let end = text.find("[[traffic]]").unwrap();
        let scenario = format!("{}{}", &text[..start], &text[end..]);
        for (capacity, backend) in [("108800B", "rust"), ("54400B", "interpreter")] {
            let scenario = scenario.replace("108800B", capacity);
            let [native, p4] = transports(kind, USUAL, backend, law);
            let events = agree(&scenario, &native, &p4).packets.len();
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

    /// A star or two tiers, the queues, loss on the links of a host, a path that goes down.
    fn fabric(&mut self, hosts: u64, ndp: bool, priorities: u8) -> String {
        let delay = self.one_of(&["0", "43750ps", "131ns", "1us"]);
        let rate = self.one_of(&["200Gbps", "100Gbps", "10Gbps"]);
        let capacity = 1_088 * (2 + self.below(40) * self.below(2));
        let tiers = self.below(3) == 0;
        let per_leaf = if tiers { hosts.div_ceil(2) } else { hosts };
        let shape = match tiers {
            false => format!("kind = \"star\"\nhosts = {hosts}"),
            true => format!(
                "kind = \"leaf-spine\"\nleaves = 2\nspines = 3\nuplink_rate = \"{rate}\"\nhosts_per_leaf = {per_leaf}"
            ),
        };
        let mut text = format!(
            "seed = {}\n[topology]\n{shape}\nlink_rate = \"{rate}\"\nlink_delay = \"{delay}\"\n",
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
        let lowest = if ndp { 6 } else { 8 - priorities };
        for class in (lowest..8).rev() {
            text += &format!(
                "[[queue.class]]\nclass = {class}\nkind = \"drop-tail\"\ncapacity = \"{capacity}B\"\n"
            );
        }
        if self.below(3) == 0 {
            let (host, share) = (self.below(hosts), self.one_of(&["0.01", "0.1", "0.3"]));
            text += &format!(
                "[[fault]]\nat = \"0us\"\nlink = \"host {host} -> tor {}\"\naction = \"loss\"\nprobability = {share}\n",
                host / per_leaf
            );
        }
        if tiers && self.below(2) == 0 {
            text += "[[fault]]\nat = \"3us\"\nlink = \"tor 0 -> agg 1\"\naction = \"down\"\n";
        }
        let mode = self.one_of(&["ecmp", "single"]);
        text + &format!("[routing]\nmode = \"{mode}\"\nreroute_after = \"5us\"\n")
    }

    /// Messages of any size and start; an incast half of the time.
    fn traffic(&mut self, hosts: u64) -> String {
        let incast = self.below(2) == 0;
        let spread = self.one_of(&[1, 1_000_000, 20_000_000]);
        let mut text = String::new();
        for _ in 0..1 + self.below(4 * hosts) {
            let src = if incast { 1 + self.below(hosts - 1) } else { self.below(hosts) };
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

    /// Constants of a program, and which back end runs it: generated Rust has some of them only.
    fn constants(&mut self, kind: &str) -> (Constants, &'static str) {
        let backend = self.one_of(&["interpreter", "rust"]);
        if kind == "ndp" || self.below(2) == 0 {
            return (USUAL, backend);
        }
        let overcommitment = self.one_of(&[3, 1, 2, 4, 7]);
        let strict = self.below(2) == 0;
        let count_chops = kind == "homa-tr" && self.below(2) == 0;
        (Constants { overcommitment, strict, count_chops }, "interpreter")
    }

    /// Keys of the NIC, which is `clocked` or not.
    fn nic(&mut self, ndp: bool, clocked: bool) -> String {
        let mut text = String::new();
        let mut key = |name: &str, value: String| text += &format!("{name} = {value}\n");
        key("rtt_packets", self.one_of(&[1, 2, 9, 12, 40]).to_string());
        key("tx_messages", self.one_of(&[1, 4, 16]).to_string());
        key("rx_messages", self.one_of(&[1, 4, 16, 32]).to_string());
        key("timeout", format!("\"{}\"", self.one_of(&["7us", "20us", "3333ns"])));
        key("max_timeouts", self.one_of(&["3", "5", "\"unlimited\""]).to_owned());
        key("ingress_timeouts", self.one_of(&[2, 10, 100]).to_string());
        key("ingress_cycles", self.one_of(&[23, if clocked { 5 } else { 1 }, 100]).to_string());
        key("egress_cycles", self.one_of(&[12, 0, 33]).to_string());
        key("probe", self.one_of(&["true", "true", "false"]).to_owned());
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

/// One drawn scenario, with further keys of the NIC.
fn swarm_with(seed: u64, key: &str) -> Trace {
    let draw = Draw::new(seed, Purpose::new("nano agreement seed"), 0);
    let mut plan = Plan { draw, n: 0 };
    let kind = plan.one_of(&["ndp", "homa", "homa-tr", "homa-tr"]);
    let ndp = kind == "ndp";
    let hosts = 2 + plan.below(15);
    let (constants, backend) = plan.constants(kind);
    let fabric = plan.fabric(hosts, ndp, constants.overcommitment + 1);
    let scenario = format!("name = \"agreement {seed}\"\n{fabric}{}", plan.traffic(hosts));
    let keys = format!("{key}\n{}", plan.nic(ndp, key.contains(CLOCKED)));
    let [native, p4] = transports(kind, constants, backend, &keys);
    println!("seed {seed}: {kind} on {hosts} hosts, {backend}");
    agree(&scenario, &native, &p4)
}

/// Rules 15 and 16: a receiver that holds messages back for longer than its timer, because it
/// grants to others, ends none of them; nothing is lost and everything arrives. Of sixty senders
/// some wait for more than two timeouts after a GRANT, behind what has been granted with higher
/// priorities.
#[test]
fn a_message_that_is_held_back_is_not_ended() {
    [EXACT, CLOCKED].into_iter().for_each(held_back);
}

fn held_back(law: &str) {
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
            "{law}tx_messages = 64\nrx_messages = 64\ningress_timeouts = {ingress_timeouts}\n[[transport.buffer]]\nsize = \"38912B\"\ncount = 64\n"
        );
        let [native, p4] = transports("homa", USUAL, "rust", &keys);
        let messages = agree(&scenario, &native, &p4).messages;
        let whole = messages.iter().filter(|record| record.contains("delivered: Some"));
        assert_eq!((messages.len(), whole.count()), (senders, senders));
    }
}

/// And they do what they are meant to: much is trimmed, lost, refused for good, repaired and given
/// up.
#[test]
fn a_hundred_drawn_scenarios() {
    a_hundred(EXACT);
}

#[test]
fn a_hundred_drawn_scenarios_of_clocked_hosts() {
    a_hundred(CLOCKED);
}

fn a_hundred(law: &str) {
    let (mut sums, mut at_once, mut trimming) = (Sums::default(), 0, 0);
    for seed in 1..=100 {
        let trace = swarm_with(seed, law);
        assert!(!trace.packets.is_empty(), "seed {seed}");
        let nacks = trace.packets.iter().filter(|(_, _, _, seen)| is_nack_at_once(seen)).count();
        at_once += usize::from(nacks > 0);
        trimming += u32::from(trace.sums.trimmed > 0);
        sums.add(&trace.sums);
    }
    println!("{sums:?}; {trimming} trim, {at_once} refuse at once");
    assert!(trimming >= 30 && at_once >= 8, "{trimming}, {at_once}");
    assert!(sums.trimmed > 5_000 && sums.dropped > 5_000 && sums.failed > 50, "{sums:?}");
}

/// Whether this is a NACK after which no GRANT follows (E2).
fn is_nack_at_once(seen: &Seen) -> bool {
    let Ok(header) = Header::new(Protocol::Homa, &seen.header) else { return false };
    let repr = Repr::parse(&header).ok().filter(|_| seen.proto == Protocol::Homa.number());
    repr.is_some_and(|h| matches!(h.kind, Kind::Nack { .. }) && h.grant_prio == 1)
}

/// A table of completed messages that is too small delivers some twice, the same ones in both, and
/// ends no run.
#[test]
fn small_tables_deliver_the_same_messages_twice() {
    let mut sums = Sums::default();
    for seed in 1_000..1_024 {
        sums.add(&swarm_with(seed, &format!("remember = {}", seed % 3)).sums);
    }
    assert!(sums.delivered_twice > 5, "{sums:?}");
}

/// The same of tables in sets, of one way to four.
#[test]
fn small_tables_in_sets_deliver_the_same_messages_twice() {
    let mut sums = Sums::default();
    for seed in 1_000..1_032 {
        let key = format!("{CLOCKED}remember = {}", 1 << (seed % 4));
        sums.add(&swarm_with(seed, &key).sums);
    }
    assert!(sums.delivered_twice > 0, "{sums:?}");
}

/// Two racks whose switches pause their hosts.
const PAUSES: &str = "
name = \"pauses\"
seed = 3
[topology]
kind = \"leaf-spine\"
leaves = 2
spines = 2
hosts_per_leaf = 6
uplink_rate = \"100Gbps\"
link_rate = \"100Gbps\"
link_delay = \"131ns\"
[queue]
kind = \"lossless\"
buffer = \"40KB\"
reserve = \"0B\"
headroom = \"auto\"
headroom_beside = true
resume_offset = \"0B\"
lossless = [7, 6, 5, 4]
alpha = 0.5
schedule = \"strict\"
control_class = 3
[routing]
mode = \"single\"
[[traffic]]
kind = \"incast\"
senders = 11
receiver = 0
size = \"38912B\"
start = \"0us\"
[measure]
limit = \"2ms\"
";

/// C5: a switch that pauses its hosts holds up what they have decided to send. Digests are the
/// same with one thread and with two, natively and in P4.
#[test]
fn pauses_hold_up_what_is_decided() {
    for kind in KINDS {
        let both = transports(kind, USUAL, "interpreter", CLOCKED);
        let trace = agree(PAUSES, &both[0], &both[1]);
        assert!(trace.sums.pauses > 0, "{kind}");
        for transport in both {
            let text = format!("{PAUSES}{transport}");
            let digest = |threads| observed(&text, threads).0;
            assert_eq!(digest(1), digest(2), "{kind}");
        }
    }
}
