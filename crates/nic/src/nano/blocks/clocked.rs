//! The clocked law (docs/nic.md, rules C1 to C11), as a machine of cycles: inputs have a cycle, and
//! so has what it does. It knows nothing of instants, and so is what a circuit is compared with;
//! the endpoint around it ([`super::super::endpoint`]) has the clock and the wire.
//!
//! Whoever drives it gives all inputs of a cycle before the [step](Clocked::step) of that cycle,
//! and steps in the order of time. Cycles in which nothing happens ([`Clocked::next`],
//! [`Clocked::chooses`]) may be left out.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use endpoint::{Effects, Msg, MsgId, Packet, Submit};
use p4::ir;
use units::{Dur, HostId, Time};

use super::super::arbiter::Chosen;
use super::super::config::Config;
use super::super::ticking::Machine;
use super::{Arrived, Blocks, Entry, ProgramError, Runs, Source};

/// A packet is looked up so many cycles after it has come (C2).
pub const LOOKUP: u64 = 4;

/// A GRANT starts the timer of its message so many cycles after the lookup of the packet that it
/// follows from (C6).
pub const GRANT_RESTART: Dur = Dur(8);

/// The fewest cycles between two packets with which a circuit of `program` does what the program
/// does packet by packet, where a message is free in the lookup that makes it whole (C7, C10).
#[must_use]
pub fn least_spacing(program: &ir::Program) -> u64 {
    // A program that is no circuit is refused where one is made of it.
    let Ok(hardware) = ir::Hardware::new(program) else { return 1 };
    hardware.spacings(&[]).first().map_or(1, |ingress| ingress.cycles.into())
}

/// A NIC of cycles.
pub struct Clocked {
    pub(in super::super) blocks: Blocks,
    /// The first cycle that has not passed.
    next: u64,
    /// Messages that nobody wants any more, with the cycles of those inputs, one in each.
    cancelled: VecDeque<(u64, MsgId)>,
}

impl Clocked {
    /// Idle, with `program`, which `runs`.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn new(program: &ir::Program, runs: Runs, config: Config) -> Result<Self, ProgramError> {
        let blocks = Blocks::new(program, runs, config)?;
        Ok(Self { blocks, next: 0, cancelled: VecDeque::new() })
    }

    pub(in super::super) fn receive_frame(
        &mut self,
        cycle: u64,
        me: HostId,
        source: Source,
        frame: &[u8],
        fx: &mut Effects,
    ) -> Arrived {
        self.blocks.receive_frame(self.entry(cycle), me, source, frame, fx)
    }

    /// C2.
    fn entry(&self, cycle: u64) -> Entry {
        let effect = cycle + u64::from(self.blocks.config.ingress_cycles);
        Entry { cycle, lookup: Time(cycle + LOOKUP), effect: Time(effect) }
    }

    /// The headers of the packet that was made last.
    #[must_use]
    pub fn headers(&self) -> &[u8] {
        self.blocks.headers()
    }

    /// C5 and C8, on what the cycles before have left.
    fn choose(&mut self, cycle: u64, tx_open: bool) -> Option<Chosen> {
        let since = Time(cycle.checked_sub(1)?);
        let Blocks { control, packetization, .. } = &mut self.blocks;
        let first = if tx_open { control.next(since) } else { None };
        let data = packetization.next_in_cycle(since, tx_open && first.is_none());
        first.map(Chosen::Control).or(data.map(Chosen::Data))
    }
}

impl Machine for Clocked {
    fn submit(&mut self, cycle: u64, me: HostId, msg: &Msg, fx: &mut Effects) -> Submit {
        self.blocks.submit(Time(cycle), me, msg, fx)
    }

    fn cancel(&mut self, cycle: u64, _: HostId, id: MsgId) {
        // One in a cycle (C3).
        let free = self.cancelled.back().map_or(0, |(last, _)| last + 1);
        self.cancelled.push_back((cycle.max(free), id));
    }

    fn receive(
        &mut self,
        cycle: u64,
        me: HostId,
        (pkt, switches): (&Packet, u32),
        fx: &mut Effects,
    ) {
        self.blocks.receive(self.entry(cycle), me, (pkt, switches), fx);
    }

    fn next(&self) -> Option<u64> {
        let finished = self.blocks.packetization.has_finished_front().then_some(self.next);
        let cancelled = self.cancelled.front().map(|(cycle, _)| *cycle);
        let happens = self.blocks.next().map(|at| at.0);
        finished.into_iter().chain(cancelled).chain(happens).min()
    }

    fn chooses(&self, open: RangeInclusive<u64>) -> Option<u64> {
        let Blocks { control, packetization, .. } = &self.blocks;
        let waiting = control.waiting_since().into_iter().chain(packetization.fronts_since());
        let since = waiting.min()?;
        let cycle = self.next.max(*open.start()).max(since.0 + 1);
        open.contains(&cycle).then_some(cycle)
    }

    fn step(
        &mut self,
        cycle: u64,
        tx_open: bool,
        me: HostId,
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> Option<u64> {
        let chosen = self.choose(cycle, tx_open);
        let made = chosen.is_some_and(|chosen| self.blocks.make(cycle, me, chosen, slot, fx));
        if let Some((_, id)) = self.cancelled.pop_front_if(|(at, _)| *at <= cycle) {
            self.blocks.cancel(Time(cycle), me, id, fx);
        }
        self.blocks.happen(Time(cycle), me, fx);
        self.next = cycle + 1;
        made.then_some(cycle)
    }
}
