//! The reader of htsim's connection matrices (`.cm`).
//!
//! Blank-separated lines, `#` starts a comment:
//! ```text
//! Nodes N
//! Connections C
//! Triggers T                  (may be absent: none)
//! Failures F                  (may be absent: none)
//! SRC->DST [id I] [msg M] start PS | trigger T  size BYTES
//!          [send_done_trigger T] [recv_done_trigger T] [prio P]
//! trigger id T oneshot|multishot|barrier [count K]
//! failure switch_type TOR|AGG|CORE switch_id S link_id L
//! ```
//! Source: `connection_matrix.cpp` and `trigger.cpp` of Broadcom/csg-htsim and of
//! ultraethernet/uet-htsim (which adds `msg`). What those do, and what is different here:
//!
//! - `start` is in picoseconds, or in the unit that the caller names ([`StartUnit`]): public files
//!   differ. htsim reads it as a 32-bit float and so rounds above 2^24 ps; here it is exact. A
//!   fraction of zeroes (`0.000000`) is accepted, any other fraction of a picosecond is an error:
//!   old files that count in microseconds would otherwise run a million times too fast.
//! - `size` is in bytes, not limited to 31 bits. `size 0` is a flow that never ends
//!   ([`endpoint::UNBOUNDED`]), as in htsim's NDP. Without `size` htsim uses uninitialised memory:
//!   here that is an error, as is a flow with neither `start` nor `trigger` (in both).
//! - `prio`: lower is more urgent; a flow without it has 2 000 000. [`ConnectionMatrix::plan`]
//!   numbers the values that occur from 0, most urgent first.
//! - Flows that share an `id` are messages on one connection, which has two ends: each needs its
//!   `msg`, and they are delivered in order. `msg` without a number is allowed, more than once.
//!   uet-htsim counts the start of such messages in microseconds; here one unit holds for all.
//! - `send_done_trigger` acts when the sender knows that all is delivered, `recv_done_trigger`
//!   when the receiver has it all; triggers act as [`TriggerKind`] says.
//! - Errors here, aborts or silence in htsim: a host that sends to itself, duplicate attributes,
//!   unknown header lines, a oneshot or barrier activated too often, a flow that can never start.
//! - `addon` (a Broadcom extension) is not supported.

use std::collections::{BTreeMap, BTreeSet};

use endpoint::UNBOUNDED;
use units::{HostId, Time};

use crate::plan::{Flow, Plan, Start, TriggerKind};
use crate::text::{Line, Parsed, Place, Source, TextError, Word, one_of, to_u32};

/// The priority of a flow without one (`connection_matrix.cpp`).
const NO_PRIO: u32 = 2_000_000;

/// `msg` without a number (`connection_matrix.cpp`).
const UNNUMBERED: u32 = 0;

/// What `start` counts in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartUnit {
    /// Picoseconds, as csg-htsim does.
    #[default]
    Picoseconds,
    /// Microseconds, as files for some other simulators do.
    Microseconds,
}

impl StartUnit {
    /// How many digits a fraction may have that is a whole number of picoseconds.
    const fn digits(self) -> usize {
        match self {
            Self::Picoseconds => 0,
            Self::Microseconds => 6,
        }
    }
}

/// The latest start: 106 days.
const START_MAX: u64 = i64::MAX as u64;

/// A connection matrix, checked: every index and host in it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionMatrix {
    /// How many hosts it is made for.
    pub nodes: u32,
    /// The flows, in the order of the file.
    pub flows: Vec<CmFlow>,
    /// The triggers, in the order of the file.
    pub triggers: Vec<CmTrigger>,
    /// The failed links.
    pub failures: Vec<LinkFailure>,
    file: String,
    nodes_at: Place,
}

/// One flow of a connection matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmFlow {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// The flow's own number.
    pub id: Option<u32>,
    /// The number of this message on connection `id`; 0 if the file says `msg` without one.
    pub msg: Option<u32>,
    /// When it starts; a trigger is an index into [`ConnectionMatrix::triggers`].
    pub start: Start,
    /// Bytes; [`UNBOUNDED`] where the file says 0.
    pub size: u64,
    /// The trigger (an index) for when the sender knows that it was delivered.
    pub send_done: Option<u32>,
    /// The trigger (an index) for when it is delivered.
    pub recv_done: Option<u32>,
    /// The priority in the file; lower is more urgent.
    pub prio: Option<u32>,
}

/// One trigger of a connection matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmTrigger {
    /// Its number in the file.
    pub id: u32,
    /// What it does.
    pub kind: TriggerKind,
}

/// The tier of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchType {
    /// Top of rack.
    Tor,
    /// Aggregation.
    Agg,
    /// Core.
    Core,
}

/// A failed link: uplink `link` of a switch, both directions. htsim accepts only aggregation
/// switches here, and cuts the first link of a bundle (`FatTreeTopology::add_failed_link`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFailure {
    /// The switch's tier.
    pub switch_type: SwitchType,
    /// The switch's number within its tier.
    pub switch: u32,
    /// The link's number among the switch's uplinks.
    pub link: u32,
}

impl ConnectionMatrix {
    /// Whether a fabric of `hosts` hosts has all the nodes that the file counts on.
    ///
    /// # Errors
    /// `Nodes` is larger; located there.
    pub fn check_hosts(&self, hosts: u32) -> Result<(), TextError> {
        if self.nodes <= hosts {
            return Ok(());
        }
        let text = self.nodes.to_string();
        Err(Source::new("", &self.file).wrong(
            Word { text: &text, at: self.nodes_at },
            format!("the matrix is made for more hosts than the {hosts} of the fabric"),
            "use a larger topology or another matrix",
        ))
    }

    /// The flows and triggers as a plan, in the same order.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let prios = distinct_prios(self.flows.iter().map(|flow| flow.prio));
        let flow = |flow: &CmFlow| Flow {
            src: flow.src,
            dst: flow.dst,
            len: flow.size,
            start: flow.start,
            channel: flow.msg.and(flow.id).unwrap_or(0),
            // The reader has made sure that there are at most 256.
            prio: prios.range(..flow.prio.unwrap_or(NO_PRIO)).count() as u8,
            on_acked: flow.send_done,
            on_delivered: flow.recv_done,
        };
        Plan {
            flows: self.flows.iter().map(flow).collect(),
            triggers: self.triggers.iter().map(|trigger| trigger.kind).collect(),
        }
    }
}

fn distinct_prios(prios: impl Iterator<Item = Option<u32>>) -> BTreeSet<u32> {
    prios.map(|prio| prio.unwrap_or(NO_PRIO)).collect()
}

/// Read a connection matrix whose starts are in picoseconds. `name` is the file's name, for errors.
///
/// # Errors
/// As [`read_cm_in`].
pub fn read_cm(text: &str, name: &str) -> Result<ConnectionMatrix, TextError> {
    read_cm_in(text, name, StartUnit::Picoseconds)
}

/// Read a connection matrix whose starts are in `unit`. `name` is the file's name, for errors.
///
/// # Errors
/// Everything that the module's text calls an error, and every disagreement between the file and
/// itself: counts that differ from the header (a file cut short), hosts out of range, numbers that
/// are zero or used twice, triggers that are not defined.
pub fn read_cm_in(text: &str, name: &str, unit: StartUnit) -> Result<ConnectionMatrix, TextError> {
    let source = Source::new(text, name);
    let mut raw = Raw::default();
    for line in source.lines(char::is_whitespace) {
        raw.read(&source, &line, unit)?;
    }
    let nodes = raw.check_header(&source)?;
    raw.check_flows(&source, nodes.number)?;
    let triggers = raw.read_triggers(&source)?;
    let flows = raw.resolve_flows(&source, &triggers)?;
    let failures =
        raw.failures.iter().map(|failure| failure.get(&source)).collect::<Result<_, _>>()?;
    let matrix = ConnectionMatrix {
        nodes: nodes.number,
        flows,
        triggers,
        failures,
        file: name.to_owned(),
        nodes_at: nodes.word.at,
    };
    raw.check_activations(&source, &matrix)?;
    Ok(matrix)
}

/// A 32-bit number and where it stands.
#[derive(Clone, Copy)]
struct Number<'a> {
    number: u32,
    word: Word<'a>,
}

/// The lines of the file, each read for itself.
#[derive(Default)]
struct Raw<'a> {
    header: [Option<Number<'a>>; HEADER.len()],
    flows: Vec<RawFlow<'a>>,
    triggers: Vec<RawTrigger<'a>>,
    failures: Vec<RawFailure<'a>>,
}

const HEADER: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

struct RawFlow<'a> {
    /// The first word: `SRC->DST`.
    ends: Word<'a>,
    src: Number<'a>,
    dst: Number<'a>,
    start: Option<(u64, Word<'a>)>,
    size: Option<u64>,
    id: Option<Number<'a>>,
    msg: Option<u32>,
    trigger: Option<Number<'a>>,
    send_done: Option<Number<'a>>,
    recv_done: Option<Number<'a>>,
    prio: Option<Number<'a>>,
}

struct RawTrigger<'a> {
    keyword: Word<'a>,
    id: Option<Number<'a>>,
    kind: Option<Word<'a>>,
    count: Option<Number<'a>>,
}

struct RawFailure<'a> {
    keyword: Word<'a>,
    switch_type: Option<Word<'a>>,
    switch: Option<Number<'a>>,
    link: Option<Number<'a>>,
}

impl<'a> Raw<'a> {
    fn read(&mut self, source: &Source<'a>, line: &Line<'a>, unit: StartUnit) -> Parsed<()> {
        let first = line.first();
        if let Some(index) = HEADER.iter().position(|known| *known == first.text) {
            let number = number(source, line.word(1), first.text)?;
            if let Some(extra) = line.words.get(2) {
                return Err(source.wrong(*extra, "a second value", "write one number"));
            }
            return set(source, first, &mut self.header[index], number);
        }
        match first.text {
            "trigger" => self.triggers.push(RawTrigger::read(source, line)?),
            "failure" => self.failures.push(RawFailure::read(source, line)?),
            text if text.contains("->") => self.flows.push(RawFlow::read(source, line, unit)?),
            text => {
                let known = [&HEADER[..], &["trigger", "failure"]].concat();
                let hint = format!("{}, or a flow such as 0->1", one_of(text, &known));
                return Err(source.wrong(first, "unknown line", hint));
            }
        }
        Ok(())
    }

    /// The counts of the header agree with the file. Returns the number of nodes.
    fn check_header(&self, source: &Source<'a>) -> Parsed<Number<'a>> {
        let [nodes, connections, triggers, failures] = self.header;
        let missing = |name: &str| {
            let hint = format!("start the file with a line such as \"{name} 16\"");
            source.missing(Place { line: 1, column: 1 }, format!("{name} is missing"), hint)
        };
        let nodes = nodes.ok_or_else(|| missing("Nodes"))?;
        connections.ok_or_else(|| missing("Connections"))?;
        let counts = [
            (connections, self.flows.len(), "Connections", "flows"),
            (triggers, self.triggers.len(), "Triggers", "triggers"),
            (failures, self.failures.len(), "Failures", "failures"),
        ];
        for (stated, found, name, what) in counts {
            if stated.map_or(0, |stated| stated.number) == to_u32(found) {
                continue;
            }
            let message = format!("{name} disagrees with the file, which has {found} {what}");
            let hint = format!("write {name} {found}, or is the file cut off?");
            return Err(match stated {
                Some(stated) => source.wrong(stated.word, message, hint),
                None => source.missing(Place { line: 1, column: 1 }, message, hint),
            });
        }
        Ok(nodes)
    }

    /// Hosts, identities and priorities.
    fn check_flows(&self, source: &Source<'_>, nodes: u32) -> Parsed<()> {
        let mut ids = BTreeMap::new();
        let mut messages = BTreeSet::new();
        for flow in &self.flows {
            for end in [flow.src, flow.dst] {
                if end.number >= nodes {
                    let message = format!("no such host: the file has {nodes} nodes");
                    return Err(source.wrong(end.word, message, "hosts are numbered from 0"));
                }
            }
            if flow.src.number == flow.dst.number {
                let hint = "choose another destination";
                return Err(source.wrong(flow.ends, "the flow goes from a host to itself", hint));
            }
            let Some(id) = flow.id else { continue };
            let connection = (flow.src.number, flow.dst.number, flow.msg.is_some());
            let before = *ids.entry(id.number).or_insert(connection);
            let numbered = flow.msg != Some(UNNUMBERED);
            let again = numbered && !messages.insert((id.number, flow.msg));
            if again || before != connection {
                return Err(source.wrong(
                    id.word,
                    "this flow id is used twice",
                    "number flows differently, or give each message of a connection its own msg",
                ));
            }
        }
        let prios = distinct_prios(self.flows.iter().map(|flow| flow.prio.map(|n| n.number)));
        let surplus = prios.iter().nth(256);
        let flow = self.flows.iter().find_map(|f| f.prio.filter(|n| Some(&n.number) >= surplus));
        match flow.filter(|_| surplus.is_some()) {
            Some(prio) => Err(source.wrong(
                prio.word,
                "more than 256 different priorities",
                "use fewer values of prio",
            )),
            None => Ok(()),
        }
    }

    fn read_triggers(&self, source: &Source<'_>) -> Parsed<Vec<CmTrigger>> {
        let mut ids = BTreeSet::new();
        let mut triggers = Vec::with_capacity(self.triggers.len());
        for raw in &self.triggers {
            let id = raw.id.ok_or_else(|| {
                source.wrong(raw.keyword, "the trigger has no id", "write \"trigger id 1 oneshot\"")
            })?;
            if !ids.insert(id.number) {
                let hint = "number triggers differently";
                return Err(source.wrong(id.word, "this trigger id is used twice", hint));
            }
            triggers.push(CmTrigger { id: id.number, kind: raw.kind(source)? });
        }
        Ok(triggers)
    }

    fn resolve_flows(&self, source: &Source<'_>, triggers: &[CmTrigger]) -> Parsed<Vec<CmFlow>> {
        let index: BTreeMap<u32, u32> =
            triggers.iter().zip(0..).map(|(trigger, index)| (trigger.id, index)).collect();
        let resolve = |number: Option<Number<'_>>| {
            let Some(number) = number else { return Ok(None) };
            index.get(&number.number).copied().map(Some).ok_or_else(|| {
                let hint = format!("add a line \"trigger id {} oneshot\"", number.number);
                source.wrong(number.word, "this trigger is not defined", hint)
            })
        };
        let flow = |raw: &RawFlow<'_>| {
            Ok(CmFlow {
                src: HostId(raw.src.number),
                dst: HostId(raw.dst.number),
                id: raw.id.map(|id| id.number),
                msg: raw.msg,
                start: raw.start(source, resolve(raw.trigger)?)?,
                size: raw.size(source)?,
                send_done: resolve(raw.send_done)?,
                recv_done: resolve(raw.recv_done)?,
                prio: raw.prio.map(|prio| prio.number),
            })
        };
        self.flows.iter().map(flow).collect()
    }

    /// No trigger is activated more often than it can be, and every flow can start.
    fn check_activations(&self, source: &Source<'_>, matrix: &ConnectionMatrix) -> Parsed<()> {
        let mut counts = vec![0u32; matrix.triggers.len()];
        for (raw, flow) in self.flows.iter().zip(&matrix.flows) {
            let done = [(flow.send_done, raw.send_done), (flow.recv_done, raw.recv_done)];
            for (index, number) in done {
                let (Some(index), Some(number)) = (index, number) else { continue };
                let count = &mut counts[index as usize];
                *count += 1;
                let (most, what) = match matrix.triggers[index as usize].kind {
                    TriggerKind::Oneshot => (1, "oneshot"),
                    TriggerKind::Barrier(most) => (most, "barrier"),
                    TriggerKind::Multishot => continue,
                };
                if *count > most {
                    let message =
                        format!("one activation too many for this {what}: it takes {most}");
                    let hint = "let a barrier count all flows that activate it, or use multishot";
                    return Err(source.wrong(number.word, message, hint));
                }
            }
        }
        let Some(stuck) = matrix.plan().never_starts() else { return Ok(()) };
        let flow = &self.flows[stuck];
        Err(source.wrong(
            flow.trigger.map_or(flow.ends, |trigger| trigger.word),
            "this flow never starts: its trigger cannot fire",
            "let enough flows that end name the trigger as send_done_trigger or recv_done_trigger",
        ))
    }
}

/// Sets `slot`, which must be empty: `key` stands there twice otherwise.
fn set<T>(source: &Source<'_>, key: Word<'_>, slot: &mut Option<T>, value: T) -> Parsed<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(source.wrong(key, "given twice", "keep one of them")),
    }
}

fn number<'a>(source: &Source<'_>, word: Word<'a>, what: &str) -> Parsed<Number<'a>> {
    source.whole_u32(word, what).map(|number| Number { number, word })
}

fn positive<'a>(source: &Source<'_>, word: Word<'a>, what: &str) -> Parsed<Number<'a>> {
    source.positive_u32(word, what).map(|number| Number { number, word })
}

impl<'a> RawFlow<'a> {
    const KEYS: [&'static str; 8] =
        ["id", "msg", "start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "prio"];

    fn read(source: &Source<'a>, line: &Line<'a>, unit: StartUnit) -> Parsed<Self> {
        let (src, dst) = ends(source, line.first())?;
        let mut flow = Self {
            ends: line.first(),
            src,
            dst,
            start: None,
            size: None,
            id: None,
            msg: None,
            trigger: None,
            send_done: None,
            recv_done: None,
            prio: None,
        };
        let mut at = 1;
        while at < line.words.len() {
            at += flow.attribute(source, line.word(at), line.word(at + 1), unit)?;
        }
        Ok(flow)
    }

    /// One attribute; returns how many words it took.
    fn attribute(
        &mut self,
        source: &Source<'a>,
        key: Word<'a>,
        value: Word<'a>,
        unit: StartUnit,
    ) -> Parsed<usize> {
        match key.text {
            "id" => set(source, key, &mut self.id, positive(source, value, "the flow id")?)?,
            "msg" if !value.text.starts_with(|c: char| c.is_ascii_digit()) => {
                set(source, key, &mut self.msg, UNNUMBERED)?;
                return Ok(1);
            }
            "msg" => {
                let msg = source.positive_u32(value, "the message id")?;
                set(source, key, &mut self.msg, msg)?;
            }
            "start" => {
                set(source, key, &mut self.start, (start_ps(source, value, unit)?, key))?;
            }
            "size" => {
                let size = source.whole(value, "the size", UNBOUNDED - 1)?;
                set(source, key, &mut self.size, if size == 0 { UNBOUNDED } else { size })?;
            }
            "trigger" => set(source, key, &mut self.trigger, trigger(source, value)?)?,
            "send_done_trigger" => {
                set(source, key, &mut self.send_done, trigger(source, value)?)?;
            }
            "recv_done_trigger" => {
                set(source, key, &mut self.recv_done, trigger(source, value)?)?;
            }
            "prio" => set(source, key, &mut self.prio, number(source, value, "the priority")?)?,
            "addon" => {
                return Err(source.wrong(key, "addon is not supported", "use a barrier trigger"));
            }
            text => {
                return Err(source.wrong(key, "unknown attribute", one_of(text, &Self::KEYS)));
            }
        }
        Ok(2)
    }

    fn start(&self, source: &Source<'_>, trigger: Option<u32>) -> Parsed<Start> {
        match (self.start, trigger) {
            (Some((time, _)), None) => Ok(Start::At(Time(time))),
            (None, Some(trigger)) => Ok(Start::Trigger(trigger)),
            (Some((_, key)), Some(_)) => {
                Err(source.wrong(key, "both start and trigger", "keep one of them"))
            }
            (None, None) => Err(source.wrong(
                self.ends,
                "the flow has neither start nor trigger",
                "write \"start 0\", or \"trigger 1\" and define that trigger",
            )),
        }
    }

    fn size(&self, source: &Source<'_>) -> Parsed<u64> {
        self.size.ok_or_else(|| {
            let hint = "write \"size 2000000\", or \"size 0\" for a flow that never ends";
            source.wrong(self.ends, "the flow has no size", hint)
        })
    }
}

fn trigger<'a>(source: &Source<'_>, word: Word<'a>) -> Parsed<Number<'a>> {
    positive(source, word, "the trigger id")
}

/// The two ends of `SRC->DST`.
fn ends<'a>(source: &Source<'_>, word: Word<'a>) -> Parsed<(Number<'a>, Number<'a>)> {
    let (src, dst) = word.text.split_once("->").unwrap_or((word.text, ""));
    let column = word.at.column.saturating_add(to_u32(src.chars().count())).saturating_add(2);
    let src = Word { text: src, at: word.at };
    let dst = Word { text: dst, at: Place { line: word.at.line, column } };
    Ok((number(source, src, "the source")?, number(source, dst, "the destination")?))
}

/// The picoseconds of a start in `unit`: of a fraction, only zeroes may lie below a picosecond.
fn start_ps(source: &Source<'_>, word: Word<'_>, unit: StartUnit) -> Parsed<u64> {
    let (text, fraction) = word.text.split_once('.').unwrap_or((word.text, ""));
    let digits = unit.digits();
    let (shown, below) = fraction.split_at_checked(digits).unwrap_or((fraction, ""));
    let in_digits = shown.bytes().all(|b| b.is_ascii_digit());
    if !in_digits || below.bytes().any(|b| b != b'0') {
        let (message, hint) = match unit {
            StartUnit::Picoseconds => (
                "the start is not a whole number",
                "start is in picoseconds: write 10us as 10000000, or set `start_unit = \"us\"` in \
                 the scenario",
            ),
            StartUnit::Microseconds => (
                "the start is not a whole number of picoseconds",
                "start is in microseconds: six digits after the point at most",
            ),
        };
        return Err(source.wrong(word, message, hint));
    }
    let scale = 10_u64.pow(digits as u32);
    let whole = source.whole(Word { text, ..word }, "the start", START_MAX / scale)?;
    // Padded to all digits, so that ".5" is half a microsecond; an empty fraction is zero.
    let part = format!("{shown:0<digits$}").parse().unwrap_or(0);
    Ok((whole * scale + part).min(START_MAX))
}

impl<'a> RawTrigger<'a> {
    const KEYS: [&'static str; 5] = ["id", "oneshot", "multishot", "barrier", "count"];

    fn read(source: &Source<'a>, line: &Line<'a>) -> Parsed<Self> {
        let mut trigger = Self { keyword: line.first(), id: None, kind: None, count: None };
        let mut at = 1;
        while at < line.words.len() {
            let (key, value) = (line.word(at), line.word(at + 1));
            at += 2;
            match key.text {
                "id" => {
                    set(source, key, &mut trigger.id, positive(source, value, "the trigger id")?)?;
                }
                "count" => {
                    set(source, key, &mut trigger.count, positive(source, value, "the count")?)?;
                }
                "oneshot" | "multishot" | "barrier" => {
                    set(source, key, &mut trigger.kind, key)?;
                    at -= 1;
                }
                text => {
                    return Err(source.wrong(key, "unknown attribute", one_of(text, &Self::KEYS)));
                }
            }
        }
        Ok(trigger)
    }

    fn kind(&self, source: &Source<'_>) -> Parsed<TriggerKind> {
        let kind = self.kind.ok_or_else(|| {
            let hint = "add one of oneshot, multishot, barrier";
            source.wrong(self.keyword, "the trigger has no kind", hint)
        })?;
        match (kind.text, self.count) {
            ("barrier", Some(count)) => Ok(TriggerKind::Barrier(count.number)),
            ("barrier", None) => Err(source.wrong(
                kind,
                "the barrier has no count",
                "write how many activations it waits for, as in \"barrier count 4\"",
            )),
            (_, Some(count)) => {
                Err(source.wrong(count.word, "only a barrier has a count", "remove the count"))
            }
            ("oneshot", None) => Ok(TriggerKind::Oneshot),
            _ => Ok(TriggerKind::Multishot),
        }
    }
}

impl<'a> RawFailure<'a> {
    const KEYS: [&'static str; 3] = ["switch_type", "switch_id", "link_id"];

    fn read(source: &Source<'a>, line: &Line<'a>) -> Parsed<Self> {
        let mut failure =
            Self { keyword: line.first(), switch_type: None, switch: None, link: None };
        for at in (1..line.words.len()).step_by(2) {
            let (key, value) = (line.word(at), line.word(at + 1));
            match key.text {
                "switch_type" => set(source, key, &mut failure.switch_type, value)?,
                "switch_id" => {
                    set(source, key, &mut failure.switch, number(source, value, "the switch id")?)?;
                }
                "link_id" => {
                    set(source, key, &mut failure.link, number(source, value, "the link id")?)?;
                }
                text => {
                    return Err(source.wrong(key, "unknown attribute", one_of(text, &Self::KEYS)));
                }
            }
        }
        Ok(failure)
    }

    fn get(&self, source: &Source<'_>) -> Parsed<LinkFailure> {
        let (Some(kind), Some(switch), Some(link)) = (self.switch_type, self.switch, self.link)
        else {
            let hint = "write \"failure switch_type AGG switch_id 0 link_id 0\"";
            return Err(source.wrong(self.keyword, "the failure is not complete", hint));
        };
        let switch_type = match kind.text {
            "TOR" => SwitchType::Tor,
            "AGG" => SwitchType::Agg,
            "CORE" => SwitchType::Core,
            text => {
                let hint = one_of(text, &["TOR", "AGG", "CORE"]);
                return Err(source.wrong(kind, "unknown switch type", hint));
            }
        };
        Ok(LinkFailure { switch_type, switch: switch.number, link: link.number })
    }
}

#[cfg(test)]
mod tests;
