//! The probe `dcqcn-model`: no measurement, but what the fluid model of "ECN or Delay" (Zhu et
//! al., CoNEXT 2016, figure 1) makes of the same numbers: flows of DCQCN that begin together at
//! line rate and share one queue. Its marks go by what a flow sends: `1 - (1 - p)^(tau R)`. A
//! switch marks what leaves, and that is no more than its link carries, however much is sent;
//! `left` is the model with this one change.

use std::str::FromStr;

use endpoint::Routes;
use fabric::Node;
use scenario::{Diagnostic, Error, Scenario};
use units::{Bytes, Dur, HostId, Rate, Time};

use super::{Probe, Probed};

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "dcqcn-model",
    metrics: &[
        "dcqcn_model.mean_bytes",
        "dcqcn_model.stdev_bytes",
        "dcqcn_model.left.mean_bytes",
        "dcqcn_model.left.stdev_bytes",
    ],
    over_time: false,
    measure,
};

/// Of the integration; the model's own times are some 50 us.
const STEP: Dur = Dur::from_us(1);

/// The numbers of the model: seconds, and packets for bytes.
#[derive(Clone, Copy, Debug)]
struct Model {
    flows: f64,
    capacity: f64,
    /// From a mark to its effect, in steps.
    delay: usize,
    red_min: f64,
    red_max: f64,
    red_probability: f64,
    g: f64,
    cnp_interval: f64,
    alpha_timer: f64,
    rate_timer: f64,
    byte_counter: f64,
    f: f64,
    r_ai: f64,
}

/// By what a flow's marks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    /// What it sends.
    Sent,
    /// Its share of what leaves the queue.
    Left,
}

/// What is fed back.
#[derive(Clone, Copy, Debug)]
struct Signal {
    queue: f64,
    rate: f64,
}

impl Model {
    /// The queue, in packets, at each of so many steps.
    fn queue(&self, marks: Marks, steps: usize) -> Vec<f64> {
        let (mut rate, mut target, mut alpha, mut queue) = (self.capacity, self.capacity, 1.0, 0.0);
        let mut signals = vec![Signal { queue: 0.0, rate }; self.delay.max(1)];
        let dt = STEP.as_us_f64() / 1e6;
        let mut over_time = Vec::with_capacity(steps);
        for step in 0..steps {
            let slot = step % signals.len();
            let share = self.capacity / self.flows;
            let passing = match marks {
                Marks::Left if queue > 0.0 => share,
                Marks::Left => rate.min(share),
                Marks::Sent => rate,
            };
            let Signal { queue: found, rate: passed } =
                std::mem::replace(&mut signals[slot], Signal { queue, rate: passing });
            let p = self.probability(found);
            let cuts = marked(p, self.cnp_interval * passed) / self.cnp_interval;
            let expiries = [self.byte_counter, self.rate_timer * passed].map(|n| expiries(p, n));
            let raises = [self.byte_counter, self.rate_timer * passed]
                .map(|n| unmarked(p, self.f * n))
                .iter()
                .zip(expiries)
                .map(|(unmarked, expiries)| unmarked * expiries)
                .sum::<f64>();
            let gap = target - rate;
            let d_rate =
                gap * passed * expiries.iter().sum::<f64>() / 2.0 - rate * alpha * cuts / 2.0;
            let d_target = self.r_ai * passed * raises - gap * cuts;
            let d_alpha =
                self.g * (marked(p, self.alpha_timer * passed) - alpha) / self.alpha_timer;
            queue = (queue + (self.flows * rate - self.capacity) * dt).max(0.0);
            rate = (rate + d_rate * dt).min(self.capacity);
            target = (target + d_target * dt).min(self.capacity);
            alpha += d_alpha * dt;
            over_time.push(queue);
        }
        over_time
    }

    /// That a packet is marked which leaves a queue of this length behind.
    fn probability(&self, queue: f64) -> f64 {
        match queue {
            q if q <= self.red_min => 0.0,
            q if q <= self.red_max => {
                self.red_probability * (q - self.red_min) / (self.red_max - self.red_min)
            }
            _ => 1.0,
        }
    }
}

/// That none of `n` packets is marked.
fn unmarked(p: f64, n: f64) -> f64 {
    libm::exp(n * libm::log1p(-p))
}

/// That one of `n` packets is.
fn marked(p: f64, n: f64) -> f64 {
    1.0 - unmarked(p, n)
}

/// How often in a packet `n` unmarked ones in a row are counted, from the last mark on.
fn expiries(p: f64, n: f64) -> f64 {
    match p {
        0.0 => 1.0 / n,
        1.0 => 0.0,
        // Not 1 / unmarked - 1, which is nothing for the smallest n.
        _ => p / libm::expm1(-n * libm::log1p(-p)),
    }
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let (model, packet) = read(scenario).ok_or_else(|| {
        let error = Diagnostic::new("the probe needs DCQCN over one queue with a ramp");
        Error::from(error.hint("a star, `rule = \"dcqcn\"` with CNPs, and one [[traffic]] incast"))
    })?;
    let measure = scenario.measure();
    let step = |at: Time| (at.0 / STEP.0) as usize;
    let (from, to) = (step(measure.from), step(measure.to.unwrap_or(measure.from)));
    let values = [Marks::Sent, Marks::Left].into_iter().flat_map(|marks| {
        let queue = model.queue(marks, to);
        let (mean, stdev) = moments(queue.get(from..).unwrap_or_default());
        [Some(mean * packet), Some(stdev * packet)]
    });
    Ok(Probed::values(values.collect()))
}

/// The model of a scenario, and the bytes of a packet on the wire.
fn read(scenario: &Scenario) -> Option<(Model, f64)> {
    let table = scenario.resolved();
    let transport = |key: &str| table.get("transport")?.get(key);
    let queue = |key: &str| table.get("queue")?.get(key);
    let traffic = |key: &str| table.get("traffic")?.get(0)?.get(key);
    let bytes = |text: &str| Bytes::from_str(text).ok().map(|bytes| bytes.0 as f64);
    let seconds = |text: &str| Dur::from_str(text).ok().map(|time| time.as_us_f64() / 1e6);
    let packet = bytes(transport("payload")?.as_str()?)? + bytes(transport("overhead")?.as_str()?)?;
    let packets = |text: &str| Some(bytes(text)? / packet);
    let rate = |rate: Rate| rate.0 as f64 / 8.0 / packet;
    let receiver = u32::try_from(traffic("receiver")?.as_integer()?).ok()?;
    let topology = scenario.topology();
    let to_receiver = |node: Node| matches!(node, Node::Host(host) if host == receiver);
    let bottleneck = topology.links().iter().find(|link| to_receiver(link.to))?.rate;
    let sender = HostId(u32::from(receiver == 0));
    let delay = topology.base_rtt(sender, HostId(receiver));
    let model = Model {
        flows: traffic("senders")?.as_integer()? as f64,
        capacity: rate(bottleneck),
        delay: (delay.0 / STEP.0) as usize,
        red_min: packets(queue("red_min")?.as_str()?)?,
        red_max: packets(queue("red_max")?.as_str()?)?,
        red_probability: queue("red_probability")?.as_float()?,
        g: transport("g")?.as_float()?,
        cnp_interval: seconds(transport("cnp_interval")?.as_str()?)?,
        alpha_timer: seconds(transport("alpha_timer")?.as_str()?)?,
        rate_timer: seconds(transport("rate_timer")?.as_str()?)?,
        byte_counter: packets(transport("byte_counter")?.as_str()?)?,
        f: transport("f")?.as_integer()? as f64,
        r_ai: rate(Rate::from_str(transport("r_ai")?.as_str()?).ok()?),
    };
    Some((model, packet))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 Gb/s in packets of 1000 B, and the paper's parameters.
    fn paper(flows: f64, delay: usize) -> Model {
        Model {
            flows,
            capacity: 5e6,
            delay,
            red_min: 5.0,
            red_max: 200.0,
            red_probability: 0.01,
            g: 1.0 / 256.0,
            cnp_interval: 50e-6,
            alpha_timer: 55e-6,
            rate_timer: 55e-6,
            byte_counter: 1e4,
            f: 5.0,
            r_ai: 5e3,
        }
    }

    fn swing(model: &Model, marks: Marks) -> (f64, f64) {
        let (mean, stdev) = moments(&model.queue(marks, 150_000)[100_000..]);
        (mean, stdev / mean)
    }

    /// The publication's figure 4: after 4 us two and ten flows rest at some 20 and 125 KB.
    #[test]
    fn rests_where_the_publication_has_it() {
        for (flows, queue) in [(2.0, 20.0), (10.0, 123.0)] {
            let (mean, swing) = swing(&paper(flows, 4), Marks::Sent);
            assert!((mean - queue).abs() < 0.03 * queue && swing < 0.01, "{mean} {swing}");
        }
    }

    /// After 85 us ten flows swing; 64 rest at 1.2 MB on a ramp to 2 MB and 10 %, but not if marks
    /// go by what leaves.
    #[test]
    fn swings_where_the_publication_does() {
        assert!(swing(&paper(10.0, 85), Marks::Sent).1 > 0.6);
        let long = Model { red_max: 2000.0, red_probability: 0.1, ..paper(64.0, 85) };
        let (mean, sent) = swing(&long, Marks::Sent);
        assert!((mean - 1183.0).abs() < 20.0 && sent < 0.01, "{mean} {sent}");
        assert!(swing(&long, Marks::Left).1 > 0.6);
    }

    #[test]
    fn probabilities_by_hand() {
        let model = paper(2.0, 4);
        assert_eq!(
            [5.0, 102.5, 200.0, 201.0].map(|q| model.probability(q)),
            [0.0, 0.005, 0.01, 1.0]
        );
        assert_eq!(expiries(0.0, 8.0), 0.125);
        assert_eq!(expiries(1.0, 8.0), 0.0);
        // Two in a row at one half: p / (2^2 - 1).
        assert!((expiries(0.5, 2.0) - 0.5 / 3.0).abs() < 1e-12);
    }
}
