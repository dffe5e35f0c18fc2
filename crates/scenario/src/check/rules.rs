//! What looks wrong in a scenario before it runs: choices that have no effect. One function for
//! each rule; they ask for properties of transports and queues, not for their names.

use endpoint::Framing;
use queues::{MarksFrom, QueueSpec};
use units::{Dur, Time};

use super::View;
use super::demand::Bottleneck;
use crate::diagnostic::Diagnostic;
use crate::document::{Node, RESOLVED, Value};
use crate::reader::Reader;
use crate::traffic::Part;
use crate::transport::{Need, Transport, Wait};
use crate::warnings::for_people;

/// A rule: what it finds, each a warning.
type Rule = fn(&View<'_>) -> Vec<Diagnostic>;

/// All rules, in the order in which their warnings are shown.
const RULES: &[Rule] = &[
    marks_needed,
    marks_wanted,
    marks_out_of_reach,
    trims_needed,
    priorities_ignored,
    message_priority_ignored,
    nothing_lossless,
    starts_after_the_end,
    fault_after_the_end,
    reroute_without_fault,
    completion_of_what_never_ends,
    limit_too_early,
    overload,
    rate_above_the_link,
    small_first_window,
    pauses_between_messages,
    timers_too_short,
    deadlines_wanted,
    rtt_of_nothing,
    little_headroom,
];

/// What all rules find.
pub(crate) fn all(view: &View<'_>) -> Vec<Diagnostic> {
    RULES.iter().flat_map(|rule| rule(view)).map(Diagnostic::warning).collect()
}

/// Each transport and its table.
fn transports<'v>(view: &View<'v>) -> impl Iterator<Item = (&'v Reader<'v>, &'v Transport)> {
    view.tables.transport.iter().zip(view.transports.iter())
}

/// A warning about the first of `keys` that is written in `table`.
fn at(table: &Reader<'_>, keys: &[&str], message: impl Into<String>, label: &str) -> Diagnostic {
    table.error(table.likeliest(keys).unwrap_or("kind"), message, label)
}

/// Every traffic class.
const ALL: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// The queues of `queue` that packets of `classes` join.
fn joined<'q>(queue: &'q QueueSpec, classes: &[u8]) -> Vec<&'q QueueSpec> {
    let parts = queue.spec().queues_of(classes);
    let is_one = parts.is_empty() && queue.spec().queues_of(&ALL).is_empty();
    if is_one { vec![queue] } else { parts }
}

/// Whether packets of `classes` may be marked.
fn marks(queue: &QueueSpec, classes: &[u8]) -> bool {
    let marks = |queue: &QueueSpec| queue.spec().marks_from(classes) != MarksFrom::Never;
    marks(queue) || joined(queue, classes).into_iter().any(marks)
}

/// Whether data of `classes` is trimmed rather than lost.
fn trims(queue: &QueueSpec, classes: &[u8]) -> bool {
    let trims = |queue: &QueueSpec| queue.spec().trims_to() != u16::MAX;
    queue.spec().always_trims() || joined(queue, classes).into_iter().any(trims)
}

/// How to have packets marked by `queue`.
fn how_to_mark(queue: &QueueSpec) -> &'static str {
    match queue {
        QueueSpec::Lossless(_) => "add [[queue.ecn]] for its class",
        _ if !queue.spec().queues_of(&ALL).is_empty() => {
            "set `ecn_threshold` in the [[queue.class]] of its packets"
        }
        _ => "set `ecn_threshold` in [queue], with `kind = \"drop-tail\"`",
    }
}

/// A rate rule or congestion control that acts on marks, where nothing is marked.
fn marks_needed(view: &View<'_>) -> Vec<Diagnostic> {
    let deaf =
        |(_, t): &(_, &Transport)| t.signals.marks == Need::Needs && !marks(view.queue, &t.classes);
    let warn = |(table, _): (&Reader<'_>, _)| {
        let message = "this transport's congestion control acts on ECN marks, and no queue marks \
                       its packets: it is without effect";
        let hint = format!("{}, or take another rule", how_to_mark(view.queue));
        at(table, &["rule", "kind"], message, "never sees a mark").hint(hint)
    };
    transports(view).filter(deaf).map(warn).collect()
}

/// `ecn = true` where nothing is marked, of a transport that can do without.
fn marks_wanted(view: &View<'_>) -> Vec<Diagnostic> {
    let deaf = |(table, t): &(&Reader<'_>, &Transport)| {
        t.signals.marks == Need::Uses && table.has("ecn") && !marks(view.queue, &t.classes)
    };
    let warn = |(table, _): (&Reader<'_>, _)| {
        let message = "`ecn` has no effect here: no queue marks packets";
        let hint = format!("{}, or set `ecn = false`", how_to_mark(view.queue));
        at(table, &["ecn"], message, "never sees a mark").hint(hint)
    };
    transports(view).filter(deaf).map(warn).collect()
}

/// A marking threshold that is longer than the queue.
fn marks_out_of_reach(view: &View<'_>) -> Vec<Diagnostic> {
    let mtu = u64::from(view.transports.mtu());
    let beyond =
        |queue: &QueueSpec| match (queue.spec().marks_from(&ALL), &queue.spec().capacities()[..]) {
            (MarksFrom::Length(length), &[capacity]) => length.bytes(mtu) > capacity.bytes(mtu),
            _ => false,
        };
    if !joined(view.queue, &ALL).into_iter().any(beyond) {
        return Vec::new();
    }
    let message = "the queue is full before it is long enough for a packet to be marked";
    let keys = ["ecn_threshold", "red_min", "class"];
    let hint = "a threshold below `capacity`";
    vec![at(&view.tables.queue, &keys, message, "never reached").hint(hint)]
}

/// A transport that counts on trimmed headers, at switches that lose what does not fit.
fn trims_needed(view: &View<'_>) -> Vec<Diagnostic> {
    let deaf =
        |(_, t): &(_, &Transport)| t.signals.trims == Need::Needs && !trims(view.queue, &t.classes);
    let warn = |(table, _): (&Reader<'_>, _)| {
        let message = "this transport learns of losses from trimmed headers, and these queues \
                       never trim: it is left with its timeouts";
        let hint = "`kind = \"ndp\"` in [queue], or `kind = \"priority\"` with `full = \"trim\"`";
        at(table, &["kind"], message, "never sees a trimmed header").hint(hint)
    };
    transports(view).filter(deaf).map(warn).collect()
}

/// A transport with priorities, at queues that make no difference between them.
fn priorities_ignored(view: &View<'_>) -> Vec<Diagnostic> {
    let classes = |t: &Transport| {
        let mut classes = t.classes.clone();
        classes.sort_unstable();
        classes.dedup();
        classes.len()
    };
    if view.queue.spec().sorts_by_class() {
        return Vec::new();
    }
    let warn = |(table, t): (&Reader<'_>, &Transport)| {
        let message = format!(
            "the packets of this transport have {} classes, and these queues serve all alike: its \
             priorities have no effect",
            classes(t)
        );
        let keys = ["levels", "priorities", "class_short", "class", "kind"];
        let hint = "`kind = \"priority\"` in [queue], with a [[queue.class]] for each";
        at(table, &keys, message, "no priorities here").hint(hint)
    };
    let counts_on = |(_, t): &(_, &Transport)| t.signals.classes == Need::Needs && classes(t) > 1;
    transports(view).filter(counts_on).map(warn).collect()
}

/// Priorities of messages, for a transport that does not look at them.
fn message_priority_ignored(view: &View<'_>) -> Vec<Diagnostic> {
    let all = view.tables.traffic.iter().zip(&view.traffic.tables);
    let warn = |(table, part): (&Reader<'_>, &Part)| {
        let carrier = view.transports.at(part.transport)?;
        if carrier.signals.message_priorities || part.priority == 0 {
            return None;
        }
        let message = "the priority of these messages has no effect: their transport does not look \
                       at it";
        let hint = "leave it out, or use `kind = \"ndp\"` with `discipline = \"prio\"`";
        Some(at(table, &["priority", "file"], message, "not read").hint(hint))
    };
    all.filter_map(warn).collect()
}

/// Lossless switches where no packet is of a lossless class.
fn nothing_lossless(view: &View<'_>) -> Vec<Diagnostic> {
    let QueueSpec::Lossless(spec) = view.queue else { return Vec::new() };
    let used =
        view.transports.iter().flat_map(|t| &t.classes).fold(0, |all, c| all | 1_u8 << (c & 7));
    if spec.memory.lossless & used != 0 {
        return Vec::new();
    }
    let message = "no packet is of a lossless class: these switches never pause anybody";
    // What is control is not counted, and cannot be lossless.
    let free = used & !spec.memory.control;
    let free = if free == 0 { used } else { free };
    let classes: Vec<String> =
        (0..8).filter(|class| free & 1 << class != 0).map(|class| class.to_string()).collect();
    let hint = format!("the packets' classes are {}: name them in `lossless`", classes.join(", "));
    let warning = at(&view.tables.queue, &["lossless", "preset"], message, "none of them");
    let mut warnings = vec![warning.hint(hint)];
    if view.pfc.watchdog.is_some() {
        let message = "nothing is ever paused here, so the watchdog has nothing to do";
        let warning = at(&view.tables.queue, &["watchdog"], message, "no effect");
        warnings.push(warning.hint("leave it out"));
    }
    warnings
}

/// Traffic that starts when the run, or its own `stop`, is over.
fn starts_after_the_end(view: &View<'_>) -> Vec<Diagnostic> {
    let all = view.tables.traffic.iter().zip(&view.traffic.tables);
    let warn = |(table, part): (&Reader<'_>, &Part)| {
        let (stop, limit) = (part.stop, view.measure.limit);
        let (late, of) = part.starting_from(stop.min(limit));
        if late == 0 {
            return None;
        }
        let (end, key) = if stop < limit { (stop, "stop") } else { (limit, "limit") };
        let end = for_people(end.since(Time::ZERO));
        let message = match of {
            1 => format!("this traffic starts after its end: `{key}` is {end}"),
            _ => format!(
                "{late} of {of} messages of this table start after the end: `{key}` is {end}"
            ),
        };
        let keys = ["start", "every", "start_spread", "file", "kind"];
        let hint = match key {
            "stop" => "a later `stop`, or an earlier start".to_owned(),
            _ => "a later `limit` in [measure], or an earlier start".to_owned(),
        };
        Some(at(table, &keys, message, "never starts").hint(hint))
    };
    all.filter_map(warn).collect()
}

/// Jobs on connections that are kept, by a transport that lets each message wait for the one
/// before.
fn pauses_between_messages(view: &View<'_>) -> Vec<Diagnostic> {
    let transports: Vec<&Transport> = view.transports.iter().collect();
    let pauses = |part: &Part| {
        let kept = part.job.as_ref().is_some_and(|job| job.config().channel != 0);
        kept && transports.get(usize::from(part.transport)).is_some_and(|it| it.pauses)
    };
    let tables = view.tables.traffic.iter().zip(&view.traffic.tables);
    let warn = |(table, _): (&Reader<'_>, &Part)| {
        let message = "with this transport each message between two hosts waits until the one \
                       before it is acknowledged";
        let hint = "`connections = \"fresh\"`: collectives need no order of messages; with \
                    Ultra Ethernet `keep_connections`, too";
        at(table, &["connections"], message, "a round trip for each message").hint(hint)
    };
    tables.filter(|(_, part)| pauses(part)).map(warn).collect()
}

/// Faults that begin when the run is over.
fn fault_after_the_end(view: &View<'_>) -> Vec<Diagnostic> {
    let limit = view.measure.limit;
    let warn = |(table, &begins): (&Reader<'_>, &Time)| {
        let end = for_people(limit.since(Time::ZERO));
        let message = format!("this fault comes after the end of the run, which is at {end}");
        (begins >= limit).then(|| {
            at(table, &["at"], message, "never comes").hint("an earlier `at`, or a later `limit`")
        })
    };
    view.tables.fault.iter().zip(&view.script.begins).filter_map(warn).collect()
}

/// How long news of a fault takes, where there is none.
fn reroute_without_fault(view: &View<'_>) -> Vec<Diagnostic> {
    let table = &view.tables.routing;
    // A manifest has every default.
    let is_default = || table.place("reroute_after").source.name.ends_with(RESOLVED);
    if !view.script.faults.is_empty() || !table.has("reroute_after") || is_default() {
        return Vec::new();
    }
    let message = "`reroute_after` has no effect: there is no [[fault]] of a link";
    vec![at(table, &["reroute_after"], message, "no effect").hint("leave it out")]
}

/// Metrics of `[sweep]` that only messages which end can have.
fn completion_of_what_never_ends(view: &View<'_>) -> Vec<Diagnostic> {
    const OF_ENDING: [&str; 4] = ["fct_us", "slowdown", "last_completion_us", "messages.completed"];
    let Some(Value::Array(metrics)) = view.tables.sweep_metrics() else { return Vec::new() };
    let named = |text: &str| {
        let named = |name: &&str| text.contains(&format!("{}.", name.replace('-', "_")));
        view.traffic.names.iter().position(|name| name.as_deref().is_some_and(|n| named(&n)))
    };
    let endless = |text: &str| match named(text) {
        Some(table) => view.traffic.tables[table].never_completes(),
        None => view.traffic.tables.iter().all(Part::never_completes),
    };
    let warn = |metric: &Node| {
        let Value::Text(text) = &metric.value else { return None };
        let what = OF_ENDING.iter().find(|what| text.contains(*what))?;
        endless(text).then(|| {
            let message = format!("`{what}` of messages without an end: it will have no value");
            let warning = metric.at.error(message, "never complete");
            warning.hint("give the messages a size, or show `goodput_gbps` or `flow_goodput_gbps`")
        })
    };
    metrics.iter().filter_map(warn).collect()
}

/// More bytes than can be delivered before the run ends.
fn limit_too_early(view: &View<'_>) -> Vec<Diagnostic> {
    let Some(busiest) = view.demand.bytes.bottleneck(view.topology) else { return Vec::new() };
    let limit = view.measure.limit;
    if view.measure.to.is_some() || busiest.seconds() * 1e12 < limit.0 as f64 {
        return Vec::new();
    }
    let (least, end) = (seconds(&busiest), for_people(limit.since(Time::ZERO)));
    let message = format!(
        "the run ends at {end}, and what {} has to carry takes {least} at least: messages will be \
         unfinished",
        busiest.name
    );
    let hint = "a later `limit`, or less traffic";
    vec![at(&view.tables.measure, &["limit"], message, "too early").hint(hint)]
}

/// How long `busiest` takes for what it has to carry.
pub(super) fn seconds(busiest: &Bottleneck) -> String {
    for_people(Dur((busiest.seconds() * 1e12) as u64))
}

/// An open loop that offers more than some link carries.
fn overload(view: &View<'_>) -> Vec<Diagnostic> {
    let busiest = view.demand.wire.bottleneck(view.topology).filter(|b| b.seconds() > 1.0);
    let warn = |busiest: Bottleneck| {
        let percent = busiest.seconds() * 100.0;
        let message = format!(
            "the load is more than the fabric carries: with headers {percent:.0} % of {}",
            busiest.name
        );
        let table = view.tables.traffic.iter().find(|table| table.has("load"));
        let table = table.or(view.tables.traffic.first())?;
        let hint = "completion times then grow with the length of the run: less load";
        let keys = ["load", "message_rate", "call_rate"];
        Some(at(table, &keys, message, "more than there is").hint(hint))
    };
    busiest.and_then(warn).into_iter().collect()
}

/// Sources of a constant rate that no host's link carries.
fn rate_above_the_link(view: &View<'_>) -> Vec<Diagnostic> {
    let hosts = &view.topology.links()[..view.topology.hosts() as usize];
    let Some(fastest) = hosts.iter().map(|link| link.rate).max() else { return Vec::new() };
    let above = |(_, t): &(_, &Transport)| t.constant_rate.is_some_and(|rate| rate > fastest);
    let warn = |(table, _): (&Reader<'_>, _)| {
        let message = format!("hosts have links of {fastest}: none of them carries this rate");
        at(table, &["rate"], message, "more than there is").hint("a rate up to that of the link")
    };
    transports(view).filter(above).map(warn).collect()
}

/// A window below the bandwidth-delay product cannot fill a link, unless it grows.
fn small_first_window(view: &View<'_>) -> Vec<Diagnostic> {
    // A lone message that has nearly all of a path is no surprise.
    const NEARLY_ALL: f64 = 0.8;
    let needed = view.topology.bandwidth_delay();
    let enough = (needed as f64 * NEARLY_ALL) as u64;
    let fixed = view.transports.iter().filter(|transport| !transport.window_grows);
    // Links carry headers, too.
    let small = fixed.filter(|transport| {
        let packets = transport.first_window.div_ceil(u64::from(transport.framing.payload.max(1)));
        let headers = packets.saturating_mul(u64::from(transport.framing.overhead));
        transport.first_window.saturating_add(headers) < enough
    });
    let smallest = small.map(|transport| transport.first_window).min();
    let warn = |window: u64| {
        Diagnostic::new(format!(
            "the initial window of {window}B is below the greatest bandwidth-delay product of a path, \
             {needed}B: a lone message cannot fill that path"
        ))
    };
    smallest.map(warn).into_iter().collect()
}

/// A timer that expires before an answer can come.
fn timers_too_short(view: &View<'_>) -> Vec<Diagnostic> {
    let hosts = &view.topology.links()[..view.topology.hosts() as usize];
    let slowest = hosts.iter().map(|link| link.rate).min();
    let Some(slowest) = slowest else { return Vec::new() };
    let rtt = view.topology.longest_rtt();
    let mut warnings = Vec::new();
    for (table, transport) in transports(view) {
        let Framing { payload, overhead } = transport.framing;
        let packet = slowest.serialise(u64::from(payload) + u64::from(overhead));
        let time = |wait| match wait {
            Wait::Time(time) => time,
            Wait::Packets(n) => Dur((packet.0 as f64 * n) as u64),
        };
        let waits = transport.timers.iter().map(|&(key, wait)| (key, time(wait)));
        let Some((key, wait)) = waits.filter(|(_, wait)| *wait < rtt).min_by_key(|of| of.1) else {
            continue;
        };
        let message = format!(
            "`{key}` is {}, and the base round trip of the longest path {}: it expires before an \
             answer can come, and repeats what is not lost",
            for_people(wait),
            for_people(rtt)
        );
        let warning = at(table, &[key, "preset"], message, "expires before any answer");
        warnings.push(warning.hint("a longer one: a round trip through full queues at least"));
    }
    warnings
}

/// A rule that acts on deadlines, where no message has one.
fn deadlines_wanted(view: &View<'_>) -> Vec<Diagnostic> {
    let of = |at: usize| {
        let carried = |part: &&Part| view.transports.index(part.transport) == at;
        let mut parts = view.traffic.tables.iter().filter(carried).peekable();
        parts.peek().is_some() && parts.all(|part| !part.has_deadline())
    };
    let without = |(n, (_, t)): &(usize, (_, &Transport))| t.uses_deadlines && of(*n);
    let warn = |(_, (table, _)): (usize, (&Reader<'_>, _))| {
        let message = "this rule acts on deadlines, and no message of its traffic has one";
        let hint = "add `deadline` to [[traffic]], or take another rule";
        at(table, &["rule", "kind"], message, "without deadlines").hint(hint)
    };
    transports(view).enumerate().filter(without).map(warn).collect()
}

/// Round-trip samples of transports that take none.
fn rtt_of_nothing(view: &View<'_>) -> Vec<Diagnostic> {
    let measures = view.tables.measure.peek("rtt") == Some(true);
    if !measures || view.transports.iter().any(|transport| transport.samples_rtt) {
        return Vec::new();
    }
    let message = "`rtt` has no effect: this transport takes no round-trip samples";
    vec![at(&view.tables.measure, &["rtt"], message, "no samples").hint("leave it out")]
}

/// Headroom for less than what comes after a pause has been sent.
fn little_headroom(view: &View<'_>) -> Vec<Diagnostic> {
    let QueueSpec::Lossless(spec) = view.queue else { return Vec::new() };
    let Some((port, has, needs)) = fabric::little_headroom(view.topology, &spec.memory) else {
        return Vec::new();
    };
    let message = format!(
        "a lossless class has {has} B of headroom for what comes over {port}, and up to {needs} B \
         can come after XOFF: packets of it may be lost"
    );
    let keys = ["headroom", "preset"];
    let hint = "`headroom = \"auto\"` is what can come";
    vec![at(&view.tables.queue, &keys, message, "may be too little").hint(hint)]
}
