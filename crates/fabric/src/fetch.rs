//! Fetching ahead: what the events of a slot will touch is asked for when the slot is opened.
//!
//! A packet-hop touches some ten cache lines, most of which have not been near the processor for
//! microseconds of simulated time. Asked for as each event is handled, they are waited for one by one. A slot's
//! events are known when it is opened, so they are asked for all at once: first packets and the ports they
//! come over; then, with those at hand, the ports and hosts they go to, which are noted for when the event
//! comes; then endpoints.

use endpoint::Observer;

use crate::host::Host;
use crate::part::Part;
use crate::port::FarEnd;
use crate::route::Forwarding;
use crate::slab;
use crate::wheel::{About, Onward};

impl<O: Observer> Part<O> {
    /// Have at hand what the events of the slot just opened will touch, and where they lead.
    #[inline(never)]
    pub(crate) fn fetch(&mut self) {
        for about in self.events.opened() {
            slab::prefetch::<_, 4>(&self.ports[about.link() as usize]);
            if about.kind() == About::ARRIVAL {
                self.slab.prefetch(about.packet);
            }
        }
        let mut onward = std::mem::take(self.events.all_onward());
        onward.extend(self.events.opened().map(|about| self.look_ahead(about)));
        let hosts = || {
            let named = onward.iter().filter_map(|onward: &Onward| onward.host());
            named.filter_map(|host| self.hosts.get(host as usize))
        };
        hosts().for_each(Host::prefetch_endpoint);
        if self.far_hosts {
            hosts().for_each(|host| host.prefetch_behind(0));
            hosts().for_each(|host| host.prefetch_behind(1));
        }
        *self.events.all_onward() = onward;
    }

    /// Where an event leads, and have that at hand.
    #[inline(always)]
    fn look_ahead(&self, about: About) -> Onward {
        if about.kind() != About::ARRIVAL {
            return self.fetch_host(about.link());
        }
        let Some(pkt) = self.slab.get(about.packet) else { return Onward::UNKNOWN };
        match self.ports[about.link() as usize].end {
            FarEnd::Switch(at) if matches!(self.world.forwarding, Forwarding::Digits) => {
                let out = self.port_along(at, pkt);
                slab::prefetch::<_, 4>(&self.ports[out as usize]);
                Onward::to_port(out)
            }
            FarEnd::Host(host) => {
                // Its header, which switches do not look at.
                slab::prefetch::<_, 1>(&pkt.hdr);
                self.fetch_host(host)
            }
            _ => Onward::UNKNOWN,
        }
    }

    /// A host's own port, and what every packet of it touches.
    #[inline(always)]
    fn fetch_host(&self, host: u32) -> Onward {
        let Some(state) = self.hosts.get(host as usize) else { return Onward::UNKNOWN };
        slab::prefetch::<_, 5>(state);
        slab::prefetch::<_, 2>(&self.ports[host as usize]);
        Onward::to_host(host)
    }
}
