//! The loop: events are handled a slot of the wheel at a time.
//!
//! A packet-hop touches some ten cache lines, most of which have not been near the processor for
//! microseconds of simulated time. A slot's events are known when it is opened, so all that they
//! will touch is prefetched at once. First packets and the ports they come over. Then, with those
//! at hand, the ports and hosts they go to, which are noted for when the event comes. Then
//! endpoints.
//!
//! A slot is shorter than the shortest packet takes to be sent. So what happens at one port or host
//! within it has no effect on another one, and only events of one have to be handled in order. Few
//! slots hold two of one: most are handled as they come. That holds until a switch turns a header
//! back, which goes from port to port in no time, or where more is shared than links (memory of a
//! switch, an observer of packets, a link that fails): then all of a slot is sorted. Results are
//! the same.
//!
//! No slot holds a loop for ever: see [`crate::livelock`].

use units::Time;

use crate::event::Event;
use crate::livelock::FRESH_MAX;
use crate::partition::Partition;
use crate::slot::{Ahead, Lead, Onward, Sorter};

/// A partition and the loop that runs it.
pub(crate) struct EventLoop<'o, const WATCHED: bool> {
    part: Partition<'o, WATCHED>,
    lists: Lists,
}

impl<'o, const WATCHED: bool> EventLoop<'o, WATCHED> {
    pub(crate) fn new(part: Partition<'o, WATCHED>) -> Self {
        Self { part, lists: Lists::default() }
    }

    pub(crate) fn part(&self) -> &Partition<'o, WATCHED> {
        &self.part
    }

    pub(crate) fn part_mut(&mut self) -> &mut Partition<'o, WATCHED> {
        &mut self.part
    }

    /// Handle every event that comes strictly before `until`.
    pub(crate) fn run(&mut self, until: Time) {
        self.lists.run(&mut self.part, until);
    }
}

/// The lists of the loop, kept from slot to slot.
#[derive(Default)]
struct Lists {
    due: Vec<Event>,
    ahead: Ahead,
    /// Scratch: the places of events in order.
    sorted: Vec<u32>,
    sorter: Sorter,
}

impl Lists {
    /// Handle every event of `part` that comes strictly before `until`.
    #[inline(never)]
    fn run<const WATCHED: bool>(&mut self, part: &mut Partition<'_, WATCHED>, until: Time) {
        let mut due = std::mem::take(&mut self.due);
        let mut ahead = std::mem::take(&mut self.ahead);
        while !part.core().violated() && part.core_mut().events_mut().open(until, &mut due) {
            part.core_mut().count(due.len() as u64);
            if let [event] = due[..] {
                handle_alone(part, event);
                due.clear();
                continue;
            }
            ahead.clear(due.len(), part.ports_mut());
            look_ahead(part, &due, &mut ahead);
            if part.is_by_entity() {
                ahead.link(part.ports_mut());
                self.handle_by_entity(part, &due, &mut ahead.leads);
            } else {
                self.handle_in_order(part, &due, &ahead.leads);
            }
            due.clear();
        }
        (self.due, self.ahead) = (due, ahead);
        if !part.core().violated() {
            part.finish_round(until);
        }
    }

    /// Handle events in any order, but those of one port or host.
    #[inline(never)]
    fn handle_by_entity<const WATCHED: bool>(
        &mut self,
        part: &mut Partition<'_, WATCHED>,
        due: &[Event],
        leads: &mut [Lead],
    ) {
        // As long as the other list: so it is looked at once that both have an item.
        let leads = &mut leads[..due.len()];
        for n in 0..due.len() {
            let to = leads[n].to;
            if to.is_shared() {
                self.handle_several(part, due, leads, n as u32);
                continue;
            }
            part.dispatch(due[n], to);
            if part.core().events().fresh().is_some() {
                catch_up(part, to, (Time::NEVER, 0));
            }
        }
    }

    /// Handle event `n` and those that follow at the same port or host, unless that has been done.
    #[inline(never)]
    fn handle_several<const WATCHED: bool>(
        &mut self,
        part: &mut Partition<'_, WATCHED>,
        due: &[Event],
        leads: &mut [Lead],
        mut n: u32,
    ) {
        let to = leads[n as usize].to;
        if to == Onward::DONE {
            return;
        }
        let to = to.plain();
        let sorted = &mut self.sorted;
        sorted.clear();
        while let Some(lead) = leads.get_mut(n as usize) {
            lead.to = Onward::DONE;
            sorted.push(n);
            n = lead.next;
        }
        sorted.sort_unstable_by_key(|&n| part.core().events().key(due[n as usize]));
        for &n in &*sorted {
            let event = due[n as usize];
            if part.core().events().fresh().is_some() {
                let until = part.core().events().key(event);
                catch_up(part, to, until);
            }
            part.dispatch(event, to);
        }
        catch_up(part, to, (Time::NEVER, 0));
    }

    /// Handle events in order, those too that come up meanwhile.
    #[inline(never)]
    fn handle_in_order<const WATCHED: bool>(
        &mut self,
        part: &mut Partition<'_, WATCHED>,
        due: &[Event],
        leads: &[Lead],
    ) {
        let sorted = &mut self.sorted;
        self.sorter.sort(due, part.core().events(), sorted);
        let mut fresh = 0;
        for &n in &*sorted {
            let event = due[n as usize];
            while part.core().events().is_fresh_before(event) && !part.core().violated() {
                handle_fresh(part, &mut fresh);
            }
            if part.core().violated() {
                return;
            }
            check_time(part, event);
            part.dispatch(event, leads[n as usize].to);
        }
        handle_all_fresh(part, fresh);
    }
}

/// Handle the only event of a slot, and those that come up meanwhile. There is nothing to order,
/// and nothing to fetch in time: in a fabric with little traffic most slots are like that.
#[inline(never)]
fn handle_alone<const WATCHED: bool>(part: &mut Partition<'_, WATCHED>, event: Event) {
    check_time(part, event);
    let to = part.network().find_onward(event);
    part.dispatch(event, to);
    handle_all_fresh(part, 0);
}

/// Handle the events that have come up within the slot until there is none, after `fresh` of them.
#[inline(always)]
fn handle_all_fresh<const WATCHED: bool>(part: &mut Partition<'_, WATCHED>, mut fresh: u32) {
    while !part.core().violated() && part.core().events().fresh().is_some() {
        handle_fresh(part, &mut fresh);
    }
}

/// Handle the events that have come up within the slot at the port or host in hand, as far as they
/// come before `until`.
#[inline(never)]
fn catch_up<const WATCHED: bool>(
    part: &mut Partition<'_, WATCHED>,
    to: Onward,
    until: (Time, u32),
) {
    let mut fresh = 0;
    while !part.core().violated() && part.core().events().fresh().is_some_and(|key| key < until) {
        let Some(event) = part.core_mut().events_mut().pop_fresh() else { return };
        if event.id().is_arrival() || event.id().link() != to.port() {
            let what = format!("an effect elsewhere too soon, at {}", event.at);
            part.core_mut().violate(None, what);
        }
        count_fresh(part, event, &mut fresh);
        part.dispatch(event, to);
    }
}

#[inline(never)]
fn handle_fresh<const WATCHED: bool>(part: &mut Partition<'_, WATCHED>, fresh: &mut u32) {
    if let Some(event) = part.core_mut().events_mut().pop_fresh() {
        count_fresh(part, event, fresh);
        check_time(part, event);
        part.dispatch(event, Onward::UNKNOWN);
    }
}

/// One more event has come up within its own slot.
#[inline(always)]
fn count_fresh<const WATCHED: bool>(
    part: &mut Partition<'_, WATCHED>,
    event: Event,
    fresh: &mut u32,
) {
    part.core_mut().count(1);
    *fresh += 1;
    if *fresh > FRESH_MAX {
        // From here on, one by one.
        *fresh = FRESH_MAX;
        part.suspect(event);
    }
}

#[inline(always)]
fn check_time<const WATCHED: bool>(part: &mut Partition<'_, WATCHED>, event: Event) {
    if event.at < part.core().now() {
        part.core_mut().violate(None, format!("time goes back to {}", event.at));
    }
}

/// Have at hand what the events of the slot just opened will touch, and note where they lead.
#[inline(never)]
fn look_ahead<const WATCHED: bool>(
    part: &Partition<'_, WATCHED>,
    due: &[Event],
    ahead: &mut Ahead,
) {
    let (hosts, network) = (part.hosts(), part.network());
    for &event in due {
        network.prefetch(event);
    }
    for &event in due {
        let to = network.find_onward(event);
        let host = hosts.prefetch_host(to.port());
        network.prefetch_onward(event, to, host);
        if host {
            ahead.visited.push(to.port());
        }
        ahead.leads.push(Lead::new(to));
    }
    hosts.prefetch(&ahead.visited);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use endpoint::{App, AppCx, Cx, Endpoint, Framing, Msg, Packet, Submit, Tx, TxPort};
    use queues::{Capacity, DropTailSpec, NdpSpec, QueueSpec};
    use units::{Dur, Rate, Time, TimerId};

    use crate::{Config, Departures, Events, Fault, FaultAction, LinkSpec, Routing, Sim, Topology};

    /// A host that does nothing.
    struct Silent;

    impl App for Silent {
        fn on_start(&mut self, _: &mut AppCx<'_>) {}
    }

    impl Endpoint for Silent {
        fn on_submit(&mut self, _: &mut Cx<'_>, _: &Msg) -> Submit {
            Submit::Full
        }
        fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}
        fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}
        fn poll_tx(&mut self, _: &mut Cx<'_>, _: TxPort, _: &mut Packet) -> Tx {
            Tx::Idle
        }
    }

    /// Signals this soon.
    struct Signals(Dur);

    impl App for Signals {
        fn on_start(&mut self, _: &mut AppCx<'_>) {}
        fn signal_delay(&self) -> Option<Dur> {
            Some(self.0)
        }
    }

    fn ndp(headers: Capacity) -> QueueSpec {
        QueueSpec::Ndp(NdpSpec { header_capacity: headers, ..NdpSpec::PAPER })
    }

    fn config() -> Config {
        Config {
            reroute_after: Dur::from_us(20),
            limit: Time(0),
            check: false,
            ..Config::new(1, Framing { payload: 1436, overhead: 64 }, ndp(Capacity::Bytes(72_000)))
        }
    }

    fn by_entity(config: Config, delay: Dur, app: fn() -> Box<dyn App>) -> bool {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay };
        let topology = Arc::new(Topology::fat_tree(12, 1, link).unwrap());
        let endpoints = (0..432).map(|_| Box::new(Silent) as Box<dyn Endpoint>).collect();
        let apps = (0..432).map(|_| app()).collect();
        Sim::new(topology, config, endpoints, apps, &mut ()).unwrap().is_by_entity()
    }

    /// In which runs slots need not be sorted: without this, a rule too strict would go unnoticed.
    #[test]
    fn slots_are_sorted_only_where_more_than_links_is_shared() {
        let us = Dur::from_us(1);
        let silent: fn() -> Box<dyn App> = || Box::new(Silent);
        let plain = |config| by_entity(config, us, silent);
        assert!(plain(config()));
        assert!(plain(Config { routing: Routing::FlowHash, ..config() }));
        let capacity = Capacity::Packets(10);
        let drop_tail = QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None });
        assert!(plain(Config { queue: drop_tail, ..config() }));
        assert!(by_entity(config(), us, || Box::new(Signals(Dur::from_us(1)))));
        // And where not.
        assert!(!plain(Config { routing: Routing::PacketRandom, ..config() }));
        assert!(!plain(Config { queue: ndp(Capacity::Packets(8)), ..config() }));
        assert!(!plain(Config { departures: Departures::Eager, ..config() }));
        assert!(!plain(Config { events: Events::Heap, ..config() }));
        assert!(!plain(Config { telemetry: true, ..config() }));
        let fault = Fault::new(Time(1), 3, FaultAction::Down);
        assert!(!plain(Config { faults: vec![fault], ..config() }));
        assert!(!by_entity(config(), Dur(0), silent), "a link without delay");
        assert!(!by_entity(config(), us, || Box::new(Signals(Dur(0)))));
    }
}
