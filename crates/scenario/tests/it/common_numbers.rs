//! What comparisons rest on: with one seed all transports get the same traffic, and the identity of
//! a scenario covers what it says and the files that it reads.

use std::fs;
use std::path::{Path, PathBuf};

use trimline_scenario::{Options, Scenario, simulate};

/// What makes traffic of a kind, and how many messages there are at least.
const TRAFFIC: [(&str, usize); 5] = [
    ("kind = \"poisson\"\ndistribution = \"google-rpc\"\nload = 0.3", 100),
    (
        "kind = \"incast\"\nreceiver = 0\nsenders = 5\nsize = \"20KB\"\nevery = \"200us\"\nuntil = \"2ms\"",
        50,
    ),
    ("kind = \"random\"\nflows_per_host = 3\nsize = \"30KB\"\nstart_spread = \"1ms\"", 24),
    ("kind = \"permutation\"\nsize = \"100KB\"\nstart_spread = \"100us\"", 8),
    ("kind = \"all-to-all\"\nsize = \"10KB\"\nstart_spread = \"1ms\"", 56),
];

/// Transports with the queues that they take, and routing.
const TRANSPORTS: [(&str, &str, &str); 4] = [
    (
        "{ kind = \"ndp\", preset = \"paper\", payload = \"9000B\", initial_window = 10 }",
        "{ kind = \"ndp\", capacity = \"8 packets\" }",
        "permute",
    ),
    (
        "{ kind = \"tcp\", rule = \"newreno\", preset = \"linux-datacenter\", recovery = \"newreno\", \
         ecn = false, mss = \"1460B\" }",
        "{ kind = \"drop-tail\", capacity = \"20 packets\" }",
        "ecmp",
    ),
    (
        "{ kind = \"phost\", preset = \"ndp-paper\", payload = \"9000B\" }",
        "{ kind = \"drop-tail\", capacity = \"8 packets\" }",
        "spray",
    ),
    (
        "{ kind = \"rdma\", rule = \"swift\", preset = \"paper\", payload = \"1000B\", class = 0, \
         ack_class = 0 }",
        "{ kind = \"drop-tail\", capacity = \"64 packets\" }",
        "random",
    ),
];

fn scenario(traffic: &str, transport: usize, seed: u64) -> Scenario {
    let (transport, queue, routing) = TRANSPORTS[transport];
    let text = format!(
        "name = \"x\"\nseed = {seed}\ntransport = {transport}\nqueue = {queue}\n[topology]\nkind = \
         \"star\"\nhosts = 8\nlink_rate = \"10Gbps\"\nlink_delay = \"1us\"\n[routing]\nmode = \
         \"{routing}\"\n[measure]\nto = \"3ms\"\n[traffic]\n{traffic}\n"
    );
    let parsed = Scenario::parse("x.toml", &text, Path::new(""), &[]);
    parsed.unwrap_or_else(|e| panic!("{}", e.render(false)))
}

/// Source, destination, size and instant of each measured message.
fn submitted(scenario: &Scenario) -> Vec<(u32, u32, Option<u64>, u64)> {
    let simulated = simulate(scenario, &Options::default(), &mut |_| ()).unwrap();
    let measured = simulated.flows.iter().filter(|row| row.measured);
    measured.map(|row| (row.src, row.dst, row.size, row.start.0)).collect()
}

#[test]
fn traffic_is_drawn_alike_for_every_transport() {
    for (traffic, least) in TRAFFIC {
        let first = submitted(&scenario(traffic, 0, 7));
        assert!(first.len() >= least, "{traffic}: {}", first.len());
        for (transport, (about, _, _)) in TRANSPORTS.iter().enumerate().skip(1) {
            let other = submitted(&scenario(traffic, transport, 7));
            assert!(first == other, "{traffic}\nunder {about}");
        }
        assert_ne!(first, submitted(&scenario(traffic, 0, 8)), "{traffic}: of another seed");
    }
}

#[test]
fn what_a_scenario_says_is_what_tells_it_from_others() {
    let traffic = TRAFFIC[0].0;
    let identity = |scenario: &Scenario| scenario.identity();
    let one = scenario(traffic, 0, 1);
    assert_eq!(one.identity(), identity(&scenario(traffic, 0, 2)), "the seed is no part of it");
    assert_ne!(one.identity(), identity(&scenario(traffic, 1, 1)));
    let again = |edit: &str| {
        let text = toml::to_string(one.resolved()).unwrap();
        Scenario::parse("y.toml", &text, Path::new(""), &[edit.to_owned()]).unwrap().identity()
    };
    assert_eq!(one.identity(), again("seed=3"), "with every default spelled out");
    assert_ne!(one.identity(), again("traffic.load=0.31"));
    let variants = format!("{traffic}\n[[variant]]\nname = \"a\"\nset = {{ name = \"b\" }}");
    assert_eq!(one.identity(), identity(&scenario(&variants, 0, 1)), "variants are no part of it");
}

#[test]
fn files_count_with_what_is_in_them() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(repository.join("p4")).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let program = dir.path().join("window.p4");
    let edits = [format!("transport.program={}", program.display())];
    let file = repository.join("scenarios/p4/window.toml");
    let load = || Scenario::load(&file, &edits).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let add = |name: &str| {
        let path = dir.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text + "// a line more\n").unwrap();
        load().identity()
    };
    let (first, resolved) = (load().identity(), toml::to_string(load().resolved()).unwrap());
    assert_eq!(first, load().identity());
    let own = add("window.p4");
    let included = add("headers.p4");
    assert!(first != own && own != included && included != first);
    let error = Scenario::parse("manifest", &resolved, Path::new(""), &[]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("has changed since the run"), "{error}");
}
