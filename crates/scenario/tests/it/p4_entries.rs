//! Entries of P4 tables from a file: what is read, what is refused and where, and a run with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use p4::ir;
use p4::state::State;
use trimline_scenario::{Entries, Options, Scenario, simulate};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A program with a table for each kind of key.
const PROGRAM: &str = "
    #include <core.p4>
    struct meta_t { bit<32> address; bit<48> mac; bit<8> kind; bool urgent; bit<8> port; }
    header none_t { bit<8> n; }
    control Work<H>(inout H h, inout meta_t meta);
    package Box<H>(Work<H> work);
    control W(inout none_t h, inout meta_t meta) {
        action send(bit<8> port, bool urgent) { meta.port = port; meta.urgent = urgent; }
        action lost() { meta.port = 255; }
        table routes {
            key = { meta.address: lpm; meta.kind: exact; }
            actions = { send; @defaultonly lost; }
            default_action = lost();
            size = 3;
        }
        table classes {
            key = { meta.kind: ternary; meta.mac: ternary; }
            actions = { send; NoAction; }
            default_action = NoAction();
        }
        table fixed {
            key = { meta.kind: exact; }
            actions = { send; NoAction; }
            const default_action = NoAction();
            const entries = { 1: send(1, true); }
        }
        table unkeyed { actions = { NoAction; send; } default_action = NoAction(); }
        apply { routes.apply(); classes.apply(); fixed.apply(); unkeyed.apply(); }
    }
    Box(W()) main;";

fn program() -> Arc<ir::Program> {
    let compiled = p4::front::compile(&|_| Ok(PROGRAM.to_owned()), "x.p4", &[]);
    Arc::new(compiled.unwrap_or_else(|errors| panic!("{}", errors[0])))
}

#[test]
fn entries_are_found_as_the_file_has_them() {
    let text = r#"
        [[entry]]
        table = "routes"
        key = { "meta.address" = "10.0.0.0/8", "meta.kind" = 1 }
        action = "send"
        arguments = { port = 7, urgent = false }
        [[entry]]
        table = "W.routes"
        key = { "meta.address" = "10.1.0.0 &&& 0xffff0000", "meta.kind" = "0b1" }
        action = "send"
        arguments = { port = "0x8", urgent = true }
        [[entry]]
        table = "classes"
        key = { "meta.mac" = "02:00:00:00:00:01" }
        priority = 2
        action = "send"
        arguments = { port = 1, urgent = 0 }
        [[entry]]
        table = "classes"
        key = { "meta.kind" = "0x40 &&& 0xc0", "meta.mac" = "_" }
        priority = 1
        action = "NoAction"
        [[default]]
        table = "unkeyed"
        action = "send"
        arguments = { port = 9, urgent = true }
    "#;
    let program = program();
    let mut state = State::new(Arc::clone(&program));
    Entries::read(&program, "e.toml", text).unwrap_or_else(|e| panic!("{e}")).apply(&mut state);
    let found = |table: &str, keys: &[u128]| {
        let (choice, hit) = state.look_up(program.table(table).unwrap(), keys);
        (hit, choice.args.clone())
    };
    assert_eq!(found("routes", &[0x0a02_0001, 1]), (true, vec![7, 0]));
    assert_eq!(found("routes", &[0x0a01_0001, 1]), (true, vec![8, 1]), "the longest prefix");
    assert_eq!(found("routes", &[0x0a01_0001, 2]), (false, vec![]));
    assert_eq!(found("classes", &[0x41, 0x0200_0000_0001]), (true, vec![]), "the first priority");
    assert_eq!(found("classes", &[0x01, 0x0200_0000_0001]), (true, vec![1, 0]));
    assert_eq!(found("unkeyed", &[]), (false, vec![9, 1]));
}

#[test]
fn what_does_not_fit_the_program_is_refused_in_its_place() {
    let routes = "table = \"routes\"\naction = \"send\"\narguments = { port = 1, urgent = true }\n";
    let key = "key = { \"meta.address\" = \"10.0.0.0/8\", \"meta.kind\" = 1 }\n";
    let entry = |text: String| format!("[[entry]]\n{text}");
    let keyed = |key: &str| entry(format!("{routes}key = {key}\n"));
    let with = |table: &str, more: &str| entry(format!("table = \"{table}\"\n{more}\n"));
    let full: String = (1..5).map(|n| keyed(&format!("{{ \"meta.kind\" = {n} }}"))).collect();
    for (text, place, part) in [
        (with("rotes", ""), "2:9", "no table `rotes`, or several; did you mean `W.routes`?"),
        (keyed("{ \"meta.knd\" = 1 }"), "5:9", "no key in W.routes `meta.knd`"),
        (keyed("{ \"meta.address\" = 1 }"), "5:7", "the exact key `meta.kind` has no value"),
        (keyed("{ \"meta.kind\" = 256 }"), "5:23", "256 does not fit 8 bits"),
        (keyed("{ \"meta.kind\" = -1 }"), "5:23", "`-1` is no number of 8 bits"),
        (keyed("{ \"meta.kind\" = 0.5 }"), "5:23", "a number with a fraction"),
        (keyed("{ \"meta.kind\" = \"1 &&& 3\" }"), "5:23", "an exact key has one value"),
        (keyed("7"), "5:7", "`key` is a table of names and values"),
        (
            keyed("{ \"meta.kind\" = 1, \"meta.address\" = \"10.0.0.1/8\" }"),
            "5:43",
            "bits outside of the mask",
        ),
        (
            keyed("{ \"meta.kind\" = 1, \"meta.address\" = \"10.0.0.0/33\" }"),
            "5:43",
            "a prefix has 0 to 32 bits",
        ),
        (
            keyed("{ \"meta.kind\" = 1, \"meta.address\" = \"1 &&& 1\" }"),
            "5:43",
            "the mask of an lpm key is a prefix",
        ),
        (
            keyed("{ \"meta.kind\" = 1, \"meta.address\" = \"10.0.0\" }"),
            "5:43",
            "`10.0.0` is no number of 32 bits",
        ),
        (entry(format!("{routes}{key}priority = 1\n")), "6:12", "without ternary keys"),
        (with("classes", "action = \"NoAction\""), "1:1", "`priority` is missing"),
        (with("classes", "priority = 1\naction = \"lost\""), "4:10", "no action here `lost`"),
        (
            with("routes", &format!("{key}action = \"lost\"")),
            "4:10",
            "no action here `lost`; there is only `send`",
        ),
        (
            with("routes", &format!("{key}action = \"send\"\narguments = {{ prt = 1 }}")),
            "5:15",
            "no parameter of `send` `prt`; did you mean `port`?",
        ),
        (
            with("routes", &format!("{key}action = \"send\"\narguments = {{ port = 1 }}")),
            "5:13",
            "`send` has no argument for `urgent`",
        ),
        (
            with(
                "routes",
                &format!("{key}action = \"send\"\narguments = {{ port = 300, urgent = 2 }}"),
            ),
            "5:22",
            "`port`: 300 does not fit 8 bits",
        ),
        (format!("{0}{0}", entry(format!("{routes}{key}"))), "10:7", "has this entry already"),
        (full, "17:9", "no room for more than 3 entries"),
        (
            with("fixed", "key = { \"meta.kind\" = 2 }\naction = \"NoAction\""),
            "2:9",
            "the entries of table W.fixed is constant",
        ),
        (
            "[[default]]\ntable = \"fixed\"\naction = \"NoAction\"\n".to_owned(),
            "2:9",
            "default action of table W.fixed is constant",
        ),
        (with("unkeyed", "action = \"NoAction\""), "2:9", "has no keys, and so no entries"),
        ("[[entri]]\ntable = \"fixed\"\n".to_owned(), "1:3", "unknown key `entri`"),
        (entry(format!("{routes}{key}prio = 1\n")), "6:1", "unknown key `prio`"),
    ] {
        let error = Entries::read(&program(), "e.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("e.toml:{place}: ")), "{place}: {error}\n{text}");
        assert!(error.contains(part), "no {part:?} in\n{error}");
    }
}

/// `p4/window.p4` with the window from a table, run with and without entries.
#[test]
fn a_scenario_runs_with_its_entries() {
    let dir = tempfile::tempdir().unwrap();
    let window = std::fs::read_to_string(root("p4/window.p4")).unwrap();
    let table = "
        bit<16> allowed = 0;
        action window(bit<16> packets) { allowed = packets; }
        table windows {
            key = { headers.ipv4.src: ternary; }
            actions = { window; }
            default_action = window(9);
        }
        action acknowledge(in";
    let program = window
        .replacen("    action acknowledge(in", table, 1)
        .replacen("count + nic.rtt_pkts", "count + allowed", 1)
        .replacen("        ingress.drop = 1;", "        windows.apply(); ingress.drop = 1;", 1);
    assert_eq!(program.matches("windows.apply").count(), 1, "window.p4 is not as it was");
    std::fs::write(dir.path().join("window.p4"), program).unwrap();
    std::fs::copy(root("p4/headers.p4"), dir.path().join("headers.p4")).unwrap();
    let entries = "[[entry]]\ntable = \"windows\"\nkey = {}\npriority = 1\naction = \"window\"\narguments = { packets = 3 }\n";
    std::fs::write(dir.path().join("three.toml"), entries).unwrap();
    std::fs::write(dir.path().join("full.toml"), entries.replace("= 3", "= 70_000")).unwrap();
    let own = format!("transport.program={}", dir.path().join("window.p4").display());
    let named = |file: &str| format!("transport.entries={}", dir.path().join(file).display());
    let load = |sets: &[String]| {
        Scenario::load(&root("scenarios/p4/window.toml"), sets).map_err(|e| e.to_string())
    };
    let run = |sets: &[String]| {
        let scenario = load(sets).unwrap_or_else(|e| panic!("{e}"));
        simulate(&scenario, &Options::default(), &mut |_| ()).unwrap().outcome.digest
    };
    let shipped = run(&[]);
    assert_eq!(
        run(std::slice::from_ref(&own)),
        shipped,
        "the default is the window of the scenario"
    );
    assert_ne!(run(&[own.clone(), named("three.toml")]), shipped);
    for (file, part) in [
        ("full.toml", "full.toml:6:25: `packets`: 70000 does not fit 16 bits"),
        ("none.toml", "cannot read"),
    ] {
        let error = load(&[own.clone(), named(file)]).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
}
