//! `trimline testbed` and `trimline switch`, as a user without privileges has them: inside
//! `unshare -Urnm`. No times are looked at.

use std::path::Path;

use assert_cmd::Command;

use crate::wireshark::{there_is_tshark, tshark};

const INCAST: &str = include_str!("../../../../scenarios/testbed/incast.toml");

/// A directory with the incast of seven hosts, and the same with another line.
fn files(changed: &str, to: &str) -> tempfile::TempDir {
    assert!(INCAST.contains(changed), "{changed:?} is not in the scenario");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), INCAST).unwrap();
    std::fs::write(dir.path().join("y.toml"), INCAST.replace(changed, to)).unwrap();
    dir
}

/// What `trimline` says to `args`, which are wrong.
fn refused(dir: &Path, args: &[&str]) -> String {
    let output =
        Command::cargo_bin("trimline").unwrap().current_dir(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?} {output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Run a script inside namespaces of this user, where `trimline` is the program; what it prints.
/// `None` where this user may make none.
fn inside(dir: &Path, script: &str) -> Option<String> {
    unshared("-Urnm", dir, script)
}

/// The same with these flags of `unshare`.
fn unshared(flags: &str, dir: &Path, script: &str) -> Option<String> {
    let run = |script: &str| {
        let program = assert_cmd::cargo::cargo_bin("trimline");
        let script = format!("trimline() {{ {} \"$@\"; }}\n{script}", program.display());
        let script = format!("mount -t tmpfs tmpfs /run\n{script}");
        let mut unshare = std::process::Command::new("unshare");
        unshare.args([flags, "--", "bash", "-ec", &script]).current_dir(dir).output()
    };
    let probe = run("ip netns add probe").ok().filter(|output| output.status.success());
    if probe.is_none() {
        println!("skipped: no network namespaces for this user, or no `ip`");
        return None;
    }
    let output = run(script).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{said}{errors}");
    assert!(output.status.success(), "{script}");
    Some(said + &errors)
}

#[test]
fn a_training_job_runs_over_real_packets() {
    let dir = tempfile::tempdir().unwrap();
    let ring = include_str!("../../../../scenarios/testbed/ring.toml");
    std::fs::write(dir.path().join("ring.toml"), ring).unwrap();
    let script = "
        trimline testbed up ring.toml
        trimline testbed run ring.toml --out out
        trimline testbed down ring.toml
    ";
    let Some(_) = inside(dir.path(), script) else { return };
    let summary = std::fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    // Three steps of 2 (4 - 1) messages of each of four ranks.
    assert_eq!(summary["traffic"]["train"]["steps"]["completed"], 3);
    assert_eq!(summary["messages"]["completed"], 72);
    assert!(dir.path().join("out/critical.parquet").exists());
}

#[test]
fn a_scenario_runs_in_namespaces_and_leaves_the_simulator_s_files() {
    let dir = files("hosts = 8", "hosts = 9");
    let script = r#"
        trimline testbed up x.toml
        trimline testbed up x.toml || echo "again: $?"
        ip netns add tl-z-h3
        trimline testbed run x.toml --capture --out out
        trimline testbed run y.toml --name x --out other || echo "another topology: $?"
        ls other 2>/dev/null || echo "no files of it"
        trimline testbed down x.toml
        trimline testbed down --name x || echo "none: $?"
        trimline testbed up --name z x.toml || echo "not ours: $?"
        ip netns list
    "#;
    let Some(said) = inside(dir.path(), script) else { return };
    for line in [
        "9 network namespaces: tl-x-h0 ... tl-x-tor0",
        "again: 2",
        "another topology: 2",
        "no files of it",
        "9 network namespaces removed",
        "none: 2",
        "not ours: 2",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}");
    }
    let left: Vec<&str> = said.lines().filter(|line| line.starts_with("tl-")).collect();
    assert_eq!(left.len(), 1, "{left:?}: what is not the testbed's stays");
    let out = dir.path().join("out");
    let summary = std::fs::read_to_string(out.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["messages"]["completed"], 7);
    // How many is the machine's: hosts that are late send one after the other.
    assert!(summary["packets"]["trimmed"].is_u64());
    for file in ["flows.parquet", "links.parquet", "manifest.json", "report.html"] {
        assert!(out.join(file).exists(), "{file}");
    }
    is_captured(&out, &summary);
}

/// The captures of a testbed in `out`: every packet that hosts sent, in the order of time.
fn is_captured(out: &Path, summary: &serde_json::Value) {
    if !there_is_tshark() {
        return;
    }
    let count = |file: &str, filter: &str| tshark(&out.join(file), &["-Y", filter]).lines().count();
    let sent = count(
        "hops.pcapng",
        "frame.interface_name contains \"host\" \
         && frame.interface_name contains \"-> tor\" && trimline.ndp.flags.data == 1",
    );
    assert_eq!(Some(sent as u64), summary["packets"]["data_sent"].as_u64());
    let trimmed = count("packets.pcapng", "trimline.shim.flags.trimmed == 1");
    assert_eq!(Some(trimmed as u64), summary["packets"]["trimmed"].as_u64());
    for file in ["packets.pcapng", "hops.pcapng"] {
        assert_eq!(count(file, "frame.time_delta < 0 || _ws.malformed"), 0, "{file}");
    }
}

/// AF_XDP at all hosts and at the switch takes root; who is not is told so.
#[test]
fn a_scenario_runs_over_af_xdp_for_root() {
    let dir = files("seed = 1", "seed = 2");
    let script = r#"
        trimline testbed up x.toml
        trimline testbed run x.toml --xdp --out out || echo "refused: $?"
        trimline testbed down x.toml
        trimline compare sim testbed x.toml --xdp --out both || echo "refused: $?"
        ip netns list
    "#;
    assert!(refused(dir.path(), &["compare", "x.toml", "y.toml", "--xdp"]).contains("sim testbed"));
    let Some(said) = inside(dir.path(), script) else { return };
    assert!(said.contains("CAP_BPF"), "in a user's namespaces");
    assert_eq!(said.matches("refused: 1").count(), 2);
    let Some(said) = unshared("-nm", dir.path(), script) else { return };
    assert!(!said.contains("refused"));
    assert!(!said.lines().any(|line| line.starts_with("tl-")), "the testbed is down");
    assert!(said.contains("testbed, AF_XDP"));
    for out in ["out", "both/testbed", "both/sim"] {
        let summary = dir.path().join(out).join("summary.json");
        let summary = std::fs::read_to_string(summary).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(summary["messages"]["completed"], 7, "{out}");
        assert!(summary["packets"]["trimmed"].as_u64() > Some(0), "{out}");
    }
}

/// Eight hosts behind six switches: every packet between racks crosses three of them.
#[test]
fn the_paper_s_testbed_runs_in_fourteen_namespaces() {
    const PAPER: &str = include_str!("../../../../scenarios/testbed/paper.toml");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.toml"), PAPER).unwrap();
    let script = r#"
        trimline testbed up p.toml
        trimline testbed run p.toml --out out
        trimline testbed down p.toml
    "#;
    let Some(said) = inside(dir.path(), script) else { return };
    for line in ["14 network namespaces: tl-p-h0 ... tl-p-agg1", "14 network namespaces removed"] {
        assert!(said.lines().any(|said| said == line), "{line}");
    }
    let summary = std::fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["messages"]["completed"], 7);
}

#[test]
fn what_a_testbed_cannot_do_is_refused_where_it_stands() {
    let refused_with = |from: &str, to: &str| {
        let dir = files(from, to);
        refused(dir.path(), &["testbed", "up", "y.toml"])
    };
    let skipping = refused_with("[traffic]", "[engine]\nskip = true\n[traffic]");
    assert!(skipping.contains("real hosts send every packet"), "{skipping}");
    let endless = refused_with("size = \"100KB\"", "size = \"unbounded\"\n[measure]\nto = \"1ms\"");
    assert!(endless.contains("size = \"unbounded\"") && endless.contains("in memory"), "{endless}");
    let many = refused_with("hosts = 8", "hosts = 65");
    assert!(many.contains("y.toml:8") && many.contains("64 hosts at most"), "{many}");
    let stack = "[host]\nstack = { median = \"1us\", sigma = 0.1 }\n[queue]";
    let stack = refused_with("[queue]", stack);
    assert!(stack.contains("a stack of their own"), "{stack}");
    let name = files("seed = 1", "seed = 2");
    let name = refused(name.path(), &["testbed", "up", "x.toml", "--name", "a/b"]);
    assert!(name.contains("letters, digits"), "{name}");
}

#[test]
fn a_switch_says_what_it_lacks() {
    let dir = files("seed = 1", "seed = 2");
    let switch = |args: &[&str]| {
        let all: Vec<&str> = ["switch", "x.toml"].iter().chain(args).copied().collect();
        refused(dir.path(), &all)
    };
    assert!(switch(&["--switch", "agg 0"]).contains("its switches: tor 0"));
    assert!(switch(&["--port", "host 1"]).contains("no `=`"));
    assert!(switch(&["--port", "host 8=eth0"]).contains("no host 8"));
    assert!(switch(&["--port", "host 1=p0"]).contains("interface p0 is named twice"));
    assert!(switch(&["--port", "host 0=nowhere"]).contains("no interface nowhere"));
    std::fs::write(dir.path().join("record.csv"), "at,event\n").unwrap();
    assert!(switch(&["--replay", "record.csv"]).contains("line 1"));
    assert!(switch(&["--replay", "none.csv"]).contains("cannot read none.csv"));
}

/// Two hosts' datagrams through a switch of its own process; its record, played to the simulator.
#[test]
fn a_recorded_switch_is_what_the_simulator_says() {
    let dir = files("hosts = 8", "hosts = 2");
    let script = r#"
        for n in 0 1; do
            ip netns add h$n
            ip link add net netns h$n type veth peer name p$n
            ip link set dev p$n addrgenmode none up
            ip -n h$n link set dev net address 02:00:0a:00:00:0$n up
            ip -n h$n addr add 10.0.0.$n/32 dev net
            ip -n h$n route add 10.0.0.0/8 dev net
            ip -n h$n neigh add 10.0.0.$((1 - n)) lladdr 02:00:0a:00:00:0$((1 - n)) dev net
        done
        ip netns exec h0 bash -c 'while :; do echo > /dev/udp/10.0.0.1/9; sleep 0.02; done' &
        trimline switch y.toml --set traffic.senders=1 --record r.csv --capture c.pcapng \
            --for 1s --progress never
        kill $!
        trimline switch y.toml --set traffic.senders=1 --replay r.csv
    "#;
    let Some(said) = inside(dir.path(), script) else { return };
    let same = said.lines().find_map(|line| {
        let rest = line.strip_prefix("the simulator does the same to ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    });
    // Datagrams, and that nobody listens at port 9.
    assert!(same >= Some(8), "{same:?}");
    if there_is_tshark() {
        // Of a byte each, which is no packet of a source of Trimline's.
        let of = |link: &str| format!("udp.dstport == 9 && frame.interface_name == \"{link}\"");
        let count = |link| tshark(&dir.path().join("c.pcapng"), &["-Y", &of(link)]).lines().count();
        assert!(count("host 0 -> tor 0") >= 4);
        assert_eq!(count("host 0 -> tor 0"), count("tor 0 -> host 1"));
    }
}
