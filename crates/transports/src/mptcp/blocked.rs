//! What a connection does while nothing new fits its buffers because the oldest data is missing: a
//! quicker subflow sends that, too (opportunistic retransmission), and the windows of those that
//! have it outstanding are halved (penalisation). Raiciu and others, NSDI 2012, section 4.2, with
//! the conditions of Linux (multipath-tcp.org v0.95, `mptcp_rcv_buf_optimization`).

use units::{Dur, Time};

use super::config::Config;
use super::connection::{Connection, Subflow};
use super::mappings::Chunk;

/// The oldest data is sent again by a subflow whose round trip is less than this part of that of
/// each subflow that has it outstanding, as in Linux ...
const MUCH_QUICKER: u64 = 4;
/// ... or if that one has so small a window left, segments.
const SMALL_WINDOW: f64 = 4.0;

impl Connection {
    /// Whether the next data, `chunk`, has no room at the receiver or here.
    pub(super) fn is_blocked(&self, config: &Config, chunk: &Chunk) -> bool {
        chunk.end() > self.edge || chunk.end() - self.una > config.send_buffer
    }

    /// The subflows that have the oldest data outstanding.
    fn holders(&self) -> impl Iterator<Item = &Subflow> {
        self.subflows.iter().filter(|subflow| subflow.sender.source().holds(self.una))
    }

    /// Whether subflow `i` may send the oldest data again: it has not sent it yet, and all that
    /// have are slow.
    pub(super) fn may_rescue(&self, i: usize) -> bool {
        let Some(rtt) = self.subflows[i].srtt() else { return false };
        let is_slow = |holder: &Subflow| {
            holder.sender.cwnd() <= SMALL_WINDOW
                || holder.srtt().is_some_and(|srtt| rtt * MUCH_QUICKER < srtt)
        };
        !self.subflows[i].sender.source().holds(self.una) && self.holders().all(is_slow)
    }

    /// If nothing new fits the buffers although a subflow could send it: halve the windows of the
    /// slower ones that have the oldest data outstanding, once per round trip of each.
    pub(super) fn penalise(&mut self, config: &Config, now: Time) {
        let Some(next) = self.chunk(self.next).filter(|next| self.is_blocked(config, next)) else {
            return;
        };
        let Some(quickest) = self.quickest_with_room(config, next) else { return };
        for holder in &mut self.subflows {
            let Some(srtt) = holder.srtt().filter(|&srtt| srtt > quickest) else { continue };
            let due = holder.penalised.is_none_or(|at| now.since(at) >= srtt);
            if due && holder.sender.source().holds(self.una) && holder.sender.penalise() {
                holder.penalised = Some(now);
            }
        }
    }

    /// The least round-trip time of the subflows that could send `next`, if its size were all that
    /// mattered.
    fn quickest_with_room(&mut self, config: &Config, next: Chunk) -> Option<Dur> {
        let phase = self.phase;
        let open =
            |&(i, ref subflow): &(usize, &mut Subflow)| phase.maps_to(i) && subflow.is_open();
        let could_send = |(_, subflow): (usize, &mut Subflow)| {
            subflow.sender.source_mut().offer(Some(next), None);
            let segment = subflow.sender.peek(&config.tcp)?;
            subflow.srtt().filter(|_| subflow.sender.source().is_new(&segment))
        };
        self.subflows.iter_mut().enumerate().filter(open).filter_map(could_send).min()
    }
}
