//! Rate-controlled transports over (mostly) lossless fabrics, as RDMA over Converged Ethernet has them.

mod config;
pub mod rule;

pub use config::{Config, ConfigError, Operation, Recovery, Segment, Speed, Timestamps};
pub use rule::RuleConfig;
