//! What tests of transports need: a small network on a simulated clock ([`Net`]), wires that
//! misbehave on request ([`fault`]), a suite that every transport must pass ([`conformance`]),
//! peers that keep no rule ([`hostile`]), and the invariants of single transports ([`ndp`]).
//! Dev-dependency only.
//!
//! The harness checks the contract of [`endpoint::Endpoint`] at every call, from the caller's side,
//! and panics with the time and the host when an endpoint breaks it.

mod bottleneck;
pub mod conformance;
pub mod fault;
pub mod hostile;
mod ledger;
mod naps;
pub mod ndp;
mod net;
#[cfg(test)]
mod tests;

pub use bottleneck::Bottleneck;
pub use fault::Verdict;
pub use ledger::{Ledger, Record};
pub use naps::Naps;
pub use net::{Link, Net, Seen, Sent, Star};
