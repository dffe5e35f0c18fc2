//! [`Probe`]: what figures need beside counters, by name.

mod at_switch;
mod dcqcn_model;
mod last_link;
mod queue;
mod shares;
mod signals;
mod switch_log;
mod tier_queues;

pub(crate) use queue::OverTime;

use metrics::Timeline;
use scenario::{Error, Scenario};

/// A measurement that watches a run packet by packet.
pub(crate) struct Probe {
    /// Its name in `figure.toml`.
    pub(crate) name: &'static str,
    /// The metrics that it adds.
    pub(crate) metrics: &'static [&'static str],
    /// Whether it can tell how long a queue is over time.
    pub(crate) over_time: bool,
    /// Run the scenario and measure.
    pub(crate) measure: fn(&Scenario) -> Result<Probed, Error>,
}

/// What a probe found.
pub(crate) struct Probed {
    /// The values of its metrics, in their order; `None`: there is none.
    pub(crate) values: Vec<Option<f64>>,
    /// What happened, as a picture, if it draws one.
    pub(crate) timeline: Option<Timeline>,
    /// A queue over time, if it knows one.
    pub(crate) queue: Option<OverTime>,
}

impl Probed {
    /// Values of metrics, and nothing to draw.
    pub(crate) fn values(values: Vec<Option<f64>>) -> Self {
        Self { values, timeline: None, queue: None }
    }
}

/// All probes.
pub(crate) const PROBES: &[Probe] = &[
    last_link::PROBE,
    queue::PROBE,
    shares::PROBE,
    signals::PROBE,
    tier_queues::PROBE,
    switch_log::PROBE,
    dcqcn_model::PROBE,
];
