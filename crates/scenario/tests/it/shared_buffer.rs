//! Switches whose ports share memory, with dynamic thresholds, against the arithmetic of A.
//! Choudhury and E. Hahne (1998): sources that never wait fill ports of one switch.

use std::fmt::Write;
use std::path::Path;

use endpoint::{Observer, Packet, PacketEvent, Stat};
use fabric::{Node, Outcome, Tier};
use trimline_scenario::{Options, Scenario, observe, simulate};
use units::Time;

/// Bytes of a packet; it takes 800 ns.
const PACKET: f64 = 1000.0;
/// Bytes that a link carries in a microsecond.
const RATE: f64 = 1250.0;
/// Of the switch.
const SIZE: f64 = 1e6;
const ALL: &str = "1MB";

/// A port that sources at full rate begin to fill.
#[derive(Clone, Copy)]
struct Hot {
    sources: u32,
    from_us: u32,
}

/// A star whose first hosts are behind these ports, and after them the sources of each.
fn text(hot: &[Hot], alpha: f64) -> String {
    let ports = hot.len() as u32;
    let hosts = ports + hot.iter().map(|hot| hot.sources).sum::<u32>();
    let mut text = format!(
        "name = \"hot ports\"\nseed = 3\nrouting.mode = \"single\"\n\
         host = {{ clock_ppm = 0, send_jitter = \"0\" }}\n\
         topology = {{ kind = \"star\", hosts = {hosts}, link_rate = \"10Gbps\", link_delay = \"1us\" }}\n\
         queue = {{ kind = \"drop-tail\", capacity = \"{ALL}\" }}\n\
         buffer = {{ kind = \"shared\", size = \"{ALL}\", alpha = {alpha} }}\n\
         transport = {{ kind = \"cbr\", payload = \"950B\", header = \"50B\", rate = \"10Gbps\" }}\n\
         measure = {{ from = \"2ms\", to = \"4ms\" }}\n"
    );
    let mut first = ports;
    for (receiver, Hot { sources, from_us }) in hot.iter().enumerate() {
        let last = first + sources - 1;
        write!(
            text,
            "[[traffic]]\nkind = \"incast\"\nreceiver = {receiver}\nsenders = {sources}\n\
             sources = \"{first}-{last}\"\nsize = \"unbounded\"\nstart = \"{from_us}us\"\n"
        )
        .unwrap();
        first = last + 1;
    }
    text
}

fn parse(text: &str) -> Scenario {
    Scenario::parse("hot.toml", text, Path::new("."), &[])
        .unwrap_or_else(|e| panic!("{}\n{text}", e.render(false)))
}

fn scenario(hot: &[Hot], alpha: f64) -> Scenario {
    parse(&text(hot, alpha))
}

fn run(scenario: &Scenario) -> Outcome {
    let options = Options { check: true, ..Options::default() };
    simulate(scenario, &options, &mut |_| ())
        .unwrap_or_else(|e| panic!("{}", e.render(false)))
        .outcome
}

/// n ports come to rest at alpha B / (1 + n alpha) each; the rest of the memory stays free.
#[test]
fn ports_that_overflow_share_the_memory_by_the_paper_s_formula() {
    for alpha in [0.25, 1.0, 4.0] {
        for ports in [1, 2, 5] {
            let outcome = run(&scenario(&vec![Hot { sources: 3, from_us: 0 }; ports], alpha));
            let share = alpha * SIZE / (1.0 + ports as f64 * alpha);
            for link in outcome.links.iter().filter(|link| link.dropped > 0) {
                let off = (f64::from(link.max_queue_bytes) - share).abs();
                assert!(off <= 2.0 * PACKET, "{ports} ports at {alpha}: {link:?}, not {share}");
            }
            let full = outcome.links.iter().filter(|link| link.dropped > 0).count();
            assert_eq!(full, ports, "every hot port loses packets, no other does");
            for sample in outcome.samples.iter().filter(|s| s.at >= Time(2_000_000_000)) {
                let total = sample.queue_bytes.total as f64;
                let off = (total - ports as f64 * share).abs();
                assert!(off <= 3.0 * ports as f64 * PACKET, "{total} at {}", sample.at);
            }
            let [memory] = outcome.buffers[..] else { panic!("one switch") };
            assert!(
                (f64::from(memory.max_bytes) - ports as f64 * share).abs() <= 2e3 * ports as f64
            );
            assert_eq!((memory.over_threshold, memory.exhausted), (outcome.counters.dropped, 0));
        }
    }
}

/// A memory of one packet keeps a link full: what has been sent by an instant makes way for what
/// arrives at that instant, and of the two packets that do so every 800 ns one is lost for want of
/// memory.
#[test]
fn what_departs_makes_way_for_what_arrives_at_the_same_instant() {
    let mut text = text(&[Hot { sources: 2, from_us: 0 }], 1024.0);
    text = text.replace("size = \"1MB\", alpha", "size = \"1KB\", alpha");
    let outcome = run(&parse(&text));
    // From 1.8 us on, up to 4 ms.
    let periods = (4e6_f64 - 1800.0).div_euclid(800.0) as u64;
    let [memory] = outcome.buffers[..] else { panic!("one switch") };
    assert_eq!((memory.max_bytes, memory.over_threshold), (1000, 0));
    assert!(memory.exhausted.abs_diff(periods) <= 1, "{} of {periods}", memory.exhausted);
    let sent: Vec<u64> = outcome.links.iter().map(|link| link.packets).collect();
    assert!(sent.iter().any(|packets| packets.abs_diff(periods) <= 3), "{sent:?}");
}

/// When and at which link the first packet is lost from `from_us` on.
struct FirstLoss {
    from: Time,
    link: u32,
    at: Option<Time>,
}

impl Observer for FirstLoss {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, _: &Packet) {
        if matches!(event, PacketEvent::Dropped(_)) && at >= self.from && link == self.link {
            self.at.get_or_insert(at);
        }
    }
}

/// A port holds half of the memory (alpha = 1), and another one begins to grow at k times the rate
/// of a link. The first gives way at half of that or, if that is more, at the rate of its link,
/// which is all that it sends. By how far the second has come when it meets the threshold, a burst
/// is absorbed.
#[test]
fn a_burst_finds_room_as_fast_as_the_full_port_drains() {
    const START: u32 = 3000;
    for k in [1.0, 2.0, 4.0, 8.0] {
        let burst = Hot { sources: k as u32 + 1, from_us: START };
        let scenario = scenario(&[Hot { sources: 3, from_us: 0 }, burst], 1.0);
        let from = Time(u64::from(START) * 1_000_000);
        let (switch, host) = (Node::Switch(Tier::Tor, 0), Node::Host(1));
        let link = scenario.topology().find_link(switch, host).unwrap();
        let watch = FirstLoss { from, link, at: None };
        let (_, watch) = observe(&scenario, &Options::default(), watch).unwrap();
        let held = k * RATE;
        // held t = B - (B / 2 - given t) - held t, and given = held / 2 at most RATE.
        let given = (held / 2.0).min(RATE);
        let us = SIZE / 2.0 / (2.0 * held - given);
        let found = watch.at.unwrap().since(from).as_us_f64();
        // A packet must come to the switch before anything happens: 1.8 us.
        assert!((found - 1.8 - us).abs() < 0.8, "k = {k}: {found} us, not {us}");
    }
}

/// A scenario that ships, changed.
fn run_file(name: &str, sets: &[&str]) -> Outcome {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let sets = sets.iter().chain(&crate::EXACT).map(|&set| set.to_owned());
    let sets: Vec<String> = sets.collect();
    run(&Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false))))
}

/// With as much memory as nobody needs, it is the switch whose ports have their own.
#[test]
fn more_memory_than_queues_can_fill_changes_nothing() {
    let run = |sets: &[&str]| run_file("dctcp_two_flows.toml", sets);
    for more in ["queue.capacity=50 packets", "queue.mark_at=departure", "seed=1"] {
        let short = "measure.to=25ms";
        let shared = run(&[more, short, "buffer={kind=\"shared\", size=\"1GB\", alpha=1024}"]);
        let own = run(&[more, short]);
        assert_eq!((shared.digest, &shared.links), (own.digest, &own.links), "{more}");
        assert_eq!((shared.buffers.len(), own.buffers.len()), (1, 0));
        let least = own.links.iter().map(|link| link.max_queue_bytes).max().unwrap();
        assert!(shared.buffers[0].max_bytes >= least, "the memory holds the queues");
    }
}

/// Queries to forty servers (`scenarios/shared_buffer_incast.toml`): dynamic thresholds take what
/// 100 KB for each port lose, and give a lone port no more than alpha / (1 + alpha) of the memory.
#[test]
fn an_incast_fits_into_what_idle_ports_leave() {
    let run = |sets: &[&str]| {
        run_file("shared_buffer_incast.toml", &[sets, &["traffic.blocks=20"]].concat())
    };
    let dctcp = run(&[]);
    assert_eq!((dctcp.counters.dropped, dctcp.counters.stat(Stat::Timeout)), (0, 0));
    let own = run(&["queue.capacity=100KB"]).counters;
    assert!(own.dropped > 100 && own.stat(Stat::Timeout) > 40);
    let newreno = run(&["transport.rule=newreno", "transport.ecn=false"]);
    let most = 0.21 / 1.21 * 4e6;
    let held = f64::from(newreno.buffers[0].max_bytes);
    assert!((held - most).abs() <= 1500.0, "{held} of {most}");
    assert_eq!(newreno.counters.dropped, newreno.buffers[0].over_threshold);
    assert!(newreno.counters.dropped > 0);
}
