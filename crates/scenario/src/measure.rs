//! The `[measure]` table: which part of a run counts, and when to give up.

use units::{Dur, Time};

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;
use crate::traffic::Traffic;

/// The measurement window and the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Messages submitted from here on count.
    pub from: Time,
    /// Messages submitted before this instant count. Without it all do, and the run ends when all
    /// are over.
    pub to: Option<Time>,
    /// The run ends here at the latest, unfinished messages or not.
    pub limit: Time,
    /// The run ends when more messages than this are under way; `None`: never.
    pub max_in_flight: Option<u64>,
    /// Whether packets are timed, from their first transmission to their acknowledgement.
    pub packet_latency: bool,
    /// Whether the round-trip samples of transports are kept.
    pub rtt: bool,
}

/// How long messages may take after the window has closed, unless `limit` says otherwise.
const PATIENCE: Dur = Dur::from_ms(1_000);

/// Less than this after what listed messages need at least is not enough.
const SPARE: Dur = Dur::from_ms(100);

/// How many messages an open loop may have under way, unless `max_in_flight` says otherwise: in
/// all, and per host. Ten to a hundred times what a network at 90 % load holds, and still a small
/// part of a machine's memory.
const IN_FLIGHT: u64 = 100_000;
const IN_FLIGHT_PER_HOST: u64 = 1_000;

/// Read `[measure]`, for `traffic` between `hosts`. Traffic that never ends by itself needs a
/// window, an open loop a bound, and timed packets a transport that `acknowledges` each. Messages
/// that are listed should be through at `needed`.
pub(crate) fn read(
    table: &mut Reader<'_>,
    traffic: &Traffic,
    hosts: u32,
    acknowledges: bool,
    needed: Time,
) -> Result<Measure, Diagnostic> {
    let from = table.or("from", Time::ZERO)?;
    let to: Option<Time> = table.maybe("to")?;
    if let (None, Some(endless)) = (to, traffic.endless) {
        let hint = format!(
            "{endless} never ends: say in [measure] until when to measure, `to = \"25ms\"`"
        );
        return Err(table.missing("to", &hint));
    }
    if to.is_some_and(|to| to <= from) {
        let message = "the measurement window is empty: `to` is not after `from`";
        return Err(table.error("to", message, "too early").hint(format!("after \"{from}\"")));
    }
    let usual = to.unwrap_or(from).saturating_add(PATIENCE);
    // Without a window a run ends with its messages, so that they must have the time.
    let usual = match to {
        None if needed.saturating_add(SPARE) > usual => needed.saturating_add(PATIENCE),
        _ => usual,
    };
    let limit = table.or("limit", usual)?;
    if limit < to.unwrap_or(from) || limit == Time::ZERO {
        let message = "the run ends before the measurement window does";
        return Err(table.error("limit", message, "too early").hint("`limit` is the last instant"));
    }
    let max_in_flight = if traffic.open_loop {
        Some(table.or("max_in_flight", IN_FLIGHT.max(u64::from(hosts) * IN_FLIGHT_PER_HOST))?)
    } else {
        table.maybe("max_in_flight")?
    };
    if let Some(n) = max_in_flight {
        table.within("max_in_flight", n, 1..=i64::MAX as u64)?;
    }
    let packet_latency = table.or("packet_latency", false)?;
    if packet_latency && !acknowledges {
        let message = "this transport does not acknowledge packets one by one";
        let error = table.error("packet_latency", message, "cannot be measured");
        return Err(error.hint("leave `packet_latency` out, or use `kind = \"ndp\"`"));
    }
    let rtt = table.or("rtt", false)?;
    Ok(Measure { from, to, limit, max_in_flight, packet_latency, rtt })
}

/// Samples of a window: enough for a plot.
const SAMPLES: u64 = 500;
/// In large fabrics there are fewer samples, so that they look at ports about so often in all, ...
const LOOKS: u64 = 2_000_000;
/// ... but not fewer than this.
const SAMPLES_MIN: u64 = 50;
/// The finest grid for stop conditions and samples.
const FINEST: Dur = Dur::from_us(1);

impl Measure {
    /// How often queues and rates are sampled: some hundred times a window (fewer where there are
    /// very many `links`), not below 1 us. With no window, every 50 us.
    #[must_use]
    pub fn sample_every(&self, links: usize) -> Dur {
        let samples = (LOOKS / (links as u64).max(1)).clamp(SAMPLES_MIN, SAMPLES);
        match self.to {
            Some(to) => Dur((to.since(Time::ZERO).0 / samples).max(FINEST.0)),
            None => Dur::from_us(50),
        }
    }

    /// How often stop conditions are looked at.
    #[must_use]
    pub fn grid(&self) -> Dur {
        Dur::from_us(10)
    }
}
