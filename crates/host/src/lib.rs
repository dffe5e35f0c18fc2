//! The same endpoints on a real clock and real packets.
//!
//! A [`Host`] runs one [`endpoint::Endpoint`] and one [`endpoint::App`] over a [`Socket`]: UDP, or
//! AF_XDP. It is an environment like the simulated fabric, and keeps the same contract: an endpoint
//! cannot tell which of the two it runs in. One thread, one loop, no async runtime.
//!
//! | file | what |
//! |---|---|
//! | `runtime` | [`Host`]: the loop; calls the endpoint and the application, applies their effects |
//! | `link` | packets to datagrams and back, faults on purpose |
//! | `backend` | what carries datagrams, as a trait |
//! | `udp` | datagrams over UDP sockets, in trains |
//! | `stamps` | when the kernel sent them |
//! | `xdp` | datagrams over AF_XDP, as frames |
//! | `memory` | datagrams to another end in this process |
//! | `neighbours` | to which MAC address a frame goes |
//! | `node` | [`Node`]: a host on a thread of its own, for programs |
//! | `doorbell` | wakes a sleeping host from any thread |
//! | `inbox` | messages being reassembled; each byte is placed once |
//! | `outbox` | messages that are not over, and what they say |
//! | `signals` | what hosts, and their applications, tell each other outside messages |
//! | `lives` | which life of each peer counts |
//! | `introductions` | messages to peers that have to say first which life that is |
//! | `timers` | one deadline per timer |
//! | `clock` | the monotonic clock as [`units::Time`] |
//! | `content` | where payload comes from and goes to |
//!
//! Deliberately absent: transports (they come as `Box<dyn Endpoint>`) and threads.

mod backend;
mod clock;
mod config;
mod content;
mod doorbell;
mod error;
mod inbox;
mod introductions;
mod link;
mod lives;
mod memory;
mod neighbours;
mod node;
mod outbox;
mod runtime;
mod signals;
mod stamps;
mod timers;
mod udp;
mod xdp;

pub use backend::Socket;
pub use config::{AddressBook, Config, Way};
pub use content::{Content, Pattern};
pub use error::{ContractViolation, Error};
pub use link::{Fate, Faults, seeded_faults};
pub use memory::{Carried, Memory};
pub use node::{Delivery, Limits, Manner, Message, Node, NodeError, Reply};
pub use runtime::{Counters, Host};
pub use udp::bind;
pub use wire::shim::Key;
pub use xdp::{Xdp, XdpError};
