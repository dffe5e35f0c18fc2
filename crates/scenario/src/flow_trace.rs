//! `--trace flows@SRC:MSG`: windows, rates and round trips of chosen messages over time.

use endpoint::{FlowRecord, RttRecord};
use metrics::{FileError, FlowTraceRow, OutputDir, StagedFile, TableWriter};
use units::MsgKey;

/// Collects what is said of some messages. They are few, so their rows are in memory.
pub(crate) struct FlowTracer {
    keys: Vec<MsgKey>,
    /// The scenario itself asks for round-trip samples, of all messages.
    keeps_rtts: bool,
    rows: Vec<FlowTraceRow>,
    file: StagedFile,
}

impl FlowTracer {
    /// Writes to `out` in the end.
    pub(crate) fn new(
        keys: &[MsgKey],
        keeps_rtts: bool,
        out: &OutputDir,
    ) -> Result<Self, FileError> {
        let file = out.file("flow_trace.parquet")?;
        Ok(Self { keys: keys.to_vec(), keeps_rtts, rows: Vec::new(), file })
    }

    fn row(key: MsgKey) -> FlowTraceRow {
        FlowTraceRow { src: key.src.0, msg: key.id.0, ..FlowTraceRow::default() }
    }

    pub(crate) fn state(&mut self, record: &FlowRecord) {
        let FlowRecord { at, key, state } = *record;
        let (window, in_flight, credit) = (state.window, state.in_flight, state.credit);
        let rate = state.rate.map(|rate| rate.0);
        self.rows.push(FlowTraceRow { at, window, in_flight, credit, rate, ..Self::row(key) });
    }

    /// A sample. Whether the scenario wants it, too.
    pub(crate) fn rtt(&mut self, record: &RttRecord) -> bool {
        let RttRecord { at, key, rtt } = *record;
        if self.keys.contains(&key) {
            self.rows.push(FlowTraceRow { at, rtt: Some(rtt), ..Self::row(key) });
        }
        self.keeps_rtts
    }

    /// Write the file: by message, then in the order of time. The messages without a row.
    pub(crate) fn finish(mut self) -> Result<Vec<MsgKey>, FileError> {
        // Stable: what was said at one instant keeps its order.
        self.rows.sort_by_key(|row| (row.src, row.msg, row.at));
        let said =
            |key: &MsgKey| self.rows.iter().any(|row| (row.src, row.msg) == (key.src.0, key.id.0));
        let silent = self.keys.iter().copied().filter(|key| !said(key)).collect();
        let mut table = TableWriter::new(self.file)?;
        self.rows.into_iter().try_for_each(|row| table.push(row))?;
        table.finish()?;
        Ok(silent)
    }
}
