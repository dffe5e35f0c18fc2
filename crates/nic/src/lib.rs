//! The NIC that is programmed in P4 (nanoTransport, SOSR 2021): the blocks around its two
//! pipelines, and a switch port that is programmed so.
//!
//! [`nano`] is the NIC, [`switch`] the port. Either runs a `p4::program::Program`.
//!
//! Deliberately absent: the language (crate `p4`), event queues, links, files.

pub mod nano;
pub mod switch;
