//! The `[measure]` table: which part of a run counts, and when to give up.

use units::{Dur, Time};

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

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
}

/// How long messages may take after the window has closed, unless `limit` says otherwise.
const PATIENCE: Dur = Dur::from_ms(1_000);

/// Read `[measure]`. `endless` names traffic that never ends by itself and so needs a window.
pub(crate) fn read(
    table: &mut Reader<'_>,
    endless: Option<&'static str>,
) -> Result<Measure, Diagnostic> {
    let from = table.or("from", Time::ZERO)?;
    let to: Option<Time> = table.maybe("to")?;
    if let (None, Some(traffic)) = (to, endless) {
        let hint = format!("{traffic} never ends: say until when to measure, `to = \"25ms\"`");
        return Err(table.missing("to", &hint));
    }
    if to.is_some_and(|to| to <= from) {
        let message = "the measurement window is empty: `to` is not after `from`";
        return Err(table.error("to", message, "too early").hint(format!("after \"{from}\"")));
    }
    let limit = table.or("limit", to.unwrap_or(from).saturating_add(PATIENCE))?;
    if limit < to.unwrap_or(from) || limit == Time::ZERO {
        let message = "the run ends before the measurement window does";
        return Err(table.error("limit", message, "too early").hint("`limit` is the last instant"));
    }
    Ok(Measure { from, to, limit })
}

/// No `[measure]`: everything counts. For endless traffic that is an error; the hint for it.
pub(crate) fn without(endless: Option<&'static str>) -> Result<(Measure, toml::Table), String> {
    if let Some(traffic) = endless {
        return Err(format!(
            "{traffic} never ends: add `[measure]` with `from = \"5ms\"` and `to = \"25ms\"`"
        ));
    }
    let measure =
        Measure { from: Time::ZERO, to: None, limit: Time::ZERO.saturating_add(PATIENCE) };
    let mut resolved = toml::Table::new();
    for (key, time) in [("from", measure.from), ("limit", measure.limit)] {
        resolved.insert(key.to_owned(), toml::Value::String(time.to_string()));
    }
    Ok((measure, resolved))
}

/// Samples of a window: enough for a plot.
const SAMPLES: u64 = 500;
/// The finest grid for stop conditions and samples.
const FINEST: Dur = Dur::from_us(1);

impl Measure {
    /// How often queues and rates are sampled: some hundred times a window, not below 1 us. With
    /// no window, every 50 us.
    #[must_use]
    pub fn sample_every(&self) -> Dur {
        match self.to {
            Some(to) => Dur((to.since(Time::ZERO).0 / SAMPLES).max(FINEST.0)),
            None => Dur::from_us(50),
        }
    }

    /// How often stop conditions are looked at.
    #[must_use]
    pub fn grid(&self) -> Dur {
        Dur::from_us(10)
    }
}
