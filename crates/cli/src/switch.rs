//! `trimline switch`: one switch of a scenario, for real frames.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use fabric::{Node, Topology};
use metrics::{Interface, PcapngWriter};
use scenario::{Diagnostic, Error, Scenario};
use serde_json::{Value, json};
use switch::{Backend, Counters, Harm, Options, Seen, SmallPages, Switch, Totals, Watch, record};

use crate::table::right;
use crate::{ENDS_ITSELF, Ended, INTERRUPT, args, say, say_json, tell, warn};

/// How often the table is shown on a terminal, and how often else.
const LIVE: Duration = Duration::from_secs(1);
const LINES: Duration = Duration::from_secs(10);

impl args::Harm {
    pub(crate) const fn harm(&self) -> Harm {
        Harm { duplicate: self.duplicate, reorder: self.reorder, corrupt: self.corrupt }
    }
}

/// `trimline switch`.
pub(crate) fn switch(args: &args::Switch, progress: args::Progress) -> Ended {
    let scenario = Scenario::load(&args.file, &args.edits.all())?;
    if let Some(file) = &args.replay {
        return replay(&scenario, file, args.json);
    }
    let node = named(&args.switch, scenario.topology())?;
    let mut switch = scenario.switch(node)?;
    let _pages = SmallPages::new();
    let backend = if args.xdp { Backend::Xdp } else { Backend::Packet };
    let mut interfaces = open(&switch, &args.ports, scenario.topology(), backend)?;
    if let Some(file) = &args.record {
        let to = BufWriter::new(create("--record", file)?);
        switch.record(Box::new(to)).map_err(|e| unwritable("--record", file, &e))?;
    }
    let start = SystemTime::now();
    let capture = args.capture.as_deref().map(|file| Capture::new(file, &switch, &scenario, start));
    let mut capture = capture.transpose()?;
    let _ = ENDS_ITSELF.set("");
    let ends = args.time.map(|time| Instant::now() + Duration::from_nanos(time.0 / 1_000));
    let mut live = Live::new(progress);
    let options = Options { harm: args.harm.harm(), seed: scenario.seed(), start, busy: args.busy };
    let go_on = |switch: &Switch, totals: &Totals| {
        live.show(switch, totals);
        let over = ends.is_some_and(|ends| Instant::now() >= ends);
        !over && !INTERRUPT.load(Ordering::Relaxed)
    };
    let mut see = capture.as_mut().map(|capture| |seen: Seen<'_>| capture.see(seen));
    let watch = see.as_mut().map(|see| see as &mut Watch<'_>);
    let totals = switch::run(&mut switch, &mut interfaces, options, watch, go_on);
    let totals = totals.map_err(|e| Error::Run {
        what: format!("{node}: {e}"),
        hint: "what was recorded until then is in its file".to_owned(),
    })?;
    capture.map_or(Ok(()), Capture::finish)?;
    if args.json {
        return say_json(&counted(&switch, &totals));
    }
    say(table(&switch))?;
    summary(&totals).map_or(Ok(()), say)
}

fn create(option: &str, file: &Path) -> Result<File, Diagnostic> {
    File::create(file).map_err(|e| unwritable(option, file, &e))
}

fn unwritable(option: &str, file: &Path, error: &io::Error) -> Diagnostic {
    let error = Diagnostic::new(format!("cannot write {}: {error}", file.display()));
    error.hint(format!("{option} FILE in a directory that is there and is yours"))
}

/// The file of `--capture`, with two interfaces for each port: the links in and out.
struct Capture {
    writer: PcapngWriter<BufWriter<File>>,
    path: PathBuf,
    /// When the switch's time is zero, in nanoseconds since 1970.
    start_ns: u64,
}

impl Capture {
    fn new(
        path: &Path,
        switch: &Switch,
        scenario: &Scenario,
        start: SystemTime,
    ) -> Result<Self, Diagnostic> {
        let of = |link: u32| {
            let link = &scenario.topology().links()[link as usize];
            Interface { name: link.to_string(), rate: link.rate }
        };
        let interfaces = switch.links().flat_map(|(back, out)| [of(back), of(out)]);
        let to = BufWriter::new(create("--capture", path)?);
        let writer = PcapngWriter::new(to, interfaces);
        let writer = writer.map_err(|e| unwritable("--capture", path, &e))?;
        let since = start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Ok(Self { writer, path: path.to_owned(), start_ns })
    }

    fn see(&mut self, seen: Seen<'_>) -> io::Result<()> {
        let interface = 2 * seen.port as u32 + u32::from(!seen.came);
        let ns = self.start_ns.saturating_add(seen.at.0 / 1_000);
        self.writer.packet(ns, interface, seen.frame, seen.frame.len() as u32)
    }

    fn finish(self) -> Result<(), Diagnostic> {
        let mut to = self.writer.into_inner();
        to.flush().map_err(|e| unwritable("--capture", &self.path, &e))
    }
}

/// Play a record to the simulator.
fn replay(scenario: &Scenario, file: &Path, json: bool) -> Ended {
    let unreadable = |why: String| {
        let error = Diagnostic::new(format!("cannot read {}: {why}", file.display()));
        error.hint("the file of `trimline switch --record FILE`")
    };
    let text = std::fs::read_to_string(file).map_err(|e| unreadable(e.to_string()))?;
    let record = record::read(&text).map_err(|e| unreadable(e.to_string()))?;
    let (packets, events) = scenario.replay(&record)?;
    if json {
        return say_json(&json!({ "packets": packets, "events": events }));
    }
    say(format_args!("the simulator does the same to {packets} packets: {events} events"))
}

/// The switch or host called `name`: `tor 0`, `host 3`.
fn named(name: &str, topology: &Topology) -> Result<Node, Diagnostic> {
    let nodes = topology.links().iter().map(|link| link.from);
    let found = nodes.clone().find(|node| node.to_string() == name);
    found.ok_or_else(|| {
        let error = Diagnostic::new(format!("there is no {name} in this {}", topology.kind()));
        let switches = nodes.filter(|node| node.is_switch());
        let mut names: Vec<String> = switches.map(|node| node.to_string()).collect();
        names.dedup();
        names.truncate(8);
        error.hint(format!("its switches: {}", names.join(", ")))
    })
}

/// The interfaces of the switch's ports, as `ports` or by their numbers.
fn open(
    switch: &Switch,
    ports: &[String],
    topology: &Topology,
    backend: Backend,
) -> Result<Vec<switch::Interface>, Diagnostic> {
    let mut by_node: BTreeMap<Node, String> =
        switch.ports().enumerate().map(|(n, node)| (node, format!("p{n}"))).collect();
    for port in ports {
        let wrong = |what: &str| {
            let error = Diagnostic::new(format!("--port {port}: {what}"));
            error.hint("NODE=INTERFACE, such as \"host 3=eth2\"")
        };
        let (node, interface) = port.split_once('=').ok_or_else(|| wrong("no `=`"))?;
        let node = named(node.trim(), topology)?;
        match by_node.get_mut(&node) {
            Some(name) => interface.trim().clone_into(name),
            None => return Err(wrong("this switch has no port there")),
        }
    }
    let names: Vec<&String> = switch.ports().filter_map(|node| by_node.get(&node)).collect();
    if let Some((n, twice)) = names.iter().enumerate().find(|(n, name)| names[..*n].contains(name))
    {
        let error = Diagnostic::new(format!("interface {twice} is named twice (port {n})"));
        return Err(error.hint("each port has an interface of its own: --port NODE=INTERFACE"));
    }
    let open = |name: &&String| {
        switch::Interface::open(name, backend).map_err(|e| {
            let hint = "--port NODE=INTERFACE names them; in a namespace: `ip netns exec NAME`";
            Diagnostic::new(e.to_string()).hint(hint)
        })
    };
    names.iter().map(open).collect()
}

/// What each port has done.
fn table(switch: &Switch) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header([
        "port to",
        "received",
        "lost",
        "unknown",
        "sent",
        "sent bytes",
        "trimmed",
        "ECN-marked",
        "bounced",
        "dropped",
        "queue B",
        "max queue B",
    ]);
    for (node, c) in switch.ports().zip(switch.counters()) {
        let counts = [c.received, c.lost, c.unknown, c.sent, c.sent_bytes, c.trimmed, c.marked];
        let rest = [c.bounced, c.dropped, c.queue_bytes.into(), c.max_queue_bytes.into()];
        let cells = counts.iter().chain(&rest).map(u64::to_string);
        table.add_row(std::iter::once(node.to_string()).chain(cells));
    }
    right(table)
}

/// The same and what the wires did, for `--json`.
fn counted(switch: &Switch, totals: &Totals) -> Value {
    let port = |(node, c): (Node, Counters)| {
        json!({
            "to": node.to_string(), "received": c.received, "lost": c.lost, "unknown": c.unknown,
            "sent": c.sent, "sent_bytes": c.sent_bytes, "trimmed": c.trimmed, "ecn_marked": c.marked,
            "bounced": c.bounced, "dropped": c.dropped, "damaged": c.damaged,
            "queue_bytes": c.queue_bytes, "max_queue_bytes": c.max_queue_bytes,
        })
    };
    let ports: Vec<Value> = switch.ports().zip(switch.counters()).map(port).collect();
    let t = totals;
    json!({
        "ports": ports, "duplicated": t.duplicated, "reordered": t.reordered,
        "corrupted": t.corrupted, "refused": t.refused, "too_long": t.too_long,
        "overflowed": t.overflowed, "latest_us": t.latest.as_us_f64(),
    })
}

/// What the wires did beside, if anything.
fn summary(totals: &Totals) -> Option<String> {
    let Totals { duplicated, reordered, corrupted, refused, too_long, overflowed, latest } = totals;
    if *too_long > 0 {
        warn(&format!(
            "{too_long} frames were longer than the MTU of their interface: `ip link set dev \
             INTERFACE mtu BYTES`, at both ends"
        ));
    }
    if *overflowed > 0 {
        warn(&format!("the kernel lost {overflowed} frames, since this process came too late"));
    }
    let harm = [(duplicated, "duplicated"), (reordered, "reordered"), (corrupted, "corrupted")];
    let refused = [(refused, "refused by the kernel")];
    let some = harm.iter().chain(&refused).filter(|(n, _)| **n > 0);
    let some: Vec<String> = some.map(|(n, what)| format!("{n} {what}")).collect();
    let late = format!("at most {:.0} us late", latest.as_us_f64());
    Some([some, vec![late]].concat().join(", "))
}

/// The table while it runs.
struct Live {
    /// How often; `None`: never.
    every: Option<Duration>,
    /// Whether it is drawn over the one before.
    over: bool,
    shown: Instant,
    lines: usize,
}

impl Live {
    fn new(progress: args::Progress) -> Self {
        let terminal = io::stderr().is_terminal();
        let (every, over) = match progress {
            args::Progress::Never => (None, false),
            args::Progress::Auto if terminal => (Some(LIVE), true),
            args::Progress::Auto | args::Progress::Lines => (Some(LINES), false),
        };
        Self { every, over, shown: Instant::now(), lines: 0 }
    }

    fn show(&mut self, switch: &Switch, totals: &Totals) {
        if self.every.is_none_or(|every| self.shown.elapsed() < every) {
            return;
        }
        self.shown = Instant::now();
        let text = format!("{}\nat most {:.0} us late\n", table(switch), totals.latest.as_us_f64());
        if self.over && self.lines > 0 {
            tell(format_args!("\u{1b}[{}A", self.lines));
        }
        self.lines = text.lines().count();
        tell(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::Tier;
    use units::{Dur, Rate};

    #[test]
    fn nodes_are_named_as_links_name_them() {
        let link = fabric::LinkSpec { rate: Rate(1_000_000_000), delay: Dur::ZERO };
        let star = Topology::star(3, link).unwrap();
        assert_eq!(named("tor 0", &star).unwrap(), Node::Switch(Tier::Tor, 0));
        assert_eq!(named("host 2", &star).unwrap(), Node::Host(2));
        let refused = named("agg 0", &star).unwrap_err().render(false);
        assert!(refused.contains("no agg 0") && refused.contains("its switches: tor 0"));
    }
}
