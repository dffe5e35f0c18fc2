//! A circuit beside the model of the clocked law (docs/nic.md), cycle by cycle.

pub mod traffic;
