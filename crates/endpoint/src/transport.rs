//! [`Endpoint`], the calls it receives, and the context it receives them in.

use units::{Dur, HostId, MsgId, MsgKey, Rate, Time, TimerId};

use crate::{Draw, Effects, Packet};

/// One host's whole transport: all its flows, both directions. Object-safe and free of I/O.
///
/// # The caller's contract
///
/// 1. `cx.now` never goes back.
/// 2. After each `on_*` the caller applies `cx.fx` in order, empties it, and then calls `poll_tx`
///    for every port that is free, until each answers something other than [`Tx::Sent`] or is busy.
///    Effects of `poll_tx` are applied in the same way. Several timers due at one instant, and
///    several messages that an application submits at once, may all be handed over before the first
///    poll.
/// 3. A timer has one deadline; arming it again replaces the deadline. Timers with equal deadlines
///    fire in id order. A timer is disarmed when it fires.
/// 4. [`Tx::NotBefore`]`(t)` must have `t > cx.now`; the port is polled again at `t` or after the
///    next `on_*`, whichever is first.
/// 5. A packet handed to `on_packet` is read-only and gone when the call returns.
pub trait Endpoint: Send {
    /// The application hands over a message. After [`Submit::Full`] the caller keeps the message
    /// and offers it again after the next `Acked` or `Failed`.
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit;

    /// A packet for this host has arrived whole (trimmed and bounced ones included).
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet);

    /// The deadline of `id` has come.
    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId);

    /// This port is free: choose what it sends now, as late as the wire allows. On [`Tx::Sent`],
    /// `slot` holds the packet; otherwise its contents are ignored. `slot` arrives cleared.
    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx;

    /// The application no longer wants this message delivered. What was sent was sent.
    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        let _ = (cx, id);
    }

    /// The application takes data again: `cx.room` has grown.
    fn on_room(&mut self, cx: &mut Cx<'_>) {
        let _ = cx;
    }

    /// Host `host` has started again and knows of no message. The environment has cancelled those
    /// to it. Those from it fail, and numbers that count for both ends begin anew. No packet of its
    /// former life will follow. Only real networks know such a thing.
    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let _ = (cx, host);
    }

    /// No packet of message `key`, which was delivered and acknowledged, is in flight any more, or
    /// will ever be: what is remembered so that it does not start again may go. The endpoint is
    /// that of host `me`, one of its ends. Only simulators know such a thing.
    fn on_over(&mut self, me: HostId, key: MsgKey) {
        let _ = (me, key);
    }

    /// All messages of `host` to this one below `oldest` are over, says `host`: it asks about none
    /// of them again, and what it sends from now on has higher ids. Late packets of them may still
    /// come, and must not start them again. Only real networks know such a thing, until
    /// [`on_restart`](Self::on_restart).
    fn on_over_below(&mut self, host: HostId, oldest: MsgId) {
        let _ = (host, oldest);
    }

    /// What message `id` of this host may send now; `None` if it is over, or there is nothing to
    /// say. Environments ask for traces only. It changes nothing.
    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        let _ = id;
        None
    }

    /// How many payload bytes can be taken out of message `id` of this host, in whole packets that
    /// were never sent: [`UNBOUNDED`] of a message that has no end; `None` if this transport cannot
    /// tell, or does not know the message. Only simulators that skip time ask.
    fn unsent(&self, id: MsgId) -> Option<u64> {
        let _ = id;
        None
    }

    /// Message `id` of this host is shorter by `bytes` from now on, or a little less, as only whole
    /// packets are taken out of it; no more than [`Endpoint::unsent`] says. How many bytes were
    /// taken. Nothing else changes: what is in flight, its numbers and its times stay. The
    /// environment counts the bytes as delivered. Only simulators that skip time ask.
    fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        let _ = (id, bytes);
        0
    }

    /// Message `key` to this host has been [shortened](Endpoint::shorten) by `bytes` at its source.
    /// Nothing is to be done by who learns where a message ends from its last packet.
    fn on_shortened(&mut self, key: MsgKey, bytes: u64) {
        let _ = (key, bytes);
    }

    /// The next call comes soon: ask ([`crate::prefetch`]) for the memory behind pointers that it
    /// will read first. Environments of many hosts call this, for several hosts in turn. It
    /// changes nothing. Step 0 may read what the endpoint itself holds, step 1 what step 0 has
    /// asked for.
    fn prefetch(&self, step: u8) {
        let _ = step;
    }

    /// A packet whose [`Packet::token`] was not zero has left the port; `at` is the end of its
    /// serialisation.
    fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, at: Time) {
        let _ = (cx, token, at);
    }
}

/// The length of a message that never ends (a "long flow" of the papers).
pub const UNBOUNDED: u64 = u64::MAX;

/// What an application hands over: bytes for another host, delivered whole, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msg {
    /// The submitting host's counter.
    pub id: MsgId,
    /// The receiving host.
    pub dst: HostId,
    /// Bytes, or [`UNBOUNDED`].
    pub len: u64,
    /// Messages of one non-zero channel between two hosts are delivered in order of submission.
    /// Zero: no order.
    pub channel: u32,
    /// Application priority, zero the most urgent. A transport may ignore it.
    pub prio: u8,
    /// Which transport carries it, where a host runs several: its place among them. Otherwise zero.
    pub transport: u8,
    /// The message this one answers, for transports that match requests and replies.
    pub reply_to: Option<MsgKey>,
    /// The greatest window of the message's connection while it is the newest submitted there:
    /// bytes on the wire, headers included. [`u64::MAX`]: none. A transport may ignore it.
    pub window: u64,
    /// From submission until all of it should be there; [`Dur::MAX`]: no deadline. A transport
    /// may ignore it.
    pub deadline: Dur,
}

impl Msg {
    /// `len` bytes for `dst`, without order, priority, greatest window or deadline, over the first
    /// transport. Its id is chosen when it is submitted.
    #[must_use]
    pub const fn new(dst: HostId, len: u64) -> Self {
        Self {
            id: MsgId(0),
            dst,
            len,
            channel: 0,
            prio: 0,
            transport: 0,
            reply_to: None,
            window: u64::MAX,
            deadline: Dur::MAX,
        }
    }
}

/// How much a transport lets a message send: its connection's numbers, where several share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowState {
    /// Bytes that may be in flight: a congestion window.
    pub window: Option<u64>,
    /// Bytes sent and not known to have arrived or to be lost.
    pub in_flight: Option<u64>,
    /// Bytes that it may send without hearing more from its receiver: granted, pulled for.
    pub credit: Option<u64>,
    /// The rate at which it is paced.
    pub rate: Option<Rate>,
}

/// Whether a transport has taken a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// The transport owns it now.
    Taken,
    /// No room: offer it again after the next `Acked` or `Failed`.
    Full,
}

/// The answer of `poll_tx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tx {
    /// The slot holds a packet: transmit it now.
    Sent,
    /// Nothing before this instant (pacing). Later than now.
    NotBefore(Time),
    /// Nothing until something else happens at this host.
    Idle,
}

/// A free transmit port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxPort {
    /// Which network interface.
    pub nic: u8,
    /// Bit `p` is set if a packet of class `p` may start now (PFC pauses clear bits).
    pub open: u8,
}

impl TxPort {
    /// Whether a packet of `class` may start now; never one of a class above 7.
    #[must_use]
    #[inline]
    pub const fn opens(self, class: u8) -> bool {
        class < 8 && self.open >> class & 1 == 1
    }
}

/// What an endpoint is told with every call, and where it puts what it wants done.
pub struct Cx<'a> {
    /// The time of this call.
    pub now: Time,
    /// `on_packet` only: when the packet's last bit arrived (a hardware stamp; at most `now`).
    pub rx_at: Time,
    /// The host this endpoint runs on.
    pub me: HostId,
    /// Bytes that the application will take now; `u64::MAX` where it always takes everything.
    pub room: u64,
    /// What a host knows of its network.
    pub net: &'a NetView<'a>,
    /// This host's random draws.
    pub draw: Draw,
    /// What this call wants done, in order.
    pub fx: &'a mut Effects,
}

impl Cx<'_> {
    /// From when on a pacer counts its next gap, when what was due at `due` is done now: from then,
    /// but no further back than lateness explains. So a late call does not slow it down, and a
    /// pause is not followed by a burst.
    #[must_use]
    #[inline]
    pub fn paced_from(&self, due: Time) -> Time {
        let earliest = Time(self.now.0.saturating_sub(self.net.lateness.0));
        due.clamp(earliest, self.now)
    }
}

/// What a host may know of its network: its own interfaces and the shape of the fabric.
pub struct NetView<'a> {
    /// The host that asks.
    pub me: HostId,
    /// The rate of each of its interfaces.
    pub nics: &'a [Rate],
    /// The largest `wire_len` that every link carries, bytes.
    pub mtu: u16,
    /// Every path to everybody is believed to work: `routes` need not be asked.
    pub whole: bool,
    /// By how much this host's calls, and those of its peers, may come after what they are for: a
    /// timer after its deadline, a packet after its last bit. Pacers make up for it, and who waits
    /// for an answer waits longer. Zero where calls come in time, as in simulation.
    pub lateness: Dur,
    /// The fabric's shape.
    pub routes: &'a dyn Routes,
}

impl NetView<'_> {
    /// The rate of interface `nic`.
    #[must_use]
    pub fn rate(&self, nic: u8) -> Rate {
        self.nics[usize::from(nic)]
    }

    /// How many paths lead to `dst`, at least 1. Indices `0..paths` never renumber.
    #[must_use]
    pub fn paths(&self, dst: HostId) -> u32 {
        self.routes.paths(self.me, dst)
    }

    /// Whether path `path` to `dst` is believed to work. At least one always is.
    #[must_use]
    pub fn path_up(&self, dst: HostId, path: u32) -> bool {
        self.whole || self.routes.path_up(self.me, dst, path)
    }

    /// Path `first` to `dst`, or, if that is believed to be broken, the next that is not.
    #[must_use]
    pub fn path_from(&self, dst: HostId, first: u32) -> u32 {
        let paths = self.paths(dst);
        let mut in_turn = (first..first + paths).map(|n| n % paths);
        in_turn.find(|&path| self.path_up(dst, path)).unwrap_or(first)
    }

    /// A number that changes whenever some `path_up` may have: path lists are rebuilt then.
    #[must_use]
    pub fn routes_version(&self) -> u32 {
        self.routes.version()
    }

    /// Links on the way to `dst`.
    #[must_use]
    pub fn hops(&self, dst: HostId) -> u32 {
        self.routes.hops(self.me, dst)
    }

    /// How much longer than its time on the wire an answer may take: here and at the other end
    /// packets are looked at late.
    #[must_use]
    pub fn answer_lateness(&self) -> Dur {
        self.lateness * 2
    }

    /// The time for one packet of `mtu` bytes to `dst` and one of 64 bytes back, nothing else
    /// on the way.
    #[must_use]
    pub fn base_rtt(&self, dst: HostId) -> Dur {
        self.routes.base_rtt(self.me, dst)
    }
}

/// The shape of a fabric, as [`NetView`] needs it. Implemented by environments.
pub trait Routes {
    /// See [`NetView::paths`].
    fn paths(&self, src: HostId, dst: HostId) -> u32;
    /// See [`NetView::path_up`].
    fn path_up(&self, src: HostId, dst: HostId, path: u32) -> bool {
        let _ = (src, dst, path);
        true
    }
    /// See [`NetView::routes_version`].
    fn version(&self) -> u32 {
        0
    }
    /// See [`NetView::hops`].
    fn hops(&self, src: HostId, dst: HostId) -> u32;
    /// See [`NetView::base_rtt`].
    fn base_rtt(&self, src: HostId, dst: HostId) -> Dur;
}

/// How a transport cuts a message into packets: what the ideal completion time needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Payload bytes of a full packet.
    pub payload: u16,
    /// Bytes on the wire beside the payload, every header included.
    pub overhead: u16,
}

impl Framing {
    /// Packets of a message of `len` bytes. One of no bytes needs a packet to say so.
    #[must_use]
    pub fn packets(self, len: u64) -> u64 {
        match len {
            UNBOUNDED => u64::MAX,
            len => len.div_ceil(u64::from(self.payload)).max(1),
        }
    }

    /// Payload bytes of packet `seq` of a message of `len` bytes.
    #[must_use]
    pub fn payload_of(self, seq: u64, len: u64) -> u16 {
        let offset = seq.saturating_mul(u64::from(self.payload));
        len.saturating_sub(offset).min(u64::from(self.payload)) as u16
    }
}
