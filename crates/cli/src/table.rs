//! The tables on stdout.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use metrics::{JobStats, Phase, Summary};

/// Three or four digits, and the unit in the label.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(v) if v.abs() >= 1000.0 => format!("{v:.0}"),
        Some(v) if v.abs() >= 10.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.3}"),
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{:.2} %", v * 100.0))
}

fn whole(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| v.to_string())
}

/// Label and value of everything that a summary says, in a reader's order.
fn rows(s: &Summary) -> Vec<(&'static str, String)> {
    let f = &s.flows;
    vec![
        ("messages completed", format!("{} of {}", f.messages.completed, f.messages.submitted)),
        ("  measured, unfinished", f.measured.unfinished.to_string()),
        ("completion time mean, us", number(f.fct_us.mean)),
        ("  median", number(f.fct_us.p50)),
        ("  99th percentile", number(f.fct_us.p99)),
        ("  slowest", number(f.fct_us.max)),
        ("slowdown median", number(f.slowdown.p50)),
        ("  99th percentile", number(f.slowdown.p99)),
        ("last completion, us", number(f.last_completion_us)),
        ("goodput, Gb/s", number(f.goodput_gbps)),
        ("utilization", percent(f.utilization)),
        ("long flows: slowest, Gb/s", number(f.flow_goodput_gbps.min)),
        ("  mean", number(f.flow_goodput_gbps.mean)),
        ("packets sent, data", s.packets.data_sent.to_string()),
        ("  control", s.packets.control_sent.to_string()),
        ("  again", s.packets.retransmitted.to_string()),
        ("  trimmed", s.packets.trimmed.to_string()),
        ("  bounced", bounced(s)),
        ("  dropped", s.packets.dropped.to_string()),
        ("  marked", s.packets.ecn_marked.to_string()),
        ("longest switch queue, bytes", whole(s.queue_bytes.max)),
        ("  p99 over ports and samples", whole(s.queue_bytes.p99)),
    ]
}

/// What only some scenarios have: jobs, named traffic tables, shared memory, flow control and timed packets.
fn optional_rows(s: &Summary) -> Vec<(String, String)> {
    let mut rows = job_rows("", &s.jobs);
    for (name, t) in &s.traffic {
        let completed = format!("{} of {}", t.messages.completed, t.messages.submitted);
        rows.push((format!("{name}: completed"), completed));
        for (label, value) in [
            ("completion time median, us", t.fct_us.p50),
            ("  99th percentile", t.fct_us.p99),
            ("  slowest", t.fct_us.max),
            ("long flows: mean, Gb/s", t.flow_goodput_gbps.mean),
        ] {
            if value.is_some() {
                rows.push((format!("{name}: {label}"), number(value)));
            }
        }
        // Those of the only table are those of all.
        if t.jobs != s.jobs {
            rows.extend(job_rows(&format!("{name}: "), &t.jobs));
        }
    }
    let memory = &s.shared_buffer;
    if memory.max_bytes.is_some() {
        rows.extend([
            ("fullest switch memory, bytes".to_owned(), whole(memory.max_bytes)),
            ("  dropped: over the threshold".to_owned(), whole(memory.over_threshold)),
            ("  dropped: memory exhausted".to_owned(), whole(memory.exhausted)),
        ]);
    }
    rows.extend(pfc_rows(s));
    let rtt = &s.rtt_us;
    if rtt.mean.is_some() {
        rows.extend([
            ("round-trip samples: mean, us".to_owned(), number(rtt.mean)),
            ("  median".to_owned(), number(rtt.p50)),
            ("  99th percentile".to_owned(), number(rtt.p99)),
        ]);
    }
    let latency = &s.packet_latency_us;
    if latency.count > 0 {
        rows.extend([
            ("packets acknowledged".to_owned(), latency.count.to_string()),
            ("  after: median, us".to_owned(), number(latency.p50)),
            ("  99th percentile".to_owned(), number(latency.p99)),
            ("  slowest".to_owned(), number(latency.max)),
        ]);
    }
    rows
}

/// What lossless switches say, if there are any.
fn pfc_rows(s: &Summary) -> Vec<(String, String)> {
    let pfc = &s.pfc;
    if pfc.frames.is_none() {
        return Vec::new();
    }
    let rows = [
        ("pauses of links", s.packets.pfc_pauses.to_string()),
        ("  together, us", number(pfc.paused_us)),
        ("  longest, us", number(pfc.longest_pause_us)),
        ("  most behind each other", whole(pfc.depth)),
        ("fullest switch memory, bytes", whole(pfc.memory_bytes)),
        ("  most headroom, bytes", whole(pfc.headroom_bytes)),
        ("  dropped: lossless", whole(pfc.lossless_violations)),
    ];
    rows.map(|(label, value)| (label.to_owned(), value)).into()
}

/// What jobs say, if there are any; the labels begin with `of`.
fn job_rows(of: &str, jobs: &JobStats) -> Vec<(String, String)> {
    if jobs.completed + jobs.failed == 0 {
        return Vec::new();
    }
    let completed = match jobs.failed {
        0 => jobs.completed.to_string(),
        failed => format!("{} ({failed} failed)", jobs.completed),
    };
    let rows = [
        ("jobs completed", completed),
        ("  goodput, Gb/s", number(jobs.goodput_gbps)),
        ("  time mean, us", number(jobs.time_us.mean)),
        ("  median", number(jobs.time_us.p50)),
        ("  99th percentile", number(jobs.time_us.p99)),
        ("  link idle", percent(jobs.idle_overall)),
        ("  results in time, mean", percent(jobs.quality.mean)),
    ];
    rows.map(|(label, value)| (format!("{of}{label}"), value)).into()
}

/// Bounced headers, and their share of all headers (the trimmed packets).
fn bounced(s: &Summary) -> String {
    let (bounced, trimmed) = (s.packets.bounced, s.packets.trimmed);
    if trimmed == 0 {
        return bounced.to_string();
    }
    format!("{bounced} ({:.1} % of headers)", bounced as f64 / trimmed as f64 * 100.0)
}

/// The summary of one run.
pub(crate) fn summary(s: &Summary) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["scenario", s.scenario.as_str()]);
    for (label, value) in rows(s) {
        table.add_row([label.to_owned(), value]);
    }
    for (label, value) in optional_rows(s) {
        table.add_row([label, value]);
    }
    table.add_row(["simulated, ms".to_owned(), number(Some(s.sim_time_us / 1e3))]);
    table.add_row(["wall time, s".to_owned(), number(Some(s.wall_s))]);
    table.add_row(["packet-hops".to_owned(), s.packet_hops.to_string()]);
    table.add_row(["seed, digest".to_owned(), format!("{}, {}", s.seed, s.digest)]);
    right(table)
}

/// What the scenario `name` will do.
pub(crate) fn forecast(name: &str, rows: Vec<(String, String)>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["scenario", name]);
    for (label, value) in rows {
        table.add_row([label, value]);
    }
    right(table)
}

/// The phases of a run with faults.
pub(crate) fn phases(phases: &[Phase]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header([
        "from, us",
        "what happens",
        "messages",
        "carried over",
        "median, us",
        "p99, us",
        "slowest, us",
        "goodput, Gb/s",
    ]);
    for phase in phases {
        let fct = &phase.fct_us;
        table.add_row([
            number(Some(phase.from_us)),
            phase.what.clone(),
            phase.submitted.to_string(),
            phase.carried_over.to_string(),
            number(fct.p50),
            number(fct.p99),
            number(fct.max),
            number(phase.goodput_gbps),
        ]);
    }
    right(table)
}

/// Several runs side by side, one column each, headed by its label.
pub(crate) fn comparison(labels: &[&str], summaries: &[Summary]) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_header(std::iter::once("scenario").chain(labels.iter().copied()));
    let columns: Vec<_> = summaries.iter().map(rows).collect();
    let labels = columns.first().map(|column| column.iter().map(|(label, _)| *label));
    for (index, label) in labels.into_iter().flatten().enumerate() {
        let cells = columns.iter().filter_map(|column| column.get(index)).map(|(_, v)| v.clone());
        table.add_row(std::iter::once(label.to_owned()).chain(cells));
    }
    let walls = summaries.iter().map(|s| number(Some(s.wall_s)));
    table.add_row(std::iter::once("wall time, s".to_owned()).chain(walls));
    right(table)
}

/// Numbers end in one line.
pub(crate) fn right(mut table: Table) -> String {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}
