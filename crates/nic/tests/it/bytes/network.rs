//! NICs with bytes joined by an ideal switch: every frame takes its serialisation time and a delay,
//! and nothing queues behind it. For tests and examples of what a program does with payload; the
//! fabric has queues.

use std::collections::BTreeMap;

use units::{Dur, HostId, Rate, Time};

use super::device::{Device, Output};

/// What the network does to a frame, beside carrying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
    /// Its payload is cut off.
    Trimmed,
    /// It arrives so much later than others.
    Late(Dur),
    /// It arrives twice.
    Twice,
}

/// Decides on frames: the how-manieth it is, and its bytes.
pub(crate) type Fates = Box<dyn FnMut(u64, &[u8]) -> Fate>;

/// Bytes that are left of a trimmed frame.
const TRIMMED_LEN: usize = 64;

/// See the top of the file.
pub(crate) struct Network {
    devices: Vec<Device>,
    rate: Rate,
    delay: Dur,
    fates: Fates,
    now: Time,
    sent: u64,
    /// When each port is free.
    free: Vec<Time>,
    /// When each port is asked again.
    ask: Vec<Time>,
    /// Frames on their way, by arrival and number.
    flights: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
}

impl Network {
    /// Hosts from 0, with links of `rate` and `delay` one way.
    #[must_use]
    pub(crate) fn new(devices: Vec<Device>, rate: Rate, delay: Dur) -> Self {
        let hosts = devices.len();
        Self {
            devices,
            rate,
            delay,
            fates: Box::new(|_, _| Fate::Arrives),
            now: Time::ZERO,
            sent: 0,
            free: vec![Time::ZERO; hosts],
            ask: vec![Time::ZERO; hosts],
            flights: BTreeMap::new(),
        }
    }

    /// From now on `fates` decides what becomes of frames.
    pub(crate) fn set_fates(&mut self, fates: Fates) {
        self.fates = fates;
    }

    /// The NIC of `host`, to submit something.
    pub(crate) fn device(&mut self, host: HostId) -> Option<(Time, &mut Device)> {
        let device = self.devices.get_mut(host.0 as usize)?;
        if let Some(ask) = self.ask.get_mut(host.0 as usize) {
            *ask = self.now;
        }
        Some((self.now, device))
    }

    /// The time.
    #[must_use]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Let happen what happens next, if that is not after `limit`. Returns whether something did,
    /// with what hosts hear of it.
    pub(crate) fn step(&mut self, limit: Time) -> Option<Vec<(HostId, Time, Output)>> {
        let next = self.next().filter(|next| *next <= limit)?;
        self.now = self.now.max(next);
        while let Some((&key, _)) =
            self.flights.first_key_value().filter(|((at, _), _)| *at <= self.now)
        {
            let Some((to, frame)) = self.flights.remove(&key) else { break };
            if let Some(device) = self.devices.get_mut(to) {
                device.receive(self.now, &frame);
                self.ask[to] = self.now;
            }
        }
        let mut heard = Vec::new();
        for host in 0..self.devices.len() {
            if self.devices[host].next() <= self.now {
                self.devices[host].advance(self.now);
                self.ask[host] = self.now;
            }
            let id = HostId(host as u32);
            heard.extend(
                std::iter::from_fn(|| self.devices[host].output()).map(|(at, o)| (id, at, o)),
            );
            self.poll(host);
        }
        Some(heard)
    }

    /// All that happens until `limit`, with what hosts hear.
    pub(crate) fn run(&mut self, limit: Time) -> Vec<(HostId, Time, Output)> {
        std::iter::from_fn(|| self.step(limit)).flatten().collect()
    }

    fn next(&self) -> Option<Time> {
        let flight = self.flights.first_key_value().map(|((at, _), _)| *at);
        let devices = self.devices.iter().map(Device::next);
        let ports = self.ask.iter().zip(&self.free).map(|(ask, free)| *ask.max(free));
        devices.chain(ports).chain(flight).min().filter(|next| *next != Time::NEVER)
    }

    /// Ask the port of `host`, if it is free.
    fn poll(&mut self, host: usize) {
        if self.free[host] > self.now || self.ask[host] > self.now {
            return;
        }
        match self.devices[host].send(self.now) {
            Ok(frame) => {
                self.free[host] = self.now + self.rate.serialise(frame.len() as u64);
                self.carry(self.free[host] + self.delay, frame);
            }
            Err(again) => self.ask[host] = again,
        }
    }

    /// The frame is to arrive `at` this time.
    fn carry(&mut self, mut at: Time, mut frame: Vec<u8>) {
        let to = frame.get(30..34).and_then(|ip| ip.try_into().ok()).map(u32::from_be_bytes);
        let Some(to) = to.map(|ip| trimline_nic::nano::meta::host_of(ip).0 as usize) else {
            return;
        };
        self.sent += 1;
        match (self.fates)(self.sent - 1, &frame) {
            Fate::Arrives => {}
            Fate::Lost => return,
            Fate::Trimmed => {
                frame.truncate(TRIMMED_LEN);
                if let Some(flags) = frame.get_mut(trimline_nic::nano::frame::OUTER) {
                    *flags |= wire::nano::flags::CHOP;
                }
            }
            Fate::Late(more) => at += more,
            Fate::Twice => {
                self.flights.insert((at, 2 * self.sent), (to, frame.clone()));
            }
        }
        self.flights.insert((at, 2 * self.sent + 1), (to, frame));
    }
}
