//! [`FlowTraceRow`]: windows, rates and round trips of chosen messages over time.

use std::path::Path;

use units::{Dur, Time};

use crate::table::read_table;
use crate::{Columns, FileError, Row};

/// What a transport lets a message send from an instant on, or a round-trip sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTraceRow {
    /// Since when.
    pub at: Time,
    /// The sending host.
    pub src: u32,
    /// The sending host's counter of messages.
    pub msg: u64,
    /// Bytes that may be in flight.
    pub window: Option<u64>,
    /// Bytes in flight.
    pub in_flight: Option<u64>,
    /// Bytes that may be sent without hearing more from the receiver.
    pub credit: Option<u64>,
    /// Bits per second.
    pub rate: Option<u64>,
    /// The sample; then the others are `None`.
    pub rtt: Option<Dur>,
}

impl Row for FlowTraceRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("at_ps", "since when, since the start of the run")
            .field(|r| &mut r.at)
            .column("src", "sending host, from 0")
            .field(|r| &mut r.src)
            .column("msg", "the sending host's counter of messages, from 0")
            .field(|r| &mut r.msg)
            .column("window_bytes", "congestion window; null if the transport has none")
            .field(|r| &mut r.window)
            .column("in_flight_bytes", "sent, and neither acknowledged nor taken for lost; or null")
            .field(|r| &mut r.in_flight)
            .column("credit_bytes", "granted or pulled for, and not sent yet; or null")
            .field(|r| &mut r.credit)
            .column("rate_bps", "the rate at which it is paced; or null")
            .field(|r| &mut r.rate)
            .column("rtt_ps", "a round-trip sample; then the four columns before are null")
            .field(|r| &mut r.rtt)
    }
}

/// All rows of a `flow_trace.parquet`, in file order.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_flow_trace(path: &Path) -> Result<Vec<FlowTraceRow>, FileError> {
    read_table(path)
}
