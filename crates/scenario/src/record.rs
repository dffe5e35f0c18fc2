//! [`Recorder`]: the observer that keeps a row per message.

use endpoint::{MessageRecord, Observer, UNBOUNDED};
use metrics::FlowRow;
use units::Time;

/// Keeps what became of each message.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// One row per message, in the order in which they ended.
    pub(crate) rows: Vec<FlowRow>,
    /// The measurement window: messages submitted at `from <= t < to` are measured.
    from: Time,
    to: Option<Time>,
}

impl Recorder {
    pub(crate) const fn new(from: Time, to: Option<Time>) -> Self {
        Self { rows: Vec::new(), from, to }
    }
}

impl Observer for Recorder {
    fn message(&mut self, r: &MessageRecord) {
        let measured = self.from <= r.submitted && self.to.is_none_or(|to| r.submitted < to);
        self.rows.push(FlowRow {
            src: r.key.src.0,
            dst: r.dst.0,
            msg: r.key.id.0,
            traffic: r.tag,
            size: (r.len != UNBOUNDED).then_some(r.len),
            start: r.submitted,
            finish: r.delivered,
            acked: r.acked,
            ideal: r.ideal,
            placed: r.placed,
            placed_in_window: r.placed_in_window,
            measured,
        });
    }
}
