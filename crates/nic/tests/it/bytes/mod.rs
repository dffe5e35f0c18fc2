//! The NIC with bytes instead of simulated packets: a device, a network of them, a host's memory
//! that messages are written to, and a stage on the payload's way.

pub(crate) mod device;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod payload;
