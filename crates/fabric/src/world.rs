//! What all partitions read and none changes.

use std::sync::Arc;

use endpoint::Draw;

use crate::config::Config;
use crate::encoding::Tables;
use crate::partitioning::Partitioning;
use crate::route::Forwarding;
use crate::topology::Topology;

pub(crate) struct World {
    pub(crate) topology: Arc<Topology>,
    pub(crate) config: Config,
    pub(crate) forwarding: Forwarding,
    pub(crate) partitioning: Partitioning,
    pub(crate) tables: Tables,
    /// By switch.
    pub(crate) draws: Vec<Draw>,
}
