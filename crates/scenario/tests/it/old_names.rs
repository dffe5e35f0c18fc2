//! What scenarios were called before, what is missing and what has no effect: errors that say how
//! to write it.

use std::path::Path;

use trimline_scenario::Scenario;

fn refused(transport: &str) -> String {
    let text = format!(
        "name = \"x\"\nseed = 1\nrouting.mode = \"ecmp\"\n[topology]\nkind = \"star\"\nhosts = 4\n\
         link_rate = \"10Gbps\"\nlink_delay = \"1us\"\n[queue]\nkind = \"drop-tail\"\n\
         capacity = \"100KB\"\n[traffic]\nkind = \"permutation\"\nsize = \"9KB\"\n\
         [transport]\n{transport}\n"
    );
    let read = Scenario::parse("x.toml", &text, Path::new("."), &[]);
    let why = read.err().map(|why| why.render(false)).unwrap_or_default();
    // As one line: messages are broken where they get too long.
    why.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn old_kinds_and_rules_lead_to_the_kind_that_has_them() {
    for (kind, written) in [
        ("newreno", "`kind = \"tcp\"`, `rule = \"newreno\"`"),
        ("dctcp", "`kind = \"tcp\"`, `rule = \"dctcp\"`"),
        ("cubic", "`kind = \"tcp\"`, `rule = \"cubic\"`"),
        ("bbr", "`kind = \"tcp\"` has a `rule`"),
        ("mmptcp", "`phases = \"scatter-then-multipath\"`"),
        ("packet-scatter", "`phases = \"scatter\"`"),
        ("homa-tr", "`trimmed = \"refused\"`"),
        ("timely", "`kind = \"rdma\"`, `rule = \"timely\"`"),
        ("dcqcn", "`kind = \"rdma\"`, `rule = \"dcqcn\"`"),
        ("ndp-nano", "`kind = \"nic\"`, `program = \"ndp\"`"),
        ("p4", "`kind = \"nic\"`, `program`"),
    ] {
        let why = refused(&format!("kind = \"{kind}\""));
        assert!(why.contains(written) && why.contains("x.toml:16"), "{kind}: {why}");
    }
}

#[test]
fn old_keys_lead_to_the_new_ones() {
    let ndp = "kind = \"ndp\"\npreset = \"paper\"\npayload = \"9KB\"\ninitial_window = 30";
    let rdma = |rule| {
        let kind = "kind = \"rdma\"\npreset = \"paper\"\npayload = \"1KB\"";
        format!("{kind}\nrule = \"{rule}\"")
    };
    for (transport, old, new) in [
        (ndp.to_owned(), "give_up = \"1s\"", "`abort_after`"),
        (ndp.to_owned(), "preferred_host = 1", "`priority_message`"),
        (rdma("dcqcn"), "increase = \"40Mbps\"", "`r_ai`"),
        (rdma("swift"), "increase = 1.0", "`ai`"),
        (rdma("hpcc"), "utilization = 0.9", "`eta`"),
        (
            "kind = \"homa\"\npreset = \"paper\"\ncutoffs = []".to_owned(),
            "levels = 4",
            "`priorities`",
        ),
    ] {
        let why = refused(&format!("{transport}\n{old}"));
        assert!(why.contains("an old name") && why.contains(new), "{old}: {why}");
    }
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    let why = refused("kind = \"tcp\"\nmss = \"1KB\"");
    for key in ["rule", "recovery", "ecn", "overhead", "initial_window", "rto_min", "quick_acks"] {
        assert!(why.contains(&format!("`{key} = ...`")), "{key}: {why}");
    }
    assert!(why.contains("`preset` names linux-datacenter, ns2"), "{why}");
    let rtt = "kind = \"rdma\"\nrule = \"hpcc\"\npreset = \"paper\"\npayload = \"1KB\"";
    let why = refused(rtt);
    assert!(why.contains("`rtt = ...` (time") && why.contains("`flows = ...` (integer"), "{why}");
    assert!(!why.contains("flows = 1"), "a hint must not choose a value: {why}");
}

#[test]
fn keys_without_effect_say_what_they_are_for() {
    let tcp = "kind = \"tcp\"\npreset = \"ns2\"\nmss = \"1KB\"\nrecovery = \"sack\"\necn = true";
    let why = refused(&format!("{tcp}\nrule = \"dctcp\"\ncubic_c = 0.4"));
    assert!(why.contains("has no effect here") && why.contains("`rule = \"cubic\"`"), "{why}");
    let rdma = "kind = \"rdma\"\npreset = \"roce\"\nrule = \"none\"\npayload = \"1KB\"";
    let why = refused(&format!("{rdma}\nt_low = \"50us\""));
    assert!(why.contains("has no effect here") && why.contains("`rule = \"timely\"`"), "{why}");
}
