//! The reader of Chakra execution traces (docs/specs/ai-traces.md#4): a file for each rank,
//! `NAME.RANK.et`, played as astra-sim plays it (docs/specs/ai-traces.md#5).
//!
//! - A node starts when the nodes of its control and data dependencies have ended.
//! - A computation takes its recorded duration; 0 counts as 1 ns, as there. Those on the CPU share
//!   one stream, the others another.
//! - Sends and receives have `comm_src`, `comm_dst`, `comm_size` and `comm_tag`.
//! - A collective has `comm_type`, `comm_size` and `pg_name`, its group: those of the metadata in
//!   the trace, then those of astra-sim's JSON; no name, or `0`, is all ranks. `comm_size` of an
//!   all-gather is what one rank brings.
//! - Broadcasts take their recorded duration, as there. Here also reduce, gather and scatter, which
//!   end astra-sim.
//! - astra-sim's JSON of a system cuts collectives into pieces (`preferred-dataset-splits`), of
//!   which `active-chunks-per-dimension` run at a time, and names their algorithm.
//! - astra-sim's JSON of a network says how many ranks there are, which must be those of the trace.
//! - Memory is not played: loads and stores take no time.
//! - astra-sim runs one collective or send of a rank at a time. Here all that can start does.

mod groups;
mod network;
mod proto;
mod system;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use units::Dur;

use self::groups::Names;
use self::proto::{CommType, Node, NodeType};
use self::system::System;
use super::{BYTES_MAX, File, Options, ReadError, Trace, WORK_MAX_PS, Warnings, hint};
use crate::graph::{Builder, Fault, GroupId, Kind, Op, Rank, Task, TaskId};

/// The longest duration, in microseconds.
const DURATION_MAX: u64 = WORK_MAX_PS / 1_000_000;

/// How long a computation takes whose duration is 0.
const NO_DURATION: Dur = Dur::from_ns(1);

const MEMORY: &str = "loads and stores of memory, which take no time";
const REPLAYED: &str =
    "broadcasts, reduces, gathers and scatters, which take their recorded time and send nothing";
const DIMENSIONS: &str = "collectives with involved_dim, which run over their whole group";

/// What is wrong with a file of records, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RecordError {
    /// The file, as the caller named it.
    pub file: String,
    /// The record, from 1; 0 for the file as a whole.
    pub record: u64,
    /// The byte at which it begins.
    pub offset: usize,
    /// What stands there; empty where something is missing.
    pub value: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if self.record > 0 {
            write!(f, "record {} at byte {}: ", self.record, self.offset)?;
        }
        f.write_str(&self.message)?;
        if !self.value.is_empty() {
            write!(f, ": {:?}", self.value)?;
        }
        write!(f, "\n  hint: {}", self.hint)
    }
}

/// Read the traces of all ranks, in any order of files.
///
/// # Errors
/// A file without a rank in its name, a rank without a file, more ranks than there is room for, a
/// record that is cut off or no Chakra, a dependency or group that does not exist.
pub fn read_chakra(files: &[File<'_>], options: &Options<'_>) -> Result<Trace, ReadError> {
    let files = by_rank(files, options.ranks)?;
    let ranks = files.len() as u32;
    let whole = |fault: &Fault| whole_file(files[0].name, &fault.to_string(), hint(fault));
    let mut builder = Builder::new(ranks).map_err(|fault| whole(&fault))?;
    let shared = match options.groups {
        Some(file) => groups::read(&file, ranks)?,
        None => Names::default(),
    };
    let mut warnings = Warnings::default();
    if let Some(file) = options.network {
        network::check(&file, ranks, &mut warnings)?;
    }
    let system = match options.system {
        Some(file) => system::read(&file, &mut warnings)?,
        None => System::default(),
    };
    // By rank and task: the record that it comes from.
    let mut records: Vec<Vec<Place>> = Vec::new();
    for (file, rank) in files.iter().zip((0..).map(Rank)) {
        let mut reader = Reader {
            file,
            rank,
            ranks,
            system,
            shared: &shared,
            own: Names::default(),
            ids: BTreeMap::new(),
            warnings,
        };
        let nodes = reader.nodes()?;
        records.push(reader.add(&nodes, &mut builder)?);
        warnings = reader.warnings;
    }
    let graph = builder.finish().map_err(|fault| {
        let at = |task: TaskId| {
            let file = files.get(task.rank.0 as usize)?;
            let place = records.get(task.rank.0 as usize)?.get(task.index as usize)?;
            Some((file, *place))
        };
        match fault.task().and_then(at) {
            Some((file, place)) => place.wrong(file.name, "", fault.to_string(), hint(&fault)),
            None => whole(&fault),
        }
    })?;
    Ok(Trace { graph, warnings: warnings.0, algorithm: system.algorithm })
}

fn whole_file(name: &str, message: &str, hint: &str) -> RecordError {
    let place = Place { record: 0, offset: 0 };
    place.wrong(name, "", message, hint)
}

/// The files in the order of their ranks, which their names say.
fn by_rank<'f, 'a>(files: &'f [File<'a>], room: u32) -> Result<Vec<&'f File<'a>>, RecordError> {
    if files.is_empty() {
        return Err(whole_file("", "no files", "give one for each rank: NAME.0.et, NAME.1.et"));
    }
    if files.len() > room as usize {
        let message = format!("{} files, but there is room for {room} ranks", files.len());
        let hint = "use a larger topology, more ranks a host, or a smaller trace";
        return Err(whole_file(files[0].name, &message, hint));
    }
    let mut sorted = Vec::with_capacity(files.len());
    for file in files {
        let number = file.name.strip_suffix(".et").and_then(|name| name.rsplit('.').next());
        let Some(rank) = number.and_then(|number| number.parse::<u32>().ok()) else {
            let hint = "name the files NAME.0.et, NAME.1.et and so on";
            return Err(whole_file(file.name, "the file's name does not say its rank", hint));
        };
        sorted.push((rank, file));
    }
    sorted.sort_by_key(|(rank, _)| *rank);
    for (index, (rank, file)) in (0..).zip(&sorted) {
        if *rank != index {
            let message = format!("a file of rank {rank}, but none of rank {index}, or two");
            let hint = "give one file for each rank, from 0";
            return Err(whole_file(file.name, &message, hint));
        }
    }
    Ok(sorted.into_iter().map(|(_, file)| file).collect())
}

/// A record.
#[derive(Clone, Copy, Debug)]
struct Place {
    record: u64,
    offset: usize,
}

impl Place {
    fn wrong(
        self,
        file: &str,
        value: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> RecordError {
        RecordError {
            file: file.to_owned(),
            record: self.record,
            offset: self.offset,
            value: value.into(),
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// Reads the file of one rank.
struct Reader<'r, 'a> {
    file: &'r File<'a>,
    rank: Rank,
    ranks: u32,
    system: System,
    /// Groups from astra-sim's JSON.
    shared: &'r Names,
    /// Those of the trace.
    own: Names,
    /// Groups that collectives have named so far, and how many ranks they have.
    ids: BTreeMap<String, (GroupId, u32)>,
    warnings: Warnings,
}

impl Reader<'_, '_> {
    /// All nodes, by id, each with its record.
    fn nodes(&mut self) -> Result<Vec<(Place, Node)>, RecordError> {
        let mut records = proto::Records::new(self.file.name, self.file.bytes);
        let Some((place, bytes)) = records.next().transpose()? else {
            let hint = "a trace begins with a record of metadata";
            return Err(whole_file(self.file.name, "the file is empty", hint));
        };
        proto::metadata(bytes).map_err(|error| {
            let hint = "is it a Chakra trace (.et), not compressed, not JSON?";
            place.wrong(self.file.name, "", format!("not metadata: {error}"), hint)
        })?;
        let mut nodes = Vec::new();
        for record in records {
            let (place, bytes) = record?;
            let node = proto::node(bytes).map_err(|error| {
                let hint = "is the file damaged, or of another version of Chakra?";
                place.wrong(self.file.name, "", format!("not a node: {error}"), hint)
            })?;
            nodes.push((place, node));
        }
        nodes.sort_by_key(|(_, node)| node.id);
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0].1.id == pair[1].1.id) {
            let (place, node) = &pair[1];
            let message = format!("record {} has the same id", pair[0].0.record);
            let hint = "each node of a rank has an id of its own";
            return Err(place.wrong(self.file.name, node.id.to_string(), message, hint));
        }
        Ok(nodes)
    }

    /// Add the nodes as tasks, in the order of their ids; gives the record of each task.
    fn add(
        &mut self,
        nodes: &[(Place, Node)],
        builder: &mut Builder,
    ) -> Result<Vec<Place>, RecordError> {
        for (place, node) in nodes.iter().filter(|(_, node)| node.kind == NodeType::METADATA) {
            let found = groups::in_metadata(node, self.ranks);
            self.own
                .extend(found.map_err(|error| self.wrong(*place, node, "", error, GROUP_HINT))?);
        }
        let mut records = Vec::with_capacity(nodes.len());
        let mut tasks: Vec<Range<u32>> = Vec::with_capacity(nodes.len());
        for (place, node) in nodes {
            let kind = self.kind(*place, node, builder)?;
            let pieces = self.pieces(*place, node, kind, builder)?;
            records.resize(pieces.end as usize, *place);
            tasks.push(pieces);
        }
        for ((place, node), pieces) in nodes.iter().zip(&tasks) {
            for &id in node.ctrl_deps.iter().chain(&node.data_deps) {
                let Ok(pred) = nodes.binary_search_by_key(&id, |(_, node)| node.id) else {
                    let message = "it waits for a node that the file does not have";
                    let hint = "is the file cut off?";
                    return Err(self.wrong(*place, node, id.to_string(), message, hint));
                };
                let [task, pred] = [pieces.start, tasks[pred].end - 1]
                    .map(|index| TaskId { rank: self.rank, index });
                builder.after(task, pred).map_err(|fault| self.fault(*place, &fault))?;
            }
        }
        Ok(records)
    }

    /// Add the tasks of a node: one, or the pieces of a collective between two points. The first is
    /// what waits, the last what others wait for.
    fn pieces(
        &self,
        place: Place,
        node: &Node,
        kind: Kind,
        builder: &mut Builder,
    ) -> Result<Range<u32>, RecordError> {
        let fault = |fault: Fault| self.fault(place, &fault);
        let label = match node.name.as_str() {
            "" => None,
            name => Some(builder.label(name).map_err(fault)?),
        };
        let rank = self.rank;
        let first = builder.len_of(rank);
        let mut add = |kind: Kind, preds: Range<u32>| {
            let task = builder.add(rank, Task { kind, step: 0, label })?;
            preds.into_iter().try_for_each(|index| builder.after(task, TaskId { rank, index }))?;
            Ok(task.index + 1)
        };
        let Kind::Collective { group, op, bytes } = kind else {
            return Ok(first..add(kind, 0..0).map_err(fault)?);
        };
        let splits = u64::from(self.system.splits).min(bytes);
        if splits <= 1 {
            return Ok(first..add(kind, 0..0).map_err(fault)?);
        }
        let mut next = add(POINT, 0..0).map_err(fault)?;
        for piece in 0..splits {
            let until = |n: u64| (u128::from(bytes) * u128::from(n) / u128::from(splits)) as u64;
            let bytes = until(piece + 1) - until(piece);
            // The piece that must end before this one can begin, or the point before all.
            let pred = next.saturating_sub(self.system.active).max(first);
            next = add(Kind::Collective { group, op, bytes }, pred..pred + 1).map_err(fault)?;
        }
        let last = next.saturating_sub(self.system.active).max(first + 1);
        Ok(first..add(POINT, last..next).map_err(fault)?)
    }

    fn wrong(
        &self,
        place: Place,
        node: &Node,
        value: impl Into<String>,
        message: impl fmt::Display,
        hint: impl Into<String>,
    ) -> RecordError {
        let message = format!("node {} ({:?}): {message}", node.id, node.name);
        place.wrong(self.file.name, value, message, hint)
    }

    fn fault(&self, place: Place, fault: &Fault) -> RecordError {
        place.wrong(self.file.name, "", fault.to_string(), hint(fault))
    }

    fn kind(
        &mut self,
        place: Place,
        node: &Node,
        builder: &mut Builder,
    ) -> Result<Kind, RecordError> {
        match NodeType::of(node.kind) {
            Some(NodeType::Invalid | NodeType::Metadata) => Ok(POINT),
            Some(NodeType::MemLoad | NodeType::MemStore) => {
                self.warnings.count(MEMORY);
                Ok(POINT)
            }
            Some(NodeType::Compute) => {
                let stream = u8::from(node.flag("is_cpu_op"));
                Ok(Kind::Compute { dur: self.duration(place, node)?, stream })
            }
            Some(NodeType::Send) => {
                let from = self.number(place, node, "comm_src", Some(self.rank.0))?;
                self.own_end(place, node, from, "comm_src")?;
                let to = Rank(self.number(place, node, "comm_dst", None)?);
                let (bytes, tag) = self.message(place, node)?;
                Ok(Kind::Send { to, bytes, tag })
            }
            Some(NodeType::Recv) => {
                let to = self.number(place, node, "comm_dst", Some(self.rank.0))?;
                self.own_end(place, node, to, "comm_dst")?;
                let from = Rank(self.number(place, node, "comm_src", None)?);
                let (bytes, tag) = self.message(place, node)?;
                Ok(Kind::Recv { from, bytes, tag })
            }
            Some(NodeType::Collective) => self.collective(place, node, builder),
            None => {
                let hint = "types are 0 to 7: docs/specs/ai-traces.md";
                Err(self.wrong(place, node, node.kind.to_string(), "unknown type", hint))
            }
        }
    }

    fn duration(&self, place: Place, node: &Node) -> Result<Dur, RecordError> {
        match node.duration_us {
            0 => Ok(NO_DURATION),
            us if us <= DURATION_MAX => Ok(Dur::from_us(us)),
            us => {
                let hint = "durations are in microseconds";
                Err(self.wrong(place, node, us.to_string(), "the duration is too long", hint))
            }
        }
    }

    /// A send belongs to its sender's file, a receive to its receiver's.
    fn own_end(&self, place: Place, node: &Node, end: u32, name: &str) -> Result<(), RecordError> {
        if end == self.rank.0 {
            return Ok(());
        }
        let message = format!("{name} is not rank {}, whose file this is", self.rank.0);
        let hint = "is the file named after another rank?";
        Err(self.wrong(place, node, end.to_string(), message, hint))
    }

    fn message(&self, place: Place, node: &Node) -> Result<(u64, u32), RecordError> {
        let tag = self.number(place, node, "comm_tag", Some(0))?;
        Ok((self.bytes(place, node)?, tag))
    }

    fn bytes(&self, place: Place, node: &Node) -> Result<u64, RecordError> {
        match node.integer("comm_size") {
            Some(bytes) => {
                u64::try_from(bytes).ok().filter(|&bytes| bytes <= BYTES_MAX).ok_or_else(|| {
                    let hint = "write comm_size in bytes, at most 10^15";
                    self.wrong(place, node, bytes.to_string(), "comm_size is no size", hint)
                })
            }
            None => {
                let hint = "messages and collectives have it, in bytes";
                Err(self.wrong(place, node, "", "it has no integer comm_size", hint))
            }
        }
    }

    /// A 32-bit attribute; `absent` is what it is without one.
    fn number(
        &self,
        place: Place,
        node: &Node,
        name: &str,
        absent: Option<u32>,
    ) -> Result<u32, RecordError> {
        let found = node.integer(name);
        let hint = "write it as an integer from 0 to 4294967295";
        match (found, absent) {
            (None, Some(absent)) => Ok(absent),
            (None, None) => {
                let message = format!("it has no integer {name}");
                Err(self.wrong(place, node, "", message, hint))
            }
            (Some(number), _) => u32::try_from(number).map_err(|_| {
                let message = format!("{name} does not fit 32 bits");
                self.wrong(place, node, number.to_string(), message, hint)
            }),
        }
    }

    fn collective(
        &mut self,
        place: Place,
        node: &Node,
        builder: &mut Builder,
    ) -> Result<Kind, RecordError> {
        let number = self.number(place, node, "comm_type", None)?;
        let Some(comm_type) = CommType::of(number) else {
            let hint = "types of collectives are 0 to 9: docs/specs/ai-traces.md";
            return Err(self.wrong(place, node, number.to_string(), "unknown comm_type", hint));
        };
        if node.attribute("involved_dim").is_some() {
            self.warnings.count(DIMENSIONS);
        }
        let op = match comm_type {
            CommType::AllReduce => Op::AllReduce,
            CommType::AllGather => Op::AllGather,
            CommType::ReduceScatter | CommType::ReduceScatterBlock => Op::ReduceScatter,
            CommType::AllToAll => Op::AllToAll,
            CommType::Barrier => Op::Barrier,
            CommType::Broadcast | CommType::Reduce | CommType::Gather | CommType::Scatter => {
                self.warnings.count(REPLAYED);
                return Ok(Kind::Compute { dur: self.duration(place, node)?, stream: COMM_STREAM });
            }
        };
        let (group, size) = self.group(place, node, builder)?;
        let bytes = match op {
            Op::Barrier => 0,
            Op::AllGather => self.gathered(place, node, size)?,
            _ => self.bytes(place, node)?,
        };
        Ok(if size == 1 { POINT } else { Kind::Collective { group, op, bytes } })
    }

    /// The vector that an all-gather of `size` ranks makes.
    fn gathered(&self, place: Place, node: &Node, size: u32) -> Result<u64, RecordError> {
        let part = self.bytes(place, node)?;
        let whole = part.saturating_mul(u64::from(size));
        if whole <= BYTES_MAX {
            return Ok(whole);
        }
        let hint = "a vector has at most 10^15 bytes";
        let message = format!("comm_size, of each of {size} ranks, is too large");
        Err(self.wrong(place, node, part.to_string(), message, hint))
    }

    /// The collective's group, and how many ranks it has.
    fn group(
        &mut self,
        place: Place,
        node: &Node,
        builder: &mut Builder,
    ) -> Result<(GroupId, u32), RecordError> {
        let name = node.text("pg_name").unwrap_or("");
        if let Some(found) = self.ids.get(name) {
            return Ok(*found);
        }
        let members = match self.own.get(name).or_else(|| self.shared.get(name)) {
            _ if matches!(name, "" | "0") => &[],
            Some(members) => members.as_slice(),
            None => {
                let message = "neither the trace nor the file of groups has this group";
                return Err(self.wrong(place, node, name, message, GROUP_HINT));
            }
        };
        let (group, size) = match members {
            [] => (builder.everyone(), self.ranks),
            members => (builder.group(members), members.len() as u32),
        };
        let group = group.map_err(|fault| self.fault(place, &fault))?;
        self.ids.insert(name.to_owned(), (group, size));
        Ok((group, size))
    }
}

/// A node without work.
const POINT: Kind = Kind::Compute { dur: Dur::ZERO, stream: 0 };

/// The stream of collectives that take their recorded time.
const COMM_STREAM: u8 = 2;

const GROUP_HINT: &str = "groups stand in a metadata node, as [{\"pg_name\": \"1\", \"ranks\": \
                          [0, 1]}], or in a JSON file, as {\"1\": [0, 1]}";

#[cfg(test)]
mod tests;
