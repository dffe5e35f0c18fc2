//! Scenario files: read, checked, resolved, run, evaluated. The one place that knows transports
//! and the fabric.
//!
//! [`Scenario`] is an experiment as data. [`run()`] runs one and writes its result files;
//! [`evaluate`] leaves them in memory, [`simulate`] only runs it, [`observe`] watches it. [`list`]
//! says what a scenario can name. [`Document`] and [`Reader`] read other files of the same kind,
//! too.
//!
//! The way of a scenario through this crate: `document` (a tree in which every value knows its
//! place, edited by `--set`), `reader` (one table, by the definitions of its keys in `key`), one
//! module per table (`transport`, `topology`, `queue`, `routing`, `traffic`, `fault`, `measure`),
//! `scenario` (all of them), `check` (what it will do and what looks wrong, before a run), `run`
//! (into the fabric, with `record` or `trace` as observer; the latter carries `packet_latency`),
//! `calibrate` (a part of a run, to say what all of it takes),
//! `results` and `warnings`.
//!
//! `testbed` runs the same scenarios on this machine: real hosts and switches in network
//! namespaces.
//!
//! Deliberately absent: arguments, terminals, HTML.

mod buffer;
mod calibrate;
mod captures;
pub mod cases;
mod check;
mod command_line;
mod critical;
mod diagnostic;
mod distribution;
mod document;
mod error;
mod explain;
mod fault;
mod files;
mod flow_trace;
mod host;
mod key;
mod level;
pub mod list;
mod lossless;
mod measure;
mod mux;
mod p4;
mod packet_latency;
mod packet_lifetime;
mod place;
mod queue;
mod reader;
mod record;
mod registry;
mod results;
mod routing;
mod run;
mod sample;
mod scenario;
mod skip;
mod steps;
mod steps_done;
pub mod testbed;
mod time_line;
mod topology;
mod trace;
mod traffic;
mod transport;
mod value;
mod variant;
mod warnings;

pub use self::p4::{CheckedProgram, Entries, check_program};
pub use calibrate::{Calibrated, Whole, calibrate};
pub use check::Estimate;
pub use command_line::{command_line, quoted};
pub use diagnostic::{Diagnostic, Source, did_you_mean, nearest};
pub use distribution::size_distribution;
pub use document::{At, Document, Node, Table, Value};
pub use error::Error;
pub use explain::{Explained, Step, Which, explain, message_key};
pub use fabric::Progress;
pub use files::{fingerprint_128, read_text};
pub use key::Section;
pub use level::Rung;
pub use measure::Measure;
pub use packet_latency::Latencies;
pub use reader::Reader;
pub use results::Results;
pub use run::{
    ENGINE_VERSION, OnProgress, Options, Simulated, Written, evaluate, manifest, observe, run,
    simulate, unwritable, version,
};
pub use scenario::{OnReading, Scenario};
pub use steps_done::{StepDone, StepsDone};
pub use trace::Trace;
pub use transport::custom::{CUSTOM_PROTO, CustomHost, CustomTransport};
pub use transport::hardware::{check_rate, nic_config, no_circuits, port_sizes, protocols};
pub use value::{Form, Refused, ScenarioValue};
pub use variant::Variant;
