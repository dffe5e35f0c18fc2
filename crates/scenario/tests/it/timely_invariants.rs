//! Invariants of specs/timely.md#7, that need a fabric; the others are tested beside the transport.

use std::path::Path;

use trimline_scenario::{Options, Results, Scenario, evaluate};

/// Lossless switches with so much memory, and TIMELY that begins with this share of the line. New
/// rates count at once: what was cut in the beginning is back within the first 10 ms, which are not
/// measured.
fn scenario(hosts: u32, buffer: &str, initial_rate: f64, traffic: &str) -> String {
    format!(
        r#"
        name = "timely"
        seed = 1
        topology = {{ kind = "star", hosts = {hosts}, link_rate = "10Gbps", link_delay = "1us" }}
        routing = {{ mode = "ecmp" }}
        host = {{ clock_ppm = 0, send_jitter = "0" }}
        measure = {{ from = "10ms", to = "40ms", rtt = true }}
        [queue]
        kind = "lossless"
        buffer = "{buffer}"
        reserve = "0B"
        headroom = "auto"
        headroom_beside = true
        alpha = 1.0
        resume_offset = "3KB"
        lossless = [0]
        control_class = 7
        schedule = "strict"
        [transport]
        kind = "rdma"
        rule = "timely"
        preset = "paper"
        payload = "1024B"
        recompute_gap = true
        initial_rate = {initial_rate}
        {traffic}
        "#
    )
}

fn run(text: &str, sets: &[&str]) -> Results {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("timely.toml", text, Path::new(""), &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// From each of these hosts one flow without end to `receiver`.
fn incast(name: &str, sources: &str, senders: u32, receiver: u32) -> String {
    format!(
        r#"
        [[traffic]]
        name = "{name}"
        kind = "incast"
        sources = "{sources}"
        senders = {senders}
        receiver = {receiver}
        size = "unbounded"
        "#
    )
}

/// Acknowledgements of a flow from host 1 to host 0 share a port with an incast to host 1. With
/// priority their round-trip times are as without the incast, but for a packet in service and host
/// 1's own acknowledgements before its data; without, they are longer by the queue.
#[test]
fn i8_acknowledgements_with_priority_do_not_see_reverse_congestion() {
    let forward = incast("forward", "1", 1, 0);
    let alone = scenario(10, "4MB", 0.25, &forward);
    let both = scenario(10, "4MB", 0.25, &(forward + &incast("reverse", "5-8", 4, 1)));
    let rtt = |results: &Results| results.summary.traffic["forward"].rtt_us;
    let (idle, with) = (rtt(&run(&alone, &[])), run(&both, &[]));
    let without = rtt(&run(&both, &["transport.ack_class=0"]));
    let (idle, packet) = (idle.p50.unwrap(), 1086.0 * 0.0008);
    assert!(rtt(&with).max.unwrap() < idle + packet + 4.0 * 66.0 * 0.0008, "{:?}", rtt(&with));
    let queue = with.summary.traffic["reverse"].rtt_us.p50.unwrap() - idle;
    let shift = without.p50.unwrap() - idle;
    assert!(
        queue > 10.0 && (shift / queue - 1.0).abs() < 0.3,
        "{shift} us for a queue of {queue} us"
    );
}

/// 40 connections from 10 hosts, each at C/40 at first: a buffer of N segments and what T_high
/// holds, 1.28 MB, is never so full that a link is paused. A tenth of it is.
#[test]
fn i13_enough_memory_pauses_nobody() {
    let traffic: String = (0..4).map(|n| incast(&format!("{n}"), "1-10", 10, 0)).collect();
    let text = scenario(11, "1300KB", 0.025, &traffic);
    let enough = run(&text, &[]).summary;
    assert_eq!((enough.packets.pfc_pauses, enough.packets.dropped), (0, 0));
    assert!(enough.flows.goodput_gbps.unwrap() > 8.0, "{}", enough.flows.goodput_gbps.unwrap());
    let little = run(&text, &["queue.buffer=128KB"]).summary;
    assert!(little.packets.pfc_pauses > 100 && little.packets.dropped == 0);
}

/// The READ of what a WRITE would bring: the same bytes, and the same round trips within a percent.
#[test]
fn reading_and_writing_share_a_link_alike() {
    let text = scenario(5, "4MB", 0.25, &incast("all", "1-4", 4, 0));
    let goodput = |sets: &[&str]| run(&text, sets).summary.flows.goodput_gbps.unwrap();
    let (write, read) = (goodput(&[]), goodput(&["transport.operation=read"]));
    assert!(write > 9.0 && (read / write - 1.0).abs() < 0.05, "{write} and {read} Gb/s");
}
