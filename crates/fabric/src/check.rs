//! What a run refuses to start with.

use queues::{Capacity, QueueSpec};
use units::Rate;

use crate::config::{Config, ConfigError, FaultAction};
use crate::pfc::{check_memory, check_pause};
use crate::topology::Topology;

/// Whether a run can be put together from these.
pub(crate) fn check(
    topology: &Topology,
    config: &Config,
    endpoints: usize,
    apps: usize,
) -> Result<(), ConfigError> {
    let hosts = topology.hosts() as usize;
    if endpoints != hosts || apps != hosts {
        let what = format!("{endpoints} endpoints and {apps} applications for {hosts} hosts");
        return Err(ConfigError(what));
    }
    check_faults(topology, config)?;
    topology.check_slot_heap(&config.faults).map_err(ConfigError)?;
    if let Some(link) = topology.links().iter().find(|link| link.rate == Rate(0)) {
        return Err(ConfigError(format!("{link} has a rate of zero")));
    }
    if let Some((link, _)) =
        config.queues_at.iter().find(|(n, _)| *n as usize >= topology.links().len())
    {
        return Err(ConfigError(format!("a queue at link {link}, which is not there")));
    }
    let queues = config.queues_at.iter().map(|(_, queue)| queue).chain([&config.queue]);
    for capacity in queues.flat_map(|queue| queue.spec().capacities()) {
        if let Capacity::Packets(n) = capacity
            && u64::from(n) * u64::from(topology.mtu()) > u64::from(u32::MAX) / 2
        {
            return Err(ConfigError(format!("a queue of {n} packets holds 2 GB or more")));
        }
    }
    check_buffer(config)?;
    check_lossless(topology, config)
}

fn check_lossless(topology: &Topology, config: &Config) -> Result<(), ConfigError> {
    let lossless = |queue: &QueueSpec| matches!(queue, QueueSpec::Lossless(_));
    if config.queues_at.iter().any(|(_, queue)| lossless(queue) != lossless(&config.queue)) {
        return Err(ConfigError("lossless queues at some ports and others at others".to_owned()));
    }
    match &config.queue {
        QueueSpec::Lossless(spec) => check_memory(topology, &spec.memory, config.host_clock)
            .and_then(|()| check_pause(topology, config.pfc.pause))
            .map_err(ConfigError),
        _ => Ok(()),
    }
}

fn check_buffer(config: &Config) -> Result<(), ConfigError> {
    let Some(buffer) = config.buffer else { return Ok(()) };
    if !config.queue.spec().shares_memory() {
        return Err(ConfigError("a shared buffer for queues that do more than drop".to_owned()));
    }
    if !(buffer.alpha > 0.0 && buffer.alpha.is_finite()) {
        return Err(ConfigError(format!("a shared buffer with an alpha of {}", buffer.alpha)));
    }
    Ok(())
}

fn check_faults(topology: &Topology, config: &Config) -> Result<(), ConfigError> {
    let links = topology.links().len();
    for fault in &config.faults {
        let wrong = match fault.action {
            _ if fault.link as usize >= links => format!("of {links}"),
            FaultAction::Rate(Rate(0)) => "to a rate of zero".to_owned(),
            FaultAction::Loss(share) if !(0.0..=1.0).contains(&share) => {
                format!("to a loss of {share}")
            }
            _ => continue,
        };
        return Err(ConfigError(format!("a fault of link {} {wrong}", fault.link)));
    }
    Ok(())
}
