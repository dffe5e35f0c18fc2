//! Traffic from a file of another program.

use std::path::{Path, PathBuf};

use fabric::{Node, Tier};
use units::Time;
use workload::{CmFlow, LinkFailure, Start, StartUnit, SwitchType};

use super::{Context, Part, Written};
use crate::diagnostic::Checked;
use crate::files;
use crate::key::keys;
use crate::value::choices;

keys! { "traffic.file" FILE: Written {
    file: PathBuf, "the ending says what it is".range("`.cm`, `.tm` or `.csv`").written();
    start_unit (start_unit when |w| is_matrix(&w.file)): StartUnit,
        "what the file's starts count in; without the key, starts that are all below 1 us are \
         warned of".default("`ps`").only("a file `.cm` or `.tm`");
}}

choices!(StartUnit, "ps" => StartUnit::Picoseconds, "us" => StartUnit::Microseconds);

/// Some simulators call their matrices `.tm`.
fn is_matrix(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "cm" || end == "tm")
}

/// `kind = "file"`: a connection matrix of htsim (`.cm`) or a list of messages (`.csv`).
pub(super) fn file(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let file = files::read(cx.table, "file", cx.dir)?;
    let source = &file.source;
    let located = |e: workload::TextError| files::located(source, &e);
    let hosts = cx.topology.hosts();
    let plan = match file.path.extension().and_then(|e| e.to_str()) {
        _ if is_matrix(&file.path) => {
            let unit = cx.written.start_unit;
            let matrix = workload::read_cm_in(&source.text, &source.name, unit).map_err(located)?;
            if !cx.table.has("start_unit") {
                tiny_starts(cx, &matrix.flows);
            }
            matrix.check_hosts(hosts).map_err(located)?;
            for failure in &matrix.failures {
                fail(cx, failure)?;
            }
            matrix.plan()
        }
        Some("csv") => {
            let tell = |share| (cx.on_reading)(&source.name, share);
            let messages = workload::read_messages(&source.text, &source.name, &tell);
            let messages = messages.map_err(located)?;
            messages.check_hosts(hosts).map_err(located)?;
            messages.plan()
        }
        _ => {
            let message = format!("`{}` is neither .cm, .tm nor .csv", source.name);
            let error = cx.table.error("file", message, "unknown kind of file");
            return Err(error.hint("a connection matrix of htsim (.cm, .tm) or messages (.csv)"));
        }
    };
    if plan.flows.is_empty() {
        let error = cx.table.error("file", format!("`{}` has no messages", source.name), "empty");
        return Err(error.hint("give a file with at least one message"));
    }
    let count = |n: usize| toml::Value::Integer(n as i64);
    let rows = [("messages", count(plan.flows.len())), ("triggers", count(plan.triggers.len()))];
    cx.table.keep("about", rows.map(|(key, value)| (key.to_owned(), value)).into_iter().collect());
    Ok(Part::of_plan(plan))
}

/// Starts that all lie within this are as good as one, and hardly meant so.
const TINY: Time = Time(1_000_000);

/// Warn where the starts of `flows` look as if they were meant in microseconds.
fn tiny_starts(cx: &Context<'_, '_>, flows: &[CmFlow]) {
    let starts = flows.iter().filter_map(|flow| match flow.start {
        Start::At(at) => Some(at),
        Start::Trigger(_) => None,
    });
    let Some(latest) = starts.max().filter(|&at| at > Time::ZERO && at < TINY) else { return };
    let message = format!("the latest start in this file is at {latest}: all start at once");
    let warning = cx.table.error("file", message, "read as picoseconds").warning();
    cx.table.warn(warning.hint(
        "if its starts are microseconds, set `start_unit = \"us\"`; `start_unit = \"ps\"` says \
         that they are not",
    ));
}

/// A `failure` line: uplink `link` of a switch, both directions.
fn fail(cx: &mut Context<'_, '_>, failure: &LinkFailure) -> Checked<()> {
    let tier = match failure.switch_type {
        SwitchType::Tor => Tier::Tor,
        SwitchType::Agg => Tier::Agg,
        SwitchType::Core => Tier::Core,
    };
    let from = Node::Switch(tier, failure.switch);
    let mut uplinks = cx.topology.links().iter().filter(|l| l.from == from && l.to > from);
    let Some(up) = uplinks.nth(failure.link as usize).copied() else {
        let message = format!("a failure names uplink {} of {from}", failure.link);
        let error = cx.table.error("file", message, "the topology has no such link");
        return Err(error.hint("use the topology that the file was made for"));
    };
    for (from, to) in [(up.from, up.to), (up.to, up.from)] {
        if let Some(link) = cx.topology.find_link(from, to) {
            cx.topology.fail_link(link);
        }
    }
    Ok(())
}
