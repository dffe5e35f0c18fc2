//! The probe `switch-log`: completion times as they are worked out from the log of a switch, which
//! knows when packets come and how long the queue is, but not when each leaves. That is how the
//! notebook of nanoTransport's hardware experiment has them (specs/nanotransport.md#15.2): a
//! message is complete when the last packet that it needs has come to the switch, all that is in
//! the queue then has left, and a link more has been crossed. Where classes have priorities that is
//! later than its end.

use std::collections::{BTreeMap, VecDeque};

use endpoint::{MessageRecord, Observer, Packet, PacketEvent};
use fabric::{Link, Node};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use scenario::{Error, Options, Scenario};
use units::{Dur, HostId, MsgId, Time};

use super::{Probe, Probed};

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "switch-log",
    metrics: &["switch_log.named_us", "switch_log.last_us", "switch_log.burst_us"],
    over_time: false,
    measure,
};

/// A packet in the queue of a link to a host.
#[derive(Clone, Copy, Debug)]
struct Stay {
    /// When it came to the switch, and when its last bit left.
    from: Time,
    to: Time,
    /// When it no longer counted as queued: as it had left or, where switches send in slots, when
    /// its slot began.
    gone: Time,
    len: u16,
    /// Whose payload it carries.
    of: (HostId, MsgId),
    offset: u64,
    whole: bool,
}

/// Keeps what leaves switches for hosts, and what becomes of messages.
struct Watch {
    links: Vec<Link>,
    slot: Option<Dur>,
    /// When packets that are at a switch have come there, by their key: copies have the same.
    at_switch: HashMap<u64, VecDeque<Time>, FxBuildHasher>,
    stays: BTreeMap<u32, Vec<Stay>>,
    messages: Vec<MessageRecord>,
}

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn message(&mut self, record: &MessageRecord) {
        self.messages.push(*record);
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let Some(crossed) = self.links.get(link as usize) else { return };
        match (event, crossed.to) {
            (PacketEvent::Arrived, Node::Host(_)) => {
                let came = self.at_switch.get_mut(&pkt.key).and_then(VecDeque::pop_front);
                let Some(from) = came else { return };
                let to = Time(at.0.saturating_sub(crossed.delay.0));
                let begin = to.0.saturating_sub(crossed.rate.serialise(pkt.wire_len.into()).0);
                let gone = self.slot.map_or(to, |slot| Time(begin - begin % slot.0));
                self.stays.entry(link).or_default().push(Stay {
                    from,
                    to,
                    gone,
                    len: pkt.wire_len,
                    of: (pkt.src, pkt.span.msg),
                    offset: pkt.span.offset,
                    whole: pkt.carries_payload(),
                });
            }
            (PacketEvent::Arrived, _) => self.at_switch.entry(pkt.key).or_default().push_back(at),
            (PacketEvent::Dropped(_), _) => {
                self.at_switch.get_mut(&pkt.key).and_then(VecDeque::pop_back);
            }
            _ => {}
        }
    }
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let links = scenario.topology().links().to_vec();
    let options = Options { threads: Some(1), ..Options::default() };
    let watch = Watch {
        links: links.clone(),
        slot: scenario.topology().switch_slot(),
        at_switch: HashMap::default(),
        stays: BTreeMap::new(),
        messages: Vec::new(),
    };
    let (_, watch) = scenario::observe(scenario, &options, watch)?;
    let none = Probed::values(vec![None; 3]);
    let busiest = watch.stays.iter().max_by_key(|(_, stays)| stays.len());
    let Some((&number, stays)) = busiest else { return Ok(none) };
    let Some(link) = links.get(number as usize) else { return Ok(none) };
    let is_named =
        |tag: u16| scenario.traffic_names().get(usize::from(tag)).is_some_and(Option::is_some);
    let named = watch.messages.iter().filter(|message| is_named(message.tag));
    let completions: Option<Vec<f64>> = named.map(|m| completion_us(m, stays, link)).collect();
    let named = completions.and_then(|all| all.into_iter().reduce(f64::max));
    let last = stays.iter().map(|stay| stay.to).max();
    let values = vec![named, last.map(Time::as_us_f64), burst(stays).map(Time::as_us_f64)];
    Ok(Probed::values(values))
}

/// When the log says that `message` was complete, since its submission.
fn completion_us(message: &MessageRecord, stays: &[Stay], link: &Link) -> Option<f64> {
    message.delivered?;
    // Of several copies of a packet, the first that left.
    let mut needed: BTreeMap<u64, (Time, Time)> = BTreeMap::new();
    let its = |stay: &&Stay| stay.whole && stay.of == (message.key.src, message.key.id);
    for stay in stays.iter().filter(its) {
        let first = needed.entry(stay.offset).or_insert((stay.to, stay.from));
        *first = (*first).min((stay.to, stay.from));
    }
    let came = needed.values().map(|(_, from)| *from).max()?;
    let there = stays.iter().filter(|stay| stay.from <= came && came < stay.gone);
    let bytes: u64 = there.map(|stay| u64::from(stay.len)).sum();
    let complete = came + link.rate.serialise(bytes) + link.delay;
    Some(complete.since(message.submitted).as_us_f64())
}

/// The end of the longest time in which the link stands still between packets.
fn burst(stays: &[Stay]) -> Option<Time> {
    let mut by_end: Vec<&Stay> = stays.iter().collect();
    by_end.sort_unstable_by_key(|stay| stay.to);
    let gaps =
        by_end.windows(2).map(|pair| (pair[1].from.0.saturating_sub(pair[0].to.0), pair[1].from));
    gaps.max_by_key(|(gap, _)| *gap).filter(|(gap, _)| *gap > 0).map(|(_, from)| from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{MsgKey, Rate};

    fn stay(from_ns: u64, to_ns: u64, src: u32, offset: u64) -> Stay {
        Stay {
            from: Time::ZERO + Dur::from_ns(from_ns),
            to: Time::ZERO + Dur::from_ns(to_ns),
            gone: Time::ZERO + Dur::from_ns(to_ns),
            len: 1000,
            of: (HostId(src), MsgId(0)),
            offset,
            whole: true,
        }
    }

    /// By hand, at 8 Gb/s (1 ns per byte) over 50 ns: the last packet that host 1 needs comes at
    /// 1500 ns, when three packets are in the queue; that it overtakes the others is not seen. A
    /// copy counts once.
    #[test]
    fn the_whole_queue_drains_by_hand() {
        let stays = [
            stay(0, 1000, 1, 0),
            stay(1200, 2200, 2, 0),
            stay(1500, 3200, 1, 1000),
            stay(1400, 4200, 2, 1000),
            stay(5000, 6000, 1, 1000),
        ];
        let link = Link {
            rate: Rate(8_000_000_000),
            delay: Dur::from_ns(50),
            ..fabric::Topology::star(
                2,
                fabric::LinkSpec { rate: Rate(8_000_000_000), delay: Dur::from_ns(50) },
            )
            .unwrap()
            .links()[0]
        };
        let message = MessageRecord {
            key: MsgKey { src: HostId(1), id: MsgId(0) },
            dst: HostId(0),
            len: 2000,
            tag: 0,
            submitted: Time::ZERO,
            deadline: Dur::MAX,
            delivered: Some(Time(1)),
            acked: None,
            failed: None,
            ideal: Dur::ZERO,
            placed: 2000,
            placed_in_window: 2000,
        };
        assert_eq!(completion_us(&message, &stays, &link), Some(4.55));
        let unfinished = MessageRecord { delivered: None, ..message };
        assert_eq!(completion_us(&unfinished, &stays, &link), None);
        assert_eq!(burst(&stays), Some(Time::ZERO + Dur::from_ns(5000)));
        assert_eq!(burst(&stays[..1]), None);
    }
}
