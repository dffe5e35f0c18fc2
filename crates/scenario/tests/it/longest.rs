//! Messages that no buffer of a NIC can hold are an error of the scenario, with its place, not of
//! the run.

use std::path::Path;

use trimline_scenario::Scenario;

const TRANSPORTS: [&str; 4] = [
    "kind = \"nic\"\nprogram = \"ndp\"",
    "kind = \"nic\"\nprogram = \"homa\"",
    "kind = \"nic\"\nprogram = \"homa-tr\"",
    "kind = \"nic\"\nprogram = \"../../p4/homa.p4\"\nbackend = \"rust\"\nprotocol = 154\npriorities = 4",
];

fn scenario(transport: &str, traffic: &str) -> String {
    let mut text =
        "name = \"longest\"\nseed = 1\n[topology]\nkind = \"star\"\nhosts = 8\nlink_rate = \
                    \"200Gbps\"\nlink_delay = \"1us\"\n[queue]\nkind = \"priority\"\n"
            .to_owned();
    let lowest = if transport.contains("ndp") { 7 } else { 4 };
    for class in lowest..8 {
        text += &format!(
            "[[queue.class]]\nclass = {class}\nkind = \"drop-tail\"\ncapacity = \"1MB\"\n"
        );
    }
    text += &format!("[transport]\npreset = \"firesim\"\n{transport}\n");
    text + &format!("[routing]\nmode = \"ecmp\"\n[traffic]\n{traffic}\n[measure]\nto = \"1ms\"\n")
}

/// What the scenario is refused for, if it is.
fn refusal(transport: &str, traffic: &str) -> Option<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4");
    Some(Scenario::parse("x.toml", &scenario(transport, traffic), &here, &[]).err()?.render(false))
}

/// Kinds of traffic with one size left out, and what says it.
const TRAFFIC: [(&str, &str); 8] = [
    ("kind = \"incast\"\nsenders = 3\nreceiver = 0\nsize = SIZE", "size"),
    ("kind = \"poisson\"\nload = 0.1\nsize = SIZE", "size"),
    (
        "kind = \"closed-loop\"\nconnections = 1\ngap = \"10us\"\ngap_kind = \"exponential\"\n\
         keep_destination = true\nsize = SIZE",
        "size",
    ),
    (
        "kind = \"barrier\"\nreceiver = 0\nsenders = 1\nblock = SIZE\nrequest_latency = \"4us\"\n\
         request_gap = \"1us\"\ncap = \"none\"\nconnections = \"fresh\"\nblocks = 5",
        "block",
    ),
    (
        "kind = \"rpc\"\nrequest = SIZE\nresponse = \"1KB\"\ncompute = \"20us\"\n\
         compute_kind = \"exponential\"\nload = 0.4\ndraw_server = \"every-call\"\n\
         connections = \"fresh\"\nuntil = \"1ms\"",
        "request",
    ),
    (
        "kind = \"rpc\"\nrequest = \"1KB\"\nresponse = SIZE\ncompute = \"20us\"\n\
         compute_kind = \"exponential\"\nload = 0.4\ndraw_server = \"every-call\"\n\
         connections = \"fresh\"\nuntil = \"1ms\"",
        "response",
    ),
    (
        "kind = \"partition-aggregate\"\nroots = 0\nworkers = \"1-7\"\nfanout = [3]\n\
         deadlines = [\"1ms\"]\nplacement = \"in-order\"\nrequest = \"1KB\"\nsize = SIZE\n\
         connections = \"persistent\"\ngap = \"10us\"\ngap_kind = \"exponential\"\nuntil = \"1ms\"",
        "size",
    ),
    (
        "kind = \"partition-aggregate\"\nroots = 0\nworkers = \"1-7\"\nfanout = [3]\n\
         deadlines = [\"1ms\"]\nplacement = \"in-order\"\nrequest = SIZE\nsize = \"1KB\"\n\
         connections = \"persistent\"\ngap = \"10us\"\ngap_kind = \"exponential\"\nuntil = \"1ms\"",
        "request",
    ),
];

/// An aggregator passes on all that it has heard: two answers of 20 kB are too much, two of 19 are
/// not.
#[test]
fn what_aggregators_pass_on_counts() {
    let queries = "kind = \"partition-aggregate\"\nroots = 0\naggregators = \"1-2\"\nworkers = \"3-7\"\n\
                   fanout = [2, 2]\ndeadlines = [\"2ms\", \"1ms\"]\nplacement = \"in-order\"\n\
                   request = \"1KB\"\naggregate = \"proportional\"\nconnections = \"persistent\"\n\
                   gap = \"10us\"\ngap_kind = \"exponential\"\nuntil = \"1ms\"\nsize = ";
    assert_eq!(refusal(TRANSPORTS[1], &format!("{queries}\"19KB\"")), None);
    let refused = refusal(TRANSPORTS[1], &format!("{queries}\"20KB\"")).unwrap();
    assert!(refused.contains("no message of 40"), "{refused}");
}

#[test]
fn what_no_buffer_holds_is_refused_where_it_is_written() {
    for transport in TRANSPORTS {
        for (traffic, key) in TRAFFIC {
            let fits = refusal(transport, &traffic.replace("SIZE", "\"38912B\""));
            assert_eq!(fits, None, "{traffic}");
            let refused = refusal(transport, &traffic.replace("SIZE", "\"38913B\""));
            let refused = refused.unwrap_or_else(|| panic!("taken: {traffic}"));
            assert!(refused.contains("the NIC has no buffer for it"), "{refused}");
            assert!(refused.contains(&format!("{key} = \"38913B\"")), "{refused}");
            assert!(refused.contains("x.toml:") && refused.contains("too long"), "{refused}");
        }
    }
}

/// None of the published distributions fits: the line that names it is shown, with its largest
/// message, and no advice that would not help.
#[test]
fn published_distributions_are_refused_by_name() {
    for name in workload::SizeDist::names() {
        let largest = workload::SizeDist::shipped(name).unwrap().largest();
        let traffic = format!("kind = \"poisson\"\nload = 0.1\ndistribution = \"{name}\"");
        let refused = refusal(TRANSPORTS[0], &traffic).unwrap_or_else(|| panic!("taken: {name}"));
        assert!(refused.contains(&format!("distribution = \"{name}\"")), "{refused}");
        assert!(refused.contains(&format!("no message of {}", units::Bytes(largest))), "{refused}");
        assert!(refused.contains("38912B at most, 65472B with larger"), "{refused}");
        assert!(refused.contains("`ndp` or `homa` carry more"), "{refused}");
    }
}
