//! The applications. Each implements [`endpoint::App`] for one host; what many hosts share (a
//! distribution, a list of destinations, the triggers) is behind an `Arc`, so that a host's own
//! state stays within some hundred bytes.

mod barrier;
#[cfg(test)]
mod bench;
mod closed_loop;
mod destinations;
mod partition_aggregate;
mod poisson;
mod rpc;
mod schedule;
mod stop;

pub use barrier::{Barrier, BarrierSpec, window_share};
pub use closed_loop::{ClosedLoop, ClosedLoopSpec, Gap};
pub use destinations::Destinations;
pub use partition_aggregate::{
    Aggregate, Arrivals, LEVELS_MAX, PartitionAggregate, Placement, QuerySpec, WORKERS_MAX,
};
pub use poisson::{Poisson, PoissonSpec};
pub use rpc::{RESPONSE_MAX, Rpc, RpcSpec};
pub use schedule::Schedule;
pub(crate) use schedule::{Entry, TriggerRow, TriggerTable};
pub use stop::Stop;

use endpoint::{App, AppCx};

/// The application of a host that only receives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl App for Quiet {
    fn on_start(&mut self, _: &mut AppCx<'_>) {}
}
