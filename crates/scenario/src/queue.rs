//! The `[queue]` table: the discipline of every switch port.

use std::collections::BTreeMap;
use std::path::Path;

use endpoint::Framing;
use fabric::Topology;
use nic::switch::SwitchPort;
use queues::{
    ByClassSpec, Capacity, CutPayloadSpec, DropTailSpec, HeaderClass, MarkAt, NdpSpec, NotEct,
    ProgrammedSpec, QueueSpec, Ramp, RedSpec, Schedule, Sort, Trim, Unit,
};
use units::Bytes;

use crate::buffer::SIZE_MAX;
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::p4::Compiled;
use crate::reader::{Knob, Reader};
use crate::registry::{Kind, QUEUES};
use crate::topology::links_of_switch;
use crate::transport::{Transport, Transports};

/// Read `[queue]`, for the packets of `transports`, with paths relative to `dir`.
pub(crate) fn read(
    table: &mut Reader<'_>,
    transports: &Transports,
    dir: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let kind: &Kind<ReadQueue> = table.choose("kind", QUEUES, |k| k.name)?;
    (kind.read)(table, &transports.iter().collect::<Vec<_>>(), dir)
}

/// `[[queue.switch]]`: switches whose ports hold more or less than those of the others. Returns the
/// queue of each of these ports, by the link that it transmits over.
pub(crate) fn at_switches(
    tables: &mut [Reader<'_>],
    queue: &QueueSpec,
    topology: &Topology,
    transports: &Transports,
) -> Result<Vec<(u32, QueueSpec)>, Diagnostic> {
    let transports: Vec<&Transport> = transports.iter().collect();
    let mut all = BTreeMap::new();
    for table in tables {
        let (switch, links) = links_of_switch(table, "switch", topology)?;
        let capacity = table.need("capacity")?;
        holds_a_packet(table, "capacity", capacity, &transports)?;
        let Some(queue) = queue.spec().with_capacity(capacity) else {
            let message = "one number does not say what the ports of this [queue] hold";
            let error = table.error("capacity", message, "not with this [queue]");
            return Err(error.hint("take `kind = \"drop-tail\"` in [queue]"));
        };
        for link in links.into_iter().filter(|&n| topology.links()[n as usize].from == switch) {
            if all.insert(link, queue.clone()).is_some() {
                let error = table.error("switch", format!("{switch} has two tables"), "again");
                return Err(error.hint("one table for each switch"));
            }
        }
    }
    Ok(all.into_iter().collect())
}

/// How one kind of queue is read, for the packets of these transports. Paths are relative to the directory.
pub(crate) type ReadQueue =
    fn(&mut Reader<'_>, &[&Transport], &Path) -> Result<QueueSpec, Diagnostic>;

/// The one of `transports` with the longest packets: queues are measured in those.
pub(crate) fn longest(transports: &[&Transport]) -> (Framing, u16) {
    let longest = transports.iter().max_by_key(|transport| transport.mtu);
    longest.map_or((Framing { payload: 0, overhead: 0 }, 0), |t| (t.framing, t.mtu))
}

/// `kind = "drop-tail"`: capacity and, for transports that understand marks, a threshold or a ramp.
pub(crate) fn drop_tail(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    _: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let capacity = table.need("capacity")?;
    let ecn_threshold: Option<Capacity> = table.maybe("ecn_threshold")?;
    let ramp =
        if RAMP.into_iter().any(|key| table.has(key)) { Some(ramp(table, RAMP)?) } else { None };
    holds_a_packet(table, "capacity", capacity, transports)?;
    let (ramp, mark_at, not_ect) = match (ecn_threshold, ramp) {
        (Some(_), Some(_)) => {
            let message = "a threshold and a ramp: both say when packets are marked";
            let error = table.error("ecn_threshold", message, "one of two");
            return Err(
                error.hint("leave out `ecn_threshold`, or every key that begins with `red_`")
            );
        }
        (None, None) => return unmarked(table, capacity),
        // The first of each is what DCTCP's paper has.
        (Some(threshold), None) => (
            Ramp::step(threshold),
            table.choose_or_first("mark_at", MARK_AT, |(name, _)| name)?.1,
            table.choose_or_first("not_ect", NOT_ECT, |(name, _)| name)?.1,
        ),
        (None, Some(ramp)) => (
            ramp,
            table.choose("mark_at", MARK_AT, |(name, _)| name)?.1,
            table.choose("not_ect", NOT_ECT, |(name, _)| name)?.1,
        ),
    };
    let weight = table.maybe("red_weight")?;
    if let Some(weight) = weight {
        table.within("red_weight", weight, 1e-6..=1.0)?;
    }
    // The usual case, which is quicker.
    if ecn_threshold.is_some()
        && (mark_at, not_ect, weight) == (MarkAt::Arrival, NotEct::Pass, None)
    {
        return Ok(QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold }));
    }
    Ok(RedSpec { capacity, ramp, weight, mark_at, not_ect }.into())
}

pub(crate) const MARK_AT: &[(&str, MarkAt)] =
    &[("arrival", MarkAt::Arrival), ("departure", MarkAt::Departure)];
const NOT_ECT: &[(&str, NotEct)] = &[("pass", NotEct::Pass), ("drop", NotEct::Drop)];

/// Drop-tail and nothing else. Keys that say how to mark then mean nothing.
fn unmarked(table: &Reader<'_>, capacity: Capacity) -> Result<QueueSpec, Diagnostic> {
    let stray = ["mark_at", "not_ect", "red_weight"].into_iter().find(|key| table.has(key));
    if let Some(key) = stray {
        let message = format!("`{key}` without a length from which packets are marked");
        let error = table.error(key, message, "means nothing here");
        return Err(
            error.hint("add `ecn_threshold`, or `red_min`, `red_max` and `red_probability`")
        );
    }
    Ok(QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None }))
}

/// The keys of a ramp: from where on packets are marked, up to where, and how likely there.
const RAMP: [&str; 3] = ["red_min", "red_max", "red_probability"];

/// A ramp, by such keys.
pub(crate) fn ramp(table: &mut Reader<'_>, keys: [&'static str; 3]) -> Result<Ramp, Diagnostic> {
    let [from, to, chance] = keys;
    let (low, high) = (table.need(from)?, table.need(to)?);
    let probability = table.need(chance)?;
    table.within(chance, probability, 1e-9..=1.0)?;
    let (unit, min, max) = match (low, high) {
        (Capacity::Packets(min), Capacity::Packets(max)) => (Unit::Packets, min, max),
        (Capacity::Bytes(min), Capacity::Bytes(max)) => (Unit::Bytes, min, max),
        _ => {
            let message = format!("`{from}` is {low} and `{to}` is {high}");
            let error = table.error(to, message, "not in the same unit");
            return Err(error.hint("count packets in both, or bytes in both"));
        }
    };
    if min > max {
        let message = format!("`{to}` is {high}, less than `{from}`, which is {low}");
        let hint = format!("at least `{from}`");
        return Err(table.error(to, message, "too small").hint(hint));
    }
    Ok(Ramp { unit, min, max, probability })
}

/// `kind = "ndp"`. Defaults are those of the paper and its code (specs/ndp.md#1).
pub(crate) fn ndp(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    _: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let data_capacity = table.need("capacity")?;
    let payload = u32::from(longest(transports).0.payload);
    // "The same byte memory as the data queue"; the paper counts eight packets as 72 000 bytes.
    let same_memory = match data_capacity {
        Capacity::Bytes(n) => Capacity::Bytes(n),
        Capacity::Packets(n) => Capacity::Bytes(n.saturating_mul(payload)),
    };
    let header_capacity = table.or("header_capacity", same_memory)?;
    let header_weight = table.or("header_weight", 10)?;
    table.within("header_weight", header_weight, 1..=u8::MAX)?;
    let data_weight = table.or("data_weight", 1)?;
    table.within("data_weight", data_weight, 1..=u8::MAX)?;
    let trim_arriving = table.or("trim_arriving", 0.5)?;
    table.within("trim_arriving", trim_arriving, 0.0..=1.0)?;
    let trim_to = trim_to(table)?;
    let bounce = table.or("bounce", true)?;
    holds_a_packet(table, "capacity", data_capacity, transports)?;
    holds_a_header(table, header_capacity, trim_to, transports)?;
    Ok(QueueSpec::Ndp(NdpSpec {
        data_capacity,
        header_capacity,
        header_weight,
        data_weight,
        trim_arriving,
        trim_to,
        bounce,
    }))
}

/// `kind = "cut-payload"`. Defaults are those of the NDP authors' code (specs/ndp.md#4).
pub(crate) fn cut_payload(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    _: &Path,
) -> Result<QueueSpec, Diagnostic> {
    // Headers and full packets share the queue, so it is memory that counts, not packets.
    let full = u32::from(longest(transports).1);
    let memory = |capacity| match capacity {
        Capacity::Packets(n) => n.saturating_mul(full),
        Capacity::Bytes(n) => n,
    };
    let bytes = memory(table.need("capacity")?);
    let capacity = Capacity::Bytes(bytes);
    let trim_threshold = memory(table.or("trim_threshold", Capacity::Bytes(bytes / 2))?);
    table.within("trim_threshold", trim_threshold, 1..=bytes)?;
    let trim_threshold = Capacity::Bytes(trim_threshold);
    holds_a_packet(table, "trim_threshold", trim_threshold, transports)?;
    let trim_to = trim_to(table)?;
    Ok(CutPayloadSpec { capacity, trim_threshold, trim_to }.into())
}

/// `kind = "fair"`: a queue for each class in `[[queue.class]]`.
pub(crate) fn fair(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    dir: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let mtu = Bytes(u64::from(longest(transports).1));
    let quantum = table.or("quantum", mtu)?;
    // At most so much that credits are counted in packets, not in megabytes.
    let quantum = table.within("quantum", quantum, mtu..=Bytes(1_000_000))?.0 as u32;
    let classes = classes(table, transports, Sort::Class, dir)?;
    Ok(ByClassSpec::new(Schedule::fair(quantum), classes).into())
}

/// `kind = "priority"`: a queue for each class in `[[queue.class]]`, the highest first; what finds its class
/// full may be trimmed.
pub(crate) fn priority(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    dir: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let sort = table.choose_or_first("sort_by", SORT_BY, |(name, _)| name)?.1;
    let trims = table.choose_or_first("full", FULL, |(name, _)| name)?.1;
    let trim = if trims { Some(trim(table, sort)?) } else { None };
    let classes = classes(table, transports, sort, dir)?;
    let plain = |queue: &QueueSpec| matches!(queue, QueueSpec::DropTail(spec) if spec.ecn_threshold.is_none());
    if trims && let Some((class, _)) = classes.iter().find(|(_, queue)| !plain(queue)) {
        let message =
            format!("`full = \"trim\"`, but class {class} does not simply lose what is too much");
        let error = table.error("full", message, "not with this class");
        return Err(
            error.hint("with `full = \"trim\"` classes are `kind = \"drop-tail\"`, without marks")
        );
    }
    Ok(ByClassSpec { schedule: Schedule::Strict, classes, sort, trim }.into())
}

const SORT_BY: &[(&str, Sort)] = &[("class", Sort::Class), ("payload", Sort::Payload)];
const FULL: &[(&str, bool)] = &[("drop", false), ("trim", true)];
const HEADER_CLASS: &[(&str, HeaderClass)] =
    &[("next", HeaderClass::Next), ("highest", HeaderClass::Highest)];

/// The keys of `full = "trim"`. Sorted by payload, headers have but one place to go.
fn trim(table: &mut Reader<'_>, sort: Sort) -> Result<Trim, Diagnostic> {
    let header = match sort {
        Sort::Class => table.choose("header_class", HEADER_CLASS, |(name, _)| name)?.1,
        Sort::Payload => HeaderClass::Highest,
    };
    Ok(Trim { to: trim_to(table)?, header })
}

/// `[[queue.class]]`: the queue of each class.
fn classes(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    sort: Sort,
    dir: &Path,
) -> Result<Vec<(u8, QueueSpec)>, Diagnostic> {
    let mut tables = table.tables("class")?;
    let mut classes: Vec<(u8, QueueSpec)> = Vec::new();
    for table in &mut tables {
        let class = table.need("class")?;
        table.within("class", class, 0..=7)?;
        if classes.iter().any(|(other, _)| *other == class) {
            let error = table.error("class", format!("two queues for class {class}"), "again");
            return Err(error.hint("one queue for each class"));
        }
        classes.push((class, of_class(table, class, transports, sort, dir)?));
    }
    if sort == Sort::Payload && classes.len() != 2 {
        let message =
            format!("{} queues for packets with payload and those without", classes.len());
        let error = table.error("sort_by", message, "wants two");
        return Err(error
            .hint("two tables [[queue.class]]: the lower for payload, the higher for the rest"));
    }
    let mut used = transports.iter().flat_map(|transport| &transport.classes);
    if sort == Sort::Class
        && let Some(missing) = used.find(|&&used| !classes.iter().any(|(class, _)| *class == used))
    {
        let message = format!("class {missing} of the packets of a transport has no queue");
        let error = table.error("class", message, "in this table");
        return Err(error.hint(format!("add [[queue.class]] with `class = {missing}`")));
    }
    table.finish_tables("class", tables)?;
    Ok(classes)
}

/// The queue of one class.
fn of_class(
    table: &mut Reader<'_>,
    class: u8,
    transports: &[&Transport],
    sort: Sort,
    dir: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let whole_port = ["fair", "priority", "lossless", "p4"];
    let simple = QUEUES.iter().filter(|kind| !whole_port.contains(&kind.name));
    let simple: Vec<&Kind<ReadQueue>> = simple.collect();
    let kind = *table.choose("kind", &simple, |k| k.name)?;
    let of_class: Vec<&Transport> = transports
        .iter()
        .filter(|t| sort == Sort::Payload || t.classes.contains(&class))
        .copied()
        .collect();
    if of_class.is_empty() {
        let error =
            table.error("class", "no transport has packets of this class", "a queue for nobody");
        return Err(error
            .hint("`ndp` and `cbr` are class 0; `newreno`, `tcp` and `phost` have keys for it"));
    }
    (kind.read)(table, &of_class, dir)
}

/// `kind = "p4"`: queues served in turn, and the program that says what joins them.
pub(crate) fn p4(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    dir: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let compiled = Compiled::read(table, dir)?;
    let weights: Vec<u8> = table.need("weights")?;
    let fits = (1..=8).contains(&weights.len()) && !weights.contains(&0);
    if !fits {
        let error = table.error("weights", "a weight for each of the queues", "not these");
        return Err(error.hint("one to eight numbers from 1 to 255, such as [10, 1]"));
    }
    let memory: Bytes = table.need("memory")?;
    let memory = table.within("memory", memory, Bytes(1)..=SIZE_MAX)?.0 as u32;
    holds_a_packet(table, "memory", Capacity::Bytes(memory), transports)?;
    let program = SwitchPort::new(&compiled.program, compiled.first(table)?).map_err(|why| {
        let error = table.error("program", why.to_string(), "this program");
        error.hint("p4/include/switch.p4 declares what a switch's port has")
    })?;
    let program = Box::new(program);
    Ok(ProgrammedSpec { program, weights, memory }.into())
}

/// The length of a trimmed packet.
fn trim_to(table: &mut Reader<'_>) -> Result<u16, Diagnostic> {
    let trim_to = table.or("trim_to", Bytes(64))?;
    // At most 1500, so it fits.
    Ok(table.within("trim_to", trim_to, Bytes(64)..=Bytes(1_500))?.0 as u16)
}

/// Check that `capacity`, the value of `key`, is at least one packet of any of `transports`.
fn holds_a_packet(
    table: &Reader<'_>,
    key: &'static str,
    capacity: Capacity,
    transports: &[&Transport],
) -> Result<(), Diagnostic> {
    let mtu = longest(transports).1;
    match capacity {
        Capacity::Bytes(n) if n < u32::from(mtu) => {
            let message = format!("a queue of {n} bytes holds no packet of {mtu} bytes");
            let at = if table.has(key) { key } else { "capacity" };
            let error = table.error(at, message, "too small");
            let half = if at == key { "" } else { " of `trim_threshold`, half of this" };
            Err(error.hint(format!("at least \"{mtu}B\"{half}, or count packets: \"8 packets\"")))
        }
        _ => Ok(()),
    }
}

/// Check that the queue for headers and control holds a trimmed packet, which has `trim_to` bytes, and
/// the headers of any of `transports`. Else everything that is trimmed would be lost.
fn holds_a_header(
    table: &Reader<'_>,
    capacity: Capacity,
    trim_to: u16,
    transports: &[&Transport],
) -> Result<(), Diagnostic> {
    let headers = transports.iter().map(|transport| transport.framing.overhead);
    let longest = headers.chain([trim_to]).max().unwrap_or(trim_to);
    match capacity {
        Capacity::Bytes(n) if n < u32::from(longest) => {
            let message = format!("a header queue of {n}B holds no header of {longest}B");
            let key = if table.has("header_capacity") { "header_capacity" } else { "capacity" };
            let hint =
                format!("at least `header_capacity = \"{longest}B\"`; the paper's is 72000B");
            Err(table.error(key, message, "too small").hint(hint))
        }
        _ => Ok(()),
    }
}

impl Knob for Capacity {
    const EXAMPLE: &'static str = "\"72000B\"` or `\"8 packets\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => text.parse().map_err(|e: queues::CapacityError| e.to_string()),
            Value::Integer(n) if *n < 0 => Err(format!("{n} is negative")),
            Value::Integer(n) => Err(format!("{n} has no unit")),
            other => Err(format!("a size or a number of packets is wanted, not {}", other.kind())),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.to_string())
    }
}
