//! Runs the transport of `transport.rs` beside NDP, with published distributions of message sizes.
//!
//! `cargo run --release` runs three of them, `cargo run --release -- hadoop homa-w4` these;
//! `trimline list workloads` names more. What both run is in `scenario.toml`.

mod transport;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use trimline_endpoint::Endpoint;
use trimline_scenario::{CustomTransport, Document, Error, Options, Results, Scenario, evaluate};

use transport::{Config, Transport};

const SCENARIO: &str = include_str!("../scenario.toml");

/// The distributions of message sizes that are run without arguments.
const WORKLOADS: [&str; 3] = ["google-rpc", "web-search", "hadoop"];

/// Another transport is another set of edits of the same scenario, which has `transport.rs`.
const NDP: [&str; 3] = [
    r#"transport={kind="ndp",preset="paper",payload="1436B",initial_window=30}"#,
    r#"queue={kind="ndp",capacity="8 packets"}"#,
    r#"routing={mode="permute"}"#,
];

/// What `kind = "custom"` in `[transport]` means.
fn own() -> CustomTransport {
    Arc::new(|host| {
        let endpoint = Transport::new(Config::of(host)?);
        Ok(Box::new(endpoint) as Box<dyn Endpoint>)
    })
}

/// The results of the scenario with `edits`, as `trimline run --set` makes them, with `own` as its
/// transport if there is one.
fn run(edits: &[&str], own: Option<CustomTransport>) -> Result<Results, Error> {
    let mut document = Document::parse("scenario.toml", SCENARIO)?;
    edits.iter().try_for_each(|edit| document.set(edit))?;
    let files = (Path::new("."), &|_: &str, _: f64| ());
    let scenario = Scenario::of_document(&document, (files.0, files.1), own)?;
    evaluate(&scenario, &Options::default(), &mut |_| ())
}

/// A line for each transport.
fn compare(workload: &str) -> Result<(), Error> {
    let sizes = format!("traffic.distribution={workload}");
    for (name, edits, own) in [("NAME", &[][..], Some(own())), ("ndp", &NDP[..], None)] {
        let results = run(&[&[sizes.as_str()], edits].concat(), own)?;
        let flows = &results.summary.flows;
        let text = |n: Option<f64>| n.map_or("-".to_owned(), |n| format!("{n:.2}"));
        println!(
            "{workload:<12} {name:<16} {:>9} {:>10} {:>10} {:>10}",
            flows.messages.completed,
            text(flows.slowdown.p50),
            text(flows.slowdown.p99),
            text(flows.goodput_gbps),
        );
        results.summary.warnings.iter().for_each(|warning| eprintln!("{name}: {warning}"));
    }
    Ok(())
}

fn main() -> ExitCode {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let workloads: Vec<&str> = match named.is_empty() {
        true => WORKLOADS.to_vec(),
        false => named.iter().map(String::as_str).collect(),
    };
    println!(
        "{:<12} {:<16} {:>9} {:>10} {:>10} {:>10}",
        "sizes", "transport", "completed", "p50", "p99", "Gb/s"
    );
    for workload in workloads {
        if let Err(error) = compare(workload) {
            eprint!("{}", error.render(false));
            return ExitCode::from(error.exit_code());
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_an_incast_arrives_though_the_queue_is_short() {
        let incast = r#"traffic={kind="incast",receiver=0,senders=20,size="100KB"}"#;
        let results =
            run(&[incast, "measure={}", "queue.capacity=20 packets"], Some(own())).unwrap();
        assert_eq!(results.summary.flows.messages.completed, 20);
        assert!(results.summary.packets.dropped > 0, "it was short");
    }

    #[test]
    fn the_same_seed_gives_the_same_digest() {
        let digest =
            |seed: &str| run(&[seed, "measure.to=1500us"], Some(own())).unwrap().summary.digest;
        assert_eq!(digest("seed=1"), digest("seed=1"));
        assert_ne!(digest("seed=1"), digest("seed=2"));
    }

    #[test]
    fn ndp_runs_beside_it() {
        let edits = [&["measure.to=1100us"], &NDP[..]].concat();
        assert!(run(&edits, None).unwrap().summary.flows.messages.completed > 0);
    }

    #[test]
    fn a_wrong_key_is_an_error() {
        let why = run(&["transport.initial_window=0"], Some(own())).unwrap_err().to_string();
        assert!(why.contains("`initial_window` is 1 to 10000 packets"), "{why}");
    }
}
