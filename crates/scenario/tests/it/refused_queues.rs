//! Queues and links that a transport cannot work with: an error or a warning with its place.

use std::path::Path;

use trimline_scenario::{Options, Scenario, evaluate};

/// Three hosts at 10 Gb/s with this queue and transport.
fn text(queue: &str, transport: &str, rate: &str) -> String {
    format!(
        "name = \"refused\"\nseed = 1\n[topology]\nkind = \"star\"\nhosts = 3\nlink_rate = \"{rate}\"\n\
         link_delay = \"1us\"\n[queue]\nkind = \"ndp\"\n{queue}\n[routing]\nmode = \"ecmp\"\n\
         [transport]\n{transport}\n[traffic]\nkind = \"incast\"\nreceiver = 0\nsenders = 2\n\
         size = \"10KB\"\n"
    )
}

const NDP: &str = "kind = \"ndp\"\npreset = \"paper\"\npayload = \"9000B\"\ninitial_window = 12";
const NANO: &str = "kind = \"nic\"\nprogram = \"ndp\"\npreset = \"firesim\"";
const HOMA: &str = "kind = \"nic\"\nprogram = \"homa\"\npreset = \"firesim\"";

fn read(text: &str) -> Result<Scenario, String> {
    let read = Scenario::parse("refused.toml", text, Path::new("."), &[]);
    read.map_err(|why| why.render(false))
}

/// What is wrong with this header queue, if anything is.
fn refusal(header_capacity: &str) -> Option<String> {
    let queue = format!("capacity = \"8 packets\"\n{header_capacity}");
    read(&text(&queue, NDP, "10Gbps")).err()
}

#[test]
fn a_header_queue_holds_one_header_at_least() {
    let one_byte = refusal("header_capacity = \"1B\"").unwrap();
    for part in ["of 1B holds no header of 64B", "refused.toml:11:", "header_capacity = \"64B\""] {
        assert!(one_byte.contains(part), "{part:?} is not in\n{one_byte}");
    }
    let less_than_trimmed = refusal("header_capacity = \"99B\"\ntrim_to = \"100B\"").unwrap();
    assert!(less_than_trimmed.contains("no header of 100B"), "{less_than_trimmed}");
    for enough in ["header_capacity = \"64B\"", "header_capacity = \"1 packet\"", ""] {
        assert_eq!(refusal(enough), None);
    }
}

#[test]
fn batches_take_slots() {
    let plain = text("capacity = \"8 packets\"", NDP, "10Gbps");
    let with = |keys: &str| read(&plain.replace("link_delay", &format!("{keys}\nlink_delay")));
    let why = with("slot_heap = true").err().unwrap();
    for part in ["`slot_heap` has no effect here", "refused.toml:7:", "only with `switch_slot`"] {
        assert!(why.contains(part), "{part:?} is not in\n{why}");
    }
    assert!(with("slot_heap = false").is_ok());
    let short = plain.replace("kind = \"ndp\"\ncapacity", "kind = \"drop-tail\"\ncapacity");
    let short = short.replace("link_delay", "switch_slot = \"7us\"\nslot_heap = true\nlink_delay");
    let why = read(&short).err().unwrap();
    for part in ["a packet of 9064 B takes 7251200ps", "more than a slot", "refused.toml:8:"] {
        assert!(why.contains(part), "{part:?} is not in\n{why}");
    }
    assert!(read(&short.replace("7us", "8us")).is_ok());
}

/// The one warning of a NIC with these keys at this rate, if there is one.
fn warning(transport: &str, rate: &str) -> Option<String> {
    let scenario = read(&text("capacity = \"72000B\"", transport, rate));
    let scenario = scenario.unwrap_or_else(|why| panic!("{why}"));
    let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let mut about = results.summary.warnings.into_iter().filter(|w| w.contains("this preset"));
    let first = about.next();
    assert_eq!(about.next(), None);
    first
}

#[test]
fn a_nic_with_published_times_on_other_links_is_warned_of() {
    let slow = warning(NANO, "40Gbps").unwrap();
    let (key, at) = ("`pull_cycles = 700`", "refused.toml:16:");
    for part in ["links of 200Gbps", "links of 40Gbps", "5.000 times", key, "`timeout`", at] {
        assert!(slow.contains(part), "{part:?} is not in\n{slow}");
    }
    assert_eq!(warning(NANO, "200Gbps"), None, "what they are published for");
    assert!(warning(HOMA, "40Gbps").is_some(), "no PULLs, but a timeout");
    let set = |keys: &str| warning(&format!("{NANO}\n{keys}"), "40Gbps");
    assert!(set("pull_cycles = 700").is_some(), "the timeout is still the published one");
    assert_eq!(set("pull_cycles = 700\ntimeout = \"50us\""), None);
}
