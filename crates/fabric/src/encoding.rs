//! The path that a sender has chosen, written into the packet in the forms that networks use
//! (specs/ndp.md#6): a list of output ports, the label of a switch, an address per switch.
//!
//! The *turn* of a path is the switch at which it turns down. Turns have numbers: core switches
//! theirs, then the aggregation switches of a pod, in every pod the same. Each form is carried in
//! the packet's scratch, and each has tables, made from the links once and the same for the whole
//! run: a dead link changes which paths senders choose, not where a path leads.

use endpoint::Packet;
use units::HostId;

use crate::config::{ConfigError, Encoding, Routing};
use crate::topology::{Node, Shape, Switch, Tier, Topology};

/// What switches and hosts look up, for the form in force.
pub(crate) enum Tables {
    /// Nothing: the path's index says it all, or switches choose.
    None,
    /// Source routes are the links themselves.
    SourceRoute,
    /// By switch and label: the port up. Ports count from the switch's first.
    CoreLabel(Vec<Vec<u16>>),
    /// By switch: where addresses lead.
    CoreAddress(AddressPlan, Vec<Prefixes>),
}

/// No port: a label that never comes here.
const NO_PORT: u16 = u16::MAX;
/// All tables of prefixes together have no more entries than this, 128 MB.
const PREFIXES_MAX: u64 = 16_000_000;
/// All tables of labels together have no more entries than this, 200 MB.
const LABELS_MAX: u64 = 100_000_000;

impl Encoding {
    /// Whether a fabric can have this form.
    ///
    /// # Errors
    /// If it is no tree of tiers, addresses would need more than 32 bits, or tables are too large.
    pub fn check(self, topology: &Topology) -> Result<(), ConfigError> {
        let what = match &topology.shape {
            Shape::Tree => return self.check_tables(topology),
            Shape::Graph(_) => format!("a {} has no core switches to name", topology.kind()),
            Shape::Planes(_) => "no form here tells the plane".to_owned(),
            Shape::Valiant { .. } => {
                "a vl2 has two ways down from a core switch, of which no form here tells".to_owned()
            }
        };
        Err(ConfigError(what))
    }

    fn check_tables(self, topology: &Topology) -> Result<(), ConfigError> {
        match self {
            Self::SourceRoute => Ok(()),
            Self::CoreLabel => check_labels(topology),
            Self::CoreAddress => check_addresses(topology),
        }
    }
}

fn check_labels(topology: &Topology) -> Result<(), ConfigError> {
    let choosing = topology.switches.iter().filter(|switch| switch.ups > 0).count() as u64;
    fits("a label per core switch", choosing * u64::from(turns(topology)), LABELS_MAX)
}

fn check_addresses(topology: &Topology) -> Result<(), ConfigError> {
    let bits = AddressPlan::bits(topology).iter().sum::<u32>();
    if bits > u32::BITS {
        return Err(ConfigError(format!("an address per core switch takes {bits} bits of 32")));
    }
    let entries = |switch: &Switch| {
        let (downs, ups) = (u64::from(switch.downs()), u64::from(switch.ups));
        let turns = match switch.tier {
            Tier::Agg => 1 + ups,
            Tier::Core => 1,
            _ => u64::from(turns(topology)),
        };
        turns * (downs + 1)
    };
    fits("an address per core switch", topology.switches.iter().map(entries).sum(), PREFIXES_MAX)
}

fn fits(form: &str, entries: u64, most: u64) -> Result<(), ConfigError> {
    if entries > most {
        let what = format!("{form} takes {entries} table entries; at most {most}");
        return Err(ConfigError(what));
    }
    Ok(())
}

impl Tables {
    pub(crate) fn new(topology: &Topology, routing: Routing) -> Result<Self, ConfigError> {
        let Routing::Encoded(encoding) = routing else { return Ok(Self::None) };
        encoding.check(topology)?;
        let switches = 0..topology.switches.len();
        Ok(match encoding {
            Encoding::SourceRoute => Self::SourceRoute,
            Encoding::CoreLabel => Self::CoreLabel(switches.map(|n| labels(topology, n)).collect()),
            Encoding::CoreAddress => {
                let plan = AddressPlan::new(topology);
                let tables = switches.map(|n| Prefixes::new(topology, &plan, n)).collect();
                Self::CoreAddress(plan, tables)
            }
        })
    }

    /// The sender writes its packet's path into it.
    pub(crate) fn write(&self, topology: &Topology, pkt: &mut Packet) {
        match self {
            Self::None => {}
            Self::SourceRoute => {
                write_route(topology, topology.homes[pkt.src.index()].tor(), pkt);
            }
            Self::CoreLabel(_) => {
                let turn = turn(topology, pkt);
                put(&mut pkt.scratch, 0, turn);
            }
            Self::CoreAddress(plan, _) => {
                let turn = turn(topology, pkt);
                put(&mut pkt.scratch, 0, plan.address(topology, turn, pkt.dst));
                put(&mut pkt.scratch, 2, plan.address(topology, turn, pkt.src));
            }
        }
    }

    /// The port by which switch `at` (its index among all) sends the packet on.
    pub(crate) fn port(&self, topology: &Topology, at: u32, pkt: &mut Packet) -> u32 {
        let switch = &topology.switches[at as usize];
        let port = match self {
            Self::None => 0,
            Self::SourceRoute => {
                pkt.scratch.rotate_left(1);
                let last = pkt.scratch.len() - 1;
                std::mem::take(&mut pkt.scratch[last])
            }
            Self::CoreLabel(labels) => match port_down(topology, at, pkt.dst) {
                Some(down) => down,
                None => labels[at as usize][get(&pkt.scratch, 0) as usize],
            },
            Self::CoreAddress(_, tables) => tables[at as usize].port(get(&pkt.scratch, 0)),
        };
        debug_assert!(u32::from(port) < switch.downs() + switch.ups);
        u32::from(port)
    }

    /// A header turns back at switch `at`, its source and destination already exchanged.
    pub(crate) fn turn_back(&self, topology: &Topology, at: u32, pkt: &mut Packet) {
        match self {
            Self::None | Self::CoreLabel(_) => {}
            // Switches note by which port a packet comes. That list, the last first, is what
            // remains from here of the same path's way back.
            Self::SourceRoute => write_route(topology, at, pkt),
            Self::CoreAddress(..) => pkt.scratch[..4].rotate_left(2),
        }
    }
}

/// The port by which switch `at` leads down to `host`, if it does.
fn port_down(topology: &Topology, at: u32, host: HostId) -> Option<u16> {
    let ((tier, below), home) = (topology.below(at), &topology.homes[host.index()]);
    (home.below[tier] == below).then_some(home.down[tier])
}

/// The path of a packet, whatever a transport wrote that has no choice.
fn index(topology: &Topology, pkt: &Packet) -> u32 {
    let [aggs, cores] = topology.digits;
    pkt.path % (aggs * cores)
}

/// The output ports from switch `from` on, in order.
fn write_route(topology: &Topology, from: u32, pkt: &mut Packet) {
    let switch =
        |link: u32| topology.switch_at(topology.links()[link as usize].from).unwrap_or(u32::MAX);
    let links = topology.path_links(pkt.src, pkt.dst, index(topology, pkt));
    let ports = links
        .skip_while(|&link| switch(link) != from)
        .map(|link| (link - topology.switches[switch(link) as usize].down) as u16);
    pkt.scratch = [0; 5];
    for (slot, port) in pkt.scratch.iter_mut().zip(ports) {
        *slot = port;
    }
}

/// How many numbers turns have. At least 1: a rack's own switch needs none and gets 0.
fn turns(topology: &Topology) -> u32 {
    (topology.switches_of(Tier::Core) + topology.aggs).max(1)
}

/// The number of an aggregation switch as a turn, from its number within the pod. The other ToR of
/// a dumbbell counts as the only one.
fn agg_turn(topology: &Topology, agg: u32) -> u32 {
    topology.switches_of(Tier::Core) + agg
}

/// Where the path of a packet turns down.
fn turn(topology: &Topology, pkt: &Packet) -> u32 {
    let [src, dst] = [pkt.src, pkt.dst].map(|host| &topology.homes[host.index()]);
    let path = index(topology, pkt);
    let (agg, core) = (path % topology.digits[0], path / topology.digits[0]);
    if src.tor() == dst.tor() {
        0
    } else if src.pod() == dst.pod() {
        agg_turn(topology, agg)
    } else {
        agg * topology.cores_per_agg + core
    }
}

/// The turns that lie over each up port of switch `at`: turn and port.
fn turns_above(topology: &Topology, at: usize) -> Vec<(u32, u16)> {
    let switch = &topology.switches[at];
    let first = switch.downs();
    let mut above = Vec::new();
    for up in 0..switch.ups {
        let port = (first + up) as u16;
        match topology.links()[(switch.up + up) as usize].to {
            Node::Switch(Tier::Core, core) => above.push((core, port)),
            Node::Switch(Tier::Agg, agg) => {
                let agg = topology.switch_index(Tier::Agg, agg);
                above.push((agg_turn(topology, up), port));
                above.extend(turns_above(topology, agg).iter().map(|&(turn, _)| (turn, port)));
            }
            _ => above.push((agg_turn(topology, up), port)),
        }
    }
    above
}

/// The port up to each label. A switch without ports up needs none: all hosts are below it.
fn labels(topology: &Topology, at: usize) -> Vec<u16> {
    if topology.switches[at].ups == 0 {
        return Vec::new();
    }
    let mut ports = vec![NO_PORT; turns(topology) as usize];
    for (turn, port) in turns_above(topology, at) {
        ports[turn as usize] = port;
    }
    ports
}

/// What the bits of an address say, from the highest: turn, pod, rack within it, host within that.
/// Where all of it fits into 24 bits, addresses are of 10.0.0.0/8 (RFC 1918).
pub(crate) struct AddressPlan {
    /// By how much each is shifted, and the network.
    shifts: [u32; 4],
    network: u32,
}

impl AddressPlan {
    /// How many bits each takes.
    fn bits(topology: &Topology) -> [u32; 4] {
        let most = |tier: usize| {
            topology.homes.iter().map(|home| u32::from(home.down[tier])).max().unwrap_or(0)
        };
        let bits = |largest: u32| u32::BITS - largest.leading_zeros();
        [bits(turns(topology) - 1), bits(topology.pods() - 1), bits(most(1)), bits(most(0))]
    }

    fn new(topology: &Topology) -> Self {
        let [turn, pod, rack, slot] = Self::bits(topology);
        let network = if turn + pod + rack + slot <= 24 { 10 << 24 } else { 0 };
        Self { shifts: [pod + rack + slot, rack + slot, slot, 0], network }
    }

    /// The address below `turn` whose other parts are `parts`, as many as are given.
    fn prefix(&self, turn: u32, parts: &[u32]) -> Prefix {
        let all = [turn].into_iter().chain(parts.iter().copied());
        let shifted = all.zip(self.shifts).map(|(part, shift)| u64::from(part) << shift);
        let value = shifted.fold(u64::from(self.network), |address, part| address | part) as u32;
        Prefix { value, shift: self.shifts[parts.len()] }
    }

    fn address(&self, topology: &Topology, turn: u32, host: HostId) -> u32 {
        let home = &topology.homes[host.index()];
        let parts = [home.pod(), u32::from(home.rack()), u32::from(home.slot())];
        self.prefix(turn, &parts).value
    }
}

/// An address of which the lowest `shift` bits do not matter.
#[derive(Clone, Copy)]
struct Prefix {
    value: u32,
    shift: u32,
}

impl Prefix {
    fn key(self) -> u32 {
        (u64::from(self.value) >> self.shift) as u32
    }
}

/// A table of prefixes: for each length, from the longest on, the sorted prefixes and their ports.
#[derive(Default)]
pub(crate) struct Prefixes(Vec<(u32, Vec<(u32, u16)>)>);

impl Prefixes {
    /// The table of switch `at`: down to what is below it, for each turn at or above it; up to each
    /// turn above it.
    fn new(topology: &Topology, plan: &AddressPlan, at: usize) -> Self {
        let switch = &topology.switches[at];
        let above = turns_above(topology, at);
        let (pod, index) = (u32::from(switch.pod), u32::from(switch.index));
        let mut here: Vec<u32> = above.iter().map(|&(turn, _)| turn).collect();
        match switch.tier {
            Tier::Agg => here.push(agg_turn(topology, index)),
            Tier::Core => here.push(index),
            // Paths within the rack bear turn 0.
            _ if here.contains(&0) => {}
            _ => here.push(0),
        }
        let mut table = Self::default();
        for &turn in &here {
            for port in 0..switch.downs() {
                let prefix = match switch.tier {
                    Tier::Agg => plan.prefix(turn, &[pod, port]),
                    Tier::Core => plan.prefix(turn, &[port]),
                    _ => plan.prefix(turn, &[pod, index, port]),
                };
                table.add(prefix, port as u16);
            }
        }
        for (turn, port) in above {
            table.add(plan.prefix(turn, &[]), port);
        }
        table.0.iter_mut().for_each(|(_, ports)| ports.sort_unstable());
        table
    }

    /// Prefixes come from the longest to the shortest.
    fn add(&mut self, prefix: Prefix, port: u16) {
        let entry = (prefix.key(), port);
        match self.0.last_mut() {
            Some((shift, ports)) if *shift == prefix.shift => ports.push(entry),
            _ => self.0.push((prefix.shift, vec![entry])),
        }
    }

    /// The port of the longest prefix of `address`.
    fn port(&self, address: u32) -> u16 {
        let found = self.0.iter().find_map(|(shift, ports)| {
            let key = Prefix { value: address, shift: *shift }.key();
            ports.binary_search_by_key(&key, |&(key, _)| key).ok().map(|at| ports[at].1)
        });
        found.unwrap_or(NO_PORT)
    }
}

/// A word of 32 bits in two of 16.
fn put(words: &mut [u16; 5], at: usize, value: u32) {
    (words[at], words[at + 1]) = ((value >> 16) as u16, value as u16);
}

fn get(words: &[u16; 5], at: usize) -> u32 {
    u32::from(words[at]) << 16 | u32::from(words[at + 1])
}
