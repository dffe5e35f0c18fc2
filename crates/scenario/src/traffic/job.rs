//! `kind = "job"`: a training job, whose ranks compute, send and wait for each other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ai::collective::{Algorithm, Cut, Unsuited};
use ai::{
    Choice, Config, Job, JobError, Model, ModelError, Op, Placement, PlacementError, Rank,
    Repeated, ScaleUp, Straggler, TaskGraph,
};
use endpoint::UNBOUNDED;
use fabric::Topology;
use units::{Dur, HostId, Rate, Time};
use workload::HostSet;

use super::sizes::Length;
use super::{Context, GapKind, LONGEST, Part, Written, boxed, job_placement, job_trace};
use crate::check::demand::Demand;
use crate::diagnostic::Checked;
use crate::key::keys;
use crate::value::choices;

/// The highest rate of a scale-up port: as that of links.
const FASTEST: Rate = Rate(100_000_000_000_000);

/// The most NICs of a node: as many as it may have ranks.
const NICS_MAX: u32 = 256;

/// The longest work of a job, 11 days: results count picoseconds in 63 bits, which are 106.
const WORK_MAX: Dur = Dur::from_ms(1_000_000_000);

/// A job of more tasks has no critical paths: each task takes memory for them.
const TASKS_TOLD: u64 = 1 << 20;

/// What a job's keys say.
#[derive(Default)]
pub(super) struct Keys {
    hosts: HostSet,
    ranks: Option<u32>,
    per_host: u32,
    nics: Option<u32>,
    wiring: Wiring,
    seating: Seating,
    seats: Option<PathBuf>,
    collective: Option<Collective>,
    file: Option<PathBuf>,
    groups: Option<PathBuf>,
    system: Option<PathBuf>,
    network: Option<PathBuf>,
    steps: u32,
    tensor: u32,
    data: Option<u32>,
    pipeline: u32,
    experts: u32,
    layers: u32,
    microbatches: u32,
    forward: Dur,
    backward: Dur,
    activations: Length,
    gradients: Length,
    dispatch: Length,
    overlap: bool,
    algorithm: Chosen,
    channels: Option<u32>,
    chunk: Option<Length>,
    in_flight: Option<u32>,
    scale_up_rate: Rate,
    scale_up_latency: Dur,
    straggler_share: f64,
    straggler_excess: f64,
    straggler_kind: GapKind,
}

keys! { "traffic.job" JOB: Written {
    hosts (job.hosts): HostSet, "the hosts that ranks may be placed on, lowest number first".default("");
    ranks_per_host (job.per_host): u32 [1..=256], "how many ranks (GPUs) a host has".written();
    placement (job.seating): Seating,
        "`packed`: ranks fill one host after the other. `spread`: each goes to the next host. \
         `file`: as `placement_file` says".written();
    placement_file (maybe job.seats when |w| w.job.seating == Seating::File): PathBuf,
        "a host for each rank, a number a line, rank 0 first; lines with `#` in front do not count"
            .default("required").only("`placement = \"file\"`");
    nics (maybe job.nics when |w| w.job.seating != Seating::File): u32 [1..=NICS_MAX],
        "how many hosts of the fabric are the NICs of one node. A rank uses the NIC that it is on; \
         ranks of one node exchange by its scale-up switch (docs/jobs.md#nodes-with-several-nics)"
            .range("1 to 256").default("`1`").only("a `placement` by rule");
    nic_wiring (job.wiring when |w| w.job.nics() > 1): Wiring,
        "`rail`: the NICs of a node hang at as many leaves, NIC r at leaf r of each group of \
         `nics` leaves. `leaf`: they are consecutive hosts of one leaf"
            .written().only("`nics` above 1");
    collective (maybe job.collective): Collective,
        "each step is this collective of all ranks"
            .default("this, `data_parallel` or `file` is required");
    file (maybe job.file): PathBuf,
        "a trace of a job (docs/jobs.md#traces), or the folder with the traces of all ranks"
            .range("`.goal`, `.txt` (SimAI), `.csv` (AICB), `.et` (Chakra)").default("");
    groups (maybe job.groups when |w| w.job.file.is_some()): PathBuf,
        "astra-sim's JSON of groups, for Chakra traces that do not say them".default("all ranks")
            .only("`file`");
    system (maybe job.system when |w| w.job.file.is_some()): PathBuf,
        "astra-sim's JSON of a system: the pieces of collectives, and the algorithm if that is \
         `trace`".default("none").only("`file`");
    network (maybe job.network when |w| w.job.file.is_some()): PathBuf,
        "astra-sim's JSON of a network for its ns-3 front end: the trace must have as many ranks"
            .default("none").only("`file`");
    ranks (maybe job.ranks when |w| w.job.collective.is_some()): u32 [1..=1 << 20],
        "how many ranks the job has".range("1 to 1048576").default("all that the hosts have")
            .only("`collective`");
    size (maybe part when |w| w.job.has_vector()): Length,
        "the whole vector of the collective: what each rank has (`all-reduce`, `reduce-scatter`, \
         `all-to-all`), gets (`all-gather`) or rank 0 has (`broadcast`)"
            .range("1 B to 10^15 B").default("required").only("`collective`, but `barrier`");
    compute (maybe compute when |w| w.job.collective.is_some()): Dur [Dur::ZERO..=LONGEST],
        "the work of each rank before the collective".default("`0`").only("`collective`");
    steps (job.steps when |w| w.job.file.is_none()): u32 [1..=1_000_000],
        "how many steps the job has".written().only("`collective` or `data_parallel`");
    data_parallel (maybe job.data): u32 [1..=1 << 20],
        "a model is trained: the number of its copies".default("");
    tensor_parallel (job.tensor when |w| w.job.is_model()): u32 [1..=1 << 20],
        "ranks that share each layer: two all-reduces of `activations` in each pass".written()
            .only(MODEL);
    pipeline_parallel (job.pipeline when |w| w.job.is_model()): u32 [1..=1 << 20],
        "stages: `activations` go from one to the next, and back. Forward and backward passes \
         alternate (1F1B)".written().only(MODEL);
    expert_parallel (job.experts when |w| w.job.is_model()): u32 [1..=1 << 20],
        "copies that share the experts of each layer: two all-to-alls of `dispatch` in each \
         pass. 1: no experts".range("a divisor of `data_parallel`").written().only(MODEL);
    layers (job.layers when |w| w.job.is_model()): u32 [1..=100_000],
        "layers of each stage".written().only(MODEL);
    microbatches (job.microbatches when |w| w.job.is_model()): u32 [1..=100_000],
        "parts of a step's batch, which pass one after the other".written().only(MODEL);
    forward (job.forward when |w| w.job.is_model()): Dur [Dur::ZERO..=LONGEST],
        "work of a rank for a layer and microbatch, forward".written().only(MODEL);
    backward (job.backward when |w| w.job.is_model()): Dur [Dur::ZERO..=LONGEST],
        "the same backward".written().only(MODEL);
    activations (job.activations when |w| w.job.has_activations()): Length,
        "what a layer gives to the next one for a microbatch".range("1 B to 10^15 B").written()
            .only("`tensor_parallel` or `pipeline_parallel` above 1");
    gradients (job.gradients when |w| w.job.has_gradients()): Length,
        "of a rank's part of a layer: an all-reduce over the copies at the end of each step"
            .range("1 B to 10^15 B").written().only("`data_parallel` above 1");
    dispatch (job.dispatch when |w| w.job.has_experts()): Length,
        "what a rank sends to all experts of a layer for a microbatch, its own included"
            .range("1 B to 10^15 B").written().only("`expert_parallel` above 1");
    overlap (job.overlap when |w| w.job.has_gradients()): bool,
        "whether a layer's gradients are reduced while those of the layers before it are worked \
         out; otherwise those of all layers at once, at the end".written()
            .only("`data_parallel` above 1");
    algorithm (job.algorithm): Chosen,
        "how collectives are carried out (docs/jobs.md#algorithms). `nccl`: a ring or a tree by \
         size, as NCCL's model of 2020 says (specs/ai-jobs.md#2). `trace`: as `system` says"
            .written();
    channels (maybe job.channels): u32 [1..=256],
        "channels among which a collective is divided, each with connections of its own"
            .range("1 to 256").default("`1`");
    chunk (maybe job.chunk): Length,
        "no message of a collective is longer (NCCL: 512 KiB)".range("1 B to 10^15 B")
            .default("as the algorithm has it");
    in_flight (maybe job.in_flight): u32 [1..=1 << 20],
        "the most messages of a collective that a channel has unacknowledged at one rank (NCCL: 8)"
            .range("at least 1").default("no limit");
    scale_up_rate (job.scale_up_rate when |w| w.job.has_scale_up()): Rate [Rate(1)..=FASTEST],
        "the ranks of a node exchange over a switch of their own (NVLink): the rate of a rank's \
         port, each way".written().only(SEVERAL);
    scale_up_latency (job.scale_up_latency when |w| w.job.has_scale_up()): Dur [Dur::ZERO..=LONGEST],
        "from one port of that switch to another; not 0 with several `nics`".written().only(SEVERAL);
    straggler_share (job.straggler_share): f64 [0.0..=1.0],
        "the share of pieces of work that take longer, drawn for each".default("");
    straggler_excess (job.straggler_excess when |w| w.job.straggler_share > 0.0): f64 [0.0..=1e6],
        "how much longer: 0.5 is half as long again".written().only("`straggler_share` above 0");
    straggler_kind (job.straggler_kind when |w| w.job.straggler_share > 0.0): GapKind,
        "whether `straggler_excess` is always the same, or the mean of what each draws"
            .default("`\"fixed\"`").only("`straggler_share` above 0");
    start: Time, "when the job begins".default("");
}}

const MODEL: &str = "`data_parallel`";
const SEVERAL: &str = "`ranks_per_host` or `nics` above 1";

/// Where ranks go.
#[derive(Clone, Copy, Default, PartialEq)]
enum Seating {
    #[default]
    Packed,
    Spread,
    File,
}

choices!(Seating, "packed" => Seating::Packed, "spread" => Seating::Spread, "file" => Seating::File);

/// Which hosts are one node.
#[derive(Clone, Copy, Default, PartialEq)]
enum Wiring {
    #[default]
    Rail,
    Leaf,
}

choices!(Wiring, "rail" => Wiring::Rail, "leaf" => Wiring::Leaf);

/// The collective of each step.
#[derive(Clone, Copy, PartialEq)]
enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Barrier,
}

choices!(Collective,
    "all-reduce" => Collective::AllReduce,
    "all-gather" => Collective::AllGather,
    "reduce-scatter" => Collective::ReduceScatter,
    "all-to-all" => Collective::AllToAll,
    "broadcast" => Collective::Broadcast,
    "barrier" => Collective::Barrier,
);

impl Collective {
    const fn op(self) -> Op {
        match self {
            Self::AllReduce => Op::AllReduce,
            Self::AllGather => Op::AllGather,
            Self::ReduceScatter => Op::ReduceScatter,
            Self::AllToAll => Op::AllToAll,
            Self::Broadcast => Op::Broadcast { root: Rank(0) },
            Self::Barrier => Op::Barrier,
        }
    }
}

/// The algorithm of collectives.
#[derive(Clone, Copy, Default, PartialEq)]
enum Chosen {
    #[default]
    Nccl,
    Trace,
    Fixed(Algorithm),
}

choices!(Chosen,
    "nccl" => Chosen::Nccl,
    "trace" => Chosen::Trace,
    "ring" => Chosen::Fixed(Algorithm::Ring),
    "tree" => Chosen::Fixed(Algorithm::Tree),
    "halving-doubling" => Chosen::Fixed(Algorithm::HalvingDoubling),
    "hierarchical" => Chosen::Fixed(Algorithm::Hierarchical),
    "direct" => Chosen::Fixed(Algorithm::Direct),
);

impl Keys {
    fn has_vector(&self) -> bool {
        self.collective.is_some_and(|collective| collective != Collective::Barrier)
    }

    fn has_scale_up(&self) -> bool {
        self.per_host > 1 || self.nics() > 1
    }

    fn nics(&self) -> u32 {
        self.nics.unwrap_or(1)
    }

    fn is_model(&self) -> bool {
        self.data.is_some()
    }

    fn has_activations(&self) -> bool {
        self.is_model() && (self.tensor > 1 || self.pipeline > 1)
    }

    fn has_gradients(&self) -> bool {
        self.data.is_some_and(|data| data > 1)
    }

    fn has_experts(&self) -> bool {
        self.is_model() && self.experts > 1
    }
}

/// `kind = "job"`.
pub(super) fn job(cx: &mut Context<'_, '_>) -> Checked<Part> {
    let hosts = cx.members("hosts", &cx.written.job.hosts)?;
    let hosts = nodes(cx, hosts)?;
    let listed = job_placement::read(cx, &hosts)?;
    let per_host = cx.written.job.per_host;
    let seats = match &listed {
        Some(listed) => listed.len(),
        None => u32::try_from(hosts.len()).unwrap_or(u32::MAX).saturating_mul(per_host),
    };
    let (graph, algorithm) = graph(cx, seats)?;
    let placement = match listed {
        Some(listed) => listed.of_job(cx, (graph.ranks(), per_host))?,
        None => placement(cx, graph.ranks(), &hosts)?,
    };
    let choice = choice(cx, algorithm, placement.hosts())?;
    let config = config(cx, choice, graph.len());
    let slowdowns = cx.slows.of_job(cx.written.name.as_deref(), &placement);
    let job = Job::new(graph, placement, config).map_err(|why| {
        let (key, hint) = match &why {
            JobError::Unsuited { why: Unsuited::TooManyChunks { .. }, .. } => {
                ("chunk", "a larger `chunk`, or fewer `channels`")
            }
            JobError::Unsuited { .. } => {
                ("algorithm", "another `algorithm`, `placement` or number of ranks")
            }
            JobError::Placed { .. } | JobError::TooMany(_) => ("steps", "fewer steps or ranks"),
        };
        cx.table.error(key, why.to_string(), "it does not suit this job").hint(hint)
    })?;
    let job = job.with_slowdowns(slowdowns);
    if job.longest_work() > WORK_MAX {
        let key = cx.table.likeliest(&["file", "collective", "data_parallel"]);
        let message = format!("its work takes {} on a network without delay", job.longest_work());
        let error = cx.table.error(key.unwrap_or("steps"), message, "this job takes too long");
        return Err(error.hint(format!("shorter work or fewer steps: {WORK_MAX} at most")));
    }
    let job = Arc::new(job);
    let longest = job.volumes().iter().map(|(_, _, volume)| volume.longest).max().unwrap_or(0);
    let (playing, asking) = (Arc::clone(&job), Arc::clone(&job));
    let part = Part::of_loop(
        &cx.written,
        Box::new(move |_| Ok(boxed(playing.players()))),
        Box::new(move |demand, topology| ask(&asking, demand, topology)),
    );
    Ok(Part { longest: vec![(longest, ["chunk", "size", "algorithm"])], job: Some(job), ..part })
}

/// The tasks that the keys describe, and the algorithm of a trace that has one.
fn graph(cx: &mut Context<'_, '_>, seats: u32) -> Checked<(TaskGraph, Option<Algorithm>)> {
    let hint = "add `collective = \"all-reduce\"`, the same in each step, `data_parallel = 8` and \
         the other keys of a model, or `file`, a trace";
    cx.table.one_of(&["collective", "data_parallel", "file"], hint)?;
    if cx.written.job.file.is_some() {
        let trace = job_trace::read(cx, seats)?;
        return Ok((trace.graph, trace.algorithm));
    }
    Ok((generated(cx, seats)?, None))
}

/// The tasks that the keys describe, without a trace.
fn generated(cx: &Context<'_, '_>, seats: u32) -> Checked<TaskGraph> {
    let keys = &cx.written.job;
    if let Some(collective) = keys.collective {
        if keys.has_vector() && cx.written.part.is_none() {
            return Err(cx.table.missing("size", "add `size = \"64MiB\"`, the whole vector"));
        }
        let repeated = Repeated {
            ranks: keys.ranks.unwrap_or(seats),
            op: collective.op(),
            bytes: cx.written.part.filter(|_| keys.has_vector()).map_or(0, |Length(bytes)| bytes),
            compute: cx.written.compute.unwrap_or_default(),
            steps: keys.steps,
        };
        return repeated.graph().map_err(|why| {
            let hint = "another number of `ranks`, or fewer `steps`";
            cx.table.error("collective", why.to_string(), "no job").hint(hint)
        });
    }
    let model = model(keys);
    // So that a slip is told before memory is full of tasks.
    let ranks = model.ranks().filter(|&ranks| ranks <= seats);
    if ranks.is_none() {
        let Model { tensor, data, pipeline, .. } = model;
        let message = format!("{tensor} x {data} x {pipeline} ranks, and the hosts have {seats}");
        let hint = "more `hosts` or `ranks_per_host`, or a smaller model";
        return cx.table.fail("data_parallel", message, "too many", hint);
    }
    model.graph().map_err(|why| {
        let key =
            if matches!(why, ModelError::Experts { .. }) { "expert_parallel" } else { "layers" };
        let hint = "a divisor of `data_parallel`; fewer steps, layers or microbatches";
        cx.table.error(key, why.to_string(), "impossible").hint(hint)
    })
}

fn model(keys: &Keys) -> Model {
    Model {
        tensor: keys.tensor,
        data: keys.data.unwrap_or(1),
        pipeline: keys.pipeline,
        experts: keys.experts,
        layers: keys.layers,
        microbatches: keys.microbatches,
        forward: keys.forward,
        backward: keys.backward,
        activations: keys.activations.0,
        gradients: keys.gradients.0,
        dispatch: keys.dispatch.0,
        overlap: keys.overlap,
        steps: keys.steps,
    }
}

fn placement(cx: &Context<'_, '_>, ranks: u32, hosts: &[HostId]) -> Checked<Placement> {
    let keys = &cx.written.job;
    let placed = match keys.seating {
        Seating::Spread => Placement::spread(ranks, hosts, keys.per_host),
        Seating::Packed | Seating::File => Placement::packed(ranks, hosts, keys.per_host),
    };
    let placed = placed.map(|placed| placed.with_nics(keys.nics()));
    placed.map_err(|why| {
        let key = match why {
            PlacementError::TooFewHosts { .. } => cx.table.likeliest(&["ranks", "data_parallel"]),
            PlacementError::PerHost(_) | PlacementError::Crowded { .. } => None,
        };
        let error = cx.table.error(key.unwrap_or("ranks_per_host"), why.to_string(), "here");
        error.hint("fewer ranks, more `ranks_per_host`, or a topology with more hosts")
    })
}

/// `hosts` in the order of nodes, the NICs of each after each other.
fn nodes(cx: &Context<'_, '_>, hosts: Vec<HostId>) -> Checked<Vec<HostId>> {
    let (nics, wiring) = (cx.written.job.nics() as usize, cx.written.job.wiring);
    if nics == 1 {
        return Ok(hosts);
    }
    if cx.written.job.scale_up_latency == Dur::ZERO {
        let message = "NICs of one node are hosts of their own, which nothing reaches at once";
        return cx.table.fail("scale_up_latency", message, "no delay", "above 0");
    }
    let refuse = |message: String, hint: String| {
        Err(cx.table.error("nics", message, "these nodes cannot be").hint(hint))
    };
    if !hosts.len().is_multiple_of(nics) {
        let message = format!("{} hosts are no whole number of nodes of {nics}", hosts.len());
        return refuse(message, "another number of `hosts` or `nics`".to_owned());
    }
    if wiring == Wiring::Leaf {
        let leaf = |host: &HostId| cx.topology.rack(*host);
        let split = hosts.chunks(nics).find(|node| node.iter().any(|h| leaf(h) != leaf(&node[0])));
        return match split {
            None => Ok(hosts),
            Some(node) => {
                let (first, last) = (node[0], node[nics - 1]);
                let message = format!("{first} to {last}, of one node, hang at several leaves");
                refuse(message, "as many hosts at each leaf as whole nodes have".to_owned())
            }
        };
    }
    let mut leaves: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
    hosts.iter().for_each(|&host| leaves.entry(cx.topology.rack(host)).or_default().push(host));
    let leaves: Vec<Vec<HostId>> = leaves.into_values().collect();
    let uneven = leaves.iter().find(|hosts| hosts.len() != leaves[0].len());
    if !leaves.len().is_multiple_of(nics) || uneven.is_some() {
        let message = match uneven {
            Some(other) => {
                format!("leaves have {} and {} hosts of this job", leaves[0].len(), other.len())
            }
            None => format!("{} leaves are no whole number of groups of {nics}", leaves.len()),
        };
        return refuse(message, "a leaf for each rail, with as many hosts each".to_owned());
    }
    let node = |group: &[Vec<HostId>], n: usize| group.iter().map(move |leaf| leaf[n]).collect();
    let groups = leaves.chunks(nics);
    let all = groups.flat_map(|group| (0..group[0].len()).map(move |n| node(group, n)));
    Ok(all.collect::<Vec<Vec<HostId>>>().concat())
}

/// The algorithm of collectives; `of_trace` is that of a trace.
fn choice(cx: &Context<'_, '_>, of_trace: Option<Algorithm>, hosts: &[HostId]) -> Checked<Choice> {
    let rate = hosts.iter().map(|&host| cx.topology.receive_rate(host)).min();
    let rate = rate.map(|rate| Rate(rate.0.saturating_mul(cx.written.job.nics().into())));
    match (cx.written.job.algorithm, of_trace) {
        (Chosen::Nccl, _) => Ok(Choice::Nccl(rate.unwrap_or(Rate(1)))),
        (Chosen::Fixed(algorithm), _) | (Chosen::Trace, Some(algorithm)) => {
            Ok(Choice::Fixed(algorithm))
        }
        (Chosen::Trace, None) => {
            let message = "no file of this job says an algorithm";
            let hint = "name astra-sim's `system`, or an algorithm";
            cx.table.fail("algorithm", message, "which one?", hint)
        }
    }
}

fn config(cx: &Context<'_, '_>, choice: Choice, tasks: u64) -> Config {
    let keys = &cx.written.job;
    Config {
        start: cx.written.start,
        choice,
        cut: Cut {
            channels: keys.channels.unwrap_or(1),
            chunk: keys.chunk.map_or(UNBOUNDED, |Length(bytes)| bytes),
            in_flight: keys.in_flight.unwrap_or(u32::MAX),
        },
        scale_up: ScaleUp {
            rate: if keys.has_scale_up() { keys.scale_up_rate } else { FASTEST },
            latency: keys.scale_up_latency,
        },
        straggler: Straggler {
            share: keys.straggler_share,
            excess: keys.straggler_excess,
            exponential: keys.straggler_kind == GapKind::Exponential,
        },
        channel: cx.channel(),
        prio: cx.written.priority,
        tell_tasks: tasks <= TASKS_TOLD,
    }
}

/// What a job asks of the fabric: all its messages, few of them at once.
fn ask(job: &Job, demand: &mut Demand, topology: &Topology) {
    for (from, to, volume) in job.volumes() {
        demand.bytes.pair(topology, from, to, volume.bytes as f64);
        demand.listed += volume.messages;
        demand.in_turn += volume.messages.saturating_sub(1);
    }
    demand.jobs += job.memory() as f64;
    let end = job.config().start.saturating_add(job.longest_work());
    demand.last_start = demand.last_start.max(end);
}
