//! `engine.level = "flow"`: messages as fluids, beside closed forms and beside packets.

use std::path::Path;

use metrics::FlowRow;
use trimline_scenario::{Options, Scenario, Simulated, evaluate, simulate};
use units::Dur;

use crate::EXACT;
use crate::life::{HOMA, PRIORITIES};

pub(crate) const NDP: &str =
    "kind = \"ndp\"\npreset = \"paper\"\npayload = \"9000B\"\ninitial_window = 12";
pub(crate) const TRIMMING: &str = "kind = \"ndp\"\ncapacity = \"8 packets\"";
const TCP: &str = "kind = \"tcp\"\nrule = \"newreno\"\nrecovery = \"sack\"\necn = false\n\
                   preset = \"linux-datacenter\"\nmss = \"1460B\"";
const DROP_TAIL: &str = "kind = \"drop-tail\"\ncapacity = \"300 packets\"";

const STAR: &str = "kind = \"star\"\nhosts = 9\nlink_rate = \"10Gbps\"\nlink_delay = \"1us\"";
pub(crate) const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
                          link_rate = \"10Gbps\"\nuplink_rate = \"20Gbps\"\nlink_delay = \"1us\"";

/// Transport, queue and routing.
type How<'a> = (&'a str, &'a str, &'a str);

const SPRAYED: How<'_> = (NDP, TRIMMING, "permute");
const HASHED: How<'_> = (TCP, DROP_TAIL, "ecmp");

fn text(topology: &str, (transport, queue, routing): How<'_>, rest: &str) -> String {
    format!(
        "name = \"flows\"\nseed = 1\n[engine]\nlevel = \"flow\"\n[topology]\n{topology}\n\
         [transport]\n{transport}\n[queue]\n{queue}\n[routing]\nmode = \"{routing}\"\n{rest}"
    )
}

fn read(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<String> = EXACT.iter().chain(set).map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("flow.toml", text, Path::new(""), &set);
    scenario.unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn ran(text: &str, set: &[&str]) -> Simulated {
    simulate(&read(text, set), &Options::default(), &mut |_| ()).unwrap()
}

/// What is said of what flow level has no answer to.
pub(crate) fn refused(text: &str, set: &[&str]) -> String {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let error = match Scenario::parse("flow.toml", text, Path::new(""), &set) {
        Err(error) => error.into(),
        Ok(read) => simulate(&read, &Options::default(), &mut |_| ()).err().unwrap(),
    };
    assert_eq!(error.exit_code(), 2);
    error.render(false)
}

fn fct(flow: &FlowRow) -> Dur {
    flow.fct().unwrap()
}

#[test]
fn a_message_alone_takes_its_ideal_time() {
    let homa = (HOMA, PRIORITIES, "spray");
    for (how, size) in [(SPRAYED, "2MB"), (SPRAYED, "40B"), (homa, "2MB"), (HASHED, "10KB")] {
        let one = format!(
            "[traffic]\nkind = \"random\"\nsources = 0\ndestinations = 15\nsize = \"{size}\"\n"
        );
        let ran = ran(&text(LEAF_SPINE, how, &one), &[]);
        let [flow] = &ran.flows[..] else { panic!("{:?}", ran.flows) };
        let late = fct(flow).0 - flow.ideal.0;
        assert!(late <= 2, "{how:?} {size}: {late} ps after {}", flow.ideal);
        assert_eq!(flow.placed, flow.size.unwrap());
        assert!(flow.acked.is_none_or(|acked| Some(acked) > flow.finish));
    }
}

/// Ten packets come at once; a round trip later twice as many. Nothing is lost.
#[test]
fn slow_start_is_a_window_that_doubles() {
    let one = "[traffic]\nkind = \"random\"\nsources = 0\ndestinations = 1\nsize = \"150KB\"\n";
    // A link on which a round trip is long.
    let far = "topology.link_delay=100us";
    let flows = ran(&text(STAR, HASHED, one), &[far]).flows;
    let packets = ran(&text(STAR, HASHED, one), &[far, "engine.level=packet"]).flows;
    let (flow, packet) = (fct(&flows[0]).as_us_f64(), fct(&packets[0]).as_us_f64());
    assert!((flow / packet - 1.0).abs() < 0.15, "{flow} us, with packets {packet}");
    assert!(flow > 3.0 * flows[0].ideal.as_us_f64(), "{flow} us: several round trips");
}

#[test]
fn an_incast_takes_as_long_as_its_bytes_on_the_last_link() {
    let incast = "[traffic]\nkind = \"incast\"\nreceiver = 0\nsenders = 8\nsize = \"900KB\"\n";
    let flows = ran(&text(STAR, SPRAYED, incast), &[]);
    let last = flows.flows.iter().map(fct).max().unwrap().as_us_f64();
    // 100 packets of 9064 B each, and two links and a switch before the first.
    let bytes = 8.0 * 100.0 * 9064.0;
    assert!((last - bytes * 8.0 / 10_000.0).abs() < 12.0, "{last} us");
    let packets = ran(&text(STAR, SPRAYED, incast), &["engine.level=packet"]);
    let packets = packets.flows.iter().map(fct).max().unwrap().as_us_f64();
    assert!((last / packets - 1.0).abs() < 0.01, "{last} us, with packets {packets}");
    let link = flows.outcome.links.iter().map(|link| link.bytes).max().unwrap() as f64;
    assert!((link - bytes).abs() < 100.0, "{link} bytes on the last link");
}

/// Two messages to one host: the shorter first, and the longer in what is left.
#[test]
fn the_shortest_goes_first_under_homa() {
    let two = "[[traffic]]\nkind = \"random\"\nsources = 1\ndestinations = 0\nsize = \"2MB\"\n\
               [[traffic]]\nkind = \"random\"\nsources = 2\ndestinations = 0\nsize = \"1MB\"\n";
    let flows = ran(&text(STAR, (HOMA, PRIORITIES, "spray"), two), &[]).flows;
    let [long, short] = &flows[..] else { panic!("{flows:?}") };
    assert!(fct(short).0 - short.ideal.0 < 1_000, "{} {}", fct(short), short.ideal);
    let both = long.ideal.as_us_f64() + short.ideal.as_us_f64();
    assert!((fct(long).as_us_f64() / both - 1.0).abs() < 0.01, "{} of {both}", fct(long));
}

#[test]
fn a_slow_link_slows_and_a_dead_one_is_avoided() {
    let one = "[traffic]\nkind = \"random\"\nsources = 0\ndestinations = 15\nsize = \"10MB\"\n";
    let fault =
        |event: &str| format!("{one}[[fault]]\nlink = \"tor 0 -> agg 0\"\nat = \"1ms\"\n{event}\n");
    let alone = fct(&ran(&text(LEAF_SPINE, SPRAYED, one), &[]).flows[0]).as_us_f64();
    let with = |event: &str| {
        let text = text(LEAF_SPINE, SPRAYED, &fault(event));
        fct(&ran(&text, &["routing.reroute_after=10us"]).flows[0]).as_us_f64()
    };
    // Half of the packets go over the slow link, so that all go at twice its rate: a fifth.
    let slow = with("action = \"rate\"\nrate = \"1Gbps\"");
    assert!((slow - (1000.0 + (alone - 1000.0) * 5.0)).abs() < 0.01 * slow, "{slow} of {alone}");
    let dead = with("action = \"down\"");
    assert!((dead / alone - 1.0).abs() < 0.01, "the other link has room: {dead} of {alone}");
}

/// The same messages at the same times as over packets, twice, and with any number of threads.
#[test]
fn traffic_is_that_of_packets_and_runs_repeat() {
    let poisson = "[traffic]\nkind = \"poisson\"\ndistribution = \"web-search\"\nload = 0.5\n\
                   [measure]\nfrom = \"1ms\"\nto = \"41ms\"\n";
    let text = text(LEAF_SPINE, SPRAYED, poisson);
    let flows = ran(&text, &[]);
    let packets = ran(&text, &["engine.level=packet"]);
    let sent = |ran: &Simulated| -> Vec<_> {
        let measured = ran.flows.iter().filter(|flow| flow.measured);
        measured.map(|f| (f.src, f.dst, f.msg, f.size, f.start)).collect()
    };
    assert!(sent(&flows).len() > 50);
    assert_eq!(sent(&flows), sent(&packets));
    let threads = Options { threads: Some(2), ..Options::default() };
    let again = simulate(&read(&text, &[]), &threads, &mut |_| ()).unwrap();
    assert_eq!(again.outcome.digest, flows.outcome.digest);
    assert_ne!(packets.outcome.digest, flows.outcome.digest);
    let mean = |ran: &Simulated| {
        let all: Vec<f64> =
            ran.flows.iter().filter(|f| f.measured).map(|f| fct(f).as_us_f64()).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let (flow, packet) = (mean(&flows), mean(&packets));
    assert!((flow / packet - 1.0).abs() < 0.1, "mean {flow} us, with packets {packet}");
}

#[test]
fn what_only_packets_answer_is_refused() {
    let one = "[traffic]\nkind = \"random\"\nsources = 0\ndestinations = 1\nsize = \"1KB\"\n";
    let star = text(STAR, SPRAYED, one);
    for (set, why) in [
        ("measure.life=true", "is of packets, and this is flow level"),
        ("measure.packet_latency=true", "is of packets, and this is flow level"),
        ("engine.level=fluid", "`fluid`"),
    ] {
        let said = refused(&star, &[set]);
        assert!(said.contains(why), "{set}: {said}");
    }
    let lossy = format!(
        "{one}[[fault]]\nlink = \"host 0 -> tor 0\"\nat = \"1us\"\naction = \"loss\"\n\
         probability = 0.1\n"
    );
    let said = refused(&text(STAR, SPRAYED, &lossy), &["routing.reroute_after=1us"]);
    assert!(said.contains("a link that loses some is of packets"), "{said}");
    let subflows = "kind = \"mptcp\"\nphases = \"multipath\"\nsubflows = 2\npreset = \"linux\"\n\
                    mss = \"1460B\"";
    let said = refused(&text(STAR, (subflows, DROP_TAIL, "ecmp"), one), &[]);
    assert!(said.contains("`mptcp` has no flow level"), "{said}");
    let graph = "kind = \"jellyfish\"\nswitches = 8\ndegree = 3\nhosts_per_switch = 2\n\
                 graph_seed = 1\npaths = 8\nstretch = \"unlimited\"\n\
                 link_rate = \"10Gbps\"\nlink_delay = \"1us\"";
    let said = refused(&text(graph, SPRAYED, one), &[]);
    assert!(said.contains("nothing is sprayed over a jellyfish"), "{said}");
}

/// Four calls at once on a connection that is kept: one after the other, as over packets.
#[test]
fn messages_of_a_connection_come_in_their_order() {
    let calls = "[traffic]\nkind = \"rpc\"\nsources = 1\ndestinations = 5\nrequest = \"1MB\"\n\
                 response = \"100B\"\noutstanding = 4\ngap = \"1us\"\ngap_kind = \"fixed\"\n\
                 draw_server = \"once\"\ncalls = 4\nconnections = \"persistent\"\n";
    let text = text(STAR, SPRAYED, calls);
    let requests = |level: &str| -> Vec<f64> {
        let ran = ran(&text, &[level]);
        let requests = ran.flows.iter().filter(|flow| flow.src == 1);
        requests.map(|flow| fct(flow).as_us_f64()).collect()
    };
    let (flows, packets) = (requests("engine.level=flow"), requests("engine.level=packet"));
    assert!(flows.len() == 4 && flows.is_sorted(), "{flows:?}");
    for (flow, packet) in flows.iter().zip(&packets) {
        assert!((flow / packet - 1.0).abs() < 0.02, "{flows:?} us, with packets {packets:?}");
    }
}

/// Messages that are stopped, and a host's only link that goes down and comes back: nothing that
/// was counted is taken back.
#[test]
fn what_has_moved_stays_counted() {
    let stopped = "[[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = 4\nsize = \"10MB\"\n\
                   stop = \"5ms\"\n[[traffic]]\nkind = \"flow\"\nsource = 7\ndestination = 0\n\
                   size = \"10MB\"\nstart = \"0ps\"\n";
    let down = "[traffic]\nkind = \"flow\"\nsource = 0\ndestination = 1\nsize = \"10MB\"\n\
                start = \"0ps\"\n[[fault]]\nlink = \"host 0 -> tor 0\"\nat = \"4ms\"\n\
                until = \"6ms\"\naction = \"down\"\n";
    for rest in [stopped, down] {
        let read = read(&text(STAR, SPRAYED, rest), &["routing.reroute_after=10us"]);
        evaluate(&read, &Options::default(), &mut |_| ()).unwrap();
        let ran = simulate(&read, &Options::default(), &mut |_| ()).unwrap();
        let placed = ran.outcome.samples.iter().map(|sample| sample.placed_bytes);
        assert!(placed.is_sorted(), "{rest}");
        assert!(
            ran.outcome.samples.iter().map(|sample| sample.tier_bytes[0]).is_sorted(),
            "{rest}"
        );
    }
    let flow = &ran(&text(STAR, SPRAYED, down), &["routing.reroute_after=10us"]).flows[0];
    let late = fct(flow).as_us_f64() - flow.ideal.as_us_f64();
    assert!((late - 2_000.0).abs() < 20.0, "{late} us for two milliseconds without a link");
}

/// Rates, not windows: nothing is doubled there.
#[test]
fn rdma_has_a_flow_level() {
    let dcqcn = "kind = \"rdma\"\nrule = \"dcqcn\"\npreset = \"paper\"\npayload = \"1000B\"";
    let incast = "[traffic]\nkind = \"incast\"\nreceiver = 0\nsenders = 4\nsize = \"1MB\"\n";
    let flows = ran(&text(STAR, (dcqcn, DROP_TAIL, "ecmp"), incast), &[]).flows;
    assert!(flows.len() == 4 && flows.iter().all(|flow| flow.finish.is_some()), "{flows:?}");
}

/// Drawn scenarios of the swarm, those that flow level has an answer to: whole messages, none
/// sooner than alone, and the same twice.
#[test]
fn drawn_scenarios_deliver_whole_messages_and_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let level = ["engine.level=flow".to_owned()];
    let (mut runs, mut delivered) = (0, 0);
    for seed in 1..=150 {
        let (_, text) = crate::swarm::draw(seed, dir.path());
        let Ok(read) = Scenario::parse("drawn.toml", &text, dir.path(), &level) else { continue };
        let ran = match simulate(&read, &Options::default(), &mut |_| ()) {
            Ok(ran) => ran,
            Err(error) => {
                assert_eq!(error.exit_code(), 2, "seed {seed}: {}", error.render(false));
                continue;
            }
        };
        for flow in &ran.flows {
            let Some(fct) = flow.fct() else { continue };
            assert_eq!(Some(flow.placed), flow.size, "seed {seed}: {flow:?}");
            assert!(fct.0 + 2 >= flow.ideal.0, "seed {seed}: sooner than alone: {flow:?}");
            assert!(flow.placed_in_window <= flow.placed, "seed {seed}: {flow:?}");
            delivered += 1;
        }
        // And files can be made of it.
        evaluate(&read, &Options::default(), &mut |_| ()).unwrap();
        let again = simulate(&read, &Options::default(), &mut |_| ()).unwrap();
        assert_eq!(again.outcome.digest, ran.outcome.digest, "seed {seed}");
        runs += 1;
    }
    println!("{runs} runs, {delivered} messages");
    assert!(runs > 20 && delivered > 1_000, "{runs} runs, {delivered} messages");
}
