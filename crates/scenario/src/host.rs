//! The `[host]` table: what is between a host's transports and its link.

use endpoint::Endpoint;
use fabric::{HostClock, SendJitter, Topology};
use queues::Capacity;
use transports::device_queue::DeviceQueue;
use transports::stack::{HostStack, StackDelay};
use units::{Dur, HostId};
use workload::HostSet;

use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::value::{Form, Refused, ScenarioValue, words};

/// What hosts have beside their transports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// How far they differ in time.
    pub(crate) clock: HostClock,
    /// The seed of that and of ties; `None`: that of the scenario.
    pub(crate) phase_seed: Option<u64>,
    /// Packets that may wait before the link; `None`: the transport is asked when the link is free.
    pub(crate) queue: Option<u32>,
    /// How long packets take between link and transport; `None`: no time.
    pub(crate) stack: Option<StackDelay>,
    /// The hosts with that stack, ascending.
    pub(crate) stacked: Vec<HostId>,
}

/// Times beyond this are no host's: the longest link.
const LONGEST: Dur = Dur::from_ms(10_000);

/// What real hosts have: interfaces within the tolerance of Ethernet's clocks, and starts and sends
/// that are apart by up to a packet (specs/phases.md#2).
const USUAL: HostClock = HostClock { tolerance_ppm: 100, send_jitter: SendJitter::Frame };

/// The keys of the table itself.
struct Own {
    clock: HostClock,
    phase_seed: Option<u64>,
    queue: Option<Capacity>,
}

impl Own {
    /// Before it is read.
    const USUAL: Self = Self { clock: USUAL, phase_seed: None, queue: None };
}

keys! { HOST: Own {
    clock_ppm (clock.tolerance_ppm): u32 [0..=10_000],
        "each host's clock is within so many parts per million of the nominal rate, drawn from \
         the seed. Ethernet allows 100; 0: all hosts send at exactly their link's rate"
            .default("");
    send_jitter (clock.send_jitter): SendJitter,
        "each packet leaves up to this much late, drawn uniformly; packets keep their order and \
         their distance on the link. `\"frame\"`: up to the time of the longest packet on the \
         host's link. 0: hosts that start together stay in step, and phases decide who loses"
            .default("");
    phase_seed (get |own| own.phase_seed, set |own, v: u64| own.phase_seed = Some(v)): u64,
        "draws clocks, jitter and the order of packets that arrive at one instant, and nothing \
         else: a result that another one moves by more than seeds differ hangs on phases"
            .range("0 to 2^63 - 1").default("the seed");
    queue (get |own| own.queue, set |own, v: Capacity| own.queue = Some(v)): Capacity,
        "what may wait at each interface, the packet in transmission *not* included, as in ns-3. \
         A switch port of ns-3 with `n` packets is `capacity = \"n + 1 packets\"` in `[queue]`"
            .range("packets").default("the transport is asked when the link is free");
}}

impl ScenarioValue for SendJitter {
    fn form() -> Form {
        Dur::form().or_word("frame")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "frame" => Ok(Self::Frame),
            other => match Dur::read(other)? {
                Dur::ZERO => Ok(Self::None),
                longest if longest > LONGEST => {
                    Err(Refused::Range(longest.to_string(), words(&(Dur::ZERO..=LONGEST))))
                }
                longest => Ok(Self::UpTo(longest)),
            },
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::None => Dur::ZERO.show(),
            Self::Frame => toml::Value::String("frame".to_owned()),
            Self::UpTo(longest) => longest.show(),
        }
    }
}

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
    hosts: HostSet, "which hosts have the stack".default("");
}}

/// For the reference: the keys of `[host]`.
pub(crate) fn keys() -> Vec<Section> {
    vec![section("host", HOST, &[], Some(&Own::USUAL))]
}

/// For the reference: those of its `stack`.
pub(crate) fn stack_keys() -> Vec<Section> {
    vec![section("host.stack", STACK, &[], Some(&Stack::none()))]
}

/// Read `[host]`, for `hosts` hosts.
pub(crate) fn read(table: &mut Reader<'_>, hosts: u32) -> Checked<Host> {
    let mut own = Own::USUAL;
    table.keys(HOST, &mut own, None)?;
    let queue = match own.queue {
        Some(Capacity::Packets(packets)) => Some(packets),
        Some(Capacity::Bytes(_)) => {
            let error = table.error("queue", "a device queue of this length", "here");
            return Err(error.hint("write it like `queue = \"100 packets\"`"));
        }
        None => None,
    };
    let (stack, stacked) = match table.table("stack")? {
        Some(stack) => read_stack(table, stack, hosts)?,
        None => (None, Vec::new()),
    };
    Ok(Host { clock: own.clock, phase_seed: own.phase_seed, queue, stack, stacked })
}

/// Read its table `stack`: the delay, and the hosts that have it.
fn read_stack<'d>(
    table: &mut Reader<'d>,
    mut stack: Reader<'d>,
    hosts: u32,
) -> Checked<(Option<StackDelay>, Vec<HostId>)> {
    let mut read = Stack::none();
    stack.all_keys(STACK, &mut read)?;
    let stacked = members(&stack, "hosts", &read.hosts, hosts)?;
    table.finish_table("stack", stack)?;
    Ok((Some(read.delay).filter(|delay| delay.median > Dur::ZERO), stacked))
}

/// The hosts of `set`, the value of `key`, in a fabric of `hosts`.
pub(crate) fn members(
    table: &Reader<'_>,
    key: &str,
    set: &HostSet,
    hosts: u32,
) -> Checked<Vec<HostId>> {
    set.members(hosts).map_err(|why| {
        let error = table.error(key, format!("`{key}`: {why}"), "here");
        error.hint(format!("the hosts of the topology are 0 to {}", hosts.saturating_sub(1)))
    })
}

impl Host {
    /// The longest that a packet takes between two transports beside the fabric: two stacks, and
    /// the jitter of the slowest host of `topology`.
    pub(crate) fn longest_delay(&self, topology: &Topology) -> u128 {
        let stack = self.stack.map_or(Dur::ZERO, StackDelay::longest);
        let late = (0..topology.hosts()).map(|host| self.clock.longest_delay(topology, host)).max();
        2 * u128::from(stack.0) + u128::from(late.unwrap_or(Dur::ZERO).0)
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

impl ScenarioValue for HostSet {
    fn form() -> Form {
        Form {
            json: vec!["string", "integer"],
            ..Form::new("hosts", "\"0-15, 20\"` or `\"all but 0, 1\"", "")
        }
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) => {
                text.parse().map_err(|e: workload::HostSetError| e.to_string().into())
            }
            Value::Integer(n) => {
                n.to_string().parse().map_err(|_| format!("{n} is no host").into())
            }
            other => Err(format!("a text that names hosts is wanted, not {}", other.kind()).into()),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.to_string())
    }
}
