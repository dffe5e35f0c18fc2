//! What ports do when they are told to stop: switches and hosts that obey, pauses that end by themselves, and the
//! watchdog of those that do not end.

use endpoint::PacketEvent;
use queues::Disposition;
use units::{Dur, Rate, Time};

use super::{Frame, Pfc};
use crate::config::{Pause, WatchdogAction};
use crate::digest;
use crate::part::{Part, observe};
use crate::topology::{Link, Topology};

impl Pause {
    /// For how many quanta a frame stops a class of a link of `rate`.
    fn quanta(self, rate: Rate) -> u16 {
        let Self::Timed(time) = self else { return u16::MAX };
        // Not zero, and not too many: `check_pause`.
        time.0.div_ceil(wire::pfc::quantum(rate).0.max(1)).min(u64::from(u16::MAX)) as u16
    }

    /// How long that is; `None`: until another one resumes it.
    pub(super) fn time(self, rate: Rate) -> Option<Dur> {
        let quanta = u64::from(self.quanta(rate));
        (self != Self::UntilResume).then(|| wire::pfc::quantum(rate) * quanta)
    }
}

/// Whether PFC frames can say how long `pause` is.
///
/// # Errors
/// A sentence, if it is no time at all, or too long for some link.
pub fn check_pause(topology: &Topology, pause: Pause) -> Result<(), String> {
    let Pause::Timed(time) = pause else { return Ok(()) };
    if time == Dur::ZERO {
        return Err("a pause of no time is none".to_owned());
    }
    let longest = |link: &Link| wire::pfc::quantum(link.rate) * u64::from(u16::MAX);
    match topology.links().iter().find(|link| longest(link) < time) {
        Some(link) => {
            let longest = longest(link);
            Err(format!(
                "a frame stops {link} for 65535 quanta, {longest}, at most; not for {time}"
            ))
        }
        None => Ok(()),
    }
}

impl Pfc {
    /// The classes of which port `port` may send.
    fn open(&self, port: u32) -> u8 {
        let gate = &self.lines[port as usize].gate;
        let forwards = self.spec.watchdog.is_some_and(|dog| dog.action == WatchdogAction::Forward);
        !gate.paused() | if forwards { gate.overdue() } else { 0 }
    }

    /// The classes whose packets port `port` drops.
    pub(super) fn drops(&self, port: u32) -> u8 {
        let drops = self.spec.watchdog.is_some_and(|dog| dog.action == WatchdogAction::Drop);
        if drops { self.lines[port as usize].gate.overdue() } else { 0 }
    }

    /// The classes of which the endpoint of host `h` may send now; `None` if it is not to be asked, because its
    /// interface has a packet already.
    #[inline(never)]
    pub(crate) fn asks(&self, h: u32) -> Option<u8> {
        self.lines[h as usize].held.is_none().then(|| self.open(h))
    }
}

impl<const WATCHED: bool> Part<WATCHED> {
    /// Host `h` is to send `packet`, and some class is paused: if it is that of the packet, the interface keeps it until
    /// the class may leave.
    #[inline(never)]
    pub(crate) fn send_if_open(&mut self, h: u32, packet: u32) {
        let bit = 1 << self.slab[packet].class.min(7);
        match &mut self.pfc {
            Some(pfc) if pfc.open(h) & bit == 0 => pfc.lines[h as usize].held = Some(packet),
            _ => self.send(h, packet),
        }
    }

    /// A frame has arrived over `link`.
    #[inline(never)]
    pub(crate) fn frame_arrives(&mut self, link: u32, frame: u32) {
        let Some(pfc) = &mut self.pfc else { return };
        let (frame, port) = (Frame(frame), &mut self.ports[link as usize]);
        pfc.pending -= 1;
        pfc.coming -= 1;
        port.packets += 1;
        let out = pfc.back[link as usize];
        let line = &mut pfc.lines[out as usize];
        if !port.sound() && port.loses(self.world.config.seed) {
            line.missed = true;
            port.arrived = frame.chain(port.arrived, self.now, digest::Outcome::Dropped);
            return;
        }
        port.arrived = frame.chain(port.arrived, self.now, digest::Outcome::Arrived);
        if WATCHED {
            let number = port.rare.link;
            let paused = &self.world.topology.links()[self.world.topology.reverse(number) as usize];
            let pkt = frame.packet(number, pfc.spec.pause.quanta(paused.rate));
            observe(&mut self.observer, self.now, number, PacketEvent::FlowControl, &pkt);
        }
        let until = line.hold.map_or(Time::NEVER, |hold| self.now + hold);
        line.gate.hear(frame, self.now, until);
        if frame.stop() != 0 && until != Time::NEVER {
            self.call_at(out, until);
        }
        self.set_watchdog(out);
        self.gate_changed(out);
    }

    /// Let [`Part::pause_due`] be called for the port of `link` at `at`.
    fn call_at(&mut self, link: u32, at: Time) {
        let Some(pfc) = &mut self.pfc else { return };
        pfc.pending += 1;
        self.events.pause(link, at);
    }

    /// Have the watchdog of the port of `link`, if it is a switch's, look when the first pause will have lasted too
    /// long. One call at a time: most pauses are over long before.
    fn set_watchdog(&mut self, link: u32) {
        let Some(pfc) = self.pfc.as_mut().filter(|_| link as usize >= self.hosts.len()) else {
            return;
        };
        let line = &mut pfc.lines[link as usize];
        let (Some(dog), Some(since)) = (pfc.spec.watchdog, line.gate.first_since()) else { return };
        if line.dog_at.is_none() {
            line.dog_at = Some(since + dog.after);
            self.call_at(link, since + dog.after);
        }
    }

    /// Something that flow control waits for may be due at the port of `link`.
    #[inline(never)]
    pub(crate) fn pause_due(&mut self, link: u32) {
        let Some(pfc) = &mut self.pfc else { return };
        pfc.pending -= 1;
        let line = &mut pfc.lines[link as usize];
        if line.teller.again_at == self.now {
            line.teller.remind();
        }
        line.gate.expire(self.now);
        if let Some(dog) = pfc.spec.watchdog.filter(|_| line.dog_at == Some(self.now)) {
            line.dog_at = None;
            let overrun = line.gate.overrun(self.now, dog.after);
            if overrun != 0 && dog.action == WatchdogAction::Drop {
                self.discard(link, overrun);
            }
            self.set_watchdog(link);
        }
        self.gate_changed(link);
    }

    /// What waits at the switch port of `link` in `classes` is lost.
    fn discard(&mut self, link: u32, classes: u8) {
        let port = &mut self.ports[link as usize];
        let at = port.rare.switch;
        let Some(queue) = &mut port.queue else { return };
        let mut lost = Vec::new();
        for class in (0..8).filter(|class| classes & 1 << class != 0) {
            queue.discard(class, &mut |_, packet| lost.push(packet));
        }
        for packet in lost {
            let Some(pfc) = &mut self.pfc else { return };
            pfc.lines[link as usize].gate.count_drop();
            let came = pfc.came[packet.handle as usize];
            self.decide(link, Disposition::Drop, packet);
            self.give_back(at, came, packet);
        }
    }

    /// What may leave over the port of `link` may have changed.
    fn gate_changed(&mut self, link: u32) {
        let Some(pfc) = &mut self.pfc else { return };
        if (link as usize) >= self.hosts.len() {
            if let Some(queue) = &mut self.ports[link as usize].queue {
                queue.set_open(pfc.open(link));
            }
            self.serve(link);
            return;
        }
        // The port is idle, or the packet would not wait here.
        if let Some(packet) = pfc.lines[link as usize].held.take() {
            self.send_if_open(link, packet);
        }
        self.settle(link);
    }
}
