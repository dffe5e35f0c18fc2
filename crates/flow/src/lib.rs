//! A fabric without packets: messages are fluids that share links, so that a message costs a few
//! events instead of one for each packet and hop.
//!
//! - [`Rule`]: who gets how much. Max-min fair shares (Bertsekas and Gallager, *Data Networks*,
//!   section 6.5.2), or the shortest message first at every link.
//! - A message alone takes its ideal completion time ([`fabric::Topology::ideal`]): the fluid is
//!   its bytes on the wire, and what the fluid lacks of the ideal time (propagation, stores and
//!   forwards) is added to its end.
//! - A window that opens ([`Law::window`]) bounds a message's rate: the window over the round-trip
//!   time, doubled each round trip.
//!
//! Applications run as they are over packets, with the same draws, so that traffic is the same.
//! Records go to the same observer.
//!
//! Deliberately absent: queues, losses, marks, pauses and whatever else packets have.

mod engine;
mod events;
mod pipes;
mod shares;

pub use engine::{Config, Law, Sim, check};
pub use shares::Rule;
