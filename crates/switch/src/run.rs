//! The loop that drives a [`Switch`] over interfaces: receive, decide, send what has left, sleep
//! until something is due. And what only a real wire does to frames: [`Harm`].

use std::io;
use std::time::SystemTime;

use endpoint::{Draw, Purpose};
use nix::errno::Errno;
use nix::sys::prctl;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::{Dur, Time};

use crate::interface::Interface;
use crate::seen::{Ordered, Seen, Watch};
use crate::switch::Switch;

/// The longest sleep, so that the caller is asked often enough.
const MAX_SLEEP: Dur = Dur::from_ms(50);
/// Shorter waits are spun, as waking up takes longer. Others that can run go first.
const SPIN_BELOW: Dur = Dur::from_us(20);
/// A frame that is to be overtaken waits for the next one, but not for longer.
const HOLD: Dur = Dur::from_ms(1);

/// Frames for each port for which there is memory from the start: as many as shallow queues hold.
const PREPARED: usize = 8;

/// What happens to frames as they leave, beside the scenario's faults: each with this probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Harm {
    /// It is sent twice.
    pub duplicate: f64,
    /// The next frame of its port overtakes it, if one comes within a millisecond.
    pub reorder: f64,
    /// One of its bits after the IPv4 header changes.
    pub corrupt: f64,
}

/// What the wires did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames that were sent twice.
    pub duplicated: u64,
    /// Frames that were overtaken.
    pub reordered: u64,
    /// Frames of which a bit changed.
    pub corrupted: u64,
    /// Frames that the kernel would not send.
    pub refused: u64,
    /// Frames longer than the MTU of the interface by which they were to leave.
    pub too_long: u64,
    /// Frames that the kernel lost before they were received, since this process was late.
    pub overflowed: u64,
    /// The latest that a frame left after its time.
    pub latest: Dur,
}

/// Why a switch stops.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An interface does not work any more.
    #[error("interface {name}: {error}: is it up, and still there?")]
    Interface {
        /// Which.
        name: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// It cannot sleep.
    #[error("poll: {0}")]
    Poll(io::Error),
    /// The record cannot be written.
    #[error("the record cannot be written: {0}")]
    Record(io::Error),
    /// What is told of frames could not be written.
    #[error("the capture cannot be written: {0}")]
    Capture(io::Error),
}

/// How a switch is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What happens to frames as they leave.
    pub harm: Harm,
    /// Of the draws of that.
    pub seed: u64,
    /// When the switch's time is zero. It forwards before that, too.
    pub start: SystemTime,
    /// Never sleep: takes a core, and saves being woken.
    pub busy: bool,
}

/// Run `switch` over `interfaces`, one for each of its ports in their order, until `go_on` says no:
/// asked after each turn, every 50 ms at least. `watch`, if there is one, sees each frame that
/// comes or leaves, in the order of time.
///
/// # Errors
/// What stops it before.
pub fn run<'a>(
    switch: &mut Switch,
    interfaces: &mut [Interface],
    options: Options,
    watch: Option<&'a mut Watch<'a>>,
    mut go_on: impl FnMut(&Switch, &Totals) -> bool,
) -> Result<Totals, RunError> {
    // A sleeper would be woken up to 50 us late. Without it, it is only less exact.
    let _ = prctl::set_timerslack(1);
    let clock = Clock { start_ns: since_1970_ns(options.start) };
    let mut wires = Wires::new(interfaces.len(), options, watch);
    let mut order = Vec::new();
    switch.prepare(PREPARED * interfaces.len());
    loop {
        let looked = clock.now();
        let (horizon, more) = receive(interfaces, &mut order, &clock, looked)?;
        for &(at, port, n) in &order {
            let (at, frame) = (clock.time(at), interfaces[port].frame(n));
            wires.seen.note(Seen { at, port, came: true, frame });
            switch.arrive(at, port, frame);
        }
        switch.advance(horizon);
        let now = clock.now();
        switch.departures(|port, at, frame| {
            wires.totals.latest = wires.totals.latest.max(now.since(at));
            wires.send(&mut interfaces[port], port, frame, now);
        });
        wires.release(interfaces, now);
        wires.seen.tell(horizon).map_err(RunError::Capture)?;
        let mut waiting = more;
        for interface in &mut *interfaces {
            waiting |= !interface.flush().map_err(|error| failed(interface, error))?;
        }
        if !go_on(switch, &wires.totals) {
            wires.totals.overflowed = interfaces.iter().map(Interface::overflowed).sum();
            switch.advance(clock.now());
            switch.finish().map_err(RunError::Record)?;
            wires.seen.tell(Time::NEVER).map_err(RunError::Capture)?;
            return Ok(wires.totals);
        }
        if !waiting && !options.busy {
            let next = switch.next().into_iter().chain(wires.next()).min();
            let wake = next.unwrap_or(Time::NEVER).since(clock.now());
            if wake < SPIN_BELOW {
                std::thread::yield_now();
            } else {
                wait(interfaces, wake.min(MAX_SLEEP)).map_err(RunError::Poll)?;
            }
        }
    }
}

/// What has come, in the order in which it came: stamp, port, and which frame of that. Up to when
/// nothing more will come, and whether something waits.
fn receive(
    interfaces: &mut [Interface],
    order: &mut Vec<(u64, usize, usize)>,
    clock: &Clock,
    looked: Time,
) -> Result<(Time, bool), RunError> {
    let (mut horizon, mut more) = (looked, false);
    order.clear();
    // After `looked`: what came before that is found. Most interfaces have nothing, and to ask the
    // kernel for all at once is cheaper.
    let ready = match interfaces.iter().any(Interface::asks_kernel) {
        true => Some(wait(interfaces, Dur::ZERO).map_err(RunError::Poll)?),
        false => None,
    };
    let now = clock.since_1970(looked);
    for (port, interface) in interfaces.iter_mut().enumerate() {
        interface.forget();
        if ready.as_ref().is_some_and(|ready| !ready[port]) {
            continue;
        }
        let full = interface.receive(now).map_err(|error| failed(interface, error))?;
        order.extend((0..interface.count()).map(|n| (interface.stamp(n), port, n)));
        if full {
            more = true;
            let last = interface.count().checked_sub(1);
            let last = last.map_or(looked, |last| clock.time(interface.stamp(last)));
            horizon = horizon.min(last);
        }
    }
    order.sort_unstable();
    Ok((horizon, more))
}

fn failed(interface: &Interface, error: io::Error) -> RunError {
    RunError::Interface { name: interface.name().to_owned(), error }
}

/// Wait until something has come, but no longer than `time`. At which interfaces it has.
fn wait(interfaces: &[Interface], time: Dur) -> io::Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> =
        interfaces.iter().map(|interface| PollFd::new(interface, PollFlags::IN)).collect();
    let ns = time.0 / 1_000;
    let time = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
    match poll(&mut fds, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// The system's clock, by which the kernel stamps frames, from the start of the run.
struct Clock {
    start_ns: u64,
}

impl Clock {
    fn now(&self) -> Time {
        self.time(since_1970_ns(SystemTime::now()))
    }

    /// The other way round: ns since 1970.
    fn since_1970(&self, at: Time) -> u64 {
        self.start_ns.saturating_add(at.0 / 1_000)
    }

    fn time(&self, ns: u64) -> Time {
        Time(ns.saturating_sub(self.start_ns).saturating_mul(1_000))
    }
}

fn since_1970_ns(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The interfaces as frames leave, with what happens to them on purpose.
struct Wires<'a> {
    seen: Ordered<'a>,
    harm: Harm,
    draw: Draw,
    sent: u64,
    /// By port, a frame that the next one is to overtake, and until when it waits for that.
    held: Vec<Option<(Time, Vec<u8>)>>,
    totals: Totals,
}

const DUPLICATE: Purpose = Purpose::new("duplicate");
const REORDER: Purpose = Purpose::new("reorder");
const CORRUPT: Purpose = Purpose::new("corrupt");
const BIT: Purpose = Purpose::new("bit");

impl<'a> Wires<'a> {
    fn new(
        ports: usize,
        Options { harm, seed, .. }: Options,
        watch: Option<&'a mut Watch<'a>>,
    ) -> Self {
        let draw = Draw::new(seed, Purpose::new("wire"), 0);
        let (seen, held) = (Ordered::new(watch), vec![None; ports]);
        Self { seen, harm, draw, sent: 0, held, totals: Totals::default() }
    }

    /// When the first held frame leaves at the latest.
    fn next(&self) -> Option<Time> {
        self.held.iter().flatten().map(|(until, _)| *until).min()
    }

    fn send(&mut self, interface: &mut Interface, port: usize, frame: &[u8], now: Time) {
        self.sent += 1;
        let (draw, n, harm) = (self.draw, self.sent, self.harm);
        let happens = |purpose, probability: f64| draw.unit(purpose, n) < probability;
        let damaged = happens(CORRUPT, harm.corrupt).then(|| flip(frame, draw.bits(BIT, n)));
        self.totals.corrupted += u64::from(damaged.is_some());
        let frame = damaged.as_deref().unwrap_or(frame);
        if self.held[port].is_none() && happens(REORDER, harm.reorder) {
            self.held[port] = Some((now + HOLD, frame.to_vec()));
            return;
        }
        self.transmit(interface, port, frame, now);
        if happens(DUPLICATE, harm.duplicate) {
            self.totals.duplicated += 1;
            self.transmit(interface, port, frame, now);
        }
        if let Some((_, overtaken)) = self.held[port].take() {
            self.totals.reordered += 1;
            self.transmit(interface, port, &overtaken, now);
        }
    }

    /// Send the frames that nothing has overtaken in time.
    fn release(&mut self, interfaces: &mut [Interface], now: Time) {
        for (port, interface) in interfaces.iter_mut().enumerate() {
            if let Some((_, frame)) = self.held[port].take_if(|(until, _)| *until <= now) {
                self.transmit(interface, port, &frame, now);
            }
        }
    }

    fn transmit(&mut self, interface: &mut Interface, port: usize, frame: &[u8], now: Time) {
        let Err(error) = interface.send(frame) else {
            return self.seen.note(Seen { at: now, port, came: false, frame });
        };
        match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
            Errno::EMSGSIZE => self.totals.too_long += 1,
            _ => self.totals.refused += 1,
        }
    }
}

/// `frame` with one of its bits after the IPv4 header changed, by 64 uniform bits.
fn flip(frame: &[u8], random: u64) -> Vec<u8> {
    const HEADERS: usize = 14 + 20;
    let mut frame = frame.to_vec();
    let bits = frame.len().saturating_sub(HEADERS) as u64 * 8;
    if bits > 0 {
        let bit = random % bits;
        frame[HEADERS + (bit / 8) as usize] ^= 1 << (bit % 8);
    }
    frame
}
