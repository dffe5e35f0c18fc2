//! A record of a switch, played to the simulator: the same arrivals at the same instants. What its
//! ports do is to be what the switch did.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use endpoint::{
    App, AppCx, Cx, Drop, Endpoint, Msg, Observer, Packet, PacketEvent, Submit, Tx, TxPort,
};
use fabric::{Config, Departures, FaultAction, LinkSpec, Node, Sim, Threads, Tier, Topology};
use units::{Dur, Time, TimerId};

use crate::record::{Entry, Event};
use crate::switch::{FASTEST, PROPAGATION};

/// The tail of a run: everything that has come has left.
const TAIL: Dur = Dur::from_ms(10_000);

/// Why a record cannot be played, or what was different.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Only the switch of a star can be alone in a simulation.
    #[error("only a record of the switch of a star can be played, not of a {0}")]
    NoStar(&'static str),
    /// The simulator refuses the scenario, or the packets.
    #[error("the simulator: {0}")]
    Simulator(String),
    /// Not the same.
    #[error("packet {packet}: the switch has {switch}, the simulator {simulator}")]
    Different {
        /// The packet's number.
        packet: u64,
        /// What it did.
        switch: String,
        /// What the simulator does.
        simulator: String,
    },
}

/// What became of the packets of a record, in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Packets with the same events at the same instants.
    pub packets: u64,
    /// Events of them, arrivals not counted.
    pub events: u64,
}

/// Play `record` of the switch of `topology`, a star, to the simulator with `config`, and compare
/// what becomes of each packet, to the picosecond. A record may end while packets are in the
/// switch: of these, what is recorded is compared.
///
/// # Errors
/// The first difference, or why there is nothing to compare.
pub fn replay(
    topology: &Topology,
    config: &Config,
    record: &[Entry],
) -> Result<Agreement, ReplayError> {
    if topology.kind() != "star" {
        return Err(ReplayError::NoStar(topology.kind()));
    }
    let simulated = simulate(topology, config, record)?;
    let recorded = fates(record.iter().filter(|entry| entry.event != Event::Arrived));
    let last = record.iter().map(|entry| entry.at).max().unwrap_or(Time::ZERO);
    let before = simulated.iter().filter(|entry| entry.at <= last);
    let simulated = fates(before);
    let mut agreement = Agreement::default();
    let packets: BTreeSet<u64> = recorded.keys().chain(simulated.keys()).copied().collect();
    for packet in packets {
        let of = |fates: &BTreeMap<u64, Vec<String>>| {
            fates.get(&packet).map_or("nothing".to_owned(), |fates| fates.join(", "))
        };
        let (switch, simulator) = (of(&recorded), of(&simulated));
        if switch != simulator {
            return Err(ReplayError::Different { packet, switch, simulator });
        }
        agreement.packets += 1;
        agreement.events += recorded.get(&packet).map_or(0, |fates| fates.len() as u64);
    }
    Ok(agreement)
}

/// By packet, what happened to it in order.
fn fates<'a>(entries: impl Iterator<Item = &'a Entry>) -> BTreeMap<u64, Vec<String>> {
    let mut fates: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for Entry { at, event, packet, out, len, .. } in entries {
        let what = format!("{event} at {} ps, link {out}, {len} B", at.0);
        fates.entry(*packet).or_default().push(what);
    }
    fates
}

/// Feed the arrivals of `record` into a simulated star, and take down what becomes of them.
fn simulate(
    topology: &Topology,
    config: &Config,
    record: &[Entry],
) -> Result<Vec<Entry>, ReplayError> {
    let hosts = topology.hosts();
    let mut star = topology.clone();
    for link in 0..hosts {
        star.set_link(link, LinkSpec { rate: FASTEST, delay: PROPAGATION });
        let rate = topology.links()[(hosts + link) as usize].rate;
        star.set_link(hosts + link, LinkSpec { rate, delay: PROPAGATION });
    }
    let last = record.iter().map(|entry| entry.at).max().unwrap_or(Time::ZERO);
    let rates = |fault: &&fabric::Fault| {
        fault.link >= hosts && matches!(fault.action, FaultAction::Rate(_))
    };
    let config = Config {
        faults: config.faults.iter().filter(rates).copied().collect(),
        departures: Departures::Lazy,
        threads: Threads::Fixed(1),
        limit: last + TAIL + TAIL,
        open_limit: u64::MAX,
        window: (Time::ZERO, Time::NEVER),
        host_clock: fabric::HostClock::default(),
        sample_every: None,
        skip: None,
        ..config.clone()
    };
    let endpoints = (0..hosts).map(|link| Box::new(Feeder::new(record, link)) as Box<dyn Endpoint>);
    let apps = (0..hosts).map(|_| Box::new(Until { at: last + TAIL, over: false }) as Box<dyn App>);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut observer = Watch { hosts, star: star.clone(), seen: Arc::clone(&seen) };
    let simulator = |what: String| ReplayError::Simulator(what);
    let sim = Sim::new(star, config, endpoints.collect(), apps.collect(), &mut observer);
    let sim = sim.map_err(|e| simulator(e.to_string()))?;
    sim.run(&mut |_| ControlFlow::Continue(())).map_err(|e| simulator(e.violation.to_string()))?;
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *seen))
}

/// Sends what came over one link, each when it has to leave to come in time.
struct Feeder {
    packets: Vec<(Time, Packet)>,
    next: usize,
}

impl Feeder {
    fn new(record: &[Entry], over: u32) -> Self {
        let arrivals = record.iter().filter_map(|entry| {
            let (_, pkt) = entry.arrival.filter(|(link, _)| *link == over)?;
            let took = FASTEST.serialise(u64::from(pkt.wire_len)) + PROPAGATION;
            // Names the packet for the observer.
            let token = entry.packet as u32 + 1;
            Some((entry.at - took, Packet { token, ..pkt }))
        });
        Self { packets: arrivals.collect(), next: 0 }
    }
}

impl Endpoint for Feeder {
    fn on_submit(&mut self, _: &mut Cx<'_>, _: &Msg) -> Submit {
        Submit::Taken
    }

    fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}

    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}

    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        match self.packets.get(self.next) {
            Some((at, _)) if *at > cx.now => Tx::NotBefore(*at),
            Some((_, pkt)) => {
                *slot = *pkt;
                self.next += 1;
                Tx::Sent
            }
            None => Tx::Idle,
        }
    }
}

/// The run goes on until then.
struct Until {
    at: Time,
    over: bool,
}

impl App for Until {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        cx.arm(TimerId(0), self.at);
    }

    fn on_timer(&mut self, _: &mut AppCx<'_>, _: TimerId) {
        self.over = true;
    }

    fn more_to_come(&self) -> bool {
        !self.over
    }
}

/// Takes down what becomes of packets at the switch.
struct Watch {
    hosts: u32,
    star: Topology,
    seen: Arc<Mutex<Vec<Entry>>>,
}

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let (at, out, event) = match event {
            PacketEvent::Trimmed => (at, link, Event::Trimmed),
            PacketEvent::Marked => (at, link, Event::Marked),
            PacketEvent::Dropped(Drop::Full) => (at, link, Event::Dropped),
            // It leaves by the link to whom is its destination now.
            PacketEvent::Bounced => {
                let (from, to) = (Node::Switch(Tier::Tor, 0), Node::Host(pkt.dst.0));
                (at, self.star.find_link(from, to).unwrap_or(link), Event::Bounced)
            }
            PacketEvent::Arrived if link >= self.hosts => {
                (Time(at.0 - PROPAGATION.0), link, Event::Sent)
            }
            _ => return,
        };
        let packet = u64::from(pkt.token) - 1;
        let entry = Entry { at, event, packet, out, len: pkt.wire_len, arrival: None };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}
