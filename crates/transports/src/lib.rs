//! Transports, one file each.
