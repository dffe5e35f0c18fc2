//! The receiving side: subflows acknowledge what they get as TCP does, and the data of all of them
//! is put together by data sequence number, whatever way it came (specs/mptcp.md#1).

use std::ops::Range;

use endpoint::{Cx, Draw, Effects, Packet, Purpose, RangeSet, Stat};
use units::{HostId, Time};
use wire::mptcp::{Body, SACK_BLOCKS_MAX, Signal};
use wire::tcp::Repr;

use super::config::Config;
use crate::connections::{Found, Half, Opened};
use crate::deadlines::Deadlines;
use crate::tcp::CONN_BITS;
use crate::tcp::receiver::{
    MessageEnds, Progress, Receiver, answer_finished, delay_ack, place, segment_space,
};
use crate::tcp::retransmission::FastRetransmits;
use crate::tcp::{handshake, receiver as tcp};

/// The receiving side of a connection.
#[derive(Debug)]
struct Connection {
    peer: HostId,
    token: u32,
    /// Data sequence numbers received.
    received: RangeSet,
    ends: MessageEnds,
    /// Slots of its subflows, by their number; [`NONE`] for those nothing has come from.
    subflows: Vec<u32>,
}

/// The receiving half of a subflow.
#[derive(Debug)]
struct Subflow {
    receiver: Receiver,
    /// The slot of its connection.
    connection: u32,
    number: u8,
}

/// Which path answers to a scattering subflow take.
const ANSWERS: Purpose = Purpose::new("mptcp answers");

const NONE: u32 = u32::MAX;

/// An acknowledgement to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) tcp: tcp::Ack,
    pub(super) signal: Signal,
}

/// Every connection to this host.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    /// By peer and token.
    connections: Opened<Connection, CONN_BITS>,
    subflows: Vec<Subflow>,
    free_subflows: Vec<u32>,
    /// Of delayed acknowledgements, by slot of the subflow.
    pub(super) deadlines: Deadlines,
    /// What fast retransmits have brought.
    fast_retransmits: FastRetransmits,
}

impl Receivers {
    /// A data segment, of the subflow of `pkt.src` that its ports call `conn`. Returns the
    /// acknowledgements to send now: of what came before it, and of this one too.
    pub(super) fn on_data(
        &mut self,
        config: &Config,
        cx: &mut Cx<'_>,
        conn: u32,
        (header, signal): (&Repr, &Signal),
        pkt: &Packet,
    ) -> [Option<Ack>; 2] {
        let path = if signal.scattered { answer_path(cx.draw, pkt.src, conn) } else { pkt.path };
        let fx = &mut *cx.fx;
        let Some(space) = segment_space(header, pkt) else { return [None, None] };
        let Body::Data { dsn, .. } = signal.body else { return [None, None] };
        let Some(dsn_end) = dsn.checked_add(space) else { return [None, None] };
        let id = (pkt.src, signal.token);
        let found = self.connections.find(id);
        if found == Found::Over {
            self.fast_retransmits.arrived(conn, header, pkt, false, fx);
            let ack = tcp::Ack { path, ..answer_finished(conn, header, pkt, space) };
            return [None, Some(Ack::new(config, ack, signal, dsn_end))];
        }
        let open = match found {
            Found::Open(at) => Some(at),
            Found::Over | Found::New => self.create(cx.now, id),
        };
        let Some(at) = open else {
            cx.fx.count(Stat::Rejected);
            return [None, None];
        };
        let fx = &mut *cx.fx;
        let slot = self.subflow(at, conn, signal.subflow);
        let connection = &mut self.connections[at];
        let half = &mut self.subflows[slot as usize].receiver;
        let Some(seq) = half.position(&config.tcp, header.seq) else { return [None, None] };
        let before = half.arrive(&config.tcp, header, pkt, seq, space);
        half.answer_over(path);
        let earlier = connection.received.prefix();
        let progress = half.insert(seq..seq + space);
        // What is new to the subflow was lost on it, even if its data has come over another one.
        let new = progress != Progress::Duplicate;
        self.fast_retransmits.arrived(conn, header, pkt, new, fx);
        if new && !connection.accept(dsn..dsn_end, header, pkt, fx) {
            fx.count(Stat::Duplicate);
        }
        let next = connection.received.prefix();
        let complete = connection.ends.deliver(pkt.src, next, fx);
        let due = complete || half.is_ack_due(&config.tcp, progress);
        let ack = due.then(|| half.acknowledge(&config.tcp, complete, Some(seq)));
        delay_ack(&mut self.deadlines, &config.tcp, cx.now, slot, due);
        if complete {
            self.finish(at);
        }
        let ack_of = |next| move |ack| Ack::new(config, ack, signal, next);
        [before.map(ack_of(earlier)), ack.map(ack_of(next))]
    }

    /// The answer to a SYN, unless its connection is over.
    pub(super) fn on_syn(
        &self,
        config: &Config,
        draw: Draw,
        conn: u32,
        (header, signal): (&Repr, &Signal),
        pkt: &Packet,
    ) -> Option<Ack> {
        let over = self.connections.find((pkt.src, signal.token)) == Found::Over;
        let mut tcp = handshake::answer(&config.tcp, conn, header, pkt);
        if config.scatter.is_some() && signal.subflow == 0 {
            tcp.path = answer_path(draw, pkt.src, conn);
        }
        (!over).then_some(Ack { tcp, signal: *signal })
    }

    /// The next delayed acknowledgement that is due.
    pub(super) fn pop_delayed(&mut self, config: &Config, now: Time) -> Option<Ack> {
        let Subflow { receiver, connection, number, .. } =
            &mut self.subflows[self.deadlines.pop(now)? as usize];
        let Connection { token, received, .. } = &self.connections[*connection];
        let body = Body::DataAck(received.prefix());
        let signal = Signal { token: *token, subflow: *number, scattered: false, body };
        let ack = receiver.acknowledge(&config.tcp, false, None);
        Some(Ack::new(config, ack, &signal, received.prefix()))
    }

    /// The slot of a new connection; `None` if its peer has too many.
    fn create(&mut self, now: Time, id @ (peer, token): (HostId, u32)) -> Option<u32> {
        let Self { connections, free_subflows, deadlines, .. } = self;
        let new = || Connection::new(peer, token);
        let slot = connections.open(now, id, new, |_, connection| {
            connection.clear(free_subflows, deadlines);
        })?;
        let connection = &mut connections[slot];
        (connection.peer, connection.token) = id;
        Some(slot)
    }

    /// The slot of subflow `number` of the connection in slot `at`, a new one if it is new.
    fn subflow(&mut self, at: u32, conn: u32, number: u8) -> u32 {
        let Connection { peer, subflows, .. } = &mut self.connections[at];
        let place = usize::from(number);
        if subflows.len() <= place {
            subflows.resize(place + 1, NONE);
        }
        if subflows[place] == NONE {
            let slot = self.free_subflows.pop().unwrap_or_else(|| {
                let receiver = Receiver::new(*peer, conn, SACK_BLOCKS_MAX);
                self.subflows.push(Subflow { receiver, connection: at, number });
                self.subflows.len() as u32 - 1
            });
            let subflow = &mut self.subflows[slot as usize];
            subflow.receiver.reopen(*peer, conn);
            (subflow.connection, subflow.number) = (at, number);
            subflows[place] = slot;
        }
        subflows[place]
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(super) fn restart(&mut self, host: HostId) {
        let Self { connections, free_subflows, deadlines, .. } = self;
        connections.restart(host, |_, connection| connection.clear(free_subflows, deadlines));
    }

    /// The connection in slot `at` is over.
    fn finish(&mut self, at: u32) {
        let connection = &mut self.connections[at];
        connection.clear(&mut self.free_subflows, &mut self.deadlines);
        let id = (connection.peer, connection.token);
        self.connections.finish(at, id);
    }
}

impl Half for Connection {
    fn progress(&self) -> u64 {
        self.received.prefix()
    }
}

/// The path of all answers to a scattering subflow, whatever paths its segments took: what switches
/// hash of them are addresses and ports, which do not change (specs/mptcp.md#4);
/// `draw`: this host's. So it is known before the first segment (SYN-ACK) and after the last (a
/// connection that is over).
fn answer_path(draw: Draw, peer: HostId, conn: u32) -> u32 {
    draw.part(u64::from(peer.0)).bits(ANSWERS, u64::from(conn)) as u32
}

impl Connection {
    fn new(peer: HostId, token: u32) -> Self {
        let (received, ends) = (RangeSet::new(), MessageEnds::default());
        Self { peer, token, received, ends, subflows: Vec::new() }
    }

    /// Keep nothing, nor subflows.
    fn clear(&mut self, free_subflows: &mut Vec<u32>, deadlines: &mut Deadlines) {
        self.received.clear();
        self.ends.clear();
        for slot in self.subflows.drain(..).filter(|&slot| slot != NONE) {
            deadlines.set(slot, Time::NEVER);
            free_subflows.push(slot);
        }
    }

    /// Take in the data sequence numbers `range`, which the packet carries. False if all of it had
    /// come before.
    fn accept(&mut self, range: Range<u64>, header: &Repr, pkt: &Packet, fx: &mut Effects) -> bool {
        place(&self.received, range.clone(), pkt, fx);
        let end = range.end;
        if self.received.insert(range) == 0 {
            return false;
        }
        self.ends.note(end, header.control, pkt.span.msg);
        true
    }
}

impl Ack {
    /// What `ack` says of the subflow, and that all data before `next` has come; `signal`: of the
    /// data that it answers.
    fn new(config: &Config, ack: tcp::Ack, signal: &Signal, next: u64) -> Self {
        let window = config.receive_buffer >> config.window_shift();
        let tcp = tcp::Ack { window: window as u16, ..ack };
        let signal = Signal { scattered: false, body: Body::DataAck(next), ..*signal };
        Self { tcp, signal }
    }
}
