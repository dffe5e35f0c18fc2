//! The `[queue]` table: the discipline of every switch port.

pub(crate) mod links;

use std::collections::BTreeMap;
use std::path::Path;

use endpoint::Framing;
use fabric::Topology;
use nic::switch::SwitchPort;
use queues::{
    ByClassSpec, Capacity, Classifier, CutPayloadSpec, DropTailSpec, HeaderClass, MarkAt, NdpSpec,
    NotEct, PFabricSpec, PortWideSpec, ProgrammedSpec, QueueSpec, Ramp, RedSpec, Schedule, Trim,
    Unit,
};
use units::Bytes;

use crate::buffer::SIZE_MAX;
use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Section, keys, section, section_of_variants};
use crate::lossless;
use crate::p4::{self, Compiled, Named};
use crate::reader::Reader;
use crate::registry::{Kind, kinds};
use crate::topology::links_of_switch;
use crate::transport::{Transport, Transports};
use crate::value::{Form, Refused, ScenarioValue, Size16, Size32, choices};

kinds! { QUEUES: ReadQueue {
    "ndp", ndp, ndp_keys,
        "short data queue, headers and control first (10:1), trimming, bouncing";
    "drop-tail", drop_tail, drop_tail_keys,
        "first in, first out; drops what does not fit; optional ECN threshold or RED";
    "cut-payload", cut_payload, || vec![section("queue.cut-payload", CUT_PAYLOAD, &[], Some(&CUT_USUAL))],
        "first in, first out; cuts the payload off what would exceed a threshold";
    "fair", fair, || vec![section("queue.fair", FAIR, &[], None)],
        "a queue for each traffic class, served in turn: equal shares in bytes";
    "priority", priority, || {
        let usual = Some(&Priority::USUAL);
        let trim = section("queue.priority.trim", TRIM, &[], usual);
        vec![section("queue.priority", PRIORITY, &[], usual), trim]
    },
        "a queue for each traffic class, the highest class first";
    "pfabric", pfabric, || vec![section("queue.pfabric", PFABRIC, &[], None)],
        "the message with the least left first, by its packets' headers; loses of that with the \
                most left: for `pfabric`";
    "p4", p4, || vec![p4::keys(), section("queue.p4", P4, &[], None)],
        "a P4 program says which queue a packet joins, trimmed or not: p4/ndp_switch.p4, \
                or your own";
    "lossless", lossless::read, lossless::keys,
        "priority flow control: switches pause their neighbours before their memory is full";
}}

/// Read `[queue]`, for the packets of `transports`, with paths relative to `dir`.
pub(crate) fn read(
    table: &mut Reader<'_>,
    transports: &Transports,
    dir: &Path,
) -> Checked<QueueSpec> {
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
) -> Checked<BTreeMap<u32, QueueSpec>> {
    let transports: Vec<&Transport> = transports.iter().collect();
    let mut all = BTreeMap::new();
    for table in tables {
        let mut read = OfSwitch { switch: String::new(), capacity: Capacity::Packets(1) };
        table.all_keys(OF_SWITCH, &mut read)?;
        let OfSwitch { switch, capacity } = read;
        let (switch, links) = links_of_switch(table, "switch", &switch, topology)?;
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
    Ok(all)
}

/// The queues of the ports to hosts, by the link that they transmit over, if they differ.
pub(crate) fn at_last_hops(queue: &QueueSpec, topology: &Topology) -> Vec<(u32, QueueSpec)> {
    let Some(last) = queue.spec().at_last_hop() else { return Vec::new() };
    let links = (0..).zip(topology.links());
    links.filter(|(_, link)| link.is_last_hop()).map(|(n, _)| (n, last.clone())).collect()
}

/// The keys of `[[queue.switch]]`.
struct OfSwitch {
    switch: String,
    capacity: Capacity,
}

keys! { OF_SWITCH: OfSwitch {
    switch: String, "the switch".range("as in `[[fault]]`").written();
    capacity: Capacity,
        "what each of its ports holds".range("at least one full packet").written();
}}

/// For the reference: the keys of `[[queue.switch]]`.
pub(crate) fn switch_keys() -> Vec<Section> {
    vec![section("queue.switch", OF_SWITCH, &[], None)]
}

/// How one kind of queue is read, for the packets of these transports. Paths are relative to the
/// directory.
pub(crate) type ReadQueue = fn(&mut Reader<'_>, &[&Transport], &Path) -> Checked<QueueSpec>;

/// The one of `transports` with the longest packets: queues are measured in those.
pub(crate) fn longest(transports: &[&Transport]) -> (Framing, u16) {
    let longest = transports.iter().max_by_key(|transport| transport.mtu);
    longest.map_or((Framing { payload: 0, overhead: 0 }, 0), |t| (t.framing, t.mtu))
}

/// The keys of `kind = "drop-tail"`.
struct DropTail {
    capacity: Capacity,
    ecn_threshold: Option<Capacity>,
    ramp: Option<WrittenRamp>,
    weight: Option<f64>,
    mark_at: MarkAt,
    not_ect: NotEct,
}

/// For the reference.
fn drop_tail_keys() -> Vec<Section> {
    let plain = DropTail::plain();
    let marked = section_of_variants(
        "queue.drop-tail.marks",
        MARKED,
        "with `ecn_threshold`",
        std::slice::from_ref(&plain),
    );
    vec![section("queue.drop-tail", DROP_TAIL, &[], Some(&plain)), marked]
}

/// From where on packets are marked, up to where, and how likely there.
struct WrittenRamp {
    min: Capacity,
    max: Capacity,
    probability: f64,
}

keys! { DROP_TAIL: DropTail {
    capacity: Capacity,
        "what fits, the packet in service included".range("at least one full packet").written();
    ecn_threshold (maybe ecn_threshold): Capacity,
        "an ECN-capable packet that arrives to find more than this is marked".default("none");
    red_min (ramp: Some(ramp) => ramp.min): Capacity,
        "instead of a threshold, a ramp (RED): no packet is marked that finds this or less, \
         every one that finds more than `red_max`; in between the probability grows along a \
         straight line".range("up to `red_max`, same unit").written().only(RED);
    red_max (ramp: Some(ramp) => ramp.max): Capacity, "see `red_min`".written().only(RED);
    red_probability (ramp: Some(ramp) => ramp.probability): f64 [1e-9..=1.0],
        "the probability at `red_max`; each packet is drawn by itself"
            .range("above 0, to 1").written().only(RED);
}}

// DCTCP's paper has the first of each two; with a ramp they must be written.
keys! { MARKED: DropTail {
    red_weight (maybe weight): f64 [1e-6..=1.0],
        "not the queue decides but an average, of which this is the weight of what the latest \
         packet found (RED 1993: 0.002). It falls with arriving packets only, not while the port \
         is idle. Without the key: the queue as it is".default("none");
    mark_at: MarkAt,
        "when a packet is marked: as it arrives, for what it finds, or as its transmission \
         begins, for what it leaves behind";
    not_ect: NotEct,
        "what befalls packets that would be marked and are not ECN-capable (acknowledgements, \
         too): nothing, or they are lost as they arrive";
}}

const RED: &str = "a ramp of `red_min`, `red_max` and `red_probability`";
const MARKS: &str = "`ecn_threshold`, or `red_min`, `red_max` and `red_probability`";

choices!(MarkAt, "arrival" => MarkAt::Arrival, "departure" => MarkAt::Departure);
choices!(NotEct, "pass" => NotEct::Pass, "drop" => NotEct::Drop);

impl DropTail {
    /// Without marks.
    fn plain() -> Self {
        let (mark_at, not_ect) = (MarkAt::Arrival, NotEct::Pass);
        let capacity = Capacity::Packets(1);
        Self { capacity, ecn_threshold: None, ramp: None, weight: None, mark_at, not_ect }
    }
}

/// `kind = "drop-tail"`: capacity and, for transports that understand marks, a threshold or a ramp.
fn drop_tail(table: &mut Reader<'_>, transports: &[&Transport], _: &Path) -> Checked<QueueSpec> {
    let mut read = DropTail::plain();
    if ["red_min", "red_max", "red_probability"].into_iter().any(|key| table.has(key)) {
        let any = Capacity::Packets(1);
        read.ramp = Some(WrittenRamp { min: any, max: any, probability: 1.0 });
    }
    table.all_keys(DROP_TAIL, &mut read)?;
    let ramp = match (read.ecn_threshold, &read.ramp) {
        (Some(_), Some(_)) => {
            let message = "a threshold and a ramp: both say when packets are marked";
            let hint = "leave out `ecn_threshold`, or every key that begins with `red_`";
            return table.fail("ecn_threshold", message, "one of two", hint);
        }
        (None, None) => None,
        (Some(threshold), None) => Some(Ramp::step(threshold)),
        (None, &Some(WrittenRamp { min, max, probability })) => {
            Some(checked_ramp(table, ["red_min", "red_max"], (min, max), probability)?)
        }
    };
    // A ramp has no usual moment.
    let usual = read.ecn_threshold.map(|_| DropTail::plain());
    match ramp {
        Some(_) => table.keys(MARKED, &mut read, usual.as_ref())?,
        None => table.without(MARKED, MARKS),
    }
    table.complete(&[])?;
    let DropTail { capacity, ecn_threshold, weight, mark_at, not_ect, .. } = read;
    holds_a_packet(table, "capacity", capacity, transports)?;
    // The usual case, which is quicker.
    let usual = (mark_at, not_ect, weight) == (MarkAt::Arrival, NotEct::Pass, None);
    match ramp {
        Some(ramp) if ecn_threshold.is_none() || !usual => {
            Ok(RedSpec { capacity, ramp, weight, mark_at, not_ect }.into())
        }
        Some(_) => Ok(QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold })),
        None => Ok(QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None })),
    }
}

/// The ramp from the value of one key to that of the other, in one unit.
pub(crate) fn checked_ramp(
    table: &Reader<'_>,
    [from, to]: [&'static str; 2],
    (low, high): (Capacity, Capacity),
    probability: f64,
) -> Checked<Ramp> {
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
        return table.fail(to, message, "too small", hint);
    }
    Ok(Ramp { unit, min, max, probability })
}

keys! { NDP: NdpSpec {
    capacity (data_capacity): Capacity,
        "what fits of full packets, the one in service included"
            .range("at least one full packet").written();
    header_capacity: Capacity,
        "what fits of headers and control packets"
            .default("the memory of `capacity` (n packets count as n payloads)");
    header_weight: u8 [1..=u8::MAX],
        "headers and control packets served per round while full packets wait".default("");
    data_weight: u8 [1..=u8::MAX], "full packets served per round while headers wait".default("");
    trim_arriving: f64 [0.0..=1.0],
        "probability that the arriving packet is trimmed, not the last one queued".default("");
    trim_to: Size16 [TRIM_TO], "length of a trimmed packet".default("");
    trim (get |spec| Some(spec.trim_to > 0),
          set |spec, trim: bool| if !trim { spec.trim_to = 0 }): bool,
        "what does not fit is trimmed; otherwise it is lost".default("");
    bounce: bool,
        "a header that does not fit is returned to its sender; otherwise it is dropped".default("");
    flag_last_hop (get |spec| Some(spec.last_hop.is_some()),
                   set |spec, flag: bool| spec.last_hop = flag.then_some(false)): bool,
        "a header says whether the link on which its packet did not fit leads to its host (Ultra \
         Ethernet)".default("");
}}

keys! { NDP_MARKS: WrittenRamp {
    ecn_low (min): Capacity,
        "an ECN-capable full packet that leaves this or less of full packets behind is not \
         marked, one that leaves more than `ecn_high` is; in between the probability grows along \
         a straight line".range("up to `ecn_high`, same unit").written().only(NDP_MARKED);
    ecn_high (max): Capacity, "see `ecn_low`".written().only(NDP_MARKED);
}}

keys! { NDP_WHERE: NdpSpec {
    ecn_last_hop (mark_last_hop): bool,
        "ports to hosts mark, too. Without it receivers' credit has their links to itself (Ultra \
         Ethernet)".default("").only(NDP_MARKED);
}}

const NDP_MARKED: &str = "both `ecn_low` and `ecn_high`";

/// The lengths of trimmed packets.
const TRIM_TO: std::ops::RangeInclusive<Size16> = Size16(64)..=Size16(1_500);

/// For the reference.
fn ndp_keys() -> Vec<Section> {
    let usual = section("queue.ndp", NDP, &[], Some(&NdpSpec::PAPER));
    let place = section("queue.ndp.marks", NDP_WHERE, &[], Some(&NdpSpec::PAPER));
    vec![usual, section("queue.ndp.marks", NDP_MARKS, &[], None), place]
}

/// `kind = "ndp"`. Defaults are those of the paper and its code (specs/ndp.md#1).
fn ndp(table: &mut Reader<'_>, transports: &[&Transport], _: &Path) -> Checked<QueueSpec> {
    let payload = u32::from(longest(transports).0.payload);
    // "The same byte memory as the data queue"; the paper counts eight packets as 72 000 bytes.
    let header_capacity = match table.peek("capacity") {
        Some(Capacity::Packets(n)) => Capacity::Bytes(n.saturating_mul(payload)),
        Some(bytes) => bytes,
        None => NdpSpec::PAPER.header_capacity,
    };
    let mut spec = NdpSpec { header_capacity, ..NdpSpec::PAPER };
    table.keys(NDP, &mut spec, None)?;
    if ["ecn_low", "ecn_high"].into_iter().any(|key| table.has(key)) {
        let any = Capacity::Packets(1);
        let mut read = WrittenRamp { min: any, max: any, probability: 1.0 };
        table.keys(NDP_MARKS, &mut read, None)?;
        let WrittenRamp { min, max, probability } = read;
        spec.marks = Some(checked_ramp(table, ["ecn_low", "ecn_high"], (min, max), probability)?);
        table.keys(NDP_WHERE, &mut spec, None)?;
    } else {
        table.without(NDP_MARKS, NDP_MARKED);
        table.without(NDP_WHERE, NDP_MARKED);
    }
    table.complete(&[])?;
    holds_a_packet(table, "capacity", spec.data_capacity, transports)?;
    holds_a_header(table, spec.header_capacity, spec.trim_to, transports)?;
    Ok(QueueSpec::Ndp(spec))
}

keys! { CUT_PAYLOAD: CutPayloadSpec {
    capacity: Capacity,
        "what fits, the packet in service included. n packets are the memory of n full packets"
            .range("at least one full packet").written();
    trim_threshold: Capacity, "what would make the queue longer than this loses its payload"
        .range("a full packet to `capacity`").default("half of `capacity`");
    trim_to: Size16 [TRIM_TO], "length of a trimmed packet".default("");
}}

/// What the NDP authors' code has (specs/ndp.md#4).
const CUT_USUAL: CutPayloadSpec = CutPayloadSpec {
    capacity: Capacity::Bytes(0),
    trim_threshold: Capacity::Bytes(0),
    trim_to: 64,
};

/// `kind = "cut-payload"`.
fn cut_payload(table: &mut Reader<'_>, transports: &[&Transport], _: &Path) -> Checked<QueueSpec> {
    // Headers and full packets share the queue, so it is memory that counts, not packets.
    let full = u32::from(longest(transports).1);
    let memory = |capacity| match capacity {
        Capacity::Packets(n) => n.saturating_mul(full),
        Capacity::Bytes(n) => n,
    };
    let half = table.peek("capacity").map_or(0, memory) / 2;
    let mut spec = CutPayloadSpec { trim_threshold: Capacity::Bytes(half), ..CUT_USUAL };
    table.all_keys(CUT_PAYLOAD, &mut spec)?;
    let bytes = memory(spec.capacity);
    spec.capacity = Capacity::Bytes(bytes);
    let threshold = table.within("trim_threshold", memory(spec.trim_threshold), 1..=bytes)?;
    spec.trim_threshold = Capacity::Bytes(threshold);
    holds_a_packet(table, "trim_threshold", spec.trim_threshold, transports)?;
    Ok(spec.into())
}

keys! { PFABRIC: PFabricSpec {
    capacity: Capacity,
        "what fits, the packet in service included. When it is full, the packet whose message has \
         the most left is lost".range("at least one full packet").written();
}}

/// `kind = "pfabric"`.
fn pfabric(table: &mut Reader<'_>, transports: &[&Transport], _: &Path) -> Checked<QueueSpec> {
    let mut spec = PFabricSpec { capacity: Capacity::Packets(1) };
    table.all_keys(PFABRIC, &mut spec)?;
    holds_a_packet(table, "capacity", spec.capacity, transports)?;
    Ok(spec.into())
}

keys! { FAIR: Bytes {
    quantum (self): Bytes,
        "what a class may send before it is the next one's turn"
            .range("a full packet to 1 MB").default("a full packet");
}}

/// `kind = "fair"`: a queue for each class in `[[queue.class]]`.
fn fair(table: &mut Reader<'_>, transports: &[&Transport], dir: &Path) -> Checked<QueueSpec> {
    let mtu = Bytes(u64::from(longest(transports).1));
    let mut quantum = mtu;
    table.keys(FAIR, &mut quantum, None)?;
    // At most so much that credits are counted in packets, not in megabytes.
    let quantum = table.within("quantum", quantum, mtu..=Bytes(1_000_000))?.0 as u32;
    let classes = classes(table, transports, Classifier::Class, dir)?;
    Ok(ByClassSpec::new(Schedule::fair(quantum), classes).into())
}

/// What becomes of a packet that its class has no room for.
#[derive(Clone, Copy, PartialEq)]
enum Full {
    Drop,
    Trim,
}

choices!(Full, "drop" => Full::Drop, "trim" => Full::Trim);
choices!(Classifier, "class" => Classifier::Class, "payload" => Classifier::Payload);
choices!(HeaderClass, "next" => HeaderClass::Next, "highest" => HeaderClass::Highest);

/// The keys of `kind = "priority"`.
struct Priority {
    full: Full,
    sort_by: Classifier,
    capacity: Option<Capacity>,
    ecn_threshold: Option<Capacity>,
    trim: Trim,
}

impl Priority {
    // Sorted by payload, headers have but one place to go.
    const USUAL: Self = Self {
        full: Full::Drop,
        sort_by: Classifier::Class,
        capacity: None,
        ecn_threshold: None,
        trim: Trim { to: 64, header: HeaderClass::Highest },
    };
}

keys! { PRIORITY: Priority {
    full: Full,
        "what becomes of a packet that its class has no room for. `drop`: what the class's own \
         `kind` says. `trim`: an arriving packet with payload is cut to `trim_to`; its header, if \
         that finds no room either, and control are lost. Classes are then `drop-tail`, without \
         marks".default("");
    sort_by: Classifier,
        "which queue a packet joins. `payload`: of two, the lower if it carries payload, the \
         higher if it is trimmed or control, whatever its class".default("");
    capacity (maybe capacity): Capacity,
        "what all classes hold together, the packet in service included, beside what each holds: \
         what arrives beyond that is lost. n packets are the memory of n full packets"
            .range("at least one full packet").default("none");
    ecn_threshold (maybe ecn_threshold): Capacity,
        "an ECN-capable packet that arrives to find more than this in all classes together is \
         marked (PIAS). n packets as above".default("none");
}}

keys! { TRIM: Priority {
    trim_to (trim.to): Size16 [TRIM_TO], "length of a trimmed packet".default("");
    header_class (trim.header when |p| p.sort_by == Classifier::Class): HeaderClass,
        "in which class a trimmed packet goes on: the next lower one that has a queue (the lowest \
         keeps its own), as in the public switch model of nanoTransport; or the highest. At the \
         next switch it is of its own class again".written().only("`sort_by = \"class\"`");
}}

/// `kind = "priority"`: a queue for each class in `[[queue.class]]`, the highest first; what
/// finds its class full may be trimmed.
fn priority(table: &mut Reader<'_>, transports: &[&Transport], dir: &Path) -> Checked<QueueSpec> {
    let mut read = Priority::USUAL;
    table.keys(PRIORITY, &mut read, None)?;
    let trims = read.full == Full::Trim;
    match trims {
        true => table.keys(TRIM, &mut read, None)?,
        false => table.without(TRIM, "`full = \"trim\"`"),
    }
    table.complete(&[])?;
    let (sort, trim) = (read.sort_by, trims.then_some(read.trim));
    let classes = classes(table, transports, sort, dir)?;
    let limits = (read.capacity, read.ecn_threshold);
    if trims && limits != (None, None) {
        let message = "`full = \"trim\"`, but all classes together lose or mark packets";
        let error = table.error("full", message, "not with limits of the port");
        return Err(error.hint("leave `capacity` and `ecn_threshold` of [queue] out"));
    }
    let plain = |queue: &QueueSpec| matches!(queue, QueueSpec::DropTail(spec) if spec.ecn_threshold.is_none());
    if trims && let Some((class, _)) = classes.iter().find(|(_, queue)| !plain(queue)) {
        let message =
            format!("`full = \"trim\"`, but class {class} does not simply lose what is too much");
        let hint = "with `full = \"trim\"` classes are `kind = \"drop-tail\"`, without marks";
        return table.fail("full", message, "not with this class", hint);
    }
    let classes = ByClassSpec { schedule: Schedule::Strict, classes, sort, trim };
    port_wide(table, transports, classes, limits)
}

/// `classes` with limits of what they hold together, if there are any.
fn port_wide(
    table: &Reader<'_>,
    transports: &[&Transport],
    classes: ByClassSpec,
    (capacity, ecn_threshold): (Option<Capacity>, Option<Capacity>),
) -> Checked<QueueSpec> {
    if (capacity, ecn_threshold) == (None, None) {
        return Ok(classes.into());
    }
    if let Some(capacity) = capacity {
        holds_a_packet(table, "capacity", capacity, transports)?;
    }
    let mtu = u32::from(longest(transports).1);
    let memory = |capacity| match capacity {
        Capacity::Packets(n) => n.saturating_mul(mtu),
        Capacity::Bytes(n) => n,
    };
    let (capacity, ecn_threshold) = (capacity.map(memory), ecn_threshold.map(memory));
    Ok(PortWideSpec { classes, capacity, ecn_threshold }.into())
}

keys! { CLASS: u8 {
    class (self): u8 [0..=7],
        "whose packets queue here. `ndp` and `cbr` are class 0, those of the programmable NIC 7 \
         and below, all other transports have keys for it. Every class that a transport uses \
         needs a queue".written();
}}

/// For the reference: the keys of `[[queue.class]]`.
pub(crate) fn class_keys() -> Vec<Section> {
    vec![section("queue.class", CLASS, &[], None)]
}

/// `[[queue.class]]`: the queue of each class.
fn classes(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    sort: Classifier,
    dir: &Path,
) -> Checked<Vec<(u8, QueueSpec)>> {
    let mut tables = table.tables("class")?;
    let mut classes: Vec<(u8, QueueSpec)> = Vec::new();
    for table in &mut tables {
        let mut class = 0;
        table.all_keys(CLASS, &mut class)?;
        if classes.iter().any(|(other, _)| *other == class) {
            let error = table.error("class", format!("two queues for class {class}"), "again");
            return Err(error.hint("one queue for each class"));
        }
        classes.push((class, of_class(table, class, transports, sort, dir)?));
    }
    if sort == Classifier::Payload && classes.len() != 2 {
        let message =
            format!("{} queues for packets with payload and those without", classes.len());
        let hint = "two tables [[queue.class]]: the lower for payload, the higher for the rest";
        return table.fail("sort_by", message, "wants two", hint);
    }
    let mut used = transports.iter().flat_map(|transport| &transport.classes);
    if sort == Classifier::Class
        && let Some(missing) = used.find(|&&used| !classes.iter().any(|(class, _)| *class == used))
    {
        let message = format!("class {missing} of the packets of a transport has no queue");
        let error = table.error("class", message, "in this table");
        return Err(error.hint(format!("add [[queue.class]] with `class = {missing}`")));
    }
    table.finish_tables("class", tables)?;
    Ok(classes)
}

/// Whether a class may have such a queue; the others are for all classes of a port.
pub(crate) fn is_of_class(kind: &Kind<ReadQueue>) -> bool {
    !["fair", "priority", "lossless", "pfabric", "p4"].contains(&kind.name)
}

/// The queue of one class.
fn of_class(
    table: &mut Reader<'_>,
    class: u8,
    transports: &[&Transport],
    sort: Classifier,
    dir: &Path,
) -> Checked<QueueSpec> {
    let simple: Vec<_> = QUEUES.iter().filter(|kind| is_of_class(kind)).collect();
    let kind = *table.choose("kind", &simple, |k| k.name)?;
    let of_class: Vec<&Transport> = transports
        .iter()
        .filter(|t| sort == Classifier::Payload || t.classes.contains(&class))
        .copied()
        .collect();
    if of_class.is_empty() {
        let error =
            table.error("class", "no transport has packets of this class", "no packets join it");
        return Err(
            error.hint("`ndp` and `cbr` are class 0; `tcp`, `rdma` and `phost` have keys for it")
        );
    }
    (kind.read)(table, &of_class, dir)
}

/// The keys of `kind = "p4"`, beside those of its program.
#[derive(Default)]
struct Programmed {
    weights: Vec<u8>,
    memory: u32,
}

keys! { P4: Programmed {
    weights: Vec<u8>,
        "a queue for each, and the packets of it that are served per round while others wait"
            .range("one to eight, each 1 to 255").written();
    memory: Size32 [Size32(1)..=Size32(SIZE_MAX.0 as u32)],
        "bytes that a port holds, the packet in service included; what the program wants beyond \
         that is lost".range("at least one full packet, at most 1 GB").written();
}}

/// `kind = "p4"`: queues served in turn, and the program that says what joins them.
fn p4(table: &mut Reader<'_>, transports: &[&Transport], dir: &Path) -> Checked<QueueSpec> {
    let named = Named::read(table)?;
    let compiled = Compiled::new(table, dir, named)?;
    if compiled.is_rtl() {
        let error = table.error("backend", "no switch port is a circuit", "not here");
        return Err(error.hint("\"interpreter\" or \"rust\"; NICs may be circuits"));
    }
    let mut read = Programmed::default();
    table.all_keys(P4, &mut read)?;
    let Programmed { weights, memory } = read;
    let fits = (1..=8).contains(&weights.len()) && !weights.contains(&0);
    if !fits {
        let error = table.error("weights", "a weight for each of the queues", "not these");
        return Err(error.hint("one to eight numbers from 1 to 255, such as [10, 1]"));
    }
    holds_a_packet(table, "memory", Capacity::Bytes(memory), transports)?;
    let program = SwitchPort::new(&compiled.program, compiled.first(table)?).map_err(|why| {
        let error = table.error("program", why.to_string(), "this program");
        error.hint("p4/include/switch.p4 declares what a switch's port has")
    })?;
    let program = Box::new(program);
    Ok(ProgrammedSpec { program, weights, memory }.into())
}

/// Check that `capacity`, the value of `key`, is at least one packet of any of `transports`.
fn holds_a_packet(
    table: &Reader<'_>,
    key: &'static str,
    capacity: Capacity,
    transports: &[&Transport],
) -> Checked<()> {
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

/// Check that the queue for headers and control holds a trimmed packet, which has `trim_to` bytes,
/// and the headers of any of `transports`. Else everything that is trimmed would be lost.
fn holds_a_header(
    table: &Reader<'_>,
    capacity: Capacity,
    trim_to: u16,
    transports: &[&Transport],
) -> Checked<()> {
    let headers = transports.iter().map(|transport| transport.framing.overhead);
    let longest = headers.chain([trim_to]).max().unwrap_or(trim_to);
    match capacity {
        Capacity::Bytes(n) if n < u32::from(longest) => {
            let message = format!("a header queue of {n}B holds no header of {longest}B");
            let key = if table.has("header_capacity") { "header_capacity" } else { "capacity" };
            let hint =
                format!("at least `header_capacity = \"{longest}B\"`; the paper's is 72000B");
            table.fail(key, message, "too small", hint)
        }
        _ => Ok(()),
    }
}

impl ScenarioValue for Capacity {
    fn form() -> Form {
        Form::new("capacity", "\"72000B\"` or `\"8 packets\"", "string")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) => {
                text.parse().map_err(|e: queues::CapacityError| e.to_string().into())
            }
            Value::Integer(n) if *n < 0 => Err(format!("{n} is negative").into()),
            Value::Integer(n) => Err(format!("{n} has no unit").into()),
            other => {
                Err(format!("a size or a number of packets is wanted, not {}", other.kind()).into())
            }
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.to_string())
    }
}
