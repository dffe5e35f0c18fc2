//! NDP where messages share a receiver, or a rack with one: who gets how much, seen from the
//! packets.

use std::fmt::Write;
use std::path::Path;

use endpoint::{Observer, Packet, PacketEvent};
use fabric::{Node, Topology};
use metrics::FlowRow;
use trimline_scenario::{Options, Scenario, observe, simulate};
use units::{Dur, Time};

/// A scenario at 10 Gb/s with these messages: start in microseconds, from, to, bytes, priority.
fn scenario(name: &str, k: u32, messages: &[(u64, u32, u32, u64, u8)], more: &str) -> Scenario {
    let mut csv = "start,src,dst,size,prio\n".to_owned();
    for (start, src, dst, size, prio) in messages {
        writeln!(csv, "{start}us,{src},{dst},{size}B,{prio}").unwrap();
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared_receivers");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("{name}.csv")), csv).unwrap();
    let text = format!(
        "name = \"{name}\"\nseed = 1\nrouting.mode = \"permute\"\ntraffic.file = \"{name}.csv\"\n\
         queue = {{ kind = \"ndp\", capacity = \"8 packets\" }}\n\
         host = {{ clock_ppm = 0, send_jitter = \"0\" }}\n\
         topology = {{ kind = \"fat-tree\", k = {k}, link_rate = \"10Gbps\", link_delay = \"1us\" }}\n\
         [transport]\nkind = \"ndp\"\npreset = \"paper\"\npayload = \"9000B\"\n\
         initial_window = 30\n{more}"
    );
    Scenario::parse(name, &text, &dir, &[]).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn rows(scenario: &Scenario) -> Vec<FlowRow> {
    simulate(scenario, &Options::default(), &mut |_| ()).unwrap().flows
}

/// Edge case 7 (NDP figure 21): A sends to B, C, D and E, F to E. A's link is what limits A's
/// flows; E pulls A as often as F, and what A cannot use goes to F.
#[test]
fn a_flow_limited_by_its_sender_leaves_its_share_to_the_other() {
    let (a, e, f) = (0, 12, 15);
    let all = [(a, 4), (a, 8), (a, 9), (a, e), (f, e)];
    let messages = all.map(|(src, dst)| (0, src, dst, 100_000_000, 0));
    let window = "[measure]\nfrom = \"0us\"\nto = \"22ms\"\nlimit = \"22ms\"\n";
    let rows = rows(&scenario("sender_limited", 4, &messages, window));
    let gbps = |src, dst| {
        let row = rows.iter().find(|row| (row.src, row.dst) == (src, dst)).unwrap();
        row.placed_in_window as f64 * 8.0 / 22e-3 / 1e9
    };
    // A full link is 9.93 Gb/s of payload.
    for dst in [4, 8, 9, e] {
        assert!((2.3..2.6).contains(&gbps(a, dst)), "to {dst}: {}", gbps(a, dst));
    }
    assert!((7.2..7.6).contains(&gbps(f, e)), "{}", gbps(f, e));
    assert!(gbps(a, e) + gbps(f, e) > 9.7, "no pull is wasted");
}

/// Payload that arrives at one host, by time.
struct Arrivals {
    topology: Topology,
    host: u32,
    bin: Dur,
    bytes: Vec<u64>,
}

impl Observer for Arrivals {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let here = self.topology.links()[link as usize].to == Node::Host(self.host);
        if event == PacketEvent::Arrived && here && pkt.carries_payload() {
            let bin = (at.0 / self.bin.0) as usize;
            self.bytes.resize(self.bytes.len().max(bin + 1), 0);
            self.bytes[bin] += u64::from(pkt.span.len);
        }
    }
}

/// Two receivers below one ToR: 60 hosts start to send to one of them while the other receives a
/// long message. Their first windows, at 15 times the rate of the links that lead to the rack, take
/// nearly all of these; then nobody sends unasked, and the other has its link again. That is one
/// round trip with full queues, for which the paper gives 400 us (specs/ndp.md#5.5).
#[test]
fn a_neighbours_incast_costs_about_a_round_trip() {
    let mut messages = vec![(0, 127, 1, 100_000_000, 0)];
    messages.extend((16..76).map(|src| (1_000, src, 0, 450_000, 0)));
    let window = "[measure]\nfrom = \"0us\"\nto = \"3ms\"\nlimit = \"3ms\"\n";
    let scenario = scenario("neighbours", 8, &messages, window);
    let topology = scenario.topology().clone();
    let bin = Dur::from_us(50);
    let arrivals = Arrivals { topology, host: 1, bin, bytes: Vec::new() };
    let (_, seen) = observe(&scenario, &Options::default(), arrivals).unwrap();
    let full = 9.93e9 / 8.0 * bin.as_s_f64();
    let share: Vec<f64> = seen.bytes.iter().map(|&bytes| bytes as f64 / full).collect();
    // A bin holds 6.9 packets: six or seven.
    let low = |bins: std::ops::Range<usize>| share[bins].iter().filter(|&&s| s < 0.86).count();
    assert_eq!(low(2..20), 0, "before: {share:.2?}");
    assert!((4..=8).contains(&low(20..29)), "at most 400 us: {share:.2?}");
    assert_eq!(low(29..59), 0, "after: {share:.2?}");
}

fn took(rows: &[FlowRow], src: u32) -> f64 {
    let row = rows.iter().find(|row| row.src == src).unwrap();
    row.finish.unwrap().since(row.start).as_us_f64()
}

/// NDP figure 10: 200 KB to a host that already receives six long messages, with and without
/// priority, in microseconds.
#[test]
fn an_urgent_message_among_long_ones() {
    let alone = [(1_000, 15, 0, 200_000, 0)];
    let mut shared: Vec<_> = (1..7).map(|src| (0, 2 * src, 0, 5_000_000, 1)).collect();
    shared.extend(alone);
    let time = |name, messages: &[_], more| took(&rows(&scenario(name, 4, messages, more)), 15);
    let idle = time("idle", &alone, "");
    let fair = time("fair", &shared, "");
    let urgent = time("urgent", &shared, "discipline = \"prio\"\n");
    let preferred = "priority_message = { host = 15, message = 0 }\n";
    let preferred = time("preferred", &shared, preferred);
    // 23 packets at 10 Gb/s, and the last one's way over six links.
    assert!((200.0..210.0).contains(&idle), "{idle}");
    assert!(fair > idle + 400.0, "{fair}: a seventh of the link each");
    // What the others had been pulled for before is still to come: a round trip of 60 us, and a
    // queue of 58 us.
    assert!(urgent < idle + 120.0, "{urgent}");
    assert_eq!(preferred, urgent, "the preferred one is more urgent than all others");
}

/// NDP section 6.1 (figure 16): 100 senders of 450 KB each, one of them urgent: about 1 ms.
#[test]
fn a_preferred_straggler() {
    let mut messages: Vec<_> = (16..116).map(|src| (0, src, 0, 450_000, 1)).collect();
    messages[50].4 = 0;
    let urgent = scenario("straggler", 8, &messages, "discipline = \"prio\"\n");
    let rows = rows(&urgent);
    let last = rows.iter().map(|row| row.finish.unwrap()).max().unwrap();
    assert!(took(&rows, 66) < 2_000.0, "{}", took(&rows, 66));
    assert!(last > Time::ZERO + Dur::from_ms(36), "{last}: 100 x 450 KB over one link");
}
