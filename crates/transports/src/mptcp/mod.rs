//! Multipath TCP: what its subflows share. A subflow is a connection of [`crate::tcp`].

// Until the endpoint asks.
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) mod coupling;
