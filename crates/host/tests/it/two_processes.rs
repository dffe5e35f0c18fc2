//! The contract on a real network: two processes, UDP on loopback, one datagram in twenty lost on
//! purpose and one in a hundred doubled. NDP and NewReno, as they run in the simulator, carry a
//! thousand messages each way. Nothing may be lost, damaged, reordered on a channel, or delivered
//! twice.
//!
//! The parent starts this test binary twice more as [`child`] and talks to the two over pipes:
//!
//! | child says | parent answers |
//! |---|---|
//! | `PORT n` | the other's port, on a line |
//! | `DONE`: all my messages are acked, all of the other's delivered | once both are done, the end of the pipe |
//! | `REPORT name=value ...` | |
//!
//! A child that is done goes on answering the other's retransmissions until the parent says that
//! both are. No child lives longer than [`LIMIT`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write, stdin};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use endpoint::{App, AppCx, AppEvent, Draw, Endpoint, Msg, Purpose, Stat};
use trimline_host::{AddressBook, Config, Counters, Host, Pattern, bind, seeded_faults};
use units::{Dur, HostId, MsgId, MsgKey};

const MESSAGES: u64 = 1_000;
/// Messages of one host that are in flight at once.
const OUTSTANDING: u64 = 16;
const LARGEST: u64 = 300_000;
const SEED: u64 = 1;
const DROP_PER_MILLE: u16 = 50;
const DOUBLE_PER_MILLE: u16 = 10;
/// Typically a second or two.
const LIMIT: Dur = Dur::from_ms(25_000);

const ROLE: &str = "TRIMLINE_HOST_TEST_ROLE";

#[test]
fn ndp_carries_a_thousand_messages_each_way() {
    exchange("ndp");
}

#[test]
fn newreno_carries_a_thousand_messages_each_way() {
    exchange("newreno");
}

fn endpoint_of(transport: &str) -> Box<dyn Endpoint> {
    match transport {
        "ndp" => ndp(),
        "newreno" => newreno(),

        other => panic!("no transport {other}"),
    }
}

/// The paper's NDP. Loopback itself takes microseconds.
fn ndp() -> Box<dyn Endpoint> {
    use transports::ndp::{Config, Ndp};
    Box::new(Ndp::new(Config::processes(9_000)).unwrap())
}

/// TCP as Linux runs it in a data centre.
fn newreno() -> Box<dyn Endpoint> {
    use transports::tcp::{Config, Tcp};
    let delayed_ack = Some(Dur::from_ms(1));
    // A thousand timeouts of 50 ms in a row mean that the test has ended.
    let config = Config { delayed_ack, max_timeouts: 1_000, ..Config::processes(8_960) };
    Box::new(Tcp::new(config).unwrap())
}

/// The bytes of message `key`: a tenth each of the smallest and the largest, the others spread
/// evenly over the orders of magnitude between.
fn size(key: MsgKey) -> u64 {
    const SIZE: Purpose = Purpose::new("size");
    let draw = Draw::new(SEED, Purpose::new("test"), u64::from(key.src.0)).part(key.id.0);
    match key.id.0 % 10 {
        0 => 1,
        1 => LARGEST,
        _ => {
            let magnitude = 10u64.pow(1 + draw.below(SIZE, 0, 5) as u32);
            1 + draw.below(SIZE, 1, magnitude * 3)
        }
    }
}

/// A quarter of the messages in any order, the others in order on three channels.
fn channel(id: MsgId) -> u32 {
    (id.0 % 4) as u32
}

/// Sends its messages a few at a time, and checks those that come.
#[derive(Default)]
struct Exchange {
    submitted: u64,
    delivered: BTreeSet<MsgId>,
    last_on_channel: BTreeMap<u32, MsgId>,
    twice: u64,
    wrong_length: u64,
    out_of_order: u64,
}

impl Exchange {
    fn submit_next(&mut self, cx: &mut AppCx<'_>) {
        if self.submitted == MESSAGES {
            return;
        }
        self.submitted += 1;
        let id = *cx.next_id;
        let len = size(MsgKey { src: cx.me, id });
        let dst = HostId(1 - cx.me.0);
        cx.submit_as(Msg { channel: channel(id), ..Msg::new(dst, len) });
    }

    fn check(&mut self, key: MsgKey, len: u64) {
        self.twice += u64::from(!self.delivered.insert(key.id));
        self.wrong_length += u64::from(len != size(key));
        let channel = channel(key.id);
        let before = self.last_on_channel.insert(channel, key.id);
        self.out_of_order += u64::from(channel != 0 && before > Some(key.id));
    }
}

impl App for Exchange {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        for _ in 0..OUTSTANDING {
            self.submit_next(cx);
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Delivered { key, len, .. } => self.check(key, len),
            AppEvent::Acked(_) => self.submit_next(cx),
            other => panic!("{other:?}"),
        }
    }
}

/// Not a test by itself: one of the two processes, when the parent has set [`ROLE`].
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (transport, me) = role.split_once(' ').expect("a transport and a host");
    let me = HostId(me.parse().expect("a host"));
    let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    println!("\nPORT {}", socket.local_addr().unwrap().port());
    let port: u16 = read_line(&mut stdin().lock()).expect("the other's port").parse().unwrap();

    let peer = (HostId(1 - me.0), SocketAddr::from(([127, 0, 0, 1], port)));
    // Ids that start at zero.
    let config = Config { incarnation: 0, ..Config::loopback(me, AddressBook::from([peer]), SEED) };
    let mut app = Exchange::default();
    let mut content = Pattern::default();
    let mut host =
        Host::new(config, socket, endpoint_of(transport), &mut app, &mut content).unwrap();
    host.set_faults(seeded_faults(SEED, me, DROP_PER_MILLE, DOUBLE_PER_MILLE));

    let stop = stop_flag();
    let mut announced = false;
    let stopped = host.run(LIMIT, |c| {
        if !announced && c.acked == MESSAGES && c.delivered == MESSAGES {
            announced = true;
            println!("\nDONE");
        }
        stop.load(Ordering::Relaxed)
    });
    let counters = *host.counters();
    drop(host);
    println!("\nREPORT {}", report(&counters, &app, &content));
    assert!(stopped.unwrap(), "not done in time");
}

/// Becomes true at the end of standard input.
fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    std::thread::spawn(move || {
        while read_line(&mut stdin().lock()).is_some() {}
        set.store(true, Ordering::Relaxed);
    });
    stop
}

fn report(c: &Counters, app: &Exchange, content: &Pattern) -> String {
    let values = [
        ("submitted", c.submitted),
        ("acked", c.acked),
        ("delivered", c.delivered),
        ("failed", c.failed),
        ("twice", app.twice),
        ("wrong_length", app.wrong_length),
        ("out_of_order", app.out_of_order),
        ("intact", content.intact),
        ("bytes", content.bytes),
        ("placed", c.placed),
        ("sent", c.sent),
        ("dropped", c.dropped_on_purpose),
        ("doubled", c.doubled_on_purpose),
        ("received", c.received),
        ("ignored", c.malformed + c.misaddressed + c.unknown_peer + c.refused + c.contradictions),
        ("retransmitted", c.stats[Stat::Retransmission as usize]),
        ("duplicates", c.stats[Stat::Duplicate as usize]),
    ];
    values.map(|(name, value)| format!("{name}={value}")).join(" ")
}

/// A child process; killed if the test ends before it does.
struct Process {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Process {
    fn start(transport: &str, host: u32) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "two_processes::child", "--nocapture"])
            .env(ROLE, format!("{transport} {host}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        Self { child, to, from }
    }

    /// The rest of the first line that starts with `word`.
    fn expect(&mut self, word: &str) -> String {
        while let Some(line) = read_line(&mut self.from) {
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
            assert!(!line.starts_with("REPORT"), "a child ended before {word}: {line}");
        }
        panic!("a child ended before {word}");
    }

    fn report(&mut self) -> BTreeMap<String, u64> {
        let line = self.expect("REPORT");
        println!("{line}");
        let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = from.read_line(&mut line).unwrap();
    (read > 0).then(|| line.trim_end().to_owned())
}

fn exchange(transport: &str) {
    let mut both = [0, 1].map(|host| Process::start(transport, host));
    let ports = both.each_mut().map(|process| process.expect("PORT"));
    for (process, port) in both.iter_mut().zip(ports.iter().rev()) {
        writeln!(process.to.as_mut().unwrap(), "{port}").unwrap();
    }
    for process in &mut both {
        process.expect("DONE");
    }
    for process in &mut both {
        process.to = None;
    }
    let reports = both.each_mut().map(Process::report);
    for process in &mut both {
        assert!(process.child.wait().unwrap().success());
    }
    for (receiver, report) in (0..).zip(&reports) {
        let src = HostId(1 - receiver);
        let bytes = (0..MESSAGES).map(|id| size(MsgKey { src, id: MsgId(id) })).sum::<u64>();
        check(report, bytes);
    }
}

/// What a process must report that was to receive `bytes`.
fn check(report: &BTreeMap<String, u64>, bytes: u64) {
    for name in ["submitted", "acked", "delivered", "intact"] {
        assert_eq!(report[name], MESSAGES, "{name}: nothing lost, nothing damaged");
    }
    for name in ["failed", "twice", "wrong_length", "out_of_order", "ignored"] {
        assert_eq!(report[name], 0, "{name}");
    }
    assert_eq!((report["bytes"], report["placed"]), (bytes, bytes), "each byte once");
    let lost = report["dropped"] as f64 / report["sent"] as f64;
    assert!((0.03..0.07).contains(&lost), "{lost} of the datagrams were lost on purpose");
    assert!(report["doubled"] > 0 && report["retransmitted"] > 0);
}
