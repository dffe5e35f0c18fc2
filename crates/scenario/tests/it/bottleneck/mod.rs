//! The queue before host 0 of a star, worked out from packets alone: what has come to the switch
//! for it and not yet left, the packet in transmission included. No code of the simulator's queues
//! is used.

#![allow(dead_code, reason = "each test that includes this file uses a part of it")]

use std::path::Path;

use endpoint::{Drop, JobRecord, MessageRecord, Observer, Packet, PacketEvent};
use fabric::{Node, Outcome, Topology};
use trimline_scenario::{Options, Scenario, observe};
use units::{Dur, Time};

/// What a packet does at the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Leaves,
    Comes,
    Dropped,
}

/// The queue just after a packet came, left or was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) at: Time,
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// The length of the packet that was dropped, if one was.
    pub(crate) dropped: Option<u16>,
}

/// The observer.
pub(crate) struct Bottleneck {
    topology: Topology,
    /// The link to host 0, and its propagation.
    link: u32,
    delay: Dur,
    changes: Vec<(Time, Change, u16)>,
    /// Messages and pieces of work that are over.
    pub(crate) messages: Vec<MessageRecord>,
    pub(crate) jobs: Vec<JobRecord>,
}

impl Bottleneck {
    fn new(topology: &Topology) -> Self {
        let link = topology.links().iter().position(|link| link.to == Node::Host(0)).unwrap();
        Self {
            delay: topology.links()[link].delay,
            link: link as u32,
            topology: topology.clone(),
            changes: Vec::new(),
            messages: Vec::new(),
            jobs: Vec::new(),
        }
    }

    /// The queue after every change from `from` to `to`, in order. At one instant what leaves goes
    /// first. What leaves is seen a propagation later, so `to` is to be so much before the end of
    /// the run.
    pub(crate) fn levels(&self, from: Time, to: Time) -> Vec<Level> {
        let mut changes = self.changes.clone();
        changes.sort_by_key(|&(at, change, _)| (at, change != Change::Leaves));
        let (mut packets, mut bytes) = (0, 0);
        let level = |(at, change, len): (Time, Change, u16)| {
            match change {
                Change::Comes => (packets, bytes) = (packets + 1, bytes + u64::from(len)),
                Change::Leaves => (packets, bytes) = (packets - 1, bytes - u64::from(len)),
                Change::Dropped => {}
            }
            Level { at, packets, bytes, dropped: (change == Change::Dropped).then_some(len) }
        };
        let levels = changes.into_iter().map(level);
        levels.filter(|level| (from..to).contains(&level.at)).collect()
    }

    /// Bytes on the wire that arrived at host 0 after `from`, up to `to`.
    pub(crate) fn arrived(&self, from: Time, to: Time) -> u64 {
        let left = self.changes.iter().filter(|change| change.1 == Change::Leaves);
        let arrived = left.map(|&(at, _, len)| (at + self.delay, u64::from(len)));
        arrived.filter(|&(at, _)| from < at && at <= to).map(|(_, len)| len).sum()
    }

    /// Payload that host 0 got in the window of the scenario, bytes.
    pub(crate) fn payload(&self) -> u64 {
        self.messages.iter().map(|message| message.placed_in_window).sum()
    }
}

impl Observer for Bottleneck {
    fn watches_packets(&self) -> bool {
        true
    }

    fn message(&mut self, record: &MessageRecord) {
        self.messages.push(*record);
    }

    fn job(&mut self, record: &JobRecord) {
        self.jobs.push(*record);
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let crossed = link == self.link;
        let at_switch = matches!(self.topology.links()[link as usize].to, Node::Switch(..));
        match event {
            PacketEvent::Arrived if at_switch && pkt.dst.0 == 0 => {
                self.changes.push((at, Change::Comes, pkt.wire_len));
            }
            PacketEvent::Arrived | PacketEvent::Dropped(Drop::Lossy | Drop::Dead) if crossed => {
                // Its last bit left the switch one propagation earlier.
                self.changes.push((Time(at.0 - self.delay.0), Change::Leaves, pkt.wire_len));
            }
            PacketEvent::Dropped(Drop::Full) if crossed => {
                // It is the one that has just come.
                let last = self.changes.last_mut().unwrap();
                assert_eq!(*last, (at, Change::Comes, pkt.wire_len));
                last.1 = Change::Dropped;
            }
            _ => {}
        }
    }
}

/// Levels of the queue, and how long each lasted, by bytes.
pub(crate) fn stays(levels: &[Level]) -> Vec<(u64, u64)> {
    let mut stays: Vec<(u64, u64)> =
        levels.windows(2).map(|pair| (pair[0].bytes, pair[1].at.since(pair[0].at).0)).collect();
    stays.sort_unstable();
    stays
}

/// The mean over time, bytes.
pub(crate) fn mean(levels: &[Level]) -> f64 {
    let stays = stays(levels);
    let whole: f64 = stays.iter().map(|stay| stay.1 as f64).sum();
    stays.iter().map(|&(bytes, time)| bytes as f64 * time as f64).sum::<f64>() / whole
}

/// Run the scenario that is `text`, on one thread, so that packets are seen in order.
pub(crate) fn watch(text: &str) -> (Outcome, Bottleneck) {
    let scenario = Scenario::parse("test", text, Path::new("."), &[]);
    watch_scenario(&scenario.unwrap_or_else(|e| panic!("{}", e.render(false))))
}

/// The same with one that is read.
pub(crate) fn watch_scenario(scenario: &Scenario) -> (Outcome, Bottleneck) {
    let options = Options { threads: Some(1), ..Options::default() };
    observe(scenario, &options, Bottleneck::new(scenario.topology())).unwrap()
}
