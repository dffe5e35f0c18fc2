//! Transports, one file each.

pub mod ndp;
