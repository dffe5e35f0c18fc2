//! Hardware: designs in SystemVerilog, and Verilator to run them cycle by cycle.
//!
//! [`tools`] finds Verilator, [`sim`] builds a design and runs it as a child process,
//! [`synth`] says what it costs, [`prove`] searches for inputs that break its assertions.

pub mod prove;
pub mod record;
pub mod sim;
pub mod synth;
pub mod tools;
