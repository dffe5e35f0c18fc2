//! The life of one message: a run that follows it, and stops when it is known.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use endpoint::{Carried, Cause, Flags, Life, MessageRecord, Observer, Place, Segment, UNBOUNDED};
use fabric::{LifeDetail, Topology};
use metrics::{CAUSES, LIFE_CAUSES, LifeCause};
use units::{Dur, HostId, MsgId, MsgKey, Time};

use crate::diagnostic::Diagnostic;
use crate::error::Error;
use crate::{OnProgress, Options, Scenario};

/// Which message is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one of the measured messages that took the longest; of equal ones the first by source
    /// and number.
    Max,
    /// This one.
    Message(MsgKey),
}

/// `SRC:MSG`, as in `flows.parquet`, or `max`.
impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let hint = |why| format!("{why}; or `max`");
        message_key(text).map(Self::Message).map_err(hint)
    }
}

/// A message as commands name it: `SRC:MSG`, the columns of `flows.parquet`.
///
/// # Errors
/// A sentence, if the text is something else.
pub fn message_key(text: &str) -> Result<MsgKey, String> {
    let key = text.split_once(':').and_then(|(src, id)| {
        Some(MsgKey { src: HostId(src.parse().ok()?), id: MsgId(id.parse().ok()?) })
    });
    key.ok_or_else(|| format!("`{text}` names no message: SRC:MSG, such as 3:0"))
}

/// The life of a message.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Which.
    pub key: MsgKey,
    /// The receiving host.
    pub dst: HostId,
    /// Bytes.
    pub len: u64,
    /// When it was submitted.
    pub submitted: Time,
    /// Its completion time.
    pub fct: Dur,
    /// That of the same message alone in the same fabric.
    pub ideal: Dur,
    /// How long it spent on each cause, by [`CAUSES`].
    pub spent: [Dur; LIFE_CAUSES],
    /// The same in the order of time, without gaps.
    pub steps: Vec<Step>,
}

/// A part of a message's life that has one cause.
#[derive(Clone, Debug)]
pub struct Step {
    /// How long after the submission it begins.
    pub after: Dur,
    /// How long it takes.
    pub length: Dur,
    /// Why.
    pub cause: LifeCause,
    /// The host, or the link (its queue is at its beginning), as `fault` names it.
    pub place: String,
    /// The packet that was on its way or waited to leave: "data 9000+9000" with its first byte and
    /// its length, "control"; empty if there was none.
    pub packet: String,
}

impl Step {
    pub(crate) fn new(topology: &Topology, submitted: Time, segment: &Segment) -> Self {
        let Segment { at, length, cause, place, packet } = *segment;
        let place = match place {
            Place::Host(host) => host.to_string(),
            Place::Link(link) => topology.links()[link as usize].to_string(),
        };
        let packet = packet.map_or_else(String::new, |packet| name(&packet));
        Self { after: at.since(submitted), length, cause: CAUSES[cause as usize], place, packet }
    }
}

fn name(packet: &Carried) -> String {
    let Carried { flags, class, offset, len } = *packet;
    let class = if class > 0 { format!(", class {class}") } else { String::new() };
    match flags.has(Flags::CONTROL) {
        true => format!("control{class}"),
        false => format!("data {offset}+{len}{class}"),
    }
}

/// What is known of a message that has been delivered.
struct Found {
    key: MsgKey,
    fct: Dur,
    spent: [Dur; Cause::COUNT],
    segments: Vec<Segment>,
}

/// Waits for the message that is meant.
struct Explainer {
    which: Which,
    window: (Time, Time),
    found: Option<Found>,
    /// What became of it.
    record: Option<MessageRecord>,
    /// Messages of its host that were submitted.
    of_host: u64,
    /// Raised when nothing more is to come.
    known: Arc<AtomicBool>,
}

impl Explainer {
    /// Whether this message, which took `fct`, is the one, as far as is known.
    fn is_meant(&self, life: &Life<'_>) -> bool {
        let fct = life.delivered.since(life.submitted);
        match self.which {
            Which::Message(key) => key == life.key,
            Which::Max => {
                let (from, to) = self.window;
                let measured = from <= life.submitted && life.submitted < to;
                let order = |fct: Dur, key: MsgKey| (fct, std::cmp::Reverse(key));
                let last = self.found.as_ref().map(|last| order(last.fct, last.key));
                measured && last.is_none_or(|last| last < order(fct, life.key))
            }
        }
    }
}

impl Observer for Explainer {
    fn life(&mut self, life: &Life<'_>) {
        if self.is_meant(life) {
            self.found = Some(Found {
                key: life.key,
                fct: life.delivered.since(life.submitted),
                spent: *life.spent,
                segments: life.segments.to_vec(),
            });
            self.known.store(self.which != Which::Max, Ordering::Relaxed);
        }
    }

    fn message(&mut self, record: &MessageRecord) {
        let of_host = matches!(self.which, Which::Message(key) if key.src == record.key.src);
        self.of_host += u64::from(of_host);
        // The last so far may have been another one when its record came.
        let meant = match self.which {
            Which::Message(key) => key == record.key,
            Which::Max => self.found.as_ref().is_some_and(|found| found.key == record.key),
        };
        if meant {
            self.record = Some(*record);
        }
    }
}

/// Run `scenario` and find out where the time of the message went that is meant.
///
/// # Errors
/// As of a run; or there is no such message, or it was not delivered.
pub fn explain(
    scenario: &Scenario,
    options: &Options,
    which: Which,
    progress: OnProgress<'_>,
) -> Result<Explained, Error> {
    let options = Options { life: LifeDetail::Segments, ..options.clone() };
    let known = Arc::new(AtomicBool::new(false));
    let mut explainer = Explainer {
        which,
        window: scenario.config.window,
        found: None,
        record: None,
        of_host: 0,
        known: Arc::clone(&known),
    };
    let end = crate::run::follow(scenario, &options, &mut explainer, progress, &known)?;
    let Explainer { found, record, of_host, .. } = explainer;
    match (found, record) {
        (Some(Found { key, fct, spent, segments }), Some(record)) => {
            let MessageRecord { dst, len, submitted, ideal, .. } = record;
            let step = |segment| Step::new(scenario.topology(), submitted, segment);
            let steps = segments.iter().map(step).collect();
            Ok(Explained { key, dst, len, submitted, fct, ideal, spent, steps })
        }
        (_, record) => Err(missing(scenario, which, record, of_host, end).into()),
    }
}

/// Why there is nothing to explain.
fn missing(
    scenario: &Scenario,
    which: Which,
    record: Option<MessageRecord>,
    of_host: u64,
    end: Time,
) -> Diagnostic {
    let Which::Message(key) = which else {
        let hint = "look at [measure]: the window, and `limit`";
        return Diagnostic::new("no measured message was delivered").hint(hint);
    };
    if let Some(record) = record {
        let failed = record.failed.map(|why| format!("{why:?}").to_lowercase());
        let why = match failed {
            _ if record.len == UNBOUNDED => "has no end".to_owned(),
            Some(why) => format!("was not delivered: it failed ({why})"),
            None => {
                let MessageRecord { placed, len, .. } = record;
                format!("was not delivered: {placed} of {len} bytes had arrived after {end}")
            }
        };
        let hint = "choose one that has a completion time in flows.parquet, or `max`";
        return Diagnostic::new(format!("{key} {why}")).hint(hint);
    }
    let hosts = scenario.topology().hosts();
    let hint = match of_host {
        _ if key.src.0 >= hosts => format!("the scenario has hosts 0 to {}", hosts - 1),
        0 => format!("{} submitted no message", key.src),
        1 => format!("{} submitted one message, {}:0", key.src, key.src.0),
        n => format!("{} submitted {n} messages, {2}:0 to {2}:{1}", key.src, n - 1, key.src.0),
    };
    Diagnostic::new(format!("there is no {key}")).hint(hint)
}

/// `3:12`.
impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Message(key) => write!(f, "{}:{}", key.src.0, key.id.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_named_as_in_the_files() {
        let key = MsgKey { src: HostId(3), id: MsgId(12) };
        for which in [Which::Max, Which::Message(key)] {
            assert_eq!(which.to_string().parse(), Ok(which));
        }
        for wrong in ["", "3", "3:", ":1", "3:x", "-1:0", "3:1:2", "Max", "99999999999:0"] {
            assert!(wrong.parse::<Which>().is_err(), "{wrong}");
        }
    }
}
