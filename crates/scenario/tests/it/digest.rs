//! What must not change a result does not: the event queue, the way departures are worked out,
//! traces, checks, and the detour over the resolved scenario of a manifest.

use std::path::{Path, PathBuf};

use metrics::{Manifest, OutputDir, Summary};
use trimline_scenario::{Options, Scenario, Trace, run, simulate};
use units::{HostId, MsgId, MsgKey};

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn load(file: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
    Scenario::load(&scenarios().join(file), &sets).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn digest(scenario: &Scenario, options: &Options) -> u64 {
    simulate(scenario, options, &mut |_| ()).unwrap().outcome.digest
}

/// A scenario of each kind, small enough for a test, with the number of messages it must complete.
fn small() -> Vec<Scenario> {
    let newreno = "demo/incast_newreno.toml";
    vec![
        load("first.toml", &["measure.to=2ms"]),
        load(
            "ndp_incast_100x135KB.toml",
            &["topology.k=6", "traffic.senders=50", "traffic.size=45KB"],
        ),
        load(newreno, &["topology.k=4", "traffic.senders=15"]),
        load(newreno, &["topology.k=4", "traffic.senders=15", "routing.mode=random"]),
        load("phost_incast_431x450KB.toml", &["topology.k=4", "traffic.senders=15"]),
        load("homa_tr_incast.toml", &[]),
        load("htsim/connection_matrix.toml", &[]),
        load("htsim/connection_matrix.toml", &["traffic={file=\"triggers_16.cm\"}"]),
        load(
            "htsim/connection_matrix.toml",
            &[
                "traffic.file=incast_15.cm",
                "routing.reroute_after=200us",
                "fault=[{at=\"1ms\", link=\"tor 0 -> agg 1\", action=\"down\"}]",
            ],
        ),
    ]
}

/// Those, and some whose messages never end.
fn all() -> impl Iterator<Item = Scenario> {
    let fabric = "topology={kind=\"fat-tree\", k=4, link_rate=\"10Gbps\", link_delay=\"1us\"}";
    let short = "measure={from=\"1ms\", to=\"2ms\"}";
    let endless = [
        load("overload_cut_payload.toml", &["measure.to=3ms"]),
        load("coexistence/separate_queues.toml", &[fabric, short]),
        load("dctcp_two_flows.toml", &["measure={from=\"1ms\", to=\"4ms\"}"]),
        load(
            "dctcp_two_flows.toml",
            &["queue.capacity=40 packets", "transport.rule=cubic", "transport.ecn=false", short],
        ),
        load("coexistence/shared_queue.toml", &[fabric, short]),
        load("coexistence/dctcp_beside_newreno.toml", &[fabric, short]),
        load(
            "../studies/homa/w3.toml",
            &[
                "topology.leaves=3",
                "topology.hosts_per_leaf=4",
                "measure={from=\"20us\", to=\"200us\", limit=\"1ms\"}",
            ],
        ),
    ];
    small().into_iter().chain(endless)
}

#[test]
fn cross_checks_of_the_engine_agree() {
    for scenario in all() {
        let plain = digest(&scenario, &Options::default());
        let with = |options: Options| digest(&scenario, &options);
        assert_eq!(plain, with(Options::default()), "{}: twice", scenario.name());
        let heap = Options { heap: true, ..Options::default() };
        assert_eq!(plain, with(heap.clone()), "{}: heap", scenario.name());
        assert_eq!(plain, with(Options { eager: true, ..heap }), "{}: eager", scenario.name());
        let alone = Options { threads: Some(1), ..Options::default() };
        assert_eq!(plain, with(alone), "{}: one thread", scenario.name());
        let check = Options { check: true, ..Options::default() };
        assert_eq!(plain, with(check), "{}: check", scenario.name());
    }
}

#[test]
fn another_seed_is_another_run() {
    let one = digest(&load("first.toml", &["measure.to=2ms"]), &Options::default());
    let two = digest(&load("first.toml", &["measure.to=2ms", "seed=2"]), &Options::default());
    assert_ne!(one, two);
}

/// A directory of its own for `test`, removed before and after.
fn in_dir(test: &str, body: impl FnOnce(&Path)) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&dir);
    body(&dir);
    let _ = std::fs::remove_dir_all(&dir);
}

/// A message that every scenario has.
const FIRST: MsgKey = MsgKey { src: HostId(0), id: MsgId(0) };

#[test]
fn traces_change_nothing_and_the_manifest_repeats_the_run() {
    for (n, scenario) in all().enumerate() {
        in_dir(&format!("manifest-{n}"), |dir| {
            let options = Options {
                trace: Trace {
                    packets: true,
                    queues: true,
                    flows: vec![FIRST],
                    ..Trace::default()
                },
                command: "trimline run x.toml".to_owned(),
                ..Options::default()
            };
            let out = OutputDir::create(dir).unwrap();
            let traced = run(&scenario, &options, &out, &mut |_| ()).unwrap();
            out.commit().unwrap();
            let plain = format!("{:016x}", digest(&scenario, &Options::default()));
            assert_eq!(traced.summary.digest, plain, "{}: traced", scenario.name());
            for file in [
                "packets.pcapng",
                "hops.pcapng",
                "trace.perfetto.json",
                "queues.parquet",
                "links.parquet",
            ] {
                assert!(dir.join(file).metadata().unwrap().len() > 100, "{file}");
            }
            let manifest = dir.join("manifest.json");
            let again = Scenario::load(&manifest, &[]).unwrap();
            assert_eq!(format!("{:016x}", digest(&again, &Options::default())), plain);
            assert_eq!(again.resolved(), scenario.resolved(), "resolved once, resolved for good");
            assert_eq!(Manifest::read(&manifest).unwrap().command, "trimline run x.toml");
            assert_eq!(Summary::read(&dir.join("summary.json")).unwrap(), traced.summary);
        });
    }
}

#[test]
fn small_scenarios_complete_everything() {
    for scenario in small() {
        let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
        let measured = simulated.flows.iter().filter(|row| row.measured);
        let (done, open): (Vec<&metrics::FlowRow>, Vec<_>) =
            measured.partition(|row| row.finish.is_some());
        assert!(!done.is_empty() && open.is_empty(), "{}: {open:?}", scenario.name());
        for row in done {
            assert_eq!(Some(row.placed), row.size);
            assert!(row.finish >= Some(row.start + row.ideal), "faster than alone: {row:?}");
        }
    }
}

#[test]
fn a_manifest_whose_file_has_changed_is_refused() {
    in_dir("changed", |dir| {
        std::fs::create_dir_all(dir).unwrap();
        let cm = dir.join("x.cm");
        let text = std::fs::read_to_string(scenarios().join("htsim/perm_16.cm")).unwrap();
        std::fs::write(&cm, &text).unwrap();
        let set = format!("traffic.file={}", cm.display());
        let scenario = load("htsim/connection_matrix.toml", &[&set]);
        let resolved = toml::to_string(scenario.resolved()).unwrap();
        assert!(Scenario::parse("r", &resolved, dir, &[]).is_ok());
        std::fs::write(&cm, text.replace("2000000", "2000001")).unwrap();
        let error = Scenario::parse("r", &resolved, dir, &[]).err().unwrap().to_string();
        assert!(error.contains("the file has changed"), "{error}");
    });
}

#[test]
fn two_tables_of_traffic_run_together() {
    let text = std::fs::read_to_string(scenarios().join("first.toml")).unwrap();
    let more = "\n[[traffic]]\nkind = \"incast\"\nsenders = 5\nreceiver = 2\nsize = \"20KB\"\nstart = \"1500us\"\n";
    let text = text.replace("[traffic]", "[[traffic]]") + more;
    let scenario = Scenario::parse("x", &text, Path::new("."), &[]).unwrap();
    let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let incast = simulated.flows.iter().filter(|row| {
        row.dst == 2 && row.size == Some(20_000) && row.start == units::Time(1_500_000_000)
    });
    assert_eq!(incast.filter(|row| row.finish.is_some()).count(), 5);
    assert!(simulated.flows.len() > 1000, "and the Poisson traffic with them");
}

#[test]
fn a_topo_file_is_the_fabric_that_it_describes() {
    let file = load(
        "htsim/connection_matrix.toml",
        &["topology={kind=\"file\", file=\"fat_tree_16.topo\"}"],
    );
    let built_in = load("htsim/connection_matrix.toml", &[]);
    assert_eq!(file.topology().links(), built_in.topology().links());
    assert_eq!(digest(&file, &Options::default()), digest(&built_in, &Options::default()));
}
