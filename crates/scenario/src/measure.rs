//! The `[measure]` table: which part of a run counts, and when to give up.

use units::{Dur, Time};

use crate::diagnostic::Checked;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::traffic::Traffic;

/// The measurement window and the end of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    /// Messages submitted from here on count.
    pub from: Time,
    /// Messages submitted before this instant count. Without it all do, and the run ends when all
    /// are over.
    pub to: Option<Time>,
    /// The run ends here at the latest, unfinished messages or not.
    pub limit: Time,
    /// The run ends when more messages than this are in flight; `None`: never.
    pub max_in_flight: Option<u64>,
    /// Whether packets are timed, from their first transmission to their acknowledgement.
    pub packet_latency: bool,
    /// Whether the round-trip samples of transports are kept.
    pub rtt: bool,
    /// Whether messages are followed, so that it is known where their time went.
    pub life: bool,
    /// Whether each training job is run by itself, too.
    pub alone: bool,
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

keys! { WINDOW: Measure {
    from: Time, "messages submitted from here on are measured".default("");
    to (maybe to): Time, "messages submitted before this are measured".range("after `from`")
            .default("until everything is complete; required for traffic that never ends");
}}

keys! { END: Measure {
    limit: Time, "the run ends here at the latest".range("at least `to` (or `from`)").default(
        "one second after `to` (or `from`); without `to` later where listed messages (the first \
         five kinds, files) need it: their last start, four times what the busiest link takes \
         for them, and a second");
    max_in_flight (maybe max_in_flight): u64 [1..=i64::MAX as u64],
        "the run ends, with a warning, when more messages than this are under way"
            .range("at least 1").default(
        "with `poisson`, `partition-aggregate` and open-loop `rpc` traffic 1000 per host, at \
         least 100000; otherwise none");
    rtt: bool,
        "keep the round-trip samples of transports (TCP and its kin, and those that pace by \
         rate): `rtt_us` in summary.json. Changes no other result".default("");
    life: bool,
        "find out where the time of each message went (docs/explain.md): `life_us` in \
         summary.json, `life.parquet`. The run then uses one thread. Changes no other result"
            .default("");
    alone: bool,
        "run each training job (`kind = \"job\"`) once more by itself, on the same fabric with the \
         same faults and seed, all other traffic left out: `steps.alone_us` and `steps.slowdown` in \
         summary.json. Takes about twice as long. Changes no other result".default("");
    packet_latency: bool,
        "time every packet first transmitted in the window until its acknowledgement arrives: \
         `packet_latency_us` in summary.json, `packet_latency.parquet`. `ndp` only; the run then \
         uses one thread. Changes no other result".default("");
}}

/// For the reference.
pub(crate) fn keys() -> Vec<Section> {
    let none = &Measure::default();
    vec![section("measure", WINDOW, &[], Some(none)), section("measure.end", END, &[], Some(none))]
}

/// Read `[measure]`, for `traffic` between `hosts`. Traffic that never ends by itself needs a
/// window, an open loop a bound, and timed packets a transport that `acknowledges` each. Messages
/// that are listed should be through at `needed`.
pub(crate) fn read(
    table: &mut Reader<'_>,
    traffic: &Traffic,
    hosts: u32,
    acknowledges: bool,
    needed: Time,
) -> Checked<Measure> {
    let mut measure = Measure::default();
    table.keys(WINDOW, &mut measure, None)?;
    let Measure { from, to, .. } = measure;
    if let (None, Some(endless)) = (to, traffic.endless()) {
        let hint = format!(
            "{endless} never ends: say in [measure] until when to measure, `to = \"25ms\"`"
        );
        return Err(table.missing("to", &hint));
    }
    if to.is_some_and(|to| to <= from) {
        let message = "the measurement window is empty: `to` is not after `from`";
        return table.fail("to", message, "too early", format!("after \"{from}\""));
    }
    let usual = to.unwrap_or(from).saturating_add(PATIENCE);
    // Without a window a run ends with its messages, so that they must have the time.
    let usual = match to {
        None if needed.saturating_add(SPARE) > usual => needed.saturating_add(PATIENCE),
        _ => usual,
    };
    measure.limit = usual;
    let bound = IN_FLIGHT.max(u64::from(hosts) * IN_FLIGHT_PER_HOST);
    measure.max_in_flight =
        Some(bound).filter(|_| traffic.tables.iter().any(|part| part.open_loop));
    table.keys(END, &mut measure, None)?;
    // Results have 63 bits for a time.
    measure.limit = measure.limit.min(Time(i64::MAX as u64));
    let limit = measure.limit;
    if limit < to.unwrap_or(from) || limit == Time::ZERO {
        let message = "the run ends before the measurement window does";
        return table.fail("limit", message, "too early", "`limit` is the last instant");
    }
    if measure.alone {
        check_alone(table, traffic)?;
    }
    if measure.packet_latency && !acknowledges {
        let message = "this transport does not acknowledge packets one by one";
        let error = table.error("packet_latency", message, "cannot be measured");
        return Err(error.hint("leave `packet_latency` out, or use `kind = \"ndp\"`"));
    }
    Ok(measure)
}

/// Whether there are jobs that are not alone anyway, and whether results name them.
fn check_alone(table: &Reader<'_>, traffic: &Traffic) -> Checked<()> {
    let named = traffic.tables.iter().zip(&traffic.names);
    let jobs: Vec<_> = named.filter(|(part, _)| part.job.is_some()).collect();
    if jobs.is_empty() || traffic.tables.len() == 1 {
        let message = "no training job shares the fabric with other traffic: it is alone anyway";
        let hint = "leave `alone` out, or add a second `[[traffic]]`";
        table.warn(table.error("alone", message, "no effect").hint(hint).warning());
    }
    if jobs.iter().any(|(_, name)| name.is_none()) && traffic.tables.len() > 1 {
        let message = "a job without a name has no results of its own";
        return table.fail("alone", message, "of which job?", "give each job a `name`");
    }
    Ok(())
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
    /// The first key that asks for something of each packet, if one does.
    pub(crate) fn of_packets(&self) -> Option<&'static str> {
        let keys =
            [(self.life, "life"), (self.packet_latency, "packet_latency"), (self.rtt, "rtt")];
        keys.into_iter().find_map(|(is_asked, key)| is_asked.then_some(key))
    }

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
