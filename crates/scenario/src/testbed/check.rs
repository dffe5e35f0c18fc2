//! What of a scenario real hosts and switches can do.

use fabric::{Node, Tier};
use switch::Switch;

use crate::Scenario;
use crate::diagnostic::{Checked, Diagnostic};

/// More hosts than this share no machine in a way that says anything.
const HOSTS_MAX: u32 = 64;
/// What a message may have: hosts keep it in memory.
pub(super) const MESSAGE_MAX: u64 = 1 << 30;
/// Around a packet on a real wire, beside its transport's headers: IPv4, UDP, shim.
const AROUND: u32 = 20 + 8 + wire::shim::SHIM_LEN as u32;
/// The largest MTU that a virtual link has (IPv4's longest packet).
const MTU_MAX: u32 = 65_535;

/// The switches of a scenario.
pub(super) fn switches(scenario: &Scenario) -> Vec<Node> {
    let topology = &scenario.topology;
    let of = |tier| (0..topology.switches_of(tier)).map(move |n| Node::Switch(tier, n));
    Tier::ALL.into_iter().flat_map(of).collect()
}

/// The switch `node` of a scenario.
pub(super) fn switch(scenario: &Scenario, node: Node) -> Checked<Switch> {
    Switch::new(&scenario.topology, &scenario.config, node).map_err(|error| {
        let places = &scenario.places;
        let at = match error.table {
            "queue" => &places.queue,
            "buffer" => &places.buffer,
            "transport" => &places.transport,
            _ => &places.topology,
        };
        let error = at.error(error.to_string(), "only in the simulator");
        error.hint("`trimline run` simulates it")
    })
}

/// Refuse what real hosts and switches cannot do.
pub(super) fn scenario(scenario: &Scenario) -> Checked<()> {
    let (places, hosts) = (&scenario.places, scenario.topology.hosts());
    if hosts > HOSTS_MAX {
        let error = places.topology.error(format!("{hosts} hosts on one machine"), "too many");
        return Err(error.hint(format!("{HOSTS_MAX} hosts at most; `trimline run` has no limit")));
    }
    for node in switches(scenario) {
        switch(scenario, node)?;
    }
    if scenario.sharing.is_some() || scenario.config.skip.is_some() {
        let error = Diagnostic::new("real hosts send every packet: [engine] asks for fewer");
        return Err(error.hint("`--set engine.level=packet --set engine.skip=false`"));
    }
    if scenario.measure.alone {
        let error = places.measure.error("a testbed runs once", "only in the simulator");
        return Err(error.hint("leave `alone` out of [measure]"));
    }
    if scenario.host.queue.is_some() || scenario.host.stack.is_some() {
        let error = places.host.error("real hosts have a stack of their own", "only simulated");
        return Err(error.hint("leave `queue` and `stack` of [host] out"));
    }
    for (at, part) in places.traffic.iter().zip(&scenario.traffic.tables) {
        if part.longest().is_some_and(|longest| longest > MESSAGE_MAX) {
            let what = "hosts of the testbed keep each message in memory";
            let error = at.error(what, "only in the simulator");
            return Err(error.hint("messages of 1 GiB at most, none without an end"));
        }
        if part.job.as_ref().is_some_and(|job| job.placement().nics() > 1) {
            let what = "real hosts have no scale-up switch between them";
            return Err(at.error(what, "only in the simulator").hint("leave `nics` out"));
        }
    }
    Ok(())
}

/// The MTU that the packets of a scenario need on a real wire.
pub(super) fn mtu(scenario: &Scenario) -> Checked<u32> {
    let mtu = u32::from(scenario.transports.mtu()) + AROUND + wire::shim::MAX_HEADER as u32;
    if mtu > MTU_MAX {
        let what = format!("packets that need an MTU of {mtu} bytes, with IP, UDP and shim");
        let error = scenario.places.transport.error(what, "too long for IPv4");
        return Err(error.hint(format!("a payload that is {} bytes shorter", mtu - MTU_MAX)));
    }
    Ok(mtu)
}

/// A name that namespaces, files and a shell can have.
pub(super) fn name(name: &str) -> Checked<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 40 || !name.chars().all(good) {
        let error = Diagnostic::new(format!("`{name}` cannot be the name of a testbed"));
        return Err(error.hint("letters, digits, `-` and `_`, 40 at most: --name NAME"));
    }
    Ok(())
}
