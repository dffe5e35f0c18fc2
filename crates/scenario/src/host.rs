//! The `[host]` table: what is between a host's transports and its link.

use endpoint::Endpoint;
use queues::Capacity;
use transports::device_queue::DeviceQueue;
use transports::stack::{HostStack, StackDelay};
use units::{Dur, HostId};
use workload::HostSet;

use crate::diagnostic::Diagnostic;
use crate::key::{Section, keys, section};
use crate::reader::Reader;

/// What hosts have beside their transports. Without the table, nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// Packets that may wait before the link; `None`: the transport is asked when the link is free.
    pub(crate) queue: Option<u32>,
    /// How long packets take between link and transport; `None`: no time.
    pub(crate) stack: Option<StackDelay>,
    /// The hosts with that stack, ascending.
    pub(crate) stacked: Vec<HostId>,
}

/// A median beyond this is no stack's: the longest link.
const LONGEST: Dur = Dur::from_ms(10_000);

keys! { HOST: Option<Capacity> {
    queue (get |queue| *queue, set |queue, v: Capacity| *queue = Some(v)): Capacity,
        "what may wait at each interface, the packet in transmission *not* included, as in ns-3. \
         A switch port of ns-3 with `n` packets is `capacity = \"n + 1 packets\"` in `[queue]`"
            .range("packets").default("this or `stack` is required");
}}

/// The table `stack`.
struct Stack {
    delay: StackDelay,
    hosts: HostSet,
}

impl Stack {
    /// Before it is read.
    fn none() -> Self {
        let delay = StackDelay { median: Dur::ZERO, sigma: 0.0 };
        Self { delay, hosts: HostSet::all() }
    }
}

keys! { STACK: Stack {
    median (delay.median): Dur [Dur::ZERO..=LONGEST],
        "each packet takes a lognormal time from the link to the transport, and each from the \
         transport to the link; half of them no more than this. 0: no stack".written();
    sigma (delay.sigma): f64 [0.0..=3.0],
        "standard deviation of that time's natural logarithm".written();
    hosts (get |s| Some(s.hosts.clone()), set |s, v| s.hosts = v): HostSet,
        "which hosts have the stack".default("");
}}

/// For the reference: the keys of `[host]`.
pub(crate) fn keys() -> Vec<Section> {
    vec![section("host", HOST, &[], None)]
}

/// For the reference: those of its `stack`.
pub(crate) fn stack_keys() -> Vec<Section> {
    vec![section("host.stack", STACK, &[], Some(&Stack::none()))]
}

/// Read `[host]`, for `hosts` hosts.
pub(crate) fn read(table: &mut Reader<'_>, hosts: u32) -> Result<Host, Diagnostic> {
    let mut queue = None;
    table.keys(HOST, &mut queue, None)?;
    let queue = match queue {
        Some(Capacity::Packets(packets)) => Some(packets),
        Some(Capacity::Bytes(_)) => {
            let error = table.error("queue", "a device queue holds so many packets", "here");
            return Err(error.hint("write it like `queue = \"100 packets\"`"));
        }
        None => None,
    };
    let Some(mut stack) = table.table("stack")? else {
        return match queue {
            Some(_) => Ok(Host { queue, ..Host::default() }),
            None => Err(table.missing("queue", "add `queue = \"100 packets\"`, or `stack`")),
        };
    };
    let mut read = Stack::none();
    stack.keys(STACK, &mut read, None)?;
    stack.complete(&[])?;
    let stacked = read.hosts.members(hosts).map_err(|why| {
        let error = stack.error("hosts", format!("`hosts`: {why}"), "here");
        error.hint(format!("the hosts of the topology are 0 to {}", hosts.saturating_sub(1)))
    })?;
    table.finish_table("stack", stack)?;
    let stack = Some(read.delay).filter(|delay| delay.median > Dur::ZERO);
    Ok(Host { queue, stack, stacked })
}

impl Host {
    /// The longest that a packet can be between link and transport.
    pub(crate) fn longest_stack(&self) -> Dur {
        self.stack.map_or(Dur::ZERO, StackDelay::longest)
    }

    /// `endpoint` as it is on `host`: above the stack, which is above the queue.
    pub(crate) fn endpoint(&self, endpoint: Box<dyn Endpoint>, host: HostId) -> Box<dyn Endpoint> {
        let stacked = self.stacked.binary_search(&host).is_ok();
        let endpoint: Box<dyn Endpoint> = match self.stack.filter(|_| stacked) {
            Some(delay) => Box::new(HostStack::new(endpoint, delay)),
            None => endpoint,
        };
        match self.queue {
            Some(packets) => Box::new(DeviceQueue::new(endpoint, packets)),
            None => endpoint,
        }
    }
}
