//! What a run of real hosts and switches says, in the simulator's words.

use std::collections::BTreeMap;

use endpoint::{JobRecord, MessageRecord, Msg, Observer};
use fabric::{Amount, Conservation, Counters, End, LinkStats, Outcome};
use metrics::{FileError, OutputDir};
use units::{Dur, HostId, MsgKey, Time};

use super::Switched;
use super::hosts::{Ended, Event};
use crate::Scenario;
use crate::record::{Recorded, Recorder};

/// The counters of hosts and switches. What only a simulator can say (events, digest, samples of
/// queues) is zero or missing.
pub(super) fn outcome(
    scenario: &Scenario,
    hosts: &[Ended],
    switches: &[Switched],
    complete: bool,
) -> Outcome {
    let links = links(scenario, switches);
    let sum = |of: fn(&LinkStats) -> u64| links.iter().map(of).sum();
    let of_hosts = |of: fn(&host::Counters) -> u64| -> u64 {
        hosts.iter().map(|host| of(&host.counters)).sum()
    };
    let (sent, data_sent) = (of_hosts(|c| c.sent), of_hosts(|c| c.data_sent));
    let faulted: u64 = switches.iter().flat_map(|s| s.switch.counters()).map(|c| c.lost).sum();
    let counters = Counters {
        data_sent,
        control_sent: sent - data_sent,
        trimmed: sum(|link| link.trimmed),
        bounced: sum(|link| link.bounced),
        dropped: sum(|link| link.dropped),
        faulted,
        marked: sum(|link| link.marked),
        stats: std::array::from_fn(|stat| hosts.iter().map(|h| h.counters.stats[stat]).sum()),
        submitted: of_hosts(|c| c.submitted),
        delivered: of_hosts(|c| c.delivered),
        failed: of_hosts(|c| c.failed),
    };
    let amount = |packets, bytes| Amount { packets, bytes };
    let received = amount(of_hosts(|c| c.received), of_hosts(|c| c.received_bytes));
    Outcome {
        digest: 0,
        now: hosts.iter().map(|host| host.now).max().unwrap_or(Time::ZERO),
        events: 0,
        partitions: 1,
        packet_hops: sum(|link| link.packets),
        counters,
        conservation: Conservation { received, ..Conservation::default() },
        links,
        buffers: Vec::new(),
        memories: Vec::new(),
        deadlock: None,
        samples: Vec::new(),
        queue_bytes_p99: None,
        skipped: fabric::Skipped::default(),
        end: if complete { End::Complete } else { End::Limit },
    }
}

/// What switches counted, by link: out of their ports, and from hosts into them.
fn links(scenario: &Scenario, switches: &[Switched]) -> Vec<LinkStats> {
    let topology = &scenario.topology;
    let mut links = vec![LinkStats::default(); topology.links().len()];
    for Switched { node, switch, .. } in switches {
        for (to, c) in switch.ports().zip(switch.counters()) {
            let at = |link: Option<u32>| link.map(|link| link as usize);
            if let Some(out) = at(topology.find_link(*node, to)) {
                links[out] = LinkStats {
                    packets: c.sent,
                    bytes: c.sent_bytes,
                    bytes_in_window: c.sent_bytes,
                    max_queue_bytes: c.max_queue_bytes,
                    trimmed: c.trimmed,
                    bounced: c.bounced,
                    dropped: c.dropped,
                    marked: c.marked,
                    ..links[out]
                };
            }
            if let (fabric::Node::Host(_), Some(back)) = (to, at(topology.find_link(to, *node))) {
                links[back].packets = c.received;
            }
        }
    }
    links
}

/// A row for each message and each job.
pub(super) fn recorded(
    scenario: &Scenario,
    hosts: &[Ended],
    out: &OutputDir,
) -> Result<Recorded, FileError> {
    let (from, to) = (scenario.measure.from, scenario.measure.to);
    let mut recorder = Recorder::new(from, to, Some(out.staged()));
    let mut messages: BTreeMap<MsgKey, MessageRecord> = BTreeMap::new();
    for (me, host) in (0..).map(HostId).zip(hosts) {
        for &(at, event) in &host.log {
            if let Event::Submitted { msg, tag } = event {
                messages
                    .insert(MsgKey { src: me, id: msg.id }, submitted(scenario, me, msg, tag, at));
            }
        }
    }
    for (at, event) in hosts.iter().flat_map(|host| &host.log) {
        let at = *at;
        match event {
            Event::Submitted { .. } => {}
            Event::Delivered { key } => {
                if let Some(record) = messages.get_mut(key) {
                    record.delivered = Some(at);
                    record.placed = record.len;
                    let measured = from <= at && to.is_none_or(|to| at < to);
                    record.placed_in_window = if measured { record.len } else { 0 };
                }
            }
            Event::Acked { key } => {
                if let Some(record) = messages.get_mut(key) {
                    record.acked = Some(at);
                }
            }
            Event::Failed { key, why } => {
                if let Some(record) = messages.get_mut(key).filter(|r| r.delivered.is_none()) {
                    record.failed = Some(*why);
                }
            }
        }
    }
    messages.values().for_each(|record| recorder.message(record));
    for (host, ended) in (0..).map(HostId).zip(hosts) {
        ended.jobs.iter().for_each(|&job| recorder.job(&JobRecord { host, job }));
    }
    let mut recorded = recorder.finish()?;
    for job in &mut recorded.jobs {
        job.rate = scenario.topology.receive_rate(HostId(job.host));
    }
    Ok(recorded)
}

fn submitted(scenario: &Scenario, src: HostId, msg: Msg, tag: u16, at: Time) -> MessageRecord {
    let of = &scenario.config.encapsulations;
    let ideal = of
        .get(usize::from(msg.transport))
        .map_or(Dur::ZERO, |e| scenario.topology.ideal(src, msg.dst, msg.len, e.framing, e.spray));
    MessageRecord {
        key: MsgKey { src, id: msg.id },
        dst: msg.dst,
        len: msg.len,
        tag,
        submitted: at,
        deadline: msg.deadline,
        delivered: None,
        acked: None,
        failed: None,
        ideal,
        placed: 0,
        placed_in_window: 0,
    }
}
