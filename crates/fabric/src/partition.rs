//! A partition: hosts and the network that joins them, and which of the two an event concerns.

use units::{Dur, Time};

use crate::core::Core;
use crate::event::{Event, Kind};
use crate::hosts::Hosts;
use crate::livelock::{Recent, RecentKind};
use crate::network::Network;
use crate::outgoing::Outgoing;
use crate::port::Port;
use crate::slot::Onward;

pub(crate) struct Partition<'o, const WATCHED: bool> {
    hosts: Hosts<WATCHED>,
    network: Network<'o, WATCHED>,
}

impl<'o, const WATCHED: bool> Partition<'o, WATCHED> {
    pub(crate) fn new(hosts: Hosts<WATCHED>, network: Network<'o, WATCHED>) -> Self {
        Self { hosts, network }
    }

    #[inline(always)]
    pub(crate) fn hosts(&self) -> &Hosts<WATCHED> {
        &self.hosts
    }

    pub(crate) fn hosts_mut(&mut self) -> &mut Hosts<WATCHED> {
        &mut self.hosts
    }

    #[inline(always)]
    pub(crate) fn network(&self) -> &Network<'o, WATCHED> {
        &self.network
    }

    pub(crate) fn network_mut(&mut self) -> &mut Network<'o, WATCHED> {
        &mut self.network
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        self.network.core()
    }

    #[inline(always)]
    pub(crate) fn core_mut(&mut self) -> &mut Core {
        self.network.core_mut()
    }

    /// `time` has been skipped.
    pub(crate) fn skip(&mut self, time: Dur) {
        self.network.skip(time);
        self.hosts.skip(&mut self.network, time);
    }

    /// `count` rounds of all work have been left out, which take `time` each. It is `now` in true
    /// time.
    pub(crate) fn skip_rounds(&mut self, now: Time, count: u32, time: Dur) {
        self.network.skip(time * u64::from(count));
        self.hosts.skip_rounds(now, count, time);
    }

    pub(crate) fn ports_mut(&mut self) -> &mut [Port] {
        self.network.ports_mut()
    }

    /// As [`Network::is_by_entity`].
    #[inline(always)]
    pub(crate) fn is_by_entity(&self) -> bool {
        self.network.is_by_entity()
    }

    /// The run begins.
    pub(crate) fn start(&mut self) {
        self.hosts.start(&mut self.network);
    }

    /// Let `event` happen, which leads to `to`.
    #[inline(always)]
    pub(crate) fn dispatch(&mut self, event: Event, to: Onward) {
        self.core_mut().set_now(event.at);
        let id = event.id();
        if id.is_arrival() {
            if let Some(host) = self.network.arrival(id.link(), id.packet, to) {
                self.hosts.deliver(&mut self.network, host, id.packet);
            }
        } else {
            self.dispatch_other(event);
        }
    }

    #[inline(never)]
    fn dispatch_other(&mut self, event: Event) {
        let Self { hosts, network } = self;
        let (kind, link) = (event.id().kind(), event.id().link());
        if kind == Kind::Departure && link as usize >= hosts.count() {
            network.core_mut().uncount();
            network.port_departure(link);
            return;
        }
        if kind == Kind::Timer && !network.core_mut().events_mut().wakes(link, event.at) {
            network.core_mut().uncount();
            return;
        }
        let resumed = match kind {
            Kind::Arrival => network.arrival(link, event.id().packet, Onward::UNKNOWN),
            Kind::Departure => return hosts.nic_departure(network, link),
            Kind::Timer => return hosts.host_timer(network, link),
            Kind::App => return hosts.host_app(network, link),
            Kind::Frame => network.frame_arrives(link, event.id().packet),
            Kind::Pause => network.pause_due(link),
            Kind::Fault => {
                // Every partition has it; it counts once.
                if network.core().index() > 0 {
                    network.core_mut().uncount();
                }
                for host in network.fault() {
                    hosts.classes_changed(network, host);
                }
                None
            }
        };
        if let Some(host) = resumed {
            hosts.classes_changed(network, host);
        }
    }

    /// Everything before `until` has happened here; other partitions need what crosses the cut.
    pub(crate) fn finish_round(&mut self, until: Time) {
        self.network.finish_round(until);
        self.core_mut().pass(until);
    }

    /// When something happens here next, or a bound below it.
    pub(crate) fn next_at(&self) -> Time {
        self.network.next_at()
    }

    /// Whether no packet or frame is about.
    pub(crate) fn is_silent(&self) -> bool {
        self.network.is_silent(self.hosts.spares())
    }

    /// When something happens here next, exactly, if all is silent: the event queue may hold timers
    /// that have moved.
    pub(crate) fn next_if_silent(&self) -> Time {
        self.network.next_fault().min(self.hosts.next_at())
    }

    /// Take in what has come from another partition.
    pub(crate) fn receive(&mut self, outgoing: &mut Outgoing) {
        self.network.receive(outgoing);
        self.hosts.receive(&mut self.network, outgoing);
    }

    /// `event` is one of many that have come up in one slot.
    #[cold]
    pub(crate) fn suspect(&mut self, event: Event) {
        let id = event.id();
        let kind = match id.kind() {
            Kind::Arrival => RecentKind::Arrival,
            Kind::Departure => RecentKind::Departure,
            Kind::Timer => RecentKind::Timer,
            Kind::App => RecentKind::App,
            Kind::Frame | Kind::Pause => RecentKind::FlowControl,
            Kind::Fault => RecentKind::Fault,
        };
        let host = self.hosts.id(id.link());
        let packet = Some(id.packet).filter(|_| kind == RecentKind::Arrival);
        let message = packet.and_then(|packet| self.network.message(packet));
        let link = Some(self.network.link_number(id.link())).filter(|_| kind != RecentKind::Fault);
        let recent = Recent { kind, host, link, timer: None, message, at: event.at };
        let links = self.network.link_count();
        self.core_mut().suspect(recent, links);
    }
}
