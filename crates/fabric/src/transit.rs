//! What ports note for their partition beside events: packets that leave it, ports that lead out of
//! it, and queues from which headers may be sent back.

use units::Time;

#[derive(Default)]
pub(crate) struct Transit {
    /// Packets on their way to other partitions.
    leaving: Vec<Leaving>,
    /// Busy ports that lead there.
    crossing: Vec<u32>,
    /// When a packet that waits for a link to another partition begins to leave.
    crossing_at: Option<Time>,
    /// Switch ports at which headers wait in numbers.
    crowded: u32,
}

/// A packet on its way to another partition.
#[derive(Clone, Copy)]
pub(crate) struct Leaving {
    /// The place among links that lead there.
    pub(crate) place: u32,
    pub(crate) packet: u32,
    /// When it arrives.
    pub(crate) at: Time,
}

impl Transit {
    /// A packet begins to leave.
    #[inline(always)]
    pub(crate) fn leave(&mut self, place: u32, packet: u32, at: Time) {
        self.leaving.push(Leaving { place, packet, at });
    }

    /// The packets that have begun to leave; afterwards the list, empty, is to be put back.
    pub(crate) fn take_leaving(&mut self) -> Vec<Leaving> {
        std::mem::take(&mut self.leaving)
    }

    /// Use the memory of `list` again.
    pub(crate) fn put_back(&mut self, mut list: Vec<Leaving>) {
        list.clear();
        self.leaving = list;
    }

    /// `port` leads to another partition and is to be looked at when the round ends.
    pub(crate) fn cross(&mut self, port: u32) {
        self.crossing.push(port);
    }

    /// The ports to be looked at.
    pub(crate) fn take_crossing(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.crossing)
    }

    /// Those that are to be looked at again after the next round, and when the first packet that
    /// waits there begins to leave.
    pub(crate) fn keep_crossing(&mut self, ports: Vec<u32>, first: Option<Time>) {
        (self.crossing, self.crossing_at) = (ports, first);
    }

    /// When a packet that waits for a link to another partition begins to leave.
    pub(crate) fn next_at(&self) -> Time {
        self.crossing_at.unwrap_or(Time::NEVER)
    }

    /// At one more port headers wait in numbers, or at one less.
    pub(crate) fn note_crowd(&mut self, crowded: bool) {
        self.crowded = if crowded { self.crowded + 1 } else { self.crowded - 1 };
    }

    /// Whether there is such a port.
    #[inline(always)]
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded > 0
    }
}
