//! The hosts of a testbed: endpoint and application of the scenario on a real clock and a socket,
//! and a log of what became of messages.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use endpoint::{App, AppCx, AppEffect, AppEvent, Endpoint, FailReason, Job, Msg, Routes};
use fabric::Node;
use host::{AddressBook, Config, Content, Counters, Host, Socket, Way, Xdp, bind};
use switch::netns;
use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};
use wire::frame::address;

use super::begin::Begin;
use super::{Testbed, Wires, check, cost};
use crate::Scenario;
use crate::error::Error;

/// Where hosts listen.
const PORT: u16 = 7_117;
/// The most ports that packets leave from: each is a socket.
const SOURCE_PORTS_MAX: u32 = 16;
/// What a round trip takes on this machine beside the links: four wake-ups.
const OF_THE_MACHINE: Dur = Dur::from_us(100);

/// The two parties of a host.
pub(super) type Party = (Box<dyn Endpoint>, Box<dyn App>);

/// What happened to a message at a host.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Submitted { msg: Msg, tag: u16 },
    Delivered { key: MsgKey },
    Acked { key: MsgKey },
    Failed { key: MsgKey, why: FailReason },
}

/// A host after a run.
pub(super) struct Ended {
    pub(super) log: Vec<(Time, Event)>,
    pub(super) jobs: Vec<Job>,
    pub(super) counters: Counters,
    /// What it took of a processor.
    pub(super) cpu: Dur,
    /// When it ended.
    pub(super) now: Time,
}

/// What hosts tell the one that waits for them.
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) begin: Begin,
    /// Messages that the run waits for: submitted in the window, neither delivered nor failed.
    open: AtomicU64,
    /// Applications that may still submit without being asked.
    busy: AtomicU64,
    /// The end of the window, if it has one.
    to: Option<Time>,
}

impl Shared {
    /// Of a run with so many hosts and switches.
    pub(super) fn new(scenario: &Scenario, parties: usize) -> Self {
        let busy = u64::from(scenario.topology.hosts());
        let (open, to) = (AtomicU64::new(0), scenario.measure.to);
        let (stop, begin) = (AtomicBool::new(false), Begin::new(parties));
        Self { stop, begin, open, busy: AtomicU64::new(busy), to }
    }

    /// Whether everything that the run waits for is done.
    pub(super) fn done(&self, now: Time) -> bool {
        let over = match self.to {
            Some(to) => now >= to,
            None => self.busy.load(Ordering::SeqCst) == 0,
        };
        over && self.open.load(Ordering::SeqCst) == 0
    }
}

/// The parties of all hosts.
pub(super) fn parties(scenario: &Scenario) -> Result<Vec<Party>, Error> {
    let endpoints = crate::run::endpoints(scenario)?;
    Ok(endpoints.into_iter().zip(crate::run::apps(scenario, None)?).collect())
}

/// Run host `me` in its namespace until the run is over. `None` if it never began.
pub(super) fn run(
    scenario: &Scenario,
    (bed, wires): (&Testbed, Wires),
    me: HostId,
    (endpoint, app): Party,
    shared: &Shared,
) -> Result<Option<Ended>, Error> {
    let mut app = Logged { app, me, shared, busy: true, open: BTreeMap::new(), log: Vec::new() };
    let inside = || {
        let at = SocketAddrV4::new(address(me).into(), PORT);
        let socket: Socket = match wires.xdp {
            true => Xdp::bind_ports(at, source_ports(scenario)).map_err(|e| e.to_string())?.into(),
            false => bind(at.into()).map_err(|e| format!("cannot listen at {at}: {e}"))?.into(),
        };
        let Some(zero) = shared.begin.ready(&shared.stop) else { return Ok(None) };
        let start = zero.instant;
        let config = Config { busy: wires.busy, ..config(scenario, me, start) };
        let mut content = Zeros;
        // Before the wait: its buffers take the kernel milliseconds.
        let host = Host::new(config, socket, endpoint, &mut app, &mut content);
        let mut host = host.map_err(|e| e.to_string())?;
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        let before = cost::so_far();
        let ran = host.run(Dur::MAX, |_| shared.stop.load(Ordering::Relaxed));
        ran.map_err(|e| e.to_string())?;
        let cpu = Dur(cost::so_far().0 - before.0);
        // Before its socket is closed, for which the kernel takes its time.
        let now = Time(u64::try_from(start.elapsed().as_nanos() * 1_000).unwrap_or(u64::MAX));
        Ok::<_, String>(Some((host.jobs().to_vec(), *host.counters(), now, cpu)))
    };
    let ran = netns::within(&bed.namespace(Node::Host(me.0)), inside).map_err(|e| e.to_string());
    // Without it the others would wait for the time limit.
    let ran = ran.and_then(|ran| ran).inspect_err(|_| shared.stop.store(true, Ordering::Relaxed));
    let ran = ran.map_err(|why| Error::Run {
        what: format!("{me}: {why}"),
        hint: "is an earlier run still going? Else `trimline testbed down` and `up`".to_owned(),
    })?;
    let Some((jobs, counters, now, cpu)) = ran else { return Ok(None) };
    Ok(Some(Ended { log: app.log, jobs, counters, cpu, now }))
}

/// One for each path, so that whoever looks at the packets, and switches that know no paths, can
/// tell them apart.
fn source_ports(scenario: &Scenario) -> u16 {
    let topology = &scenario.topology;
    let hosts = || (0..topology.hosts()).map(HostId);
    let pairs = hosts().flat_map(|a| hosts().filter(move |&b| b != a).map(move |b| (a, b)));
    let most = pairs.map(|(a, b)| topology.paths(a, b)).max().unwrap_or(1);
    most.min(SOURCE_PORTS_MAX) as u16
}

fn config(scenario: &Scenario, me: HostId, start: Instant) -> Config {
    let topology = &scenario.topology;
    let others = (0..topology.hosts()).map(HostId).filter(|&host| host != me);
    let way = |host| Way { paths: topology.paths(me, host), hops: topology.hops(me, host) };
    let ways = others.clone().map(|host| (host, way(host))).collect();
    let peers: AddressBook =
        others.map(|host| (host, SocketAddr::from((address(host), PORT)))).collect();
    Config {
        // Messages are numbered as in the simulator: nobody remembers an earlier life.
        incarnation: 0,
        start,
        rate: topology.links()[me.index()].rate,
        paced: true,
        mtu: scenario.transports.mtu(),
        ways,
        source_ports: source_ports(scenario),
        base_rtt: topology.longest_rtt() + OF_THE_MACHINE,
        max_message: check::MESSAGE_MAX,
        max_buffered: check::MESSAGE_MAX,
        trains: false,
        ..Config::loopback(me, peers, scenario.seed)
    }
}

/// Messages of zeros: what they say is not looked at.
struct Zeros;

impl Content for Zeros {
    fn read(&mut self, _: MsgKey, _: u64, buf: &mut [u8]) {
        buf.fill(0);
    }

    fn received(&mut self, _: MsgKey, _: Vec<u8>) {}
}

/// An application that is listened to.
struct Logged<'a> {
    app: Box<dyn App>,
    me: HostId,
    shared: &'a Shared,
    /// Whether it is among the busy ones.
    busy: bool,
    /// When its messages that are not over were submitted.
    open: BTreeMap<MsgId, Time>,
    log: Vec<(Time, Event)>,
}

impl Logged<'_> {
    /// Call the application, and listen to what it wants.
    fn call(&mut self, cx: &mut AppCx<'_>, f: impl FnOnce(&mut dyn App, &mut AppCx<'_>)) {
        let first = cx.fx.len();
        f(self.app.as_mut(), cx);
        for effect in &cx.fx[first..] {
            if let AppEffect::Submit { msg, tag, .. } = *effect {
                self.log.push((cx.now, Event::Submitted { msg, tag }));
                self.open.insert(msg.id, cx.now);
                let waits = self.is_waited_for(cx.now);
                self.shared.open.fetch_add(u64::from(waits), Ordering::SeqCst);
            }
        }
        // A rank of a training job that waits for others has more to come once they have sent.
        let busy = self.app.more_to_come();
        match (self.busy, busy) {
            (true, false) => self.shared.busy.fetch_sub(1, Ordering::SeqCst),
            (false, true) => self.shared.busy.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
        self.busy = busy;
    }

    /// Whether a message that was submitted at `at` is waited for.
    fn is_waited_for(&self, at: Time) -> bool {
        self.shared.to.is_none_or(|to| at < to)
    }

    /// A message of this host is over.
    fn over(&mut self, id: MsgId) {
        if self.open.remove(&id).is_some_and(|at| self.is_waited_for(at)) {
            self.shared.open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl App for Logged<'_> {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        self.call(cx, |app, cx| app.on_start(cx));
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        let mine = |id| MsgKey { src: self.me, id };
        let logged = match event {
            AppEvent::Delivered { key, .. } => Some(Event::Delivered { key }),
            AppEvent::Acked(id) => Some(Event::Acked { key: mine(id) }),
            AppEvent::Failed(key, why) => Some(Event::Failed { key, why }),
            AppEvent::Signal { .. } => None,
        };
        self.log.extend(logged.map(|event| (cx.now, event)));
        match event {
            AppEvent::Acked(id) => self.over(id),
            AppEvent::Failed(key, _) if key.src == self.me => self.over(key.id),
            _ => {}
        }
        self.call(cx, |app, cx| app.on_event(cx, event));
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        self.call(cx, |app, cx| app.on_timer(cx, id));
    }

    fn more_to_come(&self) -> bool {
        self.app.more_to_come()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise all would take the first path.
    #[test]
    fn hosts_know_as_many_paths_as_the_topology_has() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/testbed/paper.toml");
        let paper = Scenario::load(file.as_ref(), &[]).unwrap();
        let config = config(&paper, HostId(0), Instant::now());
        let way = |to| (config.paths(HostId(0), HostId(to)), config.hops(HostId(0), HostId(to)));
        assert_eq!(way(1), (1, 2), "under the same switch");
        assert_eq!(way(7), (2, 4), "over either spine");
        assert_eq!(config.source_ports, 2);
    }
}
