//! Hardware: designs in SystemVerilog, and Verilator to run them cycle by cycle.
//!
//! [`emit`] makes a module of a pipeline, [`pipelines`] of all of a program, [`nic`] a whole NIC of
//! two and of the [`blocks`] of `rtl/`. [`package`] is what of them goes to those who build
//! hardware.
//!
//! [`tools`] finds Verilator, [`sim`] builds a design and runs it as a child process, [`kept`] once
//! for all runs; [`cosim`] runs it beside its model, [`machine`] as the NIC of a simulated host.
//! [`paths`], [`state`], [`synth`] and [`report`] say what a design takes, [`prove`] searches for
//! inputs that break its assertions.

pub mod blocks;
pub mod cosim;
pub mod emit;
mod guard;
pub mod kept;
pub mod machine;
pub mod nic;
pub mod package;
pub mod paths;
pub mod pipelines;
mod ports;
pub mod prove;
pub mod record;
pub mod report;
mod runtime;
pub mod sim;
pub mod state;
pub mod switch;
pub mod synth;
pub mod tools;
mod yosys;
