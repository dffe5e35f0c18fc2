//! `clocked = true` as a key: what is refused with it, and what it is where nothing is said.

use std::path::Path;

use trimline_scenario::Scenario;

const PROGRAMS: [&str; 2] = ["program = \"homa\"", HOMA_P4];
const HOMA_P4: &str =
    "program = \"../../p4/homa.p4\"\nbackend = \"interpreter\"\nprotocol = 154\npriorities = 4";
const HPCC: &str = "program = \"../../p4/hpcc.p4\"\nprotocol = 197\npriorities = 2";

/// Two hosts with clocked NICs, or what is wrong with them.
fn read(transport: &str, rate: &str) -> Result<Scenario, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4");
    let text = format!(
        "name = \"clocked\"\nseed = 1\n[topology]\nkind = \"star\"\nhosts = 2\n\
         link_rate = \"{rate}\"\nlink_delay = \"131ns\"\n[queue]\nkind = \"drop-tail\"\n\
         capacity = \"100 packets\"\n[routing]\nmode = \"single\"\n[traffic]\nkind = \"incast\"\n\
         receiver = 0\nsenders = 1\nsize = \"3KB\"\n[transport]\nkind = \"nic\"\n\
         preset = \"firesim\"\nclocked = true\n{transport}\n"
    );
    // News of faults takes a while, where there are faults.
    let news = "routing.reroute_after=1us".to_owned();
    let edits = if transport.contains("[[fault]]") { vec![news] } else { Vec::new() };
    Scenario::parse("x.toml", &text, &here, &edits).map_err(|error| error.render(false))
}

/// Each refusal names the key, and says what would do.
#[test]
fn what_a_circuit_cannot_have_is_refused() {
    let cases = [
        ("remember = \"lifetime\"", "200Gbps", ["`remember` is \"lifetime\"", "write 1024"]),
        ("remember = 1000", "200Gbps", ["`remember` is 1000", "a power of two"]),
        ("remember = 0", "200Gbps", ["`remember` is 0", "write 1024"]),
        ("remember = 524288", "200Gbps", ["`remember` is 524288", "at most 262144"]),
        ("tx_messages = 256", "200Gbps", ["`tx_messages` is 256", "128 at most"]),
        ("rx_messages = 256", "200Gbps", ["`rx_messages` is 256", "128 at most"]),
        ("ingress_cycles = 4", "200Gbps", ["`ingress_cycles` is 4", "5 at least"]),
        ("", "500Gbps", ["every 3 cycles from a link of 500Gbps", "one every 4"]),
    ];
    for program in PROGRAMS {
        for (key, rate, wanted) in cases {
            let said = read(&format!("{program}\n{key}"), rate).err().unwrap_or_default();
            // Lines are broken where they are long.
            let said = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>();
            let said = said.join(" ");
            assert!(wanted.iter().all(|part| said.contains(part)), "{program}: {key}: {said}");
        }
    }
    let fault = |rate: &str| {
        let fault = "[[fault]]\nat = \"1us\"\nlink = \"tor 0 -> host 1\"\naction = \"rate\"";
        read(&format!("program = \"homa\"\n{fault}\nrate = \"{rate}\""), "200Gbps")
    };
    let said = fault("500Gbps").err().unwrap_or_default();
    assert!(said.contains("every 3 cycles") && said.contains("rate = \"500Gbps\""), "{said}");
    assert!(fault("100Gbps").is_ok());
    let circuit = "program = \"ndp\"\nbackend = \"rtl\"\nrtl_hosts = [0, 2]";
    let said = read(circuit, "200Gbps").err().unwrap_or_default();
    assert!(said.contains("no host 2") && said.contains("from 0 to 1"), "{said}");
    let said = read(HPCC, "200Gbps").err().unwrap_or_default();
    assert!(said.contains("`set_flow`") && said.contains("`clocked`"), "{said}");
}

/// 1024 messages are remembered where nothing is said; the scenario with all defaults spelled out
/// says so, and is one that can be read.
#[test]
fn a_clocked_nic_has_a_table() {
    for program in PROGRAMS {
        let scenario = read(program, "200Gbps").unwrap();
        let transport = &scenario.resolved()["transport"];
        assert_eq!(transport["remember"].as_integer(), Some(1024));
        let text = toml::to_string(scenario.resolved()).unwrap();
        let again = Scenario::parse("x.toml", &text, Path::new("."), &[]);
        assert!(again.is_ok_and(|again| again.resolved() == scenario.resolved()), "{program}");
    }
    let largest = format!("{HOMA_P4}\nremember = 262144\ntx_messages = 128\nrx_messages = 128");
    assert!(read(&largest, "200Gbps").is_ok());
}
