//! Exact integer quantities: time in picoseconds, sizes in bytes, rates in bits per second, and
//! the ids of the things that own them. Everything else in the workspace counts in these.
//!
//! No floats, no conversions that lose anything without saying so in their name, no dependencies.

mod id;
mod parse;
mod quantity;

pub use id::{HostId, MsgId, MsgKey, TimerId};
pub use parse::UnitError;
pub use quantity::{Bytes, Dur, Rate, Time};
