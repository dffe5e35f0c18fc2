//! `measure.life`: where the time of messages went sums up to their completion times, and following
//! them changes nothing.
//!
//! `TRIMLINE_SWARM=1000` draws a thousand scenarios, `TRIMLINE_LIFE=100000` sends a hundred
//! thousand messages by each transport.

use std::collections::BTreeMap;
use std::path::Path;

use endpoint::Cause;
use metrics::{CAUSES, FlowRow, LifeRow};
use trimline_scenario::{Options, Scenario, Simulated, simulate};
use units::Dur;

use crate::{EXACT, swarm};

fn parse(text: &str, dir: &Path, sets: &[&str]) -> Option<Scenario> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::parse("life.toml", text, dir, &sets).ok()
}

/// With several partitions, if messages are not followed.
fn run(scenario: &Scenario) -> Simulated {
    let options = Options { threads: Some(3), ..Options::default() };
    simulate(scenario, &options, &mut |_| ()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

/// Every message that was delivered, and that no end gave up, has one row, whose parts sum up to
/// its completion time.
fn sums(run: &Simulated, about: &str) {
    let lives: BTreeMap<(u32, u64), &LifeRow> =
        run.lives.iter().map(|row| ((row.src, row.msg), row)).collect();
    assert_eq!(lives.len(), run.lives.len(), "{about}: one each");
    // What an end has given up is not followed further, though it may arrive in the end.
    let followed = |row: &&FlowRow| row.size.is_some() && row.failed.is_none();
    let delivered = run.flows.iter().filter(|row| row.finish.is_some()).filter(followed);
    let mut count = 0;
    for row in delivered {
        count += 1;
        let life = lives.get(&(row.src, row.msg));
        let life = life.unwrap_or_else(|| panic!("{about}: {}:{} has none", row.src, row.msg));
        let spent: u64 = life.spent.iter().map(|part| part.0).sum();
        assert_eq!(Some(Dur(spent)), row.fct(), "{about}: {life:?}");
        assert_eq!(Some(life.fct), row.fct());
    }
    // It may also have been delivered before its sender gave it up.
    let given_up = run.flows.iter().filter(|row| row.failed.is_some()).count();
    assert!((count..=count + given_up).contains(&lives.len()), "{about}: no others");
}

/// What a message spent on each cause, those of zero left out.
fn spent(row: &LifeRow) -> BTreeMap<&'static str, u64> {
    let named = CAUSES.iter().zip(row.spent).map(|(cause, spent)| (cause.name, spent.0));
    named.filter(|(_, spent)| *spent > 0).collect()
}

/// The names of result files are those of the engine, in one order.
#[test]
fn causes_are_named_after_those_of_the_engine() {
    for (cause, named) in Cause::ALL.into_iter().zip(CAUSES) {
        let name: String = format!("{cause:?}")
            .chars()
            .flat_map(|c| {
                [if c.is_uppercase() { "_" } else { "" }.to_owned(), c.to_lowercase().to_string()]
            })
            .collect();
        assert_eq!(name.trim_start_matches('_'), named.name);
    }
    assert_eq!(Cause::ALL.map(|cause| cause as usize), std::array::from_fn(|n| n));
}

/// Any transport, queue, traffic and fault: whatever is drawn.
#[test]
fn drawn_lives_sum_up_and_following_them_changes_nothing() {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().unwrap());
    let (first, count) =
        (number("TRIMLINE_SWARM_SEED").unwrap_or(1), number("TRIMLINE_SWARM").unwrap_or(60));
    let (mut followed, mut seen) = (0, [false; Cause::COUNT]);
    for seed in first..first + count {
        let dir = tempfile::tempdir().unwrap();
        let (_, text) = swarm::draw(seed, dir.path());
        // As long as a test has time for.
        let text = text.replace("limit = \"3000s\"", "limit = \"20ms\"");
        let about = format!("seed {seed}:\n{text}");
        let Some(plain) = parse(&text, dir.path(), &[]) else { continue };
        let follow = parse(&text, dir.path(), &["measure.life=true"]).unwrap();
        let (plain, follow) = (run(&plain), run(&follow));
        assert_eq!(plain.outcome.digest, follow.outcome.digest, "{about}");
        assert_eq!(plain.flows, follow.flows, "{about}");
        assert!(plain.lives.is_empty());
        sums(&follow, &about);
        followed += follow.lives.len();
        for row in &follow.lives {
            seen.iter_mut().zip(row.spent).for_each(|(seen, spent)| *seen |= spent.0 > 0);
        }
    }
    let missing: Vec<&str> =
        CAUSES.iter().zip(seen).filter(|(_, seen)| !seen).map(|(cause, _)| cause.name).collect();
    assert!(followed > 1000 || count < 60, "{followed}");
    assert!(missing.is_empty() || count < 60, "nothing spent time on {missing:?}");
}

/// Random messages among 16 hosts, sizes as of a published workload, over two spines, one link to
/// which loses packets and another is down for a while.
fn large(queue: &str, mode: &str, transport: &str, messages: u64) -> String {
    // There are 19835 in 5 ms.
    let to = 100 + messages * 257 / 1000;
    format!(
        "name = \"life\"\nseed = 1\nrouting = {{ mode = \"{mode}\", reroute_after = \"100us\" }}\n\
         [topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
         link_rate = \"10Gbps\"\nuplink_rate = \"20Gbps\"\nlink_delay = \"1us\"\n\
         [queue]\n{queue}\n[transport]\n{transport}\n\
         [[traffic]]\nkind = \"poisson\"\ndistribution = \"google-rpc\"\nload = 0.5\n\
         [[fault]]\nat = \"10us\"\nlink = \"tor 1 -> agg 0\"\naction = \"loss\"\nprobability = 0.001\n\
         [[fault]]\nat = \"50us\"\nuntil = \"300us\"\nlink = \"tor 2 -> agg 1\"\naction = \"down\"\n\
         [measure]\nlife = true\nto = \"{to}us\"\n"
    )
}

/// Each transport that is published, over switches of its kind.
const TRANSPORTS: [(&str, &str, &str, &str); 10] = [
    ("NDP", TRIMMING, "permute", NDP),
    ("NewReno", SHORT_QUEUES, "ecmp", NEWRENO),
    ("DCTCP", MARKING, "ecmp", DCTCP),
    ("MPTCP", SHORT_QUEUES, "ecmp", MPTCP),
    ("Homa", PRIORITIES, "random", HOMA),
    ("DCQCN with PFC", LOSSLESS, "ecmp", DCQCN),
    ("TIMELY with PFC", LOSSLESS, "ecmp", TIMELY),
    ("Swift", LOSSLESS, "ecmp", SWIFT),
    ("pHost", SHORT_QUEUES, "random", PHOST),
    ("pFabric", PFABRIC_QUEUES, "ecmp", PFABRIC),
];

const SHORT_QUEUES: &str = "kind = \"drop-tail\"\ncapacity = \"30 packets\"";
const MARKING: &str =
    "kind = \"drop-tail\"\ncapacity = \"60 packets\"\necn_threshold = \"20 packets\"";
/// A queue for each of Homa's priorities.
pub(crate) const PRIORITIES: &str = "kind = \"priority\"\nclass = [\
    { class = 0, kind = \"drop-tail\", capacity = \"60KB\" }, \
    { class = 1, kind = \"drop-tail\", capacity = \"60KB\" }, \
    { class = 2, kind = \"drop-tail\", capacity = \"60KB\" }, \
    { class = 3, kind = \"drop-tail\", capacity = \"60KB\" }, \
    { class = 4, kind = \"drop-tail\", capacity = \"60KB\" }, \
    { class = 5, kind = \"drop-tail\", capacity = \"60KB\" }, \
    { class = 6, kind = \"drop-tail\", capacity = \"60KB\" }, \
    { class = 7, kind = \"drop-tail\", capacity = \"60KB\" }]";
const LOSSLESS: &str = "kind = \"lossless\"\nbuffer = \"200KB\"\nreserve = \"0B\"\nalpha = 0.125\n\
    headroom = \"auto\"\nheadroom_beside = true\nresume_offset = \"2KB\"\nlossless = [0]\n\
    control_class = 7\nschedule = \"strict\"\n\
    ecn = { min = \"5KB\", max = \"20KB\", probability = 0.5, at = \"arrival\" }";
const PFABRIC_QUEUES: &str = "kind = \"pfabric\"\ncapacity = \"36KB\"";

const NEWRENO: &str = "kind = \"tcp\"\nrule = \"newreno\"\nrecovery = \"newreno\"\necn = false\n\
    preset = \"linux-datacenter\"\nmss = \"1460B\"\nrto_initial = \"2ms\"\nrto_min = \"1ms\"";
const DCTCP: &str = "kind = \"tcp\"\nrule = \"dctcp\"\nrecovery = \"sack\"\necn = true\n\
    preset = \"linux-datacenter\"\nmss = \"1460B\"\nrto_initial = \"2ms\"\nrto_min = \"1ms\"";
const MPTCP: &str = "kind = \"mptcp\"\nphases = \"multipath\"\npreset = \"linux\"\n\
    mss = \"1460B\"\nrto_initial = \"2ms\"\nrto_min = \"1ms\"";
pub(crate) const HOMA: &str = "kind = \"homa\"\npreset = \"paper\"\nworkload = \"homa-w1\"\n\
    unscheduled_priorities = 7";
const DCQCN: &str = "kind = \"rdma\"\nrule = \"dcqcn\"\npreset = \"paper\"\npayload = \"1000B\"";
const TIMELY: &str = "kind = \"rdma\"\nrule = \"timely\"\npreset = \"paper\"\n\
    segment = \"16KB\"\npayload = \"1000B\"";
const SWIFT: &str = "kind = \"rdma\"\nrule = \"swift\"\npreset = \"paper\"\npayload = \"1000B\"";
const PHOST: &str = "kind = \"phost\"\npreset = \"ndp-paper\"\npayload = \"1460B\"";
const PFABRIC: &str = "kind = \"pfabric\"\npreset = \"paper\"\npayload = \"1460B\"";

/// A hundred thousand messages by each transport with `TRIMLINE_LIFE=100000`.
#[test]
fn lives_sum_up_whatever_the_transport() {
    let messages = std::env::var("TRIMLINE_LIFE").map_or(1000, |n| n.parse().unwrap());
    for (name, queue, mode, transport) in TRANSPORTS {
        let text = large(queue, mode, transport, messages);
        let scenario = Scenario::parse("life.toml", &text, Path::new(""), &[]);
        let run = run(&scenario.unwrap_or_else(|e| panic!("{name}: {}", e.render(false))));
        sums(&run, name);
        let all = run.lives.len() as u64;
        assert!(all >= messages, "{name}: {all}");
        let mut means: Vec<(&str, f64)> = (CAUSES.iter().enumerate())
            .map(|(n, cause)| (cause.name, run.lives.iter().map(|row| row.spent[n].0).sum::<u64>()))
            .map(|(name, sum)| (name, sum as f64 / all as f64 / 1e6))
            .collect();
        means.sort_by(|a, b| b.1.total_cmp(&a.1));
        let means: Vec<String> =
            means[..4].iter().map(|(cause, us)| format!("{cause} {us:.1} us")).collect();
        println!("{name}: {all} messages, {:.1} s; {}", run.wall_s, means.join(", "));
    }
}

/// A star, whose links take 0.8 ns a byte and 1 us.
fn star(queue: &str, transport: &str, traffic: &str) -> String {
    format!(
        "name = \"life\"\nseed = 1\nrouting.mode = \"ecmp\"\n\
         topology = {{ kind = \"star\", hosts = 4, link_rate = \"10Gbps\", link_delay = \"1us\" }}\n\
         [queue]\n{queue}\n[transport]\n{transport}\n{traffic}\n[measure]\nlife = true\n"
    )
}

const DROP_TAIL: &str = "kind = \"drop-tail\"\ncapacity = \"100 packets\"";
const TRIMMING: &str = "kind = \"ndp\"\ncapacity = \"8 packets\"";
const NDP: &str = "kind = \"ndp\"\npreset = \"paper\"\npayload = \"9000B\"\ninitial_window = 30";
const UDP: &str = "kind = \"rdma\"\nrule = \"none\"\npreset = \"roce\"\npayload = \"1000B\"";

fn flow(from: u32, to: u32, size: &str, start: &str) -> String {
    format!(
        "[[traffic]]\nkind = \"random\"\nsources = {from}\ndestinations = {to}\nsize = \"{size}\"\n\
         start = \"{start}\"\n"
    )
}

fn by_hand(text: &str) -> Vec<LifeRow> {
    let scenario = parse(text, Path::new(""), &EXACT).unwrap_or_else(|| {
        let error = Scenario::parse("life.toml", text, Path::new(""), &[]).err().unwrap();
        panic!("{}", error.render(false))
    });
    let run = run(&scenario);
    sums(&run, text);
    run.lives
}

/// One message alone: each packet but the last once at its host, the last one at both hops.
#[test]
fn alone_on_an_idle_fabric_it_is_serialization_and_propagation() {
    for transport in [NDP, UDP] {
        let rows = by_hand(&star(TRIMMING, transport, &flow(0, 1, "90000B", "0")));
        let row = spent(&rows[0]);
        assert_eq!(row.keys().copied().collect::<Vec<_>>(), ["propagation", "serialization"]);
        assert_eq!(row["propagation"], 2_000_000);
    }
    let rows = by_hand(&star(TRIMMING, NDP, &flow(0, 1, "90000B", "0")));
    assert_eq!(spent(&rows[0])["serialization"], 11 * 9064 * 800);
}

/// Two messages of one packet into one host, at one time: one of them waits for the other.
#[test]
fn behind_another_message_it_waits_for_its_serialization() {
    let traffic = flow(0, 2, "9000B", "0") + &flow(1, 2, "9000B", "0");
    let rows = by_hand(&star(DROP_TAIL, NDP, &traffic));
    let mut queued: Vec<u64> =
        rows.iter().map(|row| spent(row).get("last_hop_queueing").copied().unwrap_or(0)).collect();
    queued.sort_unstable();
    assert_eq!(queued, [0, 9064 * 800]);
    // From one host, the second one waits there.
    let traffic = flow(0, 2, "9000B", "0") + &flow(0, 3, "9000B", "0");
    let rows = by_hand(&star(DROP_TAIL, NDP, &traffic));
    let mut waits: Vec<u64> =
        rows.iter().map(|row| spent(row).get("port_busy").copied().unwrap_or(0)).collect();
    waits.sort_unstable();
    assert_eq!(waits, [0, 9064 * 800]);
}
