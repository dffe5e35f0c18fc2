//! How partitions are built: which ports they have, where links between them end, and how wide
//! their slots are.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use endpoint::{App, Endpoint};
use queues::{Queue, QueueSpec};
use units::{Dur, HostId, Rate};

use crate::config::{Config, Departures, Events};
use crate::core::Core;
use crate::events::{EventQueue, Ranks};
use crate::faults::Script;
use crate::host_clock::Jitter;
use crate::hosts::Hosts;
use crate::link_state::LinkState;
use crate::links::{Links, Plan};
use crate::network::{Lengths, Network};
use crate::partition::Partition;
use crate::pfc::Pfc;
use crate::port::{FarEnd, Port, Slots};
use crate::route::Leg;
use crate::switch::{Elsewhere, Switch};
use crate::topology::{Link, Node, Topology};
use crate::wheel::Span;
use crate::world::World;

/// Packets in flight at a time, per host: more than there mostly are.
const PACKETS_PER_HOST: usize = 64;

/// Where a link from one partition to another ends.
struct ReceivingEnd {
    link: u32,
    from: u32,
    at: Elsewhere,
}

/// The links across the cut, in order. Within its partition, a receiving end comes after all ports
/// that transmit.
fn receiving_ends(world: &World) -> Vec<ReceivingEnd> {
    let World { topology, partitioning, .. } = world;
    let owners = |link: &Link| {
        (partitioning.owner(topology, link.from), partitioning.owner(topology, link.to))
    };
    let mut next = vec![0; partitioning.parts as usize];
    for link in topology.links() {
        next[owners(link).0 as usize] += 1;
    }
    let mut ends = Vec::new();
    for (n, link) in topology.links().iter().enumerate() {
        let (from, part) = owners(link);
        if from != part {
            let place = &mut next[part as usize];
            ends.push(ReceivingEnd { link: n as u32, from, at: Elsewhere { part, link: *place } });
            *place += 1;
        }
    }
    ends
}

/// What all partitions are built from.
pub(crate) struct Common {
    ranks: Ranks,
    ends: Vec<ReceivingEnd>,
    span: Span,
    shortest: u16,
    link_state: LinkState,
    script: Script,
}

impl Common {
    /// For links of these `rates`, and where the shortest signal takes `signals`.
    pub(crate) fn new(
        world: &World,
        rates: &[RangeInclusive<Rate>],
        signals: Option<Dur>,
        link_state: LinkState,
    ) -> Self {
        let World { topology, config, .. } = world;
        let shortest = shortest(config);
        Self {
            ranks: Ranks::new(topology.links().len() as u32, topology.hosts(), config.phase_seed),
            ends: receiving_ends(world),
            span: span(world, rates, signals, shortest),
            shortest,
            link_state,
            script: Script::new(topology, &config.faults, config.reroute_after),
        }
    }
}

/// Whether what happens at one port has no effect on another but by packets that it sends, and no
/// observer looks at packets on their way.
fn is_plain<const WATCHED: bool>(world: &World) -> bool {
    let World { topology, config, .. } = world;
    let lossless = matches!(config.queue, QueueSpec::Lossless(_));
    let alone = config.buffer.is_none() && !config.telemetry && !lossless;
    let lazy = config.departures == Departures::Lazy && topology.switch_slot().is_none();
    let sound = config.faults.is_empty() && topology.links().iter().all(|link| link.up);
    let wheel = config.events == Events::Wheel;
    alone && lazy && sound && wheel && !WATCHED && is_settled(world)
}

/// Whether the port to which a packet goes on follows from the packet alone.
fn is_settled(world: &World) -> bool {
    world.config.faults.is_empty() && world.forwarding.is_fixed(world.config.routing)
}

/// Whether each queue has room for the headers of all packets that may come within a slot.
fn has_room(topology: &Topology, ports: &[Port]) -> bool {
    let ways = topology.switches.iter().map(|switch| switch.downs() + switch.ups);
    // One over each link: a slot is over before a second one can have been sent.
    let arrivals = ways.max().unwrap_or(0);
    ports
        .iter()
        .all(|port| port.queue.as_ref().is_none_or(|q| q.arrivals_before_bounce() >= arrivals))
}

/// Partition `index`, with its hosts.
pub(crate) fn partition<'o, const WATCHED: bool>(
    world: &Arc<World>,
    index: u32,
    hosts: impl Iterator<Item = (Box<dyn Endpoint>, Box<dyn App>)>,
    common: &Common,
) -> Partition<'o, WATCHED> {
    let World { topology, config, partitioning, .. } = &**world;
    let Common { ranks, ends, .. } = common;
    let mine = partitioning.hosts(index);
    let switches = switches(world, index);
    let leaving: Vec<&ReceivingEnd> = ends.iter().filter(|end| end.from == index).collect();
    let ports = ports::<WATCHED>(world, index, &switches, ends, &leaving);
    let first_receiving = ports.len() - ends.iter().filter(|end| end.at.part == index).count();
    let pfc = Pfc::new(topology, config, &switches, &ports, first_receiving);
    let height = |port: &Port| topology.links()[port.rare.link as usize].height() as u8;
    let by_entity = (is_plain::<WATCHED>(world) && has_room(topology, &ports))
        .then(|| common.span.shift_by_entity(ports.len() as u32))
        .flatten();
    let mut queues = ports.iter().filter_map(|port| port.queue.as_ref());
    let bounces = queues.any(|queue| queue.arrivals_before_bounce() != u32::MAX);
    let shift = by_entity.unwrap_or(common.span.shift_in_order(ports.len() as u32));
    let numbers = ports.iter().map(|port| port.rare.link);
    let events = EventQueue::new(config.events, ranks, mine.clone(), numbers, common.span, shift);
    let plan = Plan {
        hosts: mine.len(),
        heights: ports.iter().map(height).collect(),
        ports,
        first_receiving,
        switches,
        elsewhere: leaving.iter().map(|end| end.at).collect(),
        jitter: jitter(world, mine.clone()),
        packets: PACKETS_PER_HOST * mine.len(),
    };
    let links = Links::new(Core::new(index, partitioning.parts, events), plan, config);
    let learnt = (common.link_state.clone(), common.script.clone());
    let lengths = Lengths::new(by_entity.map(|_| common.shortest), bounces);
    let network = Network::new(world, links, pfc, learnt, lengths, is_settled(world));
    Partition::new(Hosts::new(world, mine.start, hosts), network)
}

/// By host of `mine`; empty if packets are never late.
fn jitter(world: &World, mine: Range<u32>) -> Vec<Jitter> {
    let World { topology, config, .. } = world;
    let jitter = |host: u32| {
        let longest = config.host_clock.longest_delay(topology, host);
        (longest > Dur::ZERO).then(|| Jitter::new(config.phase_seed, HostId(host), longest))
    };
    mine.filter_map(jitter).collect()
}

/// The switches of a partition. Their ports come in the order of their links, after those of hosts.
fn switches(world: &World, index: u32) -> Vec<Switch> {
    let World { topology, partitioning, .. } = world;
    let mut next = partitioning.hosts(index).len() as u32;
    let mut mine = Vec::new();
    for (number, switch) in (0..).zip(&topology.switches) {
        if partitioning.switch_owner(number) != index {
            continue;
        }
        let (tier, below) = topology.below(number);
        let up = next + switch.downs();
        let end = up + switch.ups;
        mine.push(Switch { number, tier, below, down: next, up, end });
        next = end;
    }
    mine
}

fn ports<const WATCHED: bool>(
    world: &World,
    index: u32,
    switches: &[Switch],
    ends: &[ReceivingEnd],
    leaving: &[&ReceivingEnd],
) -> Vec<Port> {
    let World { topology, config, partitioning, .. } = world;
    let first_host = partitioning.hosts(index).start;
    let place = |node| {
        let number = topology.switch_at(node)?;
        Some(switches.partition_point(|switch| switch.number < number) as u32)
    };
    let here = |to: Node| match (to, place(to)) {
        (Node::Host(host), _) => FarEnd::Host(host - first_host),
        (_, at) => FarEnd::Switch(at.unwrap_or(u32::MAX)),
    };
    let departs = config.departures == Departures::Eager
        || config.buffer.is_some()
        || config.telemetry
        || matches!(config.queue, QueueSpec::Lossless(_))
        || topology.switch_slot().is_some();
    let port = |n: u32, end: FarEnd, transmits: bool| {
        let mut link = topology.links()[n as usize];
        let of_switch = link.from.is_switch();
        if let Node::Host(host) = link.from {
            link.rate = config.host_clock.rate(config.phase_seed, host, link.rate);
        }
        let queue = (of_switch && transmits).then(|| match (config.queue_of(n), config.buffer) {
            (QueueSpec::Lossless(spec), _) => {
                Queue::new(&QueueSpec::Lossless(Box::new(spec.at_rate(link.rate))))
            }
            (spec, None) if !config.telemetry => Queue::new(spec),
            (spec, _) => Queue::in_shared_buffer(spec),
        });
        let delay = topology.delay(n);
        let marks = queue.is_some() && config.queue_of(n).spec().marks_at_departure();
        let departs = departs || !of_switch || marks && WATCHED;
        let mut port = Port::new((n, &link), end, delay, queue, departs);
        if marks {
            port.set_marks();
        }
        if let FarEnd::Switch(at) = end {
            port.set_onward(switches[at as usize].down, Leg::after(&link));
        }
        if let Some(at) = place(link.from).filter(|_| transmits) {
            port.rare.switch = at;
            let slots = |every| Slots::new(every, topology.slot_heap());
            port.set_slots(topology.switch_slot().map(slots));
        }
        port
    };
    let links = (0..).zip(topology.links());
    let mine = links.filter(|(_, link)| partitioning.owner(topology, link.from) == index);
    let transmitting = mine.map(|(n, link)| {
        let end = match leaving.binary_search_by_key(&n, |end| end.link) {
            Ok(place) => FarEnd::Elsewhere(place as u32),
            Err(_) => here(link.to),
        };
        port(n, end, true)
    });
    let coming = ends.iter().filter(|end| end.at.part == index);
    let receiving =
        coming.map(|end| port(end.link, here(topology.links()[end.link as usize].to), false));
    // A third of all memory: not to be moved while it grows.
    let owned = |link: &&Link| partitioning.owner(topology, link.from) == index;
    let count = topology.links().iter().filter(owned).count();
    let mut ports = Vec::with_capacity(count + ends.len());
    ports.extend(transmitting.chain(receiving));
    ports
}

/// What no packet is shorter than, bytes, for all that is known: the shortest Ethernet frame, the
/// headers of some transport, or what is left of a packet that a queue trims.
fn shortest(config: &Config) -> u16 {
    let queues = config.queues_at.iter().map(|(_, queue)| queue).chain([&config.queue]);
    let headers = config.encapsulations.iter().map(|encapsulation| encapsulation.framing.overhead);
    queues.map(|queue| queue.spec().trims_to()).chain(headers).fold(SHORTEST, u16::min).max(1)
}

const SHORTEST: u16 = 64;

/// How far apart events are on links of these `rates`, with packets no shorter than `shortest`, and
/// where the shortest signal between applications takes `signals`.
fn span(
    world: &World,
    rates: &[RangeInclusive<Rate>],
    signals: Option<Dur>,
    shortest: u16,
) -> Span {
    let World { topology, config, .. } = world;
    let frame = |rate: &Rate| rate.serialise(u64::from(topology.mtu()));
    let reach = |(link, rate): (u32, &RangeInclusive<Rate>)| {
        let frame = frame(rate.start());
        // Slow clocks and longer jitter add to it: what the wheel does not reach goes into a heap.
        frame + topology.delay(link) + config.host_clock.longest_delay(topology, link).min(frame)
    };
    let slowest = (0..).zip(rates).map(reach).max();
    let quickest = rates.iter().map(|rate| frame(rate.end())).min();
    let sent = rates.iter().map(|rate| rate.end().serialise(u64::from(shortest)));
    let carried = (0..rates.len() as u32).map(|link| topology.delay(link));
    Span {
        horizon: slowest.unwrap_or(Dur::ZERO),
        frame: quickest.unwrap_or(Dur::ZERO),
        apart: sent.chain(carried).chain(signals).min().unwrap_or(Dur::ZERO),
    }
}
