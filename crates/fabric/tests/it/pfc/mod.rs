//! Priority flow control in the fabric (specs/rdma.md#1,2,9): pauses
//! to the tenth of a nanosecond, that nothing is lost, and what goes wrong with it.

mod deadlock;
mod frames;
mod line;
mod script;
mod sharing;
mod telemetry;
