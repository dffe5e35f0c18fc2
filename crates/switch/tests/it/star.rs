//! A real star: eight hosts and a switch, each in a network namespace of its own, joined by virtual
//! links, inside namespaces of the user that the kernel gives to anybody (`unshare -Urnm`). Seven
//! hosts send to one, over UDP sockets and through the switch. Everything is delivered once and as
//! it was sent; no times are looked at.
//!
//! The test starts itself in such namespaces ([`inside`]), and from there once for each host
//! ([`host`]). A host says `DONE` and goes on answering until its standard input ends; then it
//! says `REPORT` and its counters.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, stdin};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use endpoint::{App, AppCx, AppEvent, Endpoint};
use fabric::{Config, Fault, FaultAction, Node, Topology};
use host::{AddressBook, Host, Pattern, bind};
use queues::{Capacity, DropTailSpec};
use trimline_switch::record::{self, Event};
use trimline_switch::{
    Backend, Counters, Harm, Interface, Options, Switch, Totals, netns, replay, run,
};
use units::{Dur, HostId, MsgKey, Rate, Time};
use wire::frame::address;

use crate::replayed::{Memory, SWITCH, config, ndp, star};

const INSIDE: &str = "TRIMLINE_STAR_INSIDE";
const HOST: &str = "TRIMLINE_STAR_HOST";
const PREFIX: &str = "star";
const MTU: u32 = 9_216;
const PORT: u16 = 4_000;
const SENDERS: u32 = 7;
/// Of each sender.
const MESSAGES: u64 = 5;
const SIZE: u64 = 100_000;
/// Typically a second.
const LIMIT: Dur = Dur::from_ms(20_000);

#[test]
fn an_incast_of_ndp_through_a_trimming_switch() {
    in_namespaces("ndp");
}

#[test]
fn newreno_over_drop_tail_with_losses() {
    in_namespaces("newreno");
}

#[test]
fn namespaces_are_made_once_and_taken_down() {
    in_namespaces("namespaces");
}

/// Run [`inside`] where this user may make interfaces.
fn in_namespaces(what: &str) {
    let script = "mount -t tmpfs tmpfs /run && exec \"$0\" --exact star::inside --nocapture";
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-Urnm", "--", program]).args(arguments);
        command.env(INSIDE, what).output()
    };
    let may = run("sh", &["-c", "mount -t tmpfs tmpfs /run && ip netns add probe"]);
    match may {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
            return;
        }
        Err(error) => {
            println!("skipped: unshare: {error}");
            return;
        }
    }
    let exe = std::env::current_exe().unwrap();
    let output = run("sh", &["-c", script, exe.to_str().unwrap()]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "inside");
}

/// Not a test by itself: what happens inside the namespaces.
#[test]
fn inside() {
    match std::env::var(INSIDE).as_deref() {
        Ok("ndp") => trimming(),
        Ok("newreno") => losing(),
        Ok("namespaces") => namespaces(),
        _ => {}
    }
}

fn trimming() {
    let memory = Memory::default();
    let config = config(ndp());
    let ran = run_star("ndp", &config, Harm::default(), Some(memory.clone()));
    let (trimmed, dropped) = (ran.sum(|c| c.trimmed), ran.sum(|c| c.dropped));
    assert!(trimmed > 0 && dropped == 0, "{trimmed} trimmed, {dropped} dropped");
    assert_eq!(ran.sum(|c| c.damaged), 0);
    // What the switch did on real wires is what the simulator does at the same instants.
    let record = record::read(&memory.text()).unwrap();
    let agreement = replay(&star(), &config, &record).unwrap();
    let arrived = record.iter().filter(|entry| entry.event == Event::Arrived).count() as u64;
    assert_eq!(agreement.packets, arrived);
    println!("{agreement:?}, {trimmed} trimmed, late by {} at the most", ran.totals.latest);
}

fn losing() {
    let capacity = Capacity::Bytes(72_000);
    let lossy = |link| Fault::new(Time::ZERO, link, FaultAction::Loss(0.02));
    let config = Config {
        faults: vec![lossy(1), lossy(8)],
        ..config(DropTailSpec { capacity, ecn_threshold: None }.into())
    };
    let harm = Harm { duplicate: 0.02, reorder: 0.02, corrupt: 0.02 };
    let ran = run_star("newreno", &config, harm, None);
    let Totals { duplicated, reordered, corrupted, .. } = ran.totals;
    assert!(ran.sum(|c| c.lost) > 0 && ran.sum(|c| c.dropped) > 0);
    assert!(duplicated > 0 && reordered > 0 && corrupted > 0, "{:?}", ran.totals);
}

fn namespaces() {
    let topology = star();
    netns::up(PREFIX, &topology, MTU).unwrap();
    assert_eq!(netns::there(PREFIX).len(), 9);
    let stale = netns::up(PREFIX, &topology, MTU).err().unwrap().to_string();
    assert!(stale.contains("star-h0 already"), "{stale}");
    assert_eq!(netns::there(PREFIX).len(), 9, "those of the other run stay");
    let none = netns::within("star-h0", || Interface::open("p0", Backend::Packet).err()).unwrap();
    assert!(none.unwrap().to_string().contains("only lo, net"));
    netns::down(&netns::there(PREFIX)).unwrap();
    assert!(netns::there(PREFIX).is_empty());
    let gone = netns::within("star-h0", || ()).err().unwrap().to_string();
    assert!(gone.contains("star-h0"), "{gone}");
    // An MTU that no link can have: nothing is left behind.
    assert!(netns::up(PREFIX, &topology, 20).is_err());
    assert!(netns::there(PREFIX).is_empty());
}

/// What a run left.
struct Ran {
    counters: Vec<Counters>,
    totals: Totals,
}

impl Ran {
    fn sum(&self, of: fn(&Counters) -> u64) -> u64 {
        self.counters.iter().map(of).sum()
    }
}

/// Seven hosts send to one through a switch with `config`; all that hosts can say is checked.
fn run_star(transport: &str, config: &Config, harm: Harm, record: Option<Memory>) -> Ran {
    let topology = star();
    netns::up(PREFIX, &topology, MTU).unwrap();
    let stop = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        let switch = scope.spawn(|| switch(&topology, config, harm, record, &stop));
        let hosts = (0..=SENDERS).map(|n| start(transport, n)).collect();
        // Whatever comes of it, the switch ends.
        let reports = std::panic::catch_unwind(|| reports(hosts));
        stop.store(true, Ordering::Relaxed);
        check(&reports.unwrap());
        switch.join().unwrap()
    });
    netns::down(&netns::there(PREFIX)).unwrap();
    ran
}

fn switch(
    topology: &Arc<Topology>,
    config: &Config,
    harm: Harm,
    record: Option<Memory>,
    stop: &AtomicBool,
) -> Ran {
    let mut switch = Switch::new(topology, config, SWITCH).unwrap();
    if let Some(memory) = record {
        switch.record(Box::new(memory)).unwrap();
    }
    let inside = || {
        let ports =
            (0..=SENDERS).map(|n| Interface::open(&format!("p{n}"), Backend::Packet).unwrap());
        let mut ports: Vec<Interface> = ports.collect();
        let options = Options { harm, seed: 1, start: SystemTime::now(), busy: false };
        run(&mut switch, &mut ports, options, None, |_, _| !stop.load(Ordering::Relaxed)).unwrap()
    };
    let totals = netns::within(&netns::name(PREFIX, SWITCH), inside).unwrap();
    println!("{totals:?}");
    switch.counters().for_each(|counters| println!("{counters:?}"));
    assert_eq!(totals.too_long, 0);
    Ran { counters: switch.counters().collect(), totals }
}

/// A host; killed if the test ends before it does.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(transport: &str, n: u32) -> Process {
    let spawn = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "star::host", "--nocapture"])
            .env(HOST, format!("{transport} {n}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    Process(netns::within(&netns::name(PREFIX, Node::Host(n)), spawn).unwrap())
}

/// What each host says of itself, once all are done.
fn reports(mut hosts: Vec<Process>) -> Vec<BTreeMap<String, u64>> {
    let mut lines: Vec<_> = hosts
        .iter_mut()
        .map(|host| BufReader::new(host.0.stdout.take().unwrap()).lines().map(Result::unwrap))
        .collect();
    for lines in &mut lines {
        assert!(lines.any(|line| line == "DONE"), "a host ended before it was done");
    }
    for host in &mut hosts {
        host.0.stdin = None;
    }
    let report = |lines: &mut dyn Iterator<Item = String>| {
        let mut found = lines.filter_map(|line| line.strip_prefix("REPORT ").map(str::to_owned));
        let line = found.next().unwrap();
        // A host that finds nobody listening complains.
        found.for_each(drop);
        println!("{line}");
        let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    };
    lines.iter_mut().map(|lines| report(lines)).collect()
}

fn check(reports: &[BTreeMap<String, u64>]) {
    let all = u64::from(SENDERS) * MESSAGES;
    let receiver = &reports[0];
    assert_eq!((receiver["delivered"], receiver["intact"], receiver["twice"]), (all, all, 0));
    assert_eq!(receiver["placed"], all * SIZE, "each byte once");
    for sender in &reports[1..] {
        assert_eq!((sender["acked"], sender["delivered"]), (MESSAGES, 0));
    }
    for report in reports {
        assert_eq!((report["failed"], report["ignored"]), (0, 0));
    }
}

/// Sends its messages, two at a time, and sees that none comes twice.
#[derive(Default)]
struct Incast {
    submitted: u64,
    delivered: BTreeSet<MsgKey>,
    twice: u64,
}

impl Incast {
    fn submit(&mut self, cx: &mut AppCx<'_>) {
        if cx.me != HostId(0) && self.submitted < MESSAGES {
            self.submitted += 1;
            cx.submit(HostId(0), SIZE);
        }
    }
}

impl App for Incast {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        (0..2).for_each(|_| self.submit(cx));
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Delivered { key, .. } => {
                self.twice += u64::from(!self.delivered.insert(key));
            }
            AppEvent::Acked(_) => self.submit(cx),
            _ => {}
        }
    }
}

/// Not a test by itself: one host, when the test has set [`HOST`].
#[test]
fn host() {
    let Ok(role) = std::env::var(HOST) else { return };
    let (transport, me) = role.split_once(' ').unwrap();
    let me = HostId(me.parse().unwrap());
    let at = |host| SocketAddr::from((address(host), PORT));
    let hosts = (0..=SENDERS).map(HostId);
    let peers: AddressBook =
        hosts.filter(|&host| host != me).map(|host| (host, at(host))).collect();
    let config = host::Config {
        rate: Rate(1_000_000_000),
        base_rtt: Dur::from_us(200),
        ..host::Config::loopback(me, peers, 1)
    };
    let (mut app, mut content) = (Incast::default(), Pattern::default());
    let socket = bind(at(me)).unwrap();
    let mut host =
        Host::new(config, socket, endpoint_of(transport), &mut app, &mut content).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = stdin().lines().count();
        ended.store(true, Ordering::Relaxed);
    });
    let (mut done, all) = (false, u64::from(SENDERS) * MESSAGES);
    let ran = host.run(LIMIT, |c| {
        if !done && (if me.0 == 0 { c.delivered == all } else { c.acked == MESSAGES }) {
            done = true;
            println!("\nDONE");
        }
        stop.load(Ordering::Relaxed)
    });
    let c = *host.counters();
    drop(host);
    let ignored = c.malformed + c.misaddressed + c.unknown_peer + c.refused + c.contradictions;
    let values = [
        ("delivered", c.delivered),
        ("intact", content.intact),
        ("twice", app.twice),
        ("placed", c.placed),
        ("acked", c.acked),
        ("failed", c.failed),
        ("ignored", ignored),
        ("sent", c.sent),
        ("received", c.received),
    ];
    let values = values.map(|(name, value)| format!("{name}={value}"));
    println!("\nREPORT {}", values.join(" "));
    assert!(ran.unwrap(), "not done in time");
}

/// The timeouts are those of processes that share a machine with others.
fn endpoint_of(transport: &str) -> Box<dyn Endpoint> {
    let (min, max, initial) = (Dur::from_ms(50), Dur::from_ms(200), Dur::from_ms(50));
    match transport {
        "ndp" => {
            use transports::ndp::{Config, Ndp};
            let paper = Config::paper(9_000);
            let rto = Config { rto_initial: initial, rto_min: min, rto_max: max, ..paper };
            let config = Config { stall_timeout: min, ..rto };
            Box::new(Ndp::new(config).unwrap())
        }
        "newreno" => {
            use transports::rto::RtoConfig;
            use transports::tcp::{Config, Tcp};
            let linux = Config::linux_datacenter(8_960);
            let rto = RtoConfig { min, max, initial, ..linux.rto };
            let delayed_ack = Some(Dur::from_ms(1));
            let config = Config { rto, delayed_ack, max_timeouts: 1_000, ..linux };
            Box::new(Tcp::new(config).unwrap())
        }
        other => panic!("no transport {other}"),
    }
}
