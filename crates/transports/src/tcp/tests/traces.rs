//! Packet traces worked out by hand, from the RFCs and arithmetic alone, and held against two
//! endpoints on a wire.
//!
//! A trace is what one sees at the sender, a line per event: when, in ms; what happened (`start`,
//! an acknowledgement with its SACK blocks, newest first, or a `timeout`); `->` and the segments
//! sent upon it; and, where the sender enters or leaves a recovery, the window and the slow-start
//! threshold that it then has. Segments are numbered from 0. One with an `x` is lost on its way:
//! the trace says both what the wire does and what TCP must make of it.
//!
//! The wire: the sender's interface takes no time worth counting; then 5 ms; then a link before the
//! receiver that carries a segment in 0.1 ms, one after the other; acknowledgements take 5 ms back.
//! So segment k of a burst sent at 0 is acknowledged at 10.1 + 0.1 k, and a segment sent at t that
//! finds the link free at t + 10.1. What is lost does not take the link.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use endpoint::Stat;
use testkit::{Bottleneck, Link, Net, Seen, fault};
use units::{Dur, HostId, Rate};
use wire::tcp::{Control, Repr};

use crate::rto::RtoConfig;
use crate::tcp::Tcp;
use crate::tcp::config::{Config, Recovery};
use crate::tcp::window::Phase;

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const MSS: u64 = 1000;
/// An interface that is done with a segment in 83 ns.
const LINK: Link =
    Link { rate: Rate(100_000_000_000), delay: Dur::from_ms(5), mtu: 1500, paths: 1, hashed: true };
/// 1040 bytes in 0.1 ms.
const BOTTLENECK: Bottleneck = Bottleneck { rate: Rate(83_200_000), packets: 1_000, trim: false };
/// More than any trace sends.
const ENDLESS: u64 = 1_000;

/// TCP by the book (RFC 5681 and 6298, no delayed acknowledgements, no limited transmit), with a
/// first window of `initial_window` segments. The timeout has no floor, so that it is
/// srtt + 4 rttvar: three round trips after the first sample R, as srtt = R and rttvar = R / 2.
fn textbook(initial_window: f64) -> Config {
    let rto = RtoConfig { min: Dur::from_ms(1), max: Dur::from_ms(120_000), ..RtoConfig::RFC_6298 };
    Config { initial_window, ..Config::textbook(MSS as u16, rto) }
}

fn sack(initial_window: f64) -> Config {
    Config { recovery: Recovery::Sack, ..textbook(initial_window) }
}

/// What the sender did, as lines of a trace.
struct Trace {
    net: Net<Tcp>,
    lines: Vec<String>,
    /// Which of the data packets are lost, counted from 0.
    lost: Vec<u64>,
    data_sent: u64,
    /// What has crossed the sender's interface in the last step.
    crossed: Rc<RefCell<Vec<(Seen, Repr, u64)>>>,
    phase: Phase,
    /// What the last line is to end with.
    note: String,
}

impl Trace {
    fn new(config: Config, lost: Vec<u64>) -> Self {
        let make = || Box::new(Tcp::new(config).unwrap());
        let mut net = Net::new(1, LINK, vec![make(), make()]);
        net.set_bottleneck(B, BOTTLENECK);
        net.fault(fault::drop_data(A, &lost));
        let crossed = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&crossed);
        net.watch(move |_, what, pkt| {
            let at_sender = what == Seen::Arrived(A) || what == Seen::Sent && pkt.src == A;
            if at_sender {
                let header = Repr::parse(pkt.header()).unwrap();
                seen.borrow_mut().push((what, header, u64::from(header.seq) / MSS));
            }
        });
        Self {
            net,
            lines: Vec::new(),
            lost,
            data_sent: 0,
            crossed,
            phase: Phase::Open,
            note: String::new(),
        }
    }

    /// The next thing that happens. False if that is nothing, ever.
    fn step(&mut self) -> bool {
        let timeouts = self.net.stat(A, Stat::Timeout);
        if !self.net.step() {
            return false;
        }
        if self.net.stat(A, Stat::Timeout) > timeouts {
            self.line("timeout");
        }
        for (what, header, segment) in self.crossed.take() {
            match what {
                Seen::Sent if header.control.has(Control::SYN) => self.syn(),
                Seen::Sent => self.sent(segment),
                Seen::Arrived(_) if header.control.has(Control::SYN) => self.line("syn-ack"),
                Seen::Arrived(_) => self.line(&ack(&header)),
            }
        }
        self.note_phase();
        true
    }

    fn line(&mut self, what: &str) {
        self.end_line();
        // In whole tenths: the interface's share is dropped.
        let tenths = self.net.now().0 / Dur::from_us(100).0;
        self.lines.push(format!("{}.{} {what}", tenths / 10, tenths % 10));
    }

    fn syn(&mut self) {
        self.lines.last_mut().unwrap().push_str(" -> syn");
    }

    fn end_line(&mut self) {
        if let Some(line) = self.lines.last_mut() {
            line.push_str(&std::mem::take(&mut self.note));
        }
    }

    fn sent(&mut self, segment: u64) {
        let line = self.lines.last_mut().unwrap();
        if !line.contains("->") {
            line.push_str(" ->");
        }
        let lost = if self.lost.contains(&self.data_sent) { "x" } else { "" };
        write!(line, " {segment}{lost}").unwrap();
        self.data_sent += 1;
    }

    /// Note beside the last line where the sender stands now, if that has changed.
    fn note_phase(&mut self) {
        let Some(sender) = self.net.endpoint(A).senders.iter().next() else { return };
        let window = sender.window();
        if window.phase() != self.phase {
            self.phase = window.phase();
            let hundredths = |x: f64| (100.0 * x).round() / 100.0;
            let (cwnd, ssthresh) = (hundredths(window.cwnd()), hundredths(window.ssthresh()));
            self.note = format!(" [{:?}: {cwnd}, {ssthresh}]", self.phase).to_lowercase();
        }
    }
}

/// `ack 5 sack 9-11 7-8`: everything before segment 5 has arrived, and 9, 10 and 7.
fn ack(header: &Repr) -> String {
    let segment = |number: u32| u64::from(number).div_ceil(MSS);
    let mut text = format!("ack {}", segment(header.ack));
    for (i, &(left, right)) in header.sack.as_slice().iter().enumerate() {
        let word = if i == 0 { " sack" } else { "" };
        write!(text, "{word} {}-{}", segment(left), segment(right)).unwrap();
    }
    text
}

/// Hold `segments` of data sent under `config` against `script`, up to its last line.
fn expect(config: Config, segments: u64, script: &str) {
    let want: Vec<String> = script
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect();
    let sent = want
        .iter()
        .filter_map(|line| line.split_once("->"))
        .flat_map(|(_, sent)| sent.split(" [").next().unwrap_or_default().split_whitespace())
        .filter(|&word| word != "syn");
    let lost = (0..).zip(sent).filter(|(_, word)| word.ends_with('x')).map(|(n, _)| n).collect();
    let mut trace = Trace::new(config, lost);
    trace.line("start");
    trace.net.submit_on(A, B, 1, segments * MSS);
    while trace.lines.len() <= want.len() && trace.step() {}
    trace.end_line();
    trace.lines.truncate(want.len());
    assert_eq!(trace.lines, want, "got\n{}\n", trace.lines.join("\n"));
}

/// RFC 6582, section 3.2. The third duplicate, at 10.5, finds 10 segments in flight: the threshold
/// is 5, and the window 5 + 3. The duplicates at 10.6 and 10.7 make it 10, as much as is in flight;
/// each further one releases a segment. The full acknowledgement comes one round trip after the
/// retransmission, and leaves 4 segments in flight and a window of 5.
#[test]
fn one_loss() {
    let script = "
         0.0 start -> 0 1 2x 3 4 5 6 7
        10.1 ack 1 -> 8 9
        10.2 ack 2 -> 10 11
        10.3 ack 2
        10.4 ack 2
        10.5 ack 2 -> 2 [recovery: 5, 5]
        10.6 ack 2
        10.7 ack 2
        20.2 ack 2 -> 12
        20.3 ack 2 -> 13
        20.4 ack 2 -> 14
        20.5 ack 2 -> 15
        20.6 ack 12 -> 16 [open: 5, 5]
    ";
    expect(textbook(8.0), ENDLESS, script);
}

/// RFC 6582, section 3.2: NewReno repairs one loss per round trip, from 10.3 to 40.6. The threshold
/// is half of 8. A partial acknowledgement of n segments takes n - 1 from the inflation of the
/// window. At 20.4 it goes from 5 to 4, so that 8 segments may be in flight, of which 2 to 8 are:
/// one new one goes with the repetition of 2.
#[test]
fn three_losses_newreno() {
    let script = "
         0.0 start -> 0x 1 2x 3 4x 5 6 7
        10.1 ack 0
        10.2 ack 0
        10.3 ack 0 -> 0 [recovery: 4, 4]
        10.4 ack 0
        10.5 ack 0 -> 8
        20.4 ack 2 -> 2 9
        20.6 ack 2 -> 10
        30.5 ack 4 -> 4 11
        30.6 ack 4 -> 12
        30.7 ack 4 -> 13
        40.6 ack 11 -> 14 [open: 4, 4]
    ";
    expect(textbook(8.0), ENDLESS, script);
}

/// RFC 5681, section 3.2: the same losses, with Reno. The first acknowledgement of anything new, at
/// 20.4, ends the recovery; 7 segments are in flight then, and the window is 4. One duplicate
/// comes, of 8. The timer finds 2 missing, 1 s after 20.4; go-back-N sends 5 needlessly, before the
/// acknowledgement says that 5 to 8 have arrived.
#[test]
fn three_losses_reno() {
    let script = "
           0.0 start -> 0x 1 2x 3 4x 5 6 7
          10.1 ack 0
          10.2 ack 0
          10.3 ack 0 -> 0 [recovery: 4, 4]
          10.4 ack 0
          10.5 ack 0 -> 8
          20.4 ack 2 [open: 4, 4]
          20.6 ack 2
        1020.4 timeout -> 2 [loss: 1, 2]
        1030.5 ack 4 -> 4 5
        1040.6 ack 9 -> 9 10 [open: 2.5, 2]
        1040.7 ack 9
    ";
    expect(Config { recovery: Recovery::Reno, ..textbook(8.0) }, ENDLESS, script);
}

/// RFC 6675, section 5: the same losses as above, with SACK, take one round trip. A segment is lost
/// once three ranges or three segments above it have arrived: 0 at 10.3, 2 at 10.4, 4 at 10.5. What
/// is left in flight then, retransmissions included (pipe): 0 2 4 6 7; 0 2 4 7; 0 2 4. A window of
/// 4 lets a segment go when there are fewer.
#[test]
fn three_losses_sack() {
    let script = "
         0.0 start -> 0x 1 2x 3 4x 5 6 7
        10.1 ack 0 sack 1-2
        10.2 ack 0 sack 3-4 1-2
        10.3 ack 0 sack 5-6 3-4 1-2 -> 0 [recovery: 4, 4]
        10.4 ack 0 sack 5-7 3-4 1-2 -> 2
        10.5 ack 0 sack 5-8 3-4 1-2 -> 4 8
        20.4 ack 2 sack 5-8 3-4 -> 9
        20.5 ack 4 sack 5-8 -> 10
        20.6 ack 8 -> 11 [open: 4, 4]
    ";
    expect(sack(8.0), ENDLESS, script);
}

/// RFC 6675 with more than half a window lost: half of it is repaired in the first round trip, the
/// rest in the second (invariant T5: at most two).
#[test]
fn five_losses_of_eight_sack() {
    let script = "
         0.0 start -> 0x 1x 2x 3x 4x 5 6 7
        10.1 ack 0 sack 5-6
        10.2 ack 0 sack 5-7
        10.3 ack 0 sack 5-8 -> 0 1 2 3 [recovery: 4, 4]
        20.4 ack 1 sack 5-8 -> 4
        20.5 ack 2 sack 5-8 -> 8
        20.6 ack 3 sack 5-8 -> 9
        20.7 ack 4 sack 5-8 -> 10
        30.5 ack 8 -> 11 [open: 4, 4]
    ";
    expect(sack(8.0), ENDLESS, script);
}

/// A lost retransmission: NewReno has no sign of it but the timer, which runs from the
/// retransmission at 10.3, for 1 s, as there is no sample. Meanwhile each duplicate releases a
/// segment. The timeout halves what was in use: a window of 3.
#[test]
fn lost_retransmission_newreno() {
    let script = "
         0.0 start -> 0x 1 2 3 4 5
        10.1 ack 0
        10.2 ack 0
        10.3 ack 0 -> 0x [recovery: 3, 3]
        10.4 ack 0 -> 6
        10.5 ack 0 -> 7
        20.5 ack 0
        20.6 ack 0
        1010.3 timeout -> 0 [loss: 1, 2]
        1020.4 ack 8 [open: 2, 2]
    ";
    expect(textbook(6.0), 8, script);
}

/// RFC 6675 cannot tell either: a retransmission counts as in flight until the timer expires. At
/// 20.5 there is nothing else to send, so that 7 goes again, the rescue (NextSeg, rule 4); it was
/// not lost. Its duplicate says nothing new.
#[test]
fn lost_retransmission_sack() {
    let script = "
         0.0 start -> 0x 1 2 3 4 5
        10.1 ack 0 sack 1-2
        10.2 ack 0 sack 1-3
        10.3 ack 0 sack 1-4 -> 0x [recovery: 3, 3]
        10.4 ack 0 sack 1-5 -> 6
        10.5 ack 0 sack 1-6 -> 7
        20.5 ack 0 sack 1-7 -> 7
        20.6 ack 0 sack 1-8
        30.6 ack 0 sack 1-8
        1010.3 timeout -> 0 [loss: 1, 2]
        1020.4 ack 8 [open: 2, 2]
    ";
    expect(sack(6.0), 8, script);
}

/// The last segment is lost: no duplicate will come. The only sample is that of segment 0, 10.1, so
/// that the timeout is 30.3 (RFC 6298, rule 2.2), from the last acknowledgement of new data on
/// (rule 5.3).
#[test]
fn lost_tail() {
    for config in [textbook(5.0), sack(5.0)] {
        let script = "
             0.0 start -> 0 1 2 3 4x
            10.1 ack 1
            10.2 ack 2
            10.3 ack 3
            10.4 ack 4
            40.7 timeout -> 4 [loss: 1, 2]
            50.8 ack 5 [open: 2, 2]
        ";
        expect(config, 5, script);
    }
}

/// A whole window is lost: one timeout, then slow start up to half of it, then 1/cwnd for each
/// acknowledgement: 2, 2.5, 2.9, 3.24.
#[test]
fn lost_window() {
    for config in [textbook(4.0), sack(4.0)] {
        let script = "
               0.0 start -> 0x 1x 2x 3x
            1000.0 timeout -> 0 [loss: 1, 2]
            1010.1 ack 1 -> 1 2
            1020.2 ack 2 -> 3
            1020.3 ack 3 -> 4
            1030.3 ack 4 -> 5 6 [open: 3.24, 2]
            1030.4 ack 5 -> 7
        ";
        expect(config, ENDLESS, script);
    }
}

/// A timeout in recovery, and an acknowledgement beyond snd_nxt after it (specs/tcp.md#12,1,3).
/// At most 10 in flight. The retransmission of 5, upon the partial acknowledgement at
/// 20.6, is lost; that acknowledgement has restarted the timer (30.3, as in [`lost_tail`]). What
/// the timeout takes back to 6, snd_nxt, the acknowledgement at 61.0 takes on to 15: nothing that
/// the receiver holds is sent again.
#[test]
fn timeout_in_recovery() {
    let script = "
         0.0 start -> 0 1 2x 3 4 5x 6 7
        10.1 ack 1 -> 8 9
        10.2 ack 2 -> 10 11
        10.3 ack 2
        10.4 ack 2
        10.5 ack 2 -> 2 [recovery: 5, 5]
        10.6 ack 2
        20.2 ack 2
        20.3 ack 2
        20.4 ack 2
        20.5 ack 2
        20.6 ack 5 -> 5x 12 13 14
        30.7 ack 5
        30.8 ack 5
        30.9 ack 5
        50.9 timeout -> 5 [loss: 1, 2.5]
        61.0 ack 15 -> 15 16 [open: 2, 2.5]
        71.1 ack 16 -> 17 18
    ";
    expect(Config { window_cap: 10.0, ..textbook(8.0) }, ENDLESS, script);
}

/// RFC 6582, section 4: five losses take five round trips; a timer that only the first partial
/// acknowledgement restarts, at 20.5, here for 35 ms, does not wait so long. At most 12 in flight.
#[test]
fn impatience() {
    let script = |end| {
        format!(
            "
             0.0 start -> 0 1x 2 3x 4 5x 6 7x 8 9x 10 11
            10.1 ack 1 -> 12
            10.2 ack 1
            10.3 ack 1
            10.4 ack 1 -> 1 [recovery: 6, 6]
            10.5 ack 1
            10.6 ack 1
            10.7 ack 1
            20.2 ack 1
            20.5 ack 3 -> 3 13 14
            30.6 ack 5 -> 5 15
            30.7 ack 5 -> 16
            30.8 ack 5
            40.7 ack 7 -> 7 17 18
            40.8 ack 7
            40.9 ack 7
            50.8 ack 9 -> 9 19 20
            50.9 ack 9
            51.0 ack 9
            {end}
            "
        )
    };
    let mut config = Config { window_cap: 12.0, ..textbook(12.0) };
    config.rto.min = Dur::from_ms(35);
    expect(config, ENDLESS, &script("60.9 ack 19 -> 21 22 23 24 [open: 6, 6]"));
    let impatient = Config { impatient: true, ..config };
    expect(impatient, ENDLESS, &script("55.5 timeout -> 9 [loss: 1, 3]"));
}

/// After a timeout with SACK only what is missing goes again (RFC 6675, section 5.1): 2, and then
/// 4, which is new.
#[test]
fn timeout_sack() {
    let script = "
           0.0 start -> 0x 1 2x 3
          10.1 ack 0 sack 1-2
          10.2 ack 0 sack 3-4 1-2
        1000.0 timeout -> 0 [loss: 1, 2]
        1010.1 ack 2 sack 3-4 -> 2 4
        1020.2 ack 4 -> 5 [open: 2.5, 2]
    ";
    expect(sack(4.0), ENDLESS, script);
}

/// Each timeout doubles the next (RFC 6298, rule 5.5), and none of the acknowledgements of what was
/// sent twice is a sample (Karn): segment 1 would still have 8 s. It is a sample itself.
#[test]
fn back_off() {
    let script = "
            0.0 start -> 0x 1x
         1000.0 timeout -> 0x [loss: 1, 2]
         3000.0 timeout -> 0x
         7000.0 timeout -> 0
         7010.1 ack 1 -> 1x 2x
        15010.1 timeout -> 1
        15020.2 ack 2 -> 2 3
        15030.3 ack 3 -> 4 [open: 2.5, 2]
        15030.4 ack 4 -> 5
    ";
    expect(textbook(2.0), ENDLESS, script);
}

/// The same with timestamps (RFC 7323, section 4): the acknowledgement of what was sent three times
/// is a sample, of the last time. It ends the back-off, and the timeout is three times 10.1 from
/// then on.
#[test]
fn back_off_ends_with_timestamps() {
    let script = "
           0.0 start -> 0x 1x
        1000.0 timeout -> 0x [loss: 1, 2]
        3000.0 timeout -> 0
        3010.1 ack 1 -> 1x 2x
        3040.4 timeout -> 1
        3050.5 ack 2 -> 2 3
    ";
    expect(Config { timestamps: true, ..textbook(2.0) }, ENDLESS, script);
}

/// Delayed acknowledgements: one for each two segments (RFC 5681, section 4.2), so that slow start
/// grows by half per round trip: 4, 6, 9.
#[test]
fn delayed_acknowledgements() {
    let script = "
         0.0 start -> 0 1 2 3
        10.2 ack 2 -> 4 5 6
        10.4 ack 4 -> 7 8 9
        20.4 ack 6 -> 10 11 12
        20.6 ack 8 -> 13 14 15
        20.8 ack 10 -> 16 17 18
    ";
    let delayed_ack = Some(Dur::from_ms(50));
    expect(Config { delayed_ack, ..textbook(4.0) }, ENDLESS, script);
}

/// An odd last segment waits for the receiver's timer, here 50 ms from 5.3 on; the sender's, of
/// three times 10.2 from 10.2 on, is shorter: a needless timeout (specs/tcp.md#6). What comes twice
/// is acknowledged at once (RFC 5681, section 4.2).
#[test]
fn delayed_acknowledgement_and_a_short_timeout() {
    let script = "
         0.0 start -> 0 1 2
        10.2 ack 2
        40.8 timeout -> 2 [loss: 1, 2]
        50.9 ack 3 [open: 2, 2]
    ";
    let delayed_ack = Some(Dur::from_ms(50));
    expect(Config { delayed_ack, ..textbook(3.0) }, 3, script);
}

/// RFC 3042: three segments in flight yield two duplicates; each releases a new segment, and the
/// first of those brings the third duplicate. The threshold does not count them: half of 3, but at
/// least 2 (RFC 5681, section 3.2, step 2).
#[test]
fn limited_transmit() {
    let script = "
         0.0 start -> 0x 1 2
        10.1 ack 0 -> 3
        10.2 ack 0 -> 4
        20.2 ack 0 -> 0 [recovery: 2, 2]
        20.3 ack 0 -> 5
        30.3 ack 5 -> 6 [open: 2, 2]
    ";
    expect(Config { limited_transmit: true, ..textbook(3.0) }, ENDLESS, script);
    let script = "
           0.0 start -> 0x 1 2
          10.1 ack 0
          10.2 ack 0
        1000.0 timeout -> 0 [loss: 1, 2]
        1010.1 ack 3 -> 3 4 [open: 2, 2]
    ";
    expect(textbook(3.0), ENDLESS, script);
}

/// RFC 5827, section 3.1: with fewer than four segments outstanding and no new data, one duplicate
/// less than there are segments means loss.
#[test]
fn early_retransmit() {
    let script = "
         0.0 start -> 0x 1 2
        10.1 ack 0
        10.2 ack 0 -> 0 [recovery: 2, 2]
        20.3 ack 3 [open: 2, 2]
    ";
    let config = Config { early_retransmit: true, ..textbook(3.0) };
    expect(config, 3, script);
    let script = "
         0.0 start -> 0x 1
        10.1 ack 0 -> 0 [recovery: 2, 2]
        20.2 ack 2 [open: 2, 2]
    ";
    expect(config, 2, script);
    let script = "
         0.0 start -> 0x 1
        10.1 ack 0 sack 1-2 -> 0 [recovery: 2, 2]
        20.2 ack 2 [open: 2, 2]
    ";
    expect(Config { recovery: Recovery::Sack, ..config }, 2, script);
}

/// RFC 9293, section 3.5, and 6298, rules 2.2 and 2.3: SYN and SYN-ACK, of 40 bytes, take 10.0 and
/// give the first sample; segment 0 gives the second, 10.1. So rttvar = 3/4 5.0 + 1/4 0.1 = 3.78,
/// srtt = 10.0, and the timeout 10.0 + 4 3.78 = 25.1, from the last acknowledgement at 20.4 on.
#[test]
fn handshake() {
    let script = "
         0.0 start -> syn
        10.0 syn-ack -> 0 1 2 3 4x
        20.1 ack 1
        20.2 ack 2
        20.3 ack 3
        20.4 ack 4
        45.5 timeout -> 4 [loss: 1, 2]
        55.6 ack 5 [open: 2, 2]
    ";
    expect(Config { handshake: true, ..textbook(5.0) }, 5, script);
}

/// A cap of the window of 3 segments leaves two duplicates, whether limited transmit is on or not
/// (it needs room in the peer's window, and the cap is one); a cap of 4 leaves three
/// (specs/tcp.md#12,4).
#[test]
fn window_cap() {
    let script = "
         0.0 start -> 0 1x 2
        10.1 ack 1 -> 3
        10.2 ack 1
        20.2 ack 1
        40.4 timeout -> 1 [loss: 1, 2]
        50.5 ack 4 -> 4 5 [open: 2, 2]
    ";
    for limited_transmit in [false, true] {
        for config in [textbook(3.0), sack(3.0)] {
            let script = match config.recovery {
                Recovery::Reno | Recovery::NewReno => script.to_owned(),
                Recovery::Sack => script
                    .replace("10.2 ack 1", "10.2 ack 1 sack 2-3")
                    .replace("20.2 ack 1", "20.2 ack 1 sack 2-4"),
            };
            expect(Config { window_cap: 3.0, limited_transmit, ..config }, ENDLESS, &script);
        }
    }
    let script = "
         0.0 start -> 0 1x 2 3
        10.1 ack 1 -> 4
        10.2 ack 1
        10.3 ack 1
        20.2 ack 1 -> 1 [recovery: 2, 2]
        30.3 ack 5 -> 5 6 [open: 2, 2]
    ";
    expect(Config { window_cap: 4.0, ..textbook(4.0) }, ENDLESS, script);
}

/// A NewReno recovery ends with nothing in flight: by option 1 of RFC 6582, section 3.2, step 3,
/// with a window of two segments, by option 2 with the threshold, in one burst.
#[test]
fn end_of_recovery() {
    let script = |last| {
        format!(
            "
             0.0 start -> 0x 1 2 3 4 5 6 7
            10.1 ack 0
            10.2 ack 0
            10.3 ack 0 -> 0 [recovery: 4, 4]
            10.4 ack 0
            10.5 ack 0
            10.6 ack 0
            10.7 ack 0
            20.4 ack 8 {last}
            "
        )
    };
    let config = Config { window_cap: 8.0, ..textbook(8.0) };
    expect(config, ENDLESS, &script("-> 8 9 10 11 [open: 4, 4]"));
    let config = Config { conservative_exit: true, ..config };
    expect(config, ENDLESS, &script("-> 8 9 [open: 2, 4]"));
}

/// A loss among what a recovery has sent is another loss: 9 is beyond recover, so that the window,
/// 4 and a quarter, is halved again (RFC 6582, section 3.2, step 2).
#[test]
fn two_recoveries() {
    let script = "
         0.0 start -> 0x 1 2 3 4 5 6 7
        10.1 ack 0
        10.2 ack 0
        10.3 ack 0 -> 0 [recovery: 4, 4]
        10.4 ack 0
        10.5 ack 0 -> 8
        10.6 ack 0 -> 9x
        10.7 ack 0 -> 10
        20.4 ack 8 -> 11 [open: 4, 4]
        20.6 ack 9 -> 12
        20.8 ack 9
        30.5 ack 9
        30.7 ack 9 -> 9 13 [recovery: 2, 2]
        40.8 ack 13 -> 14 [open: 2, 2]
        40.9 ack 14 -> 15
    ";
    expect(textbook(8.0), ENDLESS, script);
}
