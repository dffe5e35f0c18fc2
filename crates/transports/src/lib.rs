//! Transports, one file each.

pub mod cbr;
mod channels;
mod config;
mod connection_ids;
mod connections;
pub mod deadlines;
pub mod device_queue;
pub mod entropy;
pub mod homa;
mod incoming;
mod inner;
pub mod mptcp;
pub mod mux;
pub mod nano;
pub mod ndp;
mod outbox;
mod over;
pub mod pfabric;
pub mod phost;
pub mod rdma;
mod received;
pub mod rto;
mod rules;
mod slab;
pub mod stack;
pub mod tcp;
mod time_wait;
pub mod uet;

pub use config::ConfigError;
