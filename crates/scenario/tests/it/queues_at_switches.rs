//! `[[queue.switch]]`: ports of some switches hold more or less than those of the others.

use std::path::Path;

use fabric::{Node, Tier};
use trimline_scenario::{Options, Scenario, simulate};

/// Bytes of a packet.
const PACKET: u32 = 1000;

/// Two racks of unresponsive sources send to a third over two spines, each of whose ports to that
/// rack gets twice what it can send.
fn text(queue: &str) -> String {
    format!(
        "name = \"two spines\"\nseed = 3\nrouting.mode = \"random\"\n\
         topology = {{ kind = \"leaf-spine\", leaves = 3, spines = 2, hosts_per_leaf = 2, \
         link_rate = \"10Gbps\", link_delay = \"1us\", uplink_rate = \"10Gbps\" }}\n\
         transport = {{ kind = \"cbr\", payload = \"950B\", header = \"50B\", rate = \"10Gbps\" }}\n\
         traffic = {{ kind = \"random\", sources = \"0-3\", destinations = \"4-5\", flows = 16, size = \"unbounded\" }}\n\
         measure = {{ to = \"1ms\" }}\n\
         [queue]\n{queue}"
    )
}

fn read(queue: &str) -> Result<Scenario, String> {
    Scenario::parse("spines.toml", &text(queue), Path::new("."), &[]).map_err(|e| e.render(false))
}

/// The most packets that any port of each spine has held.
fn held(queue: &str) -> [u32; 2] {
    let scenario = read(queue).unwrap();
    let outcome = simulate(&scenario, &Options::default(), &mut |_| {}).unwrap().outcome;
    let links = scenario.topology().links();
    [0, 1].map(|spine| {
        let mine = links.iter().zip(&outcome.links);
        let mine = mine.filter(|(link, _)| link.from == Node::Switch(Tier::Agg, spine));
        mine.map(|(_, stats)| stats.max_queue_bytes / PACKET).max().unwrap()
    })
}

#[test]
fn the_ports_of_a_switch_hold_what_its_table_says() {
    let all = "kind = \"drop-tail\"\ncapacity = \"20 packets\"\n";
    let of = |spine: u32, n: u32| {
        format!("[[queue.switch]]\nswitch = \"agg {spine}\"\ncapacity = \"{n} packets\"\n")
    };
    assert_eq!(held(all), [20, 20]);
    assert_eq!(held(&format!("{all}{}", of(1, 5))), [20, 5]);
    assert_eq!(held(&format!("{all}{}{}", of(1, 5), of(0, 30))), [30, 5]);
    let marked = all.replace("20 packets\"", "20 packets\"\necn_threshold = \"3 packets\"");
    assert_eq!(held(&format!("{marked}{}", of(0, 7))), [7, 20], "the rest of [queue] holds");
}

#[test]
fn bad_switches_are_named_with_their_place() {
    let drop_tail = "kind = \"drop-tail\"\ncapacity = \"20 packets\"\n[[queue.switch]]\n";
    let agg = "switch = \"agg 0\"\ncapacity = \"5 packets\"\n";
    for (queue, why) in [
        (format!("{drop_tail}switch = \"agg 2\"\ncapacity = \"5 packets\""), "there is no agg 2"),
        (
            format!("{drop_tail}switch = \"host 0\"\ncapacity = \"5 packets\""),
            "host 0 is no switch",
        ),
        (format!("{drop_tail}switch = \"agg 0\"\ncapacity = \"999B\""), "holds no packet"),
        (format!("{drop_tail}switch = \"agg 0\""), "capacity"),
        (format!("{drop_tail}{agg}[[queue.switch]]\n{agg}"), "agg 0 has two tables"),
        (
            format!("kind = \"ndp\"\ncapacity = \"8 packets\"\n[[queue.switch]]\n{agg}"),
            "not with this",
        ),
    ] {
        let error = read(&queue).err().unwrap();
        assert!(error.contains(why) && error.contains("spines.toml:"), "{error}");
    }
}
