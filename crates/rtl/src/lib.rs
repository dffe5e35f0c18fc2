//! Hardware: designs in SystemVerilog, and Verilator to run them cycle by cycle.
//!
//! [`emit`] makes a module of a pipeline, [`tools`] finds Verilator, [`sim`] builds a design and
//! runs it as a child process, [`synth`] says what it costs.

pub mod emit;
pub mod record;
pub mod sim;
pub mod synth;
pub mod tools;
