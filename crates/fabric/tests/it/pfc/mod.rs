//! Priority flow control in the fabric (spec dcqcn_pfc_hpcc_swift.md, sections 1, 2 and 9): pauses
//! to the tenth of a nanosecond, that nothing is lost, and what goes wrong with it.

mod deadlock;
mod frames;
mod line;
mod script;
mod sharing;
mod telemetry;
