//! Hosts with a port in each of several planes: what a plane that fails costs, how soon senders
//! have left it, and that every message still arrives once.

use std::fmt::Write;
use std::path::Path;

use endpoint::{Observer, Packet, PacketEvent};
use fabric::{Node, Topology};
use trimline_scenario::{Options, Scenario, Simulated, observe, simulate};
use units::{Dur, Time};

use crate::drawn::{Dice, parse};

fn load(sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/uet/planes.toml");
    Scenario::load(&file, &sets).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

fn options(threads: u32) -> Options {
    Options { threads: Some(threads), ..Options::default() }
}

/// Goodput from `from` to `to` us, over what 16 hosts with four ports can have at most: 4086 of the
/// 4150 B of a packet are payload.
fn share(run: &Simulated, from: u64, to: u64) -> f64 {
    let placed = |us: u64| {
        let samples = run.outcome.samples.iter();
        samples.filter(|sample| sample.at <= Time(us * 1_000_000)).map(|s| s.placed_bytes).max()
    };
    let bytes = placed(to).unwrap() - placed(from).unwrap();
    let most = 16.0 * 400e9 / 8.0 * (to - from) as f64 / 1e6 * 4086.0 / 4150.0;
    bytes as f64 / most
}

/// One of four planes costs a quarter of the rate, and when it is back nothing. Window control
/// takes 150 us to find the new rate.
#[test]
fn a_plane_that_fails_costs_its_share_of_the_rate() {
    let sets = ["fault.until=1100us", "traffic.size=80MB"];
    let run = simulate(&load(&sets), &options(1), &mut |_| ()).unwrap();
    let (before, dead) = (share(&run, 100, 300), share(&run, 600, 1100));
    assert!(before > 0.97, "{before}");
    let lost = 1.0 - dead / before;
    assert!((0.24..0.28).contains(&lost), "{lost} of {before}");
    let after = share(&run, 1250, 1500);
    assert!(after > 0.95 * before, "{after}");
}

/// When packets with payload last left into a plane.
struct LastInto {
    /// By link, whether it is a port into the plane.
    ports: Vec<bool>,
    /// Those that leave before this are not looked at.
    from: Time,
    until: Time,
    last: Option<Time>,
    count: u64,
}

impl LastInto {
    fn new(topology: &Topology, plane: u8, (from, until): (Time, Time)) -> Self {
        let into = |link: &fabric::Link| matches!((link.from, link.to), (Node::Switch(..), Node::Plane(n, ..)) if n == plane);
        let ports = topology.links().iter().map(into).collect();
        Self { ports, from, until, last: None, count: 0 }
    }
}

impl Observer for LastInto {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let lost = matches!(event, PacketEvent::Dropped(endpoint::Drop::Dead)) && pkt.span.len > 0;
        if lost && self.ports[link as usize] && at >= self.from && at < self.until {
            self.last = self.last.max(Some(at));
            self.count += 1;
        }
    }
}

/// specs/uet.md#14.2: what was sent into a dead plane is missed a timeout later, and its entropy
/// values are left out: in less than 100 us nothing with payload goes there any more.
#[test]
fn path_loss_is_found_by_the_sender_in_less_than_100_us() {
    let us = |us: u64| Time(us * 1_000_000);
    let scenario = load(&[]);
    let observer = LastInto::new(scenario.topology(), 1, (us(300), us(600)));
    let (_, seen) = observe(&scenario, &options(1), observer).unwrap();
    let last = seen.last.unwrap().since(us(300));
    assert!(last < Dur::from_us(100), "{last}, {} packets", seen.count);
    // A window of each host, of which a quarter goes there, and a few.
    assert!((100..1600).contains(&seen.count), "{}", seen.count);
}

const UET: &str = "kind = \"uet\"\npreset = \"htsim\"\npayload = \"4086B\"\n";

/// A fabric of several planes, a transport that sprays or not, and planes, ports and switches that
/// fail and come back, of which switches and hosts hear or not.
fn draw(seed: u64) -> String {
    let dice = &mut Dice::part(seed, 9);
    let planes = dice.from(2, 8);
    let shape = dice.pick(&[
        "kind = \"star\"\nhosts = 6",
        "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nuplink_rate = \"10Gbps\"",
        "kind = \"fat-tree\"\nk = 4",
    ]);
    let rule =
        ["oblivious", "bitmap", "reps", "mixed", "mrc"].map(|rule| format!("spray = \"{rule}\"\n"));
    let uet = format!("{UET}{}", dice.pick(&rule.each_ref().map(String::as_str)));
    let ndp = "kind = \"ndp\"\npreset = \"paper\"\npayload = \"4000B\"\ninitial_window = 20";
    let tcp = "kind = \"tcp\"\npreset = \"linux-datacenter\"\nrule = \"cubic\"\nrecovery = \"sack\"\n\
               ecn = false\nmss = \"4000B\"\noverhead = \"64B\"";
    let homa = "kind = \"homa\"\npreset = \"paper\"\npayload = \"4000B\"\nworkload = \"homa-w4\"\nunscheduled_priorities = 4";
    let (transport, modes): (&str, &[&str]) = match dice.below(100) {
        0..55 => (&uet, &["ecmp", "spray", "single", "random"]),
        55..80 => (ndp, &["permute", "spray", "ecmp", "random"]),
        80..95 => (tcp, &["ecmp", "single", "random"]),
        _ => (homa, &["spray", "ecmp", "random"]),
    };
    let mut text = format!(
        "name = \"planes\"\nseed = {seed}\n[topology]\n{shape}\nplanes = {planes}\n\
         link_rate = \"10Gbps\"\nlink_delay = \"1us\"\n[queue]\nkind = \"ndp\"\ncapacity = \"8 packets\"\n\
         [routing]\nmode = \"{}\"\nreroute_after = \"{}\"\n[transport]\n{transport}\n\
         [traffic]\nkind = \"{}\"\nsize = \"{}KB\"\n[measure]\nlimit = \"100s\"\n",
        dice.pick(modes),
        dice.pick(&["0", "20us", "300us"]),
        dice.pick(&["all-to-all", "permutation"]),
        dice.from(1, 400),
    );
    for _ in 0..dice.from(1, 3) {
        let (plane, host) = (dice.below(planes), dice.below(6));
        let targets = [
            format!("switch = \"plane {plane}\""),
            format!("switch = \"plane {plane} tor 0\""),
            format!("link = \"host {host} -> plane {plane} tor {}\"", tor(shape, host)),
        ];
        let target = dice.pick(&targets.each_ref().map(String::as_str));
        let (at, long) = (dice.below(200), dice.from(1, 2000));
        write!(
            text,
            "[[fault]]\nat = \"{at}us\"\nuntil = \"{}us\"\naction = \"down\"\n{target}\nannounce = {}\n",
            at + long,
            dice.percent(50),
        )
        .unwrap();
    }
    text
}

/// Where a host hangs.
fn tor(shape: &str, host: u64) -> u64 {
    if shape.contains("star") { 0 } else { host / 2 }
}

#[test]
fn whatever_plane_fails_every_message_arrives_once_on_any_number_of_threads() {
    let (mut lost, mut retransmitted) = (0, 0);
    for seed in 0..30 {
        let text = draw(seed);
        let scenario = parse(&text, Path::new("."));
        let runs =
            [1, 2, 8].map(|threads| simulate(&scenario, &options(threads), &mut |_| ()).unwrap());
        let outcome = &runs[0].outcome;
        assert!(runs.iter().all(|run| run.outcome.digest == outcome.digest), "{text}");
        let counters = &outcome.counters;
        assert_eq!(counters.delivered, counters.submitted, "{text}");
        assert!(
            runs[0].flows.iter().all(|row| !row.is_unfinished() && !row.has_failed()),
            "{text}"
        );
        lost += counters.dropped;
        retransmitted += u64::from(counters.dropped > 0);
    }
    assert!(retransmitted > 15, "{retransmitted} runs with losses, {lost} packets");
}

/// What cannot be is refused where it stands.
#[test]
fn impossible_planes_are_refused_where_they_stand() {
    let text = |topology: &str, more: &str| {
        format!(
            "name = \"planes\"\nseed = 1\n[queue]\nkind = \"ndp\"\ncapacity = \"8 packets\"\n[routing]\n\
             mode = \"spray\"\nreroute_after = \"1us\"\n[transport]\n{UET}{more}\n[topology]\nlink_rate = \"10Gbps\"\n\
             link_delay = \"1us\"\n{topology}\n[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
        )
    };
    let why = |text: String| {
        let refused = Scenario::parse("planes.toml", &text, Path::new("."), &[]);
        refused.err().unwrap_or_else(|| panic!("not refused: {text}")).render(false)
    };
    let star = "kind = \"star\"\nhosts = 4\n";
    let fault =
        |key: &str| format!("{star}planes = 2\n[[fault]]\nat = \"1us\"\naction = \"down\"\n{key}");
    let bcube = "kind = \"bcube\"\nn = 2\nk = 1\nstretch = 0\nplanes = 2";
    for (text, message) in [
        (text(&format!("{star}planes = 0"), ""), "`planes` in [topology] is 0"),
        (text(&format!("{star}planes = 9"), ""), "`planes` in [topology] is 9"),
        (
            text(&format!("{star}planes = 8"), "entropies = 4"),
            "4 entropy values reach 4 of 8 planes",
        ),
        (text(bcube, ""), "`planes` has no effect here"),
        (text(&format!("{star}planes = 2\nswitch_slot = \"1us\""), ""), "without slots"),
        (text(&fault("switch = \"plane 2\""), ""), "there is no plane 2 in this star"),
        (text(&fault("switch = \"plane 2 tor 0\""), ""), "there is no plane 2 tor 0"),
        (text(&fault("switch = \"tor 0\""), ""), "there is no tor 0 in this star"),
        (text(&fault("link = \"host 9 -> plane 0 tor 0\""), ""), "there is no host 9"),
        (
            text(
                &format!("{star}[[fault]]\nat = \"1us\"\naction = \"down\"\nswitch = \"plane 0\""),
                "",
            ),
            "no plane 0",
        ),
    ] {
        let said = why(text);
        assert!(said.contains(message) && said.contains("planes.toml:"), "{message}\n{said}");
    }
}
