//! The probe `shares`: how flows come to share what there is. The window of `[measure]` begins when
//! something has changed (a flow joins or leaves) and is cut into 200 slots; the flows are those
//! that receivers still hear in the last tenth of it. For specs/rdma.md#10 (D5, D6, H4), and
//! specs/timely.md#9 (F10, F18).

use metrics::jain;
use std::collections::BTreeMap;

use endpoint::{Observer, Packet, PacketEvent};
use fabric::{Link, Node};
use metrics::Moments;
use scenario::{Diagnostic, Error, Options, Scenario};
use units::{Dur, MsgKey, Time};

use super::{Probe, Probed};

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "shares",
    metrics: &[
        "shares.fair_us",
        "shares.joined_us",
        "shares.three_quarters_us",
        "shares.full_us",
        "shares.jain",
        "shares.swing",
    ],
    over_time: false,
    measure,
};

const SLOTS: usize = 200;
/// So many slots in a row make it more than a coincidence.
const IN_A_ROW: usize = 3;
/// Jain's index of flows that share fairly (specs/rdma.md#I14).
const FAIR: f64 = 0.95;
/// The part of an equal share that a flow that joins has reached: 13 of 13.3 Gb/s (D5).
const JOINED: f64 = 0.975;

/// Payload that has reached receivers, by flow and slot.
struct Watch {
    links: Vec<Link>,
    from: Time,
    slot: Dur,
    flows: BTreeMap<MsgKey, Flow>,
}

struct Flow {
    /// When its first packet came.
    began: Time,
    bytes: [u64; SLOTS],
}

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let to_host = |link: &Link| matches!(link.to, Node::Host(_));
        let arrives = event == PacketEvent::Arrived && pkt.carries_payload();
        if !arrives || !self.links.get(link as usize).is_some_and(to_host) {
            return;
        }
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        let flow = self.flows.entry(key).or_insert(Flow { began: at, bytes: [0; SLOTS] });
        let slot = at.since(self.from).0 / self.slot.0.max(1);
        if at >= self.from
            && let Some(bytes) = flow.bytes.get_mut(slot as usize)
        {
            *bytes += u64::from(pkt.span.len);
        }
    }
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let measure = scenario.measure();
    let to = measure.to.ok_or_else(|| {
        let error = Diagnostic::new("the probe shares needs a window");
        Error::from(error.hint("write `measure.to`"))
    })?;
    let slot = Dur(to.since(measure.from).0 / SLOTS as u64);
    let links = scenario.topology().links().to_vec();
    let watch = Watch { links, from: measure.from, slot, flows: BTreeMap::new() };
    let options = Options { threads: Some(1), ..Options::default() };
    let (_, watch) = scenario::observe(scenario, &options, watch)?;
    let lasting = |flow: &&Flow| flow.bytes[SLOTS - SLOTS / 10..].iter().any(|&bytes| bytes > 0);
    let flows: Vec<&Flow> = watch.flows.values().filter(lasting).collect();
    Ok(Probed::values(values(&flows, slot)))
}

/// The metrics of `flows`, in slots of `slot`.
fn values(flows: &[&Flow], slot: Dur) -> Vec<Option<f64>> {
    let us = |slots: Option<usize>| slots.map(|slots| (slot * slots as u64).as_us_f64());
    let rates = |n: usize| flows.iter().map(move |flow| flow.bytes[n] as f64);
    let total = |n: usize| rates(n).sum::<f64>();
    let fair = in_a_row(|n| jain(rates(n)).is_some_and(|index| index >= FAIR));
    let newest = flows.iter().max_by_key(|flow| flow.began);
    let joined = newest.and_then(|flow| {
        in_a_row(|n| {
            flow.bytes[n] as f64 * flows.len() as f64 >= JOINED * total(n) && total(n) > 0.0
        })
    });
    let last = SLOTS - SLOTS / 4;
    let usual = (last..SLOTS).map(total).sum::<f64>() / (SLOTS - last) as f64;
    let reaches = |share: f64| in_a_row(|n| total(n) >= share * usual);
    let (three_quarters, full) = (reaches(0.75), reaches(0.95));
    let whole = flows.iter().map(|flow| flow.bytes[last..].iter().sum::<u64>() as f64);
    let swing = flows.iter().map(|flow| swing(&flow.bytes)).sum::<f64>() / flows.len() as f64;
    let of_some = |value| Some(value).filter(|_| !flows.is_empty());
    vec![us(fair), us(joined), us(three_quarters), us(full), jain(whole), of_some(swing)]
}

/// The coefficient of variation of a flow's rate over the slots; 0 of nothing.
fn swing(bytes: &[u64; SLOTS]) -> f64 {
    let moments: Moments = bytes.iter().map(|&bytes| bytes as f64).collect();
    match (moments.mean(), moments.stdev()) {
        (Some(mean), Some(stdev)) if mean > 0.0 => stdev / mean,
        _ => 0.0,
    }
}

/// The end of the first slot, counted from the start, with which `is` begins to hold.
fn in_a_row(is: impl Fn(usize) -> bool) -> Option<usize> {
    (0..=SLOTS - IN_A_ROW).find(|&n| (n..n + IN_A_ROW).all(&is)).map(|n| n + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One flow has 100 B per slot and gives a byte per slot to another that begins with nothing;
    /// after 50 they are equal. By hand: Jain's index of 61 and 39 is 10^4 / (2 (61^2 + 39^2)) =
    /// 0.954, of 62 and 38 0.946; 48.75 of 100 is 49.
    #[test]
    fn two_flows_by_hand() {
        let rates = |up: bool| {
            std::array::from_fn(|n| {
                let given = n.min(50) as u64;
                if up { given } else { 100 - given }
            })
        };
        let old = Flow { began: Time(0), bytes: rates(false) };
        let new = Flow { began: Time(1), bytes: rates(true) };
        let values = values(&[&old, &new], Dur::from_us(10));
        assert_eq!(values[..5], [Some(400.0), Some(500.0), Some(10.0), Some(10.0), Some(1.0)]);
    }

    /// 3 and 1 in turn: a mean of 2 and, of 200 samples, a deviation of sqrt(200 / 199).
    #[test]
    fn swing_by_hand() {
        let bytes = std::array::from_fn(|n| 1 + 2 * (n as u64 % 2));
        let values = values(&[&Flow { began: Time(0), bytes }], Dur::from_us(1));
        assert!(
            values[5].is_some_and(|swing| (swing - (200.0f64 / 199.0).sqrt() / 2.0).abs() < 1e-12)
        );
    }

    /// All that a flow has comes late: slot 100 has three quarters of what slots from 110 on have.
    #[test]
    fn growth_by_hand() {
        let bytes = std::array::from_fn(|n| {
            if n < 100 {
                1
            } else if n < 110 {
                75
            } else {
                100
            }
        });
        let values = values(&[&Flow { began: Time(0), bytes }], Dur::from_us(1));
        assert_eq!(values[2..4], [Some(101.0), Some(111.0)]);
    }

    #[test]
    fn what_never_happens_has_no_value() {
        let flow = |bytes| Flow { began: Time(0), bytes: [bytes; SLOTS] };
        let values = values(&[&flow(9), &flow(1)], Dur::from_us(1));
        assert_eq!(values[..2], [None, None]);
    }
}
