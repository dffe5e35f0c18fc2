//! [`Scenario`]: an experiment as data, read, checked and resolved.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fabric::{LifeDetail, Threads, Topology};
use queues::QueueSpec;
use units::{Dur, Time};

use crate::check::demand::Demand;
use crate::check::{self, View};
use crate::diagnostic::{Checked, Diagnostic};
use crate::document::{self, At, Document, Node, Value};
use crate::host::Host;
use crate::key::{Section, keys, section};
use crate::level::{Levels, Rung};
use crate::measure::{self, Measure};
use crate::reader::Reader;
use crate::routing::Mode;
use crate::sample::Sample;
use crate::traffic::Traffic;
use crate::transport::custom::CustomTransport;
use crate::transport::{Around, Transports};
use crate::variant::{self, Variant};
use crate::{
    buffer, fault, files, host, level, lossless, packet_lifetime, queue, routing, topology,
    traffic, transport,
};

/// An experiment: topology, queues, routing, transport, traffic, faults, window and seed.
pub struct Scenario {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) topology: Arc<Topology>,
    pub(crate) transports: Transports,
    pub(crate) host: Host,
    pub(crate) traffic: Traffic,
    pub(crate) measure: Measure,
    /// How messages share links, if it is or may be run at flow level.
    pub(crate) sharing: Option<level::Sharing>,
    /// What of it is run packet by packet first, to correct flow level.
    pub(crate) sample: Option<Sample>,
    /// Why `engine.level = "auto"` takes packets without a sample.
    pub(crate) why_packets: Option<String>,
    pub(crate) config: fabric::Config,
    /// When the fault script changes something, and what.
    pub(crate) changes: BTreeMap<Time, String>,
    /// When the fault of each table begins.
    pub(crate) fault_begins: Vec<Time>,
    /// The place of the links that differ, for what only the whole fabric shows to be impossible.
    pub(crate) links_at: At,
    /// Where its tables stand, for what only the simulator can do.
    pub(crate) places: Places,
    /// What the traffic asks of the fabric.
    pub(crate) demand: Demand,
    /// What was suspicious when it was read.
    pub(crate) warnings: Vec<Diagnostic>,
    resolved: toml::Table,
}

/// Where the tables of a scenario stand.
pub(crate) struct Places {
    pub(crate) topology: At,
    pub(crate) transport: At,
    pub(crate) queue: At,
    pub(crate) buffer: At,
    pub(crate) host: At,
    pub(crate) measure: At,
    /// Of each traffic table.
    pub(crate) traffic: Vec<At>,
}

impl Places {
    fn of(tables: &Tables<'_>) -> Self {
        let first = tables.transport.first().unwrap_or(&tables.topology);
        Self {
            topology: tables.topology.place("kind"),
            transport: first.place("kind"),
            queue: tables.queue.place("kind"),
            buffer: tables.buffer.as_ref().unwrap_or(&tables.queue).place("size"),
            host: tables.host.place("stack"),
            measure: tables.measure.place("alone"),
            traffic: tables.traffic.iter().map(|table| table.place("size")).collect(),
        }
    }
}

/// Called while a long file is read, with its name and the share of it that has been read.
pub type OnReading<'a> = &'a dyn Fn(&str, f64);

impl Scenario {
    /// Read the scenario file `path`, or the scenario inside the `manifest.json` of a run, and
    /// apply the `--set` edits in order.
    ///
    /// # Errors
    /// The first thing that is wrong, where it is, and what would be right.
    pub fn load(path: &Path, edits: &[String]) -> Result<Self, Diagnostic> {
        Self::load_telling(path, edits, &|_, _| ())
    }

    /// The same; `on_reading` is told how far long files have been read.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn load_telling(
        path: &Path,
        edits: &[String],
        on_reading: OnReading<'_>,
    ) -> Result<Self, Diagnostic> {
        let dir = path.parent().unwrap_or(Path::new(""));
        let mut scenario = Self::edited(Document::load(path)?, (dir, on_reading), edits)?;
        scenario.warnings.extend(document::of_other_engine(path));
        Ok(scenario)
    }

    /// The `name` of the scenario file `path`, or of a manifest, and its `[[variant]]` tables.
    ///
    /// # Errors
    /// The file cannot be read, or the first thing that is wrong in these.
    pub fn name_and_variants(path: &Path) -> Result<(String, Vec<Variant>), Diagnostic> {
        let document = Document::load(path)?;
        let mut root = Reader::new(&document.root, &document.root.at, "the scenario")?;
        Ok((root.need("name")?, variant::read(&mut root)?))
    }

    /// The same for a text; `name` is what messages call it, and paths inside are relative to
    /// `dir`.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(name: &str, text: &str, dir: &Path, edits: &[String]) -> Result<Self, Diagnostic> {
        Self::edited(Document::parse(name, text)?, (dir, &|_, _| ()), edits)
    }

    fn edited(
        mut document: Document,
        files: (&Path, OnReading<'_>),
        edits: &[String],
    ) -> Result<Self, Diagnostic> {
        edits.iter().try_for_each(|edit| document.set(edit))?;
        Self::of_document(&document, files, None)
    }

    /// Read `document`; paths inside are relative to the directory of `files`, whose other part is
    /// told how far long files have been read. `custom` is what `transport.kind = "custom"` means.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn of_document(
        document: &Document,
        files: (&Path, OnReading<'_>),
        custom: Option<CustomTransport>,
    ) -> Result<Self, Diagnostic> {
        let root = Reader::new(&document.root, &document.root.at, "the scenario")?;
        read(root, files, custom)
    }

    /// The scenario's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The seed of every draw.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The fabric.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What counts, and when to give up.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// The name of each `[[traffic]]` table that has one.
    #[must_use]
    pub fn traffic_names(&self) -> &[Option<String>] {
        &self.traffic.names
    }

    /// Payload that all training jobs send over the network, bytes.
    #[must_use]
    pub fn job_bytes(&self) -> u64 {
        let jobs = self.traffic.tables.iter().filter_map(|part| part.job.as_deref());
        jobs.flat_map(ai::Job::volumes).map(|(_, _, volume)| volume.bytes).sum()
    }

    /// The share of a run that is done: of the window's time, or of the messages.
    #[must_use]
    pub fn done(&self, progress: &fabric::Progress) -> f64 {
        let (done, all) = match self.measure.to {
            Some(to) => (progress.now.0, to.0),
            None => (progress.delivered, progress.submitted),
        };
        if all == 0 { 0.0 } else { (done as f64 / all as f64).min(1.0) }
    }

    /// The scenario with all defaults spelled out: a scenario again, for the same run.
    #[must_use]
    pub fn resolved(&self) -> &toml::Table {
        &self.resolved
    }

    /// What tells this scenario from others, its seed left out: a fingerprint of
    /// [`resolved`](Self::resolved), which holds one of the text of each file that it names. The
    /// order in which keys are written does not count, nor does a default that is spelled out.
    #[must_use]
    pub fn identity(&self) -> u128 {
        let mut resolved = self.resolved.clone();
        resolved.remove("seed");
        // A table of texts, numbers and tables: this cannot fail. JSON has its keys in order.
        let canonical = serde_json::to_value(resolved).unwrap_or_default();
        files::fingerprint_128(canonical.to_string().as_bytes())
    }

    /// Whether time in which everything repeats is skipped.
    #[must_use]
    pub fn skips(&self) -> bool {
        self.config.skip.is_some()
    }

    /// What a run without packets says of itself; `None` if this is one with packets.
    #[must_use]
    pub fn without_packets(&self) -> Option<&'static str> {
        (self.rung() == Rung::Flow).then_some(level::MISSING)
    }

    /// Whether a part of it is run packet by packet first (`engine.calibrate`).
    #[must_use]
    pub fn is_calibrated(&self) -> bool {
        self.sample.is_some()
    }

    /// The level of what is run without a look at a sample.
    pub(crate) fn rung(&self) -> Rung {
        let is_open = self.sample.as_ref().is_some_and(|sample| sample.wanted.is_some());
        if self.sharing.is_some() && !is_open { Rung::Flow } else { Rung::Packet }
    }

    /// The base round-trip time between the hosts that are farthest apart.
    pub(crate) fn longest_rtt(&self) -> Dur {
        self.topology.longest_rtt()
    }
}

/// What stands above all tables.
#[derive(Default)]
struct About {
    name: String,
    seed: u64,
}

keys! { ROOT: About {
    name: String, "what the run is called in tables and reports".written();
    seed: u64, "seed of every random draw; `--seed N` changes it".range("0 to 2^63 - 1").written();
}}

/// For the reference: the keys above all tables.
pub(crate) fn keys() -> Vec<Section> {
    vec![section("scenario", ROOT, &[], None)]
}

/// Read every table, in the order in which one needs the others.
fn read(
    mut root: Reader<'_>,
    files: (&Path, OnReading<'_>),
    custom: Option<CustomTransport>,
) -> Checked<Scenario> {
    let (dir, _) = files;
    let mut about = About::default();
    // For `trimline sweep` and `tune`: they say nothing of a single run, nor is one of them a
    // mistyped `seed`.
    let sweep = root.node("sweep");
    root.node("tune");
    root.keys(ROOT, &mut about, None)?;
    root.complete(&[])?;
    let About { name, seed } = about;
    let mut tables = Tables::of(&mut root, sweep)?;

    let faults = fault::are_of_links(&tables.fault);
    let (mode, reroute_after, mut topology, mut transports) =
        routed(&mut tables, faults, (dir, seed), custom)?;
    let hosts = topology.hosts();
    let host = host::read(&mut tables.host, hosts)?;
    let queue = queue::read(&mut tables.queue, &transports, dir)?;
    lossless::check_memory(&tables.queue, &queue, &topology, host.clock)?;
    let pfc = lossless::read_pfc(&mut tables.queue, &queue, &topology)?;
    let buffer = match &mut tables.buffer {
        Some(table) => Some(buffer::read(table, &queue, transports.mtu())?),
        None => None,
    };
    let slows = fault::read_slow(&mut tables.fault, &topology)?;
    let around = (&transports, &slows);
    let traffic = traffic::read(&mut tables.traffic, files, seed, &mut topology, around)?;
    let acknowledges = transports.acknowledges().is_some();
    let demand = Demand::of(&traffic, &transports, &topology);
    let needed = demand.time_needed(&topology);
    let measure = measure::read(&mut tables.measure, &traffic, hosts, acknowledges, needed)?;
    let (fabric, of_gpus) = ((&topology, &transports), (&traffic, &slows));
    let script = fault::read(&mut tables.fault, fabric, of_gpus, reroute_after)?;
    let asked = level::Asked {
        transport: &tables.transport,
        transports: &transports,
        queue: &tables.queue,
        traffic: &tables.traffic,
        measure: (&tables.measure, &measure),
        fault: &tables.fault,
        changes: &script.changes,
        routing: (&tables.routing, mode),
        topology: &topology,
        metrics: tables.sweep_metrics(),
    };
    let Levels { sharing, sample, why_packets, skip } = level::read(&mut tables.engine, &asked)?;
    let mut of_switches = tables.queue.tables("switch")?;
    let mut queues_at = queue::at_switches(&mut of_switches, &queue, &topology, &transports)?;
    tables.queue.finish_tables("switch", of_switches)?;
    // Of no kind that has `[[queue.switch]]`.
    queues_at.extend(queue::at_last_hops(&queue, &topology));
    let mut of_links = tables.queue.tables("link")?;
    queue::links::read(&mut of_links, &queue, &topology, &transports, &mut queues_at)?;
    tables.queue.finish_tables("link", of_links)?;
    let queues_at: Vec<_> = queues_at.into_iter().collect();
    let queues: Vec<_> = queues_at.iter().map(|(_, queue)| queue).chain([&queue]).collect();
    let alone = buffer.is_none() && !transports.telemetry();
    topology::check_slots(&tables.topology, &topology, &queues, alone, &script.faults)?;
    let longest_life = packet_lifetime::longest(&topology, &queues, buffer, &host, &script.faults);
    set_packet_life(&tables, &mut transports, longest_life, &queues)?;
    let forgotten_after = forget_after(longest_life, &queues);

    let (links_at, places) = (tables.topology.place("link"), Places::of(&tables));
    let view = View {
        tables: &tables,
        topology: &topology,
        transports: &transports,
        queue: &queue,
        pfc: &pfc,
        traffic: &traffic,
        measure: &measure,
        script: &script,
        demand: &demand,
    };
    let found = check::warnings(&view);
    let lost = lost_telemetry(&tables, &topology, &transports);
    tables.finish(&mut root)?;
    let warnings = root.warnings().into_iter().chain(found).chain(lost).collect();
    let resolved = root.finish()?;
    let config = fabric::Config {
        seed,
        phase_seed: host.phase_seed.unwrap_or(seed),
        host_clock: host.clock,
        routing: mode.switches,
        encapsulations: transports.encapsulations(mode),
        queue,
        queues_at,
        buffer,
        pfc,
        telemetry: transports.telemetry(),
        faults: script.faults,
        reroute_after,
        events: fabric::Events::Wheel,
        departures: fabric::Departures::Lazy,
        threads: Threads::Fixed(1),
        grid: measure.grid(),
        limit: measure.limit,
        open_limit: measure.max_in_flight.unwrap_or(u64::MAX),
        window: (measure.from, measure.to.unwrap_or(Time::NEVER)),
        sample_every: Some(measure.sample_every(topology.links().len())),
        rtts: measure.rtt,
        life: if measure.life { LifeDetail::Sums } else { LifeDetail::None },
        flows: Vec::new(),
        packet_life: forgotten_after,
        check: false,
        skip,
    };
    let (topology, changes) = (Arc::new(topology), script.changes);
    Ok(Scenario {
        name,
        seed,
        topology,
        transports,
        host,
        traffic,
        measure,
        sharing,
        sample,
        why_packets,
        config,
        changes,
        fault_begins: script.begins,
        links_at,
        places,
        demand,
        warnings,
        resolved,
    })
}

/// How packets are routed, after how long around a fault, through what, and who sends them.
fn routed(
    tables: &mut Tables<'_>,
    faults: bool,
    (dir, seed): (&Path, u64),
    custom: Option<CustomTransport>,
) -> Checked<(Mode, Dur, Topology, Transports)> {
    let (mode, reroute_after) = routing::read(&mut tables.routing, faults)?;
    let topology = topology::read(&mut tables.topology, dir)?;
    let around = Around { mode, hosts: topology.hosts(), topology: &topology, dir, custom };
    let transports = transport::read(&mut tables.transport, &around)?;
    routing::check(&tables.routing, mode, &transports)?;
    routing::check_encoding(&tables.routing, mode, &topology)?;
    let topology = topology.with_mtu(transports.mtu());
    let topology = routing::listed(&mut tables.routing, mode, seed, (topology, dir))?;
    transport::check_telemetry(&tables.transport, &transports, &topology)?;
    transport::check_spacing(&tables.transport, &transports, &topology)?;
    transport::check_links(&tables.transport, &transports, &topology);
    Ok((mode, reroute_after, topology, transports))
}

/// Check that every transport remembers for as long as a packet lives, and tell it how long that
/// is.
fn set_packet_life(
    tables: &Tables<'_>,
    transports: &mut Transports,
    longest: Dur,
    queues: &[&QueueSpec],
) -> Checked<()> {
    for (table, transport) in tables.transport.iter().zip(transports.iter()) {
        packet_lifetime::check(table, transport, longest)?;
    }
    transports.set_packet_life(bounded(longest, queues));
    Ok(())
}

/// A packet's life, where there is a bound: for how long pauses stop a packet has none.
fn bounded(longest: Dur, queues: &[&QueueSpec]) -> Dur {
    let lossless = queues.iter().any(|queue| matches!(queue, QueueSpec::Lossless(_)));
    if lossless { Dur::MAX } else { longest }
}

/// How long after a message is over the run tells its ends to forget it: several lives, since a
/// class that others always go before waits for longer than its own queues take.
fn forget_after(longest: Dur, queues: &[&QueueSpec]) -> Dur {
    const LIVES: u64 = 8;
    Dur(bounded(longest, queues).0.saturating_mul(LIVES))
}

/// The tables of a scenario.
pub(crate) struct Tables<'d> {
    pub(crate) routing: Reader<'d>,
    topology: Reader<'d>,
    pub(crate) transport: Vec<Reader<'d>>,
    pub(crate) queue: Reader<'d>,
    buffer: Option<Reader<'d>>,
    host: Reader<'d>,
    engine: Reader<'d>,
    pub(crate) traffic: Vec<Reader<'d>>,
    pub(crate) measure: Reader<'d>,
    pub(crate) fault: Vec<Reader<'d>>,
    sweep: Option<&'d Node>,
}

impl<'d> Tables<'d> {
    /// Those of `root`. An error if one is missing that must be there.
    fn of(root: &mut Reader<'d>, sweep: Option<&'d Node>) -> Checked<Self> {
        let routing = required(root, "routing", "mode = \"permute\"")?;
        let topology = required(root, "topology", "kind = \"fat-tree\"")?;
        let transport = root.tables("transport")?;
        if transport.is_empty() {
            return Err(no_section(root, "transport", "kind = \"ndp\""));
        }
        let queue = required(root, "queue", "kind = \"ndp\"")?;
        let (buffer, host) = (root.table("buffer")?, root.table_or_empty("host")?);
        let engine = root.table_or_empty("engine")?;
        let traffic = root.tables("traffic")?;
        if traffic.is_empty() {
            return Err(root.missing("traffic", "add a table `[traffic]` with a `kind`"));
        }
        let (measure, fault) = (root.table_or_empty("measure")?, root.tables("fault")?);
        // For `trimline compare`.
        variant::read(root)?;
        Ok(Self {
            routing,
            topology,
            transport,
            queue,
            buffer,
            host,
            engine,
            traffic,
            measure,
            fault,
            sweep,
        })
    }

    /// What `[sweep]` shows, if there is one.
    pub(crate) fn sweep_metrics(&self) -> Option<&'d Value> {
        let Value::Table(table) = &self.sweep?.value else { return None };
        table.get("metrics").map(|(_, node)| &node.value)
    }

    /// All are read: check that they have no unknown key, and keep what was read.
    fn finish(mut self, root: &mut Reader<'d>) -> Checked<()> {
        root.finish_table("topology", self.topology)?;
        root.finish_table("queue", self.queue)?;
        if let Some(buffer) = self.buffer {
            root.finish_table("buffer", buffer)?;
        }
        root.finish_table("host", self.host)?;
        root.finish_table("engine", self.engine)?;
        root.finish_table("routing", self.routing)?;
        match self.transport.pop() {
            Some(alone) if self.transport.is_empty() => root.finish_table("transport", alone)?,
            last => {
                let all = self.transport.into_iter().chain(last).collect();
                root.finish_tables("transport", all)?;
            }
        }
        root.finish_tables("traffic", self.traffic)?;
        root.finish_table("measure", self.measure)?;
        root.finish_tables("fault", self.fault)
    }
}

/// A warning where packets pass more ports of NICs and switches than their telemetry holds.
fn lost_telemetry(
    tables: &Tables<'_>,
    topology: &Topology,
    transports: &Transports,
) -> Option<Diagnostic> {
    let ports = topology.longest_path().saturating_sub(1) as usize;
    let is_lost = topology.plane_count() > 1 && transports.telemetry() && ports > wire::int::HOPS;
    let message = format!(
        "packets pass {ports} ports that write telemetry, and hold that of {}: of the last ones, \
         where an incast queues, senders hear nothing",
        wire::int::HOPS
    );
    let hint = "a fabric with shorter paths, a leaf-spine for example, or fewer `planes`";
    is_lost.then(|| tables.topology.error("planes", message, "of so many").hint(hint).warning())
}

/// The table `key`, which must be there.
fn required<'d>(root: &mut Reader<'d>, key: &'static str, example: &str) -> Checked<Reader<'d>> {
    match root.table(key)? {
        Some(table) => Ok(table),
        None => Err(no_section(root, key, example)),
    }
}

fn no_section(root: &Reader<'_>, key: &'static str, example: &str) -> Diagnostic {
    root.missing(key, &format!("add a table `[{key}]` with `{example}` or another"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_life(queue: &str) -> Dur {
        let text = format!(
            "name = \"x\"\nseed = 1\n[topology]\nkind = \"star\"\nhosts = 3\nlink_rate = \
             \"100Gbps\"\nlink_delay = \"1us\"\n{queue}\n[routing]\nmode = \"permute\"\n[transport]\n\
             kind = \"ndp\"\npreset = \"paper\"\npayload = \"1000B\"\ninitial_window = 30\n[traffic]\nkind = \"incast\"\nreceiver = 0\n\
             senders = 2\nsize = \"90KB\"\n"
        );
        let scenario = Scenario::parse("x.toml", &text, Path::new("."), &[]);
        scenario.unwrap_or_else(|why| panic!("{}", why.render(false))).config.packet_life
    }

    /// Packets wait in paused ports for as long as it takes: nothing is forgotten there, or NDP
    /// would begin messages anew that are over.
    #[test]
    fn where_pauses_stop_packets_nothing_is_forgotten() {
        let ndp = "[queue]\nkind = \"ndp\"\ncapacity = \"8 packets\"";
        let lossless = "[queue]\nkind = \"lossless\"\nbuffer = \"400KB\"\nreserve = \"0B\"\n\
                        headroom = \"auto\"\nheadroom_beside = true\nresume_offset = \"0B\"\n\
                        lossless = [7, 0]\ncontrol_class = 3\nalpha = 0.5\n\
                        schedule = \"strict\"";
        assert!(packet_life(ndp) < Dur::from_ms(10));
        assert_eq!(packet_life(lossless), Dur::MAX);
    }
}
