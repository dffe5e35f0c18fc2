//! Hardware: designs in SystemVerilog, and Verilator to run them cycle by cycle.
//!
//! [`tools`] finds Verilator, [`sim`] builds a design and runs it as a child process.

pub mod record;
pub mod sim;
pub mod tools;
