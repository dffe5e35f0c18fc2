//! The receiver's side of nano-Homa and Homa-Tr (specs/nanotransport.md#11; specs/homa-tr.md#4,6):
//! each new packet makes room for one more, which the message with the fewest packets left is
//! granted.

use units::Time;
use wire::nano::Kind;

use super::config::{Config, Program};
use super::control::{Controls, Data};
use super::reassembly::{Info, Lookup};
use super::scheduler::{Entry, Scheduler};

/// The levels of packets that need no grant: one, priority 0. GRANTs assign those from here on.
pub(super) const UNSCHEDULED: u8 = 1;

/// The messages that are being granted.
#[derive(Debug)]
pub(super) struct Receiver {
    pending: Vec<Option<Pending>>,
    scheduler: Scheduler,
}

/// What is kept of a message in reassembly. Counts are in packets.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// One of its packets, which says how its sender is told.
    data: Data,
    granted: u16,
    grantable: u16,
    remaining: u16,
    ack_no: u16,
}

impl Pending {
    /// Of a message of which nothing has come whole yet. The public code counts a chopped first
    /// packet as received, or leaves what the last message had here (E1).
    const fn new(data: &Data, packets: u16, config: &Config) -> Self {
        let rtt = config.rtt_packets;
        Self { data: *data, granted: rtt, grantable: rtt, remaining: packets, ack_no: 0 }
    }

    /// No GRANT will follow.
    fn is_fully_granted(&self) -> bool {
        self.granted >= self.data.packets()
    }
}

impl Receiver {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            pending: vec![None; usize::from(config.rx_messages)],
            scheduler: Scheduler::default(),
        }
    }

    /// Message `rx` has been forgotten.
    pub(super) fn forget(&mut self, rx: usize) {
        self.pending[rx] = None;
        self.scheduler.remove(rx);
    }

    /// Answer `data`, about which reassembly says `lookup`. Returns the message that is granted
    /// more.
    pub(super) fn on_data(
        &mut self,
        at: Time,
        data: &Data,
        lookup: Lookup,
        config: &Config,
        out: &mut Controls,
    ) -> Option<usize> {
        let nack = Kind::Nack { pull: false };
        match lookup {
            Lookup::Fail => out.push(at, data.reply(nack, u16::from(data.header.pkt_offset), 0)),
            Lookup::Done => out.push(at, data.reply(ACK, data.packets(), 0)),
            Lookup::Known(info) => {
                if info.is_new_message {
                    self.pending[info.rx] = Some(Pending::new(data, data.packets(), config));
                }
                let pending = self.pending[info.rx].as_mut()?;
                if data.chopped {
                    refuse(at, data, pending, info, config, out);
                    return self.schedule_chopped(at, info, config, out);
                }
                if info.is_new_packet {
                    return self.accept(at, data, info, config, out);
                }
                if !config.strict_paper {
                    repeat(at, data, pending, info, config, out);
                }
            }
        }
        None
    }

    /// A packet that had not come before: a GRANT, for whichever message, or else an ACK; and the
    /// last packet of a message is always acknowledged.
    fn accept(
        &mut self,
        at: Time,
        data: &Data,
        info: Info,
        config: &Config,
        out: &mut Controls,
    ) -> Option<usize> {
        let pending = self.pending[info.rx].as_mut()?;
        pending.grantable += 1;
        pending.remaining -= 1;
        pending.ack_no = info.ack_no;
        let granted = self.schedule(at, info, config, out);
        if granted.is_none() || info.is_last_packet {
            out.push(at, data.reply(ACK, info.ack_no, 0));
        }
        if info.is_last_packet {
            self.pending[info.rx] = None;
        }
        granted
    }

    /// A chopped packet counts as one that has left the network, if wanted (E3).
    fn schedule_chopped(
        &mut self,
        at: Time,
        info: Info,
        config: &Config,
        out: &mut Controls,
    ) -> Option<usize> {
        if !config.count_chops {
            return None;
        }
        self.pending[info.rx].as_mut()?.grantable += 1;
        self.schedule(at, info, config, out)
    }

    /// Message `info.rx` has changed: the message that is granted more, if any is.
    fn schedule(
        &mut self,
        at: Time,
        info: Info,
        config: &Config,
        out: &mut Controls,
    ) -> Option<usize> {
        let pending = self.pending[info.rx]?;
        if info.is_last_packet || pending.is_fully_granted() {
            self.scheduler.remove(info.rx);
        } else {
            let Pending { granted, grantable, remaining, .. } = pending;
            self.scheduler.update(Entry { rx: info.rx, remaining, granted, grantable });
        }
        let grant = self.scheduler.grant(config.overcommitment)?;
        let pending = self.pending[grant.rx].as_mut()?;
        pending.granted = grant.offset;
        let mut control = pending.data.reply(Kind::Credit, pending.ack_no, grant.offset);
        control.header.grant_prio = grant.level + UNSCHEDULED;
        out.push(at, control);
        Some(grant.rx)
    }
}

const ACK: Kind = Kind::Ack { pull: false };

/// Refuse a chopped packet, and say whether its sender should wait for a GRANT (E2).
fn refuse(
    at: Time,
    data: &Data,
    pending: &Pending,
    info: Info,
    config: &Config,
    out: &mut Controls,
) {
    let offset = u16::from(data.header.pkt_offset);
    let mut control = data.reply(Kind::Nack { pull: false }, offset, info.ack_no);
    let at_once = !config.strict_paper && pending.is_fully_granted();
    control.header.grant_prio = u8::from(at_once);
    out.push(at, control);
}

/// A packet has come again: its sender lacks an ACK, or a GRANT (E7).
fn repeat(
    at: Time,
    data: &Data,
    pending: &Pending,
    info: Info,
    config: &Config,
    out: &mut Controls,
) {
    let grant = pending.granted > config.rtt_packets;
    let (kind, credit) = if grant { (Kind::Credit, pending.granted) } else { (ACK, 0) };
    let mut control = data.reply(kind, info.ack_no, credit);
    control.header.grant_prio = if grant { UNSCHEDULED } else { 0 };
    out.push(at, control);
}

/// Whether the receiver of `program` knows what a switch has trimmed.
pub(super) const fn understands_chopped(program: Program) -> bool {
    matches!(program, Program::Ndp | Program::HomaTr)
}
