//! Hardware: designs in SystemVerilog, and Verilator to run them cycle by cycle.
//!
//! [`emit`] makes a module of a pipeline, [`nic`] a whole NIC of two and of the [`blocks`] of
//! `rtl/`. [`tools`] finds Verilator, [`sim`] builds a design and runs it as a child process,
//! [`cosim`] beside the model of the clocked law, [`machine`] as the NIC of a simulated host.
//! [`synth`] says what a design costs, [`prove`] searches for inputs that break its assertions.

pub mod blocks;
pub mod cosim;
pub mod emit;
pub mod machine;
pub mod nic;
mod ports;
pub mod prove;
pub mod record;
mod runtime;
pub mod sim;
pub mod synth;
pub mod tools;
mod yosys;
