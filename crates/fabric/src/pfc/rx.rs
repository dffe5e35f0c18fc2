//! What ports do when a frame stops them: switches and hosts that obey, pauses that end by
//! themselves, and the watchdog of those that do not end.
//!
//! Where a host may send again, its interface is named to the caller: only hosts know what is next.

use endpoint::PacketEvent;
use queues::Disposition;
use units::Time;

use super::Pfc;
use super::frame::Frame;
use crate::config::WatchdogAction;
use crate::digest;
use crate::links::Links;

impl Pfc {
    /// A frame has arrived over `link`. The host whose interface may send now, if it is one's.
    #[inline(never)]
    pub(crate) fn frame_arrives<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
        frame: u32,
    ) -> Option<u32> {
        let (now, frame) = (links.core().now(), Frame(frame));
        self.pending -= 1;
        self.coming -= 1;
        let seed = links.seed();
        let port = links.port_mut(link);
        port.packets += 1;
        let out = self.back[link as usize];
        let line = &mut self.lines[out as usize];
        if !port.sound() && port.loses(seed) {
            line.missed = true;
            port.arrived = frame.chain(port.arrived, now, digest::Outcome::Dropped);
            return None;
        }
        port.arrived = frame.chain(port.arrived, now, digest::Outcome::Arrived);
        let until = line.hold.map_or(Time::NEVER, |hold| now + hold);
        line.rx.hear(frame, now, until);
        if WATCHED {
            let number = port.rare.link;
            let paused = &self.topology.links()[self.topology.reverse(number) as usize];
            let pkt = frame.packet(number, self.spec.pause.quanta(paused.rate));
            links.observe(number, PacketEvent::FlowControl, &pkt);
        }
        if frame.stop() != 0 && until != Time::NEVER {
            self.call_at(links, out, until);
        }
        self.set_watchdog(links, out);
        self.reopen(links, out)
    }

    /// Let [`Pfc::pause_due`] be called for the port of `link` at `at`.
    fn call_at<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
        at: Time,
    ) {
        self.pending += 1;
        links.core_mut().events_mut().pause(link, at);
    }

    /// Have the watchdog of the port of `link`, if it is a switch's, look when the first pause will
    /// have lasted too long. One call at a time: most pauses are over long before.
    fn set_watchdog<const WATCHED: bool>(&mut self, links: &mut Links<'_, WATCHED>, link: u32) {
        if links.port(link).queue.is_none() {
            return;
        }
        let line = &mut self.lines[link as usize];
        let (Some(dog), Some(since)) = (self.spec.watchdog, line.rx.first_since()) else { return };
        if line.dog_at.is_none() {
            line.dog_at = Some(since + dog.after);
            self.call_at(links, link, since + dog.after);
        }
    }

    /// Something that flow control waits for may be due at the port of `link`. As
    /// [`Pfc::frame_arrives`].
    #[inline(never)]
    pub(crate) fn pause_due<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
    ) -> Option<u32> {
        let now = links.core().now();
        self.pending -= 1;
        let line = &mut self.lines[link as usize];
        if line.tx.again_at == now {
            line.tx.refresh();
        }
        line.rx.expire(now);
        if let Some(dog) = self.spec.watchdog.filter(|_| line.dog_at == Some(now)) {
            line.dog_at = None;
            let overrun = line.rx.overrun(now, dog.after);
            if overrun != 0 && dog.action == WatchdogAction::Drop {
                self.discard(links, link, overrun);
            }
            self.set_watchdog(links, link);
        }
        self.reopen(links, link)
    }

    /// The receiving end of link number `link` has a signal from now on, or none. Without one the
    /// port there forgets what it was told over the link (specs/rdma.md#1): the far end may have
    /// died, and no resume would come. With one, the far end says again what it has stopped. As
    /// [`Pfc::frame_arrives`].
    #[cold]
    pub(crate) fn set_signal<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
        signal: bool,
    ) -> Option<u32> {
        if signal {
            let from = links.transmitting_end(link)? as u32;
            self.lines[from as usize].tx.repeat();
            if self.lines[from as usize].tx.pending() {
                self.serve(links, from);
            }
            return None;
        }
        let out = self.back[links.receiving_end(link)?];
        self.lines[out as usize].rx.forget(links.core().now());
        self.reopen(links, out)
    }

    /// What waits at the switch port of `link` in `classes` is lost.
    fn discard<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
        classes: u8,
    ) {
        let port = links.port_mut(link);
        let at = port.rare.switch;
        let Some(queue) = &mut port.queue else { return };
        let mut lost = Vec::new();
        for class in (0..8).filter(|class| classes & 1 << class != 0) {
            queue.discard(class, &mut |_, packet| lost.push(packet));
        }
        for packet in lost {
            self.lines[link as usize].rx.count_drop();
            let came = self.came[packet.handle as usize];
            links.decide(link, Disposition::Drop, packet);
            self.give_back(links, at, came, packet);
        }
    }

    /// What may leave over the port of `link` may have changed. Its host, if it is one's.
    fn reopen<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
    ) -> Option<u32> {
        let open = self.open(link);
        match &mut links.port_mut(link).queue {
            Some(queue) => queue.set_open(open),
            None => return Some(link),
        }
        self.serve(links, link);
        None
    }
}
